/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cases - cmocka's cases, which add themselves to their program: CASE(name) { ... }
 *
 * A program has a main() only if something is to be done before or after its cases.
 * P3_CASE selects cases by a pattern.
 */
#ifndef P3_TESTS_SUPPORT_CASES_H
#define P3_TESTS_SUPPORT_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void case_add(const char *name, CMUnitTestFunction fn, CMFixtureFunction setup,
	CMFixtureFunction teardown);
/* Run all cases, which share what setup makes.  Return the number of those that fail. */
int cases_run_in(CMFixtureFunction setup, CMFixtureFunction teardown);
int cases_run(void);

/* A case with functions of its own before and behind it, or NULL. */
#define CASE_IN(name, setup, teardown)                                                   \
	static void name(void **state);                                                  \
	__attribute__((constructor)) static void add_##name(void)                        \
	{                                                                                \
		case_add(#name, name, setup, teardown);                                  \
	}                                                                                \
	static void name(void **state __attribute__((unused)))

#define CASE(name) CASE_IN(name, NULL, NULL)

/* A case whose setup leaves a world in *state, which its function gets. */
#define CASE_OF(argument, name, setup, teardown)                                         \
	static void name##_in(argument);                                                 \
	CASE_IN(name, setup, teardown)                                                   \
	{                                                                                \
		name##_in(*state);                                                       \
	}                                                                                \
	static void name##_in(argument)

#endif
