/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PtlXAtomic: each operation of each type against the same operation in C, order, sums
 * of several nodes and of the target's own instructions, events, rules of descriptors,
 * codes.
 */
#include "nic/nic.h"
#include "cases.h"

#include <math.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { PT = 4, PT_PIECES = 5, ROOM = 256, MOST = 64, OPS = PTLX_MSWAP + 1 };

/* ---- the operations in C ---- */

typedef void reference(ptlx_op_t op, void *at, const void *by, const void *with);

/* Return the same by the operations that are not of bits, for the types T; SUM and PROD
 * are done in the type W. */
#define IN_C(T, W, BITS)                                                                 \
	static void in_##T(ptlx_op_t op, void *at, const void *by, const void *with)     \
	{                                                                                \
		T o, n, c;                                                               \
		memcpy(&o, at, sizeof o);                                                \
		memcpy(&n, by, sizeof n);                                                \
		memcpy(&c, with, sizeof c);                                              \
		switch (op) {                                                            \
			BITS(T)                                                          \
		case PTLX_MIN:                                                           \
			o = n < o ? n : o;                                               \
			break;                                                           \
		case PTLX_MAX:                                                           \
			o = n > o ? n : o;                                               \
			break;                                                           \
		case PTLX_SUM:                                                           \
			o = (T)((W)o + (W)n);                                            \
			break;                                                           \
		case PTLX_PROD:                                                          \
			o = (T)((W)o * (W)n);                                            \
			break;                                                           \
		case PTLX_LOR:                                                           \
			o = (T)(o != 0 || n != 0);                                       \
			break;                                                           \
		case PTLX_LAND:                                                          \
			o = (T)(o != 0 && n != 0);                                       \
			break;                                                           \
		case PTLX_LXOR:                                                          \
			o = (T)((o == 0) != (n == 0));                                   \
			break;                                                           \
		case PTLX_WRITE:                                                         \
			o = n;                                                           \
			break;                                                           \
		case PTLX_CSWAP:                                                         \
			o = c == o ? n : o;                                              \
			break;                                                           \
		case PTLX_CSWAP_NE:                                                      \
			o = c != o ? n : o;                                              \
			break;                                                           \
		case PTLX_CSWAP_LE:                                                      \
			o = c <= o ? n : o;                                              \
			break;                                                           \
		case PTLX_CSWAP_LT:                                                      \
			o = c < o ? n : o;                                               \
			break;                                                           \
		case PTLX_CSWAP_GE:                                                      \
			o = c >= o ? n : o;                                              \
			break;                                                           \
		case PTLX_CSWAP_GT:                                                      \
			o = c > o ? n : o;                                               \
			break;                                                           \
		default:                                                                 \
			break;                                                           \
		}                                                                        \
		memcpy(at, &o, sizeof o);                                                \
	}
#define OF_INTEGERS(T)                                                                   \
	case PTLX_BOR:                                                                   \
		o = (T)(o | n);                                                          \
		break;                                                                   \
	case PTLX_BAND:                                                                  \
		o = (T)(o & n);                                                          \
		break;                                                                   \
	case PTLX_BXOR:                                                                  \
		o = (T)(o ^ n);                                                          \
		break;                                                                   \
	case PTLX_MSWAP:                                                                 \
		o = (T)((n & c) | (o & ~c));                                             \
		break;
#define OF_REALS(T)
#define P3_INTEGERS(X)                                                                   \
	X(int8_t)                                                                        \
	X(uint8_t) X(int16_t) X(uint16_t) X(int32_t) X(uint32_t) X(int64_t) X(uint64_t)
#define INTEGER(T) IN_C(T, uint64_t, OF_INTEGERS)
#define NAME(T)    in_##T,

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-equal"
P3_INTEGERS(INTEGER)
IN_C(float, float, OF_REALS)
IN_C(double, double, OF_REALS)
#pragma GCC diagnostic pop

static reference *const in_c[] = {P3_INTEGERS(NAME) in_float, in_double};
static const unsigned size_of[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

enum { TYPES = sizeof size_of / sizeof *size_of };

static bool is_valid(ptlx_op_t op, ptlx_type_t type)
{
	bool bits =
		op == PTLX_BOR || op == PTLX_BAND || op == PTLX_BXOR || op == PTLX_MSWAP;
	return (int)op < OPS && (int)type < TYPES && !(bits && type >= PTLX_FLOAT);
}

static bool is_compare(ptlx_op_t op)
{
	return op >= PTLX_CSWAP;
}

/* ---- operands ---- */

static uint64_t seed;

static uint64_t any_number(void)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return seed >> 16;
}

