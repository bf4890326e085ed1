/* SPDX-License-Identifier: BSD-3-Clause */
/* Dispatch of CCI's requests. */
#include "nic/cci/take.h"

#include "nic/cci/conn.h"
#include "nic/cci/lane.h"
#include "nic/cci/msg_rx.h"
#include "nic/cci/retry.h"
#include "nic/cci/rma_rx.h"
#include "nic/cci/setup.h"
#include "nic/report/report.h"

/* The peer has room again. */
static bool take_ready(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	struct p3_cci_conn *conn = p3_cci_conn_named(n, p3_format_get(c, P3_CCI_TAG));
	if (conn && conn->peer == p)
		p3_cci_retry_resume(n, conn);
	return true;
}

static bool take_alive(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	struct p3_cci_conn *conn = p3_cci_conn_named(n, p3_format_get(c, P3_CCI_TAG));
	if (p3_field_of(P3_CCI_ROOM, p3_format_get(c, P3_CCI_ROOM)) != 1)
		return false;
	p3_cci_answer(n, p, P3_REQ_CCI_ALIVE, p3_format_get(c, P3_CCI_TOKEN),
		conn && conn->peer == p ? P3_CCI_OK : P3_CCI_REFUSED, 0);
	return true;
}

/* Take the request.  Return NULL, or the reason why it cannot be right. */
static const char *take(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c,
	uint64_t w0, bool *waits_out)
{
	bool one = p3_word0_ncells(w0) == 1;
	switch (p3_word0_kind(w0)) {
	case P3_REQ_CCI_CONNECT:
		return p3_cci_setup_take_request(n, p, c, w0) ? NULL
							      : "a bad connect request";
	case P3_REQ_CCI_DECIDE:
		return one && p3_cci_setup_take_decision(n, p, c, w0)
			       ? NULL
			       : "a bad decision about a connection";
	case P3_REQ_CCI_READY:
		return one && take_ready(n, p, c) ? NULL : "a bad hint";
	case P3_REQ_CCI_ALIVE:
		return one && take_alive(n, p, c) ? NULL : "a bad keepalive";
	case P3_REQ_CCI_WRITE:
	case P3_REQ_CCI_READ:
		return p3_cci_rma_take(n, p, c, w0, waits_out) ? NULL
							       : "a bad RMA request";
	default:
		return "a request of no kind";
	}
}

bool p3_cci_take(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0)
{
	const char *why = NULL;
	bool waits = false;
	if (p3_likely(p3_word0_kind(w0) == P3_REQ_CCI_MSG)) {
		why = p3_cci_msg_take(n, p, c, w0) ? NULL : "a bad message";
	} else {
		P3_TRACE(take, n, p, p3_word0_kind(w0), 0);
		why = take(n, p, c, w0, &waits);
	}
	if (p3_unlikely(why != NULL)) {
		p3_peer_ignore(n, p, why);
		return false;
	}
	if (p3_unlikely(waits)) {
		P3_TRACE(wait, n, p, p3_word0_kind(w0));
		return false;
	}
	FAULT_POINT("cci.request_taken");
	p3_ring_take(&p->req_in, p3_word0_ncells(w0));
	n->worked = true;
	n->msgs++;
	return true;
}
