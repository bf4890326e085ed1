/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic - the node's network interface controller, as lib/ sees it
 *
 * A NIC is firmware (a loop that takes commands from its host and packets from other
 * NICs, walks the match lists, moves the data and posts events) and one thread that
 * runs the firmware when no host thread does.  Host threads send it commands by
 * p3_nic_do(): a thread that gets the lease executes the command itself, a thread that
 * does not posts it in the mailbox and waits for the result.
 *
 * Return values named PTL_* are the API's codes, the others 0 or -errno.  Any thread
 * may call any function at any time unless the function says otherwise; all state is in
 * struct p3_nic.
 */
#ifndef P3_NIC_NIC_H
#define P3_NIC_NIC_H

#include "portals3.h"
#include "portals3x.h"
#include "shm/evq.h"
#include "shm/heap.h"
#include "shm/conf.h"
#include "shm/cpuset.h"
#include "shm/job.h"
#include "shm/poll.h"
#include "shm/seg.h"

struct p3_nic;

/* How the firmware interrupts a host that matches (PTL3_MATCH). */
enum p3_interrupt { P3_INTERRUPT_FUTEX, P3_INTERRUPT_SIGNAL, P3_INTERRUPT_POLL };

/* GENERIC: the mode that tools see if the host matches; conf.mode never has it. */
enum p3_mode {
	P3_MODE_AUTO,
	P3_MODE_LEASE,
	P3_MODE_DEDICATED,
	P3_MODE_PARK,
	P3_MODE_GENERIC
};

struct p3_endpoint_ops;

extern const struct p3_endpoint_ops p3_endpoint_stream; /* over nic/streams.h */
/* Load libfabric, unless it is loaded, and return the endpoints over it; NULL after an
 * error line.  A library that was built without libfabric has no such function. */
const struct p3_endpoint_ops *p3_nic_fabric(void);

#define P3_FAR_NAME 128u /* bytes of an endpoint's name at most */

/* The other hosts of a job (nic/far/). */
struct p3_far_conf {
	const uint32_t *host; /* number of each node's host, by the node's index */
	const struct p3_endpoint_ops *ops; /* the kind of endpoint */
	const char *provider;              /* libfabric's */
	const char *address;               /* the local address to use, or NULL */
	struct p3_endpoint *streams;       /* nic/streams.h; NULL: none (tests) */
	uint64_t settle_ns; /* longest wait until other hosts have confirmed messages */
};

struct p3_nic_conf {
	uint32_t node;   /* index of this node, less than nnodes */
	uint32_t nnodes; /* largest number of nodes */
	uint32_t nid;
	bool domain;       /* peers may have any ids; else node i has nid - node + i */
	uint32_t job_nid;  /* domain: the first nid of the own job */
	uint32_t job_nids; /* number of these nids; 0: no launcher started the process */
	/* domain: number of ranks that share job_nid, and that p3_peer_info names; 0: the
	 * number of processes with that nid is unknown */
	uint32_t job_ranks;
	uint32_t crew;  /* nodes that share the CPUs, as far as known; 0: nnodes */
	void *sleepers; /* sleepers of all nodes (layout.h); NULL: the words in the
			 * doorbells */
	bool mute;      /* another node prints the warnings that concern the whole job */
	uint32_t uid;
	uint32_t jid;
	uint32_t cpus; /* CPUs that all nodes share */
	uint64_t incarnation;
	enum p3_mode mode;
	enum p3_huge_policy huge;
	bool match_on_host; /* generic mode (nic/generic/generic.h); mode has no effect */
	enum p3_interrupt interrupt;
	uint32_t inlined;     /* generic: most bytes that go to the host with a header */
	bool cma;             /* cross-memory reads may be tried */
	bool bulk;            /* windows may be used */
	bool membarrier;      /* sleepers may fence heavily (shm/atomics.h) */
	bool base_lanes_only; /* tests: never carve a full lane */
	bool unswept; /* tests: p3_peer_sweep() does nothing, so a lost doorbell shows */
	uint32_t trace;                /* records of the trace (shm/trace.h), or 0 */
	const struct p3_far_conf *far; /* valid until the stop; NULL: all nodes are on
					 * this host */
	struct p3_heap *heap;          /* the node's shared heap, or NULL */
	uint64_t pending_limit;        /* most bytes of pendings */
	void (*ask)(void *arg, uint32_t question); /* see p3_nic_peer_told; or NULL */
	void (*meet)(void *arg, uint32_t node);    /* see p3_nic_peer_expect; or NULL */
	void (*hold)(void *arg); /* requests are held from now on: see p3_nic_held; or
				  * NULL */
	void *ask_arg;           /* first argument of all three */
	uint64_t hold_ns;        /* time that a request for a node that has yet to join is
			   * held */
	/* CPUs for the NIC thread, which stay valid until the stop; NULL: the caller's */
	const struct p3_cpuset *nic_cpus;
};

