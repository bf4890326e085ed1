/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of objects, and the room that an interface has for objects. */
#include "nic/obj/table.h"

#include "nic/obj/ni.h"

#include <string.h>

void p3_table_init(struct p3_table *t, uint32_t elem)
{
	memset(t, 0, sizeof *t);
	t->elem = elem;
	t->free_head = t->free_tail = P3_NONE;
}

void *p3_table_at(struct p3_table *t, uint32_t index)
{
	if (p3_unlikely(index >= P3_TABLE_CHUNKS * P3_TABLE_EACH))
		return NULL;
	/* TABLE.1: a chunk is whole before it is linked. */
	char *chunk = p3_acquire(&t->chunk[index / P3_TABLE_EACH]);
	return p3_likely(chunk != NULL)
		       ? chunk + (size_t)(index % P3_TABLE_EACH) * t->elem
		       : NULL;
}

static void put_free(struct p3_table *t, struct p3_object *o)
{
	o->next_free = P3_NONE;
	if (t->free_tail == P3_NONE)
		t->free_head = o->index;
	else
		((struct p3_object *)p3_table_at(t, t->free_tail))->next_free = o->index;
	t->free_tail = o->index;
}

void p3_table_add(struct p3_table *t, void *chunk)
{
	uint32_t chunks = p3_get(&t->nchunks), first = chunks * P3_TABLE_EACH;
	char *at = chunk;
	for (uint32_t i = 0; i < P3_TABLE_EACH; i++)
		((struct p3_object *)(at + (size_t)i * t->elem))->index = first + i;
	/* TABLE.1 */
	p3_release(&t->chunk[chunks], at);
	p3_set(&t->nchunks, chunks + 1);
	for (uint32_t i = 0; i < P3_TABLE_EACH; i++)
		put_free(t, p3_table_at(t, first + i));
}

void *p3_table_alloc(struct p3_table *t)
{
	if (t->free_head == P3_NONE)
		return NULL;
	struct p3_object *o = p3_table_at(t, t->free_head);
	t->free_head = o->next_free;
	if (t->free_head == P3_NONE)
		t->free_tail = P3_NONE;
	t->live++;
	return o;
}

void p3_table_kill(struct p3_table *t, struct p3_object *o)
{
	uint32_t gen = p3_get(&o->gen);
	p3_release(&o->gen, gen + (gen & 1)); /* TABLE.2 */
	t->live--;
}

void p3_table_bury(struct p3_table *t, struct p3_object *o)
{
	put_free(t, o);
}

void p3_table_release(struct p3_table *t, struct p3_object *o)
{
	p3_table_kill(t, o);
	p3_table_bury(t, o);
}

/* ---- objects of an interface ---- */

void *p3_obj_named(struct p3_nic *n, enum p3_kind kind, uint64_t handle)
{
	static const uint8_t table[] = {
		[P3_KIND_ME] = P3_T_ME, [P3_KIND_MD] = P3_T_MD, [P3_KIND_EQ] = P3_T_EQ};
	return p3_named_in(&n->table[table[kind]], kind, handle);
}

static int most_of(const struct p3_ni *ni, enum p3_table_id id)
{
	return id == P3_T_ME   ? ni->limits.max_mes
	       : id == P3_T_MD ? ni->limits.max_mds
			       : ni->limits.max_eqs;
}

/* Tables and the counts of interfaces have the same order. */
_Static_assert((int)P3_U_ME == (int)P3_T_ME && (int)P3_U_MD == (int)P3_T_MD &&
		       (int)P3_U_EQ == (int)P3_T_EQ,
	"one number for both");

int p3_obj_room(struct p3_nic *n, enum p3_table_id id, uint32_t ni)
{
	if (n->ni[ni].use[id].cur >= (uint32_t)most_of(&n->ni[ni], id))
		return PTL_NO_SPACE;
	/* call.c adds a chunk and tries again */
	return n->table[id].free_head == P3_NONE ? -(1 + (int)id) : PTL_OK;
}

void *p3_obj_new(struct p3_nic *n, enum p3_table_id id, uint32_t ni)
{
	struct p3_object *o = p3_table_alloc(&n->table[id]);
	o->ni = ni;
	p3_use_more(&n->ni[ni], (enum p3_use_id)id);
	return o;
}

void p3_obj_born(struct p3_object *o)
{
	p3_release(&o->gen, p3_get(&o->gen) + 1); /* TABLE.2 */
}

void p3_obj_free(struct p3_nic *n, enum p3_table_id id, struct p3_object *o)
{
	p3_use_less(p3_ni_of(n, o), (enum p3_use_id)id);
	p3_table_release(&n->table[id], o);
}

void *p3_obj_next(struct p3_table *t, uint32_t ni, uint32_t *at)
{
	while (*at < p3_get(&t->nchunks) * P3_TABLE_EACH) {
		struct p3_object *o = p3_table_at(t, (*at)++);
		if ((p3_get(&o->gen) & 1) && o->ni == ni)
			return o;
	}
	return NULL;
}
