/* SPDX-License-Identifier: BSD-3-Clause */
/* News for OS handles. */
#include "nic/cci/event.h"

#include "nic/cci/handle.h"

void p3_cci_event_signal(struct p3_nic *n)
{
	struct p3_cci_endpoint *ep = n->cci.dirty;
	if (!ep)
		return;
	n->cci.dirty = NULL;
	p3_fence(); /* CCIFD.1: the events are posted before the look at the state */
	while (ep) {
		struct p3_cci_endpoint *next = ep->next;
		ep->dirty = false;
		p3_cci_handle_posted(&ep->handle);
		ep = next;
	}
}

void p3_cci_event_remind(struct p3_nic *n)
{
	bool sleeps = p3_get(&n->nic_asleep);
	for (uint32_t i = 0; i < n->cci.ends; i++) {
		struct p3_cci_endpoint *ep = n->cci.ep[i];
		if (!ep || ep->handle.fd < 0)
			continue;
		if (sleeps)
			p3_cci_handle_arm(&ep->handle);
		if (p3_cci_queue_any(&ep->queue))
			p3_cci_handle_remind(&ep->handle);
	}
}

void p3_cci_event_forget(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	struct p3_cci_endpoint **at = &n->cci.dirty;
	while (*at && *at != ep)
		at = &(*at)->next;
	if (*at)
		*at = ep->next;
	ep->dirty = false;
}
