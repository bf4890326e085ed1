/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping, waking, and the phases of a wait.  Upper limits of times are generous. */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shm/atomics.h"
#include "shm/cpuset.h"
#include "shm/park.h"
#include "support/asleep.h"
#include "unit/torture.h"
#include "support/cases.h"

#define MS   1000000u
#define SOON (20u * MS)
#define LATE (600000u * (uint64_t)MS) /* longer than any wait of a test that passes */

/* Statuses of a child that counts CPUs. */
#define ALL_CPUS 100
#define CANNOT   101

CASE(park_clock_is_monotonic_and_in_nanoseconds)
{
	uint64_t before = p3_now_ns(), last = before;
	/* pause: the clock must advance by this much */
	usleep(20000);
	for (int i = 0; i < 1000; i++) {
		uint64_t now = p3_now_ns();
		assert_true(now >= last);
		last = now;
	}
	assert_in_range(last - before, 20 * MS, LATE);
}

CASE(park_wait_returns_at_once_when_the_word_differs)
{
	p3_a32 word;
	uint64_t before = p3_now_ns();
	p3_set(&word, 5);
	for (int shared = 0; shared <= 1; shared++)
		assert_true(p3_futex_wait(&word, 4, LATE, ~0u, shared));
	assert_in_range(p3_now_ns() - before, 0, LATE / 2);
}

CASE(park_wait_ends_after_its_time_and_keeps_errno)
{
	p3_a32 word;
	p3_set(&word, 5);
	for (int shared = 0; shared <= 1; shared++) {
		for (uint64_t ns = 0; ns <= SOON; ns += SOON / 2) {
			uint64_t before = p3_now_ns();
			errno = EILSEQ;
			assert_false(p3_futex_wait(&word, 5, ns, ~0u, shared));
			assert_int_equal(errno, EILSEQ);
			assert_in_range(p3_now_ns() - before, ns, LATE);
		}
	}
}

CASE(park_waits_do_not_end_early)
{
	p3_a32 word;
	p3_set(&word, 5);
	/* else the kernel ends each wait 50 us later */
	assert_int_equal(prctl(PR_SET_TIMERSLACK, 1), 0);
	for (unsigned i = 0; i < 200; i++) {
		uint64_t before = p3_now_ns(), ns = SOON / 100;
		assert_false(p3_futex_wait(&word, 5, ns, ~0u, false));
		assert_in_range(p3_now_ns() - before, ns, LATE);
	}
	assert_int_equal(prctl(PR_SET_TIMERSLACK, 0), 0);
}

/* A thread that sleeps once. */
struct sleeper {
	p3_a32 word, awake;
	uint32_t mask;
	bool shared;
	uint64_t ns;
	bool woken;
	pthread_t thread;
};

static void *sleep_once(void *arg)
{
	struct sleeper *s = arg;
	s->woken = p3_futex_wait(&s->word, 0, s->ns, s->mask, s->shared);
	p3_release(&s->awake, 1);
	return NULL;
}

static void sleeper_start(struct sleeper *s, uint32_t mask, bool shared, uint64_t ns)
{
	*s = (struct sleeper){.mask = mask, .shared = shared, .ns = ns};
	assert_int_equal(pthread_create(&s->thread, NULL, sleep_once, s), 0);
}

/* Wake with mask again and again until the thread is awake: it may not sleep yet. */
static void sleeper_wake(struct sleeper *s, uint32_t mask)
{
	uint64_t end = p3_now_ns() + LATE;
	while (!p3_acquire(&s->awake) && p3_now_ns() < end) {
		p3_futex_wake(&s->word, mask, s->shared);
		usleep(1000);
	}
}

static void sleeper_join(struct sleeper *s)
{
	assert_int_equal(pthread_join(s->thread, NULL), 0);
}

CASE(park_wake_wakes_those_whose_mask_it_meets)
{
	static const uint32_t masks[][2] = {{1, 1}, {2, 3}, {~0u, 4}, {6, ~0u}};
	for (int shared = 0; shared <= 1; shared++) {
		for (unsigned i = 0; i < 4; i++) {
			struct sleeper s;
			sleeper_start(&s, masks[i][0], shared, 2 * LATE);
			sleeper_wake(&s, masks[i][1]);
			sleeper_join(&s);
			assert_true(s.woken);
		}
	}
}

