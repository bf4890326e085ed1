/* SPDX-License-Identifier: BSD-3-Clause */
/* PtlGetPut and PtlGetPutRegion: statements 200 to 208. */
#include "fields.h"

#include <sched.h>

enum { ROOM = 4096, MIB = 1 << 20 };

static ptl_size_t most(void)
{
	return (ptl_size_t)spec.limits.max_getput_md;
}

static ptl_handle_md_t bind(void *start, ptl_size_t length, ptl_handle_eq_t eq)
{
	return spec_bind(spec_md(start, length, 0, eq), PTL_RETAIN);
}

static void swap(ptl_handle_md_t get, ptl_handle_md_t put, ptl_size_t offset)
{
	int rc;
	while ((rc = PtlGetPut(get, put, spec.b, SPEC_PT, 0, SPEC_BITS, offset, 0)) ==
		PTL_NO_SPACE)
		sched_yield();
	CHECK_OK(rc);
}

/* Wait for the reply; with one queue for both, SEND_END comes before it. */
static ptl_event_t swapped(ptl_handle_eq_t eq)
{
	(void)EXPECT_PAIR(eq, PTL_EVENT_SEND_START);
	return EXPECT_PAIR(eq, PTL_EVENT_REPLY_START);
}

/* B: attach a region that can be exchanged. */
static ptl_handle_md_t vessel(unsigned char *bytes, ptl_handle_eq_t eq)
{
	if (!spec.is_b)
		return PTL_INVALID_HANDLE;
	return spec_target(SPEC_BITS, spec_md(bytes, ROOM, PUT_GET_AT, eq));
}

/* Exchange: length bytes at offset of B go to A's get region, A's pattern goes there. */
static void exchange(
	unsigned char *at_b, ptl_size_t offset, ptl_size_t length, ptl_handle_eq_t eq)
{
	if (spec.is_b)
		fill_bytes(at_b, ROOM, 1);
	spec_barrier();
	if (spec.is_a) {
		unsigned char *put = pattern(length, 2), *got = suite_alloc(length + 9);
		ptl_handle_md_t get_md = bind(got, length + 9, eq);
		ptl_handle_md_t put_md = bind(put, length, eq);
		swap(get_md, put_md, offset);
		CHECK_EQ(swapped(eq).mlength, length);
		CHECK_BYTES(got, offset, length, 1);
		CHECK_ZERO(got + length, 9);
		CHECK_BYTES(put, 0, length, 2);
		CHECK_OK(PtlMDUnlink(get_md)); /* the last events were taken */
		CHECK_OK(PtlMDUnlink(put_md));
	}
	spec_barrier();
	if (spec.is_b) {
		CHECK_BYTES(at_b, 0, offset, 1);
		CHECK_BYTES(at_b + offset, 0, length, 2);
		CHECK_BYTES(at_b + offset + length, offset + length,
			ROOM - offset - length, 1);
	}
	spec_barrier();
}

/* The get descriptor cuts the reply, in this node and in the target. */
static void short_get(unsigned char *at_b, ptl_handle_eq_t eq)
{
	if (spec.is_b)
		fill_bytes(at_b, ROOM, 1);
	spec_barrier();
	if (spec.is_a) {
		unsigned char *got = suite_alloc(10);
		swap(bind(got, 3, eq), bind(pattern(8, 2), 8, eq), 50);
		ptl_event_t end = swapped(eq);
		CHECK_EQ(end.mlength, 3);
		CHECK_EQ(end.rlength, 8);
		CHECK_BYTES(got, 50, 3, 1);
		CHECK_ZERO(got + 3, 7);
	}
	spec_barrier();
	if (spec.is_b) {
		CHECK_BYTES(at_b + 50, 0, 8, 2);
		CHECK_BYTES(at_b + 58, 58, 100, 1);
	}
	spec_barrier();
}

/* Exchange bytes put_at.. of one region for those at offset, which come to get_at.. of
 * another. */
