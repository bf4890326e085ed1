/* SPDX-License-Identifier: BSD-3-Clause */
/* PtlPut, PtlPutRegion, PtlGet, PtlGetRegion: statements 169 to 199. */
#include "fields.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20, ROOM = 4096 };

static const ptl_size_t some_lengths[] = {0, 1, 13, 100, 4096, 20001, MIB, 3 * MIB + 7};
enum { SOME = sizeof some_lengths / sizeof some_lengths[0] };

STATEMENT(169, bad_descriptor_or_target)
{
	ptl_handle_eq_t eq = spec_eq(16);
	ptl_handle_md_t md = source(8, 1, eq), dead = source(8, 1, eq);
	ptl_process_id_t any_nid = {PTL_NID_ANY, spec.b.pid};
	ptl_process_id_t any_pid = {spec.b.nid, PTL_PID_ANY};
	const ptl_process_id_t wild[] = {spec_any(), any_nid, any_pid};
	CHECK_OK(PtlMDUnlink(dead));
	const ptl_handle_any_t bad[] = {PTL_INVALID_HANDLE, dead, eq, spec.ni,
		PTL_HANDLE_NONE, spec_me(SPEC_BITS), 0};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		CHECK_RC(PtlPut(bad[i], PTL_ACK_REQ, spec.b, SPEC_PT, 0, 0, 0, 0),
			PTL_MD_INVALID);
		CHECK_RC(PtlPutRegion(
				 bad[i], 0, 0, PTL_ACK_REQ, spec.b, SPEC_PT, 0, 0, 0, 0),
			PTL_MD_INVALID);
	}
	for (int i = 0; i < 3; i++) {
		CHECK_RC(PtlPut(md, PTL_ACK_REQ, wild[i], SPEC_PT, 0, 0, 0, 0),
			PTL_PROCESS_INVALID);
		CHECK_RC(PtlPutRegion(
				 md, 0, 8, PTL_NO_ACK_REQ, wild[i], SPEC_PT, 0, 0, 0, 0),
			PTL_PROCESS_INVALID);
	}
	SILENCE(eq);
	spec_barrier();
	CHECK_EQ(spec_drops(), 0);
}

/* ---- 170: data ---- */

enum { WHOLE, HALVES, ONE_FIRST, PAGES, PRIMES, BACKWARDS, SPLITS, GAP = 5 };

/* A region of a given length, perhaps in pieces with gaps between them. */
struct region {
	unsigned char *memory;
	ptl_size_t length, size; /* of the data, and of the memory */
	ptl_md_iovec_t *iov;
	size_t pieces; /* 0: not an iovec */
};

static ptl_size_t piece_length(int split, ptl_size_t length, size_t nth)
{
	size_t most = (size_t)spec.limits.max_md_iovecs / 2;
	ptl_size_t least = length / most + 1;
	ptl_size_t wanted = split == HALVES      ? (length + 1) / 2
			    : split == ONE_FIRST ? (nth ? length : 1)
			    : split == PAGES     ? 4096
			    : split == PRIMES    ? (nth % 5 == 3 ? 0 : 1009 + 37 * nth)
						 : 4099;
	return wanted && wanted < least && split != ONE_FIRST ? least : wanted;
}

static void cut(struct region *r, int split)
{
	size_t most = (size_t)spec.limits.max_md_iovecs;
	r->iov = suite_alloc(most * sizeof *r->iov);
	ptl_size_t done = 0, at = GAP;
	for (; done < r->length || r->pieces == 0; r->pieces++) {
		CHECK(r->pieces < most);
		ptl_size_t len = piece_length(split, r->length, r->pieces);
		if (len > r->length - done)
			len = r->length - done;
		r->iov[r->pieces] = (ptl_md_iovec_t){r->memory + at, len};
		at += len + GAP;
		done += len;
	}
	CHECK(at <= r->size);
}

/* Put the pieces in the order of falling addresses. */
static void turn_round(struct region *r)
{
	ptl_size_t at = r->size;
	for (size_t i = 0; i < r->pieces; i++) {
		at -= r->iov[i].iov_len + GAP;
		r->iov[i].iov_base = r->memory + at;
	}
}

static struct region region(int split, ptl_size_t length)
{
	struct region r = {.length = length};
	r.size = length + GAP * ((ptl_size_t)spec.limits.max_md_iovecs + 2);
	r.memory = suite_alloc(r.size);
	if (split == WHOLE)
		return r;
	cut(&r, split);
	if (split == BACKWARDS)
		turn_round(&r);
	return r;
}

static ptl_md_t region_md(struct region *r, unsigned options, ptl_handle_eq_t eq)
{
	if (!r->pieces)
		return spec_md(r->memory + GAP, r->length, options, eq);
	return spec_md(r->iov, r->pieces, options | PTL_MD_IOVEC, eq);
}

static void region_fill(struct region *r, unsigned seed)
{
	if (!r->pieces)
		fill_bytes(r->memory + GAP, r->length, seed);
	for (size_t i = 0, done = 0; i < r->pieces; done += r->iov[i++].iov_len)
		for (size_t k = 0; k < r->iov[i].iov_len; k++)
			((unsigned char *)r->iov[i].iov_base)[k] =
				byte_of(seed, done + k);
}

/* Check that the data are there and the gaps untouched. */
static void region_check(struct region *r, unsigned seed)
{
	if (!r->pieces) {
		CHECK_BYTES(r->memory + GAP, 0, r->length, seed);
		CHECK_ZERO(r->memory, GAP);
		CHECK_ZERO(r->memory + GAP + r->length, GAP);
	}
	for (size_t i = 0, done = 0; i < r->pieces; done += r->iov[i++].iov_len) {
		unsigned char *at = r->iov[i].iov_base;
		CHECK_BYTES(at, done, r->iov[i].iov_len, seed);
		CHECK_ZERO(at + r->iov[i].iov_len, GAP);
	}
}

/* Put and get between regions of these shapes; A's get overwrites the source of its
 * put. */
static void move(ptl_size_t length, int from, int to, ptl_match_bits_t bits)
{
	struct region a = {.length = 0}, b = {.length = 0};
	ptl_handle_eq_t eq_a = spec_eq(16), eq_b = spec_eq(16);
	ptl_handle_md_t at_b = PTL_INVALID_HANDLE, at_a = PTL_INVALID_HANDLE;
	if (spec.is_b) {
		b = region(to, length);
		at_b = spec_target(bits, region_md(&b, PUT_GET_AT, eq_b));
	}
	if (spec.is_a) {
		a = region(from, length);
		region_fill(&a, (unsigned)bits);
		at_a = spec_bind(region_md(&a, 0, eq_a), PTL_RETAIN);
	}
	spec_barrier();
	if (spec.is_a)
		put_whole(eq_a, at_a, PTL_ACK_REQ, bits);
	if (spec.is_b) {
		CHECK_EQ(EXPECT_PAIR(eq_b, PTL_EVENT_PUT_START).mlength, length);
		region_check(&b, (unsigned)bits);
		region_fill(&b, (unsigned)bits + 1);
	}
	spec_barrier();
	if (spec.is_a) {
		region_check(&a, (unsigned)bits);
		spec_get(at_a, bits);
		CHECK_EQ(EXPECT_PAIR(eq_a, PTL_EVENT_REPLY_START).mlength, length);
		region_check(&a, (unsigned)bits + 1);
		CHECK_OK(PtlMDUnlink(at_a));
	}
	if (spec.is_b) {
		(void)EXPECT_PAIR(eq_b, PTL_EVENT_GET_START);
		CHECK_OK(PtlMDUnlink(at_b));
	}
	CHECK_OK(PtlEQFree(eq_a));
	CHECK_OK(PtlEQFree(eq_b));
}

