/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A wire whose work is due at later times, and the thread that rings for it: a sleeping
 * node is woken by the wire's descriptor, not by short sleeps.  For the wire between
 * hosts (P3_FAR): a node asks again and again for frames that are not acknowledged.
 */
#include "nic/run/lease.h"
#include "nic/cases.h"

#include "nic/far/link.h"
#include "support/deny.h"
#include "support/hold.h"
#include "support/patience.h"
#include "support/sweep.h"

#include <sys/timerfd.h>
#include <sys/wait.h>

#define PT         3
#define BITS       1
#define MS         1000000u
#define LONGEST_NS UINT64_C(100000000000) /* longer than the sleep of any thread */
#define SOME       3u                     /* rings that are no coincidence */
#define RINGS      P3_C_WIRE_RINGS
#define NAPS       P3_C_WIRE_NAPS

static uint64_t counter(enum p3_counter c)
{
	return p3_nic_counter(nic(), c);
}

/* Wait until a counter has risen to a value. */
static void await(enum p3_counter c, uint64_t value)
{
	struct patience p = patience_begin();
	while (counter(c) < value) {
		CHECK(!patience_is_over(&p));
		/* pause: between two looks */
		sleep_ms(1);
	}
}

/* Return the queue of a target of puts with these bits. */
static ptl_handle_eq_t target(ptl_handle_ni_t ni, ptl_match_bits_t bits)
{
	ptl_handle_eq_t eq = eq_new(ni, 64);
	post_md(ni, PT, bits,
		md_of(node_alloc(8), 8, MD_ANY | PTL_MD_EVENT_START_DISABLE, eq));
	return eq;
}

static ptl_handle_md_t source(ptl_handle_ni_t ni)
{
	return bind_md(ni, md_of(node_alloc(8), 8, MD_QUIET, PTL_EQ_NONE));
}

/* Exchange a message each way, so that both nodes know each other, and let the node ask
 * every few milliseconds for frames that are not acknowledged. */
static void greet(
	unsigned rank, ptl_handle_ni_t ni, ptl_handle_md_t md, ptl_handle_eq_t eq)
{
	struct patience p = patience_begin();
	struct p3_gbn *g = NULL;
	sync_nodes();
	CHECK_OK(put_to(ni, md, 1 - rank, PT, BITS, PTL_NOACK_REQ));
	(void)expect(eq, PTL_EVENT_PUT_END);
	while (!g) { /* until the put is acknowledged: the link sets its own times then */
		CHECK(!patience_is_over(&p));
		nic_hold(nic());
		struct p3_carry *c = (struct p3_carry *)nic()->peer[1 - rank].mine;
		if (c->gbn.soon_ns) {
			g = &c->gbn;
			p3_gbn_set_pace(g, MS, MS, 16 * MS);
		}
		p3_lease_leave(nic());
		sleep_ms(1);
	}
	sync_nodes();
}

/* A node that sends, and its target, which stands still and acknowledges no frame. */
struct held {
	ptl_handle_eq_t eq;
	ptl_handle_md_t md;
};

static struct held hold_target(unsigned rank, ptl_handle_ni_t ni)
{
	struct held h = {target(ni, BITS), source(ni)};
	greet(rank, ni, h.md, h.eq);
	if (rank == 1)
		nic_hold(nic());
	sync_nodes();
	return h;
}

/* Let the target go on, which gets the one put of the sender. */
static void release_target(unsigned rank, const struct held *h)
{
	sync_nodes();
	if (rank == 1) {
		p3_lease_leave(nic());
		(void)expect(h->eq, PTL_EVENT_PUT_END);
	}
	sync_nodes();
}

/* ---- the descriptor ---- */

/* Sleep as a thread does that waits for messages: arm the word, run a pass, give up the
 * lease.  Return false if no thread has woken this one. */
static bool sleep_once(uint64_t ns)
{
	nic_hold(nic());
	p3_set(nic()->asleep, P3_ASLEEP_HOST);
	(void)p3_pass_run(nic());
	p3_lease_leave(nic());
	bool woken =
		p3_futex_wait(nic()->asleep, P3_ASLEEP_HOST, ns, P3_ASLEEP_HOST, true);
	p3_set(nic()->asleep, P3_AWAKE);
	return woken;
}

/* While the target stands still, frames to it wake the sender again and again.  A sleep
 * may also end at once, because the wire already needs the next pass. */
NODES_CASE(a_sleeper_is_rung_for_frames_without_acknowledgement, 2)
{
	struct held h = hold_target(rank, ni);
	if (rank == 0) {
		uint64_t before = counter(RINGS);
		CHECK_OK(put_to(ni, h.md, 1, PT, BITS, PTL_NOACK_REQ));
		while (counter(RINGS) < before + SOME)
			CHECK(sleep_once(LONGEST_NS));
	}
	release_target(rank, &h);
}

