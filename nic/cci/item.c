/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors: free, in use, returned. */
#include "nic/cci/item.h"

#include "nic/cci/conn.h"
#include "nic/cci/queue.h"

#include <string.h>

static void push(struct p3_cci_item **list, struct p3_cci_item *item)
{
	item->next = *list;
	*list = item;
}

static struct p3_cci_item *pop(struct p3_cci_item **list)
{
	struct p3_cci_item *item = *list;
	if (item)
		*list = item->next;
	return item;
}

/* ---- receive descriptors ---- */

void p3_cci_item_rx_free(struct p3_cci_rx *rx)
{
	struct p3_cci_endpoint *ep = rx->item.ep;
	push(&ep->rx_free, &rx->item);
	if (p3_unlikely(ep->rx_surplus))
		ep->rx_surplus--;
	else
		p3_set(&ep->rx_left, p3_get(&ep->rx_left) + 1);
}

static struct p3_cci_rx *fresh_rx(struct p3_cci_endpoint *ep)
{
	uint32_t i = ep->rx_fresh++;
	struct p3_cci_rx *rx = &ep->rx[i];
	rx->item.ep = ep;
	rx->item.what = P3_CCI_RX;
	rx->slot = ep->rx_slots + (uint64_t)i * ep->stride;
	return rx;
}

struct p3_cci_rx *p3_cci_item_rx(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	p3_cci_item_drain(n, ep);
	uint32_t left = p3_get(&ep->rx_left);
	if (p3_unlikely(!left))
		return NULL;
	p3_set(&ep->rx_left, left - 1);
	struct p3_cci_item *item = pop(&ep->rx_free);
	return p3_likely(item != NULL) ? (struct p3_cci_rx *)item : fresh_rx(ep);
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

static struct p3_cci_tx *fresh_tx(struct p3_cci_endpoint *ep)
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
	p3_cci_item_drain(n, ep);
	if (p3_unlikely(ep->tx_used >= ep->tx_count))
		return NULL;
	struct p3_cci_item *item = pop(&ep->tx_free);
	struct p3_cci_tx *tx =
		p3_likely(item != NULL) ? (struct p3_cci_tx *)item : fresh_tx(ep);
	ep->tx_used++;
	conn->ntx++;
	tx->item.conn = conn;
	tx->token = p3_cci_conn_new_name(n, ep, (uint32_t)(tx - ep->tx));
	tx->bytes = NULL;
	tx->slot = NULL;
	tx->xfer = NULL;
	tx->len = tx->part = 0;
	tx->state = P3_CCI_TX_WAITS;
	tx->op = P3_CCI_OP_MSG;
	tx->numbered = tx->silent = tx->awaited = tx->in_flight = tx->returned = false;
	tx->with_msg = tx->fence = tx->data_done = false;
	return tx;
}

void p3_cci_item_tx_over(struct p3_nic *n, struct p3_cci_tx *tx)
{
	struct p3_cci_endpoint *ep = tx->item.ep;
	struct p3_cci_conn *conn = tx->item.conn;
	if (!tx->returned || tx->in_flight || tx->state != P3_CCI_TX_OVER)
		return;
	tx->state = P3_CCI_TX_FREE;
	tx->token = 0;
	ep->tx_used--;
	push(&ep->tx_free, &tx->item);
	if (--conn->ntx == 0)
		p3_cci_conn_settle(n, conn);
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

void p3_cci_item_slot_free(struct p3_cci_tx *tx)
{
	struct p3_cci_endpoint *ep = tx->item.ep;
	if (!tx->slot)
		return;
	memcpy(tx->slot, &ep->slot_free, sizeof ep->slot_free);
	ep->slot_free = tx->slot;
	tx->slot = NULL;
}

struct p3_cci_tx *p3_cci_item_named(const struct p3_nic *n, uint64_t token)
{
	struct p3_cci_endpoint *ep = p3_cci_conn_endpoint(n, token);
	uint32_t i = p3_cci_conn_number(token);
	if (p3_unlikely(!ep || i >= ep->tx_fresh || !token))
		return NULL;
	return p3_likely(ep->tx[i].token == token) ? &ep->tx[i] : NULL;
}

/* ---- returned items ---- */

static void request_returned(struct p3_cci_item *item)
{
	struct p3_cci_request *r = (struct p3_cci_request *)item;
	r->returned = true;
	if (r->state == P3_CCI_REQ_OVER)
		r->state = P3_CCI_REQ_FREE;
}

static void take_back(struct p3_nic *n, struct p3_cci_item *item)
{
	struct p3_cci_conn *conn = item->conn;
	switch (item->what) {
	case P3_CCI_RX:
		p3_cci_item_rx_free((struct p3_cci_rx *)item);
		break;
	case P3_CCI_TX:
		((struct p3_cci_tx *)item)->returned = true;
		p3_cci_item_tx_over(n, (struct p3_cci_tx *)item);
		return;
	case P3_CCI_REQUEST:
		request_returned(item);
		return;
	case P3_CCI_SILENCE:
		conn->silence_out = false;
		break;
	default:
		break;
	}
	p3_cci_conn_unref(n, conn);
}

void p3_cci_item_drain(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	struct p3_cci_item *item;
	while ((item = p3_cci_queue_drain(&ep->queue)) != NULL)
		take_back(n, item);
	item = p3_cci_queue_take_returned(&ep->queue);
	while (p3_unlikely(item != NULL)) {
		struct p3_cci_item *next = item->next;
		take_back(n, item);
		item = next;
	}
}
