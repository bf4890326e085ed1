/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portalperf - latency, bandwidth and rate of Portals operations
 *
 *	yod -sz 2 portalperf [options]
 *
 * The messages are those of perf.h.  This file chooses the tests and their sizes, reads
 * the clock once for each batch, and sends the results to rank 0.
 */
#include "perf_opt.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { RAW_MOST = 50 };

/* A rank's report to rank 0 after each test and size: times of a message. */
struct result {
	bool valid;
	uint64_t rounds, messages;
	struct bench_stat ns;
};

struct raw_result {
	bool tried, valid;
	uint64_t pairs, each;
	struct bench_stat put, raw, ratio;
	double put_mean, raw_mean;
};

struct program {
	struct bench b;
	struct perf_opt opt;
	struct perf_node n;
	struct result *all; /* rank 0 */
	double *sample;
};

/* ---- one test at one size ---- */

/* Return the messages of these rounds; a round trip of a ping-pong has two. */
static double messages_of(struct perf_node *n, uint64_t rounds)
{
	return (double)perf_messages(n, rounds) * (n->test == PERF_PUT ? 2 : 1);
}

static void timed_batches(struct program *p, const struct perf_plan *plan)
{
	double part = 1 / messages_of(&p->n, plan->each);
	for (uint64_t i = 0; i < plan->batches; i++) {
		double t = bench_now_ns();
		perf_rounds(&p->n, plan->each);
		p->sample[i] = (bench_now_ns() - t) * part;
	}
}

static void measure(struct program *p, struct result *r)
{
	struct perf_plan plan = perf_plan_of(&p->opt, &p->b, p->n.test, p->n.length);
	p->sample = malloc(plan.batches * sizeof *p->sample);
	if (!p->sample)
		bench_die(1, "no memory for %llu samples; use fewer --iters",
			(unsigned long long)plan.batches);
	perf_full_rounds(&p->n);
	perf_rounds(&p->n, plan.warm);
	timed_batches(p, &plan);
	r->rounds = plan.batches * plan.each;
	r->messages = perf_messages(&p->n, r->rounds);
	r->ns = bench_stat_of(p->sample, plan.batches);
	r->valid = p->n.test == PERF_NTO1 ? p->b.rank == 0 : p->n.first;
	perf_full_rounds(&p->n);
	free(p->sample);
}

static void print(struct program *p, unsigned rank, const struct result *r)
{
	char ranks[24];
	unsigned other = p->n.test == PERF_NTO1 ? p->b.size - 1 : rank + 1;
	double bytes = (double)p->n.length * (p->n.test == PERF_BIDIR ? 2 : 1);
	snprintf(ranks, sizeof ranks, "%u-%u", rank, other);
	BENCH_ROW(&p->b, BENCH_TEXT("test", perf_test_name[p->n.test]),
		BENCH_TEXT("ranks", ranks), BENCH_COUNT("bytes", p->n.length),
		BENCH_COUNT("rounds", r->rounds), BENCH_COUNT("samples", r->ns.n),
		BENCH_REAL("p50_ns", r->ns.p50, 1), BENCH_REAL("p90_ns", r->ns.p90, 1),
		BENCH_REAL("p99_ns", r->ns.p99, 1), BENCH_REAL("p99.9_ns", r->ns.p999, 1),
		BENCH_REAL("max_ns", r->ns.max, 1), BENCH_REAL("min_ns", r->ns.min, 1),
		BENCH_REAL("MB_per_s", bytes * 1e3 / r->ns.p50, 1),
		BENCH_REAL("Mmsg_per_s", 1e3 / r->ns.p50, 3));
}

static void run(struct program *p, enum perf_test test, uint64_t length)
{
	struct result mine = {0};
	perf_begin(&p->n, test, length);
	if (p->n.active)
		measure(p, &mine);
	perf_end(&p->n);
	bench_gather(&p->b, &mine, sizeof mine, p->all);
	for (unsigned i = 0; p->all && i < p->b.size; i++)
		if (p->all[i].valid)
			print(p, i, &p->all[i]);
}

static void run_tests(struct program *p)
{
	for (unsigned t = 0; t < PERF_TESTS; t++)
		for (unsigned i = 0; p->opt.test[t] && i < p->opt.sizes.n; i++)
			if (t != PERF_RATE)
				run(p, (enum perf_test)t, p->opt.sizes.at[i]);
			else if (i == 0)
				run(p, PERF_RATE, PERF_RATE_BYTES);
}

/* ---- raw hand-over and 8-byte puts in turns ---- */

static struct perf_page *share_page(struct perf_node *n)
{
	int fd;
	struct perf_page *page = perf_page_make(&fd);
	perf_tell(n, n->peer, page ? (uint64_t)getpid() << 32 | (unsigned)fd : 0);
	bench_await(&n->w, PTL_EVENT_PUT_END, 1);
	if (fd >= 0)
		close(fd);
	if (page && n->w.last.hdr_data)
		return page;
	perf_page_close(page);
	return NULL;
}

static struct perf_page *take_page(struct perf_node *n)
{
	bench_await(&n->w, PTL_EVENT_PUT_END, 1);
	uint64_t hdr = n->w.last.hdr_data;
	struct perf_page *page =
		hdr ? perf_page_open((uint32_t)(hdr >> 32), (uint32_t)hdr) : NULL;
	perf_tell(n, n->peer, page != NULL);
	return page;
}

static double timed_bounce(struct perf_node *n, struct perf_page *page, uint64_t count)
{
	double t = bench_now_ns();
	perf_page_bounce(page, n->first, count, n->w.yields);
	return (bench_now_ns() - t) / (double)count / 2;
}

