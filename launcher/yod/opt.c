/* SPDX-License-Identifier: BSD-3-Clause */
/* yod's command line: the table of options, programs, load files. */
#include "launcher/yod/yod.h"
#include "launcher/tools/options.h"
#include "shm/conf.h"
#include "shm/cpuset.h"
#include "shm/domain.h"
#include "shm/job.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KILL_AFTER_MS 5000
#define WHY_AFTER_MS  10000
#define LOADFILE_MOST (16u << 20)

/* Print an error line, and give the status for it. */
#define OPT_NO(...) (p3_say(__VA_ARGS__), P3_OPT_USAGE)

/* Return the program whose options are being read. */
static struct p3_prog *opt_now(struct p3_opt *opt)
{
	return &opt->prog[opt->prog_n - 1];
}

static int opt_say_no_memory(void)
{
	return OPT_NO(
		"out of memory for the command line; use fewer programs, or raise ulimit "
		"-v");
}

/* Parse a number of nodes. */
static bool opt_parse_count(const char *value, uint32_t *out)
{
	static const struct p3_option count = {.least = 1, .most = P3_OPT_SIZE_MAX};
	return p3_parse_number(&count, out, value);
}

static int opt_set_size(void *to, const char *name, const char *value)
{
	struct p3_opt *opt = to;
	/* getopt takes -np4 as -n with the value p4 */
	if (!strcmp(name, "-n") && value[0] == 'p' && value[1])
		return OPT_NO(
			"-n%s: a blank is missing; expected -np %s", value, value + 1);
	uint32_t before = opt_now(opt)->size;
	bool good = opt_parse_count(value, &opt_now(opt)->size);
	if (good && before && before != opt_now(opt)->size)
		return OPT_NO("%s: '%s' contradicts %u, which was given before (-sz, -np "
			      "and -n "
			      "are the same); expected one of them",
			name, value, before);
	if (good)
		return P3_OPT_RUN;
	return OPT_NO(
		"%s: '%s' is no number of nodes of a job; expected 1 to %d, as in -sz 4",
		name, value, P3_OPT_SIZE_MAX);
}

static int opt_set_dir(void *to, const char *name, const char *value)
{
	struct p3_opt *opt = to;
	(void)name;
	opt_now(opt)->dir = value;
	return P3_OPT_RUN;
}

/* ---- environment ---- */

/* Take NAME=VALUE, or NAME alone: nodes inherit that variable from yod without this
 * option, so only check that it is set. */
static int opt_set_env(void *to, const char *name, const char *value)
{
	static const char *const ours[] = {
		"PTL_MY_RID", "PTL_NIDMAP", "PTL_PIDMAP", "PTL_IFACE", P3_JOB_ENV};
	static const char letters[] =
		"0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	struct p3_opt *opt = to;
	size_t len = strcspn(value, "=");
	if (!len || strspn(value, letters) != len || (*value >= '0' && *value <= '9'))
		return OPT_NO(
			"%s: '%s' names no variable; expected NAME=VALUE, as in --env "
			"OMP_NUM_THREADS=2",
			name, value);
	for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
		if (strlen(ours[i]) == len && !strncmp(ours[i], value, len))
			return OPT_NO(
				"%s: %.*s is yod's to set; expected another variable",
				name, (int)len, value);
	if (value[len])
		return p3_prog_env_add(opt_now(opt), value) ? opt_say_no_memory()
							    : P3_OPT_RUN;
	if (getenv(value))
		return P3_OPT_RUN;
	return OPT_NO(
		"%s: %s is not set in yod's environment; expected %s=VALUE, or export it "
		"before",
		name, value, value);
}

/* ---- placement ---- */

static bool opt_parse_bind(const struct p3_option *row, void *place, const char *value)
{
	static const char *const words[] = {"none", "core", "numa"};
	struct p3_place_want *want = place;
	(void)row;
	want->bind = P3_BIND_NONE;
	while (want->bind < P3_BIND_LIST && strcmp(value, words[want->bind]) != 0)
		want->bind++;
	return want->bind < P3_BIND_LIST || p3_cpulist_parse(value, &want->list);
}

