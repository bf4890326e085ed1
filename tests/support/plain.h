/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain - a check of programs that are written as users write them, with no harness: one
 * that fails prints a line and ends the process with status 1
 *
 * Any program may include this header; it has no state.
 */
#ifndef P3_TESTS_PLAIN_H
#define P3_TESTS_PLAIN_H

#include <stdio.h>
#include <stdlib.h>

__attribute__((noreturn)) static inline void plain_fail(
	const char *file, int line, const char *what)
{
	const char *rank = getenv("PTL_MY_RID");
	printf("rank %s, %s:%d: %s\n", rank ? rank : "unknown", file, line, what);
	exit(1);
}

#define CHECK(truth) ((truth) ? (void)0 : plain_fail(__FILE__, __LINE__, #truth))
#define OK(call)     CHECK((call) == PTL_OK)

#endif
