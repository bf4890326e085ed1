/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cciperf - latency, rate and bandwidth of CCI beside Portals
 *
 *	yod -sz 2 cciperf [options]
 *
 * Each test takes turns between the ways of CCI, the corresponding puts or gets of
 * Portals in the same processes, and the raw hand-over of a cache line: a turn is a
 * batch of rounds of each.  A ratio is the median of those of the turns.
 */
#include "cci_node.h"

enum { MOST_TURNS = 200, MOST_WAYS = 6, BLOCKING_BYTES = 8 };
enum test { IDLE, LATENCY, COMPLETION, STREAM, RMA, HANDLE, TESTS };

static const char *const test_name[TESTS] = {
	"idle", "latency", "completion", "stream", "rma", "os_handle"};

static struct program {
	struct bench b;
	bool test[TESTS];
	struct bench_list sizes, rma_sizes;
	struct bench_number window, turns;
	bool idles;               /* the connections of the test idle are there */
	struct perf_node n, copy; /* copy: CCI's */
	struct cci_node c;
	struct perf_page *page;
	double sample[MOST_WAYS][MOST_TURNS]; /* ns of a message, or operation */
} program = {.sizes = {.most = 4096},
	.rma_sizes = {.most = 1 << 30},
	.window = {64, 1, 1024},
	.turns = {30, 1, MOST_TURNS}};

/* ---- the ways that take turns ---- */

/* A way runs rounds; of is a way of CCI, a flag, or whether CCI is there. */
struct way {
	void (*run)(struct program *p, int of, uint64_t count);
	int of;
	void (*before)(struct program *p, int of); /* a batch; NULL: nothing to do */
};

static void ping_pong(struct program *p, int of, uint64_t count)
{
	cci_ping_pong(&p->c, &p->c.polled, (enum cci_way)of, count);
}

static void blocking(struct program *p, int of, uint64_t count)
{
	cci_ping_pong(&p->c, &p->c.blocking, (enum cci_way)of, count);
}

static void complete(struct program *p, int of, uint64_t count)
{
	cci_complete(&p->c, (enum cci_way)of, count);
}

static void windows(struct program *p, int of, uint64_t count)
{
	cci_windows(&p->c, (enum cci_way)of, count);
}

static void rma(struct program *p, int of, uint64_t count)
{
	cci_rma_rounds(&p->c, of, count);
}

static void rma_windows(struct program *p, int of, uint64_t count)
{
	(void)of;
	cci_rma_windows(&p->c, count);
}

/* The test of perf.h that has begun. */
static void portals(struct program *p, int of, uint64_t count)
{
	(void)of;
	perf_rounds(&p->n, count);
}

