/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers: birth and death, the lanes to and from them, hot and cold. */
#define P3_LOG_AREA P3_AREA_PEER
#include "nic/fw.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct p3_peer *p3_fw_find(struct p3_nic *n, ptl_process_id_t who)
{
	uint32_t index = who.nid - n->first_nid;
	if (p3_likely(index < n->nids))
		return &n->peer[index];
	return n->ids ? p3_ids_find(n, who) : NULL;
}

/* ---- room ---- */

/* Return true if the peer has set this node's credits for this incarnation; until then
 * they are an earlier incarnation's. */
P3_PATH
bool p3_fw_acked(struct p3_peer *p)
{
	if (p3_unlikely(!p->acked))
		p->acked = p3_acquire(&p->theirs->rx_for) ==
			   p->nic->conf.incarnation; /* PEER.1 */
	return p->acked;
}

P3_PATH
bool p3_fw_look_for_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k)
{
	return p3_fw_acked(p) && p3_ring_room(r, k);
}

/* ---- full lanes ---- */

bool p3_fw_arena(struct p3_nic *n, uint64_t len, uint64_t align, uint64_t *off_out)
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

bool p3_fw_full_ring_ok(
	struct p3_nic *n, const struct p3_peer *p, uint64_t off, uint32_t cells)
{
	uint64_t len = (uint64_t)cells * P3_CELL;
	return off >= n->layout.ctl_len && off <= n->layout.seg_len - len &&
	       off % P3_CELL == 0 && p3_seg_reach(p->base + off, len) != -EFAULT;
}

static bool carve_lane(struct p3_nic *n, struct p3_peer *p)
{
	if (p->full_off)
		return true; /* carved in an earlier life of the peer */
	if (!p3_fw_arena(n, p3_full_lane_len(&n->layout), P3_LINE, &p->full_off))
		return false;
	p3_count(&n->count[P3_C_LANES_FULL], 1);
	return true;
}

static struct p3_cell *own_cells(struct p3_nic *n, uint64_t off)
{
	return (struct p3_cell *)((char *)n->published.base + off);
}

/* Announce the place of the full ring, switch in the old ring, continue in the new
 * one. */
static void switch_ring(struct p3_nic *n, struct p3_peer *p, struct p3_ring_tx *r,
	p3_a64 *where, uint64_t off, uint32_t cells, const p3_a64 *credit, uint32_t kind)
{
	/* erases a header of an earlier life of the peer */
	p3_set(&own_cells(n, off)->w[0], 0);
	p3_release(where, off); /* LANE.1: seen through the switch cell */
	FAULT_POINT("ring.announced");
	(void)p3_ring_begin(r, 1);
	p3_ring_publish(r, p3_word0(kind, 0, 1), 1);
	FAULT_POINT("ring.switched");
	p3_ring_tx_init(r, own_cells(n, off), cells, credit);
	p3_fw_touch(n, p);
}

/*
 * Give the pair a full lane once it has exchanged enough messages; if there is no room,
 * the base lane stays in use.
 */
bool p3_fw_grow_requests(struct p3_nic *n, struct p3_peer *p)
{
	p->nsent = 0; /* try again later */
	if (p->req_full || n->conf.base_lanes_only || !carve_lane(n, p) ||
		!p3_fw_room(p, &p->req_out, 1))
		return false;
	switch_ring(n, p, &p->req_out, &p->mine->full_req, p->full_off,
		n->layout.req_cells, &p->theirs->req_credit[1], P3_REQ_SWITCH);
	p->req_full = true;
	return true;
}

void p3_fw_grow_responses(struct p3_nic *n, struct p3_peer *p)
{
	p->nanswered = 0;
	if (p->rsp_full || n->conf.base_lanes_only || !carve_lane(n, p) ||
		!p3_fw_room(p, &p->rsp_out, 1))
		return;
	uint64_t off = p->full_off + (uint64_t)n->layout.req_cells * P3_CELL;
	switch_ring(n, p, &p->rsp_out, &p->mine->full_rsp, off, n->layout.rsp_cells,
		&p->theirs->rsp_credit[1], P3_RSP_SWITCH);
	p->rsp_full = true;
}

/* ---- hot and cold ---- */

