/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that first end the operations on the objects that they remove. */
#include "nic/proto/close.h"

#include "nic/match/ahead.h"
#include "nic/obj/eq.h"
#include "nic/obj/md.h"
#include "nic/obj/me.h"
#include "nic/obj/ni.h"
#include "nic/obj/span.h"
#include "nic/proto/tx.h"
#include "nic/run/self.h"

#include <stdlib.h>

int p3_fw_me_unlink(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_me *me = p3_fw_named(n, P3_KIND_ME, c->handle);
	if (!me)
		return PTL_ME_INVALID;
	if (me->md && p3_unlikely(me->md->pending)) {
		if (!p3_fw_let_go(n, me->md))
			return PTL_ME_IN_USE;
		me = p3_fw_named(n, P3_KIND_ME, c->handle); /* NULL if that unlinked it */
		if (!me)
			return PTL_ME_INVALID;
	}
	if (me->md)
		p3_md_remove(n, me->md);
	p3_me_remove(n, me);
	return PTL_OK;
}

int p3_fw_md_unlink(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md = p3_fw_named(n, P3_KIND_MD, c->handle);
	if (!md)
		return PTL_MD_INVALID;
	if (p3_unlikely(md->pending)) {
		if (!p3_fw_let_go(n, md))
			return PTL_MD_IN_USE;
		md = p3_fw_named(n, P3_KIND_MD, c->handle); /* NULL if that unlinked it */
		if (!md)
			return PTL_MD_INVALID;
	}
	p3_fw_md_drop(n, md);
	return PTL_OK;
}

/* ---- the end of an interface ---- */

/* Remove all objects of an interface.  Add its queues to dead: threads may still read
 * them, so p3_fw_eq_bury() frees their places later. */
static void drop_objects(struct p3_nic *n, uint32_t ni, struct p3_eq **dead)
{
	struct p3_md *md;
	struct p3_me *me;
	struct p3_eq *eq;
	for (uint32_t at = 0; (md = p3_obj_next(&n->table[P3_T_MD], ni, &at));)
		p3_md_remove(n, md);
	for (uint32_t at = 0; (me = p3_obj_next(&n->table[P3_T_ME], ni, &at));)
		p3_me_remove(n, me);
	for (uint32_t at = 0; (eq = p3_obj_next(&n->table[P3_T_EQ], ni, &at));)
		p3_eq_kill(n, eq, dead);
}

int p3_fw_ni_close(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t i = p3_handle_ni(c->handle);
	if (!p3_ni_is(n, i, c->handle))
		return PTL_NI_INVALID;
	struct p3_ni *ni = &n->ni[i];
	p3_release(&ni->gen, p3_get(&ni->gen) + 1); /* TABLE.2 */
	p3_fw_forget(n, i);
	p3_fw_look_no_more(n);
	c->ni_open.dead = NULL;
	drop_objects(n, i, &c->ni_open.dead);
	c->ni_open.portals = ni->portal;
	c->ni_open.buckets = ni->bucket;
	c->ni_open.acs = ni->ac;
	ni->portal = NULL;
	ni->bucket = NULL;
	ni->ac = NULL;
	n->posted = true;
	return PTL_OK;
}

static void forget_sends(struct p3_link *list)
{
	p3_list_each(it, list) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (t->send.md)
			p3_span_forget(&t->send);
	}
}

/* Forget operations under way when the NIC ends, which drops their references to iovec
 * copies. */
static void forget_spans(struct p3_nic *n)
{
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (pull->span.md)
			p3_span_forget(&pull->span);
	}
	p3_list_each(src, &n->sources) {
		struct p3_xfer_slot *x = p3_item(src, struct p3_xfer_slot, link);
		if (x->serving && x->span.md)
			p3_span_forget(&x->span);
	}
	forget_sends(&n->unresolved.queue);
	forget_sends(&n->absent.queue);
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		forget_sends(&n->peer[i].queue);
		forget_sends(&n->peer[i].outstanding);
	}
}

void p3_fw_drop_all(struct p3_nic *n)
{
	struct p3_cmd c = {.op = P3_OP_EQ_BURY};
	c.eq.dead = NULL;
	forget_spans(n);
	p3_fw_look_no_more(n);
	for (uint32_t i = 0; i < P3_JOB_NIS; i++) {
		struct p3_ni *ni = &n->ni[i];
		uint32_t gen = p3_get(&ni->gen);
		p3_release(&ni->gen, gen + (gen & 1)); /* TABLE.2 */
		drop_objects(n, i, &c.eq.dead);
		free(ni->portal);
		free(ni->bucket);
		free(ni->ac);
		ni->portal = NULL;
		ni->bucket = NULL;
		ni->ac = NULL;
	}
	for (struct p3_eq *eq = c.eq.dead; eq; eq = eq->next_dead)
		p3_evq_retire(&eq->rx, p3_this_thread());
	(void)p3_fw_eq_bury(n, &c);
}
