/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of ranks: parsing and printing. */
#include "launcher/yod/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Read a number: digits only, no sign, no blank. */
static bool take_number(const char **at, uint32_t *out)
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

static bool take_range(const char **at, struct p3_ranks *r)
{
	uint32_t first, last;
	if (!take_number(at, &first))
		return false;
	last = first;
	if (**at == '-' && (++*at, !take_number(at, &last)))
		return false;
	for (uint32_t i = first; i <= last; i++)
		p3_ranks_add(r, i);
	return first <= last;
}

bool p3_ranks_parse(const char *text, struct p3_ranks *ranks_out)
{
	struct p3_ranks r = {{0}};
	do
		if (!take_range(&text, &r))
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

/* Return the last rank of the consecutive ranks that begin with this one. */
static uint32_t last_of_row(const struct p3_ranks *r, uint32_t first)
{
	while (p3_ranks_has(r, first + 1))
		first++;
	return first;
}

void p3_ranks_print(const struct p3_ranks *r, char *text, size_t size)
{
	static const char more[] = ",...";
	size_t n = 0;
	for (uint32_t i = 0; i < P3_RANKS_MOST; i++) {
		char row[24];
		uint32_t last = last_of_row(r, i);
		if (!p3_ranks_has(r, i))
			continue;
		int len = snprintf(row, sizeof row, last > i ? "%s%u-%u" : "%s%u",
			n ? "," : "", i, last);
		bool fits = n + (size_t)len + sizeof more <= size;
		n += (size_t)snprintf(text + n, size - n, "%s", fits ? row : more);
		if (!fits)
			return;
		i = last;
	}
}
