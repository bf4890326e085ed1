/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals3x.h - what libportals offers beyond Portals 3.3
 *
 * Programs that want to run elsewhere, too, should do without.  The rules at the top of
 * portals3.h hold here as well: threads, forked children, signal handlers, errors.
 */
#ifndef PORTALS3X_H
#define PORTALS3X_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * PtlXBarrier - wait until all nodes of the job have come here
 *
 * The nodes are the processes that yod or another launcher started.  What a node did
 * before its call has happened for every node after its return; this says nothing about
 * messages under way.  A process that nobody launched returns at once, whoever is in its
 * domain.  Works before and after PtlNIInit, and after PtlNIFini, under yod; in a job of
 * another launcher only between the two.  Messages are served meanwhile.
 *
 * PTL_NO_INIT	PtlInit has not succeeded, PtlFini has run, or this is a forked child
 * PTL_FAIL	a node of the job died, or left it, before all had come; every later
 *		barrier of the job fails, too.  Also: PtlFini of another thread has run
 *		meanwhile; this process has come all the same, and its next call, after
 *		PtlInit, waits for the same barrier.  In a job of another launcher also:
 *		this process has no interface, or has closed it meanwhile, which under
 *		yod does not disturb a barrier
 *
 * One thread of a process at a time: the caller serialises.  Not from signal handlers.
 * Blocks until all nodes have come or one is gone.
 */
int PtlXBarrier(void);

/*
 * PtlXAlloc - get memory that peers on this host can read directly
 *
 *	length		in	bytes; 0 gives NULL
 *	addr		out	the block, aligned to 64 bytes, contents undefined; the
 *				caller's until PtlXFree or PtlFini
 *
 * Puts from and gets of such memory save a copy.  It comes from the node's shared heap if
 * there is one with room for it, else it is ordinary memory, and all works the same,
 * slower.  PTL3_HEAP in the environment is the heap's size (default 256M; 0: none), of
 * which memory is used as blocks need it.  Peers of the same user can read the shared
 * heap at any time: keep secrets elsewhere.  fork() copies what it holds.
 *
 * Under yod --shared-heap long blocks of malloc are of the same kind, from 16 KiB on, and
 * the size is 1G.  There the first fork() ends the sharing, of these blocks, too.
 *
 * PTL_NO_INIT	PtlInit has not succeeded, PtlFini has run, or this is a forked child
 * PTL_NO_SPACE	no memory
 * PTL_SEGV	addr is NULL
 *
 * Any thread; does not block.
 */
int PtlXAlloc(ptl_size_t length, void **addr);

/*
 * PtlXFree - give a block back
 *
 *	addr		in	from PtlXAlloc, or NULL: no effect; in no descriptor any
 *				more
 *
 * PTL_NO_INIT	PtlInit has not succeeded, PtlFini has run, or this is a forked child
 * PTL_FAIL	addr is no block in use, as far as this can be seen
 * PTL_NO_SPACE	only to a signal handler that has interrupted the library: not now
 *
 * Any thread, not only that which got it; does not block.
 */
int PtlXFree(void *addr);

/*
 * PtlXVersion - which library is this?
 *
 * Returns a constant string for people, "libportals 1.0.0" or longer; never NULL, not to
 * be freed.
 *
 * Any thread, signal handlers, before PtlInit; does not block.
 */
const char *PtlXVersion(void);

/*
 * Counters of an interface, from PtlNIInit on.  Members are only ever added at the end.
 * Those marked (node) are of the node and the same for all interfaces of a process.
 */
typedef struct {
	uint32_t struct_size; /* in: sizeof; out: what the library has */
	uint32_t reserved;    /* out: 0 */

	uint64_t msgs_sent; /* requests, ACKs and replies */
	uint64_t msgs_received;
	uint64_t bytes_sent; /* of users' data */
	uint64_t bytes_received;
	uint64_t drops; /* messages discarded, as PTL_SR_DROP_COUNT */

	uint64_t puts_inline;      /* sent with the data in the header's cell ... */
	uint64_t puts_eager;       /* ... or in cells behind it */
	uint64_t moved_bulk_bytes; /* bytes through windows ... */
	uint64_t moved_cma_bytes;  /* ... and read from the peer's memory */

	uint64_t passes;         /* (node) turns of the firmware */
	uint64_t passes_drained; /* (node) those that left nothing to do */
	uint64_t pass_overruns;  /* (node) those whose read took twice its share */
	uint64_t lease_host;     /* (node) lease taken by program's threads */
	uint64_t lease_nic;      /* (node) lease taken by the library's thread */
	uint64_t kicks_sent;     /* (node) peers woken that took no cell */
	uint64_t wakes_sent;     /* (node) sleeping peers and threads woken */
	uint64_t park_late;      /* (node) work found by a time-out: a bug */
	uint64_t cma_fallback;   /* (node) peers whose memory cannot be read */
	uint64_t peers_alive;    /* (node) now */
	uint64_t lanes_full;     /* (node) sends that had to wait for room */
	uint64_t hugepages;      /* (node) 1: segments in hugepages, 0: not */
	uint64_t bad_headers;    /* (node) headers from peers that made no sense */

	uint64_t moved_direct_bytes; /* copied from a peer's shared heap, or own memory */

	/* (node) With PTL3_WIRE=faulty, else 0. */
	uint64_t wire_dropped; /* frames of this node that were made to suffer so, ... */
	uint64_t wire_corrupted;
	uint64_t wire_delayed;
	uint64_t wire_doubled;
	uint64_t wire_reordered;
	uint64_t wire_resent;   /* ... and that it sent once more */
	uint64_t wire_bad_sums; /* frames that came with a wrong checksum, ... */
	uint64_t wire_doubles;  /* ... for the second time, ... */
	uint64_t wire_gaps;     /* ... and behind a missing one */
} ptlx_stats_t;

/*
 * PtlXStats - read the counters of an interface
 *
 *	ni_handle	in	interface
 *	stats		in	struct_size: sizeof(ptlx_stats_t)
 *			out	as much as both the caller and the library know; what only
 *				the caller knows is set to 0.  struct_size becomes the
 *				size that the library knows
 *
 * The counters are read one after the other while they move: each is right, their sums
 * may be off by what happens meanwhile.
 *
 *	ptlx_stats_t st = { .struct_size = sizeof(st) };
 *	if (PtlXStats(ni, &st) == PTL_OK) ...
 *
 * PTL_NO_INIT		PtlInit has not succeeded, PtlFini has run, or this is a forked
 *			child
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_SEGV		stats is NULL
 * PTL_FAIL		struct_size is smaller than that of the first version: it was not
 *			set
 *
 * Any thread; does not block.
 */
int PtlXStats(ptl_handle_ni_t ni_handle, ptlx_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif /* PORTALS3X_H */
