/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rest - pauses between two looks of a thread that polls
 *
 * A peer's message comes into a line that this CPU has read, so the peer's CPU must take
 * the line back before it can write.  A look in that moment takes the line away once
 * more, and the message comes later.  Pauses between the looks make this rare.  They pay
 * where the peer's CPU is far; where it is near, the message is there before a pause has
 * ended.  So the duration of one wait in P3_REST_EVERY tells how long to pause
 * (docs/design/lease-and-waiting.md).
 *
 * Only the lease holder calls these functions.  The state in struct p3_nic is waits and
 * pauses.
 */
#ifndef P3_NIC_RUN_REST_H
#define P3_NIC_RUN_REST_H

#include "nic/state.h"

#define P3_REST_EVERY 64u  /* waits */
#define P3_REST_NS    200u /* of a wait, for each pause */
#define P3_REST_MOST  2u   /* pauses */

/* Spend the time between two looks. */
static P3_HOT void p3_rest(const struct p3_nic *n)
{
	for (uint32_t left = n->pauses; left; left--)
		p3_relax();
}

/* Begin a wait.  Return its time if it is one to learn from, else 0. */
static P3_HOT uint64_t p3_rest_begin(struct p3_nic *n)
{
	return p3_likely(++n->waits % P3_REST_EVERY) ? 0 : p3_now_ns();
}

/* Learn from a wait that began at that time. */
static P3_HOT void p3_rest_end(struct p3_nic *n, uint64_t since)
{
	if (p3_likely(!since))
		return;
	uint64_t pauses = (p3_now_ns() - since) / P3_REST_NS;
	n->pauses = pauses < P3_REST_MOST ? (uint32_t)pauses : P3_REST_MOST;
}

#endif
