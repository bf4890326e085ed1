/* SPDX-License-Identifier: BSD-3-Clause */
/* The eventfd of an endpoint becomes readable. */
#include "nic/cci/handle.h"
#include "shm/fault.h"
#include "shm/fd.h"

/* Another thread may change IDLE to ARMED, or back, at the same time. */
static bool begin(struct p3_cci_handle *h)
{
	uint32_t was = P3_CCI_ARMED;
	while (!p3_cas32(&h->state, &was, P3_CCI_SIGNALLING))
		if (was != P3_CCI_ARMED && was != P3_CCI_IDLE)
			return false;
	return true;
}

void p3_cci_handle_signal(struct p3_cci_handle *h)
{
	if (!begin(h))
		return;
	FAULT_POINT("cci.signalling");
	p3_fd_signal(h->fd);
	p3_release(&h->state, P3_CCI_SIGNALLED); /* CCIFD.2 */
}
