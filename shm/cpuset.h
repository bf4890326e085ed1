/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cpuset - sets of CPUs on machines of any size, and how many CPUs may be used
 *
 * A cpu_set_t has room for 1,024 CPUs, and sched_getaffinity() fails with EINVAL if the
 * kernel may have more.  No kernel has more than 8,192 (NR_CPUS of x86 and Power), so a
 * set has a fixed size and needs no allocation.  Any thread may call these functions;
 * there is no state.
 *
 * As text a set is a list in the kernel's form: numbers and ranges with commas, in any
 * order, without blanks, as in "0,2-3".
 */
#ifndef P3_SHM_CPUSET_H
#define P3_SHM_CPUSET_H

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#define P3_CPUS_MOST     8192u /* CPUs are numbered from 0 to P3_CPUS_MOST - 1 */
#define P3_CPUSET_WORD   (sizeof(unsigned long) * CHAR_BIT)
#define P3_CPUSET_LENGTH (P3_CPUS_MOST / P3_CPUSET_WORD)

/* A set in the kernel's form; {{0}} is empty. */
struct p3_cpuset {
	unsigned long word[P3_CPUSET_LENGTH];
};

static inline void p3_cpuset_add(struct p3_cpuset *set, uint32_t cpu)
{
	set->word[cpu / P3_CPUSET_WORD] |= 1ul << cpu % P3_CPUSET_WORD;
}

static inline bool p3_cpuset_has(const struct p3_cpuset *set, uint32_t cpu)
{
	return set->word[cpu / P3_CPUSET_WORD] >> cpu % P3_CPUSET_WORD & 1;
}

/* Return the set with this CPU alone. */
static inline struct p3_cpuset p3_cpuset_of(uint32_t cpu)
{
	struct p3_cpuset set = {{0}};
	p3_cpuset_add(&set, cpu);
	return set;
}

static inline uint32_t p3_cpuset_count(const struct p3_cpuset *set)
{
	uint32_t n = 0;
	for (size_t i = 0; i < P3_CPUSET_LENGTH; i++)
		n += (uint32_t)__builtin_popcountl(set->word[i]);
	return n;
}

/* Return the first CPU of a set, or P3_CPUS_MOST if the set is empty. */
static inline uint32_t p3_cpuset_first(const struct p3_cpuset *set)
{
	uint32_t cpu = 0;
	while (cpu < P3_CPUS_MOST && !p3_cpuset_has(set, cpu))
		cpu++;
	return cpu;
}

static inline bool p3_cpuset_equal(const struct p3_cpuset *a, const struct p3_cpuset *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

/* Remove the CPUs that the other set lacks. */
static inline void p3_cpuset_keep(struct p3_cpuset *set, const struct p3_cpuset *other)
{
	for (size_t i = 0; i < P3_CPUSET_LENGTH; i++)
		set->word[i] &= other->word[i];
}

/* Remove the CPUs that the other set has. */
static inline void p3_cpuset_remove(struct p3_cpuset *set, const struct p3_cpuset *other)
{
	for (size_t i = 0; i < P3_CPUSET_LENGTH; i++)
		set->word[i] &= ~other->word[i];
}

/* Read the affinity mask of a process; 0 is the calling thread.  Return 0 or -errno. */
int p3_cpuset_read(pid_t pid, struct p3_cpuset *set_out);

/* Set the affinity mask of the calling thread.  Return 0 or -errno. */
int p3_cpuset_apply(const struct p3_cpuset *set);

/* bytes that the text of any set fits in; a set full of holes has the longest */
#define P3_CPULIST_LEN 40960

/* Parse a list, with or without a newline at its end.  Return false if the text is not
 * a list or the list is empty. */
bool p3_cpulist_parse(const char *text, struct p3_cpuset *set_out);

/* Print the shortest text of a set, cut off if len is less than P3_CPULIST_LEN. */
void p3_cpulist_print(const struct p3_cpuset *set, char *text_out, size_t len);

static inline uint32_t p3_cpus_fewer(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Return the tightest quota of the process's control groups in whole CPUs, at least 1, or
 * UINT32_MAX for none.  One that cannot be read is none. */
uint32_t p3_cpus_quota(void);

/* Return the number of CPUs that this thread may use by affinity and quota, at least
 * 1. */
uint32_t p3_cpus_usable(void);

#endif
