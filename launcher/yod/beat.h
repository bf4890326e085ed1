/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * beat - keepalives on the connection between yod and an agent
 *
 * When a host is switched off or its network is cut, its connections stay open.  So both
 * ends send a frame now and then (P3_FRAME_BEAT), and treat the other end as lost if no
 * frame has come for PTL3_FAR_TIMEOUT, unless that is "never".  A process that was itself
 * stopped would see such a silence, too.  So it checks twice, and reads the frames that
 * have come between the two checks.
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
	int64_t lost_at; /* time of the next check for silence */
	bool late;       /* the last check found silence */
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
