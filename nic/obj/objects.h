/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * objects - the objects that programs have handles of: interfaces, match entries,
 * memory descriptors, event queues
 *
 * Only the lease holder touches this data, except the members that are marked (any).
 */
#ifndef P3_NIC_OBJECTS_H
#define P3_NIC_OBJECTS_H

#include "nic/obj/list.h"
#include "nic/obj/region.h"
#include "nic/obj/table.h"
#include "nic/report/state.h"
#include "shm/evq.h"

struct p3_nic;
struct p3_peer;

/* ---- identifiers ---- */

/* Two identifiers in a word that an entry requires; mask leaves out those that may have
 * any value. */
struct p3_want {
	uint64_t is, mask;
};

static inline uint64_t p3_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static inline struct p3_want p3_want_id(ptl_process_id_t id)
{
	uint64_t pid = id.pid == PTL_PID_ANY ? 0 : (uint64_t)UINT32_MAX << 32;
	uint64_t nid = id.nid == PTL_NID_ANY ? 0 : UINT32_MAX;
	return (struct p3_want){p3_pair(id.pid, id.nid), pid | nid};
}

static inline struct p3_want p3_want_owner(ptl_uid_t uid, ptl_jid_t jid)
{
	uint32_t any_jid = jid == PTL_JID_ANY ? 0 : UINT32_MAX;
	uint32_t any_uid = uid == PTL_UID_ANY ? 0 : UINT32_MAX;
	return (struct p3_want){p3_pair(jid, uid), p3_pair(any_jid, any_uid)};
}

static inline bool p3_want_matches(struct p3_want want, uint64_t word)
{
	return ((word ^ want.is) & want.mask) == 0;
}

/* ---- objects ---- */

struct p3_eq {
	_Alignas(P3_CELL) struct p3_object o;
	struct p3_eq *next_dead; /* next in a list of queues that a host thread will
				  * retire */
	struct p3_evq_rx rx;     /* (any) */
	struct p3_evq_tx tx;
	struct p3_nic *nic;
	_Atomic(ptl_eq_handler_t) handler; /* (any) */
	uint32_t life; /* counts the queues in this place: a sink of an earlier one has no
			* queue */
	uint32_t n;
	uint32_t owed; /* events of operations under way that will be posted here */
	uint32_t news; /* p3_news_of_queue() */
};

_Static_assert(offsetof(struct p3_eq, rx) + offsetof(struct p3_evq_ring, pad1) <=
		       sizeof(struct p3_eq),
	"without a ring, the words of one are looked for in the place itself");

/* A descriptor as its user sees it.  Each event carries these words (record.h): they are
 * the first members of ptl_md_t, and the padding is 0. */
struct p3_md_words {
	_Alignas(16) uint64_t start; /* events move these words in pairs */
	uint64_t length;
	int32_t threshold; /* operations left, or PTL_MD_THRESH_INF */
	uint32_t pad0;
	uint64_t max_size;
	uint32_t options;
	uint32_t pad1;
	uint64_t user_ptr;
};

#define P3_SAME_PLACE(a, b)                                                              \
	(offsetof(struct p3_md_words, a) == offsetof(ptl_md_t, b) &&                     \
		sizeof(((ptl_md_t *)0)->b) == sizeof(((struct p3_md_words *)0)->a))

_Static_assert(P3_SAME_PLACE(start, start) && P3_SAME_PLACE(length, length) &&
		       P3_SAME_PLACE(threshold, threshold) &&
		       P3_SAME_PLACE(max_size, max_size) &&
		       P3_SAME_PLACE(options, options) &&
		       P3_SAME_PLACE(user_ptr, user_ptr),
	"a reader copies these words into the event");

/*
 * All that is unusual about a descriptor, as bits of the word odd.  A straight path names
 * the bits that its case excludes and tests them at once:
 *
 *	if (p3_straight() && !(md->odd & (P3_ODD_INACTIVE | P3_ODD_THRESHOLD)) && ...)
 *
 * A queue that was freed makes no descriptor odd: p3_eq_of_sink() still has to be asked.
 */
enum p3_md_odd {
	P3_ODD_PUT = PTL_MD_OP_PUT,        /* it does not accept puts, */
	P3_ODD_GET = PTL_MD_OP_GET,        /* or not gets */
	P3_ODD_ACK = PTL_MD_ACK_DISABLE,   /* it sends no ACK */
	P3_ODD_IOVEC = PTL_MD_IOVEC,       /* it has several pieces */
	P3_ODD_MAX_SIZE = PTL_MD_MAX_SIZE, /* little room makes it inactive */
	P3_ODD_THRESHOLD = 1 << 16,        /* operations count: not infinite */
	P3_ODD_INACTIVE = 1 << 17,         /* it accepts no requests; it may still send */
	P3_ODD_CRAY = 1 << 18,             /* P3_MD_CRAY: gets have SEND events */
	P3_ODD_QUEUE = 1 << 19,            /* it has no event queue; */
	P3_ODD_STARTS =
		PTL_MD_EVENT_START_DISABLE,    /* its queue gets START events, too, */
	P3_ODD_ENDS = PTL_MD_EVENT_END_DISABLE /* or ACK and UNLINK only */
};

/* An eager put that this descriptor receives needs no more than bytes and PUT_END; one
 * that it sends no more than bytes and SEND_END. */
#define P3_ODD_COUNTED  (P3_ODD_THRESHOLD | P3_ODD_MAX_SIZE | P3_ODD_INACTIVE)
#define P3_ODD_EVENTS   (P3_ODD_QUEUE | P3_ODD_STARTS | P3_ODD_ENDS)
#define P3_ODD_RECEIVES (P3_ODD_COUNTED | P3_ODD_EVENTS | P3_ODD_IOVEC | P3_ODD_PUT)
#define P3_ODD_SENDS    (P3_ODD_COUNTED | P3_ODD_EVENTS | P3_ODD_IOVEC)

