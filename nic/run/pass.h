/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pass - one bounded pass, dispatch of commands, wake-ups at its end
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_RUN_PASS_H
#define P3_NIC_RUN_PASS_H

#include "nic/report/trace.h"
#include "shm/fault.h"

#define P3_PASS_MSGS 16u

/* Return the weight of a pass: one that took more messages counts as several. */
static inline uint32_t p3_fw_share(const struct p3_nic *n)
{
	return 1 + n->msgs / (2 * P3_PASS_MSGS);
}

int p3_fw_exec(struct p3_nic *n, struct p3_cmd *c);
void p3_fw_mail(struct p3_nic *n); /* execute all posted commands */
/* Run one pass.  Return true if it found work and may have left as much. */
bool p3_fw_pass(struct p3_nic *n);
/* Give up the lease, fence, and look for sleepers to wake, cold lanes to ring for, and
 * commands in the mailbox. */
void p3_fw_leave(struct p3_nic *n);

static inline bool p3_fw_enter(struct p3_nic *n, enum p3_lease_holder who)
{
	if (p3_unlikely(!p3_lease_take(&n->lease, who)))
		return false;
	p3_count(&n->count[who == P3_LEASE_NIC ? P3_C_LEASE_NIC : P3_C_LEASE_HOST], 1);
	FAULT_POINT("lease.taken");
	P3_TRACE(lease, n, who);
	if (p3_unlikely(p3_mbx_any(n->mailbox)))
		p3_fw_mail(n);
	return true;
}

#endif