CASE(park_wake_with_another_mask_wakes_nobody)
{
	for (int shared = 0; shared <= 1; shared++) {
		struct sleeper s;
		sleeper_start(&s, 1, shared, 5 * SOON);
		sleeper_wake(&s, 2);
		sleeper_join(&s);
		assert_false(s.woken);
	}
}

CASE(park_wake_keeps_errno_when_it_fails)
{
	p3_a32 word;
	p3_set(&word, 0);
	errno = EILSEQ;
	p3_futex_wake(&word, 0, true); /* without any mask: EINVAL */
	assert_int_equal(errno, EILSEQ);
}

/* All threads sleep on one word: one wake is enough. */
static p3_a32 common;

static void *sleep_on_common(void *arg)
{
	p3_a32 *asleep = arg;
	p3_add32(asleep, 1);
	bool woken = p3_futex_wait(&common, 0, 2 * LATE, ~0u, false);
	return woken ? arg : NULL;
}

CASE(park_one_wake_is_enough_for_all)
{
	pthread_t thread[3];
	p3_a32 asleep;
	p3_set(&asleep, 0);
	p3_set(&common, 0);
	for (int i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, sleep_on_common, &asleep);
	while (p3_acquire(&asleep) < 3)
		usleep(1000);
	p3_release(&common, 1); /* threads that are not in the kernel yet see this */
	p3_futex_wake(&common, ~0u, false);
	for (int i = 0; i < 3; i++) {
		void *woken;
		pthread_join(thread[i], &woken);
		assert_non_null(woken);
	}
}

static int sleep_in_child(void *arg)
{
	p3_a32 *word = arg;
	p3_release(&word[1], 1);
	return p3_futex_wait(&word[0], 0, 2 * LATE, 2, true) ? 0 : 1;
}

