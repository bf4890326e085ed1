/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long transfers.  Only a process's own firmware writes its user memory, so all movers
 * pull: for a put the target reads, for a get the initiator.
 *
 *	bulk	both sides work: the owner copies chunks into a window of its published
 *		segment, the reader copies them out.  One such transfer for each ordered
 *		pair.
 *	cma	the reader copies from the owner's address space (process_vm_readv).
 *	direct	the reader copies from the owner's shared heap, which it has mapped
 *		(shm/heap.h); or the transfer is from a node to itself.
 *
 * Bytes in a shared heap are always moved directly.  For other transfers the reader
 * measures bulk and cma: for every power of two of lengths it keeps the recent time of
 * both, and moves most transfers by the faster one, a few by the other; which one is
 * faster depends on the machine, the length, and on whether the owner helps.  A reader
 * that finds its window empty reads a slice from the message's other end by cma
 * meanwhile.  Where it cannot, it waits: after P3_STALL_NS it takes the rest by cma,
 * and where that is not allowed it kicks the owner's NIC.
 *
 * The owner of the memory.  A cross-memory read names the owner by its process id.
 * That may come to name another process, once the owner is dead and reaped (yod delays
 * that for its children, other parents do not), or another program, after exec.  The
 * transfer's id in the published segment does not show this: a mapped segment outlives
 * the process.  So the first cross-memory read takes a proof along, the owner's
 * incarnation (64 random bits) from its own mapping of its segment's header, and counts
 * only if that is right:
 *
 *	- The kernel looks the address space up once for a call, and holds it: all bytes
 *	  of the call come from the address space of the proof.
 *	- Only the owner's address space has the proof at that address.  Forked children
 *	  do not inherit the mapping (MADV_DONTFORK), exec and exit drop it, and PtlNIFini
 *	  puts zeros in its place, after all transfers' ids are taken back.
 *	- The id, looked at afterwards (XFER.1), shows that the bytes were still offered.
 *
 * From then on the process id is the owner's until its process ends or executes another
 * program.  The kernel says so in the header: the word owner names the NIC's thread,
 * and is the futex of its robust list (leave_a_will in nic.c).  When that thread ends,
 * as it does with the process and before exec, the kernel marks the word, before the
 * address space goes, and long before the process id is free.  So a read after which
 * the word is unchanged was of the owner's memory.  Where there is no such word each
 * read takes the proof along.
 *
 * A pidfd would distinguish death from a new process by a second system call, but not
 * exec; and each peer would cost a descriptor, which programs close.
 */
#include "nic/fw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define P3_STALL_NS     100000u
#define P3_NO_SIDE_NS   2000000000u
#define P3_NO_MEMORY_NS 100000000u
#define P3_SLICE_NS     10000u  /* target duration of a slice, */
#define P3_SLICE_LEAST  65536u  /* which has at least this number of bytes, */
#define P3_SLICE_MOST   524288u /* and at most this number */
/* length of a run, which is by one mover: each mover leaves its own data in the
 * caches */
#define P3_RUN     8u
#define P3_LEARN   2u  /* runs by either mover in turn at first, */
#define P3_EXPLORE 64u /* then one run in 64 by the mover that seems slower */
#define P3_LOOKS   16u /* one pass in 16 looks for a requested window */
#define P3_PIECES  8u  /* least number of pieces of a transfer through a window */
/* an exchange does not wait for a peer that stood still this long */
#define P3_STILL_TICKS 10u
/* time for which a reader keeps its window when other transfers need one */
#define P3_LEND_NS 20000000u
#define P3_IOVECS  128u /* pieces of the region in one cross-memory read */

/* ---- the transfer table ---- */

void p3_xfer_start(struct p3_nic *n)
{
	struct p3_xfer *pub =
		(struct p3_xfer *)((char *)n->published.base + n->layout.xfers_off);
	n->slice = P3_SLICE_LEAST;
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
static struct p3_xfer_slot *free_slot(
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
	struct p3_xfer_slot *x = free_slot(n, p, class);
	if (!x)
		return NULL;
	x->in_use = true;
	x->peer = p;
	x->releasing = x->serving = x->swapped = x->agreed = false;
	x->span.md = NULL;
	x->peer_id = 0;
	x->produced = x->again = 0;
	if (++x->gen == 0)
		++x->gen; /* id 0 means none */
	p->nxfer[class] += x->slot % (n->layout.nxfers / 2) >= n->conf.nnodes;
	return x;
}

/* Return the address of these bytes of a region, or 0 if they lie in several pieces. */
static uint64_t address_of(const struct p3_region *r, uint64_t off, uint64_t len)
{
	uint64_t piece;
	char *at = p3_region_at(r, off, &piece);
	return piece >= len ? (uintptr_t)at : 0;
}

/* Return the offset of the bytes at this address in this node's shared heap, plus 1, or
 * 0 if not all of them lie there. */
static uint64_t heap_word(const struct p3_nic *n, uint64_t at, uint64_t length)
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
	uint64_t at = address_of(r, off, len);
	uint32_t reads = p3_get(&p->theirs->reads);
	if (!at || p->index == n->conf.node)
		return false;
	if (len > P3_EAGER_MOST && (reads & P3_READS_CMA))
		return true;
	return (reads & P3_READS_HEAP) && heap_word(n, at, len);
}

void p3_xfer_publish(struct p3_nic *n, struct p3_xfer_slot *x)
{
	uint64_t at = address_of(&x->span.region, x->span.offset, x->length);
	p3_set(&x->pub->addr, at);
	p3_set(&x->pub->heap, heap_word(n, at, x->length));
	p3_set(&x->pub->again, 0);
	p3_set(&x->pub->bounds.from, x->length);
	p3_set(&x->pub->bounds.to, 0);
	p3_set(&x->pub->window, 0);
	p3_set(&x->pub->produced, 0);
	FAULT_POINT("transfer.filled");
	p3_release(&x->pub->id, p3_xfer_name(x)); /* XFER.1 */
	FAULT_POINT("transfer.published");
	p3_list_add(&n->sources, &x->link);
}

