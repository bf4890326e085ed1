/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of handler-safe locks and no-interrupt sections. */
#include "gn.h"

enum { H_ADD = 128, H_HOLD };

static void add(gasnet_token_t token);
static void hold(gasnet_token_t token);

static gasnet_handlerentry_t table[] = {{H_ADD, add}, {H_HOLD, hold}};
const struct gn_program gn_program = {GN_TABLE(table)};

static gasnet_hsl_t fixed = GASNET_HSL_INITIALIZER;

static void lock_and_try(gasnet_hsl_t *lock)
{
	for (int i = 0; i < 100; i++) {
		gasnet_hsl_lock(lock);
		gasnet_hsl_unlock(lock);
		CHECK_OK(gasnet_hsl_trylock(lock));
		gasnet_hsl_unlock(lock);
	}
}

STATEMENT(68, static_and_dynamic_locks)
{
	gasnet_hsl_t local = GASNET_HSL_INITIALIZER, *lock = suite_alloc(sizeof *lock);
	memset(lock, 0x5a, sizeof *lock);
	gasnet_hsl_init(lock);
	lock_and_try(&fixed);
	lock_and_try(&local);
	lock_and_try(lock);
	gasnet_hsl_destroy(lock);
	gasnet_hsl_destroy(&local);
}

static _Atomic int answer_of_try;

static void try_fixed(unsigned nth)
{
	(void)nth;
	int rc = gasnet_hsl_trylock(&fixed);
	if (rc == GASNET_OK)
		gasnet_hsl_unlock(&fixed);
	answer_of_try = rc;
}

STATEMENT(69, trylock_of_another_threads_lock)
{
	NEED_PAR();
	gasnet_hsl_lock(&fixed);
	gn_thread(try_fixed, 0);
	gn_join();
	gasnet_hsl_unlock(&fixed);
	CHECK_RC(answer_of_try, GASNET_ERR_NOT_READY);
	gn_thread(try_fixed, 0);
	gn_join();
	CHECK_RC(answer_of_try, GASNET_OK);
}

/* ---- a counter ---- */

enum { THREADS = 4, ADDITIONS = 500 };
static uint64_t counter; /* under the lock */
static _Atomic unsigned handled;

static void increment(void)
{
	gasnet_hsl_lock(&fixed);
	uint64_t value = counter;
	for (volatile int i = 0; i < 10; i++)
		;
	counter = value + 1;
	gasnet_hsl_unlock(&fixed);
}

static void add(gasnet_token_t token)
{
	(void)token;
	increment();
	handled++;
}

static void add_many(unsigned nth)
{
	(void)nth;
	for (int i = 0; i < ADDITIONS; i++) {
		increment();
		CHECK_OK(gasnet_AMRequestShort0(gn.next, H_ADD));
	}
}

STATEMENT(70, counter_of_threads_and_handlers)
{
	const unsigned threads = GN_IS_PAR ? THREADS : 1;
	counter = 0;
	handled = 0;
	gn_barrier();
	for (unsigned i = 1; i < threads; i++)
		gn_thread(add_many, i);
	add_many(0);
	UNTIL(handled == threads * ADDITIONS);
	gn_join();
	gasnet_hsl_lock(&fixed);
	CHECK_EQ(counter, 2 * threads * ADDITIONS);
	gasnet_hsl_unlock(&fixed);
}

STATEMENT(71, two_locks_and_a_second_life)
{
	gasnet_hsl_t first, second;
	for (int i = 0; i < 50; i++) {
		gasnet_hsl_init(&first);
		gasnet_hsl_init(&second);
		gasnet_hsl_lock(&first);
		gasnet_hsl_lock(&second);
		gasnet_hsl_unlock(&second);
		CHECK_OK(gasnet_hsl_trylock(&second));
		gasnet_hsl_unlock(&second);
		gasnet_hsl_unlock(&first);
		gasnet_hsl_destroy(&first);
		gasnet_hsl_destroy(&second);
	}
}

/* ---- no-interrupt sections ---- */

static _Atomic unsigned held;

static void hold(gasnet_token_t token)
{
	(void)token;
	gasnet_hold_interrupts();
	gasnet_hold_interrupts();
	gasnet_resume_interrupts();
	held++;
}

STATEMENT(72, hold_and_resume)
{
	held = 0;
	gn_barrier();
	gasnet_hold_interrupts();
	CHECK_EQ(gasnet_mynode(), gn.rank);
	CHECK_EQ(gasnet_nodes(), gn.size);
	gasnet_resume_interrupts();
	gasnet_hsl_lock(&fixed);
	gasnet_hold_interrupts(); /* ignored, so unpaired calls are no error */
	gasnet_hold_interrupts();
	gasnet_resume_interrupts();
	gasnet_hsl_unlock(&fixed);
	gasnet_hold_interrupts();
	gasnet_resume_interrupts();
	CHECK_OK(gasnet_AMRequestShort0(gn.next, H_HOLD));
	UNTIL(held == 1);
	gasnet_hold_interrupts();
	gasnet_resume_interrupts();
}
