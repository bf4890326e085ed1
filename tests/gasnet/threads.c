/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of threads, and of the ways to wait. */
#include "gn.h"

#include <pthread.h>
#include <sys/resource.h>

enum { H_COUNT = 128, H_BYTES, H_BACK };

static void count(gasnet_token_t token);
static void count_bytes(
	gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t value);
static void back(gasnet_token_t token);

static gasnet_handlerentry_t table[] = {
	{H_COUNT, count}, {H_BYTES, count_bytes}, {H_BACK, back}};
const struct gn_program gn_program = {GN_TABLE(table)};

static _Atomic uint64_t handled, replies;

static void count(gasnet_token_t token)
{
	handled++;
	CHECK_OK(gasnet_AMReplyShort0(token, H_BACK));
}

static void count_bytes(
	gasnet_token_t token, void *buf, size_t n, gasnet_handlerarg_t value)
{
	CHECK_ALL(buf, n, value);
	handled++;
	CHECK_OK(gasnet_AMReplyShort0(token, H_BACK));
}

static void back(gasnet_token_t token)
{
	(void)token;
	replies++;
}

/* ---- all at once ---- */

enum { THREADS = 16, W_SENT = 1, W_HANDLED };

static _Atomic uint64_t sent;

/* Each thread of each node has a word on all nodes. */
static size_t word_of(unsigned nth)
{
	return 8 * ((size_t)gn.rank * THREADS + nth);
}

static void send_random(gasnet_node_t to, uint64_t *seed)
{
	unsigned char bytes[400];
	size_t n = gn_below(seed, sizeof bytes);
	memset(bytes, (int)(n & 0x7f), sizeof bytes);
	if (random_next(seed) & 1)
		CHECK_OK(gasnet_AMRequestShort0(to, H_COUNT));
	else
		CHECK_OK(gasnet_AMRequestMedium1(to, H_BYTES, bytes, n, (int)(n & 0x7f)));
	sent++;
}

static void put_and_get(gasnet_node_t to, unsigned nth, uint64_t value)
{
	uint64_t got = 0;
	gasnet_put(to, gn_at(to, word_of(nth)), &value, 8);
	gasnet_get(&got, to, gn_at(to, word_of(nth)), 8);
	CHECK_EQ(got, value);
}

static void do_everything(unsigned nth)
{
	uint64_t seed = gn_seed() * 1000 + gn.rank * 100 + nth;
	for (uint64_t i = 0; i < 2000 / gn.size; i++) {
		gasnet_node_t to = (gasnet_node_t)gn_below(&seed, gn.size);
		switch (gn_below(&seed, 3)) {
		case 0:
			send_random(to, &seed);
			break;
		case 1:
			put_and_get(to, nth, random_next(&seed));
			break;
		default:
			CHECK_OK(gasnet_AMPoll());
		}
	}
}

STATEMENT(126, threads_do_everything_at_once)
{
	NEED_PAR();
	handled = replies = sent = 0;
	gn_barrier();
	for (unsigned i = 0; i < THREADS; i++)
		gn_thread(do_everything, i);
	gn_join();
	UNTIL(replies == sent);
	gn_job->word[W_SENT] += sent;
	gn_barrier();
	gn_job->word[W_HANDLED] += handled;
	gn_barrier();
	CHECK_EQ(gn_job->word[W_SENT], gn_job->word[W_HANDLED]);
	CHECK_EQ(replies, sent);
}

/* ---- short lives ---- */

static void *live_shortly(void *arg)
{
	const uint64_t *value = arg;
	uint64_t copy = *value;
	gasnet_handle_t handle = gasnet_put_nb(gn.next, gn_at(gn.next, 64), &copy, 8);
	gasnet_wait_syncnb(handle);
	return NULL;
}

STATEMENT(127, threads_give_back_what_they_held)
{
	NEED_PAR();
	const uint64_t lives = 10000 / (getenv("GN_LONG") ? 1 : gn.size);
	gn_barrier();
	for (uint64_t i = 1; i <= lives; i++) {
		pthread_t id;
		CHECK_EQ(pthread_create(&id, NULL, live_shortly, &i), 0);
		CHECK_EQ(pthread_join(id, NULL), 0);
	}
	gn_barrier();
	CHECK_EQ(*(volatile uint64_t *)gn_own(64), lives);
}

/* ---- identity ---- */

enum { IDS = 8 };
static gasnet_threadinfo_t infos[IDS];
static _Atomic unsigned known;

static void learn(unsigned nth)
{
	GASNET_BEGIN_FUNCTION();
	infos[nth] = GASNET_GET_THREADINFO();
	known++;
	AWAIT(known == IDS);
	for (int i = 0; i < 100; i++)
		CHECK(GASNET_GET_THREADINFO() == infos[nth]);
}

STATEMENT(129, threadinfo_differs_between_threads)
{
	NEED_PAR();
	known = 0;
	for (unsigned i = 0; i < IDS; i++)
		gn_thread(learn, i);
	gn_join();
	for (int i = 0; i < IDS; i++)
		for (int k = 0; k < i; k++)
			CHECK(infos[i] != infos[k]);
}

/* ---- waiting ---- */

static void pass_and_ask(int phases)
{
	for (int i = 0; i < phases; i++) {
		uint64_t before = replies;
		CHECK_OK(gasnet_AMRequestShort0(gn.next, H_COUNT));
		GASNET_BLOCKUNTIL(replies != before);
		gasnet_barrier_notify(i, 0);
		CHECK_OK(gasnet_barrier_wait(i, 0));
	}
}

STATEMENT(130, wait_modes)
{
	const int modes[] = {GASNET_WAIT_BLOCK, GASNET_WAIT_SPIN, GASNET_WAIT_SPINBLOCK};
	CHECK_RC(gasnet_set_waitmode(-1), GASNET_ERR_BAD_ARG);
	CHECK_RC(gasnet_set_waitmode(3), GASNET_ERR_BAD_ARG);
	CHECK_RC(gasnet_set_waitmode(1 << 30), GASNET_ERR_BAD_ARG);
	for (unsigned i = 0; i < 6; i++) {
		CHECK_OK(gasnet_set_waitmode(modes[(i + gn.rank * (i / 3)) % 3]));
		pass_and_ask(20);
	}
	CHECK_OK(gasnet_set_waitmode(GASNET_WAIT_SPINBLOCK));
}

WEAK_STATEMENT(131, waiters_give_way)
{
	NEED_NODES(16);
	CHECK_OK(gasnet_set_waitmode(GASNET_WAIT_BLOCK));
	gn_barrier();
	struct timespec used = {0, 0};
	uint64_t since = now_ms();
	gasnet_barrier_notify(1, 0);
	while (gn.is_a && used.tv_sec < 1)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	uint64_t took = now_ms() - since;
	CHECK_OK(gasnet_barrier_wait(1, 0));
	CHECK(took <= 1300);
}

static uint64_t cpu_ms(void)
{
	struct rusage u;
	CHECK_EQ(getrusage(RUSAGE_SELF, &u), 0);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

WEAK_STATEMENT(132, blocked_node_uses_little_time)
{
	NEED_NODES(2);
	CHECK_OK(gasnet_set_waitmode(GASNET_WAIT_BLOCK));
	gn_barrier();
	uint64_t before = cpu_ms();
	/* All others wait until A has called gasnet_barrier_notify, too. */
	if (gn.is_a)
		sleep_ms(5000); /* pause: the statement's 5 s */
	gasnet_barrier_notify(1, 0);
	CHECK_OK(gasnet_barrier_wait(1, 0));
	CHECK(cpu_ms() - before < 500);
}
