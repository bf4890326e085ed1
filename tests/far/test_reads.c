/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Remote reads of long transfers (nic/far/reads.h, nic/xfer/movers.c), with the firmware
 * of each node, over an endpoint in this process, or over libfabric (P3_FABRIC): they
 * carry the bytes, also when reads fail and come late; and ends while they are under way.
 */
#include "nic/cases.h"

#include "far/loop.h"
#include "nic/far/reads.h"
#include "nic/run/lease.h"
#include "support/hold.h"
#include "support/patience.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define PT      5
#define LEN     (1u << 20)
#define MOST    (64u << 20)
#define SLOW_MS 3600000u /* for half a fetch */

static uint64_t fetched(struct p3_nic *n)
{
	return p3_nic_counter(n, P3_C_FETCHED_BYTES);
}

static void set_faults(uint32_t unread, uint32_t late, uint32_t reset)
{
	const uint32_t ppm[LOOP_FAULTS] = {
		[LOOP_UNREAD] = unread, [LOOP_LATE] = late, [LOOP_RESET] = reset};
	loop_set(ppm, 11);
}

static bool on_loop(void)
{
	return !getenv("P3_FABRIC");
}

/* ---- the bytes ---- */

/* A put of P3_FETCH_LEAST fits the lane. */
static const size_t lengths[] = {P3_FETCH_LEAST - 1, P3_FETCH_LEAST + 1, 100001, 262144,
	LEN, LEN + 1, 3 * LEN + 12345};

/* Return the bytes of all lengths that are read remotely. */
static uint64_t all_lengths(void)
{
	uint64_t sum = 0;
	for (size_t i = 1; i < sizeof lengths / sizeof *lengths; i++)
		sum += lengths[i];
	return sum;
}

static void put_all(unsigned rank, ptl_handle_ni_t ni, unsigned bits)
{
	ptl_handle_eq_t eq = eq_new(ni, 16);
	unsigned char *buf = rank ? node_alloc(4 * LEN) : node_pattern(4 * LEN, 3);
	if (rank == 1)
		post_md(ni, PT, bits, md_of(buf, 4 * LEN, MD_ANY | MD_QUIET, eq));
	sync_nodes();
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		if (rank == 0) {
			ptl_md_t m = md_of(buf, lengths[i], MD_QUIET, eq);
			CHECK_OK(put_to(ni, bind_md(ni, m), 1, PT, bits, PTL_ACK_REQ));
			expect(eq, PTL_EVENT_ACK);
		}
		sync_nodes();
		if (rank == 1) {
			CHECK_PATTERN(buf, 0, lengths[i], 3);
			memset(buf, 0, lengths[i]);
		}
		sync_nodes();
	}
}

static void get_all(unsigned rank, ptl_handle_ni_t ni, unsigned bits)
{
	ptl_handle_eq_t eq = eq_new(ni, 16);
	unsigned char *buf = rank ? node_pattern(4 * LEN, 4) : node_alloc(4 * LEN);
	if (rank == 1)
		post_md(ni, PT, bits, md_of(buf, 4 * LEN, MD_ANY | MD_QUIET, eq));
	sync_nodes();
	for (size_t i = 0; rank == 0 && i < sizeof lengths / sizeof *lengths; i++) {
		unsigned quiet = PTL_MD_EVENT_START_DISABLE;
		ptl_md_t m = md_of(buf, lengths[i], quiet, eq);
		CHECK_OK(PtlGet(bind_md(ni, m), id_of(ni, 1), PT, 0, bits, 0));
		expect(eq, PTL_EVENT_REPLY_END);
		CHECK_PATTERN(buf, 0, lengths[i], 4);
		memset(buf, 0, lengths[i]);
	}
	sync_nodes();
}

NODES_CASE(long_puts_and_gets_are_read_remotely, 2)
{
	put_all(rank, ni, 1);
	CHECK_EQ(fetched(nic()), rank == 1 ? all_lengths() : 0);
	sync_nodes();
	get_all(rank, ni, 2);
	CHECK_EQ(fetched(nic()), all_lengths());
	sync_nodes();
}

