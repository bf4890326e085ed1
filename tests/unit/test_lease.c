/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rules of lease.h, one thread at a time; then the lease, and the lease with the
 * mailbox, of several threads.  Posters follow the rule of lease.h to the letter: a
 * poster tries the lease once and then only waits.  If the fences of LEASE.2 and MBX.4,
 * full ones or a light one and a heavy one, let one command slip through, its poster
 * waits for ever.
 */
#include <string.h>

#include "shm/atomics.h"
#include "shm/lease.h"
#include "shm/mailbox.h"
#include "unit/torture.h"
#include "support/cases.h"

static const enum p3_lease_holder holders[] = {P3_LEASE_HOST, P3_LEASE_NIC};

#define EACH_HOLDER(i)                                                                   \
	unsigned i = 0;                                                                  \
	i < 2;                                                                           \
	i++

CASE(lease_is_free_in_zeroed_memory)
{
	static struct p3_lease l;
	assert_int_equal(p3_lease_held_by(&l), P3_LEASE_FREE);
	assert_int_equal(p3_get(&l.want), 0);
	assert_true(p3_lease_take(&l, P3_LEASE_NIC));
}

CASE(lease_has_one_holder_at_a_time)
{
	struct p3_lease l = {.word = P3_LEASE_FREE};
	for (EACH_HOLDER(i)) {
		assert_true(p3_lease_take(&l, holders[i]));
		for (EACH_HOLDER(j)) {
			assert_false(p3_lease_take(&l, holders[j]));
			assert_int_equal(p3_lease_held_by(&l), holders[i]);
		}
		p3_lease_give(&l);
		assert_int_equal(p3_lease_held_by(&l), P3_LEASE_FREE);
	}
}

CASE(lease_want_is_a_hint_that_neither_side_clears)
{
	struct p3_lease l = {.word = P3_LEASE_FREE};
	assert_true(p3_lease_take(&l, P3_LEASE_NIC));
	p3_set(&l.want, 1);
	assert_false(p3_lease_take(&l, P3_LEASE_HOST));
	assert_int_equal(p3_get(&l.want), 1);
	p3_lease_give(&l);
	assert_int_equal(p3_get(&l.want), 1);
	assert_true(p3_lease_take(&l, P3_LEASE_HOST));
	assert_int_equal(p3_get(&l.want), 1);
	p3_set(&l.want, 0);
	assert_int_equal(p3_lease_held_by(&l), P3_LEASE_HOST);
}

CASE(lease_word_and_want_are_on_lines_of_their_own)
{
	assert_int_equal(offsetof(struct p3_lease, word), 0);
	assert_int_equal(offsetof(struct p3_lease, want), P3_LINE);
	assert_int_equal(sizeof(struct p3_lease), 2 * P3_LINE);
}

/* ---- several threads ---- */

#define SIDES 3u
#define WORDS 32u

/* State that the lease guards: plain words that only its holder touches. */
struct engine {
	uint64_t word[WORDS];
	uint64_t executed[SIDES];
	uint32_t inside;
};

static struct p3_lease lease;
static bool light;
static struct p3_mailbox box;
static struct engine engine;

struct side {
	uint32_t index;
	uint64_t until, count;
	struct verdict verdict;
};

/* Use the state; its words are always count, count + 1, ... */
static void use_engine(struct verdict *v)
{
	uint64_t count = engine.word[0];
	SIDE_CHECK(v, engine.inside++ == 0, count);
	for (uint64_t i = 0; i < WORDS; i++) {
		SIDE_CHECK(v, engine.word[i] == count + i, count);
		engine.word[i] = count + i + 1;
	}
	engine.inside--;
}

static void give(void)
{
	p3_lease_give(&lease);
	p3_fence_light(light); /* LEASE.2 */
}

static void *run_taker(void *arg)
{
	struct side *s = arg;
	enum p3_lease_holder who = s->index ? P3_LEASE_HOST : P3_LEASE_NIC;
	struct spin spin = {0, 0};
	do {
		if (!p3_lease_take(&lease, who)) {
			p3_set(&lease.want, 1);
			if (!SIDE_CHECK(&s->verdict, spin_on(&spin), s->count))
				break;
			continue;
		}
		spin = (struct spin){0, 0};
		use_engine(&s->verdict);
		SIDE_CHECK(&s->verdict, p3_lease_held_by(&lease) == who, s->count);
		bool wanted = p3_get(&lease.want);
		p3_set(&lease.want, 0);
		give();
		s->count++;
		if (wanted)
			sched_yield();
	} while ((p3_now_ns() < s->until || !s->count) && !s->verdict.why);
	return NULL;
}

static void start(struct side s[SIDES], uint64_t ns)
{
	memset(&lease, 0, sizeof lease);
	memset(&engine, 0, sizeof engine);
	for (uint64_t i = 0; i < WORDS; i++)
		engine.word[i] = i;
	p3_mbx_format(&box);
	for (uint32_t i = 0; i < SIDES; i++)
		s[i] = (struct side){.index = i, .until = p3_now_ns() + ns};
}

static uint64_t run(torture_side *side, struct side s[SIDES])
{
	uint64_t count = 0;
	run_threads(SIDES, (torture_side *const[]){side, side, side},
		(void *const[]){&s[0], &s[1], &s[2]});
	for (uint32_t i = 0; i < SIDES; i++) {
		assert_side_is_well("side", &s[i].verdict);
		assert_int_not_equal(s[i].count, 0);
		count += s[i].count;
	}
	return count;
}

