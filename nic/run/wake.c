/* SPDX-License-Identifier: BSD-3-Clause */
/* News for other threads: wake-ups, deferred ones (looks), frames of wires; and the state
 * of the calling thread. */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/run/run.h"
#include "shm/fault.h"
#include "shm/log.h"

#include <errno.h>

/* ---- the calling thread ---- */

__thread struct p3_self p3_self = {.number = P3_SELF_NONE};

uint32_t p3_self_new_number(void)
{
	static p3_a32 last;
	p3_self.number = p3_add32(&last, 1) + 1;
	return p3_self.number;
}

/* ---- wake-ups ---- */

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
static uint32_t wake_awaited(struct p3_nic *n, uint32_t news)
{
	uint32_t wanted = 0;
	for (uint32_t left = news; left; left &= left - 1)
		if (p3_get(&n->sleepers[__builtin_ctz(left)]))
			wanted |= left & -left;
	return wanted;
}

void p3_wake_hosts(struct p3_nic *n, uint32_t news)
{
	uint32_t who = P3_ASLEEP_HOST, wanted = wake_awaited(n, news);
	if (p3_unlikely(p3_get(&n->evfds)))
		p3_evfd_signal_news(n, news);
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
	if (!wake_awaited(n, P3_NEWS_TENDING))
		return;
	p3_add32(&n->news, 1);
	p3_futex_wake_one(&n->news, P3_NEWS_TENDING, false);
}

void p3_wake_kick(struct p3_nic *n, struct p3_peer *p)
{
	p3_count(&n->count[P3_C_KICKS], 1);
	if (p->wire->kick) /* else a frame wakes it */
		p->wire->kick(n, p);
}

/* ---- frames, fences and looks ---- */

/* Passes run in the program's threads, and libfabric's calls change errno. */
P3_RARE void p3_wires_flush(struct p3_nic *n)
{
	int saved = errno;
	p3_wire_far.flush(n);
	errno = saved;
}

void p3_looks_warn_refused(void)
{
	static p3_a32 told;
	if (!p3_exchange32(&told, 1))
		p3_warn("the kernel refuses membarrier, which it allowed at PtlNIInit: "
			"a thread that goes to sleep waits a millisecond instead; allow "
			"it in the filter of system calls, or set PTL3_MEMBARRIER=off");
}

void p3_looks_tell(struct p3_nic *n, struct p3_look l)
{
	if (l.bell && p3_get(l.cold)) {
		p3_or64(&l.bell->lanes[n->conf.node / 64],
			(uint64_t)1 << n->conf.node % 64);
		FAULT_POINT("doorbell.written");
	}
	if (p3_get(l.asleep) != P3_AWAKE)
		p3_wake_peer(n, l.asleep);
}

void p3_looks_take(struct p3_nic *n)
{
	struct p3_looks l;
	if (n->wired)
		p3_wires_flush(n);
	p3_looks_gather(n, &l);
	p3_fence_light(n->light); /* PARK.1, COLD.1, EVFD.1 */
	p3_looks_check(n, &l);
	if (l.posted && p3_get(&n->parked))
		p3_wake_hosts(n, l.posted);
}
