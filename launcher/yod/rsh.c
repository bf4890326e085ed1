/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting agents by a remote shell. */
#include "launcher/yod/rsh.h"
#include "launcher/yod/agent.h"
#include "launcher/yod/say.h"
#include "launcher/yod/words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

int p3_rsh_parse(const char *text, struct p3_rsh *rsh_out)
{
	char *copy = strdup(text);
	struct p3_words words = {copy, 1};
	uint32_t line = 1;
	char **argv = NULL;
	int n = 0, rc = copy ? p3_words_next(&words, 0, &argv, &n, &line) : -ENOMEM;
	char **more = rc ? NULL : realloc(argv, ((size_t)n + 3) * sizeof *argv);
	if (more) {
		more[n] = more[n + 1] = more[n + 2] = NULL;
		*rsh_out = (struct p3_rsh){copy, more, n};
		return 0;
	}
	free(argv);
	free(copy);
	p3_say("--rsh: '%s' is no program; expected one that is called with a "
	       "host and a command line, and its arguments, as in --rsh 'ssh -q'",
		text);
	return rc ? rc : -ENOMEM;
}

void p3_rsh_free(struct p3_rsh *rsh)
{
	free(rsh->argv);
	free(rsh->text);
}

char *p3_rsh_own_path(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n < 0)
		return NULL;
	path[n] = '\0';
	return strdup(path);
}

/* Write the command line, with the path quoted for any shell: a quote becomes '\''. */
static char *command_line(const char *yod)
{
	size_t room = 4 * strlen(yod) + sizeof "exec '' " P3_AGENT_OPTION;
	char *line = malloc(room), *at = line;
	if (!line)
		return NULL;
	at = stpcpy(at, "exec '");
	for (; *yod; yod++)
		if (*yod == '\'')
			at = stpcpy(at, "'\\''");
		else
			*at++ = *yod;
	stpcpy(at, "' " P3_AGENT_OPTION);
	return line;
}

/* Reset the signals that yod blocks and ignores, but keep those blocked by which the
 * terminal would stop the program: it then fails instead. */
static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t blocked, standard;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTTIN);
	sigaddset(&blocked, SIGTTOU);
	sigemptyset(&standard);
	sigaddset(&standard, SIGPIPE);
	sigaddset(&standard, SIGCHLD);
	int rc = posix_spawnattr_setsigmask(attr, &blocked);
	rc = rc ? rc : posix_spawnattr_setsigdefault(attr, &standard);
	rc = rc ? rc : posix_spawnattr_setpgroup(attr, 0);
	return rc ? rc
		  : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK |
							   POSIX_SPAWN_SETSIGDEF |
							   POSIX_SPAWN_SETPGROUP);
}

static int spawn(char *const *argv, int in, int out, pid_t *pid_out)
{
	posix_spawnattr_t attr;
	posix_spawn_file_actions_t files;
	int rc = posix_spawnattr_init(&attr);
	if (rc)
		return -rc;
	rc = posix_spawn_file_actions_init(&files);
	if (!rc) {
		rc = set_signals(&attr);
		rc = rc ? rc : posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
		rc = rc ? rc
			: posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
		rc = rc ? rc
			: posix_spawnp(pid_out, argv[0], &files, &attr, argv, environ);
		posix_spawn_file_actions_destroy(&files);
	}
	posix_spawnattr_destroy(&attr);
	return -rc;
}

/* Start the program of argv with pipes.  Return 0 or -errno. */
static int start(char *const *argv, struct p3_rsh_started *s)
{
	int to[2], from[2];
	if (pipe2(to, O_CLOEXEC))
		return -errno;
	int rc = pipe2(from, O_CLOEXEC) ? -errno : 0;
	if (!rc) {
		rc = spawn(argv, to[0], from[1], &s->pid);
		close(from[1]);
	}
	close(to[0]);
	s->to = to[1];
	s->from = rc ? -1 : from[0];
	return rc;
}

int p3_rsh_start(const struct p3_rsh *rsh, const char *host, const char *yod,
	struct p3_rsh_started *started_out)
{
	char *line = command_line(yod);
	int rc = line ? 0 : -ENOMEM;
	rsh->argv[rsh->n] = (char *)(uintptr_t)host;
	rsh->argv[rsh->n + 1] = line;
	rc = rc ? rc : start(rsh->argv, started_out);
	free(line);
	return rc;
}
