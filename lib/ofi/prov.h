/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prov.h - the objects of the libfabric provider, and the functions that its files share
 *
 * The provider calls the public functions of Portals only.  A process has one interface,
 * which all domains share (ofi_node); endpoints and domains have numbers in it.
 *
 * Events.  A queue of Portals (struct ofi_queue) belongs to a completion queue, a
 * counter, or a list of late messages.  The user_ptr of each descriptor names a sink;
 * the reader of an event calls the function of its sink.  Sinks are
 *	a request	its own entries: a posted receive, the exposed bytes of a send
 *	an op		a whole-space descriptor that one request borrows
 *	a block		unexpected messages (late.c)
 *	a queue		the whole-space descriptor of short sends: the header data is the
 *			serial number of the request
 * A sink that finds its request at an end calls ofi_complete(), which counts and writes
 * the completion, and then ofi_req_free().
 *
 * Locks.  Each call enters its domain (ofi_enter), which takes the domain's lock if the
 * program uses several threads; the lease of Portals admits one thread at a time anyway.
 * The lock protects all objects of the domain.  No thread holds it while it sleeps.  The
 * mutex of ofi_node comes first, or is only tried; that of an EQ comes last.
 *
 * Credits.  A queue never overflows, since each event that may come has its place:
 * OFI_POSTED for receives, OFI_SENDS for short sends, and two for each op.  The gets of
 * the provider itself (enum ofi_ops) have ops of their own: what the program has under
 * way may end only by them.
 */
#ifndef OFI_PROV_H
#define OFI_PROV_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <portals3.h>
#include <portals3x.h>

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

/* tests/fault compiles these files with points (shm/fault.h) where another process can
 * see a step half done. */
#ifndef FAULT_POINT
#define FAULT_POINT(text) ((void)0)
#endif

#pragma GCC visibility push(hidden)

#define OFI_NAME        "portals"
#define OFI_PROTOCOL    (FI_PROV_SPECIFIC | 0x5033u)
#define OFI_LIKELY(x)   __builtin_expect(!!(x), 1)
#define OFI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define OFI_RARE        __attribute__((cold, noinline))
#define OFI_SLOW        __attribute__((noinline))
#define OFI_FAST        __attribute__((flatten)) /* what it calls is part of it */
#define OFI_MAX_MSG     ((size_t)1 << 40)
#define OFI_TAG_FORMAT  0x00aaaaaaaaaaaaaaull

/* Match bits of messages, and their header data. */
#define OFI_EXPOSED      (1ull << 63) /* the sender keeps the bytes until the end */
#define OFI_HAS_DATA     (1ull << 62)
#define OFI_SOURCE_SHIFT 56
#define OFI_SOURCE_MASK  (63ull << OFI_SOURCE_SHIFT)
#define OFI_TAG_MASK     ((1ull << OFI_SOURCE_SHIFT) - 1)
#define OFI_DATA_SHIFT   32
/* Match bits of gets of exposed bytes: the serial number, and perhaps this. */
#define OFI_REFUSED (1ull << 32) /* the receiver's endpoint is closed */

/* Portal indexes. */
enum {
	OFI_PT_SYSTEM = 0, /* questions whether the process lives, and its own wakes */
	OFI_PT_EXPOSED = 1,
	OFI_PT_RMA = 8,       /* + 2 * domain; one more: RMA with data */
	OFI_PT_MESSAGES = 64, /* + 2 * endpoint; one more: tagged messages */
	OFI_PT_LAST = 255
};

enum {
	OFI_DOMAINS = 16,
	OFI_ENDPOINTS = 64,
	OFI_SLEEPS = 2 * OFI_ENDPOINTS + 3, /* queues in which one thread sleeps */
	OFI_IOVS = 8,
	OFI_INJECT = 1536,
	OFI_ATOMIC = 64, /* bytes of an atomic operation, at most */
	OFI_ENTRIES = 131072,
	OFI_EVENTS = 8192, /* of a queue */
	OFI_POSTED = 4096,
	OFI_SENDS = 1024,
	OFI_OPS = 1024,
	OFI_FETCHES = 32,
	OFI_QUESTIONS = 472,
	OFI_TURNS = 64,      /* reads between two looks at late messages */
	OFI_PERIOD_MS = 500, /* three between two looks whether a silent peer lives */
	OFI_NEWS = 8 /* events of a queue of news: one at a time, and that of its start */
};

_Static_assert(
	OFI_POSTED + OFI_SENDS + 2 * (OFI_OPS + OFI_FETCHES + OFI_QUESTIONS) + OFI_NEWS <
		OFI_EVENTS,
	"each event has its place, and those of messages of a queue to itself");

