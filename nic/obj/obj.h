/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * obj - the objects of programs: event records, queues, descriptors, entries, interfaces
 *
 * Only the lease holder calls these functions, except where a comment says (any).  The
 * functions with a command return the PTL code that the program gets.
 */
#ifndef P3_NIC_OBJ_OBJ_H
#define P3_NIC_OBJ_OBJ_H

#include "nic/generic/generic.h"
#include "nic/match/match.h"
#include "nic/report/report.h"
#include "nic/state.h"
#include "shm/fault.h"
#include "shm/trace.h"

/* ---- records: the only place that knows the order of their words ---- */

/*
 * The firmware writes a record into its queue's ring (shm/evq.h), or first into the state
 * of an operation.  Host threads read it.  Each group of words has one function that
 * writes it; p3_event_from_record() reads all of them (any).
 */

/*
 * The words, in the order of ptl_event_t's members: a reader copies the first 14 of them
 * straight into the event, together with its padding.  "a:b" is a word with a in the
 * upper half and b in the lower half.
 */
enum p3_event_word {
	P3_EW_KIND, /* initiator's nid:kind */
	P3_EW_PID,  /* initiator's uid:pid */
	P3_EW_JID,  /* portal index:initiator's jid */
	P3_EW_BITS, /* match bits */
	P3_EW_RLENGTH,
	P3_EW_MLENGTH,
	P3_EW_OFFSET,
	P3_EW_MD_HANDLE,
	P3_EW_MD,                  /* struct p3_md_words, with values in its padding: */
	P3_EW_LINK = P3_EW_MD + 2, /* link:threshold */
	P3_EW_FAIL = P3_EW_MD + 4, /* (unlinked, ni_fail_type):options */
	P3_EW_HDR = P3_EW_MD + 6,  /* hdr_data */
	P3_EW_WORDS
};

#define P3_EW_UNLINKED 16u /* the bit "unlinked" above ni_fail_type */

_Static_assert((int)P3_EW_WORDS == P3_EVQ_WORDS, "a record has room for these words");
_Static_assert(sizeof(struct p3_md_words) == 8 * (P3_EW_HDR - P3_EW_MD), "six words");

#define P3_EW_LOW(word, member)  (offsetof(ptl_event_t, member) == 8 * (word))
#define P3_EW_HIGH(word, member) (offsetof(ptl_event_t, member) == 8 * (word) + 4)

_Static_assert(
	P3_EW_LOW(P3_EW_KIND, type) && P3_EW_HIGH(P3_EW_KIND, initiator.nid) &&
		P3_EW_LOW(P3_EW_PID, initiator.pid) && P3_EW_HIGH(P3_EW_PID, uid) &&
		P3_EW_LOW(P3_EW_JID, jid) && P3_EW_HIGH(P3_EW_JID, pt_index) &&
		P3_EW_LOW(P3_EW_BITS, match_bits) && P3_EW_LOW(P3_EW_RLENGTH, rlength) &&
		P3_EW_LOW(P3_EW_MLENGTH, mlength) && P3_EW_LOW(P3_EW_OFFSET, offset) &&
		P3_EW_LOW(P3_EW_MD_HANDLE, md_handle) && P3_EW_LOW(P3_EW_MD, md),
	"a word of a record is a word of the event");

/* Set one word of an event that is being written, in its queue or elsewhere. */
static inline void p3_record_set(struct p3_event_words *rec, int i, uint64_t word)
{
	p3_release(&rec->w[i], word); /* EVQ.2 */
}

/* Set two words; i is even. */
static inline void p3_record_set_pair(
	struct p3_event_words *rec, int i, const void *words)
{
	p3_release_pair(&rec->w[i], words); /* EVQ.2 */
}

static inline void p3_record_set_halves(
	struct p3_event_words *rec, int i, uint32_t high, uint32_t low)
{
	p3_release_halves(&rec->w[i], high, low); /* EVQ.2 */
}

