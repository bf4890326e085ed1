/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages into the lane of a peer. */
#include "nic/cci/push.h"

#include "nic/cci/lane.h"
#include "nic/cci/op.h"
#include "nic/cci/rma_tx.h"
#include "nic/report/report.h"

#include <string.h>

#define TURN 16u /* most messages of a connection before the next one has its turn */

static void fill_words(struct p3_cell *c, uint64_t word1, uint64_t token, uint64_t tag)
{
	p3_format_set(c, P3_CCI_ROOM, word1);
	p3_format_set(c, P3_CCI_TOKEN, token);
	p3_format_set(c, P3_CCI_TAG, tag);
}

/* ---- messages ---- */

static void number(struct p3_cci_conn *conn, struct p3_cci_tx *tx)
{
	if (!tx->is.numbered)
		tx->seq = conn->seq_out++;
	tx->is.numbered = true;
}

/* Send one part.  Return false if there is no room. */
static bool push_part(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn,
	struct p3_cci_tx *tx)
{
	uint64_t left = tx->len - tx->part;
	uint64_t most = p3_cci_most(P3_CCI_MSG_HEAD, p3_cci_most_cells(p));
	bool last = left <= most, answered = conn->pub.attribute != CCI_CONN_ATTR_UU;
	uint64_t len = last ? left : most;
	uint32_t cells = p3_cci_cells(P3_CCI_MSG_HEAD, len), rsp = last && answered;
	if (!p3_cci_has_room(n, p, cells, rsp))
		return false;
	struct p3_cell *c = p3_cci_begin(n, p, cells);
	memcpy(p3_format_bytes(c, P3_CCI_MSG_DATA), tx->bytes + tx->part, len);
	fill_words(c,
		p3_field_in(P3_CCI_MSG_LENGTH, len) |
			p3_field_in(P3_CCI_MSG_SEQ, tx->seq) |
			p3_field_in(P3_CCI_ROOM, rsp),
		answered ? tx->token : 0, conn->peer_tag);
	uint32_t flags = (last ? 0u : P3_F_CCI_MORE) | (tx->part ? P3_F_CCI_LATER : 0u);
	P3_TRACE(send, n, p, p3_word0(P3_REQ_CCI_MSG, flags, cells), len);
	p3_cci_publish(n, p, P3_REQ_CCI_MSG, flags, cells, rsp);
	tx->part += (uint32_t)len;
	return true;
}

bool p3_cci_push_msg(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn,
	struct p3_cci_tx *tx)
{
	number(conn, tx);
	if (p3_unlikely(!p->req_full) &&
		tx->len > p3_cci_most(P3_CCI_MSG_HEAD, p3_cci_most_cells(p)))
		(void)p3_peer_grow_requests(n, p);
	do
		if (!push_part(n, p, conn, tx))
			return false;
	while (tx->part < tx->len);
	if (conn->pub.attribute == CCI_CONN_ATTR_UU) {
		p3_count(&n->cci.count[P3_CCI_C_SENT], 1);
		return true;
	}
	P3_TRACE(keep, n, &tx->topic);
	tx->state = P3_CCI_TX_SENT;
	tx->is.in_flight = true;
	conn->nout++;
	p3_count(&n->cci.count[P3_CCI_C_SENT], 1);
	return true;
}

/* ---- messages about a connection ---- */

/* Send the connect request.  Return false if there is no room for all of it. */
static bool push_connect(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn)
{
	const struct p3_cci_blob *data = conn->data;
	uint32_t total = data ? data->len : 0;
	if (!p->req_full && total > P3_CCI_CONNECT_HEAD)
		(void)p3_peer_grow_requests(n, p);
	do {
		uint64_t left = total - conn->data_sent;
		uint64_t most = p3_cci_most(P3_CCI_CONNECT_HEAD, p3_cci_most_cells(p));
		bool last = left <= most;
		uint64_t len = last ? left : most;
		uint32_t cells = p3_cci_cells(P3_CCI_CONNECT_HEAD, len), rsp = last;
		if (!p3_cci_has_room(n, p, cells, rsp))
			return false;
		struct p3_cell *c = p3_cci_begin(n, p, cells);
		if (len)
			memcpy(p3_format_bytes(c, P3_CCI_CONNECT_DATA),
				data->data + conn->data_sent, len);
		fill_words(c,
			p3_field_in(P3_CCI_CONNECT_TOTAL, total) |
				p3_field_in(P3_CCI_CONNECT_ATTRIBUTE,
					(uint64_t)conn->pub.attribute) |
				p3_field_in(P3_CCI_ROOM, rsp),
			conn->tag,
			p3_field_in(P3_CCI_CONNECT_NUMBER, conn->server) |
				p3_field_in(P3_CCI_CONNECT_MTU, conn->ep->mtu));
		p3_format_set(c, P3_CCI_CONNECT_LENGTH, len);
		uint32_t flags = (last ? 0u : P3_F_CCI_MORE) |
				 (conn->data_sent ? P3_F_CCI_LATER : 0u);
		P3_TRACE(send, n, p, p3_word0(P3_REQ_CCI_CONNECT, flags, cells), len);
		p3_cci_publish(n, p, P3_REQ_CCI_CONNECT, flags, cells, rsp);
		conn->data_sent += (uint32_t)len;
	} while (conn->data_sent < total);
	return true;
}

