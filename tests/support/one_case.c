/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * P3_CASE selects cases of a cmocka program by a pattern such as "*_parked".  A pattern
 * that fits no case of the program is an error: cmocka would run nothing, and pass.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int __real__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests,
	size_t count, CMFixtureFunction setup, CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests,
	size_t count, CMFixtureFunction setup, CMFixtureFunction teardown);

static size_t selected; /* cases of all groups */

int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests,
	size_t count, CMFixtureFunction setup, CMFixtureFunction teardown)
{
	const char *pattern = getenv("P3_CASE");
	for (size_t i = 0; pattern && i < count; i++)
		selected += fnmatch(pattern, tests[i].name, 0) == 0;
	if (pattern)
		cmocka_set_test_filter(pattern);
	return __real__cmocka_run_group_tests(name, tests, count, setup, teardown);
}

__attribute__((destructor)) static void check_pattern(void)
{
	const char *pattern = getenv("P3_CASE");
	if (!pattern || selected)
		return;
	(void)fprintf(stderr,
		"P3_CASE is %s, which fits no case; run without it to see their names\n",
		pattern);
	_exit(1);
}
