/* SPDX-License-Identifier: BSD-3-Clause */
/* tracedump - prints the last actions of a job's NICs */
#include "launcher/tracedump/tracedump.h"
#include "launcher/tools/options.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

struct opt {
	uint32_t job;
	bool json, svg;
	const char *output;
	const char *message;
	struct td_filter filter;
};

static bool main_parse_nodes(const struct p3_option *row, void *filter, const char *text)
{
	struct td_filter *f = filter;
	(void)row;
	return f->some = p3_ranks_parse(text, &f->nodes);
}

#define AT(member) .at = offsetof(struct opt, member)
#define US(member)                                                                       \
	AT(member), .parse = p3_parse_scaled, .least = -1e15, .most = 1e15,              \
		    .scale = 1000, .no = "time; expected microseconds, as in 1234.5"
static const struct p3_option main_rows[] = {
	{"job", 0, "JOB", "a job that runs: its number, or a pid of it", AT(job),
		.parse = p3_parse_number, .least = 1, .most = UINT32_MAX - 1,
		.no = "job; expected its number, as in 4711"},
	{"json", 0, NULL, "print JSON for ui.perfetto.dev or chrome://tracing", AT(json)},
	{"svg", 0, NULL,
		"print a picture: of the range or, without one, of the busiest 4 us",
		AT(svg)},
	{"output", 0, "FILE", "write to FILE instead of standard output", AT(output)},
	{"node", 0, "LIST", "records of these nodes only, as in 0,2-3", AT(filter),
		.parse = main_parse_nodes,
		.no = "list of nodes; expected one as in 0,2-3"},
	{"peer", 0, "N", "records about this node only", AT(filter.peer),
		.parse = p3_parse_number, .most = P3_MAX_NODES,
		.no = "node; expected a number, as in 3"},
	{"message", 0, "M", "records of one message, as in 0-1:17 (from-to:#)",
		AT(message)},
	{"at", 0, "NAME",
		"records of this point (send, take, match ...), value "
		"(put, PUT_END ...) or function only",
		AT(filter.at)},
	{"since", 0, "US", "no records before this time", US(filter.since)},
	{"until", 0, "US", "no records after this time", US(filter.until)},
};

static const struct p3_options main_options = {.program = "tracedump",
	.usage = "usage: tracedump [options] FILE...\n"
		 "       tracedump [options] --job JOB\n"
		 "Shows the last actions of a job's NICs: from a file of yod --trace, "
		 "from\n"
		 "the core of a node, or from a job that runs, its nodes that died or "
		 "left\n"
		 "included.  The files of several hosts of a job are shown as one, on "
		 "the\n"
		 "clock of the first file.\n",
	.after = "A line is: time in microseconds since the job began, node, value, "
		 "code\n"
		 "address, function+offset, time since the record before it, and its\n"
		 "meaning.\n\n"
		 "status: 0, 1 if there is no trace or it cannot be read, 2 usage.",
	.row = main_rows,
	.n = sizeof main_rows / sizeof *main_rows,
	.words = P3_MAX_NODES,
	.say = p3_tool_say};

/* Find the message of --message, as in "0-1:17": the last one of that name. */
static int main_find_message(const struct td_trace *t, struct opt *o)
{
	unsigned from, to;
	char name[16];
	int end = 0;
	if (!o->message)
		return P3_OPTIONS_GO;
	bool named =
		sscanf(o->message, "%u-%u:%15[b0-9]%n", &from, &to, name, &end) == 3 &&
		!o->message[end];
	for (uint32_t i = 0; i < t->nmessages && named; i++)
		if (t->message[i].from == from && t->message[i].to == to &&
			!strcmp(td_name_of(t->message[i].name).text, name))
			o->filter.message = i;
	if (o->filter.message != TD_NONE)
		return P3_OPTIONS_GO;
	p3_tool_say("--message: '%s' is no message of the trace; expected one as in "
		    "0-1:17 (from-to:#)",
		o->message);
	return P3_OPTIONS_USAGE;
}

static int main_show(const struct td_trace *t, const struct opt *o)
{
	FILE *out = o->output ? fopen(o->output, "we") : stdout;
	int rc = out ? 0 : -1;
	if (out && o->svg)
		rc = td_svg(t, &o->filter, out);
	else if (out && o->json)
		rc = td_json(t, &o->filter, out);
	else if (out)
		td_text(t, &o->filter, out);
	if (out && (fflush(out) || ferror(out)))
		rc = -1;
	if (rc)
		p3_tool_say("'%s': cannot be written: %s",
			o->output ? o->output : "standard output", strerror(errno));
	if (out && out != stdout)
		fclose(out);
	return rc != 0;
}

int main(int argc, char **argv)
{
	struct td_trace t;
	struct opt o = {.filter = {.since = INT64_MIN,
				.until = INT64_MAX,
				.peer = TD_NONE,
				.message = TD_NONE}};
	int first, status = p3_options_read(&main_options, &o, argc, argv, &first);
	if (status != P3_OPTIONS_GO)
		return status;
	uint32_t n = (uint32_t)(argc - first);
	if (!n == !o.job) {
		p3_tool_say("expected a file, or --job and a number; see tracedump "
			    "--help");
		return P3_OPTIONS_USAGE;
	}
	if (o.job ? td_load_job(o.job, &t) : td_load_files(&argv[first], n, &t))
		return 1;
	status = main_find_message(&t, &o);
	if (status == P3_OPTIONS_GO)
		status = main_show(&t, &o);
	td_code_end();
	td_free(&t);
	return status;
}
