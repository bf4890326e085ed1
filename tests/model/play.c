/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a program by library and model, and comparing. */
#include "model/play.h"

#include "model/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_BIT(i) (1u << (i))

/* ---- disagreements ---- */

__attribute__((format(printf, 2, 3))) static void say(
	struct play *p, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(p->text + p->at, sizeof p->text - p->at, fmt, ap);
	va_end(ap);
	if (n > 0)
		p->at += (size_t)n;
	if (p->at >= sizeof p->text)
		p->at = sizeof p->text - 1;
	p->differs = true;
}

static void say_codes(struct play *p, const char *call, uint32_t codes, int rc)
{
	say(p, "%s: library %s, model", call, PtlErrorStr((unsigned)rc));
	for (unsigned c = 0; c < PTL_MAX_ERRNO; c++)
		if (codes & M_CODE(c))
			say(p, " %s", PtlErrorStr(c));
	if (!codes)
		say(p, " another choice");
	say(p, "\n");
}

static void count(struct play *p, const struct m_op *op, int rc)
{
	bool good = rc == PTL_OK || rc == PTL_EQ_DROPPED;
	p->ok[op->kind] += good;
	p->failed[op->kind] += !good;
	p->lost += rc == PTL_EQ_DROPPED;
}

static void check_code(struct play *p, const char *call, uint32_t codes, int rc)
{
	if (rc < 0 || rc >= PTL_MAX_ERRNO || !(codes & M_CODE(rc)))
		say_codes(p, call, codes, rc);
}

static void check_number(struct play *p, const char *what, uint64_t is, uint64_t want)
{
	if (is != want)
		say(p, "%s: library %" PRIu64 ", model %" PRIu64 "\n", what, is, want);
}

/* ---- handles ---- */

static uint64_t odd_handle(const struct play *p, unsigned node, struct m_ref r)
{
	switch (r.how) {
	case M_NONE:
		return PTL_EQ_NONE;
	case M_ZERO:
		return 0;
	case M_OTHER_KIND:
		return p->net.ni[node];
	default:
		return PTL_INVALID_HANDLE;
	}
}

static uint64_t eq_handle(const struct play *p, unsigned node, struct m_ref r)
{
	return r.how == M_SLOT ? p->queue[node][r.slot % M_EQS].handle
			       : odd_handle(p, node, r);
}

static uint64_t me_handle(const struct play *p, unsigned node, struct m_ref r)
{
	return r.how == M_SLOT ? p->me[node][r.slot % M_MES] : odd_handle(p, node, r);
}

static uint64_t md_handle(const struct play *p, unsigned node, struct m_ref r)
{
	return r.how == M_SLOT ? p->md[node][r.slot % M_MDS] : odd_handle(p, node, r);
}

static uint64_t ni_handle(const struct play *p, const struct m_op *op)
{
	return op->ni_fault ? PTL_INVALID_HANDLE : p->net.ni[op->node];
}

static ptl_process_id_t id_of(const struct play *p, unsigned nid, unsigned pid)
{
	ptl_process_id_t id = {9999, 999};
	if (nid < p->net.n)
		id.nid = p->net.id[nid].nid;
	if (pid < p->net.n)
		id.pid = p->net.id[pid].pid;
	if (nid == M_ANY)
		id.nid = PTL_NID_ANY;
	if (pid == M_ANY)
		id.pid = PTL_PID_ANY;
	return id;
}

/* ---- events ---- */

static ptl_event_t handled;
static unsigned handled_n;

static void handler(ptl_event_t *ev)
{
	handled = *ev;
	handled_n++;
}

static const ptl_seq_t *link_of(const struct play_queue *q, uint32_t class)
{
	unsigned n = q->nlinks < PLAY_LINKS ? q->nlinks : PLAY_LINKS;
	for (unsigned i = 1; i <= n; i++)
		if (q->link[(q->nlinks - i) % PLAY_LINKS].class == class)
			return &q->link[(q->nlinks - i) % PLAY_LINKS].link;
	return NULL;
}

static bool link_is_used(const struct play_queue *q, ptl_seq_t link)
{
	unsigned n = q->nlinks < PLAY_LINKS ? q->nlinks : PLAY_LINKS;
	for (unsigned i = 1; i <= n; i++)
		if (q->link[(q->nlinks - i) % PLAY_LINKS].link == link)
			return true;
	return false;
}

static bool link_fits(const struct play_queue *q, uint32_t class, ptl_seq_t link)
{
	const ptl_seq_t *known = link_of(q, class);
	return known ? *known == link : !link_is_used(q, link);
}

static void note_link(struct play_queue *q, uint32_t class, ptl_seq_t link)
{
	if (link_of(q, class))
		return;
	unsigned i = q->nlinks++ % PLAY_LINKS;
	q->link[i].class = class;
	q->link[i].link = link;
}

static bool same_snap(const ptl_md_t *is, const ptl_md_t *want, ptl_handle_eq_t eq)
{
	return is->start == want->start && is->length == want->length &&
	       is->threshold == want->threshold && is->max_size == want->max_size &&
	       is->options == want->options && is->user_ptr == want->user_ptr &&
	       is->eq_handle == eq;
}

