/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rsh - the remote shell that starts an agent: --rsh, PTL3_RSH
 *
 *	ssh HOST "exec '/usr/bin/yod' --agent"
 *
 * The program may have arguments of its own, as in --rsh 'ssh -q'.  The command line is
 * one argument, as ssh takes it.  The program inherits yod's standard error, has a
 * process group of its own, and cannot ask at the terminal: keys or tickets must do.
 * yod's main thread calls these functions; there is no state.
 */
#ifndef P3_LAUNCHER_RSH_H
#define P3_LAUNCHER_RSH_H

#include <sys/types.h>

struct p3_rsh {
	char *text;
	char **argv; /* the program's words, then room for two more, then NULL */
	int n;       /* number of the program's words */
};

struct p3_rsh_started {
	pid_t pid;
	int to, from; /* its standard input and output */
};

/* Split the program's words.  Return 0, or -errno after a line. */
int p3_rsh_parse(const char *text, struct p3_rsh *rsh_out);

void p3_rsh_free(struct p3_rsh *rsh);

/* Return the path of this yod in malloc()ed memory, or NULL with errno. */
char *p3_rsh_own_path(void);

/* Start an agent.  Return 0 or -errno. */
int p3_rsh_start(const struct p3_rsh *rsh, const char *host, const char *yod,
	struct p3_rsh_started *started_out);

#endif
