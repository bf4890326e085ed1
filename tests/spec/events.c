/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers, and the content of events: statements 155 to 157 and 232 to 250. */
#include "fields.h"

#include <sched.h>
#include <time.h>

enum { ROOM = 4096, MIB = 1 << 20, MOST_EVENTS = 4096 };

/* ---- 155 - 157: handlers ---- */

static void nap(void)
{
	struct timespec t = {0, 10000};
	/* pause: between two looks of the loops below */
	(void)nanosleep(&t, NULL);
}

static ptl_event_t handled[MOST_EVENTS];
static _Atomic unsigned handlings;
static _Atomic unsigned other_handlings;

static void handler(ptl_event_t *event)
{
	handled[handlings % MOST_EVENTS] = *event;
	handlings++;
}

static void other_handler(ptl_event_t *event)
{
	other_handlings += event != NULL;
}

static ptl_handle_eq_t handled_eq(ptl_eq_handler_t fn)
{
	ptl_handle_eq_t eq = PTL_INVALID_HANDLE;
	CHECK_OK(PtlEQAlloc(spec.ni, 64, fn, &eq));
	return eq;
}

static int read_with(int how, ptl_handle_eq_t eq, ptl_event_t *ev)
{
	ptl_handle_eq_t list[2] = {eq, eq};
	int which = -1, rc;
	if (how == 0)
		return PtlEQGet(eq, ev);
	if (how == 1)
		return PtlEQWait(eq, ev);
	rc = PtlEQPoll(list, how == 2 ? 1 : 2, how == 2 ? 0 : 300000, ev, &which);
	CHECK(which >= 0 && which < 2);
	return rc;
}

static void same_event(const ptl_event_t *x, const ptl_event_t *y)
{
	struct fields want = {x->initiator, x->pt_index, x->match_bits, x->rlength,
		x->mlength, x->offset, x->hdr_data, x->md_handle, x->md};
	CHECK_EQ(y->type, x->type);
	CHECK_EQ(y->link, x->link);
	CHECK_EQ(y->sequence, x->sequence);
	CHECK_EQ(y->unlinked, x->unlinked);
	fields_check(__FILE__, __LINE__, y, &want);
}

/* Make a SEND pair, a PUT pair and an ACK of this node; the ACK has come at the
 * return. */
static void deposit_five(ptl_handle_md_t md, uint64_t seed)
{
	(void)try_put_region(md, seed % 50, seed % 40, PTL_ACK_REQ, spec.self, SPEC_PT,
		SPEC_BITS, seed % 30, mix(seed));
	struct patience p = patience_begin();
	ptl_md_t now;
	do {
		nap();
		now = query(md);
		CHECK(!patience_is_over(&p));
	} while (now.threshold > 100); /* both units are used: the ACK has come */
	now.threshold = 102;
	CHECK_OK(PtlMDUpdate(md, NULL, &now, PTL_EQ_NONE));
}

static ptl_handle_md_t five_setup(ptl_handle_eq_t eq)
{
	(void)spec_target(SPEC_BITS, spec_md(suite_alloc(200), 200, PUT_AT, eq));
	ptl_md_t md = spec_md(pattern(100, 1), 100, 0, eq);
	md.threshold = 102;
	return spec_bind(md, PTL_RETAIN);
}

static void read_five(int how, ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	for (int i = 0; i < 5; i++) {
		unsigned before = handlings;
		while (PtlEQPeek(eq, &ev) == PTL_EQ_EMPTY)
			nap();
		CHECK_EQ(handlings, before);
		CHECK_OK(read_with(how, eq, &ev));
		CHECK_EQ(handlings, before + 1);
		same_event(&ev, &handled[before % MOST_EVENTS]);
	}
	CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
}

STATEMENT(155, the_handler_sees_each_event_once)
{
	if (!spec.is_b)
		return;
	handlings = other_handlings = 0;
	ptl_handle_eq_t eq = handled_eq(handler), other = handled_eq(other_handler);
	ptl_handle_md_t md = five_setup(eq);
	for (unsigned i = 0; i < 200; i++) {
		deposit_five(md, i);
		read_five((int)i % 4, eq);
	}
	CHECK_EQ(handlings, 1000);
	CHECK_EQ(other_handlings, 0);
	SILENCE(other);
}

STATEMENT(156, no_handler)
{
	if (!spec.is_b)
		return;
	handlings = 0;
	ptl_handle_eq_t eq = handled_eq(PTL_EQ_HANDLER_NONE), with = handled_eq(handler);
	ptl_handle_md_t md = five_setup(eq);
	ptl_event_t ev;
	for (unsigned i = 0; i < 40; i++) {
		deposit_five(md, i);
		for (int k = 0; k < 5; k++) {
			while (PtlEQPeek(eq, &ev) == PTL_EQ_EMPTY)
				nap();
			CHECK_OK(read_with((int)i % 4, eq, &ev));
			CHECK_EQ(ev.match_bits, SPEC_BITS);
		}
		CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	}
	CHECK_EQ(handlings, 0);
	SILENCE(with);
}

STATEMENT(157, no_handling_of_nothing)
{
	handlings = 0;
	ptl_handle_eq_t eq = handled_eq(handler);
	ptl_event_t ev;
	int which;
	for (int i = 0; i < 100; i++) {
		CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
		CHECK_RC(PtlEQPoll(&eq, 1, i % 10 ? 0 : 2, &ev, &which), PTL_EQ_EMPTY);
		CHECK_RC(PtlEQPeek(eq, &ev), PTL_EQ_EMPTY);
	}
	CHECK_EQ(handlings, 0);
	deposit_five(five_setup(eq), 3);
	read_five(0, eq);
	CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	CHECK_EQ(handlings, 5);
}