/* Compare the bytes moved.  An operation with a process that does not exist may begin
 * before the library knows that: then its START has all of them. */
static bool same_mlength(const ptl_event_t *is, const struct m_event *want)
{
	bool begins = want->type == PTL_EVENT_SEND_START && want->mlength == 0;
	return is->mlength == want->mlength || (begins && is->mlength == want->rlength);
}

/* Compare all members except type, link and sequence. */
static bool same_fields(const struct play *p, ptl_handle_eq_t eq, const ptl_event_t *is,
	const struct m_event *want)
{
	ptl_process_id_t id = id_of(p, want->initiator, want->initiator);
	bool nobody = want->initiator == M_OTHER;
	return is->initiator.nid == id.nid && is->initiator.pid == id.pid &&
	       is->pt_index == want->pt && is->match_bits == want->bits &&
	       is->rlength == want->rlength && same_mlength(is, want) &&
	       (nobody || (is->uid == p->net.uid && is->jid == p->net.jid)) &&
	       is->offset == want->offset && is->hdr_data == want->hdr &&
	       is->md_handle == p->md_of[want->md] &&
	       (is->ni_fail_type != PTL_NI_OK) == want->fail &&
	       same_snap(&is->md, &want->snap, eq);
}

/* Return the cause of an UNLINK: with other operations under way each may be the last
 * one. */
static const struct m_event *cause_of_unlink(const struct play *p,
	const struct play_queue *q, const ptl_event_t *is, const struct m_event *want)
{
	const struct model *m = p->model;
	uint32_t n = m->ncauses < M_CAUSES ? m->ncauses : M_CAUSES;
	if (!want->burst)
		return NULL;
	for (uint32_t i = 1; i <= n; i++) {
		const struct m_event *c = &m->cause[(m->ncauses - i) % M_CAUSES];
		struct m_event as = *c;
		as.snap.threshold = want->snap.threshold; /* the final value */
		if (c->batch == want->batch && c->md == want->md &&
			same_fields(p, q->handle, is, &as) &&
			link_fits(q, c->class, is->link))
			return c;
	}
	return NULL;
}

static const struct m_event *fits(const struct play *p, const struct play_queue *q,
	const ptl_event_t *is, const struct m_event *want)
{
	if (is->type != want->type ||
		(is->unlinked != 0) != (is->type == PTL_EVENT_UNLINK))
		return NULL;
	if (same_fields(p, q->handle, is, want) && link_fits(q, want->class, is->link))
		return want;
	return is->type == PTL_EVENT_UNLINK ? cause_of_unlink(p, q, is, want) : NULL;
}

/* Find the positions of the batch that position "at" belongs to. */
static void batch_of(const struct m_eq *eq, uint64_t at, uint64_t *from, uint64_t *to)
{
	uint32_t batch = eq->ring[at % M_RING].batch;
	*from = *to = at;
	while (*from > 0 && eq->written - (*from - 1) <= M_RING &&
		eq->ring[(*from - 1) % M_RING].batch == batch)
		--*from;
	while (*to < eq->written && eq->ring[*to % M_RING].batch == batch)
		++*to;
}

/* Return true if this event comes after one that must follow it. */
static bool comes_late(
	const struct m_eq *eq, uint64_t from, uint64_t to, const struct m_event *ev)
{
	for (uint64_t i = from; i < to; i++) {
		const struct m_event *other = &eq->ring[i % M_RING];
		if (other->taken && m_event_before(ev, other))
			return true;
	}
	return false;
}

static void say_event(struct play *p, const struct m_eq *eq, const ptl_event_t *is,
	uint64_t from, uint64_t to)
{
	char text[800];
	show_event(text, sizeof text, is);
	say(p, "library: %s\nmodel, in an order like this:\n", text);
	for (uint64_t i = from; i < to; i++) {
		const struct m_event *ev = &eq->ring[i % M_RING];
		ptl_process_id_t id = id_of(p, ev->initiator, ev->initiator);
		show_expected(text, sizeof text, ev, &id, p->md_of[ev->md]);
		say(p, "     %s: %s\n", ev->taken ? "had" : "   ", text);
	}
}

static void check_handler(struct play *p, const struct m_eq *eq, const ptl_event_t *is)
{
	if (handled_n != (eq->has_handler ? 1u : 0u))
		say(p, "the handler was called %u times\n", handled_n);
	else if (handled_n &&
		 (handled.sequence != is->sequence || handled.type != is->type ||
			 handled.link != is->link))
		say(p, "the handler saw another event\n");
}

/*
 * Check that lost events are older than all remaining ones.  In a burst this is not
 * visible: events may be alike.
 */
static void check_lost(struct play *p, const struct m_eq *eq, uint64_t from, uint64_t to)
{
	uint64_t lost = to;
	while (lost > from && eq->ring[(lost - 1) % M_RING].read)
		lost--;
	if (lost == from || eq->ring[from % M_RING].burst)
		return;
	for (uint64_t i = from; i < to; i++)
		for (uint64_t k = from; k < to; k++) {
			const struct m_event *had = &eq->ring[i % M_RING];
			const struct m_event *not = &eq->ring[k % M_RING];
			if (had->taken && had->place >= lost && !not ->taken &&
				m_event_before(had, not )) {
				say(p, "an event was lost, an older one not\n");
				return;
			}
		}
}

