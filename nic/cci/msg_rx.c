/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages received: connection, order, descriptor, bytes. */
#include "nic/cci/msg_rx.h"

#include "nic/cci/conn.h"
#include "nic/cci/event.h"
#include "nic/cci/item.h"
#include "nic/cci/lane.h"
#include "nic/cci/retry.h"
#include "nic/cci/setup.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"

#include <string.h>

/* A message, or a part of it, as copied from its header. */
struct part {
	const char *bytes;
	uint64_t token; /* 0: no answer is wanted */
	uint32_t len;
	uint32_t seq;
	bool later, last;
};

void p3_cci_msg_forget(struct p3_cci_conn *conn)
{
	if (conn->coming)
		p3_cci_item_rx_free(conn->coming);
	conn->coming = NULL;
	conn->in_parts = false;
}

static P3_HOT void post(struct p3_nic *n, struct p3_cci_conn *conn, struct p3_cci_rx *rx)
{
	union cci_event *e = &rx->item.event;
	rx->item.conn = conn;
	e->recv.type = CCI_EVENT_RECV;
	e->recv.len = conn->coming_len;
	e->recv.ptr = p3_likely(conn->coming_len) ? rx->slot : NULL;
	e->recv.connection = &conn->pub;
	rx->slot[conn->coming_len] = 0;
	p3_cci_conn_ref(conn);
	p3_cci_event_post(n, &rx->item);
}

/* Return true if the message has its turn, or is not in the order of the connection. */
static bool has_turn(struct p3_cci_conn *conn, const struct part *m)
{
	return conn->pub.attribute != CCI_CONN_ATTR_RO || m->seq == conn->seq_in;
}

/* Note that the message is refused. */
static void refuse(struct p3_nic *n, struct p3_cci_conn *conn)
{
	bool unreliable = conn->pub.attribute == CCI_CONN_ATTR_UU;
	p3_count(&n->cci.count[unreliable ? P3_CCI_C_DROPS : P3_CCI_C_RNR_SENT], 1);
	if (unreliable)
		return;
	conn->refusing = true;
	p3_cci_retry_starve(conn);
}

/* Give the message that begins with this part a descriptor.  Return NULL if it must be
 * refused. */
static struct p3_cci_rx *begin(
	struct p3_nic *n, struct p3_cci_conn *conn, const struct part *m)
{
	p3_cci_msg_forget(conn);
	conn->coming_len = 0;
	struct p3_cci_rx *rx =
		p3_likely(has_turn(conn, m)) ? p3_cci_item_rx(n, conn->ep) : NULL;
	if (p3_unlikely(!rx))
		refuse(n, conn);
	return rx;
}

static void answer(
	struct p3_nic *n, struct p3_peer *p, const struct part *m, uint32_t status)
{
	if (m->token)
		p3_cci_answer(n, p, P3_REQ_CCI_MSG, m->token, status, 0);
}

/* Take a message to a living connection.  Return false if the peer wrote nonsense. */
static bool deliver(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn,
	const struct part *m)
{
	struct p3_cci_rx *rx = conn->coming;
	if (p3_likely(!m->later)) {
		if (p3_unlikely(!has_turn(conn, m) && !conn->refusing))
			return false;
		rx = begin(n, conn, m);
	} else if (!conn->in_parts) {
		return false;
	}
	conn->in_parts = !m->last;
	if (p3_unlikely(!rx)) {
		if (m->last)
			answer(n, p, m, P3_CCI_RNR);
		return true;
	}
	conn->coming = NULL;
	if (m->len > conn->pub.max_send_size - conn->coming_len) {
		p3_cci_item_rx_free(rx);
		return false;
	}
	memcpy(rx->slot + conn->coming_len, m->bytes, m->len);
	conn->coming_len += m->len;
	if (p3_unlikely(!m->last)) {
		conn->coming = rx;
		return true;
	}
	conn->seq_in++;
	conn->refusing = false;
	FAULT_POINT("cci.received");
	post(n, conn, rx);
	P3_TRACE(delivered, n, p, P3_REQ_CCI_MSG, conn->coming_len);
	answer(n, p, m, P3_CCI_OK);
	p3_count(&n->cci.count[P3_CCI_C_RECEIVED], 1);
	return true;
}

bool p3_cci_msg_take(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ROOM);
	uint32_t flags = p3_word0_flags(w0);
	const struct part m = {.bytes = p3_format_bytes(c, P3_CCI_MSG_DATA),
		.token = p3_format_get(c, P3_CCI_TOKEN),
		.len = (uint32_t)p3_field_of(P3_CCI_MSG_LENGTH, w1),
		.seq = (uint32_t)p3_field_of(P3_CCI_MSG_SEQ, w1),
		.later = flags & P3_F_CCI_LATER,
		.last = !(flags & P3_F_CCI_MORE)};
	bool answered = p3_field_of(P3_CCI_ROOM, w1) != 0;
	if (p3_word0_ncells(w0) != p3_cci_cells(P3_CCI_MSG_HEAD, m.len) ||
		answered != (m.token && m.last))
		return false;
	P3_TRACE(take, n, p, P3_REQ_CCI_MSG, m.len);
	n->bytes += m.len;
	struct p3_cci_conn *conn = p3_cci_setup_used(n, p, p3_format_get(c, P3_CCI_TAG));
	if (p3_likely(conn != NULL))
		return deliver(n, p, conn, &m);
	p3_count(&n->cci.count[P3_CCI_C_REFUSED], 1);
	if (m.last)
		answer(n, p, &m, P3_CCI_REFUSED);
	return true;
}

