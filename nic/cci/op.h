/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * op - sends and RMA operations from their begin to their end
 *
 * An operation is in its connection's FIFO until it is complete.  On an RO connection an
 * operation that is done waits there for those before it, so the SEND events come in the
 * order of the calls.
 *
 * Only the lease holder calls these functions.  The state is the connection's lists.
 */
#ifndef P3_NIC_CCI_OP_H
#define P3_NIC_CCI_OP_H

#include "nic/cci/event.h"
#include "nic/state.h"

#define P3_CCI_TICKS 16u /* of a connection's timer in the length of its time-out */

/* Return the time from a tick of the connection's timer to the next. */
static inline uint64_t p3_cci_op_tick_ns(const struct p3_cci_conn *conn)
{
	uint64_t ns = conn->timeout_us * UINT64_C(1000) / P3_CCI_TICKS;
	return ns < 100000 ? 100000 : ns;
}

/* The request of an RMA operation enters the lane, or its data move, or are in place: its
 * time begins anew. */
static inline void p3_cci_op_renew(const struct p3_cci_conn *conn, struct p3_cci_tx *tx)
{
	tx->tick = conn->tick;
}

/* Post the SEND event of an operation, whose context is set. */
static P3_HOT void p3_cci_op_post(
	struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status)
{
	union cci_event *e = &tx->item.event;
	e->send.type = CCI_EVENT_SEND;
	e->send.status = status;
	e->send.connection = &tx->item.conn->pub;
	p3_cci_event_post(n, &tx->item);
}

/* End an operation that is in its connection's FIFO. */
void p3_cci_op_end(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status);
/* End an operation that is in no list. */
void p3_cci_op_over(struct p3_nic *n, struct p3_cci_tx *tx, cci_status_t status);
/* End the operations at the front of the FIFO that are done. */
void p3_cci_op_end_done(struct p3_nic *n, struct p3_cci_conn *conn);
/* End all operations of a connection, in their order. */
void p3_cci_op_end_all(struct p3_nic *n, struct p3_cci_conn *conn, cci_status_t status);
/* The connection does not carry messages any more: end its operations, and let further
 * ones end with the same status. */
void p3_cci_op_break(struct p3_nic *n, struct p3_cci_conn *conn, cci_status_t status);
/* Post CONNECT or ACCEPT.  A connection whose status is not CCI_SUCCESS is closed. */
void p3_cci_op_set_up(struct p3_nic *n, struct p3_cci_conn *conn, cci_status_t status);

#endif
