/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alone - passes of the NIC thread of a node whose host matches
 *
 * No other thread runs the firmware of such a node (nic/generic/host.h).  The NIC thread
 * runs passes, gives the lease up after each of them so that the host's thread can match,
 * and sleeps on the doorbell when there is nothing to do: peers, posters of commands and
 * the host's thread ring for it.
 */
#ifndef P3_NIC_RUN_ALONE_H
#define P3_NIC_RUN_ALONE_H

#include "nic/state.h"

/* Run the firmware until the NIC stops.  The NIC thread calls this. */
void p3_alone_run(struct p3_nic *n);

#endif