/* ---- 232, 233: links and sequence ---- */

enum { MANY = 120 };

static ptl_size_t many_length(unsigned i)
{
	return i % 10 == 0 ? 150000 : mix(i) % 3000;
}

/* Start MANY puts, gets and getputs at the same time, distinguished by match bits. */
static void start_many(ptl_handle_eq_t eq)
{
	ptl_handle_md_t put = source(MIB, 1, eq);
	ptl_handle_md_t get =
		spec_bind(spec_md(suite_alloc(MIB), MIB, 0, eq), PTL_RETAIN);
	for (unsigned i = 0; i < MANY; i++) {
		ptl_size_t length = many_length(i);
		int rc;
		do
			rc = i % 3 == 0   ? PtlPutRegion(put, i, length, PTL_NO_ACK_REQ,
						    spec.b, SPEC_PT, 0, i, i, 0)
			     : i % 3 == 1 ? PtlGetRegion(get, i * 8000, length % 8000,
						    spec.b, SPEC_PT, 0, i, i)
					  : PtlGetPutRegion(get, i * 8000, put, 8 * i, 8,
						    spec.b, SPEC_PT, 0, i, i, 0);
		while (rc == PTL_NO_SPACE);
		CHECK_OK(rc);
	}
}

/* A collection of pairs; START and END, and SEND and REPLY, are all the kinds. */
struct pairs {
	ptl_seq_t link[3 * MANY];
	bool open[3 * MANY], closed[3 * MANY];
	unsigned links;
};

static bool is_start(ptl_event_kind_t kind)
{
	return kind == PTL_EVENT_PUT_START || kind == PTL_EVENT_GET_START ||
	       kind == PTL_EVENT_GETPUT_START || kind == PTL_EVENT_REPLY_START ||
	       kind == PTL_EVENT_SEND_START;
}

static void one_more(struct pairs *p, const ptl_event_t *ev)
{
	bool reply = ev->type == PTL_EVENT_REPLY_START || ev->type == PTL_EVENT_REPLY_END;
	CHECK(ev->match_bits < MANY);
	unsigned i = (unsigned)ev->match_bits + (reply ? MANY : 0);
	if (is_start(ev->type)) {
		CHECK(!p->open[i]);
		for (unsigned k = 0; k < 2 * MANY; k++)
			CHECK(!p->open[k] || p->link[k] != ev->link);
		p->link[i] = ev->link;
		p->open[i] = true;
		return;
	}
	CHECK(p->open[i] && !p->closed[i]);
	CHECK_EQ(ev->link, p->link[i]);
	p->closed[i] = true;
}

static void take_many(ptl_handle_eq_t eq, unsigned events)
{
	struct pairs *p = suite_alloc(sizeof *p);
	for (; events; events--) {
		ptl_event_t ev = NEXT(eq);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		CHECK(ev.mlength <= ev.rlength);
		one_more(p, &ev);
	}
	SILENCE(eq);
}

static void offer_many(ptl_handle_eq_t eq)
{
	offer_all_at_b(spec_md(suite_alloc(MIB), MIB, PUT_GET_AT, eq));
}

STATEMENT(232, links)
{
	ptl_handle_eq_t eq_a = spec_eq(1024), eq_b = spec_eq(1024);
	offer_many(eq_b);
	if (spec.is_a) {
		start_many(eq_a);
		take_many(eq_a, MANY / 3 * (2 + 2 + 4));
	}
	if (spec.is_b)
		take_many(eq_b, MANY * 2);
}

static void take_in_sequence(ptl_handle_eq_t eq, unsigned events)
{
	ptl_seq_t last = NEXT(eq).sequence;
	while (--events)
		CHECK_EQ(NEXT(eq).sequence, ++last);
}

STATEMENT(233, sequence_numbers)
{
	ptl_handle_eq_t eq_a = spec_eq(1024), eq_b = spec_eq(1024);
	offer_many(eq_b);
	for (int i = 0; i < 3; i++) {
		if (spec.is_a) {
			start_many(eq_a);
			take_in_sequence(eq_a, MANY / 3 * (2 + 2 + 4));
		}
		if (spec.is_b)
			take_in_sequence(eq_b, MANY * 2);
		spec_barrier();
	}
}

/* ---- 234 - 240: members ---- */

/* Descriptors in which every member has a special value. */
struct special {
	ptl_handle_eq_t eq_a, eq_b;
	ptl_md_t put, get, target;
	ptl_handle_md_t put_md, get_md, target_md;
};

static struct special special(void)
{
	struct special s = {.eq_a = spec_eq(64), .eq_b = spec_eq(64)};
	unsigned char *bytes = suite_alloc(3 * ROOM);
	s.put = with_threshold(
		spec_md(bytes, 1000, PTL_MD_OP_GET | PTL_MD_TRUNCATE, s.eq_a), 50);
	s.get = with_threshold(
		spec_md(bytes + ROOM, 1001, PTL_MD_ACK_DISABLE, s.eq_a), 60);
	s.target = with_threshold(
		spec_md(bytes + 2 * ROOM, 3000,
			PUT_GET_AT | PTL_MD_TRUNCATE | PTL_MD_MAX_SIZE, s.eq_b),
		70);
	s.put.user_ptr = bytes + 1;
	s.get.user_ptr = bytes + 2;
	s.target.user_ptr = bytes + 3;
	s.put.max_size = 11;
	s.get.max_size = 12;
	s.target.max_size = 13;
	s.put_md = spec_bind(s.put, PTL_RETAIN);
	s.get_md = spec_bind(s.get, PTL_RETAIN);
	if (spec.is_b)
		s.target_md = spec_target(SPEC_BITS, s.target);
	spec_barrier();
	return s;
}

