/* SPDX-License-Identifier: BSD-3-Clause */
/* The transfer table: slots, the place of their bytes, and changes of these bytes. */
#include "nic/xfer/table.h"

#include "nic/run/run.h"
#include "nic/wire/wire.h"
#include "nic/xfer/slice.h"
#include "shm/fault.h"
#include "shm/park.h"
#include "shm/seg.h"

#include <string.h>

#define P3_SEEN_NS 10000000u

void p3_xfer_start(struct p3_nic *n)
{
	struct p3_xfer *pub =
		(struct p3_xfer *)((char *)n->published.base + n->layout.xfers_off);
	p3_slices_reset(&n->slices);
	memset(n->seen, 0, sizeof n->seen);
	for (uint32_t i = 0; i < n->layout.nxfers; i++) {
		n->xfer[i].slot = i;
		n->xfer[i].pub = &pub[i];
		n->xfer[i].gen = 0xfffffff0; /* wraps in every run */
		n->xfer[i].window = P3_NONE;
		p3_list_init(&n->xfer[i].link);
		p3_list_init(&n->xfer[i].served_link);
	}
}

/* Return the peer's own slot, else a shared one, or NULL.  A peer may use a quarter of
 * the shared slots. */
static struct p3_xfer_slot *free_slot(
	struct p3_nic *n, struct p3_peer *p, enum p3_xfer_class class)
{
	struct p3_xfer_slot *half = &n->xfer[class * (n->layout.nxfers / 2)];
	if (!half[p->index].in_use)
		return &half[p->index];
	if (p->nxfer[class] >= P3_XFERS_SHARED / 4)
		return NULL;
	struct p3_xfer_slot *shared = half + n->conf.nnodes;
	for (uint32_t i = 0; i < P3_XFERS_SHARED; i++)
		if (!shared[i].in_use)
			return &shared[i];
	return NULL;
}

struct p3_xfer_slot *p3_xfer_alloc(
	struct p3_nic *n, struct p3_peer *p, enum p3_xfer_class class)
{
	struct p3_xfer_slot *x = free_slot(n, p, class);
	if (!x)
		return NULL;
	x->in_use = true;
	x->peer = p;
	x->releasing = x->serving = x->swapped = x->agreed = x->offered = false;
	x->span.md = NULL;
	x->peer_id = x->cci = 0;
	x->abandoned = 0;
	x->produced = x->again = 0;
	if (++x->gen == 0)
		++x->gen; /* id 0 means none */
	p->nxfer[class] += x->slot % (n->layout.nxfers / 2) >= n->conf.nnodes;
	return x;
}

/* Return the address of these bytes of a region, or 0 if they lie in several pieces. */
static uint64_t address_of(const struct p3_region *r, uint64_t off, uint64_t len)
{
	uint64_t piece;
	char *at = p3_region_at(r, off, &piece);
	return piece >= len ? (uintptr_t)at : 0;
}

/* Return the offset of the bytes at this address in this node's shared heap, plus 1, or
 * 0 if not all of them lie there. */
static uint64_t heap_word(const struct p3_nic *n, uint64_t at, uint64_t length)
{
	const struct p3_heap *heap = n->conf.heap;
	if (!heap || !at || !length || p3_heap_fd(heap) < 0)
		return 0;
	uint64_t off = at - (uintptr_t)p3_heap_base(heap), len = p3_heap_len(heap);
	return off < len && length <= len - off ? off + 1 : 0;
}

bool p3_xfer_is_faster(const struct p3_nic *n, const struct p3_peer *p,
	const struct p3_region *r, uint64_t off, uint64_t len)
{
	uint64_t at = address_of(r, off, len);
	uint32_t reads = p3_get(&p->theirs->reads);
	if (!at || p->index == n->conf.node)
		return false;
	if (len > P3_EAGER_MOST && (reads & P3_READS_CMA))
		return true;
	return (reads & P3_READS_HEAP) && heap_word(n, at, len);
}

/* Return true if the bytes are in memory, or were so P3_SEEN_NS ago or later: the kernel
 * takes 1 us to tell. */
