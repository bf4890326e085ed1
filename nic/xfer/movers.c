/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The movers of a pull, and the checks before a slice counts: XFER.1 and XFER.5 to
 * XFER.7.
 *
 *	window	the owner copies chunks into a window of its published segment, the reader
 *		copies them out at the same time.  Each ordered pair of nodes has at most
 *		one such transfer.
 *	cma	the reader copies from the owner's address space, by process_vm_readv.
 *	direct	the reader copies from the owner's shared heap, which it has mapped
 *		(shm/heap.h); or the transfer is from a node to itself.
 *	fetch	the wire reads the owner's memory into memory of its own, several slices
 *		at a time, and the reader copies them from there.
 *
 * A mover copies a slice, then asks slice_judge() whether it counts; a fetch is judged by
 * the slot that was read behind the bytes.
 */
#include "nic/xfer/movers.h"

#include "nic/proto/proto.h"
#include "nic/run/run.h"
#include "nic/wire/wire.h"
#include "shm/fault.h"
#include "shm/atomics.h"
#include "shm/heap.h"
#include "shm/seg.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- the record of former bytes, for exchanges (getput.c) ---- */

/* Store in the edge the present bytes of a range. */
static void edge_remember(
	const struct p3_pull *pull, struct p3_edge *e, struct p3_range range)
{
	unsigned char is[P3_EDGE];
	uint64_t len = range.to - range.from;
	p3_region_read(&pull->span.region, pull->span.offset + range.from, is, len);
	for (uint64_t i = 0; i < len; i++)
		e->under[(range.from + i) % P3_EDGE] = is[i];
}

/* Before the pull writes from the front up to byte to, remember the bytes that lie there.
 * The slice that reaches the pull's end needs no such record: the pull ends with that
 * slice, so no exchange comes between. */
static inline void edge_write_front(struct p3_pull *pull, uint64_t to)
{
	struct p3_edge *e = &pull->front;
	if (to <= e->at)
		return;
	bool whole = to - e->at >= P3_EDGE;
	if (to < pull->end && (whole || e->known == e->at)) {
		edge_remember(
			pull, e, (struct p3_range){whole ? to - P3_EDGE : e->at, to});
		e->known = to;
	}
	e->at = to;
}

/* Correct the front after a slice that has written only up to byte to.  was is the value
 * of the front before edge_write_front(). */
static inline void edge_wrote_less(struct p3_pull *pull, uint64_t was, uint64_t to)
{
	pull->front.at = to > was ? to : was;
}

/* Do as edge_write_front() before the pull writes at the back, from byte from on. */
static inline void edge_write_back(struct p3_pull *pull, uint64_t from)
{
	struct p3_edge *e = &pull->back;
	if (from >= e->at)
		return;
	bool whole = e->at - from >= P3_EDGE;
	if (from > pull->done && (whole || e->known == e->at)) {
		edge_remember(
			pull, e, (struct p3_range){from, whole ? from + P3_EDGE : e->at});
		e->known = from;
	}
	e->at = from;
}

/* ---- exchanges at the source: XFER.5 ---- */

/* Tell a put's source that this node reads the bytes from its memory, until the pull
 * ends.  Return false if nothing may be read now, since an exchange at the source
 * changes bytes. */
static bool slice_announce(struct p3_nic *n, struct p3_pull *pull)
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

static inline void slice_leave(const struct p3_pull *pull)
{
	if (p3_unlikely(pull->region != 0))
		p3_release(&pull->peer->mine->slice_of, 0); /* XFER.7 */
}

/* Begin to read a slice of the owner's memory, for a pull of CCI.  Return false if the
 * owner has withdrawn the transfer. */
static P3_RARE bool slice_enter_cci(struct p3_nic *n, const struct p3_pull *pull)
{
	const struct p3_xfer *src = p3_xfer_of_peer(n, pull->peer, pull->xfer_id);
	p3_set(&pull->peer->mine->slice_of, pull->xfer_id);
	p3_fence_light(n->light); /* XFER.7 */
	FAULT_POINT("cci.slice_entered");
	if (p3_likely(p3_get(&src->id) == pull->xfer_id)) /* XFER.7 */
		return true;
	slice_leave(pull);
	return false;
}

