/* SPDX-License-Identifier: BSD-3-Clause */
/* Events: posting, and the automatic unlinking that goes with the last one. */
#include "nic/obj/event.h"

#include "nic/obj/me.h"

/* Post an event; unlinked marks its descriptor's last one. */
static inline void post(struct p3_nic *n, const struct p3_sink *sink,
	const struct p3_event_words *rec, ptl_event_kind_t kind, uint32_t fail,
	bool unlinked)
{
	struct p3_eq *eq = p3_event_queue(sink, kind);
	if (!eq)
		return;
	struct p3_event_record *e = p3_event_draft(n, eq);
	p3_record_copy(&e->words, rec, (uint32_t)kind, fail, unlinked);
	p3_event_post(n, eq, e, kind);
}

void p3_event_write(struct p3_nic *n, const struct p3_sink *sink,
	const struct p3_event_words *rec, ptl_event_kind_t kind, uint32_t fail)
{
	post(n, sink, rec, kind, fail, false);
}

/* Free a descriptor before its last event is posted, so that a program that has seen
 * the event finds the room of the descriptor and its match entry free. */
static struct p3_sink drop(struct p3_nic *n, struct p3_md *md)
{
	struct p3_sink sink = md->sink;
	p3_md_cancel_unlink(md);
	p3_me_drop_md(n, md);
	return sink;
}

static void unlink_after(
	struct p3_nic *n, struct p3_md *md, const struct p3_event_words *rec)
{
	struct p3_event_words last = *rec;
	p3_record_set_md(&last, md, p3_event_high(rec, P3_EW_LINK));
	struct p3_sink sink = drop(n, md);
	post(n, &sink, &last, PTL_EVENT_UNLINK, PTL_NI_OK, true);
}

void P3_RARE p3_event_unlinks(struct p3_nic *n, struct p3_md *md,
	const struct p3_sink *sink, const struct p3_event_words *rec,
	ptl_event_kind_t kind, uint32_t fail)
{
	struct p3_sink to = *sink;
	bool over = !md->pending, silently = over && p3_md_unlinks_silently(md);
	if (silently)
		(void)drop(n, md);
	post(n, &to, rec, kind, fail, silently);
	if (!over)
		p3_md_owe_unlink(md);
	else if (!silently)
		unlink_after(n, md, rec);
}
