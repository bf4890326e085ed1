/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table - the state of the rendezvous, and the functions of the files that work on it
 *
 * Only the files of launcher/rdv/, and their test, include it.  One thread calls all
 * functions (rdv.h).  A file calls files above it in this list only:
 *
 *	members.c	pairs of nodes, the view for lookers; queues, sending;
 *			nodes that join and that end, the barrier, and cards
 *	rdv.c		the packets of nodes, the loop, and the functions that yod calls
 */
#ifndef P3_LAUNCHER_RDV_TABLE_H
#define P3_LAUNCHER_RDV_TABLE_H

#include "launcher/rdv/rdv.h"
#include "shm/job.h"

#include <stdint.h>

/*
 * outq - packets that wait until one node reads
 *
 * It is a plain list.  Packets about a peer are found by operation, node and
 * incarnation, so that a packet about an ended incarnation can be removed before the
 * node has read it.
 *
 * A BORN that introduces a peer can outlive the peer's descriptors in yod's table.  The
 * packet then has copies of them, which the queue closes with the packet.
 */

struct p3_out {
	struct p3_out *next;
	struct p3_job_msg msg;
	bool again; /* BORN that introduces: one of the two nodes sent AGAIN */
	bool news;  /* BORN that introduces, and is the first that the node gets */
	int fds[3]; /* BORN: copies of the peer's descriptors, or -1 */
};

struct p3_outq {
	struct p3_out *first;
	struct p3_out **end;
	uint32_t n;
};

/* Drop the packet of this operation about m's node and incarnation, if there is one. */
void p3_outq_drop(struct p3_outq *q, enum p3_job_op op, const struct p3_job_msg *m);

#define PACKETS_LAST 4096 /* packets taken from a node at its end */

enum { FD_PUBLISHED, FD_DOORBELL, FD_HOST, FD_HEAP };

/* Bits of a pair: this node's BORN about the other has descriptors; yod waits for this
 * node's DROPPED about the other. */
enum { PAIR_MET = 1, PAIR_OWES = 2 };

enum state { NODE_NEW, NODE_KNOWN, NODE_JOINED, NODE_GONE };

struct p3_rdv_node {
	struct p3_rdv *rdv;
	int sock; /* -1: closed, or not added */
	struct p3_loop_fd on_sock;
	struct p3_loop_fd on_owner; /* pidfd of who said HELLO; fd -1: none */
	uint32_t owner;             /* its process id, 0: unknown */
	uint32_t started_pid;
	enum state state;
	enum p3_rdv_state was; /* its state as tools see it: rdv.h */
	bool ended;            /* p3_rdv_ended() was called */
	int status;            /* with this status */
	int64_t waits_since;
	bool waits;        /* it waits in the barrier */
	bool retry;        /* flush again after RETRY_MS */
	bool warned;       /* a line has said that another process sends in its name */
	bool awaits_cards; /* its card is handed over, and it awaits those of all ranks */
	bool refused;      /* the reason why it may not join was reported */
	uint64_t incarnation;
	uint64_t joined_as; /* number of joins before this one */
	uint64_t seg_len;
	uint64_t heap_len;
	uint32_t pid[P3_JOB_NIS];
	int fds[P3_JOB_FDS];
	int64_t fate_at; /* its socket has closed: it is dead at this time */
	int64_t fate_by; /* or at this time, if it is ending */
	int64_t reap_at; /* time at which yod waits for no DROPPED any more */
	uint32_t owed_n; /* nodes whose DROPPED about it yod waits for */
	bool watches;    /* it wants to hear of ranks that will never join */
	uint8_t *pair;   /* bits for each other node; node 0's begin all memory */
	struct p3_outq out;
};

struct p3_rdv {
	struct p3_rdv_conf conf;
	struct p3_loop_timer timer;
	int sleepers; /* file for all nodes; -1: they meet in a domain, or it could not
		       * be made */
	int cards;    /* file of all ranks' cards, or -1 */
	bool told; /* several hosts: yod knows that all wait, and has not released them */
	uint64_t round; /* several hosts: number of the next barrier */
	uint64_t joins;
	uint32_t *untold; /* nodes whose births earlier nodes have yet to hear of */
	uint32_t untold_n;
	int64_t tell_at; /* time at which they hear of these births */
	uint32_t waits_n;
	int64_t barrier_since; /* time at which the first node came to the barrier */
	uint32_t gone_n;
	uint32_t first_gone; /* the rank that was gone before all others */
	struct p3_rdv_node node[];
};

/* ---- members.c: pairs, packets ---- */

/* Note that yod no longer waits for a node's DROPPED about a dead one; or for that of
 * any. */
