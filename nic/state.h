/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state - all else that a node's firmware knows: operations and transfers under way, its
 * peers, and the NIC itself.  Part of fw.h, by which nic/ includes it.
 */
#ifndef P3_NIC_STATE_H
#define P3_NIC_STATE_H

#include "nic/objects.h"
#include "nic/wire.h"
#include "shm/lane.h"
#include "shm/lease.h"
#include "shm/mailbox.h"
#include "shm/park.h"

#include <linux/futex.h>
#include <pthread.h>

/* ---- operations under way ---- */

enum p3_req_kind {
	P3_REQ_PAD = P3_KIND_PAD,
	P3_REQ_SWITCH, /* go on in the full ring */
	P3_REQ_PUT,
	P3_REQ_GET,
	P3_REQ_GETPUT, /* never long: PTL_NI limit max_getput_md fits every lane */
};

/*
 * One operation on one descriptor, from START to END.  The descriptor may be updated
 * meanwhile: what is here stays as it was.
 */
struct p3_span {
	struct p3_md *md; /* cannot go meanwhile; NULL: its interface has closed */
	struct p3_sink sink;
	struct p3_region region;
	uint64_t offset; /* of the bytes in the region */
	bool owed;       /* START or END to come: counted in its queue's owed */
	struct p3_event_words rec;
};

enum p3_rsp_kind {
	P3_RSP_PAD = P3_KIND_PAD,
	P3_RSP_SWITCH,
	P3_RSP_NONE,       /* dropped: the reservation comes back, no event */
	P3_RSP_ACK,        /* eager put accepted */
	P3_RSP_DONE,       /* long put read: SEND_END, and ACK if flagged */
	P3_RSP_REPLY,      /* data inside */
	P3_RSP_REPLY_LONG, /* data to be pulled */
};

/*
 * Requests: word 1 rsp cells:ac:pt:target pid, 2 eager length:pending, 3 match bits,
 * 4 hdr_data, 5 remote offset, 6 and 7 up to 16 bytes of data, or length and transfer.
 * Responses: word 1 status:pending, 2 manipulated length, 3.. up to 40 bytes of data, or
 * transfer, address and place in the heap.  Longer data go on in the cells behind the
 * header.
 */
static inline uint32_t p3_request_pid(uint64_t w1)
{
	return (uint32_t)w1 & 0xffff;
}

static inline uint32_t p3_request_portal(uint64_t w1)
{
	return (uint32_t)(w1 >> 16) & 0xffff;
}

#define P3_REQ_INLINE 16u
#define P3_RSP_INLINE 40u

static inline uint32_t p3_request_cells(uint64_t len)
{
	return 1 + (uint32_t)((len + 63 - P3_REQ_INLINE) / 64);
}

static inline uint32_t p3_reply_cells(uint64_t len)
{
	return 1 + (uint32_t)((len + 63 - P3_RSP_INLINE) / 64);
}

enum {
	P3_F_ACK = 1,
	P3_F_LONG = 2,
	P3_F_NI1 = 4,
	P3_F_HEAP = 8,
	P3_F_ADDR = 16,
	P3_F_COPIED = 32
};

/*
 * P3_F_COPIED: the bytes of a long put are a copy (copy.c), so its initiator has
 * SEND_END.  What it sends next is taken when they have been read: short puts end in
 * order whether they fit the lane or not.
 *
 * The header of a long put also says where its bytes lie, in the heap (P3_F_HEAP) or in
 * memory (P3_F_ADDR), so that the target need not wait for the slot's line: word 2 has
 * the low half, word 6 the rest, above the length.  With neither flag only the slot
 * knows: they lie here and there, or the place or the length has more bits.
 */
#define P3_PLACE_BITS 48

static inline uint64_t p3_place_of(uint64_t w2, uint64_t w6)
{
	return w6 >> P3_PLACE_BITS << 32 | w2 >> 32;
}

static inline uint64_t p3_long_length(uint32_t flags, uint64_t w6)
{
	return flags & (P3_F_HEAP | P3_F_ADDR)
		       ? w6 << (64 - P3_PLACE_BITS) >> (64 - P3_PLACE_BITS)
		       : w6;
}

