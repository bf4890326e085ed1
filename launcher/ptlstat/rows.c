/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of names and values, made of a picture.  docs/operation.md describes them. */
#include "launcher/ptlstat/ptlstat.h"
#include "launcher/tools/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N(v) P3_ROW_N(v)

struct rows_name {
	uint32_t word; /* p3_counter */
	const char *name;
};

static const struct rows_name rows_counters[] = {{P3_C_HEARTBEAT, "heartbeat"},
	{P3_C_PASSES, "passes"}, {P3_C_DRAINED, "passes_drained"}, {P3_C_SENT, "sent"},
	{P3_C_SENT_BYTES, "sent_bytes"}, {P3_C_RECEIVED, "received"},
	{P3_C_RECEIVED_BYTES, "received_bytes"}, {P3_C_DROPS, "drops"},
	{P3_C_DROP_BYTES, "drop_bytes"}, {P3_C_TRUNCATED, "truncated"},
	{P3_C_KEPT, "kept"}, {P3_C_DENIED, "permission_violations"},
	{P3_C_PUT_INLINE, "puts_inline"}, {P3_C_PUT_EAGER, "puts_eager"},
	{P3_C_BULK_BYTES, "bulk_bytes"}, {P3_C_CMA_BYTES, "cma_bytes"},
	{P3_C_DIRECT_BYTES, "direct_bytes"}, {P3_C_CMA_FALLBACK, "cma_fallback"},
	{P3_C_KICKS, "kicks"}, {P3_C_WAKES, "wakes"}, {P3_C_PARK_LATE, "park_late"},
	{P3_C_WIRE_RINGS, "wire_rings"}, {P3_C_WIRE_NAPS, "wire_naps"},
	{P3_C_TICKS, "ticks"}, {P3_C_TAKEOVERS, "takeovers"},
	{P3_C_BAD_HEADERS, "bad_headers"}, {P3_C_LANES_FULL, "lanes_carved"},
	{P3_C_QUEUED, "blocked_times"}, {P3_C_LEASE_HOST, "lease_host"},
	{P3_C_LEASE_NIC, "lease_nic"}, {P3_C_CCI_SENT, "cci_sent"},
	{P3_C_CCI_RECEIVED, "cci_received"}, {P3_C_CCI_DROPS, "cci_drops"},
	{P3_C_CCI_RNR_SENT, "cci_rnr_sent"}, {P3_C_CCI_RNR_GOT, "cci_rnr_got"},
	{P3_C_CCI_REFUSED, "cci_refused"}, {P3_C_CCI_RETRIES, "cci_retries"},
	{P3_C_FAR_OUT, "far_frames_out"}, {P3_C_FAR_IN, "far_frames_in"},
	{P3_C_FAR_RESENT, "far_frames_resent"}, {P3_C_FAR_BREAKS, "far_breaks"},
	{P3_C_FAR_STRANGERS, "far_strangers"}, {0, NULL}};

static const struct rows_name rows_gauges[] = {{P3_G_MES, "match_entries"},
	{P3_G_MDS, "memory_descriptors"}, {P3_G_EQS, "event_queues"},
	{P3_G_PENDINGS, "pendings"}, {P3_G_PENDINGS_MOST, "pendings_limit"},
	{P3_G_QUEUED, "queued"}, {P3_G_BLOCKED, "blocked_peers"}, {P3_G_HOT, "lanes_hot"},
	{P3_G_ALIVE, "peers_alive"}, {P3_G_PULLS, "receives"}, {P3_G_SOURCES, "sources"},
	{P3_G_PARKED, "threads_asleep"}, {P3_G_WAITING, "threads_waiting"},
	{P3_G_WATCHER, "watcher"}, {P3_G_CARVED, "arena_bytes"},
	{P3_G_KEPT, "kept_peers"}, {P3_G_SLICE, "slice_bytes"},
	{P3_G_NIC_ASLEEP, "nic_asleep"}, {P3_G_CCI_ENDPOINTS, "cci_endpoints"},
	{P3_G_CCI_CONNECTIONS, "cci_connections"}, {P3_G_FAR_LINKS, "far_peers"},
	{P3_G_FAR_HELD, "far_frames_unacknowledged"}, {P3_G_FAR_PROMISED, "far_credits"},
	{0, NULL}};

