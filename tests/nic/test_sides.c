/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of the bytes of a long put: each is before the put or behind it, with all of
 * its bytes.  Node 1 sends, node 0 reads.  Node 0's thread holds the leases of both nodes
 * and makes their passes, so a case decides when each step and each exchange happens.
 */
#include "nic/proto/proto.h"
#include "nic/run/lease.h"
#include "nic/xfer/xfer.h"
#include "cases.h"
#include "lib/node/node.h"
#include "support/hold.h"

enum { PT = 4, PT_QUIET, LONG = 4 << 20, OLD = 1, NEW, EARLY, LATE };
#define NO_SIDE_NS 2000000000u /* P3_NO_SIDE_NS of getput.c */
enum { SWAP_MOST = 64, PASSES = 100000 };

struct stage {
	struct p3_nic *source, *target;
	unsigned char *from, *to;  /* LONG bytes each */
	ptl_handle_md_t all, into; /* descriptors of these bytes */
	ptl_process_id_t id[2];
	const char *wrong; /* the first condition that did not hold, */
	int line;          /* and where */
	bool fails;        /* the put is to fail */
};

/* Record the first condition that does not hold; it is reported after the leases have
 * been given back. */
#define EXPECT(s, cond)                                                                  \
	do {                                                                             \
		if (!(cond) && !(s)->wrong) {                                            \
			(s)->wrong = #cond;                                              \
			(s)->line = __LINE__;                                            \
		}                                                                        \
	} while (0)

typedef void play_fn(struct stage *s);

static struct stage stage;
static struct gate *held, *ready, *over;

/* ---- steps of the transfer ---- */

static struct p3_pull *pull_of(struct stage *s)
{
	if (p3_list_empty(&s->target->pulls))
		return NULL;
	return p3_item(s->target->pulls.next, struct p3_pull, link);
}

/* Make passes until some bytes have come, and return their number.  A put through a
 * window then stands still until the source makes a pass. */
static uint64_t come(struct stage *s)
{
	for (int i = 0; i < PASSES && !(pull_of(s) && pull_of(s)->done); i++) {
		(void)p3_pass_run(s->target);
		if (pull_of(s) && pull_of(s)->mover == P3_MOVE_BULK)
			(void)p3_pass_run(s->source);
	}
	for (int i = 0; pull_of(s) && pull_of(s)->mover == P3_MOVE_BULK && i < 64; i++)
		(void)p3_pass_run(s->target);
	EXPECT(s, pull_of(s) && pull_of(s)->done >= 4096);
	EXPECT(s, pull_of(s) && pull_of(s)->done < pull_of(s)->end);
	return s->wrong ? 0 : pull_of(s)->done;
}

static void finish(struct stage *s)
{
	for (int i = 0; i < PASSES && pull_of(s); i++) {
		(void)p3_pass_run(s->source);
		(void)p3_pass_run(s->target);
	}
	EXPECT(s, !pull_of(s));
}

/* ---- exchanges ---- */

static struct p3_region plain(unsigned char *at, size_t len)
{
	return (struct p3_region){.start = (char *)at, .size = len};
}

/* Exchange the bytes of a region.  Return false if an exchange that has waited for waited
 * nanoseconds may not be done yet. */
static bool swap_after(struct p3_nic *n, const struct p3_region *r, unsigned seed,
	unsigned char *got, uint64_t waited)
{
	unsigned char with[SWAP_MOST];
	if (!p3_xfer_may_swap(n, r, 0, r->size, waited))
		return false;
	fill_pattern(with, sizeof with, seed);
	p3_region_read(r, 0, got, r->size);
	p3_region_write(r, 0, with, r->size);
	p3_xfer_swapped(n);
	return true;
}

static bool swap_region(struct p3_nic *n, const struct p3_region *r, unsigned seed)
{
	unsigned char got[SWAP_MOST];
	return swap_after(n, r, seed, got, P3_SWAP_NS);
}

static bool swap(struct p3_nic *n, unsigned char *at, size_t len, unsigned seed)
{
	struct p3_region r = plain(at, len);
	return swap_region(n, &r, seed);
}

/* Return true if the bytes are those of a pattern, beginning with number from. */
static bool is(const unsigned char *at, size_t from, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != pattern(seed, from + i))
			return false;
	return true;
}

/* ---- the two nodes ---- */

