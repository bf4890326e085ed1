/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout - map of a node's published segment, of its doorbell page and of the sleepers
 *
 * Every byte has one writing process.  The published segment is written by its
 * owner, and mapped read-only by all others (sealed before its descriptor leaves
 * the process).  Offsets are computed from the number of nodes by p3_layout_of(),
 * on both sides by the same code; nothing that a peer wrote is used as a bound.
 *
 *   0       +-----------------+
 *           | header          |  magic, layout word, incarnation, state
 *           +-----------------+
 *           | counters        |  NIC control block: heartbeat, counters, gauges
 *           +-----------------+
 *           | waits[8]        |  what host threads sleep for
 *           | queues[64]      |  where event queues lie in the host segment
 *           | cases[22]       |  the last request of each kind that came to nothing
 *           +-----------------+
 *           | part[nnodes]    |  for each peer: the base lane to it, 8 request and 8
 *           |                 |  response cells; between them what this node says to it:
 *           |                 |  credits of the lanes that it receives on, where its own
 *           |                 |  lanes are
 *           +-----------------+
 *           | xfer[nxfers]    |  transfer table: long sends in progress
 *           +-----------------+  ctl_len: reserved at creation, up to here
 *           | arena           |  one bulk window, reserved at creation, too; full lanes
 *           |                 |  and more windows in order of first use, each
 *           |                 |  reserved before it is announced
 *           +-----------------+  seg_len
 *
 * The doorbell page and the job's sleepers are what others write.  All of it is hints.
 */
#ifndef P3_SHM_LAYOUT_H
#define P3_SHM_LAYOUT_H

#include "shm/atomics.h"
#include "shm/why.h"

#include <stddef.h>

#define P3_SEG_MAGIC     0x33736f50u /* "Pos3" */
#define P3_SEG_VERSION   11u
#define P3_MAX_NODES     1024u
#define P3_PAGE          4096u
#define P3_HUGE          (2u << 20)

#define P3_BASE_CELLS    8u     /* of each of the two rings of a base lane */
#define P3_PARTS         3u     /* on a page: no part lies on two */
#define P3_XFERS_SHARED  128u   /* transfer slots of each class beyond one a peer */
#define P3_CHUNK_LEN     32768u /* bytes of one chunk of a bulk window */
#define P3_WINDOW_CHUNKS 8u
#define P3_WINDOW_LEN    ((uint64_t)P3_CHUNK_LEN * P3_WINDOW_CHUNKS)
#define P3_WINDOWS       4u
#define P3_WAITS         8u  /* host threads that say what they sleep for */
#define P3_QUEUES_SHOWN  64u /* event queues, by their number */

/* Cells of 64 bytes, moved as words; the first word of a header cell is its
 * validity (low half) with kind, flags and number of cells. */
struct p3_cell {
	p3_a64 w[8];
};

enum p3_seg_state { P3_SEG_LIVE = 1, P3_SEG_FINISHED = 2 };

struct p3_seg_header {
	uint32_t magic;
	uint32_t version;
	uint64_t layout;
	uint64_t incarnation;
	uint64_t seg_len;
	uint32_t nnodes;
	uint32_t node;
	p3_a32 state;  /* p3_seg_state, released last */
	p3_a32 owner;  /* a thread; the kernel changes it when the process ends */
	uint64_t self; /* where its owner has this header mapped */
	uint32_t wire; /* what this node speaks: 0 these segments, else another wire's */
	uint32_t fences; /* 1: it fences heavily before it sleeps (fence.h) */
	uint8_t pad[64];
};

/*
 * The NIC control block: read by tools, never by peers, and nothing is decided by it.
 * Counters change with what they count.  Gauges are a picture: the lease holder draws it
 * every P3_MIRROR_PASSES passes, before it sleeps a second time for nothing, and at each
 * tick of the NIC thread that finds the lease free; HEARTBEAT counts the pictures, NOW_NS
 * dates the last one.  All words are relaxed: a group may be torn (docs/ordering.md).
 */
enum p3_counter {
	P3_C_HEARTBEAT,
	P3_C_PASSES,
	P3_C_DRAINED,
	P3_C_OVERRUNS,
	P3_C_SENT,
	P3_C_SENT_BYTES,
	P3_C_RECEIVED,
	P3_C_RECEIVED_BYTES,
	P3_C_DROPS,
	P3_C_DROP_BYTES,
	P3_C_PUT_INLINE,
	P3_C_PUT_EAGER,
	P3_C_BULK_BYTES,
	P3_C_CMA_BYTES,
	P3_C_CMA_FALLBACK,
	P3_C_KICKS,
	P3_C_WAKES,
	P3_C_PARK_LATE,
	P3_C_TICKS,
	P3_C_TAKEOVERS,
	P3_C_BAD_HEADERS,
	P3_C_LANES_FULL,
	P3_C_QUEUED,
	P3_C_LEASE_HOST,
	P3_C_LEASE_NIC,
	P3_C_DIRECT_BYTES,
	P3_C_DENIED, /* drops for the access control list's sake */

