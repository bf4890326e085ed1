/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals3.h - the Portals 3.3 message passing interface
 *
 * This header has the types, constants and functions of Portals 3.3, and the extensions
 * that existing programs use.  Ranks, maps and the job id are in portals3_runtime.h, the
 * additions of libportals in portals3x.h.  "P3.3 x.y" is a section of the Portals 3.3
 * document, which the comments call "the document".
 *
 *
 * Caveats
 * =======
 *
 * Threads.  Handles belong to the process.  After the first successful PtlInit any thread
 * may call any function at any time, without a lock, also while other threads call the
 * same function.  Each call is atomic with respect to other calls and to arriving
 * messages; a sequence of calls is not.  "Any thread" below means exactly this, and each
 * exception is named.  The program is responsible for the memory of a descriptor: between
 * START and END of an operation (or, if START events are off, from the moment when the
 * descriptor can match) it must not rely on bytes that are being written, nor change
 * bytes that are being read.
 *
 * Blocking.  Only PtlEQWait, and PtlEQPoll with a timeout, wait for an event.  The other
 * functions return in bounded time, whatever peers do.  A signal does not end a wait, and
 * no function reports EINTR.
 *
 * Progress.  Once started, an operation completes without another call by either side:
 * both processes may compute, sleep, or wait in the barrier of another library.  The
 * library has a thread of its own for this.  That thread stays idle while a thread of the
 * program is inside the library, and may need some milliseconds to notice that the
 * program computes.  Event queue handlers are the exception: they run in the thread that
 * reads the event.
 *
 * Fork.  A forked child has no part in its parent's interfaces: each call returns
 * PTL_NO_INIT until the child has called PtlInit itself, and the child's exit does not
 * disturb the parent.  exec ends the interfaces of a process, as its exit does.  A
 * process may leave by _exit, or crash, without PtlNIFini: the other processes clean up.
 *
 * Signals.  The library installs no signal handler, uses no signal, and its thread blocks
 * all signals.  A signal handler, wherever it has interrupted its thread,
 *	- may read queues: PtlEQGet, PtlEQPeek, PtlEQPoll with timeout 0;
 *	- may start operations: PtlPut, PtlGet and their relatives;
 *	- may ask for ids, ranks, names and counters: PtlGetUid, PtlGetId, PtlGetJid,
 *	  PtlNIHandle, PtlNIDist, PtlGetRank, PtlGetRankId, PtlGetNIDMap, PtlGetPIDMap,
 *	  PtlXStats, PtlErrorStr and its relatives, cnos_get_rank, cnos_get_size;
 *	- may make, change and remove match entries, descriptors without PTL_MD_IOVEC,
 *	  queues and access control entries, and call PtlNIStatus and PtlProgress;
 *	- may, unless it has interrupted malloc, also call functions that need malloc:
 *	  those that take a descriptor with PTL_MD_IOVEC, PtlXAlloc, PtlXFree,
 *	  PtlSetRank, PtlSetNIDMap, PtlSetPIDMap, cnos_get_nidpid_map, and the Dump
 *	  functions;
 *	- must not call functions that wait, start or end: PtlEQWait, PtlEQPoll with a
 *	  timeout, PtlXBarrier and cnos_barrier, PtlInit, PtlFini, PtlNIInit, PtlNIFini.
 * No call hangs or does harm if the handler has interrupted a call of the library in its
 * own thread, but there are restrictions then:
 *	- PTL_EQ_EMPTY is possible although an event is there or on its way.
 *	- An operation is carried out when the interrupted call goes on.  The call in the
 *	  handler reports only a dead descriptor or a bad target; an operation with any
 *	  other error has no effect.
 *	- A call that needs the state of the interface, or memory, returns PTL_NO_SPACE
 *	  and has no effect: the functions that make, change or remove an object,
 *	  PtlNIStatus, PtlXAlloc, PtlXFree and the Dump functions.  A function without
 *	  that code returns PTL_FAIL; a cnos function returns -1.
 *	- The functions that must not be called fail at once: PtlEQWait and PtlEQPoll
 *	  return PTL_EQ_EMPTY, PtlNIInit and PtlNIFini PTL_NO_SPACE, PtlInit and
 *	  PtlXBarrier PTL_FAIL, and PtlFini does nothing.
 * A longjmp or siglongjmp out of a handler that has interrupted the library has undefined
 * behavior, as out of malloc.  So has asynchronous cancellation of a thread inside the
 * library.  No function is a cancellation point.
 *
 * Death of a peer.  Only a process that is certainly gone counts as dead.  A process that
 * is stopped or in a debugger is alive: operations with it wait, operations with other
 * processes do not.  When a peer has died, or when there never was such a process, the
 * operations with it end in bounded time:
 *	put		SEND_END with ni_fail_type other than PTL_NI_OK, if the data had
 *			not been handed over; an ACK that was not sent will not come
 *	get		REPLY_START, then REPLY_END with ni_fail_type other than PTL_NI_OK
 *			and mlength 0; on PTL_IFACE_SS the SEND pair fails instead, if
 *			SEND_END had not been posted
 *	getput		the SEND pair fails likewise or, after SEND_END, the REPLY pair
 * Afterwards the descriptors can be unlinked.  A descriptor into which an operation of
 * the dead peer was writing may hold part of the data, and its END event says so.  A
 * process that ends without PtlNIFini has died, even with exit status 0.  A peer that
 * called PtlNIFini is no failure: as with any discarded message, the sender of a put sees
 * success, and the initiator of a get never gets an event.
 *
 * Memory that is slow to read.  The bytes of a long put, or those that a long get asks
 * for, may not be in memory: they may lie in a mapped file, or in pages that a
 * userfaultfd provides.  A process whose bytes are not in memory when their transfer
 * begins reads them itself, 64 KiB at most at a time, and its own interface waits for
 * them.  No other process waits for these pages in a call: its operations with third
 * processes take no longer than otherwise.  This does not hold for pages that leave
 * memory less than 10 ms before the transfer begins, or during it, for files that the
 * process neither owns nor may write, and for userfaultfds for write protection or minor
 * faults.  A thread that provides pages of such bytes must not wait for a call of the
 * library in the same process.
 *
 * A peer that has yet to come.  An operation on a process that has not called PtlNIInit
 * waits at its initiator until that process joins; it fails as above when that process
 * has ended, or after 300 s (PTL3_ABSENT).  This holds for the ranks of the job and, in a
 * domain, for the processes that PTL_NIDMAP and PTL_PIDMAP or the Set functions name.
 * Meanwhile the descriptors are in use, as those of other operations under way, and
 * messages to other peers are not held up.  But PtlMDUnlink and PtlMEUnlink end short
 * puts (see PtlPut) that wait: the library copies their bytes, up to 1 MiB in all, and
 * posts SEND_END.  PtlPut, PtlGet and PtlGetPut return PTL_NO_SPACE when tens of
 * thousands of operations wait.
 *
 * PtlNIFini waits ten seconds at most for the targets of such copies, and so does a
 * process that leaves by exit or by the end of main, also while another thread is inside
 * PtlNIFini.  Both discard the other waiting operations.  _exit waits for nothing: a
 * program that leaves so should have seen the SEND_END of its puts before it unlinks
 * their descriptors.
 *
 * No buffering.  The target discards and counts a message that no descriptor accepts
 * (PTL_SR_DROP_COUNT); the initiator is not told.  With PTL3_LOG=drops in its environment
 * the target writes the reason to standard error.  While the target's interface is new,
 * such a message waits instead, as the program may be about to attach the match entry:
 * until the program has looked for an event, has sent a message, or has entered a
 * barrier, and for ten seconds at most.
 *
 *
 * Order of completions
 * ====================
 *
 * Portals starts operations in order, and completes them in any order.  Only the rules
 * below promise an order; docs/completions.md names the test of each.  They hold between
 * two processes, within one, and between hosts, in all modes.
 *
 * One operation.
 *	O1	START comes before END, and SEND_END before the ACK of a put, before the
 *		REPLY pair of an exchange and, on PTL_IFACE_SS, of a get.
 *	O2	At PUT_END, GETPUT_END and REPLY_END the bytes are in place, at SEND_END
 *		and GET_END they have been read, and at ACK they are in place at the
 *		target.
 * SEND_END says nothing about the target.  The initiator may have its ACK before the
 * target has its PUT_END, and its REPLY_END before the target has its GET_END.
 *
 * Operations of one initiator on one target, by one interface: begun by one thread, or by
 * threads that wait for one another.
 *	O3	They start in the order of the calls, whatever their kinds, lengths and
 *		portal indexes.  SEND_STARTs come in this order at the initiator, STARTs
 *		at the target, and messages are matched in this order.
 *	O4	If an operation is over when the next one begins, its END comes before the
 *		next one's START at the target, and its bytes before those.  A put is over
 *		at its ACK or SEND_END, a get or an exchange at its REPLY_END.
 * While several operations are under way, their END, ACK and REPLY events come in any
 * order, also if their lengths are equal.  Two of them that use the same bytes may mix:
 * a get may return a part of a put that was called before it.  To have the bytes of a
 * flag written behind those of the data, wait for the ACK of the data.
 *	O5	An exchange is the exception: no other operation comes between its read
 *		and its write.
 *
 * One descriptor.
 *	O6	UNLINK is the last event, behind the events of all operations, and when it
 *		is read, the descriptor is gone.
 *	O7	With a local offset that the target manages, bytes are placed one behind
 *		the other in the order of the STARTs.
 *
 * One queue.
 *	O8	Events are read in the order in which they came, each once, by one thread.
 *
 * No order: between operations of different initiators, on different targets, or by
 * different interfaces; between events of different queues, also in PtlEQPoll; between an
 * operation and PtlXBarrier, which says nothing about messages.
 *
 *
 * How to read the function comments
 * =================================
 *
 * Every int function returns PTL_OK on success, and PTL_NO_INIT if PtlInit has not
 * succeeded, PtlFini has run, or the caller is a forked child; the comments below do not
 * repeat these two.  No function changes errno.
 * "in" arguments are read during the call and not kept, except for the memory that a
 * ptl_md_t describes: the interface uses it until the descriptor is unlinked.  "out"
 * arguments are written on PTL_OK only, unless the comment says otherwise.  A call that
 * fails has no effect.  A NULL pointer gives PTL_SEGV; another bad address may crash the
 * program.  If several return codes apply, any of them may be returned.  A handle is
 * valid while its object exists.  A handle of a freed object, of an object of another
 * kind, or of a finalised interface gives the return code that is listed; its value is
 * not reused soon.
 */
