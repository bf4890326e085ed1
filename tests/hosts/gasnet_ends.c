/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet_ends.c - the nodes of a GASNet job on several hosts end in different ways
 *
 * Node 0 calls gasnet_exit, node 1 returns from main, node 2 calls exit; the others make
 * no call until the library ends them.  The launcher must take each of them for a process
 * that has ended well: mpirun fails if one leaves by _exit.
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

int main(int argc, char **argv)
{
	if (gasnet_init(&argc, &argv) != GASNET_OK ||
		gasnet_attach(NULL, 0, 0, 0) != GASNET_OK) {
		fprintf(stderr, "gasnet_ends: gasnet_init or gasnet_attach failed\n");
		return 1;
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
