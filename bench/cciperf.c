/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cciperf - latency, rate and bandwidth of CCI beside Portals
 *
 *	yod -sz 2 cciperf [options]
 *
 * Each test takes turns between the ways of CCI, the corresponding puts or gets of
 * Portals in the same processes, and the raw hand-over of a cache line: a turn is a
 * batch of rounds of each.  A ratio is the median of those of the turns.  At the end
 * stand the figures of "SeaStar Unchained" (cci_paper.h).
 */
#include "cci_node.h"
#include "cci_paper.h"

#include <stdlib.h>
#include <unistd.h>

enum { MOST_TURNS = 200, BLOCKING_BYTES = 8, LATENCY_SIZES = 11, RMA_SIZES = 7 };

enum test { IDLE, LATENCY, COMPLETION, STREAM, RMA, HANDLE, TESTS };

static const char *const test_name[TESTS] = {
	"idle", "latency", "completion", "stream", "rma", "os_handle"};

struct program {
	struct bench b;
	bool test[TESTS];
	struct bench_list sizes, rma_sizes;
	struct bench_number window, turns;
	bool yields, idles;       /* idles: the connections of the test idle are there */
	struct perf_node n, copy; /* copy: CCI's */
	struct cci_node c;
	struct perf_page *page;
	struct cci_figures figures;
};

/* One way of a test, and the times of a message or operation in each turn. */
struct runner {
	void (*run)(struct program *p, uint64_t count);
	double messages; /* of a round */
	double sample[MOST_TURNS];
	void (*before)(struct program *p); /* a batch; NULL: nothing to do */
};

/* ---- the ways that take turns ---- */

static void uu(struct program *p, uint64_t count)
{
	cci_ping_pong(&p->c, CCI_WAY_UU, count);
}

static void ro(struct program *p, uint64_t count)
{
	cci_ping_pong(&p->c, CCI_WAY_RO, count);
}

static void ru(struct program *p, uint64_t count)
{
	cci_ping_pong(&p->c, CCI_WAY_RU, count);
}

static void put(struct program *p, uint64_t count)
{
	perf_rounds(&p->n, count);
}

/* A ping-pong of puts with ACK: each rank also waits for the ACK of its own. */
static void put_acked(struct program *p, uint64_t count)
{
	struct perf_node *n = &p->n;
	uint64_t acked = n->w.seen[PTL_EVENT_ACK];
	for (uint64_t i = 1; i <= count; i++, n->message++) {
		if (!n->first)
			bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
		perf_stamp(n);
		perf_put_for_ack(n, 0);
		bench_await(&n->w, PTL_EVENT_PUT_END, n->message + 1);
		bench_await(&n->w, PTL_EVENT_SEND_END, n->message + 1);
		bench_await(&n->w, PTL_EVENT_ACK, acked + i);
	}
}

static void raw(struct program *p, uint64_t count)
{
	perf_page_bounce(p->page, p->n.first, count, p->yields);
}

static void ro_complete(struct program *p, uint64_t count)
{
	cci_complete(&p->c, CCI_WAY_RO, count);
}

static void ru_complete(struct program *p, uint64_t count)
{
	cci_complete(&p->c, CCI_WAY_RU, count);
}

static void uu_windows(struct program *p, uint64_t count)
{
	cci_windows(&p->c, CCI_WAY_UU, count);
}

static void ro_windows(struct program *p, uint64_t count)
{
	cci_windows(&p->c, CCI_WAY_RO, count);
}

static void ru_windows(struct program *p, uint64_t count)
{
	cci_windows(&p->c, CCI_WAY_RU, count);
}

static void rma_write(struct program *p, uint64_t count)
{
	cci_rma_rounds(&p->c, CCI_FLAG_WRITE, count);
}

static void rma_read(struct program *p, uint64_t count)
{
	cci_rma_rounds(&p->c, CCI_FLAG_READ, count);
}

static void rma_windows(struct program *p, uint64_t count)
{
	cci_rma_windows(&p->c, count);
}

static void blocking(struct program *p, uint64_t count)
{
	cci_ping_pong_blocking(&p->c, count);
}

/* ---- idle endpoints beside Portals ---- */

/* Send mine from the second rank to the first one, and return there whether it is true at
 * both.  As in perf_agree, do not count the event of the note. */