#ifndef PORTALS3_H
#define PORTALS3_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scalar types ------------------------------------------------------- P3.3 3.2 */

typedef uint64_t ptl_size_t; /* bytes */
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;  /* carried to the target unchanged */
typedef uint32_t ptl_pt_index_t;  /* entry of a portal table */
typedef uint32_t ptl_ac_index_t;  /* entry of an access control table */
typedef uint32_t ptl_interface_t; /* PTL_IFACE_* */
typedef uint32_t ptl_nid_t;
typedef uint32_t ptl_pid_t;
typedef uint32_t ptl_uid_t;
typedef uint32_t ptl_jid_t;      /* parallel job */
typedef uint32_t ptl_sr_index_t; /* PTL_SR_* */
typedef int64_t ptl_sr_value_t;
typedef uint32_t ptl_time_t;    /* milliseconds */
typedef uint32_t ptl_seq_t;     /* wraps: use unsigned difference */
typedef uint32_t ptl_ni_fail_t; /* PTL_NI_* */

/* ---- handles ---------------------------------------------------------- P3.3 3.2.2 */

/* Scalars: compare with ==, pass by value.  Each kind converts to "any" and back. */
typedef uint64_t ptl_handle_any_t;
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef ptl_handle_any_t ptl_handle_me_t;
typedef ptl_handle_any_t ptl_handle_md_t;

/* None of these three ever names an object.  All are constant expressions. */
#define PTL_INVALID_HANDLE ((ptl_handle_any_t)UINT64_MAX)
#define PTL_EQ_NONE        ((ptl_handle_eq_t)(UINT64_MAX - 1))  /* no queue */
#define PTL_HANDLE_NONE    ((ptl_handle_any_t)(UINT64_MAX - 2)) /* extension */

/* ---- identifiers ---------------------------------------- P3.3 3.2.3, 3.2.5, 3.2.6 */

typedef struct {
	ptl_nid_t nid;
	ptl_pid_t pid;
} ptl_process_id_t;

/* Wildcards: no process ever has one of them as its id. */
#define PTL_NID_ANY ((ptl_nid_t)-1)
#ifndef PTL_PID_ANY
#define PTL_PID_ANY ((ptl_pid_t)-1)
#endif
#define PTL_UID_ANY      ((ptl_uid_t)-1)
#define PTL_JID_ANY      ((ptl_jid_t)-1)
#define PTL_JID_NONE     ((ptl_jid_t)0)       /* extension: in no job */
#define PTL_PT_INDEX_ANY ((ptl_pt_index_t)-1) /* PtlACEntry only */

/*
 * Interfaces.  A process may have both; each behaves as below towards any peer:
 *
 *				PTL_IFACE_DEFAULT	PTL_IFACE_SS
 *	behaves as		the specification says	a Cray XT
 *	automatic unlink	UNLINK event		UNLINK event if the descriptor has
 *							PTL_MD_EVENT_AUTO_UNLINK_ENABLE
 *	get			REPLY pair, takes 1	SEND pair and REPLY pair, takes 2
 *	PtlNIInit once more	PTL_OK			PTL_IFACE_DUP
 *
 * A get takes 1 or 2 from the threshold of its descriptor.  In all other respects the
 * interfaces are the same.  PTL3_PERSONALITY in the environment makes both behave alike
 * (docs/porting.md).
 *
 * The Cray names below all mean PTL_IFACE_SS.  A program in which PTL_IFACE_DEFAULT is to
 * mean PTL_IFACE_SS defines it before it includes this file.
 */
#ifndef PTL_IFACE_DEFAULT
#define PTL_IFACE_DEFAULT 0
#endif
#define PTL_IFACE_SS                               1

#define PTL_BRIDGE_UK                              0
#define PTL_BRIDGE_QK                              1
#define CRAY_UK_SSNAL                              PTL_IFACE_SS
#define CRAY_QK_NAL                                PTL_IFACE_SS
#define CRAY_USER_NAL                              PTL_IFACE_SS
#define IFACE_FROM_BRIDGE_AND_NALID(bridge, nalid) ((bridge) | (nalid) | PTL_IFACE_SS)

/* ---- return codes ------------------------------------------------------- P3.3 3.3 */

/* The comment of each function says when it returns a code.  Codes index ptl_err_str. */
enum {
	PTL_OK = 0,
	PTL_AC_INDEX_INVALID = 1,
	PTL_EQ_DROPPED = 2, /* success: an event, but events before it are lost */
	PTL_EQ_EMPTY = 3,
	PTL_EQ_INVALID = 4,
	PTL_FAIL = 5,
	PTL_HANDLE_INVALID = 6,
	PTL_IFACE_INVALID = 7,
	PTL_MD_ILLEGAL = 8,
	PTL_MD_INVALID = 9,
	PTL_MD_IN_USE = 10,
	PTL_MD_NO_UPDATE = 11,
	PTL_ME_INVALID = 12,
	PTL_ME_IN_USE = 13,
	PTL_ME_LIST_TOO_LONG = 14,
	PTL_NI_INVALID = 15,
	PTL_NO_INIT = 16,
	PTL_NO_SPACE = 17,
	PTL_PID_INVALID = 18,
	PTL_PROCESS_INVALID = 19,
	PTL_PT_FULL = 20,
	PTL_PT_INDEX_INVALID = 21,
	PTL_SEGV = 22,
	PTL_SR_INDEX_INVALID = 23,
	PTL_UNKNOWN_ERROR = 24, /* from here on: not in the document */
	PTL_IFACE_DUP = 25,     /* Cray's success of PtlNIInit: interface is open */
	PTL_EQ_IN_USE = 26,     /* of PtlXEQArm (portals3x.h) only: events wait */
	PTL_VAL_FAILED = 27,    /* from here on: never returned, defined only for */
	PTL_PID_IN_USE = 28,    /*	programs that name them */
	PTL_NOT_IMPLEMENTED = 29,
	PTL_MAX_ERRNO = 30 /* no code: one more than the largest */
};

/* Macros for programs that test with #ifdef whether a name exists. */
#define PTL_HANDLE_INVALID  PTL_HANDLE_INVALID
#define PTL_UNKNOWN_ERROR   PTL_UNKNOWN_ERROR
#define PTL_IFACE_DUP       PTL_IFACE_DUP
#define PTL_EQ_IN_USE       PTL_EQ_IN_USE
#define PTL_VAL_FAILED      PTL_VAL_FAILED
#define PTL_PID_IN_USE      PTL_PID_IN_USE
#define PTL_NOT_IMPLEMENTED PTL_NOT_IMPLEMENTED
#define PTL_MAX_ERRNO       PTL_MAX_ERRNO

/* Masks for PtlNIDebug as Cray names them; p3api/debug.h has the reference's names. */
#define PTL_DEBUG_ALL    0x0000ffffu /* every part of the library */
#define PTL_DEBUG_NI_ALL 0xffff0000u /* every part of the network */

/*
 * Extension: the names of the return codes, indexed by code: "PTL_OK" is the first.  The
 * last name is followed by an entry for PTL_MAX_ERRNO and a NULL.  PtlErrorStr accepts
 * every number.
 */
extern const char *ptl_err_str[];

/* ---- status registers ------------------------------------------------- P3.3 3.2.7 */

