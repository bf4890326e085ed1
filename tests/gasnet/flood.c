/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flood of active messages of random category and size, from all nodes to all nodes:
 * gn_flood_MODE SEEDS MESSAGES.  GN_SEED is the first seed.
 *
 * Each request has a number of its sender, by which its target knows that it came once.
 * A reply must come after its request's handler began, and before the sender forgets it.
 */
#include "gn.h"

enum { H_SHORT = 128, H_MEDIUM, H_LONG, H_REPLY, H_REPLY_MEDIUM, H_REPLY_LONG };
enum { MESSAGES = 200000, SLOTS = 4, SLOT = 20000, AREA = SLOTS * SLOT };

static void run_flood(int argc, char **argv);
static void take_short(gasnet_token_t token, gasnet_handlerarg_t number);
static void take_medium(
	gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t number);
static void take_long(gasnet_token_t token, void *buf, size_t n,
	gasnet_handlerarg_t number, gasnet_handlerarg_t slot);
static void take_reply(
	gasnet_token_t token, gasnet_handlerarg_t number, gasnet_handlerarg_t slot);
static void take_reply_bytes(gasnet_token_t token, void *buf, size_t n,
	gasnet_handlerarg_t number, gasnet_handlerarg_t slot);

static gasnet_handlerentry_t table[] = {{H_SHORT, take_short}, {H_MEDIUM, take_medium},
	{H_LONG, take_long}, {H_REPLY, take_reply}, {H_REPLY_MEDIUM, take_reply_bytes},
	{H_REPLY_LONG, take_reply_bytes}};
const struct gn_program gn_program = {
	GN_TABLE(table), .segment = (uintptr_t)8 << 20, .whole = run_flood};

/* Counts of a sender and of its target, a byte for each number. */
static _Atomic unsigned char seen[8][MESSAGES]; /* requests of each sender */
static _Atomic unsigned char replied[MESSAGES]; /* replies to each number */
static _Atomic unsigned char sent[MESSAGES];    /* numbers that are out */
static _Atomic bool busy[8][SLOTS];             /* Long areas of this sender, by node */
static _Atomic uint64_t received, replies;
static uint64_t replies_due;

/* ---- targets ---- */

static gasnet_node_t source(gasnet_token_t token)
{
	gasnet_node_t from = (gasnet_node_t)-1;
	CHECK_OK(gasnet_AMGetMsgSource(token, &from));
	CHECK(from < gn.size);
	return from;
}

/* Count a request, and answer in a category that its number gives: 0 is none. */
static void take(gasnet_token_t token, gasnet_handlerarg_t number, int slot)
{
	static const unsigned char bytes[600];
	gasnet_node_t from = source(token);
	CHECK_EQ(seen[from][number]++, 0);
	received++;
	switch (slot >= 0 ? 1 : number % 4) {
	case 1:
		CHECK_OK(gasnet_AMReplyShort2(token, H_REPLY, number, slot));
		break;
	case 2:
		CHECK_OK(gasnet_AMReplyMedium2(token, H_REPLY_MEDIUM, (void *)bytes,
			(size_t)number % sizeof bytes, number, -1));
		break;
	case 3:
		CHECK_OK(gasnet_AMReplyLong2(token, H_REPLY_LONG, (void *)bytes,
			(size_t)number % sizeof bytes,
			gn_at(from, (size_t)AREA * 8 + gn.rank * sizeof bytes), number,
			-1));
		break;
	default:
		break;
	}
}

static void take_short(gasnet_token_t token, gasnet_handlerarg_t number)
{
	take(token, number, -1);
}

static void take_medium(
	gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t number)
{
	CHECK_ALL(buf, n, number);
	take(token, number, -1);
}

static void take_long(gasnet_token_t token, void *buf, size_t n,
	gasnet_handlerarg_t number, gasnet_handlerarg_t slot)
{
	CHECK_ALL(buf, n, number);
	take(token, number, slot);
}

/* ---- senders ---- */

