/* SPDX-License-Identifier: BSD-3-Clause */
/* Order, progress, threads: statements 251 to 264. */
#include "fields.h"

#include <sched.h>
#include <stdlib.h>

enum { MIB = 1 << 20, KB100 = 100000 };

static void spin(uint64_t turns)
{
	for (volatile uint64_t i = 0; i < turns; i++)
		;
}

/* Return a length of 0 to 100 KB; short ones are more frequent. */
static ptl_size_t mixed_length(uint64_t i)
{
	uint64_t x = mix(i + 17);
	return i % 5 == 0 ? x % (KB100 + 1) : i % 5 == 1 ? x % 5000 : x % 200;
}

/* ---- 251 - 253 ---- */

enum { PUTS = 1000 };

/* B: PUT_STARTs come in the order of the calls, each followed by its END some time. */
static void starts_in_order(ptl_handle_eq_t eq, unsigned char *at_b)
{
	uint64_t next = 0;
	ptl_size_t offset = 0;
	for (unsigned left = 2 * PUTS; left; left--) {
		ptl_event_t ev = NEXT(eq);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		CHECK_EQ(ev.mlength, mixed_length(ev.hdr_data));
		if (ev.type == PTL_EVENT_PUT_START) {
			CHECK_EQ(ev.hdr_data, next++);
			CHECK_EQ(ev.offset, offset);
			offset += ev.mlength;
			continue;
		}
		CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
		CHECK(ev.hdr_data < next);
		CHECK_BYTES(at_b + ev.offset, ev.hdr_data, ev.mlength, 1);
	}
}

/* A: SEND_STARTs come in the order of the calls, too, each followed by its END. */
static void sends_start_in_order(ptl_handle_eq_t eq)
{
	uint64_t next = 0, ends = 0;
	for (unsigned left = 2 * PUTS; left; left--) {
		ptl_event_t ev = NEXT(eq);
		if (ev.type == PTL_EVENT_SEND_START) {
			CHECK_EQ(ev.hdr_data, next++);
			continue;
		}
		CHECK_EQ(ev.type, PTL_EVENT_SEND_END);
		CHECK(ev.hdr_data < next);
		ends++;
	}
	CHECK_EQ(ends, PUTS);
}

STATEMENT(251, puts_start_in_call_order)
{
	enum { LENGTH = 16 * MIB };
	ptl_handle_eq_t eq = spec_eq(4 * PUTS), sent = spec_eq(4 * PUTS);
	unsigned char *at_b = NULL;
	if (spec.is_b) {
		at_b = suite_alloc(LENGTH);
		(void)attach_all(SPEC_PT, spec_md(at_b, LENGTH, PTL_MD_OP_PUT, eq));
	}
	ptl_handle_md_t put = source(KB100 + PUTS, 1, sent);
	spec_barrier();
	for (uint64_t i = 0; spec.is_a && i < PUTS; i++)
		CHECK_OK(try_put_region(put, i, mixed_length(i), PTL_NO_ACK_REQ, spec.b,
			SPEC_PT, mix(i), 0, i));
	if (spec.is_b)
		starts_in_order(eq, at_b);
	if (spec.is_a)
		sends_start_in_order(sent);
	spec_barrier();
	CHECK_EQ(spec_drops(), 0);
}

/* B: STARTs of any kind have match bits 0, 1, 2... */
static void starts_in_order_of_bits(ptl_handle_eq_t eq, unsigned count,
	ptl_event_kind_t (*kind)(uint64_t), ptl_pt_index_t (*portal)(uint64_t))
{
	uint64_t next = 0;
	for (unsigned left = 2 * count; left; left--) {
		ptl_event_t ev = NEXT(eq);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		CHECK(ev.match_bits <= next);
		CHECK_EQ(ev.pt_index, portal(ev.match_bits));
		ptl_event_kind_t start = kind(ev.match_bits);
		if (ev.match_bits < next) {
			CHECK_EQ(ev.type, start + 1);
			continue;
		}
		CHECK_EQ(ev.type, start);
		next++;
	}
}

static ptl_event_kind_t always_put(uint64_t i)
{
	(void)i;
	return PTL_EVENT_PUT_START;
}

static ptl_event_kind_t some_kind(uint64_t i)
{
	static const ptl_event_kind_t kind[] = {
		PTL_EVENT_PUT_START, PTL_EVENT_GET_START, PTL_EVENT_GETPUT_START};
	return kind[mix(i) % 3];
}

static ptl_pt_index_t some_portal(uint64_t i)
{
	return (ptl_pt_index_t)(mix(i + 3) % 16);
}