static void send_long(ptl_handle_ni_t ni, unsigned char *bytes)
{
	struct p3_nic *n = p3_nic(p3_node());
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_md_t d = source_md(bytes, LONG, eq);
	ptl_handle_md_t md = bind_md(ni, d);
	stage.all = bind_md(ni, md_of(bytes, LONG, MD_QUIET, PTL_EQ_NONE));
	gate_wait(held);
	CHECK_OK(put_to(ni, md, 0, PT, 0, PTL_NO_ACK_REQ));
	nic_hold(n);
	stage.source = n;
	stage.from = bytes;
	gate_wait(ready);
	gate_wait(over);
	p3_lease_leave(n);
	ptl_event_t ev = next_event(eq);
	CHECK_EQ(ev.type, PTL_EVENT_SEND_END);
	CHECK_EQ(ev.ni_fail_type, stage.fails ? PTL_NI_FAIL : PTL_NI_OK);
}

/* Get once: that brings the memory for later gets, which are made with the lease held. */
static void get_some(ptl_handle_ni_t ni)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t d = source_md(node_alloc(8), 8, eq);
	CHECK_OK(PtlGet(bind_md(ni, d), stage.id[1], PT_QUIET, 0, 0, 0));
	(void)expect(eq, PTL_EVENT_REPLY_END);
}

static void read_long(
	ptl_handle_ni_t ni, ptl_handle_eq_t eq, unsigned char *bytes, play_fn *play)
{
	struct stage *s = &stage;
	s->into = bind_md(ni, md_of(bytes, LONG, MD_QUIET, PTL_EQ_NONE));
	get_some(ni);
	s->target = p3_nic(p3_node());
	s->to = bytes;
	nic_hold(s->target);
	gate_wait(held);
	gate_wait(ready);
	play(s);
	gate_wait(over);
	p3_lease_leave(s->target);
	if (s->wrong)
		check_failed(__FILE__, s->line, "%s", s->wrong);
	ptl_event_t ev = next_event(eq);
	CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
	CHECK_EQ(ev.ni_fail_type, s->fails ? PTL_NI_FAIL : PTL_NI_OK);
}