/* An internal option of descriptors: the interface is of Cray's kind. */
#define P3_MD_CRAY 0x80000000u

/* The event queue of a descriptor, and the options that select its events. */
struct p3_sink {
	struct p3_eq *eq; /* NULL: no events */
	uint32_t eq_life; /* eq's life when it was set: the queue may have been freed */
	uint32_t options; /* the user's options and the internal ones */
};

struct p3_md {
	_Alignas(P3_LINE) struct p3_object o;
	struct p3_region region;
	bool exhausted;   /* an operation made it inactive */
	bool unlink;      /* it unlinks automatically */
	bool owes_unlink; /* its UNLINK is counted in its queue's owed */
	uint32_t odd;     /* bits of enum p3_md_odd */
	struct p3_sink sink;
	struct p3_md_words words;
	uint32_t me;      /* index of its match entry; P3_NONE: free floating */
	uint32_t pending; /* operations between START and END */
	uint64_t local_offset;
};

_Static_assert(
	sizeof(struct p3_md) == 2 * P3_CELL && offsetof(struct p3_md, words) == P3_CELL,
	"a message takes two lines");

/* The first line tells whether a request matches, since a long list is in no cache. */
struct p3_me {
	_Alignas(P3_LINE) struct p3_object o;
	struct p3_want who; /* pid:nid */
	ptl_match_bits_t bits;
	ptl_match_bits_t ignore;
	struct p3_md *md;
	uint32_t pt_index;
	uint8_t tuple; /* index of its tuple in an indexed list; P3_TUPLES: loose */
	bool unlink;
	/* second line */
	uint64_t label; /* orders the list */
	struct p3_me *next, *prev;
	struct p3_me *bucket_next, *bucket_prev;
	ptl_process_id_t id;
};

_Static_assert(offsetof(struct p3_me, label) == P3_CELL, "the first line is full");

/* One shape of entries: the parts of a request that they look at. */
struct p3_tuple {
	ptl_match_bits_t ignore;
	uint64_t mask;  /* of the parts of pid:nid */
	uint64_t first; /* no entry has a label before this */
	uint32_t n;     /* number of entries */
};

#define P3_TUPLES 16u

struct p3_bucket {
	struct p3_me *head, *tail;
};

struct p3_portal {
	struct p3_me *head, *tail;
	uint32_t n;
	bool indexed;
	uint16_t used;          /* a bit for each tuple that has entries */
	struct p3_bucket loose; /* entries that found no free tuple */
	struct p3_tuple tuple[P3_TUPLES];
};

static inline uint64_t p3_bucket_mix(uint64_t x)
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

/* The number of objects of one type that an interface has. */
struct p3_use {
	uint32_t cur, max;
	uint64_t made;
};

enum p3_use_id { P3_U_MD, P3_U_EQ, P3_U_ME, P3_U_LIST, P3_U_OP, P3_USES };

struct p3_ni {
	p3_a32 gen; /* (any) odd while open */
	uint32_t pid;
	uint32_t options; /* internal options of all its descriptors */
	p3_a32 attended;  /* (any) its program has begun to serve it (proto.h) */
	ptl_ni_limits_t limits;
	struct p3_portal *portal;
	struct p3_bucket *bucket;
	uint64_t bucket_mask;
	struct p3_ac *ac;
	struct p3_want ac0_owner; /* owner that entry 0 requires; most requests name
				   * entry 0 */
	bool ac0_asks_owner;      /* entry 0 has no other requirement */
	uint64_t opened_ns;       /* time of opening */
	uint64_t sent_before;     /* the NIC's count of sent requests at that time */
	uint64_t drops, drop_bytes;
	uint64_t received, received_bytes; /* requests accepted */
	uint64_t sent, sent_bytes;         /* requests of this interface */
	struct p3_use use[P3_USES];
	uint64_t aligned[PTL_SR_MD_ALIGN_8 - PTL_SR_MD_ALIGN_128 + 1];
};

/* Return the bucket of all requests and entries that agree in the parts of this tuple. */
static inline struct p3_bucket *p3_bucket_at(const struct p3_ni *ni,
	const struct p3_tuple *t, uint32_t pt_index, uint32_t tuple,
	ptl_match_bits_t bits, uint64_t who)
{
	uint64_t number = pt_index * P3_TUPLES + tuple;
	uint64_t hash = p3_bucket_mix(
		p3_bucket_mix((bits & ~t->ignore) + number) ^ (who & t->mask));
	return &ni->bucket[hash & ni->bucket_mask];
}

static inline void p3_ni_use_more(struct p3_ni *ni, enum p3_use_id id)
{
	struct p3_use *u = &ni->use[id];
	u->made++;
	if (++u->cur > u->max)
		u->max = u->cur;
}

static inline void p3_ni_use_less(struct p3_ni *ni, enum p3_use_id id)
{
	ni->use[id].cur--;
}

/* ---- operations under way ---- */

/*
 * One operation on one descriptor, from START to END.  The descriptor may be updated
 * meanwhile; the copies here keep their values.
 */
struct p3_span {
	struct p3_md *md; /* cannot be freed meanwhile; NULL: no END is to come */
	struct p3_sink sink;
	struct p3_region region;
	uint64_t offset; /* offset of the bytes in the region */
	bool owed;       /* an event is to come, and counted in its queue's owed */
	struct p3_event_words rec;
};

#endif