/* Kinds of a list, with their capabilities, and of the counters of an endpoint. */
enum { OFI_MSG, OFI_TAGGED, OFI_LISTS };
static const uint64_t ofi_kinds[OFI_LISTS] = {FI_MSG, FI_TAGGED};
enum {
	OFI_CNTR_SEND,
	OFI_CNTR_RECV,
	OFI_CNTR_READ,
	OFI_CNTR_WRITE,
	OFI_CNTR_REMOTE_READ,
	OFI_CNTR_REMOTE_WRITE,
	OFI_CNTRS
};

/* ---- names and objects ---- */

/* An address as programs see it, 16 bytes. */
struct ofi_name {
	uint16_t magic;
	uint8_t version;
	uint8_t endpoint;
	uint8_t domain;
	uint8_t zero[3];
	uint32_t nid;
	uint32_t pid;
};

static const ptl_process_id_t ofi_anyone = {PTL_NID_ANY, PTL_PID_ANY};

static inline bool ofi_is_same(ptl_process_id_t a, ptl_process_id_t b)
{
	return a.pid == b.pid && a.nid == b.nid;
}

struct ofi_fabric {
	struct fid_fabric fid;
	int refs;
};

/* The receiver of the events of a descriptor, whose user_ptr names it. */
struct ofi_sink {
	void (*event)(struct ofi_sink *sink, const ptl_event_t *event);
};

struct ofi_req;

/* Operations by the pool of their ops: those of the program, gets of the bytes of late
 * messages, which use the program's ops while there are some, and gets that ask whether a
 * peer lives. */
enum ofi_ops { OFI_OF_PROGRAM, OFI_OF_FETCH, OFI_OF_QUESTION, OFI_POOLS };

/* A pool of ops. */
struct ofi_pool {
	struct ofi_op *free;
	int left; /* ops that may still be made */
};

/* A whole-space descriptor for operations whose events do not carry a serial number: puts
 * with ACK, and gets.  A request that needs the descriptor of an iovec has its own. */
struct ofi_op {
	struct ofi_sink sink;
	struct ofi_queue *queue;
	struct ofi_pool *pool;
	struct ofi_req *req;
	ptl_handle_md_t md;
	bool own; /* md is of an iovec, and ends with the request */
	struct ofi_op *next, *made;
};

/* A queue of Portals, and the descriptors that may put events there. */
struct ofi_queue {
	struct ofi_sink sink; /* of md */
	struct ofi_domain *domain;
	ptl_handle_eq_t eq;
	ptl_seq_t read; /* sequence of the event that was handled last */
	bool started;   /* read is known */
	int sleepers;   /* threads that may have taken an event */
	int asleep;     /* those of them that are in PtlEQPoll */
	bool has_early;
	ptl_event_t early;
	uint64_t lost; /* events that the queue had no room for */
	ptl_handle_md_t md;
	int posted; /* credits that are left for receives, and for short sends */
	int sends;
	struct ofi_pool pools[OFI_POOLS];
	struct ofi_op *made;        /* all ops */
	unsigned pings, pings_seen; /* messages to itself, and their events */
	bool waking;                /* one is on its way (ofi_queue_wake) */
	bool armed;                 /* the program sleeps on its descriptor at times */
};

TAILQ_HEAD(ofi_reqs, ofi_req);

struct ofi_domain {
	struct fid_domain fid;
	struct ofi_fabric *fabric;
	struct ofi_eq *eq;
	pthread_mutex_t lock;
	bool safe; /* take the lock */
	int refs;
	unsigned number;
	unsigned reads;           /* ofi_progress */
	LIST_HEAD(, ofi_ep) eps;  /* that are enabled */
	LIST_HEAD(, ofi_ep) made; /* all */
	struct ofi_req **chunks;  /* requests; their serial numbers name their places */
	uint32_t nchunks;
	struct ofi_reqs free;
	struct ofi_reqs watched; /* exposed messages, whose peers may die in silence */
	unsigned period;         /* number, and end in ms (ofi_watch) */
	uint64_t period_ends;
	struct ofi_reqs asks; /* questions to those peers, without answer so far */
	int waiting;         /* receives that wait for credits, an op, or late messages */
	struct ofi_mrs *mrs; /* regions */
	struct ofi_queue *data; /* completions with data of all endpoints, or NULL */
};

struct ofi_peer {
	ptl_process_id_t id;
	uint8_t endpoint;
	uint8_t domain;
	bool live;
	bool met; /* a message has left for it: its process has joined the job */
};