static void exchange_region(unsigned char *at_b, ptl_size_t get_at, ptl_size_t put_at,
	ptl_size_t length, ptl_handle_eq_t eq)
{
	if (spec.is_b)
		fill_bytes(at_b, ROOM, 1);
	spec_barrier();
	if (spec.is_a) {
		unsigned char *got = suite_alloc(ROOM);
		CHECK_OK(PtlGetPutRegion(bind(got, ROOM, eq), get_at,
			bind(pattern(ROOM, 2), ROOM, eq), put_at, length, spec.b, SPEC_PT,
			0, SPEC_BITS, 1000, 0));
		CHECK_EQ(swapped(eq).mlength, length);
		CHECK_ZERO(got, get_at);
		CHECK_BYTES(got + get_at, 1000, length, 1);
		CHECK_ZERO(got + get_at + length, ROOM - get_at - length);
	}
	spec_barrier();
	if (spec.is_b) {
		CHECK_BYTES(at_b, 0, 1000, 1);
		CHECK_BYTES(at_b + 1000, put_at, length, 2);
		CHECK_BYTES(at_b + 1000 + length, 1000 + length, 100, 1);
	}
	spec_barrier();
}

STATEMENT(200, old_bytes_come_and_new_ones_go)
{
	ptl_handle_eq_t eq = spec_eq(64);
	unsigned char *at_b = suite_alloc(ROOM);
	(void)vessel(at_b, PTL_EQ_NONE);
	for (ptl_size_t length = 0; length <= most(); length += 1 + length / 5)
		exchange(at_b, length * 3 % 61, length, eq);
	exchange(at_b, ROOM - most(), most(), eq);
	short_get(at_b, eq);
	for (ptl_size_t length = 0; length <= most(); length += 7)
		exchange_region(at_b, 5 * length + 1, ROOM - length, length, eq);
}

/* Check both sides of an exchange with two queues at A, in all members. */
static void events_of_swap(ptl_size_t length, ptl_handle_eq_t put_eq,
	ptl_handle_eq_t get_eq, ptl_handle_eq_t eq_b)
{
	ptl_md_t at_b =
		with_threshold(spec_md(suite_alloc(ROOM), ROOM, PUT_GET_AT, eq_b), 9);
	ptl_handle_md_t target = PTL_INVALID_HANDLE;
	if (spec.is_b)
		target = spec_target(length, at_b);
	spec_barrier();
	if (spec.is_a) {
		ptl_md_t put =
			with_threshold(spec_md(pattern(length, 1), length, 0, put_eq), 5);
		ptl_md_t get =
			with_threshold(spec_md(suite_alloc(ROOM), ROOM, 0, get_eq), 3);
		ptl_handle_md_t put_md = spec_bind(put, PTL_RETAIN);
		ptl_handle_md_t get_md = spec_bind(get, PTL_RETAIN);
		struct fields send =
			fields_of(spec.a, put_md, with_threshold(put, 4), length, length);
		struct fields reply =
			fields_of(spec.b, get_md, with_threshold(get, 2), length, length);
		send.hdr_data = 77;
		reply.offset = 100; /* the requested offset */
		CHECK_OK(PtlGetPut(get_md, put_md, spec.b, SPEC_PT, 0, length, 100, 77));
		(void)CHECK_PAIR(put_eq, PTL_EVENT_SEND_START, &send);
		(void)CHECK_PAIR(get_eq, PTL_EVENT_REPLY_START, &reply);
	}
	if (spec.is_b) {
		struct fields got = fields_of(
			spec.a, target, with_threshold(at_b, 8), length, length);
		got.offset = 100;
		got.hdr_data = 77;
		(void)CHECK_PAIR(eq_b, PTL_EVENT_GETPUT_START, &got);
		CHECK_OK(PtlMDUnlink(target));
	}
	spec_barrier();
	SILENCE(put_eq);
	SILENCE(get_eq);
	SILENCE(eq_b);
	spec_barrier();
}

