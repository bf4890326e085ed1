/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * text - lines of `ptlstat why`, put together piece by piece
 *
 * ptlstat's only thread calls these functions; the state is struct ptl_text.
 */
#ifndef P3_PTLSTAT_TEXT_H
#define P3_PTLSTAT_TEXT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

struct ptl_text {
	char s[1400];
	size_t n;
};

/* Append to a line; a rest that does not fit is cut off. */
__attribute__((format(printf, 2, 3))) static inline void ptl_add(
	struct ptl_text *t, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(t->s + t->n, sizeof t->s - t->n, fmt, args);
	va_end(args);
	if (n > 0)
		t->n += (size_t)n;
	if (t->n > sizeof t->s - 1)
		t->n = sizeof t->s - 1;
}

static inline const char *ptl_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

#endif
