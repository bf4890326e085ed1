/* SPDX-License-Identifier: BSD-3-Clause */
/* wire - sums of the faults on a wire (PTL3_WIRE) and of their repairs, over nodes that
 * are threads or processes, which may add to them at the same time */
#ifndef P3_TESTS_SUPPORT_WIRE_H
#define P3_TESTS_SUPPORT_WIRE_H

#include <portals3x.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wire_sum {
	_Atomic uint64_t dropped, corrupted, delayed, doubled, reordered;
	_Atomic uint64_t resent, bad_sums, doubles, gaps;
};

static inline void wire_count(struct wire_sum *s, const ptlx_stats_t *st)
{
	s->dropped += st->wire_dropped;
	s->corrupted += st->wire_corrupted;
	s->delayed += st->wire_delayed;
	s->doubled += st->wire_doubled;
	s->reordered += st->wire_reordered;
	s->resent += st->wire_resent;
	s->bad_sums += st->wire_bad_sums;
	s->doubles += st->wire_doubles;
	s->gaps += st->wire_gaps;
}

/* Return true if the setting asks for faults. */
static inline bool wire_has_faults(void)
{
	const char *wire = getenv("PTL3_WIRE");
	return wire && strchr(wire, '%');
}

static inline void wire_print(FILE *to, struct wire_sum *s)
{
	fprintf(to,
		"# wire: dropped %llu corrupted %llu delayed %llu doubled %llu "
		"reordered %llu; resent %llu bad sums %llu doubles %llu gaps %llu\n",
		(unsigned long long)s->dropped, (unsigned long long)s->corrupted,
		(unsigned long long)s->delayed, (unsigned long long)s->doubled,
		(unsigned long long)s->reordered, (unsigned long long)s->resent,
		(unsigned long long)s->bad_sums, (unsigned long long)s->doubles,
		(unsigned long long)s->gaps);
}

/* Return true if the setting asks for faults and none occurred: then the run shows
 * nothing. */
static inline bool wire_missed(struct wire_sum *s)
{
	uint64_t made =
		s->dropped + s->corrupted + s->delayed + s->doubled + s->reordered;
	if (!wire_has_faults())
		return false;
	wire_print(stdout, s);
	return !made;
}

#endif