/* Set the words of the request. */
static inline void p3_record_set_request(struct p3_event_words *rec, uint64_t bits,
	uint64_t rlength, uint64_t mlength, uint64_t offset, uint64_t hdr)
{
	p3_record_set(rec, P3_EW_BITS, bits);
	p3_record_set(rec, P3_EW_RLENGTH, rlength);
	p3_record_set(rec, P3_EW_MLENGTH, mlength);
	p3_record_set(rec, P3_EW_OFFSET, offset);
	p3_record_set(rec, P3_EW_HDR, hdr);
}

/* Set the number of bytes that were moved, if it is not the one of the request. */
static inline void p3_record_set_mlength(struct p3_event_words *rec, uint64_t mlength)
{
	p3_record_set(rec, P3_EW_MLENGTH, mlength);
}

/* Set the words of the descriptor as it is after the operation's accounting, and the
 * operation's link; each operation has its own. */
static inline void p3_record_set_md(
	struct p3_event_words *rec, const struct p3_md *md, uint32_t link)
{
	const char *words = (const char *)&md->words;
	p3_record_set(rec, P3_EW_MD_HANDLE, p3_get(&md->o.name));
#pragma GCC unroll 3
	for (int i = 0; i < P3_EW_HDR - P3_EW_MD; i += 2)
		p3_record_set_pair(rec, P3_EW_MD + i, words + 8 * i);
	p3_release_high(&rec->w[P3_EW_LINK], link); /* EVQ.2 */
}

/* Set the words of the initiator (id is pid:nid, owner is jid:uid), the portal index, and
 * the kind.  Kind 0: p3_record_copy() sets it later. */
static inline void p3_record_set_ids(struct p3_event_words *rec, uint32_t kind,
	uint64_t id, uint64_t owner, uint32_t pt_index)
{
	p3_record_set_halves(rec, P3_EW_KIND, (uint32_t)id, kind);
	p3_record_set_halves(rec, P3_EW_PID, (uint32_t)owner, (uint32_t)(id >> 32));
	p3_record_set_halves(rec, P3_EW_JID, pt_index, (uint32_t)(owner >> 32));
}

static inline void p3_record_set_initiator(struct p3_event_words *rec, uint32_t kind,
	ptl_process_id_t id, uint32_t uid, uint32_t jid, uint32_t pt_index)
{
	p3_record_set_halves(rec, P3_EW_KIND, id.nid, kind);
	p3_record_set_halves(rec, P3_EW_PID, uid, id.pid);
	p3_record_set_halves(rec, P3_EW_JID, pt_index, jid);
}

/* Mark the descriptor's last event, which did not fail. */
static inline void p3_record_set_unlinked(struct p3_event_words *rec)
{
	p3_release_high(&rec->w[P3_EW_FAIL], 1u << P3_EW_UNLINKED); /* EVQ.2 */
}

/* Copy a record whose kind is not set, and set the kind, the failure, and the mark of
 * the descriptor's last event. */
static inline void p3_record_copy(struct p3_event_words *to,
	const struct p3_event_words *rec, uint32_t kind, uint32_t fail, bool unlinked)
{
	uint32_t high = fail | (uint32_t)unlinked << P3_EW_UNLINKED;
	p3_record_set(to, P3_EW_KIND, p3_get(&rec->w[P3_EW_KIND]) | kind);
	p3_record_set(to, P3_EW_PID, p3_get(&rec->w[P3_EW_PID]));
#pragma GCC unroll 6
	for (int i = P3_EW_JID; i < P3_EW_HDR; i += 2)
		p3_record_set_pair(to, i, &rec->w[i]);
	p3_record_set(to, P3_EW_HDR, p3_get(&rec->w[P3_EW_HDR]));
	if (p3_unlikely(high))
		p3_release_high(&to->w[P3_EW_FAIL], high); /* EVQ.2 */
}

/* Return the upper half of a word. */
static inline uint32_t p3_event_high(const struct p3_event_words *rec, int i)
{
	return p3_acquire_high(&rec->w[i]); /* EVQ.2 */
}