/*
 * PTL_SR_DROP_COUNT is a register of the document, the others are extensions.  All count
 * from PtlNIInit on.  Lengths are in bytes.
 *
 *	PTL_SR_DROP_COUNT	Messages that arrived and were discarded.
 *	PTL_SR_DROP_LENGTH	Bytes that the discarded messages asked to move.
 *	PTL_SR_RECV_COUNT	Messages that were accepted.
 *	PTL_SR_RECV_LENGTH	Bytes that were moved for accepted messages.
 *	PTL_SR_SEND_COUNT	Messages that were sent.
 *	PTL_SR_SEND_LENGTH	Bytes of the messages that were sent.
 *	PTL_SR_PTLS_MAX		The highest value that PTL_SR_PTLS_CUR has had.
 *	PTL_SR_PTLS_CUR		Portal indexes that have a match list now.
 *	PTL_SR_MSGS_ALLOC	Operations that have begun.
 *	PTL_SR_MSGS_FREED	Operations that have ended.
 *	PTL_SR_MSGS_MAX		The highest value that PTL_SR_MSGS_CUR has had.
 *	PTL_SR_MSGS_CUR		Operations that are under way now.
 *	PTL_SR_MES_ALLOC	Match entries that have been made.
 *	PTL_SR_MES_FREED	Match entries that have been unlinked.
 *	PTL_SR_MES_MAX		The highest value that PTL_SR_MES_CUR has had.
 *	PTL_SR_MES_CUR		Match entries that exist now.
 *	PTL_SR_MDS_ALLOC	Memory descriptors that have been made.
 *	PTL_SR_MDS_FREED	Memory descriptors that have been unlinked.
 *	PTL_SR_MDS_MAX		The highest value that PTL_SR_MDS_CUR has had.
 *	PTL_SR_MDS_CUR		Memory descriptors that exist now.
 *	PTL_SR_EQS_ALLOC	Event queues that have been made.
 *	PTL_SR_EQS_FREED	Event queues that have been freed.
 *	PTL_SR_EQS_MAX		The highest value that PTL_SR_EQS_CUR has had.
 *	PTL_SR_EQS_CUR		Event queues that exist now.
 *	PTL_SR_MD_ALIGN_128	Descriptors that have been made, with a start address
 *				that is a multiple of 128.
 *	PTL_SR_MD_ALIGN_64	The same with 64, and not with 128.
 *	PTL_SR_MD_ALIGN_32	The same with 32, and not with 64.
 *	PTL_SR_MD_ALIGN_16	The same with 16, and not with 32.
 *	PTL_SR_MD_ALIGN_8	The same with 8, and not with 16.
 */
enum {
	PTL_SR_DROP_COUNT = 0,
	PTL_SR_DROP_LENGTH,
	PTL_SR_RECV_COUNT,
	PTL_SR_RECV_LENGTH,
	PTL_SR_SEND_COUNT,
	PTL_SR_SEND_LENGTH,
	PTL_SR_PTLS_MAX,
	PTL_SR_PTLS_CUR,
	PTL_SR_MSGS_ALLOC,
	PTL_SR_MSGS_FREED,
	PTL_SR_MSGS_MAX,
	PTL_SR_MSGS_CUR,
	PTL_SR_MES_ALLOC,
	PTL_SR_MES_FREED,
	PTL_SR_MES_MAX,
	PTL_SR_MES_CUR,
	PTL_SR_MDS_ALLOC,
	PTL_SR_MDS_FREED,
	PTL_SR_MDS_MAX,
	PTL_SR_MDS_CUR,
	PTL_SR_EQS_ALLOC,
	PTL_SR_EQS_FREED,
	PTL_SR_EQS_MAX,
	PTL_SR_EQS_CUR,
	PTL_SR_MD_ALIGN_128,
	PTL_SR_MD_ALIGN_64,
	PTL_SR_MD_ALIGN_32,
	PTL_SR_MD_ALIGN_16,
	PTL_SR_MD_ALIGN_8
};

/* ---- limits of an interface ------------------------------------------- P3.3 3.5.1 */

/*
 * The limits of an interface.  PtlNIInit takes the desired limits and returns the actual
 * ones.
 *
 *	max_mes		Match entries that can exist at a time.
 *	max_mds		Memory descriptors that can exist at a time.
 *	max_eqs		Event queues that can exist at a time.
 *	max_ac_index	The largest valid index of the access control table.
 *	max_pt_index	The largest valid portal index, at least 63.
 *	max_md_iovecs	Elements of one descriptor with PTL_MD_IOVEC.
 *	max_me_list	Match entries on one portal index.
 *	max_getput_md	Bytes that one PtlGetPut can exchange.
 */
typedef struct {
	int max_mes;
	int max_mds;
	int max_eqs;
	int max_ac_index;
	int max_pt_index;
	int max_md_iovecs;
	int max_me_list;
	int max_getput_md;
} ptl_ni_limits_t;

/* ---- match entries ---------------------------------------------------- P3.3 3.9.1 */

typedef enum {
	PTL_RETAIN = 0, /* the object stays until a call unlinks it */
	PTL_UNLINK = 1  /* automatic unlink: see PtlMEAttach, PtlMDAttach */
} ptl_unlink_t;

typedef enum { PTL_INS_BEFORE = 0, PTL_INS_AFTER = 1 } ptl_ins_pos_t;

/* ---- memory descriptors -------------------------------------- P3.3 3.10.1, 3.10.2 */

/*
 * The caller's description of a region of memory.  Each call that takes one copies it.
 *
 *	start, length	The bytes, with any alignment; start is NULL only with length 0.
 *			With PTL_MD_IOVEC, start is an array of ptl_md_iovec_t, which is
 *			copied, too, and length is the number of its elements; they make
 *			up the region in this order.
 *	threshold	Number of operations that the descriptor still takes part in: a
 *			START/END pair counts 1 and an ACK counts 1, so a put with ACK
 *			needs 2, and so does a get of PTL_IFACE_SS.  At 0 the descriptor
 *			is inactive: it neither matches nor sends, but accepts the ACKs
 *			and replies that are under way.  PTL_MD_THRESH_INF: no limit.
 *	max_size	Bytes; used with PTL_MD_MAX_SIZE only.  It does not limit the size
 *			of a message: an operation that leaves less room than this behind
 *			the local offset makes the descriptor inactive.
 *	options		PTL_MD_*, or-ed.
 *	user_ptr	A value for the program, which events return.  The library does
 *			not use it.
 *	eq_handle	The queue of the same interface that records the events, or
 *			PTL_EQ_NONE.
 *
 * Accepted requests fill the region one behind the other: each begins at the descriptor's
 * local offset, which is 0 at first and grows by the bytes moved.  With
 * PTL_MD_MANAGE_REMOTE each request carries its own offset, the local offset stays, and
 * PTL_MD_MAX_SIZE has no effect.
 *
 * The interface reads and writes the region until the descriptor is unlinked, by a call
 * or automatically, and never afterwards.
 */
typedef struct {
	void *start;
	ptl_size_t length;
	int threshold;
	ptl_size_t max_size;
	unsigned int options;
	void *user_ptr;
	ptl_handle_eq_t eq_handle;
} ptl_md_t;

/* Same members, order and, on 64-bit systems, layout as struct iovec. */
typedef struct {
	void *iov_base;
	ptl_size_t iov_len; /* bytes */
} ptl_md_iovec_t;

#define PTL_MD_THRESH_INF (-1)

/*
 * Options of a descriptor, or-ed.  A descriptor that only sends needs none.
 *
 *	PTL_MD_OP_PUT		Accept puts and, together with PTL_MD_OP_GET, exchanges
 *				(PtlGetPut).
 *	PTL_MD_OP_GET		Accept gets.
 *	PTL_MD_MANAGE_REMOTE	Each request carries the offset at which it begins;
 *				without this option requests go one behind the other.
 *	PTL_MD_TRUNCATE		Accept a request that is longer than the room behind its
 *				offset, and move as much as fits.  Without this option
 *				such a request goes on to the next match entry.
 *	PTL_MD_ACK_DISABLE	Never acknowledge a put, even if its sender asks for it.
 *	PTL_MD_IOVEC		start points to an array of ptl_md_iovec_t, and length is
 *				the number of its elements.
 *	PTL_MD_MAX_SIZE		The descriptor becomes inactive when less than max_size
 *				bytes of room are left.
 *	PTL_MD_EVENT_START_DISABLE	Record no START events.
 *	PTL_MD_EVENT_END_DISABLE	Record no END events; ACK and UNLINK are recorded.
 *	PTL_MD_EVENT_AUTO_UNLINK_ENABLE	From Cray: on PTL_IFACE_SS, record an UNLINK event
 *				when the descriptor is unlinked automatically.
 *	PTL_MD_EVENT_MANUAL_UNLINK_ENABLE	From Cray: accepted, without effect.
 */
