/* SPDX-License-Identifier: BSD-3-Clause */
/* PtlXPTHold: requests that wait in their lane for an entry.  PTLX_MD_REPLY_ALWAYS:
 * requests that find none.  PtlXInject: puts of bytes that need no descriptor. */
#include "lib/node/node.h"
#include "nic/cases.h"
#include "nic/generic/upper.h"
#include "nic/run/lease.h"

#include <sched.h>
#include <unistd.h>

#define PT      9
#define OPEN_PT 10 /* an index that holds nothing */
#define LONG    100000u

/* Wait until the node has kept this number of requests; it makes no call that looks for
 * messages. */
static void await_kept(ptl_handle_ni_t ni, uint64_t n)
{
	struct patience p = patience_begin();
	while (stats_of(ni).kept < n && !patience_is_over(&p))
		/* pause: between two looks */
		usleep(500);
	CHECK_EQ(stats_of(ni).kept, n);
}

/* Take START and END of n puts, which match in the order of their header data.  A long
 * one may end behind later ones. */
static void expect_puts_in_order(ptl_handle_eq_t in, unsigned n)
{
	unsigned starts = 0, ends = 0;
	while (starts < n || ends < n) {
		ptl_event_t ev = next_event(in);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		if (ev.type == PTL_EVENT_PUT_START)
			CHECK_EQ(ev.hdr_data, starts++);
		ends += ev.type == PTL_EVENT_PUT_END;
	}
}

/* ---- each kind of request ---- */

static const struct request {
	ptl_event_kind_t kind; /* the event at the target */
	size_t len;
} requests[] = {{PTL_EVENT_PUT_END, 8}, {PTL_EVENT_PUT_END, 0}, {PTL_EVENT_PUT_END, 2000},
	{PTL_EVENT_PUT_END, LONG}, {PTL_EVENT_GET_END, 8}, {PTL_EVENT_GET_END, 700},
	{PTL_EVENT_GET_END, LONG}, {PTL_EVENT_GETPUT_END, 8}, {PTL_EVENT_GETPUT_END, 64},
	{PTL_EVENT_PUT_END, 1}};

#define REQUESTS (sizeof requests / sizeof *requests)

static void send_requests(ptl_handle_ni_t ni, unsigned to, ptl_handle_eq_t eq)
{
	unsigned char *src = node_pattern(LONG, 1), *dst = node_alloc(LONG);
	ptl_handle_md_t put = bind_md(ni, sink_md(src, LONG, eq));
	ptl_handle_md_t get = bind_md(ni, sink_md(dst, LONG, eq));
	for (unsigned i = 0; i < REQUESTS; i++) {
		size_t len = requests[i].len;
		if (requests[i].kind == PTL_EVENT_PUT_END)
			CHECK_OK(PtlPutRegion(
				put, 0, len, PTL_ACK_REQ, id_of(ni, to), PT, 0, i, 0, i));
		else if (requests[i].kind == PTL_EVENT_GET_END)
			CHECK_OK(PtlGetRegion(get, 0, len, id_of(ni, to), PT, 0, i, 0));
		else
			CHECK_OK(PtlGetPutRegion(
				get, 0, put, 0, len, id_of(ni, to), PT, 0, i, 0, i));
	}
}

/* Take the events of the initiator: one SEND_END for each put and exchange, and one ACK
 * or REPLY for each request. */
static void take_answers(ptl_handle_eq_t eq)
{
	unsigned answers = 0, sent = 0, puts = 0;
	for (unsigned i = 0; i < REQUESTS; i++)
		puts += requests[i].kind != PTL_EVENT_GET_END;
	while (answers < REQUESTS || sent < puts) {
		ptl_event_t ev = next_event(eq);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		answers += ev.type == PTL_EVENT_ACK || ev.type == PTL_EVENT_REPLY_END;
		sent += ev.type == PTL_EVENT_SEND_END;
	}
	expect_empty(eq);
}

/* Attach an entry for each request once it waits, and take it. */
static void take_requests(ptl_handle_ni_t ni, ptl_handle_eq_t in)
{
	unsigned char *buf = node_alloc(LONG);
	for (unsigned i = 0; i < REQUESTS; i++) {
		await_kept(ni, i + 1);
		expect_empty(in);
		post_md(ni, PT, i, sink_md(buf, LONG, in));
		ptl_event_t ev = expect(in, requests[i].kind);
		CHECK_EQ(ev.mlength, requests[i].len);
		CHECK_EQ(ev.match_bits, i);
		if (ev.type == PTL_EVENT_PUT_END)
			CHECK_PATTERN(buf, 0, requests[i].len, 1);
	}
	CHECK_EQ(drops_of(ni), 0);
}