STATEMENT(201, events_on_both_sides_and_no_ack)
{
	ptl_handle_eq_t put_eq = spec_eq(16), get_eq = spec_eq(16), eq_b = spec_eq(16);
	events_of_swap(0, put_eq, get_eq, eq_b);
	events_of_swap(8, put_eq, get_eq, eq_b);
	events_of_swap(most(), put_eq, get_eq, eq_b);
}

STATEMENT(202, target_must_allow_put_and_get)
{
	static const unsigned options[] = {0, PTL_MD_OP_PUT, PTL_MD_OP_GET};
	ptl_handle_eq_t eq_a = spec_eq(16), eq_b = spec_eq(16);
	unsigned char *at_b = pattern(ROOM, 1), *got = suite_alloc(8);
	for (uint64_t i = 0; i < 3; i++) {
		offer_at_b(SPEC_BITS,
			spec_md(at_b, ROOM, options[i] | PTL_MD_MANAGE_REMOTE, eq_b));
		if (spec.is_a) {
			swap(bind(got, 8, eq_a), bind(pattern(8, 2), 8, eq_a), 0);
			(void)EXPECT_PAIR(eq_a, PTL_EVENT_SEND_START);
		}
		if (spec.is_b)
			EXPECT_DROPS(i + 1);
		spec_barrier();
	}
	SILENCE(eq_a);
	SILENCE(eq_b);
	CHECK_BYTES(at_b, 0, ROOM, 1);
	CHECK_ZERO(got, 8);
	/* The walk goes on behind these entries. */
	if (spec.is_b)
		(void)vessel(at_b, eq_b);
	spec_barrier();
	if (spec.is_a) {
		swap(bind(got, 8, eq_a), bind(pattern(8, 2), 8, eq_a), 0);
		(void)swapped(eq_a);
		CHECK_BYTES(got, 0, 8, 1);
	}
}

static void region_bounds(ptl_handle_md_t get, ptl_handle_md_t put, ptl_size_t length,
	ptl_size_t get_at, ptl_size_t put_at, int want)
{
	CHECK_RC(PtlGetPutRegion(get, get_at, put, put_at, length, spec.b, SPEC_PT, 0,
			 SPEC_BITS, 0, 0),
		want);
}

static void all_region_bounds(ptl_handle_eq_t eq)
{
	unsigned char *bytes = suite_alloc(2 * ROOM);
	ptl_handle_md_t get = bind(bytes, ROOM, eq), put = bind(bytes + ROOM, ROOM, eq);
	ptl_size_t max = most();
	static const ptl_size_t far[] = {ROOM + 1, UINT64_MAX, UINT64_MAX - 7, ROOM - 3};
	region_bounds(get, put, max + 1, 0, 0, PTL_MD_ILLEGAL);
	region_bounds(get, put, UINT64_MAX, 0, 0, PTL_MD_ILLEGAL);
	for (int i = 0; i < 4; i++) {
		region_bounds(get, put, 8, far[i], 0, PTL_MD_ILLEGAL);
		region_bounds(get, put, 8, 0, far[i], PTL_MD_ILLEGAL);
	}
	region_bounds(get, put, max, ROOM - max, ROOM - max, PTL_OK);
	(void)swapped(eq);
	region_bounds(get, put, 0, ROOM, ROOM, PTL_OK);
	(void)swapped(eq);
}

STATEMENT(203, the_put_descriptor_is_limited)
{
	ptl_handle_eq_t eq = spec_eq(64);
	(void)vessel(suite_alloc(ROOM), PTL_EQ_NONE);
	spec_barrier();
	if (spec.is_a) {
		unsigned char *bytes = suite_alloc(2 * ROOM);
		ptl_handle_md_t get = bind(bytes, ROOM, eq);
		static const int more[] = {1, 2, 1000};
		for (int i = 0; i < 3; i++) {
			ptl_handle_md_t put =
				bind(bytes + ROOM, most() + (ptl_size_t)more[i], eq);
			CHECK_RC(PtlGetPut(get, put, spec.b, SPEC_PT, 0, SPEC_BITS, 0, 0),
				PTL_MD_ILLEGAL);
		}
		SILENCE(eq);
		swap(get, bind(bytes + ROOM, most(), eq), 0);
		(void)swapped(eq);
		all_region_bounds(eq);
	}
	spec_barrier();
	CHECK_EQ(spec_drops(), 0);
}

