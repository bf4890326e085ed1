/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generic mode: the entries of the generic event queue and the interrupts that messages
 * of each kind and length take, at both ends.  Node 0 initiates; node 1 is the target.
 */
#include "nic/cases.h"

#include "lib/node/node.h"
#include "nic/generic/upper.h"
#include "nic/run/lease.h"
#include "support/hold.h"

#include <stdlib.h>
#include <string.h>

enum { PT = 3, MOST = 4096, ROUNDS = 20 };

static const size_t lengths[] = {0, 1, 11, 12, 13, 16, 17, 32, 33, 64, 1000, MOST};
#define LENGTHS (sizeof lengths / sizeof *lengths)

/* The settings of a job. */
struct job {
	const char *match; /* PTL3_MATCH */
	size_t inlined;    /* most bytes that go with a header */
	bool host[2];      /* the node's host matches */
};

static ptlx_stats_t stats(ptl_handle_ni_t ni)
{
	ptlx_stats_t s = {.struct_size = sizeof s};
	CHECK_OK(PtlXStats(ni, &s));
	return s;
}

/* The entries that one message of each length takes at its initiator and its target. */
struct entries {
	unsigned initiator, target;
};

/* A put: SEND_END; the header, and PUT_END unless the bytes came with the header. */
static struct entries of_put(const struct job *job, size_t length)
{
	return (struct entries){1, length > job->inlined ? 2 : 1};
}

/* A put with ACK: that event, too. */
static struct entries of_acked(const struct job *job, size_t length)
{
	return (struct entries){2, length > job->inlined ? 2 : 1};
}

/* A get: the reply's header if its bytes do not come with it, and REPLY_END; the
 * request's header, and GET_END unless the reply's bytes go with its header. */
static struct entries of_get(const struct job *job, size_t length)
{
	unsigned more = length > job->inlined;
	return (struct entries){1 + more, 1 + more};
}

struct place {
	ptl_handle_ni_t ni;
	ptl_handle_md_t md;
	ptl_handle_eq_t eq;
	unsigned char *at;
};

static void take(ptl_handle_eq_t eq, ptl_event_kind_t kind)
{
	ptl_event_t ev = next_event(eq);
	CHECK_EQ(ev.type, kind);
	CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
}

enum kind { PUT, ACKED, GET, KINDS };

static void initiate(
	const struct place *p, ptl_process_id_t to, enum kind kind, size_t len)
{
	ptl_ack_req_t ack = kind == ACKED ? PTL_ACK_REQ : PTL_NO_ACK_REQ;
	if (kind == GET) {
		CHECK_OK(PtlGetRegion(p->md, 0, len, to, PT, 0, 0, 0));
		take(p->eq, PTL_EVENT_REPLY_END);
		return;
	}
	CHECK_OK(PtlPutRegion(p->md, 0, len, ack, to, PT, 0, 0, 0, 0));
	take(p->eq, PTL_EVENT_SEND_END);
	if (ack == PTL_ACK_REQ)
		take(p->eq, PTL_EVENT_ACK);
}

/* Check the numbers of entries and interrupts since `was`. */
static void check(const struct place *p, bool host, ptlx_stats_t was, uint64_t entries)
{
	ptlx_stats_t is = stats(p->ni);
	uint64_t interrupts = is.interrupts - was.interrupts;
	CHECK_EQ(is.generic_events - was.generic_events, host ? entries : 0);
	CHECK(interrupts <= (host ? entries : 0));
}

static void exchange(const struct job *job, unsigned rank, const struct place *p,
	enum kind kind, size_t length)
{
	struct entries e = kind == PUT     ? of_put(job, length)
			   : kind == ACKED ? of_acked(job, length)
					   : of_get(job, length);
	ptlx_stats_t was = stats(p->ni);
	sync_nodes();
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (rank == 0)
			initiate(p, id_of(p->ni, 1), kind, length);
		else
			take(p->eq, kind == GET ? PTL_EVENT_GET_END : PTL_EVENT_PUT_END);
	}
	check(p, job->host[rank], was, ROUNDS * (rank ? e.target : e.initiator));
	sync_nodes();
}