/* Make an event of a record, whose words may change meanwhile (p3_evq_took). */
static inline void p3_event_from_record(
	const struct p3_event_words *rec, uint64_t sequence, uint64_t eq, ptl_event_t *ev)
{
#pragma GCC unroll 7
	for (int i = 0; i < P3_EW_HDR; i += 2)
		p3_acquire_pair((char *)ev + 8 * i, &rec->w[i]); /* EVQ.2 */
	ev->hdr_data = p3_acquire(&rec->w[P3_EW_HDR]);           /* EVQ.2 */
	uint32_t fail = p3_event_high(rec, P3_EW_FAIL);
	ev->ni_fail_type = fail & 0xffff;
	ev->unlinked = (int)(fail >> P3_EW_UNLINKED);
	ev->link = p3_event_high(rec, P3_EW_LINK);
	ev->md.eq_handle = eq;
	ev->sequence = (ptl_seq_t)sequence;
}

/* Make an event of copied words. */
static inline void p3_event_from_words(
	const uint64_t w[P3_EVQ_WORDS], uint64_t sequence, uint64_t eq, ptl_event_t *ev)
{
	struct p3_event_words rec;
	for (int i = 0; i < P3_EVQ_WORDS; i++)
		p3_set(&rec.w[i], w[i]);
	p3_event_from_record(&rec, sequence, eq, ev);
}

/* ---- the host segment: memory for event rings and pendings (any) ---- */

/* n->arena_lock guards the state (n->host_seg, the free rings and extents,
 * n->unreclaimed).  Only the thread that starts or stops the NIC calls
 * p3_host_create() and p3_host_drop(). */

int p3_host_create(struct p3_nic *n);
/* Return zeroed memory in the host segment, or NULL if there is none. */
void *p3_host_alloc(struct p3_nic *n, uint64_t len);
/* Return a ring of this number of records, or NULL, and the records, prepared for a queue
 * that starts at *start_out (p3_evq_format()). */
struct p3_evq_ring *p3_host_ring(struct p3_nic *n, uint32_t records,
	struct p3_event_record **rec_out, uint64_t *start_out);
/* Free a ring that no thread takes from any more.  life is a value of n->life that was
 * read while the ring was in use. */
void p3_host_ring_free(struct p3_nic *n, struct p3_evq_ring *ring,
	struct p3_event_record *rec, uint32_t records, uint64_t life);
void p3_host_drop(struct p3_nic *n);
/* Exchange the list of freed queues whose places are in use yet: add more to it, or, with
 * NULL, take all away.  Return the list as it was before. */
struct p3_eq *p3_host_unreclaimed(struct p3_nic *n, struct p3_eq *more);

/* ---- interfaces ---- */

int p3_ni_open(struct p3_nic *n, struct p3_cmd *c);
int p3_ni_check(struct p3_nic *n, struct p3_cmd *c);
int p3_ni_ac_entry(struct p3_nic *n, struct p3_cmd *c);
int p3_ni_status(struct p3_nic *n, struct p3_cmd *c);
int p3_ni_hold(struct p3_nic *n, struct p3_cmd *c);
/* Return the interface of the object that c->handle names. */
int p3_ni_of_handle(struct p3_nic *n, struct p3_cmd *c);

/* Return an open interface, for several uses: the compiler keeps the pointer, and does
 * not compute it anew for each of them. */
static P3_HOT struct p3_ni *p3_ni_at(struct p3_nic *n, uint32_t ni)
{
	struct p3_ni *at = &n->ni[ni];
	__asm__("" : "+r"(at));
	return at;
}

/* Return true if the handle names the open interface ni. */
static P3_HOT bool p3_ni_is(const struct p3_nic *n, uint32_t ni, uint64_t handle)
{
	if (ni >= P3_JOB_NIS)
		return false;
	uint32_t gen = p3_get(&n->ni[ni].gen);
	return (gen & 1) && handle == p3_handle(P3_KIND_NI, ni, 0, gen);
}

/* Return the interface of an object. */
static inline struct p3_ni *p3_ni_of(struct p3_nic *n, const struct p3_object *o)
{
	return &n->ni[o->ni];
}

/* Tables and the counts of interfaces have the same order. */
_Static_assert((int)P3_U_ME == (int)P3_T_ME && (int)P3_U_MD == (int)P3_T_MD &&
		       (int)P3_U_EQ == (int)P3_T_EQ,
	"one number for both");

