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

/*
 * Wait, without the lease, until no peer of this host reads a slice of memory that was
 * withdrawn (XFER.7).  A slice takes some 10 us; a peer that is stopped in one is awaited
 * for P3_CCI_READERS_NS after the last withdrawal.
 */
#define P3_CCI_READERS_NS 100000000u
void p3_cci_wait_for_readers(struct p3_nic *n);
/* Wait until the operation is complete, give it back, and return its status. */
int p3_cci_wait_for(struct p3_nic *n, struct p3_cci_tx *tx);

#endif
