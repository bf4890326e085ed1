/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of active messages: progress, floods, polling, waiting for conditions. */
#include "gn.h"

enum { H_COUNT = 128, H_ECHO, H_ECHO_BACK, H_SET, H_STORE };

static void count(gasnet_token_t token, gasnet_handlerarg_t from);
static void echo(gasnet_token_t token);
static void echo_back(gasnet_token_t token);
static void set(gasnet_token_t token, gasnet_handlerarg_t value);
static void store(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t value);

static gasnet_handlerentry_t table[] = {{H_COUNT, count}, {H_ECHO, echo},
	{H_ECHO_BACK, echo_back}, {H_SET, set}, {H_STORE, store}};
const struct gn_program gn_program = {GN_TABLE(table)};

static _Atomic uint64_t counted[GN_NODES], echoes;

static void count(gasnet_token_t token, gasnet_handlerarg_t from)
{
	(void)token;
	counted[from]++;
}

static void echo(gasnet_token_t token)
{
	CHECK_OK(gasnet_AMReplyShort0(token, H_ECHO_BACK));
}

static void echo_back(gasnet_token_t token)
{
	(void)token;
	echoes++;
}

static void clear_counts(void)
{
	echoes = 0;
	for (int i = 0; i < GN_NODES; i++)
		counted[i] = 0;
	gn_barrier();
}

static void send_counts(gasnet_node_t to, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		CHECK_OK(gasnet_AMRequestShort1(to, H_COUNT, (int)gn.rank));
}

/* Wait for n requests of each node, and check that no further one comes. */
static void expect_counts(uint64_t n)
{
	for (unsigned i = 0; i < gn.size; i++)
		UNTIL(counted[i] >= n);
	gn_barrier();
	for (int i = 0; i < 1000; i++)
		CHECK_OK(gasnet_AMPoll());
	for (unsigned i = 0; i < gn.size; i++)
		CHECK_EQ(counted[i], n);
}

/* A long run sends the statement's million. */
static unsigned many(unsigned few)
{
	return getenv("GN_LONG") ? 1000000 : few;
}

STATEMENT(55, each_request_runs_its_handler_once)
{
	unsigned n = many(200000 / gn.size);
	clear_counts();
	send_counts(gn.a, n);
	gn_barrier();
	if (gn.is_a)
		expect_counts(n);
	else
		gn_barrier();
}

/* No node polls by itself until it has sent all of its requests. */
STATEMENT(56, requests_poll)
{
	enum { REQUESTS = 20000 };
	clear_counts();
	send_counts(gn.next, REQUESTS);
	UNTIL(counted[gn.before] == REQUESTS);
}

STATEMENT(57, all_send_to_one_that_polls)
{
	unsigned n = many(40000 / gn.size);
	clear_counts();
	if (gn.is_a) {
		for (unsigned i = 1; i < gn.size; i++)
			UNTIL(counted[i] == n);
	} else {
		send_counts(gn.a, n);
	}
}

/* ---- a target that does not poll ---- */

enum { W_BUSY_ENDS = 1, W_MOVED, FLOOD = 20000 };

static void move_while_busy(void)
{
	uint64_t value = 0x1122334455667788 + gn.rank, back = 0;
	for (int i = 0; i < 200; i++) {
		gasnet_put(
			gn.b, gn_at(gn.b, gn.rank * sizeof value), &value, sizeof value);
		gasnet_get(&back, gn.b, gn_at(gn.b, gn.rank * sizeof value), sizeof back);
		CHECK_EQ(back, value++);
	}
	CHECK(!gn_job->word[W_BUSY_ENDS]);
	gn_job->word[W_MOVED]++;
}

static void flood_busy(void)
{
	send_counts(gn.b, FLOOD);
	for (int i = 0; i < 100; i++)
		CHECK_OK(gasnet_AMRequestShort0(gn.b, H_ECHO));
	UNTIL(echoes == 100);
}

/* Stay out of GASNet for 2 s, and longer until the others have put and got. */
static void be_busy(void)
{
	compute_ms(2000); /* pause: the statement's 2 s */
	AWAIT(gn_job->word[W_MOVED] == gn.size - 1);
	CHECK(counted[gn.a] < FLOOD);
	gn_job->word[W_BUSY_ENDS] = 1;
	UNTIL(counted[gn.a] == FLOOD);
}