static void among_faults(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)arg, (void)size;
	for (unsigned i = 0; i < rounds(8); i++) {
		put_all(rank, ni, 2 * i);
		get_all(rank, ni, 2 * i + 1);
	}
	CHECK(fetched(nic()) > 0);
	sync_nodes();
}

CASE(failed_and_late_reads_change_nothing)
{
	set_faults(50000, 300000, 2000);
	run_nodes(2, among_faults, NULL);
	struct loop_counts c = loop_counts();
	print_message("# %llu reads: %llu failed, %llu were late\n",
		(unsigned long long)c.reads, (unsigned long long)c.faults[LOOP_UNREAD],
		(unsigned long long)c.faults[LOOP_LATE]);
	unsigned least = rounds(20) < 20 ? 0 : 20; /* P3_QUICK: one of each is enough */
	assert_true(!on_loop() ||
		    (c.faults[LOOP_UNREAD] > least && c.faults[LOOP_LATE] > least));
}

/* ---- ends while reads are under way ---- */

struct end {
	struct gate *begun, *closed, *over;
	ptl_pid_t pid[2]; /* of the second interfaces */
	struct p3_nic *nic[2];
	bool reader; /* the reader closes its interface, else the owner */
};

static bool has_fetches(struct p3_nic *n)
{
	bool any = false;
	nic_hold(n);
	p3_list_each(it, &n->pulls)
		any |= p3_item(it, struct p3_pull, link)->fetches != NULL;
	p3_lease_leave(n);
	return any;
}

/* Wait until fetches are under way.  Over libfabric they may be over already. */
static void wait_for_fetches(ptl_handle_ni_t ni)
{
	struct patience p = patience_begin();
	while (!has_fetches(nic()) && fetched(nic()) < MOST) {
		CHECK(!patience_is_over(&p));
		run_for_drops(ni, 0);
	}
}

/* The put fails, unless libfabric was faster than its end. */
static void expect_failure(ptl_handle_eq_t eq)
{
	ptl_event_t ev = next_event(eq);
	CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
	CHECK(!on_loop() || ev.ni_fail_type != PTL_NI_OK);
}

/* Let the loop serve no second part of a read, or go on.  So a transfer of MOST bytes is
 * still under way when the end comes that is to interrupt it, however late. */
static void be_slow(bool slow)
{
	loop_serve_slowly(slow ? SLOW_MS : 0);
}

/* The owner's program takes its bytes back with SEND_END. */
static void wait_for_send_end(ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	do
		ev = next_event(eq);
	while (ev.type != PTL_EVENT_SEND_END);
}

static void own(struct end *e, ptl_handle_ni_t ni, ptl_handle_ni_t second)
{
	unsigned char *bytes = mmap(
		NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(bytes != MAP_FAILED);
	memset(bytes, 1, MOST); /* only bytes that are in memory are read */
	ptl_handle_eq_t eq = eq_new(second, 16);
	ptl_handle_md_t md = bind_md(second, md_of(bytes, MOST, 0, eq));
	ptl_process_id_t to = id_of(ni, 1);
	to.pid = e->pid[1];
	CHECK_OK(PtlPut(md, PTL_NO_ACK_REQ, to, PT, 0, 1, 0, 0));
	if (e->reader) {
		wait_for_send_end(eq);
		if (on_loop())
			CHECK_EQ(loop_reads_of(0), 0);
	} else {
		gate_wait(e->begun);
		CHECK_OK(PtlNIFini(second));
		be_slow(false);
	}
	munmap(bytes, MOST);
	gate_wait(e->closed);
}

static void read_bytes(struct end *e, ptl_handle_ni_t ni, ptl_handle_ni_t second)
{
	ptl_handle_eq_t eq = eq_new(second, 16);
	unsigned start = PTL_MD_EVENT_START_DISABLE;
	post_md(second, PT, 1, md_of(node_alloc(MOST), MOST, MD_ANY | start, eq));
	gate_wait(e->over);
	wait_for_fetches(ni);
	if (e->reader) {
		CHECK_OK(PtlNIFini(second));
		be_slow(false);
	} else {
		gate_wait(e->begun);
		expect_failure(eq);
	}
	gate_wait(e->closed);
}

static void end_early(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)size;
	struct end *e = arg;
	ptl_handle_ni_t second;
	ptl_process_id_t id;
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &second));
	CHECK_OK(PtlGetId(second, &id));
	e->pid[rank] = id.pid;
	sync_nodes();
	if (rank == 1) {
		read_bytes(e, ni, second);
	} else {
		gate_wait(e->over);
		own(e, ni, second);
	}
	sync_nodes();
	be_slow(false);
	/* the pair goes on */
	put_all(rank, ni, 1);
}

