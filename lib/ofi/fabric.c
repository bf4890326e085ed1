/* SPDX-License-Identifier: BSD-3-Clause */
/* fabric.c - the fabric, of which there is one: the interface's network */
#include "prov.h"

#include <stdlib.h>
#include <string.h>

static int fabric_close(struct fid *fid)
{
	struct ofi_fabric *fabric = container_of(fid, struct ofi_fabric, fid.fid);
	if (ofi_is_held(&fabric->refs))
		return -FI_EBUSY;
	free(fabric);
	return 0;
}

/* Whether the program may sleep on the descriptors of these objects. */
static int fabric_trywait(struct fid_fabric *fid, struct fid **fids, int count)
{
	(void)fid;
	int rc = fids && count > 0 ? 0 : -FI_EINVAL;
	for (int i = 0; i < count && !rc; i++)
		if (fids[i] && fids[i]->fclass == FI_CLASS_CQ)
			rc = ofi_cq_trywait(
				container_of(fids[i], struct ofi_cq, fid.fid));
		else if (fids[i] && fids[i]->fclass == FI_CLASS_EQ)
			rc = ofi_eq_trywait(
				container_of(fids[i], struct ofi_eq, fid.fid));
		else
			rc = -FI_EINVAL;
	return rc;
}

static int fabric_domain2(struct fid_fabric *fabric, struct fi_info *info,
	struct fid_domain **domain, uint64_t flags, void *context)
{
	return flags ? -FI_EBADFLAGS : ofi_domain_open(fabric, info, domain, context);
}

/* clang-format off */
OFI_NO(int, fabric_passive_ep, struct fid_fabric *fabric, struct fi_info *info,
	struct fid_pep **pep, void *context)
OFI_NO(int, fabric_wait_open, struct fid_fabric *fabric, struct fi_wait_attr *attr,
	struct fid_wait **wait)
/* clang-format on */

static struct fi_ops fabric_fid_ops =
	OFI_FID_OPS(fabric_close, ofi_no_bind, ofi_no_control);
static struct fi_ops_fabric fabric_ops = {
	.size = sizeof fabric_ops,
	.domain = ofi_domain_open,
	.passive_ep = fabric_passive_ep,
	.eq_open = ofi_eq_open,
	.wait_open = fabric_wait_open,
	.trywait = fabric_trywait,
	.domain2 = fabric_domain2,
};

int ofi_fabric_open(
	struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	if (!attr || !fabric)
		return -FI_EINVAL;
	if (attr->name && strcmp(attr->name, OFI_NAME))
		return -FI_EINVAL;
	struct ofi_fabric *made = calloc(1, sizeof *made);
	if (!made)
		return -FI_ENOMEM;
	made->fid.fid = (struct fid){FI_CLASS_FABRIC, context, &fabric_fid_ops};
	made->fid.ops = &fabric_ops;
	made->fid.api_version = attr->api_version;
	*fabric = &made->fid;
	return 0;
}
