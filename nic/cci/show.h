/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * show - CCI's counters and endpoints in the control block, for tools
 *
 * Only the lease holder calls this, with the other gauges (nic/report/mirror.c).  The
 * state is shown of n->cci, and the lines of shm/layout.h; nothing is decided by them.
 */
#ifndef P3_NIC_CCI_SHOW_H
#define P3_NIC_CCI_SHOW_H

#include "nic/state.h"

P3_RARE void p3_cci_show(struct p3_nic *n, uint64_t now);

#endif
