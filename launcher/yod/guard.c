/* SPDX-License-Identifier: BSD-3-Clause */
/* The outer process of yod: signals, the end of yod, the sweep of its descendants. */
#include "launcher/yod/guard.h"
#include "launcher/clock.h"
#include "launcher/yod/input.h"
#include "launcher/yod/output.h"
#include "launcher/yod/reap.h"
#include "launcher/yod/say.h"
#include "launcher/yod/signals.h"
#include "launcher/yod/tty.h"
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
#include <unistd.h>

#define SWEEP_MS      5000
#define SWEEP_TRIES   2
#define GRACE_TURN_US 5000
#define STATUS_OF(s)  (WIFEXITED(s) ? WEXITSTATUS(s) : 128 + WTERMSIG(s))

/* Reap orphans.  Return true when yod itself has ended. */
static bool yod_ended(pid_t yod, int *status_out)
{
	pid_t pid;
	while ((pid = p3_reap_any()) > 0) {
		if (pid == yod)
			return p3_reap_fate(yod, status_out);
		p3_reap_take(pid);
	}
	return false;
}

/*
 * Pass a signal on to yod.  yod stops the groups of a stopped job; this process stops
 * too, so that the shell sees the stop.  A yod that another process has stopped acts on
 * no signal before SIGCONT.  SIGCONT goes in front of a signal that ends the job, not
 * behind it: yod might be ending by then, and LeakSanitizer, which stops yod to examine
 * it, would wait for ever for a stop that SIGCONT has undone.
 */
static void hand_signal_on(pid_t yod, int sig)
{
	if (sig == SIGCHLD)
		return;
	if (p3_signals_ends(sig))
		kill(yod, SIGCONT);
	kill(yod, sig);
	if (sig == SIGTSTP)
		raise(SIGSTOP);
}

static int watch(pid_t yod, int signals, struct p3_input *in)
{
	int status;
	while (!yod_ended(yod, &status)) {
		int ms = -1, sig;
		struct pollfd p[2] = {
			{.fd = signals, .events = POLLIN}, p3_input_wants(in, &ms)};
		if (poll(p, 2, ms) < 0)
			continue;
		while ((sig = p3_signals_next(signals)))
			hand_signal_on(yod, sig);
		p3_input_step(in, p[1].revents);
	}
	return status;
}

static void sweep(void)
{
	for (int i = 0; i < SWEEP_TRIES; i++)
		if (p3_reap_sweep(SWEEP_MS))
			return;
	p3_say("some processes of the job do not end (see ps: state D?); left behind");
}

struct ends {
	int alive[2];
	int signals;
	struct p3_input in;
	struct p3_tty tty; /* as it was before the first node could change it */
};

/* Reap children that end by themselves, for ms at most. */
static void let_end(int ms)
{
	int64_t end = p3_now_ms() + ms;
	pid_t pid;
	while (ms && (pid = p3_reap_any()) >= 0 && p3_now_ms() < end)
		if (pid)
			p3_reap_take(pid);
		else
			usleep(GRACE_TURN_US);
}

static _Noreturn void guard(pid_t yod, struct ends *e, const struct p3_guard_duty *duty)
{
	static const int to[2] = {STDOUT_FILENO, STDERR_FILENO};
	p3_say_by(NULL, NULL);
	FAULT_POINT("yod.guard_began");
	int status = watch(yod, e->signals, &e->in);
	FAULT_POINT("yod.guard_unswept");
	/* A reader that does not read must not keep this process from the sweep: lines
	 * wait for p3_output_close(). */
	struct p3_output *lines = p3_output_create(0, to);
	if (WIFSIGNALED(status))
		p3_say("the launcher (pid %d) was killed by signal %d (%s); ending the "
		       "job",
			(int)yod, WTERMSIG(status), strsignal(WTERMSIG(status)));
	let_end(duty->grace_ms);
	sweep();
	if (duty->last)
		duty->last(duty->arg);
	p3_tty_restore(&e->tty);
	p3_output_close(lines, false);
	_exit(STATUS_OF(status));
}

static int open_ends(struct ends *e, struct p3_guard *g)
{
	e->signals = p3_signals_fd();
	if (e->signals < 0)
		return e->signals;
	if (pipe2(e->alive, O_CLOEXEC))
		return -errno;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return -errno;
	return p3_input_open(&e->in, &g->stdin_fd);
}

int p3_guard_split(const struct p3_guard_duty *duty, struct p3_guard *guard_out)
{
	static struct ends e;
	struct p3_guard g;
	int rc = open_ends(&e, &g);
	if (rc)
		return rc;
	e.tty = p3_tty_keep();
	pid_t yod = fork();
	if (yod < 0)
		return -errno;
	if (yod) {
		setpgid(yod, yod);
		close(e.alive[0]);
		if (g.stdin_fd != STDIN_FILENO)
			close(g.stdin_fd);
		guard(yod, &e, duty);
	}
	FAULT_POINT("yod.split");
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG,
		SIGCONT); /* a stopped yod would not notice the end of alive_fd */
	close(e.signals);
	close(e.alive[1]);
	p3_input_close(&e.in);
	g.alive_fd = e.alive[0];
	*guard_out = g;
	return 0;
}
