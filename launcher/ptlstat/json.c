/* SPDX-License-Identifier: BSD-3-Clause */
/* ptlstat's output for programs: one object a line.  docs/operation.md describes them. */
#include "launcher/ptlstat/ptlstat.h"

#include <jansson.h>
#include <stdio.h>

static void js_set_number(json_t *o, const char *name, uint64_t v)
{
	json_object_set_new(o, name, json_integer((json_int_t)v));
}

static void js_print(json_t *o)
{
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

static json_t *js_named(const struct ptl_name *names, const uint64_t *word)
{
	json_t *o = json_object();
	for (; names->name; names++)
		js_set_number(o, names->name, word[names->word]);
	return o;
}

static json_t *js_rates(const struct ptl_node *was, const struct ptl_node *is, double s)
{
	json_t *o = json_object();
	for (const struct ptl_name *n = ptl_counters; n->name; n++) {
		int64_t d = (int64_t)(is->word[n->word] - (was ? was->word[n->word] : 0));
		double v = s > 0 && d > 0 ? (double)d / s : 0;
		json_object_set_new(o, n->name, json_real(v));
	}
	return o;
}

static json_t *js_settings(const uint64_t *word)
{
	json_t *o = js_named(ptl_settings, word);
	json_object_set_new(o, "mode", json_string(ptl_mode_name(word[P3_G_MODE])));
	json_object_set_new(o, "numa_node",
		word[P3_G_NUMA] ? json_integer((json_int_t)word[P3_G_NUMA] - 1)
				: json_null());
	return o;
}

static json_t *js_lease(const uint64_t *word)
{
	static const char *const names[] = {"free", "host", "nic"};
	uint64_t who = word[P3_G_LEASE];
	return json_string(who < 3 ? names[who] : "?");
}

static json_t *js_one_wait(const struct ptl_picture *p, const struct ptl_wait *w)
{
	json_t *o = json_object(), *queues = json_array();
	bool event = w->kind == P3_WAIT_EVENT;
	json_object_set_new(o, "for", json_string(event ? "event" : "command"));
	js_set_number(o, "tid", w->tid);
	json_object_set_new(o, "seconds", json_real(ptl_seconds(p, w->since_ns)));
	json_object_set_new(o, "forever", json_boolean(w->deadline_ns == UINT64_MAX));
	for (uint32_t k = 0; event && k < w->n && k < P3_WAIT_HANDLES; k++)
		json_array_append_new(
			queues, json_integer((json_int_t)(w->handle[k] & 0xffffff)));
	json_object_set_new(o, "queues", queues);
	return o;
}

static json_t *js_waits(const struct ptl_picture *p, const struct ptl_node *n)
{
	json_t *a = json_array();
	for (uint32_t k = 0; k < P3_WAITS; k++)
		if (n->wait[k].kind)
			json_array_append_new(a, js_one_wait(p, &n->wait[k]));
	return a;
}

static json_t *js_queues(const struct ptl_node *n)
{
	json_t *a = json_array();
	for (uint32_t k = 0; k < P3_QUEUES_SHOWN; k++) {
		if (!n->queue[k].there)
			continue;
		json_t *o = json_object();
		js_set_number(o, "number", k);
		js_set_number(o, "size", n->queue[k].size);
		js_set_number(o, "unread", ptl_unread_events(&n->queue[k]));
		js_set_number(o, "lost", n->queue[k].lost);
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *js_endpoints(const struct ptl_picture *p, const struct ptl_node *n)
{
	json_t *a = json_array();
	for (uint32_t k = 0; k < P3_CCI_SHOWN; k++) {
		const struct ptl_endpoint *e = &n->endpoint[k];
		if (!e->number)
			continue;
		json_t *o = json_object();
		js_set_number(o, "number", e->number);
		js_set_number(o, "buffers", e->buffers);
		js_set_number(o, "buffers_used", e->used);
		js_set_number(o, "unread", e->unread);
		js_set_number(o, "connections", e->conns);
		js_set_number(o, "requests", e->requests);
		json_object_set_new(
			o, "full_seconds", json_real(ptl_seconds(p, e->full_since)));
		json_object_set_new(
			o, "requests_seconds", json_real(ptl_seconds(p, e->asked_since)));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *js_peers(const struct ptl_picture *p, uint32_t from)
{
	json_t *a = json_array();
	for (uint32_t to = 0; to < p->size; to++) {
		struct ptl_pair pair = ptl_pair_of(p, from, to);
		if ((!pair.queued && !pair.out && !pair.unread && !pair.reading) ||
			ptl_is_far(&p->node[to]))
			continue;
		json_t *o = json_object();
		js_set_number(o, "rank", to);
		js_set_number(o, "queued", pair.queued);
		js_set_number(o, "unanswered", pair.out);
		js_set_number(o, "unread", pair.unread);
		js_set_number(o, "reading", pair.reading);
		json_object_set_new(o, "cold", json_boolean(pair.cold));
		json_object_set_new(
			o, "seconds", json_real(ptl_seconds(p, pair.since_ns)));
		json_array_append_new(a, o);
	}
	return a;
}

/* The nodes on other hosts with which a node has something to do. */
static json_t *js_far_peers(const struct ptl_picture *p, uint32_t i)
{
	json_t *a = json_array();
	struct ptl_far f;
	for (uint32_t slot = 0; slot < p->node[i].nnodes; slot++) {
		if (!ptl_far_of(p, i, slot, &f))
			continue;
		json_t *o = json_object();
		js_set_number(o, "rank", slot);
		json_object_set_new(
			o, "host", f.host ? json_string(f.host) : json_null());
		js_set_number(o, "queued", f.pair.queued);
		js_set_number(o, "unanswered", f.pair.out);
		json_object_set_new(
			o, "seconds", json_real(ptl_seconds(p, f.pair.since_ns)));
		json_object_set_new(
			o, "silent", f.silent < 0 ? json_null() : json_real(f.silent));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *js_rank_of(const struct ptl_picture *p, uint32_t slot)
{
	uint32_t i = ptl_rank_of(p, slot);
	return i < p->size ? json_integer(i) : json_null();
}

/* Describe one reason for which requests came to nothing, and its last case. */
static json_t *js_one_drop(
	const struct ptl_picture *p, uint32_t why, const struct p3_case *c)
{
	char text[260];
	json_t *o = json_object();
	json_object_set_new(o, "reason", json_string(p3_why_name(why)));
	js_set_number(o, "count", c->count);
	p3_why_text(why, c, text, sizeof text);
	json_object_set_new(o, "text", json_string(text));
	p3_case_text(c, text, sizeof text);
	json_object_set_new(
		o, "request", why == P3_WHY_EVENT_LOST ? json_null() : json_string(text));
	json_object_set_new(o, "rank", js_rank_of(p, c->node));
	js_set_number(o, "nid", (uint32_t)c->who);
	js_set_number(o, "pid", c->who >> 32);
	return o;
}

static json_t *js_drops(const struct ptl_picture *p, const struct ptl_node *n)
{
	json_t *a = json_array();
	for (uint32_t why = 1; why < P3_WHY_END; why++)
		if (n->cases[why].count)
			json_array_append_new(a, js_one_drop(p, why, &n->cases[why]));
	return a;
}

static void js_add_seen(json_t *o, const struct ptl_picture *was,
	const struct ptl_picture *is, uint32_t i)
{
	const struct ptl_node *n = &is->node[i];
	double s = (double)(is->at_ns - was->at_ns) / 1e9;
	json_object_set_new(o, "age", json_real(ptl_seconds(is, n->word[P3_G_NOW_NS])));
	json_object_set_new(o, "lease", js_lease(n->word));
	json_object_set_new(o, "counters", js_named(ptl_counters, n->word));
	json_object_set_new(o, "rates", js_rates(ptl_before(was, n), n, s));
	json_object_set_new(o, "gauges", js_named(ptl_gauges, n->word));
	json_object_set_new(o, "settings", js_settings(n->word));
	json_object_set_new(o, "waits", js_waits(is, n));
	json_object_set_new(o, "queues", js_queues(n));
	json_object_set_new(o, "endpoints", js_endpoints(is, n));
	json_object_set_new(o, "drops", js_drops(is, n));
	json_object_set_new(o, "peers", js_peers(is, i));
	json_object_set_new(o, "far_peers", js_far_peers(is, i));
}

static json_t *js_one_node(
	const struct ptl_picture *was, const struct ptl_picture *is, uint32_t i)
{
	const struct ptl_node *n = &is->node[i];
	char state[60];
	json_t *o = json_object();
	ptl_state_text(n, state, sizeof state);
	js_set_number(o, "rank", i);
	js_set_number(o, "nid", n->msg.nid);
	js_set_number(o, "pid", ptl_process_of(n));
	json_object_set_new(o, "state", json_string(state));
	json_object_set_new(o, "stopped", json_boolean(ptl_is_stopped(n)));
	json_object_set_new(o, "barrier",
		n->msg.barrier_n ? json_real(n->msg.barrier_ms / 1e3) : json_null());
	json_object_set_new(
		o, "unseen", n->unseen ? json_string(n->unseen) : json_null());
	if (!n->unseen)
		js_add_seen(o, was, is, i);
	return o;
}

static json_t *js_job(const struct ptl_picture *p)
{
	json_t *o = json_object();
	js_set_number(o, "job", p->jid);
	js_set_number(o, "yod", p->yod);
	json_object_set_new(
		o, "domain", p->domain ? json_string(p->domain) : json_null());
	js_set_number(o, "size", p->size);
	uint32_t i = 0;
	while (i + 1 < p->size && ptl_is_far(&p->node[i]))
		i++;
	const char *host = p3_look_host(p->look, i);
	json_object_set_new(o, "host", host ? json_string(host) : json_null());
	return o;
}

void ptl_json_job(const struct ptl_picture *was, const struct ptl_picture *is)
{
	json_t *o = js_job(is), *nodes = json_array();
	json_object_set_new(
		o, "interval", json_real((double)(is->at_ns - was->at_ns) / 1e9));
	for (uint32_t i = 0; i < is->size; i++)
		if (!ptl_is_far(&is->node[i]))
			json_array_append_new(nodes, js_one_node(was, is, i));
	json_object_set_new(o, "nodes", nodes);
	js_print(o);
}

static void js_add_job(void *arg, uint32_t uid, uint32_t jid)
{
	struct p3_look *look;
	struct ptl_origin from;
	json_t *o = json_object();
	js_set_number(o, "job", jid);
	js_set_number(o, "uid", uid);
	int rc = p3_look_open(jid, &look);
	json_object_set_new(o, "answers", json_boolean(!rc));
	if (!rc) {
		ptl_origin_of(look, &from);
		js_set_number(o, "size", p3_look_job(look)->size);
		js_set_number(o, "joined", from.joined);
		js_set_number(o, "started", (uint64_t)from.started);
		json_object_set_new(o, "program", json_string(from.program));
		p3_look_close(look);
	}
	json_array_append_new(arg, o);
}

static void js_add_domain(void *arg, uint32_t uid, const char *name, uint32_t members)
{
	json_array_append_new(
		arg, json_pack("{s:s,s:I,s:I}", "name", name, "uid", (json_int_t)uid,
			     "members", (json_int_t)members));
}

void ptl_json_jobs(void)
{
	json_t *jobs = json_array(), *domains = json_array();
	p3_look_jobs(js_add_job, jobs);
	p3_look_domains(js_add_domain, domains);
	js_print(json_pack("{s:o,s:o}", "jobs", jobs, "domains", domains));
}

struct said {
	json_t *nodes, *why;
};

static void js_hear(void *arg, bool conclusion, const char *text)
{
	struct said *said = arg;
	json_array_append_new(conclusion ? said->why : said->nodes, json_string(text));
}

void ptl_json_why(const struct ptl_picture *p)
{
	struct said said = {json_array(), json_array()};
	json_t *o = js_job(p);
	ptl_why(p, true, js_hear, &said);
	json_object_set_new(o, "nodes", said.nodes);
	json_object_set_new(o, "why", said.why);
	js_print(o);
}
