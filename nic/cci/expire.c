/* SPDX-License-Identifier: BSD-3-Clause */
/* Time-outs, retries and keepalives. */
#include "nic/cci/expire.h"

#include "nic/cci/conn.h"
#include "nic/cci/event.h"
#include "nic/cci/item.h"
#include "nic/cci/kick.h"
#include "nic/cci/op.h"
#include "nic/cci/retry.h"
#include "nic/cci/rma_tx.h"

#define P3_ALIVE_LEAST 100000u

/* ---- time-outs of operations ---- */

void p3_cci_expire_start(struct p3_nic *n, struct p3_cci_conn *conn)
{
	p3_cci_timer_start(n, &conn->timer, p3_cci_op_tick_ns(conn));
}

/* Return true if the operation has had its time, which may not have begun. */
static bool is_late(const struct p3_cci_conn *conn, const struct p3_cci_tx *tx)
{
	return (int32_t)(conn->tick - tx->tick) > (int32_t)P3_CCI_TICKS;
}

static struct p3_cci_tx *oldest(const struct p3_cci_conn *conn)
{
	return p3_list_empty(&conn->fifo)
		       ? NULL
		       : p3_item(conn->fifo.next, struct p3_cci_tx, fifo);
}

static void end_late(struct p3_nic *n, struct p3_cci_conn *conn, struct p3_cci_tx *tx)
{
	cci_status_t status = conn->rnr ? CCI_ERR_RNR : CCI_ETIMEDOUT;
	if (conn->pub.attribute == CCI_CONN_ATTR_RO) {
		p3_cci_rma_withdraw_all(n, conn);
		p3_cci_op_break(n, conn, status);
		return;
	}
	p3_cci_rma_withdraw(n, tx);
	p3_cci_op_end(n, tx, status);
}

/* Return true if data of the connection's RMA operations have moved since the last tick.
 * Of its reads of this node's memory, the peer tells the sum of the bytes. */
static bool rma_moves(struct p3_cci_conn *conn)
{
	uint64_t moved = p3_get(&conn->peer->theirs->pulled);
	if (!conn->rma_out)
		return false;
	p3_list_each(it, &conn->fifo) {
		const struct p3_cci_tx *tx = p3_item(it, struct p3_cci_tx, fifo);
		if (tx->op == P3_CCI_OP_READ && tx->xfer)
			moved += tx->xfer->pull.done - tx->xfer->pull.end;
	}
	bool moves = moved != conn->moved;
	conn->moved = moved;
	return moves;
}

/* End the operations that are late.  On an RO connection the oldest one decides for all.
 * Else those behind an RMA operation, whose time may have begun anew, have their own. */
static bool end_all_late(struct p3_nic *n, struct p3_cci_conn *conn)
{
	bool moves = rma_moves(conn), ended = false;
	bool ordered = conn->pub.attribute == CCI_CONN_ATTR_RO;
	p3_list_each(it, &conn->fifo) {
		struct p3_cci_tx *tx = p3_item(it, struct p3_cci_tx, fifo);
		bool is_rma = tx->op != P3_CCI_OP_MSG && !tx->is.data_done;
		if (moves && is_rma)
			p3_cci_op_renew(conn, tx);
		if (is_late(conn, tx) && (!ordered || tx == oldest(conn))) {
			end_late(n, conn, tx);
			ended = true;
		}
		if (ordered && (ended || !moves))
			break;
	}
	return ended;
}

static void check_operations(struct p3_nic *n, struct p3_cci_conn *conn)
{
	conn->tick++;
	if (!conn->timeout_us)
		return;
	if (end_all_late(n, conn) && conn->state == P3_CCI_READY)
		p3_cci_kick_conn(n, conn); /* others may have waited for it */
	if (oldest(conn))
		p3_cci_expire_start(n, conn);
}

static void on_time(struct p3_nic *n, struct p3_cci_timer *t)
{
	struct p3_cci_conn *conn = p3_item(t, struct p3_cci_conn, timer);
	if (conn->state == P3_CCI_READY)
		check_operations(n, conn);
	else if (conn->state == P3_CCI_ABSENT || conn->state == P3_CCI_REQUESTED ||
		 conn->state == P3_CCI_ASKED)
		p3_cci_op_set_up(n, conn, CCI_ETIMEDOUT);
}

/* An operation that began under the old time-out gets the whole new one. */
void p3_cci_expire_set_timeout(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t us)
{
	conn->timeout_us = us;
	if (conn->state != P3_CCI_READY)
		return;
	p3_list_each(it, &conn->fifo)
		p3_item(it, struct p3_cci_tx, fifo)->tick = conn->tick;
	p3_cci_timer_stop(n, &conn->timer);
	if (us && oldest(conn))
		p3_cci_expire_start(n, conn);
}

/* ---- retries ---- */

static void on_retry(struct p3_nic *n, struct p3_cci_timer *t)
{
	struct p3_cci_conn *conn = p3_item(t, struct p3_cci_conn, retry);
	if (conn->state == P3_CCI_READY) {
		p3_cci_retry_resume(n, conn);
	} else if (conn->state == P3_CCI_REQUESTED) {
		conn->todo |= P3_CCI_TODO_CONNECT;
		p3_cci_kick_conn(n, conn);
	} else if (conn->state == P3_CCI_ABSENT) {
		p3_cci_retry_absent(n, conn);
	}
}

/* ---- keepalives ---- */

static void start_alive(struct p3_nic *n, struct p3_cci_conn *conn)
{
	uint64_t ns = conn->alive_us * UINT64_C(1000);
	p3_cci_timer_start(n, &conn->alive, ns < P3_ALIVE_LEAST ? P3_ALIVE_LEAST : ns);
}

void p3_cci_expire_silence(struct p3_nic *n, struct p3_cci_conn *conn)
{
	union cci_event *e = &conn->silence.event;
	if (!conn->alive_us)
		return;
	if (conn->silence_out)
		p3_cci_item_drain(n, conn->ep);
	if (conn->silence_out) { /* the program has yet to return the last one */
		start_alive(n, conn);
		return;
	}
	p3_cci_timer_stop(n, &conn->alive);
	conn->alive_us = 0;
	conn->silence_out = true;
	e->keepalive.type = CCI_EVENT_KEEPALIVE_TIMEDOUT;
	e->keepalive.connection = &conn->pub;
	p3_cci_conn_ref(conn);
	p3_cci_event_post(n, &conn->silence);
}

static void on_alive(struct p3_nic *n, struct p3_cci_timer *t)
{
	struct p3_cci_conn *conn = p3_item(t, struct p3_cci_conn, alive);
	if (!conn->alive_us || conn->state == P3_CCI_CLOSED)
		return;
	if (conn->asked || conn->state != P3_CCI_READY) {
		p3_cci_expire_silence(n, conn);
		return;
	}
	conn->asked = true;
	conn->todo |= P3_CCI_TODO_ALIVE;
	start_alive(n, conn);
	p3_cci_kick_conn(n, conn);
}

void p3_cci_expire_set_alive(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t us)
{
	conn->alive_us = conn->pub.attribute == CCI_CONN_ATTR_UU ? 0 : us;
	p3_cci_timer_stop(n, &conn->alive);
	if (conn->alive_us && (conn->state == P3_CCI_READY || conn->state == P3_CCI_DEAD))
		start_alive(n, conn);
}

void p3_cci_expire_init(struct p3_cci_conn *conn)
{
	p3_cci_timer_init(&conn->timer, on_time);
	p3_cci_timer_init(&conn->retry, on_retry);
	p3_cci_timer_init(&conn->alive, on_alive);
}
