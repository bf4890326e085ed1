/* SPDX-License-Identifier: BSD-3-Clause */
/* Statements 86 to 114: PtlMDAttach, PtlMDBind, PtlMDUnlink. */
#include "fields.h"

#include <limits.h>
#include <string.h>

static char eight[8];

static ptl_md_t plain(void)
{
	return spec_md(eight, sizeof eight, PTL_MD_OP_PUT, PTL_EQ_NONE);
}

/* Attach to a new entry; remove the entry if this fails. */
static int attach_rc(ptl_md_t md)
{
	ptl_handle_me_t me = spec_me(SPEC_BITS);
	ptl_handle_md_t handle = SPEC_JUNK;
	int rc = PtlMDAttach(me, md, PTL_RETAIN, &handle);
	if (rc != PTL_OK) {
		CHECK_EQ(handle, SPEC_JUNK);
		CHECK_OK(PtlMEUnlink(me));
	}
	return rc;
}

static int bind_rc(ptl_md_t md)
{
	ptl_handle_md_t handle = SPEC_JUNK;
	int rc = PtlMDBind(spec.ni, md, PTL_RETAIN, &handle);
	if (rc != PTL_OK)
		CHECK_EQ(handle, SPEC_JUNK);
	return rc;
}

typedef int make_fn(ptl_md_t md);

/* ---- the ptl_md_t of both calls ---- */

