/* SPDX-License-Identifier: BSD-3-Clause */
/* The rest of a node. */
#include "model/net.h"

#include "nic/generic/upper.h"
#include "nic/obj/state.h"
#include "nic/run/lease.h"

#include <sched.h>

static bool hold(struct p3_nic *nic)
{
	return nic->generic ? p3_lease_enter_reserved(nic, P3_LEASE_HOST)
			    : p3_lease_enter(nic, P3_LEASE_HOST);
}

/* Return true if the host has no work, and the firmware has no command of it. */
static bool host_rests(const struct p3_generic *g)
{
	for (uint32_t i = 0; i < g->nupper; i++)
		if (g->upper[i].state != P3_UPPER_FREE ||
			g->upper[i].reply_state != P3_UPPER_FREE)
			return false;
	return p3_get(&g->staged) == p3_get(&g->handled);
}

/* Return true if the other hosts have all that this node has written.  A node that works
 * asks anew. */
static bool is_delivered(struct p3_nic *nic, bool works, uint32_t *call)
{
	if (!nic->conf.far)
		return true;
	if (works)
		*call = 0;
	else if (!*call)
		*call = p3_add32(&nic->settle, 1) + 1;
	return *call && p3_wires_have_settled(nic, *call);
}

bool rest_look(struct p3_nic *nic, uint32_t *asked)
{
	if (!hold(nic)) {
		p3_set(&nic->lease.want, 1);
		sched_yield();
		return false;
	}
	bool worked = p3_pass_run(nic);
	bool quiet = nic->table[P3_T_PENDING].live == 0 && p3_list_empty(&nic->pulls) &&
		     p3_list_empty(&nic->sources) &&
		     (!nic->generic || host_rests(nic->generic));
	quiet &= is_delivered(nic, worked, asked);
	p3_lease_leave(nic);
	if (nic->generic)
		p3_interrupt_raise(nic);
	return quiet && !worked;
}
