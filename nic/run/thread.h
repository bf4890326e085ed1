/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread - the NIC's thread
 *
 * The thread that starts the NIC calls this function, with the lease.
 */
#ifndef P3_NIC_RUN_THREAD_H
#define P3_NIC_RUN_THREAD_H

#include "nic/state.h"

/* Start the thread without signals, which belong to the program.  Return 0 or -errno. */
int p3_thread_start(struct p3_nic *n);

#endif
