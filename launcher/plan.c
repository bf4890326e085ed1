/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/plan.h"
#include "launcher/run.h"
#include "launcher/say.h"
#include "launcher/spawn.h"
#include "launcher/settings.h"
#include "shm/conf.h"
#include "shm/cpulist.h"
#include "shm/footprint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define FDS_OF_NODE 9
#define FDS_OF_YOD  64
#define KIB(bytes)  ((bytes) >> 10)
#define UNKNOWN     UINT64_MAX

enum { HUGE_AUTO, HUGE_ON, HUGE_OFF }; /* in the order of shm/conf.c */

uint64_t p3_plan_yod_fds(uint32_t n)
{
	return (uint64_t)n * FDS_OF_NODE + FDS_OF_YOD;
}

/* ---- what there is ---- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* A number behind a key of a file ("": the first word); UNKNOWN: not there, or a word. */
static uint64_t read_number(const char *file, const char *key)
{
	char line[200];
	uint64_t n = UNKNOWN;
	size_t len = strlen(key);
	FILE *f = fopen(file, "re");
	if (!f)
		return UNKNOWN;
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, key, len)) {
			if (sscanf(line + len, "%" SCNu64, &n) != 1)
				n = UNKNOWN;
			break;
		}
	fclose(f);
	return n;
}

