/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * patience - the limit of a wait inside a test
 *
 *	struct patience p = patience_begin();
 *	while (!is_there())
 *		if (patience_is_over(&p))
 *			fail("it is not there");
 *
 * P3_WAIT is that limit in seconds, one for all waits (cmake/limits.cmake): a test that
 * passes never waits for it.  Without it, as in a program started by hand, a wait has no
 * limit.  Any program may include this header; it has no state.
 */
#ifndef P3_TESTS_PATIENCE_H
#define P3_TESTS_PATIENCE_H

#include "clock.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct patience {
	uint64_t end_ns;
	uint32_t looks; /* so far; only look_at() counts them (ranks.c) */
};

/* For a time that matters itself: how long something goes on. */
static inline struct patience patience_ms(uint64_t ms)
{
	return (struct patience){.end_ns = now_ns() + ms * 1000000u};
}

/* For a wait around other waits: their limit, and so their message, comes first. */
static inline struct patience patience_times(unsigned n)
{
	const char *s = getenv("P3_WAIT");
	return s ? patience_ms(n * strtoull(s, NULL, 10) * 1000u)
		 : (struct patience){.end_ns = UINT64_MAX};
}

static inline struct patience patience_begin(void)
{
	return patience_times(1);
}

static inline bool patience_is_over(const struct patience *p)
{
	return now_ns() >= p->end_ns;
}

#endif
