/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of messages: one side packs, the other unpacks, and the names are right. */
#include <string.h>

#include "nic/proto/format.h"
#include "support/cases.h"

/* Return the word of the cell that has the field. */
static uint64_t word_of(const struct p3_cell *c, uint32_t field)
{
	return p3_get(&c->w[p3_field_word(field)]);
}

static void assert_field(const struct p3_cell *c, uint32_t field, uint64_t value)
{
	assert_int_equal(p3_field_of(field, word_of(c, field)), value);
}

static void assert_same(const struct p3_request *a, const struct p3_request *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->ncells, b->ncells);
	assert_int_equal(a->pid, b->pid);
	assert_int_equal(a->portal, b->portal);
	assert_int_equal(a->access, b->access);
	assert_int_equal(a->room, b->room);
	assert_int_equal(a->pending, b->pending);
	assert_int_equal(a->bits, b->bits);
	assert_int_equal(a->hdr, b->hdr);
	assert_int_equal(a->offset, b->offset);
	assert_int_equal(a->length, b->length);
	assert_int_equal(a->place, b->place);
	assert_int_equal(a->xfer, b->xfer);
	assert_int_equal(a->what, b->what);
}

/* Return a request whose fields differ from each other in each byte. */
static struct p3_request request_of(uint32_t kind, uint32_t flags)
{
	return (struct p3_request){.kind = kind,
		.flags = flags,
		.ncells = 3,
		.pid = 0xa1b2,
		.portal = 0xc3d4,
		.access = 0xe5f6,
		.room = 0x0718,
		.pending = 0x293a4b5c,
		.bits = UINT64_C(0x6d7e8f9011223344),
		.hdr = UINT64_C(0x5566778899aabbcc),
		.offset = UINT64_C(0xddeeff0123456789)};
}

static void assert_common(const struct p3_cell *c, const struct p3_request *r)
{
	assert_field(c, P3_REQUEST_PID, r->pid);
	assert_field(c, P3_REQUEST_PORTAL, r->portal);
	assert_field(c, P3_REQUEST_ACCESS, r->access);
	assert_field(c, P3_REQUEST_ROOM, r->room);
	assert_field(c, P3_REQUEST_PENDING, r->pending);
	assert_field(c, P3_REQUEST_BITS, r->bits);
	assert_field(c, P3_REQUEST_HDR, r->hdr);
	assert_field(c, P3_REQUEST_OFFSET, r->offset);
	assert_int_equal(p3_request_pid(c), r->pid);
}

/* Unpack the cell, and compare it with the packed request. */
static void assert_taken(
	const struct p3_cell *c, uint64_t word0, const struct p3_request *sent)
{
	struct p3_request got;
	memset(&got, 0xee, sizeof got);
	p3_unpack_request(c, word0, &got);
	assert_same(&got, sent);
	assert_common(c, sent);
}

CASE(format_names_the_bits_of_word_0)
{
	uint64_t w = p3_word0(0xab, 0xcd, 0x1234) | p3_ring_valid(UINT64_MAX / 2, 3);
	assert_int_equal(p3_field_of(P3_HEADER_KIND, w), p3_word0_kind(w));
	assert_int_equal(p3_field_of(P3_HEADER_FLAGS, w), p3_word0_flags(w));
	assert_int_equal(p3_field_of(P3_HEADER_CELLS, w), p3_word0_ncells(w));
	assert_int_equal(p3_field_of(P3_HEADER_VALID, w), (uint32_t)w);
	assert_int_equal(p3_field_of(P3_HEADER_KIND, w), 0xab);
	assert_int_equal(p3_field_of(P3_HEADER_FLAGS, w), 0xcd);
	assert_int_equal(p3_field_of(P3_HEADER_CELLS, w), 0x1234);
}

static const uint64_t data[] = {
	UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};

CASE(format_keeps_a_put)
{
	struct p3_cell c = {0};
	struct p3_request r = request_of(P3_REQ_PUT, P3_F_ACK | P3_F_NI1);
	r.length = UINT32_MAX;
	p3_pack_data(&c, data);
	assert_taken(&c, p3_pack_eager(&c, &r), &r);
	assert_field(&c, P3_EAGER_LENGTH, r.length);
	assert_memory_equal(
		p3_request_eager_bytes(&c, P3_REQ_INLINE + 1), data, P3_REQ_INLINE);
	assert_ptr_equal(
		p3_request_eager_bytes(&c, P3_REQ_INLINE + 1) + P3_REQ_INLINE, &c + 1);
}

static void check_atomic(uint32_t kind)
{
	struct p3_cell c = {0};
	struct p3_request r = request_of(kind, P3_F_ACK | P3_F_ATOMIC);
	r.length = UINT16_MAX;
	r.what = UINT8_MAX;
	p3_pack_data(&c, data);
	assert_taken(&c, p3_pack_atomic(&c, &r), &r);
	assert_field(&c, P3_ATOMIC_LENGTH, r.length);
	assert_field(&c, P3_ATOMIC_WHAT, r.what);
	assert_memory_equal(p3_request_eager_bytes(&c, 8), data, P3_REQ_INLINE);
}

CASE(format_keeps_atomic_operations)
{
	check_atomic(P3_REQ_PUT);
	check_atomic(P3_REQ_GETPUT);
}

