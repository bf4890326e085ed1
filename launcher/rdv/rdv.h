/* SPDX-License-Identifier: BSD-3-Clause */
/* The rendezvous of a job, and its service for processes that look at the job. */
#ifndef P3_LAUNCHER_RDV_RDV_H
#define P3_LAUNCHER_RDV_RDV_H

#include "launcher/frames.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * rdv - the rendezvous: yod's side of shm/job.h
 *
 *	main loop  --add, ended-->  [ table of nodes ]  <--packets-->  nodes
 *		   <--may_reap---
 *
 * One thread calls all functions (yod's main loop, or a thread of a test whose nodes
 * are threads), that of the loop in its conf; there are no locks, and none of them
 * blocks.  The state is struct p3_rdv (table.h).
 *
 * Life of a node in the table:
 *
 *	NEW --HELLO--> KNOWN --JOIN--> JOINED --LEAVE--> KNOWN ...
 *	any --end of the process--> NEW, or GONE without a socket
 *	any --end of file, breach of the protocol, p3_rdv_ended()--> GONE
 *
 * When the socket of a node closes, the rendezvous waits up to eof_ms for p3_rdv_ended()
 * to tell how the process ended, and longer while conf.ends says that this will come: a
 * joined node has left with status 0, for tools (below), and else, and without a status
 * (exec), it has died.  The peers get DIED in both cases.  Nobody hears of an end before
 * its status has come, so that yod knows the first failure before another rank fails
 * because of it.  A process that ends
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
 * For lookers (below) the published and the host segment of a node that died are
 * kept, its doorbell and heap are not.  Of a node that left, counters and trace are
 * kept (table.h); the same is done for a node that died once its rank says HELLO
 * again, since the next process may need its hugepages.  All kept files go when the
 * rank joins again or the job ends.
 */

struct p3_rdv;

enum p3_rdv_state {
	P3_RDV_NEVER_JOINED,
	P3_RDV_JOINED,
	P3_RDV_LEFT,
	P3_RDV_DIED,
	P3_RDV_ELSEWHERE /* its host is another one */
};

struct p3_rdv_conf {
	struct p3_loop *loop; /* that hears the nodes */
	uint32_t size;        /* number of nodes of the job, at least 1 */
	uint64_t layout;      /* P3_LAYOUT_WORD; a node with another one is refused */
	uint32_t nid_base;
	uint32_t jid;
	uint32_t cpus;
	bool ends_job;   /* a failing rank ends the job: error lines of barriers do not
			  * name it */
	bool in_domain;  /* nodes meet in a domain, and ignore births and deaths from
			  * here */
	bool apart;      /* nodes get each other's descriptors when they first talk */
	uint32_t eof_ms; /* 0: p3_rdv_ended() is never called; an end of file is death */
	/* NULL, or return true if the program that was started is ending, and
	 * p3_rdv_ended() will tell its status. */
	bool (*ends)(pid_t started);
	/* Print a line for users; or NULL. */
	void (*say)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
	void *arg; /* of the functions below */
	/* NULL, or called when a node has joined, left or died.  The published segment
	 * stays rdv's, and is still open. */
	void (*life)(void *arg, uint32_t node, int published, enum p3_rdv_state state);
	/* A job on several hosts: ranks first to first + here - 1 are on this one.  The
	 * yod at the other end of `parent` decides about all ranks: it gets the events
	 * here, and its orders come by p3_rdv_order().  Else they are 0 and NULL. */
	uint32_t first, here;
	struct p3_frames *parent;
	int hosts; /* file for WELCOME (shm/job.h), or -1: the job has one host; it
		    * stays the caller's */
};

/* Make a rendezvous.  Return NULL with errno on failure. */
struct p3_rdv *p3_rdv_create(const struct p3_rdv_conf *conf);
/* Close all sockets and descriptors: running nodes then see that yod is gone. */
void p3_rdv_destroy(struct p3_rdv *rdv);
/* Add yod's end of a connected SOCK_SEQPACKET pair, which is rdv's after success, and the
 * pid of the program that yod has started with the other end.  The caller sets
 * SO_PASSCRED before the node can send; else rdv takes the process that made the pair
 * (SO_PEERCRED) for the sender.
 * Return 0, -EINVAL (no such node), -EBUSY (it has a socket), -EPERM (another user's),
 * or -errno. */
int p3_rdv_add(struct p3_rdv *rdv, uint32_t node, int sock, uint32_t started_pid);
/* Note that the node's process has ended with this wait status; it is not reaped yet. */
void p3_rdv_ended(struct p3_rdv *rdv, uint32_t node, int wait_status);
/* Return true if, after p3_rdv_ended(), every survivor has dropped the node (or no node
 * is left, or P3_JOB_REAP_MS passed).  This changes in the loop or in
 * p3_rdv_ended() only. */
bool p3_rdv_may_reap(const struct p3_rdv *rdv, uint32_t node);
/* Return the number of nodes that wait in the barrier; *since_out is the time at which
 * the first of them began (p3_now_ms()). */
uint32_t p3_rdv_barrier(const struct p3_rdv *rdv, int64_t *since_out);

/* Take an order of yod in a job on several hosts: the barrier is over, a rank of any host
 * will never come to one, or here are the cards of all ranks. */
void p3_rdv_order(struct p3_rdv *rdv, const struct p3_frame *f, const char *bytes);

