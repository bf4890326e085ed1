/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * format - the words of the messages in a lane
 *
 * A message is a header cell of eight words, and cells that carry the rest of its bytes
 * (shm/lane.h).  The enums below name the fields of the header, one enum for each
 * layout.  docs/design/messages.md shows them as a table, and a style test compares the
 * two (tests/style/message_words.py).  Each layout has one function that packs it and one
 * that unpacks it, and no other file counts words.
 *
 * The producer of a lane packs, the consumer unpacks.  Packing returns word 0, which
 * p3_ring_publish() stores last (LANE.1).  Unpacking loads each word once, because the
 * peer may change it at any time, and checks nothing.  SWITCH and PAD consist of word 0
 * alone.  The lease holder of either node calls these functions; they have no state.
 */
#ifndef P3_NIC_PROTO_FORMAT_H
#define P3_NIC_PROTO_FORMAT_H

#include "nic/nic.h"
#include "shm/lane.h"

enum p3_req_kind {
	P3_REQ_PAD = P3_KIND_PAD,
	P3_REQ_SWITCH, /* continue in the full ring */
	P3_REQ_PUT,
	P3_REQ_GET,
	P3_REQ_GETPUT, /* always atomic: the limit max_getput_md fits every lane */
	/* From here on: messages of CCI (nic/cci/state.h).  A new kind of Portals goes
	 * before them: rx.c compares kinds with the first and the last of Portals. */
	P3_REQ_CCI_MSG,
	P3_REQ_CCI_CONNECT,
	P3_REQ_CCI_DECIDE,
	P3_REQ_CCI_WRITE, /* laid out as a PUT, */
	P3_REQ_CCI_READ,  /* and as a GET */
	P3_REQ_CCI_READY,
	P3_REQ_CCI_ALIVE,
	P3_REQ_KINDS
};

enum p3_rsp_kind {
	P3_RSP_PAD = P3_KIND_PAD,
	P3_RSP_SWITCH,
	P3_RSP_NONE,       /* request dropped */
	P3_RSP_ACK,        /* eager put accepted */
	P3_RSP_DONE,       /* put over: SEND_END of a long one, and ACK if flagged */
	P3_RSP_REPLY,      /* carries the data */
	P3_RSP_REPLY_LONG, /* data are to be pulled */
	P3_RSP_CCI         /* any answer of CCI */
};

/*
 * P3_F_COPIED: the bytes of a long put are a copy (pending.c), so its initiator has had
 * SEND_END.  The target takes that initiator's next request only when the target has read
 * the copy: so short puts end in order whether they fit the lane or not.
 *
 * P3_F_HEAP, P3_F_ADDR: the header of a long put tells the place of its bytes, in the
 * heap or in memory, so that the target need not wait for the slot's line.  With neither
 * flag only the slot tells the place: the bytes are scattered, or the place or the
 * length has more bits than the header has for it.
 *
 * P3_F_ATOMIC: the bytes of a put or getput are operands of an atomic operation.
 *
 * P3_F_AHEAD: the initiator copies the bytes of a long put into a window unasked, those
 * of one put after the other, so the target should read them there, in the same order.
 */
enum {
	P3_F_ACK = 1,
	P3_F_LONG = 2,
	P3_F_NI1 = 4, /* the initiator's second interface */
	P3_F_HEAP = 8,
	P3_F_ADDR = 16,
	P3_F_COPIED = 32,
	P3_F_ATOMIC = 64,
	P3_F_AHEAD = 128
};

/* ---- fields ---- */

/* Bits of a word of the header.  The fields with more than 64 bits are bytes, which
 * begin with that word. */
#define P3_FIELD(word, shift, bits) ((word) << 24 | (shift) << 16 | (bits))

/* Each message.  shm/lane.h packs and unpacks this word. */
enum p3_header_fields {
	P3_HEADER_VALID = P3_FIELD(0, 0, 32),
	P3_HEADER_KIND = P3_FIELD(0, 32, 8),
	P3_HEADER_FLAGS = P3_FIELD(0, 40, 8),
	P3_HEADER_CELLS = P3_FIELD(0, 48, 16)
};

/* PUT, GET and GETPUT. */
enum p3_request_fields {
	P3_REQUEST_PID = P3_FIELD(1, 0, 16),
	P3_REQUEST_PORTAL = P3_FIELD(1, 16, 16),
	P3_REQUEST_ACCESS = P3_FIELD(1, 32, 16),
	P3_REQUEST_ROOM = P3_FIELD(1, 48, 16),
	P3_REQUEST_PENDING = P3_FIELD(2, 0, 32),
	P3_REQUEST_BITS = P3_FIELD(3, 0, 64),
	P3_REQUEST_HDR = P3_FIELD(4, 0, 64),
	P3_REQUEST_OFFSET = P3_FIELD(5, 0, 64)
};

