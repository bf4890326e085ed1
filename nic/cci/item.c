/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors: free, in use, returned. */
#include "nic/cci/item.h"

#include <string.h>

/* ---- receive descriptors ---- */

struct p3_cci_rx *p3_cci_item_rx_fresh(struct p3_cci_endpoint *ep)
{
	uint32_t i = ep->rx_fresh++;
	struct p3_cci_rx *rx = &ep->rx[i];
	rx->item.ep = ep;
	rx->item.what = P3_CCI_RX;
	rx->slot = ep->rx_slots + (uint64_t)i * ep->stride;
	return rx;
}

void p3_cci_item_set_rx_count(struct p3_cci_endpoint *ep, uint32_t count)
{
	uint32_t left = p3_get(&ep->rx_left);
	uint32_t used = ep->rx_count + ep->rx_surplus - left;
	ep->rx_count = count;
	ep->rx_surplus = used > count ? used - count : 0;
	p3_set(&ep->rx_left, used > count ? 0 : count - used);
}

/* ---- send descriptors ---- */

struct p3_cci_tx *p3_cci_item_tx_fresh(struct p3_cci_endpoint *ep)
{
	struct p3_cci_tx *tx = &ep->tx[ep->tx_fresh++];
	tx->item.ep = ep;
	tx->item.what = P3_CCI_TX;
	p3_list_init(&tx->fifo);
	p3_list_init(&tx->wait);
	p3_list_init(&tx->rma);
	return tx;
}

struct p3_cci_tx *p3_cci_item_tx(struct p3_nic *n, struct p3_cci_conn *conn)
{
	struct p3_cci_endpoint *ep = conn->ep;
	if (p3_unlikely(!ep->tx_free))
		p3_cci_item_drain(n, ep);
	if (p3_unlikely(!p3_cci_item_has_tx(n, ep)))
		return NULL;
	struct p3_cci_tx *tx = p3_cci_item_tx_done(conn);
	tx->xfer = NULL;
	tx->state = P3_CCI_TX_WAITS;
	tx->op = P3_CCI_OP_MSG;
	return tx;
}

static P3_HOT void free_tx(struct p3_nic *n, struct p3_cci_tx *tx)
{
	struct p3_cci_endpoint *ep = tx->item.ep;
	tx->state = P3_CCI_TX_FREE;
	tx->token = 0;
	ep->tx_used--;
	p3_cci_item_push(&ep->tx_free, &tx->item);
	p3_cci_conn_tx_over(n, tx->item.conn);
}

void p3_cci_item_tx_over(struct p3_nic *n, struct p3_cci_tx *tx)
{
	if (tx->is.returned && !tx->is.in_flight && tx->state == P3_CCI_TX_OVER)
		free_tx(n, tx);
}

/* The program has returned the event of an operation, so the operation is over. */
static P3_HOT void tx_returned(struct p3_nic *n, struct p3_cci_tx *tx)
{
	if (p3_likely(!tx->is.in_flight))
		free_tx(n, tx);
	else
		tx->is.returned = true;
}

bool p3_cci_item_slot(struct p3_cci_tx *tx)
{
	struct p3_cci_endpoint *ep = tx->item.ep;
	char *slot = ep->slot_free;
	if (p3_likely(slot != NULL))
		memcpy(&ep->slot_free, slot, sizeof ep->slot_free);
	else if (ep->slot_fresh < ep->slot_count)
		slot = ep->tx_slots + (uint64_t)ep->slot_fresh++ * ep->stride;
	tx->slot = slot;
	return slot != NULL;
}

void p3_cci_item_slot_back(struct p3_cci_tx *tx)
{
	struct p3_cci_endpoint *ep = tx->item.ep;
	memcpy(tx->slot, &ep->slot_free, sizeof ep->slot_free);
	ep->slot_free = tx->slot;
	tx->slot = NULL;
}

/* ---- returned items ---- */

static void request_returned(struct p3_cci_item *item)
{
	struct p3_cci_request *r = (struct p3_cci_request *)item;
	r->returned = true;
	if (r->state == P3_CCI_REQ_OVER)
		r->state = P3_CCI_REQ_FREE;
}

static P3_HOT void take_back(struct p3_nic *n, struct p3_cci_item *item)
{
	switch (item->what) {
	case P3_CCI_RX:
		p3_cci_item_rx_free((struct p3_cci_rx *)item);
		break;
	case P3_CCI_WITHDRAWN:
		item->what = P3_CCI_TX;
		/* fallthrough */
	case P3_CCI_TX:
		tx_returned(n, (struct p3_cci_tx *)item);
		return;
	case P3_CCI_REQUEST:
		request_returned(item);
		return;
	case P3_CCI_SILENCE:
		item->conn->silence_out = false;
		break;
	default:
		break;
	}
	p3_cci_conn_unref(n, item->conn);
}

static P3_RARE void take_list_back(struct p3_nic *n, struct p3_cci_item *item)
{
	while (item) {
		struct p3_cci_item *next = item->next;
		take_back(n, item);
		item = next;
	}
}

void p3_cci_item_drain_all(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	struct p3_cci_item *item;
	while ((item = p3_cci_queue_drain(&ep->queue)) != NULL)
		take_back(n, item);
	item = p3_cci_queue_take_returned(&ep->queue);
	if (p3_unlikely(item != NULL))
		take_list_back(n, item);
}
