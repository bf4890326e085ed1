/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outlets - the output of nodes from agents to yod's own output, or to files
 *
 *	OUTPUT frames --p3_outlets_take--> [ stream, 64 KiB ] --> pipe, or file
 *		      <--ROOM: bytes that were handed on---
 *
 * Bytes that a file does not take are lost, and their rank goes on: as on one host, a
 * full disk is no reason to end it, and later bytes may find room.
 *
 * A stream that its reader holds up keeps its bytes here, and its agent sends no more of
 * it; the other streams go on.  One thread calls all functions; poll p3_outlets_fd(),
 * then call p3_outlets_step().  The state is struct p3_outlets.
 */
#ifndef P3_LAUNCHER_OUTLETS_H
#define P3_LAUNCHER_OUTLETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct p3_outlets;
struct p3_ranks;

struct p3_outlets_conf {
	uint32_t ranks;
	/* Called when n bytes of a stream were handed on; n is 0 if the stream has no
	 * reader any more. */
	void (*handed_on)(void *arg, uint32_t rank, int which, size_t n);
	/* Called with true when all bytes of a stream are handed on and its node has
	 * written no more for a while, and with false when more have come. */
	void (*idle)(void *arg, uint32_t rank, int which, bool idle);
	/* Called when bytes of a stream are lost for the first time, with an errno. */
	void (*lost)(void *arg, uint32_t rank, int which, int err);
	void *arg;
};

/* Return NULL with errno on failure. */
struct p3_outlets *p3_outlets_create(const struct p3_outlets_conf *conf);
void p3_outlets_destroy(struct p3_outlets *o);

/* Let a stream go to a descriptor, which becomes the outlets'.  Return 0 or -errno. */
int p3_outlets_add(struct p3_outlets *o, uint32_t rank, int which, int fd);

/* Take bytes of a stream.  Return false if there are more than its agent may send. */
bool p3_outlets_take(
	struct p3_outlets *o, uint32_t rank, int which, const void *bytes, size_t len);

/* Note that the node has written no more for a while. */
void p3_outlets_idle(struct p3_outlets *o, uint32_t rank, int which);

/* Note that the stream has ended: close it when all its bytes are handed on. */
void p3_outlets_end(struct p3_outlets *o, uint32_t rank, int which);

int p3_outlets_fd(const struct p3_outlets *o);
void p3_outlets_step(struct p3_outlets *o);

/* Add the ranks of which bytes are lost.  Return their number. */
uint32_t p3_outlets_lost(const struct p3_outlets *o, struct p3_ranks *ranks);

#endif
