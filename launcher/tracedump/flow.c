/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records about each message, and slices of time.
 *
 * Both ends name a message by the sender's lane and the position there.  A lane of a
 * later incarnation has the same positions: in order of time, a record belongs to the
 * last message of its name that was sent.
 */
#include "launcher/tracedump/tracedump.h"
#include "launcher/loop.h"
#include "launcher/tools/options.h"

#include <search.h>
#include <stdlib.h>

struct flow_node {
	uint64_t key[2];
	uint32_t value;
};

/* Kinds of keys: the last message of a name, a command by its record, an event by its
 * queue and number, the last record of a thread and of a ring. */
enum flow_kind { FLOW_NAME, FLOW_COMMAND, FLOW_POSTED, FLOW_THREAD, FLOW_RING };

struct finder {
	struct td_trace *t;
	uint32_t room;
	bool apart; /* times are of several clocks, and tell nothing of order */
	bool full;  /* memory ran out */
	void *root; /* tree of flow_node */
};

static int flow_compare(const void *x, const void *y)
{
	const struct flow_node *a = x, *b = y;
	if (a->key[0] != b->key[0])
		return a->key[0] < b->key[0] ? -1 : 1;
	return (a->key[1] > b->key[1]) - (a->key[1] < b->key[1]);
}

/* Return the place of the value for this key, or NULL without memory.  A new key has the
 * value TD_NONE. */
static uint32_t *flow_place(
	struct finder *f, enum flow_kind kind, uint32_t of, uint64_t low)
{
	struct flow_node *fresh = malloc(sizeof *fresh);
	if (fresh)
		*fresh = (struct flow_node){{(uint64_t)kind << 32 | of, low}, TD_NONE};
	struct flow_node **at = fresh ? tsearch(fresh, &f->root, flow_compare) : NULL;
	if (!at || *at != fresh)
		free(fresh);
	f->full |= !at;
	return at ? &(*at)->value : NULL;
}

static void flow_put(
	struct finder *f, enum flow_kind kind, uint32_t of, uint64_t low, uint32_t value)
{
	uint32_t *at = flow_place(f, kind, of, low);
	if (at)
		*at = value;
}

static uint32_t flow_found(
	const struct finder *f, enum flow_kind kind, uint32_t of, uint64_t low)
{
	const struct flow_node key = {{(uint64_t)kind << 32 | of, low}, TD_NONE};
	struct flow_node *const *at = tfind(&key, &f->root, flow_compare);
	return at ? (*at)->value : TD_NONE;
}

/* Return the message that a record is about; a send begins one, unless times tell
 * nothing. */
static uint32_t flow_message_of(struct finder *f, const struct td_event *ev)
{
	bool in = ev->e.in;
	struct td_trace *t = f->t;
	struct td_message m = {.from = in ? ev->e.peer : ev->e.node,
		.to = in ? ev->e.node : ev->e.peer,
		.name = ev->e.which};
	for (unsigned i = 0; i < TD_WAY; i++)
		m.way[i] = TD_NONE;
	if (ev->e.ring != P3_TRACE_FW || !ev->e.which || ev->e.peer == P3_TRACE_NOBODY)
		return TD_NONE;
	uint32_t *at = flow_place(f, FLOW_NAME, (uint32_t)m.from << 16 | m.to, m.name);
	if (!at)
		return TD_NONE;
	if (*at != TD_NONE && (ev->e.point != P3_TRACE_SEND || f->apart))
		return *at;
	if (t->nmessages == f->room) {
		f->room = 2 * f->room + 64;
		void *more = realloc(t->message, f->room * sizeof *t->message);
		f->full |= !more;
		if (!more)
			return *at = TD_NONE;
		t->message = more;
	}
	t->message[t->nmessages] = m;
	return *at = t->nmessages++;
}

/* Note the record as one on the message's way: the first of its point, but the last
 * event. */