void p3_rdv_owe_no_more(struct p3_rdv *r, uint32_t by, uint32_t dead);
void p3_rdv_owe_nothing(struct p3_rdv *r, uint32_t dead);
/* Return true if the node takes births, ends and pids of others. */
static inline bool p3_rdv_listens(const struct p3_rdv_node *n)
{
	return n->state == NODE_JOINED && n->sock >= 0;
}
/* Return a packet about node i, without what only some packets say. */
struct p3_job_msg p3_rdv_message(const struct p3_rdv *r, enum p3_job_op op, uint32_t i);
/* Send queued packets while the socket takes them. */
void p3_rdv_flush(struct p3_rdv *r, uint32_t i);
/* Send a packet to a node, or queue it while its socket is full.  A send that fails for
 * good does not end the node here: yod first reads the packets that the node has sent. */
void p3_rdv_post(struct p3_rdv *r, uint32_t i, const struct p3_job_msg *m);

/* ---- members.c: nodes that join ---- */

/* Return the packet BORN of node i. */
struct p3_job_msg p3_rdv_message_born(const struct p3_rdv *r, uint32_t i);
/* Post the birth of node `about`, without its descriptors where the two have not met. */
void p3_rdv_post_born(struct p3_rdv *r, uint32_t to, uint32_t about);
/* Send node `about` with its descriptors to node `to`, since one of them sent AGAIN. */
void p3_rdv_post_introduction(struct p3_rdv *r, uint32_t to, uint32_t about);
/* Post a change of pids, or change a queued packet that tells the pids. */
void p3_rdv_post_pids(struct p3_rdv *r, uint32_t to, const struct p3_job_msg *m);
/* Tell each node of the nodes that have joined after it.  Each packet wakes a thread, so
 * in a large job, where nodes join one after the other for seconds, a node is told of
 * several at once.  Functions that send a release, an end or an answer call this first,
 * so that a node has heard of the births before it reads such a packet. */
void p3_rdv_tell_births(struct p3_rdv *r);

/* ---- the barrier ---- */

/* Release the barrier if all ranks wait in it, or one of them can never come. */
void p3_rdv_barrier_look(struct p3_rdv *r);

/* ---- nodes that end ---- */

/* Tell a node that asked for it that the rank `about` will never join. */
void p3_rdv_post_over(struct p3_rdv *r, uint32_t to, uint32_t about);
/* Note that a rank will never join: its process and its socket have ended. */
void p3_rdv_set_gone(struct p3_rdv *r, uint32_t i);
/* Replace an ended node's descriptors by one of its remains (below), which hold
 * neither its hugepages nor its lanes. */
void p3_rdv_keep_remains(struct p3_rdv_node *n);
/* Stop watching the process that said HELLO. */
void p3_rdv_owner_forget(struct p3_rdv *r, struct p3_rdv_node *n);
/* Close the node's socket, and drop the packets queued for it. */
void p3_rdv_sock_close(struct p3_rdv *r, uint32_t i);
/* End an incarnation.  owed: the process ended without LEAVE, so the peers are sent DIED
 * and must answer DROPPED.  op: the end that tools are shown, DIED or LEFT. */
void p3_rdv_unjoin(
	struct p3_rdv *r, uint32_t i, enum p3_job_op op, int status, bool owed);
/* Note that the node's process has ended.  A wrapper that still holds the socket may
 * start another one, so the node is gone only with its socket. */
void p3_rdv_node_over(struct p3_rdv *r, uint32_t i);
/* Note the end of the process or of its socket.  The node is over eof_ms later, unless
 * p3_rdv_ended() tells its status before. */
void p3_rdv_node_lost(struct p3_rdv *r, uint32_t i);
/* End a node that died, and fail the barrier. */
void p3_rdv_node_died(struct p3_rdv *r, uint32_t i, int status);
/* Close the socket of a node, which counts as its death. */
void p3_rdv_cut_off(struct p3_rdv *r, uint32_t i);
/* Cut off a node that broke the protocol, with a line that says how. */
void p3_rdv_breach(struct p3_rdv *r, uint32_t i, const char *what);

/*
 * remains - the part of an ended node that lookers may need: counters and trace
 *
 * It is a copy of the parts of its published segment that tools read (header, counters,
 * waits, queues; the trace), as long as the original and with holes for the rest, in
 * ordinary pages: the node's carved arena and its hugepages are free again.  A copy takes
 * 4 KiB and the length of the trace.  A trace of more than 8 MiB is not copied, since yod
 * serves no node while it copies: then the original segment stays until the rank's next
 * program has ended.
 */

/* Make a copy, or keep the original.  Return a new descriptor, sealed as the original is,
 * or -errno. */
int p3_remains_make(int published);

#endif
