/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers: their ids, the lanes to and from them, hot and cold. */
#define P3_LOG_AREA P3_AREA_PEER
#include "nic/proto/proto.h"

#include "nic/run/run.h"
#include "nic/wire/wire.h"
#include "shm/fault.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- ids ---- */

/* Without a domain, the nid of node i is the first nid of the job plus i.  In a domain,
 * where peers have any ids, a hash table finds them: open addressing, at most half full,
 * rebuilt when a peer comes or changes its ids. */

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
static void ids_put(struct p3_ids *ids, struct p3_peer *p)
{
	for (int i = 0; i < P3_JOB_NIS; i++) {
		uint64_t key = p3_pair(p->pid[i], p->nid);
		struct p3_id *at = p3_ids_place(ids, key);
		if (p->pid[i] == P3_JOB_NO_PID || at->peer)
			continue;
		*at = (struct p3_id){key, p};
	}
}

/* Rebuild the table; the ids of dead peers stay until another peer has them. */
void p3_ids_renew(struct p3_nic *n)
{
	n->latest = (struct p3_id){.peer = &n->absent};
	if (!n->ids)
		return;
	memset(n->ids->at, 0, (n->ids->mask + 1) * sizeof n->ids->at[0]);
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		if (n->peer[i].state == P3_LIVE || n->peer[i].state == P3_EXPECTED)
			ids_put(n->ids, &n->peer[i]);
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		if (n->peer[i].state == P3_DEAD || n->peer[i].state == P3_LEFT)
			ids_put(n->ids, &n->peer[i]);
}

void p3_ids_come(struct p3_nic *n, uint32_t rank)
{
	if (rank < n->conf.job_ranks)
		n->come[rank / 64] |= UINT64_C(1) << rank % 64;
}

static bool ids_is_listed(const struct p3_nic *n, ptl_process_id_t who)
{
	for (uint32_t i = 0; n->listed && i < n->listed->n; i++)
		if (n->listed->id[i] == p3_pair(who.pid, who.nid))
			return true;
	return false;
}

/* Return the pseudo-peer for an unknown id if the id's process may still come: its nid is
 * one of this node's job, and a rank of the job has not come yet, or it is unknown how
 * many processes have the nid; or the program has named it.  Otherwise return NULL. */
static P3_RARE struct p3_peer *ids_find_unresolved(struct p3_nic *n, ptl_process_id_t who)
{
	uint32_t rank = who.nid - n->conf.job_nid, come = 0;
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		come += (uint32_t)__builtin_popcountll(n->come[i]);
	bool ours = rank < n->conf.job_nids && !(n->over[rank / 64] >> rank % 64 & 1) &&
		    (!n->conf.job_ranks || come < n->conf.job_ranks);
	bool listed = n->conf.hold_ns && ids_is_listed(n, who);
	return ours || listed ? &n->unresolved : NULL;
}

/* Not inline: otherwise p3_peer_find would not be inlined into every put. */
static __attribute__((noinline)) struct p3_peer *ids_find(
	struct p3_nic *n, ptl_process_id_t who)
{
	struct p3_peer *p = p3_ids_place(n->ids, p3_pair(who.pid, who.nid))->peer;
	return p ? p : ids_find_unresolved(n, who);
}

/* Under yod each rank has a nid of its own: a known peer with this nid is
 * that rank, and has joined with another pid.  Ranks of other launchers share one nid
 * (conf.job_ranks), so a known peer with this nid says nothing about the others. */
bool p3_ids_may_come(const struct p3_nic *n, ptl_process_id_t who)
{
	if (ids_is_listed(n, who))
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

struct p3_peer *p3_peer_find(struct p3_nic *n, ptl_process_id_t who)
{
	uint32_t index = who.nid - n->first_nid;
	if (p3_likely(index < n->nids))
		return &n->peer[index];
	return n->ids ? ids_find(n, who) : NULL;
}

/* ---- room ---- */

/* Return true if the peer has set its credits for this node's incarnation; until then
 * the credits are those of an earlier one. */
P3_PATH
bool p3_peer_has_acked(struct p3_peer *p)
{
	if (p3_unlikely(!p->acked))
		p->acked = p3_acquire(&p->theirs->rx_for) ==
			   p->nic->conf.incarnation; /* PEER.1 */
	return p->acked;
}

P3_PATH
bool p3_peer_look_for_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k)
{
	return p3_peer_has_acked(p) && p3_ring_room(r, k);
}

/* ---- full lanes ---- */

