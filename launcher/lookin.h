/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lookin - what a look is inside, for the files that make it (launcher/look.h)
 *
 *	look.c		jobs of yod, which tells of its nodes and hands out descriptors
 *	look_domain.c	domains, whose locks and processes are asked for the same
 */
#ifndef P3_LAUNCHER_LOOKIN_H
#define P3_LAUNCHER_LOOKIN_H

#include "launcher/look.h"
#include "shm/domain.h"

struct p3_look {
	int sock; /* of yod; -1: none */
	struct p3_attach_msg job;
	struct p3_look_node *node;
	uint32_t room;  /* nodes that there is memory for */
	bool of_domain; /* or of a single process, */
	uint32_t alone; /* which is this one; 0: of a domain */
	char name[P3_DOMAIN_NAMES + 1];
	struct p3_domain domain; /* open while of_domain is true and alone is 0 */
};

/* Map the published segment and the host segment (-1: none) of an incarnation.  0 or
 * -errno; the descriptors stay the caller's. */
int p3_look_map(struct p3_look_node *n, const int fds[P3_ATTACH_FDS], unsigned nfds,
	const struct p3_attach_msg *msg);
void p3_look_unmap(struct p3_look_node *n);
/* Drop a mapping of an incarnation that is over. */
void p3_look_unmap_stale(struct p3_look_node *n);
/* The parent of a process, 0: not known. */
uint32_t p3_look_parent(uint32_t pid);

/* look_domain.c */

/* The domain that a process, or one below it, is a member of; or the process alone.  0;
 * -ESRCH. */
int p3_look_find_member(struct p3_look *look, uint32_t pid);
int p3_look_ask_domain(struct p3_look *look);

#endif
