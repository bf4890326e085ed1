/* SPDX-License-Identifier: BSD-3-Clause */
/* Several threads of a node at a time, each with descriptors and a queue of its own. */
#include "peer_portals.h"

#include <pthread.h>
#include <stdlib.h>

static struct thread {
	struct node *n;
	unsigned number;
	pthread_t id;
	struct bench_watch w;
	ptl_handle_md_t out, note;
	ptl_handle_me_t me;
	uint64_t *tx, *rx;
	double begin, end;
} thread[PORTAL_MOST];

static struct peer_plan plan;
static pthread_barrier_t start;

/* ---- a thread; windows are those of portalperf's rate ---- */

static ptl_pt_index_t portal_of(const struct thread *t)
{
	return PORTAL_THREADS + t->number;
}

static void send_window(struct thread *t, uint64_t round)
{
	for (uint64_t i = 0; i < PEER_WINDOW; i++) {
		node_put(t->n, t->out, i * PEER_WORD, PEER_WORD, portal_of(t),
			i * PEER_WORD, round);
	}
	bench_await(&t->w, PTL_EVENT_SEND_END, (round + 1) * PEER_WINDOW);
	bench_await(&t->w, PTL_EVENT_PUT_END, round + 1);
}

static void take_window(struct thread *t, uint64_t round)
{
	bench_await(&t->w, PTL_EVENT_PUT_END, (round + 1) * PEER_WINDOW);
	for (uint64_t i = 0; i < PEER_WINDOW; i++)
		peer_check((char *)&t->rx[i], PEER_WORD, round + i);
	node_put(t->n, t->note, 0, 0, portal_of(t), 0, round);
}

static void window(struct thread *t, uint64_t round)
{
	for (uint64_t i = 0; t->n->b.rank == 0 && i < PEER_WINDOW; i++)
		t->tx[i] = round + i;
	if (t->n->b.rank == 0)
		send_window(t, round);
	else
		take_window(t, round);
}

static void *run(void *arg)
{
	struct thread *t = arg;
	uint64_t round = 0, rounds = plan.batches * plan.each;
	while (round < plan.warm)
		window(t, round++);
	pthread_barrier_wait(&start);
	t->begin = peer_now_ns();
	while (round < plan.warm + rounds)
		window(t, round++);
	t->end = peer_now_ns();
	return NULL;
}

/* ---- */

static void open_thread(struct node *n, unsigned number)
{
	struct thread *t = &thread[number];
	uint64_t bytes = PEER_WINDOW * PEER_WORD;
	*t = (struct thread){.n = n,
		.number = number,
		.tx = bench_allocate(bytes),
		.rx = bench_allocate(bytes)};
	t->w.eq = bench_queue(&n->b, 4 * PEER_WINDOW);
	bench_watch_reset(&t->w, BENCH_LOSE_NONE);
	t->out = bench_bind(&n->b, t->tx, bytes, t->w.eq);
	t->note = bench_bind(&n->b, NULL, 0, PTL_EQ_NONE);
	t->me = bench_post(
		&n->b, portal_of(t), BENCH_BITS, PTL_MD_OP_PUT, t->rx, bytes, t->w.eq);
}

static void close_thread(struct thread *t)
{
	bench_check(PtlMDUnlink(t->out), "PtlMDUnlink");
	bench_check(PtlMDUnlink(t->note), "PtlMDUnlink");
	bench_check(PtlMEUnlink(t->me), "PtlMEUnlink");
	bench_check(PtlEQFree(t->w.eq), "PtlEQFree");
	free(t->tx);
	free(t->rx);
}

/* Return the time from the first thread's start to the last one's end. */
static double run_all(unsigned count)
{
	double begin = 0, end = 0;
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&thread[i].id, NULL, run, &thread[i]) != 0)
			peer_die("no thread %u; expected that %u can be made", i, count);
	for (unsigned i = 0; i < count; i++) {
		pthread_join(thread[i].id, NULL);
		begin = i && begin < thread[i].begin ? begin : thread[i].begin;
		end = end > thread[i].end ? end : thread[i].end;
	}
	return end - begin;
}

double threads_run(struct node *n, uint64_t threads, bool quick)
{
	unsigned count = (unsigned)threads;
	if (threads < 1 || threads > PORTAL_MOST)
		peer_die("threads=%llu: expected 1 to %d", (unsigned long long)threads,
			PORTAL_MOST);
	plan = peer_plan_of(quick, true, PEER_WORD);
	pthread_barrier_init(&start, NULL, count);
	for (unsigned i = 0; i < count; i++)
		open_thread(n, i);
	bench_barrier();
	double ns = run_all(count);
	bench_barrier();
	for (unsigned i = 0; i < count; i++)
		close_thread(&thread[i]);
	pthread_barrier_destroy(&start);
	return (double)(plan.batches * plan.each * PEER_WINDOW * count) * 1e3 / ns;
}
