/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard input for rank 0 in an agent. */
#include "launcher/yod/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int p3_feed_open(struct p3_feed *f, struct p3_frames *from, int *read_end_out)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	if (fcntl(ends[1], F_SETFL, O_NONBLOCK) ||
		!p3_backlog_room(&f->bytes, P3_FRAMES_ROOM)) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	f->from = from;
	f->to = ends[1];
	f->ended = false;
	*read_end_out = ends[0];
	return 0;
}

void p3_feed_close(struct p3_feed *f)
{
	if (f->to >= 0)
		close(f->to);
	f->to = -1;
	p3_backlog_free(&f->bytes);
}

bool p3_feed_take(struct p3_feed *f, const void *bytes, size_t len)
{
	if (f->to < 0)
		return true;
	if (len > P3_FRAMES_ROOM - p3_backlog_len(&f->bytes))
		return false;
	f->ended |= !len;
	(void)p3_backlog_add(&f->bytes, bytes, len); /* p3_feed_open() has made room */
	p3_feed_step(f);
	return true;
}

int p3_feed_wants(const struct p3_feed *f)
{
	return p3_backlog_len(&f->bytes) ? f->to : -1;
}

static void hand_on(struct p3_feed *f)
{
	ssize_t n = write(f->to, p3_backlog_bytes(&f->bytes), p3_backlog_len(&f->bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		p3_frames_send(f->from, (struct p3_frame){.op = P3_FRAME_NO_INPUT}, NULL);
		p3_feed_close(f);
		return;
	}
	p3_backlog_take(&f->bytes, (size_t)n);
	p3_frames_send(f->from,
		(struct p3_frame){.op = P3_FRAME_ROOM, .number = (uint64_t)n}, NULL);
}

void p3_feed_step(struct p3_feed *f)
{
	if (p3_feed_wants(f) >= 0)
		hand_on(f);
	if (f->to >= 0 && f->ended && !p3_backlog_len(&f->bytes))
		p3_feed_close(f);
}
