/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of mailbox.h: one thread, then posters and the firmware at once. */
#include <stdlib.h>
#include <string.h>

#include "shm/mailbox.h"
#include "unit/torture.h"
#include "support/cases.h"

static struct p3_mailbox box;

static int format(void **state)
{
	(void)state;
	memset(&box, 0xff, sizeof box);
	p3_mbx_format(&box);
	return 0;
}

static uint32_t alloc(void)
{
	uint32_t slot = p3_mbx_alloc(&box);
	assert_in_range(slot, 1, P3_MBX_SLOTS);
	return slot;
}

static void post(uint32_t slot, uint64_t number)
{
	p3_mbx_post(&box, slot, &number, sizeof number, false);
}

static uint64_t number_in(uint32_t slot)
{
	uint64_t number;
	memcpy(&number, p3_mbx_cmd(p3_mbx_slot(&box, slot)), sizeof number);
	return number;
}

static uint32_t next_of(uint32_t slot)
{
	return p3_get(&p3_mbx_slot(&box, slot)->next);
}

CASE_IN(mailbox_is_empty_at_first_whatever_the_memory_held, format, NULL)
{
	assert_false(p3_mbx_any(&box));
	assert_int_equal(p3_mbx_take_all(&box), P3_MBX_NONE);
}

CASE_IN(mailbox_has_each_slot_once_then_none, format, NULL)
{
	bool seen[P3_MBX_SLOTS + 1] = {false};
	for (unsigned i = 0; i < P3_MBX_SLOTS; i++) {
		uint32_t slot = alloc();
		assert_false(seen[slot]);
		seen[slot] = true;
		assert_ptr_equal(p3_mbx_slot(&box, slot), &box.slot[slot - 1]);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(p3_mbx_alloc(&box), P3_MBX_NONE);
}

CASE_IN(mailbox_reuses_freed_slots_after_exhaustion, format, NULL)
{
	uint32_t slot[P3_MBX_SLOTS];
	for (unsigned i = 0; i < P3_MBX_SLOTS; i++)
		slot[i] = alloc();
	for (unsigned i = 0; i < P3_MBX_SLOTS; i += 3) {
		p3_mbx_free(&box, slot[i]);
		assert_int_equal(p3_mbx_alloc(&box), slot[i]);
		assert_int_equal(p3_mbx_alloc(&box), P3_MBX_NONE);
	}
	for (unsigned i = 0; i < P3_MBX_SLOTS; i++)
		p3_mbx_free(&box, slot[i]);
	mailbox_has_each_slot_once_then_none(state);
}

/* A swap with a stale view of the list fails, also when the tag wraps. */
CASE_IN(mailbox_free_list_never_looks_the_same_twice, format, NULL)
{
	uint64_t before = p3_get(&box.free);
	assert_true(before >> 32 >= 0xfffffff0);
	for (int i = 0; i < 40; i++) {
		uint32_t slot = alloc();
		p3_mbx_free(&box, slot);
		assert_int_equal((uint32_t)p3_get(&box.free), (uint32_t)before);
		assert_int_not_equal(p3_get(&box.free), before);
		assert_int_equal((uint32_t)(p3_get(&box.free) >> 32),
			(uint32_t)(before >> 32) + 2 * (uint32_t)(i + 1));
	}
}

CASE_IN(mailbox_gives_commands_in_the_order_of_posts, format, NULL)
{
	uint32_t posted[P3_MBX_SLOTS];
	uint64_t seed = 3;
	for (int round = 0; round < 50; round++) {
		unsigned n = 1 + dice(&seed, P3_MBX_SLOTS);
		for (unsigned i = 0; i < n; i++) {
			posted[i] = alloc();
			post(posted[i], i);
			assert_true(p3_mbx_any(&box));
		}
		uint32_t slot = p3_mbx_take_all(&box);
		assert_false(p3_mbx_any(&box));
		for (unsigned i = 0; i < n; i++, slot = next_of(slot)) {
			assert_int_equal(slot, posted[i]);
			assert_int_equal(number_in(slot), i);
		}
		assert_int_equal(slot, P3_MBX_NONE);
		for (unsigned i = 0; i < n; i++)
			p3_mbx_free(&box, posted[i]);
	}
}

CASE_IN(mailbox_keeps_what_comes_after_take_all_for_the_next, format, NULL)
{
	uint32_t a = alloc(), b = alloc(), c = alloc();
	post(a, 1);
	post(b, 2);
	assert_int_equal(p3_mbx_take_all(&box), a);
	post(c, 3);
	assert_int_equal(next_of(a), b);
	assert_int_equal(next_of(b), P3_MBX_NONE);
	assert_int_equal(p3_mbx_take_all(&box), c);
	assert_int_equal(next_of(c), P3_MBX_NONE);
	assert_int_equal(p3_mbx_take_all(&box), P3_MBX_NONE);
}

CASE_IN(mailbox_command_is_done_when_its_result_is_there, format, NULL)
{
	uint32_t slot = alloc();
	struct p3_mbx_slot *s = p3_mbx_slot(&box, slot);
	for (int32_t result = -2; result <= 2; result++) {
		post(slot, 1);
		assert_false(p3_mbx_is_done(s)); /* although its previous use was done */
		assert_int_equal(p3_mbx_take_all(&box), slot);
		assert_false(p3_mbx_is_done(s));
		p3_mbx_done(s, result);
		assert_true(p3_mbx_is_done(s));
		assert_int_equal(s->result, result);
	}
}

/* The links are damaged: numbers out of range, a circle. */
CASE_IN(mailbox_take_all_ends_whatever_the_links_say, format, NULL)
{
	uint32_t a = alloc(), b = alloc();
	post(a, 1);
	post(b, 2);
	p3_set(&p3_mbx_slot(&box, a)->next, b);
	(void)p3_mbx_take_all(&box);
	post(a, 1);
	p3_set(&p3_mbx_slot(&box, a)->next, P3_MBX_SLOTS + 1);
	assert_int_equal(p3_mbx_take_all(&box), a);
	p3_set(&box.head, UINT32_MAX);
	assert_int_equal(p3_mbx_take_all(&box), P3_MBX_NONE);
}

CASE_IN(mailbox_words_of_different_writers_are_on_lines_of_their_own, format, NULL)
{
	assert_int_equal(offsetof(struct p3_mailbox, free), P3_LINE);
	assert_int_equal(offsetof(struct p3_mailbox, slot), 2 * P3_LINE);
	assert_int_equal((uintptr_t)&box % P3_LINE, 0);
}

/* ---- posters and the firmware at once ---- */

/*
 * Two posters and the firmware at once.  Posters hold up to HELD slots each, together
 * more than exist, so the box runs out now and then.  Every command is executed once,
 * those of one poster in its order, and every result is that of its command.
 */
#define POSTERS 2u
#define HELD    150u

struct command {
	uint32_t poster;
	uint64_t number; /* plain: MBX.1 makes it visible */
	uint64_t check;
};

struct poster {
	uint32_t index;
	uint64_t until, posted;
	p3_a32 *running;
	struct command cmd[HELD];
	uint32_t slot[HELD];
	struct verdict verdict;
};

struct firmware {
	p3_a32 *running; /* number of running posters */
	uint64_t executed[POSTERS];
	uint64_t batches;
	struct verdict verdict;
};

static int32_t result_of(const struct command *c)
{
	return (int32_t)mix(c->number << 1 ^ c->poster);
}

static bool post_one(struct poster *p, uint32_t i)
{
	struct spin spin = {0, 0};
	while (!(p->slot[i] = p3_mbx_alloc(&box))) {
		if (i) /* give back the slots: no poster waits while it holds any */
			return false;
		if (!SIDE_CHECK(&p->verdict, spin_on(&spin), p->posted))
			return false;
	}
	p->cmd[i] = (struct command){p->index, p->posted, mix(p->posted)};
	p3_mbx_post(&box, p->slot[i], &p->cmd[i], sizeof p->cmd[i], false);
	p->posted++;
	return true;
}

static bool collect(struct poster *p, uint32_t i)
{
	struct p3_mbx_slot *s = p3_mbx_slot(&box, p->slot[i]);
	struct spin spin = {0, 0};
	while (!p3_mbx_is_done(s))
		if (!SIDE_CHECK(&p->verdict, spin_on(&spin), p->cmd[i].number))
			return false;
	int32_t result = s->result;
	p3_mbx_free(&box, p->slot[i]);
	return SIDE_CHECK(&p->verdict, result == result_of(&p->cmd[i]), p->cmd[i].number);
}

static void *run_poster(void *arg)
{
	struct poster *p = arg;
	uint64_t seed = p->index;
	do {
		uint32_t burst = 1 + dice(&seed, dice(&seed, 4) ? 4 : HELD), n = 0;
		while (n < burst && post_one(p, n))
			n++;
		for (uint32_t i = 0; i < n && !p->verdict.why; i++)
			collect(p, i);
	} while (p3_now_ns() < p->until && !p->verdict.why);
	p3_add32(p->running, UINT32_MAX);
	return NULL;
}

static void execute(struct firmware *f, struct p3_mbx_slot *s)
{
	const struct command *c = p3_mbx_cmd(s);
	if (!SIDE_CHECK(&f->verdict, c->poster < POSTERS, c->poster))
		return;
	uint64_t number = f->executed[c->poster]++;
	SIDE_CHECK(&f->verdict, c->number == number, number);
	SIDE_CHECK(&f->verdict, c->check == mix(number), number);
	p3_mbx_done(s, result_of(c));
}

static void *run_firmware(void *arg)
{
	struct firmware *f = arg;
	while (p3_acquire(f->running) || p3_mbx_any(&box)) {
		uint32_t slot = p3_mbx_take_all(&box);
		f->batches += slot != P3_MBX_NONE;
		while (slot != P3_MBX_NONE) {
			/* Once it is done the slot is its poster's again. */
			struct p3_mbx_slot *s = p3_mbx_slot(&box, slot);
			slot = p3_get(&s->next);
			execute(f, s);
		}
		sched_yield();
	}
	return NULL;
}

static void assert_all_slots_are_free(void)
{
	for (uint32_t i = 0; i < P3_MBX_SLOTS; i++)
		assert_int_not_equal(p3_mbx_alloc(&box), P3_MBX_NONE);
	assert_int_equal(p3_mbx_alloc(&box), P3_MBX_NONE);
}

CASE(mailbox_executes_each_command_once_and_in_order)
{
	static struct poster p[POSTERS];
	p3_a32 running;
	p3_set(&running, POSTERS);
	struct firmware f = {.running = &running};
	p3_mbx_format(&box);
	for (uint32_t i = 0; i < POSTERS; i++)
		p[i] = (struct poster){.index = i,
			.until = p3_now_ns() + torture_ns(2),
			.running = &running};
	run_threads(3, (torture_side *const[]){run_poster, run_poster, run_firmware},
		(void *const[]){&p[0], &p[1], &f});
	assert_side_is_well("firmware", &f.verdict);
	for (uint32_t i = 0; i < POSTERS; i++) {
		assert_side_is_well("poster", &p[i].verdict);
		assert_int_equal(p[i].posted, f.executed[i]);
		assert_int_not_equal(p[i].posted, 0);
	}
	assert_all_slots_are_free();
}

/* The user of each slot: plain words, since a slot has one user at a time. */
static uint32_t user_of[P3_MBX_SLOTS + 1];

static void *run_user(void *arg)
{
	struct poster *p = arg;
	uint64_t seed = p->index;
	do { /* at least once: on a busy machine a thread may begin late */
		uint32_t slot[3], n = 1 + dice(&seed, 3);
		for (uint32_t i = 0; i < n; i++) {
			slot[i] = p3_mbx_alloc(&box);
			if (!SIDE_CHECK(&p->verdict, slot[i] != P3_MBX_NONE, p->posted))
				return NULL;
			SIDE_CHECK(&p->verdict, user_of[slot[i]] == 0, slot[i]);
			user_of[slot[i]] = p->index + 1;
			p->posted++;
		}
		for (uint32_t i = n; i-- > 0;) {
			SIDE_CHECK(
				&p->verdict, user_of[slot[i]] == p->index + 1, slot[i]);
			user_of[slot[i]] = 0;
			p3_mbx_free(&box, slot[i]);
		}
	} while (p3_now_ns() < p->until && !p->verdict.why);
	return NULL;
}

CASE(mailbox_slot_has_one_user_at_a_time)
{
	static struct poster p[3];
	memset(user_of, 0, sizeof user_of);
	p3_mbx_format(&box);
	for (uint32_t i = 0; i < 3; i++)
		p[i] = (struct poster){.index = i, .until = p3_now_ns() + torture_ns(2)};
	run_threads(3, (torture_side *const[]){run_user, run_user, run_user},
		(void *const[]){&p[0], &p[1], &p[2]});
	for (uint32_t i = 0; i < 3; i++) {
		assert_side_is_well("user", &p[i].verdict);
		assert_int_not_equal(p[i].posted, 0);
	}
	assert_all_slots_are_free();
}
