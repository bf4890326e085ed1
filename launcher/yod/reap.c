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

struct p3_signals {
	sigset_t mask;
	struct sigaction pipe;
	struct sigaction child;
};

static sigset_t signals_taken;

/* Block TTIN and TTOU, too: yod may then write to a terminal that stops background
 * output, and reading gives EIO instead of a stop. */
const struct p3_signals *p3_signals_take(void)
{
	static struct p3_signals was;
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
	sigprocmask(SIG_BLOCK, &blocked, &was.mask);
	sigaction(SIGPIPE, &ignore, &was.pipe);
	sigaction(SIGCHLD, &standard, &was.child);
	return &was;
}

int p3_signals_fd(void)
{
	int fd = signalfd(-1, &signals_taken, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static const int signals_ending[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP};

bool p3_signals_ends(int sig)
{
	for (size_t i = 0; i < sizeof signals_ending / sizeof signals_ending[0]; i++)
		if (signals_ending[i] == sig)
			return true;
	return false;
}

int p3_signals_end_fd(void)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof signals_ending / sizeof signals_ending[0]; i++)
		if (sigismember(&signals_taken, signals_ending[i]))
			sigaddset(&set, signals_ending[i]);
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
void p3_signals_give_back(const struct p3_signals *was)
{
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigaction(SIGPIPE, &was->pipe, NULL);
	sigaction(SIGCHLD, &was->child, NULL);
	sigaction(SIGINT, &standard, NULL);
	sigaction(SIGQUIT, &standard, NULL);
	sigprocmask(SIG_SETMASK, &was->mask, NULL);
}

/* ---- ends of children ---- */

#define SWEEP_TURN_US 2000
#define EXITING       0x4u /* a flag of the kernel, PF_EXITING */
#define KILLED        (1ul << (SIGKILL - 1))

static int reap_wait_status(const siginfo_t *info)
{
	if (info->si_code == CLD_EXITED)
		return (info->si_status & 0xff) << 8;
	return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

bool p3_reap_fate(pid_t pid, int *status_out)
{
	siginfo_t info = {.si_pid = 0};
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || !info.si_pid)
		return false;
	*status_out = reap_wait_status(&info);
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

/* Return true if a thread has ended, is ending in the kernel, or is about to, since its
 * process ends. */
static bool reap_has_ended(const struct p3_stat *s)
{
	return s->state == 'Z' || s->flags & EXITING || s->signals & KILLED;
}

bool p3_reap_is_ending(pid_t pid)
{
	char name[40];
	struct p3_stat stat;
	struct dirent *e;
	bool lives = false;
	snprintf(name, sizeof name, "/proc/%d/task", (int)pid);
	DIR *threads = opendir(name);
	if (!threads)
		return false;
	while (!lives && (e = readdir(threads)))
		lives = isdigit((unsigned char)e->d_name[0]) &&
			p3_stat_read((uint32_t)pid, (uint32_t)atoi(e->d_name), &stat) &&
			!reap_has_ended(&stat);
	closedir(threads);
	return !lives;
}

static void reap_kill_children(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	struct p3_stat stat;
	if (!proc)
		return;
	while ((e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]) &&
			p3_stat_read((uint32_t)atoi(e->d_name), 0, &stat) &&
			stat.parent == (uint32_t)getpid())
			kill((pid_t)atoi(e->d_name), SIGKILL);
	closedir(proc);
}

/* The children of a killed child become children of this process, and the next turn kills
 * them. */
bool p3_reap_sweep(int ms)
{
	int64_t end = p3_now_ms() + ms;
	for (;;) {
		pid_t pid = p3_reap_any();
		if (pid < 0)
			return true;
		if (pid) {
			p3_reap_take(pid);
			continue;
		}
		if (p3_now_ms() >= end)
			return false;
		reap_kill_children();
		usleep(SWEEP_TURN_US);
	}
}

/* ---- crashes ---- */

#define CORE_PATTERN   "/proc/sys/kernel/core_pattern"
#define CORE_USES_PID  "/proc/sys/kernel/core_uses_pid"
#define CRASH_NAME_LEN 200
#define COMM_LEN       15 /* bytes of a process's name */

/* Return true if the signal tells of an error in the program itself. */
static bool crash_is_crash(int sig)
{
	static const int crashes[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
		if (crashes[i] == sig)
			return true;
	return false;
}

/* Append the text that the kernel puts in place of %c; "*" for a time, a thread and the
 * like, so that a shell finds the file. */
static size_t crash_expand(char *at, size_t room, char c, const char *argv0, pid_t pid)
{
	const char *slash = strrchr(argv0, '/');
	int most = c == 'e' ? COMM_LEN : CRASH_NAME_LEN / 2 - 1;
	if (c == 'p')
		return (size_t)snprintf(at, room, "%d", (int)pid);
	if (c == 'e' || c == 'f')
		return (size_t)snprintf(
			at, room, "%.*s", most, slash ? slash + 1 : argv0);
	return (size_t)snprintf(at, room, c == '%' ? "%%" : "*");
}

/* Write the name of the core file that a pattern of the kernel (core(5)) gives. */
static void crash_name_core(
	const char *pattern, const char *argv0, pid_t pid, char core[CRASH_NAME_LEN])
{
	char uses[CRASH_NAME_LEN];
	size_t n = 0;
	bool has_pid = strstr(pattern, "%p");
	for (const char *at = pattern; *at && n < CRASH_NAME_LEN / 2; at++) {
		if (*at == '%' && at[1])
			n += crash_expand(
				core + n, CRASH_NAME_LEN - n, *++at, argv0, pid);
		else
			core[n++] = *at;
	}
	core[n] = '\0';
	(void)p3_line_read(uses, sizeof uses, CORE_USES_PID);
	if (!has_pid && *uses == '1')
		snprintf(core + n, CRASH_NAME_LEN - n, ".%d", (int)pid);
}

static void crash_say_no_core(uint32_t rank, bool agent, const char *pattern)
{
	struct rlimit most;
	bool allowed = !getrlimit(RLIMIT_CORE, &most) && most.rlim_cur;
	if (allowed)
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
	char pattern[CRASH_NAME_LEN];
	if (!WIFSIGNALED(status) || !crash_is_crash(WTERMSIG(status)))
		return false;
	(void)p3_line_read(pattern, sizeof pattern, CORE_PATTERN);
	if (WCOREDUMP(status))
		crash_say_core(prog, rank, pid, pattern);
	else
		crash_say_no_core(rank, agent, pattern);
	return true;
}