	P3_G_NOW_NS = 32, /* CLOCK_MONOTONIC */
	P3_G_LEASE,       /* p3_lease_holder, as the holder left it */
	P3_G_MES,         /* in use */
	P3_G_MDS,
	P3_G_EQS,
	P3_G_PENDINGS,
	P3_G_PENDINGS_MOST,
	P3_G_QUEUED,  /* of these: in send queues, */
	P3_G_BLOCKED, /* of so many peers */
	P3_G_HOT,     /* lanes that are polled */
	P3_G_ALIVE,   /* peers, this node too */
	P3_G_PULLS,   /* long transfers into this node's memory */
	P3_G_SOURCES, /* and out of it */
	P3_G_PARKED,  /* host threads asleep, */
	P3_G_WAITING, /* and inside a blocking call */
	P3_G_WATCHER, /* one sleeps on the doorbell */
	P3_G_CARVED,  /* bytes of the arena in use */

	P3_G_MEMBARRIER = 51, /* set once */
	P3_G_NIC_ASLEEP,      /* (NIC thread) until a message comes */
	P3_G_NIC_TID,

	P3_G_MODE = 54, /* set once: p3_mode, */
	P3_G_PAGE,      /* bytes, */
	P3_G_NUMA,      /* node that the memory is on, plus 1; 0: not asked for, */
	P3_G_CPUS,      /* of the job, */
	P3_G_CMA,
	P3_G_BULK,
	P3_G_BASE_LANES,
	P3_G_WIRE,
	P3_G_HEAP, /* bytes, */
	P3_G_SPIN, /* idle threads spin so long, ns */
	P3_COUNTERS = 64
};

/*
 * What one host thread sleeps for: written by it when it begins to sleep, free again when
 * it has what it waited for.  A thread that finds none free says nothing.
 */
enum p3_wait_kind { P3_WAIT_EVENT = 1, P3_WAIT_COMMAND };

#define P3_WAIT_HANDLES 8u

struct p3_wait_line {
	p3_a32 tid;  /* 0: free */
	p3_a32 kind; /* p3_wait_kind */
	p3_a64 since_ns;
	p3_a64 deadline_ns;             /* UINT64_MAX: none */
	p3_a64 n;                       /* EVENT: queues */
	p3_a64 handle[P3_WAIT_HANDLES]; /* the first of them; COMMAND: its p3_op */
	p3_a64 received;                /* messages, when it began */
	uint64_t pad[3];
};

/* Where an event queue's ring is: written by the lease holder as it is made or freed. */
struct p3_queue_line {
	p3_a64 at;  /* in the host segment, plus 1; 0: there is none, or elsewhere */
	p3_a64 how; /* generation:records */
};

/*
 * The last request that came to nothing for one reason: the words of a struct p3_case.
 * The lease holder writes them one by one, so a tool may read words of two cases.
 */
struct p3_case_line {
	p3_a64 w[P3_CASE_WORDS];
};

/*
 * What this node tells one peer.  Line one belongs to the lane peer -> this
 * node (this node consumes) and changes all the time; line two to the lane this
 * node -> peer, and the peer looks at cold there after every message: it must not
 * lie beside the credits.
 */
struct p3_peer_entry {
	/* consumer's side */
	p3_a64 rx_for;        /* incarnation of the peer that line one is about */
	p3_a64 req_credit[2]; /* cells taken, of the base ring and of the full ring */
	p3_a64 rsp_credit[2];
	p3_a64 bulk_slot; /* 0, or transfer (p3_xfer_id) being read through a window */
	p3_a64 bulk_want; /* bytes of it that will be read */
	p3_a64 bulk_read; /* bytes of it read so far */
	p3_a32 reading;   /* puts of the peer being read from its memory: XFER.5 */
	uint32_t pad0;
	p3_a64 bulk_again; /* of the bytes that bulk_read is about: XFER.6 */
	/* gauges of this node's sends to the peer, for tools: see p3_counter */
	p3_a64 shown_ops;   /* sent and not answered:in the send queue */
	p3_a64 shown_since; /* since then the peer has taken nothing; 0: nothing waits */
	/* of the peer's requests to this node, for tools: the last p3_why of those that
	 * came to nothing or to no ACK here, and their number */
	p3_a64 shown_drops;
	uint64_t pad1[3];
	/* producer's side, and what hardly changes but is looked at all the time */
	p3_a64 tx_for;   /* incarnation of the peer that line two is for */
	p3_a64 full_req; /* offset of the full request ring, 0 none */
	p3_a64 full_rsp;
	p3_a32 cold;     /* this node does not poll the peer's lane: ring its doorbell */
	p3_a32 swapping; /* an exchange is being done on bytes of a put to the peer */
	p3_a32 reads; /* p3_reads: how this node may fetch what the peer puts, a hint */
	uint32_t pad3;
	uint64_t pad2[11];
};