/* Check the events at B of an operation of length bytes at remote offset 20. */
static void special_at_b(
	struct special *s, ptl_event_kind_t start, ptl_size_t length, ptl_hdr_data_t hdr)
{
	s->target.threshold--;
	struct fields want =
		fields_of(spec.a, s->target_md, s->target, SPEC_BITS, length);
	want.offset = 20;
	want.hdr_data = hdr;
	if (spec.is_b)
		(void)CHECK_PAIR(s->eq_b, start, &want);
	spec_barrier();
}

static struct fields special_at_a(
	struct special *s, bool put, ptl_process_id_t initiator, ptl_size_t length)
{
	ptl_md_t *md = put ? &s->put : &s->get;
	md->threshold--;
	return fields_of(initiator, put ? s->put_md : s->get_md, *md, SPEC_BITS, length);
}

static void special_put(struct special *s)
{
	if (spec.is_a) {
		CHECK_OK(PtlPutRegion(s->put_md, 3, 500, PTL_ACK_REQ, spec.b, SPEC_PT, 0,
			SPEC_BITS, 20, 99));
		struct fields send = special_at_a(s, true, spec.a, 500);
		send.offset = 3;
		send.hdr_data = 99;
		(void)CHECK_PAIR(s->eq_a, PTL_EVENT_SEND_START, &send);
		struct fields ack = special_at_a(s, true, spec.b, 500);
		ack.offset = 20;
		(void)CHECK_NEXT(s->eq_a, PTL_EVENT_ACK, &ack);
	}
	special_at_b(s, PTL_EVENT_PUT_START, 500, 99);
}

static void special_get(struct special *s)
{
	if (spec.is_a) {
		CHECK_OK(PtlGetRegion(
			s->get_md, 3, 500, spec.b, SPEC_PT, 0, SPEC_BITS, 20));
		struct fields reply = special_at_a(s, false, spec.b, 500);
		reply.offset = 20;
		(void)CHECK_PAIR(s->eq_a, PTL_EVENT_REPLY_START, &reply);
	}
	special_at_b(s, PTL_EVENT_GET_START, 500, 0);
}

static void special_swap(struct special *s)
{
	if (spec.is_a) {
		CHECK_OK(PtlGetPutRegion(s->get_md, 3, s->put_md, 4, 16, spec.b, SPEC_PT,
			0, SPEC_BITS, 20, 98));
		struct fields send = special_at_a(s, true, spec.a, 16);
		send.offset = 4;
		send.hdr_data = 98;
		(void)CHECK_PAIR(s->eq_a, PTL_EVENT_SEND_START, &send);
		struct fields reply = special_at_a(s, false, spec.b, 16);
		reply.offset = 20;
		(void)CHECK_PAIR(s->eq_a, PTL_EVENT_REPLY_START, &reply);
	}
	special_at_b(s, PTL_EVENT_GETPUT_START, 16, 98);
}

STATEMENT(234, the_descriptor_in_the_event)
{
	struct special s = special();
	for (int i = 0; i < 5; i++) {
		special_put(&s);
		special_get(&s);
		special_swap(&s);
	}
}

STATEMENT(235, an_iovec_descriptor_in_the_event)
{
	struct special s = special();
	unsigned char *bytes = suite_alloc(2 * ROOM);
	ptl_md_iovec_t iov[] = {{bytes, 700}, {bytes + 1000, 800}, {bytes + 2000, 900}};
	s.put.start = s.get.start = s.target.start = iov;
	s.put.length = s.get.length = s.target.length = 3;
	s.put.options |= PTL_MD_IOVEC;
	s.get.options |= PTL_MD_IOVEC;
	s.target.options |= PTL_MD_IOVEC;
	CHECK_OK(PtlMDUpdate(s.put_md, NULL, &s.put, PTL_EQ_NONE));
	CHECK_OK(PtlMDUpdate(s.get_md, NULL, &s.get, PTL_EQ_NONE));
	if (spec.is_b)
		CHECK_OK(PtlMDUpdate(s.target_md, NULL, &s.target, PTL_EQ_NONE));
	spec_barrier();
	special_put(&s);
	special_get(&s);
	special_swap(&s);
}

STATEMENT(236, the_handle_in_the_event)
{
	enum { MDS = 64 };
	ptl_handle_eq_t eq_a = spec_eq(1024), eq_b = spec_eq(1024);
	ptl_handle_md_t at_a[MDS], at_b[MDS];
	for (unsigned i = 0; i < MDS; i++) {
		at_a[i] = source(i, 1, eq_a);
		if (spec.is_b)
			at_b[i] = spec_target(
				i, spec_md(suite_alloc(MDS), MDS, PTL_MD_OP_PUT, eq_b));
	}
	spec_barrier();
	for (unsigned i = 0; spec.is_a && i < MDS; i++)
		spec_put(at_a[i * 7 % MDS], PTL_ACK_REQ, i * 7 % MDS);
	for (unsigned i = 0; i < 3 * MDS; i++) {
		ptl_event_t ev = {.type = PTL_EVENT_ACK};
		if (spec.is_a) {
			ev = NEXT(eq_a);
			CHECK_EQ(ev.md_handle, at_a[ev.match_bits]);
		}
		if (spec.is_b && i < 2 * MDS) {
			ev = NEXT(eq_b);
			CHECK_EQ(ev.md_handle, at_b[ev.match_bits]);
		}
	}
}