struct ofi_av {
	struct fid_av fid;
	struct ofi_domain *domain;
	struct ofi_eq *eq; /* insertions are told there, if tells */
	bool tells;
	int refs;
	struct ofi_peer *peers; /* by fi_addr_t */
	size_t used, room;
	size_t *slots; /* hash of peers: index + 1, or 0 */
	size_t nslots;
	size_t removed; /* places of peers that are free again */
};

/* A completion that waits in a ring, as another object's read has taken its event. */
struct ofi_entry {
	struct fi_cq_tagged_entry e;
	fi_addr_t source;
};

struct ofi_error {
	struct fi_cq_err_entry e;
	fi_addr_t source;
	STAILQ_ENTRY(ofi_error) next;
};

struct ofi_cq {
	struct fid_cq fid;
	struct ofi_queue queue;
	struct ofi_domain *domain;
	int refs;
	enum fi_cq_format format;
	enum fi_wait_obj wait;
	int set;   /* FI_WAIT_FD: an epoll set of the descriptors of its queues, or -1 */
	int timer; /* in there, or -1 */
	bool knows_data; /* that of the domain's queue is in there */
	size_t stride;   /* bytes of an entry of this format */
	char *out;       /* the array of the call that reads the queue now */
	fi_addr_t *out_source;
	size_t out_left;
	struct ofi_entry *ring;
	size_t ring_room, ring_head, ring_used;
	STAILQ_HEAD(, ofi_error) errors;
	struct ofi_queue news; /* wakes sleepers for entries in ring and errors */
	bool signalled; /* by fi_cq_signal, when a thread may have been on its way here */
	unsigned signals; /* their number */
	int signal_left;  /* threads in fi_cq_sread that the last one has yet to end */
	unsigned reads;
	bool broken;         /* completions were lost */
	bool busy;           /* the last read had a completion, */
	uint64_t drained_at; /* when it left no other one that it saw, in ticks; or 0 */
	int readers;         /* threads in fi_cq_sread */
	/* silence.c: */
	bool told;             /* tools know of a wait */
	uint32_t empty;        /* reads that found nothing */
	uint64_t silent_since; /* ms, roughly; 0: the last read found some */
	uint64_t told_at;      /* ms */
};

/* A thread that waits for a counter. */
struct ofi_waiter {
	uint64_t threshold, errors;
	LIST_ENTRY(ofi_waiter) next;
};

/* A queue whose events a counter counts, with the number of reasons: each is a kind of
 * operations of an endpoint. */
struct ofi_counted {
	struct ofi_queue *queue;
	int reasons;
};

struct ofi_cntr {
	struct fid_cntr fid;
	struct ofi_domain *domain;
	int refs;
	uint64_t value, errors;
	uint64_t given; /* the part of their sum that the program has added, or set */
	enum fi_wait_obj wait;
	struct ofi_counted *queues; /* of the endpoints that it is bound to, each once */
	int nqueues;
	struct ofi_queue remote; /* of remote operations (mr.c), if it is open */
	struct ofi_queue news;   /* wakes the threads that wait, whatever counts */
	LIST_HEAD(, ofi_waiter) waiters;
};

struct ofi_eq {
	struct fid_eq fid;
	struct ofi_fabric *fabric;
	int refs;
	pthread_mutex_t lock;
	pthread_cond_t news;
	bool may_write; /* the program */
	int readers;    /* threads in fi_eq_sread */
	enum fi_wait_obj wait;
	int fd; /* FI_WAIT_FD: an eventfd, not 0 while there are entries; or -1 */
	STAILQ_HEAD(, ofi_eq_entry) entries;
};

/* ---- endpoints and requests ---- */

/* A message that no posted receive took. */
struct ofi_late {
	uint64_t bits, hdr;
	ptl_process_id_t from;
	size_t len;
	ptl_seq_t link; /* of its events */
	bool ready;     /* END was seen */
	ptl_ni_fail_t fail;
	struct ofi_block *block; /* where its bytes lie; NULL: exposed, or in the heap */
	char *bytes;
	struct ofi_req *taker; /* the receive that gets it */
	void *context;         /* of FI_CLAIM */
	struct ofi_late *next_free;
	TAILQ_ENTRY(ofi_late) next;    /* arrived or claimed */
	TAILQ_ENTRY(ofi_late) arrival; /* arriving */
	LIST_ENTRY(ofi_late) in_block;
};

TAILQ_HEAD(ofi_lates, ofi_late);

