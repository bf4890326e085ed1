/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet - this node among nodes that no launcher introduces to each other
 *
 *	enter	take a node index and ids that no other process has (shm/domain.h)
 *	join	start a thread that listens, looks for others, and introduces this node
 *	part	send LEAVE to all; the thread ends
 *	exit	give index and ids back
 *
 * Any two members exchange packets of shm/job.h on a connection of their own:
 *
 *	--BORN (2 or 3 descriptors)-->	first of all; the called member answers with it
 *					when it has mapped the caller, or waits for room
 *	--PIDS-->			the sender's process ids have changed: sent before
 *					its PtlNIInit returns
 *	--AGAIN-->			there was no room for the BORN: send it once more
 *	--LEAVE-->			the sender leaves in order
 *	--BARRIER-->  rank 0  --RELEASED-->	of a job that another launcher started
 *
 * One connection speaks for one incarnation; a BORN of another incarnation ends it.
 *
 * The later of two members calls the earlier one.  Two that come at once may both call,
 * and the second BORN of one incarnation is ignored.  An incarnation has ended at an
 * end of file, at the end of the process (pidfd: forked children may hold copies of its
 * sockets), or when its slot's lock is free or another process has it (it has become
 * another program, with such children).  Without LEAVE before, it has died: exit
 * statuses are unknown here.
 *
 * A caller that does not introduce itself is hung up after a while, or for want of
 * room: nothing has been exchanged with it.  If it lives it notices, and calls again;
 * so does a slow member.  A caller that breaks these rules, or is of another version,
 * is hung up with a line.
 *
 * The domain's thread does all this; it lives between join and part, hence while the
 * NIC does, and the other threads ask it.  It never blocks: sockets do not block, and
 * actions that find no room (descriptors, memory) are tried again.  A member that is
 * stopped is not dead; it delays a joining node by P3_SETTLE_NS at most, once.
 *
 * The callers of the functions below hold the lock node->life, except those of
 * p3_meet_barrier, p3_meet_wake and p3_meet_ask (any thread, without it) and
 * p3_meet_forget (the only thread of a forked child).  The state is in struct p3_meeting
 * (meeting.h).
 */
/*
 * The barrier of such a job, in which rank and slot are one, is rank 0's: a rank tells
 * it the number of the barrier that it has entered, and whether it has met all the
 * others, since messages sent after the barrier must reach them.  Each packet goes
 * through all their connections, so that no LEAVE overtakes it; the periodic check
 * repeats it.  Rank 0 releases all ranks when all have come, or fails the barrier for
 * all when a process of the job has ended: for good, since a later process in its place
 * is not of this job.  A rank that has left in order and lives may come back.
 */
#ifndef P3_LIB_DOMAIN_MEET_H
#define P3_LIB_DOMAIN_MEET_H

#include "nic/nic.h"

struct p3_node;
struct p3_meeting;

/* Return 0, or -errno after an error line. */
int p3_meet_enter(struct p3_node *node);
/* Lock *pid for this process; if it is PTL_PID_ANY, lock and return a free pid from base
 * on.  Return PTL_OK, or after an error line PTL_PID_INVALID (another interface or
 * process has the pid), PTL_NO_SPACE or PTL_IFACE_INVALID (it cannot be locked). */
int p3_meet_claim(struct p3_node *node, ptl_pid_t base, ptl_pid_t *pid);
/* Return the number of nodes to expect: those in the domain now, but at least 2, and at
 * least the size of the job. */
uint32_t p3_meet_crew(const struct p3_node *node);
/* Join, and wait until the earlier members have introduced themselves, P3_SETTLE_NS at
 * most. */
int p3_meet_join(struct p3_node *node, struct p3_nic *nic);
/* (any) Make the domain's thread look for work. */
void p3_meet_wake(struct p3_meeting *m);
/* The NIC's conf.ask (nic.h): arg is the node. */
void p3_meet_ask(void *arg, uint32_t question);
/* Announce new process ids.  When the function returns, the packets are in the sockets of
 * the members, so that a member that has heard of an id by any other way finds it there
 * when its NIC asks. */
void p3_meet_pids(struct p3_node *node);
/* Wait in the barrier of a job that mpirun or another such launcher started.  Return 0,
 * or -EPIPE if a rank has ended (set *ended_out), if this node has no interface (after
 * an error line), or if this node leaves. */
int p3_meet_barrier(struct p3_node *node, uint32_t *ended_out);
void p3_meet_part(struct p3_node *node);
void p3_meet_exit(struct p3_node *node);
/* Forget the domain in a forked child, which is not in it. */
void p3_meet_forget(struct p3_node *node);
#endif
