/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers from the side of host threads: their births, ends and ids. */
#include "nic/state.h"
#include "shm/fault.h"

#include <errno.h>
#include <stdlib.h>

int p3_nic_peer_up(struct p3_nic *n, struct p3_peer_info *info)
{
	if (info->node >= n->conf.nnodes)
		return -EPROTO;
	const struct p3_wire *wire = n->peer[info->node].wire;
	int rc = wire->map(n, info);
	FAULT_POINT("peer.mapped");
	struct p3_cmd c = {.op = P3_OP_PEER_UP, .peer = info};
	if (!rc)
		rc = p3_nic_do(n, &c);
	if (rc)
		wire->unmap(info);
	return rc;
}

void p3_nic_peer_expect(struct p3_nic *n, struct p3_peer_info *info)
{
	struct p3_cmd c = {.op = P3_OP_PEER_UP, .peer = info};
	info->base = NULL;
	if (info->node < n->conf.nnodes)
		(void)p3_nic_do(n, &c);
}

void p3_nic_peer_pids(struct p3_nic *n, struct p3_peer_info *info)
{
	struct p3_cmd c = {.op = P3_OP_PEER_PIDS, .peer = info};
	if (info->node < n->conf.nnodes)
		(void)p3_nic_do(n, &c);
}

void p3_nic_peer_heard(struct p3_nic *n, uint32_t node, uint64_t at)
{
	p3_set(&n->peer[node].shown->shown_heard, at);
}

void p3_nic_peer_told(struct p3_nic *n, uint32_t question, const uint64_t *coming)
{
	struct p3_cmd c = {.op = P3_OP_PEER_TOLD, .handle = question, .coming = coming};
	(void)p3_nic_do(n, &c);
}

bool p3_nic_peer_down(struct p3_nic *n, struct p3_peer_info *info)
{
	struct p3_cmd c = {.op = P3_OP_PEER_DOWN, .peer = info};
	int rc = info->node < n->conf.nnodes ? p3_nic_do(n, &c) : -EPROTO;
	if (!rc && info->base)
		n->peer[info->node].wire->unmap(info);
	return rc != -EAGAIN;
}

void p3_nic_peer_over(struct p3_nic *n, struct p3_peer_info *info)
{
	struct p3_cmd c = {.op = P3_OP_PEER_OVER, .peer = info};
	if (info->node < n->conf.nnodes)
		(void)p3_nic_do(n, &c);
}

void p3_nic_held(struct p3_nic *n, struct p3_on_hold *held_out)
{
	struct p3_cmd c = {.op = P3_OP_HELD};
	(void)p3_nic_do(n, &c);
	*held_out = c.held;
}

void p3_nic_list(struct p3_nic *n, struct p3_listed *listed)
{
	struct p3_cmd c = {.op = P3_OP_LIST, .listed = listed};
	(void)p3_nic_do(n, &c);
	free(c.listed);
}
