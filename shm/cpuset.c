/* SPDX-License-Identifier: BSD-3-Clause */
/* Affinity masks of threads, as sets of CPUs. */
#include "shm/cpuset.h"

#include <errno.h>

int p3_cpuset_read(pid_t pid, struct p3_cpuset *set_out)
{
	struct p3_cpuset set = {{0}};
	if (sched_getaffinity(pid, sizeof set, (cpu_set_t *)(void *)set.word))
		return -errno;
	*set_out = set;
	return 0;
}

int p3_cpuset_apply(const struct p3_cpuset *set)
{
	const void *mask = set->word;
	return sched_setaffinity(0, sizeof *set, (const cpu_set_t *)mask) ? -errno : 0;
}