static ptl_handle_md_t foreign_md(void)
{
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	CHECK_OK(PtlMDBind(spec_second(), spec_md(suite_alloc(8), 8, 0, PTL_EQ_NONE),
		PTL_RETAIN, &md));
	return md;
}

static void both_ways(ptl_handle_md_t get, ptl_handle_md_t put, int want)
{
	CHECK_RC(PtlGetPut(get, put, spec.b, SPEC_PT, 0, SPEC_BITS, 0, 0), want);
	CHECK_RC(PtlGetPutRegion(get, 0, put, 0, 0, spec.b, SPEC_PT, 0, SPEC_BITS, 0, 0),
		want);
}

STATEMENT(204, bad_handles)
{
	ptl_handle_eq_t eq = spec_eq(16);
	ptl_handle_md_t md = bind(suite_alloc(8), 8, eq), dead = bind(NULL, 0, eq);
	ptl_handle_md_t used = spec_bind(
		with_threshold(spec_md(suite_alloc(8), 8, 0, eq), 0), PTL_RETAIN);
	CHECK_OK(PtlMDUnlink(dead));
	const ptl_handle_any_t bad[] = {
		PTL_INVALID_HANDLE, dead, eq, spec.ni, PTL_EQ_NONE, used};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		both_ways(bad[i], md, PTL_MD_INVALID);
		both_ways(md, bad[i], PTL_MD_INVALID);
		both_ways(bad[i], bad[i], PTL_MD_INVALID);
	}
	ptl_handle_md_t foreign = foreign_md();
	both_ways(md, foreign, PTL_MD_ILLEGAL);
	both_ways(foreign, md, PTL_MD_ILLEGAL);
	ptl_process_id_t wild[] = {{PTL_NID_ANY, spec.b.pid}, {spec.b.nid, PTL_PID_ANY}};
	for (int i = 0; i < 2; i++)
		CHECK_RC(PtlGetPut(md, md, wild[i], SPEC_PT, 0, SPEC_BITS, 0, 0),
			PTL_PROCESS_INVALID);
	SILENCE(eq);
	spec_barrier();
	CHECK_EQ(spec_drops(), 0);
}

/*
 * ---- 205: tokens ----
 *
 * A word at B holds a token, and each player has one; a player exchanges the own token
 * for the word's again and again.  At the end all tokens still exist, each once.
 */
enum { SWAPS = 24000, PLAYERS = 4, RESULT_BITS = 5 };

struct player {
	unsigned id;
	ptl_handle_eq_t eq;
	uint64_t token, got;
	ptl_handle_md_t put, get;
	unsigned swaps, changes;
};

static void play(void *arg)
{
	struct player *p = arg;
	for (unsigned i = 0; i < p->swaps; i++) {
		swap(p->get, p->put, 0);
		(void)swapped(p->eq);
		p->changes += p->got != p->token;
		p->token = p->got;
	}
}

static void equip(struct player *p, unsigned id, unsigned swaps)
{
	*p = (struct player){.id = id, .token = id + 1, .swaps = swaps};
	p->eq = spec_eq(16);
	p->put = bind(&p->token, sizeof p->token, p->eq);
	p->get = bind(&p->got, sizeof p->got, p->eq);
}

/* B: check that the players' final tokens and the word are all tokens. */
static void all_tokens_there(const uint64_t *result, unsigned players, uint64_t word)
{
	uint64_t seen = UINT64_C(1) << word;
	CHECK(word <= players);
	for (unsigned i = 0; i < players; i++) {
		CHECK(result[i] >= 1 && result[i] <= players + 1);
		uint64_t bit = UINT64_C(1) << (result[i] - 1);
		CHECK(!(seen & bit));
		seen |= bit;
	}
	CHECK_EQ(seen, (UINT64_C(1) << (players + 1)) - 1);
}

