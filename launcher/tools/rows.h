/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rows - rows of names and values, which are printed as JSON or as text
 *
 * A program gathers what it prints once, as values of jansson.  For programs that is one
 * line of JSON; for people, columns name the values that a table shows.
 */
#ifndef P3_LAUNCHER_TOOLS_ROWS_H
#define P3_LAUNCHER_TOOLS_ROWS_H

#include <jansson.h>
#include <stddef.h>

#define P3_ROW_N(v) ((json_int_t)(v)) /* a number for json_pack's I */

enum p3_form {
	P3_PLAIN,
	P3_BRIEF, /* a number in at most four characters: 0, 999, 12k, 1.2M */
	P3_BYTES, /* the same in units of 1024; 0: not known */
	P3_CUT,   /* text that has at most the column's width */
	P3_CLOCK, /* seconds of the clock as time of day, or as a date */
};

/* A column of a table.  A value that a row lacks is shown as a blank, null as "-". */
struct p3_column {
	const char *head;
	int width;        /* negative: aligned to the left */
	const char *path; /* names from a row to the value: "name", "object.name", or
			   * "name|other" where the row may lack the first */
	enum p3_form form;
};

/* Return a value of a stranger's text, which may be NULL: with '?' for control
 * characters, which a terminal would obey, and, if the text is no UTF-8, for all bytes
 * that are not ASCII. */
json_t *p3_rows_text(const char *text);
/* Print a value as a line of JSON. */
void p3_rows_json(const json_t *value);
/* Write the line of a row, or with NULL that of the heads. */
void p3_rows_line(
	const json_t *row, const struct p3_column *c, size_t n, char *line, size_t size);
/* Print a table: heads, and a line for each row of an array. */
void p3_rows_table(const json_t *rows, const struct p3_column *c, size_t n);
/* Print a title, and a line for each name and value of an object. */
void p3_rows_list(const char *title, const json_t *object);
/* Cut text to this number of columns, between two words if it has some, with > at the
 * end. */
void p3_rows_cut(char *text, size_t columns);

#endif
