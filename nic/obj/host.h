/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host - memory of the host segment: event rings, pendings
 *
 * Any thread may call these functions, with the lease or without: n->arena_lock guards
 * their state (n->host_seg, the free rings and extents, n->unreclaimed).  Only the thread
 * that starts or stops the NIC calls p3_host_create() and p3_host_drop().
 */
#ifndef P3_NIC_OBJ_HOST_H
#define P3_NIC_OBJ_HOST_H

#include "nic/state.h"

int p3_host_create(struct p3_nic *n);
/* Return zeroed memory in the host segment, or NULL if there is none. */
void *p3_host_alloc(struct p3_nic *n, uint64_t len);
/* Return a ring of this number of records, or NULL, and the records, prepared for a queue
 * that starts at *start_out (p3_evq_format()). */
struct p3_evq_ring *p3_host_ring(struct p3_nic *n, uint32_t records,
	struct p3_event_record **rec_out, uint64_t *start_out);
/* Free a ring that no thread takes from any more.  life is a value of n->life that was
 * read while the ring was in use. */
void p3_host_ring_free(struct p3_nic *n, struct p3_evq_ring *ring,
	struct p3_event_record *rec, uint32_t records, uint64_t life);
void p3_host_drop(struct p3_nic *n);
/* Exchange the list of freed queues whose places are in use yet: add more to it, or, with
 * NULL, take all away.  Return the list as it was before. */
struct p3_eq *p3_host_unreclaimed(struct p3_nic *n, struct p3_eq *more);

#endif
