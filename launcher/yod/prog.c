/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs of a job, and the check that they can be run. */
#include "launcher/yod/prog.h"
#include "launcher/yod/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL_PATH "/bin:/usr/bin" /* the default of execvp() */

const struct p3_prog *p3_prog_of(const struct p3_prog *progs, uint32_t n, uint32_t rank)
{
	while (n > 1 && progs[n - 1].first > rank)
		n--;
	return &progs[n - 1];
}

int p3_prog_env_add(struct p3_prog *prog, const char *pair)
{
	const char **env = realloc(prog->env, (prog->env_n + 2) * sizeof *env);
	if (!env)
		return -ENOMEM;
	env[prog->env_n++] = pair;
	env[prog->env_n] = NULL;
	prog->env = env;
	return 0;
}

const char *p3_prog_getenv(const struct p3_prog *prog, const char *name)
{
	size_t len = strlen(name);
	for (uint32_t i = prog->env_n; i-- > 0;)
		if (!strncmp(prog->env[i], name, len) && prog->env[i][len] == '=')
			return prog->env[i] + len + 1;
	return getenv(name);
}

/* ---- the check ---- */

static int can_run(int dir, const char *path)
{
	struct stat st;
	if (fstatat(dir, path, &st, 0))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(dir, path, X_OK, AT_EACCESS) ? errno : 0;
}

/* Search PATH as execvp() does: a file that may not be run is remembered, and the
 * search goes on. */
static int find_in_path(int dir, const char *name, const char *path)
{
	int err = ENOENT;
	for (const char *at = path;; at++) {
		char file[PATH_MAX];
		int len = (int)strcspn(at, ":");
		int n = snprintf(
			file, sizeof file, "%.*s%s%s", len, at, len ? "/" : "", name);
		int why = n < (int)sizeof file ? can_run(dir, file) : ENAMETOOLONG;
		if (!why)
			return 0;
		if (why == EACCES)
			err = EACCES;
		at += len;
		if (!*at)
			return err;
	}
}

static int find(int dir, const struct p3_prog *prog)
{
	const char *path = p3_prog_getenv(prog, "PATH");
	if (strchr(prog->argv[0], '/'))
		return can_run(dir, prog->argv[0]);
	return find_in_path(dir, prog->argv[0], path ? path : USUAL_PATH);
}

static int say_no_dir(const struct p3_prog *prog)
{
	p3_say_at(prog->place);
	p3_say("--wdir: '%s': %s; expected a directory that may be entered", prog->dir,
		strerror(errno));
	p3_say_at(NULL);
	return P3_STATUS_NO_FILE;
}

int p3_prog_check(const struct p3_prog *prog)
{
	int dir = AT_FDCWD;
	if (prog->dir) {
		dir = open(prog->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (dir < 0 || faccessat(dir, ".", X_OK, AT_EACCESS))
			return say_no_dir(prog);
	}
	int err = find(dir, prog);
	if (dir != AT_FDCWD)
		close(dir);
	return err ? p3_prog_say_cannot(prog, err) : 0;
}

int p3_prog_say_cannot(const struct p3_prog *prog, int err)
{
	bool missing = err == ENOENT || err == ENOTDIR;
	p3_say_at(prog->place);
	if (missing)
		p3_say("%s: cannot be run: no such program (or its interpreter is "
		       "missing); expected a file, or a name found in PATH",
			prog->argv[0]);
	else
		p3_say("%s: cannot be run: %s; expected an executable file",
			prog->argv[0], strerror(err));
	p3_say_at(NULL);
	return missing ? P3_STATUS_NO_FILE : P3_STATUS_NO_EXEC;
}
