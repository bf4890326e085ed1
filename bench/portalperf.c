/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portalperf - latency, bandwidth and rate of Portals operations
 *
 *	yod -sz 2 portalperf [options]
 *
 * The messages are those of perf.h.  This file chooses the tests, their sizes and their
 * rounds, reads the clock once for each batch, and sends the results to rank 0.
 */
#include "perf.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { MOST_BYTES = 1 << 30, MOST_WINDOW = 4096, MOST_SAMPLES = 1 << 20, BATCHES = 1000 };
enum { RAW_BATCHES = 50, TRIALS = 7, MOST_REPEATS = 1 << 20 };

/* A rank's report to rank 0 after each test and size: times of a message. */
struct result {
	bool valid;
	uint64_t rounds;
	struct bench_stat ns;
};

struct raw_result {
	bool tried, valid;
	uint64_t each;
	struct bench_stat put, raw, ratio;
};

static struct program {
	struct bench b;
	bool test[PERF_TESTS];
	struct bench_list sizes;
	struct bench_number iters;  /* 0: depends on the size */
	struct bench_number window; /* messages */
	struct bench_number busy;   /* processes beside the job that never sleep */
	struct bench_number upper, perturbation, budget_ms; /* of a sweep */
	bool no_raw, each, sweep;
	struct perf_node n;
	struct result *all; /* rank 0 */
	/* the size before, in a sweep, and the best one */
	uint64_t last, best_at;
	double last_ns, best_mb; /* of a round; MB/s */
} program = {.sizes = {.most = MOST_BYTES},
	.iters = {0, 1, 1000000000},
	.window = {64, 1, MOST_WINDOW},
	.busy = {0, 0, 1024},
	.upper = {4 << 20, 1, MOST_BYTES},
	.perturbation = {3, 0, 64},
	.budget_ms = {100, 1, 100000},
	.last_ns = 1e4}; /* a guess, for the first size only */

/* ---- rounds ---- */

struct plan {
	uint64_t warm, batches, each; /* rounds: warm, then batches * each */
};

/* Return the part of the usual rounds that a test has: a round of a window test moves
 * --window messages, so a part is enough. */
static uint64_t part_of(enum perf_test t)
{
	return t == PERF_RATE ? 2 : perf_is_stream(t) ? 16 : 1;
}

/* Plan batches of at least 20 rounds where one round is short compared to reading the
 * clock. */
static struct plan plan_of(const struct program *p, enum perf_test t, uint64_t bytes)
{
	uint64_t usual = p->b.quick ? 20 : bench_usual_rounds(bytes);
	uint64_t rounds = usual / part_of(t) ? usual / part_of(t) : 1;
	uint64_t most = p->each ? MOST_SAMPLES : BATCHES;
	if (p->iters.value && !(p->b.quick && p->iters.value > usual))
		rounds = p->iters.value;
	uint64_t batches =
		p->each || bytes > 4096 || part_of(t) > 1 ? rounds : rounds / 20;
	batches = batches > most ? most : batches ? batches : 1;
	return (struct plan){
		rounds / 10 > 1000 ? 1000 : rounds / 10 + 1, batches, rounds / batches};
}

/* Time rounds, and return the time of one in ns. */
static double timed(struct perf_node *n, uint64_t count)
{
	double t = bench_now_ns();
	perf_rounds(n, count);
	return (bench_now_ns() - t) / (double)count;
}

/* ---- one test at one size ---- */

static void measure(struct program *p, struct result *r)
{
	struct perf_node *n = &p->n;
	struct plan plan = plan_of(p, n->test, n->length);
	/* a round trip of a ping-pong has two messages */
	double messages = (double)perf_messages(n, 1) * (n->test == PERF_PUT ? 2 : 1);
	double *sample = bench_allocate(plan.batches * sizeof *sample);
	perf_full_rounds(n);
	perf_rounds(n, plan.warm);
	for (uint64_t i = 0; i < plan.batches; i++)
		sample[i] = timed(n, plan.each) / messages;
	r->rounds = plan.batches * plan.each;
	r->ns = bench_stat_of(sample, plan.batches);
	r->valid = n->test == PERF_NTO1 ? p->b.rank == 0 : n->first;
	perf_full_rounds(n);
	free(sample);
}