static void check_sequence(
	struct play *p, struct play_queue *q, uint64_t at, ptl_seq_t is)
{
	if (!q->based)
		q->base = is - (ptl_seq_t)at;
	q->based = true;
	check_number(p, "sequence", is, (ptl_seq_t)(q->base + at));
}

static void check_event(struct play *p, struct m_eq *eq, struct play_queue *q,
	const ptl_event_t *is, bool take)
{
	uint64_t from, to, at = m_eq_oldest(eq);
	struct m_event *found = NULL;
	const struct m_event *as = NULL;
	batch_of(eq, at, &from, &to);
	for (uint64_t i = from; i < to && !as; i++) {
		found = &eq->ring[i % M_RING];
		if (!found->taken && !comes_late(eq, from, to, found))
			as = fits(p, q, is, found);
	}
	if (!as) {
		say_event(p, eq, is, from, to);
		return;
	}
	check_sequence(p, q, at, is->sequence);
	if (!take)
		return;
	note_link(q, as->class, is->link);
	found->taken = true;
	p->events++;
	p->unlinks += is->type == PTL_EVENT_UNLINK;
	found->place = at;
	eq->ring[at % M_RING].read = true;
	eq->read = at + 1;
	if (eq->read == to)
		check_lost(p, eq, from, to);
}

static bool has_event(int rc)
{
	return rc == PTL_OK || rc == PTL_EQ_DROPPED;
}

/* ---- rest and comparison ---- */

static void compare_memory(struct play *p, unsigned node, uint32_t at, uint32_t len)
{
	const unsigned char *is = p->memory[node][0] + at,
			    *want = p->memory[node][1] + at;
	if (memcmp(is, want, len) == 0)
		return;
	uint32_t i = 0;
	while (is[i] == want[i])
		i++;
	say(p, "memory of node %u at %u: library %#x, model %#x\n", node, at + i, is[i],
		want[i]);
}

static void look_at_memory(struct play *p)
{
	struct model *m = p->model;
	for (unsigned i = 0; i < m->ntouch; i++) {
		const struct m_touch *t = &m->touch[i];
		if (!t->write)
			continue;
		if (p->undefined)
			memcpy(p->memory[t->node][1] + t->at,
				p->memory[t->node][0] + t->at, t->len);
		else
			compare_memory(p, t->node, t->at, t->len);
	}
}

static void look_at_drops(struct play *p)
{
	for (unsigned i = 0; i < p->model->n; i++)
		if (p->out & NODE_BIT(i)) {
			uint64_t is = net_drops(&p->net, i) - p->drops[i];
			if (is != p->model->node[i].drops)
				say(p, "node %u: ", i);
			check_number(p, "drop count", is, p->model->node[i].drops);
		}
}

/* Wait until no operation is under way. */
static void settle(struct play *p)
{
	if (!net_settle(&p->net, p->out))
		say(p, "the library does not come to rest\n");
}

static void rest(struct play *p)
{
	if (!p->out)
		return;
	settle(p);
	look_at_memory(p);
	look_at_drops(p);
	p->out = 0;
	p->undefined = false;
}

static void pause_all(struct play *p)
{
	rest(p);
	model_pause(p->model);
}

/* ---- bursts: calls without a pause ---- */

static bool is_move(const struct m_op *op)
{
	return op->kind == M_PUT || op->kind == M_GET || op->kind == M_GETPUT;
}

/* Return true if operations under way do not change the descriptor's state. */
static bool is_steady(struct model *m, unsigned node, struct m_ref r)
{
	struct m_md *md = m_md(m, node, r);
	return md && !md->me && md->given.threshold == PTL_MD_THRESH_INF;
}

static bool may_join(struct play *p, const struct m_op *op)
{
	if (!is_move(op) || op->target >= M_NODES ||
		!is_steady(p->model, op->node, op->md))
		return false;
	return op->kind != M_GETPUT || is_steady(p->model, op->node, op->md2);
}

static bool overlap(const struct m_touch *a, const struct m_touch *b)
{
	return a->node == b->node && (a->write || b->write) && a->at < b->at + b->len &&
	       b->at < a->at + a->len;
}

/* Return true if the call whose touches begin at first overlaps an operation under
 * way. */
static bool meets(const struct model *m, unsigned first)
{
	for (unsigned i = 0; i < first; i++)
		for (unsigned k = first; k < m->ntouch; k++)
			if (overlap(&m->touch[i], &m->touch[k]))
				return true;
	return m->ntouch == M_TOUCHES;
}

static bool meets_itself(const struct model *m, unsigned first)
{
	for (unsigned i = first; i < m->ntouch; i++)
		for (unsigned k = first; k < m->ntouch; k++)
			if (m->touch[i].remote != m->touch[k].remote &&
				overlap(&m->touch[i], &m->touch[k]))
				return true;
	return false;
}