static void run_pair(bool reader, nodes_fn *fn)
{
	struct end e = {.begun = gate_new(2),
		.closed = gate_new(2),
		.over = gate_new(2),
		.reader = reader};
	run_nodes(2, fn, &e);
	gate_free(e.begun);
	gate_free(e.closed);
	gate_free(e.over);
}

static void end_with(bool reader)
{
	set_faults(0, 900000, 0);
	be_slow(true);
	run_pair(reader, end_early);
}

/* The owner learns that a transfer is over when none of its reads is under way. */
CASE(a_reader_that_closes_leaves_no_read)
{
	for (unsigned i = 0; i < 5; i++)
		end_with(true);
}

/* Reads of memory that has gone do not count, and end. */
CASE(an_owner_that_closes_takes_its_bytes)
{
	end_with(false);
	assert_true(!on_loop() || loop_counts().cuts);
}

/* ---- a node that ends while its reads are under way, and the owner is stopped ---- */

static void stop_amid_reads(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)size;
	struct end *e = arg;
	ptl_handle_eq_t eq = eq_new(ni, 64);
	unsigned char *buf = node_alloc(MOST);
	e->nic[rank] = nic();
	if (rank == 1)
		post_md(ni, PT, 1, md_of(buf, MOST, MD_ANY | MD_QUIET, eq));
	sync_nodes();
	if (rank == 0) {
		ptl_handle_md_t md = bind_md(ni, md_of(buf, MOST, MD_QUIET, eq));
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_NO_ACK_REQ));
		while (!fetched(e->nic[1]))
			run_for_drops(ni, 0);
		nic_hold(nic());
		gate_wait(e->begun);
		gate_wait(e->closed);
		p3_lease_leave(nic());
		return;
	}
	while (!fetched(nic()))
		run_for_drops(ni, 0);
	gate_wait(e->begun);
	PtlFini();
	gate_wait(e->closed);
}

CASE(a_node_ends_while_its_owner_is_stopped)
{
	set_faults(0, 0, 0);
	for (unsigned i = 0; i < 5; i++)
		run_pair(false, stop_amid_reads);
}

/* ---- links of one node ---- */

/* An endpoint that has no room for reads of the memory of node 0. */
static int read_but_0(struct p3_endpoint *ep, uint64_t to, struct p3_far_read *r)
{
	(void)ep, (void)r;
	return to ? 0 : -EAGAIN;
}

static enum p3_far_reads_kind any_order(const struct p3_endpoint *ep)
{
	(void)ep;
	return P3_FAR_READS;
}

static int offer_none(struct p3_endpoint *ep, const void *bytes, uint64_t len,
	struct p3_far_region *out)
{
	(void)ep, (void)bytes, (void)len;
	*out = (struct p3_far_region){0};
	return 0;
}

