/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan - what a job will take, before anything starts (--plan)
 *
 * Memory by the formula of shm/footprint.h, hugepages, CPUs and places, descriptors;
 * beside each what there is.  What cannot be is said on stderr.  Programs that are told
 * different settings (-x, a load file) have lines of their own; sums are of all nodes.
 */
#ifndef P3_LAUNCHER_PLAN_H
#define P3_LAUNCHER_PLAN_H

#include "launcher/opt.h"

/* Descriptors of yod's for n nodes. */
uint64_t p3_plan_yod_fds(uint32_t n);

/* 0, or the status to exit with: the job could not run. */
int p3_plan_print(const struct p3_opt *opt, const struct p3_place *place);

#endif
