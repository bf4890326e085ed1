/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan of a job: its demand, the supply of the machine, reasons why it cannot run. */
#include "launcher/yod/yod.h"
#include "shm/conf.h"
#include "shm/cpuset.h"
#include "shm/footprint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* Descriptors of yod that the start of a job takes, and those of each node: its lifeline,
 * its process, and four files of memory.  Pipes for output take more, and so does a file,
 * folder or domain that an option names. */
#define FDS_OF_YOD   11
#define FDS_OF_NODE  6u
#define FDS_OF_PIPES 1
#define UNKNOWN      UINT64_MAX

#define HUGEPAGES    "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define NR_HUGEPAGES HUGEPAGES "nr_hugepages"

enum { HUGE_AUTO, HUGE_ON, HUGE_OFF }; /* in the order of shm/conf.c */

uint64_t p3_plan_yod_fds(const struct p3_opt *opt, uint32_t n, bool agent)
{
	bool pipes = opt->tag || agent;
	bool files[] = {opt->trace, opt->domain, opt->output_dir};
	uint64_t each = FDS_OF_NODE + (pipes ? 2 : 0) + (opt->stats ? 1 : 0);
	uint64_t once = FDS_OF_YOD + (pipes ? FDS_OF_PIPES : 0);
	for (size_t i = 0; i < sizeof files / sizeof files[0] && !agent; i++)
		once += files[i];
	return n * each + once;
}

/* A number of bytes as text. */
struct size {
	char text[24];
};

static struct size plan_size_of(uint64_t bytes)
{
	struct size s;
	if (bytes < (uint64_t)10 << 20)
		snprintf(s.text, sizeof s.text, "%" PRIu64 " KiB", (bytes + 1023) >> 10);
	else if (bytes < (uint64_t)10 << 30)
		snprintf(s.text, sizeof s.text, "%.1f MiB", (double)bytes / (1 << 20));
	else
		snprintf(s.text, sizeof s.text, "%.1f GiB", (double)bytes / (1 << 30));
	return s;
}

/* ---- the machine's supply ---- */

/* Read the number behind a key of a file ("": the first word).  Return UNKNOWN if it
 * does not exist or is a word. */
static uint64_t plan_read_number(const char *file, const char *key)
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

/* Return the memory that the machine, and the cgroup (v2, or v1), leave. */
static uint64_t plan_free_memory(void)
{
	static const char *const files[][2] = {
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes",
			"/sys/fs/cgroup/memory/memory.usage_in_bytes"}};
	uint64_t kib = plan_read_number("/proc/meminfo", "MemAvailable:");
	uint64_t bytes = kib == UNKNOWN ? kib : kib << 10, left = UNKNOWN;
	for (size_t i = 0; i < 2 && left == UNKNOWN; i++) {
		uint64_t most = plan_read_number(files[i][0], "");
		uint64_t used = plan_read_number(files[i][1], "");
		if (most != UNKNOWN && used != UNKNOWN)
			left = most > used ? most - used : 0;
	}
	return bytes < left ? bytes : left;
}

/* Return a limit of this process: the hard limit of open files, since yod raises the soft
 * one, or else the soft limit. */
static uint64_t plan_limit(int which)
{
	struct rlimit r;
	if (getrlimit((__rlimit_resource_t)which, &r))
		return UNKNOWN;
	rlim_t most = which == RLIMIT_NOFILE ? r.rlim_max : r.rlim_cur;
	return most == RLIM_INFINITY ? UNKNOWN : most;
}

/* ---- the job's demand ---- */

/* One program, whose nodes are all alike. */
struct part {
	const struct p3_prog *prog;
	uint64_t pages; /* value of PTL3_HUGEPAGES */
	uint64_t heap;  /* bytes of address space; 0: no heap */
	uint32_t trace; /* records of the trace */
	bool huge;
	struct p3_footprint node;
};

