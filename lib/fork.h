/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork - a forked child, which starts without a node
 *
 * A child inherits neither the segments of its parent's node (MADV_DONTFORK) nor the
 * library's threads, so its calls fail until it calls PtlInit or cci_init itself.  The
 * words at p3_ready(node)->up tell a child from its parent: the kernel zeroes their page
 * in the child (MADV_WIPEONFORK).  Any thread may call these functions.  The state is in
 * struct p3_node.
 */
#ifndef P3_LIB_FORK_H
#define P3_LIB_FORK_H

#include <stdbool.h>

struct p3_node;

/* Make the words at node->ready, if the node has none yet.  The caller holds the lock
 * node->call.  Return 0 or -ENOMEM. */
int p3_fork_watch(struct p3_node *node);

/* In a forked child: forget the parent's node.  The first of the child's threads does
 * that, and the others wait for it. */
void p3_fork_settle(struct p3_node *node);

/* Return true in a forked child that has called neither PtlInit nor cci_init. */
bool p3_fork_is_child(const struct p3_node *node);

#endif
