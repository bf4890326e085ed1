/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two posters and the firmware at once.  Posters hold up to HELD slots each, together
 * more than exist, so the box runs out now and then.  Every command is executed once,
 * those of one poster in its order, and every result is that of its command.
 */
#include <stdlib.h>
#include <string.h>

#include "shm/mailbox.h"
#include "unit/torture.h"
#include "support/cases.h"

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

static struct p3_mailbox box;

static int32_t result_of(const struct command *c)
{
	return (int32_t)mix(c->number << 1 ^ c->poster);
}

static bool post(struct poster *p, uint32_t i)
{
	struct spin spin = {0, 0};
	while (!(p->slot[i] = p3_mbx_alloc(&box))) {
		if (i) /* give back the slots: no poster waits while it holds any */
			return false;
		if (!SIDE_CHECK(&p->verdict, spin_on(&spin), p->posted))
			return false;
	}
	p->cmd[i] = (struct command){p->index, p->posted, mix(p->posted)};
	p3_mbx_post(&box, p->slot[i], &p->cmd[i], sizeof p->cmd[i]);
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
		while (n < burst && post(p, n))
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
