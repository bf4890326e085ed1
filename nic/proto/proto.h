/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * proto - messages between peers: requests and responses, sent and received
 *
 * format.h has the words of the messages.  state.h has the data: peers, and pendings,
 * which are this node's operations under way.  Only the lease holder calls these
 * functions.
 */
#ifndef P3_NIC_PROTO_PROTO_H
#define P3_NIC_PROTO_PROTO_H

#include "nic/match/match.h"
#include "nic/obj/obj.h"
#include "nic/proto/format.h"
#include "nic/run/run.h"
#include "nic/state.h"
#include "shm/footprint.h"

/* ---- ids of peers (peer.c) ---- */

/* In a job the nids count up from the first one, and n->ids is NULL.  In a domain peers
 * have any ids, and n->ids is a hash table.  The state is n->ids, n->listed, n->over, and
 * n->latest with n->absent. */

/* Return the place of an id in the table, or the place where it belongs. */
static inline struct p3_id *p3_ids_place(struct p3_ids *ids, uint64_t key)
{
	uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32) & ids->mask;
	while (ids->at[i].peer && ids->at[i].key != key)
		i = (i + 1) & ids->mask;
	return &ids->at[i];
}

/* Return the peer that has this id, or NULL.  The function is inline, since a program
 * that sends to all others in turn needs it in each call: n->latest is of no use then. */
static inline struct p3_peer *p3_ids_known(struct p3_nic *n, uint64_t id)
{
	uint32_t index = (uint32_t)id - n->first_nid, pid = (uint32_t)(id >> 32);
	if (n->ids)
		return p3_ids_place(n->ids, id)->peer;
	if (index >= n->nids || pid == P3_JOB_NO_PID)
		return NULL;
	struct p3_peer *p = &n->peer[index];
	return p->pid[0] == pid || p->pid[1] == pid ? p : NULL;
}

/* Do as p3_ids_known() for a target that is likely the one of the last call.  If no peer
 * has this id, return a pseudo-peer, whose ring is never open. */
static P3_HOT struct p3_peer *p3_ids_peer(struct p3_nic *n, uint64_t id)
{
	if (p3_unlikely(n->latest.key != id)) {
		struct p3_peer *p = p3_ids_known(n, id);
		if (!p)
			return &n->absent;
		n->latest = (struct p3_id){id, p};
	}
	return n->latest.peer;
}

int p3_ids_make(struct p3_nic *n);
void p3_ids_drop(struct p3_nic *n);
/* Rebuild the table, after a peer has come or has got other ids. */
void p3_ids_renew(struct p3_nic *n);
/* Return true if a process with this id, which no known peer has, may still join the
 * domain.  Return false if the rank with this nid has joined without the id. */
bool p3_ids_may_come(const struct p3_nic *n, ptl_process_id_t who);
/* Note that this rank of the own job has come, if the job has it. */
void p3_ids_come(struct p3_nic *n, uint32_t rank);
/* Note that the rank of the job with this nid has ended. */
void p3_ids_end(struct p3_nic *n, uint32_t nid);
int p3_ids_list(struct p3_nic *n, struct p3_cmd *c);

/* Return the peer that has this nid, or in a domain this id, or NULL. */
struct p3_peer *p3_peer_find(struct p3_nic *n, ptl_process_id_t who);

/* Note the pid of the peer's interface that sends the usual requests. */
static inline void p3_peer_expect_usual(struct p3_peer *p)
{
	uint32_t flags = p3_word0_flags(p->req_in.usual);
	p->usual_pid = p->pid[flags & P3_F_NI1 ? 1 : 0];
}

/* Return true if an interface of the peer has this pid. */
static inline bool p3_peer_has_pid(const struct p3_peer *p, ptl_pid_t pid)
{
	return pid != P3_JOB_NO_PID && (p3_likely(p->pid[0] == pid) || p->pid[1] == pid);
}

/* Return true if a target lives and is mapped, so that requests to it go to its lane. */
static inline bool p3_peer_is_live(const struct p3_peer *p, ptl_pid_t pid)
{
	return p3_likely(p && p->state == P3_LIVE && p3_peer_has_pid(p, pid));
}

