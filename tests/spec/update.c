/* SPDX-License-Identifier: BSD-3-Clause */
/* PtlMDUpdate: statements 115 to 130. */
#include "fields.h"

#include <stdlib.h>

enum { ROOM = 256, LONGEST = 100000 };

/* Send length bytes of pattern seed; at the return B has taken or dropped them. */
static void send(ptl_size_t length, unsigned seed, ptl_match_bits_t bits)
{
	unsigned char *from = suite_alloc(length + 1);
	ptl_handle_eq_t eq = spec_eq(8);
	fill_bytes(from, length, seed);
	put_whole(eq, spec_bind(spec_md(from, length, 0, eq), PTL_RETAIN), PTL_NO_ACK_REQ,
		bits);
}

static void send_and_wait(ptl_size_t length, unsigned seed, ptl_match_bits_t bits)
{
	spec_barrier();
	if (spec.is_a)
		send(length, seed, bits);
}

/* B: check START and END of a put, which went to offset. */
static ptl_event_t arrived(ptl_handle_eq_t eq, ptl_size_t offset, ptl_size_t length)
{
	ptl_event_t end = EXPECT_PAIR(eq, PTL_EVENT_PUT_START);
	CHECK_EQ(end.offset, offset);
	CHECK_EQ(end.mlength, length);
	return end;
}

/* Make an event in a queue of this node, by a put to itself. */
static void deposit(ptl_handle_eq_t eq)
{
	ptl_handle_md_t md = spec_bind(spec_md(NULL, 0, 0, eq), PTL_RETAIN);
	ptl_event_t ev;
	struct patience p = patience_begin();
	CHECK_OK(PtlPut(md, PTL_NO_ACK_REQ, spec.self, SPEC_PT + 9, 0, 0, 0, 0));
	while (PtlEQPeek(eq, &ev) == PTL_EQ_EMPTY)
		CHECK(!patience_is_over(&p));
}

static void drain(ptl_handle_eq_t eq)
{
	(void)EXPECT_PAIR(eq, PTL_EVENT_SEND_START);
	SILENCE(eq);
}

/* Three queues and a descriptor in which every member matters. */
struct subject {
	ptl_handle_eq_t eq, other, third;
	unsigned char *bytes;
	ptl_md_t md;
	ptl_handle_md_t handle;
};

static struct subject subject(void)
{
	struct subject s;
	s.eq = spec_eq(64);
	s.other = spec_eq(64);
	s.third = spec_eq(64);
	s.bytes = suite_alloc(2 * ROOM);
	s.md = spec_md(s.bytes, ROOM, PUT_GET | PTL_MD_MAX_SIZE, s.eq);
	s.md.threshold = 1000;
	s.md.max_size = 3;
	s.md.user_ptr = &s.bytes[7];
	s.handle = spec_target(SPEC_BITS, s.md);
	return s;
}

static void expect_state(
	const char *file, int line, ptl_handle_md_t handle, ptl_md_t want)
{
	ptl_md_t is = query(handle);
	fields_check_md(file, line, PTL_EVENT_UNLINK, &is, &want);
}
#define EXPECT_STATE(handle, want) expect_state(__FILE__, __LINE__, handle, want)

static ptl_md_t changed(const struct subject *s)
{
	ptl_md_t md = s->md;
	md.start = s->bytes + ROOM;
	md.length = ROOM - 10;
	md.threshold = 77;
	md.max_size = 5;
	md.options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE;
	md.user_ptr = &s->bytes[9];
	md.eq_handle = s->other;
	return md;
}

