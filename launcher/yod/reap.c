/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals, the ends of child processes, and the line about a crash. */
#include "launcher/yod/yod.h"
#include "launcher/loop.h"
#include "shm/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static sigset_t signals_taken;

/* The state in which yod was started. */
static struct {
	sigset_t mask;
	struct sigaction pipe, size, child;
} signals_were;

/* Block TTIN and TTOU, too: yod may then write to a terminal that stops background
 * output, and reading gives EIO instead of a stop.  A file that is too long (ulimit -f)
 * gives EFBIG, as a full disk gives ENOSPC. */
void p3_signals_take(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction standard = {.sa_handler = SIG_DFL}, hup;
	static const int always[] = {SIGCHLD, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2,
		SIGTSTP, SIGCONT, SIGWINCH};
	sigemptyset(&signals_taken);
	for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
		sigaddset(&signals_taken, always[i]);
	if (sigaction(SIGHUP, NULL, &hup) || hup.sa_handler != SIG_IGN)
		sigaddset(&signals_taken, SIGHUP);
	sigset_t blocked = signals_taken;
	sigaddset(&blocked, SIGTTIN);
	sigaddset(&blocked, SIGTTOU);
	sigprocmask(SIG_BLOCK, &blocked, &signals_were.mask);
	sigaction(SIGPIPE, &ignore, &signals_were.pipe);
	sigaction(SIGXFSZ, &ignore, &signals_were.size);
	sigaction(SIGCHLD, &standard, &signals_were.child);
}

bool p3_signals_ends(int sig)
{
	return sig == SIGINT || sig == SIGTERM || sig == SIGQUIT || sig == SIGHUP;
}

int p3_signals_fd(bool ends)
{
	sigset_t set = signals_taken;
	for (int sig = 1; sig < NSIG && ends; sig++)
		if (!p3_signals_ends(sig))
			sigdelset(&set, sig);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int p3_signals_next(int fd)
{
	struct signalfd_siginfo info;
	return read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : 0;
}

/* Restore signals in a node.  A shell without job control starts background commands
 * with INT and QUIT ignored; yod takes these signals nevertheless, and nodes must be
 * able to get them. */
void p3_signals_give_back(void)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigaction(SIGPIPE, &signals_were.pipe, NULL);
	sigaction(SIGXFSZ, &signals_were.size, NULL);
	sigaction(SIGCHLD, &signals_were.child, NULL);
	sigaction(SIGINT, &standard, NULL);
	sigaction(SIGQUIT, &standard, NULL);
	sigprocmask(SIG_SETMASK, &signals_were.mask, NULL);
}

/* ---- ends of children ---- */

#define SWEEP_MS      5000
#define SWEEP_TURN_US 2000
#define EXITING       0x4u /* a flag of the kernel, PF_EXITING */
#define KILLED        (1ul << (SIGKILL - 1))

bool p3_reap_fate(pid_t pid, int *status_out)
{
	siginfo_t info = {.si_pid = 0};
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return false;
	*status_out = info.si_code == CLD_EXITED
			      ? (info.si_status & 0xff) << 8
			      : info.si_status | (info.si_code == CLD_DUMPED ? 0x80 : 0);
	return true;
}

void p3_reap_describe(char *text, size_t len, int status)
{
	if (WIFSIGNALED(status))
		snprintf(text, len, "killed by signal %d (%s)%s", WTERMSIG(status),
			strsignal(WTERMSIG(status)),
			WCOREDUMP(status) ? ", core dumped" : "");
	else
		snprintf(text, len, "exited with status %d", WEXITSTATUS(status));
}

int p3_reap_stopped(pid_t pid)
{
	siginfo_t info = {.si_pid = 0};
	if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) || !info.si_pid)
		return 0;
	return info.si_status;
}

void p3_reap_take(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

pid_t p3_reap_any(void)
{
	siginfo_t info = {.si_pid = 0};
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT))
		return -1;
	return info.si_pid;
}

/* The threads of a process. */
struct reap_threads {
	bool live; /* one of them has neither ended nor been killed */
	bool wait; /* a killed one has only to get a CPU, and then ends */
};

static struct reap_threads reap_look_at(pid_t pid)
{
	char name[40];
	struct p3_stat s;
	struct dirent *e;
	struct reap_threads of = {.live = false};
	snprintf(name, sizeof name, "/proc/%d/task", (int)pid);
	DIR *threads = opendir(name);
	if (!threads)
		return (struct reap_threads){.live = true};
	/* A thread may have ended, be ending in the kernel, or be about to, since its
	 * process ends. */
	while ((e = readdir(threads)))
		if (isdigit((unsigned char)e->d_name[0]) &&
			p3_stat_read((uint32_t)pid, (uint32_t)atoi(e->d_name), &s)) {
			bool ends =
				s.state == 'Z' || s.flags & EXITING || s.signals & KILLED;
			of.live |= !ends;
			of.wait |= ends && s.state == 'R';
		}
	closedir(threads);
	return of;
}

bool p3_reap_is_ending(pid_t pid)
{
	return !reap_look_at(pid).live;
}

