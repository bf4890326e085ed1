/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prog - the programs of a job, and which ranks run which
 *
 *	yod -sz 2 a x : -sz 3 b		ranks 0 and 1 run "a x", 2 to 4 run "b"
 *
 * Each has working directory and environment of its own, if it is told so.
 */
#ifndef P3_LAUNCHER_PROG_H
#define P3_LAUNCHER_PROG_H

#include <stdbool.h>
#include <stdint.h>

#define P3_STATUS_NO_EXEC 126
#define P3_STATUS_NO_FILE 127

struct p3_prog {
	uint32_t first;      /* its first rank */
	uint32_t size;       /* nodes; 0: not said yet */
	char **argv;         /* ends with NULL */
	const char *dir;     /* NULL: yod's */
	const char *lib_dir; /* in front of its LD_LIBRARY_PATH; NULL: nothing */
	const char **env;    /* NAME=VALUE, env_n of them, then NULL */
	uint32_t env_n;
	const char *place; /* where it was read, as in "jobs:3"; NULL: command line */
};

/* The program of a rank. */
const struct p3_prog *p3_prog_of(const struct p3_prog *progs, uint32_t n, uint32_t rank);

/* NAME=VALUE; the string stays where it is.  0 or -ENOMEM. */
int p3_prog_env_add(struct p3_prog *prog, const char *pair);

/* The value that its nodes have; NULL: none. */
const char *p3_prog_getenv(const struct p3_prog *prog, const char *name);

/*
 * Before anything starts: is its directory there, and a file that may be run?  0, or
 * the status to exit with; it has been said.  What only running shows (an interpreter
 * that is missing) p3_prog_say_cannot() says then.
 */
int p3_prog_check(const struct p3_prog *prog);
int p3_prog_say_cannot(const struct p3_prog *prog, int err);

#endif
