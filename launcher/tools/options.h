/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tools - what the programs of launcher/ have in common
 *
 *	options.c	the table of options: parsing, --help, --version, errors; error
 *			lines, and the end of a program
 *	rows.c		rows of names and values, as JSON and as tables
 *
 * A program has one table of options, from which --help is made; the completions of bash
 * and zsh read that.  --help and --version are in no table, since all programs have them.
 * One thread calls these functions.
 */
#ifndef P3_LAUNCHER_TOOLS_OPTIONS_H
#define P3_LAUNCHER_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Print one line to stderr behind the program's name: thing, value, expectation. */
__attribute__((format(printf, 1, 2))) void p3_tool_say(const char *fmt, ...);
/* Return the status of a program that has printed to standard output; failed if not all
 * of its output could be written, of which an error line tells. */
int p3_tool_end(int status, int failed);

enum { P3_OPTIONS_GO = -1, P3_OPTIONS_USAGE = 2 };

struct p3_option {
	const char *name; /* NULL: the row is a heading */
	char letter;      /* 0: none */
	const char *arg;  /* NULL: no argument */
	const char *help; /* NULL: the row is another name of the row above, or is for
			   * other programs */
	/* Return P3_OPTIONS_GO or the program's exit status.  name is as written, with
	 * its dashes.  NULL: the row sets the member at `at`. */
	int (*set)(void *to, const char *name, const char *value);
	size_t at;
	/* Store the value in the member, or return false: then the error line "--name:
	 * 'value' is no " ends with the text `no`.  NULL: store true, or with an argument
	 * its text. */
	bool (*parse)(const struct p3_option *row, void *member, const char *value);
	const char *no;
	double least, most, scale; /* of the parsers below */
	const char *words;
	bool each; /* for p3_options.allows */
};

struct p3_options {
	const char *program;
	const char *usage; /* text of --help before the options, and */
	const char *after; /* behind them */
	const struct p3_option *row;
	size_t n;
	/* True: the first word that is no option ends the options, and names with one
	 * dash are options, too.  Else words and options may be mixed. */
	bool ends;
	int words;                         /* else the words at most */
	void (*say)(const char *fmt, ...); /* error lines */
	/* NULL, or a function that refuses an option here, with an error line. */
	bool (*allows)(const void *to, const struct p3_option *row, const char *word);
	/* NULL, or a function that returns advice about an option of other programs. */
	const char *(*hint)(const char *name);
};

/* Parse options into `to`.  Return P3_OPTIONS_GO, with the index of the first word that
 * is no option, or the exit status after all output. */
int p3_options_read(
	const struct p3_options *o, void *to, int argc, char **argv, int *first_out);

/* Parse a decimal number of a range.  Return false if the text is none. */
bool p3_option_number(const char *text, uint64_t least, uint64_t most, uint64_t *out);
/* Parsers of rows: a whole number from least to most, for a uint32_t; one with a
 * fraction, times scale, for an int64_t; a text that is not empty; one of the words,
 * which have a blank before and behind each. */
bool p3_parse_number(const struct p3_option *row, void *member, const char *value);
bool p3_parse_scaled(const struct p3_option *row, void *member, const char *value);
bool p3_parse_text(const struct p3_option *row, void *member, const char *value);
bool p3_parse_word(const struct p3_option *row, void *member, const char *value);

#endif
