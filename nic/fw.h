/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fw - the firmware's private structures.  Only nic/ includes this.
 *
 * Everything here is touched by the holder of the lease only, except where a member
 * says (any): then it is an atomic, or constant once others can reach it.
 *
 *	nic.c	 start, stop, the NIC thread (tick, take-over, asleep)
 *	call.c	 host threads: command under the lease or through the mailbox, waiting
 *	pass.c	 one bounded pass, command dispatch, wake-ups at its end
 *	object.c tables of NIs, MEs, MDs, EQs and pendings
 *	index.c	 match lists and their hash index
 *	match.c	 access control, match list walk, descriptor acceptance, unlinking
 *	event.c	 event records, operations between START and END
 *	tx.c	 put and get: lanes, send queues, reservations, responses received
 *	rx.c	 requests received: delivery, responses sent
 *	xfer.c	 long transfers: transfer table, windows, the movers
 *	peer.c	 birth and death of peers, lanes
 *	faulty.c a wire for tests (wire.h), with frame.c, faults.c and crc.c below it
 *	mirror.c what tools outside see of the state: the control block's gauges
 *	dump.c	 tables as text, for people
 *	trace.c	 records of what was done (shm/trace.h)
 */
#ifndef P3_NIC_FW_H
#define P3_NIC_FW_H

#include "nic/nic.h"
#include "nic/wire.h"
#include "shm/fault.h"
#include "shm/fence.h"
#include "shm/lane.h"
#include "shm/lease.h"
#include "shm/mailbox.h"
#include "shm/park.h"
#include "shm/probe.h"
#include "shm/trace.h"

#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>

#define P3_NONE 0xffffffffu

struct p3_nic;
struct p3_peer;

/* ---- trace: what is written of it is in trace.c ---- */

/* The message that records are about: peer (P3_TRACE_IN: its message), and its name. */
struct p3_topic {
	uint32_t peer;
	uint32_t message; /* 0: none */
};

struct p3_trace {
	struct p3_trace_record *hosts;
	struct p3_trace_header *header;
	uintptr_t code;
	uint32_t clock;
	/* firmware */
	uint32_t mask;
	uint64_t head;
	struct p3_topic topic;
	uint32_t command;  /* the record of the one that is executed */
	bool lease_shown;  /* records of a lease that did nothing would hide all others */
	uint8_t lease_who; /* p3_lease_holder */
	uint64_t lease_at;
};

/* A place that is watched: nothing but one branch of n's while the trace is off. */
#define P3_TRACE(what, ...)                                                              \
	do {                                                                             \
		if (__builtin_expect(n->traced != NULL, 0)) {                            \
			p3_trace_##what(__VA_ARGS__);                                    \
			__asm__ __volatile__(""); /* or it returns to the caller */      \
		}                                                                        \
	} while (0)

#define P3_TRACED P3_RARE

/* ---- lists ---- */

struct p3_link {
	struct p3_link *next, *prev;
};

static inline void p3_list_init(struct p3_link *l)
{
	l->next = l->prev = l;
}

static inline bool p3_list_empty(const struct p3_link *l)
{
	return l->next == l;
}

static inline void p3_list_add(struct p3_link *list, struct p3_link *item)
{
	item->prev = list->prev;
	item->next = list;
	list->prev->next = item;
	list->prev = item;
}

static inline void p3_list_del(struct p3_link *item)
{
	item->prev->next = item->next;
	item->next->prev = item->prev;
	item->next = item->prev = item;
}

#define p3_item(link, type, member) ((type *)((char *)(link)-offsetof(type, member)))

/* Goes on safely if the body takes the item itself off the list. */
#define p3_list_each(it, list)                                                           \
	for (struct p3_link *it = (list)->next, *p3_next_ = it->next; it != (list);      \
		it = p3_next_, p3_next_ = it->next)

/* ---- tables: type-stable, grown by chunks that a host call brings ---- */

#define P3_TABLE_CHUNKS 256u
#define P3_TABLE_EACH   1024u

/* First member of every object of a table. */
struct p3_object {
	p3_a32 gen; /* (any) odd while the object lives */
	uint32_t index;
	uint32_t next_free;
	uint32_t ni;
};

struct p3_table {
	uint32_t elem;                 /* bytes of one object */
	p3_a32 nchunks;                /* (any) */
	uint32_t free_head, free_tail; /* oldest first: handles come back late */
	uint32_t live;
	_Atomic(char *) chunk[P3_TABLE_CHUNKS]; /* (any) */
};

/* Each message asks the first two. */
enum p3_table_id { P3_T_MD, P3_T_EQ, P3_T_ME, P3_T_PENDING, P3_TABLES };

/* ---- memory regions ---- */

struct p3_region {
	char *start;
	uint64_t size;      /* bytes in all */
	struct p3_iov *iov; /* NULL: contiguous */
};

/* Addresses between which bytes of a region lie; a hint: for iovecs perhaps too wide. */
struct p3_bounds {
	const char *lo, *hi;
};

/* ---- who asks ---- */

/* Two identifiers in a word, and what an entry wants of them: those that may be any are
 * masked out. */
struct p3_want {
	uint64_t is, mask;
};

static inline uint64_t p3_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static inline struct p3_want p3_want_id(ptl_process_id_t id)
{
	uint32_t pid = id.pid == PTL_PID_ANY ? 0 : UINT32_MAX;
	uint32_t nid = id.nid == PTL_NID_ANY ? 0 : UINT32_MAX;
	return (struct p3_want){p3_pair(id.pid, id.nid), p3_pair(pid, nid)};
}

static inline struct p3_want p3_want_owner(ptl_uid_t uid, ptl_jid_t jid)
{
	uint32_t any_jid = jid == PTL_JID_ANY ? 0 : UINT32_MAX;
	uint32_t any_uid = uid == PTL_UID_ANY ? 0 : UINT32_MAX;
	return (struct p3_want){p3_pair(jid, uid), p3_pair(any_jid, any_uid)};
}

static inline bool p3_is_wanted(struct p3_want want, uint64_t word)
{
	return ((word ^ want.is) & want.mask) == 0;
}

/* ---- objects ---- */

