/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges of bytes that long transfers read or write: XFER.5 and XFER.6. */
#include "nic/xfer/swap.h"

#include "nic/run/looks.h"
#include "nic/xfer/edge.h"
#include "nic/xfer/table.h"
#include "shm/fault.h"
#include "shm/atomics.h"

#define P3_NO_SIDE_NS 2000000000u
/* ticks without progress after which an exchange does not wait for a peer */
#define P3_STILL_TICKS 10u

/* ---- pulls that write the bytes ---- */

/* Return true if no byte of the pull has come for P3_STILL_TICKS of this node's
 * ticks. */
static bool is_stuck(const struct p3_nic *n, const struct p3_pull *pull)
{
	return pull->moved_ns &&
	       p3_now_ns() - pull->moved_ns >= P3_STILL_TICKS * n->tick_ns;
}

/* Return true if an exchange has to wait for a pull that writes some of the same
 * bytes. */
static bool holds_up(const struct p3_nic *n, const struct p3_pull *pull,
	struct p3_range swap, uint64_t waited)
{
	if (p3_xfer_has_no_side(pull, swap))
		return waited < P3_NO_SIDE_NS;
	return waited < P3_SWAP_NS && !is_stuck(n, pull);
}

static bool writes_there(struct p3_nic *n, const struct p3_region *r, uint64_t off,
	uint64_t len, uint64_t waited)
{
	struct p3_range range;
	p3_list_each(it, &n->pulls) {
		const struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (p3_region_common(r, off, len, &pull->span.region, pull->span.offset,
			    pull->length, &range) &&
			holds_up(n, pull, range, waited))
			return true;
	}
	return false;
}

/* ---- readers of the bytes ---- */

static bool is_pulled_here(struct p3_nic *n, const struct p3_xfer_slot *x)
{
	p3_list_each(it, &n->pulls) {
		const struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (pull->peer == x->peer && pull->xfer_id == p3_xfer_name(x))
			return true;
	}
	return false;
}

/*
 * Return true if the reader of this source has begun.  A put that its target has not
 * even matched does not hold up an exchange: its request may lie in a lane behind the
 * exchange.
 */
static bool has_begun(struct p3_nic *n, const struct p3_xfer_slot *x)
{
	if (x->serving || x->produced || x->again)
		return true;
	return x->peer->index == n->conf.node
		       ? is_pulled_here(n, x)
		       : p3_acquire(&x->peer->theirs->reading) != 0; /* XFER.5 */
}

/* Return true if the reader may have begun although this node does not know it yet: it
 * then learns of the exchange, for which this node does not wait. */
static bool may_have_begun(struct p3_nic *n, const struct p3_xfer_slot *x)
{
	return x->offered || has_begun(n, x);
}

/* Return true if the peer's firmware has made no pass for P3_STILL_TICKS of this node's
 * ticks: the peer is stopped, or has no CPU. */
static bool is_still(const struct p3_nic *n, struct p3_peer *p)
{
	uint64_t passes = p->wire->passes(n, p), now = p3_now_ns();
	if (p->index == n->conf.node)
		return false;
	if (passes != p->passes || !p->passed_ns)
		p->passed_ns = now;
	p->passes = passes;
	return now - p->passed_ns >= P3_STILL_TICKS * n->tick_ns;
}

/* Tell readers that have begun to read the marked sources which bytes change. */
static void offer_anew(struct p3_nic *n)
{
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->swapped && may_have_begun(n, x))
			p3_xfer_begin_change(x, x->change);
	}
	p3_fence(); /* XFER.6: before the bytes change */
	p3_list_each(src, &n->sources) {
		struct p3_xfer_slot *x = p3_item(src, struct p3_xfer_slot, link);
		if (x->again % 2)
			p3_xfer_log_change(x);
	}
}

/* Mark the sources that an exchange changes.  Return false if there are none. */
static bool mark_sources(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len)
{
	bool any = false;
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		x->swapped =
			!x->releasing && p3_region_common(r, off, len, &x->span.region,
						 x->span.offset, x->length, &x->change);
		any |= x->swapped;
	}
	return any;
}

/* Return true if a marked source is being read by a peer whose firmware runs, so that
 * it will soon have finished. */
static bool readers_move(struct p3_nic *n)
{
	bool any = false;
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		any |= x->swapped && has_begun(n, x) && !is_still(n, x->peer);
	}
	return any;
}

static void announce_swap(struct p3_nic *n)
{
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->swapped)
			p3_set(&x->peer->mine->swapping, 1);
	}
	p3_looks_fence(n, p3_fence_heavy); /* XFER.5 */
	FAULT_POINT("swap.announced");
}

/* Look for readers before announce_swap(), whose heavy fence costs a system call, and
 * again behind it. */
bool p3_xfer_may_swap(struct p3_nic *n, const struct p3_region *r, uint64_t off,
	uint64_t len, uint64_t waited)
{
	bool late = waited >= P3_SWAP_NS, busy = writes_there(n, r, off, len, waited);
	bool any = !busy && mark_sources(n, r, off, len);
	if (any && (late || !(busy = readers_move(n)))) {
		announce_swap(n);
		busy = !late && readers_move(n);
	}
	if (busy) {
		p3_xfer_swapped(n);
		return false;
	}
	if (any)
		offer_anew(n);
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		p3_xfer_lend_edges(n, r, off, len);
	return true;
}

void p3_xfer_swapped(struct p3_nic *n)
{
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		p3_xfer_return_edges(n);
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->swapped)
			p3_release(&x->peer->mine->swapping, 0); /* XFER.5 */
		if (x->again % 2)
			p3_xfer_end_change(x);
		x->swapped = false;
	}
}
