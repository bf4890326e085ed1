/* SPDX-License-Identifier: BSD-3-Clause */
/* The content of messages: filling, and checking from end to end. */
#include "perf.h"

#include <string.h>

const char *const perf_test_name[PERF_TESTS] = {
	"put", "get", "ack", "bidir", "stream", "rate", "nto1"};

void perf_fill(char *at, uint64_t length, uint64_t seed)
{
	for (uint64_t i = 0; i < length; i += PERF_WORD) {
		uint64_t w = perf_word(i / PERF_WORD, seed);
		memcpy(at + i, &w, length - i < PERF_WORD ? length - i : PERF_WORD);
	}
}

/* Return the position of the first wrong byte, or length. */
static uint64_t differs_at(const char *at, uint64_t length, uint64_t first, uint64_t seed)
{
	for (uint64_t i = 0; i < length; i++) {
		uint64_t w = perf_word(first + i / PERF_WORD, seed);
		if (i % PERF_WORD == 0 && length - i >= PERF_WORD &&
			!memcmp(at + i, &w, PERF_WORD))
			i += PERF_WORD - 1;
		else if (at[i] != ((char *)&w)[i % PERF_WORD])
			return i;
	}
	return length;
}

void perf_guard(char *at)
{
	memset(at, 0xa5, PERF_GUARD);
}

static bool is_guarded(const char *at)
{
	char want[PERF_GUARD];
	perf_guard(want);
	return !memcmp(at, want, PERF_GUARD);
}

void perf_check_all(struct perf_node *n, const char *rx, uint64_t first, uint64_t seed)
{
	uint64_t at = differs_at(rx, n->length, first, seed);
	if (at < n->length || !is_guarded(rx + n->length))
		perf_wrong(n, at);
}

void perf_wrong(struct perf_node *n, uint64_t at)
{
	bench_wrong(n->b,
		"%s of %llu bytes, message %llu: wrong byte at %llu; expected what was "
		"sent; the library damages data",
		perf_test_name[n->test], (unsigned long long)n->length,
		(unsigned long long)n->message, (unsigned long long)at);
}
