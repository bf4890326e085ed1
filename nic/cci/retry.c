/* SPDX-License-Identifier: BSD-3-Clause */
/* The marker of the send queue, retries, time-outs and keepalives. */
#include "nic/cci/internal.h"
#include "nic/proto/proto.h"

void p3_cci_sendq_kick(struct p3_nic *n, struct p3_peer *p)
{
	struct p3_link *marker = &p->cci_marker.link;
	if ((p->state != P3_LIVE && p->state != P3_EXPECTED) || !p3_list_empty(marker))
		return;
	p3_list_add(&p->queue, marker);
	p3_tx_push(n, p);
}

#define CCI_RETRY_LEAST_NS   100000u
#define CCI_RETRY_MOST_SHIFT 7u  /* 12.8 ms */
#define CCI_RETRY_FEED       32u /* most free descriptors before senders are told */

static uint64_t cci_retry_delay_ns(struct p3_cci_conn *conn)
{
	uint32_t shift = conn->refusals < CCI_RETRY_MOST_SHIFT ? conn->refusals
							       : CCI_RETRY_MOST_SHIFT;
	conn->refusals++;
	return (uint64_t)CCI_RETRY_LEAST_NS << shift;
}

/* ---- the sender ---- */

void p3_cci_retry_refused(struct p3_nic *n, struct p3_cci_tx *tx)
{
	struct p3_cci_conn *conn = tx->item.conn;
	p3_count(&n->count[P3_C_CCI_RNR_GOT], 1);
	tx->state = P3_CCI_TX_WAITS;
	tx->part = 0;
	p3_list_add(&conn->back, &tx->wait);
	conn->rnr = true;
	conn->probing = false;
	if (!conn->held)
		p3_cci_timer_start(n, &conn->retry, cci_retry_delay_ns(conn));
	conn->held = true;
	p3_cci_retry_answered(n, conn);
}

void p3_cci_retry_resume(struct p3_nic *n, struct p3_cci_conn *conn)
{
	if (!conn->held || conn->state != P3_CCI_READY)
		return;
	/* The answers to all messages behind the refused one come first. */
	conn->resumes = conn->nout != 0;
	if (conn->resumes)
		return;
	p3_cci_timer_stop(n, &conn->retry);
	p3_count(&n->count[P3_C_CCI_RETRIES], 1);
	/* Put the refused messages before those that were not sent yet.  The first of
	 * those may have been sent in part: the receiver forgets that part when another
	 * message begins. */
	if (!p3_list_empty(&conn->back) && !p3_list_empty(&conn->wait))
		p3_item(conn->wait.next, struct p3_cci_tx, wait)->part = 0;
	while (!p3_list_empty(&conn->back)) {
		struct p3_link *last = conn->back.prev;
		p3_list_del(last);
		p3_list_add(conn->wait.next, last);
	}
	conn->held = false;
	conn->probing = true;
	p3_cci_conn_kick(n, conn);
}

void p3_cci_retry_answered(struct p3_nic *n, struct p3_cci_conn *conn)
{
	if (conn->resumes && !conn->nout)
		p3_cci_retry_resume(n, conn);
}

void p3_cci_retry_connect(struct p3_nic *n, struct p3_cci_conn *conn)
{
	p3_count(&n->count[P3_C_CCI_RNR_GOT], 1);
	conn->data_sent = 0;
	p3_cci_timer_start(n, &conn->retry, cci_retry_delay_ns(conn));
}

void p3_cci_retry_absent(struct p3_nic *n, struct p3_cci_conn *conn)
{
	if (n->conf.ask)
		conn->question = p3_hold_ask(n);
	else
		p3_cci_conn_set_up(n, conn, CCI_ECONNREFUSED);
}

/* ---- the receiver ---- */

void p3_cci_retry_starve(struct p3_cci_conn *conn)
{
	struct p3_cci_endpoint *ep = conn->ep;
	if (!p3_list_empty(&conn->starving))
		return;
	p3_list_add(&ep->starved, &conn->starving);
	p3_set(&ep->starving, 1);
}

void p3_cci_retry_feed(struct p3_nic *n, void *endpoint)
{
	struct p3_cci_endpoint *ep = endpoint;
	p3_cci_desc_drain(n, ep);
	uint32_t most =
		ep->rx_count / 8 < CCI_RETRY_FEED ? ep->rx_count / 8 : CCI_RETRY_FEED;
	uint32_t left = p3_get(&ep->rx_left);
	if (!left || left < most)
		return;
	while (!p3_list_empty(&ep->starved)) {
		struct p3_cci_conn *conn =
			p3_item(ep->starved.next, struct p3_cci_conn, starving);
		p3_list_del(&conn->starving);
		conn->todo |= P3_CCI_TODO_READY;
		p3_cci_conn_kick(n, conn);
	}
	p3_set(&ep->starving, 0);
}

#define CCI_ALIVE_LEAST_NS 100000u

/* ---- time-outs of operations ---- */

static struct p3_cci_tx *cci_conn_oldest(const struct p3_cci_conn *conn)
{
	return p3_list_empty(&conn->fifo)
		       ? NULL
		       : p3_item(conn->fifo.next, struct p3_cci_tx, fifo);
}

