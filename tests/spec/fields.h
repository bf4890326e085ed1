/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fields - complete checks of events, after the table in 5.3 of the digest
 *
 *	struct fields sent = fields_of(spec.a, md_handle, md, bits, length);
 *	CHECK_PAIR(eq, PTL_EVENT_SEND_START, &sent);
 *
 * Members that a struct fields does not set must be 0.
 */
#ifndef P3_TESTS_SPEC_FIELDS_H
#define P3_TESTS_SPEC_FIELDS_H

#include "../support/random.h"
#include "spec.h"

#include <string.h>

struct fields {
	ptl_process_id_t initiator;
	ptl_pt_index_t pt_index;
	ptl_match_bits_t match_bits;
	ptl_size_t rlength, mlength, offset;
	ptl_hdr_data_t hdr_data;
	ptl_handle_md_t md_handle;
	ptl_md_t md; /* after the operation */
};

/* Return fields of an operation that moved all at offset 0, on SPEC_PT, without header
 * data. */
static inline struct fields fields_of(ptl_process_id_t initiator,
	ptl_handle_md_t md_handle, ptl_md_t md, ptl_match_bits_t bits, ptl_size_t length)
{
	return (struct fields){.initiator = initiator,
		.pt_index = SPEC_PT,
		.match_bits = bits,
		.rlength = length,
		.mlength = length,
		.md_handle = md_handle,
		.md = md};
}

static inline void fields_same(const char *file, int line, ptl_event_kind_t kind,
	const char *member, uint64_t is, uint64_t want)
{
	if (is != want)
		check_failed(file, line, "%s: %s is %llu (%#llx), not %llu (%#llx)",
			PtlEventKindStr(kind), member, (unsigned long long)is,
			(unsigned long long)is, (unsigned long long)want,
			(unsigned long long)want);
}

static inline void fields_check_md(const char *file, int line, ptl_event_kind_t kind,
	const ptl_md_t *is, const ptl_md_t *want)
{
	fields_same(file, line, kind, "md.start", (uintptr_t)is->start,
		(uintptr_t)want->start);
	fields_same(file, line, kind, "md.length", is->length, want->length);
	fields_same(file, line, kind, "md.threshold", (uint64_t)is->threshold,
		(uint64_t)want->threshold);
	fields_same(file, line, kind, "md.max_size", is->max_size, want->max_size);
	fields_same(file, line, kind, "md.options", is->options, want->options);
	fields_same(file, line, kind, "md.user_ptr", (uintptr_t)is->user_ptr,
		(uintptr_t)want->user_ptr);
	fields_same(file, line, kind, "md.eq_handle", is->eq_handle, want->eq_handle);
}

/* Check an event; all processes of the job have the same user and job id. */
static inline void fields_check(
	const char *file, int line, const ptl_event_t *ev, const struct fields *want)
{
	ptl_event_kind_t kind = ev->type;
	ptl_uid_t uid = 0;
	ptl_jid_t jid = 0;
	CHECK_OK(PtlGetUid(spec.ni, &uid));
	CHECK_OK(PtlGetJid(spec.ni, &jid));
	fields_same(file, line, kind, "initiator.nid", ev->initiator.nid,
		want->initiator.nid);
	fields_same(file, line, kind, "initiator.pid", ev->initiator.pid,
		want->initiator.pid);
	fields_same(file, line, kind, "uid", ev->uid, uid);
	fields_same(file, line, kind, "jid", ev->jid, jid);
	fields_same(file, line, kind, "pt_index", ev->pt_index, want->pt_index);
	fields_same(file, line, kind, "match_bits", ev->match_bits, want->match_bits);
	fields_same(file, line, kind, "rlength", ev->rlength, want->rlength);
	fields_same(file, line, kind, "mlength", ev->mlength, want->mlength);
	fields_same(file, line, kind, "offset", ev->offset, want->offset);
	fields_same(file, line, kind, "hdr_data", ev->hdr_data, want->hdr_data);
	fields_same(file, line, kind, "md_handle", ev->md_handle, want->md_handle);
	fields_same(file, line, kind, "ni_fail_type", ev->ni_fail_type, PTL_NI_OK);
	fields_check_md(file, line, kind, &ev->md, &want->md);
}

