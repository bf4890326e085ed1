/* SPDX-License-Identifier: BSD-3-Clause */
/* CPUs of the affinity mask and of the cgroup's quota. */
#include "launcher/yod/cpus.h"
#include "shm/cpuset.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_MAX_LEN 1024

static uint32_t affinity(void)
{
	struct p3_cpuset set;
	if (p3_cpuset_read(0, &set) == 0)
		return p3_cpuset_count(&set);
	long n = sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (uint32_t)n : 1;
}

static bool read_line(const char *dir, const char *file, char *line, int len)
{
	char name[2 * NAME_MAX_LEN];
	snprintf(name, sizeof name, "%s/%s", dir, file);
	FILE *f = fopen(name, "re");
	if (!f)
		return false;
	bool ok = fgets(line, len, f) != NULL;
	fclose(f);
	return ok;
}

static uint32_t whole_cpus(long long quota, long long period)
{
	if (quota <= 0 || period <= 0)
		return UINT32_MAX;
	long long n = quota / period;
	if (n < 1)
		return 1;
	return n > P3_CPUS_MOST ? UINT32_MAX : (uint32_t)n;
}

/* Return a group's quota in CPUs.  In v2 it is a line, "max 100000" or "150000 100000";
 * in v1 it is in two files, and -1 means no limit. */
static uint32_t quota_of(const char *dir)
{
	char line[128], more[128];
	long long quota, period;
	if (read_line(dir, "cpu.max", line, sizeof line) &&
		sscanf(line, "%lld %lld", &quota, &period) == 2)
		return whole_cpus(quota, period);
	if (read_line(dir, "cpu.cfs_quota_us", line, sizeof line) &&
		read_line(dir, "cpu.cfs_period_us", more, sizeof more))
		return whole_cpus(atoll(line), atoll(more));
	return UINT32_MAX;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Return the tightest quota of a group and of all groups above it, up to the mount. */
static uint32_t quota_up(const char *mount, const char *path)
{
	char dir[NAME_MAX_LEN];
	size_t mount_len = strlen(mount);
	uint32_t least = UINT32_MAX;
	if (snprintf(dir, sizeof dir, "%s%s", mount, path) >= (int)sizeof dir)
		return UINT32_MAX;
	for (;;) {
		least = smaller(least, quota_of(dir));
		char *slash = strrchr(dir + mount_len, '/');
		if (!slash)
			return least;
		*slash = 0;
	}
}

static bool has_controller(const char *list, const char *name)
{
	size_t len = strlen(name);
	for (const char *at = list; (at = strstr(at, name)); at += len)
		if ((at == list || at[-1] == ',') && (!at[len] || at[len] == ','))
			return true;
	return false;
}

/* Return the quota of a line of /proc/self/cgroup: "0::/path" in v2,
 * "4:cpu,cpuacct:/path" in v1. */
static uint32_t quota_of_line(const char *root, char *line)
{
	char mount[NAME_MAX_LEN];
	char *list = strchr(line, ':');
	char *path = list ? strchr(list + 1, ':') : NULL;
	if (!path)
		return UINT32_MAX;
	*list++ = 0;
	*path++ = 0;
	path[strcspn(path, "\n")] = 0;
	if (*list && !has_controller(list, "cpu"))
		return UINT32_MAX;
	snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s", root, *list ? "/cpu" : "");
	return quota_up(mount, path);
}

uint32_t p3_cpus_quota(const char *root)
{
	char line[NAME_MAX_LEN];
	uint32_t least = UINT32_MAX;
	snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
	FILE *f = fopen(line, "re");
	if (!f)
		return UINT32_MAX;
	while (fgets(line, sizeof line, f))
		least = smaller(least, quota_of_line(root, line));
	fclose(f);
	return least;
}

uint32_t p3_cpus_usable(void)
{
	return smaller(affinity(), p3_cpus_quota(""));
}
