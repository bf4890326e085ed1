/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement: CPUs of the job, units of them, nodes on these, CPUs for NIC threads. */
#include "launcher/yod/yod.h"
#include "shm/cpuset.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAID_LEN 200 /* longest list in a message */

struct units {
	struct p3_cpuset *cpus;
	uint32_t n;
};

/* ---- the machine ---- */

/* Read a list from a file of /sys.  Return false if the file does not exist. */
static bool place_read_list(const char *root, const char *name, struct p3_cpuset *set_out)
{
	char text[P3_CPULIST_LEN];
	return p3_line_read(text, sizeof text, "%s/sys/devices/system/%s", root, name) &&
	       p3_cpulist_parse(text, set_out);
}

/* Return the CPUs of this CPU's core, or the CPU alone if its core is unknown. */
static struct p3_cpuset place_core_of(const char *root, unsigned cpu)
{
	char name[100];
	struct p3_cpuset set = {{0}};
	snprintf(name, sizeof name, "cpu/cpu%u/topology/thread_siblings_list", cpu);
	(void)place_read_list(root, name, &set);
	p3_cpuset_add(&set, cpu);
	return set;
}

/* Return the CPUs of this CPU's NUMA node, or all CPUs if its NUMA node is unknown. */
static struct p3_cpuset place_numa_of(const char *root, unsigned cpu)
{
	struct p3_cpuset nodes = {{0}}, set;
	char name[100];
	(void)place_read_list(root, "node/online", &nodes);
	for (unsigned k = 0; k < P3_CPUS_MOST; k++) {
		if (!p3_cpuset_has(&nodes, k))
			continue;
		snprintf(name, sizeof name, "node/node%u/cpulist", k);
		if (place_read_list(root, name, &set) && p3_cpuset_has(&set, cpu))
			return set;
	}
	memset(&set, 0xff, sizeof set);
	return set;
}

/* Divide the job's CPUs into units (cores, NUMA nodes or single CPUs: yod.h), in the
 * order of their first CPUs. */
static int place_find_units(const char *root, enum p3_bind bind,
	const struct p3_cpuset *job, struct units *units_out)
{
	struct p3_cpuset left = *job;
	struct units u = {calloc(p3_cpuset_count(job), sizeof *u.cpus), 0};
	if (!u.cpus)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < P3_CPUS_MOST; cpu++) {
		if (!p3_cpuset_has(&left, cpu))
			continue;
		struct p3_cpuset unit = bind == P3_BIND_CORE   ? place_core_of(root, cpu)
					: bind == P3_BIND_NUMA ? place_numa_of(root, cpu)
							       : p3_cpuset_of(cpu);
		p3_cpuset_keep(&unit, &left);
		p3_cpuset_remove(&left, &unit);
		u.cpus[u.n++] = unit;
	}
	*units_out = u;
	return 0;
}

/* ---- all of it ---- */

/* Choose the job's CPUs.  Return -EINVAL if the list has a CPU that yod may not use. */
static int place_choose_job(const struct p3_place_machine *here,
	const struct p3_place_want *want, struct p3_cpuset *job_out)
{
	char list[SAID_LEN], mask[SAID_LEN];
	struct p3_cpuset both = want->list;
	*job_out = here->mask;
	if (want->bind != P3_BIND_LIST)
		return 0;
	p3_cpuset_keep(&both, &here->mask);
	if (p3_cpuset_equal(&both, &want->list)) {
		*job_out = want->list;
		return 0;
	}
	p3_cpulist_print(&want->list, list, sizeof list);
	p3_cpulist_print(&here->mask, mask, sizeof mask);
	p3_say("--bind: '%s' has CPUs that yod may not use; expected some of %s (see "
	       "taskset -p, cpuset cgroups)",
		list, mask);
	return -EINVAL;
}

static int place_bind_all(const struct p3_place_machine *here,
	const struct p3_place_want *want, const struct units *u, uint32_t first,
	uint32_t size, struct p3_place *p)
{
	const enum p3_bind bind = want->bind;
	uint32_t n = bind == P3_BIND_NUMA ? u->n : p3_cpus_fewer(u->n, here->quota);
	if (want->per_unit && size > (uint64_t)n * want->per_unit) {
		p3_say("-VN: %u nodes, %u on each, do not fit on the %u %s that the job "
		       "may use (affinity, cgroup quota); expected -VN %u or more, or "
		       "fewer nodes",
			size, want->per_unit, n,
			bind == P3_BIND_NUMA   ? "NUMA nodes"
			: bind == P3_BIND_LIST ? "CPUs of --bind"
					       : "cores",
			(size + n - 1) / n);
		return -ERANGE;
	}
	p->end = first + size;
	p->node = calloc(p->end, sizeof *p->node);
	p->nic = calloc(p->end, sizeof *p->nic);
	if (!p->node || !p->nic)
		return -ENOMEM;
	struct p3_cpuset spare = p->job;
	for (uint32_t i = first; i < p->end; i++) {
		uint32_t k = i - first;
		p->node[i] = u->cpus[(want->per_unit ? k / want->per_unit : k) % u->n];
		p3_cpuset_remove(&spare, &p->node[i]);
	}
	/* A NIC thread has a spare CPU of its node's NUMA node, if that has one. */
	for (uint32_t i = first; i < p->end; i++) {
		struct p3_cpuset near = {{0}};
		p->nic[i] = bind == P3_BIND_NUMA ? p->node[i] : p->job;
		if (bind != P3_BIND_NUMA && p3_cpuset_count(&spare))
			near = place_numa_of(here->root, p3_cpuset_first(&p->node[i]));
		p3_cpuset_keep(&near, &spare);
		uint32_t cpu = p3_cpuset_first(&near);
		if (cpu == P3_CPUS_MOST)
			continue;
		p->nic[i] = p3_cpuset_of(cpu);
		p3_cpuset_remove(&spare, &p->nic[i]);
	}
	return 0;
}

int p3_place_make(const struct p3_place_machine *here, const struct p3_place_want *want,
	uint32_t first, uint32_t size, struct p3_place *place_out)
{
	struct p3_place p = {.bound = true};
	struct units u = {NULL, 0};
	int rc = place_choose_job(here, want, &p.job);
	p.cpus = p3_cpus_fewer(p3_cpuset_count(&p.job), here->quota);
	if (!rc)
		rc = place_find_units(here->root, want->bind, &p.job, &u);
	if (!rc)
		rc = place_bind_all(here, want, &u, first, size, &p);
	free(u.cpus);
	if (rc == -ENOMEM)
		p3_say("out of memory for the places of %u nodes; use fewer, or do "
		       "without --bind and -VN",
			size);
	if (rc)
		p3_place_free(&p);
	else
		*place_out = p;
	return rc;
}

bool p3_place_is_possible(const struct p3_cpuset *set)
{
	struct p3_cpuset was;
	if (p3_cpuset_read(0, &was))
		return true; /* the mask is unknown, and so is the answer */
	bool ok = p3_cpuset_apply(set) == 0;
	(void)p3_cpuset_apply(&was);
	return ok;
}

void p3_place_free(struct p3_place *place)
{
	free(place->node);
	free(place->nic);
	place->node = place->nic = NULL;
}