/* Check all members of the queue's next event, and return it. */
static inline ptl_event_t fields_next(const char *file, int line, ptl_handle_eq_t eq,
	ptl_event_kind_t kind, const struct fields *want)
{
	ptl_event_t ev = spec_expect(file, line, eq, kind);
	fields_check(file, line, &ev, want);
	return ev;
}
#define CHECK_NEXT(eq, kind, want) fields_next(__FILE__, __LINE__, eq, kind, want)

/* Check that the next two are START and END of one operation; return the END. */
static inline ptl_event_t fields_pair(const char *file, int line, ptl_handle_eq_t eq,
	ptl_event_kind_t start_kind, const struct fields *want)
{
	ptl_event_t start = fields_next(file, line, eq, start_kind, want);
	ptl_event_t end = fields_next(file, line, eq, start_kind + 1, want);
	fields_same(file, line, end.type, "link", end.link, start.link);
	fields_same(file, line, end.type, "sequence", end.sequence,
		(ptl_seq_t)(start.sequence + 1));
	return end;
}
#define CHECK_PAIR(eq, start_kind, want)                                                 \
	fields_pair(__FILE__, __LINE__, eq, start_kind, want)

/* Skip START and END; return the END. */
static inline ptl_event_t fields_skip_pair(
	const char *file, int line, ptl_handle_eq_t eq, ptl_event_kind_t start_kind)
{
	(void)spec_expect(file, line, eq, start_kind);
	return spec_expect(file, line, eq, start_kind + 1);
}
#define EXPECT_PAIR(eq, start_kind) fields_skip_pair(__FILE__, __LINE__, eq, start_kind)

static inline bool same_md(const ptl_md_t *x, const ptl_md_t *y)
{
	return x->start == y->start && x->length == y->length &&
	       x->threshold == y->threshold && x->max_size == y->max_size &&
	       x->options == y->options && x->user_ptr == y->user_ptr &&
	       x->eq_handle == y->eq_handle;
}

#define PUT_GET (PTL_MD_OP_PUT | PTL_MD_OP_GET)
/* The initiator names the place. */
#define PUT_AT     (PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE)
#define PUT_GET_AT (PUT_GET | PTL_MD_MANAGE_REMOTE)

/* Return bytes of this pattern. */
static inline unsigned char *pattern(ptl_size_t length, unsigned seed)
{
	unsigned char *bytes = suite_alloc(length + 1);
	fill_bytes(bytes, length, seed);
	return bytes;
}

/* Bind them, to send them. */
static inline ptl_handle_md_t source(ptl_size_t length, unsigned seed, ptl_handle_eq_t eq)
{
	return spec_bind(spec_md(pattern(length, seed), length, 0, eq), PTL_RETAIN);
}

static inline ptl_md_t with_threshold(ptl_md_t md, int threshold)
{
	md.threshold = threshold;
	return md;
}

/* Append an entry to SPEC_PT's list, for any process: entry and descriptor with these
 * flags. */
static inline ptl_handle_md_t attach_flags(ptl_match_bits_t bits, ptl_md_t md,
	ptl_unlink_t me_unlink, ptl_unlink_t md_unlink, ptl_handle_me_t *me_out)
{
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	ptl_handle_md_t handle = PTL_INVALID_HANDLE;
	CHECK_OK(PtlMEAttach(
		spec.ni, SPEC_PT, spec_any(), bits, 0, me_unlink, PTL_INS_AFTER, &me));
	CHECK_OK(PtlMDAttach(me, md, md_unlink, &handle));
	if (me_out)
		*me_out = me;
	return handle;
}

/* Append an entry that takes all bits, with a descriptor. */
static inline ptl_handle_md_t attach_all(ptl_pt_index_t pt, ptl_md_t md)
{
	ptl_handle_me_t me = PTL_INVALID_HANDLE;
	ptl_handle_md_t handle = PTL_INVALID_HANDLE;
	CHECK_OK(PtlMEAttach(spec.ni, pt, spec_any(), 0, ~UINT64_C(0), PTL_RETAIN,
		PTL_INS_AFTER, &me));
	CHECK_OK(PtlMDAttach(me, md, PTL_RETAIN, &handle));
	return handle;
}

/* Let B attach a descriptor that takes these bits, or all of them, and all nodes wait. */
static inline void offer_at_b(ptl_match_bits_t bits, ptl_md_t md)
{
	if (spec.is_b)
		(void)spec_target(bits, md);
	spec_barrier();
}

