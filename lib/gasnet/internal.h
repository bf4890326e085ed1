/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * internal.h - the state of a node of GASNet, and the functions that its files share
 *
 * The library is compiled with and without threads (GASNET_SEQ; GASNET_PAR, of which
 * GASNET_PARSYNC differs in mode.c only), and again with GASNET_DEBUG.  It calls the
 * public functions of Portals only.
 *
 * Shared words, and why their order is right (all of them are words of one process):
 *	op.done, op.local_done	a thread that reads an event of SAFE_EQ adds, which
 *			releases the bytes that the event stands for; the op's thread
 *			acquires them when it compares with begun.  Without that order it
 *			could read old bytes behind a sync
 *	tickets		taken and given back by gasneti_add alone; a number, no data
 *	chunk lists, peers, bank, firehose, barrier	under their locks
 *	buffer.balance	each handler subtracts the bytes of its message behind its last
 *			read of them, the last message adds all of them; gasneti_add
 *			makes the thread that reaches 0 see the reads of the others, so
 *			no message can be received over bytes that a handler still reads
 *	generation, sleepers	poll.c
 *	exit state	exit.c
 *
 * Locks, outermost first: barrier; firehose; bank; peer; chunk list.  None is
 * held while a handler runs, or in a call that may wait.
 */
#ifndef GASNETI_INTERNAL_H
#define GASNETI_INTERNAL_H

#pragma GCC visibility push(default)
#include <gasnet.h>
#include <gasnet_coll.h>
#include <gasnet_tools.h>
#pragma GCC visibility pop

#include <portals3.h>
#include <portals3_runtime.h>
#include <portals3x.h>

#include "atomics.h"

#pragma GCC visibility push(hidden)

enum {
	GASNETI_RAR_PTE = 38,
	GASNETI_AM_PTE = 39,
	GASNETI_CHUNK = 2048,
	GASNETI_ALIGN = 16, /* of the parts of a message's body */
	GASNETI_CREDIT_BYTES = 256,
	GASNETI_MIN_CREDITS = GASNETI_CHUNK / GASNETI_CREDIT_BYTES,
	GASNETI_MAX_MEDIUM = GASNETI_CHUNK - 64,
	GASNETI_BUFFER_CHUNKS = 64,
	GASNETI_ARGS = 16,
	GASNETI_SHORT_PUT = 1536, /* puts up to this size end locally when they begin */
	GASNETI_BARRIER_STEPS = 10,
	GASNETI_NAP_MS = 10,
	GASNETI_OPS_CHUNK = 256,
	GASNETI_OPS_CHUNKS = 512,
	GASNETI_HANDLERS = 256,
	GASNETI_FIRST_HANDLER = 128,
	GASNETI_EXTRA = 7 /* most credits that one message asks for or lends */
};

#define GASNETI_ANY_BASE    ((uintptr_t)GASNET_PAGESIZE)
#define GASNETI_ANY_END     (((uintptr_t)1 << 47) - GASNET_PAGESIZE)
#define GASNETI_MAX_LONG    ((size_t)0x7fffffff)

#define GASNETI_RARE        __attribute__((cold, noinline))
#define GASNETI_HOT         inline __attribute__((always_inline))
#define gasneti_likely(x)   __builtin_expect(!!(x), 1)
#define gasneti_unlikely(x) __builtin_expect(!!(x), 0)

/* Bits 3..0 of match bits: the descriptor at the target. */
enum {
	GASNETI_MD_RAR = 0,
	GASNETI_MD_RARAM = 1,
	GASNETI_MD_RARSRC = 2,
	GASNETI_MD_REQUEST = 3,
	GASNETI_MD_REPLY = 4,
	GASNETI_MD_SYS = 5,
	GASNETI_MD_BARRIER = 6,
	GASNETI_MD_EXIT = 7,
	GASNETI_MD_TABLE = 8
};

/* Bits 7..4 of match bits: the kind of the operation. */
enum {
	GASNETI_KIND_PUT = 1,
	GASNETI_KIND_GET = 2,
	GASNETI_KIND_HEADER = 4,
	GASNETI_KIND_PAYLOAD = 8,
	GASNETI_KIND_PUT_LOCAL = 9 /* put whose SEND_END counts, too */
};

