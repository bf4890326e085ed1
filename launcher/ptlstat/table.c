/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of nodes, settings and jobs, and the screen on which the first is redrawn. */
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/tools/rows.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HOME          "\033[H"
#define CLEAR         "\033[J"
#define EOL           "\033[K"

#define COLUMNS(list) list, sizeof list / sizeof *list

static const struct p3_column table_nodes[] = {{"rank", 4, "rank", P3_PLAIN},
	{"pid", 7, "pid", P3_PLAIN}, {"does", -18, "does", P3_CUT},
	{"out/s", 5, "rates.sent", P3_BRIEF}, {"in/s", 5, "rates.received", P3_BRIEF},
	{"outB/s", 7, "rates.sent_bytes", P3_BRIEF},
	{"inB/s", 7, "rates.received_bytes", P3_BRIEF},
	{"drops", 5, "counters.drops", P3_BRIEF},
	{"denied", 6, "counters.permission_violations", P3_BRIEF},
	{"trunc", 5, "counters.truncated", P3_BRIEF},
	{"queue", 5, "gauges.queued", P3_PLAIN}, {"pend", 5, "gauges.pendings", P3_PLAIN},
	{"recv", 4, "gauges.receives", P3_PLAIN},
	{"hot", 5, "gauges.lanes_hot", P3_PLAIN},
	{"peers", 5, "gauges.peers_alive", P3_PLAIN}, {"lease", 5, "lease", P3_PLAIN},
	{"nic%", 4, "nic_percent", P3_PLAIN}, {"mover", -6, "mover", P3_PLAIN},
	{"MEs", 5, "gauges.match_entries", P3_PLAIN},
	{"MDs", 5, "gauges.memory_descriptors", P3_PLAIN},
	{"EQs", 3, "gauges.event_queues", P3_PLAIN},
	{"page", 4, "settings.page_bytes", P3_BYTES},
	{"numa", 4, "settings.numa_node", P3_PLAIN},
	/* where there are ranks on other hosts: */
	{"fout/s", 7, "rates.far_frames_out", P3_BRIEF},
	{"fin/s", 6, "rates.far_frames_in", P3_BRIEF},
	{"resent", 6, "counters.far_frames_resent", P3_BRIEF},
	{"breaks", 6, "counters.far_breaks", P3_BRIEF},
	{"unack", 5, "gauges.far_frames_unacknowledged", P3_PLAIN},
	{"credits", 7, "gauges.far_credits", P3_PLAIN},
	{"silent", 6, "silent_ms", P3_BRIEF}};
#define FAR_COLUMNS 7u

static const struct p3_column table_jobs[] = {{"job", 10, "job", P3_PLAIN},
	{"user", -10, "user", P3_CUT}, {"nodes", 6, "size", P3_PLAIN},
	{"joined", 6, "joined", P3_PLAIN}, {"started", -12, "started", P3_CLOCK},
	{"program", -29, "program|error", P3_CUT}};
static const struct p3_column table_domains[] = {{"domain", -24, "name", P3_PLAIN},
	{"user", -10, "user", P3_CUT}, {"nodes", 6, "members", P3_PLAIN},
	{"started", -12, "started", P3_CLOCK}, {"program", -22, "program", P3_CUT}};
static const struct p3_column table_conf[] = {{"node", 5, "node", P3_PLAIN},
	{"setting", -19, "setting", P3_PLAIN}, {"set to", -16, "set", P3_PLAIN},
	{"got", -1, "got", P3_PLAIN}};
static const struct p3_column table_here[] = {{"setting", -18, "setting", P3_PLAIN},
	{"here", -16, "here", P3_PLAIN}, {"usual", -1, "usual", P3_PLAIN}};

struct screen {
	bool on;
	int rows, columns;
};

static struct screen screen_of(bool on)
{
	struct winsize ws = {0};
	struct screen s = {on, 24, 80};
	if (on && ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row && ws.ws_col)
		s = (struct screen){on, ws.ws_row, ws.ws_col};
	return s;
}

static void screen_put(const struct screen *s, char *line)
{
	if (s->on)
		p3_rows_cut(line, (size_t)s->columns - 1);
	printf("%s%s\n", line, s->on ? EOL : "");
}

static json_int_t table_number(const json_t *o, const char *name)
{
	return json_integer_value(json_object_get(o, name));
}

static void table_put_title(const struct screen *s, const json_t *job)
{
	char line[240];
	const char *domain = json_string_value(json_object_get(job, "domain"));
	json_int_t here = table_number(job, "here");
	int at = domain && *domain ? snprintf(line, sizeof line, "domain %s", domain)
		 : domain          ? snprintf(line, sizeof line, "a process in no domain")
				   : snprintf(line, sizeof line, "job %lld (yod %lld)",
					     (long long)table_number(job, "job"),
					     (long long)table_number(job, "yod"));
	snprintf(line + at, sizeof line - (size_t)at,
		": %lld nodes%s, %lld joined, %lld stopped; rates over %.2f s",
		(long long)here, here < table_number(job, "size") ? " of this host" : "",
		(long long)table_number(job, "joined"),
		(long long)table_number(job, "stopped"),
		json_real_value(json_object_get(job, "interval")));
	screen_put(s, line);
}

void ptl_table_job(const json_t *job, bool on)
{
	const json_t *nodes = json_object_get(job, "nodes"), *node;
	struct screen s = screen_of(on);
	size_t i, columns = sizeof table_nodes / sizeof *table_nodes - FAR_COLUMNS;
	char line[400];
	json_array_foreach(nodes, i, node)
		if (table_number(json_object_get(node, "gauges"), "far_peers"))
			columns = sizeof table_nodes / sizeof *table_nodes;
	if (s.on)
		fputs(HOME, stdout);
	table_put_title(&s, job);
	p3_rows_line(NULL, table_nodes, columns, line, sizeof line);
	screen_put(&s, line);
	json_array_foreach(nodes, i, node) {
		bool full = s.on && (int)i + 4 > s.rows && i + 1 < json_array_size(nodes);
		if (full)
			snprintf(line, sizeof line, "  ... and %zu more",
				json_array_size(nodes) - i);
		else
			p3_rows_line(node, table_nodes, columns, line, sizeof line);
		screen_put(&s, line);
		if (full)
			break;
	}
	if (s.on)
		fputs(CLEAR, stdout);
}

void ptl_table_why(const json_t *job, bool brief)
{
	const json_t *lines = json_object_get(job, "nodes"), *line;
	size_t i;
	json_array_foreach(lines, i, line)
		if (!brief)
			puts(json_string_value(line));
	if (!brief)
		putchar('\n');
	json_array_foreach(json_object_get(job, "why"), i, line)
		puts(json_string_value(line));
}

void ptl_table_conf(const json_t *rows)
{
	bool of_nodes = json_object_get(json_array_get(rows, 0), "node");
	if (of_nodes)
		p3_rows_table(rows, COLUMNS(table_conf));
	else
		p3_rows_table(rows, COLUMNS(table_here));
}

void ptl_table_jobs(const json_t *lists)
{
	const json_t *jobs = json_object_get(lists, "jobs");
	const json_t *domains = json_object_get(lists, "domains");
	if (json_array_size(jobs))
		p3_rows_table(jobs, COLUMNS(table_jobs));
	if (json_array_size(domains))
		p3_rows_table(domains, COLUMNS(table_domains));
	if (!json_array_size(jobs) && !json_array_size(domains))
		puts("no jobs");
}
