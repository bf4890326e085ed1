/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ringer - the wire's thread, which rings this node's doorbell when the wire needs a pass
 *
 * A thread that sleeps waits for the word asleep, and the kernel lets no thread wait for
 * a word and a descriptor at once.  So where a wire has a descriptor (arm of
 * nic/wire/wire.h), one more thread sleeps in epoll_wait.  When it becomes
 * readable, this thread does what a peer does after publishing: it wakes the thread of
 * this node that sleeps.  epoll reports the descriptor once, and then not before a thread
 * arms it again: the lease holder does so when it gives the lease up while
 * the word asleep is armed.
 *
 * A NIC whose peers all share memory has no such thread (n->ringer is NULL).  A process
 * that gets no descriptor or thread has none either, and prints a line.  A program may
 * close the descriptors that the library uses: then the thread does nothing more.
 * Without the thread, sleeps are short while the wire waits; P3_C_WIRE_NAPS counts them.
 *
 * The lease holder calls these functions, except where a comment says (any).  Their state
 * is n->ringer.
 *
 * Memory ordering:
 *	PARK.2	publish: the thread that arms the descriptor (its node's asleep is
 *		stored) -> the wire's thread, which loads asleep.  The kernel's lock of
 *		the epoll set orders the two.
 */
#ifndef P3_NIC_RUN_RINGER_H
#define P3_NIC_RUN_RINGER_H

#include "nic/state.h"

/* Start the thread if passes poll the wire, and it can arm its descriptor. */
void p3_ringer_start(struct p3_nic *n);
/* End the thread.  The wire closes its descriptor after that. */
void p3_ringer_stop(struct p3_nic *n);
/* Close the thread's own descriptors, after the wire has closed its own. */
void p3_ringer_drop(struct p3_nic *n);
/* (any) In a forked child: close the descriptors of the parent's thread. */
void p3_ringer_forget(struct p3_nic *n);

/* Arm the descriptor.  Return true if the node's threads shall not sleep now: the wire
 * needs a pass, or its descriptor is gone. */
P3_RARE bool p3_ringer_arm(struct p3_nic *n);
/* (any) Wake the thread of this node that sleeps, if there is one. */
P3_RARE void p3_ringer_wake(struct p3_nic *n);

/* Return true if the descriptors of the thread and of the wire still name their files.
 * The wire asks before it closes its descriptor. */
bool p3_ringer_owns(const struct p3_nic *n);

/* Return true if the thread rings for the wire. */
bool p3_ringer_serves(const struct p3_nic *n);
/* Return true, and count, if the wire waits and no thread rings for it: the caller must
 * look at the wire again soon. */
bool p3_ringer_misses(struct p3_nic *n);

#endif
