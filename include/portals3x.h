/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals3x.h - extensions of libportals to Portals 3.3
 *
 * A program that is to run with other implementations, too, should not use them.  The
 * rules at the top of portals3.h about threads, forked children, signal handlers and
 * errors hold here as well.
 */
#ifndef PORTALS3X_H
#define PORTALS3X_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * PtlXBarrier - wait until all nodes of the job have called it
 *
 * The nodes are the processes that yod or another launcher started.  Actions of a node
 * before its call have happened for every node after its return; the barrier says nothing
 * about messages under way.  In a process that was started by hand it returns at once,
 * even if there are others in the domain.  Under yod it works before PtlNIInit and after
 * PtlNIFini, too; in a job of another launcher only between the two.  Messages are served
 * while a process waits.
 *
 * PTL_NO_INIT	PtlInit has not succeeded, PtlFini has run, or this is a forked child
 * PTL_FAIL	a node of the job died or left before all nodes had called; every later
 *		barrier of the job fails, too.  Also if another thread has called PtlFini
 *		meanwhile; this call counts nevertheless, and the next call of this
 *		process, after PtlInit, waits for the same barrier.  In a job of another
 *		launcher also if this process has no interface, or has closed it
 *		meanwhile, which under yod does not disturb a barrier
 *
 * One thread of a process at a time; the program has to ensure this.  Not from signal
 * handlers.  Blocks until all nodes have called, or one of them is gone.
 */
int PtlXBarrier(void);

/*
 * PtlXAlloc - get memory that peers on this host can read directly
 *
 *	length		in	bytes; 0 gives NULL
 *	addr		out	the block, aligned to 64 bytes, with undefined contents;
 *				it belongs to the caller until PtlXFree or PtlFini
 *
 * Puts and gets of such memory save a copy.  The block comes from the node's shared heap.
 * If there is no shared heap, or no room in it, the block is ordinary memory, with which
 * everything works the same but slower.  PTL3_HEAP in the environment is the size of the
 * heap (default 256M; 0: none); memory is used only as blocks need it.  Peers of the same
 * user can read the shared heap at any time: keep secrets elsewhere.  fork() copies the
 * blocks.
 *
 * Under yod --shared-heap the size is 1G, and malloc takes blocks of 16 KiB and more from
 * the shared heap, too.  There the first fork() ends the sharing of all blocks.
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
 *	addr		in	a block of PtlXAlloc that no descriptor uses any more, or
 *				NULL: no effect
 *
 * PTL_NO_INIT	PtlInit has not succeeded, PtlFini has run, or this is a forked child
 * PTL_FAIL	addr is no block in use, as far as the library can find out
 * PTL_NO_SPACE	only in a signal handler that has interrupted the library: it cannot
 *		free the block now
 *
 * Any thread, not only the one that got the block; does not block.
 */
int PtlXFree(void *addr);

/*
 * PtlXEQDescriptor - get a file descriptor that is readable while events wait in a queue
 *
 *	eq_handle	in	the queue
 *	fd		out	the descriptor; a queue has one, so each call gives the
 *				same
 *
 * The descriptor is for poll, select, epoll and event loops.  It is readable (POLLIN) at
 * first, and from each event on that comes after a PtlXEQArm, until a PtlXEQArm that
 * returns PTL_OK; PtlEQGet and its kin do not change it.  So a program that sleeps calls
 * PtlXEQArm before:
 *
 *	PtlXEQDescriptor(eq, &fd);
 *	for (;;) {
 *		while ((rc = PtlEQGet(eq, &event)) == PTL_OK || rc == PTL_EQ_DROPPED)
 *			use(&event);
 *		if (PtlXEQArm(eq) == PTL_OK)
 *			poll(fds, nfds, -1);	// fd is one of fds
 *	}
 *
 * While all threads of the program sleep, the library's own thread serves messages, also
 * where it is not dedicated.  The other calls of a process that has such a descriptor
 * cost a little more, a few nanoseconds each.
 *
 * The library owns the descriptor: do not read, write or close it.  PtlEQFree, and the
 * end of the interface, make it readable and close it.  If the program has closed it, the
 * library touches no file that gets its number, and the next call gives another one.
 * exec closes it; a forked child has it open, and must not use it.
 *
 * PTL_EQ_INVALID	eq_handle is no live queue
 * PTL_NO_SPACE		no descriptor, of which the library needs two: the process or the
 *			machine has the most open files, or 1,024 queues and CCI endpoints
 *			of this process have one.  Also in a signal handler that has
 *			interrupted the library
 * PTL_SEGV		fd is NULL
 *
 * Any thread; does not block.
 */
int PtlXEQDescriptor(ptl_handle_eq_t eq_handle, int *fd);

