/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of one process that are driven by one thread. */
#include "model/net.h"

#include "far/placed.h"
#include "lib/node/node.h"
#include "support/own_node.h"
#include "support/patience.h"
#include "support/starter.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_EACH 1024u

/* Last calls of settle on several hosts; 0: none since the node worked. */
static uint32_t asked[NET_NODES];

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "model_test: %s\n", what);
	exit(2);
}

void net_enter(const struct net *net, unsigned node)
{
	own_node_enter(net->node[node]);
}

static void node_up(struct net *net, unsigned i)
{
	int most;
	ptl_ni_limits_t desired = net->limits[i];
	net_enter(net, i);
	must(PtlInit(&most) == PTL_OK, "PtlInit fails");
	must(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, &desired, &net->limits[i],
		     &net->ni[i]) == PTL_OK,
		"PtlNIInit fails");
	p3_nic_attend(p3_nic(net->node[i])); /* no request waits for an entry */
	must(PtlGetId(net->ni[i], &net->id[i]) == PTL_OK, "PtlGetId fails");
	must(PtlGetUid(net->ni[i], &net->uid) == PTL_OK, "PtlGetUid fails");
	must(PtlGetJid(net->ni[i], &net->jid) == PTL_OK, "PtlGetJid fails");
}

static bool all_met(const struct net *net)
{
	for (unsigned i = 0; i < net->n; i++)
		if (p3_nic_counter(p3_nic(net->node[i]), P3_G_ALIVE) != net->n)
			return false;
	return true;
}

void net_up(struct net *net, unsigned n)
{
	int sock[NET_NODES];
	net->n = n;
	net->starter =
		starter_new(n, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN), false, sock);
	const struct p3_far_conf *far = placed_on_hosts();
	for (unsigned i = 0; i < n; i++) {
		net->node[i] = own_node_create(sock[i]);
		net->node[i]->far = far;
	}
	for (unsigned i = 0; i < n; i++)
		node_up(net, i);
	struct patience p = patience_times(2);
	while (!all_met(net)) {
		must(!patience_is_over(&p), "the nodes do not meet");
		usleep(200);
	}
}

bool net_missed_faults(void)
{
	return placed_missed();
}

void net_down(struct net *net)
{
	for (unsigned i = 0; i < net->n; i++)
		placed_count(p3_nic(net->node[i]));
	for (unsigned i = 0; i < net->n; i++) {
		net_enter(net, i);
		own_node_destroy(net->node[i]);
	}
	starter_end(net->starter);
}

/* Make one pass; return true if the node has no work and no operations under way. */
static bool rests(const struct net *net, unsigned node)
{
	return rest_look(p3_nic(net->node[node]), &asked[node]);
}

bool net_settle(const struct net *net, unsigned nodes)
{
	struct patience p = patience_times(2);
	memset(asked, 0, sizeof asked);
	for (unsigned turn = 1;; turn++) {
		bool all = true;
		for (unsigned i = 0; i < net->n; i++)
			if (nodes & 1u << i)
				all = rests(net, i) && all;
		if (all)
			return true;
		if (turn % LOOK_EACH)
			continue;
		if (patience_is_over(&p))
			return false;
		sched_yield();
	}
}

uint64_t net_drops(const struct net *net, unsigned node)
{
	return p3_nic_counter(p3_nic(net->node[node]), P3_C_DROPS);
}

void *net_memory(size_t size)
{
	return calloc(1, size);
}

void net_free(void *memory)
{
	free(memory);
}

void net_wrote(const struct net *net, unsigned node, const void *at, size_t len)
{
	(void)net;
	(void)node;
	(void)at;
	(void)len;
}

void net_read(const struct net *net, unsigned node)
{
	(void)net;
	(void)node;
}
