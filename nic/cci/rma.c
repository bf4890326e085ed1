/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA: answers at the initiator, requests at the target. */
#include "nic/cci/internal.h"
#include "nic/proto/proto.h"

#include <string.h>

/* The data are in place, or never will be.  Then the message follows, or the operation
 * ends. */
static void cci_rma_data_end(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status)
{
	struct p3_cci_conn *conn = tx->item.conn;
	conn->rma_out--;
	p3_list_del(&tx->rma);
	tx->is.data_done = true;
	if (status == CCI_SUCCESS && tx->is.with_msg) {
		tx->state = P3_CCI_TX_WAITS;
		p3_cci_tx_renew(conn, tx);
		if (conn->pub.attribute != CCI_CONN_ATTR_RO)
			p3_list_add(&conn->wait, &tx->wait);
	} else {
		p3_cci_tx_end(n, tx, status);
	}
	if (conn->state == P3_CCI_READY)
		p3_cci_conn_kick(n, conn);
}

/* The pull of a READ has ended.  If the peer is being lost, p3_cci_peer_down() ends the
 * operation, with all others of the connection: their pulls are in the list through which
 * the caller goes. */
static void cci_rma_read_over(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	struct p3_xfer_slot *x = p3_item(pull, struct p3_xfer_slot, pull);
	struct p3_cci_tx *tx = p3_cci_tx_named(n, pull->token);
	bool lives = pull->peer->state == P3_LIVE;
	p3_xfer_release(n, x, fail);
	if (!tx || tx->state != P3_CCI_TX_SENT || tx->xfer != x)
		return;
	tx->xfer = NULL;
	if (!fail || lives)
		cci_rma_data_end(n, tx, fail ? CCI_ERR_RMA_HANDLE : CCI_SUCCESS);
}

/* ---- answers ---- */

/* Take the target's slot from the answer to a long READ.  Return false if no slot for
 * served requests has that number. */
static bool cci_rma_take_source(
	const struct p3_nic *n, struct p3_xfer_slot *x, const struct p3_cell *c)
{
	uint64_t name = p3_format_get(c, P3_CCI_ANSWER_XFER);
	uint32_t slot = (uint32_t)name;
	x->peer_id = name;
	return slot >= n->layout.nxfers / 2 && slot < n->layout.nxfers;
}

/* Take the answer to a READ that brings bytes.  Return false if the peer wrote nonsense:
 * then the operation stays in flight, so that no pull is ended that has not begun. */
static bool cci_rma_read_rsp_take(struct p3_nic *n, struct p3_peer *p,
	struct p3_cci_tx *tx, const struct p3_cell *c, bool is_long_answer)
{
	bool wanted = tx->state == P3_CCI_TX_SENT;
	struct p3_xfer_slot *x = tx->xfer;
	if (is_long_answer != (tx->length > P3_CCI_ANSWER_HEAD) ||
		(is_long_answer && (!x || !cci_rma_take_source(n, x, c))))
		return false;
	tx->is.in_flight = false;
	if (!is_long_answer) {
		if (!wanted)
			return true;
		memcpy(tx->local, p3_format_bytes(c, P3_CCI_ANSWER_DATA), tx->length);
		cci_rma_data_end(n, tx, CCI_SUCCESS);
		return true;
	}
	if (!wanted) {
		tx->xfer = NULL;
		p3_xfer_release(n, x, PTL_NI_FAIL);
		return true;
	}
	x->pull = (struct p3_pull){.peer = p,
		.xfer_id = x->peer_id,
		.addr = p3_format_get(c, P3_CCI_ANSWER_ADDR),
		.heap = p3_format_get(c, P3_CCI_ANSWER_HEAP),
		.length = tx->length,
		.over = cci_rma_read_over,
		.token = tx->token,
		.region = tx->local_name};
	x->pull.span.region = (struct p3_region){.start = tx->local, .size = tx->length};
	p3_pull_begin(n, &x->pull);
	return true;
}

bool p3_cci_rma_rsp_take(struct p3_nic *n, struct p3_peer *p, struct p3_cci_tx *tx,
	const struct p3_cell *c)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ANSWER_STATUS);
	uint32_t status = (uint32_t)p3_field_of(P3_CCI_ANSWER_STATUS, w1);
	bool is_long_answer = p3_field_of(P3_CCI_ANSWER_LONG, w1) != 0;
	struct p3_cci_conn *conn = tx->item.conn;
	bool wanted = tx->state == P3_CCI_TX_SENT;
	if (tx->op == P3_CCI_OP_READ && status == P3_CCI_OK) {
		if (!cci_rma_read_rsp_take(n, p, tx, c, is_long_answer))
			return false;
	} else {
		tx->is.in_flight = false;
		p3_cci_rma_free_slot(n, tx);
	}
	if (wanted && status == P3_CCI_REFUSED) {
		p3_cci_rma_withdraw_all(n, conn);
		p3_cci_conn_break(n, conn, CCI_ERR_DISCONNECTED);
	} else if (wanted && (tx->op == P3_CCI_OP_WRITE || status != P3_CCI_OK)) {
		cci_rma_data_end(n, tx,
			status == P3_CCI_OK      ? CCI_SUCCESS
			: status == P3_CCI_NO_OP ? CCI_ERR_RMA_OP
						 : CCI_ERR_RMA_HANDLE);
	} else if (!wanted) {
		p3_cci_tx_settle(n, tx);
	}
	return true;
}

