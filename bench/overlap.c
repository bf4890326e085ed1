/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overlap - application bypass: are messages moved while the program computes?
 *
 *	yod -sz 2 overlap [options]
 *
 * Rank 0 puts with an ACK to rank 1.  The column "computes" names the rank that computes:
 *	neither	rank 1 waits in PtlEQWait
 *	target	rank 1 computes, with no call to the library
 *	source	rank 0 computes after PtlPut, while rank 1 waits
 * Times are from PtlPut to the ACK, and, but with target, to PUT_END at rank 1: both read
 * the same clock.  Each rank knows the time of its work without a message.
 */
#include "bench.h"

enum { PORTAL_DATA = 4, PORTAL_TALK = 5, MOST_BYTES = 1 << 30, MOST_ROUNDS = 100000 };
enum { TRIALS = 5, DELAY_NS = 500000 };
enum way { WAITS, TARGET, SOURCE, WAYS };

static const char *const way_name[WAYS] = {"neither", "target", "source"};

struct program {
	struct bench b;
	struct bench_list sizes;
	struct bench_number rounds, work_us;
	struct bench_watch w;
	ptl_process_id_t peer;
	ptl_handle_md_t out, empty;
	char *memory;
	uint64_t length, largest, loops;
	double *sample, *work; /* ns */
	double alone_ns;       /* time of the work without a message */
	double waits_ns[2];    /* time of a message with both waiting */
	volatile uint64_t sink;
};

/* A rank's report to rank 0: its message times, and its work. */
struct part {
	struct bench_stat message, work;
	double alone_ns;
};

/* ---- work ---- */