static void run(struct program *p, enum perf_test test, uint64_t length)
{
	char ranks[24];
	struct result mine = {0};
	double bytes = (double)length * (test == PERF_BIDIR ? 2 : 1);
	perf_begin(&p->n, test, length);
	if (p->n.active)
		measure(p, &mine);
	perf_end(&p->n);
	bench_gather(&p->b, &mine, sizeof mine, p->all);
	for (unsigned i = 0; p->all && i < p->b.size; i++) {
		struct bench_stat s = p->all[i].ns;
		if (!p->all[i].valid)
			continue;
		snprintf(ranks, sizeof ranks, "%u-%u", i,
			test == PERF_NTO1 ? p->b.size - 1 : i + 1);
		BENCH_ROW(&p->b, BENCH_TEXT("test", perf_test_name[test]),
			BENCH_TEXT("ranks", ranks), BENCH_COUNT("bytes", length),
			BENCH_COUNT("rounds", p->all[i].rounds),
			BENCH_COUNT("samples", s.n), BENCH_PERCENTILES(s, "ns", 1, 1),
			BENCH_REAL("p99.9_ns", s.p999, 1), BENCH_REAL("max_ns", s.max, 1),
			BENCH_REAL("min_ns", s.min, 1),
			BENCH_REAL("MB_per_s", bytes * 1e3 / s.p50, 1),
			BENCH_REAL("Mmsg_per_s", 1e3 / s.p50, 3));
	}
}

/*
 * ---- a sweep, as NetPIPE does it ----
 *
 * Sizes are powers of two, the middles between them, and each with a few bytes less and
 * more.  Rank 0 chooses for each size the number of messages, and tells rank 1.
 */

static void print_trials(struct program *p, uint64_t rounds, const struct bench_stat *ns)
{
	enum perf_test test = p->n.test;
	/* a ping-pong and bidir have messages both ways */
	double messages = (double)perf_messages(&p->n, 1) *
			  (test == PERF_PUT || test == PERF_BIDIR ? 2 : 1);
	double bytes = (double)p->n.length * messages, mb = bytes * 1e3 / ns->p50;
	double one = test == PERF_BIDIR ? 1 : messages;
	if (mb > p->best_mb) {
		p->best_mb = mb;
		p->best_at = p->n.length;
	}
	BENCH_ROW(&p->b, BENCH_COUNT("bytes", p->n.length), BENCH_COUNT("rounds", rounds),
		BENCH_COUNT("trials", ns->n), BENCH_REAL("p50_ns", ns->p50 / one, 1),
		BENCH_REAL("min_ns", ns->min / one, 1),
		BENCH_REAL("max_ns", ns->max / one, 1), BENCH_REAL("MB_per_s", mb, 1),
		BENCH_REAL("best_MB_per_s", bytes * 1e3 / ns->min, 1));
}

static void sweep_size(struct program *p, enum perf_test test, uint64_t bytes)
{
	double ns[TRIALS];
	unsigned trials = p->b.quick ? 2 : TRIALS;
	if (bytes <= p->last || bytes > p->upper.value)
		return;
	perf_begin(&p->n, test, bytes);
	if (p->n.active) {
		/* so many that they fill the time, by the time at the previous size */
		double grown = (double)bytes / (double)(p->last + 256);
		double one = p->last_ns * (grown > 1 ? grown : 1);
		double n =
			(double)p->budget_ms.value * 1e6 / TRIALS / (one > 1 ? one : 1);
		uint64_t most = p->b.quick ? 3 : MOST_REPEATS;
		uint64_t rounds = perf_agree(&p->n, n < 1              ? 1
						    : n > (double)most ? most
								       : (uint64_t)n);
		perf_full_rounds(&p->n);
		perf_rounds(&p->n, 1);
		for (unsigned i = 0; i < trials; i++)
			ns[i] = timed(&p->n, rounds);
		struct bench_stat s = bench_stat_of(ns, trials);
		perf_full_rounds(&p->n);
		p->last_ns = s.p50;
		if (p->b.rank == 0)
			print_trials(p, rounds, &s);
	}
	p->last = bytes;
	perf_end(&p->n);
}

static void run_sweep(struct program *p)
{
	unsigned test = PERF_PUT;
	uint64_t d = p->perturbation.value;
	while (!p->test[test])
		test++;
	for (uint64_t power = 1; power <= p->upper.value; power *= 2)
		for (unsigned half = 2; half < (power > 1 ? 4 : 3); half++) {
			uint64_t bytes = power * half / 2;
			uint64_t less = bytes > 2 * d ? d : 0;
			sweep_size(p, (enum perf_test)test, bytes - less);
			sweep_size(p, (enum perf_test)test, bytes);
			sweep_size(p, (enum perf_test)test, bytes + less);
		}
	if (p->b.rank == 0)
		bench_note(&p->b, "\nmost: %.1f MB/s, at %" PRIu64 " bytes", p->best_mb,
			p->best_at);
}

/* ---- raw hand-over and 8-byte puts in turns ---- */

/* Time hand-overs and puts in turns.  Alternate their order, so that a slow drift does
 * not show in the ratios. */
