/* SPDX-License-Identifier: BSD-3-Clause */
/* yod's own lines, texts of files, and of users: words, load files, lists of ranks. */
#include "launcher/yod/yod.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *say_place, *say_host;
static void (*say_by)(void *arg, const char *line, size_t len);
static void *say_by_arg;

void p3_say_by(void (*by)(void *arg, const char *line, size_t len), void *arg)
{
	say_by = by;
	say_by_arg = arg;
}

void p3_say_on(const char *host)
{
	say_host = host;
}

void p3_say_at(const char *place)
{
	say_place = place;
}

/* Return the number of bytes that fit into the room, of n wanted ones. */
static size_t say_there(int n, size_t room)
{
	size_t len = n < 0 ? 0 : (size_t)n;
	return len < room ? len : room - 1;
}

void p3_say_lines(const char *lines, size_t len)
{
	if (say_by) {
		say_by(say_by_arg, lines, len);
		return;
	}
	ssize_t done = write(STDERR_FILENO, lines, len);
	(void)done;
}

void p3_say(const char *fmt, ...)
{
	char line[800];
	int saved = errno; /* for %m, and for the caller */
	size_t room = sizeof line - 1;
	size_t len = say_there(snprintf(line, room, "yod: %s%s%.200s%s",
				       say_host ? say_host : "", say_host ? ": " : "",
				       say_place ? say_place : "", say_place ? ": " : ""),
		room);
	va_list args;
	va_start(args, fmt);
	errno = saved;
	len += say_there(vsnprintf(line + len, room - len, fmt, args), room - len);
	va_end(args);
	/* Names from outside may have control characters, and a message is one line. */
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';
	p3_say_lines(line, len);
	errno = saved;
}

/* ---- files ---- */

bool p3_line_read(char *line, size_t size, const char *path_fmt, ...)
{
	char path[2048];
	va_list args;
	va_start(args, path_fmt);
	int n = vsnprintf(path, sizeof path, path_fmt, args);
	va_end(args);
	FILE *f = n < (int)sizeof path ? fopen(path, "re") : NULL;
	bool ok = f && fgets(line, (int)size, f);
	if (!ok)
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (f)
		fclose(f);
	return ok;
}

char *p3_own_path(const char *beside)
{
	char path[PATH_MAX], *there;
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n < 0)
		return NULL;
	path[n] = '\0';
	if (!beside)
		return strdup(path);
	int folder = (int)(strrchr(path, '/') - path);
	return asprintf(&there, "%.*s/%s", folder, path, beside) < 0 ? NULL : there;
}

/* ---- words ---- */

#define WORDS_ROOM 8 /* words by which the array grows */

static char words_take(struct p3_words *w)
{
	w->line += *w->at == '\n';
	return *w->at++;
}

static bool words_skip_escaped_newline(struct p3_words *w)
{
	if (w->at[0] != '\\' || w->at[1] != '\n')
		return false;
	words_take(w);
	words_take(w);
	return true;
}

/* Read a word.  Return its end, or NULL if a quote is not closed.  The zero that ends the
 * word may overwrite the next character, so the caller reads that character before it
 * writes the zero. */
static char *words_read_word(struct p3_words *w, char *to)
{
	char quote = '\0'; /* the one that is open */
	while (*w->at && (quote || !strchr(" \t\r\n", *w->at))) {
		if (quote != '\'' && words_skip_escaped_newline(w))
			continue;
		if (quote ? *w->at == quote : strchr("'\"", *w->at) != NULL) {
			quote = quote ? '\0' : *w->at;
			words_take(w);
			continue;
		}
		/* In "..." a backslash quotes few characters, in '...' none. */
		const char *quoted = strchr("\"\\$`", w->at[1]);
		if (*w->at == '\\' && w->at[1] && (!quote || (quote == '"' && quoted)))
			words_take(w);
		*to++ = words_take(w);
	}
	return quote ? NULL : to;
}

static int words_append(char ***argv, int n, char *word)
{
	if (n % WORDS_ROOM == 0) {
		char **more = realloc(*argv, ((size_t)n + WORDS_ROOM) * sizeof *more);
		if (!more)
			return -ENOMEM;
		*argv = more;
	}
	(*argv)[n] = word;
	return 0;
}

/* Read one line.  Add its words to *argv, and their number to *argc. */
static int words_read_line(struct p3_words *w, char ***argv, int *argc)
{
	int rc = 0;
	for (;;) {
		while (words_skip_escaped_newline(w) ||
			(*w->at && strchr(" \t\r", *w->at) && words_take(w)))
			;
		if (*w->at == '#')
			w->at += strcspn(w->at, "\n");
		if (rc || !*w->at || *w->at == '\n')
			break;
		char *word = w->at, *end = words_read_word(w, word);
		if (!end)
			return -EINVAL;
		bool more = *w->at && *w->at != '\n';
		if (*w->at)
			words_take(w);
		*end = 0;
		rc = words_append(argv, (*argc)++, word);
		if (!more)
			return rc;
	}
	if (!rc && *w->at)
		words_take(w);
	return rc;
}

int p3_words_next(struct p3_words *w, uint32_t head_n, char ***argv_out, int *argc_out,
	uint32_t *line_out)
{
	char **argv = NULL;
	int argc = 0, rc = 0;
	while (!rc && argc < (int)head_n)
		rc = words_append(&argv, argc++, NULL);
	while (!rc && argc == (int)head_n && *w->at) {
		*line_out = w->line;
		rc = words_read_line(w, &argv, &argc);
	}
	if (!rc && argc == (int)head_n)
		rc = -ENOENT;
	if (!rc)
		rc = words_append(&argv, argc, NULL);
	if (rc) {
		free(argv);
		return rc;
	}
	*argv_out = argv;
	*argc_out = argc;
	return 0;
}

/* ---- sets of ranks ---- */

uint32_t p3_ranks_last(const struct p3_ranks *r)
{
	uint32_t i = P3_CPUS_MOST - 1;
	while (i && !p3_cpuset_has(&r->set, i))
		i--;
	return i;
}

bool p3_ranks_parse(const char *text, struct p3_ranks *ranks_out)
{
	struct p3_ranks r;
	if (strchr(text, '\n') || !p3_cpulist_parse(text, &r.set) ||
		p3_ranks_last(&r) >= P3_RANKS_MOST)
		return false;
	*ranks_out = r;
	return true;
}

void p3_ranks_print(const struct p3_ranks *r, char *text, size_t size)
{
	static const char more[] = ",...";
	char all[P3_CPULIST_LEN];
	p3_cpulist_print(&r->set, all, sizeof all);
	size_t n = size - sizeof more;
	if (strlen(all) > n) {
		while (n && all[n] != ',')
			n--;
		strcpy(all + n, more);
	}
	strcpy(text, all);
}
