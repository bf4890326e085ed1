/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each fixed pool of the firmware driven to zero, with nodes as threads of one process.
 * A node stands still while a thread of its own holds the lease and makes no pass, as
 * if its process were stopped.
 *
 * After each case a round of ordinary traffic between all, and each pool is full again.
 */
#include "nic/cases.h"

#include "support/hold.h"
#include "support/memory.h"
#include "support/pools.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define PT 9

enum { WANTED = 1, UNWANTED, PING, LONG_PUT, GET, ROUND };

/* ---- functions for all cases ---- */

static void stand_still(void)
{
	nic_hold(nic());
}

static void go_on(void)
{
	p3_lease_leave(nic());
}

/* Limit the pendings to this number of chunks of 1,024. */
static void limit_pendings(unsigned chunks)
{
	struct p3_nic *n = nic();
	stand_still();
	n->conf.pending_limit = chunks * P3_TABLE_EACH * sizeof(struct p3_pending);
	go_on();
}

/* Return this process' memory; 0 where most of it is a checker's metadata. */
static uint64_t resident(void)
{
#if defined(P3_TSAN) || defined(P3_VALGRIND) || defined(__SANITIZE_ADDRESS__)
	return 0;
#endif
	return (uint64_t)memory_kib("VmRSS") << 10;
}