/* Write an element: the ends of the range, few bits, equal ones, all kinds of reals. */
static void any_element(void *at, ptlx_type_t type)
{
	static const double reals[] = {0.0, -0.0, 1.0, -1.0, 1.5, 3e38, -3e38, 1e-40,
		(double)INFINITY, (double)-INFINITY, (double)NAN, 0.1};
	static const uint64_t words[] = {0, 1, 2, UINT64_MAX, 0x8080808080808080,
		0x7f7f7f7f7f7f7f7f, 0x8000800080008000, 0x8000000080000000,
		0x8000000000000000, 0x7fffffffffffffff, 0x00ff00ff00ff00ff};
	uint64_t i = any_number();
	double d = reals[i % (sizeof reals / sizeof *reals)];
	float f = (float)d;
	uint64_t word = words[i % (sizeof words / sizeof *words)];
	if (type < PTLX_FLOAT && i / 64 % 4 == 0)
		word = any_number() * any_number();
	const void *from = type == PTLX_DOUBLE  ? (void *)&d
			   : type == PTLX_FLOAT ? (void *)&f
						: (void *)&word;
	memcpy(at, from, size_of[type]);
}

static void any_elements(unsigned char *at, ptlx_type_t type, size_t length)
{
	for (size_t i = 0; i < length; i += size_of[type])
		any_element(at + i, type);
}

/* Return true if elements are equal, or both no number. */
static bool is_same(const unsigned char *a, const unsigned char *b, ptlx_type_t type)
{
	float f[2];
	double d[2];
	memcpy(&f[0], a, sizeof f[0]);
	memcpy(&f[1], b, sizeof f[1]);
	if (type == PTLX_FLOAT && isnan(f[0]) && isnan(f[1]))
		return true;
	if (type == PTLX_DOUBLE) {
		memcpy(&d[0], a, sizeof d[0]);
		memcpy(&d[1], b, sizeof d[1]);
		if (isnan(d[0]) && isnan(d[1]))
			return true;
	}
	return memcmp(a, b, size_of[type]) == 0;
}

/* ---- both sides ---- */

static struct sides {
	unsigned char *at; /* rank 1's bytes */
	unsigned char
		*pieces; /* the same number, in pieces of 5 bytes, every other one */
	unsigned char *got, *sent;
	ptl_handle_eq_t eq;
	ptl_handle_md_t get, put;
} s;

/* The last node has bytes for all; this one has descriptors. */
static void set_up(ptl_handle_ni_t ni, unsigned rank, unsigned size)
{
	if (rank + 1 == size) {
		static ptl_md_iovec_t v[ROOM / 5 + 1];
		s.at = node_alloc(ROOM);
		s.pieces = node_alloc(2 * ROOM + 10);
		unsigned n = 0;
		for (unsigned done = 0; done < ROOM; done += 5, n++)
			v[n] = (ptl_md_iovec_t){
				s.pieces + 2 * done, ROOM - done < 5 ? ROOM - done : 5};
		post_md(ni, PT, 0, md_of(s.at, ROOM, MD_ANY | MD_QUIET, PTL_EQ_NONE));
		post_md(ni, PT_PIECES, 0,
			md_of(v, n, MD_ANY | MD_QUIET | PTL_MD_IOVEC, PTL_EQ_NONE));
	}
	if (rank == 0) {
		s.eq = eq_new(ni, 1024);
		s.got = node_alloc(ROOM);
		s.sent = node_alloc(ROOM);
		s.get = bind_md(ni, source_md(s.got, ROOM, s.eq));
		s.put = bind_md(ni, source_md(s.sent, ROOM, s.eq));
	}
	sync_nodes();
}

static int atomic_on(ptl_handle_ni_t ni, unsigned rank, bool fetch, ptlx_op_t op,
	ptlx_type_t type, size_t length, size_t offset)
{
	return PtlXAtomic(fetch ? s.get : PTL_INVALID_HANDLE, 8, s.put, 16, length, op,
		type, PTL_ACK_REQ, id_of(ni, rank), PT, 0, 0, offset, 7);
}