NODES_CASE(each_kind_of_request_waits_for_its_entry, 2)
{
	ptl_handle_eq_t eq = eq_new(ni, 256);
	CHECK_OK(PtlXPTHold(ni, PT, 1));
	sync_nodes();
	if (rank == 0) {
		send_requests(ni, 1, eq);
		take_answers(eq);
	} else {
		take_requests(ni, eq);
	}
	sync_nodes();
}

/* Here the program's own thread sends and takes */
NODES_CASE(own_requests_wait_for_their_entries, 1)
{
	ptl_handle_eq_t eq = eq_new(ni, 256), in = eq_new(ni, 256);
	CHECK_OK(PtlXPTHold(ni, PT, 1));
	send_requests(ni, 0, eq);
	take_requests(ni, in);
	take_answers(eq);
}

static void expect_failure(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev = next_event(eq);
	CHECK_EQ(ev.type, kind);
	CHECK_EQ(ev.ni_fail_type, PTL_NI_FAIL);
	CHECK_EQ(ev.mlength, 0);
}

static ptl_handle_md_t bind_told(
	ptl_handle_ni_t ni, size_t len, ptl_handle_eq_t eq, bool is_told)
{
	ptl_md_t md = sink_md(node_alloc(len), len, eq);
	md.options |= is_told ? PTLX_MD_REPLY_ALWAYS : 0;
	return bind_md(ni, md);
}

static const size_t lengths[] = {0, 8, 700, LONG};

/* Ask node 1 for bytes that no entry has, then for some that one has: with the option
 * each request has its event, else only the last one. */
static void ask_in_vain(ptl_handle_ni_t ni, bool is_told)
{
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t get = bind_told(ni, LONG, eq, is_told);
	for (unsigned i = 0; i < 4; i++) {
		CHECK_OK(
			PtlGetRegion(get, 0, lengths[i], id_of(ni, 1), OPEN_PT, 0, 2, 0));
		if (is_told)
			expect_failure(eq, PTL_EVENT_REPLY_END);
	}
	CHECK_OK(PtlGetRegion(get, 0, 8, id_of(ni, 1), OPEN_PT, 0, 1, 0));
	CHECK_EQ(expect(eq, PTL_EVENT_REPLY_END).mlength, 8);
	expect_empty(eq);
}

/* The same with puts; one entry takes them, and sends no ACK. */
static void put_in_vain(ptl_handle_ni_t ni, bool is_told)
{
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t put = bind_told(ni, LONG, eq, is_told);
	for (unsigned i = 0; i < 4; i++)
		for (unsigned silent = 0; silent < 2; silent++) {
			CHECK_OK(PtlPutRegion(put, 0, lengths[i], PTL_ACK_REQ,
				id_of(ni, 1), OPEN_PT, 0, silent ? 3 : 2, 0, 0));
			CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).mlength, lengths[i]);
			if (is_told && !silent)
				expect_failure(eq, PTL_EVENT_ACK);
		}
	CHECK_OK(PtlPutRegion(put, 0, 8, PTL_ACK_REQ, id_of(ni, 1), OPEN_PT, 0, 1, 0, 0));
	expect(eq, PTL_EVENT_SEND_END);
	CHECK_EQ(expect(eq, PTL_EVENT_ACK).mlength, 8);
	expect_empty(eq);
}

NODES_CASE(initiator_of_a_dropped_request_is_told, 2)
{
	ptl_md_t silent = sink_md(node_alloc(LONG), LONG, PTL_EQ_NONE);
	silent.options |= PTL_MD_ACK_DISABLE;
	if (rank == 1) {
		post_md(ni, OPEN_PT, 1, sink_md(node_alloc(8), 8, PTL_EQ_NONE));
		post_md(ni, OPEN_PT, 3, silent);
	}
	sync_nodes();
	for (unsigned told = 0; told < 2 && rank == 0; told++) {
		ask_in_vain(ni, told);
		put_in_vain(ni, told);
	}
	sync_nodes();
}

/* A put whose bytes are under way when its target closes the interface, but keeps another
 * one, has its ACK: a failed one, or a good one if the last byte came first. */
NODES_CASE(initiator_is_told_of_an_interface_that_closes, 2)
{
	const size_t len = 64u << 20;
	ptl_handle_eq_t eq = eq_new(ni, 8);
	if (rank == 1) {
		ptl_handle_ni_t other;
		CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &other));
		post_md(ni, OPEN_PT, 1, md_of(node_alloc(len), len, MD_ANY, eq));
		sync_nodes();
		expect(eq, PTL_EVENT_PUT_START);
		CHECK_OK(PtlNIFini(ni));
		meet_nodes();
		CHECK_OK(PtlNIFini(other));
		return;
	}
	ptl_handle_md_t put = bind_told(ni, len, eq, true);
	sync_nodes();
	CHECK_OK(PtlPut(put, PTL_ACK_REQ, id_of(ni, 1), OPEN_PT, 0, 1, 0, 0));
	CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).mlength, len);
	CHECK_EQ(next_event(eq).type, PTL_EVENT_ACK);
	meet_nodes();
}