/* PUT without P3_F_LONG and P3_F_ATOMIC. */
enum p3_eager_fields {
	P3_EAGER_LENGTH = P3_FIELD(2, 32, 32),
	P3_EAGER_DATA = P3_FIELD(6, 0, 128)
};

/* PUT with P3_F_ATOMIC, and GETPUT. */
enum p3_atomic_fields {
	P3_ATOMIC_LENGTH = P3_FIELD(2, 32, 16),
	P3_ATOMIC_WHAT = P3_FIELD(2, 48, 8),
	P3_ATOMIC_DATA = P3_FIELD(6, 0, 128)
};

/* PUT with P3_F_LONG. */
enum p3_long_fields {
	P3_LONG_PLACE_LOW = P3_FIELD(2, 32, 32),
	P3_LONG_LENGTH = P3_FIELD(6, 0, 48),
	P3_LONG_PLACE_HIGH = P3_FIELD(6, 48, 16),
	P3_LONG_LENGTH_ALONE = P3_FIELD(6, 0, 64),
	P3_LONG_XFER = P3_FIELD(7, 0, 64)
};

/* GET, with P3_F_LONG or without. */
enum p3_get_fields {
	P3_GET_LENGTH = P3_FIELD(6, 0, 64),
	P3_GET_XFER = P3_FIELD(7, 0, 64)
};

/* NONE, ACK, DONE, REPLY and REPLY_LONG. */
enum p3_response_fields {
	P3_RESPONSE_PENDING = P3_FIELD(1, 0, 32),
	P3_RESPONSE_STATUS = P3_FIELD(1, 32, 32),
	P3_RESPONSE_LENGTH = P3_FIELD(2, 0, 64)
};

/* REPLY. */
enum p3_reply_fields { P3_REPLY_DATA = P3_FIELD(3, 0, 320) };

/* REPLY_LONG. */
enum p3_long_reply_fields {
	P3_LONG_REPLY_XFER = P3_FIELD(3, 0, 64),
	P3_LONG_REPLY_ADDR = P3_FIELD(4, 0, 64),
	P3_LONG_REPLY_HEAP = P3_FIELD(5, 0, 64)
};

/* Word 0 of the most frequent request, a put whose bytes fit its header and that wants no
 * response, and of the most frequent response, both without the validity word. */
#define P3_REQ_USUAL p3_word0(P3_REQ_PUT, 0, 1)
#define P3_RSP_USUAL p3_word0(P3_RSP_ACK, 0, 1)

static inline uint32_t p3_field_word(uint32_t field)
{
	return field >> 24;
}

static inline uint32_t p3_field_shift(uint32_t field)
{
	return field >> 16 & 0xff;
}

static inline uint32_t p3_field_bits(uint32_t field)
{
	return field & 0xffff;
}

/* Return the value at its place in the word; the value fits the field. */
static inline uint64_t p3_field_in(uint32_t field, uint64_t value)
{
	return value << p3_field_shift(field);
}

/* Return the field's value in its word. */
static inline uint64_t p3_field_of(uint32_t field, uint64_t word)
{
	return word >> p3_field_shift(field) & UINT64_MAX >> (64 - p3_field_bits(field));
}

/* Store and load the word that has the field. */
static inline void p3_format_set(struct p3_cell *c, uint32_t field, uint64_t word)
{
	p3_set(&c->w[p3_field_word(field)], word);
}

static inline uint64_t p3_format_get(const struct p3_cell *c, uint32_t field)
{
	return p3_get(&c->w[p3_field_word(field)]);
}

/* Return the first byte of a field of bytes, which go on in the cells behind. */
static inline char *p3_format_bytes(const struct p3_cell *c, uint32_t field)
{
	return (char *)(uintptr_t)c + 8 * p3_field_word(field);
}

/* ---- lengths ---- */

#define P3_REQ_INLINE 16u /* bytes of data in a request's header */
#define P3_RSP_INLINE 40u /* bytes of data in a reply's header */

_Static_assert((uint32_t)P3_EAGER_DATA == (uint32_t)P3_ATOMIC_DATA,
	"operands lie where the bytes of a put lie");
_Static_assert(8 * P3_REQ_INLINE == (P3_EAGER_DATA & 0xffff) &&
		       8 * P3_RSP_INLINE == (P3_REPLY_DATA & 0xffff),
	"the data fill the header");