static void move_short(void)
{
	static const ptl_size_t lengths[] = {0, 1, 2, 3, 7, 31, 63, 64, 65, 127, 129, 255,
		511, 1000, 1023, 2047, 4095, 4096, 4097, 8191, 16383, 32769, 64 * KIB - 1,
		64 * KIB, 64 * KIB + 1};
	enum { LENGTHS = sizeof lengths / sizeof lengths[0] };
	ptl_match_bits_t bits = 0;
	for (int i = 0; i < LENGTHS; i++)
		for (int from = 0; from < SPLITS; from++)
			for (int to = 0; to < SPLITS; to++)
				if (from == WHOLE || to == WHOLE ||
					(from + to + i) % 3 == 0)
					move(lengths[i], from, to, bits += 2);
}

static void move_long(void)
{
	static const ptl_size_t lengths[] = {MIB - 1, MIB + 3, 2 * MIB, 5 * MIB + 4097};
	ptl_match_bits_t bits = 1000000;
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < SPLITS; k++) {
			int other = (k + i) % SPLITS;
			if (i < 3 || k % 3 == 0)
				move(lengths[i], k, other, bits += 2);
		}
}

/* ---- more bytes than fit into 32 bits ----
 *
 * One piece of memory mapped again and again, except for three places that have their
 * own: the begin, around 4 GiB, and the end.
 */
#define HUGE_STEP   ((ptl_size_t)2 * MIB)
#define HUGE_STEPS  ((ptl_size_t)2560)
#define HUGE_FOUR   ((ptl_size_t)2048)
#define HUGE_LENGTH (HUGE_STEP * HUGE_STEPS - 12345)

static int huge_memory(ptl_size_t step)
{
	return step == 0 ? 1 : step == HUGE_FOUR ? 2 : step == HUGE_STEPS - 1 ? 3 : 0;
}