/*
 * Match bits of puts, gets and payloads, above those: 24..8 index of the op in its
 * thread's table, 32..25 thread, 47..33 generation of the op, 63..48 local resource to
 * release.
 */
enum {
	GASNETI_OP_SHIFT = 8,
	GASNETI_THREAD_SHIFT = 25,
	GASNETI_GENERATION_SHIFT = 33,
	GASNETI_RESOURCE_SHIFT = 48
};

/*
 * Match bits of message headers: 9..8 category, 10 packed, 15..11 arguments, 23..16
 * handler, 31..24 credits, 63..32 offset of the request's chunk in the requester's ReqSB.
 */
enum {
	GASNETI_SHORT = 1,
	GASNETI_MEDIUM = 2,
	GASNETI_LONG = 3,
	GASNETI_CATEGORY_SHIFT = 8,
	GASNETI_PACKED_SHIFT = 10,
	GASNETI_ARGS_SHIFT = 11,
	GASNETI_HANDLER_SHIFT = 16,
	GASNETI_CREDIT_SHIFT = 24,
	GASNETI_CHUNK_SHIFT = 32
};

/* Handlers of the library. */
enum {
	GASNETI_H_NONE = 0, /* a reply that only returns credits and the chunk */
	GASNETI_H_MEMSET = 64,
	GASNETI_H_MEMSET_DONE = 65,
	GASNETI_H_COLL = 66
};

enum { GASNETI_PUT = 0, GASNETI_GET = 1 };

enum {
	GASNETI_LOCAL_ALL,
	GASNETI_LOCAL_BOUNCE,
	GASNETI_LOCAL_TMPMD,
	GASNETI_LOCAL_FIREHOSE
};

/* Numbers of local resources in match bits. */
enum {
	GASNETI_BOUNCE_RESOURCE = 1,
	GASNETI_TMPMD_RESOURCE = 0x4000,
	GASNETI_FIREHOSE_RESOURCE = 0x8000
};

enum { GASNETI_FRESH, GASNETI_INIT, GASNETI_ATTACHED };

/*
 * An operation, or a set of them: a handle, the implicit set of a thread, or an access
 * region.  It is complete when done equals begun.  The op's thread alone writes begun.
 */
struct gasneti_op {
	uint64_t bits;  /* of its Portals operations: index, thread, generation */
	uint64_t value; /* of a get of a value */
	struct gasneti_op *next;
	struct gasneti_thread *thread;
	uint32_t begun[2]; /* puts and gets */
	uint32_t done[2];
	uint32_t local_begun; /* puts whose source is to be reused */
	uint32_t local_done;
	uint16_t generation;
	uint8_t live; /* the program has its handle */
};

/* A thread of the program. */
struct gasneti_thread {
	struct gasneti_op *blocking; /* of blocking operations */
	struct gasneti_op *implicit;
	struct gasneti_op *async;   /* of LongAsync: no thread waits for it */
	struct gasneti_op *current; /* implicit, or the open access region */
	struct gasneti_op *free;
	gasnet_hsl_t *held; /* debug: locks of this thread, the last one first */
	uint32_t index;
	uint32_t ops;       /* in the table */
	uint32_t tries;     /* of try_sync calls */
	uint8_t in_handler; /* 1: of a request, 2: of a reply */
	uint8_t in_hold;    /* no-interrupt section */
	uint8_t in_use;     /* a thread has it */
	struct gasneti_op *table[GASNETI_OPS_CHUNKS];
};

/* Both halves of a Long that has arrived in part; key: 2 * lid + (1 for a reply). */
struct gasneti_lid {
	struct gasneti_lid *next;
	uint64_t key;
	uint64_t bits;
	void *addr; /* payload */
	size_t nbytes;
	bool has_header;
	gasnet_handlerarg_t args[GASNETI_ARGS];
};

