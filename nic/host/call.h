/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * call - calls of host threads
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_HOST_CALL_H
#define P3_NIC_HOST_CALL_H

#include "nic/state.h"

/* Return a number for the calling thread, never 0. */
uint32_t p3_this_thread(void);

#endif
