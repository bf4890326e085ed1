/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a program at a terminal of its own, and types, for tty.sh:
 *
 *	yod_tty STEP... -- program arguments
 *
 * await:TEXT waits until the text has appeared (behind the text awaited before);
 * type:TEXT, in which ^C is that key; nap:MS; size:ROWS.  Then it waits for the end of
 * the program.  It prints the terminal's output; the status is the program's, or 99 if
 * a step failed.
 */
#include "../support/patience.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int master;
static pid_t child;
static char seen[1 << 20];
static size_t seen_n, awaited;

static _Noreturn void end(int status)
{
	fwrite(seen, 1, seen_n, stdout);
	exit(status);
}

static _Noreturn void give_up(const char *what)
{
	fprintf(stderr, "never happened: %s\n", what);
	kill(-child, SIGKILL);
	end(99);
}

/* Return false if the terminal is closed. */
static bool look(int ms)
{
	struct pollfd p = {.fd = master, .events = POLLIN};
	if (poll(&p, 1, ms) <= 0)
		return true;
	ssize_t n = read(master, seen + seen_n, sizeof seen - 1 - seen_n);
	seen_n += n > 0 ? (size_t)n : 0;
	return n > 0 || errno == EINTR;
}

static void await(const char *text)
{
	struct patience p = patience_begin();
	char *at;
	while (!(at = strstr(seen + awaited, text)))
		if (patience_is_over(&p) || !look(100))
			give_up(text);
	awaited = (size_t)(at - seen) + strlen(text);
}

static void type(const char *text)
{
	for (; *text; text++) {
		char c = *text;
		if (c == '^' && text[1])
			c = (char)(*++text & 0x1f);
		if (write(master, &c, 1) != 1)
			give_up("typing");
	}
}

static void nap(const char *ms)
{
	uint64_t until = now_ms() + strtoul(ms, NULL, 10);
	while (now_ms() < until && look((int)(until - now_ms())))
		;
}

static void resize(const char *rows)
{
	struct winsize w = {.ws_row = (unsigned short)atoi(rows), .ws_col = 80};
	ioctl(master, TIOCSWINSZ, &w);
}

static void step(const char *text)
{
	static const struct {
		const char *name;
		void (*act)(const char *);
	} steps[] = {
		{"await:", await}, {"type:", type}, {"nap:", nap}, {"size:", resize}};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
		if (!strncmp(text, steps[i].name, strlen(steps[i].name))) {
			steps[i].act(text + strlen(steps[i].name));
			return;
		}
	give_up(text);
}

static int last_status(void)
{
	struct patience p = patience_begin();
	int status;
	while (waitpid(child, &status, WNOHANG) == 0) {
		if (patience_is_over(&p))
			give_up("the end of the program");
		look(50);
	}
	nap("100"); /* for the rest in the terminal */
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	int first = 1;
	struct winsize w = {.ws_row = 24, .ws_col = 80};
	while (first < argc && strcmp(argv[first], "--") != 0)
		first++;
	if (first + 1 >= argc)
		return 2;
	child = forkpty(&master, NULL, NULL, &w);
	if (!child) {
		execvp(argv[first + 1], argv + first + 1);
		_exit(127);
	}
	for (int i = 1; i < first; i++)
		step(argv[i]);
	end(last_status());
}
