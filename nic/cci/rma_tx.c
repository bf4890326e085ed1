/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA operations of this node: requests, answers, reads, ends. */
#include "nic/cci/rma_tx.h"

#include "nic/cci/conn.h"
#include "nic/cci/item.h"
#include "nic/cci/kick.h"
#include "nic/cci/lane.h"
#include "nic/cci/op.h"
#include "nic/cci/region.h"
#include "nic/proto/proto.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"

#include <string.h>

#define P3_CCI_WRITE_MOST 1024u /* longest WRITE whose bytes the message carries */

/* ---- requests ---- */

static bool is_long(const struct p3_peer *p, const struct p3_cci_tx *tx)
{
	if (tx->op == P3_CCI_OP_READ)
		return tx->length > P3_CCI_ANSWER_HEAD;
	return tx->length > P3_CCI_WRITE_MOST ||
	       p3_cci_cells(P3_CCI_WRITE_HEAD, tx->length) > p3_cci_most_cells(p);
}

/* Give a long operation its slot.  Return false if it must wait. */
static bool get_slot(struct p3_nic *n, struct p3_peer *p, struct p3_cci_tx *tx)
{
	const struct p3_region r = {.start = tx->local, .size = tx->length};
	if (n->swapper && p3_getput_waits(n, &r, 0, tx->length))
		return false;
	tx->xfer = p3_xfer_alloc(n, p, P3_X_OWN);
	if (!tx->xfer)
		return false;
	tx->xfer->cci = tx->local_name;
	if (tx->op == P3_CCI_OP_READ)
		return true;
	tx->xfer->span.region = r;
	tx->xfer->span.offset = 0;
	tx->xfer->length = tx->length;
	p3_xfer_publish(n, tx->xfer);
	return true;
}

/* Send the request of an operation.  Return false if there is no room. */
static bool push_one(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn,
	struct p3_cci_tx *tx)
{
	bool is_write = tx->op == P3_CCI_OP_WRITE, slot = is_long(p, tx);
	uint32_t cells =
		is_write && !slot ? p3_cci_cells(P3_CCI_WRITE_HEAD, tx->length) : 1;
	if (!p3_cci_has_room(n, p, cells, 1) || (slot && !get_slot(n, p, tx)))
		return false;
	struct p3_cell *c = p3_cci_begin(n, p, cells);
	if (is_write && !slot)
		memcpy(p3_format_bytes(c, P3_CCI_RMA_DATA), tx->local, tx->length);
	else
		p3_format_set(c, P3_CCI_RMA_XFER, slot ? p3_xfer_name(tx->xfer) : 0);
	p3_format_set(c, P3_CCI_ROOM, p3_field_in(P3_CCI_ROOM, 1));
	p3_format_set(c, P3_CCI_TOKEN, tx->token);
	p3_format_set(c, P3_CCI_TAG, conn->peer_tag);
	p3_format_set(c, P3_CCI_RMA_REGION, tx->region);
	p3_format_set(c, P3_CCI_RMA_OFFSET, tx->offset);
	p3_format_set(c, P3_CCI_RMA_LENGTH, tx->length);
	p3_cci_publish(n, p, is_write ? P3_REQ_CCI_WRITE : P3_REQ_CCI_READ,
		slot ? P3_F_CCI_LONG : 0, cells, 1);
	p3_list_del(&tx->rma);
	p3_list_add(&conn->ep->rma_sent, &tx->rma);
	tx->state = P3_CCI_TX_SENT;
	tx->is.in_flight = true;
	p3_cci_op_renew(conn, tx);
	conn->rma_out++;
	return true;
}

bool p3_cci_rma_push(struct p3_nic *n, struct p3_peer *p, struct p3_cci_conn *conn)
{
	while (!p3_list_empty(&conn->rma)) {
		struct p3_cci_tx *tx = p3_item(conn->rma.next, struct p3_cci_tx, rma);
		if (tx->is.fence && conn->rma_out)
			return true; /* the last answer goes on */
		if (!push_one(n, p, conn, tx))
			return false;
	}
	return true;
}

/* ---- ends ---- */

/* The data are in place, or never will be.  Then the message follows, or the operation
 * ends. */
