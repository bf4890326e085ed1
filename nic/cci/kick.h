/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kick - start to send the messages that wait for a peer
 *
 * Only the lease holder calls these functions.  The state is the peer's marker.
 */
#ifndef P3_NIC_CCI_KICK_H
#define P3_NIC_CCI_KICK_H

#include "nic/cci/push.h"

/* Send from the peer's lists, and put the marker into its queue if something is left. */
void p3_cci_kick(struct p3_nic *n, struct p3_peer *p);

/* Return true if no message waits for the peer, so that one may be sent at once. */
static inline bool p3_cci_kick_is_free(const struct p3_peer *p)
{
	return p->state == P3_LIVE && p3_list_empty(&p->queue) && !p3_cci_push_waits(p);
}

/* Send from this connection's lists. */
static inline void p3_cci_kick_conn(struct p3_nic *n, struct p3_cci_conn *conn)
{
	p3_cci_push_later(conn);
	p3_cci_kick(n, conn->peer);
}

#endif