static bool is_resident(struct p3_nic *n, uint64_t at, uint64_t len)
{
	uint64_t page = at / P3_PAGE, end = (at + len + P3_PAGE - 1) / P3_PAGE;
	struct p3_seen *s = &n->seen[(page ^ page / P3_SEEN_PLACES) % P3_SEEN_PLACES];
	uint64_t now = p3_now_ns();
	if (s->page == page && end <= s->end && now - s->ns < P3_SEEN_NS)
		return true;
	if (!p3_seg_is_resident((void *)(uintptr_t)at, len))
		return false;
	*s = (struct p3_seen){page, end, now};
	return true;
}

void p3_xfer_publish(struct p3_nic *n, struct p3_xfer_slot *x)
{
	uint64_t at = address_of(&x->span.region, x->span.offset, x->length);
	uint64_t heap = heap_word(n, at, x->length);
	/* The reader would wait for the bytes with its lease: let it use a window. */
	x->absent = at && !heap && !is_resident(n, at, x->length);
	p3_set(&x->pub->addr, x->absent ? 0 : at);
	p3_set(&x->pub->heap, heap);
	p3_set(&x->pub->again, 0);
	p3_set(&x->pub->bounds.from, x->length);
	p3_set(&x->pub->bounds.to, 0);
	p3_set(&x->pub->window, 0);
	p3_set(&x->pub->produced, 0);
	FAULT_POINT("transfer.filled");
	p3_release(&x->pub->id, p3_xfer_name(x)); /* XFER.1 */
	FAULT_POINT("transfer.published");
	p3_list_add(&n->sources, &x->link);
	p3_odd_set(n, P3_ODD_SOURCES);
}

void p3_xfer_free_window(struct p3_nic *n, struct p3_xfer_slot *x)
{
	if (x->window != P3_NONE)
		n->window_free |= 1u << x->window;
	x->window = P3_NONE;
}

void p3_xfer_free(struct p3_nic *n, struct p3_xfer_slot *x)
{
	uint32_t half = n->layout.nxfers / 2;
	p3_release(&x->pub->id, 0); /* XFER.1 */
	FAULT_POINT("transfer.taken_back");
	p3_list_del(&x->link);
	p3_xfer_free_window(n, x);
	if (x->slot % half >= n->conf.nnodes)
		x->peer->nxfer[x->slot / half]--;
	x->in_use = false;
	n->worked = true;
}

void p3_xfer_withdraw(struct p3_nic *n, struct p3_xfer_slot *x)
{
	p3_release(&x->pub->id, 0); /* XFER.1 */
	if (p3_unlikely(x->offered))
		x->peer->wire->cut(n, x->peer);
	p3_list_del(&x->link);
	p3_xfer_free_window(n, x);
	x->span.region = (struct p3_region){0};
	x->length = 0;
}

bool p3_xfer_is_read(const struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		const struct p3_peer *p = &n->peer[i];
		if (p->state != P3_LIVE || i == n->conf.node)
			continue;
		uint64_t id = p3_acquire(&p->theirs->slice_of); /* XFER.7 */
		uint32_t slot = (uint32_t)id;
		if (id && slot < n->layout.nxfers && p3_get(&n->xfer[slot].pub->id) != id)
			return true;
	}
	return false;
}

void p3_xfer_revoke_all(struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->layout.nxfers; i++)
		p3_release(&n->xfer[i].pub->id, 0); /* XFER.1 */
}

/* ---- changes: XFER.6 ---- */

void p3_xfer_begin_change(struct p3_xfer_slot *x, struct p3_range change)
{
	x->change = change;
	x->produced = 0;
	x->agreed = false;
	p3_set(&x->pub->again, ++x->again);
	p3_set(&x->pub->produced, 0);
}

void p3_xfer_log_change(struct p3_xfer_slot *x)
{
	struct p3_changed *c = &x->pub->changed[x->again / 2 % P3_CHANGES];
	struct p3_changed *all = &x->pub->bounds;
	p3_set(&c->from, x->change.from);
	p3_set(&c->to, x->change.to);
	if (x->change.from >= x->change.to)
		return;
	if (x->change.from < p3_get(&all->from))
		p3_set(&all->from, x->change.from);
	if (x->change.to > p3_get(&all->to))
		p3_set(&all->to, x->change.to);
}

void p3_xfer_end_change(struct p3_xfer_slot *x)
{
	p3_release(&x->pub->again, ++x->again); /* XFER.6 */
}
