/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init - the life of a node: its users, its interfaces, and forked children
 *
 * The users are Portals and CCI.
 * Both share the node's job and its NIC.  The first user finds the launcher and starts
 * the NIC, and the last one ends them, in whatever order they come and go:
 *
 *		enters the job		starts the NIC		leaves both
 *	Portals	PtlInit			the first PtlNIInit	PtlNIFini, PtlFini
 *	CCI	the first endpoint	the first endpoint	the last cci_finalize
 *
 * The state is in struct p3_node.  Callers hold the lock node->call, and for the NIC
 * node->life, too.
 *
 * A forked child starts without a node.  It inherits neither the segments of its parent's
 * node (MADV_DONTFORK) nor the library's threads, so its calls fail until it calls
 * PtlInit or cci_init itself.  The words at p3_ready(node)->up tell a child from its
 * parent: the kernel zeroes their page in the child (MADV_WIPEONFORK).  Any thread may
 * call these functions.
 */
#ifndef P3_LIB_INIT_H
#define P3_LIB_INIT_H

#include "lib/node/node.h"

/* Enter the job as another user; the first one finds the launcher.  Return 0 or -errno;
 * -EINVAL comes after a line for people. */
int p3_users_enter(struct p3_node *node);
void p3_users_leave(struct p3_node *node);
/* Takes leave of the launcher of a job on several hosts; p3_users_enter() registers it
 * for quick_exit().  The constructor of init.c sets it. */
extern void (*p3_users_at_quick_exit)(void);

/* Return true if a Portals interface is open, or CCI uses the NIC. */
bool p3_users_need_nic(struct p3_node *node);
/* Leave the job's other nodes, and stop the NIC. */
void p3_users_stop_nic(struct p3_node *node);

/* ---- the end of interfaces (the caller does not hold node->life) ---- */

/* longest wait of PtlNIFini and exit() for absent targets of puts whose descriptors are
 * unlinked */
#define P3_AWAIT_S 10

/* Wait, in bounded time, until the puts that have had SEND_END have left this process;
 * for absent targets until P3_AWAIT_S after start, a time of p3_now_ns(). */
void p3_ni_await_sends(struct p3_nic *nic, uint64_t start);

/* Close all open interfaces. */
int p3_ni_fini_all(struct p3_node *node);

/* ---- forked children ---- */

/* Make the words at node->ready, if the node has none yet.  The caller holds the lock
 * node->call.  Return 0 or -ENOMEM. */
int p3_fork_watch(struct p3_node *node);

/* In a forked child: forget the parent's node.  The first of the child's threads does
 * that, and the others wait for it. */
void p3_fork_settle(struct p3_node *node);

/* Return true in a forked child that has called neither PtlInit nor cci_init. */
bool p3_fork_is_child(const struct p3_node *node);

#endif
