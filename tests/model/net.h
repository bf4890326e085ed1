/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net - nodes of one process, without threads of their own
 *
 * One thread acts as each of them in turn, net_enter(), and drives the firmware of all,
 * net_settle(), until nothing is on its way any more.
 */
#ifndef P3_TESTS_MODEL_NET_H
#define P3_TESTS_MODEL_NET_H

#include "portals3.h"
#include "shm/atomics.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define NET_NODES 4u

struct net {
	unsigned n;
	struct p3_rdv *rdv;
	pthread_t thread; /* the launcher's side of the nodes' sockets */
	p3_a32 stop;
	struct p3_node *node[NET_NODES];
	ptl_handle_ni_t ni[NET_NODES];
	ptl_process_id_t id[NET_NODES];
	ptl_uid_t uid; /* user of all nodes */
	ptl_jid_t jid;
	ptl_ni_limits_t limits[NET_NODES]; /* in: desired; out: granted */
};

void net_up(struct net *net, unsigned n);
void net_down(struct net *net);
/* Return true if PTL3_WIRE or P3_FAR asks for faults and there were none. */
bool net_missed_faults(void);
void net_enter(const struct net *net, unsigned node);
/* Make passes until nodes (bits) rest.  Return false if they never do. */
bool net_settle(const struct net *net, unsigned nodes);
uint64_t net_drops(const struct net *net, unsigned node);
uint64_t net_now_ns(void);

#endif
