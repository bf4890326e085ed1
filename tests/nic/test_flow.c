/* SPDX-License-Identifier: BSD-3-Clause */
/* Room: reservations, back-pressure, long transfers both ways. */
#include "lib/node/node.h"
#include "nic/cases.h"

#define PT 9

/* P3.3 chapter 4: the sender of a dropped message sees nothing; the target counts the
 * drop, and the room reserved for the answers is freed */
NODES_CASE(drops_are_counted_and_give_room_back, 2)
{
	unsigned n = rounds(20000);
	ptl_handle_eq_t eq = eq_new(ni, 64), sent = eq_new(ni, 64);
	unsigned char *buf = node_alloc(100000);
	static const size_t len[] = {8, 2000, 100000};
	uint64_t bytes = 10 * (len[0] + len[1] + len[2]);
	for (unsigned i = 0; i < n; i++)
		bytes += len[i % 50 ? i % 2 : 2];
	if (rank == 1)
		post_md(ni, PT, 1, md_of(buf, 100000, MD_ANY, PTL_EQ_NONE));
	sync_nodes();
	if (rank == 0) {
		ptl_handle_md_t md[3];
		for (unsigned i = 0; i < 3; i++)
			md[i] = bind_md(ni, md_of(buf, len[i], 0, eq));
		for (unsigned i = 0; i < n; i++)
			CHECK_OK(get_from(ni, md[i % 50 ? i % 2 : 2], 1, PT, 2));
		ptl_handle_md_t put = bind_md(ni, md_of(buf, 100000, 0, sent));
		for (unsigned i = 0; i < 30; i++) {
			CHECK_OK(PtlPutRegion(put, 0, len[i % 3], PTL_ACK_REQ,
				id_of(ni, 1), PT, 0, 2, 0, 0));
			expect(sent, PTL_EVENT_SEND_START);
			CHECK_EQ(expect(sent, PTL_EVENT_SEND_END).mlength, len[i % 3]);
		}
		expect_empty(eq);
		for (unsigned i = 0; i < 3; i++) {
			CHECK_OK(get_from(ni, md[i], 1, PT, 1));
			expect(eq, PTL_EVENT_REPLY_START);
			CHECK_EQ(expect(eq, PTL_EVENT_REPLY_END).mlength, len[i]);
		}
		CHECK_OK(put_to(ni, put, 1, PT, 1, PTL_ACK_REQ));
		expect_pair(sent, PTL_EVENT_SEND_START);
		expect(sent, PTL_EVENT_ACK);
		expect_empty(sent);
	}
	sync_nodes();
	CHECK_EQ(drops_of(ni), rank ? n + 30 : 0);
	CHECK_EQ(p3_nic_counter(p3_nic(p3_node()), P3_C_DROP_BYTES), rank ? bytes : 0);
}

/* ---- back-pressure ---- */

/* So many operations of this length. */
struct load {
	size_t len;
	unsigned n;
};

static void flood(NODE_ARGS)
{
	const size_t len = ((const struct load *)arg)->len;
	const unsigned n = rounds(((const struct load *)arg)->n);
	ptl_handle_eq_t eq = eq_new(ni, 4 * n);
	unsigned char *buf = node_alloc(len);
	if (rank == 1)
		post_md(ni, PT, 1, sink_md(buf, len, eq));
	sync_nodes();
	if (rank == 0) {
		ptl_handle_md_t md = bind_md(ni, md_of(buf, len, 0, eq));
		for (unsigned i = 0; i < n; i++)
			CHECK_OK(PtlPut(md, PTL_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, i));
		for (unsigned i = 0; i < 3 * n; i++)
			CHECK_EQ(next_event(eq).ni_fail_type, PTL_NI_OK);
		expect_empty(eq);
	}
	sync_nodes(); /* node 1 stays in here, without a Portals call of its own */
	for (unsigned i = 0; rank == 1 && i < n; i++)
		expect(eq, PTL_EVENT_PUT_END);
	expect_empty(eq);
	sync_nodes();
}

/* P3.3 2: progress needs no call by the target; a source that is too fast is held back,
 * and no message is lost */
CASE(flood_arrives_at_an_idle_host)
{
	struct load loads[] = {{8, 20000}, {3000, 4000}, {50000, 500}};
	for (unsigned i = 0; i < 3; i++)
		run_nodes(2, flood, &loads[i]);
}