enum p3_reads { P3_READS_HEAP = 1, P3_READS_CMA = 2 };

/*
 * All that the segment has for one peer, on one page: where nodes share CPUs each page of
 * each peer's segment costs a look into the page tables at every turn.
 */
struct p3_peer_part {
	struct p3_cell req[P3_BASE_CELLS];
	struct p3_peer_entry entry;
	struct p3_cell rsp[P3_BASE_CELLS];
};

/*
 * One long send in progress (put: at the initiator, get: at the target), or the
 * release word of a long get (at the initiator).  The first half of the table is
 * for requests of this node, the second for requests that it serves: so two nodes
 * that get from each other never wait for each other's slots.
 */
#define P3_CHANGES 3u /* that a slot remembers one by one */

/* Bytes of a transfer, counted from its first one; from == to: none. */
struct p3_changed {
	p3_a64 from, to;
};

struct p3_xfer {
	p3_a64 id;       /* p3_xfer_id while the bytes may be read, else 0 */
	p3_a64 addr;     /* in the owner's address space; 0: only through the window */
	p3_a64 again;    /* odd: the bytes change now; it rises by 2 with each change */
	p3_a64 window;   /* offset of the window in the segment, 0 none */
	p3_a64 produced; /* bytes put into the window */
	p3_a64 released; /* long get: the initiator's slot's id when it is done */
	p3_a64 status;   /* of that release: bytes taken, or UINT64_MAX for a failure */
	p3_a64 heap; /* where the bytes lie in the owner's shared heap, plus 1; 0: not */
	/* XFER.6: what changed when again rose from 2k to 2k + 2 is at k % P3_CHANGES;
	 * all changes lie within bounds. */
	struct p3_changed changed[P3_CHANGES];
	struct p3_changed bounds;
};

/* Transfers are named by slot and generation; 0 names none. */
static inline uint64_t p3_xfer_id(uint32_t slot, uint32_t gen)
{
	return (uint64_t)gen << 32 | slot;
}

enum p3_asleep { P3_AWAKE = 0, P3_ASLEEP_HOST = 1, P3_ASLEEP_NIC = 2 };

struct p3_doorbell {
	p3_a32 asleep; /* p3_asleep: whom to wake for a message; or see p3_sleeper */
	p3_a32 pad0[31];
	p3_a32 kick; /* number of kicks: the NIC thread sleeps its tick on it */
	p3_a32 pad1[31];
	p3_a64 lanes[P3_MAX_NODES / 64]; /* cold lanes with news */
	uint8_t pad[P3_PAGE - 256 - P3_MAX_NODES / 8];
};

/*
 * The sleepers of a job: the word asleep of each node, in one file that yod makes,
 * instead of those of the doorbells: who sends to many looks at one page, not at one of
 * each.  As with doorbells all write it, and all of it is a hint.
 */
struct p3_sleeper {
	p3_a32 asleep;
	p3_a32 pad[P3_CELL / 4 - 1];
};

static inline uint64_t p3_sleepers_len(uint32_t nnodes)
{
	uint64_t len = (uint64_t)nnodes * sizeof(struct p3_sleeper);
	return (len + P3_PAGE - 1) / P3_PAGE * P3_PAGE;
}

_Static_assert(sizeof(struct p3_cell) == P3_CELL, "one cell, one line");
_Static_assert(sizeof(struct p3_seg_header) == P3_LINE, "layout is part of the format");
_Static_assert(sizeof(struct p3_peer_entry) == 2 * P3_LINE, "one line for each side");
_Static_assert(offsetof(struct p3_peer_entry, tx_for) == P3_LINE, "one side a line");
_Static_assert(sizeof(struct p3_peer_part) % P3_LINE == 0 &&
		       offsetof(struct p3_peer_part, entry) % P3_LINE == 0,
	"a peer's lines are its own");
