/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends: the call of the program, and its wait. */
#include "nic/cci/call.h"
#include "nic/cci/expire.h"
#include "nic/cci/host_wait.h"
#include "nic/cci/item.h"
#include "nic/cci/kick.h"
#include "nic/cci/lane.h"
#include "nic/cci/msg_tx.h"
#include "nic/cci/op.h"
#include "nic/host/call.h"
#include "nic/run/lease.h"

#include <string.h>

/* ---- the straight path ---- */

/* Return true if the message's bytes fit an open ring, and no other message waits before
 * it. */
static P3_HOT bool is_plain(const struct p3_cci_conn *conn, uint32_t cells)
{
	const struct p3_peer *p = conn->peer;
	return p3_likely(conn->state == P3_CCI_READY && p3_list_empty(&conn->wait)) &&
	       p3_likely(p3_cci_kick_is_free(p)) &&
	       p3_likely(p3_ring_runs(&p->req_out, cells)) &&
	       p3_likely(cells <= p3_cci_most_cells(p));
}

/* Return true if a reliable message need not wait for the receiver, nor for room for its
 * answer. */
static P3_HOT bool may_be_answered(const struct p3_cci_conn *conn)
{
	const struct p3_peer *p = conn->peer;
	return p3_likely(!conn->held && !conn->probing && p->rsp_used < p->rsp_cap);
}

/* The arguments of cci_send(). */
struct piece {
	struct p3_cci_conn *conn;
	const void *data;
	uint32_t len;
	uint32_t cells;
	void *context;
	int flags;
};

/* Fill the message's cells and publish them.  word1 and token are those of a message that
 * wants an answer, or 0. */
static P3_HOT void publish(const struct piece *s, uint64_t word1, uint64_t token)
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
static P3_HOT void leave_to(struct p3_nic *n, struct p3_peer *p)
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

static P3_HOT void count_sent(struct p3_nic *n)
{
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	p3_count(&n->cci.count[P3_CCI_C_SENT], 1);
}

/* With the lease: send an unreliable message that is plain, and leave. */
static P3_HOT bool send_unreliable(struct p3_nic *n, const struct piece *s)
{
	bool silent = s->flags & CCI_FLAG_SILENT;
	if (p3_unlikely(!silent && !p3_cci_item_has_tx(n, s->conn->ep)))
		return p3_trylease_turn_back(n);
	publish(s, 0, 0);
	count_sent(n);
	if (!silent) {
		struct p3_cci_tx *tx = p3_cci_item_tx_done(s->conn);
		tx->item.event.send.context = s->context;
		p3_cci_op_post(n, tx, CCI_SUCCESS);
	}
	leave_to(n, s->conn->peer);
	return true;
}

/* With the lease: send a reliable message that is plain, and leave. */
static P3_HOT bool send_reliable(struct p3_nic *n, const struct piece *s)
{
	struct p3_cci_conn *conn = s->conn;
	struct p3_peer *p = conn->peer;
	const struct iovec data = {(void *)(uintptr_t)s->data, s->len};
	if (p3_unlikely(!may_be_answered(conn)))
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
	publish(s, p3_field_in(P3_CCI_MSG_SEQ, tx->seq) | p3_field_in(P3_CCI_ROOM, 1),
		tx->token);
	p->rsp_used++;
	p->cci.asked++;
	conn->nout++;
	count_sent(n);
	p3_cci_expire_watch(n, conn);
	leave_to(n, p);
	return true;
}

bool p3_cci_send_straight(cci_connection_t *connection, const void *data, uint32_t len,
	void *context, int flags)
{
	struct p3_cci_conn *conn = (struct p3_cci_conn *)(uintptr_t)connection;
	struct p3_nic *n = conn->ep->nic;
	const struct piece s = {
		conn, data, len, p3_cci_cells(P3_CCI_MSG_HEAD, len), context, flags};
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	if (p3_unlikely(!is_plain(conn, s.cells)))
		return p3_trylease_turn_back(n);
	return conn->pub.attribute == CCI_CONN_ATTR_UU ? send_unreliable(n, &s)
						       : send_reliable(n, &s);
}

/* ---- the general path ---- */

static void send_now(struct p3_nic *n, void *arg)
{
	struct p3_cci_send *s = arg;
	p3_cci_msg_send(n, s);
	/* A program that only repeats its call must see buffers come back. */
	if (p3_unlikely(s->rc == CCI_ENOBUFS))
		(void)p3_pass_run(n);
}

int p3_cci_send(cci_connection_t *connection, const struct iovec *data, uint32_t n,
	uint32_t len, void *context, int flags)
{
	struct p3_cci_conn *conn = (struct p3_cci_conn *)(uintptr_t)connection;
	struct p3_cci_send s = {.conn = conn,
		.data = data,
		.n = n,
		.len = len,
		.context = context,
		.flags = flags,
		.rc = CCI_ENOBUFS};
	struct p3_nic *nic = conn->ep->nic;
	(void)p3_cci_call(nic, send_now, &s);
	if (p3_likely(!s.tx))
		return s.rc;
	return p3_cci_wait_for(nic, s.tx);
}
