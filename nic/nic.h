/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic - the node's network interface controller, as lib/ sees it
 *
 * A NIC is firmware (a loop that takes commands from its host and packets from other
 * NICs, walks the match lists, moves the data and posts events) and one thread that
 * runs it when no host thread does.  Host threads reach it by p3_nic_do(): with the
 * lease they execute the command themselves, without it they post it in the mailbox
 * and wait for its result.
 *
 * Return values named PTL_* are the API's codes, the others 0 or -errno.  All
 * functions may be called by any thread at any time unless they say otherwise.
 */
#ifndef P3_NIC_NIC_H
#define P3_NIC_NIC_H

#include "portals3.h"
#include "shm/evq.h"
#include "shm/heap.h"
#include "shm/conf.h"
#include "shm/job.h"
#include "shm/seg.h"

#include <sched.h>

struct p3_nic;

enum p3_mode { P3_MODE_AUTO, P3_MODE_LEASE, P3_MODE_DEDICATED, P3_MODE_PARK };

/* What was done to frames of this node, and what it mended. */
enum p3_wire_counter {
	P3_W_FAULTS, /* one of each kind */
	P3_W_RESENT = P3_W_FAULTS + P3_FAULT_KINDS,
	P3_W_BAD_SUMS,
	P3_W_DOUBLES,
	P3_W_GAPS,
	P3_W_COUNTERS
};

struct p3_nic_conf {
	uint32_t node;   /* index of this node, < nnodes */
	uint32_t nnodes; /* nodes at most */
	uint32_t nid;
	bool domain;       /* peers have any ids; else node i has nid - node + i */
	uint32_t job_nid;  /* domain: the first nid of the own job, */
	uint32_t job_nids; /* and how many it has; 0: no launcher's */
	bool job_alone;    /* domain: all nodes are the job's */
	uint32_t crew;     /* nodes that share the CPUs, as far as known; 0: nnodes */
	void *sleepers; /* of all nodes (layout.h); NULL: each has its own doorbell's */
	bool mute;      /* another node warns of what concerns all of the job */
	uint32_t uid;
	uint32_t jid;
	uint32_t cpus; /* CPUs that all nodes share */
	uint64_t incarnation;
	enum p3_mode mode;
	enum p3_huge_policy huge;
	bool cma;                       /* cross-memory reads may be tried */
	bool bulk;                      /* windows may be used */
	bool membarrier;                /* sleepers may fence for all (shm/fence.h) */
	bool base_lanes_only;           /* tests: never carve a full lane */
	uint32_t trace;                 /* records of the trace (shm/trace.h), or 0 */
	const struct p3_faults *faults; /* tests: a wire that has them; or NULL */
	struct p3_heap *heap;           /* of this node, or NULL */
	uint64_t pending_limit;         /* bytes of pendings at most */
	void (*ask)(void *arg, uint32_t question); /* p3_nic_peer_told; or NULL */
	void (*hold)(void *arg); /* requests are held from now on: p3_nic_held; or NULL */
	void *ask_arg;           /* of both */
	uint64_t hold_ns; /* a request for a node that has yet to join is held so long */
	bool cpuset_known;
	cpu_set_t cpuset; /* where the NIC thread may run */
};

/* Makes the segments and starts the NIC thread.  -ENOSPC, -ENOMEM, -errno. */
int p3_nic_start(const struct p3_nic_conf *conf, struct p3_nic **nic_out);

/*
 * Ends it: peers that read this node's memory are told off, all waiters leave with
 * PTL_EQ_INVALID, the thread is joined, the segments are unmapped.  When it returns
 * nothing touches user memory any more.  Waits for no peer.
 */
void p3_nic_stop(struct p3_nic *nic);

/*
 * All that was published until now is with the peers, as on shared memory it is at once:
 * only then may this node say by another way that it is.  Waits for them, ns at most.
 */
void p3_nic_settle(struct p3_nic *nic, uint64_t ns);

/* Descriptors to hand on, sealed: published, doorbell, host, heap.  They stay the NIC's;
 * returns how many there are. */
unsigned p3_nic_fds(struct p3_nic *nic, int fds_out[P3_JOB_FDS]);
uint64_t p3_nic_seg_len(struct p3_nic *nic);
uint64_t p3_nic_heap_len(struct p3_nic *nic); /* 0: there is none to hand on */

