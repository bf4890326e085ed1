/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fields - complete checks of events, after the table in 5.3 of the digest
 *
 *	struct fields sent = fields_of_put(spec.a, md_handle, md, bits, length);
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

#endif