/*
 * Look, before a slice is read from the owner's memory, whether the owner still offers
 * the transfer; return false if not.  After the copy call slice_leave().  The
 * owner of a put or get waits for its end before the bytes may change; that of an RMA
 * operation may withdraw it at any time, and then waits for the slice that it finds.
 */
static inline bool slice_enter(struct p3_nic *n, const struct p3_pull *pull)
{
	return p3_likely(!pull->region) || slice_enter_cci(n, pull);
}

/* ---- the source's bytes have changed: XFER.6 ---- */

/* Count only the bytes before done, and from end on, as read.  If part of an older
 * change at the source (old_front, old_back) is then read again, have all bytes of the
 * change read again: otherwise the pull would have half of the change.  Return false if
 * these bytes include some before kept, or from kept_end on, which must not be read
 * again. */
static bool slice_retreat(struct p3_pull *pull, uint64_t done, uint64_t end)
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

static void slice_widen(struct p3_range *range, struct p3_range by)
{
	bool empty = range->to == 0;
	range->from = empty || by.from < range->from ? by.from : range->from;
	range->to = by.to > range->to ? by.to : range->to;
}

/*
 * React to one change of bytes at the source.  If the pull had read all of the changed
 * bytes, it keeps their old values; if it had read some, it reads these again.  Return
 * false if it must not read them again (see slice_retreat()).
 */
static bool slice_take_change(struct p3_pull *pull, const struct p3_changed *c)
{
	struct p3_range change = {p3_get(&c->from), p3_get(&c->to)};
	uint64_t done = pull->done, end = pull->end;
	if (change.to > pull->length)
		change.to = pull->length;
	if (change.from >= change.to)
		return true;
	if (change.to <= done) {
		slice_widen(&pull->old_front, change);
		return true;
	}
	if (change.from >= end) {
		slice_widen(&pull->old_back, change);
		return true;
	}
	return slice_retreat(pull, change.from < done ? change.from : done,
		change.to > end ? change.to : end);
}

/*
 * Apply each change that the source has logged since the pull's value of again, up to
 * the source's present one, which is even.  Then look whether the source's again has
 * moved on: if so, the log may have been overwritten meanwhile, so return
 * P3_MOVED_NOTHING and leave the pull unchanged.
 */
static P3_RARE enum p3_moved slice_catch_up(
	struct p3_pull *pull, const struct p3_xfer *src, uint64_t again)
{
	const struct p3_pull before = *pull;
	uint64_t was = pull->again / 2, is = again / 2;
	bool good = true;
	if (is - was > P3_CHANGES)
		good = slice_take_change(pull, &src->bounds);
	else
		for (; was != is; was++)
			good &= slice_take_change(pull, &src->changed[was % P3_CHANGES]);
	p3_load_fence(); /* XFER.6 */
	if (p3_get(&src->again) != again) {
		*pull = before;
		return P3_MOVED_NOTHING;
	}
	pull->again = again;
	return good ? P3_MOVED : P3_MOVE_FAILED;
}

/* React to a change of the source's bytes since the last slice. */
static P3_RARE enum p3_moved slice_read_anew(
	struct p3_pull *pull, const struct p3_xfer *src, uint64_t again)
{
	struct p3_peer *p = pull->peer;
	if (again % 2)
		return P3_MOVED_NOTHING; /* a change goes on: try in the next pass */
	enum p3_moved caught = slice_catch_up(pull, src, again);
	if (caught != P3_MOVED)
		return caught;
	if (p->bulk == pull) {
		p3_set(&p->mine->bulk_want, pull->end);
		p3_set(&p->mine->bulk_read, pull->done);
		p3_release(&p->mine->bulk_again, again); /* XFER.6 */
	}
	return P3_MOVED_NOTHING;
}

/* Check, before a slice counts, that the owner still offers the transfer (its slot has
 * the same id), and has not changed the bytes since the pull's last look (the slot's word
 * "again" has the same value). */
