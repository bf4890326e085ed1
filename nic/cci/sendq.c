/* SPDX-License-Identifier: BSD-3-Clause */
/* The send queue of a peer: messages of its connections into its lane. */
#include "nic/cci/internal.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"

#include <string.h>

/* ---- answers ---- */

void p3_cci_rsp_send(struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t token,
	enum p3_cci_status status)
{
	struct p3_cell *c = p3_rsp_begin(n, p);
	if (!c)
		return;
	p3_format_set(c, P3_CCI_ANSWER_STATUS,
		p3_field_in(P3_CCI_ANSWER_STATUS, status) |
			p3_field_in(P3_CCI_ANSWER_KIND, kind));
	p3_format_set(c, P3_CCI_ANSWER_TOKEN, token);
	p3_rsp_publish(n, p, P3_CCI_ANSWER, 0);
}

/* ---- requests ---- */

/* Publish the request that was filled; word0 is that of its header. */
static void cci_sendq_publish(
	struct p3_nic *n, struct p3_peer *p, uint64_t word0, uint32_t rsp)
{
	p->cci.asked += rsp;
	p3_req_publish(n, p, word0, rsp);
}

/* ---- the data of RMA operations ---- */

/* Send those whose turn it is.  Return false if there is no room, or no slot. */
static bool cci_sendq_rma(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn)
{
	while (!p3_list_empty(&conn->rma)) {
		struct p3_pending *t = p3_item(conn->rma.next, struct p3_pending, link);
		struct p3_cci_tx *tx = t->rma;
		if (tx->is.fence && conn->rma_out)
			return true; /* the last answer goes on */
		if (!p3_req_send(n, p, t))
			return false;
		tx->state = P3_CCI_TX_SENT;
		p3_cci_tx_renew(conn, tx);
		conn->rma_out++;
	}
	return true;
}

/* ---- messages ---- */

/* Send one part.  Return false if there is no room. */
static bool cci_sendq_part(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn,
	struct p3_cci_tx *tx)
{
	uint64_t left = tx->len - tx->part;
	uint64_t most = p3_cci_most(P3_CCI_MSG_HEAD, p3_cci_req_most_cells(p));
	bool last = left <= most, answered = conn->pub.attribute != CCI_CONN_ATTR_UU;
	uint64_t len = last ? left : most;
	uint32_t cells = p3_cci_cells(P3_CCI_MSG_HEAD, len), rsp = last && answered;
	if (!p3_req_has_room(n, p, cells, rsp))
		return false;
	struct p3_cell *c = p3_req_begin(n, p, cells, false);
	memcpy(p3_format_bytes(c, P3_CCI_MSG_DATA), tx->bytes + tx->part, len);
	p3_cci_req_fill(c,
		p3_field_in(P3_CCI_MSG_LENGTH, len) |
			p3_field_in(P3_CCI_MSG_SEQ, tx->seq) |
			p3_field_in(P3_CCI_ROOM, rsp),
		answered ? tx->token : 0, conn->peer_tag);
	uint32_t flags = (last ? 0u : P3_F_CCI_MORE) | (tx->part ? P3_F_CCI_LATER : 0u);
	P3_TRACE(send, n, p, P3_REQ_CCI_MSG, len);
	cci_sendq_publish(n, p, p3_word0(P3_REQ_CCI_MSG, flags, cells), rsp);
	tx->part += (uint32_t)len;
	return true;
}

/* Send the parts of a message that have yet to be sent, of the bytes in tx.  Return false
 * if there is no room for all. */
static bool cci_sendq_msg(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn,
	struct p3_cci_tx *tx)
{
	if (!tx->is.numbered)
		tx->seq = conn->seq_out++;
	tx->is.numbered = true;
	if (p3_unlikely(!p->req_full) &&
		tx->len > p3_cci_most(P3_CCI_MSG_HEAD, p3_cci_req_most_cells(p)))
		(void)p3_peer_grow_requests(n, p);
	do
		if (!cci_sendq_part(n, p, conn, tx))
			return false;
	while (tx->part < tx->len);
	p3_cci_msg_sent(n, conn, conn->pub.attribute == CCI_CONN_ATTR_UU ? NULL : tx);
	return true;
}

/* ---- messages about a connection ---- */