STATEMENT(115, null_old_and_null_new_are_accepted)
{
	struct subject s = subject();
	ptl_md_t old;
	CHECK_OK(PtlMDUpdate(s.handle, NULL, NULL, PTL_EQ_NONE));
	EXPECT_STATE(s.handle, s.md);
	CHECK_OK(PtlMDUpdate(s.handle, NULL, NULL, s.eq));
	EXPECT_STATE(s.handle, s.md);
	CHECK_OK(PtlMDUpdate(s.handle, &old, NULL, s.eq));
	CHECK(same_md(&old, &s.md));
	ptl_md_t new = changed(&s);
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &new, s.eq));
	EXPECT_STATE(s.handle, new);
	CHECK_OK(PtlMDUpdate(s.handle, &old, &s.md, s.eq));
	CHECK(same_md(&old, &new));
	EXPECT_STATE(s.handle, s.md);
}

static void query_of_bound(void)
{
	unsigned char *bytes = suite_alloc(10);
	for (int options = 0; options < 0x200; options++) {
		if (options & (int)PTL_MD_IOVEC)
			continue;
		ptl_md_t md = spec_md(bytes, 10, (unsigned)options, PTL_EQ_NONE);
		md.user_ptr = bytes + 3;
		md.max_size = 9;
		ptl_handle_md_t handle = spec_bind(md, PTL_UNLINK);
		EXPECT_STATE(handle, md);
		CHECK_OK(PtlMDUnlink(handle));
	}
	ptl_handle_md_t nothing = spec_bind(spec_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN);
	EXPECT_STATE(nothing, spec_md(NULL, 0, 0, PTL_EQ_NONE));
}

STATEMENT(116, query_tells_and_changes_nothing)
{
	struct subject s = subject();
	query_of_bound();
	EXPECT_STATE(s.handle, s.md);
	EXPECT_STATE(s.handle, s.md);
	send_and_wait(10, 1, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.eq, 0, 10);
		s.md.threshold--;
		EXPECT_STATE(s.handle, s.md);
	}
	send_and_wait(20, 2, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.eq, 10, 20);
		CHECK_BYTES(s.bytes, 0, 10, 1);
		CHECK_BYTES(s.bytes + 10, 0, 20, 2);
	}
}

STATEMENT(117, without_test_queue_the_update_is_always_done)
{
	struct subject s = subject();
	ptl_md_t new = changed(&s), old;
	deposit(s.eq);
	deposit(s.other);
	CHECK_OK(PtlMDUpdate(s.handle, &old, &new, PTL_EQ_NONE));
	CHECK(same_md(&old, &s.md));
	EXPECT_STATE(s.handle, new);
	drain(s.eq);
	drain(s.other);
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, PTL_EQ_NONE));
	EXPECT_STATE(s.handle, s.md);
}

static void refused_until_empty(struct subject *s)
{
	ptl_md_t new = changed(s);
	for (int i = 0; i < 2; i++) {
		CHECK_RC(PtlMDUpdate(s->handle, NULL, &new, s->eq), PTL_MD_NO_UPDATE);
		EXPECT_STATE(s->handle, s->md);
		(void)EXPECT(s->eq, i ? PTL_EVENT_PUT_END : PTL_EVENT_PUT_START);
	}
}

STATEMENT(118, test_queue_decides)
{
	struct subject s = subject();
	ptl_md_t new = changed(&s);
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &new, s.eq));
	EXPECT_STATE(s.handle, new);
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, s.eq));
	send_and_wait(10, 1, SPEC_BITS);
	if (spec.is_b) {
		while (query(s.handle).threshold == s.md.threshold)
			sleep_ms(1);
		s.md.threshold--;
		refused_until_empty(&s);
	}
	send_and_wait(20, 2, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.eq, 10, 20); /* the local offset was not changed either */
		CHECK_ZERO(s.bytes + 30, 2 * ROOM - 30);
		CHECK_OK(PtlMDUpdate(s.handle, NULL, &new, s.eq));
		EXPECT_STATE(s.handle, new);
	}
}

WEAK_STATEMENT(119, a_refused_update_tells_the_state)
{
	struct subject s = subject();
	ptl_md_t new = changed(&s), old = new;
	deposit(s.other);
	CHECK_RC(PtlMDUpdate(s.handle, &old, &new, s.other), PTL_MD_NO_UPDATE);
	CHECK(same_md(&old, &s.md));
	EXPECT_STATE(s.handle, s.md);
}

