/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table - tables of objects that handles name
 *
 * A table keeps objects of one type.  It never moves an object and never gives its memory
 * back, so a stale handle finds an object of the same type with another generation.  Host
 * threads allocate chunks; the lease holder adds them.  Any thread may read the members
 * that are marked (any), and call p3_table_at() and p3_lives().  Only the lease holder
 * calls the other functions.
 */
#ifndef P3_NIC_OBJ_TABLE_H
#define P3_NIC_OBJ_TABLE_H

#include "nic/nic.h"

struct p3_nic;

#define P3_NONE         0xffffffffu

#define P3_TABLE_CHUNKS 256u
#define P3_TABLE_EACH   1024u

/* The first member of every object of a table. */
struct p3_object {
	p3_a32 gen; /* (any) odd while the object lives */
	uint32_t index;
	uint32_t next_free;
	uint32_t ni;
};

struct p3_table {
	uint32_t elem;                 /* bytes of one object */
	p3_a32 nchunks;                /* (any) */
	uint32_t free_head, free_tail; /* oldest first, so that handles are reused late */
	uint32_t live;
	_Atomic(char *) chunk[P3_TABLE_CHUNKS]; /* (any) */
};

/* Each message uses the first two tables. */
enum p3_table_id { P3_T_MD, P3_T_EQ, P3_T_ME, P3_T_PENDING, P3_TABLES };

void p3_table_init(struct p3_table *t, uint32_t elem);
/* (any) Return the object at an index, or NULL beyond the end. */
void *p3_table_at(struct p3_table *t, uint32_t index);
/* Allocate an object with an even generation; the caller gives it the next odd one when
 * it is whole.  Return NULL if the table must grow first. */
void *p3_table_alloc(struct p3_table *t);
void p3_table_release(struct p3_table *t, struct p3_object *o);
/* Release an object in two steps: kill makes its handle invalid; bury makes its place
 * reusable. */
void p3_table_kill(struct p3_table *t, struct p3_object *o);
void p3_table_bury(struct p3_table *t, struct p3_object *o);
void p3_table_add(struct p3_table *t, void *chunk);

/* (any) Return true if the object lives, and is of this generation. */
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
void *p3_obj_named(struct p3_nic *n, enum p3_kind kind, uint64_t handle);

static inline uint64_t p3_handle_of(enum p3_kind kind, const struct p3_object *o)
{
	return p3_handle(kind, o->ni, o->index, p3_get(&o->gen));
}

/* Return PTL_OK if interface ni may have one more object, PTL_NO_SPACE, or the table
 * that must grow, as -(1 + id). */
int p3_obj_room(struct p3_nic *n, enum p3_table_id id, uint32_t ni);
/* Make an object of interface ni.  Handles do not find it before p3_obj_born().  The
 * caller has checked that the table and the interface's limit have room. */
void *p3_obj_new(struct p3_nic *n, enum p3_table_id id, uint32_t ni);
void p3_obj_born(struct p3_object *o);
void p3_obj_free(struct p3_nic *n, enum p3_table_id id, struct p3_object *o);
/* Return the next live object of interface ni, from index *at on, or NULL; set *at to
 * the index behind it. */
void *p3_obj_next(struct p3_table *t, uint32_t ni, uint32_t *at);

#endif
