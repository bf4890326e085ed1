/* SPDX-License-Identifier: BSD-3-Clause */
/* Is each pool of a NIC full again? */
#ifndef P3_TESTS_POOLS_H
#define P3_TESTS_POOLS_H

#include "nic/fw.h"

/* What is not, or NULL, and which peer has it.  Without the lease; makes a pass. */
const char *pools_left(struct p3_nic *n, unsigned *of);

#endif
