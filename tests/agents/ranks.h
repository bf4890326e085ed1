/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of the ranks in tests of several hosts. */
#ifndef P3_TESTS_AGENTS_RANKS_H
#define P3_TESTS_AGENTS_RANKS_H

#include <portals3.h>

#include <stdio.h>
#include <stdlib.h>

static unsigned rank, size;

/* End the process with a line if a call has failed. */
static void check(int rc, const char *what)
{
	if (rc != PTL_OK) {
		printf("rank %u: %s: %s\n", rank, what, PtlErrorStr((unsigned)rc));
		exit(1);
	}
}
#define DO(call) check(call, #call)

#endif