STATEMENT(120, the_test_queue_is_any)
{
	struct subject s = subject();
	ptl_md_t new = changed(&s);
	deposit(s.eq);
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &new, s.third));
	EXPECT_STATE(s.handle, new);
	deposit(s.third);
	CHECK_RC(PtlMDUpdate(s.handle, NULL, &s.md, s.third), PTL_MD_NO_UPDATE);
	EXPECT_STATE(s.handle, new);
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, s.other));
	EXPECT_STATE(s.handle, s.md);
	drain(s.third);
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &new, s.third));
	EXPECT_STATE(s.handle, new);

	new.eq_handle = PTL_EQ_NONE;
	ptl_handle_md_t silent = spec_bind(new, PTL_RETAIN);
	CHECK_OK(PtlMDUpdate(silent, NULL, &s.md, s.third));
	CHECK_RC(PtlMDUpdate(silent, NULL, &new, s.eq), PTL_MD_NO_UPDATE);
	EXPECT_STATE(silent, s.md);
}

static void bad_descriptors(struct subject *s)
{
	ptl_md_t old = changed(s), new = changed(s);
	ptl_handle_md_t dead = spec_bind(s->md, PTL_RETAIN);
	CHECK_OK(PtlMDUnlink(dead));
	const ptl_handle_any_t bad[] = {PTL_INVALID_HANDLE, PTL_EQ_NONE, PTL_HANDLE_NONE,
		dead, s->eq, spec.ni, 0, s->handle ^ (UINT64_C(1) << 63)};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		CHECK_RC(PtlMDUpdate(bad[i], &old, NULL, PTL_EQ_NONE), PTL_MD_INVALID);
		CHECK_RC(PtlMDUpdate(bad[i], NULL, &new, PTL_EQ_NONE), PTL_MD_INVALID);
		CHECK_RC(PtlMDUpdate(bad[i], &old, &new, s->eq), PTL_MD_INVALID);
	}
	CHECK(same_md(&old, &new));
}

static ptl_handle_eq_t foreign_queue(void)
{
	ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
	CHECK_OK(PtlEQAlloc(spec_second(), 16, PTL_EQ_HANDLER_NONE, &eq));
	return eq;
}

STATEMENT(121, bad_descriptor_or_test_queue)
{
	struct subject s = subject();
	ptl_md_t new = changed(&s);
	bad_descriptors(&s);
	ptl_handle_eq_t dead = spec_eq(4);
	CHECK_OK(PtlEQFree(dead));
	const ptl_handle_any_t bad[] = {
		PTL_INVALID_HANDLE, dead, s.handle, spec.ni, foreign_queue()};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		CHECK_RC(PtlMDUpdate(s.handle, NULL, &new, bad[i]), PTL_EQ_INVALID);
		EXPECT_STATE(s.handle, s.md);
	}
}

static void refuse(struct subject *s, ptl_md_t new, int want)
{
	ptl_md_t old;
	CHECK_RC(PtlMDUpdate(s->handle, &old, &new, PTL_EQ_NONE), want);
	EXPECT_STATE(s->handle, s->md);
	CHECK_RC(PtlMDUpdate(s->handle, NULL, &new, s->third), want);
	EXPECT_STATE(s->handle, s->md);
}

static void refuse_iovecs(struct subject *s)
{
	size_t most = (size_t)spec.limits.max_md_iovecs;
	ptl_md_iovec_t *iov = suite_alloc((most + 1) * sizeof *iov);
	ptl_md_t new = spec_md(iov, most + 1, PTL_MD_OP_PUT | PTL_MD_IOVEC, s->eq);
	refuse(s, new, PTL_MD_ILLEGAL);
	new.length = 2;
	iov[1].iov_len = 1;
	refuse(s, new, PTL_MD_ILLEGAL); /* NULL, but not empty */
	iov[0] = (ptl_md_iovec_t){s->bytes, UINT64_MAX - 5};
	iov[1] = (ptl_md_iovec_t){s->bytes, 10};
	refuse(s, new, PTL_MD_ILLEGAL);
	new.start = NULL;
	refuse(s, new, PTL_MD_ILLEGAL);
}