static void data_end(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status)
{
	struct p3_cci_conn *conn = tx->item.conn;
	bool msg = status == CCI_SUCCESS && tx->is.with_msg;
	conn->rma_out--;
	p3_list_del(&tx->rma);
	tx->is.data_done = true;
	if (!msg)
		p3_cci_op_end(n, tx, status);
	else
		tx->state = P3_CCI_TX_WAITS;
	if (msg)
		p3_cci_op_renew(conn, tx);
	if (msg && conn->pub.attribute != CCI_CONN_ATTR_RO)
		p3_list_add(&conn->wait, &tx->wait);
	if (conn->state == P3_CCI_READY)
		p3_cci_kick_conn(n, conn);
}

/* Tell the target of a READ that its bytes are no longer needed.  The slot stays in use
 * until the target has seen that. */
static void release(struct p3_nic *n, struct p3_xfer_slot *x, uint32_t fail)
{
	p3_set(&x->pub->status, fail ? UINT64_MAX : 0);
	p3_release(&x->pub->released, p3_xfer_name(x)); /* XFER.3 */
	FAULT_POINT("cci.released");
	x->releasing = true;
	p3_list_add(&n->sources, &x->link);
	p3_odd_set(n, P3_ODD_SOURCES);
	p3_looks_add(n, x->peer);
}

/* The pull of a READ has ended.  If the peer is being lost, p3_cci_lose_peer() ends the
 * operation, with all others of the connection: their pulls are in the list through which
 * the caller goes. */
static void read_over(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	struct p3_xfer_slot *x = p3_item(pull, struct p3_xfer_slot, pull);
	struct p3_cci_tx *tx = p3_cci_item_named(n, pull->token);
	bool lives = pull->peer->state == P3_LIVE;
	release(n, x, fail);
	if (!tx || tx->state != P3_CCI_TX_SENT || tx->xfer != x)
		return;
	tx->xfer = NULL;
	if (!fail || lives)
		data_end(n, tx, fail ? CCI_ERR_RMA_HANDLE : CCI_SUCCESS);
}

static void begin_read(struct p3_nic *n, struct p3_peer *p, struct p3_cci_tx *tx,
	const struct p3_cell *c)
{
	struct p3_xfer_slot *x = tx->xfer;
	struct p3_pull *pull = &x->pull;
	*pull = (struct p3_pull){.peer = p,
		.xfer_id = x->peer_id,
		.addr = p3_format_get(c, P3_CCI_ANSWER_ADDR),
		.heap = p3_format_get(c, P3_CCI_ANSWER_HEAP),
		.length = tx->length,
		.over = read_over,
		.token = tx->token,
		.region = tx->local_name};
	pull->span.region = (struct p3_region){.start = tx->local, .size = tx->length};
	p3_pull_begin(n, pull);
}

/* ---- answers ---- */

/* Take the target's slot from the answer to a long READ.  Return false if no slot for
 * served requests has that number. */
static bool take_source(
	const struct p3_nic *n, struct p3_xfer_slot *x, const struct p3_cell *c)
{
	uint64_t name = p3_format_get(c, P3_CCI_ANSWER_XFER);
	uint32_t slot = (uint32_t)name;
	x->peer_id = name;
	return slot >= n->layout.nxfers / 2 && slot < n->layout.nxfers;
}

static cci_status_t status_of(uint32_t status)
{
	return status == P3_CCI_OK      ? CCI_SUCCESS
	       : status == P3_CCI_NO_OP ? CCI_ERR_RMA_OP
					: CCI_ERR_RMA_HANDLE;
}

/* Take the answer to a READ that brings bytes.  Return false if the peer wrote nonsense:
 * then the operation stays in flight, so that no pull is ended that has not begun. */
