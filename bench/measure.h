/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * measure - what all benchmarks need: the clock, statistics, numbers of rounds, CPUs, and
 * a cache line that two CPUs hand over without a library
 *
 * Programs that measure other libraries than libportals include it, too.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
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

/* ---- CPUs ---- */

/* A cpu_set_t has room for 1,024 CPUs, and sched_getaffinity() fails if the kernel may
 * have more; no kernel has more than 8,192. */
enum { CPUS_SETS = 8, CPUS_MOST = CPUS_SETS * CPU_SETSIZE };

struct cpus {
	cpu_set_t set[CPUS_SETS];
};

/* Read the CPUs of this thread.  Return false with errno if that fails. */
static inline bool cpus_read(struct cpus *c)
{
	return sched_getaffinity(0, sizeof c->set, c->set) == 0;
}

static inline unsigned cpus_count(const struct cpus *c)
{
	return (unsigned)CPU_COUNT_S(sizeof c->set, c->set);
}

/* Return the CPU with this number in the set, counting round, or -1 if the set is
 * empty. */
static inline int cpus_nth(const struct cpus *c, unsigned n)
{
	unsigned left = cpus_count(c) ? n % cpus_count(c) : 0;
	for (unsigned cpu = 0; cpu < CPUS_MOST; cpu++)
		if (CPU_ISSET_S(cpu, sizeof c->set, c->set) && left-- == 0)
			return (int)cpu;
	return -1;
}

/* Pin this thread to a CPU.  Return false with errno if that fails. */
static inline bool cpus_pin(int cpu)
{
	struct cpus one;
	CPU_ZERO_S(sizeof one.set, one.set);
	CPU_SET_S((size_t)cpu, sizeof one.set, one.set);
	return sched_setaffinity(0, sizeof one.set, one.set) == 0;
}

/* ---- a line that is handed over and back ---- */

/* One writer per pair of cache lines: the first process writes ping, the other pong. */
struct hand {
	_Alignas(128) _Atomic uint64_t ping;
	_Alignas(128) _Atomic uint64_t pong;
};

/* Pause in a turn of a loop that waits.  The yield is for a CPU that another process
 * needs, or that is taken away. */
static inline void hand_pause(unsigned turn, bool yields)
{
#if defined(__x86_64__) || defined(__i386__)
	if (!yields)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
	if (!yields)
		__asm__ volatile("yield");
#endif
	if (yields || turn % (1 << 14) == 0)
		sched_yield();
}

static inline void hand_await(_Atomic uint64_t *word, uint64_t least, bool yields)
{
	for (unsigned turn = 1; atomic_load_explicit(word, memory_order_acquire) < least;)
		hand_pause(turn++, yields);
}

static inline void hand_publish(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

/* Run round trips, of which done have gone before; the first process begins. */
static inline void hand_over(
	struct hand *h, bool first, uint64_t done, uint64_t count, bool yields)
{
	for (uint64_t i = done + 1; i <= done + count; i++) {
		if (!first)
			hand_await(&h->ping, i, yields);
		hand_publish(first ? &h->ping : &h->pong, i);
		if (first)
			hand_await(&h->pong, i, yields);
	}
}

#endif
