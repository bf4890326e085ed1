/* SPDX-License-Identifier: BSD-3-Clause */
/* Network interfaces: opening, access control list, status registers. */
#include "nic/obj/ni.h"

#include "nic/match/match.h"

#include <string.h>

int p3_ni_check(struct p3_nic *n, struct p3_cmd *c)
{
	uint32_t ni = p3_handle_ni(c->handle);
	return p3_ni_is(n, ni, c->handle) ? PTL_OK : PTL_NI_INVALID;
}

static void set_ac(struct p3_ni *ni, uint32_t index, const struct p3_ac *entry)
{
	ni->ac[index] = *entry;
	if (index)
		return;
	ni->ac0_asks_owner = entry->who.mask == 0 && entry->pt_index == PTL_PT_INDEX_ANY;
	ni->ac0_owner = entry->owner;
}

int p3_ni_open(struct p3_nic *n, struct p3_cmd *c)
{
	if (c->ni >= P3_JOB_NIS || (p3_get(&n->ni[c->ni].gen) & 1))
		return PTL_NO_SPACE;
	struct p3_ni *ni = &n->ni[c->ni];
	ni->pid = c->ni_open.pid;
	ni->options = c->ni_open.cray ? P3_MD_CRAY : 0;
	ni->limits = c->ni_open.limits;
	ni->portal = c->ni_open.portals;
	ni->bucket = c->ni_open.buckets;
	ni->bucket_mask = c->ni_open.nbuckets - 1;
	ni->ac = c->ni_open.acs;
	p3_set(&ni->attended, 0);
	ni->opened_ns = p3_now_ns();
	ni->sent_before = p3_get(&n->count[P3_C_SENT]);
	ni->drops = ni->drop_bytes = 0;
	ni->received = ni->received_bytes = 0;
	ni->sent = ni->sent_bytes = 0;
	memset(ni->use, 0, sizeof ni->use);
	memset(ni->aligned, 0, sizeof ni->aligned);
	/* Entry 0 admits any process of the same user to any portal. */
	const struct p3_ac entry = {.valid = true,
		.who = p3_want_id((ptl_process_id_t){PTL_NID_ANY, PTL_PID_ANY}),
		.owner = p3_want_owner(n->conf.uid, PTL_JID_ANY),
		.pt_index = PTL_PT_INDEX_ANY};
	set_ac(ni, 0, &entry);
	p3_acl_cache_clear(n);
	uint32_t gen = p3_get(&ni->gen) + 1;
	p3_release(&ni->gen, gen); /* TABLE.2 */
	c->handle_out = p3_handle(P3_KIND_NI, c->ni, 0, gen);
	return PTL_OK;
}

static struct p3_ni *open_ni(struct p3_nic *n, uint64_t handle)
{
	uint32_t ni = p3_handle_ni(handle);
	return p3_ni_is(n, ni, handle) ? &n->ni[ni] : NULL;
}

int p3_ni_ac_entry(struct p3_nic *n, struct p3_cmd *c)
{
	struct p3_ni *ni = open_ni(n, c->handle);
	if (!ni)
		return PTL_NI_INVALID;
	if (c->ac.index > (uint32_t)ni->limits.max_ac_index)
		return PTL_AC_INDEX_INVALID;
	if (c->ac.pt_index != PTL_PT_INDEX_ANY &&
		c->ac.pt_index > (uint32_t)ni->limits.max_pt_index)
		return PTL_PT_INDEX_INVALID;
	const struct p3_ac entry = {.valid = true,
		.who = p3_want_id(c->ac.id),
		.owner = p3_want_owner(c->ac.uid, c->ac.jid),
		.pt_index = c->ac.pt_index};
	set_ac(ni, c->ac.index, &entry);
	p3_acl_cache_clear(n);
	return PTL_OK;
}

/* Return a register of one p3_use: made, ended, most at once, now. */
static uint64_t use_register(const struct p3_use *u, uint32_t which)
{
	uint64_t value[] = {u->made, u->made - u->cur, u->max, u->cur};
	return value[which];
}

/* Return a register; most operations end in the step that begins them, and are not in
 * p3_use. */
static uint64_t operation_register(const struct p3_ni *ni, uint32_t which)
{
	struct p3_use all = ni->use[P3_U_OP];
	all.made = ni->sent + ni->received;
	if (all.made && !all.max)
		all.max = 1;
	return use_register(&all, which);
}

static uint64_t register_of(const struct p3_ni *ni, uint32_t i)
{
	const uint64_t plain[] = {[PTL_SR_DROP_COUNT] = ni->drops,
		[PTL_SR_DROP_LENGTH] = ni->drop_bytes,
		[PTL_SR_RECV_COUNT] = ni->received,
		[PTL_SR_RECV_LENGTH] = ni->received_bytes,
		[PTL_SR_SEND_COUNT] = ni->sent,
		[PTL_SR_SEND_LENGTH] = ni->sent_bytes,
		[PTL_SR_PTLS_MAX] = ni->use[P3_U_LIST].max,
		[PTL_SR_PTLS_CUR] = ni->use[P3_U_LIST].cur};
	if (i < PTL_SR_MSGS_ALLOC)
		return plain[i];
	if (i < PTL_SR_MES_ALLOC)
		return operation_register(ni, i - PTL_SR_MSGS_ALLOC);
	if (i < PTL_SR_MDS_ALLOC)
		return use_register(&ni->use[P3_U_ME], i - PTL_SR_MES_ALLOC);
	if (i < PTL_SR_EQS_ALLOC)
		return use_register(&ni->use[P3_U_MD], i - PTL_SR_MDS_ALLOC);
	if (i < PTL_SR_MD_ALIGN_128)
		return use_register(&ni->use[P3_U_EQ], i - PTL_SR_EQS_ALLOC);
	return ni->aligned[i - PTL_SR_MD_ALIGN_128];
}

int p3_ni_status(struct p3_nic *n, struct p3_cmd *c)
{
	const struct p3_ni *ni = open_ni(n, c->handle);
	if (!ni)
		return PTL_NI_INVALID;
	if (c->status.index > PTL_SR_MD_ALIGN_8)
		return PTL_SR_INDEX_INVALID;
	c->status.value = (int64_t)register_of(ni, c->status.index);
	return PTL_OK;
}

int p3_ni_of_handle(struct p3_nic *n, struct p3_cmd *c)
{
	enum p3_kind kind = p3_handle_kind(c->handle);
	uint32_t ni = p3_handle_ni(c->handle);
	bool lives = kind == P3_KIND_NI ? open_ni(n, c->handle) != NULL
		     : kind == P3_KIND_ME || kind == P3_KIND_MD || kind == P3_KIND_EQ
			     ? p3_obj_named(n, kind, c->handle) != NULL
			     : false;
	if (!lives)
		return PTL_HANDLE_INVALID;
	c->handle_out = p3_handle(P3_KIND_NI, ni, 0, p3_get(&n->ni[ni].gen));
	return PTL_OK;
}
