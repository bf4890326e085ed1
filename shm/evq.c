/* SPDX-License-Identifier: BSD-3-Clause */
/* Rare half of the event ring: setup, end, overflow, revocation, shared readers. */
#include "shm/evq.h"
#include "shm/atomics.h"

#include <sched.h>

void p3_evq_blank(struct p3_event_record *rec, uint32_t n, uint64_t start)
{
	/* This sequence is older than those of the queue's events, and no reader of an
	 * earlier queue waits for it. */
	for (uint32_t i = 0; i < n; i++)
		p3_set(&rec[i].sequence, start);
}

void p3_evq_format(struct p3_evq_ring *ring, uint32_t n, uint64_t start,
	struct p3_evq_tx *tx, struct p3_evq_rx *rx)
{
	struct p3_event_record *rec = p3_get(&ring->rec);
	p3_release(&ring->head, start); /* EVQ.3 */
	p3_set(&ring->tail, start);
	p3_set(&ring->lost, 0);
	*tx = (struct p3_evq_tx){
		.ring = ring, .rec = rec, .tail = start, .head_seen = start, .n = n};
	p3_set(&ring->mask, n - 1);
	p3_release(&rx->ring, ring);                             /* EVQ.5 */
	p3_release(&rx->where, (uintptr_t)ring - (uintptr_t)rx); /* EVQ.5 */
	p3_set(&rx->owner.inside, 0);
	p3_release(&rx->owner.shared, 0); /* EVQ.5 */
	p3_set(&rx->owner.thread, 0);
	p3_fence(); /* EVQ.6 */
	if (p3_acquire(&rx->late)) {
		p3_release(&rx->owner.shared, 2);
		p3_set(&rx->owner.thread, P3_EVQ_NOBODY);
	}
	p3_release(&rx->name, P3_EVQ_FIRST); /* EVQ.5 */
}

void p3_evq_make_room(struct p3_evq_tx *q, struct p3_event_record *rec)
{
	q->head_seen = p3_acquire(&q->ring->head); /* EVQ.3 */
	if (q->tail - q->head_seen < q->n)
		return;
	/* EVQ.2: the old event is torn from here on, and its readers must see that. */
	p3_release(&rec->sequence, P3_EVQ_BUSY);
	p3_count(&q->ring->lost, 1);
	FAULT_POINT("event.overwriting");
	if (q->on_lost && p3_get(&q->ring->lost) == 1)
		q->on_lost(q);
}

/*
 * Return the number of the event to look at next, because the record of event `head` was
 * not intact.  If more than n events are unread, the ring has lost events: return the
 * oldest that it can still have.  If fewer are, return head.  If exactly n are, load the
 * record's sequence again, into *sequence.  If it is BUSY, the firmware is overwriting
 * the record, and its event is lost: return the next number.  Otherwise the firmware
 * wrote this very event between the look at the record and the look at the tail, and
 * nothing is lost: return head.
 */
static uint64_t evq_step(struct p3_evq_place at, uint64_t head, uint64_t *sequence)
{
	uint64_t unread = p3_acquire(&at.ring->tail) - head; /* EVQ.1 */
	if (unread > at.n)
		return head + (unread - at.n);
	if (unread < at.n)
		return head;
	*sequence = p3_acquire(&at.rec[head & (at.n - 1)].sequence); /* EVQ.1 */
	return *sequence == P3_EVQ_BUSY ? head + 1 : head;
}

/*
 * Find the oldest intact event from number head on; *head_out is its number.  The search
 * ends when the ring's head has moved: the caller cannot take an event then, and the
 * records may belong to another queue, so that an intact one might never be found.
 */
static enum p3_evq_got evq_look_from(struct p3_evq_place at, uint64_t head,
	uint64_t w[P3_EVQ_WORDS], uint64_t *head_out)
{
	const uint64_t first = head;
	enum p3_evq_got got = P3_EVQ_EVENT;
	*head_out = head;
	for (;;) {
		const struct p3_event_record *rec = &at.rec[head & (at.n - 1)];
		uint64_t seq = p3_acquire(&rec->sequence); /* EVQ.1 */
		if (seq == head + 1 && p3_evq_copy(rec, head, w)) {
			*head_out = head;
			return got;
		}
		uint64_t next = evq_step(at, head, &seq);
		if (next == head && seq <= head)
			return P3_EVQ_EMPTY;
		if (next != head)
			got = P3_EVQ_LOST;
		if (p3_acquire(&at.ring->head) != first) /* EVQ.5 */
			return got;
		head = next;
	}
}

