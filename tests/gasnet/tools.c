/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements of gasnet_tools.h. */
#include "gn.h"

#include <gasnet_tools.h>

#include <signal.h>

const struct gn_program gn_program = {.segment = 0};

/* ---- macros that must compile at file level ---- */

GASNETT_BEGIN_EXTERNC
GASNETT_END_EXTERNC
GASNETT_IDENT(gn_tools_ident, "$GnTools: text $");
GASNETT_THREADKEY_DECLARE(gn_key);
GASNETT_THREADKEY_DEFINE(gn_key);

GASNETT_INLINE(twice)
int twice(int x)
{
	return 2 * x;
}

/* A declaration, and the head of a definition. */
GASNETT_FORMAT_PRINTF(formatted, 1, 2, static void formatted(const char *format, ...));
GASNETT_FORMAT_PRINTF(formatted, 1, 2, static void formatted(const char *format, ...))
{
	CHECK(format);
}

GASNETT_NORETURN static void never(void);
GASNETT_NORETURNP(never)
static void never(void)
{
	_Exit(88);
}

#if GASNETT_PAGESIZE != GASNET_PAGESIZE || 1 << GASNETT_PAGESHIFT != GASNETT_PAGESIZE
#error the page sizes differ
#endif
#if !GASNETT_HAVE_ATOMIC_CAS || !GASNETT_HAVE_ATOMIC_ADD_SUB
#error there are no atomic operations
#endif

/* ---- atomics ---- */

