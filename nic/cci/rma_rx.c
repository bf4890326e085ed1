/* SPDX-License-Identifier: BSD-3-Clause */
/* RMA requests of peers. */
#include "nic/cci/rma_rx.h"

bool p3_cci_rma_take(struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c,
	uint64_t w0, bool *waits_out)
{
	(void)n, (void)p, (void)c, (void)w0, (void)waits_out;
	return false;
}
