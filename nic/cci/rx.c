/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and answers off the lanes: dispatch, and messages. */
#include "nic/cci/internal.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"

#include <string.h>

/* ---- messages ---- */

/* Return a free receive descriptor, or NULL.  One that the program has just returned is
 * in the nearest cache. */
static P3_HOT struct p3_cci_rx *cci_rx_new(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	struct p3_cci_item *item = p3_cci_queue_first_back(&ep->queue);
	if (p3_likely(item && item->what == P3_CCI_RX && !ep->rx_surplus)) {
		ep->queue.back_head++;
		p3_cci_conn_unref(n, item->conn);
		return (struct p3_cci_rx *)item;
	}
	p3_cci_desc_drain(n, ep);
	uint32_t left = p3_get(&ep->rx_left);
	if (p3_unlikely(!left))
		return NULL;
	p3_set(&ep->rx_left, left - 1);
	item = ep->rx_free;
	if (p3_unlikely(!item))
		return p3_cci_rx_fresh(ep);
	ep->rx_free = item->next;
	return (struct p3_cci_rx *)item;
}

void p3_cci_msg_forget(struct p3_cci_conn *conn)
{
	if (conn->coming)
		p3_cci_rx_free(conn->coming);
	conn->coming = NULL;
	conn->in_parts = false;
}

/* Post the event of a message of len bytes that lies in the slot. */
static P3_HOT void cci_rx_post(
	struct p3_nic *n, struct p3_cci_conn *conn, struct p3_cci_rx *rx, uint32_t len)
{
	union cci_event *e = &rx->item.event;
	conn->seq_in++;
	conn->refusing = false;
	FAULT_POINT("cci.received");
	rx->item.conn = conn;
	e->recv.type = CCI_EVENT_RECV;
	e->recv.len = len;
	e->recv.ptr = p3_likely(len) ? rx->slot : NULL;
	e->recv.connection = &conn->pub;
	rx->slot[len] = 0;
	p3_cci_conn_ref(conn);
	p3_cci_event_post(n, &rx->item);
	p3_count(&n->count[P3_C_CCI_RECEIVED], 1);
}

static void cci_rx_answer(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cci_part *m, uint32_t status)
{
	if (m->token)
		p3_cci_rsp_send(n, p, P3_REQ_CCI_MSG, m->token, status);
}

/* Take a message to a living connection.  Return false if the peer wrote nonsense. */
static bool cci_rx_deliver(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn,
	const struct p3_cci_part *m)
{
	struct p3_cci_rx *rx = conn->coming;
	if (p3_likely(!m->later)) {
		uint32_t seq = (uint32_t)p3_field_of(P3_CCI_MSG_SEQ, m->word1);
		bool turn =
			conn->pub.attribute != CCI_CONN_ATTR_RO || seq == conn->seq_in;
		if (p3_unlikely(!turn && !conn->refusing))
			return false;
		p3_cci_msg_forget(conn);
		conn->coming_len = 0;
		rx = p3_likely(turn) ? cci_rx_new(n, conn->ep) : NULL;
		if (p3_unlikely(!rx)) { /* the message is refused */
			bool uu = conn->pub.attribute == CCI_CONN_ATTR_UU;
			p3_count(&n->count[uu ? P3_C_CCI_DROPS : P3_C_CCI_RNR_SENT], 1);
			if (!uu) {
				conn->refusing = true;
				p3_cci_retry_starve(conn);
			}
		}
	} else if (!conn->in_parts) {
		return false;
	}
	conn->in_parts = !m->last;
	if (p3_unlikely(!rx)) {
		if (m->last)
			cci_rx_answer(n, p, m, P3_CCI_RNR);
		return true;
	}
	conn->coming = NULL;
	if (m->len > conn->pub.max_send_size - conn->coming_len) {
		p3_cci_rx_free(rx);
		return false;
	}
	memcpy(rx->slot + conn->coming_len, m->bytes, m->len);
	conn->coming_len += m->len;
	if (p3_unlikely(!m->last)) {
		conn->coming = rx;
		return true;
	}
	cci_rx_post(n, conn, rx, conn->coming_len);
	P3_TRACE(delivered, n, p, P3_REQ_CCI_MSG, conn->coming_len);
	cci_rx_answer(n, p, m, P3_CCI_OK);
	return true;
}

/* Take a message, or a part of it.  Return false if the peer wrote nonsense. */
static bool cci_rx_take(struct p3_nic *n, struct p3_peer *p, const struct p3_cci_part *m)
{
	n->bytes += m->len;
	struct p3_cci_conn *conn = p3_cci_setup_used(n, p, m->tag);
	if (p3_likely(conn != NULL))
		return cci_rx_deliver(n, p, conn, m);
	p3_count(&n->count[P3_C_CCI_REFUSED], 1);
	if (m->last)
		cci_rx_answer(n, p, m, P3_CCI_REFUSED);
	return true;
}

