/* SPDX-License-Identifier: BSD-3-Clause */
/* Event records: built by the firmware, taken apart by the host. */
#include "nic/fw.h"

#include <string.h>

/* Words 5..10: the descriptor as it is after the operation's accounting. */
void p3_rec_snap(struct p3_rec *rec, const struct p3_md *md)
{
	memcpy(&rec->w[P3_W_MD], md->snap, sizeof md->snap);
	rec->w[P3_W_MD + 5] |= (uint32_t)md->threshold;
}

void p3_rec_who(struct p3_rec *rec, ptl_process_id_t id, uint32_t uid, uint32_t jid)
{
	rec->w[11] = (uint64_t)id.pid << 32 | id.nid;
	rec->w[12] = (uint64_t)jid << 32 | uid;
}

/* A link of its own for this operation. */
void p3_rec_link(struct p3_nic *n, struct p3_rec *rec, uint32_t pt_index)
{
	rec->w[13] = (uint64_t)n->next_link++ << 32;
	rec->w[14] = (uint64_t)pt_index << 32;
}

struct p3_eq *p3_sink_eq(const struct p3_sink *sink)
{
	return sink->eq && p3_lives(&sink->eq->o, sink->eq_gen) ? sink->eq : NULL;
}

static bool is_start(ptl_event_kind_t kind)
{
	return kind == PTL_EVENT_GET_START || kind == PTL_EVENT_PUT_START ||
	       kind == PTL_EVENT_GETPUT_START || kind == PTL_EVENT_REPLY_START ||
	       kind == PTL_EVENT_SEND_START;
}

static bool is_wanted(const struct p3_sink *sink, ptl_event_kind_t kind)
{
	uint32_t off = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;
	if (__builtin_expect(!(sink->options & off), 1))
		return true;
	if (kind == PTL_EVENT_ACK || kind == PTL_EVENT_UNLINK)
		return true;
	return !(sink->options & (is_start(kind) ? PTL_MD_EVENT_START_DISABLE
						 : PTL_MD_EVENT_END_DISABLE));
}

void p3_fw_event(struct p3_nic *n, const struct p3_sink *sink, const struct p3_rec *rec,
	ptl_event_kind_t kind, uint32_t fail)
{
	struct p3_eq *eq = p3_sink_eq(sink);
	if (!eq || !is_wanted(sink, kind))
		return;
	struct p3_event_record *e = p3_evq_begin(&eq->tx);
	for (int i = 0; i < 13; i++)
		p3_release(&e->w[i], rec->w[i]); /* EVQ.2 */
	uint64_t unlinked = kind == PTL_EVENT_UNLINK;
	p3_release(&e->w[13], rec->w[13] | (uint64_t)kind | unlinked << 8); /* EVQ.2 */
	p3_release(&e->w[14], rec->w[14] | fail);                           /* EVQ.2 */
	p3_evq_commit(&eq->tx, e);
	P3_PROBE2(event, kind, eq->tx.tail);
	n->posted = true;
}

/* ---- operations ---- */

void p3_md_owe_unlink(struct p3_md *md)
{
	struct p3_eq *eq = p3_sink_eq(&md->sink);
	if (!eq || md->owes_unlink)
		return;
	md->owes_unlink = true;
	eq->owed++;
}

void p3_md_forgive_unlink(struct p3_md *md)
{
	struct p3_eq *eq = p3_sink_eq(&md->sink);
	if (eq && md->owes_unlink)
		eq->owed--;
	md->owes_unlink = false;
}

void p3_span_begin(struct p3_span *span, struct p3_md *md, uint64_t offset)
{
	span->md = md;
	span->sink = md->sink;
	span->region = md->region;
	span->offset = offset;
	md->pending++;
	struct p3_eq *eq = p3_sink_eq(&span->sink);
	span->owed = eq && (is_wanted(&span->sink, PTL_EVENT_SEND_END) ||
				   is_wanted(&span->sink, PTL_EVENT_SEND_START));
	if (span->owed)
		eq->owed++;
	if (span->region.iov)
		span->region.iov->refs++;
	if (md->exhausted && md->unlink)
		p3_md_owe_unlink(md);
}

static void pay(struct p3_span *span)
{
	struct p3_eq *eq = p3_sink_eq(&span->sink);
	if (eq && span->owed)
		eq->owed--;
	span->owed = false;
}

void p3_span_start(struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind)
{
	p3_fw_event(n, &span->sink, &span->rec, kind, PTL_NI_OK);
	if (!is_wanted(&span->sink, PTL_EVENT_SEND_END))
		pay(span);
}

void p3_span_forget(struct p3_span *span)
{
	p3_iov_drop(span->region.iov);
	span->md = NULL;
	span->region = (struct p3_region){0};
}

void p3_span_end(
	struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind, uint32_t fail)
{
	struct p3_md *md = span->md;
	pay(span);
	p3_fw_event(n, &span->sink, &span->rec, kind, fail);
	md->pending--;
	p3_iov_drop(span->region.iov);
	p3_fw_maybe_unlink(n, md, &span->rec);
}

void p3_event_from_record(
	const uint64_t w[P3_EVQ_WORDS], uint64_t sequence, uint64_t eq, ptl_event_t *ev)
{
	*ev = (ptl_event_t){
		.type = (ptl_event_kind_t)(w[13] & 0xff),
		.initiator = {.nid = (uint32_t)w[11], .pid = (uint32_t)(w[11] >> 32)},
		.uid = (uint32_t)w[12],
		.jid = (uint32_t)(w[12] >> 32),
		.pt_index = (uint32_t)(w[14] >> 32),
		.match_bits = w[0],
		.rlength = w[1],
		.mlength = w[2],
		.offset = w[3],
		.md_handle = w[5],
		.md = {.start = (void *)(uintptr_t)w[6],
			.length = w[7],
			.threshold = (int32_t)(uint32_t)w[10],
			.max_size = w[8],
			.options = (uint32_t)(w[10] >> 32),
			.user_ptr = (void *)(uintptr_t)w[9],
			.eq_handle = eq},
		.hdr_data = w[4],
		.link = (ptl_seq_t)(w[13] >> 32),
		.ni_fail_type = (ptl_ni_fail_t)(uint32_t)w[14],
		.unlinked = (int)(w[13] >> 8 & 1),
		.sequence = (ptl_seq_t)sequence,
	};
}
