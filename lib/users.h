/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * users - the users of a node, Portals and CCI
 *
 * Both share the node's job and its NIC.  The first user finds the launcher and starts
 * the NIC, and the last one ends them, in whatever order they come and go:
 *
 *		enters the job		starts the NIC		leaves both
 *	Portals	PtlInit			the first PtlNIInit	PtlNIFini, PtlFini
 *	CCI	the first endpoint	the first endpoint	the last cci_finalize
 *
 * The state is in struct p3_node.  Callers hold the lock node->call, and for the NIC
 * node->life, too.
 */
#ifndef P3_LIB_USERS_H
#define P3_LIB_USERS_H

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

#endif
