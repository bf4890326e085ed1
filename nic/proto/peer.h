/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer - the lanes to and from peers: their room, their growth, hot and cold
 *
 * Other files of this room send and take messages; this file finds their room in a lane,
 * gives a busy pair a full lane, and keeps the list of hot lanes.  It also marks a peer
 * that breaks the protocol as bad; lose.c then ends the operations with that peer.
 *
 * Only the lease holder calls these functions.  The state is the rings of struct p3_peer,
 * its words mine, and n->hot.
 */
#ifndef P3_NIC_PROTO_PEER_H
#define P3_NIC_PROTO_PEER_H

#include "nic/state.h"

/* Return the peer that has this nid, or in a domain this id, or NULL. */
struct p3_peer *p3_peer_find(struct p3_nic *n, ptl_process_id_t who);

/* Return true if an interface of the peer has this pid. */
static inline bool p3_peer_has_pid(const struct p3_peer *p, ptl_pid_t pid)
{
	return pid != P3_JOB_NO_PID && (p3_likely(p->pid[0] == pid) || p->pid[1] == pid);
}

/* Return true if a target lives and is mapped, so that requests to it go to its lane. */
static inline bool p3_peer_is_live(const struct p3_peer *p, ptl_pid_t pid)
{
	return p3_likely(p && p->state == P3_LIVE && p3_peer_has_pid(p, pid));
}

/* Return true if the target lives, but is not mapped here yet. */
static inline bool p3_peer_is_expected(const struct p3_peer *p, ptl_pid_t pid)
{
	return p && p->state == P3_EXPECTED && p3_peer_has_pid(p, pid);
}

/* Return true if a request that cannot reach this target ends with a failure.  If the
 * target has left, or did not come in time, the request ends without one. */
static inline bool p3_peer_is_failure(const struct p3_peer *p, ptl_pid_t pid)
{
	return !p || p->state == P3_DEAD ||
	       ((p->state == P3_LIVE || p->state == P3_EXPECTED) &&
		       !p3_peer_has_pid(p, pid));
}

bool p3_peer_is_ready(struct p3_nic *n, struct p3_peer *p);
/* Tell the peer in which ways this node can fetch its puts.  Call this again when one
 * of them turns out to be refused. */
void p3_peer_say_reads(struct p3_peer *p);
/* Move the addresses of a peer's mapped memory to info, for the unmap of its wire.  The
 * peer's next end must not unmap them again: the memory of another peer may lie there. */
void p3_peer_unmapped(struct p3_peer *p, struct p3_peer_info *info);
bool p3_peer_holds_ring(
	struct p3_nic *n, const struct p3_peer *p, uint64_t off, uint32_t cells);
bool p3_peer_has_acked(struct p3_peer *p);
bool p3_peer_look_for_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k);
/* Return true if there is room for k cells.  Load the peer's credit only if the last
 * known one does not suffice. */
static inline bool p3_peer_has_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k)
{
	return p3_likely(p3_ring_fits(r, k + p3_ring_pad(r, k))) ||
	       p3_peer_look_for_room(p, r, k);
}
/* Return true if there is a response.  A response comes only for a request that has
 * reserved room for it.  Without a reservation do not look at the ring, which saves a
 * cache line; a switch cell or an invalid message in the ring waits for the next
 * reservation. */
static inline bool p3_peer_has_response(struct p3_peer *p)
{
	uint64_t w0;
	return p3_unlikely(p->rsp_used) && p3_ring_peek(&p->rsp_in, &w0);
}
bool p3_peer_grow_requests(struct p3_nic *n, struct p3_peer *p); /* true: it has grown */
void p3_peer_grow_responses(struct p3_nic *n, struct p3_peer *p);
bool p3_peer_reserve_arena(
	struct p3_nic *n, uint64_t len, uint64_t align, uint64_t *off_out);
/* Do that for the cells of rings. */
bool p3_peer_reserve_cells(struct p3_nic *n, uint64_t len, uint64_t *off_out);
void p3_peer_ignore(struct p3_nic *n, struct p3_peer *p, const char *what);
/* Count a peer as alive or as ended, unless it is counted so.  A peer that is apart
 * counts like a mapped one. */
void p3_peer_count_alive(struct p3_nic *n, struct p3_peer *p, bool alive);
/* Note that no request waits for an introduction of the peer. */
void p3_peer_end_meeting(struct p3_nic *n, struct p3_peer *p);
void p3_peer_heat(struct p3_nic *n, struct p3_peer *p);
void p3_peer_cool(struct p3_nic *n);
/* Poll a peer's lane no more.  Its wire heats it when something comes. */
void p3_peer_rest(struct p3_nic *n, struct p3_peer *p);
void p3_peer_answer_doorbell(struct p3_nic *n);
void p3_peer_sweep(struct p3_nic *n);

#endif
