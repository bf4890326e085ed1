/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues: creation and removal. */
#include "nic/obj/eq.h"

#include "nic/obj/ni.h"
#include "nic/report/mirror.h"
#include "nic/report/why.h"

int p3_eq_alloc(struct p3_nic *n, struct p3_cmd *c)
{
	if (!p3_ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	int rc = p3_obj_room(n, P3_T_EQ, c->ni);
	if (rc != PTL_OK)
		return rc;
	struct p3_eq *eq = p3_obj_new(n, P3_T_EQ, c->ni);
	eq->n = c->eq.n;
	eq->owed = 0;
	p3_set(&eq->handler, c->eq.handler);
	p3_evq_format(c->eq.ring, c->eq.n, c->eq.start, &eq->tx, &eq->rx);
	eq->nic = n;
	eq->tx.on_lost = p3_why_lost;
	c->handle_out = p3_obj_next_name(&eq->o);
	eq->news = p3_news_of_queue(c->handle_out);
	p3_release(&eq->rx.name, c->handle_out); /* EVQ.5 */
	p3_obj_born(&eq->o);
	p3_mirror_queue(n, eq);
	return PTL_OK;
}

void p3_eq_kill(struct p3_nic *n, struct p3_eq *eq, struct p3_eq **dead)
{
	p3_ni_use_less(p3_ni_of(n, &eq->o), P3_U_EQ);
	eq->life++;
	p3_table_kill(&n->table[P3_T_EQ], &eq->o);
	p3_mirror_no_queue(n, eq);
	eq->next_dead = *dead;
	*dead = eq;
}

int p3_eq_free(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_eq *eq = p3_eq_named(n, c->handle);
	if (!eq)
		return PTL_EQ_INVALID;
	c->eq.dead = NULL;
	p3_eq_kill(n, eq, &c->eq.dead);
	n->posted |= eq->news; /* threads that wait for its events must look */
	return PTL_OK;
}

int p3_eq_reclaim(struct p3_nic *n, struct p3_cmd *c)
{
	for (struct p3_eq *eq = c->eq.dead, *next; eq; eq = next) {
		next = eq->next_dead;
		p3_table_reclaim(&n->table[P3_T_EQ], &eq->o);
	}
	return PTL_OK;
}
