/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * movers - the four ways in which a pull moves a slice
 *
 *	window	the owner copies chunks into a window of its published segment, the reader
 *		copies them out at the same time.  Each ordered pair of nodes has at most
 *		one such transfer (window.c).
 *	cma	the reader copies from the owner's address space, by process_vm_readv
 *		(cma.c).
 *	direct	the reader copies from the owner's shared heap, which it has mapped
 *		(shm/heap.h); or the transfer is from a node to itself (direct.c).
 *	fetch	the wire reads the owner's memory into memory of its own, several slices
 *		at a time, and the reader copies them from there (fetch.c).
 *
 * Only the lease holder calls these functions.  Their state is struct p3_pull, the
 * members of the peer about windows and its process, and n->slices, the length
 * of cross-memory reads.
 */
#ifndef P3_NIC_XFER_MOVERS_H
#define P3_NIC_XFER_MOVERS_H

#include "nic/xfer/slice.h"

#include <sys/types.h>
#include <sys/uio.h>

/* Move a slice.  A pull that has a window reads from the owner's memory, too, while the
 * window is empty. */
enum p3_moved p3_xfer_move_window(struct p3_nic *n, struct p3_pull *pull);
enum p3_moved p3_xfer_move_cma(struct p3_nic *n, struct p3_pull *pull);
enum p3_moved p3_xfer_move_direct(struct p3_nic *n, struct p3_pull *pull);
enum p3_moved p3_xfer_move_fetch(struct p3_nic *n, struct p3_pull *pull);

/* ---- windows ---- */

/* Request a window.  Return P3_MOVED_NOTHING if the next pass has to try again, since the
 * source's bytes are changing, and some of them have been read. */
enum p3_moved p3_xfer_enter_window(struct p3_nic *n, struct p3_pull *pull);
/* Give up the window, if the pull has one. */
void p3_xfer_leave_window(struct p3_pull *pull);

/* ---- fetches ---- */

/* Return true if the wire may fetch the pull's bytes. */
bool p3_xfer_may_fetch(const struct p3_pull *pull);
/* Give up the fetches of a pull, if it has any. */
void p3_xfer_leave_fetches(struct p3_pull *pull);

/* ---- cross-memory reads ---- */

/* Return true if the pull may read the owner's memory. */
bool p3_xfer_may_cma(const struct p3_pull *pull);
/* Read len bytes, from byte at of the transfer on, from the owner's memory.  Return the
 * number of bytes, or -errno. */
ssize_t p3_xfer_read_there(
	struct p3_nic *n, const struct p3_pull *pull, uint64_t at, uint64_t len);
/* React to an error of p3_xfer_read_there(): change the mover, or try again later. */
enum p3_moved p3_xfer_cma_failed(struct p3_nic *n, struct p3_pull *pull, ssize_t err);
#endif
