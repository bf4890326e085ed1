/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state - one NIC: the data that all rooms share, and the part of each room
 *
 * host/ has the calls of host threads, run/ the pass and the NIC's thread, proto/
 * requests and responses, xfer/ long transfers, match/ matching, generic/ matching by the
 * host, obj/ the objects of programs, wire/ the wires, far/ the wire between hosts, cci/
 * the endpoints of CCI, report/ all that people and tools read.  Each room's own structs
 * are in its state.h; those of a wire are behind wire_state.
 *
 * Only the lease holder touches this data, except the members that are marked (any), or
 * guarded by a lock that their comment names.
 */
#ifndef P3_NIC_STATE_H
#define P3_NIC_STATE_H

#include "nic/cci/state.h"
#include "nic/proto/state.h"
#include "nic/run/evfd.h"
#include "nic/wire/wire.h"
#include "nic/xfer/state.h"
#include "shm/lease.h"
#include "shm/mailbox.h"
#include "shm/park.h"

#include <linux/futex.h>
#include <pthread.h>

/* ---- match/: buckets of long match lists that later requests need, and targets that the
 * access list admits ---- */

/* Buckets that later requests will be looked up in (match.c). */
#define P3_PREFETCH 16u
#define P3_STAGES   4u

struct p3_prefetch {
	uint32_t n;
	const struct p3_bucket *bucket[P3_PREFETCH];
};

/*
 * A target that plain requests lately had (nic/proto/rx.c): an interface and portal,
 * with an access entry that admits all processes of this owner there.  It is forgotten
 * when the interface is opened or closed, or its access list changes.
 */
struct p3_acl_target {
	uint64_t target; /* as p3_acl_cache_key(); 0: none */
	uint64_t owner;
	struct p3_ni *ni;
	const struct p3_portal *list;
};

#define P3_ACL_CACHE 4u /* a program sends to a few portals in turn */

/* ---- generic/: the generic event queue, and the interrupt ---- */

/* The kinds of entries of the generic event queue. */
enum p3_generic_kind {
	P3_GENERIC_HEADER, /* a request of a peer is to be matched */
	P3_GENERIC_REPLY,  /* a reply of a peer is to be received */
	P3_GENERIC_EVENT   /* an operation is complete: post this event of Portals */
};

struct p3_upper;

struct p3_generic_event {
	struct p3_event_record record; /* EVENT */
	struct p3_eq *eq;              /* EVENT: the program's queue */
	uint32_t event;                /* EVENT: ptl_event_kind_t */
	uint32_t peer;                 /* HEADER, REPLY */
	enum p3_generic_kind kind;
};

struct p3_generic {
	struct p3_generic_event *entry; /* a ring of mask + 1 entries */
	uint32_t mask;
	uint32_t head, tail;
	uint32_t inlined;       /* most bytes that go with a header */
	uint32_t later;         /* upper pendings in state LATER */
	struct p3_upper *upper; /* one for each peer */
	uint32_t nupper;
	/* the interrupt (any) */
	enum p3_interrupt how;
	pthread_t thread;
	p3_a32 tid;
	_Alignas(P3_LINE) p3_a64 staged; /* entries that the firmware has written, */
	p3_a64 handled;                  /* and that the host has handled */
	p3_a32 asleep;                   /* the host's thread sleeps until an interrupt */
	p3_a32 wants;                    /* it waits for the lease */
	p3_a32 stop;
};

/* ---- the NIC ---- */

#define P3_TOUCHED 16u
#define P3_ALL_HOT 64u /* up to this number of lanes it is best to poll all */

/*
 * The members of each room stand together, except that the members that a message
 * touches come first: they share few lines of the cache, and one page.
 */
struct p3_nic {
	/* ---- run/: the lease, and threads that wait or sleep (any) ---- */
	struct p3_lease lease;
	_Alignas(P3_LINE) p3_a32 parked; /* host threads asleep or about to be, and
					 * armed descriptors */
	p3_a32 waiting;                  /* host threads inside a blocking call */
	p3_a32 closing;
	p3_a32 news;    /* private futex: bumped for parked threads */
	p3_a64 drained; /* passes that found no work */
	p3_a32 nic_asleep;
	p3_a32 alive;      /* proto/: live peers, this node included */
	p3_a32 job_alive;  /* proto/: those of them that are of the own job */
	p3_a32 watcher;    /* news for which a host thread sleeps on the doorbell; 0:
			    * no thread does */
	p3_a32 emptied;    /* nodes share CPUs, and the last pass seems to have left no
			  * work */
	p3_a32 vain_spins; /* waits that slept since then, without one that did not */
	p3_a64 taken_ns;   /* end of the last yield that took longer than P3_HOGGED_NS */
	p3_a64 hogged_until; /* other programs want the CPUs: waits do not yield before
			      * this time; 0: nothing is known */
	p3_a32 detached;     /* mailbox slots whose poster does not wait, */
	p3_a32 hungry;       /* and the first of them whose command waits for memory */

