/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of nodes: the bits that each pair of them has, and the view for lookers. */
#include "launcher/rdv/table.h"
#include "launcher/clock.h"

#include <string.h>
#include <unistd.h>

void p3_rdv_close_fds(int *fds, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		if (fds[k] >= 0)
			close(fds[k]);
		fds[k] = -1;
	}
}

bool p3_rdv_has_met(const struct p3_rdv_node *n, uint32_t about)
{
	return n->met[about / 64] >> about % 64 & 1;
}

void p3_rdv_set_met(struct p3_rdv_node *n, uint32_t about, bool met)
{
	uint64_t bit = UINT64_C(1) << about % 64;
	n->met[about / 64] = met ? n->met[about / 64] | bit : n->met[about / 64] & ~bit;
}

void p3_rdv_owe(struct p3_rdv_node *dead, uint32_t by)
{
	dead->owed[by / 64] |= UINT64_C(1) << by % 64;
	dead->owed_n++;
}

void p3_rdv_owe_no_more(struct p3_rdv_node *dead, uint32_t by)
{
	uint64_t bit = UINT64_C(1) << by % 64;
	if (!(dead->owed[by / 64] & bit))
		return;
	dead->owed[by / 64] &= ~bit;
	dead->owed_n--;
}

void p3_rdv_owe_nothing(struct p3_rdv *r, struct p3_rdv_node *dead)
{
	memset(dead->owed, 0, (r->conf.size + 63) / 64 * sizeof *dead->owed);
	dead->owed_n = 0;
	dead->reap_at = P3_NEVER;
}

void p3_rdv_node_owes_nobody(struct p3_rdv *r, uint32_t i)
{
	for (uint32_t d = 0; d < r->conf.size; d++)
		p3_rdv_owe_no_more(&r->node[d], i);
}

bool p3_rdv_is_part(const struct p3_rdv *r)
{
	return r->conf.here > 0;
}

bool p3_rdv_on_hosts(const struct p3_rdv *r)
{
	return p3_rdv_is_part(r) && r->conf.hosts >= 0;
}

bool p3_rdv_listens(const struct p3_rdv_node *n)
{
	return n->state == NODE_JOINED && n->sock >= 0;
}

bool p3_rdv_may_reap(const struct p3_rdv *r, uint32_t i)
{
	return i >= r->conf.size || !r->node[i].owed_n;
}

uint32_t p3_rdv_joined(const struct p3_rdv *r)
{
	return r->joined_n;
}

uint32_t p3_rdv_barrier(const struct p3_rdv *r, int64_t *since_out)
{
	*since_out = r->barrier_since;
	return r->waits_n;
}

uint32_t p3_rdv_queued(const struct p3_rdv *r, uint32_t i)
{
	return i < r->conf.size ? r->node[i].out.n : 0;
}

void p3_rdv_show(const struct p3_rdv *r, uint32_t i, struct p3_rdv_view *out)
{
	const struct p3_rdv_node *n = &r->node[i];
	bool elsewhere = r->conf.here && i - r->conf.first >= r->conf.here;
	*out = (struct p3_rdv_view){.state = elsewhere ? P3_RDV_ELSEWHERE : n->was,
		.inited = n->state == NODE_KNOWN || n->state == NODE_JOINED,
		.ended = n->ended,
		.status = n->status,
		.barrier_n = n->waits ? r->waits_n : 0,
		.barrier_since = n->waits_since,
		.os_pid = n->owner,
		.nid = r->conf.nid_base + i,
		.pid = {n->pid[0], n->pid[1]},
		.incarnation = n->incarnation,
		.layout = r->conf.layout,
		.seg_len = n->seg_len,
		.published = n->fds[FD_PUBLISHED],
		.host = n->fds[FD_HOST]};
}
