/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a program's options: parsing, --help, --version, error lines. */
#include "launcher/tools/options.h"
#include "shm/conf.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MOST 64  /* rows of a table */
#define NEAR         3   /* edits between options that may be confused */
#define LINE_WIDTH   80  /* of --help */
#define ROW_BASE     256 /* getopt's value of the first row; above any character */

static const struct p3_option option_help = {
	"help", 'h', NULL, "print this help", .set = NULL};
static const struct p3_option option_version = {
	"version", 0, NULL, "print the version", .set = NULL};

/* Return row i; the rows that all programs have are behind those of the table. */
static const struct p3_option *option_row(const struct p3_options *o, size_t i)
{
	return i < o->n        ? &o->row[i]
	       : i == o->n     ? &option_help
	       : i == o->n + 1 ? &option_version
			       : NULL;
}

/* Return the dashes of a row's name: one if the name has two letters. */
static const char *option_dashes(const struct p3_options *o, const struct p3_option *row)
{
	return o->ends && strlen(row->name) == 2 ? "-" : "--";
}

/* ---- help ---- */

static int option_show_help(const struct p3_options *o)
{
	const struct p3_option *row;
	puts(o->usage);
	for (size_t i = 0; (row = option_row(o, i)); i++) {
		char left[40];
		if (!row->name)
			printf("\n%s\n", row->help);
		if (!row->name || !row->help)
			continue;
		/* The letter stands beside a long name. */
		const char *dashes = option_dashes(o, row),
			   *arg = row->arg ? row->arg : "";
		if (row->letter && dashes[1])
			snprintf(left, sizeof left, "-%c, --%s %s", row->letter,
				row->name, arg);
		else
			snprintf(left, sizeof left, "%s%s %s", dashes, row->name, arg);
		/* Later lines of a text begin below its first line. */
		int column = printf("  %-20s  ", left), at = column, n;
		for (const char *word = row->help; *word; word += n + (word[n] == ' ')) {
			n = (int)strcspn(word, " ");
			if (at > column && at + 1 + n > LINE_WIDTH)
				at = printf("\n%*s", column, "") - 1;
			at += printf("%s%.*s", at > column ? " " : "", n, word);
		}
		putchar('\n');
	}
	printf("\n%s\n", o->after);
	return 0;
}

/* ---- words that are no options ---- */

/* Return the option with the most similar name, or NULL if each option's name differs by
 * more than NEAR edits, or by more than half of the letters of this name. */
static const struct p3_option *option_nearest(
	const struct p3_options *o, const char *name)
{
	const struct p3_option *best = NULL, *row;
	unsigned least = (unsigned)strlen(name) / 2 + 1;
	least = least < NEAR + 1 ? least : NEAR + 1;
	for (size_t i = 0; (row = option_row(o, i)); i++) {
		unsigned n = row->name ? p3_conf_edits(name, row->name) : least;
		if (n < least) {
			least = n;
			best = row;
		}
	}
	return best;
}

/* Count the options whose names are, or begin with, this name, and list them. */
static unsigned option_meant_by(
	const struct p3_options *o, const char *name, char *list, size_t size)
{
	unsigned n = 0;
	size_t len = 0;
	const struct p3_option *row;
	for (size_t i = 0; (row = option_row(o, i)); i++) {
		bool same = row->name && !strcmp(row->name, name);
		if (!same && (!row->name || !*name || len >= size ||
				     strncmp(row->name, name, strlen(name)) != 0))
			continue;
		len = same ? 0 : len;
		n = same ? 0 : n;
		len += (size_t)snprintf(list + len, size - len, "%s%s%s", n++ ? ", " : "",
			option_dashes(o, row), row->name);
		if (same)
			break;
	}
	return n;
}

/* Refuse a word.  An unknown letter may stand in the middle of the word. */
static int option_refuse(const struct p3_options *o, int c, const char *word)
{
	char letter[3] = {'-', (char)optopt, '\0'};
	bool is_letter = !o->ends && optopt > 0 && optopt < ROW_BASE;
	char name[P3_CONF_NAME_LEN + 1], list[200];
	word = is_letter ? letter : word;
	size_t dashes = strspn(word, "-");
	snprintf(name, sizeof name, "%.*s", (int)strcspn(word + dashes, "="),
		word + dashes);
	const char *hint = o->hint ? o->hint(name) : NULL;
	const struct p3_option *near = option_nearest(o, name);
	unsigned n = is_letter ? 0 : option_meant_by(o, name, list, sizeof list);
	if (c == ':')
		o->say("%s: needs a value; see %s --help", word, o->program);
	else if (n == 1)
		o->say("%s: takes no value; expected %s", word, list);
	else if (n > 1 && !hint)
		o->say("%s: is short for several; expected one of %s", word, list);
	else if (hint)
		o->say("%s: not an option of %s; %s", word, o->program, hint);
	else if (near)
		o->say("%s: not an option of %s; did you mean %s%s? %s --help lists all",
			word, o->program, option_dashes(o, near), near->name, o->program);
	else
		o->say("%s: not an option of %s; %s --help lists all", word, o->program,
			o->program);
	return P3_OPTIONS_USAGE;
}

