/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member - the other nodes as this node knows them, with what it has still to do for them
 *
 *	none --birth--> attached		--end--> ending --messages taken--> none
 *		    +-> missing (no room)
 *		    +-> apart (in a large job)
 *
 * Three kinds of packets tell births, process ids and ends: those of yod (lib/job/yod.c),
 * of other processes on this host (lib/domain/member.c), and of other hosts
 * (lib/domain/remote.c).  Whoever takes them enters them here, and these functions pass
 * them on to the NIC.  An end is over when all messages of the member are taken; so the
 * owner of the table asks for it again, and attaches missing members again, from time to
 * time while p3_members_wait() is true.
 *
 * The table has an entry for each node index, this node's included.  It exists from
 * p3_job_enter() to p3_job_exit().  The thread that hears of births owns it: the life
 * thread, which holds node->life, or the domain's thread.
 */
#ifndef P3_LIB_NODE_MEMBER_H
#define P3_LIB_NODE_MEMBER_H

#include "lib/node/node.h"

struct p3_member {
	uint64_t incarnation; /* 0: no member */
	uint32_t os_pid;      /* in a domain: its process */
	p3_a32 life;          /* in a domain: the pidfd of this process, or -1 */
	bool missing;         /* it could not be attached yet */
	bool apart;    /* yod keeps its descriptors until one of the two needs them */
	bool ending;   /* it has ended; its last messages are taken first */
	uint32_t how;  /* p3_peer_end */
	uint32_t rank; /* launched: rank in the own job, or P3_JOB_NO_RANK */
};

/* Make the table for node->capacity nodes, in place of an earlier one.  Return 0 or
 * -ENOMEM. */
int p3_members_make(struct p3_node *node);
void p3_members_free(struct p3_node *node);
/* Forget all members. */
void p3_members_clear(struct p3_node *node);

/* Return a packet that says all about this node. */
struct p3_job_msg p3_member_message(struct p3_node *node, enum p3_job_op op);
/* Return what the NIC needs of a packet about a node, with its descriptors (NULL, or -1:
 * none). */
struct p3_peer_info p3_member_info(
	const struct p3_node *node, const struct p3_job_msg *m, const int *fds);

/* Attach the node to itself.  Return 0 or -errno. */
int p3_member_attach_self(struct p3_node *node, struct p3_nic *nic);
/* Attach a member, or give the NIC the ids of one that is attached.  lost: this process
 * had no room for its descriptors.  After a failure that may pass the member is missing:
 * it is expected, so that messages wait for it.  After another one it counts as dead. */
void p3_member_attach(
	struct p3_node *node, struct p3_nic *nic, struct p3_peer_info *info, bool lost);
/* Mark a member as ending.  Its first end counts. */
void p3_member_end(struct p3_member *b, enum p3_peer_end how);
/* Remove an ending member if all its messages are taken, or if now is true.  Return true
 * if it has been removed now. */
bool p3_member_remove(struct p3_node *node, struct p3_nic *nic, uint32_t slot, bool now);
/* Return true if a member is missing, or ending. */
bool p3_members_wait(const struct p3_node *node);

#endif
