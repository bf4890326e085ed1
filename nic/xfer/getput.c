/* SPDX-License-Identifier: BSD-3-Clause */
/* Getputs (exchanges) of bytes that long transfers read or write: XFER.5 and XFER.6. */
#include "nic/match/match.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"
#include "shm/atomics.h"

/* ---- edges of pulls ---- */

/*
 * The former bytes at the borders of the part that a pull has written, for exchanges.
 *
 * An exchange (PtlGetPut) of bytes that a pull writes waits for the end of the pull, but
 * for P3_SWAP_NS at most, and not at all while the pull stands still.  Then all bytes of
 * the exchange change on the same side of the transfer, before it or behind it:
 *
 *	the pull has read all	The exchange is done behind the transfer.  The pull never
 *				reads these bytes again, not even with another mover
 *				(kept, kept_end).
 *	the pull has read none	The exchange is done before the transfer, whose bytes
 *				then replace the result.
 *	the pull has read some	The exchange is done before the transfer, too.  The pull
 *				remembers the former content of the last bytes before
 *				its border (struct p3_edge).  The exchange sees that
 *				content; then the pull's bytes replace it again.
 *
 * An exchange has no side if the pull has written some of its bytes without counting
 * them (a slice that was read in vain): the pull reads them again, over the result.  An
 * exchange has no side either if it has bytes at an edge whose former content the pull
 * does not know: the pull has read too little, or a short put, a reply, another pull or
 * an exchange behind this pull has written there since.  Such an exchange waits until
 * more has come, for P3_NO_SIDE_NS at most: after that time the source has
 * stopped, or lies.
 */

/* Exchange the lent bytes in memory for those that lay there before the pull; a second
 * call undoes the first. */
static void edge_exchange(const struct p3_pull *pull, struct p3_edge *e)
{
	unsigned char is[P3_EDGE], was[P3_EDGE];
	uint64_t from = e->lent.from, len = e->lent.to - from;
	p3_region_read(&pull->span.region, pull->span.offset + from, is, len);
	for (uint64_t i = 0; i < len; i++) {
		was[i] = e->under[(from + i) % P3_EDGE];
		e->under[(from + i) % P3_EDGE] = is[i];
	}
	p3_region_write(&pull->span.region, pull->span.offset + from, was, len);
}

/* Return true if the edge has the bytes of the range that lay there before the pull, and
 * no exchange behind the pull has changed any of them. */
static bool edge_can_lend(const struct p3_pull *pull, const struct p3_edge *e,
	uint64_t border, struct p3_range range)
{
	return e->at == border && e->known == border && !pull->mixed &&
	       range.to - range.from <= P3_EDGE && range.from >= pull->kept &&
	       range.to <= pull->kept_end;
}

bool p3_xfer_has_no_side(const struct p3_pull *pull, struct p3_range s)
{
	struct p3_range front = {s.from, pull->done}, back = {pull->end, s.to};
	if (s.to <= pull->done || s.from >= pull->end)
		return false;
	return (s.from < pull->front.at &&
		       !edge_can_lend(pull, &pull->front, pull->done, front)) ||
	       (s.to > pull->back.at &&
		       !edge_can_lend(pull, &pull->back, pull->end, back));
}

static void edge_lend(const struct p3_pull *pull, struct p3_edge *e, uint64_t border,
	struct p3_range range)
{
	if (range.from >= range.to || !edge_can_lend(pull, e, border, range))
		return;
	e->lent = range;
	edge_exchange(pull, e);
}

/* Put back the former bytes at the edges of all pulls, before an exchange of the bytes
 * of a region. */
static P3_RARE void edge_lend_all(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len)
{
	struct p3_range swap;
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (!p3_region_common(r, off, len, &pull->span.region, pull->span.offset,
			    pull->length, &swap))
			continue;
		if (swap.to <= pull->done) {
			if (swap.to > pull->kept)
				pull->kept = swap.to;
		} else if (swap.from >= pull->end) {
			if (swap.from < pull->kept_end)
				pull->kept_end = swap.from;
		} else {
			edge_lend(pull, &pull->front, pull->done,
				(struct p3_range){swap.from, pull->done});
			edge_lend(pull, &pull->back, pull->end,
				(struct p3_range){pull->end, swap.to});
		}
	}
}

static void edge_return(const struct p3_pull *pull, struct p3_edge *e)
{
	if (e->lent.from < e->lent.to)
		edge_exchange(pull, e);
	e->lent = (struct p3_range){0, 0};
}