enum p3_pending_state {
	P3_PEND_QUEUED, /* in the send queue of its target */
	P3_PEND_SENT,   /* waits for its response */
	P3_PEND_PULLING /* get: data are being read */
};

/* TX pending: one put, get or getput of this node that is not over. */
struct p3_pending {
	struct p3_object o;
	struct p3_link link; /* peer's queue, then peer's outstanding */
	struct p3_peer *peer;
	struct p3_md *md; /* that the ACK or the REPLY is for */
	uint32_t md_gen;
	uint8_t state;
	uint8_t kind; /* p3_req_kind */
	uint8_t ni;
	bool is_long;
	union {
		uint32_t rsp_cells; /* sent: reserved in the response ring */
		uint32_t question;  /* in nobody's queue: whose answer decides */
	};
	struct p3_xfer_slot *xfer;
	uint64_t held_ns;    /* in absent's queue: since then */
	struct p3_move move; /* offset: in md, where a reply goes */
	struct p3_span send; /* put, getput */
	char *copy; /* where send's bytes are, not NULL: its SEND_END was posted */
	struct p3_topic topic;
	uint32_t command; /* its record there, plus 1 */
};

/* What requests call a pending: never 0. */
#define P3_PENDING_INDEX (P3_TABLE_CHUNKS * P3_TABLE_EACH - 1)

static inline uint32_t p3_pending_name(const struct p3_pending *t)
{
	uint32_t gen = p3_get(&t->o.gen) >> 1;
	return (gen | 1u << 13) << 18 | t->o.index;
}

enum p3_mover { P3_MOVE_START, P3_MOVE_BULK, P3_MOVE_CMA, P3_MOVE_DIRECT };

#define P3_EDGE 64u /* bytes; max_getput_md is not more */

/* Where the bytes that a transfer has written end, from the front or from the back, and
 * what lay in the last P3_EDGE of them before: byte i at i % P3_EDGE. */
struct p3_edge {
	uint64_t at;
	uint64_t known;       /* under is about this place */
	struct p3_range lent; /* exchanged with what is there now */
	unsigned char under[P3_EDGE];
};

/* One long transfer into this process's memory: its firmware pulls. */
struct p3_pull {
	struct p3_link link; /* n->pulls */
	struct p3_peer *peer;
	struct p3_span span; /* where the bytes go */
	uint64_t xfer_id;    /* at the source */
	uint64_t addr;       /* there, 0: only through a window */
	uint64_t heap;       /* in the source's shared heap, plus 1; 0: not there */
	uint64_t length;     /* to read */
	uint64_t done;       /* of it, from the front */
	uint64_t end;        /* behind this all has been read, too */
	uint64_t again;      /* of the source, as of when the read bytes count: XFER.6 */
	uint64_t moved_ns;   /* when something moved last */
	uint64_t kick_ns;
	uint64_t began_ns; /* 0: not timed */
	enum p3_mover mover;
	enum p3_mover began; /* with, when it is timed */
	bool ack;
	bool announced; /* counted in what we tell the peer that we read */
	bool may_read;  /* and no exchange was under way there: see XFER.5 */
	bool dedicated; /* the peer's own one, not from the pool */
	bool first;     /* the peer's next request waits for its end */
	bool mixed;     /* another pull may write the same bytes */
	bool in_use;
	struct p3_pending *get; /* of this node, or NULL: a put into this node */
	uint32_t peer_pending;  /* put: the initiator's pending id */
	struct p3_topic topic;
	/* Of all that was written, counted or not, and for exchanges: see "exchanges of
	 * bytes that come" in xfer.c. */
	uint64_t kept, kept_end;
	/* The hulls of those changes of the source that came after all of their bytes had
	 * been read. */
	struct p3_range old_front, old_back;
	struct p3_edge front, back;
};

/* What transfers of similar length took lately, 0: not known. */
struct p3_pace {
	uint64_t bulk_ns, cma_ns;
	uint32_t turns;
	bool bulk; /* this run's mover */
};