struct plan {
	const struct p3_opt *opt;
	const struct p3_place *place;
	uint64_t free_huge;
	uint64_t free;
	bool alike;         /* all programs take the same resources */
	bool failed;        /* an error line was printed */
	uint64_t wanted;    /* hugepages, if the machine had enough */
	uint64_t hugepages; /* hugepages that the job takes */
	uint64_t start;     /* bytes of all nodes at the start */
	uint64_t ordinary;  /* part of start in ordinary pages */
	uint64_t grown;     /* published segments at their largest */
	uint64_t kernel;    /* all nodes' page tables and mappings at the start */
	uint64_t most;      /* kernel, when each node has talked to all others */
	uint64_t heap;      /* heap of the node with the largest one */
};

static uint64_t plan_setting(const struct p3_prog *prog, enum p3_conf_id id)
{
	uint64_t value = 0;
	(void)p3_conf_value(p3_conf_row(id), p3_settings_text(prog, (int)id), &value);
	return value;
}

/* Compute a part.  Programs that insist on hugepages get them, the others if there are
 * enough for all. */
static struct part plan_part_of(const struct plan *p, uint32_t i)
{
	const struct p3_opt *opt = p->opt;
	const struct p3_prog *prog = &opt->prog[i];
	struct part part = {.prog = prog, .pages = plan_setting(prog, P3_CONF_HUGEPAGES)};
	if (opt->shared_heap && !p3_settings_text(prog, P3_CONF_HEAP))
		part.heap = (uint64_t)1 << 30;
	else
		part.heap = plan_setting(prog, P3_CONF_HEAP);
	if (opt->size == 1)
		part.heap = 0;
	/* --trace does not change a value of the program's own environment. */
	const char *name = p3_conf_row(P3_CONF_TRACE)->name;
	const char *text = p3_prog_getenv(prog, name);
	if (text == getenv(name))
		part.trace = p3_spawn_trace_records(opt->trace != NULL);
	else
		(void)p3_conf_trace(text, &part.trace);
	part.huge = part.pages == HUGE_ON ||
		    (part.pages == HUGE_AUTO && p->wanted <= p->free_huge);
	part.node = p3_footprint_of(opt->size, part.huge, part.trace);
	return part;
}

static struct plan plan_make(const struct p3_opt *opt, const struct p3_place *place)
{
	struct plan p = {.opt = opt,
		.place = place,
		.free = plan_free_memory(),
		.most = (uint64_t)opt->size * opt->size * P3_PAIR_KERNEL,
		.alike = true};
	bool late = p3_conf_attach_late(p3_conf_text(P3_CONF_ATTACH), opt->size);
	uint64_t pages = plan_read_number(HUGEPAGES "free_hugepages", "");
	p.free_huge = pages == UNKNOWN ? 0 : pages;
	p.kernel = late ? (uint64_t)opt->size * P3_PAIR_KERNEL : p.most;
	struct part part, first = plan_part_of(&p, 0);
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		part = plan_part_of(&p, i);
		struct p3_footprint huge = p3_footprint_of(p.opt->size, true, part.trace);
		if (part.pages != HUGE_OFF)
			p.wanted += huge.hugepages * part.prog->size;
		p.alike &= part.pages == first.pages && part.heap == first.heap &&
			   part.trace == first.trace;
	}
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		part = plan_part_of(&p, i);
		uint64_t n = part.prog->size;
		p.hugepages += part.node.hugepages * n;
		p.start += part.node.start * n;
		p.ordinary += part.huge ? 0 : part.node.start * n;
		p.grown += part.node.grown * n;
		if (part.heap > p.heap)
			p.heap = part.heap;
	}
	return p;
}

/* ---- print ---- */

static void plan_print_programs(const struct p3_opt *opt)
{
	printf("nodes         %u\n", opt->size);
	for (uint32_t i = 0; i < opt->prog_n; i++) {
		const struct p3_prog *g = &opt->prog[i];
		printf("ranks         %u-%u: %s%s%s\n", g->first, g->first + g->size - 1,
			g->argv[0], g->dir ? " in " : "", g->dir ? g->dir : "");
	}
}