/* Return PTL_OK if interface ni may have one more object, PTL_NO_SPACE, or the table
 * that must grow, as -(1 + id): call.c adds a chunk then and tries again. */
static P3_HOT int p3_obj_room(const struct p3_nic *n, enum p3_table_id id, uint32_t ni)
{
	const ptl_ni_limits_t *l = &n->ni[ni].limits;
	int most = id == P3_T_ME ? l->max_mes : id == P3_T_MD ? l->max_mds : l->max_eqs;
	if (n->ni[ni].use[id].cur >= (uint32_t)most)
		return PTL_NO_SPACE;
	return p3_likely(p3_table_has_room(&n->table[id])) ? PTL_OK : -(1 + (int)id);
}

/* Make an object of interface ni.  Handles do not find it before p3_obj_born().  The
 * caller has called p3_obj_room(). */
static P3_HOT void *p3_obj_new(struct p3_nic *n, enum p3_table_id id, uint32_t ni)
{
	struct p3_object *o = p3_table_alloc(&n->table[id]);
	o->ni = ni;
	p3_ni_use_more(&n->ni[ni], (enum p3_use_id)id);
	return o;
}

/* Free an object of the interface ni. */
static P3_HOT void p3_obj_free(
	struct p3_nic *n, enum p3_table_id id, struct p3_ni *ni, struct p3_object *o)
{
	p3_ni_use_less(ni, (enum p3_use_id)id);
	p3_table_release(&n->table[id], o);
}

/* ---- event queues ---- */

/* A queue lies in the table P3_T_EQ, its ring in the host segment.  Host threads read the
 * ring without the lease, so a removed queue keeps its place until p3_eq_reclaim(). */

int p3_eq_alloc(struct p3_nic *n, struct p3_cmd *c);
/* Remove a queue.  c->eq.dead is the list of removed queues, whose rings a host thread
 * retires. */
int p3_eq_free(struct p3_nic *n, struct p3_cmd *c);
/* Command: make the places of the queues in c->eq.dead reusable. */
int p3_eq_reclaim(struct p3_nic *n, struct p3_cmd *c);
/* Command: give the queue the descriptor in slot c->flag - 1, unless it has one; then
 * c->flag is that one's. */
int p3_eq_watch(struct p3_nic *n, struct p3_cmd *c);
/*
 * Kill a queue, and add it to a list of dead ones.  Descriptors that still name it find
 * its life changed: no queue.  The caller makes sure that its place and its ring
 * are reused only when no reader can be in it.
 */
void p3_eq_kill(struct p3_nic *n, struct p3_eq *eq, struct p3_eq **dead);

/* (any thread) Return true if the queue that the handle names is in this place and
 * certainly has no event. */
static inline bool p3_eq_is_empty(const struct p3_eq *eq, uint64_t handle)
{
	return p3_evq_is_empty(&eq->rx, &eq->o.name, handle);
}

/* Return the sink's queue, or NULL if it has none or the queue was freed. */
static inline struct p3_eq *p3_eq_of_sink(const struct p3_sink *sink)
{
	return p3_likely(sink->eq && sink->eq->life == sink->eq_life) ? sink->eq : NULL;
}

/* ---- memory descriptors ---- */

/* A descriptor lies in the table P3_T_MD.  It holds one reference to its copy of an
 * iovec, and so does each operation under way. */

int p3_md_bind(struct p3_nic *n, struct p3_cmd *c);
int p3_md_update(struct p3_nic *n, struct p3_cmd *c);

/* The meaning of a descriptor's contents, if they are legal. */
struct p3_md_meaning {
	struct p3_region region;
	struct p3_sink sink;
};

/* Return PTL_OK and the meaning of *what if its contents are legal and there is room for
 * one more descriptor of interface ni.  iov is the copy of its elements, or NULL. */
int p3_md_prepare(struct p3_nic *n, uint32_t ni, const ptl_md_t *what, struct p3_iov *iov,
	struct p3_md_meaning *out);
/*
 * Return PTL_OK if the condition of a conditional command holds: no event is in the
 * test queue or owed to it.  No message is matched while the command runs, since the
 * thread that runs it also matches.  So the events of each message matched before are
 * in the queue or owed to it, and all other messages are matched after the command.
 */
