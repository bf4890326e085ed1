/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomics.h - operations on words that threads of one node share, and locks
 *
 * The conduit stands on public headers only, so it does not use shm/atomics.h.  Each word
 * belongs to one process; other processes see messages only.  gasneti_release and
 * gasneti_acquire pair up as usual.  gasneti_add orders as both.  In GASNET_SEQ one
 * thread alone makes calls, so gasneti_add is a plain addition there and locks are empty;
 * words that the watch thread shares (exit.c) use gasneti_swap and gasneti_cas, which are
 * atomic in each mode.
 */
#ifndef GASNETI_ATOMICS_H
#define GASNETI_ATOMICS_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define gasneti_get(p)          __atomic_load_n(p, __ATOMIC_RELAXED)
#define gasneti_set(p, v)       __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define gasneti_acquire(p)      __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define gasneti_release(p, v)   __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define gasneti_swap(p, v)      __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL)
#define gasneti_seq_get(p)      __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define gasneti_seq_add(p, n)   __atomic_add_fetch(p, n, __ATOMIC_SEQ_CST)
#define gasneti_acquire_fence() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define gasneti_release_fence() __atomic_thread_fence(__ATOMIC_RELEASE)

static inline bool gasneti_cas(uint32_t *word, uint32_t old, uint32_t new)
{
	return __atomic_compare_exchange_n(
		word, &old, new, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

#ifdef GASNET_SEQ
#define GASNETI_THREADS   0
#define gasneti_add(p, n) (*(p) += (n)) /* the new value */
#define GASNETI_TLS
typedef char gasneti_lock_t;
#define GASNETI_UNLOCKED   0
#define gasneti_lock(l)    ((void)(l))
#define gasneti_unlock(l)  ((void)(l))
#define gasneti_trylock(l) ((void)(l), true)
#else
#define GASNETI_THREADS    1
#define gasneti_add(p, n)  __atomic_add_fetch(p, n, __ATOMIC_SEQ_CST)
#define GASNETI_TLS        __thread __attribute__((tls_model("initial-exec")))
typedef pthread_mutex_t gasneti_lock_t;
#define GASNETI_UNLOCKED   PTHREAD_MUTEX_INITIALIZER
#define gasneti_lock(l)    ((void)pthread_mutex_lock(l))
#define gasneti_unlock(l)  ((void)pthread_mutex_unlock(l))
#define gasneti_trylock(l) (pthread_mutex_trylock(l) == 0)
#endif

/* Sleep while a word has a value, until a wake-up or the limit, if it is not NULL. */
static inline void gasneti_futex_wait(
	uint32_t *word, uint32_t value, const struct timespec *limit)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, limit, NULL, 0);
}

static inline void gasneti_futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Count in statistics; no order. */
#define gasneti_count(p, n) ((void)__atomic_fetch_add(p, n, __ATOMIC_RELAXED))

/* Keep the greatest value in statistics; of two threads one may be lost. */
static inline void gasneti_peak(uint64_t *peak, uint64_t value)
{
	if (value > gasneti_get(peak))
		gasneti_set(peak, value);
}

#endif /* GASNETI_ATOMICS_H */