/* ---- calls ---- */

static void fill_iov(struct play *p, const struct m_op *op, unsigned slot)
{
	const struct m_md_arg *a = &op->arg;
	ptl_md_iovec_t *v = p->model->node[op->node].iov[slot];
	for (unsigned i = 0; i < M_IOVS; i++) {
		v[i].iov_base =
			i < a->nseg ? p->memory[op->node][0] + a->seg[i].at : NULL;
		v[i].iov_len = i < a->nseg ? a->seg[i].len : 0;
	}
	if (a->fault == M_MD_IOV_NULL)
		v[0] = (ptl_md_iovec_t){NULL, 1};
	if (a->fault == M_MD_WRAPS)
		v[0].iov_len = UINT64_MAX;
}

static ptl_md_t md_arg(struct play *p, const struct m_op *op, unsigned slot)
{
	ptl_md_t md = model_md(p->model, op->node, slot % M_MDS, &op->arg);
	fill_iov(p, op, slot % M_MDS);
	md.eq_handle = eq_handle(p, op->node, op->arg.eq);
	return md;
}

static void scribble_iov(struct play *p, const struct m_op *op, unsigned slot)
{
	memset(p->model->node[op->node].iov[slot % M_MDS], 0x5a,
		sizeof(ptl_md_iovec_t) * M_IOVS);
}

static ptl_ins_pos_t position(const struct m_op *op)
{
	return op->before ? PTL_INS_BEFORE : PTL_INS_AFTER;
}

static ptl_unlink_t unlink_op(bool unlink)
{
	return unlink ? PTL_UNLINK : PTL_RETAIN;
}

static int call_me(struct play *p, struct m_op *op)
{
	ptl_process_id_t id = id_of(p, op->id_nid, op->id_pid);
	ptl_unlink_t u = unlink_op(op->me_unlink);
	ptl_handle_me_t me = 0;
	ptl_pt_index_t pt = 0;
	int rc;
	if (op->kind == M_ME_ATTACH)
		rc = PtlMEAttach(ni_handle(p, op), op->pt, id, op->bits, op->ignore, u,
			position(op), &me);
	else if (op->kind == M_ME_INSERT)
		rc = PtlMEInsert(me_handle(p, op->node, op->me), id, op->bits, op->ignore,
			u, position(op), &me);
	else {
		rc = PtlMEAttachAny(
			ni_handle(p, op), &pt, id, op->bits, op->ignore, u, &me);
		op->pt = pt;
	}
	if (rc == PTL_OK)
		p->me[op->node][op->slot % M_MES] = me;
	return rc;
}

static int call_md(struct play *p, const struct m_op *op)
{
	ptl_md_t md = md_arg(p, op, op->slot);
	ptl_handle_md_t h = 0;
	int rc;
	if (op->kind == M_MD_BIND)
		rc = PtlMDBind(ni_handle(p, op), md, unlink_op(op->md_unlink), &h);
	else
		rc = PtlMDAttach(
			me_handle(p, op->node, op->me), md, unlink_op(op->md_unlink), &h);
	scribble_iov(p, op, op->slot);
	if (rc == PTL_OK)
		p->md[op->node][op->slot % M_MDS] = h;
	return rc;
}

static int call_memd(struct play *p, const struct m_op *op)
{
	ptl_process_id_t id = id_of(p, op->id_nid, op->id_pid);
	ptl_unlink_t me_u = unlink_op(op->me_unlink), md_u = unlink_op(op->md_unlink);
	ptl_handle_me_t base = me_handle(p, op->node, op->me), me = 0;
	ptl_handle_md_t md = 0;
	ptl_md_t arg = md_arg(p, op, op->slot2);
	int rc;
	if (op->kind == M_MEMD_ATTACH)
		rc = PtlMEMDAttach(ni_handle(p, op), op->pt, id, op->bits, op->ignore,
			me_u, position(op), arg, md_u, &me, &md);
	else if (op->kind == M_MEMD_INSERT)
		rc = PtlMEMDInsert(base, id, op->bits, op->ignore, me_u, position(op),
			arg, md_u, &me, &md);
	else
		rc = PtlMEMDPost(ni_handle(p, op), base, id, op->bits, op->ignore, me_u,
			position(op), arg, md_u, &me, &md,
			eq_handle(p, op->node, op->eq));
	scribble_iov(p, op, op->slot2);
	if (rc == PTL_OK) {
		p->me[op->node][op->slot % M_MES] = me;
		p->md[op->node][op->slot2 % M_MDS] = md;
	}
	return rc;
}

static int call_put(struct play *p, const struct m_op *op)
{
	ptl_handle_md_t md = md_handle(p, op->node, op->md);
	ptl_ack_req_t ack = op->ack ? PTL_ACK_REQ : PTL_NO_ACK_REQ;
	ptl_process_id_t id = id_of(p, op->target, op->target);
	if (op->region)
		return PtlPutRegion(md, op->local_offset, op->length, ack, id, op->pt,
			op->ac, op->bits, op->remote_offset, op->hdr);
	return PtlPut(md, ack, id, op->pt, op->ac, op->bits, op->remote_offset, op->hdr);
}

