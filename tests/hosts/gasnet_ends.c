/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet_ends.c - the nodes of a GASNet job on several hosts end in different ways
 *
 * Node 0 calls gasnet_exit, node 1 returns from main, node 2 calls exit; the others make
 * no call until the library ends them.  The launcher must take each of them for a process
 * that has ended well: mpirun fails if one leaves by _exit.  Before that they look which
 * nodes share a host, and its memory: two on each.
 */
#include <gasnet.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void barrier(void)
{
	gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
	if (gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) != GASNET_OK)
		gasnet_exit(1);
}

static unsigned long long memory_available(void)
{
	unsigned long long kib = 0;
	FILE *f = fopen("/proc/meminfo", "r");
	if (f && fscanf(f, "MemTotal: %*u kB MemFree: %*u kB MemAvailable: %llu", &kib) <
			 1)
		kib = 0;
	if (f)
		fclose(f);
	return kib << 10;
}

static int hosts_are_known(void)
{
	gasnet_nodeinfo_t info[GASNET_MAXNODES];
	if (gasnet_getNodeInfo(info, GASNET_MAXNODES) != GASNET_OK)
		return 0;
	for (gasnet_node_t i = 0; i < gasnet_nodes(); i++)
		if (info[i].host != i / 2 || info[i].supernode != i)
			return 0;
	/* The nodes of this host share 0.8 of its memory, not those of all hosts. */
	return gasnet_getMaxLocalSegmentSize() > memory_available() / 5;
}

int main(int argc, char **argv)
{
	if (gasnet_init(&argc, &argv) != GASNET_OK ||
		gasnet_attach(NULL, 0, 0, 0) != GASNET_OK) {
		fprintf(stderr, "gasnet_ends: gasnet_init or gasnet_attach failed\n");
		return 1;
	}
	if (!hosts_are_known()) {
		fprintf(stderr, "gasnet_ends: wrong hosts, or too little memory\n");
		gasnet_exit(2);
	}
	barrier();
	switch (gasnet_mynode()) {
	case 0:
		puts("gasnet_ends: all nodes have met");
		gasnet_exit(0);
	case 1:
		return 0;
	case 2:
		exit(0);
	default:
		for (;;)
			pause();
	}
}