/* Another node, as this one sees it.  Credits: see credits.c. */
struct gasneti_peer {
	gasneti_lock_t lock;
	ptl_process_id_t id;
	uintptr_t base, size; /* segment */
	uint32_t send, in_use, send_max, send_stalls, send_revoked;
	uint32_t loan, loan_requested, loan_given;
	bool revoke_out, zero_reply, epoch_ended;
	uint8_t sys_unsent;  /* kinds of SYS messages that wait for space */
	uint64_t sys_hdr[2]; /* header data of REVOKE and RETURN among them */
	uint32_t request_lid, reply_lid;
	struct gasneti_lid *lids;
	bool exit_seen, exit_acked, dead; /* exit.c */
	uint32_t host;                    /* number of its host */
};

/* A request buffer. */
struct gasneti_buffer {
	char *memory;
	int64_t balance; /* bytes received and not released; negative while linked */
};

/* Numbers that are free. */
struct gasneti_pool {
	gasneti_lock_t lock;
	uint32_t *stack;
	uint32_t free;
};

/* Chunks of CHUNK bytes. */
struct gasneti_chunks {
	struct gasneti_pool pool;
	char *memory;
};

/* The local side of one Portals operation. */
struct gasneti_local {
	ptl_handle_md_t md;
	ptl_size_t offset;
	size_t length;
	uint64_t resource; /* 0: none */
};

struct gasneti_settings {
	uint32_t msg_limit, sb_chunks, rpl_chunks, tmpmds, handlers;
	uint32_t credits, banked, max_credits, epoch, lend_limit, revoke_limit, scavenge;
	uint32_t safe_limit, am_limit;
	uint32_t watch_ms, max_threads;
	uint64_t fh_regions, fh_bytes, fh_region;
	size_t bounce_limit;
	int local, segment;
	bool flow_control, dynamic, packed, stats, verbose;
};

struct gasneti_stats {
	uint64_t ticket_stalls, credit_stalls, chunk_stalls, turns, lids, lid_high;
	uint64_t lent, revoked, returned, hits, misses, merges, evictions;
	uint64_t regions_high, bytes_high; /* of the firehose */
	int64_t tickets_low;
};

struct gasneti_node {
	uint32_t state, me, nodes;
	uint32_t near; /* nodes of this host */
	int waitmode;
	_Alignas(64) int64_t tickets; /* each on a line of its own */
	_Alignas(64) int64_t handlers_free;
	_Alignas(64) struct gasneti_peer *peers;
	struct gasneti_settings set;
	ptl_handle_ni_t ni;
	ptl_handle_eq_t safe_eq, am_eq, sys_eq, exit_eq;
	ptl_handle_md_t any, any_quiet, rarsrc, none, request_md, reply_md, table_md,
		exit_md;
	ptl_handle_me_t catch_basin;
	uintptr_t base, size; /* own segment */
	size_t max_long;
	struct gasneti_chunks requests, replies;
	struct gasneti_buffer *buffers;
	uint32_t buffer_count, cpus;
	uint32_t unsent; /* SYS and barrier messages that wait for space */
	uint32_t leaving;
	uint32_t collectives; /* that run */
	uint32_t bank;        /* credits that are not lent; under bank_lock */
	uintptr_t max_local, max_global;
	void (*handlers[GASNETI_HANDLERS])(void);
	struct gasneti_thread **threads;
	struct gasneti_stats stats;
	uint32_t generation, sleepers, watcher, polls;
	uint32_t *hash; /* of process ids: node + 1 */
	uint32_t hash_mask;
	uint64_t (*table)[2]; /* exchange at the start */
};

extern struct gasneti_node gasneti;
extern GASNETI_TLS struct gasneti_thread *gasneti_self_word;

/* ---- nodes ---- */

static inline uint32_t gasneti_hash_of(ptl_process_id_t id)
{
	return id.nid * 0x9e3779b1u + id.pid * 0x85ebca6bu;
}