/* Report a player's last token as token + 1, so that 0 means none. */
static void report_token(struct player *p)
{
	p->token++;
	CHECK_OK(PtlPut(
		p->put, PTL_ACK_REQ, spec.b, SPEC_PT, 0, RESULT_BITS, p->id * 8, 0));
	(void)EXPECT_PAIR(p->eq, PTL_EVENT_SEND_START);
	(void)EXPECT(p->eq, PTL_EVENT_ACK);
	if (p->changes == 0)
		spec_note("player %u always got his token back", p->id);
}

static void tokens(void)
{
	unsigned here = spec.size < PLAYERS ? PLAYERS / spec.size : 1;
	unsigned players = here * spec.size;
	uint64_t *word = suite_alloc(8), *result = suite_alloc(8 * players);
	struct player *player = suite_alloc(here * sizeof *player);
	struct thread *thread[PLAYERS];
	if (spec.is_b) {
		(void)spec_target(SPEC_BITS, spec_md(word, 8, PUT_GET_AT, PTL_EQ_NONE));
		(void)spec_target(
			RESULT_BITS, spec_md(result, 8 * players, PUT_AT, PTL_EQ_NONE));
	}
	for (unsigned i = 0; i < here; i++)
		equip(&player[i], spec.rank * here + i, SWAPS / players);
	spec_barrier();
	for (unsigned i = 0; i < here; i++)
		thread[i] = thread_start(play, &player[i]);
	for (unsigned i = 0; i < here; i++)
		thread_join(thread[i]);
	for (unsigned i = 0; i < here; i++)
		report_token(&player[i]);
	spec_barrier();
	if (spec.is_b)
		all_tokens_there(result, players, *word);
}

/*
 * ---- 205, second part: exchanges in a range that a long put is writing ----
 *
 * A puts, and the last node exchanges at the same time.  Each byte shows which came
 * first, and all bytes of one exchange agree: either the exchange got the put's byte,
 * and its own byte is there in the end; or it got the old byte, and the put's byte is
 * there in the end.
 */
enum { LONG = 2 * MIB, MARKS = 24, MARK = 40, LONG_ROUNDS = 60, OLD = 1, NEW = 2 };
enum { MINE = 0xaa };

struct contest {
	ptl_handle_eq_t put_eq, swap_eq;
	unsigned char *brought;    /* A's bytes */
	unsigned char *got, *seen; /* the exchanges' results; the final bytes */
	ptl_handle_md_t put, swap_put, swap_get, look;
	bool is_swapper;
	unsigned first, second; /* bytes */
};

static ptl_size_t mark_at(int round, int k)
{
	ptl_size_t part = LONG / MARKS;
	return part * (ptl_size_t)k + mix((uint64_t)(round * MARKS + k)) % (part - MARK);
}

static void contest_setup(struct contest *c)
{
	if (spec.is_b)
		(void)spec_target(SPEC_BITS,
			spec_md(suite_alloc(LONG), LONG, PUT_GET_AT, PTL_EQ_NONE));
	if (spec.is_a) {
		c->put_eq = spec_eq(64);
		c->brought = suite_alloc(LONG);
		c->put = bind(c->brought, LONG, c->put_eq);
	}
	c->is_swapper = spec.rank == spec.size - 1;
	if (!c->is_swapper)
		return;
	unsigned char *mine = suite_alloc(MARKS * MARK);
	memset(mine, MINE, MARKS * MARK);
	c->swap_eq = spec_eq(512);
	c->seen = suite_alloc(LONG);
	c->got = suite_alloc(MARKS * MARK);
	c->look = bind(c->seen, LONG, c->swap_eq);
	c->swap_put = bind(mine, MARKS * MARK, c->swap_eq);
	c->swap_get = bind(c->got, MARKS * MARK, c->swap_eq);
}

