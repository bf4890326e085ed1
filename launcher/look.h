/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * look - the looker's side of attach.h: jobs of this machine, their nodes, and what the
 * nodes' segments say.  Read-only; the job does not notice.  Domains (shm/domain.h) are
 * looked at likewise, as jobs whose size may change: ranks of mpirun and the like, and
 * processes started by hand.
 *
 *	struct p3_look *look;
 *	int rc = p3_look_open(pid, &look);	// a job's number, or a pid of it
 *	...
 *	while (!(rc = p3_look_again(look)))	// states; maps what is new
 *		for (uint32_t i = 0; i < p3_look_job(look)->size; i++)
 *			use(p3_look_node(look, i));
 *	p3_look_close(look);
 *
 * Whatever a segment says was written by another process, which may be writing now, or
 * have died in the middle: range-check each offset and index, and read words that change
 * with p3_get().  Look at nothing but through p3_look_bytes(), which knows that there is
 * memory behind it.
 *
 * Not for several threads at the same time.  Returns are 0 or -errno:
 *	-ESRCH	there is no such job of this user: ended, or its yod was killed
 *	-EPERM	it is another user's
 *	-ETIMEDOUT yod does not answer within P3_LOOK_MS: it is stopped, or starved
 *	-EPIPE	the job has ended, or its yod was killed, since p3_look_open()
 *	-EPROTO	yod is of another version, or is none
 */
#ifndef P3_LAUNCHER_LOOK_H
#define P3_LAUNCHER_LOOK_H

#include "launcher/attach.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define P3_LOOK_MS 3000

/* Calls found for each job of this user (of all users for root), ascending numbers. */
void p3_look_jobs(void (*found)(void *arg, uint32_t uid, uint32_t jid), void *arg);

/* Call found for each domain with members of this user (of all users for root). */
void p3_look_domains(
	void (*found)(void *arg, uint32_t uid, const char *name, uint32_t members),
	void *arg);

struct p3_look;

/* pid: a job's number, that of yod, of one of its nodes, or of a process below these; or
 * of a member of a domain, or of a process above it such as mpirun; or of a process with
 * an interface that is in no domain. */
int p3_look_open(uint32_t pid, struct p3_look **look_out);
int p3_look_open_domain(const char *name, struct p3_look **look_out);
/* The name of the domain; empty: a process that is in none; NULL: it is a job of yod. */
const char *p3_look_domain(const struct p3_look *look);
void p3_look_close(struct p3_look *look);

/* What yod says now.  Mappings of an incarnation that is over go. */
int p3_look_again(struct p3_look *look);

/* size, jid, uid, os_pid of yod: as in a P3_ATTACH_JOB. */
const struct p3_attach_msg *p3_look_job(const struct p3_look *look);

enum p3_look_seg { P3_LOOK_PUBLISHED, P3_LOOK_HOST };

struct p3_look_map {
	const char *base; /* NULL: not mapped */
	uint64_t len;
	uint64_t reached; /* from the start there is memory up to here */
};

struct p3_look_node {
	struct p3_attach_msg msg; /* P3_ATTACH_NODE */
	uint64_t mapped;          /* incarnation that seg is of, 0: none */
	bool remains;             /* all that is left of it: remains.h; no host segment */
	struct p3_look_map seg[P3_ATTACH_FDS];
};

/* i < size; until the next look. */
const struct p3_look_node *p3_look_node(const struct p3_look *look, uint32_t i);

/*
 * len bytes at off of a segment; NULL: the segment is not mapped, is shorter, or has no
 * memory there.  Asks for no page that its owner has not reserved only if off and len are
 * what the owner's own words tell.
 */
const void *p3_look_bytes(const struct p3_look *look, uint32_t i, enum p3_look_seg which,
	uint64_t off, uint64_t len);

#endif
