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

/*
 * The words, in the order of ptl_event_t's members: a reader copies the first 14 of them
 * straight into the event, together with its padding.  "a:b" is a word with a in the
 * upper half and b in the lower half.
 */
enum p3_event_word {
	P3_EW_KIND, /* initiator's nid:kind */
	P3_EW_PID,  /* initiator's uid:pid */
	P3_EW_JID,  /* portal index:initiator's jid */
	P3_EW_BITS, /* match bits */
	P3_EW_RLENGTH,
	P3_EW_MLENGTH,
	P3_EW_OFFSET,
	P3_EW_MD_HANDLE,
	P3_EW_MD,                  /* struct p3_md_words, with values in its padding: */
	P3_EW_LINK = P3_EW_MD + 2, /* link:threshold */
	P3_EW_FAIL = P3_EW_MD + 4, /* (unlinked, ni_fail_type):options */
	P3_EW_HDR = P3_EW_MD + 6,  /* hdr_data */
	P3_EW_WORDS
};

#define P3_EW_UNLINKED 16u /* the bit "unlinked" above ni_fail_type */

_Static_assert((int)P3_EW_WORDS == P3_EVQ_WORDS, "a record has room for these words");
_Static_assert(sizeof(struct p3_md_words) == 8 * (P3_EW_HDR - P3_EW_MD), "six words");

#define P3_EW_LOW(word, member)  (offsetof(ptl_event_t, member) == 8 * (word))
#define P3_EW_HIGH(word, member) (offsetof(ptl_event_t, member) == 8 * (word) + 4)

_Static_assert(
	P3_EW_LOW(P3_EW_KIND, type) && P3_EW_HIGH(P3_EW_KIND, initiator.nid) &&
		P3_EW_LOW(P3_EW_PID, initiator.pid) && P3_EW_HIGH(P3_EW_PID, uid) &&
		P3_EW_LOW(P3_EW_JID, jid) && P3_EW_HIGH(P3_EW_JID, pt_index) &&
		P3_EW_LOW(P3_EW_BITS, match_bits) && P3_EW_LOW(P3_EW_RLENGTH, rlength) &&
		P3_EW_LOW(P3_EW_MLENGTH, mlength) && P3_EW_LOW(P3_EW_OFFSET, offset) &&
		P3_EW_LOW(P3_EW_MD_HANDLE, md_handle) && P3_EW_LOW(P3_EW_MD, md),
	"a word of a record is a word of the event");

/* ---- writing ---- */

/* Set one word of an event that is being written, in its queue or elsewhere. */
static inline void p3_record_set(struct p3_event_words *rec, int i, uint64_t word)
{
	p3_release(&rec->w[i], word); /* EVQ.2 */
}

/* Set two words; i is even. */
static inline void p3_record_set_pair(
	struct p3_event_words *rec, int i, const void *words)
{
	p3_release_pair(&rec->w[i], words); /* EVQ.2 */
}

static inline void p3_record_set_halves(
	struct p3_event_words *rec, int i, uint32_t high, uint32_t low)
{
	p3_release_halves(&rec->w[i], high, low); /* EVQ.2 */
}

/* Set the words of the request. */
static inline void p3_record_set_request(struct p3_event_words *rec, uint64_t bits,
	uint64_t rlength, uint64_t mlength, uint64_t offset, uint64_t hdr)
{
	p3_record_set(rec, P3_EW_BITS, bits);
	p3_record_set(rec, P3_EW_RLENGTH, rlength);
	p3_record_set(rec, P3_EW_MLENGTH, mlength);
	p3_record_set(rec, P3_EW_OFFSET, offset);
	p3_record_set(rec, P3_EW_HDR, hdr);
}

/* Set the number of bytes that were moved, if it is not the one of the request. */
static inline void p3_record_set_mlength(struct p3_event_words *rec, uint64_t mlength)
{
	p3_record_set(rec, P3_EW_MLENGTH, mlength);
}