static void offer_portals(ptl_handle_eq_t eq)
{
	unsigned char *at_b = spec.is_b ? suite_alloc(2 * MIB) : NULL;
	for (ptl_pt_index_t pt = 0; spec.is_b && pt < 16; pt++)
		(void)attach_all(pt, spec_md(at_b, 2 * MIB, PUT_GET_AT, eq));
	spec_barrier();
}

STATEMENT(252, order_holds_across_portals)
{
	ptl_handle_eq_t eq = spec_eq(4 * PUTS);
	ptl_handle_md_t put = source(KB100, 1, PTL_EQ_NONE);
	offer_portals(eq);
	for (uint64_t i = 0; spec.is_a && i < PUTS; i++)
		CHECK_OK(try_put_region(put, 0, mixed_length(i), PTL_NO_ACK_REQ, spec.b,
			some_portal(i), i, i, 0));
	if (spec.is_b)
		starts_in_order_of_bits(eq, PUTS, always_put, some_portal);
}

static void request(ptl_handle_md_t put, ptl_handle_md_t get, uint64_t i)
{
	ptl_event_kind_t kind = some_kind(i);
	ptl_pt_index_t pt = some_portal(i);
	int rc;
	do
		rc = kind == PTL_EVENT_PUT_START
			     ? PtlPutRegion(put, 0, mixed_length(i), PTL_NO_ACK_REQ,
				       spec.b, pt, 0, i, i * 8, 0)
		     : kind == PTL_EVENT_GET_START
			     ? PtlGetRegion(
				       get, 0, mixed_length(i), spec.b, pt, 0, i, i * 8)
			     : PtlGetPutRegion(get, 0, put, 0, i % 65, spec.b, pt, 0, i,
				       i * 8, 0);
	while (rc == PTL_NO_SPACE && sched_yield() == 0);
	CHECK_OK(rc);
}

STATEMENT(253, order_holds_across_kinds)
{
	ptl_handle_eq_t eq = spec_eq(4 * PUTS);
	ptl_handle_md_t put = source(KB100, 1, PTL_EQ_NONE),
			get = source(KB100, 1, PTL_EQ_NONE);
	offer_portals(eq);
	for (uint64_t i = 0; spec.is_a && i < PUTS; i++)
		request(put, get, i);
	if (spec.is_b)
		starts_in_order_of_bits(eq, PUTS, some_kind, some_portal);
	spec_barrier(); /* A's memory must not be freed before */
}

/* ---- 254, 255 ---- */

STATEMENT(254, the_long_one_matches_first)
{
	enum { ROUNDS = 60 };
	ptl_handle_eq_t eq = spec_eq(8 * ROUNDS);
	ptl_handle_md_t put = source(MIB, 1, PTL_EQ_NONE), md[2 * ROUNDS];
	unsigned char *at_b = suite_alloc(MIB);
	for (int i = 0; spec.is_b && i < 2 * ROUNDS; i++)
		md[i] = attach_flags(SPEC_BITS,
			with_threshold(spec_md(at_b, MIB, PTL_MD_OP_PUT, eq), 1),
			PTL_UNLINK, PTL_UNLINK, NULL);
	spec_barrier();
	for (uint64_t i = 0; spec.is_a && i < 2 * ROUNDS; i++)
		CHECK_OK(
			try_put_region(put, 0, (ptl_size_t)(i % 2 ? 1 : MIB >> i / 2 % 6),
				PTL_NO_ACK_REQ, spec.b, SPEC_PT, SPEC_BITS, 0, i));
	for (unsigned left = 6 * ROUNDS; spec.is_b && left; left--) {
		ptl_event_t ev = NEXT(eq);
		if (ev.type != PTL_EVENT_UNLINK)
			CHECK_EQ(ev.md_handle, md[ev.hdr_data]);
	}
	spec_barrier();
}

/* The flag has its own portal, entry and descriptor; data of all lengths come before
 * it. */
