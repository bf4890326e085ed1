/* SPDX-License-Identifier: BSD-3-Clause */
/* The looks at peers that this node has written to. */
#define P3_LOG_AREA P3_AREA_NIC
#include "nic/run/looks.h"
#include "nic/run/wake.h"
#include "nic/run/wires.h"
#include "shm/fault.h"
#include "shm/log.h"

void p3_looks_warn_refused(void)
{
	static p3_a32 told;
	if (!p3_exchange32(&told, 1))
		p3_warn("the kernel refuses membarrier, which it allowed at PtlNIInit: "
			"a thread that goes to sleep waits a millisecond instead; allow "
			"it in "
			"the filter of system calls, or set PTL3_MEMBARRIER=off");
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
	p3_fence_light(n->light); /* PARK.1, COLD.1 */
	p3_looks_check(n, &l);
	if (l.posted && p3_get(&n->parked))
		p3_wake_hosts(n, l.posted);
}
