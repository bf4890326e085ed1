/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib - the Ptl* calls: argument checking and translation into commands of nic/
 *
 *	init.c	  PtlInit, PtlFini
 *	fork.c	  forked children
 *	nodes.c	  several nodes in one process, for tests
 *	ni.c	  PtlNIInit, PtlNIFini, limits, ids
 *	me.c md.c eq.c move.c	the calls of these names
 *	debug.c	  printing, for people
 *	strerror.c names of codes
 *	node/	  the state of a node: settings, heap, ids, held requests
 *	job/	  the launcher that started this process
 *	domain/	  nodes that no launcher introduces to each other (domain/meeting.h)
 *	runtime/  rank, maps, barrier, memory, statistics
 *
 * A process is one node.  Tests run several nodes in one process: each of their threads
 * names its node by p3_node_enter().  Any thread may call these functions, unless they
 * say otherwise; the state of a node is in struct p3_node.
 */
#ifndef P3_LIB_LIB_H
#define P3_LIB_LIB_H

#include "lib/node/directory.h"
#include "lib/node/held.h"
#include "lib/domain/meet.h"
#include "nic/nic.h"
#include "shm/domain.h"
#include "shm/job.h"
#include "shm/fd.h"
#include "shm/layout.h"

#include <errno.h>
#include <pthread.h>

/* The behavior of interfaces: the words of PTL3_PERSONALITY. */
enum p3_personality { P3_PERSONALITY_AUTO, P3_PERSONALITY_DOCUMENT, P3_PERSONALITY_CRAY };

/* One interface of this process. */
struct p3_lib_ni {
	p3_a32 open; /* (any) released when pid and handle are set */
	p3_a32 pid;
	p3_a64 handle;
	ptl_ni_limits_t limits;
	bool cray; /* gets, unlinks and PtlNIInit behave as on a Cray XT */
};

/* An end that yod has reported and that this node has not processed yet. */
struct p3_late_end {
	uint32_t op; /* P3_JOB_LEFT or P3_JOB_DIED, 0: none */
	uint64_t incarnation;
};

struct p3_node {
	_Atomic(p3_a32 *) up;         /* 1 while initialized; zeroed in a forked child */
	_Atomic(struct p3_nic *) nic; /* (any) NULL without an interface */
	pthread_mutex_t call;         /* serializes init, fini, NIInit and NIFini */
	pthread_mutex_t life;         /* guards all below, and the NIC's start and stop */
	pthread_cond_t changed;
	struct p3_lib_ni ni[P3_JOB_NIS];
	enum p3_personality personality;
	uint64_t incarnation;
	int sock; /* -1: yod did not start this process */
	p3_fd_id sock_file;
	int wake_fd; /* eventfd that wakes the job's life thread */
	p3_fd_id wake_file;
	p3_a32 ending;   /* 1: the life thread shall end */
	p3_a32 question; /* the NIC's last question (nic.h: ask), for yod */
	uint32_t asked;  /* the last question that the life thread has passed to yod */
	bool harness;    /* a node of a test process: it survives yod's end */
	bool welcomed;
	bool launched; /* another launcher gave it rank, size and jid */
	bool joined;
	bool orphaned;                 /* yod is gone */
	bool disowned;                 /* the program has closed the socket */
	uint32_t told_pid[P3_JOB_NIS]; /* pids of this node that yod has confirmed */
	bool leaving;                  /* LEAVE is sent, LEFT has not come */
	void *sleepers;    /* words of the job's nodes (layout.h); NULL: each uses its
			    * doorbell */
	uint64_t *missing; /* incarnations of nodes that could not be mapped yet */
	uint32_t nmissing;
	struct p3_late_end *late; /* ends of nodes with messages waiting here, by rank */
	uint32_t nlate;
	uint64_t *apart; /* incarnations of nodes whose descriptors yod has */
	/* (any) the nodes that the NIC needs, a bit each */
	p3_a64 wanted[P3_MAX_NODES / 64];
	struct p3_holding held; /* state of the thread that hears of births */
	pthread_t thread;
	uint32_t rank, size;      /* of the job */
	uint32_t index, capacity; /* index of this node, and number of nodes that the
				   * NICs allow */
	uint32_t nid, uid, jid, cpus;
	char domain[P3_DOMAIN_NAMES + 1]; /* the domain where it meets others; empty:
					   * none */
	struct p3_meeting *meeting;       /* NULL: not in a domain now */
	p3_directory_ptr directory;       /* (any) the ranks as yod reports them */
	uint32_t barriers_done;
	int barrier_status;
	uint32_t barrier_ended;  /* with EPIPE: a rank that has ended, or
				  * P3_JOB_NO_RANK */
	uint32_t barriers_taken; /* yod's barriers whose release a caller has taken */
	bool in_barrier;         /* BARRIER is sent, and no caller has taken a release */
	uint32_t fini_calls;     /* calls of PtlFini that ended the node's life */
	void *blocks;            /* the blocks of PtlXAlloc */
	struct map *maps;        /* the maps of cnos_get_nidpid_map, with a lock of
				  * their own */
	struct p3_heap *heap;
	bool heap_tried; /* heap is final: if it is NULL, there is none */
	bool heap_mute;  /* no allocator could be set up in it: PtlXAlloc avoids it */
	struct p3_cpuset nic_cpus; /* CPUs for the NIC thread */
};

