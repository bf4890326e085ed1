/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pass - one bounded pass: commands, lanes, transfers
 *
 * Only the lease holder calls these functions.  The room's state in struct p3_nic are
 * the counts of this pass (msgs, most, bytes, worked) and the hot lanes' turn.
 */
#ifndef P3_NIC_RUN_PASS_H
#define P3_NIC_RUN_PASS_H

#include "nic/report/mirror.h"
#include "nic/state.h"
#include "shm/fault.h"

#define P3_PASS_MSGS 16u

/* Return the share of a pass in a limit of passes: one that took many messages counts as
 * several. */
static inline uint32_t p3_pass_share(const struct p3_nic *n)
{
	return 1 + n->msgs / (2 * P3_PASS_MSGS);
}

/* Run one pass.  Return true if it found work and may have left as much. */
bool p3_pass_run(struct p3_nic *n);

/*
 * A pass in two steps, for a thread that waits for one event.  The caller makes sure that
 * there is no more to do than to poll a few hot lanes: n->brief is set, n->odd is 0, and
 * the mailbox is empty.  When the first step has brought the event, and the caller gives
 * the lease up at once, p3_pass_count() is all that is left of the second step.
 */
void p3_pass_poll_briefly(struct p3_nic *n);
bool p3_pass_end(struct p3_nic *n); /* Return as p3_pass_run(). */

static P3_HOT bool p3_pass_is_brief(const struct p3_nic *n)
{
	return p3_likely(!n->odd && !p3_mbx_any(n->mailbox));
}

/* Write the gauges, and look for timers that are due. */
P3_RARE void p3_pass_report(struct p3_nic *n);

static P3_HOT void p3_pass_count(struct p3_nic *n)
{
	FAULT_POINT("pass.done");
	uint64_t passes = p3_get(&n->count[P3_C_PASSES]) + 1;
	p3_set(&n->count[P3_C_PASSES], passes);
	if (p3_unlikely(passes % P3_MIRROR_PASSES == 0))
		p3_pass_report(n);
}

#endif