void p3_fw_heat(struct p3_nic *n, struct p3_peer *p)
{
	p->quiet = 0;
	if (p->hot)
		return;
	p->hot = true;
	p3_set(&p->mine->cold, 0);
	n->hot[n->nhot++] = p;
}

static bool has_news(struct p3_peer *p)
{
	uint64_t w0;
	return p3_ring_peek(&p->req_in, &w0) || p3_fw_has_response(p);
}

/* Move a lane from the hot list to behind its end. */
static void make_cold(struct p3_nic *n, uint32_t at)
{
	struct p3_peer *p = n->hot[at];
	p->hot = false;
	n->hot[at] = n->hot[--n->nhot];
	n->hot[n->nhot] = p;
	p3_set(&p->mine->cold, 1);
}

/* Do the last look at lanes that were just made cold, those behind the end of the
 * list. */
static void look_at_cold(struct p3_nic *n, uint32_t end)
{
	p3_fw_fence(n, p3_fence_heavy); /* COLD.1: cold is stored before */
	for (uint32_t i = n->nhot; i < end; i++)
		if (has_news(n->hot[i]))
			p3_fw_heat(n, n->hot[i]);
}

/* If at least P3_ALL_HOT lanes are hot, make those cold that had no news since the last
 * but one call, and that no response can come through. */
void p3_fw_cool(struct p3_nic *n)
{
	uint32_t end = n->nhot;
	if (n->nhot < P3_ALL_HOT || n->wire)
		return; /* a wire is always polled */
	for (uint32_t i = n->nhot; i-- > 0;)
		if (++n->hot[i]->quiet > 1 && n->hot[i]->rsp_used == 0)
			make_cold(n, i);
	if (n->nhot < end)
		look_at_cold(n, end);
}

/* Search the cold lanes for messages whose sender did not ring the doorbell: any process
 * may write such messages.  Do nothing if a test has turned the search off. */
void p3_fw_sweep(struct p3_nic *n)
{
	if (n->conf.nnodes <= P3_ALL_HOT || n->conf.unswept)
		return;
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		struct p3_peer *p = &n->peer[i];
		if (p->state == P3_LIVE && !p->hot && !p->bad && has_news(p))
			p3_fw_heat(n, p);
	}
}

void p3_fw_answer_doorbell(struct p3_nic *n)
{
	for (uint32_t i = 0; i < (n->conf.nnodes + 63) / 64; i++) {
		if (!p3_get(&n->doorbell->lanes[i]))
			continue;
		uint64_t bits = p3_exchange64(&n->doorbell->lanes[i], 0);
		for (; bits; bits &= bits - 1) {
			uint32_t peer = i * 64 + (uint32_t)__builtin_ctzll(bits);
			if (peer >= n->conf.nnodes || n->peer[peer].state != P3_LIVE)
				continue;
			p3_fw_heat(n, &n->peer[peer]);
			n->worked = true; /* the next pass looks at its lane */
		}
	}
}

/* ---- birth ---- */

/* Return the peer's part for this node. */
static struct p3_peer_part *part_of(const struct p3_nic *n, const struct p3_peer *p)
{
	uint64_t off = p3_part_off(&n->layout, n->conf.node);
	return (struct p3_peer_part *)(p->page ? (uintptr_t)p->page + off % P3_PAGE
					       : (uintptr_t)p->base + off);
}

/* Set the rings to the published segments themselves: shared memory. */
static void base_lane(struct p3_nic *n, struct p3_peer *p, struct p3_lane *lane_out)
{
	const struct p3_layout *l = &n->layout;
	char *here = n->published.base;
	struct p3_peer_part *there = part_of(n, p);
	p->theirs = &there->entry;
	p->cold = n->conf.nnodes > P3_ALL_HOT ? &p->theirs->cold : &n->never_cold;
	p->image = p->base;
	*lane_out = (struct p3_lane){
		.req_out = (struct p3_cell *)(here + p3_base_req_off(l, p->index)),
		.rsp_out = (struct p3_cell *)(here + p3_base_rsp_off(l, p->index)),
		.req_in = there->req,
		.rsp_in = there->rsp,
		.cells = P3_BASE_CELLS,
		.base = true};
}

