/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet_mpi - the curves of MPI in the figures that gasnetperf measures
 *
 *	mpirun -n 2 gasnet_mpi full|quick TEST=SIZES ...
 *
 *	ack	figure 2: Ping-Ack, bytes out and none back: the least that a put over
 *		MPI can cost
 *	amput	figure 2: a put by messages: a header and the bytes, which the target
 *		copies to their place, and none back
 *	bw	figure 3: 64 MPI_Isend under way, and an answer, as osu_bw does
 *	pingpong	figure 4: bytes there and back
 *
 * It prints the lines of gasnetperf --lines: figure, way, bytes, ns of the median of the
 * batches, ns of p99 of single operations, 0.  bench/gasnetfigures builds it with each
 * mpicc.
 */
#include "compare/peer.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 20, MOST_SINGLE = 128, WINDOW = 64, LARGEST = 16 << 20, TAG = 1 };

static int rank;
static char *tx, *rx, *place;

/* ---- messages ---- */

static void send(const char *at, uint64_t bytes)
{
	MPI_Send(at, (int)bytes, MPI_BYTE, rank ^ 1, TAG, MPI_COMM_WORLD);
}

static void receive(char *at, uint64_t bytes)
{
	MPI_Recv(at, (int)bytes, MPI_BYTE, rank ^ 1, TAG, MPI_COMM_WORLD,
		MPI_STATUS_IGNORE);
}

static void ack(uint64_t bytes)
{
	if (rank == 0) {
		send(tx, bytes);
		receive(rx, 0);
	} else {
		receive(rx, bytes);
		send(tx, 0);
	}
}

static void ping_pong(uint64_t bytes)
{
	if (rank == 0) {
		send(tx, bytes);
		receive(rx, bytes);
	} else {
		receive(rx, bytes);
		send(rx, bytes);
	}
}

/* A message's header, as an active message of a put has it. */
struct header {
	uint64_t handler, offset, bytes;
};

static void send_put(uint64_t bytes)
{
	struct header h = {1, 0, bytes};
	memcpy(place, &h, sizeof h);
	memcpy(place + sizeof h, tx, bytes);
	send(place, sizeof h + bytes);
	receive(rx, 0);
}

static void take_put(uint64_t bytes)
{
	struct header h;
	receive(place, sizeof h + bytes);
	memcpy(&h, place, sizeof h);
	if (h.handler != 1)
		peer_die(
			"amput: handler %llu; expected 1", (unsigned long long)h.handler);
	memcpy(rx + h.offset, place + sizeof h, h.bytes);
	send(tx, 0);
}

static void put_by_messages(uint64_t bytes)
{
	if (rank == 0)
		send_put(bytes);
	else
		take_put(bytes);
}

static void windows(uint64_t bytes)
{
	MPI_Request request[WINDOW];
	MPI_Status status[WINDOW];
	for (int i = 0; i < WINDOW; i++)
		if (rank == 0)
			MPI_Isend(tx, (int)bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD,
				&request[i]);
		else
			MPI_Irecv(rx, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD,
				&request[i]);
	MPI_Waitall(WINDOW, request, status);
	if (rank == 0)
		receive(rx, 0);
	else
		send(tx, 0);
}

/* ---- timing ---- */

/* Return the operations of a batch, as gasnetperf has them. */
static uint64_t count_of(unsigned messages, uint64_t bytes, bool quick)
{
	uint64_t count = ((uint64_t)4 << 20) / (bytes ? bytes : 1);
	if (quick)
		return 4;
	if (messages > 1)
		return count / 16 > 20 ? 20 : count / 16 < 1 ? 1 : count / 16;
	return count > 1000 ? 1000 : count < 16 ? 16 : count;
}

typedef void operation(uint64_t bytes);

static double time_batch(operation *op, uint64_t bytes, uint64_t count, unsigned messages)
{
	double since = bench_now_ns();
	for (uint64_t i = 0; i < count; i++)
		op(bytes);
	return (bench_now_ns() - since) / (double)count / messages;
}

static double p99; /* of the test's single operations */

/* Every batch has other bytes, which are checked behind it. */
static double run(operation *op, unsigned messages, uint64_t bytes, bool quick)
{
	static double batch[BATCHES], single[BATCHES * MOST_SINGLE];
	uint64_t count = count_of(messages, bytes, quick), n = 0;
	uint64_t some = count / 4 + 1 < MOST_SINGLE ? count / 4 + 1 : MOST_SINGLE;
	unsigned batches = quick ? 2 : BATCHES;
	for (unsigned i = 0; i < batches; i++) {
		memset(tx, rank ? 0 : (int)i + 1, bytes);
		(void)time_batch(op, bytes, count / 16 + 1, messages); /* warm */
		batch[i] = time_batch(op, bytes, count, messages);
		for (uint64_t k = 0; k < some; k++)
			single[n++] = time_batch(op, bytes, 1, messages);
		for (uint64_t k = 0; rank == 1 && k < bytes; k++)
			if (rx[k] != (char)(i + 1))
				peer_die("a message of %llu bytes: wrong byte at %llu",
					(unsigned long long)bytes, (unsigned long long)k);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	p99 = bench_stat_of(single, n).p99;
	return bench_stat_of(batch, batches).p50;
}

static double run_ack(uint64_t bytes, bool quick)
{
	return run(ack, 1, bytes, quick);
}

static double run_put(uint64_t bytes, bool quick)
{
	return run(put_by_messages, 1, bytes, quick);
}

static double run_windows(uint64_t bytes, bool quick)
{
	return run(windows, WINDOW, bytes, quick);
}

static double run_ping_pong(uint64_t bytes, bool quick)
{
	return run(ping_pong, 1, bytes, quick);
}

/* The name of the peer is that of the way. */
static const struct peer_test tests[] = {
	{.name = "ack", .who = "2\tpingack", .run = run_ack, .most = LARGEST},
	{.name = "amput", .who = "2\tamput", .run = run_put, .most = LARGEST},
	{.name = "bw", .who = "3\tbw", .run = run_windows, .most = LARGEST},
	{.name = "pingpong", .who = "4\tpingpong", .run = run_ping_pong, .most = LARGEST},
	{.name = NULL},
};

static void print(const struct peer_test *t, uint64_t bytes, double p50)
{
	printf("%s\t%llu\t%.1f\t%.1f\t0\n", t->who, (unsigned long long)bytes, p50, p99);
}

int main(int argc, char **argv)
{
	static const struct peer peer = {.tests = tests, .print = print};
	int size;
	peer_program = "gasnet_mpi";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2)
		peer_die("%d ranks; expected 2; use mpirun -n 2", size);
	peer_rank = (unsigned)rank;
	peer_pin(peer_rank);
	tx = peer_allocate(LARGEST);
	rx = peer_allocate(LARGEST);
	place = peer_allocate(LARGEST + sizeof(struct header));
	peer_run(&peer, argc, argv);
	MPI_Finalize();
	return fflush(stdout) != 0;
}
