/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * samples - the figures that compare has collected, and their medians
 *
 * A file of samples has lines: round, slot, who, test, x, value.  In a slot "ours" and
 * others ran one directly after the other, so only values of one slot are divided by one
 * another.
 */
#ifndef BENCH_COMPARE_SAMPLES_H
#define BENCH_COMPARE_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>

enum { SAMPLES_NAME = 24 };

struct sample {
	int round, slot;
	char who[SAMPLES_NAME], test[SAMPLES_NAME];
	double x, value;
};

struct samples {
	struct sample *at;
	size_t n, room;
};

struct spread {
	unsigned n;
	double min, p10, median, p90, max;
};

_Noreturn void samples_die(const char *what, const char *name); /* with errno */
struct samples samples_read(const char *name);

/* Return the sample of another program in the same slot, or NULL. */
const struct sample *samples_beside(
	const struct samples *all, const struct sample *s, const char *who);

struct spread samples_spread(double *value, unsigned n); /* sorts; n is not 0 */

/* Return how much faster ours is: above 1 for a shorter time, or a higher rate. */
double samples_speedup(const char *test, double ours, double other);

/* Describe a test; one with busy_ before its name is like the one without. */
struct samples_test {
	const char *name, *unit, *x;
	bool is_time;
};
const struct samples_test *samples_test(const char *name);

#endif
