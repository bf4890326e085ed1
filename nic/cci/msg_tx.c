/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends: the calls of the program, descriptors, copies. */
#include "nic/cci/internal.h"
#include "nic/host/call.h"
#include "nic/report/report.h"
#include "nic/run/lease.h"

#include <string.h>

/* ---- the operation of a message, and the copy of its bytes ---- */

/* Return an operation of the connection, in no list, or NULL. */
static struct p3_cci_tx *cci_msg_begin(
	struct p3_nic *n, struct p3_cci_conn *conn, void *context, int flags)
{
	struct p3_cci_tx *tx = p3_cci_tx_new(n, conn);
	if (p3_unlikely(!tx))
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

/* Copy the bytes of a message, which most often is one word. */
static P3_HOT void cci_msg_gather(char *to, const struct p3_cci_msg *m)
{
	const struct iovec *piece = m->data;
	if (p3_likely(m->len == 8 && !m->n))
		memcpy(to, m->data, 8);
	else if (!m->n && m->len)
		memcpy(to, m->data, m->len);
	else
		for (uint32_t i = 0; i < m->n; to += piece[i++].iov_len)
			if (piece[i].iov_len)
				memcpy(to, piece[i].iov_base, piece[i].iov_len);
}

/* Keep the bytes of a message in the operation.  Return false if there is no slot. */
static P3_HOT bool cci_msg_keep(
	struct p3_cci_tx *tx, const struct p3_cci_msg *m, int flags)
{
	tx->len = m->len;
	tx->part = 0;
	tx->bytes = tx->in_line;
	if (p3_unlikely(m->len > P3_CCI_INLINE)) {
		if ((flags & CCI_FLAG_NO_COPY) && m->n <= 1 &&
			m->conn->pub.attribute != CCI_CONN_ATTR_UU) {
			const struct iovec *piece = m->data;
			tx->bytes = m->n ? piece->iov_base : m->data;
			return true;
		}
		if (!p3_cci_tx_slot(tx))
			return false;
		tx->bytes = tx->slot;
	}
	cci_msg_gather((char *)(uintptr_t)tx->bytes, m);
	return true;
}

/* Free an operation that did not begin. */
static P3_RARE void cci_msg_give_up(struct p3_nic *n, struct p3_cci_tx *tx)
{
	tx->state = P3_CCI_TX_OVER;
	tx->is.returned = true;
	p3_cci_tx_settle(n, tx);
}

/* End an operation that cannot begin, since its connection is dead.  Return the status
 * of the call. */
static P3_RARE int cci_msg_too_late(struct p3_nic *n, struct p3_cci_tx *tx, int flags)
{
	struct p3_cci_conn *conn = tx->item.conn;
	bool unreliable = conn->pub.attribute == CCI_CONN_ATTR_UU;
	cci_status_t status = unreliable ? CCI_SUCCESS : conn->fate;
	if (flags & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING)) {
		cci_msg_give_up(n, tx);
		return (int)status;
	}
	p3_cci_tx_over(n, tx, status);
	return CCI_SUCCESS;
}

int p3_cci_msg_new(struct p3_nic *n, const struct p3_cci_msg *m, int flags,
	struct p3_cci_tx **tx_out)
{
	*tx_out = NULL;
	struct p3_cci_tx *tx = cci_msg_begin(n, m->conn, m->context, flags);
	if (p3_unlikely(!tx))
		return CCI_ENOBUFS;
	if (p3_unlikely(m->conn->state != P3_CCI_READY))
		return cci_msg_too_late(n, tx, flags);
	if (p3_unlikely(!cci_msg_keep(tx, m, flags))) {
		cci_msg_give_up(n, tx);
		return CCI_ENOBUFS;
	}
	*tx_out = tx;
	return CCI_SUCCESS;
}

/* ---- sends ---- */

/* The arguments of cci_sendv(). */
struct cci_send {
	struct p3_cci_msg m;
	uint32_t cells;
	int flags;
	struct p3_cci_tx *tx; /* out: BLOCKING: the operation to wait for, or NULL */
	int rc;               /* out */
};

/* Return true if the message can leave now: none waits before it, at its connection or at
 * its peer, and the request ring, which is open, has room for it in one part, and the
 * response ring for its answer. */
static P3_HOT bool cci_msg_may_leave(const struct cci_send *s, bool answered)
{
	const struct p3_cci_conn *conn = s->m.conn;
	struct p3_peer *p = conn->peer;
	return p3_likely(conn->state == P3_CCI_READY && p3_list_empty(&conn->wait)) &&
	       p3_likely(p->state == P3_LIVE && p3_list_empty(&p->queue)) &&
	       p3_likely(!p3_cci_sendq_waits(p)) &&
	       p3_likely(s->cells <= p3_cci_req_most_cells(p)) &&
	       (p3_likely(p3_ring_runs(&p->req_out, s->cells)) ||
		       p3_ring_reopen(&p->req_out, s->cells)) &&
	       (!answered || p3_likely(p->rsp_used < p->rsp_cap));
}

/* Fill the message's cells from the program's memory and publish them.  tx is its
 * operation if it is answered, or NULL. */