/* Wait for the end of an operation of rank 0.  Return its last event. */
static ptl_event_t ended(ptlx_op_t op, bool fetch)
{
	if (op != PTLX_READ)
		(void)expect(s.eq, PTL_EVENT_SEND_END);
	return expect(s.eq, fetch ? PTL_EVENT_REPLY_END : PTL_EVENT_ACK);
}

/* ---- each operation of each type ---- */

static unsigned char *byte_at(bool pieces, size_t i)
{
	return pieces ? s.pieces + i / 5 * 10 + i % 5 : s.at + i;
}

static void load(bool pieces, unsigned char *to, size_t offset, size_t length)
{
	for (size_t i = 0; i < length; i++)
		to[i] = *byte_at(pieces, offset + i);
}

/* Do one operation on rank 1's bytes at this offset, and compare all that it changes. */
static void try_operation(ptl_handle_ni_t ni, ptlx_op_t op, ptlx_type_t type,
	size_t length, size_t offset, bool fetch, bool pieces)
{
	unsigned char before[ROOM], after[ROOM], want[ROOM];
	any_elements(before + offset, type, length);
	for (size_t i = 0; i < length; i++)
		*byte_at(pieces, offset + i) = before[offset + i];
	load(pieces, before, 0, ROOM);
	memcpy(want, before, ROOM);
	any_elements(s.sent + 16, type, (is_compare(op) ? 2 : 1) * length);
	for (size_t i = 0; i < length; i += size_of[type])
		in_c[type](op, want + offset + i, s.sent + 16 + i,
			s.sent + 16 + (is_compare(op) ? length : 0) + i);
	CHECK_OK(PtlXAtomic(fetch ? s.get : PTL_INVALID_HANDLE, 8,
		op == PTLX_READ ? PTL_INVALID_HANDLE : s.put, 16, length, op, type,
		PTL_ACK_REQ, id_of(ni, 1), pieces ? PT_PIECES : PT, 0, 0, offset, 0));
	CHECK_EQ(ended(op, fetch).mlength, length);
	load(pieces, after, 0, ROOM);
	CHECK(memcmp(after, want, offset) == 0);
	CHECK(memcmp(after + offset + length, want + offset + length,
		      ROOM - offset - length) == 0);
	for (size_t i = offset; i < offset + length; i += size_of[type])
		if (!is_same(after + i, want + i, type))
			check_failed(__FILE__, __LINE__, "op %d, type %d: byte %zu", op,
				type, i);
	if (fetch)
		CHECK(memcmp(s.got + 8, before + offset, length) == 0);
}

static void each_form(ptl_handle_ni_t ni, ptlx_op_t op, ptlx_type_t type)
{
	size_t most = is_compare(op) ? MOST / 2 : MOST, size = size_of[type];
	for (unsigned i = 0; i < 16; i++) {
		bool fetch = i & 1 || op == PTLX_READ;
		size_t length = i & 8 ? most : any_number() % (most / size) * size;
		size_t offset = 8 * (any_number() % 16) + (i & 4 ? any_number() % 8 : 0);
		try_operation(ni, op, type, length, offset, fetch, i & 2);
	}
}

NODES_CASE(each_operation_of_each_type, 2)
{
	set_up(ni, rank, size);
	for (unsigned i = 0; rank == 0 && i < OPS * TYPES; i++) {
		ptlx_op_t op = (ptlx_op_t)(i / TYPES);
		ptlx_type_t type = (ptlx_type_t)(i % TYPES);
		if (is_valid(op, type))
			each_form(ni, op, type);
		else
			CHECK_RC(atomic_on(ni, 1, true, op, type, 8, 0), PTL_FAIL);
	}
	sync_nodes();
}

#if defined(__x86_64__)
/* A program that rounds up, and that overflows and invalid operations end, gets the same
 * numbers, and is not ended by a peer's operands. */
NODES_CASE(modes_of_the_program_have_no_effect, 1)
{
	unsigned modes = _mm_getcsr();
	const float tiny = 1e-9f, much = 3e38f, inf = INFINITY;
	float *at;
	set_up(ni, rank, size);
	at = (float *)(void *)s.at;
	at[0] = 1;
	at[1] = much;
	at[2] = -inf;
	memcpy(s.sent + 16, (float[]){tiny, much, inf}, 12);
	_mm_setcsr((modes & ~(unsigned)(_MM_MASK_OVERFLOW | _MM_MASK_INVALID |
					_MM_ROUND_MASK)) |
		   _MM_ROUND_UP);
	CHECK_OK(atomic_on(ni, 0, true, PTLX_SUM, PTLX_FLOAT, 12, 0));
	(void)ended(PTLX_SUM, true);
	CHECK_EQ(_mm_getcsr() & _MM_ROUND_MASK, _MM_ROUND_UP);
	_mm_setcsr(modes);
	CHECK(memcmp(at, (float[]){1, inf}, 8) == 0);
	CHECK(isnan(at[2]));
}
#endif

