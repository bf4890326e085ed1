/* SPDX-License-Identifier: BSD-3-Clause */
/* The source of long transfers: windows, and the END of served gets. */
#include "nic/xfer/source.h"

#include "nic/obj/ni.h"
#include "nic/obj/span.h"
#include "nic/proto/peer.h"
#include "nic/report/trace.h"
#include "nic/run/looks.h"
#include "nic/wire/shm.h"
#include "nic/xfer/slice.h"
#include "nic/xfer/table.h"
#include "shm/fault.h"
#include "shm/atomics.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#define P3_LOOKS  16u /* one pass in 16 looks for a requested window */
#define P3_PIECES 8u  /* least number of pieces of a transfer through a window */
/* time for which a reader keeps its window when other transfers need one */
#define P3_LEND_NS 20000000u

/* ---- windows ---- */

/*
 * Take back the window that was lent first, once its reader has had it for P3_LEND_NS.
 * XFER.6 tells the reader, which need not agree.  Move the transfer to the end of
 * n->sources, so that it gets its next window after the transfers that wait now.  Return
 * false if no window can be taken back now.
 */
static P3_RARE bool take_back(struct p3_nic *n)
{
	struct p3_xfer_slot *oldest = NULL;
	uint64_t now = p3_now_ns();
	if (now < n->window_ns)
		return false;
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->window != P3_NONE && (!oldest || x->lent_ns < oldest->lent_ns))
			oldest = x;
	}
	if (!oldest)
		return false;
	n->window_ns = oldest->lent_ns + P3_LEND_NS;
	if (now < n->window_ns)
		return false;
	p3_xfer_begin_change(oldest, (struct p3_range){0, 0});
	p3_fence(); /* XFER.6: before another transfer's bytes come into the window */
	p3_xfer_log_change(oldest);
	p3_xfer_end_change(oldest);
	p3_xfer_free_window(n, oldest);
	p3_list_del(&oldest->link);
	p3_list_add(&n->sources, &oldest->link);
	p3_looks_add(n, oldest->peer);
	return true;
}

static bool take_window(struct p3_nic *n, struct p3_xfer_slot *x)
{
	if (!n->window_free && n->windows < P3_WINDOWS) {
		uint64_t off;
		if (p3_peer_reserve_arena(n, P3_WINDOW_LEN, P3_PAGE, &off)) {
			n->window_free |= 1u << n->windows;
			n->window_off[n->windows++] = off;
		}
	}
	if (!n->window_free && !take_back(n))
		return false;
	x->window = (uint32_t)__builtin_ctz(n->window_free);
	x->lent_ns = p3_now_ns();
	n->window_free &= n->window_free - 1;
	p3_set(&x->pub->window, n->window_off[x->window]);
	FAULT_POINT("window.named");
	return true;
}

/* Return the size of a piece.  A short transfer has short pieces, so that owner and
 * reader copy at the same time. */
static uint64_t piece_of(const struct p3_xfer_slot *x)
{
	uint64_t piece = x->length / P3_PIECES / P3_PAGE * P3_PAGE;
	return piece < P3_PAGE ? P3_PAGE : piece > P3_CHUNK_LEN ? P3_CHUNK_LEN : piece;
}

/*
 * Copy bytes of the source.  Those that were not in memory may turn out to have no
 * memory (behind the end of a file, or without permission): the kernel copies them and
 * finds out, as it does for a reader.  Return false then.
 */
static bool copy_out(const struct p3_xfer_slot *x, char *to, uint64_t len)
{
	const struct p3_region *r = &x->span.region;
	uint64_t off = x->span.offset + x->produced, piece;
	if (p3_unlikely(x->absent)) {
		struct iovec here = {to, len},
			     there = {p3_region_at(r, off, &piece), len};
		ssize_t got = p3_shm_read((uint32_t)getpid(), &here, 1, &there, 1);
		if (got >= 0 || got == -EFAULT)
			return got == (ssize_t)len;
	}
	p3_region_read(r, off, to, len);
	return true;
}