static inline enum p3_moved slice_judge(struct p3_nic *n, struct p3_pull *pull)
{
	const struct p3_xfer *src = p3_xfer_of_peer(n, pull->peer, pull->xfer_id);
	p3_load_fence(); /* XFER.1, XFER.6 */
	uint64_t again = p3_acquire(&src->again);
	if (p3_get(&src->id) != pull->xfer_id)
		return P3_MOVE_FAILED;
	if (p3_likely(again == pull->again))
		return P3_MOVED;
	return slice_read_anew(pull, src, again);
}

/* ---- slices that count ---- */

/* Give up the pull's mover.  If the pull has a window, continue behind the last byte
 * that was read from the window.  If not, count only the kept bytes as read, and choose
 * a mover anew. */
static enum p3_moved slice_begin_anew(struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	bool has_one = p->bulk == pull;
	uint64_t read = has_one ? p3_get(&p->mine->bulk_read) : 0;
	if (!slice_retreat(pull, read > pull->kept ? read : pull->kept,
		    has_one ? pull->end : pull->kept_end))
		return P3_MOVE_FAILED;
	if (has_one && pull->done != read)
		p3_release(&p->mine->bulk_read, pull->done); /* XFER.2 */
	pull->mover = has_one ? P3_MOVE_BULK : P3_MOVE_START;
	return P3_MOVED_NOTHING;
}

/* Count the bytes of a slice for the pass, and in the mover's counter. */
static void slice_count(
	struct p3_nic *n, struct p3_pull *pull, uint64_t len, p3_a64 *counter)
{
	pull->moved_ns = 0;
	n->bytes += len;
	n->moved += len;
	n->worked = true;
	p3_count(counter, len);
	if (p3_unlikely(pull->region != 0))
		p3_count(&pull->peer->mine->pulled, len);
}

/* ---- cross-memory reads ---- */

#define P3_NO_MEMORY_NS 100000000u
#define P3_IOVECS       128u /* pieces of the region in one cross-memory read */

bool p3_xfer_may_cma(const struct p3_pull *pull)
{
	return !pull->peer->cma_off && pull->addr;
}

/* Return true if a pull whose read the kernel has refused for want of memory changes its
 * mover: nothing has been read from the front yet, or the pull has a window, or nothing
 * has moved for P3_NO_MEMORY_NS. */
static bool cma_must_change(const struct p3_pull *pull)
{
	if (pull->mover == P3_MOVE_BULK)
		return false;
	return !pull->done || pull->peer->bulk == pull ||
	       (pull->moved_ns && p3_now_ns() - pull->moved_ns > P3_NO_MEMORY_NS);
}

/* React to an error of cma_read(): change the mover, or try again later. */
static enum p3_moved cma_failed(struct p3_nic *n, struct p3_pull *pull, ssize_t err)
{
	if (err == -EFAULT && pull->peer->bulk != pull)
		return P3_MOVE_FAILED;
	if (err == -EFAULT) {
		pull->addr = 0; /* memory that only its owner can read */
		return slice_begin_anew(pull);
	}
	if (err == -ENOMEM) /* the kernel has no memory now */
		return cma_must_change(pull) ? slice_begin_anew(pull) : P3_MOVED_NOTHING;
	/* The read is not allowed, or there is no such process.  If the owner is dead its
	 * end will be reported; until then this pair does not use cma. */
	if (!pull->peer->cma_off && err != -ESRCH)
		p3_count(&n->count[P3_C_CMA_FALLBACK], 1);
	pull->peer->cma_off = true;
	p3_peer_say_reads(pull->peer);
	return pull->mover == P3_MOVE_BULK ? P3_MOVED_NOTHING : slice_begin_anew(pull);
}

/* Return true if the next pass has other work than this node's transfers. */
static bool cma_is_awaited(struct p3_nic *n)
{
	if (p3_mbx_any(n->mailbox))
		return true;
	for (uint32_t i = 0; i < n->nhot; i++) {
		uint64_t w0;
		if (p3_ring_peek(&n->hot[i]->req_in, &w0) ||
			p3_peer_has_response(n->hot[i]))
			return true;
	}
	return false;
}

