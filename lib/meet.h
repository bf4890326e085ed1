/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet - this node among those that nobody introduces to each other
 *
 *	enter	a node index and ids that are nobody else's (shm/domain.h)
 *	join	a thread listens, looks for others, and says to each who we are
 *	part	says LEAVE to all; the thread ends
 *	exit	gives index and ids back
 *
 * What is said is shm/job.h's, between any two members, on a connection of their own:
 *
 *	--BORN (2 or 3 descriptors)-->	first of all; who was called says it in answer,
 *					when it has mapped who called, or waits to
 *	--PIDS-->			my process ids have changed
 *	--AGAIN-->			no room for your BORN: once more
 *	--LEAVE-->			I go, in order
 *	--BARRIER-->  rank 0  --RELEASED-->	of a job that another launcher started
 *
 * One connection speaks for one incarnation; another one's BORN is its end.
 *
 * The later of two calls the earlier one; two that come at once may both call, and the
 * second BORN of one incarnation says nothing new.  An end of file, the end of the
 * process (pidfd: forked children may hold copies of its sockets), or its slot's lock
 * being free or somebody else's (it has become another program, with such children) is
 * the end of the incarnation; without LEAVE before, it has died: nobody here knows exit
 * statuses.
 *
 * Who calls and does not say who it is has told us nothing, and heard nothing: after a
 * while, or for want of room, it is hung up.  If it lives it finds that out, and calls
 * again; so does a member that was slow.  What does not keep to these rules, or is of
 * another version, is hung up with a line.
 *
 * All is done by the domain's thread, which lives between join and part, hence while the
 * NIC does; the others ask it.  It blocks on nobody: sockets do not block, and what finds
 * no room (descriptors, memory) is tried again.  A member that is stopped is not dead; it
 * holds up who joins for P3_SETTLE_NS at most, once.
 */
/*
 * The barrier of such a job, in which rank and slot are one, is rank 0's: a rank tells it
 * the number of the barrier that it has entered, and whether it has met all the others,
 * as what the barrier lets it send must reach them; each word goes through all their
 * connections, so that none is overtaken by a LEAVE, and is told again by the belt.
 * Rank 0 releases all when all have come, or fails it for all when a process of the job
 * has ended: for good, a later one in its place is not of this job.  Who has left in
 * order and lives may come back.
 */
#ifndef P3_LIB_MEET_H
#define P3_LIB_MEET_H

#include "nic/nic.h"

struct p3_node;
struct p3_meeting;

/* 0, or -errno; what is wrong has been said. */
int p3_meet_enter(struct p3_node *node);
/* For interface i; PTL_PID_ANY: a free one from base on.  PTL_OK; PTL_PID_INVALID: it is
 * another's; PTL_NO_SPACE, PTL_IFACE_INVALID: it cannot be locked.  Said. */
int p3_meet_claim(struct p3_node *node, ptl_pid_t base, ptl_pid_t *pid);
/* Nodes that are there, this one included. */
uint32_t p3_meet_crew(const struct p3_node *node);
/* Until those who were there before have told of themselves, or P3_SETTLE_NS passed. */
int p3_meet_join(struct p3_node *node, struct p3_nic *nic);
/* (any) Make the domain's thread look for work. */
void p3_meet_wake(struct p3_meeting *m);
void p3_meet_pids(struct p3_node *node);
/* Wait in the barrier of a job of mpirun's and the like.  Return 0, or -EPIPE: a rank
 * has ended (set *ended_out), or this node has no interface, which is said, or leaves. */
int p3_meet_barrier(struct p3_node *node, uint32_t *ended_out);
void p3_meet_part(struct p3_node *node);
void p3_meet_exit(struct p3_node *node);
/* A forked child: it is not in the domain. */
void p3_meet_disown(struct p3_node *node);
#endif
