/* SPDX-License-Identifier: BSD-3-Clause */
/* tracedump - prints the last actions of a job's NICs */
#include "launcher/tracedump/tracedump.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#ifndef P3_VERSION
#define P3_VERSION "unversioned"
#endif

#define USAGE 2

enum form { TEXT, JSON, SVG };

struct opt {
	char *const *files;
	uint32_t nfiles;
	uint32_t job;
	enum form form;
	const char *output;
	const char *message;
	struct td_filter filter;
};

static const struct option longs[] = {{"job", required_argument, NULL, 'j'},
	{"node", required_argument, NULL, 'n'}, {"since", required_argument, NULL, 's'},
	{"until", required_argument, NULL, 'u'}, {"at", required_argument, NULL, 'a'},
	{"peer", required_argument, NULL, 'p'}, {"message", required_argument, NULL, 'm'},
	{"json", no_argument, NULL, 'J'}, {"svg", no_argument, NULL, 'S'},
	{"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'v'}, {NULL, 0, NULL, 0}};

static int main_help(void)
{
	puts("usage: tracedump [options] FILE...\n"
	     "       tracedump [options] --job JOB\n"
	     "Shows the last actions of a job's NICs: from a file of yod --trace, from\n"
	     "the core of a node, or from a job that runs, its nodes that died or left\n"
	     "included.  The files of several hosts of a job are shown as one, on the\n"
	     "clock of the first file.\n\n"
	     "  --job JOB        a job that runs: its number, or a pid of it\n"
	     "  --json           print JSON for ui.perfetto.dev or chrome://tracing\n"
	     "  --svg            print a picture: of the range or, without one, of the\n"
	     "                   busiest 4 us\n"
	     "  --output FILE    write to FILE instead of standard output\n"
	     "  --node LIST      records of these nodes only, as in 0,2-3\n"
	     "  --peer N         records about this node only\n"
	     "  --message M      records of one message, as in 0-1:17 (from-to:#)\n"
	     "  --at NAME        records of this point (send, take, match ...), value\n"
	     "                   (put, PUT_END ...) or function only\n"
	     "  --since US       no records before this time\n"
	     "  --until US       no records after this time\n"
	     "  --help           print this help\n"
	     "  --version        print the version\n\n"
	     "A line is: time in microseconds since the job began, node, value, code\n"
	     "address, function+offset, time since the record before it, and its\n"
	     "meaning.\n\n"
	     "status: 0, 1 if there is no trace or it cannot be read, 2 usage.");
	return 0;
}

static bool main_bad(const char *name, const char *value, const char *expected)
{
	td_say("--%s: '%s' is not understood; expected %s", name, value, expected);
	return false;
}

static bool main_number(
	const char *name, const char *text, unsigned long most, int64_t *out)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	*out = (int64_t)n;
	return (*text >= '0' && *text <= '9' && !*end && !errno && n <= most) ||
	       main_bad(name, text, "a number, as in 3");
}

static bool main_time_of(const char *name, const char *text, int64_t *out)
{
	char *end;
	double us = strtod(text, &end);
	if (end == text || *end || !(us >= -1e15 && us <= 1e15))
		return main_bad(name, text, "microseconds, as in 1234.5");
	*out = (int64_t)(us * 1e3);
	return true;
}

static bool main_set_job(struct opt *o, const char *text)
{
	int64_t n;
	if (!main_number("job", text, UINT32_MAX - 1, &n))
		return false;
	o->job = (uint32_t)n;
	return n || main_bad("job", text, "a job's number, as in 4711");
}

static bool main_take(struct opt *o, int c, const char *word)
{
	switch (c) {
	case 'j':
		return main_set_job(o, optarg);
	case 'n':
		o->filter.nodes = optarg;
		return td_is_list(optarg) ||
		       main_bad("node", optarg, "nodes, as in 0,2-3");
	case 's':
		return main_time_of("since", optarg, &o->filter.since);
	case 'u':
		return main_time_of("until", optarg, &o->filter.until);
	case 'p':
		return main_number("peer", optarg, P3_MAX_NODES, &o->filter.peer);
	case 'a':
		o->filter.at = optarg;
		return true;
	case 'm':
		o->message = optarg;
		return true;
	case 'o':
		o->output = optarg;
		return true;
	case 'J':
	case 'S':
		o->form = c == 'J' ? JSON : SVG;
		return true;
	default:
		td_say("%s: %s; see tracedump --help", word,
			c == ':' ? "needs a value"
				 : "not an option of tracedump, or takes no value");
		return false;
	}
}

/* Parse the command line.  Return -1 to go on, else the exit status. */
static int main_parse(int argc, char **argv, struct opt *o)
{
	opterr = 0;
	for (;;) {
		int at = optind, c = getopt_long(argc, argv, ":", longs, NULL);
		if (c < 0)
			break;
		if (c == 'h')
			return main_help();
		if (c == 'v')
			return puts("tracedump (libportals " P3_VERSION ")") < 0;
		if (!main_take(o, c, argv[at]))
			return USAGE;
	}
	o->files = &argv[optind];
	o->nfiles = (uint32_t)(argc - optind);
	if (!o->nfiles == !o->job || o->nfiles > P3_MAX_NODES) {
		td_say("expected a file, or --job and a number; see tracedump --help");
		return USAGE;
	}
	return -1;
}

/* Find the message of --message, as in "0-1:17": the last one of that name. */
static bool main_find_message(const struct td_trace *t, struct opt *o)
{
	unsigned from, to;
	char name[16];
	int end = 0;
	if (!o->message)
		return true;
	if (sscanf(o->message, "%u-%u:%15[b0-9]%n", &from, &to, name, &end) != 3 ||
		o->message[end])
		return main_bad("message", o->message, "from-to:#, as in 0-1:17");
	for (uint32_t i = 0; i < t->nmessages; i++)
		if (t->message[i].from == from && t->message[i].to == to &&
			!strcmp(td_name_of(t->message[i].name).text, name))
			o->filter.message = i;
	return o->filter.message != TD_NONE ||
	       main_bad("message", o->message, "one that the trace has");
}

static int main_write_to(const struct td_trace *t, const struct opt *o, FILE *out)
{
	int rc = 0;
	if (o->form == TEXT)
		td_text(t, &o->filter, out);
	else if (o->form == JSON)
		rc = td_json(t, &o->filter, out);
	else
		rc = td_svg(t, &o->filter, out);
	return rc;
}

static int main_show(const struct td_trace *t, const struct opt *o)
{
	FILE *out = o->output ? fopen(o->output, "we") : stdout;
	int rc = out ? main_write_to(t, o, out) : -1;
	if (out && (fflush(out) || ferror(out)))
		rc = -1;
	if (rc)
		td_say("'%s': cannot be written: %s",
			o->output ? o->output : "standard output", strerror(errno));
	if (out && out != stdout)
		fclose(out);
	return rc != 0;
}

static int main_load(const struct opt *o, struct td_trace *t_out)
{
	if (o->job)
		return td_load_job(o->job, t_out);
	return o->nfiles > 1 ? td_load_files(o->files, o->nfiles, t_out)
			     : td_load_file(o->files[0], t_out);
}

int main(int argc, char **argv)
{
	struct td_trace t;
	struct opt o = {.filter = {.since = INT64_MIN,
				.until = INT64_MAX,
				.peer = -1,
				.message = TD_NONE}};
	int status = main_parse(argc, argv, &o);
	if (status >= 0)
		return status;
	if (main_load(&o, &t))
		return 1;
	status = main_find_message(&t, &o) ? main_show(&t, &o) : USAGE;
	td_code_end();
	td_free(&t);
	return status;
}
