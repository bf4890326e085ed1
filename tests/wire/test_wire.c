/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire between hosts (P3_FAR), mostly with faults, and shared memory: arriving
 * messages, counters, and death. */
#include "nic/cases.h"

#include "nic/wire/carry.h"
#include "nic/wire/wire.h"
#include "support/hold.h"

#define PT 9

static ptlx_stats_t stats(ptl_handle_ni_t ni)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	CHECK_OK(PtlXStats(ni, &st));
	return st;
}

/* Shared memory has no frames.  Of others far/loop.c counts the faults. */
static void check_counters(ptl_handle_ni_t ni)
{
	ptlx_stats_t st = stats(ni);
	if (getenv("P3_FAR"))
		return;
	CHECK_EQ(st.wire_resent, 0);
	CHECK_EQ(st.wire_bad_sums, 0);
	CHECK_EQ(st.wire_doubles, 0);
	CHECK_EQ(st.wire_gaps, 0);
}

/* ---- puts ---- */

static const size_t lengths[] = {0, 8, 16, 17, 100, 1000, 2000, 5000, 40000};
#define LENGTHS (sizeof lengths / sizeof *lengths)
#define LONGEST 40000u

/* Return the place of message i, behind the earlier ones. */
static size_t place(unsigned i)
{
	size_t at = 0;
	for (unsigned k = 0; k < LENGTHS; k++)
		at += lengths[k] * (i / LENGTHS + (k < i % LENGTHS));
	return at;
}

static unsigned seed_of(unsigned from, unsigned i)
{
	return from * 1000 + i;
}

struct traffic {
	unsigned n, size, rank;
	size_t total;
	ptl_handle_eq_t in, out;
	ptl_handle_md_t md;
	unsigned char *buf;
	unsigned sent, acked, begun[3], got;
	bool over[3][400];
};

static void send_next(struct traffic *t, ptl_handle_ni_t ni)
{
	size_t at = place(t->sent), len = lengths[t->sent % LENGTHS];
	for (unsigned to = 0; to < t->size; to++)
		CHECK_OK(PtlPutRegion(t->md, at, len, PTL_ACK_REQ, id_of(ni, to), PT, 0,
			t->rank, at, t->sent));
	t->sent++;
}

/* Check an event: puts begin in order; the ENDs of long ones may be later. */
static void took(struct traffic *t, const ptl_event_t *ev)
{
	unsigned from = (unsigned)ev->match_bits, i = (unsigned)ev->hdr_data;
	CHECK_EQ(ev->ni_fail_type, PTL_NI_OK);
	CHECK_EQ(ev->mlength, lengths[i % LENGTHS]);
	if (ev->type == PTL_EVENT_PUT_START) {
		CHECK_EQ(i, t->begun[from]++);
		return;
	}
	CHECK(i < t->begun[from] && !t->over[from][i]);
	CHECK_PATTERN(
		t->buf + from * t->total + place(i), 0, ev->mlength, seed_of(from, i));
	t->over[from][i] = true;
	t->got++;
}

static bool is_through(const struct traffic *t)
{
	return t->acked == 2 * t->size * t->n && t->got == t->size * t->n;
}

static void exchange_all(struct traffic *t, ptl_handle_ni_t ni)
{
	ptl_event_t ev;
	while (!is_through(t)) {
		if (t->sent < t->n && t->acked + 60 * t->size > 2 * t->size * t->sent)
			send_next(t, ni);
		while (PtlEQGet(t->out, &ev) == PTL_OK) {
			CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
			t->acked++;
		}
		while (PtlEQGet(t->in, &ev) == PTL_OK)
			took(t, &ev);
	}
}