/* Parse -VN2, -VN 2 or -VN=2; getopt takes the first as -V with a value. */
static int opt_set_per_unit(void *to, const char *name, const char *value)
{
	struct p3_opt *opt = to;
	(void)name;
	if (opt_parse_count(value + (*value == 'N'), &opt->place.per_unit))
		return P3_OPT_RUN;
	return OPT_NO(
		"-VN: '%s' is no number of nodes; expected 1 to %d for each core, as in "
		"-VN2",
		value + (*value == 'N'), P3_OPT_SIZE_MAX);
}

/* ---- the job ---- */

static bool opt_parse_ranks(const struct p3_option *row, void *opt, const char *value)
{
	struct p3_opt *o = opt;
	(void)row;
	return o->only = p3_ranks_parse(value, &o->only_ranks);
}

static bool opt_parse_domain(const struct p3_option *row, void *name, const char *value)
{
	(void)row;
	*(const char **)name = value;
	return p3_domain_is_name(value) && strcmp(value, P3_DOMAIN_NONE) != 0;
}

static int opt_set_hosts(void *to, const char *name, const char *value)
{
	struct p3_opt *opt = to;
	if (opt->hosts_of)
		return OPT_NO(
			"%s: the hosts are given by %s already; expected one of --hosts "
			"and --hostfile, once",
			name, opt->hosts_of);
	bool list = !strcmp(name, "--hosts");
	opt->hosts_of = list ? "--hosts" : "--hostfile";
	int rc = list ? p3_hosts_parse(value, &opt->hosts)
		      : p3_hosts_read(value, &opt->hosts);
	if (rc == -ENOMEM)
		return opt_say_no_memory();
	return rc ? P3_OPT_USAGE : P3_OPT_RUN;
}

static int opt_show_settings(void *to, const char *name, const char *value)
{
	(void)to, (void)name, (void)value;
	puts("Settings of the library, from the environment: name (default): values\n");
	p3_conf_print(stdout, P3_CONF_TEXT);
	return 0;
}

/* ---- the table ---- */

#define AT(member) .at = offsetof(struct p3_opt, member)
/* A time in seconds, which is kept in milliseconds. */
#define SECONDS(member, from, name)                                                      \
	AT(member), .parse = p3_parse_scaled, .least = from, .most = 1e9, .scale = 1000, \
		    .no = "time; expected seconds, " #from " to 1000000000, as in " name \
			  " 60"
