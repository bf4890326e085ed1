/* SPDX-License-Identifier: BSD-3-Clause */
/* A ping-pong whose events come into the last of several queues that PtlEQPoll reads. */
#include "peer_portals.h"

#include <stdlib.h>

static struct queues {
	struct node *n;
	int count;
	ptl_handle_eq_t eq[PORTAL_MOST];
	ptl_handle_me_t me[PORTAL_MOST];
	ptl_handle_md_t out;
	char *tx, *rx;
} qs;

static void send(uint64_t bytes, uint64_t round)
{
	peer_stamp(qs.tx, bytes, round);
	node_put(qs.n, qs.out, 0, bytes, (ptl_pt_index_t)(PORTAL_QUEUES + qs.count - 1),
		0, round);
}

static void take(uint64_t round)
{
	ptl_event_t ev;
	int which, rc = PtlEQPoll(qs.eq, qs.count, PTL_TIME_FOREVER, &ev, &which);
	if (__builtin_expect(rc != PTL_OK, 0))
		bench_check(rc, "PtlEQPoll");
	if (which != qs.count - 1 || ev.type != PTL_EVENT_PUT_END || ev.hdr_data != round)
		peer_die("%s %llu in queue %d; expected PUT_END %llu in queue %d",
			PtlEventKindStr(ev.type), (unsigned long long)ev.hdr_data, which,
			(unsigned long long)round, qs.count - 1);
	peer_check(qs.rx, PEER_WORD, round);
}

static void round_trip(uint64_t bytes, uint64_t round)
{
	if (qs.n->b.rank == 0)
		send(bytes, round);
	take(round);
	if (qs.n->b.rank == 1)
		send(bytes, round);
}

static void open_queues(struct node *n, int count)
{
	qs = (struct queues){.n = n,
		.count = count,
		.tx = bench_allocate(PEER_WORD),
		.rx = bench_allocate(PEER_WORD)};
	qs.out = bench_bind(&n->b, qs.tx, PEER_WORD, PTL_EQ_NONE);
	for (int i = 0; i < count; i++) {
		qs.eq[i] = bench_queue(&n->b, 64);
		qs.me[i] = bench_post(&n->b, (ptl_pt_index_t)(PORTAL_QUEUES + i),
			BENCH_BITS, PTL_MD_OP_PUT, qs.rx, PEER_WORD, qs.eq[i]);
	}
	bench_barrier();
}

static void close_queues(void)
{
	bench_barrier();
	bench_check(PtlMDUnlink(qs.out), "PtlMDUnlink");
	for (int i = 0; i < qs.count; i++) {
		bench_check(PtlMEUnlink(qs.me[i]), "PtlMEUnlink");
		bench_check(PtlEQFree(qs.eq[i]), "PtlEQFree");
	}
	free(qs.tx);
	free(qs.rx);
}

double queues_run(struct node *n, uint64_t queues, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, PEER_WORD);
	if (queues < 1 || queues > PORTAL_MOST)
		peer_die("queues=%llu: expected 1 to %d", (unsigned long long)queues,
			PORTAL_MOST);
	open_queues(n, (int)queues);
	double ns = peer_timed(&p, round_trip, PEER_WORD) / 2;
	close_queues();
	return ns;
}
