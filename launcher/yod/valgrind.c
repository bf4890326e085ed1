/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding valgrind in a command line, and the library for it. */
#include "launcher/yod/valgrind.h"
#include "launcher/yod/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORD    "valgrind"
#define BETWEEN " \t\n;&|(){}`'\"<>"

#ifndef P3_VALGRIND_DIR /* relative to yod's folder */
#define P3_VALGRIND_DIR "../lib/portals/valgrind"
#endif
#ifndef P3_SONAME
#define P3_SONAME "libportals.so.0"
#endif

/* Return true for a word of `len` bytes that is "valgrind", or a path that ends so. */
static bool names_valgrind(const char *word, size_t len)
{
	size_t n = strlen(WORD);
	if (len < n || memcmp(word + len - n, WORD, n) != 0)
		return false;
	return len == n || word[len - n - 1] == '/';
}

static bool is_in_text(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, BETWEEN);
		if (names_valgrind(text, len))
			return true;
		text += len;
		text += strspn(text, BETWEEN);
	}
	return false;
}

bool p3_valgrind_is_in(char *const *argv)
{
	for (; *argv; argv++)
		if (is_in_text(*argv))
			return true;
	return false;
}

/* Write the folder of yod's program to dir.  Return false if it is unknown. */
static bool own_folder(char *dir, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", dir, len - 1);
	if (n <= 0)
		return false;
	dir[n] = 0;
	char *slash = strrchr(dir, '/');
	if (slash)
		*slash = 0;
	return slash;
}

static char *folder(void)
{
	char here[4096], *dir;
	if (!own_folder(here, sizeof here))
		return NULL;
	if (asprintf(&dir, "%s/" P3_VALGRIND_DIR, here) < 0)
		return NULL;
	char *shorter = realpath(dir, NULL);
	if (!shorter)
		return dir;
	free(dir);
	return shorter;
}

static bool has_library(const char *dir)
{
	char *file;
	if (asprintf(&file, "%s/" P3_SONAME, dir) < 0)
		return false;
	bool has = !access(file, R_OK);
	free(file);
	return has;
}

const char *p3_valgrind_folder(void)
{
	char *dir = folder();
	if (dir && has_library(dir)) {
		p3_say("valgrind: nodes use %s/%s, which tells it about atomics "
		       "(--valgrind off: they do not)",
			dir, P3_SONAME);
		return dir;
	}
	p3_say("valgrind: no %s in %s; expected the one that tells helgrind about "
	       "atomics: it is built where valgrind's headers are installed",
		P3_SONAME, dir ? dir : "lib/portals/valgrind");
	free(dir);
	return NULL;
}
