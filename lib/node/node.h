/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node - the state of a node
 *
 * A process is one node.  Tests run several in one process
 * (tests/support/own_node.h).
 *
 * The files of this folder hold the state that the calls share: this header the node, the
 * ids of the ranks, and the requests that wait for processes which have yet to join;
 * call.h the state of the calling thread, conf.h the settings, heap.h the shared heap.
 *
 * Any thread may read the fields marked (any).  node->call serializes PtlInit, PtlFini,
 * PtlNIInit and PtlNIFini, cci_init, cci_finalize and the first endpoint; node->life,
 * which is taken inside it, guards the other fields, and the start and stop of the NIC.
 *
 * Memory ordering:
 *	INIT.1	ready, up, nic: released when all is ready -> acquired by calls
 */
#ifndef P3_LIB_NODE_NODE_H
#define P3_LIB_NODE_NODE_H

#include "nic/nic.h"
#include "shm/domain.h"
#include "shm/fd.h"
#include "shm/job.h"
#include "shm/layout.h"

#include <pthread.h>

struct p3_cci_host;
struct p3_member;
struct p3_mesh;
struct p3_modex_ops;
struct p3_cards;
struct p3_modex;

/* ---- tables of the ids of the job's ranks ---- */

/*
 * Process-private tables that any thread reads at any time, while another replaces or
 * frees them: guarded by RCU (liburcu).  There are two of them: the launcher's, with an
 * entry for each node that the life thread keeps up to date in place; and the program's
 * own, given by PtlSetNIDMap and PtlSetPIDMap and replaced as a whole.  The functions
 * have no other state.
 *
 * Calls at the same time ("-" no lock, "X" caller serializes):
 *			read	replace
 *	read		 -	 -
 *	replace		 -	 X
 *
 * Memory ordering:
 *	RCU.1	pointer: replace releases -> readers acquire (the table is whole)
 *	RCU.2	end of reading -> free of the old table: liburcu's grace period; announced
 *		once more by a word of our own, since the checkers cannot see into liburcu
 *
 * Reading is wait-free; replacing waits for the readers of this process, which never
 * block inside.
 */

struct p3_rank_ids {
	p3_a32 nid; /* or P3_UNKNOWN */
	p3_a32 pid[P3_JOB_NIS];
};

#define P3_UNKNOWN 0xffffffffu

struct p3_directory {
	struct p3_directory *next_kept;
	bool ranked;          /* rank is valid */
	bool own[P3_JOB_NIS]; /* the program gave pids for that interface alone */
	uint32_t rank;
	uint32_t size; /* 0: unknown */
	struct p3_rank_ids member[];
};

typedef _Atomic(struct p3_directory *) p3_directory_ptr;

/* Make a table whose members are all unknown; return NULL without memory.  It is plain
 * memory until it is installed. */
struct p3_directory *p3_directory_new(uint32_t size);

/* Return the table (NULL: none), which stays until p3_directory_done; do not block
 * between. */
const struct p3_directory *p3_directory_read(p3_directory_ptr *where);
void p3_directory_done(void);

/* Install a new table (or NULL) and free the old one, or keep it in a forked child:
 * threads that were reading in the parent do not exist there, and waiting for them would
 * never end. */
void p3_directory_replace(p3_directory_ptr *where, struct p3_directory *now);

/* Enter the ids of a rank in the table, except pids that are P3_JOB_NO_PID.  The caller
 * has an open interface, so that no thread replaces the table meanwhile. */
void p3_directory_set(p3_directory_ptr *where, uint32_t rank, uint32_t nid,
	const uint32_t pid[P3_JOB_NIS]);

/* ---- care for requests to processes that have yet to join ---- */

/*
 * The NIC holds such requests (nic.h: p3_nic_held) and says so once.  The thread that
 * hears of births (the job's life thread or the domain's) then calls p3_held_see_to():
 * it fails requests after their time, and tells the user when some have waited for
 * long.  The state is struct p3_holding, which that thread owns.
 */

/* State of the thread that cares for held requests; set up anew for each life of the
 * NIC. */
struct p3_holding {
	uint32_t limit_s; /* seconds that they are held */
	uint64_t at;      /* time of the next p3_held_see_to(); 0: none before
		       * p3_job_hold() */
	bool said;        /* the user has been told */
	bool watches;     /* yod reports ranks that have ended without joining */
};

