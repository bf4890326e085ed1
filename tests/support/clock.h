/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock - the time, sleeps, and computing for a time, of test programs
 *
 * Any program may include this header; it has no state.
 */
#ifndef P3_TESTS_CLOCK_H
#define P3_TESTS_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ms(void)
{
	return now_ns() / 1000000u;
}

static inline void sleep_us(uint64_t us)
{
	struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
	while (nanosleep(&t, &t) != 0)
		;
}

static inline void sleep_ms(unsigned ms)
{
	sleep_us(ms * UINT64_C(1000)); /* pause: as long as the caller says */
}

/* Compute for this time, without any call of a library. */
static inline void compute_ms(unsigned ms)
{
	for (uint64_t until = now_ns() + ms * UINT64_C(1000000); now_ns() < until;)
		;
}

#endif
