/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portalperf - latency and bandwidth of Portals operations
 *
 *	yod -sz 2 portalperf [options]
 *
 * Ranks 2k and 2k + 1 are a pair.  Each has a match entry with a descriptor for puts and
 * one for gets, and one free-floating descriptor per message size; all of them are there
 * before a timed loop begins.  The loops use START_DISABLE and no ACK, call nothing but
 * PtlPut, PtlGet and PtlEQWait (or PtlEQPoll), and read the clock once for each batch.
 *
 * Data: before each timed loop and after it a few messages are filled, and checked, from
 * end to end, with the bytes behind them.  In the loop the first and the last word of
 * every message, and one that wanders through long ones, are changed and checked.
 */
#include "perf.h"

#include <portals3_runtime.h>
#include <portals3x.h>

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PORTAL_PUT = 4, PORTAL_GET = 5, PORTAL_RESULT = 6 };
enum { BITS = 0x9e4f, GUARD = 64, SHIFTS = 16, WORD = 8, FULL_ROUNDS = 4, KINDS = 12 };

struct message { /* to rank 0 */
	struct perf_result result;
	struct perf_raw raw;
};

struct node {
	struct perf_opt opt;
	ptl_handle_ni_t ni;
	ptl_handle_eq_t eq;
	ptl_process_id_t peer, zero;
	unsigned rank, size;
	bool paired, first; /* first of its pair: starts, and keeps the time */
	/* the test */
	enum perf_test test;
	uint64_t length;
	bool full;        /* messages are filled and checked from end to end */
	uint64_t message; /* number */
	uint64_t errors, errors_here;
	ptl_handle_md_t out;  /* free-floating, length bytes; of tx, for gets of rx */
	ptl_handle_md_t note; /* empty */
	uint64_t seen[KINDS]; /* events, by type */
	ptl_hdr_data_t hdr;   /* of the last one */
	ptl_seq_t sequence;   /* of the last one */
	uint64_t told;        /* get: notes that the peer's bytes are ready */
	/* memory */
	char *tx, *rx;
	uint64_t rx_half; /* bidir: two messages may be there */
	struct message mine, *all;
	ptl_handle_md_t mine_md;
	ptl_handle_eq_t all_eq;
	double sample[PERF_BATCHES];
};

static void check(int rc, const char *what)
{
	if (rc != PTL_OK)
		perf_die(1, "%s answers %s, expected PTL_OK; see portals3.h", what,
			PtlErrorStr((unsigned)rc));
}

static void barrier(void)
{
	check(PtlXBarrier(), "PtlXBarrier");
}

_Noreturn static void leave(int status)
{
	fflush(stdout);
	(void)PtlXBarrier(); /* if somebody is gone: leave all the same */
	PtlFini();
	exit(status);
}

/* ---- bytes: word k of a message is word(k, seed) ---- */

static inline uint64_t word(uint64_t k, uint64_t seed)
{
	return (k + 1) * 0x9e3779b97f4a7c15u ^ (seed + 1) * 0xd1b54a32d192ed03u;
}

static void fill(char *at, uint64_t length, uint64_t seed)
{
	for (uint64_t i = 0; i < length; i += WORD) {
		uint64_t w = word(i / WORD, seed);
		memcpy(at + i, &w, length - i < WORD ? length - i : WORD);
	}
}

/* The first byte that is not as filled, or length. */
static uint64_t differs_at(const char *at, uint64_t length, uint64_t first, uint64_t seed)
{
	for (uint64_t i = 0; i < length; i++) {
		uint64_t w = word(first + i / WORD, seed);
		if (i % WORD == 0 && length - i >= WORD && !memcmp(at + i, &w, WORD))
			i += WORD - 1;
		else if (at[i] != ((char *)&w)[i % WORD])
			return i;
	}
	return length;
}

static void guard(char *at)
{
	memset(at, 0xa5, GUARD);
}

static bool is_guarded(const char *at)
{
	char want[GUARD];
	guard(want);
	return !memcmp(at, want, GUARD);
}