static void reset_out(struct p3_peer *p, const struct p3_lane *lane)
{
	p3_ring_tx_init(
		&p->req_out, lane->req_out, lane->cells, &p->theirs->req_credit[0]);
	p3_ring_tx_init(
		&p->rsp_out, lane->rsp_out, lane->cells, &p->theirs->rsp_credit[0]);
	p3_set(&p->mine->full_req, 0);
	p3_set(&p->mine->full_rsp, 0);
	p3_set(&p->mine->swapping, 0);
	p->req_full = p->rsp_full = !lane->base;
	p->acked = false;
	p->nsent = p->nanswered = 0;
	p->rsp_used = 0;
	p->rsp_cap = lane->cells - 2; /* one stays free, one is for a switch */
	FAULT_POINT("peer.lanes_reset");
	p3_release(&p->mine->tx_for, p->incarnation); /* PEER.2 */
}

static void reset_in(struct p3_peer *p, const struct p3_lane *lane)
{
	p3_ring_rx_init(&p->req_in, lane->req_in, lane->cells, &p->mine->req_credit[0]);
	p3_ring_rx_init(&p->rsp_in, lane->rsp_in, lane->cells, &p->mine->rsp_credit[0]);
	p->ahead = p->req_in.pos;
	p3_set(&p->mine->req_credit[1], 0);
	p3_set(&p->mine->rsp_credit[1], 0);
	p3_set(&p->mine->bulk_slot, 0);
	p3_set(&p->mine->reading, 0);
	p3_set(&p->mine->shown_drops, 0);
	p->nreading = 0;
	p->ready = p->bad = p->going = false;
	p->deep = 0;
	FAULT_POINT("peer.credits_reset");
	p3_release(&p->mine->rx_for, p->incarnation); /* PEER.1 */
}

/* Return true if the peer's lane is for this node's present incarnation, so that it is
 * valid. */
bool p3_fw_ready(struct p3_nic *n, struct p3_peer *p)
{
	if (p3_unlikely(!p->ready))
		p->ready = p3_acquire(&p->theirs->tx_for) ==
			   n->conf.incarnation; /* PEER.2 */
	return p->ready;
}

static void know(struct p3_peer *p, const struct p3_peer_info *info)
{
	p->nid = info->nid;
	memcpy(p->pid, info->pid, sizeof p->pid);
	p->uid = info->uid;
	p->jid = info->jid;
	p->os_pid = info->os_pid;
	p->incarnation = info->incarnation;
}

static void take_over(
	struct p3_nic *n, struct p3_peer *p, const struct p3_peer_info *info)
{
	know(p, info);
	p->base = info->base;
	p->page = info->page;
	p->seg_len = info->seg_len;
	p->proof = ((const struct p3_seg_header *)info->base)->self +
		   offsetof(struct p3_seg_header, incarnation);
	p->owner = 0;
	p->nwindows = 0;
	p->proven = false;
	p->doorbell = info->doorbell_at;
	p->asleep = p3_asleep_of(n, p->index, p->doorbell);
	n->light = n->light && ((const struct p3_seg_header *)info->base)->fences;
	p->heap = info->view;
	p->cma_off = false;
	p->told = p->told_own = 0;
	p->kick_ns = 0;
}

void p3_fw_say_reads(struct p3_nic *n, struct p3_peer *p)
{
	bool heap = p->heap.base, cma = n->conf.cma && !p->cma_off;
	p3_set(&p->mine->reads, (heap ? P3_READS_HEAP : 0u) | (cma ? P3_READS_CMA : 0u));
}

/* Count a peer as alive, or no longer, once.  A peer that is apart counts as one that
 * is mapped. */
static void count_alive(struct p3_nic *n, struct p3_peer *p, bool alive)
{
	if (p->counted != alive)
		p3_count(&n->alive, alive ? 1 : (uint32_t)-1);
	p->counted = alive;
}

/* Note that no request waits for an introduction of the peer. */
static void end_meeting(struct p3_nic *n, struct p3_peer *p)
{
	if (p->met)
		p3_set(&n->meeting, p3_get(&n->meeting) - 1);
	p->met = p->apart = false;
}

static int expect(struct p3_nic *n, struct p3_peer *p, const struct p3_peer_info *info)
{
	know(p, info);
	p->base = NULL;
	p->page = NULL;
	p->acked = false;
	p->state = P3_EXPECTED;
	end_meeting(n, p);
	p->apart = info->apart && n->conf.meet;
	if (p->apart)
		count_alive(n, p, true);
	FAULT_POINT("apart.expected");
	p3_ids_renew(n);
	p3_fw_readdress(n);
	if (!p3_list_empty(&p->queue))
		p3_fw_push(n, p);
	return 0;
}