/* ---- the node ---- */

/* The behavior of interfaces: the words of PTL3_PERSONALITY. */
enum p3_personality { P3_PERSONALITY_AUTO, P3_PERSONALITY_DOCUMENT, P3_PERSONALITY_CRAY };

/* One interface of this process. */
struct p3_lib_ni {
	p3_a32 open; /* (any) released when pid and handle are set */
	p3_a32 pid;  /* its last one, if it is closed, or P3_JOB_NO_PID */
	p3_a64 handle;
	ptl_ni_limits_t limits;
	bool cray; /* gets, unlinks and PtlNIInit behave as on a Cray XT */
};

/*
 * Words on a page that the kernel zeroes in forked children; before the first PtlInit or
 * cci_init, words that stay zero.
 */
struct p3_ready {
	/* the node's NIC while a Portals interface is open, else NULL: the one word that
	 * a call looks at in ordinary life */
	_Atomic(struct p3_nic *) nic;
	p3_a32 up;     /* 1 while Portals is initialized */
	p3_a32 cci;    /* 1 while CCI is initialized */
	p3_a32 parent; /* 0 in a forked child, 2 while that child forgets its parent, else
			* 1 */
};

struct p3_node {
	_Atomic(struct p3_ready *) ready; /* (any) never NULL */
	_Atomic(struct p3_nic *) nic; /* (any) NULL if neither Portals nor CCI uses it */
	pthread_mutex_t call;         /* serializes init, fini, NIInit and NIFini */
	uint32_t users;               /* of the job: Portals and CCI (lib/init.h) */
	pthread_mutex_t life;         /* guards all below, and the NIC's start and stop */
	pthread_cond_t changed;
	struct p3_lib_ni ni[P3_JOB_NIS];
	bool cci_uses;           /* CCI uses the NIC */
	struct p3_cci_host *cci; /* NULL before cci_init; node->call guards it */
	enum p3_personality personality;
	uint64_t incarnation;
	int sock; /* -1: yod did not start this process */
	p3_fd_id sock_file;
	int wake_fd; /* eventfd that wakes the job's life thread */
	p3_fd_id wake_file;
	p3_a32 ending;   /* 1: the life thread shall end */
	p3_a32 question; /* (any) the NIC's last question (nic.h: ask) */
	uint32_t asked;  /* the last question that the life thread has passed to yod */
	bool harness;    /* a node of a test process: it survives yod's end */
	bool welcomed;
	bool launched; /* another launcher gave it rank, size and jid */
	uint32_t job;  /* launched: number of the job in its family, 0: it is in none */
	bool joined;
	bool yod_gone;                 /* yod is gone */
	bool fds_lost;                 /* the program has closed the socket or wake_fd */
	uint32_t told_pid[P3_JOB_NIS]; /* pids of this node that yod has confirmed */
	bool leaving;                  /* LEAVE is sent, LEFT has not come */
	void *sleepers; /* words of the job's nodes (layout.h); NULL: each uses its
			    * doorbell */
	struct p3_member *member; /* (member.h) by node index; NULL without a NIC */
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
	struct p3_mesh *mesh;             /* NULL: not in a domain now */
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
	struct p3_cpuset nic_cpus;     /* CPUs for the NIC thread */
	const struct p3_far_conf *far; /* the job's other hosts, or NULL */
	/* of a job on several hosts, else NULL: the launcher's way to carry cards, and
	 * the knowledge of the other hosts */
	const struct p3_modex_ops *modex_ops;
	struct p3_modex *modex;
	struct p3_cards *cards; /* of yod's modex (lib/job/yod.c), or NULL */
};

extern struct p3_node p3_process;

/* Words of a node that has never been initialized. */
extern struct p3_ready p3_not_ready;

struct p3_thread {
	struct p3_node *node; /* p3_process, except in tests */
	uint32_t busy;        /* it holds locks, or allocates memory */
};
extern __thread struct p3_thread p3_thread __attribute__((tls_model("initial-exec")));

static inline struct p3_node *p3_node(void)
{
	return p3_thread.node;
}

static inline struct p3_ready *p3_ready(struct p3_node *node)
{
	return p3_acquire(&node->ready); /* INIT.1 */
}