static void wait_for(ptl_handle_eq_t eq, ptl_event_kind_t kind, unsigned count)
{
	while (count) {
		ptl_event_t ev = NEXT(eq);
		CHECK_EQ(ev.ni_fail_type, PTL_NI_OK);
		count -= ev.type == kind;
	}
}

static void contest_put(struct contest *c)
{
	CHECK_OK(PtlPut(c->put, PTL_ACK_REQ, spec.b, SPEC_PT, 0, SPEC_BITS, 0, 0));
}

static void contest_swap(struct contest *c, int round, int k)
{
	ptl_size_t own = (ptl_size_t)k * MARK;
	int rc;
	while ((rc = PtlGetPutRegion(c->swap_get, own, c->swap_put, own, MARK, spec.b,
			SPEC_PT, 0, SPEC_BITS, mark_at(round, k), 0)) == PTL_NO_SPACE)
		sched_yield();
	CHECK_OK(rc);
}

/* Send the exchanges from either end, with longer and longer pauses. */
static void contest_fire(struct contest *c, int round)
{
	if (spec.is_a && spec.size > 1)
		contest_put(c);
	for (int k = 0; c->is_swapper && k < MARKS; k++) {
		if (spec.size == 1 && k == round % 3)
			contest_put(c);
		contest_swap(c, round, round % 2 ? k : MARKS - 1 - k);
		for (volatile int i = 0; i < round % 8 * 2000; i++)
			;
	}
	if (spec.is_a)
		wait_for(c->put_eq, PTL_EVENT_ACK, 1);
	if (c->is_swapper)
		wait_for(c->swap_eq, PTL_EVENT_REPLY_END, MARKS);
}

/* Judge one exchange: all its bytes must agree. */
static void contest_judge_swap(
	struct contest *c, const unsigned char *got, const unsigned char *end)
{
	for (int i = 0; i < MARK; i++) {
		bool swap_first = got[i] == OLD && end[i] == NEW;
		bool put_first = got[i] == NEW && end[i] == MINE;
		if (!swap_first && !put_first)
			check_failed(__FILE__, __LINE__,
				"byte %d: the swap got %#x, in the end it is %#x", i,
				got[i], end[i]);
		CHECK_EQ(got[i], got[0]);
		c->first += swap_first;
		c->second += put_first;
	}
}

static void contest_judge(struct contest *c, int round)
{
	CHECK_OK(PtlGet(c->look, spec.b, SPEC_PT, 0, SPEC_BITS, 0));
	wait_for(c->swap_eq, PTL_EVENT_REPLY_END, 1);
	for (int k = 0; k < MARKS; k++) {
		unsigned char *at = c->seen + mark_at(round, k);
		contest_judge_swap(c, c->got + k * MARK, at);
		memset(at, NEW, MARK);
	}
	CHECK_EQ(c->seen[0], NEW); /* and all others are equal to this one */
	CHECK(memcmp(c->seen, c->seen + 1, LONG - 1) == 0);
}

static void contest_round(struct contest *c, int round)
{
	if (spec.is_a) {
		memset(c->brought, OLD, LONG);
		contest_put(c);
		wait_for(c->put_eq, PTL_EVENT_ACK, 1);
		memset(c->brought, NEW, LONG);
	}
	spec_barrier();
	contest_fire(c, round);
	spec_barrier();
	if (c->is_swapper)
		contest_judge(c, round);
	spec_barrier();
}

static void contest(void)
{
	struct contest c = {.first = 0};
	contest_setup(&c);
	spec_barrier();
	for (int round = 0; round < LONG_ROUNDS; round++)
		contest_round(&c, round);
	if (c.is_swapper)
		spec_note("%u bytes swapped before the put, %u behind it", c.first,
			c.second);
}

STATEMENT(205, swaps_are_atomic)
{
	tokens();
	spec_barrier();
	spec_up(NULL);
	spec_barrier();
	contest();
}