STATEMENT(237, no_more_moved_than_asked_for)
{
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	ptl_handle_md_t put = source(ROOM, 1, eq_a);
	ptl_handle_md_t get =
		spec_bind(spec_md(suite_alloc(ROOM), ROOM, 0, eq_a), PTL_RETAIN);
	offer_all_at_b(
		spec_md(suite_alloc(100), 100, PUT_GET_AT | PTL_MD_TRUNCATE, eq_b));
	for (ptl_size_t i = 0; i <= 100; i += 5) {
		ptl_size_t left = 100 - i;
		for (int k = 0; spec.is_a && k < 7; k++) {
			if (k == 0)
				CHECK_OK(PtlPut(
					put, PTL_ACK_REQ, spec.b, SPEC_PT, 0, 1, i, 0));
			else if (k == 3)
				CHECK_OK(PtlGet(get, spec.b, SPEC_PT, 0, 1, i));
			else if (k == 5)
				CHECK_OK(PtlGetPutRegion(
					get, 0, put, 0, 16, spec.b, SPEC_PT, 0, 1, i, 0));
			ptl_event_t ev = NEXT(eq_a);
			bool sends = ev.type == PTL_EVENT_SEND_START ||
				     ev.type == PTL_EVENT_SEND_END;
			CHECK_EQ(ev.rlength, k < 5 ? ROOM : 16);
			CHECK_EQ(ev.mlength,
				sends || left > ev.rlength ? ev.rlength : left);
		}
		for (int k = 0; spec.is_a && k < 2; k++) {
			ptl_event_t ev = NEXT(eq_a); /* the last REPLY pair */
			CHECK_EQ(ev.rlength, 16);
			CHECK_EQ(ev.mlength, left < 16 ? left : 16);
		}
		for (int k = 0; spec.is_b && k < 6; k++) {
			ptl_event_t ev = NEXT(eq_b);
			CHECK_EQ(ev.mlength, left < ev.rlength ? left : ev.rlength);
		}
		spec_barrier();
	}
}

/* Put length bytes to the remote offset; B has room for some of them. */
static void ack_of(ptl_handle_eq_t eq, ptl_handle_md_t put, ptl_md_t md,
	ptl_size_t length, ptl_size_t remote, uint64_t seed)
{
	ptl_size_t left = 1000 - remote;
	CHECK_OK(PtlPutRegion(put, 7, length, PTL_ACK_REQ, spec.b, SPEC_PT, 0, mix(seed),
		remote, seed));
	(void)EXPECT_PAIR(eq, PTL_EVENT_SEND_START);
	struct fields ack = fields_of(spec.b, put, md, mix(seed), length);
	ack.mlength = length < left ? length : left;
	ack.offset = remote;
	(void)CHECK_NEXT(eq, PTL_EVENT_ACK, &ack);
}

static void offer_a_thousand(unsigned char *bytes)
{
	offer_all_at_b(spec_md(bytes, 1000, PUT_GET_AT | PTL_MD_TRUNCATE, PTL_EQ_NONE));
}

STATEMENT(238, what_an_ack_says)
{
	offer_a_thousand(suite_alloc(1000));
	if (!spec.is_a)
		return;
	ptl_handle_eq_t eq = spec_eq(64);
	ptl_md_t md = spec_md(pattern(MIB, 1), MIB, 0, eq);
	ptl_handle_md_t put = spec_bind(md, PTL_RETAIN);
	static const ptl_size_t lengths[] = {0, 1, 100, 1000, 1001, 5000, MIB - 7};
	static const ptl_size_t remote[] = {0, 1, 999, 1000};
	for (unsigned i = 0; i < 28; i++)
		ack_of(eq, put, md, lengths[i / 4], remote[i % 4], i);
}

static void reply_of(ptl_handle_eq_t eq, ptl_handle_md_t get, ptl_md_t md,
	ptl_size_t length, ptl_size_t remote, uint64_t seed)
{
	ptl_size_t left = 1000 - remote;
	CHECK_OK(PtlGetRegion(get, 7, length, spec.b, SPEC_PT, 0, mix(seed), remote));
	struct fields reply = fields_of(spec.b, get, md, mix(seed), length);
	reply.mlength = length < left ? length : left;
	reply.offset = remote;
	(void)CHECK_PAIR(eq, PTL_EVENT_REPLY_START, &reply);
	CHECK_BYTES((char *)md.start + 7, remote, reply.mlength, 1);
}

STATEMENT(239, what_a_reply_says)
{
	offer_a_thousand(pattern(1000, 1));
	if (!spec.is_a)
		return;
	ptl_handle_eq_t eq = spec_eq(64);
	ptl_md_t md = spec_md(suite_alloc(MIB), MIB, 0, eq);
	ptl_handle_md_t get = spec_bind(md, PTL_RETAIN);
	static const ptl_size_t lengths[] = {0, 1, 100, 1000, 1001, 5000, MIB - 7};
	static const ptl_size_t remote[] = {0, 1, 999, 1000};
	for (unsigned i = 0; i < 28; i++)
		reply_of(eq, get, md, lengths[i / 4], remote[i % 4], i);
}

