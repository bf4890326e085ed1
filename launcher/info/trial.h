/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trial - which mover moves puts of each length on this machine, and why
 *
 * portals-info starts jobs of two ranks: one that chooses as programs do, and one for
 * each mover that is forced.  Rank 1 puts private memory into that of rank 0, one put
 * behind the ACK of the other.  Rank 1 prints the time of each length, rank 0 the bytes
 * that each mover has moved.
 */
#ifndef P3_LAUNCHER_INFO_TRIAL_H
#define P3_LAUNCHER_INFO_TRIAL_H

#include <jansson.h>

/* Be a rank of a trial.  Return the exit status. */
int info_trial_rank(void);
/* Run the trials, and return an array with a row for each length, or NULL after an error
 * line. */
json_t *info_trial(void);

#endif