/* Return the node with that id, or the number of nodes if no node has it. */
static inline uint32_t gasneti_node_of(ptl_process_id_t id)
{
	for (uint32_t i = gasneti_hash_of(id);; i++) {
		uint32_t entry = gasneti.hash[i & gasneti.hash_mask];
		if (!entry)
			return gasneti.nodes;
		const ptl_process_id_t *it = &gasneti.peers[entry - 1].id;
		if (gasneti_likely(it->nid == id.nid && it->pid == id.pid))
			return entry - 1;
	}
}

/* ---- errors (exit.c) ---- */

void gasneti_fatal(const char *format, ...)
	__attribute__((noreturn, cold, format(printf, 1, 2)));
void gasneti_portals_failed(const char *call, int rc) __attribute__((noreturn, cold));
void gasneti_peer_died(uint32_t node) __attribute__((noreturn, cold));
void gasneti_no_node(uint32_t node) __attribute__((noreturn, cold));

/* Return n zeroed elements of this size; end the job without memory. */
void *gasneti_alloc(size_t n, size_t size);

/* End the job if a Portals call failed. */
static inline void gasneti_must(int rc, const char *call)
{
	if (gasneti_unlikely(rc != PTL_OK))
		gasneti_portals_failed(call, rc);
}

/* ---- threads (thread.c) ---- */

struct gasneti_thread *gasneti_thread_begin(void);
void gasneti_threads_init(void);

/* Return the calling thread's record. */
static GASNETI_HOT struct gasneti_thread *gasneti_self(void)
{
	struct gasneti_thread *self = gasneti_self_word;
	return gasneti_likely(self) ? self : gasneti_thread_begin();
}

void gasneti_wake(void);

/* In debug builds end the job unless the caller is main-line code after attach. */
#ifdef GASNET_DEBUG
void gasneti_check_main(const char *function);
void gasneti_check_remote(
	const char *function, uint32_t node, const void *addr, size_t nbytes);
void gasneti_check_value(const char *function, size_t nbytes);
#else
#define gasneti_check_main(function)                       ((void)0)
#define gasneti_check_remote(function, node, addr, nbytes) ((void)0)
#define gasneti_check_value(function, nbytes)              ((void)0)
#endif

/* ---- the local side (local.c) ---- */

/* The pages of a region of the firehose that waits for room. */
struct gasneti_fh_span {
	uintptr_t start, end;
};

void gasneti_chunks_init(struct gasneti_chunks *chunks, uint32_t count);
int gasneti_pool_take(struct gasneti_pool *pool); /* a free number, or -1 */
void gasneti_pool_back(struct gasneti_pool *pool, uint32_t number);
void gasneti_local_attach(void);
bool gasneti_bounce_try(struct gasneti_local *local, void *addr, size_t nbytes, int way);
bool gasneti_tmpmd_try(struct gasneti_local *local, void *addr, size_t nbytes);
bool gasneti_firehose_try(struct gasneti_local *local, uintptr_t addr, size_t nbytes,
	struct gasneti_fh_span *span);
void gasneti_local_release(uint64_t bits);
void gasneti_local_arrived(uint64_t bits, size_t nbytes);
ptl_handle_md_t gasneti_bind(
	void *start, size_t length, unsigned options, ptl_handle_eq_t eq);
ptl_handle_md_t gasneti_attach_target(ptl_pt_index_t index, uint64_t bits, void *start,
	size_t length, unsigned options, ptl_handle_eq_t eq, ptl_handle_me_t *me);

/* Return true if a segment has these bytes; of none their place counts. */
static GASNETI_HOT bool gasneti_segment_has(
	uintptr_t base, uintptr_t size, const void *addr, size_t nbytes)
{
	uintptr_t offset = (uintptr_t)addr - base;
	return offset < size && size - offset >= nbytes;
}

static GASNETI_HOT bool gasneti_in_segment(const void *addr, size_t nbytes)
{
	return gasneti_segment_has(gasneti.base, gasneti.size, addr, nbytes);
}

/* ---- polling and waiting (poll.c, am_send.c, am.c) ---- */