/* Make the segments and start the NIC thread.  Return 0, -ENOSPC, -ENOMEM or -errno. */
int p3_nic_start(const struct p3_nic_conf *conf, struct p3_nic **nic_out);

/*
 * Stop the NIC: peers that read this node's memory are told to stop, all waiters leave
 * with PTL_EQ_INVALID, the thread is joined, the segments are unmapped.  After the
 * return nothing touches user memory any more.  This waits for no peer.
 */
void p3_nic_stop(struct p3_nic *nic);

/* In a forked child: close the parent's descriptors that are for its threads only. */
void p3_nic_forget(struct p3_nic *nic);

/*
 * Wait until the messages of this node are with the peers: those in copies
 * (nic/proto/pending.c), those that wait for conf.meet, and, between hosts, all
 * that lie in lanes.  Give up copies when none has left for ns / 2, after 10 * ns at
 * most, or after 30 * ns while conf.meet is under way; the wires have ns more.  If the
 * job has other hosts, settle_ns of struct p3_far_conf replaces each shorter one of these
 * times but the last: when this node has gone, nothing sends its frames again.  Only
 * after this call may the node tell its peers anything by a channel other than the wire.
 * Return true if the wires have delivered all, and in a signal handler that has
 * interrupted a call.  Else *late_out, if not NULL, is the index of a node that lacks
 * messages, or nnodes if none is known.
 */
bool p3_nic_settle(struct p3_nic *nic, uint64_t ns, uint32_t *late_out);

/* (any) Show tools that the calling thread waits in a barrier, until it calls
 * p3_nic_left_barrier() with the result.  Return NULL if no line is left to show it;
 * the second function accepts that. */
struct p3_wait_line *p3_nic_show_barrier(struct p3_nic *nic);
void p3_nic_left_barrier(struct p3_wait_line *line);

/*
 * Wait, for ns at most, until no short put whose descriptor is unlinked waits for a
 * target that has yet to come.  Return how many of these puts still wait.
 */
uint32_t p3_nic_await_absent(struct p3_nic *nic, uint64_t ns);

/* Return the descriptors to send to peers, sealed: published, doorbell, host, heap.
 * They stay the NIC's.  The result is their number. */
unsigned p3_nic_fds(struct p3_nic *nic, int fds_out[P3_JOB_FDS]);
uint64_t p3_nic_seg_len(struct p3_nic *nic);
uint64_t p3_nic_heap_len(struct p3_nic *nic); /* 0: there is none to send */

/* Write the name of the endpoint by which nodes on other hosts find this one, and return
 * its length; 0: there is none. */
uint32_t p3_nic_far_name(struct p3_nic *nic, unsigned char out[P3_FAR_NAME]);

/* ---- handles: kind, interface, index, generation ---- */

enum p3_kind { P3_KIND_NI = 1, P3_KIND_ME, P3_KIND_MD, P3_KIND_EQ };

#define P3_HANDLE_INDEX_BITS 24

static inline uint64_t p3_handle_ni_bits(uint32_t ni)
{
	return (uint64_t)ni << 56;
}

