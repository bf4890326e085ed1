/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ptlstat's command line and its loop; the list of jobs and domains, and the choice of
 * one; the reports of other hosts; tables
 */
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/tools/options.h"
#include "launcher/tools/rows.h"
#include "launcher/frames.h"
#include "shm/process.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_OK, STATUS_NO_JOB };

enum what { LOOK, WHY, CONF };

struct opt {
	enum what what;
	uint32_t job;       /* 0: not given */
	const char *domain; /* NULL: not given */
	int64_t interval_ms;
	uint32_t count; /* 0: not given */
	bool json;
	bool brief;
	bool hosts;
	uint32_t look_at; /* socket of an agent; 0: not given */
};

/* ---- the command line ---- */

/* Print an error line, and give the status for it. */
#define MAIN_NO(...) (p3_tool_say(__VA_ARGS__), P3_OPTIONS_USAGE)

#define AT(member)   .at = offsetof(struct opt, member)
static const struct p3_option main_rows[] = {
	{"interval", 'i', "SEC", "time that rates are measured over; default 1",
		AT(interval_ms), .parse = p3_parse_scaled, .least = 0.01, .most = 86400,
		.scale = 1000, .no = "time; expected seconds, 0.01 to 86400, as in -i 2"},
	{"count", 'c', "N", "number of pictures; default: 1, on a terminal no end",
		AT(count), .parse = p3_parse_number, .least = 1, .most = UINT32_MAX,
		.no = "number of pictures; expected 1 to 4294967295, as in -c 5"},
	{"json", 'j', NULL, "for programs: one object a line", AT(json)},
	{"domain", 'd', "NAME",
		"not a job of yod's but the processes of this domain: "
		"ranks of mpirun or srun, or started by hand",
		AT(domain)},
	{"brief", 'b', NULL, "why: conclusions only, no line for each node", AT(brief)},
	{"hosts", 'H', NULL, "all hosts of a job of yod --hosts, from yod's host",
		AT(hosts)},
	{"look-at", 0, "SOCKET", NULL, AT(look_at), .parse = p3_parse_number,
		.most = INT32_MAX, .no = "socket"}, /* for agents */
};

static const struct p3_options main_options = {.program = "ptlstat",
	.usage =
		"usage: ptlstat [options] [why | conf] [JOB]\n"
		"Looks at a Portals job from outside: running, stopped, hung or with "
		"dead nodes.\n"
		"JOB is its number, as \"ptlstat\" alone lists it, or the pid of its yod "
		"or\n"
		"mpirun, or of a node.  why and conf without it take your newest "
		"job.\n\n"
		"  ptlstat             list your jobs and domains: program, start, "
		"user\n"
		"  ptlstat JOB         a line for each node: rates, queues, drops; on a "
		"terminal\n"
		"                      drawn anew until ^C\n"
		"  ptlstat why [JOB]   the calls and nodes that each node waits for\n"
		"  ptlstat conf [JOB]  the settings and resources of each node\n",
	.after = "status: 0, 1 there is no such job, it cannot be looked at, or its "
		 "picture\n"
		 "cannot be printed, 2 usage.",
	.row = main_rows,
	.n = sizeof main_rows / sizeof *main_rows,
	.words = INT_MAX,
	.say = p3_tool_say};

static int main_take_word(struct opt *opt, const char *word)
{
	uint64_t n;
	bool bare = opt->what == LOOK && !opt->job;
	if (bare && !strcmp(word, "why"))
		opt->what = WHY;
	else if (bare && !strcmp(word, "conf"))
		opt->what = CONF;
	else if (!opt->job && p3_option_number(word, 1, INT32_MAX, &n))
		opt->job = (uint32_t)n;
	else
		return MAIN_NO(
			"'%s': not expected here; expected a job's number or a pid, "
			"or why, or conf; see ptlstat --help",
			word);
	return P3_OPTIONS_GO;
}

/* ---- tables of nodes, settings and jobs, and the screen ---- */

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

struct screen {
	bool on;
	int rows, columns;
};

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

