/* SPDX-License-Identifier: BSD-3-Clause */
/* Printing the library's state, for people who look for a fault. */
#include "lib/node/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define P3_TEXT_LEN ((size_t)1 << 18) /* longest dump; the rest is cut off */

unsigned int PtlNIDebug(ptl_handle_ni_t ni_handle, unsigned int mask)
{
	static p3_a32 masks[P3_JOB_NIS];
	uint32_t ni = p3_handle_ni(ni_handle);
	return p3_exchange32(&masks[ni < P3_JOB_NIS ? ni : 0], mask);
}

/* Let the firmware write the text of a dump, then print it without holding the lease. */
static int dump(struct p3_nic *nic, struct p3_cmd *c)
{
	if (p3_is_busy())
		return PTL_NO_SPACE;
	struct p3_caller caller = p3_caller_save();
	int rc = PTL_NO_SPACE;
	c->op = P3_OP_DUMP;
	c->dump.size = P3_TEXT_LEN;
	c->dump.text = malloc(P3_TEXT_LEN);
	if (c->dump.text) {
		c->dump.text[0] = 0;
		rc = p3_nic_do(nic, c);
	}
	if (rc == PTL_OK)
		(void)fputs(c->dump.text, stderr);
	free(c->dump.text);
	p3_caller_restore(caller);
	return rc;
}

int PtlTblDump(ptl_handle_ni_t ni_handle, int pt_index)
{
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c = {.flag = P3_DUMP_LIST, .handle = ni_handle};
	c.dump.pt_index = (uint32_t)pt_index;
	return dump(nic, &c);
}

int PtlMEDump(ptl_handle_me_t me_handle)
{
	P3_CALL(nic, PTL_ME_INVALID);
	struct p3_cmd c = {.flag = P3_DUMP_ME, .handle = me_handle};
	return dump(nic, &c);
}

int PtlNIEqDump(ptl_handle_ni_t ni_handle)
{
	P3_CALL(nic, PTL_NI_INVALID);
	struct p3_cmd c = {.flag = P3_DUMP_QUEUES, .handle = ni_handle};
	return dump(nic, &c);
}