/* The request of a reply is out, and this is its only reply. */
static void take_reply(
	gasnet_token_t token, gasnet_handlerarg_t number, gasnet_handlerarg_t slot)
{
	CHECK_EQ(sent[number], 1);
	CHECK_EQ(replied[number]++, 0);
	if (slot >= 0)
		busy[source(token)][slot] = false;
	replies++;
}

static void take_reply_bytes(gasnet_token_t token, void *buf, size_t n,
	gasnet_handlerarg_t number, gasnet_handlerarg_t slot)
{
	CHECK_EQ(n, (size_t)number % 600);
	CHECK_ALL(buf, n, 0);
	take_reply(token, number, slot);
}

static void send_long(gasnet_node_t to, int number, bool async, uint64_t *seed)
{
	static unsigned char sources[8][SLOTS][SLOT];
	int slot = (int)gn_below(seed, SLOTS);
	size_t n = gn_below(seed, gn_below(seed, 10) ? 3000 : SLOT);
	void *at = gn_at(to, (size_t)AREA * gn.rank + (size_t)slot * SLOT);
	unsigned char *bytes = sources[to][slot];
	UNTIL(!busy[to][slot]);
	busy[to][slot] = true;
	memset(bytes, (unsigned char)number, n);
	if (async)
		CHECK_OK(gasnet_AMRequestLongAsync2(
			to, H_LONG, bytes, n, at, number, slot));
	else
		CHECK_OK(gasnet_AMRequestLong2(to, H_LONG, bytes, n, at, number, slot));
	replies_due++;
}

static void send_one(int number, uint64_t *seed)
{
	unsigned char bytes[4096];
	gasnet_node_t to = (gasnet_node_t)gn_below(seed, gn.size);
	size_t n = gn_below(seed, gasnet_AMMaxMedium() + 1);
	unsigned kind = (unsigned)gn_below(seed, 4);
	n = n < sizeof bytes ? n : sizeof bytes;
	sent[number] = 1;
	if (kind >= 2) {
		send_long(to, number, kind == 3, seed);
		return;
	}
	replies_due += number % 4 != 0;
	memset(bytes, (unsigned char)number, n);
	if (kind == 0)
		CHECK_OK(gasnet_AMRequestShort1(to, H_SHORT, number));
	else
		CHECK_OK(gasnet_AMRequestMedium1(to, H_MEDIUM, bytes, n, number));
}

static void clear(void)
{
	gn_barrier();
	received = replies = 0;
	replies_due = 0;
	gn_job->word[gn.rank] = 0;
	for (unsigned i = 0; i < MESSAGES; i++) {
		sent[i] = replied[i] = 0;
		for (int k = 0; k < 8; k++)
			seen[k][i] = 0;
	}
	gn_barrier();
}

/* Tell the other nodes the number of requests that this one has received; return the sum
 * of all nodes. */
static uint64_t received_by_all(void)
{
	uint64_t sum = 0;
	gn_job->word[gn.rank] = received;
	for (unsigned i = 0; i < gn.size; i++)
		sum += gn_job->word[i];
	return sum;
}

/* All requests of the job have come, each once, and all of this node's replies. */
static void check_counts(unsigned messages)
{
	struct patience p = patience_begin();
	UNTIL(replies == replies_due);
	while (received_by_all() < (uint64_t)messages * gn.size)
		gn_serve(__FILE__, __LINE__, &p, "all requests");
	CHECK_EQ(received_by_all(), (uint64_t)messages * gn.size);
	gn_barrier();
	CHECK_EQ(replies, replies_due);
}

static void run_flood(int argc, char **argv)
{
	unsigned seeds = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
	unsigned messages = argc > 2 ? (unsigned)atoi(argv[2]) : 5000;
	CHECK(messages <= MESSAGES && gn.size <= 8);
	if (gn.is_a) {
		printf("# begun\n");
		fflush(stdout);
	}
	for (unsigned s = 0; s < seeds; s++) {
		uint64_t seed = (gn_seed() + s) * 100 + gn.rank;
		clear();
		for (unsigned i = 0; i < messages; i++)
			send_one((int)i, &seed);
		check_counts(messages);
	}
	if (gn.is_a)
		printf("# tried: %u messages\n", seeds * messages * gn.size);
}
