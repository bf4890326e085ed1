/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event - events into the queue of their endpoint, and the OS handle's news
 *
 * Only the lease holder calls these functions.  The state is the queue of the endpoint,
 * and dirty of n->cci.
 */
#ifndef P3_NIC_CCI_EVENT_H
#define P3_NIC_CCI_EVENT_H

#include "nic/cci/queue.h"
#include "nic/run/run.h"
#include "shm/fault.h"

/* Have the next pass look at the OS handle of the endpoint. */
static inline void p3_cci_event_dirty(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	if (ep->dirty)
		return;
	ep->dirty = true;
	ep->next = n->cci.dirty;
	n->cci.dirty = ep;
	p3_odd_set(n, P3_ODD_CCI);
}

/* Post the event that lies in an item. */
static inline void p3_cci_event_post(struct p3_nic *n, struct p3_cci_item *item)
{
	struct p3_cci_endpoint *ep = item->ep;
	FAULT_POINT("cci.event_written");
	p3_cci_queue_post(&ep->queue, item);
	FAULT_POINT("cci.event_posted");
	n->posted |= P3_NEWS_RESULT;
	if (p3_unlikely(ep->handle.fd >= 0))
		p3_cci_event_dirty(n, ep);
}

/* Signal the OS handles of endpoints with news, if threads may sleep there. */
void p3_cci_event_signal(struct p3_nic *n);
/* Make each OS handle readable whose endpoint has events, also if no signal was due: the
 * NIC thread does that at its ticks, and before it sleeps.  Before a sleep it also ends
 * the state IDLE, in which only ticks wake a program that does not poll any more. */
void p3_cci_event_remind(struct p3_nic *n);
/* Take an endpoint that ends from the list of those with news. */
void p3_cci_event_forget(struct p3_nic *n, struct p3_cci_endpoint *ep);

#endif
