/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ahead - long match lists: prefetch the entries that the next requests need
 *
 * Only the lease holder calls these functions.  Their state is n->soon and
 * n->nsoon.
 */
#ifndef P3_NIC_MATCH_AHEAD_H
#define P3_NIC_MATCH_AHEAD_H

#include "nic/state.h"

#ifndef P3_LONG
#define P3_LONG 1024u /* shorter lists fit the near cache */
#endif

/* Prefetch for later requests, just before the current one, of ncells cells, is
 * matched. */
__attribute__((noinline)) void p3_ahead_look(
	struct p3_nic *n, struct p3_peer *p, uint32_t ncells);
/* Forget prefetched buckets, because they are about to be freed. */
void p3_ahead_forget(struct p3_nic *n);

#endif
