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
 *           | waits[8]        |  what each host thread waits for
 *           | queues[64]      |  places of event queues in the host segment
 *           | cases[22]       |  the last request of each kind that came to nothing
 *           | endpoints[16]   |  gauges of CCI's endpoints
 *           | polls[16]       |  waits of libraries that poll event queues (poll.h)
 *           +-----------------+
 *           | part[nnodes]    |  for each peer: the base lane to it, 8 request and 8
 *           |                 |  response cells; between them the words for this peer:
 *           |                 |  credits of the lanes from it, offsets of the
 *           |                 |  full lanes to it
 *           +-----------------+
 *           | xfer[nxfers]    |  transfer table: long sends in progress
 *           +-----------------+  ctl_len: reserved at creation, up to here
 *           | arena           |  one bulk window, reserved at creation, too; full lanes
 *           |                 |  and more windows in order of first use, each
 *           |                 |  reserved before it is announced
 *           +-----------------+  seg_len
 *
 * Other processes write only the doorbell page and the job's sleepers, and these hold
 * hints only.  The header has no state; any thread may call its functions.
 */
#ifndef P3_SHM_LAYOUT_H
#define P3_SHM_LAYOUT_H

#include "shm/atomics.h"
#include "shm/poll.h"
#include "shm/why.h"

#include <stddef.h>

#define P3_SEG_MAGIC   0x33736f50u /* "Pos3" */
#define P3_SEG_VERSION 21u
#ifndef P3_MAX_NODES
#define P3_MAX_NODES 1024u
#endif
#define P3_PAGE          4096u
#define P3_HUGE          (2u << 20)

#define P3_BASE_CELLS    8u     /* cells of each of the two rings of a base lane */
#define P3_PARTS         3u     /* parts on a page: no part crosses a page */
#define P3_XFERS_SHARED  128u   /* slots of each half of xfer[] beyond one per peer */
#define P3_CHUNK_LEN     32768u /* bytes of one chunk of a bulk window */
#define P3_WINDOW_CHUNKS 8u
#define P3_WINDOW_LEN    ((uint64_t)P3_CHUNK_LEN * P3_WINDOW_CHUNKS)
#define P3_WINDOWS       4u
#define P3_WAITS         8u  /* host threads that can show what they wait for */
#define P3_QUEUES_SHOWN  64u /* event queues that are shown, by their number */

/* A cell has 64 bytes, moved as words.  The first word of a header cell holds its
 * validity (low half), kind, flags and number of cells. */
struct p3_cell {
	p3_a64 w[8];
};

enum p3_seg_state { P3_SEG_LIVE = 1, P3_SEG_FINISHED = 2 };

struct p3_seg_header {
	uint32_t magic;
	uint32_t ranks;  /* of its job in a domain, 0: not known (nic.h: job_ranks) */
	uint64_t layout; /* P3_LAYOUT_WORD: peers with another one are refused */
	uint64_t incarnation;
	uint64_t seg_len;
	uint32_t nnodes;
	uint32_t node;
	p3_a32 state;    /* p3_seg_state, released last */
	p3_a32 owner;    /* robust futex with the NIC thread's id: the kernel changes it
			  * when the process ends */
	uint64_t self;   /* address of this header in its owner */
	uint32_t fences; /* 1: the node fences heavily before it sleeps (atomics.h) */
	uint8_t pad[68];
};