/* Let the length of later slices depend on the time of this one. */
static void cma_learn(struct p3_nic *n, uint64_t len, uint64_t ns)
{
	uint64_t most = P3_SLICE_NS, usual = p3_slices_length(&n->slices);
	if (len > p3_slices_and_rest(usual)) {
		most = P3_LONE_NS;
		p3_slices_learn_lone(&n->slices, len, ns, cma_is_awaited(n));
	} else {
		p3_slices_learn(&n->slices, len, ns);
	}
	p3_set(&n->count[P3_G_SLICE], p3_slices_length(&n->slices));
	if (ns > 2 * most)
		p3_count(&n->count[P3_C_OVERRUNS], 1);
}

/* Read len bytes, from byte at of the transfer on, from the owner's memory.  Return the
 * number of bytes, or -errno. */
static ssize_t cma_read(
	struct p3_nic *n, const struct p3_pull *pull, uint64_t at, uint64_t len)
{
	struct iovec here[1 + P3_IOVECS];
	/* A message of the least length has one slice, whatever its time tells. */
	bool tells = len >= P3_SLICE_LEAST && pull->length > P3_SLICE_LEAST;
	uint64_t room = 0, start = tells ? p3_now_ns() : 0;
	unsigned k = p3_region_iovecs(
		&pull->span.region, pull->span.offset + at, len, here + 1, P3_IOVECS);
	for (unsigned i = 1; i <= k; i++)
		room += here[i].iov_len;
	struct p3_peer *p = pull->peer;
	ssize_t got = p3_shm_read_peer(p, here, k, pull->addr + at, room);
	FAULT_POINT("cma.read");
	if (start && got >= (ssize_t)P3_SLICE_LEAST)
		cma_learn(n, (uint64_t)got, p3_now_ns() - start);
	return got;
}

/* Return the length of the next slice from the front. */
static uint64_t cma_next_length(const struct p3_nic *n, const struct p3_pull *pull)
{
	/* Nothing that this node knows of waits for its next pass, and one slice can take
	 * the whole message. */
	bool lone = pull->length <= P3_LONE_MOST && n->pulls.next == n->pulls.prev &&
		    n->window_free == (1u << n->windows) - 1 && n->nhot <= n->few;
	uint64_t rest = pull->end - pull->done;
	uint64_t slice =
		lone ? p3_slices_lone_length(&n->slices) : p3_slices_length(&n->slices);
	return rest > p3_slices_and_rest(slice) ? slice : rest;
}

enum p3_moved p3_xfer_move_cma(struct p3_nic *n, struct p3_pull *pull)
{
	if (!slice_announce(n, pull))
		return P3_MOVED_NOTHING;
	if (!slice_enter(n, pull))
		return P3_MOVE_FAILED;
	uint64_t piece = cma_next_length(n, pull);
	uint64_t was = pull->front.at;
	edge_write_front(pull, pull->done + piece);
	ssize_t got = cma_read(n, pull, pull->done, piece);
	slice_leave(pull);
	if (got < (ssize_t)piece)
		edge_wrote_less(pull, was, pull->done + (got > 0 ? (uint64_t)got : 0));
	if (got <= 0)
		return cma_failed(n, pull, got);
	enum p3_moved good = slice_judge(n, pull);
	if (good != P3_MOVED)
		return good;
	pull->done += (uint64_t)got;
	FAULT_POINT("cma.between");
	slice_count(n, pull, (uint64_t)got, &n->count[P3_C_CMA_BYTES]);
	return P3_MOVED;
}

/* ---- windows ---- */

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
			again % 2 ? P3_MOVED_NOTHING : slice_catch_up(pull, src, again);
		if (caught != P3_MOVED)
			return caught;
	}
	p->bulk = pull;
	pull->mover = P3_MOVE_BULK;
	/* While the bytes change, again is odd.  With the even value before it,
	 * slice_judge() rejects all bytes that are read until the change is over. */
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

