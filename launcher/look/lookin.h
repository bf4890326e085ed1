/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef P3_LAUNCHER_LOOK_LOOKIN_H
#define P3_LAUNCHER_LOOK_LOOKIN_H

#include "launcher/look/look.h"
#include "shm/domain.h"
#include "shm/job.h"

/*
 * lookin - the inside of a look, for the files that implement it (launcher/look/look.h)
 */

struct p3_look {
	int sock; /* connection to yod; -1: none */
	struct p3_attach_msg job;
	struct p3_look_node *node;
	struct p3_job_host *host;
	uint32_t hosts; /* hosts of the job; 0: one, or not known */
	uint32_t room;  /* nodes that the array has memory for */
	bool of_domain; /* the look is at a domain, or at a process that is in none */
	uint32_t alone; /* this process; 0: a domain, or a job of yod */
	char name[P3_DOMAIN_NAMES + 1];
	struct p3_domain domain; /* open while of_domain is true and alone is 0 */
};

/* Map the published segment and the host segment (-1: none) of an incarnation.  Return
 * 0 or -errno; the descriptors stay the caller's. */
int p3_look_map(struct p3_look_node *n, const int fds[P3_ATTACH_FDS], unsigned nfds,
	const struct p3_attach_msg *msg);
void p3_look_unmap(struct p3_look_node *n);
/* Unmap a node's segments if their incarnation has ended. */
void p3_look_unmap_stale(struct p3_look_node *n);
/* ---- the jobs of this machine (yod.c) ---- */

/* Connect to the job of a process.  Return the socket, or -ESRCH if no job has it, -EPERM
 * if it is another user's, or another -errno. */
int p3_look_connect(uint32_t pid);
/* Return the parent of a process, 0 if unknown. */
uint32_t p3_look_parent(uint32_t pid);

/* ---- questions to a yod (yod.c) ---- */

/* Ask for the job and all its nodes again, and map what is new.  Return 0 or -errno. */
int p3_look_ask_yod(struct p3_look *look);
/* Ask for the hosts of the job.  Return 0, also if it has one, or -errno. */
int p3_look_ask_hosts(struct p3_look *look);

#endif
