/* SPDX-License-Identifier: BSD-3-Clause */
/* The source of long transfers: the transfer table, windows, and the END of served
 * gets. */
#include "nic/obj/obj.h"
#include "nic/proto/proto.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/wire/wire.h"
#include "nic/xfer/movers.h"
#include "shm/fault.h"
#include "shm/park.h"
#include "shm/seg.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define P3_SEEN_NS 10000000u

void p3_xfer_start(struct p3_nic *n)
{
	struct p3_xfer *pub =
		(struct p3_xfer *)((char *)n->published.base + n->layout.xfers_off);
	p3_slices_reset(&n->slices);
	memset(n->seen, 0, sizeof n->seen);
	for (uint32_t i = 0; i < n->layout.nxfers; i++) {
		n->xfer[i].slot = i;
		n->xfer[i].pub = &pub[i];
		n->xfer[i].gen = 0xfffffff0; /* wraps in every run */
		n->xfer[i].window = P3_NONE;
		p3_list_init(&n->xfer[i].link);
		p3_list_init(&n->xfer[i].served_link);
	}
}

/* Return the peer's own slot, else a shared one, or NULL.  A peer may use a quarter of
 * the shared slots. */
static struct p3_xfer_slot *xfer_free_slot(
	struct p3_nic *n, struct p3_peer *p, enum p3_xfer_class class)
{
	struct p3_xfer_slot *half = &n->xfer[class * (n->layout.nxfers / 2)];
	if (!half[p->index].in_use)
		return &half[p->index];
	if (p->nxfer[class] >= P3_XFERS_SHARED / 4)
		return NULL;
	struct p3_xfer_slot *shared = half + n->conf.nnodes;
	for (uint32_t i = 0; i < P3_XFERS_SHARED; i++)
		if (!shared[i].in_use)
			return &shared[i];
	return NULL;
}

struct p3_xfer_slot *p3_xfer_alloc(
	struct p3_nic *n, struct p3_peer *p, enum p3_xfer_class class)
{
	struct p3_xfer_slot *x = xfer_free_slot(n, p, class);
	if (!x)
		return NULL;
	x->in_use = true;
	x->peer = p;
	x->releasing = x->serving = x->swapped = x->agreed = x->offered = x->ahead =
		false;
	x->span.md = NULL;
	x->peer_id = x->cci = 0;
	x->produced = x->again = 0;
	if (++x->gen == 0)
		++x->gen; /* id 0 means none */
	p->nxfer[class] += x->slot % (n->layout.nxfers / 2) >= n->conf.nnodes;
	return x;
}

/* Return the address of these bytes of a region, or 0 if they lie in several pieces. */
static uint64_t xfer_address(const struct p3_region *r, uint64_t off, uint64_t len)
{
	uint64_t piece;
	char *at = p3_region_at(r, off, &piece);
	return piece >= len ? (uintptr_t)at : 0;
}

/* Return the offset of the bytes at this address in this node's shared heap, plus 1, or
 * 0 if not all of them lie there. */
static uint64_t xfer_heap_word(const struct p3_nic *n, uint64_t at, uint64_t length)
{
	const struct p3_heap *heap = n->conf.heap;
	if (!heap || !at || !length || p3_heap_fd(heap) < 0)
		return 0;
	uint64_t off = at - (uintptr_t)p3_heap_base(heap), len = p3_heap_len(heap);
	return off < len && length <= len - off ? off + 1 : 0;
}

bool p3_xfer_is_faster(const struct p3_nic *n, const struct p3_peer *p,
	const struct p3_region *r, uint64_t off, uint64_t len)
{
	uint64_t at = xfer_address(r, off, len);
	uint32_t reads = p3_get(&p->theirs->reads);
	if (!at || p->index == n->conf.node)
		return false;
	if (len > P3_EAGER_MOST && (reads & P3_READS_CMA) && !p3_pace_copies_past(n, len))
		return true;
	return (reads & P3_READS_HEAP) && xfer_heap_word(n, at, len);
}

/* Return true if the bytes are in memory, or were so P3_SEEN_NS ago or later: the kernel
 * takes 1 us to tell. */
