/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mpi_layer - messages matched by context, source and tag, as MPI libraries had them
 *
 * The match list of the portal for messages:
 *
 *	posted receives		any protocol; threshold 1
 *	a mark			without a descriptor: receives are put before it
 *	unexpected blocks	short messages, one behind the other, until less than a
 *				short message's room is left (MAX_SIZE)
 *	the rest		long ones: the header only
 *
 * Short messages are put.  Long ones are put, too, with the bytes exposed for a get:
 * the ACK tells whether they were taken or the receiver will fetch them
 * (MPI_EAGER_LONG), or only their header is put and the receiver always fetches
 * (MPI_RENDEZVOUS).  A synchronous one is exposed likewise: a receiver that finds it
 * unexpected fetches 0 bytes.
 *
 * One thread.  Requests belong to the layer until mpi_wait, mpi_test or mpi_cancel end
 * them.
 */
#ifndef COMPAT_MPI_LAYER_H
#define COMPAT_MPI_LAYER_H

#include "job.h"

enum { MPI_ANY = -1, MPI_SHORT = 8192 };
enum mpi_long { MPI_EAGER_LONG, MPI_RENDEZVOUS };
enum mpi_post { MPI_BY_UPDATE, MPI_BY_POST }; /* PtlMDUpdate, PtlMEMDPost */
enum mpi_send { MPI_STANDARD, MPI_SYNCHRONOUS, MPI_READY };

struct mpi_status {
	int source, tag;
	size_t length;   /* bytes that arrived */
	bool truncated;  /* more bytes were sent */
	bool unexpected; /* it came before its receive */
};

struct mpi_request;

void mpi_begin(enum mpi_long, enum mpi_post);
void mpi_end(void);

struct mpi_request *mpi_isend(
	const void *bytes, size_t length, int to, int tag, int context, enum mpi_send);
struct mpi_request *mpi_irecv(
	void *bytes, size_t length, int source, int tag, int context);

void mpi_wait(struct mpi_request *, struct mpi_status *);
bool mpi_test(struct mpi_request *, struct mpi_status *);

/* Cancel a receive.  Return false if a message has already come to it. */
bool mpi_cancel(struct mpi_request *);

bool mpi_probe(int source, int tag, int context, struct mpi_status *);

/* For tests: called between the search for a message and the attempt to post. */
extern void (*mpi_between)(void);

/* Counts since the start. */
struct mpi_count {
	unsigned long posted, unexpected, fetched, again, blocks;
};
struct mpi_count mpi_counts(void);

#endif
