/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meet - this node as a member of a domain, in which nodes find each other
 *
 *	enter	take a node index and ids that no other process has (shm/domain.h)
 *	join	start a thread that listens, calls the other members, and introduces
 *		this node
 *	part	send LEAVE to all members, and end the thread
 *	exit	give index and ids back
 *
 * Any two members exchange packets of shm/job.h on a connection of their own:
 *
 *	--BORN (2 or 3 descriptors)-->	the first packet: introduces the sender.  The
 *					called member answers with its own BORN before it
 *					maps the caller
 *	--PIDS-->			the sender's process ids have changed: sent before
 *					its PtlNIInit returns
 *	--AGAIN-->			there was no room for the BORN: send it once more
 *	--LEAVE-->			the sender closes its last interface
 *	--BARRIER-->  rank 0  --RELEASED-->	of a job that another launcher started
 *
 * A connection belongs to one incarnation; a BORN of another incarnation ends it.
 *
 * Of two members the one that joins later calls the other.  If both join at once, both
 * may call, and the second BORN of one incarnation is ignored.  An incarnation has ended
 * when its connection is at the end of file; when its process has ended (pidfd: forked
 * children may hold copies of its sockets); or when the lock of its slot is free or held
 * by another process (its process has executed another program, and forked children hold
 * its sockets).  If no LEAVE came before, the member counts as dead: exit statuses are
 * unknown here.
 *
 * This node closes the connection of a caller that does not introduce itself, after
 * SILENT_NS or when it needs the connection for another caller.  Such a caller has got
 * no packet yet; if it lives, it sees the end of file and calls again.  This node also
 * closes the connection of a process that breaks these rules or has another version, and
 * prints a line.
 *
 * The domain's thread does all this.  It runs between join and part, so as long as the
 * NIC; other threads leave it work and wake it.  It never blocks: sockets do not block,
 * and actions that find no room (descriptors, memory) are tried again.  A stopped member
 * is not dead; it delays a joining node by P3_SETTLE_NS at most, once.
 *
 * The callers of the functions below hold the lock node->life, except those of
 * p3_meet_barrier, p3_meet_wake and p3_meet_ask (any thread, without it) and
 * p3_meet_forget (the only thread of a forked child).  The state is in struct p3_meeting
 * (meeting.h).
 */
/*
 * Rank 0 leads the barriers of a job that another launcher started.  A rank sends it
 * BARRIER with the number of the barrier that it has entered, and with whether it has
 * met all other ranks, since messages sent after the barrier must reach them.  A BARRIER
 * goes through all connections between the two, so that no LEAVE overtakes it, and the
 * periodic check repeats it.  Rank 0 releases all ranks when all have entered.  When a
 * process of the job has ended, rank 0 fails this barrier and all later ones, since a
 * later process in that place is not of this job.  A rank that has left in order and
 * whose process lives may join again.
 */
#ifndef P3_LIB_DOMAIN_MEET_H
#define P3_LIB_DOMAIN_MEET_H

#include "nic/nic.h"

struct p3_node;
struct p3_meeting;

/* Enter the domain, as above.  Return 0, or -errno after an error line. */
int p3_meet_enter(struct p3_node *node);
/* Lock *pid for this process; if it is PTL_PID_ANY, lock and return a free pid from base
 * on.  Return PTL_OK, or after an error line PTL_PID_INVALID (another interface or
 * process has the pid), PTL_NO_SPACE or PTL_IFACE_INVALID (it cannot be locked). */
int p3_meet_claim(struct p3_node *node, ptl_pid_t base, ptl_pid_t *pid);
/* Return the number of nodes to expect on this host: those in the domain now, but at
 * least 2, and at least the ranks of the job on this host. */
uint32_t p3_meet_crew(const struct p3_node *node);
/* Join, and wait until the earlier members have introduced themselves, P3_SETTLE_NS at
 * most.  Return 0, or -errno after an error line. */
int p3_meet_join(struct p3_node *node, struct p3_nic *nic);
/* (any thread) Make the domain's thread look for work. */
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
/* Leave the other members: send LEAVE, and end the domain's thread. */
void p3_meet_part(struct p3_node *node);
/* Give back what p3_meet_enter() has taken. */
void p3_meet_exit(struct p3_node *node);
/* Forget the domain in a forked child, which is not in it. */
void p3_meet_forget(struct p3_node *node);
#endif
