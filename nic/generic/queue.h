/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue - the generic event queue, from the firmware to the host
 *
 * A node that matches on its host (PTL3_MATCH=host) has one such queue.  The firmware
 * writes an entry for each new header and for each complete operation, and then raises an
 * interrupt (interrupt.h).  The host matches the header, or posts the event to the
 * program's queue.  While n->staging is set, events of Portals go to this queue; the host
 * clears it while it handles entries, so that its own events go straight to the program's
 * queues.
 *
 * Only the lease holder calls these functions.  The state is struct p3_generic, without
 * the interrupt.
 */
#ifndef P3_NIC_GENERIC_QUEUE_H
#define P3_NIC_GENERIC_QUEUE_H

#include "nic/state.h"

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
/* Return the oldest header, or NULL; no event is in the queue.  The caller handles it,
 * and then drops it. */
const struct p3_generic_event *p3_generic_oldest(const struct p3_generic *g);
void p3_generic_drop(struct p3_generic *g);

#endif