static const struct rows_name rows_settings[] = {{P3_G_PAGE, "page_bytes"},
	{P3_G_CPUS, "cpus"}, {P3_G_CMA, "cma"}, {P3_G_BULK, "bulk"},
	{P3_G_MEMBARRIER, "membarrier"}, {P3_G_BASE_LANES, "base_lanes_only"},
	{P3_G_HEAP, "heap_bytes"}, {P3_G_SPIN, "spin_ns"}, {0, NULL}};

static json_t *rows_named(const struct rows_name *names, const uint64_t *word)
{
	json_t *o = json_object();
	for (; names->name; names++)
		json_object_set_new(o, names->name, json_integer(N(word[names->word])));
	return o;
}

/* ---- rates ---- */

struct rates {
	double seconds;
	const uint64_t *was, *is;
};

static double rates_of(const struct rates *r, enum p3_counter c)
{
	uint64_t d = r->is[c] - r->was[c];
	return r->seconds > 0 && (int64_t)d > 0 ? (double)d / r->seconds : 0;
}

/* Return the way in which most bytes come, or NULL. */
static const char *rates_mover(const struct rates *r)
{
	static const struct rows_name movers[] = {{P3_C_DIRECT_BYTES, "direct"},
		{P3_C_CMA_BYTES, "cma"}, {P3_C_BULK_BYTES, "bulk"}};
	const char *best = NULL;
	double most = 0;
	for (size_t k = 0; k < sizeof movers / sizeof movers[0]; k++)
		if (rates_of(r, movers[k].word) > most) {
			most = rates_of(r, movers[k].word);
			best = movers[k].name;
		}
	if (best)
		return best;
	if (rates_of(r, P3_C_PUT_EAGER) > rates_of(r, P3_C_PUT_INLINE))
		return "eager";
	return rates_of(r, P3_C_PUT_INLINE) > 0 ? "inline" : NULL;
}

/* ---- parts of a node ---- */

static json_t *rows_of_waits(const struct ptl_picture *p, const struct ptl_node *n)
{
	json_t *a = json_array();
	for (uint32_t k = 0; k < P3_WAITS; k++) {
		const struct p3_wait_line *w = &n->of.wait[k];
		bool event = w->kind == P3_WAIT_EVENT;
		json_t *queues = w->kind ? json_array() : NULL;
		for (uint32_t q = 0; event && q < w->n && q < P3_WAIT_HANDLES; q++)
			json_array_append_new(
				queues, json_integer(N(w->handle[q] & 0xffffff)));
		if (w->kind)
			json_array_append_new(a,
				json_pack("{s:s, s:I, s:f, s:b, s:o}", "for",
					event ? "event" : "command", "tid", N(w->tid),
					"seconds", ptl_seconds(p, w->since_ns), "forever",
					w->deadline_ns == UINT64_MAX, "queues", queues));
	}
	return a;
}

static json_t *rows_of_queues(const struct ptl_node *n)
{
	json_t *a = json_array();
	for (uint32_t k = 0; k < P3_QUEUES_SHOWN; k++)
		if (n->queue[k].there)
			json_array_append_new(
				a, json_pack("{s:I, s:I, s:I, s:I}", "number", N(k),
					   "size", N(n->queue[k].size), "unread",
					   N(ptl_unread_events(&n->queue[k])), "lost",
					   N(n->queue[k].lost)));
	return a;
}

