/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnetperf - latency and bandwidth of GASNet beside bare Portals
 *
 *	yod -sz 2 gasnetperf [options]
 *
 * Each test is one of the figures of the paper on GASNet over Portals, at one size.  Its
 * ways take turns: a turn is a batch of operations of each, and then some that are timed
 * one by one.  A median is that of the batches, a p99 that of the single operations, a
 * ratio the median of those of the turns.  bench/gasnetfigures runs it beside MPI.
 */
#include "gasnet_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TURNS = 100, MOST_SINGLE = 128, MOST_WAYS = 3, MOST_CELLS = 12, SIZES = 14 };

/* One way of a test: ns of an operation in each batch, and of single ones. */
struct runner {
	const struct gn_way *way;
	double batch[MOST_TURNS], single[MOST_TURNS * MOST_SINGLE];
	uint64_t singles;
};

/* How a figure shows a way. */
struct curve {
	const struct gn_way *way;
	const char *value, *p99; /* names of its columns */
	enum { US, NS, MIB } unit;
};

/* The first curve is compared with the second one. */
struct figure {
	const char *name, *ratio;
	struct curve curve[MOST_WAYS];
	bool streams;
	uint64_t least, most; /* sizes that it can have */
	uint64_t size[SIZES]; /* those by default, up to a zero behind the first */
};

enum { SMALL, LARGE, MEDIUM, OUTSIDE, FIGURES };

static const char *const figure_name[FIGURES] = {"2", "3", "4", "5"};

static const struct figure figures[FIGURES] = {
	[SMALL] = {"2", "put_per_bare",
		{{&gn_put, "put_us", "put_p99_us", US},
			{&gn_bare_put, "bare_us", "bare_p99_us", US},
			{&gn_short, "short_us", "short_p99_us", US}},
		false, 1, GN_LARGEST, {1, 2, 4, 8, 16, 17, 32, 64, 128, 256, 512, 1024}},
	[LARGE] = {"3", "per_bare",
		{{&gn_puts, "put_MB_per_s", "put_p99_MB", MIB},
			{&gn_bare_puts, "bare_MB_per_s", "bare_p99_MB", MIB},
			{&gn_memcpy, "memcpy_MB_per_s", "memcpy_p99_MB", MIB}},
		true, 1, GN_LARGEST,
		{1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10,
			128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20}},
	[MEDIUM] = {"4", "medium_per_two",
		{{&gn_medium, "medium_us", "medium_p99_us", US},
			{&gn_bare_pings, "two_bare_us", "two_p99_us", US}},
		false, 0, gasnet_AMMaxMedium(),
		{0, 1, 2, 4, 8, 16, 17, 32, 64, 128, 256, 512, 1024,
			gasnet_AMMaxMedium()}},
	[OUTSIDE] = {"5", "put_per_bind",
		{{&gn_put_outside, "put_MB_per_s", "put_p99_MB", MIB},
			{&gn_bind, "bind_ns", "bind_p99_ns", NS}},
		false, 1, GN_LARGEST,
		{1 << 10, 2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10,
			128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20}},
};

struct program {
	struct bench b;
	struct gn_node n;
	bool figure[FIGURES], named; /* named: by --figure */
	struct bench_list sizes;
	struct bench_number window, turns;
	const char *lines; /* name of a file, or NULL */
	FILE *out;
	struct runner runner[MOST_WAYS];
};

/* ---- turns ---- */

static void repeat(struct program *p, const struct gn_way *way, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		way->op(&p->n);
	if (way->sync)
		way->sync(&p->n);
}

static double time_batch(struct program *p, const struct gn_way *way, uint64_t count)
{
	repeat(p, way, count / 16 + 1); /* warm */
	double t = bench_now_ns();
	repeat(p, way, count);
	return (bench_now_ns() - t) / (double)count;
}

static void one_turn(struct program *p, struct runner *r, uint64_t turn, uint64_t count)
{
	const struct gn_way *way = r->way;
	uint64_t some = count / 4 + 1;
	uint64_t singles = way->sync ? 0 : some < MOST_SINGLE ? some : MOST_SINGLE;
	gn_fill(&p->n);
	if (p->n.first) {
		r->batch[turn] = time_batch(p, way, count);
		for (uint64_t i = 0; i < singles; i++) {
			double t = bench_now_ns();
			way->op(&p->n);
			r->single[r->singles++] = bench_now_ns() - t;
		}
	} else if (way->serve) {
		for (uint64_t i = 0; i < count / 16 + 1 + count + singles; i++)
			way->serve(&p->n);
	}
	gn_meet(&p->n, way);
}

