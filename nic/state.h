/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state - the rest of the firmware's data: operations and transfers under way, peers,
 * the NIC
 *
 * Only the lease holder touches this data,
 * except the members that are marked (any), or guarded by a lock that their comment
 * names.
 */
#ifndef P3_NIC_STATE_H
#define P3_NIC_STATE_H

#include "nic/obj/objects.h"
#include "nic/proto/format.h"
#include "nic/wire/wire.h"
#include "shm/lane.h"
#include "shm/lease.h"
#include "shm/mailbox.h"
#include "shm/park.h"

#include <linux/futex.h>
#include <pthread.h>

/* ---- operations under way ---- */

/*
 * One operation on one descriptor, from START to END.  The descriptor may be updated
 * meanwhile; the copies here keep their values.
 */
struct p3_span {
	struct p3_md *md; /* cannot be freed meanwhile; NULL: no END is to come */
	struct p3_sink sink;
	struct p3_region region;
	uint64_t offset; /* offset of the bytes in the region */
	bool owed;       /* an event is to come, and counted in its queue's owed */
	struct p3_event_words rec;
};

enum p3_pending_state {
	P3_PEND_QUEUED, /* in the send queue of its target */
	P3_PEND_SENT,   /* sent, waits for its response */
	P3_PEND_PULLING /* get: the data are being read */
};

/* One put, get or getput of this node that has not ended. */
struct p3_pending {
	struct p3_object o;
	struct p3_link link; /* in its peer's queue, then in its peer's outstanding */
	struct p3_peer *peer;
	struct p3_md *md; /* descriptor of the ACK or the REPLY */
	uint32_t md_gen;
	uint8_t state;
	uint8_t kind; /* p3_req_kind */
	uint8_t ni;
	bool is_long;
	union {
		uint32_t rsp_cells; /* sent: cells reserved in the response ring */
		uint32_t question;  /* its target is unknown: the question that decides */
	};
	struct p3_xfer_slot *xfer;
	uint64_t held_ns;    /* in absent's queue: start of the wait */
	struct p3_move move; /* offset: the reply's place in md */
	struct p3_span send; /* put, getput */
	char *copy;          /* place of send's bytes; not NULL: SEND_END was posted */
	struct p3_topic topic;
	uint32_t command; /* its trace record, plus 1 */
};

/* Return the name of a pending in requests, never 0. */
#define P3_PENDING_INDEX (P3_TABLE_CHUNKS * P3_TABLE_EACH - 1)

static inline uint32_t p3_pending_name(const struct p3_pending *t)
{
	uint32_t gen = p3_get(&t->o.gen) >> 1;
	return (gen | 1u << 13) << 18 | t->o.index;
}

enum p3_mover { P3_MOVE_START, P3_MOVE_BULK, P3_MOVE_CMA, P3_MOVE_DIRECT };

#define P3_EDGE 64u /* bytes; max_getput_md is not larger */

/* One end of the bytes that a transfer has written, from the front or from the back,
 * and the former content of the last P3_EDGE of them: byte i is at i % P3_EDGE. */
struct p3_edge {
	uint64_t at;
	uint64_t known;       /* the value of at that under belongs to */
	struct p3_range lent; /* bytes exchanged with the present ones there */
	unsigned char under[P3_EDGE];
};

/* One long transfer into this process's memory, which this firmware pulls. */
struct p3_pull {
	struct p3_link link; /* in n->pulls */
	struct p3_peer *peer;
	struct p3_span span; /* destination of the bytes */
	uint64_t xfer_id;    /* at the source */
	uint64_t addr;       /* address at the source; 0: readable through a window
			      * only */
	uint64_t heap;       /* offset in the source's shared heap, plus 1; 0: not
			      * there */
	uint64_t length;     /* bytes to read */
	uint64_t done;       /* bytes read from the front */
	uint64_t end;        /* all behind this has been read, too */
	uint64_t again;      /* the source's again that the read bytes belong to:
			      * XFER.6 */
	uint64_t moved_ns;   /* time of the last movement */
	uint64_t kick_ns;
	uint64_t began_ns; /* 0: the transfer is not timed */
	enum p3_mover mover;
	enum p3_mover began; /* mover at the start of the timing */
	bool ack;
	bool announced; /* counted in the number of reads that the peer is told */
	bool may_read;  /* and no exchange was under way at the source: see XFER.5 */
	bool dedicated; /* the peer's own pull, not one of the pool */
	bool first;     /* the peer's next request waits for the pull's end */
	bool mixed;     /* another pull may write the same bytes */
	bool in_use;
	struct p3_pending *get; /* this node's get, or NULL: a put into this node */
	uint32_t peer_pending;  /* put: name of the initiator's pending */
	struct p3_topic topic;
	/* All written bytes, counted or not, for exchanges: see edge.c. */
	uint64_t kept, kept_end;
	/* Hulls of the source's changes that came after all of their bytes had been
	 * read. */
	struct p3_range old_front, old_back;
	struct p3_edge front, back;
};