STATEMENT(240, what_a_send_says)
{
	offer_a_thousand(suite_alloc(1000));
	if (!spec.is_a)
		return;
	ptl_handle_eq_t eq = spec_eq(64);
	ptl_md_t md = spec_md(pattern(MIB, 1), MIB, 0, eq);
	ptl_handle_md_t put = spec_bind(md, PTL_RETAIN);
	static const ptl_size_t offset[] = {512, 0, 1, 4096, 100001, MIB};
	for (unsigned i = 0; i < 24; i++) {
		ptl_size_t from = offset[i % 6], room = MIB - from;
		ptl_size_t length = mix(i) % 5000 < room ? mix(i) % 5000 : room;
		ptl_pt_index_t pt = SPEC_PT + i % 3; /* accepted, or dropped */
		struct fields want = fields_of(spec.a, put, md, mix(i), length);
		want.pt_index = pt;
		want.offset = from;
		want.hdr_data = ~mix(i);
		CHECK_OK(PtlPutRegion(put, from, length, PTL_NO_ACK_REQ, spec.b, pt, 0,
			mix(i), i % 2 ? 77 : 0, ~mix(i)));
		(void)CHECK_PAIR(eq, PTL_EVENT_SEND_START, &want);
	}
}

/* ---- 241 - 242: disabled events ---- */

static const unsigned disabled[] = {0, PTL_MD_EVENT_START_DISABLE,
	PTL_MD_EVENT_END_DISABLE, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE};

static void expect_some(ptl_handle_eq_t eq, ptl_event_kind_t start, unsigned options)
{
	if (!(options & PTL_MD_EVENT_START_DISABLE))
		(void)EXPECT(eq, start);
	if (!(options & PTL_MD_EVENT_END_DISABLE))
		(void)EXPECT(eq, start + 1);
}

static ptl_handle_md_t with_options(
	void *start, ptl_size_t length, unsigned options, ptl_handle_eq_t eq)
{
	return spec_bind(
		with_threshold(spec_md(start, length, options, eq), 10), PTL_RETAIN);
}

/* Wait for the end of all operations; each counts from its START on. */
static void wait_for_threshold(ptl_handle_md_t md, int threshold)
{
	struct patience p = patience_begin();
	ptl_sr_value_t under_way;
	while (query(md).threshold != threshold)
		CHECK(!patience_is_over(&p));
	do {
		CHECK_OK(PtlNIStatus(spec.ni, PTL_SR_MSGS_CUR, &under_way));
		CHECK(!patience_is_over(&p));
	} while (under_way);
}

/* Do a put, then a get, then a getput, each alone; both sides have these options. */
static void all_kinds(unsigned options, ptl_size_t length)
{
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	unsigned char *at_b = suite_alloc(length), *got = suite_alloc(length);
	ptl_handle_md_t put = with_options(pattern(length, 3), length, options, eq_a);
	ptl_handle_md_t get = with_options(got, length, options, eq_a), target = 0;
	if (spec.is_b)
		target = spec_target(length + options,
			with_threshold(
				spec_md(at_b, length, options | PUT_GET_AT, eq_b), 10));
	for (int i = 0; i < 3; i++) {
		spec_barrier();
		if (spec.is_a && i == 0)
			spec_put(put, PTL_NO_ACK_REQ, length + options);
		if (spec.is_a && i == 1)
			spec_get(get, length + options);
		if (spec.is_a && i == 2)
			CHECK_OK(PtlGetPutRegion(get, 0, put, 0, 8, spec.b, SPEC_PT, 0,
				length + options, 0, 0));
		if (spec.is_a && i != 1)
			expect_some(eq_a, PTL_EVENT_SEND_START, options);
		if (spec.is_a && i != 0) {
			expect_some(eq_a, PTL_EVENT_REPLY_START, options);
			wait_for_threshold(get, 10 - i);
		}
		if (spec.is_b) {
			expect_some(eq_b,
				i == 0   ? PTL_EVENT_PUT_START
				: i == 1 ? PTL_EVENT_GET_START
					 : PTL_EVENT_GETPUT_START,
				options);
			wait_for_threshold(target, 9 - i);
		}
	}
	SILENCE(eq_a);
	SILENCE(eq_b);
	if (spec.is_a) {
		CHECK_EQ(query(put).threshold, 8);
		CHECK_BYTES(got, 0, length, 3);
	}
	spec_barrier();
	if (spec.is_b)
		CHECK_BYTES(at_b, 0, length, 3);
}

STATEMENT(241, disabled_events)
{
	for (int i = 0; i < 4; i++) {
		all_kinds(disabled[i], 100);
		all_kinds(disabled[i], 200000);
	}
}