static unsigned char *huge_map(void)
{
	int fd = memfd_create("spec_huge", MFD_CLOEXEC);
	CHECK(fd >= 0 && ftruncate(fd, 4 * (off_t)HUGE_STEP) == 0);
	unsigned char *at = mmap(NULL, HUGE_STEP * HUGE_STEPS, PROT_NONE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(at != MAP_FAILED);
	for (ptl_size_t i = 0; i < HUGE_STEPS; i++)
		CHECK(mmap(at + i * HUGE_STEP, HUGE_STEP, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED, fd,
			      huge_memory(i) * (off_t)HUGE_STEP) != MAP_FAILED);
	close(fd);
	return at;
}

static const ptl_size_t huge_places[] = {
	0, HUGE_STEP, HUGE_FOUR *HUGE_STEP, HUGE_LENGTH / HUGE_STEP *HUGE_STEP};

static void huge_fill(unsigned char *at, unsigned seed)
{
	for (unsigned i = 0; i < 4; i++)
		fill_bytes(at + huge_places[i], HUGE_STEP, seed + i);
}

static void huge_check(const unsigned char *at, unsigned seed)
{
	for (unsigned i = 0; i < 4; i++)
		CHECK_BYTES(at + huge_places[i], 0, i < 3 ? HUGE_STEP : HUGE_STEP - 12345,
			seed + i);
	CHECK_ZERO(at + HUGE_LENGTH, 12345);
}

static void huge_put(ptl_handle_eq_t eq_a, ptl_handle_eq_t eq_b, ptl_handle_md_t md)
{
	if (spec.is_a)
		put_whole(eq_a, md, PTL_NO_ACK_REQ, SPEC_BITS);
	if (!spec.is_b)
		return;
	ptl_event_t ev = EXPECT_PAIR(eq_b, PTL_EVENT_PUT_START);
	CHECK_EQ(ev.rlength, HUGE_LENGTH);
	CHECK_EQ(ev.mlength, HUGE_LENGTH);
}

static void huge_get(ptl_handle_eq_t eq_a, ptl_handle_eq_t eq_b, ptl_handle_md_t md)
{
	if (spec.is_a) {
		spec_get(md, SPEC_BITS);
		ptl_event_t ev = EXPECT_PAIR(eq_a, PTL_EVENT_REPLY_START);
		CHECK_EQ(ev.rlength, HUGE_LENGTH);
		CHECK_EQ(ev.mlength, HUGE_LENGTH);
	}
	if (spec.is_b)
		(void)EXPECT_PAIR(eq_b, PTL_EVENT_GET_START);
}

static void huge_setup(ptl_handle_eq_t eq_a, ptl_handle_eq_t eq_b, unsigned char **at_a,
	unsigned char **at_b, ptl_handle_md_t *md)
{
	if (spec.is_a) {
		*at_a = huge_map();
		huge_fill(*at_a, 100);
		*md = spec_bind(spec_md(*at_a, HUGE_LENGTH, 0, eq_a), PTL_RETAIN);
	}
	if (spec.is_b) {
		*at_b = huge_map();
		(void)spec_target(
			SPEC_BITS, spec_md(*at_b, HUGE_LENGTH, PUT_GET_AT, eq_b));
	}
}

/* Return true in one setting, with one node and with two: it takes longer than all the
 * rest. */
static bool huge_is_wanted(void)
{
	const char *mode = getenv("PTL3_MODE");
	return spec.size <= 2 && mode && strcmp(mode, "lease") == 0;
}

/* The time is shown and not judged: most of it is that of the kernel, which gives the
 * target 1.3 million pages.  A transfer that hangs ends with the test's time limit. */
static void huge_end(const char *what, uint64_t since)
{
	spec_note("%s of %llu bytes: %llu ms", what, (unsigned long long)HUGE_LENGTH,
		(unsigned long long)(now_ms() - since));
}

static void huge_there(ptl_handle_eq_t eq_a, ptl_handle_eq_t eq_b, ptl_handle_md_t md,
	unsigned char *at_a, unsigned char *at_b)
{
	const ptl_size_t rest = HUGE_STEP * HUGE_STEPS - HUGE_LENGTH;
	uint64_t since = now_ms();
	huge_put(eq_a, eq_b, md);
	if (at_b) {
		huge_end("put", since);
		huge_check(at_b, 100);
		huge_fill(at_b, 200);
	}
	if (at_a)
		memset(at_a + HUGE_LENGTH, 0, rest);
}

static void move_huge(void)
{
	unsigned char *at_a = NULL, *at_b = NULL;
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	ptl_handle_eq_t eq_a = spec_eq(16), eq_b = spec_eq(16);
	huge_setup(eq_a, eq_b, &at_a, &at_b, &md);
	spec_barrier();
	huge_there(eq_a, eq_b, md, at_a, at_b);
	spec_barrier();
	uint64_t since = now_ms();
	huge_get(eq_a, eq_b, md);
	if (at_a) {
		huge_end("get", since);
		huge_check(at_a, 200);
	}
	spec_barrier();
	CHECK_OK(PtlNIFini(spec.ni)); /* so that no peer writes into later mappings */
	CHECK(!at_a || munmap(at_a, HUGE_STEP * HUGE_STEPS) == 0);
	CHECK(!at_b || munmap(at_b, HUGE_STEP * HUGE_STEPS) == 0);
}

STATEMENT(170, data_arrive_unchanged)
{
	move_short();
	move_long();
	if (huge_is_wanted())
		move_huge();
}

/* ---- 171 - 178: events, thresholds, ACKs ---- */

static void put_all_lengths(ptl_handle_eq_t eq_a, ptl_handle_eq_t eq_b, ptl_size_t length,
	ptl_match_bits_t bits)
{
	ptl_md_t to = spec_md(
		spec.is_b ? suite_alloc(length + 1) : NULL, length, PTL_MD_OP_PUT, eq_b);
	ptl_handle_md_t at_b = PTL_INVALID_HANDLE;
	if (spec.is_b)
		at_b = spec_target(bits, to);
	spec_barrier();
	if (spec.is_a) {
		ptl_md_t from = spec_md(pattern(length, 7), length, 0, eq_a);
		ptl_handle_md_t md = spec_bind(from, PTL_RETAIN);
		struct fields sent = fields_of(spec.a, md, from, bits, length);
		spec_put(md, PTL_NO_ACK_REQ, bits);
		(void)CHECK_PAIR(eq_a, PTL_EVENT_SEND_START, &sent);
		CHECK_OK(PtlMDUnlink(md)); /* nothing is pending after SEND_END */
	}
	if (spec.is_b) {
		struct fields got = fields_of(spec.a, at_b, to, bits, length);
		(void)CHECK_PAIR(eq_b, PTL_EVENT_PUT_START, &got);
		CHECK_BYTES(to.start, 0, length, 7);
		CHECK_OK(PtlMDUnlink(at_b));
	}
}

/* A's SEND_END is in its queue before B's answer. */
static void answer_comes_after_send_end(ptl_size_t length, ptl_match_bits_t bits)
{
	ptl_handle_eq_t eq = spec_eq(64);
	unsigned char *room = suite_alloc(length);
	unsigned options = PUT_AT;
	if (spec.is_a)
		(void)spec_target(bits, spec_md(room, length, options, eq));
	if (spec.is_b && !spec.is_a)
		(void)spec_target(bits, spec_md(room, length, options, eq));
	ptl_handle_md_t md = spec_bind(
		spec_md(room, length, 0, spec.is_a ? eq : PTL_EQ_NONE), PTL_RETAIN);
	spec_barrier();
	for (int i = 0; i < 50; i++) {
		if (spec.is_a) {
			spec_put(md, PTL_NO_ACK_REQ, bits);
			(void)EXPECT_PAIR(eq, PTL_EVENT_SEND_START);
			(void)EXPECT_PAIR(eq, PTL_EVENT_PUT_START);
		} else if (spec.is_b) {
			(void)EXPECT_PAIR(eq, PTL_EVENT_PUT_START);
			CHECK_OK(PtlPut(
				md, PTL_NO_ACK_REQ, spec.a, SPEC_PT, 0, bits, 0, 0));
		}
	}
	spec_barrier();
}

STATEMENT(171, start_and_end_on_both_sides)
{
	ptl_handle_eq_t eq_a = spec_eq(16), eq_b = spec_eq(16);
	for (int i = 0; i < SOME; i++)
		put_all_lengths(eq_a, eq_b, some_lengths[i], (ptl_match_bits_t)i + 10);
	SILENCE(eq_a);
	SILENCE(eq_b);
	spec_barrier();
	if (spec.size > 1) {
		answer_comes_after_send_end(8, 1);
		answer_comes_after_send_end(300000, 2);
	}
}

/* Many puts share a descriptor: SEND_END comes first, then the one ACK of each. */
static void acks_of_many(ptl_handle_eq_t eq, ptl_handle_md_t md, unsigned count)
{
	unsigned char *state = suite_alloc(count);
	for (unsigned i = 0; i < count; i++)
		CHECK_OK(try_put_region(
			md, i, i * 77, PTL_ACK_REQ, spec.b, SPEC_PT, i, 0, 0));
	for (unsigned left = 3 * count; left; left--) {
		ptl_event_t ev = NEXT(eq);
		CHECK(ev.match_bits < count);
		CHECK_EQ(ev.rlength, ev.match_bits * 77);
		CHECK_EQ(ev.mlength, ev.rlength);
		CHECK_EQ(ev.md_handle, md);
		unsigned char *s = &state[ev.match_bits];
		CHECK_EQ(ev.type, *s == 0   ? PTL_EVENT_SEND_START
				  : *s == 1 ? PTL_EVENT_SEND_END
					    : PTL_EVENT_ACK);
		CHECK(++*s <= 3);
	}
	SILENCE(eq);
	CHECK_OK(PtlMDUnlink(md)); /* the last event was taken */
}

STATEMENT(172, one_ack_if_asked_for)
{
	enum { COUNT = 200, LENGTH = COUNT * 78 };
	ptl_handle_eq_t eq = spec_eq(4 * COUNT);
	offer_all_at_b(spec_md(suite_alloc(LENGTH), LENGTH, PUT_AT, PTL_EQ_NONE));
	if (!spec.is_a)
		return;
	acks_of_many(eq, source(LENGTH, 1, eq), COUNT);
	ptl_handle_md_t md = source(LENGTH, 1, eq);
	for (int i = 0; i < 10; i++)
		put_whole(eq, md, i % 2 ? PTL_ACK_REQ : PTL_NO_ACK_REQ, 5);
	SILENCE(eq);
}

STATEMENT(173, ack_disable_at_the_target)
{
	ptl_handle_eq_t eq_a = spec_eq(16), eq_b = spec_eq(16);
	unsigned options = PUT_AT | PTL_MD_ACK_DISABLE;
	offer_at_b(SPEC_BITS, spec_md(suite_alloc(MIB), MIB, options, eq_b));
	static const ptl_size_t lengths[] = {0, 8, 3000, MIB};
	for (int i = 0; i < 4; i++) {
		if (spec.is_a) {
			spec_put(source(lengths[i], 1, eq_a), PTL_ACK_REQ, SPEC_BITS);
			(void)EXPECT_PAIR(eq_a, PTL_EVENT_SEND_START);
		}
		if (spec.is_b)
			(void)EXPECT_PAIR(eq_b, PTL_EVENT_PUT_START);
		spec_barrier();
	}
	SILENCE(eq_a);
	CHECK_EQ(spec_drops(), 0);
}

STATEMENT(174, no_ack_for_a_descriptor_without_queue)
{
	ptl_handle_eq_t eq_a = spec_eq(16), eq_b = spec_eq(16);
	offer_at_b(SPEC_BITS, spec_md(suite_alloc(ROOM), ROOM, PUT_AT, eq_b));
	if (spec.is_a) {
		ptl_handle_md_t md = source(100, 3, PTL_EQ_NONE);
		for (int i = 0; i < 3; i++)
			spec_put(md, PTL_ACK_REQ, SPEC_BITS);
		put_whole(eq_a, source(100, 3, eq_a), PTL_ACK_REQ, SPEC_BITS);
	}
	for (int i = 0; spec.is_b && i < 8; i++)
		CHECK_EQ(NEXT(eq_b).mlength, 100);
	spec_barrier();
	SILENCE(eq_a);
	SILENCE(eq_b);
	CHECK_EQ(spec_drops(), 0);
}

static void sink(ptl_handle_eq_t eq)
{
	offer_at_b(SPEC_BITS,
		spec_md(suite_alloc(ROOM), ROOM, PUT_GET_AT | PTL_MD_TRUNCATE, eq));
}

static ptl_md_t md_at_a(int threshold, ptl_handle_eq_t eq)
{
	return with_threshold(spec_md(pattern(100, 1), 100, 0, eq), threshold);
}

static void threshold_is(ptl_handle_eq_t eq, ptl_event_kind_t kind, int threshold)
{
	CHECK_EQ(EXPECT(eq, kind).md.threshold, threshold);
}

STATEMENT(175, a_send_takes_one_and_the_ack_one)
{
	sink(PTL_EQ_NONE);
	if (!spec.is_a)
		return;
	ptl_handle_eq_t eq = spec_eq(32);
	ptl_handle_md_t md = spec_bind(md_at_a(5, eq), PTL_RETAIN);
	for (int i = 0; i < 2; i++) {
		spec_put(md, PTL_ACK_REQ, SPEC_BITS);
		threshold_is(eq, PTL_EVENT_SEND_START, 4 - 2 * i);
		threshold_is(eq, PTL_EVENT_SEND_END, 4 - 2 * i);
		threshold_is(eq, PTL_EVENT_ACK, 3 - 2 * i);
		CHECK_EQ(query(md).threshold, 3 - 2 * i);
	}
	spec_put(md, PTL_NO_ACK_REQ, SPEC_BITS);
	threshold_is(eq, PTL_EVENT_SEND_START, 0);
	threshold_is(eq, PTL_EVENT_SEND_END, 0);
	SILENCE(eq);
	ptl_handle_md_t endless = spec_bind(md_at_a(PTL_MD_THRESH_INF, eq), PTL_RETAIN);
	spec_put(endless, PTL_ACK_REQ, SPEC_BITS);
	threshold_is(eq, PTL_EVENT_SEND_START, PTL_MD_THRESH_INF);
	threshold_is(eq, PTL_EVENT_SEND_END, PTL_MD_THRESH_INF);
	threshold_is(eq, PTL_EVENT_ACK, PTL_MD_THRESH_INF);
}

WEAK_STATEMENT(176, an_inactive_retained_descriptor_takes_its_ack)
{
	sink(PTL_EQ_NONE);
	if (!spec.is_a)
		return;
	ptl_handle_eq_t eq = spec_eq(32);
	ptl_handle_md_t md = spec_bind(md_at_a(1, eq), PTL_RETAIN);
	spec_put(md, PTL_ACK_REQ, SPEC_BITS);
	threshold_is(eq, PTL_EVENT_SEND_START, 0);
	threshold_is(eq, PTL_EVENT_SEND_END, 0);
	threshold_is(eq, PTL_EVENT_ACK, 0);
	CHECK_EQ(query(md).threshold, 0);
	CHECK_EQ(spec_drops(), 0);
}

WEAK_STATEMENT(177, an_auto_unlinked_descriptor_loses_its_ack)
{
	sink(PTL_EQ_NONE);
	if (!spec.is_a)
		return;
	ptl_handle_eq_t eq = spec_eq(32);
	ptl_handle_md_t md = spec_bind(md_at_a(1, eq), PTL_UNLINK);
	spec_put(md, PTL_ACK_REQ, SPEC_BITS);
	(void)EXPECT_PAIR(eq, PTL_EVENT_SEND_START);
	(void)EXPECT(eq, PTL_EVENT_UNLINK);
	CHECK_RC(PtlMDUnlink(md), PTL_MD_INVALID);
	EXPECT_DROPS(1);
	SILENCE(eq);
}

WEAK_STATEMENT(178, an_inactive_descriptor_does_not_send)
{
	sink(PTL_EQ_NONE);
	if (spec.is_a) {
		ptl_handle_eq_t eq = spec_eq(32);
		ptl_handle_md_t used = spec_bind(md_at_a(1, eq), PTL_RETAIN);
		put_whole(eq, used, PTL_NO_ACK_REQ, SPEC_BITS);
		const ptl_handle_md_t idle[] = {
			used, spec_bind(md_at_a(0, eq), PTL_UNLINK)};
		for (int i = 0; i < 2; i++) {
			CHECK_RC(PtlPut(idle[i], PTL_ACK_REQ, spec.b, SPEC_PT, 0,
					 SPEC_BITS, 0, 0),
				PTL_MD_INVALID);
			CHECK_RC(PtlPutRegion(idle[i], 0, 5, PTL_ACK_REQ, spec.b, SPEC_PT,
					 0, SPEC_BITS, 0, 0),
				PTL_MD_INVALID);
			CHECK_RC(PtlGet(idle[i], spec.b, SPEC_PT, 0, SPEC_BITS, 0),
				PTL_MD_INVALID);
			CHECK_OK(PtlMDUnlink(idle[i]));
		}
		SILENCE(eq);
	}
	spec_barrier();
	CHECK_EQ(spec_drops(), 0);
}

/* ---- 179 - 189 ---- */

static void reuse(ptl_size_t length, ptl_match_bits_t bits)
{
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	unsigned char *to = spec.is_b ? suite_alloc(4 * length + 1) : NULL;
	offer_at_b(bits, spec_md(to, 4 * length, PTL_MD_OP_PUT, eq_b));
	if (spec.is_a) {
		unsigned char *from = suite_alloc(length + 1);
		ptl_handle_md_t md =
			spec_bind(spec_md(from, length, 0, eq_a), PTL_RETAIN);
		for (unsigned i = 0; i < 4; i++) {
			fill_bytes(from, length, i);
			put_whole(eq_a, md, PTL_NO_ACK_REQ, bits);
			memset(from, 0xee, length);
		}
	}
	for (unsigned i = 0; spec.is_b && i < 4; i++) {
		ptl_event_t ev = NEXT(eq_b);
		while (ev.type != PTL_EVENT_PUT_END)
			ev = NEXT(eq_b);
		CHECK_BYTES(to + ev.offset, 0, length, (unsigned)(ev.offset / length));
	}
}

STATEMENT(179, the_source_is_free_after_send_end)
{
	for (int i = 1; i < SOME; i++)
		reuse(some_lengths[i], (ptl_match_bits_t)i);
}

STATEMENT(180, header_data_arrive)
{
	ptl_handle_eq_t eq_a = spec_eq(256), eq_b = spec_eq(512);
	sink(eq_b);
	for (unsigned i = 0; i < 70; i++) {
		ptl_hdr_data_t hdr = i < 64 ? UINT64_C(1) << i : ~mix(i) * (i & 1);
		if (spec.is_a) {
			CHECK_OK(PtlPut(source(i * 100, 1, eq_a), PTL_NO_ACK_REQ, spec.b,
				SPEC_PT, 0, SPEC_BITS, 0, hdr));
			CHECK_EQ(EXPECT_PAIR(eq_a, PTL_EVENT_SEND_START).hdr_data, hdr);
		}
		if (spec.is_b) {
			CHECK_EQ(EXPECT(eq_b, PTL_EVENT_PUT_START).hdr_data, hdr);
			CHECK_EQ(EXPECT(eq_b, PTL_EVENT_PUT_END).hdr_data, hdr);
		}
		spec_barrier();
	}
}

/* B: return the expected event of call number i. */
static struct fields call_181(unsigned i, ptl_handle_md_t handle, ptl_md_t md)
{
	struct fields f = fields_of(spec.a, handle, md, ~mix(i), i * 31);
	f.pt_index = i % ((ptl_pt_index_t)spec.limits.max_pt_index + 1);
	f.hdr_data = mix(i + 1000);
	f.offset = i * 3;
	return f;
}

STATEMENT(181, the_event_at_the_target_equals_the_call)
{
	enum { CALLS = 128, LENGTH = CALLS * 40 };
	ptl_handle_eq_t eq_a = spec_eq(4 * CALLS), eq_b = spec_eq(4 * CALLS);
	ptl_pt_index_t most = (ptl_pt_index_t)spec.limits.max_pt_index;
	ptl_md_t md = spec_md(suite_alloc(LENGTH), LENGTH, PUT_AT, eq_b);
	ptl_handle_md_t *at = suite_alloc((most + 1) * sizeof *at);
	for (ptl_pt_index_t pt = 0; spec.is_b && pt <= most; pt++)
		at[pt] = attach_all(pt, md);
	spec_barrier();
	ptl_handle_md_t from = source(LENGTH, 1, eq_a);
	for (unsigned i = 0; i < CALLS; i++) {
		struct fields f = call_181(i, 0, md);
		if (spec.is_a) {
			CHECK_OK(PtlPutRegion(from, i, f.rlength, PTL_NO_ACK_REQ, spec.b,
				f.pt_index, 0, f.match_bits, f.offset, f.hdr_data));
			(void)EXPECT_PAIR(eq_a, PTL_EVENT_SEND_START);
		}
		f.md_handle = at[f.pt_index];
		if (spec.is_b)
			(void)CHECK_PAIR(eq_b, PTL_EVENT_PUT_START, &f);
		spec_barrier();
	}
}

STATEMENT(182, put_region_sends_just_the_region)
{
	enum { LENGTH = 300000, CALLS = 100 };
	ptl_handle_eq_t eq_a = spec_eq(16), eq_b = spec_eq(16);
	unsigned char *to = suite_alloc(LENGTH);
	offer_at_b(SPEC_BITS, spec_md(to, LENGTH, PUT_AT, eq_b));
	ptl_handle_md_t md = source(LENGTH, 4, eq_a);
	for (uint64_t i = 0; i < CALLS; i++) {
		ptl_size_t offset = mix(i) % LENGTH;
		ptl_size_t length = mix(i + 7000) % (i % 3 ? 500 : LENGTH - offset);
		length = length > LENGTH - offset ? LENGTH - offset : length;
		ptl_size_t remote = mix(i + 9000) % (LENGTH - length);
		if (spec.is_a) {
			CHECK_OK(PtlPutRegion(md, offset, length, PTL_NO_ACK_REQ, spec.b,
				SPEC_PT, 0, SPEC_BITS, remote, 0));
			CHECK_EQ(EXPECT_PAIR(eq_a, PTL_EVENT_SEND_START).rlength, length);
		}
		if (spec.is_b) {
			ptl_event_t ev = EXPECT_PAIR(eq_b, PTL_EVENT_PUT_START);
			CHECK_EQ(ev.rlength, length);
			CHECK_EQ(ev.mlength, length);
			CHECK_BYTES(to + remote, offset, length, 4);
			CHECK_ZERO(to, remote);
			CHECK_ZERO(to + remote + length, LENGTH - remote - length);
			memset(to + remote, 0, length);
		}
		spec_barrier();
	}
}

struct bounds {
	ptl_size_t offset, length;
	bool good;
};

static const struct bounds bounds[] = {{0, 0, true}, {0, 100, true}, {100, 0, true},
	{99, 1, true}, {40, 60, true}, {0, 101, false}, {100, 1, false}, {101, 0, false},
	{99, 2, false}, {40, 61, false}, {UINT64_MAX, 0, false}, {UINT64_MAX, 1, false},
	{UINT64_MAX, UINT64_MAX, false}, {1, UINT64_MAX, false},
	{2, UINT64_MAX - 1, false}, {UINT64_MAX - 1, 2, false},
	{UINT64_C(1) << 32, 1, false}, {0, UINT64_C(1) << 32, false},
	{50, (UINT64_C(1) << 32) + 1, false},
	{UINT64_C(1) << 63, UINT64_C(1) << 63, false}};
enum { BOUNDS = sizeof bounds / sizeof bounds[0] };

/* Put 100 bytes, as one piece or several. */
static void put_bounds(ptl_handle_eq_t eq_a, ptl_handle_eq_t eq_b, ptl_handle_md_t md)
{
	for (int i = 0; i < BOUNDS; i++) {
		const struct bounds *x = &bounds[i];
		if (spec.is_a)
			CHECK_RC(PtlPutRegion(md, x->offset, x->length, PTL_NO_ACK_REQ,
					 spec.b, SPEC_PT, 0, SPEC_BITS, 0, 0),
				x->good ? PTL_OK : PTL_MD_ILLEGAL);
		if (spec.is_a && x->good)
			(void)EXPECT_PAIR(eq_a, PTL_EVENT_SEND_START);
		if (spec.is_b && x->good)
			CHECK_EQ(EXPECT_PAIR(eq_b, PTL_EVENT_PUT_START).rlength,
				x->length);
		spec_barrier();
	}
	SILENCE(eq_a);
	SILENCE(eq_b);
	spec_barrier();
}

static ptl_handle_md_t hundred_in_pieces(ptl_handle_eq_t eq)
{
	unsigned char *from = suite_alloc(200);
	ptl_md_iovec_t iov[] = {
		{from, 33}, {from + 50, 0}, {from + 60, 66}, {from + 150, 1}};
	return spec_bind(spec_md(iov, 4, PTL_MD_IOVEC, eq), PTL_RETAIN);
}

STATEMENT(183, put_region_bounds)
{
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	sink(eq_b);
	put_bounds(eq_a, eq_b, source(100, 1, eq_a));
	put_bounds(eq_a, eq_b, hundred_in_pieces(eq_a));
	CHECK_EQ(spec_drops(), 0);
}

STATEMENT(184, put_region_crosses_elements)
{
	enum { LENGTH = 50 };
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	unsigned char *to = suite_alloc(LENGTH), *from = pattern(200, 2);
	offer_at_b(SPEC_BITS, spec_md(to, LENGTH, PUT_AT, eq_b));
	ptl_md_iovec_t iov[] = {{from + 100, 13}, {from + 60, 1}, {NULL, 0}, {from, 20},
		{from + 180, 16}}; /* 50 */
	unsigned char want[LENGTH], *at = want;
	for (int i = 0; i < 5; at += iov[i++].iov_len)
		if (iov[i].iov_len)
			memcpy(at, iov[i].iov_base, iov[i].iov_len);
	ptl_handle_md_t md = spec_bind(spec_md(iov, 5, PTL_MD_IOVEC, eq_a), PTL_RETAIN);
	for (ptl_size_t offset = 0; offset <= LENGTH; offset += 3)
		for (ptl_size_t len = 0; len <= LENGTH - offset; len += 1 + len / 4) {
			if (spec.is_a) {
				CHECK_OK(PtlPutRegion(md, offset, len, PTL_NO_ACK_REQ,
					spec.b, SPEC_PT, 0, SPEC_BITS, 0, 0));
				CHECK_EQ(EXPECT_PAIR(eq_a, PTL_EVENT_SEND_START).offset,
					offset);
			}
			if (spec.is_b) {
				CHECK_EQ(EXPECT_PAIR(eq_b, PTL_EVENT_PUT_START).mlength,
					len);
				CHECK(memcmp(to, want + offset, len) == 0);
			}
			spec_barrier();
		}
}

STATEMENT(185, sending_leaves_the_local_offset_alone)
{
	ptl_handle_eq_t both = spec_eq(64), eq = spec_eq(64);
	unsigned char *bytes = pattern(ROOM, 1), *sunk = suite_alloc(ROOM);
	ptl_handle_md_t md = spec_target(
		SPEC_BITS, spec_md(bytes, ROOM, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE, both));
	(void)spec_target(1, spec_md(sunk, ROOM, PUT_AT, PTL_EQ_NONE));
	ptl_handle_md_t other = source(100, 2, eq);
	spec_barrier();
	/* B sends from the descriptor that it receives in, also in between. */
	for (unsigned i = 0; i < 3; i++) {
		if (spec.is_b) {
			CHECK_OK(PtlPut(md, PTL_NO_ACK_REQ, spec.a, SPEC_PT, 0, 1, 0, 0));
			(void)EXPECT_PAIR(both, PTL_EVENT_SEND_START);
			CHECK_OK(PtlPutRegion(md, 50, ROOM - 50, PTL_ACK_REQ, spec.a,
				SPEC_PT, 0, 1, 0, 0));
			(void)EXPECT_PAIR(both, PTL_EVENT_SEND_START);
			(void)EXPECT(both, PTL_EVENT_ACK);
		}
		spec_barrier();
		if (spec.is_a)
			put_whole(eq, other, PTL_NO_ACK_REQ, SPEC_BITS);
		if (spec.is_b) {
			CHECK_EQ(EXPECT_PAIR(both, PTL_EVENT_PUT_START).offset, 100 * i);
			CHECK_BYTES(bytes + 100 * i, 0, 100, 2);
			CHECK_BYTES(bytes + 100 * i + 100, 100 * i + 100, 500, 1);
		}
		spec_barrier();
	}
}

STATEMENT(186, a_descriptor_without_operations_sends)
{
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	sink(eq_b);
	static const unsigned options[] = {0, PTL_MD_OP_PUT, PTL_MD_OP_GET, PUT_GET,
		PTL_MD_MANAGE_REMOTE, PTL_MD_TRUNCATE, PTL_MD_ACK_DISABLE};
	for (int i = 0; i < 14; i++) {
		ptl_md_t from = spec_md(pattern(50, 3), 50, options[i % 7], eq_a);
		if (spec.is_a)
			put_whole(eq_a,
				i < 7 ? spec_bind(from, PTL_RETAIN)
				      : spec_target(9, from),
				PTL_ACK_REQ, SPEC_BITS);
		if (spec.is_b)
			CHECK_EQ(EXPECT_PAIR(eq_b, PTL_EVENT_PUT_START).mlength, 50);
		spec_barrier();
	}
}

STATEMENT(187, a_put_that_nobody_takes)
{
	ptl_handle_eq_t eq = spec_eq(64);
	for (int i = 0; i < SOME; i++) {
		if (spec.is_a) {
			ptl_md_t md = spec_md(
				pattern(some_lengths[i], 1), some_lengths[i], 0, eq);
			ptl_handle_md_t handle = spec_bind(md, PTL_RETAIN);
			struct fields sent =
				fields_of(spec.a, handle, md, SPEC_BITS, some_lengths[i]);
			spec_put(handle, PTL_ACK_REQ, SPEC_BITS);
			(void)CHECK_PAIR(eq, PTL_EVENT_SEND_START, &sent);
			CHECK_OK(PtlMDUnlink(handle));
		}
		if (spec.is_b)
			EXPECT_DROPS((uint64_t)i + 1);
		spec_barrier();
	}
	SILENCE(eq);
	CHECK_EQ(spec_drops(), spec.is_b ? SOME : 0);
}

/* Every node does this at the same time. */
STATEMENT(188, put_to_self)
{
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	for (int i = 0; i < SOME; i++) {
		ptl_size_t length = some_lengths[i];
		ptl_match_bits_t bits = (ptl_match_bits_t)i;
		ptl_md_t from = spec_md(pattern(length, 5), length, 0, eq_a);
		ptl_md_t to =
			spec_md(suite_alloc(length + 1), length, PTL_MD_OP_PUT, eq_b);
		ptl_handle_md_t md = spec_bind(from, PTL_RETAIN),
				at = spec_target(bits, to);
		struct fields want = fields_of(spec.self, md, from, bits, length);
		CHECK_OK(PtlPut(md, PTL_ACK_REQ, spec.self, SPEC_PT, 0, bits, 0, 0));
		(void)CHECK_PAIR(eq_a, PTL_EVENT_SEND_START, &want);
		(void)CHECK_NEXT(eq_a, PTL_EVENT_ACK, &want);
		want.md = to;
		want.md_handle = at;
		(void)CHECK_PAIR(eq_b, PTL_EVENT_PUT_START, &want);
		CHECK_BYTES(to.start, 0, length, 5);
	}
	SILENCE(eq_a);
	SILENCE(eq_b);
	CHECK_EQ(spec_drops(), 0);
}

/* Put to a process that never existed. */
static void put_to(ptl_process_id_t absent, ptl_handle_eq_t eq, ptl_size_t length)
{
	ptl_handle_md_t md = source(length, 1, eq);
	CHECK_OK(PtlPut(md, PTL_ACK_REQ, absent, SPEC_PT, 0, SPEC_BITS, 0, 0));
	ptl_event_t start = EXPECT(eq, PTL_EVENT_SEND_START), end = NEXT(eq);
	CHECK_EQ(end.type, PTL_EVENT_SEND_END);
	CHECK_EQ(end.link, start.link);
	if (end.ni_fail_type == PTL_NI_OK)
		spec_note(
			"a put of %llu bytes to an absent process (%u:%u) is no failure",
			(unsigned long long)length, absent.nid, absent.pid);
	SILENCE(eq);
	CHECK_OK(PtlMDUnlink(md));
}

STATEMENT(189, put_to_a_process_that_is_not_there)
{
	ptl_handle_eq_t eq = spec_eq(64);
	if (!spec.is_a)
		return;
	const ptl_process_id_t absent[] = {{spec.b.nid, spec.b.pid + 5000},
		{spec.b.nid + 5000, spec.b.pid}, {spec.b.nid + 5000, spec.b.pid + 5000}};
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < SOME; k += 2)
			put_to(absent[i], eq, some_lengths[k]);
}

