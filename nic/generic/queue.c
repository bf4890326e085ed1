/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The generic event queue.
 *
 * Memory ordering:
 *	GEN.1	staged: a firmware's thread releases it behind the entry -> any thread
 *		acquires it (catch_up() in nic/host/take.c, the host's thread)
 *	GEN.2	handled: released when the event is in the program's queue -> acquired by
 *		a thread that then looks into that queue
 */
#include "nic/generic/queue.h"

#include "nic/generic/interrupt.h"
#include "nic/report/trace.h"
#include "shm/fault.h"
#include "shm/trace.h"

static uint32_t count(const struct p3_generic *g)
{
	return g->tail - g->head;
}

static struct p3_generic_event *at(const struct p3_generic *g, uint32_t i)
{
	return &g->entry[i & g->mask];
}

static void post(struct p3_nic *n, const struct p3_generic_event *e)
{
	struct p3_event_record *r = p3_evq_begin(&e->eq->tx);
	for (int i = 0; i < P3_EVQ_WORDS; i++)
		p3_release(&r->w[i], p3_get(&e->record.w[i])); /* EVQ.2 */
	FAULT_POINT("generic.written");
	P3_TRACE(fw, n, P3_TRACE_EVENT, e->event,
		p3_pair(p3_obj_index(&e->eq->o), (uint32_t)e->eq->tx.tail + 1));
	p3_evq_commit(&e->eq->tx, r);
	P3_PROBE2(event, e->event, e->eq->tx.tail);
	n->posted |= e->eq->news;
}

static void handled(struct p3_generic *g)
{
	p3_release(&g->handled, p3_get(&g->handled) + 1); /* GEN.2 */
}

void p3_generic_post_events(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	uint32_t kept = g->head;
	for (uint32_t i = g->head; i != g->tail; i++) {
		if (at(g, i)->kind == P3_GENERIC_EVENT) {
			post(n, at(g, i));
			handled(g);
		} else if (kept++ != i) {
			*at(g, kept - 1) = *at(g, i);
		}
	}
	g->tail = kept;
}

static struct p3_generic_event *next(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	if (p3_unlikely(count(g) > g->mask)) {
		p3_count(&n->count[P3_C_GENERIC_FULL], 1);
		p3_generic_post_events(n);
	}
	return at(g, g->tail);
}

static void enter(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	g->tail++;
	p3_count(&n->count[P3_C_GENERIC], 1);
	p3_release(&g->staged, p3_get(&g->staged) + 1); /* GEN.1 */
	FAULT_POINT("generic.staged");
	if (p3_without(P3_BATCHES))
		p3_interrupt_raise(n);
}

struct p3_event_record *p3_generic_draft(struct p3_nic *n)
{
	return &next(n)->record;
}

void p3_generic_stage(struct p3_nic *n, struct p3_eq *eq, uint32_t event)
{
	struct p3_generic_event *e = at(n->generic, n->generic->tail);
	e->kind = P3_GENERIC_EVENT;
	e->eq = eq;
	e->event = event;
	enter(n);
}

void p3_generic_stage_header(struct p3_nic *n, uint32_t peer, enum p3_generic_kind kind)
{
	struct p3_generic_event *e = next(n);
	e->kind = kind;
	e->peer = peer;
	enter(n);
}

const struct p3_generic_event *p3_generic_oldest(const struct p3_generic *g)
{
	return count(g) ? at(g, g->head) : NULL;
}

void p3_generic_drop(struct p3_generic *g)
{
	g->head++;
	handled(g);
}
