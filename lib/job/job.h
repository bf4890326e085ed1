/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job - the launcher that started this process, and the job's other nodes
 *
 * launcher.h lists the files that implement it.  The state is in struct p3_node: the lock
 * node->life guards it, and the life thread takes that lock for each packet that yod
 * sends.  The table names the functions of this header without the prefix p3_job_, and
 * the locks that their callers hold:
 *
 *	begin, end		node->call, and not node->life
 *	start_nic, enter, join,
 *	pids, leave, exit	node->call and node->life
 *	send_to_yod		node->life
 *	wake, ask, meet, hold	no lock is needed; the caller may hold the NIC's lease
 */
#ifndef P3_LIB_JOB_JOB_H
#define P3_LIB_JOB_JOB_H

#include "lib/node/node.h"

/* Find the launcher, and take rank, size and ids from it; under yod, start the life
 * thread.  Return 0 or -errno; -EINVAL comes after an error line. */
int p3_job_begin(struct p3_node *node);
/* End the job's life thread.  The socket stays open, since its end would be the end of
 * the node for yod, and PtlInit may come again. */
void p3_job_end(struct p3_node *node);

/* Take (enter) or give up (exit) the node's place in the domain, if it has a domain.
 * Call them while the NIC does not run.  Return 0 or -errno. */
int p3_job_enter(struct p3_node *node);
void p3_job_exit(struct p3_node *node);
/* Start the node's NIC.  Return 0, or -errno after an error line. */
int p3_job_start_nic(struct p3_node *node, struct p3_nic **nic_out);
/* Introduce this node to the other nodes and wait for their answers.  Return 0 or
 * -errno. */
int p3_job_join(struct p3_node *node, struct p3_nic *nic);
/* Tell the other nodes the process ids of this node's interfaces, which have changed. */
void p3_job_pids(struct p3_node *node);
/* Tell the other nodes that this one leaves; the NIC stops after that. */
void p3_job_leave(struct p3_node *node);

/* Send to yod as p3_job_send does; return -EPIPE also if the program has closed the
 * socket. */
int p3_job_send_to_yod(
	struct p3_node *node, const struct p3_job_msg *m, const int *fds, unsigned nfds);
/* Wake the life thread to serve the NIC's questions.  If the program has closed the
 * thread's eventfd, the thread notices that at its next check, within a second. */
void p3_job_wake(struct p3_node *node);

/* The NIC's conf.ask, conf.meet and conf.hold (nic.h); arg is the node. */
void p3_job_ask(void *arg, uint32_t question);
void p3_job_meet(void *arg, uint32_t node);
void p3_job_hold(void *arg);

#endif