unsigned gasneti_poll_safe(void);
unsigned gasneti_poll_one(void);
unsigned gasneti_poll_others(void);
unsigned gasneti_poll_either(void);
unsigned gasneti_poll_requests(void);
unsigned gasneti_poll_full(void);
void gasneti_safe_event(const ptl_event_t *ev);
void gasneti_turn_safe(gasneti_wait_t *wait);
void gasneti_turn_am(gasneti_wait_t *wait);
void gasneti_turn_full(gasneti_wait_t *wait);
void gasneti_turn_end(gasneti_wait_t *wait, unsigned n);
bool gasneti_may_sleep(gasneti_wait_t *wait, unsigned n);
bool gasneti_nap(gasneti_wait_t *wait, bool requests, ptl_event_t *ev);
void gasneti_wait_init(gasneti_wait_t *wait);

/* Wait at a level (safe, am or full; see poll.c) until an expression is true. */
#define gasneti_wait_for(level, cond)                                                    \
	do {                                                                             \
		if (gasneti_unlikely(!(cond))) {                                         \
			gasneti_wait_t wait_;                                            \
			gasneti_wait_init(&wait_);                                       \
			while (!(cond))                                                  \
				gasneti_turn_##level(&wait_);                            \
		}                                                                        \
	} while (0)

