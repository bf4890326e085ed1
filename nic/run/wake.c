/* SPDX-License-Identifier: BSD-3-Clause */
/* Waking of threads that sleep on a word of shared memory. */
#include "nic/run/wake.h"
#include "shm/fault.h"

bool p3_wake_sleeper(p3_a32 *asleep)
{
	uint32_t who = p3_exchange32(asleep, P3_AWAKE);
	if (who == P3_AWAKE)
		return false;
	/* Any process may write the word: if its value is none of these, wake all threads
	 * that sleep on it. */
	bool known = who == P3_ASLEEP_HOST || who == P3_ASLEEP_NIC;
	FAULT_POINT("wake.disarmed");
	p3_futex_wake(asleep, known ? who : ~0u, true);
	return true;
}

void p3_wake_peer(struct p3_nic *n, p3_a32 *asleep)
{
	if (p3_wake_sleeper(asleep))
		p3_count(&n->count[P3_C_WAKES], 1);
}

void p3_wake_self(struct p3_nic *n)
{
	if (p3_get(n->asleep) != P3_AWAKE)
		p3_wake_peer(n, n->asleep);
}

/* Return those of the news for which threads are parked. */
static uint32_t awaited(struct p3_nic *n, uint32_t news)
{
	uint32_t wanted = 0;
	for (uint32_t left = news; left; left &= left - 1)
		if (p3_get(&n->sleepers[__builtin_ctz(left)]))
			wanted |= left & -left;
	return wanted;
}

void p3_wake_hosts(struct p3_nic *n, uint32_t news)
{
	uint32_t who = P3_ASLEEP_HOST, wanted = awaited(n, news);
	if (!wanted)
		return;
	p3_add32(&n->news, 1);
	FAULT_POINT("wake.news");
	p3_futex_wake(&n->news, wanted, false);
	if (p3_get(&n->watcher) & wanted && p3_cas32(n->asleep, &who, P3_AWAKE))
		p3_futex_wake(n->asleep, P3_ASLEEP_HOST, true);
}

void p3_wake_tender(struct p3_nic *n)
{
	if (!awaited(n, P3_NEWS_TENDING))
		return;
	p3_add32(&n->news, 1);
	p3_futex_wake_one(&n->news, P3_NEWS_TENDING, false);
}

void p3_wake_kick(struct p3_nic *n, struct p3_peer *p)
{
	p3_count(&n->count[P3_C_KICKS], 1);
	p->wire->kick(n, p);
}
