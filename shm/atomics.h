/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomics - the only file that includes <stdatomic.h>
 *
 * Everything that two threads or processes share is a p3_a32 or p3_a64 and is
 * reached by the few operations below:
 *
 *	p3_release(p, v)	store; all that the thread did before is visible to
 *				whoever acquires this value
 *	p3_acquire(p)		load; sees all that was done before the release
 *	p3_relaxed_get/set	a value that carries no other data (counters, hints)
 *	p3_cas_acquire		take ownership (the lease)
 *	p3_cas_release		publish and order at once (the mailbox)
 *	p3_exchange		acquire and release (pop-all)
 *	p3_fence()		the one stand-alone fence.  Orders an earlier store before
 *				a later load (Dekker).  Every use names the two, the edge,
 *				and what hangs without it.
 *
 * Each use of release and acquire cites the edge it belongs to; docs/ordering.md
 * lists the edges.  A store by one thread only, that the same thread may read
 * back plainly, is p3_own_get(): relaxed, because others load it.
 *
 * Checkers.  ThreadSanitizer does not understand stand-alone fences: there
 * p3_fence() is an exchange on a word of its own.  Helgrind does not understand
 * C11 atomics: with P3_VALGRIND the wrappers tell it the happens-before edge and
 * that the word itself is not a race.
 */
#ifndef P3_SHM_ATOMICS_H
#define P3_SHM_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef P3_VALGRIND
#include <valgrind/helgrind.h>
#define P3_HB_BEFORE(p) ANNOTATE_HAPPENS_BEFORE(p)
#define P3_HB_AFTER(p)  ANNOTATE_HAPPENS_AFTER(p)
#define P3_HB_WORD(p)   VALGRIND_HG_DISABLE_CHECKING(p, sizeof *(p))
#else
#define P3_HB_BEFORE(p) ((void)0)
#define P3_HB_AFTER(p)  ((void)0)
#define P3_HB_WORD(p)   ((void)0)
#endif

#if defined(__SANITIZE_THREAD__)
#define P3_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define P3_TSAN 1
#endif
#endif

/* Which way a message goes: that one lies straight ahead. */
#define p3_likely(x)   __builtin_expect(!!(x), 1)
#define p3_unlikely(x) __builtin_expect(!!(x), 0)
/* Off the common path: the callers keep their registers and cache lines. */
#define P3_RARE __attribute__((cold, noinline))
/* GCC stops inlining into functions that grew large (tests/style/inlined.sh). */
#define P3_HOT inline __attribute__((always_inline))
/* On the path of a message: these lie together.  A node that shares its CPU with many
 * begins each turn with an empty TLB, and waits for each page of code.  GCC splits off no
 * rare halves there: what is rare is a function of its own. */
#define P3_PATH __attribute__((section(".text.hot.p3")))

/* Two x86 lines: the adjacent-line prefetcher pulls pairs. */
#define P3_LINE 128
#define P3_CELL 64

typedef _Atomic(uint32_t) p3_a32;
typedef _Atomic(uint64_t) p3_a64;

_Static_assert(sizeof(p3_a32) == 4 && sizeof(p3_a64) == 8, "atomics are plain words");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "no hidden locks in shared memory");

/* The generic forms: p is a p3_a32 * or p3_a64 *. */
#define p3_release(p, v)                                                                 \
	do {                                                                             \
		P3_HB_WORD(p);                                                           \
		P3_HB_BEFORE(p);                                                         \
		atomic_store_explicit((p), (v), memory_order_release);                   \
	} while (0)

#define p3_acquire(p)                                                                    \
	__extension__({                                                                  \
		P3_HB_WORD(p);                                                           \
		__typeof__(atomic_load_explicit((p), memory_order_acquire)) p3_v_ =      \
			atomic_load_explicit((p), memory_order_acquire);                 \
		P3_HB_AFTER(p);                                                          \
		p3_v_;                                                                   \
	})

#define p3_get(p)                                                                        \
	__extension__({                                                                  \
		P3_HB_WORD(p);                                                           \
		atomic_load_explicit((p), memory_order_relaxed);                         \
	})

