/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace - records of a node's last actions, in its published segment, also after its
 * death
 *
 *	firmware      --write-->  [ ring of the firmware ]  \
 *	host threads  --write-->  [ ring of the hosts ]	     >  p3_trace_read() in a tool
 *	p3_trace_format() ------> [ header ]		    /
 *
 * The region lies behind the arena, at p3_layout_of(nnodes).seg_len, and is there only
 * with PTL3_TRACE.  Its owner writes it, and no other process can.
 *
 *   0	     +------------------+
 *	     | header		|  clock, address of the code, heads of the rings
 *   4 KiB   +------------------+
 *	     | n records	|  of the firmware: the lease holder writes
 *	     +------------------+
 *	     | n/2 records	|  of host threads: any of them writes
 *	     +------------------+
 *
 * A record is four words:
 *	0  time		ticks of the header's clock, which all nodes of a machine share
 *	1  where	code offset : point : value : peer, p3_trace_where()
 *	2  which	message or thread : state, p3_trace_state()
 *	3  detail	depends on the point, see P3_TRACE_POINTS
 *
 * A message is named by its sender's lane and its position there, which both ends know.
 *
 * At the same time there may be one call of p3_trace_write() for a ring, any number of
 * calls of p3_trace_write_shared(), and any number of readers in any process.  Progress:
 * writers are wait-free.  A thread that is stopped in the middle of a record keeps its
 * place.  When the ring has gone round, the host thread whose turn it is finds that place
 * taken, drops its own record, and counts it (lost).
 *
 * Memory ordering:
 *	TRACE.1	state, the low half of word 2: complete is released -> the reader acquires
 *		it (the record is written)
 *	TRACE.2	seqlock: the writer makes state odd, then releases each word; the reader
 *		acquires each word, then looks at the state again.  A reader that saw a
 *		newer word sees a state that is odd or newer, and shows nothing
 *	TRACE.3	claim of a place in the hosts' ring: complete is released -> the next
 *		writer's compare-and-swap acquires it (two threads never write one record)
 *
 * Probes are places that perf, bpftrace and systemtap can watch in a production build.  A
 * probe is one no-operation instruction, and a note in the library that says where it
 * is and where its arguments lie.  Provider: libportals.  Any thread may pass a probe;
 * there is no state.
 *
 *	command	 opcode, node	    a call's command is about to be executed or posted
 *	match	 bits, length, hit  a request was looked up; hit: one accepts it
 *	deliver	 kind, length	    a request is done with, or handed to a mover
 *	event	 kind, sequence	    an event was posted
 *	park	 node		    a thread goes to sleep,
 *	wake	 node		    and has come back
 *
 *	perf buildid-cache --add libportals.so; perf list sdt
 */
#ifndef P3_SHM_TRACE_H
#define P3_SHM_TRACE_H

#include "shm/atomics.h"
#include "shm/layout.h"
#include "shm/park.h"

#include <stddef.h>
#include <sys/sdt.h>

#define P3_PROBE1(name, a)       DTRACE_PROBE1(libportals, name, a)
#define P3_PROBE2(name, a, b)    DTRACE_PROBE2(libportals, name, a, b)
#define P3_PROBE3(name, a, b, c) DTRACE_PROBE3(libportals, name, a, b, c)

#define P3_TRACE_MAGIC           0x33727450u /* "Ptr3" */
#define P3_TRACE_VERSION         2u
#define P3_TRACE_LEAST           64u
#define P3_TRACE_MOST            (1u << 24) /* of the firmware's records */
/* default of yod --trace: the whole region takes less than 2 MiB */
#define P3_TRACE_USUAL  32768u
#define P3_TRACE_NOBODY 0x7fffu /* no peer */

/*
 * Each line has a point's name, and in the comment the side that writes it (host threads,
 * or fw for the firmware), the record's value, and its detail.  "a : b" is a in the upper
 * half, and b in the lower one.  tracedump prints the name, filters by it, and finds by
 * it the points at which a bar of a picture begins and ends.
 */