static const struct p3_option opt_rows[] = {
	{.help = "programs, each with its nodes:"},
	{"sz", 'n', "N", "run N nodes of the program (-np N, -n N: the same)",
		.set = opt_set_size, .each = true},
	{"np", 0, "N", NULL, .set = opt_set_size, .each = true},
	{"load", 'F', "FILE", "programs are in FILE, a line each: -sz N program ...",
		AT(load)},
	{"wdir", 'd', "DIR", "run the program in DIR", .set = opt_set_dir, .each = true},
	{"env", 'x', "NAME=VALUE",
		"set a variable of the program; NAME alone must be set",
		.set = opt_set_env, .each = true},
	{.help = "where they run:"},
	{"bind", 0, "HOW", "none, core, numa, or CPUs taken in turn, as in 0,2-3",
		AT(place), .parse = opt_parse_bind,
		.no = "placement; expected none, core, numa, or a list of CPUs as in "
		      "--bind 0,2-3"},
	{"VN", 'V', "N", "N nodes share a core (of --bind: a CPU, a NUMA node)",
		.set = opt_set_per_unit},
	{"hosts", 0, "LIST", "run on these hosts, with or without slots: c1:4,c2",
		.set = opt_set_hosts},
	{"hostfile", 0, "FILE", "hosts are in FILE, a line each: c1 or c1:4",
		.set = opt_set_hosts},
	{"rsh", 0, "PROGRAM", "remote shell (ssh): it gets a host and a command line",
		AT(rsh)},
	{.help = "the job:"},
	{"keep-going", 0, NULL, "a failing node does not end the others", AT(keep_going)},
	{"timeout", 0, "SEC", "end the job after SEC seconds, status 124",
		SECONDS(timeout_ms, 0.001, "--timeout")},
	{"kill-after", 0, "SEC", "kill nodes that SIGTERM has not ended in SEC s (5)",
		SECONDS(kill_after_ms, 0, "--kill-after")},
	{"why-after", 0, "SEC", "explain a barrier that lasts for SEC s (10); 0: never",
		SECONDS(why_after_ms, 0, "--why-after")},
	{"mode", 0, "MODE", "how NICs run: auto, lease, dedicated or park", AT(mode),
		.parse = p3_parse_word, .words = " auto lease dedicated park ",
		.no = "mode; expected auto, lease, dedicated or park"},
	{"domain", 0, "NAME", "nodes also meet the other processes of this domain",
		AT(domain), .parse = opt_parse_domain,
		.no = "name of a domain; expected letters, digits, '-', '_' and '.', 40 "
		      "at most, as in --domain default"},
	{"nid-base", 0, "NID", "node id of rank 0 (10000); with --domain: the least one",
		AT(nid_base), .parse = p3_parse_number, .most = P3_OPT_NID_BASE_MOST,
		.no = "node id of rank 0; expected 0 to 4000000000, as in --nid-base 0"},
	{"shared-heap", 0, NULL, "other nodes can read malloc's long blocks directly",
		AT(shared_heap)},
	{"valgrind", 0, "WHEN", "auto, on, off: the library tells valgrind of atomics",
		AT(valgrind), .parse = p3_parse_word, .words = " auto on off ",
		.no = "choice; expected auto, on or off"},
	{.help = "output:"},
	{"tag", 0, NULL, "put [rank] before each line that a node prints", AT(tag)},
	{"only-rank", 0, "LIST", "print the output of these ranks only, as in 0,2-3",
		.parse = opt_parse_ranks,
		.no = "list of ranks; expected ranks and ranges, as in --only-rank "
		      "0,2-3"},
	{"output-dir", 0, "DIR", "nodes print into DIR/rankN.out and DIR/rankN.err",
		AT(output_dir)},
	{"line-buffered", 0, NULL,
		"from PtlInit on nodes print line by line, not in blocks",
		AT(line_buffered)},
	{"stats", 0, NULL, "a summary of each node at the end, on stderr", AT(stats)},
	{"trace", 0, "FILE", "the last actions of each NIC, for tracedump", AT(trace),
		.parse = p3_parse_text,
		.no = "file; expected where the nodes' traces go, as in --trace "
		      "job.trace"},
	{"plan", 0, NULL, "print memory, CPUs and limits of the job; start nothing",
		AT(plan)},
	{"help-env", 0, NULL, "print the settings of the library (PTL3_*)",
		.set = opt_show_settings},
};

/* ---- words that are no options ---- */

/* Options of mpirun, mpiexec and srun, and the options of yod that do the same. */
static const struct {
	const char *names; /* with a blank before and behind each */
	const char *hint;
} opt_foreign[] = {
	{" H host machinefile default-hostfile f w nodelist ",
		"hosts are chosen by --hosts c1,c2 or --hostfile FILE"},
	{" N npernode ppn ntasks-per-node oversubscribe nooversubscribe perhost O ",
		"any number of nodes runs on a machine; --hosts c1:4,c2:2 says how many"},
	{" agent ", "yod --hosts starts agents, with that word alone"},
	{" v verbose debug-daemons ", "--stats and --trace FILE say what nodes do, "
				      "--version prints the version"},
	{" c ntasks ", "the number of nodes is -sz N"},
	{" bind-to map-by rank-by cpu-bind cpu-set cpu-list bind-to-core ",
		"CPUs are chosen by --bind none, core, numa or a list as in 0,2-3"},
	{" genv E export ", "variables are set by --env NAME=VALUE"},
	{" l label tag-output prepend-rank ", "--tag puts [rank] before each line"},
	{" outfile-pattern output-filename o output ",
		"--output-dir DIR makes a file of each node's output"},
	{" mca gmca allow-run-as-root prefix iface launcher mpi ",
		"yod needs nothing of the kind; leave it out"},
};

static const char *opt_hint_for(const char *name)
{
	char padded[P3_CONF_NAME_LEN + 3];
	snprintf(padded, sizeof padded, " %s ", name);
	for (size_t i = 0; i < sizeof opt_foreign / sizeof opt_foreign[0]; i++)
		if (strstr(opt_foreign[i].names, padded))
			return opt_foreign[i].hint;
	return NULL;
}

/* ---- reading ---- */