/* ---- handles: kind, interface, index, generation ---- */

enum p3_kind { P3_KIND_NI = 1, P3_KIND_ME, P3_KIND_MD, P3_KIND_EQ };

#define P3_HANDLE_INDEX_BITS 24

static inline uint64_t p3_handle(
	enum p3_kind kind, uint32_t ni, uint32_t index, uint32_t gen)
{
	return (uint64_t)kind << 60 | (uint64_t)ni << 56 | (uint64_t)gen << 24 | index;
}

static inline enum p3_kind p3_handle_kind(uint64_t h)
{
	return (enum p3_kind)(h >> 60);
}

static inline uint32_t p3_handle_ni(uint64_t h)
{
	return (uint32_t)(h >> 56) & 0xf;
}

static inline uint32_t p3_handle_index(uint64_t h)
{
	return (uint32_t)h & ((1u << P3_HANDLE_INDEX_BITS) - 1);
}

static inline uint32_t p3_handle_gen(uint64_t h)
{
	return (uint32_t)(h >> P3_HANDLE_INDEX_BITS);
}

/* ---- commands ---- */

enum p3_op {
	P3_OP_NI_OPEN = 1, /* handle_out: the NI */
	P3_OP_NI_CLOSE,
	P3_OP_NI_CHECK, /* is the handle that of an open interface? */
	P3_OP_NI_STATUS,
	P3_OP_WHOSE, /* handle_out: the interface of any handle */
	P3_OP_AC_ENTRY,
	P3_OP_ME_ATTACH, /* MEMD too */
	P3_OP_ME_UNLINK,
	P3_OP_MD_ATTACH,
	P3_OP_MD_BIND,
	P3_OP_MD_UNLINK,
	P3_OP_MD_UPDATE,
	P3_OP_EQ_ALLOC,
	P3_OP_EQ_FREE,
	P3_OP_EQ_BURY, /* queues that were freed, and have no reader any more */
	P3_OP_PUT,
	P3_OP_GET,
	P3_OP_GETPUT,
	P3_OP_DUMP,
	P3_OP_GROW, /* the host adds memory to a table */
	P3_OP_PEER_UP,
	P3_OP_PEER_PIDS,
	P3_OP_PEER_DOWN,
	P3_OP_PEER_TOLD, /* handle: which question */
	P3_OP_PEER_OVER,
	P3_OP_HELD,
	P3_OP_LIST, /* ids of processes that may come */
	P3_OPS
};

#define P3_WHOLE   UINT64_MAX /* length of a put or get: all of the descriptor */
#define P3_EQ_MOST ((ptl_size_t)1 << 20) /* events of one queue */

enum p3_dump { P3_DUMP_LIST, P3_DUMP_ME, P3_DUMP_QUEUES };

struct p3_iov {
	struct p3_iov *next; /* among those that nobody uses any more */
	uint32_t refs;       /* the descriptor and operations under way */
	uint32_t n;
	char *lo, *hi; /* no byte lies below lo, nor at hi or above */
	ptl_md_iovec_t v[];
};

/*
 * The firmware never frees memory: the program's malloc may be locked by a thread that a
 * signal handler waits in for the lease.  Copies that nobody uses wait until somebody
 * makes the next one, or the NIC stops.
 */
void p3_nic_free_iovs(void);

/* Where a new match entry goes: next to base, else at an end of pt_index's list. */
struct p3_cmd_me {
	uint64_t base; /* PTL_INVALID_HANDLE: none */
	ptl_process_id_t id;
	ptl_match_bits_t bits;
	ptl_match_bits_t ignore;
	uint32_t pt_index;
	uint8_t position; /* ptl_ins_pos_t */
	uint8_t unlink;   /* ptl_unlink_t */
	bool any_index;   /* whose list is empty; pt_index: out */
	bool with_md;     /* a descriptor, too */
};

struct p3_cmd_md {
	ptl_md_t md;
	struct p3_iov *iov;  /* IOVEC: a copy, the MD's from success on */
	uint64_t test_eq;    /* UPDATE, MEMD: nothing is done unless it is at rest */
	uint64_t handle_out; /* MEMD */
	uint8_t unlink;      /* ptl_unlink_t */
	bool change;         /* UPDATE: to md */
};

