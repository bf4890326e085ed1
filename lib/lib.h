/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib - the Ptl* calls: argument checking and translation into commands of nic/
 *
 *	init.c	  PtlInit, PtlFini; the job, its life thread
 *	meet*.c	  the domain: nodes that nobody introduces to each other (meetin.h)
 *	held.c	  requests for processes that have yet to join
 *	launched.c rank, size and job of who was started by mpirun and the like
 *	ni.c	  PtlNIInit, PtlNIFini, limits, ids
 *	me.c md.c eq.c move.c	the calls of these names
 *	debug.c	  printing, for people
 *	heap.c	  the node's shared heap
 *	directory.c ids of the ranks, under RCU
 *	cnos.c	  what runtime.c knows, under other names
 *	runtime.c rank, maps, barrier, statistics
 *	strerror.c names of codes
 *
 * A process is one node.  Tests run several nodes in one process: each of their
 * threads says which node it belongs to, p3_node_enter().
 */
#ifndef P3_LIB_LIB_H
#define P3_LIB_LIB_H

#include "lib/directory.h"
#include "lib/held.h"
#include "lib/meet.h"
#include "nic/nic.h"
#include "shm/domain.h"
#include "shm/job.h"
#include "shm/fd.h"
#include "shm/layout.h"

#include <errno.h>
#include <pthread.h>

/* Whose manner interfaces have: the words of PTL3_PERSONALITY. */
enum p3_personality { P3_PERSONALITY_AUTO, P3_PERSONALITY_DOCUMENT, P3_PERSONALITY_CRAY };

/* One interface of this process. */
struct p3_lib_ni {
	p3_a32 open; /* (any) released when pid and handle are there */
	p3_a32 pid;
	p3_a64 handle;
	ptl_ni_limits_t limits;
	bool cray; /* gets, unlinks and PtlNIInit are those of a Cray XT */
};

/* yod's word of an end that has not been heeded yet. */
struct p3_late_end {
	uint32_t op; /* P3_JOB_LEFT or P3_JOB_DIED, 0: none */
	uint64_t incarnation;
};

struct p3_node {
	_Atomic(p3_a32 *) up;         /* 1 while initialised; zeroed in a forked child */
	_Atomic(struct p3_nic *) nic; /* (any) NULL without an interface */
	pthread_mutex_t call;         /* init, fini, NIInit, NIFini: one at a time */
	pthread_mutex_t life;         /* guards all below, and the NIC's start and stop */
	pthread_cond_t changed;
	struct p3_lib_ni ni[P3_JOB_NIS];
	enum p3_personality personality;
	uint64_t incarnation;
	int sock; /* -1: yod did not start it */
	p3_fd_id sock_file;
	int wake_fd;     /* for the thread of this job: */
	p3_a32 ending;   /* it shall end, */
	p3_a32 question; /* or ask yod (nic.h: ask), */
	uint32_t asked;  /* as it has done for this one */
	bool harness;    /* a node of a test process: yod's end is not ours */
	bool welcomed;
	bool launched; /* by another launcher: rank, size and jid are its */
	bool joined;
	bool orphaned;                 /* yod is gone */
	bool disowned;                 /* the program has closed the socket */
	uint32_t told_pid[P3_JOB_NIS]; /* by yod, of this node */
	bool leaving;                  /* LEAVE is sent, yod has not said LEFT */
	void *sleepers;    /* of the job (layout.h); NULL: each node has its own */
	uint64_t *missing; /* incarnations of nodes that could not be mapped yet */
	uint32_t nmissing;
	struct p3_late_end *late; /* of nodes with messages that wait here, by rank */
	uint32_t nlate;
	struct p3_holding held; /* of the thread that hears of births */
	pthread_t thread;
	uint32_t rank, size;      /* of the job */
	uint32_t index, capacity; /* which node of how many the NICs know of */
	uint32_t nid, uid, jid, cpus;
	char domain[P3_DOMAIN_NAMES + 1]; /* where others are met; empty: nowhere */
	struct p3_meeting *meeting;       /* NULL: not there now */
	p3_directory_ptr directory;       /* (any) what yod says of the ranks */
	uint32_t barriers_done;
	int barrier_status;
	uint32_t barrier_ended;  /* with EPIPE: a rank that has ended, or no rank */
	uint32_t barriers_taken; /* of those, by callers; yod's only */
	bool in_barrier;         /* yod has been told, no caller of its answer */
	uint32_t fini_calls;     /* of PtlFini that ended the node's life */
	void *blocks;            /* of PtlXAlloc */
	struct map *maps;        /* of cnos_get_nidpid_map, under a lock of its own */
	struct p3_heap *heap;
	bool heap_tried; /* to make it, */
	bool heap_mute;  /* to find its allocator; both without success if heap is NULL */
};

