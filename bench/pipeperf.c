/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pipeperf - message sizes swept as NetPIPE does: powers of two, the middles between
 * them, and each with a few bytes less and more
 *
 *	yod -sz 2 pipeperf [options]
 *
 * Rank 0 chooses for each size the number of messages that fill the time, and tells
 * rank 1.  The messages and their checks are those of perf.h.
 */
#include "perf.h"

#include <stdlib.h>

enum { TRIALS = 7, MOST_BYTES = 1 << 30, MOST_REPEATS = 1 << 20 };

struct program {
	struct bench b;
	struct perf_node n;
	struct bench_number upper, perturbation, window, budget_ms;
	bool get, stream, bidir;
	uint64_t size[BENCH_LIST];
	unsigned nsizes;
	double last_ns;   /* time of a round at the previous size */
	uint64_t last;    /* the previous size */
	double best_mb;   /* best rate in MB/s */
	uint64_t best_at; /* size with the best rate, in bytes */
};

/* ---- sizes ---- */

static void add_size(struct program *p, uint64_t bytes)
{
	if (bytes < 1 || bytes > p->upper.value || p->nsizes == BENCH_LIST)
		return;
	if (!p->nsizes || bytes > p->size[p->nsizes - 1])
		p->size[p->nsizes++] = bytes;
}

static void add_around(struct program *p, uint64_t bytes)
{
	uint64_t d = p->perturbation.value;
	if (bytes > 2 * d)
		add_size(p, bytes - d);
	add_size(p, bytes);
	if (bytes > 2 * d)
		add_size(p, bytes + d);
}

static void add_sizes(struct program *p)
{
	for (uint64_t bytes = 1; bytes <= p->upper.value; bytes *= 2) {
		add_around(p, bytes);
		if (bytes > 1)
			add_around(p, bytes + bytes / 2);
	}
}

/* ---- one size ---- */

static enum perf_test test_of(const struct program *p)
{
	return p->get      ? PERF_GET
	       : p->stream ? PERF_STREAM
	       : p->bidir  ? PERF_BIDIR
			   : PERF_PUT;
}

/* Choose the rounds of one trial, by the time at the previous size. */
static uint64_t choose(struct program *p, uint64_t bytes)
{
	double grown = bytes > p->last ? (double)bytes / (double)(p->last + 256) : 1;
	double ns = p->last_ns * (grown > 1 ? grown : 1);
	double n = (double)p->budget_ms.value * 1e6 / TRIALS / (ns > 1 ? ns : 1);
	uint64_t most = p->b.quick ? 3 : MOST_REPEATS;
	return n < 1 ? 1 : n > (double)most ? most : (uint64_t)n;
}

static unsigned run_trials(struct program *p, uint64_t rounds, double *ns)
{
	unsigned trials = p->b.quick ? 2 : TRIALS;
	perf_rounds(&p->n, 1);
	for (unsigned i = 0; i < trials; i++) {
		double t = bench_now_ns();
		perf_rounds(&p->n, rounds);
		ns[i] = (bench_now_ns() - t) / (double)rounds;
	}
	return trials;
}

/* Return the bytes of a round: a ping-pong, and --bidir, have messages both ways. */
static double bytes_of(const struct program *p)
{
	double ways = p->n.test == PERF_PUT || p->n.test == PERF_BIDIR ? 2 : 1;
	return (double)p->n.length * ways * (double)perf_messages(&p->n, 1);
}

static void print(struct program *p, uint64_t rounds, const struct bench_stat *ns)
{
	double messages = bytes_of(p) / (double)p->n.length;
	double one = p->n.test == PERF_BIDIR ? 1 : messages;
	double mb = bytes_of(p) * 1e3 / ns->p50;
	if (mb > p->best_mb) {
		p->best_mb = mb;
		p->best_at = p->n.length;
	}
	BENCH_ROW(&p->b, BENCH_COUNT("bytes", p->n.length), BENCH_COUNT("rounds", rounds),
		BENCH_COUNT("trials", ns->n), BENCH_REAL("p50_ns", ns->p50 / one, 1),
		BENCH_REAL("min_ns", ns->min / one, 1),
		BENCH_REAL("max_ns", ns->max / one, 1), BENCH_REAL("MB_per_s", mb, 1),
		BENCH_REAL("best_MB_per_s", bytes_of(p) * 1e3 / ns->min, 1));
}

