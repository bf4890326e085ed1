/* SPDX-License-Identifier: BSD-3-Clause */
/* Match entries, alone and with their descriptors. */
#include "lib/md.h"
#include "lib/node/call.h"

#include <stdlib.h>

/* Describe a new entry; the caller adds its place: me.pt_index, me.any_index or
 * me.base. */
static inline void entry(struct p3_cmd *c, ptl_handle_ni_t ni, ptl_process_id_t id,
	ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t unlink,
	ptl_ins_pos_t position)
{
	p3_cmd_begin(c, P3_OP_ME_ATTACH, ni);
	c->me = (struct p3_cmd_me){.base = PTL_INVALID_HANDLE,
		.id = id,
		.bits = bits,
		.ignore = ignore,
		.position = (uint8_t)position,
		.unlink = (uint8_t)unlink};
	c->md.test_eq = PTL_EQ_NONE;
}

static __attribute__((noinline)) int attach(ptl_handle_ni_t ni_handle,
	ptl_pt_index_t pt_index, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position,
	ptl_handle_me_t *me_handle)
{
	if (!me_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c;
	entry(&c, ni_handle, match_id, match_bits, ignore_bits, unlink, position);
	c.me.pt_index = pt_index;
	int rc = p3_nic_do(nic, &c);
	if (rc == PTL_OK)
		*me_handle = c.handle_out;
	return rc;
}

/* Attach an entry in the most frequent case.  Return false, having done nothing, in all
 * others. */
static P3_HOT bool attach_at_once(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position,
	ptl_handle_me_t *me_handle)
{
	struct p3_nic *nic = p3_nic_ready(p3_node());
	if (p3_unlikely(!nic || !me_handle || position != PTL_INS_AFTER))
		return false;
	const struct p3_cmd_me me = {.id = match_id,
		.bits = match_bits,
		.ignore = ignore_bits,
		.pt_index = pt_index,
		.unlink = (uint8_t)unlink};
	return p3_nic_me_attach(nic, ni_handle, &me, me_handle);
}

int PtlMEAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position,
	ptl_handle_me_t *me_handle)
{
	if (p3_likely(attach_at_once(ni_handle, pt_index, match_id, match_bits,
		    ignore_bits, unlink, position, me_handle)))
		return PTL_OK;
	return attach(ni_handle, pt_index, match_id, match_bits, ignore_bits, unlink,
		position, me_handle);
}

int PtlMEAttachAny(ptl_handle_ni_t ni_handle, ptl_pt_index_t *pt_index,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op, ptl_handle_me_t *me_handle)
{
	if (!pt_index || !me_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c;
	entry(&c, ni_handle, match_id, match_bits, ignore_bits, unlink_op, PTL_INS_AFTER);
	c.me.any_index = true;
	int rc = p3_nic_do(nic, &c);
	if (rc != PTL_OK)
		return rc;
	*pt_index = c.me.pt_index;
	*me_handle = c.handle_out;
	return PTL_OK;
}

int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id,
	ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op,
	ptl_ins_pos_t position, ptl_handle_me_t *me_handle)
{
	if (!me_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_ME_INVALID);
	if (base == PTL_INVALID_HANDLE)
		return PTL_ME_INVALID;
	struct p3_cmd c;
	entry(&c, PTL_INVALID_HANDLE, match_id, match_bits, ignore_bits, unlink_op,
		position);
	c.me.base = base;
	int rc = p3_nic_do(nic, &c);
	if (rc == PTL_OK)
		*me_handle = c.handle_out;
	return rc;
}

int PtlMEUnlink(ptl_handle_me_t me_handle)
{
	P3_CALL(nic, PTL_ME_INVALID);
	struct p3_cmd c;
	p3_cmd_begin(&c, P3_OP_ME_UNLINK, me_handle);
	return p3_nic_do(nic, &c);
}

/* ---- entry and descriptor in one step ---- */

static int post(struct p3_nic *nic, struct p3_cmd *c, const ptl_md_t *md,
	ptl_unlink_t md_unlink_op, ptl_handle_me_t *me_handle, ptl_handle_md_t *md_handle)
{
	c->me.with_md = true;
	int rc = p3_md_make(nic, c, md, md_unlink_op);
	if (rc != PTL_OK)
		return rc;
	*me_handle = c->handle_out;
	if (md_handle)
		*md_handle = c->md.handle_out;
	return PTL_OK;
}

int PtlMEMDAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink_op, ptl_ins_pos_t position,
	ptl_md_t md, ptl_unlink_t md_unlink_op, ptl_handle_me_t *me_handle,
	ptl_handle_md_t *md_handle)
{
	if (!me_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c;
	entry(&c, ni_handle, match_id, match_bits, ignore_bits, me_unlink_op, position);
	c.me.pt_index = pt_index;
	return post(nic, &c, &md, md_unlink_op, me_handle, md_handle);
}

int PtlMEMDInsert(ptl_handle_me_t base, ptl_process_id_t match_id,
	ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits,
	ptl_unlink_t me_unlink_op, ptl_ins_pos_t position, ptl_md_t md,
	ptl_unlink_t md_unlink_op, ptl_handle_me_t *me_handle, ptl_handle_md_t *md_handle)
{
	if (!me_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_ME_INVALID);
	if (base == PTL_INVALID_HANDLE)
		return PTL_ME_INVALID;
	struct p3_cmd c;
	entry(&c, PTL_INVALID_HANDLE, match_id, match_bits, ignore_bits, me_unlink_op,
		position);
	c.me.base = base;
	return post(nic, &c, &md, md_unlink_op, me_handle, md_handle);
}

int PtlMEMDPost(ptl_handle_ni_t ni_handle, ptl_handle_me_t base,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink_op, ptl_ins_pos_t position,
	ptl_md_t md, ptl_unlink_t md_unlink_op, ptl_handle_me_t *me_handle,
	ptl_handle_md_t *md_handle, ptl_handle_eq_t eq_handle)
{
	if (!me_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	if (ni_handle == PTL_INVALID_HANDLE)
		return PTL_NI_INVALID;
	if (base == PTL_INVALID_HANDLE)
		return PTL_ME_INVALID;
	struct p3_cmd c;
	entry(&c, ni_handle, match_id, match_bits, ignore_bits, me_unlink_op, position);
	c.me.base = base;
	c.md.test_eq = eq_handle;
	return post(nic, &c, &md, md_unlink_op, me_handle, md_handle);
}
