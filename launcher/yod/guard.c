/* SPDX-License-Identifier: BSD-3-Clause */
/* The outer process of yod: the terminal, signals, the end of yod, the last sweep. */
#include "launcher/yod/remote.h"
#include "shm/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define BACKGROUND_MS 300
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
	int fd; /* the first of 0 to 2 that is a terminal, or -1 */
	struct termios was;
};

/* Restore the settings if this process is in the foreground and they differ.  SIGTTOU
 * must be blocked or ignored. */
static void tty_restore(const struct tty *tty)
{
	struct termios now;
	const struct termios *was = &tty->was;
	if (tty->fd < 0 || tcgetpgrp(tty->fd) != getpgrp() || tcgetattr(tty->fd, &now))
		return;
	if (now.c_iflag != was->c_iflag || now.c_oflag != was->c_oflag ||
		now.c_cflag != was->c_cflag || now.c_lflag != was->c_lflag ||
		memcmp(now.c_cc, was->c_cc, sizeof now.c_cc) != 0)
		(void)tcsetattr(tty->fd, TCSADRAIN, was);
}

/*
 * input - the path from a terminal to the standard input of rank 0
 *
 * A node is in a process group of its own; one that read the terminal itself would be
 * stopped by the kernel.  So yod's outer process, which is in the foreground, reads the
 * terminal and writes a pipe.  Rank 0 inherits any other standard input as it is.
 */
struct input {
	struct p3_loop *loop;
	struct p3_loop_fd from;     /* the terminal; fd -1: there is none */
	struct p3_loop_timer again; /* yod is in the background: try to read again then */
	struct p3_drain to;         /* the pipe to rank 0 */
};

/* Read the terminal when the pipe has taken what was read before. */
static void input_watch(void *arg)
{
	struct input *in = arg;
	bool wanted = in->to.to.fd >= 0 && !p3_backlog_len(&in->to.bytes);
	if (in->from.fd >= 0 && !in->again.linked)
		(void)p3_loop_watch(in->loop, &in->from, wanted ? EPOLLIN : 0);
}

static void input_on_moved(struct p3_drain *to, size_t n, int err)
{
	(void)n;
	if (err)
		p3_drain_close(to);
	input_watch(to->arg);
}

static void input_on_ready(void *arg)
{
	struct input *in = arg;
	char bytes[4096];
	ssize_t n = -1;
	errno = EAGAIN;
	if (tcgetpgrp(in->from.fd) == getpgrp())
		n = read(in->from.fd, bytes, sizeof bytes);
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == EIO)) {
		(void)p3_loop_watch(in->loop, &in->from, 0);
		p3_loop_at(in->loop, &in->again, p3_now_ms() + BACKGROUND_MS);
		return;
	}
	(void)p3_drain_take(&in->to, bytes, n > 0 ? (size_t)n : 0);
	input_watch(in);
}

/* Set *stdin_out to rank 0's descriptor 0: STDIN_FILENO, or a pipe. */
static int input_open(struct input *in, struct p3_loop *loop, int *stdin_out)
{
	int ends[2];
	*in = (struct input){.loop = loop,
		.from = {.fd = -1, .on = input_on_ready, .arg = in},
		.again = {.on = input_watch, .arg = in},
		.to = {.to.fd = -1, .moved = input_on_moved, .arg = in}};
	*stdin_out = STDIN_FILENO;
	if (!isatty(STDIN_FILENO))
		return 0;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	in->from.fd = p3_taps_open(STDIN_FILENO);
	*stdin_out = ends[0];
	return p3_drain_open(&in->to, loop, ends[1]);
}

/* ---- the guard ---- */

struct guard_ends {
	pid_t yod;
	int alive[2];
	struct p3_loop loop;
	struct p3_loop_fd signals;
	struct input in;
	struct tty tty; /* as it was before the first node could change it */
};

/* Pass signals on to yod.  yod stops the groups of a stopped job; this process stops
 * too, so that the shell sees the stop.  A yod that another process has stopped acts on
 * no signal before SIGCONT.  SIGCONT goes in front of a signal that ends the job, not
 * behind it: yod might be ending by then, and LeakSanitizer, which stops yod to examine
 * it, would wait for ever for a stop that SIGCONT has undone. */
