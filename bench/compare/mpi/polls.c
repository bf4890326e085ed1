/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The nearest to looking into event queues: testing receives whose messages never come,
 * and waiting for any of several receives.
 */
#include "peer_mpi.h"

enum { MOST = 64, TAG_QUEUES = 200 };

static MPI_Request request[MOST];
static int requests;

static void nothing_came(int here)
{
	if (here)
		peer_die("a receive without a message has ended; expected that it waits");
}

static void test_one(uint64_t bytes, uint64_t round)
{
	int here;
	(void)bytes, (void)round;
	MPI_Test(request, &here, MPI_STATUS_IGNORE);
	nothing_came(here);
}

static void test_any(uint64_t bytes, uint64_t round)
{
	int here, which;
	(void)bytes, (void)round;
	MPI_Testany(requests, request, &which, &here, MPI_STATUS_IGNORE);
	nothing_came(here);
}

static void want_count(const char *test, uint64_t count)
{
	if (count < 1 || count > MOST)
		peer_die("%s=%llu: expected 1 to %d", test, (unsigned long long)count,
			MOST);
	requests = (int)count;
}

/* Both ranks time calls of fn; afterwards they send the messages of each other's
 * receives. */
static double without_messages(peer_round *fn, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, 0);
	for (int i = 0; i < requests; i++)
		MPI_Irecv(rx, 0, MPI_BYTE, rank ^ 1, TAG_OTHERS, comm, &request[i]);
	MPI_Barrier(comm);
	double ns = peer_timed(&p, fn, 0);
	MPI_Barrier(comm);
	for (int i = 0; i < requests; i++)
		pm_send(tx, 0, TAG_OTHERS);
	MPI_Waitall(requests, request, MPI_STATUSES_IGNORE);
	return ns;
}

double pm_eqget(uint64_t count, bool quick)
{
	want_count("eqget", count);
	return without_messages(test_one, quick);
}

double pm_eqpoll(uint64_t count, bool quick)
{
	want_count("eqpoll", count);
	return without_messages(test_any, quick);
}

/* ---- a ping-pong through the last of several receives ---- */

static void post(int i)
{
	MPI_Irecv(rx, PEER_WORD, MPI_BYTE, rank ^ 1, TAG_QUEUES + i, comm, &request[i]);
}

static void take(uint64_t round)
{
	int which;
	MPI_Waitany(requests, request, &which, MPI_STATUS_IGNORE);
	if (which != requests - 1)
		peer_die("receive %d has ended; expected %d", which, requests - 1);
	peer_check(rx, PEER_WORD, round);
	post(which);
}

static void round_trip(uint64_t bytes, uint64_t round)
{
	if (rank == 0) {
		peer_stamp(tx, bytes, round);
		pm_send(tx, bytes, TAG_QUEUES + requests - 1);
	}
	take(round);
	if (rank == 1) {
		peer_stamp(tx, bytes, round);
		pm_send(tx, bytes, TAG_QUEUES + requests - 1);
	}
}

double pm_queues(uint64_t count, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, PEER_WORD);
	want_count("queues", count);
	for (int i = 0; i < requests; i++)
		post(i);
	MPI_Barrier(comm);
	double ns = peer_timed(&p, round_trip, PEER_WORD) / 2;
	MPI_Barrier(comm);
	for (int i = 0; i < requests; i++)
		pm_send(tx, PEER_WORD, TAG_QUEUES + i);
	MPI_Waitall(requests, request, MPI_STATUSES_IGNORE);
	return ns;
}
