/* SPDX-License-Identifier: BSD-3-Clause */
/* Places of nodes and NIC threads, on machines described by files. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/yod/yod.h"
#include "shm/cpuset.h"
#include "support/cases.h"

static char root[] = "/tmp/p3-place-XXXXXX";

static void write_list(const char *name, const char *list)
{
	char path[300];
	snprintf(path, sizeof path, "%s/sys/devices/system/%s", root, name);
	for (char *at = path + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(path, 0755);
		*at = '/';
	}
	FILE *f = fopen(path, "w");
	fprintf(f, "%s\n", list);
	fclose(f);
}

/* Build a machine of two NUMA nodes of two cores of two threads: 0,4 1,5 | 2,6 3,7. */
static int build(void **state)
{
	(void)state;
	if (!mkdtemp(root))
		return -1;
	for (unsigned cpu = 0; cpu < 8; cpu++) {
		char name[100], list[20];
		snprintf(name, sizeof name, "cpu/cpu%u/topology/thread_siblings_list",
			cpu);
		snprintf(list, sizeof list, "%u,%u", cpu % 4, cpu % 4 + 4);
		write_list(name, list);
	}
	write_list("node/online", "0-1");
	write_list("node/node0/cpulist", "0-1,4-5");
	write_list("node/node1/cpulist", "2-3,6-7");
	return 0;
}

static int demolish(void **state)
{
	char cmd[100];
	(void)state;
	snprintf(cmd, sizeof cmd, "rm -rf %s", root);
	return system(cmd);
}

static struct p3_place_machine machine(const char *mask, uint32_t quota)
{
	struct p3_place_machine m = {.root = root, .quota = quota};
	assert_true(p3_cpulist_parse(mask, &m.mask));
	return m;
}

static void print_set(char *text, const struct p3_cpuset *set)
{
	p3_cpulist_print(set, text + strlen(text), 100);
}

/* Compare a placement with "cpus: node/nic ...". */
static void expect(const struct p3_place_machine *m, struct p3_place_want want,
	uint32_t size, const char *wanted)
{
	char got[1000];
	struct p3_place p;
	int rc = p3_place_make(m, &want, 0, size, &p);
	if (rc) {
		snprintf(got, sizeof got, "%s", strerror(-rc));
		assert_string_equal(got, wanted);
		return;
	}
	snprintf(got, sizeof got, "%u:", p.cpus);
	for (uint32_t i = 0; i < size; i++) {
		strcat(got, " ");
		print_set(got, &p.node[i]);
		strcat(got, "/");
		print_set(got, &p.nic[i]);
	}
	assert_string_equal(got, wanted);
	p3_place_free(&p);
}

CASE(place_cores_in_turn)
{
	struct p3_place_machine all = machine("0-7", UINT32_MAX);
	struct p3_place_want want = {.bind = P3_BIND_CORE};
	/* The spare CPUs of two nodes are all on the other NUMA node. */
	expect(&all, want, 1, "8: 0,4/1");
	expect(&all, want, 2, "8: 0,4/0-7 1,5/0-7");
	expect(&all, want, 5, "8: 0,4/0-7 1,5/0-7 2,6/0-7 3,7/0-7 0,4/0-7");
}

CASE(place_respects_the_mask)
{
	struct p3_place_machine some = machine("1,4,6-7", UINT32_MAX);
	struct p3_place_want want = {.bind = P3_BIND_CORE};
	expect(&some, want, 2, "4: 1/1,4,6-7 4/1,4,6-7");
	expect(&some, want, 4, "4: 1/1,4,6-7 4/1,4,6-7 6/1,4,6-7 7/1,4,6-7");
	want.bind = P3_BIND_NUMA;
	expect(&some, want, 3, "4: 1,4/1,4 6-7/6-7 1,4/1,4");
}

CASE(place_several_on_each)
{
	struct p3_place_machine all = machine("0-7", UINT32_MAX);
	struct p3_place_machine paid = machine("0-7", 2);
	struct p3_place_want want = {.bind = P3_BIND_CORE, .per_unit = 2};
	expect(&all, want, 3, "8: 0,4/0-7 0,4/0-7 1,5/0-7");
	expect(&all, want, 9, strerror(ERANGE));
	expect(&paid, want, 4, "2: 0,4/0-7 0,4/0-7 1,5/0-7 1,5/0-7");
	expect(&paid, want, 5, strerror(ERANGE));
	want = (struct p3_place_want){.bind = P3_BIND_NUMA, .per_unit = 1};
	expect(&all, want, 2, "8: 0-1,4-5/0-1,4-5 2-3,6-7/2-3,6-7");
	expect(&all, want, 3, strerror(ERANGE));
}

CASE(place_lists)
{
	struct p3_place_machine all = machine("0-3,6", UINT32_MAX);
	struct p3_place_want want = {.bind = P3_BIND_LIST};
	assert_true(p3_cpulist_parse("2-3,6", &want.list));
	expect(&all, want, 1, "3: 2/3");
	expect(&all, want, 2, "3: 2/6 3/2-3,6");
	expect(&all, want, 4, "3: 2/2-3,6 3/2-3,6 6/2-3,6 2/2-3,6");
	assert_true(p3_cpulist_parse("3-4", &want.list));
	expect(&all, want, 1, strerror(EINVAL));
}

/* A cpu_set_t has room for the CPUs up to 1023 only. */
CASE(place_beyond_1023)
{
	struct p3_place_machine all = machine("1023-1024,5000,8191", UINT32_MAX);
	struct p3_place_want want = {.bind = P3_BIND_LIST};
	assert_true(p3_cpulist_parse("1024,8191", &want.list));
	expect(&all, want, 1, "2: 1024/8191");
	want.bind = P3_BIND_CORE;
	all.root = "/nowhere";
	expect(&all, want, 3,
		"4: 1023/8191 1024/1023-1024,5000,8191 5000/1023-1024,5000,8191");
}

/* Without /sys each CPU is a core, and the machine is one NUMA node. */
CASE(place_without_topology)
{
	struct p3_place_machine bare = machine("0-2", UINT32_MAX);
	struct p3_place_want want = {.bind = P3_BIND_CORE};
	bare.root = "/nowhere";
	expect(&bare, want, 2, "3: 0/2 1/0-2");
	want.bind = P3_BIND_NUMA;
	expect(&bare, want, 2, "3: 0-2/0-2 0-2/0-2");
}

int main(void)
{
	return cases_run_in(build, demolish);
}