struct p3_eq {
	struct p3_object o;
	struct p3_eq *next_dead; /* on the way to be retired by a host thread */
	struct p3_evq_rx rx;     /* (any) */
	struct p3_evq_tx tx;
	_Atomic(ptl_eq_handler_t) handler; /* (any) */
	p3_a32 ni;                         /* (any) as o.ni */
	uint32_t n;
	uint32_t owed; /* events of operations under way that will come here */
};

/*
 * Words of an event record.  5..10 are the descriptor's snapshot.
 *	0 match_bits  1 rlength  2 mlength  3 offset  4 hdr_data
 *	5 md_handle  6 start  7 length  8 max_size  9 user_ptr  10 options:threshold
 *	11 pid:nid  12 jid:uid  13 link:(unlinked, kind)  14 pt_index:ni_fail_type
 */
enum { P3_W_MD = 5 };

/* Ours among a descriptor's options: it is of an interface of Cray's kind. */
#define P3_MD_CRAY 0x80000000u

/* Where a descriptor's events go, and which. */
struct p3_sink {
	struct p3_eq *eq; /* NULL: nowhere */
	uint32_t eq_gen;  /* of eq when it was named: it may have been freed */
	uint32_t options; /* the user's, and ours */
};

struct p3_md {
	_Alignas(P3_LINE) struct p3_object o;
	struct p3_region region;
	int32_t threshold;
	bool active;      /* may match */
	bool exhausted;   /* became inactive by an operation */
	bool unlink;      /* automatically */
	bool owes_unlink; /* its UNLINK is counted in its queue's owed */
	struct p3_sink sink;
	uint32_t me;      /* index, P3_NONE: free floating */
	uint32_t pending; /* operations between START and END */
	uint64_t local_offset;
	uint64_t snap[6]; /* words 5..10 of its events but for the threshold */
};

_Static_assert(sizeof(struct p3_md) == 2 * P3_CELL, "what a message takes is two lines");

/* A long list is in no cache: one line says whether a request fits. */
struct p3_me {
	_Alignas(P3_LINE) struct p3_object o;
	struct p3_want who; /* pid:nid */
	ptl_match_bits_t bits;
	ptl_match_bits_t ignore;
	struct p3_md *md;
	uint32_t pt_index;
	uint8_t tuple; /* of an indexed list; P3_TUPLES: loose */
	bool unlink;
	/* the other line */
	uint64_t label; /* orders the list */
	struct p3_me *next, *prev;
	struct p3_me *bucket_next, *bucket_prev;
	ptl_process_id_t id;
};

_Static_assert(offsetof(struct p3_me, label) == P3_CELL, "the first line is full");

/* One way to look at requests. */
struct p3_tuple {
	ptl_match_bits_t ignore;
	uint64_t mask;  /* of pid:nid */
	uint64_t first; /* no entry's label is before this */
	uint32_t n;     /* entries */
};

#define P3_TUPLES 16u

struct p3_bucket {
	struct p3_me *head, *tail;
};

struct p3_portal {
	struct p3_me *head, *tail;
	uint32_t n;
	bool indexed;
	uint16_t used;          /* tuples that have entries, a bit each */
	struct p3_bucket loose; /* entries for which no tuple was left */
	struct p3_tuple tuple[P3_TUPLES];
};

static inline uint64_t p3_mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15;
	return x ^ x >> 32;
}

static inline bool p3_label_before(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b) < 0;
}

struct p3_ac {
	struct p3_want who;   /* pid:nid */
	struct p3_want owner; /* jid:uid */
	ptl_pt_index_t pt_index;
	bool valid;
};

/* How many of something an interface has. */
struct p3_use {
	uint32_t cur, max;
	uint64_t made;
};

enum p3_use_id { P3_U_MD, P3_U_EQ, P3_U_ME, P3_U_LIST, P3_U_OP, P3_USES };

struct p3_ni {
	p3_a32 gen; /* (any) odd while open */
	uint32_t pid;
	uint32_t options; /* ours, of all its descriptors */
	ptl_ni_limits_t limits;
	struct p3_portal *portal;
	struct p3_bucket *bucket;
	uint64_t bucket_mask;
	struct p3_ac *ac;
	struct p3_want ac0_owner; /* entry 0's, which most requests name, */
	bool ac0_asks_owner;      /* and it asks for nothing else */
	uint64_t drops, drop_bytes;
	uint64_t received, received_bytes; /* requests accepted */
	uint64_t sent, sent_bytes;         /* requests */
	struct p3_use use[P3_USES];
	uint64_t aligned[PTL_SR_MD_ALIGN_8 - PTL_SR_MD_ALIGN_128 + 1];
};

/* Of requests and entries in which all is alike that this tuple looks at. */
static inline struct p3_bucket *p3_bucket_at(const struct p3_ni *ni,
	const struct p3_tuple *t, uint32_t pt_index, uint32_t tuple,
	ptl_match_bits_t bits, uint64_t who)
{
	uint64_t number = pt_index * P3_TUPLES + tuple;
	uint64_t hash = p3_mix(p3_mix((bits & ~t->ignore) + number) ^ (who & t->mask));
	return &ni->bucket[hash & ni->bucket_mask];
}

static inline void p3_use_more(struct p3_ni *ni, enum p3_use_id id)
{
	struct p3_use *u = &ni->use[id];
	u->made++;
	if (++u->cur > u->max)
		u->max = u->cur;
}

static inline void p3_use_less(struct p3_ni *ni, enum p3_use_id id)
{
	ni->use[id].cur--;
}

/* ---- operations under way ---- */

enum p3_req_kind {
	P3_REQ_PAD = P3_KIND_PAD,
	P3_REQ_SWITCH, /* go on in the full ring */
	P3_REQ_PUT,
	P3_REQ_GET,
	P3_REQ_GETPUT, /* never long: PTL_NI limit max_getput_md fits every lane */
};

/*
 * One operation on one descriptor, from START to END.  The descriptor may be updated
 * meanwhile: what is here stays as it was.
 */
struct p3_span {
	struct p3_md *md; /* cannot go meanwhile; NULL: its interface has closed */
	struct p3_sink sink;
	struct p3_region region;
	uint64_t offset; /* of the bytes in the region */
	bool owed;       /* START or END to come: counted in its queue's owed */
	struct p3_event_words rec;
};

