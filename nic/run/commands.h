/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * commands - dispatch of commands, and the commands of the mailbox
 *
 * Only the lease holder calls these functions.  The room's state in struct p3_nic is
 * the list of commands that wait for memory: hungry, and detached.
 */
#ifndef P3_NIC_RUN_COMMANDS_H
#define P3_NIC_RUN_COMMANDS_H

#include "nic/state.h"

/* Execute a command.  Return its PTL_* code, or -1 - t if table t must grow before. */
int p3_command_execute(struct p3_nic *n, struct p3_cmd *c);
/* Execute all posted commands. */
void p3_command_take_posted(struct p3_nic *n);
/* Execute the commands that waited for memory, as far as it reaches. */
void p3_command_feed(struct p3_nic *n);

#endif