static void run(struct program *p, uint64_t bytes)
{
	double ns[TRIALS];
	perf_begin(&p->n, test_of(p), bytes);
	if (p->n.active) {
		uint64_t rounds = perf_agree(&p->n, choose(p, bytes));
		perf_full_rounds(&p->n);
		unsigned trials = run_trials(p, rounds, ns);
		struct bench_stat s = bench_stat_of(ns, trials);
		perf_full_rounds(&p->n);
		p->last_ns = s.p50;
		p->last = bytes;
		if (p->b.rank == 0)
			print(p, rounds, &s);
	}
	perf_end(&p->n);
}

/* ---- */

static const char about[] =
	"usage: yod -sz 2 pipeperf [options]\n"
	"Sweeps message sizes between ranks 0 and 1: ping-pong, or gets, or one way, or\n"
	"both at once.\n";

static const char legend[] =
	"Time of one message (ping-pong: half a round trip; --get: until the reply is "
	"there;\n"
	"--bidir: until both are there), by trials.\n"
	"MB/s: 10^6 bytes in the median, and in the best trial; --bidir: of both ways.\n";

static void parse(struct program *p, int argc, char **argv)
{
	const struct bench_option rows[] = {
		{"upper", "N", "largest size in bytes, with K or M; default 4M",
			"bytes, 1 to 1024M", bench_set_number, &p->upper},
		{"perturbation", "N", "bytes less and more of each size; default 3",
			"bytes, 0 to 64", bench_set_number, &p->perturbation},
		{"get", NULL, "rank 0 gets from rank 1", NULL, bench_set_flag, &p->get},
		{"stream", NULL, "one way, --window messages before an answer", NULL,
			bench_set_flag, &p->stream},
		{"bidir", NULL, "both ways at once", NULL, bench_set_flag, &p->bidir},
		{"window", "N", "of --stream; default 64", "messages, 1 to 4096",
			bench_set_number, &p->window},
		{"time", "MS", "for each size, about; default 100",
			"milliseconds, 1 to 100000", bench_set_number, &p->budget_ms},
		{"poll", NULL, "wait with PtlEQPoll instead of PtlEQWait", NULL,
			bench_set_flag, &p->n.w.poll},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	bench_options(&p->b, rows, argc, argv);
}

static void check_options(const struct program *p)
{
	if (p->b.size >= 2 && p->get + p->stream + p->bidir <= 1)
		return;
	if (p->b.rank == 0 && p->b.size < 2)
		fprintf(stderr, "pipeperf: 1 rank; expected 2 or more; use yod -sz 2\n");
	else if (p->b.rank == 0)
		fprintf(stderr,
			"pipeperf:%s%s%s; expected one of them; leave the others out\n",
			p->get ? " --get" : "", p->stream ? " --stream" : "",
			p->bidir ? " --bidir" : "");
	bench_leave(2);
}

static void open_node(struct program *p)
{
	p->n.b = &p->b;
	p->n.largest = p->upper.value;
	p->n.window = (unsigned)p->window.value;
	p->last_ns = 1e4; /* a guess, for the first size only */
	perf_open(&p->n);
}

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "pipeperf", .about = about, .legend = legend},
		.upper = {4 << 20, 1, MOST_BYTES},
		.perturbation = {3, 0, 64},
		.window = {64, 1, 4096},
		.budget_ms = {100, 1, 100000}};
	parse(&p, argc, argv);
	check_options(&p);
	add_sizes(&p);
	open_node(&p);
	bench_begin(&p.b);
	for (unsigned i = 0; i < p.nsizes; i++)
		run(&p, p.size[i]);
	if (p.b.rank == 0)
		bench_note(&p.b, "\nmost: %.1f MB/s, at %llu bytes", p.best_mb,
			(unsigned long long)p.best_at);
	bench_finish(&p.b);
}
