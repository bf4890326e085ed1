/* SPDX-License-Identifier: BSD-3-Clause */
/* The patterns of compare with MPI: start, one message at a time, windows, all to all. */
#include "peer_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOT_BYTES = 64 << 10 };
static const double alltoall_ns = 2e9, match_ns = 5e8; /* rough upper limits */

static const char *who;
int rank, size;
__thread MPI_Comm comm;
__thread char *tx, *rx;

void pm_send(const void *at, uint64_t bytes, int tag)
{
	MPI_Send(at, (int)bytes, MPI_BYTE, rank ^ 1, tag, comm);
}

void pm_receive(void *at, uint64_t bytes, int tag)
{
	MPI_Status status;
	int got;
	MPI_Recv(at, (int)bytes, MPI_BYTE, rank ^ 1, tag, comm, &status);
	MPI_Get_count(&status, MPI_BYTE, &got);
	if ((uint64_t)got != bytes)
		peer_die("a message of %d bytes; expected %llu", got,
			(unsigned long long)bytes);
}

/* ---- latency ---- */

static void round_trip(uint64_t bytes, uint64_t round)
{
	peer_stamp(tx, bytes, round);
	if (rank == 0)
		pm_send(tx, bytes, TAG);
	pm_receive(rx, bytes, TAG);
	peer_check(rx, bytes, round);
	if (rank == 1)
		pm_send(tx, bytes, TAG);
}

static double latency(uint64_t bytes, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, false, bytes);
	return peer_timed(&p, round_trip, bytes) / 2;
}

/* ---- stream and rate ---- */

static uint64_t slots_of(uint64_t bytes)
{
	uint64_t fit = SLOT_BYTES / (bytes + 128);
	return fit < 2 ? 2 : fit < PEER_WINDOW ? fit : PEER_WINDOW;
}

static void send_window(uint64_t bytes, uint64_t round)
{
	MPI_Request request[PEER_WINDOW];
	peer_stamp(tx, bytes, round);
	for (int i = 0; i < PEER_WINDOW; i++)
		MPI_Isend(tx, (int)bytes, MPI_BYTE, 1, TAG, comm, &request[i]);
	MPI_Waitall(PEER_WINDOW, request, MPI_STATUSES_IGNORE);
	pm_receive(rx, 0, TAG_BACK);
}

static void take_window(uint64_t bytes, uint64_t round)
{
	MPI_Request request[PEER_WINDOW];
	uint64_t slots = slots_of(bytes), pitch = (bytes + 127) / 128 * 128;
	for (uint64_t i = 0; i < PEER_WINDOW; i++)
		MPI_Irecv(rx + i % slots * pitch, (int)bytes, MPI_BYTE, 0, TAG, comm,
			&request[i]);
	MPI_Waitall(PEER_WINDOW, request, MPI_STATUSES_IGNORE);
	for (uint64_t i = 0; i < slots; i++)
		peer_check(rx + i * pitch, bytes, round);
	pm_send(tx, 0, TAG_BACK);
}

void pm_window(uint64_t bytes, uint64_t round)
{
	if (rank == 0)
		send_window(bytes, round);
	else
		take_window(bytes, round);
}

/* ns for a message */
static double windows(uint64_t bytes, bool quick)
{
	struct peer_plan p = peer_plan_of(quick, true, bytes);
	return peer_timed(&p, pm_window, bytes) / PEER_WINDOW;
}

static double stream(uint64_t bytes, bool quick)
{
	return (double)bytes * 1e3 / windows(bytes, quick);
}

static double rate(uint64_t bytes, bool quick)
{
	return 1e3 / windows(bytes, quick);
}

/* ---- match: receives without messages come before those of the windows ---- */

static MPI_Request *post_others(uint64_t depth)
{
	MPI_Request *others = peer_allocate(depth * sizeof *others);
	for (uint64_t i = 0; i < depth; i++)
		MPI_Irecv(rx, 0, MPI_BYTE, 0, TAG_OTHERS, comm, &others[i]);
	return others;
}

/* End these receives by sending their messages. */
static void end_others(MPI_Request *others, uint64_t count)
{
	MPI_Barrier(comm);
	if (rank == 0)
		for (uint64_t i = 0; i < count; i++)
			pm_send(tx, 0, TAG_OTHERS);
	else
		MPI_Waitall((int)count, others, MPI_STATUSES_IGNORE);
	MPI_Barrier(comm);
}

static bool go_on(bool more)
{
	int flag = more;
	MPI_Bcast(&flag, 1, MPI_INT, 0, comm);
	return flag;
}

