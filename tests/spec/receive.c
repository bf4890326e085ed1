/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's treatment of requests: statements 209 to 231. */
#include "fields.h"

#include <sched.h>

enum { ROOM = 4096, MIB = 1 << 20 };

/* A's source, and B's queue; all nodes have one. */
struct bench {
	ptl_handle_eq_t a, b;
	unsigned char *from, *got;
	ptl_handle_md_t put, get, swap;
};

static struct bench bench(void)
{
	struct bench w = {.from = suite_alloc(MIB), .got = suite_alloc(MIB)};
	w.a = spec_eq(64);
	w.b = spec_eq(2048);
	fill_bytes(w.from, MIB, 1);
	w.put = spec_bind(spec_md(w.from, MIB, 0, w.a), PTL_RETAIN);
	w.get = spec_bind(spec_md(w.got, MIB, 0, w.a), PTL_RETAIN);
	w.swap = spec_bind(spec_md(w.got, 8, 0, PTL_EQ_NONE), PTL_RETAIN);
	return w;
}

/* A: put length bytes, and take the SEND_END. */
static void put_at(struct bench *w, ptl_pt_index_t pt, ptl_match_bits_t bits,
	ptl_size_t length, ptl_size_t remote)
{
	CHECK_OK(try_put_region(
		w->put, 0, length, PTL_NO_ACK_REQ, spec.b, pt, bits, remote, 0));
	(void)EXPECT_PAIR(w->a, PTL_EVENT_SEND_START);
}

/* All nodes: put, and let B wait until it was dropped. */
static void put_dropped(
	struct bench *w, ptl_match_bits_t bits, ptl_size_t length, ptl_size_t remote)
{
	spec_barrier();
	uint64_t before = spec.is_b ? spec_drops() : 0;
	spec_barrier();
	if (spec.is_a)
		put_at(w, SPEC_PT, bits, length, remote);
	if (spec.is_b) {
		EXPECT_DROPS(before + 1);
		SILENCE(w->b);
	}
	spec_barrier();
}

/* All nodes: put, and return B's PUT_END, on other nodes zeros. */
static ptl_event_t put_taken(
	struct bench *w, ptl_match_bits_t bits, ptl_size_t length, ptl_size_t remote)
{
	ptl_event_t end = {.type = PTL_EVENT_PUT_END};
	spec_barrier();
	if (spec.is_a)
		put_at(w, SPEC_PT, bits, length, remote);
	if (spec.is_b) {
		end = EXPECT_PAIR(w->b, PTL_EVENT_PUT_START);
		CHECK_EQ(end.rlength, length);
	}
	spec_barrier();
	return end;
}

static ptl_md_t md_of(struct bench *w, ptl_size_t length, unsigned options)
{
	return spec_md(suite_alloc(length + 64), length, options, w->b);
}

/* B: attach behind the others of SPEC_PT; return INVALID elsewhere. */
static ptl_handle_md_t at_b(ptl_match_bits_t bits, ptl_md_t md)
{
	return spec.is_b ? spec_target(bits, md) : PTL_INVALID_HANDLE;
}

STATEMENT(209, the_first_willing_entry_wins)
{
	enum { ENTRIES = 40 };
	struct bench w = bench();
	ptl_handle_md_t md[ENTRIES];
	for (int i = 0; i < ENTRIES; i++) /* every third one matches */
		md[i] = at_b(i % 3 ? SPEC_BITS + 1 : SPEC_BITS,
			with_threshold(md_of(&w, ROOM, PTL_MD_OP_PUT), 2));
	for (int i = 0; i < ENTRIES; i += 3)
		for (int k = 0; k < 2; k++) {
			ptl_event_t end = put_taken(&w, SPEC_BITS, 10, 0);
			if (spec.is_b)
				CHECK_EQ(end.md_handle, md[i]);
		}
	put_dropped(&w, SPEC_BITS, 10, 0);
}

/* Use portal index i for bit i; B's entries all exist at the same time. */
static void attach_bit(struct bench *w, unsigned bit, ptl_match_bits_t ignore)
{
	ptl_handle_me_t me;
	CHECK_OK(PtlMEAttach(spec.ni, bit, spec_any(), SPEC_BITS, ignore, PTL_RETAIN,
		PTL_INS_AFTER, &me));
	CHECK_OK(PtlMDAttach(me,
		spec_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, w->b),
		PTL_RETAIN, NULL));
}

