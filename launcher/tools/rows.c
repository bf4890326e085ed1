/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of names and values, as JSON and as tables. */
#include "launcher/tools/rows.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VALUE_LEN 480 /* longest text of a value */
#define LINE_LEN  1000

json_t *p3_rows_text(const char *text)
{
	char *copy = text ? strdup(text) : NULL;
	if (!copy)
		return json_null();
	for (char *at = copy; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	json_t *value = json_string(copy);
	for (char *at = copy; !value && *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	value = value ? value : json_string(copy);
	free(copy);
	return value;
}

void p3_rows_json(const json_t *value)
{
	json_dumpf(value, stdout, JSON_COMPACT);
	putchar('\n');
}

/* ---- values as text ---- */

static void row_brief(double v, double unit, char text[VALUE_LEN])
{
	static const char units[] = " kMGTPE";
	size_t u = 0;
	for (; v >= 999.5 && u < sizeof units - 2; u++)
		v /= unit;
	bool whole = !u || v >= 9.95 || (unit > 1000 && v - (double)(long)v < 0.05);
	snprintf(text, VALUE_LEN, "%.*f%.*s", !whole, v, u > 0, &units[u]);
}

/* Write the time of day, or the date if that is another one. */
static void row_time(time_t t, char text[VALUE_LEN])
{
	time_t now = time(NULL);
	struct tm then, today;
	bool known = t && localtime_r(&t, &then) && localtime_r(&now, &today);
	bool same =
		known && then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
	if (!known ||
		!strftime(text, VALUE_LEN, same ? "%H:%M:%S" : "%b %d %H:%M", &then))
		strcpy(text, "?");
}

static void row_list(const json_t *a, char text[VALUE_LEN])
{
	size_t i, len = 0;
	const json_t *v;
	*text = '\0';
	json_array_foreach(a, i, v)
		if (json_is_string(v) && len < VALUE_LEN)
			len += (size_t)snprintf(text + len, VALUE_LEN - len, "%s%s",
				i ? " " : "", json_string_value(v));
}

static void row_value(
	const json_t *v, enum p3_form form, size_t width, char text[VALUE_LEN])
{
	if (!v)
		*text = '\0';
	else if (json_is_number(v) && form == P3_BRIEF)
		row_brief(json_number_value(v), 1000, text);
	else if (json_is_number(v) && form == P3_BYTES && json_number_value(v) > 0)
		row_brief(json_number_value(v), 1024, text);
	else if (json_is_integer(v) && form == P3_CLOCK)
		row_time((time_t)json_integer_value(v), text);
	else if (json_is_integer(v) && form != P3_BYTES)
		snprintf(text, VALUE_LEN, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v))
		snprintf(text, VALUE_LEN, "%.1f", json_real_value(v));
	else if (json_is_boolean(v))
		strcpy(text, json_is_true(v) ? "yes" : "no");
	else if (json_is_array(v))
		row_list(v, text);
	else
		snprintf(text, VALUE_LEN, "%s",
			json_is_string(v) ? json_string_value(v) : "-");
	if (form == P3_CUT)
		p3_rows_cut(text, width);
}

void p3_rows_cut(char *text, size_t columns)
{
	if (strlen(text) <= columns || columns < 2)
		return;
	size_t end = columns - 1;
	if (text[end] != ' ')
		while (end > columns / 2 && text[end - 1] != ' ')
			end--;
	if (end <= columns / 2)
		end = columns - 1;
	memset(text + end, ' ', columns - 1 - end);
	text[columns - 1] = '>';
	text[columns] = '\0';
}

/* ---- tables ---- */

static const json_t *row_at(const json_t *row, const char *path)
{
	char name[60];
	size_t len = strcspn(path, ".|");
	snprintf(name, sizeof name, "%.*s", (int)len, path);
	const json_t *v = json_object_get(row, name);
	bool next = path[len] == '.' || (path[len] && !v);
	return next ? row_at(path[len] == '.' ? v : row, path + len + 1) : v;
}

void p3_rows_line(
	const json_t *row, const struct p3_column *c, size_t n, char *line, size_t size)
{
	char text[VALUE_LEN];
	size_t len = 0;
	for (size_t i = 0; i < n && len < size; i++) {
		if (row)
			row_value(row_at(row, c[i].path), c[i].form,
				(size_t)abs(c[i].width), text);
		len += (size_t)snprintf(line + len, size - len, "%s%*s", i ? " " : "",
			c[i].width, row ? text : c[i].head);
	}
	len = len < size ? len : size - 1;
	while (len && line[len - 1] == ' ')
		line[--len] = '\0';
}

void p3_rows_table(const json_t *rows, const struct p3_column *c, size_t n)
{
	char line[LINE_LEN];
	size_t i;
	const json_t *row;
	p3_rows_line(NULL, c, n, line, sizeof line);
	puts(line);
	json_array_foreach(rows, i, row) {
		p3_rows_line(row, c, n, line, sizeof line);
		puts(line);
	}
}

void p3_rows_list(const char *title, const json_t *object)
{
	char text[VALUE_LEN];
	const char *name;
	const json_t *value;
	puts(title);
	json_object_foreach((json_t *)(uintptr_t)object, name, value) {
		row_value(value, P3_PLAIN, 0, text);
		if (!json_is_object(value))
			printf("  %-14s %s\n", name, text);
	}
}
