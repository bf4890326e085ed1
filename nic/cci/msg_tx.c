/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends: the calls of the program, descriptors, copies. */
#include "nic/cci/internal.h"
#include "nic/host/call.h"
#include "nic/report/report.h"
#include "nic/run/lease.h"

#include <string.h>

/* The arguments of cci_sendv(). */
struct cci_send_args {
	struct p3_cci_conn *conn;
	const struct iovec *data;
	uint32_t n;
	uint32_t len;
	void *context;
	int flags;
	struct p3_cci_tx *tx; /* out: BLOCKING: the operation to wait for, or NULL */
	int rc;               /* out */
};

static void cci_msg_gather(char *to, const struct iovec *data, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (data[i].iov_len)
			memcpy(to, data[i].iov_base, data[i].iov_len);
		to += data[i].iov_len;
	}
}

/* Return true if no message waits for the peer, so that one may be sent at once. */
static inline bool cci_peer_is_free(const struct p3_peer *p)
{
	return p->state == P3_LIVE && p3_list_empty(&p->queue) && !p3_cci_sendq_waits(p);
}

struct p3_cci_tx *p3_cci_msg_begin(
	struct p3_nic *n, struct p3_cci_conn *conn, void *context, int flags)
{
	struct p3_cci_tx *tx = p3_cci_tx_new(n, conn);
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
		cci_msg_gather(tx->in_line, data, n);
		tx->bytes = tx->in_line;
		return true;
	}
	if (borrow) {
		tx->bytes = data->iov_base;
		return true;
	}
	if (!p3_cci_tx_slot(tx))
		return false;
	cci_msg_gather(tx->slot, data, n);
	tx->bytes = tx->slot;
	return true;
}

void p3_cci_msg_give_up(struct p3_nic *n, struct p3_cci_tx *tx)
{
	p3_cci_tx_slot_free(tx);
	tx->state = P3_CCI_TX_OVER;
	tx->is.returned = true;
	p3_cci_tx_settle(n, tx);
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
	p3_cci_tx_over(n, tx, status);
	return CCI_SUCCESS;
}

/* ---- unreliable messages ---- */

/* Send a message from the program's memory.  Return false if the lane has no room. */
static bool cci_uu_send_now(
	struct p3_nic *n, struct p3_peer *p, const struct cci_send_args *s)
{
	uint32_t cells = p3_cci_cells(P3_CCI_MSG_HEAD, s->len);
	if (p3_unlikely(cells > p3_cci_req_most_cells(p)))
		return false;
	if (p3_unlikely(!p3_cci_req_has_room(n, p, cells, 0)))
		return false;
	struct p3_cell *c = p3_cci_req_begin(n, p, cells);
	cci_msg_gather(p3_format_bytes(c, P3_CCI_MSG_DATA), s->data, s->n);
	p3_format_set(c, P3_CCI_ROOM, p3_field_in(P3_CCI_MSG_LENGTH, s->len));
	p3_format_set(c, P3_CCI_TOKEN, 0);
	p3_format_set(c, P3_CCI_TAG, s->conn->peer_tag);
	P3_TRACE(send, n, p, p3_word0(P3_REQ_CCI_MSG, 0, cells), s->len);
	p3_cci_req_publish(n, p, P3_REQ_CCI_MSG, 0, cells, 0);
	p3_count(&n->cci.count[P3_CCI_C_SENT], 1);
	return true;
}