#define P3_TRACE_POINTS(X)                                                               \
	X(COMMAND, "command")   /* host: opcode; length or handle */                     \
	X(TAKEN, "taken")       /* host: event kind; queue : sequence */                 \
	X(PARK, "park")         /* host: 0 a host thread, 1 the NIC's */                 \
	X(WAKE, "wake")         /* host: the same */                                     \
	X(LEASE, "lease")       /* fw: taken by host (1) or NIC (2) */                   \
	X(GIVEN, "given")       /* fw: the lease */                                      \
	X(EXECUTE, "execute")   /* fw: opcode; the command's record + 1 */               \
	X(SEND, "send")         /* fw: request kind; command's record + 1 : length */    \
	X(TAKE, "take")         /* fw: request kind; length */                           \
	X(MATCH, "match")       /* fw: 1 an entry accepts it; match bits */              \
	X(WAIT, "wait")         /* fw: request kind; it stays in the lane for now */     \
	X(DELIVER, "deliver")   /* fw: request kind; length */                           \
	X(DROP, "drop")         /* fw: 0; length */                                      \
	X(EVENT, "event")       /* fw: event kind; queue : sequence */                   \
	X(ANSWER, "answer")     /* fw: response kind; length */                          \
	X(ANSWERED, "answered") /* fw: response kind; length */                          \
	X(BEGIN, "begin")       /* fw: mover; length of a transfer into this node */     \
	X(END, "end")           /* fw: failure; length */                                \
	X(BIRTH, "birth")       /* fw: 0; incarnation */                                 \
	X(DEATH, "death")       /* fw: 1 died, 0 left; incarnation */

enum p3_trace_point {
#define P3_X(id, name) P3_TRACE_##id,
	P3_TRACE_POINTS(P3_X)
#undef P3_X
		P3_TRACE_POINTS_N
};

enum p3_trace_clock { P3_TRACE_TSC = 1, P3_TRACE_MONOTONIC = 2 };

enum p3_trace_ring { P3_TRACE_FW, P3_TRACE_HOST, P3_TRACE_RINGS };

struct p3_trace_record {
	p3_a64 w[4];
};

struct p3_trace_header {
	uint32_t magic;
	uint32_t version;
	uint32_t node;
	uint32_t nnodes;
	uint32_t nid;
	uint32_t os_pid;
	uint32_t clock;   /* p3_trace_clock */
	uint32_t records; /* number of the firmware's records, a power of two */
	uint64_t incarnation;
	uint64_t ticks; /* the clock at the start */
	uint64_t ns;    /* CLOCK_MONOTONIC at the same time */
	uint64_t code;  /* address of the library's offset 0: code offsets are from
			 * there */
	uint32_t build_len;
	uint8_t build[20]; /* its build-id */
	char object[512];  /* its file name */
	char program[32];
	uint64_t pad;
	/* In a region these words have a line of their own.  Copies of the header lie
	 * anywhere, so the type does not ask for the alignment. */
	p3_a64 head[P3_TRACE_RINGS]; /* (fw) (hosts) records begun */
	p3_a64 lost;                 /* (hosts) */
	uint64_t pad2[13];
};

_Static_assert(sizeof(struct p3_trace_record) == 32, "layout is part of the format");
_Static_assert(sizeof(struct p3_trace_header) == 768, "layout is part of the format");
_Static_assert(offsetof(struct p3_trace_header, head) % P3_LINE == 0, "a line of it");

/* ---- layout ---- */

static inline uint32_t p3_trace_records(uint32_t records, enum p3_trace_ring ring)
{
	return ring == P3_TRACE_FW ? records : records / 2;
}

/* Return the bytes that the trace uses; 0 without records. */
static inline uint64_t p3_trace_len(uint32_t records)
{
	return records ? P3_PAGE + (uint64_t)(records + records / 2) *
					   sizeof(struct p3_trace_record)
		       : 0;
}

static inline struct p3_trace_record *p3_trace_at(
	const void *region, uint32_t records, enum p3_trace_ring ring)
{
	struct p3_trace_record *fw =
		(struct p3_trace_record *)((uintptr_t)region + P3_PAGE);
	return ring == P3_TRACE_FW ? fw : fw + records;
}

/* Return true if seg_len can be the length of a published segment, with a trace behind
 * the arena or without one. */
static inline bool p3_trace_may_follow(const struct p3_layout *l, uint64_t seg_len)
{
	return seg_len >= l->seg_len && seg_len % P3_HUGE == 0 &&
	       seg_len - l->seg_len <= p3_round_up(p3_trace_len(P3_TRACE_MOST), P3_HUGE);
}

/* ---- words ---- */

static inline uint64_t p3_trace_where(
	uint32_t code, enum p3_trace_point point, uint32_t value, uint32_t peer)
{
	return (uint64_t)code << 32 | (uint64_t)(point & 0xff) << 24 |
	       (uint64_t)(value & 0xff) << 16 | (peer & 0xffff);
}

