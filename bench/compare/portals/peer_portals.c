/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_portals - patterns of peer.h with libportals that no other program of bench/ has
 *
 *	yod -sz 2 peer_portals WHO quick|full test=list ...
 *
 * Active messages: as in examples/active.c, they lie one behind the other in blocks
 * whose descriptors manage their offsets; a full block is unlinked, the next one takes
 * over, and the full one goes to the end of the list.  Requests, replies and SEND_ENDs
 * have a queue each, and a poll looks into all three once, as the progress call of such a
 * layer does.  A posted receive is a match entry and a descriptor for one message.
 */
#include "../../bench.h"
#include "../am.h"
#include "../peer.h"

#include <string.h>

enum { PORTAL_AM = 4, PORTAL_QUEUES = 8, PORTAL_THREADS = 24, PORTAL_STEPS = 48 };
enum { MOST_QUEUES = 16 };

static struct bench b = {.program = "peer_portals"};
static ptl_process_id_t other;

/* Put bytes of a descriptor without an ACK. */
static void put(ptl_handle_md_t md, uint64_t at, uint64_t bytes, ptl_pt_index_t portal,
	uint64_t remote, ptl_hdr_data_t hdr)
{
	BENCH_DO(PtlPutRegion, md, at, bytes, PTL_NO_ACK_REQ, other, portal, 0,
		BENCH_BITS, remote, hdr);
}

/* ---- active messages ---- */

enum { REQUESTS, REPLIES, SENT, LAYER_QUEUES }; /* also portals, behind PORTAL_AM */
enum { BLOCKS = 2, BLOCK_MESSAGES = 256, SLOTS = 16 };

struct block {
	unsigned portal;
	char *start;
	ptl_handle_me_t me;
};

static struct layer {
	ptl_handle_eq_t eq[LAYER_QUEUES];
	ptl_handle_md_t out;
	char *tx;
	struct block block[(REPLIES + 1) * BLOCKS];
	uint64_t sent, gone; /* messages sent, and those whose slot is free again */
} layer;

static void am_request(unsigned function, const void *bytes)
{
	while (layer.sent - layer.gone >= SLOTS)
		am_poll();
	uint64_t at = layer.sent++ % SLOTS * am.bytes;
	memcpy(layer.tx + at, bytes, am.bytes);
	put(layer.out, at, am.bytes,
		PORTAL_AM + (function == AM_ECHO ? REQUESTS : REPLIES), 0, function);
}

static void add_block(struct block *k)
{
	ptl_md_t md = bench_region(&b, k->start, BLOCK_MESSAGES * am.bytes,
		PTL_MD_OP_PUT | PTL_MD_MAX_SIZE, layer.eq[k->portal]);
	md.max_size = am.bytes;
	md.user_ptr = k;
	BENCH_DO(PtlMEAttach, b.ni, PORTAL_AM + k->portal, bench_anyone, BENCH_BITS, 0,
		PTL_UNLINK, PTL_INS_AFTER, &k->me);
	BENCH_DO(PtlMDAttach, k->me, md, PTL_UNLINK, NULL);
}

/* Run the function of a message, free the slot of a sent one, or renew a full block. */
static bool poll(void)
{
	ptl_event_t ev;
	int which, rc = PtlEQPoll(layer.eq, LAYER_QUEUES, 0, &ev, &which);
	if (rc == PTL_EQ_EMPTY)
		return false;
	bench_check(rc, "PtlEQPoll");
	if (ev.ni_fail_type != PTL_NI_OK)
		peer_die("%s with ni_fail_type %u; expected PTL_NI_OK; is the peer gone?",
			PtlEventKindStr(ev.type), ev.ni_fail_type);
	if (ev.type == PTL_EVENT_PUT_END && ev.mlength == am.bytes)
		am_functions[ev.hdr_data]((char *)ev.md.start + ev.offset);
	else if (ev.type == PTL_EVENT_SEND_END)
		layer.gone++;
	else if (ev.type == PTL_EVENT_UNLINK)
		add_block(ev.md.user_ptr);
	else
		peer_die("%s of %" PRIu64 " bytes; expected PUT_END of %" PRIu64,
			PtlEventKindStr(ev.type), (uint64_t)ev.mlength, am.bytes);
	return true;
}

