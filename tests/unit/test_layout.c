/* SPDX-License-Identifier: BSD-3-Clause */
/* The map of a segment, for every number of nodes. */

#include "shm/lane.h"
#include "support/cases.h"

CASE(layout_parts_follow_each_other)
{
	for (uint32_t n = 1; n <= P3_MAX_NODES; n++) {
		struct p3_layout l = p3_layout_of(n);
		assert_int_equal(l.nnodes, n);
		assert_int_equal(l.counters_off, sizeof(struct p3_seg_header));
		assert_int_equal(l.waits_off, l.counters_off + P3_COUNTERS * 8);
		assert_int_equal(l.queues_off,
			l.waits_off + P3_WAITS * sizeof(struct p3_wait_line));
		assert_int_equal(l.cases_off,
			l.queues_off + P3_QUEUES_SHOWN * sizeof(struct p3_queue_line));
		assert_int_equal(
			l.cci_off, l.cases_off + P3_WHYS * sizeof(struct p3_case_line));
		assert_int_equal(l.polls_off,
			l.cci_off + P3_CCI_SHOWN * sizeof(struct p3_cci_line));
		uint64_t lines = l.polls_off + P3_POLLS * sizeof(struct p3_poll_line);
		assert_in_range(l.parts_off, lines, lines + P3_PAGE - 1);
		uint64_t last = p3_part_off(&l, n - 1) + sizeof(struct p3_peer_part);
		assert_in_range(l.xfers_off, last, last + P3_PAGE - 1);
		uint64_t end = l.xfers_off + l.nxfers * sizeof(struct p3_xfer);
		assert_in_range(l.ctl_len, end, end + P3_PAGE - 1);
	}
}

CASE(layout_parts_start_on_lines)
{
	for (uint32_t n = 1; n <= P3_MAX_NODES; n++) {
		struct p3_layout l = p3_layout_of(n);
		assert_int_equal(l.counters_off % P3_LINE, 0);
		assert_int_equal(l.waits_off % P3_LINE, 0);
		assert_int_equal(l.queues_off % P3_LINE, 0);
		assert_int_equal(l.parts_off % P3_PAGE, 0);
		assert_int_equal(l.xfers_off % P3_LINE, 0);
		assert_int_equal(l.ctl_len % P3_PAGE, 0);
		assert_int_equal(l.seg_len % P3_HUGE, 0);
	}
}

/* Parts of two peers, and the rings and the entry of one, do not overlap. */
CASE(layout_parts_of_peers_are_apart)
{
	uint64_t ring = P3_BASE_CELLS * sizeof(struct p3_cell);
	for (uint32_t n = 1; n <= P3_MAX_NODES; n++) {
		struct p3_layout l = p3_layout_of(n);
		assert_int_equal(p3_base_req_off(&l, 0), l.parts_off);
		for (uint32_t i = 0; i < n; i++) {
			uint64_t entry = p3_entry_off(&l, i);
			uint64_t rsp = p3_base_rsp_off(&l, i);
			assert_int_equal(entry, p3_base_req_off(&l, i) + ring);
			assert_int_equal(rsp, entry + sizeof(struct p3_peer_entry));
			assert_true(p3_base_req_off(&l, i + 1) >= rsp + ring);
			assert_int_equal(entry / P3_PAGE, (rsp + ring - 1) / P3_PAGE);
			assert_int_equal(
				entry / P3_PAGE, p3_base_req_off(&l, i) / P3_PAGE);
		}
	}
}

CASE(layout_rings_are_powers_of_two_with_room_for_messages)
{
	assert_int_equal(P3_BASE_CELLS & (P3_BASE_CELLS - 1), 0);
	assert_in_range(p3_ring_most(P3_BASE_CELLS), 1, P3_BASE_CELLS);
	for (uint32_t n = 1; n <= P3_MAX_NODES; n++) {
		struct p3_layout l = p3_layout_of(n);
		assert_int_equal(l.req_cells & (l.req_cells - 1), 0);
		assert_int_equal(l.rsp_cells & (l.rsp_cells - 1), 0);
		assert_in_range(l.rsp_cells, P3_BASE_CELLS, l.req_cells);
	}
}

CASE(layout_arena_holds_all_full_lanes_and_windows)
{
	for (uint32_t n = 1; n <= P3_MAX_NODES; n++) {
		struct p3_layout l = p3_layout_of(n);
		uint64_t lane =
			(uint64_t)(l.req_cells + l.rsp_cells) * sizeof(struct p3_cell);
		assert_int_equal(p3_full_lane_len(&l), lane);
		assert_int_equal(lane % P3_PAGE, 0);
		uint64_t need = l.ctl_len + n * lane + P3_WINDOWS * P3_WINDOW_LEN;
		assert_in_range(l.seg_len, need, need + P3_HUGE - 1);
	}
}

/* The largest job has a segment of at most 64 hugepages. */
CASE(layout_has_64_hugepages_at_most)
{
	struct p3_layout l = p3_layout_of(P3_MAX_NODES);
	assert_in_range(l.seg_len / P3_HUGE, 1, 63);
}

CASE(layout_has_transfers_of_both_classes_for_every_peer)
{
	for (uint32_t n = 1; n <= P3_MAX_NODES; n++) {
		struct p3_layout l = p3_layout_of(n);
		assert_int_equal(l.nxfers % 2, 0);
		assert_int_equal(l.nxfers / 2, n + P3_XFERS_SHARED);
	}
}

CASE(layout_lines_have_one_writer)
{
	assert_int_equal(offsetof(struct p3_peer_entry, tx_for), P3_LINE);
	assert_true(offsetof(struct p3_peer_entry, bulk_read) < P3_LINE);
	assert_true(offsetof(struct p3_peer_entry, bulk_again) < P3_LINE);
	assert_true(offsetof(struct p3_peer_entry, cold) >= P3_LINE);
	assert_int_equal(offsetof(struct p3_doorbell, kick), P3_LINE);
	assert_int_equal(offsetof(struct p3_doorbell, lanes), 2 * P3_LINE);
	assert_int_equal(sizeof((struct p3_doorbell *)0)->lanes, P3_MAX_NODES / 8);
}

CASE(layout_transfer_ids_are_distinct_and_not_zero)
{
	assert_int_equal(p3_xfer_id(0, 1), (uint64_t)1 << 32);
	assert_int_equal(p3_xfer_id(5, 0x80000001u), 0x8000000100000005u);
	for (uint32_t slot = 0; slot < 4; slot++)
		for (uint32_t gen = 1; gen < 4; gen++) {
			assert_int_not_equal(p3_xfer_id(slot, gen), 0);
			assert_int_equal((uint32_t)p3_xfer_id(slot, gen), slot);
			assert_int_equal(p3_xfer_id(slot, gen) >> 32, gen);
		}
}

CASE(layout_rounds_up)
{
	assert_int_equal(p3_round_up(0, P3_PAGE), 0);
	assert_int_equal(p3_round_up(1, P3_PAGE), P3_PAGE);
	assert_int_equal(p3_round_up(P3_PAGE, P3_PAGE), P3_PAGE);
	assert_int_equal(p3_round_up(P3_PAGE + 1, P3_PAGE), 2 * P3_PAGE);
	assert_int_equal(p3_round_up(UINT64_C(5) << 32, P3_HUGE), UINT64_C(5) << 32);
}