static inline uint64_t p3_handle(
	enum p3_kind kind, uint32_t ni, uint32_t index, uint32_t gen)
{
	return (uint64_t)kind << 60 | p3_handle_ni_bits(ni) | (uint64_t)gen << 24 | index;
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

/* News, for which threads of a node sleep, are bits: one for events in queues whose index
 * has a certain remainder, and one each for the results of commands, and for a node that
 * no thread tends (nic/run/run.h). */
#define P3_NEWS_QUEUES  30u
#define P3_NEWS_RESULT  (1u << P3_NEWS_QUEUES)
#define P3_NEWS_TENDING (2u << P3_NEWS_QUEUES)
#define P3_NEWS_ALL     (P3_NEWS_TENDING - 1)

/* Return the news that an event is in the queue with this handle. */
static inline uint32_t p3_news_of_queue(uint64_t h)
{
	return 1u << p3_handle_index(h) % P3_NEWS_QUEUES;
}

static inline uint32_t p3_handle_gen(uint64_t h)
{
	return (uint32_t)(h >> P3_HANDLE_INDEX_BITS);
}

/* ---- commands ---- */

enum p3_op {
	P3_OP_NI_OPEN = 1, /* handle_out: the NI */
	P3_OP_NI_CLOSE,
	P3_OP_NI_CHECK, /* PTL_OK if the handle is that of an open interface */
	P3_OP_NI_STATUS,
	P3_OP_WHOSE, /* handle_out: the interface of a handle of any kind */
	P3_OP_AC_ENTRY,
	P3_OP_ME_ATTACH, /* also of MEMD */
	P3_OP_ME_UNLINK,
	P3_OP_MD_ATTACH,
	P3_OP_MD_BIND,
	P3_OP_MD_UNLINK,
	P3_OP_MD_UPDATE,
	P3_OP_EQ_ALLOC,
	P3_OP_EQ_FREE,
	P3_OP_EQ_WATCH,   /* flag: its descriptor's slot, plus 1 */
	P3_OP_EQ_RECLAIM, /* the places of freed queues that have no reader any more */
	P3_OP_PUT,
	P3_OP_GET,
	P3_OP_GETPUT,
	P3_OP_DUMP,
	P3_OP_GROW, /* add the host's memory to a table */
	P3_OP_PEER_UP,
	P3_OP_PEER_PIDS,
	P3_OP_PEER_DOWN,
	P3_OP_PEER_TOLD, /* handle: the question */
	P3_OP_PEER_OVER,
	P3_OP_HELD,
	P3_OP_LIST, /* ids of processes that may come */
	P3_OP_CCI,  /* a call of CCI (nic/cci/host.c) */
	P3_OP_PT_HOLD,
	P3_OP_INJECT,    /* handle: the NI */
	P3_OP_WAITS_FOR, /* handle: the EQ */
	P3_OPS
};

#define P3_WHOLE   UINT64_MAX /* length of a put or get: the whole descriptor */
#define P3_EQ_MOST ((ptl_size_t)1 << 20) /* most events of one queue */

enum p3_dump { P3_DUMP_LIST, P3_DUMP_ME, P3_DUMP_QUEUES };

struct p3_iov {
	struct p3_iov *next; /* in the list of unused copies */
	uint32_t refs;       /* users: the descriptor and operations under way */
	uint32_t n;
	char *lo, *hi; /* lo <= address of each byte < hi */
	ptl_md_iovec_t v[];
};

/*
 * Free unused copies of iovecs.  The firmware never frees memory: the program's malloc
 * may be locked by a thread that a signal handler interrupted, and the handler waits
 * for the lease.  So unused copies wait until a thread makes the next copy, or until
 * the NIC stops.
 */
void p3_nic_free_iovs(void);

/* The place of a new match entry: next to base, else at an end of pt_index's list. */
struct p3_cmd_me {
	uint64_t base; /* PTL_INVALID_HANDLE: no base */
	ptl_process_id_t id;
	ptl_match_bits_t bits;
	ptl_match_bits_t ignore;
	uint32_t pt_index;
	uint8_t position; /* ptl_ins_pos_t */
	uint8_t unlink;   /* ptl_unlink_t */
	bool any_index;   /* any portal index with an empty list; pt_index: out */
	bool with_md;     /* attach a descriptor, too */
};

struct p3_cmd_md {
	ptl_md_t md;
	struct p3_iov *iov;  /* IOVEC: a copy, which belongs to the MD after success */
	uint64_t test_eq;    /* UPDATE, MEMD: do nothing unless this queue is empty and
			      * at rest */
	uint64_t handle_out; /* MEMD */
	uint8_t unlink;      /* ptl_unlink_t */
	bool change;         /* UPDATE: change the descriptor to md */
};

/*
 * An atomic operation is an operation and a type of PtlXAtomic in one byte, which
 * commands and messages carry; 0: none.  That of PtlGetPut replaces bytes, whatever they
 * are.
 */
#define P3_ATOMIC_TYPES     (PTLX_DOUBLE + 1u)
#define P3_ATOMIC(op, type) (1u + (uint32_t)(op)*P3_ATOMIC_TYPES + (uint32_t)(type))
#define P3_ATOMIC_SWAP      P3_ATOMIC(PTLX_MSWAP + 1, 0)
#define P3_ATOMIC_MOST      64u /* bytes of operands */
_Static_assert(P3_ATOMIC_SWAP < UINT8_MAX, "one byte, and UINT8_MAX is none of them");

static inline uint32_t p3_atomic_op(uint32_t what)
{
	return (what - 1) / P3_ATOMIC_TYPES;
}

static inline uint32_t p3_atomic_type(uint32_t what)
{
	return (what - 1) % P3_ATOMIC_TYPES;
}

/* Return the bytes of an element. */
static inline uint32_t p3_atomic_size(uint32_t what)
{
	uint32_t type = p3_atomic_type(what);
	return type < PTLX_FLOAT ? 1u << type / 2 : type == PTLX_FLOAT ? 4 : 8;
}

/* Return the bytes of operands of a request for length bytes: a compare form has two
 * operands for each element.  It may also be no atomic operation. */
static inline uint64_t p3_atomic_sent(uint32_t what, uint64_t length)
{
	bool two = what >= P3_ATOMIC(PTLX_CSWAP, 0) && what < P3_ATOMIC_SWAP;
	return two ? 2 * length : length;
}

/* Return true if the operation exists, but for that of PtlGetPut. */
static inline bool p3_atomic_is_valid(uint32_t what)
{
	uint32_t op = p3_atomic_op(what);
	bool bits = (op >= PTLX_BOR && op <= PTLX_BXOR && op != PTLX_LXOR) ||
		    op == PTLX_MSWAP;
	return op <= PTLX_MSWAP && !(bits && p3_atomic_type(what) >= PTLX_FLOAT);
}

/* The parameters of PUT, GET and GETPUT as the call gave them. */
struct p3_move {
	ptl_process_id_t target;
	ptl_match_bits_t bits;
	ptl_hdr_data_t hdr;
	uint64_t remote_offset;
	uint64_t offset; /* from the descriptor's start */
	uint64_t length; /* bytes, or P3_WHOLE */
	uint32_t pt_index;
	uint16_t ac_index; /* 0xffff: the argument does not fit, and is never valid */
	uint8_t ack;
	uint8_t what;        /* an atomic operation (P3_ATOMIC), 0: none */
	uint64_t put_handle; /* GETPUT: the descriptor whose bytes are sent */
	uint64_t put_offset; /* GETPUT: their offset in it */
};

/* The requests that are held. */
struct p3_on_hold {
	uint32_t n;
	ptl_process_id_t who; /* target of the request that has been held longest */
	uint64_t since_ns;    /* start of that request's wait */
};

/* Process ids, each with the pid above the nid. */
struct p3_listed {
	uint32_t n;
	uint64_t id[];
};

struct p3_cmd {
	uint16_t op; /* p3_op */
	uint16_t ni;
	uint32_t flag;  /* GROW: p3_table_id; DUMP: p3_dump; EQ_WATCH: in, out */
	uint32_t trace; /* number of its trace record, plus 1 */
	uint64_t handle;
	uint64_t handle_out;
	union {
		struct {
			uint32_t pid;
			uint32_t cray; /* not 0: an interface of Cray's kind */
			ptl_ni_limits_t limits;
			void *portals; /* zeroed memory for three tables, */
			void *buckets; /* which are the NI's after success */
			void *acs;
			uint32_t nbuckets;  /* a power of two */
			struct p3_eq *dead; /* CLOSE: freed queues, as for EQ_FREE */
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
			ptl_md_t old; /* UPDATE: out, with the elements' place given */
		};
		struct {
			struct p3_evq_ring *ring;
			struct p3_event_record *rec; /* ALLOC: the ring's records, */
			uint64_t start;              /* prepared for this number */
			ptl_eq_handler_t handler;
			struct p3_eq *dead; /* a list of freed queues; FREE: out, RECLAIM:
					     * in */
			uint32_t n;
		} eq;
		struct {
			struct p3_move move;
			const void *bytes; /* INJECT */
		};
		struct {
			uint32_t pt_index;
			bool on;
		} pt_hold;
		struct p3_poll poll; /* but the queue and the slots; no time: take back */
		struct {
			char *text; /* out, ends with a zero byte */
			size_t size;
			uint32_t pt_index;
		} dump;
		struct {
			void *chunk;
			uint64_t life; /* the life that the chunk belongs to */
		} grow;
		struct p3_peer_info *peer;
		struct p3_on_hold held; /* out */
		const uint64_t *coming;
		struct p3_listed *listed; /* in; out: the former list */
		struct {
			void (*run)(struct p3_nic *n, void *arg);
			void *arg;
		} cci;
	};
};

/* Begin a command about the object with this handle.  Its own parameters are not set: a
 * command is large, and each one has few of them. */
static inline void p3_cmd_begin(struct p3_cmd *c, enum p3_op op, uint64_t handle)
{
	c->op = (uint16_t)op;
	c->ni = (uint16_t)p3_handle_ni(handle);
	c->flag = c->trace = 0;
	c->handle = handle;
	c->handle_out = 0;
}

/*
 * Execute a command and return its PTL_* code.  Add memory to the NIC's tables when the
 * command needs it (PTL_NO_SPACE when there is none).  This waits at most until the
 * lease holder has finished its pass.
 */
int p3_nic_do(struct p3_nic *nic, struct p3_cmd *cmd);

/*
 * Do as p3_nic_do() with a put that wants no ACK, if nothing about it is unusual.  Else
 * return false, having done nothing.  pt_index has 16 bits.
 */
bool p3_nic_put(struct p3_nic *nic, uint64_t md_handle, const struct p3_move *move);
/* Do the same on a node that has peers on other hosts; on others return false. */
bool p3_nic_put_wired(struct p3_nic *nic, uint64_t md_handle, const struct p3_move *move);
/* Do the same with INJECT, for at most PTLX_INJECT_MOST bytes. */
bool p3_nic_inject(struct p3_nic *nic, uint64_t ni_handle, const void *bytes,
	const struct p3_move *move);
/* Do the same with a put that wants an ACK, and with a get. */
bool p3_nic_put_acked(struct p3_nic *nic, uint64_t md_handle, const struct p3_move *move);
bool p3_nic_get(struct p3_nic *nic, uint64_t md_handle, const struct p3_move *move);
/* Do the same with an atomic operation: a put, or an exchange. */
bool p3_nic_atomic(
	struct p3_nic *nic, uint64_t md_handle, const struct p3_move *move, bool fetch);

/*
 * Do as p3_nic_do() does with ME_ATTACH, ME_UNLINK, MD_ATTACH, MD_BIND and MD_UNLINK, if
 * nothing about it is unusual.  Else return false, having done nothing.  handle_out and
 * md_out may be NULL.
 */
bool p3_nic_me_attach(struct p3_nic *nic, uint64_t ni_handle,
	const struct p3_cmd_me *what, uint64_t *handle_out);
/* An entry and a descriptor in one step, if test_eq is PTL_EQ_NONE or at rest. */
bool p3_nic_memd_attach(struct p3_nic *nic, uint64_t ni_handle,
	const struct p3_cmd_me *what, const ptl_md_t *md, bool unlink, uint64_t test_eq,
	uint64_t *handle_out, uint64_t *md_out);
bool p3_nic_me_unlink(struct p3_nic *nic, uint64_t handle);
bool p3_nic_md_attach(struct p3_nic *nic, uint64_t me_handle, const ptl_md_t *what,
	bool unlink, uint64_t *handle_out);
bool p3_nic_md_bind(struct p3_nic *nic, uint64_t ni_handle, const ptl_md_t *what,
	bool unlink, uint64_t *handle_out);
bool p3_nic_md_unlink(struct p3_nic *nic, uint64_t handle);

/* Return true in a signal handler that has interrupted a call of the library. */
bool p3_nic_interrupts(void);

/*
 * Open interface ni with these limits (all checked by the caller) and pid; cray: gets
 * and automatic unlinks behave as on a Cray XT.  Close an interface with all its
 * objects, and forget its operations under way.  Return a PTL_* code.
 */
int p3_nic_ni_open(struct p3_nic *nic, uint32_t ni, uint32_t pid, bool cray,
	const ptl_ni_limits_t *limits, uint64_t *handle_out);
int p3_nic_ni_close(struct p3_nic *nic, uint64_t handle);

/* Make an event queue of n >= 1 events; the ring's memory is the NIC's.  Free one.
 * Return a PTL_* code. */
int p3_nic_eq_alloc(struct p3_nic *nic, uint64_t ni_handle, ptl_size_t n,
	ptl_eq_handler_t handler, uint64_t *handle_out);
int p3_nic_eq_free(struct p3_nic *nic, uint64_t handle);

/* Get the descriptor of a queue, as PtlXEQDescriptor(); arm it, as PtlXEQArm(). */
int p3_nic_eq_descriptor(struct p3_nic *nic, uint64_t handle, int *fd_out);
int p3_nic_eq_arm(struct p3_nic *nic, uint64_t handle);
/* Tell tools the wait of a library in a queue, as PtlXWaitsFor(). */
int p3_nic_waits_for(struct p3_nic *nic, uint64_t handle, const ptlx_wait_t *wait);

/* The program serves its interfaces from now on: mark them as settled
 * (nic/proto/proto.h). */
void p3_nic_attend(struct p3_nic *nic);

/* Run passes in this thread, for ns at most, until one finds nothing to do. */
void p3_nic_progress(struct p3_nic *nic, uint64_t ns);

/* Read the oldest unread event without taking it.  The codes are those of
 * p3_nic_eq_poll without waiting. */
int p3_nic_eq_peek(struct p3_nic *nic, uint64_t handle, ptl_event_t *event_out);

/*
 * Take the next event of a queue, without waiting or without a limit of the time.  Return
 * PTL_OK, PTL_EQ_DROPPED, PTL_EQ_EMPTY or PTL_EQ_INVALID.  The queue's handler has been
 * called with a copy, while this thread held neither the lease nor a lock.
 */
int p3_nic_eq_get(struct p3_nic *nic, uint64_t handle, ptl_event_t *event_out);
int p3_nic_eq_wait(struct p3_nic *nic, uint64_t handle, ptl_event_t *event_out);

/* Take the next event of any of n queues of one interface, waiting up to ns (0: one look;
 * UINT64_MAX: no limit); n is not 0.  *which_out is the
 * queue's index if there is an event. */
int p3_nic_eq_poll(struct p3_nic *nic, const uint64_t *handles, uint32_t n, uint64_t ns,
	ptl_event_t *event_out, int *which_out);

/* ---- peers ---- */

enum p3_peer_end { P3_PEER_LEFT, P3_PEER_DIED };

/* The description of a node, from a BORN of yod or of a member of the domain (shm/job.h).
 * The descriptors stay the caller's. */
struct p3_peer_info {
	uint32_t node;
	uint32_t nid;
	uint32_t pid[P3_JOB_NIS];
	uint32_t uid;
	uint32_t jid;
	uint32_t os_pid;
	uint32_t rank; /* with job_ranks: its rank in the own job, or P3_JOB_NO_RANK */
	uint32_t end;  /* PEER_DOWN: p3_peer_end */
	bool now;      /* PEER_DOWN: see p3_nic_peer_down */
	bool any;      /* PEER_DOWN: any incarnation */
	bool apart;    /* see p3_nic_peer_expect */
	uint64_t incarnation;
	uint64_t seg_len;
	uint64_t heap_len; /* 0: it has none */
	int published;
	int doorbell;
	int heap;
	void *base;       /* mapped by p3_nic_peer_up; NULL: only expected */
	const void *page; /* the page of it with the part for this node, mapped once
			   * more, or NULL */
	void *doorbell_at;
	struct p3_heap_view view; /* of its shared heap */
	/* a node on another host: the name of its endpoint */
	uint32_t far_len;
	unsigned char far_name[P3_FAR_NAME];
};

/* Add a peer.  Return -EPROTO if its segment is not of this build (after printing a
 * line), or is no segment. */
int p3_nic_peer_up(struct p3_nic *nic, struct p3_peer_info *info);
/*
 * Note a peer that exists but is not mapped: its messages wait for p3_nic_peer_up().
 *
 * With info.apart no thread has tried to map it.  The first time that this node has a
 * request for the peer, the NIC calls conf.meet(arg, node) under the same rules as
 * conf.ask: p3_nic_peer_up() or p3_nic_peer_down() shall follow.  A peer that has this
 * node's descriptors may have sent to it, so p3_nic_peer_up() comes before its end.
 */
void p3_nic_peer_expect(struct p3_nic *nic, struct p3_peer_info *info);
void p3_nic_peer_pids(struct p3_nic *nic, struct p3_peer_info *info);
/* Show to tools when the host of a peer was last heard (p3_now_ns()). */
void p3_nic_peer_heard(struct p3_nic *nic, uint32_t node, uint64_t at);
/*
 * Remove a peer.  Return false if a message of the peer waits for this node's interface
 * to settle (nic/proto/proto.h), or if the peer has left and its portal index keeps the
 * message: then call again.  The call succeeds within ten seconds, or at once with
 * info.now, which discards such messages.
 */
bool p3_nic_peer_down(struct p3_nic *nic, struct p3_peer_info *info);

/*
 * Answer a question.  A target that this node does not know, or that has left, may have
 * come all the same: the news is on its way, and a peer that has it already was faster.
 * So a request for that target waits, and the NIC calls conf.ask(arg, question) with
 * the lease held: it must not block, nor take locks.  The answer is this call, made
 * when p3_nic_peer_up() and p3_nic_peer_pids() have told all births and process ids
 * before the question; a target that is still unknown then does not exist.  An answer
 * counts only if it is to the last question.
 * coming is NULL, or has the bit of each node that lives but has not introduced itself
 * yet: it may be stopped, or have no CPU.  Connects of CCI go on to wait for such a node.
 * Without conf.ask there is no more to hear, and such a request fails at once, as all
 * requests to dead nodes do.
 */
void p3_nic_peer_told(struct p3_nic *nic, uint32_t question, const uint64_t *coming);

/*
 * Fail the requests that were held for conf.hold_ns, and report the others.  A request
 * for a node that has yet to join is held: for a rank of the job that has not come, or
 * for a process of p3_nic_list().  It is sent when that node joins.  It fails when the
 * node has ended, by p3_nic_peer_over() or p3_nic_peer_down(), or after conf.hold_ns.
 * If the node joins without the pid that a request is for, the NIC asks as above whether
 * another node has that pid.
 * Held requests to one node delay none to others.  They take at most half of the memory
 * for pendings: then the next call returns PTL_NO_SPACE.
 *
 * The NIC calls conf.hold(arg) when it holds the first request, under the same rules as
 * conf.ask.  From then on its owner calls p3_nic_held() from time to time.
 */
void p3_nic_held(struct p3_nic *nic, struct p3_on_hold *held_out);
/* A rank of the job (info.node; info.nid) has ended and may never have joined. */
void p3_nic_peer_over(struct p3_nic *nic, struct p3_peer_info *info);
/* In a domain: set the ids of processes that may come.  The list is from malloc, and
 * the NIC's from now on. */
void p3_nic_list(struct p3_nic *nic, struct p3_listed *listed);

/* ---- looking from outside ---- */

uint64_t p3_nic_counter(struct p3_nic *nic, enum p3_counter c);
uint32_t p3_nic_job_alive(struct p3_nic *nic); /* those of the own job */

#endif
