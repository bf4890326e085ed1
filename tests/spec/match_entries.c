/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements 60 to 85: PtlMEAttach, PtlMEAttachAny, PtlMEInsert, PtlMEUnlink. */
#include "fields.h"

#include <string.h>

static ptl_handle_me_t attach(ptl_ins_pos_t position)
{
	ptl_handle_me_t me;
	CHECK_OK(PtlMEAttach(
		spec.ni, SPEC_PT, spec_any(), SPEC_BITS, 0, PTL_RETAIN, position, &me));
	return me;
}

static ptl_handle_me_t insert(ptl_handle_me_t base, ptl_ins_pos_t position)
{
	ptl_handle_me_t me;
	CHECK_OK(PtlMEInsert(base, spec_any(), SPEC_BITS, 0, PTL_RETAIN, position, &me));
	return me;
}

static int attach_rc(ptl_pt_index_t pt, ptl_handle_me_t *me)
{
	return PtlMEAttach(
		spec.ni, pt, spec_any(), SPEC_BITS, 0, PTL_RETAIN, PTL_INS_AFTER, me);
}

/* Append an entry that takes one put. */
static ptl_handle_me_t one_more(struct takers *t, char name)
{
	ptl_handle_me_t me = attach(PTL_INS_AFTER);
	(void)offer(t, me, name, 1);
	return me;
}

/* ---- PtlMEAttach ---- */

STATEMENT(60, portal_index_bounds)
{
	ptl_pt_index_t last = (ptl_pt_index_t)spec.limits.max_pt_index;
	ptl_handle_me_t me = SPEC_JUNK;
	CHECK_OK(attach_rc(0, &me));
	CHECK_OK(attach_rc(last, &me));
	me = SPEC_JUNK;
	CHECK_RC(attach_rc(last + 1, &me), PTL_PT_INDEX_INVALID);
	CHECK_RC(attach_rc(0x80000000u, &me), PTL_PT_INDEX_INVALID);
	CHECK_RC(attach_rc(PTL_PT_INDEX_ANY, &me), PTL_PT_INDEX_INVALID);
	CHECK_EQ(me, SPEC_JUNK);
}

