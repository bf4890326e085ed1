/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice between window and cross-memory read, learnt from recent transfers. */
#include "nic/xfer/pace.h"

#include "nic/xfer/slice.h"

/* number of transfers in a run, which one mover moves: each mover leaves its own data in
 * the caches */
#define P3_RUN   8u
#define P3_LEARN 2u /* runs by either mover in turn at first, */
#define P3_EXPLORE                                                                       \
	64u /* then one run in 64 by the mover that seems slower; see explores() */

static struct p3_pace *pace_of(struct p3_nic *n, const struct p3_pull *pull)
{
	return &n->pace[pull->get != NULL][63 - __builtin_clzll(pull->length)];
}

/* Return by how many 32nds of the time of a read a window must be faster.  It also takes
 * time of the peer's CPU, which could read for the peer's own transfers, and fills the
 * peer's cache.  So both nodes gain by a window only if it is faster by 3/32.  Where one
 * node's put follows the other's, and each is read at once, twice as much is needed. */
static uint64_t margin_of(const struct p3_pull *pull)
{
	return pull->length <= P3_LONE_MOST && !pull->get ? 6 : 3;
}

/* Return true if a run uses the mover that seems slower.  The first times of either mover
 * may be those of a disturbed machine, so it is tried again soon. */
static bool explores(uint32_t run)
{
	return run < P3_EXPLORE ? (run & (run - 1)) == 0 : run % P3_EXPLORE == 0;
}

/* Return true if the next run uses windows, false if it uses cma: at first each in turn,
 * then the faster one, and now and then the slower one. */
static bool bulk_is_better(const struct p3_pace *pace, uint64_t margin)
{
	uint32_t run = pace->turns / P3_RUN;
	if (run < P3_LEARN)
		return run % 2 == 0;
	return (pace->bulk_ns < pace->cma_ns - pace->cma_ns * margin / 32) !=
	       explores(run);
}

/* Return true if a transfer is timed.  Those in the first half of a run are not, since
 * they find the other mover's data in the caches.  Once both movers have been measured,
 * only the last one of a run of short transfers is timed. */
static bool counts(const struct p3_pace *pace, uint64_t length)
{
	bool rarely = length < P3_SLICE_LEAST && pace->turns >= P3_LEARN * P3_RUN;
	return pace->turns % P3_RUN >= (rarely ? P3_RUN - 1 : P3_RUN / 2);
}

bool p3_xfer_pick(struct p3_nic *n, struct p3_pull *pull)
{
	struct p3_pace *pace = pace_of(n, pull);
	if (pace->turns % P3_RUN == 0)
		pace->bulk = bulk_is_better(pace, margin_of(pull));
	pull->began = pace->bulk ? P3_MOVE_BULK : P3_MOVE_CMA;
	pull->began_ns = counts(pace, pull->length) ? p3_now_ns() : 0;
	pull->began_moved = n->moved;
	pace->turns++;
	return pace->bulk;
}

uint64_t p3_pace_share(uint64_t took, uint64_t length, uint64_t moved)
{
	return moved > length ? took * (length / 64 + 1) / (moved / 64 + 1) + 1 : took;
}

void p3_pace_learn(struct p3_pace *pace, enum p3_mover began, uint64_t took)
{
	uint64_t *mean = began == P3_MOVE_BULK ? &pace->bulk_ns : &pace->cma_ns;
	if (took < *mean / 4 || !*mean)
		*mean = took;
	else if (took < *mean)
		*mean = (*mean + took) / 2;
	else /* limit the step: a thread may have been preempted */
		*mean += (took < 4 * *mean ? took - *mean : 3 * *mean) / 8;
}

void p3_xfer_learn(struct p3_nic *n, const struct p3_pull *pull)
{
	if (!pull->began_ns)
		return;
	uint64_t took = p3_now_ns() - pull->began_ns + 1;
	p3_pace_learn(pace_of(n, pull), pull->began,
		p3_pace_share(took, pull->length, n->moved - pull->began_moved));
}
