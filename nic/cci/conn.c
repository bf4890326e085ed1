/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of an endpoint, and their timers. */
#include "nic/cci/internal.h"
#include "nic/run/run.h"

#include <string.h>

static void cci_conn_init_item(
	struct p3_cci_item *item, struct p3_cci_conn *conn, uint8_t what)
{
	item->ep = conn->ep;
	item->conn = conn;
	item->what = what;
}

struct p3_cci_conn *p3_cci_conn_new(
	struct p3_nic *n, struct p3_cci_endpoint *ep, struct p3_peer *p)
{
	struct p3_link *list = &ep->conns_free;
	if (p3_list_empty(list) && ep->conn_fresh == P3_CCI_CONN_MOST)
		return NULL;
	struct p3_cci_conn *conn = &ep->conn[ep->conn_fresh];
	uint32_t number = ep->conn_fresh;
	if (p3_list_empty(list)) {
		ep->conn_fresh++;
	} else {
		conn = p3_item(list->next, struct p3_cci_conn, of_ep);
		number = conn->number;
		p3_list_del(&conn->of_ep);
	}
	memset(conn, 0, sizeof *conn);
	conn->number = number;
	conn->ep = ep;
	conn->peer = p;
	conn->pub.endpoint = &ep->pub;
	conn->pub.max_send_size = ep->mtu;
	conn->fate = CCI_SUCCESS;
	conn->timeout_us = ep->timeout_us;
	conn->alive_us = ep->alive_us;
	p3_list_init(&conn->of_ep);
	p3_list_init(&conn->of_peer);
	p3_list_init(&conn->work);
	p3_list_init(&conn->starving);
	p3_list_init(&conn->fifo);
	p3_list_init(&conn->wait);
	p3_list_init(&conn->back);
	p3_list_init(&conn->rma);
	cci_conn_init_item(&conn->setup, conn, P3_CCI_SETUP);
	cci_conn_init_item(&conn->silence, conn, P3_CCI_SILENCE);
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
}

/* ---- timers, in two lists in the order of their times ---- */

#define CCI_TIMER_SOON_NS  20000000u /* most timers of the same list take similar times */
#define CCI_TIMER_LOOKS    64u       /* passes between looks at the clock */
#define CCI_TIMER_LEAST_NS 20000u    /* shortest sleep */

void p3_cci_timer_init(
	struct p3_cci_timer *t, void (*fire)(struct p3_nic *n, struct p3_cci_timer *t))
{
	p3_list_init(&t->link);
	t->due_ns = 0;
	t->fire = fire;
}

static struct p3_cci_timer *cci_timer_first_of(struct p3_link *list)
{
	return p3_list_empty(list) ? NULL
				   : p3_item(list->next, struct p3_cci_timer, link);
}

static struct p3_cci_timer *cci_timer_first(struct p3_nic *n)
{
	struct p3_cci_timer *a = cci_timer_first_of(&n->cci.soon),
			    *b = cci_timer_first_of(&n->cci.late);
	return !a || (b && b->due_ns < a->due_ns) ? b : a;
}

/* Note the time of the first timer, and wake a thread that would sleep beyond it. */
static void cci_timer_note_first(struct p3_nic *n)
{
	const struct p3_cci_timer *t = cci_timer_first(n);
	uint64_t was = p3_get(&n->cci.due_ns), due = t ? t->due_ns : 0;
	if (due == was)
		return;
	p3_set(&n->cci.due_ns, due);
	if (due && (!was || due < was))
		p3_wake_self(n);
}

/* Out of line, since a send that finds the timer running must stay short. */
__attribute__((noinline)) void p3_cci_timer_start(
	struct p3_nic *n, struct p3_cci_timer *t, uint64_t ns)
{
	p3_list_del(&t->link);
	t->due_ns = p3_now_ns() + ns;
	struct p3_link *list = ns < CCI_TIMER_SOON_NS ? &n->cci.soon : &n->cci.late;
	struct p3_link *at = list->prev; /* most timers are due after all others */
	while (at != list && p3_item(at, struct p3_cci_timer, link)->due_ns > t->due_ns)
		at = at->prev;
	p3_list_add(at->next, &t->link);
	cci_timer_note_first(n);
}

void p3_cci_timer_stop(struct p3_nic *n, struct p3_cci_timer *t)
{
	if (!t->due_ns)
		return;
	p3_list_del(&t->link);
	t->due_ns = 0;
	cci_timer_note_first(n);
}

void p3_cci_timer_look_now(struct p3_nic *n)
{
	p3_set(&n->cci.napped, 0);
	if (p3_cci_timer_is_due(n))
		p3_odd_set(n, P3_ODD_CCI);
}

void p3_cci_timer_look_late(struct p3_nic *n)
{
	if (++n->cci.looks % CCI_TIMER_LOOKS == 0 || p3_get(&n->cci.napped))
		p3_cci_timer_look_now(n);
}

void p3_cci_timer_run(struct p3_nic *n)
{
	struct p3_cci_timer *t = cci_timer_first(n);
	if (!t)
		return;
	uint64_t now = p3_now_ns();
	for (; t && t->due_ns <= now; t = cci_timer_first(n)) {
		p3_list_del(&t->link);
		t->due_ns = 0;
		t->fire(n, t);
	}
	cci_timer_note_first(n);
}

uint64_t p3_cci_timer_nap(struct p3_nic *n, uint64_t ns)
{
	p3_set(&n->cci.napped, 1);
	uint64_t due = p3_get(&n->cci.due_ns), now = p3_now_ns();
	uint64_t left = due > now + CCI_TIMER_LEAST_NS ? due - now : CCI_TIMER_LEAST_NS;
	return due && left < ns ? left : ns;
}

void p3_cci_expire_start(struct p3_nic *n, struct p3_cci_conn *conn)
{
	uint64_t ns = conn->timeout_us * UINT64_C(1000) / P3_CCI_TICKS;
	p3_cci_timer_start(n, &conn->timer, ns < 100000 ? 100000 : ns);
}
