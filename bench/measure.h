/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure - the clock, the statistics and the number of rounds of all benchmarks
 *
 * Programs that measure other libraries than libportals include it, too.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static inline double bench_clock_ns(clockid_t id)
{
	struct timespec t;
	(void)clock_gettime(id, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline double bench_now_ns(void)
{
	return bench_clock_ns(CLOCK_MONOTONIC);
}

struct bench_stat {
	uint64_t n;
	double min, p10, p50, p90, p99, p999, max;
};

static inline int bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static inline double bench_part(const double *sorted, uint64_t n, double part)
{
	uint64_t at = (uint64_t)(part * (double)n);
	if (part == 0.5 && n % 2 == 0)
		return (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
	return sorted[at < n ? at : n - 1];
}

/* Sort the samples, and return their percentiles. */
static inline struct bench_stat bench_stat_of(double *sample, uint64_t n)
{
	if (!n)
		return (struct bench_stat){0};
	qsort(sample, n, sizeof *sample, bench_compare);
	return (struct bench_stat){.n = n,
		.min = sample[0],
		.p10 = bench_part(sample, n, 0.1),
		.p50 = bench_part(sample, n, 0.5),
		.p90 = bench_part(sample, n, 0.9),
		.p99 = bench_part(sample, n, 0.99),
		.p999 = bench_part(sample, n, 0.999),
		.max = sample[n - 1]};
}

/* Return the number of round trips that messages of this size are measured with. */
static inline uint64_t bench_usual_rounds(uint64_t bytes)
{
	return bytes <= 1 << 10    ? 20000
	       : bytes <= 64 << 10 ? 5000
	       : bytes <= 1 << 20  ? 1000
				   : 200;
}

/* Return the number of all-to-all rounds in which the nodes send 4,000,000 messages. */
static inline uint64_t bench_all_rounds(uint64_t nodes)
{
	uint64_t rounds = 4000000 / nodes / (nodes - 1);
	return rounds < 400 ? 400 : rounds > 200000 ? 200000 : rounds;
}

#endif