/*
 * The NIC control block, which tools read; peers read only PASSES (nic/xfer/getput.c).
 * The counters are exact at any time, except DRAINED.  The gauges and DRAINED are copies
 * of the firmware's state at the time NOW_NS; HEARTBEAT counts how often they were
 * copied.  The lease holder copies them
 *
 *	- every P3_MIRROR_PASSES passes,
 *	- before it sleeps again after a sleep that ended without news,
 *	- in the NIC thread, at each tick that runs passes.
 *
 * All words are relaxed, so a tool may read words of two moments (docs/ordering.md).
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
	P3_C_DENIED,       /* drops because of the access control list */
	P3_C_WIRE_RINGS,   /* (wire's thread) sleepers woken because the wire needed a
			  * pass */
	P3_C_WIRE_NAPS,    /* sleeps cut short because no such thread rings */
	P3_C_INTERRUPTS,   /* interrupts of the host's thread (generic mode) */
	P3_C_GENERIC,      /* entries of the generic event queue */
	P3_C_GENERIC_FULL, /* times that it was full */

	P3_G_NOW_NS = 32, /* CLOCK_MONOTONIC */
	P3_G_LEASE,       /* p3_lease_holder, as the holder left it */
	P3_G_MES,         /* objects in use, as the three gauges after it */
	P3_G_MDS,
	P3_G_EQS,
	P3_G_PENDINGS,
	P3_G_PENDINGS_MOST, /* limit of P3_G_PENDINGS */
	P3_G_QUEUED,        /* pendings in send queues */
	P3_G_BLOCKED,       /* peers whose send queues wait for room */
	P3_G_HOT,           /* lanes that are polled */
	P3_G_ALIVE,         /* live peers, this node included */
	P3_G_PULLS,         /* long transfers into this node's memory */
	P3_G_SOURCES,       /* long transfers out of it */
	P3_G_PARKED,        /* host threads asleep */
	P3_G_WAITING,       /* host threads inside a blocking call */
	P3_G_WATCHER,       /* a thread sleeps on the doorbell */
	P3_G_CARVED,        /* bytes of the arena in use */
	P3_G_KEPT,          /* peers whose first request waits for an entry */

	P3_G_SLICE = 50, /* bytes of a cross-memory read, at the last one; 0: none yet */

	P3_G_MEMBARRIER = 51, /* set once */
	P3_G_NIC_ASLEEP,      /* the NIC thread sleeps until a message comes */
	P3_G_NIC_TID,

	P3_G_MODE = 54, /* p3_mode; set once, like all gauges from here on */
	P3_G_PAGE,      /* bytes of a page */
	P3_G_NUMA,      /* NUMA node of the memory, plus 1; 0: not requested */
	P3_G_CPUS,      /* CPUs of the job */
	P3_G_CMA,
	P3_G_BULK,
	P3_G_BASE_LANES,
	P3_G_HOSTS, /* 1: there are nodes on other hosts */
	P3_G_HEAP,  /* bytes of the shared heap */
	P3_G_SPIN,  /* time that idle threads spin, ns */

	/* of CCI; the lease holder copies the gauges with the others */
	P3_C_CCI_SENT = 64,
	P3_C_CCI_RECEIVED,
	P3_C_CCI_DROPS,    /* unreliable messages for which there was no buffer */
	P3_C_CCI_RNR_SENT, /* reliable ones that were refused for that reason */
	P3_C_CCI_RNR_GOT,
	P3_C_CCI_REFUSED, /* messages to no connection */
	P3_C_CCI_RETRIES,
	P3_G_CCI_ENDPOINTS,
	P3_G_CCI_CONNECTIONS,

	/* of the wire between hosts; the lease holder copies the gauges */
	P3_C_FAR_OUT,       /* frames given to the endpoint */
	P3_C_FAR_IN,        /* frames that came with a right sum */
	P3_C_FAR_RESENT,    /* frames sent again */
	P3_C_FAR_BREAKS,    /* broken connections */
	P3_C_FAR_STRANGERS, /* frames of nodes that are not attached */
	P3_G_FAR_LINKS,     /* peers on other hosts */
	P3_G_FAR_HELD,      /* frames that wait for acknowledgements */
	P3_G_FAR_PROMISED,  /* frames that peers may send: their credits */

	P3_C_TRUNCATED, /* requests served with fewer bytes than they asked for */

	/* of the wire between hosts */
	P3_C_FAR_FAILED, /* frames that failed with a broken connection */
	P3_C_FAR_BAD_SUMS,
	P3_C_FAR_DOUBLES,
	P3_C_FAR_GAPS,
	P3_C_FETCHED_BYTES, /* bytes read out of the memory of nodes on other hosts */

	P3_C_KEPT, /* requests that waited for an entry (PtlXPTHold) */
	P3_COUNTERS = 96
};

/*
 * The wait of one host thread: the thread writes it when it begins to sleep, and frees
 * the line when it has its event or result.  A thread that finds no free line shows
 * nothing.  BARRIER is shown for other launchers' jobs only: yod counts its waiting
 * ranks.
 */
enum p3_wait_kind { P3_WAIT_EVENT = 1, P3_WAIT_COMMAND, P3_WAIT_BARRIER };