static void flow_note_way(struct finder *f, struct td_message *m, uint32_t i)
{
	/* the points of a way, and the end of the message that records them */
	static const struct {
		uint8_t way, in;
	} ways[P3_TRACE_POINTS_N] = {[P3_TRACE_SEND] = {TD_SEND + 1, 0},
		[P3_TRACE_ANSWERED] = {TD_ANSWERED + 1, 0},
		[P3_TRACE_TAKE] = {TD_TAKE + 1, 1},
		[P3_TRACE_MATCH] = {TD_MATCH + 1, 1},
		[P3_TRACE_DELIVER] = {TD_DELIVER + 1, 1},
		[P3_TRACE_EVENT] = {TD_EVENT + 1, 1},
		[P3_TRACE_ANSWER] = {TD_ANSWER + 1, 1}};
	const struct td_event *ev = &f->t->event[i];
	if (ev->e.point >= P3_TRACE_POINTS_N || !ways[ev->e.point].way ||
		ways[ev->e.point].in != ev->e.in)
		return;
	uint8_t way = ways[ev->e.point].way - 1;
	m->several |= m->way[way] == TD_NONE ? 0 : 1u << way;
	if (m->way[way] == TD_NONE || way == TD_EVENT)
		m->way[way] = i;
	if (way == TD_SEND)
		m->way[TD_COMMAND] =
			flow_found(f, FLOW_COMMAND, ev->block, ev->e.detail >> 32);
}

static void flow_note(struct finder *f, uint32_t i)
{
	struct td_event *ev = &f->t->event[i];
	ev->before = flow_found(f, FLOW_RING, ev->block, ev->e.ring);
	flow_put(f, FLOW_RING, ev->block, ev->e.ring, i);
	if (ev->e.ring == P3_TRACE_FW) {
		ev->message = flow_message_of(f, ev);
		if (ev->message != TD_NONE)
			flow_note_way(f, &f->t->message[ev->message], i);
		/* the place of an event is that of its queue and its number there */
		if (ev->e.point == P3_TRACE_EVENT)
			flow_put(f, FLOW_POSTED, ev->block, ev->e.detail, i);
		return;
	}
	uint32_t last = flow_found(f, FLOW_THREAD, ev->block, ev->e.which);
	if (last != TD_NONE)
		f->t->event[last].after = i;
	flow_put(f, FLOW_THREAD, ev->block, ev->e.which, i);
	ev->message = ev->after = TD_NONE;
	if (ev->e.point == P3_TRACE_COMMAND)
		flow_put(f, FLOW_COMMAND, ev->block, ev->e.number + 1u, i);
	uint32_t posted = ev->e.point == P3_TRACE_TAKEN
				  ? flow_found(f, FLOW_POSTED, ev->block, ev->e.detail)
				  : TD_NONE;
	if (posted == TD_NONE)
		return;
	/* A host thread took an event: note it at the message that had made it. */
	ev->message = f->t->event[posted].message;
	if (ev->message != TD_NONE && f->t->event[posted].e.in)
		f->t->message[ev->message].way[TD_TAKEN] = i;
}

int td_find_messages(struct td_trace *t, bool apart)
{
	struct finder f = {.t = t, .apart = apart};
	free(t->message);
	t->message = NULL;
	t->nmessages = 0;
	for (uint32_t i = 0; i < t->nevents; i++)
		flow_note(&f, i);
	for (uint32_t i = 0; i < t->nmessages; i++)
		if (t->message[i].way[TD_COMMAND] != TD_NONE)
			t->event[t->message[i].way[TD_COMMAND]].message = i;
	tdestroy(f.root, free);
	if (f.full)
		p3_tool_say("out of memory; expected room for all messages at once");
	return f.full ? -1 : 0;
}

/* ---- slices ---- */

#define BRIEF_NS 20 /* length of a slice that has no end */

struct slicer {
	const struct td_trace *t;
	const struct td_filter *f;
	void (*show)(void *arg, const struct td_slice *s);
	void *arg;
};

struct block_state {
	int64_t lease; /* start of the lease; -1: none */
	uint32_t lease_event;
	uint32_t take; /* TD_NONE: no request */
	int64_t last;
};

static uint32_t slice_thread_of(const struct td_event *ev)
{
	return ev->e.ring == P3_TRACE_FW ? 0 : ev->e.which;
}

static void slice_show(const struct slicer *s, uint32_t event, const char *frame_name,
	int64_t from, int64_t to, unsigned depth)
{
	const struct td_event *ev = &s->t->event[event];
	bool frame = frame_name != NULL;
	const char *name = frame ? frame_name : td_point(ev->e.point);
	const struct td_slice slice = {
		ev->e.node, slice_thread_of(ev), from, to, depth, event, frame, name};
	if (to >= from && td_shows(s->t, s->f, ev))
		s->show(s->arg, &slice);
}

/* ---- hosts ---- */