int p3_fw_peer_up(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer_info *info = c->peer;
	struct p3_peer *p = &n->peer[info->node];
	/* lose() has left its memory mapped until the peer's end is reported. */
	bool known_bad = (p->state == P3_DEAD || p->state == P3_GONE) && p->base &&
			 p->incarnation == info->incarnation;
	if (p->state == P3_LIVE || known_bad)
		return -EEXIST;
	struct p3_lane lane;
	if (!info->base)
		return expect(n, p, info);
	take_over(n, p, info);
	base_lane(n, p, &lane);
	int rc = n->wire ? n->wire->attach(n, p, &lane) : 0;
	if (rc)
		return rc;
	reset_in(p, &lane);
	reset_out(p, &lane);
	p->state = P3_LIVE;
	p3_log(P3_LOG_DEBUG, P3_AREA_PEER, "node %u (nid %u, process %u) is mapped",
		p->index, p->nid, p->os_pid);
	p3_fw_say_reads(n, p);
	p3_ids_renew(n);
	FAULT_POINT("peer.up");
	P3_TRACE(about, n, (struct p3_topic){p->index, 0}, P3_TRACE_BIRTH, 0,
		p->incarnation);
	count_alive(n, p, true);
	if (p->index != n->conf.node) /* its own lane is polled from the first use on */
		p3_fw_heat(n, p);
	n->posted = true; /* waiting hosts look again, and poll it; */
	p3_fw_rouse(n);   /* if there are none, the NIC thread does */
	p3_fw_readdress(n);
	p3_fw_push(n, p);  /* requests from before */
	end_meeting(n, p); /* a thread may wait until they lie in the lane */
	return 0;
}

int p3_fw_peer_pids(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer *p = &n->peer[c->peer->node];
	if ((p->state != P3_LIVE && p->state != P3_EXPECTED) ||
		p->incarnation != c->peer->incarnation)
		return -ESTALE;
	FAULT_POINT("peer.pids");
	/* A closed interface keeps its pid for its earlier messages. */
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (c->peer->pid[i] != P3_JOB_NO_PID)
			p->pid[i] = c->peer->pid[i];
	p3_ids_renew(n);
	p3_fw_readdress(n);
	n->posted = true;
	p3_fw_rouse(n);
	return 0;
}

/* ---- death ---- */

/* Return the status of a get that was served to a lost peer: PTL_NI_OK if the peer had
 * read all bytes and said so before it left. */
static uint32_t serving_status(struct p3_nic *n, const struct p3_xfer_slot *x)
{
	const struct p3_xfer *theirs = p3_peer_xfer(n, x->peer, x->peer_id);
	bool seen = p3_acquire(&theirs->released) == x->peer_id; /* XFER.3 */
	return seen && !p3_get(&theirs->status) ? PTL_NI_OK : PTL_NI_FAIL;
}

static void end_transfers(struct p3_nic *n, struct p3_peer *p)
{
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (pull->peer == p)
			p3_fw_end_pull(n, pull,
				pull->done == pull->end ? PTL_NI_OK : PTL_NI_FAIL);
	}
	p3_list_each(src, &n->sources) {
		struct p3_xfer_slot *x = p3_item(src, struct p3_xfer_slot, link);
		if (x->peer != p)
			continue;
		if (x->serving)
			p3_xfer_finish_serving(n, x, serving_status(n, x));
		else if (x->releasing)
			p3_xfer_free(n, x);
	}
}

static void end_pendings(struct p3_nic *n, struct p3_link *list, bool died)
{
	p3_list_each(it, list)
		p3_fw_fail_pending(n, p3_item(it, struct p3_pending, link), died);
}

static void end_queues(struct p3_nic *n, struct p3_peer *p, bool died)
{
	p->state = died ? P3_DEAD : P3_GONE;
	end_pendings(n, &p->outstanding, died);
	end_pendings(n, &p->queue, died);
	if (p->blocked)
		p3_list_del(&p->blocked_link);
	p->blocked = false;
	n->posted = true;
}

/* Lose a peer: take the messages that it had published, then end all operations with
 * it. */
