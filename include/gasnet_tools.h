/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet_tools.h - portable tools for programs with GASNet, and for others: time, fences,
 * atomics, locks, environment, compiler
 *
 * With gasnet.h: include that file first.  Without it: link with libgasnet_tools-seq or
 * -par; GASNETT_THREAD_SAFE, or GASNETT_THREAD_SINGLE for a program with one thread, says
 * which.  Functions may be called by any thread at any time, before gasnet_init, too, and
 * do not block, unless their comment says otherwise.
 */
#ifndef _INCLUDED_GASNET_TOOLS_H
#define _INCLUDED_GASNET_TOOLS_H

#include <gasnet_basic.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/types.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- identity ---- */

#define GASNETT_SPEC_VERSION_MAJOR    GASNETI_TOOLS_SPEC_VERSION_MAJOR
#define GASNETT_SPEC_VERSION_MINOR    GASNETI_TOOLS_SPEC_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_MAJOR GASNET_RELEASE_VERSION_MAJOR
#define GASNETT_RELEASE_VERSION_MINOR GASNET_RELEASE_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_PATCH GASNET_RELEASE_VERSION_PATCH
#define GASNETT_SYSTEM_TUPLE          "x86_64-unknown-linux-gnu"
#define GASNETT_TIMER_CONFIG          timers_os
#define GASNETT_CONFIG_STRING                                                            \
	"RELEASE=" GASNETI_RELEASE_STR ",SPEC=1.9,PTR=64bit,timers_os,membars_native,"   \
	"atomics_native,atomic32_native,atomic64_native"

#if defined(GASNET_SEQ) || defined(GASNETT_THREAD_SINGLE)
#define GASNETT_THREAD_SAFE 0
#else
#undef GASNETT_THREAD_SAFE
#define GASNETT_THREAD_SAFE 1
#endif
#define GASNETT_MAX_THREADS GASNETI_MAX_THREADS

/* ---- compiler ---- */

#define GASNETT_INLINE(fn)       inline __attribute__((__always_inline__))
#define GASNETT_NORETURN         __attribute__((__noreturn__))
#define GASNETT_NORETURNP(fn)    /* the attribute of the declaration is enough */
#define GASNETT_MALLOC           __attribute__((__malloc__))
#define GASNETT_PURE             __attribute__((__pure__))
#define GASNETT_CONST            __attribute__((__const__))
#define GASNETT_HOT              __attribute__((__hot__))
#define GASNETT_COLD             __attribute__((__cold__))
#define GASNETT_USED             __attribute__((__used__))
#define GASNETT_UNUSED           __attribute__((__unused__))
#define GASNETT_RESTRICT         __restrict__
#define GASNETT_CURRENT_FUNCTION __func__
#define GASNETT_FORMAT_PRINTF(fn, text, first, decl)                                     \
	__attribute__((__format__(__printf__, text, first))) decl
#define GASNETT_IDENT(name, text) static char const name[] GASNETT_USED = text
#define gasnett_constant_p(x)     __builtin_constant_p(x)
#define gasnett_current_loc       (__FILE__ ":" _STRINGIFY(__LINE__))
#ifdef __cplusplus
#define GASNETT_BEGIN_EXTERNC extern "C" {
#define GASNETT_END_EXTERNC   }
#define GASNETT_EXTERNC       extern "C"
#else
#define GASNETT_BEGIN_EXTERNC
#define GASNETT_END_EXTERNC
#define GASNETT_EXTERNC extern
#endif

/* ---- time ---- */

/*
 * gasnett_ticks_now, gasnett_ticks_to_ns, gasnett_ticks_to_us,
 * gasnett_tick_granularityus, gasnett_tick_overheadus, gasnett_tick_granularity,
 * gasnett_tick_overhead, gasnett_gettimeofday_us - measure time
 *
 *	uint64_t gasnett_ticks_to_ns(gasnett_tick_t t)
 *	uint64_t gasnett_ticks_to_us(gasnett_tick_t t)
 *	double gasnett_tick_granularity(void)
 *	double gasnett_tick_overhead(void)
 *
 *	t		in	a time, or the difference of two
 *
 * gasnett_ticks_now returns the time of a monotonic clock, in ticks of a nanosecond; the
 * next two convert ticks.  gasnett_tick_granularityus returns the least difference of two
 * times, and gasnett_tick_overheadus the cost of gasnett_ticks_now, in microseconds, and
 * the names without "us" are the same.  gasnett_gettimeofday_us returns the microseconds
 * since the beginning of 1970.
 *
 * Any thread, any context, before gasnet_init, too; do not block.
 */
