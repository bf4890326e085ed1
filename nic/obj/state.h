/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of obj/: lists, regions of memory, tables, and the objects that programs have
 * handles of: interfaces, match entries, memory descriptors, event queues.
 *
 * Only the lease holder touches this data, and calls these functions, except where a
 * comment says (any).
 */
#ifndef P3_NIC_OBJ_STATE_H
#define P3_NIC_OBJ_STATE_H

#include "nic/nic.h"
#include "nic/report/state.h"
#include "shm/evq.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>

struct p3_nic;
struct p3_peer;

/* ---- lists: doubly linked, without allocation ---- */

/* An item that is in no list is linked to itself, so removing it again does no harm. */
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

/* Walk a list; the body may take the item itself off the list. */
#define p3_list_each(it, list)                                                           \
	for (struct p3_link *it = (list)->next, *p3_next_ = it->next; it != (list);      \
		it = p3_next_, p3_next_ = it->next)

/* ---- regions: the bytes of a descriptor ---- */

/* A region is one piece of memory or the pieces of an iovec.  The functions have no
 * state; the caller holds the lease, or owns the region. */
struct p3_region {
	char *start;
	uint64_t size;      /* bytes of all pieces */
	struct p3_iov *iov; /* NULL: contiguous */
};

/* Bounds of the addresses of some bytes of a region.  They are a hint, and may be too
 * wide for iovecs. */
struct p3_bounds {
	const char *lo, *hi;
};

/* Bytes from .. to - 1 of an operation. */
struct p3_range {
	uint64_t from, to;
};

/*
 * Where nodes share CPUs, up to this number of bytes is copied in place: a call of memcpy
 * takes more instructions, and touches another page.  Where each node has a CPU, memcpy
 * is as fast, and faster for messages of two cells (docs/design/polling.md).
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
static inline char *p3_region_address(char *base, uint64_t offset)
{
	return (char *)((uintptr_t)base + offset);
}

/* Copy 32 to 64 bytes.  Each array is one register: GCC keeps larger ones in memory. */
static P3_HOT void p3_region_copy_halves(char *to, const char *from, uint64_t len)
{
	char a[16], b[16], c[16], d[16];
	memcpy(a, from, 16);
	memcpy(b, from + 16, 16);
	memcpy(c, from + len - 32, 16);
	memcpy(d, from + len - 16, 16);
	memcpy(to, a, 16);
	memcpy(to + 16, b, 16);
	memcpy(to + len - 32, c, 16);
	memcpy(to + len - 16, d, 16);
}

/* Copy at most P3_FEW bytes. */
static P3_HOT void p3_region_copy_few(char *to, const char *from, uint64_t len)
{
	if (p3_likely(len >= 32)) {
		p3_region_copy_halves(to, from, len);
		return;
	}
	P3_COPY_ENDS(16)
	P3_COPY_ENDS(8)
	P3_COPY_ENDS(4)
	P3_COPY_ENDS(2)
	P3_COPY_ENDS(1)
}

/* Return true if p3_region_copy_few() is the way to copy these bytes; crowded: more nodes
 * than CPUs. */
static inline bool p3_region_copies_few(
	bool crowded, const struct p3_region *r, uint64_t len)
{
	return crowded && len <= P3_FEW && !r->iov;
}

/* Copy bytes between a region and plain memory. */
void p3_region_write(
	const struct p3_region *r, uint64_t off, const void *src, uint64_t len);
void p3_region_read(const struct p3_region *r, uint64_t off, void *dst, uint64_t len);
/* Return the address at off; *len_out is the length of the contiguous piece there. */
char *p3_region_at(const struct p3_region *r, uint64_t off, uint64_t *len_out);
struct p3_bounds p3_region_bounds(const struct p3_region *r, uint64_t off, uint64_t len);
bool p3_region_bounds_meet(
	struct p3_bounds b, const struct p3_region *r, uint64_t off, uint64_t len);
/* Return true if the bytes of r have any in common with flen bytes of another region,
 * few, and set the range of these common bytes, counted from off. */
bool p3_region_common(const struct p3_region *few, uint64_t foff, uint64_t flen,
	const struct p3_region *r, uint64_t off, uint64_t len,
	struct p3_range *range_out);
/* List the pieces that the bytes lie in, at most "most".  Return their number. */
unsigned p3_region_iovecs(const struct p3_region *r, uint64_t off, uint64_t len,
	struct iovec *out, unsigned most);

/* ---- tables of objects that handles name ---- */