static void attach_to_no_interface(ptl_handle_any_t ni)
{
	ptl_handle_me_t me = SPEC_JUNK;
	CHECK_RC(PtlMEAttach(
			 ni, SPEC_PT, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_NI_INVALID);
	CHECK_EQ(me, SPEC_JUNK);
}

STATEMENT(61, bad_calls_of_attach)
{
	attach_to_no_interface(PTL_INVALID_HANDLE);
	attach_to_no_interface(SPEC_JUNK);
	attach_to_no_interface(spec_eq(4));
	attach_to_no_interface(spec_me(0));
	CHECK_RC(attach_rc(SPEC_PT, NULL), PTL_SEGV);
}

STATEMENT(62, position_in_an_empty_list)
{
	struct takers t = takers();
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	for (int i = 0; i < 2; i++) {
		if (spec.is_b) {
			me = attach(i ? PTL_INS_AFTER : PTL_INS_BEFORE);
			(void)offer(&t, me, 'x', 1);
		}
		EXPECT_TAKERS(&t, SPEC_BITS, "x-");
		if (spec.is_b)
			CHECK_OK(PtlMEUnlink(me));
	}
}

STATEMENT(63, before_is_the_head)
{
	struct takers t = takers();
	if (spec.is_b) {
		(void)offer(&t, attach(PTL_INS_AFTER), 'a', 1);
		(void)offer(&t, attach(PTL_INS_AFTER), 'b', 1);
		(void)offer(&t, attach(PTL_INS_BEFORE), 'c', 1);
		(void)offer(&t, attach(PTL_INS_BEFORE), 'd', 1);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "dcab-");
}

STATEMENT(64, after_is_the_tail)
{
	struct takers t = takers();
	if (spec.is_b) {
		(void)offer(&t, attach(PTL_INS_BEFORE), 'a', 1);
		(void)offer(&t, attach(PTL_INS_AFTER), 'b', 1);
		(void)offer(&t, attach(PTL_INS_AFTER), 'c', 1);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "abc-");
}

STATEMENT(65, wildcards_for_ids)
{
	struct takers t = takers();
	for (unsigned i = 0; i < 4; i++) {
		ptl_process_id_t id = {i & 1 ? PTL_NID_ANY : spec.a.nid,
			i & 2 ? PTL_PID_ANY : spec.a.pid};
		ptl_handle_me_t me;
		if (spec.is_b) {
			CHECK_OK(PtlMEAttach(spec.ni, SPEC_PT, id, SPEC_BITS, 0,
				PTL_RETAIN, PTL_INS_AFTER, &me));
			(void)offer(&t, me, (char)('0' + i), 1);
		}
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "0123-");
}

STATEMENT(66, longest_list)
{
	ptl_ni_limits_t few = {.max_me_list = 20, .max_mes = 4096};
	ptl_handle_me_t me = SPEC_JUNK;
	spec_up(&few);
	struct takers t = takers();
	if (spec.is_b) {
		(void)one_more(&t, 'a');
		for (int i = 2; i < spec.limits.max_me_list; i++)
			CHECK_OK(attach_rc(SPEC_PT, &me));
		(void)one_more(&t, 'z');
		me = SPEC_JUNK;
		for (int i = 0; i < 3; i++)
			CHECK_RC(attach_rc(SPEC_PT, &me), PTL_ME_LIST_TOO_LONG);
		CHECK_RC(PtlMEAttach(spec.ni, SPEC_PT, spec_any(), SPEC_BITS, 0,
				 PTL_RETAIN, PTL_INS_BEFORE, &me),
			PTL_ME_LIST_TOO_LONG);
		CHECK_EQ(me, SPEC_JUNK);
		CHECK_OK(attach_rc(SPEC_PT + 1, &me)); /* other lists have room */
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "az-");
}

STATEMENT(67, most_entries)
{
	ptl_ni_limits_t few = {.max_mes = 100};
	ptl_handle_me_t me, first = PTL_INVALID_HANDLE, none = SPEC_JUNK;
	spec_up(&few);
	ptl_pt_index_t lists = (ptl_pt_index_t)spec.limits.max_pt_index + 1;
	for (int i = 0; i < spec.limits.max_mes; i++) {
		CHECK_OK(attach_rc((ptl_pt_index_t)i % lists, &me));
		first = i == 0 ? me : first;
	}
	for (ptl_pt_index_t i = 0; i < lists; i++)
		CHECK_RC(attach_rc(i, &none), PTL_NO_SPACE);
	CHECK_EQ(none, SPEC_JUNK);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(PtlMEUnlink(first));
		CHECK_OK(attach_rc(lists - 1, &first));
		CHECK_RC(attach_rc(0, &none), PTL_NO_SPACE);
	}
}

STATEMENT(68, entry_without_descriptor)
{
	struct takers t = takers();
	if (spec.is_b)
		(void)attach(PTL_INS_AFTER);
	EXPECT_TAKERS(&t, SPEC_BITS, "-");
	if (spec.is_b) {
		(void)one_more(&t, 'b');
		(void)attach(PTL_INS_BEFORE);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "b-");
}

/* ---- PtlMEAttachAny ---- */

static int attach_any(ptl_pt_index_t *pt, ptl_handle_me_t *me)
{
	return PtlMEAttachAny(spec.ni, pt, spec_any(), SPEC_BITS, 0, PTL_RETAIN, me);
}