/* What a cgroup leaves; v2, or v1. */
static uint64_t cgroup_memory(void)
{
	static const char *const files[][2] = {
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes",
			"/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
	for (size_t i = 0; i < 2; i++) {
		uint64_t most = read_number(files[i][0], "");
		uint64_t used = read_number(files[i][1], "");
		if (most != UNKNOWN && used != UNKNOWN)
			return most > used ? most - used : 0;
	}
	return UNKNOWN;
}

static uint64_t free_memory(void)
{
	uint64_t kib = read_number("/proc/meminfo", "MemAvailable:");
	return smaller(kib == UNKNOWN ? kib : kib << 10, cgroup_memory());
}

static uint64_t free_hugepages(void)
{
	static const char dir[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
	char file[sizeof dir + 20];
	snprintf(file, sizeof file, "%sfree_hugepages", dir);
	uint64_t n = read_number(file, "");
	return n == UNKNOWN ? 0 : n;
}

/* Nobody raises what is set, but yod that of its open files. */
static uint64_t limit(int which)
{
	struct rlimit r;
	if (getrlimit((__rlimit_resource_t)which, &r))
		return UNKNOWN;
	rlim_t most = which == RLIMIT_NOFILE ? r.rlim_max : r.rlim_cur;
	return most == RLIM_INFINITY ? UNKNOWN : most;
}

/* ---- what is asked for ---- */

struct plan {
	const struct p3_opt *opt;
	const struct p3_place *place;
	uint64_t pages; /* PTL3_HUGEPAGES */
	uint64_t heap;
	uint64_t free_huge;
	uint64_t free;
	struct p3_footprint node;
	bool huge;   /* all nodes can have them */
	bool failed; /* something has been said */
};

static uint64_t setting(const struct p3_opt *opt, enum p3_conf_id id)
{
	uint64_t value = 0;
	(void)p3_conf_value(
		p3_conf_row(id), p3_settings_text(&opt->prog[0], (int)id), &value);
	return value;
}

static struct plan make(const struct p3_opt *opt, const struct p3_place *place)
{
	struct plan p = {.opt = opt,
		.place = place,
		.pages = setting(opt, P3_CONF_HUGEPAGES),
		.heap = setting(opt, P3_CONF_HEAP),
		.free_huge = free_hugepages(),
		.free = free_memory()};
	struct p3_footprint huge = p3_footprint_of(
		opt->size, true, p3_spawn_trace_records(opt->trace != NULL));
	p.huge = p.pages == HUGE_ON ||
		 (p.pages == HUGE_AUTO && huge.hugepages * opt->size <= p.free_huge);
	p.node = p3_footprint_of(
		opt->size, p.huge, p3_spawn_trace_records(opt->trace != NULL));
	if (opt->shared_heap && !p3_settings_text(&opt->prog[0], P3_CONF_HEAP))
		p.heap = (uint64_t)1 << 30;
	return p;
}

/* ---- print ---- */

static void print_programs(const struct p3_opt *opt)
{
	printf("nodes         %u\n", opt->size);
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		const struct p3_prog *g = &opt->prog[i];
		printf("ranks         %u-%u: %s%s%s\n", g->first, g->first + g->size - 1,
			g->argv[0], g->dir ? " in " : "", g->dir ? g->dir : "");
	}
}

static void print_memory(const struct plan *p)
{
	const struct p3_footprint *f = &p->node;
	uint64_t n = p->opt->size;
	printf("memory        each node %" PRIu64
	       " bytes at the start: published %" PRIu64 ", doorbell %" PRIu64
	       ", host %" PRIu64 "\n",
		f->start, f->published, f->doorbell, f->host);
	printf("              all nodes %" PRIu64 " bytes", f->start * n);
	if (p->free != UNKNOWN)
		printf(", %" PRIu64 " free", p->free);
	printf("\n              with all lanes and windows in use published grows to "
	       "%" PRIu64 " bytes, %" PRIu64 " for all nodes\n",
		f->grown, f->grown * n);
	printf("              shared heap: addresses for %" PRIu64
	       " KiB a node, memory as blocks need it\n",
		n > 1 ? KIB(p->heap) : 0);
}

static void print_hugepages(const struct plan *p)
{
	static const char *const words[] = {"auto", "on", "off"};
	struct p3_footprint huge = p3_footprint_of(
		p->opt->size, true, p3_spawn_trace_records(p->opt->trace != NULL));
	printf("hugepages     %" PRIu64 " of 2 MiB needed, %" PRIu64
	       " free; PTL3_HUGEPAGES is %s: %s\n",
		p->pages == HUGE_OFF ? 0 : huge.hugepages * p->opt->size, p->free_huge,
		words[p->pages], p->huge ? "hugepages" : "ordinary pages");
}

static void print_place(const struct plan *p, uint32_t rank)
{
	char node[P3_CPULIST_LEN], nic[P3_CPULIST_LEN];
	const char *said = p3_settings_text(
		p3_prog_of(p->opt->prog, p->opt->prog_n, rank), P3_CONF_NIC_CPUS);
	cpu_set_t set;
	p3_cpulist_print(&p->place->node[rank], node, sizeof node);
	p3_cpulist_print(&p->place->nic[rank], nic, sizeof nic);
	printf("              rank %u: CPUs %s, NIC thread %s\n", rank, node,
		p3_conf_nic_cpus(said, &set) ? said : nic);
}

static void print_cpus(const struct plan *p)
{
	printf("CPUs          %u may be used\n", p->place->cpus);
	printf("placement     %s\n", p->place->bound ? "bound" : "not bound");
	for (uint32_t i = 0; p->place->bound && i < p->opt->size; i++)
		print_place(p, i);
}

static void print_descriptors(const struct plan *p)
{
	uint64_t most = limit(RLIMIT_NOFILE);
	printf("descriptors   each node %d, yod %" PRIu64 " at most",
		P3_NODE_FDS - (p->heap == 0 || p->opt->size == 1),
		p3_plan_yod_fds(p->opt->size));
	if (most != UNKNOWN)
		printf("; %" PRIu64 " allowed", most);
	printf("\n");
}

/* ---- what cannot be ---- */

static void check_size(struct plan *p)
{
	if (p->opt->size <= P3_MAX_NODES)
		return;
	p->failed = true;
	p3_say("plan: %u nodes; a Portals job has %u at most: use fewer nodes",
		p->opt->size, P3_MAX_NODES);
}

static void check_memory(struct plan *p)
{
	uint64_t need = p->node.start * p->opt->size;
	if (p->huge || p->free == UNKNOWN || need <= p->free)
		return;
	p->failed = true;
	p3_say("plan: %" PRIu64 " KiB needed, %" PRIu64
	       " free (memory, cgroup limit): use fewer nodes, or free memory",
		KIB(need), KIB(p->free));
}

static void check_hugepages(struct plan *p)
{
	uint64_t need = p->node.hugepages * p->opt->size;
	if (need <= p->free_huge)
		return;
	p->failed = true;
	p3_say("plan: PTL3_HUGEPAGES is on, %" PRIu64 " hugepages needed, %" PRIu64
	       " free: echo %" PRIu64 " | sudo tee "
	       "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages, or set it to "
	       "auto",
		need, p->free_huge, need);
}

static void check_limit(
	struct plan *p, int which, uint64_t need, const char *what, const char *remedy)
{
	uint64_t most = limit(which);
	if (most == UNKNOWN || need <= most)
		return;
	p->failed = true;
	p3_say("plan: %s: %" PRIu64 " needed, %" PRIu64 " allowed: raise %s, or use "
	       "fewer nodes",
		what, need, most, remedy);
}

static void check(struct plan *p)
{
	uint64_t heap = p->opt->size > 1 ? p->heap : 0;
	check_size(p);
	check_memory(p);
	check_hugepages(p);
	check_limit(p, RLIMIT_NOFILE, p3_plan_yod_fds(p->opt->size), "open files",
		"ulimit -Hn");
	check_limit(p, RLIMIT_FSIZE, P3_HOST_LEN, "bytes of a file", "ulimit -f");
	check_limit(p, RLIMIT_AS, P3_HOST_LEN + heap + p->node.grown * p->opt->size,
		"bytes of address space", "ulimit -v");
}

int p3_plan_print(const struct p3_opt *opt, const struct p3_place *place)
{
	struct plan p = make(opt, place);
	print_programs(opt);
	print_memory(&p);
	print_hugepages(&p);
	print_cpus(&p);
	print_descriptors(&p);
	fflush(stdout);
	check(&p);
	return p.failed ? P3_STATUS_YOD : 0;
}
