/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of connections. */
#include "nic/cci/conn.h"

#include "nic/cci/timer.h"

#include <string.h>

bool p3_cci_conn_add(struct p3_cci_endpoint *ep, struct p3_cci_conn *chunk)
{
	if (ep->nchunks == ep->chunks_most)
		return false;
	ep->chunk[ep->nchunks++] = chunk;
	for (uint32_t i = 0; i < P3_CCI_CHUNK; i++) {
		chunk[i].number = (ep->nchunks - 1) * P3_CCI_CHUNK + i;
		p3_list_add(&ep->conns_free, &chunk[i].of_ep);
	}
	return true;
}

static void init_item(struct p3_cci_item *item, struct p3_cci_conn *conn, uint8_t what)
{
	item->ep = conn->ep;
	item->conn = conn;
	item->what = what;
}

static void init_lists(struct p3_cci_conn *conn)
{
	p3_list_init(&conn->of_peer);
	p3_list_init(&conn->work);
	p3_list_init(&conn->starving);
	p3_list_init(&conn->fifo);
	p3_list_init(&conn->wait);
	p3_list_init(&conn->back);
	p3_list_init(&conn->rma);
}

struct p3_cci_conn *p3_cci_conn_new(
	struct p3_nic *n, struct p3_cci_endpoint *ep, struct p3_peer *p)
{
	struct p3_cci_conn *conn =
		p3_item(ep->conns_free.next, struct p3_cci_conn, of_ep);
	uint32_t number = conn->number;
	p3_list_del(&conn->of_ep);
	memset(conn, 0, sizeof *conn);
	conn->number = number;
	conn->ep = ep;
	conn->peer = p;
	conn->pub.endpoint = &ep->pub;
	conn->pub.max_send_size = ep->mtu;
	conn->fate = CCI_SUCCESS;
	conn->timeout_us = ep->timeout_us;
	conn->alive_us = ep->alive_us;
	init_lists(conn);
	init_item(&conn->setup, conn, P3_CCI_SETUP);
	init_item(&conn->silence, conn, P3_CCI_SILENCE);
	conn->tag = p3_cci_conn_new_name(n, ep, number);
	p3_list_add(&ep->conns, &conn->of_ep);
	p3_list_add(&p->cci.conns, &conn->of_peer);
	p->cci.nconns++;
	n->cci.nconns++;
	ep->nconns++;
	return conn;
}

void p3_cci_conn_settle(struct p3_nic *n, struct p3_cci_conn *conn)
{
	if (conn->refs || conn->ntx)
		return;
	conn->state = P3_CCI_FREE;
	p3_list_del(&conn->of_ep);
	p3_list_add(conn->ep->conns_free.next, &conn->of_ep);
	n->cci.nconns--;
	conn->ep->nconns--;
}

void p3_cci_conn_drop_data(struct p3_cci_conn *conn)
{
	struct p3_cci_blob *data = conn->data;
	if (!data)
		return;
	data->next = conn->ep->garbage;
	conn->ep->garbage = data;
	conn->data = NULL;
}

void p3_cci_conn_detach(struct p3_nic *n, struct p3_cci_conn *conn)
{
	conn->tag = 0;
	conn->todo = 0;
	p3_cci_timer_stop(n, &conn->timer);
	p3_cci_timer_stop(n, &conn->retry);
	p3_cci_timer_stop(n, &conn->alive);
	p3_list_del(&conn->work);
	p3_list_del(&conn->starving);
	if (!p3_list_empty(&conn->of_peer))
		conn->peer->cci.nconns--;
	p3_list_del(&conn->of_peer);
	p3_cci_conn_drop_data(conn);
}
