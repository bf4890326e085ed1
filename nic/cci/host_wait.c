/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for the completion of an operation. */
#include "nic/cci/host_wait.h"

#include "nic/cci/queue.h"
#include "nic/host/call.h"
#include "nic/run/wait.h"

static bool is_done(void *arg)
{
	struct p3_cci_tx *tx = arg;
	return p3_acquire(&tx->done) != 0; /* CCIQ.2 */
}

int p3_cci_wait_for(struct p3_nic *n, struct p3_cci_tx *tx)
{
	const uint64_t op = P3_OP_CCI;
	const struct p3_wants wants = {P3_WAIT_COMMAND, 1, &op};
	p3_call_begin();
	bool done = p3_wait_until(n, UINT64_MAX, &wants, is_done, tx);
	p3_call_end(n);
	if (!done)
		return CCI_ERROR; /* the NIC closes */
	int status = (int)p3_get(&tx->done) - 1;
	p3_cci_queue_give_back(&tx->item.ep->queue, &tx->item);
	return status;
}
