/* SPDX-License-Identifier: BSD-3-Clause */
/* The set-up of connections: the client's half, and the server's. */
#include "nic/cci/internal.h"

#include <string.h>

/* ---- the client ---- */

#define CCI_COMING_NS 200000000u /* until a silent node is asked for again */

/* Begin to ask the server. */
static void cci_connect_ask(struct p3_nic *n, struct p3_cci_conn *conn)
{
	conn->state = P3_CCI_REQUESTED;
	conn->todo |= P3_CCI_TODO_CONNECT;
	p3_cci_conn_kick(n, conn);
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
			p3_cci_timer_start(n, &conn->retry, CCI_COMING_NS);
		else
			p3_cci_conn_set_up(n, conn, CCI_ECONNREFUSED);
	}
	return any;
}

void p3_cci_setup_connect(struct p3_nic *n, void *dial)
{
	struct p3_cci_dial *d = dial;
	struct p3_cci_endpoint *ep = d->ep;
	const struct p3_cci_connect *c = d->c;
	p3_cci_desc_drain(n, ep);
	struct p3_cci_conn *conn = p3_cci_conn_new(n, ep, &n->peer[c->node]);
	d->rc = conn ? CCI_SUCCESS : CCI_ENOBUFS;
	if (!conn)
		return;
	p3_cci_expire_init(conn);
	conn->client = true;
	conn->pub.attribute = c->attribute;
	conn->pub.context = c->context;
	conn->server = c->endpoint;
	conn->data_len = c->data_len;
	if (c->data_len)
		memcpy(p3_cci_conn_data(conn), c->data, c->data_len);
	conn->state = P3_CCI_REQUESTED;
	if (c->timeout_ns != P3_CCI_NO_TIMEOUT)
		p3_cci_timer_start(n, &conn->timer, c->timeout_ns);
	switch (conn->peer->state) {
	case P3_LIVE:
	case P3_EXPECTED:
		cci_connect_ask(n, conn);
		break;
	case P3_ABSENT:
		conn->state = P3_CCI_ABSENT;
		p3_list_add(&n->cci.absent, &conn->work);
		p3_cci_retry_absent(n, conn);
		break;
	default:
		p3_cci_conn_set_up(n, conn, CCI_ECONNREFUSED);
	}
}