static double compute(struct program *p)
{
	double t = bench_now_ns();
	uint64_t x = p->sink | 1;
	for (uint64_t i = 0; i < p->loops; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	p->sink = x;
	return bench_now_ns() - t;
}

/* ---- messages ---- */

/* Send a message from rank 0, when the target has said that it is ready and has had time
 * to begin its work. */
static void source_round(struct program *p, enum way way, uint64_t round)
{
	bench_await(&p->w, PTL_EVENT_PUT_END, round + 1);
	for (double end = bench_now_ns() + DELAY_NS; bench_now_ns() < end;)
		;
	uint64_t *words = (uint64_t *)p->memory;
	words[0] = words[p->length / 8 - 1] = round;
	double t = bench_now_ns(); /* goes with the message */
	bench_put(&p->b, p->out, PTL_ACK_REQ, p->peer, PORTAL_DATA, BENCH_BITS, 0,
		(uint64_t)t);
	if (way == SOURCE)
		p->work[round] = compute(p);
	bench_await(&p->w, PTL_EVENT_ACK, round + 1);
	p->sample[round] = bench_now_ns() - t;
	bench_await(&p->w, PTL_EVENT_SEND_END, round + 1);
}

static void target_round(struct program *p, enum way way, uint64_t round)
{
	bench_put(
		&p->b, p->empty, PTL_NO_ACK_REQ, p->peer, PORTAL_TALK, BENCH_BITS, 0, 0);
	if (way == TARGET)
		p->work[round] = compute(p);
	bench_await(&p->w, PTL_EVENT_PUT_END, round + 1);
	p->sample[round] = bench_now_ns() - (double)p->w.last.hdr_data;
	const uint64_t *words = (const uint64_t *)p->memory;
	uint64_t first = words[0], last = words[p->length / 8 - 1];
	if (first != round || last != round)
		bench_wrong(&p->b,
			"round %" PRIu64 " of %" PRIu64 " bytes: first word %" PRIu64
			", last %" PRIu64
			"; expected the round; the library damages data",
			round, p->length, first, last);
}

/* ---- results ---- */

/* Print a row.  side is the rank that measured: rank 0 until the ACK, rank 1 until
 * PUT_END. */
static void print(struct program *p, enum way way, unsigned side, const struct part *all)
{
	const struct bench_stat *m = &all[side].message;
	const struct part *worker = &all[way == TARGET];
	if (way == WAITS)
		p->waits_ns[side] = m->p50;
	/* 0 if the work took longer by the time of a message, 1 if it took no longer */
	double more = worker->work.p50 - worker->alone_ns;
	double hidden = 1 - more / p->waits_ns[side];
	hidden = way == WAITS || hidden < 0 ? 0 : hidden > 1 ? 1 : hidden;
	BENCH_ROW(&p->b, BENCH_COUNT("bytes", p->length),
		BENCH_TEXT("computes", way_name[way]),
		BENCH_TEXT("until", side ? "PUT_END" : "ACK"),
		BENCH_COUNT("rounds", m->n), BENCH_PERCENTILES(*m, "us", 1e3, 1),
		BENCH_REAL("max_us", m->max / 1e3, 1),
		BENCH_REAL("ratio", m->p50 / p->waits_ns[side], 2),
		BENCH_REAL("work_us", way == WAITS ? 0 : worker->work.p50 / 1e3, 1),
		BENCH_REAL("hidden", hidden, 2));
}

static void run(struct program *p, enum way way)
{
	struct part all[2], mine = {.alone_ns = p->alone_ns};
	bench_watch_reset(&p->w, BENCH_LOSE_NONE);
	bench_barrier();
	for (uint64_t i = 0; i < p->rounds.value; i++)
		if (p->b.rank == 0)
			source_round(p, way, i);
		else
			target_round(p, way, i);
	bench_barrier();
	bench_expect(&p->b, &p->w, way_name[way], PTL_EVENT_PUT_END, p->rounds.value);
	mine.message = bench_stat_of(p->sample, p->rounds.value);
	mine.work = bench_stat_of(p->work, p->rounds.value);
	bench_gather(&p->b, &mine, sizeof mine, p->b.rank ? NULL : all);
	if (p->b.rank == 0 && way != SOURCE)
		print(p, way, 0, all);
	if (p->b.rank == 0 && way != TARGET)
		print(p, way, 1, all);
}

static const char about[] =
	"usage: yod -sz 2 overlap [options]\n"
	"Puts into a node that computes, and from one, against puts with both waiting.\n";

static const char legend[] =
	"From PtlPut to ACK, or to PUT_END at the target where the source computes.\n"
	"ratio: of the median to that without computation.  work: median with a "
	"message;\n"
	"hidden: part of the message's time that the work did not take longer for.\n";

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "overlap", .about = about, .legend = legend},
		.sizes = {.most = MOST_BYTES},
		.rounds = {100, 1, MOST_ROUNDS},
		.work_us = {10000, 10, 10000000}};
	double ns[TRIALS];
	const struct bench_option rows[] = {
		{"sizes", "LIST", "in bytes; default 8,64K,1M,16M", bench_set_list,
			&p.sizes},
		{"rounds", "N", "for each line; default 100", bench_set_number,
			&p.rounds},
		{"work", "US", "that a node computes in each round; default 10000",
			bench_set_number, &p.work_us},
		{0}};
	static const uint64_t sizes[] = {8, 64 << 10, 1 << 20, 16 << 20};
	bench_options(&p.b, rows, argc, argv);
	bench_want_ranks(&p.b, 2, 2);
	bench_default_list(&p.sizes, sizes, p.b.quick ? 3 : 4);
	p.largest = bench_largest(&p.sizes, 0);
	if (p.b.quick)
		p.rounds.value = 3;
	p.memory = bench_allocate(p.largest + 8);
	p.sample = bench_allocate(p.rounds.value * sizeof *p.sample);
	p.work = bench_allocate(p.rounds.value * sizeof *p.work);
	p.peer = bench_id(&p.b, p.b.rank ^ 1);
	p.w.eq = bench_queue(&p.b, 64);
	p.empty = bench_bind(&p.b, NULL, 0, PTL_EQ_NONE);
	bench_post(&p.b, PORTAL_TALK, PTL_MD_OP_PUT, NULL, 0, p.w.eq);
	bench_post(&p.b, PORTAL_DATA, PTL_MD_OP_PUT, p.memory, p.largest + 8, p.w.eq);
	bench_begin(&p.b);
	p.loops = 1000000; /* so many that they take --work */
	p.loops =
		(uint64_t)((double)p.loops * (double)p.work_us.value * 1e3 / compute(&p));
	for (unsigned i = 0; i < TRIALS; i++)
		ns[i] = compute(&p);
	p.alone_ns = bench_stat_of(ns, TRIALS).p50;
	for (unsigned i = 0; i < p.sizes.n; i++) {
		p.length = (p.sizes.at[i] + 7) / 8 * 8;
		p.length = p.length ? p.length : 8;
		p.out = bench_bind(&p.b, p.memory, p.length, p.w.eq);
		for (int way = 0; way < WAYS; way++)
			run(&p, (enum way)way);
		BENCH_DO(PtlMDUnlink, p.out);
	}
	bench_finish(&p.b);
}
