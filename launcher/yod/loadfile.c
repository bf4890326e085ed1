/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a load file. */
#include "launcher/yod/loadfile.h"
#include "launcher/yod/say.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEN_MAX (16u << 20)

/* Read a file, at most LEN_MAX + 1 bytes.  Return NULL with errno on failure. */
static char *read_all(FILE *f, size_t *len_out)
{
	char *text = malloc(LEN_MAX + 1);
	if (!text)
		return NULL;
	size_t len = fread(text, 1, LEN_MAX + 1, f);
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
	char *text = f ? read_all(f, &len) : NULL;
	if (!text)
		p3_say("-F: '%s': %s; expected a text file with a line for each "
		       "program, "
		       "as in: -sz 2 ./prog arguments",
			name, strerror(errno));
	if (f)
		fclose(f);
	if (!text)
		return NULL;
	text[len < LEN_MAX ? len : LEN_MAX] = 0;
	if (strlen(text) == len)
		return text;
	p3_say("-F: '%s' is no text (it has a zero byte, or more than %u MiB); expected "
	       "a line for each program, as in: -sz 2 ./prog arguments",
		name, LEN_MAX >> 20);
	free(text);
	return NULL;
}
