/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * named - the ids and the rank that the program has named
 *
 * The values of PtlSetRank, PtlSetNIDMap and PtlSetPIDMap, or of PTL_MY_RID, PTL_NIDMAP
 * and PTL_PIDMAP when PtlSetRank(..., -1, -1) asked for them.  A launcher's values come
 * first; these count in a process without one: PtlNIInit with PTL_PID_ANY takes the pid
 * of the own rank, and in a domain they tell the NIC which processes may still come.
 *
 * There is one table for all nodes of a process, replaced as a whole under a lock of
 * this file.  Any thread may call these functions; the calls that set values wait for
 * the readers of the old table, so a thread inside of the library must not make them
 * (p3_is_busy).  There is no other state.
 */
#ifndef P3_LIB_NODE_NAMED_H
#define P3_LIB_NODE_NAMED_H

#include "lib/node/directory.h"
#include "nic/nic.h"

struct p3_node;

/* Set rank and size, or, if both are -1, take them and the maps from the environment.
 * Return a PTL_* code. */
int p3_named_set_rank(struct p3_node *node, int rank, int size);

/* Set the pids (pids is true) or the nids of all ranks; pids for an interface, or for
 * PTL_INVALID_HANDLE for all that have none of their own.  Return a PTL_* code. */
int p3_named_set_map(struct p3_node *node, ptl_handle_ni_t ni, const uint32_t *map,
	int size, bool pids);

/* Return the pid of the own rank on an interface, or P3_UNKNOWN if the program has named
 * none, or has a launcher.  Warn if the maps give the rank another node id. */
uint32_t p3_named_pid(struct p3_node *node, uint32_t iface);

/* In a forked child: forget the parent's rank and maps. */
void p3_named_forked(void);

/* Return the table from which queries are answered: the launcher's, else that of the Set
 * calls, else that of a job of one.  Call p3_directory_done() after reading. */
const struct p3_directory *p3_named_read(struct p3_node *node);

/* In a domain: tell the NIC the processes that the program has named, in PTL_NIDMAP and
 * PTL_PIDMAP or by a Set call. */
void p3_named_list(struct p3_node *node, struct p3_nic *nic);

#endif
