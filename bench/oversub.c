/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oversub - many nodes on few CPUs: all-to-all rounds, or the memory of a node
 *
 *	yod -sz 16 oversub [options]
 *
 * In a round each node puts 64 bytes to every other, and waits until the messages of all
 * others have arrived and its own are sent.  A node can be one round ahead of another,
 * not two: the receiver has two sets of slots.  bench/series runs this program with 2, 4,
 * 8 ... nodes.
 *
 * With --memory the figures are from /proc/self.  Pss divides a shared page among the
 * processes that map it, so the sum over all nodes is the memory of the job.
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PORTAL = 4, USUAL_BYTES = 64, MEMORY_BYTES = 4096, MOST_SAMPLES = 200 };

/* Values of /proc/self/smaps_rollup, and the size of the mappings of memory files that
 * are writable. */
enum { PSS, PRIVATE_HUGE, SHARED_HUGE, USAGES };
enum { OWN_MAP = USAGES, FIELDS };

static const char *const usage[USAGES] = {"Pss:", "Private_Hugetlb:", "Shared_Hugetlb:"};

/* Memory of a node, KiB. */
struct memory {
	uint64_t of[FIELDS];
};

struct program {
	struct bench b;
	struct bench_watch w;
	bool memory;
	struct memory *all; /* rank 0 */
	ptl_process_id_t *id;
	ptl_handle_md_t out[2]; /* for even and odd rounds */
	uint64_t *tx, *rx;
	uint64_t words;    /* words of a message */
	uint64_t round;    /* number of the round */
	uint64_t there[2]; /* arrived messages of even and odd rounds, not awaited yet */
	double sample[MOST_SAMPLES];
};

static uint64_t stamp_of(uint64_t round, unsigned sender)
{
	return round << 16 | sender;
}

static uint64_t *slot_of(struct program *p, uint64_t round, unsigned sender)
{
	return p->rx + ((round & 1) * p->b.size + sender) * p->words;
}

static void put(struct program *p, unsigned to)
{
	uint64_t at = (uint64_t)((char *)slot_of(p, p->round, p->b.rank) - (char *)p->rx);
	bench_put(&p->b, p->out[p->round & 1], PTL_NO_ACK_REQ, p->id[to], PORTAL,
		BENCH_BITS, at, p->round);
}

static void run_round(struct program *p)
{
	/* Even and odd rounds have a message each: the messages of the round that all
	 * others have begun show that the message of the round before has arrived
	 * everywhere. */
	uint64_t *tx = p->tx + (p->round & 1) * p->words;
	tx[0] = tx[p->words - 1] = stamp_of(p->round, p->b.rank);
	for (unsigned i = 1; i < p->b.size; i++)
		put(p, (p->b.rank + i) % p->b.size);
	uint64_t others = p->b.size - 1, *there = &p->there[p->round & 1];
	uint64_t sent = (p->round + 1) * others;
	while (*there < others || p->w.seen[PTL_EVENT_SEND_END] < sent) {
		bench_take(&p->w);
		if (p->w.last.type == PTL_EVENT_PUT_END)
			p->there[p->w.last.hdr_data & 1]++;
	}
	*there -= others;
	for (unsigned i = 0; i < p->b.size; i++) {
		const uint64_t *slot = slot_of(p, p->round, i);
		uint64_t want = stamp_of(p->round, i), last = slot[p->words - 1];
		if (i != p->b.rank && (slot[0] != want || last != want))
			bench_wrong(&p->b,
				"round %" PRIu64 ", from rank %u: words %" PRIx64
				" and %" PRIx64 "; expected %" PRIx64
				"; the library damages data",
				p->round, i, slot[0], last, want);
	}
}

static void run_rounds(struct program *p, uint64_t count)
{
	for (uint64_t end = p->round + count; p->round < end; p->round++)
		run_round(p);
}

static void measure(struct program *p)
{
	uint64_t rounds = p->b.quick ? 20 : bench_all_rounds(p->b.size);
	uint64_t batches = rounds < MOST_SAMPLES ? rounds : MOST_SAMPLES;
	uint64_t each = rounds / batches;
	run_rounds(p, rounds / 10 + 1);
	double first = bench_now_ns();
	for (uint64_t i = 0; i < batches; i++) {
		double t = bench_now_ns();
		run_rounds(p, each);
		p->sample[i] = (bench_now_ns() - t) / (double)each;
	}
	double all_ns = bench_now_ns() - first;
	double messages = (double)(p->b.size * (p->b.size - 1));
	struct bench_stat s = bench_stat_of(p->sample, batches);
	rounds = batches * each;
	if (p->b.rank == 0)
		BENCH_ROW(&p->b, BENCH_COUNT("nodes", p->b.size),
			BENCH_COUNT("cpus", p->b.ncpus),
			BENCH_COUNT("bytes", p->words * 8), BENCH_COUNT("rounds", rounds),
			BENCH_REAL("round_p50_us", s.p50 / 1e3, 1),
			BENCH_REAL("round_p99_us", s.p99 / 1e3, 1),
			BENCH_REAL("round_max_us", s.max / 1e3, 1),
			BENCH_REAL("Mmsg_per_s", messages * (double)rounds * 1e3 / all_ns,
				3),
			BENCH_REAL("p50_Mmsg_per_s", messages * 1e3 / s.p50, 3));
}

