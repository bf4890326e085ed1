/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * movers - the reader's side of long transfers: movers, and what is learnt of their pace
 *
 * Only files of this room call these functions, and the lease holder only.  Their state
 * is struct p3_pull, this node's words to the peer (p->mine), the members of the peer
 * about windows and its process, n->pace, and n->slices, the length of cross-memory
 * reads.
 */
#ifndef P3_NIC_XFER_MOVERS_H
#define P3_NIC_XFER_MOVERS_H

#include "nic/xfer/xfer.h"
#include "shm/atomics.h"

/* The result of an attempt to move a slice.  A transfer that failed cannot go on. */
enum p3_moved { P3_MOVED_NOTHING, P3_MOVED, P3_MOVE_FAILED };

/* Move a slice.  A pull that has a window reads from the owner's memory, too, while the
 * window is empty. */
enum p3_moved p3_xfer_move_window(struct p3_nic *n, struct p3_pull *pull);
enum p3_moved p3_xfer_move_cma(struct p3_nic *n, struct p3_pull *pull);
enum p3_moved p3_xfer_move_direct(struct p3_nic *n, struct p3_pull *pull);
enum p3_moved p3_xfer_move_fetch(struct p3_nic *n, struct p3_pull *pull);

/* Request a window.  Return P3_MOVED_NOTHING if the next pass has to try again, since the
 * source's bytes are changing, and some of them have been read. */
enum p3_moved p3_xfer_enter_window(struct p3_nic *n, struct p3_pull *pull);
/* Give up the window, if the pull has one. */
void p3_xfer_leave_window(struct p3_pull *pull);
/* Return true if the wire may fetch the pull's bytes. */
bool p3_xfer_may_fetch(const struct p3_pull *pull);
/* Give up the fetches of a pull, if it has any. */
void p3_xfer_leave_fetches(struct p3_pull *pull);
/* Return true if the pull may read the owner's memory. */
bool p3_xfer_may_cma(const struct p3_pull *pull);
/* Tell the put's source that the pull reads no more (XFER.5). */
void p3_xfer_recant(struct p3_pull *pull);

/* ---- pace: the choice between window and cross-memory read ---- */

/*
 * For every power of two of lengths the reader keeps the recent time of both movers,
 * and moves most transfers by the faster one, a few by the other.  The faster mover
 * depends on the machine, on the length, and on the owner, which must run passes to fill
 * a window.
 */

/* Choose the mover of a transfer that may use a window (bulk) or cma, and begin to time
 * the transfer.  Return true for a window. */
bool p3_xfer_pick(struct p3_nic *n, struct p3_pull *pull);
/* Return the transfer's share of its duration took, by its length, if all transfers
 * together have moved `moved` bytes in that time.  With the whole duration, a transfer
 * that takes turns with others would look slow, and one with a window, which takes the
 * others' time, would look fast. */
uint64_t p3_pace_share(uint64_t took, uint64_t length, uint64_t moved);
/* Let a duration count in the mean of its way. */
void p3_pace_learn(struct p3_pace *pace, bool other, uint64_t took);
/* Turns in a run of one way, of puts up to P3_EAGER_MOST_PAST and of longer ones; powers
 * of two.  A put is a turn.  The second half of a run is timed: a program that sends many
 * puts and then waits for all of them should wait within that half.  A longer put that
 * the program sends when no request is under way counts as P3_LONE_TURNS, since a program
 * that waits for each of its puts needs no such long halves. */
#define P3_COPY_RUN      256u
#define P3_LONG_COPY_RUN 128u
#define P3_LONE_TURNS    4u
/* Note that at time now half a run of puts has been sent, by pace->turns, and choose the
 * way of the next run behind the second half. */
void p3_pace_halve(struct p3_pace *pace, uint32_t run, uint64_t now);
/* If the transfer was timed, let its duration count in the mean of the mover that began
 * it. */
void p3_xfer_learn(struct p3_nic *n, const struct p3_pull *pull);

/* ---- slices: the length of cross-memory reads, learnt from recent ones ---- */

/*
 * The four lengths are P3_SLICE_LEAST, doubled up to P3_SLICE_MOST.  The length in force
 * is the one that took the least time for each byte.  No length is used that takes more
 * than P3_SLICE_NS at the pace of the last slices, except the least one and the last
 * slice of a transfer, which takes a rest of up to half its length along.  One slice in
 * P3_SLICE_TRIAL has a neighbouring length.
 *
 * A slice may be longer, up to P3_LONE_MOST, while the node has nothing else to do: each
 * slice costs a pass, whose lines the copy has pushed out of the cache.  Only the past
 * can tell whether a message or a command will come meanwhile.  If something has waited
 * for a lone slice, the next P3_CAUTION slices are not lone, and twice as many each
 * further time; a lone slice for which nothing has waited takes one of that number back.
 *
 * The functions read no clock.
 */

#define P3_SLICE_LEAST  65536u  /* a slice has at least this number of bytes, */
#define P3_SLICE_MOST   524288u /* and at most this number */
#define P3_SLICE_NS     10000u  /* longest duration of a slice */
#define P3_SLICE_TRIAL  64u
#define P3_LONE_MOST    1048576u /* most bytes of a lone slice, */
#define P3_LONE_NS      100000u  /* and its longest duration */
#define P3_CAUTION      16u      /* slices between two lone ones, at first */
#define P3_CAUTION_MOST 4096u

/* Return the greatest length of a slice that takes the rest of its transfer with it. */
static inline uint64_t p3_slices_and_rest(uint64_t slice)
{
	return slice + slice / 2;
}

/* Forget all that was learnt. */
void p3_slices_reset(struct p3_slices *s);
/* Return the length of the next slice, whole pages. */
uint64_t p3_slices_length(const struct p3_slices *s);
/* Return the greatest length of the next slice if the node has nothing else to do, at
 * least p3_slices_length(). */
uint64_t p3_slices_lone_length(const struct p3_slices *s);
/* Take into account that a slice of len bytes, at least P3_SLICE_LEAST, took ns. */
void p3_slices_learn(struct p3_slices *s, uint64_t len, uint64_t ns);
/* Do so after a slice longer than p3_slices_length(); waited: something came during the
 * slice and had to wait for its end. */
void p3_slices_learn_lone(struct p3_slices *s, uint64_t len, uint64_t ns, bool waited);

#endif