/* ---- parsing ---- */

static int option_take(const struct p3_options *o, void *to, int c, const char *word)
{
	const struct p3_option *row =
		option_row(o, c < ROW_BASE ? 0 : (size_t)(c - ROW_BASE));
	for (size_t i = 0; row && c < ROW_BASE && row->letter != c; i++)
		row = option_row(o, i);
	char name[P3_CONF_NAME_LEN + 1];
	if (!row)
		return option_refuse(o, c, word);
	if (o->allows && !o->allows(to, row, word))
		return P3_OPTIONS_USAGE;
	if (row == &option_help)
		return option_show_help(o);
	if (row == &option_version) {
		printf("%s (libportals " P3_VERSION ", Portals 3.3)\n", o->program);
		return 0;
	}
	if (c < ROW_BASE)
		snprintf(name, sizeof name, "-%c", c);
	else
		snprintf(name, sizeof name, "%s%s", option_dashes(o, row), row->name);
	if (row->set)
		return row->set(to, name, optarg);
	void *member = (char *)to + row->at;
	if (!row->parse && row->arg)
		memcpy(member, &optarg, sizeof optarg);
	else if (!row->parse)
		*(bool *)member = true;
	else if (!row->parse(row, member, optarg)) {
		o->say("%s: '%s' is no %s", name, optarg, row->no);
		return P3_OPTIONS_USAGE;
	}
	return P3_OPTIONS_GO;
}

int p3_options_read(
	const struct p3_options *o, void *to, int argc, char **argv, int *first_out)
{
	char letters[2 + 2 * OPTIONS_MOST + 1]; /* the table in getopt's form */
	struct option longs[OPTIONS_MOST + 1], *to_long = longs;
	const struct p3_option *row;
	char *letter = stpcpy(letters, o->ends ? "+:" : ":");
	int rc = P3_OPTIONS_GO;
	for (size_t i = 0; i < OPTIONS_MOST && (row = option_row(o, i)); i++) {
		int has = row->arg ? required_argument : no_argument;
		if (row->name)
			*to_long++ =
				(struct option){row->name, has, NULL, ROW_BASE + (int)i};
		if (row->letter) {
			*letter++ = row->letter;
			letter = stpcpy(letter, has ? ":" : "");
		}
	}
	*letter = 0;
	*to_long = (struct option){NULL, 0, NULL, 0};
	opterr = 0;
	optind = 0; /* start from the beginning */
	while (rc == P3_OPTIONS_GO) {
		int at = optind ? optind : 1;
		int c = o->ends ? getopt_long_only(argc, argv, letters, longs, NULL)
				: getopt_long(argc, argv, letters, longs, NULL);
		if (c < 0)
			break;
		/* getopt has moved words behind the options: look back for the one that
		 * it has read. */
		rc = option_take(o, to, c, argv[o->ends ? at : optind - 1]);
	}
	*first_out = optind;
	if (rc != P3_OPTIONS_GO || o->ends || argc - optind <= o->words)
		return rc;
	o->say("'%s': not expected; see %s --help", argv[optind + o->words], o->program);
	return P3_OPTIONS_USAGE;
}

bool p3_option_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
	char *end;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *out >= least &&
	       *out <= most;
}

bool p3_parse_number(const struct p3_option *row, void *member, const char *value)
{
	uint64_t n;
	if (!p3_option_number(value, (uint64_t)row->least, (uint64_t)row->most, &n))
		return false;
	*(uint32_t *)member = (uint32_t)n;
	return true;
}

bool p3_parse_scaled(const struct p3_option *row, void *member, const char *value)
{
	char *end;
	double n = strtod(value, &end);
	if (end == value || *end || !(n >= row->least && n <= row->most))
		return false;
	*(int64_t *)member = (int64_t)(n * row->scale);
	return true;
}

bool p3_parse_text(const struct p3_option *row, void *member, const char *value)
{
	(void)row;
	*(const char **)member = value;
	return *value;
}

bool p3_parse_word(const struct p3_option *row, void *member, const char *value)
{
	size_t n = strcspn(value, " ");
	*(const char **)member = value;
	for (const char *at = row->words; n && !value[n] && (at = strstr(at, value));
		at++)
		if (at[-1] == ' ' && at[n] == ' ')
			return true;
	return false;
}

/* ---- error lines, and the end of a program ---- */

void p3_tool_say(const char *fmt, ...)
{
	va_list args;
	fprintf(stderr, "%s: ", program_invocation_short_name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

int p3_tool_end(int status, int failed)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	p3_tool_say("cannot write to standard output; see df, and where it leads");
	return status ? status : failed;
}