static json_t *rows_of_endpoints(const struct ptl_picture *p, const struct ptl_node *n)
{
	json_t *a = json_array();
	for (uint32_t k = 0; k < P3_CCI_SHOWN; k++) {
		const struct p3_cci_line *e = &n->of.endpoint[k];
		if (e->number)
			json_array_append_new(a,
				json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}",
					"number", N(e->number), "buffers",
					N((uint32_t)e->buffers), "buffers_used",
					N(e->buffers >> 32), "unread", N(e->unread),
					"connections", N(e->conns >> 32), "requests",
					N((uint32_t)e->conns), "full_seconds",
					ptl_seconds(p, e->full_since), "requests_seconds",
					ptl_seconds(p, e->asked_since)));
	}
	return a;
}

static json_t *rows_of_peers(const struct ptl_picture *p, uint32_t from)
{
	json_t *a = json_array();
	for (uint32_t to = 0; to < p->size; to++) {
		struct ptl_pair pair = ptl_pair_of(p, from, to);
		if ((pair.queued || pair.out || pair.unread || pair.reading) &&
			!ptl_is_far(&p->node[to]))
			json_array_append_new(
				a, json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:f}",
					   "rank", N(to), "queued", N(pair.queued),
					   "unanswered", N(pair.out), "unread",
					   N(pair.unread), "reading", N(pair.reading),
					   "cold", pair.cold, "kept", pair.kept_at != 0,
					   "seconds", ptl_seconds(p, pair.since_ns)));
	}
	return a;
}

/* The nodes on other hosts with which a node has something to do. */
static json_t *rows_of_far_peers(
	const struct ptl_picture *p, uint32_t i, double *silent_out)
{
	json_t *a = json_array();
	struct ptl_far f;
	*silent_out = 0;
	for (uint32_t slot = 0; slot < p->node[i].nnodes; slot++) {
		if (!ptl_far_of(p, i, slot, &f))
			continue;
		if (f.silent > *silent_out)
			*silent_out = f.silent;
		json_array_append_new(
			a, json_pack("{s:I, s:s?, s:I, s:I, s:f, s:o}", "rank", N(slot),
				   "host", f.host, "queued", N(f.pair.queued),
				   "unanswered", N(f.pair.out), "seconds",
				   ptl_seconds(p, f.pair.since_ns), "silent",
				   f.silent < 0 ? json_null() : json_real(f.silent)));
	}
	return a;
}

/* The reasons for which requests came to nothing, with the last case of each. */
static json_t *rows_of_drops(const struct ptl_picture *p, const struct ptl_node *n)
{
	json_t *a = json_array();
	char text[260], request[260];
	for (uint32_t why = 1; why < P3_WHY_END; why++) {
		const struct p3_case *c = ptl_case_of(n, why);
		uint32_t rank = ptl_rank_of(p, c->node);
		if (!c->count)
			continue;
		p3_why_text(why, c, text, sizeof text);
		p3_case_text(c, request, sizeof request);
		json_array_append_new(a,
			json_pack("{s:s, s:I, s:s, s:s?, s:o, s:I, s:I}", "reason",
				p3_why_name(why), "count", N(c->count), "text", text,
				"request", why == P3_WHY_EVENT_LOST ? NULL : request,
				"rank", rank < p->size ? json_integer(rank) : json_null(),
				"nid", N((uint32_t)c->who), "pid", N(c->who >> 32)));
	}
	return a;
}

static json_t *rows_of_process(const struct ptl_picture *p, uint32_t slot, uint64_t who)
{
	uint32_t rank = ptl_rank_of(p, slot);
	return json_pack("{s:o, s:I, s:I}", "rank",
		slot != UINT32_MAX && rank < p->size ? json_integer(rank) : json_null(),
		"nid", N((uint32_t)who), "pid", N(who >> 32));
}

/* A tag may have 64 bits, more than JSON's integers. */
static json_t *rows_of_bits(uint64_t bits)
{
	char text[20];
	snprintf(text, sizeof text, "%#llx", (unsigned long long)bits);
	return json_string(text);
}

