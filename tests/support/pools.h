/* SPDX-License-Identifier: BSD-3-Clause */
/* pools - checks that each pool of a NIC is full again */
#ifndef P3_TESTS_POOLS_H
#define P3_TESTS_POOLS_H

#include "nic/state.h"

/* Make a pass and return the name of a pool that is not full, and the peer that it
 * belongs to; NULL if all are full.  Call without the lease. */
const char *pools_left(struct p3_nic *n, unsigned *of);

#endif