	_Alignas(P3_LINE) p3_a32 sleepers[32]; /* parked threads, by the bits of the news
						* that they wait for */

	/* ---- all rooms: settings and segments, which do not change while the NIC
	 * lives (any) ---- */
	struct p3_nic_conf conf;
	struct p3_layout layout;
	struct p3_seg published, doorbell_seg, host_seg[2];
	struct p3_doorbell *doorbell;
	p3_a32 *asleep; /* p3_asleep: the thread that peers wake here */
	struct p3_mailbox *mailbox;

	/* ---- run/: the plan of nic.c, which does not change either, and the NIC's
	 * thread (any) ---- */
	struct p3_idle_policy idle;
	uint64_t kick_after_ns;
	uint64_t tick_ns;
	bool may_rest; /* the user has left the mode to the library (auto), so a dedicated
		        * thread may rest */
	bool sparing;  /* the full rings of all pairs on a CPU exceed its cache */
	bool tight;    /* fewer CPUs than host and NIC threads */
	bool crowded;  /* more nodes than CPUs: a peer has a CPU now and then only, */
	bool dense;    /* namely a quarter of the time or less */
	bool brief;    /* a pass over few lanes takes no more from a lane than p->deep
			* says, and a waiting thread spins first */
	pthread_t thread;
	struct robust_list_head robust_head; /* the thread's robust list: at its end the
					      * kernel marks the header's owner */
	struct robust_list robust_entry;     /* the only entry of that list */
	p3_a32 stop;
	p3_a64 nic_drained; /* passes of that thread among drained, written by it */
	p3_a64 brief_looks; /* passes among drained of threads that were about to sleep on
			     * a descriptor */
	struct p3_nic *next_kept;

	/* ---- obj/: memory of the host segments; arena_lock guards it (any) ---- */
	p3_a64 life; /* counts host segments: memory of an earlier one is void */
	pthread_mutex_t arena_lock;
	uint64_t host_used[2];
	struct p3_eq *unreclaimed; /* freed queues whose places are in use yet */

	/* ---- the part that a message touches, of the lease holder ---- */
	/* report/ */
	_Alignas(P3_LINE) p3_a64 *count; /* the own published counters */
	struct p3_trace_record *traced;  /* (any) the firmware's records; NULL: the
					  * trace is off */
	/* proto/ */
	struct p3_id latest;      /* target of the last request that left at once; or
			       * n->absent, which is never open */
	struct p3_peer *peer;     /* an array of nnodes */
	uint32_t first_nid, nids; /* nids of peer[]; nids 0: use ids */
	struct p3_ids *ids;       /* NULL: first_nid is enough */
	/* run/ */
	uint32_t odd; /* p3_odd (nic/run/run.h); 0: the few hot lanes are all that there
		       * is to do */
	uint32_t odd_life; /* the bits of odd that hold for the NIC's life */
	struct p3_peer *touched[P3_TOUCHED];
	uint32_t ntouched;
	uint32_t unlooked; /* shares since the last look: see p3_pass_share() */
	uint32_t posted;   /* news since the last look: events, and results of commands */
	bool light;        /* all sleepers fence heavily, so messages fence lightly */
	bool staging;      /* generic/: events go to the generic event queue */
	bool worked;       /* this pass found work */
	bool some_bad;     /* proto/ has found a peer that is bad */
	uint32_t msgs;     /* messages taken in this pass */
	uint32_t most;     /* and the most that it may take */
	uint64_t bytes;    /* bytes moved in this pass */
	struct p3_peer **hot;
	uint32_t nhot;
	uint32_t few;        /* up to this number of hot lanes the pass treats them as
			      * few */
	p3_a32 never_cold;   /* always 0: the word cold of peers that always poll all
			      * their lanes */
	p3_a32 never_asleep; /* always 0: the word asleep of peers that never sleep */
	uint32_t waits;      /* waits of host threads, counted to time some of them */
	uint32_t pauses;     /* pauses between two looks of a wait (nic/run/lease.h) */
	uint32_t turn;       /* place in hot at which the next pass begins */
	/* match/, obj/ */
	struct p3_acl_target acl_cache[P3_ACL_CACHE]; /* by the portal's lowest bits */
	uint32_t nlong; /* match lists of P3_LONG entries or more */
	uint32_t next_link;
	/* proto/, xfer/, wire/ */
	struct p3_link blocked;
	struct p3_link pulls;
	struct p3_link sources;
	bool wired;              /* passes poll the wire between hosts */
	struct p3_peer *swapper; /* peer whose getput waits for transfers to end */
	/* obj/ */
	struct p3_ni ni[P3_JOB_NIS];
	struct p3_table table[P3_TABLES];

	/* ---- match/: requests to come ---- */
	uint32_t nprefetch;
	struct p3_prefetch prefetch[P3_STAGES];

	/* ---- obj/: free memory of the host segments; arena_lock guards it (any) ---- */
	struct p3_evq_ring *free_rings[32]; /* heads by log2 of their size */
	struct p3_evq_ring *new_heads;      /* heads of no size yet */
	uint32_t heads_made, heads_left;    /* heads made last time, and left of these */
	_Atomic(struct p3_extent *) free_extents[2]; /* extents in the host segments */