static void free_window(struct p3_nic *n, struct p3_xfer_slot *x)
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
	free_window(n, x);
	if (x->slot % half >= n->conf.nnodes)
		x->peer->nxfer[x->slot / half]--;
	x->in_use = false;
	n->worked = true;
}

void p3_xfer_withdraw(struct p3_nic *n, struct p3_xfer_slot *x)
{
	p3_release(&x->pub->id, 0); /* XFER.1 */
	p3_list_del(&x->link);
	free_window(n, x);
	x->span.region = (struct p3_region){0};
	x->length = 0;
}

/* ---- the owner's side ---- */

/*
 * XFER.6: the bytes of a slot change, or leave its window.  Its reader notices, counts
 * nothing of its last slice, and tells where in the window it continues.
 *
 *	begin_change	of each slot
 *	p3_fence	once
 *	log_change	of each slot
 *	...		the bytes
 *	end_change	of each slot
 */
static void begin_change(struct p3_xfer_slot *x, struct p3_range change)
{
	x->change = change;
	x->produced = 0;
	x->agreed = false;
	p3_set(&x->pub->again, ++x->again);
	p3_set(&x->pub->produced, 0);
}

static void log_change(struct p3_xfer_slot *x)
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

static void end_change(struct p3_xfer_slot *x)
{
	p3_release(&x->pub->again, ++x->again); /* XFER.6 */
}

/*
 * If no window is free, take back the one that was lent first, once its reader has had
 * it for P3_LEND_NS; the reader need not agree, since XFER.6 tells it.  The transfer
 * goes to the end of n->sources, so it gets its next window after the transfers that
 * wait now.
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
	begin_change(oldest, (struct p3_range){0, 0});
	p3_fence(); /* XFER.6: before another transfer's bytes come into the window */
	log_change(oldest);
	end_change(oldest);
	free_window(n, oldest);
	p3_list_del(&oldest->link);
	p3_list_add(&n->sources, &oldest->link);
	p3_fw_touch(n, oldest->peer);
	return true;
}

