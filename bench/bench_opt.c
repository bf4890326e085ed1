/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of benchmarks, from a table. */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS = 32, FIRST = 256, LINE = 400 }; /* FIRST: getopt's value of row 0 */

struct table {
	struct bench_option row[OPTIONS];
	unsigned n;
};

bool bench_set_flag(void *to, const char *value)
{
	(void)value;
	return *(bool *)to = true;
}

bool bench_set_text(void *to, const char *value)
{
	*(const char **)to = value;
	return *value != '\0';
}

/* Parse a whole number with an optional K, M or G behind it. */
static const char *parse(const char *s, uint64_t least, uint64_t most, uint64_t *n_out)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(s, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	if (end == s || *s < '0' || *s > '9' || errno || n > most >> shift)
		return NULL;
	*n_out = (uint64_t)n << shift;
	return *n_out < least ? NULL : end + (shift != 0);
}

bool bench_set_number(void *to, const char *value)
{
	struct bench_number *n = to;
	const char *end = parse(value, n->least, n->most, &n->value);
	return end && !*end;
}

bool bench_set_list(void *to, const char *value)
{
	struct bench_list *list = to;
	for (list->n = 0; list->n < BENCH_LIST;) {
		value = parse(value, list->least, list->most, &list->at[list->n++]);
		if (!value || (*value && *value != ','))
			return false;
		if (!*value++)
			return true;
	}
	return false;
}

void bench_default_list(struct bench_list *list, const uint64_t *at, unsigned n)
{
	if (list->n)
		return;
	memcpy(list->at, at, n * sizeof *at);
	list->n = n;
}

uint64_t bench_largest(const struct bench_list *list, uint64_t least)
{
	uint64_t largest = least;
	for (unsigned i = 0; i < list->n; i++)
		largest = list->at[i] > largest ? list->at[i] : largest;
	return largest;
}

bool bench_set_words(void *to, const char *value)
{
	const struct bench_words *w = to;
	for (size_t length;; value += length + 1) {
		unsigned i = 0;
		length = strcspn(value, ",");
		while (i < w->n && (strlen(w->name[i]) != length ||
					   strncmp(value, w->name[i], length) != 0))
			i++;
		if (i == w->n)
			return false;
		w->on[i] = true;
		if (!value[length])
			return true;
	}
}

void bench_all_words(struct bench_words *w)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->on[i])
			return;
	for (unsigned i = 0; i < w->n; i++)
		w->on[i] = true;
}

/* Write the values that an option takes; nothing for a flag, and for text. */
static void print_values(const struct bench_option *row, char text[LINE])
{
	text[0] = '\0';
	if (row->set == bench_set_number) {
		const struct bench_number *n = row->to;
		snprintf(text, LINE, "%" PRIu64 " to %" PRIu64, n->least, n->most);
	} else if (row->set == bench_set_list) {
		const struct bench_list *n = row->to;
		snprintf(text, LINE, "%" PRIu64 " to %" PRIu64 ", as in 8,64K", n->least,
			n->most);
	} else if (row->set == bench_set_words) {
		const struct bench_words *w = row->to;
		int at = snprintf(text, LINE, "some of %s", w->name[0]);
		for (unsigned i = 1; i < w->n; i++)
			at += snprintf(text + at, LINE - (size_t)at, ",%s", w->name[i]);
	}
}

/* Print a text whose lines begin at a column and end before the 80th. */
static void print_wrapped(const char *text, int column)
{
	for (int at = column; *text;) {
		int n = (int)strcspn(text, " ");
		if (at > column && at + 1 + n > 79)
			at = printf("\n%*s", column, "") - 1;
		at += printf("%s%.*s", at > column ? " " : "", n, text);
		text += n + (text[n] == ' ');
	}
	printf("\n");
}

static void print_help(const struct bench *b, const struct table *t)
{
	char left[40], values[LINE], text[2 * LINE + 4];
	printf("%s\n", b->about);
	for (const struct bench_option *row = t->row; row < t->row + t->n; row++) {
		snprintf(left, sizeof left, "--%s %s", row->name,
			row->arg ? row->arg : "");
		print_values(row, values);
		snprintf(text, sizeof text, "%s%s%s%s", row->help, values[0] ? " (" : "",
			values, values[0] ? ")" : "");
		print_wrapped(text, printf("  %-17s ", left));
	}
	printf("\nstatus: 0, 1 wrong data or no JSON, 2 usage.\n");
}

/* Return true if the launcher has made this process a rank other than 0. */
static bool is_another_rank(void)
{
	static const char *const names[] = {"PTL_MY_RID", "OMPI_COMM_WORLD_RANK",
		"PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *rank = getenv(names[i]);
		if (rank)
			return strcmp(rank, "0") != 0;
	}
	return false;
}

/* Set the options.  Write a complaint if the command line is wrong. */
static void read_all(const struct bench *b, const struct table *t, int argc, char **argv,
	char wrong[LINE])
{
	static const char stranger[] = "'%.60s': not an option, or its value is missing; "
				       "expected one of those that --help lists";
	struct option longs[OPTIONS + 1] = {{0}};
	char values[LINE];
	int c;
	for (unsigned i = 0; i < t->n; i++)
		longs[i] = (struct option){
			t->row[i].name, t->row[i].arg != NULL, NULL, FIRST + (int)i};
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:", longs, NULL)) != -1) {
		const struct bench_option *row = &t->row[c - FIRST];
		if (c < FIRST) {
			snprintf(wrong, LINE, stranger, argv[optind - 1]);
			return;
		}
		if (!row->set) { /* --help */
			if (!is_another_rank())
				print_help(b, t);
			exit(fflush(stdout) || ferror(stdout));
		}
		if (!row->set(row->to, optarg)) {
			print_values(row, values);
			snprintf(wrong, LINE, "--%.40s: '%.60s'; expected %.200s",
				row->name, optarg, values[0] ? values : "a text");
			return;
		}
	}
	if (optind != argc)
		snprintf(wrong, LINE, stranger, argv[optind]);
}

void bench_options(struct bench *b, const struct bench_option *own, int argc, char **argv)
{
	const struct bench_option common[] = {
		{"quick", NULL,
			"little work: tests that results are right, not the speed",
			bench_set_flag, &b->quick},
		{"json", "FILE",
			"write the results as JSON, too; - is stdout (table to stderr)",
			bench_set_text, &b->json},
		{"no-pin", NULL, "leave the ranks where the scheduler puts them",
			bench_set_flag, &b->no_pin},
		{"help", NULL, "print this", NULL, NULL}};
	struct table t = {.n = 0};
	char wrong[LINE] = "";
	for (; own->name && t.n < OPTIONS - sizeof common / sizeof *common; own++)
		t.row[t.n++] = *own;
	memcpy(&t.row[t.n], common, sizeof common);
	t.n += sizeof common / sizeof *common;
	read_all(b, &t, argc, argv, wrong);
	bench_start(b);
	if (wrong[0])
		bench_refuse(b, "%s", wrong);
}