/* ---- ways in which an entry comes ---- */

struct comer {
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	unsigned char *buf;
	ptl_handle_me_t wrong; /* entry of the index that matches nothing */
	ptl_handle_md_t used;  /* descriptor without operations left, and */
	ptl_handle_md_t deaf;  /* one that takes no puts, each of an entry of its own */
};

typedef void comer_fn(const struct comer *c, ptl_match_bits_t bits);

static void come_by_attach(const struct comer *c, ptl_match_bits_t bits)
{
	post_md(c->ni, PT, bits, sink_md(c->buf, 8, c->eq));
}

static void come_by_insert(const struct comer *c, ptl_match_bits_t bits)
{
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	CHECK_OK(PtlMEInsert(
		c->wrong, anybody(), bits, 0, PTL_RETAIN, PTL_INS_BEFORE, &me));
	CHECK_OK(PtlMDAttach(me, sink_md(c->buf, 8, c->eq), PTL_RETAIN, &md));
}

static void come_by_both_in_one(const struct comer *c, ptl_match_bits_t bits)
{
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	CHECK_OK(PtlMEMDInsert(c->wrong, anybody(), bits, 0, PTL_RETAIN, PTL_INS_AFTER,
		sink_md(c->buf, 8, c->eq), PTL_RETAIN, &me, &md));
}

static void come_by_post(const struct comer *c, ptl_match_bits_t bits)
{
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	CHECK_OK(PtlMEMDPost(c->ni, c->wrong, anybody(), bits, 0, PTL_RETAIN,
		PTL_INS_BEFORE, sink_md(c->buf, 8, c->eq), PTL_RETAIN, &me, &md, c->eq));
}

static void come_by_new_threshold(const struct comer *c, ptl_match_bits_t bits)
{
	(void)bits;
	ptl_md_t md = sink_md(c->buf, 8, c->eq);
	CHECK_OK(PtlMDUpdate(c->used, NULL, &md, PTL_EQ_NONE));
}

static void come_by_new_options(const struct comer *c, ptl_match_bits_t bits)
{
	(void)bits;
	ptl_md_t md = sink_md(c->buf, 8, c->eq);
	CHECK_OK(PtlMDUpdate(c->deaf, NULL, &md, PTL_EQ_NONE));
}

static comer_fn *const comers[] = {come_by_attach, come_by_insert, come_by_both_in_one,
	come_by_post, come_by_new_threshold, come_by_new_options};

#define COMERS (sizeof comers / sizeof *comers)

static struct comer comer_new(ptl_handle_ni_t ni)
{
	struct comer c = {.ni = ni, .eq = eq_new(ni, 64), .buf = node_alloc(8)};
	c.wrong = me_last(ni, PT, 1000, 0, PTL_RETAIN);
	ptl_md_t used = sink_md(c.buf, 8, c.eq), deaf = used;
	used.threshold = 0;
	deaf.options &= ~(unsigned)PTL_MD_OP_PUT;
	c.used = post_md(ni, PT, 4, used);
	c.deaf = post_md(ni, PT, 5, deaf);
	return c;
}

/* Bind 8 bytes whose operations post no events. */
static ptl_handle_md_t bind_word(ptl_handle_ni_t ni)
{
	return bind_md(ni, md_of(node_alloc(8), 8, MD_QUIET, PTL_EQ_NONE));
}

/* No thread of the target is in the library when the bytes come */
NODES_CASE(entry_of_any_way_takes_what_waits, 2)
{
	if (rank == 0) {
		ptl_handle_md_t md = bind_word(ni);
		sync_nodes();
		for (unsigned i = 0; i < COMERS; i++)
			CHECK_OK(put_to(ni, md, 1, PT, i, PTL_NO_ACK_REQ));
	} else {
		struct comer c = comer_new(ni);
		CHECK_OK(PtlXPTHold(ni, PT, 1));
		sync_nodes();
		for (unsigned i = 0; i < COMERS; i++) {
			await_kept(ni, i + 1);
			expect_empty(c.eq);
			comers[i](&c, i);
			CHECK_EQ(expect(c.eq, PTL_EVENT_PUT_END).match_bits, i);
		}
		CHECK_EQ(drops_of(ni), 0);
	}
	sync_nodes();
}

/* ---- wake-ups ---- */

