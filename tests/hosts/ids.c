/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ids - the ids of the ranks of a job on several hosts
 *
 * All ranks have the same maps; ranks share a node id if and only if they share a host,
 * and PtlNIDist tells the same; access control by node id, user and job lets in the right
 * ranks.  Then each rank closes its interface and opens two others, and all is as before.
 * PtlFini may come before the first PtlNIInit, and PtlInit after the last PtlNIFini.
 *
 *	ids [MOST_MS]	the longest time for the first PtlNIInit
 */
#include "../support/clock.h"
#include "../support/plain.h"

#include <catamount/cnos_mpi_os.h>
#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 64, PORTAL = 4, OPEN = 1, OWN_HOST = 2, OWN_JOB = 3 };
enum { REFUSED_MS = 500, LONG_MS = 100000 };

/* The words that each rank tells rank 0. */
struct told {
	char host[64];
	ptl_process_id_t self;
	ptl_process_id_t map[MOST];
	unsigned long distance[MOST];
};

static unsigned rank, size;
static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static struct told mine, all[MOST];

/* ---- maps ---- */

static void fill(void)
{
	CHECK(gethostname(mine.host, sizeof mine.host) == 0);
	OK(PtlGetId(ni, &mine.self));
	for (unsigned i = 0; i < size; i++) {
		OK(PtlGetRankId(ni, i, &mine.map[i]));
		OK(PtlNIDist(ni, mine.map[i], &mine.distance[i]));
	}
	CHECK(mine.map[rank].nid == mine.self.nid && mine.map[rank].pid == mine.self.pid);
	cnos_nidpid_map_t *map;
	CHECK(cnos_get_nidpid_map(&map) == (int)size);
	CHECK(cnos_get_rank() == (int)rank && cnos_get_size() == (int)size);
	for (unsigned i = 0; i < size; i++)
		CHECK(map[i].nid == mine.map[i].nid);
}