static unsigned ways_of(const struct figure *f)
{
	unsigned n = 0;
	while (n < MOST_WAYS && f->curve[n].way)
		n++;
	return n;
}

/* Return the operations of a batch: 1 to 5 ms of them. */
static uint64_t count_of(const struct program *p, const struct figure *f, uint64_t bytes)
{
	uint64_t count = ((uint64_t)16 << 20) / (bytes ? bytes : 1);
	if (p->b.quick)
		return 16;
	if (!f->streams)
		count /= 4;
	return count > 1000 ? 1000 : count < 16 ? 16 : count;
}

/* The order rotates, so that a slow drift does not show in the ratios. */
static void take_turns(struct program *p, const struct figure *f, uint64_t bytes)
{
	unsigned ways = ways_of(f);
	uint64_t count = count_of(p, f, bytes);
	for (unsigned k = 0; k < ways; k++) {
		p->runner[k].way = f->curve[k].way;
		p->runner[k].singles = 0;
		one_turn(p, &p->runner[k], 0, count / 4 + 1); /* warm */
		p->runner[k].singles = 0;
	}
	for (uint64_t i = 0; i < p->turns.value; i++)
		for (unsigned k = 0; k < ways; k++)
			one_turn(p, &p->runner[(k + i) % ways], i, count);
}

/* ---- results ---- */

static double in_unit(const struct curve *c, uint64_t bytes, double ns)
{
	return c->unit == US   ? ns / 1e3
	       : c->unit == NS ? ns
			       : (double)bytes / ns * 1e9 / (1 << 20);
}

/* Print the row and the lines of a size.  Where no single operations are timed, p99 is
 * that of the batches.  A ratio is that of the first way's time to another one's. */
static void show(struct program *p, const struct figure *f, uint64_t bytes)
{
	struct bench_cell cells[MOST_CELLS] = {
		BENCH_TEXT("figure", f->name), BENCH_COUNT("bytes", bytes)};
	unsigned ways = ways_of(f), n = 2;
	uint64_t turns = p->turns.value;
	double ratio[MOST_WAYS];
	for (unsigned k = 0; k < ways; k++)
		ratio[k] = bench_ratio(p->runner[0].batch, p->runner[k].batch, turns);
	for (unsigned k = 0; k < ways; k++) {
		const struct curve *c = &f->curve[k];
		struct runner *r = &p->runner[k];
		struct bench_stat s = bench_stat_of(r->batch, turns);
		double p99 =
			r->singles ? bench_stat_of(r->single, r->singles).p99 : s.p99;
		int digits = c->unit == US ? 3 : 1;
		cells[n++] = (struct bench_cell)BENCH_REAL(
			c->value, in_unit(c, bytes, s.p50), digits);
		cells[n++] = (struct bench_cell)BENCH_REAL(
			c->p99, in_unit(c, bytes, p99), digits);
		if (p->out)
			fprintf(p->out, "%s\t%s\t%llu\t%.1f\t%.1f\t%.4f\n", f->name,
				c->way->name, (unsigned long long)bytes, s.p50, p99,
				ratio[k]);
	}
	cells[n++] = (struct bench_cell)BENCH_REAL(
		f->ratio, f->streams ? 1 / ratio[1] : ratio[1], 3);
	bench_row(&p->b, cells);
}

static void test(struct program *p, unsigned figure, uint64_t bytes)
{
	const struct figure *f = &figures[figure];
	gn_begin(&p->n, f->curve[0].way->name, bytes);
	take_turns(p, f, bytes);
	gn_end(&p->n);
	if (p->b.rank == 0)
		show(p, f, bytes);
}

/* Store the sizes of a figure: those of --sizes that it can have, or its own. */
static unsigned sizes_of(const struct program *p, const struct figure *f, uint64_t *size)
{
	unsigned n = 0;
	for (unsigned i = 0; i < p->sizes.n; i++)
		if (p->sizes.at[i] >= f->least && p->sizes.at[i] <= f->most)
			size[n++] = p->sizes.at[i];
	for (unsigned i = 0; !p->sizes.n && i < SIZES && (!i || f->size[i]); i++)
		size[n++] = f->size[i];
	return n;
}

/* ---- options ---- */

static const char about[] =
	"usage: yod -sz 2 gasnetperf [options]\n"
	"Latency and bandwidth of GASNet between ranks 0 and 1, beside bare Portals.\n"
	"GASNET_PORTAL_SEGMENT and GASNET_PORTAL_LOCAL choose memory and local side;\n"
	"bench/gasnetfigures runs all of them in turns with MPI, and draws the "
	"figures.\n";