/* Lists 0, 1, and the last are in use. */
STATEMENT(69, any_is_an_unused_index)
{
	ptl_pt_index_t last = (ptl_pt_index_t)spec.limits.max_pt_index;
	ptl_handle_me_t me = SPEC_JUNK;
	CHECK_OK(attach_rc(0, &me));
	CHECK_OK(attach_rc(1, &me));
	CHECK_OK(attach_rc(last, &me));
	for (ptl_pt_index_t i = 0; i < last - 2; i++) {
		ptl_pt_index_t pt = PTL_PT_INDEX_ANY;
		me = SPEC_JUNK;
		CHECK_OK(attach_any(&pt, &me));
		CHECK(pt > 1 && pt < last);
		CHECK(me != SPEC_JUNK);
	}
}

static void take_indexes(void *arg)
{
	ptl_pt_index_t *pt = arg;
	for (int i = 0; i < 8; i++) {
		ptl_handle_me_t me;
		CHECK_OK(attach_any(&pt[i], &me));
	}
}

static void check_all_differ(const ptl_pt_index_t *pt, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			CHECK(pt[i] != pt[j]);
}

STATEMENT(70, any_gives_different_indexes)
{
	ptl_pt_index_t pt[64];
	struct thread *t[8];
	ptl_handle_me_t me;
	CHECK_OK(attach_any(&pt[0], &me));
	CHECK_OK(attach_any(&pt[1], &me));
	CHECK(pt[0] != pt[1]);
	spec_up(NULL);
	for (int i = 0; i < 8; i++)
		t[i] = thread_start(take_indexes, &pt[8 * i]);
	for (int i = 0; i < 8; i++)
		thread_join(t[i]);
	check_all_differ(pt, 64);
}

/* Use up all indexes; return the entries by index. */
static ptl_handle_me_t *use_all_indexes(void)
{
	size_t lists = (size_t)spec.limits.max_pt_index + 1;
	ptl_handle_me_t *me = suite_alloc(lists * sizeof *me);
	for (size_t i = 0; i < lists; i++) {
		ptl_pt_index_t pt;
		ptl_handle_me_t new;
		CHECK_OK(attach_any(&pt, &new));
		CHECK(pt < lists);
		CHECK(me[pt] == 0);
		me[pt] = new;
	}
	return me;
}

STATEMENT(71, all_indexes_in_use)
{
	ptl_pt_index_t pt = 12345;
	ptl_handle_me_t me = SPEC_JUNK;
	(void)use_all_indexes();
	CHECK_RC(attach_any(&pt, &me), PTL_PT_FULL);
	CHECK_EQ(pt, 12345);
	CHECK_EQ(me, SPEC_JUNK);
}

STATEMENT(72, any_needs_its_outputs)
{
	ptl_pt_index_t pt = 12345;
	ptl_handle_me_t me = SPEC_JUNK;
	CHECK_RC(attach_any(NULL, &me), PTL_SEGV);
	CHECK_RC(attach_any(&pt, NULL), PTL_SEGV);
	CHECK_EQ(pt, 12345);
	CHECK_EQ(me, SPEC_JUNK);
}

WEAK_STATEMENT(73, any_takes_an_index_again)
{
	ptl_handle_me_t *all = use_all_indexes(), me;
	ptl_pt_index_t pt;
	CHECK_OK(PtlMEUnlink(all[17]));
	CHECK_OK(attach_any(&pt, &me));
	CHECK_EQ(pt, 17);
	CHECK_RC(attach_any(&pt, &me), PTL_PT_FULL);
}

STATEMENT(74, any_matches_likewise)
{
	struct takers t = takers();
	ptl_handle_me_t me;
	ptl_pt_index_t pt = 0;
	if (spec.is_b) {
		CHECK_OK(PtlMEAttachAny(
			spec.ni, &pt, spec.a, SPEC_BITS, 0xff, PTL_UNLINK, &me));
		(void)offer(&t, me, 'x', 2);
	}
	t.pt = (ptl_pt_index_t)spec_told(pt);
	EXPECT_TAKERS(&t, SPEC_BITS ^ 0x100, "-");
	EXPECT_TAKERS(&t, SPEC_BITS, "x");
	EXPECT_TAKERS(&t, SPEC_BITS ^ 0xff, "x-");
}

