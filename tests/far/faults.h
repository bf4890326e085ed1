/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * faults - a seeded generator that decides which frames meet a fault, for media in tests:
 * the endpoint loop.c, and the medium of go-back-n in tests/wire/test_frame.c
 */
#ifndef P3_TESTS_FAR_FAULTS_H
#define P3_TESTS_FAR_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return a random number, by splitmix64: any first state is good. */
static inline uint64_t faults_draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* Return true in ppm cases of a million, and count these. */
static inline bool faults_strike(uint64_t *state, uint32_t ppm, uint64_t *count)
{
	bool hit = faults_draw(state) % 1000000u < ppm;
	*count += hit;
	return hit;
}

/* Flip any bit of these bytes. */
static inline void faults_flip(uint64_t *state, void *bytes, size_t len)
{
	uint64_t bit = faults_draw(state) % (8 * len);
	((unsigned char *)bytes)[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

#endif