/* Return true if the target lives, but is not mapped here yet. */
static inline bool p3_peer_is_expected(const struct p3_peer *p, ptl_pid_t pid)
{
	return p && p->state == P3_EXPECTED && p3_peer_has_pid(p, pid);
}

/* Return true if a request that cannot reach this target ends with a failure.  If the
 * target has left, or did not come in time, the request ends without one. */
static inline bool p3_peer_is_failure(const struct p3_peer *p, ptl_pid_t pid)
{
	return !p || p->state == P3_DEAD ||
	       ((p->state == P3_LIVE || p->state == P3_EXPECTED) &&
		       !p3_peer_has_pid(p, pid));
}

/* ---- lanes to and from peers: room, growth, hot and cold (peer.c) ---- */

/* The state is the rings of struct p3_peer, its words mine, and n->hot. */

bool p3_peer_is_ready(struct p3_nic *n, struct p3_peer *p);
/* Tell the peer in which ways this node can fetch its puts.  Call this again when one
 * of them turns out to be refused. */
void p3_peer_say_reads(struct p3_peer *p);
/* Move the addresses of a peer's mapped memory to info, for the unmap of its wire.  The
 * peer's next end must not unmap them again: the memory of another peer may lie there. */
void p3_peer_unmapped(struct p3_peer *p, struct p3_peer_info *info);
bool p3_peer_holds_ring(
	struct p3_nic *n, const struct p3_peer *p, uint64_t off, uint32_t cells);
bool p3_peer_has_acked(struct p3_peer *p);
bool p3_peer_look_for_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k);
/* Return true if there is room for k cells.  Load the peer's credit only if the last
 * known one does not suffice. */
static P3_HOT bool p3_peer_has_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k)
{
	return p3_likely(p3_ring_fits(r, k + p3_ring_pad(r, k))) ||
	       p3_peer_look_for_room(p, r, k);
}
/* Return true if there is a response.  A response comes only for a request that has
 * reserved room for it.  Without a reservation do not look at the ring, which saves a
 * cache line; a switch cell or an invalid message in the ring waits for the next
 * reservation. */
static inline bool p3_peer_has_response(struct p3_peer *p)
{
	uint64_t w0;
	return p3_unlikely(p->rsp_used) && p3_ring_peek(&p->rsp_in, &w0);
}
bool p3_peer_grow_requests(struct p3_nic *n, struct p3_peer *p); /* true: it has grown */
void p3_peer_grow_responses(struct p3_nic *n, struct p3_peer *p);
bool p3_peer_reserve_arena(
	struct p3_nic *n, uint64_t len, uint64_t align, uint64_t *off_out);
/* Do that for the cells of rings. */
bool p3_peer_reserve_cells(struct p3_nic *n, uint64_t len, uint64_t *off_out);
/* Mark a peer that breaks the protocol as bad; p3_peer_down_bad() then ends the
 * operations with it. */
void p3_peer_ignore(struct p3_nic *n, struct p3_peer *p, const char *what);
/* Count a peer as alive or as ended, unless it is counted so.  A peer that is apart
 * counts like a mapped one. */
void p3_peer_count_alive(struct p3_nic *n, struct p3_peer *p, bool alive);
/* Note that no request waits for an introduction of the peer. */
void p3_peer_end_meeting(struct p3_nic *n, struct p3_peer *p);
void p3_peer_heat(struct p3_nic *n, struct p3_peer *p);
void p3_peer_cool(struct p3_nic *n);
/* Poll a peer's lane no more.  Its wire heats it when something comes. */
void p3_peer_rest(struct p3_nic *n, struct p3_peer *p);
void p3_peer_answer_doorbell(struct p3_nic *n);
void p3_peer_sweep(struct p3_nic *n);

/* ---- births and ends of peers (peer_life.c) ---- */

/* A peer is EXPECTED until its segment is mapped here, then LIVE.  Its birth resets both
 * directions of the lane, and sends the requests that have waited for the peer.  When a
 * peer is lost, this node first takes all messages that the peer had published, then ends
 * all operations with it.  A peer that breaks the protocol is lost, too.  The state is
 * struct p3_peer and n->some_bad. */

