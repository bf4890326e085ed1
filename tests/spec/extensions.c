/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements 265 to 267: extensions. */
#include "fields.h"

#include <string.h>

static ptl_sr_value_t reg(ptl_sr_index_t i)
{
	ptl_sr_value_t value;
	CHECK_OK(PtlNIStatus(spec.ni, i, &value));
	return value;
}

static int post_rc(
	struct takers *t, ptl_handle_me_t base, ptl_handle_me_t *me, ptl_handle_md_t *md)
{
	return PtlMEMDPost(spec.ni, base, spec_any(), SPEC_BITS, 0, PTL_RETAIN,
		PTL_INS_BEFORE, takers_md(t, 'p', 1), PTL_RETAIN, me, md, t->eq);
}

/* B: try to post while the queue holds an event. */
static void post_in_vain(struct takers *t, ptl_handle_me_t base)
{
	ptl_sr_value_t mes = reg(PTL_SR_MES_CUR), mds = reg(PTL_SR_MDS_CUR);
	ptl_handle_me_t me = SPEC_JUNK;
	ptl_handle_md_t md = SPEC_JUNK;
	for (int i = 0; i < spec.limits.max_mes + 10; i++)
		CHECK_RC(post_rc(t, base, &me, &md), PTL_MD_NO_UPDATE);
	CHECK_EQ(me, SPEC_JUNK);
	CHECK_EQ(md, SPEC_JUNK);
	CHECK_EQ(reg(PTL_SR_MES_CUR), mes);
	CHECK_EQ(reg(PTL_SR_MDS_CUR), mds);
}

STATEMENT(265, refused_post_leaves_nothing)
{
	ptl_ni_limits_t few = {.max_mes = 100, .max_mds = 100, .max_me_list = 100};
	spec_up(&few);
	struct takers t = takers(), other = takers();
	ptl_handle_me_t base = 0, me;
	ptl_handle_md_t md;
	if (spec.is_b) {
		base = spec_me(0);
		(void)offer(&t, base, 'b', PTL_MD_THRESH_INF);
		(void)offer(&other, spec_me(SPEC_BITS), 'z', 1);
	}
	spec_barrier();
	if (spec.is_a)
		CHECK_OK(PtlPut(t.put, PTL_NO_ACK_REQ, spec.b, SPEC_PT, 0, 0, 0, 0));
	if (spec.is_b) {
		ptl_event_t ev;
		while (PtlEQPeek(t.eq, &ev) == PTL_EQ_EMPTY)
			;
		post_in_vain(&t, base);
	}
	EXPECT_TAKERS(&other, SPEC_BITS, "z-"); /* no entry of this test is in the way */
	if (spec.is_b) {
		(void)EXPECT(t.eq, PTL_EVENT_PUT_END);
		CHECK_OK(post_rc(&t, base, &me, &md));
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "p-");
}

static unsigned handled;

static void count_event(ptl_event_t *ev)
{
	(void)ev;
	handled++;
}

/* B: see each numbered event twice and take it once. */
static void peek_and_get(ptl_handle_eq_t eq, unsigned n)
{
	ptl_event_t peeked, again, got;
	for (unsigned i = 0; i < n; i++) {
		int rc;
		while ((rc = PtlEQPeek(eq, &peeked)) == PTL_EQ_EMPTY)
			;
		CHECK_OK(rc);
		CHECK_OK(PtlEQPeek(eq, &again));
		CHECK_EQ(handled, i);
		CHECK_OK(PtlEQGet(eq, &got));
		CHECK_EQ(handled, i + 1);
		CHECK_EQ(got.hdr_data, i);
		CHECK_EQ(peeked.sequence, got.sequence);
		CHECK_EQ(again.sequence, got.sequence);
		CHECK_EQ(peeked.hdr_data, got.hdr_data);
		CHECK_EQ(peeked.type, got.type);
		CHECK_EQ(peeked.mlength, got.mlength);
		CHECK_EQ(peeked.md_handle, got.md_handle);
	}
	CHECK_RC(PtlEQPeek(eq, &peeked), PTL_EQ_EMPTY);
}