/* ---- 190 - 199: gets ---- */

/* Check a get of length bytes from an offset, on both sides. */
static void get_once(ptl_handle_eq_t eq_a, ptl_handle_eq_t eq_b, ptl_handle_md_t at_b,
	ptl_md_t of_b, ptl_size_t offset, ptl_size_t length)
{
	struct fields want = fields_of(spec.a, at_b, of_b, SPEC_BITS, length);
	want.offset = offset;
	if (spec.is_a) {
		struct fields got = want;
		ptl_md_t md = spec_md(suite_alloc(length + 1), length, 0, eq_a);
		got.initiator = spec.b;
		got.md = md;
		got.md_handle = spec_bind(md, PTL_RETAIN);
		CHECK_OK(PtlGet(got.md_handle, spec.b, SPEC_PT, 0, SPEC_BITS, offset));
		(void)CHECK_PAIR(eq_a, PTL_EVENT_REPLY_START, &got);
		CHECK_BYTES(md.start, offset, length, 8);
		CHECK_OK(PtlMDUnlink(got.md_handle));
	}
	if (spec.is_b)
		(void)CHECK_PAIR(eq_b, PTL_EVENT_GET_START, &want);
	spec_barrier();
}

STATEMENT(190, a_get_fetches_the_bytes_at_its_offset)
{
	enum { LENGTH = 4 * MIB };
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	ptl_md_t md = spec_md(spec.is_b ? pattern(LENGTH, 8) : NULL, LENGTH,
		PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, eq_b);
	ptl_handle_md_t at_b = PTL_INVALID_HANDLE;
	if (spec.is_b)
		at_b = spec_target(SPEC_BITS, md);
	spec_barrier();
	static const ptl_size_t offsets[] = {0, 1, 4097, MIB - 7};
	for (int i = 0; i < SOME; i++)
		for (int k = 0; k < 4; k++)
			get_once(eq_a, eq_b, at_b, md, offsets[k], some_lengths[i]);
	get_once(eq_a, eq_b, at_b, md, LENGTH, 0);
	if (spec.is_b) {
		CHECK_OK(PtlMDUnlink(at_b)); /* after the last GET_END */
		CHECK_BYTES(md.start, 0, LENGTH, 8);
	}
}

