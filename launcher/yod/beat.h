/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beat - the life of the connection between yod and an agent
 *
 * A host that is switched off, or whose network is cut, ends no connection.  So both ends
 * send a frame now and then (P3_FRAME_BEAT), and take the other one for lost if no frame
 * has come for PTL3_FAR_TIMEOUT; with "never" they do not.  A process that was stopped
 * finds a silence that is its own: it looks twice, and reads in between what has come.
 *
 * The main thread of each end calls these functions; the state is struct p3_beat.
 */
#ifndef P3_LAUNCHER_BEAT_H
#define P3_LAUNCHER_BEAT_H

#include <stdbool.h>
#include <stdint.h>

struct p3_beat {
	int64_t timeout_ms; /* 0: never, or not begun */
	int64_t send_at;
	int64_t lost_at; /* time of the next look at the silence */
	bool late;       /* there was a silence at the last look */
};

/* Begin, by the setting. */
void p3_beat_begin(struct p3_beat *b);
void p3_beat_end(struct p3_beat *b);
/* Note that a frame has come. */
void p3_beat_heard(struct p3_beat *b);
/* Return true if a frame is to be sent now. */
bool p3_beat_is_due(struct p3_beat *b);
/* Return true if the other end is lost. */
bool p3_beat_is_lost(struct p3_beat *b);
/* Return the time (p3_now_ms()) of the next call of the two, or P3_NEVER. */
int64_t p3_beat_at(const struct p3_beat *b);

#endif
