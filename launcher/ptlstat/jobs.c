/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of jobs and domains, the choice of one, and the reports of other hosts. */
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/tools/rows.h"
#include "launcher/yod/frames.h"
#include "shm/process.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM_LEN 100

struct origin {
	char program[PROGRAM_LEN]; /* names of the programs, "" if none is known */
	time_t started;            /* of yod, or of the oldest member; 0: not known */
	uint32_t joined;           /* nodes that have joined */
};

/* ---- processes ---- */

/* Return the time at which a process started, in ticks since the machine did, or 0. */
static uint64_t jobs_start_ticks(uint32_t pid)
{
	struct p3_stat stat;
	return pid && p3_stat_read(pid, 0, &stat) ? stat.ticks : 0;
}

static time_t jobs_clock_of(uint64_t ticks)
{
	struct timespec up;
	clock_gettime(CLOCK_BOOTTIME, &up);
	return ticks ? time(NULL) - up.tv_sec +
			       (time_t)(ticks / (uint64_t)sysconf(_SC_CLK_TCK))
		     : 0;
}

/* Read the name of a process's program, as its command line has it, without folders. */
static bool jobs_read_program(uint32_t pid, char name[PROGRAM_LEN])
{
	char path[40], word[4096];
	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	FILE *f = pid ? fopen(path, "re") : NULL;
	size_t n = f ? fread(word, 1, sizeof word - 1, f) : 0;
	if (f)
		fclose(f);
	word[n] = '\0';
	const char *slash = strrchr(word, '/');
	snprintf(name, PROGRAM_LEN, "%.60s", slash ? slash + 1 : word);
	return *name;
}

/* Append a name to a list, unless the list has it or no room for it. */
static void jobs_add_name(char list[PROGRAM_LEN], const char *name)
{
	size_t len = strlen(list), n = strlen(name);
	for (const char *at = list; *at && (at = strstr(at, name)); at += n)
		if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ','))
			return;
	if (len + n + 3 <= PROGRAM_LEN)
		snprintf(list + len, PROGRAM_LEN - len, "%s%s", len ? ", " : "", name);
}

static void jobs_origin_of(const struct p3_look *look, struct origin *out)
{
	const struct p3_attach_msg *job = p3_look_job(look);
	uint64_t first = p3_look_domain(look) ? 0 : jobs_start_ticks(job->os_pid);
	*out = (struct origin){.joined = 0};
	for (uint32_t i = 0; i < job->size; i++) {
		const struct p3_attach_msg *n = &p3_look_node(look, i)->msg;
		char name[PROGRAM_LEN];
		uint32_t pid = n->os_pid ? n->os_pid : n->started_pid;
		uint64_t ticks = p3_look_domain(look) ? jobs_start_ticks(pid) : 0;
		out->joined += n->state == P3_RDV_JOINED;
		if (!n->ended && jobs_read_program(pid, name))
			jobs_add_name(out->program, name);
		if (ticks && (!first || ticks < first))
			first = ticks;
	}
	out->started = jobs_clock_of(first);
}

/* ---- the list ---- */

/* Return what is known of a job, or of a domain, after a look at it (rc 0). */
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

static void jobs_list_domain(void *arg, uint32_t uid, const char *name, uint32_t members)
{
	struct p3_look *look;
	int rc = p3_look_open_domain(name, &look);
	json_t *row = jobs_row(uid, rc, look);
	json_object_set_new(row, "name", json_string(name));
	json_object_set_new(row, "members", json_integer(members));
	json_array_append_new(arg, row);
}

json_t *ptl_rows_jobs(void)
{
	json_t *jobs = json_array(), *domains = json_array();
	p3_look_jobs(jobs_list_job, jobs);
	p3_look_domains(jobs_list_domain, domains);
	return json_pack("{s:o, s:o}", "jobs", jobs, "domains", domains);
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

uint32_t ptl_newest_job(uint32_t *jobs_out)
{
	struct newest best = {.n = 0};
	p3_look_jobs(jobs_see_job, &best);
	*jobs_out = best.n;
	return best.jid;
}

struct domains {
	uint32_t n;
	char *last;
};

static void jobs_count_domain(void *arg, uint32_t uid, const char *name, uint32_t members)
{
	struct domains *domains = arg;
	(void)members;
	if (uid == getuid() && !domains->n++)
		snprintf(domains->last, P3_DOMAIN_NAMES + 1, "%s", name);
}

bool ptl_only_domain(char name[P3_DOMAIN_NAMES + 1])
{
	struct domains domains = {0, name};
	p3_look_domains(jobs_count_domain, &domains);
	return domains.n == 1;
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
		int rc = p3_frames_next(c, &f, &bytes);
		if (!rc)
			rc = reports_take(r, &f, bytes);
		else if (rc == -EAGAIN && (p3_frames_flush(c) || !p3_frames_wait(c, ms)))
			rc = -EPIPE;
		else if (rc == -EAGAIN && (rc = p3_frames_fill(c)) == -EAGAIN)
			rc = -ETIMEDOUT;
		if (rc)
			return rc;
	} while (!r->n || r->got < r->n);
	return 0;
}

static void reports_print(const struct report *r, bool plain)
{
	const char *text = r->bytes + strlen(r->bytes) + 1;
	size_t len = r->len - strlen(r->bytes) - 1;
	if (!plain && *r->bytes)
		printf("host %s:\n", r->bytes);
	if (r->status)
		fprintf(stderr, "ptlstat: host %s: no report: %s\n", r->bytes,
			r->status == EPIPE ? "its agent has ended" : strerror(r->status));
	fwrite(text, 1, len, stdout);
	fflush(stdout);
}

int ptl_hosts(uint32_t job, int bits, double interval)
{
	struct p3_frames conn;
	struct reports r = {0};
	int sock = p3_look_connect_hosts(job);
	if (sock < 0)
		return sock;
	uint32_t ms = (uint32_t)(interval * 1000);
	int rc = p3_frames_open(&conn, sock, sock);
	if (!rc) {
		struct p3_frame ask = {.op = P3_FRAME_ASK, .value = bits, .node = ms};
		p3_frames_send(&conn, ask, NULL);
		rc = reports_collect(&conn, &r, (int)ms + P3_QUERY_MS);
		p3_frames_close(&conn);
	}
	close(sock);
	for (uint32_t i = 0; !rc && i < r.n; i++)
		reports_print(&r.of[i], bits & P3_ASK_JSON);
	for (uint32_t i = 0; r.of && i < r.n; i++)
		free(r.of[i].bytes);
	free(r.of);
	return rc;
}
