/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * park - sleeping and waking: futex words and the idle policy spin, yield, park
 *
 * Words that threads of one process sleep on are private.  Two words are shared between
 * processes (layout.h): a node's word asleep, which its peers look at, and kick.  Any
 * thread may call these functions.  The state is struct p3_waiter, which belongs to one
 * thread.
 *
 * Memory ordering:
 *	PARK.1	Dekker between a sleeper and a thread that makes news for it: the sleeper
 *		stores that it sleeps (asleep, parked), fences heavily (atomics.h), looks
 *		for news once more, and only then waits in the kernel; the other thread
 *		makes the news visible, fences lightly (LEASE.2, or the fence at the end
 *		of a pass), and looks at the word.  Without either fence a message lies in
 *		the lane and the target sleeps until P3_SAFETY_NS or more have passed.
 *	The kernel compares the word again under its own lock, so a wake between the
 *	last look and the wait is not lost.
 */
#ifndef P3_SHM_PARK_H
#define P3_SHM_PARK_H

#include "shm/atomics.h"

#define P3_SAFETY_NS 100000000u /* longest sleep of any thread, at first */
/* each sleep without news doubles the next one, up to this */
#define P3_SAFETY_MOST 800000000u
/* with a CPU for each node: time to spin before yielding */
#define P3_SPIN_NS    20000u
#define P3_AT_ONCE_NS 2000u /* after a yield this short no other thread wants the CPU */
/* park after a series of such yields that lasts this long */
#define P3_ALONE_NS 1000000u
#define P3_YIELD_NS 20000000u /* park after yielding this long in any case */

static inline uint32_t p3_longer_timeout(uint32_t ns)
{
	return ns < P3_SAFETY_MOST ? 2 * ns : ns;
}

/* Return the monotonic clock in nanoseconds. */
uint64_t p3_now_ns(void);

/*
 * If *word is val, sleep until a wake-up whose mask shares a bit, at most ns.
 * Return true if woken, if the word differed, or after a signal; false on timeout.
 */
bool p3_futex_wait(p3_a32 *word, uint32_t val, uint64_t ns, uint32_t mask, bool shared);
void p3_futex_wake(p3_a32 *word, uint32_t mask, bool shared);
/* Wake one of the threads that p3_futex_wake() would wake. */
void p3_futex_wake_one(p3_a32 *word, uint32_t mask, bool shared);

enum p3_idle { P3_IDLE_SPIN, P3_IDLE_YIELD, P3_IDLE_PARK };

/* The state of one wait of one thread. */
struct p3_waiter {
	uint64_t since;       /* start of the current phase of waiting, 0: not started */
	uint64_t alone_since; /* all yields since then have returned at once; 0: the last
			       * one has not */
	uint64_t now;         /* time of this turn, or of the end of its yield */
	uint32_t turns;
	bool spun;    /* the spinning phase is over */
	bool yielded; /* a yield has set now, so that the next turn reads no clock */
	bool earlier; /* this turn has read no clock, as the last yield has set now */
};

/* The nanoseconds to spin and to yield before parking; both 0: park at once. */
struct p3_idle_policy {
	uint32_t spin_ns;
	uint32_t yield_ns;
};

/* Start the wait anew, because news came. */
static inline void p3_waiter_reset(struct p3_waiter *w)
{
	w->since = 0;
	w->alone_since = 0;
	w->turns = 0;
	w->spun = false;
	w->yielded = false;
}

/*
 * Decide how a thread spends a turn in which it has found nothing.  SPIN: look again
 * (only every 64th turn reads the clock).  YIELD: give up the lease, which other threads
 * need, then call p3_waiter_yield().  PARK: prepare to sleep.
 */
enum p3_idle p3_waiter_turn(struct p3_waiter *w, const struct p3_idle_policy *p);
/* Yield the CPU.  Return the time until this thread had it again, in ns. */
uint64_t p3_waiter_yield(struct p3_waiter *w);

#endif