static int upwards(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Exchange ordinary traffic: each node with the next one, by all movers. */
static void round_of_all(ptl_handle_ni_t ni, unsigned rank, unsigned size)
{
	static const size_t len[] = {8, 1000, 100000};
	unsigned next = (rank + 1) % size, before = (rank + size - 1) % size;
	ptl_handle_eq_t out = eq_new(ni, 64), in = eq_new(ni, 64);
	unsigned char *src = node_pattern(100000, rank), *dst = node_alloc(100000);
	unsigned char *got = node_alloc(100000);
	unsigned quiet = PTL_MD_EVENT_START_DISABLE;
	post_md(ni, PT, ROUND, md_of(dst, 100000, PTL_MD_OP_PUT | MD_ANY | quiet, in));
	post_md(ni, PT, ROUND + 1, md_of(src, 100000, MD_ANY, PTL_EQ_NONE));
	sync_nodes();
	ptl_handle_md_t put = bind_md(ni, md_of(src, 100000, quiet, out));
	ptl_handle_md_t get = bind_md(ni, md_of(got, 100000, quiet, out));
	for (unsigned i = 0; i < 3; i++) {
		memset(dst, 0, 100000);
		memset(got, 0, 100000);
		sync_nodes();
		CHECK_OK(PtlPutRegion(put, 0, len[i], PTL_ACK_REQ, id_of(ni, next), PT, 0,
			ROUND, 0, i));
		CHECK_EQ(expect(out, PTL_EVENT_SEND_END).mlength, len[i]);
		CHECK_EQ(expect(out, PTL_EVENT_ACK).mlength, len[i]);
		CHECK_OK(PtlGetRegion(
			get, 0, len[i], id_of(ni, next), PT, 0, ROUND + 1, 0));
		CHECK_EQ(expect(out, PTL_EVENT_REPLY_END).mlength, len[i]);
		CHECK_PATTERN(got, 0, len[i], next);
		CHECK_EQ(expect(in, PTL_EVENT_PUT_END).hdr_data, i);
		CHECK_PATTERN(dst, 0, len[i], before);
	}
	sync_nodes();
	expect_empty(out);
	expect_empty(in);
	expect_full();
	sync_nodes();
}

/* ---- pendings ---- */

/* Put until the limit refuses; return the number of accepted puts. */
static unsigned outrun(ptl_handle_ni_t ni, ptl_handle_md_t md, unsigned to)
{
	unsigned n = 0;
	int rc;
	while ((rc = PtlPut(md, PTL_ACK_REQ, id_of(ni, to), PT, 0, WANTED, 0, n)) ==
		PTL_OK)
		n++;
	CHECK_EQ(rc, PTL_NO_SPACE);
	return n;
}

static void refused_for_long(ptl_handle_ni_t ni, ptl_handle_md_t md, unsigned to)
{
	uint64_t host = nic()->host_used[0], before = resident();
	for (unsigned i = 0; i < rounds(2000); i++)
		CHECK_RC(PtlPut(md, PTL_ACK_REQ, id_of(ni, to), PT, 0, WANTED, 0, i),
			PTL_NO_SPACE);
	CHECK_EQ(nic()->host_used[0], host);
	CHECK(resident() < before + (4 << 20));
}

/* PTL_NO_SPACE comes at the limit; all accepted puts arrive in order, and other nodes
 * are not disturbed */
NODES_CASE(pendings_run_out_before_a_target_that_stands_still, 3)
{
	static p3_a32 accepted;
	ptl_handle_eq_t eq = eq_new(ni, 1 << 14);
	unsigned char *buf = node_alloc(64);
	unsigned quiet = MD_ANY | PTL_MD_EVENT_START_DISABLE;
	post_md(ni, PT, WANTED, md_of(buf, 8, quiet, eq));
	ptl_handle_md_t md = bind_md(ni, md_of(buf + 8, 8, MD_QUIET, eq));
	if (rank == 0)
		limit_pendings(2);
	sync_nodes();
	if (rank == 1)
		stand_still();
	sync_nodes();
	if (rank == 0) {
		unsigned n = outrun(ni, md, 1);
		CHECK(n >= 2 * P3_TABLE_EACH - 1);
		p3_set(&accepted, n);
		refused_for_long(ni, md, 1);
	}
	for (unsigned i = 0; rank == 2 && i < rounds(1000); i++) {
		CHECK_OK(put_to(ni, md, 0, PT, WANTED, PTL_ACK_REQ));
		expect(eq, PTL_EVENT_ACK);
	}
	sync_nodes();
	if (rank == 1)
		go_on();
	unsigned n = p3_get(&accepted), mine = rank == 0 ? rounds(1000) : 0;
	for (unsigned i = 0; rank == 1 && i < n; i++)
		CHECK_EQ(expect(eq, PTL_EVENT_PUT_END).hdr_data, i);
	for (unsigned i = 0; rank == 0 && i < n + mine;) {
		ptl_event_t ev = next_event(eq);
		CHECK(ev.type == PTL_EVENT_ACK || ev.type == PTL_EVENT_PUT_END);
		i++;
	}
	sync_nodes();
	expect_empty(eq);
	CHECK_EQ(drops_of(ni), 0);
	round_of_all(ni, rank, size);
}

/* ---- the mailbox ---- */

static void ask_status(void *arg)
{
	ptl_sr_value_t drops;
	CHECK_OK(PtlNIStatus(*(ptl_handle_ni_t *)arg, PTL_SR_DROP_COUNT, &drops));
	CHECK_EQ(drops, 0);
}

static bool mailbox_is_full(void)
{
	return (uint32_t)p3_get(&nic()->mailbox->free) == P3_MBX_NONE;
}

/* More threads wait for the firmware than there are places for their commands */
NODES_CASE(mailbox_runs_out, 2)
{
	enum { CALLERS = P3_MBX_SLOTS + 20 };
	struct side *side[CALLERS];
	sync_nodes();
	for (unsigned r = 0; rank == 0 && r < 3; r++) {
		stand_still();
		for (unsigned i = 0; i < CALLERS; i++)
			side[i] = side_start(ask_status, &ni);
		while (!mailbox_is_full())
			sleep_ms(1);
		sleep_ms(5);
		go_on();
		for (unsigned i = 0; i < CALLERS; i++)
			side_join(side[i]);
		CHECK(!mailbox_is_full());
	}
	sync_nodes();
	round_of_all(ni, rank, size);
}

/* ---- transfer slots, pulls, windows ---- */

enum { LONGS = 150, LENGTH = 40000 };

static void start_longs(ptl_handle_ni_t ni, ptl_handle_md_t put, ptl_handle_md_t get,
	unsigned to, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		CHECK_OK(PtlPut(put, PTL_ACK_REQ, id_of(ni, to), PT, 0, LONG_PUT, 0, i));
		CHECK_OK(PtlGet(get, id_of(ni, to), PT, 0, GET, 0));
	}
}

