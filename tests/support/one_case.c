/* SPDX-License-Identifier: BSD-3-Clause */
/* P3_CASE selects cases of a cmocka program by a pattern such as "*_parked". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void select_cases(void)
{
	const char *pattern = getenv("P3_CASE");
	if (pattern)
		cmocka_set_test_filter(pattern);
}