static void take_turns(struct program *p, struct hand *hand, struct raw_result *r)
{
	struct plan plan = {2000, RAW_BATCHES, 2000};
	double raw[RAW_BATCHES], puts[RAW_BATCHES], ratio[RAW_BATCHES];
	if (p->b.quick)
		plan = (struct plan){10, 2, 50};
	else if (p->iters.value)
		plan = (struct plan){10, RAW_BATCHES, p->iters.value / RAW_BATCHES + 1};
	perf_rounds(&p->n, plan.warm);
	perf_hand_over(hand, &p->n, plan.warm);
	for (uint64_t i = 0; i < plan.batches; i++) {
		if (i % 2)
			puts[i] = timed(&p->n, plan.each) / 2;
		double t = bench_now_ns();
		perf_hand_over(hand, &p->n, plan.each);
		raw[i] = (bench_now_ns() - t) / (double)plan.each / 2;
		if (i % 2 == 0)
			puts[i] = timed(&p->n, plan.each) / 2;
		ratio[i] = puts[i] / raw[i];
	}
	*r = (struct raw_result){.tried = p->n.first,
		.valid = p->n.first,
		.each = plan.each,
		.put = bench_stat_of(puts, plan.batches),
		.raw = bench_stat_of(raw, plan.batches),
		.ratio = bench_stat_of(ratio, plan.batches)};
}

static void run_raw(struct program *p)
{
	char ranks[24];
	struct raw_result mine = {0};
	struct raw_result *all =
		p->b.rank ? NULL : bench_allocate(p->b.size * sizeof *all);
	perf_begin(&p->n, PERF_PUT, 8);
	if (p->n.active) {
		struct hand *hand = perf_hand_share(&p->n);
		mine.tried = p->n.first;
		if (hand)
			take_turns(p, hand, &mine);
		perf_hand_close(hand);
	}
	perf_end(&p->n);
	bench_gather(&p->b, &mine, sizeof mine, all);
	for (unsigned i = 0; all && i < p->b.size; i++) {
		const struct raw_result *r = &all[i];
		snprintf(ranks, sizeof ranks, "%u-%u", i, i + 1);
		if (r->tried && !r->valid)
			bench_note(&p->b,
				"raw hand-over left out: ranks %s cannot share a page "
				"through /proc/<pid>/fd",
				ranks);
		if (r->valid)
			BENCH_ROW(&p->b, BENCH_TEXT("ranks", ranks),
				BENCH_COUNT("pairs", r->put.n),
				BENCH_COUNT("round_trips", r->each),
				BENCH_REAL("put_8_ns", r->put.p50, 1),
				BENCH_REAL("raw_ns", r->raw.p50, 1),
				BENCH_REAL("ratio_median", r->ratio.p50, 2),
				BENCH_REAL("ratio_p10", r->ratio.p10, 2),
				BENCH_REAL("ratio_p90", r->ratio.p90, 2));
	}
	free(all);
}

/* ---- options ---- */

static const uint64_t default_sizes[] = {0, 1, 8, 16, 17, 32, 64, 100, 128, 256, 512,
	1000, 1024, 2048, 4096, 5000, 8192, 16384, 32768, 65536, 100000, 131072, 262144,
	524288, 1000003, 1048576, 2097152, 4194304};

static const char about[] =
	"usage: yod -sz 2 portalperf [options]\n"
	"Latency, bandwidth and rate of Portals operations between ranks 0 and 1,\n"
	"2 and 3, ...; with --sweep, of one operation by many message sizes.\n";

static const char legend[] =
	"put     ping-pong: half a round trip\n"
	"get     PtlGet to REPLY_END\n"
	"ack     PtlPut to ACK and SEND_END\n"
	"bidir   both put at once, until both messages are sent and there; MB/s of both\n"
	"stream  --window messages one way, their events taken, an empty put back\n"
	"rate    the same with 8 bytes\n"
	"nto1    the same from all other ranks to rank 0\n"
	"Time of one message, by batches of rounds (--each: by rounds; --sweep: by "
	"trials).  MB/s: 10^6 bytes "
	"in the median.\n"
	"START events with --starts only, no ACK but in ack; SEND_END, PUT_END, GET_END, "
	"REPLY_END "
	"taken.\n";