#define P3_WAIT_HANDLES 8u

struct p3_wait_line {
	p3_a32 tid;  /* 0: free */
	p3_a32 kind; /* p3_wait_kind */
	p3_a64 since_ns;
	p3_a64 deadline_ns;             /* UINT64_MAX: none */
	p3_a64 n;                       /* EVENT: number of queues */
	p3_a64 handle[P3_WAIT_HANDLES]; /* the first of these queues; COMMAND: its
					 * p3_op */
	p3_a64 received;                /* messages received when the wait began */
	uint64_t pad[3];
};

/* The place of an event queue's ring; the lease holder writes it when the queue is made
 * or freed. */
struct p3_queue_line {
	p3_a64 at;  /* offset in the host segment, plus 1; 0: no queue, or elsewhere */
	p3_a64 how; /* generation:records */
};

/* An endpoint of CCI: gauges, which the lease holder copies with the others. */
struct p3_cci_line {
	p3_a64 number;      /* of the endpoint; 0: none */
	p3_a64 buffers;     /* receive buffers in use : receive buffers */
	p3_a64 unread;      /* events that the program has not taken */
	p3_a64 full_since;  /* since when all buffers are in use; 0: they are not */
	p3_a64 conns;       /* connections : connect requests that are not decided */
	p3_a64 asked_since; /* since when there are such requests; 0: there are none */
	uint64_t pad[2];
};

#define P3_CCI_SHOWN 16u /* endpoints that have a line */
#define P3_POLLS     16u /* event queues that have a struct p3_poll_line */

/*
 * The last request that came to nothing for one reason: the words of a struct p3_case.
 * The lease holder writes them one by one, so a tool may read words of two cases.
 */
struct p3_case_line {
	p3_a64 w[P3_CASE_WORDS];
};

/*
 * The words from this node to one peer.  Line one belongs to the lane peer -> this node
 * (this node consumes) and changes all the time; line two to the lane this node ->
 * peer.  The peer looks at cold there after every message, so cold must not share a line
 * with the credits: each change of a credit would cost the peer a cache miss.
 */
struct p3_peer_entry {
	/* consumer's side */
	p3_a64 rx_for;        /* incarnation of the peer that line one is about */
	p3_a64 req_credit[2]; /* cells taken, of the base ring and of the full ring */
	p3_a64 rsp_credit[2];
	p3_a64 bulk_slot; /* transfer (p3_xfer_id) that is read through a window, or 0 */
	p3_a64 bulk_want; /* bytes of it that will be read */
	p3_a64 bulk_read; /* bytes of it read so far */
	p3_a32 reading;   /* number of the peer's puts being read from its memory:
			   * XFER.5 */
	uint32_t pad0;
	p3_a64 bulk_again; /* value of again that bulk_read refers to: XFER.6 */
	/* gauges of this node's sends to the peer, for tools: see p3_counter */
	p3_a64 shown_ops;   /* requests sent and not answered : requests in the send
			     * queue */
	p3_a64 shown_since; /* since when the peer has taken nothing; 0: nothing waits */
	/* The peer's requests to this node that came to nothing or to no ACK, for
	 * tools: the last p3_why : their number. */
	p3_a64 shown_drops;
	/* For a peer on another host: the last time (CLOCK_MONOTONIC, ns) that its host
	 * was heard, or 0.  The domain's thread writes it, for tools. */
	p3_a64 shown_heard; /* P3_HEARD_UNKNOWN with PTL3_FAR_TIMEOUT=never */
	p3_a64 slice_of;    /* CCI: the transfer from the peer's memory of which this node
			  * reads a slice now, or 0: XFER.7 */
	p3_a64 pulled;      /* CCI: bytes that this node has read for RMA of the peer */
	/* producer's side: words that seldom change but are looked at all the time */
	p3_a64 tx_for;   /* incarnation of the peer that line two is for */
	p3_a64 full_req; /* offset of the full request ring, 0 none */
	p3_a64 full_rsp;
	p3_a32 cold;     /* this node does not poll the peer's lane: the peer rings its
			  * doorbell */
	p3_a32 swapping; /* an exchange is being done on bytes of a put to the peer */
	p3_a32 reads;    /* p3_reads: ways in which this node may fetch the peer's puts, a
		       * hint */
	uint32_t pad3;
	p3_a64 slots_key; /* key by which a peer on another host may fetch the slots of
			   * the transfer table, 0: none */
	/* The peer's first request waits for an entry, for tools: its pid : its portal
	 * index, plus 1; or 0. */
	p3_a64 shown_kept;
	uint64_t pad2[9];
};

