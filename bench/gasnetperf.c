/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnetperf - latency and bandwidth of GASNet beside bare Portals
 *
 *	yod -sz 2 gasnetperf [options]
 *
 * Each test is one of the figures of the paper on GASNet over Portals, at one size.  Its
 * ways take turns: a turn is a batch of operations of each, and then some that are timed
 * one by one.  A median is that of the batches, a p99 that of the single operations, a
 * ratio the median of those of the turns.  bench/papers/all runs it beside MPI.
 *
 * Rank 0 begins and keeps the time.  Both halves of a comparison use the same memory in
 * the same processes: bytes go from "from", in rank 0's segment, or from "outside", to
 * "to" in rank 1's segment.  As the conduit's target does, that of a bare put with an
 * ACK has no queue; rank 1 polls meanwhile, and takes no part otherwise.
 */
#include "perf.h"

#include <gasnet.h>

#include <stdlib.h>

enum { TURNS = 20, MOST_SINGLE = 128, MOST_WAYS = 3, SIZES = 14, FIGURES = 4 };
enum { LARGEST = 16 << 20, UNDER_WAY = 4096, QUEUE = 4096 };
/* The conduit has 38 and 39, and bench.c has 60. */
enum { PORTAL_PUT = 8, PORTAL_PING = 9 };
/* Handlers: a note, requests that are answered with no bytes or with theirs, answers. */
enum { HANDLERS = 5, NOTE = 200, REPLY_SHORT, REPLY_MEDIUM, ECHO_SHORT, ECHO_MEDIUM };

/* The ways to move a message, and facts about them. */
enum way {
	NONE,
	PUT,
	PUT_BULK,
	PUT_NB,
	AM_SHORT,
	AM_MEDIUM,
	BARE_PUT,
	BARE_PUTS,
	BARE_PINGS,
	COPY,
	BIND,
	WAYS
};

static const struct {
	const char *name;
	enum side { GASNET, BARE, ALONE } side; /* rank 1 polls, or does nothing */
	enum lands { NOWHERE, AT_TARGET, AT_BOTH } lands; /* to be checked */
	bool streams; /* operations are complete when the batch is */
} facts[WAYS] = {
	[PUT] = {"put", GASNET, AT_TARGET, false},
	[PUT_BULK] = {"put_bulk", GASNET, AT_TARGET, false},
	[PUT_NB] = {"put_nb_bulk", GASNET, AT_TARGET, true},
	[AM_SHORT] = {"am_short", GASNET, NOWHERE, false},
	[AM_MEDIUM] = {"am_medium", GASNET, NOWHERE, false},
	[BARE_PUT] = {"bare_put_ack", BARE, AT_TARGET, false},
	[BARE_PUTS] = {"bare_puts", BARE, AT_TARGET, true},
	[BARE_PINGS] = {"two_bare_puts", BARE, AT_BOTH, false},
	[COPY] = {"memcpy", ALONE, NOWHERE, false},
	[BIND] = {"bind_unlink", ALONE, NOWHERE, false},
};

#define LARGE                                                                            \
	{                                                                                \
		1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10,        \
			128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20                \
	}

static const char *const figure_name[FIGURES] = {"2", "3", "4", "5"};

static const struct figure {
	enum way way[MOST_WAYS]; /* the first one is compared with the others */
	uint64_t least, most;    /* sizes that it can have */
	uint64_t size[SIZES];    /* those by default, up to a zero behind the first */
} figures[FIGURES] = {
	{{PUT, BARE_PUT, AM_SHORT}, 1, LARGEST,
		{1, 2, 4, 8, 16, 17, 32, 64, 128, 256, 512, 1024}},
	{{PUT_NB, BARE_PUTS, COPY}, 1, LARGEST, LARGE},
	{{AM_MEDIUM, BARE_PINGS}, 0, gasnet_AMMaxMedium(),
		{0, 1, 2, 4, 8, 16, 17, 32, 64, 128, 256, 512, 1024,
			gasnet_AMMaxMedium()}},
	{{PUT_BULK, BIND}, 1, LARGEST, LARGE},
};

static struct program {
	struct bench b;
	bool figure[FIGURES], named; /* named: by --figure */
	struct bench_list sizes;
	struct bench_number window; /* bare puts without their ACK */
	uint64_t turns;             /* batches of each way in a test */
	bool first;
	gasnet_node_t peer;
	ptl_process_id_t peer_id;
	char *from, *to, *outside; /* memory of this rank */
	char *there;               /* to of the peer */
	uint64_t bytes;            /* of the test */
	uint64_t seed;             /* of the content, another one for each batch */
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
	/* a way of the test: ns of an operation in each batch, and of single ones */
	struct runner {
		double batch[TURNS], single[TURNS * MOST_SINGLE];
		uint64_t singles;
	} runner[MOST_WAYS];
} program = {.sizes = {.most = LARGEST}, .window = {64, 1, 1024}};