static void wrong(struct node *n, uint64_t at)
{
	n->errors++;
	if (n->errors_here++)
		return;
	fprintf(stderr,
		"portalperf: rank %u: %s of %llu bytes, message %llu: wrong byte at "
		"%llu; "
		"expected what was sent; the library damages data\n",
		n->rank, perf_test_name[n->test], (unsigned long long)n->length,
		(unsigned long long)n->message, (unsigned long long)at);
}

/* Different for each message and each sender. */
static inline uint64_t stamp_of(const struct node *n, bool mine)
{
	return n->message * 2 + (mine == n->first);
}

/* Words that are checked in the timed loop: ends of the message, and a wandering one. */
static inline uint64_t last_word(const struct node *n)
{
	return n->length / WORD - 1;
}

static inline uint64_t wandering_word(const struct node *n)
{
	return n->message * 61 % (n->length / WORD);
}

static inline void stamp(struct node *n)
{
	uint64_t v = stamp_of(n, true), *tx = (uint64_t *)n->tx;
	if (n->full) {
		fill(n->tx, n->length, v);
		return;
	}
	if (n->length < WORD) {
		memcpy(n->tx, &v, n->length);
		return;
	}
	if (n->length >= 4096)
		tx[wandering_word(n)] = v;
	tx[last_word(n)] = v;
	tx[0] = v;
}

static inline void check_word(struct node *n, uint64_t got, uint64_t want, uint64_t k)
{
	if (__builtin_expect(got != want, 0))
		wrong(n, k * WORD);
}

static void check_all(struct node *n, const char *rx, uint64_t first, uint64_t seed)
{
	uint64_t at = differs_at(rx, n->length, first, seed);
	if (at < n->length || !is_guarded(rx + n->length))
		wrong(n, at);
}

static inline void check_stamp(struct node *n, const char *at)
{
	uint64_t v = stamp_of(n, false);
	const uint64_t *rx = (const uint64_t *)at;
	if (n->full) {
		check_all(n, at, 0, v);
		return;
	}
	if (n->length < WORD) {
		if (memcmp(at, &v, n->length))
			wrong(n, 0);
		return;
	}
	check_word(n, rx[0], v, 0);
	check_word(n, rx[last_word(n)], v, last_word(n));
	if (n->length >= 4096)
		check_word(n, rx[wandering_word(n)], v, wandering_word(n));
}

/* ---- events ---- */

static void broken(struct node *n, int rc, const ptl_event_t *ev)
{
	check(rc, n->opt.poll ? "PtlEQPoll" : "PtlEQWait");
	perf_die(1,
		"rank %u: %s with ni_fail_type %u, expected PTL_NI_OK; is rank %u gone?",
		n->rank, PtlEventKindStr(ev->type), ev->ni_fail_type, n->rank ^ 1);
}

/*
 * Gets are served whether or not the target's program runs: while that is off its CPU the
 * queue may overflow.  All that it can lose then are GET_ENDs; sequence says how many.
 */
static void count_lost(struct node *n, const ptl_event_t *ev)
{
	n->seen[PTL_EVENT_GET_END] += (ptl_seq_t)(ev->sequence - n->sequence - 1);
}

static inline void take_event(struct node *n)
{
	int which;
	ptl_event_t ev;
	int rc = n->opt.poll ? PtlEQPoll(&n->eq, 1, PTL_TIME_FOREVER, &ev, &which)
			     : PtlEQWait(n->eq, &ev);
	if (rc == PTL_EQ_DROPPED && n->test == PERF_GET && !n->first) {
		count_lost(n, &ev);
		rc = PTL_OK;
	}
	if (__builtin_expect(rc != PTL_OK || ev.ni_fail_type != PTL_NI_OK, 0))
		broken(n, rc, &ev);
	n->sequence = ev.sequence;
	n->seen[ev.type]++;
	n->hdr = ev.hdr_data;
}

static inline void await(struct node *n, ptl_event_kind_t kind, uint64_t count)
{
	while (n->seen[kind] < count)
		take_event(n);
}

/* ---- one round of each test ---- */