/* Recent durations of transfers of similar length, 0: unknown. */
struct p3_pace {
	uint64_t bulk_ns, cma_ns;
	uint32_t turns;
	bool bulk; /* mover of this run */
};

/* The private half of a slot of the transfer table. */
struct p3_xfer_slot {
	struct p3_link link;        /* in n->sources while id is published */
	struct p3_link served_link; /* while serving: in its peer's serving */
	struct p3_xfer *pub;        /* own published half */
	struct p3_topic topic;
	uint32_t slot;
	uint32_t looks; /* see sees_ours() */
	uint32_t gen;
	struct p3_peer *peer;
	bool in_use;
	bool releasing;         /* get released: waits until the target notices */
	bool serving;           /* serves a get of the peer: span has an END to come */
	bool swapped;           /* an exchange on its bytes is being done, */
	bool agreed;            /* the reader has told where it continues in the window */
	struct p3_range change; /* and these are its bytes */
	uint64_t peer_id; /* serving a get: the initiator's slot; own get: the target's */
	struct p3_span span; /* readable bytes: region, offset */
	uint64_t length;
	uint32_t window;  /* number of its window, or P3_NONE */
	uint64_t lent_ns; /* time at which the window was lent */
	uint64_t produced;
	uint64_t again;
	struct p3_pull pull; /* the pull of an own get */
};

/* ---- peers ---- */

/* EXPECTED: it lives, but is not mapped here yet, for want of room, or because neither
 * node has sent to the other (apart); messages to it wait. */
enum p3_peer_state { P3_ABSENT, P3_LIVE, P3_GONE, P3_DEAD, P3_EXPECTED };

/* With many peers each message finds its peer's members in a farther cache, line by
 * line: the first three lines hold all that a lane's poll and a message touch. */
struct p3_peer {
	/* first line: used by each look at the lane and each request taken */
	_Alignas(P3_LINE) struct p3_ring_rx req_in;
	uint32_t rsp_used; /* cells of its response ring that may be needed for this
			    * node's requests */
	uint32_t rsp_cap;
	uint8_t state;
	bool ready; /* its lane is for this node's present incarnation */
	bool acked; /* it has set this node's credits */
	union {
		struct {
			bool bad : 1;    /* it wrote nonsense: it is ignored */
			bool served : 1; /* its list "serving" is not empty */
			bool behind : 1; /* its requests wait for a pull of a copy, */
			bool going : 1;  /* it is being lost: its last requests are
					  * taken at once */
		};
		uint8_t odd; /* not 0: its next request needs special treatment */
	};
	bool touched;  /* in n->touched */
	bool hot;      /* in n->hot */
	bool req_full; /* this node produces in the full ring */
	uint8_t deep;  /* messages that a visit takes: see pass.c */
	/* second line: identity of the peer, and requests to it */
	uint32_t nid;
	uint32_t pid[P3_JOB_NIS];
	uint32_t uid, jid;
	uint32_t quiet; /* looks of p3_fw_cool without news */
	uint32_t nsent, nanswered;
	struct p3_link queue;               /* pendings not sent yet */
	struct p3_peer_entry *mine;         /* this node's words to the peer */
	const struct p3_peer_entry *theirs; /* the peer's words to this node */
	/* third line: used by each request sent */
	struct p3_ring_tx req_out;
	const p3_a32 *cold; /* the word in theirs that says that it does not poll this
			     * node's lane */
	p3_a32 *asleep;     /* the peer's word */
	/* the rest */
	struct p3_ring_rx rsp_in;
	struct p3_ring_tx rsp_out;
	struct p3_doorbell *doorbell; /* the peer's */
	struct p3_nic *nic;
	const struct p3_wire *wire; /* never changes while the NIC runs */
	uint32_t index;
	uint32_t os_pid;
	bool cma_off;      /* cross-memory reads from it do not work */
	bool rsp_full;     /* as req_full, for responses */
	bool blocked;      /* in n->blocked: its send queue waits for room */
	uint32_t waits;    /* message that the trace shows as waiting in its lane */
	uint32_t told;     /* a bit for each p3_why that was logged about its requests */
	uint32_t told_own; /* and about this node's requests to it */
	uint64_t full_off; /* offset of the full lane in the own arena, 0: not carved */
	uint64_t incarnation;
	uint64_t kick_ns, kick_wait_ns;
	uint64_t passes, passed_ns; /* passes of its firmware when last looked at, and
				     * the time */
	uint64_t swap_pos, swap_ns; /* its waiting exchange, and the start of the wait;
				     * 0: none */
	uint64_t proof; /* address of its incarnation in its memory: see cma.c */
	uint32_t owner; /* owner of its header; 0: the kernel does not signal its end */
	uint64_t window_at[P3_WINDOWS]; /* its windows that are known to have memory */
	uint32_t nwindows;
	bool proven;      /* os_pid is its process until the owner word changes */
	char *base;       /* its published segment, read-only */
	const void *page; /* a page of it beside those of other peers (shm/seg.h), or
			   * NULL */
	struct p3_heap_view heap;   /* its shared heap, read-only */
	struct p3_link outstanding; /* pendings sent, not answered */
	struct p3_link blocked_link;
	struct p3_pull *bulk; /* the pull of this pair that uses a window */
	struct p3_pull own_pull;
	uint32_t nqueued;       /* pendings in queue */
	uint32_t nout;          /* pendings in outstanding, or pulling */
	uint64_t taken;         /* messages taken by the peer, as last mirrored */
	uint32_t npulls;        /* pulls from the shared pool */
	uint32_t copied;        /* bytes of copies for it */
	uint32_t nreading;      /* pulls announced */
	uint32_t nxfer[2];      /* shared slots of each class in use */
	const char *image;      /* base as the wire shows it */
	uint64_t seg_len;       /* bytes at base */
	uint64_t ahead;         /* position in req_in up to which requests were
				 * prefetched */
	struct p3_link serving; /* its long gets whose END is to come, oldest first */
	bool apart;             /* EXPECTED: conf.meet fetches it when it is needed */
	bool met;               /* conf.meet has been called for it */
	bool counted;           /* n->alive includes it */
};

