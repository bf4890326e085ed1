/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gasnet.h - GASNet-1 (specification 1.8) over Portals 3.3: active messages, one-sided
 * puts and gets, barriers
 *
 * A program defines exactly one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR before it
 * includes gasnet.h, and is linked with the library of the same mode:
 * libgasnet-portals-seq, -parsync or -par.  With GASNET_DEBUG it is linked with the
 * library whose name ends in -debug, which checks arguments and the rules below.  A wrong
 * pair does not link.
 *
 *
 * Rules that hold for all functions
 * =================================
 *
 * How to read the comments of functions.  "G x.y" is the section of the specification; an
 * extension is not in it.  A comment that names several functions holds for all of them;
 * "A0 to A16" stands for the names with the numbers 0 to 16.  "in" and "out" say whether
 * a call reads or writes an argument.  Pointers are used during the call only, and
 * lengths are in bytes, unless the comment says otherwise.  The last paragraph says which
 * code may call the function, which threads at the same time, and whether it blocks.
 *
 * Modes.  GASNET_SEQ: one thread makes all calls.  GASNET_PARSYNC: several threads, of
 * which never two are in the library at a time.  GASNET_PAR: any threads at any time.
 *
 * Context.  Main-line code is all code outside of handlers.  Unless its comment says
 * otherwise, a function is for main-line code after gasnet_attach, of any thread that
 * holds no handler-safe lock and is in no no-interrupt section.
 *
 * Handlers run on threads that are inside the library: in gasnet_AMPoll, and in each call
 * that communicates or waits.  A loop that waits for a handler or for another node must
 * call gasnet_AMPoll, or another function that communicates, each time around.  Puts and
 * gets need no call of their target.
 *
 * Errors.  Functions that return int return GASNET_OK or GASNET_ERR_*.  For the other
 * ones an error is fatal: they print a message and abort the job.
 *
 * Remote memory lies in the segment that the remote node has attached; local memory lies
 * anywhere.  Order between operations comes from syncs, replies and barriers alone.
 */
#ifndef _INCLUDED_GASNET_H
#define _INCLUDED_GASNET_H

#ifdef _INCLUDED_GASNET_TOOLS_H
#error gasnet_tools.h is included before gasnet.h; include gasnet.h first
#endif

#if defined(GASNET_SEQ) + defined(GASNET_PARSYNC) + defined(GASNET_PAR) != 1
#error define exactly one of GASNET_SEQ, GASNET_PARSYNC and GASNET_PAR before gasnet.h
#endif

#include <gasnet_basic.h>
#include <pthread.h>

/* The modes' libraries have functions of different names.  These are spelled whole,
 * because programs define NDEBUG, DEBUG, SEQ and the like as macros. */
#if defined(GASNET_SEQ)
#undef GASNET_SEQ
#define GASNET_SEQ           1
#define GASNETI_THREADS_STR  "SEQ"
#define GASNETI_LINK_THREADS gasneti_linkconfig_idiotcheck_SEQ
#define gasnet_init          gasnetc_init_SEQ
#define gasnet_attach        gasnetc_attach_SEQ
#elif defined(GASNET_PARSYNC)
#undef GASNET_PARSYNC
#define GASNET_PARSYNC         1
#define GASNETI_THREADS_STR    "PARSYNC"
#define GASNETI_LINK_THREADS   gasneti_linkconfig_idiotcheck_PARSYNC
#define gasnet_init            gasnetc_init_PARSYNC
#define gasnet_attach          gasnetc_attach_PARSYNC
#define GASNETI_CLIENT_THREADS 1
#else
#undef GASNET_PAR
#define GASNET_PAR             1
#define GASNETI_THREADS_STR    "PAR"
#define GASNETI_LINK_THREADS   gasneti_linkconfig_idiotcheck_PAR
#define gasnet_init            gasnetc_init_PAR
#define gasnet_attach          gasnetc_attach_PAR
#define GASNETI_CLIENT_THREADS 1
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- identity -------------------------------------------------------------- G 1.3 */

#define GASNET_SPEC_VERSION_MAJOR   GASNETI_SPEC_VERSION_MAJOR
#define GASNET_SPEC_VERSION_MINOR   GASNETI_SPEC_VERSION_MINOR
#define GASNET_VERSION              GASNET_SPEC_VERSION_MAJOR

#define GASNET_CONDUIT_PORTALS      1
#define GASNET_CONDUIT_NAME         PORTALS
#define GASNET_CONDUIT_NAME_STR     "PORTALS"
#define GASNET_CORE_NAME            PORTALS
#define GASNET_CORE_NAME_STR        "PORTALS"
#define GASNET_CORE_VERSION         1.0
#define GASNET_CORE_VERSION_STR     "1.0"
#define GASNET_EXTENDED_NAME        PORTALS
#define GASNET_EXTENDED_NAME_STR    "PORTALS"
#define GASNET_EXTENDED_VERSION     1.0
#define GASNET_EXTENDED_VERSION_STR "1.0"
#define GASNET_NULL_ARGV_OK         1
#define GASNET_PSHM                 0

/* The segment's kind is that of the library: cmake -DP3_GASNET_SEGMENT=... */
#if defined(GASNET_SEGMENT_EVERYTHING)
#undef GASNET_SEGMENT_EVERYTHING
#define GASNET_SEGMENT_EVERYTHING 1
#define GASNETI_SEGMENT_STR       "EVERYTHING"
#define GASNETI_LINK_SEGMENT      gasneti_linkconfig_idiotcheck_EVERYTHING
#elif defined(GASNET_SEGMENT_LARGE)
#undef GASNET_SEGMENT_LARGE
#define GASNET_SEGMENT_LARGE 1
#define GASNETI_SEGMENT_STR  "LARGE"
#define GASNETI_LINK_SEGMENT gasneti_linkconfig_idiotcheck_LARGE
#else
#undef GASNET_SEGMENT_FAST
#define GASNET_SEGMENT_FAST  1
#define GASNETI_SEGMENT_STR  "FAST"
#define GASNETI_LINK_SEGMENT gasneti_linkconfig_idiotcheck_FAST
#endif

#ifdef GASNET_DEBUG
#define GASNETI_LINK_DEBUG gasneti_linkconfig_idiotcheck_DEBUG
#define GASNETI_DEBUG_STR  "debug"
#else
#define GASNETI_LINK_DEBUG gasneti_linkconfig_idiotcheck_NDEBUG
#define GASNETI_DEBUG_STR  "nodebug"
#endif

#define GASNETI_CONFIG_HEAD                                                              \
	"RELEASE=" GASNETI_RELEASE_STR                                                   \
	",SPEC=1.8,CONDUIT=PORTALS(PORTALS-1.0/PORTALS-1.0)"
#define GASNETI_CONFIG_THREADS ",THREADMODEL=" GASNETI_THREADS_STR
#define GASNETI_CONFIG_SEGMENT ",SEGMENT=" GASNETI_SEGMENT_STR ",PTR=64bit"
#define GASNETI_CONFIG_BUILD   ",noalign,nopshm," GASNETI_DEBUG_STR ",notrace,nostats"
#define GASNETI_CONFIG_TAIL                                                              \
	",nodebugmalloc,nosrclines,timers_os,membars_native,atomics_native,"             \
	"atomic32_native,atomic64_native"
