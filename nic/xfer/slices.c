/* SPDX-License-Identifier: BSD-3-Clause */
/* The length of cross-memory reads, learnt from recent ones. */
#include "nic/xfer/slices.h"

#define P3_SEEN 4u /* a length is known after this number of slices */

_Static_assert(P3_SLICE_LEAST << (P3_SLICE_LENGTHS - 1) == P3_SLICE_MOST, "all lengths");

static uint64_t bytes_of(uint32_t k)
{
	return (uint64_t)P3_SLICE_LEAST << k;
}

void p3_slices_reset(struct p3_slices *s)
{
	*s = (struct p3_slices){.fit = P3_SLICE_LEAST};
}

/* Return the number of the length that a slice counts for.  A slice may be longer than
 * that length by a quarter, since it includes a small rest of the transfer. */
static uint32_t class_of(uint64_t len)
{
	uint32_t k = 0;
	while (k < P3_SLICE_LENGTHS - 1 && len > bytes_of(k) + bytes_of(k) / 4)
		k++;
	return k;
}

/* Return the number of the next slice's length: the best one, or the next longer one
 * while that is unknown, or at each trial a neighbour of the best one. */
static uint32_t in_force(const struct p3_slices *s)
{
	uint32_t k = s->best;
	bool trial = s->turns % P3_SLICE_TRIAL == P3_SLICE_TRIAL - 1;
	bool up = k < P3_SLICE_LENGTHS - 1 && s->fit > bytes_of(k);
	bool down = s->turns / P3_SLICE_TRIAL % 2 == 0;
	if (up && s->seen[k] >= P3_SEEN && (s->seen[k + 1] < P3_SEEN || (trial && !down)))
		return k + 1;
	return trial && k > 0 && (down || !up) ? k - 1 : k;
}

uint64_t p3_slices_length(const struct p3_slices *s)
{
	uint64_t len = bytes_of(in_force(s));
	len = len > s->fit ? s->fit / P3_PAGE * P3_PAGE : len;
	return len > P3_SLICE_LEAST ? len : P3_SLICE_LEAST;
}

uint64_t p3_slices_lone_length(const struct p3_slices *s)
{
	uint64_t len = s->fit * (P3_LONE_NS / P3_SLICE_NS) / P3_PAGE * P3_PAGE;
	uint64_t least = p3_slices_length(s);
	if (s->lone_after || len < least)
		return least;
	return len < P3_LONE_MOST ? len : P3_LONE_MOST;
}

/* Add a time to a mean.  A faster slice counts a quarter, and one that took less than
 * half the mean replaces the mean.  A slower slice counts 1/32, and as twice the mean at
 * most, since the thread may have been preempted. */
static void blend(uint64_t *mean, uint64_t took)
{
	if (took < *mean / 2 || !*mean)
		*mean = took;
	else if (took < *mean)
		*mean = (3 * *mean + took) / 4;
	else
		*mean += (took < 2 * *mean ? took - *mean : *mean) / 32;
}

/* Compare the best length with its neighbour k.  Each slice also costs a pass, which is
 * not in the slice's time.  So a longer neighbour wins unless it is slower by more than
 * 1/32, and a shorter one wins only if it is faster by more than 1/16. */
static void compare(struct p3_slices *s, uint32_t k)
{
	uint64_t best = s->cost[s->best];
	if (s->seen[k] < P3_SEEN)
		return;
	if (k == s->best + 1 ? s->cost[k] <= best + best / 32
			     : k + 1 == s->best && s->cost[k] < best - best / 16)
		s->best = k;
}

static void learn_pace(struct p3_slices *s, uint64_t len, uint64_t ns)
{
	uint64_t fit = len * P3_SLICE_NS / (ns + 1);
	s->fit = (3 * s->fit + (fit < 2 * P3_SLICE_MOST ? fit : 2 * P3_SLICE_MOST)) / 4;
}

void p3_slices_learn(struct p3_slices *s, uint64_t len, uint64_t ns)
{
	uint32_t k = class_of(len);
	learn_pace(s, len, ns);
	s->lone_after -= s->lone_after > 0;
	blend(&s->cost[k], (ns << 20) / len + 1);
	s->seen[k] += s->seen[k] < P3_SEEN;
	s->turns++;
	while (s->best && s->fit <= bytes_of(s->best - 1))
		s->best--; /* P3_SLICE_NS allows no slice of this length any more */
	compare(s, k);
}

void p3_slices_learn_lone(struct p3_slices *s, uint64_t len, uint64_t ns, bool waited)
{
	learn_pace(s, len, ns);
	if (!waited) {
		s->caution -= s->caution > 0;
		return;
	}
	s->lone_after = s->caution > P3_CAUTION ? s->caution : P3_CAUTION;
	s->caution = 2 * s->lone_after;
	if (s->caution > P3_CAUTION_MOST)
		s->caution = P3_CAUTION_MOST;
}