/*
 * attach - yod's side of looking at a job: the service for ptlstat and other lookers
 *
 *	ptlstat  --connect-->  abstract socket "portals3/UID/JOB"	SOCK_SEQPACKET
 *		 --LOOK-->  yod  --JOB, NODE 0 ... NODE size-1-->
 *		 --SEGMENTS node-->  yod  --SEGMENTS (2 descriptors)-->
 *		 --HOSTS-->  yod  --HOSTS (1 descriptor)-->
 *
 * JOB is the job's number (the pid of the yod that the user started), UID yod's user.
 * The kernel removes the name when yod ends, so nothing is left behind; /proc/net/unix
 * lists these names.  If another process has taken the name, yod appends ".1"
 * to ".9".
 *
 * Only yod's own user and root are served, as the kernel identifies them (SO_PEERCRED);
 * others get REFUSED.  A looker must check the owner of the socket that it has
 * connected to in the same way.
 *
 * The segments are the node's published one and its host segment, sealed by their owner:
 * they can be mapped read-only, and do not shrink.  Those of a node that died are kept
 * until its rank begins again or the job ends.  Of a node that left, the remains
 * (table.h) are kept as long, in place of its published segment: yod then sends this
 * one descriptor, and none of a host segment.
 *
 * The file of HOSTS is that of the job's hosts (struct p3_job_host).  A job on one host
 * has none.  On several hosts each agent serves lookers of its host, and describes the
 * other ranks only as P3_RDV_ELSEWHERE.
 *
 * yod waits for no looker, and queues nothing for one: it makes each packet of an answer
 * when the looker's socket has room, from the table as it is then, and reads the next
 * question only when the last one is answered.  There are at most P3_ATTACH_CLIENTS
 * lookers; one more replaces the one that has been silent for the longest time.
 * No function blocks.
 */

#define P3_ATTACH_MAGIC   0x33504c02u /* protocol; the low byte is its version */
#define P3_ATTACH_CLIENTS 16u
#define P3_ATTACH_FDS     2u /* published, host; or the remains */

enum p3_attach_op {
	P3_ATTACH_LOOK = 1, /* looker */
	P3_ATTACH_SEGMENTS, /* looker: node; yod: the same with descriptors, or status */
	P3_ATTACH_JOB,      /* yod: size, jid, os_pid (its own), uid */
	P3_ATTACH_NODE,     /* yod: all members except size */
	P3_ATTACH_REFUSED,  /* yod: status is an errno */
	P3_ATTACH_HOSTS,    /* looker; yod: the same with a descriptor, or status */
};

/* One packet.  Unused members are zero. */
struct p3_attach_msg {
	uint32_t magic;
	uint32_t op;
	uint32_t node; /* rank */
	uint32_t size; /* number of nodes of the job */
	uint32_t jid;
	uint32_t uid;
	uint32_t nid;
	uint32_t pid[2];      /* Portals pids by interface */
	uint32_t os_pid;      /* process that is the node, or was last; 0: none yet */
	uint32_t started_pid; /* pid of the program that yod started, 0: none yet */
	uint32_t state;       /* p3_rdv_state */
	uint32_t inited;      /* PtlInit was called, and its process still runs */
	uint32_t ended;       /* the program that yod started has ended */
	int32_t status;       /* its wait status; SEGMENTS, REFUSED: an errno */
	uint32_t barrier_n;   /* nodes that wait in PtlXBarrier, this one included; 0:
			       * this one does not */
	uint32_t barrier_ms;  /* milliseconds of that wait */
	uint32_t remains;     /* only the remains are left: table.h */
	uint64_t incarnation; /* 0: it has never joined */
	uint64_t layout;      /* P3_LAYOUT_WORD of the job */
	uint64_t seg_len;     /* bytes of the published segment */
};

_Static_assert(sizeof(struct p3_attach_msg) == 96, "the packet is a format");

/* Describe a node as in a P3_ATTACH_NODE.  fds_out, if not NULL,
 * gets its published and its host segment, which stay rdv's; -1: none. */
void p3_rdv_show(const struct p3_rdv *rdv, uint32_t node, struct p3_attach_msg *out,
	int fds_out[P3_ATTACH_FDS]);

struct p3_attach;

/* A socket at which clients ask. */
struct p3_service {
	struct p3_loop *loop;
	struct p3_loop_fd listener;
	struct p3_loop_timer again; /* no descriptor was left for a client: try again */
	/* Take over the socket of a client; ours: it is yod's own user, or root. */
	void (*admit)(void *arg, int sock, bool ours);
	void *arg;
};

/* Listen at the abstract socket "SERVICE/UID/JOB" (with ".1" and so on behind it where
 * that is taken, up to this number of names).  Return 0 or -errno; to be closed in both
 * cases. */
int p3_service_open(
	struct p3_service *s, int type, const char *service, uint32_t jid, int names);
void p3_service_close(struct p3_service *s);

/* Open the service, in the loop of the rendezvous.  Return 0, or -errno: no process can
 * look at the job. */
int p3_attach_create(const struct p3_rdv *rdv, struct p3_attach **attach_out);
void p3_attach_destroy(struct p3_attach *attach);
/* Serve a looker at the other end of this socket, which is attach's from now on. */
void p3_attach_admit(struct p3_attach *attach, int sock);

#endif
