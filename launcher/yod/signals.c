/* SPDX-License-Identifier: BSD-3-Clause */
/* yod's signals and the nodes' signal state. */
#include "launcher/yod/signals.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct p3_signals {
	sigset_t mask;
	struct sigaction pipe;
	struct sigaction child;
};

static sigset_t taken;

static bool is_ignored(int sig)
{
	struct sigaction act;
	return !sigaction(sig, NULL, &act) && act.sa_handler == SIG_IGN;
}

static void choose(void)
{
	static const int always[] = {SIGCHLD, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2,
		SIGTSTP, SIGCONT, SIGWINCH};
	sigemptyset(&taken);
	for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
		sigaddset(&taken, always[i]);
	if (!is_ignored(SIGHUP))
		sigaddset(&taken, SIGHUP);
}

/*
 * Block TTIN and TTOU, too: yod may then write to a terminal that stops background
 * output, and reading gives EIO instead of a stop.
 */
const struct p3_signals *p3_signals_take(void)
{
	static struct p3_signals was;
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction standard = {.sa_handler = SIG_DFL};
	choose();
	sigset_t blocked = taken;
	sigaddset(&blocked, SIGTTIN);
	sigaddset(&blocked, SIGTTOU);
	sigprocmask(SIG_BLOCK, &blocked, &was.mask);
	sigaction(SIGPIPE, &ignore, &was.pipe);
	sigaction(SIGCHLD, &standard, &was.child);
	return &was;
}

int p3_signals_fd(void)
{
	int fd = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static const int ends[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};

bool p3_signals_ends(int sig)
{
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (ends[i] == sig)
			return true;
	return false;
}

int p3_signals_end_fd(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (sigismember(&taken, ends[i]))
			sigaddset(&set, ends[i]);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int p3_signals_next(int fd)
{
	struct signalfd_siginfo info;
	return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

/*
 * Restore signals in a node.  A shell without job control starts background commands
 * with INT and QUIT ignored; yod takes these signals nevertheless, and nodes must be
 * able to get them.
 */
void p3_signals_give_back(const struct p3_signals *was)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigaction(SIGPIPE, &was->pipe, NULL);
	sigaction(SIGCHLD, &was->child, NULL);
	sigaction(SIGINT, &standard, NULL);
	sigaction(SIGQUIT, &standard, NULL);
	sigprocmask(SIG_SETMASK, &was->mask, NULL);
}