/* ---- the record of former bytes ---- */

void p3_xfer_wrote(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len)
{
	struct p3_range range;
	if (!p3_region_bounds_meet(n->pulled, r, off, len))
		return;
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (!p3_region_common(r, off, len, &pull->span.region, pull->span.offset,
			    pull->length, &range))
			continue;
		/* Discard the former bytes at an edge if their place was written: an
		 * exchange that is done before the transfer would see bytes older than
		 * that write. */
		struct p3_edge *front = &pull->front, *back = &pull->back;
		if (range.from < front->at && range.to + P3_EDGE > front->at)
			front->known = UINT64_MAX;
		if (range.to > back->at && range.from < back->at + P3_EDGE)
			back->known = UINT64_MAX;
	}
}

/* Mark a new pull, which writes bytes within b, and the pulls that may write the same
 * bytes.  Behind a pull whose bounds hold b all are marked: those that meet b met that
 * pull, too, when the later one of them began. */
static void pull_find_mixed(struct p3_nic *n, struct p3_pull *pull, struct p3_bounds b)
{
	p3_list_each(it, &n->pulls) {
		struct p3_pull *other = p3_item(it, struct p3_pull, link);
		const struct p3_span *s = &other->span;
		if (!p3_region_bounds_meet(b, &s->region, s->offset, other->length))
			continue;
		pull->mixed = other->mixed = true;
		struct p3_bounds o =
			p3_region_bounds(&s->region, s->offset, other->length);
		if (o.lo <= b.lo && b.hi <= o.hi)
			break;
	}
}

void p3_xfer_note_bytes(struct p3_nic *n, struct p3_pull *pull)
{
	const struct p3_span *span = &pull->span;
	struct p3_bounds b = p3_region_bounds(&span->region, span->offset, pull->length);
	if (p3_list_empty(&n->pulls)) {
		n->pulled = b;
		return;
	}
	if (p3_region_bounds_meet(n->pulled, &span->region, span->offset, pull->length))
		pull_find_mixed(n, pull, b);
	n->pulled.lo = b.lo < n->pulled.lo ? b.lo : n->pulled.lo;
	n->pulled.hi = b.hi > n->pulled.hi ? b.hi : n->pulled.hi;
}

#define P3_NO_SIDE_NS 2000000000u
/* ticks without progress after which an exchange does not wait for a peer */
#define P3_STILL_TICKS 10u

/* ---- pulls that write the bytes ---- */

/* Return true if an exchange has to wait for a pull that writes some of the same
 * bytes. */
static bool swap_waits_for_pull(struct p3_nic *n, const struct p3_region *r, uint64_t off,
	uint64_t len, uint64_t waited)
{
	struct p3_range range;
	p3_list_each(it, &n->pulls) {
		const struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (!p3_region_common(r, off, len, &pull->span.region, pull->span.offset,
			    pull->length, &range))
			continue;
		if (p3_xfer_has_no_side(pull, range)) {
			if (waited < P3_NO_SIDE_NS)
				return true;
			continue;
		}
		/* Do not wait if no byte has come for P3_STILL_TICKS of the ticks
		 * here. */
		if (waited < P3_SWAP_NS &&
			!(pull->moved_ns && p3_now_ns() - pull->moved_ns >=
						    P3_STILL_TICKS * n->tick_ns))
			return true;
	}
	return false;
}

/* ---- readers of the bytes ---- */

static bool swap_is_pulled_here(struct p3_nic *n, const struct p3_xfer_slot *x)
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
static bool swap_has_begun(struct p3_nic *n, const struct p3_xfer_slot *x)
{
	if (x->serving || (!x->ahead && (x->produced || x->again)))
		return true;
	if (x->ahead && p3_acquire(&x->peer->theirs->bulk_slot) == p3_xfer_name(x))
		return true; /* XFER.4 */
	return x->peer->index == n->conf.node
		       ? swap_is_pulled_here(n, x)
		       : p3_acquire(&x->peer->theirs->reading) != 0; /* XFER.5 */
}

/* Return true if the peer's firmware has made no pass for P3_STILL_TICKS of this node's
 * ticks: the peer is stopped, or has no CPU. */
static bool swap_is_still(const struct p3_nic *n, struct p3_peer *p)
{
	uint64_t passes = p->wire->passes(n, p), now = p3_now_ns();
	if (p->index == n->conf.node)
		return false;
	if (passes != p->passes || !p->passed_ns)
		p->passed_ns = now;
	p->passes = passes;
	return now - p->passed_ns >= P3_STILL_TICKS * n->tick_ns;
}