static bool xfer_is_resident(struct p3_nic *n, uint64_t at, uint64_t len)
{
	uint64_t page = at / P3_PAGE, end = (at + len + P3_PAGE - 1) / P3_PAGE;
	struct p3_seen *s = &n->seen[(page ^ page / P3_SEEN_PLACES) % P3_SEEN_PLACES];
	uint64_t now = p3_now_ns();
	if (s->page == page && end <= s->end && now - s->ns < P3_SEEN_NS)
		return true;
	if (!p3_seg_is_resident((void *)(uintptr_t)at, len))
		return false;
	*s = (struct p3_seen){page, end, now};
	return true;
}

void p3_xfer_publish(struct p3_nic *n, struct p3_xfer_slot *x)
{
	uint64_t at = xfer_address(&x->span.region, x->span.offset, x->length);
	uint64_t heap = xfer_heap_word(n, at, x->length);
	/* The reader would wait for the bytes with its lease: let it use a window. */
	x->absent = at && !heap && !xfer_is_resident(n, at, x->length);
	p3_set(&x->pub->addr, x->absent ? 0 : at);
	p3_set(&x->pub->heap, heap);
	p3_set(&x->pub->again, 0);
	p3_set(&x->pub->bounds.from, x->length);
	p3_set(&x->pub->bounds.to, 0);
	p3_set(&x->pub->window, 0);
	p3_set(&x->pub->produced, 0);
	FAULT_POINT("transfer.filled");
	p3_release(&x->pub->id, p3_xfer_name(x)); /* XFER.1 */
	FAULT_POINT("transfer.published");
	p3_list_add(&n->sources, &x->link);
	p3_odd_set(n, P3_ODD_SOURCES);
}

/* Return a slot's window to the free ones. */
static void window_free(struct p3_nic *n, struct p3_xfer_slot *x)
{
	if (x->window != P3_NONE)
		n->window_free |= 1u << x->window;
	x->window = P3_NONE;
}

void p3_xfer_free(struct p3_nic *n, struct p3_xfer_slot *x)
{
	uint32_t half = n->layout.nxfers / 2;
	p3_release(&x->pub->id, 0); /* XFER.1 */
	FAULT_POINT("transfer.taken_back");
	p3_list_del(&x->link);
	window_free(n, x);
	if (x->slot % half >= n->conf.nnodes)
		x->peer->nxfer[x->slot / half]--;
	x->in_use = false;
	n->worked = true;
}

void p3_xfer_release(struct p3_nic *n, struct p3_xfer_slot *x, uint32_t fail)
{
	p3_set(&x->pub->status, fail ? UINT64_MAX : 0);
	FAULT_POINT("release.filled");
	p3_release(&x->pub->released, p3_xfer_name(x)); /* XFER.3 */
	FAULT_POINT("release.published");
	x->releasing = true;
	p3_list_add(&n->sources, &x->link);
	p3_odd_set(n, P3_ODD_SOURCES);
	p3_looks_add(n, x->peer);
}

void p3_xfer_withdraw(struct p3_nic *n, struct p3_xfer_slot *x)
{
	p3_release(&x->pub->id, 0); /* XFER.1 */
	if (p3_unlikely(x->offered))
		p3_far_reads_cut(n, x->peer);
	p3_list_del(&x->link);
	window_free(n, x);
	x->span.region = (struct p3_region){0};
	x->length = 0;
}

bool p3_xfer_is_read(const struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->conf.nnodes; i++) {
		const struct p3_peer *p = &n->peer[i];
		if (p->state != P3_LIVE || i == n->conf.node)
			continue;
		uint64_t id = p3_acquire(&p->theirs->slice_of); /* XFER.7 */
		uint32_t slot = (uint32_t)id;
		if (id && slot < n->layout.nxfers && p3_get(&n->xfer[slot].pub->id) != id)
			return true;
	}
	return false;
}

void p3_xfer_revoke_all(struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->layout.nxfers; i++)
		p3_release(&n->xfer[i].pub->id, 0); /* XFER.1 */
}

/* ---- changes: XFER.6 ---- */