static json_t *rows_of_poll(const struct ptl_picture *p, const struct p3_poll *poll)
{
	json_t *first = json_null();
	if (poll->unexpected) {
		first = rows_of_process(p, poll->from_node, poll->from);
		json_object_set_new(first, "tag", rows_of_bits(poll->from_tag));
		json_object_set_new(first, "bytes", json_integer(N(poll->length)));
	}
	return json_pack("{s:s, s:I, s:f, s:f, s:o, s:o, s:o, s:I, s:I, s:o}", "library",
		ptl_poll_library(poll).s, "queue", N(poll->eq & 0xffffff), "seconds",
		ptl_seconds(p, poll->since_ns), "told", ptl_seconds(p, poll->told_ns),
		"source", rows_of_process(p, poll->source_node, poll->source), "tag",
		rows_of_bits(poll->tag), "ignore", rows_of_bits(poll->ignore), "receives",
		N(poll->receives), "unexpected", N(poll->unexpected), "first", first);
}

/* ---- nodes ---- */

static void rows_does(
	const struct ptl_picture *p, const struct ptl_node *n, char *text, size_t size)
{
	const struct p3_wait_line *w = ptl_oldest_wait(n);
	const struct p3_poll *poll = ptl_oldest_poll(p, n);
	if (!ptl_is_alive(n) || ptl_is_stopped(n) || n->msg.state != P3_RDV_JOINED)
		ptl_state_text(n, text, size);
	else if (n->msg.barrier_n)
		snprintf(text, size, "barrier %.1f s", n->msg.barrier_ms / 1e3);
	else if (w && w->kind == P3_WAIT_EVENT)
		snprintf(text, size, "EQ %u %.1f s", (unsigned)(w->handle[0] & 0xffffff),
			ptl_seconds(p, w->since_ns));
	else if (w)
		snprintf(text, size, "command %.1f s", ptl_seconds(p, w->since_ns));
	else if (poll)
		snprintf(text, size, "polls %.1f s", ptl_seconds(p, poll->since_ns));
	else
		snprintf(text, size, "%s", n->computes ? "runs" : "sleeps");
}

static void rows_add_seen(
	json_t *o, const struct ptl_picture *is, uint32_t i, const struct rates *r)
{
	static const char *const holders[] = {"free", "host", "nic"};
	const struct ptl_node *n = &is->node[i];
	const uint64_t *w = n->of.word;
	double silent, host = rates_of(r, P3_C_LEASE_HOST);
	double nic = rates_of(r, P3_C_LEASE_NIC); /* takes of the lease by its thread */
	json_t *rates = json_object(), *polls = json_array();
	json_t *settings = rows_named(rows_settings, w);
	json_t *far_peers = rows_of_far_peers(is, i, &silent);
	for (const struct rows_name *name = rows_counters; name->name; name++)
		json_object_set_new(
			rates, name->name, json_real(rates_of(r, name->word)));
	for (uint32_t k = 0; k < P3_POLLS; k++)
		if (n->of.poll[k].is.eq)
			json_array_append_new(polls, rows_of_poll(is, &n->of.poll[k].is));
	json_object_set_new(settings, "mode", json_string(ptl_mode_name(w[P3_G_MODE])));
	json_object_set_new(settings, "numa_node",
		w[P3_G_NUMA] ? json_integer(N(w[P3_G_NUMA]) - 1) : json_null());
	json_t *seen = json_pack("{s:f, s:s, s:o, s:o, s:o, s:o, s:i, s:s?, s:f, s:o, "
				 "s:o, s:o, s:o, s:o, s:o, s:o}",
		"age", ptl_seconds(is, w[P3_G_NOW_NS]), "lease",
		w[P3_G_LEASE] < 3 ? holders[w[P3_G_LEASE]] : "?", "counters",
		rows_named(rows_counters, w), "rates", rates, "gauges",
		rows_named(rows_gauges, w), "settings", settings, "nic_percent",
		host + nic > 0 ? (int)(100 * nic / (host + nic)) : 0, "mover",
		rates_mover(r), "silent_ms", silent * 1000, "waits", rows_of_waits(is, n),
		"queues", rows_of_queues(n), "endpoints", rows_of_endpoints(is, n),
		"polls", polls, "drops", rows_of_drops(is, n), "peers",
		rows_of_peers(is, i), "far_peers", far_peers);
	json_object_update(o, seen);
	json_decref(seen);
}

