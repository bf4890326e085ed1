/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread - the NIC's thread
 *
 * The thread that starts the NIC calls this function.  The state is n->thread, and
 * struct nic_thread on the NIC thread's stack (thread.c).
 */
#ifndef P3_NIC_RUN_THREAD_H
#define P3_NIC_RUN_THREAD_H

#include "nic/state.h"

/* Start the thread with all signals blocked: handlers run in threads of the program.
 * Return 0 or -errno. */
int p3_thread_start(struct p3_nic *n);

#endif
