/* SPDX-License-Identifier: BSD-3-Clause */
/* Several threads of a rank at a time, each with a communicator of its own. */
#include "peer_mpi.h"

#include <pthread.h>

enum { MOST = 16 };

static struct thread {
	pthread_t id;
	MPI_Comm comm;
	double begin, end;
} thread[MOST];

static struct peer_plan plan;
static pthread_barrier_t start;

static void *run(void *arg)
{
	struct thread *t = arg;
	uint64_t round = 0, rounds = plan.batches * plan.each;
	comm = t->comm;
	pm_allocate(PEER_WORD);
	while (round < plan.warm)
		pm_window(PEER_WORD, round++);
	pthread_barrier_wait(&start);
	t->begin = peer_now_ns();
	while (round < plan.warm + rounds)
		pm_window(PEER_WORD, round++);
	t->end = peer_now_ns();
	pm_release();
	return NULL;
}

/* Return the time from the first thread's start to the last one's end. */
static double run_all(unsigned count)
{
	double begin = 0, end = 0;
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&thread[i].id, NULL, run, &thread[i]) != 0)
			peer_die("no thread %u; expected that %u can be made", i, count);
	for (unsigned i = 0; i < count; i++) {
		pthread_join(thread[i].id, NULL);
		begin = i && begin < thread[i].begin ? begin : thread[i].begin;
		end = end > thread[i].end ? end : thread[i].end;
	}
	return end - begin;
}

double pm_threads(uint64_t count, bool quick)
{
	if (count < 1 || count > MOST)
		peer_die("threads=%llu: expected 1 to %d", (unsigned long long)count,
			MOST);
	plan = peer_plan_of(quick, true, PEER_WORD);
	pthread_barrier_init(&start, NULL, (unsigned)count);
	for (uint64_t i = 0; i < count; i++)
		MPI_Comm_dup(comm, &thread[i].comm);
	MPI_Barrier(comm);
	double ns = run_all((unsigned)count);
	MPI_Barrier(comm);
	for (uint64_t i = 0; i < count; i++)
		MPI_Comm_free(&thread[i].comm);
	pthread_barrier_destroy(&start);
	return (double)(plan.batches * plan.each * PEER_WINDOW * count) * 1e3 / ns;
}