enum p3_rsp_kind {
	P3_RSP_PAD = P3_KIND_PAD,
	P3_RSP_SWITCH,
	P3_RSP_NONE,       /* dropped: the reservation comes back, no event */
	P3_RSP_ACK,        /* eager put accepted */
	P3_RSP_DONE,       /* long put read: SEND_END, and ACK if flagged */
	P3_RSP_REPLY,      /* data inside */
	P3_RSP_REPLY_LONG, /* data to be pulled */
};

/*
 * Requests: word 1 rsp cells:ac:pt:target pid, 2 eager length:pending, 3 match bits,
 * 4 hdr_data, 5 remote offset, 6 and 7 up to 16 bytes of data, or length and transfer.
 * Responses: word 1 status:pending, 2 manipulated length, 3.. up to 40 bytes of data, or
 * transfer, address and place in the heap.  Longer data go on in the cells behind the
 * header.
 */
static inline uint32_t p3_request_pid(uint64_t w1)
{
	return (uint32_t)w1 & 0xffff;
}

static inline uint32_t p3_request_portal(uint64_t w1)
{
	return (uint32_t)(w1 >> 16) & 0xffff;
}

#define P3_REQ_INLINE 16u
#define P3_RSP_INLINE 40u

static inline uint32_t p3_request_cells(uint64_t len)
{
	return len <= P3_REQ_INLINE ? 1 : 1 + (uint32_t)((len - P3_REQ_INLINE + 63) / 64);
}

static inline uint32_t p3_reply_cells(uint64_t len)
{
	return len <= P3_RSP_INLINE ? 1 : 1 + (uint32_t)((len - P3_RSP_INLINE + 63) / 64);
}

enum { P3_F_ACK = 1, P3_F_LONG = 2, P3_F_NI1 = 4, P3_F_HEAP = 8, P3_F_ADDR = 16 };

/*
 * The header of a long put also says where its bytes lie, in the heap (P3_F_HEAP) or in
 * memory (P3_F_ADDR), so that the target need not wait for the slot's line: word 2 has
 * the low half, word 6 the rest, above the length.  With neither flag only the slot
 * knows: they lie here and there, or the place or the length has more bits.
 */
#define P3_PLACE_BITS 48

static inline uint64_t p3_place_of(uint64_t w2, uint64_t w6)
{
	return w6 >> P3_PLACE_BITS << 32 | w2 >> 32;
}

static inline uint64_t p3_long_length(uint32_t flags, uint64_t w6)
{
	return flags & (P3_F_HEAP | P3_F_ADDR)
		       ? w6 << (64 - P3_PLACE_BITS) >> (64 - P3_PLACE_BITS)
		       : w6;
}

enum p3_pending_state {
	P3_PEND_QUEUED, /* in the send queue of its target */
	P3_PEND_SENT,   /* waits for its response */
	P3_PEND_PULLING /* get: data are being read */
};

/* TX pending: one put, get or getput of this node that is not over. */
struct p3_pending {
	struct p3_object o;
	struct p3_link link; /* peer's queue, then peer's outstanding */
	struct p3_peer *peer;
	struct p3_md *md; /* that the ACK or the REPLY is for */
	uint32_t md_gen;
	uint8_t state;
	uint8_t kind; /* p3_req_kind */
	uint8_t ni;
	bool is_long;
	union {
		uint32_t rsp_cells; /* sent: reserved in the response ring */
		uint32_t question;  /* in nobody's queue: whose answer decides */
	};
	struct p3_xfer_slot *xfer;
	struct p3_move move; /* offset: in md, where a reply goes */
	struct p3_span send; /* put, getput */
	struct p3_topic topic;
	uint32_t command; /* its record there, plus 1 */
};

/* What requests call a pending: never 0. */
#define P3_PENDING_INDEX (P3_TABLE_CHUNKS * P3_TABLE_EACH - 1)

static inline uint32_t p3_pending_name(const struct p3_pending *t)
{
	uint32_t gen = p3_get(&t->o.gen) >> 1;
	return (gen | 1u << 13) << 18 | t->o.index;
}

enum p3_mover { P3_MOVE_START, P3_MOVE_BULK, P3_MOVE_CMA, P3_MOVE_DIRECT };

/* One long transfer into this process's memory: its firmware pulls. */
struct p3_pull {
	struct p3_link link; /* n->pulls */
	struct p3_peer *peer;
	struct p3_span span; /* where the bytes go */
	uint64_t xfer_id;    /* at the source */
	uint64_t addr;       /* there, 0: only through a window */
	uint64_t heap;       /* in the source's shared heap, plus 1; 0: not there */
	uint64_t length;     /* to read */
	uint64_t done;       /* of it, from the front */
	uint64_t end;        /* behind this all has been read, too */
	uint64_t again;      /* the source's, when what counts began: see XFER.6 */
	uint64_t moved_ns;   /* when something moved last */
	uint64_t kick_ns;
	uint64_t began_ns; /* 0: not timed */
	enum p3_mover mover;
	enum p3_mover began; /* with, when it is timed */
	bool ack;
	bool announced; /* counted in what we tell the peer that we read */
	bool may_read;  /* and no exchange was under way there: see XFER.5 */
	bool dedicated; /* the peer's own one, not from the pool */
	bool in_use;
	struct p3_pending *get; /* of this node, or NULL: a put into this node */
	uint32_t peer_pending;  /* put: the initiator's pending id */
	struct p3_topic topic;
};

/* What transfers of similar length took lately, 0: not known. */
struct p3_pace {
	uint64_t bulk_ns, cma_ns;
	uint32_t turns;
	bool bulk; /* this run's mover */
};

/* Private half of a slot of the transfer table. */
struct p3_xfer_slot {
	struct p3_link link; /* n->sources while id is published */
	struct p3_xfer *pub; /* own published half */
	struct p3_topic topic;
	uint32_t slot;
	uint32_t looks; /* of sees_ours() */
	uint32_t gen;
	struct p3_peer *peer;
	bool in_use;
	bool releasing;   /* get released: waits for the target to notice */
	bool serving;     /* a get of the peer: span has an END to come */
	bool swapped;     /* an exchange on its bytes is being done */
	uint64_t peer_id; /* serving a get: the initiator's slot; own get: the target's */
	struct p3_span span; /* what may be read: region, offset */
	uint64_t length;
	uint32_t window; /* number, P3_NONE */
	uint64_t produced;
	uint64_t again;
	struct p3_pull pull; /* own get */
};

/* ---- peers ---- */