/* A request with more bytes has all of them behind its header: where a line begins,
 * copies are faster. */
#define P3_EAGER_APART 1536u

/* Return the bytes of the header that are left unused, without a branch. */
static inline uint32_t p3_request_unused(uint64_t len)
{
	return P3_REQ_INLINE * (uint32_t)(len > P3_EAGER_APART);
}

/* Return the number of cells of a request, or of a reply, with this number of bytes. */
static inline uint32_t p3_request_cells(uint64_t len)
{
	return 1 + (uint32_t)((len + p3_request_unused(len) + 63 - P3_REQ_INLINE) / 64);
}

static inline uint32_t p3_reply_cells(uint64_t len)
{
	return 1 + (uint32_t)((len + 63 - P3_RSP_INLINE) / 64);
}

/* Return the most bytes of a request, or of a reply, in a ring of n cells. */
static inline uint64_t p3_request_most(uint32_t n)
{
	uint64_t behind = (uint64_t)(p3_ring_most(n) - 1) * P3_CELL;
	return behind > P3_EAGER_APART ? behind : behind + P3_REQ_INLINE;
}

static inline uint64_t p3_reply_most(uint32_t n)
{
	return P3_RSP_INLINE + (uint64_t)(p3_ring_most(n) - 1) * P3_CELL;
}

/* Return the cells to reserve for a reply: its own, and the pad cells that may have to
 * fill the ring up to its end. */
static inline uint32_t p3_reply_room(uint64_t len)
{
	return 2 * p3_reply_cells(len) - 1;
}

/* ---- requests ---- */

/* The content of a request's header. */
struct p3_request {
	uint32_t kind; /* p3_req_kind */
	uint32_t flags;
	uint32_t ncells;
	uint32_t pid; /* target */
	uint32_t portal;
	uint32_t access;  /* index into the access control list */
	uint32_t room;    /* cells reserved for the response */
	uint32_t pending; /* the initiator's pending, 0: no response is requested */
	uint64_t bits;
	uint64_t hdr;
	uint64_t offset;
	uint64_t length;
	uint32_t what;  /* the atomic operation, 0: none */
	uint64_t place; /* long put with P3_F_HEAP or P3_F_ADDR: place of the bytes */
	uint64_t xfer;  /* long: the initiator's slot */
};

static inline uint64_t p3_request_word0(const struct p3_request *r)
{
	return p3_word0(r->kind, r->flags, r->ncells);
}

/* Return the kind of a request as traces name it: those of atomic operations, but for
 * that of PtlGetPut, are behind the kinds. */
static inline uint32_t p3_request_name(uint32_t kind, uint32_t what)
{
	return what && what != P3_ATOMIC_SWAP ? P3_REQ_KINDS + p3_atomic_op(what) : kind;
}

/* Return true if the header has the layout of p3_eager_fields. */
static inline bool p3_request_is_eager(uint32_t kind, uint32_t flags)
{
	return kind != P3_REQ_GET && !(flags & (P3_F_LONG | P3_F_ATOMIC));
}

/* Return the target's pid that a request has in its header. */
static inline uint32_t p3_request_pid(const struct p3_cell *c)
{
	uint64_t w = p3_format_get(c, P3_REQUEST_PID);
	return (uint32_t)p3_field_of(P3_REQUEST_PID, w);
}

/*
 * Fill the words that all requests have; own is a layout's own part of the word with the
 * pending.  Call this after the data are filled in.  A receiver that polls the header
 * takes its cache line away at the first store, and the copying of data that the program
 * has just written may wait for the program's stores.
 */
static inline void p3_pack_request(
	struct p3_cell *c, const struct p3_request *r, uint64_t own)
{
	p3_format_set(c, P3_REQUEST_PID,
		p3_field_in(P3_REQUEST_ROOM, r->room) |
			p3_field_in(P3_REQUEST_ACCESS, r->access) |
			p3_field_in(P3_REQUEST_PORTAL, r->portal) |
			p3_field_in(P3_REQUEST_PID, r->pid));
	p3_format_set(
		c, P3_REQUEST_PENDING, own | p3_field_in(P3_REQUEST_PENDING, r->pending));
	p3_format_set(c, P3_REQUEST_BITS, r->bits);
	p3_format_set(c, P3_REQUEST_HDR, r->hdr);
	p3_format_set(c, P3_REQUEST_OFFSET, r->offset);
}