/* Return the node of an earlier picture that is the same incarnation, or NULL. */
static const struct ptl_node *rows_before(
	const struct ptl_picture *was, const struct ptl_node *n)
{
	for (uint32_t k = 0; k < was->size; k++)
		if (was->node[k].msg.incarnation == n->msg.incarnation &&
			was->node[k].slot == n->slot && !was->node[k].unseen)
			return &was->node[k];
	return NULL;
}

static json_t *rows_of_node(
	const struct ptl_picture *was, const struct ptl_picture *is, uint32_t i)
{
	static const uint64_t zero[P3_COUNTERS];
	const struct ptl_node *n = &is->node[i], *before = rows_before(was, n);
	/* A node without an earlier picture has joined anew, and counts from zero. */
	struct rates r = {(double)(is->at_ns - was->at_ns) / 1e9,
		before ? before->of.word : zero, n->of.word};
	char state[60], does[60];
	ptl_state_text(n, state, sizeof state);
	rows_does(is, n, does, sizeof does);
	json_t *o = json_pack("{s:I, s:I, s:I, s:s, s:s, s:b, s:o, s:s?}", "rank", N(i),
		"nid", N(n->msg.nid), "pid", N(ptl_process_of(n)), "state", state, "does",
		does, "stopped", ptl_is_stopped(n), "barrier",
		n->msg.barrier_n ? json_real(n->msg.barrier_ms / 1e3) : json_null(),
		"unseen", n->unseen);
	if (!n->unseen)
		rows_add_seen(o, is, i, &r);
	return o;
}

static json_t *rows_of_job(const struct ptl_picture *p)
{
	uint32_t i = 0, joined = 0, stopped = 0;
	while (i + 1 < p->size && ptl_is_far(&p->node[i]))
		i++;
	for (uint32_t k = 0; k < p->size; k++) {
		joined += p->node[k].msg.state == P3_RDV_JOINED;
		stopped += ptl_is_stopped(&p->node[k]);
	}
	return json_pack("{s:I, s:I, s:s?, s:I, s:I, s:I, s:I, s:s?}", "job", N(p->jid),
		"yod", N(p->yod), "domain", p->domain, "size", N(p->size), "here",
		N(p->here), "joined", N(joined), "stopped", N(stopped), "host",
		p3_look_host(p->look, i));
}

json_t *ptl_rows_job(const struct ptl_picture *was, const struct ptl_picture *is)
{
	json_t *o = rows_of_job(is), *nodes = json_array();
	for (uint32_t i = 0; i < is->size; i++)
		if (!ptl_is_far(&is->node[i]))
			json_array_append_new(nodes, rows_of_node(was, is, i));
	json_object_set_new(
		o, "interval", json_real((double)(is->at_ns - was->at_ns) / 1e9));
	json_object_set_new(o, "nodes", nodes);
	return o;
}

json_t *ptl_rows_why(const struct ptl_picture *p, bool apart)
{
	json_t *o = rows_of_job(p);
	ptl_why(p, apart, o);
	return o;
}

/* ---- settings ---- */

#define ENV_MOST 262144