static void table_show_job(const json_t *job, bool on)
{
	const json_t *nodes = json_object_get(job, "nodes"), *node;
	const char *domain = json_string_value(json_object_get(job, "domain"));
	long long here = table_number(job, "here");
	size_t i, columns = sizeof table_nodes / sizeof *table_nodes - FAR_COLUMNS;
	char line[400];
	struct winsize ws = {0};
	struct screen s = {on, 24, 80};
	if (on && ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row && ws.ws_col)
		s = (struct screen){on, ws.ws_row, ws.ws_col};
	json_array_foreach(nodes, i, node)
		if (table_number(json_object_get(node, "gauges"), "far_peers"))
			columns = sizeof table_nodes / sizeof *table_nodes;
	if (s.on)
		fputs(HOME, stdout);
	int at = domain && *domain ? snprintf(line, sizeof line, "domain %s", domain)
		 : domain          ? snprintf(line, sizeof line, "a process in no domain")
				   : snprintf(line, sizeof line, "job %lld (yod %lld)",
					     (long long)table_number(job, "job"),
					     (long long)table_number(job, "yod"));
	snprintf(line + at, sizeof line - (size_t)at,
		": %lld nodes%s, %lld joined, %lld stopped; rates over %.2f s", here,
		here < table_number(job, "size") ? " of this host" : "",
		(long long)table_number(job, "joined"),
		(long long)table_number(job, "stopped"),
		json_real_value(json_object_get(job, "interval")));
	screen_put(&s, line);
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

static void table_show_why(const json_t *job, bool brief)
{
	const json_t *line;
	size_t i;
	if (!brief) {
		json_array_foreach(json_object_get(job, "nodes"), i, line)
			puts(json_string_value(line));
		putchar('\n');
	}
	json_array_foreach(json_object_get(job, "why"), i, line)
		puts(json_string_value(line));
}

static void table_show_jobs(const json_t *lists)
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

/* ---- processes ---- */

#define PROGRAM_LEN 100

struct origin {
	char program[PROGRAM_LEN]; /* names of the programs, "" if none is known */
	time_t started;            /* of yod, or of the oldest member; 0: not known */
	uint32_t joined;           /* nodes that have joined */
};

/* Return the time at which a process started, in ticks since the machine did, or 0. */
static uint64_t jobs_start_ticks(uint32_t pid)
{
	struct p3_stat stat;
	return pid && p3_stat_read(pid, 0, &stat) ? stat.ticks : 0;
}

/* Append the name of a process's program, as its command line has it, without folders, to
 * a list, unless the list has it or no room for it. */
static void jobs_add_program(uint32_t pid, char list[PROGRAM_LEN])
{
	char path[40], word[4096], name[PROGRAM_LEN];
	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	FILE *f = pid ? fopen(path, "re") : NULL;
	size_t n = f ? fread(word, 1, sizeof word - 1, f) : 0, len = strlen(list);
	if (f)
		fclose(f);
	word[n] = '\0';
	const char *slash = strrchr(word, '/');
	snprintf(name, sizeof name, "%.60s", slash ? slash + 1 : word);
	n = strlen(name);
	for (const char *at = list; n && *at && (at = strstr(at, name)); at += n)
		if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ','))
			return;
	if (n && len + n + 3 <= PROGRAM_LEN)
		snprintf(list + len, PROGRAM_LEN - len, "%s%s", len ? ", " : "", name);
}

static void jobs_origin_of(const struct p3_look *look, struct origin *out)
{
	const struct p3_attach_msg *job = p3_look_job(look);
	uint64_t first = p3_look_domain(look) ? 0 : jobs_start_ticks(job->os_pid);
	struct timespec up;
	*out = (struct origin){.joined = 0};
	for (uint32_t i = 0; i < job->size; i++) {
		const struct p3_attach_msg *n = &p3_look_node(look, i)->msg;
		uint32_t pid = n->os_pid ? n->os_pid : n->started_pid;
		uint64_t ticks = p3_look_domain(look) ? jobs_start_ticks(pid) : 0;
		out->joined += n->state == P3_RDV_JOINED;
		if (!n->ended)
			jobs_add_program(pid, out->program);
		if (ticks && (!first || ticks < first))
			first = ticks;
	}
	clock_gettime(CLOCK_BOOTTIME, &up);
	out->started = first ? time(NULL) - up.tv_sec +
				       (time_t)(first / (uint64_t)sysconf(_SC_CLK_TCK))
			     : 0;
}

/* ---- the list ---- */

