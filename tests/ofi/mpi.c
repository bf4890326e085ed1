/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi - an MPI program over mtl/ofi: messages of all sizes, probes, cancel, persistent
 * requests, collectives, threads; with the argument "spawn", MPI_Comm_spawn; with "hang"
 * a receive of another tag than rank 0 has sent
 *
 * mpi.sh compiles and starts it.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 1 << 20, THREADS = 3, ROUNDS = 200 };

static int rank, size;
static unsigned char *out, *in;

#define CHECK(truth)                                                                     \
	do {                                                                             \
		if (!(truth)) {                                                          \
			fprintf(stderr, "mpi.c:%d: rank %d: not so: %s\n", __LINE__,     \
				rank, #truth);                                           \
			MPI_Abort(MPI_COMM_WORLD, 1);                                    \
		}                                                                        \
	} while (0)

static void fill(unsigned char *at, int n, int seed)
{
	for (int i = 0; i < n; i++)
		at[i] = (unsigned char)((i * 7 + seed * 13 + (i >> 8)) & 255);
}

static void check(const unsigned char *at, int n, int seed)
{
	for (int i = 0; i < n; i++)
		CHECK(at[i] == (unsigned char)((i * 7 + seed * 13 + (i >> 8)) & 255));
}

static const int lengths[] = {0, 1, 8, 1000, 1536, 1537, 8192, 8193, 100000, MOST};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* Ranks in a ring; receives before and after the sends, by each kind of send. */
static void messages(void)
{
	int next = (rank + 1) % size, last = (rank + size - 1) % size;
	for (int i = 0; i < 4 * LENGTHS; i++) {
		int n = lengths[i / 4], got;
		MPI_Request r[2];
		MPI_Status st;
		fill(out, n, rank + i);
		if (i & 1)
			MPI_Irecv(in, MOST, MPI_BYTE, last, i, MPI_COMM_WORLD, &r[0]);
		MPI_Barrier(MPI_COMM_WORLD);
		if (i & 2)
			MPI_Isend(out, n, MPI_BYTE, next, i, MPI_COMM_WORLD, &r[1]);
		else
			MPI_Issend(out, n, MPI_BYTE, next, i, MPI_COMM_WORLD, &r[1]);
		if (!(i & 1))
			MPI_Irecv(in, MOST, MPI_BYTE, MPI_ANY_SOURCE, i, MPI_COMM_WORLD,
				&r[0]);
		MPI_Wait(&r[0], &st);
		MPI_Get_count(&st, MPI_BYTE, &got);
		CHECK(st.MPI_SOURCE == last && st.MPI_TAG == i && got == n);
		check(in, n, last + i);
		MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	}
}

static void probes(void)
{
	int next = (rank + 1) % size, last = (rank + size - 1) % size, got, flag = 1;
	MPI_Status st;
	MPI_Request r;
	MPI_Message m;
	MPI_Iprobe(last, 99, MPI_COMM_WORLD, &flag, &st);
	CHECK(!flag);
	for (int i = 0; i < LENGTHS; i++) {
		fill(out, lengths[i], i);
		MPI_Isend(out, lengths[i], MPI_BYTE, next, 50, MPI_COMM_WORLD, &r);
		if (i & 1) {
			MPI_Mprobe(MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &m, &st);
			MPI_Mrecv(in, MOST, MPI_BYTE, &m, &st);
		} else {
			MPI_Probe(last, MPI_ANY_TAG, MPI_COMM_WORLD, &st);
			MPI_Get_count(&st, MPI_BYTE, &got);
			CHECK(got == lengths[i]);
			MPI_Recv(in, MOST, MPI_BYTE, last, 50, MPI_COMM_WORLD, &st);
		}
		MPI_Get_count(&st, MPI_BYTE, &got);
		CHECK(got == lengths[i] && st.MPI_SOURCE == last);
		check(in, got, i);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		MPI_Barrier(MPI_COMM_WORLD);
	}
}

static void cancels(void)
{
	MPI_Request r[10];
	MPI_Status st;
	int flag;
	for (int i = 0; i < 10; i++)
		MPI_Irecv(
			in, 10, MPI_BYTE, MPI_ANY_SOURCE, 60 + i, MPI_COMM_WORLD, &r[i]);
	for (int i = 9; i >= 0; i--) {
		MPI_Cancel(&r[i]);
		MPI_Wait(&r[i], &st);
		MPI_Test_cancelled(&st, &flag);
		CHECK(flag);
	}
}

static void persistent(void)
{
	int next = (rank + 1) % size, last = (rank + size - 1) % size;
	MPI_Request r[2];
	MPI_Send_init(out, 20000, MPI_BYTE, next, 70, MPI_COMM_WORLD, &r[0]);
	MPI_Recv_init(in, 20000, MPI_BYTE, last, 70, MPI_COMM_WORLD, &r[1]);
	for (int i = 0; i < ROUNDS; i++) {
		fill(out, 20000, rank + i);
		MPI_Startall(2, r);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		check(in, 20000, last + i);
	}
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
}

static void collectives(void)
{
	for (int n = 1; n <= 10000; n *= 10) {
		double *a = malloc(sizeof(double) * (size_t)(n * size));
		double *b = malloc(sizeof(double) * (size_t)(n * size));
		CHECK(a && b);
		for (int i = 0; i < n * size; i++)
			a[i] = rank + i;
		MPI_Allreduce(a, b, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < n; i++)
			CHECK(b[i] == (double)size * i + size * (size - 1) / 2.0);
		MPI_Alltoall(a, n, MPI_DOUBLE, b, n, MPI_DOUBLE, MPI_COMM_WORLD);
		for (int i = 0; i < n * size; i++)
			CHECK(b[i] == i / n + rank * n + i % n);
		MPI_Bcast(a, n, MPI_DOUBLE, size - 1, MPI_COMM_WORLD);
		CHECK(a[n - 1] == size - 1 + n - 1);
		MPI_Allgather(a, n, MPI_DOUBLE, b, n, MPI_DOUBLE, MPI_COMM_WORLD);
		CHECK(b[n * size - 1] == size - 1 + n - 1);
		free(a);
		free(b);
	}
}

static void *thread_main(void *arg)
{
	int t = (int)(long)arg;
	int next = (rank + 1) % size, last = (rank + size - 1) % size;
	for (int i = 0; i < ROUNDS; i++) {
		int from = rank * 1000 + i, to = -1;
		MPI_Sendrecv(&from, 1, MPI_INT, next, 1000 + t, &to, 1, MPI_INT, last,
			1000 + t, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(to == last * 1000 + i);
	}
	return NULL;
}

static void threads(int level)
{
	pthread_t t[THREADS];
	CHECK(level == MPI_THREAD_MULTIPLE);
	for (long i = 0; i < THREADS; i++)
		CHECK(pthread_create(&t[i], NULL, thread_main, (void *)i) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

/* Each side sends the other one's ranks a number. */
static void talk(MPI_Comm other)
{
	int n, one = 1, got = 0;
	MPI_Comm_remote_size(other, &n);
	for (int i = 0; i < n; i++)
		MPI_Sendrecv(&one, 1, MPI_INT, i, 5, &got, 1, MPI_INT, i, 5, other,
			MPI_STATUS_IGNORE);
	CHECK(got == 1);
	MPI_Comm_disconnect(&other);
}

static void spawn(char *program)
{
	MPI_Comm children;
	char *args[] = {"spawn", NULL};
	MPI_Comm_spawn(program, args, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
		MPI_ERRCODES_IGNORE);
	talk(children);
}

/* Rank 1 waits for tag 43 of rank 0, which sends tag 42. */
static void hang(void)
{
	printf("rank %d is process %d\n", rank, (int)getpid());
	fflush(stdout);
	if (rank == 0)
		MPI_Send(out, 4, MPI_BYTE, 1, 42, MPI_COMM_WORLD);
	else if (rank == 1)
		MPI_Recv(in, 4, MPI_BYTE, 0, 43, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int level;
	MPI_Comm parent;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_get_parent(&parent);
	out = malloc(MOST);
	in = malloc(MOST);
	CHECK(out && in);
	if (parent != MPI_COMM_NULL) {
		talk(parent);
	} else if (argc > 1 && strcmp(argv[1], "spawn") == 0) {
		spawn(argv[0]);
	} else if (argc > 1 && strcmp(argv[1], "hang") == 0) {
		hang();
	} else {
		messages();
		probes();
		cancels();
		persistent();
		collectives();
		threads(level);
	}
	MPI_Finalize();
	if (rank == 0 && parent == MPI_COMM_NULL)
		printf("all is well\n");
	free(out);
	free(in);
	return 0;
}