STATEMENT(242, acks_and_unlinks_are_not_disabled)
{
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	ptl_md_t md = spec_md(suite_alloc(ROOM), ROOM, PTL_MD_OP_PUT | disabled[3], eq_b);
	for (int i = 0; spec.is_b && i < 20; i++)
		(void)attach_flags(
			SPEC_BITS, with_threshold(md, 1), PTL_UNLINK, PTL_UNLINK, NULL);
	spec_barrier();
	for (int i = 0; spec.is_a && i < 20; i++) {
		ptl_md_t from =
			with_threshold(spec_md(pattern(50, 1), 50, disabled[3], eq_a), 2);
		ptl_handle_md_t put = spec_bind(from, PTL_UNLINK);
		struct fields want =
			fields_of(spec.b, put, with_threshold(from, 0), SPEC_BITS, 50);
		spec_put(put, PTL_ACK_REQ, SPEC_BITS);
		(void)CHECK_NEXT(eq_a, PTL_EVENT_ACK, &want);
		(void)EXPECT(eq_a, PTL_EVENT_UNLINK);
		CHECK_RC(PtlMDUnlink(put), PTL_MD_INVALID);
	}
	for (int i = 0; spec.is_b && i < 20; i++)
		(void)EXPECT(eq_b, PTL_EVENT_UNLINK);
	SILENCE(eq_a);
	SILENCE(eq_b);
	CHECK_EQ(spec_drops(), 0);
}

/* ---- 243 - 246: UNLINK ---- */

/* Check that UNLINK repeats the operation's event, and is the last one. */
static void unlink_repeats(ptl_handle_eq_t eq, const ptl_event_t *last)
{
	ptl_event_t ev = EXPECT(eq, PTL_EVENT_UNLINK);
	CHECK_EQ(ev.link, last->link);
	CHECK_EQ(ev.sequence, (ptl_seq_t)(last->sequence + 1));
	CHECK_EQ(ev.md_handle, last->md_handle);
	CHECK_EQ(ev.md.threshold, 0);
	CHECK_EQ(last->md.threshold, 0);
	CHECK(same_md(&ev.md, &last->md));
	CHECK(ev.initiator.nid == last->initiator.nid &&
		ev.initiator.pid == last->initiator.pid);
	CHECK_EQ(ev.match_bits, last->match_bits);
	CHECK_EQ(ev.pt_index, last->pt_index);
	CHECK_EQ(ev.rlength, last->rlength);
	CHECK_EQ(ev.mlength, last->mlength);
	CHECK(ev.unlinked);
	CHECK(!last->unlinked);
}

/* A: do an operation that exhausts its descriptor: a put with ACK, a get, or a put. */
static void unlink_at_a(ptl_handle_eq_t eq, ptl_size_t length, int kind)
{
	ptl_md_t md = spec_md(pattern(length, 1), length, 0, eq);
	md.threshold = kind == 0 ? 2 : 1;
	ptl_handle_md_t handle = spec_bind(md, PTL_UNLINK);
	ptl_event_t last;
	if (kind == 1) {
		spec_get(handle, SPEC_BITS);
		last = EXPECT_PAIR(eq, PTL_EVENT_REPLY_START);
	} else {
		spec_put(handle, kind == 0 ? PTL_ACK_REQ : PTL_NO_ACK_REQ, SPEC_BITS);
		last = EXPECT_PAIR(eq, PTL_EVENT_SEND_START);
	}
	if (kind == 0) {
		CHECK(!last.unlinked);
		last = EXPECT(eq, PTL_EVENT_ACK);
	}
	unlink_repeats(eq, &last);
	CHECK_RC(PtlMDUnlink(handle), PTL_MD_INVALID);
}

/* B: check that the first entry takes it, and is gone. */
static void unlink_at_b(ptl_handle_eq_t eq, int kind)
{
	ptl_event_t last =
		EXPECT_PAIR(eq, kind == 1 ? PTL_EVENT_GET_START : PTL_EVENT_PUT_START);
	unlink_repeats(eq, &last);
}

STATEMENT(243, unlink_comes_last_and_once)
{
	static const ptl_size_t lengths[] = {0, 10, 1000, 10000, 300000, MIB};
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	unsigned char *at_b = suite_alloc(MIB);
	for (int i = 0; i < 18; i++) {
		ptl_size_t length = lengths[i / 3];
		if (spec.is_b)
			(void)attach_flags(SPEC_BITS,
				with_threshold(spec_md(at_b, length, PUT_GET, eq_b), 1),
				PTL_UNLINK, PTL_UNLINK, NULL);
		spec_barrier();
		if (spec.is_a)
			unlink_at_a(eq_a, length, i % 3);
		if (spec.is_b)
			unlink_at_b(eq_b, i % 3);
		spec_barrier();
	}
	SILENCE(eq_a);
	SILENCE(eq_b);
	CHECK_EQ(spec_drops(), 0);
}

STATEMENT(244, at_unlink_the_entry_is_free)
{
	enum { ROUNDS = 600, LENGTH = 20000 };
	ptl_handle_eq_t eq_b = spec_eq(64);
	ptl_md_t md = with_threshold(
		spec_md(suite_alloc(LENGTH), LENGTH, PTL_MD_OP_PUT, eq_b), 1);
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	ptl_handle_md_t handle = PTL_INVALID_HANDLE, put = source(LENGTH, 1, PTL_EQ_NONE);
	if (spec.is_b)
		handle = attach_flags(SPEC_BITS, md, PTL_RETAIN, PTL_UNLINK, &me);
	for (unsigned i = 0; i < ROUNDS; i++) {
		spec_barrier();
		if (spec.is_a)
			CHECK_OK(try_put_region(put, 0, i % 5 * 5000, PTL_NO_ACK_REQ,
				spec.b, SPEC_PT, SPEC_BITS, 0, 0));
		if (!spec.is_b)
			continue;
		ptl_event_t ev = {.type = PTL_EVENT_ACK};
		while (ev.type != PTL_EVENT_UNLINK)
			if (PtlEQGet(eq_b, &ev) == PTL_EQ_EMPTY)
				sched_yield();
		CHECK_RC(PtlMDUpdate(handle, &md, NULL, PTL_EQ_NONE), PTL_MD_INVALID);
		CHECK_OK(PtlMDAttach(me, md, PTL_UNLINK, &handle));
	}
	spec_barrier();
	CHECK_EQ(spec_drops(), 0);
}