/* A ping-pong of puts with ACK: each rank also waits for the ACK of its own. */
static void put_acked(struct program *p, int of, uint64_t count)
{
	struct perf_node *n = &p->n;
	uint64_t acked = n->w.seen[PTL_EVENT_ACK];
	(void)of;
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

static void raw(struct program *p, int of, uint64_t count)
{
	(void)of;
	perf_page_bounce(p->page, p->n.first, count, p->n.w.yields);
}

/* Open or close the idle endpoints beside Portals, and meet. */
static void with_cci(struct program *p, int there)
{
	if (there && !p->idles)
		cci_idle_open(&p->n);
	else if (!there && p->idles)
		cci_idle_close();
	p->idles = there;
	(void)perf_both(&p->n, true);
}

/* ---- turns ---- */

/* The order rotates, so that a slow drift does not show in the ratios. */
static void take_turns(
	struct program *p, const struct way *way, unsigned n, uint64_t each, double parts)
{
	for (unsigned k = 0; k < n; k++)
		way[k].run(p, way[k].of, each / 4 + 1); /* warm */
	for (uint64_t i = 0; i < p->turns.value; i++)
		for (unsigned k = 0; k < n; k++) {
			unsigned now = (unsigned)(k + i) % n;
			const struct way *w = &way[now];
			if (w->before)
				w->before(p, w->of);
			double t = bench_now_ns();
			w->run(p, w->of, each);
			p->sample[now][i] = (bench_now_ns() - t) / (double)each / parts;
		}
}

/* Return the rounds of a batch: some 1 ms of them. */
static uint64_t rounds_of(const struct program *p, uint64_t bytes, uint64_t cost)
{
	uint64_t rounds = p->b.quick          ? 20
			  : bytes <= 1 << 10  ? 2000
			  : bytes <= 16 << 10 ? 500
			  : bytes <= 64 << 10 ? 100
					      : 10;
	return rounds / cost ? rounds / cost : 1;
}

/* Run the turns of a test of CCI beside one of Portals.  A round of some cost has this
 * number of parts.  Return true at rank 0, which has the samples. */
static bool run(struct program *p, enum perf_test test, uint64_t bytes,
	const struct way *way, unsigned n, uint64_t parts, uint64_t cost)
{
	uint64_t counted = p->copy.message;
	perf_begin(&p->n, test, bytes);
	if (p->n.active) {
		perf_full_rounds(&p->n);
		p->copy = p->n;
		p->copy.message = counted;
		take_turns(p, way, n, rounds_of(p, bytes, cost), (double)parts);
		perf_full_rounds(&p->n);
	}
	perf_end(&p->n);
	return p->b.rank == 0;
}

static bool run_windows(
	struct program *p, uint64_t bytes, const struct way *way, unsigned n)
{
	return run(p, PERF_STREAM, bytes, way, n, p->n.window, p->n.window / 4 + 1);
}

static double median(const struct program *p, unsigned way)
{
	return bench_median(p->sample[way], p->turns.value);
}

static double ratio(const struct program *p, unsigned a, unsigned b)
{
	return bench_ratio(p->sample[a], p->sample[b], p->turns.value);
}

/* ---- tests ---- */

static void idle(struct program *p)
{
	static const struct way ways[] = {{portals, 0, with_cci}, {portals, 1, with_cci}};
	for (unsigned streams = 0; streams < 2; streams++) {
		if (streams ? run_windows(p, 8, ways, 2)
			    : run(p, PERF_PUT, 8, ways, 2, 2, 1))
			BENCH_ROW(&p->b, BENCH_TEXT("test", "idle"),
				BENCH_TEXT("of", streams ? "puts" : "put"),
				BENCH_COUNT("connections", CCI_IDLE),
				BENCH_REAL("without_ns", median(p, 0), 1),
				BENCH_REAL("with_ns", median(p, 1), 1),
				BENCH_REAL("with_per_without", ratio(p, 1, 0), 3));
	}
	if (p->idles)
		cci_idle_close();
	p->idles = false;
}

static void latency(struct program *p, uint64_t bytes)
{
	static const struct way ways[] = {{ping_pong, CCI_WAY_UU, NULL},
		{ping_pong, CCI_WAY_RO, NULL}, {ping_pong, CCI_WAY_RU, NULL},
		{portals, 0, NULL}, {put_acked, 0, NULL}, {raw, 0, NULL}};
	if (!run(p, PERF_PUT, bytes, ways, p->page ? 6 : 5, 2, 1))
		return;
	BENCH_ROW(&p->b, BENCH_TEXT("test", "latency"), BENCH_COUNT("bytes", bytes),
		BENCH_REAL("uu_ns", median(p, 0), 1),
		BENCH_REAL("ro_ns", median(p, 1), 1),
		BENCH_REAL("ru_ns", median(p, 2), 1),
		BENCH_REAL("put_ns", median(p, 3), 1),
		BENCH_REAL("put_ack_ns", median(p, 4), 1),
		BENCH_REAL("raw_ns", p->page ? median(p, 5) : 0, 1),
		BENCH_REAL("uu_per_put", ratio(p, 0, 3), 3),
		BENCH_REAL("ro_per_ack", ratio(p, 1, 4), 3),
		BENCH_REAL("ru_per_ack", ratio(p, 2, 4), 3));
}

static void completion(struct program *p, uint64_t bytes)
{
	static const struct way ways[] = {{complete, CCI_WAY_RO, NULL},
		{complete, CCI_WAY_RU, NULL}, {portals, 0, NULL}};
	if (run(p, PERF_ACK, bytes, ways, 3, 1, 1))
		BENCH_ROW(&p->b, BENCH_TEXT("test", "completion"),
			BENCH_COUNT("bytes", bytes), BENCH_REAL("ro_ns", median(p, 0), 1),
			BENCH_REAL("ru_ns", median(p, 1), 1),
			BENCH_REAL("put_ack_ns", median(p, 2), 1),
			BENCH_REAL("ro_per_ack", ratio(p, 0, 2), 3),
			BENCH_REAL("ru_per_ack", ratio(p, 1, 2), 3));
}

static void stream(struct program *p, uint64_t bytes)
{
	static const struct way ways[] = {{windows, CCI_WAY_UU, NULL},
		{windows, CCI_WAY_RO, NULL}, {windows, CCI_WAY_RU, NULL},
		{portals, 0, NULL}};
	if (!run_windows(p, bytes, ways, 4))
		return;
	BENCH_ROW(&p->b, BENCH_TEXT("test", "stream"), BENCH_COUNT("bytes", bytes),
		BENCH_REAL("uu_Mmsg_per_s", 1e3 / median(p, 0), 3),
		BENCH_REAL("ro_Mmsg_per_s", 1e3 / median(p, 1), 3),
		BENCH_REAL("ru_Mmsg_per_s", 1e3 / median(p, 2), 3),
		BENCH_REAL("put_Mmsg_per_s", 1e3 / median(p, 3), 3),
		BENCH_REAL("uu_MB_per_s", 1e3 / median(p, 0) * (double)bytes, 1),
		BENCH_REAL("uu_per_put", ratio(p, 3, 0), 3),
		BENCH_REAL("ro_per_put", ratio(p, 3, 1), 3),
		BENCH_REAL("ro_per_uu", ratio(p, 0, 1), 3));
}

static void print_rma(
	struct program *p, const char *test, uint64_t bytes, const char *beside)
{
	double ours = median(p, 0), other = median(p, 1);
	BENCH_ROW(&p->b, BENCH_TEXT("test", test), BENCH_TEXT("beside", beside),
		BENCH_COUNT("bytes", bytes), BENCH_REAL("rma_ns", ours, 1),
		BENCH_REAL("portals_ns", other, 1),
		BENCH_REAL("rma_MB_per_s", (double)bytes * 1e3 / ours, 1),
		BENCH_REAL("portals_MB_per_s", (double)bytes * 1e3 / other, 1),
		BENCH_REAL("bandwidth_ratio", ratio(p, 1, 0), 3));
}

static void rma_tests(struct program *p, uint64_t bytes)
{
	static const struct way writes[] = {
		{rma, CCI_FLAG_WRITE, NULL}, {portals, 0, NULL}};
	static const struct way reads[] = {
		{rma, CCI_FLAG_READ, NULL}, {portals, 0, NULL}};
	static const struct way streams[] = {{rma_windows, 0, NULL}, {portals, 0, NULL}};
	if (run(p, PERF_ACK, bytes, writes, 2, 1, 1))
		print_rma(p, "write", bytes, "put to ACK");
	if (run(p, PERF_GET, bytes, reads, 2, 1, 1))
		print_rma(p, "read", bytes, "get");
	if (run_windows(p, bytes, streams, 2))
		print_rma(p, "writes", bytes, "puts");
}

static void os_handle(struct program *p)
{
	static const struct way ways[] = {{blocking, CCI_WAY_RO, NULL}};
	if (!run(p, PERF_PUT, BLOCKING_BYTES, ways, 1, 2, 10))
		return;
	struct bench_stat s = bench_stat_of(p->sample[0], p->turns.value);
	BENCH_ROW(&p->b, BENCH_TEXT("test", "os_handle"),
		BENCH_COUNT("bytes", BLOCKING_BYTES), BENCH_REAL("p50_ns", s.p50, 1),
		BENCH_REAL("p90_ns", s.p90, 1), BENCH_REAL("min_ns", s.min, 1));
}

static void run_sizes(struct program *p, enum test test, const struct bench_list *sizes,
	void (*one)(struct program *p, uint64_t bytes))
{
	for (unsigned i = 0; p->test[test] && i < sizes->n; i++)
		one(p, sizes->at[i]);
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

static void parse(struct program *p, int argc, char **argv)
{
	struct bench_words tests = {test_name, TESTS, p->test};
	const struct bench_option rows[] = {
		{"test", "LIST",
			"of idle, latency, completion, stream, rma, os_handle; default "
			"all",
			"idle, latency, completion, stream, rma, os_handle, or several, "
			"as in latency,rma",
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
			bench_set_flag, &p->c.yields},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	bench_options(&p->b, rows, argc, argv);
	bench_all_words(&tests);
	bench_default_list(
		&p->sizes, default_sizes, sizeof default_sizes / sizeof *default_sizes);
	bench_default_list(
		&p->rma_sizes, default_rma, sizeof default_rma / sizeof *default_rma);
	if (p->b.quick)
		p->turns.value = 3;
}

static void open_node(struct program *p)
{
	p->n.b = &p->b;
	p->n.largest = bench_largest(&p->rma_sizes, bench_largest(&p->sizes, 8));
	p->n.window = (unsigned)p->window.value;
	p->n.w.yields = p->c.yields;
	p->c.p = &p->copy;
	perf_open(&p->n);
}

static void begin(struct program *p)
{
	perf_begin(&p->n, PERF_PUT, 8);
	p->copy = p->n;
	cci_node_open(&p->c);
	p->page = perf_page_share(&p->n);
	perf_full_rounds(&p->n);
	perf_end(&p->n);
}

int main(int argc, char **argv)
{
	struct program *p = &program;
	p->b = (struct bench){.program = "cciperf", .about = about, .legend = legend};
	parse(p, argc, argv);
	bench_want_ranks(&p->b, 2, 2);
	open_node(p);
	bench_begin(&p->b);
	if (p->test[IDLE])
		idle(p);
	begin(p);
	run_sizes(p, LATENCY, &p->sizes, latency);
	run_sizes(p, COMPLETION, &p->sizes, completion);
	run_sizes(p, STREAM, &p->sizes, stream);
	run_sizes(p, RMA, &p->rma_sizes, rma_tests);
	if (p->test[HANDLE])
		os_handle(p);
	bench_barrier();
	cci_node_close(&p->c);
	bench_finish(&p->b);
}