static void refuse_all(struct subject *s)
{
	ptl_md_t new = changed(s);
	new.start = NULL;
	refuse(s, new, PTL_MD_ILLEGAL);
	new = changed(s);
	new.length = UINT64_MAX - 16;
	refuse(s, new, PTL_MD_ILLEGAL);
	new = changed(s);
	new.eq_handle = foreign_queue();
	refuse(s, new, PTL_MD_ILLEGAL);
	new.eq_handle = spec_eq(4);
	CHECK_OK(PtlEQFree(new.eq_handle));
	refuse(s, new, PTL_EQ_INVALID);
	new = changed(s);
	new.threshold = -2;
	refuse(s, new, PTL_MD_ILLEGAL);
	new = changed(s);
	new.options |= 0x40000000u;
	refuse(s, new, PTL_MD_ILLEGAL);
	refuse_iovecs(s);
}

STATEMENT(122, illegal_update_changes_nothing)
{
	struct subject s = subject();
	send_and_wait(10, 1, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.eq, 0, 10);
		s.md.threshold--;
	}
	refuse_all(&s);
	send_and_wait(20, 2, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.eq, 10, 20);
		CHECK_BYTES(s.bytes, 0, 10, 1);
		CHECK_BYTES(s.bytes + 10, 0, 20, 2);
	}
}

STATEMENT(123, update_resets_the_local_offset)
{
	struct subject s = subject();
	send_and_wait(10, 1, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.eq, 0, 10);
		CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, s.eq));
	}
	send_and_wait(5, 2, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.eq, 0, 5);
		CHECK_BYTES(s.bytes, 0, 5, 2);
		CHECK_BYTES(s.bytes + 5, 5, 5, 1);
	}
	send_and_wait(6, 3, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.eq, 5, 6);
		CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, PTL_EQ_NONE));
	}
	send_and_wait(ROOM, 4, SPEC_BITS); /* all the room is available again */
	if (spec.is_b)
		(void)arrived(s.eq, 0, ROOM);
}

STATEMENT(124, threshold_from_0_to_1_activates)
{
	struct subject s = subject();
	s.md.threshold = 0;
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, PTL_EQ_NONE));
	send_and_wait(10, 1, SPEC_BITS);
	if (spec.is_b) {
		EXPECT_DROPS(1);
		SILENCE(s.eq);
		CHECK_ZERO(s.bytes, ROOM);
		s.md.threshold = 1;
		CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, s.eq));
	}
	send_and_wait(10, 2, SPEC_BITS);
	if (spec.is_b) {
		CHECK_EQ(arrived(s.eq, 0, 10).md.threshold, 0);
		CHECK_BYTES(s.bytes, 0, 10, 2);
	}
	send_and_wait(10, 3, SPEC_BITS);
	if (spec.is_b) {
		EXPECT_DROPS(2);
		s.md.threshold = PTL_MD_THRESH_INF;
		CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, s.eq));
	}
	send_and_wait(10, 4, SPEC_BITS);
	if (spec.is_b)
		(void)arrived(s.eq, 0, 10);
}