/* From every node to every node, itself included: once, in order, unchanged. */
NODES_CASE(puts_arrive_once_in_order_unchanged, 3)
{
	const unsigned quiet = PTL_MD_EVENT_START_DISABLE, n = rounds(400);
	struct traffic t = {.n = n, .size = size, .rank = rank, .total = place(n)};
	unsigned char *src = node_alloc(t.total);
	t.in = eq_new(ni, 4096);
	t.out = eq_new(ni, 4096);
	t.buf = node_alloc(3 * t.total);
	for (unsigned i = 0; i < n; i++)
		fill_pattern(src + place(i), lengths[i % LENGTHS], seed_of(rank, i));
	for (unsigned from = 0; from < size; from++)
		post_md(ni, PT, from,
			md_of(t.buf + from * t.total, t.total, MD_ANY, t.in));
	t.md = bind_md(ni, md_of(src, t.total, quiet, t.out));
	sync_nodes();
	exchange_all(&t, ni);
	sync_nodes();
	expect_empty(t.in);
	expect_empty(t.out);
	CHECK_EQ(drops_of(ni), 0);
	if (!getenv("P3_QUICK"))
		check_counters(ni);
}

/* ---- gets and exchanges ---- */

/* A medium between hosts takes frames with the longest message as wholes: one that it
 * splits may be lost in part. */
static void check_frames(unsigned other)
{
	uint64_t most = sizeof(struct p3_part) +
			p3_ring_most(nic()->layout.req_cells) * P3_PACKED_CELL;
	nic_hold(nic());
	const struct p3_peer *p = &nic()->peer[other];
	if (p->wire == &p3_wire_far)
		CHECK(((struct p3_carry *)p->mine)->gbn.fill * P3_CELL >= most);
	p3_lease_leave(nic());
}

NODES_CASE(gets_and_exchanges_are_done_once, 2)
{
	const unsigned n = rounds(300);
	ptl_handle_eq_t eq = eq_new(ni, 1024);
	unsigned char *buf = node_alloc(LONGEST), *src = node_pattern(LONGEST, rank);
	uint64_t *count = (void *)node_alloc(8), *one = (void *)node_alloc(16);
	post_md(ni, PT, 1, md_of(src, LONGEST, MD_ANY, PTL_EQ_NONE));
	post_md(ni, PT, 2, md_of(count, 8, MD_ANY, PTL_EQ_NONE));
	const unsigned quiet = PTL_MD_EVENT_START_DISABLE;
	ptl_handle_md_t md = bind_md(ni, md_of(buf, LONGEST, quiet, eq));
	ptl_handle_md_t put = bind_md(ni, md_of(&one[0], 8, MD_QUIET, PTL_EQ_NONE));
	ptl_handle_md_t get = bind_md(ni, md_of(&one[1], 8, quiet, eq));
	sync_nodes();
	for (unsigned i = 0; i < n; i++) {
		size_t len = lengths[i % LENGTHS];
		CHECK_OK(PtlGetRegion(md, 0, len, id_of(ni, 1 - rank), PT, 0, 1, 0));
		CHECK_EQ(expect(eq, PTL_EVENT_REPLY_END).mlength, len);
		CHECK_PATTERN(buf, 0, len, 1 - rank);
		memset(buf, 0, len);
		one[0] = i + 1; /* the last exchange wrote it once */
		CHECK_OK(PtlGetPut(get, put, id_of(ni, 1 - rank), PT, 0, 2, 0, 0));
		expect(eq, PTL_EVENT_REPLY_END);
		CHECK_EQ(one[1], i);
	}
	sync_nodes();
	CHECK_EQ(*count, n);
	expect_empty(eq);
	check_frames(1 - rank);
}

/* ---- long transfers ---- */

/* Their bytes go through windows and frames, or the wire fetches them: nothing bypasses
 * the wire. */
