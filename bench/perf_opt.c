/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of the performance tests, and the rounds for a size. */
#include "perf_opt.h"

#include <string.h>

enum { MOST_BYTES = 1 << 30, MOST_WINDOW = 4096, MOST_SAMPLES = 1 << 20 };
enum { MOST_BUSY = 1024, BATCHES = 1000, STREAM_PART = 16, RATE_PART = 2 };

static const uint64_t default_sizes[] = {0, 1, 8, 16, 17, 32, 64, 100, 128, 256, 512,
	1000, 1024, 2048, 4096, 5000, 8192, 16384, 32768, 65536, 100000, 131072, 262144,
	524288, 1000003, 1048576, 2097152, 4194304};

const char perf_about[] =
	"usage: yod -sz 2 portalperf [options]\n"
	"Latency, bandwidth and rate of Portals operations between ranks 0 and 1,\n"
	"2 and 3, ...\n";

static void fill_defaults(struct perf_opt *o)
{
	if (o->sizes.n)
		return;
	memcpy(o->sizes.at, default_sizes, sizeof default_sizes);
	o->sizes.n = sizeof default_sizes / sizeof default_sizes[0];
}

/* The other tests count events, or find the number of lost ones, as if all were of one
 * kind. */
static void check_starts(const struct perf_opt *o)
{
	for (unsigned i = 0; i < PERF_TESTS; i++)
		if (o->test[i] && i != PERF_PUT && i != PERF_BIDIR)
			bench_die(2,
				"--starts: --test has %s; expected put, bidir or both; "
				"leave %s out",
				perf_test_name[i], perf_test_name[i]);
}

void perf_opt_parse(struct perf_opt *o, struct bench *b, int argc, char **argv)
{
	bool raw;
	struct bench_words tests = {perf_test_name, PERF_TESTS, o->test};
	*o = (struct perf_opt){.sizes = {.most = MOST_BYTES},
		.iters = {0, 1, 1000000000},
		.window = {64, 1, MOST_WINDOW},
		.busy = {0, 0, MOST_BUSY}};
	const struct bench_option rows[] = {
		{"test", "LIST",
			"of put, get, ack, bidir, stream, rate, nto1; default all",
			"put, get, ack, bidir, stream, rate, nto1, or several, as in "
			"put,get",
			bench_set_words, &tests},
		{"sizes", "LIST",
			"of message sizes in bytes, with K or M; default 0 to 4M",
			"bytes, 0 to 1024M, as in 8,64K,1M", bench_set_list, &o->sizes},
		{"iters", "N",
			"rounds for each size; default 20000 to 1K, 5000 to 64K, 1000 to "
			"1M, 200 above",
			"rounds, 1 to 1000000000", bench_set_number, &o->iters},
		{"window", "N",
			"stream, rate, nto1: messages before an answer; default 64",
			"messages, 1 to 4096", bench_set_number, &o->window},
		{"each", NULL, "time each round, not batches of them: true tails", NULL,
			bench_set_flag, &o->each},
		{"no-send-end", NULL,
			"stream, rate, nto1: descriptors without SEND_END events", NULL,
			bench_set_flag, &o->silent},
		{"starts", NULL, "put, bidir: descriptors with START events, too", NULL,
			bench_set_flag, &b->starts},
		{"heap", NULL, "buffers from PtlXAlloc: in the shared heap", NULL,
			bench_set_flag, &o->heap},
		{"raw", NULL, "compare with a raw cache line hand-over: the default",
			NULL, bench_set_flag, &raw},
		{"no-raw", NULL, "leave that out", NULL, bench_set_flag, &o->no_raw},
		{"poll", NULL, "wait with PtlEQPoll instead of PtlEQWait", NULL,
			bench_set_flag, &o->poll},
		{"yield", NULL,
			"wait with PtlEQGet, and sched_yield where nothing is there; raw "
			"likewise",
			NULL, bench_set_flag, &o->yields},
		{"busy", "N", "number of processes beside the job that never sleep",
			"processes, 0 to 1024", bench_set_number, &o->busy},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	bench_options(b, rows, argc, argv);
	bench_all_words(&tests);
	if (b->starts)
		check_starts(o);
	fill_defaults(o);
}

uint64_t perf_opt_largest(const struct perf_opt *o)
{
	uint64_t largest = PERF_RATE_BYTES;
	for (unsigned i = 0; i < o->sizes.n; i++)
		largest = o->sizes.at[i] > largest ? o->sizes.at[i] : largest;
	return largest;
}

static uint64_t usual_rounds(uint64_t bytes)
{
	return bytes <= 1 << 10    ? 20000
	       : bytes <= 64 << 10 ? 5000
	       : bytes <= 1 << 20  ? 1000
				   : 200;
}

/* Return the part of the usual rounds that a test has: a round of a window test moves
 * --window messages, so a part is enough. */
static uint64_t part_of(enum perf_test t)
{
	return t == PERF_RATE                       ? RATE_PART
	       : t == PERF_STREAM || t == PERF_NTO1 ? STREAM_PART
						    : 1;
}

static uint64_t rounds_for(
	const struct perf_opt *o, const struct bench *b, enum perf_test t, uint64_t bytes)
{
	uint64_t usual = b->quick ? 20 : usual_rounds(bytes);
	if (o->iters.value && !(b->quick && o->iters.value > usual))
		return o->iters.value;
	usual /= part_of(t);
	return usual ? usual : 1;
}

/* Plan batches of at least 20 rounds where one round is short compared to reading the
 * clock. */
struct perf_plan perf_plan_of(
	const struct perf_opt *o, const struct bench *b, enum perf_test t, uint64_t bytes)
{
	uint64_t rounds = rounds_for(o, b, t, bytes);
	uint64_t most = o->each ? MOST_SAMPLES : BATCHES;
	uint64_t batches =
		o->each || bytes > 4096 || part_of(t) > 1 ? rounds : rounds / 20;
	batches = batches > most ? most : batches ? batches : 1;
	struct perf_plan p = {.batches = batches, .each = rounds / batches};
	p.warm = rounds / 10 > 1000 ? 1000 : rounds / 10 + 1;
	return p;
}

struct perf_plan perf_plan_raw(const struct perf_opt *o, const struct bench *b)
{
	if (b->quick)
		return (struct perf_plan){.warm = 10, .batches = 2, .each = 50};
	if (o->iters.value)
		return (struct perf_plan){
			.warm = 10, .batches = 50, .each = o->iters.value / 50 + 1};
	return (struct perf_plan){.warm = 2000, .batches = 50, .each = 2000};
}
