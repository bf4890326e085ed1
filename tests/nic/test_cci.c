/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CCI in the firmware, without lib/cci: connections, messages, refusals, time-outs, and
 * the deaths of peers, between nodes that are threads.
 */
#include "nic/cases.h"
#include "nic/cci.h"

#include "lib/cci/cci.h"
#include "nic/cci/internal.h"
#include "nic/obj/state.h"
#include "nic/run/lease.h"
#include "support/hold.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define SERVICE 5000

static cci_endpoint_t *open_with(uint32_t service, bool with_handle)
{
	cci_endpoint_t *ep = NULL;
	const struct p3_cci_endpoint_conf conf = {.service = service,
		.max_send_size = P3_CCI_MTU,
		.with_handle = with_handle};
	CHECK_EQ(p3_cci_endpoint_create(nic(), &conf, &ep), CCI_SUCCESS);
	return ep;
}

static cci_endpoint_t *open_at(uint32_t service)
{
	return open_with(service, -1);
}

/* Take the next event, which must be of this type. */
static cci_event_t *next(cci_endpoint_t *ep, cci_event_type_t type)
{
	cci_event_t *e = NULL;
	int rc;
	do {
		rc = p3_cci_get_event(ep, &e);
	} while (rc == CCI_EAGAIN || rc == CCI_ENOBUFS);
	CHECK_EQ(rc, CCI_SUCCESS);
	CHECK_EQ(e->type, type);
	return e;
}

static void give(cci_event_t *e)
{
	CHECK_EQ(p3_cci_return_event(e), CCI_SUCCESS);
}

static void dial(cci_endpoint_t *ep, uint32_t node, uint32_t service,
	cci_conn_attribute_t attribute, const void *data, uint32_t len)
{
	const struct p3_cci_connect c = {.node = node,
		.endpoint = service,
		.data = data,
		.data_len = len,
		.attribute = attribute,
		.context = (void *)(uintptr_t)ep,
		.timeout_ns = P3_CCI_NO_TIMEOUT};
	CHECK_EQ(p3_cci_connect(ep, &c), CCI_SUCCESS);
}

static cci_connection_t *connected(cci_endpoint_t *ep, uint32_t node,
	cci_conn_attribute_t attribute, const void *data, uint32_t len)
{
	dial(ep, node, SERVICE, attribute, data, len);
	cci_event_t *e = next(ep, CCI_EVENT_CONNECT);
	CHECK_EQ(e->connect.status, CCI_SUCCESS);
	CHECK(e->connect.context == ep);
	cci_connection_t *conn = e->connect.connection;
	CHECK(conn->context == ep);
	CHECK_EQ(conn->attribute, attribute);
	give(e);
	return conn;
}

static cci_connection_t *accepted(cci_endpoint_t *ep, uint32_t len, unsigned seed)
{
	cci_event_t *e = next(ep, CCI_EVENT_CONNECT_REQUEST);
	CHECK_EQ(e->request.data_len, len);
	if (len) {
		CHECK_PATTERN(e->request.data_ptr, 0, len, seed);
		CHECK_EQ(((const char *)e->request.data_ptr)[len], 0);
	}
	CHECK_EQ(p3_cci_return_event(e), CCI_EINVAL); /* it is undecided */
	CHECK_EQ(p3_cci_decide(e, (void *)(uintptr_t)ep, true), CCI_SUCCESS);
	CHECK_EQ(p3_cci_decide(e, (void *)(uintptr_t)ep, true), CCI_EINVAL);
	give(e);
	e = next(ep, CCI_EVENT_ACCEPT);
	CHECK_EQ(e->accept.status, CCI_SUCCESS);
	cci_connection_t *conn = e->accept.connection;
	CHECK(conn->context == ep);
	give(e);
	return conn;
}

static int send_one(cci_connection_t *conn, const void *at, uint32_t len, int flags)
{
	const struct iovec v = {(void *)(uintptr_t)at, len};
	int rc;
	do
		rc = p3_cci_send(conn, &v, 1, len, (void *)(uintptr_t)len, flags);
	while (rc == CCI_ENOBUFS);
	return rc;
}

/* Open an endpoint and connect it to the other node's. */
static cci_endpoint_t *meet(
	unsigned rank, cci_conn_attribute_t attribute, cci_connection_t **conn_out)
{
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	sync_nodes();
	*conn_out = rank == 0 ? accepted(ep, 0, 0) : connected(ep, 0, attribute, NULL, 0);
	return ep;
}

/* Send some bytes, and take the event. */
static void tell(
	cci_endpoint_t *ep, cci_connection_t *conn, const void *bytes, uint32_t len)
{
	CHECK_EQ(send_one(conn, bytes, len, 0), CCI_SUCCESS);
	give(next(ep, CCI_EVENT_SEND));
}