/* Private half of a slot of the transfer table. */
struct p3_xfer_slot {
	struct p3_link link;        /* n->sources while id is published */
	struct p3_link served_link; /* while serving: its peer's serving */
	struct p3_xfer *pub;        /* own published half */
	struct p3_topic topic;
	uint32_t slot;
	uint32_t looks; /* of sees_ours() */
	uint32_t gen;
	struct p3_peer *peer;
	bool in_use;
	bool releasing;         /* get released: waits for the target to notice */
	bool serving;           /* a get of the peer: span has an END to come */
	bool swapped;           /* an exchange on its bytes is being done, */
	bool agreed;            /* the reader has said where it goes on in the window */
	struct p3_range change; /* and on these of them */
	uint64_t peer_id; /* serving a get: the initiator's slot; own get: the target's */
	struct p3_span span; /* what may be read: region, offset */
	uint64_t length;
	uint32_t window;  /* number, P3_NONE, */
	uint64_t lent_ns; /* and when it was lent */
	uint64_t produced;
	uint64_t again;
	struct p3_pull pull; /* own get */
};

/* ---- peers ---- */

/* EXPECTED: it lives, but is not mapped here yet; what is sent to it waits. */
enum p3_peer_state { P3_ABSENT, P3_LIVE, P3_GONE, P3_DEAD, P3_EXPECTED };

/* With many peers each message finds its peer's members in a farther cache, line by line:
 * what a lane's poll and a message touch lies in the first three. */
struct p3_peer {
	/* each look at the lane, each request taken */
	_Alignas(P3_LINE) struct p3_ring_rx req_in;
	uint32_t rsp_used; /* cells of its response ring that our requests may need */
	uint32_t rsp_cap;
	uint8_t state;
	bool ready; /* its lane is for this incarnation of ours */
	bool acked; /* it has set our credits */
	union {
		struct {
			bool bad : 1;    /* what it wrote makes no sense: it is ignored */
			bool served : 1; /* its serving is not empty */
			bool behind : 1; /* its requests wait for a pull of a copy, */
			bool going : 1;  /* but it is gone: what it left is taken */
		};
		uint8_t odd; /* not 0: a request of its is not taken as usual */
	};
	bool touched;  /* in n->touched */
	bool hot;      /* in n->hot */
	bool req_full; /* we produce in the full ring */
	uint8_t deep;  /* how many messages a visit takes: see pass.c */
	/* who it is, to whom requests are */
	uint32_t nid;
	uint32_t pid[P3_JOB_NIS];
	uint32_t uid, jid;
	uint32_t quiet; /* looks of p3_fw_cool without news */
	uint32_t nsent, nanswered;
	struct p3_link queue;               /* pendings not sent */
	struct p3_peer_entry *mine;         /* what this node says to the peer */
	const struct p3_peer_entry *theirs; /* and the peer to this node, */
	/* each request sent */
	struct p3_ring_tx req_out;
	const p3_a32 *cold; /* that it does not poll us among them */
	p3_a32 *asleep;     /* the peer's word */
	/* all else */
	struct p3_ring_rx rsp_in;
	struct p3_ring_tx rsp_out;
	struct p3_doorbell *doorbell; /* the peer's */
	struct p3_nic *nic;
	uint32_t index;
	uint32_t os_pid;
	bool cma_off;      /* cross-memory reads do not work here */
	bool rsp_full;     /* as req_full */
	bool blocked;      /* in n->blocked: its send queue waits for room */
	uint32_t waits;    /* the message that the trace has as waiting in its lane */
	uint32_t told;     /* which p3_why the log has of its requests, a bit each, */
	uint32_t told_own; /* and of this node's requests to it */
	uint64_t full_off; /* of the full lane in own arena, 0 not carved */
	uint64_t incarnation;
	uint64_t kick_ns, kick_wait_ns;
	uint64_t passes, passed_ns; /* of its firmware, and when they were fewer */
	uint64_t swap_pos, swap_ns; /* its exchange that waits, and since when; 0: none */
	uint64_t proof; /* where in its memory its incarnation lies: see xfer.c */
	uint32_t owner; /* its header's, 0: the kernel does not tell its end */
	uint64_t window_at[P3_WINDOWS]; /* windows of its that there is memory behind */
	uint32_t nwindows;
	bool proven;      /* os_pid is its process, until the owner's word changes */
	char *base;       /* its published segment, read-only */
	const void *page; /* of it, beside those of others (shm/seg.h), or NULL */
	struct p3_heap_view heap;   /* its shared heap, read-only */
	struct p3_link outstanding; /* pendings sent */
	struct p3_link blocked_link;
	struct p3_pull *bulk; /* the one of this pair that uses a window */
	struct p3_pull own_pull;
	uint32_t nqueued;       /* pendings in queue, */
	uint32_t nout;          /* and in outstanding, or pulling */
	uint64_t taken;         /* what the peer had taken when that was mirrored last */
	uint32_t npulls;        /* from the shared pool */
	uint32_t copied;        /* bytes of copies that are for it */
	uint32_t nreading;      /* pulls announced */
	uint32_t nxfer[2];      /* of the shared slots of each class */
	const char *image;      /* base as the wire shows it */
	uint64_t seg_len;       /* bytes at base */
	uint64_t ahead;         /* of req_in: up to here requests were looked at ahead */
	struct p3_link serving; /* its long gets whose END is to come, oldest first */
};

