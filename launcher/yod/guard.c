/* SPDX-License-Identifier: BSD-3-Clause */
/* The outer process of yod: the terminal, signals, the end of yod, the last sweep. */
#include "launcher/yod/yod.h"
#include "launcher/loop.h"
#include "shm/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define BACKGROUND_MS 300
#define SWEEP_MS      5000
#define SWEEP_TRIES   2
#define GRACE_TURN_US 5000
#define STATUS_OF(s)  (WIFEXITED(s) ? WEXITSTATUS(s) : 128 + WTERMSIG(s))

/*
 * tty - saves and restores the terminal's settings
 *
 * A node that turns echo off, or reads single keys, may be killed before it restores
 * the terminal.
 */
struct tty {
	int fd; /* -1: no terminal */
	struct termios was;
};

/* Save the settings of the terminal on standard input, or else on standard output or
 * error. */
static struct tty tty_keep(void)
{
	struct tty tty = {.fd = -1};
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && tty.fd < 0; fd++)
		if (!tcgetattr(fd, &tty.was))
			tty.fd = fd;
	return tty;
}

static bool tty_is_as_it_was(const struct tty *tty)
{
	struct termios now;
	const struct termios *was = &tty->was;
	if (tcgetattr(tty->fd, &now))
		return true;
	return now.c_iflag == was->c_iflag && now.c_oflag == was->c_oflag &&
	       now.c_cflag == was->c_cflag && now.c_lflag == was->c_lflag &&
	       !memcmp(now.c_cc, was->c_cc, sizeof now.c_cc);
}

/* Restore the settings if this process is in the foreground and they differ.  SIGTTOU
 * must be blocked or ignored. */
static void tty_restore(const struct tty *tty)
{
	if (tty->fd < 0 || tcgetpgrp(tty->fd) != getpgrp() || tty_is_as_it_was(tty))
		return;
	(void)tcsetattr(tty->fd, TCSADRAIN, &tty->was);
}

/*
 * input - the path from a terminal to the standard input of rank 0
 *
 * A node is in a process group of its own; one that read the terminal itself would be
 * stopped by the kernel.  So yod's outer process, which is in the foreground, reads the
 * terminal and writes a pipe.  Rank 0 inherits any other standard input as it is.
 */
struct input {
	int from;   /* the terminal; -1: its input has ended */
	int to;     /* the pipe to rank 0 */
	uint32_t n; /* bytes in buf[at..] */
	uint32_t at;
	int64_t not_before; /* yod is in the background: try to read again then */
	char buf[4096];
};

/* Set *stdin_out to rank 0's descriptor 0: STDIN_FILENO, or a pipe. */
static int input_open(struct input *in, int *stdin_out)
{
	int pipefd[2];
	*in = (struct input){.from = -1, .to = -1};
	*stdin_out = STDIN_FILENO;
	if (!isatty(STDIN_FILENO))
		return 0;
	if (pipe2(pipefd, O_CLOEXEC))
		return -errno;
	if (fcntl(pipefd[1], F_SETFL, O_NONBLOCK)) {
		close(pipefd[0]);
		close(pipefd[1]);
		return -errno;
	}
	in->from = STDIN_FILENO;
	in->to = pipefd[1];
	*stdin_out = pipefd[0];
	return 0;
}

/* Close this side; rank 0 sees the end of file. */
static void input_close(struct input *in)
{
	p3_close(in->to);
	in->from = in->to = -1;
}

/* Return the descriptor and events to poll for; the descriptor is -1 when there are
 * none.  Shorten *ms to the longest time to wait. */
static struct pollfd input_wants(const struct input *in, int *ms)
{
	if (in->from < 0)
		return (struct pollfd){.fd = -1};
	if (in->n)
		return (struct pollfd){.fd = in->to, .events = POLLOUT};
	int64_t wait = in->not_before - p3_now_ms();
	if (wait <= 0)
		return (struct pollfd){.fd = in->from, .events = POLLIN};
	*ms = (int)wait;
	return (struct pollfd){.fd = -1};
}

static void input_hand_on(struct input *in)
{
	ssize_t n = write(in->to, in->buf + in->at, in->n);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			input_close(in);
		return;
	}
	in->at += (uint32_t)n;
	in->n -= (uint32_t)n;
}

static void input_take_in(struct input *in)
{
	if (tcgetpgrp(in->from) != getpgrp()) {
		in->not_before = p3_now_ms() + BACKGROUND_MS;
		return;
	}
	ssize_t n = read(in->from, in->buf, sizeof in->buf);
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == EIO)) {
		in->not_before = p3_now_ms() + BACKGROUND_MS;
		return;
	}
	if (n <= 0) {
		input_close(in);
		return;
	}
	in->at = 0;
	in->n = (uint32_t)n;
}

