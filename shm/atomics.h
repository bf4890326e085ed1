/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomics - the operations on words that threads or processes share; the only file that
 * includes <stdatomic.h>
 *
 * A word that two threads or processes share is a p3_a32 or p3_a64, and is reached by
 * the operations below only.  Any thread may call them; the file has no state.
 *
 *	p3_release(p, v)	store; a thread that acquires this value sees all that the
 *				storing thread did before
 *	p3_acquire(p)		load; the other half of p3_release
 *	p3_release_pair(p, v)	two stores, and two loads, of neighboring words: each
 *	p3_acquire_pair(v, p)	word is whole, and their order is open
 *	p3_release_high(p, h)	store the upper half of a word that has one writer, or
 *	p3_release_halves(p, h, l)	both halves, whose order is open
 *	p3_acquire_high(p)	load the upper half
 *	p3_get, p3_set		load and store of a value that carries no other data
 *				(counters, hints): relaxed
 *	p3_count(p, n)		add to a counter that has one writer: relaxed
 *	p3_cas_acquire32	take ownership (the lease)
 *	p3_cas32, p3_cas64	compare and swap, acquire and release (the mailbox)
 *	p3_exchange32, _64	acquire and release (take the whole list)
 *	p3_add32, _64, p3_or64	read, change and write: acquire and release
 *	p3_fence()		order earlier stores before later loads (Dekker).  Every
 *				use names the edge; p3_fence_light and _heavy are below
 *	p3_load_fence()		order earlier loads before later ones (seqlock)
 *
 * Each release and each acquire cites the edge that it belongs to; docs/ordering.md
 * lists the edges.
 *
 * Checkers.  ThreadSanitizer does not understand stand-alone fences: under it
 * p3_fence() is an exchange on a word of its own.  Helgrind does not understand C11
 * atomics: with P3_VALGRIND the wrappers announce the happens-before edge to it, and
 * declare that the word itself is not a race.
 */
#ifndef P3_SHM_ATOMICS_H
#define P3_SHM_ATOMICS_H

#include "shm/variant.h"

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

/* Tell the compiler which branch messages usually take: it places that code without a
 * jump. */
#define p3_likely(x)   __builtin_expect(!!(x), 1)
#define p3_unlikely(x) __builtin_expect(!!(x), 0)
/* Mark a rarely called function: its code lies apart from the hot code, and is not
 * inlined, so it takes no registers from its callers. */
#define P3_RARE __attribute__((cold, noinline))
/* Force inlining: GCC stops inlining into large functions (tests/style/inlined.sh).  With
 * link-time optimization this holds where another file calls the function, too. */
#define P3_HOT inline __attribute__((always_inline))
/* Put a function of the message path into a section with the others.  A node that
 * shares its CPU with many others begins each turn with an empty TLB and waits for each
 * page of code.  GCC does not split cold halves off functions in this section, so rare
 * code is a function of its own. */
#define P3_PATH __attribute__((section(".text.hot.p3")))

/* Two x86 cache lines, because the adjacent-line prefetcher fetches pairs. */
#define P3_LINE 128
#define P3_CELL 64

typedef _Atomic(uint32_t) p3_a32;
typedef _Atomic(uint64_t) p3_a64;

_Static_assert(sizeof(p3_a32) == 4 && sizeof(p3_a64) == 8, "atomics are plain words");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "no hidden locks in shared memory");

/* The generic forms: p is a p3_a32 * or a p3_a64 *. */
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

/*
 * Add to a counter that has one writer and any number of readers.  On x86 this is one
 * instruction on memory, not locked: no other thread stores the word, and a reader loads
 * the value from before or from after it.
 */
static inline void p3_count(p3_a64 *p, uint64_t n)
{
#if defined(__x86_64__) && !defined(P3_TSAN) && !defined(P3_VALGRIND)
	__asm__ __volatile__("addq %1, %0" : "+m"(*p) : "er"(n) : "cc");
#else
	p3_set(p, p3_get(p) + n);
#endif
}

/*
 * x86 moves a pair in one instruction.  An aligned SSE load or store may be split at most
 * between its two words, since each aligned word is atomic, and it is in order with the
 * loads, or the stores, before and behind it, as all of them are.  So it is two loads
 * with acquire, or two stores with release, in an order that is open.  The accesses are
 * volatile, and the compiler moves no other access over the fences.  The checkers see
 * the words one by one.
 */
