/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of lease.h, one thread at a time. */

#include "shm/lease.h"
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
