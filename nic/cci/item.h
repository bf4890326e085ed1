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

#include "nic/cci/conn.h"
#include "nic/cci/queue.h"
#include "nic/state.h"

static inline void p3_cci_item_push(struct p3_cci_item **list, struct p3_cci_item *item)
{
	item->next = *list;
	*list = item;
}

/* ---- returned items ---- */

/* Take back all that the program has returned.  Most are receive descriptors. */
void p3_cci_item_drain_all(struct p3_nic *n, struct p3_cci_endpoint *ep);
static inline void p3_cci_item_drain(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	if (p3_cci_queue_has_back(&ep->queue))
		p3_cci_item_drain_all(n, ep);
}

/* ---- receive descriptors ---- */

/* Use a descriptor for the first time. */
P3_RARE struct p3_cci_rx *p3_cci_item_rx_fresh(struct p3_cci_endpoint *ep);

/* Return a free receive descriptor, or NULL.  One that the program has just returned is
 * in the nearest cache. */
static P3_HOT struct p3_cci_rx *p3_cci_item_rx(
	struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	struct p3_cci_item *item = p3_cci_queue_first_back(&ep->queue);
	if (p3_likely(item && item->what == P3_CCI_RX && !ep->rx_surplus)) {
		ep->queue.back_head++;
		p3_cci_conn_unref(n, item->conn);
		return (struct p3_cci_rx *)item;
	}
	p3_cci_item_drain(n, ep);
	uint32_t left = p3_get(&ep->rx_left);
	if (p3_unlikely(!left))
		return NULL;
	p3_set(&ep->rx_left, left - 1);
	item = ep->rx_free;
	if (p3_unlikely(!item))
		return p3_cci_item_rx_fresh(ep);
	ep->rx_free = item->next;
	return (struct p3_cci_rx *)item;
}

/* Free a descriptor. */
static inline void p3_cci_item_rx_free(struct p3_cci_rx *rx)
{
	struct p3_cci_endpoint *ep = rx->item.ep;
	p3_cci_item_push(&ep->rx_free, &rx->item);
	if (p3_unlikely(ep->rx_surplus))
		ep->rx_surplus--;
	else
		p3_set(&ep->rx_left, p3_get(&ep->rx_left) + 1);
}

/* Change the number of receive descriptors. */
void p3_cci_item_set_rx_count(struct p3_cci_endpoint *ep, uint32_t count);

/* ---- send descriptors ---- */

/* Return true if p3_cci_item_tx() would return a descriptor. */
static inline bool p3_cci_item_has_tx(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	if (p3_unlikely(ep->tx_used >= ep->tx_count))
		p3_cci_item_drain(n, ep);
	return ep->tx_used < ep->tx_count;
}

/* Use a send descriptor for the first time. */
P3_RARE struct p3_cci_tx *p3_cci_item_tx_fresh(struct p3_cci_endpoint *ep);

/* Return a send descriptor of the connection in the state OVER; p3_cci_item_has_tx() has
 * returned true. */
static P3_HOT struct p3_cci_tx *p3_cci_item_tx_done(struct p3_cci_conn *conn)
{
	struct p3_cci_endpoint *ep = conn->ep;
	struct p3_cci_item *item = ep->tx_free;
	struct p3_cci_tx *tx = (struct p3_cci_tx *)item;
	if (p3_likely(item != NULL))
		ep->tx_free = item->next;
	else
		tx = p3_cci_item_tx_fresh(ep);
	ep->tx_used++;
	conn->ntx++;
	tx->item.conn = conn;
	tx->is = (struct p3_cci_tx_is){0};
	tx->state = P3_CCI_TX_OVER;
	return tx;
}

/* Return a send descriptor of the connection, or NULL.  Its token is 0. */
struct p3_cci_tx *p3_cci_item_tx(struct p3_nic *n, struct p3_cci_conn *conn);
/* Free a send descriptor, unless its event or its answer is to come back. */
void p3_cci_item_tx_over(struct p3_nic *n, struct p3_cci_tx *tx);
/* Give the descriptor a slot for its message.  Return false if there is none. */
bool p3_cci_item_slot(struct p3_cci_tx *tx);
P3_RARE void p3_cci_item_slot_back(struct p3_cci_tx *tx);
static inline void p3_cci_item_slot_free(struct p3_cci_tx *tx)
{
	if (tx->slot)
		p3_cci_item_slot_back(tx);
}

/* Return the operation that an answer names, or NULL. */
static inline struct p3_cci_tx *p3_cci_item_named(const struct p3_nic *n, uint64_t token)
{
	struct p3_cci_endpoint *ep = p3_cci_conn_endpoint(n, token);
	uint32_t i = p3_cci_conn_number(token);
	if (p3_unlikely(!ep || i >= ep->tx_fresh || !token))
		return NULL;
	return p3_likely(ep->tx[i].token == token) ? &ep->tx[i] : NULL;
}

#endif
