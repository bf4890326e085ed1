/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oversub - many nodes on few CPUs: all-to-all rounds
 *
 *	yod -sz 16 oversub [options]
 *
 * In a round each node puts 64 bytes to every other, and waits until the messages of all
 * others have arrived and its own are sent.  A node can be one round ahead of another,
 * not two: the receiver has two sets of slots.  bench/series runs this program with 2, 4,
 * 8 ... nodes.
 */
#include "bench.h"

#include <stdlib.h>

enum { PORTAL = 4, MOST_BYTES = 64 << 10, MOST_SAMPLES = 200 };

struct program {
	struct bench b;
	struct bench_number bytes, rounds;
	struct bench_watch w;
	bool silent; /* no SEND_END events */
	ptl_process_id_t *id;
	ptl_handle_md_t out[2]; /* for even and odd rounds */
	uint64_t *tx, *rx;
	uint64_t words;    /* words of a message */
	uint64_t round;    /* number of the round */
	uint64_t there[2]; /* arrived messages of even and odd rounds, not awaited yet */
	double sample[MOST_SAMPLES];
};

static uint64_t stamp_of(uint64_t round, unsigned sender)
{
	return round << 16 | sender;
}

static uint64_t *slot_of(struct program *p, uint64_t round, unsigned sender)
{
	return p->rx + ((round & 1) * p->b.size + sender) * p->words;
}

static void put(struct program *p, unsigned to)
{
	uint64_t at = (uint64_t)((char *)slot_of(p, p->round, p->b.rank) - (char *)p->rx);
	int rc;
	while ((rc = PtlPut(p->out[p->round & 1], PTL_NO_ACK_REQ, p->id[to], PORTAL, 0,
			BENCH_BITS, at, p->round)) == PTL_NO_SPACE)
		PtlProgress(p->b.ni, 0);
	bench_check(rc, "PtlPut");
}

/* Even and odd rounds have a message each: the messages of the round that all others have
 * begun show that the message of the round before has arrived everywhere. */
static uint64_t *tx_of(struct program *p, uint64_t round)
{
	return p->tx + (round & 1) * p->words;
}

static void send_all(struct program *p)
{
	uint64_t *tx = tx_of(p, p->round);
	tx[0] = tx[p->words - 1] = stamp_of(p->round, p->b.rank);
	for (unsigned i = 1; i < p->b.size; i++)
		put(p, (p->b.rank + i) % p->b.size);
}

static void await_all(struct program *p)
{
	uint64_t others = p->b.size - 1, *there = &p->there[p->round & 1];
	uint64_t sent = p->silent ? 0 : (p->round + 1) * others;
	while (*there < others || p->w.seen[PTL_EVENT_SEND_END] < sent) {
		bench_take(&p->w);
		if (p->w.last.type == PTL_EVENT_PUT_END)
			p->there[p->w.last.hdr_data & 1]++;
	}
	*there -= others;
}

static void check_all(struct program *p)
{
	for (unsigned i = 0; i < p->b.size; i++) {
		const uint64_t *slot = slot_of(p, p->round, i);
		uint64_t want = stamp_of(p->round, i);
		if (i != p->b.rank && (slot[0] != want || slot[p->words - 1] != want))
			bench_wrong(&p->b,
				"round %llu, from rank %u: words %llx and %llx; expected "
				"%llx; the library damages data",
				(unsigned long long)p->round, i,
				(unsigned long long)slot[0],
				(unsigned long long)slot[p->words - 1],
				(unsigned long long)want);
	}
}

static void run_rounds(struct program *p, uint64_t count)
{
	for (uint64_t end = p->round + count; p->round < end; p->round++) {
		send_all(p);
		await_all(p);
		check_all(p);
	}
}

/* ---- */

static uint64_t rounds_for(const struct program *p)
{
	enum { MESSAGES = 4000000, LEAST = 400, MOST = 200000 };
	uint64_t n = MESSAGES / p->b.size / (p->b.size - 1);
	if (p->rounds.value)
		return p->rounds.value;
	if (p->b.quick)
		return 20;
	return n < LEAST ? LEAST : n > MOST ? MOST : n;
}

