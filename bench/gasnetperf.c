/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnetperf - latency and bandwidth of GASNet beside bare Portals
 *
 *	yod -sz 2 gasnetperf [options]
 *
 * Each test is one of the figures of the paper on GASNet over Portals, at one size.  Its
 * ways take turns: a turn is a batch of operations of each, and then some that are timed
 * one by one.  A median is that of the batches, a p99 that of the single operations, a
 * ratio the median of those of the turns.  bench/gasnetfigures runs it beside MPI.
 *
 * Rank 0 begins and keeps the time.  Both halves of a comparison use the same memory in
 * the same processes: bytes go from "from", in rank 0's segment, or from "outside", to
 * "to" in rank 1's segment.  As the conduit's target does, that of a bare put with an
 * ACK has no queue; rank 1 polls meanwhile, and takes no part otherwise.
 */
#include "perf.h"

#include <gasnet.h>

#include <errno.h>
#include <stdlib.h>

enum { MOST_TURNS = 100, MOST_SINGLE = 128, MOST_WAYS = 3, MOST_CELLS = 12, SIZES = 14 };
enum { LARGEST = 16 << 20, UNDER_WAY = 4096, QUEUE = 4096 };
/* The conduit has 38 and 39, and bench_node.c has 60. */
enum { PORTAL_PUT = 8, PORTAL_PING = 9 };
/* Handlers: a note, requests that are answered with no bytes or with theirs, answers. */
enum { HANDLERS = 5, NOTE = 200, REPLY_SHORT, REPLY_MEDIUM, ECHO_SHORT, ECHO_MEDIUM };

struct node {
	struct bench *b;
	bool first;
	gasnet_node_t peer;
	ptl_process_id_t peer_id;
	uint64_t largest;          /* longest message */
	unsigned window;           /* bare puts without their ACK */
	char *from, *to, *outside; /* memory of this rank */
	char *there;               /* to of the peer */
	/* the test */
	const char *what;
	uint64_t bytes;
	uint64_t seed; /* of the content, another one for each batch */
	/* GASNet */
	gasnet_handle_t handle[UNDER_WAY];
	size_t under_way;
	volatile uint32_t notes, replies;
	uint32_t noted, replied; /* the numbers of them that this rank has awaited */
	/* bare Portals: "acks" has the ACKs, "pings" the PUT_ENDs */
	struct bench_watch acks, pings;
	ptl_handle_md_t out;    /* bytes of from, events of ACK only */
	ptl_handle_md_t stream; /* bytes of from, also SEND_END */
	ptl_handle_md_t ping;   /* bytes of from, or at rank 1 of to, without events */
	ptl_handle_md_t note;
	uint64_t acked; /* puts so far whose ACK is awaited */
};

/* A way to move a message.  Rank 0 runs op again and again, and sync at the end. */
struct way {
	const char *name;
	enum side { GASNET, BARE, ALONE } side; /* rank 1 polls, or nothing */
	void (*op)(struct node *n);
	void (*sync)(struct node *n);  /* NULL: each op is complete when it returns */
	void (*serve)(struct node *n); /* rank 1, for each op; NULL: nothing to do */
	enum lands { NOWHERE, AT_TARGET, AT_BOTH } lands; /* to be checked */
};

static struct node *served; /* node that the handlers serve */

static void check(int rc, const char *what)
{
	if (rc != GASNET_OK)
		bench_die(1, "%s answers %s, expected GASNET_OK; see gasnet.h", what,
			gasnet_ErrorName(rc));
}

/* ---- handlers of active messages ---- */

/* Count an error, and print it. */
static void wrong(struct node *n, const char *way, uint64_t at)
{
	bench_wrong(n->b,
		"%s, %s of %" PRIu64 " bytes: wrong byte at %" PRIu64
		"; expected what was sent; the library damages data",
		n->what, way, n->bytes, at);
}

static void note(gasnet_token_t token)
{
	(void)token;
	served->notes++;
}

static void echo_short(gasnet_token_t token)
{
	gasnet_AMReplyShort0(token, REPLY_SHORT);
}

static void echo_medium(gasnet_token_t token, void *buf, size_t nbytes)
{
	gasnet_AMReplyMedium0(token, REPLY_MEDIUM, buf, nbytes);
}

