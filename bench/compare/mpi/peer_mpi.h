/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer_mpi - the patterns of compare with MPI
 *
 *	peer_mpi.c	start; latency, stream, rate, match, alltoall
 *	acked.c		ack, get
 *	am.c		am
 *	polls.c		eqget, eqpoll, queues
 *	steps.c		posted, step
 *	threads.c	threads
 *
 * A pattern returns its value at rank 0.  The prefix pm_ keeps names apart from those of
 * the C library, which MPI calls.  comm, tx and rx belong to the thread: each thread
 * of the pattern threads has its own.
 */
#ifndef BENCH_COMPARE_PEER_MPI_H
#define BENCH_COMPARE_PEER_MPI_H

#include "../peer.h"

#include <mpi.h>

enum { TAG = 1, TAG_BACK = 2, TAG_OTHERS = 100 };

extern int rank, size;
extern __thread MPI_Comm comm;
extern __thread char *tx, *rx;

void pm_allocate(uint64_t largest); /* tx and rx */
void pm_release(void);
void pm_send(const void *at, uint64_t bytes, int tag);
void pm_receive(void *at, uint64_t bytes, int tag);

/* Send or take a window of messages, and its answer. */
void pm_window(uint64_t bytes, uint64_t round);

double pm_ack(uint64_t bytes, bool quick);
double pm_get(uint64_t bytes, bool quick);
double pm_active(uint64_t bytes, bool quick);
double pm_eqget(uint64_t count, bool quick);
double pm_eqpoll(uint64_t count, bool quick);
double pm_queues(uint64_t count, bool quick);
double pm_threads(uint64_t count, bool quick);
double pm_posted(uint64_t bytes, bool quick);
double pm_step(uint64_t step, bool quick);

#endif
