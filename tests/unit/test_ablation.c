/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each part that PTL3_ABLATE lists is really left out, and is there otherwise.  This
 * program is compiled with P3_ABLATION, so that lane.h and index.c ask for the parts.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nic/match/match.h"
#include "shm/lane.h"
#include "support/cases.h"

enum { CELLS = 64, ENTRIES = 300 };

struct rig {
	struct p3_cell cells[CELLS];
	p3_a64 credit;
	struct p3_ring_tx tx;
	struct p3_ring_rx rx;
};

static void rig_init(struct rig *r, uint32_t parts)
{
	assert_true(p3_ablate(parts));
	memset(r, 0, sizeof *r);
	p3_ring_rx_init(&r->rx, r->cells, CELLS, &r->credit, p3_word0(1, 0, 1));
	p3_ring_tx_init(&r->tx, r->cells, CELLS, &r->credit);
}

static void send(struct rig *r)
{
	assert_true(p3_ring_room(&r->tx, 1));
	(void)p3_ring_begin(&r->tx, 1);
	p3_ring_publish(&r->tx, p3_word0(1, 0, 1), 1);
}

static void take(struct rig *r)
{
	uint64_t w0;
	assert_non_null(p3_ring_peek(&r->rx, &w0));
	p3_ring_take(&r->rx, 1);
}

/* With its copy the producer does not look at a credit that makes no sense. */
CASE(producer_keeps_a_copy_of_the_credit)
{
	static struct rig r;
	for (int without = 0; without < 2; without++) {
		rig_init(&r, without ? 1u << P3_SHADOWS : 0);
		send(&r);
		p3_ring_open(&r.tx);
		assert_true(p3_ring_runs(&r.tx, 1));
		p3_set(&r.credit, p3_get(&r.credit) - CELLS);
		assert_int_equal(p3_ring_runs(&r.tx, 1), !without);
		assert_int_equal(p3_ring_room(&r.tx, 1), !without);
	}
}

CASE(consumer_writes_the_credit_once_for_many)
{
	static struct rig r;
	for (int without = 0; without < 2; without++) {
		unsigned written = 0;
		rig_init(&r, without ? 1u << P3_CREDITS : 0);
		for (unsigned i = 0; i < 3 * CELLS; i++) {
			uint64_t before = p3_get(&r.credit);
			send(&r);
			take(&r);
			written += p3_get(&r.credit) != before;
		}
		assert_int_equal(written, without ? 3 * CELLS : 3 * 8);
	}
}

static void *zeroed(size_t n, size_t size)
{
	size_t len = p3_round_up(n * size, P3_LINE);
	void *at = aligned_alloc(P3_LINE, len);
	assert_non_null(at);
	return memset(at, 0, len);
}

CASE(long_lists_have_an_index)
{
	for (int without = 0; without < 2; without++) {
		struct p3_ni *ni = zeroed(1, sizeof *ni);
		struct p3_me *me = zeroed(ENTRIES, sizeof *me);
		assert_true(p3_ablate(without ? 1u << P3_INDEX : 0));
		ni->portal = zeroed(1, sizeof *ni->portal);
		ni->bucket = zeroed(1, sizeof *ni->bucket);
		for (unsigned i = 0; i < ENTRIES; i++)
			p3_match_list_insert(ni, &ni->portal[0], &me[i],
				ni->portal[0].tail, PTL_INS_AFTER);
		assert_int_equal(ni->portal[0].indexed, !without);
		for (unsigned i = 0; i < ENTRIES; i++)
			p3_match_list_remove(ni, &me[i]);
		assert_int_equal(ni->portal[0].n, 0);
		free(ni->bucket);
		free(ni->portal);
		free(me);
		free(ni);
	}
}