/* All nodes: check that B sees exactly these, in order. */
static void expect_bits(struct bench *w, unsigned bit, ptl_match_bits_t bits)
{
	ptl_event_t end = EXPECT(w->b, PTL_EVENT_PUT_END);
	CHECK_EQ(end.pt_index, bit);
	CHECK_EQ(end.match_bits, bits);
}

/* Ignore each bit alone: flipped, it matches, and its neighbours do not. */
static void ignored_one_by_one(struct bench *w)
{
	for (unsigned i = 0; i < 64; i++) {
		uint64_t bit = UINT64_C(1) << i;
		if (spec.is_a) {
			put_at(w, i, SPEC_BITS ^ bit, 0, 0);
			put_at(w, i, SPEC_BITS, 0, 0);
			put_at(w, i, SPEC_BITS ^ UINT64_C(1) << (i + 1) % 64, 0, 0);
			put_at(w, i, SPEC_BITS ^ UINT64_C(1) << (i + 63) % 64, 0, 0);
			put_at(w, i, ~SPEC_BITS, 0, 0);
		}
		if (spec.is_b) {
			expect_bits(w, i, SPEC_BITS ^ bit);
			expect_bits(w, i, SPEC_BITS);
		}
	}
}

/* Make each bit alone significant: all others may have any value. */
static void significant_one_by_one(struct bench *w)
{
	for (unsigned i = 0; i < 64; i++) {
		uint64_t bit = UINT64_C(1) << i, other = mix(i) & ~bit;
		if (spec.is_a) {
			put_at(w, i, SPEC_BITS ^ other, 0, 0);
			put_at(w, i, SPEC_BITS ^ bit, 0, 0);
			put_at(w, i, ~SPEC_BITS ^ bit, 0, 0);
			put_at(w, i, ~SPEC_BITS, 0, 0);
		}
		if (spec.is_b) {
			expect_bits(w, i, SPEC_BITS ^ other);
			expect_bits(w, i, ~SPEC_BITS ^ bit);
		}
	}
}

static void next_lists(struct bench *w, bool significant)
{
	spec_barrier();
	if (significant && spec.is_b)
		EXPECT_DROPS(3 * 64);
	spec_up(NULL);
	*w = bench();
	for (unsigned i = 0; spec.is_b && i < 64; i++)
		attach_bit(w, i, significant ? ~(UINT64_C(1) << i) : UINT64_C(1) << i);
	spec_barrier();
}

STATEMENT(210, ignore_bits)
{
	struct bench w;
	next_lists(&w, false);
	ignored_one_by_one(&w);
	next_lists(&w, true);
	significant_one_by_one(&w);
	spec_barrier();
	if (spec.is_b)
		EXPECT_DROPS(2 * 64);
}