static void listen_at(unsigned index, void *at, ptl_size_t length)
{
	ptl_process_id_t anyone = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_md_t md = {.start = at,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options =
			PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	ptl_handle_me_t me;
	OK(PtlMEAttach(ni, PORTAL, anyone, index, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	OK(PtlMDAttach(me, md, PTL_RETAIN, NULL));
}

/* Put through an entry of the target's access control, and return whether the target has
 * acknowledged it within ms. */
static int put_within(unsigned ms, void *at, ptl_size_t length, ptl_process_id_t to,
	unsigned entry, ptl_match_bits_t bits, ptl_size_t offset)
{
	ptl_event_t ev;
	ptl_handle_md_t mdh;
	ptl_handle_eq_t own;
	int which, acked = 0;
	OK(PtlEQAlloc(ni, 8, PTL_EQ_HANDLER_NONE, &own));
	ptl_md_t md = {.start = at,
		.length = length,
		.threshold = 2,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = own};
	OK(PtlMDBind(ni, md, PTL_UNLINK, &mdh));
	OK(PtlPut(mdh, PTL_ACK_REQ, to, PORTAL, entry, bits, offset, 0));
	for (int i = 0; i < 2 && !acked; i++)
		if (PtlEQPoll(&own, 1, ms, &ev, &which) == PTL_OK)
			acked = ev.type == PTL_EVENT_ACK;
	(void)PtlMDUnlink(mdh);
	OK(PtlEQFree(own));
	return acked;
}

/* The same for a put that the target lets in. */
static int put(void *at, ptl_size_t length, ptl_process_id_t to, unsigned entry,
	ptl_match_bits_t bits, ptl_size_t offset)
{
	return put_within(LONG_MS, at, length, to, entry, bits, offset);
}

static void compare(void)
{
	for (unsigned i = 0; i < size; i++) {
		CHECK(memcmp(all[i].map, mine.map, size * sizeof mine.map[0]) == 0);
		for (unsigned k = 0; k < size; k++) {
			int same = strcmp(all[i].host, all[k].host) == 0;
			CHECK(same == (all[i].self.nid == all[k].self.nid));
			CHECK(same == (all[i].distance[k] == 0));
		}
	}
}

static void gather(void)
{
	CHECK(put(&mine, sizeof mine, mine.map[0], 0, OPEN, rank * sizeof mine));
	OK(PtlXBarrier());
	if (rank == 0)
		compare();
}

/* ---- access control ---- */

static void admit(void)
{
	ptl_process_id_t host = {mine.self.nid, PTL_PID_ANY},
			 any = {PTL_NID_ANY, PTL_PID_ANY};
	ptl_uid_t uid;
	ptl_jid_t jid;
	OK(PtlGetUid(ni, &uid));
	OK(PtlGetJid(ni, &jid));
	OK(PtlACEntry(ni, OWN_HOST, host, uid, PTL_JID_ANY, PTL_PT_INDEX_ANY));
	OK(PtlACEntry(ni, OWN_JOB, any, uid, jid, PTL_PT_INDEX_ANY));
	OK(PtlXBarrier());
	for (unsigned i = 0; i < size; i++) {
		int near = mine.map[i].nid == mine.self.nid;
		CHECK(put(&rank, sizeof rank, mine.map[i], OWN_JOB, OWN_JOB, 0));
		CHECK(put_within(near ? LONG_MS : REFUSED_MS, &rank, sizeof rank,
			      mine.map[i], OWN_HOST, OWN_JOB, 0) == near);
	}
	OK(PtlXBarrier());
}

/* ---- two interfaces ---- */

static void open_two(void)
{
	ptl_handle_ni_t second;
	ptl_process_id_t to;
	unsigned word[MOST];
	OK(PtlXBarrier());
	OK(PtlNIFini(ni));
	OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
	OK(PtlXBarrier());
	OK(PtlNIInit(PTL_IFACE_SS, PTL_PID_ANY, NULL, NULL, &second));
	ni = second;
	OK(PtlEQAlloc(ni, 1024, PTL_EQ_HANDLER_NONE, &eq));
	listen_at(OPEN, word, sizeof word);
	OK(PtlXBarrier());
	for (unsigned i = 0; i < size; i++) {
		OK(PtlGetRankId(second, i, &to));
		CHECK(put(&rank, sizeof rank, to, 0, OPEN, rank * sizeof rank));
	}
	OK(PtlXBarrier());
	for (unsigned i = 0; i < size; i++)
		CHECK(word[i] == i);
}

/* Return 1 if the process has mapped libfabric, which PTL3_FABRIC alone asks for. */
static int has_libfabric(void)
{
	char line[4096];
	int has = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	CHECK(maps != NULL);
	while (fgets(line, sizeof line, maps))
		has |= strstr(line, "libfabric") != NULL;
	fclose(maps);
	return has;
}

int main(int argc, char **argv)
{
	int most;
	unsigned word, most_ms = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
	uint64_t start = now_ms();
	OK(PtlInit(&most));
	PtlFini();
	OK(PtlInit(&most));
	OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
	unsigned took = (unsigned)(now_ms() - start);
	OK(PtlGetRank(ni, &rank, &size));
	CHECK(size <= MOST);
	OK(PtlEQAlloc(ni, 4096, PTL_EQ_HANDLER_NONE, &eq));
	fill();
	listen_at(OPEN, all, sizeof all);
	listen_at(OWN_JOB, &word, sizeof word);
	OK(PtlXBarrier());
	gather();
	admit();
	open_two();
	CHECK(!has_libfabric() || getenv("PTL3_FABRIC"));
	printf("rank %u: PtlInit and PtlNIInit took %u ms\n", rank, took);
	CHECK(!most_ms || took <= most_ms);
	PtlFini();
	OK(PtlInit(&most));
	OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni));
	OK(PtlXBarrier());
	PtlFini();
	return 0;
}