static double match(uint64_t depth, bool quick)
{
	double ns[PEER_BATCHES], end = peer_now_ns() + match_ns;
	MPI_Request *others = rank ? post_others(depth) : NULL;
	uint64_t n = 0, most = quick ? 3 : PEER_BATCHES;
	MPI_Barrier(comm);
	while (go_on(n < most && (n < 3 || peer_now_ns() < end))) {
		double t = peer_now_ns();
		pm_window(0, n);
		ns[n++] = (peer_now_ns() - t) / PEER_WINDOW;
	}
	end_others(others, depth);
	free(others);
	return peer_median(ns, n);
}

/* ---- all to all ---- */

static void all_round(uint64_t round, MPI_Request *request)
{
	int n = 0;
	peer_stamp(tx, PEER_BYTES, round);
	for (int i = 1; i < size; i++) {
		int from = (rank + size - i) % size;
		MPI_Irecv(rx + from * PEER_BYTES, PEER_BYTES, MPI_BYTE, from, TAG, comm,
			&request[n++]);
	}
	for (int i = 1; i < size; i++)
		MPI_Isend(tx, PEER_BYTES, MPI_BYTE, (rank + i) % size, TAG, comm,
			&request[n++]);
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	for (int i = 0; i < size; i++)
		if (i != rank)
			peer_check(rx + i * PEER_BYTES, PEER_BYTES, round);
}

static double alltoall(uint64_t nodes, bool quick)
{
	MPI_Request *request = peer_allocate(2 * (size_t)size * sizeof *request);
	uint64_t n = 0, round = 0, each = quick ? 2 : 20, most = quick ? 3 : PEER_BATCHES;
	double ns = 0, end = peer_now_ns() + alltoall_ns;
	double messages = (double)each * size * (size - 1);
	if (nodes != (uint64_t)size)
		peer_die("%d ranks; expected %llu; see mpirun", size,
			(unsigned long long)nodes);
	all_round(round++, request);
	while (go_on(n < most && (n < 3 || peer_now_ns() < end))) {
		double t = peer_now_ns();
		for (uint64_t i = 0; i < each; i++)
			all_round(round++, request);
		ns += peer_now_ns() - t;
		n++;
	}
	free(request);
	return messages * (double)n * 1e3 / ns;
}

/* ---- */

static const struct test {
	const char *name;
	double (*run)(uint64_t x, bool quick);
} tests[] = {{"latency", latency}, {"stream", stream}, {"rate", rate}, {"match", match},
	{"alltoall", alltoall}, {"ack", pm_ack}, {"get", pm_get}, {"am", pm_active},
	{"eqget", pm_eqget}, {"eqpoll", pm_eqpoll}, {"queues", pm_queues},
	{"threads", pm_threads}, {"posted", pm_posted}, {"step", pm_step}};

void pm_allocate(uint64_t largest)
{
	tx = peer_allocate(largest + 128);
	rx = peer_allocate(
		2 * (largest + 128) + 2 * SLOT_BYTES + (size_t)size * PEER_BYTES);
}

void pm_release(void)
{
	free(tx);
	free(rx);
}

static void run(const char *test, uint64_t x, bool quick)
{
	pm_allocate(x);
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
		if (!strcmp(test, tests[i].name)) {
			MPI_Barrier(comm);
			double value = tests[i].run(x, quick);
			if (rank == 0)
				peer_print(who, test, x, value);
		}
	pm_release();
}

static unsigned rank_by_environment(void)
{
	const char *r = getenv("OMPI_COMM_WORLD_RANK");
	r = r ? r : getenv("PMI_RANK");
	return r ? (unsigned)atoi(r) : 0;
}

/* Threads make every call slower, so no other pattern has them. */
static void start(int *argc, char ***argv)
{
	int level = MPI_THREAD_SINGLE, got;
	for (int i = 1; i < *argc; i++)
		if (!strncmp((*argv)[i], "threads=", 8))
			level = MPI_THREAD_MULTIPLE;
	MPI_Init_thread(argc, argv, level, &got);
	if (got < level)
		peer_die("this MPI has no threads; expected MPI_THREAD_MULTIPLE");
	comm = MPI_COMM_WORLD;
}

int main(int argc, char **argv)
{
	peer_program = "peer_mpi";
	peer_pin(rank_by_environment());
	start(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc < 2)
		peer_die("expected a name, quick or full, test=list");
	who = argv[1];
	peer_each(argc - 1, argv + 1, run);
	MPI_Finalize();
	return 0;
}
