/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place - which CPUs each node runs on, and its NIC thread
 *
 * The job's CPUs are those of yod's affinity mask, or of a list that is part of it.
 * They make units: cores (hardware threads that share one are one unit), NUMA nodes, or
 * single CPUs of the list.  Nodes take units in turn; with per_unit N of them in a row
 * share one, and the job must fit.
 *
 *	--bind core, 4 CPUs, 2 nodes	node 0: 0, node 1: 1; NIC threads: 2 and 3
 *
 * A NIC thread has the next CPU of its node's NUMA node that no node is bound to; if
 * there is none any more, all CPUs of the job.  Nodes bound to NUMA nodes have their NIC
 * threads there, too.  What the user says in PTL3_NIC_CPUS comes first (spawn.c).
 */
#ifndef P3_LAUNCHER_PLACE_H
#define P3_LAUNCHER_PLACE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

enum p3_bind { P3_BIND_NONE, P3_BIND_CORE, P3_BIND_NUMA, P3_BIND_LIST };

struct p3_place_want {
	enum p3_bind bind;
	cpu_set_t list;    /* of P3_BIND_LIST */
	uint32_t per_unit; /* 0: as it comes */
};

/* What there is to place on; a test makes its own. */
struct p3_place_machine {
	const char *root; /* where /sys is: "" */
	cpu_set_t mask;
	uint32_t quota; /* CPUs that are paid for, UINT32_MAX: all */
};

struct p3_place {
	bool bound;    /* else only cpus is known */
	uint32_t cpus; /* CPUs that the job may use */
	cpu_set_t job; /* which */
	cpu_set_t *node;
	cpu_set_t *nic;
};

/* This machine.  0 or -errno: the mask cannot be read. */
int p3_place_here(struct p3_place_machine *here_out);

/* For another bind than NONE.  0; -ERANGE, -ENOMEM, -EINVAL: it has been said. */
int p3_place_make(const struct p3_place_machine *here, const struct p3_place_want *want,
	uint32_t size, struct p3_place *place_out);
/* May a process like this one run on any of them?  Tried by doing it. */
bool p3_place_is_possible(const cpu_set_t *set);
void p3_place_free(struct p3_place *place);

#endif