static inline void put(struct node *n, uint64_t remote)
{
	int rc = PtlPut(n->out, PTL_NO_ACK_REQ, n->peer, PORTAL_PUT, 0, BITS, remote, 0);
	if (__builtin_expect(rc != PTL_OK, 0))
		check(rc, "PtlPut");
}

static void tell(struct node *n, ptl_hdr_data_t what)
{
	int rc = PtlPut(n->note, PTL_NO_ACK_REQ, n->peer, PORTAL_PUT, 0, BITS, 0, what);
	check(rc, "PtlPut");
}

static inline void ping(struct node *n)
{
	stamp(n);
	put(n, 0);
	await(n, PTL_EVENT_PUT_END, n->message + 1);
	await(n, PTL_EVENT_SEND_END, n->message + 1);
	check_stamp(n, n->rx);
}

static inline void pong(struct node *n)
{
	await(n, PTL_EVENT_PUT_END, n->message + 1);
	check_stamp(n, n->rx);
	stamp(n);
	put(n, 0);
	await(n, PTL_EVENT_SEND_END, n->message + 1);
}

/* The peer can be one message ahead, not two: halves in turns. */
static inline void exchange(struct node *n)
{
	uint64_t half = (n->message & 1) * n->rx_half;
	stamp(n);
	put(n, half);
	await(n, PTL_EVENT_SEND_END, n->message + 1);
	await(n, PTL_EVENT_PUT_END, n->message + 1);
	check_stamp(n, n->rx + half);
}

/* Each get starts a little further on, so each brings other bytes. */
static inline void check_got(struct node *n, uint64_t first, uint64_t seed)
{
	const uint64_t *rx = (const uint64_t *)n->rx;
	uint64_t w = word(first, seed);
	if (n->full)
		check_all(n, n->rx, first, seed);
	else if (n->length >= WORD) {
		check_word(n, rx[0], w, 0);
		check_word(n, rx[last_word(n)], word(first + last_word(n), seed),
			last_word(n));
	} else if (memcmp(rx, &w, n->length))
		wrong(n, 0);
}

static inline void fetch(struct node *n)
{
	uint64_t at = n->message % SHIFTS * 64, seed = n->full ? n->message : 0;
	if (n->full)
		await(n, PTL_EVENT_PUT_END, ++n->told);
	int rc = PtlGet(n->out, n->peer, PORTAL_GET, 0, BITS, at);
	if (__builtin_expect(rc != PTL_OK, 0))
		check(rc, "PtlGet");
	await(n, PTL_EVENT_REPLY_END, n->message + 1);
	check_got(n, at / WORD, seed);
}

static inline void serve(struct node *n)
{
	if (n->full) {
		fill(n->tx, n->length + SHIFTS * 64, n->message);
		tell(n, 0);
	}
	await(n, PTL_EVENT_GET_END, n->message + 1);
}

static void rounds(struct node *n, uint64_t count)
{
	uint64_t end = n->message + count;
	if (n->test == PERF_BIDIR)
		for (; n->message < end; n->message++)
			exchange(n);
	else if (n->test == PERF_PUT && n->first)
		for (; n->message < end; n->message++)
			ping(n);
	else if (n->test == PERF_PUT)
		for (; n->message < end; n->message++)
			pong(n);
	else if (n->first)
		for (; n->message < end; n->message++)
			fetch(n);
	else
		for (; n->message < end; n->message++)
			serve(n);
}

/* ---- one test at one size ---- */

