/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slices - the length of cross-memory reads, learnt from recent ones
 *
 * The four lengths are P3_SLICE_LEAST, doubled up to P3_SLICE_MOST.  The length in force
 * is the one that took the least time for each byte.  No length is used that takes more
 * than P3_SLICE_NS at the pace of the last slices, except the least one.  One slice in
 * P3_SLICE_TRIAL has a neighbouring length.
 *
 * The functions read no clock; their state is struct p3_slices, which the lease holder
 * owns.
 */
#ifndef P3_NIC_XFER_SLICES_H
#define P3_NIC_XFER_SLICES_H

#include "nic/xfer/state.h"

#define P3_SLICE_LEAST 65536u  /* a slice has at least this number of bytes, */
#define P3_SLICE_MOST  524288u /* and at most this number */
#define P3_SLICE_NS    10000u  /* longest duration of a slice */
#define P3_SLICE_TRIAL 64u

/* Forget all that was learnt. */
void p3_slices_reset(struct p3_slices *s);
/* Return the length of the next slice, whole pages. */
uint64_t p3_slices_length(const struct p3_slices *s);
/* Take into account that a slice of len bytes, at least P3_SLICE_LEAST, took ns. */
void p3_slices_learn(struct p3_slices *s, uint64_t len, uint64_t ns);

#endif