STATEMENT(125, threshold_to_0_deactivates_only)
{
	ptl_handle_eq_t eq = spec_eq(16);
	ptl_md_t md = spec_md(suite_alloc(ROOM), ROOM, PUT_GET, eq);
	md.threshold = 5;
	ptl_handle_me_t me;
	ptl_handle_md_t target = attach_flags(SPEC_BITS, md, PTL_UNLINK, PTL_UNLINK, &me);
	ptl_handle_md_t bound = spec_bind(md, PTL_UNLINK);
	md.threshold = 0;
	CHECK_OK(PtlMDUpdate(target, NULL, &md, eq));
	CHECK_OK(PtlMDUpdate(bound, NULL, &md, eq));
	send_and_wait(10, 1, SPEC_BITS);
	if (spec.is_b)
		EXPECT_DROPS(1);
	SILENCE(eq);
	EXPECT_STATE(target, md);
	EXPECT_STATE(bound, md);
	md.threshold = 1;
	CHECK_OK(PtlMDUpdate(target, NULL, &md, eq));
	send_and_wait(10, 2, SPEC_BITS);
	if (spec.is_b) { /* only now, by an operation */
		(void)arrived(eq, 0, 10);
		(void)EXPECT(eq, PTL_EVENT_UNLINK);
		CHECK_RC(PtlMEUnlink(me), PTL_ME_INVALID);
	}
}

/* A: do seven puts, three of them acknowledged, and four gets, from one descriptor. */
static void use_at_a(ptl_handle_eq_t eq)
{
	ptl_md_t md = with_threshold(spec_md(suite_alloc(8), 8, 0, eq), 100);
	ptl_handle_md_t handle = spec_bind(md, PTL_RETAIN);
	for (int i = 0; i < 7; i++)
		put_whole(eq, handle, i < 3 ? PTL_ACK_REQ : PTL_NO_ACK_REQ, SPEC_BITS);
	EXPECT_STATE(handle, with_threshold(md, 90));
	for (int i = 0; i < 4; i++) {
		spec_get(handle, SPEC_BITS);
		(void)EXPECT_PAIR(eq, PTL_EVENT_REPLY_START);
		EXPECT_STATE(handle, with_threshold(md, 89 - i));
	}
}

STATEMENT(126, the_remaining_threshold_is_told)
{
	struct subject s = subject();
	spec_barrier();
	if (spec.is_a)
		use_at_a(spec_eq(64));
	if (spec.is_b) {
		for (int i = 0; i < 22; i++)
			(void)NEXT(s.eq);
		EXPECT_STATE(s.handle, with_threshold(s.md, 1000 - 11));
		s.md.threshold = PTL_MD_THRESH_INF;
		CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, s.eq));
	}
	send_and_wait(3, 1, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.eq, 0, 3);
		EXPECT_STATE(s.handle, s.md);
	}
}

/* Put and request an ACK. */
static void ask_for_ack(ptl_handle_eq_t eq, bool comes)
{
	spec_barrier();
	if (!spec.is_a)
		return;
	unsigned char *from = suite_alloc(30);
	fill_bytes(from, 30, 6);
	spec_put(spec_bind(spec_md(from, 30, 0, eq), PTL_RETAIN), PTL_ACK_REQ, SPEC_BITS);
	(void)EXPECT_PAIR(eq, PTL_EVENT_SEND_START);
	if (comes)
		(void)EXPECT(eq, PTL_EVENT_ACK);
	else
		SILENCE(eq);
}

/* Check that the second region and queue are used, and the first are not. */
static void changed_members_hold(struct subject *s, ptl_md_t md, ptl_size_t offset)
{
	struct fields want = fields_of(spec.a, s->handle, md, SPEC_BITS, 30);
	want.offset = offset;
	(void)CHECK_PAIR(s->other, PTL_EVENT_PUT_START, &want);
	SILENCE(s->eq);
	CHECK_ZERO(s->bytes, ROOM);
	CHECK_BYTES(s->bytes + ROOM + offset, 0, 30, 6);
}

