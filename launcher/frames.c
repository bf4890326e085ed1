/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes and frames that wait: queueing, sending, reading, checking, keepalives. */
#include "launcher/frames.h"
#include "shm/conf.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_AT_ONCE (128u * 1024u)
#define VERSION      0xffu

ssize_t p3_backlog_read(struct p3_backlog *b, int fd, size_t most)
{
	char *to = p3_backlog_room(b, most);
	if (!to)
		return -ENOMEM;
	ssize_t n = read(fd, to, most);
	b->end += n > 0 ? (size_t)n : 0;
	return n > 0 ? n : !n || errno == ECONNRESET ? -EPIPE : -errno;
}

ssize_t p3_backlog_write(struct p3_backlog *b, int fd)
{
	ssize_t n = write(fd, p3_backlog_bytes(b), p3_backlog_len(b));
	if (n < 0)
		return -errno;
	p3_backlog_take(b, (size_t)n);
	return n;
}

/* ---- keepalives ---- */

#define BEAT_EACH     4 /* frames in the time of a silence */
#define BEAT_MOST_MS  5000
#define BEAT_AGAIN_MS 500

/* Note that a frame has come. */
static void beat_heard(struct p3_beat *b)
{
	b->late = false;
	b->lost_at = p3_now_ms() + b->timeout_ms;
}

/* Return true if a frame is to be sent now. */
static bool beat_is_due(struct p3_beat *b)
{
	int64_t each = p3_earlier(b->timeout_ms / BEAT_EACH, BEAT_MOST_MS);
	if (!b->timeout_ms || b->send_at > p3_now_ms())
		return false;
	b->send_at = p3_now_ms() + each;
	return true;
}

/* Return true if the other end is lost. */
static bool beat_is_lost(struct p3_beat *b)
{
	if (!b->timeout_ms || b->lost_at > p3_now_ms())
		return false;
	bool twice = b->late;
	b->late = true;
	b->lost_at = p3_now_ms() + BEAT_AGAIN_MS;
	return twice;
}

/* Return the time of the next call of the two, or P3_NEVER. */
static int64_t beat_at(const struct p3_beat *b)
{
	return b->timeout_ms ? p3_earlier(b->send_at, b->lost_at) : P3_NEVER;
}

/* ---- connections ---- */

int p3_frames_open(struct p3_frames *c, int in, int out)
{
	*c = (struct p3_frames){.in = in, .out = out};
	int rc = p3_set_nonblocking(in);
	return rc ? rc : p3_set_nonblocking(out);
}

/* Watch for room while frames wait for it, and else for an error only. */
static void frames_watch_out(struct p3_frames *c)
{
	uint32_t room = p3_backlog_len(&c->owed) ? EPOLLOUT : 0;
	if (!c->loop)
		return;
	if (c->in == c->out)
		(void)p3_loop_watch(c->loop, &c->in_fd, EPOLLIN | room);
	else
		(void)p3_loop_watch(c->loop, &c->out_fd, c->error ? 0 : EPOLLERR | room);
	if (c->error && !c->error_told)
		p3_loop_at(c->loop, &c->soon, 0);
	c->error_told |= c->error != 0;
}

static void frames_on_out(void *arg)
{
	struct p3_frames *c = arg;
	if (c->out_fd.came & EPOLLERR && !c->error)
		c->error = -EPIPE;
	(void)p3_frames_flush(c);
}

static void frames_on_in(void *arg)
{
	struct p3_frames *c = arg;
	if (c->in_fd.came & EPOLLOUT)
		(void)p3_frames_flush(c);
	int rc = c->in_fd.came == EPOLLOUT ? -EAGAIN : p3_frames_fill(c);
	if (rc != -EAGAIN)
		c->on(c->arg, rc);
}

static void frames_on_soon(void *arg)
{
	struct p3_frames *c = arg;
	c->on(c->arg, !c->error ? 0 : c->error == -ENOMEM ? -ENOMEM : -ECONNRESET);
}

static void frames_on_beat(void *arg)
{
	struct p3_frames *c = arg;
	bool lost = beat_is_lost(&c->beat);
	if (beat_is_due(&c->beat))
		p3_frames_tell(c, P3_FRAME_BEAT, 0, 0);
	p3_loop_at(c->loop, &c->turn, beat_at(&c->beat));
	if (lost)
		c->on(c->arg, -ETIMEDOUT);
}

int p3_frames_attach(struct p3_frames *c, struct p3_loop *loop,
	void (*on)(void *arg, int rc), void *arg)
{
	c->loop = loop;
	c->on = on;
	c->arg = arg;
	c->in_fd = (struct p3_loop_fd){.fd = c->in, .on = frames_on_in, .arg = c};
	c->out_fd = (struct p3_loop_fd){.fd = c->out, .on = frames_on_out, .arg = c};
	c->soon = (struct p3_loop_timer){.on = frames_on_soon, .arg = c};
	c->turn = (struct p3_loop_timer){.on = frames_on_beat, .arg = c};
	int rc = p3_loop_watch(loop, &c->in_fd, EPOLLIN);
	if (p3_backlog_len(&c->got))
		p3_loop_at(loop, &c->soon, 0);
	p3_loop_at(loop, &c->turn, beat_at(&c->beat));
	frames_watch_out(c);
	return rc;
}

