/* SPDX-License-Identifier: BSD-3-Clause */
/* cases - the common header of the test programs of this directory */
#ifndef P3_TESTS_CASES_H
#define P3_TESTS_CASES_H

#include "shm/atomics.h"
#include "support/cases.h"
#include "support/nodes.h"

#include <stdlib.h>
#include <string.h>

/* The arguments of a node's function, of which a case may ignore any. */
#define MAYBE_UNUSED __attribute__((unused))
#define NODE_ARGS                                                                        \
	unsigned rank MAYBE_UNUSED, unsigned size MAYBE_UNUSED,                          \
		ptl_handle_ni_t ni MAYBE_UNUSED, void *arg MAYBE_UNUSED

/* A case that is one run of some nodes: NODES_CASE(put_arrives, 2) { ... } */
#define NODES_CASE(name, nodes)                                                          \
	static nodes_fn name##_node;                                                     \
	CASE(name)                                                                       \
	{                                                                                \
		run_nodes(nodes, name##_node, NULL);                                     \
	}                                                                                \
	static void name##_node(NODE_ARGS)

/* The same with nodes that call node_ni() themselves. */
#define HAND_CASE(name, nodes)                                                           \
	static nodes_fn name##_node;                                                     \
	CASE(name)                                                                       \
	{                                                                                \
		run_by_hand(nodes, name##_node, NULL);                                   \
	}                                                                                \
	static void name##_node(NODE_ARGS)

static inline void run_by_hand(unsigned nodes, nodes_fn *fn, void *arg)
{
	const struct nodes_opt opt = {.no_ni = true};
	run_nodes_opt(nodes, fn, arg, &opt);
}

/* The same as run_nodes(), with a setting of the library. */
static inline void run_nodes_with(
	const char *name, const char *value, unsigned nodes, nodes_fn *fn)
{
	const char *was = getenv(name);
	char *kept = was ? strdup(was) : NULL;
	setenv(name, value, 1);
	run_nodes(nodes, fn, NULL);
	if (kept)
		setenv(name, kept, 1);
	else
		unsetenv(name);
	free(kept);
}

static inline ptl_sr_value_t status_of(ptl_handle_ni_t ni, ptl_sr_index_t i)
{
	ptl_sr_value_t v = 0;
	CHECK_OK(PtlNIStatus(ni, i, &v));
	return v;
}

#endif
