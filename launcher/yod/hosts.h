/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hosts - the hosts of a job, and the ranks of each
 *
 *	--hosts c1,c2		the ranks in even blocks
 *	--hosts c1:4,c2:2	ranks 0 to 3 on c1, 4 and 5 on c2
 *	--hostfile F		a host in each line: c1, c1:4 or c1 slots=4; # a comment
 *
 * If any host has a number of slots, hosts without one have one slot.  An IPv6 address
 * stands in brackets: [fe80::1]:4.  yod's main thread calls these functions before the
 * job starts; the state is struct p3_hosts.
 */
#ifndef P3_LAUNCHER_HOSTS_H
#define P3_LAUNCHER_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#define P3_HOST_NAMES 64 /* letters of a name at most */

struct p3_host {
	char name[P3_HOST_NAMES + 1];
	uint32_t slots; /* 0: none were given */
	uint32_t first; /* its first rank */
	uint32_t size;  /* number of its ranks */
};

struct p3_hosts {
	uint32_t n; /* 0: the job runs on this host, without agents */
	struct p3_host *host;
};

/* Read a list, or a file of hosts.  Return 0, -EINVAL after a line, or -ENOMEM. */
int p3_hosts_parse(const char *list, struct p3_hosts *hosts_out);
int p3_hosts_read(const char *file, struct p3_hosts *hosts_out);

/* Give each host its block of the job's ranks, and drop hosts without any.  Return 0, or
 * -EINVAL after a line. */
int p3_hosts_place(struct p3_hosts *hosts, uint32_t size);

/* Return the host of a rank. */
const struct p3_host *p3_hosts_of(const struct p3_hosts *hosts, uint32_t rank);

#endif