static bool take_window(struct p3_nic *n, struct p3_xfer_slot *x)
{
	if (!n->window_free && n->windows < P3_WINDOWS) {
		uint64_t off;
		if (p3_fw_arena(n, P3_WINDOW_LEN, P3_PAGE, &off)) {
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

/* Return the size of a piece; a short transfer has short ones, so both sides copy at
 * once. */
static uint64_t piece_of(const struct p3_xfer_slot *x)
{
	uint64_t piece = x->length / P3_PIECES / P3_PAGE * P3_PAGE;
	return piece < P3_PAGE ? P3_PAGE : piece > P3_CHUNK_LEN ? P3_CHUNK_LEN : piece;
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
		p3_region_read(&x->span.region, x->span.offset + x->produced,
			window + x->produced % P3_WINDOW_LEN, piece);
		FAULT_POINT("window.filled");
		x->produced += piece;
		p3_release(&x->pub->produced, x->produced); /* XFER.2 */
		FAULT_POINT("window.produced");
		n->bytes += piece;
		n->worked = true;
	}
	p3_fw_touch(n, x->peer);
}

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
		/* the initiator keeps its slot until it sees that this one is free:
		 * wake it */
		p3_fw_touch(n, x->peer);
	p3_xfer_free(n, x);
	if (!span.md)
		return;
	p3_use_less(p3_ni_of(n, &span.md->o), P3_U_OP);
	p3_span_end(n, &span, PTL_EVENT_GET_END, fail);
}

/* End the get that this slot serves if the initiator has released it; return true
 * then. */
static bool end_if_released(struct p3_nic *n, struct p3_xfer_slot *x)
{
	const struct p3_xfer *theirs = p3_peer_xfer(n, x->peer, x->peer_id);
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

/* Return true if the get's target has seen the release and taken its id back. */
static bool release_was_seen(struct p3_nic *n, const struct p3_xfer_slot *x)
{
	return p3_acquire(&p3_peer_xfer(n, x->peer, x->peer_id)->id) != x->peer_id;
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
		free_window(n, x);
	else if (p3_fw_acked(x->peer))
		fill_window(n, x);
}

void p3_fw_source(struct p3_nic *n)
{
	n->bytes = 0; /* windows have a share of the pass of their own */
	p3_list_each(it, &n->sources)
		look_after(n, p3_item(it, struct p3_xfer_slot, link));
}

/* ---- the reader's side ---- */

struct p3_pull *p3_pull_alloc(struct p3_nic *n, struct p3_peer *p)
{
	struct p3_pull *pull = NULL;
	if (!p->own_pull.in_use)
		pull = &p->own_pull;
	for (uint32_t i = 0; !pull && p->npulls < P3_PULLS / 4 && i < P3_PULLS; i++)
		if (!n->pull[i].in_use)
			pull = &n->pull[i];
	if (!pull)
		return NULL;
	bool own = pull == &p->own_pull;
	*pull = (struct p3_pull){.peer = p, .in_use = true, .dedicated = own};
	p->npulls += !own;
	return pull;
}

static void free_pull(struct p3_pull *pull)
{
	pull->in_use = false;
	pull->peer->npulls -= !pull->dedicated;
}

/*
 * ---- exchanges of bytes that come ----
 *
 * An exchange (PtlGetPut) of bytes that a pull writes waits for the end of the pull, but
 * for P3_SWAP_NS at most, and not at all while the pull stands still.  Then all bytes of
 * the exchange change on the same side of the transfer, before it or behind it:
 *
 *	the pull has read all	The exchange is done behind the transfer.  The pull never
 *				reads these bytes again, whatever else it does (kept,
 *				kept_end).
 *	it has read none	The exchange is done before the transfer, whose bytes
 *				then replace it.
 *	it has read some	The exchange is done before the transfer, too.  The pull
 *				remembers the former content of the last bytes before
 *				its border (struct p3_edge).  That is put back for the
 *				exchange; then the pull's bytes are put over it again.
 *
 * An exchange has no side if the pull has written some of its bytes without counting
 * them (a slice that was read in vain): the pull reads them again, over the result.  Nor
 * has it one if it has bytes at an edge whose former content the pull does not know: the
 * pull has read too little, or a short put, a reply, another pull or an exchange behind
 * this pull has written there since.  Such an exchange waits until more has come, for
 * P3_NO_SIDE_NS at most: after that time the source has stopped, or lies.
 */

/* Exchange the lent bytes in memory for those that lay there before the pull; a second
 * call undoes that. */
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

/* Return true if the pull knows the bytes that lay at this edge before it, and if no
 * exchange behind the pull has changed any of them. */
static bool can_lend(const struct p3_pull *pull, const struct p3_edge *e, uint64_t border,
	struct p3_range range)
{
	return e->at == border && e->known == border && !pull->mixed &&
	       range.to - range.from <= P3_EDGE && range.from >= pull->kept &&
	       range.to <= pull->kept_end;
}

/* Return true if an exchange of these bytes has a place neither before nor behind the
 * transfer. */
static bool has_no_side(const struct p3_pull *pull, struct p3_range s)
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

static P3_RARE void come_between(
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

/* Take back the edges that were lent for an exchange, in the reverse order. */
static P3_RARE void take_back_edges(struct p3_nic *n)
{
	for (struct p3_link *it = n->pulls.prev; it != &n->pulls; it = it->prev) {
		struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		return_edge(pull, &pull->back);
		return_edge(pull, &pull->front);
	}
}

static void remember(const struct p3_pull *pull, struct p3_edge *e, struct p3_range range)
{
	unsigned char is[P3_EDGE];
	uint64_t len = range.to - range.from;
	p3_region_read(&pull->span.region, pull->span.offset + range.from, is, len);
	for (uint64_t i = 0; i < len; i++)
		e->under[(range.from + i) % P3_EDGE] = is[i];
}

/* Before the pull writes from the front up to byte to, remember what lies there.  The
 * slice that reaches the pull's end needs no such record: the pull ends with it, so no
 * exchange comes between. */
static inline void write_front(struct p3_pull *pull, uint64_t to)
{
	struct p3_edge *e = &pull->front;
	if (to <= e->at)
		return;
	bool whole = to - e->at >= P3_EDGE;
	if (to < pull->end && (whole || e->known == e->at)) {
		remember(pull, e, (struct p3_range){whole ? to - P3_EDGE : e->at, to});
		e->known = to;
	}
	e->at = to;
}

/* Discard an edge's former bytes if another operation has written to their place: they
 * are no longer what the exchange would have to see. */
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
	if (!p3_bounds_meet(n->pulled, r, off, len))
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
		if (p3_bounds_meet(bounds, &other->span.region, other->span.offset,
			    other->length))
			pull->mixed = other->mixed = true;
	}
}

/* Add the bytes that a new pull writes to n->pulled.  The pull must not be in n->pulls
 * yet, or it would be found to share bytes with itself. */
static void note_bytes(struct p3_nic *n, struct p3_pull *pull)
{
	const struct p3_span *span = &pull->span;
	struct p3_bounds b = p3_region_bounds(&span->region, span->offset, pull->length);
	if (p3_list_empty(&n->pulls)) {
		n->pulled = b;
		return;
	}
	if (p3_bounds_meet(n->pulled, &span->region, span->offset, pull->length))
		mark_mixed(n, pull, b);
	n->pulled.lo = b.lo < n->pulled.lo ? b.lo : n->pulled.lo;
	n->pulled.hi = b.hi > n->pulled.hi ? b.hi : n->pulled.hi;
}

/* Correct the front after a slice that wrote only up to byte to; was is the front
 * before write_front(). */
static inline void wrote_less(struct p3_pull *pull, uint64_t was, uint64_t to)
{
	pull->front.at = to > was ? to : was;
}

/* As write_front(), before the pull writes at the back, from byte from on. */
static inline void write_back(struct p3_pull *pull, uint64_t from)
{
	struct p3_edge *e = &pull->back;
	if (from >= e->at)
		return;
	bool whole = e->at - from >= P3_EDGE;
	if (from > pull->done && (whole || e->known == e->at)) {
		remember(
			pull, e, (struct p3_range){from, whole ? from + P3_EDGE : e->at});
		e->known = from;
	}
	e->at = from;
}

/* ---- exchanges: XFER.5 ---- */

/* Tell a put's source that this node reads the bytes from its memory, until the pull
 * ends.  Return false if nothing may be read now, since an exchange at the source
 * changes bytes. */
static bool announce(struct p3_nic *n, struct p3_pull *pull)
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

static void recant(struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	if (pull->announced)
		p3_release(&p->mine->reading, --p->nreading); /* XFER.5 */
	pull->announced = pull->may_read = false;
}

static bool is_pulled_here(struct p3_nic *n, const struct p3_xfer_slot *x)
{
	p3_list_each(it, &n->pulls) {
		const struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (pull->peer == x->peer && pull->xfer_id == p3_xfer_name(x))
			return true;
	}
	return false;
}

/*
 * Return true if the reader of this source has begun.  A put that its target has not
 * even matched does not hold up an exchange: its request may lie in a lane behind the
 * exchange.
 */
static bool has_begun(struct p3_nic *n, const struct p3_xfer_slot *x)
{
	if (x->serving || x->produced || x->again)
		return true;
	return x->peer->index == n->conf.node
		       ? is_pulled_here(n, x)
		       : p3_acquire(&x->peer->theirs->reading) != 0; /* XFER.5 */
}

/* Return true if no byte of the pull has come for P3_STILL_TICKS of this node's
 * ticks. */
static bool is_stuck(const struct p3_nic *n, const struct p3_pull *pull)
{
	return pull->moved_ns &&
	       p3_now_ns() - pull->moved_ns >= P3_STILL_TICKS * n->tick_ns;
}

/* Return true if an exchange has to wait for a pull that writes some of the same
 * bytes. */
static bool holds_up(const struct p3_nic *n, const struct p3_pull *pull,
	struct p3_range swap, uint64_t waited)
{
	if (has_no_side(pull, swap))
		return waited < P3_NO_SIDE_NS;
	return waited < P3_SWAP_NS && !is_stuck(n, pull);
}

static bool writes_there(struct p3_nic *n, const struct p3_region *r, uint64_t off,
	uint64_t len, uint64_t waited)
{
	struct p3_range range;
	p3_list_each(it, &n->pulls) {
		const struct p3_pull *pull = p3_item(it, struct p3_pull, link);
		if (p3_region_common(r, off, len, &pull->span.region, pull->span.offset,
			    pull->length, &range) &&
			holds_up(n, pull, range, waited))
			return true;
	}
	return false;
}

/* Return true if the peer's firmware has made no pass for P3_STILL_TICKS of this node's
 * ticks: the peer is stopped, or has no CPU. */
static bool is_still(const struct p3_nic *n, struct p3_peer *p)
{
	const p3_a64 *count = (const p3_a64 *)(p->base + n->layout.counters_off);
	uint64_t passes = p3_get(&count[P3_C_PASSES]), now = p3_now_ns();
	if (p->index == n->conf.node)
		return false;
	if (passes != p->passes || !p->passed_ns)
		p->passed_ns = now;
	p->passes = passes;
	return now - p->passed_ns >= P3_STILL_TICKS * n->tick_ns;
}

/* Tell readers that have begun to read the marked sources which bytes change. */
static void offer_anew(struct p3_nic *n)
{
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->swapped && has_begun(n, x))
			begin_change(x, x->change);
	}
	p3_fence(); /* XFER.6: before the bytes change */
	p3_list_each(src, &n->sources) {
		struct p3_xfer_slot *x = p3_item(src, struct p3_xfer_slot, link);
		if (x->again % 2)
			log_change(x);
	}
}

