/* SPDX-License-Identifier: BSD-3-Clause */
/* pools - checks that each pool of a NIC is full again */
#ifndef P3_TESTS_POOLS_H
#define P3_TESTS_POOLS_H

#include "nic/state.h"
#include "support/hold.h"
#include "support/patience.h"

/* Make a pass and return the name of a pool that is not full, and the peer that it
 * belongs to; NULL if all are full.  Call without the lease. */
const char *pools_left(struct p3_nic *n, unsigned *of);

/* Wait until each pool of this thread's node is full again. */
static inline void expect_full(void)
{
	struct patience p = patience_begin();
	const char *what;
	unsigned of;
	while ((what = pools_left(nic(), &of)) && !patience_is_over(&p))
		sleep_ms(1);
	if (what)
		check_failed(__FILE__, __LINE__, "%s is left of node %u", what, of);
}

#endif