/* B: attach bytes of pattern 8, to be got at the given offset. */
static ptl_handle_md_t larder(ptl_size_t length, unsigned options, ptl_handle_eq_t eq)
{
	ptl_handle_md_t md = PTL_INVALID_HANDLE;
	if (spec.is_b)
		md = spec_target(
			SPEC_BITS, spec_md(pattern(length, 8), length, options, eq));
	spec_barrier();
	return md;
}

static const unsigned open_larder = PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE;

STATEMENT(191, no_send_events_for_gets)
{
	(void)larder(MIB, open_larder, PTL_EQ_NONE);
	if (!spec.is_a)
		return;
	ptl_handle_eq_t eq = spec_eq(64);
	static const ptl_size_t lengths[] = {0, 8, 5000, MIB};
	for (int i = 0; i < 4; i++) {
		spec_get(source(lengths[i], 1, eq), SPEC_BITS);
		(void)EXPECT_PAIR(eq, PTL_EVENT_REPLY_START);
		SILENCE(eq);
	}
}

STATEMENT(192, a_get_takes_one_when_the_reply_comes)
{
	(void)larder(100, open_larder, PTL_EQ_NONE);
	if (!spec.is_a)
		return;
	ptl_handle_eq_t eq = spec_eq(64);
	ptl_handle_md_t md = spec_bind(md_at_a(3, eq), PTL_RETAIN);
	CHECK_OK(PtlGet(md, spec.b, SPEC_PT, 0, SPEC_BITS + 1, 0)); /* it is dropped */
	/* pause: time for a wrong reply to come: nothing shows the drop here */
	sleep_ms(20);
	CHECK_EQ(query(md).threshold, 3);
	for (int left = 2; left >= 0; left--) {
		spec_get(md, SPEC_BITS);
		threshold_is(eq, PTL_EVENT_REPLY_START, left);
		threshold_is(eq, PTL_EVENT_REPLY_END, left);
		CHECK_EQ(query(md).threshold, left);
	}
	SILENCE(eq);
}