/* Once all frames are acknowledged, and late ones have come, a node sleeps until the next
 * message. */
NODES_CASE(nothing_rings_when_all_is_acknowledged, 2)
{
	ptl_handle_eq_t eq = target(ni, BITS);
	greet(rank, ni, source(ni), eq);
	struct patience p = patience_begin();
	while (sleep_once(100ull * MS))
		CHECK(!patience_is_over(&p));
	sync_nodes();
}

/* ---- the sleepers ---- */

/* The NIC thread sleeps when its program sends and then computes. */
NODES_CASE(the_nic_thread_is_rung_while_its_program_computes, 2)
{
	struct held h = hold_target(rank, ni);
	if (rank == 0) {
		uint64_t sent = counter(P3_C_FAR_OUT);
		await(P3_G_NIC_ASLEEP, 1);
		uint64_t before = counter(RINGS);
		CHECK_OK(put_to(ni, h.md, 1, PT, BITS, PTL_NOACK_REQ));
		await(P3_C_FAR_OUT, sent + 4 * SOME);
		await(RINGS, before + SOME);
		CHECK_EQ(counter(NAPS), 0);
	}
	release_target(rank, &h);
}

/* The thread of a program that waits is rung, and so is the NIC thread after it: the one
 * that wakes first hands the doorbell over. */
NODES_CASE(a_waiting_program_is_rung_and_then_its_nic_thread, 2)
{
	ptl_event_t ev;
	int which;
	ptl_handle_eq_t none = eq_new(ni, 4);
	struct held h = hold_target(rank, ni);
	if (rank == 0) {
		uint64_t sent = counter(P3_C_FAR_OUT), before;
		CHECK_OK(put_to(ni, h.md, 1, PT, BITS, PTL_NOACK_REQ));
		for (before = counter(RINGS); counter(RINGS) < before + SOME;
			sent = counter(P3_C_FAR_OUT))
			CHECK_RC(PtlEQPoll(&none, 1, 100, &ev, &which), PTL_EQ_EMPTY);
		before = counter(RINGS);
		await(P3_C_FAR_OUT, sent + 4 * SOME);
		await(RINGS, before + SOME);
		CHECK_EQ(counter(NAPS), 0);
	}
	release_target(rank, &h);
}

/* ---- counts ---- */

static ptl_handle_eq_t awaited;

static void wait_for_event(void *arg)
{
	(void)arg;
	(void)expect(awaited, PTL_EVENT_PUT_END);
}

/* Counters of this node, read while both of its threads sleep. */
struct tally {
	uint64_t passes, rings, frames;
	uint64_t holds; /* of the lease, by the NIC thread */
};

/* Return true if both threads sleep and the lease is free: no thread runs a pass until
 * the doorbell's word changes. */
static bool both_sleep(void)
{
	return p3_get(&nic()->watcher) && counter(P3_G_NIC_ASLEEP) &&
	       p3_lease_held_by(&nic()->lease) == P3_LEASE_FREE &&
	       p3_get(nic()->asleep) != P3_AWAKE;
}

/* Wait until both threads sleep, and take the counts of that moment. */
static struct tally tally_asleep(void)
{
	struct patience p = patience_begin();
	for (;;) {
		CHECK(!patience_is_over(&p));
		bool asleep = both_sleep();
		struct tally t = {counter(P3_C_PASSES), counter(RINGS),
			counter(P3_C_FAR_OUT), counter(P3_C_LEASE_NIC)};
		p3_fence();
		if (asleep && both_sleep() && counter(P3_C_PASSES) == t.passes)
			return t;
		/* pause: between two looks */
		sleep_ms(1);
	}
}

/* Wait for a ring that leaves the NIC thread asleep.  Return true if it and the frames
 * since have cost three passes each at most. */
static bool ring_is_cheap(void)
{
	struct patience p = patience_begin();
	struct tally was, is;
	do {
		CHECK(!patience_is_over(&p));
		was = tally_asleep();
		await(RINGS, was.rings + 1);
		is = tally_asleep();
	} while (is.holds != was.holds);
	uint64_t causes = is.rings - was.rings + is.frames - was.frames;
	return is.passes - was.passes <= 3 * causes;
}

/* While both threads of a node sleep, each ring costs one of them two passes: one that
 * does the work, and the last one before it sleeps again.  On a busy machine that thread
 * may still be awake when the next frame is due: it spins or yields after that one, or
 * its NIC thread is rung.  If it did so after each ring, no ring would be cheap. */
