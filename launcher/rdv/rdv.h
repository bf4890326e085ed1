/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdv - the rendezvous: yod's side of shm/job.h
 *
 *	main loop  --add, ended-->  [ table of nodes ]  <--packets-->  nodes
 *		   <--may_reap---
 *
 * One thread calls all functions (yod's main loop, or a thread of a test whose nodes
 * are threads); there are no locks, and none of them blocks.  All descriptors and
 * deadlines are behind one epoll descriptor: poll p3_rdv_fd(), then call p3_rdv_step().
 * The state is struct p3_rdv (table.h).
 *
 * Life of a node in the table:
 *
 *	NEW --HELLO--> KNOWN --JOIN--> JOINED --LEAVE--> KNOWN ...
 *	any --end of the process--> NEW, or GONE without a socket
 *	any --end of file, breach of the protocol, p3_rdv_ended()--> GONE
 *
 * When the socket of a JOINED node closes, the rendezvous waits up to eof_ms for
 * p3_rdv_ended() to tell how the process ended, for tools (attach.h), and longer while
 * conf.ends says that this will come: with status 0 the node has left, else, and without
 * a status (exec), it has died.  The peers get DIED in both cases.  A process that ends
 * while a wrapper script still holds the socket leaves the node NEW: the script's next
 * program may say HELLO.
 *
 * Memory is bounded: a node that does not read has at most a birth, a death and a pid
 * change of every other node queued (an end removes the unread birth before it);
 * a queued birth uses the descriptors of the table, and has copies only if it introduces
 * a node that has ended since.
 *
 * With conf.apart a birth carries no descriptors.  A node that wants to send to another
 * asks for them (AGAIN), and then both get the other's: each can take the last messages
 * of the other, even if that ends at once.
 *
 * For lookers (attach.h) the published and the host segment of a node that died are
 * kept, its doorbell and heap are not.  Of a node that left, counters and trace are
 * kept (remains.h); the same is done for a node that died once its rank says HELLO
 * again, since the next process may need its hugepages.  All kept files go when the
 * rank joins again or the job ends.
 */
#ifndef P3_LAUNCHER_RDV_H
#define P3_LAUNCHER_RDV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct p3_rdv;

/* News that a rendezvous on one of several hosts tells. */
enum p3_rdv_news {
	P3_RDV_ALL_WAIT, /* all ranks here wait in the barrier */
	P3_RDV_BROKEN,   /* a process has ended that was joined: the barrier fails */
	P3_RDV_GONE,     /* a rank will never come to a barrier again */
	P3_RDV_CARD      /* a rank has handed over its card */
};

struct p3_rdv_conf {
	uint32_t size;   /* number of nodes of the job, at least 1 */
	uint64_t layout; /* P3_LAYOUT_WORD; a node with another one is refused */
	uint32_t nid_base;
	uint32_t jid;
	uint32_t cpus;
	bool ends_job;   /* a failing rank ends the job: error lines of barriers do not
			  * name it */
	bool in_domain;  /* nodes meet in a domain, and ignore births and deaths from
			  * here */
	bool apart;      /* nodes get each other's descriptors when they first talk */
	uint32_t eof_ms; /* 0: p3_rdv_ended() is never called; an end of file is death */
	/* NULL, or return true if the process that is the node is ending, and
	 * p3_rdv_ended() will tell its status. */
	bool (*ends)(void *arg, uint32_t node, uint32_t os_pid);
	void *ends_arg;
	void (*say)(void *arg, const char *line); /* prints a line for users; or NULL */
	void *say_arg;
	/* NULL, or called when an incarnation ends.  The published segment is rdv's
	 * and still open. */
	void (*over)(void *arg, uint32_t node, int published, bool died);
	void *over_arg;
	/* NULL, or called when a node joins.  The published segment stays rdv's. */
	void (*joined)(void *arg, uint32_t node, int published);
	void *joined_arg;
	/* A job on several hosts: ranks first to first + here - 1 are on this one.
	 * Another process decides about all ranks: news tells it the events here, and its
	 * answers come by p3_rdv_release(), p3_rdv_gone() and p3_rdv_cards().
	 * here is 0: all ranks are on this host. */
	uint32_t first, here;
	int hosts; /* file for WELCOME (shm/job.h), or -1: the job has one host; it
		    * stays the caller's */
	void (*news)(void *arg, enum p3_rdv_news what, uint32_t node, const void *card,
		size_t len);
	void *news_arg;
};