STATEMENT(211, match_ids)
{
	struct bench w = bench();
	const ptl_nid_t nid[] = {spec.a.nid, PTL_NID_ANY, spec.a.nid + 1};
	const ptl_pid_t pid[] = {spec.a.pid, PTL_PID_ANY, spec.a.pid + 1};
	for (unsigned i = 0; spec.is_b && i < 9; i++) {
		ptl_process_id_t id = {nid[i / 3], pid[i % 3]};
		ptl_handle_me_t me;
		CHECK_OK(PtlMEAttach(
			spec.ni, i, id, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
		CHECK_OK(PtlMDAttach(me, md_of(&w, 8, PTL_MD_OP_PUT), PTL_RETAIN, NULL));
	}
	spec_barrier();
	uint64_t drops = 0;
	for (unsigned i = 0; i < 9; i++) {
		bool accepts = i / 3 < 2 && i % 3 < 2;
		drops += !accepts;
		if (spec.is_a)
			put_at(&w, i, 0, 8, 0);
		if (spec.is_b && accepts)
			CHECK_EQ(EXPECT_PAIR(w.b, PTL_EVENT_PUT_START).pt_index, i);
		spec_barrier();
	}
	if (spec.is_b)
		EXPECT_DROPS(drops);
}

STATEMENT(212, a_refusal_leads_to_the_next_entry)
{
	struct bench w = bench();
	if (spec.is_b)
		(void)spec_me(SPEC_BITS);                      /* has no descriptor */
	(void)at_b(SPEC_BITS, md_of(&w, ROOM, PTL_MD_OP_GET)); /* another operation */
	(void)at_b(SPEC_BITS, md_of(&w, ROOM, 0));
	(void)at_b(SPEC_BITS, with_threshold(md_of(&w, ROOM, PUT_GET), 0));
	(void)at_b(SPEC_BITS, md_of(&w, 99, PTL_MD_OP_PUT)); /* too short */
	(void)at_b(
		SPEC_BITS, md_of(&w, 99, PUT_AT | PTL_MD_TRUNCATE)); /* offset behind its
								  * end */
	ptl_handle_md_t willing = at_b(SPEC_BITS, md_of(&w, ROOM, PUT_AT));
	ptl_event_t end = put_taken(&w, SPEC_BITS, 100, 100);
	if (spec.is_b) {
		CHECK_EQ(end.md_handle, willing);
		CHECK_BYTES((char *)end.md.start + 100, 0, 100, 1);
	}
	CHECK_EQ(spec_drops(), 0);
}

STATEMENT(213, too_long_without_truncate)
{
	struct bench w = bench();
	ptl_md_t md = with_threshold(md_of(&w, 1000, PTL_MD_OP_PUT), 10);
	ptl_handle_md_t handle = at_b(SPEC_BITS, md);
	put_dropped(&w, SPEC_BITS, 1001, 0);
	put_dropped(&w, SPEC_BITS, MIB, 0);
	(void)put_taken(&w, SPEC_BITS, 400, 0);
	put_dropped(&w, SPEC_BITS, 601, 0); /* larger than the room that is left */
	if (spec.is_b) {
		CHECK_EQ(query(handle).threshold, 9);
		CHECK_ZERO((char *)md.start + 400, 664);
	}
}

STATEMENT(214, just_fitting)
{
	struct bench w = bench();
	static const ptl_size_t lengths[] = {0, 1, 100, 5000, MIB};
	for (unsigned i = 0; i < 5; i++) {
		(void)at_b(i, md_of(&w, lengths[i], PTL_MD_OP_PUT));
		ptl_event_t end = put_taken(&w, i, lengths[i], 0);
		if (spec.is_b) {
			CHECK_EQ(end.mlength, lengths[i]);
			CHECK_BYTES(end.md.start, 0, lengths[i], 1);
			CHECK_ZERO((char *)end.md.start + lengths[i], 64);
		}
	}
	(void)at_b(9, md_of(&w, 1000, PTL_MD_OP_PUT));
	(void)put_taken(&w, 9, 400, 0);
	CHECK_EQ(put_taken(&w, 9, 600, 0).offset, spec.is_b ? 400 : 0);
	(void)put_taken(&w, 9, 0, 0);
	put_dropped(&w, 9, 1, 0);
}

STATEMENT(215, truncation)
{
	struct bench w = bench();
	static const ptl_size_t room[] = {0, 1, 10, 4095, 200001};
	static const ptl_size_t more[] = {1, 100, 20000, 500000};
	for (unsigned i = 0; i < 20; i++) {
		ptl_size_t has = room[i / 4];
		(void)at_b(i, md_of(&w, has, PTL_MD_OP_PUT | PTL_MD_TRUNCATE));
		ptl_event_t end = put_taken(&w, i, has + more[i % 4], 0);
		if (!spec.is_b)
			continue;
		CHECK_EQ(end.mlength, has);
		CHECK_BYTES(end.md.start, 0, has, 1);
		CHECK_ZERO((char *)end.md.start + has, 64);
	}
	(void)at_b(99, md_of(&w, 100, PTL_MD_OP_PUT | PTL_MD_TRUNCATE));
	(void)put_taken(&w, 99, 70, 0);
	ptl_event_t end = put_taken(&w, 99, 70, 0);
	if (spec.is_b) {
		CHECK_EQ(end.mlength, 30);
		CHECK_BYTES((char *)end.md.start + 70, 0, 30, 1);
		CHECK_ZERO((char *)end.md.start + 100, 64);
	}
	CHECK_EQ(put_taken(&w, 99, 70, 0).mlength, 0);
	CHECK_EQ(spec_drops(), 0);
}

STATEMENT(216, the_local_offset_appends)
{
	struct bench w = bench();
	ptl_md_t md = md_of(&w, MIB, PTL_MD_OP_PUT | PTL_MD_TRUNCATE);
	(void)at_b(SPEC_BITS, md);
	ptl_size_t offset = 0;
	for (uint64_t i = 0; offset < MIB; i++) {
		ptl_size_t length = i % 9 == 8 ? mix(i) % 100000 : mix(i) % 3000;
		ptl_size_t moved = length < MIB - offset ? length : MIB - offset;
		ptl_event_t end = put_taken(&w, SPEC_BITS, length, 12345);
		if (spec.is_b) {
			CHECK_EQ(end.offset, offset);
			CHECK_EQ(end.mlength, moved);
			CHECK_BYTES((char *)md.start + offset, 0, moved, 1);
			CHECK_ZERO((char *)md.start + offset + moved, 64);
		}
		offset += moved;
	}
	CHECK_EQ(put_taken(&w, SPEC_BITS, 10, 0).offset, spec.is_b ? MIB : 0);
}

STATEMENT(217, remote_offsets)
{
	struct bench w = bench();
	ptl_md_t md = md_of(&w, ROOM, PUT_AT);
	(void)at_b(SPEC_BITS, md);
	for (ptl_size_t i = 0; i < 40; i++) {
		ptl_size_t offset = mix(i / 2) % 3000, length = 1000 - 10 * i;
		ptl_event_t end = put_taken(&w, SPEC_BITS, length, offset);
		if (!spec.is_b)
			continue;
		CHECK_EQ(end.offset, offset);
		CHECK_EQ(end.mlength, length);
		CHECK_BYTES((char *)md.start + offset, 0, length, 1);
		memset((char *)md.start + offset, 0, length);
		CHECK_ZERO(md.start, ROOM);
	}
}

STATEMENT(218, remote_offset_at_the_end)
{
	struct bench w = bench();
	unsigned options = PUT_AT;
	(void)at_b(1, md_of(&w, 1000, options));
	(void)at_b(2, md_of(&w, 1000, options | PTL_MD_TRUNCATE));
	for (ptl_match_bits_t bits = 1; bits <= 2; bits++) {
		ptl_event_t end = put_taken(&w, bits, 0, 1000);
		CHECK_EQ(end.offset, spec.is_b ? 1000 : 0);
		CHECK_EQ(end.mlength, 0);
		put_dropped(&w, bits, 0, 1001);
		put_dropped(&w, bits, 10, 1001);
		put_dropped(&w, bits, 10, UINT64_MAX);
		put_dropped(&w, bits, 0, UINT64_MAX);
		put_dropped(&w, bits, 5, UINT64_MAX - 4);
		put_dropped(&w, bits, 10, UINT64_C(1) << 32);
		put_dropped(&w, bits, 10, UINT64_C(1) << 63);
	}
	put_dropped(&w, 1, 1, 1000);
	put_dropped(&w, 1, 2, 999);
	CHECK_EQ(put_taken(&w, 2, 1, 1000).mlength, 0);
	CHECK_EQ(put_taken(&w, 2, 2, 999).mlength, spec.is_b ? 1 : 0);
}

STATEMENT(219, remote_offset_of_no_interest)
{
	struct bench w = bench();
	ptl_md_t md = md_of(&w, ROOM, PTL_MD_OP_PUT);
	(void)at_b(SPEC_BITS, md);
	static const ptl_size_t remote[] = {0, 1, ROOM, ROOM + 1, UINT64_MAX};
	for (unsigned i = 0; i < 5; i++)
		CHECK_EQ(put_taken(&w, SPEC_BITS, 100, remote[i]).offset,
			spec.is_b ? i * 100 : 0);
	for (unsigned i = 0; spec.is_b && i < 5; i++)
		CHECK_BYTES((char *)md.start + i * 100, 0, 100, 1);
}

STATEMENT(220, the_watcher_of_would_be_drops)
{
	struct bench w = bench();
	if (spec.is_b)
		(void)attach_all(
			SPEC_PT, spec_md(NULL, 0, PUT_GET | PTL_MD_TRUNCATE, w.b));
	static const ptl_size_t lengths[] = {0, 1, 64, 1000, 50000, MIB};
	for (uint64_t i = 0; i < 6; i++) {
		ptl_event_t end = put_taken(&w, mix(i), lengths[i], mix(i));
		CHECK_EQ(end.mlength, 0);
		if (spec.is_b)
			CHECK(end.initiator.nid == spec.a.nid &&
				end.initiator.pid == spec.a.pid);
		if (spec.is_a) {
			CHECK_OK(PtlGetRegion(
				w.get, 0, lengths[i], spec.b, SPEC_PT, 0, mix(i), 0));
			ptl_event_t reply = EXPECT_PAIR(w.a, PTL_EVENT_REPLY_START);
			CHECK_EQ(reply.rlength, lengths[i]);
			CHECK_EQ(reply.mlength, 0);
		}
		if (spec.is_b) {
			end = EXPECT_PAIR(w.b, PTL_EVENT_GET_START);
			CHECK_EQ(end.rlength, lengths[i]);
			CHECK_EQ(end.mlength, 0);
		}
		spec_barrier();
	}
	CHECK_EQ(spec_drops(), 0);
	CHECK_ZERO(w.got, MIB);
}

static ptl_md_t with_max_size(ptl_md_t md, ptl_size_t max_size)
{
	md.max_size = max_size;
	return md;
}

STATEMENT(221, max_size_deactivates)
{
	struct bench w = bench();
	unsigned options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE;
	ptl_handle_md_t first =
		at_b(SPEC_BITS, with_max_size(md_of(&w, 1000, options), 300));
	ptl_handle_md_t second = at_b(SPEC_BITS, md_of(&w, ROOM, PTL_MD_OP_PUT));
	static const ptl_size_t length[] = {300, 0, 300, 100, 1, 300, 0, 1};
	/* After four puts 300 bytes are left, after the fifth 299: less than max_size, so
	 * the descriptor becomes inactive. */
	for (int i = 0; i < 8; i++) {
		ptl_event_t end = put_taken(&w, SPEC_BITS, length[i], 0);
		if (spec.is_b)
			CHECK_EQ(end.md_handle, i < 5 ? first : second);
	}
	if (spec.is_b) { /* it is only inactive */
		CHECK_EQ(query(first).threshold, PTL_MD_THRESH_INF);
		CHECK_OK(PtlMDUnlink(first));
	}
}

STATEMENT(222, max_size_unlinks)
{
	struct bench w = bench();
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	ptl_handle_md_t handle = PTL_INVALID_HANDLE;
	ptl_md_t md =
		with_max_size(md_of(&w, 1000, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE), 300);
	if (spec.is_b)
		handle = attach_flags(SPEC_BITS, md, PTL_RETAIN, PTL_UNLINK, &me);
	for (int i = 0; i < 3; i++) {
		ptl_event_t end = put_taken(&w, SPEC_BITS, i < 2 ? 350 : 0, 0);
		if (!spec.is_b)
			continue;
		if (i == 0) {
			SILENCE(w.b);
			CHECK_EQ(end.unlinked, 0);
			continue;
		}
		if (i == 1) { /* 300 are left: still active */
			SILENCE(w.b);
			CHECK_EQ(query(handle).threshold, PTL_MD_THRESH_INF);
		}
	}
	ptl_event_t end = put_taken(&w, SPEC_BITS, 1, 0);
	if (!spec.is_b)
		return;
	ptl_event_t unlink = EXPECT(w.b, PTL_EVENT_UNLINK);
	CHECK_EQ(unlink.link, end.link);
	CHECK_EQ(unlink.md_handle, handle);
	CHECK_RC(PtlMDUnlink(handle), PTL_MD_INVALID);
	CHECK_OK(PtlMDAttach(me, md, PTL_RETAIN, NULL));
	SILENCE(w.b);
}

STATEMENT(223, max_size_is_void_with_remote_offsets)
{
	struct bench w = bench();
	unsigned options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_MANAGE_REMOTE;
	ptl_handle_md_t handle = PTL_INVALID_HANDLE;
	if (spec.is_b)
		handle = attach_flags(SPEC_BITS,
			with_max_size(md_of(&w, 1000, options), 300), PTL_RETAIN,
			PTL_UNLINK, NULL);
	for (ptl_size_t i = 0; i < 10; i++) {
		ptl_event_t end = put_taken(&w, SPEC_BITS, 900, i * 10);
		CHECK_EQ(end.mlength, spec.is_b ? 900 : 0);
	}
	if (spec.is_b)
		CHECK_OK(PtlMDUnlink(handle));
}

WEAK_STATEMENT(224, max_size_is_no_cap)
{
	struct bench w = bench();
	unsigned options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE;
	(void)at_b(SPEC_BITS, with_max_size(md_of(&w, 1000, options), 300));
	CHECK_EQ(put_taken(&w, SPEC_BITS, 650, 0).mlength, spec.is_b ? 650 : 0);
	CHECK_EQ(put_taken(&w, SPEC_BITS, 350, 0).mlength, spec.is_b ? 350 : 0);
	put_dropped(&w, SPEC_BITS, 0, 0);
	(void)at_b(1, with_max_size(md_of(&w, 1000, options), 2000));
	CHECK_EQ(put_taken(&w, 1, 10, 0).mlength, spec.is_b ? 10 : 0);
	put_dropped(&w, 1, 10, 0);
}

STATEMENT(225, max_size_without_its_option)
{
	struct bench w = bench();
	ptl_handle_md_t handle = PTL_INVALID_HANDLE;
	if (spec.is_b)
		handle = attach_flags(SPEC_BITS,
			with_max_size(md_of(&w, 1000, PTL_MD_OP_PUT), 300), PTL_RETAIN,
			PTL_UNLINK, NULL);
	for (int i = 0; i < 5; i++)
		CHECK_EQ(put_taken(&w, SPEC_BITS, 200, 0).mlength, spec.is_b ? 200 : 0);
	(void)put_taken(&w, SPEC_BITS, 0, 0);
	if (spec.is_b)
		CHECK_OK(PtlMDUnlink(handle));
}

STATEMENT(226, the_threshold_counts)
{
	struct bench w = bench();
	static const int threshold[] = {1, 2, 7};
	ptl_handle_md_t md[3], last;
	for (int i = 0; i < 3; i++)
		md[i] = at_b(SPEC_BITS,
			with_threshold(md_of(&w, ROOM, PTL_MD_OP_PUT), threshold[i]));
	last = at_b(SPEC_BITS, md_of(&w, ROOM, PTL_MD_OP_PUT));
	for (int i = 0; i < 3; i++)
		for (int left = threshold[i] - 1; left >= 0; left--) {
			ptl_event_t end = put_taken(&w, SPEC_BITS, 20, 0);
			if (!spec.is_b)
				continue;
			CHECK_EQ(end.md_handle, md[i]);
			CHECK_EQ(end.md.threshold, left);
		}
	ptl_event_t end = put_taken(&w, SPEC_BITS, 20, 0);
	if (spec.is_b)
		CHECK_EQ(end.md_handle, last);
}

/* Do an operation of kind i % 3 of ten bytes (a getput: eight), and wait for A's
 * answer. */
static void operate(struct bench *w, int i)
{
	if (i % 3 == 0) {
		put_at(w, SPEC_PT, SPEC_BITS, 10, 0);
	} else if (i % 3 == 1) {
		CHECK_OK(PtlGetRegion(w->get, 0, 10, spec.b, SPEC_PT, 0, SPEC_BITS, 0));
		(void)EXPECT_PAIR(w->a, PTL_EVENT_REPLY_START);
	} else {
		CHECK_OK(PtlGetPut(w->get, w->swap, spec.b, SPEC_PT, 0, SPEC_BITS, 0, 0));
		(void)EXPECT_PAIR(w->a, PTL_EVENT_REPLY_START);
	}
}

STATEMENT(227, all_operations_share_threshold_and_offset)
{
	struct bench w = bench();
	static const ptl_event_kind_t kind[] = {
		PTL_EVENT_PUT_START, PTL_EVENT_GET_START, PTL_EVENT_GETPUT_START};
	enum { UNITS = 9 };
	ptl_handle_md_t handle =
		at_b(SPEC_BITS, with_threshold(md_of(&w, ROOM, PUT_GET), UNITS));
	ptl_size_t offset = 0;
	spec_barrier();
	for (int i = 0; i < UNITS; i++) {
		if (spec.is_a)
			operate(&w, i);
		if (spec.is_b) {
			ptl_event_t end = EXPECT_PAIR(w.b, kind[i % 3]);
			CHECK_EQ(end.offset, offset);
			CHECK_EQ(end.md.threshold, UNITS - 1 - i);
		}
		offset += i % 3 == 2 ? 8 : 10;
		spec_barrier();
	}
	if (spec.is_b)
		CHECK_EQ(query(handle).threshold, 0);
	put_dropped(&w, SPEC_BITS, 1, 0);
}

/* Send one request of a kind that no entry accepts. */
static void lose(struct bench *w, int kind, ptl_pt_index_t pt, ptl_ac_index_t ac)
{
	if (kind == 0)
		CHECK_OK(PtlPutRegion(
			w->put, 0, 100, PTL_ACK_REQ, spec.b, pt, ac, SPEC_BITS, 0, 0));
	else if (kind == 1)
		CHECK_OK(PtlGetRegion(w->get, 0, 100, spec.b, pt, ac, SPEC_BITS, 0));
	else
		CHECK_OK(PtlGetPut(w->get, w->swap, spec.b, pt, ac, SPEC_BITS, 0, 0));
	if (kind == 0)
		(void)EXPECT_PAIR(w->a, PTL_EVENT_SEND_START);
}

STATEMENT(228, each_drop_counts_one)
{
	struct bench w = bench();
	ptl_pt_index_t pt = (ptl_pt_index_t)spec.limits.max_pt_index + 1;
	ptl_ac_index_t ac = (ptl_ac_index_t)spec.limits.max_ac_index + 1;
	(void)at_b(SPEC_BITS + 1, md_of(&w, ROOM, PUT_GET));
	uint64_t drops = 0;
	spec_barrier();
	for (int why = 0; why < 3; why++)
		for (int kind = 0; kind < 3; kind++) {
			if (spec.is_a)
				lose(&w, kind, why == 1 ? pt : SPEC_PT,
					why == 2 ? ac : 0);
			if (spec.is_b)
				EXPECT_DROPS(drops + 1);
			drops++;
			spec_barrier();
		}
	for (int i = 0; spec.is_a && i < 300; i++)
		put_at(&w, SPEC_PT, SPEC_BITS, mix((uint64_t)i) % 20000, 0);
	if (spec.is_b)
		EXPECT_DROPS(drops + 300);
	else
		CHECK_EQ(spec_drops(), 0);
	SILENCE(w.a);
	SILENCE(w.b);
	spec_barrier();
}

STATEMENT(229, portal_index_out_of_range)
{
	struct bench w = bench();
	ptl_pt_index_t most = (ptl_pt_index_t)spec.limits.max_pt_index;
	const ptl_pt_index_t beyond[] = {most + 1, most + 2, 256, 65536 + most, INT32_MAX,
		(ptl_pt_index_t)1 << 31, PTL_PT_INDEX_ANY};
	if (spec.is_b)
		(void)attach_all(most, md_of(&w, ROOM, PUT_GET_AT));
	uint64_t drops = 0;
	spec_barrier();
	for (int i = 0; i < 7; i++)
		for (int kind = 0; kind < 3; kind++, drops++)
			if (spec.is_a)
				lose(&w, kind, beyond[i], 0);
	if (spec.is_b)
		EXPECT_DROPS(drops);
	spec_barrier();
	if (spec.is_a)
		put_at(&w, most, 1, 10, 0);
	if (spec.is_b)
		CHECK_EQ(EXPECT_PAIR(w.b, PTL_EVENT_PUT_START).pt_index, most);
}

/* A reply before the update is complete; a later one is cut. */
static bool cut_reply(struct bench *w, ptl_size_t length, ptl_size_t rest)
{
	unsigned char *bytes = suite_alloc(length);
	ptl_md_t md = spec_md(bytes, length, 0, w->a);
	ptl_handle_md_t handle = spec_bind(md, PTL_RETAIN);
	spec_get(handle, SPEC_BITS);
	md.length = rest;
	CHECK_OK(PtlMDUpdate(handle, NULL, &md, PTL_EQ_NONE));
	ptl_event_t end = EXPECT_PAIR(w->a, PTL_EVENT_REPLY_START);
	bool is_cut = end.md.length == rest;
	CHECK_EQ(end.rlength, length);
	CHECK_EQ(end.mlength, is_cut ? rest : length);
	CHECK_BYTES(bytes, 0, end.mlength, 1);
	CHECK_ZERO(bytes + end.mlength, length - end.mlength);
	CHECK_OK(PtlMDUnlink(handle));
	return is_cut;
}

WEAK_STATEMENT(230, a_reply_is_cut_to_a_shortened_descriptor)
{
	struct bench w = bench();
	unsigned cuts = 0;
	if (spec.is_b)
		(void)spec_target(SPEC_BITS,
			spec_md(w.from, MIB, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
				PTL_EQ_NONE));
	static const ptl_size_t lengths[] = {10, 1000, 30000, 300000};
	spec_barrier();
	for (int i = 0; spec.is_a && i < 100; i++)
		cuts += cut_reply(&w, lengths[i % 4], lengths[i % 4] / 3);
	if (spec.is_a) {
		spec_note("%u of 100 were cut", cuts);
		CHECK_EQ(spec_drops(), 0);
	}
}

/* Return 60 bytes in pieces: 20 at 100, 1 at 50, none, 39 at 0. */
static ptl_md_t four_pieces(struct bench *w, unsigned char *bytes, unsigned options)
{
	static ptl_md_iovec_t iov[4];
	iov[0] = (ptl_md_iovec_t){bytes + 100, 20};
	iov[1] = (ptl_md_iovec_t){bytes + 50, 1};
	iov[2] = (ptl_md_iovec_t){bytes + 60, 0};
	iov[3] = (ptl_md_iovec_t){bytes, 39};
	return spec_md(iov, 4, options | PTL_MD_IOVEC, w->b);
}

static void pieces_hold(unsigned char *bytes, ptl_size_t offset, ptl_size_t length)
{
	for (ptl_size_t i = 0; i < 60; i++) {
		unsigned char *at = i < 20    ? bytes + 100 + i
				    : i == 20 ? bytes + 50
					      : bytes + i - 21;
		bool there = i >= offset && i < offset + length;
		CHECK_EQ(*at, there ? byte_of(1, i - offset) : 0);
		*at = 0;
	}
	CHECK_ZERO(bytes, 200);
}

STATEMENT(231, iovec_targets)
{
	struct bench w = bench();
	unsigned char *bytes = suite_alloc(200);
	unsigned options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE;
	(void)at_b(1, four_pieces(&w, bytes, options | PTL_MD_MANAGE_REMOTE));
	for (ptl_size_t offset = 0; offset <= 60; offset += 1 + offset / 7)
		for (ptl_size_t length = 0; length <= 70; length += 9) {
			ptl_event_t end = put_taken(&w, 1, length, offset);
			if (!spec.is_b)
				continue;
			ptl_size_t left = 60 - offset;
			CHECK_EQ(end.offset, offset);
			CHECK_EQ(end.mlength, length < left ? length : left);
			pieces_hold(bytes, offset, end.mlength);
		}
	put_dropped(&w, 1, 1, 61);
	(void)at_b(2, four_pieces(&w, bytes, PTL_MD_OP_PUT));
	for (ptl_size_t offset = 0; offset < 60; offset += 15) {
		put_dropped(&w, 2, 61 - offset, 0);
		ptl_event_t end = put_taken(&w, 2, 15, 0);
		CHECK_EQ(end.offset, spec.is_b ? offset : 0);
		if (spec.is_b)
			pieces_hold(bytes, offset, 15);
	}
	put_dropped(&w, 2, 1, 0);
}
