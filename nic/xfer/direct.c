/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct transfers: out of the owner's shared heap, or inside of this node. */
#include "nic/xfer/movers.h"

#include "nic/wire/shm.h"
#include "nic/xfer/edge.h"
#include "shm/fault.h"
#include "shm/heap.h"

#include <unistd.h>

#define P3_PIECES_MOST 128u /* pieces of the region in one slice */

/* Give up the heap, since there is no memory for its pages.  Continue by cma; where
 * that is not possible, or nothing has been read, choose a mover anew. */
static enum p3_moved heap_failed(struct p3_nic *n, struct p3_pull *pull)
{
	pull->heap = 0;
	pull->addr = p3_get(&p3_xfer_of_peer(n, pull->peer, pull->xfer_id)->addr);
	if (pull->done && !p3_xfer_may_cma(pull))
		return p3_xfer_begin_anew(pull);
	pull->mover = pull->done ? P3_MOVE_CMA : P3_MOVE_START;
	return P3_MOVED_NOTHING;
}

#if defined(P3_TSAN) || defined(P3_VALGRIND)
/* Copy a slice by a system call, which the checkers do not follow.  The owner may write
 * to bytes that it has taken back while this node still copies them: XFER.1 detects
 * that, but the checkers would report a race. */
static uint64_t take_slice(struct p3_pull *pull, const char *from, uint64_t len)
{
	struct iovec here[P3_PIECES_MOST], there = {(void *)(uintptr_t)from, 0};
	unsigned k = p3_region_iovecs(&pull->span.region, pull->span.offset + pull->done,
		len, here, P3_PIECES_MOST);
	for (unsigned i = 0; i < k; i++)
		there.iov_len += here[i].iov_len;
	ssize_t got = p3_shm_read((uint32_t)getpid(), here, k, &there, 1);
	if (got > 0)
		return (uint64_t)got;
	p3_region_write(&pull->span.region, pull->span.offset + pull->done, from, len);
	return len;
}
#else
static uint64_t take_slice(struct p3_pull *pull, const char *from, uint64_t len)
{
	p3_region_write(&pull->span.region, pull->span.offset + pull->done, from, len);
	return len;
}
#endif

/* Move a slice from the owner's shared heap.  The owner names the place, so the view of
 * the heap is asked whether the bytes lie inside it. */
static enum p3_moved move_from_heap(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_heap_view *view = &pull->peer->heap;
	uint64_t piece = pull->length - pull->done, off = pull->heap - 1;
	if (!p3_xfer_announce(n, pull))
		return P3_MOVED_NOTHING;
	if (!p3_heap_view_holds(view, off, pull->length))
		return P3_MOVE_FAILED;
	if (piece > P3_SLICE_LEAST)
		piece = P3_SLICE_LEAST;
	if (!p3_heap_view_reach(view, off + pull->done, piece))
		return heap_failed(n, pull);
	if (!p3_xfer_enter_slice(n, pull))
		return P3_MOVE_FAILED;
	uint64_t was = pull->front.at;
	p3_xfer_write_front(pull, pull->done + piece);
	uint64_t got = take_slice(pull, view->base + off + pull->done, piece);
	p3_xfer_leave_slice(pull);
	if (got < piece)
		p3_xfer_wrote_less(pull, was, pull->done + got);
	FAULT_POINT("heap.copied");
	enum p3_moved good = p3_xfer_judge(n, pull);
	if (good != P3_MOVED)
		return good;
	pull->done += got;
	p3_xfer_count_slice(n, pull, got, P3_C_DIRECT_BYTES);
	return P3_MOVED;
}

enum p3_moved p3_xfer_move_direct(struct p3_nic *n, struct p3_pull *pull)
{
	if (pull->peer->index != n->conf.node)
		return move_from_heap(n, pull);
	const struct p3_xfer_slot *x = &n->xfer[(uint32_t)pull->xfer_id];
	if (!x->in_use || p3_get(&x->pub->id) != pull->xfer_id)
		return P3_MOVE_FAILED;
	if (p3_unlikely(x->again != pull->again)) {
		if (p3_xfer_read_anew(pull, x->pub, x->again) == P3_MOVE_FAILED)
			return P3_MOVE_FAILED;
		if (pull->done == pull->end)
			return P3_MOVED;
	}
	uint64_t piece;
	char *from = p3_region_at(&x->span.region, x->span.offset + pull->done, &piece);
	if (piece > pull->length - pull->done)
		piece = pull->length - pull->done;
	if (piece > P3_SLICE_LEAST)
		piece = P3_SLICE_LEAST;
	p3_xfer_write_front(pull, pull->done + piece);
	p3_region_write(&pull->span.region, pull->span.offset + pull->done, from, piece);
	pull->done += piece;
	p3_xfer_count_slice(n, pull, piece, P3_C_DIRECT_BYTES);
	return P3_MOVED;
}