static void check(int rc, const char *what)
{
	if (rc != GASNET_OK)
		bench_die(1, "%s answers %s, expected GASNET_OK; see gasnet.h", what,
			gasnet_ErrorName(rc));
}

/* ---- handlers of active messages ---- */

/* Count an error, and print it. */
static void wrong(struct program *p, const char *what, uint64_t at)
{
	bench_wrong(&p->b,
		"%s of %" PRIu64 " bytes: wrong byte at %" PRIu64
		"; expected what was sent; the library damages data",
		what, p->bytes, at);
}

static void note(gasnet_token_t token)
{
	(void)token;
	program.notes++;
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
	program.replies++;
}

/* Check the length and the last byte: a copy would cost as much as the message. */
static void reply_medium(gasnet_token_t token, void *buf, size_t nbytes)
{
	const char *got = buf;
	if (nbytes != program.bytes)
		wrong(&program, "length of a reply", nbytes);
	else if (nbytes && got[nbytes - 1] != program.from[nbytes - 1])
		wrong(&program, "reply", nbytes - 1);
	reply_short(token);
}

static gasnet_handlerentry_t handler[HANDLERS] = {{NOTE, note}, {ECHO_SHORT, echo_short},
	{ECHO_MEDIUM, echo_medium}, {REPLY_SHORT, reply_short},
	{REPLY_MEDIUM, reply_medium}};

/* ---- set-up ---- */