/*
 * A table keeps objects of one type.  It never moves an object and never gives its memory
 * back, so a stale handle finds an object of the same type with another name.
 *
 * The address range of a table is reserved once, for all objects that it can ever have.
 * A handle's index times the size of an object leads to the object.  Host threads make
 * the range writable, a chunk of objects at a time; before that it is read as zeros.  The
 * pendings, which no handle names, are in chunks of the host segment instead.
 */

#define P3_NONE         0xffffffffu

#define P3_TABLE_CHUNKS 256u
#define P3_TABLE_EACH   1024u
#define P3_TABLE_MOST   (P3_TABLE_CHUNKS * P3_TABLE_EACH) /* a power of two */

/*
 * The first member of every object of a table.
 *
 * The name of a living object is its handle.  The name of a dead object differs in the
 * bits P3_NAMELESS.  One of them is part of the place that a handle leads to, so no value
 * of a handle leads to a place whose name has that value; the other tells the two apart.
 */
struct p3_object {
	p3_a64 name; /* (any) */
	union {
		uint32_t ni;                 /* while it lives */
		struct p3_object *next_free; /* once its place is reusable */
	};
};

#define P3_NAMELESS (1u << P3_DEAD_BIT | 1u)
#define P3_DEAD_BIT (P3_HANDLE_INDEX_BITS - 1)

_Static_assert(P3_TABLE_MOST <= 1u << P3_DEAD_BIT, "no index of an object has this bit");

struct p3_table {
	char *base;     /* (any) NULL: the objects are in chunks */
	char **chunk;   /* the chunks, or NULL */
	uint32_t elem;  /* bytes of one object */
	p3_a32 nchunks; /* (any) chunks with memory */
	uint32_t used;  /* number of objects that ever lived, or may
					* live next */
	uint32_t kind;  /* kind of the handles */
	uint32_t live;
	/* oldest first, so that handles are reused late; free_tail: of a list that is not
	 * empty */
	struct p3_object *free_head, *free_tail;
};

/* Each message uses the first two tables. */
enum p3_table_id { P3_T_MD, P3_T_EQ, P3_T_ME, P3_T_PENDING, P3_TABLES };

/* Set up a table of handles: reserve its address range, with memory for one chunk.
 * Return 0 or -ENOMEM.  No other thread uses the table yet. */
int p3_table_reserve(struct p3_table *t, uint32_t elem, enum p3_kind kind);
/* Give back what p3_table_reserve() got; the table has never been used. */
void p3_table_unreserve(struct p3_table *t);
/* Set up a table without handles; chunk has room for P3_TABLE_CHUNKS. */
void p3_table_init(struct p3_table *t, uint32_t elem, char **chunk);
/* (any) Return memory for the next chunk of a table of handles, or NULL.  It becomes
 * usable by p3_table_add(). */
void *p3_table_more(struct p3_table *t);
/* Add the memory of a chunk: zeroed, or from p3_table_more(). */
void p3_table_add(struct p3_table *t, void *chunk);
/* Return the object at an index below t->used. */
void *p3_table_at(const struct p3_table *t, uint32_t index);
/* Return true if p3_table_alloc() finds an object. */
static inline bool p3_table_has_room(const struct p3_table *t)
{
	return p3_likely(t->free_head != NULL) ||
	       t->used < p3_get(&t->nchunks) * P3_TABLE_EACH;
}

/* Allocate a dead object; the caller calls p3_obj_born() when it is whole.  Return
 * NULL if the table must grow first. */
void *p3_table_alloc(struct p3_table *t);
void p3_table_release(struct p3_table *t, struct p3_object *o);
/* Do as p3_table_alloc(), but return NULL also if no object is linked: then that function
 * links some. */
static P3_HOT void *p3_table_take(struct p3_table *t)
{
	struct p3_object *o = t->free_head;
	if (p3_unlikely(!o))
		return NULL;
	t->free_head = o->next_free;
	o->ni = 0;
	t->live++;
	return o;
}

/* Link a dead object behind the others. */
static P3_HOT void p3_table_link(struct p3_table *t, struct p3_object *o)
{
	o->next_free = NULL;
	if (p3_likely(t->free_head != NULL))
		t->free_tail->next_free = o;
	else
		t->free_head = o;
	t->free_tail = o;
}

/* Make the handle of an object invalid, whose place p3_table_link() makes reusable. */
void p3_table_kill(struct p3_table *t, struct p3_object *o);

static inline uint32_t p3_obj_index(const struct p3_object *o)
{
	uint32_t i = p3_handle_index(p3_get(&o->name)), dead = i >> P3_DEAD_BIT;
	return (i & (P3_TABLE_MOST - 1)) ^ dead;
}