#if defined(__x86_64__) && !defined(P3_TSAN) && !defined(P3_VALGRIND)
/* As <emmintrin.h> defines them: each file would have to read its thousands of lines. */
typedef long long __attribute__((vector_size(16), may_alias)) p3_two;
typedef long long __attribute__((vector_size(16), may_alias, aligned(1))) p3_two_anywhere;
typedef uint32_t __attribute__((may_alias)) p3_half;

/* p and from are aligned to pairs. */
static inline void p3_release_pair(p3_a64 *p, const void *from)
{
	p3_two v = *(const p3_two *)from;
	atomic_signal_fence(memory_order_release);
	*(volatile p3_two *)p = v;
}

/* p is aligned to pairs, to need not be. */
static inline void p3_acquire_pair(void *to, const p3_a64 *p)
{
	p3_two v = *(const volatile p3_two *)p;
	atomic_signal_fence(memory_order_acquire);
	*(p3_two_anywhere *)to = v;
}

static inline uint32_t p3_acquire_high(const p3_a64 *p)
{
	uint32_t high = ((const volatile p3_half *)p)[1];
	atomic_signal_fence(memory_order_acquire);
	return high;
}

static inline void p3_release_high(p3_a64 *p, uint32_t high)
{
	atomic_signal_fence(memory_order_release);
	((volatile p3_half *)p)[1] = high;
}

static inline void p3_release_halves(p3_a64 *p, uint32_t high, uint32_t low)
{
	atomic_signal_fence(memory_order_release);
	((volatile p3_half *)p)[0] = low;
	((volatile p3_half *)p)[1] = high;
}
#else
static inline void p3_release_pair(p3_a64 *p, const void *from)
{
	uint64_t w[2];
	__builtin_memcpy(w, from, sizeof w);
	p3_release(&p[0], w[0]); /* the caller's edge */
	p3_release(&p[1], w[1]);
}

static inline void p3_acquire_pair(void *to, const p3_a64 *p)
{
	uint64_t w[2];
	w[0] = p3_acquire(&p[0]); /* the caller's edge */
	w[1] = p3_acquire(&p[1]);
	__builtin_memcpy(to, w, sizeof w);
}

static inline uint32_t p3_acquire_high(const p3_a64 *p)
{
	return (uint32_t)(p3_acquire(p) >> 32); /* the caller's edge */
}

static inline void p3_release_high(p3_a64 *p, uint32_t high)
{
	uint64_t low = (uint32_t)p3_get(p);
	p3_release(p, (uint64_t)high << 32 | low); /* the caller's edge */
}

static inline void p3_release_halves(p3_a64 *p, uint32_t high, uint32_t low)
{
	p3_release(p, (uint64_t)high << 32 | low); /* the caller's edge */
}
#endif

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
 * The value of 1, 2, 4 or 8 bytes of a program's memory that are aligned to their number,
 * and its change from old to val; false: *old is the present value.  The program may
 * access the bytes by its own atomic operations meanwhile.
 */
