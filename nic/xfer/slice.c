/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks before a slice of a pull counts: XFER.1 and XFER.5 to XFER.7. */
#include "nic/xfer/slice.h"

#include "shm/fault.h"
#include "shm/atomics.h"

/* ---- exchanges at the source: XFER.5 ---- */

bool p3_xfer_announce(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	if (pull->may_read || pull->get || p->index == n->conf.node)
		return true;
	if (!pull->announced) {
		pull->announced = true;
		p3_set(&p->mine->reading, ++p->nreading);
		p3_fence_light(n->light); /* XFER.5 */
		FAULT_POINT("reading.announced");
	}
	pull->may_read = !p3_acquire(&p->theirs->swapping); /* XFER.5 */
	return pull->may_read;
}

void p3_xfer_recant(struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	if (pull->announced)
		p3_release(&p->mine->reading, --p->nreading); /* XFER.5 */
	pull->announced = pull->may_read = false;
}

/* ---- the owner withdraws the transfer: XFER.7 ---- */

bool p3_xfer_enter_cci(struct p3_nic *n, const struct p3_pull *pull)
{
	const struct p3_xfer *src = p3_xfer_of_peer(n, pull->peer, pull->xfer_id);
	p3_set(&pull->peer->mine->slice_of, pull->xfer_id);
	p3_fence_light(n->light); /* XFER.7 */
	FAULT_POINT("cci.slice_entered");
	if (p3_likely(p3_get(&src->id) == pull->xfer_id)) /* XFER.7 */
		return true;
	p3_xfer_leave_slice(pull);
	return false;
}

/* ---- the source's bytes have changed: XFER.6 ---- */

bool p3_xfer_retreat(struct p3_pull *pull, uint64_t done, uint64_t end)
{
	if (pull->old_front.to > done) {
		done = done < pull->old_front.from ? done : pull->old_front.from;
		pull->old_front = (struct p3_range){0, 0};
	}
	if (pull->old_back.from < end) {
		end = end > pull->old_back.to ? end : pull->old_back.to;
		pull->old_back = (struct p3_range){0, 0};
	}
	pull->done = done;
	pull->end = end;
	return done >= pull->kept && end <= pull->kept_end;
}

static void widen(struct p3_range *range, struct p3_range by)
{
	bool empty = range->to == 0;
	range->from = empty || by.from < range->from ? by.from : range->from;
	range->to = by.to > range->to ? by.to : range->to;
}

/*
 * React to one change of bytes at the source.  If the pull had read all of the changed
 * bytes, it keeps their old values; if it had read some, it reads these again.  Return
 * false if it must not read them again (see p3_xfer_retreat()).
 */
static bool take_change(struct p3_pull *pull, const struct p3_changed *c)
{
	struct p3_range change = {p3_get(&c->from), p3_get(&c->to)};
	uint64_t done = pull->done, end = pull->end;
	if (change.to > pull->length)
		change.to = pull->length;
	if (change.from >= change.to)
		return true;
	if (change.to <= done) {
		widen(&pull->old_front, change);
		return true;
	}
	if (change.from >= end) {
		widen(&pull->old_back, change);
		return true;
	}
	return p3_xfer_retreat(pull, change.from < done ? change.from : done,
		change.to > end ? change.to : end);
}

enum p3_moved p3_xfer_catch_up(
	struct p3_pull *pull, const struct p3_xfer *src, uint64_t again)
{
	const struct p3_pull before = *pull;
	uint64_t was = pull->again / 2, is = again / 2;
	bool good = true;
	if (is - was > P3_CHANGES)
		good = take_change(pull, &src->bounds);
	else
		for (; was != is; was++)
			good &= take_change(pull, &src->changed[was % P3_CHANGES]);
	p3_load_fence(); /* XFER.6 */
	if (p3_get(&src->again) != again) {
		*pull = before;
		return P3_MOVED_NOTHING;
	}
	pull->again = again;
	return good ? P3_MOVED : P3_MOVE_FAILED;
}

enum p3_moved p3_xfer_read_anew(
	struct p3_pull *pull, const struct p3_xfer *src, uint64_t again)
{
	struct p3_peer *p = pull->peer;
	if (again % 2)
		return P3_MOVED_NOTHING; /* a change goes on: try in the next pass */
	enum p3_moved caught = p3_xfer_catch_up(pull, src, again);
	if (caught != P3_MOVED)
		return caught;
	if (p->bulk == pull) {
		p3_set(&p->mine->bulk_want, pull->end);
		p3_set(&p->mine->bulk_read, pull->done);
		p3_release(&p->mine->bulk_again, again); /* XFER.6 */
	}
	return P3_MOVED_NOTHING;
}

/* ---- slices that count ---- */

enum p3_moved p3_xfer_begin_anew(struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	bool has_one = p->bulk == pull;
	uint64_t read = has_one ? p3_get(&p->mine->bulk_read) : 0;
	if (!p3_xfer_retreat(pull, read > pull->kept ? read : pull->kept,
		    has_one ? pull->end : pull->kept_end))
		return P3_MOVE_FAILED;
	if (has_one && pull->done != read)
		p3_release(&p->mine->bulk_read, pull->done); /* XFER.2 */
	pull->mover = has_one ? P3_MOVE_BULK : P3_MOVE_START;
	return P3_MOVED_NOTHING;
}

void p3_xfer_count_slice(
	struct p3_nic *n, struct p3_pull *pull, uint64_t len, enum p3_counter c)
{
	pull->moved_ns = 0;
	n->bytes += len;
	n->moved += len;
	n->worked = true;
	p3_count(&n->count[c], len);
	if (p3_unlikely(pull->over != NULL))
		p3_count(&pull->peer->mine->pulled, len);
}