static bool both_have_it(struct perf_node *n, bool mine)
{
	if (!n->first) {
		perf_tell(n, n->peer, mine);
		return mine;
	}
	bench_await(&n->w, PTL_EVENT_PUT_END, n->w.seen[PTL_EVENT_PUT_END] + 1);
	n->w.seen[PTL_EVENT_PUT_END]--;
	return mine && n->w.last.hdr_data;
}

static void close_idle(struct program *p)
{
	if (p->idles)
		cci_idle_close();
	p->idles = false;
}

static void without_cci(struct program *p)
{
	close_idle(p);
	(void)both_have_it(&p->n, true);
}

static void with_idle_cci(struct program *p)
{
	if (!p->idles)
		cci_idle_open(&p->n);
	p->idles = true;
	(void)both_have_it(&p->n, true);
}

/* ---- turns ---- */

/* The order rotates, so that a slow drift does not show in the ratios. */
static void take_turns(
	struct program *p, struct runner *r, unsigned n, uint64_t each, uint64_t turns)
{
	for (unsigned k = 0; k < n; k++)
		r[k].run(p, each / 4 + 1); /* warm */
	for (uint64_t i = 0; i < turns; i++)
		for (unsigned k = 0; k < n; k++) {
			struct runner *now = &r[(k + i) % n];
			if (now->before)
				now->before(p);
			double t = bench_now_ns();
			now->run(p, each);
			now->sample[i] =
				(bench_now_ns() - t) / ((double)each * now->messages);
		}
}

static double median(const double *sample, uint64_t turns)
{
	double sorted[MOST_TURNS];
	memcpy(sorted, sample, turns * sizeof *sample);
	return bench_stat_of(sorted, turns).p50;
}

static double ratio(const struct runner *a, const struct runner *b, uint64_t turns)
{
	double quotient[MOST_TURNS];
	for (uint64_t i = 0; i < turns; i++)
		quotient[i] = a->sample[i] / b->sample[i];
	return bench_stat_of(quotient, turns).p50;
}

/* Return the rounds of a batch: some 1 ms of them. */
static uint64_t rounds_of(const struct program *p, uint64_t bytes, uint64_t messages)
{
	uint64_t rounds = p->b.quick          ? 20
			  : bytes <= 1 << 10  ? 2000
			  : bytes <= 16 << 10 ? 500
			  : bytes <= 64 << 10 ? 100
					      : 10;
	return rounds / messages ? rounds / messages : 1;
}

/* Run the turns of a test of CCI beside one of Portals.  Rank 0 has the samples. */
static void run(struct program *p, enum perf_test test, uint64_t bytes, struct runner *r,
	unsigned n, uint64_t messages)
{
	uint64_t counted = p->copy.message;
	perf_begin(&p->n, test, bytes);
	if (p->n.active) {
		perf_full_rounds(&p->n);
		p->copy = p->n;
		p->copy.message = counted;
		take_turns(p, r, n, rounds_of(p, bytes, messages), p->turns.value);
		perf_full_rounds(&p->n);
	}
	perf_end(&p->n);
}

/* ---- tests ---- */

static void print_idle(struct program *p, const char *what, const struct runner *r)
{
	uint64_t t = p->turns.value;
	if (p->b.rank == 0)
		BENCH_ROW(&p->b, BENCH_TEXT("test", "idle"), BENCH_TEXT("of", what),
			BENCH_COUNT("connections", CCI_IDLE),
			BENCH_REAL("without_ns", median(r[0].sample, t), 1),
			BENCH_REAL("with_ns", median(r[1].sample, t), 1),
			BENCH_REAL("with_per_without", ratio(&r[1], &r[0], t), 3));
}

static void idle(struct program *p)
{
	static struct runner latency[2] = {
		{put, 2, {0}, without_cci}, {put, 2, {0}, with_idle_cci}};
	static struct runner rate[2] = {
		{put, 0, {0}, without_cci}, {put, 0, {0}, with_idle_cci}};
	rate[0].messages = rate[1].messages = (double)p->n.window;
	run(p, PERF_PUT, 8, latency, 2, 1);
	print_idle(p, "put", latency);
	run(p, PERF_STREAM, 8, rate, 2, p->n.window / 4 + 1);
	print_idle(p, "puts", rate);
	close_idle(p);
}