static bool opt_allows(const void *to, const struct p3_option *row, const char *word)
{
	const struct p3_opt *opt = to;
	if (row->each || (opt->prog_n == 1 && !opt->prog[0].place))
		return true;
	p3_say("%s: is for the whole job; expected before the first program, outside of "
	       "load files",
		word);
	return false;
}

static const struct p3_options opt_options = {.program = "yod",
	.usage = "usage: yod -sz N [options] program [arguments] [: -sz N program ...]\n"
		 "  or:  yod [options] -F FILE\n"
		 "Runs a Portals job of N nodes, each a process of this machine, or of "
		 "--hosts.",
	.after = "status: that of the node that fails first, 128 + signal if it was "
		 "killed;\n"
		 "124 timeout, 126 and 127 the program cannot be run, 125 yod failed, 2 "
		 "usage.\n"
		 "Standard input goes to rank 0.",
	.row = opt_rows,
	.n = sizeof opt_rows / sizeof opt_rows[0],
	.ends = true,
	.say = p3_say,
	.allows = opt_allows,
	.hint = opt_hint_for};

/* ---- programs ---- */

/* Add a program, with directory and environment of `like` if that is not NULL. */
static int opt_start_prog(
	struct p3_opt *opt, const struct p3_prog *like, const char *place)
{
	struct p3_prog *more = realloc(opt->prog, (opt->prog_n + 1) * sizeof *opt->prog);
	if (!more)
		return opt_say_no_memory();
	opt->prog = more;
	opt->prog[opt->prog_n++] = (struct p3_prog){.place = place};
	if (!like)
		return P3_OPT_RUN;
	opt_now(opt)->dir = like->dir;
	for (uint32_t i = 0; i < like->env_n; i++)
		if (p3_prog_env_add(opt_now(opt), like->env[i]))
			return opt_say_no_memory();
	return P3_OPT_RUN;
}

static int opt_check_prog(const struct p3_prog *prog)
{
	if (!prog->size)
		return OPT_NO(
			"-sz: missing; expected the number of nodes, as in yod -sz 4 "
			"./prog");
	if (!prog->argv[0] || !*prog->argv[0])
		return OPT_NO("program: missing; expected as in yod -sz 4 ./prog");
	return P3_OPT_RUN;
}

/* Read "options program arguments : options program arguments". */
static int opt_take_programs(struct p3_opt *opt, int argc, char **argv)
{
	for (;;) {
		int first, rc = p3_options_read(&opt_options, opt, argc, argv, &first);
		if (rc != P3_OPT_RUN)
			return rc;
		int n = first;
		while (argv[n] && strcmp(argv[n], ":") != 0)
			n++;
		bool more = argv[n];
		opt_now(opt)->argv = argv + first;
		argv[n] = NULL;
		if (!more)
			return P3_OPT_RUN;
		rc = opt_check_prog(opt_now(opt));
		if (rc == P3_OPT_RUN)
			rc = opt_start_prog(opt, NULL, NULL);
		if (rc != P3_OPT_RUN)
			return rc;
		p3_say_at("behind ':'");
		argv += n;
		argc -= n;
	}
}

/* ---- load files ---- */

/* Return the text of a load file, ended by a zero byte, or NULL after an error line. */
static char *opt_read_load(const char *name)
{
	FILE *f = fopen(name, "re");
	char *text = f ? malloc(LOADFILE_MOST + 1) : NULL;
	size_t len = text ? fread(text, 1, LOADFILE_MOST + 1, f) : 0;
	bool read = text && !ferror(f);
	if (!read)
		p3_say("-F: '%s': %s; expected a text file with a line for each program, "
		       "as in: -sz 2 ./prog arguments",
			name, strerror(errno));
	if (f)
		fclose(f);
	if (read) {
		text[len < LOADFILE_MOST ? len : LOADFILE_MOST] = 0;
		if (strlen(text) == len)
			return text;
		p3_say("-F: '%s' is no text (it has a zero byte, or more than %u MiB); "
		       "expected a line for each program, as in: -sz 2 ./prog arguments",
			name, LOADFILE_MOST >> 20);
	}
	free(text);
	return NULL;
}

