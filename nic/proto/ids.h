/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ids - finding the peer that has an id
 *
 * In a job the nids count up from the first one, and n->ids is NULL.  In a domain peers
 * have any ids, and n->ids is a hash table.
 *
 * Only the lease holder calls these functions.  The state is n->ids, n->listed and
 * n->over.
 */
#ifndef P3_NIC_PROTO_IDS_H
#define P3_NIC_PROTO_IDS_H

#include "nic/state.h"

int p3_ids_make(struct p3_nic *n);
void p3_ids_drop(struct p3_nic *n);
void p3_ids_renew(struct p3_nic *n); /* a peer has come, or has other ids */
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
