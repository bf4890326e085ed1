/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's half of the set-up. */
#include "nic/cci/conn.h"
#include "nic/cci/expire.h"
#include "nic/cci/item.h"
#include "nic/cci/kick.h"
#include "nic/cci/lane.h"
#include "nic/cci/op.h"
#include "nic/cci/retry.h"
#include "nic/cci/setup.h"

#define P3_COMING_NS 200000000u /* until a silent node is asked for again */

/* Begin to ask the server. */
static void ask(struct p3_nic *n, struct p3_cci_conn *conn)
{
	conn->state = P3_CCI_REQUESTED;
	conn->todo |= P3_CCI_TODO_CONNECT;
	p3_cci_kick_conn(n, conn);
}

bool p3_cci_setup_told(struct p3_nic *n, const uint64_t *coming)
{
	bool any = false;
	p3_list_each(it, &n->cci.absent) {
		struct p3_cci_conn *conn = p3_item(it, struct p3_cci_conn, work);
		uint32_t node = conn->peer->index;
		any |= conn->question == n->told + 1;
		if (conn->question != n->told)
			continue;
		if (coming && conn->peer->state == P3_ABSENT &&
			(coming[node / 64] >> node % 64 & 1))
			p3_cci_timer_start(n, &conn->retry, P3_COMING_NS);
		else
			p3_cci_op_set_up(n, conn, CCI_ECONNREFUSED);
	}
	return any;
}

static void dial(struct p3_nic *n, struct p3_cci_conn *conn)
{
	switch (conn->peer->state) {
	case P3_LIVE:
	case P3_EXPECTED:
		ask(n, conn);
		break;
	case P3_ABSENT:
		conn->state = P3_CCI_ABSENT;
		p3_list_add(&n->cci.absent, &conn->work);
		p3_cci_retry_absent(n, conn);
		break;
	default:
		p3_cci_op_set_up(n, conn, CCI_ECONNREFUSED);
	}
}

void p3_cci_setup_connect(struct p3_nic *n, struct p3_cci_dial *d)
{
	struct p3_cci_endpoint *ep = d->ep;
	const struct p3_cci_connect *c = d->c;
	p3_cci_item_drain(n, ep);
	d->garbage = ep->garbage;
	ep->garbage = NULL;
	if (!p3_cci_conn_is_free(ep) && d->chunk && p3_cci_conn_add(ep, d->chunk))
		d->chunk = NULL;
	d->rc = ep->nchunks < ep->chunks_most && !d->chunk ? CCI_EAGAIN : CCI_ENOBUFS;
	if (!p3_cci_conn_is_free(ep))
		return;
	struct p3_cci_conn *conn = p3_cci_conn_new(n, ep, &n->peer[c->node]);
	p3_cci_expire_init(conn);
	conn->client = true;
	conn->pub.attribute = c->attribute;
	conn->pub.context = c->context;
	conn->server = c->endpoint;
	conn->data = d->data;
	conn->state = P3_CCI_REQUESTED;
	d->data = NULL;
	d->rc = CCI_SUCCESS;
	if (c->timeout_ns != P3_CCI_NO_TIMEOUT)
		p3_cci_timer_start(n, &conn->timer, c->timeout_ns);
	dial(n, conn);
}

void p3_cci_setup_joined(struct p3_nic *n, struct p3_peer *p)
{
	p3_list_each(it, &n->cci.absent) {
		struct p3_cci_conn *conn = p3_item(it, struct p3_cci_conn, work);
		if (conn->peer != p)
			continue;
		p3_list_del(&conn->work);
		p3_cci_timer_stop(n, &conn->retry);
		ask(n, conn);
	}
}

void p3_cci_setup_asked(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t status)
{
	if (conn->state != P3_CCI_REQUESTED || conn->todo & P3_CCI_TODO_CONNECT)
		return; /* over, or answered before all of it was sent */
	if (status == P3_CCI_RNR) {
		p3_cci_retry_connect(n, conn);
		return;
	}
	p3_cci_conn_drop_data(conn);
	if (status == P3_CCI_OK)
		conn->state = P3_CCI_ASKED;
	else
		p3_cci_op_set_up(n, conn, CCI_ECONNREFUSED);
}

/* The server has accepted: the connection may be used. */
static void accepted(
	struct p3_nic *n, struct p3_cci_conn *conn, uint64_t server, uint32_t mtu)
{
	conn->peer_tag = server;
	if (mtu < conn->pub.max_send_size)
		conn->pub.max_send_size = mtu;
	conn->state = P3_CCI_READY;
	conn->refusals = 0;
	p3_cci_conn_drop_data(conn); /* the decision may overtake the answer */
	p3_cci_timer_stop(n, &conn->timer);
	p3_cci_op_set_up(n, conn, CCI_SUCCESS);
	p3_cci_expire_set_alive(n, conn, conn->alive_us);
}

bool p3_cci_setup_take_decision(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0)
{
	uint64_t server = p3_format_get(c, P3_CCI_TOKEN);
	uint64_t tag = p3_format_get(c, P3_CCI_TAG);
	uint32_t mtu = (uint32_t)p3_format_get(c, P3_CCI_DECIDE_MTU);
	bool room = p3_field_of(P3_CCI_ROOM, p3_format_get(c, P3_CCI_ROOM)) == 1;
	bool accept = p3_word0_flags(w0) & P3_F_CCI_ACCEPT;
	if (accept && (!room || mtu < P3_CCI_MTU_LEAST))
		return false;
	struct p3_cci_conn *conn = p3_cci_conn_named(n, tag);
	bool asks = conn && conn->peer == p && conn->client &&
		    !(conn->todo & P3_CCI_TODO_CONNECT) &&
		    (conn->state == P3_CCI_ASKED || conn->state == P3_CCI_REQUESTED);
	if (asks && accept)
		accepted(n, conn, server, mtu);
	else if (asks)
		p3_cci_op_set_up(n, conn, CCI_ECONNREFUSED);
	enum p3_cci_status status = asks                           ? P3_CCI_OK
				    : p3_cci_conn_endpoint(n, tag) ? P3_CCI_GONE
								   : P3_CCI_REFUSED;
	if (room)
		p3_cci_answer(n, p, P3_REQ_CCI_DECIDE, server, status, 0);
	return true;
}
