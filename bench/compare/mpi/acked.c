/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nearest to a put with an ACK, and to a get: a message that the receiver answers
 * with an empty one, and MPI_Get with a flush from a window that MPI has allocated.
 */
#include "peer_mpi.h"

#include <string.h>

enum { SHIFTS = 16, STEP = 64 };

static void answered(uint64_t bytes, uint64_t round)
{
	if (rank == 0) {
		peer_stamp(tx, bytes, round);
		pm_send(tx, bytes, TAG);
		pm_receive(rx, 0, TAG_BACK);
		return;
	}
	pm_receive(rx, bytes, TAG);
	peer_check(rx, bytes, round);
	pm_send(tx, 0, TAG_BACK);
}

double pm_ack(uint64_t bytes, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, bytes);
	return peer_timed(&p, answered, bytes);
}

static MPI_Win window_of_get;

/* Each get begins a step further on, and brings the number of its step. */
static void fetch(uint64_t bytes, uint64_t round)
{
	uint64_t shift = round % SHIFTS;
	MPI_Get(rx, (int)bytes, MPI_BYTE, 1, (MPI_Aint)(shift * STEP), (int)bytes,
		MPI_BYTE, window_of_get);
	MPI_Win_flush(1, window_of_get);
	peer_check(rx, bytes, shift);
}

double pm_get(uint64_t bytes, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, bytes);
	char *memory;
	double ns = 0;
	if (bytes < PEER_WORD || bytes > STEP)
		peer_die("get=%llu: expected %d to %d bytes", (unsigned long long)bytes,
			PEER_WORD, STEP);
	MPI_Win_allocate(SHIFTS * STEP, 1, MPI_INFO_NULL, comm, &memory, &window_of_get);
	MPI_Win_lock_all(0, window_of_get);
	for (uint64_t i = 0; i < SHIFTS; i++)
		peer_stamp(memory + i * STEP, bytes, i);
	MPI_Win_sync(window_of_get);
	MPI_Barrier(comm);
	if (rank == 0)
		ns = peer_timed(&p, fetch, bytes);
	MPI_Barrier(comm); /* makes progress for windows that need it */
	MPI_Win_unlock_all(window_of_get);
	MPI_Win_free(&window_of_get);
	return ns;
}
