/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record - the words of an event record: the only place that knows their order
 *
 * The firmware writes a record into its queue's ring (shm/evq.h), or first into the state
 * of an operation.  Host threads read it.  Each group of words has one function that
 * writes it; p3_event_from_record() reads all of them.  Only the lease holder calls the
 * writing functions, any thread the reading ones.
 */
#ifndef P3_NIC_OBJ_RECORD_H
#define P3_NIC_OBJ_RECORD_H

#include "nic/obj/objects.h"

/* "a:b" is a word with a in the upper half and b in the lower half. */
enum p3_event_word {
	/* the request */
	P3_EW_BITS, /* match bits */
	P3_EW_RLENGTH,
	P3_EW_MLENGTH,
	P3_EW_OFFSET,
	P3_EW_HDR, /* hdr_data */
	/* the descriptor's snapshot, in the order of enum p3_snap */
	P3_EW_MD,
	P3_EW_MD_HANDLE = P3_EW_MD + P3_SNAP_HANDLE,
	P3_EW_MD_START = P3_EW_MD + P3_SNAP_START,
	P3_EW_MD_LENGTH = P3_EW_MD + P3_SNAP_LENGTH,
	P3_EW_MD_MAX_SIZE = P3_EW_MD + P3_SNAP_MAX_SIZE,
	P3_EW_MD_USER_PTR = P3_EW_MD + P3_SNAP_USER_PTR,
	P3_EW_MD_OPTIONS = P3_EW_MD + P3_SNAP_OPTIONS, /* options:threshold */
	/* the initiator */
	P3_EW_ID,    /* pid:nid */
	P3_EW_OWNER, /* jid:uid */
	/* the event */
	P3_EW_KIND,  /* link:(unlinked, kind) */
	P3_EW_INDEX, /* portal index:ni_fail_type */
	P3_EW_WORDS
};

#define P3_EW_UNLINKED 8u /* the bit "unlinked" of P3_EW_KIND, above the kind */

_Static_assert((int)P3_EW_WORDS == P3_EVQ_WORDS, "a record has room for these words");

/* ---- writing ---- */

/* Set one word of an event that is being written, in its queue or elsewhere. */
static inline void p3_say(struct p3_event_words *rec, int i, uint64_t word)
{
	p3_release(&rec->w[i], word); /* EVQ.2 */
}

/* Set the words of the request. */
static inline void p3_say_request(struct p3_event_words *rec, uint64_t bits,
	uint64_t rlength, uint64_t mlength, uint64_t offset, uint64_t hdr)
{
	p3_say(rec, P3_EW_BITS, bits);
	p3_say(rec, P3_EW_RLENGTH, rlength);
	p3_say(rec, P3_EW_MLENGTH, mlength);
	p3_say(rec, P3_EW_OFFSET, offset);
	p3_say(rec, P3_EW_HDR, hdr);
}

/* Set the number of bytes that were moved: other than p3_say_request() expected. */
static inline void p3_say_mlength(struct p3_event_words *rec, uint64_t mlength)
{
	p3_say(rec, P3_EW_MLENGTH, mlength);
}

/* Set the words of the descriptor as it is after the operation's accounting. */
static inline void p3_say_md(struct p3_event_words *rec, const struct p3_md *md)
{
#pragma GCC unroll 5
	for (int i = 0; i < P3_SNAP_OPTIONS; i++)
		p3_say(rec, P3_EW_MD + i, md->snap[i]);
	p3_say(rec, P3_EW_MD_OPTIONS,
		md->snap[P3_SNAP_OPTIONS] | (uint32_t)md->threshold);
}

/* Set the words of the initiator: id is pid:nid, owner is jid:uid. */
static inline void p3_say_ids(struct p3_event_words *rec, uint64_t id, uint64_t owner)
{
	p3_say(rec, P3_EW_ID, id);
	p3_say(rec, P3_EW_OWNER, owner);
}

static inline void p3_say_who(
	struct p3_event_words *rec, ptl_process_id_t id, uint32_t uid, uint32_t jid)
{
	p3_say_ids(rec, p3_pair(id.pid, id.nid), p3_pair(jid, uid));
}

