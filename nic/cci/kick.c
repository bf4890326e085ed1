/* SPDX-License-Identifier: BSD-3-Clause */
/* The marker of CCI's messages among the requests that wait for a peer. */
#include "nic/cci/kick.h"

#include "nic/proto/proto.h"

void p3_cci_kick(struct p3_nic *n, struct p3_peer *p)
{
	struct p3_link *marker = &p->cci_marker.link;
	if ((p->state != P3_LIVE && p->state != P3_EXPECTED) || !p3_list_empty(marker))
		return;
	if (p->state == P3_LIVE && p3_list_empty(&p->queue))
		while (p3_cci_push_waits(p) && p3_cci_push(n, p))
			;
	if (!p3_cci_push_waits(p))
		return;
	p3_list_add(&p->queue, marker);
	p3_tx_push(n, p);
}
