/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of ptlstat why: equal ones, but for their nodes and times, become one. */
#include "launcher/ptlstat/ptlstat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the rest of a text behind a time, which ends with the same mark. */
static const char *lines_skip_time(const char *at)
{
	const char *end = *at == *PTL_TIME ? strchr(at + 1, *PTL_TIME) : NULL;
	return end ? end + 1 : at;
}

/* Compare two texts without their times. */
static bool lines_is_same(const char *a, const char *b)
{
	for (;;) {
		const char *rest_a = lines_skip_time(a), *rest_b = lines_skip_time(b);
		if ((rest_a == a) != (rest_b == b) || *rest_a != *rest_b)
			return false;
		if (!*rest_a)
			return true;
		a = rest_a + (rest_a == a);
		b = rest_b + (rest_b == b);
	}
}

/* Keep the shorter one of each two times of two texts that are equal otherwise. */
static void lines_keep_least_times(char **text, const char *other)
{
	struct ptl_text t = {.n = 0};
	for (const char *a = *text, *b = other; *a;) {
		const char *rest_a = lines_skip_time(a), *rest_b = lines_skip_time(b);
		bool less = rest_b > b && strtod(b + 1, NULL) < strtod(a + 1, NULL);
		const char *from = less ? b : a, *rest = less ? rest_b : rest_a;
		ptl_add(&t, "%.*s", rest > from ? (int)(rest - from) : 1, from);
		a = rest_a + (rest_a == a);
		b = rest_b + (rest_b == b);
	}
	char *least = strdup(t.s);
	if (least)
		free(*text);
	*text = least ? least : *text;
}

static struct ptl_line *lines_find(
	const struct ptl_lines *l, bool conclusion, const char *text)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->line[i].conclusion == conclusion &&
			lines_is_same(l->line[i].text, text))
			return &l->line[i];
	return NULL;
}

static struct ptl_line *lines_append(
	struct ptl_lines *l, bool conclusion, const char *text)
{
	struct ptl_line *more = realloc(l->line, (l->n + 1) * sizeof *more);
	char *copy = more ? strdup(text) : NULL;
	if (more)
		l->line = more;
	if (!copy)
		return NULL;
	l->line[l->n] = (struct ptl_line){.conclusion = conclusion, .text = copy};
	return &l->line[l->n++];
}

void ptl_lines_add(struct ptl_lines *l, bool conclusion, uint32_t node, uint32_t pid,
	const char *text)
{
	struct ptl_line *line =
		l->apart && !conclusion ? NULL : lines_find(l, conclusion, text);
	if (line)
		lines_keep_least_times(&line->text, text);
	else
		line = lines_append(l, conclusion, text);
	l->failed |= !line;
	if (!line || p3_ranks_has(&line->nodes, node))
		return;
	p3_ranks_add(&line->nodes, node);
	line->pid = line->n++ ? 0 : pid;
}

void ptl_lines_conclude(struct ptl_lines *l, uint32_t node, const char *fmt, ...)
{
	char text[sizeof((struct ptl_text *)0)->s];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	ptl_lines_add(l, true, node, 0, text);
	l->conclusions++;
}

/* Name the line's node or nodes, so that a verb in the singular fits behind. */
static void lines_add_nodes(struct ptl_text *t, const struct ptl_line *line)
{
	char ranks[200];
	p3_ranks_print(&line->nodes, ranks, sizeof ranks);
	ptl_add(t, line->n > 1 ? "each of nodes %s" : "node %s", ranks);
	if (line->pid)
		ptl_add(t, " (pid %u)", line->pid);
}

static json_t *lines_text(const struct ptl_line *line)
{
	struct ptl_text t = {.n = 0};
	bool in_time = false;
	for (const char *at = line->text; *at; at++) {
		in_time ^= *at == *PTL_TIME;
		if (*at == *PTL_NODE)
			lines_add_nodes(&t, line);
		else if (*at != *PTL_TIME)
			ptl_add(&t, "%c", *at);
		else if (!in_time && line->n > 1)
			ptl_add(&t, " or more");
	}
	return json_string(t.s);
}

void ptl_lines_tell(struct ptl_lines *l, json_t *o)
{
	json_t *nodes = json_array(), *why = json_array();
	for (uint32_t i = 0; i < l->n; i++) {
		json_array_append_new(
			l->line[i].conclusion ? why : nodes, lines_text(&l->line[i]));
		free(l->line[i].text);
	}
	if (l->failed)
		json_array_append_new(why, json_string("out of memory"));
	free(l->line);
	json_object_set_new(o, "nodes", nodes);
	json_object_set_new(o, "why", why);
}