STATEMENT(193, a_get_reads_only_and_is_refused_by_put_only)
{
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	unsigned char *here = pattern(100, 9), *there = pattern(100, 8);
	ptl_handle_md_t put_only = PTL_INVALID_HANDLE;
	if (spec.is_b) {
		put_only = spec_target(SPEC_BITS,
			with_threshold(spec_md(there, 100, PTL_MD_OP_PUT, eq_b), 5));
		(void)spec_target(
			SPEC_BITS + 1, spec_md(there, 100, PTL_MD_OP_GET, eq_b));
	}
	spec_barrier();
	ptl_handle_md_t md = spec_bind(spec_md(here, 100, 0, eq_a), PTL_RETAIN);
	if (spec.is_a)
		spec_get(md, SPEC_BITS);
	if (spec.is_b) {
		EXPECT_DROPS(1);
		SILENCE(eq_b);
		CHECK_EQ(query(put_only).threshold, 5);
	}
	SILENCE(eq_a);
	spec_barrier();
	CHECK_BYTES(here, 0, 100, 9);
	spec_barrier();
	if (spec.is_a) {
		spec_get(md, SPEC_BITS + 1);
		(void)EXPECT_PAIR(eq_a, PTL_EVENT_REPLY_START);
		CHECK_BYTES(here, 0, 100, 8);
	}
	if (spec.is_b) {
		(void)EXPECT_PAIR(eq_b, PTL_EVENT_GET_START);
		CHECK_BYTES(there, 0, 100, 8);
	}
}

