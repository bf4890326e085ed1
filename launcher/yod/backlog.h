/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backlog - bytes that wait, in the order in which they came
 *
 *	p3_backlog_add --> [ taken | waiting | free ] --p3_backlog_bytes, _take-->
 *
 * Bytes that wait move only when they are no more than those taken since they last moved,
 * or when the memory doubles.  So the cost of a byte does not grow with the number of
 * those that wait.  The caller bounds that number.  A backlog that has had room for n
 * bytes at first needs no more memory while n wait at most.  A zeroed struct is an empty
 * backlog; one thread at a time uses it.
 */
#ifndef P3_LAUNCHER_BACKLOG_H
#define P3_LAUNCHER_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct p3_backlog {
	char *at;
	size_t begin, end, room;
};

static inline size_t p3_backlog_len(const struct p3_backlog *b)
{
	return b->end - b->begin;
}

/* Return the bytes that wait; they stay until the next p3_backlog_room(). */
static inline const char *p3_backlog_bytes(const struct p3_backlog *b)
{
	return b->at + b->begin;
}

/* Return memory for n > 0 more bytes, of which the caller adds those that it has written
 * to b->end; or NULL if out of memory. */
static inline char *p3_backlog_room(struct p3_backlog *b, size_t n)
{
	size_t len = p3_backlog_len(b), room = 2 * (len + n);
	char *at = b->at;
	if (b->room - b->end >= n)
		return b->at + b->end;
	if (b->begin < len || b->room - len < n)
		at = malloc(room);
	else
		room = b->room;
	if (!at)
		return NULL;
	if (len)
		memmove(at, b->at + b->begin, len);
	if (at != b->at)
		free(b->at);
	*b = (struct p3_backlog){at, 0, len, room};
	return at + len;
}

/* Add n bytes.  Return false if out of memory. */
static inline bool p3_backlog_add(struct p3_backlog *b, const void *bytes, size_t n)
{
	char *to = n ? p3_backlog_room(b, n) : NULL;
	if (to)
		memcpy(to, bytes, n);
	b->end += to ? n : 0;
	return to || !n;
}

/* Remove the first n bytes of those that wait. */
static inline void p3_backlog_take(struct p3_backlog *b, size_t n)
{
	b->begin += n;
	if (b->begin == b->end)
		b->begin = b->end = 0;
}

static inline void p3_backlog_free(struct p3_backlog *b)
{
	free(b->at);
	*b = (struct p3_backlog){.at = NULL};
}

#endif