/* Command: a peer has joined, and is mapped unless its base is NULL. */
int p3_peer_up(struct p3_nic *n, struct p3_cmd *c);
/* Command: a question is answered (p3_nic_peer_told() of nic.h). */
int p3_peer_told(struct p3_nic *n, struct p3_cmd *c);
/* Command: a peer has opened an interface. */
int p3_peer_pids(struct p3_nic *n, struct p3_cmd *c);
/* Command: a peer has left or died.  Return -EAGAIN if one of its requests must wait for
 * an interface of this node to settle, or if a peer that has left, for an entry. */
int p3_peer_down(struct p3_nic *n, struct p3_cmd *c);
/* Command: a rank has ended, which may have joined and left before this node joined. */
int p3_peer_over(struct p3_nic *n, struct p3_cmd *c);
/* Lose the peers that have broken the protocol. */
void p3_peer_down_bad(struct p3_nic *n);

/* ---- pendings: requests of this node that have not ended (pending.c) ---- */

/* A pending (struct p3_pending) belongs to one peer at a time: it waits in that peer's
 * queue until there is room for it, then in outstanding until the response comes.  A
 * long get stays a pending until all its bytes have been pulled.  A put that leaves at
 * once and wants no response needs no pending.  The state is the table of pendings, the
 * queues of the peers, and the counters n->leaving and n->promised, which any thread
 * reads. */

/*
 * The call of a put or an exchange of at most P3_SHORT_MOST bytes posts SEND_END before
 * it returns, if there is room in the P3_COPIES_LEN bytes for copies.  The bytes of a
 * longer put stay in place until the target has read them; so do those of a put from a
 * shared heap that the target reads (p3_xfer_is_faster()).
 */
#define P3_SHORT_MOST 8192u
#define P3_COPIES_LEN (4u << 20)
int p3_copy_start(struct p3_nic *n);
void p3_copy_stop(struct p3_nic *n);

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

/* Return a pending for a request to p, in no queue yet, or NULL if there is no memory.
 * Without a descriptor the request has no events, and the caller sets the interface. */
struct p3_pending *p3_pending_alloc(struct p3_nic *n, struct p3_peer *p, uint32_t kind,
	const struct p3_move *m, struct p3_md *md);
/* Free a pending, which is in a queue of its peer, with its copy and its transfer. */
void p3_pending_free(struct p3_nic *n, struct p3_pending *t);

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
_Static_assert(
	sizeof(struct p3_pending) == P3_PENDING_LEN && P3_TABLE_EACH == P3_PENDING_CHUNK,
	"yod --plan tells of both");

/* Post SEND_START. */
void p3_pending_start(struct p3_nic *n, struct p3_pending *t);
/* Post SEND_END. */
void p3_pending_end(struct p3_nic *n, struct p3_pending *t, uint32_t fail);

/* Copy a send's bytes and post its SEND_END, if it has one, so that the program may
 * unlink the descriptor when its call returns.  Return false if there is no memory for a
 * copy. */
P3_RARE bool p3_pending_take_over(struct p3_nic *n, struct p3_pending *t);
/* Copy a short send that could not leave.  Do so only if its target is mapped: SEND_END
 * promises that the bytes will leave. */
P3_RARE void p3_pending_copy_out(struct p3_nic *n, struct p3_pending *t);
/* Free a copy whose bytes lie in the lane now, or which no peer will read any more. */
P3_RARE void p3_pending_drop_copy(struct p3_nic *n, struct p3_pending *t);

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
	p3_record_set_request(rec, m->bits, m->length, mlength, m->remote_offset, 0);
	p3_record_set_md(rec, md, link);
	p3_record_set_initiator(rec, kind, by->id, by->uid, by->jid, m->pt_index);
}

/* Return true if the descriptor of a request wants to know that no answer will come
 * (PTLX_MD_REPLY_ALWAYS). */
