/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch of the straight paths does what the build option says, in each thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "shm/variant.h"

#define THROWS 256

static void *count(void *arg)
{
	int *taken = arg;
	for (int i = 0; i < THROWS; i++)
		*taken += p3_straight();
	return NULL;
}

static void assert_as_built(int taken)
{
#if defined(P3_STRAIGHT_RANDOM)
	assert_in_range(taken, THROWS / 4, THROWS - THROWS / 4);
#elif defined(P3_STRAIGHT_OFF)
	assert_int_equal(taken, 0);
#else
	assert_int_equal(taken, THROWS);
#endif
}

static void obeys_the_build_option(void **state)
{
	int taken[2] = {0, 0};
	pthread_t other;
	(void)state;
	assert_int_equal(pthread_create(&other, NULL, count, &taken[1]), 0);
	(void)count(&taken[0]);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_as_built(taken[0]);
	assert_as_built(taken[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(obeys_the_build_option)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