/* Set link, kind and portal index.  Each operation has its own link; kind 0: set
 * later. */
static inline void p3_say_what(
	struct p3_event_words *rec, uint32_t link, uint32_t pt_index, uint32_t kind)
{
	p3_say(rec, P3_EW_KIND, (uint64_t)link << 32 | kind);
	p3_say(rec, P3_EW_INDEX, (uint64_t)pt_index << 32);
}

/* Copy a record whose kind is not set, and set the kind, the failure, and the mark of
 * the descriptor's last event. */
static inline void p3_say_all(struct p3_event_words *to, const struct p3_event_words *rec,
	uint32_t kind, uint32_t fail, bool unlinked)
{
	for (int i = 0; i < P3_EW_KIND; i++)
		p3_say(to, i, p3_get(&rec->w[i]));
	uint64_t low = (uint64_t)kind | (uint64_t)unlinked << P3_EW_UNLINKED;
	p3_say(to, P3_EW_KIND, p3_get(&rec->w[P3_EW_KIND]) | low);
	p3_say(to, P3_EW_INDEX, p3_get(&rec->w[P3_EW_INDEX]) | fail);
}

/* ---- reading ---- */

/* Make an event of a record.  Each word of the record is read once and used at once,
 * since all words together would not fit the CPU's registers. */
static inline void p3_event_from_record(
	const struct p3_event_words *rec, uint64_t sequence, uint64_t eq, ptl_event_t *ev)
{
	uint64_t w = p3_acquire(&rec->w[P3_EW_KIND]); /* EVQ.2, also all that follow */
	ev->type = (ptl_event_kind_t)(w & 0xff);
	ev->link = (ptl_seq_t)(w >> 32);
	ev->unlinked = (int)(w >> P3_EW_UNLINKED & 1);
	w = p3_acquire(&rec->w[P3_EW_INDEX]);
	ev->pt_index = (uint32_t)(w >> 32);
	ev->ni_fail_type = (ptl_ni_fail_t)(uint32_t)w;
	w = p3_acquire(&rec->w[P3_EW_ID]);
	ev->initiator =
		(ptl_process_id_t){.nid = (uint32_t)w, .pid = (uint32_t)(w >> 32)};
	w = p3_acquire(&rec->w[P3_EW_OWNER]);
	ev->uid = (uint32_t)w;
	ev->jid = (uint32_t)(w >> 32);
	ev->match_bits = p3_acquire(&rec->w[P3_EW_BITS]);
	ev->rlength = p3_acquire(&rec->w[P3_EW_RLENGTH]);
	ev->mlength = p3_acquire(&rec->w[P3_EW_MLENGTH]);
	ev->offset = p3_acquire(&rec->w[P3_EW_OFFSET]);
	ev->hdr_data = p3_acquire(&rec->w[P3_EW_HDR]);
	ev->md_handle = p3_acquire(&rec->w[P3_EW_MD_HANDLE]);
	ev->md.start = (void *)(uintptr_t)p3_acquire(&rec->w[P3_EW_MD_START]);
	ev->md.length = p3_acquire(&rec->w[P3_EW_MD_LENGTH]);
	ev->md.max_size = p3_acquire(&rec->w[P3_EW_MD_MAX_SIZE]);
	ev->md.user_ptr = (void *)(uintptr_t)p3_acquire(&rec->w[P3_EW_MD_USER_PTR]);
	w = p3_acquire(&rec->w[P3_EW_MD_OPTIONS]);
	ev->md.threshold = (int32_t)(uint32_t)w;
	ev->md.options = (uint32_t)(w >> 32);
	ev->md.eq_handle = eq;
	ev->sequence = (ptl_seq_t)sequence;
}

/* Make an event of copied words. */
static inline void p3_event_from_words(
	const uint64_t w[P3_EVQ_WORDS], uint64_t sequence, uint64_t eq, ptl_event_t *ev)
{
	struct p3_event_words rec;
	for (int i = 0; i < P3_EVQ_WORDS; i++)
		p3_set(&rec.w[i], w[i]);
	p3_event_from_record(&rec, sequence, eq, ev);
}

#endif