STATEMENT(127, new_members_hold_for_later_operations)
{
	struct subject s = subject();
	ptl_handle_eq_t eq = spec_eq(16);
	ptl_md_t new = changed(&s);
	new.options |= PTL_MD_ACK_DISABLE;
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &new, s.eq));
	for (int i = 0; i < 2; i++) {
		ask_for_ack(eq, false);
		if (spec.is_b)
			changed_members_hold(
				&s, with_threshold(new, 76 - i), 30 * (ptl_size_t)i);
	}
	new.options = PTL_MD_OP_GET; /* no puts any more */
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &new, s.eq));
	send_and_wait(30, 7, SPEC_BITS);
	if (spec.is_b) {
		EXPECT_DROPS(1);
		SILENCE(s.other);
	}
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, s.eq));
	ask_for_ack(eq, true);
	if (spec.is_b) {
		(void)arrived(s.eq, 0, 30);
		CHECK_BYTES(s.bytes, 0, 30, 6);
	}
}

/*
 * ---- 128, 129: races ----
 *
 * As an MPI library posts receives: an entry at threshold 0, then, if the queue of
 * unexpected messages is empty, an update to 1.  A sends one message in each round, at
 * about the same time.  It must come to the entry if the update was done, and to the
 * queue otherwise; and to no other place.
 */
enum { GO_BITS = 1, DATA_BITS = 2, RACE_MS = 1200, RACE_MOST = 20000 };
static const ptl_size_t race_length[] = {0, 8, 3000, LONGEST};

static void spin(uint64_t turns)
{
	for (volatile uint64_t i = 0; i < turns; i++)
		;
}

struct race {
	unsigned options;
	ptl_handle_eq_t go;
	ptl_handle_md_t go_ahead, posted;
	ptl_handle_eq_t unexpected, expected;
	ptl_md_t receive;
	unsigned rounds, updated;
	uint64_t wait; /* B's delay before it tries; it moves to the value at which the
		        * race is even */
};

/* A: send a message for each go, until the last. */
static void race_sender(void *arg)
{
	struct race *r = arg;
	unsigned char *from = suite_alloc(LONGEST);
	ptl_handle_md_t md =
		spec_bind(spec_md(from, LONGEST, 0, PTL_EQ_NONE), PTL_RETAIN);
	for (;;) {
		uint64_t word = EXPECT(r->go, PTL_EVENT_PUT_END).hdr_data;
		if (!word)
			return;
		spin(mix(word) % 2000);
		CHECK_OK(PtlPutRegion(md, 0, race_length[word % 4], PTL_NO_ACK_REQ,
			spec.b, SPEC_PT, 0, DATA_BITS, 0, word));
	}
}

static void race_setup(struct race *r)
{
	if (spec.is_a) {
		r->go = spec_eq(8);
		(void)spec_target(GO_BITS,
			spec_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE,
				r->go));
	}
	if (!spec.is_b)
		return;
	r->unexpected = spec_eq(64);
	r->expected = spec_eq(64);
	r->receive = spec_md(
		suite_alloc(LONGEST), LONGEST, PTL_MD_OP_PUT | r->options, r->expected);
	r->receive.threshold = 0;
	r->posted = spec_target(DATA_BITS, r->receive);
	(void)spec_target(DATA_BITS, spec_md(suite_alloc(LONGEST), LONGEST,
					     PUT_AT | r->options, r->unexpected));
	r->go_ahead = spec_bind(spec_md(NULL, 0, 0, PTL_EQ_NONE), PTL_RETAIN);
}

static void race_arrived(struct race *r, ptl_handle_eq_t here, uint64_t word)
{
	ptl_md_t new = with_threshold(r->receive, 1);
	if (!(r->options & PTL_MD_EVENT_START_DISABLE)) {
		CHECK_EQ(EXPECT(here, PTL_EVENT_PUT_START).hdr_data, word);
		/* Its END is unread, or still to come. */
		CHECK_RC(PtlMDUpdate(r->posted, NULL, &new, here), PTL_MD_NO_UPDATE);
	}
	ptl_event_t end = EXPECT(here, PTL_EVENT_PUT_END);
	CHECK_EQ(end.hdr_data, word);
	CHECK_EQ(end.mlength, race_length[word % 4]);
}