/* ---- messages of one part ---- */

/* Return the connection that a tag names, one that is dead, or NULL.  Most messages are
 * of the connection of the one before. */
static P3_HOT struct p3_cci_conn *cci_rx_conn(struct p3_nic *n, uint64_t tag)
{
	struct p3_cci_conn *conn = n->cci.last;
	if (p3_likely(conn->tag == tag))
		return conn;
	conn = p3_cci_conn_named(n, tag);
	if (p3_likely(conn != NULL))
		n->cci.last = conn;
	return conn;
}

/* Return the living connection of a message that it expects, or NULL.  The message wants
 * an answer if the attribute says so, and only then. */
static P3_HOT struct p3_cci_conn *cci_rx_expecting(struct p3_nic *n,
	const struct p3_peer *p, const struct p3_cell *c, uint64_t w1, uint64_t token)
{
	struct p3_cci_conn *conn = cci_rx_conn(n, p3_format_get(c, P3_CCI_TAG));
	if (p3_unlikely(!conn || conn->peer != p || conn->state != P3_CCI_READY ||
			conn->in_parts))
		return NULL;
	uint64_t room = p3_field_of(P3_CCI_ROOM, w1);
	if (conn->pub.attribute == CCI_CONN_ATTR_UU)
		return p3_likely(!(room | token)) ? conn : NULL;
	uint32_t seq = (uint32_t)p3_field_of(P3_CCI_MSG_SEQ, w1);
	if (conn->pub.attribute == CCI_CONN_ATTR_RO && p3_unlikely(seq != conn->seq_in))
		return NULL;
	return p3_likely(room && token) ? conn : NULL;
}

/* Answer that the message was taken. */
static P3_HOT void cci_rx_accept(struct p3_nic *n, struct p3_peer *p, uint64_t token)
{
	if (p3_unlikely(!p3_rsp_may_run(p))) {
		p3_cci_rsp_send(n, p, P3_REQ_CCI_MSG, token, P3_CCI_OK);
		return;
	}
	struct p3_cell *c = p->rsp_out.next;
	p3_format_set(
		c, P3_CCI_ANSWER_STATUS, p3_field_in(P3_CCI_ANSWER_KIND, P3_REQ_CCI_MSG));
	p3_format_set(c, P3_CCI_ANSWER_TOKEN, token);
	FAULT_POINT("response.filled");
	p3_rsp_run(n, p, P3_CCI_ANSWER);
	FAULT_POINT("response.published");
}

/* Take a message of k cells: its bytes, its event, and the answer. */
static P3_HOT bool cci_rx_take_whole(struct p3_nic *n, struct p3_peer *p,
	const struct p3_cell *c, uint64_t w1, uint32_t k)
{
	uint64_t token = p3_format_get(c, P3_CCI_TOKEN);
	uint32_t len = (uint32_t)p3_field_of(P3_CCI_LENGTH, w1);
	struct p3_cci_conn *conn = cci_rx_expecting(n, p, c, w1, token);
	if (p3_unlikely(!conn) || p3_unlikely(k == 1 ? len > P3_CCI_HEAD
						     : len > conn->pub.max_send_size ||
							       k != p3_cci_cells(len)))
		return false;
	struct p3_cci_rx *rx = cci_rx_new(n, conn->ep);
	if (p3_unlikely(!rx))
		return false;
	/* A slot has room for all bytes of a cell. */
	memcpy(rx->slot, p3_format_bytes(c, P3_CCI_DATA), k == 1 ? P3_CCI_HEAD : len);
	cci_rx_post(n, conn, rx, len);
	n->bytes += len;
	n->msgs++;
	n->worked = true;
	if (token)
		cci_rx_accept(n, p, token);
	FAULT_POINT("cci.request_taken");
	p3_ring_take(&p->req_in, k);
	return true;
}

bool p3_cci_msg_take(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c,
	uint64_t w1, uint32_t k)
{
	return p3_likely(k == 1) ? cci_rx_take_whole(n, p, c, w1, 1)
				 : cci_rx_take_whole(n, p, c, w1, k);
}

/* ---- requests of all kinds ---- */

