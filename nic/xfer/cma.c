/* SPDX-License-Identifier: BSD-3-Clause */
/* Cross-memory reads: the wire copies slices out of the owner's address space. */
#include "nic/xfer/movers.h"

#include "nic/proto/peer.h"
#include "nic/xfer/edge.h"
#include "shm/fault.h"
#include "shm/atomics.h"

#include <errno.h>
#include <sys/uio.h>

#define P3_NO_MEMORY_NS 100000000u
#define P3_IOVECS       128u /* pieces of the region in one cross-memory read */

bool p3_xfer_may_cma(const struct p3_pull *pull)
{
	return !pull->peer->cma_off && pull->addr;
}

/* Return true if a pull whose read the kernel has refused for want of memory changes its
 * mover: nothing has been read from the front yet, or the pull has a window, or nothing
 * has moved for P3_NO_MEMORY_NS. */
static bool must_change(const struct p3_pull *pull)
{
	if (pull->mover == P3_MOVE_BULK)
		return false;
	return !pull->done || pull->peer->bulk == pull ||
	       (pull->moved_ns && p3_now_ns() - pull->moved_ns > P3_NO_MEMORY_NS);
}

enum p3_moved p3_xfer_cma_failed(struct p3_nic *n, struct p3_pull *pull, ssize_t err)
{
	if (err == -EFAULT && pull->peer->bulk != pull)
		return P3_MOVE_FAILED;
	if (err == -EFAULT) {
		pull->addr = 0; /* memory that only its owner can read */
		return p3_xfer_begin_anew(pull);
	}
	if (err == -ENOMEM) /* the kernel has no memory now */
		return must_change(pull) ? p3_xfer_begin_anew(pull) : P3_MOVED_NOTHING;
	/* The read is not allowed, or there is no such process.  If the owner is dead its
	 * end will be reported; until then this pair does not use cma. */
	if (!pull->peer->cma_off && err != -ESRCH)
		p3_count(&n->count[P3_C_CMA_FALLBACK], 1);
	pull->peer->cma_off = true;
	p3_peer_say_reads(pull->peer);
	return pull->mover == P3_MOVE_BULK ? P3_MOVED_NOTHING : p3_xfer_begin_anew(pull);
}

/* Return true if the next pass has other work than this node's transfers. */
static bool is_awaited(struct p3_nic *n)
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
static void learn_slice(struct p3_nic *n, uint64_t len, uint64_t ns)
{
	uint64_t most = P3_SLICE_NS, usual = p3_slices_length(&n->slices);
	if (len > usual + usual / 4) {
		most = P3_LONE_NS;
		p3_slices_learn_lone(&n->slices, len, ns, is_awaited(n));
	} else {
		p3_slices_learn(&n->slices, len, ns);
	}
	p3_set(&n->count[P3_G_SLICE], p3_slices_length(&n->slices));
	if (ns > 2 * most)
		p3_count(&n->count[P3_C_OVERRUNS], 1);
}

ssize_t p3_xfer_read_there(
	struct p3_nic *n, const struct p3_pull *pull, uint64_t at, uint64_t len)
{
	struct iovec here[1 + P3_IOVECS];
	uint64_t room = 0, start = len >= P3_SLICE_LEAST ? p3_now_ns() : 0;
	unsigned k = p3_region_iovecs(
		&pull->span.region, pull->span.offset + at, len, here + 1, P3_IOVECS);
	for (unsigned i = 1; i <= k; i++)
		room += here[i].iov_len;
	struct p3_peer *p = pull->peer;
	ssize_t got = p->wire->read(p, here, k, pull->addr + at, room);
	FAULT_POINT("cma.read");
	if (start && got >= (ssize_t)P3_SLICE_LEAST)
		learn_slice(n, (uint64_t)got, p3_now_ns() - start);
	return got;
}

/* Return true if nothing that this node knows of waits for its next pass, and one slice
 * can take the whole message. */
static bool is_lone(const struct p3_nic *n, const struct p3_pull *pull)
{
	return pull->length <= P3_LONE_MOST && n->pulls.next == n->pulls.prev &&
	       n->window_free == (1u << n->windows) - 1 && n->nhot <= n->few;
}

/* Return the length of the next slice from the front. */
static uint64_t next_length(const struct p3_nic *n, const struct p3_pull *pull)
{
	uint64_t rest = pull->end - pull->done;
	uint64_t slice = is_lone(n, pull) ? p3_slices_lone_length(&n->slices)
					  : p3_slices_length(&n->slices);
	return rest > slice + slice / 4 ? slice : rest; /* include a small rest */
}

enum p3_moved p3_xfer_move_cma(struct p3_nic *n, struct p3_pull *pull)
{
	if (!p3_xfer_announce(n, pull))
		return P3_MOVED_NOTHING;
	if (!p3_xfer_enter_slice(n, pull))
		return P3_MOVE_FAILED;
	uint64_t piece = next_length(n, pull);
	uint64_t was = pull->front.at;
	p3_xfer_write_front(pull, pull->done + piece);
	ssize_t got = p3_xfer_read_there(n, pull, pull->done, piece);
	p3_xfer_leave_slice(pull);
	if (got < (ssize_t)piece)
		p3_xfer_wrote_less(pull, was, pull->done + (got > 0 ? (uint64_t)got : 0));
	if (got <= 0)
		return p3_xfer_cma_failed(n, pull, got);
	enum p3_moved good = p3_xfer_judge(n, pull);
	if (good != P3_MOVED)
		return good;
	pull->done += (uint64_t)got;
	FAULT_POINT("cma.between");
	p3_xfer_count_slice(n, pull, (uint64_t)got, P3_C_CMA_BYTES);
	return P3_MOVED;
}