/* ---- the straight path ---- */

/* Return the connection that a tag names, or NULL.  Most messages are of the connection
 * of the one before. */
static P3_HOT struct p3_cci_conn *named(struct p3_nic *n, uint64_t tag)
{
	struct p3_cci_conn *conn = n->cci.last;
	if (p3_likely(conn->tag == tag && tag))
		return conn;
	conn = p3_cci_conn_named(n, tag);
	if (p3_likely(conn != NULL))
		n->cci.last = conn;
	return conn;
}

/* Return the living connection of a message that it expects, or NULL. */
static P3_HOT struct p3_cci_conn *expecting(
	struct p3_nic *n, const struct p3_peer *p, const struct p3_cell *c, uint64_t w1)
{
	struct p3_cci_conn *conn = named(n, p3_format_get(c, P3_CCI_TAG));
	if (p3_unlikely(!conn || conn->peer != p || conn->state != P3_CCI_READY ||
			conn->in_parts))
		return NULL;
	uint32_t seq = (uint32_t)p3_field_of(P3_CCI_MSG_SEQ, w1);
	if (conn->pub.attribute == CCI_CONN_ATTR_RO && p3_unlikely(seq != conn->seq_in))
		return NULL;
	return conn;
}

/* Return true if an answer is wanted as the attribute says, and may leave. */
static P3_HOT bool may_answer(
	struct p3_peer *p, const struct p3_cci_conn *conn, uint64_t token, uint64_t w1)
{
	uint64_t room = p3_field_of(P3_CCI_ROOM, w1);
	if (conn->pub.attribute == CCI_CONN_ATTR_UU)
		return p3_likely(!(room | token));
	return p3_likely(room && token && p3_rsp_may_run(p));
}

static P3_HOT void answer_straight(struct p3_nic *n, struct p3_peer *p, uint64_t token)
{
	struct p3_cell *c = p->rsp_out.next;
	p3_format_set(
		c, P3_CCI_ANSWER_STATUS, p3_field_in(P3_CCI_ANSWER_KIND, P3_REQ_CCI_MSG));
	p3_format_set(c, P3_CCI_ANSWER_TOKEN, token);
	FAULT_POINT("cci.answer_filled");
	p3_rsp_run(n, p, p3_word0(P3_RSP_CCI, 0, 1));
	FAULT_POINT("cci.answer_published");
}

/* The bytes of k cells lie in the descriptor's slot: post the event, and answer. */
static P3_HOT void deliver_straight(struct p3_nic *n, struct p3_peer *p,
	struct p3_cci_conn *conn, struct p3_cci_rx *rx, uint32_t len, uint32_t k,
	uint64_t token)
{
	conn->seq_in++;
	conn->refusing = false;
	FAULT_POINT("cci.received");
	conn->coming_len = len;
	post(n, conn, rx);
	n->bytes += len;
	n->msgs++;
	n->worked = true;
	p3_count(&n->cci.count[P3_CCI_C_RECEIVED], 1);
	if (token)
		answer_straight(n, p, token);
	FAULT_POINT("cci.request_taken");
	p3_ring_take(&p->req_in, k);
}

bool p3_cci_msg_take_one(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ROOM),
		 token = p3_format_get(c, P3_CCI_TOKEN);
	uint32_t len = (uint32_t)p3_field_of(P3_CCI_MSG_LENGTH, w1);
	struct p3_cci_conn *conn = expecting(n, p, c, w1);
	if (p3_unlikely(
		    !conn || len > P3_CCI_MSG_HEAD || !may_answer(p, conn, token, w1)))
		return false;
	struct p3_cci_rx *rx = p3_cci_item_rx(n, conn->ep);
	if (p3_unlikely(!rx))
		return false;
	/* a slot has room for all bytes of the cell */
	memcpy(rx->slot, p3_format_bytes(c, P3_CCI_MSG_DATA), P3_CCI_MSG_HEAD);
	deliver_straight(n, p, conn, rx, len, 1, token);
	return true;
}

bool p3_cci_msg_take_longer(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint32_t k)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ROOM),
		 token = p3_format_get(c, P3_CCI_TOKEN);
	uint32_t len = (uint32_t)p3_field_of(P3_CCI_MSG_LENGTH, w1);
	struct p3_cci_conn *conn = expecting(n, p, c, w1);
	if (p3_unlikely(!conn || len > conn->pub.max_send_size ||
			k != p3_cci_cells(P3_CCI_MSG_HEAD, len) ||
			!may_answer(p, conn, token, w1)))
		return false;
	struct p3_cci_rx *rx = p3_cci_item_rx(n, conn->ep);
	if (p3_unlikely(!rx))
		return false;
	memcpy(rx->slot, p3_format_bytes(c, P3_CCI_MSG_DATA), len);
	deliver_straight(n, p, conn, rx, len, k, token);
	return true;
}
