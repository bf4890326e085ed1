/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases of a cmocka program. */
#include "support/cases.h"

#include <stdlib.h>

enum { CASES_MOST = 100 };

static struct CMUnitTest cases[CASES_MOST];
static size_t cases_n;

/* Nodes on several hosts, in programs that have them. */
int nodes_missed_faults(void) __attribute__((weak));

void case_add(const char *name, CMUnitTestFunction fn, CMFixtureFunction setup,
	CMFixtureFunction teardown)
{
	if (cases_n == CASES_MOST)
		abort();
	cases[cases_n++] = (struct CMUnitTest){name, fn, setup, teardown, NULL};
}

int cases_run_in(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	int failed = _cmocka_run_group_tests("cases", cases, cases_n, setup, teardown);
	return failed + (nodes_missed_faults ? nodes_missed_faults() : 0);
}

int cases_run(void)
{
	return cases_run_in(NULL, NULL);
}

/* The main() of programs that have no other. */
__attribute__((weak)) int main(void)
{
	return cases_run();
}