/* Set the words of the descriptor as it is after the operation's accounting, and the
 * operation's link; each operation has its own. */
static inline void p3_record_set_md(
	struct p3_event_words *rec, const struct p3_md *md, uint32_t link)
{
	const char *words = (const char *)&md->words;
	p3_record_set(rec, P3_EW_MD_HANDLE, p3_get(&md->o.name));
#pragma GCC unroll 3
	for (int i = 0; i < P3_EW_HDR - P3_EW_MD; i += 2)
		p3_record_set_pair(rec, P3_EW_MD + i, words + 8 * i);
	p3_release_high(&rec->w[P3_EW_LINK], link); /* EVQ.2 */
}

/* Set the words of the initiator (id is pid:nid, owner is jid:uid), the portal index, and
 * the kind.  Kind 0: p3_record_copy() sets it later. */
static inline void p3_record_set_ids(struct p3_event_words *rec, uint32_t kind,
	uint64_t id, uint64_t owner, uint32_t pt_index)
{
	p3_record_set_halves(rec, P3_EW_KIND, (uint32_t)id, kind);
	p3_record_set_halves(rec, P3_EW_PID, (uint32_t)owner, (uint32_t)(id >> 32));
	p3_record_set_halves(rec, P3_EW_JID, pt_index, (uint32_t)(owner >> 32));
}

static inline void p3_record_set_initiator(struct p3_event_words *rec, uint32_t kind,
	ptl_process_id_t id, uint32_t uid, uint32_t jid, uint32_t pt_index)
{
	p3_record_set_halves(rec, P3_EW_KIND, id.nid, kind);
	p3_record_set_halves(rec, P3_EW_PID, uid, id.pid);
	p3_record_set_halves(rec, P3_EW_JID, pt_index, jid);
}

/* Copy a record whose kind is not set, and set the kind, the failure, and the mark of
 * the descriptor's last event. */
static inline void p3_record_copy(struct p3_event_words *to,
	const struct p3_event_words *rec, uint32_t kind, uint32_t fail, bool unlinked)
{
	uint32_t high = fail | (uint32_t)unlinked << P3_EW_UNLINKED;
	p3_record_set(to, P3_EW_KIND, p3_get(&rec->w[P3_EW_KIND]) | kind);
	p3_record_set(to, P3_EW_PID, p3_get(&rec->w[P3_EW_PID]));
#pragma GCC unroll 6
	for (int i = P3_EW_JID; i < P3_EW_HDR; i += 2)
		p3_record_set_pair(to, i, &rec->w[i]);
	p3_record_set(to, P3_EW_HDR, p3_get(&rec->w[P3_EW_HDR]));
	if (p3_unlikely(high))
		p3_release_high(&to->w[P3_EW_FAIL], high); /* EVQ.2 */
}

/* ---- reading ---- */

/* Return the upper half of a word. */
static inline uint32_t p3_event_high(const struct p3_event_words *rec, int i)
{
	return p3_acquire_high(&rec->w[i]); /* EVQ.2 */
}

/* Make an event of a record, whose words may change meanwhile (p3_evq_took). */
static inline void p3_event_from_record(
	const struct p3_event_words *rec, uint64_t sequence, uint64_t eq, ptl_event_t *ev)
{
#pragma GCC unroll 7
	for (int i = 0; i < P3_EW_HDR; i += 2)
		p3_acquire_pair((char *)ev + 8 * i, &rec->w[i]); /* EVQ.2 */
	ev->hdr_data = p3_acquire(&rec->w[P3_EW_HDR]);           /* EVQ.2 */
	uint32_t fail = p3_event_high(rec, P3_EW_FAIL);
	ev->ni_fail_type = fail & 0xffff;
	ev->unlinked = (int)(fail >> P3_EW_UNLINKED);
	ev->link = p3_event_high(rec, P3_EW_LINK);
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