/* The match list of an endpoint for messages or tagged messages (late.c, rx.c). */
struct ofi_list {
	struct ofi_ep *ep; /* NULL: the endpoint does not receive such messages */
	ptl_pt_index_t index;
	ptl_handle_me_t mark;  /* behind the posted receives */
	ptl_handle_me_t rest;  /* behind the blocks */
	struct ofi_queue late; /* events of late messages */
	struct ofi_block *blocks;
	int full;     /* blocks that are not posted */
	bool closing; /* none is posted again */
	void *memory;
	struct ofi_late *free;
	struct ofi_lates arrived; /* that no receive has taken, in the order of arrival */
	struct ofi_lates arriving; /* START was seen, END was not */
	struct ofi_lates claimed;
	struct ofi_reqs posted;   /* in the firmware */
	struct ofi_reqs waiting;  /* behind them */
	struct ofi_reqs stalled;  /* have a long late message, and wait for an op */
	struct ofi_reqs canceled; /* buffers for many messages that events may yet name */
	/* A message has begun to arrive; that which a receive took is ready (rx.c). */
	void (*offer)(struct ofi_list *list, struct ofi_late *late);
	void (*ready)(struct ofi_req *taker);
	/* Handle events, and go on with what waits. */
	void (*settle)(struct ofi_list *list);
};

struct ofi_ep {
	struct fid_ep fid;
	struct ofi_domain *domain;
	struct ofi_av *av;
	struct ofi_eq *eq;
	struct ofi_cq *tx_cq, *rx_cq;
	struct ofi_queue *tx, *rx; /* of the CQs, or own */
	bool enabled;
	struct ofi_queue own[2]; /* of an endpoint that has counters only */
	struct ofi_cntr *cntrs[OFI_CNTRS];
	uint64_t tx_flags, rx_flags; /* op_flags */
	bool tx_selective, rx_selective;
	uint64_t caps;
	unsigned number;
	uint64_t source; /* number, as match bits */
	size_t min_multi_recv;
	int under_way; /* requests of sends and RMA that Portals still works on */
	struct ofi_list lists[OFI_LISTS];
	LIST_ENTRY(ofi_ep) next, made; /* of the domain */
};

/*
 * An operation under way.  The functions of its file give event and the union a meaning;
 * the rest is the same for all.
 */
struct ofi_req {
	struct ofi_sink sink;
	struct ofi_ep *ep; /* NULL: free */
	uint32_t serial;   /* domain, generation, place */
	void *context;     /* this and what follows, to link, are 0 at first */
	uint64_t flags;    /* of the completion: FI_SEND | FI_TAGGED, ... */
	uint8_t cntr;      /* OFI_CNTR_* */
	bool silent;       /* a success gives no completion (it counts) */
	bool sent;         /* SEND_END was seen */
	bool ended;        /* ACK, GET_END or REPLY_END was seen */
	bool is_watched;
	int err; /* FI_E*, and ni_fail_type */
	int prov_errno;
	ptl_handle_me_t me; /* of a posted receive, or of exposed bytes */
	struct ofi_op *op;
	unsigned due; /* period in which to look whether the peer lives */
	ptl_process_id_t peer;
	TAILQ_ENTRY(ofi_req) link; /* free, posted, waiting, stalled */
	TAILQ_ENTRY(ofi_req) watch;
	union {
		struct { /* rx.c, late.c */
			struct ofi_list *list;
			uint64_t bits, ignore;
			struct iovec iov[OFI_IOVS];
			size_t count, len;
			struct ofi_late
				*late; /* taken, still arriving or being fetched */
			bool discards; /* the message; there is no completion */
			bool multi;    /* a buffer for many messages: */
			bool over;     /* it takes no more of them */
			int credits;   /* of events that may come */
			int pieces;    /* late messages on their way into it */
			struct ofi_req *whole; /* a late message's buffer for many */
		} rx;
		struct {            /* tx.c */
			void *copy; /* of an injected message that is exposed, or NULL */
			fi_addr_t addr; /* of the target of a short message */
		} tx;
		struct { /* rma.c, atomic.c: a part of an operation */
			struct ofi_req
				*whole; /* the first part; the next three are its */
			int parts;      /* that are under way */
			int err;
			bool over;  /* this part */
			char *copy; /* of injected bytes, or NULL */
			char *here;
			size_t len;
			uint64_t there, key;
			size_t size; /* bytes of an element of an atomic operation */
			struct fi_ioc results[OFI_IOVS];
			size_t result_count;
			char operands[OFI_ATOMIC], fetched[OFI_ATOMIC];
		} rma;
	};
};

/* ---- prov.c, info.c ---- */

extern struct fi_provider ofi_provider;

/* Settings, as fi_info -e lists them. */
struct ofi_settings {
	size_t eager;      /* bytes; longer messages are fetched by the receiver */
	size_t unexpected; /* bytes for unexpected messages of a list */
};
extern struct ofi_settings ofi_settings;

int ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	const struct fi_info *hints, struct fi_info **info);

