/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks that each pool of a NIC is full again. */
#include "nic/run/lease.h"
#include "support/pools.h"

#include "support/hold.h"

static const char *left_of_peer(const struct p3_nic *n, const struct p3_peer *p)
{
	if (!p3_list_empty(&p->queue) || !p3_list_empty(&p->outstanding) || p->nqueued ||
		p->nout)
		return "operations";
	if (p->rsp_used)
		return "reserved responses";
	if (p->npulls || p->own_pull.in_use || p->bulk || p->nreading)
		return "a pull";
	if (p->nxfer[0] || p->nxfer[1])
		return "transfer slots";
	return p->bad ? "no sense" : n->swapper == p ? "an exchange" : NULL;
}

static const char *left_of_tables(const struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->layout.nxfers; i++)
		if (n->xfer[i].in_use || p3_get(&n->xfer[i].pub->id))
			return "a transfer slot";
	for (uint32_t i = 0; i < P3_PULLS; i++)
		if (n->pull[i].in_use)
			return "a shared pull";
	if (n->window_free != (1u << n->windows) - 1)
		return "a window";
	if (n->table[P3_T_PENDING].live)
		return "a pending";
	return n->ni[0].use[P3_U_OP].cur ? "an operation" : NULL;
}

const char *pools_left(struct p3_nic *n, unsigned *of)
{
	const char *what = NULL;
	nic_hold(n);
	*of = n->conf.node;
	for (unsigned r = 0; r < n->conf.nnodes && !what; r++)
		what = left_of_peer(n, &n->peer[ *of = r]);
	if (!what)
		what = left_of_tables(n);
	(void)p3_pass_run(n);
	p3_lease_leave(n);
	return what;
}