#define PTL_MD_OP_PUT                     0x001u
#define PTL_MD_OP_GET                     0x002u
#define PTL_MD_MANAGE_REMOTE              0x004u
#define PTL_MD_TRUNCATE                   0x008u
#define PTL_MD_ACK_DISABLE                0x010u
#define PTL_MD_IOVEC                      0x020u
#define PTL_MD_MAX_SIZE                   0x040u
#define PTL_MD_EVENT_START_DISABLE        0x080u
#define PTL_MD_EVENT_END_DISABLE          0x100u
#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE   0x200u
#define PTL_MD_EVENT_MANUAL_UNLINK_ENABLE 0x400u

/* Options of other implementations: they are accepted and have no effect. */
#define PTL_MD_FLAG_AUTO_UNLINK            0u
#define PTL_MD_LUSTRE_COMPLETION_SEMANTICS 0u
#define PTL_MD_LOCAL_ALIGN8                0u
#define PTL_MD_PHYS                        0u

/* ---- events ------------------------------------------------------ P3.3 3.11.1 - 6 */

/*
 * START says that the bytes of this side are in use from now on, END that they are free.
 *
 *	PTL_EVENT_GET_START	Target: a get has matched this descriptor.
 *	PTL_EVENT_GET_END	Target: the bytes of the get have been read.
 *	PTL_EVENT_PUT_START	Target: a put has matched this descriptor.
 *	PTL_EVENT_PUT_END	Target: the bytes of the put are in place.
 *	PTL_EVENT_GETPUT_START	Target: an exchange has matched this descriptor.
 *	PTL_EVENT_GETPUT_END	Target: the bytes are exchanged.
 *	PTL_EVENT_REPLY_START	Initiator of a get or an exchange: the answer begins to
 *				arrive.
 *	PTL_EVENT_REPLY_END	Initiator of a get or an exchange: the answer is in place.
 *	PTL_EVENT_SEND_START	Initiator of a put or an exchange: sending begins.  See
 *				PtlGet for gets on PTL_IFACE_SS.
 *	PTL_EVENT_SEND_END	Initiator: the region may be used again.  It does not say
 *				that the target has accepted the bytes.
 *	PTL_EVENT_ACK		Initiator of a put: the target has accepted it, and
 *				mlength bytes are in place there.
 *	PTL_EVENT_UNLINK	The descriptor was unlinked automatically.  This is the
 *				last event of the descriptor.
 */
typedef enum {
	PTL_EVENT_GET_START = 0,
	PTL_EVENT_GET_END,
	PTL_EVENT_PUT_START,
	PTL_EVENT_PUT_END,
	PTL_EVENT_GETPUT_START,
	PTL_EVENT_GETPUT_END,
	PTL_EVENT_REPLY_START,
	PTL_EVENT_REPLY_END,
	PTL_EVENT_SEND_START,
	PTL_EVENT_SEND_END,
	PTL_EVENT_ACK,
	PTL_EVENT_UNLINK
} ptl_event_kind_t;

/* Outcome of an operation, in its END event.  Values other than 0 are failures. */
#define PTL_NI_OK   0
#define PTL_NI_FAIL 1

/*
 * One event.  initiator, uid and jid name the process that sent the request; in ACK and
 * REPLY they name the process that answered it.  pt_index, match_bits and rlength are
 * those of the request.  offset counts in bytes
 *	PUT, GET, GETPUT	in the region of md, as used: the data are mlength bytes
 *				at (char *)md.start + offset, unless md is an iovec
 *	SEND			in the region of the local md: 0, or the call's
 *				local_offset
 *	ACK, REPLY		the request's remote_offset
 * UNLINK repeats the event of the operation that caused it.  Where UNLINK is not asked
 * for (PTL_IFACE_SS), the event of that operation is the last one and has unlinked set.
 */
typedef struct {
	ptl_event_kind_t type;
	ptl_process_id_t initiator;
	ptl_uid_t uid;               /* of initiator */
	ptl_jid_t jid;               /* of initiator */
	ptl_pt_index_t pt_index;     /* as requested */
	ptl_match_bits_t match_bits; /* as requested, not masked */
	ptl_size_t rlength;          /* bytes asked for */
	ptl_size_t mlength;          /* bytes moved */
	ptl_size_t offset;           /* bytes, see above */
	ptl_handle_md_t md_handle;   /* may be stale once unlinked */
	ptl_md_t md;                 /* state after this operation */
	ptl_hdr_data_t hdr_data;     /* of put and getput, else 0 */
	ptl_seq_t link;              /* the same in all events of one operation */
	ptl_ni_fail_t ni_fail_type;
	int unlinked;                /* extension: not 0 in md's last event */
	volatile ptl_seq_t sequence; /* of the queue's previous event, plus 1 */
} ptl_event_t;

/*
 * Handler of a queue.  The thread that reads an event calls it once, before the reading
 * call returns; event points to a copy that is gone when the handler returns.  A handler
 * must be re-entrant, must not block and must not call Portals functions.
 */
typedef void (*ptl_eq_handler_t)(ptl_event_t *event);

#ifndef PTL_EQ_HANDLER_NONE
#define PTL_EQ_HANDLER_NONE NULL
#endif
#define PTL_TIME_FOREVER ((ptl_time_t)-1)

/* ---- data movement --------------------------------------------------- P3.3 3.13.1 */

/*
 * Programs written for one of the two spellings define the other one as a macro, before
 * or after they include this file.  So each name is an enumerator and a macro.
 */
#undef PTL_NO_ACK_REQ
#undef PTL_NOACK_REQ
typedef enum { PTL_ACK_REQ = 0, PTL_NO_ACK_REQ = 1, PTL_NOACK_REQ = 1 } ptl_ack_req_t;
#define PTL_NOACK_REQ  PTL_NOACK_REQ
#define PTL_NO_ACK_REQ PTL_NOACK_REQ

/* ---- the library -------------------------------------------------------- P3.3 3.4 */

/*
 * PtlInit - start the library						P3.3 3.4
 *
 *	max_interfaces	out	interfaces that one process may initialise, at least 1
 *
 * A program calls it before any other function.  Further calls succeed and store the same
 * number; they are not counted: one PtlFini undoes them all.  Initialises no interface.
 *
 * A program that locks its memory calls mlockall before PtlInit (later, MCL_CURRENT
 * brings in more than a gigabyte of unused pages).  After MCL_FUTURE the stacks of the
 * library's threads are locked.  Its own mappings are locked as they are used where
 * RLIMIT_MEMLOCK (ulimit -l) is unlimited; else they are not locked and do not count.
 *
 * PTL_FAIL	the library cannot start (reported on stderr); never PTL_NO_INIT
 * PTL_SEGV	max_interfaces is NULL
 *
 * Any thread, several at once too; does not wait for peers.
 */
int PtlInit(int *max_interfaces);

/*
 * PtlFini - finalise all interfaces and the library			P3.3 3.4
 *
 * Does the work of PtlNIFini for every interface.  Afterwards calls return PTL_NO_INIT,
 * and PtlInit may start the library again.  Has no effect before PtlInit.
 *
 * One thread, while no other thread is in the library, except in PtlXBarrier; waits as
 * PtlNIFini does.
 */
void PtlFini(void);

/* ---- network interfaces ------------------------------------------- P3.3 3.5 - 3.8 */

/*
 * PtlNIInit - initialise an interface					P3.3 3.5
 *
 *	iface		in	PTL_IFACE_*
 *	pid		in	wanted process id, or PTL_PID_ANY: that of the own rank,
 *				which the launcher has given, or PtlSetRank with
 *				PtlSetPIDMap (PTL_PIDMAP); without these a free one
 *	desired		in	desired limits, or NULL; a member <= 0 asks for the
 *				default, other values are brought into the range that the
 *				library supports
 *	actual		out	actual limits, or NULL
 *	ni_handle	out	the interface; valid until PtlNIFini or PtlFini
 *
 * The interface starts with empty match lists and registers at 0.  Access control entry 0
 * admits all processes of the caller's user, the other entries admit no process.  For an
 * interface that the process has initialised already, stores the same handle and the
 * actual limits, ignores pid and desired, and returns PTL_OK or, for PTL_IFACE_SS,
 * PTL_IFACE_DUP.
 *
 * A process that yod did not start, or that yod started with --domain, joins its domain
 * here.  When the call returns, this process and the members that joined before can reach
 * each other; the call does not wait longer than a second for a member that does not
 * answer, such as a stopped one.
 *
 * PTL_FAIL		a PTL3_ variable has a wrong value (reported on stderr)
 * PTL_IFACE_DUP	success: the process has this interface already; outputs are
 *			written
 * PTL_IFACE_INVALID	iface is unknown or cannot be opened; or the domain cannot be
 *			entered (reported on stderr)
 * PTL_PID_INVALID	pid is more than 65534, or belongs to another process or to this
 *			one's other interface; or another process has the rank that the
 *			launcher gave (reported on stderr)
 * PTL_NO_SPACE		no memory, no descriptors, or no room in the domain (reported on
 *			stderr)
 * PTL_SEGV		ni_handle is NULL
 *
 * Any thread; reserves memory, which may take a while.  Waits for the members of its
 * domain, a second at most; and, in a job on several hosts, the first call until all
 * ranks have called it.  Waits for no other peer.
 */
