/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fw - the firmware's private functions; objects.h and state.h have its data.  Only
 * nic/ includes this.
 *
 * Only the lease holder calls these functions and touches their data, except where a
 * comment says (any): then any thread may, and the datum is an atomic, or constant once
 * other threads can reach it.
 *
 *	nic.c	 start, stop, the NIC thread (tick, take-over, sleep)
 *	call.c	 host threads: command under the lease or through the mailbox, waiting
 *	pass.c	 one bounded pass, command dispatch, wake-ups at its end
 *	object.c tables of NIs, MEs, MDs, EQs and pendings
 *	index.c	 match lists and their hash index
 *	ahead.c	 long match lists: prefetching the entries that the next requests need
 *	match.c	 access control, match list walk, descriptor acceptance, unlinking
 *	event.c	 event records, operations between START and END
 *	copy.c	 memory for the bytes of short puts that cannot leave at once
 *	tx.c	 put and get: lanes, send queues, reservations, responses received
 *	rx.c	 requests received: delivery, responses sent
 *	xfer.c	 long transfers: transfer table, windows, the movers
 *	peer.c	 birth and death of peers, lanes
 *	ids.c	 finding the peer that has an id
 *	host.c	 memory of the host segment: event rings, pendings
 *	faulty.c a wire for tests (wire.h), with frame.c, faults.c and crc.c below it
 *	mirror.c the control block's gauges, for tools
 *	why.c	 reasons of requests that come to nothing, for the log and for tools
 *	dump.c	 tables as text, for people
 *	trace.c	 trace records (shm/trace.h)
 */
#ifndef P3_NIC_FW_H
#define P3_NIC_FW_H

#include "nic/state.h"
#include "shm/fault.h"
#include "shm/fence.h"
#include "shm/probe.h"

/* ---- trace.c: called through P3_TRACE only, ---- */

void p3_trace_start(struct p3_nic *n); /* except this one */

/* Record an action of the firmware, with its present topic (fw), or of a host thread
 * (host). */
P3_TRACED void p3_trace_fw(
	struct p3_nic *n, enum p3_trace_point point, uint32_t value, uint64_t detail);
P3_TRACED void p3_trace_host(
	struct p3_nic *n, enum p3_trace_point point, uint32_t value, uint64_t detail);

P3_TRACED void p3_trace_command(struct p3_nic *n, struct p3_cmd *c);
P3_TRACED void p3_trace_execute(struct p3_nic *n, const struct p3_cmd *c);
P3_TRACED void p3_trace_lease(struct p3_nic *n, enum p3_lease_holder who);
P3_TRACED void p3_trace_given(struct p3_nic *n);
/* Record a request at the current position of a lane. */
P3_TRACED void p3_trace_send(
	struct p3_nic *n, const struct p3_peer *p, uint64_t word0, uint64_t length);
P3_TRACED void p3_trace_take(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t length);
P3_TRACED void p3_trace_match(
	struct p3_nic *n, struct p3_peer *p, bool hit, uint64_t bits);
P3_TRACED void p3_trace_wait(struct p3_nic *n, struct p3_peer *p, uint32_t kind);
P3_TRACED void p3_trace_delivered(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, uint64_t length);
P3_TRACED void p3_trace_begin(struct p3_nic *n, struct p3_pull *pull);
/* Change the topic to one that p3_trace_keep saved, and record an action. */
P3_TRACED void p3_trace_about(struct p3_nic *n, struct p3_topic topic,
	enum p3_trace_point point, uint32_t value, uint64_t detail);

static inline void p3_trace_keep(struct p3_nic *n, struct p3_topic *topic_out)
{
	*topic_out = n->trace.topic;
}

static inline void p3_trace_focus(
	struct p3_nic *n, struct p3_topic topic, uint32_t command)
{
	n->trace.topic = topic;
	n->trace.command = command;
}

/* ---- object.c ---- */

void p3_table_init(struct p3_table *t, uint32_t elem);
void *p3_table_at(struct p3_table *t, uint32_t index); /* NULL beyond the end */
void *p3_table_alloc(struct p3_table *t);              /* NULL: grow the table first */
void p3_table_release(struct p3_table *t, struct p3_object *o);
/* Release an object in two steps: kill makes its handle invalid; bury makes its place
 * reusable. */
void p3_table_kill(struct p3_table *t, struct p3_object *o);
void p3_table_bury(struct p3_table *t, struct p3_object *o);
void p3_table_add(struct p3_table *t, void *chunk);