_Static_assert(offsetof(struct p3_peer, nid) == P3_CELL &&
		       offsetof(struct p3_peer, req_out) == 2 * P3_CELL &&
		       offsetof(struct p3_peer, rsp_in) == 3 * P3_CELL,
	"a message touches three lines of its peer's");

/* Buckets that later requests will be looked up in: see ahead.c. */
#define P3_SOON   16u
#define P3_STAGES 4u

struct p3_soon {
	uint32_t n;
	const struct p3_bucket *bucket[P3_SOON];
};

#define P3_TOUCHED 16u
#define P3_ALL_HOT 64u /* up to this number of lanes it is best to poll all */
#define P3_PULLS   128u

struct p3_id {
	uint64_t key; /* pid and nid */
	struct p3_peer *peer;
};

struct p3_ids {
	uint32_t mask;
	struct p3_id at[];
};

struct p3_host; /* the layout of the host segment, in host.c */

struct p3_nic {
	/* (any) */
	struct p3_lease lease;
	_Alignas(P3_LINE) p3_a32 parked; /* host threads asleep or about to be */
	p3_a32 waiting;                  /* host threads inside a blocking call */
	p3_a32 closing;
	p3_a32 news;    /* private futex: bumped for parked threads */
	p3_a64 drained; /* passes that left no work */
	p3_a32 nic_asleep;
	p3_a32 alive;    /* live peers, this node included */
	p3_a32 watcher;  /* a host thread sleeps on the doorbell */
	p3_a32 emptied;  /* nodes share CPUs, and the last pass seems to have left no
			  * work */
	p3_a32 detached; /* mailbox slots whose poster does not wait, */
	p3_a32 hungry;   /* and the first of them whose command waits for memory */
	struct p3_nic_conf conf;
	struct p3_layout layout;
	struct p3_seg published, doorbell_seg, host_seg[2];
	struct p3_doorbell *doorbell;
	p3_a32 *asleep; /* p3_asleep: the thread that peers wake here */
	struct p3_mailbox *mailbox;
	struct p3_idle_policy idle;
	uint64_t kick_after_ns;
	uint64_t tick_ns;
	bool may_rest; /* the mode is dedicated by choice of the library, not of the
		        * user */
	bool sparing;  /* the full rings of all pairs on a CPU exceed its cache */
	bool tight;    /* fewer CPUs than host and NIC threads */
	bool crowded;  /* more nodes than CPUs: a peer has a CPU now and then only, */
	bool dense;    /* namely a quarter of the time or less */
	pthread_t thread;
	struct robust_list_head last_will; /* at the thread's end the kernel marks the
					    * header's owner */
	struct robust_list heir;
	p3_a32 stop;
	struct p3_nic *next_kept;
	p3_a64 life; /* counts host segments: memory of an earlier one is void */
	pthread_mutex_t
		arena_lock; /* guards life, the host segments, and the three below */
	uint64_t host_used[2];
	struct p3_eq *unburied; /* freed queues whose places are not free yet */
	/* (firmware) */
	_Alignas(P3_LINE) p3_a64 *count; /* the own published counters */
	struct p3_peer *peer;            /* an array of nnodes */
	struct p3_trace_record *traced;  /* (any) the firmware's records; NULL: the
					  * trace is off */
	uint32_t first_nid, nids;        /* nids of peer[]; nids 0: use ids */
	struct p3_ids *ids;              /* NULL: first_nid is enough */
	struct p3_peer *touched[P3_TOUCHED];
	uint32_t ntouched;
	uint32_t unlooked; /* shares since the last look: see p3_fw_share() */
	bool light;        /* all nodes fence heavily, so messages fence lightly */
	bool posted;       /* an event or result was posted since the last look */
	bool worked;       /* this pass found work */
	bool some_bad;
	uint32_t msgs;  /* messages taken in this pass */
	uint32_t most;  /* and the most that it may take */
	uint64_t bytes; /* bytes moved in this pass */
	struct p3_peer **hot;
	uint32_t nhot;
	uint32_t few;        /* up to this number of hot lanes the pass treats them as
			      * few */
	p3_a32 never_cold;   /* always 0: the word cold of peers that always poll all
			      * their lanes */
	p3_a32 never_asleep; /* always 0: the word asleep of peers that never sleep */
	uint32_t turn;
	uint32_t nlong; /* match lists of P3_LONG entries or more */
	uint32_t next_link;
	struct p3_link blocked;
	struct p3_link pulls;
	struct p3_link sources;
	const struct p3_wire *wired; /* the wire that passes poll, or NULL */
	struct p3_peer *swapper;     /* peer whose getput waits for transfers to end */
	struct p3_ni ni[P3_JOB_NIS];
	struct p3_table table[P3_TABLES];
	/* the rest */
	uint32_t nsoon;
	struct p3_soon soon[P3_STAGES];
	struct p3_evq_ring *free_rings[32]; /* heads by log2 of their size; arena_lock */
	struct p3_evq_ring *new_heads;      /* heads of no size yet; arena_lock */
	uint32_t heads_made, heads_left;    /* heads made last time, and left of these;
					     * arena_lock */
	_Atomic(struct p3_extent *)
		free_extents[2]; /* extents in the host segments; arena_lock */
	struct p3_xfer_slot *xfer;
	struct p3_pull *pull; /* the shared pool */
	struct p3_copies *copies;
	uint64_t arena_used;
	uint64_t window_off[P3_WINDOWS];
	uint64_t window_ns;             /* no window is taken back before this time */
	uint32_t window_free;           /* a bit for each free window */
	uint32_t windows;               /* windows carved */
	struct p3_pace pace[64];        /* by log2 of the length */
	uint64_t slice;                 /* bytes of one cross-memory read */
	struct p3_bounds swapper_wants; /* while the exchange waits no other transfer
					 * begins there, */
	uint64_t swapper_until;         /* until this time; without a swapper no
					 * exchange is named before it */
	struct p3_bounds pulled;        /* all bytes that pulls write lie in there */
	void *wire_state;
	p3_a64 wire_count[P3_W_COUNTERS]; /* (any) */
	p3_a32 settle;                    /* (any) number of calls of p3_nic_settle, */
	p3_a32 settled;                   /* (any) and the last of them that the wire
					   * has completed */
	p3_a32 meeting;                   /* (any) peers that conf.meet is fetching */
	p3_a32 leaving;  /* (any) copies that have not left this node, and */
	p3_a32 promised; /* (any) those whose target is not there yet: LEAVE.1 */
	struct p3_trace trace;
	/* pseudo-peers in state ABSENT: the queue of the first has requests that wait
	 * for an answer whether their target exists, */
	struct p3_peer unresolved;
	/* that of the second requests held until their targets join (nic.h) */
	struct p3_peer absent;
	uint32_t held_most;               /* most held requests */
	struct p3_listed *listed;         /* ids of processes that may come, or NULL */
	uint64_t come[P3_MAX_NODES / 64]; /* domain: a bit for each rank of the job
					   * that has come */
	uint64_t over[P3_MAX_NODES / 64]; /* domain: a bit for each rank of the job
					   * that has ended */
	uint32_t asked;                   /* the last question (nic.h), */
	uint32_t told;                    /* and the last one that was answered */
	uint64_t settling_until; /* until then requests may wait for an entry (rx.c) */
};

/* Where nodes share CPUs, each page costs a look into the page tables at every turn. */
_Static_assert(offsetof(struct p3_nic, table[P3_T_EQ].chunk[1]) <= P3_PAGE,
	"a message touches one page of its NIC's");

#endif
