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

/* A request, which goes in parts if it is too long for the room. */
struct cci_sendq_request {
	uint32_t kind, flags;
	bool asks;      /* an answer is wanted */
	uint64_t word1; /* but for the length and the room */
	uint64_t token, tag;
	const char *bytes;
	uint32_t len;
	uint32_t *sent; /* bytes that earlier parts have carried */
};

/* Send what has yet to be sent.  Return false if there is no room for all of it. */
static bool cci_sendq_send(
	struct p3_nic *n, struct p3_peer *p, const struct cci_sendq_request *r)
{
	if (p3_unlikely(!p->req_full) && r->len > p3_cci_most(p3_cci_req_most_cells(p)))
		(void)p3_peer_grow_requests(n, p);
	do {
		uint64_t left = r->len - *r->sent;
		uint64_t most = p3_cci_most(p3_cci_req_most_cells(p));
		bool last = left <= most;
		uint64_t len = last ? left : most;
		uint32_t cells = p3_cci_cells(len), rsp = last && r->asks;
		uint32_t flags = r->flags | (last ? 0u : P3_F_CCI_MORE) |
				 (*r->sent ? P3_F_CCI_LATER : 0u);
		if (!p3_req_has_room(n, p, cells, rsp))
			return false;
		struct p3_cell *c = p3_req_begin(n, p, cells, false);
		if (len)
			memcpy(p3_format_bytes(c, P3_CCI_DATA), r->bytes + *r->sent, len);
		p3_cci_req_fill(c,
			r->word1 | p3_field_in(P3_CCI_LENGTH, len) |
				p3_field_in(P3_CCI_ROOM, rsp),
			r->token, r->tag);
		P3_TRACE(send, n, p, r->kind, len);
		p->cci.asked += rsp;
		p3_req_publish(n, p, p3_word0(r->kind, flags, cells), rsp);
		*r->sent += (uint32_t)len;
	} while (*r->sent < r->len);
	return true;
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

/* ---- messages, and requests about a connection ---- */

/* Send the parts of a message that have yet to be sent, of the bytes in tx.  Return false
 * if there is no room for all. */
static bool cci_sendq_msg(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn,
	struct p3_cci_tx *tx)
{
	bool answered = conn->pub.attribute != CCI_CONN_ATTR_UU;
	if (!tx->is.numbered)
		tx->seq = conn->seq_out++;
	tx->is.numbered = true;
	const struct cci_sendq_request r = {.kind = P3_REQ_CCI_MSG,
		.asks = answered,
		.word1 = p3_field_in(P3_CCI_MSG_SEQ, tx->seq),
		.token = tx->token,
		.tag = conn->peer_tag,
		.bytes = tx->bytes,
		.len = tx->len,
		.sent = &tx->part};
	if (!cci_sendq_send(n, p, &r))
		return false;
	p3_cci_msg_sent(n, conn, answered ? tx : NULL);
	return true;
}

static bool cci_sendq_reject(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cci_request *request)
{
	uint32_t sent = 0;
	const struct cci_sendq_request r = {
		.kind = P3_REQ_CCI_DECIDE, .tag = request->client, .sent = &sent};
	return cci_sendq_send(n, p, &r);
}

static bool cci_sendq_todo(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn)
{
	while (conn->todo) {
		uint32_t first = conn->todo & (0u - conn->todo), sent = 0;
		struct cci_sendq_request r = {.asks = true,
			.token = conn->tag,
			.tag = conn->peer_tag,
			.sent = &sent};
		switch (first) {
		case P3_CCI_TODO_CONNECT:
			r.kind = P3_REQ_CCI_CONNECT;
			r.word1 = p3_field_in(P3_CCI_CONNECT_TOTAL, conn->data_len) |
				  p3_field_in(P3_CCI_CONNECT_ATTRIBUTE,
					  (uint64_t)conn->pub.attribute);
			r.tag = p3_field_in(P3_CCI_CONNECT_NUMBER, conn->server) |
				p3_field_in(P3_CCI_CONNECT_MTU, conn->ep->mtu);
			r.bytes = p3_cci_conn_data(conn);
			r.len = conn->data_len;
			r.sent = &conn->data_sent;
			break;
		case P3_CCI_TODO_DECIDE:
			r.kind = P3_REQ_CCI_DECIDE;
			r.flags = P3_F_CCI_ACCEPT;
			r.word1 = p3_field_in(P3_CCI_DECIDE_MTU, conn->pub.max_send_size);
			break;
		case P3_CCI_TODO_READY:
			r.kind = P3_REQ_CCI_READY;
			r.asks = false;
			r.token = 0;
			break;
		default:
			r.kind = P3_REQ_CCI_ALIVE;
		}
		if (!cci_sendq_send(n, p, &r))
			return false;
		conn->todo ^= (uint8_t)first;
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
	if (!cci_sendq_todo(n, p, conn))
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
		if (!cci_sendq_reject(n, p, r))
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