static void input_step(struct input *in, short revents)
{
	if (in->from < 0 || !revents)
		return;
	if (in->n)
		input_hand_on(in);
	else
		input_take_in(in);
}

/* ---- the guard ---- */

/* Reap orphans.  Return true when yod itself has ended. */
static bool guard_yod_ended(pid_t yod, int *status_out)
{
	pid_t pid;
	while ((pid = p3_reap_any()) > 0) {
		if (pid == yod)
			return p3_reap_fate(yod, status_out);
		p3_reap_take(pid);
	}
	return false;
}

/* Pass a signal on to yod.  yod stops the groups of a stopped job; this process stops
 * too, so that the shell sees the stop.  A yod that another process has stopped acts on
 * no signal before SIGCONT.  SIGCONT goes in front of a signal that ends the job, not
 * behind it: yod might be ending by then, and LeakSanitizer, which stops yod to examine
 * it, would wait for ever for a stop that SIGCONT has undone. */
static void guard_hand_signal_on(pid_t yod, int sig)
{
	if (sig == SIGCHLD)
		return;
	if (p3_signals_ends(sig))
		kill(yod, SIGCONT);
	kill(yod, sig);
	if (sig == SIGTSTP)
		raise(SIGSTOP);
}

static int guard_watch(pid_t yod, int signals, struct input *in)
{
	int status;
	while (!guard_yod_ended(yod, &status)) {
		int ms = -1, sig;
		struct pollfd p[2] = {
			{.fd = signals, .events = POLLIN}, input_wants(in, &ms)};
		if (poll(p, 2, ms) < 0)
			continue;
		while ((sig = p3_signals_next(signals)))
			guard_hand_signal_on(yod, sig);
		input_step(in, p[1].revents);
	}
	return status;
}

struct guard_ends {
	int alive[2];
	int signals;
	struct input in;
	struct tty tty; /* as it was before the first node could change it */
};

/* Reap children that end by themselves, for ms at most. */
static void guard_let_end(int ms)
{
	int64_t end = p3_now_ms() + ms;
	pid_t pid;
	while (ms && (pid = p3_reap_any()) >= 0 && p3_now_ms() < end)
		if (pid)
			p3_reap_take(pid);
		else
			usleep(GRACE_TURN_US);
}

static _Noreturn void guard_run(
	pid_t yod, struct guard_ends *e, const struct p3_guard_duty *duty)
{
	static const int to[2] = {STDOUT_FILENO, STDERR_FILENO};
	p3_say_by(NULL, NULL);
	FAULT_POINT("yod.guard_began");
	int status = guard_watch(yod, e->signals, &e->in);
	FAULT_POINT("yod.guard_unswept");
	/* A reader that does not read must not keep this process from the sweep: lines
	 * wait for p3_output_close(). */
	struct p3_output *lines =
		p3_output_create(&(struct p3_output_conf){.ranks = 0}, to);
	if (WIFSIGNALED(status))
		p3_say("the launcher (pid %d) was killed by signal %d (%s); ending the "
		       "job",
			(int)yod, WTERMSIG(status), strsignal(WTERMSIG(status)));
	guard_let_end(duty->grace_ms);
	int tries = 0;
	while (tries < SWEEP_TRIES && !p3_reap_sweep(SWEEP_MS))
		tries++;
	if (tries == SWEEP_TRIES)
		p3_say("some processes of the job do not end (see ps: state D?); left "
		       "behind");
	if (duty->last)
		duty->last(duty->arg);
	tty_restore(&e->tty);
	p3_output_close(lines, false);
	_exit(STATUS_OF(status));
}

static int guard_open_ends(struct guard_ends *e, struct p3_guard *g)
{
	e->signals = p3_signals_fd();
	if (e->signals < 0)
		return e->signals;
	if (pipe2(e->alive, O_CLOEXEC))
		return -errno;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return -errno;
	return input_open(&e->in, &g->stdin_fd);
}

int p3_guard_split(const struct p3_guard_duty *duty, struct p3_guard *guard_out)
{
	static struct guard_ends e;
	struct p3_guard g;
	int rc = guard_open_ends(&e, &g);
	if (rc)
		return rc;
	e.tty = tty_keep();
	pid_t yod = fork();
	if (yod < 0)
		return -errno;
	if (yod) {
		setpgid(yod, yod);
		close(e.alive[0]);
		if (g.stdin_fd != STDIN_FILENO)
			close(g.stdin_fd);
		guard_run(yod, &e, duty);
	}
	FAULT_POINT("yod.split");
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG,
		SIGCONT); /* a stopped yod would not notice the end of alive_fd */
	close(e.signals);
	close(e.alive[1]);
	input_close(&e.in);
	g.alive_fd = e.alive[0];
	*guard_out = g;
	return 0;
}