/* ---- order, sums ---- */

/* Plain operations and puts that no call waits for take effect in the order of the
 * calls. */
NODES_CASE(operations_of_one_source_are_in_order, 2)
{
	uint64_t x = 0, *sent, got;
	set_up(ni, rank, size);
	sent = (uint64_t *)(void *)(s.sent + 16);
	for (unsigned i = 0; rank == 0 && i < rounds(3000); i++) {
		ptlx_op_t op = i % 3 == 0 ? PTLX_SUM : i % 3 == 1 ? PTLX_PROD : PTLX_BXOR;
		uint64_t by = 2 * i + 3;
		in_uint64_t(op, &x, &by, &by);
		*sent = by; /* the call copies it, or the lane has room */
		CHECK_OK(PtlXAtomic(PTL_INVALID_HANDLE, 0, s.put, 16, 8, op, PTLX_UINT64,
			PTL_NO_ACK_REQ, id_of(ni, 1), PT, 0, 0, 8, 0));
		(void)expect(s.eq, PTL_EVENT_SEND_END);
		if (i % 100)
			continue;
		CHECK_OK(atomic_on(ni, 1, true, PTLX_READ, PTLX_UINT64, 8, 8));
		(void)ended(PTLX_READ, true);
		memcpy(&got, s.got + 8, 8);
		CHECK_EQ(got, x);
	}
	sync_nodes();
}

/* Each of four nodes adds to a word of the last one, plain and by fetches, while the last
 * one's program adds to it by instructions of its own. */
NODES_CASE(sums_of_four_nodes_are_exact, 4)
{
	enum { EACH = 3000 };
	unsigned n = rounds(EACH);
	static const uint64_t one = 1;
	ptl_handle_eq_t eq = eq_new(ni, 64);
	unsigned char *old = node_alloc(8);
	ptl_md_t from = md_of(node_alloc(8), 8, MD_QUIET, eq);
	memcpy(from.start, &one, 8);
	ptl_handle_md_t put = bind_md(ni, from), get = bind_md(ni, source_md(old, 8, eq));
	uint64_t last = 0, now;
	set_up(ni, rank, size);
	for (unsigned i = 0; i < n; i++) {
		bool fetch = i % 4 == 3 || i + 1 == n; /* the last one comes behind all */
		CHECK_OK(PtlXAtomic(fetch ? get : PTL_INVALID_HANDLE, 0, put, 0, 8,
			PTLX_SUM, PTLX_INT64, PTL_NO_ACK_REQ, id_of(ni, size - 1), PT, 0,
			0, 24, 0));
		if (rank + 1 == size)
			(void)p3_add64((p3_a64 *)(void *)(s.at + 24), 1);
		if (!fetch)
			continue;
		(void)expect(eq, PTL_EVENT_REPLY_END);
		memcpy(&now, old, 8);
		CHECK(now >= last + (i ? 1 : 0)); /* sums of others may come between */
		last = now;
	}
	sync_nodes();
	if (rank == 0)
		CHECK_EQ(p3_get((p3_a64 *)(void *)(s.at + 24)), 5 * n);
	sync_nodes();
}

/* ---- events and rules of descriptors ---- */

