/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event - events: posting, and the automatic unlinking behind the last one
 *
 * Only the lease holder calls these functions.  A record lies in its queue's ring
 * (shm/evq.h); these functions have no other state.
 */
#ifndef P3_NIC_OBJ_EVENT_H
#define P3_NIC_OBJ_EVENT_H

#include "nic/generic/queue.h"
#include "nic/match/match.h"
#include "nic/obj/eq.h"
#include "nic/obj/record.h"
#include "nic/obj/md.h"
#include "nic/report/trace.h"
#include "shm/fault.h"
#include "shm/trace.h"

/* Return true if the descriptor enables this event; ACK and UNLINK are always enabled. */
static inline bool p3_event_is_wanted(const struct p3_sink *sink, ptl_event_kind_t kind)
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
static inline struct p3_eq *p3_event_queue(
	const struct p3_sink *sink, ptl_event_kind_t kind)
{
	return p3_likely(p3_event_is_wanted(sink, kind)) ? p3_eq_of_sink(sink) : NULL;
}

/* Begin a queue's next event; the caller writes all of it, then posts it. */
static inline struct p3_event_record *p3_event_begin(struct p3_eq *eq)
{
	struct p3_event_record *e = p3_evq_begin(&eq->tx);
	FAULT_POINT("event.begun");
	return e;
}

/* Do as p3_event_begin(), or begin an entry of the generic event queue, if events go
 * there.  Only p3_event_post() ends it. */
static inline struct p3_event_record *p3_event_draft(struct p3_nic *n, struct p3_eq *eq)
{
	return p3_unlikely(n->staging) ? p3_generic_draft(n) : p3_event_begin(eq);
}

/* Make an event visible, while the trace is off; the caller looks for threads to wake. */
static P3_HOT void p3_event_show(
	struct p3_eq *eq, struct p3_event_record *e, uint32_t kind)
{
	FAULT_POINT("event.written");
	p3_evq_commit(&eq->tx, e);
	FAULT_POINT("event.posted");
	P3_PROBE2(event, kind, eq->tx.tail);
}

/* Post the event that p3_event_draft() has begun. */
static P3_HOT void p3_event_post(
	struct p3_nic *n, struct p3_eq *eq, struct p3_event_record *e, uint32_t kind)
{
	if (p3_unlikely(n->staging)) {
		p3_generic_stage(n, eq, kind);
		return;
	}
	P3_TRACE(fw, n, P3_TRACE_EVENT, kind,
		p3_pair(p3_obj_index(&eq->o), (uint32_t)eq->tx.tail + 1));
	p3_event_show(eq, e, kind);
	n->posted |= eq->news;
}

/* Post an event made of rec, kind and failure, if the descriptor enables it. */
void p3_event_write(struct p3_nic *n, const struct p3_sink *sink,
	const struct p3_event_words *rec, ptl_event_kind_t kind, uint32_t fail);

/* Post the event of a completed operation on md, then unlink md automatically. */
void p3_event_unlinks(struct p3_nic *n, struct p3_md *md, const struct p3_sink *sink,
	const struct p3_event_words *rec, ptl_event_kind_t kind, uint32_t fail);

/* Post the event of a completed operation on md, and unlink md if that is due. */
static inline void p3_event_ends(struct p3_nic *n, struct p3_md *md,
	const struct p3_sink *sink, const struct p3_event_words *rec,
	ptl_event_kind_t kind, uint32_t fail)
{
	if (p3_match_may_unlink(md))
		p3_event_unlinks(n, md, sink, rec, kind, fail);
	else
		p3_event_write(n, sink, rec, kind, fail);
}

#endif
