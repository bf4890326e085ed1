/* SPDX-License-Identifier: BSD-3-Clause */
/* Match entries, memory descriptors, and both together. */
#include "lib/node/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define IOVECS_MOST 65536u

static struct p3_iov *iov_alloc(ptl_size_t n)
{
	struct p3_iov *iov;
	if (p3_is_busy())
		return NULL;
	int saved = errno;
	p3_busy();
	p3_nic_free_iovs();
	iov = malloc(sizeof *iov + n * sizeof iov->v[0]);
	p3_idle();
	errno = saved;
	return iov;
}

/* Free a copy that belongs to no descriptor. */
static void iov_free(struct p3_iov *iov)
{
	if (!iov)
		return;
	p3_busy();
	free(iov);
	p3_idle();
}

/* Copy the elements: the caller's array need not survive the call. */
static int iov_copy(const ptl_md_t *md, struct p3_iov **iov_out)
{
	*iov_out = NULL;
	if (!(md->options & PTL_MD_IOVEC))
		return PTL_OK;
	if ((!md->start && md->length) || md->length > IOVECS_MOST)
		return PTL_MD_ILLEGAL;
	struct p3_iov *iov = iov_alloc(md->length);
	if (!iov)
		return PTL_NO_SPACE;
	*iov = (struct p3_iov){.refs = 1, .n = (uint32_t)md->length};
	if (md->length)
		memcpy(iov->v, md->start, md->length * sizeof iov->v[0]);
	*iov_out = iov;
	return PTL_OK;
}

/* Execute a command that makes a descriptor of *md.  Return its PTL_* code. */
static int md_make(
	struct p3_nic *nic, struct p3_cmd *c, const ptl_md_t *md, ptl_unlink_t unlink)
{
	c->md.unlink = (uint8_t)unlink;
	c->md.md = *md;
	int rc = iov_copy(md, &c->md.iov);
	if (rc != PTL_OK)
		return rc;
	rc = p3_nic_do(nic, c);
	if (rc != PTL_OK)
		iov_free(c->md.iov);
	return rc;
}

/* ---- match entries ---- */

/* Describe a new entry next to base, or at an end of pt_index's list. */
static P3_HOT struct p3_cmd_me me_of(ptl_handle_me_t base, ptl_pt_index_t pt_index,
	ptl_process_id_t id, ptl_match_bits_t bits, ptl_match_bits_t ignore,
	ptl_unlink_t unlink, ptl_ins_pos_t position)
{
	return (struct p3_cmd_me){.base = base,
		.id = id,
		.bits = bits,
		.ignore = ignore,
		.pt_index = pt_index,
		.position = (uint8_t)position,
		.unlink = (uint8_t)unlink};
}

/* Attach an entry.  me->pt_index: out. */
static __attribute__((noinline)) int me_attach(struct p3_nic *nic, ptl_handle_ni_t ni,
	struct p3_cmd_me *me, ptl_handle_me_t *me_handle)
{
	struct p3_cmd c;
	p3_cmd_begin(&c, P3_OP_ME_ATTACH, ni);
	c.me = *me;
	c.md.test_eq = PTL_EQ_NONE;
	int rc = p3_nic_do(nic, &c);
	if (rc != PTL_OK)
		return rc;
	me->pt_index = c.me.pt_index;
	*me_handle = c.handle_out;
	return PTL_OK;
}

int PtlMEAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position,
	ptl_handle_me_t *me_handle)
{
	if (p3_unlikely(!me_handle))
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	if (p3_likely(position == PTL_INS_AFTER)) {
		const struct p3_cmd_me me = me_of(PTL_INVALID_HANDLE, pt_index, match_id,
			match_bits, ignore_bits, unlink, PTL_INS_AFTER);
		if (p3_likely(p3_nic_me_attach(nic, ni_handle, &me, me_handle)))
			return PTL_OK;
	}
	struct p3_cmd_me me = me_of(PTL_INVALID_HANDLE, pt_index, match_id, match_bits,
		ignore_bits, unlink, position);
	return me_attach(nic, ni_handle, &me, me_handle);
}