#define p3_set(p, v)                                                                     \
	do {                                                                             \
		P3_HB_WORD(p);                                                           \
		atomic_store_explicit((p), (v), memory_order_relaxed);                   \
	} while (0)

/* One writer: a counter that others only read. */
#define p3_count(p, n) p3_set((p), atomic_load_explicit((p), memory_order_relaxed) + (n))

static inline bool p3_cas_acquire32(p3_a32 *p, uint32_t old, uint32_t val)
{
	P3_HB_WORD(p);
	bool ok = atomic_compare_exchange_strong_explicit(
		p, &old, val, memory_order_acquire, memory_order_relaxed);
	if (ok)
		P3_HB_AFTER(p);
	return ok;
}

static inline bool p3_cas64(p3_a64 *p, uint64_t *old, uint64_t val)
{
	P3_HB_WORD(p);
	P3_HB_BEFORE(p);
	bool ok = atomic_compare_exchange_strong_explicit(
		p, old, val, memory_order_acq_rel, memory_order_acquire);
	P3_HB_AFTER(p);
	return ok;
}

static inline bool p3_cas32(p3_a32 *p, uint32_t *old, uint32_t val)
{
	P3_HB_WORD(p);
	P3_HB_BEFORE(p);
	bool ok = atomic_compare_exchange_strong_explicit(
		p, old, val, memory_order_acq_rel, memory_order_acquire);
	P3_HB_AFTER(p);
	return ok;
}

static inline uint32_t p3_exchange32(p3_a32 *p, uint32_t val)
{
	P3_HB_WORD(p);
	P3_HB_BEFORE(p);
	uint32_t old = atomic_exchange_explicit(p, val, memory_order_acq_rel);
	P3_HB_AFTER(p);
	return old;
}

static inline uint32_t p3_add32(p3_a32 *p, uint32_t n)
{
	P3_HB_WORD(p);
	P3_HB_BEFORE(p);
	uint32_t old = atomic_fetch_add_explicit(p, n, memory_order_acq_rel);
	P3_HB_AFTER(p);
	return old;
}

static inline uint64_t p3_add64(p3_a64 *p, uint64_t n)
{
	P3_HB_WORD(p);
	P3_HB_BEFORE(p);
	uint64_t old = atomic_fetch_add_explicit(p, n, memory_order_acq_rel);
	P3_HB_AFTER(p);
	return old;
}

static inline void p3_or64(p3_a64 *p, uint64_t bits)
{
	P3_HB_WORD(p);
	P3_HB_BEFORE(p);
	(void)atomic_fetch_or_explicit(p, bits, memory_order_acq_rel);
}

static inline uint64_t p3_exchange64(p3_a64 *p, uint64_t val)
{
	P3_HB_WORD(p);
	P3_HB_BEFORE(p);
	uint64_t old = atomic_exchange_explicit(p, val, memory_order_acq_rel);
	P3_HB_AFTER(p);
	return old;
}

/*
 * Full fence.  On x86 a locked or of the stack's top is cheaper than mfence and
 * orders the same for ordinary memory.
 */
static inline void p3_fence(void)
{
#if defined(P3_TSAN)
	static p3_a32 word;
	(void)atomic_exchange_explicit(&word, 0, memory_order_seq_cst);
#elif defined(__x86_64__)
	__asm__ __volatile__("lock; orl $0, (%%rsp)" ::: "memory", "cc");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * The reader's side of a copy that is only good if a word did not change
 * meanwhile: every load before stays before the loads after (SEQ edges).
 */
static inline void p3_load_fence(void)
{
#if defined(P3_TSAN)
	p3_fence();
#else
	atomic_thread_fence(memory_order_acquire);
#endif
}

/* Ask for the line at p, which will be written soon and which others have. */
static inline void p3_own_soon(const void *p)
{
#if defined(__x86_64__)
	__asm__ __volatile__("prefetchw %0" ::"m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/* One turn of a spin loop: lets the other hardware thread run. */
static inline void p3_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

#endif