static int opt_take_line(struct p3_opt *opt, const struct p3_prog *base, uint32_t line,
	int argc, char **argv)
{
	char *place;
	if (asprintf(&place, "%s:%u", opt->load, line) < 0)
		return opt_say_no_memory();
	argv[0] = place;
	int first, rc = opt_start_prog(opt, base, place);
	p3_say_at(place);
	if (rc == P3_OPT_RUN)
		rc = p3_options_read(&opt_options, opt, argc, argv, &first);
	if (rc == P3_OPT_RUN) {
		opt_now(opt)->argv = argv + first;
		rc = opt_check_prog(opt_now(opt));
	}
	p3_say_at(NULL);
	return rc;
}

static int opt_take_lines(struct p3_opt *opt, const struct p3_prog *base, char *text)
{
	struct p3_words words = {text, 1};
	int argc, rc = P3_OPT_RUN;
	uint32_t line = 1;
	char **argv;
	opt->prog_n = 0;
	while (rc == P3_OPT_RUN) {
		int got = p3_words_next(&words, 1, &argv, &argc, &line);
		if (got == -ENOENT && opt->prog_n)
			break;
		if (!got) {
			rc = opt_take_line(opt, base, line, argc, argv);
			continue;
		}
		if (got == -ENOMEM)
			return opt_say_no_memory();
		if (got == -EINVAL)
			p3_say("%s:%u: a quote is not closed; expected another ' or \"",
				opt->load, line);
		else
			p3_say("-F: '%s' has no programs; expected a line for each, as "
			       "in: -sz 2 ./prog arguments",
				opt->load);
		return P3_OPT_USAGE;
	}
	return rc;
}

/* Read a load file.  The program of each line has the directory and the environment of
 * the command line, unless the line has its own. */
static int opt_take_load(struct p3_opt *opt)
{
	const struct p3_prog *first = &opt->prog[0];
	if (opt->prog_n > 1 || first->size || first->argv[0])
		return OPT_NO(
			"-F: '%s' has the programs and their numbers of nodes; expected "
			"no -sz and no program beside it",
			opt->load);
	char *text = opt_read_load(opt->load);
	if (!text)
		return P3_OPT_USAGE;
	const struct p3_prog base = *first;
	int rc = opt_take_lines(opt, &base, text);
	free(base.env);
	return rc;
}

/* ---- all of it ---- */

/* Number the ranks of all programs and place them on hosts, and refuse options that do
 * not go with them. */
static int opt_check_all(struct p3_opt *opt)
{
	uint64_t n = 0;
	uint32_t last = opt->only ? p3_ranks_last(&opt->only_ranks) : 0;
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		opt->prog[i].first = (uint32_t)n;
		n += opt->prog[i].size;
	}
	if (n > P3_OPT_SIZE_MAX)
		return OPT_NO(
			"-sz: the programs have %llu nodes in all; expected %d at most",
			(unsigned long long)n, P3_OPT_SIZE_MAX);
	opt->size = (uint32_t)n;
	if (opt->place.per_unit && opt->place.bind == P3_BIND_NONE)
		opt->place.bind = P3_BIND_CORE;
	if (last >= opt->size)
		return OPT_NO("--only-rank: %u is no rank of this job; expected 0 to %u",
			last, opt->size - 1);
	if (opt->tag && opt->output_dir)
		return OPT_NO(
			"--tag: the names of the files say whose they are; expected "
			"without --output-dir");
	if (opt->hosts.n && opt->domain)
		return OPT_NO(
			"--domain: not for a job on several hosts; expected without %s",
			opt->hosts_of);
	return opt->hosts.n && p3_hosts_place(&opt->hosts, opt->size) ? P3_OPT_USAGE
								      : P3_OPT_RUN;
}

int p3_opt_parse(int argc, char **argv, struct p3_opt *opt_out)
{
	struct p3_opt opt = {.kill_after_ms = KILL_AFTER_MS,
		.why_after_ms = WHY_AFTER_MS,
		.nid_base = P3_OPT_NID_BASE,
		.valgrind = "auto"};
	int rc = opt_start_prog(&opt, NULL, NULL);
	if (rc == P3_OPT_RUN)
		rc = opt_take_programs(&opt, argc, argv);
	if (rc == P3_OPT_RUN)
		rc = opt.load ? opt_take_load(&opt) : opt_check_prog(opt_now(&opt));
	p3_say_at(NULL);
	if (rc == P3_OPT_RUN)
		rc = opt_check_all(&opt);
	*opt_out = opt;
	return rc;
}