STATEMENT(245, the_entry_goes_too)
{
	enum { ROUNDS = 100 };
	ptl_handle_eq_t eq_b = spec_eq(64);
	ptl_handle_md_t put = source(5000, 1, PTL_EQ_NONE), handle = PTL_INVALID_HANDLE;
	ptl_handle_me_t me = PTL_INVALID_HANDLE, other;
	ptl_md_t md =
		with_threshold(spec_md(suite_alloc(5000), 5000, PTL_MD_OP_PUT, eq_b), 1);
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (spec.is_b)
			handle = attach_flags(SPEC_BITS, md, PTL_UNLINK, PTL_UNLINK, &me);
		spec_barrier();
		if (spec.is_a)
			spec_put(put, PTL_NO_ACK_REQ, SPEC_BITS);
		if (!spec.is_b)
			continue;
		(void)EXPECT_PAIR(eq_b, PTL_EVENT_PUT_START);
		(void)EXPECT(eq_b, PTL_EVENT_UNLINK);
		CHECK_RC(PtlMDUnlink(handle), PTL_MD_INVALID);
		CHECK_RC(PtlMDAttach(me, md, PTL_RETAIN, NULL), PTL_ME_INVALID);
		CHECK_RC(PtlMEInsert(
				 me, spec_any(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, &other),
			PTL_ME_INVALID);
		CHECK_RC(PtlMEUnlink(me), PTL_ME_INVALID);
	}
	spec_barrier();
	if (spec.is_a)
		spec_put(put, PTL_NO_ACK_REQ, SPEC_BITS);
	if (spec.is_b)
		EXPECT_DROPS(1);
}

/* Two operations overlap, and end in any order; no event comes behind the UNLINK. */
static void two_overlapping(ptl_size_t first, ptl_size_t second, ptl_match_bits_t bits)
{
	ptl_handle_eq_t eq_b = spec_eq(16);
	unsigned char *at_b = spec.is_b ? suite_alloc(first + second) : NULL;
	ptl_handle_md_t handle = PTL_INVALID_HANDLE;
	if (spec.is_b)
		handle = attach_flags(bits,
			with_threshold(
				spec_md(at_b, first + second, PTL_MD_OP_PUT, eq_b), 2),
			PTL_RETAIN, PTL_UNLINK, NULL);
	ptl_handle_md_t put = PTL_INVALID_HANDLE;
	if (spec.is_a)
		put = source(first > second ? first : second, 1, PTL_EQ_NONE);
	spec_barrier();
	for (int i = 0; spec.is_a && i < 2; i++)
		CHECK_OK(try_put_region(put, 0, i ? second : first, PTL_NO_ACK_REQ,
			spec.b, SPEC_PT, bits, 0, 0));
	if (!spec.is_b)
		return;
	unsigned starts = 0, ends = 0;
	ptl_event_t ev = NEXT(eq_b);
	for (; ev.type != PTL_EVENT_UNLINK; ev = NEXT(eq_b)) {
		starts += ev.type == PTL_EVENT_PUT_START;
		ends += ev.type == PTL_EVENT_PUT_END;
	}
	CHECK(starts == 2 && ends == 2);
	CHECK_EQ(ev.md_handle, handle);
	CHECK_RC(PtlMDUnlink(handle), PTL_MD_INVALID);
	SILENCE(eq_b);
	CHECK_BYTES(at_b, 0, first, 1);
	CHECK_BYTES(at_b + first, 0, second, 1);
}

STATEMENT(246, one_unlink_behind_both_ends)
{
	static const ptl_size_t length[] = {10, 100000, MIB, 3 * MIB};
	for (unsigned i = 0; i < 16; i++)
		two_overlapping(length[i / 4], length[i % 4], i);
	CHECK_EQ(spec_drops(), 0);
}

/* ---- 247 - 250 ---- */

STATEMENT(247, success_in_all_events)
{
	ptl_handle_eq_t eq_a = spec_eq(1024), eq_b = spec_eq(1024);
	offer_many(eq_b);
	if (spec.is_a) {
		start_many(eq_a);
		spec_put(source(10, 1, eq_a), PTL_ACK_REQ, 1);
		ptl_md_t once = with_threshold(spec_md(NULL, 0, 0, eq_a), 1);
		spec_put(spec_bind(once, PTL_UNLINK), PTL_NO_ACK_REQ, 1);
	}
	for (unsigned i = 0; spec.is_a && i < MANY / 3 * 8 + 3 + 3; i++)
		CHECK_EQ(NEXT(eq_a).ni_fail_type, PTL_NI_OK);
	for (unsigned i = 0; spec.is_b && i < MANY * 2 + 4; i++)
		CHECK_EQ(NEXT(eq_b).ni_fail_type, PTL_NI_OK);
	SILENCE(eq_a);
	SILENCE(eq_b);
}

static bool is_gone(ptl_handle_md_t md)
{
	ptl_md_t now;
	int rc = PtlMDUpdate(md, &now, NULL, PTL_EQ_NONE);
	CHECK(rc == PTL_OK || rc == PTL_MD_INVALID);
	return rc == PTL_MD_INVALID;
}