static void sides_node(NODE_ARGS)
{
	play_fn **play = arg;
	unsigned char *bytes = node_pattern(LONG, rank ? NEW : OLD);
	ptl_handle_eq_t eq = eq_new(ni, 64);
	post_md(ni, PT, 0, sink_md(bytes, LONG, eq));
	post_md(ni, PT_QUIET, 0, md_of(bytes, LONG, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	stage.id[rank] = id_of(ni, rank);
	sync_nodes();
	if (rank == 0)
		read_long(ni, eq, bytes, *play);
	else
		send_long(ni, bytes);
	sync_nodes();
}

/* Run a case with cross-memory reads only, or with windows only. */
static void run(play_fn *play, bool cma)
{
	setenv("PTL3_MOVER", cma ? "read" : "window", 1);
	stage = (struct stage){0};
	run_nodes(2, sides_node, &play);
}

#define SIDES_CASE(name, cma)                                                            \
	static play_fn name##_play;                                                      \
	CASE(name)                                                                       \
	{                                                                                \
		run(name##_play, cma);                                                   \
	}                                                                                \
	static void name##_play(struct stage *s)

/* ---- changes at the source, behind exchanges at the target ---- */

/* The exchange at the target is behind the put, that at the source neither before the
 * put nor behind it: the first bytes came before it, and are not read again. */
SIDES_CASE(change_around_kept_bytes_fails_the_put, false)
{
	uint64_t at = come(s);
	EXPECT(s, swap(s->target, s->to + at - 16, 8, LATE));
	EXPECT(s, swap(s->source, s->from + at - 32, 40, EARLY));
	finish(s);
	s->fails = true;
}

SIDES_CASE(change_behind_kept_bytes_is_carried, false)
{
	uint64_t at = come(s);
	EXPECT(s, swap(s->target, s->to + at - 16, 8, LATE));
	EXPECT(s, swap(s->source, s->from + at - 8, 40, EARLY));
	finish(s);
	EXPECT(s, is(s->to + at - 32, at - 32, 16, NEW));
	EXPECT(s, is(s->to + at - 16, 0, 8, LATE));
	EXPECT(s, is(s->to + at - 8, 0, 40, EARLY));
}

static bool is_read_by_cma(struct stage *s)
{
	return pull_of(s) && pull_of(s)->mover == P3_MOVE_CMA;
}

static void lose_cma(struct stage *s)
{
	EXPECT(s, is_read_by_cma(s));
	s->target->peer[1].os_pid = 0x7ffffffe; /* above all process ids */
	for (int i = 0; i < 16 && is_read_by_cma(s); i++)
		(void)p3_pass_run(s->target);
	EXPECT(s, !is_read_by_cma(s));
}

/* The pull reads all but the kept bytes again through a window, and with them one half
 * of a change that it had wholly read before. */
SIDES_CASE(old_change_around_kept_bytes_fails_the_put, true)
{
	(void)come(s);
	EXPECT(s, swap(s->target, s->to + 16, 8, LATE));
	EXPECT(s, swap(s->source, s->from + 16, 40, EARLY));
	(void)p3_pass_run(s->target);
	lose_cma(s);
	finish(s);
	s->fails = true;
}

/* The source changes while the pull has no mover. */
SIDES_CASE(change_before_the_window_fails_the_put, true)
{
	(void)come(s);
	EXPECT(s, swap(s->target, s->to + 16, 8, LATE));
	lose_cma(s);
	EXPECT(s, swap(s->source, s->from + 16, 40, EARLY));
	finish(s);
	s->fails = true;
}

SIDES_CASE(kept_bytes_stay_when_a_window_goes_on, true)
{
	(void)come(s);
	EXPECT(s, swap(s->source, s->from + 256, 40, EARLY));
	EXPECT(s, swap(s->target, s->to + 16, 8, LATE));
	(void)p3_pass_run(s->target);
	lose_cma(s);
	EXPECT(s, swap(s->source, s->from + 24, 40, EARLY));
	finish(s);
	EXPECT(s, is(s->to, 0, 16, NEW));
	EXPECT(s, is(s->to + 16, 0, 8, LATE));
	EXPECT(s, is(s->to + 24, 0, 40, EARLY));
	EXPECT(s, is(s->to + 256, 0, 40, EARLY));
}

/* ---- changes that others overlap ---- */

/* Make two changes; the second one sends the pull back into the middle of the first. */
static void overlap(struct stage *s, bool seen)
{
	uint64_t at = come(s);
	EXPECT(s, swap(s->source, s->from + at - 40, 32, EARLY));
	if (seen)
		(void)p3_pass_run(s->target);
	EXPECT(s, swap(s->source, s->from + at - 16, 32, LATE));
	finish(s);
	EXPECT(s, is(s->to + at - 40, 0, 24, EARLY));
	EXPECT(s, is(s->to + at - 16, 0, 32, LATE));
}

SIDES_CASE(change_over_an_older_one_carries_both, false)
{
	overlap(s, false);
}

SIDES_CASE(change_over_one_that_was_seen_carries_both, false)
{
	overlap(s, true);
}

static struct p3_region two_pieces(
	unsigned char *at, size_t len, unsigned char *next, size_t more)
{
	struct p3_iov *v = test_calloc(1, sizeof *v + 2 * sizeof v->v[0]);
	v->n = 2;
	v->lo = (char *)at;
	v->hi = (char *)next + more;
	v->v[0] = (ptl_md_iovec_t){at, len};
	v->v[1] = (ptl_md_iovec_t){next, more};
	return (struct p3_region){.size = len + more, .iov = v};
}

static void swap_pieces(struct stage *s, uint64_t at, size_t len, uint64_t next,
	size_t more, unsigned seed)
{
	struct p3_region r = two_pieces(s->from + at, len, s->from + next, more);
	EXPECT(s, swap_region(s->source, &r, seed));
	test_free(r.iov);
}

/* The changes have no byte in common, but the pull goes back to a place between the two
 * pieces of the first one. */
SIDES_CASE(change_with_holes_tears_no_older_one, false)
{
	uint64_t at = come(s);
	swap_pieces(s, at - 44, 4, at - 20, 4, EARLY);
	(void)p3_pass_run(s->target);
	swap_pieces(s, at - 40, 4, at, 8, LATE);
	finish(s);
	EXPECT(s, is(s->to + at - 44, 0, 4, EARLY));
	EXPECT(s, is(s->to + at - 20, 4, 4, EARLY));
	EXPECT(s, is(s->to + at - 40, 0, 4, LATE));
	EXPECT(s, is(s->to + at, 4, 8, LATE));
}

/* More changes than the source remembers one by one. */
SIDES_CASE(change_over_one_of_many_carries_both, false)
{
	const uint64_t at = come(s), apart = 300;
	for (unsigned i = 0; i <= P3_CHANGES; i++)
		EXPECT(s, swap(s->source, s->from + at - 72 - apart * i, 64, LATE + i));
	(void)p3_pass_run(s->target);
	EXPECT(s, swap(s->source, s->from + at - 40, 64, EARLY));
	finish(s);
	EXPECT(s, is(s->to + at - 72, 0, 32, LATE));
	EXPECT(s, is(s->to + at - 40, 0, 64, EARLY));
	for (unsigned i = 1; i <= P3_CHANGES; i++)
		EXPECT(s, is(s->to + at - 72 - apart * i, 0, 64, LATE + i));
}

/* ---- other operations on bytes that an exchange would put back ---- */

/* Take one request, and the cells before it that carry none. */
static void take(struct stage *s, struct p3_nic *n, unsigned from)
{
	uint64_t before = p3_get(&n->count[P3_C_RECEIVED]);
	bool came = false;
	while (!came && p3_rx_take(n, &n->peer[from]))
		came = p3_get(&n->count[P3_C_RECEIVED]) != before;
	EXPECT(s, came);
}

/* Send length bytes, those from offset on, to the same place at the target. */
static void put_too(struct stage *s, uint64_t offset, uint64_t length)
{
	struct p3_cmd c = {.handle = s->all,
		.move = {.target = s->id[0],
			.pt_index = PT_QUIET,
			.offset = offset,
			.remote_offset = offset,
			.length = length}};
	EXPECT(s, p3_tx_put(s->source, &c) == PTL_OK);
	take(s, s->target, 1);
}

static void get_too(struct stage *s, uint64_t offset, uint64_t length)
{
	struct p3_cmd c = {.handle = s->into,
		.move = {.target = s->id[1],
			.pt_index = PT_QUIET,
			.offset = offset,
			.remote_offset = offset,
			.length = length}};
	EXPECT(s, p3_tx_get(s->target, &c) == PTL_OK);
	take(s, s->source, 0);
	p3_rsp_take_all(s->target, &s->target->peer[1]);
	EXPECT(s, !p3_peer_has_response(&s->target->peer[1]));
}

/* Exchange 16 bytes at the target, which lie around this place. */
static bool swap_around(struct stage *s, uint64_t at, unsigned char *got, uint64_t waited)
{
	struct p3_region r = plain(s->to + at - 8, 16);
	return swap_after(s->target, &r, LATE, got, waited);
}

/* Check that an exchange of 16 bytes waits while the put has brought only half of them,
 * and is behind the put when it has brought the rest. */
static void swap_waits(struct stage *s, uint64_t at)
{
	unsigned char got[SWAP_MOST];
	EXPECT(s, !swap_around(s, at, got, P3_SWAP_NS));
	EXPECT(s, !swap_around(s, at, got, NO_SIDE_NS - 1));
	for (int i = 0; i < PASSES && pull_of(s) && pull_of(s)->done < at + 8; i++) {
		(void)p3_pass_run(s->source);
		(void)p3_pass_run(s->target);
	}
	EXPECT(s, swap_around(s, at, got, P3_SWAP_NS));
	EXPECT(s, is(got, at - 8, 16, NEW));
	finish(s);
}

SIDES_CASE(exchange_is_before_bytes_that_no_other_put_wrote, false)
{
	unsigned char got[SWAP_MOST];
	uint64_t at = come(s);
	put_too(s, at, 64);
	put_too(s, at - P3_EDGE - 8, 8);
	get_too(s, at - P3_EDGE - 40, 40);
	EXPECT(s, swap_around(s, at, got, P3_SWAP_NS));
	EXPECT(s, is(got, at - 8, 8, OLD) && is(got + 8, at, 8, NEW));
	finish(s);
	EXPECT(s, is(s->to, 0, LONG, NEW));
}

SIDES_CASE(exchange_misses_no_short_put, false)
{
	uint64_t at = come(s);
	put_too(s, at - 4, 8);
	swap_waits(s, at);
}

/* A source that stopped, or lies, holds up no exchange for longer. */
SIDES_CASE(exchange_without_a_place_waits_two_seconds, false)
{
	unsigned char got[SWAP_MOST];
	uint64_t at = come(s);
	put_too(s, at - 4, 8);
	EXPECT(s, !swap_around(s, at, got, NO_SIDE_NS - 1));
	EXPECT(s, swap_around(s, at, got, NO_SIDE_NS));
	finish(s);
}

SIDES_CASE(exchange_misses_no_reply, false)
{
	uint64_t at = come(s);
	get_too(s, at - 4, 8);
	swap_waits(s, at);
}

SIDES_CASE(exchange_misses_no_put_before_the_edge, false)
{
	uint64_t at = come(s);
	put_too(s, at - P3_EDGE - 200, 201);
	swap_waits(s, at);
}

SIDES_CASE(exchange_misses_no_other_long_put, false)
{
	uint64_t at = come(s);
	put_too(s, at - 4, LONG / 2);
	swap_waits(s, at);
}

/* The first exchange is behind the put, so the next one of its bytes is, too. */
SIDES_CASE(exchange_misses_no_earlier_exchange, false)
{
	unsigned char got[SWAP_MOST];
	uint64_t at = come(s);
	EXPECT(s, swap(s->target, s->to + at - 20, 8, EARLY));
	EXPECT(s, !swap_around(s, at - 6, got, P3_SWAP_NS));
	EXPECT(s, swap_around(s, at - 4, got, P3_SWAP_NS));
	EXPECT(s, is(got, at - 12, 16, OLD));
	finish(s);
	EXPECT(s, is(s->to + at - 20, 0, 8, EARLY));
}

int main(void)
{
	held = gate_new(2);
	ready = gate_new(2);
	over = gate_new(2);
	return cases_run();
}
