/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for the completion of an operation. */
#include "nic/cci/host_wait.h"

#include "nic/cci/call.h"
#include "nic/cci/queue.h"
#include "nic/host/call.h"
#include "nic/run/lease.h"
#include "nic/xfer/xfer.h"
#include "shm/fault.h"

#include <sched.h>

static bool is_done(void *arg)
{
	struct p3_cci_tx *tx = arg;
	return p3_acquire(&tx->done) != 0; /* CCIQ.2 */
}

static void look_for_readers(struct p3_nic *n, void *arg)
{
	bool *is_read = arg;
	*is_read = p3_xfer_is_read(n);
}

void p3_cci_wait_for_readers(struct p3_nic *n)
{
	uint64_t since = p3_get(&n->cci.withdrawn_ns);
	bool is_read = true;
	if (p3_likely(!since) || p3_now_ns() - since > P3_CCI_READERS_NS)
		return;
	p3_looks_fence(n, p3_fence_heavy); /* XFER.7 */
	FAULT_POINT("cci.withdrawn");
	while (p3_cci_call(n, look_for_readers, &is_read) && is_read &&
		p3_now_ns() - since <= P3_CCI_READERS_NS)
		sched_yield();
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
	if (p3_unlikely(tx->item.what == P3_CCI_WITHDRAWN))
		p3_cci_wait_for_readers(n);
	p3_cci_queue_give_back(&tx->item.ep->queue, &tx->item);
	return status;
}
