/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random - numbers that follow from a seed (splitmix64)
 *
 * Any program may include this header; it has no state.
 */
#ifndef P3_TESTS_RANDOM_H
#define P3_TESTS_RANDOM_H

#include <stdint.h>

#define RANDOM_STEP UINT64_C(0x9e3779b97f4a7c15)

/* Return 64 bits in which each bit depends on all bits of x. */
static inline uint64_t mix(uint64_t x)
{
	x += RANDOM_STEP;
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Return the next number of the sequence that the state stands for. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t x = mix(*state);
	*state += RANDOM_STEP;
	return x;
}

#endif
