/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * park - sleeping and waking: futex words and the idle policy spin, yield, park
 *
 * Words that threads of one process sleep on are private; a node's word asleep, for
 * which its peers look, and kick are shared between processes (layout.h).
 *
 * Memory ordering:
 *	PARK.1	Dekker between a sleeper and whoever makes its news: the sleeper stores
 *		that it sleeps (asleep, parked), fences heavily (fence.h), looks for news
 *		once more, and only then waits in the kernel; the other makes the news
 *		visible, fences lightly (LEASE.2, or the fence at the end of a pass), and
 *		looks at the word.  Without either fence: a message lies in the lane and
 *		the target sleeps until the belt of P3_BELT_NS or more wakes it.
 *	The kernel compares the word again under its own lock, so a wake between the
 *	last look and the wait is not lost.
 */
#ifndef P3_SHM_PARK_H
#define P3_SHM_PARK_H

#include "shm/atomics.h"

#define P3_BELT_NS    100000000u /* longest sleep of anybody, at first; */
#define P3_BELT_MOST  800000000u /* twice as long after each that was for nothing */
#define P3_SPIN_NS    20000u     /* one to one: spin so long before yielding */
#define P3_AT_ONCE_NS 2000u      /* a yield this short found nothing else to run */
#define P3_ALONE_NS   1000000u   /* park after such yields for this long */
#define P3_YIELD_NS   20000000u  /* park after yielding this long in any case */

static inline uint32_t p3_longer_belt(uint32_t ns)
{
	return ns < P3_BELT_MOST ? 2 * ns : ns;
}

/* Monotonic nanoseconds. */
uint64_t p3_now_ns(void);

/*
 * Sleep until woken with a bit of mask, while *word is val, at most ns.  Returns
 * true if woken or the word differed, false on timeout; also true after a signal.
 */
bool p3_futex_wait(p3_a32 *word, uint32_t val, uint64_t ns, uint32_t mask, bool shared);
void p3_futex_wake(p3_a32 *word, uint32_t mask, bool shared);

enum p3_idle { P3_IDLE_SPIN, P3_IDLE_YIELD, P3_IDLE_PARK };

/* One wait of one thread. */
struct p3_waiter {
	uint64_t since;       /* of this phase of waiting, 0 not started */
	uint64_t alone_since; /* yields have returned at once since, 0 not */
	uint64_t now;         /* of this turn; after a yield when that ended */
	uint32_t turns;
	bool spun;    /* the spinning phase is over */
	bool yielded; /* the next turn need not read the clock */
	bool earlier; /* and this one did not */
};

/* How many nanoseconds to spin and yield first; both 0: park at once. */
struct p3_idle_policy {
	uint32_t spin_ns;
	uint32_t yield_ns;
};

/* News came: start again. */
static inline void p3_waiter_reset(struct p3_waiter *w)
{
	w->since = 0;
	w->alone_since = 0;
	w->turns = 0;
	w->spun = false;
	w->yielded = false;
}

/*
 * What to do in this turn in which nothing was found.  SPIN: relax and look again
 * (cheap: the clock is read every 64th turn only).  YIELD: give up what others
 * need, then call p3_waiter_yield().  PARK: prepare to sleep.
 */
enum p3_idle p3_waiter_turn(struct p3_waiter *w, const struct p3_idle_policy *p);
void p3_waiter_yield(struct p3_waiter *w);

/* CPUs that this process may use: affinity and cgroup quota, at least 1. */
uint32_t p3_usable_cpus(void);

#endif