/* Wait until the NIC thread sleeps on the doorbell, where it ever does. */
static void await_nic_asleep(void)
{
	struct p3_nic *n = p3_nic(p3_node());
	struct patience p = patience_begin();
	while (p3_nic_counter(n, P3_G_MODE) != P3_MODE_DEDICATED &&
		!p3_nic_counter(n, P3_G_NIC_ASLEEP) && !patience_is_over(&p))
		/* pause: between two looks */
		usleep(500);
}

/* Wait until the node has received this number of requests; it makes no call that looks
 * for messages. */
static void await_received(ptl_handle_ni_t ni, uint64_t n)
{
	struct patience p = patience_begin();
	while (stats_of(ni).msgs_received < n && !patience_is_over(&p))
		/* pause: between two looks */
		usleep(100);
	CHECK_EQ(stats_of(ni).msgs_received, n);
}

/* The call that brings the entry takes some of the messages behind the one that waits.
 * The NIC thread, which sleeps, takes all others: their doorbell is long over */
NODES_CASE(messages_behind_wake_the_nic_thread, 2)
{
	enum { BEHIND = 200 };
	unsigned char *buf = node_alloc(BEHIND);
	if (rank == 1)
		CHECK_OK(PtlXPTHold(ni, PT, 1));
	for (unsigned round = 0; round < rounds(5); round++) {
		sync_nodes();
		if (rank == 0) {
			ptl_handle_md_t md =
				bind_md(ni, md_of(buf, BEHIND, MD_QUIET, PTL_EQ_NONE));
			for (unsigned i = 0; i < BEHIND; i++)
				CHECK_OK(PtlPutRegion(md, i, 1, PTL_NO_ACK_REQ,
					id_of(ni, 1), PT, 0, round, i, 0));
		} else {
			await_kept(ni, round + 1);
			await_nic_asleep();
			post_md(ni, PT, round, sink_md(buf, BEHIND, PTL_EQ_NONE));
			await_received(ni, (round + 1) * BEHIND);
		}
		sync_nodes();
	}
	CHECK_EQ(drops_of(ni), 0);
	if (rank == 1 && !getenv("P3_FAR"))
		CHECK_EQ(stats_of(ni).park_late, 0);
}

/* ---- others go on ---- */

static void use_window(ptl_handle_ni_t ni, unsigned to, unsigned n)
{
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = bind_md(ni, sink_md(node_alloc(LONG), LONG, eq));
	for (unsigned i = 0; i < n; i++) {
		size_t len = i % 3 ? 8 : LONG;
		CHECK_OK(PtlPutRegion(
			md, 0, len, PTL_ACK_REQ, id_of(ni, to), OPEN_PT, 0, 1, 0, 0));
		expect(eq, PTL_EVENT_SEND_END);
		expect(eq, PTL_EVENT_ACK);
		CHECK_OK(PtlGetRegion(md, 0, len, id_of(ni, to), OPEN_PT, 0, 1, 0));
		expect(eq, PTL_EVENT_REPLY_END);
	}
}

/* While node 0's put waits at node 1, node 2 uses node 1's memory, and node 1 that of
 * node 0; what node 0 sends after its put waits behind it */
NODES_CASE(requests_of_others_go_on, 3)
{
	ptl_handle_eq_t in = eq_new(ni, 64);
	post_md(ni, OPEN_PT, 1, sink_md(node_alloc(LONG), LONG, PTL_EQ_NONE));
	post_md(ni, OPEN_PT, 2, sink_md(node_alloc(8), 8, in));
	if (rank == 1)
		CHECK_OK(PtlXPTHold(ni, PT, 1));
	sync_nodes();
	if (rank == 0) {
		ptl_handle_md_t md = bind_word(ni);
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_NO_ACK_REQ));
		CHECK_OK(put_to(ni, md, 1, OPEN_PT, 2, PTL_NO_ACK_REQ));
	}
	if (rank == 1)
		await_kept(ni, 1);
	sync_nodes();
	if (rank == 2)
		use_window(ni, 1, rounds(30));
	if (rank == 1)
		use_window(ni, 0, rounds(30));
	sync_nodes();
	if (rank == 1) {
		expect_empty(in);
		CHECK_EQ(stats_of(ni).kept, 1);
		post_md(ni, PT, 1, sink_md(node_alloc(8), 8, in));
		CHECK_EQ(expect(in, PTL_EVENT_PUT_END).pt_index, PT);
		CHECK_EQ(expect(in, PTL_EVENT_PUT_END).pt_index, OPEN_PT);
	}
	sync_nodes();
}

