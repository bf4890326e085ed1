/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up of GASNet and of bare Portals in two ranks, for gasnetperf. */
#include "gasnet_node.h"

#include "perf.h"

enum { QUEUE = 4096, HANDLERS = 5, NOTE = 200, REPLY_SHORT, REPLY_MEDIUM };

static struct gn_node *served; /* node that the handlers serve */

static void check(int rc, const char *what)
{
	if (rc != GASNET_OK)
		bench_die(1, "%s answers %s, expected GASNET_OK; see gasnet.h", what,
			gasnet_ErrorName(rc));
}

/* ---- handlers of active messages ---- */

/* Count an error, and print it. */
static void wrong(struct gn_node *n, const char *way, uint64_t at)
{
	bench_wrong(n->b,
		"%s, %s of %llu bytes: wrong byte at %llu; expected what was sent; the "
		"library damages data",
		n->what, way, (unsigned long long)n->bytes, (unsigned long long)at);
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

static gasnet_handlerentry_t handler[HANDLERS] = {{NOTE, note},
	{GN_ECHO_SHORT, echo_short}, {GN_ECHO_MEDIUM, echo_medium},
	{REPLY_SHORT, reply_short}, {REPLY_MEDIUM, reply_medium}};

/* ---- set-up ---- */

/* A segment has two halves: from, and to. */
static uint64_t half(const struct gn_node *n)
{
	return (n->largest + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
}

static void open_gasnet(struct gn_node *n)
{
	gasnet_seginfo_t segment[2];
#ifdef GASNET_SEGMENT_EVERYTHING
	bench_die(77,
		"GASNet's segments are EVERYTHING; expected FAST or LARGE; build with "
		"-DP3_GASNET_SEGMENT=FAST");
#endif
	check(gasnet_init(NULL, NULL), "gasnet_init");
	check(gasnet_attach(handler, HANDLERS, 2 * half(n), 0), "gasnet_attach");
	check(gasnet_getSegmentInfo(segment, 2), "gasnet_getSegmentInfo");
	n->peer = gasnet_mynode() ^ 1;
	n->from = segment[n->peer ^ 1].addr;
	n->to = n->from + half(n);
	n->there = (char *)segment[n->peer].addr + half(n);
	n->outside = bench_allocate(n->largest);
}

static void open_bare(struct gn_node *n)
{
	n->peer_id = bench_id(n->b, n->b->rank ^ 1);
	n->acks.eq = bench_queue(n->b, QUEUE);
	n->pings.eq = bench_queue(n->b, QUEUE);
	n->acks.may_lose = n->pings.may_lose = BENCH_LOSE_NONE;
	n->acks.poll = n->pings.poll = true;
	bench_post(n->b, GN_PORTAL_PUT, BENCH_BITS, PTL_MD_OP_PUT, n->to, n->largest,
		PTL_EQ_NONE);
	bench_post(n->b, GN_PORTAL_PING, BENCH_BITS, PTL_MD_OP_PUT, n->to, n->largest,
		n->pings.eq);
	n->note = bench_bind(n->b, NULL, 0, PTL_EQ_NONE);
}

void gn_open(struct gn_node *n)
{
	n->first = n->b->rank == 0;
	served = n;
	open_gasnet(n);
	open_bare(n);
}

/* As the conduit does for its short puts, ask for no SEND_END. */
static ptl_handle_md_t bind_quiet(struct gn_node *n)
{
	ptl_handle_md_t handle;
	ptl_md_t md = {.start = n->from,
		.length = n->bytes,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
		.eq_handle = n->acks.eq};
	bench_check(PtlMDBind(n->b->ni, md, PTL_RETAIN, &handle), "PtlMDBind");
	return handle;
}

void gn_begin(struct gn_node *n, const char *what, uint64_t bytes)
{
	n->what = what;
	n->bytes = bytes;
	n->out = bind_quiet(n);
	n->stream = bench_bind(n->b, n->from, bytes, n->acks.eq);
	n->ping = bench_bind(n->b, n->first ? n->from : n->to, bytes, PTL_EQ_NONE);
	bench_barrier();
}

void gn_end(struct gn_node *n)
{
	bench_barrier();
	bench_check(PtlMDUnlink(n->out), "PtlMDUnlink");
	bench_check(PtlMDUnlink(n->stream), "PtlMDUnlink");
	bench_check(PtlMDUnlink(n->ping), "PtlMDUnlink");
}

/* ---- data ---- */

void gn_fill(struct gn_node *n)
{
	n->seed++;
	if (!n->first)
		return;
	perf_fill(n->from, n->bytes, n->seed);
	perf_fill(n->outside, n->bytes, n->seed);
}

static void check_content(struct gn_node *n, const struct gn_way *way)
{
	for (uint64_t i = 0; i < n->bytes; i += PERF_WORD) {
		uint64_t want = perf_word(i / PERF_WORD, n->seed), left = n->bytes - i;
		if (!memcmp(n->to + i, &want, left < PERF_WORD ? left : PERF_WORD))
			continue;
		wrong(n, way->name, i);
		return;
	}
}

/* ---- behind a batch ---- */

static void tell(struct gn_node *n, enum gn_side side)
{
	if (side == GN_GASNET)
		gasnet_AMRequestShort0(n->peer, NOTE);
	else
		bench_check(PtlPut(n->note, PTL_NO_ACK_REQ, n->peer_id, GN_PORTAL_PING, 0,
				    BENCH_BITS, 0, 0),
			"PtlPut");
}

static void await_note(struct gn_node *n, enum gn_side side)
{
	n->noted += side == GN_GASNET;
	if (side == GN_GASNET)
		GASNET_BLOCKUNTIL(n->notes == n->noted);
	else
		bench_await(&n->pings, PTL_EVENT_PUT_END,
			n->pings.seen[PTL_EVENT_PUT_END] + 1);
}

/* Rank 0 says that the batch is over, and waits until rank 1 has checked its data. */
void gn_meet(struct gn_node *n, const struct gn_way *way)
{
	if (way->side == GN_ALONE)
		return;
	if (n->first)
		tell(n, way->side);
	await_note(n, way->side);
	if (way->lands == GN_AT_BOTH || (way->lands == GN_AT_TARGET && !n->first))
		check_content(n, way);
	if (!n->first)
		tell(n, way->side);
}