STATEMENT(206, header_data_come_in_the_getput_events)
{
	ptl_handle_eq_t eq_a = spec_eq(16), eq_b = spec_eq(16);
	(void)vessel(suite_alloc(ROOM), eq_b);
	spec_barrier();
	ptl_handle_md_t get = bind(suite_alloc(8), 8, eq_a),
			put = bind(suite_alloc(8), 8, eq_a);
	for (unsigned i = 0; i < 64; i++) {
		ptl_hdr_data_t hdr = i < 32 ? UINT64_C(3) << 2 * i : mix(i);
		if (spec.is_a) {
			CHECK_OK(PtlGetPut(
				get, put, spec.b, SPEC_PT, 0, SPEC_BITS, 0, hdr));
			CHECK_EQ(EXPECT_PAIR(eq_a, PTL_EVENT_SEND_START).hdr_data, hdr);
			CHECK_EQ(EXPECT_PAIR(eq_a, PTL_EVENT_REPLY_START).hdr_data, 0);
		}
		if (spec.is_b) {
			CHECK_EQ(EXPECT(eq_b, PTL_EVENT_GETPUT_START).hdr_data, hdr);
			CHECK_EQ(EXPECT(eq_b, PTL_EVENT_GETPUT_END).hdr_data, hdr);
		}
		spec_barrier();
	}
}

WEAK_STATEMENT(207, one_descriptor_for_both)
{
	ptl_handle_eq_t eq = spec_eq(16);
	unsigned char *at_b = pattern(ROOM, 1);
	(void)vessel(at_b, PTL_EQ_NONE);
	spec_barrier();
	if (spec.is_a) {
		unsigned char *bytes = pattern(8, 2);
		ptl_md_t md = with_threshold(spec_md(bytes, 8, 0, eq), 2);
		ptl_handle_md_t handle = spec_bind(md, PTL_RETAIN);
		swap(handle, handle, 16);
		CHECK_EQ(EXPECT_PAIR(eq, PTL_EVENT_SEND_START).md.threshold, 1);
		CHECK_EQ(EXPECT_PAIR(eq, PTL_EVENT_REPLY_START).md.threshold, 0);
		CHECK_BYTES(bytes, 16, 8, 1);
		CHECK_RC(PtlGetPut(handle, handle, spec.b, SPEC_PT, 0, SPEC_BITS, 0, 0),
			PTL_MD_INVALID);
	}
	spec_barrier();
	if (spec.is_b)
		CHECK_BYTES(at_b + 16, 0, 8, 2);
}

STATEMENT(208, one_unit_of_the_target_for_each)
{
	enum { UNITS = 5 };
	ptl_handle_eq_t eq_a = spec_eq(16), eq_b = spec_eq(64);
	ptl_md_t md =
		with_threshold(spec_md(suite_alloc(ROOM), ROOM, PUT_GET, eq_b), UNITS);
	ptl_handle_md_t target = PTL_INVALID_HANDLE;
	if (spec.is_b)
		target = spec_target(SPEC_BITS, md);
	spec_barrier();
	ptl_handle_md_t get = bind(suite_alloc(8), 8, eq_a),
			put = bind(suite_alloc(8), 8, eq_a);
	for (int i = 1; i <= UNITS; i++) {
		if (spec.is_a) {
			swap(get, put, 0);
			(void)swapped(eq_a);
		}
		if (spec.is_b) {
			ptl_event_t end = EXPECT_PAIR(eq_b, PTL_EVENT_GETPUT_START);
			CHECK_EQ(end.md.threshold, UNITS - i);
			CHECK_EQ(end.offset, 8 * (i - 1));
		}
		spec_barrier();
	}
	if (spec.is_a) {
		swap(get, put, 0);
		(void)EXPECT_PAIR(eq_a, PTL_EVENT_SEND_START);
	}
	if (spec.is_b) {
		EXPECT_DROPS(1);
		CHECK_EQ(query(target).threshold, 0);
	}
	spec_barrier();
	SILENCE(eq_a);
	SILENCE(eq_b);
}