static void am_poll(void)
{
	(void)poll();
}

static void open_layer(uint64_t bytes)
{
	am_open(bytes);
	layer = (struct layer){.tx = bench_allocate(SLOTS * bytes)};
	for (unsigned q = 0; q < LAYER_QUEUES; q++)
		layer.eq[q] = bench_queue(&b, 4 * SLOTS);
	layer.out = bench_bind(&b, layer.tx, SLOTS * bytes, layer.eq[SENT]);
	for (unsigned i = 0; i < sizeof layer.block / sizeof layer.block[0]; i++) {
		layer.block[i] = (struct block){.portal = i / BLOCKS,
			.start = bench_allocate(BLOCK_MESSAGES * bytes)};
		add_block(&layer.block[i]);
	}
	bench_barrier();
}

/* Close it when no message is under way. */
static void close_layer(uint64_t bytes)
{
	(void)bytes;
	while (layer.gone < layer.sent)
		am_poll();
	bench_barrier();
	while (poll()) /* a last UNLINK renews a block */
		;
	for (unsigned i = 0; i < sizeof layer.block / sizeof layer.block[0]; i++) {
		BENCH_DO(PtlMEUnlink, layer.block[i].me);
		free(layer.block[i].start);
	}
	BENCH_DO(PtlMDUnlink, layer.out);
	for (unsigned q = 0; q < LAYER_QUEUES; q++)
		BENCH_DO(PtlEQFree, layer.eq[q]);
	free(layer.tx);
}

/* ---- memory, descriptors and a queue for one side of messages ---- */

struct side {
	struct bench_watch w;
	ptl_handle_md_t out, note;
	ptl_handle_me_t me;
	char *tx, *rx;
};

/* Open a side for messages to a portal; without a portal its user posts entries, and its
 * note is a descriptor of the bytes without a queue. */
static void open_side(struct side *s, uint64_t bytes, ptl_pt_index_t portal)
{
	*s = (struct side){.tx = bench_allocate(bytes), .rx = bench_allocate(bytes)};
	s->w.eq = bench_queue(&b, 4 * PEER_WINDOW);
	bench_watch_reset(&s->w, BENCH_LOSE_NONE);
	s->out = bench_bind(&b, s->tx, bytes, s->w.eq);
	s->note = bench_bind(&b, s->tx, portal ? 0 : bytes, PTL_EQ_NONE);
	if (portal)
		s->me = bench_post(&b, portal, PTL_MD_OP_PUT, s->rx, bytes, s->w.eq);
}

static void close_side(struct side *s, bool posted)
{
	BENCH_DO(PtlMDUnlink, s->out);
	BENCH_DO(PtlMDUnlink, s->note);
	if (posted)
		BENCH_DO(PtlMEUnlink, s->me);
	BENCH_DO(PtlEQFree, s->w.eq);
	free(s->tx);
	free(s->rx);
}

static struct side one; /* of a pattern without threads */

/* ---- a ping-pong through the last of several queues ---- */

static ptl_handle_eq_t queue[MOST_QUEUES];
static ptl_handle_me_t queue_me[MOST_QUEUES];

static void send_to_queue(uint64_t count, uint64_t round)
{
	peer_stamp(one.tx, PEER_WORD, round);
	put(one.note, 0, PEER_WORD, (ptl_pt_index_t)(PORTAL_QUEUES + count - 1), 0,
		round);
}

