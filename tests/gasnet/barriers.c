/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of barriers that hold in any job; errors: fatals.c. */
#include "gn.h"

#include <limits.h>
#include <sched.h>

enum { H_ASK = 128, H_ANSWER };

static void ask(gasnet_token_t token);
static void answer(gasnet_token_t token);

static gasnet_handlerentry_t table[] = {{H_ASK, ask}, {H_ANSWER, answer}};
const struct gn_program gn_program = {GN_TABLE(table)};

enum { ANONYMOUS = GASNET_BARRIERFLAG_ANONYMOUS, MISMATCH = GASNET_BARRIERFLAG_MISMATCH };

static _Atomic unsigned answers;

static void ask(gasnet_token_t token)
{
	CHECK_OK(gasnet_AMReplyShort0(token, H_ANSWER));
}

static void answer(gasnet_token_t token)
{
	(void)token;
	answers++;
}

/* Pass a phase; return the result of its wait. */
static int pass(int id, int flags)
{
	gasnet_barrier_notify(id, flags);
	return gasnet_barrier_wait(id, flags);
}

/* Pass a phase by a loop of tries alone. */
static int pass_by_try(int id, int flags)
{
	struct patience p = patience_begin();
	int rc;
	gasnet_barrier_notify(id, flags);
	while ((rc = gasnet_barrier_try(id, flags)) == GASNET_ERR_NOT_READY) {
		CHECK(!patience_is_over(&p));
		sched_yield();
	}
	return rc;
}

/* ---- order ---- */

static void wait_for_late(unsigned late, bool by_try)
{
	gn_job->word[0] = 0;
	gn_barrier();
	if (gn.rank == late)
		sleep_ms(100); /* pause: the others must wait in the barrier */
	gn_job->word[0]++;
	CHECK_OK(by_try ? pass_by_try(9, 0) : pass(9, 0));
	CHECK_EQ(gn_job->word[0], gn.size);
	gn_barrier();
}

STATEMENT(109, no_wait_returns_before_the_last_notify)
{
	for (unsigned late = 0; late < gn.size; late++) {
		wait_for_late(late, false);
		wait_for_late(late, true);
	}
}

/* The other nodes have not begun the phase while this node works between its calls. */
static void work_within(void)
{
	uint64_t value = 4, got = 0;
	unsigned before = answers;
	gasnet_barrier_notify(3, 0);
	gasnet_put(gn.next, gn_at(gn.next, 0), &value, 8);
	gasnet_get(&got, gn.next, gn_at(gn.next, 0), 8);
	CHECK_EQ(got, 4);
	CHECK_OK(gasnet_AMRequestShort0(gn.next, H_ASK));
	UNTIL(answers != before);
	CHECK_EQ(gn_job->word[1], 0);
	gn_job->word[2] = 1;
	CHECK_OK(gasnet_barrier_wait(3, 0));
}

STATEMENT(110, notify_returns_at_once)
{
	gn_barrier();
	if (gn.is_a) {
		work_within();
	} else {
		UNTIL(gn_job->word[2]);
		gn_job->word[1] = 1;
		CHECK_OK(pass(3, 0));
	}
}

/* ---- names ---- */

static const int names[] = {0, 1, -1, INT_MIN, INT_MAX, 256, 1 << 16};
enum { NAMES = sizeof names / sizeof names[0] };

STATEMENT(111, named_alike)
{
	for (int i = 0; i < NAMES; i++) {
		CHECK_OK(pass(names[i], 0));
		CHECK_OK(pass_by_try(names[i], 0));
	}
}

/* Nodes x and y have names of their own. */
static int name_of(unsigned x, unsigned y)
{
	return gn.rank == x ? INT_MIN : gn.rank == y ? INT_MIN + 1 : INT_MIN;
}

STATEMENT(112, two_names_mismatch_everywhere)
{
	NEED_NODES(2);
	for (unsigned x = 0; x < gn.size; x++)
		for (unsigned y = 0; y < gn.size; y++)
			if (x != y) {
				int name = name_of(x, y);
				CHECK_RC(pass(name, 0), GASNET_ERR_BARRIER_MISMATCH);
				CHECK_OK(pass(17, 0));
				CHECK_RC(pass_by_try(name, 0),
					GASNET_ERR_BARRIER_MISMATCH);
			}
	CHECK_RC(pass((int)gn.rank << 24, 0), GASNET_ERR_BARRIER_MISMATCH);
	CHECK_OK(pass(17, 0));
}