#define P3_TRACE_SERVED 255u /* in BEGIN, instead of a mover: a peer reads */

#define P3_TRACE_IN     0x8000u /* beside the peer: the message is the peer's */

/* Return the state of record number i when complete; it is one less, odd, while
 * written. */
static inline uint32_t p3_trace_state(uint64_t i)
{
	return (uint32_t)(2 * i + 2);
}

#define P3_TRACE_BASE 0x40000000u /* in a message: it is in the base ring */

/* Name the message in a ring by its distance in cells from the start; never 0. */
static inline uint32_t p3_trace_message(uint64_t cells, bool base)
{
	return 1u << 31 | (base ? P3_TRACE_BASE : 0) | (cells & 0x3fffffff);
}

/* ---- clock ---- */

static inline uint64_t p3_trace_ticks(uint32_t clock)
{
#if defined(__x86_64__)
	if (p3_likely(clock == P3_TRACE_TSC))
		return __builtin_ia32_rdtsc();
#else
	(void)clock;
#endif
	return p3_now_ns();
}

/* Return the better clock that this machine has. */
uint32_t p3_trace_clock(void);

/* ---- writing ---- */

static inline void p3_trace_fill(
	struct p3_trace_record *r, const uint64_t w[4], uint64_t number)
{
	for (int i = 0; i < 4; i++)
		if (i != 2)
			p3_release(&r->w[i], w[i]);                /* TRACE.2 */
	p3_release(&r->w[2], w[2] << 32 | p3_trace_state(number)); /* TRACE.1 */
}

/* Write record number i of a ring that has one writer at a time; w[2] is the message. */
static inline void p3_trace_write(
	struct p3_trace_record *ring, uint32_t mask, uint64_t i, const uint64_t w[4])
{
	struct p3_trace_record *r = &ring[i & mask];
	p3_set(&r->w[2], p3_trace_state(i) - 1u);
	p3_trace_fill(r, w, i);
}

/* Write a record from any thread of the process; w[2] is the thread.  Return its
 * number, or UINT64_MAX if it was lost.  The mask comes from private memory: a program
 * that has overwritten the header goes on. */
uint64_t p3_trace_write_shared(struct p3_trace_header *h, struct p3_trace_record *ring,
	uint32_t mask, const uint64_t w[4]);

/* ---- making ---- */

struct p3_trace_who {
	uint32_t node, nnodes, nid;
	uint64_t incarnation;
};

/* Set up the region, which is zeroed memory; code is any function of the library. */
void p3_trace_format(
	void *region, uint32_t records, const struct p3_trace_who *who, const void *code);

/* ---- reading ---- */

/* A record that was read whole. */
struct p3_trace_entry {
	uint64_t ticks;
	uint64_t detail;
	uint32_t code;
	uint32_t which; /* message, or a host's thread; 0: none */
	uint32_t number;
	uint16_t peer; /* P3_TRACE_NOBODY: no peer */
	uint8_t point;
	uint8_t value;
	uint8_t ring;
	uint8_t in; /* 1: the message is the peer's */
	uint16_t node;
	uint32_t pad;
};

/*
 * Read a region of len bytes, which may change meanwhile and may contain anything.
 * Return the entries of the firmware, then of the hosts, in order, or NULL with errno
 * EPROTO or ENOMEM.
 */
struct p3_trace_taken {
	struct p3_trace_header header; /* checked: strings end, records fit */
	uint64_t written[P3_TRACE_RINGS];
	uint64_t lost;
	uint32_t n;
	struct p3_trace_entry entry[];
};

struct p3_trace_taken *p3_trace_read(const void *region, uint64_t len);

/* Return bytes of a published segment, with memory behind them, or NULL; they may be
 * gone after the next call. */
typedef const void *p3_trace_bytes(void *arg, uint64_t off, uint64_t len);
/* Read the trace behind a published segment, as p3_trace_read() does; errno is ENODATA if
 * there is none. */
struct p3_trace_taken *p3_trace_find(p3_trace_bytes *bytes, void *arg);

/*
 * Return the number of nodes (of a job, or of a domain) that a published segment is
 * laid out for, or 0 if it is no such segment, or one that could still shrink.  The
 * descriptor stays the caller's.
 */
uint32_t p3_trace_nodes(int published);
/* Turn a text of another process into one line of ASCII. */
void p3_trace_printable(char *text, size_t size);

extern const char *const p3_trace_name[P3_TRACE_POINTS_N];

#endif