/* Begin a put or get by a call of Portals, serving class 1 while there is no room. */
#define gasneti_start(function, ...)                                                     \
	do {                                                                             \
		int rc_;                                                                 \
		gasneti_wait_for(safe, (rc_ = function(__VA_ARGS__)) != PTL_NO_SPACE);   \
		gasneti_must(rc_, #function);                                            \
	} while (0)

/* Take the next event of a queue, if there is one. */
static GASNETI_HOT bool gasneti_next_event(
	ptl_handle_eq_t eq, ptl_event_t *ev, const char *name)
{
	int rc = PtlEQGet(eq, ev);
	if (rc == PTL_OK)
		return true;
	if (gasneti_unlikely(rc == PTL_EQ_DROPPED))
		gasneti_fatal("event queue %s overflowed: a defect of the conduit", name);
	return false;
}

/* Get the right to run a request handler; return false if too many threads do. */
static GASNETI_HOT bool gasneti_handler_begin(void)
{
	if (!GASNETI_THREADS || gasneti_add(&gasneti.handlers_free, -1) >= 0)
		return true;
	gasneti_add(&gasneti.handlers_free, 1);
	return false;
}

static GASNETI_HOT void gasneti_handler_end(void)
{
	if (GASNETI_THREADS)
		gasneti_add(&gasneti.handlers_free, 1);
}

/* Take a send ticket; return false if there is none. */
static GASNETI_HOT bool gasneti_ticket_try(void)
{
	int64_t left = gasneti_add(&gasneti.tickets, -1);
	if (gasneti_unlikely(left < gasneti_get(&gasneti.stats.tickets_low)))
		gasneti_set(&gasneti.stats.tickets_low, left);
	if (gasneti_likely(left >= 0))
		return true;
	gasneti_add(&gasneti.tickets, 1);
	return false;
}

/* Take a send ticket, serving events of class 1 meanwhile. */
static GASNETI_HOT void gasneti_ticket_take(void)
{
	if (gasneti_likely(gasneti_ticket_try()))
		return;
	gasneti_count(&gasneti.stats.ticket_stalls, 1);
	gasneti_wait_for(safe, gasneti_ticket_try());
}

/* Wait until the sources of an operation's puts may be reused. */
static GASNETI_HOT void gasneti_await_local(struct gasneti_op *op)
{
	gasneti_wait_for(safe, gasneti_acquire(&op->local_done) == op->local_begun);
}

void gasneti_local_take_otherwise(
	struct gasneti_local *local, void *addr, size_t nbytes, int way, bool whole);

/*
 * Name the memory that an operation begins with; local->length may be less than nbytes,
 * unless whole.  way: GASNETI_PUT reads the memory, GASNETI_GET writes it.
 */
static GASNETI_HOT void gasneti_local_take(
	struct gasneti_local *local, void *addr, size_t nbytes, int way, bool whole)
{
	if (gasneti_in_segment(addr, nbytes))
		*local = (struct gasneti_local){
			gasneti.rarsrc, (uintptr_t)addr - gasneti.base, nbytes, 0};
	else if (gasneti_likely(gasneti.set.local == GASNETI_LOCAL_ALL))
		*local = (struct gasneti_local){
			gasneti.any, (uintptr_t)addr - GASNETI_ANY_BASE, nbytes, 0};
	else
		gasneti_local_take_otherwise(local, addr, nbytes, way, whole);
}

/* ---- active messages (am_recv.c, am_send.c, am.c) ---- */

/* A message that a handler serves: gasnet_token_t points to it. */
struct gasneti_token {
	uint32_t node;    /* its sender */
	uint32_t chunk;   /* offset of the request's chunk at the requester */
	uint32_t credits; /* credit byte of the reply */
	bool request, loopback, replied;
};

/* A message to be sent. */
struct gasneti_message {
	uint32_t node, handler, category, numargs;
	uint32_t least_handler; /* 0: of the library */
	void *src;
	size_t nbytes;
	void *to; /* place of a Long payload */
	bool async;
	gasnet_handlerarg_t args[GASNETI_ARGS];
};

/* Begin a message without clearing its arguments; the first two are read in any case. */
static GASNETI_HOT void gasneti_message_init(struct gasneti_message *m, uint32_t node,
	uint32_t handler, uint32_t category, void *src, size_t nbytes, void *to,
	int numargs)
{
	m->node = node, m->handler = handler, m->category = category;
	m->numargs = (uint32_t)numargs;
	m->least_handler = GASNETI_FIRST_HANDLER;
	m->src = src, m->nbytes = nbytes, m->to = to, m->async = false;
	m->args[0] = m->args[1] = 0;
}

/* Where the parts of a message go. */
struct gasneti_layout {
	uint32_t inline_args, head, start, body;
	bool packed;
};

/* A request that is being sent. */
struct gasneti_request {
	struct gasneti_layout layout;
	uint32_t credits, want; /* credits that it takes; more that it asks for */
	int chunk;
	bool split; /* its payload is a put of its own */
};

void gasneti_am_attach(void);
bool gasneti_am_request(const ptl_event_t *ev, struct gasneti_token *token);
bool gasneti_am_request_payload(const ptl_event_t *ev, struct gasneti_token *token);
void gasneti_am_reply(const ptl_event_t *ev);
void gasneti_am_reply_payload(const ptl_event_t *ev);
void gasneti_run_handler(struct gasneti_token *token, uint32_t category, uint32_t handler,
	void *buf, size_t nbytes, uint32_t numargs, const gasnet_handlerarg_t *args);
int gasneti_message_check(const struct gasneti_message *m);
void gasneti_loopback(const struct gasneti_message *m, struct gasneti_token *token);
bool gasneti_request_begin(struct gasneti_request *r, const struct gasneti_message *m);
bool gasneti_request_try(
	struct gasneti_request *r, const struct gasneti_message *m, bool stall);
void gasneti_request_end(
	const struct gasneti_request *r, const struct gasneti_message *m);
int gasneti_am_reply_send(gasnet_token_t token, struct gasneti_message *m);
int gasneti_am_send(struct gasneti_message *m);

static GASNETI_HOT uint32_t gasneti_aligned(uint32_t n)
{
	return (n + GASNETI_ALIGN - 1) & ~(uint32_t)(GASNETI_ALIGN - 1);
}

static GASNETI_HOT char *gasneti_chunk_memory(
	const struct gasneti_chunks *chunks, uint32_t chunk)
{
	return chunks->memory + (size_t)chunk * GASNETI_CHUNK;
}

/* Send a zero-length message without events; return false if there is no room. */
static inline bool gasneti_note(uint32_t node, uint64_t bits, uint64_t hdr)
{
	int rc = PtlPut(gasneti.none, PTL_NOACK_REQ, gasneti.peers[node].id,
		GASNETI_AM_PTE, 0, bits, 0, hdr);
	if (rc == PTL_NO_SPACE)
		return false;
	gasneti_must(rc, "PtlPut");
	return true;
}

/* ---- credits (credits.c) ---- */

void gasneti_credits_attach(void);
bool gasneti_credits_take(struct gasneti_peer *peer, uint32_t n, uint32_t *want);
uint32_t gasneti_credits_byte(struct gasneti_peer *peer, uint32_t n, uint32_t extra);
uint32_t gasneti_credits_lend(struct gasneti_peer *peer, uint32_t byte);
void gasneti_credits_back(struct gasneti_peer *peer, uint32_t byte);
void gasneti_credits_scavenge(void);
void gasneti_sys_event(const ptl_event_t *ev);
void gasneti_sys_resend(void);

/* Return the credits that this node owns. */
static inline uint32_t gasneti_credits_total(void)
{
	return gasneti.set.banked + (gasneti.nodes - 1) * gasneti.set.credits;
}

/* ---- operations (thread.c) ---- */

struct gasneti_op *gasneti_op_of(uint64_t bits);
struct gasneti_op *gasneti_op_begin(struct gasneti_thread *self);
void gasneti_op_finish(struct gasneti_op *op);
void gasneti_memset_request(gasnet_token_t token, gasnet_handlerarg_t dest_hi,
	gasnet_handlerarg_t dest_lo, gasnet_handlerarg_t n_hi, gasnet_handlerarg_t n_lo,
	gasnet_handlerarg_t value, gasnet_handlerarg_t op_hi, gasnet_handlerarg_t op_lo);
void gasneti_memset_done(
	gasnet_token_t token, gasnet_handlerarg_t op_hi, gasnet_handlerarg_t op_lo);

/* The two arguments that a number of 64 bits takes, and the number that they are. */
#define GASNETI_HALVES(n) (gasnet_handlerarg_t)((n) >> 32), (gasnet_handlerarg_t)(n)

static inline uint64_t gasneti_joined(gasnet_handlerarg_t high, gasnet_handlerarg_t low)
{
	return (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
}

/* ---- collectives and barriers (coll.c, barrier.c, team.c) ---- */

/* Some nodes in an order: member k has rank k. */
struct gasneti_team {
	uint64_t id;
	uint32_t sequence; /* of the next collective, alike on all members */
	uint32_t rank, size;
	uint32_t *members; /* nodes by rank; NULL: all nodes, by number */
	struct gasneti_team_barrier {
		gasnet_coll_handle_t handle; /* between notify and wait */
		uint64_t value;
	} barrier;
};

static inline uint32_t gasneti_member(const struct gasneti_team *team, uint32_t rank)
{
	return team->members ? team->members[rank] : rank;
}

void gasneti_coll_request(gasnet_token_t token, void *buf, size_t nbytes,
	gasnet_handlerarg_t team_hi, gasnet_handlerarg_t team_lo,
	gasnet_handlerarg_t sequence, gasnet_handlerarg_t part,
	gasnet_handlerarg_t off_hi, gasnet_handlerarg_t off_lo,
	gasnet_handlerarg_t all_hi, gasnet_handlerarg_t all_lo);
void gasneti_coll_advance(void);
bool gasneti_coll_finish(gasnet_coll_handle_t handle);
gasnet_coll_handle_t gasneti_coll_meet(gasnet_team_handle_t team, uint64_t *value);
void gasneti_barrier_event(const ptl_event_t *ev);
void gasneti_barrier_resend(void);
void gasneti_barrier_want_notified(const char *function);
int gasneti_barrier_finish(int id, int flags);
uint64_t gasneti_barrier_value(int id, int flags);
uint64_t gasneti_barrier_join(uint64_t a, uint64_t b);
int gasneti_barrier_outcome(uint64_t known, int id, int flags);

/* ---- start and end of the job (core.c, exit.c, tools.c) ---- */

int gasneti_suffix_shift(const char *suffix);
int gasneti_core_init(void);
int gasneti_core_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize,
	uintptr_t minheapoffset);
void gasneti_exit_init(uint64_t timeout);
void gasneti_exit_poll(void);
void gasneti_exit_event(const ptl_event_t *ev);

#pragma GCC visibility pop

#endif /* GASNETI_INTERNAL_H */