/* Return true if a peer's window has a place where windows may be, and lies in memory
 * that can be read without a fault.
 * Remember P3_WINDOWS checked windows, since a node has no more.  If a peer names more
 * windows, this node checks them again and again. */
static bool window_is_valid(const struct p3_nic *n, struct p3_peer *p, uint64_t off)
{
	if (off < n->layout.ctl_len || off > n->layout.seg_len - P3_WINDOW_LEN ||
		off % P3_PAGE != 0)
		return false;
	uint32_t known = p->nwindows < P3_WINDOWS ? p->nwindows : P3_WINDOWS;
	for (uint32_t i = 0; i < known; i++)
		if (p->window_at[i] == off)
			return true;
	if (p3_seg_reach(p->base + off, P3_WINDOW_LEN) == -EFAULT)
		return false;
	p->window_at[p->nwindows++ % P3_WINDOWS] = off;
	return true;
}

/*
 * While the window is empty, read the last bytes of the rest from the owner's memory.
 * Read at most half of the rest, since the owner meanwhile goes on filling the window
 * from the front; read all of the rest if it is at most P3_SLICE_LEAST.
 */
static enum p3_moved window_move_tail(struct p3_nic *n, struct p3_pull *pull)
{
	uint64_t rest = pull->end - pull->done, piece = rest / 2 / P3_PAGE * P3_PAGE;
	if (!p3_xfer_may_cma(pull) || pull->span.region.iov || !slice_announce(n, pull))
		return P3_MOVED_NOTHING;
	uint64_t most = p3_slices_length(&n->slices);
	if (piece > most)
		piece = most;
	if (rest <= P3_SLICE_LEAST)
		piece = rest;
	if (!slice_enter(n, pull))
		return P3_MOVE_FAILED;
	uint64_t was = pull->back.at;
	edge_write_back(pull, pull->end - piece);
	ssize_t got = cma_read(n, pull, pull->end - piece, piece);
	slice_leave(pull);
	if (got <= 0) {
		pull->back.at = was;
		return cma_failed(n, pull, got);
	}
	if ((uint64_t)got < piece)
		return P3_MOVED_NOTHING;
	enum p3_moved good = slice_judge(n, pull);
	if (good != P3_MOVED)
		return good;
	pull->end -= piece;
	pull->from_back = true;
	p3_set(&pull->peer->mine->bulk_want, pull->end);
	FAULT_POINT("window.tail_taken");
	slice_count(n, pull, piece, &n->count[P3_C_CMA_BYTES]);
	return P3_MOVED;
}

#define P3_SOON_NS 2000u

/* Return true if the source goes ahead, and the last piece came from it so short a time
 * ago that the next one will come before a read would end. */
static bool window_comes_soon(struct p3_pull *pull)
{
	if (!pull->ahead || pull->from_back)
		return false;
	uint64_t now = p3_now_ns();
	if (!pull->moved_ns)
		pull->moved_ns = now;
	return now - pull->moved_ns < P3_SOON_NS;
}

enum p3_moved p3_xfer_move_window(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	const struct p3_xfer *src = p3_xfer_of_peer(n, p, pull->xfer_id);
	uint64_t produced = p3_acquire(&src->produced); /* XFER.2 */
	uint64_t window = p3_get(&src->window);
	enum p3_moved good = slice_judge(n, pull);
	if (good != P3_MOVED)
		return good;
	if (produced <= pull->done)
		return window_comes_soon(pull) ? P3_MOVED_NOTHING
					       : window_move_tail(n, pull);
	/* A source that goes ahead does not know how many bytes the target takes. */
	if ((produced > pull->length && !pull->ahead) || !window_is_valid(n, p, window))
		return P3_MOVE_FAILED;
	if (produced > pull->end)
		produced = pull->end;
	while (pull->done < produced && n->bytes < P3_SLICE_LEAST) {
		uint64_t piece = P3_CHUNK_LEN - pull->done % P3_CHUNK_LEN;
		if (piece > produced - pull->done)
			piece = produced - pull->done;
		edge_write_front(pull, pull->done + piece);
		p3_region_write(&pull->span.region, pull->span.offset + pull->done,
			p->image + window + pull->done % P3_WINDOW_LEN, piece);
		FAULT_POINT("window.copied");
		if ((good = slice_judge(n, pull)) != P3_MOVED)
			return good;
		pull->done += piece;
		pull->from_back = false;
		slice_count(n, pull, piece, &n->count[P3_C_BULK_BYTES]);
		p3_release(&p->mine->bulk_read, pull->done); /* XFER.2 */
		FAULT_POINT("window.read");
	}
	p3_looks_add(n, p);
	return P3_MOVED;
}

