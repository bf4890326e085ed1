/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * item - the descriptors of an endpoint: free, in use, returned
 *
 * The lists of free descriptors and slots are last-in-first-out, so a ping-pong stays in
 * the nearest cache.  Memory that no message has used is not touched.
 *
 * Only the lease holder calls these functions.  The state is the lists of an endpoint.
 */
#ifndef P3_NIC_CCI_ITEM_H
#define P3_NIC_CCI_ITEM_H

#include "nic/state.h"

/* Take back all that the program has returned. */
void p3_cci_item_drain(struct p3_nic *n, struct p3_cci_endpoint *ep);

/* Return a free receive descriptor, or NULL.  Free one that was not posted. */
struct p3_cci_rx *p3_cci_item_rx(struct p3_nic *n, struct p3_cci_endpoint *ep);
void p3_cci_item_rx_free(struct p3_cci_rx *rx);

/* Return a send descriptor of the connection, or NULL. */
struct p3_cci_tx *p3_cci_item_tx(struct p3_nic *n, struct p3_cci_conn *conn);
/* Free a send descriptor, unless its event or its answer is to come back. */
void p3_cci_item_tx_over(struct p3_nic *n, struct p3_cci_tx *tx);
/* Give the descriptor a slot for its message.  Return false if there is none. */
bool p3_cci_item_slot(struct p3_cci_tx *tx);
void p3_cci_item_slot_free(struct p3_cci_tx *tx);

/* Return the operation that an answer names, or NULL. */
struct p3_cci_tx *p3_cci_item_named(const struct p3_nic *n, uint64_t token);

/* Change the number of receive descriptors. */
void p3_cci_item_set_rx_count(struct p3_cci_endpoint *ep, uint32_t count);

#endif
