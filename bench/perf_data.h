/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_data - the content of messages: word k of a full one is word(k, seed)
 */
#ifndef BENCH_PERF_DATA_H
#define BENCH_PERF_DATA_H

#include "perf.h"

#include <string.h>

enum { PERF_WORD = 8, PERF_WANDER = 4096 };

static inline uint64_t perf_word(uint64_t k, uint64_t seed)
{
	return (k + 1) * 0x9e3779b97f4a7c15u ^ (seed + 1) * 0xd1b54a32d192ed03u;
}

void perf_fill(char *at, uint64_t length, uint64_t seed);
void perf_guard(char *at);
/* Check the whole message and the bytes behind it; count an error. */
void perf_check_all(struct perf_node *n, const char *rx, uint64_t first, uint64_t seed);

/* Return a stamp that differs for each message (or window) and sender, also in its low
 * bytes. */
static inline uint64_t perf_stamp_of(const struct perf_node *n, unsigned sender)
{
	return (n->message * 2 + (sender & 1)) | (uint64_t)sender << 48;
}

/* Return the words that the timed loop checks: the message's ends, and a wandering
 * one. */
static inline uint64_t perf_last(const struct perf_node *n)
{
	return n->length / PERF_WORD - 1;
}

static inline uint64_t perf_wandering(const struct perf_node *n)
{
	return n->message * 61 % (n->length / PERF_WORD);
}

static inline void perf_stamp(struct perf_node *n)
{
	uint64_t v = perf_stamp_of(n, n->b->rank), *tx = (uint64_t *)n->tx;
	if (n->full) {
		perf_fill(n->tx, n->length, v);
		return;
	}
	if (n->length < PERF_WORD) {
		memcpy(n->tx, &v, n->length);
		return;
	}
	if (n->length >= PERF_WANDER)
		tx[perf_wandering(n)] = v;
	tx[perf_last(n)] = v;
	tx[0] = v;
}

static inline void perf_check_word(
	struct perf_node *n, uint64_t got, uint64_t want, uint64_t k)
{
	if (__builtin_expect(got != want, 0))
		perf_wrong(n, k * PERF_WORD);
}

static inline void perf_check_stamp(struct perf_node *n, const char *at, unsigned sender)
{
	uint64_t v = perf_stamp_of(n, sender);
	const uint64_t *rx = (const uint64_t *)at;
	if (n->full) {
		perf_check_all(n, at, 0, v);
		return;
	}
	if (n->length < PERF_WORD) {
		if (memcmp(at, &v, n->length))
			perf_wrong(n, 0);
		return;
	}
	perf_check_word(n, rx[0], v, 0);
	perf_check_word(n, rx[perf_last(n)], v, perf_last(n));
	if (n->length >= PERF_WANDER)
		perf_check_word(n, rx[perf_wandering(n)], v, perf_wandering(n));
}

#endif