static ptl_handle_md_t bind(
	struct node *n, void *start, uint64_t length, ptl_handle_eq_t eq)
{
	ptl_handle_md_t handle;
	ptl_md_t md = {.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	check(PtlMDBind(n->ni, md, PTL_RETAIN, &handle), "PtlMDBind");
	return handle;
}

/* No rank sends before all have come out of the barrier. */
static void begin(struct node *n, enum perf_test test, uint64_t length)
{
	n->test = test;
	n->length = length;
	n->rx_half = (length + GUARD + 127) / 128 * 128;
	n->message = n->errors_here = n->told = 0;
	memset(n->seen, 0, sizeof n->seen);
	if (n->paired) {
		guard(n->rx + length);
		guard(n->rx + n->rx_half + length);
		n->out = bind(n, test == PERF_GET ? n->rx : n->tx, length, n->eq);
	}
	barrier();
}

static void end(struct node *n)
{
	check(PtlMDUnlink(n->out), "PtlMDUnlink");
}

/* The bytes that the timed gets expect. */
static void restore_source(struct node *n)
{
	if (n->first) {
		await(n, PTL_EVENT_PUT_END, ++n->told);
		return;
	}
	fill(n->tx, n->length + SHIFTS * 64, 0);
	tell(n, 0);
}

static void full_rounds(struct node *n)
{
	n->full = true;
	rounds(n, FULL_ROUNDS);
	n->full = false;
	if (n->test == PERF_GET)
		restore_source(n);
}

static uint64_t timed_batches(struct node *n, const struct perf_plan *p)
{
	double half = n->test == PERF_PUT ? 0.5 : 1;
	for (uint64_t b = 0; b < p->batches; b++) {
		double t = perf_now_ns();
		rounds(n, p->each);
		n->sample[b] = (perf_now_ns() - t) * half / (double)p->each;
	}
	return p->batches * p->each;
}

static void measure(struct node *n)
{
	struct perf_plan p = perf_plan_of(&n->opt, n->length);
	struct perf_result *r = &n->mine.result;
	full_rounds(n);
	rounds(n, p.warm);
	*r = (struct perf_result){.test = n->test, .rank = n->rank, .bytes = n->length};
	r->rounds = timed_batches(n, &p);
	r->batches = p.batches;
	r->median_ns = perf_percentile(n->sample, p.batches, 0.5);
	r->p99_ns = perf_percentile(n->sample, p.batches, 0.99);
	r->min_ns = n->sample[0];
	full_rounds(n);
	r->errors = n->errors_here;
}

/* ---- raw hand-over and 8-byte puts in turns ---- */

static struct perf_page *share_page(struct node *n)
{
	int fd;
	struct perf_page *page = perf_page_make(&fd);
	tell(n, page ? (uint64_t)getpid() << 32 | (unsigned)fd : 0);
	await(n, PTL_EVENT_PUT_END, 1);
	if (fd >= 0)
		close(fd);
	if (page && n->hdr)
		return page;
	perf_page_close(page);
	return NULL;
}

static struct perf_page *take_page(struct node *n)
{
	await(n, PTL_EVENT_PUT_END, 1);
	struct perf_page *page =
		n->hdr ? perf_page_open((uint32_t)(n->hdr >> 32), (uint32_t)n->hdr)
		       : NULL;
	tell(n, page != NULL);
	return page;
}

static double timed_bounce(struct node *n, struct perf_page *page, uint64_t count)
{
	double t = perf_now_ns();
	perf_page_bounce(page, n->first, count);
	return (perf_now_ns() - t) / (double)count / 2;
}

static double timed_puts(struct node *n, uint64_t count)
{
	double t = perf_now_ns();
	rounds(n, count);
	return (perf_now_ns() - t) / (double)count / 2;
}

/* One of the two first, then the other: a slow drift shows in neither ratio. */
static void take_turns(struct node *n, struct perf_page *page)
{
	struct perf_plan p = perf_plan_raw(&n->opt);
	double raw[PERF_BATCHES], puts[PERF_BATCHES], ratio[PERF_BATCHES];
	rounds(n, p.warm);
	perf_page_bounce(page, n->first, p.warm);
	for (uint64_t i = 0; i < p.batches; i++) {
		if (i % 2)
			puts[i] = timed_puts(n, p.each);
		raw[i] = timed_bounce(n, page, p.each);
		if (i % 2 == 0)
			puts[i] = timed_puts(n, p.each);
		ratio[i] = puts[i] / raw[i];
	}
	n->mine.raw = (struct perf_raw){.pairs = (uint32_t)p.batches,
		.each = (uint32_t)p.each,
		.put_ns = perf_percentile(puts, p.batches, 0.5),
		.raw_ns = perf_percentile(raw, p.batches, 0.5),
		.ratio = perf_percentile(ratio, p.batches, 0.5),
		.ratio_p10 = perf_percentile(ratio, p.batches, 0.1),
		.ratio_p90 = perf_percentile(ratio, p.batches, 0.9)};
}

static void measure_raw(struct node *n)
{
	struct perf_page *page = n->first ? share_page(n) : take_page(n);
	n->seen[PTL_EVENT_PUT_END] = 0;
	if (page)
		take_turns(n, page);
	n->mine.result.errors = n->errors_here;
	perf_page_close(page);
}

/* ---- results go to rank 0 ---- */

static void send_result(struct node *n)
{
	int rc = PtlPut(n->mine_md, PTL_NO_ACK_REQ, n->zero, PORTAL_RESULT, 0, BITS,
		n->rank * sizeof n->mine, 0);
	check(rc, "PtlPut");
}

/* One message of each paired rank; its own, too. */
static void await_results(struct node *n)
{
	ptl_event_t ev;
	for (unsigned i = 0; i < n->size / 2 * 2; i++)
		check(PtlEQWait(n->all_eq, &ev), "PtlEQWait");
	for (unsigned i = 0; i < n->size / 2 * 2; i++)
		n->errors += i ? n->all[i].result.errors : 0;
}

static void report(struct node *n)
{
	if (n->paired)
		send_result(n);
	if (n->rank)
		return;
	await_results(n);
	for (unsigned i = 0; i + 1 < n->size; i += 2)
		perf_report_row(&n->all[i].result);
}

static void report_raw(struct node *n)
{
	if (n->paired)
		send_result(n);
	if (n->rank)
		return;
	await_results(n);
	for (unsigned i = 0; i + 1 < n->size; i += 2)
		if (n->all[i].raw.pairs)
			perf_report_raw(i, &n->all[i].raw);
		else
			perf_report_note(
				"raw hand-over left out: ranks %u-%u cannot share a page "
				"through /proc/<pid>/fd",
				i, i + 1);
}

/* ---- setting up ---- */

static void *allocate(uint64_t length)
{
	void *p = aligned_alloc(4096, (length + 4095) / 4096 * 4096);
	if (!p)
		perf_die(1, "no memory for %llu bytes of buffers; use smaller --sizes",
			(unsigned long long)length);
	memset(p, 1, length);
	return p;
}

static void attach(struct node *n, ptl_pt_index_t portal, ptl_md_t md)
{
	ptl_handle_me_t me;
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	md.threshold = PTL_MD_THRESH_INF;
	md.options |= PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE;
	int rc = PtlMEAttach(
		n->ni, portal, anyone, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me);
	check(rc, "PtlMEAttach");
	check(PtlMDAttach(me, md, PTL_RETAIN, NULL), "PtlMDAttach");
}

static void open_buffers(struct node *n)
{
	uint64_t tx = n->opt.largest + SHIFTS * 64,
		 rx = 2 * (n->opt.largest + 2 * GUARD + 128);
	n->tx = allocate(tx);
	n->rx = allocate(rx);
	check(PtlEQAlloc(n->ni, 256, PTL_EQ_HANDLER_NONE, &n->eq), "PtlEQAlloc");
	check(PtlGetRankId(n->ni, n->rank ^ 1, &n->peer), "PtlGetRankId");
	attach(n, PORTAL_PUT,
		(ptl_md_t){.start = n->rx,
			.length = rx,
			.options = PTL_MD_OP_PUT,
			.eq_handle = n->eq});
	attach(n, PORTAL_GET,
		(ptl_md_t){.start = n->tx,
			.length = tx,
			.options = PTL_MD_OP_GET,
			.eq_handle = n->eq});
	n->note = bind(n, NULL, 0, PTL_EQ_NONE);
	n->mine_md = bind(n, &n->mine, sizeof n->mine, PTL_EQ_NONE);
	check(PtlGetRankId(n->ni, 0, &n->zero), "PtlGetRankId");
}

static void open_results(struct node *n)
{
	uint64_t length = n->size * sizeof *n->all;
	n->all = allocate(length);
	int rc = PtlEQAlloc(n->ni, n->size + 8, PTL_EQ_HANDLER_NONE, &n->all_eq);
	check(rc, "PtlEQAlloc");
	attach(n, PORTAL_RESULT,
		(ptl_md_t){.start = n->all,
			.length = length,
			.options = PTL_MD_OP_PUT,
			.eq_handle = n->all_eq});
}

static void start(struct node *n)
{
	int most;
	check(PtlInit(&most), "PtlInit");
	int rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &n->ni);
	check(rc, "PtlNIInit");
	if (PtlGetRank(n->ni, &n->rank, &n->size) != PTL_OK)
		n->size = 1;
	n->first = n->rank % 2 == 0;
	n->paired = (n->rank ^ 1) < n->size;
}

