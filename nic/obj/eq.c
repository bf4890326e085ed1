/* SPDX-License-Identifier: BSD-3-Clause */
/* Event queues, events, and operations on a descriptor from START to END. */
#include "nic/obj/obj.h"
#include "nic/report/report.h"
#include "nic/run/evfd.h"

int p3_eq_alloc(struct p3_nic *n, struct p3_cmd *c)
{
	if (!p3_ni_is(n, c->ni, c->handle))
		return PTL_NI_INVALID;
	int rc = p3_obj_room(n, P3_T_EQ, c->ni);
	if (rc != PTL_OK)
		return rc;
	struct p3_eq *eq = p3_obj_new(n, P3_T_EQ, c->ni);
	eq->n = c->eq.n;
	eq->owed = 0;
	p3_set(&eq->evfd, 0);
	p3_set(&eq->handler, c->eq.handler);
	p3_evq_format(c->eq.ring, c->eq.n, c->eq.start, &eq->tx, &eq->rx);
	eq->nic = n;
	eq->tx.on_lost = p3_why_lost;
	c->handle_out = p3_obj_next_name(&eq->o);
	eq->news = p3_news_of_queue(c->handle_out);
	p3_release(&eq->rx.name, c->handle_out); /* EVQ.5 */
	p3_obj_born(&eq->o);
	p3_mirror_queue(n, eq);
	return PTL_OK;
}

void p3_eq_kill(struct p3_nic *n, struct p3_eq *eq, struct p3_eq **dead)
{
	p3_ni_use_less(p3_ni_of(n, &eq->o), P3_U_EQ);
	eq->life++;
	p3_table_kill(&n->table[P3_T_EQ], &eq->o);
	p3_mirror_no_queue(n, eq);
	eq->next_dead = *dead;
	*dead = eq;
}

int p3_eq_free(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_eq *eq = p3_eq_named(n, c->handle);
	if (!eq)
		return PTL_EQ_INVALID;
	c->eq.dead = NULL;
	p3_eq_kill(n, eq, &c->eq.dead);
	n->posted |= eq->news; /* threads that wait for its events must look */
	return PTL_OK;
}

int p3_eq_reclaim(struct p3_nic *n, struct p3_cmd *c)
{
	for (struct p3_eq *eq = c->eq.dead, *next; eq; eq = next) {
		next = eq->next_dead;
		p3_table_link(&n->table[P3_T_EQ], &eq->o);
	}
	return PTL_OK;
}

int p3_eq_watch(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_eq *eq = p3_eq_named(n, c->handle);
	if (!eq)
		return PTL_EQ_INVALID;
	uint32_t has = p3_get(&eq->evfd);
	p3_evfd_adopt(n);
	if (!has)
		p3_release(&eq->evfd, c->flag); /* EVFD.1: light is false */
	else
		c->flag = has;
	return PTL_OK;
}

/* ---- events ---- */

/* Post an event; unlinked marks its descriptor's last one. */
static inline void event_post(struct p3_nic *n, const struct p3_sink *sink,
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
	event_post(n, sink, rec, kind, fail, false);
}

/* Free a descriptor before its last event is posted, so that a program that has seen
 * the event finds the room of the descriptor and its match entry free. */
static struct p3_sink event_drop_md(struct p3_nic *n, struct p3_md *md)
{
	struct p3_sink sink = md->sink;
	p3_md_cancel_unlink(md);
	p3_me_drop_md(n, md);
	return sink;
}

void P3_RARE p3_event_unlinks(struct p3_nic *n, struct p3_md *md,
	const struct p3_sink *sink, const struct p3_event_words *rec,
	ptl_event_kind_t kind, uint32_t fail)
{
	struct p3_sink to = *sink;
	bool over = !md->pending, silently = over && p3_md_unlinks_silently(md);
	if (silently)
		(void)event_drop_md(n, md);
	event_post(n, &to, rec, kind, fail, silently);
	if (!over) {
		p3_md_owe_unlink(md);
	} else if (!silently) {
		struct p3_event_words last = *rec;
		p3_record_set_md(&last, md, p3_event_high(rec, P3_EW_LINK));
		to = event_drop_md(n, md);
		event_post(n, &to, &last, PTL_EVENT_UNLINK, PTL_NI_OK, true);
	}
}

/* ---- operations ---- */

void p3_span_begin(struct p3_span *span, struct p3_md *md, uint64_t offset)
{
	span->md = md;
	span->sink = md->sink;
	span->region = md->region;
	span->offset = offset;
	md->pending++;
	struct p3_eq *eq = p3_eq_of_sink(&span->sink);
	span->owed = eq && (p3_event_is_wanted(&span->sink, PTL_EVENT_SEND_END) ||
				   p3_event_is_wanted(&span->sink, PTL_EVENT_SEND_START));
	if (span->owed)
		eq->owed++;
	if (span->region.iov)
		span->region.iov->refs++;
	if (md->exhausted && md->unlink)
		p3_md_owe_unlink(md);
}

static void span_pay(struct p3_span *span)
{
	struct p3_eq *eq = p3_eq_of_sink(&span->sink);
	if (eq && span->owed)
		eq->owed--;
	span->owed = false;
}

void p3_span_start(struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind)
{
	p3_event_write(n, &span->sink, &span->rec, kind, PTL_NI_OK);
	if (!p3_event_is_wanted(&span->sink, PTL_EVENT_SEND_END))
		span_pay(span);
}

void p3_span_forget(struct p3_span *span)
{
	p3_md_drop_iov(span->region.iov);
	span->md = NULL;
	span->region = (struct p3_region){0};
}

void p3_span_end(
	struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind, uint32_t fail)
{
	struct p3_md *md = span->md;
	span_pay(span);
	md->pending--;
	p3_md_drop_iov(span->region.iov);
	p3_event_ends(n, md, &span->sink, &span->rec, kind, fail);
}
