/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runtime - memory that the calls of this folder have given to the program
 *
 * The caller is the only thread that uses the node, which has ended.  The state is in
 * struct p3_node.
 */
#ifndef P3_LIB_RUNTIME_RUNTIME_H
#define P3_LIB_RUNTIME_RUNTIME_H

struct p3_node;

/* Free the blocks of PtlXAlloc. */
void p3_blocks_free(struct p3_node *node);
/* Free the maps of cnos_get_nidpid_map. */
void p3_cnos_free_maps(struct p3_node *node);

#endif