static void check_long(uint32_t flags, uint64_t place, uint64_t length)
{
	struct p3_cell c = {0};
	struct p3_request r = request_of(P3_REQ_PUT, P3_F_LONG | flags);
	r.place = place;
	r.length = length;
	r.xfer = UINT64_C(0x8877665544332211);
	assert_taken(&c, p3_pack_long(&c, &r), &r);
	assert_field(&c, P3_LONG_XFER, r.xfer);
	assert_field(&c, P3_LONG_PLACE_LOW, (uint32_t)place);
	assert_field(&c, flags ? P3_LONG_LENGTH : P3_LONG_LENGTH_ALONE, length);
}

CASE(format_keeps_a_long_put)
{
	uint64_t most = (UINT64_C(1) << P3_PLACE_BITS) - 1;
	check_long(P3_F_HEAP, UINT64_C(0x0000aabbccddeeff), UINT64_C(0x0000112233445566));
	check_long(P3_F_ADDR | P3_F_COPIED, most, 1);
	check_long(P3_F_ADDR, 1, most);
}

/* Without a place the length has the whole word.  The unpacked place means nothing then:
 * rx.c looks at the flags first. */
CASE(format_keeps_a_length_without_a_place)
{
	struct p3_cell c = {0};
	struct p3_request got, r = request_of(P3_REQ_PUT, P3_F_LONG);
	r.length = UINT64_MAX - 5;
	p3_unpack_request(&c, p3_pack_long(&c, &r), &got);
	assert_int_equal(got.length, r.length);
	check_long(0, 0, (UINT64_C(1) << P3_PLACE_BITS) - 1);
}

CASE(format_keeps_a_get)
{
	for (uint32_t is_long = 0; is_long < 2; is_long++) {
		struct p3_cell c = {0};
		struct p3_request r = request_of(P3_REQ_GET, is_long ? P3_F_LONG : 0);
		r.length = UINT64_MAX - is_long;
		r.xfer = is_long ? UINT64_C(0x1122334455667788) : 0;
		assert_taken(&c, p3_pack_get(&c, &r), &r);
		assert_field(&c, P3_GET_LENGTH, r.length);
		assert_field(&c, P3_GET_XFER, r.xfer);
	}
}

CASE(format_keeps_responses)
{
	for (uint32_t kind = P3_RSP_NONE; kind <= P3_RSP_DONE; kind++) {
		struct p3_cell c = {0};
		struct p3_answer got, a = {.kind = kind,
					      .flags = P3_F_ACK,
					      .pending = 0x12345678,
					      .status = 0x9abcdef0,
					      .mlength = UINT64_MAX - kind};
		p3_unpack_answer(&c, p3_pack_brief(&c, &a), &got);
		assert_int_equal(got.kind, kind);
		assert_int_equal(got.flags, P3_F_ACK);
		assert_int_equal(got.ncells, 1);
		assert_int_equal(got.pending, a.pending);
		assert_int_equal(got.status, a.status);
		assert_int_equal(got.mlength, a.mlength);
		assert_field(&c, P3_RESPONSE_PENDING, a.pending);
		assert_field(&c, P3_RESPONSE_STATUS, a.status);
		assert_field(&c, P3_RESPONSE_LENGTH, a.mlength);
	}
}

CASE(format_keeps_replies)
{
	struct p3_cell c = {0};
	struct p3_answer got, a = {.pending = 7, .mlength = P3_RSP_INLINE + 65};
	p3_unpack_answer(&c, p3_pack_reply(&c, &a), &got);
	assert_int_equal(got.kind, P3_RSP_REPLY);
	assert_int_equal(got.ncells, 3);
	assert_int_equal(got.pending, 7);
	assert_ptr_equal(p3_reply_bytes(&c) + P3_RSP_INLINE, &c + 1);
	a.xfer = UINT64_C(0x0102030405060708);
	a.addr = UINT64_C(0x1112131415161718);
	a.heap = UINT64_C(0x2122232425262728);
	uint64_t word0 = p3_pack_long_reply(&c, &a);
	p3_unpack_answer(&c, word0, &got);
	p3_unpack_long_reply(&c, &got);
	assert_int_equal(got.kind, P3_RSP_REPLY_LONG);
	assert_int_equal(got.ncells, 1);
	assert_int_equal(got.mlength, a.mlength);
	assert_int_equal(got.xfer, a.xfer);
	assert_int_equal(got.addr, a.addr);
	assert_int_equal(got.heap, a.heap);
	assert_field(&c, P3_LONG_REPLY_XFER, a.xfer);
	assert_field(&c, P3_LONG_REPLY_ADDR, a.addr);
	assert_field(&c, P3_LONG_REPLY_HEAP, a.heap);
}

CASE(format_counts_cells)
{
	assert_int_equal(p3_request_cells(0), 1);
	assert_int_equal(p3_request_cells(P3_REQ_INLINE), 1);
	assert_int_equal(p3_request_cells(P3_REQ_INLINE + 1), 2);
	assert_int_equal(p3_reply_cells(P3_RSP_INLINE), 1);
	assert_int_equal(p3_reply_cells(P3_RSP_INLINE + 1), 2);
	for (uint32_t n = P3_BASE_CELLS; n <= 1024; n *= 2) {
		assert_int_equal(p3_request_cells(p3_request_most(n)), p3_ring_most(n));
		assert_int_equal(p3_reply_cells(p3_reply_most(n)), p3_ring_most(n));
		assert_int_equal(
			p3_request_cells(p3_request_most(n) + 1), p3_ring_most(n) + 1);
	}
}
