/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock - milliseconds of the monotonic clock
 *
 * Any thread may call this function; there is no state.
 */
#ifndef P3_LAUNCHER_CLOCK_H
#define P3_LAUNCHER_CLOCK_H

#include <stdint.h>
#include <time.h>

#define P3_NEVER INT64_MAX

static inline int64_t p3_now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static inline int64_t p3_earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

#endif