/* Return the environment with which the node's program was started, or NULL. */
static char *conf_environment_of(const struct ptl_node *n, size_t *len_out)
{
	char path[40];
	uint32_t pid = ptl_process_of(n);
	snprintf(path, sizeof path, "/proc/%u/environ", pid);
	FILE *f = ptl_is_alive(n) ? fopen(path, "re") : NULL;
	if (!f)
		return NULL;
	char *env = malloc(ENV_MOST + 1);
	*len_out = env ? fread(env, 1, ENV_MOST, f) : 0;
	fclose(f);
	if (env)
		env[*len_out] = '\0';
	return env;
}

static const char *conf_size_text(uint64_t bytes, char text[30])
{
	if (bytes && bytes % (1 << 30) == 0)
		snprintf(text, 30, "%lluG", (unsigned long long)bytes >> 30);
	else if (bytes && bytes % (1 << 20) == 0)
		snprintf(text, 30, "%lluM", (unsigned long long)bytes >> 20);
	else
		snprintf(text, 30, "%llu", (unsigned long long)bytes);
	return text;
}

/* Return the value in effect, or NULL if the node's words do not tell the value. */
const char *ptl_conf_got(const uint64_t *w, enum p3_conf_id id, char text[30])
{
	switch (id) {
	case P3_CONF_MODE:
		return ptl_mode_name(w[P3_G_MODE]);
	case P3_CONF_MATCH:
		return strcmp(ptl_mode_name(w[P3_G_MODE]), "generic") == 0 ? "host"
									   : "firmware";
	case P3_CONF_HUGEPAGES:
		return w[P3_G_PAGE] >= P3_HUGE ? "on" : "off";
	case P3_CONF_MOVER:
		return !w[P3_G_CMA] ? "window" : w[P3_G_BULK] ? "auto" : "read";
	case P3_CONF_MEMBARRIER:
		return w[P3_G_MEMBARRIER] ? "on" : "off";
	case P3_CONF_LANES:
		return w[P3_G_BASE_LANES] ? "base" : NULL; /* else full or unswept */
	case P3_CONF_HEAP:
		return conf_size_text(w[P3_G_HEAP], text);
	default:
		return NULL;
	}
}

static void conf_add_node(json_t *rows, const struct ptl_node *n, uint32_t i)
{
	size_t len = 0;
	char text[30], *env = conf_environment_of(n, &len);
	for (enum p3_conf_id id = 0; id < P3_CONF_ROWS; id++) {
		const struct p3_conf_row *row = p3_conf_row(id);
		const char *set = NULL;
		size_t name = strlen(row->name);
		for (const char *at = env; at && at < env + len && !set;
			at += strlen(at) + 1)
			if (!strncmp(at, row->name, name) && at[name] == '=' &&
				at[name + 1])
				set = at + name + 1;
		if (row->internal && !set)
			continue;
		const char *got = ptl_conf_got(n->of.word, id, text);
		json_array_append_new(
			rows, json_pack("{s:I, s:s, s:o, s:o}", "node", N(i), "setting",
				      row->name, "set", p3_rows_text(set), "got",
				      p3_rows_text(got   ? got
						   : set ? set
							 : row->usual)));
	}
	free(env);
}

json_t *ptl_rows_conf(const struct ptl_picture *p)
{
	json_t *rows = json_array();
	char text[40];
	for (uint32_t i = 0; i < p->size; i++) {
		const struct ptl_node *n = &p->node[i];
		const char *instead = n->unseen;
		/* Values that are those of the node before are not shown again. */
		if (i && !n->unseen && !n[-1].unseen &&
			!memcmp(&n->of.word[P3_G_MODE], &n[-1].of.word[P3_G_MODE],
				(P3_G_SPIN + 1 - P3_G_MODE) * sizeof n->of.word[0])) {
			snprintf(text, sizeof text, "as node %u", i - 1);
			instead = text;
		}
		if (instead)
			json_array_append_new(rows, json_pack("{s:I, s:s}", "node", N(i),
							    "setting", instead));
		else
			conf_add_node(rows, n, i);
	}
	return rows;
}