CASE(park_shared_word_wakes_another_process)
{
	p3_a32 *word = mmap(
		NULL, P3_LINE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(word, MAP_FAILED);
	pid_t pid = run_child(sleep_in_child, word);
	while (!p3_acquire(&word[1]))
		usleep(1000);
	assert_true(await_thread_state(pid, 'S'));
	p3_release(&word[0], 1);
	p3_futex_wake(&word[0], 2, true);
	assert_int_equal(wait_child(pid), 0);
	munmap(word, P3_LINE);
}

static void on_signal(int signal)
{
	(void)signal;
}

CASE(park_wait_counts_as_woken_after_a_signal)
{
	struct sigaction act = {.sa_handler = on_signal}, before;
	struct sleeper s;
	sigaction(SIGUSR1, &act, &before);
	sleeper_start(&s, ~0u, false, 2 * LATE);
	uint64_t end = p3_now_ns() + LATE;
	while (!p3_acquire(&s.awake) && p3_now_ns() < end) {
		pthread_kill(s.thread, SIGUSR1);
		usleep(1000);
	}
	sleeper_join(&s);
	assert_true(s.woken);
	sigaction(SIGUSR1, &before, NULL);
}

CASE(park_waiter_parks_at_once_without_spin_and_yield)
{
	struct p3_waiter w = {0};
	const struct p3_idle_policy p = {0, 0};
	for (int i = 0; i < 3; i++)
		assert_int_equal(p3_waiter_turn(&w, &p), P3_IDLE_PARK);
}

CASE(park_waiter_does_not_spin_when_told_so)
{
	struct p3_waiter w = {0};
	const struct p3_idle_policy p = {0, SOON};
	uint64_t before = p3_now_ns();
	enum p3_idle idle = p3_waiter_turn(&w, &p);
	assert_int_equal(idle, P3_IDLE_YIELD);
	while ((idle = p3_waiter_turn(&w, &p)) == P3_IDLE_YIELD)
		assert_in_range(p3_now_ns() - before, 0, LATE);
	assert_int_equal(idle, P3_IDLE_PARK);
	assert_true(p3_now_ns() - before >= SOON);
}

/* The clock is read in every 64th turn only; after spinning, in every turn. */
CASE(park_waiter_spins_then_yields_then_parks)
{
	struct p3_waiter w = {0};
	const struct p3_idle_policy p = {SOON / 2, SOON};
	enum p3_idle idle, phase = P3_IDLE_SPIN;
	uint64_t before = p3_now_ns(), yields_at = 0;
	for (unsigned turn = 1; phase != P3_IDLE_PARK; turn++) {
		idle = p3_waiter_turn(&w, &p);
		assert_true(idle >= phase);
		assert_true(idle == phase || phase != P3_IDLE_SPIN || turn % 64 == 0);
		if (idle == P3_IDLE_YIELD && phase == P3_IDLE_SPIN)
			yields_at = p3_now_ns();
		phase = idle;
	}
	if (yields_at)
		assert_true(yields_at - before >= p.spin_ns);
	assert_true(p3_now_ns() - before >= p.spin_ns + p.yield_ns);
	assert_in_range(p3_now_ns() - before, 0, LATE);
	assert_int_equal(p3_waiter_turn(&w, &p), P3_IDLE_PARK);
}

CASE(park_waiter_starts_again_after_news)
{
	struct p3_waiter w = {0};
	const struct p3_idle_policy p = {1, SOON};
	while (p3_waiter_turn(&w, &p) != P3_IDLE_PARK)
		;
	w.alone_since = 1;
	p3_waiter_reset(&w);
	uint64_t before = p3_now_ns();
	assert_int_equal(p3_waiter_turn(&w, &p), P3_IDLE_SPIN);
	assert_int_equal(w.since, 0); /* without a look at the clock */
	while (p3_waiter_turn(&w, &p) != P3_IDLE_PARK)
		;
	assert_true(p3_now_ns() - before >= SOON);
}

CASE(park_waiter_parks_once_yields_returned_at_once_for_long)
{
	const struct p3_idle_policy p = {0, UINT32_MAX};
	uint64_t now = p3_now_ns();
	struct p3_waiter w = {.since = now, .alone_since = now - P3_ALONE_NS};
	assert_int_equal(p3_waiter_turn(&w, &p), P3_IDLE_PARK);
}

/* With real yields a waiter parks, but not before they were short for P3_ALONE_NS. */
CASE(park_waiter_parks_after_real_yields)
{
	const struct p3_idle_policy p = {0, P3_YIELD_NS};
	for (int i = 0; i < 20; i++) {
		struct p3_waiter w = {0};
		uint64_t before = p3_now_ns();
		while (p3_waiter_turn(&w, &p) == P3_IDLE_YIELD) {
			p3_waiter_yield(&w);
			assert_in_range(p3_now_ns() - before, 0, LATE);
		}
		uint64_t took = p3_now_ns() - before;
		assert_true(took >= (w.alone_since ? P3_ALONE_NS : P3_YIELD_NS));
	}
}

/* A turn right after a yield takes its time from there; the turn after that must not. */
CASE(park_waiter_reads_the_clock_in_turns_without_a_yield)
{
	struct p3_waiter w = {0};
	const struct p3_idle_policy p = {0, SOON};
	assert_int_equal(p3_waiter_turn(&w, &p), P3_IDLE_YIELD);
	p3_waiter_yield(&w);
	uint64_t ended = w.now;
	(void)p3_waiter_turn(&w, &p);
	assert_int_equal(w.now, ended);
	/* pause: the next turn must see that this time has passed */
	usleep(1000);
	(void)p3_waiter_turn(&w, &p);
	assert_true(w.now >= ended + 1000000);
}

struct hog {
	p3_a32 stop;
	struct p3_cpuset cpu;
};

static void *run_hog(void *arg)
{
	struct hog *h = arg;
	(void)p3_cpuset_apply(&h->cpu);
	while (!p3_acquire(&h->stop)) {
#ifdef P3_VALGRIND
		sched_yield();
#endif
	}
	return NULL;
}

/* Another thread wants this CPU: yields take long, so the wait is not alone. */
CASE(park_waiter_is_not_alone_when_a_yield_takes_long)
{
	struct p3_cpuset all;
	pthread_t thread;
	struct hog h = {0};
	assert_int_equal(p3_cpuset_read(0, &all), 0);
	h.cpu = p3_cpuset_of((uint32_t)sched_getcpu());
	assert_int_equal(p3_cpuset_apply(&h.cpu), 0);
	assert_int_equal(pthread_create(&thread, NULL, run_hog, &h), 0);
	struct p3_waiter w = {.alone_since = 1};
	const struct p3_idle_policy p = {0, P3_YIELD_NS};
	uint64_t end = p3_now_ns() + LATE;
	while (w.alone_since && p3_now_ns() < end) {
		(void)p3_waiter_turn(&w, &p);
		p3_waiter_yield(&w);
	}
	p3_release(&h.stop, 1);
	pthread_join(thread, NULL);
	assert_int_equal(p3_cpuset_apply(&all), 0);
	assert_int_equal(w.alone_since, 0);
}

CASE(park_usable_cpus_follow_the_affinity)
{
	struct p3_cpuset all, one;
	assert_int_equal(p3_cpuset_read(0, &all), 0);
	assert_in_range(p3_cpus_usable(), 1, p3_cpuset_count(&all));
	one = p3_cpuset_of((uint32_t)sched_getcpu());
	assert_int_equal(p3_cpuset_apply(&one), 0);
	uint32_t cpus = p3_cpus_usable();
	assert_int_equal(p3_cpuset_apply(&all), 0);
	assert_int_equal(cpus, 1);
}

/* The child is in a name space of its own, in which it sees another cgroup. */
static int count_cpus_under_quota(void *arg)
{
	const char *quota = arg;
	struct p3_cpuset all;
	if (unshare(CLONE_NEWNS) || mount("none", "/", "none", MS_REC | MS_PRIVATE, "") ||
		mount("none", "/sys/fs/cgroup", "tmpfs", 0, ""))
		return CANNOT;
	FILE *f = fopen("/sys/fs/cgroup/cpu.max", "we");
	if (!f || fputs(quota, f) < 0 || fclose(f) || p3_cpuset_read(0, &all))
		return CANNOT;
	uint32_t cpus = p3_cpus_usable();
	return cpus == p3_cpuset_count(&all) ? ALL_CPUS : (int)cpus;
}

CASE(park_usable_cpus_follow_the_quota)
{
	static const struct {
		const char *text;
		int cpus;
	} quota[] = {{"max 100000\n", ALL_CPUS}, {"100000000 100000\n", ALL_CPUS},
		{"", ALL_CPUS}, {"50000 100000\n", 1}, {"100000 100000\n", 1},
		{"199999 100000\n", 1}};
	struct p3_cpuset all;
	assert_int_equal(p3_cpuset_read(0, &all), 0);
	for (size_t i = 0; i < sizeof quota / sizeof quota[0]; i++) {
		char text[40];
		strcpy(text, quota[i].text);
		int cpus = wait_child(run_child(count_cpus_under_quota, text));
		if (cpus == CANNOT) {
			print_message("skipped: no name space of its own\n");
			skip();
		}
		if (p3_cpuset_count(&all) > 1)
			assert_int_equal(cpus, quota[i].cpus);
	}
}

/* ---- two sides at once ---- */

/*
 * Two sides throw a number to and fro and sleep in between, by the rule of PARK.1, with
 * full fences, and with light and heavy ones.  Each sleep would last longer than the
 * test: the safety timeout must not hide a lost wake.
 */
#define MASK 2u
#define LAST UINT64_MAX

/* Where threads take turns on a CPU, a long look is of no use. */
#ifdef P3_VALGRIND
#define PATIENCE_MOST 1u
#else
#define PATIENCE_MOST 2000u
#endif

struct side {
	p3_a64 *said; /* its own number */
	const p3_a64 *heard;
	p3_a32 *asleep; /* its own word */
	p3_a32 *peer_asleep;
	bool shared, first, light;
	uint64_t until, rounds, sleeps;
	uint32_t patience; /* looks for news before it sleeps */
	struct verdict verdict;
};

static void dawdle(uint64_t *seed)
{
	uint32_t turns = dice(seed, 4) ? dice(seed, 30) : dice(seed, 3000);
	while (turns--)
		p3_relax();
}

static void say(struct side *s, uint64_t number)
{
	p3_release(s->said, number);
	p3_fence_light(s->light); /* PARK.1: the number, then a look at the sleeper */
	if (p3_get(s->peer_asleep) && p3_exchange32(s->peer_asleep, 0))
		p3_futex_wake(s->peer_asleep, MASK, s->shared);
}

/* Sleep unless there is news.  Return false if the side was never woken. */
static bool sleep_for_news(struct side *s, uint64_t old)
{
	bool woken = true;
	p3_set(s->asleep, 1);
	if (s->light)
		p3_fence_heavy(); /* PARK.1: asleep, then a last look for news */
	else
		p3_fence();
	if (p3_acquire(s->heard) == old) {
		s->sleeps++;
		woken = p3_futex_wait(s->asleep, 1, LATE, MASK, s->shared);
	}
	p3_set(s->asleep, 0);
	return woken;
}

static bool look_for_news(struct side *s, uint64_t old, uint32_t looks)
{
	while (looks-- && p3_acquire(s->heard) == old)
		p3_relax();
	return p3_acquire(s->heard) != old;
}

/*
 * Look for news before sleeping.  The first side goes to sleep at about the moment when
 * news arrives: it looks less often if news came in time, and a little more often if
 * not.  The second side is prompt, except in some rounds in which it sleeps, too.
 */
static void look_before_sleeping(struct side *s, uint64_t old, uint64_t *seed)
{
	if (!s->first && old % 1024 < 64)
		dawdle(seed);
	else if (!s->first)
		look_for_news(s, old, PATIENCE_MOST);
	else if (look_for_news(s, old, s->patience))
		s->patience -= s->patience / 8 + (s->patience > 0);
	else
		s->patience += s->patience < PATIENCE_MOST;
}

static uint64_t hear(struct side *s, uint64_t old, uint64_t *seed)
{
	look_before_sleeping(s, old, seed);
	while (p3_acquire(s->heard) == old)
		if (!SIDE_CHECK(&s->verdict, sleep_for_news(s, old), old))
			return LAST;
	return p3_acquire(s->heard);
}

/* The first side says 1, 2, ... and hears each number back. */
static void *run_first(void *arg)
{
	struct side *s = arg;
	s->first = true;
	uint64_t seed = 1, heard = 0;
	struct patience p = patience_begin();
	do {
		dawdle(&seed);
		say(s, heard + 1);
		uint64_t now = hear(s, heard, &seed);
		if (!SIDE_CHECK(&s->verdict, now == heard + 1, heard))
			break;
		heard = now;
		s->rounds++;
	} while (p3_now_ns() < s->until || (!s->sleeps && !patience_is_over(&p)));
	say(s, LAST);
	return NULL;
}

static void *run_second(void *arg)
{
	struct side *s = arg;
	uint64_t seed = 2, heard = 0;
	for (;;) {
		uint64_t now = hear(s, heard, &seed);
		if (now == LAST)
			break;
		if (!SIDE_CHECK(&s->verdict, now == heard + 1, heard))
			break;
		heard = now;
		s->rounds++;
		dawdle(&seed);
		say(s, now);
	}
	return NULL;
}

static void throw_between_threads(bool light)
{
	static struct {
		_Alignas(P3_LINE) p3_a64 said;
		_Alignas(P3_LINE) p3_a32 asleep;
	} at[2];
	struct side s[2];
	memset(at, 0, sizeof at);
	for (int i = 0; i < 2; i++)
		s[i] = (struct side){.said = &at[i].said,
			.heard = &at[1 - i].said,
			.asleep = &at[i].asleep,
			.peer_asleep = &at[1 - i].asleep,
			.light = light,
			.until = p3_now_ns() + torture_ns(1)};
	run_threads(2, (torture_side *const[]){run_first, run_second},
		(void *const[]){&s[0], &s[1]});
	assert_side_is_well("first", &s[0].verdict);
	assert_side_is_well("second", &s[1].verdict);
	assert_int_equal(s[0].rounds, s[1].rounds);
	assert_int_not_equal(s[0].rounds, 0);
	assert_int_not_equal(s[0].sleeps, 0);
}

CASE(park_loses_no_wake_between_threads)
{
	throw_between_threads(false);
}

CASE(park_with_light_fences_loses_no_wake_between_threads)
{
	assert_true(p3_fence_join());
	throw_between_threads(true);
}

static struct side side_of(struct pair *half)
{
	const bool *light = half->arg;
	struct p3_doorbell *bell = half->bell.base, *peer_bell = half->peer_bell;
	return (struct side){.said = half->own.base,
		.heard = half->peer,
		.asleep = &bell->asleep,
		.peer_asleep = &peer_bell->asleep,
		.shared = true,
		.light = *light && p3_fence_join(),
		.until = p3_now_ns() + torture_ns(1)};
}

static int second_process(struct pair *half)
{
	struct side s = side_of(half);
	if (SIDE_CHECK(&s.verdict, pair_meet(half), 0))
		run_second(&s);
	return side_status("second", &s.verdict);
}

static void throw_between_processes(bool light)
{
	struct pair half;
	pid_t pid = pair_start(&half, 0, second_process, &light);
	struct side s = side_of(&half);
	assert_int_equal(s.light, light);
	assert_true(pair_meet(&half));
	run_first(&s);
	assert_side_is_well("first", &s.verdict);
	assert_int_equal(wait_child(pid), 0);
	assert_int_not_equal(s.rounds, 0);
	assert_int_not_equal(s.sleeps, 0);
	pair_end(&half);
}

CASE(park_loses_no_wake_between_processes)
{
	throw_between_processes(false);
}

CASE(park_with_light_fences_loses_no_wake_between_processes)
{
	throw_between_processes(true);
}
