/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place - the CPUs of each node and of its NIC thread
 *
 * The job's CPUs are those of yod's affinity mask, or of a list that is part of it.
 * They form units: cores (hardware threads of one core are one unit), NUMA nodes, or
 * single CPUs of the list.  Nodes take units in turn; with per_unit, that number of
 * consecutive nodes share a unit, and the job must fit.
 *
 *	--bind core, 4 CPUs, 2 nodes	node 0: 0, node 1: 1; NIC threads: 2 and 3
 *
 * A NIC thread has the next CPU of its node's NUMA node that no node is bound to; if
 * there is none left, all CPUs of the job.  Nodes bound to NUMA nodes have their NIC
 * threads there, too.  PTL3_NIC_CPUS overrides this (spawn.c).  yod's main thread calls
 * these functions; there is no state.
 */
#ifndef P3_LAUNCHER_PLACE_H
#define P3_LAUNCHER_PLACE_H

#include "shm/cpuset.h"

#include <stdbool.h>
#include <stdint.h>

enum p3_bind { P3_BIND_NONE, P3_BIND_CORE, P3_BIND_NUMA, P3_BIND_LIST };

struct p3_place_want {
	enum p3_bind bind;
	struct p3_cpuset list; /* CPUs of P3_BIND_LIST */
	uint32_t per_unit;     /* 0: no limit */
};

/* The machine to place nodes on; a test makes its own. */
struct p3_place_machine {
	const char *root; /* directory that contains /sys: "" */
	struct p3_cpuset mask;
	uint32_t quota; /* CPUs of the cgroup's quota, UINT32_MAX: no quota */
};

struct p3_place {
	bool bound;           /* false: only cpus is valid */
	uint32_t cpus;        /* number of CPUs that the job may use */
	struct p3_cpuset job; /* the set of these CPUs */
	struct p3_cpuset *node;
	struct p3_cpuset *nic;
};

/* Describe this machine.  Return 0, or -errno if the mask cannot be read. */
int p3_place_here(struct p3_place_machine *here_out);

/* Place the nodes for a bind other than NONE.  Return 0, or -ERANGE, -ENOMEM or -EINVAL
 * after an error line. */
int p3_place_make(const struct p3_place_machine *here, const struct p3_place_want *want,
	uint32_t size, struct p3_place *place_out);
/* Return true if this process may run on one of the CPUs.  To find out, the function sets
 * the process's affinity mask to them, and then restores it. */
bool p3_place_is_possible(const struct p3_cpuset *set);
/* Let the places, made for nodes 0 to n - 1, be those of nodes first to first + n - 1 of
 * a job of `size` nodes.  Return 0 or -ENOMEM. */
int p3_place_shift(struct p3_place *place, uint32_t first, uint32_t n, uint32_t size);
void p3_place_free(struct p3_place *place);

#endif
