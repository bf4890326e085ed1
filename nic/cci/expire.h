/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * expire - the ends of a connection's timers: time-outs, retries, keepalives
 *
 * The time-out of operations needs no clock in a send: while a connection has operations,
 * its timer fires 16 times in the length of the time-out, and counts; an operation is
 * late when the timer has fired 17 times since the operation began.
 *
 * Only the lease holder calls these functions.
 */
#ifndef P3_NIC_CCI_EXPIRE_H
#define P3_NIC_CCI_EXPIRE_H

#include "nic/cci/timer.h"

/* Set up the timers of a new connection. */
void p3_cci_expire_init(struct p3_cci_conn *conn);
void p3_cci_expire_start(struct p3_nic *n, struct p3_cci_conn *conn);
/* Watch the time of the connection's operations. */
static inline void p3_cci_expire_watch(struct p3_nic *n, struct p3_cci_conn *conn)
{
	if (p3_unlikely(!p3_cci_timer_runs(&conn->timer) && conn->timeout_us))
		p3_cci_expire_start(n, conn);
}

/* Change the time-out of operations, or the period of keepalives. */
void p3_cci_expire_set_timeout(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t us);
void p3_cci_expire_set_alive(struct p3_nic *n, struct p3_cci_conn *conn, uint32_t us);
/* The peer is gone: report that at once if keepalives are on. */
void p3_cci_expire_silence(struct p3_nic *n, struct p3_cci_conn *conn);

#endif