/* Find the oldest event, and take it if takes is true, beside other readers. */
static enum p3_evq_got evq_get_shared(struct p3_evq_rx *q, uint64_t name, bool takes,
	uint64_t w[P3_EVQ_WORDS], uint64_t *sequence_out)
{
	struct p3_evq_place at = p3_evq_place(q);
	for (;;) {
		uint64_t head = p3_acquire(&at.ring->head), found; /* EVQ.3 */
		if (p3_acquire(&q->name) != name)
			return P3_EVQ_EMPTY; /* EVQ.5: head may be the next queue's */
		enum p3_evq_got got = evq_look_from(at, head, w, &found);
		if (got == P3_EVQ_EMPTY)
			return got;
		/* EVQ.3: once another reader has taken the event, post rewrites its
		 * record without marking it busy. */
		if (takes ? p3_cas64(&at.ring->head, &head, found + 1)
			  : p3_acquire(&at.ring->head) == head) {
			*sequence_out = found + 1;
			return got;
		}
	}
}

enum p3_evq_got p3_evq_peek(struct p3_evq_rx *q, uint64_t name, uint64_t w[P3_EVQ_WORDS],
	uint64_t *sequence_out)
{
	return evq_get_shared(q, name, false, w, sequence_out);
}

/* ---- the owner of a queue ---- */

bool p3_owner_claim(struct p3_owner *o, uint32_t thread)
{
	uint32_t none = 0;
	if (!p3_get(&o->thread))
		(void)p3_cas32(&o->thread, &none, thread);
	return p3_get(&o->thread) == thread;
}

static void owner_ask(struct p3_owner *o)
{
	p3_release(&o->shared, 1);
	FAULT_POINT("owner.revoking");
	(void)p3_fence_heavy_here(); /* EVQ.4 */
}

/* After owner_ask(): finish the revocation if the owner is in no step, since its next one
 * sees shared.  Return false if the owner is inside. */
static bool owner_try(struct p3_owner *o)
{
	if (p3_acquire(&o->inside))
		return false;
	p3_release(&o->shared, 2);
	return true;
}

void p3_owner_revoke(struct p3_owner *o)
{
	if (p3_acquire(&o->shared) == 2)
		return;
	owner_ask(o);
	while (!owner_try(o))
		sched_yield();
}

/* ---- the end of a queue, and get ---- */

bool p3_evq_may_get(struct p3_evq_rx *q, uint32_t thread)
{
	uint32_t owner = p3_get(&q->owner.thread);
	if (!owner || owner == thread || p3_acquire(&q->owner.shared) == 2)
		return true;
	p3_release(&q->late, 1); /* EVQ.6 */
	owner_ask(&q->owner);
	return owner_try(&q->owner);
}

void p3_evq_retire(struct p3_evq_rx *q, uint32_t thread)
{
	p3_release(&q->name, 0); /* EVQ.5 */
	uint32_t owner = p3_exchange32(&q->owner.thread, P3_EVQ_NOBODY);
	if (owner && owner != thread && owner != P3_EVQ_NOBODY)
		p3_set(&q->late, 1);
	p3_owner_revoke(&q->owner);
	/* Move the head beyond the numbers of all events, so that a delayed reader's
	 * compare-and-swap fails from now on: no reader has loaded a head beyond the
	 * tail.  The ownership is revoked, so no owner overwrites this head by a plain
	 * store. */
	struct p3_evq_place at = p3_evq_place(q);
	p3_release(&at.ring->head, p3_get(&at.ring->tail) + at.n); /* EVQ.5 */
}

enum p3_evq_got p3_evq_get(struct p3_evq_rx *q, uint64_t name, uint32_t thread,
	uint64_t w[P3_EVQ_WORDS], uint64_t *sequence_out)
{
	uint64_t found;
	if (!p3_owner_claim(&q->owner, thread)) {
		/* This reader may be delayed until the place holds the next queue; `late`
		 * then keeps that queue from having an owner. */
		if (p3_acquire(&q->owner.shared) != 2)
			p3_release(&q->late, 1); /* EVQ.6 */
		p3_owner_revoke(&q->owner);
		return evq_get_shared(q, name, true, w, sequence_out);
	}
	if (p3_get(&q->owner.inside))
		return P3_EVQ_EMPTY; /* in a handler that interrupted this very thread */
	p3_owner_enter(&q->owner);
	enum p3_evq_got got = P3_EVQ_EMPTY;
	if (p3_acquire(&q->owner.shared)) {
		got = evq_get_shared(q, name, true, w, sequence_out);
	} else if (p3_get(&q->name) == name) {
		struct p3_evq_place at = p3_evq_place(q);
		got = evq_look_from(at, p3_get(&at.ring->head), w, &found);
		if (got != P3_EVQ_EMPTY) {
			p3_release(&at.ring->head, found + 1); /* EVQ.3 */
			*sequence_out = found + 1;
		}
	}
	p3_owner_leave(&q->owner);
	return got;
}