/* Text behind a line that is about one part only. */
struct whose {
	char text[40];
};

static struct whose plan_whose(const struct plan *p, const struct part *part)
{
	struct whose w = {""};
	if (!p->alike)
		snprintf(w.text, sizeof w.text, " of ranks %u-%u", part->prog->first,
			part->prog->first + part->prog->size - 1);
	return w;
}

/* Return the number of parts (programs of the job) to print: 1 if all are alike. */
static uint32_t plan_parts(const struct plan *p)
{
	return p->alike ? 1 : p->opt->prog_n;
}

static void plan_print_memory(const struct plan *p)
{
	for (uint32_t i = 0; i < plan_parts(p); i++) {
		struct part part = plan_part_of(p, i);
		const struct p3_footprint *f = &part.node;
		printf("%-14seach node%s %s at the start: published %s, doorbell %s, "
		       "host %s\n",
			i ? "" : "memory", plan_whose(p, &part).text,
			plan_size_of(f->start).text, plan_size_of(f->published).text,
			plan_size_of(f->doorbell).text, plan_size_of(f->host).text);
	}
	printf("              all nodes %s", plan_size_of(p->start).text);
	if (p->free != UNKNOWN)
		printf(", %s free", plan_size_of(p->free).text);
	printf("\n              page tables of all nodes about %s at the start,\n"
	       "              %s when each has talked to all\n"
	       "              with all lanes and windows in use published",
		plan_size_of(p->kernel).text, plan_size_of(p->most).text);
	for (uint32_t i = 0; i < plan_parts(p); i++) {
		struct part part = plan_part_of(p, i);
		printf("%s%s grows to %s", i ? "," : "", plan_whose(p, &part).text,
			plan_size_of(part.node.grown).text);
	}
	printf(",\n              %s for all nodes\n", plan_size_of(p->grown).text);
	for (uint32_t i = 0; i < plan_parts(p); i++) {
		struct part part = plan_part_of(p, i);
		printf("              shared heap%s: addresses for %s a node, memory as "
		       "blocks need it\n",
			plan_whose(p, &part).text, plan_size_of(part.heap).text);
	}
}

static void plan_print_hugepages(const struct plan *p)
{
	static const char *const words[] = {"auto", "on", "off"};
	printf("hugepages     %" PRIu64 " of 2 MiB needed, %" PRIu64 " free", p->wanted,
		p->free_huge);
	for (uint32_t i = 0; i < plan_parts(p); i++) {
		struct part part = plan_part_of(p, i);
		printf("; PTL3_HUGEPAGES%s is %s: %s", plan_whose(p, &part).text,
			words[part.pages], part.huge ? "hugepages" : "ordinary pages");
	}
	printf("\n");
	if (p->wanted > p->free_huge && p->hugepages < p->wanted)
		printf("              for more: echo %" PRIu64 " | sudo tee " NR_HUGEPAGES
		       "\n",
			p->wanted);
}

static void plan_print_cpus(const struct plan *p)
{
	printf("CPUs          %u may be used\n", p->place->cpus);
	printf("placement     %s\n", p->place->bound ? "bound" : "not bound");
	for (uint32_t i = 0; p->place->bound && i < p->opt->size; i++) {
		char node[P3_CPULIST_LEN], nic[P3_CPULIST_LEN];
		const char *said = p3_settings_text(
			p3_prog_of(p->opt->prog, p->opt->prog_n, i), P3_CONF_NIC_CPUS);
		struct p3_cpuset set;
		p3_cpulist_print(&p->place->node[i], node, sizeof node);
		p3_cpulist_print(&p->place->nic[i], nic, sizeof nic);
		printf("              rank %u: CPUs %s, NIC thread %s\n", i, node,
			p3_conf_nic_cpus(said, &set) ? said : nic);
	}
}

/* ---- reasons why it cannot run ---- */

