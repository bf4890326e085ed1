/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * matchperf - the cost of a message when the match list is long
 *
 *	yod -sz 2 matchperf [options]
 *
 * Rank 1 has two lists, of one entry and of --depth entries.  Rank 0 puts windows of
 * empty messages to either in turns, so each window of the long list has a window of the
 * short one to compare with.  Nothing is unlinked: the lists stay as they are.  Rank 1
 * takes every event, and sees by the descriptor's user_ptr whether the right entry took
 * the message.
 *
 * Entry i of a list has its number in the upper half of its match bits; the lower half is
 *	exact	0, compared
 *	wild	ignored, by one mask
 *	mixed	compared or ignored, by three masks in turns, every other entry from rank
 *		0 only: six shapes of entries
 *	many	the same with six masks: twelve shapes
 * The last entry ignores all bits: it is the entry for unexpected messages.
 */
#include "bench.h"

#include <stdlib.h>

enum { PORTAL_BASE = 4, PORTAL_DEEP = 5, PORTAL_TALK = 6 };
enum { WINDOW = 64, MOST_PAIRS = 4000, MOST_DEPTH = 131000 };
enum { NUMBER_SHIFT = 32, TALK_WINDOW = 1, TALK_END = 2 };
enum kind { EXACT, WILD, MIXED, MANY, KINDS };
enum hit { HEAD, MIDDLE, TAIL, RANDOM, UNEXPECTED, HITS };

static const char *const kind_name[KINDS] = {"exact", "wild", "mixed", "many"};
static const char *const hit_name[HITS] = {
	"head", "middle", "end", "random", "unexpected"};

struct program {
	struct bench b;
	struct bench_list depths;
	bool list[KINDS], hits[HITS];
	struct bench_number budget_ms;
	struct bench_watch w; /* rank 1: messages; rank 0: answers */
	ptl_process_id_t peer;
	ptl_handle_md_t empty;
	enum kind kind;
	enum hit hit;
	uint64_t depth, random;
	char byte;
};

/* ---- entries and the bits that find them ---- */

static ptl_match_bits_t mask_of(enum kind kind, uint64_t i)
{
	static const ptl_match_bits_t mask[] = {
		0, 0xffff, 0xff, 0xfff, 0xffffff00, 0xf0f0f0f0};
	static const uint64_t used[KINDS] = {1, 2, 3, 6};
	return kind == WILD ? mask[1] : mask[i / 2 % used[kind]];
}

static ptl_handle_me_t post(struct program *p, ptl_pt_index_t portal,
	ptl_match_bits_t bits, ptl_match_bits_t ignore, uint64_t number)
{
	ptl_handle_me_t me;
	ptl_process_id_t from = bench_anyone;
	if (p->kind >= MIXED && number % 2 && number < p->depth)
		from = p->peer;
	ptl_md_t md = bench_region(
		&p->b, &p->byte, 1, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, p->w.eq);
	md.user_ptr = (void *)(uintptr_t)number;
	int rc = PtlMEMDAttach(p->b.ni, portal, from, bits, ignore, PTL_UNLINK,
		PTL_INS_AFTER, md, PTL_RETAIN, &me, NULL);
	if (rc != PTL_OK)
		bench_die(1,
			"entry %" PRIu64 ": PtlMEMDAttach answers %s, expected PTL_OK; "
			"use a smaller --depth",
			number, PtlErrorStr((unsigned)rc));
	return me;
}

/* Return the number of the entry for the next message.  Both ranks compute the same
 * numbers. */
static uint64_t number_of(struct program *p, ptl_pt_index_t portal)
{
	if (portal == PORTAL_BASE || p->hit == HEAD)
		return 0;
	if (p->hit == RANDOM) {
		p->random ^= p->random << 13;
		p->random ^= p->random >> 7;
		p->random ^= p->random << 17;
		return p->random % p->depth;
	}
	return p->hit == MIDDLE ? p->depth / 2 : p->depth - (p->hit == TAIL);
}

/* ---- windows ---- */

static void put(struct program *p, ptl_pt_index_t portal, ptl_match_bits_t bits,
	ptl_hdr_data_t hdr)
{
	bench_put(&p->b, p->empty, PTL_NO_ACK_REQ, p->peer, portal, bits, 0, hdr);
}

static double send_window(struct program *p, ptl_pt_index_t portal)
{
	uint64_t answers = p->w.seen[PTL_EVENT_PUT_END] + 1;
	double t = bench_now_ns();
	for (unsigned i = 0; i < WINDOW; i++) {
		uint64_t number = number_of(p, portal);
		ptl_match_bits_t junk = i & mask_of(p->kind, number);
		put(p, portal, number << NUMBER_SHIFT | junk, number);
	}
	bench_await(&p->w, PTL_EVENT_PUT_END, answers);
	return (bench_now_ns() - t) / WINDOW;
}

static void serve(struct program *p)
{
	for (uint64_t n = 0;;) {
		const ptl_event_t *ev = &p->w.last;
		bench_take(&p->w);
		if (ev->pt_index == PORTAL_TALK)
			return;
		uint64_t want = number_of(p, ev->pt_index);
		uint64_t entry = (uintptr_t)ev->md.user_ptr;
		if (ev->hdr_data != want || entry != want)
			bench_wrong(&p->b,
				"message for entry %" PRIu64 " (hdr_data %" PRIu64
				") was taken by entry %" PRIu64 "; expected %" PRIu64
				"; matching is wrong",
				want, ev->hdr_data, entry, want);
		if (++n % WINDOW == 0)
			put(p, PORTAL_TALK, BENCH_BITS, TALK_WINDOW);
	}
}

