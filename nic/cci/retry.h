/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * retry - refused messages: receiver not ready
 *
 * A receiver without a free receive descriptor refuses reliable messages, and keeps
 * nothing.  The sender then holds the connection.  It goes on when the receiver says that
 * there is room again (READY), or, in case that hint is late or lost, when a timer
 * fires, after 100 us and then twice as long each time, 12.8 ms at most.  It sends one
 * message, and the others once that one was taken.
 *
 * On an RO connection the receiver refuses all messages behind the first refused one
 * until that comes again, and the sender sends them again in their order.
 *
 * Only the lease holder calls these functions.  The state is in the connection: held,
 * probing, back, retry; and in the endpoint: starved.
 */
#ifndef P3_NIC_CCI_RETRY_H
#define P3_NIC_CCI_RETRY_H

#include "nic/state.h"

/* Sender: the message was refused. */
void p3_cci_retry_refused(struct p3_nic *n, struct p3_cci_tx *tx);
/* Sender: the receiver has said that there is room again, or the timer has fired. */
void p3_cci_retry_resume(struct p3_nic *n, struct p3_cci_conn *conn);
/* Sender: the message was taken, or has failed. */
void p3_cci_retry_answered(struct p3_nic *n, struct p3_cci_conn *conn);
/* Sender: try the connect request again later. */
void p3_cci_retry_connect(struct p3_nic *n, struct p3_cci_conn *conn);
/* Client: the server's node is not known here, and may have joined.  Ask the job or the
 * domain for the news, as puts do. */
void p3_cci_retry_absent(struct p3_nic *n, struct p3_cci_conn *conn);

/* Receiver: a message of this connection was refused. */
void p3_cci_retry_starve(struct p3_cci_conn *conn);
/* Receiver: tell the senders that were refused if there is room again. */
void p3_cci_retry_feed(struct p3_nic *n, struct p3_cci_endpoint *ep);

#endif