void p3_frames_begin_beat(struct p3_frames *c)
{
	uint32_t seconds = 0;
	(void)p3_conf_far_timeout(p3_conf_text(P3_CONF_FAR_TIMEOUT), &seconds);
	c->beat = (struct p3_beat){.timeout_ms = (int64_t)seconds * 1000};
	beat_heard(&c->beat);
	if (c->loop)
		p3_loop_at(c->loop, &c->turn, beat_at(&c->beat));
}

void p3_frames_close(struct p3_frames *c)
{
	if (c->loop) {
		p3_loop_at(c->loop, &c->soon, P3_NEVER);
		p3_loop_at(c->loop, &c->turn, P3_NEVER);
		(void)p3_loop_watch(c->loop, &c->in_fd, 0);
		(void)p3_loop_watch(c->loop, &c->out_fd, 0);
	}
	p3_backlog_free(&c->got);
	p3_backlog_free(&c->owed);
	*c = (struct p3_frames){.in = -1, .out = -1};
}

/* ---- sending ---- */

void p3_frames_send(struct p3_frames *c, struct p3_frame f, const void *bytes)
{
	f.magic = P3_FRAMES_MAGIC;
	if (!p3_frames_are_open(c))
		return;
	if (!c->error && !p3_backlog_room(&c->owed, sizeof f + f.len))
		c->error = -ENOMEM;
	if (!c->error) {
		(void)p3_backlog_add(&c->owed, &f, sizeof f);
		(void)p3_backlog_add(&c->owed, bytes, f.len);
	}
	(void)p3_frames_flush(c);
}

int p3_frames_flush(struct p3_frames *c)
{
	while (!c->error && p3_backlog_len(&c->owed)) {
		ssize_t n = p3_backlog_write(&c->owed, c->out);
		if (n == -EAGAIN)
			break;
		c->error = n < 0 ? (int)n : 0;
	}
	if (c->error)
		p3_backlog_take(&c->owed, p3_backlog_len(&c->owed));
	frames_watch_out(c);
	return c->error;
}

/* ---- receiving ---- */

int p3_frames_fill(struct p3_frames *c)
{
	ssize_t n = p3_backlog_read(&c->got, c->in, READ_AT_ONCE);
	if (n > 0)
		beat_heard(&c->beat);
	return n > 0 ? 0 : (int)n;
}

static int frames_next(
	struct p3_frames *c, struct p3_frame *f_out, const char **bytes_out)
{
	size_t len = p3_backlog_len(&c->got);
	struct p3_frame f = {.magic = P3_FRAMES_MAGIC};
	if (!len)
		return -EAGAIN;
	const char *bytes = p3_backlog_bytes(&c->got);
	/* Judge the first word, which all versions have, or what there is of it. */
	memcpy(&f, bytes, len < sizeof f ? len : sizeof f);
	f_out->magic = f.magic;
	if ((f.magic & ~VERSION) != (P3_FRAMES_MAGIC & ~VERSION))
		return -EPROTO;
	if (f.magic != P3_FRAMES_MAGIC)
		return len < sizeof f.magic ? -EAGAIN : -EPROTONOSUPPORT;
	if (len < sizeof f)
		return -EAGAIN;
	if (!f.op || f.op >= P3_FRAME_OPS || f.len > P3_FRAMES_LONG)
		return -EPROTO;
	if (len < sizeof f + f.len)
		return -EAGAIN;
	*f_out = f;
	*bytes_out = bytes + sizeof f;
	p3_backlog_take(&c->got, sizeof f + f.len);
	return 0;
}

int p3_frames_next(struct p3_frames *c, struct p3_frame *f_out, const char **bytes_out)
{
	int rc;
	do
		rc = frames_next(c, f_out, bytes_out);
	while (!rc && f_out->op == P3_FRAME_BEAT);
	return rc;
}

void p3_frames_text(const struct p3_frames *c, char *text, size_t size)
{
	const char *at = p3_backlog_bytes(&c->got);
	size_t n = 0;
	for (size_t k = 0; n + sizeof "\\012" <= size && k < p3_backlog_len(&c->got);
		k++) {
		if (k && at[k] == '\n')
			break;
		bool shows = at[k] >= ' ' && at[k] <= '~';
		n += (size_t)sprintf(
			text + n, shows ? "%c" : "\\%03o", (unsigned char)at[k]);
	}
	text[n] = '\0';
}

int p3_frames_await(struct p3_frames *c, int64_t until, bool beats,
	struct p3_frame *f_out, const char **bytes_out)
{
	int rc;
	while ((rc = p3_frames_next(c, f_out, bytes_out)) == -EAGAIN) {
		if (beat_is_lost(&c->beat))
			return -ETIMEDOUT;
		if (beat_is_due(&c->beat) && beats)
			p3_frames_tell(c, P3_FRAME_BEAT, 0, 0);
		int64_t at = p3_earlier(until, beat_at(&c->beat)), ms = at - p3_now_ms();
		int wait = at == P3_NEVER ? -1 : ms < 0 ? 0 : (int)ms;
		if (p3_frames_flush(c))
			return -ECONNRESET;
		struct pollfd p[2] = {{.fd = c->in, .events = POLLIN},
			{.fd = c->out, .events = p3_backlog_len(&c->owed) ? POLLOUT : 0}};
		if (poll(p, 2, wait) >= 0 && p[1].revents & POLLERR)
			return -ECONNRESET;
		rc = p3_frames_fill(c);
		if (rc && rc != -EAGAIN)
			return rc;
		/* Bytes that came while this process was stopped are not late. */
		if (rc && until <= p3_now_ms())
			return -ETIMEDOUT;
	}
	return rc;
}