#define GASNET_CONFIG_STRING                                                             \
	GASNETI_CONFIG_HEAD GASNETI_CONFIG_THREADS GASNETI_CONFIG_SEGMENT                \
		GASNETI_CONFIG_BUILD GASNETI_CONFIG_TAIL

/*
 * An object refers to one word of the library for each choice that header and library
 * must have made alike, so that a wrong pair does not link; the library's own refer to
 * none, because two modes share them.
 */
extern const int GASNETI_LINK_THREADS;
extern const int GASNETI_LINK_SEGMENT;
extern const int GASNETI_LINK_DEBUG;
extern const int gasneti_linkconfig_idiotcheck_ABI_1;
#ifndef GASNETI_LIBRARY
static const int *const gasneti_link_words[]
	__attribute__((__used__)) = {&GASNETI_LINK_THREADS, &GASNETI_LINK_SEGMENT,
		&GASNETI_LINK_DEBUG, &gasneti_linkconfig_idiotcheck_ABI_1};
#endif

/* ---- types and constants --------------------------------------------------- G 2.1 */

typedef uint32_t gasnet_node_t;      /* process of the job, 0 to gasnet_nodes() - 1 */
typedef uint8_t gasnet_handler_t;    /* index of a handler */
typedef int32_t gasnet_handlerarg_t; /* argument of a handler */
typedef void *gasnet_token_t;        /* request or reply that a handler serves */
typedef struct gasneti_op *gasnet_handle_t;            /* operation under way */
typedef struct gasneti_valget *gasnet_valget_handle_t; /* get of a value under way */
typedef uintptr_t gasnet_register_value_t;
#define SIZEOF_GASNET_REGISTER_VALUE_T SIZEOF_VOID_P

#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
/* One handler: its index, 0 if any will do, and its function. */
typedef struct {
	gasnet_handler_t index;
#ifdef GASNET_USE_STRICT_PROTOTYPES
	void *fnptr;
#else
	void (*fnptr)();
#endif
} gasnet_handlerentry_t;
#if defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

/* A node's segment. */
typedef struct {
	void *addr;     /* first byte, NULL if the node has no segment */
	uintptr_t size; /* bytes */
} gasnet_seginfo_t;

/* The place of a node: nodes of one machine have equal host numbers. */
typedef struct {
	gasnet_node_t host;
	gasnet_node_t supernode;
} gasnet_nodeinfo_t;

typedef void *gasnet_threadinfo_t;

/* A handler-safe lock.  Programs use its address only. */
typedef struct gasneti_hsl {
	pthread_mutex_t mutex;
	struct gasneti_hsl *below; /* lock that its holder took before, debug builds */
	void *holder;              /* thread, debug builds */
	uint32_t state;            /* GASNETI_HSL_LIVE, or dead */
} gasnet_hsl_t;
#define GASNETI_HSL_LIVE 0x6c736831u
#define GASNET_HSL_INITIALIZER                                                           \
	{                                                                                \
		PTHREAD_MUTEX_INITIALIZER, NULL, NULL, GASNETI_HSL_LIVE                  \
	}

#define GASNET_MAXNODES              1024
#define GASNET_ALIGNED_SEGMENTS      0
#define GASNET_PAGESIZE              4096

#define GASNET_OK                    0
#define GASNET_ERR_NOT_INIT          10001 /* before attach; or init or attach twice */
#define GASNET_ERR_RESOURCE          10002 /* no memory, or the network failed */
#define GASNET_ERR_BAD_ARG           10003 /* an argument is illegal */
#define GASNET_ERR_NOT_READY         10004 /* not complete, or not acquired */
#define GASNET_ERR_BARRIER_MISMATCH  10005 /* the nodes' barrier values differ */

#define GASNET_BARRIERFLAG_ANONYMOUS 1
#define GASNET_BARRIERFLAG_MISMATCH  2
#define GASNET_BARRIERFLAG_IMAGES    4
#define GASNET_BARRIERFLAG_UNNAMED   (8 | GASNET_BARRIERFLAG_ANONYMOUS)

#define GASNET_INVALID_HANDLE        ((gasnet_handle_t)0)

#define GASNET_WAIT_SPIN             0
#define GASNET_WAIT_BLOCK            1
#define GASNET_WAIT_SPINBLOCK        2

/*
 * gasnet_ErrorName, gasnet_ErrorDesc - the name and the meaning of a code
 *
 *	code		in	GASNET_OK, GASNET_ERR_*, or any other number
 *
 * Return a constant string, never NULL: the macro's name, or a sentence.  For an unknown
 * number the string says so.
 *
 * Any thread, any context, before gasnet_init, too; do not block.
 */
const char *gasnet_ErrorName(int code);
const char *gasnet_ErrorDesc(int code);

/* ---- job control ----------------------------------------------------------- G 2.2 */

/*
 * gasnet_init - become a node of the job					G 2.2.1
 *
 *	argc, argv	in	arguments of main, which stay as they are; or NULL
 *
 * A program calls it before it looks at its arguments.  When it returns all nodes run,
 * and gasnet_mynode, gasnet_nodes, gasnet_getMaxLocalSegmentSize,
 * gasnet_getMaxGlobalSegmentSize, gasnet_getenv, gasnet_getNodeInfo and gasnet_exit work.
 * A process that no launcher started is a job of one node.  Installs handlers of signals,
 * except those in GASNET_NO_CATCH_SIGNAL, and starts a thread that watches for the end of
 * the job.
 *
 * GASNET_ERR_NOT_INIT	it has been called before; no effect
 * GASNET_ERR_RESOURCE	the network cannot be opened, or the job has more than
 *			GASNET_MAXNODES nodes (reported on stderr)
 *
 * One thread; blocks until all nodes have called.
 */
int gasnet_init(int *argc, char ***argv);

/*
 * gasnet_attach - register handlers, make the segment, open the network	G 2.2.2
 *
 *	table		in	handlers.  Index 128 to 255, or 0: the call writes a free
 *				index there, the same on nodes with equal tables.  NULL if
 *				numentries is 0
 *	numentries	in	handlers in the table
 *	segsize		in	bytes of this node's segment, a multiple of
 *				GASNET_PAGESIZE, at most gasnet_getMaxLocalSegmentSize();
 *				0: no segment
 *	minheapoffset	in	bytes that the heap may need, the same on all nodes;
 *				without effect here
 *
 * The segment is zeroed memory that the program has not used before; it exists until the
 * process ends.  With GASNET_SEGMENT_EVERYTHING the last two arguments have no effect.
 *
 * GASNET_ERR_BAD_ARG	segsize is no multiple of the page size, or too large; table is
 *			NULL, and numentries is not 0; or numentries is negative
 * GASNET_ERR_RESOURCE	an index is reserved or given twice, there are more than 128
 *			handlers, or there is no memory
 * GASNET_ERR_NOT_INIT	before gasnet_init, or a second time
 *
 * One thread; blocks until all nodes have called: it is a barrier.
 */
int gasnet_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize,
	uintptr_t minheapoffset);

/*
 * gasnet_getMaxLocalSegmentSize, gasnet_getMaxGlobalSegmentSize - largest segment
 *									G 2.2.3
 *
 * Return the largest segsize that this node, or that every node, may ask for: bytes, a
 * multiple of GASNET_PAGESIZE.  GASNET_MAX_SEGSIZE in the environment limits them.
 * (uintptr_t)-1 with GASNET_SEGMENT_EVERYTHING.
 *
 * Any thread, after gasnet_init; do not block.
 */