/* Mark the sources that an exchange changes.  Return false if there are none. */
static bool mark_sources(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len)
{
	bool any = false;
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		x->swapped =
			!x->releasing && p3_region_common(r, off, len, &x->span.region,
						 x->span.offset, x->length, &x->change);
		any |= x->swapped;
	}
	return any;
}

/* Return true if a marked source is being read by a peer whose firmware runs, so that
 * it will soon have finished. */
static bool readers_move(struct p3_nic *n)
{
	bool any = false;
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		any |= x->swapped && has_begun(n, x) && !is_still(n, x->peer);
	}
	return any;
}

static void announce_swap(struct p3_nic *n)
{
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->swapped)
			p3_set(&x->peer->mine->swapping, 1);
	}
	p3_fw_fence(n, p3_fence_heavy); /* XFER.5 */
	FAULT_POINT("swap.announced");
}

/* Look for readers before announce_swap(), whose heavy fence costs a system call, and
 * again behind it. */
bool p3_xfer_may_swap(struct p3_nic *n, const struct p3_region *r, uint64_t off,
	uint64_t len, uint64_t waited)
{
	bool late = waited >= P3_SWAP_NS, busy = writes_there(n, r, off, len, waited);
	bool any = !busy && mark_sources(n, r, off, len);
	if (any && (late || !(busy = readers_move(n)))) {
		announce_swap(n);
		busy = !late && readers_move(n);
	}
	if (busy) {
		p3_xfer_swapped(n);
		return false;
	}
	if (any)
		offer_anew(n);
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		come_between(n, r, off, len);
	return true;
}

void p3_xfer_swapped(struct p3_nic *n)
{
	if (p3_unlikely(!p3_list_empty(&n->pulls)))
		take_back_edges(n);
	p3_list_each(it, &n->sources) {
		struct p3_xfer_slot *x = p3_item(it, struct p3_xfer_slot, link);
		if (x->swapped)
			p3_release(&x->peer->mine->swapping, 0); /* XFER.5 */
		if (x->again % 2)
			end_change(x);
		x->swapped = false;
	}
}

/* ---- the source's bytes have changed: XFER.6 ---- */

enum moved { MOVED_NOTHING, MOVED, MOVE_FAILED };

/* Count only the bytes before done, and from end on, as read.  If part of an older
 * change at the source (old_front, old_back) is then read again, read all of it again,
 * or the pull would have half of the change.  Return false if that includes bytes
 * before kept, or from kept_end on, which must not be read again. */
static bool retreat(struct p3_pull *pull, uint64_t done, uint64_t end)
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
 * false if it must not read them again (see retreat()).
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
	return retreat(pull, change.from < done ? change.from : done,
		change.to > end ? change.to : end);
}

/*
 * Take each change that the source has logged since the pull's value of again, up to
 * the source's present one, which is even.  Then look whether the source's again has
 * moved on: if so, the log may have been overwritten meanwhile, so return MOVED_NOTHING
 * and leave the pull unchanged.
 */
static P3_RARE enum moved catch_up(
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
		return MOVED_NOTHING;
	}
	pull->again = again;
	return good ? MOVED : MOVE_FAILED;
}

/* React to a change of the source's bytes since the last slice. */
static P3_RARE enum moved read_anew(
	struct p3_pull *pull, const struct p3_xfer *src, uint64_t again)
{
	struct p3_peer *p = pull->peer;
	if (again % 2)
		return MOVED_NOTHING; /* bytes are changing: the next pass looks again */
	enum moved caught = catch_up(pull, src, again);
	if (caught != MOVED)
		return caught;
	if (p->bulk == pull) {
		p3_set(&p->mine->bulk_want, pull->end);
		p3_set(&p->mine->bulk_read, pull->done);
		p3_release(&p->mine->bulk_again, again); /* XFER.6 */
	}
	return MOVED_NOTHING;
}

/* ---- bulk, cma, direct ---- */

static void leave_bulk(struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	if (p->bulk != pull)
		return;
	p->bulk = NULL;
	p3_release(&p->mine->bulk_slot, 0); /* XFER.4 */
	FAULT_POINT("window.left");
}

/* Request a window.  Return MOVED_NOTHING if the next pass has to try again, since the
 * source's bytes are changing, and some of them have been read. */
