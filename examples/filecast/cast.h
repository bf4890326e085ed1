/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cast - the broadcast itself, one and the same loop on every rank
 *
 * A chunk passes through a slot of the ring in this order:
 *	have	it is there: put by the parent, or read from the file (rank 0)
 *	sent	it is on its way to child i, which had given credit
 *	eaten	it is written to the copy, and in the digest
 *	retired	eaten, and all children's SEND_ENDs have come: the slot is free, and
 *		the parent gets credit for one more chunk
 * All are counts of chunks from the first one on, and go up one by one.  Forwarding
 * comes before eating, so a chunk is in every ring of a branch at the same time.
 *
 * The first failure of any rank ends the job: the rank tells rank 0, which tells all
 * others.  A rank that has failed stops eating, but forwards notes until then.
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
	uint64_t length; /* of the file, once it is known */
	uint64_t chunks;
	double begun;
	bool known;
	bool is_there[SLOTS];   /* arrived, perhaps out of order */
	unsigned unsent[SLOTS]; /* children that it has not gone to yet */
	uint64_t have, eaten, retired;
	uint64_t sent[CHILDREN], credit[CHILDREN];
	uint64_t told; /* credit that the parent has */
	bool final;    /* rank 0 has sent the last chunk, and its digest */
	bool reported;
	bool failed;
	bool over;
	int status; /* cast_status */
	char why[TEXT];
	/* rank 0 */
	struct report *report; /* indexed by rank */
	unsigned nreports;
	void (*progress)(uint64_t done, uint64_t all);
};

/*
 * Broadcast file to dir/<rank>, on all ranks together; the wire is open.  Return when
 * every rank has reported, or one has failed: then "why" on rank 0 is the line to
 * print.
 */
void cast_run(struct cast *c, const char *file, const char *dir);

/* Afterwards, on rank 0: return true if this rank's copy is the same as its own. */
bool cast_agrees(const struct cast *c, unsigned rank);

#endif