extern struct p3_node p3_process;

struct p3_thread {
	struct p3_node *node; /* NULL: p3_process */
	uint32_t busy;        /* it holds locks, or allocates memory */
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

/* Return true if a launcher gave this node its rank and size, so that the program may
 * not set them. */
static inline bool p3_is_placed(struct p3_node *node)
{
	return p3_is_up(node) && (node->sock >= 0 || node->launched);
}

static inline struct p3_nic *p3_nic(struct p3_node *node)
{
	return p3_acquire(&node->nic); /* INIT.1 */
}

/*
 * Mark this thread as busy inside the library.  A signal handler may interrupt the
 * thread while it holds a lock, is in malloc, or reads data guarded by RCU: between
 * p3_busy and p3_idle the handler must not do the same.  Each call that would do so
 * asks p3_is_busy first.
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
 * Save and restore the state of the calling program, around calls that wait or make
 * many system calls: errno stays the program's, and they are no cancellation points,
 * since they hold locks.
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

/* longest wait of PtlNIFini and exit() for absent targets of puts whose descriptors are
 * unlinked */
#define P3_AWAIT_S 10
/* the time that PtlNIFini, exit() and barriers give to p3_nic_settle, which waits up to
 * 10 times as long while copies leave, and 30 times while yod introduces their targets */
#define P3_SETTLE_NS 1000000000u

/* Begin a call: set nic_var to the node's NIC.  Without PtlInit, the call returns
 * PTL_NO_INIT, and without an interface no_nic_code. */
#define P3_CALL(nic_var, no_nic_code)                                                    \
	if (!p3_is_up(p3_node()))                                                        \
		return PTL_NO_INIT;                                                      \
	struct p3_nic *nic_var = p3_nic(p3_node());                                      \
	if (!nic_var)                                                                    \
	return no_nic_code

/* ---- node/node.c ---- */

/* Return the open interface of a handle, or NULL. */
struct p3_lib_ni *p3_node_find_ni(struct p3_node *node, ptl_handle_ni_t handle);
/* Initialize the locks of a node. */
void p3_node_set_locks(struct p3_node *node);

/* ---- node/conf.c ---- */

struct p3_conf {
	enum p3_mode mode;
	enum p3_personality personality;
	enum p3_huge_policy huge;
	bool cma;
	bool bulk;
	bool membarrier;
	bool base_lanes_only;
	bool unswept;     /* tests: see p3_nic_conf */
	uint32_t trace;   /* records of the trace */
	bool shared_heap; /* the heap serves the program's malloc */
	uint64_t heap;    /* bytes of the shared heap, 0: none */
	uint32_t domain_nodes;
	uint32_t hold_s; /* seconds that requests for absent processes are held, 0: not
			  * at all */
	struct p3_faults faults;
};
/* Read the environment.  Return -EINVAL after one line for each wrong setting. */
int p3_conf_read(struct p3_conf *conf_out);
/* Make the log obey PTL3_LOG; PtlNIInit complains of a wrong value. */
void p3_conf_log(void);
/* Call p3_fence_join() if the settings allow it.  PtlInit does so before it starts a
 * thread, because the call is cheap in a process of one thread. */
void p3_conf_join_fences(void);
/* Make stdout line-buffered if PTL3_STDOUT says so; print a line for each unknown
 * setting. */
void p3_conf_set_stdout(void);
void p3_conf_warn_unknown(void);

/* ---- node/heap.c ---- */

/* Find the program's malloc, before any call that may make the heap.  The caller holds
 * no lock: dlsym takes the loader's. */
void p3_heap_look_for_malloc(void);

/* Return the node's heap, made at the first call, or NULL.  The caller holds the lock
 * node->life. */
struct p3_heap *p3_node_heap(struct p3_node *node);
/* Return the node's heap with an allocator inside for PtlXAlloc, or NULL.  The caller
 * does not hold node->life, which this function takes. */
struct p3_heap *p3_heap_for_blocks(struct p3_node *node);
/* Detach the heap from a node that ends; a later node of this process may take it. */
void p3_heap_leave(struct p3_node *node);

/* ---- md.c ---- */

/* Execute a command that makes a descriptor of *md.  Return its PTL_* code. */
int p3_md_make(
	struct p3_nic *nic, struct p3_cmd *c, const ptl_md_t *md, ptl_unlink_t unlink);

/* ---- ni.c ---- */

/* Wait, in bounded time, until the puts that have had SEND_END have left this process;
 * for absent targets until P3_AWAIT_S after start, a time of p3_now_ns(). */
void p3_ni_see_off(struct p3_nic *nic, uint64_t start);

int p3_ni_fini_all(struct p3_node *node);

/* ---- runtime/blocks.c ---- */

void p3_blocks_free(struct p3_node *node);

/* ---- runtime/cnos.c ---- */

void p3_maps_free(struct p3_node *node);

#endif