void p3_xfer_begin_change(struct p3_xfer_slot *x, struct p3_range change)
{
	x->change = change;
	x->produced = 0;
	x->agreed = false;
	p3_set(&x->pub->again, ++x->again);
	p3_set(&x->pub->produced, 0);
}

void p3_xfer_log_change(struct p3_xfer_slot *x)
{
	struct p3_changed *c = &x->pub->changed[x->again / 2 % P3_CHANGES];
	struct p3_changed *all = &x->pub->bounds;
	p3_set(&c->from, x->change.from);
	p3_set(&c->to, x->change.to);
	if (x->change.from >= x->change.to)
		return;
	if (x->change.from < p3_get(&all->from))
		p3_set(&all->from, x->change.from);
	if (x->change.to > p3_get(&all->to))
		p3_set(&all->to, x->change.to);
}

void p3_xfer_end_change(struct p3_xfer_slot *x)
{
	p3_release(&x->pub->again, ++x->again); /* XFER.6 */
}

#define P3_LOOKS       16u   /* one pass in 16 looks for a requested window */
#define P3_PIECES      8u    /* least number of pieces of a transfer through a window */
#define P3_AHEAD_PIECE 8192u /* longest piece that comes ahead */
/* time for which a reader keeps its window when other transfers need one */
#define P3_LEND_NS 20000000u

/* ---- windows ---- */

/*
 * Take back the window that was lent first, once its reader has had it for P3_LEND_NS.
 * XFER.6 tells the reader, which need not agree.  Move the transfer to the end of
 * n->sources, so that it gets its next window after the transfers that wait now.  Return
 * false if no window can be taken back now.
 */
static P3_RARE bool window_take_back(struct p3_nic *n)
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
	window_free(n, oldest);
	p3_list_del(&oldest->link);
	p3_list_add(&n->sources, &oldest->link);
	p3_looks_add(n, oldest->peer);
	return true;
}

/* Have one free window more, if there is memory for it.  Where there was none, ask the
 * kernel again only after a while. */
static P3_RARE bool window_reserve(struct p3_nic *n)
{
	if (n->windows == P3_WINDOWS)
		return false;
	uint64_t off, now = p3_now_ns();
	if (now < n->reserve_ns)
		return false;
	if (!p3_peer_reserve_arena(n, P3_WINDOW_LEN, P3_PAGE, &off)) {
		n->reserve_ns = now + P3_LEND_NS;
		return false;
	}
	n->window_free |= 1u << n->windows;
	n->window_off[n->windows++] = off;
	return true;
}

static void window_lend(struct p3_nic *n, struct p3_xfer_slot *x)
{
	x->window = (uint32_t)__builtin_ctz(n->window_free);
	x->lent_ns = p3_now_ns();
	n->window_free &= n->window_free - 1;
	p3_set(&x->pub->window, n->window_off[x->window]);
	FAULT_POINT("window.named");
}

/* Lend a window to a reader in need. */
static bool window_take(struct p3_nic *n, struct p3_xfer_slot *x)
{
	if (!n->window_free && !window_reserve(n) && !window_take_back(n))
		return false;
	window_lend(n, x);
	return true;
}

/* Lend a window to a put that goes ahead, if another one stays free for a reader in
 * need. */
static bool window_take_spare(struct p3_nic *n, struct p3_xfer_slot *x)
{
	while (!(n->window_free & (n->window_free - 1))) /* fewer than two */
		if (!window_reserve(n))
			return false;
	window_lend(n, x);
	return true;
}

/*
 * Copy bytes of the source.  Those that were not in memory may turn out to have no
 * memory (behind the end of a file, or without permission): the kernel copies them and
 * finds out, as it does for a reader.  Return false then.
 */
static bool window_copy(const struct p3_xfer_slot *x, char *to, uint64_t len)
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
	if (x->ahead && (uintptr_t)to % P3_CELL == 0)
		p3_copy_past(to, p3_region_at(r, off, &piece), len);
	else
		p3_region_read(r, off, to, len);
	return true;
}

/* Fill the transfer's window up to byte want, as far as there is room behind byte read,
 * and this pass may copy. */