static void peek_badly(void)
{
	ptl_event_t ev;
	CHECK_RC(PtlEQPeek(PTL_EQ_NONE, &ev), PTL_EQ_INVALID);
	CHECK_RC(PtlEQPeek(SPEC_JUNK, &ev), PTL_EQ_INVALID);
	CHECK_RC(PtlEQPeek(spec_eq(4), NULL), PTL_SEGV);
	CHECK_RC(PtlEQPeek(spec_eq(4), &ev), PTL_EQ_EMPTY);
}

/* After an overflow both calls report that events are lost. */
static void peek_at_losses(struct takers *t)
{
	ptl_handle_eq_t eq = spec_eq(2);
	if (spec.is_b) {
		ptl_md_t md = takers_md(t, 'x', PTL_MD_THRESH_INF);
		md.eq_handle = eq;
		(void)spec_target(2, md);
		t->eq = spec_eq(64);
		(void)offer(t, spec_me(3), 'f', 1);
	}
	spec_barrier();
	for (unsigned i = 0; spec.is_a && i < 600; i++)
		spec_put(t->put, PTL_NO_ACK_REQ, 2);
	EXPECT_TAKERS(t, 3, "f"); /* a put behind all these: their events are posted */
	if (spec.is_b) {
		ptl_event_t peeked, got;
		CHECK_RC(PtlEQPeek(eq, &peeked), PTL_EQ_DROPPED);
		CHECK_RC(PtlEQGet(eq, &got), PTL_EQ_DROPPED);
		CHECK_EQ(peeked.sequence, got.sequence);
		CHECK_RC(PtlEQPeek(eq, &peeked), PTL_OK);
	}
	spec_barrier();
}

STATEMENT(266, peek_takes_nothing)
{
	enum { N = 20 };
	struct takers t = takers();
	ptl_handle_eq_t eq;
	handled = 0;
	peek_badly();
	CHECK_OK(PtlEQAlloc(spec.ni, N, count_event, &eq));
	if (spec.is_b) {
		ptl_md_t md = takers_md(&t, 'x', PTL_MD_THRESH_INF);
		md.eq_handle = eq;
		(void)spec_target(1, md);
	}
	spec_barrier();
	for (unsigned i = 0; spec.is_a && i < N; i++)
		CHECK_OK(PtlPut(t.put, PTL_NO_ACK_REQ, spec.b, SPEC_PT, 0, 1, 0, i));
	if (spec.is_b)
		peek_and_get(eq, N);
	spec_barrier();
	peek_at_losses(&t);
}

extern const char *ptl_event_str[];

#define NAMED(table, name) CHECK(strcmp(table[name], #name) == 0)

static void check_error_names(void)
{
	NAMED(ptl_err_str, PTL_OK);
	NAMED(ptl_err_str, PTL_AC_INDEX_INVALID);
	NAMED(ptl_err_str, PTL_EQ_DROPPED);
	NAMED(ptl_err_str, PTL_EQ_EMPTY);
	NAMED(ptl_err_str, PTL_EQ_INVALID);
	NAMED(ptl_err_str, PTL_FAIL);
	NAMED(ptl_err_str, PTL_HANDLE_INVALID);
	NAMED(ptl_err_str, PTL_IFACE_INVALID);
	NAMED(ptl_err_str, PTL_MD_ILLEGAL);
	NAMED(ptl_err_str, PTL_MD_INVALID);
	NAMED(ptl_err_str, PTL_MD_IN_USE);
	NAMED(ptl_err_str, PTL_MD_NO_UPDATE);
	NAMED(ptl_err_str, PTL_ME_INVALID);
	NAMED(ptl_err_str, PTL_ME_IN_USE);
	NAMED(ptl_err_str, PTL_ME_LIST_TOO_LONG);
	NAMED(ptl_err_str, PTL_NI_INVALID);
	NAMED(ptl_err_str, PTL_NO_INIT);
	NAMED(ptl_err_str, PTL_NO_SPACE);
	NAMED(ptl_err_str, PTL_PID_INVALID);
	NAMED(ptl_err_str, PTL_PROCESS_INVALID);
	NAMED(ptl_err_str, PTL_PT_FULL);
	NAMED(ptl_err_str, PTL_PT_INDEX_INVALID);
	NAMED(ptl_err_str, PTL_SEGV);
	NAMED(ptl_err_str, PTL_SR_INDEX_INVALID);
	NAMED(ptl_err_str, PTL_UNKNOWN_ERROR);
	NAMED(ptl_err_str, PTL_IFACE_DUP);
	NAMED(ptl_err_str, PTL_EQ_IN_USE);
	NAMED(ptl_err_str, PTL_VAL_FAILED);
	NAMED(ptl_err_str, PTL_PID_IN_USE);
	NAMED(ptl_err_str, PTL_NOT_IMPLEMENTED);
}