/* ---- memory, from /proc ---- */

static FILE *open_file(const char *name)
{
	FILE *f = fopen(name, "re");
	if (!f)
		bench_die(1, "%s: %s; expected a kernel with smaps_rollup (4.14)", name,
			strerror(errno));
	return f;
}

static void read_memory(struct memory *m)
{
	char line[400], mode[8];
	unsigned long long from, to;
	FILE *f = open_file("/proc/self/smaps_rollup");
	while (fgets(line, sizeof line, f))
		for (int i = 0; i < USAGES; i++)
			if (!strncmp(line, usage[i], strlen(usage[i])))
				m->of[i] = strtoull(line + strlen(usage[i]), NULL, 10);
	fclose(f);
	for (f = open_file("/proc/self/maps"); fgets(line, sizeof line, f);)
		if (sscanf(line, "%llx-%llx %7s", &from, &to, mode) == 3 &&
			mode[1] == 'w' && strstr(line, "/memfd:"))
			m->of[OWN_MAP] += (to - from) >> 10;
	fclose(f);
}

static double median_of(const struct program *p, unsigned field)
{
	double *v = bench_allocate(p->b.size * sizeof *v);
	for (unsigned i = 0; i < p->b.size; i++)
		v[i] = (double)p->all[i].of[field];
	double median = bench_stat_of(v, p->b.size).p50;
	free(v);
	return median;
}

static void look(struct program *p, const char *when)
{
	struct memory mine = {{0}};
	double median[FIELDS];
	double sum = 0;
	bench_barrier();
	read_memory(&mine);
	bench_barrier();
	bench_gather(&p->b, &mine, sizeof mine, p->all);
	for (unsigned i = 0; p->all && i < FIELDS; i++)
		median[i] = median_of(p, i);
	for (unsigned i = 0; p->all && i < p->b.size; i++)
		sum += (double)p->all[i].of[PSS];
	if (p->all)
		BENCH_ROW(&p->b, BENCH_COUNT("nodes", p->b.size),
			BENCH_TEXT("when", when), BENCH_COUNT("pss_KiB", median[PSS]),
			BENCH_COUNT("pss_sum_KiB", sum),
			BENCH_COUNT(
				"huge_KiB", median[PRIVATE_HUGE] + median[SHARED_HUGE]),
			BENCH_COUNT("own_map_KiB", median[OWN_MAP]));
	bench_barrier();
}

static const char about[] = "usage: yod -sz N oversub [options]\n"
			    "All-to-all rounds of small puts, with more nodes than CPUs "
			    "if need be;\nwith --memory, the memory of a node before "
			    "and after one.\n";

static const char legend[] =
	"Round: by rank 0, means of batches.  Mmsg/s: messages of all nodes, in all the "
	"time, and\n"
	"in the median round.\n"
	"--memory: KiB, medians over the nodes.  pss_sum: memory of the job.  own_map: "
	"segments mapped\n"
	"writable, in address space.  huge: hugetlb pages, which pss leaves out.\n";

static void open_node(struct program *p)
{
	p->words = (p->memory ? MEMORY_BYTES : USUAL_BYTES) / 8;
	uint64_t tx = p->words * 8, rx = tx * p->b.size * 2;
	p->tx = bench_allocate(2 * tx);
	p->rx = bench_allocate(rx);
	p->id = bench_allocate(p->b.size * sizeof *p->id);
	p->all = p->b.rank ? NULL : bench_allocate(p->b.size * sizeof *p->all);
	for (unsigned i = 0; i < p->b.size; i++)
		p->id[i] = bench_id(&p->b, i);
	p->w.eq = bench_queue(&p->b, 8 * p->b.size + 64);
	for (uint64_t i = 0; i < 2; i++)
		p->out[i] = bench_bind(&p->b, p->tx + i * p->words, tx, p->w.eq);
	bench_post(&p->b, PORTAL, PTL_MD_OP_PUT, p->rx, rx, p->w.eq);
	bench_watch_reset(&p->w, BENCH_LOSE_NONE);
}

int main(int argc, char **argv)
{
	static struct program p = {
		.b = {.program = "oversub", .about = about, .legend = legend}};
	const struct bench_option rows[] = {
		{"memory", NULL, "show the memory of a node, idle and after a round",
			bench_set_flag, &p.memory},
		{0}};
	bench_options(&p.b, rows, argc, argv);
	bench_want_ranks(&p.b, 2, UINT32_MAX);
	open_node(&p);
	bench_begin(&p.b);
	if (p.memory) {
		look(&p, "idle");
		run_rounds(&p, 1);
		look(&p, "talked");
	} else {
		measure(&p);
	}
	uint64_t count = p.round * (p.b.size - 1);
	bench_barrier();
	bench_expect(&p.b, &p.w, "all-to-all", PTL_EVENT_PUT_END, count);
	bench_expect(&p.b, &p.w, "all-to-all", PTL_EVENT_SEND_END, count);
	bench_finish(&p.b);
}