static void cci_uu_send(struct p3_nic *n, struct cci_send_args *s)
{
	struct p3_cci_conn *conn = s->conn;
	const int quiet = CCI_FLAG_SILENT | CCI_FLAG_BLOCKING;
	struct p3_cci_tx *tx = NULL;
	bool now = p3_list_empty(&conn->wait) && cci_peer_is_free(conn->peer);
	s->rc = CCI_ENOBUFS;
	if (!(s->flags & quiet) || !now) {
		/* A thread does not wait for the lane: its message is copied. */
		int flags = s->flags & quiet ? CCI_FLAG_SILENT : 0;
		tx = p3_cci_msg_begin(n, conn, s->context, flags);
		if (!tx)
			return;
	}
	if (now && cci_uu_send_now(n, conn->peer, s)) {
		s->rc = CCI_SUCCESS;
		if (tx)
			p3_cci_tx_over(n, tx, CCI_SUCCESS);
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
	p3_cci_conn_kick(n, conn);
}

/* ---- reliable messages ---- */

static void cci_msg_send_reliable(struct p3_nic *n, struct cci_send_args *s)
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
	bool next = p3_list_empty(&conn->wait) && !conn->held && !conn->probing &&
		    cci_peer_is_free(conn->peer);
	if (p3_likely(next) && p3_cci_sendq_msg(n, conn->peer, conn, tx))
		return;
	p3_list_add(&conn->wait, &tx->wait);
	p3_cci_conn_kick(n, conn);
}

/* ---- the straight path ---- */

/* Return true if the message's bytes fit an open ring, and no other message waits before
 * it. */
static P3_HOT bool cci_msg_is_plain(const struct p3_cci_conn *conn, uint32_t cells)
{
	const struct p3_peer *p = conn->peer;
	return p3_likely(conn->state == P3_CCI_READY && p3_list_empty(&conn->wait)) &&
	       p3_likely(cci_peer_is_free(p)) &&
	       p3_likely(p3_ring_runs(&p->req_out, cells)) &&
	       p3_likely(cells <= p3_cci_req_most_cells(p));
}

/* The arguments of cci_send(). */
struct cci_piece {
	struct p3_cci_conn *conn;
	const void *data;
	uint32_t len;
	uint32_t cells;
	void *context;
	int flags;
};

/* Fill the message's cells and publish them.  word1 and token are those of a message that
 * wants an answer, or 0. */
static P3_HOT void cci_msg_publish(
	const struct cci_piece *s, uint64_t word1, uint64_t token)
{
	struct p3_peer *p = s->conn->peer;
	struct p3_cell *c = p->req_out.next;
	char *to = p3_format_bytes(c, P3_CCI_MSG_DATA);
	if (p3_likely(s->len == 8))
		memcpy(to, s->data, 8);
	else if (s->len)
		memcpy(to, s->data, s->len);
	p3_format_set(c, P3_CCI_ROOM, word1 | p3_field_in(P3_CCI_MSG_LENGTH, s->len));
	p3_format_set(c, P3_CCI_TOKEN, token);
	p3_format_set(c, P3_CCI_TAG, s->conn->peer_tag);
	FAULT_POINT("cci.request_filled");
	p3_ring_run(&p->req_out, p3_word0(P3_REQ_CCI_MSG, 0, s->cells), s->cells);
	FAULT_POINT("cci.request_published");
}

/* End a hold that has written to this peer, and most likely to no other one. */
static P3_HOT void cci_msg_leave_to(struct p3_nic *n, struct p3_peer *p)
{
	if (p3_unlikely(n->ntouched)) {
		p3_looks_add(n, p);
		p3_lease_leave(n);
	} else {
		uint32_t posted = n->posted;
		n->posted = 0;
		p3_lease_leave_to(n, p, posted);
	}
	p3_call_end(n);
}

static P3_HOT void cci_msg_count_sent(struct p3_nic *n)
{
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	p3_count(&n->cci.count[P3_CCI_C_SENT], 1);
}

/* With the lease: send an unreliable message that is plain, and leave. */
static P3_HOT bool cci_uu_send_straight(struct p3_nic *n, const struct cci_piece *s)
{
	bool silent = s->flags & CCI_FLAG_SILENT;
	if (p3_unlikely(!silent && !p3_cci_tx_is_free(n, s->conn->ep)))
		return p3_trylease_turn_back(n);
	cci_msg_publish(s, 0, 0);
	cci_msg_count_sent(n);
	if (!silent) {
		struct p3_cci_tx *tx = p3_cci_tx_take(s->conn);
		tx->item.event.send.context = s->context;
		p3_cci_tx_post(n, tx, CCI_SUCCESS);
	}
	cci_msg_leave_to(n, s->conn->peer);
	return true;
}

