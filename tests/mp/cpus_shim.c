/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpus_shim - LD_PRELOAD: a kernel for 4,096 CPUs, for many_cpus in jobs.sh
 *
 * As such a kernel does, sched_getaffinity() fails with EINVAL if the caller's set has
 * room for fewer CPUs.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CPUS = 4096 };

int sched_getaffinity(pid_t pid, size_t len, cpu_set_t *set)
{
	if (len < CPUS / 8) {
		errno = EINVAL;
		return -1;
	}
	long got = syscall(SYS_sched_getaffinity, pid, len, set);
	if (got < 0)
		return -1;
	memset((char *)set + got, 0, len - (size_t)got);
	return 0;
}