/* ---- PtlMEInsert ---- */

STATEMENT(75, insert_before_and_after)
{
	struct takers t = takers();
	if (spec.is_b) {
		ptl_handle_me_t base = one_more(&t, 'b');
		(void)offer(&t, insert(base, PTL_INS_BEFORE), 'a', 1);
		(void)offer(&t, insert(base, PTL_INS_AFTER), 'c', 1);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "abc-");
}

STATEMENT(76, insert_is_adjacent)
{
	struct takers t = takers();
	if (spec.is_b) {
		ptl_handle_me_t b = (one_more(&t, 'a'), one_more(&t, 'b'));
		(void)one_more(&t, 'c');
		(void)offer(&t, insert(b, PTL_INS_BEFORE), '1', 1);
		(void)offer(&t, insert(b, PTL_INS_AFTER), '3', 1);
		(void)offer(&t, insert(b, PTL_INS_BEFORE), '2', 1);
		(void)offer(&t, insert(b, PTL_INS_AFTER), '4', 1);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "a12b43c-");
}

static void insert_at_nothing(ptl_handle_any_t base)
{
	ptl_handle_me_t me = SPEC_JUNK;
	for (int position = 0; position < 2; position++)
		CHECK_RC(PtlMEInsert(base, spec_any(), 0, 0, PTL_RETAIN,
				 position ? PTL_INS_AFTER : PTL_INS_BEFORE, &me),
			PTL_ME_INVALID);
	CHECK_EQ(me, SPEC_JUNK);
}

STATEMENT(77, insert_at_bad_bases)
{
	ptl_handle_me_t gone = spec_me(1);
	CHECK_OK(PtlMEUnlink(gone));
	insert_at_nothing(gone);
	insert_at_nothing(PTL_INVALID_HANDLE);
	insert_at_nothing(SPEC_JUNK);
	insert_at_nothing(spec.ni);
	insert_at_nothing(spec_eq(4));
}

STATEMENT(78, other_bad_calls_of_insert)
{
	ptl_ni_limits_t few = {.max_me_list = 20, .max_mes = 4096};
	ptl_handle_me_t base, me = SPEC_JUNK;
	spec_up(&few);
	base = attach(PTL_INS_AFTER);
	CHECK_RC(PtlMEInsert(base, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, NULL),
		PTL_SEGV);
	for (int i = 1; i < spec.limits.max_me_list; i++)
		(void)insert(base, i % 2 ? PTL_INS_AFTER : PTL_INS_BEFORE);
	CHECK_RC(PtlMEInsert(base, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me),
		PTL_ME_LIST_TOO_LONG);
	CHECK_RC(PtlMEInsert(base, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &me),
		PTL_ME_LIST_TOO_LONG);
	CHECK_EQ(me, SPEC_JUNK);
	CHECK_OK(PtlMEUnlink(base));
	(void)attach(PTL_INS_AFTER);
}

/* B: insert an entry beside base, with one descriptor that is unlinked after one put. */
static ptl_handle_me_t insert_for_one(
	struct takers *t, ptl_handle_me_t base, ptl_unlink_t unlink, char name)
{
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	CHECK_OK(PtlMEInsert(base, spec_any(), SPEC_BITS, 0, unlink, PTL_INS_AFTER, &me));
	CHECK_OK(PtlMDAttach(me, takers_md(t, name, 1), PTL_UNLINK, &md));
	return me;
}

STATEMENT(79, insert_with_unlink)
{
	struct takers t = takers();
	ptl_handle_me_t goes = 0, stays = 0;
	if (spec.is_b) {
		ptl_handle_me_t base = attach(PTL_INS_AFTER);
		stays = insert_for_one(&t, base, PTL_RETAIN, 's');
		goes = insert_for_one(&t, base, PTL_UNLINK, 'g');
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "gs");
	if (spec.is_b) {
		(void)EXPECT(t.eq, PTL_EVENT_UNLINK);
		CHECK_RC(PtlMEUnlink(goes), PTL_ME_INVALID);
		(void)offer(&t, stays, 'S', 1);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "S-");
}

