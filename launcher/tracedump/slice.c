/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slices of time.  A record is a moment; the firmware's work between two records is a
 * slice that ends at the later one.  Slices lie inside that of the lease, and those of
 * a request also inside the slice from its take to its delivery.  A host's command
 * lasts until its request is sent.
 */
#include "launcher/tracedump/tracedump.h"

#include <stdlib.h>
#include <string.h>

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

static uint32_t thread_of(const struct td_event *ev)
{
	return ev->e.ring == P3_TRACE_FW ? 0 : ev->e.which;
}

static void show(const struct slicer *s, uint32_t event, const char *name, int64_t from,
	int64_t to, unsigned depth)
{
	const struct td_event *ev = &s->t->event[event];
	const struct td_slice slice = {
		ev->e.node, thread_of(ev), from, to, depth, event, name};
	if (to >= from && td_shows(s->t, s->f, ev))
		s->show(s->arg, &slice);
}

/* ---- hosts ---- */

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t end_of_host(const struct td_trace *t, const struct td_event *ev)
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
	return earlier(end, next);
}

static void host(const struct slicer *s, uint32_t i)
{
	const struct td_event *ev = &s->t->event[i];
	if (ev->e.point != P3_TRACE_WAKE)
		show(s, i, td_point(ev->e.point), ev->ns, end_of_host(s->t, ev), 0);
}

/* ---- firmware ---- */

static void end_lease(const struct slicer *s, struct block_state *b, int64_t at)
{
	if (b->lease >= 0)
		show(s, b->lease_event, "lease", b->lease, at, 0);
	b->lease = -1;
	b->take = TD_NONE;
}

static bool ends_request(unsigned point)
{
	return point == P3_TRACE_DELIVER || point == P3_TRACE_WAIT;
}

static void end_request(const struct slicer *s, struct block_state *b, uint32_t i)
{
	const struct td_event *ev = &s->t->event[i];
	if (b->take != TD_NONE && s->t->event[b->take].message == ev->message)
		show(s, i, "request", s->t->event[b->take].ns, ev->ns, 1);
	b->take = TD_NONE;
}

static void firmware(const struct slicer *s, struct block_state *b, uint32_t i)
{
	const struct td_event *ev = &s->t->event[i];
	int64_t from = b->lease >= 0 ? b->last : ev->ns;
	if (ev->e.point == P3_TRACE_LEASE || b->lease < 0) {
		end_lease(s, b, b->last);
		b->lease = ev->ns;
		b->lease_event = i;
	}
	if (ends_request(ev->e.point))
		end_request(s, b, i);
	if (ev->e.point == P3_TRACE_GIVEN)
		end_lease(s, b, ev->ns);
	else if (ev->e.point != P3_TRACE_LEASE)
		show(s, i, td_point(ev->e.point), from, ev->ns,
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
		if (t->event[i].e.ring == P3_TRACE_HOST)
			host(&s, i);
		else
			firmware(&s, &state[t->event[i].block], i);
	for (uint32_t i = 0; i < t->nblocks; i++)
		end_lease(&s, &state[i], state[i].last);
	free(state);
}

/* ---- arrows ---- */

/* Return the time at which the slice of a firmware's record begins. */
static int64_t begin_of(const struct td_trace *t, const struct td_event *ev)
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
		int64_t at = begin_of(t, ev);
		if (n && at < out[n - 1].ns)
			at = earlier(out[n - 1].ns, ev->ns);
		out[n++] = (struct td_stop){way[i], ev->e.node, thread_of(ev), at};
	}
	return n;
}