/* ---- messages of all lengths ---- */

static const uint32_t lengths[] = {
	0, 1, 8, 31, 32, 33, 95, 96, 97, 128, 1023, 1024, 2048, 4063, 4064, 4065, 4096};

static void check_message(cci_endpoint_t *ep, cci_connection_t *conn, uint32_t len)
{
	cci_event_t *e = next(ep, CCI_EVENT_RECV);
	CHECK_EQ(e->recv.len, len);
	CHECK(e->recv.connection == conn);
	if (len)
		CHECK_PATTERN(e->recv.ptr, 0, len, len);
	give(e);
}

static void exchange(unsigned rank, cci_conn_attribute_t attribute)
{
	cci_connection_t *conn;
	cci_endpoint_t *ep = meet(rank, attribute, &conn);
	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		unsigned char *at = node_pattern(P3_CCI_MTU, lengths[i]);
		if (rank == 0)
			check_message(ep, conn, lengths[i]);
		CHECK_EQ(send_one(conn, at, lengths[i], 0), CCI_SUCCESS);
		cci_event_t *e = next(ep, CCI_EVENT_SEND);
		CHECK_EQ(e->send.status, CCI_SUCCESS);
		CHECK(e->send.connection == conn);
		CHECK_EQ((uintptr_t)e->send.context, lengths[i]);
		give(e);
		if (rank == 1)
			check_message(ep, conn, lengths[i]);
	}
	sync_nodes();
	CHECK_EQ(p3_cci_disconnect(conn), CCI_SUCCESS);
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
	sync_nodes();
}

NODES_CASE(messages_of_all_lengths_arrive, 2)
{
	exchange(rank, CCI_CONN_ATTR_RO);
	exchange(rank, CCI_CONN_ATTR_RU);
	exchange(rank, CCI_CONN_ATTR_UU);
}

/* ---- a peer that reads ---- */

static void look_for_reader(struct p3_nic *n, void *is_read_out)
{
	*(bool *)is_read_out = p3_xfer_is_read(n);
}

/* A peer names a slot behind the table. */
NODES_CASE(a_reader_of_no_slot_does_not_count, 2)
{
	bool is_read;
	if (rank == 1)
		p3_release(
			&nic()->peer[0].mine->slice_of, p3_pair(1, nic()->layout.nxfers));
	sync_nodes();
	if (rank == 0) {
		CHECK(p3_cci_call(nic(), look_for_reader, &is_read));
		CHECK(!is_read);
	}
	sync_nodes();
}

/* ---- a receiver without room ---- */

#define FEW  8u
#define MANY 200u

static void set_number(const void *handle, cci_opt_name_t name, uint32_t value)
{
	uint32_t is = 0;
	CHECK_EQ(p3_cci_number(handle, name, true, &value), CCI_SUCCESS);
	CHECK_EQ(p3_cci_number(handle, name, false, &is), CCI_SUCCESS);
	CHECK_EQ(is, value);
}

#define NOW 1000u

/* Show the endpoint to tools as at time NOW, for the first time. */
static void show_anew(struct p3_nic *n, void *since_out)
{
	struct p3_cci_line *line =
		(void *)((char *)n->published.base + n->layout.cci_off);
	p3_set(&line->number, 0);
	p3_set(&line->full_since, 0);
	p3_cci_gauges(n, NOW);
	*(uint64_t *)since_out = p3_get(&line->full_since);
}

/* Hold FEW messages, return them, and take the others. */
static void receive_late(cci_endpoint_t *ep)
{
	cci_event_t *held[FEW], *e;
	for (uint32_t i = 0; i < FEW; i++)
		held[i] = next(ep, CCI_EVENT_RECV);
	for (unsigned i = 0; i < 1000; i++)
		CHECK_EQ(p3_cci_get_event(ep, &e), CCI_ENOBUFS);
	uint64_t since = 0;
	CHECK(p3_cci_call(nic(), show_anew, &since));
	CHECK_EQ(since, NOW);
	for (uint32_t i = 0; i < MANY; i++) {
		e = i < FEW ? held[i] : next(ep, CCI_EVENT_RECV);
		CHECK_EQ(e->recv.len, 8);
		CHECK_EQ(*(const uint64_t *)e->recv.ptr, i);
		give(e);
	}
}

