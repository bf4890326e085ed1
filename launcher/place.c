/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement: units of CPUs from /sys, nodes on them, CPUs for NIC threads. */
#include "launcher/place.h"
#include "launcher/cpus.h"
#include "launcher/say.h"
#include "shm/cpulist.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SAID_LEN 200 /* longest list in a message */

struct units {
	cpu_set_t *cpus;
	uint32_t n;
};

/* ---- the machine ---- */

int p3_place_here(struct p3_place_machine *here_out)
{
	*here_out = (struct p3_place_machine){.root = "", .quota = p3_cpus_quota("")};
	return sched_getaffinity(0, sizeof here_out->mask, &here_out->mask) ? -errno : 0;
}

/* Read a list from a file of /sys.  Return false if the file does not exist. */
static bool read_list(const char *root, const char *name, cpu_set_t *set_out)
{
	char file[1024], text[P3_CPULIST_LEN];
	snprintf(file, sizeof file, "%s/sys/devices/system/%s", root, name);
	FILE *f = fopen(file, "re");
	if (!f)
		return false;
	bool ok = fgets(text, sizeof text, f) && p3_cpulist_parse(text, set_out);
	fclose(f);
	return ok;
}

/* Return the CPUs of this CPU's core; if it is unknown, the CPU alone. */
static cpu_set_t core_of(const char *root, unsigned cpu)
{
	char name[100];
	cpu_set_t set;
	snprintf(name, sizeof name, "cpu/cpu%u/topology/thread_siblings_list", cpu);
	if (!read_list(root, name, &set))
		CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return set;
}

/* Return the CPUs of this CPU's NUMA node; if it is unknown, all. */
static cpu_set_t numa_of(const char *root, unsigned cpu)
{
	cpu_set_t nodes, set;
	char name[100];
	if (!read_list(root, "node/online", &nodes))
		CPU_ZERO(&nodes);
	for (unsigned k = 0; k < CPU_SETSIZE; k++) {
		snprintf(name, sizeof name, "node/node%u/cpulist", k);
		if (CPU_ISSET(k, &nodes) && read_list(root, name, &set) &&
			CPU_ISSET(cpu, &set))
			return set;
	}
	for (unsigned k = 0; k < CPU_SETSIZE; k++)
		CPU_SET(k, &set);
	return set;
}

static cpu_set_t unit_of(const char *root, enum p3_bind bind, unsigned cpu)
{
	cpu_set_t set;
	if (bind == P3_BIND_CORE)
		return core_of(root, cpu);
	if (bind == P3_BIND_NUMA)
		return numa_of(root, cpu);
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return set;
}

/* Find the units in the order of their first CPUs, without CPUs that are not the
 * job's. */
static int find_units(const char *root, enum p3_bind bind, const cpu_set_t *job,
	struct units *units_out)
{
	cpu_set_t left = *job;
	struct units u = {calloc((size_t)CPU_COUNT(job), sizeof *u.cpus), 0};
	if (!u.cpus)
		return -ENOMEM;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &left))
			continue;
		cpu_set_t unit = unit_of(root, bind, cpu), rest;
		CPU_AND(&unit, &unit, &left);
		CPU_XOR(&rest, &left, &unit);
		left = rest;
		u.cpus[u.n++] = unit;
	}
	*units_out = u;
	return 0;
}

/* ---- nodes ---- */

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static const char *name_of(enum p3_bind bind)
{
	return bind == P3_BIND_NUMA   ? "NUMA nodes"
	       : bind == P3_BIND_LIST ? "CPUs of --bind"
				      : "cores";
}

static bool fits(const struct p3_place_machine *here, const struct p3_place_want *want,
	const struct units *u, uint32_t size)
{
	uint32_t n = want->bind == P3_BIND_NUMA ? u->n : smaller(u->n, here->quota);
	if (!want->per_unit || size <= (uint64_t)n * want->per_unit)
		return true;
	p3_say("-VN: %u nodes, %u on each, do not fit on the %u %s that the job may use "
	       "(affinity, cgroup quota); expected -VN %u or more, or fewer nodes",
		size, want->per_unit, n, name_of(want->bind), (size + n - 1) / n);
	return false;
}

