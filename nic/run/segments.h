/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * segments - the memory of a NIC: its segments, and its private tables
 *
 * The thread that starts or stops the NIC calls these functions, when no other thread
 * uses the NIC.  The state is the segments and the tables in struct p3_nic.
 */
#ifndef P3_NIC_RUN_SEGMENTS_H
#define P3_NIC_RUN_SEGMENTS_H

#include "nic/state.h"

/* Make the published segment, the doorbell and the host segment.  Return 0, or -errno if
 * one of them cannot be made: then none is left. */
int p3_segments_make(struct p3_nic *n);
void p3_segments_drop(struct p3_nic *n);
/* Allocate peers, ids, transfers and copies.  Return 0 or -ENOMEM: call
 * p3_segments_drop_private() then, too. */
int p3_segments_make_private(struct p3_nic *n);
void p3_segments_drop_private(struct p3_nic *n);

#endif
