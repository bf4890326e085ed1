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

#include <search.h>
#include <stdlib.h>

struct flow_node {
	uint64_t key[2];
	uint32_t value;
};

struct map {
	void *root;
	bool full; /* true if memory ran out */
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
static uint32_t *flow_place(struct map *m, uint64_t high, uint64_t low)
{
	struct flow_node *fresh = malloc(sizeof *fresh);
	if (fresh)
		*fresh = (struct flow_node){{high, low}, TD_NONE};
	struct flow_node **at = fresh ? tsearch(fresh, &m->root, flow_compare) : NULL;
	if (!at || *at != fresh)
		free(fresh);
	m->full |= !at;
	return at ? &(*at)->value : NULL;
}

struct finder {
	struct td_trace *t;
	uint32_t room;
	struct map names, commands, posted, threads;
};

static uint32_t flow_new_message(struct finder *f, const struct td_message *m)
{
	struct td_trace *t = f->t;
	if (t->nmessages == f->room) {
		f->room = 2 * f->room + 64;
		void *more = realloc(t->message, f->room * sizeof *t->message);
		if (!more) {
			f->names.full = true;
			return TD_NONE;
		}
		t->message = more;
	}
	t->message[t->nmessages] = *m;
	return t->nmessages++;
}

/* Return the message that a record is about; a send begins one. */
static uint32_t flow_message_of(struct finder *f, const struct td_event *ev)
{
	bool in = ev->e.in;
	struct td_message m = {.from = in ? ev->e.peer : ev->e.node,
		.to = in ? ev->e.node : ev->e.peer,
		.name = ev->e.which,
		.command = TD_NONE,
		.send = TD_NONE,
		.take = TD_NONE,
		.match = TD_NONE,
		.deliver = TD_NONE,
		.event = TD_NONE,
		.taken = TD_NONE};
	if (ev->e.ring != P3_TRACE_FW || !ev->e.which || ev->e.peer == P3_TRACE_NOBODY)
		return TD_NONE;
	uint32_t *at = flow_place(&f->names, (uint64_t)m.from << 32 | m.to, m.name);
	if (!at)
		return TD_NONE;
	if (ev->e.point == P3_TRACE_SEND || *at == TD_NONE)
		*at = flow_new_message(f, &m);
	return *at;
}

static uint32_t flow_found(struct map *m, uint64_t high, uint64_t low)
{
	const struct flow_node key = {{high, low}, TD_NONE};
	struct flow_node *const *at = tfind(&key, &m->root, flow_compare);
	return at ? (*at)->value : TD_NONE;
}

static void flow_set_first(uint32_t *at, uint32_t i)
{
	if (*at == TD_NONE)
		*at = i;
}

static void flow_note_way(struct finder *f, struct td_message *m, uint32_t i)
{
	const struct td_event *ev = &f->t->event[i];
	if (ev->e.point == P3_TRACE_SEND) {
		m->send = i;
		m->command = flow_found(&f->commands, ev->block, ev->e.detail >> 32);
	}
	if (!ev->e.in)
		return;
	switch (ev->e.point) {
	case P3_TRACE_TAKE:
		flow_set_first(&m->take, i);
		return;
	case P3_TRACE_MATCH:
		flow_set_first(&m->match, i);
		return;
	case P3_TRACE_DELIVER:
		flow_set_first(&m->deliver, i);
		return;
	case P3_TRACE_EVENT:
		m->event = i;
		return;
	default:
		return;
	}
}

/* Note an event that a host thread took, at the message that had made it. */
static void flow_note_taken(struct finder *f, uint32_t i)
{
	struct td_event *ev = &f->t->event[i];
	uint32_t posted = flow_found(&f->posted, ev->block, ev->e.detail);
	if (posted == TD_NONE)
		return;
	ev->message = f->t->event[posted].message;
	if (ev->message != TD_NONE && f->t->event[posted].e.in)
		f->t->message[ev->message].taken = i;
}

static void flow_note_thread(struct finder *f, uint32_t i)
{
	const struct td_event *ev = &f->t->event[i];
	uint32_t *at = flow_place(&f->threads, ev->block, ev->e.which);
	if (!at)
		return;
	if (*at != TD_NONE)
		f->t->event[*at].after = i;
	*at = i;
}

static void flow_note(struct finder *f, uint32_t i)
{
	uint32_t *at;
	struct td_event *ev = &f->t->event[i];
	if (ev->e.ring == P3_TRACE_HOST)
		flow_note_thread(f, i);
	ev->message = flow_message_of(f, ev);
	if (ev->message != TD_NONE)
		flow_note_way(f, &f->t->message[ev->message], i);
	if (ev->e.ring == P3_TRACE_HOST && ev->e.point == P3_TRACE_COMMAND &&
		(at = flow_place(&f->commands, ev->block, ev->e.number + 1u)))
		*at = i;
	/* the place of an event is that of its queue and its number there */
	if (ev->e.ring == P3_TRACE_FW && ev->e.point == P3_TRACE_EVENT &&
		(at = flow_place(&f->posted, ev->block, ev->e.detail)))
		*at = i;
	if (ev->e.ring == P3_TRACE_HOST && ev->e.point == P3_TRACE_TAKEN)
		flow_note_taken(f, i);
}

int td_find_messages(struct td_trace *t)
{
	struct finder f = {.t = t};
	for (uint32_t i = 0; i < t->nevents; i++)
		flow_note(&f, i);
	for (uint32_t i = 0; i < t->nmessages; i++)
		if (t->message[i].command != TD_NONE)
			t->event[t->message[i].command].message = i;
	bool full = f.names.full || f.commands.full || f.posted.full || f.threads.full;
	tdestroy(f.names.root, free);
	tdestroy(f.commands.root, free);
	tdestroy(f.posted.root, free);
	tdestroy(f.threads.root, free);
	if (full)
		td_say("out of memory; expected room for all messages at once");
	return full ? -1 : 0;
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

static void slice_show(const struct slicer *s, uint32_t event, const char *name,
	int64_t from, int64_t to, unsigned depth)
{
	const struct td_event *ev = &s->t->event[event];
	const struct td_slice slice = {
		ev->e.node, slice_thread_of(ev), from, to, depth, event, name};
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
	if (ev->e.point == P3_TRACE_COMMAND && m && m->send != TD_NONE &&
		t->event[m->send].ns > ev->ns)
		end = t->event[m->send].ns;
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

static void slice_end_request(const struct slicer *s, struct block_state *b, uint32_t i)
{
	const struct td_event *ev = &s->t->event[i];
	if (b->take != TD_NONE && s->t->event[b->take].message == ev->message)
		slice_show(s, i, "request", s->t->event[b->take].ns, ev->ns, 1);
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
	if (ev->e.point == P3_TRACE_DELIVER || ev->e.point == P3_TRACE_WAIT)
		slice_end_request(s, b, i);
	if (ev->e.point == P3_TRACE_GIVEN)
		slice_end_lease(s, b, ev->ns);
	else if (ev->e.point != P3_TRACE_LEASE)
		slice_show(s, i, td_point(ev->e.point), from, ev->ns,
			b->take == TD_NONE ? 1 : 2);
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
				slice_show(&s, i, td_point(ev->e.point), ev->ns,
					slice_end_of_host(s.t, ev), 0);
		} else
			slice_firmware(&s, &state[t->event[i].block], i);
	for (uint32_t i = 0; i < t->nblocks; i++)
		slice_end_lease(&s, &state[i], state[i].last);
	free(state);
}

/* ---- arrows ---- */

/* Return the time at which the slice of a firmware's record begins. */
static int64_t slice_begin_of(const struct td_trace *t, const struct td_event *ev)
{
	if (ev->e.ring == P3_TRACE_HOST || ev->e.point == P3_TRACE_TAKE ||
		ev->before == TD_NONE)
		return ev->ns;
	return t->event[ev->before].ns;
}

unsigned td_stops(const struct td_trace *t, const struct td_filter *f,
	const struct td_message *m, struct td_stop out[TD_STOPS])
{
	const uint32_t way[TD_STOPS] = {m->command, m->send, m->take, m->event, m->taken};
	unsigned n = 0;
	for (unsigned i = 0; i < TD_STOPS; i++) {
		const struct td_event *ev = way[i] == TD_NONE ? NULL : &t->event[way[i]];
		if (!ev || !td_shows(t, f, ev))
			continue;
		int64_t at = slice_begin_of(t, ev);
		if (n && at < out[n - 1].ns)
			at = p3_earlier(out[n - 1].ns, ev->ns);
		out[n++] = (struct td_stop){way[i], ev->e.node, slice_thread_of(ev), at};
	}
	return n;
}