static void check_start(make_fn *make)
{
	CHECK_OK(make(spec_md(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE)));
	CHECK_OK(make(spec_md(eight, 0, PTL_MD_OP_PUT, PTL_EQ_NONE)));
	CHECK_RC(make(spec_md(NULL, 1, PTL_MD_OP_PUT, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	CHECK_RC(make(spec_md(NULL, UINT64_MAX, 0, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
}

static void check_iovec(make_fn *make)
{
	ptl_size_t most = (ptl_size_t)spec.limits.max_md_iovecs;
	ptl_md_iovec_t *v = suite_alloc((most + 1) * sizeof *v);
	for (ptl_size_t i = 0; i <= most; i++)
		v[i] = (ptl_md_iovec_t){eight, 1};
	CHECK_OK(make(spec_md(v, most, PTL_MD_IOVEC, PTL_EQ_NONE)));
	CHECK_RC(make(spec_md(v, most + 1, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	CHECK_OK(make(spec_md(NULL, 0, PTL_MD_IOVEC, PTL_EQ_NONE)));
	CHECK_RC(make(spec_md(NULL, 1, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	v[1] = (ptl_md_iovec_t){NULL, 0};
	CHECK_OK(make(spec_md(v, 2, PTL_MD_IOVEC, PTL_EQ_NONE)));
	v[1] = (ptl_md_iovec_t){NULL, 1};
	CHECK_RC(make(spec_md(v, 2, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
}

static void check_overflow(make_fn *make)
{
	ptl_md_iovec_t v[2] = {{eight, 8}, {eight, UINT64_MAX - 4}};
	CHECK_RC(make(spec_md(eight, UINT64_MAX - 8, 0, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
	CHECK_RC(make(spec_md(v, 2, PTL_MD_IOVEC, PTL_EQ_NONE)), PTL_MD_ILLEGAL);
}

static void check_freed_queue(make_fn *make)
{
	ptl_md_t md = plain();
	md.eq_handle = spec_eq(4);
	CHECK_OK(PtlEQFree(md.eq_handle));
	CHECK_RC(make(md), PTL_EQ_INVALID);
	md.eq_handle = SPEC_JUNK;
	CHECK_RC(make(md), PTL_EQ_INVALID);
	md.eq_handle = PTL_INVALID_HANDLE;
	CHECK_RC(make(md), PTL_EQ_INVALID);
	md.eq_handle = spec_me(5);
	CHECK_RC(make(md), PTL_EQ_INVALID);
}

static void check_foreign_queue(make_fn *make)
{
	ptl_md_t md = plain();
	CHECK_OK(PtlEQAlloc(spec_second(), 4, PTL_EQ_HANDLER_NONE, &md.eq_handle));
	CHECK_RC(make(md), PTL_MD_ILLEGAL);
}

/* Make as many as allowed; then none; then one for each that is removed. */
static void check_most(make_fn *make)
{
	ptl_ni_limits_t few = {.max_mds = 100};
	spec_up(&few);
	ptl_handle_md_t one = spec_bind(plain(), PTL_RETAIN);
	for (int i = 1; i < spec.limits.max_mds; i++)
		CHECK_OK(make(plain()));
	CHECK_RC(make(plain()), PTL_NO_SPACE);
	for (int i = 0; i < 3; i++) {
		CHECK_OK(PtlMDUnlink(one));
		one = spec_bind(plain(), PTL_RETAIN);
		CHECK_RC(make(plain()), PTL_NO_SPACE);
	}
}

/* ---- PtlMDAttach ---- */

static void attach_to_nothing(ptl_handle_any_t me)
{
	ptl_handle_md_t md = SPEC_JUNK;
	CHECK_RC(PtlMDAttach(me, plain(), PTL_RETAIN, &md), PTL_ME_INVALID);
	CHECK_EQ(md, SPEC_JUNK);
}

STATEMENT(86, entries_that_take_none)
{
	ptl_handle_me_t me = spec_me(1), gone = spec_me(2);
	ptl_handle_md_t md = SPEC_JUNK, other = SPEC_JUNK;
	CHECK_OK(PtlMEUnlink(gone));
	attach_to_nothing(gone);
	attach_to_nothing(PTL_INVALID_HANDLE);
	attach_to_nothing(SPEC_JUNK);
	attach_to_nothing(spec.ni);
	attach_to_nothing(spec_eq(4));
	CHECK_OK(PtlMDAttach(me, plain(), PTL_RETAIN, &md));
	CHECK_RC(PtlMDAttach(me, plain(), PTL_RETAIN, &other), PTL_ME_IN_USE);
	CHECK_RC(PtlMDAttach(me, plain(), PTL_UNLINK, NULL), PTL_ME_IN_USE);
	CHECK_EQ(other, SPEC_JUNK);
	CHECK_OK(PtlMDUnlink(md));
	CHECK_OK(PtlMDAttach(me, plain(), PTL_RETAIN, &md));
}

STATEMENT(87, no_queue_on_each_interface)
{
	ptl_handle_ni_t ni[2] = {spec.ni, spec_second()};
	for (int i = 0; i < 2; i++) {
		ptl_handle_me_t me;
		ptl_handle_md_t md;
		CHECK_OK(PtlMEAttach(ni[i], SPEC_PT, spec_any(), 0, 0, PTL_RETAIN,
			PTL_INS_AFTER, &me));
		CHECK_OK(PtlMDAttach(me, plain(), PTL_RETAIN, &md));
		CHECK_OK(PtlMDBind(ni[i], plain(), PTL_RETAIN, &md));
	}
}

STATEMENT(88, attach_with_a_freed_queue)
{
	check_freed_queue(attach_rc);
}

STATEMENT(89, attach_with_a_foreign_queue)
{
	check_foreign_queue(attach_rc);
}

STATEMENT(90, attach_with_no_memory)
{
	check_start(attach_rc);
}

STATEMENT(91, attach_with_too_many_pieces)
{
	check_iovec(attach_rc);
}

/* A puts length bytes of pattern 1; the barriers are inside. */
static void put_pattern(size_t length)
{
	spec_barrier();
	if (spec.is_a) {
		unsigned char *from = suite_alloc(length);
		ptl_handle_eq_t eq = spec_eq(8);
		fill_bytes(from, length, 1);
		spec_put(spec_bind(spec_md(from, length, PTL_MD_EVENT_START_DISABLE, eq),
				 PTL_RETAIN),
			PTL_ACK_REQ, SPEC_BITS);
		(void)EXPECT(eq, PTL_EVENT_SEND_END);
		(void)EXPECT(eq, PTL_EVENT_ACK);
	}
}

STATEMENT(92, pieces_are_copied)
{
	unsigned char *b = suite_alloc(100), wrong[100] = {0};
	ptl_md_iovec_t v[3] = {{b, 10}, {b + 40, 30}, {b + 10, 30}};
	ptl_handle_eq_t eq = spec_eq(8);
	if (spec.is_b) {
		(void)spec_target(SPEC_BITS,
			spec_md(v, 3,
				PTL_MD_OP_PUT | PTL_MD_IOVEC | PTL_MD_EVENT_START_DISABLE,
				eq));
		for (int i = 0; i < 3; i++)
			v[i] = (ptl_md_iovec_t){wrong, sizeof wrong};
	}
	put_pattern(70);
	if (spec.is_b) {
		(void)EXPECT(eq, PTL_EVENT_PUT_END);
		CHECK_BYTES(b, 0, 10, 1);
		CHECK_BYTES(b + 40, 10, 30, 1);
		CHECK_BYTES(b + 10, 40, 30, 1);
		CHECK_ZERO(b + 70, 30);
		CHECK_ZERO(wrong, sizeof wrong);
	}
	spec_barrier();
}

STATEMENT(93, description_is_copied)
{
	unsigned char *b = suite_alloc(100);
	ptl_handle_eq_t eq = spec_eq(8);
	if (spec.is_b) {
		ptl_md_t md =
			spec_md(b, 50, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq);
		ptl_handle_md_t handle = spec_target(SPEC_BITS, md);
		memset(&md, 0xff, sizeof md);
		CHECK_OK(PtlMDUpdate(handle, &md, NULL, PTL_EQ_NONE));
		CHECK(md.start == b && md.length == 50 && md.eq_handle == eq);
		memset(&md, 0, sizeof md);
	}
	put_pattern(50);
	if (spec.is_b) {
		ptl_event_t ev = EXPECT(eq, PTL_EVENT_PUT_END);
		CHECK(ev.md.start == b && ev.md.length == 50);
		CHECK_BYTES(b, 0, 50, 1);
	}
	spec_barrier();
}

WEAK_STATEMENT(94, attach_without_a_handle)
{
	struct takers t = takers();
	if (spec.is_b)
		CHECK_OK(PtlMDAttach(
			spec_me(SPEC_BITS), takers_md(&t, 'x', 1), PTL_RETAIN, NULL));
	EXPECT_TAKERS(&t, SPEC_BITS, "x-");
}

STATEMENT(95, most_descriptors)
{
	check_most(attach_rc);
}

STATEMENT(96, threshold_0_is_inactive)
{
	struct takers t = takers();
	ptl_handle_me_t me = 0;
	ptl_handle_md_t md = 0;
	if (spec.is_b) {
		me = spec_me(SPEC_BITS);
		CHECK_OK(PtlMDAttach(me, takers_md(&t, 'x', 0), PTL_UNLINK, &md));
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "--");
	if (spec.is_b) {
		SILENCE(t.eq);
		CHECK_RC(PtlMDAttach(me, plain(), PTL_RETAIN, NULL), PTL_ME_IN_USE);
		CHECK_OK(PtlMDUnlink(md));
		(void)offer(&t, me, 'y', 1);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "y-");
}

STATEMENT(97, unlinked_after_one)
{
	struct takers t = takers();
	ptl_handle_me_t me = 0;
	ptl_handle_md_t md = 0;
	if (spec.is_b) {
		me = spec_me(SPEC_BITS);
		CHECK_OK(PtlMDAttach(me, takers_md(&t, 'x', 1), PTL_UNLINK, &md));
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "x");
	if (spec.is_b) {
		ptl_event_t ev = EXPECT(t.eq, PTL_EVENT_UNLINK);
		CHECK_EQ(ev.md_handle, md);
		CHECK_RC(PtlMDUnlink(md), PTL_MD_INVALID);
		(void)offer(&t, me, 'y', 1);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "y-");
}

STATEMENT(98, odd_start_and_length)
{
	static const size_t lengths[] = {1, 3, 17, 63, 4097, 100003};
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		size_t n = lengths[i], off = 1 + 2 * (i % 4);
		unsigned char *b = suite_alloc(n + 16);
		ptl_handle_eq_t eq = spec_eq(8);
		ptl_handle_md_t md = 0;
		if (spec.is_b)
			md = spec_target(SPEC_BITS,
				spec_md(b + off, n,
					PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, eq));
		put_pattern(n);
		if (spec.is_b) {
			CHECK_EQ(EXPECT(eq, PTL_EVENT_PUT_END).mlength, n);
			CHECK_ZERO(b, off);
			CHECK_BYTES(b + off, 0, n, 1);
			CHECK_ZERO(b + off + n, 16 - off);
			CHECK_OK(PtlMDUnlink(md));
		}
		spec_barrier();
	}
}

/* A: send each kind of request. */
static void request_each(ptl_handle_md_t md)
{
	spec_put(md, PTL_ACK_REQ, SPEC_BITS);
	spec_get(md, SPEC_BITS);
	CHECK_OK(PtlGetPut(md, md, spec.b, SPEC_PT, 0, SPEC_BITS, 0, 0));
}

STATEMENT(99, no_operation_allowed)
{
	unsigned char *b = suite_alloc(8);
	ptl_handle_eq_t eq = spec_eq(16), sent = spec_eq(16);
	fill_bytes(b, 8, 3);
	offer_at_b(SPEC_BITS, spec_md(b, 8, 0, eq));
	if (spec.is_a) {
		unsigned char *from = suite_alloc(8);
		request_each(spec_bind(
			spec_md(from, 8, PTL_MD_EVENT_START_DISABLE, sent), PTL_RETAIN));
		(void)EXPECT(sent, PTL_EVENT_SEND_END);
		(void)EXPECT(sent, PTL_EVENT_SEND_END);
	}
	if (spec.is_b) {
		EXPECT_DROPS(3);
		SILENCE(eq);
		CHECK_BYTES(b, 0, 8, 3);
	}
	SILENCE(sent);
	spec_barrier();
}

/* ---- PtlMDBind ---- */

STATEMENT(100, bad_calls_of_bind)
{
	ptl_handle_md_t md = SPEC_JUNK;
	CHECK_RC(PtlMDBind(spec.ni, plain(), PTL_RETAIN, NULL), PTL_SEGV);
	CHECK_RC(PtlMDBind(PTL_INVALID_HANDLE, plain(), PTL_RETAIN, &md), PTL_NI_INVALID);
	CHECK_RC(PtlMDBind(SPEC_JUNK, plain(), PTL_RETAIN, &md), PTL_NI_INVALID);
	CHECK_RC(PtlMDBind(spec_eq(4), plain(), PTL_RETAIN, &md), PTL_NI_INVALID);
	CHECK_EQ(md, SPEC_JUNK);
}

STATEMENT(101, bind_and_attach_agree)
{
	check_start(bind_rc);
	check_iovec(bind_rc);
	check_overflow(bind_rc);
	check_overflow(attach_rc);
	check_freed_queue(bind_rc);
	check_foreign_queue(bind_rc);
	check_most(bind_rc);
}

STATEMENT(102, bound_is_out_of_reach)
{
	struct takers t = takers();
	if (spec.is_b) {
		ptl_md_t md = takers_md(&t, 'x', PTL_MD_THRESH_INF);
		(void)spec_bind(md, PTL_RETAIN);
		(void)spec_me(SPEC_BITS);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "-");
	EXPECT_TAKERS(&t, 0, "-");
	if (spec.is_b)
		SILENCE(t.eq);
}

static ptl_handle_md_t bind_once(ptl_handle_eq_t eq, ptl_unlink_t unlink)
{
	ptl_md_t md = spec_md(eight, sizeof eight, 0, eq);
	md.threshold = 1;
	return spec_bind(md, unlink);
}

STATEMENT(103, bound_unlinks_itself)
{
	ptl_handle_eq_t eq = spec_eq(16);
	if (spec.is_a) {
		ptl_handle_md_t md = bind_once(eq, PTL_UNLINK);
		spec_put(md, PTL_NO_ACK_REQ, SPEC_BITS);
		(void)EXPECT(eq, PTL_EVENT_SEND_START);
		(void)EXPECT(eq, PTL_EVENT_SEND_END);
		CHECK_EQ(EXPECT(eq, PTL_EVENT_UNLINK).md_handle, md);
		CHECK_RC(PtlMDUnlink(md), PTL_MD_INVALID);
		SILENCE(eq);
	}
}

WEAK_STATEMENT(104, bound_and_used_up)
{
	ptl_handle_eq_t eq = spec_eq(16);
	if (spec.is_a) {
		ptl_handle_md_t md = bind_once(eq, PTL_RETAIN);
		spec_put(md, PTL_NO_ACK_REQ, SPEC_BITS);
		(void)EXPECT(eq, PTL_EVENT_SEND_START);
		(void)EXPECT(eq, PTL_EVENT_SEND_END);
		CHECK_RC(PtlPut(md, PTL_NO_ACK_REQ, spec.b, SPEC_PT, 0, 0, 0, 0),
			PTL_MD_INVALID);
		SILENCE(eq);
		CHECK_OK(PtlMDUnlink(md));
	}
}

/* ---- PtlMDUnlink ---- */

STATEMENT(105, unlinked_handle)
{
	ptl_handle_md_t md[2];
	CHECK_OK(PtlMDAttach(spec_me(1), plain(), PTL_RETAIN, &md[0]));
	md[1] = spec_bind(plain(), PTL_UNLINK);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(PtlMDUnlink(md[i]));
		CHECK_RC(PtlMDUnlink(md[i]), PTL_MD_INVALID);
		CHECK_RC(PtlMDUpdate(md[i], NULL, NULL, PTL_EQ_NONE), PTL_MD_INVALID);
		CHECK_RC(PtlPut(md[i], PTL_NO_ACK_REQ, spec.b, SPEC_PT, 0, 0, 0, 0),
			PTL_MD_INVALID);
	}
	CHECK_RC(PtlMDUnlink(PTL_INVALID_HANDLE), PTL_MD_INVALID);
	CHECK_RC(PtlMDUnlink(SPEC_JUNK), PTL_MD_INVALID);
	CHECK_RC(PtlMDUnlink(spec.ni), PTL_MD_INVALID);
}

STATEMENT(106, entry_of_an_unlinked_one)
{
	struct takers t = takers();
	if (spec.is_b) {
		ptl_handle_me_t goes, stays = spec_me(SPEC_BITS);
		ptl_handle_md_t md;
		CHECK_OK(PtlMEAttach(spec.ni, SPEC_PT, spec_any(), SPEC_BITS, 0,
			PTL_UNLINK, PTL_INS_AFTER, &goes));
		CHECK_OK(PtlMDUnlink(offer(&t, goes, 'g', 1)));
		CHECK_RC(PtlMDAttach(goes, plain(), PTL_RETAIN, &md), PTL_ME_INVALID);
		CHECK_RC(PtlMEUnlink(goes), PTL_ME_INVALID);
		CHECK_OK(PtlMDUnlink(offer(&t, stays, 's', 1)));
		(void)offer(&t, stays, 'S', 1);
	}
	EXPECT_TAKERS(&t, SPEC_BITS, "S-");
}

STATEMENT(107, no_event_of_unlinking)
{
	struct takers t = takers();
	ptl_handle_md_t md = 0;
	if (spec.is_b)
		CHECK_OK(PtlMDAttach(
			spec_me(SPEC_BITS), takers_md(&t, 'x', 5), PTL_UNLINK, &md));
	EXPECT_TAKERS(&t, SPEC_BITS, "x");
	if (spec.is_b) {
		CHECK_OK(PtlMDUnlink(md));
		CHECK_OK(PtlMDUnlink(spec_bind(takers_md(&t, 'y', 1), PTL_UNLINK)));
		SILENCE(t.eq);
	}
}

static int unlink_md(struct long_put *p)
{
	return PtlMDUnlink(p->md);
}

STATEMENT(108, unlink_during_a_long_put)
{
	long_put_try(unlink_md);
}

/* A: unlink a descriptor that is sending; return true if this was refused at first. */
static bool unlink_while_sending(unsigned seed)
{
	ptl_handle_eq_t eq = spec_eq(16);
	unsigned char *from = suite_alloc(LONG_PUT_LENGTH);
	long_put_fill(from, seed);
	ptl_handle_md_t md =
		spec_bind(spec_md(from, LONG_PUT_LENGTH, PTL_MD_EVENT_START_DISABLE, eq),
			PTL_RETAIN);
	spec_put(md, PTL_NO_ACK_REQ, SPEC_BITS);
	int rc = PtlMDUnlink(md);
	if (rc == PTL_OK) {
		long_put_fill(from, seed + 1);
		return false;
	}
	CHECK_RC(rc, PTL_MD_IN_USE);
	(void)EXPECT(eq, PTL_EVENT_SEND_END);
	CHECK_OK(PtlMDUnlink(md));
	long_put_fill(from, seed + 1);
	return true;
}

STATEMENT(109, unlink_of_what_is_being_sent)
{
	bool refused = false;
	for (unsigned i = 0; i < LONG_PUT_TRIES; i++) {
		struct long_put p = {0};
		if (spec.is_b)
			p = long_put_target();
		spec_barrier();
		if (spec.is_a)
			refused |= unlink_while_sending(i);
		if (spec.is_b) {
			(void)EXPECT(p.eq, PTL_EVENT_PUT_START);
			(void)EXPECT(p.eq, PTL_EVENT_PUT_END);
			long_put_check(p.bytes, i);
			CHECK_OK(PtlMEUnlink(p.me));
		}
		spec_barrier();
	}
	if (spec.is_a && !refused)
		spec_note("not observed: the data had been sent");
}

enum { ENDS = 30, END_LENGTH = 300000 };

static const ptl_size_t end_lengths[] = {8, 3000, END_LENGTH};

/* A: unlink each descriptor when its END has just been read. */
static void unlink_at_ends_of_a(unsigned char *bytes, ptl_size_t length)
{
	ptl_handle_eq_t eq = spec_eq(16);
	ptl_md_t desc = spec_md(bytes, length, PTL_MD_EVENT_START_DISABLE, eq);
	ptl_handle_md_t md = spec_bind(desc, PTL_RETAIN);
	spec_put(md, PTL_NO_ACK_REQ, 1);
	(void)EXPECT(eq, PTL_EVENT_SEND_END);
	CHECK_OK(PtlMDUnlink(md));
	md = spec_bind(desc, PTL_RETAIN);
	spec_get(md, 2);
	(void)EXPECT(eq, PTL_EVENT_REPLY_END);
	CHECK_OK(PtlMDUnlink(md));
	md = spec_bind(desc, PTL_RETAIN);
	spec_put(md, PTL_ACK_REQ, 3);
	while (NEXT(eq).type != PTL_EVENT_ACK)
		;
	if (PtlMDUnlink(md) != PTL_OK)
		spec_note("in use although the ACK was there");
}

static void unlink_at_ends_of_b(ptl_handle_eq_t eq)
{
	for (int i = 0; i < 3; i++) {
		ptl_event_t ev = NEXT(eq);
		CHECK(ev.type == PTL_EVENT_PUT_END || ev.type == PTL_EVENT_GET_END);
		CHECK_OK(PtlMDUnlink(ev.md_handle));
	}
}

STATEMENT(110, unlink_at_the_end)
{
	unsigned char *bytes = suite_alloc(END_LENGTH), *from = suite_alloc(END_LENGTH);
	ptl_handle_eq_t eq = spec_eq(64);
	for (unsigned i = 0; i < ENDS; i++) {
		ptl_size_t length = end_lengths[i % 3];
		for (ptl_match_bits_t bits = 1; spec.is_b && bits <= 3; bits++)
			(void)spec_target(
				bits, spec_md(bytes, length,
					      PUT_GET | PTL_MD_EVENT_START_DISABLE, eq));
		spec_barrier();
		if (spec.is_a && !spec.is_b)
			unlink_at_ends_of_a(from, length);
		if (spec.is_b && !spec.is_a)
			unlink_at_ends_of_b(eq);
		if (spec.is_a && spec.is_b) {
			unlink_at_ends_of_a(from, length);
			unlink_at_ends_of_b(eq);
		}
		spec_barrier();
	}
}

STATEMENT(111, unlink_after_the_automatic_one)
{
	struct takers t = takers();
	ptl_handle_md_t md = 0;
	if (spec.is_b)
		CHECK_OK(PtlMDAttach(
			spec_me(SPEC_BITS), takers_md(&t, 'x', 1), PTL_UNLINK, &md));
	EXPECT_TAKERS(&t, SPEC_BITS, "x");
	if (spec.is_b) {
		(void)EXPECT(t.eq, PTL_EVENT_UNLINK);
		CHECK_RC(PtlMDUnlink(md), PTL_MD_INVALID);
	}
}

enum { LATE_TRIES = 30 };

/*
 * Return true if the peer's answer to an unlinked descriptor is dropped and counted; if
 * it had come before, its event is there.
 */
static bool is_dropped(ptl_handle_eq_t eq, ptl_event_kind_t last)
{
	ptl_event_t ev;
	uint64_t drops = spec_drops();
	while (PtlEQGet(eq, &ev) == PTL_OK)
		if (ev.type == last)
			return false;
	EXPECT_DROPS(drops + (drops == 0));
	SILENCE(eq);
	return true;
}

/* A: reset the counters. */
static void fresh_a(void)
{
	spec_up(NULL);
}

static bool unlink_before_ack(void)
{
	ptl_handle_eq_t eq = spec_eq(16);
	ptl_handle_md_t md = spec_bind(
		spec_md(eight, sizeof eight, PTL_MD_EVENT_START_DISABLE, eq), PTL_RETAIN);
	spec_put(md, PTL_ACK_REQ, SPEC_BITS);
	(void)EXPECT(eq, PTL_EVENT_SEND_END);
	CHECK_OK(PtlMDUnlink(md));
	return is_dropped(eq, PTL_EVENT_ACK);
}

static bool unlink_before_reply(void)
{
	ptl_handle_eq_t eq = spec_eq(16);
	unsigned char *to = suite_alloc(END_LENGTH);
	ptl_handle_md_t md = spec_bind(
		spec_md(to, END_LENGTH, PTL_MD_EVENT_START_DISABLE, eq), PTL_RETAIN);
	spec_get(md, SPEC_BITS);
	int rc = PtlMDUnlink(md);
	if (rc == PTL_MD_IN_USE) { /* the message is arriving */
		(void)EXPECT(eq, PTL_EVENT_REPLY_END);
		return false;
	}
	CHECK_OK(rc);
	bool dropped = is_dropped(eq, PTL_EVENT_REPLY_END);
	if (dropped)
		CHECK_ZERO(to, END_LENGTH);
	return dropped;
}

/* Repeat until the message was late once. */
static void unlink_and_wait(bool (*late)(void))
{
	bool seen = false;
	unsigned char *bytes = suite_alloc(END_LENGTH);
	memset(bytes, 1, END_LENGTH);
	if (spec.is_b && !spec.is_a)
		(void)spec_target(
			SPEC_BITS, spec_md(bytes, END_LENGTH, PUT_GET_AT, PTL_EQ_NONE));
	spec_barrier();
	for (int i = 0; spec.is_a && i < LATE_TRIES && !seen; i++) {
		fresh_a();
		if (spec.is_b)
			(void)spec_target(SPEC_BITS,
				spec_md(bytes, END_LENGTH, PUT_GET_AT, PTL_EQ_NONE));
		seen = late();
	}
	if (spec.is_a && !seen)
		spec_note("not observed: the message had come");
	spec_barrier();
}

WEAK_STATEMENT(112, late_ack)
{
	unlink_and_wait(unlink_before_ack);
}

WEAK_STATEMENT(113, late_reply)
{
	unlink_and_wait(unlink_before_reply);
}

enum { STREAM = 200, STREAM_LENGTH = 20000 };

/* B: after some puts unlink the descriptor, and check that memory changes no more. */
static void take_away(ptl_handle_md_t md, ptl_handle_eq_t eq, unsigned char *bytes)
{
	for (int i = 0; i < 20; i++)
		(void)EXPECT(eq, PTL_EVENT_PUT_END);
	int rc;
	while ((rc = PtlMDUnlink(md)) == PTL_MD_IN_USE)
		;
	CHECK_OK(rc);
	fill_bytes(bytes, STREAM_LENGTH, 9);
}

STATEMENT(114, memory_is_left_alone)
{
	unsigned char *bytes = suite_alloc(STREAM_LENGTH);
	ptl_handle_eq_t eq = spec_eq(1024);
	ptl_handle_md_t md = 0;
	if (spec.is_b)
		md = spec_target(
			SPEC_BITS, spec_md(bytes, STREAM_LENGTH,
					   PUT_AT | PTL_MD_EVENT_START_DISABLE, eq));
	spec_barrier();
	if (spec.is_a) {
		unsigned char *from = suite_alloc(STREAM_LENGTH);
		ptl_handle_md_t put = spec_bind(
			spec_md(from, STREAM_LENGTH, 0, PTL_EQ_NONE), PTL_RETAIN);
		for (int i = 0; i < STREAM; i++)
			spec_put(put, PTL_NO_ACK_REQ, SPEC_BITS);
	}
	if (spec.is_b)
		take_away(md, eq, bytes);
	spec_barrier();
	/* pause: time for a wrong write to show */
	sleep_ms(20);
	if (spec.is_b)
		CHECK_BYTES(bytes, 0, STREAM_LENGTH, 9);
	spec_barrier();
}
