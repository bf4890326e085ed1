/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * answered - answers to this node's requests
 *
 * Only the lease holder calls this function.  The state is the connections of the peer,
 * and asked of its struct p3_cci_peer.
 */
#ifndef P3_NIC_CCI_ANSWERED_H
#define P3_NIC_CCI_ANSWERED_H

#include "nic/state.h"

/* Take an answer, whose header is c.  Return the cells that its request had reserved, or
 * 0 if the peer wrote nonsense. */
uint32_t p3_cci_answered(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c);

/* Take an answer of CCI by the straight path: the message was taken, and the connection
 * has nothing else to do.  Return false if it is another answer. */
bool p3_cci_answered_straight(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c);

#endif