static struct p3_far_link *link_to(struct p3_far *far, struct p3_nic *n, uint32_t node)
{
	static struct p3_peer peers[2];
	struct p3_far_link *l = aligned_alloc(P3_PAGE, p3_round_up(sizeof *l, P3_PAGE));
	CHECK(l != NULL);
	peers[node] = n->peer[node];
	peers[node].mine = &l->carry.mine;
	memset(l, 0, sizeof *l);
	l->far = far;
	l->to = node;
	l->known = true;
	l->carry.peer = &peers[node];
	return l;
}

static struct p3_fetch *begin_fetch(struct p3_far_link *l)
{
	return p3_far_fetch(l->carry.peer, 0, 0, P3_PAGE);
}

static void fail_fetch(struct p3_nic *n, struct p3_fetch *f)
{
	struct p3_far_slice *s = p3_item(f, struct p3_far_slice, fetch);
	p3_far_reads_done(n, &s->bytes, true);
	CHECK_EQ(f->state, P3_FETCH_FAILED);
}

static void hold_up_one(struct p3_nic *n, struct p3_far *far)
{
	struct p3_far_link *bad = link_to(far, n, 0), *good = link_to(far, n, 1);
	CHECK(!begin_fetch(bad));
	CHECK(begin_fetch(good) != NULL);
	bad->to = 1; /* from now on the endpoint takes its reads, which fail */
	while (p3_now_ns() < bad->read_at)
		;
	struct p3_fetch *f = begin_fetch(bad);
	CHECK(f != NULL);
	fail_fetch(n, f);
	uint64_t until = bad->read_at;
	CHECK(!begin_fetch(bad) || p3_now_ns() >= until);
	CHECK(begin_fetch(good) != NULL);
	free(bad);
	free(good);
}

/* Let node 1 map both nodes: it needs their tables of transfers. */
static void meet(unsigned rank, ptl_handle_ni_t ni)
{
	ptl_handle_eq_t eq = eq_new(ni, 16);
	unsigned char *buf = node_alloc(1);
	post_md(ni, PT, 1, md_of(buf, 1, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	ptl_handle_md_t md = bind_md(ni, md_of(buf, 1, MD_QUIET, eq));
	sync_nodes();
	for (unsigned to = 0; rank == 1 && to < 2; to++) {
		CHECK_OK(put_to(ni, md, to, PT, 1, PTL_ACK_REQ));
		expect(eq, PTL_EVENT_ACK);
	}
	sync_nodes();
}

/* A read that finds no room, or fails, holds up further reads over the same link only. */
NODES_CASE(a_bad_link_delays_no_other, 2)
{
	meet(rank, ni);
	static const struct p3_endpoint_ops ops = {
		.reads = any_order, .offer = offer_none, .read = read_but_0};
	struct p3_far far = {.ops = &ops};
	if (rank == 1) {
		nic_hold(nic());
		p3_far_reads_open(nic(), &far);
		CHECK(far.reads != NULL);
		hold_up_one(nic(), &far);
		p3_far_reads_close(&far);
		p3_lease_leave(nic());
	}
	sync_nodes();
}

/* ---- the owner dies ---- */

static void die_amid_reads(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)size;
	struct end *e = arg;
	ptl_handle_eq_t eq = eq_new(ni, 64);
	unsigned char *buf = node_alloc(MOST);
	unsigned start = PTL_MD_EVENT_START_DISABLE;
	if (rank == 1)
		post_md(ni, PT, 1, md_of(buf, MOST, MD_ANY | start, eq));
	sync_nodes();
	if (rank == 0) {
		ptl_handle_md_t md = bind_md(ni, md_of(buf, MOST, MD_QUIET, eq));
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_NO_ACK_REQ));
		gate_wait(e->begun);
		node_die();
		return;
	}
	wait_for_fetches(ni);
	gate_wait(e->begun);
	expect_failure(eq);
}

CASE(reads_of_a_dead_node_end)
{
	set_faults(0, 900000, 0);
	be_slow(true);
	run_pair(false, die_amid_reads);
	be_slow(false);
}

int main(void)
{
	setenv("P3_FAR", "1", 1); /* each node on a host of its own */
	return cases_run();
}
