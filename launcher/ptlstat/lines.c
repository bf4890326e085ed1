/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of `ptlstat why`: lines that differ in their node only become one. */
#include "launcher/ptlstat/lines.h"
#include "launcher/ptlstat/text.h"

#include <stdlib.h>
#include <string.h>

/* Return the rest of a text behind a time, which ends with the same mark. */
static const char *skip_time(const char *at)
{
	const char *end = *at == *PTL_TIME ? strchr(at + 1, *PTL_TIME) : NULL;
	return end ? end + 1 : at;
}

/* Compare two texts without their times. */
static bool is_same(const char *a, const char *b)
{
	for (;;) {
		const char *rest_a = skip_time(a), *rest_b = skip_time(b);
		if ((rest_a == a) != (rest_b == b) || *rest_a != *rest_b)
			return false;
		if (!*rest_a)
			return true;
		a = rest_a + (rest_a == a);
		b = rest_b + (rest_b == b);
	}
}

/* Keep the shorter one of each two times of two texts that are equal otherwise. */
static void keep_least_times(char **text, const char *other)
{
	struct ptl_text t = {.n = 0};
	for (const char *a = *text, *b = other; *a;) {
		const char *rest_a = skip_time(a), *rest_b = skip_time(b);
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

static struct ptl_line *find(const struct ptl_lines *l, bool conclusion, const char *text)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->line[i].conclusion == conclusion && is_same(l->line[i].text, text))
			return &l->line[i];
	return NULL;
}

static struct ptl_line *append(struct ptl_lines *l, bool conclusion, const char *text)
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
		l->apart && !conclusion ? NULL : find(l, conclusion, text);
	if (line)
		keep_least_times(&line->text, text);
	else
		line = append(l, conclusion, text);
	l->failed |= !line;
	if (!line || p3_ranks_has(&line->nodes, node))
		return;
	p3_ranks_add(&line->nodes, node);
	line->pid = line->n++ ? 0 : pid;
}

/* Name the line's node or nodes, so that a verb in the singular fits behind. */
static void add_nodes(struct ptl_text *t, const struct ptl_line *line)
{
	char ranks[200];
	p3_ranks_print(&line->nodes, ranks, sizeof ranks);
	ptl_add(t, line->n > 1 ? "each of nodes %s" : "node %s", ranks);
	if (line->pid)
		ptl_add(t, " (pid %u)", line->pid);
}

static void tell(const struct ptl_line *line,
	void (*print)(void *arg, bool conclusion, const char *text), void *arg)
{
	struct ptl_text t = {.n = 0};
	bool in_time = false;
	for (const char *at = line->text; *at; at++) {
		in_time ^= *at == *PTL_TIME;
		if (*at == *PTL_NODE)
			add_nodes(&t, line);
		else if (*at != *PTL_TIME)
			ptl_add(&t, "%c", *at);
		else if (!in_time && line->n > 1)
			ptl_add(&t, " or more");
	}
	print(arg, line->conclusion, t.s);
}

void ptl_lines_tell(struct ptl_lines *l,
	void (*print)(void *arg, bool conclusion, const char *text), void *arg)
{
	for (int conclusion = 0; conclusion < 2; conclusion++)
		for (uint32_t i = 0; i < l->n; i++)
			if (l->line[i].conclusion == (bool)conclusion)
				tell(&l->line[i], print, arg);
	if (l->failed)
		print(arg, true, "out of memory");
	for (uint32_t i = 0; i < l->n; i++)
		free(l->line[i].text);
	free(l->line);
}
