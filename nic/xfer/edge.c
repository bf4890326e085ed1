/* SPDX-License-Identifier: BSD-3-Clause */
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
 * more has come, for P3_NO_SIDE_NS (swap.c) at most: after that time the source has
 * stopped, or lies.
 */
#include "nic/xfer/edge.h"

/* Exchange the lent bytes in memory for those that lay there before the pull; a second
 * call undoes the first. */
static void exchange_edge(const struct p3_pull *pull, struct p3_edge *e)
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
static bool can_lend(const struct p3_pull *pull, const struct p3_edge *e, uint64_t border,
	struct p3_range range)
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
		       !can_lend(pull, &pull->front, pull->done, front)) ||
	       (s.to > pull->back.at && !can_lend(pull, &pull->back, pull->end, back));
}

static void lend_edge(const struct p3_pull *pull, struct p3_edge *e, uint64_t border,
	struct p3_range range)
{
	if (range.from >= range.to || !can_lend(pull, e, border, range))
		return;
	e->lent = range;
	exchange_edge(pull, e);
}

static void come_between_one(struct p3_pull *pull, struct p3_range swap)
{
	if (swap.to <= pull->done) {
		pull->kept = swap.to > pull->kept ? swap.to : pull->kept;
	} else if (swap.from >= pull->end) {
		pull->kept_end = swap.from < pull->kept_end ? swap.from : pull->kept_end;
	} else {
		lend_edge(pull, &pull->front, pull->done,
			(struct p3_range){swap.from, pull->done});
		lend_edge(pull, &pull->back, pull->end,
			(struct p3_range){pull->end, swap.to});
	}
}

void p3_xfer_lend_edges(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len)
{
	struct p3_range swap;
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (p3_region_common(r, off, len, &pull->span.region, pull->span.offset,
			    pull->length, &swap))
			come_between_one(pull, swap);
	}
}

static void return_edge(const struct p3_pull *pull, struct p3_edge *e)
{
	if (e->lent.from < e->lent.to)
		exchange_edge(pull, e);
	e->lent = (struct p3_range){0, 0};
}

void p3_xfer_return_edges(struct p3_nic *n)
{
	for (struct p3_link *it = n->pulls.prev; it != &n->pulls; it = it->prev) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		return_edge(pull, &pull->back);
		return_edge(pull, &pull->front);
	}
}

/* ---- the record of former bytes ---- */

void p3_xfer_remember(
	const struct p3_pull *pull, struct p3_edge *e, struct p3_range range)
{
	unsigned char is[P3_EDGE];
	uint64_t len = range.to - range.from;
	p3_region_read(&pull->span.region, pull->span.offset + range.from, is, len);
	for (uint64_t i = 0; i < len; i++)
		e->under[(range.from + i) % P3_EDGE] = is[i];
}

/* Discard the former bytes at an edge if another operation has written to their place: an
 * exchange that is done before the transfer would see bytes older than that write. */
static void forget_edges(struct p3_pull *pull, struct p3_range range)
{
	struct p3_edge *front = &pull->front, *back = &pull->back;
	if (range.from < front->at && range.to + P3_EDGE > front->at)
		front->known = UINT64_MAX;
	if (range.to > back->at && range.from < back->at + P3_EDGE)
		back->known = UINT64_MAX;
}

void p3_xfer_wrote(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len)
{
	struct p3_range range;
	if (!p3_region_bounds_meet(n->pulled, r, off, len))
		return;
	p3_list_each(it, &n->pulls) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (p3_region_common(r, off, len, &pull->span.region, pull->span.offset,
			    pull->length, &range))
			forget_edges(pull, range);
	}
}

/* Mark the new pull and each other one as mixed if both may write the same bytes. */
static P3_RARE void mark_mixed(
	struct p3_nic *n, struct p3_pull *pull, struct p3_bounds bounds)
{
	p3_list_each(it, &n->pulls) {
		struct p3_pull *other = p3_item(it, struct p3_pull, link);
		if (p3_region_bounds_meet(bounds, &other->span.region, other->span.offset,
			    other->length))
			pull->mixed = other->mixed = true;
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
		mark_mixed(n, pull, b);
	n->pulled.lo = b.lo < n->pulled.lo ? b.lo : n->pulled.lo;
	n->pulled.hi = b.hi > n->pulled.hi ? b.hi : n->pulled.hi;
}