/* Tell readers that have begun to read the marked sources which bytes change; and those
 * that may have begun although this node does not know it yet (offered, ahead). */
static void swap_offer_anew(struct p3_nic *n)
{
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->swapped && (x->offered || x->ahead || swap_has_begun(n, x)))
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
static bool swap_mark_sources(
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
static bool swap_readers_move(struct p3_nic *n)
{
	bool any = false;
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		any |= x->swapped && swap_has_begun(n, x) && !swap_is_still(n, x->peer);
	}
	return any;
}

static void swap_announce(struct p3_nic *n)
{
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->swapped)
			p3_set(&x->peer->mine->swapping, 1);
	}
	p3_looks_fence(n, p3_fence_heavy); /* XFER.5 */
	FAULT_POINT("swap.announced");
}

/* Look for readers before swap_announce(), whose heavy fence costs a system call, and
 * again behind it. */
bool p3_xfer_may_swap(struct p3_nic *n, const struct p3_region *r, uint64_t off,
	uint64_t len, uint64_t waited)
{
	bool late = waited >= P3_SWAP_NS,
	     busy = swap_waits_for_pull(n, r, off, len, waited);
	bool any = !busy && swap_mark_sources(n, r, off, len);
	if (any && (late || !(busy = swap_readers_move(n)))) {
		swap_announce(n);
		busy = !late && swap_readers_move(n);
	}
	if (busy) {
		p3_xfer_swapped(n);
		return false;
	}
	if (any)
		swap_offer_anew(n);
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		edge_lend_all(n, r, off, len);
	return true;
}

void p3_xfer_swapped(struct p3_nic *n)
{
	/* Take back the edges that were lent for the exchange, in the reverse order. */
	for (struct p3_link *it = n->pulls.prev; it != &n->pulls; it = it->prev) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		edge_return(pull, &pull->back);
		edge_return(pull, &pull->front);
	}
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->swapped)
			p3_release(&x->peer->mine->swapping, 0); /* XFER.5 */
		if (x->again % 2)
			p3_xfer_end_change(x);
		x->swapped = false;
	}
}

/* ---- getputs that wait, and transfers that let them go first ---- */

bool p3_getput_waits_for(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len)
{
	return p3_region_bounds_meet(n->swapper_wants, r, off, len) &&
	       p3_now_ns() < n->swapper_until;
}

bool p3_getput_precedes(
	struct p3_nic *n, const struct p3_peer *p, const struct p3_hit *hit)
{
	return n->swapper != p &&
	       p3_getput_waits(n, &hit->md->region, hit->offset, hit->mlength);
}

/*
 * Let a getput wait until the transfers on its bytes end, but no longer than P3_SWAP_NS
 * by this node's clock: whether they move is known from the peers' words only, which may
 * be wrong.  No transfer begins on the bytes of the getput of the peer that n->swapper
 * names.  It may name this peer once n->swapper_until has passed: then the time of the
 * getput that was named before is over, and if that one waited in vain, transfers have
 * had time to begin.
 */
static P3_RARE void getput_begin_wait(
	struct p3_nic *n, struct p3_peer *p, const struct p3_hit *hit, uint64_t now)
{
	if (!p->swap_ns || p->swap_pos != p->req_in.pos) {
		p->swap_ns = now;
		p->swap_pos = p->req_in.pos;
	}
	if (n->swapper != p && now >= n->swapper_until) {
		n->swapper = p;
		p3_odd_set(n, P3_ODD_SWAPPER);
		n->swapper_until = p->swap_ns + P3_SWAP_NS;
		n->swapper_wants =
			p3_region_bounds(&hit->md->region, hit->offset, hit->mlength);
	}
}

bool p3_getput_may_go(struct p3_nic *n, struct p3_peer *p, const struct p3_hit *hit)
{
	bool waited = p3_unlikely(p->swap_ns != 0) && p->swap_pos == p->req_in.pos;
	uint64_t now = waited ? p3_now_ns() : 0;
	uint64_t ns = waited ? now - p->swap_ns : 0;
	bool late = ns >= P3_SWAP_NS;
	if (!p3_xfer_may_swap(n, &hit->md->region, hit->offset, hit->mlength, ns)) {
		getput_begin_wait(n, p, hit, now ? now : p3_now_ns());
		return false;
	}
	if (n->swapper == p)
		n->swapper_until = late ? now + P3_SWAP_NS : 0;
	p->swap_ns = 0;
	return true;
}
