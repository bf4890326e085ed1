/* SPDX-License-Identifier: BSD-3-Clause */
/* hand - a cache line that two CPUs hand over to each other and back, without a library */
#ifndef BENCH_HAND_H
#define BENCH_HAND_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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
