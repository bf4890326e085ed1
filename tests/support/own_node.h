/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * own_node - several nodes in one process
 *
 * A process is one node.  A test may run several: each of its threads names its node by
 * own_node_enter(), and all calls of that thread are about that node.  Any thread may
 * call these functions; their state is the calling thread's node (lib/node/node.h).
 */
#ifndef P3_TESTS_OWN_NODE_H
#define P3_TESTS_OWN_NODE_H

struct p3_node;

/* Make a node that uses this socket to yod, and enter it.  Return NULL without memory. */
struct p3_node *own_node_create(int sock);
/* Make this node that of the calling thread; NULL: the node of the process. */
void own_node_enter(struct p3_node *node);
/* Call PtlFini for the node, which the calling thread has entered, and free it.  No other
 * thread uses the node. */
void own_node_destroy(struct p3_node *node);

#endif
