/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host - generic mode: the host's thread, and the start and stop of the mode
 *
 * In generic mode (PTL3_MATCH=host) three kinds of threads share a node's work:
 *
 *	firmware	the NIC thread (nic/run/thread.c) runs all passes.  It moves
 *			bytes, and does not match
 *	host		this thread stands for the kernel.  It sleeps until an interrupt,
 *			and then takes the lease and handles the generic event queue
 *	program		a thread that calls the library posts its commands in the mailbox,
 *			and never has the lease
 *
 * A free lease of such a node has the value P3_LEASE_RESERVED, so the straight paths of
 * program threads find it taken.
 */
#ifndef P3_NIC_GENERIC_HOST_H
#define P3_NIC_GENERIC_HOST_H

#include "nic/state.h"

/* Prepare generic mode if the settings choose it, before the NIC thread starts.  Return 0
 * or -ENOMEM. */
int p3_generic_prepare(struct p3_nic *n);
/* Start the host's thread.  Return 0 or -errno. */
int p3_generic_start(struct p3_nic *n);
/* Stop the host's thread; the NIC thread has stopped. */
void p3_generic_stop(struct p3_nic *n);
/* Free the memory.  These three functions do nothing in accelerated mode. */
void p3_generic_drop_all(struct p3_nic *n);

#endif