/* With the lease: send a reliable message that is plain, and leave. */
static P3_HOT bool cci_msg_send_straight(struct p3_nic *n, const struct cci_piece *s)
{
	struct p3_cci_conn *conn = s->conn;
	struct p3_peer *p = conn->peer;
	const struct iovec data = {(void *)(uintptr_t)s->data, s->len};
	/* A plain message waits neither for the receiver nor for room for its answer. */
	if (!p3_likely(!conn->held && !conn->probing && p->rsp_used < p->rsp_cap))
		return p3_trylease_turn_back(n);
	struct p3_cci_tx *tx = p3_cci_msg_begin(n, conn, s->context, s->flags);
	if (p3_unlikely(!tx))
		return p3_trylease_turn_back(n);
	if (p3_unlikely(!p3_cci_msg_keep(tx, &data, s->len != 0, s->len, s->flags))) {
		p3_cci_msg_give_up(n, tx);
		return p3_trylease_turn_back(n);
	}
	tx->is.numbered = tx->is.in_flight = true;
	tx->seq = conn->seq_out++;
	tx->part = s->len;
	tx->state = P3_CCI_TX_SENT;
	p3_list_add(&conn->fifo, &tx->fifo);
	cci_msg_publish(s,
		p3_field_in(P3_CCI_MSG_SEQ, tx->seq) | p3_field_in(P3_CCI_ROOM, 1),
		tx->token);
	p->rsp_used++;
	p->cci.asked++;
	conn->nout++;
	cci_msg_count_sent(n);
	p3_cci_expire_watch(n, conn);
	cci_msg_leave_to(n, p);
	return true;
}

bool p3_cci_send_straight(cci_connection_t *connection, const void *data, uint32_t len,
	void *context, int flags)
{
	struct p3_cci_conn *conn = (struct p3_cci_conn *)(uintptr_t)connection;
	struct p3_nic *n = conn->ep->nic;
	const struct cci_piece s = {
		conn, data, len, p3_cci_cells(P3_CCI_MSG_HEAD, len), context, flags};
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	if (p3_unlikely(!cci_msg_is_plain(conn, s.cells)))
		return p3_trylease_turn_back(n);
	return conn->pub.attribute == CCI_CONN_ATTR_UU ? cci_uu_send_straight(n, &s)
						       : cci_msg_send_straight(n, &s);
}

/* ---- the general path ---- */

static void cci_msg_send_now(struct p3_nic *n, void *arg)
{
	struct cci_send_args *s = arg;
	if (p3_unlikely(s->conn->state != P3_CCI_READY)) {
		struct p3_cci_tx *tx = p3_cci_msg_begin(n, s->conn, s->context, s->flags);
		s->rc = tx ? p3_cci_msg_too_late(n, tx, s->flags) : CCI_ENOBUFS;
	} else if (s->conn->pub.attribute == CCI_CONN_ATTR_UU) {
		cci_uu_send(n, s);
	} else {
		cci_msg_send_reliable(n, s);
	}
	/* A program that only repeats its call must see buffers come back. */
	if (p3_unlikely(s->rc == CCI_ENOBUFS))
		(void)p3_pass_run(n);
}

int p3_cci_send(cci_connection_t *connection, const struct iovec *data, uint32_t n,
	uint32_t len, void *context, int flags)
{
	struct p3_cci_conn *conn = (struct p3_cci_conn *)(uintptr_t)connection;
	struct cci_send_args s = {.conn = conn,
		.data = data,
		.n = n,
		.len = len,
		.context = context,
		.flags = flags,
		.rc = CCI_ENOBUFS};
	struct p3_nic *nic = conn->ep->nic;
	(void)p3_cci_call(nic, cci_msg_send_now, &s);
	if (p3_likely(!s.tx))
		return s.rc;
	return p3_cci_wait_for(nic, s.tx);
}
