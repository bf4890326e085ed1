/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that first end the operations on the objects that they remove. */
#include "nic/proto/proto.h"

#include "nic/generic/upper.h"
#include "nic/obj/obj.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"

#include <stdlib.h>

/* ---- descriptors that are unlinked while their puts wait for targets ---- */

/* The requests of one descriptor in a queue of requests that wait for their target. */
struct close_waiting {
	struct p3_link *first; /* the oldest request of the descriptor */
	uint32_t n;
};

/* Find requests of the descriptor in a queue, no more than most.  Search from the
 * newest one on, since a descriptor is often unlinked right behind its put, and stop at
 * the first request that is too long for a copy. */
static void close_find_waiting(struct p3_link *queue, const struct p3_md *md,
	uint32_t most, struct close_waiting *out)
{
	*out = (struct close_waiting){.first = queue};
	for (struct p3_link *it = queue->prev; it != queue && out->n < most;
		it = it->prev) {
		const struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (t->send.md != md)
			continue;
		if (!p3_pending_is_short(t))
			return;
		out->first = it;
		out->n++;
	}
}

/* Copy the bytes of all requests that close_find_waiting() found.  Return false if there
 * is no memory.  The last SEND_END may unlink the descriptor, so do not use it after
 * that. */
static bool close_take_over_waiting(
	struct p3_nic *n, const struct close_waiting *w, const struct p3_md *md)
{
	uint32_t left = w->n;
	for (struct p3_link *it = w->first; left; it = it->next) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (t->send.md != md)
			continue;
		if (!p3_pending_take_over(n, t))
			return false;
		left--;
	}
	return true;
}

/* Copy the bytes of the short puts that keep a descriptor in use because their targets
 * have yet to join, or their lanes have no room.  Return false if other operations keep
 * the descriptor in use, or there is no memory for a copy.  The last SEND_END may unlink
 * the descriptor: look its handle up again. */
static P3_RARE bool close_copy_waiting(struct p3_nic *n, struct p3_md *md)
{
	struct close_waiting absent, unresolved, w;
	close_find_waiting(&n->absent.queue, md, md->pending, &absent);
	close_find_waiting(&n->unresolved.queue, md, md->pending - absent.n, &unresolved);
	uint32_t queued = md->pending - absent.n - unresolved.n, left = queued;
	for (uint32_t i = 0; i < n->conf.nnodes && left; i++) {
		close_find_waiting(&n->peer[i].queue, md, left, &w);
		left -= w.n;
	}
	if (left)
		return false;
	n->posted = P3_NEWS_ALL;
	if (!close_take_over_waiting(n, &absent, md) ||
		!close_take_over_waiting(n, &unresolved, md))
		return false;
	for (uint32_t i = 0; i < n->conf.nnodes && queued; i++) {
		close_find_waiting(&n->peer[i].queue, md, queued, &w);
		if (!close_take_over_waiting(n, &w, md))
			return false;
		queued -= w.n;
	}
	return true;
}

int p3_close_me(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_me *me = p3_obj_named(n, P3_KIND_ME, c->handle);
	if (!me)
		return PTL_ME_INVALID;
	if (me->md && p3_unlikely(me->md->pending)) {
		if (!close_copy_waiting(n, me->md))
			return PTL_ME_IN_USE;
		me = p3_obj_named(n, P3_KIND_ME, c->handle);
		if (!me) /* close_copy_waiting() has unlinked it */
			return PTL_ME_INVALID;
	}
	p3_me_drop(n, me);
	return PTL_OK;
}

int p3_close_md(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_md *md = p3_md_named(n, c->handle);
	if (!md)
		return PTL_MD_INVALID;
	if (p3_unlikely(md->pending)) {
		if (!close_copy_waiting(n, md))
			return PTL_MD_IN_USE;
		md = p3_md_named(n, c->handle);
		if (!md) /* close_copy_waiting() has unlinked it */
			return PTL_MD_INVALID;
	}
	p3_me_drop_md(n, md);
	return PTL_OK;
}

/* ---- the end of an interface ---- */

/* Remove all objects of an interface.  Add its queues to dead: threads may still read
 * them, so p3_eq_reclaim() frees their places later. */
