/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends: descriptors, copies, the way into the lane. */
#include "nic/cci/msg_tx.h"

#include "nic/cci/expire.h"
#include "nic/cci/item.h"
#include "nic/cci/kick.h"
#include "nic/cci/lane.h"
#include "nic/cci/op.h"
#include "nic/report/report.h"

#include <string.h>

void p3_cci_msg_gather(char *to, const struct iovec *data, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (data[i].iov_len)
			memcpy(to, data[i].iov_base, data[i].iov_len);
		to += data[i].iov_len;
	}
}

struct p3_cci_tx *p3_cci_msg_begin(
	struct p3_nic *n, struct p3_cci_conn *conn, void *context, int flags)
{
	struct p3_cci_tx *tx = p3_cci_item_tx(n, conn);
	if (!tx)
		return NULL;
	if (conn->pub.attribute != CCI_CONN_ATTR_UU)
		tx->token =
			p3_cci_conn_new_name(n, conn->ep, (uint32_t)(tx - conn->ep->tx));
	tx->item.event.send.context = context;
	tx->is.awaited = flags & CCI_FLAG_BLOCKING;
	tx->is.silent = !tx->is.awaited && (flags & CCI_FLAG_SILENT);
	p3_set(&tx->done, 0);
	tx->tick = conn->tick;
	return tx;
}

bool p3_cci_msg_keep(struct p3_cci_tx *tx, const struct iovec *data, uint32_t n,
	uint32_t len, int flags)
{
	bool borrow = (flags & CCI_FLAG_NO_COPY) && n == 1 &&
		      tx->item.conn->pub.attribute != CCI_CONN_ATTR_UU;
	tx->len = len;
	tx->part = 0;
	if (len <= P3_CCI_INLINE) {
		p3_cci_msg_gather(tx->in_line, data, n);
		tx->bytes = tx->in_line;
		return true;
	}
	if (borrow) {
		tx->bytes = data->iov_base;
		return true;
	}
	if (!p3_cci_item_slot(tx))
		return false;
	p3_cci_msg_gather(tx->slot, data, n);
	tx->bytes = tx->slot;
	return true;
}

void p3_cci_msg_give_up(struct p3_nic *n, struct p3_cci_tx *tx)
{
	p3_cci_item_slot_free(tx);
	tx->state = P3_CCI_TX_OVER;
	tx->is.returned = true;
	p3_cci_item_tx_over(n, tx);
}

int p3_cci_msg_too_late(struct p3_nic *n, struct p3_cci_tx *tx, int flags)
{
	struct p3_cci_conn *conn = tx->item.conn;
	bool unreliable = conn->pub.attribute == CCI_CONN_ATTR_UU;
	cci_status_t status = unreliable ? CCI_SUCCESS : conn->fate;
	if (flags & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING)) {
		p3_cci_msg_give_up(n, tx);
		return (int)status;
	}
	p3_cci_op_over(n, tx, status);
	return CCI_SUCCESS;
}

/* ---- unreliable messages ---- */

/* Send a message from the program's memory.  Return false if the lane has no room. */
static bool send_now(struct p3_nic *n, struct p3_peer *p, const struct p3_cci_send *s)
{
	uint32_t cells = p3_cci_cells(P3_CCI_MSG_HEAD, s->len);
	if (p3_unlikely(cells > p3_cci_most_cells(p)))
		return false;
	if (p3_unlikely(!p3_cci_has_room(n, p, cells, 0)))
		return false;
	struct p3_cell *c = p3_cci_begin(n, p, cells);
	p3_cci_msg_gather(p3_format_bytes(c, P3_CCI_MSG_DATA), s->data, s->n);
	p3_format_set(c, P3_CCI_ROOM, p3_field_in(P3_CCI_MSG_LENGTH, s->len));
	p3_format_set(c, P3_CCI_TOKEN, 0);
	p3_format_set(c, P3_CCI_TAG, s->conn->peer_tag);
	P3_TRACE(send, n, p, p3_word0(P3_REQ_CCI_MSG, 0, cells), s->len);
	p3_cci_publish(n, p, P3_REQ_CCI_MSG, 0, cells, 0);
	p3_count(&n->cci.count[P3_CCI_C_SENT], 1);
	return true;
}

static void send_unreliable(struct p3_nic *n, struct p3_cci_send *s)
{
	struct p3_cci_conn *conn = s->conn;
	const int quiet = CCI_FLAG_SILENT | CCI_FLAG_BLOCKING;
	struct p3_cci_tx *tx = NULL;
	bool now = p3_list_empty(&conn->wait) && p3_cci_kick_is_free(conn->peer);
	s->rc = CCI_ENOBUFS;
	if (!(s->flags & quiet) || !now) {
		/* A thread does not wait for the lane: its message is copied. */
		int flags = s->flags & quiet ? CCI_FLAG_SILENT : 0;
		tx = p3_cci_msg_begin(n, conn, s->context, flags);
		if (!tx)
			return;
	}
	if (now && send_now(n, conn->peer, s)) {
		s->rc = CCI_SUCCESS;
		if (tx)
			p3_cci_op_over(n, tx, CCI_SUCCESS);
		return;
	}
	if (!tx)
		tx = p3_cci_msg_begin(n, conn, NULL, CCI_FLAG_SILENT);
	if (!tx)
		return;
	if (!p3_cci_msg_keep(tx, s->data, s->n, s->len, 0)) {
		p3_cci_msg_give_up(n, tx);
		return;
	}
	s->rc = CCI_SUCCESS;
	p3_list_add(&conn->fifo, &tx->fifo);
	p3_list_add(&conn->wait, &tx->wait);
	p3_cci_kick_conn(n, conn);
}

/* ---- reliable messages ---- */

/* Return true if the message may leave before anything else of its connection. */
static bool is_next(const struct p3_cci_conn *conn)
{
	return p3_list_empty(&conn->wait) && !conn->held && !conn->probing &&
	       p3_cci_kick_is_free(conn->peer);
}

static void send_reliable(struct p3_nic *n, struct p3_cci_send *s)
{
	struct p3_cci_conn *conn = s->conn;
	struct p3_cci_tx *tx = p3_cci_msg_begin(n, conn, s->context, s->flags);
	s->rc = CCI_ENOBUFS;
	if (p3_unlikely(!tx))
		return;
	if (p3_unlikely(!p3_cci_msg_keep(tx, s->data, s->n, s->len, s->flags))) {
		p3_cci_msg_give_up(n, tx);
		return;
	}
	s->rc = CCI_SUCCESS;
	s->tx = tx->is.awaited ? tx : NULL;
	p3_list_add(&conn->fifo, &tx->fifo);
	p3_cci_expire_watch(n, conn);
	if (p3_likely(is_next(conn)) && p3_cci_push_msg(n, conn->peer, conn, tx))
		return;
	p3_list_add(&conn->wait, &tx->wait);
	p3_cci_kick_conn(n, conn);
}

/* ---- all messages ---- */

static void send_dead(struct p3_nic *n, struct p3_cci_send *s)
{
	struct p3_cci_tx *tx = p3_cci_msg_begin(n, s->conn, s->context, s->flags);
	s->rc = tx ? p3_cci_msg_too_late(n, tx, s->flags) : CCI_ENOBUFS;
}

void p3_cci_msg_send(struct p3_nic *n, struct p3_cci_send *s)
{
	s->tx = NULL;
	if (p3_unlikely(s->conn->state != P3_CCI_READY))
		send_dead(n, s);
	else if (s->conn->pub.attribute == CCI_CONN_ATTR_UU)
		send_unreliable(n, s);
	else
		send_reliable(n, s);
}
