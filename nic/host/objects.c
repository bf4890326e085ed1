/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces, event queues, match entries and memory descriptors: their commands.
 *
 * The host thread provides the memory of interfaces and event queues.  A call that makes
 * or unlinks a match entry or a descriptor executes its command at once if the lease is
 * free, no other command waits, the table has room, and the command succeeds.  All other
 * commands, each error among them, go through p3_nic_do().
 */
#include "nic/host/call.h"
#include "nic/obj/obj.h"
#include "shm/fault.h"

#include <stdlib.h>
#include <string.h>

/* ---- entries and descriptors ---- */

/* End the hold of the lease.  Set *handle_out to the handle of the new object, or return
 * false if there is none. */
static P3_HOT bool obj_end_making(struct p3_nic *n, enum p3_op op,
	const struct p3_object *made, uint64_t *handle_out)
{
	if (p3_unlikely(!made)) {
		p3_trylease_turn_back(n);
		return false;
	}
	uint64_t handle = p3_get(&made->name);
	p3_trylease_leave(n, op);
	if (handle_out)
		*handle_out = handle;
	return true;
}

P3_HOT
bool p3_nic_me_attach(struct p3_nic *n, uint64_t ni_handle, const struct p3_cmd_me *what,
	uint64_t *handle_out)
{
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	struct p3_me *me = NULL;
	(void)p3_me_make(n, ni_handle, what, &me);
	return obj_end_making(n, P3_OP_ME_ATTACH, me ? &me->o : NULL, handle_out);
}

P3_HOT
bool p3_nic_memd_attach(struct p3_nic *n, uint64_t ni_handle,
	const struct p3_cmd_me *what, const ptl_md_t *md, bool unlink, uint64_t test_eq,
	uint64_t *handle_out, uint64_t *md_out)
{
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	struct p3_me *me = NULL;
	uint64_t md_handle = 0;
	if (p3_likely(p3_me_make_with_md(n, ni_handle, what, md, NULL, unlink, test_eq,
			      &me) == PTL_OK))
		md_handle = p3_get(&me->md->o.name);
	bool made = obj_end_making(n, P3_OP_ME_ATTACH, me ? &me->o : NULL, handle_out);
	if (made && md_out)
		*md_out = md_handle;
	return made;
}

P3_HOT
bool p3_nic_me_unlink(struct p3_nic *n, uint64_t handle)
{
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	struct p3_me *me = p3_me_named(n, handle);
	if (p3_unlikely(!me || (me->md && me->md->pending))) {
		p3_trylease_turn_back(n);
		return false;
	}
	p3_me_drop(n, me);
	p3_trylease_leave(n, P3_OP_ME_UNLINK);
	return true;
}

P3_HOT
bool p3_nic_md_attach(struct p3_nic *n, uint64_t me_handle, const ptl_md_t *what,
	bool unlink, uint64_t *handle_out)
{
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	struct p3_md *md = NULL;
	(void)p3_me_give_md(n, me_handle, what, NULL, unlink, &md);
	return obj_end_making(n, P3_OP_MD_ATTACH, md ? &md->o : NULL, handle_out);
}

P3_HOT
bool p3_nic_md_bind(struct p3_nic *n, uint64_t ni_handle, const ptl_md_t *what,
	bool unlink, uint64_t *handle_out)
{
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	uint32_t ni = p3_handle_ni(ni_handle);
	struct p3_md *md = NULL;
	if (p3_likely(p3_ni_is(n, ni, ni_handle)))
		(void)p3_md_make(n, ni, what, NULL, unlink, P3_NONE, &md);
	return obj_end_making(n, P3_OP_MD_BIND, md ? &md->o : NULL, handle_out);
}

P3_HOT
bool p3_nic_md_unlink(struct p3_nic *n, uint64_t handle)
{
	if (p3_unlikely(!p3_trylease_enter(n)))
		return false;
	struct p3_md *md = p3_md_named(n, handle);
	if (p3_unlikely(!md || md->pending)) {
		p3_trylease_turn_back(n);
		return false;
	}
	p3_me_drop_md(n, md);
	p3_trylease_leave(n, P3_OP_MD_UNLINK);
	return true;
}