/* Return true if data of the connection's RMA operations have moved since the last tick.
 * Of its reads of this node's memory, the peer tells the sum of the bytes. */
static bool cci_conn_rma_moves(struct p3_cci_conn *conn)
{
	uint64_t moved = p3_get(&conn->peer->theirs->pulled);
	if (!conn->rma_out)
		return false;
	p3_list_each(it, &conn->fifo) {
		const struct p3_cci_tx *tx = p3_item(it, struct p3_cci_tx, fifo);
		if (tx->rma && tx->rma->state == P3_PEND_PULLING)
			moved += tx->rma->xfer->pull.done - tx->rma->xfer->pull.end;
	}
	bool moves = moved != conn->moved;
	conn->moved = moved;
	return moves;
}

/* End the operations that are late.  On an RO connection the oldest one decides for all.
 * Else those behind an RMA operation, whose time may have begun anew, have their own. */
static bool cci_conn_end_late(struct p3_nic *n, struct p3_cci_conn *conn)
{
	bool moves = cci_conn_rma_moves(conn), ended = false;
	bool ordered = conn->pub.attribute == CCI_CONN_ATTR_RO;
	p3_list_each(it, &conn->fifo) {
		struct p3_cci_tx *tx = p3_item(it, struct p3_cci_tx, fifo);
		if (moves && tx->rma)
			p3_cci_tx_renew(conn, tx);
		/* The operation has had its time, which may not have begun. */
		bool late = (int32_t)(conn->tick - tx->tick) > (int32_t)P3_CCI_TICKS;
		if (late && (!ordered || tx == cci_conn_oldest(conn))) {
			cci_status_t status = conn->rnr ? CCI_ERR_RNR : CCI_ETIMEDOUT;
			ended = true;
			if (ordered) {
				p3_cci_conn_break(n, conn, status);
				break;
			}
			p3_cci_tx_end(n, tx, status);
		}
		if (ordered && !moves)
			break;
	}
	return ended;
}

static void cci_conn_on_time(struct p3_nic *n, struct p3_cci_timer *t)
{
	struct p3_cci_conn *conn = p3_item(t, struct p3_cci_conn, timer);
	if (conn->state == P3_CCI_ABSENT || conn->state == P3_CCI_REQUESTED ||
		conn->state == P3_CCI_ASKED)
		p3_cci_conn_set_up(n, conn, CCI_ETIMEDOUT);
	if (conn->state != P3_CCI_READY)
		return;
	conn->tick++;
	if (!conn->timeout_us)
		return;
	if (cci_conn_end_late(n, conn) && conn->state == P3_CCI_READY)
		p3_cci_conn_kick(n, conn); /* others may have waited for it */
	if (cci_conn_oldest(conn))
		p3_cci_expire_start(n, conn);
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
	if (us && cci_conn_oldest(conn))
		p3_cci_expire_start(n, conn);
}

/* ---- retries ---- */

static void cci_conn_on_retry(struct p3_nic *n, struct p3_cci_timer *t)
{
	struct p3_cci_conn *conn = p3_item(t, struct p3_cci_conn, retry);
	if (conn->state == P3_CCI_READY) {
		p3_cci_retry_resume(n, conn);
	} else if (conn->state == P3_CCI_REQUESTED) {
		conn->todo |= P3_CCI_TODO_CONNECT;
		p3_cci_conn_kick(n, conn);
	} else if (conn->state == P3_CCI_ABSENT) {
		p3_cci_retry_absent(n, conn);
	}
}

/* ---- keepalives ---- */

static void cci_alive_start(struct p3_nic *n, struct p3_cci_conn *conn)
{
	uint64_t ns = conn->alive_us * UINT64_C(1000);
	p3_cci_timer_start(
		n, &conn->alive, ns < CCI_ALIVE_LEAST_NS ? CCI_ALIVE_LEAST_NS : ns);
}

void p3_cci_expire_silence(struct p3_nic *n, struct p3_cci_conn *conn)
{
	union cci_event *e = &conn->silence.event;
	if (!conn->alive_us)
		return;
	if (conn->silence_out)
		p3_cci_desc_drain(n, conn->ep);
	if (conn->silence_out) { /* the program has yet to return the last one */
		cci_alive_start(n, conn);
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

static void cci_conn_on_alive(struct p3_nic *n, struct p3_cci_timer *t)
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
	cci_alive_start(n, conn);
	p3_cci_conn_kick(n, conn);
}

void p3_cci_expire_set_alive(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t us)
{
	conn->alive_us = conn->pub.attribute == CCI_CONN_ATTR_UU ? 0 : us;
	p3_cci_timer_stop(n, &conn->alive);
	if (conn->alive_us && (conn->state == P3_CCI_READY || conn->state == P3_CCI_DEAD))
		cci_alive_start(n, conn);
}

void p3_cci_expire_init(struct p3_cci_conn *conn)
{
	p3_cci_timer_init(&conn->timer, cci_conn_on_time);
	p3_cci_timer_init(&conn->retry, cci_conn_on_retry);
	p3_cci_timer_init(&conn->alive, cci_conn_on_alive);
}