static const char legend[] =
	"figure 2  a blocking put, a bare PtlPut to its ACK, an AM Short round trip\n"
	"figure 3  put_nb_bulk from the segment, as many bare PtlPuts, memcpy\n"
	"figure 4  AM Medium there and back with the payload, two bare puts\n"
	"figure 5  a blocking put_bulk from outside of the segment, bind and unlink\n"
	"Medians of the turns, and p99 of single operations (figure 3: of turns).  MB "
	"is\n"
	"2^20 bytes.  Ratios: of times, in figure 3 of bandwidths.\n";

static uint64_t largest(const struct program *p)
{
	uint64_t size[BENCH_LIST], most = GASNET_PAGESIZE;
	for (unsigned k = 0; k < FIGURES; k++) {
		unsigned n = p->figure[k] ? sizes_of(p, &figures[k], size) : 0;
		for (unsigned i = 0; i < n; i++)
			most = size[i] > most ? size[i] : most;
	}
	return most;
}

static void options(struct program *p, int argc, char **argv)
{
	struct bench_words words = {figure_name, FIGURES, p->figure};
	p->sizes.most = GN_LARGEST;
	p->window = (struct bench_number){64, 1, 1024};
	p->turns = (struct bench_number){20, 1, MOST_TURNS};
	const struct bench_option rows[] = {
		{"figure", "LIST", "of 2, 3, 4, 5; default all",
			"2, 3, 4, 5, or several, as in 2,4", bench_set_words, &words},
		{"sizes", "LIST",
			"of bytes; each figure takes those that it can have; default its "
			"own",
			"bytes, 0 to 16M, as in 8,64,1K", bench_set_list, &p->sizes},
		{"window", "N", "bare puts without their ACK; default 64",
			"puts, 1 to 1024", bench_set_number, &p->window},
		{"turns", "N", "batches of each way in a test; default 20",
			"turns, 1 to 100", bench_set_number, &p->turns},
		{"lines", "FILE",
			"also write figure, way, bytes, ns of p50, of p99, and ratio",
			"a file", bench_set_text, &p->lines},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	bench_options(&p->b, rows, argc, argv);
	for (unsigned k = 0; k < FIGURES; k++)
		p->named |= p->figure[k];
	bench_all_words(&words);
	if (p->b.quick)
		p->turns.value = 2;
}

/* All ranks leave if a figure that is named has none of the sizes; rank 0 says why. */
static void check_sizes(struct program *p)
{
	uint64_t size[BENCH_LIST];
	for (unsigned k = 0; k < FIGURES; k++) {
		const struct figure *f = &figures[k];
		if (!p->named || !p->figure[k] || sizes_of(p, f, size))
			continue;
		if (p->b.rank == 0)
			fprintf(stderr,
				"gasnetperf: --sizes: %llu with --figure %s; expected "
				"%llu to %llu; give a size there, or other figures\n",
				(unsigned long long)p->sizes.at[0], f->name,
				(unsigned long long)f->least,
				(unsigned long long)f->most);
		bench_leave(2);
	}
}

static void open_lines(struct program *p)
{
	if (!p->lines || p->b.rank)
		return;
	p->out = fopen(p->lines, "we");
	if (!p->out)
		bench_die(2, "--lines: '%s' cannot be written: %s; expected a file",
			p->lines, strerror(errno));
}

static bool close_lines(struct program *p)
{
	if (p->out && (ferror(p->out) | fclose(p->out))) {
		fprintf(stderr, "gasnetperf: --lines: '%s' cannot be written: %s\n",
			p->lines, strerror(errno));
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	uint64_t size[BENCH_LIST];
	static struct program p = {
		.b = {.program = "gasnetperf", .about = about, .legend = legend}};
	options(&p, argc, argv);
	bench_want_ranks(&p.b, 2, 2);
	check_sizes(&p);
	open_lines(&p);
	p.n.b = &p.b;
	p.n.largest = largest(&p);
	p.n.window = (unsigned)p.window.value;
	gn_open(&p.n); /* before bench_begin pins this thread: the conduit counts CPUs */
	bench_begin(&p.b);
	for (unsigned k = 0; k < FIGURES; k++)
		for (unsigned i = 0, n = sizes_of(&p, &figures[k], size);
			p.figure[k] && i < n; i++)
			test(&p, k, size[i]);
	int status = bench_end(&p.b) || !close_lines(&p);
	bench_barrier();
	gasnet_exit(status); /* closes the network, too */
}
