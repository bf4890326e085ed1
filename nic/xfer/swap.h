/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swap - exchanges (PtlGetPut) of bytes that long transfers read or write
 *
 * Only the lease holder calls these functions.  Their state is the mark "swapped" of each
 * slot in n->sources, and this node's words "swapping" to the readers.
 */
#ifndef P3_NIC_XFER_SWAP_H
#define P3_NIC_XFER_SWAP_H

#include "nic/state.h"

#define P3_SWAP_NS 50000000u /* longest wait of an exchange for transfers */
/* Return true if these few bytes may be exchanged now.  Return false while a long
 * transfer that has begun, and that moves, uses some of them.  waited is the time that
 * the exchange has waited, in ns; after P3_SWAP_NS only an exchange without a side
 * (edge.c) goes on waiting.  If the result is true, the caller exchanges the bytes, and
 * then calls p3_xfer_swapped(). */
bool p3_xfer_may_swap(struct p3_nic *n, const struct p3_region *r, uint64_t off,
	uint64_t len, uint64_t waited);
/* End an exchange, or the attempt at one that has to wait. */
void p3_xfer_swapped(struct p3_nic *n);

#endif
