/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges beside long transfers, and the state after the calls around them: nothing
 * waits for ever, nothing is owed or counted wrongly, nothing of a freed queue is read.
 */
#include "nic/xfer/xfer.h"
#include "cases.h"

enum { PT_X = 4, PT_Y = 5, LONG = 1 << 20, MANY = 200 };

/* ---- an exchange and puts from the same bytes ---- */

struct bytes {
	unsigned char *x, *y, *got, *sent;
	ptl_handle_eq_t eq;
	ptl_handle_md_t get, put, all; /* all of x */
};

static struct bytes make_bytes(ptl_handle_ni_t ni)
{
	struct bytes b = {.x = node_alloc(LONG),
		.y = node_alloc(LONG),
		.got = node_alloc(8),
		.sent = node_alloc(8),
		.eq = eq_new(ni, 256)};
	post_md(ni, PT_X, 0, md_of(b.x, LONG, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	post_md(ni, PT_Y, 0, md_of(b.y, LONG, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	b.get = bind_md(ni, source_md(b.got, 8, b.eq));
	b.put = bind_md(ni, md_of(b.sent, 8, MD_QUIET, PTL_EQ_NONE));
	b.all = bind_md(ni, source_md(b.x, LONG, b.eq));
	return b;
}

/* The put's request may lie in a lane behind the exchange of its bytes. */
static void swap_then_put(ptl_handle_ni_t ni, unsigned peer, unsigned times)
{
	struct bytes b = make_bytes(ni);
	for (unsigned i = 0; i < times; i++) {
		sync_nodes();
		CHECK_OK(PtlGetPut(b.get, b.put, id_of(ni, peer), PT_X, 0, 0, 0, 0));
		CHECK_OK(put_to(ni, b.all, peer, PT_Y, 0, PTL_NO_ACK_REQ));
		unsigned kinds = 0;
		kinds |= 1u << next_event(b.eq).type;
		kinds |= 1u << next_event(b.eq).type;
		CHECK_EQ(kinds, 1u << PTL_EVENT_REPLY_END | 1u << PTL_EVENT_SEND_END);
	}
	sync_nodes();
}

NODES_CASE(exchange_does_not_wait_for_a_put_behind_it, 1)
{
	swap_then_put(ni, rank, rounds(MANY));
}

NODES_CASE(exchanges_and_puts_of_the_same_bytes_cross, 2)
{
	swap_then_put(ni, !rank, rounds(MANY));
}

NODES_CASE(exchanges_and_puts_go_round_three, 3)
{
	swap_then_put(ni, (rank + 1) % size, rounds(MANY));
}

/* A node that begins to pull and leaves the library must still pull: a NIC thread that is
 * not woken looks again only after 0.1 s. */
NODES_CASE(long_puts_cross_without_being_late, 2)
{
	struct bytes b = make_bytes(ni);
	for (unsigned i = 0; i < 2 * rounds(MANY); i++) {
		sync_nodes();
		CHECK_OK(put_to(ni, b.all, !rank, PT_Y, 0, PTL_NO_ACK_REQ));
		expect(b.eq, PTL_EVENT_SEND_END);
	}
	sync_nodes();
}

/* Both halves of a long put are on one side of every exchange: 64 equal bytes stay
 * equal. */
NODES_CASE(put_never_carries_half_an_exchange, 2)
{
	struct bytes b = make_bytes(ni);
	unsigned char *in = node_alloc(64);
	ptl_handle_md_t put = bind_md(ni, md_of(in, 64, MD_QUIET, PTL_EQ_NONE));
	ptl_handle_md_t get = bind_md(ni, source_md(node_alloc(64), 64, b.eq));
	const size_t where = 32768 - 32; /* across the border of two slices */
	sync_nodes();
	for (unsigned i = 0; i < rounds(MANY); i++) {
		if (rank == 1)
			CHECK_OK(put_to(ni, b.all, 0, PT_Y, 0, PTL_NO_ACK_REQ));
		memset(in, (int)i, 64);
		if (rank == 0)
			CHECK_OK(PtlGetPut(get, put, id_of(ni, 1), PT_X, 0, 0, where, 0));
		(void)next_event(b.eq);
		sync_nodes();
		for (unsigned k = 1; rank == 0 && k < 64; k++)
			CHECK_EQ(b.y[where + k], b.y[where]);
		sync_nodes();
	}
}

/* A pull that has read the first 32 bytes and the last 32, and knows what lay there:
 * exchanges reach into what it has read, up to the first and to the last byte, unless an
 * earlier exchange behind the pull has changed that byte. */
CASE(exchange_reaches_the_ends_of_a_transfer)
{
	enum { READ = 32 };
	struct p3_pull pull = {.length = LONG,
		.done = READ,
		.end = LONG - READ,
		.kept_end = LONG,
		.front = {.at = READ, .known = READ},
		.back = {.at = LONG - READ, .known = LONG - READ}};
	const struct p3_range first = {0, READ + 1}, last = {LONG - READ - 1, LONG};
	assert_false(p3_xfer_has_no_side(&pull, first));
	assert_false(p3_xfer_has_no_side(&pull, last));
	pull.kept = 1;
	pull.kept_end = LONG - 1;
	assert_true(p3_xfer_has_no_side(&pull, first));
	assert_true(p3_xfer_has_no_side(&pull, last));
}

/* ---- queues ---- */

struct reader {
	p3_a64 handle;
	p3_a32 stop;
};

/* Read the queue that the handle names, be it live or freed.  No event is ever posted to
 * such a queue, so none may come. */
static void read_freed(void *arg)
{
	struct reader *r = arg;
	ptl_event_t ev;
	while (!p3_get(&r->stop)) {
		int rc = PtlEQGet(p3_get(&r->handle), &ev);
		CHECK(rc == PTL_EQ_EMPTY || rc == PTL_EQ_INVALID);
	}
}

static void post_and_take(ptl_handle_ni_t ni, ptl_handle_eq_t eq, unsigned n)
{
	ptl_md_t d = source_md(NULL, 0, eq);
	ptl_handle_md_t md = bind_md(ni, d);
	for (unsigned i = 0; i < n; i++)
		CHECK_OK(put_to(ni, md, 0, PT_X, 99, PTL_NO_ACK_REQ));
	for (unsigned i = 0; i < n; i++)
		expect(eq, PTL_EVENT_SEND_END);
	CHECK_OK(PtlMDUnlink(md));
}

NODES_CASE(reader_of_a_freed_queue_takes_nobodys_event, 1)
{
	static struct reader r;
	p3_set(&r.stop, 0);
	p3_set(&r.handle, eq_new(ni, 4));
	struct side *s = side_start(read_freed, &r);
	for (unsigned i = 0; i < rounds(20 * MANY); i++) {
		ptl_handle_eq_t old = p3_get(&r.handle), mine;
		CHECK_OK(PtlEQFree(old));
		mine = eq_new(ni, 4); /* the same ring */
		post_and_take(ni, mine, 3);
		CHECK_OK(PtlEQFree(mine));
		p3_set(&r.handle, eq_new(ni, 4));
	}
	p3_set(&r.stop, 1);
	side_join(s);
}

NODES_CASE(rings_of_a_closed_interface_come_back, 1)
{
	for (unsigned i = 0; i < 300; i++) {
		ptl_handle_ni_t other;
		CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &other));
		(void)eq_new(other, 1 << 16);
		CHECK_OK(PtlNIFini(other));
	}
}

/* ---- debts and counts ---- */

NODES_CASE(start_to_come_is_owed, 1)
{
	struct bytes b = make_bytes(ni);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_event_t ev;
	ptl_md_t d = md_of(b.x, LONG, PTL_MD_EVENT_END_DISABLE, eq);
	ptl_handle_md_t md = bind_md(ni, d);
	int rc = PTL_OK;
	for (unsigned i = 0; i < 4000 && rc == PTL_OK; i++) {
		CHECK_OK(put_to(ni, md, 0, PT_Y, 0, PTL_NO_ACK_REQ));
		rc = PtlEQPeek(eq, &ev);
		if (rc == PTL_OK)
			CHECK_OK(PtlEQGet(eq, &ev));
	}
	if (rc == PTL_EQ_EMPTY) /* that put waits for room: its START is still to come */
		CHECK_RC(PtlMDUpdate(md, NULL, &d, eq), PTL_MD_NO_UPDATE);
}

NODES_CASE(registers_begin_anew_whatever_was_under_way, 1)
{
	ptl_handle_ni_t other;
	ptl_sr_value_t v;
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &other));
	ptl_handle_md_t md = bind_md(other, md_of(node_alloc(8), 8, 0, PTL_EQ_NONE));
	ptl_process_id_t self;
	/* late drops are counted there */
	CHECK_OK(PtlGetId(ni, &self));
	for (int i = 0; i < 3; i++)
		CHECK_OK(PtlGet(md, self, PT_X, 0, 99, 0));
	CHECK_OK(PtlNIFini(other));
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &other));
	post_and_take(ni, eq_new(ni, 64), 10);
	for (ptl_sr_index_t i = PTL_SR_DROP_COUNT; i < PTL_SR_MD_ALIGN_8; i++) {
		CHECK_OK(PtlNIStatus(other, i, &v));
		CHECK_EQ(v, 0);
	}
	CHECK_OK(PtlNIFini(other));
}
