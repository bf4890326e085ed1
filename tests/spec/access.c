/* SPDX-License-Identifier: BSD-3-Clause */
/* Access control: statements 158 to 168. */
#include "fields.h"

enum { LENGTH = 64 };

/* B's offer on all portals that the tests use, and A's source. */
struct ends {
	ptl_handle_eq_t eq_a, eq_b;
	unsigned char *bytes, *got;
	ptl_handle_md_t put, get, swap;
};

static const ptl_ac_index_t entry = 1;

static struct ends ends(void)
{
	struct ends e = {.bytes = suite_alloc(LENGTH), .got = suite_alloc(LENGTH)};
	CHECK(spec.limits.max_ac_index >= 3);
	e.eq_a = spec_eq(256);
	e.eq_b = spec_eq(256);
	if (spec.is_a) {
		unsigned char *from = suite_alloc(LENGTH);
		fill_bytes(from, LENGTH, 1);
		e.put = spec_bind(spec_md(from, LENGTH, 0, e.eq_a), PTL_RETAIN);
		e.swap = spec_bind(spec_md(from, 8, 0, e.eq_a), PTL_RETAIN);
		e.get = spec_bind(spec_md(e.got, LENGTH, 0, e.eq_a), PTL_RETAIN);
	}
	return e;
}

static void offer_ends(struct ends *e, ptl_pt_index_t pt)
{
	(void)attach_all(pt, spec_md(e->bytes, LENGTH, PUT_GET_AT, e->eq_b));
}

static void allow(ptl_process_id_t id, ptl_uid_t uid, ptl_jid_t jid, ptl_pt_index_t pt)
{
	CHECK_OK(PtlACEntry(spec.ni, entry, id, uid, jid, pt));
}

static ptl_uid_t own_uid(void)
{
	ptl_uid_t uid = 0;
	CHECK_OK(PtlGetUid(spec.ni, &uid));
	return uid;
}

static ptl_jid_t own_jid(void)
{
	ptl_jid_t jid = 0;
	CHECK_OK(PtlGetJid(spec.ni, &jid));
	return jid;
}

/* Send a put with ACK, a get and a getput to this portal with this entry. */
static void request_all(struct ends *e, ptl_pt_index_t pt, ptl_ac_index_t ac)
{
	CHECK_OK(PtlPut(e->put, PTL_ACK_REQ, spec.b, pt, ac, 1, 0, 0));
	CHECK_OK(PtlGet(e->get, spec.b, pt, ac, 2, 0));
	CHECK_OK(PtlGetPut(e->get, e->swap, spec.b, pt, ac, 3, 0, 0));
}

/* A: count the answers to the three; their SENDs come in any case. */
static void count_answers(struct ends *e, unsigned answers)
{
	unsigned sends = spec_cray() ? 3 : 2;
	unsigned acks = answers ? 1 : 0, replies = answers ? 2 : 0;
	for (unsigned left = 2 * sends + acks + 2 * replies; left; left--) {
		ptl_event_t ev = NEXT(e->eq_a);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		sends -= ev.type == PTL_EVENT_SEND_END;
		acks -= ev.type == PTL_EVENT_ACK;
		replies -= ev.type == PTL_EVENT_REPLY_END;
	}
	CHECK(sends == 0 && acks == 0 && replies == 0);
}

static void expect_three(ptl_handle_eq_t eq)
{
	static const ptl_event_kind_t start[] = {
		PTL_EVENT_PUT_START, PTL_EVENT_GET_START, PTL_EVENT_GETPUT_START};
	unsigned ends = 0;
	for (unsigned starts = 0; ends < 3;) {
		ptl_event_t ev = NEXT(eq);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		if (ev.type == PTL_EVENT_PUT_END || ev.type == PTL_EVENT_GET_END ||
			ev.type == PTL_EVENT_GETPUT_END)
			ends++;
		else
			CHECK(starts < 3 && ev.type == start[starts++]);
	}
}