static int call_get(struct play *p, const struct m_op *op)
{
	ptl_handle_md_t md = md_handle(p, op->node, op->md);
	ptl_process_id_t id = id_of(p, op->target, op->target);
	if (op->region)
		return PtlGetRegion(md, op->local_offset, op->length, id, op->pt, op->ac,
			op->bits, op->remote_offset);
	return PtlGet(md, id, op->pt, op->ac, op->bits, op->remote_offset);
}

static int call_getput(struct play *p, const struct m_op *op)
{
	ptl_handle_md_t md = md_handle(p, op->node, op->md);
	ptl_handle_md_t md2 = md_handle(p, op->node, op->md2);
	ptl_process_id_t id = id_of(p, op->target, op->target);
	if (op->region)
		return PtlGetPutRegion(md, op->local_offset, md2, op->local_offset2,
			op->length, id, op->pt, op->ac, op->bits, op->remote_offset,
			op->hdr);
	return PtlGetPut(
		md, md2, id, op->pt, op->ac, op->bits, op->remote_offset, op->hdr);
}

static int call_ac(struct play *p, const struct m_op *op)
{
	ptl_uid_t uid = PTL_UID_ANY;
	ptl_jid_t jid = PTL_JID_ANY;
	if (op->id_uid != M_ANY) {
		PtlGetUid(p->net.ni[op->node], &uid);
		uid += op->id_uid == M_OTHER;
	}
	if (op->id_jid != M_ANY) {
		PtlGetJid(p->net.ni[op->node], &jid);
		jid += op->id_jid == M_OTHER;
	}
	return PtlACEntry(ni_handle(p, op), op->ac, id_of(p, op->id_nid, op->id_pid), uid,
		jid, op->pt);
}

static int call_eq_alloc(struct play *p, const struct m_op *op)
{
	struct play_queue *q = &p->queue[op->node][op->slot % M_EQS];
	ptl_handle_eq_t h = 0;
	int rc = PtlEQAlloc(ni_handle(p, op), op->count,
		op->handler ? handler : PTL_EQ_HANDLER_NONE, &h);
	if (rc != PTL_OK)
		return rc;
	if (op->count == 0 && h != PTL_EQ_NONE)
		say(p, "a queue of no events has a handle\n");
	if (op->count)
		*q = (struct play_queue){.handle = h};
	return rc;
}

/* ---- operations ---- */

static int simple_call(struct play *p, struct m_op *op)
{
	switch (op->kind) {
	case M_EQ_ALLOC:
		return call_eq_alloc(p, op);
	case M_EQ_FREE:
		return PtlEQFree(eq_handle(p, op->node, op->eq));
	case M_ME_ATTACH:
	case M_ME_INSERT:
		return call_me(p, op);
	case M_ME_UNLINK:
		return PtlMEUnlink(me_handle(p, op->node, op->me));
	case M_MD_ATTACH:
	case M_MD_BIND:
		return call_md(p, op);
	case M_MD_UNLINK:
		return PtlMDUnlink(md_handle(p, op->node, op->md));
	case M_MEMD_ATTACH:
	case M_MEMD_INSERT:
	case M_MEMD_POST:
		return call_memd(p, op);
	case M_PUT:
		return call_put(p, op);
	case M_GET:
		return call_get(p, op);
	case M_GETPUT:
		return call_getput(p, op);
	default:
		return call_ac(p, op);
	}
}

/* Note a new descriptor's number; numbers follow the order of creation. */
static void note_md(struct play *p, const struct m_op *op)
{
	unsigned slot =
		op->kind == M_MD_ATTACH || op->kind == M_MD_BIND ? op->slot : op->slot2;
	struct m_md *md = &p->model->node[op->node].md[slot % M_MDS];
	p->md_of[md->number] = p->md[op->node][slot % M_MDS];
}

static bool makes_md(const struct m_op *op)
{
	return op->kind == M_MD_ATTACH || op->kind == M_MD_BIND ||
	       op->kind == M_MEMD_ATTACH || op->kind == M_MEMD_INSERT ||
	       op->kind == M_MEMD_POST;
}

static void do_simple(struct play *p, struct m_op *op)
{
	uint32_t codes;
	int rc;
	if (op->kind == M_ME_ATTACH_ANY) {
		rc = call_me(p, op); /* it returns the portal index */
		codes = model_call(p->model, op);
	} else {
		codes = model_call(p->model, op);
		rc = simple_call(p, op);
	}
	count(p, op, rc);
	check_code(p, show_kind(op), codes, rc);
	if (!p->differs && rc == PTL_OK && makes_md(op))
		note_md(p, op);
}

static void count_touches(struct play *p, const struct m_op *op, unsigned first)
{
	bool far = false;
	for (unsigned i = first; i < p->model->ntouch; i++) {
		far = far || p->model->touch[i].remote;
		p->longs += p->model->touch[i].len >= 5000 && p->model->touch[i].remote;
	}
	(void)op;
	p->accepted += far;
}