static void wait_until_gone(ptl_handle_md_t md)
{
	struct patience p = patience_begin();
	while (!is_gone(md))
		CHECK(!patience_is_over(&p));
}

STATEMENT(248, a_descriptor_without_queue)
{
	ptl_handle_eq_t eq = spec_eq(64); /* without a descriptor */
	unsigned char *at_b = suite_alloc(ROOM), *got = suite_alloc(100);
	ptl_handle_md_t target = PTL_INVALID_HANDLE, put = target, get = target;
	ptl_md_t md = spec_md(at_b, ROOM, PUT_GET_AT, PTL_EQ_NONE);
	if (spec.is_b)
		target = attach_flags(
			SPEC_BITS, with_threshold(md, 4), PTL_UNLINK, PTL_UNLINK, NULL);
	spec_barrier();
	if (spec.is_a) {
		md = with_threshold(spec_md(pattern(100, 1), 100, 0, PTL_EQ_NONE), 2);
		put = spec_bind(md, PTL_UNLINK);
		spec_put(put, PTL_ACK_REQ, SPEC_BITS);
		wait_for_threshold(put, 1);
		spec_put(put, PTL_ACK_REQ, SPEC_BITS);
		wait_until_gone(put);
	}
	if (spec.is_b)
		wait_for_threshold(target, 2);
	spec_barrier();
	if (spec.is_a) {
		md = with_threshold(spec_md(got, 100, 0, PTL_EQ_NONE), 2);
		get = spec_bind(md, PTL_UNLINK);
		spec_get(get, SPEC_BITS);
		wait_for_threshold(get, 1);
		spec_get(get, SPEC_BITS);
		wait_until_gone(get);
		CHECK_BYTES(got, 0, 100, 1);
	}
	if (spec.is_b) {
		wait_until_gone(target);
		CHECK_BYTES(at_b, 0, 100, 1);
	}
	spec_barrier();
	SILENCE(eq);
	CHECK_EQ(spec_drops(), 0);
}

/* Every node acts with itself, in one queue: five events for a put, four for a get. */
STATEMENT(249, both_roles)
{
	ptl_handle_eq_t eq = spec_eq(64);
	for (unsigned i = 0; i < 6; i++) {
		ptl_size_t length = i * i * 9000;
		ptl_md_t here = spec_md(pattern(length, 1), length, 0, eq);
		ptl_md_t there = spec_md(suite_alloc(length + 1), length, PUT_GET_AT, eq);
		ptl_handle_md_t md = spec_bind(here, PTL_RETAIN);
		ptl_handle_md_t target = spec_target(i, there);
		unsigned seen[PTL_EVENT_UNLINK + 1] = {0};
		CHECK_OK(PtlPut(md, PTL_ACK_REQ, spec.self, SPEC_PT, 0, i, 0, 0));
		for (int k = 0; k < 5; k++) {
			ptl_event_t ev = NEXT(eq);
			bool at_target = ev.type == PTL_EVENT_PUT_START ||
					 ev.type == PTL_EVENT_PUT_END;
			struct fields want = fields_of(spec.self, at_target ? target : md,
				at_target ? there : here, i, length);
			fields_check(__FILE__, __LINE__, &ev, &want);
			seen[ev.type]++;
		}
		CHECK_OK(PtlGet(md, spec.self, SPEC_PT, 0, i, 0));
		for (int k = 0; k < 4; k++)
			seen[NEXT(eq).type]++;
		for (unsigned k = 0; k <= PTL_EVENT_UNLINK; k++)
			CHECK_EQ(seen[k], k != PTL_EVENT_GETPUT_START &&
						  k != PTL_EVENT_GETPUT_END &&
						  k != PTL_EVENT_UNLINK);
	}
	SILENCE(eq);
}

/* An MPI library acts on these members before the data are there. */
STATEMENT(250, a_put_start_is_complete)
{
	ptl_handle_eq_t eq_b = spec_eq(64);
	ptl_md_t md = spec_md(suite_alloc(8 * MIB), 8 * MIB,
		PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_MAX_SIZE, eq_b);
	ptl_handle_md_t target = PTL_INVALID_HANDLE, put = source(MIB, 1, PTL_EQ_NONE);
	md.user_ptr = &eq_b;
	md.max_size = 5;
	md.threshold = 60;
	if (spec.is_b)
		target = spec_target(SPEC_BITS, md);
	spec_barrier();
	ptl_size_t offset = 0;
	for (uint64_t i = 0; i < 40; i++) {
		ptl_size_t length = i % 4 == 3 ? 700000 + i : mix(i) % 9000;
		struct fields want = fields_of(spec.a, target,
			with_threshold(md, 59 - (int)i), SPEC_BITS, length);
		want.offset = offset;
		want.hdr_data = mix(i);
		offset += want.mlength;
		if (spec.is_a)
			CHECK_OK(try_put_region(put, 0, length, PTL_NO_ACK_REQ, spec.b,
				SPEC_PT, SPEC_BITS, 0, mix(i)));
		if (spec.is_b) {
			(void)CHECK_NEXT(eq_b, PTL_EVENT_PUT_START, &want);
			(void)CHECK_NEXT(eq_b, PTL_EVENT_PUT_END, &want);
		}
		spec_barrier();
	}
	CHECK(offset < 8 * MIB);
}
