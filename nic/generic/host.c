/* SPDX-License-Identifier: BSD-3-Clause */
/* Generic mode: the host's thread. */
#include "nic/generic/upper.h"
#include "nic/run/lease.h"
#include "shm/process.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Entries of the queue for complete operations, beside two headers for each peer. */
#define P3_GENERIC_ENTRIES 256u

/* ---- the thread ---- */

/* Take the lease, which the firmware gives up between two passes, and handle all entries,
 * unless the node stops. */
static void host_serve(struct p3_nic *n, struct p3_generic *g)
{
	bool entered;
	p3_set(&g->wants, 1);
	while (!(entered = p3_lease_enter_reserved(n, P3_LEASE_HOST)) &&
		!p3_get(&g->stop))
		sched_yield();
	p3_set(&g->wants, 0);
	if (!entered)
		return;
	p3_generic_handle(n);
	p3_lease_leave(n);
	p3_fence(); /* PARK.1: the firmware may have gone to sleep before the commands */
	if (p3_get(n->asleep) != P3_AWAKE)
		(void)p3_wake_sleeper(n->asleep);
}

static void *host_main(void *arg)
{
	struct p3_nic *n = arg;
	struct p3_generic *g = n->generic;
	char name[16];
	snprintf(name, sizeof name, "p3irq.%u", n->conf.nid);
	(void)prctl(PR_SET_NAME, name);
	p3_worker_run_briefly();
	p3_set(&g->tid, (uint32_t)syscall(SYS_gettid));
	while (!p3_get(&g->stop)) {
		p3_interrupt_await(n);
		if (p3_acquire(&g->staged) != p3_get(&g->handled)) /* GEN.1 */
			host_serve(n, g);
	}
	return NULL;
}

/* ---- start and stop ---- */

int p3_generic_prepare(struct p3_nic *n)
{
	struct p3_generic *g = &n->generic_part;
	n->generic = NULL;
	n->staging = false;
	if (!n->conf.match_on_host)
		return 0;
	uint32_t entries = 1;
	while (entries < P3_GENERIC_ENTRIES + 2 * n->conf.nnodes)
		entries *= 2;
	g->mask = entries - 1;
	g->nupper = n->conf.nnodes;
	g->inlined = n->conf.inlined;
	g->how = n->conf.interrupt;
	g->head = g->tail = g->later = 0;
	g->entry = aligned_alloc(P3_LINE, entries * sizeof *g->entry);
	g->upper = calloc(g->nupper, sizeof *g->upper);
	if (!g->entry || !g->upper) {
		free(g->entry);
		free(g->upper);
		return -ENOMEM;
	}
	p3_set(&g->stop, 0);
	n->generic = g;
	n->staging = true;
	for (uint32_t i = 0; i < n->conf.nnodes; i++)
		n->peer[i].asks = true;
	return 0;
}

int p3_generic_start(struct p3_nic *n)
{
	return n->generic ? p3_worker_start(&n->generic->thread, host_main, n) : 0;
}

void p3_generic_stop(struct p3_nic *n)
{
	if (!n->generic)
		return;
	p3_interrupt_stop(n->generic);
	pthread_join(n->generic->thread, NULL);
}

void p3_generic_drop_all(struct p3_nic *n)
{
	if (!n->generic)
		return;
	n->staging = false;
	/* A thread that looks at the closed NIC waits for no entry. */
	p3_release(&n->generic->handled, p3_get(&n->generic->staged)); /* GEN.2 */
	free(n->generic->entry);
	free(n->generic->upper);
}
