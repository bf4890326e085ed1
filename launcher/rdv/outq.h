/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outq - packets that wait until one node reads
 *
 * It is a plain list.  Packets about a peer are found by operation, node and
 * incarnation, so that a packet about an ended incarnation can be removed before the
 * node has read it.  Only the rendezvous' thread calls these functions; their state is
 * struct p3_outq.
 *
 * A BORN that introduces a peer can outlive the peer's descriptors in yod's table.  The
 * packet then has copies of them, which the queue closes with the packet.
 */
#ifndef P3_LAUNCHER_OUTQ_H
#define P3_LAUNCHER_OUTQ_H

#include "shm/job.h"

struct p3_out {
	struct p3_out *next;
	struct p3_job_msg msg;
	bool again; /* BORN that introduces: one of the two nodes sent AGAIN */
	bool news;  /* BORN that introduces, and is the first that the node gets */
	int fds[3]; /* BORN: copies of the peer's descriptors, or -1 */
};

struct p3_outq {
	struct p3_out *first;
	struct p3_out **end;
	uint32_t n;
};

void p3_outq_init(struct p3_outq *q);

/* Add a copy of a packet.  Return 0 or -ENOMEM. */
int p3_outq_add(struct p3_outq *q, const struct p3_job_msg *m);

/*
 * Keep copies of a peer's descriptors (-1: it has none) with the packet, because the
 * table is about to close them.  Return 0, or -errno with none kept.
 */
int p3_outq_keep_fds(struct p3_out *o, const int fds[3]);

/* Return the packet of this operation about m's node and incarnation, or NULL. */
struct p3_out *p3_outq_find(
	struct p3_outq *q, enum p3_job_op op, const struct p3_job_msg *m);
void p3_outq_drop(struct p3_outq *q, enum p3_job_op op, const struct p3_job_msg *m);

/* Return true if the end of any incarnation of the peer is in the queue. */
bool p3_outq_has_end(const struct p3_outq *q, uint32_t peer);

void p3_outq_drop_first(struct p3_outq *q);

/* Remove all births, ends and pid changes of peers, and JOINED; answers to the node's
 * other requests stay. */
void p3_outq_drop_news(struct p3_outq *q);

void p3_outq_clear(struct p3_outq *q);

#endif
