/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of benchmarks, from a table. */
#include "bench.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS = 32, FIRST = 256 }; /* FIRST: getopt's value of the first row */

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
static const char *parse(const char *s, uint64_t most, uint64_t *n_out)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(s, &end, 10);
	unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	if (end == s || *s < '0' || *s > '9' || errno || n > most >> shift)
		return NULL;
	*n_out = (uint64_t)n << shift;
	return end + (shift != 0);
}

bool bench_set_number(void *to, const char *value)
{
	struct bench_number *n = to;
	const char *end = parse(value, n->most, &n->value);
	return end && !*end && n->value >= n->least;
}

bool bench_set_list(void *to, const char *value)
{
	struct bench_list *list = to;
	for (list->n = 0; list->n < BENCH_LIST;) {
		value = parse(value, list->most, &list->at[list->n++]);
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

static bool add_word(struct bench_words *w, const char *word, size_t length)
{
	for (unsigned i = 0; i < w->n; i++)
		if (strlen(w->name[i]) == length && !strncmp(word, w->name[i], length))
			return w->on[i] = true;
	return false;
}

bool bench_set_words(void *to, const char *value)
{
	for (;; value++) {
		size_t length = strcspn(value, ",");
		if (!add_word(to, value, length))
			return false;
		value += length;
		if (!*value)
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

static void add(struct table *t, const struct bench_option *row)
{
	for (; row->name && t->n < OPTIONS; row++)
		t->row[t->n++] = *row;
}

/* Add the common options; --help is the row without a setter. */
static void add_common(struct table *t, struct bench *b)
{
	const struct bench_option rows[] = {
		{"quick", NULL,
			"little work: tests that results are right, not the speed", NULL,
			bench_set_flag, &b->quick},
		{"json", "FILE",
			"write the results as JSON, too; - is stdout (table to stderr)",
			"a file, or -", bench_set_text, &b->json},
		{"no-pin", NULL, "leave the ranks where the scheduler puts them", NULL,
			bench_set_flag, &b->no_pin},
		{"help", NULL, "print this", NULL, NULL, NULL},
		{NULL, NULL, NULL, NULL, NULL, NULL}};
	add(t, rows);
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
	printf("%s\n", b->about);
	for (unsigned i = 0; i < t->n; i++) {
		char left[40];
		const struct bench_option *row = &t->row[i];
		snprintf(left, sizeof left, "--%s %s", row->name,
			row->arg ? row->arg : "");
		print_wrapped(row->help, printf("  %-17s ", left));
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

/* The complaint about the command line; rank 0 prints it when all ranks have started. */
struct complaint {
	char line[400];
};

__attribute__((format(printf, 2, 3))) static bool complain(
	struct complaint *c, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(c->line, sizeof c->line, fmt, args);
	va_end(args);
	return false;
}

static bool complain_word(struct complaint *c, const char *word)
{
	return complain(c,
		"'%.60s': not an option, or its value is missing; expected one of those "
		"that --help lists",
		word);
}

_Noreturn static void help(const struct bench *b, const struct table *t)
{
	if (!is_another_rank())
		print_help(b, t);
	exit(fflush(stdout) || ferror(stdout));
}

/* Return false with a complaint if the command line is wrong. */
static bool read_all(const struct bench *b, const struct table *t, int argc, char **argv,
	struct complaint *complaint_out)
{
	struct option longs[OPTIONS + 1];
	int c;
	for (unsigned i = 0; i < t->n; i++)
		longs[i] = (struct option){
			t->row[i].name, t->row[i].arg != NULL, NULL, FIRST + (int)i};
	longs[t->n] = (struct option){NULL, 0, NULL, 0};
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+:", longs, NULL)) != -1) {
		if (c < FIRST)
			return complain_word(complaint_out, argv[optind - 1]);
		const struct bench_option *row = &t->row[c - FIRST];
		if (!row->set)
			help(b, t);
		if (!row->set(row->to, optarg))
			return complain(complaint_out, "--%s: '%.60s'; expected %s",
				row->name, optarg, row->expect);
	}
	return optind == argc || complain_word(complaint_out, argv[optind]);
}

void bench_options(struct bench *b, const struct bench_option *own, int argc, char **argv)
{
	struct table t = {.n = 0};
	struct complaint wrong;
	add(&t, own);
	add_common(&t, b);
	bool right = read_all(b, &t, argc, argv, &wrong);
	bench_start(b);
	if (right)
		return;
	if (b->rank == 0)
		fprintf(stderr, "%s: %s\n", b->program, wrong.line);
	bench_leave(2);
}