/* PUT, GET, GETPUT: as the call gave it. */
struct p3_move {
	ptl_process_id_t target;
	ptl_match_bits_t bits;
	ptl_hdr_data_t hdr;
	uint64_t remote_offset;
	uint64_t offset; /* in the descriptor */
	uint64_t length; /* or P3_WHOLE */
	uint32_t pt_index;
	uint16_t ac_index; /* 0xffff: does not fit, never valid */
	uint16_t ack;
	uint64_t put_handle; /* GETPUT: whose bytes are sent, */
	uint64_t put_offset; /* from here */
};

/* Requests that are held. */
struct p3_on_hold {
	uint32_t n;
	ptl_process_id_t who; /* the target of the one that has been held longest, */
	uint64_t since_ns;    /* since then */
};

/* Process ids, each a pid above a nid. */
struct p3_listed {
	uint32_t n;
	uint64_t id[];
};

struct p3_cmd {
	uint16_t op; /* p3_op */
	uint16_t ni;
	uint32_t flag;  /* GROW: which table; DUMP: p3_dump */
	uint32_t trace; /* its record there, plus 1 */
	uint64_t handle;
	uint64_t handle_out;
	union {
		struct {
			uint32_t pid;
			uint32_t cray; /* any word but 0 */
			ptl_ni_limits_t limits;
			void *portals; /* zeroed memory for three tables, */
			void *buckets; /* the NI's from success on */
			void *acs;
			uint32_t nbuckets;  /* a power of two */
			struct p3_eq *dead; /* CLOSE: as for EQ_FREE */
		} ni_open;
		struct {
			uint32_t index;
			int64_t value; /* out */
		} status;
		struct {
			ptl_process_id_t id;
			uint32_t index, uid, jid, pt_index;
		} ac;
		struct {
			struct p3_cmd_me me;
			struct p3_cmd_md md;
			ptl_md_t old; /* UPDATE: out, and where elements go */
		};
		struct {
			struct p3_evq_ring *ring;
			ptl_eq_handler_t handler;
			struct p3_eq *dead; /* FREE: out, BURY: in; a list */
			uint32_t n;
		} eq;
		struct p3_move move;
		struct {
			char *text; /* out, ends with 0 */
			size_t size;
			uint32_t pt_index;
		} dump;
		struct {
			void *chunk;
			uint64_t life; /* that the chunk belongs to */
		} grow;
		struct p3_peer_info *peer;
		struct p3_on_hold held;   /* out */
		struct p3_listed *listed; /* in, and those of before out */
	};
};

/*
 * Execute a command.  Returns its PTL_* code.  Adds memory to the NIC's tables when
 * the command needs it (PTL_NO_SPACE when there is none).  Waits at most for the
 * holder of the lease to finish its pass.
 */
int p3_nic_do(struct p3_nic *nic, struct p3_cmd *cmd);

/* Is this a signal handler that has interrupted a call of the library? */
bool p3_nic_interrupts(void);

/*
 * Open interface ni with these limits (all checked by the caller) and pid; cray: its
 * gets and automatic unlinks are those of a Cray XT.  PTL_* code; closing takes all its
 * objects along and forgets what is under way.
 */
int p3_nic_ni_open(struct p3_nic *nic, uint32_t ni, uint32_t pid, bool cray,
	const ptl_ni_limits_t *limits, uint64_t *handle_out);
int p3_nic_ni_close(struct p3_nic *nic, uint64_t handle);

/* Event queue of n >= 1 events; the ring's memory is the NIC's.  PTL_* code. */
int p3_nic_eq_alloc(struct p3_nic *nic, uint64_t ni_handle, ptl_size_t n,
	ptl_eq_handler_t handler, uint64_t *handle_out);
int p3_nic_eq_free(struct p3_nic *nic, uint64_t handle);

/* The program serves its interfaces from now on: they have settled (nic/rx.c). */
void p3_nic_attend(struct p3_nic *nic);

/* Passes by this thread, for ns at most, until one finds nothing to do. */
void p3_nic_progress(struct p3_nic *nic, uint64_t ns);

/* The oldest unread event, which stays; codes as those of eq_poll without waiting. */
int p3_nic_eq_peek(struct p3_nic *nic, uint64_t handle, ptl_event_t *event_out);

/*
 * Next event of one queue, waiting up to ns (0: one look; UINT64_MAX: no limit).
 * PTL_OK, PTL_EQ_DROPPED, PTL_EQ_EMPTY (timeout), PTL_EQ_INVALID.  The queue's handler
 * has been called with a copy, with nothing of the NIC's held.
 */
