/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers to messages, connect requests, decisions and keepalives. */
#include "nic/cci/answered.h"

#include "nic/cci/conn.h"
#include "nic/cci/format.h"
#include "nic/cci/item.h"
#include "nic/cci/kick.h"
#include "nic/cci/op.h"
#include "nic/cci/retry.h"
#include "nic/cci/rma_tx.h"
#include "nic/cci/setup.h"
#include "nic/report/report.h"

/* ---- messages ---- */

/* The message was taken, so its operation is complete. */
static void taken(struct p3_nic *n, struct p3_cci_conn *conn, struct p3_cci_tx *tx)
{
	bool more = conn->probing;
	conn->rnr = conn->probing = false;
	conn->refusals = 0;
	p3_cci_op_end(n, tx, CCI_SUCCESS);
	p3_cci_retry_answered(n, conn);
	if (p3_unlikely(more))
		p3_cci_kick_conn(n, conn);
}

/* The message that probed the peer was answered after its time: send the others. */
static void probe_over(struct p3_nic *n, struct p3_cci_conn *conn)
{
	if (!conn->probing || conn->nout || conn->state != P3_CCI_READY)
		return;
	conn->probing = false;
	p3_cci_kick_conn(n, conn);
}

static void msg_answered(
	struct p3_nic *n, struct p3_cci_conn *conn, struct p3_cci_tx *tx, uint32_t status)
{
	P3_TRACE(about, n, tx->topic, P3_TRACE_ANSWERED, P3_RSP_CCI, 0);
	tx->is.in_flight = false;
	conn->nout--;
	if (p3_unlikely(tx->state != P3_CCI_TX_SENT)) {
		p3_cci_item_tx_over(n, tx);
		p3_cci_retry_answered(n, conn);
		probe_over(n, conn);
	} else if (p3_likely(status == P3_CCI_OK)) {
		taken(n, conn, tx);
	} else if (status == P3_CCI_RNR) {
		p3_cci_retry_refused(n, tx);
	} else {
		p3_cci_rma_withdraw_all(n, conn);
		p3_cci_op_break(n, conn, CCI_ERR_DISCONNECTED);
	}
}

/* Return true if the operation waits for this kind of answer. */
static bool expects(const struct p3_cci_tx *tx, uint32_t kind)
{
	bool msg = tx->op == P3_CCI_OP_MSG || tx->is.data_done;
	if (kind == P3_REQ_CCI_MSG)
		return msg;
	return !msg && (kind == P3_REQ_CCI_WRITE) == (tx->op == P3_CCI_OP_WRITE);
}

static bool op_answered(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint32_t kind)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ANSWER_STATUS);
	uint32_t status = (uint32_t)p3_field_of(P3_CCI_ANSWER_STATUS, w1);
	struct p3_cci_tx *tx =
		p3_cci_item_named(n, p3_format_get(c, P3_CCI_ANSWER_TOKEN));
	if (!tx || !tx->is.in_flight || tx->item.conn->peer != p) {
		if (kind != P3_REQ_CCI_MSG)
			p3_cci_rma_take_late(n, p, c);
		return true; /* its endpoint is gone */
	}
	if (!expects(tx, kind))
		return false;
	if (kind == P3_REQ_CCI_MSG)
		msg_answered(n, tx->item.conn, tx, status);
	else
		return p3_cci_rma_answered(n, p, tx, c);
	return true;
}

/* ---- connections ---- */

static void connection_answered(
	struct p3_nic *n, struct p3_cci_conn *conn, uint32_t kind, uint32_t status)
{
	if (kind == P3_REQ_CCI_CONNECT)
		p3_cci_setup_asked(n, conn, status);
	else if (kind == P3_REQ_CCI_DECIDE)
		p3_cci_setup_decided(n, conn, status);
	else
		conn->asked = false;
}

uint32_t p3_cci_answered(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	uint64_t w1 = p3_format_get(c, P3_CCI_ANSWER_STATUS);
	uint32_t kind = (uint32_t)p3_field_of(P3_CCI_ANSWER_KIND, w1);
	if (!p->cci.asked)
		return 0;
	p->cci.asked--;
	if (p3_likely(kind == P3_REQ_CCI_MSG) || kind == P3_REQ_CCI_WRITE ||
		kind == P3_REQ_CCI_READ)
		return op_answered(n, p, c, kind);
	if (kind != P3_REQ_CCI_CONNECT && kind != P3_REQ_CCI_DECIDE &&
		kind != P3_REQ_CCI_ALIVE)
		return 0;
	struct p3_cci_conn *conn =
		p3_cci_conn_named(n, p3_format_get(c, P3_CCI_ANSWER_TOKEN));
	if (conn && conn->peer == p)
		connection_answered(
			n, conn, kind, (uint32_t)p3_field_of(P3_CCI_ANSWER_STATUS, w1));
	return 1;
}

/* Return true if the operation is the oldest one, and its end lets no message go. */
static P3_HOT bool ends_alone(const struct p3_cci_conn *conn, const struct p3_cci_tx *tx)
{
	return p3_likely(
		       tx->state == P3_CCI_TX_SENT && !conn->probing && !conn->resumes) &&
	       p3_likely(conn->fifo.next == &tx->fifo);
}

bool p3_cci_answered_straight(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	const uint64_t taken = p3_field_in(P3_CCI_ANSWER_KIND, P3_REQ_CCI_MSG);
	struct p3_cci_tx *tx =
		p3_cci_item_named(n, p3_format_get(c, P3_CCI_ANSWER_TOKEN));
	if (p3_unlikely(p3_format_get(c, P3_CCI_ANSWER_STATUS) != taken || !tx ||
			!p->cci.asked))
		return false;
	struct p3_cci_conn *conn = tx->item.conn;
	bool msg = tx->op == P3_CCI_OP_MSG || tx->is.data_done;
	if (p3_unlikely(!msg || !tx->is.in_flight || conn->peer != p ||
			!ends_alone(conn, tx)))
		return false;
	p->cci.asked--;
	tx->is.in_flight = false;
	conn->nout--;
	conn->rnr = false;
	conn->refusals = 0;
	p3_list_del(&tx->fifo);
	p3_cci_op_over(n, tx, CCI_SUCCESS);
	if (p3_unlikely(!p3_list_empty(&conn->fifo)))
		p3_cci_op_end_done(n, conn);
	n->worked = true;
	FAULT_POINT("response.handled");
	p3_ring_take_now(&p->rsp_in, 1);
	p->rsp_used--;
	return true;
}
