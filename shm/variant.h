/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * variant - parts that a build for measurements leaves out
 *
 * Ablation leaves out parts of the machine, to measure what each of them brings.  A
 * library that is built with P3_ABLATION reads PTL3_ABLATE, a list of the parts below.
 * Its code asks p3_without() at each place that a part has.  In the ordinary library
 * p3_without() is the constant false, so the parts cost no instruction there, and
 * PtlNIInit refuses the setting.  All nodes of a job leave out the same parts.
 *
 * The word p3_ablated is written before the process has a NIC, and only read afterwards,
 * so any thread may call p3_without().
 */
#ifndef P3_SHM_VARIANT_H
#define P3_SHM_VARIANT_H

#include <stdbool.h>
#include <stdint.h>

enum p3_ablation {
	P3_PREFETCHES, /* lines are asked for before they are used */
	P3_LINES,      /* each cell of a full lane is one line of the cache */
	P3_SHADOWS,    /* a producer keeps a copy of the consumer's credit */
	P3_CREDITS,    /* a consumer writes its credit once for many messages */
	P3_INDEX,      /* long match lists have an index */
	P3_BATCHES,    /* generic mode: a pass interrupts at its end, for all entries */
	P3_ABLATIONS
};

/* Convert a list of parts, as in "prefetches,index", to a set of bits; NULL, the empty
 * text and "none" give 0.  Return false if it lists anything else. */
bool p3_ablation_parse(const char *text, uint32_t *parts_out);

/* Leave out these parts from now on.  Return false if there are any, and the library
 * cannot leave them out. */
bool p3_ablate(uint32_t parts);

#ifdef P3_ABLATION
extern uint32_t p3_ablated;

static inline bool p3_without(enum p3_ablation part)
{
	return p3_ablated >> part & 1;
}
#else
#define p3_without(part) false
#endif

#endif