int PtlNIInit(ptl_interface_t iface, ptl_pid_t pid, ptl_ni_limits_t *desired,
	ptl_ni_limits_t *actual, ptl_handle_ni_t *ni_handle);

/*
 * PtlNIFini - finalise an interface					P3.3 3.5
 *
 *	ni_handle	in	interface; one call is enough, even if PtlNIInit returned
 *				it several times
 *
 * Frees all its match entries, descriptors and queues, whose handles become invalid.
 * Threads that wait in PtlEQWait or PtlEQPoll get PTL_EQ_INVALID.  After the return the
 * library touches no memory of the caller; messages that peers send later are discarded.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 *
 * Any thread; waits for the library's own threads, and until puts that are over for the
 * sender have left.  It gives up when none has left for half a second, and after ten
 * seconds; ten, too, for targets that have yet to call PtlNIInit, and thirty while this
 * process is introduced to its targets.  If the job has other hosts, it gives up when
 * none has left for PTL3_FAR_TIMEOUT.
 */
int PtlNIFini(ptl_handle_ni_t ni_handle);

/*
 * PtlNIStatus - read a status register					P3.3 3.5
 *
 *	ni_handle	in	interface
 *	register_index	in	PTL_SR_*
 *	status		out	its value; reading does not reset it
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_SR_INDEX_INVALID	register_index is no register
 * PTL_SEGV		status is NULL
 *
 * Any thread; does not block.
 */
int PtlNIStatus(
	ptl_handle_ni_t ni_handle, ptl_sr_index_t register_index, ptl_sr_value_t *status);

/*
 * PtlNIDist - how far away is a process?				P3.3 3.5
 *
 *	ni_handle	in	interface
 *	process		in	the other process, or the caller itself
 *	distance	out	a number without unit, smallest for processes of this
 *				host; compare it only with other distances from this
 *				interface
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_PROCESS_INVALID	process has a wildcard
 * PTL_SEGV		distance is NULL
 *
 * Any thread; does not block.
 */
int PtlNIDist(
	ptl_handle_ni_t ni_handle, ptl_process_id_t process, unsigned long *distance);

/*
 * PtlNIHandle - the interface of an object				P3.3 3.5
 *
 *	handle		in	of an event queue, match entry, descriptor or interface
 *	ni_handle	out	its interface; of an interface: itself
 *
 * PTL_HANDLE_INVALID	handle names no live object (PTL_INVALID_HANDLE and PTL_EQ_NONE
 *			never do)
 * PTL_SEGV		ni_handle is NULL
 *
 * Any thread; does not block.
 */
int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni_handle);

/*
 * PtlGetUid - the caller's user id on an interface			P3.3 3.6
 *
 *	ni_handle	in	interface
 *	uid		out	the user id that peers see in access control and events;
 *				never a wildcard
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_SEGV		uid is NULL
 *
 * Any thread; does not block.
 */
int PtlGetUid(ptl_handle_ni_t ni_handle, ptl_uid_t *uid);

/*
 * PtlGetId - the caller's process id on an interface			P3.3 3.7
 *
 *	ni_handle	in	interface
 *	id		out	the id that peers use as target_id, with the pid that
 *				PtlNIInit was asked for, if any; never a wildcard
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_SEGV		id is NULL
 *
 * Any thread; does not block.
 */
int PtlGetId(ptl_handle_ni_t ni_handle, ptl_process_id_t *id);

/*
 * PtlGetJid - the caller's job id on an interface			P3.3 3.8
 *
 *	ni_handle	in	interface
 *	jid		out	the same for all processes of a launched job; never a
 *				wildcard
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_SEGV		jid is NULL
 *
 * Any thread; does not block.
 */
int PtlGetJid(ptl_handle_ni_t ni_handle, ptl_jid_t *jid);

/* ---- match entries ------------------------------------------------------ P3.3 3.9 */

/*
 * PtlMEAttach - put a new match entry at an end of a match list	P3.3 3.9
 *
 *	ni_handle	in	interface
 *	pt_index	in	portal index, 0 to the granted max_pt_index
 *	match_id	in	processes whose requests match; PTL_NID_ANY and
 *				PTL_PID_ANY independently of one another
 *	match_bits	in	the bits that a request must have ...
 *	ignore_bits	in	... except where a bit is set here
 *	unlink_op	in	PTL_UNLINK: the entry is unlinked together with its
 *				descriptor, in whatever way that happens; PTL_RETAIN: the
 *				entry stays, without a descriptor
 *	position	in	PTL_INS_BEFORE: head of the list, PTL_INS_AFTER: tail
 *	me_handle	out	the entry; valid until it is unlinked
 *
 * The entry has no descriptor yet and matches nothing until PtlMDAttach gives it one.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_PT_INDEX_INVALID	pt_index is larger than max_pt_index
 * PTL_NO_SPACE		no memory, or max_mes entries exist
 * PTL_ME_LIST_TOO_LONG	the list holds max_me_list entries
 * PTL_SEGV		me_handle is NULL
 *
 * Any thread; does not block.
 */
int PtlMEAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op, ptl_ins_pos_t position,
	ptl_handle_me_t *me_handle);

/*
 * PtlMEAttachAny - PtlMEAttach on a portal index that is free		P3.3 3.9.3
 *
 *	ni_handle	in	interface
 *	pt_index	out	the index chosen: one whose match list is empty now
 *	match_id, match_bits, ignore_bits, unlink_op	in	as for PtlMEAttach
 *	me_handle	out	the entry; valid until it is unlinked
 *
 * Choosing and attaching are one step: two callers never get the same index.  A program
 * should first attach entries to the indexes that it uses by number.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_NO_SPACE		no memory, or max_mes entries exist
 * PTL_PT_FULL		no index has an empty list
 * PTL_SEGV		pt_index or me_handle is NULL
 *
 * Any thread; does not block.
 */
int PtlMEAttachAny(ptl_handle_ni_t ni_handle, ptl_pt_index_t *pt_index,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op, ptl_handle_me_t *me_handle);

/*
 * PtlMEInsert - put a new match entry next to another			P3.3 3.9
 *
 *	base		in	entry beside which the new one is inserted
 *	match_id, match_bits, ignore_bits, unlink_op	in	as for PtlMEAttach
 *	position	in	PTL_INS_BEFORE, PTL_INS_AFTER: directly before or after
 *				base
 *	me_handle	out	the entry; valid until it is unlinked
 *
 * PTL_ME_INVALID	base is no live match entry (it may have been unlinked
 *			automatically)
 * PTL_ME_LIST_TOO_LONG	the list holds max_me_list entries
 * PTL_NO_SPACE		no memory, or max_mes entries exist
 * PTL_SEGV		me_handle is NULL
 *
 * Any thread; does not block.
 */
int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id,
	ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits, ptl_unlink_t unlink_op,
	ptl_ins_pos_t position, ptl_handle_me_t *me_handle);

/*
 * PtlMEUnlink - remove a match entry, and its descriptor		P3.3 3.9
 *
 *	me_handle	in	entry; invalid afterwards, as is the handle of its
 *				descriptor, whatever unlink_op the descriptor has
 *
 * Posts no UNLINK event.  ACKs and replies that the descriptor still expects will be
 * discarded.
 *
 * PTL_ME_INVALID	me_handle is no live match entry
 * PTL_ME_IN_USE	an operation on the descriptor is between its START and END; see
 *			PtlMDUnlink
 *
 * Any thread; does not block: on PTL_ME_IN_USE try again after the END event.
 */
int PtlMEUnlink(ptl_handle_me_t me_handle);

/* ---- memory descriptors ------------------------------------------------ P3.3 3.10 */

/*
 * PtlMDAttach - give a match entry its descriptor			P3.3 3.10
 *
 *	me_handle	in	entry without a descriptor
 *	md		in	description, copied; its memory belongs to the interface
 *				until the descriptor is unlinked
 *	unlink_op	in	PTL_UNLINK: the descriptor is unlinked automatically when
 *				an operation has made it inactive (threshold,
 *				PTL_MD_MAX_SIZE) and no operation on it is under way;
 *				PTL_RETAIN: only a call unlinks it
 *	md_handle	out	the descriptor, valid until it is unlinked; or NULL
 *
 * From now on messages can match.  A threshold of 0 is legal: the descriptor is inactive,
 * and not unlinked.
 *
 * PTL_ME_INVALID	me_handle is no live match entry
 * PTL_ME_IN_USE	the entry has a descriptor
 * PTL_MD_ILLEGAL	md.start is NULL and md.length is not 0; the region wraps around
 *			the end of memory; an iovec has more than max_md_iovecs elements,
 *			one that is NULL and not empty, or UINT64_MAX bytes or more;
 *			an unknown option bit; a negative threshold other than
 *			PTL_MD_THRESH_INF; md.eq_handle is of another interface
 * PTL_EQ_INVALID	md.eq_handle is neither a live queue nor PTL_EQ_NONE
 * PTL_NO_SPACE		no memory, or max_mds descriptors exist
 *
 * PTL_SEGV is not used: md_handle may be NULL.  Any thread; does not block.
 */
