/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The data of proto/: pendings, which are this node's operations under way, and peers.
 *
 * Only the lease holder touches this data, except words of shared memory.
 */
#ifndef P3_NIC_PROTO_STATE_H
#define P3_NIC_PROTO_STATE_H

#include "nic/cci/state.h"
#include "nic/obj/state.h"
#include "nic/proto/format.h"
#include "nic/wire/wire.h"
#include "nic/xfer/state.h"
#include "shm/footprint.h"

/* ---- operations under way ---- */

enum p3_pending_state {
	P3_PEND_QUEUED, /* in the send queue of its target */
	P3_PEND_SENT,   /* sent, waits for its response */
	P3_PEND_PULLING /* get: the data are being read */
};

/* One put, get or getput of this node that has not ended; or the data of a WRITE, which
 * go as those of a put, or of a READ of CCI. */
struct p3_pending {
	struct p3_object o;
	struct p3_link link; /* in its peer's queue, then in its peer's outstanding */
	struct p3_peer *peer;
	struct p3_md *md; /* descriptor of the ACK or the REPLY */
	union {
		uint64_t md_name;      /* name of md at the call: md may be unlinked
					* meanwhile */
		struct p3_cci_tx *rma; /* CCI: the operation; NULL: it has ended */
	};
	uint8_t state;
	uint8_t kind; /* p3_req_kind */
	uint8_t ni;   /* P3_JOB_NIS: of CCI */
	bool is_long;
	union {
		uint32_t rsp_cells; /* sent: cells reserved in the response ring */
		uint32_t question;  /* target unknown: number of the question (nic.h) */
	};
	struct p3_xfer_slot *xfer;
	uint64_t held_ns;    /* in absent's queue: start of the wait */
	struct p3_move move; /* offset: the reply's place in md */
	struct p3_span send; /* put, getput */
	char *copy;          /* copy of the bytes, after SEND_END was posted; or NULL */
	struct p3_topic topic;
	uint32_t command; /* number of the command's trace record, plus 1 */
};

#define P3_PENDING_INDEX (P3_TABLE_MOST - 1) /* mask of the index in a pending's name */

/* Return the name of a pending in requests, never 0. */
static inline uint32_t p3_pending_name(const struct p3_pending *t)
{
	uint32_t gen = p3_handle_gen(p3_get(&t->o.name));
	return (gen | 1u << 13) << 18 | p3_obj_index(&t->o);
}

static inline bool p3_pending_is_rma(const struct p3_pending *t)
{
	return t->ni == P3_JOB_NIS;
}

/* Return the kind of a pending's request in the lane. */
static inline uint32_t p3_pending_kind(const struct p3_pending *t)
{
	return t->kind + (p3_pending_is_rma(t) ? P3_REQ_CCI_WRITE - P3_REQ_PUT : 0u);
}

static inline bool p3_pending_md_lives(const struct p3_pending *t)
{
	return p3_get(&t->md->o.name) == t->md_name;
}

/* ---- peers ---- */

/* LEFT: the peer has closed its interfaces in order.  EXPECTED: it lives, but is not
 * mapped here yet, for want of room, or because neither node has sent to the other
 * (apart); messages to it wait. */
enum p3_peer_state { P3_ABSENT, P3_LIVE, P3_LEFT, P3_DEAD, P3_EXPECTED };

/* few lanes: a visit takes at most 1 << P3_DEEPEST messages; many lanes: after a visit
 * that found more than one message this number of visits empty the lane */
#define P3_DEEPEST 4u

/* With many peers, this struct has left the CPU's near cache when the peer's next message
 * comes, so each line that the message touches costs a cache miss.  The first three lines
 * hold all members that a poll of the lane and a message touch. */
