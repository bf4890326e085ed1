/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cci_model - random programs of CCI, carried out by processes and compared with a model
 *
 *	cci_model [--seed N] [--seeds N] [--steps N] [--no-shrink]
 *
 * Each seed makes a program of some processes of one domain, which connect, send, read
 * and write memory, hold events, disconnect and die.  When a process finds something
 * that the model does not allow, the program is made smaller as long as it fails, and
 * printed.
 */
#include "model.h"
#include "../support/patience.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SHRINK_RUNS = 300 };

static struct program program;
static struct play_room *room;
static pid_t child[PROCESSES];
static uint64_t events, steps;

static void start(unsigned i, unsigned round)
{
	child[i] = fork();
	if (child[i] < 0)
		exit(3);
	if (child[i] == 0)
		play(room, &program, i, round);
}

static void note(const char *why)
{
	if (room->failed++ == 0)
		snprintf(room->why, sizeof room->why, "%s", why);
}

/* A process has ended: start it anew if it died by the program.  Return true if it is
 * not there any more. */
static bool has_ended(unsigned i, int status)
{
	unsigned round = room->round_of_death[i];
	if (status == 0)
		return true;
	room->round_of_death[i] = 0;
	if (!round) {
		char text[80];
		snprintf(text, sizeof text, "process %u ends with status %#x", i,
			(unsigned)status);
		note(text);
		return true;
	}
	if (round * ROUND >= program.steps)
		return true;
	start(i, round);
	return false;
}

static void end_all(void)
{
	for (unsigned i = 0; i < PROCESSES; i++)
		if (child[i]) {
			(void)kill(child[i], SIGKILL);
			(void)waitpid(child[i], NULL, 0);
			child[i] = 0;
		}
}

/* Run the program; return true if all is as the model says. */
static bool run(void)
{
	struct patience p = patience_times(4);
	unsigned left = PROCESSES;
	memset(room, 0, sizeof *room);
	for (unsigned i = 0; i < PROCESSES; i++)
		start(i, 0);
	while (left && !room->failed) {
		for (unsigned i = 0; i < PROCESSES; i++) {
			int status;
			if (!child[i] || waitpid(child[i], &status, WNOHANG) == 0 ||
				!has_ended(i, status))
				continue;
			child[i] = 0;
			left--;
		}
		if (patience_is_over(&p))
			note("the processes do not end");
		struct timespec t = {0, 200000};
		/* pause: between two looks */
		nanosleep(&t, NULL);
	}
	end_all();
	events += room->events;
	steps += room->steps;
	return !room->failed;
}

/* Take out parts of the program as long as it fails without them. */
static void shrink(void)
{
	static struct program smallest;
	char why[sizeof room->why];
	unsigned runs = 0;
	memcpy(why, room->why, sizeof why);
	for (unsigned part = program.steps / 2; part && runs < SHRINK_RUNS; part /= 2)
		for (unsigned at = 0; at < program.steps && runs < SHRINK_RUNS;
			at += part) {
			unsigned had = 0;
			smallest = program;
			for (unsigned i = at; i < at + part && i < program.steps; i++) {
				had += !program.step[i].dropped;
				program.step[i].dropped = true;
			}
			if (!had)
				continue;
			runs++;
			if (run())
				program = smallest;
			else
				memcpy(why, room->why, sizeof why);
		}
	memcpy(room->why, why, sizeof why);
}

static void show(void)
{
	char text[300];
	printf("%s\n", room->why);
	for (unsigned i = 0; i < program.steps; i++)
		if (!program.step[i].dropped) {
			step_show(text, sizeof text, i, &program.step[i]);
			printf("%s\n", text);
		}
}

static int fails(uint64_t seed, bool may_shrink)
{
	printf("seed %llu fails: %s\n", (unsigned long long)seed, room->why);
	fflush(stdout);
	if (may_shrink)
		shrink();
	show();
	return 1;
}

static uint64_t number_of(const char *option, const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end)
		return n;
	fprintf(stderr, "cci_model: %s takes a number, not '%s'\n", option, text);
	exit(2);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"seed", 1, NULL, 's'},
		{"seeds", 1, NULL, 'n'}, {"steps", 1, NULL, 'k'},
		{"no-shrink", 0, NULL, 'x'}, {NULL, 0, NULL, 0}};
	uint64_t seed = 1, seeds = 1;
	unsigned length = 2000;
	bool may_shrink = true;
	char domain[40];
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;)
		if (c == 's')
			seed = number_of("--seed", optarg);
		else if (c == 'n')
			seeds = number_of("--seeds", optarg);
		else if (c == 'k')
			length = (unsigned)number_of("--steps", optarg);
		else if (c == 'x')
			may_shrink = false;
		else
			return 2;
	snprintf(domain, sizeof domain, "cci_model.%d", (int)getpid());
	(void)setenv("PTL3_DOMAIN", domain, 1);
	(void)unsetenv("PTL3_YOD_FD");
	room = mmap(NULL, sizeof *room, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return 3;
	for (uint64_t i = 0; i < seeds; i++) {
		program_make(&program, seed + i, length);
		if (!run())
			return fails(seed + i, may_shrink);
	}
	printf("# tried: %llu steps and %llu events of %llu programs\n",
		(unsigned long long)steps, (unsigned long long)events,
		(unsigned long long)seeds);
	return 0;
}