/* Return the picture of a job, or of a domain, after a look at it (rc 0). */
static json_t *jobs_row(uint32_t uid, int rc, struct p3_look *look)
{
	const struct passwd *user = getpwuid(uid);
	struct origin o;
	json_t *row = json_pack("{s:I}", "uid", P3_ROW_N(uid));
	json_object_set_new(
		row, "user", user ? json_string(user->pw_name) : json_sprintf("%u", uid));
	if (rc)
		return row;
	jobs_origin_of(look, &o);
	json_object_set_new(row, "size", json_integer(p3_look_job(look)->size));
	json_object_set_new(row, "joined", json_integer(o.joined));
	json_object_set_new(row, "started", json_integer(P3_ROW_N(o.started)));
	json_object_set_new(row, "program", p3_rows_text(o.program));
	p3_look_close(look);
	return row;
}

static void jobs_list_job(void *arg, uint32_t uid, uint32_t jid)
{
	struct p3_look *look;
	int rc = p3_look_open(jid, &look);
	json_t *row = jobs_row(uid, rc, look);
	json_object_set_new(row, "job", json_integer(jid));
	json_object_set_new(row, "answers", json_boolean(!rc));
	if (rc)
		json_object_set_new(row, "error",
			json_string(rc == -ETIMEDOUT ? "its yod does not answer"
						     : strerror(-rc)));
	json_array_append_new(arg, row);
}

static bool jobs_list_domain(void *arg, uint32_t uid, const char *name, uint32_t members)
{
	struct p3_look *look;
	int rc = p3_look_open_domain(name, &look);
	json_t *row = jobs_row(uid, rc, look);
	json_object_set_new(row, "name", json_string(name));
	json_object_set_new(row, "members", json_integer(members));
	json_array_append_new(arg, row);
	return false;
}

/* ---- the choice ---- */

struct newest {
	uint32_t n; /* jobs of this user, or of any if this user has none */
	bool own;
	uint32_t jid;
	uint64_t ticks;
};

static void jobs_see_job(void *arg, uint32_t uid, uint32_t jid)
{
	struct newest *best = arg;
	bool own = uid == getuid();
	uint64_t ticks = jobs_start_ticks(jid);
	if (own < best->own)
		return;
	if (own > best->own)
		*best = (struct newest){.own = true};
	best->n++;
	if (ticks >= best->ticks) {
		best->ticks = ticks;
		best->jid = jid;
	}
}

struct domains {
	uint32_t n;
	char *last;
};

static bool jobs_count_domain(void *arg, uint32_t uid, const char *name, uint32_t members)
{
	struct domains *domains = arg;
	(void)members;
	if (uid == getuid() && !domains->n++)
		snprintf(domains->last, P3_DOMAIN_NAMES + 1, "%s", name);
	return false;
}

/* ---- reports of other hosts ---- */

/* A report: the name of the host, with its zero byte, and the text. */
struct report {
	char *bytes;
	size_t len;
	int status;
};

struct reports {
	struct report *of; /* indexed by host */
	uint32_t n, got;   /* all, once the first has come; those that have come */
};

static int reports_take(struct reports *r, const struct p3_frame *f, const char *bytes)
{
	if (!r->of && f->number <= P3_MAX_NODES + 1) {
		r->n = (uint32_t)f->number;
		r->of = calloc(r->n + 1, sizeof *r->of);
	}
	if (f->op != P3_FRAME_REPORT || !r->of || f->node >= r->n || !f->len ||
		!memchr(bytes, '\0', f->len) || r->of[f->node].bytes)
		return -EPROTO;
	struct report *o = &r->of[f->node];
	o->bytes = malloc(f->len);
	if (!o->bytes)
		return -ENOMEM;
	memcpy(o->bytes, bytes, f->len);
	o->len = f->len;
	o->status = f->value;
	r->got++;
	return 0;
}

static int reports_collect(struct p3_frames *c, struct reports *r, int ms)
{
	struct p3_frame f;
	const char *bytes;
	do {
		int rc = p3_frames_await(c, p3_now_ms() + ms, false, &f, &bytes);
		rc = rc ? rc : reports_take(r, &f, bytes);
		if (rc)
			return rc == -ECONNRESET ? -EPIPE : rc;
	} while (!r->n || r->got < r->n);
	return 0;
}

/* Print a report of each host of a job; the bits (p3_frame_ask) choose its subject and
 * form.  Return 0 or -errno as p3_look_open(). */
