/* SPDX-License-Identifier: BSD-3-Clause */
/* Affinity masks of threads as sets of CPUs, sets of CPUs as text, and quotas. */
#include "shm/cpuset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- the quota of the control group ---- */

#define QUOTA_NAME_LEN 1024

static uint32_t quota_whole_cpus(long long quota, long long period)
{
	if (quota <= 0 || period <= 0)
		return UINT32_MAX;
	long long n = quota / period;
	if (n < 1)
		return 1;
	return n > P3_CPUS_MOST ? UINT32_MAX : (uint32_t)n;
}

/* Read at most two numbers from a file of a group.  Return how many there are. */
static int quota_read(const char *dir, const char *name, long long number_out[2])
{
	char path[QUOTA_NAME_LEN + 32];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "re");
	int n = f ? fscanf(f, "%lld %lld", &number_out[0], &number_out[1]) : 0;
	if (f)
		fclose(f);
	return n;
}

/* Return a group's quota in CPUs.  In v2 it is a line, "max 100000" or "150000 100000";
 * in v1 it is in two files, and -1 means no limit. */
static uint32_t quota_of(const char *dir)
{
	long long quota[2], period[2];
	if (quota_read(dir, "cpu.max", quota) == 2)
		return quota_whole_cpus(quota[0], quota[1]);
	if (quota_read(dir, "cpu.cfs_quota_us", quota) == 1 &&
		quota_read(dir, "cpu.cfs_period_us", period) == 1)
		return quota_whole_cpus(quota[0], period[0]);
	return UINT32_MAX;
}

/* Return the tightest quota of a group and of all groups above it, up to the mount. */
static uint32_t quota_up(const char *mount, const char *path)
{
	char dir[QUOTA_NAME_LEN];
	size_t mount_len = strlen(mount);
	uint32_t least = UINT32_MAX;
	if (snprintf(dir, sizeof dir, "%s%s", mount, path) >= (int)sizeof dir)
		return UINT32_MAX;
	for (;;) {
		least = p3_cpus_fewer(least, quota_of(dir));
		char *slash = strrchr(dir + mount_len, '/');
		if (!slash)
			return least;
		*slash = 0;
	}
}

static bool quota_has_controller(const char *list, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = list; (at = strstr(at, name)); at += len)
		if ((at == list || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* Return the quota of a line of /proc/self/cgroup: "0::/path" in v2,
 * "4:cpu,cpuacct:/path" in v1. */
static uint32_t quota_of_line(char *line)
{
	char *list = strchr(line, ':');
	char *path = list ? strchr(list + 1, ':') : NULL;
	if (!path)
		return UINT32_MAX;
	*list++ = 0;
	*path++ = 0;
	path[strcspn(path, "\n")] = 0;
	if (*list && !quota_has_controller(list, "cpu"))
		return UINT32_MAX;
	return quota_up(*list ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup", path);
}

uint32_t p3_cpus_quota(void)
{
	char line[QUOTA_NAME_LEN];
	uint32_t least = UINT32_MAX;
	FILE *f = fopen("/proc/self/cgroup", "re");
	if (!f)
		return UINT32_MAX;
	while (fgets(line, sizeof line, f))
		least = p3_cpus_fewer(least, quota_of_line(line));
	fclose(f);
	return least;
}

uint32_t p3_cpus_usable(void)
{
	struct p3_cpuset set;
	uint32_t quota = p3_cpus_quota();
	if (p3_cpuset_read(0, &set) == 0)
		return p3_cpus_fewer(p3_cpuset_count(&set), quota);
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return p3_cpus_fewer(n > 0 ? (uint32_t)n : 1, quota);
}
