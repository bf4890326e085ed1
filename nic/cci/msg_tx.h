/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msg_tx - sends of this node
 *
 * An unreliable message that finds room leaves at once, from the program's memory.  A
 * reliable one is copied first, since its target may refuse it.
 *
 * Only the lease holder calls this function.
 */
#ifndef P3_NIC_CCI_MSG_TX_H
#define P3_NIC_CCI_MSG_TX_H

#include "nic/state.h"

/* The arguments of cci_sendv(). */
struct p3_cci_send {
	struct p3_cci_conn *conn;
	const struct iovec *data;
	uint32_t n;
	uint32_t len;
	void *context;
	int flags;
	struct p3_cci_tx *tx; /* out: BLOCKING: the operation to wait for, or NULL */
	int rc;               /* out */
};

void p3_cci_msg_send(struct p3_nic *n, struct p3_cci_send *s);

/* Return an operation of the connection with the context and the flags of its call, in
 * no list, or NULL. */
struct p3_cci_tx *p3_cci_msg_begin(
	struct p3_nic *n, struct p3_cci_conn *conn, void *context, int flags);
/* Copy the pieces of a message to one place. */
void p3_cci_msg_gather(char *to, const struct iovec *data, uint32_t n);
/* Keep the bytes of a message in the operation.  Return false if there is no slot. */
bool p3_cci_msg_keep(struct p3_cci_tx *tx, const struct iovec *data, uint32_t n,
	uint32_t len, int flags);
/* Free an operation that did not begin. */
void p3_cci_msg_give_up(struct p3_nic *n, struct p3_cci_tx *tx);
/* End an operation that cannot begin, since its connection is dead.  Return the status
 * of the call. */
int p3_cci_msg_too_late(struct p3_nic *n, struct p3_cci_tx *tx, int flags);

#endif
