/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers from the side of host threads: maps of their segments, and news of them. */
#define P3_LOG_AREA P3_AREA_PEER
#include "nic/state.h"
#include "shm/fault.h"
#include "shm/log.h"
#include "shm/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static int check_wire(const struct p3_nic *n, const struct p3_peer_info *info)
{
	uint32_t own = n->wire ? n->wire->id : 0;
	if (((const struct p3_seg_header *)info->base)->wire == own)
		return 0;
	p3_error("node %u does not have the same wire as node %u; set PTL3_WIRE for all "
		 "nodes of a job alike, or for none",
		info->node, n->conf.node);
	return -EPROTO;
}

/* Check the header of a peer's segment.  A node that has finished is accepted, since it
 * may have sent a message before. */
static int check_header(struct p3_nic *n, const struct p3_peer_info *info)
{
	const struct p3_seg_header *h = info->base;
	uint32_t state = p3_acquire(&h->state); /* SEG.1 */
	uint64_t layout = h->layout;
	if (h->magic != P3_SEG_MAGIC || h->nnodes != n->conf.nnodes ||
		h->node != info->node || h->incarnation != info->incarnation)
		return -EPROTO;
	if (layout == P3_LAYOUT_WORD)
		return state == P3_SEG_LIVE || state == P3_SEG_FINISHED
			       ? check_wire(n, info)
			       : -ESTALE;
	p3_error("node %u: its segment has layout %#llx, this library %#llx; "
		 "link all programs of a job with the same libportals",
		info->node, (unsigned long long)layout,
		(unsigned long long)P3_LAYOUT_WORD);
	return -EPROTO;
}

/*
 * Make sure that the pages have memory that are accessed without further checks: header
 * and counters, the part for this node, the transfer table, and the doorbell.  The
 * parts for other nodes are left out: in a job of N nodes they would be N page table
 * entries for each of N peers in each of N nodes.
 */
static int reach(const struct p3_nic *n, const struct p3_peer_info *info)
{
	const struct p3_layout *l = &n->layout;
	const char *base = info->base;
	int rc = p3_seg_reach(base, l->parts_off);
	if (!rc)
		rc = p3_seg_reach(
			base + p3_part_off(l, n->conf.node), sizeof(struct p3_peer_part));
	if (!rc)
		rc = p3_seg_reach(base + l->xfers_off, l->ctl_len - l->xfers_off);
	return rc ? rc : p3_seg_reach(info->doorbell_at, P3_PAGE);
}

/* Return true if the program's address space is limited: the program needs the
 * addresses that views of heaps would take. */
static bool is_space_limited(void)
{
	struct rlimit space;
	return getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
}

/* Map the peer's heap.  Without it everything works, but slower. */
static void map_heap(struct p3_nic *n, struct p3_peer_info *info)
{
	if (!info->heap_len || info->node == n->conf.node || n->wire)
		return;
	static p3_a32 told;
	if (is_space_limited())
		return;
	int rc = p3_heap_view_open(info->heap, info->heap_len, &info->view);
	if (rc && !n->conf.mute && !p3_exchange32(&told, 1))
		p3_warn("node %u: its shared heap cannot be mapped (%s); its long "
			"messages are moved otherwise, and those of other nodes perhaps",
			info->node, strerror(-rc));
}

static void unmap_all(struct p3_peer_info *info)
{
	p3_heap_view_close(&info->view);
	if (info->doorbell_at)
		p3_seg_unmap(info->doorbell_at, P3_PAGE);
	if (info->page)
		p3_seg_unmap_page(info->page);
	if (info->base)
		p3_seg_unmap(info->base, info->seg_len);
}

/* Map the page of the peer's segment that has the part for this node, a second time,
 * beside such pages of other peers.  Without it everything works, but slower. */
static void map_page(const struct p3_nic *n, struct p3_peer_info *info)
{
	uint64_t off = p3_part_off(&n->layout, n->conf.node);
	if (p3_seg_map_page(info->published, off - off % P3_PAGE, &info->page))
		info->page = NULL;
}

static int map_all(struct p3_nic *n, struct p3_peer_info *info)
{
	if (!p3_trace_may_follow(&n->layout, info->seg_len))
		return -EPROTO;
	int rc = p3_seg_map(info->published, info->seg_len, false, &info->base);
	if (!rc)
		rc = p3_seg_map(info->doorbell, P3_PAGE, true, &info->doorbell_at);
	if (!rc)
		rc = reach(n, info);
	if (!rc)
		rc = check_header(n, info);
	if (!rc) {
		map_page(n, info);
		map_heap(n, info);
	}
	return rc;
}

/* ---- calls ---- */

int p3_nic_peer_up(struct p3_nic *n, struct p3_peer_info *info)
{
	if (info->node >= n->conf.nnodes)
		return -EPROTO;
	info->base = info->doorbell_at = NULL;
	info->page = NULL;
	info->view = (struct p3_heap_view){0};
	int rc = map_all(n, info);
	FAULT_POINT("peer.mapped");
	struct p3_cmd c = {.op = P3_OP_PEER_UP, .peer = info};
	if (!rc)
		rc = p3_nic_do(n, &c);
	if (rc)
		unmap_all(info);
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

void p3_nic_peer_told(struct p3_nic *n, uint32_t question)
{
	struct p3_cmd c = {.op = P3_OP_PEER_TOLD, .handle = question};
	(void)p3_nic_do(n, &c);
}

bool p3_nic_peer_down(struct p3_nic *n, struct p3_peer_info *info)
{
	struct p3_cmd c = {.op = P3_OP_PEER_DOWN, .peer = info};
	int rc = info->node < n->conf.nnodes ? p3_nic_do(n, &c) : -EPROTO;
	if (!rc && info->base)
		unmap_all(info);
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
