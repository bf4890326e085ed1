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

#include "nic/generic/generic.h"
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

/* ---- the firmware's part: it asks the host about headers, and executes its commands
 * ---- */

/*
 * A request stays at the head of its lane until the host has placed it and the firmware
 * has moved its bytes; the requests of other peers go on meanwhile.  These functions are
 * for peers whose bit p->asks is set.  The state is n->generic->upper.
 */

enum p3_generic_next {
	P3_GENERIC_WAIT,   /* the request stays in its lane */
	P3_GENERIC_TAKEN,  /* it is done, and its cells can be given back */
	P3_GENERIC_DIRECT, /* the peer is going: the firmware matches by itself */
};

/* Go on with the request at the head of the peer's lane, which has been checked. */
P3_RARE enum p3_generic_next p3_generic_take(
	struct p3_nic *n, struct p3_peer *p, const struct p3_incoming *r);
/* Return true if the response in the cell c is a reply that the host has yet to see. */
P3_RARE bool p3_generic_reply_waits(
	struct p3_nic *n, struct p3_peer *p, const struct p3_cell *c, uint64_t w0);
/* Return true if the host has done all for the request at the head of the lane. */
P3_RARE bool p3_generic_is_done(const struct p3_nic *n, const struct p3_peer *p);
/* Let the firmware ask again at once about a request that the host has put off: its index
 * may keep it by now. */
P3_RARE void p3_generic_hurry(struct p3_nic *n, const struct p3_peer *p);
/* If the host has yet to match the request at the head of the lane of a peer that ends,
 * let it handle all entries now.  Return false if it has not been asked. */
P3_RARE bool p3_generic_answer(struct p3_nic *n, const struct p3_peer *p);
/* End the request that the host has placed for a peer that is lost.  Return false if
 * there is none. */
P3_RARE bool p3_generic_refuse(struct p3_nic *n, struct p3_peer *p);
/* Do the same at the end of a lost peer, whatever its lane looks like, and forget its
 * requests: another peer may come in its place. */
P3_RARE void p3_generic_lose(struct p3_nic *n, struct p3_peer *p);
/* Forget the requests that the host has placed in an interface that closes: touch no
 * memory of the program, and post no event.  ni is its index, or P3_JOB_NIS: all. */
P3_RARE void p3_generic_forget(struct p3_nic *n, uint32_t ni);

#endif
