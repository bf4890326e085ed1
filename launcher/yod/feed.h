/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * feed - yod's standard input on its way into the pipe of rank 0, in an agent
 *
 *	INPUT frames --p3_feed_take--> [ 64 KiB ] --> pipe
 *		     <--ROOM, NO_INPUT--
 *
 * One thread calls all functions; poll p3_feed_wants() for room, then call
 * p3_feed_step().  The state is struct p3_feed.
 */
#ifndef P3_LAUNCHER_FEED_H
#define P3_LAUNCHER_FEED_H

#include "launcher/yod/frames.h"

struct p3_feed {
	struct p3_frames *from;
	int to; /* -1: closed */
	bool ended;
	struct p3_backlog bytes; /* P3_FRAMES_ROOM at most */
};

/* Make the pipe, and set *read_end_out.  Return 0 or -errno. */
int p3_feed_open(struct p3_feed *feed, struct p3_frames *from, int *read_end_out);
void p3_feed_close(struct p3_feed *feed);

/* Take bytes of input; len 0 is its end.  Return false if yod has sent more than there is
 * room for. */
bool p3_feed_take(struct p3_feed *feed, const void *bytes, size_t len);

/* Return the descriptor to poll for room, or -1. */
int p3_feed_wants(const struct p3_feed *feed);
void p3_feed_step(struct p3_feed *feed);

#endif
