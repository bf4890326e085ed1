/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * carry - the memory of a pair of nodes, carried in frames
 *
 * A wire without shared memory has one struct p3_carry for each peer.  It holds private
 * rings, the words of the pair, and an image of the peer's published segment, and it
 * makes frames (frame.h) of this node's writes:
 *
 *	  firmware				      firmware of the peer
 *	  rings, mine, slots, windows			rings, theirs, image
 *	    | capture					  ^ apply
 *	  frames not acknowledged ---- the wire's ---->  in order, once, intact
 *				       medium
 *
 * It keeps copies of this node's entry and transfer slots as last sent, compares, and
 * sends the changes; then the new bytes of windows; then the published messages,
 * responses first.  All frames of a pair have one order, which gives guarantees B and C
 * of wire.h.
 *
 * The two rings of a pair, the producer's and its image at the consumer, have the same
 * size and go through the same positions, pads included.  So the consumer's credits,
 * which travel in its entry, are right for the producer's ring, and a frame always finds
 * room: resources are reserved end to end, and only faults of the medium make a node send
 * a frame again.
 *
 * A long transfer goes through a window, whose bytes travel in frames: they have the
 * same checksums as all other frames.
 *
 * The lease holder calls these functions, except make and drop, which no other call may
 * overlap.
 */
#ifndef P3_NIC_WIRE_CARRY_H
#define P3_NIC_WIRE_CARRY_H

#include "nic/state.h"
#include "nic/wire/frame.h"

/* cells of a private ring, a quarter of which is the data of one frame */
#define P3_CARRY_CELLS 128u

_Static_assert(P3_CARRY_CELLS / 4 == P3_FRAME_CELLS, "each message fits one frame");
_Static_assert(P3_BASE_CELLS <= P3_CARRY_CELLS, "also in the shortest rings");

/* The producer's ring and the consumer's, in private memory. */
struct p3_carry_half {
	struct p3_cell out[P3_CARRY_CELLS], in[P3_CARRY_CELLS];
	struct p3_ring_rx tap;  /* end of out from which frames take */
	p3_a64 tapped;          /* credit of tap, which no producer reads */
	struct p3_ring_tx feed; /* end of in into which frames put */
};

struct p3_carry {
	struct p3_carry_half req, rsp;
	struct p3_peer_entry mine, shown; /* the entry now, and as the peer
					   * knows it */
	struct p3_xfer *slots;            /* nxfers slots as the peer knows them */
	bool *known;                      /* slots that the peer knows as in use */
	uint64_t *produced;               /* bytes of each slot's window that were sent */
	char *image;
	struct p3_gbn gbn;
	struct p3_frame queue[P3_FRAME_WINDOW];
	struct p3_peer *peer;
	uint64_t now;  /* time of the wire's present turn for this peer */
	uint32_t goal; /* settled when all frames before this one are acknowledged */
	bool has_goal;
	bool all_captured;
};

/* (any) Allocate the tables of a zeroed struct.  Return 0 or -ENOMEM; drop frees what
 * there is. */
int p3_carry_make(struct p3_nic *n, struct p3_carry *c);
void p3_carry_drop(struct p3_carry *c);

/* Forget the other end, and point the peer and the lane to this memory.  The wire sets up
 * gbn. */
void p3_carry_reset(struct p3_nic *n, struct p3_carry *c, struct p3_peer *p,
	struct p3_lane *lane_out);

/* Make frames of all that this node has written for the peer, as far as the queue has
 * room. */
void p3_carry_capture(struct p3_nic *n, struct p3_carry *c);
/* Do what a frame says.  Return false if it cannot be right. */
bool p3_carry_apply(struct p3_nic *n, struct p3_carry *c, const struct p3_frame *f);

/* Add the counters of gbn to the node's, and restart them. */
void p3_carry_count(struct p3_nic *n, struct p3_carry *c);
/* Return true if the peer has received all that was written when the goal was dropped
 * (has_goal is false). */
bool p3_carry_has_settled(struct p3_carry *c);

#endif
