/* SPDX-License-Identifier: BSD-3-Clause */
/* rx.c - receiving messages */
#include "prov.h"

ssize_t ofi_cancel(fid_t fid, void *context)
{
	(void)fid;
	(void)context;
	return -FI_ENOSYS;
}