/* ---- interfaces and event queues ---- */

static uint32_t obj_power_of_two(ptl_size_t n)
{
	uint32_t p = 1;
	while (p < n)
		p *= 2;
	return p;
}

static void ni_free_tables(struct p3_cmd *c)
{
	free(c->ni_open.portals);
	free(c->ni_open.buckets);
	free(c->ni_open.acs);
}

int p3_nic_ni_open(struct p3_nic *n, uint32_t ni, uint32_t pid, bool cray,
	const ptl_ni_limits_t *limits, uint64_t *handle_out)
{
	struct p3_cmd c = {.op = P3_OP_NI_OPEN, .ni = (uint16_t)ni};
	c.ni_open.pid = pid;
	c.ni_open.cray = cray;
	c.ni_open.limits = *limits;
	c.ni_open.nbuckets = obj_power_of_two((ptl_size_t)limits->max_mes);
	c.ni_open.portals =
		calloc((size_t)limits->max_pt_index + 1, sizeof(struct p3_portal));
	c.ni_open.buckets = calloc(c.ni_open.nbuckets, sizeof(struct p3_bucket));
	c.ni_open.acs = calloc((size_t)limits->max_ac_index + 1, sizeof(struct p3_ac));
	int rc = PTL_NO_SPACE;
	if (c.ni_open.portals && c.ni_open.buckets && c.ni_open.acs)
		rc = p3_nic_do(n, &c);
	if (rc != PTL_OK) {
		ni_free_tables(&c);
		return rc;
	}
	*handle_out = c.handle_out;
	return PTL_OK;
}

/*
 * Wait until the readers of dead queues have left, and free the queues' rings and places.
 * life is a value of n->life that was read while the rings were in use: rings of an
 * earlier life of the NIC are not freed, since their memory is gone.
 */
static void eq_retire(struct p3_nic *n, struct p3_eq *dead, uint64_t life)
{
	struct p3_cmd c = {.op = P3_OP_EQ_RECLAIM};
	struct p3_eq *last = dead;
	if (!dead)
		return;
	for (struct p3_eq *eq = dead; eq; eq = eq->next_dead) {
		last = eq;
		uint32_t evfd = p3_exchange32(&eq->evfd, 0);
		if (p3_unlikely(evfd) && life == p3_get(&n->life))
			p3_evfd_close(n, p3_evfd_numbered(n, evfd));
		p3_evq_retire(&eq->rx, p3_self_number());
		p3_host_ring_free(n, eq->tx.ring, eq->tx.rec, eq->n, life);
	}
	FAULT_POINT("queue.unreclaimed");
	/* Append the queues whose places could not be freed earlier, because the NIC was
	 * closing. */
	last->next_dead = p3_host_unreclaimed(n, NULL);
	c.eq.dead = dead;
	if (p3_call_inside(n, &c) != PTL_OK)
		(void)p3_host_unreclaimed(n, c.eq.dead);
}

int p3_nic_ni_close(struct p3_nic *n, uint64_t handle)
{
	struct p3_cmd c = {.op = P3_OP_NI_CLOSE, .handle = handle};
	uint64_t life = p3_get(&n->life);
	if (p3_self.inside)
		return PTL_NO_SPACE;
	p3_call_begin();
	int rc = p3_call_inside(n, &c);
	if (rc == PTL_OK) {
		eq_retire(n, c.ni_open.dead, life);
		ni_free_tables(&c);
	}
	p3_call_end(n);
	return rc;
}

