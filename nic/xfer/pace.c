/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of the faster mover, of the way of a copy, and of a slice's length, by times
 * of transfers. */
#include "nic/xfer/movers.h"

/* ---- the faster one of two ways ---- */

/* Return true if a run goes the other way: the faster one if that is faster by margin /
 * 32, and in a run that explores the slower one.  The other way seems faster until it has
 * been timed. */
static bool pace_prefers_other(const struct p3_pace *pace, bool explores, uint64_t margin)
{
	bool faster = pace->other_ns < pace->usual_ns - pace->usual_ns * margin / 32;
	return faster != explores;
}

void p3_pace_learn(struct p3_pace *pace, bool other, uint64_t took)
{
	uint64_t *mean = other ? &pace->other_ns : &pace->usual_ns;
	if (took < *mean / 4 || !*mean)
		*mean = took;
	else if (took < *mean)
		*mean = (*mean + took) / 2;
	else /* limit the step: a thread may have been preempted */
		*mean += (took < 4 * *mean ? took - *mean : 3 * *mean) / 8;
}

/* ---- window or cross-memory read ---- */

/* number of transfers in a run, which one mover moves: each mover leaves its own data in
 * the caches */
#define P3_RUN 8u

static struct p3_pace *pace_of(struct p3_nic *n, const struct p3_pull *pull)
{
	return &n->pace[pull->get != NULL][63 - __builtin_clzll(pull->length)];
}

/* A window also takes time of the peer's CPU, which could read for the peer's own
 * transfers, and fills the peer's cache.  So both nodes gain by a window only if it is
 * faster by 3/32 of the time of a read.  Where one node's put follows the other's, and
 * each is read at once, twice as much is needed. */
static uint64_t pace_margin(const struct p3_pull *pull)
{
	return pull->length <= P3_LONE_MOST && !pull->get ? 6 : 3;
}

/* Return true if a transfer is timed.  Those in the first half of a run are not, since
 * they find the other mover's data in the caches.  Once both movers have been measured,
 * only the last one of a run of short transfers is timed. */
static bool pace_counts(const struct p3_pace *pace, uint64_t length)
{
	bool rarely = length <= P3_SLICE_LEAST && pace->turns >= 2 * P3_RUN;
	return pace->turns % P3_RUN >= (rarely ? P3_RUN - 1 : P3_RUN / 2);
}

/* Run 0 goes by window, run 1 by reads.  The first times of a mover may be those of a
 * disturbed machine, so the slower one is tried again soon. */
static bool pace_explores(uint32_t run)
{
	return run < 64 ? run != 1 && (run & (run - 1)) == 0 : run % 64 == 0;
}

bool p3_xfer_pick(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_pace *pace = pace_of(n, pull);
	if (pace->turns % P3_RUN == 0)
		pace->other = pace_prefers_other(
			pace, pace_explores(pace->turns / P3_RUN), pace_margin(pull));
	pull->began = pace->other ? P3_MOVE_BULK : P3_MOVE_CMA;
	pull->began_ns = pace_counts(pace, pull->length) ? p3_now_ns() : 0;
	pull->began_moved = n->moved;
	pace->turns++;
	return pace->other;
}

uint64_t p3_pace_share(uint64_t took, uint64_t length, uint64_t moved)
{
	return moved > length ? took * (length / 64 + 1) / (moved / 64 + 1) + 1 : took;
}

void p3_xfer_learn(struct p3_nic *n, const struct p3_pull *pull)
{
	if (!pull->began_ns)
		return;
	uint64_t took = p3_now_ns() - pull->began_ns + 1;
	p3_pace_learn(pace_of(n, pull), pull->began == P3_MOVE_BULK,
		p3_pace_share(took, pull->length, n->moved - pull->began_moved));
}

/* ---- the way of a copy into the lane ---- */

#define P3_COPY_MARGIN  1u
#define P3_COPY_EXPLORE 256u /* one run in 256 goes the slower way, and soon some do */

static uint32_t pace_class_of_copy(uint64_t length)
{
	return 63 - (uint32_t)__builtin_clzll(length - 1);
}

static bool pace_is_past(const struct p3_nic *n, uint64_t length)
{
	/* A wire reads what it sends.  PTL3_MOVER=read asks for reads of all that the
	 * target would read. */
	return n->pace[2][pace_class_of_copy(length)].other && !n->wired &&
	       (n->conf.bulk || length <= P3_EAGER_MOST);
}

bool p3_pace_goes_ahead(const struct p3_nic *n, uint64_t length)
{
	return length > P3_EAGER_MOST_PAST && length <= P3_LONE_MOST &&
	       pace_is_past(n, length);
}

bool p3_pace_copies_past(const struct p3_nic *n, uint64_t length)
{
	return length <= P3_EAGER_MOST_PAST && pace_is_past(n, length);
}

/* The time of half a run is that of all that its messages cost either node, and of what
 * the programs do between them, which both ways have in common.  The first half tells
 * less, since messages of the run before are under way in it; but a run that is slower
 * than the other way even so ends there, so that a trial costs little. */
