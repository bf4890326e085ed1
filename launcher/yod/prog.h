/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prog - the programs of a job, and the ranks that run them
 *
 *	yod -sz 2 a x : -sz 3 b		ranks 0 and 1 run "a x", 2 to 4 run "b"
 *
 * Each program may have a working directory and an environment of its own.  yod's main
 * thread calls these functions; a struct p3_prog has all state.
 */
#ifndef P3_LAUNCHER_PROG_H
#define P3_LAUNCHER_PROG_H

#include <stdbool.h>
#include <stdint.h>

#define P3_STATUS_NO_EXEC 126
#define P3_STATUS_NO_FILE 127

struct p3_prog {
	uint32_t first;      /* its first rank */
	uint32_t size;       /* number of nodes; 0: not given yet */
	char **argv;         /* ends with NULL */
	const char *dir;     /* working directory; NULL: yod's */
	const char *lib_dir; /* folder put in front of its LD_LIBRARY_PATH, or NULL */
	const char **env;    /* NAME=VALUE, env_n of them, then NULL */
	uint32_t env_n;
	const char *place; /* origin for messages, such as "jobs:3"; NULL: command line */
};

/* Return the program of a rank. */
const struct p3_prog *p3_prog_of(const struct p3_prog *progs, uint32_t n, uint32_t rank);

/* Add NAME=VALUE, which is not copied.  Return 0 or -ENOMEM. */
int p3_prog_env_add(struct p3_prog *prog, const char *pair);

/* Return the value of a variable in its nodes' environment, or NULL. */
const char *p3_prog_getenv(const struct p3_prog *prog, const char *name);

/*
 * Check before the start that the directory exists and the file may be run.  Return 0,
 * or the exit status after an error line.  p3_prog_say_cannot() reports errors that
 * only running shows (a missing interpreter).
 */
int p3_prog_check(const struct p3_prog *prog);
int p3_prog_say_cannot(const struct p3_prog *prog, int err);

#endif
