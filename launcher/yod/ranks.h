/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ranks - a set of ranks in the form that users write, 0,2-3
 *
 * Any thread may call these functions; the state is struct p3_ranks.
 */
#ifndef P3_LAUNCHER_RANKS_H
#define P3_LAUNCHER_RANKS_H

#include "shm/layout.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define P3_RANKS_MOST P3_MAX_NODES

struct p3_ranks {
	uint64_t bits[P3_RANKS_MOST / 64];
};

/* Parse a list such as 0,2-3.  Return false if the text is no such list, or names a
 * rank that is not below P3_RANKS_MOST. */
bool p3_ranks_parse(const char *text, struct p3_ranks *ranks_out);

bool p3_ranks_has(const struct p3_ranks *ranks, uint32_t rank);

/* Return the greatest rank; the set is not empty after p3_ranks_parse(). */
uint32_t p3_ranks_last(const struct p3_ranks *ranks);

void p3_ranks_add(struct p3_ranks *ranks, uint32_t rank);

/* Print the ranks as p3_ranks_parse() reads them; a rest that does not fit becomes
 * "...". */
void p3_ranks_print(const struct p3_ranks *ranks, char *text, size_t size);

#endif
