/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * race - short scenes in which threads and nodes meet, again and again
 *
 * More than one outcome is right.  Each scene enumerates the orders in which the atomic
 * steps may have taken place, keeping the order of each pair of nodes, and the
 * library's result must be the outcome of one of them.
 */
#ifndef P3_TESTS_MODEL_RACE_H
#define P3_TESTS_MODEL_RACE_H

#include <stdbool.h>
#include <stdint.h>

/* Run every scene this number of times, at most ns altogether.  Return false if one
 * failed. */
bool race(uint64_t seed, unsigned rounds, uint64_t ns);

#endif