static void do_move(struct play *p, struct m_op *op)
{
	struct model *m = p->model;
	unsigned first = m->ntouch;
	uint32_t codes = model_call(m, op);
	/* The model is a call ahead here: its result is compared afterwards. */
	if (p->out && meets(m, first))
		settle(p);
	int rc = simple_call(p, op);
	count(p, op, rc);
	check_code(p, show_kind(op), codes, rc);
	if (rc != PTL_OK)
		return;
	p->out_from = op->node;
	p->out_to = op->target;
	p->out |= NODE_BIT(op->node);
	if (op->target < M_NODES)
		p->out |= NODE_BIT(op->target);
	p->undefined = meets_itself(m, first);
	p->bursts += m->in_burst;
	count_touches(p, op, first);
}

static void check_old_md(struct play *p, const struct m_op *op, const ptl_md_t *is,
	const struct m_md *was, const ptl_md_iovec_t *iov)
{
	ptl_md_t want = was->given;
	struct m_eq *eq = m_md_eq(was);
	ptl_handle_eq_t h = is->eq_handle; /* of a freed queue: unknown */
	if (eq)
		h = p->queue[op->node][eq - p->model->node[op->node].eq].handle;
	else if (!was->eq)
		h = PTL_EQ_NONE;
	want.threshold = was->threshold;
	if (!same_snap(is, &want, h))
		say(p,
			"old_md: library start %p length %" PRIu64
			" threshold %d max_size "
			"%" PRIu64 " options %#x, model %p %" PRIu64 " %d %" PRIu64
			" %#x\n",
			is->start, is->length, is->threshold, is->max_size, is->options,
			want.start, want.length, want.threshold, want.max_size,
			want.options);
	for (unsigned i = 0; iov && i < was->region.n; i++)
		if (iov[i].iov_len != was->region.seg[i].len)
			say(p, "element %u of old_md is wrong\n", i);
}

static void do_update(struct play *p, struct m_op *op)
{
	ptl_md_iovec_t iov[M_IOVS];
	ptl_md_t old = {.length = 4711}, new = md_arg(p, op, op->md.slot);
	struct m_md *md = m_md(p->model, op->node, op->md);
	struct m_md was = md ? *md : (struct m_md){0};
	bool ask = op->before;
	if (ask) {
		old.options = PTL_MD_IOVEC;
		old.start = iov;
		old.length = M_IOVS;
	}
	uint32_t codes = model_call(p->model, op);
	int rc = PtlMDUpdate(md_handle(p, op->node, op->md), &old, op->keep ? NULL : &new,
		eq_handle(p, op->node, op->eq));
	scribble_iov(p, op, op->md.slot);
	count(p, op, rc);
	check_code(p, show_kind(op), codes, rc);
	if (!p->differs && (rc == PTL_OK || rc == PTL_MD_NO_UPDATE))
		check_old_md(p, op, &old, &was,
			ask && was.given.options & PTL_MD_IOVEC ? iov : NULL);
}

static struct m_eq *queue(struct play *p, const struct m_op *op, struct m_ref r)
{
	return m_eq(p->model, op->node, r);
}

static void do_get(struct play *p, struct m_op *op)
{
	ptl_handle_eq_t h = eq_handle(p, op->node, op->eq);
	for (uint32_t i = 0; i < op->count && !p->differs; i++) {
		ptl_event_t ev;
		uint32_t codes = model_call(p->model, op);
		handled_n = 0;
		int rc = PtlEQGet(h, &ev);
		p->calls++;
		count(p, op, rc);
		check_code(p, show_kind(op), codes, rc);
		if (p->differs || !has_event(rc)) {
			if (has_event(rc))
				say_event(p, NULL, &ev, 0, 0);
			return;
		}
		struct m_eq *eq = queue(p, op, op->eq);
		check_handler(p, eq, &ev);
		check_event(p, eq, &p->queue[op->node][op->eq.slot % M_EQS], &ev, true);
	}
}

static void do_peek(struct play *p, struct m_op *op)
{
	ptl_event_t ev;
	uint32_t codes = model_call(p->model, op);
	handled_n = 0;
	int rc = PtlEQPeek(eq_handle(p, op->node, op->eq), &ev);
	count(p, op, rc);
	check_code(p, show_kind(op), codes, rc);
	if (handled_n)
		say(p, "PtlEQPeek called the handler\n");
	if (!p->differs && has_event(rc))
		check_event(p, queue(p, op, op->eq),
			&p->queue[op->node][op->eq.slot % M_EQS], &ev, false);
}