static void parse(struct node *n, int argc, char **argv)
{
	static char text[2000];
	int status;
	if (!perf_opt_parse(&n->opt, argc, argv, &status, text, sizeof text)) {
		if (n->rank == 0)
			fputs(text, status ? stderr : stdout);
		leave(status);
	}
	if (n->size > 1)
		return;
	fprintf(stderr, "portalperf: 1 rank; expected 2 or more; use yod -sz 2\n");
	leave(2);
}

/* ---- CPUs ---- */

/* Rank r gets the r-th CPU that the job may use, from the first again if need be. */
static int cpu_of(unsigned rank, const cpu_set_t *set)
{
	int left = (int)rank % CPU_COUNT(set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, set) && left-- == 0)
			return cpu;
	return -1;
}

static void pin(const struct node *n, const cpu_set_t *set)
{
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu_of(n->rank, set), &one);
	if (n->opt.pin && sched_setaffinity(0, sizeof one, &one))
		fprintf(stderr,
			"portalperf: rank %u cannot be pinned to CPU %d: %s; use "
			"--no-pin\n",
			n->rank, cpu_of(n->rank, set), strerror(errno));
}

static void place(struct node *n, struct perf_setting *s)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set))
		perf_die(1, "the CPUs cannot be asked for: %s", strerror(errno));
	*s = (struct perf_setting){.opt = &n->opt,
		.ranks = n->size,
		.ncpus = (unsigned)CPU_COUNT(&set),
		.cpu = allocate(n->size * sizeof *s->cpu)};
	for (unsigned i = 0; i < n->size; i++)
		s->cpu[i] = cpu_of(i, &set);
	pin(n, &set);
}