static void close_drop_objects(struct p3_nic *n, uint32_t ni, struct p3_eq **dead)
{
	struct p3_md *md;
	struct p3_me *me;
	struct p3_eq *eq;
	for (uint32_t at = 0; (me = p3_obj_next(&n->table[P3_T_ME], ni, &at));)
		p3_me_drop(n, me);
	for (uint32_t at = 0; (md = p3_obj_next(&n->table[P3_T_MD], ni, &at));)
		p3_md_remove(n, &n->ni[ni], md);
	for (uint32_t at = 0; (eq = p3_obj_next(&n->table[P3_T_EQ], ni, &at));)
		p3_eq_kill(n, eq, dead);
}

static void close_forget_pendings(struct p3_nic *n, struct p3_link *list, uint32_t ni)
{
	p3_list_each(it, list) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (!t->md || t->ni != ni)
			continue;
		if (t->xfer && !t->copy)
			p3_xfer_withdraw(n, t->xfer);
		if (t->send.md)
			p3_span_forget(&t->send);
		p3_ni_use_less(&n->ni[ni], P3_U_OP);
		t->md = NULL;
		if (t->peer == &n->absent)
			p3_hold_show_end(n, t);
		if (t->state == P3_PEND_QUEUED && !t->copy)
			p3_pending_free(n, t);
	}
}

int p3_close_ni(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t i = p3_handle_ni(c->handle);
	if (!p3_ni_is(n, i, c->handle))
		return PTL_NI_INVALID;
	struct p3_ni *ni = &n->ni[i];
	p3_release(&ni->gen, p3_get(&ni->gen) + 1); /* TABLE.2 */
	/* Forget the operations of the interface: touch no memory of the program, and
	 * post no event. */
	p3_xfer_forget(n, i);
	p3_generic_forget(n, i);
	close_forget_pendings(n, &n->unresolved.queue, i);
	close_forget_pendings(n, &n->absent.queue, i);
	for (uint32_t k = 0; k < n->conf.nnodes; k++) {
		close_forget_pendings(n, &n->peer[k].queue, i);
		close_forget_pendings(n, &n->peer[k].outstanding, i);
	}
	p3_prefetch_forget(n);
	p3_acl_cache_clear(n);
	c->ni_open.dead = NULL;
	close_drop_objects(n, i, &c->ni_open.dead);
	c->ni_open.portals = ni->portal;
	c->ni_open.buckets = ni->bucket;
	c->ni_open.acs = ni->ac;
	ni->portal = NULL;
	ni->bucket = NULL;
	ni->ac = NULL;
	n->posted = P3_NEWS_ALL;
	return PTL_OK;
}

static void close_forget_sends(struct p3_link *list)
{
	p3_list_each(it, list) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		if (t->send.md)
			p3_span_forget(&t->send);
	}
}

void p3_close_all(struct p3_nic *n)
{
	struct p3_cmd c = {.op = P3_OP_EQ_RECLAIM};
	c.eq.dead = NULL;
	/* Forget operations under way, which drops their references to iovec copies. */
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
	close_forget_sends(&n->unresolved.queue);
	close_forget_sends(&n->absent.queue);
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		close_forget_sends(&n->peer[i].queue);
		close_forget_sends(&n->peer[i].outstanding);
	}
	p3_generic_forget(n, P3_JOB_NIS);
	p3_prefetch_forget(n);
	for (uint32_t i = 0; i < P3_JOB_NIS; i++) {
		struct p3_ni *ni = &n->ni[i];
		uint32_t gen = p3_get(&ni->gen);
		p3_release(&ni->gen, gen + (gen & 1)); /* TABLE.2 */
		close_drop_objects(n, i, &c.eq.dead);
		free(ni->portal);
		free(ni->bucket);
		free(ni->ac);
		ni->portal = NULL;
		ni->bucket = NULL;
		ni->ac = NULL;
	}
	for (struct p3_eq *eq = c.eq.dead; eq; eq = eq->next_dead) {
		p3_evq_retire(&eq->rx, p3_self_number());
		p3_host_ring_free(n, eq->tx.ring, eq->tx.rec, eq->n, p3_get(&n->life));
	}
	(void)p3_eq_reclaim(n, &c);
}
