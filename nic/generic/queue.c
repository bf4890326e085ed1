/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The generic event queue, and the interrupt.
 *
 * Memory ordering:
 *	GEN.1	staged: a firmware's thread releases it behind the entry -> any thread
 *		acquires it (eq_catch_up() in nic/host/eq_poll.c, the host's thread)
 *	GEN.2	handled: released when the event is in the program's queue -> acquired by
 *		a thread that then looks into that queue
 *	IRQ.1	Dekker: the firmware stores staged (GEN.1), fences, and looks at asleep;
 *		the host's thread stores asleep, fences, and looks at staged.  Without the
 *		fences the thread sleeps while an entry waits for it.
 */
#include "nic/generic/generic.h"
#include "nic/report/report.h"
#include "shm/fault.h"
#include "shm/trace.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* ---- the interrupt ---- */

/* The signal of PTL3_MATCH=host/signal, the last real-time signal.  It is sent to the
 * host's thread alone, which blocks all signals and takes this one by sigtimedwait(), so
 * no handler of the program runs. */
#define INTERRUPT_SIGNAL SIGRTMAX

static bool interrupt_is_due(const struct p3_generic *g)
{
	return p3_acquire(&g->staged) != p3_get(&g->handled) ||
	       p3_get(&g->stop); /* GEN.1 */
}

static void interrupt_send(struct p3_generic *g)
{
	if (g->how == P3_INTERRUPT_SIGNAL)
		(void)syscall(SYS_tgkill, getpid(), p3_get(&g->tid), INTERRUPT_SIGNAL);
	else
		p3_futex_wake(&g->asleep, ~0u, false);
}

void p3_interrupt_raise(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	p3_fence(); /* IRQ.1 */
	if (!p3_get(&g->asleep) || !interrupt_is_due(g) || !p3_exchange32(&g->asleep, 0))
		return;
	p3_count(&n->count[P3_C_INTERRUPTS], 1);
	FAULT_POINT("interrupt.raised");
	interrupt_send(g);
}

static void interrupt_sleep_until_raised(struct p3_generic *g)
{
	p3_set(&g->asleep, 1);
	p3_fence(); /* IRQ.1 */
	FAULT_POINT("interrupt.enabled");
	if (interrupt_is_due(g)) {
		(void)0;
	} else if (g->how == P3_INTERRUPT_SIGNAL) {
		const struct timespec most = {.tv_sec = P3_SAFETY_NS / 1000000000u,
			.tv_nsec = P3_SAFETY_NS % 1000000000u};
		sigset_t line;
		sigemptyset(&line);
		sigaddset(&line, INTERRUPT_SIGNAL);
		while (p3_get(&g->asleep) && sigtimedwait(&line, NULL, &most) > 0)
			; /* else a signal of an earlier interrupt */
	} else {
		(void)p3_futex_wait(&g->asleep, 1, P3_SAFETY_NS, ~0u, false);
	}
	p3_set(&g->asleep, 0);
}

/* Look at the queue for a while.  Return true if there is an entry. */
static bool interrupt_poll(struct p3_nic *n)
{
	const struct p3_idle_policy policy = {P3_SPIN_NS, P3_YIELD_NS};
	struct p3_waiter idle = {0};
	for (;;) {
		if (interrupt_is_due(n->generic))
			return true;
		switch (p3_waiter_turn(&idle, &policy)) {
		case P3_IDLE_SPIN:
			p3_relax();
			break;
		case P3_IDLE_YIELD:
			p3_waiter_yield(&idle);
			break;
		default:
			return false;
		}
	}
}

void p3_interrupt_await(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	if (g->how != P3_INTERRUPT_POLL || !interrupt_poll(n))
		interrupt_sleep_until_raised(g);
}

void p3_interrupt_stop(struct p3_generic *g)
{
	p3_set(&g->stop, 1);
	p3_fence(); /* IRQ.1 */
	p3_set(&g->asleep, 0);
	interrupt_send(g);
}

/* ---- the queue ---- */

static struct p3_generic_event *generic_at(const struct p3_generic *g, uint32_t i)
{
	return &g->entry[i & g->mask];
}

static void generic_post(struct p3_nic *n, const struct p3_generic_event *e)
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

static void generic_count_handled(struct p3_generic *g)
{
	p3_release(&g->handled, p3_get(&g->handled) + 1); /* GEN.2 */
}

void p3_generic_post_events(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	uint32_t kept = g->head;
	for (uint32_t i = g->head; i != g->tail; i++) {
		if (generic_at(g, i)->kind == P3_GENERIC_EVENT) {
			generic_post(n, generic_at(g, i));
			generic_count_handled(g);
		} else if (kept++ != i) {
			*generic_at(g, kept - 1) = *generic_at(g, i);
		}
	}
	g->tail = kept;
}

static struct p3_generic_event *generic_next(struct p3_nic *n)
{
	struct p3_generic *g = n->generic;
	if (p3_unlikely(g->tail - g->head > g->mask)) {
		p3_count(&n->count[P3_C_GENERIC_FULL], 1);
		p3_generic_post_events(n);
	}
	return generic_at(g, g->tail);
}

static void generic_enter_entry(struct p3_nic *n)
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
	return &generic_next(n)->record;
}

void p3_generic_stage(struct p3_nic *n, struct p3_eq *eq, uint32_t event)
{
	struct p3_generic_event *e = generic_at(n->generic, n->generic->tail);
	e->kind = P3_GENERIC_EVENT;
	e->eq = eq;
	e->event = event;
	generic_enter_entry(n);
}

void p3_generic_stage_header(struct p3_nic *n, uint32_t peer, enum p3_generic_kind kind)
{
	struct p3_generic_event *e = generic_next(n);
	e->kind = kind;
	e->peer = peer;
	generic_enter_entry(n);
}

void p3_generic_drop(struct p3_generic *g)
{
	g->head++;
	generic_count_handled(g);
}