static void take_queue(uint64_t count, uint64_t round)
{
	ptl_event_t ev;
	int which, last = (int)count - 1;
	BENCH_DO(PtlEQPoll, queue, (int)count, PTL_TIME_FOREVER, &ev, &which);
	if (which != last || ev.type != PTL_EVENT_PUT_END || ev.hdr_data != round)
		peer_die("%s %" PRIu64 " in queue %d; expected PUT_END %" PRIu64
			 " in queue %d",
			PtlEventKindStr(ev.type), ev.hdr_data, which, round, last);
	peer_check(one.rx, PEER_WORD, round);
}

PEER_ROUNDS_OF(queue_pings, peer_ping_pong, .send = send_to_queue, .take = take_queue)

static void open_queues(uint64_t count)
{
	open_side(&one, PEER_WORD, 0);
	for (unsigned i = 0; i < count; i++) {
		queue[i] = bench_queue(&b, 64);
		queue_me[i] = bench_post(&b, PORTAL_QUEUES + i, PTL_MD_OP_PUT, one.rx,
			PEER_WORD, queue[i]);
	}
	bench_barrier();
}

static void close_queues(uint64_t count)
{
	bench_barrier();
	for (unsigned i = 0; i < count; i++) {
		BENCH_DO(PtlMEUnlink, queue_me[i]);
		BENCH_DO(PtlEQFree, queue[i]);
	}
	close_side(&one, false);
}

/* ---- a ping-pong that posts an entry for each message ---- */

static struct bench_watch came;

static void post(uint64_t bytes)
{
	ptl_handle_me_t me;
	ptl_md_t md = bench_region(&b, one.rx, bytes, PTL_MD_OP_PUT, came.eq);
	md.threshold = 1;
	BENCH_DO(PtlMEAttach, b.ni, PORTAL_STEPS, other, BENCH_BITS, 0, PTL_UNLINK,
		PTL_INS_AFTER, &me);
	BENCH_DO(PtlMDAttach, me, md, PTL_UNLINK, NULL);
}

static void send_step(uint64_t bytes, uint64_t round)
{
	peer_stamp(one.tx, bytes, round);
	put(one.out, 0, bytes, PORTAL_STEPS, 0, round);
}

static void sent_step(uint64_t round)
{
	bench_await(&one.w, PTL_EVENT_SEND_END, round + 1);
}

/* The entry is used up, which an event of its own tells. */
static void take_step(uint64_t bytes, uint64_t round)
{
	bench_await(&came, PTL_EVENT_PUT_END, round + 1);
	bench_await(&came, PTL_EVENT_UNLINK, round + 1);
	peer_check(one.rx, bytes, round);
}

PEER_ROUNDS_OF(posted_pings, peer_posted, .post = post, .send = send_step,
	.sent = sent_step, .take = take_step)

static void open_steps(uint64_t bytes)
{
	open_side(&one, bytes, 0);
	came = (struct bench_watch){
		.eq = bench_queue(&b, 64), .may_lose = BENCH_LOSE_NONE};
	if (peer_rank == 1)
		post(bytes);
	bench_barrier();
}

static void close_steps(uint64_t x)
{
	(void)x;
	bench_barrier();
	BENCH_DO(PtlEQFree, came.eq);
	close_side(&one, false);
}

/* ---- threads, each with a side; windows are those of portalperf's rate ---- */

static struct side of_thread[PEER_THREADS];

static void window(unsigned thread, uint64_t round)
{
	struct side *s = &of_thread[thread];
	ptl_pt_index_t portal = PORTAL_THREADS + thread;
	if (peer_rank == 0) {
		for (uint64_t i = 0; i < PEER_WINDOW; i++)
			((uint64_t *)s->tx)[i] = round + i;
		for (uint64_t at = 0; at < PEER_WINDOW * PEER_WORD; at += PEER_WORD)
			put(s->out, at, PEER_WORD, portal, at, round);
		bench_await(&s->w, PTL_EVENT_SEND_END, (round + 1) * PEER_WINDOW);
		bench_await(&s->w, PTL_EVENT_PUT_END, round + 1);
		return;
	}
	bench_await(&s->w, PTL_EVENT_PUT_END, (round + 1) * PEER_WINDOW);
	for (uint64_t i = 0; i < PEER_WINDOW; i++)
		peer_check(s->rx + i * PEER_WORD, PEER_WORD, round + i);
	put(s->note, 0, 0, portal, 0, round);
}