/* The events at both sides: those of a put, of a getput, and of a get. */
NODES_CASE(events_are_those_of_put_getput_and_get, 1)
{
	static const struct {
		ptlx_op_t op;
		bool fetch;
		ptl_event_kind_t at_target;
	} row[] = {{PTLX_SUM, false, PTL_EVENT_PUT_END},
		{PTLX_CSWAP, false, PTL_EVENT_PUT_END},
		{PTLX_SUM, true, PTL_EVENT_GETPUT_END},
		{PTLX_MSWAP, true, PTL_EVENT_GETPUT_END},
		{PTLX_READ, true, PTL_EVENT_GET_END}};
	set_up(ni, rank, size);
	ptl_handle_eq_t eq = eq_new(ni, 16);
	ptl_md_t d = sink_md(s.at, ROOM, eq);
	d.threshold = 5;
	post_md(ni, PT + 2, 0x5e, d);
	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		CHECK_OK(PtlXAtomic(row[i].fetch ? s.get : PTL_INVALID_HANDLE, 0, s.put,
			0, 24, row[i].op, PTLX_UINT8, PTL_ACK_REQ, id_of(ni, 0), PT + 2,
			0, 0x5e, 40, 77));
		ptl_event_t end = ended(row[i].op, row[i].fetch);
		CHECK_EQ(end.rlength, 24);
		CHECK_EQ(end.mlength, 24);
		CHECK_EQ(end.match_bits, 0x5e);
		ptl_event_t ev = expect(eq, row[i].at_target);
		CHECK_EQ(ev.rlength, 24);
		CHECK_EQ(ev.mlength, 24);
		CHECK_EQ(ev.offset, 40);
		CHECK_EQ(ev.hdr_data, row[i].op == PTLX_READ ? 0 : 77);
		CHECK_EQ(ev.md.threshold, 4 - (int)i);
	}
	uint64_t drops = drops_of(ni);
	CHECK_OK(atomic_on(ni, 0, false, PTLX_SUM, PTLX_INT8, 8, 0));
	(void)ended(PTLX_SUM, false);
	CHECK_OK(PtlXAtomic(PTL_INVALID_HANDLE, 0, s.put, 0, 8, PTLX_SUM, PTLX_INT8,
		PTL_ACK_REQ, id_of(ni, 0), PT + 2, 0, 0x5e, 0, 0));
	(void)expect(s.eq, PTL_EVENT_SEND_END);
	run_for_drops(ni, drops + 1); /* the threshold is used up */
	uint64_t puts = stats_of(ni).puts_inline;
	for (unsigned i = 1; i <= 100; i++) {
		CHECK_OK(PtlXAtomic(PTL_INVALID_HANDLE, 0, s.put, 0, 8, PTLX_SUM,
			PTLX_INT8, PTL_NO_ACK_REQ, id_of(ni, 0), PT, 0, 0, 0, 0));
		(void)expect(s.eq, PTL_EVENT_SEND_END);
		CHECK_EQ(stats_of(ni).puts_inline - puts, i);
	}
	expect_empty(s.eq);
	expect_empty(eq);
}

/* Which forms a descriptor with these options accepts. */
static void options_accept(ptl_handle_ni_t ni, unsigned options, ptl_pt_index_t pt)
{
	static const struct {
		ptlx_op_t op;
		bool fetch;
		unsigned needs;
	} row[] = {{PTLX_SUM, false, PTL_MD_OP_PUT},
		{PTLX_SUM, true, PTL_MD_OP_PUT | PTL_MD_OP_GET},
		{PTLX_CSWAP, true, PTL_MD_OP_PUT | PTL_MD_OP_GET},
		{PTLX_READ, true, PTL_MD_OP_GET}};
	post_md(ni, pt, 0, md_of(s.at, ROOM, options | MD_QUIET, PTL_EQ_NONE));
	for (unsigned i = 0; i < sizeof row / sizeof *row; i++) {
		uint64_t drops = drops_of(ni);
		CHECK_OK(PtlXAtomic(row[i].fetch ? s.get : PTL_INVALID_HANDLE, 0, s.put,
			0, 8, row[i].op, PTLX_UINT64, PTL_ACK_REQ, id_of(ni, 0), pt, 0, 0,
			0, 0));
		if (!(row[i].needs & ~options)) {
			(void)ended(row[i].op, row[i].fetch);
			continue;
		}
		if (row[i].op != PTLX_READ)
			(void)expect(s.eq, PTL_EVENT_SEND_END);
		run_for_drops(ni, drops + 1);
	}
}

NODES_CASE(descriptors_allow_puts_and_gets, 1)
{
	set_up(ni, rank, size);
	options_accept(ni, PTL_MD_OP_PUT, PT + 2);
	options_accept(ni, PTL_MD_OP_GET, PT + 3);
	options_accept(ni, PTL_MD_OP_PUT | PTL_MD_OP_GET, PT + 4);
}

/* Elements that do not fit whole are left out if the target truncates; else it does not
 * accept the request. */