/* EXPECTED: it lives, but is not mapped here yet; what is sent to it waits. */
enum p3_peer_state { P3_ABSENT, P3_LIVE, P3_GONE, P3_DEAD, P3_EXPECTED };

/* With many peers each message finds its peer's members in a farther cache, line by line:
 * what a lane's poll and a message touch lies in the first three. */
struct p3_peer {
	/* each look at the lane, each request taken */
	_Alignas(P3_LINE) struct p3_ring_rx req_in;
	uint32_t rsp_used; /* cells of its response ring that our requests may need */
	uint32_t rsp_cap;
	uint8_t state;
	bool ready;    /* its lane is for this incarnation of ours */
	bool acked;    /* it has set our credits */
	bool bad;      /* what it wrote makes no sense: not listened to any more */
	bool touched;  /* in n->touched */
	bool hot;      /* in n->hot */
	bool req_full; /* we produce in the full ring */
	uint8_t deep;  /* how many messages a visit takes: see pass.c */
	/* who it is, to whom requests are */
	uint32_t nid;
	uint32_t pid[P3_JOB_NIS];
	uint32_t uid, jid;
	uint32_t quiet; /* looks of p3_fw_cool without news */
	uint32_t nsent, nanswered;
	struct p3_link queue;               /* pendings not sent */
	struct p3_peer_entry *mine;         /* what this node says to the peer */
	const struct p3_peer_entry *theirs; /* and the peer to this node, */
	/* each request sent */
	struct p3_ring_tx req_out;
	const p3_a32 *cold; /* that it does not poll us among them */
	p3_a32 *asleep;     /* the peer's word */
	/* all else */
	struct p3_ring_rx rsp_in;
	struct p3_ring_tx rsp_out;
	struct p3_doorbell *doorbell; /* the peer's */
	struct p3_nic *nic;
	uint32_t index;
	uint32_t os_pid;
	bool cma_off;      /* cross-memory reads do not work here */
	bool rsp_full;     /* as req_full */
	bool blocked;      /* in n->blocked: its send queue waits for room */
	uint32_t waits;    /* the message that the trace has as waiting in its lane */
	uint64_t full_off; /* of the full lane in own arena, 0 not carved */
	uint64_t incarnation;
	uint64_t kick_ns, kick_wait_ns;
	uint64_t passes, passed_ns; /* of its firmware, and when they were fewer */
	uint64_t proof; /* where in its memory its incarnation lies: see xfer.c */
	uint32_t owner; /* its header's, 0: the kernel does not tell its end */
	uint64_t window_at[P3_WINDOWS]; /* windows of its that there is memory behind */
	uint32_t nwindows;
	bool proven;      /* os_pid is its process, until the owner's word changes */
	char *base;       /* its published segment, read-only */
	const void *page; /* of it, beside those of others (shm/seg.h), or NULL */
	struct p3_heap_view heap;   /* its shared heap, read-only */
	struct p3_link outstanding; /* pendings sent */
	struct p3_link blocked_link;
	struct p3_pull *bulk; /* the one of this pair that uses a window */
	struct p3_pull own_pull;
	uint32_t nqueued;  /* pendings in queue, */
	uint32_t nout;     /* and in outstanding, or pulling */
	uint64_t taken;    /* what the peer had taken when that was mirrored last */
	uint32_t npulls;   /* from the shared pool */
	uint32_t nreading; /* pulls announced */
	uint32_t nxfer[2]; /* of the shared slots of each class */
	const char *image; /* base as the wire shows it */
	uint64_t seg_len;  /* bytes at base */
	uint64_t ahead;    /* of req_in: up to here requests were looked at ahead */
};

_Static_assert(offsetof(struct p3_peer, nid) == P3_CELL &&
		       offsetof(struct p3_peer, req_out) == 2 * P3_CELL &&
		       offsetof(struct p3_peer, rsp_in) == 3 * P3_CELL,
	"a message touches three lines of its peer's");

/* Buckets that requests will be looked up in: see ahead.c. */
#define P3_SOON   16u
#define P3_STAGES 4u

struct p3_soon {
	uint32_t n;
	const struct p3_bucket *bucket[P3_SOON];
};

#define P3_TOUCHED 16u
#define P3_ALL_HOT 64u /* up to so many lanes it is as good to poll them all */
#define P3_PULLS   128u

struct p3_id {
	uint64_t key; /* pid and nid */
	struct p3_peer *peer;
};

struct p3_ids {
	uint32_t mask;
	struct p3_id at[];
};

struct p3_host; /* layout of the host segment, host.c */

