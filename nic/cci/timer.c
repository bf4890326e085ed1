/* SPDX-License-Identifier: BSD-3-Clause */
/* Timers: two lists in the order of their times. */
#include "nic/cci/timer.h"

#include "nic/run/run.h"
#include "shm/park.h"

#define P3_SOON_NS  20000000u /* most timers of the same list take similar times */
#define P3_LOOKS    64u       /* passes between looks at the clock */
#define P3_LEAST_NS 20000u    /* shortest sleep */

void p3_cci_timer_init(
	struct p3_cci_timer *t, void (*fire)(struct p3_nic *n, struct p3_cci_timer *t))
{
	p3_list_init(&t->link);
	t->due_ns = 0;
	t->fire = fire;
}

static struct p3_cci_timer *first_of(struct p3_link *list)
{
	return p3_list_empty(list) ? NULL
				   : p3_item(list->next, struct p3_cci_timer, link);
}

static struct p3_cci_timer *first(struct p3_nic *n)
{
	struct p3_cci_timer *a = first_of(&n->cci.soon), *b = first_of(&n->cci.late);
	return !a || (b && b->due_ns < a->due_ns) ? b : a;
}

/* Note the time of the first timer, and wake a thread that would sleep beyond it. */
static void note_first(struct p3_nic *n)
{
	const struct p3_cci_timer *t = first(n);
	uint64_t was = p3_get(&n->cci.due_ns), due = t ? t->due_ns : 0;
	if (due == was)
		return;
	p3_set(&n->cci.due_ns, due);
	if (due && (!was || due < was))
		p3_wake_self(n);
}

/* Put the timer behind all that are due before.  Most are due after all others. */
static void insert(struct p3_link *list, struct p3_cci_timer *t)
{
	struct p3_link *at = list->prev;
	while (at != list && p3_item(at, struct p3_cci_timer, link)->due_ns > t->due_ns)
		at = at->prev;
	p3_list_add(at->next, &t->link);
}

void p3_cci_timer_start(struct p3_nic *n, struct p3_cci_timer *t, uint64_t ns)
{
	p3_list_del(&t->link);
	t->due_ns = p3_now_ns() + ns;
	insert(ns < P3_SOON_NS ? &n->cci.soon : &n->cci.late, t);
	note_first(n);
}

void p3_cci_timer_stop(struct p3_nic *n, struct p3_cci_timer *t)
{
	if (!t->due_ns)
		return;
	p3_list_del(&t->link);
	t->due_ns = 0;
	note_first(n);
}

void p3_cci_timer_look_now(struct p3_nic *n)
{
	p3_set(&n->cci.napped, 0);
	if (p3_cci_timer_is_due(n))
		p3_odd_set(n, P3_ODD_CCI);
}

void p3_cci_timer_look_late(struct p3_nic *n)
{
	if (++n->cci.looks % P3_LOOKS == 0 || p3_get(&n->cci.napped))
		p3_cci_timer_look_now(n);
}

void p3_cci_timer_run(struct p3_nic *n)
{
	struct p3_cci_timer *t = first(n);
	if (!t)
		return;
	uint64_t now = p3_now_ns();
	for (; t && t->due_ns <= now; t = first(n)) {
		p3_list_del(&t->link);
		t->due_ns = 0;
		t->fire(n, t);
	}
	note_first(n);
}

uint64_t p3_cci_timer_nap(struct p3_nic *n, uint64_t ns)
{
	p3_set(&n->cci.napped, 1);
	uint64_t due = p3_get(&n->cci.due_ns), now = p3_now_ns();
	uint64_t left = due > now + P3_LEAST_NS ? due - now : P3_LEAST_NS;
	return due && left < ns ? left : ns;
}
