/* SPDX-License-Identifier: BSD-3-Clause */
/* Running ptlstat as a child of yod. */
#include "launcher/yod/report.h"
#include "launcher/yod/say.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define P3_REPORT_WORDS 16

extern char **environ;

/* Find the program of this name in yod's own directory. */
static int find_beside(const char *name, char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	path[n] = '\0';
	char *at = strrchr(path, '/') + 1;
	size_t room = size - (size_t)(at - path);
	return (size_t)snprintf(at, room, "%s", name) < room ? 0 : -ENAMETOOLONG;
}

/* Reset the child's signals, since yod blocks some and ignores others. */
static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t none, standard;
	sigemptyset(&none);
	sigfillset(&standard);
	int rc = posix_spawnattr_setsigmask(attr, &none);
	rc = rc ? rc : posix_spawnattr_setsigdefault(attr, &standard);
	return rc ? rc
		  : posix_spawnattr_setflags(
			    attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* Give the child its descriptors: an output for both streams, and a socket to look
 * through, or -1. */
static int set_files(posix_spawn_file_actions_t *files, int out, int look)
{
	int rc = posix_spawn_file_actions_addopen(
		files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(files, out, STDOUT_FILENO);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(files, out, STDERR_FILENO);
	if (look >= 0)
		rc = rc ? rc
			: posix_spawn_file_actions_adddup2(files, look, P3_REPORT_FD);
	return rc;
}

static int run(const char *path, char *const *argv, int out, int look, pid_t *pid_out)
{
	posix_spawnattr_t attr;
	posix_spawn_file_actions_t files;
	int rc = posix_spawnattr_init(&attr);
	if (rc)
		return -rc;
	rc = posix_spawn_file_actions_init(&files);
	if (!rc) {
		rc = set_signals(&attr);
		rc = rc ? rc : set_files(&files, out, look);
		rc = rc ? rc : posix_spawn(pid_out, path, &files, &attr, argv, environ);
		posix_spawn_file_actions_destroy(&files);
	}
	posix_spawnattr_destroy(&attr);
	return -rc;
}

static int say_cannot(const char *path, int rc)
{
	p3_say("'%s' cannot say what the job waits for: %s; expected ptlstat in "
	       "yod's directory",
		path, strerror(-rc));
	return rc;
}

int p3_report_start(uint32_t jid, uint32_t nodes, int out, pid_t *pid_out)
{
	char path[4096] = "ptlstat", job[12];
	char brief[] = "--brief", why[] = "why", *argv[] = {path, why, job, NULL, NULL};
	snprintf(job, sizeof job, "%u", jid);
	if (nodes > P3_REPORT_NODES)
		argv[3] = brief;
	int rc = find_beside("ptlstat", path, sizeof path);
	rc = rc ? rc : run(path, argv, out, -1, pid_out);
	return rc ? say_cannot(path, rc) : 0;
}

/* The words of ptlstat that a question means. */
static void words_of(const struct p3_frame *ask, char seconds[20], char **argv)
{
	static char why[] = "why", conf[] = "conf", json[] = "--json",
		    brief[] = "--brief", interval[] = "-i", count[] = "-c", one[] = "1",
		    at[] = "--look-at", fd[] = "3";
	_Static_assert(P3_REPORT_FD == 3, "the same number");
	int n = 1, bits = ask->value;
	snprintf(seconds, 20, "%.3f", (ask->node ? ask->node : 1000) / 1e3);
	argv[n++] = at, argv[n++] = fd;
	argv[n++] = count, argv[n++] = one;
	argv[n++] = interval, argv[n++] = seconds;
	if (bits & P3_ASK_JSON)
		argv[n++] = json;
	if (bits & P3_ASK_BRIEF)
		argv[n++] = brief;
	if (bits & (P3_ASK_WHY | P3_ASK_CONF))
		argv[n++] = bits & P3_ASK_WHY ? why : conf;
	argv[n] = NULL;
}

int p3_report_answer(const struct p3_frame *ask, int out, int look)
{
	char path[4096] = "ptlstat", seconds[20], *argv[P3_REPORT_WORDS] = {path};
	pid_t pid; /* the main loop reaps all children */
	words_of(ask, seconds, argv);
	int rc = find_beside("ptlstat", path, sizeof path);
	rc = rc ? rc : run(path, argv, out, look, &pid);
	return rc ? say_cannot(path, rc) : 0;
}