/* Read the words that all requests have.  Return the word with the pending. */
static inline uint64_t p3_unpack_common(
	const struct p3_cell *c, uint64_t w0, struct p3_request *r)
{
	uint64_t to = p3_format_get(c, P3_REQUEST_PID);
	uint64_t pending = p3_format_get(c, P3_REQUEST_PENDING);
	r->kind = p3_word0_kind(w0);
	r->flags = p3_word0_flags(w0);
	r->ncells = p3_word0_ncells(w0);
	r->pid = (uint32_t)p3_field_of(P3_REQUEST_PID, to);
	r->portal = (uint32_t)p3_field_of(P3_REQUEST_PORTAL, to);
	r->access = (uint32_t)p3_field_of(P3_REQUEST_ACCESS, to);
	r->room = (uint32_t)p3_field_of(P3_REQUEST_ROOM, to);
	r->pending = (uint32_t)p3_field_of(P3_REQUEST_PENDING, pending);
	r->bits = p3_format_get(c, P3_REQUEST_BITS);
	r->hdr = p3_format_get(c, P3_REQUEST_HDR);
	r->offset = p3_format_get(c, P3_REQUEST_OFFSET);
	r->what = 0;
	return pending;
}

/* Return the place of the bytes of a put or getput of this length, more than
 * P3_REQ_INLINE. */
static inline char *p3_request_eager_bytes(const struct p3_cell *c, uint64_t len)
{
	return p3_format_bytes(c, P3_EAGER_DATA) + p3_request_unused(len);
}

/* Fill in the bytes of a put or getput with at most P3_REQ_INLINE. */
static inline void p3_pack_data(struct p3_cell *c, const uint64_t data[2])
{
	p3_set(&c->w[p3_field_word(P3_EAGER_DATA)], data[0]);
	p3_set(&c->w[p3_field_word(P3_EAGER_DATA) + 1], data[1]);
}

/* Read these bytes. */
static inline void p3_unpack_data(const struct p3_cell *c, uint64_t data[2])
{
	data[0] = p3_get(&c->w[p3_field_word(P3_EAGER_DATA)]);
	data[1] = p3_get(&c->w[p3_field_word(P3_EAGER_DATA) + 1]);
}

/* Pack a put whose bytes the message carries.  The bytes are filled in before. */
static inline uint64_t p3_pack_eager(struct p3_cell *c, const struct p3_request *r)
{
	p3_pack_request(c, r, p3_field_in(P3_EAGER_LENGTH, r->length));
	return p3_request_word0(r);
}

/* Pack an atomic operation.  The operands are filled in before. */
static inline uint64_t p3_pack_atomic(struct p3_cell *c, const struct p3_request *r)
{
	p3_pack_request(c, r,
		p3_field_in(P3_ATOMIC_WHAT, r->what) |
			p3_field_in(P3_ATOMIC_LENGTH, r->length));
	return p3_request_word0(r);
}

static inline void p3_unpack_atomic(uint64_t pending, struct p3_request *r)
{
	r->length = p3_field_of(P3_ATOMIC_LENGTH, pending);
	r->what = (uint32_t)p3_field_of(P3_ATOMIC_WHAT, pending);
	r->place = r->xfer = 0;
}

#define P3_PLACE_BITS 48 /* of a long put's place, and of its length beside a place */

/* Pack a put whose bytes the target pulls. */
static inline uint64_t p3_pack_long(struct p3_cell *c, const struct p3_request *r)
{
	uint64_t high = r->place >> 32;
	p3_format_set(c, P3_LONG_LENGTH,
		p3_field_in(P3_LONG_PLACE_HIGH, high) |
			p3_field_in(P3_LONG_LENGTH, r->length));
	p3_format_set(c, P3_LONG_XFER, r->xfer);
	p3_pack_request(c, r, p3_field_in(P3_LONG_PLACE_LOW, (uint32_t)r->place));
	return p3_request_word0(r);
}

static inline void p3_unpack_long(
	const struct p3_cell *c, uint64_t pending, struct p3_request *r)
{
	uint64_t w = p3_format_get(c, P3_LONG_LENGTH);
	bool placed = r->flags & (P3_F_HEAP | P3_F_ADDR);
	r->length = p3_field_of(placed ? P3_LONG_LENGTH : P3_LONG_LENGTH_ALONE, w);
	r->place = p3_field_of(P3_LONG_PLACE_HIGH, w) << 32 |
		   p3_field_of(P3_LONG_PLACE_LOW, pending);
	r->xfer = p3_format_get(c, P3_LONG_XFER);
}

/* Pack a get.  The slot of a get whose reply fits the lane is 0. */
static inline uint64_t p3_pack_get(struct p3_cell *c, const struct p3_request *r)
{
	p3_format_set(c, P3_GET_LENGTH, r->length);
	p3_format_set(c, P3_GET_XFER, r->xfer);
	p3_pack_request(c, r, 0);
	return p3_request_word0(r);
}

