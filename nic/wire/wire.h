/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire - the transport between two firmwares
 *
 * A firmware sees a peer through these only (struct p3_peer):
 *
 *	req_out, rsp_out	rings that it publishes messages in, for the peer
 *	req_in, rsp_in		rings that it takes the peer's messages from
 *	mine			its words to the peer: credits, progress in windows
 *	theirs			the peer's words to it
 *	image			the peer's published segment as seen from here, namely its
 *				transfer table, and the windows that are named there
 *
 * and writes its own transfer table and windows.  A wire carries one firmware's writes
 * to the place where the other firmware reads them.  It guarantees, while both nodes
 * live:
 *
 *	WIRE A	Each message that was published is seen once, whole and unchanged, in the
 *		order of its ring.
 *	WIRE B	A response that was published before a request is seen before it.
 *	WIRE C	A write to mine, to the transfer table or to a window before a message
 *		was published is seen with that message, or earlier; the members of one
 *		entry and of one slot are of one moment, and a slot that says how many
 *		bytes its window has comes with or after those bytes.  A slot that says
 *		that bytes have changed (again) comes before the new bytes.
 *	WIRE D	The peer's writes are seen in the end, with no call by its program.
 *	WIRE E	All that a node has published before p3_nic_settle is with its peers after
 *		it, also if the node leaves then.
 *
 * The wire may deliver anything late: to the firmware these are another processor's
 * stores.  Reads of a peer's memory that bypass the wire (cross-memory reads, shared
 * heaps) need shared memory: on other wires there are none, and edge XFER.5 is void.
 * Doorbells, births and deaths are the machine's and do not travel on the wire.
 *
 * The lease holder calls all functions except start and stop.  None waits for another
 * thread or process, and none except start allocates.  A wire reports its writes to the
 * medium by p3_fw_touch(), so that sleeping readers are woken, and its reads by
 * n->worked.  Its state is in n->wire_state.
 *
 * The first wire is shared memory (NULL in struct p3_nic): the rings, entries and
 * tables are the published segments themselves, and there is nothing to do.  The other
 * one is for tests.
 */
#ifndef P3_NIC_WIRE_H
#define P3_NIC_WIRE_H

#include <stdbool.h>
#include <stdint.h>

struct p3_cell;
struct p3_nic;
struct p3_peer;

/* The rings between this node and a peer. */
struct p3_lane {
	struct p3_cell *req_out, *rsp_out, *req_in, *rsp_in;
	uint32_t cells; /* cells of each, a power of two */
	bool base;      /* longer rings can be carved later */
};

struct p3_wire {
	uint32_t id; /* in segment headers: both ends must have the same; not 0 */
	/* Start: conf, layout and published segment are there, no peer yet.  Return 0
	 * or -errno. */
	int (*start)(struct p3_nic *n);
	void (*stop)(struct p3_nic *n);
	/* Set mine, theirs, cold, image and *lane_out for a new peer.  The caller
	 * initializes the rings, and the credits in mine.  Return 0 or -errno. */
	int (*attach)(struct p3_nic *n, struct p3_peer *p, struct p3_lane *lane_out);
	/* Detach a peer that ends; before that, drain takes all its messages. */
	void (*detach)(struct p3_nic *n, struct p3_peer *p);
	void (*drain)(struct p3_nic *n, struct p3_peer *p);
	/* Called at the beginning of each pass. */
	void (*poll)(struct p3_nic *n);
	/* Send all published messages, before each look at the words of sleeping
	 * nodes. */
	void (*flush)(struct p3_nic *n);
	/* Return true if the wire has later work for which no peer rings the doorbell. */
	bool (*waits)(const struct p3_nic *n);
};

/* A wire that loses, corrupts, delays, doubles and reorders, and recovers
 * (nic/wire/faulty.c). */
extern const struct p3_wire p3_wire_faulty;

#endif
