/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpus - the number of CPUs that the job may use
 *
 * It is the CPUs of the affinity mask, or the cgroup's quota if that is less (whole
 * CPUs, at least 1).  A limit that cannot be read counts as none.  Any thread may call
 * these functions; there is no state.
 */
#ifndef P3_LAUNCHER_CPUS_H
#define P3_LAUNCHER_CPUS_H

#include <stdint.h>

uint32_t p3_cpus_usable(void);

/* Return the quota below another root directory than "" (tests). */
uint32_t p3_cpus_quota(const char *root);

#endif
