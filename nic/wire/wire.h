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
 *	WIRE F	A fetch that is HERE has bytes of the peer's memory, and the transfer's
 *		slot as it was when the last of these bytes was read, or later.
 *
 * The wire may deliver anything late: to the firmware these are another processor's
 * stores.  Reads of a peer's memory that bypass the wire (cross-memory reads, shared
 * heaps) need shared memory.  On other wires edge XFER.5 is void: an owner does not
 * learn in time that a fetch has begun, so it takes each transfer that it has offered for
 * one whose reader has begun (offered of struct p3_xfer_slot).
 * Doorbells, births and deaths are the machine's and do not travel on the wire.
 *
 * Each peer has a wire (p->wire), which both nodes of the pair choose alike, and which
 * does not change while the NIC runs.  On shared memory the rings, entries and tables are
 * the published segments themselves: a message needs no function of the wire.  The wire
 * between hosts carries frames: it is polled and flushed, and its state is n->wire_state.
 *
 * map and unmap run in a host thread, start and stop when the NIC starts and stops.  The
 * lease holder calls all others.  None waits for another thread or process, and none
 * except start and map allocates.  A wire reports its writes to the medium by
 * p3_looks_add(), so that sleeping readers are woken, and its reads by n->worked.
 *
 * The wire between hosts needs passes for which no peer rings the doorbell: news gives a
 * descriptor for the node's threads to sleep on (nic/run/run.h), and arm makes it
 * readable in time.  While there is none, waits makes sleeps short.
 */
#ifndef P3_NIC_WIRE_H
#define P3_NIC_WIRE_H

#include "shm/layout.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct iovec;
struct p3_nic;
struct p3_peer;
struct p3_peer_info;

/* The rings of P3_BASE_CELLS between this node and a peer; longer ones are carved
 * later. */
struct p3_lane {
	struct p3_cell *req_out, *rsp_out, *req_in, *rsp_in;
};

#define P3_FETCH_LEAST 16384u  /* least bytes of a transfer that is fetched */
#define P3_FETCH_MOST  262144u /* most bytes of one fetch */

/* Bytes of a peer's transfer that the wire reads into memory of its own. */
struct p3_fetch {
	struct p3_fetch *next; /* for the pull */
	enum { P3_FETCH_UNDER_WAY, P3_FETCH_HERE, P3_FETCH_FAILED } state;
	uint64_t at, len; /* place in the transfer */
	const char *bytes;
	const struct p3_xfer *slot; /* the transfer's slot, for WIRE F */
};

/* The functions of a wire.  A node may have peers on shared memory and on the wire
 * between hosts. */
struct p3_wire {
	/* (any) Map what a peer's descriptors refer to, and check its header; set base,
	 * page, doorbell_at and view of info.  Return 0, or -errno; unmap also what a
	 * failed call has mapped. */
	int (*map)(struct p3_nic *n, struct p3_peer_info *info);
	void (*unmap)(struct p3_peer_info *info);
	/* Take over the mapped memory of a new peer, and set all that struct p3_peer
	 * has of it, as well as *lane_out.  The caller initializes the rings, and the
	 * credits in mine. */
	void (*attach)(struct p3_nic *n, struct p3_peer *p,
		const struct p3_peer_info *info, struct p3_lane *lane_out);
	/* Return the number of passes that the peer's firmware has made, as far as this
	 * node knows. */
	uint64_t (*passes)(const struct p3_nic *n, const struct p3_peer *p);
	/* Make the peer's firmware run, or a sleeping thread of it look.  NULL, as for
	 * all that follow: there is nothing to do. */
	void (*kick)(struct p3_nic *n, struct p3_peer *p);

	/* Only the wire between hosts has the functions that follow.  Files below it call
	 * them by these pointers; files above it call p3_far_*(). */

	/* Start: conf, layout, published segment and all p->wire are there, no peer yet.
	 * Return 0 or -errno. */
	int (*start)(struct p3_nic *n);
	void (*stop)(struct p3_nic *n);
	/* Send all published messages, before each look at the words of sleeping nodes;
	 * poll, at the beginning of each pass, also takes what has come. */
	void (*flush)(struct p3_nic *n);
	void (*poll)(struct p3_nic *n);
	/* Return true if the wire has later work for which no peer rings the doorbell. */
	bool (*waits)(const struct p3_nic *n);
	/* Return the wire's descriptor, or -errno: there is none.  start opens it, and it
	 * does not change while the NIC runs. */
	int (*news)(const struct p3_nic *n);
	/*
	 * Make the wire's descriptor show when the wire needs the next pass.  It is
	 * called after the last pass before a thread sleeps, and after each change while
	 * one sleeps.  Return 0: the descriptor becomes readable then at the latest, and
	 * stays so until the next call.  Return -EAGAIN if the wire needs a pass at once,
	 * so that no thread shall sleep; after the pass it must not be -EAGAIN again for
	 * the same work.  Other errors mean that there is no descriptor, or that it is
	 * gone for good.
	 */
	int (*arm)(struct p3_nic *n);
	/* Copy the gauges of the wire to the counters of the node. */
	void (*show)(struct p3_nic *n);
};

/* ---- shared memory, between nodes of one machine (nic/wire/shm.c) ---- */

extern const struct p3_wire p3_wire_shm;
/*
 * Read bytes at an address in the peer's memory into here[1] to here[k]; here[0] is this
 * function's to use.  Return the number of bytes, or -errno; -ESRCH: the process is not
 * the peer any more.
 */
ssize_t p3_shm_read_peer(
	struct p3_peer *p, struct iovec *here, unsigned k, uint64_t at, uint64_t len);
/* Read a process's memory.  Return the number of bytes, or -errno.  The program's errno
 * keeps its value. */
ssize_t p3_shm_read(uint32_t os_pid, const struct iovec *here, unsigned k,
	const struct iovec *there, unsigned l);

/* ---- another host, behind an endpoint (nic/far/far.c, nic/far/reads.c) ---- */

extern const struct p3_wire p3_wire_far;
/* Take all messages of a peer that ends, and then detach it.  These, and cut, do nothing
 * for a peer of the other wire. */
void p3_far_drain(struct p3_nic *n, struct p3_peer *p);
void p3_far_detach(struct p3_nic *n, struct p3_peer *p);
/*
 * Begin to read len bytes, at most P3_FETCH_MOST, from byte `at` of the peer's transfer
 * on.  Return the fetch, or NULL: later.  Its state changes in poll.  let_go gives a
 * fetch in any state back; while one that was under way is not over, the peer sees no
 * later message of this node, since it may then do with the bytes' memory as it likes.
 * can_fetch returns true if the peer, of any wire, has offered this transfer.
 */
bool p3_far_can_fetch(const struct p3_peer *p, uint64_t id);
struct p3_fetch *p3_far_fetch(struct p3_peer *p, uint64_t id, uint64_t at, uint64_t len);
void p3_far_let_go(struct p3_fetch *f);
/*
 * End all fetches of the pair that are under way, on both sides.  Call this after the ids
 * of transfers were taken back and before their bytes are, unless the peer has said that
 * it has read them: the peer reads nothing of them any more.  No message is lost.
 */
void p3_far_reads_cut(struct p3_nic *n, struct p3_peer *p);

#endif