STATEMENT(255, the_flag_starts_behind_the_data)
{
	enum { ROUNDS = 300, FLAG = 1, DATA = 2 };
	ptl_handle_eq_t eq = spec_eq(8 * ROUNDS);
	unsigned char *at_b = suite_alloc(KB100);
	ptl_handle_md_t put = source(KB100, 1, PTL_EQ_NONE);
	unsigned options = PUT_AT;
	if (spec.is_b) {
		(void)spec_target(FLAG, spec_md(at_b, 8, options, eq));
		(void)spec_target(DATA, spec_md(at_b, KB100, options, eq));
	}
	spec_barrier();
	for (uint64_t i = 0; spec.is_a && i < ROUNDS; i++) {
		CHECK_OK(try_put_region(put, 0, mixed_length(i), PTL_NO_ACK_REQ, spec.b,
			SPEC_PT, DATA, 0, i));
		CHECK_OK(try_put_region(
			put, 0, 8, PTL_NO_ACK_REQ, spec.b, SPEC_PT, FLAG, 0, i));
	}
	for (uint64_t starts = 0, left = 4 * ROUNDS; spec.is_b && left; left--) {
		ptl_event_t ev = NEXT(eq);
		if (ev.type != PTL_EVENT_PUT_START)
			continue;
		CHECK_EQ(ev.hdr_data, starts / 2);
		CHECK_EQ(ev.match_bits, starts % 2 ? FLAG : DATA);
		starts++;
	}
	spec_barrier();
}

/* ---- 256, 257: application bypass ---- */

struct away {
	ptl_handle_eq_t eq;
	ptl_handle_md_t put, get;
	unsigned char *got;
	unsigned gone; /* calls of put_and_go() */
};

static struct away away_setup(ptl_handle_eq_t eq_b, unsigned char *at_b)
{
	struct away w = {.eq = spec_eq(64), .got = suite_alloc(MIB)};
	w.put = source(MIB, 1, w.eq);
	w.get = spec_bind(spec_md(w.got, MIB, 0, w.eq), PTL_RETAIN);
	offer_at_b(SPEC_BITS, spec_md(at_b, MIB, PUT_GET_AT, eq_b));
	return w;
}

static void put_and_get(struct away *w, ptl_size_t length)
{
	CHECK_OK(try_put_region(
		w->put, 0, length, PTL_ACK_REQ, spec.b, SPEC_PT, SPEC_BITS, 0, 0));
	(void)EXPECT_PAIR(w->eq, PTL_EVENT_SEND_START);
	(void)EXPECT(w->eq, PTL_EVENT_ACK);
	memset(w->got, 0, length);
	CHECK_OK(PtlGetRegion(w->get, 0, length, spec.b, SPEC_PT, 0, SPEC_BITS, 0));
	(void)EXPECT_PAIR(w->eq, PTL_EVENT_REPLY_START);
	CHECK_BYTES(w->got, 0, length, 1);
	CHECK_OK(PtlGetPutRegion(
		w->get, 0, w->put, 0, 16, spec.b, SPEC_PT, 0, SPEC_BITS, 0, 0));
	(void)EXPECT_PAIR(w->eq, PTL_EVENT_SEND_START);
	(void)EXPECT_PAIR(w->eq, PTL_EVENT_REPLY_START);
}

STATEMENT(256, the_target_need_not_call)
{
	NEED_TWO_NODES();
	static const ptl_size_t lengths[] = {0, 8, 5000, 200000, MIB};
	unsigned char *at_b = suite_alloc(MIB);
	struct away w = away_setup(PTL_EQ_NONE, at_b);
	for (int i = 0; spec.is_a && i < 5; i++)
		put_and_get(&w, lengths[i]);
	if (spec.is_a)
		spec_say();
	if (spec.is_b) {
		spec_hear(1); /* B has made no call since the beginning */
		CHECK_BYTES(at_b, 0, MIB, 1);
	}
	spec_barrier();
}

static bool holds(const unsigned char *at, ptl_size_t length)
{
	const volatile unsigned char *bytes = at;
	for (ptl_size_t i = 0; i < length; i++)
		if (bytes[i] != byte_of(1, i))
			return false;
	return true;
}

/* A calls PtlPut and leaves; B sees the memory fill up without a call, too. */
static void put_and_go(struct away *w, unsigned char *at_b, ptl_size_t length)
{
	struct patience p = patience_begin();
	if (spec.is_a)
		CHECK_OK(try_put_region(w->put, 0, length, PTL_NO_ACK_REQ, spec.b,
			SPEC_PT, SPEC_BITS, 0, 0));
	while (spec.is_b && !holds(at_b, length)) {
		CHECK(!patience_is_over(&p));
		sleep_ms(1);
	}
	w->gone++;
	if (spec.is_b)
		spec_say();
	if (spec.is_a)
		spec_hear(w->gone); /* A has made no call since its PtlPut */
	spec_barrier();
	if (spec.is_b)
		memset(at_b, 0, length);
	spec_barrier();
}