_Static_assert(offsetof(struct p3_peer, nid) == P3_CELL &&
		       offsetof(struct p3_peer, req_out) == 2 * P3_CELL &&
		       offsetof(struct p3_peer, rsp_in) == 3 * P3_CELL,
	"a message touches three lines of its peer's");

/* Buckets that requests will be looked up in: see ahead.c. */
#define P3_SOON   16u
#define P3_STAGES 4u

struct p3_soon {
	uint32_t n;
	const struct p3_bucket *bucket[P3_SOON];
};

#define P3_TOUCHED 16u
#define P3_ALL_HOT 64u /* up to so many lanes it is as good to poll them all */
#define P3_PULLS   128u

struct p3_id {
	uint64_t key; /* pid and nid */
	struct p3_peer *peer;
};

struct p3_ids {
	uint32_t mask;
	struct p3_id at[];
};

struct p3_host; /* layout of the host segment, host.c */

struct p3_nic {
	/* (any) */
	struct p3_lease lease;
	_Alignas(P3_LINE) p3_a32 parked; /* host threads asleep or about to be */
	p3_a32 waiting;                  /* host threads inside a blocking call */
	p3_a32 closing;
	p3_a32 news;    /* private futex: bumped for parked threads */
	p3_a64 drained; /* passes that found nothing left */
	p3_a32 nic_asleep;
	p3_a32 alive;    /* live peers, this node included */
	p3_a32 watcher;  /* a host thread sleeps on the doorbell */
	p3_a32 emptied;  /* nodes share CPUs, and the last pass left nothing, it seems */
	p3_a32 detached; /* mailbox slots that nobody waits for, */
	p3_a32 hungry;   /* and the first of those whose command waits for memory */
	struct p3_nic_conf conf;
	struct p3_layout layout;
	struct p3_seg published, doorbell_seg, host_seg[2];
	struct p3_doorbell *doorbell;
	p3_a32 *asleep; /* p3_asleep: whom peers wake here */
	struct p3_mailbox *mailbox;
	struct p3_idle_policy idle;
	uint64_t kick_after_ns;
	uint64_t tick_ns;
	bool may_rest; /* dedicated by plan, not by order */
	bool sparing;  /* full rings of all pairs on a CPU are more than it caches */
	bool tight;    /* fewer CPUs than host and NIC threads */
	bool crowded;  /* more nodes than CPUs: a peer has a CPU now and then only, */
	bool dense;    /* a quarter of the time or less */
	pthread_t thread;
	struct robust_list_head last_will; /* of the thread: the header's owner */
	struct robust_list heir;
	p3_a32 stop;
	struct p3_nic *next_kept;
	p3_a64 life; /* goes up when the host segments go: what is from before is void */
	pthread_mutex_t
		arena_lock; /* guards life, the host segments, and the three below */
	uint64_t host_used[2];
	struct p3_eq *unburied; /* freed queues whose places are not free yet */
	/* firmware */
	_Alignas(P3_LINE) p3_a64 *count; /* own published counters */
	struct p3_peer *peer;            /* nnodes */
	struct p3_trace_record *traced;  /* (any) the firmware's records; NULL: off */
	uint32_t first_nid, nids;        /* of peer[]; nids 0: ids tell */
	struct p3_ids *ids;              /* NULL: first_nid does */
	struct p3_peer *touched[P3_TOUCHED];
	uint32_t ntouched;
	uint32_t unlooked; /* shares since the last look: p3_fw_share() */
	bool light;        /* all nodes fence heavily: a message need not */
	bool posted;       /* an event or result was made since the last look */
	bool worked;       /* this pass found something */
	bool some_bad;
	uint32_t msgs;  /* taken in this pass, */
	uint32_t most;  /* and so many at most */
	uint64_t bytes; /* moved in this pass */
	struct p3_peer **hot;
	uint32_t nhot;
	uint32_t few;        /* up to so many of them are polled as few are */
	p3_a32 never_cold;   /* 0: of peers who poll all their lanes always, */
	p3_a32 never_asleep; /* and of nobody */
	uint32_t turn;
	uint32_t nlong; /* match lists of P3_LONG entries and more */
	uint32_t next_link;
	struct p3_link blocked;
	struct p3_link pulls;
	struct p3_link sources;
	const struct p3_wire *wire; /* NULL: shared memory */
	struct p3_peer *swapper;    /* whose getput waits for transfers to end */
	struct p3_ni ni[P3_JOB_NIS];
	struct p3_table table[P3_TABLES];
	/* all else */
	uint32_t nsoon;
	struct p3_soon soon[P3_STAGES];
	struct p3_evq_ring *free_rings[32]; /* heads, by log2 of their size; arena_lock */
	struct p3_evq_ring *new_heads;      /* of no size yet; arena_lock */
	uint32_t heads_made, heads_left;    /* the last time, and of these; arena_lock */
	_Atomic(struct p3_extent *)
		free_extents[2]; /* of the host segments; arena_lock */
	struct p3_xfer_slot *xfer;
	struct p3_pull *pull; /* the shared pool */
	struct p3_copies *copies;
	uint64_t arena_used;
	uint64_t window_off[P3_WINDOWS];
	uint64_t window_ns;             /* before that no window is taken back */
	uint32_t window_free;           /* bits */
	uint32_t windows;               /* carved */
	struct p3_pace pace[64];        /* by log2 of the length */
	uint64_t slice;                 /* bytes of one cross-memory read */
	struct p3_bounds swapper_wants; /* no other transfer begins there meanwhile, */
	uint64_t swapper_until;         /* until then; without one none is named before */
	struct p3_bounds pulled;        /* all bytes that pulls write lie in there */
	void *wire_state;
	p3_a64 wire_count[P3_W_COUNTERS]; /* (any) */
	p3_a32 settle;                    /* (any) number of calls of p3_nic_settle, */
	p3_a32 settled;                   /* (any) and which of them the wire has done */
	p3_a32 leaving; /* (any) copies that have not left this node: LEAVE.1 */
	struct p3_trace trace;
	struct p3_peer nobody; /* ABSENT; its queue: until it is told who is there */
	struct p3_peer absent; /* ABSENT; its queue: until their targets join (nic.h) */
	uint32_t held_most;    /* so many requests at most */
	struct p3_listed *listed;         /* ids of processes that may come, or NULL */
	uint64_t over[P3_MAX_NODES / 64]; /* domain: ranks of the job that have ended */
	uint32_t asked;                   /* the last question (nic.h), */
	uint32_t told;                    /* and the last one that was answered */
	uint64_t settling_until; /* requests may wait until then for an entry (rx.c) */
};

/* Where nodes share CPUs each page costs a look into the page tables at every turn. */
_Static_assert(offsetof(struct p3_nic, table[P3_T_EQ].chunk[1]) <= P3_PAGE,
	"a message touches one page of its NIC's");

#endif