static void check_event_names(void)
{
	NAMED(ptl_event_str, PTL_EVENT_GET_START);
	NAMED(ptl_event_str, PTL_EVENT_GET_END);
	NAMED(ptl_event_str, PTL_EVENT_PUT_START);
	NAMED(ptl_event_str, PTL_EVENT_PUT_END);
	NAMED(ptl_event_str, PTL_EVENT_GETPUT_START);
	NAMED(ptl_event_str, PTL_EVENT_GETPUT_END);
	NAMED(ptl_event_str, PTL_EVENT_REPLY_START);
	NAMED(ptl_event_str, PTL_EVENT_REPLY_END);
	NAMED(ptl_event_str, PTL_EVENT_SEND_START);
	NAMED(ptl_event_str, PTL_EVENT_SEND_END);
	NAMED(ptl_event_str, PTL_EVENT_ACK);
	NAMED(ptl_event_str, PTL_EVENT_UNLINK);
}

/* The tables end with NULL, and values that are no code have a text, too. */
static void check_other_names(void)
{
	static const unsigned codes[] = {
		PTL_MAX_ERRNO, PTL_MAX_ERRNO + 1, UINT32_MAX, INT32_MAX};
	static const int kinds[] = {
		PTL_EVENT_UNLINK + 1, PTL_EVENT_UNLINK + 2, -1, INT32_MAX};
	NAMED(ptl_err_str, PTL_MAX_ERRNO);
	CHECK(!ptl_err_str[PTL_MAX_ERRNO + 1]);
	CHECK(!ptl_event_str[PTL_EVENT_UNLINK + 1]);
	for (int i = 0; i < 4; i++) {
		CHECK(strcmp(PtlErrorStr(codes[i]), "unknown return code") == 0);
		CHECK(strcmp(PtlEventKindStr((ptl_event_kind_t)kinds[i]),
			      "unknown event kind") == 0);
	}
	CHECK(strcmp(PtlNIFailStr(PTL_INVALID_HANDLE, PTL_NI_OK), "PTL_NI_OK") == 0);
	CHECK(strcmp(PtlNIFailStr(spec.ni, PTL_NI_FAIL), "PTL_NI_FAIL") == 0);
	CHECK(strcmp(PtlNIFailStr(0, PTL_NI_FAIL + 1), "unknown failure type") == 0);
	CHECK(strcmp(PtlNIFailStr(0, UINT32_MAX), "unknown failure type") == 0);
}

STATEMENT(267, names_of_codes)
{
	check_other_names();
	check_error_names();
	check_event_names();
	for (int i = 0; i < PTL_MAX_ERRNO; i++)
		CHECK(strcmp(PtlErrorStr((unsigned)i), ptl_err_str[i]) == 0);
	for (int i = 0; i <= PTL_EVENT_UNLINK; i++)
		CHECK(strcmp(PtlEventKindStr((ptl_event_kind_t)i), ptl_event_str[i]) ==
			0);
}