void p3_cci_rma_abandon(struct p3_cci_tx *tx)
{
	if (tx->is.in_flight && tx->xfer)
		tx->xfer->abandoned = tx->op == P3_CCI_OP_READ ? 2 : 1;
}

void p3_cci_rma_rsp_late(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ANSWER_STATUS);
	bool is_long_answer = p3_field_of(P3_CCI_ANSWER_LONG, w1) != 0;
	uint64_t own =
		p3_format_get(c, is_long_answer ? P3_CCI_ANSWER_OWN : P3_CCI_ANSWER_XFER);
	uint32_t slot = (uint32_t)own;
	if (slot >= n->layout.nxfers / 2)
		return;
	struct p3_xfer_slot *x = &n->xfer[slot];
	if (!x->in_use || !x->abandoned || x->peer != p || p3_xfer_name(x) != own ||
		x->releasing || (is_long_answer && x->abandoned != 2))
		return;
	if (is_long_answer && cci_rma_take_source(n, x, c))
		p3_xfer_release(n, x, PTL_NI_FAIL);
	else
		p3_xfer_free(n, x);
}

void p3_cci_rma_peer_down(struct p3_nic *n, const struct p3_peer *p)
{
	for (uint32_t i = 0; i < n->layout.nxfers / 2; i++) {
		struct p3_xfer_slot *x = &n->xfer[i];
		if (x->in_use && x->cci && x->peer == p && !x->releasing)
			p3_xfer_free(n, x);
	}
}

/* ---- requests of peers ---- */

/* A request as copied from its header. */
struct cci_rma_ask {
	uint64_t token;
	uint64_t region, offset, length;
	uint64_t xfer; /* the initiator's slot, or 0 */
	uint32_t kind;
	bool is_long;
	const char *bytes; /* WRITE that is not long */
};

static bool cci_rma_load(
	struct p3_nic *n, const struct p3_cell *c, uint64_t w0, struct cci_rma_ask *a)
{
	a->kind = p3_word0_kind(w0);
	a->is_long = p3_word0_flags(w0) & P3_F_CCI_LONG;
	a->token = p3_format_get(c, P3_CCI_TOKEN);
	a->region = p3_format_get(c, P3_CCI_RMA_REGION);
	a->offset = p3_format_get(c, P3_CCI_RMA_OFFSET);
	a->length = p3_format_get(c, P3_CCI_RMA_LENGTH);
	a->xfer = a->is_long ? p3_format_get(c, P3_CCI_RMA_XFER) : 0;
	a->bytes = p3_format_bytes(c, P3_CCI_RMA_DATA);
	uint32_t ncells = p3_word0_ncells(w0);
	bool carries = a->kind == P3_REQ_CCI_WRITE && !a->is_long;
	uint64_t most = p3_cci_most(P3_CCI_WRITE_HEAD, ncells);
	if (carries && (a->length > most ||
			       ncells != p3_cci_cells(P3_CCI_WRITE_HEAD, a->length)))
		return false;
	if (!carries && ncells != 1)
		return false;
	if (a->kind == P3_REQ_CCI_READ && !a->is_long && a->length > P3_CCI_ANSWER_HEAD)
		return false;
	if (a->is_long && (uint32_t)a->xfer >= n->layout.nxfers / 2)
		return false;
	return a->token && a->length &&
	       p3_field_of(P3_CCI_ROOM, p3_format_get(c, P3_CCI_ROOM)) == 1;
}

static void cci_rma_answer(struct p3_nic *n, struct p3_peer *p,
	const struct cci_rma_ask *a, enum p3_cci_status status)
{
	p3_cci_rsp_send(n, p, a->kind, a->token, status, a->xfer);
}

/* A pull into a region has ended. */
static void cci_rma_write_over(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	p3_cci_rsp_send(n, pull->peer, P3_REQ_CCI_WRITE, pull->token,
		fail ? P3_CCI_HANDLE : P3_CCI_OK, pull->xfer_id);
}

static void cci_rma_write_now(
	struct p3_nic *n, struct p3_peer *p, const struct cci_rma_ask *a, char *to)
{
	memcpy(to, a->bytes, a->length);
	if (p3_unlikely(!p3_list_empty(&n->pulls))) {
		const struct p3_region r = {.start = to, .size = a->length};
		p3_xfer_wrote(n, &r, 0, a->length);
	}
	FAULT_POINT("cci.written");
	n->bytes += a->length;
	cci_rma_answer(n, p, a, P3_CCI_OK);
}

