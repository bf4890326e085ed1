/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads - several threads of a node at a time
 *
 *	yod -sz 2 threads [options]
 *
 * For each thread a ball of 8 bytes goes to and fro between the two ranks; hdr_data is
 * the number of remaining throws.  Each thread has a queue and a ball of its own; with
 * --one-queue all threads of a rank read one queue, and the thread that takes a ball
 * throws it back.
 */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PORTAL = 4, MOST_THREADS = 16, WAIT_MS = 10 };

struct program {
	struct bench b;
	struct bench_number threads, rounds;
	bool one_queue;
	ptl_process_id_t other;
	ptl_handle_md_t out;
	ptl_handle_eq_t eq[MOST_THREADS];
	uint64_t *ball, *slot;
	atomic_ullong caught;
	uint64_t due; /* catches that this rank still has to make */
};

static const char about[] = "usage: yod -sz 2 threads [options]\n"
			    "Several threads of each node throw 8-byte messages to and "
			    "fro.\n";

static struct program program = {.b = {.program = "threads", .about = about},
	.threads = {2, 1, MOST_THREADS},
	.rounds = {100000, 1, 1000000000}};

static void throw(struct program * p, uint64_t ball, uint64_t hops)
{
	int rc = PtlPutRegion(p->out, ball * 8, 8, PTL_NO_ACK_REQ, p->other,
		PORTAL + (ptl_pt_index_t)ball, 0, BENCH_BITS, ball * 8, hops);
	bench_check(rc, "PtlPutRegion");
}

static void caught(struct program *p, const ptl_event_t *ev)
{
	uint64_t ball = ev->offset / 8, hops = ev->hdr_data;
	if (p->slot[ball] != ball + 1)
		bench_wrong(&p->b, "ball %llu carries %llu; the library damages data",
			(unsigned long long)ball, (unsigned long long)p->slot[ball]);
	if (hops > 1)
		throw(p, ball, hops - 1);
	atomic_fetch_add(&p->caught, 1);
}

static void *play(void *arg)
{
	struct program *p = &program;
	ptl_handle_eq_t *eq = arg;
	while (atomic_load(&p->caught) < p->due) {
		ptl_event_t ev;
		int which, rc = PtlEQPoll(eq, 1, WAIT_MS, &ev, &which);
		if (rc == PTL_EQ_EMPTY)
			continue;
		bench_check(rc, "PtlEQPoll");
		caught(p, &ev);
	}
	return NULL;
}

/* ---- */

static void open_node(struct program *p)
{
	p->other = bench_id(&p->b, p->b.rank ^ 1);
	p->ball = bench_allocate(MOST_THREADS * sizeof *p->ball);
	p->slot = bench_allocate(MOST_THREADS * sizeof *p->slot);
	p->out = bench_bind(&p->b, p->ball, MOST_THREADS * sizeof *p->ball, PTL_EQ_NONE);
	for (unsigned i = 0; i < p->threads.value; i++) {
		p->eq[i] = p->one_queue && i ? p->eq[0]
					     : bench_queue(&p->b, 4 * MOST_THREADS);
		p->ball[i] = i + 1;
		bench_post(&p->b, PORTAL + i, BENCH_BITS, PTL_MD_OP_PUT, p->slot,
			MOST_THREADS * sizeof *p->slot, p->eq[i]);
	}
}

static void run_threads(struct program *p)
{
	pthread_t thread[MOST_THREADS];
	for (unsigned i = 0; i < p->threads.value; i++)
		if (pthread_create(&thread[i], NULL, play, &p->eq[i]) != 0)
			bench_die(1, "no thread %u", i);
	for (unsigned i = 0; p->b.rank == 0 && i < p->threads.value; i++)
		throw(p, i, 2 * p->rounds.value);
	for (unsigned i = 0; i < p->threads.value; i++)
		pthread_join(thread[i], NULL);
}

static void measure(struct program *p)
{
	uint64_t messages = 2 * p->rounds.value * p->threads.value;
	p->due = messages / 2;
	bench_barrier();
	double t = bench_now_ns();
	run_threads(p);
	double ns = bench_now_ns() - t;
	if (p->b.rank == 0)
		BENCH_ROW(&p->b, BENCH_COUNT("threads", p->threads.value),
			BENCH_TEXT("queues", p->one_queue ? "one" : "own"),
			BENCH_COUNT("cpus", p->b.ncpus),
			BENCH_COUNT("rounds", p->rounds.value),
			BENCH_REAL("hop_ns", ns / 2 / (double)p->rounds.value, 1),
			BENCH_REAL("Mmsg_per_s", (double)messages * 1e3 / ns, 3));
}

static void parse(struct program *p, int argc, char **argv)
{
	const struct bench_option rows[] = {
		{"threads", "N", "of a rank, and balls; default 2", "threads, 1 to 16",
			bench_set_number, &p->threads},
		{"rounds", "N", "of each ball; default 100000", "rounds, 1 to 1000000000",
			bench_set_number, &p->rounds},
		{"one-queue", NULL, "all threads of a rank read one queue", NULL,
			bench_set_flag, &p->one_queue},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	bench_options(&p->b, rows, argc, argv);
	if (p->b.quick)
		p->rounds.value = 200;
	bench_want_ranks(&p->b, 2, 2);
}

int main(int argc, char **argv)
{
	struct program *p = &program;
	parse(p, argc, argv);
	open_node(p);
	bench_begin(&p->b);
	measure(p);
	bench_barrier();
	bench_finish(&p->b);
}