CASE(lease_holder_is_alone_with_the_engine)
{
	struct side s[SIDES];
	start(s, torture_ns(3));
	uint64_t count = run(run_taker, s);
	assert_int_equal(count, engine.word[0]);
	assert_int_equal(p3_lease_held_by(&lease), P3_LEASE_FREE);
}

struct command {
	uint32_t poster;
	uint64_t number;
};

static void execute_all(struct verdict *v)
{
	uint32_t slot = p3_mbx_take_all(&box);
	while (slot != P3_MBX_NONE) {
		struct p3_mbx_slot *m = p3_mbx_slot(&box, slot);
		const struct command *c = p3_mbx_cmd(m);
		slot = p3_get(&m->next);
		SIDE_CHECK(v, engine.executed[c->poster]++ == c->number, c->number);
		use_engine(v);
		p3_mbx_done(m, (int32_t)c->number);
	}
}

/* Wait a random moment, so that the moments of two sides meet in all ways. */
static void dawdle(uint64_t *seed)
{
	for (uint32_t turns = dice(seed, 16); turns; turns--)
		p3_relax();
}

/* Look after leaving: a command that came before FREE was stored is the leaver's. */
static void run_engine_if_free(struct verdict *v, uint64_t *seed)
{
	while (p3_lease_take(&lease, P3_LEASE_HOST)) {
		execute_all(v);
		dawdle(seed);
		give();
		if (!p3_mbx_any(&box))
			return;
	}
}

static bool post_and_wait(struct side *s, uint32_t slot, uint64_t *seed)
{
	struct p3_mbx_slot *m = p3_mbx_slot(&box, slot);
	struct command c = {s->index, s->count};
	struct spin spin = {0, 0};
	dawdle(seed);
	p3_mbx_post(&box, slot, &c, sizeof c, false);
	if (light)
		p3_fence_heavy_here(); /* MBX.4 */
	else
		p3_fence();
	run_engine_if_free(&s->verdict, seed);
	while (!p3_mbx_is_done(m))
		if (!SIDE_CHECK(&s->verdict, spin_on(&spin), s->count))
			return false;
	return SIDE_CHECK(&s->verdict, m->result == (int32_t)s->count, s->count);
}

static void *run_caller(void *arg)
{
	struct side *s = arg;
	uint32_t slot = p3_mbx_alloc(&box);
	uint64_t seed = s->index;
	do {
		if (!post_and_wait(s, slot, &seed))
			break;
		s->count++;
	} while (p3_now_ns() < s->until);
	p3_mbx_free(&box, slot);
	return NULL;
}

static void lease_leaves_no_command_behind(bool light_ones)
{
	light = light_ones;
	struct side s[SIDES];
	start(s, torture_ns(3));
	uint64_t count = run(run_caller, s);
	assert_int_equal(count, engine.word[0]);
	assert_false(p3_mbx_any(&box));
	for (uint32_t i = 0; i < SIDES; i++)
		assert_int_equal(engine.executed[i], s[i].count);
}

/* The poster's number of the round that the holder shall take part in. */
static p3_a32 round_of;

#define OVER UINT32_MAX

static bool wait_for_round(struct side *s, uint32_t old)
{
	struct spin spin = {0, 0};
	while (old != OVER && p3_acquire(&round_of) == old)
		if (!SIDE_CHECK(&s->verdict, spin_on(&spin), old))
			return false;
	return p3_acquire(&round_of) != OVER;
}

/* Take the lease once a round, and give it up while the poster posts a command. */
static void *run_holder(void *arg)
{
	struct side *s = arg;
	uint64_t seed = 3;
	for (uint32_t old = 0; wait_for_round(s, old); old = p3_acquire(&round_of)) {
		if (!p3_lease_take(&lease, P3_LEASE_NIC))
			continue;
		dawdle(&seed);
		give(); /* before the look at the mailbox: LEASE.2 */
		if (!p3_mbx_any(&box))
			continue;
		s->count++;
		run_engine_if_free(&s->verdict, &seed);
	}
	return NULL;
}

static void *run_poster(void *arg)
{
	struct side *s = arg;
	uint32_t slot = p3_mbx_alloc(&box);
	uint64_t seed = s->index;
	do {
		p3_release(&round_of, 1 + (uint32_t)s->count % 1000);
		for (int looks = 0; looks < 20 && !p3_lease_held_by(&lease); looks++)
			p3_relax();
		if (!post_and_wait(s, slot, &seed))
			break;
		s->count++;
	} while (p3_now_ns() < s->until);
	p3_mbx_free(&box, slot);
	p3_release(&round_of, OVER);
	return NULL;
}

static void lease_leaves_no_command_that_comes_as_its_holder_leaves(bool light_ones)
{
	light = light_ones;
	struct side s[SIDES];
	start(s, torture_ns(3));
	p3_set(&round_of, 0);
	run_threads(2, (torture_side *const[]){run_poster, run_holder},
		(void *const[]){&s[0], &s[1]});
	assert_side_is_well("poster", &s[0].verdict);
	assert_side_is_well("holder", &s[1].verdict);
	assert_int_equal(s[0].count, engine.executed[0]);
	assert_int_not_equal(s[0].count, 0);
}

CASE(lease_leaves_no_command)
{
	lease_leaves_no_command_behind(false);
	lease_leaves_no_command_that_comes_as_its_holder_leaves(false);
}

CASE(lease_leaves_no_command_with_light_fences)
{
	assert_true(p3_fence_join());
	lease_leaves_no_command_behind(true);
	lease_leaves_no_command_that_comes_as_its_holder_leaves(true);
}