int p3_nic_eq_get(
	struct p3_nic *nic, uint64_t handle, uint64_t ns, ptl_event_t *event_out);

/* The same of any of n queues, looking at queue start first; which of them, out, if
 * there is an event. */
int p3_nic_eq_poll(struct p3_nic *nic, const uint64_t *handles, uint32_t n,
	uint32_t start, uint64_t ns, ptl_event_t *event_out, int *which_out);

/* ---- peers ---- */

enum p3_peer_end { P3_PEER_LEFT, P3_PEER_DIED };

/* What the launcher says about a node (BORN).  The descriptors stay the caller's. */
struct p3_peer_info {
	uint32_t node;
	uint32_t nid;
	uint32_t pid[P3_JOB_NIS];
	uint32_t uid;
	uint32_t jid;
	uint32_t os_pid;
	uint32_t end; /* PEER_DOWN: p3_peer_end */
	bool now;     /* PEER_DOWN: see p3_nic_peer_down */
	bool any;     /* PEER_DOWN: whatever its incarnation */
	uint64_t incarnation;
	uint64_t seg_len;
	uint64_t heap_len; /* 0: it has none */
	int published;
	int doorbell;
	int heap;
	void *base;       /* mapped by p3_nic_peer_up; NULL: expected only */
	const void *page; /* of it, with what is for this node; NULL: only there */
	void *doorbell_at;
	struct p3_heap_view view; /* of its heap */
};

/* -EPROTO if the segment is not of this build (with a line that says so), or none. */
int p3_nic_peer_up(struct p3_nic *nic, struct p3_peer_info *info);
/*
 * It is there, but could not be mapped: what is sent to it waits for p3_nic_peer_up().
 */
void p3_nic_peer_expect(struct p3_nic *nic, struct p3_peer_info *info);
void p3_nic_peer_pids(struct p3_nic *nic, struct p3_peer_info *info);
/*
 * Return false if a message of the peer waits for this node's interface to settle (rx.c):
 * then call again.  It succeeds within two seconds, or at once with info.now, which
 * discards such messages.
 */
bool p3_nic_peer_down(struct p3_nic *nic, struct p3_peer_info *info);

/*
 * A target that is not known here, or has left, may have come all the same: word of it
 * is on its way, overtaken by messages of who has it already.  So a request for it
 * waits, and conf.ask(arg, question) is called, with the lease held: it must not block,
 * nor take locks.  The answer is this call, when all births that had come about before
 * the question have been told by p3_nic_peer_up(): whom it still does not know is not
 * there.  A question that is not the last one's is answered in vain.  Without conf.ask
 * nobody has more to tell, and such a request ends at once, as all that is for the dead
 * does.
 */
void p3_nic_peer_told(struct p3_nic *nic, uint32_t question);

/*
 * A request for a node that has yet to join is held: for a rank of the job that has not
 * come, or for a process of p3_nic_list().  It is sent when that node joins, and fails
 * when the node has ended, by p3_nic_peer_over() or p3_nic_peer_down(), or when it was
 * held for conf.hold_ns.  Held requests to one node delay none to others.  There are so
 * many of them at most as take half the memory for pendings: then the call that makes
 * one more gives PTL_NO_SPACE.
 *
 * The NIC calls conf.hold(arg) when the first one is held, under the same rules as
 * conf.ask.  From then on call p3_nic_held() from time to time: it ends the requests that
 * were held for conf.hold_ns, and tells of the others.
 */
void p3_nic_held(struct p3_nic *nic, struct p3_on_hold *held_out);
/* A rank of the job (info.node; info.nid) has ended and may never have joined. */
void p3_nic_peer_over(struct p3_nic *nic, struct p3_peer_info *info);
/* In a domain: processes with these ids may come.  From malloc, the NIC's then. */
void p3_nic_list(struct p3_nic *nic, struct p3_listed *listed);

/* ---- looking from outside ---- */

uint64_t p3_nic_counter(struct p3_nic *nic, enum p3_counter c);
uint64_t p3_nic_wire_counter(struct p3_nic *nic, unsigned c); /* p3_wire_counter */
bool p3_nic_is_huge(struct p3_nic *nic);
uint32_t p3_nic_peers_alive(struct p3_nic *nic);

#endif