extern struct p3_node p3_process;

struct p3_thread {
	struct p3_node *node; /* NULL: p3_process */
	uint32_t busy;        /* locks are held, or memory is being allocated */
};
extern __thread struct p3_thread p3_thread __attribute__((tls_model("initial-exec")));

static inline struct p3_node *p3_node(void)
{
	struct p3_node *node = p3_thread.node;
	return p3_unlikely(node != NULL) ? node : &p3_process;
}

static inline bool p3_is_up(struct p3_node *node)
{
	p3_a32 *up = p3_acquire(&node->up);     /* INIT.1 */
	return p3_likely(up && p3_acquire(up)); /* INIT.1 */
}

static inline bool p3_by_yod(struct p3_node *node)
{
	return p3_is_up(node) && node->sock >= 0;
}

/* Somebody has said which rank of how many this is: it is not the program's to say. */
static inline bool p3_is_placed(struct p3_node *node)
{
	return p3_is_up(node) && (node->sock >= 0 || node->launched);
}

static inline struct p3_nic *p3_nic(struct p3_node *node)
{
	return p3_acquire(&node->nic); /* INIT.1 */
}

/*
 * A signal handler may find the thread that it interrupts in the middle of this library:
 * with a lock, or in malloc, or reading what RCU guards.  There, between busy and idle,
 * it must not do the same; each call that would asks first whether it may.
 */
static inline void p3_busy(void)
{
	p3_thread.busy++;
	atomic_signal_fence(memory_order_seq_cst);
}

static inline void p3_idle(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	p3_thread.busy--;
}

static inline bool p3_is_busy(void)
{
	return p3_thread.busy || p3_nic_interrupts();
}

/*
 * Around the calls that wait, or ask much of the system: errno stays the program's, and
 * they are no cancellation points, as locks are held.
 */
struct p3_caller {
	int err, cancel;
};

static inline struct p3_caller p3_caller_save(void)
{
	struct p3_caller c = {.err = errno};
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c.cancel);
	p3_busy();
	return c;
}

static inline void p3_caller_restore(struct p3_caller c)
{
	p3_idle();
	(void)pthread_setcancelstate(c.cancel, &c.cancel);
	errno = c.err;
}

#define P3_SETTLE_NS 1000000000u /* a peer that does not look is not waited for longer */

/* First lines of most calls: the node's NIC, or return the code. */
#define P3_CALL(nic_var, no_nic_code)                                                    \
	if (!p3_is_up(p3_node()))                                                        \
		return PTL_NO_INIT;                                                      \
	struct p3_nic *nic_var = p3_nic(p3_node());                                      \
	if (!nic_var)                                                                    \
	return no_nic_code

/* The open interface of a handle, or NULL. */
struct p3_lib_ni *p3_lib_ni(struct p3_node *node, ptl_handle_ni_t handle);

/* Tests: a node of its own on this socket, for this thread and those that enter it. */
struct p3_node *p3_node_create(int sock);
void p3_node_enter(struct p3_node *node);
void p3_node_destroy(struct p3_node *node);