	/* ---- xfer/: slots of the transfer table, pulls, windows ---- */
	struct p3_xfer_slot *xfer;
	struct p3_pull *pull; /* the shared pool */
	uint64_t window_off[P3_WINDOWS];
	uint64_t window_ns;             /* no window is taken back before this time */
	uint64_t reserve_ns;            /* nor memory reserved for one more */
	uint32_t window_free;           /* a bit for each free window */
	uint32_t windows;               /* windows carved */
	struct p3_pace pace[3][64];     /* of puts and gets that are pulled, and of puts
					 * that are sent, by log2 of the length */
	struct p3_slices slices;        /* length of cross-memory reads */
	uint64_t moved;                 /* bytes of all slices that counted */
	struct p3_bounds swapper_wants; /* while the exchange waits no other transfer
					 * begins there, */
	uint64_t swapper_until;         /* until this time; without a swapper no
					 * exchange is named before it */
	struct p3_bounds pulled;        /* all bytes that pulls write lie in there */
	/* pages of the program that were in memory, by their address */
	struct p3_seen seen[P3_SEEN_PLACES];

	/* ---- wire/ ---- */
	void *wire_state;                   /* of the wire between hosts, or NULL */
	struct p3_wire_thread *wire_thread; /* the wire's thread, or NULL */
	p3_a32 rung;      /* (any) sleepers woken because the wire needs a pass */
	p3_a32 settle;    /* (any) number of calls of p3_nic_settle, */
	p3_a32 settled;   /* (any) and the last of them that the wire has
					   * completed */
	p3_a32 unsettled; /* (any) index of a node on another host that lacks messages of
			   * the last call, or nnodes */

	/* ---- proto/: pendings, lanes, copies, and requests for absent targets ---- */
	char *pending_chunk[P3_TABLE_CHUNKS];
	uint64_t arena_used; /* bytes of the published segment that are carved */
	struct p3_copies *copies;
	p3_a32 meeting;  /* (any) peers that conf.meet is fetching */
	p3_a32 leaving;  /* (any) copies that have not left this node, and */
	p3_a32 promised; /* (any) those whose target is not there yet: LEAVE.1 */
	/* pseudo-peers in state ABSENT: the queue of the first has requests that wait
	 * for the answer to a question (nic.h), */
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
	uint32_t nkept;                   /* peers whose first request is kept */
	uint64_t settling_until;          /* until then requests may wait for an entry
				  * (proto.h) */

	/* ---- generic/ ---- */
	struct p3_generic *generic; /* generic_part, or NULL: the firmware matches; set
				     * when the NIC starts */
	struct p3_generic generic_part; /* (any) may be read when the NIC is closed */

	/* ---- report/ ---- */
	struct p3_trace trace;

	/* ---- run/: descriptors that are readable while events wait (any) ---- */
	p3_a32 evfds;     /* descriptors that are open, */
	p3_a32 evfd_ends; /* and slots that were ever used */
	p3_a64 evfd;      /* address of P3_EVFDS slots; 0 before the first use */

	/* ---- cci/: endpoints, timers ---- */
	struct p3_cci cci;
};

/* (any) Return a place in the own published segment. */
static inline void *p3_published_at(const struct p3_nic *n, uint64_t off)
{
	return (char *)n->published.base + off;
}

/* ---- handles ---- */

/* (any) Return the object that a handle names, or NULL. */
static P3_HOT struct p3_md *p3_md_named(const struct p3_nic *n, uint64_t handle)
{
	return p3_table_named(&n->table[P3_T_MD], sizeof(struct p3_md), handle);
}

static P3_HOT struct p3_eq *p3_eq_named(const struct p3_nic *n, uint64_t handle)
{
	return p3_table_named(&n->table[P3_T_EQ], sizeof(struct p3_eq), handle);
}

/* Return the entry with this index. */
static P3_HOT struct p3_me *p3_me_place(const struct p3_nic *n, uint64_t index)
{
	return p3_table_place(&n->table[P3_T_ME], sizeof(struct p3_me), index);
}

/* (any) */
static P3_HOT struct p3_me *p3_me_named(const struct p3_nic *n, uint64_t handle)
{
	return p3_table_named(&n->table[P3_T_ME], sizeof(struct p3_me), handle);
}

/* (any) Return the place of the queue with this handle; another queue may be there, or
 * none.  The caller compares names. */
static P3_HOT struct p3_eq *p3_eq_place(const struct p3_nic *n, uint64_t handle)
{
	return p3_table_place(&n->table[P3_T_EQ], sizeof(struct p3_eq), handle);
}

/* Where nodes share CPUs, each page costs a look into the page tables at every turn. */
_Static_assert(offsetof(struct p3_nic, table[P3_TABLES]) <= P3_PAGE,
	"a message touches one page of its NIC's");

#endif