static inline bool p3_is_up(struct p3_node *node)
{
	return p3_likely(p3_acquire(&p3_ready(node)->up)); /* INIT.1 */
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

/* Return the NIC if Portals calls may use it: not before an interface is open, nor in a
 * forked child, where the node still names the parent's NIC. */
static inline struct p3_nic *p3_nic_ready(struct p3_node *node)
{
	return p3_acquire(&p3_ready(node)->nic); /* INIT.1 */
}

/* Set the node's NIC, or NULL. */
static inline void p3_node_set_nic(struct p3_node *node, struct p3_nic *nic)
{
	p3_release(&node->nic, nic); /* INIT.1 */
}

/* Set the NIC that Portals calls use: the node's, or NULL without an open interface. */
static inline void p3_node_show_nic(struct p3_node *node, struct p3_nic *nic)
{
	p3_release(&p3_ready(node)->nic, nic); /* INIT.1 */
}

static inline bool p3_node_has_cci(struct p3_node *node)
{
	return p3_likely(p3_acquire(&p3_ready(node)->cci)); /* INIT.1 */
}

/* the time that PtlNIFini, exit() and barriers give to p3_nic_settle, which waits up to
 * 10 times as long while copies leave, and 30 times while yod introduces their targets;
 * with other hosts, PTL3_FAR_TIMEOUT counts */
#define P3_SETTLE_NS 1000000000u

/* Return the open interface of a handle, or NULL. */
struct p3_lib_ni *p3_node_find_ni(struct p3_node *node, ptl_handle_ni_t handle);
/* Initialize the locks of a node. */
void p3_node_set_locks(struct p3_node *node);

/* Fail the held requests whose time is over, tell the user once if others have waited for
 * long, and set the time of the next call.  The thread that hears of births calls this
 * when p3_held_is_due() returns true, and when p3_job_hold() has woken the thread. */
void p3_held_see_to(struct p3_node *node, struct p3_nic *nic);
bool p3_held_is_due(const struct p3_node *node);
/* Return a time-out for poll(), in ms: the shorter of ms (-1: none) and the time until
 * p3_held_see_to() is due. */
int p3_held_patience(const struct p3_node *node, int ms);

/* ---- the ids and the rank that the program has named (named.c) ---- */

/*
 * The values of PtlSetRank, PtlSetNIDMap and PtlSetPIDMap, or of PTL_MY_RID, PTL_NIDMAP
 * and PTL_PIDMAP when PtlSetRank(..., -1, -1) asked for them.  A launcher's values come
 * first; these count in a process without one: PtlNIInit with PTL_PID_ANY takes the pid
 * of the own rank, and in a domain they tell the NIC which processes may still come.
 *
 * There is one table for all nodes of a process, replaced as a whole under a lock of
 * this file.  Any thread may call these functions; the calls that set values wait for
 * the readers of the old table, so a thread inside of the library must not make them
 * (p3_is_busy).  There is no other state.
 */

/* Set rank and size, or, if both are -1, take them and the maps from the environment.
 * Return a PTL_* code. */
int p3_named_set_rank(struct p3_node *node, int rank, int size);

/* Set the pids (pids is true) or the nids of all ranks; pids for an interface, or for
 * PTL_INVALID_HANDLE for all that have none of their own.  Return a PTL_* code. */
int p3_named_set_map(struct p3_node *node, ptl_handle_ni_t ni, const uint32_t *map,
	int size, bool pids);

/* Return the pid of the own rank on an interface, or P3_UNKNOWN if the program has named
 * none, or has a launcher.  Warn if the maps give the rank another node id. */
uint32_t p3_named_pid(struct p3_node *node, uint32_t iface);

/* In a forked child: forget the parent's rank and maps. */
void p3_named_forked(void);

/* Return the table from which queries are answered: the launcher's, else that of the Set
 * calls, else that of a job of one.  Call p3_directory_done() after reading. */
const struct p3_directory *p3_named_read(struct p3_node *node);

/* In a domain: tell the NIC the processes that the program has named, in PTL_NIDMAP and
 * PTL_PIDMAP or by a Set call. */
void p3_named_list(struct p3_node *node, struct p3_nic *nic);

/* ---- memory that calls have given to the program (lib/runtime/) ---- */

/* Free the blocks of PtlXAlloc, or the maps of cnos_get_nidpid_map.  The caller is the
 * only thread that uses the node, which has ended. */
void p3_blocks_free(struct p3_node *node);
void p3_cnos_free_maps(struct p3_node *node);

#endif