struct p3_nic {
	/* (any) */
	struct p3_lease lease;
	_Alignas(P3_LINE) p3_a32 parked; /* host threads asleep or about to be */
	p3_a32 waiting;                  /* host threads inside a blocking call */
	p3_a32 closing;
	p3_a32 news;    /* private futex: bumped for parked threads */
	p3_a64 drained; /* passes that found nothing left */
	p3_a32 nic_asleep;
	p3_a32 alive;    /* live peers, this node included */
	p3_a32 watcher;  /* a host thread sleeps on the doorbell */
	p3_a32 emptied;  /* nodes share CPUs, and the last pass left nothing, it seems */
	p3_a32 detached; /* mailbox slots that nobody waits for, */
	p3_a32 hungry;   /* and the first of those whose command waits for memory */
	struct p3_nic_conf conf;
	struct p3_layout layout;
	struct p3_seg published, doorbell_seg, host_seg[2];
	struct p3_doorbell *doorbell;
	p3_a32 *asleep; /* p3_asleep: whom peers wake here */
	struct p3_mailbox *mailbox;
	struct p3_idle_policy idle;
	uint64_t kick_after_ns;
	uint64_t tick_ns;
	bool may_rest; /* dedicated by plan, not by order */
	bool sparing;  /* full rings of all pairs on a CPU are more than it caches */
	bool tight;    /* fewer CPUs than host and NIC threads */
	bool crowded;  /* more nodes than CPUs: a peer has a CPU now and then only, */
	bool dense;    /* a quarter of the time or less */
	pthread_t thread;
	struct robust_list_head last_will; /* of the thread: the header's owner */
	struct robust_list heir;
	p3_a32 stop;
	struct p3_nic *next_kept;
	p3_a64 life; /* goes up when the host segments go: what is from before is void */
	pthread_mutex_t
		arena_lock; /* guards life, the host segments, and the three below */
	uint64_t host_used[2];
	struct p3_eq *unburied; /* freed queues whose places are not free yet */
	/* firmware */
	_Alignas(P3_LINE) p3_a64 *count; /* own published counters */
	struct p3_peer *peer;            /* nnodes */
	struct p3_trace_record *traced;  /* (any) the firmware's records; NULL: off */
	uint32_t first_nid, nids;        /* of peer[]; nids 0: ids tell */
	struct p3_ids *ids;              /* NULL: first_nid does */
	struct p3_peer *touched[P3_TOUCHED];
	uint32_t ntouched;
	uint32_t unlooked; /* passes since the last look */
	bool light;        /* all nodes fence heavily: a message need not */
	bool posted;       /* an event or result was made since the last look */
	bool worked;       /* this pass found something */
	bool some_bad;
	uint32_t msgs;  /* taken in this pass */
	uint64_t bytes; /* moved in this pass */
	struct p3_peer **hot;
	uint32_t nhot;
	uint32_t few;        /* up to so many of them are polled as few are */
	p3_a32 never_cold;   /* 0: of peers who poll all their lanes always, */
	p3_a32 never_asleep; /* and of nobody */
	uint32_t turn;
	uint32_t nlong; /* match lists of P3_LONG entries and more */
	uint32_t next_link;
	struct p3_link blocked;
	struct p3_link pulls;
	struct p3_link sources;
	const struct p3_wire *wire; /* NULL: shared memory */
	struct p3_peer *swapper;    /* whose getput waits for transfers to end */
	struct p3_ni ni[P3_JOB_NIS];
	struct p3_table table[P3_TABLES];
	/* all else */
	uint32_t nsoon;
	struct p3_soon soon[P3_STAGES];
	struct p3_evq_ring *free_rings[32]; /* by log2 of their size; arena_lock */
	struct p3_xfer_slot *xfer;
	struct p3_pull *pull; /* the shared pool */
	uint64_t arena_used;
	uint64_t window_off[P3_WINDOWS];
	uint32_t window_free;           /* bits */
	uint32_t windows;               /* carved */
	struct p3_pace pace[64];        /* by log2 of the length */
	uint64_t slice;                 /* bytes of one cross-memory read */
	struct p3_bounds swapper_wants; /* no other transfer begins there meanwhile, */
	uint64_t swapper_until;         /* until then: a peer could make it last */
	void *wire_state;
	p3_a64 wire_count[P3_W_COUNTERS]; /* (any) */
	p3_a32 settle;                    /* (any) number of calls of p3_nic_settle, */
	p3_a32 settled;                   /* (any) and which of them the wire has done */
	struct p3_trace trace;
	struct p3_peer nobody; /* ABSENT; its queue: until it is told who is there */
	uint32_t asked;        /* the last question (nic.h), */
	uint32_t told;         /* and the last one that was answered */
};

/* Where nodes share CPUs each page costs a look into the page tables at every turn. */
_Static_assert(offsetof(struct p3_nic, table[P3_T_EQ].chunk[1]) <= P3_PAGE,
	"a message touches one page of its NIC's");

/* ---- trace.c: by P3_TRACE only ---- */

void p3_trace_start(struct p3_nic *n); /* but for this one */

/* Of the firmware, about its topic; of a host thread. */
P3_TRACED void p3_trace_fw(
	struct p3_nic *n, enum p3_trace_point point, uint32_t value, uint64_t detail);
P3_TRACED void p3_trace_host(
	struct p3_nic *n, enum p3_trace_point point, uint32_t value, uint64_t detail);

P3_TRACED void p3_trace_command(struct p3_nic *n, struct p3_cmd *c);
P3_TRACED void p3_trace_execute(struct p3_nic *n, const struct p3_cmd *c);
P3_TRACED void p3_trace_lease(struct p3_nic *n, enum p3_lease_holder who);
P3_TRACED void p3_trace_given(struct p3_nic *n);
/* A request at the present place of a lane. */
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
/* A new topic, as one of these kept it. */
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
void *p3_table_alloc(struct p3_table *t);              /* NULL: grow first */
void p3_table_release(struct p3_table *t, struct p3_object *o);
/* The same in two steps: its handle is void; its place may be used again. */
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

/* Take off and free; the ME goes too if it is flagged so. */
void p3_fw_md_drop(struct p3_nic *n, struct p3_md *md);
void p3_fw_drop_all(struct p3_nic *n); /* the NIC ends: iovec copies, tables */

static inline struct p3_ni *p3_ni_of(struct p3_nic *n, const struct p3_object *o)
{
	return &n->ni[o->ni];
}

static inline bool p3_lives(const struct p3_object *o, uint32_t gen)
{
	return p3_get(&o->gen) == gen;
}

/* Live object named by a handle of this kind, or NULL. */
void *p3_fw_named(struct p3_nic *n, enum p3_kind kind, uint64_t handle);

static inline uint64_t p3_handle_of(enum p3_kind kind, const struct p3_object *o)
{
	return p3_handle(kind, o->ni, o->index, p3_get(&o->gen));
}

/* ---- index.c ---- */

/* Next to base, or as the only one; the entry says which portal index. */
void p3_match_list_insert(
	struct p3_ni *ni, struct p3_me *me, struct p3_me *base, uint32_t position);
void p3_match_list_remove(struct p3_ni *ni, struct p3_me *me);

/* ---- rx.c: what a request's header says ---- */

static inline uint64_t p3_request_who(const struct p3_peer *p, uint32_t flags)
{
	return p3_pair(p->pid[flags & P3_F_NI1 ? 1 : 0], p->nid);
}

/* NULL: none of this node's has that pid. */
static inline struct p3_ni *p3_fw_interface(struct p3_nic *n, uint32_t pid)
{
	for (uint32_t i = 0; i < P3_JOB_NIS; i++)
		if ((p3_get(&n->ni[i].gen) & 1) && n->ni[i].pid == pid)
			return &n->ni[i];
	return NULL;
}

/* ---- ahead.c ---- */

#ifndef P3_LONG
#define P3_LONG 1024u /* entries: shorter lists are in the near cache */
#endif

/* The request at hand, of ncells cells, is about to be matched. */
__attribute__((noinline)) void p3_fw_look_ahead(
	struct p3_nic *n, struct p3_peer *p, uint32_t ncells);
/* Buckets are about to go. */
void p3_fw_look_no_more(struct p3_nic *n);