typedef uint64_t gasnett_tick_t; /* nanoseconds of the monotonic clock */
#define GASNETT_TICK_MIN           ((gasnett_tick_t)0)
#define GASNETT_TICK_MAX           ((gasnett_tick_t)UINT64_MAX)
#define gasnett_ticks_to_ns(t)     ((uint64_t)(t))
#define gasnett_ticks_to_us(t)     ((uint64_t)(t) / 1000)
#define gasnett_tick_granularity() gasnett_tick_granularityus()
#define gasnett_tick_overhead()    gasnett_tick_overheadus()
gasnett_tick_t gasnett_ticks_now(void);
double gasnett_tick_granularityus(void);
double gasnett_tick_overheadus(void);
uint64_t gasnett_gettimeofday_us(void);

/* ---- fences ---- */

/*
 * gasnett_local_wmb, gasnett_local_rmb, gasnett_local_mb, gasnett_weak_wmb,
 * gasnett_weak_rmb, gasnett_weak_mb, gasnett_compiler_fence, gasnett_spinloop_hint,
 * gasnett_spin_until - order loads and stores of a thread
 *
 *	void gasnett_local_wmb(void)
 *	void gasnett_local_rmb(void)
 *	void gasnett_local_mb(void)
 *	void gasnett_weak_wmb(void)
 *	void gasnett_weak_rmb(void)
 *	void gasnett_weak_mb(void)
 *	void gasnett_compiler_fence(void)
 *	void gasnett_spinloop_hint(void)
 *	gasnett_spin_until(cond)
 *
 *	cond		in	expression that another thread makes true
 *
 * Fences between the memory accesses before and behind them: wmb of stores (release), rmb
 * of loads (acquire), mb of both.  The weak ones do nothing in programs with one thread.
 * gasnett_spin_until is a statement that waits for cond, which it evaluates once or more,
 * and then a read fence; it serves no network.
 *
 * Any thread, any context, before gasnet_init, too; gasnett_spin_until blocks.
 */
#define gasnett_compiler_fence() __asm__ __volatile__("" ::: "memory")
#define gasnett_local_wmb()      __atomic_thread_fence(__ATOMIC_RELEASE)
#define gasnett_local_rmb()      __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define gasnett_local_mb()       __atomic_thread_fence(__ATOMIC_SEQ_CST)
#if GASNETT_THREAD_SAFE
#define gasnett_weak_wmb() gasnett_local_wmb()
#define gasnett_weak_rmb() gasnett_local_rmb()
#define gasnett_weak_mb()  gasnett_local_mb()
#else
#define gasnett_weak_wmb() ((void)0)
#define gasnett_weak_rmb() ((void)0)
#define gasnett_weak_mb()  ((void)0)
#endif
#define gasnett_spinloop_hint() gasnett_compiler_fence()
#define gasnett_spin_until(cond)                                                         \
	do {                                                                             \
		while (!(cond))                                                          \
			sched_yield();                                                   \
		gasnett_local_rmb();                                                     \
	} while (0)

/* ---- atomics ---- */