static int reports_of_hosts(uint32_t job, int bits, uint32_t ms)
{
	struct p3_frames conn;
	struct reports r = {0};
	int sock = p3_look_connect_hosts(job);
	if (sock < 0)
		return sock;
	int rc = p3_frames_open(&conn, sock, sock);
	if (!rc) {
		struct p3_frame ask = {.op = P3_FRAME_ASK, .value = bits, .node = ms};
		p3_frames_send(&conn, ask, NULL);
		rc = reports_collect(&conn, &r, (int)ms + P3_QUERY_MS);
		p3_frames_close(&conn);
	}
	close(sock);
	for (uint32_t i = 0; !rc && i < r.n; i++) {
		const char *host = r.of[i].bytes, *text = host + strlen(host) + 1;
		if (!(bits & P3_ASK_JSON) && *host)
			printf("host %s:\n", host);
		if (r.of[i].status)
			p3_tool_say("host %s: no report: %s", host,
				p3_query_why(r.of[i].status));
		fwrite(text, 1, r.of[i].len - (size_t)(text - host), stdout);
		fflush(stdout);
	}
	for (uint32_t i = 0; r.of && i < r.n; i++)
		free(r.of[i].bytes);
	free(r.of);
	return rc;
}

/* ---- jobs that cannot be looked at ---- */

static int main_say_no_look(uint32_t job, int rc)
{
	static const struct {
		int rc;
		const char *text;
	} reasons[] = {{-ESRCH, "no job of this user, nor a pid of one, nor of a process "
				"with an interface; ptlstat alone lists jobs and domains "
				"(a job whose yod was killed is gone)"},
		{-EPERM, "another user's job; only that user and root may look at it"},
		{-ETIMEDOUT, "its yod does not answer within 3 s: it is starting nodes, "
			     "or was stopped (then kill -CONT it)"},
		{-ETOOMANYREFS, "for 3 s the processes of its user have had more "
				"descriptors under way to each other than `ulimit -n` of "
				"yod: end those that are stopped and take none"},
		{-EPIPE, "the job has ended"},
		{-EPROTO, "its yod is of another version; use the ptlstat that came with "
			  "it"}};
	_Static_assert(P3_LOOK_MS == 3000, "as the text says");
	size_t i = 0, n = sizeof reasons / sizeof *reasons;
	while (i < n && reasons[i].rc != rc)
		i++;
	if (i < n)
		p3_tool_say("%u: %s", job, reasons[i].text);
	else
		p3_tool_say("%u: cannot look at it: %s", job, strerror(-rc));
	return STATUS_NO_JOB;
}

static int main_say_no(const struct opt *opt, int rc)
{
	const char *name = opt->domain;
	if (!name)
		return main_say_no_look(opt->job, rc);
	if (rc == -ESRCH)
		p3_tool_say("--domain: '%s' has no members of this user; ptlstat alone "
			    "lists the domains that have",
			name);
	else if (rc == -EPIPE)
		p3_tool_say("the domain %s has no members any more", name);
	else
		p3_tool_say("the domain %s cannot be looked at: %s", name, strerror(-rc));
	return STATUS_NO_JOB;
}

/* ---- looking ---- */

static void main_show(const struct opt *opt, const struct ptl_picture *was,
	const struct ptl_picture *is)
{
	json_t *job = ptl_rows_job(was, is);
	if (opt->json)
		p3_rows_json(job);
	else
		table_show_job(job, isatty(STDOUT_FILENO) && opt->count != 1);
	json_decref(job);
	fflush(stdout);
}

static int main_look_on(const struct opt *opt, struct p3_look *look)
{
	struct ptl_picture was, is;
	int rc = ptl_picture_take(look, &was);
	if (rc)
		return rc;
	/* The first table is printed at once, without rates, which need a second
	 * picture. */
	if (!opt->json && isatty(STDOUT_FILENO) && opt->count != 1)
		main_show(opt, &was, &was);
	for (uint64_t n = 0; (!opt->count || n < opt->count) && !ferror(stdout); n++) {
		struct timespec t = {.tv_sec = opt->interval_ms / 1000,
			.tv_nsec = opt->interval_ms % 1000 * 1000000};
		while (nanosleep(&t, &t) && errno == EINTR)
			;
		rc = ptl_picture_take(look, &is);
		if (rc)
			break;
		main_show(opt, &was, &is);
		ptl_picture_drop(&was);
		was = is;
	}
	ptl_picture_drop(&was);
	return rc;
}

