/* SPDX-License-Identifier: BSD-3-Clause */
/* Deadlines of the frames between yod and an agent. */
#include "launcher/yod/beat.h"
#include "launcher/clock.h"
#include "shm/conf.h"

#define EACH     4 /* frames in the time of a silence */
#define MOST_MS  5000
#define AGAIN_MS 500

void p3_beat_begin(struct p3_beat *b)
{
	uint32_t seconds = 0;
	(void)p3_conf_far_timeout(p3_conf_text(P3_CONF_FAR_TIMEOUT), &seconds);
	*b = (struct p3_beat){.timeout_ms = (int64_t)seconds * 1000};
	p3_beat_heard(b);
}

void p3_beat_end(struct p3_beat *b)
{
	b->timeout_ms = 0;
}

void p3_beat_heard(struct p3_beat *b)
{
	b->late = false;
	b->lost_at = p3_now_ms() + b->timeout_ms;
}

bool p3_beat_is_due(struct p3_beat *b)
{
	int64_t each = p3_earlier(b->timeout_ms / EACH, MOST_MS);
	if (!b->timeout_ms || b->send_at > p3_now_ms())
		return false;
	b->send_at = p3_now_ms() + each;
	return true;
}

bool p3_beat_is_lost(struct p3_beat *b)
{
	if (!b->timeout_ms || b->lost_at > p3_now_ms())
		return false;
	bool twice = b->late;
	b->late = true;
	b->lost_at = p3_now_ms() + AGAIN_MS;
	return twice;
}

int64_t p3_beat_at(const struct p3_beat *b)
{
	return b->timeout_ms ? p3_earlier(b->send_at, b->lost_at) : P3_NEVER;
}