int PtlMEAttachAny(ptl_handle_ni_t ni_handle, ptl_pt_index_t *pt_index,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op, ptl_handle_me_t *me_handle)
{
	if (!pt_index || !me_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd_me me = me_of(PTL_INVALID_HANDLE, 0, match_id, match_bits,
		ignore_bits, unlink_op, PTL_INS_AFTER);
	me.any_index = true;
	int rc = me_attach(nic, ni_handle, &me, me_handle);
	if (rc == PTL_OK)
		*pt_index = me.pt_index;
	return rc;
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
	struct p3_cmd_me me =
		me_of(base, 0, match_id, match_bits, ignore_bits, unlink_op, position);
	return me_attach(nic, PTL_INVALID_HANDLE, &me, me_handle);
}

/* Execute a command that has a handle only. */
static __attribute__((noinline)) int handle_unlink(
	enum p3_op op, ptl_handle_any_t handle, int no_nic_code)
{
	P3_CALL(nic, no_nic_code);
	struct p3_cmd c;
	p3_cmd_begin(&c, op, handle);
	return p3_nic_do(nic, &c);
}

int PtlMEUnlink(ptl_handle_me_t me_handle)
{
	struct p3_nic *nic = p3_nic_ready(p3_node());
	if (p3_likely(nic && p3_nic_me_unlink(nic, me_handle)))
		return PTL_OK;
	return handle_unlink(P3_OP_ME_UNLINK, me_handle, PTL_ME_INVALID);
}

/* ---- entry and descriptor in one step ---- */

/* Attach both, unless test_eq has or expects an event. */
static __attribute__((noinline)) int memd_attach(struct p3_nic *nic, ptl_handle_ni_t ni,
	const struct p3_cmd_me *me, const ptl_md_t *md, ptl_unlink_t md_unlink_op,
	ptl_handle_eq_t test_eq, ptl_handle_me_t *me_handle, ptl_handle_md_t *md_handle)
{
	struct p3_cmd c;
	p3_cmd_begin(&c, P3_OP_ME_ATTACH, ni);
	c.me = *me;
	c.me.with_md = true;
	c.md.test_eq = test_eq;
	int rc = md_make(nic, &c, md, md_unlink_op);
	if (rc != PTL_OK)
		return rc;
	*me_handle = c.handle_out;
	if (md_handle)
		*md_handle = c.md.handle_out;
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
	const struct p3_cmd_me me = me_of(PTL_INVALID_HANDLE, pt_index, match_id,
		match_bits, ignore_bits, me_unlink_op, position);
	if (p3_likely(p3_nic_memd_attach(nic, ni_handle, &me, &md,
		    md_unlink_op == PTL_UNLINK, PTL_EQ_NONE, me_handle, md_handle)))
		return PTL_OK;
	return memd_attach(nic, ni_handle, &me, &md, md_unlink_op, PTL_EQ_NONE, me_handle,
		md_handle);
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
	const struct p3_cmd_me me =
		me_of(base, 0, match_id, match_bits, ignore_bits, me_unlink_op, position);
	return memd_attach(nic, PTL_INVALID_HANDLE, &me, &md, md_unlink_op, PTL_EQ_NONE,
		me_handle, md_handle);
}

int PtlMEMDPost(ptl_handle_ni_t ni_handle, ptl_handle_me_t base,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink_op, ptl_ins_pos_t position,
	ptl_md_t md, ptl_unlink_t md_unlink_op, ptl_handle_me_t *me_handle,
	ptl_handle_md_t *md_handle, ptl_handle_eq_t eq_handle)
{
	if (p3_unlikely(!me_handle))
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	if (p3_unlikely(ni_handle == PTL_INVALID_HANDLE))
		return PTL_NI_INVALID;
	if (p3_unlikely(base == PTL_INVALID_HANDLE))
		return PTL_ME_INVALID;
	{
		const struct p3_cmd_me me = me_of(base, 0, match_id, match_bits,
			ignore_bits, me_unlink_op, position);
		if (p3_likely(p3_nic_memd_attach(nic, ni_handle, &me, &md,
			    md_unlink_op == PTL_UNLINK, eq_handle, me_handle, md_handle)))
			return PTL_OK;
	}
	const struct p3_cmd_me me =
		me_of(base, 0, match_id, match_bits, ignore_bits, me_unlink_op, position);
	return memd_attach(
		nic, ni_handle, &me, &md, md_unlink_op, eq_handle, me_handle, md_handle);
}

/* ---- memory descriptors ---- */

static __attribute__((noinline)) int md_attach(ptl_handle_me_t me_handle,
	const ptl_md_t *md, ptl_unlink_t unlink_op, ptl_handle_md_t *md_handle)
{
	P3_CALL(nic, PTL_ME_INVALID);
	struct p3_cmd c;
	p3_cmd_begin(&c, P3_OP_MD_ATTACH, me_handle);
	int rc = md_make(nic, &c, md, unlink_op);
	if (rc == PTL_OK && md_handle)
		*md_handle = c.md.handle_out;
	return rc;
}

int PtlMDAttach(ptl_handle_me_t me_handle, ptl_md_t md, ptl_unlink_t unlink_op,
	ptl_handle_md_t *md_handle)
{
	struct p3_nic *nic = p3_nic_ready(p3_node());
	if (p3_likely(nic && p3_nic_md_attach(nic, me_handle, &md,
				     unlink_op == PTL_UNLINK, md_handle)))
		return PTL_OK;
	return md_attach(me_handle, &md, unlink_op, md_handle);
}

static __attribute__((noinline)) int md_bind(ptl_handle_ni_t ni_handle,
	const ptl_md_t *md, ptl_unlink_t unlink_op, ptl_handle_md_t *md_handle)
{
	if (!md_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c;
	p3_cmd_begin(&c, P3_OP_MD_BIND, ni_handle);
	int rc = md_make(nic, &c, md, unlink_op);
	if (rc == PTL_OK)
		*md_handle = c.md.handle_out;
	return rc;
}

int PtlMDBind(ptl_handle_ni_t ni_handle, ptl_md_t md, ptl_unlink_t unlink_op,
	ptl_handle_md_t *md_handle)
{
	struct p3_nic *nic = p3_nic_ready(p3_node());
	if (p3_likely(nic && md_handle &&
		      p3_nic_md_bind(
			      nic, ni_handle, &md, unlink_op == PTL_UNLINK, md_handle)))
		return PTL_OK;
	return md_bind(ni_handle, &md, unlink_op, md_handle);
}

int PtlMDUnlink(ptl_handle_md_t md_handle)
{
	struct p3_nic *nic = p3_nic_ready(p3_node());
	if (p3_likely(nic && p3_nic_md_unlink(nic, md_handle)))
		return PTL_OK;
	return handle_unlink(P3_OP_MD_UNLINK, md_handle, PTL_MD_INVALID);
}

int PtlMDUpdate(ptl_handle_md_t md_handle, ptl_md_t *old_md, ptl_md_t *new_md,
	ptl_handle_eq_t eq_handle)
{
	P3_CALL(nic, PTL_MD_INVALID);
	struct p3_cmd c = {.op = P3_OP_MD_UPDATE, .handle = md_handle};
	c.md.iov = NULL;
	c.md.test_eq = eq_handle;
	c.md.change = new_md != NULL;
	if (old_md)
		c.old = *old_md; /* old.start may be an array for iovec elements */
	else
		c.old = (ptl_md_t){.options = 0};
	int rc = PTL_OK;
	if (new_md) {
		c.md.md = *new_md;
		rc = iov_copy(new_md, &c.md.iov);
	}
	if (rc != PTL_OK)
		return rc;
	rc = p3_nic_do(nic, &c);
	if (rc != PTL_OK)
		iov_free(c.md.iov);
	if (old_md && (rc == PTL_OK || rc == PTL_MD_NO_UPDATE))
		*old_md = c.old;
	return rc;
}
