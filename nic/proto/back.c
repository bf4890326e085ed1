/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Responses to this node: the straight path of the initiator.
 *
 * A response takes this path if all of these conditions hold:
 *
 *	word 0		that of an ACK (P3_RSP_USUAL), or of a reply of one cell
 *	node		n->odd has none of the bits below
 *	pending		the response names a pending that waits for it, reports no
 *			failure, and has no more bytes than were requested; the pending
 *			is a short put that wants an ACK, or a get, or an exchange
 *	descriptor	the pending's descriptor has not been unlinked, has an infinite
 *			threshold, and is active; that of a reply also is one piece of
 *			memory, and has END events, but no START events
 *	queue		the descriptor's event queue lives; that of a reply may have none
 *
 * Each test comes before the first change.  If a test fails, p3_reply_take() loads the
 * words of the cell anew; the words that were loaded here are discarded.
 */
#include "nic/proto/back.h"

#include "nic/cci/answered.h"
#include "nic/obj/event.h"
#include "nic/proto/format.h"
#include "nic/proto/pending.h"
#include "nic/proto/reply.h"
#include "nic/run/odd.h"
#include "shm/variant.h"

#include <string.h>

/* Only the general path writes the records of a trace, and tells pulls which bytes are
 * overwritten. */
#define UNUSUAL (P3_ODD_TRACED | P3_ODD_PULLS | P3_ODD_GENERIC)

#define INERT   (P3_ODD_THRESHOLD | P3_ODD_INACTIVE)

/* ---- tests ---- */

/* Find the pending of a response, and the response's length.  Return NULL if the response
 * is not usual. */
static P3_HOT struct p3_pending *find(struct p3_nic *n, const struct p3_peer *p,
	const struct p3_cell *c, uint64_t *length_out)
{
	uint64_t w = p3_format_get(c, P3_RESPONSE_PENDING);
	uint64_t length = p3_format_get(c, P3_RESPONSE_LENGTH);
	if (p3_unlikely(
		    w >> 32 || n->odd & UNUSUAL)) /* the status is in the upper half */
		return NULL;
	struct p3_pending *t = p3_pending_named(n, p, (uint32_t)w);
	*length_out = length;
	return p3_likely(t && t->md && !t->is_long && length <= t->move.length) ? t
										: NULL;
}

/* Return the descriptor of a response, or NULL if it has been unlinked, or has one of
 * these bits of enum p3_md_odd. */
static P3_HOT struct p3_md *usual_md(const struct p3_pending *t, uint32_t odd)
{
	struct p3_md *md = t->md;
	return p3_likely(p3_pending_md_lives(t) && !(md->odd & odd)) ? md : NULL;
}

/* ---- steps ---- */

static P3_HOT void post(struct p3_nic *n, const struct p3_peer *p,
	const struct p3_pending *t, struct p3_eq *eq, uint64_t length,
	ptl_event_kind_t kind)
{
	const struct p3_answerer by = {{p->nid, t->move.target.pid}, p->uid, p->jid};
	struct p3_event_record *e = p3_event_begin(eq);
	p3_pending_describe_answer(
		&t->move, t->md, &by, length, n->next_link, (uint32_t)kind, &e->words);
	p3_event_show(eq, e, (uint32_t)kind);
	n->posted |= eq->news;
}

/* Free the pending, and the cell of its response. */
static P3_HOT bool end(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t)
{
	uint32_t cells = t->rsp_cells;
	n->next_link++;
	n->worked = true;
	p3_pending_give(n, t);
	FAULT_POINT("response.handled");
	p3_ring_take_now(&p->rsp_in, 1);
	p->rsp_used -= cells;
	return true;
}

static P3_HOT bool acknowledge(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c)
{
	uint64_t length;
	struct p3_pending *t = find(n, p, c, &length);
	if (p3_unlikely(!t || t->kind != P3_REQ_PUT || !t->move.ack))
		return p3_reply_take(n, p);
	struct p3_md *md = usual_md(t, INERT);
	struct p3_eq *eq = p3_likely(md != NULL) ? p3_eq_of_sink(&md->sink) : NULL;
	if (p3_unlikely(!eq))
		return p3_reply_take(n, p);
	post(n, p, t, eq, length, PTL_EVENT_ACK);
	return end(n, p, t);
}

/* Write the bytes of a reply that fit the descriptor as it is now.  Return their
 * number. */
static P3_HOT uint64_t deposit(const struct p3_md *md, const struct p3_pending *t,
	const struct p3_cell *c, uint64_t length)
{
	uint64_t offset = t->move.offset, size = md->region.size;
	uint64_t space = p3_likely(size > offset) ? size - offset : 0;
	char *to = p3_region_address(md->region.start, offset);
	if (p3_unlikely(length > space))
		length = space;
	if (p3_likely(length == 8))
		memcpy(to, p3_reply_bytes(c), 8);
	else
		p3_region_copy_few(to, p3_reply_bytes(c), length);
	return length;
}

/* Take a reply of one cell. */
P3_PATH
static __attribute__((noinline)) bool take_reply(struct p3_nic *n, struct p3_peer *p)
{
	uint64_t length;
	const struct p3_cell *c = p->rsp_in.next;
	struct p3_pending *t = find(n, p, c, &length);
	if (p3_unlikely(!t || t->kind == P3_REQ_PUT || length > P3_RSP_INLINE))
		return p3_reply_take(n, p);
	struct p3_md *md =
		usual_md(t, INERT | P3_ODD_IOVEC | P3_ODD_STARTS | P3_ODD_ENDS);
	if (p3_unlikely(!md))
		return p3_reply_take(n, p);
	struct p3_eq *eq = p3_eq_of_sink(&md->sink);
	length = deposit(md, t, c, length);
	if (p3_likely(eq != NULL))
		post(n, p, t, eq, length, PTL_EVENT_REPLY_END);
	return end(n, p, t);
}

P3_PATH
bool p3_back_take(struct p3_nic *n, struct p3_peer *p)
{
	const struct p3_cell *c = p->rsp_in.next;
	const uint64_t reply = p3_word0(P3_RSP_ACK ^ P3_RSP_REPLY, 0, 0),
		       cci = p3_word0(P3_RSP_ACK ^ P3_RSP_CCI, 0, 0);
	uint64_t other = p3_acquire(&c->w[0]) ^ p->rsp_in.usual; /* LANE.1 */
	if (p3_unlikely(!p3_straight()))
		return p3_reply_take(n, p);
	if (p3_likely(!other))
		return acknowledge(n, p, c);
	if (p3_likely(other == reply))
		return take_reply(n, p);
	if (other == cci && !(n->odd & P3_ODD_TRACED) &&
		p3_cci_answered_straight(n, p, c))
		return true;
	return p3_reply_take(n, p);
}