/* Two nodes send more than all lanes and copies hold, before either has an entry */
NODES_CASE(flood_both_ways_ends_without_loss, 2)
{
	unsigned n = rounds(3000);
	static const size_t len[] = {8, 2000, 8, 20000, 300};
	ptl_handle_eq_t in = eq_new(ni, 4 * n), out = eq_new(ni, 4 * n);
	unsigned char *buf = node_alloc(20000), *src = node_pattern(20000, rank);
	ptl_handle_md_t md = bind_md(ni, sink_md(src, 20000, out));
	CHECK_OK(PtlXPTHold(ni, PT, 1));
	sync_nodes();
	for (unsigned i = 0; i < n; i++)
		CHECK_OK(PtlPutRegion(md, 0, len[i % 5], PTL_NO_ACK_REQ,
			id_of(ni, 1 - rank), PT, 0, 1, 0, i));
	CHECK_EQ(stats_of(ni).kept <= 1, true);
	post_md(ni, PT, 1, md_of(buf, 20000, MD_ANY, in));
	expect_puts_in_order(in, n);
	for (unsigned i = 0; i < n; i++)
		expect(out, PTL_EVENT_SEND_END);
	CHECK_PATTERN(buf, 0, 8, 1 - rank);
	CHECK_EQ(drops_of(ni), 0);
	sync_nodes();
}

/* ---- ends ---- */

/* Switched off, an index drops what waits, and what lies behind goes on */
NODES_CASE(hold_that_ends_drops_what_waits, 2)
{
	ptl_handle_eq_t in = eq_new(ni, 64);
	if (rank == 1) {
		post_md(ni, PT, 2, sink_md(node_alloc(8), 8, in));
		CHECK_OK(PtlXPTHold(ni, PT, 7));
	}
	sync_nodes();
	if (rank == 0) {
		ptl_handle_md_t md = bind_told(ni, 8, in, true);
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
		CHECK_OK(put_to(ni, md, 1, PT, 2, PTL_NO_ACK_REQ));
		expect(in, PTL_EVENT_SEND_END);
		expect(in, PTL_EVENT_SEND_END);
		sync_nodes(); /* the ACK comes behind both */
		expect_failure(in, PTL_EVENT_ACK);
	} else {
		await_kept(ni, 1);
		sync_nodes();
		CHECK_OK(PtlXPTHold(ni, PT, 0));
		CHECK_EQ(expect(in, PTL_EVENT_PUT_END).match_bits, 2);
		CHECK_EQ(drops_of(ni), 1);
	}
	sync_nodes();
}

/* A request that no entry could help is dropped as ever; access that is refused later
 * drops what waits */
NODES_CASE(refused_requests_do_not_wait, 2)
{
	if (rank == 1) {
		CHECK_OK(PtlXPTHold(ni, PT, 1));
		CHECK_OK(PtlACEntry(ni, 1, anybody(), PTL_UID_ANY, PTL_JID_ANY, OPEN_PT));
		CHECK_OK(PtlACEntry(ni, 2, anybody(), PTL_UID_ANY, PTL_JID_ANY, PT));
	}
	sync_nodes();
	if (rank == 0) {
		ptl_handle_md_t md = bind_word(ni);
		CHECK_OK(PtlPut(md, PTL_NO_ACK_REQ, id_of(ni, 1), PT, 1, 1, 0, 0));
		CHECK_OK(PtlPut(md, PTL_NO_ACK_REQ, id_of(ni, 1), OPEN_PT, 0, 1, 0, 0));
		CHECK_OK(PtlPut(md, PTL_NO_ACK_REQ, id_of(ni, 1), PT, 2, 1, 0, 0));
	} else {
		await_kept(ni, 1);
		CHECK_EQ(drops_of(ni), 2);
		CHECK_OK(PtlACEntry(ni, 2, anybody(), PTL_UID_ANY, PTL_JID_ANY, OPEN_PT));
		run_for_drops(ni, 3);
	}
	sync_nodes();
}

/* Of the requests of a node that dies those that wait are dropped, and the others are
 * taken; operations with it end */
NODES_CASE(killed_sender_takes_its_requests_along, 2)
{
	ptl_handle_eq_t in = eq_new(ni, 64), out = eq_new(ni, 64);
	ptl_handle_md_t md = bind_md(ni, sink_md(node_alloc(LONG), LONG, out));
	if (rank == 1) {
		CHECK_OK(PtlXPTHold(ni, PT, 1));
		post_md(ni, OPEN_PT, 2, sink_md(node_alloc(8), 8, in));
	}
	sync_nodes();
	if (rank == 0) {
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
		CHECK_OK(PtlXInject(ni, &rank, 4, id_of(ni, 1), OPEN_PT, 0, 2, 0, 5));
		CHECK_OK(PtlXInject(ni, &rank, 4, id_of(ni, 1), PT, 0, 1, 0, 6));
	} else {
		await_kept(ni, 1);
	}
	sync_nodes();
	if (rank == 0) {
		node_die();
		return;
	}
	run_for_drops(ni, 2);
	CHECK_EQ(expect(in, PTL_EVENT_PUT_END).hdr_data, 5);
	CHECK_OK(get_from(ni, md, 0, PT, 1));
	ptl_event_t ev = next_event(out);
	CHECK_EQ(ev.type, PTL_EVENT_REPLY_END);
	CHECK(ev.ni_fail_type != PTL_NI_OK);
	post_md(ni, PT, 1, sink_md(node_alloc(LONG), LONG, in));
	expect_empty(in);
}

