/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally - medians and paired ratios of the samples that compare has collected
 *
 *	tally SAMPLES DIRECTORY NOTE
 *
 * SAMPLES has lines: round, slot, who, test, x, value.  In a slot "ours" and others ran
 * one directly after the other, so only values of one slot are divided by one another.
 * The ratio is the speed of "ours" relative to the other, for times and rates alike:
 * above 1 "ours" is faster.  The figure beside ours_heap ("ours" from the shared heap)
 * is its speed relative to raw_memcpy, in half round trips relative to "ours".
 *
 * Prints a table; writes compare.json and, for gnuplot, TEST.WHO.dat (x, median, p10,
 * p90) into DIRECTORY.
 */
#include <jansson.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 24, GROUPS = 4096 };

struct sample {
	int round, slot;
	char who[NAME], test[NAME];
	double x, value;
};

/* Samples of one kind: of the same test, x and who. */
struct group {
	const struct sample *first;
	unsigned n, pairs;
	double p10, median, p90;
	double ratio, ratio_p10, ratio_p90;
};

static struct sample *sample;
static size_t samples, room;
static struct group group[GROUPS];
static unsigned groups;
static double *values;

static void die(const char *what, const char *name)
{
	fprintf(stderr, "tally: %s: %s: %s\n", name, what, strerror(errno));
	exit(1);
}

/* ---- input ---- */

static void add(const struct sample *s)
{
	if (samples == room) {
		room = room ? 2 * room : 1024;
		sample = realloc(sample, room * sizeof *sample);
		if (!sample)
			die("no memory", s->test);
	}
	sample[samples++] = *s;
}

static void read_samples(const char *name)
{
	FILE *f = fopen(name, "re");
	struct sample s;
	if (!f)
		die("cannot be read", name);
	while (fscanf(f, "%d %d %23s %23s %lf %lf", &s.round, &s.slot, s.who, s.test,
		       &s.x, &s.value) == 6)
		if (s.value > 0)
			add(&s);
	fclose(f);
	values = malloc((samples + 1) * sizeof *values);
	if (!values)
		die("no memory", name);
}

/* ---- numbers ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void spread(unsigned n, double *p10, double *median, double *p90)
{
	qsort(values, n, sizeof *values, compare);
	*p10 = values[n / 10];
	*median = n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
	*p90 = values[(n * 9) / 10 < n ? (n * 9) / 10 : n - 1];
}

static bool same_kind(const struct sample *a, const struct sample *b)
{
	return a->x == b->x && !strcmp(a->who, b->who) && !strcmp(a->test, b->test);
}

static bool is_time(const struct sample *s)
{
	return !strcmp(s->test, "latency") || !strcmp(s->test, "match");
}

static bool is_heap(const struct sample *s)
{
	return !strcmp(s->who, "ours_heap");
}

/* Return the sample of another program in the same slot. */
static const struct sample *beside(const struct sample *s, const char *who)
{
	for (size_t i = 0; i < samples; i++)
		if (sample[i].round == s->round && sample[i].slot == s->slot &&
			sample[i].x == s->x && !strcmp(sample[i].test, s->test) &&
			!strcmp(sample[i].who, who))
			return &sample[i];
	return NULL;
}

static void sum_values(struct group *g)
{
	g->n = 0;
	for (size_t i = 0; i < samples; i++)
		if (same_kind(&sample[i], g->first))
			values[g->n++] = sample[i].value;
	spread(g->n, &g->p10, &g->median, &g->p90);
}

static double ratio_of(const struct sample *ours, const struct sample *other)
{
	return is_time(ours) ? other->value / ours->value : ours->value / other->value;
}

static void sum_ratios(struct group *g)
{
	bool heap = is_heap(g->first);
	const char *yardstick = heap && !is_time(g->first) ? "raw_memcpy" : "ours";
	for (size_t i = 0; i < samples; i++) {
		const struct sample *s = &sample[i], *other;
		if (same_kind(s, g->first) && (other = beside(s, yardstick)))
			values[g->pairs++] =
				heap ? ratio_of(s, other) : ratio_of(other, s);
	}
	if (g->pairs)
		spread(g->pairs, &g->ratio_p10, &g->ratio, &g->ratio_p90);
}

static bool is_known(const struct sample *s)
{
	for (unsigned i = 0; i < groups; i++)
		if (same_kind(group[i].first, s))
			return true;
	return false;
}

