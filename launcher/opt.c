/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/opt.h"
#include "launcher/say.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef P3_VERSION
#define P3_VERSION "unversioned"
#endif

#define TIMEOUT_MAX_S 1e9
#define ROW_BASE      256 /* getopt's value of the first row; above any character */

struct row {
	const char *name;
	const char *arg; /* NULL: takes none */
	const char *help;
	int (*set)(struct p3_opt *opt, const char *name, const char *value);
};

static int set_size(struct p3_opt *opt, const char *name, const char *value)
{
	char *end;
	errno = 0;
	long n = strtol(value, &end, 10);
	if (end == value || *end || errno || n < 1 || n > P3_OPT_SIZE_MAX) {
		p3_say("-%s: '%s' is no number of nodes; expected 1 to %d, as in -sz 4",
			name, value, P3_OPT_SIZE_MAX);
		return P3_OPT_USAGE;
	}
	opt->size = (uint32_t)n;
	return P3_OPT_RUN;
}

static int set_keep_going(struct p3_opt *opt, const char *name, const char *value)
{
	(void)name, (void)value;
	opt->keep_going = true;
	return P3_OPT_RUN;
}

static int set_tag(struct p3_opt *opt, const char *name, const char *value)
{
	(void)name, (void)value;
	opt->tag = true;
	return P3_OPT_RUN;
}

static int set_only_rank(struct p3_opt *opt, const char *name, const char *value)
{
	opt->only = p3_ranks_parse(value, &opt->only_ranks);
	if (opt->only)
		return P3_OPT_RUN;
	p3_say("--%s: '%s' is no list of ranks; expected ranks and ranges, as in "
	       "--only-rank 0,2-3",
		name, value);
	return P3_OPT_USAGE;
}

static int set_output_dir(struct p3_opt *opt, const char *name, const char *value)
{
	(void)name;
	opt->output_dir = value;
	return P3_OPT_RUN;
}

static int set_shared_heap(struct p3_opt *opt, const char *name, const char *value)
{
	(void)name, (void)value;
	opt->shared_heap = true;
	return P3_OPT_RUN;
}

static int set_timeout(struct p3_opt *opt, const char *name, const char *value)
{
	char *end;
	double s = strtod(value, &end);
	if (end == value || *end || !(s >= 0.001 && s <= TIMEOUT_MAX_S)) {
		p3_say("--%s: '%s' is no time; expected seconds, 0.001 to %.0f, as in "
		       "--timeout 60",
			name, value, TIMEOUT_MAX_S);
		return P3_OPT_USAGE;
	}
	opt->timeout_ms = (int64_t)(s * 1000);
	return P3_OPT_RUN;
}

static int set_mode(struct p3_opt *opt, const char *name, const char *value)
{
	static const char *const known[] = {"auto", "lease", "dedicated", "park"};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (!strcmp(value, known[i])) {
			opt->mode = value;
			return P3_OPT_RUN;
		}
	p3_say("--%s: '%s' is no mode; expected auto, lease, dedicated or park", name,
		value);
	return P3_OPT_USAGE;
}

static int set_valgrind(struct p3_opt *opt, const char *name, const char *value)
{
	static const char *const words[] = {"auto", "on", "off"};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (!strcmp(value, words[i])) {
			opt->valgrind = (enum p3_valgrind)i;
			return P3_OPT_RUN;
		}
	p3_say("--%s: '%s' is no choice; expected auto, on or off", name, value);
	return P3_OPT_USAGE;
}

static int show_help(struct p3_opt *opt, const char *name, const char *value);

static int show_version(struct p3_opt *opt, const char *name, const char *value)
{
	(void)opt, (void)name, (void)value;
	puts("yod (libportals " P3_VERSION ", Portals 3.3)");
	return 0;
}

#define ROW_SIZE 0 /* -n is short for it */