uintptr_t gasnet_getMaxLocalSegmentSize(void);
uintptr_t gasnet_getMaxGlobalSegmentSize(void);

/*
 * gasnet_exit - end the job						G 2.2.4
 *
 *	exitcode	in	status of the job
 *
 * Does not return.  Flushes the output of this node, tells all other nodes, which get
 * SIGQUIT and end, too, and ends the process after a bounded time (GASNET_EXITTIMEOUT, in
 * seconds).  If several nodes call it, the status is that of one of them; in a handler of
 * SIGQUIT the number of the node that ends the job counts, if the program gave one there.
 * A node that is to print before the end does so before a barrier in front of this call.
 * If a signal handler calls it within a call of GASNet, that call goes on, and the code
 * behind it, until the process ends.
 *
 * Any thread, any context after gasnet_init: handlers, with locks held, signal handlers.
 */
void gasnet_exit(int exitcode) __attribute__((__noreturn__));

/*
 * gasnet_mynode, gasnet_nodes - number of this node, number of all nodes	G 2.2.5
 *
 * Constant from gasnet_init on; the node's number is its rank in the launcher.
 *
 * Any thread, any context; do not block.
 */
gasnet_node_t gasnet_mynode(void) __attribute__((__pure__));
gasnet_node_t gasnet_nodes(void) __attribute__((__pure__));

/*
 * gasnet_getSegmentInfo - where the segments are				G 2.2.6
 *
 *	table		out	the segments of nodes 0, 1, ...
 *	numentries	in	elements of table; those beyond gasnet_nodes() stay as
 *				they are
 *
 * GASNET_ERR_NOT_INIT	before gasnet_attach
 * GASNET_ERR_BAD_ARG	table is NULL, or numentries is negative
 *
 * Any thread; does not block.
 */
int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries);

/*
 * gasnet_getNodeInfo - which nodes are near one another			extension
 *
 *	table		out	places of nodes 0, 1, ...: nodes of one machine have equal
 *				host numbers
 *	numentries	in	elements of table; those beyond gasnet_nodes() stay as
 *				they are
 *
 * GASNET_ERR_NOT_INIT	before gasnet_init
 * GASNET_ERR_BAD_ARG	table is NULL, or numentries is negative
 *
 * Any thread, after gasnet_init; does not block.
 */
int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries);

/*
 * gasnet_getenv - read the environment in which the job was started		G 2.2.7
 *
 *	name		in	name of a variable
 *
 * Returns its value, which belongs to the environment, or NULL.
 *
 * Any thread, after gasnet_init; does not block.
 */
char *gasnet_getenv(const char *name);

/*
 * gasnet_set_waitmode - say how waiting threads use the CPU			G 2.2.8
 *
 *	wait_mode	in	GASNET_WAIT_SPIN: they never sleep; GASNET_WAIT_BLOCK:
 *				they sleep at once; GASNET_WAIT_SPINBLOCK: after 20
 *				microseconds
 *
 * A hint for this node, which may be changed at any time.
 *
 * GASNET_ERR_BAD_ARG	wait_mode is none of the three
 *
 * Any thread, after gasnet_init; does not block.
 */
int gasnet_set_waitmode(int wait_mode);

/* ---- active messages ------------------------------------------------------- G 2.3 */

/*
 * gasnet_AMMaxArgs, gasnet_AMMaxMedium, gasnet_AMMaxLongRequest, gasnet_AMMaxLongReply -
 * limits of messages							G 2.3.1
 *
 *	size_t gasnet_AMMaxArgs(void)
 *	size_t gasnet_AMMaxMedium(void)
 *
 * Return the most arguments of a message, the most bytes of a Medium payload, and of a
 * Long one.  The first two are macros with a constant value.
 *
 * Any thread, any context after gasnet_init; do not block.
 */
#define gasnet_AMMaxArgs()   ((size_t)16)
#define gasnet_AMMaxMedium() ((size_t)1984)
size_t gasnet_AMMaxLongRequest(void) __attribute__((__pure__));
size_t gasnet_AMMaxLongReply(void) __attribute__((__pure__));

/*
 * gasnet_AMRequestShort0 to gasnet_AMRequestShort16, gasnet_AMRequestShort,
 * gasnet_AMRequestMedium0 to gasnet_AMRequestMedium16, gasnet_AMRequestMedium,
 * gasnet_AMRequestLong0 to gasnet_AMRequestLong16, gasnet_AMRequestLong,
 * gasnet_AMRequestLongAsync0 to gasnet_AMRequestLongAsync16, gasnet_AMRequestLongAsync -
 * send a request						G 2.3.2
 *
 *	int gasnet_AMRequestShortM(gasnet_node_t dest, gasnet_handler_t handler,
 *		gasnet_handlerarg_t arg0, ...)
 *	int gasnet_AMRequestMediumM(gasnet_node_t dest, gasnet_handler_t handler,
 *		void *source_addr, size_t nbytes, gasnet_handlerarg_t arg0, ...)
 *	int gasnet_AMRequestLongM(gasnet_node_t dest, gasnet_handler_t handler,
 *		void *source_addr, size_t nbytes, void *dest_addr,
 *		gasnet_handlerarg_t arg0, ...)
 *	int gasnet_AMRequestLongAsyncM(gasnet_node_t dest, gasnet_handler_t handler,
 *		void *source_addr, size_t nbytes, void *dest_addr,
 *		gasnet_handlerarg_t arg0, ...)
 *
 *	dest		in	target node, perhaps the caller
 *	handler		in	index of the handler that runs at the target, 128 to 255
 *	source_addr	in	payload of Medium and Long, anywhere in local memory; with
 *				nbytes 0 it is not looked at
 *	nbytes		in	its length: at most gasnet_AMMaxMedium(), or
 *				gasnet_AMMaxLongRequest()
 *	dest_addr	in	place of a Long payload in the target's segment
 *	arg0, ...	in	M values, 0 to 16, cast to gasnet_handlerarg_t
 *
 * These are macros.  M is a part of the name; the names without a number take the number
 * of arguments, an int, in front of the arguments.
 *
 * The handler is void f(gasnet_token_t, arguments...) or, for Medium and Long, void
 * f(gasnet_token_t, void *buf, size_t nbytes, arguments...).  A Medium's buf belongs to
 * the library and is valid while the handler runs; a Long's buf is dest_addr, where the
 * payload is complete before the handler begins.  A handler runs exactly once, and may
 * reply once.  When the call returns the source may be reused; that of LongAsync only
 * when the reply handler has begun, so a handler of LongAsync must reply.
 *
 * GASNET_ERR_BAD_ARG	dest is no node, handler is below 128, nbytes is too large, there
 *			are more than 16 arguments, or the target is outside of the
 *			segment (debug builds: fatal)
 * GASNET_ERR_NOT_INIT	before gasnet_attach
 *
 * Main-line code; any thread.  May block for resources and run handlers meanwhile.
 */