static void fit_in(ptl_handle_ni_t ni, size_t room, ptl_pt_index_t pt)
{
	ptl_handle_eq_t eq = eq_new(ni, 8);
	ptl_md_t d = md_of(s.at, room,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_TRUNCATE |
			PTL_MD_EVENT_START_DISABLE,
		eq);
	for (int fetch = 0; fetch < 2; fetch++) {
		post_md(ni, pt, (ptl_match_bits_t)fetch, d);
		memset(s.at, 0xaa, ROOM);
		memset(s.got, 0x55, ROOM);
		CHECK_OK(PtlXAtomic(fetch ? s.get : PTL_INVALID_HANDLE, 0, s.put, 0, 32,
			PTLX_WRITE, PTLX_INT64, PTL_ACK_REQ, id_of(ni, 0), pt, 0,
			(ptl_match_bits_t)fetch, 0, 0));
		CHECK_EQ(ended(PTLX_WRITE, fetch).mlength, room / 8 * 8);
		CHECK_EQ(next_event(eq).mlength, room / 8 * 8);
		CHECK(memcmp(s.at, s.sent, room / 8 * 8) == 0);
		for (size_t i = 0; i < ROOM; i++) {
			CHECK(i < room / 8 * 8 || s.at[i] == 0xaa);
			CHECK_EQ(s.got[i], fetch && i < room / 8 * 8 ? 0xaa : 0x55);
		}
	}
	uint64_t drops = drops_of(ni);
	d.options &= ~(unsigned)PTL_MD_TRUNCATE;
	post_md(ni, pt, 2, d);
	CHECK_OK(PtlXAtomic(s.get, 0, s.put, 0, 32, PTLX_WRITE, PTLX_INT64, PTL_ACK_REQ,
		id_of(ni, 0), pt, 0, 2, 0, 0));
	(void)expect(s.eq, PTL_EVENT_SEND_END);
	run_for_drops(ni, drops + 1);
}

NODES_CASE(targets_with_less_room, 1)
{
	set_up(ni, rank, size);
	memset(s.sent, 0x33, ROOM);
	fit_in(ni, 0, PT + 2);
	fit_in(ni, 7, PT + 3);
	fit_in(ni, 20, PT + 4);
}

/* ---- codes ---- */

#define ATOMIC(get, get_at, put, put_at, length, op, type, who)                          \
	PtlXAtomic(get, get_at, put, put_at, length, op, type, PTL_ACK_REQ, who, PT, 0,  \
		0, 0, 0)

static void refuse_operations(ptl_process_id_t me)
{
	const ptl_handle_md_t none = PTL_INVALID_HANDLE;
	CHECK_RC(ATOMIC(none, 0, s.put, 0, 8, (ptlx_op_t)OPS, PTLX_INT8, me), PTL_FAIL);
	CHECK_RC(ATOMIC(none, 0, s.put, 0, 8, (ptlx_op_t)-1, PTLX_INT8, me), PTL_FAIL);
	CHECK_RC(ATOMIC(s.get, 0, s.put, 0, 8, (ptlx_op_t)26, PTLX_INT8, me), PTL_FAIL);
	CHECK_RC(ATOMIC(none, 0, s.put, 0, 16, PTLX_SUM, (ptlx_type_t)TYPES, me),
		PTL_FAIL);
	CHECK_RC(ATOMIC(s.get, 0, s.put, 0, 16, PTLX_SUM, (ptlx_type_t)-1, me), PTL_FAIL);
	CHECK_RC(ATOMIC(s.get, 0, s.put, 0, 8, PTLX_BOR, PTLX_DOUBLE, me), PTL_FAIL);
	CHECK_RC(ATOMIC(none, 0, s.put, 0, 8, PTLX_MSWAP, PTLX_FLOAT, me), PTL_FAIL);
}

