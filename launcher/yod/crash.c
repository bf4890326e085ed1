/* SPDX-License-Identifier: BSD-3-Clause */
/* The line that tells how to find where a rank has crashed. */
#include "launcher/yod/crash.h"
#include "launcher/yod/say.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATTERN  "/proc/sys/kernel/core_pattern"
#define USES_PID "/proc/sys/kernel/core_uses_pid"
#define NAME_LEN 200
#define COMM_LEN 15 /* bytes of a process's name */

/* Return true if the signal tells of an error in the program itself. */
static bool is_crash(int sig)
{
	static const int crashes[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
		if (crashes[i] == sig)
			return true;
	return false;
}

static void read_line(const char *path, char line[NAME_LEN])
{
	FILE *f = fopen(path, "re");
	if (!f || !fgets(line, NAME_LEN, f))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (f)
		fclose(f);
}

/* Append the text that the kernel puts in place of %c; "*" for a time, a thread and the
 * like, so that a shell finds the file. */
static size_t expand(char *at, size_t room, char c, const char *argv0, pid_t pid)
{
	const char *slash = strrchr(argv0, '/');
	int most = c == 'e' ? COMM_LEN : NAME_LEN / 2 - 1;
	if (c == 'p')
		return (size_t)snprintf(at, room, "%d", (int)pid);
	if (c == 'e' || c == 'f')
		return (size_t)snprintf(
			at, room, "%.*s", most, slash ? slash + 1 : argv0);
	return (size_t)snprintf(at, room, c == '%' ? "%%" : "*");
}

/* Write the name of the core file that a pattern of the kernel (core(5)) gives. */
static void name_core(
	const char *pattern, const char *argv0, pid_t pid, char core[NAME_LEN])
{
	char uses[NAME_LEN];
	size_t n = 0;
	bool has_pid = strstr(pattern, "%p");
	for (const char *at = pattern; *at && n < NAME_LEN / 2; at++) {
		if (*at == '%' && at[1])
			n += expand(core + n, NAME_LEN - n, *++at, argv0, pid);
		else
			core[n++] = *at;
	}
	core[n] = '\0';
	read_line(USES_PID, uses);
	if (!has_pid && *uses == '1')
		snprintf(core + n, NAME_LEN - n, ".%d", (int)pid);
}

static void say_no_core(uint32_t rank, bool agent, const char *pattern)
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
static void say_core(
	const struct p3_prog *prog, uint32_t rank, pid_t pid, const char *pattern)
{
	char core[NAME_LEN];
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
	name_core(pattern, prog->argv[0], pid, core);
	p3_say("rank %u: gdb -batch -ex bt '%s' %s%s%s shows where it crashed", rank,
		prog->argv[0], prog->dir && *core != '/' ? prog->dir : "",
		prog->dir && *core != '/' ? "/" : "", core);
}

bool p3_crash_say(
	const struct p3_prog *prog, uint32_t rank, pid_t pid, int status, bool agent)
{
	char pattern[NAME_LEN];
	if (!WIFSIGNALED(status) || !is_crash(WTERMSIG(status)))
		return false;
	read_line(PATTERN, pattern);
	if (WCOREDUMP(status))
		say_core(prog, rank, pid, pattern);
	else
		say_no_core(rank, agent, pattern);
	return true;
}
