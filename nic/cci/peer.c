/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of the NIC, lost peers, and CCI's part of passes. */
#include "nic/cci/internal.h"

#include <string.h>

void p3_cci_reset(struct p3_nic *n)
{
	struct p3_cci *cci = &n->cci;
	memset(cci, 0, sizeof *cci);
	p3_list_init(&cci->soon);
	p3_list_init(&cci->late);
	p3_list_init(&cci->absent);
	cci->last = &cci->none;
	cci->next_gen = n->conf.incarnation >> 40; /* an old name seldom fits */
	cci->next_number = P3_CCI_SERVICE_MOST + 1 +
			   (uint32_t)n->conf.incarnation % (UINT32_C(1) << 30);
}

void p3_cci_reset_peer(struct p3_peer *p)
{
	p3_list_init(&p->cci.conns);
	p3_list_init(&p->cci.work);
	p3_list_init(&p->cci.rejects);
	p->cci.nconns = p->cci.asked = 0;
	p->cci.coming = NULL;
	p3_list_init(&p->cci_marker.link);
	p->cci_marker.peer = p;
}

/* ---- lost peers ---- */

/* No answer of the peer will come: operations that are over need not wait for it. */
static void cci_tx_lose(
	struct p3_nic *n, struct p3_cci_endpoint *ep, const struct p3_peer *p)
{
	for (uint32_t i = 0; i < ep->tx_fresh; i++) {
		struct p3_cci_tx *tx = &ep->tx[i];
		if (tx->state == P3_CCI_TX_FREE || !tx->is.in_flight ||
			tx->item.conn->peer != p)
			continue;
		tx->is.in_flight = false;
		p3_cci_tx_settle(n, tx);
	}
}

/* Drop the rejections of an endpoint that wait for this peer. */
static void cci_request_lose(struct p3_cci_endpoint *ep, const struct p3_peer *p)
{
	for (uint32_t i = 0; i < P3_CCI_REQUESTS; i++) {
		struct p3_cci_request *r = &ep->request[i];
		if (r->peer == p && r->state == P3_CCI_REQ_REJECTS)
			p3_cci_request_unlist(r);
	}
}

void p3_cci_peer_down(struct p3_nic *n, struct p3_peer *p)
{
	p3_list_del(&p->cci_marker.link);
	p3_cci_setup_forget(p);
	while (!p3_list_empty(&p->cci.conns)) {
		struct p3_cci_conn *conn =
			p3_item(p->cci.conns.next, struct p3_cci_conn, of_peer);
		p3_list_del(&conn->of_peer);
		p->cci.nconns--;
		p3_list_del(&conn->work);
		p3_list_del(&conn->starving);
		conn->todo = 0;
		switch (conn->state) {
		case P3_CCI_READY:
			p3_cci_msg_forget(conn);
			p3_cci_conn_break(n, conn, CCI_ERR_DISCONNECTED);
			p3_cci_expire_silence(n, conn);
			break;
		case P3_CCI_DEAD:
			p3_cci_expire_silence(n, conn);
			break;
		case P3_CCI_DECIDED:
			p3_cci_conn_set_up(n, conn, CCI_ERR_DISCONNECTED);
			break;
		default:
			p3_cci_conn_set_up(n, conn, CCI_ECONNREFUSED);
		}
	}
	for (uint32_t i = 0; i < n->cci.ends; i++) {
		if (!n->cci.ep[i])
			continue;
		cci_tx_lose(n, n->cci.ep[i], p);
		cci_request_lose(n->cci.ep[i], p);
	}
	for (struct p3_cci_endpoint *ep = n->cci.destroyed; ep; ep = ep->next)
		cci_request_lose(ep, p);
	p->cci.asked = 0;
}
