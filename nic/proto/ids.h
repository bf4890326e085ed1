/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ids - finding the peer that has an id
 *
 * In a job the nids count up from the first one, and n->ids is NULL.  In a domain peers
 * have any ids, and n->ids is a hash table.
 *
 * Only the lease holder calls these functions.  The state is n->ids, n->listed,
 * n->over, and n->latest with n->absent.
 */
#ifndef P3_NIC_PROTO_IDS_H
#define P3_NIC_PROTO_IDS_H

#include "nic/state.h"

/* Return the place of an id in the table, or the place where it belongs. */
static inline struct p3_id *p3_ids_place(struct p3_ids *ids, uint64_t key)
{
	uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & ids->mask;
	while (ids->at[i].peer && ids->at[i].key != key)
		i = (i + 1) & ids->mask;
	return &ids->at[i];
}

/* Return the peer that has this id, or NULL.  The function is inline, since a program
 * that sends to all others in turn needs it in each call: n->latest is of no use then. */
static inline struct p3_peer *p3_ids_known(struct p3_nic *n, uint64_t id)
{
	uint32_t index = (uint32_t)id - n->first_nid, pid = (uint32_t)(id >> 32);
	if (n->ids)
		return p3_ids_place(n->ids, id)->peer;
	if (index >= n->nids || pid == P3_JOB_NO_PID)
		return NULL;
	struct p3_peer *p = &n->peer[index];
	return p->pid[0] == pid || p->pid[1] == pid ? p : NULL;
}

/* Do as p3_ids_known() for a target that is likely the one of the last call.  If no peer
 * has this id, return a pseudo-peer, whose ring is never open. */
static P3_HOT struct p3_peer *p3_ids_peer(struct p3_nic *n, uint64_t id)
{
	if (p3_unlikely(n->latest.key != id)) {
		struct p3_peer *p = p3_ids_known(n, id);
		if (!p)
			return &n->absent;
		n->latest = (struct p3_id){id, p};
	}
	return n->latest.peer;
}

int p3_ids_make(struct p3_nic *n);
void p3_ids_drop(struct p3_nic *n);
/* Rebuild the table, after a peer has come or has got other ids. */
void p3_ids_renew(struct p3_nic *n);
struct p3_peer *p3_ids_find(struct p3_nic *n, ptl_process_id_t who);
/* Return true if a process with this id, which p3_ids_find() does not find, may still
 * join the domain.  Return false if the rank with this nid has joined without the id. */
bool p3_ids_may_come(const struct p3_nic *n, ptl_process_id_t who);
/* Note that this rank of the own job has come, if the job has it. */
void p3_ids_come(struct p3_nic *n, uint32_t rank);
/* Note that the rank of the job with this nid has ended. */
void p3_ids_end(struct p3_nic *n, uint32_t nid);
int p3_ids_list(struct p3_nic *n, struct p3_cmd *c);

#endif
