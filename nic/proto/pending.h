/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending - requests of this node from their admission to their end
 *
 * A pending (struct p3_pending) belongs to one peer at a time: it waits in that peer's
 * queue until there is room for it, then in outstanding until the response comes.  A
 * long get stays a pending until all its bytes have been pulled.  A put that leaves at
 * once and wants no response needs no pending.
 *
 * Only the lease holder calls these functions.  The state is the table of pendings, the
 * queues of the peers, and the counters n->leaving and n->promised, which any thread
 * reads.
 */
#ifndef P3_NIC_PROTO_PENDING_H
#define P3_NIC_PROTO_PENDING_H

#include "nic/obj/obj.h"
#include "nic/proto/copy.h"
#include "nic/state.h"
#include "shm/footprint.h"

/* Return true if p is a pseudo-peer, whose queue holds requests to targets that have yet
 * to join.  Such a request has no SEND event before its target joins, unless its bytes
 * are copied: a program may take SEND_END as a sign that the message has left. */
static inline bool p3_pending_is_held(const struct p3_nic *n, const struct p3_peer *p)
{
	return p == &n->unresolved || p == &n->absent;
}

/* Return true if the pending's bytes may be copied. */
static inline bool p3_pending_is_short(const struct p3_pending *t)
{
	return t->kind != P3_REQ_GET && t->move.length <= P3_SHORT_MOST;
}

/* Return a pending for a request to p, in no queue yet, or NULL if there is no memory. */
struct p3_pending *p3_pending_alloc(struct p3_nic *n, struct p3_peer *p, uint32_t kind,
	const struct p3_move *m, struct p3_md *md);
/* Free a pending, which is in a queue of its peer, with its copy and its transfer. */
void p3_pending_free(struct p3_nic *n, struct p3_pending *t);

/* ---- short requests that are sent at once ---- */

/* Return a pending of a request that is about to be sent to p, and that reserves one cell
 * for its response, or NULL: then use p3_pending_alloc(). */
static P3_HOT struct p3_pending *p3_pending_take(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, struct p3_md *md)
{
	struct p3_pending *t = p3_table_take(&n->table[P3_T_PENDING]);
	if (p3_unlikely(!t))
		return NULL;
	p3_obj_born(&t->o);
	t->peer = p;
	t->md = md;
	t->md_name = p3_get(&md->o.name);
	t->state = P3_PEND_SENT;
	t->kind = (uint8_t)kind;
	t->ni = (uint8_t)md->o.ni;
	t->is_long = false;
	t->rsp_cells = 1;
	t->xfer = NULL;
	t->send.md = NULL;
	t->copy = NULL;
	p3_list_add(&p->outstanding, &t->link);
	p->nout++;
	p3_ni_use_more(&n->ni[t->ni], P3_U_OP);
	return t;
}

/* Free a pending that waits for its response, and has neither copy nor transfer. */
static P3_HOT void p3_pending_give(struct p3_nic *n, struct p3_pending *t)
{
	struct p3_table *table = &n->table[P3_T_PENDING];
	p3_list_del(&t->link);
	t->peer->nout--;
	p3_ni_use_less(&n->ni[t->ni], P3_U_OP);
	p3_release(&t->o.name, p3_get(&t->o.name) ^ P3_NAMELESS); /* TABLE.2 */
	table->live--;
	p3_table_link(table, &t->o);
}

/* Return the pending that a response names, or NULL if it does not wait for a response
 * from this peer. */
static P3_HOT struct p3_pending *p3_pending_named(
	struct p3_nic *n, const struct p3_peer *p, uint32_t name)
{
	const struct p3_table *table = &n->table[P3_T_PENDING];
	uint32_t index = name & P3_PENDING_INDEX;
	if (p3_unlikely(index >= table->used))
		return NULL;
	char *chunk = table->chunk[index / P3_TABLE_EACH];
	struct p3_pending *t = (struct p3_pending *)chunk + index % P3_TABLE_EACH;
	if (p3_unlikely(!p3_obj_lives(&t->o) || p3_pending_name(t) != name))
		return NULL;
	return p3_likely(t->peer == p && t->state == P3_PEND_SENT) ? t : NULL;
}

/* Post SEND_START. */
void p3_pending_start(struct p3_nic *n, struct p3_pending *t);
/* Post SEND_END. */
void p3_pending_end(struct p3_nic *n, struct p3_pending *t, uint32_t fail);

/* Copy a send's bytes and post its SEND_END, so that the program may unlink the
 * descriptor when its call returns.  Return false if there is no memory for a copy. */
P3_RARE bool p3_pending_take_over(struct p3_nic *n, struct p3_pending *t);
/* Copy a short send that could not leave.  Do so only if its target is mapped: SEND_END
 * promises that the bytes will leave. */
P3_RARE void p3_pending_copy_out(struct p3_nic *n, struct p3_pending *t);
/* Free a copy whose bytes lie in the lane now, or which no peer will read any more. */
P3_RARE void p3_pending_drop_copy(struct p3_nic *n, struct p3_pending *t);
/* Count a copy for peer p, since its request goes to the queue of that peer. */
P3_RARE void p3_pending_readdress_copy(
	struct p3_nic *n, struct p3_pending *t, struct p3_peer *p);

/* The process that answers a request. */
struct p3_answerer {
	ptl_process_id_t id;
	uint32_t uid, jid;
};
_Static_assert(
	sizeof(struct p3_pending) == P3_PENDING_LEN && P3_TABLE_EACH == P3_PENDING_CHUNK,
	"yod --plan tells of both");

/* Write the content of ACK or REPLY events.  The caller has counted the operation on the
 * descriptor (p3_match_threshold()). */
static inline void p3_pending_describe_answer(const struct p3_move *m,
	const struct p3_md *md, const struct p3_answerer *by, uint64_t mlength,
	uint32_t link, uint32_t kind, struct p3_event_words *rec)
{
	p3_record_set_request(rec, m->bits, m->length, mlength, m->remote_offset, 0);
	p3_record_set_md(rec, md, link);
	p3_record_set_initiator(rec, kind, by->id, by->uid, by->jid, m->pt_index);
}

/* Fail a get whose reply will never come.  p is its target, or NULL if that is
 * unknown. */
void p3_pending_reply_fails(struct p3_nic *n, const struct p3_move *m, struct p3_md *md,
	const struct p3_peer *p);
/* Tell the target of a long get that its bytes are no longer needed.  The slot stays in
 * use until the target has seen that. */
void p3_pending_release(struct p3_nic *n, struct p3_pending *t, uint32_t fail);
/* End a long get: its last byte has come, or never will. */
void p3_pending_end_get(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
/* End a pending whose response will not come.  The events say that it failed if the
 * target has died. */
void p3_pending_fail(struct p3_nic *n, struct p3_pending *t, bool died);

#endif
