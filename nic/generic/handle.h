/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handle - the host's part: it handles the entries of the generic event queue
 *
 * The host matches each new header with the same code as the firmware of other nodes, and
 * leaves a receive command in the upper pending: the firmware moves the bytes in its next
 * pass.  It delivers a request whose bytes came with the header itself.  It posts the
 * events of complete operations to the programs' queues.
 *
 * Only the lease holder calls these functions.
 */
#ifndef P3_NIC_GENERIC_HANDLE_H
#define P3_NIC_GENERIC_HANDLE_H

#include "nic/state.h"

/* Handle all entries.  Commands that remove objects call this first, whichever thread
 * executes them, so that no entry names an object that is gone.  Do nothing on a node
 * whose firmware matches. */
P3_RARE void p3_generic_handle(struct p3_nic *n);

#endif