int p3_md_at_rest(const struct p3_nic *n, uint32_t ni, uint64_t test_eq);
/* Make a descriptor of the match entry with the index me, or P3_NONE.  The caller has
 * called p3_md_prepare(). */
struct p3_md *p3_md_create(struct p3_nic *n, uint32_t ni, const ptl_md_t *what,
	bool unlink, uint32_t me, const struct p3_md_meaning *meaning);
/* Make a descriptor if p3_md_prepare() allows it. */
int p3_md_make(struct p3_nic *n, uint32_t ni, const ptl_md_t *what, struct p3_iov *iov,
	bool unlink, uint32_t me, struct p3_md **md_out);
/* Free a descriptor of the interface ni that no match entry names any more. */
void p3_md_remove(struct p3_nic *n, struct p3_ni *ni, struct p3_md *md);
/* Drop a reference to a copy of iovec elements; the last one frees the copy.  NULL is
 * allowed. */
void p3_md_drop_iov(struct p3_iov *iov);
/* Count (owe) or no longer count (cancel) md's UNLINK event, which waits until all
 * operations on md have ended, among the events that the firmware owes to md's queue. */
void p3_md_owe_unlink(struct p3_md *md);
void p3_md_cancel_unlink(struct p3_md *md);

/* Return true if the automatic unlinking posts no UNLINK: an interface of Cray's kind
 * posts it only for descriptors that request it. */
static inline bool p3_md_unlinks_silently(const struct p3_md *md)
{
	const uint32_t both = P3_MD_CRAY | PTL_MD_EVENT_AUTO_UNLINK_ENABLE;
	return (md->sink.options & both) == P3_MD_CRAY;
}

/* ---- match entries, and the descriptors attached to them ---- */

/* An entry lies in the table P3_T_ME and in the match list of its portal index. */

int p3_me_attach(struct p3_nic *n, struct p3_cmd *c);
int p3_me_attach_md(struct p3_nic *n, struct p3_cmd *c);
/* Make an entry of the interface with this handle, or beside another entry (what->base),
 * which may leave the interface out. */
int p3_me_make(struct p3_nic *n, uint64_t ni_handle, const struct p3_cmd_me *what,
	struct p3_me **me_out);
/* Make an entry and its descriptor in one step, if the condition of p3_md_at_rest()
 * holds. */
int p3_me_make_with_md(struct p3_nic *n, uint64_t ni_handle, const struct p3_cmd_me *what,
	const ptl_md_t *md, struct p3_iov *iov, bool unlink, uint64_t test_eq,
	struct p3_me **me_out);
/* Attach a descriptor to the entry with this handle.  iov is the copy of its elements, or
 * NULL. */
int p3_me_give_md(struct p3_nic *n, uint64_t handle, const ptl_md_t *what,
	struct p3_iov *iov, bool unlink, struct p3_md **md_out);
/* Free an entry and its descriptor, which has no operation under way. */
void p3_me_drop(struct p3_nic *n, struct p3_me *me);
/* Take a descriptor off its entry and free it; free the entry, too, if it is to be
 * unlinked automatically. */
void p3_me_drop_md(struct p3_nic *n, struct p3_md *md);

/* ---- events: posting, and the automatic unlinking behind the last one ---- */

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
	if (p3_unlikely(md->exhausted && md->unlink))
		p3_event_unlinks(n, md, sink, rec, kind, fail);
	else
		p3_event_write(n, sink, rec, kind, fail);
}

/* ---- spans: operations on a descriptor, from START to END ---- */

/* The state of an operation is struct p3_span, which lies in a pending, a pull or a slot
 * of the transfer table. */

/* Begin an operation on md at offset.  The caller fills in span->rec, and counts the
 * operation in md's threshold (p3_match_threshold). */
void p3_span_begin(struct p3_span *span, struct p3_md *md, uint64_t offset);
void p3_span_start(struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind);
/* Post the operation's END, and unlink the descriptor if that is due. */
void p3_span_end(
	struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind, uint32_t fail);
/* Drop an operation without END: its interface closes, and its memory must not be
 * touched. */
void p3_span_forget(struct p3_span *span);

#endif
