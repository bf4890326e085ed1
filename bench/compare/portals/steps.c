/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ping-pong that posts a match entry and a descriptor in each round, for one message,
 * and its steps.  They are posted before the message is sent, so none is dropped.
 */
#include "peer_portals.h"

#include <stdlib.h>

static struct steps {
	struct node *n;
	struct bench_watch sent, came;
	ptl_handle_md_t out;
	char *tx, *rx;
	uint64_t last_round;
} st;

static void post(uint64_t bytes)
{
	ptl_handle_me_t me;
	ptl_md_t md = {.start = st.rx,
		.length = bytes,
		.threshold = 1,
		.options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = st.came.eq};
	bench_check(PtlMEAttach(st.n->b.ni, PORTAL_STEPS, st.n->other, BENCH_BITS, 0,
			    PTL_UNLINK, PTL_INS_AFTER, &me),
		"PtlMEAttach");
	bench_check(PtlMDAttach(me, md, PTL_UNLINK, NULL), "PtlMDAttach");
}

static void send(uint64_t bytes, uint64_t round)
{
	peer_stamp(st.tx, bytes, round);
	node_put(st.n, st.out, 0, bytes, PORTAL_STEPS, 0, round);
}

static void wait_for_send(uint64_t round)
{
	bench_await(&st.sent, PTL_EVENT_SEND_END, round + 1);
}

/* The entry is used up, which an event of its own tells. */
static void take(uint64_t bytes, uint64_t round)
{
	bench_await(&st.came, PTL_EVENT_PUT_END, round + 1);
	bench_await(&st.came, PTL_EVENT_UNLINK, round + 1);
	peer_check(st.rx, bytes, round);
}

static void ping(uint64_t bytes, uint64_t round)
{
	peer_step(PEER_CLOCK);
	peer_step(PEER_POST);
	post(bytes);
	peer_step(PEER_SEND);
	send(bytes, round);
	peer_step(PEER_SENT);
	wait_for_send(round);
	peer_step(PEER_ANSWER);
	take(bytes, round);
	peer_step(PEER_STEPS);
}

static void pong(uint64_t bytes, uint64_t round)
{
	take(bytes, round);
	if (round < st.last_round)
		post(bytes);
	send(bytes, round);
	wait_for_send(round);
}

/* Rank 1 posts the first entry. */
static void open_steps(struct node *n, const struct peer_plan *p, uint64_t bytes)
{
	st = (struct steps){.n = n,
		.sent = {.eq = bench_queue(&n->b, 64), .may_lose = BENCH_LOSE_NONE},
		.came = {.eq = bench_queue(&n->b, 64), .may_lose = BENCH_LOSE_NONE},
		.tx = bench_allocate(bytes),
		.rx = bench_allocate(bytes),
		.last_round = peer_rounds(p) - 1};
	st.out = bench_bind(&n->b, st.tx, bytes, st.sent.eq);
	if (n->b.rank == 1)
		post(bytes);
	bench_barrier();
}

static void close_steps(void)
{
	bench_barrier();
	bench_check(PtlMDUnlink(st.out), "PtlMDUnlink");
	bench_check(PtlEQFree(st.sent.eq), "PtlEQFree");
	bench_check(PtlEQFree(st.came.eq), "PtlEQFree");
	free(st.tx);
	free(st.rx);
}

double posted_run(struct node *n, uint64_t bytes, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, bytes);
	open_steps(n, &p, bytes);
	double ns = peer_timed(&p, n->b.rank ? pong : ping, bytes) / 2;
	close_steps();
	return ns;
}

double step_run(struct node *n, uint64_t step, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, 0);
	open_steps(n, &p, 0);
	double ns = peer_step_of(&p, n->b.rank ? pong : ping, step);
	close_steps();
	return ns;
}
