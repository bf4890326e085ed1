/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * post - commands through the mailbox, for threads that do not get the lease
 *
 * Any host thread may call these functions, without the lease.  Their state is the
 * mailbox (shm/mailbox.h), and n->detached, the number of slots with commands whose
 * poster does not wait.
 */
#ifndef P3_NIC_HOST_POST_H
#define P3_NIC_HOST_POST_H

#include "nic/state.h"

/* Return the PTL code of a command whose handle is invalid because the NIC closes. */
int p3_post_closed_code(const struct p3_cmd *c);
/* Post a command, and wait until a lease holder has executed it.  Return its code. */
P3_RARE int p3_post_command(struct p3_nic *n, struct p3_cmd *c);
/* Post a command in a signal handler, and do not wait for it. */
int p3_post_detached(struct p3_nic *n, struct p3_cmd *c);

#endif
