/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cast - the broadcast itself, one and the same loop on every rank
 *
 * A chunk passes through a slot of the ring in this order:
 *	have	it is there: put by the parent, or read from the file (rank 0)
 *	sent	it is on its way to child i, who had given credit
 *	eaten	it is written to the copy, and in the digest
 *	retired	eaten, and all children's SEND_ENDs have come: the slot is free, and
 *		the parent gets credit for one more chunk
 * All are counts of chunks from the first one on, and go up one by one.  Forwarding
 * comes before eating, so a chunk is in every ring of a branch at the same time.
 *
 * The first failure of any rank ends the job: it is told to rank 0, who tells everybody.
 * A rank that has failed stops eating, but forwards notes until then.
 */
#ifndef FILECAST_CAST_H
#define FILECAST_CAST_H

#include "file.h"
#include "wire.h"

enum cast_status { CAST_OK, CAST_FAILED, CAST_DIFFERS };

struct report {
	bool here;
	uint64_t length;
	uint8_t digest[DIGEST];
	struct spent spent;
};

struct cast {
	struct wire w;
	struct source source; /* rank 0 */
	struct copy copy;
	uint64_t length; /* of the file, once known */
	uint64_t chunks;
	double begun;
	bool known;
	bool is_there[SLOTS];   /* arrived, perhaps before its turn */
	unsigned unsent[SLOTS]; /* children it has not gone to yet */
	uint64_t have, eaten, retired;
	uint64_t sent[CHILDREN], credit[CHILDREN];
	uint64_t told; /* credit given to the parent */
	bool final;    /* rank 0 has sent the last chunk, and its digest */
	bool reported;
	bool failed;
	bool over;
	int status; /* cast_status */
	char why[TEXT];
	/* rank 0 */
	struct report *report; /* by rank */
	unsigned nreports;
	void (*progress)(uint64_t done, uint64_t all);
};

/*
 * Broadcasts file to dir/<rank>, on all ranks together; the wire is open.  Returns when
 * every rank has reported, or one has failed: then why, on rank 0, is the line to print.
 */
void cast_run(struct cast *c, const char *file, const char *dir);

/* Rank 0, afterwards: is this rank's copy the same as its own? */
bool cast_agrees(const struct cast *c, unsigned rank);

#endif