static int order(const void *a, const void *b)
{
	const struct group *p = a, *q = b;
	int by_test = strcmp(p->first->test, q->first->test);
	if (by_test)
		return by_test;
	if (p->first->x != q->first->x)
		return p->first->x > q->first->x ? 1 : -1;
	bool mine = !strcmp(p->first->who, "ours"),
	     yours = !strcmp(q->first->who, "ours");
	return mine != yours ? yours - mine : strcmp(p->first->who, q->first->who);
}

static void make_groups(void)
{
	for (size_t i = 0; i < samples && groups < GROUPS; i++)
		if (!is_known(&sample[i]))
			group[groups++].first = &sample[i];
	for (unsigned i = 0; i < groups; i++) {
		sum_values(&group[i]);
		if (strcmp(group[i].first->who, "ours"))
			sum_ratios(&group[i]);
	}
	qsort(group, groups, sizeof *group, order);
}

/* ---- output ---- */

static const char *unit_of(const char *test)
{
	static const char *const unit[][3] = {{"latency", "ns", "bytes"},
		{"match", "ns", "list"}, {"stream", "MB/s", "bytes"},
		{"rate", "M/s", "bytes"}, {"alltoall", "M/s", "nodes"}};
	for (size_t i = 0; i < sizeof unit / sizeof unit[0]; i++)
		if (!strcmp(test, unit[i][0]))
			return unit[i][1];
	return "";
}

static void print_group(const struct group *g)
{
	const struct sample *s = g->first;
	printf("%-9s %9.0f %-12s %4u %12.4g %-4s %10.4g %10.4g", s->test, s->x, s->who,
		g->n, g->median, unit_of(s->test), g->p10, g->p90);
	if (g->pairs)
		printf(" %8.2f %8.2f %8.2f", g->ratio, g->ratio_p10, g->ratio_p90);
	printf("\n");
}

static void print_table(void)
{
	const char *test = "";
	printf("ratio: how much faster ours is, by pairs that ran one after the other\n"
	       "(beside ours_heap: how much faster that is than raw_memcpy; "
	       "latency: than ours;\n"
	       "beside ours_random, any of the entries hit: how much faster the last one "
	       "is)\n");
	for (unsigned i = 0; i < groups; i++) {
		if (strcmp(test, group[i].first->test))
			printf("\n%-9s %9s %-12s %4s %12s %-4s %10s %10s %8s %8s %8s\n",
				"test", "x", "who", "n", "median", "", "p10", "p90",
				"ratio", "p10", "p90");
		test = group[i].first->test;
		print_group(&group[i]);
	}
}

static void write_dat(const char *directory, const struct group *g)
{
	char name[4096];
	const struct sample *s = g->first;
	snprintf(name, sizeof name, "%s/%s.%s.dat", directory, s->test, s->who);
	FILE *f = fopen(name, "ae");
	if (!f)
		die("cannot be written", name);
	fprintf(f, "%.0f %.6g %.6g %.6g\n", s->x, g->median, g->p10, g->p90);
	fclose(f);
}

static json_t *group_json(const struct group *g)
{
	const struct sample *s = g->first;
	json_t *row = json_pack("{s:s s:f s:s s:i s:s s:f s:f s:f}", "test", s->test, "x",
		s->x, "who", s->who, "samples", (int)g->n, "unit", unit_of(s->test),
		"median", g->median, "p10", g->p10, "p90", g->p90);
	if (g->pairs) {
		json_object_set_new(row, "pairs", json_integer(g->pairs));
		json_object_set_new(row, "ratio_median", json_real(g->ratio));
		json_object_set_new(row, "ratio_p10", json_real(g->ratio_p10));
		json_object_set_new(row, "ratio_p90", json_real(g->ratio_p90));
	}
	return row;
}

static void write_json(const char *directory, const char *note)
{
	char name[4096];
	json_t *rows = json_array();
	for (unsigned i = 0; i < groups; i++)
		json_array_append_new(rows, group_json(&group[i]));
	json_t *doc = json_pack(
		"{s:s s:s s:o}", "program", "compare", "setting", note, "results", rows);
	snprintf(name, sizeof name, "%s/compare.json", directory);
	if (json_dump_file(doc, name, JSON_INDENT(1) | JSON_REAL_PRECISION(6)))
		die("cannot be written", name);
	json_decref(doc);
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: tally SAMPLES DIRECTORY NOTE\n");
		return 2;
	}
	read_samples(argv[1]);
	make_groups();
	if (!groups) {
		fprintf(stderr, "tally: %s: no samples; expected some\n", argv[1]);
		return 1;
	}
	print_table();
	for (unsigned i = 0; i < groups; i++)
		write_dat(argv[2], &group[i]);
	write_json(argv[2], argv[3]);
	free(sample);
	free(values);
	return 0;
}