static inline bool p3_obj_lives(const struct p3_object *o)
{
	return !(p3_get(&o->name) >> P3_DEAD_BIT & 1);
}

/* Return the name that a dead object will have in its next life.  The last generation is
 * followed by 0: it carries into the interface, which is set behind that. */
static inline uint64_t p3_obj_next_name(const struct p3_object *o)
{
	uint64_t next =
		(p3_get(&o->name) ^ P3_NAMELESS) + (UINT64_C(1) << P3_HANDLE_INDEX_BITS);
	return (next & ~p3_handle_ni_bits(0xf)) | p3_handle_ni_bits(o->ni);
}

/* Give an object its next name: handles find it from now on. */
static inline void p3_obj_born(struct p3_object *o)
{
	p3_release(&o->name, p3_obj_next_name(o)); /* TABLE.2 */
}

/* (any) Return the place in the table that a handle leads to; any value leads to one. */
static P3_HOT void *p3_table_place(
	const struct p3_table *t, uint32_t size, uint64_t handle)
{
	char *place = t->base + (handle & (P3_TABLE_MOST - 1)) * size;
	if (!place) /* the compiler need not ask whether p3_table_named() found NULL */
		__builtin_unreachable();
	return place;
}

/*
 * (any) Return the living object that a handle names, or NULL.  Every value of the handle
 * leads to a place in the table, and to no object of another name; so one comparison
 * checks kind, interface, index and generation.  size is the constant t->elem.
 */
static P3_HOT void *p3_table_named(
	const struct p3_table *t, uint32_t size, uint64_t handle)
{
	struct p3_object *o = p3_table_place(t, size, handle);
	return p3_likely(p3_acquire(&o->name) == handle) ? o : NULL; /* TABLE.2 */
}

/* (any) Return the living object of this kind that a handle names, or NULL. */
void *p3_obj_named(const struct p3_nic *n, enum p3_kind kind, uint64_t handle);

/* Return the next live object of interface ni, from index *at on, or NULL; set *at to
 * the index behind it. */
void *p3_obj_next(const struct p3_table *t, uint32_t ni, uint32_t *at);

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
	p3_a32 evfd;   /* (any) number of its descriptor's slot, plus 1; 0: none */
};

_Static_assert(offsetof(struct p3_eq, rx) + offsetof(struct p3_evq_ring, pad1) <=
		       sizeof(struct p3_eq),
	"without a ring, the words of one are looked for in the place itself");

/* A descriptor as its user sees it.  Each event carries these words (obj.h): they are
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
 * All that is unusual about a descriptor, as bits of the word odd.  Code for the most
 * frequent case names the bits that the case excludes and tests them at once:
 *
 *	if (!(md->odd & (P3_MD_ODD_INACTIVE | P3_MD_ODD_THRESHOLD)) && ...)
 *
 * A queue that was freed makes no descriptor odd: p3_eq_of_sink() still has to be asked.
 */
enum p3_md_odd {
	P3_MD_ODD_PUT = PTL_MD_OP_PUT,        /* it does not accept puts, */
	P3_MD_ODD_GET = PTL_MD_OP_GET,        /* or not gets */
	P3_MD_ODD_ACK = PTL_MD_ACK_DISABLE,   /* it sends no ACK */
	P3_MD_ODD_IOVEC = PTL_MD_IOVEC,       /* it has several pieces */
	P3_MD_ODD_MAX_SIZE = PTL_MD_MAX_SIZE, /* little room makes it inactive */
	P3_MD_ODD_THRESHOLD = 1 << 16,        /* operations count: not infinite */
	P3_MD_ODD_INACTIVE = 1 << 17, /* it accepts no requests; it may still send */
	P3_MD_ODD_CRAY = 1 << 18,     /* P3_MD_CRAY: gets have SEND events */
	P3_MD_ODD_QUEUE = 1 << 19,    /* it has no event queue; */
	P3_MD_ODD_STARTS =
		PTL_MD_EVENT_START_DISABLE,       /* its queue gets START events, too, */
	P3_MD_ODD_ENDS = PTL_MD_EVENT_END_DISABLE /* or ACK and UNLINK only */
};

/* An operation on this descriptor has other events than one END. */
#define P3_MD_ODD_EVENTS (P3_MD_ODD_QUEUE | P3_MD_ODD_STARTS | P3_MD_ODD_ENDS)

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
	struct p3_want who; /* pid:nid; who.is has the values of any, too */
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
	bool keeps;             /* a request that no entry accepts stays in its lane */
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
	p3_a32 attended;  /* (any) its program has begun to serve it */
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
