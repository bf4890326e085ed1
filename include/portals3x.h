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
 * PTL_FAIL	addr is no block in use, as far as the library can find out
 * PTL_NO_SPACE	only in a signal handler that has interrupted the library: it cannot
 *		free the block now
 *
 * Any thread, not only the one that got the block; does not block.
 */
int PtlXFree(void *addr);

/*
 * PtlXPTHold - let requests wait for a match entry, instead of dropping them
 *
 *	ni_handle	in	interface
 *	index		in	portal index, 0 to max_pt_index
 *	on		in	not 0: requests wait from now on; 0: they are dropped,
 *				as they are for each index at first
 *
 * A put, get or getput for this index that no match entry and descriptor of the list
 * accepts is not dropped, but stays at the head of the lane from its initiator.  It is
 * tried again when an entry or a descriptor is attached or inserted anywhere, or a
 * descriptor is updated: at the latest when the call that does so returns, or in generic
 * mode soon after.  So no message is lost while a program has no buffers left, and the
 * sender is slowed down instead.
 *
 * While a request waits, all later requests of its initiator to this process wait behind
 * it, whatever their interface and portal index, and messages of CCI, too.  Those of
 * other initiators go on.  Answers never wait, so what this process has asked for comes.
 * A process that waits for its own request, or for a later one of that initiator, before
 * it attaches an entry, waits for ever.
 *
 * A request that an access control entry refuses, or whose index is too large, is dropped
 * as ever.  All that waits is dropped when the interface is closed, and when the
 * initiator dies; if the initiator has closed its interface, or ended by exit(), it waits
 * for ten more seconds.  With "on" 0, what waits is delivered if an entry has come, else
 * dropped.
 *
 * ptlstat why names a process that others wait for, and the index.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_PT_INDEX_INVALID	index is larger than max_pt_index
 * PTL_NO_SPACE		only in a signal handler that has interrupted the library
 *
 * All other indexes follow P3.3 chapter 4, where such a message is dropped.  Any thread;
 * does not block.
 */
int PtlXPTHold(ptl_handle_ni_t ni_handle, ptl_pt_index_t index, int on);

/*
 * An option of a descriptor for requests that want an answer, beside those of portals3.h:
 * the initiator is told that the target has dropped the request, has closed its interface
 * or has died.  A request that wants bytes back then has REPLY_START and REPLY_END, and
 * one that wants an ACK has the ACK, with ni_fail_type other than PTL_NI_OK and mlength
 * 0.  SEND_START and SEND_END, of gets on PTL_IFACE_SS, tell of a failure, too, if the
 * request has not left.  Without the option a get has these events only after the
 * target's death, and a put has no ACK (P3.3 chapter 4).
 */
#define PTLX_MD_REPLY_ALWAYS 0x10000u

/* Most bytes of one PtlXInject. */
#define PTLX_INJECT_MOST 8192

/*
 * PtlXInject - put bytes that are copied before the call returns
 *
 *	ni_handle	in	interface that sends
 *	start		in	first byte, read during the call only; may be NULL if
 *				length is 0
 *	length		in	bytes, 0 to PTLX_INJECT_MOST
 *	target		in	process, without wildcards
 *	pt_index	in	portal index at the target
 *	ac_index	in	access control entry at the target
 *	match_bits	in	for the target's match list
 *	remote_offset	in	bytes from the start of the target's descriptor, if that
 *				lets the initiator choose
 *	hdr_data	in	out-of-band data for the target's event
 *
 * Does what PtlPut does with PTL_NOACK_REQ, in the same order with other requests to the
 * target, but needs no memory descriptor, and posts no events at the initiator: the bytes
 * may change as soon as the call returns.  The target sees an ordinary put.  A message
 * that cannot be delivered is lost in silence, if that is not known at once.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_PROCESS_INVALID	target has a wildcard
 * PTL_FAIL		length is larger than PTLX_INJECT_MOST, or the target has died
 * PTL_SEGV		start is NULL, and length is not 0
 * PTL_NO_SPACE		no memory for the copy: the target has not taken earlier messages
 *			yet.  Call again, after PtlEQGet or PtlProgress.  Also in a
 *			signal handler that has interrupted the library
 *
 * The message is one of P3.3 3.13.2 (PtlPut).  Any thread; does not block.
 */
