/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer - birth and death of peers, their lanes
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_PROTO_PEER_H
#define P3_NIC_PROTO_PEER_H

#include "nic/state.h"

/* Return the word that a node sleeps on. */
static inline p3_a32 *p3_asleep_of(
	const struct p3_nic *n, uint32_t node, struct p3_doorbell *doorbell)
{
	struct p3_sleeper *all = n->conf.sleepers;
	return all ? &all[node].asleep : &doorbell->asleep;
}

int p3_fw_peer_up(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_peer_pids(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_peer_down(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_peer_told(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_peer_over(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_held(struct p3_nic *n, struct p3_cmd *c);
/* Return the peer that has this nid, or in a domain this id, or NULL. */
struct p3_peer *p3_fw_find(struct p3_nic *n, ptl_process_id_t who);
bool p3_fw_ready(struct p3_nic *n, struct p3_peer *p);
/* Tell the peer in which ways this node can fetch its puts.  Call this again when one
 * of them turns out to be refused. */
void p3_fw_say_reads(struct p3_nic *n, struct p3_peer *p);
bool p3_fw_full_ring_ok(
	struct p3_nic *n, const struct p3_peer *p, uint64_t off, uint32_t cells);
bool p3_fw_acked(struct p3_peer *p);
bool p3_fw_look_for_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k);
/* Return true if there is room for k cells.  Load the peer's credit only if the last
 * known one does not suffice. */
static inline bool p3_fw_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k)
{
	return p3_likely(p3_ring_fits(r, k + p3_ring_pad(r, k))) ||
	       p3_fw_look_for_room(p, r, k);
}
bool p3_fw_grow_requests(struct p3_nic *n, struct p3_peer *p); /* true: it has grown */
void p3_fw_grow_responses(struct p3_nic *n, struct p3_peer *p);
bool p3_fw_arena(struct p3_nic *n, uint64_t len, uint64_t align, uint64_t *off_out);
void p3_fw_bad_peer(struct p3_nic *n, struct p3_peer *p, const char *what);
void p3_fw_lose_bad(struct p3_nic *n);
void p3_fw_heat(struct p3_nic *n, struct p3_peer *p);
void p3_fw_cool(struct p3_nic *n);
void p3_fw_answer_doorbell(struct p3_nic *n);
void p3_fw_sweep(struct p3_nic *n);

#endif