static const struct row rows[] = {
	{"sz", "N", "run N nodes of the program (-np N and -n N are the same)", set_size},
	{"np", "N", NULL, set_size},
	{"keep-going", NULL, "a failing node does not end the others", set_keep_going},
	{"tag", NULL, "put [rank] before each line that a node prints", set_tag},
	{"only-rank", "LIST", "drop what other ranks print; LIST is as in 0,2-3",
		set_only_rank},
	{"output-dir", "DIR", "nodes print into DIR/rankN.out and DIR/rankN.err",
		set_output_dir},
	{"timeout", "SEC", "end the job after SEC seconds, status 124", set_timeout},
	{"mode", "MODE", "how NICs run: auto, lease, dedicated or park", set_mode},
	{"shared-heap", NULL, "malloc's long blocks lie where other nodes read them",
		set_shared_heap},
	{"valgrind", "WHEN",
		"auto, on or off: nodes use a library that tells valgrind about atomics",
		set_valgrind},
	{"help", NULL, "print this", show_help},
	{"version", NULL, "print the version", show_version},
};

#define ROWS (sizeof rows / sizeof rows[0])

static int show_help(struct p3_opt *opt, const char *name, const char *value)
{
	(void)opt, (void)name, (void)value;
	puts("usage: yod -sz N [options] program [arguments]\n"
	     "Runs a Portals job of N nodes, each a process of this machine.\n");
	for (size_t i = 0; i < ROWS; i++) {
		char left[40];
		if (!rows[i].help)
			continue;
		snprintf(left, sizeof left, "%s%s %s", i == ROW_SIZE ? "-" : "--",
			rows[i].name, rows[i].arg ? rows[i].arg : "");
		printf("  %-16s %s\n", left, rows[i].help);
	}
	puts("\nstatus: that of the node that fails first, 128 + signal if it was "
	     "killed;\n"
	     "124 timeout, 126 and 127 the program cannot be run, 125 yod failed, 2 "
	     "usage.\n"
	     "Standard input goes to rank 0.");
	return 0;
}

static void fill_longs(struct option *longs)
{
	for (size_t i = 0; i < ROWS; i++)
		longs[i] = (struct option){rows[i].name,
			rows[i].arg ? required_argument : no_argument, NULL,
			ROW_BASE + (int)i};
	longs[ROWS] = (struct option){NULL, 0, NULL, 0};
}

static int bad_word(int c, const char *word)
{
	if (c == ':')
		p3_say("%s: needs a value; see yod --help", word);
	else
		p3_say("%s: not an option of yod, or takes no value, or is short for "
		       "several; see yod --help",
			word);
	return P3_OPT_USAGE;
}

static int take(struct p3_opt *opt, int c, const char *word)
{
	if (c == 'n')
		return set_size(opt, "n", optarg);
	if (c == 'h')
		return show_help(opt, "h", NULL);
	if (c < ROW_BASE)
		return bad_word(c, word);
	const struct row *row = &rows[c - ROW_BASE];
	return row->set(opt, row->name, optarg);
}

static int check_output(const struct p3_opt *opt)
{
	uint32_t last = opt->only ? p3_ranks_last(&opt->only_ranks) : 0;
	if (last >= opt->size) {
		p3_say("--only-rank: %u is no rank of this job; expected 0 to %u", last,
			opt->size - 1);
		return P3_OPT_USAGE;
	}
	if (opt->tag && opt->output_dir) {
		p3_say("--tag: the names of the files say whose they are; expected "
		       "without --output-dir");
		return P3_OPT_USAGE;
	}
	return P3_OPT_RUN;
}

static int check(const struct p3_opt *opt)
{
	if (!opt->size) {
		p3_say("-sz: missing; expected the number of nodes, as in yod -sz 4 "
		       "./prog");
		return P3_OPT_USAGE;
	}
	if (!opt->argv[0]) {
		p3_say("program: missing; expected as in yod -sz 4 ./prog");
		return P3_OPT_USAGE;
	}
	return check_output(opt);
}

int p3_opt_parse(int argc, char **argv, struct p3_opt *opt_out)
{
	struct option longs[ROWS + 1];
	struct p3_opt opt = {.size = 0};
	fill_longs(longs);
	opterr = 0;
	for (;;) {
		int at = optind;
		int c = getopt_long_only(argc, argv, "+:n:h", longs, NULL);
		if (c < 0)
			break;
		int rc = take(&opt, c, argv[at]);
		if (rc != P3_OPT_RUN)
			return rc;
	}
	opt.argv = argv + optind;
	*opt_out = opt;
	return check(&opt);
}