static enum moved enter_bulk(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	const struct p3_xfer *src = p3_peer_xfer(n, p, pull->xfer_id);
	uint64_t again = p3_acquire(&src->again); /* XFER.6 */
	if (p3_unlikely(pull->done || pull->end < pull->length)) {
		enum moved caught =
			again % 2 ? MOVED_NOTHING : catch_up(pull, src, again);
		if (caught != MOVED)
			return caught;
	}
	p->bulk = pull;
	pull->mover = P3_MOVE_BULK;
	/* An odd value says that the bytes are changing.  The even one before it makes
	 * judge() reject what is read until the change is over. */
	pull->again = again & ~UINT64_C(1);
	p3_set(&p->mine->bulk_want, pull->end);
	p3_set(&p->mine->bulk_read, pull->done);
	p3_set(&p->mine->bulk_again, pull->again);
	FAULT_POINT("window.wanted");
	p3_release(&p->mine->bulk_slot, pull->xfer_id); /* XFER.4 */
	FAULT_POINT("window.entered");
	p3_fw_touch(n, p);
	return MOVED;
}

static bool may_cma(const struct p3_nic *n, const struct p3_pull *pull)
{
	return n->conf.cma && !pull->peer->cma_off && pull->addr;
}

static bool may_bulk(const struct p3_nic *n, const struct p3_pull *pull)
{
	return (n->conf.bulk || !may_cma(n, pull)) && !pull->peer->bulk &&
	       pull->done == pull->kept;
}

bool p3_xfer_sees_heap(const struct p3_pull *pull)
{
	return pull->heap && pull->peer->heap.base;
}

static struct p3_pace *pace_of(struct p3_nic *n, uint64_t length)
{
	return &n->pace[63 - __builtin_clzll(length)];
}

/* Return true if the next run is to move by bulk, false for cma: each in turn at first,
 * then the faster one, and one run in P3_EXPLORE the slower one. */
static bool bulk_is_better(const struct p3_pace *pace)
{
	uint32_t run = pace->turns / P3_RUN;
	if (run < P3_LEARN)
		return run % 2 == 0;
	/* A window also takes time of the peer's CPU, which could read for the peer's own
	 * transfers: so it must be clearly faster to be better for both. */
	return (pace->bulk_ns < pace->cma_ns - pace->cma_ns * 3 / 32) !=
	       (run % P3_EXPLORE == 0);
}

/* Return true if a transfer is timed.  The first half of a run is not, since it finds
 * the other mover's data in the caches.  Of short transfers only the last of a run is,
 * once both movers have been measured. */
static bool counts(const struct p3_pace *pace, uint64_t length)
{
	bool rarely = length < P3_SLICE_LEAST && pace->turns >= P3_LEARN * P3_RUN;
	return pace->turns % P3_RUN >= (rarely ? P3_RUN - 1 : P3_RUN / 2);
}

/* Choose the mover of a transfer that may go by bulk or by cma, and begin to time it.
 * Return true for bulk. */
static bool pick(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_pace *pace = pace_of(n, pull->length);
	if (pace->turns % P3_RUN == 0)
		pace->bulk = bulk_is_better(pace);
	pull->began = pace->bulk ? P3_MOVE_BULK : P3_MOVE_CMA;
	pull->began_ns = counts(pace, pull->length) ? p3_now_ns() : 0;
	pace->turns++;
	return pace->bulk;
}

/* Choose a mover.  Return MOVE_FAILED if the transfer cannot go on from where it is. */
static enum moved choose(struct p3_nic *n, struct p3_pull *pull)
{
	bool cma = may_cma(n, pull), bulk = may_bulk(n, pull);
	if (pull->peer->index == n->conf.node || p3_xfer_sees_heap(pull)) {
		pull->mover = P3_MOVE_DIRECT;
	} else if (bulk && (!cma || pick(n, pull))) {
		return enter_bulk(n, pull);
	} else if (cma) {
		pull->mover = P3_MOVE_CMA;
	}
	return MOVED;
}

/* If the transfer was timed, let its duration count in the mean of the mover that began
 * it. */
static void learn(struct p3_nic *n, const struct p3_pull *pull)
{
	if (!pull->began_ns)
		return;
	struct p3_pace *pace = pace_of(n, pull->length);
	uint64_t *mean = pull->began == P3_MOVE_BULK ? &pace->bulk_ns : &pace->cma_ns;
	uint64_t took = p3_now_ns() - pull->began_ns + 1;
	if (took < *mean / 4 || !*mean)
		*mean = took;
	else if (took < *mean)
		*mean = (*mean + took) / 2;
	else /* limit the step: a thread may have been preempted */
		*mean += (took < 4 * *mean ? took - *mean : 3 * *mean) / 8;
}

void p3_pull_begin(struct p3_nic *n, struct p3_pull *pull)
{
	note_bytes(n, pull);
	p3_list_add(&n->pulls, &pull->link);
	pull->moved_ns = 0;
	pull->kick_ns = P3_STALL_NS;
	pull->began_ns = 0;
	pull->end = pull->kept_end = pull->length;
	pull->back.at = pull->back.known = pull->length;
	pull->again = 0; /* XFER.6: the value at publication */
	if (pull->length)
		(void)choose(n, pull);
	n->worked = true;
	P3_TRACE(begin, n, pull);
	FAULT_POINT("pull.begun");
	p3_fw_rouse(n); /* this side pulls, and no peer rings for that */
}

/* End a pull, and with it its put or get: the bytes are there, or will never come. */
void p3_fw_end_pull(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	P3_TRACE(about, n, pull->topic, P3_TRACE_END, fail, pull->length);
	p3_list_del(&pull->link);
	leave_bulk(pull);
	recant(pull);
	if (pull->first)
		pull->peer->behind = false;
	if (fail == PTL_NI_OK && pull->span.md)
		learn(n, pull);
	n->worked = true;
	if (pull->get) {
		p3_fw_get_done(n, pull, fail);
		return;
	}
	struct p3_answer a = {.kind = P3_RSP_DONE,
		.flags = pull->ack && !fail ? P3_F_ACK : 0,
		.pending = pull->peer_pending,
		.status = fail,
		.mlength = pull->length};
	struct p3_span span = pull->span;
	FAULT_POINT("pull.unanswered");
	p3_fw_respond(n, pull->peer, &a);
	FAULT_POINT("pull.answered");
	free_pull(pull);
	if (!span.md)
		return;
	p3_use_less(p3_ni_of(n, &span.md->o), P3_U_OP);
	p3_span_end(n, &span, PTL_EVENT_PUT_END, fail);
}