int PtlXInject(ptl_handle_ni_t ni_handle, const void *start, ptl_size_t length,
	ptl_process_id_t target, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

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

/* The wait of a library that polls an event queue; see PtlXWaitsFor. */
typedef struct {
	uint32_t struct_size;    /* sizeof(ptlx_wait_t) */
	uint32_t silent_ms;      /* for how long the library has found nothing */
	const char *library;     /* its name, of which the first 15 bytes are kept */
	uint32_t receives;       /* receives that no message has taken, at least 1 */
	uint32_t unexpected;     /* messages that no receive has taken */
	ptl_process_id_t source; /* of the message that the oldest of these wants;
				  * PTL_NID_ANY, PTL_PID_ANY: any */
	ptl_match_bits_t tag;    /* of that message, as users of the library know it */
	ptl_match_bits_t ignore; /* bits of the tag that do not count; ~0: any tag */
	/* source, tag and bytes of one of the unexpected messages */
	ptl_process_id_t from;
	ptl_match_bits_t from_tag;
	ptl_size_t length;
} ptlx_wait_t;

/*
 * PtlXWaitsFor - tell tools for which message a library waits
 *
 *	eq_handle	in	the event queue in which the library looks for events
 *	wait		in	the wait, in place of the last one of this queue; it is
 *				copied.  NULL: the library waits no longer
 *
 * For libraries that look for events in a loop of their own, where no call of Portals
 * waits: `ptlstat why` and `ptlstat --json` show the last wait of each queue.  It has no
 * other effect.  Call it once the loop has found nothing for a second, say, then each
 * second, since ptlstat shows how old a wait is; and with NULL when something has come.
 * PtlEQFree and PtlNIFini take the wait of a queue back, too.  A process shows the waits
 * of 16 queues.
 *
 *	ptlx_wait_t wait = { .struct_size = sizeof(wait), .library = "mine", ... };
 *	PtlXWaitsFor(eq, &wait);
 *
 * PTL_EQ_INVALID	eq_handle is no live queue
 * PTL_NO_SPACE		16 other queues have waits
 * PTL_SEGV		library is NULL
 * PTL_FAIL		struct_size is smaller than that of the first version, so it was
 *			not set
 *
 * Any thread, several at a time; the last call counts.  Does not block.
 */
int PtlXWaitsFor(ptl_handle_eq_t eq_handle, const ptlx_wait_t *wait);

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
	uint64_t kept;      /* messages that waited for a match entry (PtlXPTHold) */
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
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_SEGV		stats is NULL
 * PTL_FAIL		struct_size is smaller than that of the first version, so it was
 *			not set
 *
 * Any thread; does not block.
 */
int PtlXStats(ptl_handle_ni_t ni_handle, ptlx_stats_t *stats);

/*
 * The operations and types of PtlXAtomic, in the order of libfabric's enum fi_op and enum
 * fi_datatype.  old is an element at the target, new and cmp are the operands for it.
 * All is as in C, but that integers wrap round, and that rounding and traps of floating
 * point are those at the start of a program.
 */
typedef enum {
	PTLX_MIN,      /* new if new < old */
	PTLX_MAX,      /* new if new > old */
	PTLX_SUM,      /* old + new */
	PTLX_PROD,     /* old * new */
	PTLX_LOR,      /* old || new */
	PTLX_LAND,     /* old && new */
	PTLX_BOR,      /* old | new; as the other operations on bits, not of reals */
	PTLX_BAND,     /* old & new */
	PTLX_LXOR,     /* !old != !new */
	PTLX_BXOR,     /* old ^ new */
	PTLX_READ,     /* old: the operation is a get */
	PTLX_WRITE,    /* new */
	PTLX_CSWAP,    /* new if cmp == old */
	PTLX_CSWAP_NE, /* new if cmp != old */
	PTLX_CSWAP_LE, /* new if cmp <= old */
	PTLX_CSWAP_LT, /* new if cmp < old */
	PTLX_CSWAP_GE, /* new if cmp >= old */
	PTLX_CSWAP_GT, /* new if cmp > old */
	PTLX_MSWAP     /* (new & cmp) | (old & ~cmp), of integers only */
} ptlx_op_t;

typedef enum {
	PTLX_INT8,
	PTLX_UINT8,
	PTLX_INT16,
	PTLX_UINT16,
	PTLX_INT32,
	PTLX_UINT32,
	PTLX_INT64,
	PTLX_UINT64,
	PTLX_FLOAT,
	PTLX_DOUBLE
} ptlx_type_t;

/*
 * PtlXAtomic - change a few elements of another process's memory atomically
 *
 *	get_md_handle	in	descriptor for the target's former elements (a fetch) ...
 *	get_local_offset	in	... from this byte of its region on.
 *				PTL_INVALID_HANDLE: they are not fetched (plain form)
 *	put_md_handle	in	descriptor of the operands; not used by PTLX_READ ...
 *	put_local_offset	in	... from this byte of its region on: length
 *				bytes of new elements; for PTLX_CSWAP and all behind it,
 *				then length bytes of elements to compare with
 *	length		in	bytes of elements at the target, a multiple of the type's
 *				size.  The operands are at most max_getput_md bytes (64):
 *				those of PTLX_CSWAP and all behind it are twice the length
 *	op, type	in	the operation on each element
 *	ack_req		in	plain form: as for PtlPut; else without effect
 *	target_id ... hdr_data	in	as for PtlPutRegion
 *
 * The plain form is a put: events SEND and ACK here, PUT at the target, whose descriptor
 * needs PTL_MD_OP_PUT only.  Nothing waits for an answer, so many are under way at once.
 * A fetch is as PtlGetPutRegion: events SEND and REPLY here, GETPUT at the target, whose
 * descriptor needs both PTL_MD_OP_PUT and PTL_MD_OP_GET.  PTLX_READ is a get: events
 * REPLY here, GET at the target, PTL_MD_OP_GET.  Thresholds and access control are those
 * of these calls, too.
 *
 * The target's firmware executes the operation when it matches the request, so requests
 * of a process take effect in the order of its calls.  An operation is atomic for all
 * Portals operations on these bytes, as PtlGetPut is.  Elements that are aligned at the
 * target and in one piece of memory are, one by one, also atomic for the atomic
 * instructions of the target's program; others, and the bytes of PtlGetPut, are not.  A
 * target's descriptor with less room does not match, or with PTL_MD_TRUNCATE leaves out
 * the elements that do not fit whole.
 *
 * Types without a name above, such as long double and complex ones, are refused.
 *
 * PTL_MD_INVALID	a handle is no live descriptor, or it is inactive (threshold 0);
 *			PTLX_READ without get_md_handle
 * PTL_MD_ILLEGAL	an offset, or the end of the bytes behind it, is beyond its
 *			region's end; length is no multiple of the type's size; there are
 *			too many operands; the descriptors are of different interfaces
 * PTL_FAIL		op or type is none of the above, or they do not go together
 * PTL_PROCESS_INVALID	target_id has a wildcard
 * PTL_NO_SPACE		too much is waiting to be sent already
 *
 * Any thread; does not block.
 */
int PtlXAtomic(ptl_handle_md_t get_md_handle, ptl_size_t get_local_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t put_local_offset, ptl_size_t length,
	ptlx_op_t op, ptlx_type_t type, ptl_ack_req_t ack_req, ptl_process_id_t target_id,
	ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

#ifdef __cplusplus
}
#endif

#endif /* PORTALS3X_H */
