/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records about each message.  Both ends name a message by the sender's lane and
 * the position there.  A lane of a later incarnation has the same positions: in order
 * of time, a record belongs to the last message of its name that was sent.
 */
#include "launcher/tracedump/tracedump.h"

#include <search.h>
#include <stdlib.h>

struct node {
	uint64_t key[2];
	uint32_t value;
};

struct map {
	void *root;
	bool full; /* true if memory ran out */
};

static int compare(const void *x, const void *y)
{
	const struct node *a = x, *b = y;
	if (a->key[0] != b->key[0])
		return a->key[0] < b->key[0] ? -1 : 1;
	return (a->key[1] > b->key[1]) - (a->key[1] < b->key[1]);
}

/* Return the place of the value for this key, or NULL without memory.  A new key has the
 * value TD_NONE. */
static uint32_t *place(struct map *m, uint64_t high, uint64_t low)
{
	struct node *fresh = malloc(sizeof *fresh);
	if (fresh)
		*fresh = (struct node){{high, low}, TD_NONE};
	struct node **at = fresh ? tsearch(fresh, &m->root, compare) : NULL;
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

struct td_name td_name_of(uint32_t name)
{
	struct td_name n;
	snprintf(n.text, sizeof n.text, "%s%u", name & P3_TRACE_BASE ? "b" : "",
		name & 0x3fffffff);
	return n;
}

static uint32_t new_message(struct finder *f, const struct td_message *m)
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
static uint32_t message_of(struct finder *f, const struct td_event *ev)
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
	uint32_t *at = place(&f->names, (uint64_t)m.from << 32 | m.to, m.name);
	if (!at)
		return TD_NONE;
	if (ev->e.point == P3_TRACE_SEND || *at == TD_NONE)
		*at = new_message(f, &m);
	return *at;
}

static uint32_t found(struct map *m, uint64_t high, uint64_t low)
{
	const struct node key = {{high, low}, TD_NONE};
	struct node *const *at = tfind(&key, &m->root, compare);
	return at ? (*at)->value : TD_NONE;
}

static void set_first(uint32_t *at, uint32_t i)
{
	if (*at == TD_NONE)
		*at = i;
}

static void note_way(struct finder *f, struct td_message *m, uint32_t i)
{
	const struct td_event *ev = &f->t->event[i];
	if (ev->e.point == P3_TRACE_SEND) {
		m->send = i;
		m->command = found(&f->commands, ev->block, ev->e.detail >> 32);
	}
	if (!ev->e.in)
		return;
	switch (ev->e.point) {
	case P3_TRACE_TAKE:
		set_first(&m->take, i);
		return;
	case P3_TRACE_MATCH:
		set_first(&m->match, i);
		return;
	case P3_TRACE_DELIVER:
		set_first(&m->deliver, i);
		return;
	case P3_TRACE_EVENT:
		m->event = i;
		return;
	default:
		return;
	}
}

/* Return the place for the record's event queue and the event's number there. */
static uint32_t *queue_place(struct finder *f, const struct td_event *ev)
{
	return place(&f->posted, ev->block, ev->e.detail);
}

static void note_command(struct finder *f, uint32_t i)
{
	const struct td_event *ev = &f->t->event[i];
	uint32_t *at = place(&f->commands, ev->block, ev->e.number + 1u);
	if (at)
		*at = i;
}

/* Note an event that a host thread took, at the message that had made it. */
static void note_taken(struct finder *f, uint32_t i)
{
	struct td_event *ev = &f->t->event[i];
	uint32_t posted = found(&f->posted, ev->block, ev->e.detail);
	if (posted == TD_NONE)
		return;
	ev->message = f->t->event[posted].message;
	if (ev->message != TD_NONE && f->t->event[posted].e.in)
		f->t->message[ev->message].taken = i;
}

static void note_posted(struct finder *f, uint32_t i)
{
	uint32_t *at = queue_place(f, &f->t->event[i]);
	if (at)
		*at = i;
}

static void note_thread(struct finder *f, uint32_t i)
{
	const struct td_event *ev = &f->t->event[i];
	uint32_t *at = place(&f->threads, ev->block, ev->e.which);
	if (!at)
		return;
	if (*at != TD_NONE)
		f->t->event[*at].after = i;
	*at = i;
}

static void note(struct finder *f, uint32_t i)
{
	struct td_event *ev = &f->t->event[i];
	if (ev->e.ring == P3_TRACE_HOST)
		note_thread(f, i);
	ev->message = message_of(f, ev);
	if (ev->message != TD_NONE)
		note_way(f, &f->t->message[ev->message], i);
	if (ev->e.ring == P3_TRACE_HOST && ev->e.point == P3_TRACE_COMMAND)
		note_command(f, i);
	if (ev->e.ring == P3_TRACE_FW && ev->e.point == P3_TRACE_EVENT)
		note_posted(f, i);
	if (ev->e.ring == P3_TRACE_HOST && ev->e.point == P3_TRACE_TAKEN)
		note_taken(f, i);
}

static void name_commands(struct td_trace *t)
{
	for (uint32_t i = 0; i < t->nmessages; i++)
		if (t->message[i].command != TD_NONE)
			t->event[t->message[i].command].message = i;
}

int td_find_messages(struct td_trace *t)
{
	struct finder f = {.t = t};
	for (uint32_t i = 0; i < t->nevents; i++)
		note(&f, i);
	name_commands(t);
	bool full = f.names.full || f.commands.full || f.posted.full || f.threads.full;
	tdestroy(f.names.root, free);
	tdestroy(f.commands.root, free);
	tdestroy(f.posted.root, free);
	tdestroy(f.threads.root, free);
	if (full)
		td_say("out of memory; expected room for all messages at once");
	return full ? -1 : 0;
}