/* ---- direct transfers: out of the owner's shared heap, or inside of this node ---- */

#define P3_PIECES_MOST 128u /* pieces of the region in one slice */

/* Give up the heap, since there is no memory for its pages.  Continue by cma; where
 * that is not possible, or nothing has been read, choose a mover anew. */
static enum p3_moved heap_failed(struct p3_nic *n, struct p3_pull *pull)
{
	pull->heap = 0;
	pull->addr = p3_get(&p3_xfer_of_peer(n, pull->peer, pull->xfer_id)->addr);
	if (pull->done && !p3_xfer_may_cma(pull))
		return slice_begin_anew(pull);
	pull->mover = pull->done ? P3_MOVE_CMA : P3_MOVE_START;
	return P3_MOVED_NOTHING;
}

#if defined(P3_TSAN) || defined(P3_VALGRIND)
/* Copy a slice by a system call, which the checkers do not follow.  The owner may write
 * to bytes that it has taken back while this node still copies them: XFER.1 detects
 * that, but the checkers would report a race. */
static uint64_t heap_take_slice(struct p3_pull *pull, const char *from, uint64_t len)
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
static uint64_t heap_take_slice(struct p3_pull *pull, const char *from, uint64_t len)
{
	p3_region_write(&pull->span.region, pull->span.offset + pull->done, from, len);
	return len;
}
#endif

/* Move a slice from the owner's shared heap.  The owner names the place, so the view of
 * the heap is asked whether the bytes lie inside it. */
static enum p3_moved heap_move(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_heap_view *view = &pull->peer->heap;
	uint64_t piece = pull->length - pull->done, off = pull->heap - 1;
	if (!slice_announce(n, pull))
		return P3_MOVED_NOTHING;
	if (!p3_heap_view_holds(view, off, pull->length))
		return P3_MOVE_FAILED;
	if (piece > P3_SLICE_LEAST)
		piece = P3_SLICE_LEAST;
	if (!p3_heap_view_reach(view, off + pull->done, piece))
		return heap_failed(n, pull);
	if (!slice_enter(n, pull))
		return P3_MOVE_FAILED;
	uint64_t was = pull->front.at;
	edge_write_front(pull, pull->done + piece);
	uint64_t got = heap_take_slice(pull, view->base + off + pull->done, piece);
	slice_leave(pull);
	if (got < piece)
		edge_wrote_less(pull, was, pull->done + got);
	FAULT_POINT("heap.copied");
	enum p3_moved good = slice_judge(n, pull);
	if (good != P3_MOVED)
		return good;
	pull->done += got;
	slice_count(n, pull, got, &n->count[P3_C_DIRECT_BYTES]);
	return P3_MOVED;
}