bool p3_cci_req_take(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0)
{
	struct p3_cci_part m;
	struct p3_cci_conn *conn;
	uint32_t kind = p3_word0_kind(w0);
	bool good = p3_cci_part_load(c, w0, &m);
	P3_TRACE(take, n, p, kind, m.len);
	if (p3_likely(good)) {
		switch (kind) {
		case P3_REQ_CCI_MSG:
			good = cci_rx_take(n, p, &m);
			break;
		case P3_REQ_CCI_CONNECT:
			good = p3_cci_setup_take_request(n, p, &m);
			break;
		case P3_REQ_CCI_DECIDE:
			good = p3_cci_setup_take_decision(
				n, p, &m, p3_word0_flags(w0) & P3_F_CCI_ACCEPT);
			break;
		case P3_REQ_CCI_READY: /* the peer has room again */
			good = !m.len;
			conn = p3_cci_conn_of_peer(n, p, m.tag);
			if (conn)
				p3_cci_retry_resume(n, conn);
			break;
		case P3_REQ_CCI_ALIVE:
			good = !m.len && m.token;
			conn = p3_cci_conn_of_peer(n, p, m.tag);
			if (good)
				p3_cci_rsp_send(n, p, P3_REQ_CCI_ALIVE, m.token,
					conn ? P3_CCI_OK : P3_CCI_REFUSED);
			break;
		default:
			good = false;
		}
	}
	if (p3_unlikely(!good)) {
		p3_peer_ignore(n, p, "a bad message of CCI");
		return false;
	}
	FAULT_POINT("cci.request_taken");
	p3_ring_take(&p->req_in, p3_word0_ncells(w0));
	n->worked = true;
	n->msgs++;
	return true;
}

/* ---- answers ---- */

/* End a message that was taken while others wait for that. */
static P3_RARE void cci_tx_end_held(
	struct p3_nic *n, struct p3_cci_conn *conn, struct p3_cci_tx *tx)
{
	bool more = conn->probing;
	conn->probing = false;
	p3_cci_tx_end(n, tx, CCI_SUCCESS);
	p3_cci_retry_answered(n, conn);
	if (more)
		p3_cci_conn_kick(n, conn);
}

static P3_HOT void cci_tx_rsp_take_msg(
	struct p3_nic *n, struct p3_cci_conn *conn, struct p3_cci_tx *tx, uint32_t status)
{
	P3_TRACE(about, n, tx->topic, P3_TRACE_ANSWERED, P3_RSP_CCI, 0);
	tx->is.in_flight = false;
	conn->nout--;
	if (p3_unlikely(tx->state != P3_CCI_TX_SENT)) {
		p3_cci_tx_settle(n, tx);
		p3_cci_retry_answered(n, conn);
		if (!conn->probing || conn->nout || conn->state != P3_CCI_READY)
			return;
		/* The message that probed the peer was answered late: send the others. */
		conn->probing = false;
		p3_cci_conn_kick(n, conn);
	} else if (p3_likely(status == P3_CCI_OK)) {
		conn->rnr = false;
		conn->refusals = 0;
		if (p3_likely(!conn->probing && !conn->resumes))
			p3_cci_tx_end(n, tx, CCI_SUCCESS);
		else
			cci_tx_end_held(n, conn, tx);
	} else if (status == P3_CCI_RNR) {
		p3_cci_retry_refused(n, tx);
	} else {
		p3_cci_conn_break(n, conn, CCI_ERR_DISCONNECTED);
	}
}

/* Take the answer to a request about a connection. */
static P3_RARE uint32_t cci_conn_rsp_take(struct p3_nic *n, const struct p3_peer *p,
	const struct p3_cell *c, uint32_t kind, uint32_t status)
{
	if (kind != P3_REQ_CCI_CONNECT && kind != P3_REQ_CCI_DECIDE &&
		kind != P3_REQ_CCI_ALIVE)
		return 0;
	struct p3_cci_conn *conn =
		p3_cci_conn_of_peer(n, p, p3_format_get(c, P3_CCI_ANSWER_TOKEN));
	if (!conn)
		return 1;
	if (kind == P3_REQ_CCI_CONNECT)
		p3_cci_setup_asked(n, conn, status);
	else if (kind == P3_REQ_CCI_DECIDE)
		p3_cci_setup_decided(n, conn, status);
	else
		conn->asked = false;
	return 1;
}

P3_HOT
uint32_t p3_cci_rsp_take(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ANSWER_STATUS);
	uint32_t kind = (uint32_t)p3_field_of(P3_CCI_ANSWER_KIND, w1);
	uint32_t status = (uint32_t)p3_field_of(P3_CCI_ANSWER_STATUS, w1);
	if (p3_unlikely(!p->cci.asked))
		return 0;
	p->cci.asked--;
	if (p3_unlikely(kind != P3_REQ_CCI_MSG))
		return cci_conn_rsp_take(n, p, c, kind, status);
	struct p3_cci_tx *tx = p3_cci_tx_named(n, p3_format_get(c, P3_CCI_ANSWER_TOKEN));
	if (p3_likely(tx && tx->is.in_flight && tx->item.conn->peer == p))
		cci_tx_rsp_take_msg(n, tx->item.conn, tx, status);
	return 1; /* else its endpoint is gone */
}
