/* SPDX-License-Identifier: BSD-3-Clause */
/* The named ratios by which a build of libportals is accepted. */
#include "accept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct line {
	const char *name, *test;
	double x;
	const char *who;
} lines[] = {
	{"8 B half round trip / Open MPI", "latency", 8, "openmpi"},
	{"8 B half round trip / UCX", "latency", 8, "ucx"},
	{"8 B half round trip / bare design", "latency", 8, "raw_sketch"},
	{"8 B rate / bare design", "rate", 8, "raw_sketch"},
	{"8 B rate / Open MPI", "rate", 8, "openmpi"},
	{"16 nodes rate / bare design", "alltoall", 16, "raw_sketch"},
	{"active message, 8 B / Open MPI", "am", 8, "openmpi"},
	{"private 1 MiB one way / raw read", "stream", 1 << 20, "raw_cma"},
	{"private 1 MiB half round trip / raw", "latency", 1 << 20, "raw_cma"},
};

/* The values of a line, one of each round that has both. */
struct pairs {
	unsigned n;
	double *ours, *other, *ratio;
};

static bool is_of(const struct line *l, const struct sample *s)
{
	return s->x == l->x && !strcmp(s->test, l->test) && !strcmp(s->who, l->who);
}

/* Add the ratio of a round's medians. */
static void add_round(
	const struct samples *all, const struct line *l, int round, struct pairs *p)
{
	unsigned n = 0;
	double *ours = p->ours + p->n, *other = p->other + p->n;
	for (const struct sample *s = all->at; s < all->at + all->n; s++) {
		const struct sample *mine = s->round == round && is_of(l, s)
						    ? samples_beside(all, s, "ours")
						    : NULL;
		if (mine)
			ours[n] = mine->value, other[n++] = s->value;
	}
	if (!n)
		return;
	*ours = samples_spread(ours, n).median;
	*other = samples_spread(other, n).median;
	p->ratio[p->n++] = samples_speedup(l->test, *ours, *other);
}

static struct pairs pairs_of(const struct samples *all, const struct line *l)
{
	double *room = calloc(3 * (all->n + 1), sizeof *room);
	struct pairs p = {0, room, room + all->n + 1, room + 2 * (all->n + 1)};
	int last = 0;
	if (!room)
		samples_die("no memory", l->name);
	for (const struct sample *s = all->at; s < all->at + all->n; s++)
		last = s->round > last ? s->round : last;
	for (int round = 0; round <= last; round++)
		add_round(all, l, round, &p);
	return p;
}

static json_t *print_line(const struct line *l, struct pairs *p)
{
	const char *unit = samples_test(l->test)->unit;
	struct spread ratio = samples_spread(p->ratio, p->n);
	double ours = samples_spread(p->ours, p->n).median;
	double other = samples_spread(p->other, p->n).median;
	printf("%-35s %6u %8.2f %8.2f %8.2f %10.4g %10.4g %s\n", l->name, p->n,
		ratio.median, ratio.min, ratio.max, ours, other, unit);
	return json_pack("{s:s s:s s:f s:s s:i s:f s:f s:f s:f s:f s:s}", "name", l->name,
		"test", l->test, "x", l->x, "who", l->who, "rounds", (int)p->n, "ratio",
		ratio.median, "min", ratio.min, "max", ratio.max, "ours", ours, "other",
		other, "unit", unit);
}

static json_t *print_missing(const struct line *l)
{
	printf("%-35s not measured: %s, %s %.0f\n", l->name, l->who, l->test, l->x);
	return json_pack("{s:s s:s s:f s:s s:i}", "name", l->name, "test", l->test, "x",
		l->x, "who", l->who, "rounds", 0);
}

json_t *accept_print(const struct samples *all)
{
	json_t *rows = json_array();
	printf("\nacceptance: how much faster ours is; the median of the rounds' ratios, "
	       "their extremes,\nand the medians of both\n");
	printf("%-35s %6s %8s %8s %8s %10s %10s\n", "ratio of speed", "rounds", "ratio",
		"min", "max", "ours", "other");
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
		struct pairs p = pairs_of(all, &lines[i]);
		json_array_append_new(
			rows, p.n ? print_line(&lines[i], &p) : print_missing(&lines[i]));
		free(p.ours);
	}
	return rows;
}