int p3_nic_eq_alloc(struct p3_nic *n, uint64_t ni_handle, ptl_size_t count,
	ptl_eq_handler_t handler, uint64_t *handle_out)
{
	struct p3_cmd c = {.op = P3_OP_EQ_ALLOC,
		.ni = (uint16_t)p3_handle_ni(ni_handle),
		.handle = ni_handle};
	if (count > P3_EQ_MOST || p3_self.inside)
		return PTL_NO_SPACE;
	c.eq.handler = handler;
	c.eq.n = obj_power_of_two(count);
	p3_call_begin();
	uint64_t life = p3_get(&n->life);
	c.eq.ring = p3_host_ring(n, c.eq.n, &c.eq.rec, &c.eq.start);
	int rc = p3_get(&n->closing) ? PTL_NI_INVALID : PTL_NO_SPACE;
	if (c.eq.ring)
		rc = p3_call_inside(n, &c);
	if (c.eq.ring && rc != PTL_OK)
		p3_host_ring_free(n, c.eq.ring, c.eq.rec, c.eq.n, life);
	p3_call_end(n);
	if (rc == PTL_OK)
		*handle_out = c.handle_out;
	return rc;
}

int p3_nic_eq_free(struct p3_nic *n, uint64_t handle)
{
	struct p3_cmd c = {.op = P3_OP_EQ_FREE, .handle = handle};
	uint64_t life = p3_get(&n->life);
	if (p3_self.inside)
		return PTL_NO_SPACE;
	p3_call_begin();
	int rc = p3_call_inside(n, &c);
	if (rc == PTL_OK)
		eq_retire(n, c.eq.dead, life);
	p3_call_end(n);
	return rc;
}

/* Give the queue a descriptor, and return its slot, or that of the descriptor which it
 * has got meanwhile.  Return NULL and the code in *rc if there is none. */
static __attribute__((noinline)) struct p3_evfd *eq_watch(
	struct p3_nic *n, uint64_t handle, int *rc)
{
	struct p3_cmd c = {.op = P3_OP_EQ_WATCH, .handle = handle};
	struct p3_evfd *e = p3_evfd_open(n, handle, p3_news_of_queue(handle));
	*rc = PTL_NO_SPACE;
	if (!e)
		return NULL;
	const uint32_t slot = p3_evfd_number(n, e);
	c.flag = slot;
	FAULT_POINT("queue.watched");
	*rc = p3_call_inside(n, &c);
	if (*rc == PTL_OK && c.flag == slot)
		return e;
	p3_evfd_close(n, e);
	return *rc == PTL_OK ? p3_evfd_numbered(n, c.flag) : NULL;
}

int p3_nic_eq_descriptor(struct p3_nic *n, uint64_t handle, int *fd_out)
{
	int rc = PTL_OK, fd = -1;
	const struct p3_eq *eq = p3_eq_named(n, handle);
	if (!eq)
		return PTL_EQ_INVALID;
	if (p3_self.inside)
		return PTL_NO_SPACE;
	p3_call_begin();
	uint32_t has = p3_acquire(&eq->evfd); /* EVFD.1 */
	struct p3_evfd *e = has ? p3_evfd_numbered(n, has) : eq_watch(n, handle, &rc);
	if (e)
		fd = p3_evfd_renew(n, e, handle);
	p3_call_end(n);
	if (!p3_eq_named(n, handle))
		return PTL_EQ_INVALID;
	if (fd < 0)
		return rc == PTL_OK ? PTL_NO_SPACE : rc;
	*fd_out = fd;
	return PTL_OK;
}

/* ---- waits of libraries ---- */

int p3_nic_waits_for(struct p3_nic *n, uint64_t handle, const ptlx_wait_t *wait)
{
	struct p3_cmd c = {.op = P3_OP_WAITS_FOR, .handle = handle};
	if (!wait)
		return p3_nic_do(n, &c);
	uint64_t now = p3_now_ns(), silent = (uint64_t)wait->silent_ms * 1000000;
	c.poll = (struct p3_poll){
		.told_ns = now,
		.since_ns = silent < now ? now - silent : 1,
		.source = p3_pair(wait->source.pid, wait->source.nid),
		.tag = wait->tag,
		.ignore = wait->ignore,
		.receives = wait->receives,
		.unexpected = wait->unexpected,
		.from = p3_pair(wait->from.pid, wait->from.nid),
		.from_tag = wait->from_tag,
		.length = wait->length,
	};
	memcpy(c.poll.library, wait->library, strnlen(wait->library, P3_POLL_NAME - 1));
	return p3_nic_do(n, &c);
}
