/* SPDX-License-Identifier: BSD-3-Clause */
/* Care for requests to processes that have yet to join. */
#include "lib/node/held.h"
#include "lib/node/node.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/park.h"

#define LATE_S 10 /* wait in seconds after which a line is printed */
#define SECOND UINT64_C(1000000000)

static void say_late(struct p3_node *node, const struct p3_on_hold *held)
{
	node->held.said = true;
	p3_warn("%u messages wait for the process with node id %u and process id %u, "
		"which has not called PtlNIInit, the first one for %d s; they fail after "
		"%u s: start that process, or set PTL3_ABSENT=hold:SECONDS for another "
		"time or PTL3_ABSENT=drop for none",
		held->n, held->who.nid, held->who.pid, LATE_S, node->held.limit_s);
}

void p3_held_see_to(struct p3_node *node, struct p3_nic *nic)
{
	struct p3_on_hold held;
	p3_nic_held(nic, &held);
	node->held.at = 0;
	if (!held.n)
		return;
	uint64_t late = held.since_ns + LATE_S * SECOND;
	uint64_t end = held.since_ns + node->held.limit_s * SECOND;
	if (!node->held.said && p3_now_ns() >= late)
		say_late(node, &held);
	node->held.at = !node->held.said && late < end ? late : end;
}

bool p3_held_is_due(const struct p3_node *node)
{
	return node->held.at && p3_now_ns() >= node->held.at;
}

int p3_held_patience(const struct p3_node *node, int ms)
{
	if (!node->held.at)
		return ms;
	uint64_t now = p3_now_ns(), at = node->held.at;
	uint64_t left = at > now ? (at - now) / 1000000 + 1 : 0;
	return ms >= 0 && (uint64_t)ms < left ? ms : (int)left;
}
