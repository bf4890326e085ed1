/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop - an endpoint (nic/far/endpoint.h) between nodes of one process, for tests
 *
 * All that a real medium may do, happens here often: it loses, doubles, changes and
 * reorders frames, refuses the first frames to a node, breaks connections with frames
 * under way that it has reported as sent, fails others, never gives some back, and
 * delivers frames of strangers and old frames of the same pair.  A seeded generator
 * decides.
 *
 * A remote read is served when its owner polls, as software providers do.  Reads of one
 * node may overtake each other.  A read that fails, or whose owner has closed, may be
 * reported late.
 *
 * There is one network in a process; a lock guards it.
 */
#ifndef P3_TESTS_FAR_LOOP_H
#define P3_TESTS_FAR_LOOP_H

#include "nic/far/endpoint.h"

enum loop_fault {
	LOOP_DROP,
	LOOP_DUP,
	LOOP_CORRUPT,
	LOOP_SWAP,     /* the frame comes behind the next one */
	LOOP_RESET,    /* the connection breaks: all frames under way are lost */
	LOOP_STRANGER, /* one more frame comes, made without the key */
	LOOP_OLD,      /* an old frame of the pair comes once more */
	LOOP_UNREAD,   /* a remote read fails */
	LOOP_LATE,     /* a remote read is served some polls later */
	LOOP_FAULTS
};

struct loop_counts {
	uint64_t sent, came, refused, failed;
	uint64_t kept;          /* buffers that never came back */
	uint64_t reads, served; /* remote reads that began; those that succeeded */
	uint64_t cuts;
	uint64_t faults[LOOP_FAULTS];
	uint32_t most_waiting; /* most frames that waited for a node at once */
};

extern const struct p3_endpoint_ops loop_ops;

/* Set the faults, each in frames of a million, and forget the counts.  No endpoint is
 * open. */
void loop_set(const uint32_t ppm[LOOP_FAULTS], uint64_t seed);
struct loop_counts loop_counts(void);
/* Let a frame of a stranger wait for each node that opens an endpoint from now on. */
void loop_call_early(bool calls);
/* Serve a part of a remote read only when this time has passed since the last part, so
 * that a long transfer takes long; 0: at once. */
void loop_serve_slowly(uint32_t ms);
/* Return the number of reads of a node's memory that are under way. */
uint32_t loop_reads_of(uint32_t owner);
/* Return the number of frames that wait for a node. */
uint32_t loop_frames_for(uint32_t node);

/*
 * Read P3_FAR: the number of nodes of a host, then pairs of a fault's name and its parts
 * per million, as in 2,drop=10000,reset=500.  Set the faults.  Return the number, or 0
 * if the variable is not set.
 */
uint32_t loop_from_environment(void);
/* Print the counts.  Return true if no frame came, or if P3_FAR asks for a fault that did
 * not happen although many were to be expected. */
bool loop_missed(void);

#endif
