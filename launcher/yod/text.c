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

/* Skip one blank, or a backslash with a newline. */
static bool words_skip_blank(struct p3_words *w)
{
	if (*w->at != ' ' && *w->at != '\t' && *w->at != '\r')
		return words_skip_escaped_newline(w);
	words_take(w);
	return true;
}

/* Skip to the next word.  Return false if the line ends before one. */
static bool words_find_word(struct p3_words *w)
{
	while (words_skip_blank(w))
		;
	if (*w->at == '#')
		w->at += strcspn(w->at, "\n");
	return *w->at && *w->at != '\n';
}

static char *words_take_single(struct p3_words *w, char *to)
{
	words_take(w);
	while (*w->at && *w->at != '\'')
		*to++ = words_take(w);
	return *w->at ? words_take(w), to : NULL;
}

static char *words_take_double(struct p3_words *w, char *to)
{
	words_take(w);
	while (*w->at && *w->at != '"') {
		if (words_skip_escaped_newline(w))
			continue;
		if (*w->at == '\\' && w->at[1] && strchr("\"\\$`", w->at[1]))
			words_take(w);
		*to++ = words_take(w);
	}
	return *w->at ? words_take(w), to : NULL;
}

static char *words_take_bare(struct p3_words *w, char *to)
{
	if (words_skip_escaped_newline(w))
		return to;
	if (*w->at == '\\' && w->at[1])
		words_take(w);
	*to++ = words_take(w);
	return to;
}

/* Read a word.  Return its end, or NULL if a quote is not closed.  The zero that ends the
 * word may overwrite the next character, so the caller reads that character before it
 * writes the zero. */
static char *words_read_word(struct p3_words *w, char *to)
{
	while (to && *w->at && !strchr(" \t\r\n", *w->at)) {
		if (*w->at == '\'')
			to = words_take_single(w, to);
		else if (*w->at == '"')
			to = words_take_double(w, to);
		else
			to = words_take_bare(w, to);
	}
	return to;
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
	while (!rc && words_find_word(w)) {
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

/* ---- load files ---- */

#define LOADFILE_MOST (16u << 20)

/* Read a file, at most LEN_MAX + 1 bytes.  Return NULL with errno on failure. */
static char *loadfile_read_all(FILE *f, size_t *len_out)
{
	char *text = malloc(LOADFILE_MOST + 1);
	if (!text)
		return NULL;
	size_t len = fread(text, 1, LOADFILE_MOST + 1, f);
	if (ferror(f)) {
		free(text);
		return NULL;
	}
	*len_out = len;
	return text;
}

char *p3_loadfile_read(const char *name)
{
	size_t len = 0;
	FILE *f = fopen(name, "re");
	char *text = f ? loadfile_read_all(f, &len) : NULL;
	if (!text)
		p3_say("-F: '%s': %s; expected a text file with a line for each program, "
		       "as in: -sz 2 ./prog arguments",
			name, strerror(errno));
	if (f)
		fclose(f);
	if (!text)
		return NULL;
	text[len < LOADFILE_MOST ? len : LOADFILE_MOST] = 0;
	if (strlen(text) == len)
		return text;
	p3_say("-F: '%s' is no text (it has a zero byte, or more than %u MiB); expected "
	       "a line for each program, as in: -sz 2 ./prog arguments",
		name, LOADFILE_MOST >> 20);
	free(text);
	return NULL;
}

/* ---- sets of ranks ---- */

/* Read a number: digits only, no sign, no blank. */
static bool ranks_take_number(const char **at, uint32_t *out)
{
	uint32_t n = 0;
	if (**at < '0' || **at > '9')
		return false;
	for (; **at >= '0' && **at <= '9'; ++*at) {
		n = 10 * n + (uint32_t)(**at - '0');
		if (n >= P3_RANKS_MOST)
			return false;
	}
	*out = n;
	return true;
}

void p3_ranks_add(struct p3_ranks *r, uint32_t rank)
{
	r->bits[rank / 64] |= UINT64_C(1) << rank % 64;
}

static bool ranks_take_range(const char **at, struct p3_ranks *r)
{
	uint32_t first, last;
	if (!ranks_take_number(at, &first))
		return false;
	last = first;
	if (**at == '-' && (++*at, !ranks_take_number(at, &last)))
		return false;
	for (uint32_t i = first; i <= last; i++)
		p3_ranks_add(r, i);
	return first <= last;
}

bool p3_ranks_parse(const char *text, struct p3_ranks *ranks_out)
{
	struct p3_ranks r = {{0}};
	do
		if (!ranks_take_range(&text, &r))
			return false;
	while (*text == ',' && text++);
	*ranks_out = r;
	return !*text;
}

bool p3_ranks_has(const struct p3_ranks *r, uint32_t rank)
{
	return rank < P3_RANKS_MOST && r->bits[rank / 64] >> rank % 64 & 1;
}

uint32_t p3_ranks_last(const struct p3_ranks *r)
{
	uint32_t i = P3_RANKS_MOST - 1;
	while (i && !p3_ranks_has(r, i))
		i--;
	return i;
}

void p3_ranks_print(const struct p3_ranks *r, char *text, size_t size)
{
	static const char more[] = ",...";
	size_t n = 0;
	for (uint32_t i = 0; i < P3_RANKS_MOST; i++) {
		char row[24];
		uint32_t last = i;
		if (!p3_ranks_has(r, i))
			continue;
		while (p3_ranks_has(r, last + 1))
			last++;
		int len = snprintf(row, sizeof row, last > i ? "%s%u-%u" : "%s%u",
			n ? "," : "", i, last);
		bool fits = n + (size_t)len + sizeof more <= size;
		n += (size_t)snprintf(text + n, size - n, "%s", fits ? row : more);
		if (!fits)
			return;
		i = last;
	}
}
