/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host_wait - waits of calls with CCI_FLAG_BLOCKING
 *
 * Any host thread may call this function, without the lease.
 *
 * Memory ordering:
 *	CCIQ.2	done of an operation: the firmware releases (it has written the bytes of
 *		a READ) -> the thread that waits acquires
 */
#ifndef P3_NIC_CCI_HOST_WAIT_H
#define P3_NIC_CCI_HOST_WAIT_H

#include "nic/state.h"

/* Wait until the operation is complete, give it back, and return its status. */
int p3_cci_wait_for(struct p3_nic *n, struct p3_cci_tx *tx);

#endif
