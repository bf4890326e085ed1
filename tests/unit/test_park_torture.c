/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two sides throw a number to and fro and sleep in between, by the rule of PARK.1, with
 * full fences, and with light and heavy ones.  Each sleep would last longer than the
 * test: the safety timeout must not hide a lost wake.
 */
#include <string.h>

#include "shm/atomics.h"
#include "shm/park.h"
#include "unit/pair.h"
#include "unit/torture.h"
#include "support/cases.h"

#define MASK     2u
#define TOO_LONG 15000000000u /* ns */
#define LAST     UINT64_MAX

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
		woken = p3_futex_wait(s->asleep, 1, TOO_LONG, MASK, s->shared);
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
	do {
		dawdle(&seed);
		say(s, heard + 1);
		uint64_t now = hear(s, heard, &seed);
		if (!SIDE_CHECK(&s->verdict, now == heard + 1, heard))
			break;
		heard = now;
		s->rounds++;
	} while (p3_now_ns() < s->until);
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
	assert_int_not_equal(s[0].sleeps + s[1].sleeps, 0);
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
