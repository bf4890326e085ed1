/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of operations and of connections. */
#include "nic/cci/op.h"

#include "nic/cci/conn.h"
#include "nic/cci/event.h"
#include "nic/cci/item.h"

void p3_cci_op_over(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status)
{
	tx->status = status;
	tx->state = P3_CCI_TX_OVER;
	p3_cci_item_slot_free(tx);
	if (tx->is.awaited) {
		n->posted |= P3_NEWS_RESULT;
		p3_release(&tx->done, (uint32_t)status + 1); /* CCIQ.2 */
		return;
	}
	if (!tx->is.silent) {
		p3_cci_op_post(n, tx, status);
		return;
	}
	tx->is.returned = true;
	p3_cci_item_tx_over(n, tx);
}

void p3_cci_op_end_done(struct p3_nic *n, struct p3_cci_conn *conn)
{
	while (!p3_list_empty(&conn->fifo)) {
		struct p3_cci_tx *tx = p3_item(conn->fifo.next, struct p3_cci_tx, fifo);
		if (tx->state != P3_CCI_TX_DONE)
			return;
		p3_list_del(&tx->fifo);
		p3_cci_op_over(n, tx, tx->status);
	}
}

void p3_cci_op_end(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status)
{
	struct p3_cci_conn *conn = tx->item.conn;
	p3_list_del(&tx->wait);
	p3_list_del(&tx->rma);
	if (conn->pub.attribute != CCI_CONN_ATTR_RO) {
		p3_list_del(&tx->fifo);
		p3_cci_op_over(n, tx, status);
		return;
	}
	if (tx->state == P3_CCI_TX_DONE)
		return;
	tx->status = status;
	tx->state = P3_CCI_TX_DONE;
	if (conn->fifo.next == &tx->fifo)
		p3_cci_op_end_done(n, conn);
}

/* On RO the operations behind one that fails fail, too, also those whose answers came
 * before: the program learns what is certain by the first failure. */
static void fail_done(struct p3_cci_conn *conn, cci_status_t status)
{
	p3_list_each(it, &conn->fifo) {
		struct p3_cci_tx *tx = p3_item(it, struct p3_cci_tx, fifo);
		if (tx->state == P3_CCI_TX_DONE && tx->status == CCI_SUCCESS)
			tx->status = status;
	}
}

void p3_cci_op_end_all(struct p3_nic *n, struct p3_cci_conn *conn, cci_status_t status)
{
	bool unreliable = conn->pub.attribute == CCI_CONN_ATTR_UU;
	fail_done(conn, status);
	conn->ntx++; /* keeps the connection until all are over */
	while (!p3_list_empty(&conn->fifo))
		p3_cci_op_end(n, p3_item(conn->fifo.next, struct p3_cci_tx, fifo),
			unreliable ? CCI_SUCCESS : status);
	conn->ntx--;
}

void p3_cci_op_break(struct p3_nic *n, struct p3_cci_conn *conn, cci_status_t status)
{
	conn->state = P3_CCI_DEAD;
	conn->fate = status;
	conn->held = conn->probing = conn->resumes = false;
	p3_cci_op_end_all(n, conn, status);
}

void p3_cci_op_set_up(struct p3_nic *n, struct p3_cci_conn *conn, cci_status_t status)
{
	union cci_event *e = &conn->setup.event;
	bool ok = status == CCI_SUCCESS;
	e->connect.type = conn->client ? CCI_EVENT_CONNECT : CCI_EVENT_ACCEPT;
	e->connect.status = status;
	e->connect.context = conn->pub.context;
	e->connect.connection = ok ? &conn->pub : NULL;
	if (!ok) {
		conn->state = P3_CCI_CLOSED;
		p3_set(&conn->closed, 1);
		p3_cci_conn_detach(n, conn);
	}
	p3_cci_conn_ref(conn);
	p3_cci_event_post(n, &conn->setup);
}
