/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire between hosts (nic/far/), with the firmware of each node, over an endpoint in
 * this process: strangers, broken connections, a stopped node, and a node with peers on
 * both wires.
 */
#include "nic/cases.h"

#include "far/loop.h"
#include "nic/far/link.h"
#include "nic/run/lease.h"
#include "support/hold.h"
#include "support/patience.h"

#include <errno.h>
#include <stdio.h>

#define PT  5
#define LEN 3000u

static uint64_t counter(enum p3_counter c)
{
	return p3_nic_counter(nic(), c);
}

static void set_faults(uint32_t reset, uint32_t stranger, uint32_t old)
{
	const uint32_t ppm[LOOP_FAULTS] = {
		[LOOP_RESET] = reset, [LOOP_STRANGER] = stranger, [LOOP_OLD] = old};
	loop_set(ppm, 7);
}

/* ---- traffic: each node sends n messages to each other one, in order ---- */

struct traffic {
	unsigned places; /* of a sender's messages */
	unsigned n, rank, size;
	ptl_handle_eq_t in, out;
	ptl_handle_md_t md;
	unsigned sent[NODES_MAX], got[NODES_MAX], ended;
};

#define AHEAD  24u
#define PLACES 64u /* of a sender's messages, at least */

static struct traffic *traffic_new(
	unsigned n, unsigned rank, unsigned size, ptl_handle_ni_t ni)
{
	struct traffic *t = (void *)node_alloc(sizeof *t);
	*t = (struct traffic){.n = n, .rank = rank, .size = size};
	t->places = n > PLACES ? n : PLACES;
	t->in = eq_new(ni, 4096);
	t->out = eq_new(ni, 4096);
	unsigned quiet = PTL_MD_EVENT_START_DISABLE;
	for (unsigned from = 0; from < size; from++)
		post_md(ni, PT, from,
			md_of(node_alloc(t->places * LEN), t->places * LEN,
				MD_ANY | quiet | PTL_MD_MANAGE_REMOTE, t->in));
	t->md = bind_md(ni, md_of(node_pattern(LEN, rank), LEN, quiet, t->out));
	return t;
}

static size_t length_of(unsigned i)
{
	return i * 131 % LEN;
}

static void took(struct traffic *t, const ptl_event_t *ev)
{
	unsigned from = (unsigned)ev->match_bits;
	CHECK_EQ(ev->ni_fail_type, PTL_NI_OK);
	CHECK_EQ(ev->hdr_data, t->got[from]);
	CHECK_EQ(ev->mlength, length_of(t->got[from]++));
	CHECK_PATTERN((char *)ev->md.start + ev->offset, 0, ev->mlength, from);
}

static void look(struct traffic *t)
{
	ptl_event_t ev;
	errno = EILSEQ; /* no function changes it */
	while (PtlEQGet(t->in, &ev) == PTL_OK)
		took(t, &ev);
	while (PtlEQGet(t->out, &ev) == PTL_OK) {
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		t->ended++;
	}
	CHECK_EQ(errno, EILSEQ);
}

static unsigned sum(const unsigned *a)
{
	unsigned s = 0;
	for (unsigned i = 0; i < NODES_MAX; i++)
		s += a[i];
	return s;
}

/* Send and receive until all is through.  Neither node of a pair is more than AHEAD
 * messages ahead of what it has got, so a message comes to a place whose last one was
 * compared. */
static void exchange(struct traffic *t, ptl_handle_ni_t ni)
{
	unsigned all = t->n * (t->size - 1);
	struct patience p = patience_begin();
	while (sum(t->got) < all || t->ended < 2 * all) {
		CHECK(!patience_is_over(&p));
		for (unsigned to = 0; to < t->size; to++) {
			unsigned i = t->sent[to];
			if (to == t->rank || i == t->n || i > t->got[to] + AHEAD ||
				2 * sum(t->sent) > t->ended + 200)
				continue;
			errno = EILSEQ;
			CHECK_OK(PtlPutRegion(t->md, 0, length_of(i), PTL_ACK_REQ,
				id_of(ni, to), PT, 0, t->rank, i % t->places * LEN, i));
			CHECK_EQ(errno, EILSEQ);
			t->sent[to]++;
		}
		look(t);
	}
}

