/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors, and the operations that they hold, until their end. */
#include "nic/cci/internal.h"

#include <string.h>

/* ---- receive descriptors ---- */

struct p3_cci_rx *p3_cci_rx_fresh(struct p3_cci_endpoint *ep)
{
	uint32_t i = ep->rx_fresh++;
	struct p3_cci_rx *rx = &ep->rx[i];
	rx->item.ep = ep;
	rx->item.what = P3_CCI_RX;
	rx->slot = ep->rx_slots + (uint64_t)i * ep->stride;
	return rx;
}

void p3_cci_rx_set_count(struct p3_cci_endpoint *ep, uint32_t count)
{
	uint32_t left = p3_get(&ep->rx_left);
	uint32_t used = ep->rx_count + ep->rx_surplus - left;
	ep->rx_count = count;
	ep->rx_surplus = used > count ? used - count : 0;
	p3_set(&ep->rx_left, used > count ? 0 : count - used);
}

/* ---- send descriptors ---- */

struct p3_cci_tx *p3_cci_tx_fresh(struct p3_cci_endpoint *ep)
{
	struct p3_cci_tx *tx = &ep->tx[ep->tx_fresh++];
	tx->item.ep = ep;
	tx->item.what = P3_CCI_TX;
	p3_list_init(&tx->fifo);
	p3_list_init(&tx->wait);
	return tx;
}

struct p3_cci_tx *p3_cci_tx_new(struct p3_nic *n, struct p3_cci_conn *conn)
{
	struct p3_cci_endpoint *ep = conn->ep;
	if (p3_unlikely(!ep->tx_free))
		p3_cci_desc_drain(n, ep);
	if (p3_unlikely(!p3_cci_tx_is_free(n, ep)))
		return NULL;
	struct p3_cci_tx *tx = p3_cci_tx_take(conn);
	tx->rma = NULL;
	tx->state = P3_CCI_TX_WAITS;
	return tx;
}

static P3_HOT void cci_tx_free(struct p3_nic *n, struct p3_cci_tx *tx)
{
	struct p3_cci_endpoint *ep = tx->item.ep;
	tx->state = P3_CCI_TX_FREE;
	tx->token = 0;
	ep->tx_used--;
	p3_cci_desc_push(&ep->tx_free, &tx->item);
	struct p3_cci_conn *conn = tx->item.conn;
	conn->ntx--;
	if (p3_unlikely(conn->state == P3_CCI_CLOSED))
		p3_cci_conn_settle(n, conn);
}

void p3_cci_tx_settle(struct p3_nic *n, struct p3_cci_tx *tx)
{
	if (tx->is.returned && !tx->is.in_flight && tx->state == P3_CCI_TX_OVER)
		cci_tx_free(n, tx);
}

bool p3_cci_tx_slot(struct p3_cci_tx *tx)
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

void p3_cci_tx_slot_back(struct p3_cci_tx *tx)
{
	struct p3_cci_endpoint *ep = tx->item.ep;
	memcpy(tx->slot, &ep->slot_free, sizeof ep->slot_free);
	ep->slot_free = tx->slot;
	tx->slot = NULL;
}

/* ---- returned items ---- */

static P3_HOT void cci_desc_take_back(struct p3_nic *n, struct p3_cci_item *item)
{
	struct p3_cci_tx *tx = (struct p3_cci_tx *)item;
	struct p3_cci_request *r = (struct p3_cci_request *)item;
	switch (item->what) {
	case P3_CCI_RX:
		p3_cci_rx_free((struct p3_cci_rx *)item);
		break;
	case P3_CCI_WITHDRAWN:
		item->what = P3_CCI_TX;
		/* fallthrough */
	case P3_CCI_TX:
		if (p3_likely(!tx->is.in_flight)) /* so the operation is over */
			cci_tx_free(n, tx);
		else
			tx->is.returned = true;
		return;
	case P3_CCI_REQUEST:
		r->returned = true;
		if (r->state == P3_CCI_REQ_OVER)
			r->state = P3_CCI_REQ_FREE;
		return;
	case P3_CCI_SILENCE:
		item->conn->silence_out = false;
		break;
	default:
		break;
	}
	p3_cci_conn_unref(n, item->conn);
}

static P3_RARE void cci_desc_take_list_back(struct p3_nic *n, struct p3_cci_item *item)
{
	while (item) {
		struct p3_cci_item *next = item->next;
		cci_desc_take_back(n, item);
		item = next;
	}
}

void p3_cci_desc_drain_all(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	struct p3_cci_item *item;
	while ((item = p3_cci_queue_first_back(&ep->queue)) != NULL) {
		ep->queue.back_head++;
		cci_desc_take_back(n, item);
	}
	item = p3_cci_queue_take_returned(&ep->queue);
	if (p3_unlikely(item != NULL))
		cci_desc_take_list_back(n, item);
}

