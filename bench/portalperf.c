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

/* A rank's report to rank 0 after each test and size: times of a message. */
struct result {
	bool valid;
	uint64_t rounds;
	struct bench_stat ns;
};

static struct program {
	struct bench b;
	bool test[PERF_TESTS];
	struct bench_list sizes;
	struct bench_number iters;  /* 0: depends on the size */
	struct bench_number window; /* messages */
	struct bench_number busy;   /* processes beside the job that never sleep */
	struct bench_number upper, perturbation; /* of a sweep */
	bool each, sweep;
	struct perf_node n;
	struct result *all; /* rank 0 */
	uint64_t best_at;   /* in a sweep: the size with the most MB/s */
	double best_mb;
} program = {.sizes = {.most = MOST_BYTES},
	.iters = {0, 1, 1000000000},
	.window = {64, 1, MOST_WINDOW},
	.busy = {0, 0, 1024},
	.upper = {4 << 20, 1, MOST_BYTES},
	.perturbation = {3, 0, 64}};

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
	for (uint64_t i = 0; i < plan.batches; i++) {
		double t = bench_now_ns();
		perf_rounds(n, plan.each);
		sample[i] = (bench_now_ns() - t) / (double)plan.each / messages;
	}
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
		double mb = bytes * 1e3 / s.p50;
		if (!p->all[i].valid)
			continue;
		p->best_at = mb > p->best_mb ? length : p->best_at;
		p->best_mb = mb > p->best_mb ? mb : p->best_mb;
		snprintf(ranks, sizeof ranks, "%u-%u", i,
			test == PERF_NTO1 ? p->b.size - 1 : i + 1);
		BENCH_ROW(&p->b, BENCH_TEXT("test", perf_test_name[test]),
			BENCH_TEXT("ranks", ranks), BENCH_COUNT("bytes", length),
			BENCH_COUNT("rounds", p->all[i].rounds),
			BENCH_COUNT("samples", s.n), BENCH_PERCENTILES(s, "ns", 1, 1),
			BENCH_REAL("p99.9_ns", s.p999, 1), BENCH_REAL("max_ns", s.max, 1),
			BENCH_REAL("min_ns", s.min, 1), BENCH_REAL("MB_per_s", mb, 1),
			BENCH_REAL("Mmsg_per_s", 1e3 / s.p50, 3));
	}
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
	"Time of one message, by batches of rounds (--each: by rounds).  MB/s: 10^6 "
	"bytes "
	"in the median.\n"
	"START events with --starts only, no ACK but in ack; SEND_END, PUT_END, GET_END, "
	"REPLY_END "
	"taken.\n";

static struct bench_words tests = {perf_test_name, PERF_TESTS, program.test};
static const struct bench_option options[] = {
	{"test", "LIST", "default all; --sweep: default put", bench_set_words, &tests},
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
		"each also some bytes less and more",
		bench_set_flag, &program.sweep},
	{"upper", "N", "--sweep: largest size; default 4M", bench_set_number,
		&program.upper},
	{"perturbation", "N", "--sweep: bytes less and more of each size; default 3",
		bench_set_number, &program.perturbation},
	{"no-send-end", NULL, "stream, rate, nto1: descriptors without SEND_END events",
		bench_set_flag, &program.n.silent},
	{"starts", NULL, "put, bidir: descriptors with START events, too", bench_set_flag,
		&program.b.starts},
	{"heap", NULL, "buffers from PtlXAlloc: in the shared heap", bench_set_flag,
		&program.n.heap},
	{"poll", NULL, "wait with PtlEQPoll instead of PtlEQWait", bench_set_flag,
		&program.n.w.poll},
	{"yield", NULL, "wait with PtlEQGet, and sched_yield where nothing is there",
		bench_set_flag, &program.n.w.yields},
	{"busy", "N", "number of processes beside the job that never sleep",
		bench_set_number, &program.busy},
	{0}};

/* Set the sizes of NetPIPE: powers of two, the middles between them, and each with a few
 * bytes less and more. */
static void sweep(struct program *p)
{
	struct bench_list *l = &p->sizes;
	uint64_t d = p->perturbation.value;
	l->n = 0;
	for (uint64_t power = 1; power <= p->upper.value; power *= 2)
		for (uint64_t half = 2; half < (power > 1 ? 4 : 3); half++) {
			uint64_t bytes = power * half / 2, less = bytes > 2 * d ? d : 0;
			for (uint64_t at = bytes - less; at <= bytes + less;
				at += less ? less : 1)
				if (at <= p->upper.value &&
					(!l->n || at > l->at[l->n - 1]))
					l->at[l->n++] = at;
		}
}

/* With START events, the other tests count events, or find the number of lost ones, as if
 * all were of one kind. */
static void parse(struct program *p, int argc, char **argv)
{
	unsigned n = 0;
	bench_options(&p->b, options, argc, argv);
	for (unsigned i = 0; i < PERF_TESTS; i++) {
		n += p->test[i];
		if (p->b.starts && p->test[i] && i != PERF_PUT && i != PERF_BIDIR)
			bench_refuse(&p->b,
				"--starts: --test has %s; expected put, bidir or both; "
				"leave %s out",
				perf_test_name[i], perf_test_name[i]);
	}
	if (p->sweep)
		sweep(p);
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
	p->n.largest = bench_largest(&p->sizes, PERF_RATE_BYTES);
	p->all = p->b.rank ? NULL : bench_allocate(p->b.size * sizeof *p->all);
	perf_open(&p->n);
	keep_busy(p);
	bench_begin(&p->b);
	for (unsigned t = 0; t < PERF_TESTS; t++)
		for (unsigned i = 0; p->test[t] && i < p->sizes.n; i++)
			if (t != PERF_RATE)
				run(p, (enum perf_test)t, p->sizes.at[i]);
			else if (i == 0)
				run(p, PERF_RATE, PERF_RATE_BYTES);
	if (p->b.rank == 0 && p->sweep)
		bench_note(&p->b, "\nmost: %.1f MB/s, at %" PRIu64 " bytes", p->best_mb,
			p->best_at);
	bench_finish(&p->b);
}