/* ---- as much traffic as it takes ---- */

/* Return true if a node wants that all go on.  The number of frames that carry some
 * messages depends on the scheduler, and so does the number of faults. */
static bool any_wants(bool want)
{
	static p3_a32 wanted;
	sync_nodes();
	p3_set(&wanted, 0);
	sync_nodes();
	if (want)
		p3_set(&wanted, 1);
	sync_nodes();
	return p3_get(&wanted);
}

/* Exchange n messages of each node, again and again until all have enough. */
static void exchange_until(
	struct traffic *t, ptl_handle_ni_t ni, unsigned n, bool (*is_enough)(void))
{
	struct patience p = patience_times(2);
	do {
		t->n += n;
		exchange(t, ni);
		CHECK(!patience_is_over(&p));
	} while (any_wants(!is_enough()));
}

/* ---- strangers ---- */

static bool enough_strangers(void)
{
	struct loop_counts c = loop_counts();
	return counter(P3_C_FAR_BAD_SUMS) > rounds(30) && c.faults[LOOP_STRANGER] > 60 &&
	       c.faults[LOOP_OLD] > 20;
}

static void among_strangers(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)arg;
	struct traffic *t = traffic_new(0, rank, size, ni);
	sync_nodes();
	exchange_until(t, ni, rounds(300), enough_strangers);
	sync_nodes();
	CHECK_EQ(drops_of(ni), 0);
	CHECK(counter(P3_C_FAR_BAD_SUMS) > rounds(30)); /* a frame has many messages */
	CHECK(counter(P3_C_FAR_IN) > 0 && counter(P3_C_FAR_OUT) > 0);
}

/* A frame of a stranger comes with each frame of the peer, and half of them once more. */
CASE(strangers_and_old_frames_change_nothing)
{
	set_faults(0, 1000000, 500000);
	run_nodes(2, among_strangers, NULL);
	struct loop_counts c = loop_counts();
	assert_true(c.faults[LOOP_STRANGER] > 60 && c.faults[LOOP_OLD] > 20);
}

/* The wire has a descriptor for the threads that sleep, and its thread rings for it. */
static void called_early(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)arg;
	CHECK(p3_wire_thread_serves(nic()));
	struct traffic *t = traffic_new(rounds(20), rank, size, ni);
	sync_nodes();
	exchange(t, ni);
	CHECK_EQ(counter(P3_C_FAR_STRANGERS), 1);
	CHECK_EQ(p3_nic_counter(nic(), P3_C_WIRE_NAPS), 0);
	CHECK(p3_wire_thread_serves(nic()));
	sync_nodes();
}

/* A program that calls the port of a node while that starts has no effect later. */
CASE(a_stranger_calls_before_a_node_is_ready)
{
	set_faults(0, 0, 0);
	loop_call_early(true);
	run_nodes(2, called_early, NULL);
	loop_call_early(false);
}

/* ---- broken connections ---- */

static bool enough_resets(void)
{
	struct loop_counts c = loop_counts();
	return c.faults[LOOP_RESET] > 10 && c.failed > 10 && c.kept > 3;
}

static void among_resets(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)arg;
	struct traffic *t = traffic_new(0, rank, size, ni);
	sync_nodes();
	exchange_until(t, ni, rounds(1000), enough_resets);
	sync_nodes();
	CHECK_EQ(drops_of(ni), 0);
}

CASE(broken_connections_lose_nothing)
{
	set_faults(20000, 0, 0);
	run_nodes(3, among_resets, NULL);
	assert_true(enough_resets());
}

/* ---- a stopped node ---- */

struct stop {
	struct gate *stopped, *full, *over;
};

/* Put until there is no room any more, or until many puts wait. */
static void fill_up(struct traffic *t, ptl_handle_ni_t ni)
{
	int rc = PTL_OK;
	while (rc == PTL_OK && t->sent[0] < t->n) {
		unsigned i = t->sent[0];
		rc = PtlPutRegion(t->md, 0, length_of(i), PTL_ACK_REQ, id_of(ni, 0), PT,
			0, t->rank, i % t->places * LEN, i);
		t->sent[0] += rc == PTL_OK;
		look(t);
	}
	CHECK(rc == PTL_OK || rc == PTL_NO_SPACE);
}

