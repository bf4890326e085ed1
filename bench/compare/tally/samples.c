/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures that compare has collected, and their medians. */
#include "samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char busy[] = "busy_";

static const struct samples_test tests[] = {
	{"latency", "ns", "bytes", true},
	{"match", "ns", "list", true},
	{"stream", "MB/s", "bytes", false},
	{"rate", "M/s", "bytes", false},
	{"alltoall", "M/s", "nodes", false},
	{"eqget", "ns", "queues", true},
	{"eqpoll", "ns", "queues", true},
	{"ack", "ns", "bytes", true},
	{"get", "ns", "bytes", true},
	{"am", "ns", "bytes", true},
	{"queues", "ns", "queues", true},
	{"threads", "M/s", "threads", false},
};

void samples_die(const char *what, const char *name)
{
	fprintf(stderr, "tally: %s: %s: %s\n", name, what, strerror(errno));
	exit(1);
}

static void add(struct samples *all, const struct sample *s)
{
	if (all->n == all->room) {
		all->room = all->room ? 2 * all->room : 1024;
		all->at = realloc(all->at, all->room * sizeof *all->at);
		if (!all->at)
			samples_die("no memory", s->test);
	}
	all->at[all->n++] = *s;
}

static bool next(FILE *f, struct sample *s)
{
	return fscanf(f, "%d %d %23s %23s %lf %lf", &s->round, &s->slot, s->who, s->test,
		       &s->x, &s->value) == 6;
}

struct samples samples_read(const char *name)
{
	struct samples all = {0};
	struct sample s;
	FILE *f = fopen(name, "re");
	if (!f)
		samples_die("cannot be read", name);
	while (next(f, &s))
		if (s.value > 0)
			add(&all, &s);
	fclose(f);
	return all;
}

const struct sample *samples_beside(
	const struct samples *all, const struct sample *s, const char *who)
{
	for (const struct sample *o = all->at; o < all->at + all->n; o++)
		if (o->round == s->round && o->slot == s->slot && o->x == s->x &&
			!strcmp(o->test, s->test) && !strcmp(o->who, who))
			return o;
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct spread samples_spread(double *value, unsigned n)
{
	qsort(value, n, sizeof *value, compare);
	return (struct spread){.n = n,
		.min = value[0],
		.p10 = value[n / 10],
		.median = n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2,
		.p90 = value[n * 9 / 10],
		.max = value[n - 1]};
}

const struct samples_test *samples_test(const char *name)
{
	static const struct samples_test unknown = {"", "", "x", true};
	if (!strncmp(name, busy, sizeof busy - 1))
		name += sizeof busy - 1;
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		if (!strcmp(name, tests[i].name))
			return &tests[i];
	return &unknown;
}

double samples_speedup(const char *test, double ours, double other)
{
	return samples_test(test)->is_time ? other / ours : ours / other;
}
