/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fetches: the wire reads slices of the owner's memory into memory of its own.
 *
 * A pull has several fetches under way, and takes them in order.  A slice is copied to
 * its place only when it counts, so no exchange ever finds bytes that do not.  It counts
 * if the slot that the wire has read behind the bytes (WIRE F) has the transfer's id and
 * the value of again that the pull knows (FAR.2).  If again differs, the pull waits until
 * the slot in the peer's image shows the change, too, and then goes back as other readers
 * do.
 */
#include "nic/xfer/movers.h"

#include "nic/wire/wire.h"
#include "nic/xfer/edge.h"

#define P3_FETCHES          4u       /* under way for a pull */
#define P3_FETCH_SLICE      32768u   /* shortest one, of a longer transfer */
#define P3_FETCH_FAILS      3u       /* then the pull uses a window */
#define P3_FETCH_NO_ROOM_NS 5000000u /* longest time without a fetch before that */

bool p3_xfer_may_fetch(const struct p3_pull *pull)
{
	const struct p3_wire *wire = pull->peer->wire;
	return wire->can_fetch && pull->length >= P3_FETCH_LEAST &&
	       pull->failures < P3_FETCH_FAILS &&
	       wire->can_fetch(pull->peer, pull->xfer_id);
}

void p3_xfer_leave_fetches(struct p3_pull *pull)
{
	while (pull->fetches) {
		struct p3_fetch *f = pull->fetches;
		pull->fetches = f->next;
		pull->peer->wire->let_go(pull->peer, f);
	}
}

/* Fetch once more what does not count yet. */
static void fetch_anew(struct p3_pull *pull)
{
	p3_xfer_leave_fetches(pull);
	pull->asked = pull->done;
}

/* Continue with a window. */
static enum p3_moved give_up(struct p3_pull *pull)
{
	fetch_anew(pull);
	pull->failures = P3_FETCH_FAILS;
	return p3_xfer_begin_anew(pull);
}

/* Take the first fetch out of the list, and count its bytes. */
static enum p3_moved take_slice(
	struct p3_nic *n, struct p3_pull *pull, struct p3_fetch *f)
{
	uint64_t len = f->len;
	p3_xfer_write_front(pull, f->at + len);
	p3_region_write(&pull->span.region, pull->span.offset + f->at, f->bytes, len);
	pull->done += len;
	pull->fetches = f->next;
	pull->peer->wire->let_go(pull->peer, f);
	p3_count(&n->wire_count[P3_W_FETCHED], len);
	if (pull->over)
		p3_count(&pull->peer->mine->pulled, len);
	pull->moved_ns = 0;
	n->bytes += len;
	n->moved += len;
	n->worked = true;
	return P3_MOVED;
}

/* Look whether the slice counts, by the slot that was read behind it. */
static enum p3_moved judge(
	struct p3_nic *n, struct p3_pull *pull, const struct p3_xfer *slot)
{
	const struct p3_xfer *known = p3_xfer_of_peer(n, pull->peer, pull->xfer_id);
	if (p3_get(&slot->id) != pull->xfer_id) /* FAR.2 */
		return P3_MOVE_FAILED;
	/* A fetch may have ended long ago: the owner has withdrawn the transfer since. */
	if (p3_get(&known->id) != pull->xfer_id)
		return P3_MOVE_FAILED;
	if (p3_likely(p3_get(&slot->again) == pull->again))
		return P3_MOVED;
	enum p3_moved anew = P3_MOVED_NOTHING;
	if (p3_get(&known->again) != pull->again)
		anew = p3_xfer_read_anew(pull, known, p3_get(&known->again));
	fetch_anew(pull);
	return anew;
}

static enum p3_moved take_first(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_fetch *f = pull->fetches;
	if (!f || f->state == P3_FETCH_UNDER_WAY)
		return P3_MOVED_NOTHING;
	if (f->state == P3_FETCH_FAILED) {
		p3_count(&n->wire_count[P3_W_FETCHES_FAILED], 1);
		if (++pull->failures == P3_FETCH_FAILS)
			return give_up(pull);
		fetch_anew(pull);
		return P3_MOVED_NOTHING;
	}
	enum p3_moved good = judge(n, pull, f->slot);
	return good == P3_MOVED ? take_slice(n, pull, f) : good;
}

/* Return the end of the next fetch: a quarter of the transfer at least, and a small rest
 * with it. */
static uint64_t end_of_next(const struct p3_pull *pull)
{
	uint64_t len = p3_round_up(pull->length / P3_FETCHES, P3_PAGE);
	uint64_t rest = pull->end - pull->asked;
	if (len < P3_FETCH_SLICE)
		len = P3_FETCH_SLICE;
	if (len > P3_FETCH_MOST)
		len = P3_FETCH_MOST;
	return rest < len + P3_FETCH_SLICE && rest <= P3_FETCH_MOST ? pull->end
								    : pull->asked + len;
}

/* Begin the next fetch. */
static bool ask(struct p3_pull *pull, struct p3_fetch **last)
{
	uint64_t to = end_of_next(pull), from = pull->asked;
	struct p3_fetch *f =
		pull->peer->wire->fetch(pull->peer, pull->xfer_id, from, to - from);
	if (!f)
		return false;
	f->next = NULL;
	*last = f;
	pull->asked = to;
	return true;
}

static void ask_all(struct p3_pull *pull)
{
	struct p3_fetch **last = &pull->fetches;
	uint32_t under_way = 0;
	if (pull->asked < pull->done)
		pull->asked = pull->done;
	for (; *last; last = &(*last)->next)
		under_way++;
	while (under_way++ < P3_FETCHES && pull->asked < pull->end && ask(pull, last))
		last = &(*last)->next;
}

enum p3_moved p3_xfer_move_fetch(struct p3_nic *n, struct p3_pull *pull)
{
	if (!p3_xfer_announce(n, pull))
		return P3_MOVED_NOTHING;
	enum p3_moved moved = take_first(n, pull);
	if (moved == P3_MOVE_FAILED || pull->mover != P3_MOVE_FETCH)
		return moved;
	ask_all(pull);
	if (!pull->fetches && pull->done < pull->end && pull->moved_ns &&
		p3_now_ns() - pull->moved_ns > P3_FETCH_NO_ROOM_NS)
		return give_up(pull);
	return moved;
}