static void race_nothing(ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
}

static void race_round(struct race *r, uint64_t word)
{
	CHECK_OK(PtlPut(
		r->go_ahead, PTL_NO_ACK_REQ, spec.a, SPEC_PT, 0, GO_BITS, 0, word));
	spin(r->wait);
	ptl_md_t new = with_threshold(r->receive, 1);
	int rc = PtlMDUpdate(r->posted, NULL, &new, r->unexpected);
	if (rc == PTL_OK) {
		race_arrived(r, r->expected, word);
		race_nothing(r->unexpected);
		r->updated++;
		r->wait += r->wait / 8 + 8;
		EXPECT_STATE(r->posted, r->receive);
		return;
	}
	CHECK_EQ(rc, PTL_MD_NO_UPDATE);
	race_arrived(r, r->unexpected, word); /* never refused without a reason */
	race_nothing(r->expected);
	r->wait -= r->wait / 8;
}

static void race_receiver(struct race *r)
{
	uint64_t end = now_ms() + RACE_MS;
	while (r->rounds < RACE_MOST && now_ms() < end)
		race_round(r, ++r->rounds);
	CHECK_OK(PtlPut(r->go_ahead, PTL_NO_ACK_REQ, spec.a, SPEC_PT, 0, GO_BITS, 0, 0));
	CHECK_EQ(spec_drops(), 0);
	spec_note("%u rounds, %u updates done", r->rounds, r->updated);
}

static void race(unsigned options)
{
	struct race r = {.options = options, .wait = 1000};
	race_setup(&r);
	spec_barrier();
	struct thread *sender = spec.is_a ? thread_start(race_sender, &r) : NULL;
	if (spec.is_b)
		race_receiver(&r);
	if (sender)
		thread_join(sender);
	spec_barrier();
}

STATEMENT(128, conditional_update_is_atomic_with_arrivals)
{
	race(0);
}

/* A long put into B's descriptor, and another descriptor there to be updated. */
struct outstanding {
	ptl_size_t length;
	ptl_handle_eq_t eq, idle; /* idle: a queue that gets no event */
	volatile unsigned char *bytes;
	ptl_md_t md, spare;
	ptl_handle_md_t target, posted;
};

static void outstanding_setup(struct outstanding *o)
{
	unsigned char *bytes = suite_alloc(o->length);
	o->bytes = bytes;
	o->eq = spec_eq(8);
	o->idle = spec_eq(8);
	o->md = spec_md(
		bytes, o->length, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, o->eq);
	o->spare = with_threshold(spec_md(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE), 0);
	o->posted = spec_target(SPEC_BITS, o->spare);
	o->target = spec_target(SPEC_BITS, o->md);
}

static void long_put(void *arg)
{
	struct outstanding *o = arg;
	unsigned char *from = suite_alloc(o->length);
	memset(from, 1, o->length);
	ptl_handle_eq_t eq = spec_eq(8);
	put_whole(eq, spec_bind(spec_md(from, o->length, 0, eq), PTL_RETAIN),
		PTL_NO_ACK_REQ, SPEC_BITS);
}

/* A descriptor is not updated under its operation, with any test queue. */
static void refused_while_pending(struct outstanding *o)
{
	ptl_event_t ev;
	ptl_md_t old;
	int rc = PtlMDUpdate(o->target, &old, &o->md, o->idle);
	CHECK(same_md(&old, &o->md));
	if (rc == PTL_OK) /* then the operation has ended */
		rc = PtlEQPeek(o->eq, &ev) == PTL_OK ? PTL_MD_NO_UPDATE : rc;
	CHECK_EQ(rc, PTL_MD_NO_UPDATE);
}

/* When the first byte is there the put has matched: no update before its END was
 * taken. */