#define OFI_TX_CAPS                                                                      \
	(FI_MSG | FI_TAGGED | FI_SEND | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE)
#define OFI_RX_CAPS                                                                      \
	(FI_MSG | FI_TAGGED | FI_RECV | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE |   \
		FI_RMA | FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_RMA_EVENT)
#define OFI_DOMAIN_CAPS (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define OFI_TX_FLAGS                                                                     \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |         \
		FI_DELIVERY_COMPLETE)
#define OFI_RX_FLAGS (FI_COMPLETION | FI_MULTI_RECV)
#define OFI_MSG_ORDER                                                                    \
	(FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |                      \
		FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW)

/* Define a function that refuses.  libfabric calls through its tables without a test, so
 * each table is complete; only that of the collective operations may be missing. */
/* clang-format off */
#define OFI_NO(type, name, ...)                                                          \
	_Pragma("GCC diagnostic push")                                                   \
	_Pragma("GCC diagnostic ignored \"-Wunused-parameter\"")                         \
	static type name(__VA_ARGS__)                                                    \
	{                                                                                \
		return -FI_ENOSYS;                                                       \
	}                                                                                \
	_Pragma("GCC diagnostic pop")

OFI_NO(inline int, ofi_no_bind, struct fid *fid, struct fid *bfid, uint64_t flags)
OFI_NO(inline int, ofi_no_control, struct fid *fid, int command, void *arg)
OFI_NO(inline int, ofi_no_ops_open, struct fid *fid, const char *name, uint64_t flags,
	void **ops, void *context)
OFI_NO(inline int, ofi_no_tostr, const struct fid *fid, char *buf, size_t len)
OFI_NO(inline int, ofi_no_ops_set, struct fid *fid, const char *name, uint64_t flags,
	void *ops, void *context)
/* clang-format on */

/* The table that each object has: its close, bind and control, and nothing else. */
#define OFI_FID_OPS(close_fn, bind_fn, control_fn)                                       \
	{                                                                                \
		.size = sizeof(struct fi_ops), .close = close_fn, .bind = bind_fn,       \
		.control = control_fn, .ops_open = ofi_no_ops_open,                      \
		.tostr = ofi_no_tostr, .ops_set = ofi_no_ops_set,                        \
	}

/* ---- fabric.c, domain.c, name.c, av.c ---- */

int ofi_fabric_open(
	struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

/* The interface of the process. */
struct ofi_node {
	pthread_mutex_t lock; /* of the next three, and of references */
	unsigned domains;     /* numbers in use */
	uint64_t endpoints;
	struct ofi_domain *open[OFI_DOMAINS];
	bool forked; /* this process is a child of the one that opened the interface */
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	ptl_ac_index_t ac;     /* of all requests */
	ptl_handle_md_t quiet; /* whole space, without events */
};
extern struct ofi_node ofi_node;
extern _Thread_local bool ofi_starts; /* this thread is inside PtlNIInit */

/* The least and largest address of whole-space descriptors. */
#define OFI_SPACE_BASE ((uintptr_t)4096)
#define OFI_SPACE_END  (((uintptr_t)1 << 47) - 4096)

int ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info,
	struct fid_domain **domain, void *context);
int ofi_endpoint_number(unsigned *number); /* 0, -FI_EMFILE */
void ofi_endpoint_number_free(unsigned number);
/* Let messages for an endpoint that nothing accepts wait; or drop them. */
void ofi_messages_wait(unsigned endpoint, int kind, bool on);

static inline ptl_size_t ofi_offset(const void *address)
{
	return (uintptr_t)address - OFI_SPACE_BASE;
}

/* Begin a call.  Return 0, or -FI_EOPBADSTATE in a forked child. */
static inline int ofi_enter(struct ofi_domain *domain)
{
	if (OFI_UNLIKELY(ofi_node.forked))
		return -FI_EOPBADSTATE;
	if (domain->safe)
		pthread_mutex_lock(&domain->lock);
	return 0;
}

/* Begin a call; return from it if that fails. */
#define OFI_ENTER(domain)                                                                \
	do {                                                                             \
		int rc_ = ofi_enter(domain);                                             \
		if (OFI_UNLIKELY(rc_))                                                   \
			return rc_;                                                      \
	} while (0)

static inline void ofi_leave(struct ofi_domain *domain)
{
	if (domain->safe)
		pthread_mutex_unlock(&domain->lock);
}

