/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap - the node's shared heap, and its allocator for PtlXAlloc
 *
 * The lock node->life guards the state: heap, heap_tried and heap_mute of struct p3_node.
 * Each function says whether its caller holds this lock.
 */
#ifndef P3_LIB_NODE_HEAP_H
#define P3_LIB_NODE_HEAP_H

#include "shm/heap.h"

struct p3_node;

/* Find the program's malloc, before any call that may make the heap.  The caller holds
 * no lock: dlsym takes the loader's. */
void p3_node_look_for_malloc(void);

/* Return the node's heap, made at the first call, or NULL.  The caller holds the lock
 * node->life. */
struct p3_heap *p3_node_heap(struct p3_node *node);
/* Return the node's heap with an allocator inside for PtlXAlloc, or NULL.  The caller
 * does not hold node->life, which this function takes. */
struct p3_heap *p3_node_heap_for_blocks(struct p3_node *node);
/* Detach the heap from a node that ends; a later node of this process may take it.  No
 * other thread uses the node, so the lock is not needed. */
void p3_node_leave_heap(struct p3_node *node);

#endif