static void latency(struct program *p, uint64_t bytes)
{
	enum { N = 6 };
	static struct runner r[N] = {{uu, 2, {0}, NULL}, {ro, 2, {0}, NULL},
		{ru, 2, {0}, NULL}, {put, 2, {0}, NULL}, {put_acked, 2, {0}, NULL},
		{raw, 2, {0}, NULL}};
	uint64_t t = p->turns.value;
	run(p, PERF_PUT, bytes, r, p->page ? N : N - 1, 1);
	if (p->b.rank)
		return;
	struct cci_latency l = {.bytes = bytes,
		.uu = median(r[0].sample, t),
		.ro = median(r[1].sample, t),
		.put = median(r[3].sample, t),
		.acked = median(r[4].sample, t)};
	cci_figures_latency(&p->figures, &l);
	double raw_ns = p->page ? median(r[5].sample, t) : 0;
	BENCH_ROW(&p->b, BENCH_TEXT("test", "latency"), BENCH_COUNT("bytes", bytes),
		BENCH_REAL("uu_ns", l.uu, 1), BENCH_REAL("ro_ns", l.ro, 1),
		BENCH_REAL("ru_ns", median(r[2].sample, t), 1),
		BENCH_REAL("put_ns", l.put, 1), BENCH_REAL("put_ack_ns", l.acked, 1),
		BENCH_REAL("raw_ns", raw_ns, 1),
		BENCH_REAL("uu_per_put", ratio(&r[0], &r[3], t), 3),
		BENCH_REAL("ro_per_ack", ratio(&r[1], &r[4], t), 3),
		BENCH_REAL("ru_per_ack", ratio(&r[2], &r[4], t), 3));
}

static void completion(struct program *p, uint64_t bytes)
{
	static struct runner r[3] = {{ro_complete, 1, {0}, NULL},
		{ru_complete, 1, {0}, NULL}, {put, 1, {0}, NULL}};
	uint64_t t = p->turns.value;
	run(p, PERF_ACK, bytes, r, 3, 1);
	if (p->b.rank == 0)
		BENCH_ROW(&p->b, BENCH_TEXT("test", "completion"),
			BENCH_COUNT("bytes", bytes),
			BENCH_REAL("ro_ns", median(r[0].sample, t), 1),
			BENCH_REAL("ru_ns", median(r[1].sample, t), 1),
			BENCH_REAL("put_ack_ns", median(r[2].sample, t), 1),
			BENCH_REAL("ro_per_ack", ratio(&r[0], &r[2], t), 3),
			BENCH_REAL("ru_per_ack", ratio(&r[1], &r[2], t), 3));
}

static void stream(struct program *p, uint64_t bytes)
{
	static struct runner r[4] = {{uu_windows, 0, {0}, NULL},
		{ro_windows, 0, {0}, NULL}, {ru_windows, 0, {0}, NULL},
		{put, 0, {0}, NULL}};
	uint64_t t = p->turns.value;
	for (unsigned k = 0; k < 4; k++)
		r[k].messages = (double)p->n.window;
	run(p, PERF_STREAM, bytes, r, 4, p->n.window / 4 + 1);
	if (p->b.rank)
		return;
	struct cci_rate rate = {.bytes = bytes,
		.uu = 1e3 / median(r[0].sample, t),
		.ro = 1e3 / median(r[1].sample, t),
		.put = 1e3 / median(r[3].sample, t)};
	cci_figures_rate(&p->figures, &rate);
	BENCH_ROW(&p->b, BENCH_TEXT("test", "stream"), BENCH_COUNT("bytes", bytes),
		BENCH_REAL("uu_Mmsg_per_s", rate.uu, 3),
		BENCH_REAL("ro_Mmsg_per_s", rate.ro, 3),
		BENCH_REAL("ru_Mmsg_per_s", 1e3 / median(r[2].sample, t), 3),
		BENCH_REAL("put_Mmsg_per_s", rate.put, 3),
		BENCH_REAL("uu_MB_per_s", rate.uu * (double)bytes, 1),
		BENCH_REAL("uu_per_put", ratio(&r[3], &r[0], t), 3),
		BENCH_REAL("ro_per_put", ratio(&r[3], &r[1], t), 3),
		BENCH_REAL("ro_per_uu", ratio(&r[0], &r[1], t), 3));
}

