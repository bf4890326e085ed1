/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node - the state of a node
 *
 * A process is one node.  Tests run several in one process
 * (tests/support/own_node.h).
 *
 * The files of this folder hold the state that the calls share: this header the node, the
 * ids of the ranks, the requests that wait for processes which have yet to join, the
 * other nodes, settings and the shared heap; call.h the state of the calling thread.
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
#include "shm/conf.h"
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
	struct p3_member *member; /* (below) by node index; NULL without a NIC */
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

/* ---- members: the other nodes as this node knows them ---- */

/*
 *	none --birth--> attached		--end--> ending --messages taken--> none
 *		    +-> missing (no room)
 *		    +-> apart (in a large job)
 *
 * Three kinds of packets tell births, process ids and ends: those of yod (lib/job/yod.c),
 * of other processes on this host (lib/domain/member.c), and of other hosts
 * (lib/domain/remote.c).  Whoever takes them enters them here, and these functions pass
 * them on to the NIC.  An end is over when all messages of the member are taken; so the
 * owner of the table asks for it again, and attaches missing members again, from time to
 * time while p3_members_wait() is true.
 *
 * The table has an entry for each node index, this node's included.  It exists from
 * p3_job_enter() to p3_job_exit().  The thread that hears of births owns it: the life
 * thread, which holds node->life, or the domain's thread.
 */

struct p3_member {
	uint64_t incarnation; /* 0: no member */
	uint32_t os_pid;      /* in a domain: its process */
	p3_a32 life;          /* in a domain: the pidfd of this process, or -1 */
	bool missing;         /* it could not be attached yet */
	bool apart;    /* yod keeps its descriptors until one of the two needs them */
	bool ending;   /* it has ended; its last messages are taken first */
	uint32_t how;  /* p3_peer_end */
	uint32_t rank; /* launched: rank in the own job, or P3_JOB_NO_RANK */
};

/* Make the table for node->capacity nodes, in place of an earlier one.  Return 0 or
 * -ENOMEM. */
int p3_members_make(struct p3_node *node);
void p3_members_free(struct p3_node *node);
/* Forget all members. */
void p3_members_clear(struct p3_node *node);

/* Return a packet that says all about this node. */
struct p3_job_msg p3_member_message(struct p3_node *node, enum p3_job_op op);
/* Return what the NIC needs of a packet about a node, with its descriptors (NULL, or -1:
 * none). */
struct p3_peer_info p3_member_info(
	const struct p3_node *node, const struct p3_job_msg *m, const int *fds);

/* Attach the node to itself.  Return 0 or -errno. */
int p3_member_attach_self(struct p3_node *node, struct p3_nic *nic);
/* Attach a member, or give the NIC the ids of one that is attached.  lost: this process
 * had no room for its descriptors.  After a failure that may pass the member is missing:
 * it is expected, so that messages wait for it.  After another one it counts as dead. */
void p3_member_attach(
	struct p3_node *node, struct p3_nic *nic, struct p3_peer_info *info, bool lost);
/* Mark a member as ending.  Its first end counts. */
void p3_member_end(struct p3_member *b, enum p3_peer_end how);
/* Remove an ending member if all its messages are taken, or if now is true.  Return true
 * if it has been removed now. */
bool p3_member_remove(struct p3_node *node, struct p3_nic *nic, uint32_t slot, bool now);
/* Return true if a member is missing, or ending. */
bool p3_members_wait(const struct p3_node *node);

/* ---- the settings of the environment that concern the library ---- */

/* shm/conf.h has the table of all settings.  Any thread may call these functions, which
 * read the environment; they have no state, except that stdout is set up once. */

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
};
/* Read the environment.  Return -EINVAL after one line for each wrong setting. */
int p3_conf_read(struct p3_conf *conf_out);
/* Return on which side this rank matches, and how; p3_conf_read() has checked it. */
struct p3_conf_match p3_conf_match_of(uint32_t rank);
/* Make the log obey PTL3_LOG; PtlNIInit complains of a wrong value. */
void p3_conf_log(void);
/* Call p3_fence_join() if the settings allow it.  PtlInit does so before it starts a
 * thread, because the call is cheap in a process of one thread. */
void p3_conf_join_fences(void);
/* Make stdout line-buffered if PTL3_STDOUT says so; print a line for each unknown
 * setting. */
void p3_conf_set_stdout(void);
void p3_conf_warn_unknown(void);

/* ---- the node's shared heap, and its allocator for PtlXAlloc ---- */

/* The lock node->life guards the state: heap, heap_tried and heap_mute of struct
 * p3_node. */

/* Find the program's malloc, before any call that may make the heap.  The caller holds
 * no lock: dlsym takes the loader's. */
void p3_node_look_for_malloc(void);

/* Return the node's heap, made at the first call, or NULL.  The caller holds the lock
 * node->life. */
struct p3_heap *p3_node_heap(struct p3_node *node);
/* Return the node's heap with an allocator inside for PtlXAlloc, or NULL.  The caller
 * does not hold node->life, which this function takes. */
struct p3_heap *p3_node_heap_for_blocks(struct p3_node *node);
/* Detach the heap from a node that ends; a later node of this process may take it.  No
 * other thread uses the node, so the lock is not needed. */
void p3_node_leave_heap(struct p3_node *node);

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
