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

#define GASNETT_SPEC_VERSION_MAJOR    1
#define GASNETT_SPEC_VERSION_MINOR    9
#define GASNETT_RELEASE_VERSION_MAJOR GASNETI_RELEASE_MAJOR
#define GASNETT_RELEASE_VERSION_MINOR GASNETI_RELEASE_MINOR
#define GASNETT_RELEASE_VERSION_PATCH GASNETI_RELEASE_PATCH
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

#define GASNETT_INLINE(fn)       inline __attribute__((always_inline))
#define GASNETT_NORETURN         __attribute__((noreturn))
#define GASNETT_NORETURNP(fn)    /* the attribute of the declaration is enough */
#define GASNETT_MALLOC           __attribute__((malloc))
#define GASNETT_PURE             __attribute__((pure))
#define GASNETT_CONST            __attribute__((const))
#define GASNETT_HOT              __attribute__((hot))
#define GASNETT_COLD             __attribute__((cold))
#define GASNETT_USED             __attribute__((used))
#define GASNETT_UNUSED           __attribute__((unused))
#define GASNETT_RESTRICT         __restrict__
#define GASNETT_CURRENT_FUNCTION __func__
#define GASNETT_FORMAT_PRINTF(fn, text, first, decl)                                     \
	decl __attribute__((format(printf, text, first)))
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

typedef uint64_t gasnett_tick_t; /* nanoseconds of the monotonic clock */
#define GASNETT_TICK_MIN           ((gasnett_tick_t)0)
#define GASNETT_TICK_MAX           ((gasnett_tick_t)UINT64_MAX)
#define gasnett_ticks_to_ns(t)     ((uint64_t)(t))
#define gasnett_ticks_to_us(t)     ((uint64_t)(t) / 1000)
#define gasnett_tick_granularity() gasnett_tick_granularityus()
#define gasnett_tick_overhead()    gasnett_tick_overheadus()
/* Return the time now. */
gasnett_tick_t gasnett_ticks_now(void);
/* Return the least difference of two ticks, and the cost of a call: microseconds. */
double gasnett_tick_granularityus(void);
double gasnett_tick_overheadus(void);
/* Return the time of day, microseconds since 1970. */
uint64_t gasnett_gettimeofday_us(void);

/* ---- fences ---- */

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

/*
 * ---- atomics ----
 *
 * All operations are sequentially consistent, so the flags, which ask for less, have no
 * effect.  _add and _subtract return the new value, _swap the old one;
 * _decrement_and_test is true when the value becomes 0.
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
#define gasnett_atomic_init(v)                                                           \
	{                                                                                \
		(uint64_t)(v)                                                            \
	}
#define gasnett_atomic32_init(v)                                                         \
	{                                                                                \
		(uint32_t)(v)                                                            \
	}
#define gasnett_atomic64_init(v)                                                         \
	{                                                                                \
		(uint64_t)(v)                                                            \
	}
#define gasnett_strongatomic_init(v)                                                     \
	{                                                                                \
		(uint64_t)(v)                                                            \
	}
#define gasnett_strongatomic32_init(v)                                                   \
	{                                                                                \
		(uint32_t)(v)                                                            \
	}
#define gasnett_strongatomic64_init(v)                                                   \
	{                                                                                \
		(uint64_t)(v)                                                            \
	}
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

/* ---- locks: of pthreads; without effect in programs with one thread ---- */

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

/*
 * ---- environment ----
 *
 * The _withdefault forms return the default for a variable that is not set, and end the
 * process with a message for one that makes no sense.  mem_size_multiplier: bytes of a
 * number without a suffix, which may be K, M, G or T; 0: no suffix is legal.
 */
char *gasnett_getenv(const char *name);
char *gasnett_getenv_withdefault(const char *name, const char *by_default);
int gasnett_getenv_yesno_withdefault(const char *name, int by_default);
int64_t gasnett_getenv_int_withdefault(
	const char *name, int64_t by_default, uint64_t mem_size_multiplier);
double gasnett_getenv_dbl_withdefault(const char *name, double by_default);
void gasnett_setenv(const char *name, const char *value);
void gasnett_unsetenv(const char *name);
/* Return whether GASNET_VERBOSEENV asks for the settings. */
int gasnett_verboseenv(void);
/* Write a number, with a suffix if is_mem_size, to buf; return buf. */
char *gasnett_format_number(int64_t value, char *buf, size_t bufsz, int is_mem_size);
int64_t gasnett_parse_int(const char *text, uint64_t mem_size_multiplier);

/* ---- system ---- */

#define GASNETT_PAGESIZE         4096
#define GASNETT_PAGESHIFT        12
#define GASNETT_CACHE_LINE_BYTES 64
#define gasnett_isLittleEndian() (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define gasnett_sched_yield()    ((void)sched_yield())
typedef void (*gasnett_sighandlerfn_t)(int);
/* Return the number of CPUs that this process may use. */
int gasnett_cpu_count(void);
/* Bind the calling thread to the CPU with this number, modulo the number of CPUs. */
void gasnett_set_affinity(int rank);
const char *gasnett_gethostname(void);
/* Return the bytes of memory of the host; 0 if unknown, or a fatal error if fail. */
uint64_t gasnett_getPhysMemSz(int fail);
void gasnett_flush_streams(void);
void gasnett_close_streams(void);
/* Print a message to stderr and abort. */
GASNETT_FORMAT_PRINTF(
	gasnett_fatalerror, 1, 2, void gasnett_fatalerror(const char *format, ...))
GASNETT_NORETURN;
/* End this process at once. */
void gasnett_killmyprocess(int exitcode) GASNETT_NORETURN;
/* Install a handler of a signal; return the old one. */
gasnett_sighandlerfn_t gasnett_reghandler(int signal, gasnett_sighandlerfn_t handler);
/* Return zeroed pages, or end the process. */
void *gasnett_mmap(uintptr_t nbytes);
/* Return a checksum of nbytes, which is the same on all hosts. */
uint64_t gasnett_checksum(const void *start, uintptr_t nbytes);
/* Count the zero bytes. */
size_t gasnett_count0s(const void *start, size_t nbytes);
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
/* Return a warning about slow settings, or an empty string. */
const char *gasnett_performance_warning_str(void);

/* A way to print the stack of the calling thread. */
typedef struct {
	const char *name;
	int (*fn)(int fd); /* returns 0 on success */
	int threadsupport;
} gasnett_backtrace_type_t;
extern gasnett_backtrace_type_t gasnett_backtrace_user;
void gasnett_backtrace_init(const char *exename);
int gasnett_print_backtrace(int fd);
/* The same if GASNET_BACKTRACE is set; return 1 if not. */
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