/* A calls PtlGet and leaves; its own memory shows the end, and B's GET_END. */
static void get_and_go(struct away *w, ptl_handle_eq_t eq_b, ptl_size_t length)
{
	struct patience p = patience_begin();
	if (spec.is_a) {
		CHECK_OK(PtlGetRegion(
			w->get, 0, length, spec.b, SPEC_PT, 0, SPEC_BITS, 0));
		while (!holds(w->got, length)) {
			CHECK(!patience_is_over(&p));
			sleep_ms(1);
		}
		memset(w->got, 0, length);
	}
	if (spec.is_b)
		(void)EXPECT_PAIR(eq_b, PTL_EVENT_GET_START);
	spec_barrier();
}

STATEMENT(257, the_initiator_need_not_call)
{
	static const ptl_size_t lengths[] = {8, 5000, 200000, MIB};
	ptl_handle_eq_t eq_b = spec_eq(64);
	unsigned char *at_b = suite_alloc(MIB);
	struct away w = away_setup(eq_b, at_b);
	for (int i = 0; i < 4; i++) {
		put_and_go(&w, at_b, lengths[i]);
		if (spec.is_b)
			(void)EXPECT_PAIR(eq_b, PTL_EVENT_PUT_START);
	}
	if (spec.is_b)
		fill_bytes(at_b, MIB, 1);
	spec_barrier();
	for (int i = 0; i < 4; i++)
		get_and_go(&w, eq_b, lengths[i]);
}

/* ---- 258: eight threads ---- */

enum { THREADS = 8, EACH = 600 };

struct caller {
	unsigned id;
	ptl_handle_md_t put, own;
};

/* Every other put is from a descriptor that all threads share. */
static void call_often(void *arg)
{
	struct caller *c = arg;
	for (uint64_t i = 0; i < EACH; i++)
		CHECK_OK(try_put_region(i % 2 ? c->put : c->own, 0,
			mixed_length(i * THREADS + c->id) / 8, PTL_NO_ACK_REQ, spec.b,
			SPEC_PT, c->id, 0, i));
}

