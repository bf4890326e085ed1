/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpus - the CPUs of a program, on machines of any size
 *
 * A cpu_set_t has room for 1,024 CPUs, and sched_getaffinity() fails if the kernel may
 * have more; no kernel has more than 8,192.
 */
#ifndef P3_BENCH_CPUS_H
#define P3_BENCH_CPUS_H

#include <sched.h>
#include <stdbool.h>

enum { CPUS_SETS = 8, CPUS_MOST = CPUS_SETS * CPU_SETSIZE };

struct cpus {
	cpu_set_t set[CPUS_SETS];
};

/* Read the CPUs of this thread.  Return false with errno if that fails. */
static inline bool cpus_read(struct cpus *c)
{
	return sched_getaffinity(0, sizeof c->set, c->set) == 0;
}

static inline unsigned cpus_count(const struct cpus *c)
{
	return (unsigned)CPU_COUNT_S(sizeof c->set, c->set);
}

/* Return the CPU with this number in the set, counting round, or -1 if the set is
 * empty. */
static inline int cpus_nth(const struct cpus *c, unsigned n)
{
	unsigned left = cpus_count(c) ? n % cpus_count(c) : 0;
	for (unsigned cpu = 0; cpu < CPUS_MOST; cpu++)
		if (CPU_ISSET_S(cpu, sizeof c->set, c->set) && left-- == 0)
			return (int)cpu;
	return -1;
}

/* Pin this thread to a CPU.  Return false with errno if that fails. */
static inline bool cpus_pin(int cpu)
{
	struct cpus one;
	CPU_ZERO_S(sizeof one.set, one.set);
	CPU_SET_S((size_t)cpu, sizeof one.set, one.set);
	return sched_setaffinity(0, sizeof one.set, one.set) == 0;
}

#endif
