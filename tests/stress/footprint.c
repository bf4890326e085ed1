/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * footprint - the resources of a node when all have joined and nothing was sent: a
 * fixed number of descriptors for any size of the job, and memory as in shm/footprint.h
 */
#include "../mp/mp.h"
#include "../support/patience.h"
#include "shm/footprint.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct count {
	unsigned fds;
	uint64_t bytes; /* bytes of memfds that have memory */
};

/* Count the memory of descriptors of files without names. */
static struct count count(void)
{
	struct count c = {0, 0};
	char path[32], to[64];
	DIR *d = opendir("/proc/self/fd");
	mp_check(d, "no /proc");
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		int fd = atoi(e->d_name);
		if (*e->d_name == '.' || fd == dirfd(d))
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t n = readlink(path, to, sizeof to - 1);
		to[n > 0 ? n : 0] = '\0';
		if (!strncmp(to, "/memfd:p3-", 10) && fstat(fd, &st) == 0)
			c.bytes += (uint64_t)st.st_blocks * 512;
		c.fds += fd > 2;
	}
	closedir(d);
	return c;
}

/* Count when the births are taken: each brings descriptors that are closed at once. */
static struct count settled(unsigned fds)
{
	struct patience p = patience_begin();
	struct count c;
	while ((c = count()).fds > fds && !patience_is_over(&p))
		usleep(1000);
	return c;
}

static uint32_t records(void)
{
	const char *text = getenv("PTL3_TRACE");
	return text ? (uint32_t)atoi(text) : 0;
}

int main(void)
{
	unsigned before = count().fds; /* the lifeline is among them */
	mp_start();
	mp_barrier();
	unsigned more = before + P3_NODE_FDS - 1;
	struct count now = settled(more);
	uint64_t want = p3_footprint_of(mp.size, false, records()).start;
	mp_check(now.fds == more, "%u descriptors before, %u now", before, now.fds);
	mp_check(now.bytes == want, "%llu bytes, not %llu", (unsigned long long)now.bytes,
		(unsigned long long)want);
	if (mp.rank == 0)
		printf("%u nodes: each node %d descriptors, %llu bytes\n", mp.size,
			P3_NODE_FDS, (unsigned long long)now.bytes);
	mp_end();
	return 0;
}
