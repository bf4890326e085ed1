/* SPDX-License-Identifier: BSD-3-Clause */
/* Match entries. */
#include "lib/lib.h"

int PtlMEAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position,
	ptl_handle_me_t *me_handle)
{
	if (!me_handle)
		return PTL_SEGV;
	P3_CALL(nic, PTL_NI_INVALID);
	if (p3_handle_ni(ni_handle) >= P3_JOB_NIS)
		return PTL_NI_INVALID;
	struct p3_cmd c = {.op = P3_OP_ME_ATTACH,
		.ni = (uint16_t)p3_handle_ni(ni_handle),
		.flag = unlink,
		.handle = ni_handle};
	c.me.id = match_id;
	c.me.bits = match_bits;
	c.me.ignore = ignore_bits;
	c.me.pt_index = pt_index;
	c.me.position = position;
	int rc = p3_nic_do(nic, &c);
	if (rc == PTL_OK)
		*me_handle = c.handle_out;
	return rc;
}

int PtlMEUnlink(ptl_handle_me_t me_handle)
{
	P3_CALL(nic, PTL_ME_INVALID);
	struct p3_cmd c = {.op = P3_OP_ME_UNLINK, .handle = me_handle};
	return p3_nic_do(nic, &c);
}