static void refuse_lengths(ptl_process_id_t me)
{
	const ptl_handle_md_t none = PTL_INVALID_HANDLE;
	for (int i = 0; i < 2; i++) {
		ptl_handle_md_t get = i ? s.get : none;
		CHECK_RC(ATOMIC(get, 0, s.put, 0, 12, PTLX_SUM, PTLX_INT64, me),
			PTL_MD_ILLEGAL);
		CHECK_RC(ATOMIC(get, 0, s.put, 0, 72, PTLX_SUM, PTLX_INT64, me),
			PTL_MD_ILLEGAL);
		CHECK_RC(ATOMIC(get, 0, s.put, 0, 40, PTLX_CSWAP, PTLX_INT64, me),
			PTL_MD_ILLEGAL);
		CHECK_RC(ATOMIC(get, 0, s.put, 0, UINT64_MAX, PTLX_SUM, PTLX_INT8, me),
			PTL_MD_ILLEGAL);
		CHECK_RC(ATOMIC(get, 0, s.put, 0, UINT64_MAX / 2 + 1, PTLX_CSWAP,
				 PTLX_INT8, me),
			PTL_MD_ILLEGAL);
		CHECK_RC(ATOMIC(get, 0, s.put, ROOM - 7, 8, PTLX_SUM, PTLX_INT8, me),
			PTL_MD_ILLEGAL);
		CHECK_RC(ATOMIC(get, 0, s.put, ROOM - 15, 8, PTLX_CSWAP, PTLX_INT8, me),
			PTL_MD_ILLEGAL);
	}
	CHECK_RC(ATOMIC(s.get, ROOM - 7, s.put, 0, 8, PTLX_SUM, PTLX_INT8, me),
		PTL_MD_ILLEGAL);
	CHECK_RC(ATOMIC(s.get, ROOM - 7, none, 0, 8, PTLX_READ, PTLX_INT8, me),
		PTL_MD_ILLEGAL);
	CHECK_RC(
		ATOMIC(s.get, 0, none, 0, 72, PTLX_READ, PTLX_INT64, me), PTL_MD_ILLEGAL);
}

/* Twice the length, as CSWAP sends, would be 16.  After some operations a call
 * sends without a command. */
NODES_CASE(a_length_whose_double_overflows_is_illegal, 2)
{
	const ptl_handle_md_t none = PTL_INVALID_HANDLE;
	set_up(ni, rank, size);
	ptl_process_id_t to = id_of(ni, 1);
	if (rank == 0) {
		for (unsigned i = 0; i < 64; i++) {
			CHECK_OK(
				ATOMIC(none, 0, s.put, 0, 8, PTLX_CSWAP, PTLX_INT64, to));
			(void)ended(PTLX_CSWAP, false);
			CHECK_RC(ATOMIC(none, 0, s.put, 0, UINT64_MAX / 2 + 9, PTLX_CSWAP,
					 PTLX_INT64, to),
				PTL_MD_ILLEGAL);
		}
		expect_empty(s.eq);
	}
	sync_nodes();
}

NODES_CASE(each_code_has_its_cause, 1)
{
	const ptl_handle_md_t none = PTL_INVALID_HANDLE;
	ptl_ni_limits_t few = {.max_getput_md = 8};
	ptl_handle_ni_t other;
	set_up(ni, rank, size);
	ptl_process_id_t me = id_of(ni, 0), any = {PTL_NID_ANY, 1};
	refuse_operations(me);
	refuse_lengths(me);
	CHECK_RC(ATOMIC(none, 0, none, 0, 8, PTLX_SUM, PTLX_INT8, me), PTL_MD_INVALID);
	CHECK_RC(ATOMIC(s.get, 0, none, 0, 8, PTLX_SUM, PTLX_INT8, me), PTL_MD_INVALID);
	CHECK_RC(ATOMIC(s.eq, 0, s.put, 0, 8, PTLX_SUM, PTLX_INT8, me), PTL_MD_INVALID);
	CHECK_RC(ATOMIC(none, 0, s.put, 0, 8, PTLX_READ, PTLX_INT8, me), PTL_MD_INVALID);
	CHECK_RC(ATOMIC(none, 0, s.put, 0, 8, PTLX_SUM, PTLX_INT8, any),
		PTL_PROCESS_INVALID);
	CHECK_OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, &few, NULL, &other));
	ptl_handle_md_t far = bind_md(other, md_of(s.got, ROOM, 0, PTL_EQ_NONE));
	CHECK_RC(ATOMIC(far, 0, s.put, 0, 8, PTLX_SUM, PTLX_INT8, me), PTL_MD_ILLEGAL);
	CHECK_RC(ATOMIC(none, 0, far, 0, 16, PTLX_SUM, PTLX_INT8, me), PTL_MD_ILLEGAL);
	CHECK_RC(ATOMIC(far, 0, far, 0, 8, PTLX_CSWAP, PTLX_INT8, me), PTL_MD_ILLEGAL);
	CHECK_OK(ATOMIC(none, 0, far, 0, 8, PTLX_SUM, PTLX_INT8, me));
	CHECK_OK(PtlNIFini(other));
	expect_empty(s.eq);
}
