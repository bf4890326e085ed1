/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memperf - memory of a node, by the number of nodes
 *
 *	yod -sz 16 memperf [options]
 *
 * The figures are from /proc/self when the interface is open (idle), and again when
 * every node has put a message to every other (talked).  Pss divides a shared page
 * among the processes that map it, so the sum over all nodes is the memory of the job;
 * Rss counts the page in each.  Segments are the mappings of memory files: their sizes
 * are of address space, used or not.  bench/series runs it with 2, 4, 8 ... nodes.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PORTAL = 4, FIELDS = 6 };

static const char *const field_name[FIELDS] = {"Rss", "Pss", "Shared_Dirty",
	"Private_Clean", "Private_Dirty", "Private_Hugetlb"};

struct sample {
	uint64_t kib[FIELDS];
	uint64_t hugetlb_kib;        /* Shared_Hugetlb: not in Rss */
	uint64_t own_kib, peers_kib; /* mapped writable, and read-only */
	uint64_t segments, maps;
};

struct program {
	struct bench b;
	struct bench_number bytes;
	struct sample *all; /* rank 0 */
	struct bench_watch w;
	char *tx, *rx;
};

/* ---- /proc ---- */

static FILE *open_proc(const char *name)
{
	FILE *f = fopen(name, "re");
	if (!f)
		bench_die(1, "%s: %s; expected a kernel with smaps_rollup (4.14)", name,
			strerror(errno));
	return f;
}

static void read_line(const char *line, struct sample *s)
{
	char name[40];
	unsigned long long kib;
	if (sscanf(line, "%39[^:]: %llu kB", name, &kib) != 2)
		return;
	for (int i = 0; i < FIELDS; i++)
		if (!strcmp(name, field_name[i]))
			s->kib[i] = kib;
	if (!strcmp(name, "Shared_Hugetlb"))
		s->hugetlb_kib = kib;
}

static void read_rollup(struct sample *s)
{
	char line[200];
	FILE *f = open_proc("/proc/self/smaps_rollup");
	while (fgets(line, sizeof line, f))
		read_line(line, s);
	fclose(f);
}

static void read_map(const char *line, struct sample *s)
{
	unsigned long long from, to;
	char mode[8];
	s->maps++;
	if (sscanf(line, "%llx-%llx %7s", &from, &to, mode) != 3 ||
		!strstr(line, "/memfd:"))
		return;
	s->segments++;
	if (mode[1] == 'w')
		s->own_kib += (to - from) >> 10;
	else
		s->peers_kib += (to - from) >> 10;
}

static void read_maps(struct sample *s)
{
	char line[400];
	FILE *f = open_proc("/proc/self/maps");
	while (fgets(line, sizeof line, f))
		read_map(line, s);
	fclose(f);
}

/* ---- */

static struct bench_stat over_ranks(const struct program *p, size_t offset)
{
	double *v = bench_allocate(p->b.size * sizeof *v);
	for (unsigned i = 0; i < p->b.size; i++)
		v[i] = (double)*(uint64_t *)((char *)&p->all[i] + offset);
	struct bench_stat s = bench_stat_of(v, p->b.size);
	free(v);
	return s;
}

static double sum_pss(const struct program *p)
{
	double sum = 0;
	for (unsigned i = 0; i < p->b.size; i++)
		sum += (double)p->all[i].kib[1];
	return sum;
}

#define OVER(member) over_ranks(p, offsetof(struct sample, member))