int p3_fw_ni_open(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_ni_close(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_ni_check(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_me_attach(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_me_unlink(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_md_attach(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_md_bind(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_md_unlink(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_md_update(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_ac_entry(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_ni_status(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_whose(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_eq_alloc(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_eq_free(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_eq_bury(struct p3_nic *n, struct p3_cmd *c);

/* Take a descriptor off its entry and free it; free the entry, too, if it is to be
 * unlinked automatically. */
void p3_fw_md_drop(struct p3_nic *n, struct p3_md *md);
void p3_fw_drop_all(struct p3_nic *n); /* Free iovec copies and tables when the NIC
				        * ends. */

static inline struct p3_ni *p3_ni_of(struct p3_nic *n, const struct p3_object *o)
{
	return &n->ni[o->ni];
}

static inline bool p3_lives(const struct p3_object *o, uint32_t gen)
{
	return p3_get(&o->gen) == gen;
}

/* Return the live object of this kind that a handle names, from its table, or NULL. */
static P3_HOT void *p3_named_in(struct p3_table *t, enum p3_kind kind, uint64_t handle)
{
	if (p3_unlikely(p3_handle_kind(handle) != kind))
		return NULL;
	struct p3_object *o = p3_table_at(t, p3_handle_index(handle));
	uint32_t gen = p3_handle_gen(handle);
	if (p3_unlikely(!o || !(gen & 1) || !p3_lives(o, gen) ||
			o->ni != p3_handle_ni(handle)))
		return NULL;
	return o;
}

/* Do as p3_named_in(), in the table that belongs to the kind. */
void *p3_fw_named(struct p3_nic *n, enum p3_kind kind, uint64_t handle);

static inline uint64_t p3_handle_of(enum p3_kind kind, const struct p3_object *o)
{
	return p3_handle(kind, o->ni, o->index, p3_get(&o->gen));
}

/* ---- index.c ---- */

/* Insert an entry before or after base, or as the only one of the portal index that the
 * entry names. */
void p3_match_list_insert(
	struct p3_ni *ni, struct p3_me *me, struct p3_me *base, uint32_t position);
void p3_match_list_remove(struct p3_ni *ni, struct p3_me *me);

/* ---- rx.c: fields of a request's header ---- */

static inline uint64_t p3_request_who(const struct p3_peer *p, uint32_t flags)
{
	return p3_pair(p->pid[flags & P3_F_NI1 ? 1 : 0], p->nid);
}

/* Return the interface that has this pid, or NULL. */
static inline struct p3_ni *p3_fw_interface(struct p3_nic *n, uint32_t pid)
{
	for (uint32_t i = 0; i < P3_JOB_NIS; i++)
		if (p3_likely((p3_get(&n->ni[i].gen) & 1) && n->ni[i].pid == pid))
			return &n->ni[i];
	return NULL;
}

/* ---- ahead.c ---- */

#ifndef P3_LONG
#define P3_LONG 1024u /* shorter lists fit the near cache */
#endif

/* Prefetch for later requests, just before the current one, of ncells cells, is
 * matched. */
__attribute__((noinline)) void p3_fw_look_ahead(
	struct p3_nic *n, struct p3_peer *p, uint32_t ncells);
/* Forget prefetched buckets, because they are about to be freed. */
void p3_fw_look_no_more(struct p3_nic *n);

/* ---- match.c ---- */

/* The parameters of a request, from the lane or from this node itself. */
struct p3_ask {
	uint8_t kind; /* p3_req_kind */
	uint32_t pt_index;
	uint32_t ac_index;
	uint64_t bits;
	uint64_t hdr;
	uint64_t remote_offset;
	uint64_t length;
	uint64_t who;   /* the initiator, pid:nid */
	uint64_t owner; /* its owner, jid:uid */
};

/* Return the options that a descriptor needs for this kind of request.  A table of them
 * would touch one page more. */
static inline uint32_t p3_ask_needs(uint8_t kind)
{
	return (kind == P3_REQ_GET ? 0 : PTL_MD_OP_PUT) |
	       (kind == P3_REQ_PUT ? 0 : PTL_MD_OP_GET);
}

struct p3_hit {
	struct p3_md *md;
	uint64_t offset;
	uint64_t mlength;
};

bool p3_fw_match(struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out);
/* Return true if the access control list admits the request. */
bool p3_fw_allows(const struct p3_ni *ni, const struct p3_ask *ask);

static inline void p3_fw_exhaust(struct p3_md *md)
{
	md->active = false;
	md->exhausted = true;
}

static inline void p3_fw_threshold(struct p3_md *md)
{
	/* a threshold that is not above 0 is infinite or used up */
	if (p3_unlikely(md->threshold > 0) && --md->threshold == 0)
		p3_fw_exhaust(md);
}

static inline uint64_t p3_max_size(const struct p3_md *md)
{
	return md->snap[3];
}

/* Account for the operation on the descriptor: threshold, local offset, activity. */
static inline void p3_fw_commit(struct p3_md *md, const struct p3_hit *hit)
{
	p3_fw_threshold(md);
	if (md->sink.options & PTL_MD_MANAGE_REMOTE)
		return;
	md->local_offset += hit->mlength;
	if ((md->sink.options & PTL_MD_MAX_SIZE) &&
		md->region.size - md->local_offset < p3_max_size(md))
		p3_fw_exhaust(md);
}

static inline bool p3_fw_may_unlink(const struct p3_md *md)
{
	return p3_unlikely(md->exhausted && md->unlink);
}

/*
 * At most this number of bytes is copied in place where nodes share CPUs, and each
 * instruction and page counts.  Between two CPUs memcpy is as good, and better for
 * messages of two cells (docs/design/lanes.md).
 */
#define P3_FEW 64u

/* Copy by two blocks of k bytes, which touch or overlap; all is read before any is
 * written. */
#define P3_COPY_ENDS(k)                                                                  \
	if (p3_likely(len >= (k))) {                                                     \
		char head[k], tail[k];                                                   \
		memcpy(head, from, (k));                                                 \
		memcpy(tail, from + len - (k), (k));                                     \
		memcpy(to, head, (k));                                                   \
		memcpy(to + len - (k), tail, (k));                                       \
		return;                                                                  \
	}

/* Return base + offset.  An empty region may begin at NULL, where C knows no sum. */
static inline char *p3_sum(char *base, uint64_t offset)
{
	return (char *)((uintptr_t)base + offset);
}

/* Copy at most P3_FEW bytes. */
static P3_HOT void p3_copy_few(char *to, const char *from, uint64_t len)
{
	P3_COPY_ENDS(32)
	P3_COPY_ENDS(16)
	P3_COPY_ENDS(8)
	P3_COPY_ENDS(4)
	P3_COPY_ENDS(2)
	P3_COPY_ENDS(1)
}

static inline bool p3_copies_few(
	const struct p3_nic *n, const struct p3_region *r, uint64_t len)
{
	return n->crowded && len <= P3_FEW && !r->iov;
}

/* Copy bytes between a region and plain memory. */
void p3_region_write(
	const struct p3_region *r, uint64_t off, const void *src, uint64_t len);
void p3_region_read(const struct p3_region *r, uint64_t off, void *dst, uint64_t len);
/* Return the address at off; *len_out is the length of the contiguous piece there. */
char *p3_region_at(const struct p3_region *r, uint64_t off, uint64_t *len_out);
struct p3_bounds p3_region_bounds(const struct p3_region *r, uint64_t off, uint64_t len);
bool p3_bounds_meet(
	struct p3_bounds b, const struct p3_region *r, uint64_t off, uint64_t len);
/* Return true if the bytes of r have any in common with flen bytes of another region,
 * few, and set the range of these common bytes, counted from off. */
bool p3_region_common(const struct p3_region *few, uint64_t foff, uint64_t flen,
	const struct p3_region *r, uint64_t off, uint64_t len,
	struct p3_range *range_out);
/* List the pieces that the bytes lie in, at most "most".  Return their number. */
unsigned p3_region_iovecs(const struct p3_region *r, uint64_t off, uint64_t len,
	struct iovec *out, unsigned most);

/* ---- event.c ---- */

/* Set one word of an event that is being written, in its queue or elsewhere. */
static inline void p3_say(struct p3_event_words *rec, int i, uint64_t word)
{
	p3_release(&rec->w[i], word); /* EVQ.2 */
}

/* Set words 5..10: the descriptor as it is after the operation's accounting. */
static inline void p3_say_md(struct p3_event_words *rec, const struct p3_md *md)
{
#pragma GCC unroll 5
	for (int i = 0; i < 5; i++)
		p3_say(rec, P3_W_MD + i, md->snap[i]);
	p3_say(rec, P3_W_MD + 5, md->snap[5] | (uint32_t)md->threshold);
}

static inline void p3_say_who(
	struct p3_event_words *rec, ptl_process_id_t id, uint32_t uid, uint32_t jid)
{
	p3_say(rec, 11, p3_pair(id.pid, id.nid));
	p3_say(rec, 12, p3_pair(jid, uid));
}

/* Set link, kind and portal index.  Each operation has its own link; kind 0: set
 * later. */
static inline void p3_say_what(
	struct p3_event_words *rec, uint32_t link, uint32_t pt_index, uint32_t kind)
{
	p3_say(rec, 13, (uint64_t)link << 32 | kind);
	p3_say(rec, 14, (uint64_t)pt_index << 32);
}

/* Return the sink's queue, or NULL if it has none or the queue was freed. */
static inline struct p3_eq *p3_sink_eq(const struct p3_sink *sink)
{
	return p3_likely(sink->eq && p3_lives(&sink->eq->o, sink->eq_gen)) ? sink->eq
									   : NULL;
}

/* Return true if the descriptor enables this event; ACK and UNLINK are always enabled. */
static inline bool p3_wants(const struct p3_sink *sink, ptl_event_kind_t kind)
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
static inline struct p3_eq *p3_sink_for(const struct p3_sink *sink, ptl_event_kind_t kind)
{
	return p3_likely(p3_wants(sink, kind)) ? p3_sink_eq(sink) : NULL;
}

/* Begin a queue's next event; the caller writes all of it, then posts it. */
static inline struct p3_event_record *p3_event_begin(struct p3_eq *eq)
{
	struct p3_event_record *e = p3_evq_begin(&eq->tx);
	FAULT_POINT("event.begun");
	return e;
}

static inline void p3_event_post(
	struct p3_nic *n, struct p3_eq *eq, struct p3_event_record *e, uint32_t kind)
{
	FAULT_POINT("event.written");
	P3_TRACE(fw, n, P3_TRACE_EVENT, kind,
		p3_pair(eq->o.index, (uint32_t)eq->tx.tail + 1));
	p3_evq_commit(&eq->tx, e);
	FAULT_POINT("event.posted");
	P3_PROBE2(event, kind, eq->tx.tail);
	n->posted = true;
}

/* Post an event made of rec, kind and failure, if the descriptor enables it. */
void p3_fw_event(struct p3_nic *n, const struct p3_sink *sink,
	const struct p3_event_words *rec, ptl_event_kind_t kind, uint32_t fail);

/* Return true if the automatic unlinking posts no UNLINK: an interface of Cray's kind
 * posts it only for descriptors that request it. */
static inline bool p3_unlinks_silently(const struct p3_md *md)
{
	const uint32_t both = P3_MD_CRAY | PTL_MD_EVENT_AUTO_UNLINK_ENABLE;
	return (md->sink.options & both) == P3_MD_CRAY;
}

/* Post the event of a completed operation on md, then unlink md automatically. */
void p3_fw_event_unlinks(struct p3_nic *n, struct p3_md *md, const struct p3_sink *sink,
	const struct p3_event_words *rec, ptl_event_kind_t kind, uint32_t fail);

/* Post the event of a completed operation on md, and unlink md if that is due. */
static inline void p3_fw_event_ends(struct p3_nic *n, struct p3_md *md,
	const struct p3_sink *sink, const struct p3_event_words *rec,
	ptl_event_kind_t kind, uint32_t fail)
{
	if (p3_fw_may_unlink(md))
		p3_fw_event_unlinks(n, md, sink, rec, kind, fail);
	else
		p3_fw_event(n, sink, rec, kind, fail);
}

/* Make an event of a record.  Each word of the record is read once and used at once,
 * since all words together would not fit the CPU's registers. */
static inline void p3_event_from_record(
	const struct p3_event_words *rec, uint64_t sequence, uint64_t eq, ptl_event_t *ev)
{
	uint64_t w = p3_acquire(&rec->w[13]); /* EVQ.2, also all that follow */
	ev->type = (ptl_event_kind_t)(w & 0xff);
	ev->link = (ptl_seq_t)(w >> 32);
	ev->unlinked = (int)(w >> 8 & 1);
	w = p3_acquire(&rec->w[14]);
	ev->pt_index = (uint32_t)(w >> 32);
	ev->ni_fail_type = (ptl_ni_fail_t)(uint32_t)w;
	w = p3_acquire(&rec->w[11]);
	ev->initiator =
		(ptl_process_id_t){.nid = (uint32_t)w, .pid = (uint32_t)(w >> 32)};
	w = p3_acquire(&rec->w[12]);
	ev->uid = (uint32_t)w;
	ev->jid = (uint32_t)(w >> 32);
	ev->match_bits = p3_acquire(&rec->w[0]);
	ev->rlength = p3_acquire(&rec->w[1]);
	ev->mlength = p3_acquire(&rec->w[2]);
	ev->offset = p3_acquire(&rec->w[3]);
	ev->hdr_data = p3_acquire(&rec->w[4]);
	ev->md_handle = p3_acquire(&rec->w[5]);
	ev->md.start = (void *)(uintptr_t)p3_acquire(&rec->w[6]);
	ev->md.length = p3_acquire(&rec->w[7]);
	ev->md.max_size = p3_acquire(&rec->w[8]);
	ev->md.user_ptr = (void *)(uintptr_t)p3_acquire(&rec->w[9]);
	w = p3_acquire(&rec->w[10]);
	ev->md.threshold = (int32_t)(uint32_t)w;
	ev->md.options = (uint32_t)(w >> 32);
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

/* Begin an operation on md at offset.  The caller fills in span->rec, and counts the
 * operation in md's threshold (p3_fw_threshold). */
void p3_span_begin(struct p3_span *span, struct p3_md *md, uint64_t offset);
void p3_span_start(struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind);
/* Post the operation's END, and unlink the descriptor if that is due. */
void p3_span_end(
	struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind, uint32_t fail);
/* Drop an operation without END: its interface closes, and its memory must not be
 * touched. */
void p3_span_forget(struct p3_span *span);
/* Drop a reference to a copy of iovec elements; the last one frees the copy.  NULL is
 * allowed. */
void p3_iov_drop(struct p3_iov *iov);
/* Count (owe) or no longer count (forgive) md's UNLINK event, which waits until all
 * operations on md have ended, among the events that the firmware owes to md's queue. */
void p3_md_owe_unlink(struct p3_md *md);
void p3_md_forgive_unlink(struct p3_md *md);

/* ---- copy.c ---- */

/*
 * A put or an exchange of at most this many bytes has SEND_END when it returns, while
 * the P3_COPIES_LEN bytes of copies last: see copy.c.  Longer puts leave their bytes in
 * place, and so do those from a shared heap that the target reads: p3_xfer_is_faster().
 */
#define P3_SHORT_MOST 8192u
#define P3_COPIES_LEN (4u << 20)
int p3_copies_start(struct p3_nic *n);
void p3_copies_stop(struct p3_nic *n);
/* Return memory for at most P3_SHORT_MOST bytes on their way to p, or NULL if there is
 * none. */
char *p3_copy_alloc(struct p3_nic *n, struct p3_peer *p, uint64_t len);
void p3_copy_free(struct p3_nic *n, struct p3_peer *p, const char *copy);
/* Count a copy for another peer than before. */
void p3_copy_readdress(
	struct p3_nic *n, struct p3_peer *from, struct p3_peer *to, const char *copy);

/* ---- tx.c ---- */

int p3_fw_put(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_get(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_getput(struct p3_nic *n, struct p3_cmd *c);
/* End the operation of a command that found no room among the pendings, and whose
 * poster does not wait for a return code: the operation's events say that it failed. */
P3_RARE void p3_fw_refuse(struct p3_nic *n, struct p3_cmd *c);
void p3_fw_push(struct p3_nic *n, struct p3_peer *p); /* send from the queue while
						       * there is room */
/* Call this when a peer has come or has other ids: move requests that waited for their
 * targets to the queues of these, in order, before any later request can go there. */
void p3_fw_readdress(struct p3_nic *n);
/* Fail the held requests whose target will not join any more. */
void p3_fw_give_up(struct p3_nic *n);
/* Copy the bytes of the short puts that keep a descriptor in use because their targets
 * are not there yet.  Return false if other operations keep it in use, or there is no
 * memory for a copy.  The last SEND_END may unlink the descriptor: look its handle up
 * again. */
P3_RARE bool p3_fw_let_go(struct p3_nic *n, struct p3_md *md);
void p3_fw_unblock(struct p3_nic *n);
bool p3_fw_take_response(struct p3_nic *n, struct p3_peer *p);
/* Return true if a response is there.  A response comes only for a request that has
 * reserved room for it.  While there is no reservation the ring is not looked at, which
 * saves a cache line; a switch cell or nonsense in it waits for the next
 * reservation. */
static inline bool p3_fw_has_response(struct p3_peer *p)
{
	uint64_t w0;
	return p3_unlikely(p->rsp_used) && p3_ring_peek(&p->rsp_in, &w0);
}
static inline void p3_fw_take_responses(struct p3_nic *n, struct p3_peer *p)
{
	while (p3_unlikely(p3_fw_has_response(p)))
		if (!p3_fw_take_response(n, p))
			break;
}
void p3_fw_get_done(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
void p3_fw_fail_pending(struct p3_nic *n, struct p3_pending *t, bool died);
void p3_fw_forget(struct p3_nic *n, uint32_t ni);

/* ---- rx.c ---- */

/* Take one request off the lane.  Return false if there is none, or it must wait. */
bool p3_fw_take_request(struct p3_nic *n, struct p3_peer *p);
/* Return true if a waiting exchange must go before other requests. */
bool p3_fw_swap_waits(struct p3_nic *n);
/* Take the peer's requests.  Return true if one of them waits for an interface of this
 * node to settle. */
bool p3_fw_settles(struct p3_nic *n, struct p3_peer *p);
/* Discard the request of a dead or departed peer that would have to wait.  Return false
 * if there is none. */
bool p3_fw_refuse_request(struct p3_nic *n, struct p3_peer *p);
void p3_fw_drop(struct p3_nic *n, struct p3_ni *ni, uint64_t length);
/* A response of one cell; flags P3_F_ACK: DONE with acknowledgement. */
struct p3_answer {
	enum p3_rsp_kind kind;
	uint32_t flags;
	uint32_t pending;
	uint32_t status;
	uint64_t mlength;
	uint64_t extra[3];
};
void p3_fw_respond(struct p3_nic *n, struct p3_peer *p, const struct p3_answer *a);

/*
 * ---- xfer.c ----
 *
 * Memory ordering of long transfers, between processes:
 *	XFER.1	id: owner releases after address, length and bytes are final -> reader
 *		acquires; the owner changes it before the bytes may go, and the reader
 *		looks again after every slice, before the slice counts (a load fence
 *		between)
 *	XFER.2	produced: owner releases (the window is filled) -> reader acquires;
 *		bulk_read: reader releases (the window was read) -> owner acquires
 *	XFER.3	released: initiator of a get releases (it has read all) -> target
 *		acquires, in each pass and before it takes a request of that initiator
 *	XFER.4	bulk_slot: reader releases (want and read are set) -> owner acquires
 *	XFER.5	Dekker, between the first cross-memory read of a put and a getput at its
 *		source: reader stores reading, fences lightly, acquires swapping, reads,
 *		releases reading; the owner stores swapping, fences heavily, acquires
 *		reading, exchanges, releases swapping.  Without it the put could carry
 *		one half of an exchange.
 *	XFER.6	seqlock, for readers that have begun: the owner makes again odd, fences,
 *		names the bytes that change, exchanges them, or gives their window to
 *		another transfer, releases again even.  A reader looks at it with the id
 *		(XFER.1): if it has changed, the slice does not count.  Earlier slices
 *		count, except the bytes of a change of which the reader has only a part;
 *		if those must not be read again the transfer fails.  Without this edge
 *		the put could carry half an exchange, or exchanges and other readers
 *		would wait for a stopped reader.  In the other direction the reader
 *		sets bulk_read to the place where it continues, then releases
 *		bulk_again; the owner acquires bulk_again, then bulk_read, and fills the
 *		window from there.  Without it a late word about the earlier bytes would
 *		let the owner overwrite unread ones.
 */

/* Return the peer's published half of a slot; the caller has range-checked the number. */
static inline const struct p3_xfer *p3_peer_xfer(
	const struct p3_nic *n, const struct p3_peer *p, uint64_t id)
{
	return (const struct p3_xfer *)(p->image + n->layout.xfers_off) + (uint32_t)id;
}

/*
 * Return true if the target may fetch these bytes, though they fit the lane, sooner than
 * one CPU puts them into cells and another takes them out: from a heap that it has
 * mapped, or with a cross-memory read (docs/design/transfers.md).  The caller asks only
 * where a SEND_END tells the program when the bytes may change; a put without one has
 * copied its bytes when the call returns.
 */
#define P3_EAGER_MOST_HEAP 1536u
#define P3_EAGER_MOST      P3_SHORT_MOST
bool p3_xfer_is_faster(const struct p3_nic *n, const struct p3_peer *p,
	const struct p3_region *r, uint64_t off, uint64_t len);
void p3_xfer_start(struct p3_nic *n);
enum p3_xfer_class { P3_X_OWN, P3_X_SERVE };
struct p3_xfer_slot *p3_xfer_alloc(
	struct p3_nic *n, struct p3_peer *p, enum p3_xfer_class class);
void p3_xfer_publish(struct p3_nic *n, struct p3_xfer_slot *x);
void p3_xfer_free(struct p3_nic *n, struct p3_xfer_slot *x);
/* Stop all reads of a slot's bytes, which are the program's alone from now on.  The
 * slot stays in use until the peer answers. */
void p3_xfer_withdraw(struct p3_nic *n, struct p3_xfer_slot *x);
static inline uint64_t p3_xfer_name(const struct p3_xfer_slot *x)
{
	return p3_xfer_id(x->slot, x->gen);
}
struct p3_pull *p3_pull_alloc(struct p3_nic *n, struct p3_peer *p);
/* Return true if the bytes lie in the source's heap and that is mapped here. */
bool p3_xfer_sees_heap(const struct p3_pull *pull);
void p3_pull_begin(struct p3_nic *n, struct p3_pull *pull);
void p3_fw_move(struct p3_nic *n);   /* move a slice of every pull that can go on */
void p3_fw_source(struct p3_nic *n); /* fill windows, notice releases */
void p3_fw_end_pull(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
/* Serve a get of the peer from this slot until its END. */
void p3_xfer_serve(struct p3_xfer_slot *x, uint64_t peer_id);
void p3_xfer_finish_serving(struct p3_nic *n, struct p3_xfer_slot *x, uint32_t fail);
/* Post the END of each get that the peer has released. */
void p3_xfer_end_served(struct p3_nic *n, struct p3_peer *p);
void p3_xfer_forget(struct p3_nic *n, uint32_t ni);
#define P3_SWAP_NS 50000000u /* longest wait of an exchange for transfers */
/* Return true if these few bytes may be exchanged now, or false while a long transfer
 * that has begun and is moving reads or writes some of them.  waited is the time that
 * the exchange has waited, in ns; after P3_SWAP_NS only a transfer without a side of
 * its own (see "exchanges of bytes that come" in xfer.c) holds it up.  After true:
 * exchange, then call p3_xfer_swapped. */
bool p3_xfer_may_swap(struct p3_nic *n, const struct p3_region *r, uint64_t off,
	uint64_t len, uint64_t waited);
void p3_xfer_swapped(struct p3_nic *n);
/* Call this while there are pulls, after an operation other than a pull or an exchange
 * has written these bytes: pulls forget what had lain there (struct p3_edge). */
P3_RARE void p3_xfer_wrote(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len);
/* Stop all reads of this process's memory when the NIC stops. */
void p3_xfer_revoke_all(struct p3_nic *n);

/* ---- peer.c ---- */

/* Return the word that a node sleeps on. */
static inline p3_a32 *p3_asleep_of(
	const struct p3_nic *n, uint32_t node, struct p3_doorbell *doorbell)
{
	struct p3_sleeper *all = n->conf.sleepers;
	return all ? &all[node].asleep : &doorbell->asleep;
}

int p3_fw_peer_up(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_peer_pids(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_peer_down(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_peer_told(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_peer_over(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_held(struct p3_nic *n, struct p3_cmd *c);
/* Return the peer that has this nid, or in a domain this id, or NULL. */
struct p3_peer *p3_fw_find(struct p3_nic *n, ptl_process_id_t who);
bool p3_fw_ready(struct p3_nic *n, struct p3_peer *p);
/* Tell the peer in which ways this node can fetch its puts.  Call this again when one
 * of them turns out to be refused. */
void p3_fw_say_reads(struct p3_nic *n, struct p3_peer *p);
bool p3_fw_full_ring_ok(
	struct p3_nic *n, const struct p3_peer *p, uint64_t off, uint32_t cells);
bool p3_fw_acked(struct p3_peer *p);
bool p3_fw_look_for_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k);
/* Return true if there is room for k cells.  Load the peer's credit only if the last
 * known one does not suffice. */
static inline bool p3_fw_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k)
{
	return p3_likely(p3_ring_fits(r, k + p3_ring_pad(r, k))) ||
	       p3_fw_look_for_room(p, r, k);
}
bool p3_fw_grow_requests(struct p3_nic *n, struct p3_peer *p); /* true: it has grown */
void p3_fw_grow_responses(struct p3_nic *n, struct p3_peer *p);
bool p3_fw_arena(struct p3_nic *n, uint64_t len, uint64_t align, uint64_t *off_out);
void p3_fw_bad_peer(struct p3_nic *n, struct p3_peer *p, const char *what);
void p3_fw_lose_bad(struct p3_nic *n);
void p3_fw_heat(struct p3_nic *n, struct p3_peer *p);
void p3_fw_cool(struct p3_nic *n);
void p3_fw_answer_doorbell(struct p3_nic *n);
void p3_fw_sweep(struct p3_nic *n);

/* ---- ids.c ---- */

int p3_ids_make(struct p3_nic *n);
void p3_ids_drop(struct p3_nic *n);
void p3_ids_renew(struct p3_nic *n); /* a peer has come, or has other ids */
struct p3_peer *p3_ids_find(struct p3_nic *n, ptl_process_id_t who);
/* Return true if a process with this id, which p3_ids_find() does not find, may still
 * join the domain.  Return false if the rank with this nid has joined without the id. */
bool p3_ids_may_come(const struct p3_nic *n, ptl_process_id_t who);
/* Note that the rank of the job with this nid has ended. */
void p3_ids_end(struct p3_nic *n, uint32_t nid);
int p3_fw_list(struct p3_nic *n, struct p3_cmd *c);

/* ---- pass.c ---- */

#define P3_PASS_MSGS 16u

/* Return the weight of a pass: one that took more messages counts as several. */
static inline uint32_t p3_fw_share(const struct p3_nic *n)
{
	return 1 + n->msgs / (2 * P3_PASS_MSGS);
}

int p3_fw_exec(struct p3_nic *n, struct p3_cmd *c);
void p3_fw_mail(struct p3_nic *n); /* execute all posted commands */
/* Run one pass.  Return true if it found work and may have left as much. */
bool p3_fw_pass(struct p3_nic *n);
/* Give up the lease, fence, and look for sleepers to wake, cold lanes to ring for, and
 * commands in the mailbox. */
void p3_fw_leave(struct p3_nic *n);
/* Do the fence and the looks at sleepers and cold lanes of p3_fw_leave(), while a
 * thread holds the lease for long. */
void p3_fw_look(struct p3_nic *n);
void p3_fw_warn_refused(void); /* (any) */
/* (any) Fence before this thread sleeps or stops polling a lane: by the heavy fence of
 * the kernel, or by a full one of this CPU if no thread uses light fences. */
static inline void p3_fw_fence(struct p3_nic *n, bool (*heavy)(void))
{
	if (!n->conf.membarrier)
		p3_fence();
	else if (p3_unlikely(!heavy()))
		p3_fw_warn_refused();
}
void p3_wake_peer(struct p3_nic *n, p3_a32 *asleep);
void p3_wake_hosts(struct p3_nic *n);
/* Make sleeping threads look again soon, because work has begun for which no peer rings
 * the doorbell. */
void p3_fw_rouse(struct p3_nic *n);

static inline void p3_fw_touch(struct p3_nic *n, struct p3_peer *p)
{
	if (p->touched)
		return;
	if (p3_unlikely(n->ntouched == P3_TOUCHED))
		p3_fw_look(n);
	p->touched = true;
	n->touched[n->ntouched++] = p;
}

static inline bool p3_fw_enter(struct p3_nic *n, enum p3_lease_holder who)
{
	if (p3_unlikely(!p3_lease_take(&n->lease, who)))
		return false;
	p3_count(&n->count[who == P3_LEASE_NIC ? P3_C_LEASE_NIC : P3_C_LEASE_HOST], 1);
	FAULT_POINT("lease.taken");
	P3_TRACE(lease, n, who);
	if (p3_unlikely(p3_mbx_any(n->mailbox)))
		p3_fw_mail(n);
	return true;
}

/* ---- mirror.c ---- */

#define P3_MIRROR_PASSES 4096u /* a power of two */

/* Write the gauges as they are now.  next is the holder of the lease after this call:
 * the caller, or P3_LEASE_FREE if it is about to leave. */
P3_RARE void p3_fw_mirror(struct p3_nic *n, enum p3_lease_holder next);
void p3_fw_mirror_peer(struct p3_peer *p, uint64_t now_ns);
/* A peer is gone: show that nothing waits for it. */
void p3_fw_mirror_lost(struct p3_peer *p);
void p3_fw_mirror_queue(struct p3_nic *n, const struct p3_eq *eq);
void p3_fw_mirror_no_queue(struct p3_nic *n, const struct p3_eq *eq);
/* Write the settings in effect, once. */
void p3_mirror_conf(struct p3_nic *n);

/* The events or the result that a thread waits for. */
struct p3_wants {
	enum p3_wait_kind kind;
	uint32_t n;
	const uint64_t *handles; /* COMMAND: its p3_op */
};

/* (any) Take a line for the calling thread, which is about to sleep.  Return NULL if
 * there is none left. */
struct p3_wait_line *p3_mirror_wait(struct p3_nic *n, const struct p3_wants *wants,
	uint64_t since_ns, uint64_t deadline_ns);
void p3_mirror_waited(struct p3_wait_line *line);

/* ---- why.c ---- */

/* Report a request that no descriptor accepted.  It is passed by value, so that an
 * accepted request is never in memory. */
P3_RARE void p3_fw_why_dropped(
	struct p3_nic *n, struct p3_peer *p, const struct p3_ni *ni, struct p3_ask ask);
/* Report a put that requested an ACK and was served by a descriptor that gives none. */
P3_RARE void p3_fw_why_no_ack(struct p3_nic *n, struct p3_peer *p, struct p3_ask ask);
/* Report a request of this node that cannot be sent or will not be answered; p may be
 * NULL. */
P3_RARE void p3_fw_why_nowhere(
	struct p3_nic *n, struct p3_peer *p, uint32_t kind, const struct p3_move *m);
/* Report an answer that came after its descriptor, or the descriptor's queue, was
 * freed. */
P3_RARE void p3_fw_why_late(struct p3_nic *n, const struct p3_pending *t);
/* Report that the target of a put could not read the copy of its bytes.  No event tells
 * the program. */
P3_RARE void p3_fw_why_failed(struct p3_nic *n, const struct p3_pending *t);
/* Report that an event was lost because its queue was full, once for each queue. */
P3_RARE void p3_fw_why_lost(struct p3_evq_tx *tx);
/* Log the number of cases of each reason when the NIC stops. */
P3_RARE void p3_fw_why_sum(struct p3_nic *n);

/* ---- dump.c ---- */

int p3_fw_dump(struct p3_nic *n, struct p3_cmd *c);

/* ---- nic.c ---- */

/* Return true if a pull is under way, or a sent message has not been taken yet. */
bool p3_fw_is_restless(struct p3_nic *n);
/* Kick peers that have not looked at their messages from this node. */
void p3_fw_kick_idle(struct p3_nic *n);
void p3_kick_peer(struct p3_nic *n, struct p3_peer *p);

/* ---- call.c ---- */

/* Return a number for the calling thread, never 0. */
uint32_t p3_this_thread(void);

/* ---- host.c ---- */

int p3_host_create(struct p3_nic *n);
void *p3_host_alloc(struct p3_nic *n, uint64_t len); /* Allocate zeroed memory on the
						      * host side. */
/* Return a ring of this number of records, or NULL.  If the ring was used before, its
 * sequence numbers continue (p3_evq_reformat()); if not, its tail is 0. */
struct p3_evq_ring *p3_host_ring(struct p3_nic *n, uint32_t records);
/* Free a ring that no thread takes from any more.  life is the value of n->life when
 * the ring was surely in use. */
void p3_host_ring_free(
	struct p3_nic *n, struct p3_evq_ring *ring, uint32_t records, uint64_t life);
void p3_host_drop(struct p3_nic *n);
/* Exchange the list of freed queues that are not buried yet: add more to it, or, with
 * NULL, take all away.  Return the list as it was before. */
struct p3_eq *p3_host_unburied(struct p3_nic *n, struct p3_eq *more);

#endif