static inline void offer_all_at_b(ptl_md_t md)
{
	if (spec.is_b)
		(void)attach_all(SPEC_PT, md);
	spec_barrier();
}

static inline ptl_md_t query(ptl_handle_md_t handle)
{
	ptl_md_t md = {.start = NULL};
	CHECK_OK(PtlMDUpdate(handle, &md, NULL, PTL_EQ_NONE));
	return md;
}

/* Send, and wait until SEND_START, SEND_END and the requested ACK have been taken. */
static inline void put_whole(
	ptl_handle_eq_t eq, ptl_handle_md_t md, ptl_ack_req_t ack, ptl_match_bits_t bits)
{
	spec_put(md, ack, bits);
	(void)EXPECT_PAIR(eq, PTL_EVENT_SEND_START);
	if (ack == PTL_ACK_REQ)
		(void)EXPECT(eq, PTL_EVENT_ACK);
}

static inline int try_put_region(ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length,
	ptl_ack_req_t ack, ptl_process_id_t to, ptl_pt_index_t pt, ptl_match_bits_t bits,
	ptl_size_t remote, ptl_hdr_data_t hdr)
{
	int rc;
	while ((rc = PtlPutRegion(md, offset, length, ack, to, pt, 0, bits, remote,
			hdr)) == PTL_NO_SPACE)
		sleep_ms(1);
	return rc;
}

/*
 * takers - finds the one of B's match entries that takes A's next put
 *
 *	struct takers t = takers();
 *	if (spec.is_b)
 *		offer(&t, some_entry, 'x', 1);
 *	EXPECT_TAKERS(&t, SPEC_BITS, "x-");
 *
 * Descriptors are named by a letter, their user_ptr; '-' means that B drops the put.
 * All nodes call the checks, since A sends and B looks.
 */

enum { TAKERS_LENGTH = 8 };

struct takers {
	ptl_pt_index_t pt;
	ptl_handle_eq_t eq; /* of B: gets PUT_END and UNLINK of the offered descriptors */
	ptl_handle_md_t put; /* of A: the source of the puts */
	unsigned char *bytes;
};

static inline struct takers takers(void)
{
	struct takers t = {.pt = SPEC_PT, .bytes = suite_alloc(TAKERS_LENGTH)};
	t.eq = spec_eq(256);
	t.put = spec_bind(spec_md(t.bytes, TAKERS_LENGTH, 0, PTL_EQ_NONE), PTL_RETAIN);
	return t;
}

static inline ptl_md_t takers_md(const struct takers *t, char name, int threshold)
{
	static char names[128];
	ptl_md_t md = spec_md(
		t->bytes, TAKERS_LENGTH, PUT_AT | PTL_MD_EVENT_START_DISABLE, t->eq);
	md.user_ptr = &names[(unsigned char)name % sizeof names];
	*(char *)md.user_ptr = name;
	md.threshold = threshold;
	return md;
}

/* Attach a descriptor for this number of puts that never unlinks by itself. */
static inline ptl_handle_md_t offer(
	const struct takers *t, ptl_handle_me_t me, char name, int threshold)
{
	ptl_handle_md_t md;
	CHECK_OK(PtlMDAttach(me, takers_md(t, name, threshold), PTL_RETAIN, &md));
	return md;
}

/* B: return the name in the event of the put, or '-'. */
static inline char takers_look(const struct takers *t, uint64_t drops)
{
	for (struct patience p = patience_begin(); !patience_is_over(&p);) {
		ptl_event_t ev;
		ptl_handle_eq_t eq = t->eq;
		int which, rc = PtlEQPoll(&eq, 1, 2, &ev, &which);
		if (rc == PTL_OK && ev.type == PTL_EVENT_PUT_END)
			return *(char *)ev.md.user_ptr;
		if (rc != PTL_OK)
			CHECK_RC(rc, PTL_EQ_EMPTY);
		if (spec_drops() > drops)
			return '-';
	}
	return '?';
}

static inline char takers_next(const struct takers *t, ptl_match_bits_t bits)
{
	char name = 0;
	uint64_t drops = spec.is_b ? spec_drops() : 0;
	spec_barrier();
	if (spec.is_a)
		CHECK_OK(PtlPut(t->put, PTL_NO_ACK_REQ, spec.b, t->pt, 0, bits, 0, 0));
	if (spec.is_b)
		name = takers_look(t, drops);
	spec_barrier();
	return name;
}