static int main_look_once(const struct opt *opt, struct p3_look *look)
{
	struct ptl_picture p;
	int rc = ptl_picture_take(look, &p);
	if (rc)
		return rc;
	json_t *rows =
		opt->what == CONF ? ptl_rows_conf(&p) : ptl_rows_why(&p, opt->json);
	if (opt->json)
		p3_rows_json(rows);
	else if (opt->what == CONF)
		p3_rows_table(rows, COLUMNS(table_conf));
	else
		table_show_why(rows, opt->brief);
	json_decref(rows);
	ptl_picture_drop(&p);
	return 0;
}

static int main_look(struct opt *opt)
{
	struct p3_look *look;
	int rc = opt->look_at  ? p3_look_open_socket((int)opt->look_at, &look)
		 : opt->domain ? p3_look_open_domain(opt->domain, &look)
			       : p3_look_open(opt->job, &look);
	if (rc)
		return main_say_no(opt, rc);
	if (!opt->count && !isatty(STDOUT_FILENO))
		opt->count = 1;
	rc = opt->what == LOOK ? main_look_on(opt, look) : main_look_once(opt, look);
	p3_look_close(look);
	return rc ? main_say_no(opt, rc) : STATUS_OK;
}

/* Show all hosts of a job. */
static int main_look_at_hosts(const struct opt *opt)
{
	int rc = 0, bits = (opt->what == WHY           ? P3_ASK_WHY
				   : opt->what == CONF ? P3_ASK_CONF
						       : 0) |
			   (opt->json ? P3_ASK_JSON : 0) |
			   (opt->brief ? P3_ASK_BRIEF : 0);
	uint64_t count = opt->what == LOOK && opt->count ? opt->count : 1;
	if (!opt->job)
		return MAIN_NO(
			"--hosts: no job is named; expected the pid of its yod, as "
			"in ptlstat --hosts 4711");
	if (opt->interval_ms > P3_QUERY_RATE_MS)
		return MAIN_NO("-i: %g s is too long for --hosts; expected %d at most",
			(double)opt->interval_ms / 1000, P3_QUERY_RATE_MS / 1000);
	for (uint64_t n = 0; n < count && !rc; n++)
		rc = reports_of_hosts(opt->job, bits, (uint32_t)opt->interval_ms);
	if (rc != -ESRCH)
		return rc ? main_say_no_look(opt->job, rc) : STATUS_OK;
	p3_tool_say(
		"--hosts: %u: no job of this user that yod --hosts runs from this host; "
		"expected the pid of such a yod (ranks of mpirun: ptlstat on each host)",
		opt->job);
	return STATUS_NO_JOB;
}

static int main_perform(struct opt opt)
{
	static char domain[P3_DOMAIN_NAMES + 1];
	struct newest newest = {.n = 0};
	struct domains domains = {0, domain};
	bool named = opt.job || opt.domain || opt.look_at;
	if (opt.hosts)
		return main_look_at_hosts(&opt);
	if (!named && opt.what == LOOK) {
		json_t *lists = json_pack("{s:[], s:[]}", "jobs", "domains");
		p3_look_jobs(jobs_list_job, json_object_get(lists, "jobs"));
		(void)p3_look_domains(
			jobs_list_domain, json_object_get(lists, "domains"));
		(opt.json ? p3_rows_json : table_show_jobs)(lists);
		json_decref(lists);
		return STATUS_OK;
	}
	/* Take the user's newest job, and name it if there are others; or the only
	 * domain. */
	if (!named)
		p3_look_jobs(jobs_see_job, &newest);
	if (newest.n > 1 && !opt.json)
		printf("job %u, the newest of %u\n", newest.jid, newest.n);
	opt.job = newest.n ? newest.jid : opt.job;
	if (!opt.job && !named)
		(void)p3_look_domains(jobs_count_domain, &domains);
	if (domains.n == 1)
		opt.domain = domain;
	if (named || opt.job || opt.domain)
		return main_look(&opt);
	return MAIN_NO("%s: this user has no job, and not just one domain; expected a "
		       "pid, or --domain NAME, of those that ptlstat alone lists",
		opt.what == CONF ? "conf" : "why");
}

int main(int argc, char **argv)
{
	struct opt opt = {.interval_ms = 1000};
	int at, rc = p3_options_read(&main_options, &opt, argc, argv, &at);
	for (; rc == P3_OPTIONS_GO && at < argc; at++)
		rc = main_take_word(&opt, argv[at]);
	return p3_tool_end(rc == P3_OPTIONS_GO ? main_perform(opt) : rc, STATUS_NO_JOB);
}