#define P3_HEARD_UNKNOWN UINT64_C(1)

enum p3_reads { P3_READS_HEAP = 1, P3_READS_CMA = 2 };

/*
 * All that the segment has for one peer, on one page: where nodes share CPUs, each page
 * of each peer's segment costs a look into the page tables at every turn.
 */
struct p3_peer_part {
	struct p3_cell req[P3_BASE_CELLS];
	struct p3_peer_entry entry;
	struct p3_cell rsp[P3_BASE_CELLS];
};

/*
 * One long send in progress (put: at the initiator, get: at the target), or the release
 * word of a long get (at the initiator).  The first half of the table is for requests
 * of this node, the second for requests that it serves, so that two nodes that get from
 * each other never wait for each other's slots.
 */
#define P3_CHANGES 3u /* changes that a slot remembers one by one */

/* A range of a transfer's bytes, counted from its first one; from == to: none. */
struct p3_changed {
	p3_a64 from, to;
};

struct p3_xfer {
	p3_a64 id;       /* p3_xfer_id while the bytes may be read, else 0 */
	p3_a64 addr;     /* address in the owner; 0: to be read through the window only */
	p3_a64 again;    /* odd: the bytes change now; it rises by 2 with each change */
	p3_a64 window;   /* offset of the window in the segment, 0 none */
	p3_a64 produced; /* bytes put into the window */
	p3_a64 released; /* long get: id of the initiator's slot when the get is done */
	p3_a64 status;   /* status of that get: bytes taken, or UINT64_MAX for a
			  * failure */
	p3_a64 heap;     /* offset of the bytes in the owner's shared heap, plus 1; 0: not
		      * there.  To a peer on another host: the key by which it may fetch
		      * the bytes */
	/* XFER.6: changed[k % P3_CHANGES] is the range that changed while again rose
	 * from 2k to 2k + 2; all changes lie within bounds. */
	struct p3_changed changed[P3_CHANGES];
	struct p3_changed bounds;
};

/* Name a transfer by its slot and generation; 0 names none. */
static inline uint64_t p3_xfer_id(uint32_t slot, uint32_t gen)
{
	return (uint64_t)gen << 32 | slot;
}

enum p3_asleep { P3_AWAKE = 0, P3_ASLEEP_HOST = 1, P3_ASLEEP_NIC = 2 };

struct p3_doorbell {
	p3_a32 asleep; /* p3_asleep: which thread to wake for a message; or see
		        * p3_sleeper */
	p3_a32 pad0[31];
	p3_a32 kick; /* number of kicks; the NIC thread sleeps on this word between
		      * ticks */
	p3_a32 pad1[31];
	p3_a64 lanes[P3_MAX_NODES / 64]; /* bits of cold lanes with news */
	uint8_t pad[P3_PAGE - 256 - P3_MAX_NODES / 8];
};

/*
 * One node's entry among the sleepers of a job.  yod makes one file with the word
 * asleep of each node, which is used instead of those of the doorbells: a node that
 * sends to many others looks at one page, not at a page of each.  All nodes write the
 * file, so its words are hints.
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
_Static_assert(sizeof(struct p3_poll_line) == P3_LINE, "layout is part of the format");
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
	uint32_t req_cells; /* cells of a full request ring, a power of two */
	uint32_t rsp_cells;
	uint64_t counters_off;
	uint64_t waits_off;
	uint64_t queues_off;
	uint64_t cases_off;
	uint64_t cci_off; /* lines of CCI's endpoints */
	uint64_t polls_off;
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

/* Compute the layout for 1..P3_MAX_NODES nodes.  It does not depend on the page size. */
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
	l.cci_off = l.cases_off + P3_WHYS * sizeof(struct p3_case_line);
	l.polls_off = l.cci_off + P3_CCI_SHOWN * sizeof(struct p3_cci_line);
	l.parts_off = p3_round_up(
		l.polls_off + P3_POLLS * sizeof(struct p3_poll_line), P3_PAGE);
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