_Static_assert(P3_PARTS * sizeof(struct p3_peer_part) <= P3_PAGE, "none lies on two");
_Static_assert(sizeof(struct p3_xfer) == P3_LINE, "layout is part of the format");
_Static_assert(sizeof(struct p3_wait_line) == P3_LINE, "one thread a line");
_Static_assert(sizeof(struct p3_queue_line) == 16, "layout is part of the format");
_Static_assert(sizeof(struct p3_case_line) == P3_CELL, "layout is part of the format");
_Static_assert(P3_G_CARVED < P3_G_MEMBARRIER && P3_G_SPIN < P3_COUNTERS, "all fit");
_Static_assert(sizeof(struct p3_doorbell) == P3_PAGE, "one page");
_Static_assert(sizeof(struct p3_sleeper) == P3_CELL, "one node a line");
_Static_assert(P3_WINDOW_LEN % P3_PAGE == 0, "windows are whole pages");

#define P3_LAYOUT_WORD                                                                   \
	((uint64_t)P3_SEG_VERSION << 56 ^ (uint64_t)sizeof(struct p3_peer_entry) << 44 ^ \
		(uint64_t)sizeof(struct p3_xfer) << 34 ^                                 \
		(uint64_t)P3_XFERS_SHARED << 22 ^ (uint64_t)P3_BASE_CELLS << 16 ^        \
		(uint64_t)P3_COUNTERS << 10 ^ (uint64_t)P3_CHUNK_LEN << 4 ^              \
		(uint64_t)P3_WINDOW_CHUNKS)

struct p3_layout {
	uint32_t nnodes;
	uint32_t nxfers;
	uint32_t req_cells; /* of a full request ring: a power of two */
	uint32_t rsp_cells;
	uint64_t counters_off;
	uint64_t waits_off;
	uint64_t queues_off;
	uint64_t cases_off;
	uint64_t parts_off;
	uint64_t xfers_off;
	uint64_t ctl_len; /* end of the part that is reserved at creation */
	uint64_t seg_len;
};

static inline uint64_t p3_round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static inline uint64_t p3_full_lane_len(const struct p3_layout *l)
{
	return (uint64_t)(l->req_cells + l->rsp_cells) * P3_CELL;
}

/* nnodes 1..P3_MAX_NODES.  The same whatever the page size turns out to be. */
static inline struct p3_layout p3_layout_of(uint32_t nnodes)
{
	struct p3_layout l = {.nnodes = nnodes};
	l.nxfers = 2 * (nnodes + P3_XFERS_SHARED);
	l.req_cells = nnodes <= 16 ? 1024 : 256;
	l.rsp_cells = nnodes <= 16 ? 256 : 64;
	l.counters_off = sizeof(struct p3_seg_header);
	l.waits_off = l.counters_off + P3_COUNTERS * sizeof(p3_a64);
	l.queues_off = l.waits_off + P3_WAITS * sizeof(struct p3_wait_line);
	l.cases_off = l.queues_off + P3_QUEUES_SHOWN * sizeof(struct p3_queue_line);
	l.parts_off =
		p3_round_up(l.cases_off + P3_WHYS * sizeof(struct p3_case_line), P3_PAGE);
	l.xfers_off = l.parts_off + (nnodes + P3_PARTS - 1) / P3_PARTS * P3_PAGE;
	l.ctl_len = p3_round_up(l.xfers_off + l.nxfers * sizeof(struct p3_xfer), P3_PAGE);
	uint64_t arena = nnodes * p3_full_lane_len(&l) + P3_WINDOWS * P3_WINDOW_LEN;
	l.seg_len = p3_round_up(l.ctl_len + arena, P3_HUGE);
	return l;
}

static inline uint64_t p3_part_off(const struct p3_layout *l, uint32_t peer)
{
	return l->parts_off + peer / P3_PARTS * P3_PAGE +
	       peer % P3_PARTS * sizeof(struct p3_peer_part);
}

static inline uint64_t p3_entry_off(const struct p3_layout *l, uint32_t peer)
{
	return p3_part_off(l, peer) + offsetof(struct p3_peer_part, entry);
}

static inline uint64_t p3_base_req_off(const struct p3_layout *l, uint32_t peer)
{
	return p3_part_off(l, peer) + offsetof(struct p3_peer_part, req);
}

static inline uint64_t p3_base_rsp_off(const struct p3_layout *l, uint32_t peer)
{
	return p3_part_off(l, peer) + offsetof(struct p3_peer_part, rsp);
}

#endif