static void window_put(
	struct p3_nic *n, struct p3_xfer_slot *x, uint64_t want, uint64_t read)
{
	char *window = (char *)n->published.base + n->window_off[x->window];
	/* A short transfer has short pieces, so that owner and reader copy at the same
	 * time. */
	uint64_t most = x->length / P3_PIECES / P3_PAGE * P3_PAGE;
	uint64_t longest = x->ahead ? P3_AHEAD_PIECE : P3_CHUNK_LEN;
	most = most < P3_PAGE ? P3_PAGE : most > longest ? longest : most;
	while (x->produced < want && n->bytes < P3_SLICE_LEAST &&
		x->produced - read + P3_CHUNK_LEN <= P3_WINDOW_LEN) {
		/* want is the reader's word and may change: stay inside the chunk */
		uint64_t piece = P3_CHUNK_LEN - x->produced % P3_CHUNK_LEN;
		if (piece > most)
			piece = most;
		if (piece > want - x->produced)
			piece = want - x->produced;
		if (!window_copy(x, window + x->produced % P3_WINDOW_LEN, piece)) {
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

/* Fill a window up to byte want before the reader asks, unless the bytes have changed
 * since the publication: then the reader has to say where it continues. */
static void window_fill_ahead(struct p3_nic *n, struct p3_xfer_slot *x, uint64_t want)
{
	if (want > x->length)
		want = x->length;
	if (x->again || x->produced >= want ||
		(x->window == P3_NONE && !window_take_spare(n, x)))
		return;
	x->agreed = true;
	window_put(n, x, want, 0);
}

void p3_xfer_send_ahead(struct p3_nic *n, struct p3_xfer_slot *x, uint64_t most)
{
	uint64_t counted = n->bytes; /* that of the pass is not the limit of a call */
	n->bytes = 0;
	window_fill_ahead(n, x, most);
	n->bytes = counted;
	FAULT_POINT("window.ahead");
}

bool p3_xfer_may_go_ahead(struct p3_nic *n, struct p3_xfer_slot *x)
{
	bool heap = p3_get(&x->pub->heap) &&
		    (p3_get(&x->peer->theirs->reads) & P3_READS_HEAP);
	return p3_get(&x->pub->addr) && !heap && x->peer->index != n->conf.node &&
	       p3_pace_goes_ahead(n, x->length);
}

static void window_fill(struct p3_nic *n, struct p3_xfer_slot *x)
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
	if (x->produced < want && (x->window != P3_NONE || window_take(n, x)))
		window_put(n, x, want, read);
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
static bool xfer_end_if_released(struct p3_nic *n, struct p3_xfer_slot *x)
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
		(void)xfer_end_if_released(
			n, p3_item(it, struct p3_xfer_slot, served_link));
}

/* ---- the pass ---- */

static void source_look_after(struct p3_nic *n, struct p3_xfer_slot *x)
{
	if (x->releasing) { /* until the get's target has seen that, and freed its slot */
		const struct p3_xfer *theirs = p3_xfer_of_peer(n, x->peer, x->peer_id);
		if (p3_acquire(&theirs->id) != x->peer_id)
			p3_xfer_free(n, x);
		return;
	}
	if (x->serving && xfer_end_if_released(n, x))
		return;
	/* A reader that sees the heap asks for no window, but writes to the line of
	 * bulk_slot: each look would fetch that line from its CPU. */
	if (x->window == P3_NONE && p3_get(&x->pub->heap) &&
		(p3_get(&x->peer->theirs->reads) & P3_READS_HEAP) &&
		++x->looks % P3_LOOKS)
		return;
	if (p3_acquire(&x->peer->theirs->bulk_slot) == p3_xfer_name(x)) { /* XFER.4 */
		if (p3_peer_has_acked(x->peer))
			window_fill(n, x);
	} else if (x->ahead) {
		window_fill_ahead(n, x, P3_AHEAD_MOST);
	} else {
		window_free(n, x);
	}
}

void p3_source_look(struct p3_nic *n)
{
	n->bytes = 0; /* windows have a limit of bytes of their own in each pass */
	p3_list_each(it, &n->sources)
		source_look_after(n, p3_item(it, struct p3_xfer_slot, link));
}