/* Check the vector of a call, and add up its lengths: 0, -FI_EINVAL or -FI_EMSGSIZE. */
static inline int ofi_iov_length(const struct iovec *iov, size_t count, size_t *length)
{
	size_t room = OFI_MAX_MSG;
	if (OFI_UNLIKELY(count > OFI_IOVS || (!iov && count)))
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		if (OFI_UNLIKELY(!iov[i].iov_base && iov[i].iov_len))
			return -FI_EINVAL;
		if (OFI_UNLIKELY(iov[i].iov_len > room))
			return -FI_EMSGSIZE;
		room -= iov[i].iov_len;
	}
	*length = OFI_MAX_MSG - room;
	return 0;
}

/* Let a descriptor of the first piece of a vector be one of all pieces. */
static inline void ofi_describe(ptl_md_t *md, const struct iovec *iov, size_t count)
{
	if (OFI_LIKELY(count <= 1))
		return;
	md->start = (void *)(uintptr_t)iov;
	md->length = count;
	md->options |= PTL_MD_IOVEC;
}

/* References keep an object open: fi_close of one that is used gives -FI_EBUSY. */
static inline int ofi_refer(int *refs, int change)
{
	pthread_mutex_lock(&ofi_node.lock);
	int now = *refs += change;
	pthread_mutex_unlock(&ofi_node.lock);
	return now;
}

static inline void ofi_hold(int *refs)
{
	(void)ofi_refer(refs, 1);
}

static inline void ofi_let_go(int *refs)
{
	(void)ofi_refer(refs, -1);
}

static inline bool ofi_is_held(int *refs)
{
	return ofi_refer(refs, 0) != 0;
}

/* Let other threads, also of other processes, have the lock and the CPU for a moment. */
void ofi_let_others(struct ofi_domain *domain);

struct ofi_name ofi_name_of(ptl_process_id_t id, unsigned endpoint, unsigned domain);
bool ofi_name_is_good(const struct ofi_name *name);
/* Names from node and service; 0 or -FI_E*.  node may be NULL: this host. */
int ofi_name_parse(const char *node, const char *service, struct ofi_name *name);
/* Write the text of a name, as snprintf() does. */
int ofi_name_text(const struct ofi_name *name, char *text, size_t size);

int ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
	void *context);
/* The address of a process's endpoint, or FI_ADDR_NOTAVAIL. */
fi_addr_t ofi_av_find(const struct ofi_av *av, ptl_process_id_t id, unsigned endpoint);

/* Return the peer with this address, or NULL. */
static inline const struct ofi_peer *ofi_av_peer(const struct ofi_av *av, fi_addr_t addr)
{
	if (OFI_UNLIKELY(addr >= av->used || !av->peers[addr].live))
		return NULL;
	return &av->peers[addr];
}

/* Note that a message has left for the peer with this address, unless that is another
 * one's by now. */
void ofi_av_meet(struct ofi_av *av, fi_addr_t addr, ptl_process_id_t id);

/* ---- event.c, cq.c, silence.c, cntr.c, poll.c, eq.c ---- */

/* Return the FI_E* code, negative, of a code of Portals. */
int ofi_error(int ptl);
/* Make the last entry of an index, which accepts all that comes there, and moves no
 * bytes; a code of Portals. */
int ofi_accept(ptl_pt_index_t index, unsigned options, ptl_handle_me_t *me);
/* Make a queue for count events; with OFI_EVENTS also what sends and gets need. */
int ofi_queue_open(struct ofi_queue *queue, struct ofi_domain *domain, unsigned count);
void ofi_queue_close(struct ofi_queue *queue); /* if it is open: domain is not NULL */
/* See that it is known with which number the events begin.  False: not now. */
bool ofi_queue_start(struct ofi_queue *queue);
/* Take one event and give it to its sink.  Return false if there is none. */
bool ofi_queue_step(struct ofi_queue *queue);
/* Handle all events that are in the queue now; the lock may be free for moments.  False:
 * a thread has one of them, and does not come. */
bool ofi_queue_fence(struct ofi_queue *queue);
/* Wait until no thread sleeps in the queue; the lock is free for moments. */
void ofi_queue_quiet(struct ofi_queue *queue);
/* Look at late messages, at receives that wait for them, and at silent peers. */
void ofi_progress_now(struct ofi_domain *domain, bool urgent);
/* Do so now and then, or at once if urgent. */
static inline void ofi_progress(struct ofi_domain *domain, bool urgent)
{
	domain->reads++;
	if (OFI_UNLIKELY(urgent || domain->waiting || domain->reads % OFI_TURNS == 0))
		ofi_progress_now(domain, urgent);
}

/* Wake the threads that sleep in the queue, or on its descriptor. */
void ofi_queue_wake(struct ofi_queue *queue);
/*
 * Sleep until an event of one of the queues has been handled, for timeout ms at most
 * (negative: no limit), or for a while.  The domain is entered; the lock is free
 * meanwhile.  Return false if there was no event.
 */