static inline void takers_expect(const char *file, int line, const struct takers *t,
	ptl_match_bits_t bits, const char *names)
{
	for (size_t i = 0; names[i]; i++) {
		char name = takers_next(t, bits);
		if (spec.is_b && name != names[i])
			check_failed(file, line, "put %zu is taken by %c, not %c", i,
				name, names[i]);
	}
}
#define EXPECT_TAKERS(t, bits, names) takers_expect(__FILE__, __LINE__, t, bits, names)

/*
 * long_put - the result of a call while a long put arrives
 *
 * A sends megabytes into untouched memory of B.  As soon as B reads PUT_START it makes
 * a call that must be refused until the put has ended: so it returns PTL_MD_IN_USE, or
 * PTL_OK and PUT_END can be read.  A machine that moves all bytes in one step never
 * shows the former; there are some tries, and a note if none of them was refused.
 */

enum { LONG_PUT_LENGTH = 24 << 20, LONG_PUT_TRIES = 3, LONG_PUT_STRIDE = 4099 };

struct long_put {
	ptl_handle_eq_t eq; /* B */
	ptl_handle_me_t me;
	ptl_handle_md_t md;
	unsigned char *bytes;
};

/* Fill a byte in each page, and both ends. */
static inline void long_put_fill(unsigned char *bytes, unsigned seed)
{
	for (size_t i = 0; i < LONG_PUT_LENGTH; i += LONG_PUT_STRIDE)
		bytes[i] = byte_of(seed, i);
	bytes[LONG_PUT_LENGTH - 1] = byte_of(seed, 1);
}

static inline void long_put_check(const unsigned char *bytes, unsigned seed)
{
	for (size_t i = 0; i < LONG_PUT_LENGTH; i += LONG_PUT_STRIDE)
		CHECK_EQ(bytes[i], byte_of(seed, i));
	CHECK_EQ(bytes[LONG_PUT_LENGTH - 1], byte_of(seed, 1));
}

static inline struct long_put long_put_target(void)
{
	struct long_put p = {.eq = spec_eq(16), .me = spec_me(SPEC_BITS)};
	p.bytes = suite_alloc(LONG_PUT_LENGTH);
	CHECK_OK(PtlMDAttach(p.me, spec_md(p.bytes, LONG_PUT_LENGTH, PTL_MD_OP_PUT, p.eq),
		PTL_RETAIN, &p.md));
	return p;
}

/* B: return true if the call was refused.  In the end the call is done. */
static inline bool long_put_watch(struct long_put *p, int (*call)(struct long_put *p))
{
	ptl_event_t ev;
	(void)EXPECT(p->eq, PTL_EVENT_PUT_START);
	int rc = call(p);
	if (rc == PTL_OK) {
		CHECK_OK(PtlEQGet(p->eq, &ev));
		CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
		return false;
	}
	CHECK_RC(rc, PTL_MD_IN_USE);
	ev = EXPECT(p->eq, PTL_EVENT_PUT_END);
	CHECK_EQ(ev.mlength, LONG_PUT_LENGTH);
	CHECK_EQ(ev.md_handle, p->md);
	CHECK_OK(call(p));
	return true;
}

static inline bool long_put_once(unsigned seed, int (*call)(struct long_put *p))
{
	struct long_put p = {0};
	bool refused = false;
	if (spec.is_b)
		p = long_put_target();
	spec_barrier();
	if (spec.is_a) {
		unsigned char *from = suite_alloc(LONG_PUT_LENGTH);
		long_put_fill(from, seed);
		spec_put(spec_bind(spec_md(from, LONG_PUT_LENGTH, 0, PTL_EQ_NONE),
				 PTL_RETAIN),
			PTL_NO_ACK_REQ, SPEC_BITS);
	}
	if (spec.is_b) {
		refused = long_put_watch(&p, call);
		long_put_check(p.bytes, seed);
		SILENCE(p.eq);
	}
	return spec_told(refused);
}

static inline void long_put_try(int (*call)(struct long_put *p))
{
	for (unsigned i = 0; i < LONG_PUT_TRIES; i++)
		if (long_put_once(i, call))
			return;
	if (spec.is_b)
		spec_note("not observed: the put was over when its START was read");
}

#endif