static struct place place_of(unsigned rank, ptl_handle_ni_t ni)
{
	struct place p = {.ni = ni, .eq = eq_new(ni, 64)};
	unsigned options = PTL_MD_EVENT_START_DISABLE;
	p.at = rank ? node_alloc(MOST) : node_pattern(MOST, 1);
	ptl_md_t md = md_of(p.at, MOST, rank ? options | MD_ANY : options, p.eq);
	p.md = rank ? post_md(ni, PT, 0, md) : bind_md(ni, md);
	return p;
}

/* Return the interrupt of this run of the program. */
static const char *interrupt_by(void)
{
	const char *how = getenv("P3_TEST_INTERRUPT");
	return how ? how : "futex";
}

static bool polls(void)
{
	return strcmp(interrupt_by(), "poll") == 0;
}

/* Let these nodes match on this side, by the interrupt of this run of the program. */
static void match_on(const char *side, size_t inlined)
{
	char text[80];
	bool host = strcmp(side, "firmware") != 0;
	snprintf(text, sizeof text, "%s/%s/inline=%zu", side, interrupt_by(), inlined);
	setenv("PTL3_MATCH", host ? text : side, 1);
}

/* A run of two nodes whose messages the host matches. */
#define HOST_CASE(name, side)                                                            \
	static nodes_fn name##_node;                                                     \
	CASE(name)                                                                       \
	{                                                                                \
		match_on(side, 12);                                                      \
		run_nodes(2, name##_node, NULL);                                         \
		unsetenv("PTL3_MATCH");                                                  \
	}                                                                                \
	static void name##_node(NODE_ARGS)

static void count_node(NODE_ARGS)
{
	const struct job *job = arg;
	struct place p = place_of(rank, ni);
	sync_nodes();
	for (int kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < LENGTHS; i++)
			exchange(job, rank, &p, (enum kind)kind, lengths[i]);
	CHECK_PATTERN(p.at, 0, MOST, 1);
	/* A host that does not poll has slept, and was interrupted. */
	CHECK(!job->host[rank] || polls() || stats(ni).interrupts > 0);
	CHECK(job->host[rank] || stats(ni).generic_events == 0);
}

static void run(struct job job)
{
	match_on(job.match, job.inlined);
	run_nodes(2, count_node, &job);
	unsetenv("PTL3_MATCH");
}

CASE(entries_of_messages_with_12_bytes_inline)
{
	run((struct job){"host", 12, {true, true}});
}

CASE(entries_of_messages_with_no_bytes_inline)
{
	run((struct job){"host", 0, {true, true}});
}

CASE(entries_of_messages_with_32_bytes_inline)
{
	run((struct job){"host", 32, {true, true}});
}

CASE(entries_of_a_generic_target)
{
	run((struct job){"host:1", 12, {false, true}});
}

CASE(entries_of_a_generic_initiator)
{
	run((struct job){"host:0", 12, {true, false}});
}

CASE(no_entries_in_accelerated_mode)
{
	run((struct job){"firmware", 12, {false, false}});
}

/* A program that only looks finds each event once its operation is complete at the other
 * end: a look waits until the host has handled all entries. */
HOST_CASE(looks_find_events_of_complete_operations, "host")
{
	struct place p = place_of(rank, ni);
	ptl_event_t ev;
	sync_nodes();
	for (unsigned i = 0; i < 200; i++) {
		if (rank == 0)
			initiate(&p, id_of(ni, 1), ACKED, lengths[i % LENGTHS]);
		sync_nodes();
		if (rank == 1) {
			CHECK_OK(PtlEQGet(p.eq, &ev));
			CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
			CHECK_RC(PtlEQGet(p.eq, &ev), PTL_EQ_EMPTY);
		}
		sync_nodes();
	}
}

/* Put once, as the NIC thread would execute the command of a program's thread. */
static void put_with_lease(
	struct p3_nic *n, ptl_handle_md_t md, ptl_process_id_t to, uint64_t hdr)
{
	struct p3_cmd c = {.op = P3_OP_PUT, .handle = md};
	c.move.target = to;
	c.move.hdr = hdr;
	c.move.length = 8;
	c.move.pt_index = PT;
	CHECK_EQ(p3_command_execute(n, &c), PTL_OK);
}

static void warm_up(const struct place *p, ptl_process_id_t to)
{
	CHECK_OK(PtlPutRegion(p->md, 0, 8, PTL_ACK_REQ, to, PT, 0, 0, 0, 0));
	take(p->eq, PTL_EVENT_SEND_START);
	take(p->eq, PTL_EVENT_SEND_END);
	take(p->eq, PTL_EVENT_ACK);
}

/* The queue has room for 512 events.  The host, which needs the lease, cannot
 * run before more of them are there. */
HOST_CASE(full_queue_loses_nothing, "host")
{
	enum { MANY = 300 };
	struct p3_nic *n = p3_nic(p3_node());
	ptl_process_id_t to = id_of(ni, 1);
	struct place p = {.ni = ni, .eq = eq_new(ni, 4 * MANY)};
	ptl_md_t none = md_of(node_alloc(8), 8, MD_ANY, PTL_EQ_NONE);
	p.md = rank ? post_md(ni, PT, 0, none)
		    : bind_md(ni, md_of(node_alloc(8), 8, 0, p.eq));
	sync_nodes();
	/* The pair gets its long lane, and the node its memory for pendings. */
	for (unsigned i = 0; rank == 0 && i < 100; i++)
		warm_up(&p, to);
	if (rank == 0) {
		nic_hold(n);
		for (unsigned i = 0; i < MANY; i++)
			put_with_lease(n, p.md, to, i);
		p3_lease_leave(n);
		CHECK(p3_nic_counter(n, P3_C_GENERIC_FULL) > 0);
		for (unsigned i = 0; i < 2 * MANY; i++) {
			ptl_event_t ev = next_event(p.eq);
			CHECK_EQ(ev.type,
				i % 2 ? PTL_EVENT_SEND_END : PTL_EVENT_SEND_START);
			CHECK_EQ(ev.hdr_data, i / 2);
		}
		expect_empty(p.eq);
	}
	sync_nodes();
}

/* ---- the lease at chosen places of a request's way ---- */

/* At node 1, with the lease: let node 0 put 1000 bytes, and take them up to the host's
 * command. */
static void take_up_to_receive(struct p3_nic *n)
{
	nic_hold(n);
	meet_nodes(); /* node 0 puts now */
	meet_nodes();
	for (unsigned i = 0; i < 10; i++)
		(void)p3_pass_run(n);
	CHECK_EQ(n->generic->upper[0].state, P3_UPPER_ASKED);
	p3_generic_handle(n);
	CHECK_EQ(n->generic->upper[0].state, P3_UPPER_RECEIVE);
}

static void put_for_node_1(const struct place *p, ptl_process_id_t to)
{
	meet_nodes();
	CHECK_OK(PtlPutRegion(p->md, 0, 1000, PTL_NO_ACK_REQ, to, PT, 0, 0, 0, 0));
	meet_nodes();
	meet_nodes();
}

/* With the lease, post a receive before the entry `mark` unless a message has come. */
static int post_receive(struct p3_nic *n, const struct place *p, ptl_handle_me_t mark)
{
	struct p3_cmd c = {.op = P3_OP_ME_ATTACH, .handle = p->ni};
	c.me = (struct p3_cmd_me){.base = mark,
		.id = anybody(),
		.position = PTL_INS_BEFORE,
		.with_md = true};
	c.md.md = md_of(p->at, MOST, MD_ANY, p->eq);
	c.md.test_eq = p->eq;
	return p3_command_execute(n, &c);
}

/* The firmware has moved the bytes of a message, and its event is on the way to the host
 * when a receive is to be posted. */
HOST_CASE(receive_is_posted_behind_staged_events, "host:1")
{
	struct place p = place_of(rank, ni);
	ptl_process_id_t to = id_of(ni, 1);
	ptl_handle_me_t mark = me_last(ni, PT, 1, 0, PTL_RETAIN);
	struct p3_nic *n = p3_nic(p3_node());
	sync_nodes();
	if (rank == 0) {
		put_for_node_1(&p, to);
		return;
	}
	take_up_to_receive(n);
	(void)p3_pass_run(n);
	CHECK_EQ(n->generic->upper[0].state, P3_UPPER_FREE);
	CHECK(p3_get(&n->generic->staged) != p3_get(&n->generic->handled));
	int rc = post_receive(n, &p, mark);
	p3_lease_leave(n);
	CHECK_EQ(rc, PTL_MD_NO_UPDATE);
	take(p.eq, PTL_EVENT_PUT_END);
	meet_nodes();
}

/* ---- a peer that changes its request while the host has it ---- */

static struct p3_nic *liar; /* node 0's */

enum change { INSANE, OTHER_LENGTH, CHANGES };

/* Change the header of the first request in node 0's lane to node 1, which has it at
 * position pos of n cells. */
static void change_header(enum change how, uint64_t pos, uint32_t n)
{
	struct p3_cell *c = &liar->peer[1].req_out.cells[pos & (n - 1)];
	uint64_t w0 = p3_get(&c->w[0]);
	if (how == INSANE) { /* too many cells */
		p3_set(&c->w[0], w0 | p3_word0(0, 0, 0xff));
		return;
	}
	/* one byte less, in as many cells */
	uint64_t w = p3_format_get(c, P3_REQUEST_PENDING);
	uint64_t length = p3_field_of(P3_EAGER_LENGTH, w);
	w ^= p3_field_in(P3_EAGER_LENGTH, length) ^
	     p3_field_in(P3_EAGER_LENGTH, length - 1);
	p3_set(&c->w[p3_field_word(P3_EAGER_LENGTH)], w);
}

/* With the lease of node 1: take the request up to the host's command, change it, and go
 * on.  The peer is lost, and its operation ends with a failure. */
static void lie_to(struct p3_nic *n, const struct place *p, enum change how)
{
	struct p3_peer *peer = &n->peer[0];
	take_up_to_receive(n);
	change_header(how, peer->req_in.pos, peer->req_in.n);
	for (unsigned i = 0; i < 10; i++)
		(void)p3_pass_run(n);
	CHECK_EQ(n->generic->upper[0].state, P3_UPPER_FREE);
	CHECK_EQ(peer->state, P3_DEAD);
	p3_lease_leave(n);
	p3_interrupt_raise(n);
	ptl_event_t ev = next_event(p->eq);
	CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
	CHECK_EQ(ev.ni_fail_type, PTL_NI_FAIL);
	CHECK_OK(PtlMDUnlink(p->md));
}

static void changed_node(NODE_ARGS)
{
	const enum change *how = arg;
	struct p3_nic *n = p3_nic(p3_node());
	struct place p = place_of(rank, ni);
	ptl_process_id_t to = id_of(ni, 1);
	if (rank == 0)
		liar = n;
	sync_nodes();
	if (rank == 1) {
		lie_to(n, &p, *how);
		meet_nodes();
		return;
	}
	put_for_node_1(&p, to);
}

CASE(requests_that_change_end_their_peer)
{
	for (enum change how = 0; how < CHANGES; how++) {
		match_on("host:1", 12);
		run_nodes_opt(
			2, changed_node, &how, &(struct nodes_opt){.bad_headers = true});
		unsetenv("PTL3_MATCH");
	}
}
