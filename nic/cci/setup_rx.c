/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's half of the set-up. */
#include "nic/cci/conn.h"
#include "nic/cci/event.h"
#include "nic/cci/expire.h"
#include "nic/cci/item.h"
#include "nic/cci/kick.h"
#include "nic/cci/lane.h"
#include "nic/cci/op.h"
#include "nic/cci/setup.h"

#include <string.h>

/* A connect request, or a part of it, as copied from its header. */
struct part {
	const char *bytes;
	uint64_t client;
	uint32_t number;
	uint32_t mtu;
	uint32_t total, len;
	uint32_t attribute;
	bool later, last;
};

static struct p3_cci_endpoint *numbered(const struct p3_nic *n, uint32_t number)
{
	for (uint32_t i = 0; i < n->cci.ends; i++)
		if (n->cci.ep[i] && n->cci.ep[i]->number == number)
			return n->cci.ep[i];
	return NULL;
}

/* ---- requests ---- */

static struct p3_cci_request *free_request(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	p3_cci_item_drain(n, ep);
	for (uint32_t i = 0; i < P3_CCI_REQUESTS; i++)
		if (ep->request[i].state == P3_CCI_REQ_FREE)
			return &ep->request[i];
	return NULL;
}

static struct p3_cci_request *begun_request(
	const struct p3_cci_endpoint *ep, const struct p3_peer *p, uint64_t client)
{
	struct p3_cci_request *r = p->cci.coming;
	return r && r->item.ep == ep && r->client == client ? r : NULL;
}

void p3_cci_setup_forget(struct p3_peer *p)
{
	if (p->cci.coming)
		p->cci.coming->state = P3_CCI_REQ_FREE;
	p->cci.coming = NULL;
}

static struct p3_cci_request *begin_request(struct p3_nic *n, struct p3_cci_endpoint *ep,
	struct p3_peer *p, const struct part *m)
{
	p3_cci_setup_forget(p);
	struct p3_cci_request *r = free_request(n, ep);
	if (!r)
		return NULL;
	p->cci.coming = r;
	r->item.ep = ep;
	r->item.conn = NULL;
	r->item.what = P3_CCI_REQUEST;
	r->peer = p;
	r->incarnation = p->incarnation;
	r->client = m->client;
	r->mtu = m->mtu;
	r->have = 0;
	r->returned = false;
	r->state = P3_CCI_REQ_COMING;
	return r;
}

static void offer(struct p3_nic *n, struct p3_cci_request *r, const struct part *m)
{
	union cci_event *e = &r->item.event;
	r->state = P3_CCI_REQ_OPEN;
	r->item.ep->nopen++;
	r->data[r->have] = 0;
	e->request.type = CCI_EVENT_CONNECT_REQUEST;
	e->request.data_len = r->have;
	e->request.data_ptr = r->have ? r->data : NULL;
	e->request.attribute = (cci_conn_attribute_t)m->attribute;
	p3_cci_event_post(n, &r->item);
}

/* Take a part.  Return the answer to the request, if this is its last part. */
static enum p3_cci_status take_part(
	struct p3_nic *n, struct p3_peer *p, const struct part *m)
{
	struct p3_cci_endpoint *ep = numbered(n, m->number);
	if (!ep || m->attribute > CCI_CONN_ATTR_UU || p->cci.nconns >= P3_CCI_PEER_CONNS)
		return P3_CCI_REFUSED;
	struct p3_cci_request *r =
		m->later ? begun_request(ep, p, m->client) : begin_request(n, ep, p, m);
	if (!r || r->have + m->len > m->total)
		return P3_CCI_RNR;
	memcpy(r->data + r->have, m->bytes, m->len);
	r->have += m->len;
	if (!m->last)
		return P3_CCI_OK;
	p->cci.coming = NULL;
	if (r->have != m->total) {
		r->state = P3_CCI_REQ_FREE;
		return P3_CCI_RNR;
	}
	offer(n, r, m);
	return P3_CCI_OK;
}

