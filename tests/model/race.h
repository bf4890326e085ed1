/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * race - short scenes in which threads and nodes meet, again and again
 *
 * More than one outcome is right.  Each scene enumerates the orders in which the atomic
 * steps may have taken place, the order of each pair of nodes kept, and what the library
 * did must be the outcome of one of them.
 */
#ifndef P3_TESTS_MODEL_RACE_H
#define P3_TESTS_MODEL_RACE_H

#include <stdbool.h>
#include <stdint.h>

/* Every scene so many times, but no longer than ns altogether; false: it failed. */
bool race(uint64_t seed, unsigned rounds, uint64_t ns);

#endif
