/* SPDX-License-Identifier: BSD-3-Clause */
/* Patterns with libportals that no program of bench/ has: start, arguments, results. */
#include "peer_portals.h"

#include <string.h>

static struct node node = {.b = {.program = "peer_portals"}};
static const char *who;

static const struct pattern {
	const char *name;
	double (*run)(struct node *n, uint64_t x, bool quick);
} patterns[] = {{"am", am_run}, {"queues", queues_run}, {"threads", threads_run},
	{"posted", posted_run}, {"step", step_run}};

void node_put(const struct node *n, ptl_handle_md_t md, uint64_t at, uint64_t bytes,
	ptl_pt_index_t portal, uint64_t remote, ptl_hdr_data_t hdr)
{
	int rc = PtlPutRegion(md, at, bytes, PTL_NO_ACK_REQ, n->other, portal, 0,
		BENCH_BITS, remote, hdr);
	if (__builtin_expect(rc != PTL_OK, 0))
		bench_check(rc, "PtlPutRegion");
}

static void run(const char *test, uint64_t x, bool quick)
{
	for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
		if (strcmp(test, patterns[i].name) != 0)
			continue;
		double value = patterns[i].run(&node, x, quick);
		if (node.b.rank == 0)
			peer_print(who, test, x, value);
		bench_barrier();
	}
}

int main(int argc, char **argv)
{
	peer_program = "peer_portals";
	if (argc < 2)
		peer_die("expected a name, quick or full, test=list");
	who = argv[1];
	bench_start(&node.b);
	if (node.b.size != 2)
		peer_die("%u ranks; expected 2; use yod -sz 2", node.b.size);
	node.other = bench_id(&node.b, node.b.rank ^ 1);
	peer_pin(node.b.rank);
	peer_each(argc - 1, argv + 1, run);
	bench_leave(node.b.errors != 0);
}