bool p3_reap_waits_for_cpu(pid_t pid)
{
	return reap_look_at(pid).wait;
}

/* Return true if a killed child waits for a CPU. */
static bool reap_kill_children(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	struct p3_stat stat;
	bool wait = false;
	while (proc && (e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]) &&
			p3_stat_read((uint32_t)atoi(e->d_name), 0, &stat) &&
			stat.parent == (uint32_t)getpid()) {
			kill((pid_t)atoi(e->d_name), SIGKILL);
			wait |= p3_reap_waits_for_cpu((pid_t)atoi(e->d_name));
		}
	if (proc)
		closedir(proc);
	return wait;
}

/* The children of a killed child become children of this process, and the next turn kills
 * them. */
bool p3_reap_sweep(void)
{
	int64_t end = p3_now_ms() + SWEEP_MS;
	for (;;) {
		pid_t pid = p3_reap_any();
		if (pid < 0)
			return true;
		if (pid) {
			p3_reap_take(pid);
			continue;
		}
		if (reap_kill_children())
			end = p3_now_ms() + SWEEP_MS;
		if (p3_now_ms() >= end)
			return false;
		usleep(SWEEP_TURN_US);
	}
}

/* ---- crashes ---- */

#define CORE_PATTERN   "/proc/sys/kernel/core_pattern"
#define CORE_USES_PID  "/proc/sys/kernel/core_uses_pid"
#define CRASH_NAME_LEN 200
#define COMM_LEN       15 /* bytes of a process's name */

/* Write the name of the core file that a pattern of the kernel (core(5)) gives; with "*"
 * for a time, a thread and the like, so that a shell finds the file. */
static void crash_name_core(
	const char *pattern, const char *argv0, pid_t pid, char core[CRASH_NAME_LEN])
{
	char uses[CRASH_NAME_LEN];
	const char *slash = strrchr(argv0, '/'), *name = slash ? slash + 1 : argv0;
	size_t n = 0;
	bool has_pid = strstr(pattern, "%p");
	for (const char *at = pattern; *at && n < CRASH_NAME_LEN / 2; at++) {
		const size_t room = CRASH_NAME_LEN - n;
		if (*at != '%' || !at[1])
			core[n++] = *at;
		else if (*++at == 'p')
			n += (size_t)snprintf(core + n, room, "%d", (int)pid);
		else if (*at == 'e' || *at == 'f')
			n += (size_t)snprintf(core + n, room, "%.*s",
				*at == 'e' ? COMM_LEN : CRASH_NAME_LEN / 2 - 1, name);
		else
			core[n++] = *at == '%' ? '%' : '*';
	}
	core[n] = '\0';
	(void)p3_line_read(uses, sizeof uses, CORE_USES_PID);
	if (!has_pid && *uses == '1')
		snprintf(core + n, CRASH_NAME_LEN - n, ".%d", (int)pid);
}

/* Print the line for a rank that has left a core. */
static void crash_say_core(
	const struct p3_prog *prog, uint32_t rank, pid_t pid, const char *pattern)
{
	char core[CRASH_NAME_LEN];
	if (strstr(pattern, "systemd-coredump")) {
		p3_say("rank %u: coredumpctl info %d shows where it crashed", rank,
			(int)pid);
		return;
	}
	if (*pattern == '|') {
		p3_say("rank %u: the program of kernel.core_pattern has its core: %s",
			rank, pattern + 1);
		return;
	}
	crash_name_core(pattern, prog->argv[0], pid, core);
	p3_say("rank %u: gdb -batch -ex bt '%s' %s%s%s shows where it crashed", rank,
		prog->argv[0], prog->dir && *core != '/' ? prog->dir : "",
		prog->dir && *core != '/' ? "/" : "", core);
}

bool p3_crash_say(
	const struct p3_prog *prog, uint32_t rank, pid_t pid, int status, bool agent)
{
	/* the signals that tell of an error in the program itself */
	static const uint64_t crashes =
		1ull << SIGSEGV | 1ull << SIGBUS | 1ull << SIGFPE | 1ull << SIGILL |
		1ull << SIGABRT | 1ull << SIGTRAP | 1ull << SIGSYS;
	char pattern[CRASH_NAME_LEN];
	struct rlimit most;
	if (!WIFSIGNALED(status) || !(crashes >> WTERMSIG(status) & 1))
		return false;
	(void)p3_line_read(pattern, sizeof pattern, CORE_PATTERN);
	if (WCOREDUMP(status))
		crash_say_core(prog, rank, pid, pattern);
	else if (!getrlimit(RLIMIT_CORE, &most) && most.rlim_cur)
		p3_say("rank %u: no core file, although ulimit -c allows one here; see "
		       "that the kernel can write it to its place, which is '%s' "
		       "(kernel.core_pattern)",
			rank, pattern);
	else
		p3_say("rank %u: no core file: %s, and gdb then shows where it crashed",
			rank,
			agent ? "raise the limit of core files on this host "
				"(limits.conf(5))"
			      : "give `ulimit -c unlimited` in the shell before yod");
	return true;
}