void p3_pace_halve(struct p3_pace *pace, uint32_t run, uint64_t now)
{
	uint64_t took = now - pace->began_ns + 1;
	uint32_t half = pace->turns & run / 2;
	uint64_t *mean = pace->other ? &pace->other_ns : &pace->usual_ns;
	uint64_t rival = pace->other ? pace->usual_ns : pace->other_ns;
	uint32_t next;
	pace->began_ns = now;
	if (half && (!rival || took < rival + rival / 4))
		return;
	pace->turns += half;
	if (took < *mean)
		*mean = took; /* the mean may be that of another pattern */
	else if (took > 2 * *mean && *mean)
		took = 2 * *mean; /* a preempted run: the other way is rare */
	p3_pace_learn(pace, pace->other, took);
	next = pace->turns / run;
	pace->other = pace_prefers_other(pace,
		next == 4 || next == 16 || next == 64 || next % P3_COPY_EXPLORE == 0,
		P3_COPY_MARGIN);
}

__attribute__((noinline)) void p3_pace_sent(struct p3_nic *n, uint64_t length, bool lone)
{
	struct p3_pace *pace = &n->pace[2][pace_class_of_copy(length)];
	bool copied = length <= P3_EAGER_MOST_PAST;
	uint32_t run = copied ? P3_COPY_RUN : P3_LONG_COPY_RUN, was = pace->turns;
	pace->turns += lone && !copied ? P3_LONE_TURNS : 1;
	if (p3_likely(!((pace->turns ^ was) & run / 2)))
		return;
	if (!n->crowded) /* nodes that share a CPU share its caches, too */
		p3_pace_halve(pace, run, p3_now_ns());
}

/* ---- the length of cross-memory reads ---- */

#define P3_SEEN 4u /* a length is known after this number of slices */

_Static_assert(P3_SLICE_LEAST << (P3_SLICE_LENGTHS - 1) == P3_SLICE_MOST, "all lengths");

static uint64_t slices_bytes(uint32_t k)
{
	return (uint64_t)P3_SLICE_LEAST << k;
}

void p3_slices_reset(struct p3_slices *s)
{
	*s = (struct p3_slices){.fit = P3_SLICE_LEAST};
}

/* Return the number of the length that a slice counts for.  A slice that takes the
 * rest of its transfer along counts for that length up to a quarter more, and for the
 * next length beyond. */
static uint32_t slices_class(uint64_t len)
{
	uint32_t k = 0;
	while (k < P3_SLICE_LENGTHS - 1 && len > slices_bytes(k) + slices_bytes(k) / 4)
		k++;
	return k;
}

/* Return the number of the next slice's length: the best one, or the next longer one
 * while that is unknown, or at each trial a neighbour of the best one. */
static uint32_t slices_in_force(const struct p3_slices *s)
{
	uint32_t k = s->best;
	bool trial = s->turns % P3_SLICE_TRIAL == P3_SLICE_TRIAL - 1;
	bool up = k < P3_SLICE_LENGTHS - 1 && s->fit > slices_bytes(k);
	bool down = s->turns / P3_SLICE_TRIAL % 2 == 0;
	if (up && s->seen[k] >= P3_SEEN && (s->seen[k + 1] < P3_SEEN || (trial && !down)))
		return k + 1;
	return trial && k > 0 && (down || !up) ? k - 1 : k;
}

uint64_t p3_slices_length(const struct p3_slices *s)
{
	uint64_t len = slices_bytes(slices_in_force(s));
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
static void slices_blend(uint64_t *mean, uint64_t took)
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
static void slices_compare(struct p3_slices *s, uint32_t k)
{
	uint64_t best = s->cost[s->best];
	if (s->seen[k] < P3_SEEN)
		return;
	if (k == s->best + 1 ? s->cost[k] <= best + best / 32
			     : k + 1 == s->best && s->cost[k] < best - best / 16)
		s->best = k;
}

static void slices_learn_pace(struct p3_slices *s, uint64_t len, uint64_t ns)
{
	uint64_t fit = len * P3_SLICE_NS / (ns + 1);
	s->fit = (3 * s->fit + (fit < 2 * P3_SLICE_MOST ? fit : 2 * P3_SLICE_MOST)) / 4;
}

void p3_slices_learn(struct p3_slices *s, uint64_t len, uint64_t ns)
{
	uint32_t k = slices_class(len);
	slices_learn_pace(s, len, ns);
	s->lone_after -= s->lone_after > 0;
	slices_blend(&s->cost[k], (ns << 20) / len + 1);
	s->seen[k] += s->seen[k] < P3_SEEN;
	s->turns++;
	while (s->best && s->fit <= slices_bytes(s->best - 1))
		s->best--; /* P3_SLICE_NS allows no slice of this length any more */
	slices_compare(s, k);
}

void p3_slices_learn_lone(struct p3_slices *s, uint64_t len, uint64_t ns, bool waited)
{
	slices_learn_pace(s, len, ns);
	if (!waited) {
		s->caution -= s->caution > 0;
		return;
	}
	s->lone_after = s->caution > P3_CAUTION ? s->caution : P3_CAUTION;
	s->caution = 2 * s->lone_after;
	if (s->caution > P3_CAUTION_MOST)
		s->caution = P3_CAUTION_MOST;
}
