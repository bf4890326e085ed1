/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event - events: their records, posting, and the automatic unlinking behind the last one
 *
 * Only the lease holder calls these functions, except where a comment says (any).  A
 * record lies in its queue's ring (shm/evq.h); these functions have no other state.
 */
#ifndef P3_NIC_OBJ_EVENT_H
#define P3_NIC_OBJ_EVENT_H

#include "nic/match/match.h"
#include "nic/obj/eq.h"
#include "nic/obj/md.h"
#include "nic/report/trace.h"
#include "shm/fault.h"
#include "shm/probe.h"

/* Set one word of an event that is being written, in its queue or elsewhere. */
static inline void p3_say(struct p3_event_words *rec, int i, uint64_t word)
{
	p3_release(&rec->w[i], word); /* EVQ.2 */
}

/* Set words 5..10: the descriptor as it is after the operation's accounting. */
static inline void p3_say_md(struct p3_event_words *rec, const struct p3_md *md)
{
#pragma GCC unroll 5
	for (int i = 0; i < 5; i++)
		p3_say(rec, P3_W_MD + i, md->snap[i]);
	p3_say(rec, P3_W_MD + 5, md->snap[5] | (uint32_t)md->threshold);
}

static inline void p3_say_who(
	struct p3_event_words *rec, ptl_process_id_t id, uint32_t uid, uint32_t jid)
{
	p3_say(rec, 11, p3_pair(id.pid, id.nid));
	p3_say(rec, 12, p3_pair(jid, uid));
}

/* Set link, kind and portal index.  Each operation has its own link; kind 0: set
 * later. */
static inline void p3_say_what(
	struct p3_event_words *rec, uint32_t link, uint32_t pt_index, uint32_t kind)
{
	p3_say(rec, 13, (uint64_t)link << 32 | kind);
	p3_say(rec, 14, (uint64_t)pt_index << 32);
}

/* Return true if the descriptor enables this event; ACK and UNLINK are always enabled. */
static inline bool p3_wants(const struct p3_sink *sink, ptl_event_kind_t kind)
{
	const uint32_t starts = 1u << PTL_EVENT_GET_START | 1u << PTL_EVENT_PUT_START |
				1u << PTL_EVENT_GETPUT_START |
				1u << PTL_EVENT_REPLY_START | 1u << PTL_EVENT_SEND_START;
	const uint32_t always = 1u << PTL_EVENT_ACK | 1u << PTL_EVENT_UNLINK;
	uint32_t off = starts >> kind & 1   ? PTL_MD_EVENT_START_DISABLE
		       : always >> kind & 1 ? 0
					    : PTL_MD_EVENT_END_DISABLE;
	return !(sink->options & off);
}

/* Return the queue that an event of this kind goes to, or NULL if it is not enabled or
 * the sink has no queue. */
static inline struct p3_eq *p3_sink_for(const struct p3_sink *sink, ptl_event_kind_t kind)
{
	return p3_likely(p3_wants(sink, kind)) ? p3_sink_eq(sink) : NULL;
}

/* Begin a queue's next event; the caller writes all of it, then posts it. */
static inline struct p3_event_record *p3_event_begin(struct p3_eq *eq)
{
	struct p3_event_record *e = p3_evq_begin(&eq->tx);
	FAULT_POINT("event.begun");
	return e;
}

static inline void p3_event_post(
	struct p3_nic *n, struct p3_eq *eq, struct p3_event_record *e, uint32_t kind)
{
	FAULT_POINT("event.written");
	P3_TRACE(fw, n, P3_TRACE_EVENT, kind,
		p3_pair(eq->o.index, (uint32_t)eq->tx.tail + 1));
	p3_evq_commit(&eq->tx, e);
	FAULT_POINT("event.posted");
	P3_PROBE2(event, kind, eq->tx.tail);
	n->posted = true;
}

/* Post an event made of rec, kind and failure, if the descriptor enables it. */
void p3_fw_event(struct p3_nic *n, const struct p3_sink *sink,
	const struct p3_event_words *rec, ptl_event_kind_t kind, uint32_t fail);

/* Post the event of a completed operation on md, then unlink md automatically. */
void p3_fw_event_unlinks(struct p3_nic *n, struct p3_md *md, const struct p3_sink *sink,
	const struct p3_event_words *rec, ptl_event_kind_t kind, uint32_t fail);

/* Post the event of a completed operation on md, and unlink md if that is due. */
static inline void p3_fw_event_ends(struct p3_nic *n, struct p3_md *md,
	const struct p3_sink *sink, const struct p3_event_words *rec,
	ptl_event_kind_t kind, uint32_t fail)
{
	if (p3_fw_may_unlink(md))
		p3_fw_event_unlinks(n, md, sink, rec, kind, fail);
	else
		p3_fw_event(n, sink, rec, kind, fail);
}

/* Make an event of a record.  Each word of the record is read once and used at once,
 * since all words together would not fit the CPU's registers. */
static inline void p3_event_from_record(
	const struct p3_event_words *rec, uint64_t sequence, uint64_t eq, ptl_event_t *ev)
{
	uint64_t w = p3_acquire(&rec->w[13]); /* EVQ.2, also all that follow */
	ev->type = (ptl_event_kind_t)(w & 0xff);
	ev->link = (ptl_seq_t)(w >> 32);
	ev->unlinked = (int)(w >> 8 & 1);
	w = p3_acquire(&rec->w[14]);
	ev->pt_index = (uint32_t)(w >> 32);
	ev->ni_fail_type = (ptl_ni_fail_t)(uint32_t)w;
	w = p3_acquire(&rec->w[11]);
	ev->initiator =
		(ptl_process_id_t){.nid = (uint32_t)w, .pid = (uint32_t)(w >> 32)};
	w = p3_acquire(&rec->w[12]);
	ev->uid = (uint32_t)w;
	ev->jid = (uint32_t)(w >> 32);
	ev->match_bits = p3_acquire(&rec->w[0]);
	ev->rlength = p3_acquire(&rec->w[1]);
	ev->mlength = p3_acquire(&rec->w[2]);
	ev->offset = p3_acquire(&rec->w[3]);
	ev->hdr_data = p3_acquire(&rec->w[4]);
	ev->md_handle = p3_acquire(&rec->w[5]);
	ev->md.start = (void *)(uintptr_t)p3_acquire(&rec->w[6]);
	ev->md.length = p3_acquire(&rec->w[7]);
	ev->md.max_size = p3_acquire(&rec->w[8]);
	ev->md.user_ptr = (void *)(uintptr_t)p3_acquire(&rec->w[9]);
	w = p3_acquire(&rec->w[10]);
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
