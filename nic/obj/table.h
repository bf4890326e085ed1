/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table - tables of objects that handles name
 *
 * A table keeps objects of one type.  It never moves an object and never gives its memory
 * back, so a stale handle finds an object of the same type with another name.  Any thread
 * may read the members that are marked (any), and call the functions that are marked so.
 * Only the lease holder calls the other functions.
 *
 * The address range of a table is reserved once, for all objects that it can ever have.
 * A handle's index times the size of an object leads to the object.  Host threads make
 * the range writable, a chunk of objects at a time; before that it is read as zeros.  The
 * pendings, which no handle names, are in chunks of the host segment instead.
 */
#ifndef P3_NIC_OBJ_TABLE_H
#define P3_NIC_OBJ_TABLE_H

#include "nic/nic.h"

struct p3_nic;

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

/* Release an object in two steps: kill makes its handle invalid; reclaim makes its place
 * reusable. */
void p3_table_kill(struct p3_table *t, struct p3_object *o);
void p3_table_reclaim(struct p3_table *t, struct p3_object *o);

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

#endif
