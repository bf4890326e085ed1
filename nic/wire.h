/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire - what lies between two firmwares
 *
 * A firmware knows a peer by these only (struct p3_peer):
 *
 *	req_out, rsp_out	rings that it publishes messages in, for the peer
 *	req_in, rsp_in		rings that it takes the peer's messages from
 *	mine			words that it says to the peer: credits, windows read
 *	theirs			the peer's words to it
 *	image			the peer's published segment as seen from here: of it the
 *				transfer table, and the windows that are named there
 *
 * and writes its own transfer table and windows.  A wire brings what one firmware writes
 * to where the other reads it.  It guarantees, while both nodes live:
 *
 *	WIRE A	Each message that was published is seen once, whole and unchanged, in the
 *		order of its ring.
 *	WIRE B	A response that was published before a request is seen before it.
 *	WIRE C	What was written to mine, the transfer table and a window before a message
 *		was published is seen with that message, or earlier; the members of one
 *		entry and of one slot are of one moment, and a slot that says how many
 *		bytes its window has comes with or after those bytes.  One that says that
 *		bytes have changed (again) comes before new ones.
 *	WIRE D	What the peer has written is seen in the end, with no call by its program.
 *	WIRE E	What a node has published before p3_nic_settle is with its peers after it,
 *		also if the node leaves then.
 *
 * The wire may be late with anything: for the firmware all these are another processor's
 * stores.  Reads of a peer's memory that go past the wire (cross-memory reads, shared
 * heaps) need shared memory: on other wires there are none, and edge XFER.5 is void.
 * Doorbells, births and deaths are the machine's and do not travel on it.
 *
 * All functions are called by the holder of the lease, but for start and stop.  None
 * waits for anybody, none but start allocates.  What a wire puts on its medium it reports
 * by p3_fw_touch(), so that who sleeps there is rung for; what it has taken, by
 * n->worked.
 *
 * The first wire is shared memory (NULL in struct p3_nic): the rings, entries and tables
 * are the published segments themselves, and there is nothing to do.  The other one is
 * for tests.
 */
#ifndef P3_NIC_WIRE_H
#define P3_NIC_WIRE_H

#include <stdbool.h>
#include <stdint.h>

struct p3_cell;
struct p3_nic;
struct p3_peer;

/* Where the rings of a peer lie. */
struct p3_lane {
	struct p3_cell *req_out, *rsp_out, *req_in, *rsp_in;
	uint32_t cells; /* of each, a power of two */
	bool base;      /* longer ones can be carved later */
};

struct p3_wire {
	uint32_t id; /* in segment headers: both ends have the same; not 0 */
	/* Conf, layout and published segment are there, no peer yet.  0 or -errno. */
	int (*start)(struct p3_nic *n);
	void (*stop)(struct p3_nic *n);
	/* A peer is born: sets mine, theirs, cold, image, *lane_out.  The rings, and the
	 * credits in mine, are initialised by the caller.  0 or -errno. */
	int (*attach)(struct p3_nic *n, struct p3_peer *p, struct p3_lane *lane_out);
	/* Its end.  First all that has come is taken. */
	void (*detach)(struct p3_nic *n, struct p3_peer *p);
	void (*drain)(struct p3_nic *n, struct p3_peer *p);
	/* At the begin of each pass. */
	void (*poll)(struct p3_nic *n);
	/* Before each look at who sleeps: what was published goes out. */
	void (*flush)(struct p3_nic *n);
	/* Is there something to be done later for which nobody rings? */
	bool (*waits)(const struct p3_nic *n);
};

/* Loses, corrupts, delays, doubles and reorders, and recovers (nic/faulty.c). */
extern const struct p3_wire p3_wire_faulty;

#endif