static void drive(struct program *p)
{
	static double base[MOST_PAIRS], deep[MOST_PAIRS], ratio[MOST_PAIRS];
	double end = bench_now_ns() + (double)p->budget_ms.value * 1e6;
	uint64_t n = 0, most = p->b.quick ? 2 : MOST_PAIRS;
	send_window(p, PORTAL_BASE);
	send_window(p, PORTAL_DEEP);
	for (; n < most && (n < 2 || bench_now_ns() < end); n++) {
		base[n] = send_window(p, PORTAL_BASE);
		deep[n] = send_window(p, PORTAL_DEEP);
		ratio[n] = deep[n] / base[n];
	}
	put(p, PORTAL_TALK, BENCH_BITS, TALK_END);
	struct bench_stat b = bench_stat_of(base, n), d = bench_stat_of(deep, n);
	struct bench_stat r = bench_stat_of(ratio, n);
	BENCH_ROW(&p->b, BENCH_TEXT("list", kind_name[p->kind]),
		BENCH_TEXT("hit", hit_name[p->hit]), BENCH_COUNT("depth", p->depth),
		BENCH_COUNT("windows", n), BENCH_REAL("p50_ns", d.p50, 1),
		BENCH_REAL("p99_ns", d.p99, 1), BENCH_REAL("depth1_ns", b.p50, 1),
		BENCH_REAL("ratio", r.p50, 2), BENCH_REAL("ratio_p10", r.p10, 2),
		BENCH_REAL("ratio_p90", r.p90, 2));
}

/* Rank 1 has the list of this kind and length meanwhile. */
static void run(struct program *p, enum kind kind, uint64_t depth)
{
	double t = bench_now_ns(), attach_ns, ns[2];
	ptl_handle_me_t *entry = bench_allocate((depth + 2) * sizeof *entry);
	uint64_t entries = p->b.rank == 1 ? depth : 0;
	p->kind = kind;
	p->depth = depth;
	for (uint64_t i = 0; i < entries; i++)
		entry[i] =
			post(p, PORTAL_DEEP, i << NUMBER_SHIFT, mask_of(p->kind, i), i);
	attach_ns = (bench_now_ns() - t) / (double)depth;
	if (entries) {
		entry[entries++] =
			post(p, PORTAL_DEEP, 0, ~(ptl_match_bits_t)0, p->depth);
		entry[entries++] = post(p, PORTAL_BASE, 0, mask_of(p->kind, 0), 0);
	}
	for (int hit = 0; hit < HITS; hit++) {
		if (!p->hits[hit])
			continue;
		p->hit = (enum hit)hit;
		p->random = 0x2545f4914f6cdd1d;
		bench_watch_reset(&p->w, BENCH_LOSE_NONE);
		bench_barrier();
		if (p->b.rank == 0)
			drive(p);
		else
			serve(p);
		bench_barrier();
	}
	bench_gather(&p->b, &attach_ns, sizeof attach_ns, p->b.rank ? NULL : ns);
	if (p->b.rank == 0 && depth >= 1000)
		bench_note(&p->b, "posting %" PRIu64 " %s entries: %.1f ns each", depth,
			kind_name[p->kind], ns[1]);
	while (entries)
		BENCH_DO(PtlMEUnlink, entry[--entries]);
	free(entry);
}

static const char about[] =
	"usage: yod -sz 2 matchperf [options]\n"
	"Cost of a message by the length of the match list, against a list of one "
	"entry.\n";

static const char legend[] =
	"Time of one empty message in windows of 64, all events taken: p50, p99 of "
	"windows.\n"
	"depth1: the same to a list of one entry, in turns; ratio: median, p10, p90 of "
	"the pairs' ratios.\n"
	"unexpected: matches none of the list, and goes to the entry behind it that "
	"takes all.\n";

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "matchperf", .about = about, .legend = legend},
		.depths = {.least = 1, .most = MOST_DEPTH},
		.budget_ms = {300, 1, 100000}};
	ptl_ni_limits_t much = {
		.max_mes = 1 << 17, .max_mds = 1 << 17, .max_me_list = 1 << 17};
	p.b.desired = &much;
	struct bench_words lists = {kind_name, KINDS, p.list};
	struct bench_words hits = {hit_name, HITS, p.hits};
	const struct bench_option rows[] = {
		{"depth", "LIST", "list lengths; default 1,10,100 to 100000",
			bench_set_list, &p.depths},
		{"list", "LIST", "kinds of lists; default all", bench_set_words, &lists},
		{"hit", "LIST", "places of the hit; default all", bench_set_words, &hits},
		{"time", "MS", "for each line, at most, about; default 300",
			bench_set_number, &p.budget_ms},
		{0}};
	static const uint64_t quick[] = {1, 10, 1000},
			      all[] = {1, 10, 100, 1000, 10000, 100000};
	bench_options(&p.b, rows, argc, argv);
	bench_all_words(&lists);
	bench_all_words(&hits);
	bench_want_ranks(&p.b, 2, 2);
	bench_default_list(&p.depths, p.b.quick ? quick : all, p.b.quick ? 3 : 6);
	p.peer = bench_id(&p.b, p.b.rank ^ 1);
	p.w.eq = bench_queue(&p.b, 1024);
	p.empty = bench_bind(&p.b, NULL, 0, PTL_EQ_NONE);
	bench_post(&p.b, PORTAL_TALK, PTL_MD_OP_PUT, NULL, 0, p.w.eq);
	bench_begin(&p.b);
	for (int kind = 0; kind < KINDS; kind++)
		for (unsigned i = 0; p.list[kind] && i < p.depths.n; i++)
			run(&p, (enum kind)kind, p.depths.at[i]);
	bench_finish(&p.b);
}
