/* SPDX-License-Identifier: BSD-3-Clause */
/* Passes of the NIC thread of a node whose host matches. */
#include "nic/run/alone.h"

#include "nic/cci/firmware.h"
#include "nic/generic/interrupt.h"
#include "nic/proto/peer.h"
#include "nic/report/mirror.h"
#include "nic/run/lease.h"
#include "nic/run/looks.h"
#include "nic/run/pass.h"
#include "nic/run/ringer.h"
#include "nic/run/wait.h"

#include <sched.h>

/* shortest and longest sleep while work waits for which no peer rings */
#define P3_NAP_NS   100000u
#define P3_NAP_MOST 2000000u

static bool enter(struct p3_nic *n)
{
	while (!p3_lease_enter_reserved(n, P3_LEASE_NIC)) {
		if (p3_get(&n->stop))
			return false;
		sched_yield(); /* the host's thread handles entries */
	}
	return true;
}

static void leave(struct p3_nic *n)
{
	p3_lease_leave(n);
	p3_interrupt_raise(n);
}

/* Return the longest sleep: a short one while work waits for which no peer rings.
 * *nap_ns is the last short sleep, or 0. */
static uint64_t longest_sleep(struct p3_nic *n, uint64_t safety_ns, uint64_t *nap_ns)
{
	if (!n->generic->later && !p3_wait_is_restless(n)) {
		*nap_ns = 0;
		return p3_cci_nap(n, safety_ns);
	}
	p3_wait_kick_idle(n);
	*nap_ns = *nap_ns ? 2 * *nap_ns : P3_NAP_NS;
	if (*nap_ns > P3_NAP_MOST)
		*nap_ns = P3_NAP_MOST;
	return p3_cci_nap(n, *nap_ns);
}

/* With the lease: arm the doorbell, look once more, give the lease up, and sleep.  Return
 * false if a time-out ended the sleep. */
static bool sleep_until_rung(struct p3_nic *n, uint64_t safety_ns, uint64_t *nap_ns)
{
	uint32_t word = P3_AWAKE, was = P3_ASLEEP_NIC;
	p3_set(&n->nic_asleep, 1);
	p3_set(&n->count[P3_G_NIC_ASLEEP], 1);
	if (p3_cas32(n->asleep, &word, P3_ASLEEP_NIC)) /* else a peer has written it */
		word = P3_ASLEEP_NIC;
	FAULT_POINT("nic.armed");
	p3_looks_fence(n, p3_fence_heavy); /* PARK.1, CCIFD.3 */
	p3_peer_sweep(n);
	bool news = p3_pass_run(n) || p3_get(&n->stop);
	if (p3_get(&n->cci.handles))
		p3_cci_event_remind(n);
	p3_mirror_gauges(n, P3_LEASE_FREE);
	uint64_t ns = longest_sleep(n, safety_ns, nap_ns);
	leave(n);
	FAULT_POINT("nic.asleep");
	bool woken = news || p3_futex_wait(n->asleep, word, ns, P3_ASLEEP_NIC, true);
	p3_set(&n->nic_asleep, 0);
	p3_set(&n->count[P3_G_NIC_ASLEEP], 0);
	(void)p3_cas32(n->asleep, &was, P3_AWAKE);
	p3_fence(); /* PARK.1: the caller's passes are the last look */
	return woken;
}

/* Remind the sleepers of OS handles, once in the time of a tick. */
static P3_RARE void remind(struct p3_nic *n, uint64_t *reminded_ns)
{
	uint64_t now = p3_now_ns();
	if (now - *reminded_ns < n->tick_ns)
		return;
	*reminded_ns = now;
	p3_cci_event_remind(n);
}

void p3_alone_run(struct p3_nic *n)
{
	uint64_t reminded_ns = 0;
	struct p3_waiter idle = {0};
	uint32_t safety_ns = P3_SAFETY_NS;
	uint64_t nap_ns = 0;
	while (!p3_get(&n->stop) && enter(n)) {
		enum p3_idle what = P3_IDLE_SPIN;
		if (p3_unlikely(p3_get(&n->cci.handles)))
			remind(n, &reminded_ns);
		if (p3_pass_run(n))
			p3_waiter_reset(&idle);
		else
			what = p3_waiter_turn(&idle, &n->idle);
		if (what == P3_IDLE_PARK) {
			bool woken = sleep_until_rung(n, safety_ns, &nap_ns);
			safety_ns = woken ? P3_SAFETY_NS : p3_longer_timeout(safety_ns);
			if (woken)
				p3_waiter_reset(&idle);
			continue;
		}
		leave(n);
		if (what == P3_IDLE_YIELD)
			p3_waiter_yield(&idle);
		else if (p3_get(&n->generic->wants))
			sched_yield();
	}
}