static void finish_longs(ptl_handle_eq_t eq, unsigned n)
{
	unsigned seen[PTL_EVENT_UNLINK + 1] = {0};
	for (unsigned i = 0; i < 3 * n; i++) {
		ptl_event_t ev = next_event(eq);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		CHECK_EQ(ev.mlength, LENGTH);
		seen[ev.type]++;
	}
	CHECK_EQ(seen[PTL_EVENT_SEND_END], n);
	CHECK_EQ(seen[PTL_EVENT_ACK], n);
	CHECK_EQ(seen[PTL_EVENT_REPLY_END], n);
}

/* Sources wait for slots, their target for pulls; operations between other nodes go on.
 * Nodes 0 and 2 send to node 1, which stands still, and to node 3, which does not. */
static void longs_node(ptl_handle_ni_t ni, unsigned rank, unsigned size)
{
	unsigned n = rounds(LONGS), few = rounds(20);
	ptl_handle_eq_t eq = eq_new(ni, 4096), other = eq_new(ni, 4096);
	unsigned char *src = node_pattern(LENGTH, rank), *dst = node_alloc(LENGTH);
	unsigned char *got = node_alloc(2 * LENGTH);
	unsigned quiet = PTL_MD_EVENT_START_DISABLE;
	bool sends = rank == 0 || rank == 2;
	post_md(ni, PT, LONG_PUT, md_of(dst, LENGTH, MD_ANY, PTL_EQ_NONE));
	post_md(ni, PT, GET, md_of(src, LENGTH, MD_ANY, PTL_EQ_NONE));
	ptl_handle_md_t put[2], get[2];
	for (unsigned i = 0; i < 2; i++) {
		ptl_handle_eq_t to = i ? other : eq;
		put[i] = bind_md(ni, md_of(src, LENGTH, quiet, to));
		get[i] = bind_md(ni, md_of(got + i * LENGTH, LENGTH, quiet, to));
	}
	sync_nodes();
	if (rank == 1)
		stand_still();
	sync_nodes();
	if (sends) {
		start_longs(ni, put[0], get[0], 1, n);
		start_longs(ni, put[1], get[1], 3, few);
		finish_longs(other, few); /* now, not when node 1 goes on */
		CHECK_PATTERN(got + LENGTH, 0, LENGTH, 3);
		expect_empty(eq);
	}
	sync_nodes();
	if (rank == 1)
		go_on();
	if (sends) {
		finish_longs(eq, n);
		CHECK_PATTERN(got, 0, LENGTH, 1);
	}
	sync_nodes();
	if (!sends) /* the last of the two */
		CHECK(dst[5] == pattern(0, 5) || dst[5] == pattern(2, 5));
	CHECK_EQ(drops_of(ni), 0);
	round_of_all(ni, rank, size);
}

NODES_CASE(transfer_slots_and_pulls_run_out, 4)
{
	longs_node(ni, rank, size);
}

/* The machine has no room: base lanes and one window do all the work */
NODES_CASE(lanes_and_windows_run_out, 4)
{
	stand_still();
	nic()->arena_used = nic()->layout.seg_len;
	go_on();
	sync_nodes();
	longs_node(ni, rank, size);
	CHECK_EQ(nic()->windows, 1);
	CHECK_EQ(p3_nic_counter(nic(), P3_C_LANES_FULL), 0);
}

/* ---- reserved responses ---- */

NODES_CASE(reserved_responses_run_out, 2)
{
	unsigned n = rounds(1500);
	ptl_handle_eq_t eq = eq_new(ni, 4096);
	unsigned char *src = node_pattern(2000, 7), *got = node_alloc(2000);
	if (rank == 1)
		post_md(ni, PT, GET, md_of(src, 2000, MD_ANY, PTL_EQ_NONE));
	ptl_handle_md_t md =
		bind_md(ni, md_of(got, 2000, PTL_MD_EVENT_START_DISABLE, eq));
	sync_nodes();
	if (rank == 1)
		stand_still();
	sync_nodes();
	for (unsigned i = 0; rank == 0 && i < n; i++)
		CHECK_OK(PtlGetRegion(
			md, i % 100, 1000 + i % 900, id_of(ni, 1), PT, 0, GET, i % 100));
	struct p3_peer *p = &nic()->peer[1];
	if (rank == 0)
		CHECK(!p3_list_empty(&p->queue));
	sync_nodes();
	if (rank == 1)
		go_on();
	/* Long messages are read while short ones pass by. */
	unsigned of_length[900] = {0};
	for (unsigned i = 0; rank == 0 && i < n; i++)
		of_length[(expect(eq, PTL_EVENT_REPLY_END).mlength - 1000) % 900]++;
	for (unsigned i = 0; rank == 0 && i < 900; i++)
		CHECK_EQ(of_length[i], n / 900 + (i < n % 900));
	if (rank == 0)
		CHECK_PATTERN(got + 100, 100, n < 900 ? 900 : 1800, 7);
	expect_empty(eq);
	round_of_all(ni, rank, size);
}

