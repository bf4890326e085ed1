/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf_data - the words of a message that the timed loops write and check
 */
#ifndef BENCH_PERF_DATA_H
#define BENCH_PERF_DATA_H

#include "perf.h"

#include <string.h>

enum { PERF_WANDER = 4096 };

/* Return a stamp that differs for each message (or window) and sender, also in its low
 * bytes. */
static inline uint64_t perf_stamp_of(const struct perf_node *n, unsigned sender)
{
	return (n->message * 2 + (sender & 1)) | (uint64_t)sender << 48;
}

/* Return the numbers of words that the timed loop checks besides the first one: the last
 * one, and one that is another one in each message. */
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