/* ---- match.c ---- */

/* What a request asks, from the lane or from this node itself. */
struct p3_ask {
	uint8_t kind; /* p3_req_kind */
	uint32_t pt_index;
	uint32_t ac_index;
	uint64_t bits;
	uint64_t hdr;
	uint64_t remote_offset;
	uint64_t length;
	uint64_t who;   /* the initiator, pid:nid, */
	uint64_t owner; /* and whose it is, jid:uid */
};

struct p3_hit {
	struct p3_md *md;
	uint64_t offset;
	uint64_t mlength;
};

bool p3_fw_match(struct p3_ni *ni, const struct p3_ask *ask, struct p3_hit *hit_out);
/* Does the access control list let it in? */
bool p3_fw_allows(const struct p3_ni *ni, const struct p3_ask *ask);

static inline void p3_fw_exhaust(struct p3_md *md)
{
	md->active = false;
	md->exhausted = true;
}

static inline void p3_fw_threshold(struct p3_md *md)
{
	if (md->threshold > 0 && --md->threshold == 0) /* else infinite, or used up */
		p3_fw_exhaust(md);
}

static inline uint64_t p3_max_size(const struct p3_md *md)
{
	return md->snap[3];
}

/* Count the operation on the descriptor: threshold, local offset, activity. */
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
	return __builtin_expect(md->exhausted && md->unlink, 0);
}

/*
 * So few bytes are copied in place where nodes share CPUs, and each instruction and page
 * counts.  Between two CPUs memcpy is as good, and better for messages of two cells
 * (docs/performance.md).
 */
#define P3_FEW 64u

/* Two copies of k bytes, which meet or overlap; all is read before any is written. */
#define P3_COPY_ENDS(k)                                                                  \
	if (len >= (k)) {                                                                \
		char head[k], tail[k];                                                   \
		memcpy(head, from, (k));                                                 \
		memcpy(tail, from + len - (k), (k));                                     \
		memcpy(to, head, (k));                                                   \
		memcpy(to + len - (k), tail, (k));                                       \
		return;                                                                  \
	}

/* len <= P3_FEW */
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

/* Bytes between a region and plain memory. */
void p3_region_write(
	const struct p3_region *r, uint64_t off, const void *src, uint64_t len);
void p3_region_read(const struct p3_region *r, uint64_t off, void *dst, uint64_t len);
/* Longest contiguous piece at off. */
char *p3_region_at(const struct p3_region *r, uint64_t off, uint64_t *len_out);
struct p3_bounds p3_region_bounds(const struct p3_region *r, uint64_t off, uint64_t len);
bool p3_bounds_meet(
	struct p3_bounds b, const struct p3_region *r, uint64_t off, uint64_t len);
/* Have these bytes of a region any in common with few ones of another? */
bool p3_region_overlaps(const struct p3_region *few, uint64_t foff, uint64_t flen,
	const struct p3_region *r, uint64_t off, uint64_t len);
/* The pieces that the bytes lie in, most at most; returns how many. */
unsigned p3_region_iovecs(const struct p3_region *r, uint64_t off, uint64_t len,
	struct iovec *out, unsigned most);

/* ---- event.c ---- */

/* One word of an event that is being described, in its queue or anywhere. */
static inline void p3_say(struct p3_event_words *rec, int i, uint64_t word)
{
	p3_release(&rec->w[i], word); /* EVQ.2 */
}

/* Words 5..10: the descriptor as it is after the operation's accounting. */
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

/* Each operation has a link of its own; kind: 0 if that is said later. */
static inline void p3_say_what(
	struct p3_event_words *rec, uint32_t link, uint32_t pt_index, uint32_t kind)
{
	p3_say(rec, 13, (uint64_t)link << 32 | kind);
	p3_say(rec, 14, (uint64_t)pt_index << 32);
}

/* NULL: none, or freed. */
static inline struct p3_eq *p3_sink_eq(const struct p3_sink *sink)
{
	return sink->eq && p3_lives(&sink->eq->o, sink->eq_gen) ? sink->eq : NULL;
}

/* ACK and UNLINK come always. */
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

/* The queue that such an event goes to, or NULL. */
static inline struct p3_eq *p3_sink_for(const struct p3_sink *sink, ptl_event_kind_t kind)
{
	return p3_wants(sink, kind) ? p3_sink_eq(sink) : NULL;
}

/* The next event of a queue: to be described whole, then posted. */
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

/* Post one event of rec, which says nothing of kind and failure, where it is wanted. */
void p3_fw_event(struct p3_nic *n, const struct p3_sink *sink,
	const struct p3_event_words *rec, ptl_event_kind_t kind, uint32_t fail);

/* UNLINK comes always, but of Cray's to those who ask for it only. */
static inline bool p3_unlinks_silently(const struct p3_md *md)
{
	const uint32_t both = P3_MD_CRAY | PTL_MD_EVENT_AUTO_UNLINK_ENABLE;
	return (md->sink.options & both) == P3_MD_CRAY;
}

/* The event of an operation on md that is over, in sink, and the automatic unlink. */
void p3_fw_event_unlinks(struct p3_nic *n, struct p3_md *md, const struct p3_sink *sink,
	const struct p3_event_words *rec, ptl_event_kind_t kind, uint32_t fail);

/* The same, if md is to be unlinked; else the event alone. */
static inline void p3_fw_event_ends(struct p3_nic *n, struct p3_md *md,
	const struct p3_sink *sink, const struct p3_event_words *rec,
	ptl_event_kind_t kind, uint32_t fail)
{
	if (p3_fw_may_unlink(md))
		p3_fw_event_unlinks(n, md, sink, rec, kind, fail);
	else
		p3_fw_event(n, sink, rec, kind, fail);
}

