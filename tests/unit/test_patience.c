/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of tests: how time counts on a busy machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/patience.h"

#define MS UINT64_C(1000000)

static void is_about(double is, double want)
{
	assert_true(is > want * 0.999 && is < want * 1.001);
}

static void patience_share_falls_with_the_load_to_a_tenth(void **state)
{
	(void)state;
	is_about(patience_share(0, 2), 1);
	is_about(patience_share(2, 2), 1);
	is_about(patience_share(4, 2), 0.5);
	is_about(patience_share(16, 2), 0.125);
	is_about(patience_share(20, 2), 0.1);
	is_about(patience_share(1000, 2), 0.1);
	double now = patience_share_now();
	assert_true(now > 0.099 && now <= 1);
}

static void patience_counts_time_by_the_share(void **state)
{
	(void)state;
	struct patience p = {.last_ns = 500 * MS, .left_ns = 100e6};
	patience_count(&p, 540 * MS, 1);
	is_about(p.left_ns, 60e6);
	patience_count(&p, 640 * MS, 0.5);
	is_about(p.left_ns, 10e6);
	patience_count(&p, 640 * MS, 1);
	is_about(p.left_ns, 10e6);
	patience_count(&p, 740 * MS, 0.1);
	assert_true(p.left_ns < 1);
}

/* No more than the time that has passed is counted, and no less than a tenth of it. */
static void patience_is_over_after_its_time(void **state)
{
	(void)state;
	struct patience p = patience_ms(60);
	uint64_t began = p.last_ns;
	assert_false(patience_is_over(&p));
	while (!patience_is_over(&p))
		assert_true(p.left_ns > 0);
	assert_true(p.last_ns - began >= 60 * PATIENCE_SCALE * MS);
	assert_true(patience_is_over(&p));
	p = patience_ms(60);
	p.last_ns -= 600 * PATIENCE_SCALE * MS;
	assert_true(patience_is_over(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patience_share_falls_with_the_load_to_a_tenth),
		cmocka_unit_test(patience_counts_time_by_the_share),
		cmocka_unit_test(patience_is_over_after_its_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
