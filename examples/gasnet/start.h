/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start.h - the common part of the GASNet examples: starting with handlers and a segment,
 * meeting, and ending if a result is wrong
 */
#ifndef START_H
#define START_H

#include <gasnet.h>

static gasnet_node_t me, nodes;
static gasnet_seginfo_t segment[GASNET_MAXNODES];

/* End the job if a call failed. */
static inline void check(int rc, const char *what)
{
	if (rc != GASNET_OK) {
		fprintf(stderr, "%s: %s: %s\n", what, gasnet_ErrorName(rc),
			gasnet_ErrorDesc(rc));
		gasnet_exit(1);
	}
}

/* End the job if a result is wrong. */
static inline void expect(int right, const char *what)
{
	if (!right) {
		fprintf(stderr, "node %u: wrong: %s\n", me, what);
		gasnet_exit(1);
	}
}

static inline void start(int *argc, char ***argv, gasnet_handlerentry_t *handlers,
	int count, uintptr_t bytes)
{
	bytes = (bytes + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE;
	check(gasnet_init(argc, argv), "gasnet_init");
	check(gasnet_attach(handlers, count, bytes, 0), "gasnet_attach");
	me = gasnet_mynode();
	nodes = gasnet_nodes();
	check(gasnet_getSegmentInfo(segment, (int)nodes), "gasnet_getSegmentInfo");
}

/* Wait until all nodes are here. */
static inline void meet(void)
{
	gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
	check(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS),
		"gasnet_barrier_wait");
}

#endif /* START_H */
