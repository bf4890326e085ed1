/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpus - how many CPUs the job may use
 *
 * The CPUs of the affinity mask, or what the cgroup's quota pays for if that is less
 * (whole CPUs, at least 1).  What cannot be read is taken as no limit.
 */
#ifndef P3_LAUNCHER_CPUS_H
#define P3_LAUNCHER_CPUS_H

#include <stdint.h>

uint32_t p3_cpus_usable(void);

/* The same with another root directory in place of "" (tests). */
uint32_t p3_cpus_quota(const char *root);

#endif
