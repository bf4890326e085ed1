/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * upper - upper pendings: the requests at the heads of the lanes, as the host sees them
 *
 * The firmware fills an upper pending with a header that it has checked.  The host
 * matches it, and leaves its command there.  Each source has one upper pending, so a
 * source's requests are matched in the order of its lane.  Only the lease holder touches
 * them.
 */
#ifndef P3_NIC_GENERIC_UPPER_H
#define P3_NIC_GENERIC_UPPER_H

#include "nic/proto/proto.h"

/* Cells that an upper pending has room for: the header, and the payload that goes with
 * it. */
#define P3_UPPER_CELLS 2u

enum p3_upper_state {
	P3_UPPER_FREE,
	P3_UPPER_ASKED,   /* the header is in the generic event queue */
	P3_UPPER_LATER,   /* the host could not place the request yet */
	P3_UPPER_RECEIVE, /* receive command: the firmware has to move the bytes */
	P3_UPPER_DONE     /* the host has done all; the firmware gives the cells back */
};

struct p3_upper {
	struct p3_cell cell[P3_UPPER_CELLS];
	struct p3_incoming r;
	uint64_t pos; /* of the request, in a ring of ncells cells */
	uint32_t ncells;
	uint8_t state;       /* p3_upper_state */
	uint8_t reply_state; /* of the reply at the head of the other ring: FREE, ASKED,
			      * or DONE: the firmware may take it */
	uint64_t again_ns;   /* LATER: the firmware asks again at this time */
	uint64_t wait_ns;
	struct p3_placed placed; /* RECEIVE */
};

#endif
