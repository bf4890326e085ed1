/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call - CCI's calls of host threads: under the lease, or through the mailbox
 *
 * Any host thread may call this function, without the lease.  It has no state.
 */
#ifndef P3_NIC_CCI_CALL_H
#define P3_NIC_CCI_CALL_H

#include "nic/state.h"

/*
 * Run a function with the lease: in this thread, or in the thread that has it, while this
 * one waits.  Return false if the function was not run: in a signal handler that has
 * interrupted a call of the library, or while the NIC closes.
 */
bool p3_cci_call(struct p3_nic *n, void (*run)(struct p3_nic *n, void *arg), void *arg);

/* The command of the mailbox. */
int p3_cci_command(struct p3_nic *n, struct p3_cmd *c);

#endif