enum p3_moved p3_xfer_move_direct(struct p3_nic *n, struct p3_pull *pull)
{
	if (pull->peer->index != n->conf.node)
		return heap_move(n, pull);
	const struct p3_xfer_slot *x = &n->xfer[(uint32_t)pull->xfer_id];
	if (!x->in_use || p3_get(&x->pub->id) != pull->xfer_id)
		return P3_MOVE_FAILED;
	if (p3_unlikely(x->again != pull->again)) {
		if (slice_read_anew(pull, x->pub, x->again) == P3_MOVE_FAILED)
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
	edge_write_front(pull, pull->done + piece);
	p3_region_write(&pull->span.region, pull->span.offset + pull->done, from, piece);
	pull->done += piece;
	slice_count(n, pull, piece, &n->count[P3_C_DIRECT_BYTES]);
	return P3_MOVED;
}

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

#define P3_FETCHES          4u       /* under way for a pull */
#define P3_FETCH_SLICE      32768u   /* shortest one, of a longer transfer */
#define P3_FETCH_FAILS      3u       /* then the pull uses a window */
#define P3_FETCH_NO_ROOM_NS 5000000u /* longest time without a fetch before that */

bool p3_xfer_may_fetch(const struct p3_pull *pull)
{
	return pull->length >= P3_FETCH_LEAST && pull->failures < P3_FETCH_FAILS &&
	       p3_far_can_fetch(pull->peer, pull->xfer_id);
}

void p3_xfer_leave_fetches(struct p3_pull *pull)
{
	while (pull->fetches) {
		struct p3_fetch *f = pull->fetches;
		pull->fetches = f->next;
		p3_far_let_go(f);
	}
}

/* Fetch once more what does not count yet. */
static void fetch_anew(struct p3_pull *pull)
{
	p3_xfer_leave_fetches(pull);
	pull->asked = pull->done;
}

/* Continue with a window. */
static enum p3_moved fetch_give_up(struct p3_pull *pull)
{
	fetch_anew(pull);
	pull->failures = P3_FETCH_FAILS;
	return slice_begin_anew(pull);
}

/* Look whether the slice counts, by the slot that was read behind it. */
static enum p3_moved fetch_judge(
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
		anew = slice_read_anew(pull, known, p3_get(&known->again));
	fetch_anew(pull);
	return anew;
}

static enum p3_moved fetch_take_first(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_fetch *f = pull->fetches;
	if (!f || f->state == P3_FETCH_UNDER_WAY)
		return P3_MOVED_NOTHING;
	if (f->state == P3_FETCH_FAILED) {
		if (++pull->failures == P3_FETCH_FAILS)
			return fetch_give_up(pull);
		fetch_anew(pull);
		return P3_MOVED_NOTHING;
	}
	enum p3_moved good = fetch_judge(n, pull, f->slot);
	if (good != P3_MOVED)
		return good;
	uint64_t len = f->len;
	edge_write_front(pull, f->at + len);
	p3_region_write(&pull->span.region, pull->span.offset + f->at, f->bytes, len);
	pull->done += len;
	pull->fetches = f->next;
	p3_far_let_go(f);
	slice_count(n, pull, len, &n->count[P3_C_FETCHED_BYTES]);
	return P3_MOVED;
}

/* Return the end of the next fetch: a quarter of the transfer at least, and a small rest
 * with it. */
static uint64_t fetch_end_of_next(const struct p3_pull *pull)
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

static void fetch_ask(struct p3_pull *pull)
{
	struct p3_fetch **last = &pull->fetches;
	uint32_t under_way = 0;
	if (pull->asked < pull->done)
		pull->asked = pull->done;
	for (; *last; last = &(*last)->next)
		under_way++;
	while (under_way++ < P3_FETCHES && pull->asked < pull->end) {
		uint64_t to = fetch_end_of_next(pull), from = pull->asked;
		struct p3_fetch *f =
			p3_far_fetch(pull->peer, pull->xfer_id, from, to - from);
		if (!f)
			break;
		f->next = NULL;
		*last = f;
		last = &f->next;
		pull->asked = to;
	}
}

enum p3_moved p3_xfer_move_fetch(struct p3_nic *n, struct p3_pull *pull)
{
	if (!slice_announce(n, pull))
		return P3_MOVED_NOTHING;
	enum p3_moved moved = fetch_take_first(n, pull);
	if (moved == P3_MOVE_FAILED || pull->mover != P3_MOVE_FETCH)
		return moved;
	fetch_ask(pull);
	if (!pull->fetches && pull->done < pull->end && pull->moved_ns &&
		p3_now_ns() - pull->moved_ns > P3_FETCH_NO_ROOM_NS)
		return fetch_give_up(pull);
	return moved;
}
