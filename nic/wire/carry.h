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
 * A frame has parts: bytes of words, slots or windows with their place, and runs of
 * messages of a ring.  A capture fills few frames with all new bytes: changes of this
 * node's entry and transfer slots, found by copies of those that were last sent; bytes
 * of windows; then the published messages, responses first, of which each cell has only
 * the words that differ from those of the cell before, so that a burst of short messages
 * fits into one packet of the network.  All frames of a pair have one order, and a frame
 * is applied whole, which gives guarantees B and C of wire.h.
 *
 * Credits and gauges may wait for gbn.ack_ns for a frame that goes anyway, unless a
 * quarter of a ring's cells depends on them.
 *
 * The two rings of a pair, the producer's and its image at the consumer, have the same
 * size and go through the same positions, pads included.  So the consumer's credits,
 * which travel in its entry, are right for the producer's ring, and a frame always finds
 * room: resources are reserved end to end, and only faults of the medium make a node send
 * a frame again.
 *
 * A pair begins with short rings.  When the firmware continues in full ones, whose
 * cells lie in the segment of the producer, the wire follows as it carries the switch
 * cell: it takes from there, and puts into the image of them at the consumer.
 *
 * A long transfer goes through a window, whose bytes travel in frames: they have the
 * same checksums as all other frames.
 *
 * The lease holder calls these functions.
 */
#ifndef P3_NIC_WIRE_CARRY_H
#define P3_NIC_WIRE_CARRY_H

#include "nic/state.h"
#include "nic/wire/frame.h"

#include <string.h>

/* Slots of a peer at a time: its own one and a share of the others, in both halves. */
#define P3_CARRY_SLOTS (2 * (1 + P3_XFERS_SHARED / 4))

enum p3_part_what { P3_PART_STORE = 1, P3_PART_REQUESTS, P3_PART_RESPONSES };

/* A part is followed by len bytes, and by others up to the next word of 8. */
struct p3_part {
	uint64_t at; /* STORE: their place in the sender's segment */
	uint32_t len;
	uint32_t what; /* p3_part_what */
};

/* Of a run of messages each cell has a byte, whose bits name the words that differ from
 * those of the cell before it, or from zeros, and then these words. */
#define P3_PACKED_CELL (1 + P3_CELL) /* bytes at most */

/* Write a cell to a place with room for P3_PACKED_CELL bytes.  was is the cell before it
 * and becomes this one.  Return the number of bytes. */
static inline uint32_t p3_cell_pack(
	unsigned char *to, const uint64_t cell[8], uint64_t was[8])
{
	uint32_t len = 1, differ = 0;
	for (uint32_t i = 0; i < 8; i++) {
		bool differs = cell[i] != was[i];
		memcpy(to + len, &cell[i], sizeof cell[i]);
		was[i] = cell[i];
		differ |= (uint32_t)differs << i;
		len += 8 * differs;
	}
	*to = (unsigned char)differ;
	return len;
}

/* Read a cell of at most left bytes, and do as p3_cell_pack().  Return the number of
 * bytes, or 0 if the cell has more. */
static inline uint32_t p3_cell_unpack(
	const unsigned char *from, uint64_t left, uint64_t was[8])
{
	uint32_t len = 1;
	if (!left || left <= 8 * (uint32_t)__builtin_popcount(*from))
		return 0;
	for (uint32_t differ = *from; differ; differ &= differ - 1, len += 8)
		memcpy(&was[__builtin_ctz(differ)], from + len, 8);
	return len;
}

/* The producer's ring and the consumer's, in private memory. */
struct p3_carry_half {
	struct p3_ring_rx tap;  /* end of out from which frames take */
	p3_a64 tapped;          /* credit of tap, which no producer reads */
	struct p3_ring_tx feed; /* end of in into which frames put */
	struct p3_cell *cells;  /* those of out, and then those of in */
};

/* A transfer slot as the peer knows it. */
struct p3_carry_slot {
	uint32_t slot;
	uint64_t produced; /* bytes of its window that were sent */
	struct p3_xfer is;
};

struct p3_carry {
	struct p3_peer_entry mine, shown; /* the entry now, and as the peer
					   * knows it */
	/* Offer the bytes of this node's slot to the peer, and return the key by which
	 * the peer may fetch them, or 0.  NULL: the wire fetches nothing. */
	uint64_t (*offer)(struct p3_nic *n, struct p3_carry *c, uint32_t slot);
	struct p3_gbn gbn;
	struct p3_frame *open; /* the frame that is being filled, or NULL */
	struct p3_part *last;  /* its last part, if messages may join it */
	uint64_t packed[8];    /* the last cell of that part */
	char *image;           /* as long as the peer's segment */
	struct p3_peer *peer;
	uint64_t now;        /* time of the wire's present turn for this peer */
	uint64_t lazy_since; /* since when a credit waits for a frame, or 0 */
	uint32_t goal; /* settled when all frames before this one are acknowledged */
	bool has_goal;
	bool all_captured;
	bool used;    /* the rings are not as new */
	bool silent;  /* it sends nothing before the first message of either side */
	bool hurries; /* the next capture sends all credits */
	uint32_t nslots;
	struct p3_carry_half req, rsp;
	_Alignas(P3_LINE) struct p3_cell cells[4 * P3_BASE_CELLS];
	struct p3_carry_slot slots[P3_CARRY_SLOTS];
};

/* Forget the other end, and point the peer and the lane to this memory, which was zeroed
 * before the first life.  The wire sets up gbn. */
void p3_carry_reset(struct p3_nic *n, struct p3_carry *c, struct p3_peer *p,
	struct p3_lane *lane_out);

/* Make frames of all that this node has written for the peer, as far as the queue has
 * room. */
void p3_carry_capture(struct p3_nic *n, struct p3_carry *c);
/* Return true if a capture would find nothing, and no frame is due. */
bool p3_carry_is_still(const struct p3_nic *n, struct p3_carry *c);
/* Do what a frame says.  Return false if it cannot be right. */
bool p3_carry_apply(struct p3_nic *n, struct p3_carry *c, const struct p3_frame *f);

/* Return true if nothing is left to be sent or given back: the wire need not look at
 * this pair until the firmware has touched the peer, or a frame has come. */
bool p3_carry_is_quiet(const struct p3_carry *c);
/* Return the time at which a credit that waits must be sent, or UINT64_MAX. */
uint64_t p3_carry_due(const struct p3_carry *c);

/* Add the counters of gbn to the node's, and restart them. */
void p3_carry_count(struct p3_nic *n, struct p3_carry *c);
/* Return true if the peer has received all that was written when the goal was dropped
 * (has_goal is false). */
bool p3_carry_has_settled(struct p3_carry *c);

#endif