static void reply_short(gasnet_token_t token)
{
	(void)token;
	served->replies++;
}

/* Check the length and the last byte: a copy would cost as much as the message. */
static void reply_medium(gasnet_token_t token, void *buf, size_t nbytes)
{
	const char *got = buf;
	(void)token;
	if (nbytes != served->bytes)
		wrong(served, "length of a reply", nbytes);
	else if (nbytes && got[nbytes - 1] != served->from[nbytes - 1])
		wrong(served, "reply", nbytes - 1);
	served->replies++;
}

static gasnet_handlerentry_t handler[HANDLERS] = {{NOTE, note}, {ECHO_SHORT, echo_short},
	{ECHO_MEDIUM, echo_medium}, {REPLY_SHORT, reply_short},
	{REPLY_MEDIUM, reply_medium}};

/* ---- set-up ---- */

/* A segment has two halves: from, and to. */
static void open_gasnet(struct node *n)
{
	gasnet_seginfo_t segment[2];
	uint64_t half =
		(n->largest + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
#ifdef GASNET_SEGMENT_EVERYTHING
	bench_die(77,
		"GASNet's segments are EVERYTHING; expected FAST or LARGE; build with "
		"-DP3_GASNET_SEGMENT=FAST");
#endif
	check(gasnet_init(NULL, NULL), "gasnet_init");
	check(gasnet_attach(handler, HANDLERS, 2 * half, 0), "gasnet_attach");
	check(gasnet_getSegmentInfo(segment, 2), "gasnet_getSegmentInfo");
	n->peer = gasnet_mynode() ^ 1;
	n->from = segment[n->peer ^ 1].addr;
	n->to = n->from + half;
	n->there = (char *)segment[n->peer].addr + half;
	n->outside = bench_allocate(n->largest);
}

static void open_node(struct node *n)
{
	n->first = n->b->rank == 0;
	served = n;
	open_gasnet(n);
	n->peer_id = bench_id(n->b, n->b->rank ^ 1);
	n->acks.eq = bench_queue(n->b, QUEUE);
	n->pings.eq = bench_queue(n->b, QUEUE);
	n->acks.may_lose = n->pings.may_lose = BENCH_LOSE_NONE;
	n->acks.poll = n->pings.poll = true;
	bench_post(n->b, PORTAL_PUT, BENCH_BITS, PTL_MD_OP_PUT, n->to, n->largest,
		PTL_EQ_NONE);
	bench_post(n->b, PORTAL_PING, BENCH_BITS, PTL_MD_OP_PUT, n->to, n->largest,
		n->pings.eq);
	n->note = bench_bind(n->b, NULL, 0, PTL_EQ_NONE);
}

static void begin(struct node *n, const char *what, uint64_t bytes)
{
	n->what = what;
	n->bytes = bytes;
	/* as the conduit does for its short puts, ask for no SEND_END */
	ptl_md_t quiet =
		bench_region(n->b, n->from, bytes, PTL_MD_EVENT_END_DISABLE, n->acks.eq);
	BENCH_DO(PtlMDBind, n->b->ni, quiet, PTL_RETAIN, &n->out);
	n->stream = bench_bind(n->b, n->from, bytes, n->acks.eq);
	n->ping = bench_bind(n->b, n->first ? n->from : n->to, bytes, PTL_EQ_NONE);
	bench_barrier();
}

static void end(struct node *n)
{
	bench_barrier();
	BENCH_DO(PtlMDUnlink, n->out);
	BENCH_DO(PtlMDUnlink, n->stream);
	BENCH_DO(PtlMDUnlink, n->ping);
}

/* ---- data ---- */

static void fill(struct node *n)
{
	n->seed++;
	if (!n->first)
		return;
	perf_fill(n->from, n->bytes, n->seed);
	perf_fill(n->outside, n->bytes, n->seed);
}

/* ---- active messages ---- */

static void await_reply(struct node *n)
{
	n->replied++;
	GASNET_BLOCKUNTIL(n->replies == n->replied);
}

static void am_short(struct node *n)
{
	gasnet_AMRequestShort0(n->peer, ECHO_SHORT);
	await_reply(n);
}

static void am_medium(struct node *n)
{
	gasnet_AMRequestMedium0(n->peer, ECHO_MEDIUM, n->from, n->bytes);
	await_reply(n);
}

/* ---- puts of GASNet ---- */

static void put(struct node *n)
{
	gasnet_put(n->peer, n->there, n->from, n->bytes);
}

static void put_outside(struct node *n)
{
	gasnet_put_bulk(n->peer, n->there, n->outside, n->bytes);
}

static void put_nb(struct node *n)
{
	n->handle[n->under_way++] =
		gasnet_put_nb_bulk(n->peer, n->there, n->from, n->bytes);
}

static void sync_puts(struct node *n)
{
	gasnet_wait_syncnb_all(n->handle, n->under_way);
	n->under_way = 0;
}

/* ---- bare Portals ---- */

static void start_put(struct node *n, ptl_handle_md_t md)
{
	int rc;
	while ((rc = PtlPut(md, PTL_ACK_REQ, n->peer_id, PORTAL_PUT, 0, BENCH_BITS, 0,
			0)) == PTL_NO_SPACE)
		bench_try(&n->acks); /* advances the operations that wait */
	bench_check(rc, "PtlPut");
	n->acked++;
}

static void sync_acks(struct node *n)
{
	bench_await(&n->acks, PTL_EVENT_ACK, n->acked);
}

static void bare_put(struct node *n)
{
	start_put(n, n->out);
	sync_acks(n);
}

static void bare_put_nb(struct node *n)
{
	if (n->acked >= n->window)
		bench_await(&n->acks, PTL_EVENT_ACK, n->acked - n->window + 1);
	start_put(n, n->stream);
}

static void put_ping(struct node *n, ptl_handle_md_t md)
{
	BENCH_DO(
		PtlPut, md, PTL_NO_ACK_REQ, n->peer_id, PORTAL_PING, 0, BENCH_BITS, 0, 0);
}

static void await_ping(struct node *n)
{
	bench_await(&n->pings, PTL_EVENT_PUT_END, n->pings.seen[PTL_EVENT_PUT_END] + 1);
}

static void bare_ping(struct node *n)
{
	put_ping(n, n->ping);
	await_ping(n);
}

static void bare_pong(struct node *n)
{
	await_ping(n);
	put_ping(n, n->ping);
}

/* ---- one node alone ---- */

static void copy(struct node *n)
{
	memcpy(n->to, n->from, n->bytes);
	__asm__ volatile("" ::: "memory");
}

static void bind(struct node *n)
{
	ptl_handle_md_t md = bench_bind(n->b, n->outside, n->bytes, n->acks.eq);
	BENCH_DO(PtlMDUnlink, md);
}

/* ---- the ways ---- */

static const struct way way_put = {"put", GASNET, put, NULL, NULL, AT_TARGET};
static const struct way way_put_outside = {
	"put_bulk", GASNET, put_outside, NULL, NULL, AT_TARGET};
static const struct way way_put_nb = {
	"put_nb_bulk", GASNET, put_nb, sync_puts, NULL, AT_TARGET};
static const struct way way_short = {"am_short", GASNET, am_short, NULL, NULL, NOWHERE};
static const struct way way_medium = {
	"am_medium", GASNET, am_medium, NULL, NULL, NOWHERE};
static const struct way way_bare_put = {
	"bare_put_ack", BARE, bare_put, NULL, NULL, AT_TARGET};
static const struct way way_bare_put_nb = {
	"bare_puts", BARE, bare_put_nb, sync_acks, NULL, AT_TARGET};
static const struct way way_bare_ping = {
	"two_bare_puts", BARE, bare_ping, NULL, bare_pong, AT_BOTH};
static const struct way way_copy = {"memcpy", ALONE, copy, NULL, NULL, NOWHERE};
static const struct way way_bind = {"bind_unlink", ALONE, bind, NULL, NULL, NOWHERE};

/* ---- behind a batch ---- */

static void tell(struct node *n, enum side side)
{
	if (side == GASNET)
		gasnet_AMRequestShort0(n->peer, NOTE);
	else
		put_ping(n, n->note);
}

/* Rank 0 says that the batch is over, and waits until rank 1 has checked its data. */
static void meet(struct node *n, const struct way *way)
{
	if (way->side == ALONE)
		return;
	if (n->first)
		tell(n, way->side);
	if (way->side == GASNET) {
		n->noted++;
		GASNET_BLOCKUNTIL(n->notes == n->noted);
	} else {
		await_ping(n);
	}
	bool lands = way->lands == AT_BOTH || (way->lands == AT_TARGET && !n->first);
	uint64_t at = lands ? perf_differs_at(n->to, n->bytes, 0, n->seed) : n->bytes;
	if (at < n->bytes)
		wrong(n, way->name, at);
	if (!n->first)
		tell(n, way->side);
}

/* One way of a test: ns of an operation in each batch, and of single ones. */
struct runner {
	const struct way *way;
	double batch[MOST_TURNS], single[MOST_TURNS * MOST_SINGLE];
	uint64_t singles;
};

/* How a figure shows a way. */
struct curve {
	const struct way *way;
	const char *value, *p99; /* names of its columns */
	enum { US, NS, MIB } unit;
};

/* The first curve is compared with the second one. */
struct figure {
	const char *name, *ratio;
	struct curve curve[MOST_WAYS];
	bool streams;
	uint64_t least, most; /* sizes that it can have */
	uint64_t size[SIZES]; /* those by default, up to a zero behind the first */
};

enum { FIGURES = 4 };
#define LARGE                                                                            \
	{                                                                                \
		1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10,        \
			128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20                \
	}

static const char *const figure_name[FIGURES] = {"2", "3", "4", "5"};

static const struct figure figures[FIGURES] = {
	{"2", "put_per_bare",
		{{&way_put, "put_us", "put_p99_us", US},
			{&way_bare_put, "bare_us", "bare_p99_us", US},
			{&way_short, "short_us", "short_p99_us", US}},
		false, 1, LARGEST, {1, 2, 4, 8, 16, 17, 32, 64, 128, 256, 512, 1024}},
	{"3", "per_bare",
		{{&way_put_nb, "put_MB_per_s", "put_p99_MB", MIB},
			{&way_bare_put_nb, "bare_MB_per_s", "bare_p99_MB", MIB},
			{&way_copy, "memcpy_MB_per_s", "memcpy_p99_MB", MIB}},
		true, 1, LARGEST, LARGE},
	{"4", "medium_per_two",
		{{&way_medium, "medium_us", "medium_p99_us", US},
			{&way_bare_ping, "two_bare_us", "two_p99_us", US}},
		false, 0, gasnet_AMMaxMedium(),
		{0, 1, 2, 4, 8, 16, 17, 32, 64, 128, 256, 512, 1024,
			gasnet_AMMaxMedium()}},
	{"5", "put_per_bind",
		{{&way_put_outside, "put_MB_per_s", "put_p99_MB", MIB},
			{&way_bind, "bind_ns", "bind_p99_ns", NS}},
		false, 1, LARGEST, LARGE},
};

struct program {
	struct bench b;
	struct node n;
	bool figure[FIGURES], named; /* named: by --figure */
	struct bench_list sizes;
	struct bench_number window, turns;
	const char *lines; /* name of a file, or NULL */
	FILE *out;
	struct runner runner[MOST_WAYS];
};

/* ---- turns ---- */

static void repeat(struct program *p, const struct way *way, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		way->op(&p->n);
	if (way->sync)
		way->sync(&p->n);
}

static void one_turn(struct program *p, struct runner *r, uint64_t turn, uint64_t count)
{
	const struct way *way = r->way;
	uint64_t some = count / 4 + 1;
	uint64_t singles = way->sync ? 0 : some < MOST_SINGLE ? some : MOST_SINGLE;
	fill(&p->n);
	if (p->n.first) {
		repeat(p, way, count / 16 + 1); /* warm */
		double t = bench_now_ns();
		repeat(p, way, count);
		r->batch[turn] = (bench_now_ns() - t) / (double)count;
		for (uint64_t i = 0; i < singles; i++) {
			t = bench_now_ns();
			way->op(&p->n);
			r->single[r->singles++] = bench_now_ns() - t;
		}
	} else if (way->serve) {
		for (uint64_t i = 0; i < count / 16 + 1 + count + singles; i++)
			way->serve(&p->n);
	}
	meet(&p->n, way);
}

static unsigned ways_of(const struct figure *f)
{
	unsigned n = 0;
	while (n < MOST_WAYS && f->curve[n].way)
		n++;
	return n;
}

/* Return the operations of a batch: 1 to 5 ms of them. */
static uint64_t count_of(const struct program *p, const struct figure *f, uint64_t bytes)
{
	uint64_t count = ((uint64_t)16 << 20) / (bytes ? bytes : 1);
	if (p->b.quick)
		return 16;
	if (!f->streams)
		count /= 4;
	return count > 1000 ? 1000 : count < 16 ? 16 : count;
}

/* The order rotates, so that a slow drift does not show in the ratios. */
static void take_turns(struct program *p, const struct figure *f, uint64_t bytes)
{
	unsigned ways = ways_of(f);
	uint64_t count = count_of(p, f, bytes);
	for (unsigned k = 0; k < ways; k++) {
		p->runner[k].way = f->curve[k].way;
		p->runner[k].singles = 0;
		one_turn(p, &p->runner[k], 0, count / 4 + 1); /* warm */
		p->runner[k].singles = 0;
	}
	for (uint64_t i = 0; i < p->turns.value; i++)
		for (unsigned k = 0; k < ways; k++)
			one_turn(p, &p->runner[(k + i) % ways], i, count);
}

/* ---- results ---- */

static double in_unit(const struct curve *c, uint64_t bytes, double ns)
{
	return c->unit == US   ? ns / 1e3
	       : c->unit == NS ? ns
			       : (double)bytes / ns * 1e9 / (1 << 20);
}

/* Print the row and the lines of a size.  Where no single operations are timed, p99 is
 * that of the batches.  A ratio is that of the first way's time to another one's. */
static void show(struct program *p, const struct figure *f, uint64_t bytes)
{
	struct bench_cell cells[MOST_CELLS] = {
		BENCH_TEXT("figure", f->name), BENCH_COUNT("bytes", bytes)};
	unsigned ways = ways_of(f), n = 2;
	uint64_t turns = p->turns.value;
	double ratio[MOST_WAYS];
	for (unsigned k = 0; k < ways; k++)
		ratio[k] = bench_ratio(p->runner[0].batch, p->runner[k].batch, turns);
	for (unsigned k = 0; k < ways; k++) {
		const struct curve *c = &f->curve[k];
		struct runner *r = &p->runner[k];
		struct bench_stat s = bench_stat_of(r->batch, turns);
		double p99 =
			r->singles ? bench_stat_of(r->single, r->singles).p99 : s.p99;
		int digits = c->unit == US ? 3 : 1;
		cells[n++] = (struct bench_cell)BENCH_REAL(
			c->value, in_unit(c, bytes, s.p50), digits);
		cells[n++] = (struct bench_cell)BENCH_REAL(
			c->p99, in_unit(c, bytes, p99), digits);
		if (p->out)
			fprintf(p->out, "%s\t%s\t%llu\t%.1f\t%.1f\t%.4f\n", f->name,
				c->way->name, (unsigned long long)bytes, s.p50, p99,
				ratio[k]);
	}
	cells[n++] = (struct bench_cell)BENCH_REAL(
		f->ratio, f->streams ? 1 / ratio[1] : ratio[1], 3);
	bench_row(&p->b, cells);
}

static void test(struct program *p, const struct figure *f, uint64_t bytes)
{
	begin(&p->n, f->curve[0].way->name, bytes);
	take_turns(p, f, bytes);
	end(&p->n);
	if (p->b.rank == 0)
		show(p, f, bytes);
}

/* Store the sizes of a figure: those of --sizes that it can have, or its own. */
static unsigned sizes_of(const struct program *p, const struct figure *f, uint64_t *size)
{
	unsigned n = 0;
	for (unsigned i = 0; i < p->sizes.n; i++)
		if (p->sizes.at[i] >= f->least && p->sizes.at[i] <= f->most)
			size[n++] = p->sizes.at[i];
	for (unsigned i = 0; !p->sizes.n && i < SIZES && (!i || f->size[i]); i++)
		size[n++] = f->size[i];
	return n;
}

/* ---- options ---- */

static const char about[] =
	"usage: yod -sz 2 gasnetperf [options]\n"
	"Latency and bandwidth of GASNet between ranks 0 and 1, beside bare Portals.\n"
	"GASNET_PORTAL_SEGMENT and GASNET_PORTAL_LOCAL choose memory and local side;\n"
	"bench/gasnetfigures runs all of them in turns with MPI, and draws the "
	"figures.\n";

static const char legend[] =
	"figure 2  a blocking put, a bare PtlPut to its ACK, an AM Short round trip\n"
	"figure 3  put_nb_bulk from the segment, as many bare PtlPuts, memcpy\n"
	"figure 4  AM Medium there and back with the payload, two bare puts\n"
	"figure 5  a blocking put_bulk from outside of the segment, bind and unlink\n"
	"Medians of the turns, and p99 of single operations (figure 3: of turns).  MB "
	"is\n"
	"2^20 bytes.  Ratios: of times, in figure 3 of bandwidths.\n";

static void options(struct program *p, int argc, char **argv)
{
	struct bench_words words = {figure_name, FIGURES, p->figure};
	p->sizes.most = LARGEST;
	p->window = (struct bench_number){64, 1, 1024};
	p->turns = (struct bench_number){20, 1, MOST_TURNS};
	const struct bench_option rows[] = {
		{"figure", "LIST", "default all", bench_set_words, &words},
		{"sizes", "LIST",
			"bytes; each figure takes those that it can have; default its "
			"own",
			bench_set_list, &p->sizes},
		{"window", "N", "bare puts without their ACK; default 64",
			bench_set_number, &p->window},
		{"turns", "N", "batches of each way in a test; default 20",
			bench_set_number, &p->turns},
		{"lines", "FILE",
			"also write figure, way, bytes, ns of p50, of p99, and ratio",
			bench_set_text, &p->lines},
		{0}};
	bench_options(&p->b, rows, argc, argv);
	for (unsigned k = 0; k < FIGURES; k++)
		p->named |= p->figure[k];
	bench_all_words(&words);
	if (p->b.quick)
		p->turns.value = 2;
}

/* Return the largest size.  All ranks leave if a figure that is named has none of the
 * sizes. */
static uint64_t check_sizes(struct program *p)
{
	uint64_t size[BENCH_LIST], most = GASNET_PAGESIZE;
	for (unsigned k = 0; k < FIGURES; k++) {
		const struct figure *f = &figures[k];
		unsigned n = p->figure[k] ? sizes_of(p, f, size) : 0;
		for (unsigned i = 0; i < n; i++)
			most = size[i] > most ? size[i] : most;
		if (p->named && p->figure[k] && !n)
			bench_refuse(&p->b,
				"--sizes: %" PRIu64 " with --figure %s; expected %" PRIu64
				" to %" PRIu64 "; give a size there, or other figures",
				p->sizes.at[0], f->name, f->least, f->most);
	}
	return most;
}

int main(int argc, char **argv)
{
	uint64_t size[BENCH_LIST];
	static struct program p = {
		.b = {.program = "gasnetperf", .about = about, .legend = legend}};
	options(&p, argc, argv);
	bench_want_ranks(&p.b, 2, 2);
	if (p.lines && p.b.rank == 0 && !(p.out = fopen(p.lines, "we")))
		bench_die(2, "--lines: '%s' cannot be written: %s; expected a file",
			p.lines, strerror(errno));
	p.n.b = &p.b;
	p.n.largest = check_sizes(&p);
	p.n.window = (unsigned)p.window.value;
	open_node(
		&p.n); /* before bench_begin pins this thread: the conduit counts CPUs */
	bench_begin(&p.b);
	for (unsigned k = 0; k < FIGURES; k++)
		for (unsigned i = 0, n = sizes_of(&p, &figures[k], size);
			p.figure[k] && i < n; i++)
			test(&p, &figures[k], size[i]);
	int status = bench_end(&p.b);
	if (p.out && (ferror(p.out) | fclose(p.out))) {
		fprintf(stderr, "gasnetperf: --lines: '%s' cannot be written: %s\n",
			p.lines, strerror(errno));
		status = 1;
	}
	bench_barrier();
	gasnet_exit(status); /* closes the network, too */
}