static void guard_on_signals(void *arg)
{
	struct guard_ends *e = arg;
	int sig;
	while ((sig = p3_signals_next(e->signals.fd))) {
		if (sig == SIGCHLD)
			continue;
		if (p3_signals_ends(sig))
			kill(e->yod, SIGCONT);
		kill(e->yod, sig);
		if (sig == SIGTSTP)
			raise(SIGSTOP);
	}
}

static _Noreturn void guard_run(
	struct guard_ends *e, int grace_ms, struct p3_agent *agent)
{
	static const int to[2] = {STDOUT_FILENO, STDERR_FILENO};
	bool ended = false;
	int status = 0, tries = 0;
	pid_t pid;
	p3_say_by(NULL, NULL);
	FAULT_POINT("yod.guard_began");
	(void)p3_loop_watch(&e->loop, &e->signals, EPOLLIN);
	input_watch(&e->in);
	for (;;) { /* reap orphans, until yod itself has ended */
		while (!ended && (pid = p3_reap_any()) > 0)
			if (!(ended = pid == e->yod))
				p3_reap_take(pid);
		if (ended)
			break;
		p3_loop_run(&e->loop, P3_NEVER);
	}
	(void)p3_reap_fate(e->yod, &status);
	FAULT_POINT("yod.guard_unswept");
	/* A reader that does not read must not keep this process from the sweep: lines
	 * wait for p3_output_close(). */
	struct p3_output *lines =
		p3_output_create(&(struct p3_output_conf){.ranks = 0}, to);
	if (WIFSIGNALED(status))
		p3_say("the launcher (pid %d) was killed by signal %d (%s); ending the "
		       "job",
			(int)e->yod, WTERMSIG(status), strsignal(WTERMSIG(status)));
	/* Reap children that end by themselves. */
	int64_t end = p3_now_ms() + grace_ms;
	while (grace_ms && (pid = p3_reap_any()) >= 0 && p3_now_ms() < end)
		if (pid)
			p3_reap_take(pid);
		else
			usleep(GRACE_TURN_US);
	while (tries < SWEEP_TRIES && !p3_reap_sweep())
		tries++;
	if (tries == SWEEP_TRIES)
		p3_say("some processes of the job do not end (see ps: state D?); left "
		       "behind");
	if (agent)
		p3_agent_clean(agent);
	tty_restore(&e->tty);
	p3_output_close(lines, false);
	_exit(STATUS_OF(status));
}

int p3_guard_split(int grace_ms, struct p3_agent *agent, struct p3_guard *guard_out)
{
	static struct guard_ends e;
	struct p3_guard g;
	int rc = p3_loop_open(&e.loop);
	e.signals = (struct p3_loop_fd){
		.fd = p3_signals_fd(false), .on = guard_on_signals, .arg = &e};
	if (rc || e.signals.fd < 0)
		return rc ? rc : e.signals.fd;
	if (pipe2(e.alive, O_CLOEXEC) || prctl(PR_SET_CHILD_SUBREAPER, 1))
		return -errno;
	rc = input_open(&e.in, &e.loop, &g.stdin_fd);
	if (rc)
		return rc;
	e.tty.fd = -1;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && e.tty.fd < 0; fd++)
		if (!tcgetattr(fd, &e.tty.was))
			e.tty.fd = fd;
	pid_t yod = fork();
	if (yod < 0)
		return -errno;
	if (yod) {
		setpgid(yod, yod);
		close(e.alive[0]);
		if (g.stdin_fd != STDIN_FILENO)
			close(g.stdin_fd);
		e.yod = yod;
		guard_run(&e, grace_ms, agent);
	}
	FAULT_POINT("yod.split");
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG,
		SIGCONT); /* a stopped yod would not notice the end of alive_fd */
	close(e.signals.fd);
	close(e.alive[1]);
	p3_drain_close(&e.in.to);
	p3_close(e.in.from.fd);
	p3_loop_close(&e.loop);
	g.alive_fd = e.alive[0];
	*guard_out = g;
	return 0;
}
