/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of handlers that hold in any job; registration and errors: fatals.c. */
#include "gn.h"

#include <pthread.h>

enum {
	H_FIXED = 128,
	H_FIXED_2 = 200,
	H_FIXED_3 = 255,
	H_SOURCE = 140,
	H_SOURCE_BACK,
	H_CALLS,
	H_CALLS_BACK,
	H_NEST,
	H_NEST_BACK,
	H_MARK,
	H_MARK_BACK,
	H_TABLE
};

static void count_fixed(gasnet_token_t token, gasnet_handlerarg_t index);
static void ask_source(gasnet_token_t token, gasnet_handlerarg_t from);
static void tell_source(gasnet_token_t token, gasnet_handlerarg_t from);
static void call_all(gasnet_token_t token);
static void call_all_back(gasnet_token_t token);
static void nest(gasnet_token_t token);
static void nest_back(gasnet_token_t token);
static void mark(gasnet_token_t token);
static void mark_back(gasnet_token_t token);
static void table_check(gasnet_token_t token, gasnet_handlerarg_t a,
	gasnet_handlerarg_t b, gasnet_handlerarg_t c);
static void loose_1(gasnet_token_t token);
static void loose_2(gasnet_token_t token);
static void loose_3(gasnet_token_t token);

enum { LOOSE = 3 };
static gasnet_handlerentry_t table[] = {{0, loose_1}, {H_FIXED, count_fixed},
	{H_FIXED_2, count_fixed}, {H_FIXED_3, count_fixed}, {0, loose_2},
	{H_SOURCE, ask_source}, {H_SOURCE_BACK, tell_source}, {H_CALLS, call_all},
	{H_CALLS_BACK, call_all_back}, {H_NEST, nest}, {H_NEST_BACK, nest_back},
	{H_MARK, mark}, {H_MARK_BACK, mark_back}, {H_TABLE, table_check}, {0, loose_3}};
const struct gn_program gn_program = {GN_TABLE(table)};

/* ---- indexes ---- */

static _Atomic unsigned fixed[256];

static void count_fixed(gasnet_token_t token, gasnet_handlerarg_t index)
{
	(void)token;
	fixed[index]++;
}

STATEMENT(33, explicit_indexes_stay)
{
	const int at[] = {1, 2, 3}, want[] = {H_FIXED, H_FIXED_2, H_FIXED_3};
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(table[at[i]].index, want[i]);
		fixed[want[i]] = 0;
	}
	gn_barrier();
	for (int i = 0; i < 3; i++)
		CHECK_OK(gasnet_AMRequestShort1(
			gn.next, (gasnet_handler_t)want[i], want[i]));
	for (int i = 0; i < 3; i++)
		UNTIL(fixed[want[i]] == 1);
}

static _Atomic unsigned loose[LOOSE], table_checks;

static void loose_1(gasnet_token_t token)
{
	(void)token;
	loose[0]++;
}

static void loose_2(gasnet_token_t token)
{
	(void)token;
	loose[1]++;
}

static void loose_3(gasnet_token_t token)
{
	(void)token;
	loose[2]++;
}

/* Compare another node's indexes of the entries without one with those of this node. */
static void table_check(gasnet_token_t token, gasnet_handlerarg_t a,
	gasnet_handlerarg_t b, gasnet_handlerarg_t c)
{
	(void)token;
	CHECK_EQ(a, table[0].index);
	CHECK_EQ(b, table[4].index);
	CHECK_EQ(c, table[14].index);
	table_checks++;
}

static void check_differ(void)
{
	const int entries = (int)(sizeof table / sizeof table[0]);
	for (int i = 0; i < entries; i++) {
		CHECK(table[i].index >= 128);
		for (int k = 0; k < i; k++)
			CHECK(table[i].index != table[k].index);
	}
}

STATEMENT(34, dont_care_entries_get_indexes)
{
	check_differ();
	CHECK_OK(gasnet_AMRequestShort3(
		gn.next, H_TABLE, table[0].index, table[4].index, table[14].index));
	CHECK_OK(gasnet_AMRequestShort0(gn.next, table[0].index));
	CHECK_OK(gasnet_AMRequestShort0(gn.next, table[4].index));
	CHECK_OK(gasnet_AMRequestShort0(gn.next, table[14].index));
	UNTIL(table_checks == 1 && loose[0] == 1 && loose[1] == 1 && loose[2] == 1);
}

/* ---- the sender ---- */

static _Atomic unsigned told;