int PtlMDAttach(ptl_handle_me_t me_handle, ptl_md_t md, ptl_unlink_t unlink_op,
	ptl_handle_md_t *md_handle);

/*
 * PtlMDBind - make a descriptor that only its own process uses		P3.3 3.10
 *
 *	ni_handle	in	interface
 *	md		in	description, copied; its memory belongs to the interface
 *				until the descriptor is unlinked
 *	unlink_op	in	as for PtlMDAttach
 *	md_handle	out	the descriptor; valid until it is unlinked
 *
 * The descriptor can be the source of puts and the destination of gets; no request ever
 * matches it.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_MD_ILLEGAL	md is illegal: see PtlMDAttach
 * PTL_EQ_INVALID	md.eq_handle is neither a live queue nor PTL_EQ_NONE
 * PTL_NO_SPACE		no memory, or max_mds descriptors exist
 * PTL_SEGV		md_handle is NULL
 *
 * Any thread; does not block.
 */
int PtlMDBind(ptl_handle_ni_t ni_handle, ptl_md_t md, ptl_unlink_t unlink_op,
	ptl_handle_md_t *md_handle);

/*
 * PtlMDUnlink - remove a descriptor					P3.3 3.10
 *
 *	md_handle	in	descriptor; invalid afterwards, as is the handle of its
 *				match entry if the entry was made with PTL_UNLINK
 *
 * Posts no UNLINK event.  After PTL_OK the library does not touch its memory again.  An
 * outstanding ACK, or a reply that has not begun, does not keep a descriptor in use: the
 * library discards and counts it when it comes.
 *
 * PTL_MD_INVALID	md_handle is no live descriptor: also when it was unlinked
 *			automatically
 * PTL_MD_IN_USE	an operation on the descriptor is between START and END.  Once the
 *			END of the last operation can be read, this is not returned.
 *			Short puts to a process that has yet to come end here, with
 *			SEND_START and SEND_END, unless the memory for copies is used up
 *
 * Any thread; does not block: on PTL_MD_IN_USE try again after the END event.
 */
int PtlMDUnlink(ptl_handle_md_t md_handle);

/*
 * PtlMDUpdate - look at a descriptor, change it if nothing has happened	P3.3 3.10
 *
 *	md_handle	in	descriptor; keeps its handle, match entry and unlink_op
 *	old_md		out	its present state, or NULL; threshold is the number that
 *				is left; also written on PTL_MD_NO_UPDATE
 *	new_md		in	its new state, copied; all members are replaced, and the
 *				local offset becomes 0; NULL: only look
 *	eq_handle	in	test queue, any of the interface; PTL_EQ_NONE: no
 *				condition
 *
 * No message can arrive between the test and the update: after PTL_OK with a test queue,
 * that queue gets no event of a message that was matched before, and no operation on the
 * descriptor is between START and END.  Operations that run during an unconditional
 * update finish with the values that they started with.  A threshold of 0 makes the
 * descriptor inactive, without unlinking it.
 *
 * To get the elements of an iovec descriptor, set in old_md, before the call, options to
 * PTL_MD_IOVEC, start to an array of ptl_md_iovec_t, and length to the capacity of the
 * array.  As many elements as fit are stored there; start and length return with the
 * values that the descriptor was made with.
 *
 * PTL_MD_NO_UPDATE	with a test queue only: it holds an unread event, or an operation
 *			that was accepted already will post one there, or an operation on
 *			the descriptor is between START and END; nothing was changed.
 *			Never spurious: an event can be read in the test queue or is
 *			coming there, or the END of the operation is coming to the
 *			descriptor's own queue.  That END comes when the peer has
 *			answered: an operation that waits for a process to join, or for a
 *			stopped process, keeps the descriptor pending until then, the
 *			former for 300 s at most (PTL3_ABSENT).
 *			A descriptor with PTL_MD_EVENT_END_DISABLE gets no END, and the
 *			update is refused until the operation has ended: call again
 * PTL_MD_INVALID	md_handle is no live descriptor
 * PTL_MD_ILLEGAL	*new_md is illegal: see PtlMDAttach
 * PTL_EQ_INVALID	eq_handle is neither PTL_EQ_NONE nor a live queue of the
 *			interface; new_md->eq_handle is neither PTL_EQ_NONE nor a live
 *			queue
 * PTL_NO_SPACE		no memory (copy of an iovec)
 * PTL_SEGV		an iovec descriptor is asked for with start NULL and length not 0
 *
 * Any thread; does not block.
 */
int PtlMDUpdate(ptl_handle_md_t md_handle, ptl_md_t *old_md, ptl_md_t *new_md,
	ptl_handle_eq_t eq_handle);

/* ---- event queues ------------------------------------------------------ P3.3 3.11 */

/*
 * PtlEQAlloc - make an event queue					P3.3 3.11
 *
 *	ni_handle	in	interface
 *	count		in	least number of unread events that the queue must hold;
 *				0 gives PTL_EQ_NONE
 *	eq_handler	in	function that is called for each event when it is read
 *				(see ptl_eq_handler_t), or PTL_EQ_HANDLER_NONE
 *	eq_handle	out	the queue; valid until PtlEQFree
 *
 * A full queue never refuses a message: new events overwrite the oldest unread ones, and
 * the next reader gets PTL_EQ_DROPPED.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_NO_SPACE		no memory (count is too large), or max_eqs queues exist
 * PTL_SEGV		eq_handle is NULL
 *
 * Any thread; does not block.
 */
int PtlEQAlloc(ptl_handle_ni_t ni_handle, ptl_size_t count, ptl_eq_handler_t eq_handler,
	ptl_handle_eq_t *eq_handle);

/*
 * PtlEQFree - free an event queue					P3.3 3.11
 *
 *	eq_handle	in	queue; invalid afterwards.  No descriptor should use it
 *				any more; a descriptor that does goes on as if it had
 *				PTL_EQ_NONE
 *
 * Unread events are lost.  Threads that wait for the queue get PTL_EQ_INVALID.
 *
 * PTL_EQ_INVALID	eq_handle is no live queue
 *
 * Any thread; does not block.
 */
int PtlEQFree(ptl_handle_eq_t eq_handle);

/*
 * PtlEQGet - take the oldest unread event, if there is one		P3.3 3.11
 *
 *	eq_handle	in	queue
 *	event		out	the event; written on PTL_OK and PTL_EQ_DROPPED
 *
 * PTL_EQ_DROPPED	success; one event or more before this one were lost, and the jump
 *			in event->sequence says how many
 * PTL_EQ_EMPTY		no unread event
 * PTL_EQ_INVALID	eq_handle is no live queue
 * PTL_SEGV		event is NULL
 *
 * Any thread, and each event goes to one; does not block.
 */
int PtlEQGet(ptl_handle_eq_t eq_handle, ptl_event_t *event);

/*
 * PtlEQWait - wait for an event and take it				P3.3 3.11
 *
 *	eq_handle	in	queue
 *	event		out	the event; written on PTL_OK and PTL_EQ_DROPPED
 *
 * PTL_EQ_DROPPED	as for PtlEQGet
 * PTL_EQ_INVALID	eq_handle is no live queue, or has been freed during the wait
 * PTL_SEGV		event is NULL
 *
 * Any thread; an event wakes any one of several waiting threads.  Blocks until there is
 * an event.
 */
int PtlEQWait(ptl_handle_eq_t eq_handle, ptl_event_t *event);

/*
 * PtlEQPoll - wait for an event in one of several queues		P3.3 3.11.12
 *
 *	eq_handles	in	array of queues of one interface; a queue may be in it
 *				twice
 *	size		in	number of its elements
 *	timeout		in	milliseconds; 0: only look; PTL_TIME_FOREVER: no limit
 *	event		out	the event; written on PTL_OK and PTL_EQ_DROPPED
 *	which_eq	out	index in eq_handles of its queue; written likewise
 *
 * Successive calls begin at different places of the array, whatever calls for other
 * arrays come between them, so a busy queue does not hide the others.
 * The whole array is checked before an event is taken.
 *
 * PTL_EQ_DROPPED	as for PtlEQGet, of queue *which_eq
 * PTL_EQ_EMPTY		no event within timeout
 * PTL_EQ_INVALID	an element is no live queue (PTL_EQ_NONE is none) or is freed
 *			during the wait, they are of different interfaces, or size < 1
 * PTL_SEGV		eq_handles, event or which_eq is NULL
 *
 * Any thread; blocks up to timeout.
 */
int PtlEQPoll(ptl_handle_eq_t *eq_handles, int size, ptl_time_t timeout,
	ptl_event_t *event, int *which_eq);

/* ---- access control -------------------------------------------------- P3.3 3.12.1 */

