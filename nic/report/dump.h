/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dump - tables of the NIC as text, for people
 *
 * Only the lease holder calls this function, through the command P3_OP_DUMP.  It has no
 * state.
 */
#ifndef P3_NIC_REPORT_DUMP_H
#define P3_NIC_REPORT_DUMP_H

#include "nic/state.h"

/* Write the match list, the entry or the event queues that c names into c->dump.text. */
int p3_dump_write(struct p3_nic *n, struct p3_cmd *c);

#endif