static void print_rma(struct program *p, const char *test, uint64_t bytes,
	const struct runner *r, const char *beside)
{
	uint64_t t = p->turns.value;
	double rma = median(r[0].sample, t), other = median(r[1].sample, t);
	if (p->b.rank == 0)
		BENCH_ROW(&p->b, BENCH_TEXT("test", test), BENCH_TEXT("beside", beside),
			BENCH_COUNT("bytes", bytes), BENCH_REAL("rma_ns", rma, 1),
			BENCH_REAL("portals_ns", other, 1),
			BENCH_REAL("rma_MB_per_s", (double)bytes * 1e3 / rma, 1),
			BENCH_REAL("portals_MB_per_s", (double)bytes * 1e3 / other, 1),
			BENCH_REAL("bandwidth_ratio", ratio(&r[1], &r[0], t), 3));
}

static void rma(struct program *p, uint64_t bytes)
{
	static struct runner writes[2] = {{rma_write, 1, {0}, NULL}, {put, 1, {0}, NULL}};
	static struct runner reads[2] = {{rma_read, 1, {0}, NULL}, {put, 1, {0}, NULL}};
	static struct runner streams[2] = {
		{rma_windows, 0, {0}, NULL}, {put, 0, {0}, NULL}};
	streams[0].messages = streams[1].messages = (double)p->n.window;
	run(p, PERF_ACK, bytes, writes, 2, 1);
	print_rma(p, "write", bytes, writes, "put to ACK");
	run(p, PERF_GET, bytes, reads, 2, 1);
	print_rma(p, "read", bytes, reads, "get");
	run(p, PERF_STREAM, bytes, streams, 2, p->n.window / 4 + 1);
	print_rma(p, "writes", bytes, streams, "puts");
}

static void os_handle(struct program *p)
{
	static struct runner r[1] = {{blocking, 2, {0}, NULL}};
	uint64_t t = p->turns.value;
	run(p, PERF_PUT, BLOCKING_BYTES, r, 1, 10);
	struct bench_stat s = bench_stat_of(r[0].sample, t);
	if (p->b.rank == 0)
		BENCH_ROW(&p->b, BENCH_TEXT("test", "os_handle"),
			BENCH_COUNT("bytes", BLOCKING_BYTES),
			BENCH_REAL("p50_ns", s.p50, 1), BENCH_REAL("p90_ns", s.p90, 1),
			BENCH_REAL("min_ns", s.min, 1));
}

static void run_sizes(struct program *p, enum test test, const struct bench_list *sizes,
	void (*one)(struct program *p, uint64_t bytes))
{
	for (unsigned i = 0; p->test[test] && i < sizes->n; i++)
		one(p, sizes->at[i]);
}

static void run_tests(struct program *p)
{
	run_sizes(p, LATENCY, &p->sizes, latency);
	run_sizes(p, COMPLETION, &p->sizes, completion);
	run_sizes(p, STREAM, &p->sizes, stream);
	run_sizes(p, RMA, &p->rma_sizes, rma);
	if (p->test[HANDLE])
		os_handle(p);
	if (p->b.rank == 0 && p->test[LATENCY] && p->test[STREAM])
		cci_figures_print(&p->b, &p->figures);
}

/* ---- */

static const char about[] =
	"usage: yod -sz 2 cciperf [options]\n"
	"Latency, rate and bandwidth of CCI between ranks 0 and 1, beside Portals.\n";

static const char legend[] =
	"idle        puts of 8 bytes, one way, or windows of them, without CCI and with\n"
	"            an idle endpoint that has 99 connections\n"
	"latency     ping-pong: half a round trip; put+ACK waits for the ACK, too\n"
	"completion  one message to its SEND event, beside a put to its ACK\n"
	"stream      --window messages one way, their events taken, an empty one back\n"
	"write, read one RMA to its SEND event, beside a put to its ACK, and a get\n"
	"writes      --window RMA writes one way, beside as many puts\n"
	"os_handle   ping-pong of RO, both ranks sleep in poll(): half a round trip\n"
	"Medians of the turns.  Ratios above 1: in latency Portals is faster, in rates "
	"and "
	"bandwidth CCI.\n";

