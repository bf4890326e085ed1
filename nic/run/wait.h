/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait - waits of host threads until an event or a result is there
 *
 * Any host thread may call p3_wait_until() and p3_wait_in_turn(), without the lease; the
 * lease holder calls the others.  The state of a wait is on the waiting thread's stack;
 * struct p3_nic has the counts of waiting and of sleeping threads.
 */
#ifndef P3_NIC_RUN_WAIT_H
#define P3_NIC_RUN_WAIT_H

#include "nic/report/mirror.h"

/* A pass may leave messages behind, so a look at all lanes takes several passes: at most
 * this number. */
#define P3_WHOLE_TURNS 16u
/* time after which a waiting thread kicks a peer that has not taken a message */
#define P3_KICK_NS 100000u

/* passes within a tick, or a sleep, of hosts that do not poll */
#define P3_FEW_PASSES 16u

/* Wait until ready(arg), for ns at most (UINT64_MAX: no limit), or until the NIC's end.
 * Return true if ready.  Tools see that the thread waits for wants. */
bool p3_wait_until(struct p3_nic *n, uint64_t ns, const struct p3_wants *wants,
	bool (*ready)(void *), void *arg);
/* Begin a wait for an event where nodes share CPUs: if the last pass emptied the lanes,
 * yield the CPU, and run a pass, which most likely brings the event. */
void p3_wait_in_turn(struct p3_nic *n);
/* Return true if a thread must not sleep for long: a pull or a blocked request is under
 * way, a wire has frames to send and no thread that does it, or a peer has not taken a
 * message of this node yet, which no thread of a wire repeats. */
bool p3_wait_is_restless(struct p3_nic *n);
/* Kick peers that have not looked at their messages from this node. */
void p3_wait_kick_idle(struct p3_nic *n);

#endif