NODES_CASE(refused_messages_come_again_in_order, 2)
{
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	if (rank == 0)
		set_number(ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, FEW);
	sync_nodes();
	cci_connection_t *conn = rank == 0 ? accepted(ep, 0, 0)
					   : connected(ep, 0, CCI_CONN_ATTR_RO, NULL, 0);
	if (rank == 0)
		receive_late(ep);
	for (uint64_t i = 0; rank == 1 && i < MANY; i++)
		CHECK_EQ(send_one(conn, &i, 8, 0), CCI_SUCCESS);
	for (uint64_t i = 0; rank == 1 && i < MANY; i++) {
		cci_event_t *e = next(ep, CCI_EVENT_SEND);
		CHECK_EQ(e->send.status, CCI_SUCCESS);
		give(e);
	}
	sync_nodes();
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- RMA ---- */

static const uint64_t areas[] = {1, 8, 40, 41, 1000, 1024, 1025, 4096, 100000, 1 << 20};

/* Register memory, send its handle, and check what the peer does to it. */
static void be_target(cci_endpoint_t *ep, cci_connection_t *conn)
{
	const uint64_t len = (1 << 20) + 64;
	unsigned char *at = node_alloc(len);
	cci_rma_handle_t *h;
	CHECK_EQ(p3_cci_rma_register(ep, at, len, CCI_FLAG_READ | CCI_FLAG_WRITE, &h),
		CCI_SUCCESS);
	tell(ep, conn, h, sizeof *h);
	for (unsigned i = 0; i < sizeof areas / sizeof *areas; i++) {
		cci_event_t *e = next(ep, CCI_EVENT_RECV);
		CHECK_EQ(e->recv.len, 3);
		CHECK_PATTERN(at + 3, 0, areas[i], i);
		CHECK_EQ(at[2], 0);
		CHECK_EQ(at[3 + areas[i]], 0);
		memset(at, 0, len);
		fill_pattern(at + 7, areas[i], 50 + i);
		give(e);
		tell(ep, conn, "go", 2);
		give(next(ep, CCI_EVENT_RECV)); /* the read is over */
		memset(at, 0, len);
		tell(ep, conn, "go", 2);
	}
	give(next(ep, CCI_EVENT_RECV));
	struct cci_rma_handle copy = *h;
	CHECK_EQ(p3_cci_rma_deregister(ep, &copy), CCI_SUCCESS);
	CHECK_EQ(p3_cci_rma_deregister(ep, &copy), CCI_EINVAL);
	tell(ep, conn, "go", 2);
	give(next(ep, CCI_EVENT_RECV));
}

static void rma(cci_endpoint_t *ep, cci_connection_t *conn, struct p3_cci_rma r,
	cci_status_t status)
{
	CHECK_EQ(p3_cci_rma(conn, &r), CCI_SUCCESS);
	cci_event_t *e = next(ep, CCI_EVENT_SEND);
	CHECK_EQ(e->send.status, status);
	CHECK(e->send.context == r.context);
	give(e);
}

static void be_initiator(cci_endpoint_t *ep, cci_connection_t *conn)
{
	const uint64_t len = (1 << 20) + 64;
	unsigned char *at = node_alloc(len);
	cci_rma_handle_t *h;
	cci_event_t *e = next(ep, CCI_EVENT_RECV);
	CHECK_EQ(p3_cci_rma_register(ep, at, len, 0, &h), CCI_SUCCESS);
	struct p3_cci_rma r = {.msg = "abc", .msg_len = 3, .local = *h, .context = at};
	memcpy(&r.remote, e->recv.ptr, sizeof r.remote);
	give(e);
	for (unsigned i = 0; i < sizeof areas / sizeof *areas; i++) {
		fill_pattern(at + 1, areas[i], i);
		r.flags = CCI_FLAG_WRITE;
		r.local_offset = 1;
		r.remote_offset = 3;
		r.data_len = areas[i];
		rma(ep, conn, r, CCI_SUCCESS);
		give(next(ep, CCI_EVENT_RECV));
		memset(at, 0, len);
		r.flags = CCI_FLAG_READ;
		r.local_offset = 5;
		r.remote_offset = 7;
		rma(ep, conn, r, CCI_SUCCESS);
		CHECK_PATTERN(at + 5, 0, areas[i], 50 + i);
		CHECK_EQ(at[4], 0);
		CHECK_EQ(at[5 + areas[i]], 0);
		give(next(ep, CCI_EVENT_RECV));
	}
	r.remote_offset = len;
	r.data_len = 1;
	rma(ep, conn, r, CCI_ERR_RMA_HANDLE); /* outside of the region: no message */
	tell(ep, conn, "x", 1);
	give(next(ep, CCI_EVENT_RECV));
	r.remote_offset = 0;
	r.data_len = 100000;
	rma(ep, conn, r, CCI_ERR_RMA_HANDLE); /* deregistered */
	tell(ep, conn, "y", 1);
}

NODES_CASE(remote_memory_is_written_and_read, 2)
{
	cci_connection_t *conn;
	cci_endpoint_t *ep = meet(rank, CCI_CONN_ATTR_RO, &conn);
	if (rank == 0)
		be_target(ep, conn);
	else
		be_initiator(ep, conn);
	sync_nodes();
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- ends of peers ---- */

NODES_CASE(a_closed_connection_and_a_dead_peer_end_sends, 2)
{
	uint64_t x = 0;
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	sync_nodes();
	cci_connection_t *first = rank == 0 ? accepted(ep, 0, 0)
					    : connected(ep, 0, CCI_CONN_ATTR_RO, NULL, 0);
	cci_connection_t *conn = rank == 0 ? accepted(ep, 0, 0)
					   : connected(ep, 0, CCI_CONN_ATTR_RU, NULL, 0);
	sync_nodes();
	if (rank == 0)
		CHECK_EQ(p3_cci_disconnect(first), CCI_SUCCESS);
	sync_nodes();
	if (rank == 0)
		node_die();
	for (unsigned i = 0; rank == 1 && i < 2; i++) {
		CHECK_EQ(send_one(first, &x, 8, 0), CCI_SUCCESS);
		cci_event_t *e = next(ep, CCI_EVENT_SEND);
		CHECK_EQ(e->send.status, CCI_ERR_DISCONNECTED);
		give(e);
	}
	while (rank == 1) {
		CHECK_EQ(send_one(conn, &x, 8, 0), CCI_SUCCESS);
		cci_event_t *e = next(ep, CCI_EVENT_SEND);
		cci_status_t status = e->send.status;
		give(e);
		if (status == CCI_ERR_DISCONNECTED)
			break;
	}
	if (rank == 1)
		CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

#define READS 6u
#define PART  100000u
#define LONG  (UINT64_C(32) << 20) /* bytes: a peer can die before they are read */

static void offer_memory(cci_endpoint_t *ep, cci_connection_t *conn, unsigned char *at)
{
	cci_rma_handle_t *h;
	CHECK_EQ(p3_cci_rma_register(ep, at, LONG, CCI_FLAG_READ | CCI_FLAG_WRITE, &h),
		CCI_SUCCESS);
	tell(ep, conn, h, sizeof *h);
}

static struct p3_cci_rma read_of_offer(cci_endpoint_t *ep, unsigned char *at)
{
	cci_rma_handle_t *h;
	cci_event_t *e = next(ep, CCI_EVENT_RECV);
	CHECK_EQ(p3_cci_rma_register(ep, at, LONG, 0, &h), CCI_SUCCESS);
	struct p3_cci_rma r = {.local = *h, .flags = CCI_FLAG_READ, .data_len = PART};
	memcpy(&r.remote, e->recv.ptr, sizeof r.remote);
	give(e);
	return r;
}

/* Connect the nodes.  Return node 1's read of the memory that node 0 offers. */
static struct p3_cci_rma meet_for_rma(
	unsigned rank, cci_endpoint_t *ep, unsigned char *at, cci_connection_t **conn_out)
{
	sync_nodes();
	*conn_out = rank == 0 ? accepted(ep, 0, 0)
			      : connected(ep, 0, CCI_CONN_ATTR_RO, NULL, 0);
	if (rank == 1)
		return read_of_offer(ep, at);
	offer_memory(ep, *conn_out, at);
	return (struct p3_cci_rma){.msg = NULL};
}

/* Begin a short read and then long ones, and wait for the end of the short one. */
static void begin_reads(cci_endpoint_t *ep, cci_connection_t *conn, struct p3_cci_rma *r)
{
	CHECK_EQ(p3_cci_rma(conn, r), CCI_SUCCESS);
	r->data_len = LONG;
	for (unsigned i = 0; i < READS; i++)
		CHECK_EQ(p3_cci_rma(conn, r), CCI_SUCCESS);
	give(next(ep, CCI_EVENT_SEND));
}

/* Begin a read for each that ends, until the peer has died: then all fail.  If all have
 * ended before, the next one is refused. */
static void read_until_death(
	cci_endpoint_t *ep, cci_connection_t *conn, struct p3_cci_rma *r)
{
	bool lost = false, refused = false;
	for (unsigned left = READS; left > 0; left--) {
		cci_event_t *e = next(ep, CCI_EVENT_SEND);
		CHECK(e->send.status == CCI_ERR_DISCONNECTED ||
			(e->send.status == CCI_SUCCESS && !lost));
		lost = e->send.status != CCI_SUCCESS;
		give(e);
		if (!lost && !refused)
			refused = p3_cci_rma(conn, r) != CCI_SUCCESS;
		if (!lost && !refused)
			left++;
	}
	CHECK(lost || refused);
}

NODES_CASE(a_peer_dies_while_several_reads_move, 2)
{
	unsigned char *at = node_alloc(LONG);
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	cci_connection_t *conn;
	struct p3_cci_rma r = meet_for_rma(rank, ep, at, &conn);
	if (rank == 1)
		begin_reads(ep, conn, &r);
	sync_nodes();
	if (rank == 0)
		node_die();
	if (rank == 1)
		read_until_death(ep, conn, &r);
	if (rank == 1)
		CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- an exchange beside RMA ---- */

/* Do as if an exchange of these bytes waited for a transfer. */
static void begin_exchange(struct p3_nic *n, void *at)
{
	const struct p3_region r = {.start = at, .size = LONG};
	n->swapper = &n->peer[0];
	n->swapper_until = UINT64_MAX;
	n->swapper_wants = p3_region_bounds(&r, 0, LONG);
	p3_odd_set(n, P3_ODD_SWAPPER);
}

/* Look at the request that lies in the lane, and then end the exchange. */
static void end_exchange(struct p3_nic *n, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 8; i++)
		(void)p3_pass_run(n);
	n->swapper = NULL;
}

/* A WRITE does not begin to move before an exchange of its bytes that waits. */
NODES_CASE(a_write_waits_for_an_exchange_and_is_done, 2)
{
	unsigned char *at = node_alloc(LONG);
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	cci_connection_t *conn;
	struct p3_cci_rma r = meet_for_rma(rank, ep, at, &conn);
	if (rank == 0)
		CHECK(p3_cci_call(nic(), begin_exchange, at));
	sync_nodes();
	fill_pattern(at, rank ? PART : 0, 1);
	r.flags = CCI_FLAG_WRITE;
	if (rank == 1)
		CHECK_EQ(p3_cci_rma(conn, &r), CCI_SUCCESS);
	sync_nodes();
	if (rank == 0)
		CHECK(p3_cci_call(nic(), end_exchange, NULL));
	if (rank == 1)
		give(next(ep, CCI_EVENT_SEND));
	sync_nodes();
	CHECK_PATTERN(at, 0, PART, 1);
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- destruction before RMA ---- */

static void pass_on(struct p3_nic *n, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 8; i++)
		(void)p3_pass_run(n);
}

/* The target finds a WRITE whose endpoint has been destroyed: the bytes belong to the
 * program again, and do not arrive. */
NODES_CASE(a_write_ends_with_its_endpoint, 2)
{
	unsigned char *at = node_alloc(LONG);
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_handle_md_t md = bind_md(ni, md_of(NULL, 0, 0, eq));
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	cci_connection_t *conn;
	post_md(ni, 3, 0, md_of(NULL, 0, MD_ANY, PTL_EQ_NONE));
	struct p3_cci_rma r = meet_for_rma(rank, ep, at, &conn);
	r.flags = CCI_FLAG_WRITE;
	if (rank == 0)
		nic_hold(nic());
	sync_nodes();
	if (rank == 1) {
		CHECK_EQ(p3_cci_rma(conn, &r), CCI_SUCCESS);
		CHECK(p3_cci_endpoint_destroy(nic(), ep));
		memset(at, 1, PART);
		CHECK_OK(put_to(ni, md, 0, 3, 0, PTL_ACK_REQ));
	}
	sync_nodes();
	if (rank == 0)
		p3_lease_leave(nic());
	else /* the target has found the WRITE, which lies before the put */
		while (next_event(eq).type != PTL_EVENT_ACK)
			continue;
	sync_nodes();
	CHECK(p3_cci_call(nic(), pass_on, NULL));
	sync_nodes();
	for (unsigned i = 0; i < PART; i++)
		CHECK_EQ(at[i], rank);
	if (rank == 0)
		CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- time-outs of RMA ---- */

static struct {
	p3_a32 held, steps, done;
} slow;

/* Hold the lease of node 0, so that it handles nothing.  For each step of node 1 do as if
 * some bytes of its WRITE had been read. */
static void be_slow(struct p3_nic *n, void *arg)
{
	(void)arg;
	p3_release(&slow.held, 1);
	for (uint32_t i = 0; !p3_acquire(&slow.done);)
		for (; i < p3_acquire(&slow.steps); i++)
			p3_count(&n->peer[1].mine->pulled, 1);
}

static uint64_t pulled(void)
{
	return p3_get(&nic()->peer[0].theirs->pulled);
}

static void pass_tick(struct p3_nic *n, void *arg)
{
	struct p3_cci_conn *conn = arg;
	conn->timer.fire(n, &conn->timer);
}

/* Let more ticks pass than a time-out has, with or without a step before each. */
static void pass_ticks(cci_connection_t *conn, bool moves)
{
	for (unsigned i = 0; i < 18; i++) {
		uint64_t before = pulled();
		if (moves)
			p3_release(&slow.steps, p3_get(&slow.steps) + 1);
		while (moves && pulled() == before)
			continue;
		CHECK(p3_cci_call(
			nic(), pass_tick, p3_item(conn, struct p3_cci_conn, pub)));
	}
}

static void see_time_out(cci_endpoint_t *ep, const void *context)
{
	cci_event_t *e = next(ep, CCI_EVENT_SEND);
	CHECK_EQ(e->send.status, CCI_ETIMEDOUT);
	CHECK(e->send.context == context);
	give(e);
}

/* A WRITE that moves goes on; a message behind it ends in its own time; the WRITE ends
 * when it moves no more. */
NODES_CASE(time_without_progress_ends_an_rma, 2)
{
	static unsigned char at[2][1 << 16];
	cci_rma_handle_t *h;
	cci_event_t *e;
	if (nic()->wired) /* such a wire sends frames with the lease only */
		return;
	cci_connection_t *conn;
	cci_endpoint_t *ep = meet(rank, CCI_CONN_ATTR_RU, &conn);
	CHECK_EQ(p3_cci_rma_register(ep, at[rank], sizeof at[0], CCI_FLAG_WRITE, &h),
		CCI_SUCCESS);
	if (rank == 0) {
		tell(ep, conn, h, sizeof *h);
		CHECK(p3_cci_call(nic(), be_slow, NULL));
	} else {
		struct p3_cci_rma r = {.local = *h,
			.flags = CCI_FLAG_WRITE,
			.data_len = sizeof at[0],
			.context = at};
		e = next(ep, CCI_EVENT_RECV);
		memcpy(&r.remote, e->recv.ptr, sizeof r.remote);
		give(e);
		while (!p3_acquire(&slow.held))
			continue;
		CHECK_EQ(p3_cci_rma(conn, &r), CCI_SUCCESS);
		CHECK_EQ(send_one(conn, at, 8, 0), CCI_SUCCESS);
		pass_ticks(conn, true);
		see_time_out(ep, (void *)8);
		CHECK_EQ(p3_cci_get_event(ep, &e), CCI_EAGAIN);
		pass_ticks(conn, false);
		see_time_out(ep, at);
		p3_release(&slow.done, 1);
	}
	sync_nodes();
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- what lies behind others ---- */

enum { PT = 3 };

/* Take the message that lies in the lane by one look.  The NIC thread may have taken the
 * lease before. */
static void find_at_once(cci_endpoint_t *ep)
{
	cci_event_t *e;
	uint64_t before = p3_nic_counter(nic(), P3_C_LEASE_NIC);
	p3_lease_leave(nic());
	int rc = p3_cci_get_event(ep, &e);
	if (rc == CCI_EAGAIN && nic_holds(nic()) != before) {
		give(next(ep, CCI_EVENT_RECV));
		return;
	}
	CHECK_EQ(rc, CCI_SUCCESS);
	CHECK_EQ(e->type, CCI_EVENT_RECV);
	give(e);
}

/* Puts, which bring the endpoint no event, lie before a message. */
NODES_CASE(a_look_finds_a_message_behind_others, 2)
{
	if (nic()->conf.mode == P3_MODE_DEDICATED || nic()->wired)
		return;
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	post_md(ni, PT, 0, md_of(NULL, 0, MD_ANY, PTL_EQ_NONE));
	ptl_handle_md_t md = bind_md(ni, md_of(NULL, 0, 0, PTL_EQ_NONE));
	sync_nodes();
	cci_connection_t *conn = rank == 0 ? accepted(ep, 0, 0)
					   : connected(ep, 0, CCI_CONN_ATTR_UU, NULL, 0);
	for (unsigned i = 0; i < 16; i++) {
		if (rank == 0)
			nic_hold(nic());
		sync_nodes();
		for (unsigned k = 0; k < 1 + i % 4 && rank == 1; k++)
			CHECK_OK(put_to(ni, md, 0, PT, 0, PTL_NOACK_REQ));
		if (rank == 1)
			CHECK_EQ(send_one(conn, &i, sizeof i, CCI_FLAG_SILENT),
				CCI_SUCCESS);
		sync_nodes();
		if (rank == 0)
			find_at_once(ep);
		sync_nodes();
	}
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- a handler that takes events ---- */

static struct {
	cci_endpoint_t *ep;
	p3_a32 handled;
	int rc; /* of the handler's call */
} interrupted;

static void take_in_handler(int number)
{
	cci_event_t *e;
	(void)number;
	interrupted.rc = p3_cci_get_event(interrupted.ep, &e);
	p3_release(&interrupted.handled, 1);
}

/* Take the events of a connect of the endpoint to itself. */
static void *refuse(void *ep)
{
	cci_event_t *e = next(ep, CCI_EVENT_CONNECT_REQUEST);
	CHECK_EQ(p3_cci_decide(e, NULL, false), CCI_SUCCESS);
	give(e);
	give(next(ep, CCI_EVENT_CONNECT));
	return NULL;
}

/* The second thread that takes events waits until the owner of the queue is in no step.
 * A handler that interrupts it there gets none. */
NODES_CASE(a_handler_finds_its_own_thread_revoking, 1)
{
	pthread_t second;
	cci_endpoint_t *ep = interrupted.ep = open_at(SERVICE);
	struct p3_cci_queue *q =
		&((struct p3_cci_endpoint *)(uintptr_t)interrupted.ep)->queue;
	dial(ep, 0, SERVICE, CCI_CONN_ATTR_RU, NULL, 0);
	(void)refuse((void *)(uintptr_t)ep); /* this thread owns the queue now */
	p3_set(&q->owner.inside, 1);
	dial(ep, 0, SERVICE, CCI_CONN_ATTR_RU, NULL, 0);
	(void)signal(SIGUSR1, take_in_handler);
	CHECK_EQ(pthread_create(&second, NULL, refuse, (void *)(uintptr_t)ep), 0);
	while (!p3_acquire(&q->owner.shared))
		sched_yield();
	CHECK_EQ(pthread_kill(second, SIGUSR1), 0);
	while (!p3_acquire(&interrupted.handled))
		sched_yield();
	p3_release(&q->owner.inside, 0);
	CHECK_EQ(pthread_join(second, NULL), 0);
	CHECK_EQ(interrupted.rc, CCI_EAGAIN);
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- an RMA operation whose message does not follow ---- */

static void see_all_free(struct p3_nic *n, void *arg)
{
	struct p3_cci_endpoint *ep = arg;
	p3_cci_desc_drain(n, ep);
	for (uint32_t i = 0; i < ep->tx_fresh; i++) {
		CHECK_EQ(ep->tx[i].state, P3_CCI_TX_FREE);
		CHECK(p3_list_empty(&ep->tx[i].wait));
	}
}

/* The target has closed the connection.  The message of the operation has its place among
 * the messages of the connection, until the operation ends. */
NODES_CASE(a_refused_operation_leaves_the_list_of_messages, 2)
{
	unsigned char *at = node_alloc(LONG);
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	cci_connection_t *conn;
	struct p3_cci_rma r = meet_for_rma(rank, ep, at, &conn);
	sync_nodes();
	if (rank == 0)
		CHECK_EQ(p3_cci_disconnect(conn), CCI_SUCCESS);
	sync_nodes();
	if (rank == 1) {
		r.msg = "abc";
		r.msg_len = 3;
		rma(ep, conn, r, CCI_ERR_DISCONNECTED);
		CHECK(p3_cci_call(nic(), see_all_free, (void *)(uintptr_t)ep));
	}
	sync_nodes();
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- answers of a peer that lies ---- */

/* The reply of one cell to a get of this length has as many cells as a multiple of 2^32
 * more, in 32 bits. */
#define WRAPS ((UINT64_C(1) << 38) + 1)

/* Answer each pending of RMA by a reply that is as long as the READ, in one cell. */
static void answer_by_a_cell(struct p3_nic *n, void *arg)
{
	struct p3_cell c = {0};
	uint32_t *asked = arg;
	p3_list_each(it, &n->peer[0].outstanding) {
		struct p3_pending *t = p3_item(it, struct p3_pending, link);
		const struct p3_answer a = {.kind = P3_RSP_REPLY,
			.ncells = p3_reply_cells(t->move.length),
			.pending = p3_pending_name(t),
			.mlength = t->move.length};
		CHECK_EQ(t->move.length, WRAPS);
		CHECK_EQ(a.ncells, 1);
		CHECK(!p3_cci_rma_answered(n, t, &c, &a));
		++*asked;
	}
}

NODES_CASE(a_reply_of_one_cell_ends_no_long_read, 2)
{
	uint32_t asked = 0;
	unsigned char *at = node_alloc(LONG);
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	cci_connection_t *conn;
	cci_rma_handle_t *h;
	struct p3_cci_rma r = meet_for_rma(rank, ep, at, &conn);
	if (rank == 0)
		nic_hold(nic());
	sync_nodes();
	if (rank == 1) {
		CHECK_EQ(p3_cci_rma_register(ep, at, WRAPS, 0, &h), CCI_SUCCESS);
		r.local = *h;
		r.data_len = WRAPS;
		CHECK_EQ(p3_cci_rma(conn, &r), CCI_SUCCESS);
		CHECK(p3_cci_call(nic(), answer_by_a_cell, &asked));
		CHECK_EQ(asked, 1);
	}
	sync_nodes();
	if (rank == 0)
		p3_lease_leave(nic());
	else
		give(next(ep, CCI_EVENT_SEND)); /* the region has not so many bytes */
	sync_nodes();
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- the first request of a client ---- */

/* Make the connection wait for the client's answer, as if it lay unread. */
static void forget_answer(struct p3_nic *n, void *arg)
{
	struct p3_cci_conn *conn = arg;
	(void)n;
	CHECK_EQ(conn->state, P3_CCI_READY);
	conn->state = P3_CCI_DECIDED;
}

static void wait_for_answer_again(cci_connection_t *conn)
{
	CHECK(p3_cci_call(nic(), forget_answer, p3_item(conn, struct p3_cci_conn, pub)));
}

static void be_accepted_by_request(cci_endpoint_t *ep, cci_connection_t *conn)
{
	cci_event_t *e = next(ep, CCI_EVENT_ACCEPT);
	CHECK_EQ(e->accept.status, CCI_SUCCESS);
	CHECK(e->accept.connection == conn);
	give(e);
}

/* With matching by the host the client's answer to the decision may lie behind a reply
 * that waits for the host, while its first message or RMA request is taken. */
NODES_CASE(a_request_before_the_answer_accepts, 2)
{
	unsigned char *at = node_alloc(LONG);
	cci_endpoint_t *ep = open_at(rank == 0 ? SERVICE : 0);
	cci_connection_t *conn;
	struct p3_cci_rma r = meet_for_rma(rank, ep, at, &conn);
	for (unsigned step = 0; step < 4; step++) {
		if (rank == 0)
			wait_for_answer_again(conn);
		sync_nodes();
		if (rank == 0)
			be_accepted_by_request(ep, conn);
		else if (step < 3)
			CHECK_EQ(send_one(conn, at, lengths[5 * step], 0), CCI_SUCCESS);
		else
			rma(ep, conn, r, CCI_SUCCESS);
		if (rank == 1 && step < 3)
			give(next(ep, CCI_EVENT_SEND));
		if (rank == 0 && step < 3)
			give(next(ep, CCI_EVENT_RECV));
		sync_nodes();
	}
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
}

/* ---- OS handles ---- */

#define ECHOS 200u

/* Sleep until the handle is readable, and take the next event. */
static void sleep_and_take(cci_endpoint_t *ep, cci_event_type_t type)
{
	cci_event_t *e = NULL;
	while (!e) {
		struct pollfd readable = {.fd = p3_cci_handle_fd(ep), .events = POLLIN};
		CHECK(poll(&readable, 1, -1) == 1);
		p3_cci_handle_enter(ep);
		(void)p3_cci_get_event(ep, &e);
		p3_cci_handle_looked(ep, e != NULL);
	}
	CHECK_EQ(e->type, type);
	give(e);
}

static void echo(cci_endpoint_t *ep, cci_connection_t *conn, bool begins)
{
	for (unsigned i = 0; i < ECHOS; i++) {
		if (!begins)
			sleep_and_take(ep, CCI_EVENT_RECV);
		CHECK_EQ(send_one(conn, &i, sizeof i, CCI_FLAG_SILENT), CCI_SUCCESS);
		if (begins)
			sleep_and_take(ep, CCI_EVENT_RECV);
	}
}

/* A sleeping program is woken when its message comes.  If ticks of the NIC thread found
 * the messages, there would be a take-over for each. */
NODES_CASE(sleepers_do_not_wait_for_ticks, 2)
{
	cci_endpoint_t *ep = open_with(rank == 0 ? SERVICE : 0, true);
	sync_nodes();
	cci_connection_t *conn = rank == 0 ? accepted(ep, 0, 0)
					   : connected(ep, 0, CCI_CONN_ATTR_UU, NULL, 0);
	sync_nodes();
	uint64_t before = p3_nic_counter(nic(), P3_C_TAKEOVERS);
	echo(ep, conn, rank == 0);
	CHECK(p3_nic_counter(nic(), P3_C_TAKEOVERS) - before < ECHOS / 4);
	sync_nodes();
	CHECK(p3_cci_endpoint_destroy(nic(), ep));
}