static void all_in_thread_order(ptl_handle_eq_t eq)
{
	uint64_t next[THREADS] = {0}, ends[THREADS] = {0};
	for (unsigned left = 2 * THREADS * EACH; left; left--) {
		ptl_event_t ev = NEXT(eq);
		CHECK(ev.match_bits < THREADS);
		CHECK_EQ(ev.rlength,
			mixed_length(ev.hdr_data * THREADS + ev.match_bits) / 8);
		if (ev.type == PTL_EVENT_PUT_START)
			CHECK_EQ(ev.hdr_data, next[ev.match_bits]++);
		else
			ends[ev.match_bits]++;
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(next[i] == EACH && ends[i] == EACH);
	SILENCE(eq);
}

STATEMENT(258, eight_threads_put)
{
	ptl_handle_eq_t eq = spec_eq(2 * THREADS * EACH);
	struct caller caller[THREADS];
	ptl_handle_md_t shared = source(KB100, 1, PTL_EQ_NONE);
	offer_all_at_b(spec_md(suite_alloc(KB100), KB100, PUT_AT, eq));
	for (unsigned i = 0; spec.is_a && i < THREADS; i++)
		caller[i] = (struct caller){i, shared, source(KB100, 1, PTL_EQ_NONE)};
	struct thread *thread[THREADS];
	for (unsigned i = 0; spec.is_a && i < THREADS; i++)
		thread[i] = thread_start(call_often, &caller[i]);
	if (spec.is_b)
		all_in_thread_order(eq);
	for (unsigned i = 0; spec.is_a && i < THREADS; i++)
		thread_join(thread[i]);
	spec_barrier();
	CHECK_EQ(spec_drops(), 0);
}

/* ---- 259: a list that changes under traffic ---- */

enum { TRAFFIC = 20480, PERSISTENT = 8 };

static _Atomic bool quiet;
static _Atomic unsigned changes;

/* Add and remove entries beside the others: at both ends, and next to the nth of them. */
static void change_list(void *arg)
{
	ptl_handle_me_t *me = arg;
	for (unsigned i = 0; !quiet; i++) {
		ptl_handle_me_t more[4];
		ptl_md_t md = spec_md(NULL, 0, PTL_MD_OP_PUT, PTL_EQ_NONE);
		CHECK_OK(PtlMEAttach(spec.ni, SPEC_PT, spec_any(), 999, 0, PTL_RETAIN,
			PTL_INS_BEFORE, &more[0]));
		CHECK_OK(PtlMEInsert(me[i % PERSISTENT], spec_any(), 999, 0, PTL_UNLINK,
			PTL_INS_BEFORE, &more[1]));
		CHECK_OK(PtlMEMDInsert(me[i * 3 % PERSISTENT], spec_any(), 999, 0,
			PTL_RETAIN, PTL_INS_AFTER, md, PTL_UNLINK, &more[2], NULL));
		CHECK_OK(PtlMEAttach(spec.ni, SPEC_PT, spec_any(), 999, 0, PTL_RETAIN,
			PTL_INS_AFTER, &more[3]));
		CHECK_OK(PtlMDAttach(more[i % 2], md, PTL_RETAIN, NULL));
		for (unsigned k = 0; k < 4; k++)
			CHECK_OK(PtlMEUnlink(more[(k + i) % 4]));
		changes += 4;
	}
}

static void traffic(ptl_handle_eq_t eq)
{
	ptl_handle_md_t put = source(1000, 1, eq);
	for (uint64_t i = 0; i < TRAFFIC; i++) {
		bool ack = i % 64 == 63;
		CHECK_OK(try_put_region(put, 0, i % 1000,
			ack ? PTL_ACK_REQ : PTL_NO_ACK_REQ, spec.b, SPEC_PT,
			i % PERSISTENT, 0, i));
		if (!ack)
			continue;
		while (NEXT(eq).type != PTL_EVENT_ACK)
			;
	}
}

STATEMENT(259, nothing_is_lost_while_the_list_changes)
{
	ptl_handle_eq_t eq = spec_eq(1024);
	unsigned options = PUT_AT;
	ptl_handle_me_t *me = suite_alloc(PERSISTENT * sizeof *me);
	ptl_handle_md_t md[PERSISTENT];
	unsigned char *at_b = suite_alloc(1000);
	for (unsigned i = 0; i < PERSISTENT; i++)
		md[i] = attach_flags(i,
			with_threshold(
				spec_md(at_b, 1000, options, PTL_EQ_NONE), TRAFFIC),
			PTL_RETAIN, PTL_RETAIN, &me[i]);
	quiet = false;
	changes = 0;
	spec_barrier();
	struct thread *thread[2];
	for (int i = 0; spec.is_b && i < 2; i++)
		thread[i] = thread_start(change_list, me);
	if (spec.is_a)
		traffic(eq);
	spec_barrier();
	quiet = true;
	for (int i = 0; spec.is_b && i < 2; i++)
		thread_join(thread[i]);
	for (unsigned i = 0; spec.is_b && i < PERSISTENT; i++)
		CHECK_EQ(query(md[i]).threshold, TRAFFIC - TRAFFIC / PERSISTENT);
	CHECK_EQ(spec_drops(), 0);
	if (spec.is_b)
		spec_note("%u changes", changes);
}

/* ---- 260: unlink against arrivals ---- */

enum { SHELLS = 2 * MIB, UNTOUCHED = 0xee };

struct barrage {
	ptl_handle_eq_t eq;
	ptl_handle_md_t put;
};

/* A: put all lengths, with a limited number under way, until told to stop. */
static void fire(void *arg)
{
	struct barrage *b = arg;
	for (uint64_t i = 0; !quiet; i++) {
		ptl_size_t length = i % 3 == 0 ? mix(i) % SHELLS : mix(i) % 9000;
		CHECK_OK(try_put_region(b->put, 0, length, PTL_NO_ACK_REQ, spec.b,
			SPEC_PT, SPEC_BITS, 0, 0));
		if (i % 4 != 3)
			continue;
		for (int ends = 0; ends < 4;)
			ends += NEXT(b->eq).type == PTL_EVENT_SEND_END;
	}
}

/* B: after PTL_OK the pattern that is put there stays. */
static void unlink_once(unsigned char *at_b, unsigned round, unsigned *refusals)
{
	ptl_handle_me_t me;
	unsigned options = PUT_AT;
	ptl_md_t md = spec_md(at_b, SHELLS, options, PTL_EQ_NONE);
	ptl_handle_md_t handle = attach_flags(SPEC_BITS, md, PTL_RETAIN, PTL_RETAIN, &me);
	if (round % 8 == 7)
		/* pause: the NIC thread works on it meanwhile */
		sleep_ms(3);
	spin(mix(round) % 300000);
	struct patience p = patience_begin();
	for (int rc = -1; rc != PTL_OK; *refusals += rc != PTL_OK) {
		rc = round % 2 ? PtlMDUnlink(handle) : PtlMEUnlink(me);
		CHECK(rc == PTL_OK || rc == (round % 2 ? PTL_MD_IN_USE : PTL_ME_IN_USE));
		CHECK(!patience_is_over(&p));
	}
	memset(at_b, UNTOUCHED, SHELLS);
	/* pause: time for a wrong write to show */
	sleep_ms(round % 4);
	CHECK(at_b[0] == UNTOUCHED && memcmp(at_b, at_b + 1, SHELLS - 1) == 0);
	if (round % 2)
		CHECK_OK(PtlMEUnlink(me));
}

STATEMENT(260, no_write_behind_an_unlink)
{
	enum { ROUNDS = 250, BUDGET = 1200 };
	struct barrage b = {.eq = spec_eq(64)};
	unsigned refusals = 0;
	quiet = false;
	if (spec.is_a)
		b.put = source(SHELLS, 1, b.eq);
	unsigned char *at_b = spec.is_b ? suite_alloc(SHELLS) : NULL;
	spec_barrier();
	struct thread *thread = spec.is_a ? thread_start(fire, &b) : NULL;
	uint64_t end = now_ms() + BUDGET;
	unsigned rounds = 0;
	while (spec.is_b && rounds < ROUNDS && now_ms() < end)
		unlink_once(at_b, rounds++, &refusals);
	spec_barrier();
	quiet = true;
	if (thread)
		thread_join(thread);
	if (spec.is_b)
		spec_note("%u rounds, %u refusals", rounds, refusals);
}

/* ---- 261 ---- */

struct waiter {
	ptl_handle_eq_t eq;
	ptl_hdr_data_t hdr[3];
	_Atomic int returned;
};

static void wait_thrice(void *arg)
{
	struct waiter *w = arg;
	for (int i = 0; i < 3; i++) {
		ptl_event_t ev;
		CHECK_OK(PtlEQWait(w->eq, &ev));
		CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
		w->hdr[i] = ev.hdr_data;
		w->returned++;
	}
}

/* Make calls of all kinds on other objects; the waiting thread's queue gets nothing. */
static void many_calls(unsigned i, ptl_handle_eq_t busy)
{
	ptl_handle_eq_t eq = spec_eq(2 + i % 50);
	ptl_handle_md_t md = spec_bind(spec_md(NULL, 0, 0, busy), PTL_RETAIN);
	ptl_handle_me_t me = spec_me(77);
	ptl_process_id_t id;
	ptl_event_t ev;
	CHECK_OK(PtlMDAttach(me, spec_md(NULL, 0, PUT_GET, eq), PTL_RETAIN, NULL));
	CHECK_OK(PtlPut(md, PTL_ACK_REQ, spec.self, SPEC_PT, 0, 77, 0, i));
	while (NEXT(busy).type != PTL_EVENT_ACK)
		;
	CHECK_OK(PtlGetId(spec.ni, &id));
	CHECK_EQ(NEXT(eq).hdr_data, i);
	CHECK_EQ(NEXT(eq).hdr_data, i);
	CHECK_RC(PtlEQGet(eq, &ev), PTL_EQ_EMPTY);
	CHECK_OK(PtlMDUnlink(md));
	CHECK_OK(PtlMEUnlink(me));
	CHECK_OK(PtlEQFree(eq));
}

STATEMENT(261, a_waiting_thread_is_not_disturbed)
{
	struct waiter w = {.eq = spec_eq(16)};
	ptl_handle_eq_t busy = spec_eq(64);
	ptl_handle_md_t put = source(8, 1, PTL_EQ_NONE);
	(void)spec_target(SPEC_BITS,
		spec_md(NULL, 0,
			PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE,
			w.eq));
	struct thread *thread = thread_start(wait_thrice, &w);
	for (int i = 0; i < 3; i++) {
		uint64_t end = now_ms() + 60;
		for (unsigned k = 0; now_ms() < end; k++)
			many_calls(k, busy);
		CHECK_EQ(w.returned, i);
		spec_barrier();
		if (spec.is_a) /* one event, for the waiting thread of each node */
			for (unsigned k = 0; k < spec.size; k++) {
				ptl_process_id_t to;
				CHECK_OK(PtlGetRankId(spec.ni, k, &to));
				CHECK_OK(PtlPut(put, PTL_NO_ACK_REQ, to, SPEC_PT, 0,
					SPEC_BITS, 0, 100 + (ptl_hdr_data_t)i));
			}
		struct patience p = patience_begin();
		while (w.returned == i)
			CHECK(!patience_is_over(&p));
		spec_barrier();
	}
	thread_join(thread);
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(w.hdr[i], 100 + i);
	SILENCE(w.eq);
}

/* ---- 262 ---- */

WEAK_STATEMENT(262, a_stale_handle_names_nothing)
{
	enum { STALE = 512, ROUNDS = 40000 };
	ptl_handle_md_t *stale = suite_alloc(STALE * sizeof *stale);
	unsigned char *bytes = suite_alloc(8);
	ptl_md_t now;
	for (unsigned i = 0; i < ROUNDS; i++) {
		ptl_handle_md_t md =
			spec_bind(spec_md(bytes, 8, 0, PTL_EQ_NONE), PTL_RETAIN);
		for (unsigned k = 0; k < STALE && k < i; k += 1 + i % 64)
			CHECK(stale[k] != md);
		if (i > STALE)
			CHECK_RC(PtlMDUpdate(
					 stale[mix(i) % STALE], &now, NULL, PTL_EQ_NONE),
				PTL_MD_INVALID);
		CHECK_OK(PtlMDUnlink(md));
		CHECK_RC(PtlMDUnlink(md), PTL_MD_INVALID);
		if (i < STALE || i % 100 == 0)
			stale[i < STALE ? i : mix(i) % STALE] = md;
	}
	for (unsigned k = 0; k < STALE; k++) {
		CHECK_RC(PtlMDUnlink(stale[k]), PTL_MD_INVALID);
		CHECK_RC(PtlPut(stale[k], PTL_NO_ACK_REQ, spec.self, SPEC_PT, 0, 0, 0, 0),
			PTL_MD_INVALID);
	}
}

/* ---- 263: a million ---- */

enum { MILLION = 1000000, LOST_EACH = 8, WINDOW = 4000, BUDGET_MS = 3800 };

/* Variants of the suite (P3_QUICK) have an eighth of the time. */
static uint64_t budget_ms(void)
{
	return getenv("P3_QUICK") ? BUDGET_MS / 8 : BUDGET_MS;
}

/* Send word i to word i, and each eighth message to no entry.  Return the number of
 * those. */
static uint64_t send_words(ptl_handle_md_t put, ptl_handle_eq_t eq)
{
	uint64_t end = now_ms() + budget_ms(), i = 0;
	while (i < MILLION) {
		bool lost = i % LOST_EACH == 3, ack = i % WINDOW == WINDOW - 1;
		int rc;
		while ((rc = PtlPutRegion(put, i * 8, 8,
				ack ? PTL_ACK_REQ : PTL_NO_ACK_REQ, spec.b, SPEC_PT, 0,
				lost ? SPEC_BITS + 1 : SPEC_BITS, i * 8, i)) ==
			PTL_NO_SPACE)
			sched_yield();
		CHECK_OK(rc);
		i++;
		if (!ack)
			continue;
		(void)EXPECT(eq, PTL_EVENT_ACK);
		if (now_ms() > end)
			break;
	}
	return i;
}

static uint64_t lost_of(uint64_t count)
{
	return count / LOST_EACH + (count % LOST_EACH > 3);
}

static void words_hold(const uint64_t *word, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		CHECK_EQ(word[i], i % LOST_EACH == 3 ? 0 : mix(i + 1));
	CHECK_ZERO(word + count, (MILLION - count) * 8);
}

/* A: send all of them, then their number. */
static void send_million(ptl_handle_eq_t eq)
{
	uint64_t *word = suite_alloc(MILLION * sizeof *word);
	for (uint64_t i = 0; i < MILLION; i++)
		word[i] = mix(i + 1);
	ptl_handle_md_t put = spec_bind(
		spec_md(word, MILLION * 8,
			PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, eq),
		PTL_RETAIN);
	uint64_t since = now_ms(), count = send_words(put, eq);
	spec_note("%llu messages in %llu ms", (unsigned long long)count,
		(unsigned long long)(now_ms() - since));
	CHECK_OK(try_put_region(put, 0, 0, PTL_NO_ACK_REQ, spec.b, SPEC_PT, 1, 0, count));
	CHECK(count == MILLION || count >= WINDOW);
}

STATEMENT(263, a_million_messages)
{
	ptl_handle_eq_t eq = spec_eq(64), told = spec_eq(16);
	uint64_t *word = NULL;
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	if (spec.is_b) {
		word = suite_alloc(MILLION * sizeof *word);
		md = spec_target(SPEC_BITS,
			with_threshold(spec_md(word, MILLION * 8, PUT_AT, PTL_EQ_NONE),
				MILLION));
		(void)spec_target(
			1, spec_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE,
				   told));
	}
	spec_barrier();
	if (spec.is_a)
		send_million(eq);
	if (spec.is_b) {
		uint64_t count = EXPECT(told, PTL_EVENT_PUT_END).hdr_data;
		CHECK_EQ(query(md).threshold, MILLION - (count - lost_of(count)));
		CHECK_EQ(spec_drops(), lost_of(count));
		words_hold(word, count);
	}
	spec_barrier();
}

