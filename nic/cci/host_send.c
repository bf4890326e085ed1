/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends: the call of the program, and its wait. */
#include "nic/cci/call.h"
#include "nic/cci/host_wait.h"
#include "nic/cci/kick.h"
#include "nic/cci/lane.h"
#include "nic/cci/msg_tx.h"
#include "nic/cci/op.h"
#include "nic/host/brief.h"
#include "nic/run/pass.h"

#include <string.h>

static void send_now(struct p3_nic *n, void *arg)
{
	struct p3_cci_send *s = arg;
	p3_cci_msg_send(n, s);
	/* A program that only repeats its call must see buffers come back. */
	if (p3_unlikely(s->rc == CCI_ENOBUFS))
		(void)p3_pass_run(n);
}

/* ---- the straight path ---- */

/* Return true if the message is unreliable, and its bytes fit an open ring, before which
 * no other message waits. */
static P3_HOT bool is_plain(const struct p3_cci_send *s, uint32_t cells)
{
	const struct p3_cci_conn *conn = s->conn;
	if (p3_unlikely(conn->state != P3_CCI_READY ||
			conn->pub.attribute != CCI_CONN_ATTR_UU))
		return false;
	const struct p3_peer *p = conn->peer;
	return p3_likely(p3_list_empty(&conn->wait) && p3_cci_kick_is_free(p)) &&
	       p3_likely(p3_ring_runs(&p->req_out, cells)) &&
	       p3_likely(cells <= p3_cci_most_cells(p));
}

static P3_HOT void fill(struct p3_cell *c, const struct p3_cci_send *s)
{
	char *to = p3_format_bytes(c, P3_CCI_MSG_DATA);
	if (p3_likely(s->n == 1))
		memcpy(to, s->data->iov_base, s->len);
	else
		p3_cci_msg_gather(to, s->data, s->n);
	p3_format_set(c, P3_CCI_ROOM, p3_field_in(P3_CCI_MSG_LENGTH, s->len));
	p3_format_set(c, P3_CCI_TOKEN, 0);
	p3_format_set(c, P3_CCI_TAG, s->conn->peer_tag);
}

/* End a hold that has written to this peer, and most likely to no other one. */
static P3_HOT void leave_to(struct p3_nic *n, struct p3_peer *p)
{
	if (p3_unlikely(n->ntouched)) {
		p3_looks_add(n, p);
		p3_lease_leave(n);
	} else {
		bool posted = n->posted;
		n->posted = false;
		p3_lease_leave_to(n, p, posted);
	}
	p3_call_end(n);
}

/* Send the message if it is plain.  Return false if nothing was done. */
static P3_HOT bool send_straight(struct p3_nic *n, struct p3_cci_send *s)
{
	const bool quiet = s->flags & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING);
	uint32_t cells = p3_cci_cells(P3_CCI_MSG_HEAD, s->len);
	if (p3_unlikely(!p3_brief_enter(n)))
		return false;
	if (p3_unlikely(!is_plain(s, cells)))
		return p3_brief_turn_back(n);
	struct p3_cci_tx *tx =
		quiet ? NULL : p3_cci_msg_begin(n, s->conn, s->context, s->flags);
	if (p3_unlikely(!tx && !quiet))
		return p3_brief_turn_back(n);
	struct p3_peer *p = s->conn->peer;
	fill(p->req_out.next, s);
	FAULT_POINT("cci.request_filled");
	p3_ring_run(&p->req_out, p3_word0(P3_REQ_CCI_MSG, 0, cells), cells);
	FAULT_POINT("cci.request_published");
	if (cells > 1)
		p3_ring_run_more(&p->req_out, cells);
	p3_count(&n->count[P3_C_LEASE_HOST], 1);
	p3_count(&n->cci.count[P3_CCI_C_SENT], 1);
	if (tx)
		p3_cci_op_over(n, tx, CCI_SUCCESS);
	leave_to(n, p);
	s->rc = CCI_SUCCESS;
	return true;
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
	if (p3_likely(send_straight(nic, &s)))
		return s.rc;
	(void)p3_cci_call(nic, send_now, &s);
	if (p3_likely(!s.tx))
		return s.rc;
	return p3_cci_wait_for(nic, s.tx);
}
