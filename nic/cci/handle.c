/* SPDX-License-Identifier: BSD-3-Clause */
/* The eventfd of an endpoint becomes readable. */
#include "nic/cci/handle.h"
#include "shm/fault.h"
#include "shm/fd.h"

void p3_cci_handle_signal(struct p3_cci_handle *h)
{
	uint32_t armed = P3_CCI_ARMED, idle = P3_CCI_IDLE;
	if (!p3_cas32(&h->state, &armed, P3_CCI_SIGNALLING) &&
		!p3_cas32(&h->state, &idle, P3_CCI_SIGNALLING))
		return;
	FAULT_POINT("cci.signalling");
	p3_fd_signal(h->fd);
	p3_release(&h->state, P3_CCI_SIGNALLED); /* CCIFD.2 */
}