/* Send all three through this entry and portal: accepted, or else each dropped and
 * counted. */
static void try_through(
	struct ends *e, ptl_pt_index_t pt, ptl_ac_index_t ac, bool accepted)
{
	spec_barrier();
	uint64_t before = spec.is_b ? spec_drops() : 0;
	spec_barrier();
	if (spec.is_a) {
		request_all(e, pt, ac);
		count_answers(e, accepted);
	}
	if (spec.is_b && accepted)
		expect_three(e->eq_b);
	if (spec.is_b)
		EXPECT_DROPS(before + (accepted ? 0 : 3));
	spec_barrier();
	SILENCE(e->eq_a);
	SILENCE(e->eq_b);
}

STATEMENT(158, index_bounds)
{
	ptl_ac_index_t most = (ptl_ac_index_t)spec.limits.max_ac_index;
	ptl_process_id_t any = spec_any();
	CHECK_OK(PtlACEntry(
		spec.ni, most, any, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
	CHECK_OK(PtlACEntry(spec.ni, 0, any, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
	const ptl_ac_index_t beyond[] = {most + 1, most + 1000, INT32_MAX, UINT32_MAX};
	for (int i = 0; i < 4; i++)
		CHECK_RC(PtlACEntry(spec.ni, beyond[i], any, PTL_UID_ANY, PTL_JID_ANY,
				 PTL_PT_INDEX_ANY),
			PTL_AC_INDEX_INVALID);
	ptl_handle_eq_t eq = spec_eq(4);
	const ptl_handle_any_t bad[] = {PTL_INVALID_HANDLE, eq, PTL_HANDLE_NONE, 0};
	for (int i = 0; i < 4; i++)
		CHECK_RC(PtlACEntry(bad[i], 0, any, PTL_UID_ANY, PTL_JID_ANY,
				 PTL_PT_INDEX_ANY),
			PTL_NI_INVALID);
}

static void request_with_last_entry(struct ends *e)
{
	ptl_ac_index_t most = (ptl_ac_index_t)spec.limits.max_ac_index;
	if (spec.is_b) {
		offer_ends(e, SPEC_PT);
		CHECK_OK(PtlACEntry(
			spec.ni, most, spec_any(), PTL_UID_ANY, PTL_JID_ANY, SPEC_PT));
	}
	try_through(e, SPEC_PT, most, true);
}

STATEMENT(159, portal_index_bounds)
{
	ptl_pt_index_t most = (ptl_pt_index_t)spec.limits.max_pt_index;
	ptl_process_id_t any = spec_any();
	CHECK_OK(PtlACEntry(spec.ni, entry, any, PTL_UID_ANY, PTL_JID_ANY, 0));
	CHECK_OK(PtlACEntry(spec.ni, entry, any, PTL_UID_ANY, PTL_JID_ANY, most));
	CHECK_OK(PtlACEntry(
		spec.ni, entry, any, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
	const ptl_pt_index_t beyond[] = {most + 1, INT32_MAX, PTL_PT_INDEX_ANY - 1};
	for (int i = 0; i < 3; i++)
		CHECK_RC(PtlACEntry(spec.ni, 0, any, PTL_UID_ANY, PTL_JID_ANY, beyond[i]),
			PTL_PT_INDEX_INVALID);
	struct ends e = ends(); /* entry 0 is unchanged */
	if (spec.is_b)
		offer_ends(&e, most);
	try_through(&e, most, 0, true);
	request_with_last_entry(&e);
}

STATEMENT(160, entry_0_admits_the_same_user_everywhere)
{
	struct ends e = ends();
	ptl_pt_index_t most = (ptl_pt_index_t)spec.limits.max_pt_index;
	for (ptl_pt_index_t pt = 0; spec.is_b && pt <= most; pt++)
		offer_ends(&e, pt);
	spec_barrier();
	for (ptl_pt_index_t pt = 0; pt <= most; pt++) {
		if (spec.is_a) {
			request_all(&e, pt, 0);
			count_answers(&e, true);
		}
		if (spec.is_b)
			expect_three(e.eq_b);
		spec_barrier();
	}
	if (spec.is_b)
		EXPECT_DROPS(0);
}

static void admit(ptl_process_id_t id, ptl_uid_t uid, ptl_jid_t jid, ptl_pt_index_t pt)
{
	if (spec.is_b)
		allow(id, uid, jid, pt);
}

STATEMENT(161, another_uid_is_rejected)
{
	struct ends e = ends();
	ptl_uid_t uid = own_uid();
	const ptl_uid_t other[] = {uid + 1, uid ^ 0x10000u};
	if (spec.is_b)
		offer_ends(&e, SPEC_PT);
	for (int i = 0; i < 2; i++) {
		admit(spec_any(), other[i], PTL_JID_ANY, PTL_PT_INDEX_ANY);
		try_through(&e, SPEC_PT, entry, false);
		try_through(&e, SPEC_PT, 0, true);
		admit(spec_any(), uid, PTL_JID_ANY, PTL_PT_INDEX_ANY);
		try_through(&e, SPEC_PT, entry, true);
	}
}

STATEMENT(162, another_nid_pid_or_jid_is_rejected)
{
	struct ends e = ends();
	ptl_process_id_t id = spec.a, nid = id, pid = id;
	nid.nid++;
	pid.pid++;
	ptl_process_id_t nid_any_pid = {nid.nid, PTL_PID_ANY};
	ptl_process_id_t pid_any_nid = {PTL_NID_ANY, pid.pid};
	ptl_process_id_t both = {nid.nid, pid.pid};
	const ptl_process_id_t wrong[] = {nid, pid, nid_any_pid, pid_any_nid, both};
	if (spec.is_b)
		offer_ends(&e, SPEC_PT);
	for (int i = 0; i < 5; i++) {
		admit(wrong[i], PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY);
		try_through(&e, SPEC_PT, entry, false);
	}
	admit(id, PTL_UID_ANY, own_jid() + 1, PTL_PT_INDEX_ANY);
	try_through(&e, SPEC_PT, entry, false);
	admit(id, PTL_UID_ANY, own_jid(), PTL_PT_INDEX_ANY);
	try_through(&e, SPEC_PT, entry, true);
}

STATEMENT(163, an_entry_for_one_portal_rejects_others)
{
	struct ends e = ends();
	for (ptl_pt_index_t pt = SPEC_PT - 1; spec.is_b && pt <= SPEC_PT + 1; pt++)
		offer_ends(&e, pt);
	admit(spec_any(), PTL_UID_ANY, PTL_JID_ANY, SPEC_PT);
	try_through(&e, SPEC_PT - 1, entry, false);
	try_through(&e, SPEC_PT + 1, entry, false);
	try_through(&e, SPEC_PT, entry, true);
}

/* Each member is the right value, or a wildcard: all 32 combinations. */
STATEMENT(164, wildcards_accept)
{
	struct ends e = ends();
	if (spec.is_b)
		offer_ends(&e, SPEC_PT);
	for (unsigned way = 0; way < 32; way++) {
		ptl_process_id_t id = {way & 1 ? PTL_NID_ANY : spec.a.nid,
			way & 2 ? PTL_PID_ANY : spec.a.pid};
		admit(id, way & 4 ? PTL_UID_ANY : own_uid(),
			way & 8 ? PTL_JID_ANY : own_jid(),
			way & 16 ? PTL_PT_INDEX_ANY : SPEC_PT);
		spec_barrier();
		if (spec.is_a) {
			request_all(&e, SPEC_PT, entry);
			count_answers(&e, true);
		}
		if (spec.is_b)
			expect_three(e.eq_b);
		spec_barrier();
	}
	if (spec.is_b)
		EXPECT_DROPS(0);
}

STATEMENT(165, an_entry_beyond_the_table_drops)
{
	struct ends e = ends();
	ptl_ac_index_t most = (ptl_ac_index_t)spec.limits.max_ac_index;
	const ptl_ac_index_t beyond[] = {most + 1, 256, 65536, INT32_MAX, UINT32_MAX};
	if (spec.is_b) {
		offer_ends(&e, SPEC_PT);
		for (ptl_ac_index_t i = 0; i <= most; i++)
			CHECK_OK(PtlACEntry(spec.ni, i, spec_any(), PTL_UID_ANY,
				PTL_JID_ANY, PTL_PT_INDEX_ANY));
	}
	for (int i = 0; i < 5; i++)
		if (beyond[i] > most)
			try_through(&e, SPEC_PT, beyond[i], false);
	try_through(&e, SPEC_PT, most, true);
}

STATEMENT(166, a_rejected_request_leaves_no_trace)
{
	struct ends e = ends();
	ptl_md_t md = spec_md(e.bytes, LENGTH, PUT_GET_AT, e.eq_b);
	ptl_handle_md_t target = PTL_INVALID_HANDLE;
	if (spec.is_b) {
		target = attach_all(SPEC_PT, with_threshold(md, 3));
		ptl_process_id_t other = {spec.a.nid, spec.a.pid + 1};
		allow(other, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY);
	}
	for (int i = 0; i < 3; i++)
		try_through(&e, SPEC_PT, entry, false);
	if (spec.is_b) {
		ptl_md_t now = query(target);
		CHECK_EQ(now.threshold, 3);
		CHECK_ZERO(e.bytes, LENGTH);
	}
	try_through(&e, SPEC_PT, 0, true);
	if (spec.is_b) {
		ptl_md_t now = query(target);
		CHECK_EQ(now.threshold, 0);
		CHECK_BYTES(e.bytes, 0, LENGTH, 1);
	}
	if (spec.is_a)
		CHECK_BYTES(e.got, 0, LENGTH, 1);
}

/* Close the table; with one node one entry, the last, must stay open. */
static void close_table(void)
{
	ptl_ac_index_t open = (ptl_ac_index_t)spec.limits.max_ac_index;
	ptl_process_id_t other = {spec.b.nid + 7, spec.b.pid + 7};
	for (ptl_ac_index_t i = 0; i <= open; i++)
		if (!spec.is_b || i != open)
			CHECK_OK(PtlACEntry(
				spec.ni, i, other, own_uid() + 1, own_jid() + 1, 0));
		else
			CHECK_OK(PtlACEntry(spec.ni, i, spec_any(), PTL_UID_ANY,
				PTL_JID_ANY, PTL_PT_INDEX_ANY));
}

STATEMENT(167, acks_and_replies_are_not_checked)
{
	struct ends e = ends();
	close_table();
	if (spec.is_b)
		offer_ends(&e, SPEC_PT);
	for (int i = 0; i < 5; i++)
		try_through(&e, SPEC_PT, (ptl_ac_index_t)spec.limits.max_ac_index, true);
	CHECK_EQ(spec_drops(), 0);
}

STATEMENT(168, a_change_holds_for_later_requests)
{
	enum { ROUNDS = 300 };
	struct ends e = ends();
	if (spec.is_b)
		offer_ends(&e, SPEC_PT);
	uint64_t drops = 0;
	for (int i = 0; i < ROUNDS; i++) {
		bool open = mix((uint64_t)i) & 1;
		admit(spec_any(), own_uid() + !open, PTL_JID_ANY, PTL_PT_INDEX_ANY);
		spec_barrier();
		if (spec.is_a) {
			request_all(&e, SPEC_PT, entry);
			count_answers(&e, open);
		}
		if (spec.is_b && open)
			expect_three(e.eq_b);
		drops += open ? 0 : 3;
		while (spec.is_b && spec_drops() < drops)
			;
		spec_barrier();
	}
	if (spec.is_b)
		EXPECT_DROPS(drops);
	SILENCE(e.eq_a);
	SILENCE(e.eq_b);
}