bool ofi_sleep(struct ofi_domain *domain, struct ofi_queue *const *queues, int count,
	int timeout);
uint64_t ofi_now(void); /* ms, monotonic */

/* Return a new request of the endpoint with all else 0, or NULL: no memory. */
struct ofi_req *ofi_req_new(struct ofi_ep *ep);
void ofi_req_free(struct ofi_req *req); /* with its op, and out of the watched ones */
void ofi_reqs_free(struct ofi_domain *domain); /* the memory of all */
/* Give the request a descriptor that posts to the queue, or return false: none of this
 * use is free.  Its events go to req->sink.  It is of the iovec if count is above 1. */
bool ofi_op_borrow(struct ofi_queue *queue, struct ofi_req *req, const struct iovec *iov,
	size_t count, enum ofi_ops use);
/* Give it back; nothing was begun. */
void ofi_op_return(struct ofi_req *req);
/* From now on look every second or two whether the peer lives that may still fetch the
 * bytes of an exposed message; if not, the sink gets an event with ni_fail_type. */
void ofi_watch(struct ofi_req *req);
void ofi_watch_end(struct ofi_ep *ep); /* forget the answers that are to come */

/*
 * Count an operation of the request's counter, and write its completion: e has what the
 * program reads, without op_context; flags are those of the request and of e.  With
 * e->err it is an error entry.
 */
void ofi_complete(struct ofi_req *req, struct ofi_cq *cq, struct fi_cq_err_entry *e,
	fi_addr_t from);

int ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
	void *context);
/* Prepare to sleep on the descriptor of a queue: 0, or -FI_EAGAIN: read it. */
int ofi_cq_trywait(struct ofi_cq *cq);
/* Make progress, and return true if the queue is not empty; the domain is entered. */
bool ofi_cq_peek(struct ofi_cq *cq);
/* Write a completion, or an error if e->err. */
void ofi_cq_add(struct ofi_cq *cq, const struct fi_cq_err_entry *e, fi_addr_t source);

/* Nothing has come: if that lasts, tell tools for which message a receive waits.
 * The domain is entered, as for the next one. */
void ofi_silence(struct ofi_cq *cq);
/* Something has come, or no receive waits: take back the wait that was told. */
void ofi_silence_end(struct ofi_cq *cq);

int ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
	struct fid_cntr **cntr, void *context);
/* From now on, and no longer, events of this queue may count.  Each endpoint tells. */
int ofi_cntr_watch(struct ofi_cntr *cntr, struct ofi_queue *queue);
void ofi_cntr_unwatch(struct ofi_cntr *cntr, struct ofi_queue *queue);

/* Wake a thread that sleeps although the counter has reached its threshold. */
void ofi_cntr_wake(struct ofi_cntr *cntr);
/* Make progress, and return the operations that have been counted, good and bad ones,
 * without those that the program itself has added; the domain is entered. */
uint64_t ofi_cntr_counted(struct ofi_cntr *cntr);

/* Count an operation, in the entered domain. */
static inline void ofi_cntr_count(struct ofi_cntr *cntr, int err)
{
	if (!cntr)
		return;
	++*(err ? &cntr->errors : &cntr->value);
	if (OFI_UNLIKELY(cntr->news.asleep))
		ofi_cntr_wake(cntr);
}

/* Open a poll set (poll.c). */
int ofi_poll_open(
	struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **poll);

int ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
	void *context);
/* Bind an event queue to an object that has none so far, or return -FI_E*. */
int ofi_eq_bind(struct ofi_eq **eq, struct fid *fid, uint64_t bad_flags);
/* The same as ofi_cq_trywait. */
int ofi_eq_trywait(struct ofi_eq *eq);
/* Return true if objects have this kind of wait object; fd: they may have descriptors. */
static inline bool ofi_wait_is_known(enum fi_wait_obj wait, bool fd)
{
	return wait == FI_WAIT_NONE || wait == FI_WAIT_UNSPEC || wait == FI_WAIT_YIELD ||
	       (wait == FI_WAIT_FD && fd);
}

/* fi_control of an object with this kind of wait object, and its descriptor or -1. */
int ofi_wait_control(enum fi_wait_obj wait, int fd, int command, void *arg);
/* Tell of the insertion of count names into an address vector.  0 or -FI_ENOMEM. */
int ofi_eq_av(struct ofi_eq *eq, struct fid *fid, void *context, uint64_t count);

/* ---- ep.c, tx.c, rx.c, late.c ---- */