/* Unpack a request of any kind; a request of an unknown kind is unpacked as an eager
 * one. */
static inline void p3_unpack_request(
	const struct p3_cell *c, uint64_t w0, struct p3_request *r)
{
	uint64_t pending = p3_unpack_common(c, w0, r);
	if (p3_likely(p3_request_is_eager(r->kind, r->flags))) {
		r->length = p3_field_of(P3_EAGER_LENGTH, pending);
		r->place = r->xfer = 0;
	} else if (r->kind == P3_REQ_GET) {
		r->length = p3_format_get(c, P3_GET_LENGTH);
		r->xfer = p3_format_get(c, P3_GET_XFER);
		r->place = 0;
	} else if (p3_likely(r->flags & P3_F_LONG)) {
		p3_unpack_long(c, pending, r);
	} else {
		p3_unpack_atomic(pending, r);
	}
}

static inline uint64_t p3_pack_switch(uint32_t kind)
{
	return p3_word0(kind, 0, 1);
}

/* ---- responses ---- */

/* The content of a response's header. */
struct p3_answer {
	uint32_t kind;    /* p3_rsp_kind */
	uint32_t flags;   /* P3_F_ACK: DONE with acknowledgement */
	uint32_t ncells;  /* unpacked: cells; packing counts them itself */
	uint32_t pending; /* the initiator's */
	uint32_t status;  /* DONE: not 0 if the bytes could not be read */
	uint64_t mlength;
	/* REPLY_LONG: the target's slot, and the place of the bytes in its memory and in
	 * its heap, as in its transfer table */
	uint64_t xfer, addr, heap;
};

/* Fill the words that all responses have. */
static inline void p3_pack_answer(struct p3_cell *c, const struct p3_answer *a)
{
	p3_format_set(c, P3_RESPONSE_PENDING,
		p3_field_in(P3_RESPONSE_STATUS, a->status) |
			p3_field_in(P3_RESPONSE_PENDING, a->pending));
	p3_format_set(c, P3_RESPONSE_LENGTH, a->mlength);
}

/* Unpack the words of all responses; NONE, ACK and DONE have no others. */
static inline void p3_unpack_answer(
	const struct p3_cell *c, uint64_t w0, struct p3_answer *a)
{
	uint64_t w = p3_format_get(c, P3_RESPONSE_PENDING);
	a->kind = p3_word0_kind(w0);
	a->flags = p3_word0_flags(w0);
	a->ncells = p3_word0_ncells(w0);
	a->pending = (uint32_t)p3_field_of(P3_RESPONSE_PENDING, w);
	a->status = (uint32_t)p3_field_of(P3_RESPONSE_STATUS, w);
	a->mlength = p3_format_get(c, P3_RESPONSE_LENGTH);
}

/* Pack NONE, ACK or DONE. */
static inline uint64_t p3_pack_brief(struct p3_cell *c, const struct p3_answer *a)
{
	p3_pack_answer(c, a);
	return p3_word0(a->kind, a->flags, 1);
}

/* Return the place of a REPLY's bytes. */
static inline char *p3_reply_bytes(const struct p3_cell *c)
{
	return p3_format_bytes(c, P3_REPLY_DATA);
}

/* Pack the header of a REPLY; the caller fills in the bytes. */
static inline uint64_t p3_pack_reply(struct p3_cell *c, const struct p3_answer *a)
{
	p3_pack_answer(c, a);
	return p3_word0(P3_RSP_REPLY, 0, p3_reply_cells(a->mlength));
}

static inline uint64_t p3_pack_long_reply(struct p3_cell *c, const struct p3_answer *a)
{
	p3_pack_answer(c, a);
	p3_format_set(c, P3_LONG_REPLY_XFER, a->xfer);
	p3_format_set(c, P3_LONG_REPLY_ADDR, a->addr);
	p3_format_set(c, P3_LONG_REPLY_HEAP, a->heap);
	return p3_word0(P3_RSP_REPLY_LONG, 0, 1);
}

/* Read the words that only a REPLY_LONG has. */
static inline void p3_unpack_long_reply(const struct p3_cell *c, struct p3_answer *a)
{
	a->xfer = p3_format_get(c, P3_LONG_REPLY_XFER);
	a->addr = p3_format_get(c, P3_LONG_REPLY_ADDR);
	a->heap = p3_format_get(c, P3_LONG_REPLY_HEAP);
}

#endif