/* ---- */

static void run_raw(struct node *n, const struct perf_setting *s)
{
	if (!n->opt.raw)
		return;
	if (n->size > s->ncpus) {
		if (n->rank == 0)
			perf_report_note(
				"raw hand-over left out: it needs a CPU for each rank");
		return;
	}
	begin(n, PERF_PUT, 8);
	if (n->paired) {
		measure_raw(n);
		end(n);
	}
	report_raw(n);
}

static void run_tests(struct node *n)
{
	for (unsigned t = 0; t < PERF_TESTS; t++)
		for (unsigned i = 0; n->opt.test[t] && i < n->opt.nsizes; i++) {
			begin(n, (enum perf_test)t, n->opt.size[i]);
			if (n->paired) {
				measure(n);
				end(n);
			}
			report(n);
		}
}

int main(int argc, char **argv)
{
	static struct node n;
	struct perf_setting setting;
	start(&n);
	parse(&n, argc, argv);
	place(&n, &setting);
	if (n.paired)
		open_buffers(&n);
	if (n.rank == 0)
		open_results(&n);
	barrier();
	if (n.rank == 0) {
		perf_warn(&setting);
		perf_report_begin(&setting);
	}
	run_tests(&n);
	run_raw(&n, &setting);
	bool ok = n.rank || perf_report_end(n.errors);
	free(setting.cpu);
	leave(n.errors || !ok);
}