/* Return a message without a tag as one with the tag 0, as calls of both kinds are. */
static inline struct fi_msg_tagged ofi_untagged(const struct fi_msg *m)
{
	return (struct fi_msg_tagged){
		.msg_iov = m->msg_iov,
		.iov_count = m->iov_count,
		.addr = m->addr,
		.context = m->context,
		.data = m->data,
	};
}

int ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
	void *context);
int ofi_ep_open2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
	uint64_t flags, void *context);
extern struct fi_ops_msg ofi_msg_ops;
extern struct fi_ops_tagged ofi_tagged_ops;
ssize_t ofi_cancel(fid_t fid, void *context);

ssize_t ofi_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t addr,
	void *context);
ssize_t ofi_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t addr, void *context);
ssize_t ofi_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
ssize_t ofi_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t addr,
	uint64_t tag, uint64_t ignore, void *context);
ssize_t ofi_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	fi_addr_t addr, uint64_t tag, uint64_t ignore, void *context);
ssize_t ofi_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);

/* Make a list, kind OFI_MSG or OFI_TAGGED, that takes messages from now on. */
int ofi_list_open(struct ofi_list *list, struct ofi_ep *ep, int kind);
/* Remove the posted receives.  Return false if messages still come into some. */
bool ofi_list_withdraw(struct ofi_list *list);
/* After that and ofi_late_withdraw(), with no event left in ep->rx. */
void ofi_list_close(struct ofi_list *list);

/* The part of a list for late messages. */
int ofi_late_open(struct ofi_list *list);
/* Take no more messages.  Return false if some still come. */
bool ofi_late_withdraw(struct ofi_list *list);
void ofi_late_close(struct ofi_list *list);
/* Handle all events of late messages.  Return false if there were none. */
bool ofi_late_drain(struct ofi_list *list);
/* The message, which is in no list of messages any more, is over. */
void ofi_late_free(struct ofi_list *list, struct ofi_late *late);

/* End an exposed message whose bytes nobody fetches now, as the endpoint is closed. */
void ofi_tx_withdraw(struct ofi_req *req);
/* Handle all events of an endpoint that has no room for an operation. */
void ofi_tx_full(struct ofi_ep *ep);

/* Return the flags of calls that begin an operation without flags. */
static inline uint64_t ofi_tx_flags(const struct fid_ep *fid)
{
	return container_of(fid, const struct ofi_ep, fid)->tx_flags;
}

/* End a call that begins an operation, and return its result. */
static inline ssize_t ofi_tx_leave(struct ofi_ep *ep, ssize_t rc)
{
	if (OFI_UNLIKELY(rc == -FI_EAGAIN))
		ofi_tx_full(ep);
	ofi_leave(ep->domain);
	return rc;
}

/* Return true if the success of a call gives no completion; silent: none does so. */
static inline bool ofi_tx_is_silent(const struct ofi_ep *ep, uint64_t flags, bool silent)
{
	return silent || (ep->tx_selective && !(flags & FI_COMPLETION));
}

/* ---- mr.c, rma.c, atomic.c ---- */

/* Make the request of an operation, or of a part of one, with an op; NULL: there is no
 * room now. */
static inline struct ofi_req *ofi_rma_new(
	struct ofi_ep *ep, void (*event)(struct ofi_sink *sink, const ptl_event_t *event))
{
	struct ofi_req *req = ofi_req_new(ep);
	if (!req)
		return NULL;
	if (!ofi_op_borrow(ep->tx, req, NULL, 0, OFI_OF_PROGRAM)) {
		ofi_req_free(req);
		return NULL;
	}
	req->sink.event = event;
	req->rma.err = 0;
	req->rma.over = false;
	req->rma.copy = NULL;
	return req;
}

extern struct fi_ops_mr ofi_mr_ops;
extern struct fi_ops_rma ofi_rma_ops;
extern struct fi_ops_atomic ofi_atomic_ops;
int ofi_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
	struct fi_atomic_attr *attr, uint64_t flags);

/* Make the part of a domain for regions. */
int ofi_mrs_open(struct ofi_domain *domain);
void ofi_mrs_close(struct ofi_domain *domain);
/* Let a counter count the reads and writes of peers in all regions of the domain, or no
 * longer; flags are FI_REMOTE_READ and FI_REMOTE_WRITE. */
int ofi_mrs_count(struct ofi_domain *domain, struct ofi_cntr *cntr, uint64_t flags);
void ofi_mrs_uncount(struct ofi_domain *domain, struct ofi_cntr *cntr, uint64_t flags);
/* An event of a part of an operation. */
void ofi_rma_event(struct ofi_sink *sink, const ptl_event_t *event);

#pragma GCC visibility pop

#endif /* OFI_PROV_H */