static struct bench_words tests = {perf_test_name, PERF_TESTS, program.test};
static const struct bench_option options[] = {
	{"test", "LIST", "default all; --sweep: one of them, default put",
		bench_set_words, &tests},
	{"sizes", "LIST", "message sizes in bytes; default 0 to 4M", bench_set_list,
		&program.sizes},
	{"iters", "N",
		"rounds for each size; default 20000 to 1K, 5000 to 64K, 1000 to 1M, 200 "
		"above",
		bench_set_number, &program.iters},
	{"window", "N", "stream, rate, nto1: messages before an answer; default 64",
		bench_set_number, &program.window},
	{"each", NULL, "time each round, not batches of them: true tails", bench_set_flag,
		&program.each},
	{"sweep", NULL,
		"sizes as NetPIPE has them: powers of two, the middles between them, "
		"each also some bytes less and more; no raw hand-over",
		bench_set_flag, &program.sweep},
	{"upper", "N", "--sweep: largest size; default 4M", bench_set_number,
		&program.upper},
	{"perturbation", "N", "--sweep: bytes less and more of each size; default 3",
		bench_set_number, &program.perturbation},
	{"time", "MS", "--sweep: for each size, about; default 100", bench_set_number,
		&program.budget_ms},
	{"no-send-end", NULL, "stream, rate, nto1: descriptors without SEND_END events",
		bench_set_flag, &program.n.silent},
	{"starts", NULL, "put, bidir: descriptors with START events, too", bench_set_flag,
		&program.b.starts},
	{"heap", NULL, "buffers from PtlXAlloc: in the shared heap", bench_set_flag,
		&program.n.heap},
	{"no-raw", NULL, "leave out the comparison with a raw cache line hand-over",
		bench_set_flag, &program.no_raw},
	{"poll", NULL, "wait with PtlEQPoll instead of PtlEQWait", bench_set_flag,
		&program.n.w.poll},
	{"yield", NULL,
		"wait with PtlEQGet, and sched_yield where nothing is there; raw "
		"likewise",
		bench_set_flag, &program.n.w.yields},
	{"busy", "N", "number of processes beside the job that never sleep",
		bench_set_number, &program.busy},
	{0}};

/* With START events, the other tests count events, or find the number of lost ones, as if
 * all were of one kind.  A sweep has one test. */
static void parse(struct program *p, int argc, char **argv)
{
	unsigned n = 0;
	bench_options(&p->b, options, argc, argv);
	for (unsigned i = 0; i < PERF_TESTS; i++) {
		n += p->test[i];
		if (p->b.starts && p->test[i] && i != PERF_PUT && i != PERF_BIDIR)
			bench_die(2,
				"--starts: --test has %s; expected put, bidir or both; "
				"leave %s out",
				perf_test_name[i], perf_test_name[i]);
	}
	if (p->sweep && (n > 1 || p->test[PERF_RATE] || p->test[PERF_NTO1]))
		bench_die(2,
			"--sweep: --test has rate, nto1 or several; expected put, get, "
			"ack, bidir or stream; name one of them");
	p->test[PERF_PUT] |= n == 0 && (p->sweep || p->b.starts);
	bench_all_words(&tests);
	bench_default_list(
		&p->sizes, default_sizes, sizeof default_sizes / sizeof default_sizes[0]);
}

/* Start, at rank 0 before it is pinned, processes that compete for the job's CPUs until
 * rank 0 ends. */
static void keep_busy(const struct program *p)
{
	pid_t self = getpid(), child = 1;
	for (uint64_t i = 0; p->b.rank == 0 && child > 0 && i < p->busy.value; i++)
		child = fork();
	if (child < 0)
		bench_die(1, "fork: %s; use a smaller --busy", strerror(errno));
	if (child)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (volatile unsigned turn = 0; getppid() == self; turn = turn)
		for (unsigned i = 0; i < 1u << 20; i++)
			turn = turn + 1;
	_exit(0);
}

int main(int argc, char **argv)
{
	struct program *p = &program;
	p->b = (struct bench){.program = "portalperf", .about = about, .legend = legend};
	parse(p, argc, argv);
	bench_want_ranks(&p->b, 2, UINT32_MAX);
	p->n.b = &p->b;
	p->n.window = (unsigned)p->window.value;
	p->n.largest =
		p->sweep ? p->upper.value : bench_largest(&p->sizes, PERF_RATE_BYTES);
	p->all = p->b.rank ? NULL : bench_allocate(p->b.size * sizeof *p->all);
	perf_open(&p->n);
	keep_busy(p);
	bench_begin(&p->b);
	if (p->sweep)
		run_sweep(p);
	for (unsigned t = 0; t < PERF_TESTS && !p->sweep; t++)
		for (unsigned i = 0; p->test[t] && i < p->sizes.n; i++)
			if (t != PERF_RATE)
				run(p, (enum perf_test)t, p->sizes.at[i]);
			else if (i == 0)
				run(p, PERF_RATE, PERF_RATE_BYTES);
	if (p->b.rank == 0 && !p->sweep)
		bench_section(&p->b, "raw");
	if (p->sweep || p->no_raw)
		bench_finish(&p->b);
	if (p->b.size <= p->b.ncpus || p->n.w.yields)
		run_raw(p);
	else if (p->b.rank == 0)
		bench_note(&p->b, "raw hand-over left out: it needs a CPU for each rank");
	bench_finish(&p->b);
}
