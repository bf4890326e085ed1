/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls under the lease, or through the mailbox. */
#include "nic/cci/call.h"

#include "nic/host/call.h"
#include "nic/run/lease.h"

int p3_cci_command(struct p3_nic *n, struct p3_cmd *c)
{
	c->cci.run(n, c->cci.arg);
	return PTL_OK;
}

static bool post(struct p3_nic *n, void (*run)(struct p3_nic *n, void *arg), void *arg)
{
	struct p3_cmd c;
	p3_cmd_begin(&c, P3_OP_CCI, 0);
	c.cci.run = run;
	c.cci.arg = arg;
	return p3_post_command(n, &c) == PTL_OK;
}

bool p3_cci_call(struct p3_nic *n, void (*run)(struct p3_nic *n, void *arg), void *arg)
{
	bool done = true;
	if (p3_unlikely(p3_self.inside != 0))
		return false;
	p3_call_begin();
	if (p3_likely(p3_lease_enter(n, P3_LEASE_HOST))) {
		run(n, arg);
		p3_lease_leave(n);
	} else {
		done = post(n, run, arg);
	}
	p3_call_end(n);
	return done;
}