/* Put to an entry, then thrice to an index that keeps requests, and close the
 * interface. */
static void send_and_leave(ptl_handle_ni_t ni)
{
	CHECK_OK(PtlXInject(ni, NULL, 0, id_of(ni, 1), OPEN_PT, 0, 1, 0, 0));
	for (unsigned i = 0; i < 3; i++) {
		uint64_t word = i;
		CHECK_OK(
			PtlXInject(ni, &word, sizeof word, id_of(ni, 1), PT, 0, 1, 0, i));
	}
	CHECK_OK(PtlNIFini(ni));
}

/* Let puts to one index find an entry, and those to the other one wait. */
static void prepare_for_the_leaver(ptl_handle_ni_t ni)
{
	post_md(ni, OPEN_PT, 1, sink_md(node_alloc(8), 8, PTL_EQ_NONE));
	CHECK_OK(PtlXPTHold(ni, PT, 1));
}

static void take_those_of_the_leaver(ptl_handle_ni_t ni, ptl_handle_eq_t in)
{
	uint64_t *at = (uint64_t *)node_alloc(8);
	CHECK_EQ(drops_of(ni), 0);
	post_md(ni, PT, 1, sink_md(at, 8, in));
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(expect(in, PTL_EVENT_PUT_END).hdr_data, i);
	CHECK_EQ(*at, 2);
}

/* A node that has closed its interface loses nothing that waits */
HAND_CASE(requests_of_a_node_that_has_left_wait_on, 2)
{
	ni = node_ni();
	ptl_handle_eq_t in = eq_new(ni, 64);
	if (rank == 1)
		prepare_for_the_leaver(ni);
	sync_nodes();
	if (rank == 0)
		send_and_leave(ni);
	else
		await_kept(ni, 1);
	sync_nodes();
	if (rank == 1)
		take_those_of_the_leaver(ni, in);
	sync_nodes();
}

/* Take the lease of a node whose host matches.  Return false on any other node, and on
 * one that needs passes for the frames of a wire. */
static bool take_lease_of_host(struct p3_nic *n)
{
	if (!n->generic || n->wired)
		return false;
	while (!p3_lease_enter_reserved(n, P3_LEASE_HOST))
		sched_yield();
	return true;
}

/* With the lease, and without a pass, which would look at the lanes, execute the commands
 * that come, until one has found a request that waits; then give the lease up. */
static void execute_commands_until_one_keeps(struct p3_nic *n)
{
	struct patience p = patience_begin();
	while (!p3_nic_counter(n, P3_C_KEPT) && !patience_is_over(&p)) {
		p3_command_take_posted(n);
		p3_wake_hosts(n, P3_NEWS_ALL);
		sched_yield();
	}
	p3_lease_leave(n);
}

/* The same where the command that reports the end is the first to see the requests */
HAND_CASE(unseen_requests_of_a_node_that_has_left_wait_on, 2)
{
	ni = node_ni();
	ptl_handle_eq_t in = eq_new(ni, 64);
	if (rank == 1)
		prepare_for_the_leaver(ni);
	sync_nodes();
	bool leased = rank == 1 && take_lease_of_host(p3_nic(p3_node()));
	meet_nodes();
	if (rank == 0)
		send_and_leave(ni);
	if (leased)
		execute_commands_until_one_keeps(p3_nic(p3_node()));
	if (rank == 1)
		await_kept(ni, 1);
	sync_nodes();
	if (rank == 1)
		take_those_of_the_leaver(ni, in);
	sync_nodes();
}

/* Wait until the host has put off the first request of node 0, and let the firmware not
 * ask again by itself. */
static void put_off_for_long(struct p3_nic *n)
{
	struct patience p = patience_begin();
	for (bool off = false; !off && take_lease_of_host(n); sched_yield()) {
		struct p3_upper *u = &n->generic->upper[0];
		off = u->state == P3_UPPER_LATER || patience_is_over(&p);
		u->again_ns = UINT64_MAX;
		p3_lease_leave(n);
	}
}

/* The same where the request has come before the program began, and so before its index
 * kept requests */