static const uint64_t default_sizes[] = {
	0, 8, 32, 33, 64, 128, 256, 512, 1024, 2048, 4096};
static const uint64_t default_rma[] = {8, 512, 4096, 16384, 65536, 262144, 1048576};

static void set_list(struct bench_list *list, const uint64_t *at, unsigned n)
{
	if (list->n)
		return;
	memcpy(list->at, at, n * sizeof *at);
	list->n = n;
}

static uint64_t largest(const struct program *p)
{
	uint64_t most = 8;
	for (unsigned i = 0; i < p->sizes.n; i++)
		most = p->sizes.at[i] > most ? p->sizes.at[i] : most;
	for (unsigned i = 0; i < p->rma_sizes.n; i++)
		most = p->rma_sizes.at[i] > most ? p->rma_sizes.at[i] : most;
	return most;
}

static void options(struct program *p, int argc, char **argv)
{
	p->sizes.most = 4096;
	p->rma_sizes.most = 1 << 30;
	p->window = (struct bench_number){64, 1, 1024};
	p->turns = (struct bench_number){30, 1, MOST_TURNS};
	struct bench_words tests = {test_name, TESTS, p->test};
	const struct bench_option rows[] = {{"test", "LIST",
						    "of idle, latency, completion, "
						    "stream, rma, os_handle; default all",
						    "idle, latency, completion, stream, "
						    "rma, os_handle, or several, as in "
						    "latency,rma",
						    bench_set_words, &tests},
		{"sizes", "LIST", "of message sizes; default 0 to 4096",
			"bytes, 0 to 4096, as in 8,64,1K", bench_set_list, &p->sizes},
		{"rma", "LIST", "of RMA sizes; default 8 to 1M",
			"bytes, 1 to 1024M, as in 4K,1M", bench_set_list, &p->rma_sizes},
		{"window", "N", "messages before an answer; default 64",
			"messages, 1 to 1024", bench_set_number, &p->window},
		{"turns", "N", "batches of each kind in a test; default 30",
			"turns, 1 to 200", bench_set_number, &p->turns},
		{"yield", NULL, "sched_yield where nothing is there", NULL,
			bench_set_flag, &p->yields},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	bench_options(&p->b, rows, argc, argv);
	bench_all_words(&tests);
	set_list(&p->sizes, default_sizes, LATENCY_SIZES);
	set_list(&p->rma_sizes, default_rma, RMA_SIZES);
	if (p->b.quick)
		p->turns.value = 3;
}

static void want_two_ranks(const struct bench *b)
{
	if (b->size == 2)
		return;
	if (b->rank == 0)
		fprintf(stderr, "cciperf: %u ranks; expected 2; use yod -sz 2\n",
			b->size);
	bench_leave(2);
}

/* Share a page for the raw hand-over; without /proc/<pid>/fd there is none. */
static void share_page(struct program *p)
{
	int fd = -1;
	if (p->n.first)
		p->page = perf_page_make(&fd);
	uint64_t at =
		perf_agree(&p->n, p->page ? (uint64_t)getpid() << 32 | (unsigned)fd : 0);
	if (!p->n.first && at)
		p->page = perf_page_open((uint32_t)(at >> 32), (uint32_t)at);
	if (!both_have_it(&p->n, p->page != NULL)) {
		perf_page_close(p->page);
		p->page = NULL;
	}
	if (fd >= 0)
		close(fd);
}

static void open_node(struct program *p)
{
	p->n.b = &p->b;
	p->n.largest = largest(p);
	p->n.window = (unsigned)p->window.value;
	p->n.w.yields = p->c.yields = p->yields;
	p->c.p = &p->copy;
	perf_open(&p->n);
}

static void begin(struct program *p)
{
	perf_begin(&p->n, PERF_PUT, 8);
	p->copy = p->n;
	cci_node_open(&p->c);
	share_page(p);
	perf_full_rounds(&p->n);
	perf_end(&p->n);
}

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "cciperf", .about = about, .legend = legend}};
	options(&p, argc, argv);
	want_two_ranks(&p.b);
	open_node(&p);
	bench_begin(&p.b);
	if (p.test[IDLE])
		idle(&p);
	begin(&p);
	run_tests(&p);
	bench_barrier();
	cci_node_close(&p.c);
	bench_finish(&p.b);
}
