/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wake - wake sleeping threads of this node and of peers
 *
 * The lease holder calls these functions, or the thread that has just given up the lease
 * or stops the NIC, except where a comment says (any).  The state is the words that
 * threads sleep on: the shared words asleep and kick, and news of struct p3_nic.
 */
#ifndef P3_NIC_RUN_WAKE_H
#define P3_NIC_RUN_WAKE_H

#include "nic/state.h"

/* Return the word that a node sleeps on. */
static inline p3_a32 *p3_wake_word(
	const struct p3_nic *n, uint32_t node, struct p3_doorbell *doorbell)
{
	struct p3_sleeper *all = n->conf.sleepers;
	return all ? &all[node].asleep : &doorbell->asleep;
}

/* (any) Disarm the word that a node sleeps on, and wake the thread that armed it.
 * Return false if no thread has armed it. */
bool p3_wake_sleeper(p3_a32 *asleep);
/* Do as p3_wake_sleeper(), and count the wake-up. */
void p3_wake_peer(struct p3_nic *n, p3_a32 *asleep);
/* Wake this node's parked host threads that wait for one of these news, the watcher of
 * the doorbell included. */
void p3_wake_hosts(struct p3_nic *n, uint32_t news);
/* Wake one of the parked host threads that tend the node when no other thread does. */
void p3_wake_tender(struct p3_nic *n);
/* Wake this node's sleeping thread, because work has begun for which no peer rings the
 * doorbell. */
void p3_wake_self(struct p3_nic *n);
/* Make a peer look for messages: wake its sleeping thread, or if none sleeps on the
 * doorbell, make its NIC thread tick at once. */
void p3_wake_kick(struct p3_nic *n, struct p3_peer *p);

#endif
