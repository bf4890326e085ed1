/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * footprint - what a node has when all have joined and nothing was sent: as many
 * descriptors whatever the job's size, and memory by the formula of docs/decisions.md
 */
#include "../mp/mp.h"
#include "shm/layout.h"
#include "shm/mailbox.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BY_THE_LIBRARY = 6 }; /* lifeline, eventfd, heap and three segments */

struct count {
	unsigned fds;
	uint64_t bytes; /* of memfds, really there */
};

/* Memory of descriptors that name files without names. */
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

int main(void)
{
	unsigned before = count().fds; /* the lifeline is among them */
	mp_start();
	mp_barrier();
	struct count now = count();
	struct p3_layout l = p3_layout_of(mp.size);
	uint64_t want = l.ctl_len + P3_WINDOW_LEN + P3_PAGE +
			p3_round_up(sizeof(struct p3_mailbox), P3_PAGE);
	mp_check(now.fds == before + BY_THE_LIBRARY - 1, "%u descriptors before, %u now",
		before, now.fds);
	mp_check(now.bytes == want, "%llu bytes, not %llu", (unsigned long long)now.bytes,
		(unsigned long long)want);
	if (mp.rank == 0)
		printf("%u nodes: %u descriptors, %llu KiB each\n", mp.size,
			BY_THE_LIBRARY, (unsigned long long)want >> 10);
	mp_end();
	return 0;
}
