/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes of a NIC thread that has a CPU to itself. */
#include "nic/run/dedicated.h"
#include "nic/cci/firmware.h"
#include "nic/proto/peer.h"
#include "nic/run/lease.h"
#include "nic/run/pass.h"

#include <sched.h>
#include <time.h>

#define P3_TIGHT_TURNS 64u /* empty passes between offers of a CPU that may be shared */
#define P3_LOOK_TURNS  1024u
#define P3_TAKEN_NS    3000u      /* a longer yield means that another thread ran */
#define P3_REST_TURNS  (1u << 20) /* empty passes, some 50 ms */
#define P3_LOOK_NS     1000000u
#define P3_SHARED_NS   100000000u /* time away from a CPU that others need */
#define P3_SHARED_MOST 10000000000u
#define P3_LASTING_NS  1000000000u

static uint64_t thread_ran_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void begin(struct p3_dedicated *d)
{
	d->began_ns = d->looked_ns = p3_now_ns();
	d->ran_ns = thread_ran_ns();
}

/*
 * Return true if another thread needs this CPU: then the host threads are better served
 * without dedication.  A dedicated thread never sleeps, so another thread has run
 * whenever this one has not.
 */
static bool cpu_is_shared(struct p3_dedicated *d)
{
	uint64_t now = p3_now_ns(), since = now - d->looked_ns;
	if (since < P3_LOOK_NS)
		return false;
	uint64_t ran = thread_ran_ns(), mine = ran - d->ran_ns;
	d->looked_ns = now;
	d->ran_ns = ran;
	return since > mine && since - mine > P3_LOOK_NS / 2;
}

/* Offer the CPU; return true if another thread took it. */
static bool is_taken(void)
{
	uint64_t before = p3_now_ns();
	sched_yield();
	return p3_now_ns() - before > P3_TAKEN_NS;
}

/* Return true if another thread took the CPU both times that this one offered it.  A
 * single offer may take long because of an interrupt. */
static bool is_cpu_wanted(void)
{
	return is_taken() && is_taken();
}

static bool has_company(
	struct p3_nic *n, struct p3_dedicated *d, uint32_t turns, uint32_t empty)
{
	bool offer = n->tight && empty % P3_TIGHT_TURNS == 1;
	return (offer && is_cpu_wanted()) ||
	       (turns % P3_LOOK_TURNS == 0 && cpu_is_shared(d));
}

/* Leave a shared CPU to others: for P3_SHARED_NS, or for twice as long as the last time
 * (P3_SHARED_MOST at most) if this thread was dedicated for less than P3_LASTING_NS
 * since. */
static void end(struct p3_dedicated *d)
{
	uint64_t now = p3_now_ns();
	bool lasted = now - d->began_ns > P3_LASTING_NS;
	d->shared_ns = lasted || !d->shared_ns ? P3_SHARED_NS : 2 * d->shared_ns;
	if (d->shared_ns > P3_SHARED_MOST)
		d->shared_ns = P3_SHARED_MOST;
	d->shared_until = now + d->shared_ns;
}

void p3_dedicated_run(struct p3_nic *n, struct p3_dedicated *d)
{
	uint32_t turns = 0, empty = 0;
	if (!p3_lease_enter(n, P3_LEASE_NIC)) {
		sched_yield(); /* a host thread is about to leave */
		return;
	}
	begin(d);
	while (!p3_get(&n->stop)) {
		empty = p3_pass_run(n) ? 0 : empty + 1;
		if (empty)
			p3_relax();
#ifdef P3_VALGRIND
		sched_yield();
#endif
		turns++;
		if (has_company(n, d, turns, empty)) {
			end(d);
			break;
		}
		if (turns % P3_LOOK_TURNS)
			continue;
		if (p3_unlikely(p3_get(&n->cci.handles)))
			p3_cci_event_remind(n);
		if (n->may_rest && empty > P3_REST_TURNS) {
			d->resting = true;
			break;
		}
		if (turns % 65536 == 0)
			p3_peer_sweep(n);
	}
	p3_lease_leave(n);
}

bool p3_dedicated_is(struct p3_nic *n, struct p3_dedicated *d)
{
	if (n->conf.mode != P3_MODE_DEDICATED || d->resting)
		return false;
	if (d->shared_until && p3_now_ns() < d->shared_until)
		return false;
	d->shared_until = 0;
	return true;
}