/* Begin to pull.  Return false if the request must wait. */
static bool cci_rma_write_long(
	struct p3_nic *n, struct p3_peer *p, const struct cci_rma_ask *a, char *to)
{
	const struct p3_region r = {.start = to, .size = a->length};
	if (p3_getput_waits(n, &r, 0, a->length))
		return false;
	struct p3_pull *pull = p3_pull_alloc(n, p);
	if (!pull)
		return false;
	const struct p3_xfer *src = p3_xfer_of_peer(n, p, a->xfer);
	pull->xfer_id = a->xfer;
	pull->heap = p3_get(&src->heap);
	if (!p3_xfer_sees_heap(pull))
		pull->addr = p3_get(&src->addr);
	pull->length = a->length;
	pull->span.region = r;
	pull->token = a->token;
	pull->region = a->region;
	pull->over = cci_rma_write_over;
	p3_pull_begin(n, pull);
	return true;
}

static void cci_rma_read_now(struct p3_nic *n, struct p3_peer *p,
	const struct cci_rma_ask *a, const char *from)
{
	struct p3_cell *c = p3_rsp_begin(n, p);
	if (!c)
		return;
	memcpy(p3_format_bytes(c, P3_CCI_ANSWER_DATA), from, a->length);
	p3_format_set(c, P3_CCI_ANSWER_STATUS, p3_field_in(P3_CCI_ANSWER_KIND, a->kind));
	p3_format_set(c, P3_CCI_ANSWER_TOKEN, a->token);
	p3_rsp_publish(n, p, P3_CCI_ANSWER, 0);
}

/* Offer the bytes.  Return false if the request must wait. */
static bool cci_rma_read_long(
	struct p3_nic *n, struct p3_peer *p, const struct cci_rma_ask *a, char *from)
{
	const struct p3_region r = {.start = from, .size = a->length};
	if (p3_getput_waits(n, &r, 0, a->length))
		return false;
	struct p3_xfer_slot *x = p3_xfer_alloc(n, p, P3_X_SERVE);
	if (!x)
		return false;
	p3_xfer_serve(x, a->xfer);
	x->cci = a->region;
	x->length = a->length;
	x->span.region = r;
	x->span.offset = 0;
	p3_xfer_publish(n, x);
	struct p3_cell *c = p3_rsp_begin(n, p);
	if (!c)
		return true;
	p3_format_set(c, P3_CCI_ANSWER_STATUS,
		p3_field_in(P3_CCI_ANSWER_KIND, a->kind) |
			p3_field_in(P3_CCI_ANSWER_LONG, 1));
	p3_format_set(c, P3_CCI_ANSWER_TOKEN, a->token);
	p3_format_set(c, P3_CCI_ANSWER_XFER, p3_xfer_name(x));
	p3_format_set(c, P3_CCI_ANSWER_ADDR, p3_get(&x->pub->addr));
	p3_format_set(c, P3_CCI_ANSWER_HEAP, p3_get(&x->pub->heap));
	p3_format_set(c, P3_CCI_ANSWER_OWN, a->xfer);
	p3_rsp_publish(n, p, P3_CCI_ANSWER, 0);
	return true;
}

bool p3_cci_rma_take(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c,
	uint64_t w0, bool *waits_out)
{
	struct cci_rma_ask a;
	if (!cci_rma_load(n, c, w0, &a))
		return false;
	if (p->going && a.is_long)
		return true; /* the peer has died, and no byte will come or go */
	const struct p3_cci_conn *conn =
		p3_cci_setup_used(n, p, p3_format_get(c, P3_CCI_TAG));
	if (!conn) {
		cci_rma_answer(n, p, &a, P3_CCI_REFUSED);
		return true;
	}
	const struct p3_cci_region *r = p3_cci_region_named(conn->ep, a.region);
	int right = a.kind == P3_REQ_CCI_WRITE ? CCI_FLAG_WRITE : CCI_FLAG_READ;
	if (!r || !(r->flags & right) || !p3_cci_region_holds(r, a.offset, a.length)) {
		cci_rma_answer(n, p, &a, P3_CCI_HANDLE);
		return true;
	}
	char *at = r->start + a.offset;
	if (a.kind == P3_REQ_CCI_WRITE && a.is_long)
		*waits_out = !cci_rma_write_long(n, p, &a, at);
	else if (a.is_long)
		*waits_out = !cci_rma_read_long(n, p, &a, at);
	else if (a.kind == P3_REQ_CCI_WRITE)
		cci_rma_write_now(n, p, &a, at);
	else
		cci_rma_read_now(n, p, &a, at);
	return true;
}