/* All nodes flood all */
NODES_CASE(flood_of_all_by_all_arrives, 4)
{
	unsigned n = rounds(400);
	static const size_t len[] = {8, 1200, 20000};
	ptl_handle_eq_t in = eq_new(ni, 8192), out = eq_new(ni, 16384);
	unsigned char *buf = node_alloc(20000), *src = node_alloc(20000);
	post_md(ni, PT, 1, sink_md(buf, 20000, in));
	ptl_handle_md_t md = bind_md(ni, source_md(src, 20000, out));
	sync_nodes();
	for (unsigned i = 0; i < n; i++)
		for (unsigned to = 0; to < size; to++)
			CHECK_OK(PtlPutRegion(md, 0, len[i % 3], PTL_ACK_REQ,
				id_of(ni, to), PT, 0, 1, 0, rank));
	for (unsigned i = 0; i < size * n; i++)
		expect(in, PTL_EVENT_PUT_END);
	for (unsigned i = 0; i < 2 * size * n; i++)
		CHECK_EQ(next_event(out).ni_fail_type, PTL_NI_OK);
	expect_empty(in);
	expect_empty(out);
	sync_nodes();
}

/* ---- long transfers both ways ---- */

/* Every class of message has its own room: two nodes that long-get from each other do
 * not stop, however narrow the lanes (registered with PTL3_LANES=base, too) */
static void get_both_ways(NODE_ARGS)
{
	const size_t len = ((const struct load *)arg)->len;
	const unsigned n = rounds(((const struct load *)arg)->n);
	ptl_handle_eq_t eq = eq_new(ni, 4096), in = eq_new(ni, 4096);
	unsigned char *from = node_pattern(len, rank), *to = node_alloc(len);
	post_md(ni, PT, 1, md_of(from, len, MD_ANY, in));
	ptl_handle_md_t md = bind_md(ni, md_of(to, len, 0, eq));
	sync_nodes();
	for (unsigned i = 0; i < n; i++)
		CHECK_OK(get_from(ni, md, 1 - rank, PT, 1));
	for (unsigned i = 0; i < 2 * n; i++)
		CHECK_EQ(next_event(eq).ni_fail_type, PTL_NI_OK);
	CHECK_PATTERN(to, 0, len, 1 - rank);
	for (unsigned i = 0; i < 2 * n; i++)
		CHECK_EQ(next_event(in).ni_fail_type, PTL_NI_OK);
	expect_empty(eq);
	expect_empty(in);
	sync_nodes();
}

CASE(long_gets_cross)
{
	struct load loads[] = {{30000, 400}, {3000001, 8}};
	for (unsigned i = 0; i < 2; i++)
		run_nodes(2, get_both_ways, &loads[i]);
}

/* P3.3 3.10: PTL_MD_IN_USE between START and END, PTL_OK once the END can be read */
static void unlink_while_moving(ptl_handle_ni_t ni, unsigned rank, bool put)
{
	const size_t len = 16u << 20;
	ptl_handle_eq_t eq = eq_new(ni, 16);
	unsigned char *buf = node_alloc(len);
	unsigned in_use = 0;
	for (unsigned i = 0; i < rounds(20); i++) {
		ptl_handle_md_t md;
		ptl_handle_me_t me = PTL_INVALID_HANDLE;
		if (rank == 1) {
			me = me_last(ni, PT, 1, 0, PTL_RETAIN);
			CHECK_OK(PtlMDAttach(
				me, md_of(buf, len, MD_ANY, eq), PTL_RETAIN, &md));
		} else {
			md = bind_md(ni, md_of(buf, len, 0, eq));
		}
		sync_nodes();
		if (rank == 0)
			CHECK_OK(put ? put_to(ni, md, 1, PT, 1, PTL_NO_ACK_REQ)
				     : get_from(ni, md, 1, PT, 1));
		ptl_event_t start = next_event(eq), end;
		int rc, got;
		while ((got = PtlEQGet(eq, &end)) == PTL_EQ_EMPTY) {
			rc = i % 2 && rank ? PtlMEUnlink(me) : PtlMDUnlink(md);
			if (rc == PTL_OK)
				break; /* the END was posted since */
			CHECK_EQ(rc, i % 2 && rank ? PTL_ME_IN_USE : PTL_MD_IN_USE);
			in_use++;
		}
		if (got == PTL_EQ_EMPTY)
			CHECK_OK(PtlEQGet(eq, &end));
		else
			CHECK_OK(PtlMDUnlink(md));
		CHECK_EQ(end.link, start.link);
		CHECK_EQ(end.ni_fail_type, PTL_NI_OK);
		CHECK_EQ(end.type, start.type + 1);
		CHECK_RC(PtlMDUnlink(md), PTL_MD_INVALID);
		if (rank == 1)
			(void)PtlMEUnlink(me);
		expect_empty(eq);
		sync_nodes();
	}
	/* It depends on the scheduler whether the loop saw a transfer under way. */
	if (!in_use)
		print_message("node %u saw no transfer in progress\n", rank);
}

NODES_CASE(unlink_says_in_use_during_long_puts, 2)
{
	unlink_while_moving(ni, rank, true);
}

NODES_CASE(unlink_says_in_use_during_long_gets, 2)
{
	unlink_while_moving(ni, rank, false);
}
