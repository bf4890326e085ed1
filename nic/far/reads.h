/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reads - remote reads of the memory of nodes on other hosts, for long transfers
 *
 *	owner	carry.c shows the peer a slot  --offer-->  its bytes have a key, which
 *		goes with the slot; it is recalled when the transfer is over
 *	reader	fetch --> two reads, of the bytes and then of the slot --> HERE
 *
 * The key of the transfer table goes with the words of the pair.  Keys travel in frames,
 * which streams authenticate.
 *
 * A read that is under way cannot be called back.  docs/design/remote-reads.md tells what
 * follows for slices, orphans, and bytes that go early, and when a reader cuts.
 *
 * The lease holder calls these functions, except open, end and close: the thread that
 * starts or stops the NIC.
 */
#ifndef P3_NIC_FAR_READS_H
#define P3_NIC_FAR_READS_H

#include "nic/far/link.h"
#include "nic/wire/wire.h"

#define P3_FAR_SLICES   16u         /* fetches of a node */
#define P3_FAR_SHARE    4u          /* and of a link */
#define P3_FAR_STUCK_NS 2000000000u /* doubled each time for the same fetch */

/* A fetch, and the memory that it reads into. */
struct p3_far_slice {
	struct p3_fetch fetch;
	struct p3_far_read bytes, slot;
	struct p3_far_link *link; /* NULL: the slice is free */
	uint32_t waits;           /* reads that the endpoint has */
	bool slot_due;            /* the slot is to be read yet */
	bool failed;
	bool dropped; /* the fetch was let go */
	uint64_t began;
	uint64_t stuck_ns;    /* cut the connection this long after it began */
	struct p3_xfer found; /* the slot that was read */
};

struct p3_far_offer {
	struct p3_far_region region;
	uint64_t id; /* transfer; 0: no region */
	bool listed; /* the slot is one of those that had a region lately */
};

struct p3_far_reads {
	enum p3_far_reads_kind kind;
	struct p3_far_region table; /* the transfer table */
	struct p3_far_slice slices[P3_FAR_SLICES];
	char *memory;                /* theirs */
	struct p3_far_offer *offers; /* by slot */
	uint32_t *offered, noffered; /* the listed slots */
	uint64_t turn_at;            /* when all links may begin reads again */
	uint32_t under_way;          /* slices with waits or slot_due */
};

/* Prepare reads, if the endpoint can.  Without them long transfers use windows. */
void p3_far_reads_open(struct p3_nic *n, struct p3_far *far);
/* Recall all, before the endpoint closes. */
void p3_far_reads_end(struct p3_far *far);
/* Free the memory, after the endpoint has closed. */
void p3_far_reads_close(struct p3_far *far);

/* Offer the bytes of a slot to its peer, and return their key, or 0: see carry.h. */
uint64_t p3_far_offer(struct p3_nic *n, struct p3_carry *c, uint32_t slot);

/* Recall the bytes of transfers that are over. */
void p3_far_reads_recall(struct p3_nic *n, struct p3_far *far);

/* Begin a life of a pair: tell the peer the key of the table. */
void p3_far_reads_up(struct p3_far_link *l);

/* Take a read that the endpoint has reported. */
void p3_far_reads_done(struct p3_nic *n, struct p3_far_read *r, bool failed);
/* Do what is due, in each pass. */
void p3_far_reads_look(struct p3_far *far, uint64_t now);
/* Return the time of the next look that is due, or UINT64_MAX. */
uint64_t p3_far_reads_turn(const struct p3_far *far);

static inline bool p3_far_reads_are_under_way(const struct p3_far *far)
{
	return far->reads && far->reads->under_way;
}

#endif
