/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * timer - timers of connections
 *
 * Without a timer the firmware looks at no clock.  While one runs, whole passes look at
 * the clock each 64th time, brief passes each time that they publish gauges, and the NIC
 * thread sleeps until the first timer is due at most.  The look that finds a timer
 * due sets P3_ODD_CCI, and the last step of a pass fires the timer.
 *
 * Only the lease holder calls these functions, except where a comment says (any).  The
 * state is soon, late and due_ns of n->cci.
 */
#ifndef P3_NIC_CCI_TIMER_H
#define P3_NIC_CCI_TIMER_H

#include "nic/state.h"
#include "shm/park.h"

void p3_cci_timer_init(
	struct p3_cci_timer *t, void (*fire)(struct p3_nic *n, struct p3_cci_timer *t));
/* Start a timer, or start it anew: it fires once, ns after now. */
void p3_cci_timer_start(struct p3_nic *n, struct p3_cci_timer *t, uint64_t ns);
void p3_cci_timer_stop(struct p3_nic *n, struct p3_cci_timer *t);

static inline bool p3_cci_timer_runs(const struct p3_cci_timer *t)
{
	return t->due_ns != 0;
}

/* (any) Return true if a timer is due. */
static inline bool p3_cci_timer_is_due(const struct p3_nic *n)
{
	uint64_t due = p3_get(&n->cci.due_ns);
	return p3_unlikely(due != 0) && p3_now_ns() >= due;
}

/* Look for timers that are due: at a whole pass, or now. */
void p3_cci_timer_look_late(struct p3_nic *n);
void p3_cci_timer_look_now(struct p3_nic *n);
static inline void p3_cci_timer_look(struct p3_nic *n)
{
	if (p3_unlikely(p3_get(&n->cci.due_ns) != 0))
		p3_cci_timer_look_late(n);
}

/* Fire the timers that are due. */
void p3_cci_timer_run(struct p3_nic *n);

/* (any) Return the time that a thread may sleep: ns, or less if a timer is due before. */
uint64_t p3_cci_timer_nap(struct p3_nic *n, uint64_t ns);
static inline uint64_t p3_cci_nap(struct p3_nic *n, uint64_t ns)
{
	return p3_likely(!p3_get(&n->cci.due_ns)) ? ns : p3_cci_timer_nap(n, ns);
}

#endif
