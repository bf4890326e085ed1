/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pass - one bounded pass: commands, lanes, transfers
 *
 * Only the lease holder calls these functions.  The room's state in struct p3_nic are
 * the counts of this pass (msgs, most, bytes, worked) and the hot lanes' turn.
 */
#ifndef P3_NIC_RUN_PASS_H
#define P3_NIC_RUN_PASS_H

#include "nic/state.h"

#define P3_PASS_MSGS 16u

/* Return the weight of a pass: one that took more messages counts as several. */
static inline uint32_t p3_pass_share(const struct p3_nic *n)
{
	return 1 + n->msgs / (2 * P3_PASS_MSGS);
}

/* Run one pass.  Return true if it found work and may have left as much. */
bool p3_pass_run(struct p3_nic *n);

#endif
