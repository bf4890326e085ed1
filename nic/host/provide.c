/* SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces and event queues: the host thread provides their memory. */
#include "nic/host/call.h"
#include "nic/obj/obj.h"
#include "shm/fault.h"

#include <stdlib.h>

static uint32_t power_of_two(ptl_size_t n)
{
	uint32_t p = 1;
	while (p < n)
		p *= 2;
	return p;
}

static void free_tables(struct p3_cmd *c)
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
	c.ni_open.nbuckets = power_of_two((ptl_size_t)limits->max_mes);
	c.ni_open.portals =
		calloc((size_t)limits->max_pt_index + 1, sizeof(struct p3_portal));
	c.ni_open.buckets = calloc(c.ni_open.nbuckets, sizeof(struct p3_bucket));
	c.ni_open.acs = calloc((size_t)limits->max_ac_index + 1, sizeof(struct p3_ac));
	int rc = PTL_NO_SPACE;
	if (c.ni_open.portals && c.ni_open.buckets && c.ni_open.acs)
		rc = p3_nic_do(n, &c);
	if (rc != PTL_OK) {
		free_tables(&c);
		return rc;
	}
	*handle_out = c.handle_out;
	return PTL_OK;
}

/* Append to the list dead those queues whose places could not be freed earlier, because
 * the NIC was closing.  Return the whole list. */
static struct p3_eq *with_unreclaimed(struct p3_nic *n, struct p3_eq *dead)
{
	struct p3_eq *last = dead;
	while (last->next_dead)
		last = last->next_dead;
	last->next_dead = p3_host_unreclaimed(n, NULL);
	return dead;
}

/*
 * Wait until the readers of dead queues have left, and free the queues' rings and places.
 * life is a value of n->life that was read while the rings were in use: rings of an
 * earlier life of the NIC are not freed, since their memory is gone.
 */
static void retire(struct p3_nic *n, struct p3_eq *dead, uint64_t life)
{
	struct p3_cmd c = {.op = P3_OP_EQ_RECLAIM};
	if (!dead)
		return;
	for (struct p3_eq *eq = dead; eq; eq = eq->next_dead) {
		p3_evq_retire(&eq->rx, p3_self_number());
		p3_host_ring_free(n, eq->tx.ring, eq->tx.rec, eq->n, life);
	}
	FAULT_POINT("queue.unreclaimed");
	c.eq.dead = with_unreclaimed(n, dead);
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
		retire(n, c.ni_open.dead, life);
		free_tables(&c);
	}
	p3_call_end(n);
	return rc;
}

static int eq_alloc(struct p3_nic *n, struct p3_cmd *c)
{
	uint64_t life = p3_get(&n->life);
	c->eq.ring = p3_host_ring(n, c->eq.n, &c->eq.rec, &c->eq.start);
	if (!c->eq.ring)
		return p3_get(&n->closing) ? PTL_NI_INVALID : PTL_NO_SPACE;
	int rc = p3_call_inside(n, c);
	if (rc != PTL_OK)
		p3_host_ring_free(n, c->eq.ring, c->eq.rec, c->eq.n, life);
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
	c.eq.n = power_of_two(count);
	p3_call_begin();
	int rc = eq_alloc(n, &c);
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
		retire(n, c.eq.dead, life);
	p3_call_end(n);
	return rc;
}