/* The same calls for each type. */
#define ATOMIC_CHECKS(kind, type, value)                                                 \
	static void check_##kind(void)                                                   \
	{                                                                                \
		static type x = gasnett_##kind##_init(3);                                \
		gasnett_##kind##_set(&x, 5, 0);                                          \
		CHECK_EQ(gasnett_##kind##_read(&x, GASNETT_ATOMIC_ACQ), 5);              \
		gasnett_##kind##_increment(&x, GASNETT_ATOMIC_REL);                      \
		gasnett_##kind##_decrement(&x, GASNETT_ATOMIC_NONE);                     \
		CHECK_EQ(gasnett_##kind##_add(&x, 10, 0), 15);                           \
		CHECK_EQ(gasnett_##kind##_subtract(&x, 13, 0), 2);                       \
		CHECK(!gasnett_##kind##_decrement_and_test(&x, 0));                      \
		CHECK(gasnett_##kind##_decrement_and_test(&x, GASNETT_ATOMIC_MB_POST));  \
		CHECK(!gasnett_##kind##_compare_and_swap(&x, 1, 9, 0));                  \
		CHECK(gasnett_##kind##_compare_and_swap(                                 \
			&x, 0, 9, GASNETT_ATOMIC_ACQ_IF_TRUE));                          \
		CHECK_EQ(gasnett_##kind##_swap(&x, 11, GASNETT_ATOMIC_MB_PRE), 9);       \
		CHECK_EQ(gasnett_##kind##_read(&x, 0), 11);                              \
	}
ATOMIC_CHECKS(atomic, gasnett_atomic_t, gasnett_atomic_val_t)
ATOMIC_CHECKS(atomic32, gasnett_atomic32_t, uint32_t)
ATOMIC_CHECKS(atomic64, gasnett_atomic64_t, uint64_t)
ATOMIC_CHECKS(strongatomic, gasnett_strongatomic_t, gasnett_atomic_val_t)
ATOMIC_CHECKS(strongatomic32, gasnett_strongatomic32_t, uint32_t)
ATOMIC_CHECKS(strongatomic64, gasnett_strongatomic64_t, uint64_t)

static void check_sizes(void)
{
	CHECK_EQ(sizeof(gasnett_atomic32_t), 4);
	CHECK_EQ(sizeof(gasnett_atomic64_t), 8);
	CHECK_EQ(_Alignof(gasnett_atomic32_t), 4);
	CHECK_EQ(_Alignof(gasnett_atomic64_t), 8);
	CHECK(GASNETT_ATOMIC_MAX >= (1 << 24) - 1);
	CHECK(GASNETT_ATOMIC_SIGNED_MIN < 0 && GASNETT_ATOMIC_SIGNED_MAX > 0);
	CHECK(gasnett_atomic_signed((gasnett_atomic_val_t)-1) == -1);
}

/* All flags are accepted. */
static void check_flags(void)
{
	static gasnett_atomic_t x = gasnett_atomic_init(0);
	const int flags[] = {GASNETT_ATOMIC_RMB_PRE, GASNETT_ATOMIC_WMB_PRE,
		GASNETT_ATOMIC_MB_PRE, GASNETT_ATOMIC_RMB_POST, GASNETT_ATOMIC_WMB_POST,
		GASNETT_ATOMIC_MB_POST, GASNETT_ATOMIC_RMB_POST_IF_TRUE,
		GASNETT_ATOMIC_RMB_POST_IF_FALSE, GASNETT_ATOMIC_REL, GASNETT_ATOMIC_ACQ,
		GASNETT_ATOMIC_ACQ_IF_TRUE, GASNETT_ATOMIC_ACQ_IF_FALSE};
	for (unsigned i = 0; i < sizeof flags / sizeof flags[0]; i++)
		CHECK_EQ(gasnett_atomic_add(&x, 1, flags[i]), i + 1);
}

enum { THREADS = 4, ADDITIONS = 50000 };
static gasnett_strongatomic_t sum = gasnett_strongatomic_init(0);
static gasnett_strongatomic32_t sum32 = gasnett_strongatomic32_init(0);
static gasnett_strongatomic64_t sum64 = gasnett_strongatomic64_init(0);

static void add(unsigned nth)
{
	(void)nth;
	for (int i = 0; i < ADDITIONS; i++) {
		gasnett_strongatomic_increment(&sum, 0);
		(void)gasnett_strongatomic32_add(&sum32, 3, 0);
		(void)gasnett_strongatomic64_subtract(&sum64, 1, 0);
	}
}

static void check_sums(void)
{
	gasnett_strongatomic_set(&sum, 0, 0);
	gasnett_strongatomic32_set(&sum32, 0, 0);
	gasnett_strongatomic64_set(&sum64, THREADS * ADDITIONS, 0);
	for (unsigned i = 0; i < THREADS; i++)
		gn_thread(add, i);
	gn_join();
	CHECK_EQ(gasnett_strongatomic_read(&sum, 0), THREADS * ADDITIONS);
	CHECK_EQ(gasnett_strongatomic32_read(&sum32, 0), 3 * THREADS * ADDITIONS);
	CHECK_EQ(gasnett_strongatomic64_read(&sum64, 0), 0);
}

/* ---- the other groups ---- */

static void check_locks(void)
{
	static gasnett_mutex_t fixed = GASNETT_MUTEX_INITIALIZER;
	static gasnett_cond_t cond = GASNETT_COND_INITIALIZER;
	gasnett_mutex_lock(&fixed);
	gasnett_mutex_assertlocked(&fixed);
	gasnett_mutex_unlock(&fixed);
	gasnett_mutex_assertunlocked(&fixed);
	CHECK_EQ(gasnett_mutex_trylock(&fixed), 0);
	gasnett_cond_signal(&cond);
	gasnett_cond_broadcast(&cond);
	gasnett_mutex_unlock(&fixed);
	gasnett_mutex_t dynamic;
	gasnett_mutex_init(&dynamic);
	gasnett_mutex_destroy(&dynamic);
}

static void check_keys(void)
{
	int x = 0;
	gasnett_threadkey_init(gn_key);
	CHECK(gasnett_threadkey_get(gn_key) == NULL);
	gasnett_threadkey_set(gn_key, &x);
	CHECK(gasnett_threadkey_get(gn_key) == &x);
	gasnett_threadkey_set_noinit(gn_key, NULL);
	CHECK(gasnett_threadkey_get_noinit(gn_key) == NULL);
	CHECK(GASNETT_MAX_THREADS >= 1);
}

static void check_environment(void)
{
	gasnett_setenv("GN_TOOLS", "12K");
	CHECK_EQ(gasnett_getenv_int_withdefault("GN_TOOLS", 5, 1), 12 * 1024);
	CHECK_EQ(gasnett_getenv_int_withdefault("GN_NO_TOOLS", 5, 0), 5);
	gasnett_setenv("GN_TOOLS", "yes");
	CHECK(gasnett_getenv_yesno_withdefault("GN_TOOLS", 0));
	CHECK(strcmp(gasnett_getenv("GN_TOOLS"), "yes") == 0);
	gasnett_unsetenv("GN_TOOLS");
	CHECK(!gasnett_getenv_yesno_withdefault("GN_TOOLS", 0));
	CHECK(strcmp(gasnett_getenv_withdefault("GN_TOOLS", "x"), "x") == 0);
	CHECK(gasnett_getenv_dbl_withdefault("GN_TOOLS", 1.5) == 1.5);
	CHECK_EQ(gasnett_parse_int("3M", 1), 3 << 20);
	(void)gasnett_verboseenv();
}

/* A thread is bound to one of the CPUs that it may use. */
/* Each rank has a CPU of those that the process had before a thread was bound. */
static void check_affinity(void)
{
	cpu_set_t all, now;
	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	for (int rank = CPU_COUNT(&all) - 1, i = 0; i < 4; rank = i++) {
		gasnett_set_affinity(rank);
		CHECK_EQ(sched_getaffinity(0, sizeof now, &now), 0);
		CHECK_EQ(CPU_COUNT(&now), 1);
		int below = 0;
		for (size_t cpu = 0; !CPU_ISSET(cpu, &now); cpu++)
			below += CPU_ISSET(cpu, &all);
		CPU_AND(&now, &now, &all);
		CHECK_EQ(CPU_COUNT(&now), 1);
		CHECK_EQ(below, rank % CPU_COUNT(&all));
	}
	CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

static void check_system(void)
{
	CHECK(gasnett_cpu_count() >= 1);
	check_affinity();
	gasnett_sched_yield();
	gasnett_spinloop_hint();
	CHECK(gasnett_gethostname() && *gasnett_gethostname());
	CHECK(gasnett_getPhysMemSz(0) > 0);
	gasnett_flush_streams();
	CHECK_EQ(gasnett_isLittleEndian(), __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
	CHECK(gasnett_performance_warning_str());
	gasnett_sighandlerfn_t old = gasnett_reghandler(SIGUSR2, SIG_IGN);
	(void)gasnett_reghandler(SIGUSR2, old);
	char *pages = gasnett_mmap(GASNETT_PAGESIZE);
	CHECK(pages);
	pages[0] = 1;
	CHECK(gasnett_checksum("ab", 2) != gasnett_checksum("ac", 2));
	char copy[4] = "....";
	CHECK_EQ(gasnett_count0s_copy(copy, "a\0b", 4), 2);
	CHECK(memcmp(copy, "a\0b", 4) == 0 && gasnett_count0s(copy, 3) == 1);
	CHECK(*gasnett_current_loc);
	CHECK(GASNETT_CACHE_LINE_BYTES >= 16);
}

static void check_rest(void)
{
	gasnett_local_wmb();
	gasnett_local_rmb();
	gasnett_local_mb();
	gasnett_weak_wmb();
	gasnett_weak_rmb();
	gasnett_weak_mb();
	gasnett_compiler_fence();
	CHECK_EQ(twice(3), 6);
	formatted("%d", 1);
	GASNETT_TRACE_PRINTF("%d", 1);
	GASNETT_TRACE_SETSOURCELINE(__FILE__, __LINE__);
	CHECK(*GASNETT_TRACE_GETMASK() == 0);
	CHECK(*GASNETT_CONFIG_STRING && *GASNETT_SYSTEM_TUPLE);
	CHECK(GASNETT_CURRENT_FUNCTION[0] == 'c');
	if_pf(gn.size == 0) never();
	if_pt(gasnett_constant_p(1))
		CHECK_EQ(GASNETT_RELEASE_VERSION_MAJOR, GASNET_RELEASE_VERSION_MAJOR);
}

STATEMENT(154, tools)
{
	check_atomic();
	check_atomic32();
	check_atomic64();
	check_strongatomic();
	check_strongatomic32();
	check_strongatomic64();
	check_sizes();
	check_flags();
	check_sums();
	check_locks();
	check_keys();
	check_environment();
	check_system();
	check_rest();
}

/* Return the ticks of a sleep of 0.1 s in ns, and the time by the kernel's clock, which
 * is read outside of the ticks. */
static uint64_t measure_sleep(uint64_t *took)
{
	uint64_t since = now_ns();
	gasnett_tick_t from = gasnett_ticks_now();
	sleep_ms(100); /* pause: the interval to be measured */
	gasnett_tick_t to = gasnett_ticks_now();
	*took = now_ns() - since;
	return (uint64_t)gasnett_ticks_to_ns(to - from);
}

STATEMENT(155, ticks)
{
	gasnett_tick_t last = gasnett_ticks_now();
	for (int i = 0; i < 100000; i++) {
		gasnett_tick_t now = gasnett_ticks_now();
		CHECK(now >= last);
		last = now;
	}
	uint64_t took, ns, best = UINT64_MAX;
	for (int i = 0; i < 10 && best > 1000000; i++) {
		ns = measure_sleep(&took);
		CHECK(ns >= 99000000 && ns <= took + took / 100);
		if (ns < took && took - ns < best)
			best = took - ns;
		if (ns >= took)
			best = 0;
	}
	CHECK(best <= 1000000);
	CHECK(gasnett_tick_granularityus() >= 0);
	CHECK(gasnett_tick_overheadus() >= 0);
}
