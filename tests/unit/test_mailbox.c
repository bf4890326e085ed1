/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of mailbox.h, one thread; test_mailbox_torture.c has more. */
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
	p3_mbx_post(&box, slot, &number, sizeof number);
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
