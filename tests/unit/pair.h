/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair - two processes that map each other's segment, as nodes of a job do
 *
 * Each makes a segment, seals it and hands the descriptor to the other, which can map it
 * read-only; and a doorbell page, which both map writable.
 */
#ifndef P3_UNIT_PAIR_H
#define P3_UNIT_PAIR_H

#include "shm/layout.h"
#include "shm/seg.h"

#include <sys/types.h>

#define PAIR_LEN  ((uint64_t)P3_HUGE)
#define PAIR_USED 65536u /* bytes of a segment that may be used, zero at first */

struct pair {
	int sock;
	struct p3_seg own, bell;
	void *peer; /* the other's segment, read-only */
	void *peer_bell;
	void *arg;
};

/*
 * Start the child, which runs side(its half), and make this process's half.  The first
 * words of the two segments are set to first.  Both halves must then call pair_meet().
 */
pid_t pair_start(
	struct pair *half, uint64_t first, int (*side)(struct pair *), void *arg);

/* Return when both have called it; return false if the other process is gone. */
bool pair_meet(struct pair *half);
void pair_end(struct pair *half);

#endif