/*
 * gasnet_AMReplyShort0 to gasnet_AMReplyShort16, gasnet_AMReplyShort,
 * gasnet_AMReplyMedium0 to gasnet_AMReplyMedium16, gasnet_AMReplyMedium,
 * gasnet_AMReplyLong0 to gasnet_AMReplyLong16, gasnet_AMReplyLong - answer a request
 *									G 2.3.3
 *
 *	int gasnet_AMReplyShortM(gasnet_token_t token, gasnet_handler_t handler,
 *		gasnet_handlerarg_t arg0, ...)
 *	int gasnet_AMReplyMediumM(gasnet_token_t token, gasnet_handler_t handler,
 *		void *source_addr, size_t nbytes, gasnet_handlerarg_t arg0, ...)
 *	int gasnet_AMReplyLongM(gasnet_token_t token, gasnet_handler_t handler,
 *		void *source_addr, size_t nbytes, void *dest_addr,
 *		gasnet_handlerarg_t arg0, ...)
 *
 *	token		in	that of the request's handler
 *	handler		in	index of the handler that runs at the requester, 128 to
 *				255
 *	source_addr	in	payload of Medium and Long, anywhere in local memory; with
 *				nbytes 0 it is not looked at
 *	nbytes		in	its length: at most gasnet_AMMaxMedium(), or
 *				gasnet_AMMaxLongReply()
 *	dest_addr	in	place of a Long payload in the requester's segment
 *	arg0, ...	in	M values, 0 to 16, cast to gasnet_handlerarg_t
 *
 * These are macros, with names and handlers as those of gasnet_AMRequestShort0.  A reply
 * handler may not reply.  When the call returns the source may be reused.
 *
 * GASNET_ERR_BAD_ARG	token is NULL, is not that of a request or has had its reply,
 *			handler is below 128, nbytes is too large, there are more than 16
 *			arguments, or the target is outside of the segment (debug builds:
 *			fatal); no reply is sent
 *
 * In the handler of a request, once, by the thread that runs it, with no handler-safe
 * lock held.  May block for a bounded time and run reply handlers meanwhile.
 */

int gasnetc_AMRequestShort(
	gasnet_node_t dest, gasnet_handler_t handler, int numargs, ...);
int gasnetc_AMRequestMedium(gasnet_node_t dest, gasnet_handler_t handler,
	void *source_addr, size_t nbytes, int numargs, ...);
int gasnetc_AMRequestLong(gasnet_node_t dest, gasnet_handler_t handler, void *source_addr,
	size_t nbytes, void *dest_addr, int numargs, ...);
int gasnetc_AMRequestLongAsync(gasnet_node_t dest, gasnet_handler_t handler,
	void *source_addr, size_t nbytes, void *dest_addr, int numargs, ...);
int gasnetc_AMReplyShort(
	gasnet_token_t token, gasnet_handler_t handler, int numargs, ...);
int gasnetc_AMReplyMedium(gasnet_token_t token, gasnet_handler_t handler,
	void *source_addr, size_t nbytes, int numargs, ...);
int gasnetc_AMReplyLong(gasnet_token_t token, gasnet_handler_t handler, void *source_addr,
	size_t nbytes, void *dest_addr, int numargs, ...);
#define gasnet_AMRequestShort     gasnetc_AMRequestShort
#define gasnet_AMRequestMedium    gasnetc_AMRequestMedium
#define gasnet_AMRequestLong      gasnetc_AMRequestLong
#define gasnet_AMRequestLongAsync gasnetc_AMRequestLongAsync
#define gasnet_AMReplyShort       gasnetc_AMReplyShort
#define gasnet_AMReplyMedium      gasnetc_AMReplyMedium
#define gasnet_AMReplyLong        gasnetc_AMReplyLong

/* The arguments of a message, each cast.  Their number is a part of the name. */
#define gasneti_args1(a)       ((gasnet_handlerarg_t)(a))
#define gasneti_args2(a, ...)  gasneti_args1(a), gasneti_args1(__VA_ARGS__)
#define gasneti_args3(a, ...)  gasneti_args1(a), gasneti_args2(__VA_ARGS__)
#define gasneti_args4(a, ...)  gasneti_args1(a), gasneti_args3(__VA_ARGS__)
#define gasneti_args5(a, ...)  gasneti_args1(a), gasneti_args4(__VA_ARGS__)
#define gasneti_args6(a, ...)  gasneti_args1(a), gasneti_args5(__VA_ARGS__)
#define gasneti_args7(a, ...)  gasneti_args1(a), gasneti_args6(__VA_ARGS__)
#define gasneti_args8(a, ...)  gasneti_args1(a), gasneti_args7(__VA_ARGS__)
#define gasneti_args9(a, ...)  gasneti_args1(a), gasneti_args8(__VA_ARGS__)
#define gasneti_args10(a, ...) gasneti_args1(a), gasneti_args9(__VA_ARGS__)
#define gasneti_args11(a, ...) gasneti_args1(a), gasneti_args10(__VA_ARGS__)
#define gasneti_args12(a, ...) gasneti_args1(a), gasneti_args11(__VA_ARGS__)
#define gasneti_args13(a, ...) gasneti_args1(a), gasneti_args12(__VA_ARGS__)
#define gasneti_args14(a, ...) gasneti_args1(a), gasneti_args13(__VA_ARGS__)
#define gasneti_args15(a, ...) gasneti_args1(a), gasneti_args14(__VA_ARGS__)
#define gasneti_args16(a, ...) gasneti_args1(a), gasneti_args15(__VA_ARGS__)