/* Send the connect request.  Return false if there is no room for all of it. */
static bool cci_sendq_connect(
	struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn)
{
	uint32_t total = conn->data_len;
	if (!p->req_full && total > P3_CCI_CONNECT_HEAD)
		(void)p3_peer_grow_requests(n, p);
	do {
		uint64_t left = total - conn->data_sent;
		uint64_t most =
			p3_cci_most(P3_CCI_CONNECT_HEAD, p3_cci_req_most_cells(p));
		bool last = left <= most;
		uint64_t len = last ? left : most;
		uint32_t cells = p3_cci_cells(P3_CCI_CONNECT_HEAD, len), rsp = last;
		if (!p3_req_has_room(n, p, cells, rsp))
			return false;
		struct p3_cell *c = p3_req_begin(n, p, cells, false);
		if (len)
			memcpy(p3_format_bytes(c, P3_CCI_CONNECT_DATA),
				p3_cci_conn_data(conn) + conn->data_sent, len);
		p3_cci_req_fill(c,
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
		P3_TRACE(send, n, p, P3_REQ_CCI_CONNECT, len);
		cci_sendq_publish(
			n, p, p3_word0(P3_REQ_CCI_CONNECT, flags, cells), rsp);
		conn->data_sent += (uint32_t)len;
	} while (conn->data_sent < total);
	return true;
}

/* Send a message of one cell about a connection.  Return false if there is no room. */
static bool cci_sendq_cell(struct p3_nic *n, struct p3_peer *p, uint32_t kind,
	uint32_t flags, uint32_t rsp, uint64_t token, uint64_t tag, uint32_t mtu)
{
	if (!p3_req_has_room(n, p, 1, rsp))
		return false;
	struct p3_cell *c = p3_req_begin(n, p, 1, false);
	p3_cci_req_fill(c, p3_field_in(P3_CCI_ROOM, rsp), token, tag);
	p3_format_set(c, P3_CCI_DECIDE_MTU, mtu);
	P3_TRACE(send, n, p, kind, 0);
	cci_sendq_publish(n, p, p3_word0(kind, flags, 1), rsp);
	return true;
}

static bool cci_sendq_todo(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn)
{
	static const struct {
		uint8_t bit, rsp, flags;
		uint32_t kind;
	} cell[] = {{P3_CCI_TODO_DECIDE, 1, P3_F_CCI_ACCEPT, P3_REQ_CCI_DECIDE},
		{P3_CCI_TODO_READY, 0, 0, P3_REQ_CCI_READY},
		{P3_CCI_TODO_ALIVE, 1, 0, P3_REQ_CCI_ALIVE}};
	if (conn->todo & P3_CCI_TODO_CONNECT) {
		if (!cci_sendq_connect(n, p, conn))
			return false;
		conn->todo &= (uint8_t)~P3_CCI_TODO_CONNECT;
	}
	for (uint32_t i = 0; i < sizeof cell / sizeof cell[0]; i++) {
		if (!(conn->todo & cell[i].bit))
			continue;
		if (!cci_sendq_cell(n, p, cell[i].kind, cell[i].flags, cell[i].rsp,
			    conn->tag, conn->peer_tag, conn->pub.max_send_size))
			return false;
		conn->todo &= (uint8_t)~cell[i].bit;
	}
	return true;
}

/* ---- turns ---- */

#define CCI_SENDQ_TURN 16u /* most messages of a connection in its turn */

enum cci_sent {
	CCI_SENT_ALL,
	CCI_SENT_SOME,   /* others have their turn now */
	CCI_SENT_WAITS,  /* an RMA operation waits for a transfer slot, or for room */
	CCI_SENT_NO_ROOM /* a message waits for room, and may be sent in part */
};

/* Return the next message that may be sent, or NULL. */
static struct p3_cci_tx *cci_conn_next_msg(const struct p3_cci_conn *conn)
{
	if (p3_list_empty(&conn->wait) || conn->held || (conn->probing && conn->nout))
		return NULL;
	struct p3_cci_tx *tx = p3_item(conn->wait.next, struct p3_cci_tx, wait);
	return tx->rma ? NULL : tx; /* its data go first */
}

static enum cci_sent cci_sendq_conn(
	struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn)
{
	struct p3_cci_tx *tx;
	if (conn->todo && !cci_sendq_todo(n, p, conn))
		return CCI_SENT_NO_ROOM;
	for (uint32_t i = 0; (tx = cci_conn_next_msg(conn)) != NULL; i++) {
		if (i == CCI_SENDQ_TURN)
			return CCI_SENT_SOME;
		if (!cci_sendq_msg(n, p, conn, tx))
			return CCI_SENT_NO_ROOM;
		p3_list_del(&tx->wait);
		if (conn->pub.attribute == CCI_CONN_ATTR_UU)
			p3_cci_tx_end(n, tx, CCI_SUCCESS);
	}
	return cci_sendq_rma(n, p, conn) ? CCI_SENT_ALL : CCI_SENT_WAITS;
}

/* A connection whose RMA operations wait goes behind the others, which need no transfer
 * slot; each has one turn. */
__attribute__((noinline)) bool p3_cci_sendq_push(struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cci_conn *waits = NULL;
	uint64_t pos = p->req_out.pos;
	while (!p3_list_empty(&p->cci.rejects)) {
		struct p3_cci_request *r =
			p3_item(p->cci.rejects.next, struct p3_cci_request, todo);
		if (!cci_sendq_cell(n, p, P3_REQ_CCI_DECIDE, 0, 0, 0, r->client, 0))
			return p->req_out.pos != pos;
		p3_cci_request_unlist(r);
	}
	while (!p3_list_empty(&p->cci.work)) {
		struct p3_cci_conn *conn =
			p3_item(p->cci.work.next, struct p3_cci_conn, work);
		if (conn == waits)
			break;
		enum cci_sent pushed = cci_sendq_conn(n, p, conn);
		if (pushed == CCI_SENT_NO_ROOM)
			break;
		p3_list_del(&conn->work);
		if (pushed == CCI_SENT_ALL)
			continue;
		p3_list_add(&p->cci.work, &conn->work);
		if (pushed == CCI_SENT_SOME || !p3_req_has_room(n, p, 1, 1))
			break;
		if (!waits)
			waits = conn;
	}
	return p->req_out.pos != pos;
}
