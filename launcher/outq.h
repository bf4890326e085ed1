/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outq - packets that wait until one node reads
 *
 * It is a plain list.  Packets about a peer are found by operation, node and
 * incarnation, so that a packet about an ended incarnation can be removed before the
 * node has read it.  Only the rendezvous' thread calls these functions.
 */
#ifndef P3_LAUNCHER_OUTQ_H
#define P3_LAUNCHER_OUTQ_H

#include "shm/job.h"

struct p3_out {
	struct p3_out *next;
	struct p3_job_msg msg;
};

struct p3_outq {
	struct p3_out *first;
	struct p3_out **end;
	uint32_t n;
};

void p3_outq_init(struct p3_outq *q);

/* Add a copy of a packet.  Return 0 or -ENOMEM. */
int p3_outq_add(struct p3_outq *q, const struct p3_job_msg *m);

/* Return the packet of this operation about m's node and incarnation, or NULL. */
struct p3_out *p3_outq_find(
	struct p3_outq *q, enum p3_job_op op, const struct p3_job_msg *m);
void p3_outq_drop(struct p3_outq *q, enum p3_job_op op, const struct p3_job_msg *m);

void p3_outq_drop_first(struct p3_outq *q);

/* Remove all births, ends and pid changes of peers, and JOINED; answers to the node's
 * other requests stay. */
void p3_outq_drop_news(struct p3_outq *q);

void p3_outq_clear(struct p3_outq *q);

#endif
