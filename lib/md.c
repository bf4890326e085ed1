/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory descriptors. */
#include "lib/md.h"
#include "lib/node/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define P3_IOVECS_MOST 65536u

static struct p3_iov *alloc_iov(ptl_size_t n)
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
static void free_iov(struct p3_iov *iov)
{
	if (!iov)
		return;
	p3_busy();
	free(iov);
	p3_idle();
}

/* Copy the elements: the caller's array need not survive the call. */
static int copy_iov(const ptl_md_t *md, struct p3_iov **iov_out)
{
	*iov_out = NULL;
	if (!(md->options & PTL_MD_IOVEC))
		return PTL_OK;
	if ((!md->start && md->length) || md->length > P3_IOVECS_MOST)
		return PTL_MD_ILLEGAL;
	struct p3_iov *iov = alloc_iov(md->length);
	if (!iov)
		return PTL_NO_SPACE;
	*iov = (struct p3_iov){.refs = 1, .n = (uint32_t)md->length};
	if (md->length)
		memcpy(iov->v, md->start, md->length * sizeof iov->v[0]);
	*iov_out = iov;
	return PTL_OK;
}

int p3_md_make(
	struct p3_nic *nic, struct p3_cmd *c, const ptl_md_t *md, ptl_unlink_t unlink)
{
	c->md.unlink = (uint8_t)unlink;
	c->md.md = *md;
	int rc = copy_iov(md, &c->md.iov);
	if (rc != PTL_OK)
		return rc;
	rc = p3_nic_do(nic, c);
	if (rc != PTL_OK)
		free_iov(c->md.iov);
	return rc;
}

static __attribute__((noinline)) int attach(ptl_handle_me_t me_handle, const ptl_md_t *md,
	ptl_unlink_t unlink_op, ptl_handle_md_t *md_handle)
{
	P3_CALL(nic, PTL_ME_INVALID);
	struct p3_cmd c;
	p3_cmd_begin(&c, P3_OP_MD_ATTACH, me_handle);
	int rc = p3_md_make(nic, &c, md, unlink_op);
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
	return attach(me_handle, &md, unlink_op, md_handle);
}

static __attribute__((noinline)) int bind(ptl_handle_ni_t ni_handle, const ptl_md_t *md,
	ptl_unlink_t unlink_op, ptl_handle_md_t *md_handle)
{
	if (!md_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c;
	p3_cmd_begin(&c, P3_OP_MD_BIND, ni_handle);
	int rc = p3_md_make(nic, &c, md, unlink_op);
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
	return bind(ni_handle, &md, unlink_op, md_handle);
}

static __attribute__((noinline)) int unlink_md(ptl_handle_md_t md_handle)
{
	P3_CALL(nic, PTL_MD_INVALID);
	struct p3_cmd c;
	p3_cmd_begin(&c, P3_OP_MD_UNLINK, md_handle);
	return p3_nic_do(nic, &c);
}

int PtlMDUnlink(ptl_handle_md_t md_handle)
{
	struct p3_nic *nic = p3_nic_ready(p3_node());
	if (p3_likely(nic && p3_nic_md_unlink(nic, md_handle)))
		return PTL_OK;
	return unlink_md(md_handle);
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
		rc = copy_iov(new_md, &c.md.iov);
	}
	if (rc != PTL_OK)
		return rc;
	rc = p3_nic_do(nic, &c);
	if (rc != PTL_OK)
		free_iov(c.md.iov);
	if (old_md && (rc == PTL_OK || rc == PTL_MD_NO_UPDATE))
		*old_md = c.old;
	return rc;
}
