/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan - the resources that a job will take, before anything starts (--plan)
 *
 * It prints memory by the formula of shm/footprint.h, hugepages, CPUs and places,
 * descriptors, and beside each the supply of the machine.  Reasons why the job cannot
 * run go to stderr.  Programs with different settings (-x, a load file) have lines of
 * their own; sums are over all nodes.  yod's main thread calls these functions; there is
 * no state.
 */
#ifndef P3_LAUNCHER_PLAN_H
#define P3_LAUNCHER_PLAN_H

#include "launcher/yod/opt.h"

/* Return the number of descriptors that yod, or an agent, needs for n nodes that call
 * PtlInit. */
uint64_t p3_plan_yod_fds(const struct p3_opt *opt, uint32_t n, bool agent);

/* Return false, after an error line, if the hard limit of open files is below that. */
bool p3_plan_check_fds(const struct p3_opt *opt, uint32_t n, bool agent);

/* Print the hosts of a job and the ranks of each.  Return 0. */
int p3_plan_print_hosts(const struct p3_opt *opt);

/* Print the plan.  Return 0, or the exit status if the job could not run. */
int p3_plan_print(const struct p3_opt *opt, const struct p3_place *place);

#endif