/* Make a rendezvous.  Return NULL with errno on failure. */
struct p3_rdv *p3_rdv_create(const struct p3_rdv_conf *conf);

/* Close all sockets and descriptors: running nodes then see that yod is gone. */
void p3_rdv_destroy(struct p3_rdv *rdv);

/*
 * Add yod's end of a connected SOCK_SEQPACKET pair, which is rdv's after success.  The
 * caller sets SO_PASSCRED before the node can send; else rdv takes the process that made
 * the pair (SO_PEERCRED) for the sender.
 * Return 0, -EINVAL (no such node), -EBUSY (it has a socket), -EPERM (another user's),
 * or -errno.
 */
int p3_rdv_add(struct p3_rdv *rdv, uint32_t node, int sock);

/* Return a descriptor that is readable when p3_rdv_step() has work. */
int p3_rdv_fd(const struct p3_rdv *rdv);

/* Do all work, waiting up to timeout_ms (-1: for ever) for the first. */
int p3_rdv_step(struct p3_rdv *rdv, int timeout_ms);

/* Note that the node's process has ended with this wait status; it is not reaped yet. */
void p3_rdv_ended(struct p3_rdv *rdv, uint32_t node, int wait_status);

/*
 * Return true if, after p3_rdv_ended(), every survivor has dropped the node (or no node
 * is left, or P3_JOB_REAP_MS passed).  This changes inside p3_rdv_step() or
 * p3_rdv_ended() only.
 */
bool p3_rdv_may_reap(const struct p3_rdv *rdv, uint32_t node);

/* Return the number of nodes that are joined now. */
uint32_t p3_rdv_joined(const struct p3_rdv *rdv);

/* Return the number of nodes that wait in the barrier; *since_out is the time at which
 * the first of them began (p3_now_ms()). */
uint32_t p3_rdv_barrier(const struct p3_rdv *rdv, int64_t *since_out);

/* ---- answers in a job on several hosts ---- */

/* Release the waiting nodes: with status 0 all ranks of the job have come; with EPIPE
 * this rank has ended. */
void p3_rdv_release(struct p3_rdv *rdv, int status, uint32_t ended);
/* Note that a rank of any host will never come to a barrier again. */
void p3_rdv_gone(struct p3_rdv *rdv, uint32_t node);
/* Hand the cards of all ranks, `each` bytes a card, to the nodes that wait for them; or
 * with EPIPE the news that this rank has ended without a card. */
void p3_rdv_cards(struct p3_rdv *rdv, int status, uint32_t ended, const void *cards,
	size_t len, size_t each);

/* Return the number of packets queued for a node that does not read. */
uint32_t p3_rdv_queued(const struct p3_rdv *rdv, uint32_t node);

enum p3_rdv_state {
	P3_RDV_NEVER_JOINED,
	P3_RDV_JOINED,
	P3_RDV_LEFT,
	P3_RDV_DIED,
	P3_RDV_ELSEWHERE /* its host is another one */
};

/* The table's entry of a node; the descriptors stay rdv's, -1: none. */
struct p3_rdv_view {
	enum p3_rdv_state state;
	bool inited;           /* its process has said HELLO, and still runs */
	bool ended;            /* p3_rdv_ended() was called */
	int status;            /* with this status */
	uint32_t barrier_n;    /* number of nodes in the barrier that it waits in; 0: it
			     * does not */
	int64_t barrier_since; /* p3_now_ms() */
	uint32_t os_pid;       /* process that said HELLO last, 0: none */
	uint32_t nid;
	uint32_t pid[2];      /* as in a BORN */
	uint64_t incarnation; /* the last incarnation, 0: none */
	uint64_t layout;
	uint64_t seg_len;
	int published, host;
};

void p3_rdv_show(const struct p3_rdv *rdv, uint32_t node, struct p3_rdv_view *view_out);

#endif
