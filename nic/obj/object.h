/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * object - tables of interfaces, match entries, descriptors, queues and pendings
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_OBJ_OBJECT_H
#define P3_NIC_OBJ_OBJECT_H

#include "nic/state.h"

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

#endif