/* ---- 264: two interfaces ---- */

struct half {
	ptl_handle_ni_t ni;
	ptl_process_id_t b;
	ptl_handle_eq_t eq_a, eq_b;
	unsigned char *at_b;
	ptl_handle_md_t put;
	uint64_t drops;
};

static struct half half(ptl_handle_ni_t ni, unsigned seed)
{
	struct half h = {.ni = ni, .at_b = suite_alloc(100)};
	ptl_handle_me_t me;
	CHECK_OK(PtlGetRankId(ni, spec.size > 1, &h.b));
	CHECK_OK(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &h.eq_a));
	CHECK_OK(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &h.eq_b));
	CHECK_OK(PtlMDBind(
		ni, spec_md(pattern(100, seed), 100, 0, h.eq_a), PTL_RETAIN, &h.put));
	if (!spec.is_b)
		return h;
	CHECK_OK(PtlMEAttach(
		ni, SPEC_PT, spec_any(), SPEC_BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	CHECK_OK(PtlMDAttach(me, spec_md(h.at_b, 100, PUT_AT, h.eq_b), PTL_RETAIN, NULL));
	return h;
}

static uint64_t half_drops(struct half *h)
{
	ptl_sr_value_t drops;
	CHECK_OK(PtlNIStatus(h->ni, PTL_SR_DROP_COUNT, &drops));
	return (uint64_t)drops;
}

/* Put through one interface, and check its trace there, and that the other has none. */
static void half_put(struct half *h, struct half *other, unsigned seed, bool accepted)
{
	if (spec.is_a) {
		CHECK_OK(PtlPut(
			h->put, PTL_ACK_REQ, h->b, SPEC_PT, 0, SPEC_BITS, 0, seed));
		(void)EXPECT_PAIR(h->eq_a, PTL_EVENT_SEND_START);
		if (accepted)
			(void)EXPECT(h->eq_a, PTL_EVENT_ACK);
	}
	h->drops += spec.is_b && !accepted;
	if (spec.is_b && accepted) {
		ptl_event_t end = EXPECT_PAIR(h->eq_b, PTL_EVENT_PUT_START);
		CHECK_EQ(end.hdr_data, seed);
		CHECK_BYTES(h->at_b, 0, 100, seed);
		memset(h->at_b, 0, 100);
	}
	struct patience p = patience_begin();
	while (half_drops(h) < h->drops)
		CHECK(!patience_is_over(&p));
	spec_barrier();
	SILENCE(other->eq_a);
	SILENCE(other->eq_b);
	SILENCE(h->eq_b);
	CHECK_EQ(half_drops(h), h->drops);
	CHECK_EQ(half_drops(other), other->drops);
	CHECK_ZERO(other->at_b, 100);
	spec_barrier();
}

static void half_access(struct half *h, bool open)
{
	ptl_uid_t uid;
	CHECK_OK(PtlGetUid(h->ni, &uid));
	CHECK_OK(PtlACEntry(h->ni, 0, spec_any(), open ? uid : uid + 1, PTL_JID_ANY,
		PTL_PT_INDEX_ANY));
}

STATEMENT(264, interfaces_do_not_influence_one_another)
{
	ptl_handle_ni_t second = spec_second();
	CHECK(second != spec.ni);
	spec_barrier();
	struct half one = half(spec.ni, 1), two = half(second, 2);
	spec_barrier();
	half_put(&one, &two, 1, true);
	half_put(&two, &one, 2, true);
	half_access(&one, false);
	spec_barrier();
	half_put(&one, &two, 1, false);
	half_put(&two, &one, 2, true);
	half_access(&one, true);
	half_access(&two, false);
	spec_barrier();
	half_put(&one, &two, 1, true);
	half_put(&two, &one, 2, false);
	CHECK_OK(PtlNIFini(second)); /* the other interface goes on */
	spec_barrier();
	if (spec.is_a) {
		CHECK_OK(
			PtlPut(one.put, PTL_ACK_REQ, one.b, SPEC_PT, 0, SPEC_BITS, 0, 3));
		(void)EXPECT_PAIR(one.eq_a, PTL_EVENT_SEND_START);
		(void)EXPECT(one.eq_a, PTL_EVENT_ACK);
	}
	if (spec.is_b)
		CHECK_EQ(EXPECT_PAIR(one.eq_b, PTL_EVENT_PUT_START).hdr_data, 3);
}