/* A segment has two halves: from, and to. */
static void open_node(struct program *p, uint64_t largest)
{
	gasnet_seginfo_t segment[2];
	uint64_t half =
		(largest + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
#ifdef GASNET_SEGMENT_EVERYTHING
	bench_die(77,
		"GASNet's segments are EVERYTHING; expected FAST or LARGE; build with "
		"-DP3_GASNET_SEGMENT=FAST");
#endif
	check(gasnet_init(NULL, NULL), "gasnet_init");
	check(gasnet_attach(handler, HANDLERS, 2 * half, 0), "gasnet_attach");
	check(gasnet_getSegmentInfo(segment, 2), "gasnet_getSegmentInfo");
	p->first = p->b.rank == 0;
	p->peer = gasnet_mynode() ^ 1;
	p->from = segment[p->peer ^ 1].addr;
	p->to = p->from + half;
	p->there = (char *)segment[p->peer].addr + half;
	p->outside = bench_allocate(largest);
	p->peer_id = bench_id(&p->b, p->b.rank ^ 1);
	p->acks.eq = bench_queue(&p->b, QUEUE);
	p->pings.eq = bench_queue(&p->b, QUEUE);
	p->acks.may_lose = p->pings.may_lose = BENCH_LOSE_NONE;
	p->acks.poll = p->pings.poll = true;
	bench_post(&p->b, PORTAL_PUT, PTL_MD_OP_PUT, p->to, largest, PTL_EQ_NONE);
	bench_post(&p->b, PORTAL_PING, PTL_MD_OP_PUT, p->to, largest, p->pings.eq);
	p->note = bench_bind(&p->b, NULL, 0, PTL_EQ_NONE);
}

/* ---- one operation ---- */

static void start_put(struct program *p, ptl_handle_md_t md)
{
	bench_put(&p->b, md, PTL_ACK_REQ, p->peer_id, PORTAL_PUT, BENCH_BITS, 0, 0);
	p->acked++;
}

static void put_ping(struct program *p, ptl_handle_md_t md)
{
	bench_put(&p->b, md, PTL_NO_ACK_REQ, p->peer_id, PORTAL_PING, BENCH_BITS, 0, 0);
}

static void await_ping(struct program *p)
{
	bench_await(&p->pings, PTL_EVENT_PUT_END, p->pings.seen[PTL_EVENT_PUT_END] + 1);
}

static void await_reply(struct program *p)
{
	p->replied++;
	GASNET_BLOCKUNTIL(p->replies == p->replied);
}

/* Rank 0 does this again and again, and synchronizes at the end. */
static inline void operate(struct program *p, enum way way)
{
	switch (way) {
	case PUT:
		gasnet_put(p->peer, p->there, p->from, p->bytes);
		break;
	case PUT_BULK:
		gasnet_put_bulk(p->peer, p->there, p->outside, p->bytes);
		break;
	case PUT_NB:
		p->handle[p->under_way++] =
			gasnet_put_nb_bulk(p->peer, p->there, p->from, p->bytes);
		break;
	case AM_SHORT:
		gasnet_AMRequestShort0(p->peer, ECHO_SHORT);
		await_reply(p);
		break;
	case AM_MEDIUM:
		gasnet_AMRequestMedium0(p->peer, ECHO_MEDIUM, p->from, p->bytes);
		await_reply(p);
		break;
	case BARE_PUT:
		start_put(p, p->out);
		bench_await(&p->acks, PTL_EVENT_ACK, p->acked);
		break;
	case BARE_PUTS:
		if (p->acked >= p->window.value)
			bench_await(
				&p->acks, PTL_EVENT_ACK, p->acked - p->window.value + 1);
		start_put(p, p->stream);
		break;
	case BARE_PINGS:
		put_ping(p, p->ping);
		await_ping(p);
		break;
	case COPY:
		memcpy(p->to, p->from, p->bytes);
		__asm__ volatile("" ::: "memory");
		break;
	default: /* BIND */
		BENCH_DO(
			PtlMDUnlink, bench_bind(&p->b, p->outside, p->bytes, p->acks.eq));
	}
}

static void repeat(struct program *p, enum way way, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		operate(p, way);
	if (way == PUT_NB)
		gasnet_wait_syncnb_all(p->handle, p->under_way);
	else if (way == BARE_PUTS)
		bench_await(&p->acks, PTL_EVENT_ACK, p->acked);
	p->under_way = 0;
}

/* ---- turns ---- */

static void tell(struct program *p, enum side side)
{
	if (side == GASNET)
		gasnet_AMRequestShort0(p->peer, NOTE);
	else
		put_ping(p, p->note);
}

/* Rank 0 says that the batch is over, and waits until rank 1 has checked its data. */
static void meet(struct program *p, enum way way)
{
	enum side side = facts[way].side;
	bool lands = facts[way].lands == AT_BOTH ||
		     (facts[way].lands == AT_TARGET && !p->first);
	if (side == ALONE)
		return;
	if (p->first)
		tell(p, side);
	if (side == GASNET) {
		p->noted++;
		GASNET_BLOCKUNTIL(p->notes == p->noted);
	} else {
		await_ping(p);
	}
	uint64_t at = lands ? perf_differs_at(p->to, p->bytes, 0, p->seed) : p->bytes;
	if (at < p->bytes)
		wrong(p, facts[way].name, at);
	if (!p->first)
		tell(p, side);
}

static void one_turn(struct program *p, const struct figure *f, unsigned k, uint64_t turn,
	uint64_t count)
{
	struct runner *r = &p->runner[k];
	enum way way = f->way[k];
	uint64_t warm = count / 16 + 1, some = count / 4 + 1;
	uint64_t singles = facts[way].streams   ? 0
			   : some < MOST_SINGLE ? some
						: MOST_SINGLE;
	p->seed++;
	if (p->first) {
		perf_fill(p->from, p->bytes, p->seed);
		perf_fill(p->outside, p->bytes, p->seed);
		repeat(p, way, warm);
		double t = bench_now_ns();
		repeat(p, way, count);
		r->batch[turn] = (bench_now_ns() - t) / (double)count;
		for (uint64_t i = 0; i < singles; i++) {
			t = bench_now_ns();
			operate(p, way);
			r->single[r->singles++] = bench_now_ns() - t;
		}
	}
	for (uint64_t i = warm + count + singles; !p->first && way == BARE_PINGS && i;
		i--) {
		await_ping(p);
		put_ping(p, p->ping);
	}
	meet(p, way);
}

/* Run the turns of a figure at one size; rank 0 prints a row for each way.  Where no
 * single operations are timed, p99 is that of the batches. */
static void test(struct program *p, const struct figure *f, uint64_t bytes)
{
	bool streams = facts[f->way[0]].streams;
	unsigned ways = f->way[2] ? 3 : 2;
	/* operations of a batch: 1 to 5 ms of them */
	uint64_t count = ((uint64_t)(streams ? 16 : 4) << 20) / (bytes ? bytes : 1);
	count = p->b.quick || count < 16 ? 16 : count > 1000 ? 1000 : count;
	/* as the conduit does for its short puts, ask for no SEND_END */
	ptl_md_t quiet =
		bench_region(&p->b, p->from, bytes, PTL_MD_EVENT_END_DISABLE, p->acks.eq);
	BENCH_DO(PtlMDBind, p->b.ni, quiet, PTL_RETAIN, &p->out);
	p->stream = bench_bind(&p->b, p->from, bytes, p->acks.eq);
	p->ping = bench_bind(&p->b, p->first ? p->from : p->to, bytes, PTL_EQ_NONE);
	p->bytes = bytes;
	bench_barrier();
	for (unsigned k = 0; k < ways; k++) {
		one_turn(p, f, k, 0, count / 4 + 1); /* warm */
		p->runner[k].singles = 0;
	}
	/* the order rotates, so that a slow drift does not show in the ratios */
	for (uint64_t i = 0; i < p->turns; i++)
		for (unsigned k = 0; k < ways; k++)
			one_turn(p, f, (unsigned)(k + i) % ways, i, count);
	bench_barrier();
	BENCH_DO(PtlMDUnlink, p->out);
	BENCH_DO(PtlMDUnlink, p->stream);
	BENCH_DO(PtlMDUnlink, p->ping);
	double ratio[MOST_WAYS];
	for (unsigned k = 0; k < ways; k++)
		ratio[k] = bench_ratio(p->runner[0].batch, p->runner[k].batch, p->turns);
	for (unsigned k = 0; k < ways && p->first; k++) {
		struct runner *r = &p->runner[k];
		struct bench_stat s = bench_stat_of(r->batch, p->turns);
		double p99 =
			r->singles ? bench_stat_of(r->single, r->singles).p99 : s.p99;
		BENCH_ROW(&p->b, BENCH_TEXT("figure", figure_name[f - figures]),
			BENCH_TEXT("          way", facts[f->way[k]].name),
			BENCH_COUNT("bytes", bytes), BENCH_REAL("p50_ns", s.p50, 1),
			BENCH_REAL("p99_ns", p99, 1),
			BENCH_REAL(
				"MB_per_s", (double)bytes / s.p50 * 1e9 / (1 << 20), 1),
			BENCH_REAL("ratio", ratio[k], 4));
	}
}

/* ---- options ---- */

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

static const char about[] =
	"usage: yod -sz 2 gasnetperf [options]\n"
	"Latency and bandwidth of GASNet between ranks 0 and 1, beside bare Portals.\n"
	"GASNET_PORTAL_SEGMENT and GASNET_PORTAL_LOCAL choose memory and local side;\n"
	"bench/papers/all --only 5 runs all of them in turns with MPI, and draws the "
	"figures.\n";

static const char legend[] =
	"figure 2  a blocking put, a bare PtlPut to its ACK, an AM Short round trip\n"
	"figure 3  put_nb_bulk from the segment, as many bare PtlPuts, memcpy\n"
	"figure 4  AM Medium there and back with the payload, two bare puts\n"
	"figure 5  a blocking put_bulk from outside of the segment, bind and unlink\n"
	"Medians of the turns, and p99 of single operations (figure 3: of turns).  MB "
	"is\n"
	"2^20 bytes.  ratio: of the first way's time to that of this way.\n";

static void options(struct program *p, int argc, char **argv)
{
	struct bench_words words = {figure_name, FIGURES, p->figure};
	const struct bench_option rows[] = {
		{"figure", "LIST", "default all", bench_set_words, &words},
		{"sizes", "LIST",
			"bytes; each figure takes those that it can have; default its "
			"own",
			bench_set_list, &p->sizes},
		{"window", "N", "bare puts without their ACK; default 64",
			bench_set_number, &p->window},
		{0}};
	bench_options(&p->b, rows, argc, argv);
	for (unsigned k = 0; k < FIGURES; k++)
		p->named |= p->figure[k];
	bench_all_words(&words);
	p->turns = p->b.quick ? 2 : TURNS;
	bench_want_ranks(&p->b, 2, 2);
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
				p->sizes.at[0], figure_name[k], f->least, f->most);
	}
	return most;
}

int main(int argc, char **argv)
{
	struct program *p = &program;
	uint64_t size[BENCH_LIST];
	p->b = (struct bench){.program = "gasnetperf", .about = about, .legend = legend};
	options(p, argc, argv);
	/* before bench_begin pins this thread: the conduit counts CPUs */
	open_node(p, check_sizes(p));
	bench_begin(&p->b);
	for (unsigned k = 0; k < FIGURES; k++) {
		unsigned n = p->figure[k] ? sizes_of(p, &figures[k], size) : 0;
		for (unsigned i = 0; i < n; i++)
			test(p, &figures[k], size[i]);
	}
	int status = bench_end(&p->b);
	bench_barrier();
	gasnet_exit(status); /* closes the network, too */
}
