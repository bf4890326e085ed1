/* SPDX-License-Identifier: BSD-3-Clause */
/* late.c - messages that come before their receives */
#include "prov.h"

int ofi_list_open(struct ofi_list *list, struct ofi_ep *ep, int kind)
{
	(void)list;
	(void)ep;
	(void)kind;
	return -FI_ENOSYS;
}

bool ofi_list_withdraw(struct ofi_list *list)
{
	(void)list;
	return true;
}

void ofi_list_close(struct ofi_list *list)
{
	(void)list;
}
