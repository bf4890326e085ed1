/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dump - tables as text, for people
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_REPORT_DUMP_H
#define P3_NIC_REPORT_DUMP_H

#include "nic/state.h"

int p3_fw_dump(struct p3_nic *n, struct p3_cmd *c);

#endif
