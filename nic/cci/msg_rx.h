/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg_rx - messages received
 *
 * A message that comes in parts gets its receive descriptor with the first part.
 *
 * Only the lease holder calls these functions.  The state is in the connection: coming,
 * seq_in, refusing, in_parts.
 */
#ifndef P3_NIC_CCI_MSG_RX_H
#define P3_NIC_CCI_MSG_RX_H

#include "nic/state.h"

/* Take a message, or a part of it.  Return false if the peer wrote nonsense. */
bool p3_cci_msg_take(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0);
/* Free the descriptor of a message whose other parts will not come. */
void p3_cci_msg_forget(struct p3_cci_conn *conn);

/*
 * Take a message at the peer's lane, which is not one of several parts, by the straight
 * path: of one cell, or of k cells, which is a possible number.  The caller has made sure
 * that no answer of the peer comes before it, and that nothing is traced.  Return false,
 * with nothing done, unless the connection lives and expects the message, a receive
 * descriptor is free, and an answer may leave at once.
 */
bool p3_cci_msg_take_one(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c);
bool p3_cci_msg_take_longer(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint32_t k);

#endif
