/* SPDX-License-Identifier: BSD-3-Clause */
/* GASNet and bare Portals in two ranks, and the ways that gasnetperf times. */
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
		if (memcmp(n->to + i, &want, left < PERF_WORD ? left : PERF_WORD) == 0)
			continue;
		wrong(n, way->name, i);
		return;
	}
}

/* ---- active messages ---- */

static void await_reply(struct gn_node *n)
{
	n->replied++;
	GASNET_BLOCKUNTIL(n->replies == n->replied);
}

static void am_short(struct gn_node *n)
{
	gasnet_AMRequestShort0(n->peer, GN_ECHO_SHORT);
	await_reply(n);
}

static void am_medium(struct gn_node *n)
{
	gasnet_AMRequestMedium0(n->peer, GN_ECHO_MEDIUM, n->from, n->bytes);
	await_reply(n);
}

/* ---- puts of GASNet ---- */

static void put(struct gn_node *n)
{
	gasnet_put(n->peer, n->there, n->from, n->bytes);
}

static void put_outside(struct gn_node *n)
{
	gasnet_put_bulk(n->peer, n->there, n->outside, n->bytes);
}

static void put_nb(struct gn_node *n)
{
	n->handle[n->under_way++] =
		gasnet_put_nb_bulk(n->peer, n->there, n->from, n->bytes);
}

static void sync_puts(struct gn_node *n)
{
	gasnet_wait_syncnb_all(n->handle, n->under_way);
	n->under_way = 0;
}

/* ---- bare Portals ---- */

static void start_put(struct gn_node *n, ptl_handle_md_t md)
{
	int rc;
	while ((rc = PtlPut(md, PTL_ACK_REQ, n->peer_id, GN_PORTAL_PUT, 0, BENCH_BITS, 0,
			0)) == PTL_NO_SPACE)
		bench_try(&n->acks); /* advances the operations that wait */
	bench_check(rc, "PtlPut");
	n->acked++;
}

static void sync_acks(struct gn_node *n)
{
	bench_await(&n->acks, PTL_EVENT_ACK, n->acked);
}

static void bare_put(struct gn_node *n)
{
	start_put(n, n->out);
	sync_acks(n);
}

static void bare_put_nb(struct gn_node *n)
{
	if (n->acked >= n->window)
		bench_await(&n->acks, PTL_EVENT_ACK, n->acked - n->window + 1);
	start_put(n, n->stream);
}

static void put_ping(struct gn_node *n, ptl_handle_md_t md)
{
	bench_check(PtlPut(md, PTL_NO_ACK_REQ, n->peer_id, GN_PORTAL_PING, 0, BENCH_BITS,
			    0, 0),
		"PtlPut");
}

static void await_ping(struct gn_node *n)
{
	bench_await(&n->pings, PTL_EVENT_PUT_END, n->pings.seen[PTL_EVENT_PUT_END] + 1);
}

static void bare_ping(struct gn_node *n)
{
	put_ping(n, n->ping);
	await_ping(n);
}

static void bare_pong(struct gn_node *n)
{
	await_ping(n);
	put_ping(n, n->ping);
}

/* ---- one node alone ---- */

static void copy(struct gn_node *n)
{
	memcpy(n->to, n->from, n->bytes);
	__asm__ volatile("" ::: "memory");
}

static void bind(struct gn_node *n)
{
	ptl_handle_md_t md = bench_bind(n->b, n->outside, n->bytes, n->acks.eq);
	bench_check(PtlMDUnlink(md), "PtlMDUnlink");
}

/* ---- the ways ---- */

const struct gn_way gn_put = {"put", GN_GASNET, put, NULL, NULL, GN_AT_TARGET};
const struct gn_way gn_put_outside = {
	"put_bulk", GN_GASNET, put_outside, NULL, NULL, GN_AT_TARGET};
const struct gn_way gn_puts = {
	"put_nb_bulk", GN_GASNET, put_nb, sync_puts, NULL, GN_AT_TARGET};
const struct gn_way gn_short = {"am_short", GN_GASNET, am_short, NULL, NULL, GN_NOWHERE};
const struct gn_way gn_medium = {
	"am_medium", GN_GASNET, am_medium, NULL, NULL, GN_NOWHERE};
const struct gn_way gn_bare_put = {
	"bare_put_ack", GN_BARE, bare_put, NULL, NULL, GN_AT_TARGET};
const struct gn_way gn_bare_puts = {
	"bare_puts", GN_BARE, bare_put_nb, sync_acks, NULL, GN_AT_TARGET};
const struct gn_way gn_bare_pings = {
	"two_bare_puts", GN_BARE, bare_ping, NULL, bare_pong, GN_AT_BOTH};
const struct gn_way gn_memcpy = {"memcpy", GN_ALONE, copy, NULL, NULL, GN_NOWHERE};
const struct gn_way gn_bind = {"bind_unlink", GN_ALONE, bind, NULL, NULL, GN_NOWHERE};

/* ---- behind a batch ---- */

static void tell(struct gn_node *n, enum gn_side side)
{
	if (side == GN_GASNET)
		gasnet_AMRequestShort0(n->peer, NOTE);
	else
		put_ping(n, n->note);
}

static void await_note(struct gn_node *n, enum gn_side side)
{
	n->noted += side == GN_GASNET;
	if (side == GN_GASNET)
		GASNET_BLOCKUNTIL(n->notes == n->noted);
	else
		await_ping(n);
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
