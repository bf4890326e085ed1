/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slice - slices of a pull: the checks before a slice counts
 *
 * The movers (window.c, cma.c, direct.c) copy a slice, then ask p3_xfer_judge() whether
 * it counts; fetch.c judges by the slot that was read behind the bytes.  Only the lease
 * holder calls these functions.  Their state is struct p3_pull, and this node's words to
 * the peer (p->mine).  XFER.1 to XFER.7 are edges of xfer.h.
 */
#ifndef P3_NIC_XFER_SLICE_H
#define P3_NIC_XFER_SLICE_H

#include "nic/state.h"
#include "nic/xfer/slices.h"
#include "nic/xfer/table.h"
#include "shm/atomics.h"

/* The result of an attempt to move a slice.  A transfer that failed cannot go on. */
enum p3_moved { P3_MOVED_NOTHING, P3_MOVED, P3_MOVE_FAILED };

/* Tell a put's source that this node reads the bytes from its memory, until the pull
 * ends.  Return false if nothing may be read now, since an exchange at the source
 * changes bytes. */
bool p3_xfer_announce(struct p3_nic *n, struct p3_pull *pull);
/* Tell the put's source that the pull reads no more, after p3_xfer_announce(). */
void p3_xfer_recant(struct p3_pull *pull);
/* Count only the bytes before done, and from end on, as read.  If part of an older
 * change at the source (old_front, old_back) is then read again, have all bytes of the
 * change read again: otherwise the pull would have half of the change.  Return false if
 * these bytes include some before kept, or from kept_end on, which must not be read
 * again. */
bool p3_xfer_retreat(struct p3_pull *pull, uint64_t done, uint64_t end);
/*
 * Apply each change that the source has logged since the pull's value of again, up to
 * the source's present one, which is even.  Then look whether the source's again has
 * moved on: if so, the log may have been overwritten meanwhile, so return
 * P3_MOVED_NOTHING and leave the pull unchanged.
 */
P3_RARE enum p3_moved p3_xfer_catch_up(
	struct p3_pull *pull, const struct p3_xfer *src, uint64_t again);
/* React to a change of the source's bytes since the last slice. */
P3_RARE enum p3_moved p3_xfer_read_anew(
	struct p3_pull *pull, const struct p3_xfer *src, uint64_t again);
/* Give up the pull's mover.  If the pull has a window, continue behind the last byte
 * that was read from the window.  If not, count only the kept bytes as read, and choose
 * a mover anew. */
enum p3_moved p3_xfer_begin_anew(struct p3_pull *pull);
/* Begin to read a slice of the owner's memory, for a pull of CCI.  Return false if the
 * owner has withdrawn the transfer. */
P3_RARE bool p3_xfer_enter_cci(struct p3_nic *n, const struct p3_pull *pull);
/* Count the bytes of a slice for the pass, and for the mover's counter c. */
void p3_xfer_count_slice(
	struct p3_nic *n, struct p3_pull *pull, uint64_t len, enum p3_counter c);

/*
 * Look, before a slice is read from the owner's memory, whether the owner still offers
 * the transfer; return false if not.  After the copy call p3_xfer_leave_slice().  The
 * owner of a put or get waits for its end before the bytes may change; that of an RMA
 * operation may withdraw it at any time, and then waits for the slice that it finds.
 */
static inline bool p3_xfer_enter_slice(struct p3_nic *n, const struct p3_pull *pull)
{
	return p3_likely(!pull->over) || p3_xfer_enter_cci(n, pull);
}

static inline void p3_xfer_leave_slice(const struct p3_pull *pull)
{
	if (p3_unlikely(pull->over != NULL))
		p3_release(&pull->peer->mine->slice_of, 0); /* XFER.7 */
}

/* Check, before a slice counts, that the owner still offers the transfer (its slot has
 * the same id), and has not changed the bytes since the pull's last look (the slot's word
 * "again" has the same value). */
static inline enum p3_moved p3_xfer_judge(struct p3_nic *n, struct p3_pull *pull)
{
	const struct p3_xfer *src = p3_xfer_of_peer(n, pull->peer, pull->xfer_id);
	p3_load_fence(); /* XFER.1, XFER.6 */
	uint64_t again = p3_acquire(&src->again);
	if (p3_get(&src->id) != pull->xfer_id)
		return P3_MOVE_FAILED;
	if (p3_likely(again == pull->again))
		return P3_MOVED;
	return p3_xfer_read_anew(pull, src, again);
}

#endif