/* ---- the ends of operations and of connections ---- */

void p3_cci_tx_over(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status)
{
	tx->status = status;
	tx->state = P3_CCI_TX_OVER;
	if (tx->slot)
		p3_cci_tx_slot_back(tx);
	if (tx->is.awaited) {
		n->posted |= P3_NEWS_RESULT;
		p3_release(&tx->done, (uint32_t)status + 1); /* CCIQ.2 */
		return;
	}
	if (!tx->is.silent) {
		p3_cci_tx_post(n, tx, status);
		return;
	}
	tx->is.returned = true;
	p3_cci_tx_settle(n, tx);
}

P3_RARE void p3_cci_rma_withdraw(struct p3_nic *n, struct p3_cci_tx *tx)
{
	struct p3_pending *t = tx->rma;
	if (!t)
		return;
	tx->rma = NULL;
	t->rma = NULL;
	if (t->state == P3_PEND_QUEUED) {
		p3_pending_free(n, t);
		return;
	}
	tx->item.conn->rma_out--;
	if (t->state == P3_PEND_PULLING) {
		p3_pull_end(n, &t->xfer->pull, PTL_NI_FAIL);
	} else if (t->is_long && t->kind == P3_REQ_PUT && t->peer->state == P3_LIVE) {
		p3_xfer_withdraw(n, t->xfer);
		p3_set(&n->cci.withdrawn_ns, p3_now_ns());
		if (!tx->is.silent)
			tx->item.what = P3_CCI_WITHDRAWN;
	}
}

void p3_cci_tx_end(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status)
{
	struct p3_cci_conn *conn = tx->item.conn;
	const bool ordered = conn->pub.attribute == CCI_CONN_ATTR_RO;
	if (p3_unlikely(tx->state != P3_CCI_TX_SENT || tx->rma)) {
		p3_list_del(&tx->wait);
		p3_cci_rma_withdraw(n, tx);
		if (ordered && tx->state == P3_CCI_TX_DONE)
			return;
	}
	if (p3_unlikely(ordered && conn->fifo.next != &tx->fifo)) {
		tx->status = status;
		tx->state = P3_CCI_TX_DONE;
		return;
	}
	p3_list_del(&tx->fifo);
	if (p3_likely(!ordered || p3_list_empty(&conn->fifo))) {
		p3_cci_tx_over(n, tx, status);
		return;
	}
	p3_cci_tx_over(n, tx, status);
	while (!p3_list_empty(&conn->fifo)) { /* those behind it that are done */
		tx = p3_item(conn->fifo.next, struct p3_cci_tx, fifo);
		if (tx->state != P3_CCI_TX_DONE)
			return;
		p3_list_del(&tx->fifo);
		p3_cci_tx_over(n, tx, tx->status);
	}
}

void p3_cci_conn_break(struct p3_nic *n, struct p3_cci_conn *conn, cci_status_t status)
{
	bool unreliable = conn->pub.attribute == CCI_CONN_ATTR_UU;
	conn->state = P3_CCI_DEAD;
	conn->fate = status;
	conn->held = conn->probing = conn->resumes = false;
	/* On RO the operations behind one that fails fail, too, also those whose answers
	 * came before: the program learns what is certain by the first failure. */
	p3_list_each(it, &conn->fifo) {
		struct p3_cci_tx *tx = p3_item(it, struct p3_cci_tx, fifo);
		if (tx->state == P3_CCI_TX_DONE && tx->status == CCI_SUCCESS)
			tx->status = status;
	}
	conn->ntx++; /* keeps the connection until all are over */
	while (!p3_list_empty(&conn->fifo))
		p3_cci_tx_end(n, p3_item(conn->fifo.next, struct p3_cci_tx, fifo),
			unreliable ? CCI_SUCCESS : status);
	conn->ntx--;
}

void p3_cci_conn_set_up(struct p3_nic *n, struct p3_cci_conn *conn, cci_status_t status)
{
	union cci_event *e = &conn->setup.event;
	bool ok = status == CCI_SUCCESS;
	e->connect.type = conn->client ? CCI_EVENT_CONNECT : CCI_EVENT_ACCEPT;
	e->connect.status = status;
	e->connect.context = conn->pub.context;
	e->connect.connection = ok ? &conn->pub : NULL;
	if (!ok) {
		conn->state = P3_CCI_CLOSED;
		p3_set(&conn->closed, 1);
		p3_cci_conn_detach(n, conn);
	}
	p3_cci_conn_ref(conn);
	p3_cci_event_post(n, &conn->setup);
}