static void refused_until_end(struct outstanding *o)
{
	ptl_md_t new = with_threshold(o->spare, 1);
	ptl_event_t ev = {.type = PTL_EVENT_ACK};
	struct patience p = patience_begin();
	while (!o->bytes[0])
		CHECK(!patience_is_over(&p));
	do {
		CHECK_RC(PtlMDUpdate(o->posted, NULL, &new, o->eq), PTL_MD_NO_UPDATE);
		CHECK_RC(PtlMDUpdate(o->target, NULL, &o->md, o->eq), PTL_MD_NO_UPDATE);
		refused_while_pending(o);
		CHECK(!patience_is_over(&p));
	} while (PtlEQGet(o->eq, &ev) == PTL_EQ_EMPTY);
	CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
	EXPECT_STATE(o->posted, o->spare);
	CHECK_OK(PtlMDUpdate(o->posted, NULL, &new, o->eq));
	CHECK_OK(PtlMDUpdate(o->target, NULL, &o->md, o->eq));
}

STATEMENT(129, no_update_while_an_end_is_outstanding)
{
	struct outstanding o = {.length = 32u << 20};
	if (spec.is_b)
		outstanding_setup(&o);
	spec_barrier();
	struct thread *sender = spec.is_a ? thread_start(long_put, &o) : NULL;
	if (spec.is_b)
		refused_until_end(&o);
	if (sender)
		thread_join(sender);
	race(PTL_MD_EVENT_START_DISABLE);
}

/* ---- 130 ---- */

struct pieces {
	unsigned char *bytes;
	ptl_md_iovec_t given[3], back[4];
	ptl_md_t md;
};

static void pieces_query(struct pieces *p, ptl_handle_md_t handle, size_t room)
{
	memset(p->back, 0, sizeof p->back);
	ptl_md_t old = {.start = p->back, .length = room, .options = PTL_MD_IOVEC};
	CHECK_OK(PtlMDUpdate(handle, &old, NULL, PTL_EQ_NONE));
	CHECK(same_md(&old, &p->md));
	for (size_t i = 0; i < 4; i++) {
		bool there = i < room && i < 3;
		CHECK(p->back[i].iov_base == (there ? p->given[i].iov_base : NULL));
		CHECK_EQ(p->back[i].iov_len, there ? p->given[i].iov_len : 0);
	}
}

static void pieces_check(struct pieces *p, unsigned seed)
{
	CHECK_BYTES(p->bytes + 50, 0, 10, seed);
	CHECK_BYTES(p->bytes, 10, 7, seed);
	CHECK_BYTES(p->bytes + 20, 17, 13, seed);
	CHECK_ZERO(p->bytes + 7, 13);
	CHECK_ZERO(p->bytes + 33, 17);
	CHECK_ZERO(p->bytes + 60, ROOM - 60);
}

WEAK_STATEMENT(130, iovec_descriptors_are_told_and_updated)
{
	struct subject s = subject();
	struct pieces p = {.bytes = suite_alloc(ROOM)};
	p.given[0] = (ptl_md_iovec_t){p.bytes + 50, 10};
	p.given[1] = (ptl_md_iovec_t){p.bytes, 7};
	p.given[2] = (ptl_md_iovec_t){p.bytes + 20, 13};
	p.md = spec_md(p.given, 3, PTL_MD_OP_PUT | PTL_MD_IOVEC, s.other);
	CHECK_OK(PtlMDUpdate(s.handle, NULL, &p.md, s.eq));
	EXPECT_STATE(s.handle, p.md);
	for (size_t room = 0; room <= 4; room++)
		pieces_query(&p, s.handle, room);
	send_and_wait(30, 5, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.other, 0, 30);
		pieces_check(&p, 5);
		CHECK_OK(PtlMDUpdate(s.handle, NULL, &s.md, s.other));
	}
	send_and_wait(30, 6, SPEC_BITS);
	if (spec.is_b) {
		(void)arrived(s.eq, 0, 30);
		CHECK_BYTES(s.bytes, 0, 30, 6);
		pieces_check(&p, 5);
	}
}