STATEMENT(58, target_that_does_not_poll)
{
	NEED_NODES(2);
	clear_counts();
	gn_meet();
	if (gn.is_b)
		be_busy();
	else
		move_while_busy();
	if (gn.is_a)
		flood_busy();
}

/* ---- polls ---- */

WEAK_STATEMENT(63, poll_with_nothing_there)
{
	enum { POLLS = 200000 };
	gn_barrier();
	if (!gn.is_a) {
		AWAIT(gn_job->word[0]);
		return;
	}
	uint64_t best = UINT64_MAX;
	for (int round = 0; round < 5; round++) {
		uint64_t since = now_ns() / 1000;
		for (int i = 0; i < POLLS / 5; i++)
			CHECK_OK(gasnet_AMPoll());
		uint64_t took = now_ns() / 1000 - since;
		best = took < best ? took : best;
	}
	gn_job->word[0] = 1;
	CHECK(best < POLLS / 5);
}

/* ---- GASNET_BLOCKUNTIL ---- */

static _Atomic int flag;
static volatile int evaluations;

static int look(int value)
{
	evaluations++;
	return value;
}

static void set(gasnet_token_t token, gasnet_handlerarg_t value)
{
	(void)token;
	flag = value;
}

static int max(int x, int y)
{
	return x > y ? x : y;
}

STATEMENT(64, forms_of_blockuntil)
{
	evaluations = 0;
	GASNET_BLOCKUNTIL(look(1));
	CHECK(evaluations >= 1);
	GASNET_BLOCKUNTIL((look(0), max(1, 2) == 2) && (look(0), 1));
	CHECK(evaluations >= 2);
	if (evaluations)
		GASNET_BLOCKUNTIL(1);
	else
		check_failed(__FILE__, __LINE__, "this is the else of the if above");
	flag = 0;
	gn_barrier();
	CHECK_OK(gasnet_AMRequestShort1(gn.next, H_SET, 7));
	GASNET_BLOCKUNTIL(look(flag) == 7);
}

/* ---- threads ---- */

static _Atomic unsigned blocked, woken;

static void block(unsigned nth)
{
	(void)nth;
	blocked++;
	GASNET_BLOCKUNTIL(flag != 0);
	woken++;
}

/* One thread polls, and it may run the handler for which the other one waits. */
static void poll_until_woken(unsigned threads)
{
	UNTIL(woken == threads);
}

static void block_threads(unsigned threads)
{
	flag = 0;
	blocked = woken = 0;
	gn_barrier();
	for (unsigned i = 0; i < threads; i++)
		gn_thread(block, i);
	AWAIT(blocked == threads);
	gn_meet();
}

STATEMENT(65, blockuntil_wakes_for_another_threads_handler)
{
	NEED_PAR();
	for (int i = 0; i < 20; i++) {
		block_threads(1);
		CHECK_OK(gasnet_AMRequestShort1(gn.next, H_SET, 1));
		poll_until_woken(1);
		gn_join();
	}
}

STATEMENT(66, all_threads_in_blockuntil)
{
	NEED_PAR();
	block_threads(4);
	CHECK_OK(gasnet_AMRequestShort1(gn.next, H_SET, 1));
	GASNET_BLOCKUNTIL(flag != 0);
	AWAIT(woken == 4);
}

/* ---- data before a flag ---- */

enum { DATA = 500 };
static unsigned char data[DATA];
static volatile int stored;

static void store(gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t value)
{
	(void)token;
	memcpy(data, buf, n);
	__atomic_store_n(&stored, value, __ATOMIC_RELEASE);
}

STATEMENT(67, data_before_the_flag_are_seen)
{
	unsigned char bytes[DATA];
	stored = 0;
	clear_counts();
	for (int i = 1; i <= 2000; i++) {
		memset(bytes, i & 0xff, sizeof bytes);
		CHECK_OK(gasnet_AMRequestMedium1(
			gn.next, H_STORE, bytes, sizeof bytes, i));
		GASNET_BLOCKUNTIL(stored == i);
		CHECK_ALL(data, sizeof data, i & 0xff);
		/* The sender may send the next value. */
		CHECK_OK(gasnet_AMRequestShort1(gn.before, H_COUNT, 0));
		GASNET_BLOCKUNTIL(counted[0] == (uint64_t)i);
	}
}