static double timed_puts(struct perf_node *n, uint64_t count)
{
	double t = bench_now_ns();
	perf_rounds(n, count);
	return (bench_now_ns() - t) / (double)count / 2;
}

static double mean(const double *sample, uint64_t n)
{
	double sum = 0;
	for (uint64_t i = 0; i < n; i++)
		sum += sample[i];
	return sum / (double)n;
}

/* Time hand-overs and puts in turns.  Alternate their order, so that a slow drift does
 * not show in the ratios. */
static void take_turns(struct program *p, struct perf_page *page, struct raw_result *r)
{
	struct perf_plan plan = perf_plan_raw(&p->opt, &p->b);
	double raw[RAW_MOST], puts[RAW_MOST], ratio[RAW_MOST];
	perf_rounds(&p->n, plan.warm);
	perf_page_bounce(page, p->n.first, plan.warm, p->n.w.yields);
	for (uint64_t i = 0; i < plan.batches; i++) {
		if (i % 2)
			puts[i] = timed_puts(&p->n, plan.each);
		raw[i] = timed_bounce(&p->n, page, plan.each);
		if (i % 2 == 0)
			puts[i] = timed_puts(&p->n, plan.each);
		ratio[i] = puts[i] / raw[i];
	}
	r->valid = p->n.first;
	r->pairs = plan.batches;
	r->each = plan.each;
	r->put_mean = mean(puts, plan.batches);
	r->raw_mean = mean(raw, plan.batches);
	r->put = bench_stat_of(puts, plan.batches);
	r->raw = bench_stat_of(raw, plan.batches);
	r->ratio = bench_stat_of(ratio, plan.batches);
}

static void measure_raw(struct program *p, struct raw_result *r)
{
	struct perf_page *page = p->n.first ? share_page(&p->n) : take_page(&p->n);
	p->n.w.seen[PTL_EVENT_PUT_END] = 0;
	r->tried = p->n.first;
	if (page)
		take_turns(p, page, r);
	perf_page_close(page);
}

static void print_raw(struct program *p, unsigned rank, const struct raw_result *r)
{
	char ranks[24];
	snprintf(ranks, sizeof ranks, "%u-%u", rank, rank + 1);
	if (!r->valid) {
		bench_note(&p->b,
			"raw hand-over left out: ranks %s cannot share a page through "
			"/proc/<pid>/fd",
			ranks);
		return;
	}
	BENCH_ROW(&p->b, BENCH_TEXT("ranks", ranks), BENCH_COUNT("pairs", r->pairs),
		BENCH_COUNT("round_trips", r->each),
		BENCH_REAL("put_8_ns", r->put.p50, 1),
		BENCH_REAL("raw_ns", r->raw.p50, 1),
		BENCH_REAL("put_8_mean_ns", r->put_mean, 1),
		BENCH_REAL("raw_mean_ns", r->raw_mean, 1),
		BENCH_REAL("ratio_median", r->ratio.p50, 2),
		BENCH_REAL("ratio_p10", r->ratio.p10, 2),
		BENCH_REAL("ratio_p90", r->ratio.p90, 2));
}

static void compare_raw(struct program *p)
{
	struct raw_result mine = {0};
	struct raw_result *all =
		p->b.rank ? NULL : bench_allocate(p->b.size * sizeof *all);
	perf_begin(&p->n, PERF_PUT, 8);
	if (p->n.active)
		measure_raw(p, &mine);
	perf_end(&p->n);
	bench_gather(&p->b, &mine, sizeof mine, all);
	for (unsigned i = 0; all && i < p->b.size; i++)
		if (all[i].tried)
			print_raw(p, i, &all[i]);
	free(all);
}

static void run_raw(struct program *p)
{
	if (p->b.rank == 0)
		bench_section(&p->b, "raw");
	if (p->opt.no_raw)
		return;
	if (p->b.size <= p->b.ncpus || p->opt.yields)
		compare_raw(p);
	else if (p->b.rank == 0)
		bench_note(&p->b, "raw hand-over left out: it needs a CPU for each rank");
}

/* ---- */

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

static void open_node(struct program *p)
{
	p->n.b = &p->b;
	p->n.largest = perf_opt_largest(&p->opt);
	p->n.window = (unsigned)p->opt.window.value;
	p->n.silent = p->opt.silent;
	p->n.heap = p->opt.heap;
	p->n.w.poll = p->opt.poll;
	p->n.w.yields = p->opt.yields;
	p->all = p->b.rank ? NULL : bench_allocate(p->b.size * sizeof *p->all);
	perf_open(&p->n);
}

static void want_ranks(const struct bench *b)
{
	if (b->size > 1)
		return;
	fprintf(stderr, "portalperf: 1 rank; expected 2 or more; use yod -sz 2\n");
	bench_leave(2);
}

static _Noreturn void burn(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (volatile unsigned turn = 0; getppid() == parent; turn = turn)
		for (unsigned i = 0; i < 1u << 20; i++)
			turn = turn + 1;
	_exit(0);
}

/* Start, at rank 0 before it is pinned, processes that compete for the job's CPUs until
 * rank 0 ends. */
static void keep_busy(const struct program *p)
{
	pid_t self = getpid();
	for (uint64_t i = 0; p->b.rank == 0 && i < p->opt.busy.value; i++)
		switch (fork()) {
		case 0:
			burn(self);
		case -1:
			bench_die(1, "fork: %s; use a smaller --busy", strerror(errno));
		default:
			break;
		}
}

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "portalperf", .about = perf_about, .legend = legend}};
	perf_opt_parse(&p.opt, &p.b, argc, argv);
	want_ranks(&p.b);
	open_node(&p);
	keep_busy(&p);
	bench_begin(&p.b);
	run_tests(&p);
	run_raw(&p);
	free(p.all);
	bench_finish(&p.b);
}
