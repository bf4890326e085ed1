/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * relay - the nodes' output on its way from an agent to yod
 *
 *	node's pipe --> OUTPUT frames, for which yod has room
 *
 * A node that has written nothing for P3_OUTPUT_IDLE_MS within a line is IDLE: yod then
 * prints the part of the line.  A stream for which yod has no room is not read, so its
 * node is held up, as by a full pipe; the other streams go on.  Other holders of an ended
 * node's pipes may print for 2 more seconds.  One thread calls all functions; poll
 * p3_relay_fd(), then call p3_relay_step().  The state is struct p3_relay.
 */
#ifndef P3_LAUNCHER_RELAY_H
#define P3_LAUNCHER_RELAY_H

#include <stdbool.h>
#include <stdint.h>

struct p3_frames;
struct p3_relay;

/* Return NULL with errno on failure. */
struct p3_relay *p3_relay_create(uint32_t ranks, struct p3_frames *to);
void p3_relay_destroy(struct p3_relay *r);

/* Take over the read end of the pipe of a node's stdout (which 0) or stderr (1). */
int p3_relay_add(struct p3_relay *r, uint32_t rank, int which, int fd);

/* yod has room for n more bytes of the stream. */
void p3_relay_room(struct p3_relay *r, uint32_t rank, int which, uint64_t n);

/* Close a stream that has no reader. */
void p3_relay_drop(struct p3_relay *r, uint32_t rank, int which);

/* Note that the node has ended. */
void p3_relay_ended(struct p3_relay *r, uint32_t rank);

int p3_relay_fd(const struct p3_relay *r);
void p3_relay_step(struct p3_relay *r);

/* Return true if all streams are at their end. */
bool p3_relay_is_done(const struct p3_relay *r);

#endif
