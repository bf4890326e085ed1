/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef P3_LAUNCHER_LOOK_LOOK_H
#define P3_LAUNCHER_LOOK_LOOK_H

#include "launcher/rdv/rdv.h"
#include "shm/trace.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * look - the looker's side of rdv.h: jobs of this machine, their nodes, and the
 * nodes' segments.  Read-only; the job does not notice.  Domains (shm/domain.h) are
 * looked at likewise, as jobs whose size may change: ranks of mpirun and the like, and
 * processes started by hand.
 *
 *	struct p3_look *look;
 *	int rc = p3_look_open(pid, &look);	// a job's number, or a pid of it
 *	...
 *	while (!(rc = p3_look_again(look)))	// states; maps new segments
 *		for (uint32_t i = 0; i < p3_look_job(look)->size; i++)
 *			use(p3_look_node(look, i));
 *	p3_look_close(look);
 *
 * The content of a segment comes from another process, which may be writing now, or
 * have died in the middle: range-check each offset and index, and read words that
 * change with p3_get().  Read segments through p3_look_bytes() only: it makes sure that
 * there is memory behind the bytes.
 *
 * One thread at a time may use a look.  Returns are 0 or -errno:
 *	-ESRCH	there is no such job of this user: ended, or its yod was killed
 *	-EPERM	it is another user's
 *	-ETIMEDOUT yod does not answer within P3_LOOK_MS: it is stopped, or starved
 *	-EPIPE	the job has ended, or its yod was killed, since p3_look_open()
 *	-ETOOMANYREFS yod could send no descriptors for P3_LOOK_MS
 *	-EPROTO	yod is of another version, or is none
 */

#define P3_LOOK_MS 3000

/* Call found for each job of this user (of all users for root), in order of jid. */
void p3_look_jobs(void (*found)(void *arg, uint32_t uid, uint32_t jid), void *arg);
/* Call found for each domain with members of this user (of all users for root), until it
 * returns true.  Return true if it has. */
bool p3_look_domains(
	bool (*found)(void *arg, uint32_t uid, const char *name, uint32_t members),
	void *arg);

struct p3_look;

/* Look at the job or domain that a process belongs to.  pid is a job's number, or the pid
 * of yod, of a node, or of a process below these; of a member of a domain, or of a
 * process above it such as mpirun; or of a process whose interface is in no domain. */
int p3_look_open(uint32_t pid, struct p3_look **look_out);
/* Look at the job whose yod, or agent, serves the other end of this socket, which is the
 * look's from now on. */
int p3_look_open_socket(int sock, struct p3_look **look_out);
int p3_look_open_domain(const char *name, struct p3_look **look_out);
/* Return the domain's name; "" for a process that is in none; NULL for a job of yod. */
const char *p3_look_domain(const struct p3_look *look);
void p3_look_close(struct p3_look *look);
/* Return the name of a rank's host, or NULL: the job has one host, or is none of yod. */
const char *p3_look_host(const struct p3_look *look, uint32_t rank);
/* Connect to the yod of the job on several hosts with this number, or of which this
 * process is one.  Return a stream socket for frames (launcher/frames.h), or -errno
 * as p3_look_open(). */
int p3_look_connect_hosts(uint32_t pid);
/* Read yod's table anew, and unmap the segments of incarnations that have ended. */
int p3_look_again(struct p3_look *look);
/* Return the job's size, jid and uid, and yod's os_pid, as in a P3_ATTACH_JOB. */
const struct p3_attach_msg *p3_look_job(const struct p3_look *look);

enum p3_look_seg { P3_LOOK_PUBLISHED, P3_LOOK_HOST };

struct p3_look_map {
	const char *base; /* NULL: not mapped */
	uint64_t len;
	uint64_t reached; /* length from the start that is known to have memory */
};

struct p3_look_node {
	struct p3_attach_msg msg; /* P3_ATTACH_NODE */
	uint64_t mapped;          /* incarnation that seg belongs to, 0: none */
	bool remains;             /* only its remains are left (table.h); no host
				   * segment */
	struct p3_look_map seg[P3_ATTACH_FDS];
};

/* Return node i, which is below the job's size; valid until the next p3_look_again(). */
const struct p3_look_node *p3_look_node(const struct p3_look *look, uint32_t i);
/* Return len bytes at off of a segment, or NULL if the segment is not mapped, is
 * shorter, or has no memory there.  If off and len come from the owner's own words,
 * this touches no page that the owner has not reserved. */
const void *p3_look_bytes(const struct p3_look *look, uint32_t i, enum p3_look_seg which,
	uint64_t off, uint64_t len);

/* Read the trace of a published segment, or of node i.  Return NULL with errno: ENODATA
 * if there is none. */
struct p3_trace_taken *p3_look_trace(int published);
struct p3_trace_taken *p3_look_node_trace(const struct p3_look *look, uint32_t i);

#endif
