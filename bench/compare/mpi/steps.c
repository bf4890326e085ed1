/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ping-pong that posts a receive in each round, and its steps.  The receive of a
 * message is posted before the message is sent, so none is unexpected.
 */
#include "peer_mpi.h"

static uint64_t last_round;
static MPI_Request answer, sending;

static void post(uint64_t bytes)
{
	MPI_Irecv(rx, (int)bytes, MPI_BYTE, rank ^ 1, TAG, comm, &answer);
}

static void send(uint64_t bytes, uint64_t round)
{
	peer_stamp(tx, bytes, round);
	MPI_Isend(tx, (int)bytes, MPI_BYTE, rank ^ 1, TAG, comm, &sending);
}

static void take(uint64_t bytes, uint64_t round)
{
	MPI_Wait(&answer, MPI_STATUS_IGNORE);
	peer_check(rx, bytes, round);
}

static void ping(uint64_t bytes, uint64_t round)
{
	peer_step(PEER_CLOCK);
	peer_step(PEER_POST);
	post(bytes);
	peer_step(PEER_SEND);
	send(bytes, round);
	peer_step(PEER_SENT);
	MPI_Wait(&sending, MPI_STATUS_IGNORE);
	peer_step(PEER_ANSWER);
	take(bytes, round);
	peer_step(PEER_STEPS);
}

static void pong(uint64_t bytes, uint64_t round)
{
	take(bytes, round);
	if (round < last_round)
		post(bytes);
	send(bytes, round);
	MPI_Wait(&sending, MPI_STATUS_IGNORE);
}

/* Let rank 1 post the first receive. */
static void begin(const struct peer_plan *p, uint64_t bytes)
{
	last_round = peer_rounds(p) - 1;
	if (rank == 1)
		post(bytes);
	MPI_Barrier(comm);
}

double pm_posted(uint64_t bytes, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, bytes);
	begin(&p, bytes);
	return peer_timed(&p, rank ? pong : ping, bytes) / 2;
}

double pm_step(uint64_t step, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, 0);
	begin(&p, 0);
	return peer_step_of(&p, rank ? pong : ping, step);
}
