/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host - memory of the host segment: event rings, pendings
 *
 * Only the lease holder calls these functions, except where a comment says (any).
 */
#ifndef P3_NIC_OBJ_HOST_H
#define P3_NIC_OBJ_HOST_H

#include "nic/state.h"

int p3_host_create(struct p3_nic *n);
void *p3_host_alloc(struct p3_nic *n, uint64_t len); /* Allocate zeroed memory on the
						      * host side. */
/* Return a ring of this number of records, or NULL.  If the ring was used before, its
 * sequence numbers continue (p3_evq_reformat()); if not, its tail is 0. */
struct p3_evq_ring *p3_host_ring(struct p3_nic *n, uint32_t records);
/* Free a ring that no thread takes from any more.  life is the value of n->life when
 * the ring was surely in use. */
void p3_host_ring_free(
	struct p3_nic *n, struct p3_evq_ring *ring, uint32_t records, uint64_t life);
void p3_host_drop(struct p3_nic *n);
/* Exchange the list of freed queues that are not buried yet: add more to it, or, with
 * NULL, take all away.  Return the list as it was before. */
struct p3_eq *p3_host_unburied(struct p3_nic *n, struct p3_eq *more);

#endif
