/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma_rx - RMA requests of peers
 *
 * Only the lease holder calls this function.
 */
#ifndef P3_NIC_CCI_RMA_RX_H
#define P3_NIC_CCI_RMA_RX_H

#include "nic/state.h"

/* Take a WRITE or a READ.  Return false if the peer wrote nonsense.  *waits_out is
 * true if the request stays in its lane until a transfer has ended. */
bool p3_cci_rma_take(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c,
	uint64_t w0, bool *waits_out);

#endif