static void fill_window(struct p3_nic *n, struct p3_xfer_slot *x)
{
	const struct p3_peer_entry *theirs = x->peer->theirs;
	uint64_t again = p3_acquire(&theirs->bulk_again); /* XFER.6 */
	uint64_t want = p3_get(&theirs->bulk_want);
	uint64_t read = p3_acquire(&theirs->bulk_read); /* XFER.2 */
	if (want > x->length)
		want = x->length;
	if (again != x->again || read > want)
		return;
	if (!x->agreed || x->produced < read)
		x->produced = read;
	x->agreed = true;
	if (x->produced >= want || (x->window == P3_NONE && !take_window(n, x)))
		return;
	char *window = (char *)n->published.base + n->window_off[x->window];
	uint64_t most = piece_of(x);
	while (x->produced < want && n->bytes < P3_SLICE_LEAST &&
		x->produced - read + P3_CHUNK_LEN <= P3_WINDOW_LEN) {
		/* want is the reader's word and may change: stay inside the chunk */
		uint64_t piece = P3_CHUNK_LEN - x->produced % P3_CHUNK_LEN;
		if (piece > most)
			piece = most;
		if (piece > want - x->produced)
			piece = want - x->produced;
		if (!copy_out(x, window + x->produced % P3_WINDOW_LEN, piece)) {
			p3_release(&x->pub->id, 0); /* XFER.1: the reader fails */
			x->produced = x->length;
			break;
		}
		FAULT_POINT("window.filled");
		x->produced += piece;
		p3_release(&x->pub->produced, x->produced); /* XFER.2 */
		FAULT_POINT("window.produced");
		n->bytes += piece;
		n->worked = true;
	}
	p3_looks_add(n, x->peer);
}

/* ---- served gets ---- */

void p3_xfer_serve(struct p3_xfer_slot *x, uint64_t peer_id)
{
	x->serving = true;
	x->peer_id = peer_id;
	p3_list_add(&x->peer->serving, &x->served_link);
	x->peer->served = true;
}

void p3_xfer_finish_serving(struct p3_nic *n, struct p3_xfer_slot *x, uint32_t fail)
{
	struct p3_span span = x->span;
	P3_TRACE(about, n, x->topic, P3_TRACE_END, fail, x->length);
	p3_list_del(&x->served_link);
	x->peer->served = !p3_list_empty(&x->peer->serving);
	if (x->peer->state == P3_LIVE)
		/* Wake the initiator: it keeps its slot until it sees that this slot is
		 * free. */
		p3_looks_add(n, x->peer);
	p3_xfer_free(n, x);
	if (!span.md)
		return;
	p3_ni_use_less(p3_ni_of(n, &span.md->o), P3_U_OP);
	p3_span_end(n, &span, PTL_EVENT_GET_END, fail);
}

/* End the get that this slot serves if the initiator has released it; return true
 * then. */
static bool end_if_released(struct p3_nic *n, struct p3_xfer_slot *x)
{
	const struct p3_xfer *theirs = p3_xfer_of_peer(n, x->peer, x->peer_id);
	if (p3_acquire(&theirs->released) != x->peer_id) /* XFER.3 */
		return false;
	p3_xfer_finish_serving(n, x, p3_get(&theirs->status) ? PTL_NI_FAIL : PTL_NI_OK);
	return true;
}

void p3_xfer_end_served(struct p3_nic *n, struct p3_peer *p)
{
	p3_list_each(it, &p->serving)
		(void)end_if_released(n, p3_item(it, struct p3_xfer_slot, served_link));
}

/* ---- the pass ---- */

/* Return true if the get's target has seen the release, and has freed its slot. */
static bool release_was_seen(struct p3_nic *n, const struct p3_xfer_slot *x)
{
	return p3_acquire(&p3_xfer_of_peer(n, x->peer, x->peer_id)->id) != x->peer_id;
}

static inline bool sees_ours(const struct p3_xfer_slot *x)
{
	return x->window == P3_NONE && p3_get(&x->pub->heap) &&
	       (p3_get(&x->peer->theirs->reads) & P3_READS_HEAP);
}

static void look_after(struct p3_nic *n, struct p3_xfer_slot *x)
{
	if (x->releasing) {
		if (release_was_seen(n, x))
			p3_xfer_free(n, x);
		return;
	}
	if (x->serving && end_if_released(n, x))
		return;
	/* A reader that sees the heap asks for no window, but writes to the line of
	 * bulk_slot: each look would fetch that line from its CPU. */
	if (sees_ours(x) && ++x->looks % P3_LOOKS)
		return;
	if (p3_acquire(&x->peer->theirs->bulk_slot) != p3_xfer_name(x)) /* XFER.4 */
		p3_xfer_free_window(n, x);
	else if (p3_peer_has_acked(x->peer))
		fill_window(n, x);
}

void p3_source_look(struct p3_nic *n)
{
	n->bytes = 0; /* windows have a limit of bytes of their own in each pass */
	p3_list_each(it, &n->sources)
		look_after(n, p3_item(it, struct p3_xfer_slot, link));
}
