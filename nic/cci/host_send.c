/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends: the call of the program, and its wait. */
#include "nic/cci/call.h"
#include "nic/cci/host_wait.h"
#include "nic/cci/msg_tx.h"
#include "nic/run/pass.h"

static void send_now(struct p3_nic *n, void *arg)
{
	struct p3_cci_send *s = arg;
	p3_cci_msg_send(n, s);
	/* A program that only repeats its call must see buffers come back. */
	if (p3_unlikely(s->rc == CCI_ENOBUFS))
		(void)p3_pass_run(n);
}

int p3_cci_send(cci_connection_t *connection, const struct iovec *data, uint32_t n,
	uint32_t len, void *context, int flags)
{
	struct p3_cci_conn *conn = (struct p3_cci_conn *)(uintptr_t)connection;
	struct p3_cci_send s = {.conn = conn,
		.data = data,
		.n = n,
		.len = len,
		.context = context,
		.flags = flags,
		.rc = CCI_ENOBUFS};
	struct p3_nic *nic = conn->ep->nic;
	(void)p3_cci_call(nic, send_now, &s);
	if (p3_likely(!s.tx))
		return s.rc;
	return p3_cci_wait_for(nic, s.tx);
}
