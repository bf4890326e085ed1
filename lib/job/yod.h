/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * yod - the exchange of packets with yod, for the files of lib/job (others: job.h)
 *
 *	hello.c	the first packets, which tell rank and size
 *	life.c	the life thread, which receives from yod and repeats requests
 *	hear.c	the processing of yod's packets
 *	cards.c	the cards of a job on several hosts
 *	peers.c	births and ends that the packets report
 *	link.c	the socket, and the thread's wake-up
 *
 * A file calls only files below it in this list.  The caller holds the lock node->life,
 * unless the function says otherwise; the state is in struct p3_node.
 */
#ifndef P3_LIB_JOB_YOD_H
#define P3_LIB_JOB_YOD_H

#include "lib/job/job.h"

/* ---- link.c ---- */

/* Return true if the lifeline is still open (any thread).  The program may have closed
 * it, and its number may be a file of the program's. */
bool p3_job_has_lifeline(const struct p3_node *node);
/* Return true if wake_fd still names the eventfd that wakes the life thread (any
 * thread). */
bool p3_job_has_wake(const struct p3_node *node);
/* Return a packet of this node: its rank, incarnation and process ids. */
struct p3_job_msg p3_job_message(struct p3_node *node, enum p3_job_op op);

/* ---- peers.c ---- */

/* Enter the ids of a packet in the table of the ranks. */
void p3_job_set_ids(struct p3_node *node, const struct p3_job_msg *m);
/* Enter the ids of a PIDS or BORN, and note those of this node: yod knows them.  A BORN
 * may have new ids, as yod puts them into one that waits in its queue. */
void p3_job_take_ids(struct p3_node *node, const struct p3_job_msg *m);
/* Return what the NIC needs of a packet about a node, with its descriptors (-1: none). */
struct p3_peer_info p3_job_peer_info(const struct p3_job_msg *m, const int *fds);
/* Process a birth.  rc is the result of receiving the packet; after -EMFILE its
 * descriptors are lost. */
void p3_job_on_birth(struct p3_node *node, struct p3_nic *nic, const struct p3_job_msg *m,
	struct p3_peer_info *info, int rc);
/* Process an end: drop the node, at once or when all its messages are taken.  nic may be
 * NULL: then there is nothing to drop. */
void p3_job_on_end(struct p3_node *node, struct p3_nic *nic, const struct p3_job_msg *m,
	struct p3_peer_info *info);
/* Request no descriptors any more of the incarnation that has ended. */
void p3_job_forget_birth(struct p3_node *node, const struct p3_job_msg *m);
/* Drop the nodes that have ended and whose messages are all taken by now. */
void p3_job_end_late(struct p3_node *node);
/* Ask yod once more for the nodes that could not be mapped: there may be room now. */
void p3_job_ask_again(struct p3_node *node);
/* Return true if the NIC needs nodes that yod has not been asked for. */
bool p3_job_wants_any(struct p3_node *node);
/* Ask yod to introduce the nodes that the NIC needs. */
void p3_job_meet_wanted(struct p3_node *node);
/* Forget the state of all other nodes: this one leaves. */
void p3_job_forget_peers(struct p3_node *node);
/* Drop all peers.  No more news of births and deaths will come, so present and later
 * operations with peers fail. */
void p3_job_lose_peers(struct p3_node *node, struct p3_nic *nic);

/* ---- hear.c ---- */

/* Receive and process packets of yod, a bounded number at a time, since in a large job
 * many come at once and the thread has other work, too.  Return false if yod has ended.
 * The caller does not hold node->life. */
bool p3_job_receive(struct p3_node *node);

/* ---- life.c: PtlInit and PtlFini; the caller does not hold node->life ---- */

/* Start the life thread.  Return 0 or -errno. */
int p3_job_start_life(struct p3_node *node);
/* End the life thread. */
void p3_job_stop_life(struct p3_node *node);

/* ---- hello.c: PtlInit; no other thread uses the node ---- */

/* Find yod's socket.  Return 0, also without one, or -EINVAL after a line. */
int p3_job_find_yod(struct p3_node *node);
/* Introduce this process to yod, and take rank, size and ids from the answer.  Set
 * *in_domain_out to true if the job is in a domain.  Return 0 or -errno. */
int p3_job_introduce(struct p3_node *node, bool *in_domain_out);

#endif