static void do_poll(struct play *p, struct m_op *op)
{
	ptl_handle_eq_t h[M_POLLS];
	ptl_event_t ev;
	int which = -1;
	for (unsigned i = 0; i < op->npoll; i++)
		h[i] = eq_handle(p, op->node, op->poll[i]);
	uint32_t codes = model_call(p->model, op);
	handled_n = 0;
	int rc = PtlEQPoll(h, op->npoll, 0, &ev, &which);
	count(p, op, rc);
	check_code(p, show_kind(op), codes, rc);
	if (p->differs || !has_event(rc))
		return;
	if (which < 0 || which >= op->npoll) {
		say(p, "which_eq is %d\n", which);
		return;
	}
	struct m_op one = *op;
	one.eq = op->poll[which];
	one.kind = M_EQ_GET;
	check_code(p, "PtlEQPoll of the queue it chose", model_call(p->model, &one), rc);
	if (p->differs)
		return;
	check_handler(p, queue(p, op, one.eq), &ev);
	check_event(p, queue(p, op, one.eq), &p->queue[op->node][one.eq.slot % M_EQS],
		&ev, true);
}

static void do_status(struct play *p, struct m_op *op)
{
	ptl_sr_value_t value = -1;
	int rc = PtlNIStatus(ni_handle(p, op), PTL_SR_DROP_COUNT, &value);
	check_code(p, show_kind(op), model_call(p->model, op), rc);
	if (!p->differs && rc == PTL_OK)
		check_number(p, "PTL_SR_DROP_COUNT", (uint64_t)value - p->drops[op->node],
			p->model->node[op->node].drops);
}

static void do_handle(struct play *p, struct m_op *op)
{
	ptl_handle_ni_t ni = 0;
	ptl_handle_md_t md = md_handle(p, op->node, op->md);
	if (op->md.how == M_OTHER_KIND)
		return;
	int rc = PtlNIHandle(md, &ni);
	check_code(p, show_kind(op), model_call(p->model, op), rc);
	if (!p->differs && rc == PTL_OK)
		check_number(p, "interface", ni, p->net.ni[op->node]);
	check_code(p, "PtlHandleIsEqual", M_CODE(PTL_OK), PtlHandleIsEqual(md, md));
	check_code(p, "PtlHandleIsEqual", M_CODE(PTL_FAIL),
		PtlHandleIsEqual(md, p->net.ni[op->node]));
}

static void do_store(struct play *p, struct m_op *op)
{
	(void)model_call(p->model, op);
	memcpy(p->memory[op->node][0] + op->at, p->memory[op->node][1] + op->at,
		op->length);
	net_wrote(&p->net, op->node, p->memory[op->node][0] + op->at, op->length);
}

static void do_op(struct play *p, struct m_op *op)
{
	switch (op->kind) {
	case M_PUT:
	case M_GET:
	case M_GETPUT:
		do_move(p, op);
		break;
	case M_MD_UPDATE:
		do_update(p, op);
		break;
	case M_EQ_GET:
		do_get(p, op);
		break;
	case M_EQ_PEEK:
		do_peek(p, op);
		break;
	case M_EQ_POLL:
		do_poll(p, op);
		break;
	case M_STATUS:
		do_status(p, op);
		break;
	case M_HANDLE:
		do_handle(p, op);
		break;
	case M_STORE:
		do_store(p, op);
		break;
	default:
		do_simple(p, op);
	}
}

int play_library(struct play *p, struct m_op *op, ptl_event_t *ev)
{
	if (op->kind == M_EQ_GET)
		return PtlEQGet(eq_handle(p, op->node, op->eq), ev);
	if (op->kind != M_MD_UPDATE)
		return simple_call(p, op);
	ptl_md_t new = md_arg(p, op, op->md.slot);
	return PtlMDUpdate(md_handle(p, op->node, op->md), NULL, &new,
		eq_handle(p, op->node, op->eq));
}

void play_model(struct play *p, const struct m_op *op, int rc, const ptl_event_t *ev)
{
	check_code(p, show_kind(op), model_call(p->model, op), rc);
	if (p->differs)
		return;
	if (rc == PTL_OK && makes_md(op))
		note_md(p, op);
	if (op->kind == M_EQ_GET && has_event(rc))
		check_event(p, queue(p, op, op->eq),
			&p->queue[op->node][op->eq.slot % M_EQS], ev, true);
}

bool play_op(struct play *p, struct m_op *op)
{
	bool joins = may_join(p, op);
	if (model_skips(p->model, op))
		return true;
	if (p->out && (!joins || p->out_from != op->node || p->out_to != op->target))
		pause_all(p);
	if (!p->out)
		model_pause(p->model);
	bool stays = joins && op->burst;
	p->model->in_burst = p->out != 0 || stays;
	net_enter(&p->net, op->node);
	if (!p->differs)
		do_op(p, op);
	p->calls++;
	if (!stays || p->undefined || p->differs)
		pause_all(p);
	return !p->differs;
}

/* ---- begin and end of a program ---- */

static void set_ac(struct play *p, unsigned node, uint32_t ac)
{
	struct m_op op = {.kind = M_AC_ENTRY,
		.node = (uint8_t)node,
		.ac = ac,
		.id_nid = M_ANY,
		.id_pid = M_ANY,
		.id_jid = M_ANY,
		.pt = PTL_PT_INDEX_ANY};
	play_op(p, &op);
}