/*
 * gasnett_atomic_read, gasnett_atomic_set, gasnett_atomic_add, gasnett_atomic_subtract,
 * gasnett_atomic_increment, gasnett_atomic_decrement, gasnett_atomic_decrement_and_test,
 * gasnett_atomic_compare_and_swap, gasnett_atomic_swap, gasnett_atomic_init,
 * gasnett_atomic_signed - change words that threads share
 *
 *	uint64_t gasnett_atomic_read(gasnett_atomic_t *p, int flags)
 *	void gasnett_atomic_set(gasnett_atomic_t *p, uint64_t v, int flags)
 *	uint64_t gasnett_atomic_add(gasnett_atomic_t *p, uint64_t v, int flags)
 *	uint64_t gasnett_atomic_subtract(gasnett_atomic_t *p, uint64_t v, int flags)
 *	void gasnett_atomic_increment(gasnett_atomic_t *p, int flags)
 *	void gasnett_atomic_decrement(gasnett_atomic_t *p, int flags)
 *	int gasnett_atomic_decrement_and_test(gasnett_atomic_t *p, int flags)
 *	int gasnett_atomic_compare_and_swap(gasnett_atomic_t *p, uint64_t before,
 *		uint64_t after, int flags)
 *	uint64_t gasnett_atomic_swap(gasnett_atomic_t *p, uint64_t v, int flags)
 *	gasnett_atomic_init(v)
 *	int64_t gasnett_atomic_signed(uint64_t v)
 *
 *	p		in	the word
 *	v, before, after	in	values
 *	flags		in	GASNETT_ATOMIC_*, or-ed: without effect, since all
 *				operations are sequentially consistent
 *
 * gasnett_atomic_add and gasnett_atomic_subtract return the new value,
 * gasnett_atomic_swap the old one.  gasnett_atomic_decrement_and_test returns 1 if the
 * value becomes 0.  gasnett_atomic_compare_and_swap stores after and returns 1 if the
 * word is before, and else returns 0.  gasnett_atomic_init is the initialiser of a
 * variable.
 *
 * With atomic32, atomic64, strongatomic, strongatomic32 and strongatomic64 in place of
 * atomic in all names there are words of 32 bits, and of 64; strong ones are atomic in
 * programs with one thread, too, as all are here.
 *
 * Any thread, any context, before gasnet_init, too; do not block.
 */
#define GASNETT_ATOMIC_NONE               0
#define GASNETT_ATOMIC_RMB_PRE            1
#define GASNETT_ATOMIC_WMB_PRE            2
#define GASNETT_ATOMIC_MB_PRE             3
#define GASNETT_ATOMIC_RMB_POST           4
#define GASNETT_ATOMIC_WMB_POST           8
#define GASNETT_ATOMIC_MB_POST            12
#define GASNETT_ATOMIC_RMB_POST_IF_TRUE   16
#define GASNETT_ATOMIC_RMB_POST_IF_FALSE  32
#define GASNETT_ATOMIC_REL                GASNETT_ATOMIC_WMB_PRE
#define GASNETT_ATOMIC_ACQ                GASNETT_ATOMIC_RMB_POST
#define GASNETT_ATOMIC_ACQ_IF_TRUE        GASNETT_ATOMIC_RMB_POST_IF_TRUE
#define GASNETT_ATOMIC_ACQ_IF_FALSE       GASNETT_ATOMIC_RMB_POST_IF_FALSE
#define GASNETT_HAVE_ATOMIC_CAS           1
#define GASNETT_HAVE_ATOMIC_ADD_SUB       1
#define GASNETT_HAVE_STRONGATOMIC_CAS     1
#define GASNETT_HAVE_STRONGATOMIC_ADD_SUB 1