bool p3_pending_is_told(uint32_t kind, const struct p3_move *m, const struct p3_md *md);
/* Fail the ACK or REPLY of a request.  p is its target, or NULL if that is unknown. */
void p3_pending_answer_fails(struct p3_nic *n, uint32_t kind, const struct p3_move *m,
	struct p3_md *md, const struct p3_peer *p);
/* Do so for a pending whose target has dropped it, or has ended, if its descriptor wants
 * to know, or always. */
void p3_pending_unanswered(struct p3_nic *n, struct p3_pending *t, bool always);
/* End a long get: its last byte has come, or never will. */
void p3_pending_end_get(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
/* End a pending whose response will not come.  The events say that it failed if the
 * target has died. */
void p3_pending_fail(struct p3_nic *n, struct p3_pending *t, bool died);

/* ---- pendings whose target is not there yet (pending.c) ---- */

/* Such requests wait in the queue of a pseudo-peer: n->absent holds requests until their
 * targets join, n->unresolved until the NIC's owner has answered whether the target
 * exists (conf.ask and p3_nic_peer_told() of nic.h).  Requests to a peer that is expected
 * wait in the queue of that peer.  The state is the two pseudo-peers, held_most, asked
 * and told in struct p3_nic. */

/* Find the queue of a request that cannot be sent now, or NULL if the request ends at
 * once.  Return PTL_OK, or PTL_NO_SPACE if too many requests are held. */
P3_RARE int p3_hold_find_queue(struct p3_nic *n, struct p3_peer *p, ptl_process_id_t who,
	struct p3_peer **to_out);
/* Ask whether targets that this node does not know exist.  Return the number of the
 * question whose answer counts.  At most one question is open: if there is one,
 * p3_peer_told() asks the next one. */
static inline uint32_t p3_hold_ask(struct p3_nic *n)
{
	uint32_t next = n->asked + 1;
	if (n->told == n->asked)
		n->conf.ask(n->conf.ask_arg, ++n->asked);
	return next;
}
/* Hold the newest request in the queue of a pseudo-peer, or ask whether its target
 * exists. */
P3_RARE void p3_hold_newest(struct p3_nic *n, const struct p3_peer *pseudo);
/* Move a held request to the queue of its target if the target can take it now, and
 * return the target.  Otherwise return NULL.  If the request's node has joined without
 * the pid, ask whether another node has the pid. */
struct p3_peer *p3_hold_readdress(struct p3_nic *n, struct p3_pending *t);
/* Take a held request that is about to end out of its target's gauges, and show the
 * start of the next one's wait. */
void p3_hold_show_end(struct p3_nic *n, const struct p3_pending *t);
/* Fail the held requests whose target will not join any more. */
void p3_hold_give_up(struct p3_nic *n);
/* End the requests that the answer to the last question concerns.  Return -ESTALE if the
 * answer is to another question. */
int p3_hold_told(struct p3_nic *n, const struct p3_cmd *c);
/* Command: fail the requests that have been held for too long, and report the rest. */
int p3_hold_expire(struct p3_nic *n, struct p3_cmd *c);

/* ---- requests into a lane (req_tx.c) ---- */

/* Return true if there is room for a request of this number of cells, whose response
 * needs rsp cells.  Give the pair its full lane if that is what the request needs. */
bool p3_req_has_room(struct p3_nic *n, struct p3_peer *p, uint32_t cells, uint32_t rsp);
/* Begin a request for which there is room, and return its header.  After enough requests
 * first switch to the full ring: a switch cell without a request behind it could stay
 * untaken for long, and look like an untaken message.  A full ring touches more cache
 * lines and pages than a base ring: if the full rings of all pairs exceed a CPU's cache,
 * only a pair that has long requests, or whose base ring is too short, gets one. */
struct p3_cell *p3_req_begin(
	struct p3_nic *n, struct p3_peer *p, uint32_t cells, bool is_long);
/* Publish the request that is filled in; word0 is that of its header. */
void p3_req_publish(struct p3_nic *n, struct p3_peer *p, uint64_t word0, uint32_t rsp);
/* Send a put that is in no queue.  Return false if it is long, or there is no room. */
bool p3_req_put(struct p3_nic *n, struct p3_peer *p, const struct p3_pending *t);
/* Send a pending, and move it to those that wait for their response.  Return false if
 * there is no room, or no slot for a long one, or an exchange of its bytes waits. */
bool p3_req_send(struct p3_nic *n, struct p3_peer *p, struct p3_pending *t);

/* ---- requests sent (tx.c) ---- */

/* A put that needs no response and finds room leaves at once.  The other requests become
 * pendings in the queue of their target, and leave in the order of the calls.  The state
 * is p->req_out, p->rsp_used and p->queue of each peer, and n->blocked. */

/* Commands: admit a request, and send it if there is room. */
int p3_tx_put(struct p3_nic *n, struct p3_cmd *c);
/* Put at once, and note the peer and the news (p3_looks_add()), or do nothing and return
 * false. */
bool p3_tx_put_wired(struct p3_nic *n, uint64_t handle, const struct p3_move *m);
int p3_tx_get(struct p3_nic *n, struct p3_cmd *c);
int p3_tx_getput(struct p3_nic *n, struct p3_cmd *c);
/* Command: put a copy of bytes, at most P3_SHORT_MOST, that no descriptor has.  There are
 * no events. */
int p3_tx_inject(struct p3_nic *n, struct p3_cmd *c);
/* End the operation of a command that found no room among the pendings, and whose
 * poster does not wait for a return code: the operation's events say that it failed. */
P3_RARE void p3_tx_refuse(struct p3_nic *n, struct p3_cmd *c);
/* Send from the front of the peer's queue while there is room. */
void p3_tx_push(struct p3_nic *n, struct p3_peer *p);
/* Do so for each peer in n->blocked. */
__attribute__((noinline)) void p3_tx_unblock(struct p3_nic *n);

/* Write the content of the SEND events of a descriptor of this interface.  The caller has
 * counted the operation on the descriptor (p3_match_threshold()). */
static P3_HOT void p3_tx_describe_from(struct p3_nic *n, const struct p3_ni *ni,
	const struct p3_move *m, const struct p3_md *md, uint64_t offset, uint64_t length,
	uint32_t link, uint32_t kind, struct p3_event_words *rec)
{
	ptl_process_id_t self = {n->conf.nid, ni->pid};
	p3_record_set_request(rec, m->bits, length, length, offset, m->hdr);
	p3_record_set_md(rec, md, link);
	p3_record_set_initiator(rec, kind, self, n->conf.uid, n->conf.jid, m->pt_index);
}

static inline void p3_tx_describe(struct p3_nic *n, const struct p3_move *m,
	const struct p3_md *md, uint64_t offset, uint64_t length, uint32_t link,
	uint32_t kind, struct p3_event_words *rec)
{
	p3_tx_describe_from(
		n, p3_ni_of(n, &md->o), m, md, offset, length, link, kind, rec);
}

/* Count a request of an interface. */
static inline void p3_tx_count(struct p3_ni *ni, uint64_t length)
{
	ni->sent++;
	ni->sent_bytes += length;
}

/* ---- responses sent (rsp_tx.c) ---- */

/* The initiator of a request has reserved room for the response, so a response never
 * waits for room.  A reply that carries data is written in two steps, because the target
 * of an exchange must write its memory between them.  The state is p->rsp_out and the
 * counter p->nanswered of each peer. */

/* Return the cell of a response of one cell, or NULL if the peer does not listen, or has
 * not reserved the cell. */
struct p3_cell *p3_rsp_begin(struct p3_nic *n, struct p3_peer *p);
/* Publish a response that is filled in; word0 is that of its header. */
void p3_rsp_publish(
	struct p3_nic *n, struct p3_peer *p, uint64_t word0, uint64_t mlength);
/* Respond with one cell. */
void p3_rsp_send(struct p3_nic *n, struct p3_peer *p, const struct p3_answer *a);
/* Respond with a kind, a pending and a length alone. */
void p3_rsp_send_brief(struct p3_nic *n, struct p3_peer *p, uint32_t pending,
	enum p3_rsp_kind kind, uint64_t mlength);

/* Return true if the caller may publish a response of one cell to this living peer by
 * p3_rsp_run(): the response ring is open.  If the ring is shut, open it first if it is a
 * full one with room. */
static P3_HOT bool p3_rsp_may_run(struct p3_peer *p)
{
	if (p3_ring_runs(&p->rsp_out, 1))
		return true;
	if (p->rsp_full && p3_peer_has_room(p, &p->rsp_out, 1))
		p3_ring_open(&p->rsp_out);
	return p3_ring_runs(&p->rsp_out, 1);
}

/* Publish the response of one cell that is filled in at p->rsp_out.next. */
static P3_HOT void p3_rsp_run(struct p3_nic *n, struct p3_peer *p, uint64_t word0)
{
	p3_ring_run(&p->rsp_out, word0, 1);
	p3_looks_add(n, p);
}

/* Return true if the response ring has room for a reply of this length. */
bool p3_rsp_has_room(struct p3_peer *p, uint64_t mlength);
/* Begin a reply, and return the place of its bytes.  Call this only after
 * p3_rsp_has_room() has returned true.  *word0_out is that of the reply's header, for
 * p3_rsp_publish(). */
char *p3_rsp_begin_reply(struct p3_nic *n, struct p3_peer *p, uint32_t pending,
	uint64_t mlength, uint64_t *word0_out);

/* Count a dropped message of this length.  ni is its interface, or NULL. */
void p3_rsp_drop(struct p3_nic *n, struct p3_ni *ni, uint64_t length);

/* ---- requests received: header check, matching (rx.c) ---- */

/* Each request is taken when it can be done, or it stays in its lane: for room among the
 * pulls, for an exchange, for an interface that settles, or for an entry.  So a lane
 * keeps its order.  The state is p->req_in of each peer, and n->acl_cache. */

/* Take one request off the lane.  Return false if there is none, or it must wait. */
bool p3_rx_take(struct p3_nic *n, struct p3_peer *p);
/* Take the requests of a peer that has ended.  Return true if one of them waits for an
 * interface of this node to settle, or if the peer has left, for an entry. */
bool p3_rx_take_last(struct p3_nic *n, struct p3_peer *p, bool left);
/* Try once more to take the kept requests: an entry may accept them now, or their index
 * keeps them no longer. */
P3_RARE void p3_rx_try_kept(struct p3_nic *n);
/* Discard the request of a dead or departed peer that would have to wait.  Return false
 * if there is none. */
bool p3_rx_refuse(struct p3_nic *n, struct p3_peer *p);

/* A request as copied, once, from its header cell. */
struct p3_incoming {
	struct p3_ask ask;
	const struct p3_cell *cell;
	uint32_t flags;
	uint32_t ncells;
	uint32_t pending; /* the initiator's pending, 0: no response is requested */
	uint32_t rsp;     /* cells reserved for the response */
	uint32_t target_pid;
	uint64_t xfer;  /* the initiator's slot */
	uint64_t place; /* long put: place of the bytes, if the header names it */
};

/* Copy a request from its header cell. */
static inline void p3_incoming_load(
	struct p3_peer *p, const struct p3_cell *c, uint64_t w0, struct p3_incoming *r)
{
	struct p3_request m;
	p3_unpack_request(c, w0, &m);
	r->cell = c;
	r->flags = m.flags;
	r->ncells = m.ncells;
	r->target_pid = m.pid;
	r->rsp = m.room;
	r->pending = m.pending;
	r->xfer = m.xfer;
	r->place = m.place;
	r->ask = (struct p3_ask){.kind = (uint8_t)m.kind,
		.what = (uint8_t)m.what,
		.pt_index = m.portal,
		.ac_index = m.access,
		.bits = m.bits,
		.hdr = m.hdr,
		.remote_offset = m.offset,
		.length = m.length,
		.who = p3_match_initiator(p, m.flags),
		.owner = p3_pair(p->jid, p->uid)};
}

/* ---- requests received: delivery to the accepting descriptor (deliver.c) ---- */

/* The state is p->behind of each peer, and n->settling_until. */

/* Deliver a request to the descriptor that has accepted it.  Return false if it must
 * wait for room among the pulls, for room in the response ring, or for an exchange: then
 * nothing has changed.  An atomic operation cuts the hit to whole elements. */
bool p3_deliver(struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r,
	struct p3_hit *hit);
/* Drop a request that no entry accepts.  Respond if the initiator has reserved room for
 * a response, so that it can use that room again.  ni is the target, or NULL. */
P3_RARE void p3_deliver_discard(
	struct p3_nic *n, struct p3_peer *p, struct p3_ni *ni, struct p3_incoming r);
/*
 * Return true while a new interface settles: until its program serves it, a request
 * that no entry accepts stays in its lane, since the program may be about to attach
 * that entry.  Programs for a library that looks at messages only inside of calls
 * expect this.  The program serves the interface once it has looked for an event and
 * found none, has sent, or has entered a barrier.  After ten seconds the interface counts
 * as served.
 */
P3_RARE bool p3_deliver_settles(struct p3_nic *n, struct p3_ni *ni);
/*
 * Return true if a request that no entry accepts stays in its lane: the interface
 * settles, or the portal index keeps such requests (PtlXPTHold).  A kept request is not
 * looked at by passes: the command that may have made an entry for it tries again, in
 * the same hold of the lease (p3_rx_try_kept()).  The state is kept, kept_at and left_ns
 * of each peer, and n->nkept.
 */
P3_RARE bool p3_deliver_keeps(
	struct p3_nic *n, struct p3_peer *p, struct p3_ni *ni, const struct p3_ask *ask);
/* Return true if a request of the peer, which has left, is kept and not for long. */
P3_RARE bool p3_deliver_keeps_behind_end(struct p3_peer *p);
/* Let passes look at the peer's requests again. */
P3_RARE void p3_deliver_keep_no_more(struct p3_nic *n, struct p3_peer *p);

/* Return a pull for a long put, whose span the caller sets, or NULL if none is free for
 * this peer. */
struct p3_pull *p3_deliver_pull(
	struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r);
/* Offer the bytes of a slot that serves a long get (p3_xfer_serve()), and answer. */
void p3_deliver_offer(
	struct p3_nic *n, const struct p3_incoming *r, struct p3_xfer_slot *x);

/* A request whose entry the host has found, and whose bytes the firmware is to move. */
struct p3_placed {
	struct p3_span span;
	uint64_t mlength;
	bool ack; /* the initiator gets an acknowledgement */
};

/* Do the first half of a delivery (generic/): account for a put whose bytes are in the
 * lane, or for a get whose bytes fit a reply, and post its START. */
P3_RARE void p3_deliver_place(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, const struct p3_hit *hit, struct p3_placed *t_out);
/* Do the second half: move the bytes, post END, and answer.  Return false if the response
 * ring has no room: then nothing has changed. */
P3_RARE bool p3_deliver_move(struct p3_nic *n, struct p3_peer *p,
	const struct p3_incoming *r, struct p3_placed *t);
/* End the delivery without its bytes, since the peer is lost. */
P3_RARE void p3_deliver_fail(
	struct p3_nic *n, const struct p3_incoming *r, struct p3_placed *t);

/* ---- responses received (rsp.c) ---- */

/* A response names its pending.  The request has reserved room for the response, and the
 * reservation ends when the response has been taken.  The state is p->rsp_in and
 * p->rsp_used of each peer. */

/* Take one response off the lane.  Return false if there is none, or if it is invalid:
 * then the peer is marked as bad. */
bool p3_rsp_take(struct p3_nic *n, struct p3_peer *p);

static inline void p3_rsp_take_all(struct p3_nic *n, struct p3_peer *p)
{
	while (p3_unlikely(p3_peer_has_response(p)))
		if (!p3_rsp_take(n, p))
			break;
}

/* ---- commands that first end the operations on their object (close.c) ---- */

/* Commands: remove an interface, a match entry, a descriptor. */
int p3_close_ni(struct p3_nic *n, struct p3_cmd *c);
int p3_close_me(struct p3_nic *n, struct p3_cmd *c);
int p3_close_md(struct p3_nic *n, struct p3_cmd *c);
/* Free iovec copies and tables when the NIC ends. */
void p3_close_all(struct p3_nic *n);

#endif