/*
 * PtlACEntry - set an entry of the access control table		P3.3 3.12.1
 *
 *	ni_handle	in	interface
 *	ac_index	in	entry, 0 to the granted max_ac_index
 *	match_id	in	processes admitted; PTL_NID_ANY, PTL_PID_ANY independently
 *	user_id		in	user admitted, or PTL_UID_ANY
 *	job_id		in	job admitted, or PTL_JID_ANY
 *	pt_index	in	portal index that they may use, or PTL_PT_INDEX_ANY
 *
 * Applies to requests that arrive after the return.  ACKs and replies are never checked.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_AC_INDEX_INVALID	ac_index is larger than max_ac_index
 * PTL_PT_INDEX_INVALID	pt_index is larger than max_pt_index and not PTL_PT_INDEX_ANY
 *
 * Any thread; does not block.
 */
int PtlACEntry(ptl_handle_ni_t ni_handle, ptl_ac_index_t ac_index,
	ptl_process_id_t match_id, ptl_uid_t user_id, ptl_jid_t job_id,
	ptl_pt_index_t pt_index);

/* Define this for programs for Portals 3.2 and Cray XT, where PtlACEntry has no job. */
#ifdef PTL_ACENTRY_5ARGS
#define PtlACEntry(ni_handle, ac_index, match_id, user_id, pt_index)                     \
	PtlACEntry(ni_handle, ac_index, match_id, user_id, PTL_JID_ANY, pt_index)
#endif

/* ---- data movement ----------------------------------------------------- P3.3 3.13 */

/*
 * PtlPut - send a descriptor's region to another process		P3.3 3.13.2
 *
 *	md_handle	in	descriptor whose whole region is sent.  Any active
 *				descriptor, attached or bound, with any PTL_MD_OP_* bits.
 *				Do not change the bytes before SEND_END
 *	ack_req		in	PTL_ACK_REQ: ask for an ACK event (only if the descriptor
 *				has a queue); PTL_NO_ACK_REQ: do not
 *	target_id	in	target process, perhaps the caller
 *	pt_index	in	portal index at the target, which checks it
 *	ac_index	in	access control entry at the target, which checks it
 *	match_bits	in	bits that the target matches
 *	remote_offset	in	bytes; for target descriptors with PTL_MD_MANAGE_REMOTE
 *	hdr_data	in	appears in the target's events
 *
 * A descriptor that PTL_MD_MAX_SIZE has made inactive, with threshold left, can be sent.
 *
 * PTL_OK means that the message will be sent: SEND_START and SEND_END follow, which take
 * 1 from the threshold, and perhaps ACK, which takes 1 more.  If no descriptor of the
 * target accepts the message, the target discards it, and the initiator is not told.
 * Puts of one thread to one target start there in order ("Order of completions").
 *
 * A short put, of up to 8 KiB, is over for the initiator when the call returns, even if
 * the target is busy: SEND_END is in the queue, the bytes may change, and the descriptor
 * can be unlinked.  There are three exceptions, in which SEND_END comes later.  First,
 * more than 1.5 KiB in shared memory (PtlXAlloc): the target reads the bytes there.
 * Second, a target that has yet to come, or that the library does not know yet;
 * PtlMDUnlink ends such a put.  Third, too many waiting bytes: the library keeps 4 MiB
 * of them, and 1 MiB for one target.
 *
 * PTL_MD_INVALID	md_handle is no live descriptor, or it is inactive (threshold 0)
 * PTL_PROCESS_INVALID	target_id has a wildcard
 * PTL_NO_SPACE		too much is waiting to be sent already
 *
 * Any thread; does not block.
 */
int PtlPut(ptl_handle_md_t md_handle, ptl_ack_req_t ack_req, ptl_process_id_t target_id,
	ptl_pt_index_t pt_index, ptl_ac_index_t ac_index, ptl_match_bits_t match_bits,
	ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/*
 * PtlPutRegion - send a part of a descriptor's region			P3.3 3.13.3
 *
 *	md_handle	in	as for PtlPut
 *	local_offset	in	bytes from the start of the region (for an iovec: of the
 *				sum of its elements).  The descriptor's own offset plays
 *				no part
 *	length		in	bytes to send
 *	ack_req ... hdr_data	in	as for PtlPut
 *
 * PTL_MD_INVALID	md_handle is no live descriptor, or it is inactive (threshold 0)
 * PTL_MD_ILLEGAL	local_offset, or local_offset + length, is beyond the region's end
 * PTL_PROCESS_INVALID	target_id has a wildcard
 * PTL_NO_SPACE		too much is waiting to be sent already
 *
 * Any thread; does not block.
 */
int PtlPutRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_ack_req_t ack_req, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
	ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
	ptl_hdr_data_t hdr_data);

/*
 * PtlGet - fetch from another process into a descriptor's region	P3.3 3.13
 *
 *	md_handle	in	descriptor for the answer, from the region's first byte
 *				on; the call asks for as many bytes as the region has.
 *				The bytes are undefined until REPLY_END
 *	target_id ... match_bits	in	as for PtlPut
 *	remote_offset	in	bytes; for target descriptors with PTL_MD_MANAGE_REMOTE
 *
 * REPLY_START and REPLY_END follow and take 1 from the threshold.  If the target discards
 * the request, they never come.  Only on PTL_IFACE_SS SEND_START and SEND_END come before
 * REPLY_START, when the request is sent, and take 1 more.  Their rlength is the number of
 * bytes asked for; their mlength is the same, or 0 in a SEND_END that failed.  With
 * threshold 1 and PTL_UNLINK such a descriptor is gone when the reply comes, and the
 * reply is discarded, as an ACK would be.
 *
 * PTL_MD_INVALID	md_handle is no live descriptor, or it is inactive (threshold 0)
 * PTL_PROCESS_INVALID	target_id has a wildcard
 * PTL_NO_SPACE		too much is waiting to be sent already
 *
 * Any thread; does not block.
 */
int PtlGet(ptl_handle_md_t md_handle, ptl_process_id_t target_id, ptl_pt_index_t pt_index,
	ptl_ac_index_t ac_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset);

/*
 * PtlGetRegion - fetch into a part of a descriptor's region		P3.3 3.13.5
 *
 *	md_handle	in	as for PtlGet
 *	local_offset	in	bytes from the start of the region to the place of the
 *				answer
 *	length		in	bytes to ask for
 *	target_id ... remote_offset	in	as for PtlGet
 *
 * PTL_MD_INVALID	md_handle is no live descriptor, or it is inactive (threshold 0)
 * PTL_MD_ILLEGAL	local_offset, or local_offset + length, is beyond the region's end
 * PTL_PROCESS_INVALID	target_id has a wildcard
 * PTL_NO_SPACE		too much is waiting to be sent already
 *
 * Any thread; does not block.
 */
int PtlGetRegion(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t length,
	ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset);

/*
 * PtlGetPut - exchange bytes with another process, atomically		P3.3 3.13
 *
 *	get_md_handle	in	descriptor for the target's old bytes, from the first byte
 *				of the region on
 *	put_md_handle	in	descriptor of the new bytes: the whole region.  May be the
 *				same descriptor; its threshold must then be 2 or more
 *	target_id ... hdr_data	in	as for PtlPut
 *
 * The descriptor at the target must allow both put and get.  The exchange is atomic for
 * all Portals operations on those bytes, not for loads and stores of the target's
 * program.  SEND_START, SEND_END (descriptor put) and REPLY_START, REPLY_END (descriptor
 * get) follow and take 1 each, on PTL_IFACE_SS, too; there is no ACK.
 *
 * PTL_MD_INVALID	a handle is no live descriptor, or it is inactive (threshold 0)
 * PTL_MD_ILLEGAL	the put region exceeds max_getput_md bytes, or the descriptors are
 *			of different interfaces
 * PTL_PROCESS_INVALID	target_id has a wildcard
 * PTL_NO_SPACE		too much is waiting to be sent already
 *
 * Any thread; does not block.
 */