/* ---- memory of the host: queues, pendings ---- */

static unsigned queues_until_refused(ptl_handle_ni_t ni, ptl_handle_eq_t *eq)
{
	unsigned n = 0;
	int rc;
	while ((rc = PtlEQAlloc(ni, 1000, PTL_EQ_HANDLER_NONE, &eq[n])) == PTL_OK)
		CHECK(++n < 64);
	CHECK_EQ(rc, PTL_NO_SPACE);
	return n;
}

/* No queue and no pending can be made: arriving messages are delivered all the same,
 * and requests that need neither are sent */
NODES_CASE(memory_of_the_host_runs_out, 2)
{
	ptl_handle_eq_t eq = eq_new(ni, 4096), more[64];
	struct p3_seg *seg = &nic()->host_seg[0];
	uint64_t len = seg->len;
	unsigned n = rounds(1000), k = 0;
	unsigned char *buf = node_alloc(16);
	post_md(ni, PT, WANTED, md_of(buf, 8, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
	ptl_handle_md_t md = bind_md(ni, md_of(buf + 8, 8, MD_QUIET, eq));
	sync_nodes();
	if (rank == 0) {
		seg->len = p3_round_up(nic()->host_used[0], P3_PAGE) + 400000;
		k = queues_until_refused(ni, more);
		CHECK(k >= 1);
		CHECK_RC(put_to(ni, md, 1, PT, WANTED, PTL_ACK_REQ), PTL_NO_SPACE);
	}
	sync_nodes();
	for (unsigned i = 0, rc; i < n; i += rc == PTL_OK) {
		rc = (unsigned)put_to(ni, md, 1 - rank, PT, WANTED, PTL_NO_ACK_REQ);
		CHECK(rc == PTL_OK || (rc == PTL_NO_SPACE && rank == 0));
	}
	for (unsigned i = 0; i < n; i++)
		expect(eq, PTL_EVENT_PUT_END);
	sync_nodes();
	if (rank == 0) {
		CHECK_OK(PtlEQFree(more[k - 1]));
		CHECK_OK(PtlEQAlloc(ni, 1000, PTL_EQ_HANDLER_NONE, &more[k - 1]));
		seg->len = len;
		CHECK_OK(put_to(ni, md, 1, PT, WANTED, PTL_ACK_REQ));
		expect(eq, PTL_EVENT_ACK);
	} else {
		expect(eq, PTL_EVENT_PUT_END);
	}
	sync_nodes();
	expect_empty(eq);
	round_of_all(ni, rank, size);
}

/* ---- 16 flood, and a seventeenth ---- */

enum { FLOODERS = 16, TARGET = 0, PINGER = FLOODERS + 1, NODES = FLOODERS + 2 };

static p3_a32 pinging, extra;

static void put_one(
	ptl_handle_ni_t ni, ptl_handle_md_t md, size_t off, ptl_match_bits_t bits)
{
	int rc;
	while ((rc = PtlPutRegion(md, off, 8, PTL_NO_ACK_REQ, id_of(ni, TARGET), PT, 0,
			bits, 0, 0)) == PTL_NO_SPACE)
		sched_yield();
	CHECK_EQ(rc, PTL_OK);
}

/* Flood: two of three messages match; they carry their sender and number.  Then send
 * messages that do not match, as long as the seventeenth node has to be disturbed. */
static void flood(ptl_handle_ni_t ni, unsigned rank, unsigned n)
{
	uint64_t *word = (uint64_t *)(void *)node_alloc(8 * n);
	ptl_handle_md_t md = bind_md(ni, md_of(word, 8 * n, MD_QUIET, PTL_EQ_NONE));
	for (unsigned i = 0; i < n; i++) {
		word[i] = (uint64_t)rank << 32 | i;
		put_one(ni, md, 8 * i, i % 3 == 2 ? UNWANTED : WANTED);
	}
	for (; p3_get(&pinging); p3_add32(&extra, 1))
		put_one(ni, md, 0, UNWANTED);
}

static void ping_meanwhile(ptl_handle_ni_t ni)
{
	enum { TIMES = 2000 };
	static uint64_t ns[TIMES];
	unsigned n = rounds(TIMES);
	ptl_handle_eq_t eq = eq_new(ni, 16);
	ptl_handle_md_t md = bind_md(ni, md_of(node_alloc(8), 8, MD_QUIET, eq));
	for (unsigned i = 0; i < n; i++) {
		uint64_t t = now_ns();
		CHECK_OK(put_to(ni, md, TARGET, PT, PING, PTL_ACK_REQ));
		expect(eq, PTL_EVENT_ACK);
		ns[i] = now_ns() - t;
	}
	p3_set(&pinging, 0);
	qsort(ns, n, sizeof *ns, upwards);
	print_message("16 flood: round trips of a 17th %.1f us in the median, 99 %% "
		      "within %.1f us, all within %.1f us\n",
		(double)ns[n / 2] / 1e3, (double)ns[n - 1 - n / 100] / 1e3,
		(double)ns[n - 1] / 1e3);
	CHECK(ns[n - 1 - n / 100] < 5000000000u);
}

/* Be a slow host, which looks at its counters now and then. */
static uint64_t grown_meanwhile(ptl_handle_ni_t ni, uint64_t drops)
{
	while (drops_of(ni) < drops / 2)
		sleep_ms(1);
	uint64_t half = resident();
	while (p3_get(&pinging))
		sleep_ms(1);
	uint64_t all = resident();
	return all > half ? all - half : 0;
}

static void check_flood(const uint64_t *word, unsigned n)
{
	unsigned next[NODES] = {0}, all = FLOODERS * (n - n / 3);
	for (unsigned i = 0; i < all; i++) {
		unsigned from = (unsigned)(word[i] >> 32);
		CHECK(from >= 1 && from <= FLOODERS);
		CHECK_EQ((uint32_t)word[i], next[from]);
		next[from] += next[from] % 3 == 1 ? 2 : 1;
	}
}

/* A slow host: matching messages all arrive, in the order of each source, others are
 * counted, memory stays as it is, and a seventeenth sender makes progress */
NODES_CASE(sixteen_flood_a_slow_host, NODES)
{
	unsigned n = rounds(6000), wanted = FLOODERS * (n - n / 3);
	uint64_t *all = NULL, grown = 0;
	if (rank == TARGET) {
		all = (uint64_t *)(void *)node_alloc(wanted * 8);
		post_md(ni, PT, WANTED,
			md_of(all, wanted * 8, PTL_MD_OP_PUT | MD_QUIET, PTL_EQ_NONE));
		post_md(ni, PT, PING, md_of(node_alloc(8), 8, MD_ANY, PTL_EQ_NONE));
		p3_set(&pinging, 1);
		p3_set(&extra, 0);
	} else {
		limit_pendings(1);
	}
	sync_nodes();
	if (rank >= 1 && rank <= FLOODERS) {
		flood(ni, rank, n);
	} else if (rank == PINGER) {
		ping_meanwhile(ni);
	} else {
		grown = grown_meanwhile(ni, FLOODERS * (n / 3));
	}
	sync_nodes();
	if (rank == TARGET) {
		ptl_sr_value_t drops;
		run_for_drops(ni, FLOODERS * (n / 3) + p3_get(&extra));
		CHECK_OK(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &drops));
		CHECK_EQ(drops, FLOODERS * (n / 3) + p3_get(&extra));
		check_flood(all, n);
		print_message("memory: %.1f MiB more while the second half came\n",
			(double)grown / 1048576);
		CHECK(grown < (8 << 20));
	}
	sync_nodes();
	round_of_all(ni, rank, size);
}
