/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The straight paths (shm/variant.h) of match entries and memory descriptors.
 *
 * These paths take a command if the lease is free, no other command waits, the table has
 * room, and the command succeeds.  All other commands, each error among them, go through
 * p3_nic_do().
 */
#include "nic/host/brief.h"
#include "nic/obj/md.h"
#include "nic/obj/me.h"
#include "nic/obj/ni.h"

/* End the hold of the lease.  Set *handle_out to the handle of the new object, or return
 * false if there is none. */
static P3_HOT bool end_making(struct p3_nic *n, enum p3_op op,
	const struct p3_object *made, uint64_t *handle_out)
{
	if (p3_unlikely(!made)) {
		p3_brief_turn_back(n);
		return false;
	}
	uint64_t handle = p3_get(&made->name);
	p3_brief_leave(n, op);
	if (handle_out)
		*handle_out = handle;
	return true;
}

P3_SPREAD
bool p3_nic_me_attach(struct p3_nic *n, uint64_t ni_handle, const struct p3_cmd_me *what,
	uint64_t *handle_out)
{
	if (p3_unlikely(!p3_brief_enter(n)))
		return false;
	struct p3_me *me = p3_me_append(n, ni_handle, what);
	return end_making(n, P3_OP_ME_ATTACH, me ? &me->o : NULL, handle_out);
}

P3_SPREAD
bool p3_nic_md_attach(struct p3_nic *n, uint64_t me_handle, const ptl_md_t *what,
	bool unlink, uint64_t *handle_out)
{
	if (p3_unlikely(!p3_brief_enter(n)))
		return false;
	struct p3_md *md = p3_me_give_md(n, me_handle, what, unlink);
	return end_making(n, P3_OP_MD_ATTACH, md ? &md->o : NULL, handle_out);
}

P3_SPREAD
bool p3_nic_md_bind(struct p3_nic *n, uint64_t ni_handle, const ptl_md_t *what,
	bool unlink, uint64_t *handle_out)
{
	if (p3_unlikely(!p3_brief_enter(n)))
		return false;
	uint32_t ni = p3_handle_ni(ni_handle);
	struct p3_md *md = NULL;
	if (p3_likely(p3_ni_is(n, ni, ni_handle)))
		md = p3_md_make_plain(n, ni, what, unlink, P3_NONE);
	return end_making(n, P3_OP_MD_BIND, md ? &md->o : NULL, handle_out);
}

P3_SPREAD
bool p3_nic_md_unlink(struct p3_nic *n, uint64_t handle)
{
	if (p3_unlikely(!p3_brief_enter(n)))
		return false;
	struct p3_md *md = p3_md_named(n, handle);
	if (p3_unlikely(!md || md->pending)) {
		p3_brief_turn_back(n);
		return false;
	}
	p3_me_drop_md(n, md);
	p3_brief_leave(n, P3_OP_MD_UNLINK);
	return true;
}
