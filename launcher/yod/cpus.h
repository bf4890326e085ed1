/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpus - the number of CPUs that the job may use
 *
 * The number is that of the CPUs in the affinity mask, or the cgroup's quota in whole
 * CPUs (at least 1) if that is less.  A limit that cannot be read is ignored.  Any
 * thread may call these functions; there is no state.
 */
#ifndef P3_LAUNCHER_CPUS_H
#define P3_LAUNCHER_CPUS_H

#include <stdint.h>

uint32_t p3_cpus_usable(void);

/* Return the cgroup's quota, or UINT32_MAX for none.  Tests give another directory
 * instead of "" as the root of /proc and /sys. */
uint32_t p3_cpus_quota(const char *root);

#endif
