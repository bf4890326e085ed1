/* SPDX-License-Identifier: BSD-3-Clause */
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
 * (remains.h) are kept as long, in place of its published segment: yod then sends this
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
 *
 * Only the thread of yod's main loop calls these functions; none of them blocks.  The
 * state is struct p3_attach.
 */
#ifndef P3_LAUNCHER_ATTACH_H
#define P3_LAUNCHER_ATTACH_H

#include "launcher/rdv/rdv.h"

#include <stdint.h>

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
	uint32_t remains;     /* only the remains are left: remains.h */
	uint64_t incarnation; /* 0: it has never joined */
	uint64_t layout;      /* P3_LAYOUT_WORD of the job */
	uint64_t seg_len;     /* bytes of the published segment */
};

_Static_assert(sizeof(struct p3_attach_msg) == 96, "the packet is a format");

struct p3_attach;

struct p3_attach_conf {
	uint32_t jid;
	uint32_t size;
	const struct p3_rdv *rdv;
	int hosts; /* file of the job's hosts, or -1; it stays the caller's */
	uint32_t (*started_pid)(void *arg, uint32_t node);
	void *arg;
};

/* Open the service.  Return 0, or -errno: no process can look at the job. */
int p3_attach_create(const struct p3_attach_conf *conf, struct p3_attach **attach_out);
void p3_attach_destroy(struct p3_attach *attach);

/* Serve a looker at the other end of this socket, which is attach's from now on. */
void p3_attach_admit(struct p3_attach *attach, int sock);

/* Return a descriptor that is readable when p3_attach_step() has work. */
int p3_attach_fd(const struct p3_attach *attach);
void p3_attach_step(struct p3_attach *attach);

#endif