HAND_CASE(request_put_off_of_a_node_that_has_left_waits_on, 2)
{
	ni = node_ni();
	ptl_handle_eq_t in = eq_new(ni, 64);
	meet_nodes();
	if (rank == 0) {
		CHECK_OK(PtlXInject(ni, &rank, 4, id_of(ni, 1), PT, 0, 1, 0, 7));
		meet_nodes();
		CHECK_OK(PtlNIFini(ni));
	} else {
		put_off_for_long(p3_nic(p3_node()));
		CHECK_OK(PtlXPTHold(ni, PT, 1));
		expect_empty(in); /* the interface has settled */
		meet_nodes();
		await_kept(ni, 1);
		post_md(ni, PT, 1, sink_md(node_alloc(8), 8, in));
		CHECK_EQ(expect(in, PTL_EVENT_PUT_END).hdr_data, 7);
	}
	sync_nodes();
}

/* A target that dies or closes its interface ends the requests that it has kept: their
 * initiators have an event for each, if their descriptors have the option */
static void target_ends(unsigned rank, ptl_handle_ni_t ni, bool dies)
{
	ptl_handle_eq_t out = eq_new(ni, 64);
	ptl_handle_md_t md = bind_told(ni, LONG, out, true);
	if (rank == 1)
		CHECK_OK(PtlXPTHold(ni, PT, 1));
	sync_nodes();
	if (rank == 0) {
		CHECK_OK(PtlPutRegion(
			md, 0, 8, PTL_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, 0));
		CHECK_OK(put_to(ni, md, 1, PT, 1, PTL_ACK_REQ));
		CHECK_OK(get_from(ni, md, 1, PT, 1));
		CHECK_EQ(expect(out, PTL_EVENT_SEND_END).mlength, 8);
		meet_nodes();
		expect_failure(out, PTL_EVENT_ACK);
		CHECK_EQ(next_event(out).type, PTL_EVENT_SEND_END);
		expect_failure(out, PTL_EVENT_ACK);
		expect_failure(out, PTL_EVENT_REPLY_END);
		unlink_at_last(md);
		return;
	}
	await_kept(ni, 1);
	meet_nodes();
	if (dies)
		node_die();
	else
		CHECK_OK(PtlNIFini(ni));
}

NODES_CASE(killed_target_keeps_no_initiator, 2)
{
	target_ends(rank, ni, true);
}

HAND_CASE(target_that_leaves_keeps_no_initiator, 2)
{
	target_ends(rank, node_ni(), false);
}

/* Fetch and add, and add, at node 1, which dies or is dead: the sends fail, and with the
 * option so do the reply and the ACK */
static void add_in_vain(ptl_handle_ni_t ni, ptl_handle_eq_t eq, bool is_told)
{
	ptl_handle_md_t get = bind_told(ni, 8, eq, is_told);
	ptl_handle_md_t put = bind_told(ni, 8, eq, is_told);
	CHECK_OK(PtlXAtomic(get, 0, put, 0, 8, PTLX_SUM, PTLX_UINT64, PTL_NO_ACK_REQ,
		id_of(ni, 1), PT, 0, 1, 0, 0));
	CHECK_OK(PtlXAtomic(PTL_INVALID_HANDLE, 0, put, 0, 8, PTLX_SUM, PTLX_UINT64,
		PTL_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, 0));
}

static void expect_failures(ptl_handle_eq_t eq, bool is_told)
{
	expect_failure(eq, PTL_EVENT_SEND_END);
	if (is_told)
		expect_failure(eq, PTL_EVENT_REPLY_END);
	expect_failure(eq, PTL_EVENT_SEND_END);
	if (is_told)
		expect_failure(eq, PTL_EVENT_ACK);
}

/* The first ones wait behind bytes that use up lane and copies until node 1 dies; the
 * others come later */
NODES_CASE(initiator_of_operations_at_the_dead_is_told, 2)
{
	ptl_handle_eq_t eq = eq_new(ni, 64);
	unsigned char *bytes = node_alloc(8192);
	if (rank == 1)
		CHECK_OK(PtlXPTHold(ni, PT, 1));
	sync_nodes();
	if (rank == 1) {
		await_kept(ni, 1);
		meet_nodes();
		node_die();
		return;
	}
	for (size_t len = 8192; len; len /= 2)
		while (PtlXInject(ni, bytes, len, id_of(ni, 1), PT, 0, 1, 0, 0) == PTL_OK)
			;
	add_in_vain(ni, eq, false);
	add_in_vain(ni, eq, true);
	meet_nodes();
	expect_failures(eq, false);
	expect_failures(eq, true);
	for (unsigned told = 0; told < 2; told++) {
		add_in_vain(ni, eq, told);
		expect_failures(eq, told);
	}
	expect_empty(eq);
}

/* ---- puts of bytes ---- */