void p3_cci_peer_up(struct p3_nic *n, struct p3_peer *p)
{
	p3_list_each(it, &n->cci.absent) {
		struct p3_cci_conn *conn = p3_item(it, struct p3_cci_conn, work);
		if (conn->peer != p)
			continue;
		p3_list_del(&conn->work);
		p3_cci_timer_stop(n, &conn->retry);
		cci_connect_ask(n, conn);
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
	if (status == P3_CCI_OK)
		conn->state = P3_CCI_ASKED;
	else
		p3_cci_conn_set_up(n, conn, CCI_ECONNREFUSED);
}

bool p3_cci_setup_take_decision(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cci_part *m, bool accept)
{
	uint32_t mtu = (uint32_t)p3_field_of(P3_CCI_DECIDE_MTU, m->word1);
	if (m->len || (accept && (!m->token || mtu < P3_CCI_MTU_LEAST)))
		return false;
	struct p3_cci_conn *conn = p3_cci_conn_of_peer(n, p, m->tag);
	bool asks = conn && conn->client && !(conn->todo & P3_CCI_TODO_CONNECT) &&
		    (conn->state == P3_CCI_ASKED || conn->state == P3_CCI_REQUESTED);
	if (asks && accept) {
		conn->peer_tag = m->token;
		if (mtu < conn->pub.max_send_size)
			conn->pub.max_send_size = mtu;
		conn->state = P3_CCI_READY;
		conn->refusals = 0;
		p3_cci_timer_stop(n, &conn->timer);
		p3_cci_conn_set_up(n, conn, CCI_SUCCESS);
		p3_cci_expire_set_alive(n, conn, conn->alive_us);
	} else if (asks) {
		p3_cci_conn_set_up(n, conn, CCI_ECONNREFUSED);
	}
	if (m->token)
		p3_cci_rsp_send(n, p, P3_REQ_CCI_DECIDE, m->token,
			asks                              ? P3_CCI_OK
			: p3_cci_conn_endpoint(n, m->tag) ? P3_CCI_GONE
							  : P3_CCI_REFUSED);
	return true;
}

/* ---- the server: requests ---- */

void p3_cci_setup_forget(struct p3_peer *p)
{
	if (p->cci.coming)
		p->cci.coming->state = P3_CCI_REQ_FREE;
	p->cci.coming = NULL;
}

static struct p3_cci_request *cci_request_begin(struct p3_nic *n,
	struct p3_cci_endpoint *ep, struct p3_peer *p, const struct p3_cci_part *m)
{
	uint32_t i = 0;
	p3_cci_setup_forget(p);
	p3_cci_desc_drain(n, ep);
	while (i < P3_CCI_REQUESTS && ep->request[i].state != P3_CCI_REQ_FREE)
		i++;
	if (i == P3_CCI_REQUESTS)
		return NULL;
	struct p3_cci_request *r = &ep->request[i];
	p->cci.coming = r;
	r->item.ep = ep;
	r->item.conn = NULL;
	r->item.what = P3_CCI_REQUEST;
	r->peer = p;
	r->incarnation = p->incarnation;
	r->client = m->token;
	r->mtu = (uint32_t)p3_field_of(P3_CCI_CONNECT_MTU, m->tag);
	r->have = 0;
	r->returned = false;
	r->state = P3_CCI_REQ_COMING;
	return r;
}

/* Take a part.  Return the answer to the request, if this is its last part. */
static enum p3_cci_status cci_request_take(struct p3_nic *n, struct p3_peer *p,
	const struct p3_cci_part *m, uint32_t total, uint32_t attribute)
{
	uint32_t number = (uint32_t)p3_field_of(P3_CCI_CONNECT_NUMBER, m->tag);
	struct p3_cci_endpoint *ep = p3_cci_endpoint_numbered(n, number);
	if (!ep || attribute > CCI_CONN_ATTR_UU || p->cci.nconns >= P3_CCI_PEER_CONNS)
		return P3_CCI_REFUSED;
	struct p3_cci_request *r = p->cci.coming;
	if (!m->later)
		r = cci_request_begin(n, ep, p, m);
	else if (r && (r->item.ep != ep || r->client != m->token))
		r = NULL;
	if (!r || r->have + m->len > total)
		return P3_CCI_RNR;
	memcpy(r->data + r->have, m->bytes, m->len);
	r->have += m->len;
	if (!m->last)
		return P3_CCI_OK;
	p->cci.coming = NULL;
	if (r->have != total) {
		r->state = P3_CCI_REQ_FREE;
		return P3_CCI_RNR;
	}
	union cci_event *e = &r->item.event;
	r->state = P3_CCI_REQ_OPEN;
	ep->nopen++;
	r->data[r->have] = 0;
	e->request.type = CCI_EVENT_CONNECT_REQUEST;
	e->request.data_len = r->have;
	e->request.data_ptr = r->have ? r->data : NULL;
	e->request.attribute = (cci_conn_attribute_t)attribute;
	p3_cci_event_post(n, &r->item);
	return P3_CCI_OK;
}

bool p3_cci_setup_take_request(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cci_part *m)
{
	uint32_t total = (uint32_t)p3_field_of(P3_CCI_CONNECT_TOTAL, m->word1);
	uint32_t attribute = (uint32_t)p3_field_of(P3_CCI_CONNECT_ATTRIBUTE, m->word1);
	if (total > CCI_CONN_REQ_LEN || m->len > total || !m->token ||
		p3_field_of(P3_CCI_CONNECT_MTU, m->tag) < P3_CCI_MTU_LEAST)
		return false;
	enum p3_cci_status status = cci_request_take(n, p, m, total, attribute);
	if (!m->last)
		return true;
	if (status == P3_CCI_RNR)
		p3_count(&n->count[P3_C_CCI_RNR_SENT], 1);
	p3_cci_rsp_send(n, p, P3_REQ_CCI_CONNECT, m->token, status);
	return true;
}

/* ---- decisions ---- */

void p3_cci_setup_reject(struct p3_nic *n, struct p3_cci_request *r)
{
	struct p3_peer *p = r->peer;
	bool lives = p->state == P3_LIVE && p->incarnation == r->incarnation;
	if (!lives) {
		r->state = r->returned ? P3_CCI_REQ_FREE : P3_CCI_REQ_OVER;
		return;
	}
	r->state = P3_CCI_REQ_REJECTS;
	r->item.ep->rejects++;
	p3_list_add(&p->cci.rejects, &r->todo);
	p3_cci_sendq_kick(n, p);
}

void p3_cci_setup_decide(struct p3_nic *n, void *decision)
{
	struct p3_cci_decision *d = decision;
	struct p3_cci_request *r = d->request;
	struct p3_cci_endpoint *ep = r->item.ep;
	d->rc = CCI_EINVAL;
	if (r->state != P3_CCI_REQ_OPEN)
		return;
	if (!d->accept) {
		d->rc = CCI_SUCCESS;
		ep->nopen--;
		p3_cci_setup_reject(n, r);
		return;
	}
	p3_cci_desc_drain(n, ep);
	struct p3_peer *p = r->peer;
	struct p3_cci_conn *conn = p3_cci_conn_new(n, ep, p);
	d->rc = conn ? CCI_SUCCESS : CCI_ENOBUFS;
	if (!conn)
		return;
	p3_cci_expire_init(conn);
	conn->pub.context = d->context;
	conn->pub.attribute = r->item.event.request.attribute;
	if (r->mtu < conn->pub.max_send_size)
		conn->pub.max_send_size = r->mtu;
	conn->peer_tag = r->client;
	conn->state = P3_CCI_DECIDED;
	r->state = P3_CCI_REQ_OVER;
	ep->nopen--;
	if (p->state != P3_LIVE || p->incarnation != r->incarnation) {
		p3_cci_conn_set_up(n, conn, CCI_ERR_DISCONNECTED);
		return;
	}
	conn->todo |= P3_CCI_TODO_DECIDE;
	p3_cci_conn_kick(n, conn);
}

void p3_cci_setup_decided(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t status)
{
	if (conn->state != P3_CCI_DECIDED)
		return;
	if (status != P3_CCI_OK) {
		p3_cci_conn_set_up(n, conn,
			status == P3_CCI_GONE ? CCI_ETIMEDOUT : CCI_ERR_DISCONNECTED);
		return;
	}
	conn->state = P3_CCI_READY;
	p3_cci_conn_set_up(n, conn, CCI_SUCCESS);
	p3_cci_expire_set_alive(n, conn, conn->alive_us);
}

struct p3_cci_conn *p3_cci_setup_used(
	struct p3_nic *n, const struct p3_peer *p, uint64_t tag)
{
	struct p3_cci_conn *conn = p3_cci_conn_of_peer(n, p, tag);
	if (!conn)
		return NULL;
	if (p3_unlikely(conn->state == P3_CCI_DECIDED) &&
		!(conn->todo & P3_CCI_TODO_DECIDE))
		p3_cci_setup_decided(n, conn, P3_CCI_OK);
	return conn->state == P3_CCI_READY ? conn : NULL;
}