bool p3_peer_reserve_arena(
	struct p3_nic *n, uint64_t len, uint64_t align, uint64_t *off_out)
{
	uint64_t off = p3_round_up(n->arena_used, align);
	if (off + len > n->layout.seg_len)
		return false;
	if (p3_seg_reserve(&n->published, off + len) != 0)
		return false;
	FAULT_POINT("arena.reserved");
	n->arena_used = off + len;
	*off_out = off;
	return true;
}

/* Return the distance of a full lane's cells from the lines of the cache. */
static uint64_t peer_beside_lines(void)
{
	return p3_without(P3_LINES) ? P3_CELL / 2 : 0;
}

bool p3_peer_reserve_cells(struct p3_nic *n, uint64_t len, uint64_t *off_out)
{
	if (!p3_peer_reserve_arena(n, len + peer_beside_lines(), P3_LINE, off_out))
		return false;
	*off_out += peer_beside_lines();
	return true;
}

bool p3_peer_holds_ring(
	struct p3_nic *n, const struct p3_peer *p, uint64_t off, uint32_t cells)
{
	uint64_t len = (uint64_t)cells * P3_CELL;
	return off >= n->layout.ctl_len && off <= n->layout.seg_len - len &&
	       off % P3_CELL == peer_beside_lines() &&
	       p3_seg_reach(p->base + off, len) != -EFAULT;
}

static bool peer_carve_lane(struct p3_nic *n, struct p3_peer *p)
{
	if (p->full_off)
		return true; /* carved in an earlier life of the peer */
	if (!p3_peer_reserve_cells(n, p3_full_lane_len(&n->layout), &p->full_off))
		return false;
	p3_count(&n->count[P3_C_LANES_FULL], 1);
	return true;
}

static struct p3_cell *peer_own_cells(struct p3_nic *n, uint64_t off)
{
	return (struct p3_cell *)((char *)n->published.base + off);
}

/* Announce the place of the full ring, publish a switch cell in the base ring, and
 * continue in the full ring. */
static void peer_switch_ring(struct p3_nic *n, struct p3_peer *p, struct p3_ring_tx *r,
	p3_a64 *where, uint64_t off, uint32_t cells, const p3_a64 *credit, uint32_t kind)
{
	/* Erase a header that the ring may have from an earlier incarnation. */
	p3_set(&peer_own_cells(n, off)->w[0], 0);
	p3_release(where, off); /* LANE.1: seen through the switch cell */
	FAULT_POINT("ring.announced");
	(void)p3_ring_begin(r, 1);
	p3_ring_publish(r, p3_pack_switch(kind), 1);
	FAULT_POINT("ring.switched");
	p3_ring_tx_init(r, peer_own_cells(n, off), cells, credit);
	p3_looks_add(n, p);
}

/*
 * Give the pair a full lane once it has exchanged enough messages; if there is no room,
 * the base lane stays in use.
 */
bool p3_peer_grow_requests(struct p3_nic *n, struct p3_peer *p)
{
	p->nsent = 0; /* try again later */
	if (p->req_full || n->conf.base_lanes_only || !peer_carve_lane(n, p) ||
		!p3_peer_has_room(p, &p->req_out, 1))
		return false;
	peer_switch_ring(n, p, &p->req_out, &p->mine->full_req, p->full_off,
		n->layout.req_cells, &p->theirs->req_credit[1], P3_REQ_SWITCH);
	p->req_full = true;
	return true;
}

void p3_peer_grow_responses(struct p3_nic *n, struct p3_peer *p)
{
	p->nanswered = 0;
	if (p->rsp_full || n->conf.base_lanes_only || !peer_carve_lane(n, p) ||
		!p3_peer_has_room(p, &p->rsp_out, 1))
		return;
	uint64_t off = p->full_off + (uint64_t)n->layout.req_cells * P3_CELL;
	peer_switch_ring(n, p, &p->rsp_out, &p->mine->full_rsp, off, n->layout.rsp_cells,
		&p->theirs->rsp_credit[1], P3_RSP_SWITCH);
	p->rsp_full = true;
}

/* ---- hot and cold ---- */

void p3_peer_heat(struct p3_nic *n, struct p3_peer *p)
{
	p->quiet = 0;
	if (p->hot)
		return;
	p->hot = true;
	p3_set(&p->mine->cold, 0);
	n->hot[n->nhot++] = p;
	if (n->nhot > n->few)
		p3_odd_set(n, P3_ODD_LANES);
}

static bool peer_has_news(struct p3_peer *p)
{
	uint64_t w0;
	return p3_ring_peek(&p->req_in, &w0) || p3_peer_has_response(p);
}

void p3_peer_rest(struct p3_nic *n, struct p3_peer *p)
{
	for (uint32_t i = 0; p->hot && i < n->nhot; i++)
		if (n->hot[i] == p) {
			p->hot = false;
			n->hot[i] = n->hot[--n->nhot];
		}
	p3_ring_shut(&p->req_out); /* the next request heats the lane again */
}

