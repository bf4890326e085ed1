/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * opt - yod's command line, and load files
 *
 *	yod [options] -sz N [--wdir DIR] [--env NAME=VALUE] program [arguments]
 *		[: -sz N [...] program [arguments]]...
 *	yod [options] -F file		a line for each program: -sz N [...] program [...]
 *
 * Options end at the first word that is no option: the program.  One table in opt.c
 * makes the parser and --help; a new option is a row there and a member here.  yod's
 * main thread calls p3_opt_parse() once; the result is struct p3_opt.
 */
#ifndef P3_LAUNCHER_OPT_H
#define P3_LAUNCHER_OPT_H

#include "launcher/yod/hosts.h"
#include "launcher/yod/place.h"
#include "launcher/yod/prog.h"
#include "launcher/yod/ranks.h"
#include "launcher/yod/valgrind.h"
#include "shm/layout.h"

#include <stdbool.h>
#include <stdint.h>

#define P3_OPT_SIZE_MAX ((int)P3_MAX_NODES)

struct p3_opt {
	uint32_t size; /* number of nodes of all programs */
	uint32_t prog_n;
	struct p3_prog *prog; /* at least one */
	bool keep_going;
	bool tag;
	bool only; /* drop the output of ranks that are not in only_ranks */
	struct p3_ranks only_ranks;
	const char *output_dir; /* NULL: nodes print to yod's output */
	int output_dir_fd;      /* set by main */
	bool shared_heap;
	bool line_buffered;
	enum p3_valgrind valgrind;
	bool plan;             /* print the plan, and start nothing */
	bool stats;            /* print statistics at the end */
	int64_t timeout_ms;    /* 0: no limit */
	int64_t kill_after_ms; /* between SIGTERM and SIGKILL */
	int64_t why_after_ms;  /* time in a barrier after which yod says why; 0: never */
	const char *trace;     /* trace file, or NULL */
	const char *mode;      /* NULL: the environment decides */
	const char *domain;    /* domain where the nodes meet others, or NULL */
	struct p3_hosts hosts; /* other hosts that run the job; none: this one does */
	const char *hosts_of;  /* the option that named them, or NULL */
	const char *rsh;       /* argument of --rsh, or NULL */
	const char *load;      /* argument of -F; NULL: no load file */
	struct p3_place_want place;
};

#define P3_OPT_RUN   (-1)
#define P3_OPT_USAGE 2

/* Parse.  Return P3_OPT_RUN, or the exit status (0 after --help) after all output. */
int p3_opt_parse(int argc, char **argv, struct p3_opt *opt_out);

#endif
