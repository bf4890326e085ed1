/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA: answers at the initiator, requests at the target. */
#include "nic/cci/internal.h"
#include "nic/proto/proto.h"

#include <string.h>

/* ---- answers ---- */

/* The data are in place, or never will be, and their pending is free.  Then the message
 * follows, or the operation ends. */
static void cci_rma_data_end(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status)
{
	struct p3_cci_conn *conn = tx->item.conn;
	conn->rma_out--;
	if (status == CCI_SUCCESS && tx->is.with_msg) {
		p3_cci_tx_renew(conn, tx);
		if (conn->pub.attribute != CCI_CONN_ATTR_RO)
			p3_list_add(&conn->wait, &tx->wait);
	} else {
		p3_cci_tx_end(n, tx, status);
	}
	if (conn->state == P3_CCI_READY)
		p3_cci_conn_kick(n, conn);
}

/* Free a pending.  Return its operation, whose message may be in the list of those that
 * wait, or NULL if that has ended. */
static struct p3_cci_tx *cci_rma_free(struct p3_nic *n, struct p3_pending *t)
{
	struct p3_cci_tx *tx = t->rma;
	p3_pending_free(n, t);
	if (tx) {
		tx->rma = NULL;
		tx->state = P3_CCI_TX_WAITS;
	}
	return tx;
}

void p3_cci_rma_expect(const struct p3_pending *t, struct p3_pull *pull)
{
	pull->region = t->rma->local_name;
	pull->span.region = t->send.region;
}

/* If the peer is being lost, p3_cci_peer_down() ends the operation, with all others of
 * the connection: their pulls are in the list through which the caller goes. */
void p3_cci_rma_pulled(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	struct p3_pending *t = pull->get;
	p3_xfer_release(n, t->xfer, fail);
	t->xfer = NULL;
	struct p3_cci_tx *tx = cci_rma_free(n, t);
	if (tx && (!fail || pull->peer->state == P3_LIVE))
		cci_rma_data_end(n, tx, fail ? CCI_ERR_RMA_HANDLE : CCI_SUCCESS);
}

bool p3_cci_rma_answered(struct p3_nic *n, struct p3_pending *t, const struct p3_cell *c,
	const struct p3_answer *a)
{
	const struct p3_region *to = &t->send.region;
	bool read = t->kind == P3_REQ_GET;
	if (a->kind == P3_RSP_REPLY) {
		if (!read || t->is_long || a->mlength != to->size ||
			a->ncells != p3_reply_cells(a->mlength))
			return false;
		if (t->rma) {
			memcpy(to->start, p3_reply_bytes(c), to->size);
			if (p3_unlikely(!p3_list_empty(&n->pulls)))
				p3_xfer_wrote(n, to, 0, to->size);
		}
	} else if ((a->kind != P3_RSP_NONE && a->kind != P3_RSP_DONE) ||
		   (read && !a->status)) {
		return false;
	}
	struct p3_cci_tx *tx = cci_rma_free(n, t);
	if (!tx)
		return true;
	if (a->status == P3_CCI_REFUSED) {
		tx->item.conn->rma_out--;
		p3_cci_conn_break(n, tx->item.conn, CCI_ERR_DISCONNECTED);
	} else {
		cci_rma_data_end(n, tx, a->status ? CCI_ERR_RMA_HANDLE : CCI_SUCCESS);
	}
	return true;
}

/* ---- requests of peers ---- */

static void cci_rma_write_now(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_region *to)
{
	memcpy(to->start, p3_request_eager_bytes(r->cell, to->size), to->size);
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		p3_xfer_wrote(n, to, 0, to->size);
	FAULT_POINT("cci.written");
	n->bytes += to->size;
	p3_rsp_send_brief(n, p, r->pending, P3_RSP_DONE, to->size);
}

static bool cci_rma_read_now(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_region *from)
{
	uint64_t word0;
	if (!p3_rsp_has_room(p, from->size))
		return false;
	char *reply = p3_rsp_begin_reply(n, p, r->pending, from->size, &word0);
	memcpy(reply, from->start, from->size);
	p3_rsp_publish(n, p, word0, from->size);
	return true;
}

/* Begin to pull, or offer the bytes.  Return false if the request must wait. */
static bool cci_rma_begin_long(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_region *at)
{
	if (p3_getput_waits(n, at, 0, at->size))
		return false;
	if (r->ask.kind == P3_REQ_PUT) {
		struct p3_pull *pull = p3_deliver_pull(n, p, r);
		if (!pull)
			return false;
		pull->span.region = *at;
		pull->region = r->ask.bits;
		p3_pull_begin(n, pull);
		return true;
	}
	struct p3_xfer_slot *x = p3_xfer_alloc(n, p, P3_X_SERVE);
	if (!x)
		return false;
	p3_xfer_serve(x, r->xfer);
	x->cci = r->ask.bits;
	x->length = at->size;
	x->span.region = *at;
	x->span.offset = 0;
	p3_deliver_offer(n, r, x);
	return true;
}

bool p3_cci_rma_deliver(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r)
{
	const struct p3_ask *ask = &r->ask;
	bool is_write = ask->kind == P3_REQ_PUT, is_long = r->flags & P3_F_LONG;
	if (p->going && is_long)
		return true; /* the peer has died, and no byte will come or go */
	const struct p3_cci_conn *conn = p3_cci_setup_used(n, p, ask->hdr);
	const struct p3_cci_region *region =
		conn ? p3_cci_region_named(conn->ep, ask->bits) : NULL;
	if (!region || !(region->flags & (is_write ? CCI_FLAG_WRITE : CCI_FLAG_READ)) ||
		!p3_cci_region_holds(region, ask->remote_offset, ask->length)) {
		const struct p3_answer no = {.kind = P3_RSP_NONE,
			.pending = r->pending,
			.status = conn ? P3_CCI_HANDLE : P3_CCI_REFUSED};
		p3_rsp_send(n, p, &no);
		return true;
	}
	const struct p3_region at = {
		.start = region->start + ask->remote_offset, .size = ask->length};
	if (is_long)
		return cci_rma_begin_long(n, p, r, &at);
	if (!is_write)
		return cci_rma_read_now(n, p, r, &at);
	cci_rma_write_now(n, p, r, &at);
	return true;
}
