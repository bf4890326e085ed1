/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cnos - a job that knows no other call than those of cnos_mpi_os.h: cnos folder
 *
 * Ranks, ids and launcher are those in yod's environment; no rank passes a barrier
 * before the last rank, which comes late, has left a file in the folder.  Without yod,
 * and without a folder: one process alone.
 */
#include "../support/plain.h"

#include <catamount/cnos_mpi_os.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int rank, size;

static void name_of(int round, int who, const char *folder, char *name, size_t room)
{
	snprintf(name, room, "%s/%d.%d", folder, round, who);
}

static void leave_file(int round, const char *folder)
{
	char name[1000];
	name_of(round, rank, folder, name, sizeof name);
	FILE *f = fopen(name, "w");
	CHECK(f && fclose(f) == 0);
}

static void all_have_left_files(int round, const char *folder)
{
	char name[1000];
	for (int who = 0; who < size; who++) {
		name_of(round, who, folder, name, sizeof name);
		CHECK(access(name, F_OK) == 0);
	}
}

static void meet(int round, const char *folder)
{
	struct timespec while_others_wait = {0, 100000000};
	if (rank == round % size)
		/* pause: the others wait in the barrier meanwhile */
		nanosleep(&while_others_wait, NULL);
	leave_file(round, folder);
	CHECK((round % 2 ? cnos_pm_barrier(1) : cnos_barrier()) == 0);
	all_have_left_files(round, folder);
}

/* Return entry number `who` of a list with colons. */
static unsigned of_list(const char *variable, int who)
{
	char *at = getenv(variable);
	CHECK(at);
	for (; who > 0; who--) {
		(void)strtoul(at, &at, 10);
		CHECK(*at++ == ':');
	}
	return (unsigned)strtoul(at, NULL, 10);
}

static void know_everybody(void)
{
	cnos_nidpid_map_t *map = NULL, *again = NULL;
	CHECK(cnos_get_nidpid_map(NULL) == -1);
	CHECK(cnos_get_nidpid_map(&map) == size && map);
	CHECK(cnos_get_nidpid_map(&again) == size && again == map);
	for (int who = 0; who < size; who++) {
		struct cnos_nidpid_map_t one = map[who];
		CHECK(one.nid == of_list("PTL_NIDMAP", who));
		CHECK(one.pid == of_list("PTL_PIDMAP", who));
	}
}

static void be_alone(void)
{
	cnos_nidpid_map_t *map = NULL;
	CHECK(cnos_launcher() == 0 && cnos_get_rank() == 0 && cnos_get_size() == 1);
	CHECK(cnos_get_nidpid_map(&map) == 1 && map[0].nid == 0x7f000001);
	CHECK(cnos_barrier() == 0 && cnos_pm_barrier(0) == 0);
}

static void be_one_of_many(const char *folder)
{
	rank = cnos_get_rank();
	size = cnos_get_size();
	CHECK(cnos_launcher() == CNOS_LAUNCHER_YOD && size > 1);
	CHECK((unsigned)rank == of_list("PTL_MY_RID", 0));
	know_everybody();
	CHECK(cnos_barrier_init(PTL_INVALID_HANDLE) == 0);
	for (int round = 0; round < 4; round++)
		meet(round, folder);
	printf("rank %d of %d\n", rank, size);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		be_one_of_many(argv[1]);
	else
		be_alone();
	return 0;
}