static bool read_answered(struct p3_nic *n, struct p3_peer *p, struct p3_cci_tx *tx,
	const struct p3_cell *c, bool is_long_answer)
{
	bool wanted = tx->state == P3_CCI_TX_SENT;
	struct p3_xfer_slot *x = tx->xfer;
	if (is_long_answer != (tx->length > P3_CCI_ANSWER_HEAD) ||
		(is_long_answer && (!x || !take_source(n, x, c))))
		return false;
	tx->is.in_flight = false;
	if (!is_long_answer) {
		if (!wanted)
			return true;
		memcpy(tx->local, p3_format_bytes(c, P3_CCI_ANSWER_DATA), tx->length);
		data_end(n, tx, CCI_SUCCESS);
		return true;
	}
	if (wanted) {
		begin_read(n, p, tx, c);
		return true;
	}
	tx->xfer = NULL;
	release(n, x, PTL_NI_FAIL);
	return true;
}

static void free_slot(struct p3_nic *n, struct p3_cci_tx *tx)
{
	if (tx->xfer)
		p3_xfer_free(n, tx->xfer);
	tx->xfer = NULL;
}

bool p3_cci_rma_answered(struct p3_nic *n, struct p3_peer *p, struct p3_cci_tx *tx,
	const struct p3_cell *c)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ANSWER_STATUS);
	uint32_t status = (uint32_t)p3_field_of(P3_CCI_ANSWER_STATUS, w1);
	bool is_long_answer = p3_field_of(P3_CCI_ANSWER_LONG, w1) != 0;
	struct p3_cci_conn *conn = tx->item.conn;
	bool wanted = tx->state == P3_CCI_TX_SENT;
	if (tx->op == P3_CCI_OP_READ && status == P3_CCI_OK) {
		if (!read_answered(n, p, tx, c, is_long_answer))
			return false;
	} else {
		tx->is.in_flight = false;
		free_slot(n, tx);
	}
	if (wanted && status == P3_CCI_REFUSED) {
		p3_cci_rma_withdraw_all(n, conn);
		p3_cci_op_break(n, conn, CCI_ERR_DISCONNECTED);
	} else if (wanted && (tx->op == P3_CCI_OP_WRITE || status != P3_CCI_OK)) {
		data_end(n, tx, status_of(status));
	} else if (!wanted) {
		p3_cci_item_tx_over(n, tx);
	}
	return true;
}

void p3_cci_rma_abandon(struct p3_cci_tx *tx)
{
	if (tx->is.in_flight && tx->xfer)
		tx->xfer->abandoned = tx->op == P3_CCI_OP_READ ? 2 : 1;
}

void p3_cci_rma_take_late(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
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
	if (is_long_answer && take_source(n, x, c))
		release(n, x, PTL_NI_FAIL);
	else
		p3_xfer_free(n, x);
}

void p3_cci_rma_lose_peer(struct p3_nic *n, const struct p3_peer *p)
{
	for (uint32_t i = 0; i < n->layout.nxfers / 2; i++) {
		struct p3_xfer_slot *x = &n->xfer[i];
		if (x->in_use && x->cci && x->peer == p && !x->releasing)
			p3_xfer_free(n, x);
	}
}

/* ---- withdrawal ---- */

static void withdraw_slot(struct p3_nic *n, struct p3_cci_tx *tx)
{
	struct p3_xfer_slot *x = tx->xfer;
	if (tx->op == P3_CCI_OP_READ && !tx->is.in_flight) {
		tx->xfer = NULL;
		p3_pull_end(n, &x->pull, PTL_NI_FAIL);
	} else if (x->peer->state != P3_LIVE) {
		free_slot(n, tx);
	} else if (tx->op == P3_CCI_OP_WRITE) {
		p3_xfer_withdraw(n, x);
		p3_set(&n->cci.withdrawn_ns, p3_now_ns());
		if (!tx->is.silent)
			tx->item.what = P3_CCI_WITHDRAWN;
	}
}

void p3_cci_rma_withdraw(struct p3_nic *n, struct p3_cci_tx *tx)
{
	if (tx->op == P3_CCI_OP_MSG || tx->is.data_done || tx->state != P3_CCI_TX_SENT)
		return;
	if (tx->xfer)
		withdraw_slot(n, tx);
	tx->item.conn->rma_out--;
}

void p3_cci_rma_withdraw_all(struct p3_nic *n, struct p3_cci_conn *conn)
{
	p3_list_each(it, &conn->fifo)
		p3_cci_rma_withdraw(n, p3_item(it, struct p3_cci_tx, fifo));
}