#define gasneti_AMRequestShort(M, dest, h, ...)                                          \
	gasnetc_AMRequestShort(dest, h, M, gasneti_args##M(__VA_ARGS__))
#define gasnet_AMRequestShort0(dest, h) gasnetc_AMRequestShort(dest, h, 0)
#define gasnet_AMRequestShort1(...)     gasneti_AMRequestShort(1, __VA_ARGS__)
#define gasnet_AMRequestShort2(...)     gasneti_AMRequestShort(2, __VA_ARGS__)
#define gasnet_AMRequestShort3(...)     gasneti_AMRequestShort(3, __VA_ARGS__)
#define gasnet_AMRequestShort4(...)     gasneti_AMRequestShort(4, __VA_ARGS__)
#define gasnet_AMRequestShort5(...)     gasneti_AMRequestShort(5, __VA_ARGS__)
#define gasnet_AMRequestShort6(...)     gasneti_AMRequestShort(6, __VA_ARGS__)
#define gasnet_AMRequestShort7(...)     gasneti_AMRequestShort(7, __VA_ARGS__)
#define gasnet_AMRequestShort8(...)     gasneti_AMRequestShort(8, __VA_ARGS__)
#define gasnet_AMRequestShort9(...)     gasneti_AMRequestShort(9, __VA_ARGS__)
#define gasnet_AMRequestShort10(...)    gasneti_AMRequestShort(10, __VA_ARGS__)
#define gasnet_AMRequestShort11(...)    gasneti_AMRequestShort(11, __VA_ARGS__)
#define gasnet_AMRequestShort12(...)    gasneti_AMRequestShort(12, __VA_ARGS__)
#define gasnet_AMRequestShort13(...)    gasneti_AMRequestShort(13, __VA_ARGS__)
#define gasnet_AMRequestShort14(...)    gasneti_AMRequestShort(14, __VA_ARGS__)
#define gasnet_AMRequestShort15(...)    gasneti_AMRequestShort(15, __VA_ARGS__)
#define gasnet_AMRequestShort16(...)    gasneti_AMRequestShort(16, __VA_ARGS__)

#define gasneti_AMRequestMedium(M, dest, h, src, n, ...)                                 \
	gasnetc_AMRequestMedium(dest, h, src, n, M, gasneti_args##M(__VA_ARGS__))
#define gasnet_AMRequestMedium0(dest, h, src, n)                                         \
	gasnetc_AMRequestMedium(dest, h, src, n, 0)
#define gasnet_AMRequestMedium1(...)  gasneti_AMRequestMedium(1, __VA_ARGS__)
#define gasnet_AMRequestMedium2(...)  gasneti_AMRequestMedium(2, __VA_ARGS__)
#define gasnet_AMRequestMedium3(...)  gasneti_AMRequestMedium(3, __VA_ARGS__)
#define gasnet_AMRequestMedium4(...)  gasneti_AMRequestMedium(4, __VA_ARGS__)
#define gasnet_AMRequestMedium5(...)  gasneti_AMRequestMedium(5, __VA_ARGS__)
#define gasnet_AMRequestMedium6(...)  gasneti_AMRequestMedium(6, __VA_ARGS__)
#define gasnet_AMRequestMedium7(...)  gasneti_AMRequestMedium(7, __VA_ARGS__)
#define gasnet_AMRequestMedium8(...)  gasneti_AMRequestMedium(8, __VA_ARGS__)
#define gasnet_AMRequestMedium9(...)  gasneti_AMRequestMedium(9, __VA_ARGS__)
#define gasnet_AMRequestMedium10(...) gasneti_AMRequestMedium(10, __VA_ARGS__)
#define gasnet_AMRequestMedium11(...) gasneti_AMRequestMedium(11, __VA_ARGS__)
#define gasnet_AMRequestMedium12(...) gasneti_AMRequestMedium(12, __VA_ARGS__)
#define gasnet_AMRequestMedium13(...) gasneti_AMRequestMedium(13, __VA_ARGS__)
#define gasnet_AMRequestMedium14(...) gasneti_AMRequestMedium(14, __VA_ARGS__)
#define gasnet_AMRequestMedium15(...) gasneti_AMRequestMedium(15, __VA_ARGS__)
#define gasnet_AMRequestMedium16(...) gasneti_AMRequestMedium(16, __VA_ARGS__)

#define gasneti_AMRequestLong(M, dest, h, src, n, to, ...)                               \
	gasnetc_AMRequestLong(dest, h, src, n, to, M, gasneti_args##M(__VA_ARGS__))
#define gasnet_AMRequestLong0(dest, h, src, n, to)                                       \
	gasnetc_AMRequestLong(dest, h, src, n, to, 0)
#define gasnet_AMRequestLong1(...)  gasneti_AMRequestLong(1, __VA_ARGS__)
#define gasnet_AMRequestLong2(...)  gasneti_AMRequestLong(2, __VA_ARGS__)
#define gasnet_AMRequestLong3(...)  gasneti_AMRequestLong(3, __VA_ARGS__)
#define gasnet_AMRequestLong4(...)  gasneti_AMRequestLong(4, __VA_ARGS__)
#define gasnet_AMRequestLong5(...)  gasneti_AMRequestLong(5, __VA_ARGS__)
#define gasnet_AMRequestLong6(...)  gasneti_AMRequestLong(6, __VA_ARGS__)
#define gasnet_AMRequestLong7(...)  gasneti_AMRequestLong(7, __VA_ARGS__)
#define gasnet_AMRequestLong8(...)  gasneti_AMRequestLong(8, __VA_ARGS__)
#define gasnet_AMRequestLong9(...)  gasneti_AMRequestLong(9, __VA_ARGS__)
#define gasnet_AMRequestLong10(...) gasneti_AMRequestLong(10, __VA_ARGS__)
#define gasnet_AMRequestLong11(...) gasneti_AMRequestLong(11, __VA_ARGS__)
#define gasnet_AMRequestLong12(...) gasneti_AMRequestLong(12, __VA_ARGS__)
#define gasnet_AMRequestLong13(...) gasneti_AMRequestLong(13, __VA_ARGS__)
#define gasnet_AMRequestLong14(...) gasneti_AMRequestLong(14, __VA_ARGS__)
#define gasnet_AMRequestLong15(...) gasneti_AMRequestLong(15, __VA_ARGS__)
#define gasnet_AMRequestLong16(...) gasneti_AMRequestLong(16, __VA_ARGS__)

#define gasneti_AMRequestLongAsync(M, dest, h, src, n, to, ...)                          \
	gasnetc_AMRequestLongAsync(dest, h, src, n, to, M, gasneti_args##M(__VA_ARGS__))
#define gasnet_AMRequestLongAsync0(dest, h, src, n, to)                                  \
	gasnetc_AMRequestLongAsync(dest, h, src, n, to, 0)
#define gasnet_AMRequestLongAsync1(...)  gasneti_AMRequestLongAsync(1, __VA_ARGS__)
#define gasnet_AMRequestLongAsync2(...)  gasneti_AMRequestLongAsync(2, __VA_ARGS__)
#define gasnet_AMRequestLongAsync3(...)  gasneti_AMRequestLongAsync(3, __VA_ARGS__)
#define gasnet_AMRequestLongAsync4(...)  gasneti_AMRequestLongAsync(4, __VA_ARGS__)
#define gasnet_AMRequestLongAsync5(...)  gasneti_AMRequestLongAsync(5, __VA_ARGS__)
#define gasnet_AMRequestLongAsync6(...)  gasneti_AMRequestLongAsync(6, __VA_ARGS__)
#define gasnet_AMRequestLongAsync7(...)  gasneti_AMRequestLongAsync(7, __VA_ARGS__)
#define gasnet_AMRequestLongAsync8(...)  gasneti_AMRequestLongAsync(8, __VA_ARGS__)
#define gasnet_AMRequestLongAsync9(...)  gasneti_AMRequestLongAsync(9, __VA_ARGS__)
#define gasnet_AMRequestLongAsync10(...) gasneti_AMRequestLongAsync(10, __VA_ARGS__)
#define gasnet_AMRequestLongAsync11(...) gasneti_AMRequestLongAsync(11, __VA_ARGS__)
#define gasnet_AMRequestLongAsync12(...) gasneti_AMRequestLongAsync(12, __VA_ARGS__)
#define gasnet_AMRequestLongAsync13(...) gasneti_AMRequestLongAsync(13, __VA_ARGS__)
#define gasnet_AMRequestLongAsync14(...) gasneti_AMRequestLongAsync(14, __VA_ARGS__)
#define gasnet_AMRequestLongAsync15(...) gasneti_AMRequestLongAsync(15, __VA_ARGS__)
#define gasnet_AMRequestLongAsync16(...) gasneti_AMRequestLongAsync(16, __VA_ARGS__)

#define gasneti_AMReplyShort(M, token, h, ...)                                           \
	gasnetc_AMReplyShort(token, h, M, gasneti_args##M(__VA_ARGS__))
#define gasnet_AMReplyShort0(token, h) gasnetc_AMReplyShort(token, h, 0)
#define gasnet_AMReplyShort1(...)      gasneti_AMReplyShort(1, __VA_ARGS__)
#define gasnet_AMReplyShort2(...)      gasneti_AMReplyShort(2, __VA_ARGS__)
#define gasnet_AMReplyShort3(...)      gasneti_AMReplyShort(3, __VA_ARGS__)
#define gasnet_AMReplyShort4(...)      gasneti_AMReplyShort(4, __VA_ARGS__)
#define gasnet_AMReplyShort5(...)      gasneti_AMReplyShort(5, __VA_ARGS__)
#define gasnet_AMReplyShort6(...)      gasneti_AMReplyShort(6, __VA_ARGS__)
#define gasnet_AMReplyShort7(...)      gasneti_AMReplyShort(7, __VA_ARGS__)
#define gasnet_AMReplyShort8(...)      gasneti_AMReplyShort(8, __VA_ARGS__)
#define gasnet_AMReplyShort9(...)      gasneti_AMReplyShort(9, __VA_ARGS__)
#define gasnet_AMReplyShort10(...)     gasneti_AMReplyShort(10, __VA_ARGS__)
#define gasnet_AMReplyShort11(...)     gasneti_AMReplyShort(11, __VA_ARGS__)
#define gasnet_AMReplyShort12(...)     gasneti_AMReplyShort(12, __VA_ARGS__)
#define gasnet_AMReplyShort13(...)     gasneti_AMReplyShort(13, __VA_ARGS__)
#define gasnet_AMReplyShort14(...)     gasneti_AMReplyShort(14, __VA_ARGS__)
#define gasnet_AMReplyShort15(...)     gasneti_AMReplyShort(15, __VA_ARGS__)
#define gasnet_AMReplyShort16(...)     gasneti_AMReplyShort(16, __VA_ARGS__)

#define gasneti_AMReplyMedium(M, token, h, src, n, ...)                                  \
	gasnetc_AMReplyMedium(token, h, src, n, M, gasneti_args##M(__VA_ARGS__))
#define gasnet_AMReplyMedium0(token, h, src, n) gasnetc_AMReplyMedium(token, h, src, n, 0)
#define gasnet_AMReplyMedium1(...)              gasneti_AMReplyMedium(1, __VA_ARGS__)
#define gasnet_AMReplyMedium2(...)              gasneti_AMReplyMedium(2, __VA_ARGS__)
#define gasnet_AMReplyMedium3(...)              gasneti_AMReplyMedium(3, __VA_ARGS__)
#define gasnet_AMReplyMedium4(...)              gasneti_AMReplyMedium(4, __VA_ARGS__)
#define gasnet_AMReplyMedium5(...)              gasneti_AMReplyMedium(5, __VA_ARGS__)
#define gasnet_AMReplyMedium6(...)              gasneti_AMReplyMedium(6, __VA_ARGS__)
#define gasnet_AMReplyMedium7(...)              gasneti_AMReplyMedium(7, __VA_ARGS__)
#define gasnet_AMReplyMedium8(...)              gasneti_AMReplyMedium(8, __VA_ARGS__)
#define gasnet_AMReplyMedium9(...)              gasneti_AMReplyMedium(9, __VA_ARGS__)
#define gasnet_AMReplyMedium10(...)             gasneti_AMReplyMedium(10, __VA_ARGS__)
#define gasnet_AMReplyMedium11(...)             gasneti_AMReplyMedium(11, __VA_ARGS__)
#define gasnet_AMReplyMedium12(...)             gasneti_AMReplyMedium(12, __VA_ARGS__)
#define gasnet_AMReplyMedium13(...)             gasneti_AMReplyMedium(13, __VA_ARGS__)
#define gasnet_AMReplyMedium14(...)             gasneti_AMReplyMedium(14, __VA_ARGS__)
#define gasnet_AMReplyMedium15(...)             gasneti_AMReplyMedium(15, __VA_ARGS__)
#define gasnet_AMReplyMedium16(...)             gasneti_AMReplyMedium(16, __VA_ARGS__)

#define gasneti_AMReplyLong(M, token, h, src, n, to, ...)                                \
	gasnetc_AMReplyLong(token, h, src, n, to, M, gasneti_args##M(__VA_ARGS__))
#define gasnet_AMReplyLong0(token, h, src, n, to)                                        \
	gasnetc_AMReplyLong(token, h, src, n, to, 0)
#define gasnet_AMReplyLong1(...)  gasneti_AMReplyLong(1, __VA_ARGS__)
#define gasnet_AMReplyLong2(...)  gasneti_AMReplyLong(2, __VA_ARGS__)
#define gasnet_AMReplyLong3(...)  gasneti_AMReplyLong(3, __VA_ARGS__)
#define gasnet_AMReplyLong4(...)  gasneti_AMReplyLong(4, __VA_ARGS__)
#define gasnet_AMReplyLong5(...)  gasneti_AMReplyLong(5, __VA_ARGS__)
#define gasnet_AMReplyLong6(...)  gasneti_AMReplyLong(6, __VA_ARGS__)
#define gasnet_AMReplyLong7(...)  gasneti_AMReplyLong(7, __VA_ARGS__)
#define gasnet_AMReplyLong8(...)  gasneti_AMReplyLong(8, __VA_ARGS__)
#define gasnet_AMReplyLong9(...)  gasneti_AMReplyLong(9, __VA_ARGS__)
#define gasnet_AMReplyLong10(...) gasneti_AMReplyLong(10, __VA_ARGS__)
#define gasnet_AMReplyLong11(...) gasneti_AMReplyLong(11, __VA_ARGS__)
#define gasnet_AMReplyLong12(...) gasneti_AMReplyLong(12, __VA_ARGS__)
#define gasnet_AMReplyLong13(...) gasneti_AMReplyLong(13, __VA_ARGS__)
#define gasnet_AMReplyLong14(...) gasneti_AMReplyLong(14, __VA_ARGS__)
#define gasnet_AMReplyLong15(...) gasneti_AMReplyLong(15, __VA_ARGS__)
#define gasnet_AMReplyLong16(...) gasneti_AMReplyLong(16, __VA_ARGS__)

/*
 * gasnet_AMPoll - serve the network, and run handlers			G 2.3.4
 *
 * GASNET_ERR_NOT_INIT	before gasnet_attach
 *
 * Main-line code; any thread; does not block, apart from the handlers.
 */
int gasnet_AMPoll(void);

/*
 * gasnet_AMGetMsgSource - the node that sent a message			G 2.3.5
 *
 *	token		in	that of the handler
 *	src_node	out	the requester, or in a reply handler the replier
 *
 * GASNET_ERR_BAD_ARG	token or src_node is NULL
 *
 * Handlers; does not block.
 */
int gasnet_AMGetMsgSource(gasnet_token_t token, gasnet_node_t *src_node);

/* State of one wait, for GASNET_BLOCKUNTIL only. */
typedef struct {
	uint64_t since;      /* beginning of idleness, ns; 0: none */
	uint32_t generation; /* of the node's wake-ups, before the condition was read */
	uint32_t turns;
	uint32_t naps; /* in vain, in a row */
} gasneti_wait_t;
void gasneti_wait_begin(gasneti_wait_t *wait);
void gasneti_wait_turn(gasneti_wait_t *wait);
void gasneti_wait_end(gasneti_wait_t *wait);

/*
 * GASNET_BLOCKUNTIL - serve the network until a condition holds		G 2.3.6
 *
 *	GASNET_BLOCKUNTIL(cond)
 *
 *	cond		in	expression that handlers change; evaluated once or more
 *
 * A statement.  Data that a handler wrote before it made cond true are visible behind it.
 *
 * Main-line code; any thread; blocks.
 */
#define GASNET_BLOCKUNTIL(cond)                                                          \
	do {                                                                             \
		gasneti_wait_t gasneti_wait_;                                            \
		gasneti_wait_begin(&gasneti_wait_);                                      \
		while (!(cond))                                                          \
			gasneti_wait_turn(&gasneti_wait_);                               \
		gasneti_wait_end(&gasneti_wait_);                                        \
	} while (0)

/* ---- atomicity ------------------------------------------------------------- G 2.4 */

/*
 * gasnet_hold_interrupts, gasnet_resume_interrupts - a no-interrupt section	G 2.4.1
 *
 * Between the two no handler runs on the calling thread, which makes no call but
 * gasnet_mynode, gasnet_nodes, gasnet_exit and those of handler-safe locks.  In pairs,
 * not nested.  Without effect in handlers and with a lock held.
 *
 * Any thread; do not block.
 */
void gasnet_hold_interrupts(void);
void gasnet_resume_interrupts(void);

/*
 * gasnet_hsl_init, gasnet_hsl_destroy - begin and end the use of a lock	G 2.4.2
 *
 *	hsl		in	the lock: for init, memory that holds no live lock; for
 *				destroy, an unlocked one
 *
 * A static lock with GASNET_HSL_INITIALIZER needs no init.
 *
 * Main-line code; any thread; do not block.
 */
void gasnet_hsl_init(gasnet_hsl_t *hsl);
void gasnet_hsl_destroy(gasnet_hsl_t *hsl);

/*
 * gasnet_hsl_lock, gasnet_hsl_trylock, gasnet_hsl_unlock - handler-safe locks	G 2.4.2
 *
 *	hsl		in	a live lock; not recursive
 *
 * A lock is a mutex between main-line code and handlers of one node.  While a thread
 * holds one it is in a no-interrupt section.  It unlocks in the reverse order, the same
 * thread that locked.
 *
 * GASNET_ERR_NOT_READY	trylock: another thread holds the lock
 *
 * Any thread, handlers; gasnet_hsl_lock blocks.
 */
void gasnet_hsl_lock(gasnet_hsl_t *hsl);
int gasnet_hsl_trylock(gasnet_hsl_t *hsl);
void gasnet_hsl_unlock(gasnet_hsl_t *hsl);

/* ---- puts and gets --------------------------------------------------------- G 3.1 */

/*
 * gasnet_get, gasnet_put, gasnet_get_bulk, gasnet_put_bulk - move bytes, and wait
 *									G 3.2
 *
 *	node		in	remote node, perhaps the caller
 *	dest		in	first byte of the target: of a put in node's segment, of a
 *				get anywhere in local memory
 *	src		in	first byte of the source: of a get in node's segment, of a
 *				put anywhere in local memory
 *	nbytes		in	length; 0: no effect
 *
 * A put writes local bytes to the remote node, a get reads remote bytes.  They return
 * when the bytes are in place.  The forms without _bulk want addresses that suit an
 * object of nbytes (checked nowhere).  Source and target may be the same, but not overlap
 * in part.
 *
 * Main-line code; any thread; block until the operation is complete, and run handlers
 * meanwhile.
 */
void gasnet_get(void *dest, gasnet_node_t node, void *src, size_t nbytes);
void gasnet_put(gasnet_node_t node, void *dest, void *src, size_t nbytes);
void gasnet_get_bulk(void *dest, gasnet_node_t node, void *src, size_t nbytes);
void gasnet_put_bulk(gasnet_node_t node, void *dest, void *src, size_t nbytes);

/*
 * gasnet_get_nb, gasnet_put_nb, gasnet_get_nb_bulk, gasnet_put_nb_bulk - begin to move
 * bytes, with a handle						G 3.3
 *
 *	node, dest, src, nbytes	in	as for gasnet_get
 *
 * Return the handle of the operation, or GASNET_INVALID_HANDLE if it is complete already.
 * The handle belongs to the calling thread, which must sync it once, as with
 * gasnet_wait_syncnb.  A get's target is undefined until then.  A put's source may be
 * reused when the call returns, that of a _bulk put after the sync.  A thread may begin
 * 65535 operations and more before it syncs one.
 *
 * Main-line code; any thread.  May block for resources, and run handlers meanwhile; do
 * not wait for the operation.
 */
gasnet_handle_t gasnet_get_nb(void *dest, gasnet_node_t node, void *src, size_t nbytes);
gasnet_handle_t gasnet_put_nb(gasnet_node_t node, void *dest, void *src, size_t nbytes);
gasnet_handle_t gasnet_get_nb_bulk(
	void *dest, gasnet_node_t node, void *src, size_t nbytes);
gasnet_handle_t gasnet_put_nb_bulk(
	gasnet_node_t node, void *dest, void *src, size_t nbytes);

/*
 * gasnet_get_nbi, gasnet_put_nbi, gasnet_get_nbi_bulk, gasnet_put_nbi_bulk - begin to
 * move
 * bytes, without a handle						G 3.4
 *
 *	node, dest, src, nbytes	in	as for gasnet_get
 *
 * As the forms with a handle, gasnet_get_nb and so on, but the operation belongs to the
 * implicit gets or puts of the calling thread, or to its access region if one is open;
 * gasnet_wait_syncnbi_all syncs it, or the handle of the region does.
 *
 * Main-line code; any thread.  May block for resources, and run handlers meanwhile; do
 * not wait for the operation.
 */
void gasnet_get_nbi(void *dest, gasnet_node_t node, void *src, size_t nbytes);
void gasnet_put_nbi(gasnet_node_t node, void *dest, void *src, size_t nbytes);
void gasnet_get_nbi_bulk(void *dest, gasnet_node_t node, void *src, size_t nbytes);
void gasnet_put_nbi_bulk(gasnet_node_t node, void *dest, void *src, size_t nbytes);

/*
 * gasnet_memset, gasnet_memset_nb, gasnet_memset_nbi - fill remote memory
 *									G 3.2 to 3.4
 *
 *	node		in	remote node, perhaps the caller
 *	dest		in	first byte to fill, in node's segment
 *	val		in	value of each byte, converted to unsigned char
 *	nbytes		in	length; 0: no effect
 *
 * They complete, and are synced, as the puts gasnet_put, gasnet_put_nb and
 * gasnet_put_nbi.  A handler at the target fills the memory, so the target must serve the
 * network.
 *
 * Main-line code; any thread.  gasnet_memset blocks until the memory is filled; the
 * others may block for resources.  All may run handlers meanwhile.
 */
void gasnet_memset(gasnet_node_t node, void *dest, int val, size_t nbytes);
gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void *dest, int val, size_t nbytes);
void gasnet_memset_nbi(gasnet_node_t node, void *dest, int val, size_t nbytes);

/*
 * gasnet_put_val, gasnet_put_nb_val, gasnet_put_nbi_val - write a value to remote memory
 *									G 3.5
 *
 *	node		in	remote node, perhaps the caller
 *	dest		in	target in node's segment
 *	value		in	its low nbytes bytes are put, in the host's byte order
 *	nbytes		in	1 to SIZEOF_GASNET_REGISTER_VALUE_T
 *
 * As gasnet_put, gasnet_put_nb and gasnet_put_nbi of the value.
 *
 * Main-line code; any thread.  gasnet_put_val blocks until the value is in place; the
 * others may block for resources.  All may run handlers meanwhile.
 */
void gasnet_put_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);
gasnet_handle_t gasnet_put_nb_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);
void gasnet_put_nbi_val(
	gasnet_node_t node, void *dest, gasnet_register_value_t value, size_t nbytes);

/*
 * gasnet_get_val, gasnet_get_nb_val, gasnet_wait_syncnb_valget - read a value from remote
 * memory								G 3.5
 *
 *	node		in	remote node, perhaps the caller
 *	src		in	source in node's segment
 *	nbytes		in	1 to SIZEOF_GASNET_REGISTER_VALUE_T
 *	handle		in	from gasnet_get_nb_val
 *
 * gasnet_get_val and gasnet_wait_syncnb_valget return the value, in the host's byte
 * order, extended with zeros.  gasnet_get_nb_val begins the operation and returns its
 * handle, for which the same thread calls gasnet_wait_syncnb_valget exactly once.
 *
 * Main-line code; any thread.  gasnet_get_nb_val may block for resources, the others
 * block until the value is here.  All may run handlers meanwhile.
 */
gasnet_register_value_t gasnet_get_val(gasnet_node_t node, void *src, size_t nbytes);
gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void *src, size_t nbytes);
gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle);

/*
 * gasnet_wait_syncnb, gasnet_try_syncnb, gasnet_wait_syncnb_all, gasnet_try_syncnb_all,
 * gasnet_wait_syncnb_some, gasnet_try_syncnb_some - sync operations by their handles
 *									G 3.3
 *
 *	handle		in	of this thread; GASNET_INVALID_HANDLE counts as complete
 *	phandle		in	array of handles; the call writes GASNET_INVALID_HANDLE
 *				over those that it finds complete
 *	numhandles	in	elements of phandle
 *
 * _all: sync all of the array; _some: at least one, if one is valid.  The wait forms
 * return when that is so, the try forms serve the network and return at once.  A handle
 * is void after its sync.
 *
 * GASNET_ERR_NOT_READY	try forms: the operation, or not all, or none, is complete
 *
 * Main-line code; any thread, for its own handles.  The wait forms block, the try forms
 * do not; both run handlers.
 */
void gasnet_wait_syncnb(gasnet_handle_t handle);
int gasnet_try_syncnb(gasnet_handle_t handle);
void gasnet_wait_syncnb_all(gasnet_handle_t *phandle, size_t numhandles);
int gasnet_try_syncnb_all(gasnet_handle_t *phandle, size_t numhandles);
void gasnet_wait_syncnb_some(gasnet_handle_t *phandle, size_t numhandles);
int gasnet_try_syncnb_some(gasnet_handle_t *phandle, size_t numhandles);

/*
 * gasnet_wait_syncnbi_gets, gasnet_wait_syncnbi_puts, gasnet_wait_syncnbi_all,
 * gasnet_try_syncnbi_gets, gasnet_try_syncnbi_puts, gasnet_try_syncnbi_all - sync
 * implicit
 * operations							G 3.4
 *
 * Sync the gets, the puts or both that this thread began without a handle and outside of
 * access regions.  The wait forms return when all of the set are complete, the try forms
 * serve the network and return at once.  Not inside a region.
 *
 * GASNET_ERR_NOT_READY	try forms: an operation of the set is not complete
 *
 * Main-line code; any thread.  The wait forms block, the try forms do not; both run
 * handlers.
 */
void gasnet_wait_syncnbi_gets(void);
void gasnet_wait_syncnbi_puts(void);
void gasnet_wait_syncnbi_all(void);
int gasnet_try_syncnbi_gets(void);
int gasnet_try_syncnbi_puts(void);
int gasnet_try_syncnbi_all(void);

/*
 * gasnet_begin_nbi_accessregion, gasnet_end_nbi_accessregion - one handle for many
 * implicit operations							G 3.4.3
 *
 * gasnet_end_nbi_accessregion returns a handle, for gasnet_wait_syncnb and kin, of all
 * implicit operations that this thread began between the two calls.  Not nested.
 *
 * Main-line code; any thread; do not block.
 */
void gasnet_begin_nbi_accessregion(void);
gasnet_handle_t gasnet_end_nbi_accessregion(void);

/* ---- barriers, threads ------------------------------------------------- G 3.6, 3.7 */

/*
 * gasnet_barrier_notify, gasnet_barrier_wait, gasnet_barrier_try - wait for all nodes, in
 * two halves								G 3.6
 *
 *	id		in	value that the nodes compare
 *	flags		in	0: id is compared; GASNET_BARRIERFLAG_ANONYMOUS: id has no
 *				effect; GASNET_BARRIERFLAG_MISMATCH: all nodes get a
 *				mismatch
 *
 * Notify begins a phase and returns at once.  Wait blocks until all nodes have notified;
 * try does not block, but serves the network.  Wait and try get the id and flags of
 * their notify, or GASNET_BARRIERFLAG_ANONYMOUS; behind an anonymous notify they may also
 * name the id that the named notifies have.  A barrier says nothing about puts and gets
 * under way.
 *
 * GASNET_ERR_NOT_READY		try: not all nodes have notified; no effect
 * GASNET_ERR_BARRIER_MISMATCH	values differ, or this node's wait has another one
 *
 * Main-line code; one thread at a time, but different ones may call notify and wait.
 * gasnet_barrier_wait blocks.
 */
void gasnet_barrier_notify(int id, int flags);
int gasnet_barrier_wait(int id, int flags);
int gasnet_barrier_try(int id, int flags);

/*
 * gasnet_barrier - wait for all nodes					extension
 *
 *	id, flags	in	as for gasnet_barrier_notify
 *
 * Do gasnet_barrier_notify and gasnet_barrier_wait in one call.
 *
 * GASNET_ERR_BARRIER_MISMATCH	values differ
 *
 * Main-line code; one thread at a time; blocks until all nodes have notified.
 */
int gasnet_barrier(int id, int flags);

/*
 * gasnet_barrier_result - the value of the last barrier			extension
 *
 *	id		out	the value that the named notifies agreed on; 0 if none was
 *				named
 *
 * Returns a number other than 0 if all notifies were anonymous, else 0.  Not between
 * notify and wait.
 *
 * Main-line code; one thread at a time; does not block.
 */
int gasnet_barrier_result(int *id);

/*
 * GASNET_BEGIN_FUNCTION, GASNET_POST_THREADINFO, GASNET_GET_THREADINFO - name the thread
 *									G 3.7
 *
 *	GASNET_BEGIN_FUNCTION(void)
 *	GASNET_POST_THREADINFO(gasnet_threadinfo_t info)
 *	gasnet_threadinfo_t GASNET_GET_THREADINFO(void)
 *
 *	info		in	from GASNET_GET_THREADINFO of this thread
 *
 * Hints for other implementations.  The first two are declarations, and may stand before
 * others.  The third returns a value that differs between threads.
 *
 * Any thread, any context, after gasnet_init; do not block.
 */
#define GASNET_BEGIN_FUNCTION() struct gasneti_begun_function
#define GASNET_POST_THREADINFO(info)                                                     \
	gasnet_threadinfo_t gasneti_posted_threadinfo __attribute__((__unused__)) = (info)
#define GASNET_GET_THREADINFO() gasneti_threadinfo()
gasnet_threadinfo_t gasneti_threadinfo(void);

/* The team of all nodes, for gasnet_coll.h. */
typedef struct gasneti_team *gasnet_team_handle_t;
extern struct gasneti_team gasneti_team_all;
#define GASNET_TEAM_ALL (&gasneti_team_all)

#ifdef __cplusplus
}
#endif

#include <gasnet_coll.h>
#include <gasnet_vis.h>

#endif /* _INCLUDED_GASNET_H */
