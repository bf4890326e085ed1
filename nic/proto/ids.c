/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search for the peer that has a process id.
 *
 * Without a domain, the nid of node i is the first nid of the job plus i.  In a domain,
 * where peers have any ids, a hash table finds them: open addressing, at most half full,
 * rebuilt when a peer comes or changes its ids.
 */
#include "nic/proto/ids.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int p3_ids_make(struct p3_nic *n)
{
	uint32_t places = 4;
	n->first_nid = n->conf.nid - n->conf.node;
	n->nids = n->conf.nnodes;
	n->ids = NULL;
	n->latest = (struct p3_id){.peer = &n->absent};
	if (!n->conf.domain)
		return 0;
	while (places < 2 * P3_JOB_NIS * n->conf.nnodes)
		places *= 2;
	n->ids = calloc(1, sizeof *n->ids + places * sizeof n->ids->at[0]);
	if (!n->ids)
		return -ENOMEM;
	n->ids->mask = places - 1;
	n->nids = 0;
	return 0;
}

void p3_ids_drop(struct p3_nic *n)
{
	free(n->ids);
	free(n->listed);
	n->ids = NULL;
	n->listed = NULL;
}

/* Add a peer's ids to the table.  An id that another peer has already stays with that
 * peer. */
static void put(struct p3_ids *ids, struct p3_peer *p)
{
	for (int i = 0; i < P3_JOB_NIS; i++) {
		uint64_t key = p3_pair(p->pid[i], p->nid);
		struct p3_id *at = p3_ids_place(ids, key);
		if (p->pid[i] == P3_JOB_NO_PID || at->peer)
			continue;
		*at = (struct p3_id){key, p};
	}
}

static bool is_here(const struct p3_peer *p)
{
	return p->state == P3_LIVE || p->state == P3_EXPECTED;
}

/* Rebuild the table; the ids of dead peers stay until another peer has them. */
void p3_ids_renew(struct p3_nic *n)
{
	n->latest = (struct p3_id){.peer = &n->absent};
	if (!n->ids)
		return;
	memset(n->ids->at, 0, (n->ids->mask + 1) * sizeof n->ids->at[0]);
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		if (is_here(&n->peer[i]))
			put(n->ids, &n->peer[i]);
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		if (n->peer[i].state == P3_DEAD || n->peer[i].state == P3_GONE)
			put(n->ids, &n->peer[i]);
}

void p3_ids_come(struct p3_nic *n, uint32_t rank)
{
	if (rank < n->conf.job_ranks)
		n->come[rank / 64] |= UINT64_C(1) << rank % 64;
}

/* Return true if a node of the job may still come: a rank has not come yet, or it is
 * unknown how many processes have the job's nid. */
static bool is_awaited(const struct p3_nic *n)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		count += (uint32_t)__builtin_popcountll(n->come[i]);
	return !n->conf.job_ranks || count < n->conf.job_ranks;
}

static bool is_listed(const struct p3_nic *n, ptl_process_id_t who)
{
	for (uint32_t i = 0; n->listed && i < n->listed->n; i++)
		if (n->listed->id[i] == p3_pair(who.pid, who.nid))
			return true;
	return false;
}

static bool is_over(const struct p3_nic *n, uint32_t rank)
{
	return n->over[rank / 64] >> rank % 64 & 1;
}

/* Return the pseudo-peer for an unknown id if the id's process may still come: its nid is
 * one of this node's job, or the program has named it.  Otherwise return NULL. */
static P3_RARE struct p3_peer *find_unresolved(struct p3_nic *n, ptl_process_id_t who)
{
	uint32_t rank = who.nid - n->conf.job_nid;
	bool ours = rank < n->conf.job_nids && !is_over(n, rank) && is_awaited(n);
	bool listed = n->conf.hold_ns && is_listed(n, who);
	return ours || listed ? &n->unresolved : NULL;
}

/* Not inline: otherwise p3_peer_find would not be inlined into every put. */
__attribute__((noinline)) struct p3_peer *p3_ids_find(
	struct p3_nic *n, ptl_process_id_t who)
{
	struct p3_peer *p = p3_ids_place(n->ids, p3_pair(who.pid, who.nid))->peer;
	return p ? p : find_unresolved(n, who);
}

/* Under yod each rank has a nid of its own: a known peer with this nid is
 * that rank, and has joined with another pid.  Ranks of other launchers share one nid
 * (conf.job_ranks), so a known peer with this nid says nothing about the others. */
bool p3_ids_may_come(const struct p3_nic *n, ptl_process_id_t who)
{
	if (is_listed(n, who))
		return true;
	for (uint32_t i = 0; !n->conf.job_ranks && i < n->conf.nnodes; i++)
		if (n->peer[i].state != P3_ABSENT && n->peer[i].nid == who.nid)
			return false;
	return true;
}

void p3_ids_end(struct p3_nic *n, uint32_t nid)
{
	uint32_t rank = nid - n->conf.job_nid;
	if (rank < n->conf.job_nids)
		n->over[rank / 64] |= UINT64_C(1) << rank % 64;
}

int p3_ids_list(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_listed *before = n->listed;
	n->listed = c->listed;
	c->listed = before;
	return PTL_OK;
}
