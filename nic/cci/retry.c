/* SPDX-License-Identifier: BSD-3-Clause */
/* Refused messages: the sender's retry, the receiver's hints. */
#include "nic/cci/retry.h"

#include "nic/cci/item.h"
#include "nic/cci/kick.h"
#include "nic/cci/op.h"
#include "nic/cci/timer.h"
#include "nic/proto/proto.h"

#define P3_LEAST_NS   100000u
#define P3_MOST_SHIFT 7u  /* 12.8 ms */
#define P3_FEED       32u /* free descriptors before the senders are told, at most */

static uint64_t delay_ns(struct p3_cci_conn *conn)
{
	uint32_t shift = conn->refusals < P3_MOST_SHIFT ? conn->refusals : P3_MOST_SHIFT;
	conn->refusals++;
	return (uint64_t)P3_LEAST_NS << shift;
}

/* ---- the sender ---- */

void p3_cci_retry_refused(struct p3_nic *n, struct p3_cci_tx *tx)
{
	struct p3_cci_conn *conn = tx->item.conn;
	p3_count(&n->cci.count[P3_CCI_C_RNR_GOT], 1);
	tx->state = P3_CCI_TX_WAITS;
	tx->part = 0;
	p3_list_add(&conn->back, &tx->wait);
	conn->rnr = true;
	conn->probing = false;
	if (!conn->held)
		p3_cci_timer_start(n, &conn->retry, delay_ns(conn));
	conn->held = true;
	p3_cci_retry_answered(n, conn);
}

/* Put the refused messages before those that were not sent yet.  The first of those may
 * have been sent in part: the receiver forgets that part when another message begins. */
static void put_back(struct p3_cci_conn *conn)
{
	if (!p3_list_empty(&conn->back) && !p3_list_empty(&conn->wait))
		p3_item(conn->wait.next, struct p3_cci_tx, wait)->part = 0;
	while (!p3_list_empty(&conn->back)) {
		struct p3_link *last = conn->back.prev;
		p3_list_del(last);
		p3_list_add(conn->wait.next, last);
	}
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
	p3_count(&n->cci.count[P3_CCI_C_RETRIES], 1);
	put_back(conn);
	conn->held = false;
	conn->probing = true;
	p3_cci_kick_conn(n, conn);
}

void p3_cci_retry_answered(struct p3_nic *n, struct p3_cci_conn *conn)
{
	if (conn->resumes && !conn->nout)
		p3_cci_retry_resume(n, conn);
}

void p3_cci_retry_connect(struct p3_nic *n, struct p3_cci_conn *conn)
{
	p3_count(&n->cci.count[P3_CCI_C_RNR_GOT], 1);
	conn->data_sent = 0;
	p3_cci_timer_start(n, &conn->retry, delay_ns(conn));
}

void p3_cci_retry_absent(struct p3_nic *n, struct p3_cci_conn *conn)
{
	if (n->conf.ask)
		conn->question = p3_hold_ask(n);
	else
		p3_cci_op_set_up(n, conn, CCI_ECONNREFUSED);
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

void p3_cci_retry_feed(struct p3_nic *n, struct p3_cci_endpoint *ep)
{
	p3_cci_item_drain(n, ep);
	uint32_t most = ep->rx_count / 8 < P3_FEED ? ep->rx_count / 8 : P3_FEED;
	uint32_t left = p3_get(&ep->rx_left);
	if (!left || left < most)
		return;
	while (!p3_list_empty(&ep->starved)) {
		struct p3_cci_conn *conn =
			p3_item(ep->starved.next, struct p3_cci_conn, starving);
		p3_list_del(&conn->starving);
		conn->todo |= P3_CCI_TODO_READY;
		p3_cci_kick_conn(n, conn);
	}
	p3_set(&ep->starving, 0);
}