NODES_CASE(long_transfers_take_the_wire, 2)
{
	const size_t len = 3 << 20;
	ptl_handle_eq_t in = eq_new(ni, 64), out = eq_new(ni, 64);
	unsigned char *buf = node_alloc(len), *src = node_pattern(len, rank);
	const unsigned quiet = PTL_MD_EVENT_START_DISABLE;
	post_md(ni, PT, 1, md_of(buf, len, MD_ANY | quiet, in));
	ptl_handle_md_t md = bind_md(ni, md_of(src, len, quiet, out));
	sync_nodes();
	for (unsigned i = 0; i < rounds(4); i++) {
		CHECK_OK(put_to(ni, md, 1 - rank, PT, 1, PTL_NO_ACK_REQ));
		expect(out, PTL_EVENT_SEND_END);
		expect(in, PTL_EVENT_PUT_END);
		CHECK_PATTERN(buf, 0, len, 1 - rank);
		memset(buf, 0, len);
		sync_nodes();
	}
	if (!getenv("P3_FAR"))
		return;
	ptlx_stats_t st = stats(ni);
	CHECK(st.moved_bulk_bytes + st.moved_fetched_bytes >= rounds(4) * len);
	CHECK_EQ(st.moved_cma_bytes + st.moved_direct_bytes, 0);
}

/* ---- ends ---- */

static const struct nodes_opt by_hand = {.no_ni = true};

/* Messages arrive although their sender has left. */
static void leaver(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)size;
	(void)arg;
	const unsigned n = rounds(200);
	ptl_handle_eq_t eq = PTL_EQ_NONE;
	if (rank == 1) {
		ni = node_ni();
		eq = eq_new(ni, 1024);
		post_md(ni, PT, 1,
			md_of(node_alloc(LONGEST), LONGEST,
				MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
	}
	for (unsigned i = 0; i < n; i++) {
		if (rank == 0)
			ni = node_ni();
		sync_nodes();
		sync_nodes(); /* all nodes have heard of it */
		if (rank == 0) {
			unsigned char *src = node_pattern(64, i);
			ptl_handle_md_t md = bind_md(ni, md_of(src, 64, 0, PTL_EQ_NONE));
			CHECK_OK(
				PtlPut(md, PTL_NO_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, i));
			CHECK_OK(PtlNIFini(ni));
		} else {
			CHECK_EQ(expect(eq, PTL_EVENT_PUT_END).hdr_data, i);
		}
		sync_nodes();
	}
}

CASE(sent_and_gone_is_not_lost)
{
	run_nodes_opt(2, leaver, NULL, &by_hand);
}

struct doomed {
	struct gate *begun, *dead;
};

/* Node 1 dies among puts: those under way end within a second, for node 0 and node 2. */
static void doomed_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)size;
	struct doomed *d = arg;
	ptl_handle_eq_t eq = eq_new(ni, 4096);
	unsigned char *buf = node_alloc(LONGEST);
	post_md(ni, PT, 1, md_of(buf, LONGEST, MD_ANY, PTL_EQ_NONE));
	ptl_handle_md_t md =
		bind_md(ni, md_of(buf, LONGEST, PTL_MD_EVENT_START_DISABLE, eq));
	sync_nodes();
	gate_wait(d->begun);
	if (rank == 1) {
		node_die();
		gate_wait(d->dead);
		return;
	}
	unsigned ends = 0;
	for (unsigned i = 0; i < 40;
		i++) /* the dead node acknowledges no frame of these */
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_NO_ACK_REQ));
	gate_wait(d->dead);
	struct patience p = patience_begin();
	for (; ends < 40; ends++)
		CHECK_EQ(next_event(eq).type, PTL_EVENT_SEND_END);
	CHECK(getenv("P3_QUICK") || !patience_is_over(&p));
	CHECK_OK(get_from(ni, md, 1, PT, 1));
	CHECK(next_event(eq).ni_fail_type != PTL_NI_OK);
	CHECK_OK(PtlMDUnlink(md));
}

CASE(death_ends_what_was_not_acknowledged)
{
	for (unsigned i = 0; i < rounds(5); i++) {
		struct doomed d = {gate_new(3), gate_new(3)};
		run_nodes(3, doomed_node, &d);
		gate_free(d.begun);
		gate_free(d.dead);
	}
}
