/* SPDX-License-Identifier: BSD-3-Clause */
/* Splitting lines into words. */
#include "launcher/yod/words.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 8 /* words by which the array grows */

static char take(struct p3_words *w)
{
	w->line += *w->at == '\n';
	return *w->at++;
}

static bool skip_escaped_newline(struct p3_words *w)
{
	if (w->at[0] != '\\' || w->at[1] != '\n')
		return false;
	take(w);
	take(w);
	return true;
}

/* Skip one blank, or a backslash with a newline. */
static bool skip_blank(struct p3_words *w)
{
	if (*w->at != ' ' && *w->at != '\t' && *w->at != '\r')
		return skip_escaped_newline(w);
	take(w);
	return true;
}

/* Skip to the next word.  Return false if the line ends before one. */
static bool find_word(struct p3_words *w)
{
	while (skip_blank(w))
		;
	if (*w->at == '#')
		w->at += strcspn(w->at, "\n");
	return *w->at && *w->at != '\n';
}

static char *single(struct p3_words *w, char *to)
{
	take(w);
	while (*w->at && *w->at != '\'')
		*to++ = take(w);
	return *w->at ? take(w), to : NULL;
}

static char *twice(struct p3_words *w, char *to)
{
	take(w);
	while (*w->at && *w->at != '"') {
		if (skip_escaped_newline(w))
			continue;
		if (*w->at == '\\' && w->at[1] && strchr("\"\\$`", w->at[1]))
			take(w);
		*to++ = take(w);
	}
	return *w->at ? take(w), to : NULL;
}

static char *bare(struct p3_words *w, char *to)
{
	if (skip_escaped_newline(w))
		return to;
	if (*w->at == '\\' && w->at[1])
		take(w);
	*to++ = take(w);
	return to;
}

/* Read a word.  Return its end, or NULL if a quote is not closed.  The zero that ends the
 * word may overwrite the next character, so the caller reads that character before it
 * writes the zero. */
static char *read_word(struct p3_words *w, char *to)
{
	while (to && *w->at && !strchr(" \t\r\n", *w->at)) {
		if (*w->at == '\'')
			to = single(w, to);
		else if (*w->at == '"')
			to = twice(w, to);
		else
			to = bare(w, to);
	}
	return to;
}

static int append(char ***argv, int n, char *word)
{
	if (n % ROOM == 0) {
		char **more = realloc(*argv, ((size_t)n + ROOM) * sizeof *more);
		if (!more)
			return -ENOMEM;
		*argv = more;
	}
	(*argv)[n] = word;
	return 0;
}

/* Read one line.  Add its words to *argv, and their number to *argc. */
static int read_line(struct p3_words *w, char ***argv, int *argc)
{
	int rc = 0;
	while (!rc && find_word(w)) {
		char *word = w->at, *end = read_word(w, word);
		if (!end)
			return -EINVAL;
		bool more = *w->at && *w->at != '\n';
		if (*w->at)
			take(w);
		*end = 0;
		rc = append(argv, (*argc)++, word);
		if (!more)
			return rc;
	}
	if (!rc && *w->at)
		take(w);
	return rc;
}

int p3_words_next(struct p3_words *w, uint32_t head_n, char ***argv_out, int *argc_out,
	uint32_t *line_out)
{
	char **argv = NULL;
	int argc = 0, rc = 0;
	while (!rc && argc < (int)head_n)
		rc = append(&argv, argc++, NULL);
	while (!rc && argc == (int)head_n && *w->at) {
		*line_out = w->line;
		rc = read_line(w, &argv, &argc);
	}
	if (!rc && argc == (int)head_n)
		rc = -ENOENT;
	if (!rc)
		rc = append(&argv, argc, NULL);
	if (rc) {
		free(argv);
		return rc;
	}
	*argv_out = argv;
	*argc_out = argc;
	return 0;
}