static void get_bounds(ptl_handle_eq_t eq, ptl_handle_md_t md, unsigned char *bytes)
{
	for (int i = 0; i < BOUNDS; i++) {
		const struct bounds *x = &bounds[i];
		if (bytes)
			memset(bytes, 0, 100);
		CHECK_RC(PtlGetRegion(md, x->offset, x->length, spec.b, SPEC_PT, 0,
				 SPEC_BITS, 7),
			x->good ? PTL_OK : PTL_MD_ILLEGAL);
		if (!x->good)
			continue;
		ptl_event_t end = EXPECT_PAIR(eq, PTL_EVENT_REPLY_START);
		CHECK_EQ(end.rlength, x->length);
		CHECK_EQ(end.mlength, x->length);
		if (!bytes)
			continue;
		CHECK_ZERO(bytes, x->offset);
		CHECK_BYTES(bytes + x->offset, 7, x->length, 8);
		CHECK_ZERO(bytes + x->offset + x->length, 100 - x->offset - x->length);
	}
	SILENCE(eq);
}

/* Get regions, also long ones: the reply to a region crosses windows and pages. */
static void get_regions(ptl_handle_eq_t eq)
{
	enum { LENGTH = 3 * MIB };
	unsigned char *bytes = suite_alloc(LENGTH);
	ptl_handle_md_t md = spec_bind(spec_md(bytes, LENGTH, 0, eq), PTL_RETAIN);
	for (uint64_t i = 0; i < 20; i++) {
		ptl_size_t offset = mix(i) % MIB, length = mix(i + 50) % (2 * MIB);
		CHECK_OK(PtlGetRegion(
			md, offset, length, spec.b, SPEC_PT, 0, SPEC_BITS, i * 1001));
		(void)EXPECT_PAIR(eq, PTL_EVENT_REPLY_START);
		CHECK_ZERO(bytes, offset);
		CHECK_BYTES(bytes + offset, i * 1001, length, 8);
		CHECK_ZERO(bytes + offset + length, LENGTH - offset - length);
		memset(bytes + offset, 0, length);
	}
}

