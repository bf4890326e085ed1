/* SPDX-License-Identifier: BSD-3-Clause */
/* Pendings: requests of this node from their admission to their end. */
#include "nic/proto/pending.h"

#include "nic/obj/obj.h"
#include "nic/proto/copy.h"
#include "nic/report/report.h"
#include "nic/run/run.h"
#include "nic/xfer/xfer.h"

struct p3_pending *p3_pending_alloc(struct p3_nic *n, struct p3_peer *p, uint32_t kind,
	const struct p3_move *m, struct p3_md *md)
{
	struct p3_pending *t = p3_table_alloc(&n->table[P3_T_PENDING]);
	if (!t)
		return NULL;
	p3_obj_born(&t->o);
	t->kind = (uint8_t)kind;
	t->ni = (uint8_t)md->o.ni;
	t->peer = p;
	t->state = P3_PEND_QUEUED;
	t->md = md;
	t->md_name = p3_get(&md->o.name);
	t->move = *m;
	t->is_long = false;
	t->xfer = NULL;
	t->rsp_cells = 0;
	t->send.md = NULL;
	t->copy = NULL;
	return t;
}

void p3_pending_start(struct p3_nic *n, struct p3_pending *t)
{
	if (t->send.md)
		p3_span_start(n, &t->send, PTL_EVENT_SEND_START);
	FAULT_POINT("request.started");
}

void p3_pending_end(struct p3_nic *n, struct p3_pending *t, uint32_t fail)
{
	if (fail)
		p3_record_set_mlength(&t->send.rec, 0);
	p3_span_end(n, &t->send, PTL_EVENT_SEND_END, fail);
	t->send.md = NULL; /* the send is over: no other function has to end it */
}

/* ---- copies of the bytes of short puts ---- */

/* Return the counter of copies that have not left, for copies that are addressed to
 * this peer. */
static p3_a32 *copies_for(struct p3_nic *n, const struct p3_peer *p)
{
	return p3_pending_is_held(n, p) ? &n->promised : &n->leaving;
}

bool p3_pending_take_over(struct p3_nic *n, struct p3_pending *t)
{
	uint64_t len = t->move.length;
	p3_a32 *copies = copies_for(n, t->peer);
	t->copy = p3_copy_alloc(n, t->peer, len);
	if (!t->copy)
		return false;
	p3_region_read(&t->send.region, t->send.offset, t->copy, len);
	/* Before SEND_END: a thread that takes the event may look at once (LEAVE.1). */
	p3_set(copies, p3_get(copies) + 1);
	FAULT_POINT("request.copied");
	if (p3_pending_is_held(n, t->peer))
		p3_pending_start(n, t);
	p3_pending_end(n, t, PTL_NI_OK);
	t->send.region = (struct p3_region){.start = t->copy, .size = len};
	t->send.offset = 0;
	return true;
}

void p3_pending_copy_out(struct p3_nic *n, struct p3_pending *t)
{
	if (t->send.md && p3_pending_is_short(t) && t->peer->state == P3_LIVE)
		(void)p3_pending_take_over(n, t);
}

void p3_pending_drop_copy(struct p3_nic *n, struct p3_pending *t)
{
	p3_a32 *copies = copies_for(n, t->peer);
	p3_copy_free(n, t->peer, t->copy);
	t->copy = NULL;
	p3_release(copies, p3_get(copies) - 1); /* LEAVE.1 */
}

void p3_pending_readdress_copy(struct p3_nic *n, struct p3_pending *t, struct p3_peer *p)
{
	p3_a32 *before = copies_for(n, t->peer), *copies = copies_for(n, p);
	p3_copy_readdress(n, t->peer, p, t->copy);
	p3_set(copies, p3_get(copies) + 1);
	p3_release(before, p3_get(before) - 1); /* LEAVE.1 */
}

void p3_pending_free(struct p3_nic *n, struct p3_pending *t)
{
	if (t->copy)
		p3_pending_drop_copy(n, t);
	p3_list_del(&t->link);
	if (t->state == P3_PEND_QUEUED)
		t->peer->nqueued--;
	else
		t->peer->nout--;
	if (t->xfer)
		p3_xfer_free(n, t->xfer);
	t->xfer = NULL;
	if (t->md)
		p3_ni_use_less(&n->ni[t->ni], P3_U_OP);
	p3_table_release(&n->table[P3_T_PENDING], &t->o);
}

/* ---- ends ---- */

void p3_pending_reply_fails(struct p3_nic *n, const struct p3_move *m, struct p3_md *md,
	const struct p3_peer *p)
{
	struct p3_event_words rec;
	const struct p3_answerer by = {
		m->target, p ? p->uid : PTL_UID_ANY, p ? p->jid : PTL_JID_ANY};
	p3_match_threshold(md);
	p3_pending_describe_answer(m, md, &by, 0, n->next_link++, 0, &rec);
	p3_event_write(n, &md->sink, &rec, PTL_EVENT_REPLY_START, PTL_NI_OK);
	p3_event_ends(n, md, &md->sink, &rec, PTL_EVENT_REPLY_END, PTL_NI_FAIL);
}

void p3_pending_release(struct p3_nic *n, struct p3_pending *t, uint32_t fail)
{
	struct p3_xfer_slot *x = t->xfer;
	t->xfer = NULL;
	p3_set(&x->pub->status, fail ? UINT64_MAX : 0);
	FAULT_POINT("release.filled");
	p3_release(&x->pub->released, p3_xfer_name(x)); /* XFER.3 */
	FAULT_POINT("release.published");
	x->releasing = true;
	p3_list_add(&n->sources, &x->link);
	p3_odd_set(n, P3_ODD_SOURCES);
	p3_looks_add(n, x->peer);
}

void p3_pending_end_get(struct p3_nic *n, struct p3_pull *pull, uint32_t fail)
{
	struct p3_pending *t = pull->get;
	struct p3_span span = pull->span;
	p3_pending_release(n, t, fail);
	if (fail)
		p3_record_set_mlength(&span.rec, 0);
	if (span.md)
		p3_span_end(n, &span, PTL_EVENT_REPLY_END, fail);
	p3_pending_free(n, t);
}

void p3_pending_fail(struct p3_nic *n, struct p3_pending *t, bool died)
{
	uint32_t fail = died ? PTL_NI_FAIL : PTL_NI_OK;
	if (!t->md) {
		p3_pending_free(n, t);
		return;
	}
	p3_why_nowhere(n, t->peer, t->kind, &t->move);
	if (p3_pending_is_held(n, t->peer))
		p3_pending_start(n, t);
	if (t->send.md)
		p3_pending_end(n, t, fail);
	else if (t->kind != P3_REQ_PUT && died && p3_pending_md_lives(t))
		p3_pending_reply_fails(n, &t->move, t->md, t->peer);
	p3_pending_free(n, t);
}