static void drain_all(struct traffic *t)
{
	unsigned most = 2 * t->sent[0];
	struct patience p = patience_begin();
	while (t->ended < most) {
		CHECK(!patience_is_over(&p));
		look(t);
	}
}

static void stopped_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	struct stop *s = arg;
	struct traffic *t = traffic_new(rounds(1000), rank, size, ni);
	sync_nodes();
	if (rank == 0) {
		nic_hold(nic());
		gate_wait(s->stopped);
		gate_wait(s->full);
		sleep_ms(1500); /* pause: the senders ask again and again meanwhile */
		p3_lease_leave(nic());
		gate_wait(s->over);
	} else {
		gate_wait(s->stopped);
		fill_up(t, ni);
		gate_wait(s->full);
		gate_wait(s->over);
	}
	struct patience p = patience_begin();
	while (rank == 0 && sum(t->got) < (size - 1) * t->n) {
		CHECK(!patience_is_over(&p));
		look(t);
	}
	if (rank)
		drain_all(t);
	sync_nodes();
	CHECK_EQ(drops_of(ni), 0);
}

/* Frames for a node that does not poll wait in the medium: no more of them than the node
 * has promised room for, and a few that ask, sooner at first.  Nothing is lost. */
CASE(a_stopped_node_finds_few_frames)
{
	uint64_t since = p3_now_ns();
	struct stop s = {gate_new(6), gate_new(6), gate_new(6)};
	set_faults(0, 0, 0);
	run_nodes(6, stopped_node, &s);
	struct loop_counts c = loop_counts();
	print_message("# at most %u frames waited\n", c.most_waiting);
	assert_true(c.most_waiting > 5);
	uint64_t asked = 5 * (16 + (p3_now_ns() - since) / P3_FAR_RESEND_MOST);
	assert_true(c.most_waiting <= P3_FAR_PROMISED + 5 * P3_FAR_FIRST + asked);
	gate_free(s.stopped);
	gate_free(s.full);
	gate_free(s.over);
}

/* ---- both wires at once ---- */

static unsigned count_peers(const struct p3_wire *wire)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < nic()->conf.nnodes; i++)
		n += i != nic()->conf.node && nic()->peer[i].wire == wire;
	return n;
}

static bool enough_drops(void)
{
	return loop_counts().faults[LOOP_DROP] > 0 && counter(P3_C_FAR_IN) > 0 &&
	       counter(P3_C_FAR_OUT) > 0;
}

static void both_wires(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)arg;
	struct traffic *t = traffic_new(0, rank, size, ni);
	CHECK_EQ(count_peers(&p3_wire_shm), 1);
	CHECK_EQ(count_peers(&p3_wire_far), 4);
	sync_nodes();
	exchange_until(t, ni, rounds(300), enough_drops);
	sync_nodes();
}

/* Three hosts with two nodes each: near and far. */
CASE(a_node_has_peers_on_both_wires)
{
	set_faults(0, 0, 0);
	setenv("P3_FAR", "2,drop=10000", 1);
	run_nodes(6, both_wires, NULL);
	setenv("P3_FAR", "1", 1);
	assert_true(loop_counts().came > 0);
}

/* ---- memory ---- */

static void lone_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)arg;
	struct traffic *t = traffic_new(1, rank, size, ni);
	struct p3_nic *n = nic();
	sync_nodes();
	exchange(t, ni);
	CHECK_EQ(n->peer[rank].wire == &p3_wire_shm, true);
	CHECK_EQ(n->peer[1 - rank].cma_off, true);
	CHECK_EQ(n->peer[1 - rank].heap.base == NULL, true);
	sync_nodes();
}

/* No memory of a node on another host is read or mapped. */
CASE(nothing_of_another_host_is_mapped)
{
	set_faults(0, 0, 0);
	run_nodes(2, lone_node, NULL);
}

int main(void)
{
	setenv("P3_FAR", "1", 1); /* each node on a host of its own */
	return cases_run();
}
