/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * push - messages into the lane of a peer: at once, or from the lists of waiting ones
 *
 * A connection that has messages to send and finds no room is in its peer's list "work".
 * That list has one entry in the peer's queue of Portals' requests, its marker.  So CCI
 * and Portals take turns where the lane is short of room, and neither starves the other.
 *
 * Only the lease holder calls these functions.  The state is the lists work and rejects
 * of a peer, and the lists wait and rma of its connections.
 */
#ifndef P3_NIC_CCI_PUSH_H
#define P3_NIC_CCI_PUSH_H

#include "nic/state.h"

/* Return true if a message waits for room in the peer's lane. */
static inline bool p3_cci_push_waits(const struct p3_peer *p)
{
	return !p3_list_empty(&p->cci.work) || !p3_list_empty(&p->cci.rejects);
}

/* Send from the peer's lists.  Return true if a message was sent.  A pointer, since files
 * that push.c calls use it. */
extern bool (*const p3_cci_push)(struct p3_nic *n, struct p3_peer *p);

/* Send the parts of a message that have yet to be sent, of the bytes in tx.  Return false
 * if there is no room for all. */
bool p3_cci_push_msg(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn,
	struct p3_cci_tx *tx);

/* Note that the connection has messages to send. */
static inline void p3_cci_push_later(struct p3_cci_conn *conn)
{
	if (p3_list_empty(&conn->work))
		p3_list_add(&conn->peer->cci.work, &conn->work);
}

#endif