/* If at least P3_ALL_HOT lanes are hot, make each lane cold that has had no message since
 * the last call but one, and through which no response can come. */
void p3_peer_cool(struct p3_nic *n)
{
	uint32_t end = n->nhot;
	if (n->nhot < P3_ALL_HOT || n->wired)
		return; /* a wire is always polled */
	for (uint32_t i = n->nhot; i-- > 0;) {
		struct p3_peer *p = n->hot[i];
		if (++p->quiet <= 1 || p->rsp_used || p->kept)
			continue;
		p->hot = false;
		p3_ring_shut(&p->req_out); /* the next request heats the lane again */
		n->hot[i] = n->hot[--n->nhot];
		n->hot[n->nhot] = p;
		p3_set(&p->mine->cold, 1);
	}
	if (n->nhot == end)
		return;
	/* Look a last time at the lanes that were just made cold; they lie behind the end
	 * of the hot list. */
	p3_looks_fence(n, p3_fence_heavy); /* COLD.1: cold is stored before */
	for (uint32_t i = n->nhot; i < end; i++)
		if (peer_has_news(n->hot[i]))
			p3_peer_heat(n, n->hot[i]);
}

/* Search the cold lanes for messages whose sender did not ring the doorbell: any process
 * may write such messages.  Do nothing if a test has turned the search off. */
void p3_peer_sweep(struct p3_nic *n)
{
	if (n->conf.nnodes <= P3_ALL_HOT || n->conf.unswept)
		return;
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct p3_peer *p = &n->peer[i];
		if (p->state == P3_LIVE && !p->hot && !p->bad && peer_has_news(p))
			p3_peer_heat(n, p);
	}
}

void p3_peer_answer_doorbell(struct p3_nic *n)
{
	for (uint32_t i = 0; i < (n->conf.nnodes + 63) / 64; i++) {
		if (!p3_get(&n->doorbell->lanes[i]))
			continue;
		uint64_t bits = p3_exchange64(&n->doorbell->lanes[i], 0);
		for (; bits; bits &= bits - 1) {
			uint32_t peer = i * 64 + (uint32_t)__builtin_ctzll(bits);
			if (peer >= n->conf.nnodes || n->peer[peer].state != P3_LIVE)
				continue;
			p3_peer_heat(n, &n->peer[peer]);
			n->worked = true; /* the next pass looks at its lane */
		}
	}
}

/* ---- states ---- */

/* Return true if the peer's lane is for this node's present incarnation, so that it is
 * valid. */
bool p3_peer_is_ready(struct p3_nic *n, struct p3_peer *p)
{
	if (p3_unlikely(!p->ready))
		p->ready = p3_acquire(&p->theirs->tx_for) ==
			   n->conf.incarnation; /* PEER.2 */
	return p->ready;
}

void p3_peer_say_reads(struct p3_peer *p)
{
	bool heap = p->heap.base, cma = !p->cma_off;
	p3_set(&p->mine->reads, (heap ? P3_READS_HEAP : 0u) | (cma ? P3_READS_CMA : 0u));
}

void p3_peer_count_alive(struct p3_nic *n, struct p3_peer *p, bool alive)
{
	uint32_t by = alive ? 1 : (uint32_t)-1;
	if (p->counted == alive)
		return;
	p->counted = alive;
	p3_set(&n->alive, p3_get(&n->alive) + by);
	if (p->jid == n->conf.jid)
		p3_set(&n->job_alive, p3_get(&n->job_alive) + by);
}

void p3_peer_end_meeting(struct p3_nic *n, struct p3_peer *p)
{
	if (p->met)
		p3_set(&n->meeting, p3_get(&n->meeting) - 1);
	p->met = p->apart = false;
}

void p3_peer_ignore(struct p3_nic *n, struct p3_peer *p, const char *what)
{
	if (p->bad)
		return;
	p->bad = true;
	n->some_bad = true;
	p3_odd_set(n, P3_ODD_BAD);
	p3_count(&n->count[P3_C_BAD_HEADERS], 1);
	p3_warn("node %u (nid %u, process %u) sent %s; it is not listened to any more, "
		"operations with it fail",
		p->index, p->nid, p->os_pid, what);
}

void p3_peer_unmapped(struct p3_peer *p, struct p3_peer_info *info)
{
	info->base = p->base;
	info->page = p->page;
	info->seg_len = p->seg_len;
	info->doorbell_at = p->doorbell;
	info->view = p->heap;
	p->heap = (struct p3_heap_view){0};
	p->base = NULL;
	p->page = NULL;
	p->doorbell = NULL;
}
