/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slices - the length of cross-memory reads, learnt from recent ones
 *
 * The four lengths are P3_SLICE_LEAST, doubled up to P3_SLICE_MOST.  The length in force
 * is the one that took the least time for each byte.  No length is used that takes more
 * than P3_SLICE_NS at the pace of the last slices, except the least one.  One slice in
 * P3_SLICE_TRIAL has a neighbouring length.
 *
 * A slice may be longer, up to P3_LONE_MOST, while the node has nothing else to do: each
 * slice costs a pass, whose lines the copy has pushed out of the cache.  Only the past
 * can tell whether a message or a command will come meanwhile.  If something has waited
 * for a lone slice, the next P3_CAUTION slices are not lone, and twice as many each
 * further time; a lone slice for which nothing has waited takes one of that number back.
 *
 * The functions read no clock; their state is struct p3_slices, which the lease holder
 * owns.
 */
#ifndef P3_NIC_XFER_SLICES_H
#define P3_NIC_XFER_SLICES_H

#include "nic/xfer/state.h"

#define P3_SLICE_LEAST  65536u  /* a slice has at least this number of bytes, */
#define P3_SLICE_MOST   524288u /* and at most this number */
#define P3_SLICE_NS     10000u  /* longest duration of a slice */
#define P3_SLICE_TRIAL  64u
#define P3_LONE_MOST    1048576u /* most bytes of a lone slice, */
#define P3_LONE_NS      100000u  /* and its longest duration */
#define P3_CAUTION      16u      /* slices between two lone ones, at first */
#define P3_CAUTION_MOST 4096u

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
