/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_tx - RMA operations of this node
 *
 * Only the lease holder calls these functions.  The state is the connection's list rma,
 * and the transfers of its operations.
 */
#ifndef P3_NIC_CCI_RMA_TX_H
#define P3_NIC_CCI_RMA_TX_H

#include "nic/state.h"

/* Send the requests of a connection's operations whose data have their turn.  Return
 * false if there is no room for all. */
bool p3_cci_rma_push(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn);
/* Take the answer to a WRITE or a READ.  Return false if the peer wrote nonsense. */
bool p3_cci_rma_answered(struct p3_nic *n, struct p3_peer *p, struct p3_cci_tx *tx,
	const struct p3_cell *c);
/* Note that the endpoint of an operation ends before the answer came: only the answer to
 * such an operation frees a slot by its number. */
void p3_cci_rma_abandon(struct p3_cci_tx *tx);
/* Take the answer to an operation whose endpoint is gone. */
void p3_cci_rma_take_late(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c);
/* Free the slots of transfers with a lost peer, for which no answer will come. */
void p3_cci_rma_lose_peer(struct p3_nic *n, const struct p3_peer *p);
/* Withdraw the memory that peers may read, and stop this node's reads, for an operation,
 * or for all of a connection.  No slice begins afterwards; before the program gets its
 * memory back, a host thread calls p3_cci_wait_for_readers(). */
void p3_cci_rma_withdraw(struct p3_nic *n, struct p3_cci_tx *tx);
void p3_cci_rma_withdraw_all(struct p3_nic *n, struct p3_cci_conn *conn);

#endif