static P3_HOT void cci_msg_publish(const struct cci_send *s, const struct p3_cci_tx *tx)
{
	struct p3_peer *p = s->m.conn->peer;
	struct p3_cell *c = p->req_out.next;
	uint64_t word1 =
		tx ? p3_field_in(P3_CCI_MSG_SEQ, tx->seq) | p3_field_in(P3_CCI_ROOM, 1)
		   : 0;
	cci_msg_gather(p3_format_bytes(c, P3_CCI_DATA), &s->m);
	p3_cci_req_fill(c, word1 | p3_field_in(P3_CCI_LENGTH, s->m.len),
		tx ? tx->token : 0, s->m.conn->peer_tag);
	FAULT_POINT("cci.request_filled");
	p3_ring_run(&p->req_out, p3_word0(P3_REQ_CCI_MSG, 0, s->cells), s->cells);
	FAULT_POINT("cci.request_published");
	if (tx) {
		p->rsp_used++;
		p->cci.asked++;
	}
}

/*
 * Send the message from the program's memory.  Return false, with nothing done, if it
 * must wait, or if a descriptor or a slot is missing, or if this thread is to wait for
 * the answer.  In an open ring p3_looks_add() and the rest of p3_req_publish() are
 * not needed, and nothing is traced.
 */
static P3_HOT bool cci_msg_send_now(struct p3_nic *n, const struct cci_send *s)
{
	struct p3_cci_conn *conn = s->m.conn;
	const bool uu = conn->pub.attribute == CCI_CONN_ATTR_UU;
	if (!cci_msg_may_leave(s, !uu) ||
		(!uu && p3_unlikely(conn->held || conn->probing ||
				    (s->flags & CCI_FLAG_BLOCKING))))
		return false;
	struct p3_cci_tx *tx;
	if (!uu) {
		const struct p3_cci_msg m =
			s->m; /* a copy, so that s stays in registers */
		if (p3_unlikely(p3_cci_msg_new(n, &m, s->flags, &tx) != CCI_SUCCESS))
			return false;
		tx->is.numbered = true;
		tx->seq = conn->seq_out++;
		tx->part = s->m.len;
		p3_list_add(&conn->fifo, &tx->fifo);
		cci_msg_publish(s, tx);
		p3_cci_msg_sent(n, conn, tx);
		p3_cci_expire_watch(n, conn);
		return true;
	}
	const bool silent = s->flags & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING);
	if (!silent && p3_unlikely(!p3_cci_tx_is_free(n, conn->ep)))
		return false;
	cci_msg_publish(s, NULL);
	p3_cci_msg_sent(n, conn, NULL);
	if (!silent) {
		tx = p3_cci_tx_take(conn);
		tx->item.event.send.context = s->m.context;
		p3_cci_tx_post(n, tx, CCI_SUCCESS);
	}
	return true;
}

/* Keep the message in its connection's list, and send it from there as soon as there is
 * room. */
static void cci_msg_send(struct p3_nic *n, void *arg)
{
	struct cci_send *s = arg;
	struct p3_cci_conn *conn = s->m.conn;
	const bool uu = conn->pub.attribute == CCI_CONN_ATTR_UU;
	struct p3_cci_tx *tx;
	/* No thread waits until an unreliable message has left. */
	bool silent = uu && (s->flags & CCI_FLAG_BLOCKING);
	s->rc = p3_cci_msg_new(n, &s->m, silent ? CCI_FLAG_SILENT : s->flags, &tx);
	if (tx) {
		s->tx = tx->is.awaited ? tx : NULL;
		p3_list_add(&conn->fifo, &tx->fifo);
		p3_list_add(&conn->wait, &tx->wait);
		if (!uu)
			p3_cci_expire_watch(n, conn);
		p3_cci_conn_kick(n, conn);
	}
	/* A program that only repeats its call must see buffers come back. */
	if (p3_unlikely(s->rc == CCI_ENOBUFS))
		(void)p3_pass_run(n);
}

/* Finish p3_cci_send() if the message could not leave at once.  held: this thread has the
 * lease of this NIC; NULL: it has not. */
static __attribute__((noinline)) int cci_msg_send_slowly(struct p3_nic *held,
	struct p3_cci_conn *conn, const void *data, uint32_t pieces, uint32_t len,
	void *context, int flags)
{
	struct p3_nic *n = conn->ep->nic;
	struct cci_send s = {.m = {conn, data, pieces, len, context},
		.cells = p3_cci_cells(len),
		.flags = flags,
		.rc = CCI_ENOBUFS};
	if (held) {
		p3_count(&n->count[P3_C_LEASE_HOST], 1);
		cci_msg_send(n, &s);
		p3_lease_leave(n);
		p3_call_end(n);
	} else {
		(void)p3_cci_call(n, cci_msg_send, &s);
	}
	return p3_likely(!s.tx) ? s.rc : p3_cci_wait_for(n, s.tx);
}

int p3_cci_send(cci_connection_t *connection, const void *data, uint32_t pieces,
	uint32_t len, void *context, int flags)
{
	struct p3_cci_conn *conn = p3_cci_conn_own(connection);
	struct p3_nic *n = conn->ep->nic;
	struct cci_send s = {.m = {conn, data, pieces, len, context},
		.cells = p3_cci_cells(len),
		.flags = flags};
	if (p3_unlikely(!p3_trylease_enter(n)))
		return cci_msg_send_slowly(NULL, conn, data, pieces, len, context, flags);
	if (p3_unlikely(!cci_msg_send_now(n, &s)))
		return cci_msg_send_slowly(n, conn, data, pieces, len, context, flags);
	uint32_t posted = n->posted;
	n->posted = 0;
	(void)p3_trylease_leave_to(n, conn->peer, posted);
	return CCI_SUCCESS;
}