/*
 * PtlXEQArm - prepare to sleep on the descriptor of a queue
 *
 *	eq_handle	in	a queue with a descriptor
 *
 * After PTL_OK the descriptor is unreadable, and the next event of the queue makes it
 * readable: no event is overlooked that comes between this call and the sleep.  It may
 * become readable without an event, too, seldom.  After a time in which the program has
 * polled, the first event may be late by a tick of the library's own thread.
 *
 * PTL_OK		the queue was empty
 * PTL_EQ_IN_USE	events wait, or another thread is about to make the descriptor
 *			readable: call PtlEQGet
 * PTL_EQ_INVALID	eq_handle is no live queue
 * PTL_FAIL		the queue has no descriptor: call PtlXEQDescriptor
 *
 * Any thread, several at a time, and signal handlers; does not block.
 */
int PtlXEQArm(ptl_handle_eq_t eq_handle);

/*
 * PtlXVersion - the name and version of the library
 *
 * Returns a constant string for people, "libportals 1.0.0" or longer; never NULL.  Do not
 * free it.
 *
 * Any thread, signal handlers, before PtlInit; does not block.
 */
const char *PtlXVersion(void);

/*
 * Counters of the node, which all interfaces of the process share: 0 when the process
 * initialises an interface and has no other.  New versions of the library add members at
 * the end only.
 */
typedef struct {
	uint32_t struct_size; /* in: sizeof; out: size that the library knows */
	uint32_t reserved;    /* out: 0 */

	uint64_t msgs_sent; /* requests of Portals: puts, gets, getputs */
	uint64_t msgs_received;
	uint64_t bytes_sent; /* data of its puts and getputs */
	uint64_t bytes_received;
	uint64_t drops; /* messages that the node discarded */

	uint64_t puts_inline;      /* puts without ACK, data in the header's cell */
	uint64_t puts_eager;       /* puts without ACK, data in cells behind it */
	uint64_t moved_bulk_bytes; /* bytes copied through windows */
	uint64_t moved_cma_bytes;  /* bytes read from the peer's memory */

	uint64_t passes;         /* turns of the firmware */
	uint64_t passes_drained; /* turns that found nothing to do */
	uint64_t pass_overruns;  /* turns with a read that took too long */
	uint64_t lease_host;     /* lease taken by the program's threads */
	uint64_t lease_nic;      /* lease taken by the NIC thread */
	uint64_t kicks_sent;     /* NIC threads woken at peers that took no cell */
	uint64_t wakes_sent;     /* sleeping peers and threads woken */
	uint64_t park_late;      /* sleeps that a time-out ended with work there */
	uint64_t cma_fallback;   /* peers whose memory cannot be read */
	uint64_t peers_alive;    /* nodes that are alive now, with this one */
	uint64_t lanes_full;     /* times that sends to a node began to wait for room */
	uint64_t hugepages;      /* 1: segments in hugepages, 0: not */
	uint64_t bad_headers;    /* headers of peers that made no sense */

	uint64_t moved_direct_bytes; /* bytes copied from a shared heap or own memory */

	uint64_t wire_dropped; /* 0, as the next four: the library loses no frames */
	uint64_t wire_corrupted;
	uint64_t wire_delayed;
	uint64_t wire_doubled;
	uint64_t wire_reordered;
	/* Frames from and to other hosts. */
	uint64_t wire_resent;   /* frames sent once more */
	uint64_t wire_bad_sums; /* frames that came with a wrong checksum */
	uint64_t wire_doubles;  /* frames that came for the second time */
	uint64_t wire_gaps;     /* frames that came behind a missing one */

	uint64_t job_alive;      /* as peers_alive, without nodes of other jobs */
	uint64_t interrupts;     /* of the host; 0 unless PTL3_MATCH=host */
	uint64_t generic_events; /* headers and events that the host handles */

	/* bytes read out of the memory of nodes on other hosts; those through
	 * windows are in moved_bulk_bytes */
	uint64_t moved_fetched_bytes;

	uint64_t truncated; /* messages of which the node took or gave fewer bytes */
} ptlx_stats_t;

/*
 * PtlXStats - read the counters of the node
 *
 *	ni_handle	in	interface, which one does not matter
 *	stats		in	struct_size: sizeof(ptlx_stats_t)
 *			out	the members that both the caller and the library know;
 *				members that only the caller knows become 0.  struct_size
 *				becomes the size that the library knows
 *
 * The counters are read one after the other while they change: each value is right, but
 * sums of several may not match.
 *
 *	ptlx_stats_t st = { .struct_size = sizeof(st) };
 *	if (PtlXStats(ni, &st) == PTL_OK) ...
 *
 * PTL_NO_INIT		PtlInit has not succeeded, PtlFini has run, or this is a forked
 *			child
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_SEGV		stats is NULL
 * PTL_FAIL		struct_size is smaller than that of the first version, so it was
 *			not set
 *
 * Any thread; does not block.
 */
int PtlXStats(ptl_handle_ni_t ni_handle, ptlx_stats_t *stats);

#ifdef __cplusplus
}
#endif

#endif /* PORTALS3X_H */