static void lose(struct p3_nic *n, struct p3_peer *p, bool died)
{
	P3_TRACE(about, n, (struct p3_topic){p->index, 0}, P3_TRACE_DEATH, died,
		p->incarnation);
	if (n->wire)
		n->wire->drain(n, p);
	p->going = true;
	/* No more than the rings hold: a peer that goes on publishing is not waited
	 * for. */
	uint32_t most = 2 * (P3_BASE_CELLS + n->layout.req_cells);
	for (uint32_t i = 0; i < most && !p->bad && p3_fw_ready(n, p); i++)
		if (!p3_fw_take_response(n, p))
			break;
	for (uint32_t i = 0; i < most && !p->bad && p3_fw_ready(n, p); i++)
		if (!p3_fw_take_request(n, p) && !p3_fw_refuse_request(n, p))
			break;
	FAULT_POINT("peer.drained");
	p3_log(P3_LOG_DEBUG, P3_AREA_PEER, "node %u (nid %u, process %u) has %s",
		p->index, p->nid, p->os_pid, died ? "died" : "left");
	if (n->swapper == p)
		n->swapper = NULL;
	p->state = died ? P3_DEAD : P3_GONE;
	count_alive(n, p, false);
	P3_TRACE(focus, n, (struct p3_topic){p->index, 0}, 0);
	end_transfers(n, p);
	FAULT_POINT("peer.half_lost");
	end_queues(n, p, died);
	p->rsp_used = 0;
	for (uint32_t i = 0; i < n->nhot; i++)
		if (n->hot[i] == p)
			n->hot[i] = n->hot[--n->nhot];
	p->hot = false;
	if (n->wire)
		n->wire->detach(n, p);
}

void p3_fw_bad_peer(struct p3_nic *n, struct p3_peer *p, const char *what)
{
	if (p->bad)
		return;
	p->bad = true;
	n->some_bad = true;
	p3_count(&n->count[P3_C_BAD_HEADERS], 1);
	p3_warn("node %u (nid %u, process %u) sent %s; it is not listened to any more, "
		"operations with it fail",
		p->index, p->nid, p->os_pid, what);
}

void p3_fw_lose_bad(struct p3_nic *n)
{
	n->some_bad = false;
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		if (n->peer[i].bad && n->peer[i].state == P3_LIVE)
			lose(n, &n->peer[i], true);
}

int p3_fw_peer_down(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer *p = &n->peer[c->peer->node];
	bool died = c->peer->end == P3_PEER_DIED;
	if (p->state == P3_ABSENT && c->peer->any) { /* no birth of it will come */
		c->peer->nid = n->first_nid + p->index;
		return p3_fw_peer_over(n, c);
	}
	if (p->state == P3_ABSENT ||
		(!c->peer->any && p->incarnation != c->peer->incarnation))
		return -ESTALE;
	if (p->state == P3_LIVE && !c->peer->now && p3_fw_settles(n, p))
		return -EAGAIN;
	if (p->state == P3_LIVE)
		lose(n, p, died);
	if (p->state == P3_EXPECTED) {
		end_meeting(n, p);
		count_alive(n, p, false);
		end_queues(n, p, died);
		p3_fw_give_up(n);
		c->peer->base = NULL;
		return 0;
	}
	p3_fw_give_up(n);
	p3_fw_mirror_lost(p);
	c->peer->base = p->base;
	c->peer->page = p->page;
	c->peer->seg_len = p->seg_len;
	c->peer->doorbell_at = p->doorbell;
	c->peer->view = p->heap;
	p->heap = (struct p3_heap_view){0};
	/* The caller unmaps these.  Forget the addresses, or the peer's next end would
	 * unmap them again, when the memory of another peer may lie there. */
	p->base = NULL;
	p->page = NULL;
	p->doorbell = NULL;
	return 0;
}

/* Note the end of a rank, which may have joined and left before this node joined. */
int p3_fw_peer_over(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_peer *p = &n->peer[c->peer->node];
	if (n->ids) {
		p3_ids_end(n, c->peer->nid);
	} else if (p->state == P3_ABSENT) {
		p->state = P3_DEAD;
		p3_fw_mirror_lost(p);
		p->nid = c->peer->nid;
		p->uid = PTL_UID_ANY;
		p->jid = PTL_JID_ANY;
	}
	p3_fw_give_up(n);
	return 0;
}
