/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tally - medians and paired ratios of the samples that compare has collected
 *
 *	tally SAMPLES DIRECTORY NOTE [LEFT-OUT...]
 *
 * In a slot "ours" and others ran one directly after the other.  The ratio is the speed
 * of "ours" relative to the other, for times and rates alike: above 1 "ours" is faster.
 * The figure beside ours_heap ("ours" from the shared heap) is its speed relative to
 * raw_memcpy, in half round trips relative to "ours".  old_heap and old_random (of an
 * older build) have ours_heap and ours_random as their partners.
 *
 * Prints a table, each LEFT-OUT as a line of it, and the ratios of accept.h; writes
 * compare.json and, for gnuplot, TEST.WHO.dat (x, median, p10, p90) into DIRECTORY.
 */
#include "accept.h"
#include "samples.h"

#include <jansson.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 4096 };

/* Samples of one kind: of the same test, x and who. */
struct group {
	const struct sample *first;
	struct spread value, ratio; /* ratio.n is 0 if there is none */
};

static struct samples all;
static struct group group[GROUPS];
static unsigned groups;
static double *values;

/* ---- numbers ---- */

static bool same_kind(const struct sample *a, const struct sample *b)
{
	return a->x == b->x && !strcmp(a->who, b->who) && !strcmp(a->test, b->test);
}

static bool is_heap(const struct sample *s)
{
	return !strcmp(s->who, "ours_heap");
}

static void sum_values(struct group *g)
{
	unsigned n = 0;
	for (size_t i = 0; i < all.n; i++)
		if (same_kind(&all.at[i], g->first))
			values[n++] = all.at[i].value;
	g->value = samples_spread(values, n);
}

/* Name the program that the ratio of a sample is about. */
static void partner_of(const struct sample *s, char partner[SAMPLES_NAME])
{
	bool times = samples_test(s->test)->is_time;
	snprintf(partner, SAMPLES_NAME, "%s",
		is_heap(s) && !times ? "raw_memcpy" : "ours");
	if (!strncmp(s->who, "old_", 4))
		snprintf(partner, SAMPLES_NAME, "ours_%s", s->who + 4);
}

static void sum_ratios(struct group *g)
{
	unsigned n = 0;
	char partner[SAMPLES_NAME];
	partner_of(g->first, partner);
	for (size_t i = 0; i < all.n; i++) {
		const struct sample *s = &all.at[i], *other;
		if (!same_kind(s, g->first) ||
			!(other = samples_beside(&all, s, partner)))
			continue;
		values[n++] = is_heap(s)
				      ? samples_speedup(s->test, s->value, other->value)
				      : samples_speedup(s->test, other->value, s->value);
	}
	if (n)
		g->ratio = samples_spread(values, n);
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
	for (size_t i = 0; i < all.n && groups < GROUPS; i++)
		if (!is_known(&all.at[i]))
			group[groups++].first = &all.at[i];
	for (unsigned i = 0; i < groups; i++) {
		sum_values(&group[i]);
		if (strcmp(group[i].first->who, "ours"))
			sum_ratios(&group[i]);
	}
	qsort(group, groups, sizeof *group, order);
}

/* ---- output ---- */

static void print_group(const struct group *g)
{
	const struct sample *s = g->first;
	printf("%-12s %9.0f %-12s %4u %12.4g %-4s %10.4g %10.4g", s->test, s->x, s->who,
		g->value.n, g->value.median, samples_test(s->test)->unit, g->value.p10,
		g->value.p90);
	if (g->ratio.n)
		printf(" %8.2f %8.2f %8.2f", g->ratio.median, g->ratio.p10, g->ratio.p90);
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
			printf("\n%-12s %9s %-12s %4s %12s %-4s %10s %10s %8s %8s %8s\n",
				"test", samples_test(group[i].first->test)->x, "who", "n",
				"median", "", "p10", "p90", "ratio", "p10", "p90");
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
		samples_die("cannot be written", name);
	fprintf(f, "%.0f %.6g %.6g %.6g\n", s->x, g->value.median, g->value.p10,
		g->value.p90);
	fclose(f);
}

static json_t *group_json(const struct group *g)
{
	const struct sample *s = g->first;
	json_t *row = json_pack("{s:s s:f s:s s:i s:s s:f s:f s:f}", "test", s->test, "x",
		s->x, "who", s->who, "samples", (int)g->value.n, "unit",
		samples_test(s->test)->unit, "median", g->value.median, "p10",
		g->value.p10, "p90", g->value.p90);
	if (g->ratio.n) {
		json_object_set_new(row, "pairs", json_integer(g->ratio.n));
		json_object_set_new(row, "ratio_median", json_real(g->ratio.median));
		json_object_set_new(row, "ratio_p10", json_real(g->ratio.p10));
		json_object_set_new(row, "ratio_p90", json_real(g->ratio.p90));
	}
	return row;
}

static json_t *print_left_out(char **left_out)
{
	json_t *lines = json_array();
	for (; *left_out; left_out++) {
		printf("%sleft out: %s\n", json_array_size(lines) ? "" : "\n", *left_out);
		json_array_append_new(lines, json_string(*left_out));
	}
	return lines;
}

static void write_json(
	const char *directory, const char *note, json_t *left_out, json_t *accepted)
{
	char name[4096];
	json_t *rows = json_array();
	for (unsigned i = 0; i < groups; i++)
		json_array_append_new(rows, group_json(&group[i]));
	json_t *doc = json_pack("{s:s s:s s:o s:o s:o}", "program", "compare", "setting",
		note, "results", rows, "left_out", left_out, "acceptance", accepted);
	snprintf(name, sizeof name, "%s/compare.json", directory);
	if (json_dump_file(doc, name, JSON_INDENT(1) | JSON_REAL_PRECISION(6)))
		samples_die("cannot be written", name);
	json_decref(doc);
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		fprintf(stderr, "usage: tally SAMPLES DIRECTORY NOTE [LEFT-OUT...]\n");
		return 2;
	}
	all = samples_read(argv[1]);
	values = calloc(all.n + 1, sizeof *values);
	if (!values)
		samples_die("no memory", argv[1]);
	make_groups();
	if (!groups) {
		fprintf(stderr, "tally: %s: no samples; expected some\n", argv[1]);
		return 1;
	}
	print_table();
	for (unsigned i = 0; i < groups; i++)
		write_dat(argv[2], &group[i]);
	json_t *left_out = print_left_out(argv + 4);
	write_json(argv[2], argv[3], left_out, accept_print(&all));
	free(all.at);
	free(values);
	return 0;
}