static void open_thread(unsigned thread)
{
	open_side(&of_thread[thread], PEER_WINDOW * PEER_WORD, PORTAL_THREADS + thread);
}

static void close_thread(unsigned thread)
{
	close_side(&of_thread[thread], true);
}

static const struct peer_threads threads = {
	open_thread, close_thread, bench_barrier, NULL, NULL, window};

/* ---- threads that throw balls: hdr_data is the number of remaining throws ---- */

static bool one_queue;

static void throw(uint64_t ball, uint64_t hops)
{
	put(of_thread[ball].note, 0, PEER_WORD, PORTAL_THREADS + (ptl_pt_index_t)ball, 0,
		hops);
}

static void catch_ball(unsigned thread, uint64_t round)
{
	ptl_event_t ev;
	(void)round;
	BENCH_DO(PtlEQWait, of_thread[one_queue ? 0 : thread].w.eq, &ev);
	uint64_t ball = ev.pt_index - PORTAL_THREADS;
	peer_check(of_thread[ball].rx, PEER_WORD, ball);
	if (ev.hdr_data > 1)
		throw(ball, ev.hdr_data - 1);
}

/* The queue of a ball is that of its thread, or of the first one. */
static void open_ball(unsigned thread)
{
	struct side *s = &of_thread[thread];
	open_side(s, PEER_WORD, 0);
	s->me = bench_post(&b, PORTAL_THREADS + thread, PTL_MD_OP_PUT, s->rx, PEER_WORD,
		of_thread[one_queue ? 0 : thread].w.eq);
	peer_stamp(s->tx, PEER_WORD, thread);
}

/* Each rank catches each ball once in a round. */
static void throw_first(unsigned thread)
{
	if (peer_rank == 0)
		throw(thread, 2 * (peer_last_round + 1));
}

static const struct peer_threads balls = {
	open_ball, close_thread, bench_barrier, throw_first, NULL, catch_ball};

static void share_queue(uint64_t count)
{
	(void)count;
	one_queue = !one_queue; /* before the test, and again behind it */
}

static const struct peer_test tests[] = {
	{"am", NULL, PEER_WORD, PEER_BYTES, 1, am_rounds, .open = open_layer,
		.close = close_layer},
	{"queues", NULL, 1, MOST_QUEUES, 2, queue_pings, .open = open_queues,
		.close = close_queues},
	{"threads", NULL, 1, PEER_THREADS, PEER_WINDOW, .threads = &threads},
	{"balls", NULL, 1, PEER_THREADS, 2, .threads = &balls},
	{"balls_one", NULL, 1, PEER_THREADS, 2, .open = share_queue, .close = share_queue,
		.threads = &balls},
	{"posted", NULL, 0, PEER_ANY, 2, posted_pings, .open = open_steps,
		.close = close_steps},
	{"step", NULL, 0, PEER_STEPS - 1, 1, posted_pings, .open = open_steps,
		.close = close_steps},
	{0},
};

int main(int argc, char **argv)
{
	static const struct peer peer = {
		.tests = tests, .named = true, .after = bench_barrier};
	peer_program = "peer_portals";
	bench_start(&b);
	if (b.size != 2)
		peer_die("%u ranks; expected 2; use yod -sz 2", b.size);
	other = bench_id(&b, b.rank ^ 1);
	peer_rank = b.rank;
	peer_pin(b.rank);
	peer_run(&peer, argc, argv);
	bench_leave(b.errors != 0);
}