/* Before a slice counts, check that the owner still offers the transfer (its id) and
 * has not changed its bytes (again) since the pull's last look. */
static inline enum moved judge(struct p3_nic *n, struct p3_pull *pull)
{
	const struct p3_xfer *src = p3_peer_xfer(n, pull->peer, pull->xfer_id);
	p3_load_fence(); /* XFER.1, XFER.6 */
	uint64_t again = p3_acquire(&src->again);
	if (p3_get(&src->id) != pull->xfer_id)
		return MOVE_FAILED;
	if (p3_likely(again == pull->again))
		return MOVED;
	return read_anew(pull, src, again);
}

static void count_slice(
	struct p3_nic *n, struct p3_pull *pull, uint64_t len, enum p3_counter c)
{
	pull->moved_ns = 0;
	n->bytes += len;
	n->worked = true;
	p3_count(&n->count[c], len);
}

/* Return true if a window lies in memory that can be read without a fault.  The last
 * P3_WINDOWS of them are remembered, and an honest owner has no more. */
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

/* Give up the pull's mover.  If the pull has a window, continue where that stands.  If
 * not, count only the kept bytes as read, and choose a mover anew. */
static enum moved begin_anew(struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	bool has_one = p->bulk == pull;
	uint64_t read = has_one ? p3_get(&p->mine->bulk_read) : 0;
	if (!retreat(pull, read > pull->kept ? read : pull->kept,
		    has_one ? pull->end : pull->kept_end))
		return MOVE_FAILED;
	if (has_one && pull->done != read)
		p3_release(&p->mine->bulk_read, pull->done); /* XFER.2 */
	pull->mover = has_one ? P3_MOVE_BULK : P3_MOVE_START;
	return MOVED_NOTHING;
}

/* Return true if a pull changes its mover, since the kernel has no memory for its read:
 * nothing has been read from the front yet, or the pull has a window, or nothing has
 * moved for P3_NO_MEMORY_NS. */
static bool must_change(const struct p3_pull *pull)
{
	if (pull->mover == P3_MOVE_BULK)
		return false;
	return !pull->done || pull->peer->bulk == pull ||
	       (pull->moved_ns && p3_now_ns() - pull->moved_ns > P3_NO_MEMORY_NS);
}

static enum moved cma_failed(struct p3_nic *n, struct p3_pull *pull, ssize_t err)
{
	if (err == -EFAULT && pull->peer->bulk != pull)
		return MOVE_FAILED;
	if (err == -EFAULT) {
		pull->addr = 0; /* memory that only its owner can read */
		return begin_anew(pull);
	}
	if (err == -ENOMEM) /* the kernel has no memory now */
		return must_change(pull) ? begin_anew(pull) : MOVED_NOTHING;
	/* The read is not allowed, or there is no such process.  If the owner is dead
	 * yod will say so; until then this pair does not use cma. */
	if (!pull->peer->cma_off && err != -ESRCH)
		p3_count(&n->count[P3_C_CMA_FALLBACK], 1);
	pull->peer->cma_off = true;
	p3_fw_say_reads(n, pull->peer);
	return pull->mover == P3_MOVE_BULK ? MOVED_NOTHING : begin_anew(pull);
}

/* Adapt the length of slices to the speed of the last one, so that one takes
 * P3_SLICE_NS. */
static void fit_slices(struct p3_nic *n, uint64_t len, uint64_t ns)
{
	uint64_t fit = len * P3_SLICE_NS / (ns + 1);
	fit = fit > P3_SLICE_MOST ? P3_SLICE_MOST : fit;
	n->slice = (3 * n->slice + fit) / 4 / P3_PAGE * P3_PAGE;
	if (n->slice < P3_SLICE_LEAST)
		n->slice = P3_SLICE_LEAST;
	if (ns > 2 * P3_SLICE_NS)
		p3_count(&n->count[P3_C_OVERRUNS], 1);
}

/* Read a process's memory.  Return the number of bytes, or -errno.  The program's errno
 * keeps its value. */
static ssize_t read_memory(uint32_t os_pid, const struct iovec *here, unsigned k,
	const struct iovec *there, unsigned l)
{
	int saved = errno;
	ssize_t got = process_vm_readv((pid_t)os_pid, here, k, there, l, 0);
	if (got >= 0)
		return got;
	got = -errno;
	errno = saved;
	return got;
}

/* Read with a proof that the memory is the owner's.  The destination is here[1] to
 * here[k]; here[0] is free for the proof. */
static ssize_t read_proven(const struct p3_peer *p, struct iovec *here, unsigned k,
	uint64_t at, uint64_t len)
{
	uint64_t proof;
	struct iovec there[2] = {{(void *)(uintptr_t)p->proof, sizeof proof},
		{(void *)(uintptr_t)at, len}};
	here[0] = (struct iovec){&proof, sizeof proof};
	ssize_t got = read_memory(p->os_pid, here, k + 1, there, 2);
	if (got > (ssize_t)sizeof proof && proof == p->incarnation)
		return got - (ssize_t)sizeof proof;
	if (got >= 0 || got == -EFAULT)
		return got == sizeof proof && proof == p->incarnation ? -EFAULT : -ESRCH;
	return got;
}

/* Return true if the peer's process has neither ended nor become another program. */
static bool is_there(const struct p3_peer *p)
{
	p3_load_fence(); /* SEG.1 */
	return p->owner &&
	       p3_get(&((const struct p3_seg_header *)p->base)->owner) == p->owner;
}

static ssize_t read_known(const struct p3_peer *p, struct iovec *here, unsigned k,
	uint64_t at, uint64_t len)
{
	struct iovec there = {(void *)(uintptr_t)at, len};
	ssize_t got = read_memory(p->os_pid, here + 1, k, &there, 1);
	return is_there(p) ? got : -ESRCH;
}