NODES_CASE(a_ring_costs_few_passes, 2)
{
	struct held h = hold_target(rank, ni);
	if (rank == 0) {
		unsigned cheap = 0;
		awaited = h.eq;
		struct side *side = side_start(wait_for_event, NULL);
		CHECK_OK(put_to(ni, h.md, 1, PT, BITS, PTL_NOACK_REQ));
		for (unsigned i = 0; i < 10 * SOME; i++)
			cheap += ring_is_cheap();
		CHECK(cheap > 5 * SOME);
		CHECK_EQ(counter(NAPS), 0);
		sync_nodes();
		side_join(side);
	} else {
		sync_nodes();
		p3_lease_leave(nic());
		(void)expect(h.eq, PTL_EVENT_PUT_END);
		CHECK_OK(put_to(ni, h.md, 0, PT, BITS, PTL_NOACK_REQ));
	}
	sync_nodes();
}

static p3_a32 enough[2]; /* by node: it was rung often */

/* Messages to and fro; many frames are late or lost.  Nodes that always sleep are rung
 * for some of them, unless a frame comes before its receiver sleeps. */
NODES_CASE(no_sleep_is_short_because_frames_are_late, 2)
{
	const char *mode = getenv("PTL3_MODE");
	bool park = mode && !strcmp(mode, "park");
	const unsigned n = rounds(200);
	ptl_handle_eq_t eq = target(ni, BITS);
	ptl_handle_md_t md = source(ni);
	greet(rank, ni, md, eq);
	struct patience p = patience_begin();
	uint64_t before = counter(RINGS);
	do {
		CHECK(!patience_is_over(&p));
		for (unsigned i = 0; i < n; i++) {
			if (rank == i % 2)
				CHECK_OK(put_to(
					ni, md, 1 - rank, PT, BITS, PTL_NOACK_REQ));
			else
				(void)expect(eq, PTL_EVENT_PUT_END);
		}
		p3_set(&enough[rank], !park || counter(RINGS) > before + n / 10);
		sync_nodes();
	} while (!p3_get(&enough[0]) || !p3_get(&enough[1]));
	CHECK_EQ(counter(NAPS), 0);
	sync_nodes();
}

/* ---- a thread or a descriptor that is not there ---- */

/* Node 0 acts, beside a target on another host. */
struct pair {
	struct gate *begun, *over;
	void (*act)(void);
};

/* Send a message, and wait until it is acknowledged. */
static void send_one(ptl_handle_ni_t ni, ptl_handle_md_t md, ptl_handle_eq_t eq)
{
	CHECK_OK(put_to(ni, md, 1, PT, BITS, PTL_ACK_REQ));
	(void)expect(eq, PTL_EVENT_ACK);
}

/* Send until this thread, which sleeps whenever it waits, has taken short sleeps. */
static void send_with_naps(ptl_handle_ni_t ni, ptl_handle_md_t md, ptl_handle_eq_t eq)
{
	struct patience p = patience_begin();
	nic_hold(nic());
	nic()->idle = (struct p3_idle_policy){0, 0};
	p3_lease_leave(nic());
	while (!counter(NAPS)) {
		CHECK(!patience_is_over(&p));
		send_one(ni, md, eq);
	}
}

/* Return a descriptor whose only events are ACKs. */
static ptl_handle_md_t acked(ptl_handle_ni_t ni, ptl_handle_eq_t eq)
{
	return bind_md(ni, md_of(node_alloc(8), 8, MD_QUIET, eq));
}

static void pair_node(unsigned rank, unsigned size, ptl_handle_ni_t ni, void *arg)
{
	(void)size;
	(void)ni;
	struct pair *p = arg;
	if (rank == 1) /* first: the descriptors of node 0 have the highest numbers */
		post_md(node_ni(), PT, BITS,
			md_of(node_alloc(8), 8, MD_ANY | MD_QUIET, PTL_EQ_NONE));
	gate_wait(p->begun);
	if (rank == 0)
		p->act();
	gate_wait(p->over);
}

static void run_pair(void (*act)(void))
{
	const struct nodes_opt by_hand = {.no_ni = true};
	struct pair p = {gate_new(2), gate_new(2), act};
	run_nodes_opt(2, pair_node, &p, &by_hand);
	gate_free(p.begun);
	gate_free(p.over);
}

#ifndef __SANITIZE_THREAD__ /* it reports files that the program closes as a race */
/* A program closes one of the descriptors, and its next file gets the number. */
static void lose_one(const char *kind)
{
	struct sweep s = {.n = 0};
	ptl_handle_ni_t ni = node_ni();
	ptl_handle_eq_t eq = eq_new(ni, 64);
	ptl_handle_md_t md = acked(ni, eq);
	send_one(ni, md, eq);
	CHECK(p3_wire_thread_serves(nic()));
	CHECK(sweep_one(&s, kind));
	send_with_naps(ni, md, eq);
	CHECK(!p3_wire_thread_serves(nic()));
	CHECK_OK(PtlNIFini(ni));
	CHECK(sweep_touched(&s) < 0);
	for (unsigned i = 0; i < 2; i++)
		close(s.pipe[0][i]);
}

