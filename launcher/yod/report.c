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

static int run(const char *path, char *const *argv, pid_t *pid_out)
{
	posix_spawnattr_t attr;
	posix_spawn_file_actions_t files;
	int rc = posix_spawnattr_init(&attr);
	if (rc)
		return -rc;
	rc = posix_spawn_file_actions_init(&files);
	if (!rc) {
		rc = set_signals(&attr);
		rc = rc ? rc
			: posix_spawn_file_actions_addopen(
				  &files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
		rc = rc ? rc
			: posix_spawn_file_actions_adddup2(
				  &files, STDERR_FILENO, STDOUT_FILENO);
		rc = rc ? rc : posix_spawn(pid_out, path, &files, &attr, argv, environ);
		posix_spawn_file_actions_destroy(&files);
	}
	posix_spawnattr_destroy(&attr);
	return -rc;
}

int p3_report_start(uint32_t jid, uint32_t nodes, pid_t *pid_out)
{
	char path[4096] = "ptlstat", job[12];
	char brief[] = "--brief", why[] = "why", *argv[] = {path, why, job, NULL, NULL};
	snprintf(job, sizeof job, "%u", jid);
	if (nodes > P3_REPORT_NODES)
		argv[3] = brief;
	int rc = find_beside("ptlstat", path, sizeof path);
	rc = rc ? rc : run(path, argv, pid_out);
	if (rc)
		p3_record_set(
			"'%s' cannot say what the job waits for: %s; expected ptlstat in "
			"yod's directory",
			path, strerror(-rc));
	return rc;
}