/* Each word of the record is read once, and none is kept: they are too many. */
static inline void p3_event_from_record(
	const struct p3_event_words *rec, uint64_t sequence, uint64_t eq, ptl_event_t *ev)
{
	uint64_t w = p3_acquire(&rec->w[13]); /* EVQ.2, all that follow, too */
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

/* The same of words that were copied. */
static inline void p3_event_from_words(
	const uint64_t w[P3_EVQ_WORDS], uint64_t sequence, uint64_t eq, ptl_event_t *ev)
{
	struct p3_event_words rec;
	for (int i = 0; i < P3_EVQ_WORDS; i++)
		p3_set(&rec.w[i], w[i]);
	p3_event_from_record(&rec, sequence, eq, ev);
}

/* An operation on md, from offset on.  The caller makes its record, and has counted it on
 * the descriptor. */
void p3_span_begin(struct p3_span *span, struct p3_md *md, uint64_t offset);
void p3_span_start(struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind);
/* Its END, and what that ends. */
void p3_span_end(
	struct p3_nic *n, struct p3_span *span, ptl_event_kind_t kind, uint32_t fail);
/* Instead: its interface closes, nothing of it may be touched any more. */
void p3_span_forget(struct p3_span *span);
/* One user less of a copy of iovec elements; the last one frees it.  NULL: nothing. */
void p3_iov_drop(struct p3_iov *iov);
/* An UNLINK that waits for operations under way is owed to the queue. */
void p3_md_owe_unlink(struct p3_md *md);
void p3_md_forgive_unlink(struct p3_md *md);

/* ---- tx.c ---- */

int p3_fw_put(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_get(struct p3_nic *n, struct p3_cmd *c);
int p3_fw_getput(struct p3_nic *n, struct p3_cmd *c);
void p3_fw_push(struct p3_nic *n, struct p3_peer *p); /* send what has room now */
/* Somebody came, or has other ids: requests of nobody's go to the queues of their
 * targets, in their order, before any later one can. */
void p3_fw_readdress(struct p3_nic *n);
void p3_fw_unblock(struct p3_nic *n);
bool p3_fw_take_response(struct p3_nic *n, struct p3_peer *p);
/* Each answers a reservation; while there is none its ring, another line, is not looked
 * at: what is there, a switch or nonsense, waits for the next reservation. */
static inline bool p3_fw_has_response(struct p3_peer *p)
{
	uint64_t w0;
	return p->rsp_used && p3_ring_peek(&p->rsp_in, &w0);
}
static inline void p3_fw_take_responses(struct p3_nic *n, struct p3_peer *p)
{
	while (__builtin_expect(p3_fw_has_response(p), 0))
		if (!p3_fw_take_response(n, p))
			break;
}
void p3_fw_get_done(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
void p3_fw_fail_pending(struct p3_nic *n, struct p3_pending *t, bool died);
void p3_fw_forget(struct p3_nic *n, uint32_t ni);

/* ---- rx.c ---- */

/* Takes one request off the lane: false if there is none, or it must wait. */
bool p3_fw_take_request(struct p3_nic *n, struct p3_peer *p);
/* Is an exchange waiting, and others must let it go first? */
bool p3_fw_swap_waits(struct p3_nic *n);
/* Of a peer that is gone: discards the one that must wait; false if there is none. */
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

/* ---- xfer.c ----
 *
 * Memory ordering of long transfers, between processes:
 *	XFER.1	id: owner releases after address, length and bytes are final -> reader
 *		acquires; the owner changes it before the bytes may go, and the reader
 *		looks
 *		again after every slice, before the slice counts (a load fence between)
 *	XFER.2	produced: owner releases (the window is filled) -> reader acquires;
 *		bulk_read: reader releases (the window was read) -> owner acquires
 *	XFER.3	released: initiator of a get releases (it has read all) -> target acquires
 *	XFER.4	bulk_slot: reader releases (want and read are set) -> owner acquires
 *	XFER.5	Dekker, between the first cross-memory read of a put and a getput at its
 *		source: reader stores reading, fences lightly, acquires swapping; the
 *		owner stores swapping, fences heavily, loads reading, exchanges, releases
 *		swapping.  Without it the put could carry one half of an exchange.
 *	XFER.6	seqlock, for readers that have begun and do not move (stopped): the owner
 *		makes again odd, fences, exchanges, releases it even; a reader looks at it
 *		with the id (XFER.1) and begins anew.  Without it as XFER.5, or all other
 *		nodes' exchanges would wait for the stopped one.  And back: the reader
 *		sets bulk_read to 0, then releases bulk_again; the owner acquires
 *		bulk_again, then bulk_read, and fills the window only for the bytes that
 *		it offers now.  Without it a late word about the bytes of before would
 *		let the owner write over what is not read yet.
 */

/* The peer's published half of a slot; the number was range-checked. */
static inline const struct p3_xfer *p3_peer_xfer(
	const struct p3_nic *n, const struct p3_peer *p, uint64_t id)
{
	return (const struct p3_xfer *)(p->image + n->layout.xfers_off) + (uint32_t)id;
}

/*
 * Bytes that fit the lane, but that the target may fetch sooner than a CPU puts them into
 * cells and the other takes them out: from a heap that it has mapped, or with a
 * cross-memory read (docs/performance.md).  Only where a SEND_END tells when they may
 * change: what is put without one is on its way when the call returns.
 */
#define P3_EAGER_MOST_HEAP 1536u
#define P3_EAGER_MOST      8192u
bool p3_xfer_is_faster(const struct p3_nic *n, const struct p3_peer *p,
	const struct p3_region *r, uint64_t off, uint64_t len);
void p3_xfer_start(struct p3_nic *n);
enum p3_xfer_class { P3_X_OWN, P3_X_SERVE };
struct p3_xfer_slot *p3_xfer_alloc(
	struct p3_nic *n, struct p3_peer *p, enum p3_xfer_class class);
void p3_xfer_publish(struct p3_nic *n, struct p3_xfer_slot *x);
void p3_xfer_free(struct p3_nic *n, struct p3_xfer_slot *x);
/* Its memory goes: nobody may read it any more; the slot stays until it is answered. */
void p3_xfer_withdraw(struct p3_nic *n, struct p3_xfer_slot *x);
static inline uint64_t p3_xfer_name(const struct p3_xfer_slot *x)
{
	return p3_xfer_id(x->slot, x->gen);
}
struct p3_pull *p3_pull_alloc(struct p3_nic *n, struct p3_peer *p);
/* The bytes lie in the source's heap, and that is mapped here. */
bool p3_xfer_sees_heap(const struct p3_pull *pull);
void p3_pull_begin(struct p3_nic *n, struct p3_pull *pull);
void p3_fw_move(struct p3_nic *n);   /* a slice of every pull that can go on */
void p3_fw_source(struct p3_nic *n); /* fill windows, notice releases */
void p3_fw_end_pull(struct p3_nic *n, struct p3_pull *pull, uint32_t fail);
void p3_xfer_finish_serving(struct p3_nic *n, struct p3_xfer_slot *x, uint32_t fail);
void p3_xfer_forget(struct p3_nic *n, uint32_t ni);
/* May these few bytes be exchanged now, or does a long transfer that has begun read or
 * write some of them?  After true: exchange, then p3_xfer_swapped. */
bool p3_xfer_may_swap(
	struct p3_nic *n, const struct p3_region *r, uint64_t off, uint64_t len);
void p3_xfer_swapped(struct p3_nic *n);
/* NIC stop: nobody may read our memory from here on. */
void p3_xfer_revoke_all(struct p3_nic *n);

/* ---- peer.c ---- */

/* The word that a node sleeps on. */
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
/* The node that has this nid, or in a domain this id; NULL: there is none. */
struct p3_peer *p3_fw_find(struct p3_nic *n, ptl_process_id_t who);
bool p3_fw_ready(struct p3_nic *n, struct p3_peer *p);
/* Tells the peer how its puts may be fetched; again when one way turned out closed. */
void p3_fw_say_reads(struct p3_nic *n, struct p3_peer *p);
bool p3_fw_full_ring_ok(
	struct p3_nic *n, const struct p3_peer *p, uint64_t off, uint32_t cells);
bool p3_fw_acked(struct p3_peer *p);
bool p3_fw_look_for_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k);
/* For a message of k cells; looks at the credit if need be. */
static inline bool p3_fw_room(struct p3_peer *p, struct p3_ring_tx *r, uint32_t k)
{
	return __builtin_expect(p3_ring_fits(r, k + p3_ring_pad(r, k)), 1) ||
	       p3_fw_look_for_room(p, r, k);
}
bool p3_fw_grow_requests(struct p3_nic *n, struct p3_peer *p); /* true: now */
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

/* ---- pass.c ---- */

int p3_fw_exec(struct p3_nic *n, struct p3_cmd *c);
void p3_fw_mail(struct p3_nic *n); /* execute all posted commands */
/* One pass; true if it found anything to do, and may have left as much. */
bool p3_fw_pass(struct p3_nic *n);
/* Give up the lease, and all looks that belong to that. */
void p3_fw_leave(struct p3_nic *n);
/* A fence and the looks in the middle of a long hold. */
void p3_fw_look(struct p3_nic *n);
void p3_fw_warn_refused(void); /* (any) */
/* (any) Of who is about to sleep, or not to poll any more: heavy, or if nobody's is light
 * a full one. */
static inline void p3_fw_fence(struct p3_nic *n, bool (*heavy)(void))
{
	if (!n->conf.membarrier)
		p3_fence();
	else if (__builtin_expect(!heavy(), 0))
		p3_fw_warn_refused();
}
void p3_wake_peer(struct p3_nic *n, p3_a32 *asleep);
void p3_wake_hosts(struct p3_nic *n);
/* Work has begun that no peer rings for: who sleeps here must look again soon. */
void p3_fw_rouse(struct p3_nic *n);

static inline void p3_fw_touch(struct p3_nic *n, struct p3_peer *p)
{
	if (p->touched)
		return;
	if (__builtin_expect(n->ntouched == P3_TOUCHED, 0))
		p3_fw_look(n);
	p->touched = true;
	n->touched[n->ntouched++] = p;
}

static inline bool p3_fw_enter(struct p3_nic *n, enum p3_lease_holder who)
{
	if (!p3_lease_take(&n->lease, who))
		return false;
	p3_count(&n->count[who == P3_LEASE_NIC ? P3_C_LEASE_NIC : P3_C_LEASE_HOST], 1);
	FAULT_POINT("lease.taken");
	P3_TRACE(lease, n, who);
	if (__builtin_expect(p3_mbx_any(n->mailbox), 0))
		p3_fw_mail(n);
	return true;
}

/* ---- mirror.c ---- */

#define P3_MIRROR_PASSES 4096u /* a power of two */

/* The gauges, as they are now; next: who will hold the lease. */
P3_RARE void p3_fw_mirror(struct p3_nic *n, enum p3_lease_holder next);
void p3_fw_mirror_peer(struct p3_peer *p, uint64_t now_ns);
/* A peer is gone: nothing waits for it. */
void p3_fw_mirror_lost(struct p3_peer *p);
void p3_fw_mirror_queue(struct p3_nic *n, const struct p3_eq *eq);
void p3_fw_mirror_no_queue(struct p3_nic *n, const struct p3_eq *eq);
/* The settings in effect; once. */
void p3_mirror_conf(struct p3_nic *n);

/* What a thread waits for. */
struct p3_wants {
	enum p3_wait_kind kind;
	uint32_t n;
	const uint64_t *handles; /* COMMAND: its p3_op */
};

/* (any) The calling thread is about to sleep; NULL: there is no line left. */
struct p3_wait_line *p3_mirror_wait(struct p3_nic *n, const struct p3_wants *wants,
	uint64_t since_ns, uint64_t deadline_ns);
void p3_mirror_waited(struct p3_wait_line *line);

/* ---- dump.c ---- */

int p3_fw_dump(struct p3_nic *n, struct p3_cmd *c);

/* ---- nic.c ---- */

/* Is a pull under way, or something that we sent not taken yet? */
bool p3_fw_is_restless(struct p3_nic *n);
/* Kick peers that have not looked at what we sent them. */
void p3_fw_kick_idle(struct p3_nic *n);
void p3_kick_peer(struct p3_nic *n, struct p3_peer *p);

/* ---- call.c ---- */

/* A number for the calling thread, never 0. */
uint32_t p3_this_thread(void);

/* ---- host.c ---- */

int p3_host_create(struct p3_nic *n);
void *p3_host_alloc(struct p3_nic *n, uint64_t len); /* host side, zeroed */
struct p3_evq_ring *p3_host_ring(struct p3_nic *n, uint32_t records);
/* life: as it was when the ring was in use for certain. */
void p3_host_ring_free(
	struct p3_nic *n, struct p3_evq_ring *ring, uint32_t records, uint64_t life);
void p3_host_drop(struct p3_nic *n);
/* Adds to those that wait to be buried; NULL: takes all away.  Those that were there. */
struct p3_eq *p3_host_unburied(struct p3_nic *n, struct p3_eq *more);

#endif