int PtlGetPut(ptl_handle_md_t get_md_handle, ptl_handle_md_t put_md_handle,
	ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/* ---- handles --------------------------------------------------------- P3.3 3.14.1 */

/*
 * PtlHandleIsEqual - do two handles name the same object?		P3.3 3.14.1
 *
 *	handle1, handle2	in	any handles; they need not be valid
 *
 * PTL_OK	they are equal (note that PTL_OK is 0)
 * PTL_FAIL	they are not; never PTL_NO_INIT
 *
 * Any thread, signal handlers, before PtlInit; does not block.
 */
int PtlHandleIsEqual(ptl_handle_any_t handle1, ptl_handle_any_t handle2);

/* ---- extensions ------------------------------------------------------ not in P3.3 */

/*
 * PtlMEMDAttach - PtlMEAttach and PtlMDAttach in one step		extension
 *
 *	ni_handle ... ignore_bits, position	in	as for PtlMEAttach
 *	me_unlink_op	in	unlink_op of the match entry
 *	md		in	as for PtlMDAttach
 *	md_unlink_op	in	unlink_op of the descriptor
 *	me_handle	out	the entry
 *	md_handle	out	the descriptor, or NULL
 *
 * No message sees the entry without its descriptor.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_PT_INDEX_INVALID	pt_index is larger than max_pt_index
 * PTL_ME_LIST_TOO_LONG	the list holds max_me_list entries
 * PTL_MD_ILLEGAL	md is illegal: see PtlMDAttach
 * PTL_EQ_INVALID	md.eq_handle is neither a live queue nor PTL_EQ_NONE
 * PTL_NO_SPACE		no memory, or max_mes entries or max_mds descriptors exist
 * PTL_SEGV		me_handle is NULL
 *
 * Any thread; does not block.
 */
int PtlMEMDAttach(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink_op, ptl_ins_pos_t position,
	ptl_md_t md, ptl_unlink_t md_unlink_op, ptl_handle_me_t *me_handle,
	ptl_handle_md_t *md_handle);

/*
 * PtlMEMDInsert - PtlMEInsert and PtlMDAttach in one step		extension
 *
 *	base		in	as for PtlMEInsert, as are match_id to ignore_bits and
 *				position
 *	me_unlink_op, md, md_unlink_op	in	as for PtlMEMDAttach
 *	me_handle	out	the entry
 *	md_handle	out	the descriptor, or NULL
 *
 * PTL_ME_INVALID	base is no live match entry (it may have been unlinked
 *			automatically)
 * PTL_ME_LIST_TOO_LONG	the list holds max_me_list entries
 * PTL_MD_ILLEGAL	md is illegal: see PtlMDAttach
 * PTL_EQ_INVALID	md.eq_handle is neither a live queue nor PTL_EQ_NONE
 * PTL_NO_SPACE		no memory, or max_mes entries or max_mds descriptors exist
 * PTL_SEGV		me_handle is NULL
 *
 * Any thread; does not block.
 */
int PtlMEMDInsert(ptl_handle_me_t base, ptl_process_id_t match_id,
	ptl_match_bits_t match_bits, ptl_match_bits_t ignore_bits,
	ptl_unlink_t me_unlink_op, ptl_ins_pos_t position, ptl_md_t md,
	ptl_unlink_t md_unlink_op, ptl_handle_me_t *me_handle,
	ptl_handle_md_t *md_handle);

/*
 * PtlMEMDPost - PtlMEMDInsert, if a queue is empty			extension
 *
 *	ni_handle	in	interface of base
 *	base ... md_unlink_op	in	as for PtlMEMDInsert
 *	me_handle	out	the entry
 *	md_handle	out	the descriptor, or NULL
 *	eq_handle	in	test queue; PTL_EQ_NONE: no condition
 *
 * Posts a receive unless a message that the receive might match has come already.  The
 * test is that of PtlMDUpdate; no message can arrive between the test and the insertion.
 *
 * PTL_MD_NO_UPDATE	the test queue holds an unread event, or an accepted operation
 *			will post one there; nothing was made
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_ME_INVALID	base is no live match entry of it
 * PTL_ME_LIST_TOO_LONG	the list holds max_me_list entries
 * PTL_MD_ILLEGAL	md is illegal: see PtlMDAttach
 * PTL_EQ_INVALID	eq_handle is neither PTL_EQ_NONE nor a live queue of the
 *			interface; md.eq_handle is neither PTL_EQ_NONE nor a live queue
 * PTL_NO_SPACE		no memory, or max_mes entries or max_mds descriptors exist
 * PTL_SEGV		me_handle is NULL
 *
 * Any thread; does not block.
 */
int PtlMEMDPost(ptl_handle_ni_t ni_handle, ptl_handle_me_t base,
	ptl_process_id_t match_id, ptl_match_bits_t match_bits,
	ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink_op, ptl_ins_pos_t position,
	ptl_md_t md, ptl_unlink_t md_unlink_op, ptl_handle_me_t *me_handle,
	ptl_handle_md_t *md_handle, ptl_handle_eq_t eq_handle);

/*
 * PtlEQPeek - copy the oldest unread event, and leave it there		extension
 *
 *	eq_handle	in	queue
 *	event		out	the event; written on PTL_OK and PTL_EQ_DROPPED
 *
 * Another thread may take the event meanwhile.  The queue's handler is not called.
 *
 * PTL_EQ_DROPPED	success; one event or more before this one were lost.  The
 *			PtlEQGet that takes this event returns PTL_EQ_DROPPED, too
 * PTL_EQ_EMPTY		no unread event
 * PTL_EQ_INVALID	eq_handle is no live queue
 * PTL_SEGV		event is NULL
 *
 * Any thread; does not block.
 */
int PtlEQPeek(ptl_handle_eq_t eq_handle, ptl_event_t *event);

/*
 * PtlGetPutRegion - PtlGetPut of parts of the regions			extension
 *
 *	get_md_handle	in	descriptor for the target's old bytes ...
 *	get_local_offset	in	... from this byte of its region on
 *	put_md_handle	in	descriptor of the new bytes ...
 *	put_local_offset	in	... from this byte of its region on
 *	length		in	bytes to exchange
 *	target_id ... hdr_data	in	as for PtlGetPut
 *
 * PTL_MD_INVALID	a handle is no live descriptor, or it is inactive (threshold 0)
 * PTL_MD_ILLEGAL	an offset, or an offset + length, is beyond its region's end;
 *			length exceeds max_getput_md; the descriptors are of different
 *			interfaces
 * PTL_PROCESS_INVALID	target_id has a wildcard
 * PTL_NO_SPACE		too much is waiting to be sent already
 *
 * Any thread; does not block.
 */
int PtlGetPutRegion(ptl_handle_md_t get_md_handle, ptl_size_t get_local_offset,
	ptl_handle_md_t put_md_handle, ptl_size_t put_local_offset, ptl_size_t length,
	ptl_process_id_t target_id, ptl_pt_index_t pt_index, ptl_ac_index_t ac_index,
	ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/*
 * PtlErrorStr, PtlNIFailStr, PtlEventKindStr - names of codes		extension
 *
 *	code		in	return code of a Portals function
 *	ni_handle	in	interface of the event; not checked
 *	fail		in	ni_fail_type of an event
 *	kind		in	type of an event
 *
 * Returns the name as it stands in this file, or for other numbers a text that says so;
 * never NULL.  The strings are constant; do not free them.
 *
 * Any thread, signal handlers, before PtlInit; do not block.
 */
const char *PtlErrorStr(unsigned int code);
const char *PtlNIFailStr(ptl_handle_ni_t ni_handle, ptl_ni_fail_t fail);
const char *PtlEventKindStr(ptl_event_kind_t kind);

/*
 * PtlProgress - give the network some of this thread's time		extension
 *
 *	handle		in	any live handle; its interface is served
 *	timeout		in	milliseconds to work at most while there is work;
 *				0: one pass; PTL_TIME_FOREVER: until no work is left
 *
 * No program needs it, since operations make progress without calls.  It is for programs
 * that were written for libraries in which they do not.
 *
 * PTL_HANDLE_INVALID	handle names no live object
 *
 * Any thread; does not wait for peers.
 */
int PtlProgress(ptl_handle_any_t handle, ptl_time_t timeout);

/*
 * PtlNIDebug - set the debug mask of an interface			extension
 *
 *	ni_handle	in	interface, or PTL_INVALID_HANDLE; not checked
 *	mask		in	new mask; it is remembered, and nothing is printed
 *
 * Returns the previous mask, 0 at first, instead of a return code.
 *
 * Any thread; does not block.
 */
unsigned int PtlNIDebug(ptl_handle_ni_t ni_handle, unsigned int mask);

/*
 * PtlTblDump - print the match list of a portal index			extension
 *
 *	ni_handle	in	interface
 *	pt_index	in	portal index
 *
 * Prints to stderr, for people; the format may change.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_PT_INDEX_INVALID	pt_index is negative or larger than max_pt_index
 * PTL_NO_SPACE		no memory for the text
 *
 * Any thread; does not wait for peers.
 */
int PtlTblDump(ptl_handle_ni_t ni_handle, int pt_index);

/*
 * PtlMEDump - print a match entry and its descriptor			extension
 *
 *	me_handle	in	match entry
 *
 * Prints to stderr, for people; the format may change.
 *
 * PTL_ME_INVALID	me_handle is no live match entry
 * PTL_NO_SPACE		no memory for the text
 *
 * Any thread; does not wait for peers.
 */
int PtlMEDump(ptl_handle_me_t me_handle);

/*
 * PtlNIEqDump - print the event queues of an interface			extension
 *
 *	ni_handle	in	interface
 *
 * Prints to stderr, for people; the format may change.  Events stay unread.
 *
 * PTL_NI_INVALID	ni_handle is no live interface
 * PTL_NO_SPACE		no memory for the text
 *
 * Any thread; does not wait for peers.
 */
int PtlNIEqDump(ptl_handle_ni_t ni_handle);

#ifdef __cplusplus
}
#endif

#endif /* PORTALS3_H */
