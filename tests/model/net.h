/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net - the nodes that carry programs out
 *
 *	net.c		nodes of one process, without threads of their own: one
 *			thread acts as each of them in turn, net_enter(), and drives
 *			the firmware of all, net_settle(), until nothing is on its
 *			way any more
 *	remote.c	nodes that are ranks of a job, perhaps on several hosts
 */
#ifndef P3_TESTS_MODEL_NET_H
#define P3_TESTS_MODEL_NET_H

#include "portals3.h"
#include "shm/atomics.h"
#include "support/clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NET_NODES 4u
#define NET_ARENA (512u * 1024)

struct net {
	unsigned n;
	struct starter *starter;
	struct p3_node *node[NET_NODES];
	ptl_handle_ni_t ni[NET_NODES];
	ptl_process_id_t id[NET_NODES];
	ptl_uid_t uid; /* user of all nodes */
	ptl_jid_t jid;
	ptl_ni_limits_t limits[NET_NODES]; /* in: desired; out: granted */
	unsigned char *arena[NET_NODES];   /* NET_ARENA bytes that messages change */
};

void net_up(struct net *net, unsigned n);
void net_down(struct net *net);
/* Return true if P3_FAR asks for faults and there were none. */
bool net_missed_faults(void);
void net_enter(const struct net *net, unsigned node);
/* Make passes until nodes (bits) rest; then their arenas and drops are up to date.
 * Return false if they never do. */
bool net_settle(const struct net *net, unsigned nodes);
uint64_t net_drops(const struct net *net, unsigned node);

/* Return zeroed memory whose address is the same for the program and all nodes. */
void *net_memory(size_t size);
void net_free(void *memory);
/* The program has written into a node's arena. */
void net_wrote(const struct net *net, unsigned node, const void *at, size_t len);
/* The program is about to read a node's arena. */
void net_read(const struct net *net, unsigned node);

/* rest.c: make passes of a node, and see whether it rests */
struct p3_nic;

/* Make one pass.  Return true if the node has no work and no operations under way, and
 * other hosts have all that it has written.  asked is 0 at the first look. */
bool rest_look(struct p3_nic *nic, uint32_t *asked);

#endif
