/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ni - network interfaces: opening, access control list, status registers, objects
 *
 * Only the lease holder calls these functions.  Their state is n->ni.  The functions with
 * a command return the PTL code that the program gets.
 */
#ifndef P3_NIC_OBJ_NI_H
#define P3_NIC_OBJ_NI_H

#include "nic/state.h"

int p3_ni_open(struct p3_nic *n, struct p3_cmd *c);
int p3_ni_check(struct p3_nic *n, struct p3_cmd *c);
int p3_ni_ac_entry(struct p3_nic *n, struct p3_cmd *c);
int p3_ni_status(struct p3_nic *n, struct p3_cmd *c);
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

/* ---- the room that an interface has for objects ---- */

/* Tables and the counts of interfaces have the same order. */
_Static_assert((int)P3_U_ME == (int)P3_T_ME && (int)P3_U_MD == (int)P3_T_MD &&
		       (int)P3_U_EQ == (int)P3_T_EQ,
	"one number for both");

static P3_HOT uint32_t p3_obj_most(const struct p3_ni *ni, enum p3_table_id id)
{
	return (uint32_t)(id == P3_T_ME   ? ni->limits.max_mes
			  : id == P3_T_MD ? ni->limits.max_mds
					  : ni->limits.max_eqs);
}

/* Return PTL_OK if interface ni may have one more object, PTL_NO_SPACE, or the table
 * that must grow, as -(1 + id): call.c adds a chunk then and tries again. */
static P3_HOT int p3_obj_room(const struct p3_nic *n, enum p3_table_id id, uint32_t ni)
{
	if (n->ni[ni].use[id].cur >= p3_obj_most(&n->ni[ni], id))
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

#endif