static void place_nodes(
	struct p3_place *p, const struct units *u, uint32_t size, uint32_t per_unit)
{
	for (uint32_t i = 0; i < size; i++)
		p->node[i] = u->cpus[(per_unit ? i / per_unit : i) % u->n];
}

/* ---- their NIC threads ---- */

static cpu_set_t unbound_of(const struct p3_place *p, uint32_t size)
{
	cpu_set_t used, spare;
	CPU_ZERO(&used);
	for (uint32_t i = 0; i < size; i++)
		CPU_OR(&used, &used, &p->node[i]);
	CPU_XOR(&spare, &p->job, &used);
	return spare;
}

static unsigned first_of(const cpu_set_t *set)
{
	unsigned cpu = 0;
	while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, set))
		cpu++;
	return cpu;
}

/* Take a CPU out of the spare ones.  Return false if there is none. */
static bool take_spare(
	const char *root, const cpu_set_t *node, cpu_set_t *spare, cpu_set_t *nic_out)
{
	if (!CPU_COUNT(spare))
		return false;
	cpu_set_t near = numa_of(root, first_of(node));
	CPU_AND(&near, &near, spare);
	unsigned cpu = first_of(&near);
	if (cpu == CPU_SETSIZE)
		return false;
	CPU_CLR(cpu, spare);
	CPU_ZERO(nic_out);
	CPU_SET(cpu, nic_out);
	return true;
}

static void place_nics(
	const char *root, enum p3_bind bind, struct p3_place *p, uint32_t size)
{
	cpu_set_t spare = unbound_of(p, size);
	for (uint32_t i = 0; i < size; i++)
		if (bind == P3_BIND_NUMA)
			p->nic[i] = p->node[i];
		else if (!take_spare(root, &p->node[i], &spare, &p->nic[i]))
			p->nic[i] = p->job;
}

/* ---- all of it ---- */

/* Choose the job's CPUs.  Return -EINVAL if some of the list are not available to yod. */
static int choose_job(const struct p3_place_machine *here,
	const struct p3_place_want *want, cpu_set_t *job_out)
{
	char list[SAID_LEN], mask[SAID_LEN];
	cpu_set_t both;
	*job_out = here->mask;
	if (want->bind != P3_BIND_LIST)
		return 0;
	CPU_AND(&both, &want->list, &here->mask);
	if (CPU_EQUAL(&both, &want->list)) {
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

static int bind_all(const struct p3_place_machine *here, const struct p3_place_want *want,
	const struct units *u, uint32_t size, struct p3_place *p)
{
	if (!fits(here, want, u, size))
		return -ERANGE;
	p->node = calloc(size, sizeof *p->node);
	p->nic = calloc(size, sizeof *p->nic);
	if (!p->node || !p->nic)
		return -ENOMEM;
	place_nodes(p, u, size, want->per_unit);
	place_nics(here->root, want->bind, p, size);
	return 0;
}

int p3_place_make(const struct p3_place_machine *here, const struct p3_place_want *want,
	uint32_t size, struct p3_place *place_out)
{
	struct p3_place p = {.bound = true};
	struct units u = {NULL, 0};
	int rc = choose_job(here, want, &p.job);
	p.cpus = smaller((uint32_t)CPU_COUNT(&p.job), here->quota);
	if (!rc)
		rc = find_units(here->root, want->bind, &p.job, &u);
	if (!rc)
		rc = bind_all(here, want, &u, size, &p);
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

bool p3_place_is_possible(const cpu_set_t *set)
{
	cpu_set_t was;
	if (sched_getaffinity(0, sizeof was, &was))
		return true; /* more CPUs than a set has: the answer is unknown */
	bool ok = sched_setaffinity(0, sizeof *set, set) == 0;
	(void)sched_setaffinity(0, sizeof was, &was);
	return ok;
}

void p3_place_free(struct p3_place *place)
{
	free(place->node);
	free(place->nic);
	place->node = place->nic = NULL;
}