static void print(struct program *p, const char *when)
{
	struct bench_stat rss = OVER(kib[0]), pss = OVER(kib[1]);
	BENCH_ROW(&p->b, BENCH_COUNT("nodes", p->b.size), BENCH_TEXT("when", when),
		BENCH_COUNT("rss_KiB", rss.p50), BENCH_COUNT("pss_KiB", pss.p50),
		BENCH_COUNT("pss_max_KiB", pss.max),
		BENCH_COUNT("pss_sum_KiB", sum_pss(p)),
		BENCH_COUNT("private_KiB", OVER(kib[4]).p50),
		BENCH_COUNT("huge_KiB", OVER(kib[5]).p50 + OVER(hugetlb_kib).p50),
		BENCH_COUNT("own_map_KiB", OVER(own_kib).p50),
		BENCH_COUNT("peer_map_KiB", OVER(peers_kib).p50),
		BENCH_COUNT("segments", OVER(segments).p50),
		BENCH_COUNT("maps", OVER(maps).p50));
}

static void look(struct program *p, const char *when)
{
	struct sample mine = {.segments = 0};
	bench_barrier();
	read_rollup(&mine);
	read_maps(&mine);
	bench_barrier();
	bench_gather(&p->b, &mine, sizeof mine, p->all);
	if (p->b.rank == 0)
		print(p, when);
	bench_barrier();
}

static void talk(struct program *p)
{
	unsigned size = p->b.size;
	ptl_handle_md_t md = bench_bind(&p->b, p->tx, p->bytes.value, p->w.eq);
	bench_barrier();
	for (unsigned i = 1; i < size; i++)
		bench_check(PtlPut(md, PTL_NO_ACK_REQ,
				    bench_id(&p->b, (p->b.rank + i) % size), PORTAL, 0,
				    BENCH_BITS, p->b.rank * p->bytes.value, p->b.rank),
			"PtlPut");
	bench_await(&p->w, PTL_EVENT_SEND_END, size - 1);
	bench_await(&p->w, PTL_EVENT_PUT_END, size - 1);
	bench_barrier();
	bench_expect(&p->b, &p->w, "all-to-all", PTL_EVENT_PUT_END, size - 1);
	bench_check(PtlMDUnlink(md), "PtlMDUnlink");
}

static void check_data(struct program *p)
{
	for (unsigned i = 0; i < p->b.size; i++)
		for (uint64_t k = 0; k < p->bytes.value && i != p->b.rank; k++)
			if (p->rx[i * p->bytes.value + k] != (char)(i + 1)) {
				bench_wrong(&p->b,
					"from rank %u: wrong byte at %llu; expected what "
					"was sent; the library damages data",
					i, (unsigned long long)k);
				break;
			}
}

static const char about[] = "usage: yod -sz N memperf [options]\n"
			    "Memory of a node, idle and when it has talked to all "
			    "others.\n";

static const char legend[] =
	"KiB, medians over the nodes.  pss_sum: memory of the job.  own_map, peer_map: "
	"segments mapped,\n"
	"writable and not, in address space.  huge: hugetlb pages, which rss and pss "
	"leave out.\n";

static void open_node(struct program *p)
{
	uint64_t rx = p->bytes.value * p->b.size;
	p->tx = bench_allocate(p->bytes.value);
	p->rx = bench_allocate(rx);
	memset(p->tx, (int)(p->b.rank + 1), p->bytes.value);
	p->all = p->b.rank ? NULL : bench_allocate(p->b.size * sizeof *p->all);
	p->w.eq = bench_queue(&p->b, 2 * p->b.size + 64);
	bench_watch_reset(&p->w, BENCH_LOSE_NONE);
	bench_post(&p->b, PORTAL, BENCH_BITS, PTL_MD_OP_PUT, p->rx, rx, p->w.eq);
}

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "memperf", .about = about, .legend = legend},
		.bytes = {4096, 1, 1 << 20}};
	const struct bench_option rows[] = {
		{"bytes", "N", "of the messages in between; default 4096",
			"bytes, 1 to 1M", bench_set_number, &p.bytes},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	bench_options(&p.b, rows, argc, argv);
	open_node(&p);
	bench_begin(&p.b);
	look(&p, "idle");
	talk(&p);
	check_data(&p);
	look(&p, "talked");
	bench_finish(&p.b);
}
