/* SPDX-License-Identifier: BSD-3-Clause */
/* Futex calls, the idle policy, and the number of usable CPUs. */
#include "shm/park.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t p3_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool p3_futex_wait(p3_a32 *word, uint32_t val, uint64_t ns, uint32_t mask, bool shared)
{
	uint64_t at = p3_now_ns() + ns; /* the bitset form takes an absolute time */
	struct timespec t = {(time_t)(at / 1000000000u), (long)(at % 1000000000u)};
	int op = FUTEX_WAIT_BITSET | (shared ? 0 : FUTEX_PRIVATE_FLAG);
	int saved = errno;
	long rc = syscall(SYS_futex, word, op, val, &t, NULL, mask);
	bool timeout = rc != 0 && errno == ETIMEDOUT;
	errno = saved;
	return !timeout;
}

static void futex_wake(p3_a32 *word, int threads, uint32_t mask, bool shared)
{
	int op = FUTEX_WAKE_BITSET | (shared ? 0 : FUTEX_PRIVATE_FLAG);
	int saved = errno;
	syscall(SYS_futex, word, op, threads, NULL, NULL, mask);
	errno = saved;
}

void p3_futex_wake(p3_a32 *word, uint32_t mask, bool shared)
{
	futex_wake(word, INT_MAX, mask, shared);
}

void p3_futex_wake_one(p3_a32 *word, uint32_t mask, bool shared)
{
	futex_wake(word, 1, mask, shared);
}

static enum p3_idle waiter_spin_or_yield(
	struct p3_waiter *w, const struct p3_idle_policy *p)
{
	w->earlier = w->yielded;
	w->yielded = false;
	if (!w->earlier)
		w->now = p3_now_ns();
	uint64_t now = w->now;
	if (!w->since)
		w->since = now;
	uint64_t waited = now - w->since;
	if (waited < p->spin_ns)
		return P3_IDLE_SPIN;
	w->spun = true;
	if (w->alone_since && now - w->alone_since >= P3_ALONE_NS)
		return P3_IDLE_PARK;
	return waited - p->spin_ns < p->yield_ns ? P3_IDLE_YIELD : P3_IDLE_PARK;
}

enum p3_idle p3_waiter_turn(struct p3_waiter *w, const struct p3_idle_policy *p)
{
#ifdef P3_VALGRIND
	sched_yield(); /* valgrind runs one thread at a time: a spin would never end */
#endif
	if (p->spin_ns && !w->spun && w->turns++ % 64 != 63)
		return P3_IDLE_SPIN;
	return waiter_spin_or_yield(w, p);
}

uint64_t p3_waiter_yield(struct p3_waiter *w)
{
	uint64_t before = w->earlier ? p3_now_ns() : w->now;
	sched_yield();
	w->now = p3_now_ns();
	w->yielded = true;
	uint64_t took = w->now - before;
	if (took > P3_AT_ONCE_NS)
		w->alone_since = 0;
	else if (!w->alone_since)
		w->alone_since = before;
	return took;
}
