/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pending - requests of this node from their admission to their end
 *
 * A pending (struct p3_pending) belongs to one peer at a time: it waits in that peer's
 * queue until there is room for it, then in outstanding until the response comes.  The
 * requests of a long get stay pendings until all bytes have been pulled.  A put that
 * leaves at once and wants no response needs no pending.
 *
 * Only the lease holder calls these functions.  The state is the table of pendings, the
 * queues of the peers, and the counters n->leaving and n->promised, which any thread
 * reads.
 */
#ifndef P3_NIC_PROTO_PENDING_H
#define P3_NIC_PROTO_PENDING_H

#include "nic/obj/record.h"
#include "nic/proto/copy.h"
#include "nic/state.h"

/* Return true if p is a pseudo-peer, whose queue holds requests to targets that are not
 * there yet.  Such a request has no SEND event before its target comes, unless its
 * bytes are copied: a program may take SEND_END as a sign that the message has left. */
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
/* Drop a copy: the bytes lie in the lane now, or no peer will read them any more. */
P3_RARE void p3_pending_drop_copy(struct p3_nic *n, struct p3_pending *t);
/* Count a copy for peer p, since its request goes to the queue of that peer. */
P3_RARE void p3_pending_readdress_copy(
	struct p3_nic *n, struct p3_pending *t, struct p3_peer *p);

/* The process that answers a request. */
struct p3_answerer {
	ptl_process_id_t id;
	uint32_t uid, jid;
};

/* Write the content of ACK or REPLY events.  The caller has counted the operation on the
 * descriptor (p3_match_threshold()). */
static inline void p3_pending_describe_answer(const struct p3_move *m,
	const struct p3_md *md, const struct p3_answerer *by, uint64_t mlength,
	uint32_t link, uint32_t kind, struct p3_event_words *rec)
{
	p3_say_request(rec, m->bits, m->length, mlength, m->remote_offset, 0);
	p3_say_md(rec, md, link);
	p3_say_who(rec, kind, by->id, by->uid, by->jid, m->pt_index);
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
