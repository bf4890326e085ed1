/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdv - the rendezvous: yod's side of shm/job.h
 *
 *	main loop  --add, ended-->  [ table of nodes ]  <--packets-->  nodes
 *		   <--may_reap---
 *
 * One thread runs it (yod's main loop, or a thread of a test whose nodes are threads);
 * nothing here is locked, nothing here blocks.  All its descriptors and deadlines are
 * behind one epoll descriptor: poll p3_rdv_fd(), then call p3_rdv_step().
 *
 * Life of a node in the table:
 *
 *	NEW --HELLO--> KNOWN --JOIN--> JOINED --LEAVE--> KNOWN ...
 *	any --end of the process--> NEW, or GONE without a socket
 *	any --end of file, breach of the protocol, p3_rdv_ended()--> GONE
 *
 * A JOINED node whose socket closes waits up to eof_ms for p3_rdv_ended() to tell how
 * its process ended, for tools (attach.h): with status 0 it has left, else, and without
 * word (exec), it has died.  Its peers are sent DIED.  A process that ends while a
 * wrapper script still holds the socket leaves the node NEW: the script's next program
 * may say HELLO.
 *
 * Memory is bounded: a node that does not read has at most a birth, a death and a pid
 * change of every other node queued (what is over cancels out); descriptors are not
 * duplicated, a queued birth uses those of the table.
 *
 * For those who look on (attach.h) the published and the host segment of a node that
 * died are kept, its doorbell and heap are not; of one that left its counters and its
 * trace are (remains.h), and of one that died, too, once its rank says HELLO again: the
 * next one may need its hugepages.  All that goes when it joins again or the job ends.
 */
#ifndef P3_LAUNCHER_RDV_H
#define P3_LAUNCHER_RDV_H

#include <stdbool.h>
#include <stdint.h>

struct p3_rdv;

struct p3_rdv_conf {
	uint32_t size;   /* nodes of the job, at least 1 */
	uint64_t layout; /* P3_LAYOUT_WORD: a node that has another one is refused */
	uint32_t nid_base;
	uint32_t jid;
	uint32_t cpus;
	bool ends_job;   /* when a rank fails: barriers that it spoils do not name it */
	bool in_domain;  /* nodes meet there, and heed no births and deaths from here */
	uint32_t eof_ms; /* 0: nobody will call p3_rdv_ended(), an end of file is death */
	void (*say)(void *arg, const char *line); /* what users must know; or NULL */
	void *say_arg;
	/* An incarnation is over; its published segment is still open.  Or NULL. */
	void (*over)(void *arg, uint32_t node, int published, bool died);
	void *over_arg;
	/* A node has joined with this published segment, which stays rdv's; or NULL. */
	void (*joined)(void *arg, uint32_t node, int published);
	void *joined_arg;
};

/* NULL with errno on failure. */
struct p3_rdv *p3_rdv_create(const struct p3_rdv_conf *conf);

/* Closes all sockets and descriptors: for nodes that still run, yod is gone. */
void p3_rdv_destroy(struct p3_rdv *rdv);

/*
 * Node's end of a connected SOCK_SEQPACKET pair; the socket is rdv's from success on.
 * Set SO_PASSCRED before the node can send (else SO_PEERCRED says who it is).  0,
 * -EINVAL: no such node, -EBUSY: it has a socket, -EPERM: of another user, -errno.
 */
int p3_rdv_add(struct p3_rdv *rdv, uint32_t node, int sock);

/* Readable when p3_rdv_step() has something to do. */
int p3_rdv_fd(const struct p3_rdv *rdv);

/* Does all there is to do, waiting up to timeout_ms (-1: for ever) for the first. */
int p3_rdv_step(struct p3_rdv *rdv, int timeout_ms);

/* The node's process has ended with this wait status; it is not reaped yet. */
void p3_rdv_ended(struct p3_rdv *rdv, uint32_t node, int wait_status);

/*
 * After p3_rdv_ended(): has every survivor dropped the node (or nobody is left, or
 * P3_JOB_REAP_MS passed)?  Turns true inside p3_rdv_step() or p3_rdv_ended().
 */
bool p3_rdv_may_reap(const struct p3_rdv *rdv, uint32_t node);

/* Nodes that are joined now. */
uint32_t p3_rdv_joined(const struct p3_rdv *rdv);

/* How many nodes wait in the barrier, and since when the first of them does
 * (p3_now_ms()). */
uint32_t p3_rdv_barrier(const struct p3_rdv *rdv, int64_t *since_out);

/* Packets queued for a node that does not read. */
uint32_t p3_rdv_queued(const struct p3_rdv *rdv, uint32_t node);

enum p3_rdv_state { P3_RDV_NEVER_JOINED, P3_RDV_JOINED, P3_RDV_LEFT, P3_RDV_DIED };

/* What the table says of a node; the descriptors stay rdv's, -1: there are none. */
struct p3_rdv_view {
	enum p3_rdv_state state;
	bool inited;        /* its process has said HELLO, and is not gone */
	bool ended;         /* p3_rdv_ended() was called, */
	int status;         /* with this */
	uint32_t barrier_n; /* waits in the barrier: so many have come; 0: it does not */
	int64_t barrier_since; /* p3_now_ms() */
	uint32_t os_pid;       /* that said HELLO last, 0: none */
	uint32_t nid;
	uint32_t pid[2];      /* as in a BORN */
	uint64_t incarnation; /* the last one, 0: none */
	uint64_t layout;
	uint64_t seg_len;
	int published, host;
};

void p3_rdv_show(const struct p3_rdv *rdv, uint32_t node, struct p3_rdv_view *view_out);

#endif
