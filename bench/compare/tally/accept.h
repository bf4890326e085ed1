/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * accept - the named ratios by which a build of libportals is accepted
 *
 * A round gives one ratio: of the median of ours and that of the other program, over the
 * slots of the round that have both.  The line has the median of these ratios, their
 * extremes, and the medians of both sides.
 */
#ifndef BENCH_COMPARE_ACCEPT_H
#define BENCH_COMPARE_ACCEPT_H

#include "samples.h"

#include <jansson.h>

/* Print a line for each ratio, and return them as an array. */
json_t *accept_print(const struct samples *all);

#endif
