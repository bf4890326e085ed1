/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for child processes and killing them. */
#include "launcher/yod/reap.h"
#include "launcher/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SWEEP_TURN_US 2000
#define EXITING       0x4u /* a flag of the kernel, PF_EXITING */
#define KILLED        (1ul << (SIGKILL - 1))

static int wait_status(const siginfo_t *info)
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
	*status_out = wait_status(&info);
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

struct stat_of {
	char state;
	int parent;
	unsigned flags;
	unsigned long signals; /* pending for this thread */
};

/* Parse "pid (name) state ppid ..."; a name may contain any character. */
static bool read_stat_at(int dir, const char *pid, struct stat_of *out)
{
	char name[32], line[1024];
	snprintf(name, sizeof name, "%.20s/stat", pid);
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, line, sizeof line - 1);
	close(fd);
	line[n > 0 ? n : 0] = 0;
	const char *at = strrchr(line, ')');
	return at && sscanf(at,
			     ") %c %d %*d %*d %*d %*d %u %*s %*s %*s %*s %*s %*s %*s %*s "
			     "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu",
			     &out->state, &out->parent, &out->flags, &out->signals) == 4;
}

/* Return true if a thread has ended, is ending in the kernel, or is about to, since its
 * process ends. */
static bool has_ended(const struct stat_of *s)
{
	return s->state == 'Z' || s->flags & EXITING || s->signals & KILLED;
}

bool p3_reap_is_ending(pid_t pid)
{
	char name[40];
	struct stat_of stat;
	struct dirent *e;
	bool lives = false;
	snprintf(name, sizeof name, "/proc/%d/task", (int)pid);
	DIR *threads = opendir(name);
	if (!threads)
		return false;
	while (!lives && (e = readdir(threads)))
		lives = isdigit((unsigned char)e->d_name[0]) &&
			read_stat_at(dirfd(threads), e->d_name, &stat) &&
			!has_ended(&stat);
	closedir(threads);
	return !lives;
}

static pid_t parent_of(DIR *proc, const char *pid)
{
	struct stat_of stat;
	return read_stat_at(dirfd(proc), pid, &stat) ? stat.parent : 0;
}

static void kill_children(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	if (!proc)
		return;
	while ((e = readdir(proc)))
		if (isdigit((unsigned char)e->d_name[0]) &&
			parent_of(proc, e->d_name) == getpid())
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
		kill_children();
		usleep(SWEEP_TURN_US);
	}
}