static void print(struct program *p, uint64_t rounds, uint64_t batches, double all_ns)
{
	double messages = (double)(p->b.size * (p->b.size - 1));
	struct bench_stat s = bench_stat_of(p->sample, batches);
	BENCH_ROW(&p->b, BENCH_COUNT("nodes", p->b.size), BENCH_COUNT("cpus", p->b.ncpus),
		BENCH_COUNT("bytes", p->words * 8), BENCH_COUNT("rounds", rounds),
		BENCH_REAL("round_p50_us", s.p50 / 1e3, 1),
		BENCH_REAL("round_p99_us", s.p99 / 1e3, 1),
		BENCH_REAL("round_max_us", s.max / 1e3, 1),
		BENCH_REAL("Mmsg_per_s", messages * (double)rounds * 1e3 / all_ns, 3),
		BENCH_REAL("p50_Mmsg_per_s", messages * 1e3 / s.p50, 3));
}

static void measure(struct program *p)
{
	uint64_t rounds = rounds_for(p);
	uint64_t batches = rounds < MOST_SAMPLES ? rounds : MOST_SAMPLES;
	uint64_t each = rounds / batches;
	run_rounds(p, rounds / 10 + 1);
	double first = bench_now_ns();
	for (uint64_t i = 0; i < batches; i++) {
		double t = bench_now_ns();
		run_rounds(p, each);
		p->sample[i] = (bench_now_ns() - t) / (double)each;
	}
	if (p->b.rank == 0)
		print(p, batches * each, batches, bench_now_ns() - first);
}

static void expect_events(struct program *p)
{
	uint64_t count = p->round * (p->b.size - 1);
	bench_barrier();
	bench_expect(&p->b, &p->w, "all-to-all", PTL_EVENT_PUT_END, count);
	bench_expect(
		&p->b, &p->w, "all-to-all", PTL_EVENT_SEND_END, p->silent ? 0 : count);
}

static const char about[] = "usage: yod -sz N oversub [options]\n"
			    "All-to-all rounds of small puts, with more nodes than CPUs "
			    "if need be.\n";

static const char legend[] =
	"Round: by rank 0, means of batches.  Mmsg/s: messages of all nodes, in all the "
	"time, and\n"
	"in the median round.\n";

static void parse(struct program *p, int argc, char **argv)
{
	const struct bench_option rows[] = {
		{"bytes", "N", "of a message; default 64", "bytes, 8 to 65536",
			bench_set_number, &p->bytes},
		{"rounds", "N", "default: 4000000 messages in all",
			"rounds, 1 to 1000000000", bench_set_number, &p->rounds},
		{"no-send-end", NULL, "descriptors without SEND_END events", NULL,
			bench_set_flag, &p->silent},
		{"poll", NULL, "wait with PtlEQPoll instead of PtlEQWait", NULL,
			bench_set_flag, &p->w.poll},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	bench_options(&p->b, rows, argc, argv);
	if (p->b.size > 1)
		return;
	fprintf(stderr, "oversub: 1 rank; expected 2 or more; use yod -sz 16\n");
	bench_leave(2);
}

static void open_node(struct program *p)
{
	p->words = p->bytes.value / 8;
	uint64_t tx = p->words * 8, rx = tx * p->b.size * 2;
	p->tx = bench_allocate(2 * tx);
	p->rx = bench_allocate(rx);
	p->id = bench_allocate(p->b.size * sizeof *p->id);
	for (unsigned i = 0; i < p->b.size; i++)
		p->id[i] = bench_id(&p->b, i);
	p->w.eq = bench_queue(&p->b, 8 * p->b.size + 64);
	for (uint64_t i = 0; i < 2; i++)
		p->out[i] = bench_bind(
			&p->b, tx_of(p, i), tx, p->silent ? PTL_EQ_NONE : p->w.eq);
	bench_post(&p->b, PORTAL, BENCH_BITS, PTL_MD_OP_PUT, p->rx, rx, p->w.eq);
	bench_watch_reset(&p->w, BENCH_LOSE_NONE);
}

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "oversub", .about = about, .legend = legend},
		.bytes = {64, 8, MOST_BYTES},
		.rounds = {0, 1, 1000000000}};
	parse(&p, argc, argv);
	open_node(&p);
	bench_begin(&p.b);
	measure(&p);
	expect_events(&p);
	bench_finish(&p.b);
}
