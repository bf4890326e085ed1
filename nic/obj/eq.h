/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eq - event queues: creation and removal
 *
 * Only the lease holder calls these functions.  A queue lies in the table P3_T_EQ, its
 * ring in the host segment.  Host threads read the ring without the lease, so a removed
 * queue keeps its place until p3_eq_reclaim().
 */
#ifndef P3_NIC_OBJ_EQ_H
#define P3_NIC_OBJ_EQ_H

#include "nic/state.h"

int p3_eq_alloc(struct p3_nic *n, struct p3_cmd *c);
/* Remove a queue.  c->eq.dead is the list of removed queues, whose rings a host thread
 * retires. */
int p3_eq_free(struct p3_nic *n, struct p3_cmd *c);
/* Command: make the places of the queues in c->eq.dead reusable. */
int p3_eq_reclaim(struct p3_nic *n, struct p3_cmd *c);
/*
 * Kill a queue, and add it to a list of dead ones.  Descriptors that still name it find
 * its life changed: no queue.  The caller makes sure that its place and its ring
 * are reused only when no reader can be in it.
 */
void p3_eq_kill(struct p3_nic *n, struct p3_eq *eq, struct p3_eq **dead);

/* (any thread) Return true if the queue that the handle names is in this place and
 * certainly has no event. */
static inline bool p3_eq_is_empty(const struct p3_eq *eq, uint64_t handle)
{
	return p3_evq_is_empty(&eq->rx, &eq->o.name, handle);
}

/* Return the sink's queue, or NULL if it has none or the queue was freed. */
static inline struct p3_eq *p3_eq_of_sink(const struct p3_sink *sink)
{
	return p3_likely(sink->eq && sink->eq->life == sink->eq_life) ? sink->eq : NULL;
}

#endif
