/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers through a window: the reader asks for one, and copies slices out of it. */
#include "nic/xfer/movers.h"

#include "nic/run/run.h"
#include "nic/xfer/edge.h"
#include "shm/fault.h"
#include "shm/seg.h"

#include <errno.h>

void p3_xfer_leave_window(struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	if (p->bulk != pull)
		return;
	p->bulk = NULL;
	p3_release(&p->mine->bulk_slot, 0); /* XFER.4 */
	FAULT_POINT("window.left");
}

enum p3_moved p3_xfer_enter_window(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	const struct p3_xfer *src = p3_xfer_of_peer(n, p, pull->xfer_id);
	uint64_t again = p3_acquire(&src->again); /* XFER.6 */
	if (p3_unlikely(pull->done || pull->end < pull->length)) {
		enum p3_moved caught =
			again % 2 ? P3_MOVED_NOTHING : p3_xfer_catch_up(pull, src, again);
		if (caught != P3_MOVED)
			return caught;
	}
	p->bulk = pull;
	pull->mover = P3_MOVE_BULK;
	/* While the bytes change, again is odd.  With the even value before it,
	 * p3_xfer_judge() rejects all bytes that are read until the change is over. */
	pull->again = again & ~UINT64_C(1);
	p3_set(&p->mine->bulk_want, pull->end);
	p3_set(&p->mine->bulk_read, pull->done);
	p3_set(&p->mine->bulk_again, pull->again);
	FAULT_POINT("window.wanted");
	p3_release(&p->mine->bulk_slot, pull->xfer_id); /* XFER.4 */
	FAULT_POINT("window.entered");
	p3_looks_add(n, p);
	return P3_MOVED;
}

/* Return true if a window of the peer lies in memory that can be read without a fault.
 * Remember P3_WINDOWS checked windows, since a node has no more.  If a peer names more
 * windows, this node checks them again and again. */
static bool reach_window(struct p3_peer *p, uint64_t off)
{
	uint32_t known = p->nwindows < P3_WINDOWS ? p->nwindows : P3_WINDOWS;
	for (uint32_t i = 0; i < known; i++)
		if (p->window_at[i] == off)
			return true;
	if (p3_seg_reach(p->base + off, P3_WINDOW_LEN) == -EFAULT)
		return false;
	p->window_at[p->nwindows++ % P3_WINDOWS] = off;
	return true;
}

static bool window_ok(const struct p3_nic *n, struct p3_peer *p, uint64_t off)
{
	return off >= n->layout.ctl_len && off <= n->layout.seg_len - P3_WINDOW_LEN &&
	       off % P3_PAGE == 0 && reach_window(p, off);
}

/*
 * While the window is empty, read the last bytes of the rest from the owner's memory.
 * Read at most half of the rest, since the owner meanwhile goes on filling the window
 * from the front; read all of the rest if it is at most P3_SLICE_LEAST.
 */
static enum p3_moved move_tail(struct p3_nic *n, struct p3_pull *pull)
{
	uint64_t rest = pull->end - pull->done, piece = rest / 2 / P3_PAGE * P3_PAGE;
	if (!p3_xfer_may_cma(pull) || pull->span.region.iov || !p3_xfer_announce(n, pull))
		return P3_MOVED_NOTHING;
	uint64_t most = p3_slices_length(&n->slices);
	if (piece > most)
		piece = most;
	if (rest <= P3_SLICE_LEAST)
		piece = rest;
	if (!p3_xfer_enter_slice(n, pull))
		return P3_MOVE_FAILED;
	uint64_t was = pull->back.at;
	p3_xfer_write_back(pull, pull->end - piece);
	ssize_t got = p3_xfer_read_there(n, pull, pull->end - piece, piece);
	p3_xfer_leave_slice(pull);
	if (got <= 0) {
		pull->back.at = was;
		return p3_xfer_cma_failed(n, pull, got);
	}
	if ((uint64_t)got < piece)
		return P3_MOVED_NOTHING;
	enum p3_moved good = p3_xfer_judge(n, pull);
	if (good != P3_MOVED)
		return good;
	pull->end -= piece;
	p3_set(&pull->peer->mine->bulk_want, pull->end);
	FAULT_POINT("window.tail_taken");
	p3_xfer_count_slice(n, pull, piece, P3_C_CMA_BYTES);
	return P3_MOVED;
}

enum p3_moved p3_xfer_move_window(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	const struct p3_xfer *src = p3_xfer_of_peer(n, p, pull->xfer_id);
	uint64_t produced = p3_acquire(&src->produced); /* XFER.2 */
	uint64_t window = p3_get(&src->window);
	enum p3_moved good = p3_xfer_judge(n, pull);
	if (good != P3_MOVED)
		return good;
	if (produced <= pull->done)
		return move_tail(n, pull);
	if (produced > pull->length || !window_ok(n, p, window))
		return P3_MOVE_FAILED;
	if (produced > pull->end)
		produced = pull->end;
	while (pull->done < produced && n->bytes < P3_SLICE_LEAST) {
		uint64_t piece = P3_CHUNK_LEN - pull->done % P3_CHUNK_LEN;
		if (piece > produced - pull->done)
			piece = produced - pull->done;
		p3_xfer_write_front(pull, pull->done + piece);
		p3_region_write(&pull->span.region, pull->span.offset + pull->done,
			p->image + window + pull->done % P3_WINDOW_LEN, piece);
		FAULT_POINT("window.copied");
		if ((good = p3_xfer_judge(n, pull)) != P3_MOVED)
			return good;
		pull->done += piece;
		p3_xfer_count_slice(n, pull, piece, P3_C_BULK_BYTES);
		p3_release(&p->mine->bulk_read, pull->done); /* XFER.2 */
		FAULT_POINT("window.read");
	}
	p3_looks_add(n, p);
	return P3_MOVED;
}
