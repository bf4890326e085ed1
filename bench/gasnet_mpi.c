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

static const struct test {
	const char *name, *figure, *way;
	void (*op)(uint64_t bytes);
	unsigned messages; /* of an op */
} tests[] = {
	{"ack", "2", "pingack", ack, 1},
	{"amput", "2", "amput", put_by_messages, 1},
	{"bw", "3", "bw", windows, WINDOW},
	{"pingpong", "4", "pingpong", ping_pong, 1},
};

enum { TESTS = sizeof tests / sizeof tests[0] };

/* Return the operations of a batch, as gasnetperf has them. */
static uint64_t count_of(const struct test *t, uint64_t bytes, bool quick)
{
	uint64_t count = ((uint64_t)4 << 20) / (bytes ? bytes : 1);
	if (quick)
		return 4;
	if (t->messages > 1)
		return count / 16 > 20 ? 20 : count / 16 < 1 ? 1 : count / 16;
	return count > 1000 ? 1000 : count < 16 ? 16 : count;
}

static double time_batch(const struct test *t, uint64_t bytes, uint64_t count)
{
	double since = peer_now_ns();
	for (uint64_t i = 0; i < count; i++)
		t->op(bytes);
	return (peer_now_ns() - since) / (double)count / t->messages;
}

/* Every batch has other bytes, which are checked behind it. */
static void fill(uint64_t bytes, int batch)
{
	memset(tx, rank ? 0 : batch + 1, bytes);
}

static void check(const struct test *t, uint64_t bytes, int batch)
{
	for (uint64_t i = 0; rank == 1 && i < bytes; i++)
		if (rx[i] != (char)(batch + 1))
			peer_die("%s of %llu bytes: wrong byte at %llu", t->name,
				(unsigned long long)bytes, (unsigned long long)i);
	MPI_Barrier(MPI_COMM_WORLD);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double p99_of(double *sample, uint64_t n)
{
	uint64_t at = (uint64_t)(0.99 * (double)n);
	qsort(sample, n, sizeof *sample, compare);
	return sample[at < n ? at : n - 1];
}

static void run(const struct test *t, uint64_t bytes, bool quick)
{
	static double batch[BATCHES], single[BATCHES * MOST_SINGLE];
	uint64_t count = count_of(t, bytes, quick), n = 0;
	uint64_t some = count / 4 + 1 < MOST_SINGLE ? count / 4 + 1 : MOST_SINGLE;
	int batches = quick ? 2 : BATCHES;
	for (int i = 0; i < batches; i++) {
		fill(bytes, i);
		(void)time_batch(t, bytes, count / 16 + 1); /* warm */
		batch[i] = time_batch(t, bytes, count);
		for (uint64_t k = 0; k < some; k++)
			single[n++] = time_batch(t, bytes, 1);
		check(t, bytes, i);
	}
	if (rank == 0)
		printf("%s\t%s\t%llu\t%.1f\t%.1f\t0\n", t->figure, t->way,
			(unsigned long long)bytes, peer_median(batch, (uint64_t)batches),
			p99_of(single, n));
}

/* ---- arguments ---- */

static void run_test(const char *test, uint64_t bytes, bool quick)
{
	if (bytes > LARGEST)
		peer_die("%s=%llu; expected bytes, 0 to %d", test,
			(unsigned long long)bytes, LARGEST);
	for (unsigned i = 0; i < TESTS; i++)
		if (!strcmp(test, tests[i].name)) {
			run(&tests[i], bytes, quick);
			return;
		}
	peer_die("'%.60s'; expected ack, amput, bw or pingpong", test);
}

int main(int argc, char **argv)
{
	int size;
	peer_program = "gasnet_mpi";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2)
		peer_die("%d ranks; expected 2; use mpirun -n 2", size);
	peer_pin((unsigned)rank);
	tx = peer_allocate(LARGEST);
	rx = peer_allocate(LARGEST);
	place = peer_allocate(LARGEST + sizeof(struct header));
	peer_each(argc, argv, run_test);
	MPI_Finalize();
	return fflush(stdout) != 0;
}
