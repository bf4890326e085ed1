/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * maps - after traffic of all kinds: memory of other nodes is mapped read-only and
 * stays so; executed programs inherit none of the library's descriptors
 */
#include "mp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 300000, BITS = 1 };

static void traffic(void)
{
	static const ptl_size_t lengths[] = {8, 5000, LENGTH};
	static char got[LENGTH];
	ptl_handle_eq_t eq = mp_queue(256);
	ptl_handle_md_t md = mp_bind(mp_pattern, MP_PATTERN, eq, 0);
	ptl_handle_md_t here = mp_bind(got, sizeof got, eq, 0);
	for (int i = 0; i < 60; i++) {
		unsigned peer = (mp.rank + 1 + (unsigned)i) % mp.size;
		mp_put(md, 0, lengths[i % 3], PTL_ACK_REQ, peer, BITS, 0, 0);
		(void)mp_expect(eq, PTL_EVENT_SEND_END);
		(void)mp_expect(eq, PTL_EVENT_ACK);
		mp_get(here, 0, lengths[i % 3], peer, BITS, 0);
		(void)mp_expect(eq, PTL_EVENT_REPLY_END);
	}
}

struct count {
	unsigned own, peers, pages, doorbells, sleepers, hosts, heaps, own_heaps;
};

static void try_to_write(unsigned long from, unsigned long to)
{
	int rc = mprotect((void *)from, to - from, PROT_READ | PROT_WRITE);
	mp_check(rc != 0 && errno == EACCES, "a peer's segment can be made writable");
}

static void look_at(const char *line, struct count *c)
{
	unsigned long from, to, offset;
	char mode[8];
	if (sscanf(line, "%lx-%lx %7s %lx", &from, &to, mode, &offset) != 4)
		return;
	if (strstr(line, "p3-published") && strcmp(mode, "r--s") == 0) {
		*(to - from == 4096 ? &c->pages : &c->peers) += 1;
		try_to_write(from, to);
	} else if (strstr(line, "p3-published")) {
		mp_check(strcmp(mode, "rw-s") == 0, "%s", line);
		c->own += !offset; /* the unreserved rest is another line */
	} else if (strstr(line, "p3-heap") && strcmp(mode, "r--s") == 0) {
		c->heaps++;
		try_to_write(from, to);
	} else if (strstr(line, "p3-heap")) {
		mp_check(strcmp(mode, "rw-s") == 0, "%s", line);
		c->own_heaps += !offset;
	} else if (strstr(line, "p3-doorbell")) {
		mp_check(strcmp(mode, "rw-s") == 0 && to - from == 4096, "%s", line);
		c->doorbells++;
	} else if (strstr(line, "p3-sleepers")) {
		mp_check(strcmp(mode, "rw-s") == 0 && to - from == 4096, "%s", line);
		c->sleepers++;
	} else if (strstr(line, "p3-host")) {
		c->hosts += !offset;
	} else {
		mp_check(!strstr(line, "memfd:") && mode[3] != 's', "%s", line);
	}
}

static void check_maps(void)
{
	struct count c = {0};
	char line[600];
	FILE *f = fopen("/proc/self/maps", "re");
	mp_check(f, "/proc/self/maps");
	while (fgets(line, sizeof line, f))
		look_at(line, &c);
	fclose(f);
	mp_check(c.own == 1 && c.peers == mp.size - 1 && c.doorbells == mp.size &&
			 c.sleepers == 1 && c.hosts <= 2,
		"%u own segments, %u of peers, %u doorbells, %u sleepers, %u host "
		"segments",
		c.own, c.peers, c.doorbells, c.sleepers, c.hosts);
	/* Hugepages, which some nodes may have, are never mapped one by one. */
	const char *huge = getenv("PTL3_HUGEPAGES");
	bool small = huge && strcmp(huge, "off") == 0;
	mp_check(small ? c.pages == mp.size - 1 : c.pages < mp.size, "%u single pages",
		c.pages);
	mp_check(c.own_heaps == 1 && c.heaps == mp.size - 1, "%u own heaps, %u of peers",
		c.own_heaps, c.heaps);
}

static void check_child(void)
{
	char line[600];
	unsigned lines = 0;
	FILE *f = popen("ls -l /proc/self/fd; cat /proc/self/maps", "re");
	mp_check(f, "popen");
	while (fgets(line, sizeof line, f)) {
		lines++;
		mp_check(!strstr(line, "memfd:") && !strstr(line, "socket:") &&
				 !strstr(line, "anon_inode"),
			"a child has inherited %s", line);
	}
	mp_check(pclose(f) == 0 && lines > 10, "ls");
}

int main(void)
{
	static char sink[LENGTH];
	mp_start();
	mp_attach(BITS, sink, sizeof sink, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	mp_attach(BITS, mp_pattern, LENGTH, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	mp_barrier();
	traffic();
	mp_barrier();
	check_maps();
	check_child();
	mp_barrier();
	mp_end();
	return 0;
}