static ssize_t read_process(
	struct p3_peer *p, struct iovec *here, unsigned k, uint64_t at, uint64_t len)
{
	if (p->proven)
		return read_known(p, here, k, at, len);
	/* Load the word before the proof.  It may be 0 still: the NIC's thread stores
	 * it when it begins. */
	p->owner =
		p3_acquire(&((const struct p3_seg_header *)p->base)->owner); /* SEG.1 */
	ssize_t got = read_proven(p, here, k, at, len);
	p->proven = got > 0 && is_there(p);
	return got;
}

/* Read from the owner's memory.  Return the number of bytes, or -errno. */
static ssize_t read_there(
	struct p3_nic *n, const struct p3_pull *pull, uint64_t at, uint64_t len)
{
	struct iovec here[1 + P3_IOVECS];
	uint64_t room = 0, start = len >= P3_SLICE_LEAST ? p3_now_ns() : 0;
	unsigned k = p3_region_iovecs(
		&pull->span.region, pull->span.offset + at, len, here + 1, P3_IOVECS);
	for (unsigned i = 1; i <= k; i++)
		room += here[i].iov_len;
	ssize_t got = read_process(pull->peer, here, k, pull->addr + at, room);
	FAULT_POINT("cma.read");
	if (start && got >= (ssize_t)P3_SLICE_LEAST)
		fit_slices(n, (uint64_t)got, p3_now_ns() - start);
	return got;
}

/*
 * While the window is empty, read the last bytes of the rest from the owner's memory.
 * Read at most half of the rest, since the owner meanwhile goes on filling the window
 * from the front; read all of the rest if it is at most P3_SLICE_LEAST.
 */
static enum moved move_tail(struct p3_nic *n, struct p3_pull *pull)
{
	uint64_t rest = pull->end - pull->done, piece = rest / 2 / P3_PAGE * P3_PAGE;
	if (!may_cma(n, pull) || pull->span.region.iov || !announce(n, pull))
		return MOVED_NOTHING;
	if (piece > n->slice)
		piece = n->slice;
	if (rest <= P3_SLICE_LEAST)
		piece = rest;
	uint64_t was = pull->back.at;
	write_back(pull, pull->end - piece);
	ssize_t got = read_there(n, pull, pull->end - piece, piece);
	if (got <= 0) {
		pull->back.at = was;
		return cma_failed(n, pull, got);
	}
	if ((uint64_t)got < piece)
		return MOVED_NOTHING;
	enum moved good = judge(n, pull);
	if (good != MOVED)
		return good;
	pull->end -= piece;
	p3_set(&pull->peer->mine->bulk_want, pull->end);
	FAULT_POINT("window.tail_taken");
	count_slice(n, pull, piece, P3_C_CMA_BYTES);
	return MOVED;
}

static enum moved move_bulk(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_peer *p = pull->peer;
	const struct p3_xfer *src = p3_peer_xfer(n, p, pull->xfer_id);
	uint64_t produced = p3_acquire(&src->produced); /* XFER.2 */
	uint64_t window = p3_get(&src->window);
	enum moved good = judge(n, pull);
	if (good != MOVED)
		return good;
	if (produced <= pull->done)
		return move_tail(n, pull);
	if (produced > pull->length || !window_ok(n, p, window))
		return MOVE_FAILED;
	if (produced > pull->end)
		produced = pull->end;
	while (pull->done < produced && n->bytes < P3_SLICE_LEAST) {
		uint64_t piece = P3_CHUNK_LEN - pull->done % P3_CHUNK_LEN;
		if (piece > produced - pull->done)
			piece = produced - pull->done;
		write_front(pull, pull->done + piece);
		p3_region_write(&pull->span.region, pull->span.offset + pull->done,
			p->image + window + pull->done % P3_WINDOW_LEN, piece);
		FAULT_POINT("window.copied");
		if ((good = judge(n, pull)) != MOVED)
			return good;
		pull->done += piece;
		count_slice(n, pull, piece, P3_C_BULK_BYTES);
		p3_release(&p->mine->bulk_read, pull->done); /* XFER.2 */
		FAULT_POINT("window.read");
	}
	p3_fw_touch(n, p);
	return MOVED;
}

static enum moved move_cma(struct p3_nic *n, struct p3_pull *pull)
{
	uint64_t piece = pull->end - pull->done;
	if (!announce(n, pull))
		return MOVED_NOTHING;
	if (piece > n->slice + n->slice / 4) /* include a small rest */
		piece = n->slice;
	uint64_t was = pull->front.at;
	write_front(pull, pull->done + piece);
	ssize_t got = read_there(n, pull, pull->done, piece);
	if (got < (ssize_t)piece)
		wrote_less(pull, was, pull->done + (got > 0 ? (uint64_t)got : 0));
	if (got <= 0)
		return cma_failed(n, pull, got);
	enum moved good = judge(n, pull);
	if (good != MOVED)
		return good;
	pull->done += (uint64_t)got;
	FAULT_POINT("cma.between");
	count_slice(n, pull, (uint64_t)got, P3_C_CMA_BYTES);
	return MOVED;
}

/* Give up the heap, since there is no memory for its pages.  Continue by cma; where
 * that is not possible, or nothing has been read, choose a mover anew. */
static enum moved heap_failed(struct p3_nic *n, struct p3_pull *pull)
{
	pull->heap = 0;
	pull->addr = p3_get(&p3_peer_xfer(n, pull->peer, pull->xfer_id)->addr);
	if (pull->done && !may_cma(n, pull))
		return begin_anew(pull);
	pull->mover = pull->done ? P3_MOVE_CMA : P3_MOVE_START;
	return MOVED_NOTHING;
}

#if defined(P3_TSAN) || defined(P3_VALGRIND)
/* Copy a slice by a system call, into which the checkers do not look.  The owner may
 * write to bytes that it has taken back while this node still copies them: XFER.1
 * detects that, but the checkers would report it. */