static void ask_source(gasnet_token_t token, gasnet_handlerarg_t from)
{
	gasnet_node_t node = (gasnet_node_t)-1;
	CHECK_OK(gasnet_AMGetMsgSource(token, &node));
	CHECK_EQ(node, from);
	CHECK_OK(gasnet_AMReplyShort1(token, H_SOURCE_BACK, (int)gasnet_mynode()));
}

static void tell_source(gasnet_token_t token, gasnet_handlerarg_t from)
{
	gasnet_node_t node = (gasnet_node_t)-1;
	CHECK_OK(gasnet_AMGetMsgSource(token, &node));
	CHECK_EQ(node, from);
	told++;
}

STATEMENT(38, source_of_requests_and_replies)
{
	told = 0;
	for (gasnet_node_t i = 0; i < gn.size; i++)
		CHECK_OK(gasnet_AMRequestShort1(i, H_SOURCE, (int)gn.rank));
	UNTIL(told == gn.size);
}

/* ---- calls that handlers may make ---- */

static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER;
static _Atomic unsigned called;

static void make_calls(void)
{
	CHECK_EQ(gasnet_mynode(), gn.rank);
	CHECK_EQ(gasnet_nodes(), gn.size);
	gasnet_hold_interrupts();
	gasnet_resume_interrupts();
	gasnet_hsl_lock(&lock);
	called++;
	gasnet_hsl_unlock(&lock);
	CHECK_OK(gasnet_hsl_trylock(&lock));
	called++;
	gasnet_hsl_unlock(&lock);
	CHECK(gasnet_ErrorName(GASNET_OK));
}

static void call_all(gasnet_token_t token)
{
	make_calls();
	CHECK_OK(gasnet_AMReplyShort0(token, H_CALLS_BACK));
}

static void call_all_back(gasnet_token_t token)
{
	(void)token;
	make_calls();
}

STATEMENT(39, calls_in_handlers)
{
	called = 0;
	gn_barrier();
	CHECK_OK(gasnet_AMRequestShort0(gn.next, H_CALLS));
	UNTIL(called == 4);
}

/* ---- nesting ---- */

static _Thread_local int depth, replying;
static _Atomic unsigned nested;

static void nest(gasnet_token_t token)
{
	CHECK_EQ(depth, 0);
	depth++;
	replying = 1;
	CHECK_OK(gasnet_AMReplyShort0(token, H_NEST_BACK));
	replying = 0;
	for (volatile int i = 0; i < 200; i++)
		;
	depth--;
}

/* A reply handler may interrupt a request handler in its reply, but no reply handler. */
static void nest_back(gasnet_token_t token)
{
	static _Thread_local int within;
	(void)token;
	CHECK(depth == 0 || replying);
	CHECK_EQ(within, 0);
	within++;
	for (volatile int i = 0; i < 200; i++)
		;
	within--;
	nested++;
}

STATEMENT(40, handlers_are_not_interrupted)
{
	enum { ROUNDS = 300 };
	nested = 0;
	gn_barrier();
	for (unsigned i = 0; i < ROUNDS; i++)
		for (gasnet_node_t to = 0; to < gn.size; to++)
			CHECK_OK(gasnet_AMRequestShort0(to, H_NEST));
	UNTIL(nested == ROUNDS * gn.size);
}

/* ---- sections without handlers ---- */

static pthread_t main_thread;
static _Atomic bool closed;
static _Atomic unsigned marks;

static void mark(gasnet_token_t token)
{
	CHECK(!closed || !pthread_equal(pthread_self(), main_thread));
	CHECK_OK(gasnet_AMReplyShort0(token, H_MARK_BACK));
}

static void mark_back(gasnet_token_t token)
{
	(void)token;
	CHECK(!closed || !pthread_equal(pthread_self(), main_thread));
	marks++;
}

/* Stay in a section that admits no handler, with requests waiting. */
static void stay_closed(bool by_lock)
{
	if (by_lock)
		gasnet_hsl_lock(&lock);
	else
		gasnet_hold_interrupts();
	closed = true;
	for (int i = 0; i < 1000; i++)
		CHECK(gasnet_mynode() < gasnet_nodes());
	compute_ms(2);
	closed = false;
	if (by_lock)
		gasnet_hsl_unlock(&lock);
	else
		gasnet_resume_interrupts();
}

STATEMENT(41, no_handler_in_closed_sections)
{
	enum { ROUNDS = 40 };
	main_thread = pthread_self();
	marks = 0;
	gn_barrier();
	for (unsigned i = 0; i < ROUNDS; i++) {
		CHECK_OK(gasnet_AMRequestShort0(gn.next, H_MARK));
		stay_closed(i & 1);
	}
	UNTIL(marks == ROUNDS);
}