STATEMENT(113, anonymous_everywhere)
{
	for (int i = 0; i < 20; i++) {
		gasnet_barrier_notify((int)gn.rank + i, ANONYMOUS);
		CHECK_OK(gasnet_barrier_wait((int)gn.rank - 7, ANONYMOUS));
		CHECK_OK(pass_by_try((int)gn.rank * 3, ANONYMOUS));
	}
}

/* Nodes whose bits are in the mask have a name, the others none. */
static void name_some(unsigned mask)
{
	int flags = mask >> gn.rank & 1 ? 0 : ANONYMOUS;
	CHECK_OK(pass(flags ? (int)gn.rank + 9 : -5, flags));
}

STATEMENT(114, names_beside_anonymous)
{
	for (unsigned mask = 0; mask < 1u << (gn.size < 4 ? gn.size : 4); mask++)
		name_some(mask);
	if (gn.size < 3)
		return;
	for (unsigned x = 0; x < gn.size; x++) {
		unsigned y = (x + 1) % gn.size;
		bool named = gn.rank == x || gn.rank == y;
		CHECK_RC(pass((int)gn.rank, named ? 0 : ANONYMOUS),
			GASNET_ERR_BARRIER_MISMATCH);
		CHECK_OK(pass(1, named ? 0 : ANONYMOUS));
	}
}

STATEMENT(115, mismatch_flag)
{
	for (unsigned x = 0; x < gn.size; x++) {
		CHECK_RC(pass(6, gn.rank == x ? MISMATCH : 0),
			GASNET_ERR_BARRIER_MISMATCH);
		CHECK_RC(pass(6, gn.rank == x ? MISMATCH : ANONYMOUS),
			GASNET_ERR_BARRIER_MISMATCH);
		CHECK_OK(pass(6, 0));
	}
}

/* One node waits with other arguments than it has notified with; rc: its result. */
static void wait_otherwise(
	unsigned x, int id, int flags, int wait_id, int wait_flags, int rc)
{
	bool is_x = gn.rank == x;
	gasnet_barrier_notify(id, flags);
	CHECK_EQ(gasnet_barrier_wait(is_x ? wait_id : id, is_x ? wait_flags : flags),
		is_x ? rc : GASNET_OK);
}

STATEMENT(116, wait_with_other_arguments)
{
	enum { DIFFERS = GASNET_ERR_BARRIER_MISMATCH };
	for (unsigned x = 0; x < gn.size; x++) {
		wait_otherwise(x, 1, 0, 2, 0, DIFFERS);
		wait_otherwise(x, INT_MAX, 0, INT_MIN, 0, DIFFERS);
		wait_otherwise(x, 1, 0, 1, MISMATCH, DIFFERS);
		/* since GASNet 1.20 */
		wait_otherwise(x, 1, 0, 2, ANONYMOUS, GASNET_OK);
		wait_otherwise(x, 1, ANONYMOUS, 1, 0, GASNET_OK);
		CHECK_OK(pass(1, 0));
	}
	/* A named wait behind an anonymous notify, where another node has a name. */
	for (unsigned x = 0; gn.size > 1 && x < gn.size; x++)
		for (int id = 4; id < 6; id++) {
			gasnet_barrier_notify(4, gn.rank == x ? ANONYMOUS : 0);
			CHECK_EQ(gasnet_barrier_wait(gn.rank == x ? id : 4, 0),
				gn.rank == x && id != 4 ? DIFFERS : GASNET_OK);
		}
}

static void try_before_the_last(unsigned late)
{
	gn_job->word[3] = 0;
	gn_barrier();
	if (gn.rank == late) {
		UNTIL(gn_job->word[3] == gn.size - 1);
	} else {
		gasnet_barrier_notify(8, 0);
		for (int i = 0; i < 500; i++)
			CHECK_RC(gasnet_barrier_try(8, 0), GASNET_ERR_NOT_READY);
		gn_job->word[3]++;
	}
	if (gn.rank == late)
		gasnet_barrier_notify(8, 0);
	CHECK_OK(gasnet_barrier_wait(8, 0));
	gn_barrier();
}