static void begin_node(struct play *p, unsigned i)
{
	struct m_node *n = &p->model->node[i];
	n->limits = p->net.limits[i];
	n->id = p->net.id[i];
	n->lib_memory = p->memory[i][0];
	n->memory = p->memory[i][1];
	p->drops[i] = net_drops(&p->net, i);
	for (unsigned k = 0; k < M_EQS; k++)
		p->queue[i][k] = (struct play_queue){.handle = PTL_INVALID_HANDLE};
	for (unsigned k = 0; k < M_MES; k++)
		p->me[i][k] = PTL_INVALID_HANDLE;
	for (unsigned k = 0; k < M_MDS; k++)
		p->md[i][k] = PTL_INVALID_HANDLE;
}

static void admit(struct m_node *n)
{
	for (int ac = 0; ac < n->limits.max_ac_index; ac++)
		n->ac[ac] = (struct m_ac){.valid = true,
			.id_nid = M_ANY,
			.id_pid = M_ANY,
			.id_jid = M_ANY,
			.pt = PTL_PT_INDEX_ANY};
}

void play_restart(struct play *p)
{
	p->differs = false;
	p->at = 0;
	p->text[0] = 0;
	model_reset(p->model);
	for (unsigned i = 0; i < p->model->n; i++) {
		admit(&p->model->node[i]);
		for (unsigned k = 0; k < M_EQS; k++) {
			p->queue[i][k].based = false;
			p->queue[i][k].nlinks = 0;
		}
	}
}

void play_begin(struct play *p, unsigned nodes)
{
	p->differs = false;
	p->at = 0;
	p->text[0] = 0;
	p->out = 0;
	p->undefined = false;
	p->model->n = nodes;
	model_reset(p->model);
	for (unsigned i = 0; i < nodes; i++)
		begin_node(p, i);
	for (unsigned i = 0; i < nodes; i++)
		for (uint32_t ac = 0; (int)ac < p->net.limits[i].max_ac_index; ac++)
			set_ac(p, i, ac); /* the last entry was never set */
}

static void end_node(struct play *p, unsigned i)
{
	for (uint8_t k = 0; k < M_EQS; k++) {
		struct m_op op = {.kind = M_EQ_GET,
			.node = (uint8_t)i,
			.count = M_RING,
			.eq = {M_SLOT, k}};
		if (!m_eq(p->model, i, op.eq))
			continue;
		play_op(p, &op);
		op.kind = M_EQ_FREE;
		play_op(p, &op);
	}
	for (uint8_t k = 0; k < M_MES; k++) {
		struct m_op op = {
			.kind = M_ME_UNLINK, .node = (uint8_t)i, .me = {M_SLOT, k}};
		if (m_me(p->model, i, op.me))
			play_op(p, &op);
	}
	for (uint8_t k = 0; k < M_MDS; k++) {
		struct m_op op = {
			.kind = M_MD_UNLINK, .node = (uint8_t)i, .md = {M_SLOT, k}};
		if (m_md(p->model, i, op.md))
			play_op(p, &op);
	}
	compare_memory(p, i, 0, M_ARENA);
}

bool play_end(struct play *p)
{
	pause_all(p);
	for (unsigned i = 0; i < p->model->n && !p->differs; i++)
		end_node(p, i);
	return !p->differs;
}

/* ---- nodes ---- */

static void fill(struct play *p)
{
	uint64_t x = 88172645463325252u;
	for (unsigned i = 0; i < M_NODES; i++)
		for (uint32_t k = 0; k < M_ARENA; k++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			p->memory[i][0][k] = p->memory[i][1][k] = (unsigned char)x;
		}
	for (unsigned i = 0; i < M_NODES; i++)
		net_wrote(&p->net, i, p->memory[i][0], M_ARENA);
}

/* Set small limits in some programs, so that room runs out. */
static void limits(struct play *p)
{
	for (unsigned i = 0; i < M_NODES; i++)
		p->net.limits[i] = (ptl_ni_limits_t){
			.max_mes = i == 1 ? 12 : 26,
			.max_mds = i == 2 ? 16 : 38,
			.max_eqs = i == 3 ? 3 : 7,
			.max_ac_index = 4,
			.max_pt_index = 63,
			.max_md_iovecs = 16,
			.max_me_list = i == 0 ? 7 : 24,
			.max_getput_md = i == 1 ? 8 : 256,
		};
}

void play_init(struct play *p)
{
	p->model = net_memory(sizeof *p->model);
	if (!p->model)
		abort();
	for (unsigned i = 0; i < M_NODES; i++)
		for (unsigned k = 0; k < 2; k++) {
			p->memory[i][k] = net_memory(M_ARENA);
			if (!p->memory[i][k])
				abort();
		}
	for (unsigned i = 0; i < M_NODES; i++)
		p->net.arena[i] = p->memory[i][0];
	play_renew(p);
}

void play_renew(struct play *p)
{
	if (p->up)
		net_down(&p->net);
	limits(p);
	net_up(&p->net, M_NODES);
	p->up = true;
	fill(p);
}

void play_fini(struct play *p)
{
	net_down(&p->net);
	for (unsigned i = 0; i < M_NODES; i++)
		for (unsigned k = 0; k < 2; k++)
			net_free(p->memory[i][k]);
	net_free(p->model);
}