bool p3_cci_setup_take_request(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ROOM);
	uint64_t w3 = p3_format_get(c, P3_CCI_CONNECT_NUMBER);
	uint32_t flags = p3_word0_flags(w0);
	const struct part m = {.bytes = p3_format_bytes(c, P3_CCI_CONNECT_DATA),
		.client = p3_format_get(c, P3_CCI_TOKEN),
		.number = (uint32_t)p3_field_of(P3_CCI_CONNECT_NUMBER, w3),
		.mtu = (uint32_t)p3_field_of(P3_CCI_CONNECT_MTU, w3),
		.total = (uint32_t)p3_field_of(P3_CCI_CONNECT_TOTAL, w1),
		.len = (uint32_t)p3_field_of(
			P3_CCI_CONNECT_LENGTH, p3_format_get(c, P3_CCI_CONNECT_LENGTH)),
		.attribute = (uint32_t)p3_field_of(P3_CCI_CONNECT_ATTRIBUTE, w1),
		.later = flags & P3_F_CCI_LATER,
		.last = !(flags & P3_F_CCI_MORE)};
	if (m.total > CCI_CONN_REQ_LEN || m.len > m.total || m.mtu < P3_CCI_MTU_LEAST ||
		p3_word0_ncells(w0) != p3_cci_cells(P3_CCI_CONNECT_HEAD, m.len) ||
		p3_field_of(P3_CCI_ROOM, w1) != m.last)
		return false;
	enum p3_cci_status status = take_part(n, p, &m);
	if (!m.last)
		return true;
	if (status == P3_CCI_RNR)
		p3_count(&n->cci.count[P3_CCI_C_RNR_SENT], 1);
	p3_cci_answer(n, p, P3_REQ_CCI_CONNECT, m.client, status, 0);
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
	p3_cci_kick(n, p);
}

static void accept_request(
	struct p3_nic *n, struct p3_cci_request *r, struct p3_cci_conn *conn)
{
	struct p3_peer *p = r->peer;
	conn->pub.attribute = r->item.event.request.attribute;
	if (r->mtu < conn->pub.max_send_size)
		conn->pub.max_send_size = r->mtu;
	conn->peer_tag = r->client;
	conn->state = P3_CCI_DECIDED;
	r->state = P3_CCI_REQ_OVER;
	if (p->state != P3_LIVE || p->incarnation != r->incarnation) {
		p3_cci_op_set_up(n, conn, CCI_ERR_DISCONNECTED);
		return;
	}
	conn->todo |= P3_CCI_TODO_DECIDE;
	p3_cci_kick_conn(n, conn);
}

void p3_cci_setup_decide(struct p3_nic *n, struct p3_cci_decision *d)
{
	struct p3_cci_request *r = d->request;
	struct p3_cci_endpoint *ep = r->item.ep;
	d->rc = CCI_EINVAL;
	if (r->state != P3_CCI_REQ_OPEN)
		return;
	d->rc = CCI_SUCCESS;
	if (!d->accept) {
		ep->nopen--;
		p3_cci_setup_reject(n, r);
		return;
	}
	p3_cci_item_drain(n, ep);
	if (!p3_cci_conn_is_free(ep) && d->chunk && p3_cci_conn_add(ep, d->chunk))
		d->chunk = NULL;
	d->rc = ep->nchunks < ep->chunks_most && !d->chunk ? CCI_EAGAIN : CCI_ENOBUFS;
	if (!p3_cci_conn_is_free(ep))
		return;
	struct p3_cci_conn *conn = p3_cci_conn_new(n, ep, r->peer);
	p3_cci_expire_init(conn);
	conn->pub.context = d->context;
	ep->nopen--;
	accept_request(n, r, conn);
	d->rc = CCI_SUCCESS;
}

void p3_cci_setup_decided(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t status)
{
	if (conn->state != P3_CCI_DECIDED)
		return;
	if (status != P3_CCI_OK) {
		p3_cci_op_set_up(n, conn,
			status == P3_CCI_GONE ? CCI_ETIMEDOUT : CCI_ERR_DISCONNECTED);
		return;
	}
	conn->state = P3_CCI_READY;
	p3_cci_op_set_up(n, conn, CCI_SUCCESS);
	p3_cci_expire_set_alive(n, conn, conn->alive_us);
}

struct p3_cci_conn *p3_cci_setup_used(
	struct p3_nic *n, const struct p3_peer *p, uint64_t tag)
{
	struct p3_cci_conn *conn = p3_cci_conn_named(n, tag);
	if (!conn || conn->peer != p)
		return NULL;
	if (p3_unlikely(conn->state == P3_CCI_DECIDED) &&
		!(conn->todo & P3_CCI_TODO_DECIDE))
		p3_cci_setup_decided(n, conn, P3_CCI_OK);
	return conn->state == P3_CCI_READY ? conn : NULL;
}