#define P3_EACH_SIZE(X) X(8) X(16) X(32) X(64)
#define P3_LOAD(bits)                                                                    \
	case bits / 8:                                                                   \
		return __atomic_load_n((const p3_plain##bits *)p, __ATOMIC_ACQUIRE);
#define P3_CHANGE(bits)                                                                  \
	case bits / 8: {                                                                 \
		p3_plain##bits was = (p3_plain##bits) * old;                             \
		bool ok = __atomic_compare_exchange_n((p3_plain##bits *)p, &was,         \
			(p3_plain##bits)val, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE); \
		*old = was;                                                              \
		return ok;                                                               \
	}

typedef uint8_t p3_plain8;
typedef uint16_t __attribute__((may_alias)) p3_plain16;
typedef uint32_t __attribute__((may_alias)) p3_plain32;
typedef uint64_t __attribute__((may_alias)) p3_plain64;

static inline uint64_t p3_value_get(const void *p, uint32_t size)
{
	switch (size) {
		P3_EACH_SIZE(P3_LOAD)
	default:
		return 0;
	}
}

static inline bool p3_value_cas(void *p, uint32_t size, uint64_t *old, uint64_t val)
{
	switch (size) {
		P3_EACH_SIZE(P3_CHANGE)
	default:
		return true;
	}
}

/*
 * Order all earlier stores before all later loads.  On x86 a locked "or" of the stack's
 * top is cheaper than mfence, and orders ordinary memory just as well.
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
 * Order all earlier loads before all later ones.  A reader calls it between copying
 * data and looking again at the word that tells whether the data changed meanwhile
 * (seqlock edges).
 */
static inline void p3_load_fence(void)
{
#if defined(P3_TSAN)
	p3_fence();
#else
	atomic_thread_fence(memory_order_acquire);
#endif
}

/*
 * Dekker fences for a side that fences in each message and a side that fences rarely.
 *
 *	message side	store, p3_fence_light, load	costs nothing
 *	rare side	store, p3_fence_heavy, load	a system call (membarrier)
 *
 * The light fence only keeps the compiler from changing the order.  The heavy fence has
 * the kernel make each running thread of each process that has joined pass a full
 * fence, somewhere between the call's begin and its end; threads that do not run have
 * passed one when they were stopped.  If a thread passes that fence before its store,
 * its later load sees all that the heavy side had stored before; else the heavy side's
 * load sees the thread's store.  So one of the two sees the other, as with two full
 * fences.
 *
 * A process that has not joined uses full fences, and so do all its partners: light
 * fences are only for a process that knows that the others' fences are heavy.
 *
 * A filter of system calls may later forbid membarrier.  Then the heavy fence waits
 * until earlier stores have left all CPUs' buffers by themselves.
 *
 * ThreadSanitizer does not know the system call: under it both are p3_fence().
 *
 * Any thread may call these functions.  Their state is the process's registration with
 * the kernel.
 */

/*
 * Join: from now on the heavy fences of other processes reach this process, and it may
 * call such fences itself.  Return false if the kernel refuses.  The call may be
 * repeated; the first call takes some 16 ms, but microseconds while the process has one
 * thread only.
 */
bool p3_fence_join(void);

/* Return false if the kernel refused and the call waited a millisecond instead. */
bool p3_fence_heavy(void);      /* reaches all processes that have joined */
bool p3_fence_heavy_here(void); /* reaches the threads of this process */

/* Fence lightly if light (all partners' fences are heavy), else fully. */
static inline void p3_fence_light(bool light)
{
#ifdef P3_TSAN
	light = false;
#endif
	if (p3_likely(light))
		atomic_signal_fence(memory_order_seq_cst);
	else
		p3_fence();
}

/* Prefetch the line at p for reading.  A prefetch cannot fault. */
static P3_HOT void p3_read_soon(const void *p)
{
	if (!p3_without(P3_PREFETCHES))
		__builtin_prefetch(p);
}

/* Prefetch the line at p for reading, into the second cache: it is one of many. */
static P3_HOT void p3_read_soon_far(const void *p)
{
	if (!p3_without(P3_PREFETCHES))
		__builtin_prefetch(p, 0, 2);
}

/* Prefetch the line at p for writing: this CPU will write the line soon, and the cache
 * of another CPU holds it. */
static inline void p3_own_soon(const void *p)
{
	if (p3_without(P3_PREFETCHES))
		return;
#if defined(__x86_64__)
	__asm__ __volatile__("prefetchw %0" ::"m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

/*
 * Copy bytes that only another CPU will read, by stores that go past this CPU's caches.
 * An ordinary store fetches the line from the cache of the CPU that read its former
 * content, and that CPU fetches the line back.  `to` is aligned to a cell.  These stores
 * are not in order with others on x86, so a fence ends the copy: what the thread stores
 * later is behind it, as in an ordinary copy.
 */
static inline void p3_copy_past(char *to, const char *from, uint64_t len)
{
#if defined(__x86_64__) && !defined(P3_TSAN) && !defined(P3_VALGRIND)
	for (; len >= P3_CELL; to += P3_CELL, from += P3_CELL, len -= P3_CELL) {
		const p3_two_anywhere *v = (const p3_two_anywhere *)from;
		p3_two a = v[0], b = v[1], c = v[2], d = v[3];
		__asm__ __volatile__("movntdq %1, (%0)\n\tmovntdq %2, 16(%0)\n\t"
				     "movntdq %3, 32(%0)\n\tmovntdq %4, 48(%0)"
				     :
				     : "r"(to), "x"(a), "x"(b), "x"(c), "x"(d)
				     : "memory");
	}
	__builtin_memcpy(to, from, len);
	__builtin_ia32_sfence();
#else
	__builtin_memcpy(to, from, len);
#endif
}

/* Pause for one turn of a spin loop, so that the core's other hardware thread runs. */
static inline void p3_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ __volatile__("yield");
#endif
}

#endif