STATEMENT(194, get_region_bounds_and_place)
{
	(void)larder(3 * MIB, open_larder, PTL_EQ_NONE);
	if (spec.is_a) {
		ptl_handle_eq_t eq = spec_eq(64);
		unsigned char *bytes = suite_alloc(100);
		get_bounds(eq, spec_bind(spec_md(bytes, 100, 0, eq), PTL_RETAIN), bytes);
		get_bounds(eq, hundred_in_pieces(eq), NULL);
		get_regions(eq);
	}
	spec_barrier();
	CHECK_EQ(spec_drops(), 0);
}

STATEMENT(195, a_truncating_target)
{
	enum { HAS = 200001 };
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	(void)larder(HAS, open_larder | PTL_MD_TRUNCATE, eq_b);
	static const ptl_size_t offset[] = {0, 1, HAS - 100, HAS - 1, HAS};
	for (int i = 0; i < 5; i++)
		for (ptl_size_t asked = 1000; asked <= HAS + 1000; asked += HAS) {
			ptl_size_t left = HAS - offset[i];
			ptl_size_t moved = asked < left ? asked : left;
			if (spec.is_a) {
				unsigned char *bytes = suite_alloc(asked);
				ptl_handle_md_t md = spec_bind(
					spec_md(bytes, asked, 0, eq_a), PTL_RETAIN);
				CHECK_OK(PtlGet(
					md, spec.b, SPEC_PT, 0, SPEC_BITS, offset[i]));
				ptl_event_t end =
					EXPECT_PAIR(eq_a, PTL_EVENT_REPLY_START);
				CHECK_EQ(end.rlength, asked);
				CHECK_EQ(end.mlength, moved);
				CHECK_BYTES(bytes, offset[i], moved, 8);
				CHECK_ZERO(bytes + moved, asked - moved);
			}
			if (spec.is_b) {
				ptl_event_t end = EXPECT_PAIR(eq_b, PTL_EVENT_GET_START);
				CHECK_EQ(end.rlength, asked);
				CHECK_EQ(end.mlength, moved);
				CHECK_EQ(end.offset, offset[i]);
			}
			spec_barrier();
		}
}

/* The destination and the source of get number i. */
enum { GETS = 300, SLOT = 20000 };

static ptl_size_t get_length(unsigned i)
{
	return i % 7 == 0 ? SLOT - 3 : mix(i) % 600;
}

static void take_replies(ptl_handle_eq_t eq, ptl_handle_md_t md, unsigned char *bytes)
{
	unsigned char *done = suite_alloc(GETS);
	for (unsigned left = 2 * GETS; left; left--) {
		ptl_event_t ev = NEXT(eq);
		uint64_t i = ev.offset / 11;
		CHECK(i < GETS && ev.offset % 11 == 0);
		CHECK_EQ(ev.type, done[i] ? PTL_EVENT_REPLY_END : PTL_EVENT_REPLY_START);
		CHECK_EQ(ev.mlength, get_length((unsigned)i));
		CHECK_EQ(ev.md_handle, md);
		done[i]++;
	}
	SILENCE(eq);
	CHECK_OK(PtlMDUnlink(md));
	for (unsigned i = 0; i < GETS; i++) {
		ptl_size_t length = get_length(i);
		CHECK_BYTES(bytes + (size_t)i * SLOT, i * 11, length, 8);
		CHECK_ZERO(bytes + (size_t)i * SLOT + length, SLOT - length);
	}
}

STATEMENT(196, many_gets_of_one_descriptor)
{
	(void)larder(GETS * 11 + SLOT, open_larder, PTL_EQ_NONE);
	if (!spec.is_a)
		return;
	ptl_handle_eq_t eq = spec_eq(4 * GETS);
	unsigned char *bytes = suite_alloc((size_t)GETS * SLOT);
	ptl_md_t md = spec_md(bytes, (ptl_size_t)GETS * SLOT, 0, eq);
	md.threshold = GETS + 1;
	ptl_handle_md_t handle = spec_bind(md, PTL_RETAIN);
	for (unsigned i = 0; i < GETS; i++) {
		int rc;
		while ((rc = PtlGetRegion(handle, (ptl_size_t)i * SLOT, get_length(i),
				spec.b, SPEC_PT, 0, SPEC_BITS, i * 11)) == PTL_NO_SPACE)
			sleep_ms(1);
		CHECK_OK(rc);
	}
	take_replies(eq, handle, bytes);
}

STATEMENT(197, an_empty_get)
{
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	ptl_md_t md = with_threshold(spec_md(NULL, 0, PTL_MD_OP_GET, eq_b), 10);
	ptl_md_t mine = with_threshold(spec_md(NULL, 0, 0, eq_a), 10);
	ptl_handle_md_t at = PTL_INVALID_HANDLE, handle = spec_bind(mine, PTL_RETAIN);
	if (spec.is_b)
		at = spec_target(SPEC_BITS, md);
	spec_barrier();
	for (int left = 9; left > 5; left--) {
		struct fields want = fields_of(
			spec.b, handle, with_threshold(mine, left), SPEC_BITS, 0);
		if (spec.is_a) {
			spec_get(handle, SPEC_BITS);
			(void)CHECK_PAIR(eq_a, PTL_EVENT_REPLY_START, &want);
		}
		want = fields_of(spec.a, at, with_threshold(md, left), SPEC_BITS, 0);
		if (spec.is_b)
			(void)CHECK_PAIR(eq_b, PTL_EVENT_GET_START, &want);
		spec_barrier();
	}
}

STATEMENT(198, a_dropped_get_gives_no_event)
{
	ptl_handle_eq_t eq = spec_eq(64);
	ptl_handle_md_t md = source(1000, 9, eq);
	for (uint64_t i = 0; i < 5; i++) {
		if (spec.is_a)
			spec_get(md, SPEC_BITS + i);
		if (spec.is_b)
			EXPECT_DROPS(i + 1);
		spec_barrier();
	}
	SILENCE(eq);
	CHECK_OK(PtlMDUnlink(md));
	CHECK_EQ(spec_drops(), spec.is_b ? 5 : 0);
}

STATEMENT(199, an_infinite_threshold_never_falls)
{
	ptl_handle_eq_t eq_a = spec_eq(64), eq_b = spec_eq(64);
	ptl_handle_md_t at = larder(100, open_larder, eq_b);
	ptl_handle_md_t md = source(100, 9, eq_a);
	for (int i = 0; i < 500; i++) {
		if (spec.is_a) {
			spec_get(md, SPEC_BITS);
			threshold_is(eq_a, PTL_EVENT_REPLY_START, PTL_MD_THRESH_INF);
			threshold_is(eq_a, PTL_EVENT_REPLY_END, PTL_MD_THRESH_INF);
		}
		if (spec.is_b) {
			threshold_is(eq_b, PTL_EVENT_GET_START, PTL_MD_THRESH_INF);
			threshold_is(eq_b, PTL_EVENT_GET_END, PTL_MD_THRESH_INF);
		}
		spec_barrier();
	}
	CHECK_EQ(query(md).threshold, PTL_MD_THRESH_INF);
	if (spec.is_b)
		CHECK_EQ(query(at).threshold, PTL_MD_THRESH_INF);
}
