/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generic - generic mode: its queue, the interrupt, and the host's thread
 *
 * In generic mode (PTL3_MATCH=host) three kinds of threads share a node's work:
 *
 *	firmware	the NIC thread (nic/run/thread.c) runs all passes.  It moves
 *			bytes, and does not match
 *	host		this thread stands for the kernel.  It sleeps until an interrupt,
 *			and then takes the lease and handles the generic event queue
 *	program		a thread that calls the library posts its commands in the mailbox,
 *			and never has the lease
 *
 * A free lease of such a node has the value P3_LEASE_RESERVED, so the fast checks of
 * program threads find it taken.
 *
 * Only the lease holder calls these functions, except where a comment says (any).  The
 * firmware's part and the upper pendings are in upper.h.
 */
#ifndef P3_NIC_GENERIC_GENERIC_H
#define P3_NIC_GENERIC_GENERIC_H

#include "nic/state.h"

/* ---- the generic event queue, from the firmware to the host ---- */

/*
 * The firmware writes an entry for each new header and for each complete operation, and
 * then raises an interrupt.  The host matches the header, or posts the event to the
 * program's queue.  While n->staging is set, events of Portals go to this queue; the host
 * clears it while it handles entries, so that its own events go straight to the program's
 * queues.
 */

/* Return the record of the next entry.  The caller writes its words, and then calls
 * p3_generic_stage(). */
P3_RARE struct p3_event_record *p3_generic_draft(struct p3_nic *n);
/* Enter the event for a program's queue, whose words are in the draft. */
P3_RARE void p3_generic_stage(struct p3_nic *n, struct p3_eq *eq, uint32_t event);
/* Enter a header (HEADER or REPLY) of the peer. */
P3_RARE void p3_generic_stage_header(
	struct p3_nic *n, uint32_t peer, enum p3_generic_kind kind);
/* Post all events to the programs' queues, and keep the headers.  The host does this
 * before it matches a header: the firmware has accounted for these operations already.
 * The firmware does it where the queue is full; there is at most one header of each kind
 * for each peer, so there is room then. */
void p3_generic_post_events(struct p3_nic *n);
/* Drop the oldest entry, which has been handled. */
void p3_generic_drop(struct p3_generic *g);

/* ---- the interrupt: the line from the firmware to the host's thread (any) ---- */

/*
 * The host's thread stands for the kernel of the machine that the papers describe.  It
 * sleeps, and an interrupt wakes it, by a futex or by a signal to this thread.  With
 * PTL3_MATCH=host/poll it polls for a while before it sleeps.  No interrupt is raised
 * while it handles entries, since it handles all of them before it sleeps.
 */

/* Wake the host's thread if it sleeps and there is an entry for it. */
void p3_interrupt_raise(struct p3_nic *n);
/* The host's thread: wait for an entry, or for the stop. */
void p3_interrupt_await(struct p3_nic *n);
/* End a wait for good. */
void p3_interrupt_stop(struct p3_generic *g);

/* ---- the host's part ---- */

/*
 * The host matches each new header with the same code as the firmware of other nodes, and
 * leaves a receive command in the upper pending: the firmware moves the bytes in its next
 * pass.  It delivers a request whose bytes came with the header itself.  It posts the
 * events of complete operations to the programs' queues.
 */

/* Handle all entries.  Commands that remove objects call this first, whichever thread
 * executes them, so that no entry names an object that is gone.  Do nothing on a node
 * whose firmware matches. */
P3_RARE void p3_generic_handle(struct p3_nic *n);

/* ---- start and stop, by the thread that starts or stops the NIC ---- */

/* Prepare generic mode if the settings choose it, before the NIC thread starts.  Return 0
 * or -ENOMEM. */
int p3_generic_prepare(struct p3_nic *n);
/* Start the host's thread.  Return 0 or -errno. */
int p3_generic_start(struct p3_nic *n);
/* Stop the host's thread; the NIC thread has stopped. */
void p3_generic_stop(struct p3_nic *n);
/* Free the memory.  These three functions do nothing in accelerated mode. */
void p3_generic_drop_all(struct p3_nic *n);

#endif