struct p3_peer {
	/* first line: used by each look at the lane and each request taken */
	_Alignas(P3_LINE) struct p3_ring_rx req_in;
	uint32_t rsp_used; /* cells of the peer's response ring that are reserved for
			    * responses to this node's requests */
	uint8_t state;
	bool ready; /* its lane is for this node's present incarnation */
	bool acked; /* it has set this node's credits */
	union {
		struct {
			bool bad : 1;    /* it broke the protocol: it is ignored */
			bool served : 1; /* its list "serving" is not empty */
			bool behind : 1; /* its requests wait for a pull of a copy */
			bool going : 1;  /* it is being lost: its last requests are
					  * taken at once */
			bool asks : 1;   /* the firmware asks the host about its
					  * requests (nic/generic/upper.h) */
			bool kept : 1;   /* its first request waits for an entry
					  * (p3_deliver_keeps()) */
		};
		uint8_t odd; /* all of these bits, for one test */
	};
	/* second line: identity of the peer, and requests to it */
	uint32_t nid;
	uint32_t usual_pid; /* that of the interface which req_in.usual names */
	uint32_t pid[P3_JOB_NIS];
	uint32_t uid, jid;
	bool touched;     /* in n->touched */
	bool hot;         /* in n->hot */
	bool req_full;    /* this node produces in the full ring */
	uint8_t deep;     /* log2 of the messages that the next visit takes, or number of
			   * visits that empty the lane: P3_DEEPEST */
	uint32_t rsp_cap; /* cells of the response ring that this node may reserve */
	uint32_t quiet;   /* looks of p3_peer_cool without news */
	struct p3_link queue;       /* pendings not sent yet */
	struct p3_peer_entry *mine; /* this node's words to the peer */
	/* third line: used by each request sent */
	const p3_a32 *cold; /* a word of the peer, in theirs: not 0 while the peer does
			     * not poll the lane from this node; or n->never_cold */
	p3_a32 *asleep;     /* the word that the peer sleeps on */
	struct p3_doorbell *doorbell; /* the peer's doorbell */
	struct p3_ring_tx req_out;    /* while open, requests leave at once (lane.h) */
	/* the rest */
	struct p3_ring_rx rsp_in;
	struct p3_ring_tx rsp_out;
	const struct p3_peer_entry *theirs; /* the peer's words to this node */
	struct p3_nic *nic;
	struct p3_peer_entry
		*shown;             /* its gauges (shown_...), in the published segment */
	const struct p3_wire *wire; /* never changes while the NIC runs */
	uint32_t index;
	uint32_t os_pid;
	bool cma_off;              /* cross-memory reads from it do not work */
	bool rsp_full;             /* as req_full, for responses */
	bool blocked;              /* in n->blocked: its send queue waits for room */
	uint32_t nsent, nanswered; /* before its rings are full ones */
	uint32_t waits;    /* name of the message that the trace shows as waiting */
	uint32_t told;     /* a bit for each p3_why that was logged about its requests, */
	uint32_t told_own; /* and about this node's requests to it */
	uint64_t full_off; /* offset of the full lane in the own arena, 0: not carved */
	uint64_t incarnation;
	uint64_t kick_ns, kick_wait_ns;
	uint64_t passes, passed_ns; /* passes of its firmware when last looked at, and
				     * the time */
	uint64_t swap_pos, swap_ns; /* position in req_in of the peer's exchange that had
				     * to wait, and the time when the wait began;
				     * swap_ns 0: no exchange has waited */
	uint64_t kept_at; /* place in req_in of the last request that was kept */
	uint64_t left_ns; /* time of its end, if a kept request delays that; or 0 */
	uint64_t proof; /* address of its incarnation in its memory: see nic/wire/shm.c */
	uint32_t owner; /* owner of its header; 0: the kernel does not signal its end */
	uint64_t window_at[P3_WINDOWS]; /* its windows that are known to have memory */
	uint32_t nwindows;
	bool proven;      /* os_pid is its process until the owner word changes */
	char *base;       /* its published segment, read-only */
	const void *page; /* the peer's page that is mapped beside those of other peers
			   * (shm/seg.h), or NULL */
	struct p3_heap_view heap;   /* its shared heap, read-only */
	struct p3_link outstanding; /* pendings sent, not answered */
	struct p3_link blocked_link;
	struct p3_pull *bulk;      /* the pull of this pair that uses a window, */
	struct p3_link bulk_waits; /* and those that wait for one, oldest first */
	struct p3_pull own_pull;
	uint32_t nqueued;       /* pendings in queue */
	uint32_t nout;          /* pendings in outstanding, or pulling */
	uint64_t taken;         /* messages taken by the peer, as last mirrored */
	uint32_t npulls;        /* pulls from the shared pool */
	uint32_t copied;        /* bytes of copies for it */
	uint32_t nreading;      /* pulls announced */
	uint32_t nxfer[2];      /* shared slots of each class in use */
	const char *image;      /* the published segment as the wire shows it */
	uint64_t seg_len;       /* bytes at base */
	uint64_t prefetched;    /* position in req_in up to which requests were
				 * prefetched */
	struct p3_link serving; /* its long gets whose END is to come, oldest first */
	bool apart;             /* EXPECTED: the first request to it calls conf.meet */
	bool met;               /* conf.meet has been called for it */
	bool counted;           /* n->alive includes it */
	struct p3_pending cci_marker; /* in queue while messages of CCI wait for room */
	struct p3_cci_peer cci;
};
_Static_assert(sizeof(struct p3_peer) == P3_SOURCE_PRIVATE, "yod --plan tells of it");

_Static_assert(offsetof(struct p3_peer, nid) == P3_CELL &&
		       offsetof(struct p3_peer, cold) == 2 * P3_CELL &&
		       offsetof(struct p3_peer, req_out.cells) == 3 * P3_CELL,
	"a message touches three lines of its peer's");

/* ---- ids of processes ---- */

struct p3_id {
	uint64_t key; /* pid:nid */
	struct p3_peer *peer;
};

struct p3_ids {
	uint32_t mask;
	struct p3_id at[];
};

#endif