/* The number of the wire's timer becomes a timer of the program. */
static void lose_timer_to_timer(void)
{
	struct itimerspec left = {{0, 0}, {1000000, 0}};
	ptl_handle_ni_t ni = node_ni();
	ptl_handle_eq_t eq = eq_new(ni, 64);
	int fd = sweep_find("[timerfd]"), own = timerfd_create(CLOCK_MONOTONIC, 0);
	CHECK(p3_wire_thread_serves(nic()));
	CHECK(fd >= 0 && timerfd_settime(own, 0, &left, NULL) == 0);
	CHECK(dup2(own, fd) == fd);
	send_with_naps(ni, acked(ni, eq), eq);
	CHECK_OK(PtlNIFini(ni));
	CHECK(timerfd_gettime(fd, &left) == 0 && left.it_value.tv_sec > 900000);
	close(own);
	close(fd);
}

static void lose_each(void)
{
	const char *kinds[] = {"[timerfd]", "[eventpoll]", "[eventfd]"};
	for (unsigned i = 0; i < 3; i++)
		lose_one(kinds[i]);
	lose_timer_to_timer();
	ptl_handle_ni_t ni = node_ni();
	ptl_handle_eq_t eq = eq_new(ni, 64);
	send_one(ni, acked(ni, eq), eq);
	CHECK(p3_wire_thread_serves(nic()));
}

CASE(a_program_that_closes_descriptors_goes_on)
{
	run_pair(lose_each);
}
#endif

/* ---- fork ---- */

/* Return the number of descriptors of a kind. */
static unsigned count_files(const char *kind)
{
	char path[40], file[80];
	unsigned n = 0;
	for (int fd = 0; fd < 1024; fd++) {
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t len = readlink(path, file, sizeof file - 1);
		file[len > 0 ? len : 0] = '\0';
		n += strstr(file, kind) != NULL;
	}
	return n;
}

/* In the child, whose PtlInit forgets the parent's node: return true if it closes the
 * sets of descriptors of that node's wire and of the wire's thread, and no others. */
static bool child_is_clean(ptl_handle_ni_t ni)
{
	int most;
	ptl_sr_value_t value;
	unsigned sets = count_files("[eventpoll]");
	int rc = PtlNIStatus(ni, PTL_SR_DROP_COUNT, &value);
	(void)PtlInit(&most);
	unsigned left = count_files("[eventpoll]");
	fprintf(stderr, "# child: %s, sets %u to %u\n", PtlErrorStr((unsigned)rc), sets,
		left);
	return rc == PTL_NO_INIT && left + 2 == sets;
}

/* Neither a child that forgets its parent's node nor one that still has the descriptors
 * keeps the thread from ringing. */
NODES_CASE(a_forked_child_leaves_the_descriptors_alone, 2)
{
	struct held h = hold_target(rank, ni);
	for (unsigned i = 0; i < 2 && rank == 0; i++) {
		int status = -1, hold[2];
		CHECK(pipe(hold) == 0);
		if (i == 0)
			CHECK_OK(put_to(ni, h.md, 1, PT, BITS, PTL_NOACK_REQ));
		pid_t child = fork();
		CHECK(child >= 0);
		if (!child) { /* wait with or without the descriptors */
			bool clean = i || child_is_clean(ni);
			close(hold[1]);
			_exit(!clean || read(hold[0], &clean, 1) != 0);
		}
		await(RINGS, counter(RINGS) + SOME);
		close(hold[0]);
		close(hold[1]);
		CHECK(waitpid(child, &status, 0) == child && status == 0);
		await(RINGS, counter(RINGS) + SOME);
	}
	CHECK_EQ(counter(NAPS), 0);
	release_target(rank, &h);
}

/* A filter of system calls refuses the wire's descriptor, for the rest of the process. */
static void start_denied(void)
{
	CHECK(deny_call(SYS_timerfd_create));
	ptl_handle_ni_t ni = node_ni();
	ptl_handle_eq_t eq = eq_new(ni, 64);
	CHECK(!p3_wire_thread_serves(nic()));
	send_with_naps(ni, acked(ni, eq), eq);
	CHECK_EQ(counter(RINGS), 0);
}

/* The last case: the process stays without permission. */
CASE(a_node_without_descriptor_looks_at_the_wire_itself)
{
	run_pair(start_denied);
}