static uint64_t take_slice(struct p3_pull *pull, const char *from, uint64_t len)
{
	struct iovec here[P3_IOVECS], there = {(void *)(uintptr_t)from, 0};
	unsigned k = p3_region_iovecs(
		&pull->span.region, pull->span.offset + pull->done, len, here, P3_IOVECS);
	for (unsigned i = 0; i < k; i++)
		there.iov_len += here[i].iov_len;
	ssize_t got = read_memory((uint32_t)getpid(), here, k, &there, 1);
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
static enum moved move_from_heap(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_heap_view *view = &pull->peer->heap;
	uint64_t piece = pull->length - pull->done, off = pull->heap - 1;
	if (!announce(n, pull))
		return MOVED_NOTHING;
	if (!p3_heap_view_holds(view, off, pull->length))
		return MOVE_FAILED;
	if (piece > P3_SLICE_LEAST)
		piece = P3_SLICE_LEAST;
	if (!p3_heap_view_reach(view, off + pull->done, piece))
		return heap_failed(n, pull);
	uint64_t was = pull->front.at;
	write_front(pull, pull->done + piece);
	uint64_t got = take_slice(pull, view->base + off + pull->done, piece);
	if (got < piece)
		wrote_less(pull, was, pull->done + got);
	FAULT_POINT("heap.copied");
	enum moved good = judge(n, pull);
	if (good != MOVED)
		return good;
	pull->done += got;
	count_slice(n, pull, got, P3_C_DIRECT_BYTES);
	return MOVED;
}

static enum moved move_direct(struct p3_nic *n, struct p3_pull *pull)
{
	if (pull->peer->index != n->conf.node)
		return move_from_heap(n, pull);
	const struct p3_xfer_slot *x = &n->xfer[(uint32_t)pull->xfer_id];
	if (!x->in_use || p3_get(&x->pub->id) != pull->xfer_id)
		return MOVE_FAILED;
	if (p3_unlikely(x->again != pull->again)) {
		if (read_anew(pull, x->pub, x->again) == MOVE_FAILED)
			return MOVE_FAILED;
		if (pull->done == pull->end)
			return MOVED;
	}
	uint64_t piece;
	char *from = p3_region_at(&x->span.region, x->span.offset + pull->done, &piece);
	if (piece > pull->length - pull->done)
		piece = pull->length - pull->done;
	if (piece > P3_SLICE_LEAST)
		piece = P3_SLICE_LEAST;
	write_front(pull, pull->done + piece);
	p3_region_write(&pull->span.region, pull->span.offset + pull->done, from, piece);
	pull->done += piece;
	count_slice(n, pull, piece, P3_C_DIRECT_BYTES);
	return MOVED;
}

/* Change the mover when nothing moved for a while, or wake the owner's NIC. */
static enum moved unstall(struct p3_nic *n, struct p3_pull *pull)
{
	uint64_t now = p3_now_ns();
	if (!pull->moved_ns)
		pull->moved_ns = now;
	if (now - pull->moved_ns < P3_STALL_NS)
		return MOVED_NOTHING;
	if (may_cma(n, pull)) {
		/* Keep the window: the kernel may refuse any later slice. */
		enum moved moved = move_cma(n, pull);
		if (moved == MOVED)
			pull->mover = P3_MOVE_CMA;
		if (moved != MOVED_NOTHING || pull->mover != P3_MOVE_BULK)
			return moved;
	}
	if (now - pull->moved_ns >= pull->kick_ns) {
		pull->kick_ns *= 2;
		p3_kick_peer(n, pull->peer);
	}
	return MOVED_NOTHING;
}

static void move_one(struct p3_nic *n, struct p3_pull *pull)
{
	enum moved moved = MOVED_NOTHING;
	if (pull->done == pull->end) {
		p3_fw_end_pull(n, pull, PTL_NI_OK);
		return;
	}
	if (pull->mover == P3_MOVE_START && choose(n, pull) == MOVE_FAILED)
		moved = MOVE_FAILED;
	else if (pull->mover == P3_MOVE_BULK)
		moved = move_bulk(n, pull);
	else if (pull->mover == P3_MOVE_CMA)
		moved = move_cma(n, pull);
	else if (pull->mover == P3_MOVE_DIRECT)
		moved = move_direct(n, pull);
	if (moved == MOVED_NOTHING)
		moved = unstall(n, pull);
	if (moved == MOVE_FAILED)
		p3_fw_end_pull(n, pull, PTL_NI_FAIL);
	else if (pull->done == pull->end)
		p3_fw_end_pull(n, pull, PTL_NI_OK);
}

void p3_fw_move(struct p3_nic *n)
{
	n->bytes = 0; /* bytes that came through the lanes do not count here */
	p3_list_each(it, &n->pulls) {
		if (n->bytes >= P3_SLICE_LEAST)
			break;
		move_one(n, p3_item(it, struct p3_pull, link));
	}
	if (p3_list_empty(&n->pulls) || n->pulls.next->next == &n->pulls)
		return;
	struct p3_link *first = n->pulls.next; /* next time begin with the next pull */
	p3_list_del(first);
	p3_list_add(&n->pulls, first);
}

/* ---- ends ---- */

static void forget_pull(struct p3_nic *n, struct p3_pull *pull, uint32_t ni)
{
	if (!pull->span.md || pull->span.md->o.ni != ni)
		return;
	p3_span_forget(&pull->span);
	pull->ack = false;
	if (pull->get)
		pull->get->md = NULL;
	p3_fw_end_pull(n, pull, PTL_NI_OK); /* dropped here: no failure for the peer */
}

void p3_xfer_forget(struct p3_nic *n, uint32_t ni)
{
	p3_list_each(it, &n->pulls)
		forget_pull(n, p3_item(it, struct p3_pull, link), ni);
	p3_list_each(src, &n->sources) {
		struct p3_xfer_slot *x = p3_item(src, struct p3_xfer_slot, link);
		if (!x->serving || !x->span.md || x->span.md->o.ni != ni)
			continue;
		p3_span_forget(&x->span);
		p3_xfer_finish_serving(n, x, PTL_NI_FAIL);
	}
}

void p3_xfer_revoke_all(struct p3_nic *n)
{
	for (uint32_t i = 0; i < n->layout.nxfers; i++)
		p3_release(&n->xfer[i].pub->id, 0); /* XFER.1 */
}