STATEMENT(117, try_before_and_after_the_last_notify)
{
	for (unsigned late = 0; late < gn.size; late++)
		try_before_the_last(late);
	CHECK_OK(pass_by_try(8, 0));
}

STATEMENT(118, very_many_phases)
{
	uint64_t seed = gn_seed() * 77 + gn.rank;
	unsigned phases = getenv("GN_LONG") ? 100000 : 3000 / gn.size;
	for (unsigned i = 0; i < phases; i++) {
		unsigned choice = (unsigned)gn_below(&seed, 50);
		if (choice == 0)
			sched_yield();
		for (volatile unsigned k = 0; choice == 1 && k < 5000; k++)
			;
		CHECK_OK(choice & 1 ? pass_by_try((int)i, 0) : pass((int)i, 0));
	}
}

/* ---- threads ---- */

static _Atomic int result;

static void only_wait(unsigned nth)
{
	result = gasnet_barrier_wait((int)nth, 0);
}

static void only_notify(unsigned nth)
{
	gasnet_barrier_notify((int)nth, 0);
}

STATEMENT(120, notify_and_wait_of_different_threads)
{
	NEED_PAR();
	for (unsigned i = 0; i < 50; i++) {
		result = -1;
		gn_thread(only_notify, i);
		gn_join();
		gn_thread(only_wait, i);
		gn_join();
		CHECK_RC(result, GASNET_OK);
		gasnet_barrier_notify((int)i, 0);
		gn_thread(only_wait, i);
		gn_join();
		CHECK_RC(result, GASNET_OK);
	}
}

/* In a job of one node, all statements of this file are about that. */
STATEMENT(121, barriers_of_any_number_of_nodes)
{
	CHECK_OK(pass(1, 0));
	CHECK_OK(pass_by_try(2, ANONYMOUS));
	CHECK_RC(pass(3, MISMATCH), GASNET_ERR_BARRIER_MISMATCH);
	wait_otherwise(0, 4, 0, 5, 0, GASNET_ERR_BARRIER_MISMATCH);
}

STATEMENT(122, handlers_run_in_wait)
{
	NEED_NODES(2);
	answers = 0;
	gn_barrier();
	if (gn.is_a) {
		for (unsigned i = 0; i < 100; i++) {
			CHECK_OK(gasnet_AMRequestShort0(gn.b, H_ASK));
			UNTIL(answers == i + 1);
		}
	}
	CHECK_OK(pass(2, 0));
}

STATEMENT(123, each_number_of_nodes)
{
	for (int i = 0; i < 200; i++) {
		CHECK_OK(pass(i, 0));
		unsigned odd = (unsigned)i % gn.size;
		if (gn.size > 1)
			CHECK_RC(pass(gn.rank == odd, 0), GASNET_ERR_BARRIER_MISMATCH);
	}
}

STATEMENT(124, put_before_a_barrier_is_seen_behind_it)
{
	for (uint64_t i = 1; i <= 500; i++) {
		gasnet_put(gn.next, gn_at(gn.next, 8 * (i % 2)), &i, 8);
		CHECK_OK(pass((int)i, 0));
		CHECK_EQ(*(volatile uint64_t *)gn_own(8 * (i % 2)), i);
	}
}

STATEMENT(125, barrier_in_one_call)
{
	int id = 0;
	CHECK_OK(gasnet_barrier(12, 0));
	CHECK_EQ(gasnet_barrier_result(&id), 0);
	CHECK_EQ(id, 12);
	CHECK_OK(gasnet_barrier((int)gn.rank, ANONYMOUS));
	CHECK(gasnet_barrier_result(&id) != 0);
	CHECK_RC(gasnet_barrier(1, gn.is_b ? MISMATCH : 0), GASNET_ERR_BARRIER_MISMATCH);
	CHECK_OK(gasnet_barrier(1, 0));
}