/* ---- PtlMEUnlink ---- */

STATEMENT(80, unlinked_entry_is_gone)
{
	struct takers t = takers();
	ptl_handle_me_t me = 0;
	ptl_handle_md_t md;
	if (spec.is_b)
		(void)offer(&t, me = attach(PTL_INS_AFTER), 'x', 5);
	EXPECT_TAKERS(&t, SPEC_BITS, "x");
	if (spec.is_b) {
		CHECK_OK(PtlMEUnlink(me));
		CHECK_RC(PtlMDAttach(me, takers_md(&t, 'y', 1), PTL_RETAIN, &md),
			PTL_ME_INVALID);
		insert_at_nothing(me);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "-");
}

STATEMENT(81, second_unlink)
{
	ptl_handle_me_t me = spec_me(1);
	CHECK_OK(PtlMEUnlink(me));
	CHECK_RC(PtlMEUnlink(me), PTL_ME_INVALID);
	(void)spec_me(1);
	CHECK_RC(PtlMEUnlink(me), PTL_ME_INVALID);
	CHECK_RC(PtlMEUnlink(SPEC_JUNK), PTL_ME_INVALID);
}

STATEMENT(82, descriptor_goes_with_its_entry)
{
	static char bytes[8];
	for (int i = 0; i < 2; i++) {
		ptl_handle_me_t me = spec_me(1);
		ptl_handle_md_t md;
		CHECK_OK(PtlMDAttach(me, spec_md(bytes, 8, PTL_MD_OP_PUT, PTL_EQ_NONE),
			i ? PTL_UNLINK : PTL_RETAIN, &md));
		CHECK_OK(PtlMEUnlink(me));
		CHECK_RC(PtlMDUnlink(md), PTL_MD_INVALID);
		CHECK_RC(PtlPut(md, PTL_NO_ACK_REQ, spec.self, SPEC_PT, 0, 0, 0, 0),
			PTL_MD_INVALID);
	}
}

STATEMENT(83, no_event_of_unlinking_an_entry)
{
	ptl_handle_eq_t eq = spec_eq(16);
	static char bytes[8];
	for (int i = 0; i < 4; i++) {
		ptl_handle_me_t me;
		ptl_handle_md_t md;
		CHECK_OK(PtlMEAttach(spec.ni, SPEC_PT, spec_any(), 0, 0,
			i & 1 ? PTL_UNLINK : PTL_RETAIN, PTL_INS_AFTER, &me));
		CHECK_OK(PtlMDAttach(me, spec_md(bytes, 8, PTL_MD_OP_PUT, eq),
			i & 2 ? PTL_UNLINK : PTL_RETAIN, &md));
		CHECK_OK(PtlMEUnlink(me));
	}
	SILENCE(eq);
}

static int unlink_entry(struct long_put *p)
{
	int rc = PtlMEUnlink(p->me);
	return rc == PTL_ME_IN_USE ? PTL_MD_IN_USE : rc;
}

STATEMENT(84, entry_of_a_long_put)
{
	long_put_try(unlink_entry);
}

STATEMENT(85, unlinking_keeps_the_order)
{
	struct takers t = takers();
	ptl_handle_me_t me[7] = {0};
	if (spec.is_b) {
		for (int i = 0; i < 7; i++)
			me[i] = one_more(&t, (char)('a' + i));
		CHECK_OK(PtlMEUnlink(me[3]));
		CHECK_OK(PtlMEUnlink(me[0]));
		CHECK_OK(PtlMEUnlink(me[6]));
		CHECK_OK(PtlMEUnlink(me[4]));
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "bcf-");
}
