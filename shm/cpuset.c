/* SPDX-License-Identifier: BSD-3-Clause */
/* Affinity masks of threads as sets of CPUs, and sets of CPUs as text. */
#include "shm/cpuset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Parse a number.  Return the text behind it, or NULL. */
static const char *cpulist_number(const char *text, int *out)
{
	char *end;
	if (*text < '0' || *text > '9')
		return NULL;
	unsigned long n = strtoul(text, &end, 10);
	*out = (int)n;
	return n < P3_CPUS_MOST ? end : NULL;
}

/* Add "2" or "2-5" to the set.  Return the text behind it, or NULL. */
static const char *cpulist_range(const char *text, struct p3_cpuset *set)
{
	int from = 0, to;
	text = cpulist_number(text, &from);
	to = from;
	if (text && *text == '-')
		text = cpulist_number(text + 1, &to);
	if (!text || to < from)
		return NULL;
	for (int cpu = from; cpu <= to; cpu++)
		p3_cpuset_add(set, (uint32_t)cpu);
	return text;
}

bool p3_cpulist_parse(const char *text, struct p3_cpuset *set_out)
{
	struct p3_cpuset set = {{0}};
	text = cpulist_range(text, &set);
	while (text && *text == ',')
		text = cpulist_range(text + 1, &set);
	if (!text || strcmp(text, *text == '\n' ? "\n" : "") != 0)
		return false;
	*set_out = set;
	return true;
}

void p3_cpulist_print(const struct p3_cpuset *set, char *text_out, size_t len)
{
	size_t at = 0;
	*text_out = 0;
	for (unsigned cpu = 0; cpu < P3_CPUS_MOST && at < len; cpu++) {
		if (!p3_cpuset_has(set, cpu))
			continue;
		unsigned end = cpu;
		while (end + 1 < P3_CPUS_MOST && p3_cpuset_has(set, end + 1))
			end++;
		at += (size_t)snprintf(text_out + at, len - at,
			end > cpu ? "%s%u-%u" : "%s%u", at ? "," : "", cpu, end);
		cpu = end;
	}
}