/* ---- init.c ---- */

int p3_job_begin(struct p3_node *node);
void p3_job_end(struct p3_node *node);
/* With life held, before the NIC and after it: its place in the domain, if there is one.
 * 0 or -errno. */
int p3_job_enter(struct p3_node *node);
void p3_job_exit(struct p3_node *node);
/* A rank has these ids. */
void p3_job_set_ids(struct p3_node *node, uint32_t rank, uint32_t nid,
	const uint32_t pid[P3_JOB_NIS]);
/* With life held: tell the others, wait for their answers.  0 or -errno. */
int p3_job_join(struct p3_node *node, struct p3_nic *nic);
/* Is this error one of those that pass, when there is room again? */
bool p3_job_passes(int rc);
void p3_job_pids(struct p3_node *node);
/* To yod, as p3_job_send; -EPIPE as well if the program has closed the socket. */
int p3_job_say(
	struct p3_node *node, const struct p3_job_msg *m, const int *fds, unsigned nfds);
/* As conf.ask of the NIC (nic.h); arg: the node. */
void p3_job_ask(void *arg, uint32_t question);
/* Have the life thread look at what is asked of it; any thread may call this. */
void p3_job_wake(struct p3_node *node);
void p3_job_leave(struct p3_node *node);
bool p3_job_cpus(struct p3_node *node, cpu_set_t *set_out);
/* And has not called PtlInit. */
bool p3_is_forked_child(const struct p3_node *node);

/* ---- conf.c ---- */

struct p3_conf {
	enum p3_mode mode;
	enum p3_personality personality;
	enum p3_huge_policy huge;
	bool cma;
	bool bulk;
	bool membarrier;
	bool base_lanes_only;
	uint32_t trace;   /* records */
	bool shared_heap; /* serves the program's malloc */
	uint64_t heap;    /* bytes, 0: none */
	uint32_t domain_nodes;
	uint32_t hold_s; /* seconds that requests for absent processes are held, 0: not */
	struct p3_faults faults;
};
/* From the environment.  -EINVAL with one line for each that is wrong. */
int p3_conf_read(struct p3_conf *conf_out);
/* Let the log heed PTL3_LOG; PtlNIInit complains of a value that makes no sense. */
void p3_conf_log(void);
/* p3_fence_join(), if it is wanted: cheap in a process of one thread. */
void p3_conf_join_fences(void);
/* One line for each name that is no setting. */
/* Make stdout line-buffered if PTL3_STDOUT says so. */
void p3_conf_set_stdout(void);
void p3_conf_warn_unknown(void);

/* ---- heap.c ---- */

/* Before all that may make the heap.  Without locks: it asks the loader. */
void p3_heap_look_for_malloc(void);

/* The node's heap, made when it is asked for first, or NULL.  With life held. */
struct p3_heap *p3_node_heap(struct p3_node *node);
/* The same with an allocator inside that is ours to call.  Without life held. */
struct p3_heap *p3_heap_for_blocks(struct p3_node *node);
/* The node ends: its blocks are free. */
void p3_heap_leave(struct p3_node *node);

/* ---- md.c ---- */

/* Execute a command that makes a descriptor of *md.  PTL_* code. */
int p3_md_make(
	struct p3_nic *nic, struct p3_cmd *c, const ptl_md_t *md, ptl_unlink_t unlink);

/* ---- ni.c ---- */

int p3_ni_fini_all(struct p3_node *node);

/* ---- runtime.c ---- */

/* In a domain: tell the NIC which processes the program has named, in PTL_NIDMAP and
 * PTL_PIDMAP or by a Set call. */
void p3_list_ids(struct p3_node *node, struct p3_nic *nic);
void p3_blocks_free(struct p3_node *node);

/* ---- cnos.c ---- */

void p3_maps_free(struct p3_node *node);

#endif