static int64_t slice_end_of_host(const struct td_trace *t, const struct td_event *ev)
{
	int64_t next = ev->after == TD_NONE ? INT64_MAX : t->event[ev->after].ns;
	const struct td_message *m =
		ev->message == TD_NONE ? NULL : &t->message[ev->message];
	int64_t end = ev->ns + BRIEF_NS;
	if (ev->e.point == P3_TRACE_PARK)
		return next == INT64_MAX ? end : next;
	if (ev->e.point == P3_TRACE_COMMAND && m && m->way[TD_SEND] != TD_NONE &&
		t->event[m->way[TD_SEND]].ns > ev->ns)
		end = t->event[m->way[TD_SEND]].ns;
	return p3_earlier(end, next);
}

/* ---- firmware ---- */

static void slice_end_lease(const struct slicer *s, struct block_state *b, int64_t at)
{
	if (b->lease >= 0)
		slice_show(s, b->lease_event, "lease", b->lease, at, 0);
	b->lease = -1;
	b->take = TD_NONE;
}

static void slice_firmware(const struct slicer *s, struct block_state *b, uint32_t i)
{
	const struct td_event *ev = &s->t->event[i];
	int64_t from = b->lease >= 0 ? b->last : ev->ns;
	if (ev->e.point == P3_TRACE_LEASE || b->lease < 0) {
		slice_end_lease(s, b, b->last);
		b->lease = ev->ns;
		b->lease_event = i;
	}
	if (ev->e.point == P3_TRACE_DELIVER || ev->e.point == P3_TRACE_WAIT) {
		if (b->take != TD_NONE && s->t->event[b->take].message == ev->message)
			slice_show(s, i, "request", s->t->event[b->take].ns, ev->ns, 1);
		b->take = TD_NONE;
	}
	if (ev->e.point == P3_TRACE_GIVEN)
		slice_end_lease(s, b, ev->ns);
	else if (ev->e.point != P3_TRACE_LEASE)
		slice_show(s, i, NULL, from, ev->ns, b->take == TD_NONE ? 1 : 2);
	if (ev->e.point == P3_TRACE_TAKE)
		b->take = i;
	b->last = ev->ns;
}

void td_each_slice(const struct td_trace *t, const struct td_filter *f,
	void (*show_one)(void *arg, const struct td_slice *s), void *arg)
{
	const struct slicer s = {t, f, show_one, arg};
	struct block_state *state = calloc(t->nblocks + 1, sizeof *state);
	if (!state)
		return;
	for (uint32_t i = 0; i < t->nblocks; i++)
		state[i] = (struct block_state){.lease = -1, .take = TD_NONE};
	for (uint32_t i = 0; i < t->nevents; i++)
		if (t->event[i].e.ring == P3_TRACE_HOST) {
			const struct td_event *ev = &s.t->event[i];
			if (ev->e.point != P3_TRACE_WAKE)
				slice_show(&s, i, NULL, ev->ns,
					slice_end_of_host(s.t, ev), 0);
		} else
			slice_firmware(&s, &state[t->event[i].block], i);
	for (uint32_t i = 0; i < t->nblocks; i++)
		slice_end_lease(&s, &state[i], state[i].last);
	free(state);
}

/* ---- arrows ---- */

unsigned td_stops(const struct td_trace *t, const struct td_filter *f,
	const struct td_message *m, struct td_stop out[TD_STOPS])
{
	static const uint8_t stops[TD_STOPS] = {
		TD_COMMAND, TD_SEND, TD_TAKE, TD_EVENT, TD_TAKEN};
	unsigned n = 0;
	for (unsigned i = 0; i < TD_STOPS; i++) {
		uint32_t at_stop = m->way[stops[i]];
		const struct td_event *ev =
			at_stop == TD_NONE ? NULL : &t->event[at_stop];
		if (!ev || !td_shows(t, f, ev))
			continue;
		/* the time at which the slice of a firmware's record begins */
		bool after = ev->e.ring != P3_TRACE_HOST &&
			     ev->e.point != P3_TRACE_TAKE && ev->before != TD_NONE;
		int64_t at = after ? t->event[ev->before].ns : ev->ns;
		if (n && at < out[n - 1].ns)
			at = p3_earlier(out[n - 1].ns, ev->ns);
		out[n++] = (struct td_stop){at_stop, ev->e.node, slice_thread_of(ev), at};
	}
	return n;
}