static void plan_check_bytes(
	struct plan *p, int which, uint64_t need, const char *what, const char *by)
{
	uint64_t most = plan_limit(which);
	if (most == UNKNOWN || need <= most)
		return;
	p->failed = true;
	p3_say("plan: %s: %s needed, %s allowed: raise %s, or use fewer nodes", what,
		plan_size_of(need).text, plan_size_of(most).text, by);
}

void p3_plan_raise_fds(rlim_t need)
{
	struct rlimit want;
	getrlimit(RLIMIT_NOFILE, &want);
	if (want.rlim_cur >= need)
		return;
	want.rlim_cur = need < want.rlim_max ? need : want.rlim_max;
	setrlimit(RLIMIT_NOFILE, &want);
}

bool p3_plan_check_fds(const struct p3_opt *opt, uint32_t n, bool agent)
{
	uint64_t most = plan_limit(RLIMIT_NOFILE), need = p3_plan_yod_fds(opt, n, agent);
	if (need <= most)
		return true;
	p3_say("open files: %" PRIu64 " needed for %u nodes, %" PRIu64
	       " allowed: raise ulimit -Hn, or use fewer nodes",
		need, n, most);
	return false;
}

int p3_plan_print_hosts(const struct p3_opt *opt)
{
	plan_print_programs(opt);
	for (uint32_t i = 0; i < opt->hosts.n; i++) {
		const struct p3_host *h = &opt->hosts.host[i];
		printf("%-14s%s: ranks %u-%u\n", i ? "" : "hosts", h->name, h->first,
			h->first + h->size - 1);
	}
	return 0;
}

/* Print the reasons why the job cannot run, if there are any. */
static void plan_check(struct plan *p)
{
	uint64_t need = p->ordinary + p->kernel;
	if (p->free != UNKNOWN && need > p->free) {
		p->failed = true;
		p3_say("plan: %s needed, %s free (memory, cgroup limit): use fewer "
		       "nodes, or free memory",
			plan_size_of(need).text, plan_size_of(p->free).text);
	}
	if (p->hugepages > p->free_huge) {
		p->failed = true;
		p3_say("plan: PTL3_HUGEPAGES is on, %" PRIu64
		       " hugepages needed, %" PRIu64 " free: echo %" PRIu64
		       " | sudo tee " NR_HUGEPAGES ", or set it to auto",
			p->hugepages, p->free_huge, p->hugepages);
	}
	p->failed |= !p3_plan_check_fds(p->opt, p->opt->size, false);
	plan_check_bytes(p, RLIMIT_FSIZE, P3_HOST_LEN, "size of a file", "ulimit -f");
	plan_check_bytes(p, RLIMIT_AS, P3_HOST_LEN + p->heap + p->grown, "address space",
		"ulimit -v");
}

int p3_plan_print(const struct p3_opt *opt, const struct p3_place *place)
{
	struct plan p = plan_make(opt, place);
	uint64_t fds = plan_limit(RLIMIT_NOFILE);
	plan_print_programs(opt);
	plan_print_memory(&p);
	/* The numbers of M = S * Ssize + P * Psize: sources and pendings are the parts
	 * of a node's memory that grow with the job and with its operations. */
	printf("sources       each node %" PRIu32 " of %" PRIu64
	       " bytes, and %s more for each with a\n              full lane; %u bytes "
	       "in private memory\n",
		opt->size, p3_footprint_source(),
		plan_size_of(p3_footprint_lane(opt->size)).text, P3_SOURCE_PRIVATE);
	printf("pendings      each node up to %" PRIu64 " of %u bytes, %u at a time\n",
		P3_PENDING_LIMIT / P3_PENDING_LEN, P3_PENDING_LEN, P3_PENDING_CHUNK);
	plan_print_hugepages(&p);
	plan_print_cpus(&p);
	printf("descriptors   each node %d, yod %" PRIu64, P3_NODE_FDS - (p.heap == 0),
		p3_plan_yod_fds(opt, opt->size, false));
	if (fds != UNKNOWN)
		printf("; %" PRIu64 " allowed", fds);
	printf("\n");
	fflush(stdout);
	plan_check(&p);
	return p.failed ? P3_STATUS_YOD : 0;
}