/* Send a message of one cell about the connection.  Return false if there is no room. */
static bool push_cell(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn,
	uint32_t kind, uint32_t rsp)
{
	if (!p3_cci_has_room(n, p, 1, rsp))
		return false;
	struct p3_cell *c = p3_cci_begin(n, p, 1);
	fill_words(c, p3_field_in(P3_CCI_ROOM, rsp), conn->tag, conn->peer_tag);
	p3_format_set(c, P3_CCI_DECIDE_MTU, conn->pub.max_send_size);
	uint32_t flags = kind == P3_REQ_CCI_DECIDE ? P3_F_CCI_ACCEPT : 0u;
	P3_TRACE(send, n, p, p3_word0(kind, flags, 1), 0);
	p3_cci_publish(n, p, kind, flags, 1, rsp);
	return true;
}

static bool push_todo(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn)
{
	if (conn->todo & P3_CCI_TODO_CONNECT) {
		if (!push_connect(n, p, conn))
			return false;
		conn->todo &= (uint8_t)~P3_CCI_TODO_CONNECT;
	}
	if (conn->todo & P3_CCI_TODO_DECIDE) {
		if (!push_cell(n, p, conn, P3_REQ_CCI_DECIDE, 1))
			return false;
		conn->todo &= (uint8_t)~P3_CCI_TODO_DECIDE;
	}
	if (conn->todo & P3_CCI_TODO_READY) {
		if (!push_cell(n, p, conn, P3_REQ_CCI_READY, 0))
			return false;
		conn->todo &= (uint8_t)~P3_CCI_TODO_READY;
	}
	if (conn->todo & P3_CCI_TODO_ALIVE) {
		if (!push_cell(n, p, conn, P3_REQ_CCI_ALIVE, 1))
			return false;
		conn->todo &= (uint8_t)~P3_CCI_TODO_ALIVE;
	}
	return true;
}

/* ---- turns ---- */

enum pushed {
	PUSHED_ALL,
	PUSHED_SOME,   /* others have their turn now */
	PUSHED_WAITS,  /* an RMA operation waits for a transfer slot, or for room */
	PUSHED_NO_ROOM /* a message waits for room, and may be sent in part */
};

/* Return the next message that may be sent, or NULL. */
static struct p3_cci_tx *next_msg(const struct p3_cci_conn *conn)
{
	if (p3_list_empty(&conn->wait) || conn->held || (conn->probing && conn->nout))
		return NULL;
	struct p3_cci_tx *tx = p3_item(conn->wait.next, struct p3_cci_tx, wait);
	return tx->op == P3_CCI_OP_MSG || tx->is.data_done ? tx : NULL;
}

static enum pushed push_conn(
	struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn)
{
	struct p3_cci_tx *tx;
	if (conn->todo && !push_todo(n, p, conn))
		return PUSHED_NO_ROOM;
	for (uint32_t i = 0; (tx = next_msg(conn)) != NULL; i++) {
		if (i == TURN)
			return PUSHED_SOME;
		if (!p3_cci_push_msg(n, p, conn, tx))
			return PUSHED_NO_ROOM;
		p3_list_del(&tx->wait);
		if (conn->pub.attribute == CCI_CONN_ATTR_UU)
			p3_cci_op_end(n, tx, CCI_SUCCESS);
	}
	return p3_cci_rma_push(n, p, conn) ? PUSHED_ALL : PUSHED_WAITS;
}

static bool push_reject(struct p3_nic *n, struct p3_peer *p)
{
	struct p3_cci_request *r =
		p3_item(p->cci.rejects.next, struct p3_cci_request, todo);
	if (!p3_cci_has_room(n, p, 1, 0))
		return false;
	struct p3_cell *c = p3_cci_begin(n, p, 1);
	fill_words(c, 0, 0, r->client);
	p3_format_set(c, P3_CCI_DECIDE_MTU, 0);
	P3_TRACE(send, n, p, p3_word0(P3_REQ_CCI_DECIDE, 0, 1), 0);
	p3_cci_publish(n, p, P3_REQ_CCI_DECIDE, 0, 1, 0);
	p3_list_del(&r->todo);
	r->item.ep->rejects--;
	r->state = r->returned ? P3_CCI_REQ_FREE : P3_CCI_REQ_OVER;
	return true;
}

/* Send from the connections.  One whose RMA operations wait goes behind the others, which
 * need no transfer slot; each has one turn. */
static void push_conns(struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cci_conn *waits = NULL;
	while (!p3_list_empty(&p->cci.work)) {
		struct p3_cci_conn *conn =
			p3_item(p->cci.work.next, struct p3_cci_conn, work);
		if (conn == waits)
			return;
		enum pushed pushed = push_conn(n, p, conn);
		if (pushed == PUSHED_NO_ROOM)
			return;
		p3_list_del(&conn->work);
		if (pushed == PUSHED_ALL)
			continue;
		p3_list_add(&p->cci.work, &conn->work);
		if (pushed == PUSHED_SOME || !p3_cci_has_room(n, p, 1, 1))
			return;
		if (!waits)
			waits = conn;
	}
}

static __attribute__((noinline)) bool push_all(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t pos = p->req_out.pos;
	while (!p3_list_empty(&p->cci.rejects))
		if (!push_reject(n, p))
			return p->req_out.pos != pos;
	push_conns(n, p);
	return p->req_out.pos != pos;
}

bool (*const p3_cci_push)(struct p3_nic *n, struct p3_peer *p) = push_all;