/* Bytes may change as soon as the call returns, and come in order with other puts */
NODES_CASE(injected_bytes_are_those_of_the_call, 2)
{
	static const size_t len[] = {0, 1, 8, 15, 16, 17, 100, 1000, 2000, 8191, 8192};
	enum { LENGTHS = sizeof len / sizeof *len };
	const unsigned n = rounds(2000);
	ptl_handle_eq_t in = eq_new(ni, 8192);
	unsigned char *src = node_alloc(8192), *buf = node_alloc(8192);
	post_md(ni, PT, 3, sink_md(buf, 8192, in));
	post_md(ni, PT, 4, md_of(buf, 8192, MD_ANY, in));
	ptl_handle_md_t md = bind_md(ni, md_of(src, 8192, MD_QUIET, PTL_EQ_NONE));
	sync_nodes();
	for (unsigned to = 0; to < size; to++)
		for (unsigned k = 0; k < LENGTHS; k++) {
			fill_pattern(src, len[k], k);
			CHECK_OK(PtlXInject(
				ni, src, len[k], id_of(ni, to), PT, 0, 3, 0, rank));
			memset(src, 0xee, 8192);
			sync_nodes();
			for (unsigned i = 0; rank == to && i < size; i++) {
				ptl_event_t ev = expect(in, PTL_EVENT_PUT_END);
				CHECK_EQ(ev.mlength, len[k]);
				CHECK_EQ(ev.match_bits, 3);
			}
			if (rank == to)
				CHECK_PATTERN(buf, 0, len[k], k);
			sync_nodes();
		}
	for (unsigned i = 0; rank == 0 && i < n; i++) {
		int rc;
		if (i % 3 == 0)
			CHECK_OK(PtlPutRegion(md, 0, len[i % LENGTHS], PTL_NO_ACK_REQ,
				id_of(ni, 1), PT, 0, 4, 0, i));
		else
			while ((rc = PtlXInject(ni, src, len[i % LENGTHS], id_of(ni, 1),
					PT, 0, 4, 0, i)) != PTL_OK)
				CHECK_EQ(rc, PTL_NO_SPACE);
	}
	if (rank == 1)
		expect_puts_in_order(in, n);
	sync_nodes();
}

/* A target that takes nothing: the copies find no room one day, and all that were
 * accepted arrive */
NODES_CASE(injected_bytes_find_no_room_one_day, 2)
{
	ptl_handle_eq_t in = eq_new(ni, 8192);
	static p3_a32 accepted, done;
	unsigned char *buf = node_alloc(2000);
	if (rank == 1) {
		p3_set(&accepted, 0);
		p3_set(&done, 0);
		CHECK_OK(PtlXPTHold(ni, PT, 1));
	}
	sync_nodes();
	if (rank == 0) {
		int rc = PTL_OK;
		for (unsigned i = 0; rc == PTL_OK; i++) {
			rc = PtlXInject(ni, buf, i % 2001, id_of(ni, 1), PT, 0, 1, 0, i);
			if (rc == PTL_OK)
				p3_set(&accepted, i + 1);
		}
		CHECK_EQ(rc, PTL_NO_SPACE);
		p3_release(&done, 1);
	} else {
		while (!p3_acquire(&done))
			/* pause: between two looks */
			usleep(500);
		post_md(ni, PT, 1, md_of(buf, 2000, MD_ANY, in));
		expect_puts_in_order(in, p3_get(&accepted));
		CHECK_EQ(drops_of(ni), 0);
	}
	sync_nodes();
	expect_empty(in);
}

/* Wait until this node counts no copy that has not left: PtlNIFini waits for these. */
static void await_copies_left(void)
{
	struct patience p = patience_begin();
	while (p3_get(&p3_nic(p3_node())->leaving)) {
		CHECK(!patience_is_over(&p));
		sleep_ms(1); /* pause: between two looks */
	}
}

/* Bytes for a node that has yet to come wait for it; those for one that has gone are
 * lost */
HAND_CASE(injected_bytes_wait_for_a_node_to_come, 2)
{
	uint64_t word = 5, *at = (uint64_t *)node_alloc(8);
	if (rank == 0) {
		ni = node_ni();
		CHECK_OK(
			PtlXInject(ni, &word, sizeof word, id_of(ni, 1), PT, 0, 1, 0, 7));
		word = 6;
	}
	sync_nodes();
	if (rank == 1) {
		ni = node_ni();
		ptl_handle_eq_t in = eq_new(ni, 8);
		post_md(ni, PT, 1, sink_md(at, 8, in));
		CHECK_EQ(expect(in, PTL_EVENT_PUT_END).hdr_data, 7);
		CHECK_EQ(*at, 5);
		CHECK_OK(PtlNIFini(ni));
	}
	sync_nodes();
	if (rank == 0) {
		await_copies_left();
		CHECK_OK(
			PtlXInject(ni, &word, sizeof word, id_of(ni, 1), PT, 0, 1, 0, 8));
	}
	sync_nodes();
}