/* The names of one atomic type: prefix, and the unsigned type of its value. */
#define GASNETI_ATOMIC(name, value_t)                                                    \
	typedef struct {                                                                 \
		volatile value_t gasneti_word;                                           \
	} gasnett_##name##_t;                                                            \
	static inline GASNETT_UNUSED value_t gasnett_##name##_read(                      \
		gasnett_##name##_t *p, int f)                                            \
	{                                                                                \
		(void)f;                                                                 \
		return __atomic_load_n(&p->gasneti_word, __ATOMIC_SEQ_CST);              \
	}                                                                                \
	static inline GASNETT_UNUSED void gasnett_##name##_set(                          \
		gasnett_##name##_t *p, value_t v, int f)                                 \
	{                                                                                \
		(void)f;                                                                 \
		__atomic_store_n(&p->gasneti_word, v, __ATOMIC_SEQ_CST);                 \
	}                                                                                \
	static inline GASNETT_UNUSED value_t gasnett_##name##_add(                       \
		gasnett_##name##_t *p, value_t v, int f)                                 \
	{                                                                                \
		(void)f;                                                                 \
		return __atomic_add_fetch(&p->gasneti_word, v, __ATOMIC_SEQ_CST);        \
	}                                                                                \
	static inline GASNETT_UNUSED value_t gasnett_##name##_subtract(                  \
		gasnett_##name##_t *p, value_t v, int f)                                 \
	{                                                                                \
		(void)f;                                                                 \
		return __atomic_sub_fetch(&p->gasneti_word, v, __ATOMIC_SEQ_CST);        \
	}                                                                                \
	static inline GASNETT_UNUSED void gasnett_##name##_increment(                    \
		gasnett_##name##_t *p, int f)                                            \
	{                                                                                \
		(void)gasnett_##name##_add(p, 1, f);                                     \
	}                                                                                \
	static inline GASNETT_UNUSED void gasnett_##name##_decrement(                    \
		gasnett_##name##_t *p, int f)                                            \
	{                                                                                \
		(void)gasnett_##name##_subtract(p, 1, f);                                \
	}                                                                                \
	static inline GASNETT_UNUSED int gasnett_##name##_decrement_and_test(            \
		gasnett_##name##_t *p, int f)                                            \
	{                                                                                \
		return gasnett_##name##_subtract(p, 1, f) == 0;                          \
	}                                                                                \
	static inline GASNETT_UNUSED int gasnett_##name##_compare_and_swap(              \
		gasnett_##name##_t *p, value_t before, value_t after, int f)             \
	{                                                                                \
		(void)f;                                                                 \
		return __atomic_compare_exchange_n(&p->gasneti_word, &before, after, 0,  \
			__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                             \
	}                                                                                \
	static inline GASNETT_UNUSED value_t gasnett_##name##_swap(                      \
		gasnett_##name##_t *p, value_t v, int f)                                 \
	{                                                                                \
		(void)f;                                                                 \
		return __atomic_exchange_n(&p->gasneti_word, v, __ATOMIC_SEQ_CST);       \
	}
GASNETI_ATOMIC(atomic, uint64_t)
GASNETI_ATOMIC(atomic32, uint32_t)
GASNETI_ATOMIC(atomic64, uint64_t)
GASNETI_ATOMIC(strongatomic, uint64_t)
GASNETI_ATOMIC(strongatomic32, uint32_t)
GASNETI_ATOMIC(strongatomic64, uint64_t)
#define gasneti_atomic_init(value_t, v)                                                  \
	{                                                                                \
		(value_t)(v)                                                             \
	}
#define gasnett_atomic_init(v)         gasneti_atomic_init(uint64_t, v)
#define gasnett_atomic32_init(v)       gasneti_atomic_init(uint32_t, v)
#define gasnett_atomic64_init(v)       gasneti_atomic_init(uint64_t, v)
#define gasnett_strongatomic_init(v)   gasneti_atomic_init(uint64_t, v)
#define gasnett_strongatomic32_init(v) gasneti_atomic_init(uint32_t, v)
#define gasnett_strongatomic64_init(v) gasneti_atomic_init(uint64_t, v)
typedef uint64_t gasnett_atomic_val_t;
typedef int64_t gasnett_atomic_sval_t;
typedef uint64_t gasnett_strongatomic_val_t;
typedef int64_t gasnett_strongatomic_sval_t;
#define gasnett_atomic_signed(v)        ((gasnett_atomic_sval_t)(v))
#define gasnett_strongatomic_signed(v)  ((gasnett_atomic_sval_t)(v))
#define GASNETT_ATOMIC_MAX              UINT64_MAX
#define GASNETT_ATOMIC_SIGNED_MIN       INT64_MIN
#define GASNETT_ATOMIC_SIGNED_MAX       INT64_MAX
#define GASNETT_STRONGATOMIC_MAX        UINT64_MAX
#define GASNETT_STRONGATOMIC_SIGNED_MIN INT64_MIN
#define GASNETT_STRONGATOMIC_SIGNED_MAX INT64_MAX

/* ---- locks ---- */

/*
 * gasnett_mutex_init, gasnett_mutex_destroy, gasnett_mutex_destroy_ignoreerr,
 * gasnett_mutex_lock, gasnett_mutex_trylock, gasnett_mutex_unlock, gasnett_cond_init,
 * gasnett_cond_destroy, gasnett_cond_wait, gasnett_cond_signal, gasnett_cond_broadcast,
 * gasnett_rwlock_init, gasnett_rwlock_destroy, gasnett_rwlock_rdlock,
 * gasnett_rwlock_wrlock, gasnett_rwlock_tryrdlock, gasnett_rwlock_trywrlock,
 * gasnett_rwlock_unlock - locks between threads
 *
 *	void gasnett_mutex_init(gasnett_mutex_t *p)
 *	void gasnett_mutex_destroy(gasnett_mutex_t *p)
 *	void gasnett_mutex_lock(gasnett_mutex_t *p)
 *	int gasnett_mutex_trylock(gasnett_mutex_t *p)
 *	void gasnett_mutex_unlock(gasnett_mutex_t *p)
 *	void gasnett_cond_init(gasnett_cond_t *p)
 *	void gasnett_cond_destroy(gasnett_cond_t *p)
 *	void gasnett_cond_wait(gasnett_cond_t *p, gasnett_mutex_t *m)
 *	void gasnett_cond_signal(gasnett_cond_t *p)
 *	void gasnett_cond_broadcast(gasnett_cond_t *p)
 *	void gasnett_rwlock_init(gasnett_rwlock_t *p)
 *	void gasnett_rwlock_destroy(gasnett_rwlock_t *p)
 *	void gasnett_rwlock_rdlock(gasnett_rwlock_t *p)
 *	void gasnett_rwlock_wrlock(gasnett_rwlock_t *p)
 *	int gasnett_rwlock_tryrdlock(gasnett_rwlock_t *p)
 *	int gasnett_rwlock_trywrlock(gasnett_rwlock_t *p)
 *	void gasnett_rwlock_unlock(gasnett_rwlock_t *p)
 *
 *	p		in	a mutex, condition or lock of pthreads, which
 *				GASNETT_MUTEX_INITIALIZER and so on initialise, too
 *	m		in	mutex that the caller holds
 *
 * Macros for the functions of pthreads; without effect in programs with one thread.  The
 * try forms return 0 if they have locked, and EBUSY if another thread has.  Handlers use
 * gasnet_hsl_lock instead.
 *
 * Any thread, before gasnet_init, too.  The lock forms and gasnett_cond_wait block, and
 * serve no network.
 */
typedef pthread_mutex_t gasnett_mutex_t;
typedef pthread_cond_t gasnett_cond_t;
#ifdef PTHREAD_RWLOCK_INITIALIZER /* not in strict C99 */
typedef pthread_rwlock_t gasnett_rwlock_t;
#endif
#define GASNETT_MUTEX_INITIALIZER  PTHREAD_MUTEX_INITIALIZER
#define GASNETT_COND_INITIALIZER   PTHREAD_COND_INITIALIZER
#define GASNETT_RWLOCK_INITIALIZER PTHREAD_RWLOCK_INITIALIZER
#if GASNETT_THREAD_SAFE
#define gasneti_threaded(call) ((void)(call))
#define gasneti_trying(call)   (call)
#else
#define gasneti_threaded(call) ((void)0)
#define gasneti_trying(call)   (0)
#endif
#define gasneti_use(p, call)               ((void)(p), gasneti_threaded(call))
#define gasnett_mutex_init(p)              ((void)pthread_mutex_init(p, NULL))
#define gasnett_mutex_destroy(p)           ((void)pthread_mutex_destroy(p))
#define gasnett_mutex_destroy_ignoreerr(p) ((void)pthread_mutex_destroy(p))
#define gasnett_mutex_lock(p)              gasneti_threaded(pthread_mutex_lock(p))
#define gasnett_mutex_trylock(p)           gasneti_trying(pthread_mutex_trylock(p))
#define gasnett_mutex_unlock(p)            gasneti_threaded(pthread_mutex_unlock(p))
#define gasnett_mutex_assertlocked(p)      ((void)(p))
#define gasnett_mutex_assertunlocked(p)    ((void)(p))
#define gasnett_cond_init(p)               ((void)pthread_cond_init(p, NULL))
#define gasnett_cond_destroy(p)            ((void)pthread_cond_destroy(p))
#define gasnett_cond_wait(p, m)            gasneti_threaded(pthread_cond_wait(p, m))
#define gasnett_cond_signal(p)             gasneti_use(p, pthread_cond_signal(p))
#define gasnett_cond_broadcast(p)          gasneti_use(p, pthread_cond_broadcast(p))
#define gasnett_rwlock_init(p)             ((void)pthread_rwlock_init(p, NULL))
#define gasnett_rwlock_destroy(p)          ((void)pthread_rwlock_destroy(p))
#define gasnett_rwlock_rdlock(p)           gasneti_threaded(pthread_rwlock_rdlock(p))
#define gasnett_rwlock_wrlock(p)           gasneti_threaded(pthread_rwlock_wrlock(p))
#define gasnett_rwlock_tryrdlock(p)        gasneti_trying(pthread_rwlock_tryrdlock(p))
#define gasnett_rwlock_trywrlock(p)        gasneti_trying(pthread_rwlock_trywrlock(p))
#define gasnett_rwlock_unlock(p)           gasneti_threaded(pthread_rwlock_unlock(p))
#define gasnett_rwlock_assertlocked(p)     ((void)(p))
#define gasnett_rwlock_assertrdlocked(p)   ((void)(p))
#define gasnett_rwlock_assertwrlocked(p)   ((void)(p))
#define gasnett_rwlock_assertunlocked(p)   ((void)(p))

/* ---- one pointer for each thread ---- */

/*
 * GASNETT_THREADKEY_DECLARE, GASNETT_THREADKEY_DEFINE, gasnett_threadkey_init,
 * gasnett_threadkey_get, gasnett_threadkey_set, gasnett_threadkey_get_noinit,
 * gasnett_threadkey_set_noinit - one pointer for each thread
 *
 *	GASNETT_THREADKEY_DECLARE(key)
 *	GASNETT_THREADKEY_DEFINE(key)
 *	void gasnett_threadkey_init(key)
 *	void *gasnett_threadkey_get(key)
 *	void gasnett_threadkey_set(key, void *v)
 *
 *	key		in	name of the variable
 *	v		in	pointer for the calling thread; NULL before the first call
 *
 * The variable is declared and defined at file scope.  The init call, and the difference
 * of the _noinit forms, is for other implementations.
 *
 * Any thread, any context, before gasnet_init, too; do not block.
 */
#if GASNETT_THREAD_SAFE
#define GASNETI_THREADKEY_STORAGE __thread
#else
#define GASNETI_THREADKEY_STORAGE
#endif
#define GASNETT_THREADKEY_DECLARE(key)       extern GASNETI_THREADKEY_STORAGE void *key
#define GASNETT_THREADKEY_DEFINE(key)        GASNETI_THREADKEY_STORAGE void *key = NULL
#define gasnett_threadkey_init(key)          ((void)0)
#define gasnett_threadkey_get(key)           (key)
#define gasnett_threadkey_set(key, v)        ((void)((key) = (v)))
#define gasnett_threadkey_get_noinit(key)    (key)
#define gasnett_threadkey_set_noinit(key, v) ((void)((key) = (v)))

/* ---- environment ---- */

/*
 * gasnett_getenv, gasnett_getenv_withdefault, gasnett_getenv_yesno_withdefault,
 * gasnett_getenv_int_withdefault, gasnett_getenv_dbl_withdefault, gasnett_setenv,
 * gasnett_unsetenv, gasnett_verboseenv - read and change the environment
 *
 *	name		in	name of a variable
 *	by_default	in	result for a variable that is not set
 *	mem_size_multiplier	in	bytes of a number without a suffix, which may be
 *				K, M, G or T; 0: no suffix is legal
 *	value		in	new value of this process
 *
 * The first two return a string of the environment, or by_default, which may be NULL; the
 * next ones return a truth value (from yes, true, 1, no, false, 0), an integer, a real
 * number.  They end the process with a message if the variable's value is none.
 * gasnett_verboseenv returns whether GASNET_VERBOSEENV asks for a print of settings.
 *
 * Any thread, before gasnet_init, too, but not at the same time as a change of the
 * environment; do not block.
 */
char *gasnett_getenv(const char *name);
char *gasnett_getenv_withdefault(const char *name, const char *by_default);
int gasnett_getenv_yesno_withdefault(const char *name, int by_default);
int64_t gasnett_getenv_int_withdefault(
	const char *name, int64_t by_default, uint64_t mem_size_multiplier);
double gasnett_getenv_dbl_withdefault(const char *name, double by_default);
void gasnett_setenv(const char *name, const char *value);
void gasnett_unsetenv(const char *name);
int gasnett_verboseenv(void);

/*
 * gasnett_format_number, gasnett_parse_int - convert numbers with suffixes
 *
 *	value		in	a number
 *	buf		out	its digits, and a suffix if is_mem_size is not 0
 *	bufsz		in	bytes of buf
 *	text		in	digits, perhaps with a suffix K, M, G or T
 *	mem_size_multiplier	in	as for gasnett_getenv_int_withdefault
 *
 * gasnett_format_number returns buf.  gasnett_parse_int returns the number.
 *
 * Any thread, before gasnet_init, too; do not block.
 */
char *gasnett_format_number(int64_t value, char *buf, size_t bufsz, int is_mem_size);
int64_t gasnett_parse_int(const char *text, uint64_t mem_size_multiplier);

/* ---- system ---- */

#define GASNETT_PAGESIZE         4096
#define GASNETT_PAGESHIFT        12
#define GASNETT_CACHE_LINE_BYTES 64

/*
 * gasnett_cpu_count, gasnett_set_affinity, gasnett_gethostname, gasnett_getPhysMemSz,
 * gasnett_isLittleEndian, gasnett_sched_yield - ask about the host, and use its CPUs
 *
 *	int gasnett_isLittleEndian(void)
 *	void gasnett_sched_yield(void)
 *
 *	rank		in	number of a CPU, taken modulo the number of CPUs
 *	fail		in	not 0: it is fatal if the size is unknown; 0: return 0
 *
 * gasnett_cpu_count returns the number of CPUs that this process may use.
 * gasnett_set_affinity binds the calling thread to one of them.  gasnett_gethostname
 * returns the host's name, in memory of the library, and gasnett_getPhysMemSz the bytes
 * of its memory.
 *
 * Any thread, before gasnet_init, too; do not block.
 */
#define gasnett_isLittleEndian() (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define gasnett_sched_yield()    ((void)sched_yield())
int gasnett_cpu_count(void);
void gasnett_set_affinity(int rank);
const char *gasnett_gethostname(void);
uint64_t gasnett_getPhysMemSz(int fail);

/*
 * gasnett_flush_streams, gasnett_close_streams, gasnett_fatalerror,
 * gasnett_killmyprocess - end this process
 *
 *	void gasnett_fatalerror(const char *format, ...)
 *
 *	format		in	message, as for printf
 *	exitcode	in	status of this process
 *
 * gasnett_flush_streams writes all buffered output; gasnett_close_streams also closes
 * stdin, stdout and stderr.  gasnett_fatalerror prints the message to stderr and aborts,
 * and gasnett_killmyprocess ends the process at once: neither returns.  A job is ended
 * with gasnet_exit.
 *
 * Any thread, before gasnet_init, too; do not block.
 */
void gasnett_flush_streams(void);
void gasnett_close_streams(void);
GASNETT_FORMAT_PRINTF(
	gasnett_fatalerror, 1, 2, void gasnett_fatalerror(const char *format, ...))
GASNETT_NORETURN;
void gasnett_killmyprocess(int exitcode) GASNETT_NORETURN;

/*
 * gasnett_reghandler - set the handler of a signal
 *
 *	signal		in	number of the signal
 *	handler		in	function, SIG_DFL or SIG_IGN
 *
 * Returns the handler before, or SIG_ERR.
 *
 * Any thread, before gasnet_init, too; does not block.
 */
typedef void (*gasnett_sighandlerfn_t)(int);
gasnett_sighandlerfn_t gasnett_reghandler(int signal, gasnett_sighandlerfn_t handler);

/*
 * gasnett_mmap, gasnett_checksum, gasnett_count0s, gasnett_count0s_copy,
 * gasnett_count0s_uint32_t, gasnett_count0s_uint64_t, gasnett_count0s_uintptr_t - get
 * memory, and look at it
 *
 *	int gasnett_count0s_uint32_t(uint32_t x)
 *	int gasnett_count0s_uint64_t(uint64_t x)
 *	int gasnett_count0s_uintptr_t(uintptr_t x)
 *
 *	start, src	in	first byte
 *	dst		out	a copy of the bytes, which does not overlap with them
 *	nbytes		in	length
 *	x		in	a number
 *
 * gasnett_mmap returns zeroed pages, which munmap frees; no memory is fatal.
 * gasnett_checksum returns a sum of the bytes that is the same on all hosts.  The other
 * ones return the number of zero bytes; gasnett_count0s_copy copies the bytes, too.
 *
 * Any thread, any context, before gasnet_init, too; do not block.
 */
void *gasnett_mmap(uintptr_t nbytes);
uint64_t gasnett_checksum(const void *start, uintptr_t nbytes);
size_t gasnett_count0s(const void *start, size_t nbytes);
size_t gasnett_count0s_copy(void *dst, const void *src, size_t nbytes);
#define gasnett_count0s_uint32_t(x)  gasneti_count0s_of((uint64_t)(x), 4)
#define gasnett_count0s_uint64_t(x)  gasneti_count0s_of((uint64_t)(x), 8)
#define gasnett_count0s_uintptr_t(x) gasneti_count0s_of((uint64_t)(x), sizeof(uintptr_t))
static inline int gasneti_count0s_of(uint64_t x, size_t nbytes)
{
	int zeros = 0;
	for (size_t i = 0; i < nbytes; i++, x >>= 8)
		zeros += (x & 255) == 0;
	return zeros;
}

/* A way to print the stack of the calling thread. */
typedef struct {
	const char *name;
	int (*fn)(int fd); /* returns 0 on success */
	int threadsupport;
} gasnett_backtrace_type_t;
extern gasnett_backtrace_type_t gasnett_backtrace_user;

/*
 * gasnett_backtrace_init, gasnett_print_backtrace, gasnett_print_backtrace_ifenabled,
 * gasnett_performance_warning_str - help to find errors
 *
 *	exename		in	name of the program; without effect here
 *	fd		in	descriptor to which the text goes
 *
 * gasnett_print_backtrace prints the stack of the calling thread, by the function in
 * gasnett_backtrace_user if there is one, and returns 0.
 * gasnett_print_backtrace_ifenabled does so if GASNET_BACKTRACE is set, and returns 1 if
 * not.  gasnett_performance_warning_str returns a constant text about slow settings of
 * the library, perhaps empty.
 *
 * Any thread, before gasnet_init, too; do not block.
 */
const char *gasnett_performance_warning_str(void);
void gasnett_backtrace_init(const char *exename);
int gasnett_print_backtrace(int fd);
int gasnett_print_backtrace_ifenabled(int fd);

#define gasnett_freezeForDebuggerNow(flag, name) ((void)(flag), (void)(name))
#define gasnett_freezeForDebuggerErr()           ((void)0)

/* ---- tracing, statistics and debugging of malloc: not in this implementation ---- */

#define GASNETT_TRACE_ENABLED                   0
#define GASNETT_STATS_ENABLED                   0
#define GASNETT_TRACE_PRINTF(...)               ((void)0)
#define GASNETT_TRACE_PRINTF_FORCE(...)         ((void)0)
#define GASNETT_TRACE_SETSOURCELINE(file, line) ((void)0)
#define GASNETT_TRACE_GETSOURCELINE(file, line) ((void)0)
#define GASNETT_TRACE_FREEZESOURCELINE()        ((void)0)
#define GASNETT_TRACE_UNFREEZESOURCELINE()      ((void)0)
#define GASNETT_TRACE_GETMASK()                 ""
#define GASNETT_TRACE_SETMASK(mask)             ((void)0)
#define GASNETT_TRACE_GET_TRACELOCAL()          0
#define GASNETT_TRACE_SET_TRACELOCAL(v)         ((void)0)
#define GASNETT_STATS_GETMASK()                 ""
#define GASNETT_STATS_SETMASK(mask)             ((void)0)
#define GASNETT_STATS_INIT(callback)            ((void)0)
#define GASNETT_DEBUGMALLOC_ENABLED             0
#define gasnett_debug_malloc(n)                 malloc(n)
#define gasnett_debug_calloc(n, size)           calloc(n, size)
#define gasnett_debug_realloc(p, n)             realloc(p, n)
#define gasnett_debug_free(p)                   free(p)
#define gasnett_debug_strdup(s)                 strdup(s)

#ifdef __cplusplus
}
#endif

#endif /* _INCLUDED_GASNET_TOOLS_H */
