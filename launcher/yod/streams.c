/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes on their way from descriptors, and to descriptors, by the room that there is. */
#include "launcher/yod/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- taps ---- */

#define TAP_AT_ONCE  16384u
#define AFTER_END_MS 2000

struct tap {
	struct p3_taps *taps;
	struct p3_loop_fd from; /* fd -1: it is at its end */
	bool plain;             /* a file, which epoll cannot watch */
	bool last;              /* it ends when the owed bytes are read */
	uint32_t owed;          /* bytes that the node itself left in the pipe */
	uint32_t room;
	int64_t end_at;  /* time to set last, because the node has ended */
	int64_t idle_at; /* time to tell that the node has written no more of a line */
};

struct p3_taps {
	struct p3_taps_conf conf;
	struct p3_loop *loop;
	struct p3_loop_timer timer;
	uint32_t open_n;
	struct tap tap[];
};

static void tap_read(struct p3_taps *t, uint32_t i);

static void tap_on_ready(void *arg)
{
	struct tap *s = arg;
	tap_read(s->taps, (uint32_t)(s - s->taps->tap));
}

/* Watch a tap while there is room: epoll reports an end of file for ever. */
static int tap_watch(struct p3_taps *t, struct tap *s)
{
	int rc = s->plain ? 0 : p3_loop_watch(t->loop, &s->from, s->room ? EPOLLIN : 0);
	s->plain |= rc == -EPERM;
	if (s->plain && s->room)
		p3_loop_before(t->loop, &t->timer, 0);
	return s->plain ? 0 : rc;
}

void p3_taps_close(struct p3_taps *t, uint32_t i)
{
	struct tap *s = &t->tap[i];
	if (i >= t->conf.n || s->from.fd < 0)
		return;
	(void)p3_loop_watch(t->loop, &s->from, 0);
	close(s->from.fd);
	s->from.fd = -1;
	s->end_at = s->idle_at = P3_NEVER;
	t->open_n--;
}

static void tap_end(struct p3_taps *t, uint32_t i)
{
	p3_taps_close(t, i);
	(void)t->conf.take(t->conf.arg, i, NULL, 0);
}

static void tap_read(struct p3_taps *t, uint32_t i)
{
	char bytes[TAP_AT_ONCE];
	struct tap *s = &t->tap[i];
	if (s->from.fd < 0 || !s->room)
		return;
	ssize_t n =
		read(s->from.fd, bytes, s->room < TAP_AT_ONCE ? s->room : TAP_AT_ONCE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		tap_end(t, i);
		return;
	}
	s->room -= (uint32_t)n;
	s->owed -= (uint32_t)n < s->owed ? (uint32_t)n : s->owed;
	s->idle_at = bytes[n - 1] == '\n' ? P3_NEVER : p3_now_ms() + P3_OUTPUT_IDLE_MS;
	p3_loop_before(t->loop, &t->timer, s->idle_at);
	(void)t->conf.take(t->conf.arg, i, bytes, (size_t)n);
	if (s->last && !s->owed && s->from.fd >= 0)
		tap_end(t, i);
	else if (s->from.fd >= 0)
		(void)tap_watch(t, s);
}

static uint32_t tap_unread(const struct tap *s)
{
	int n;
	return ioctl(s->from.fd, FIONREAD, &n) ? 0 : (uint32_t)n;
}

static void taps_on_timer(void *arg)
{
	struct p3_taps *t = arg;
	int64_t now = p3_now_ms();
	for (uint32_t i = 0; i < t->conf.n; i++) {
		struct tap *s = &t->tap[i];
		if (s->plain)
			tap_read(t, i);
		if (s->end_at <= now) {
			s->end_at = P3_NEVER;
			s->last = true;
			if (!s->owed)
				tap_end(t, i);
		}
		if (s->idle_at <= now) {
			s->idle_at = P3_NEVER;
			/* else tap_read() sees to the rest when there is room */
			if (!tap_unread(s) && t->conf.idle)
				t->conf.idle(t->conf.arg, i);
		}
		p3_loop_before(t->loop, &t->timer, p3_earlier(s->idle_at, s->end_at));
	}
}

int p3_taps_open(int fd)
{
	char name[40];
	struct stat st;
	int own = -1;
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	if (!fstat(fd, &st) && (S_ISFIFO(st.st_mode) || isatty(fd)))
		own = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

struct p3_taps *p3_taps_create(struct p3_loop *loop, const struct p3_taps_conf *conf)
{
	struct p3_taps *t = calloc(1, sizeof *t + conf->n * sizeof t->tap[0]);
	if (!t)
		return NULL;
	t->conf = *conf;
	t->loop = loop;
	t->timer = (struct p3_loop_timer){.on = taps_on_timer, .arg = t};
	for (uint32_t i = 0; i < conf->n; i++)
		t->tap[i] = (struct tap){.taps = t,
			.from = {.fd = -1, .on = tap_on_ready, .arg = &t->tap[i]},
			.end_at = P3_NEVER,
			.idle_at = P3_NEVER};
	return t;
}

void p3_taps_destroy(struct p3_taps *t)
{
	for (uint32_t i = 0; t && i < t->conf.n; i++)
		p3_taps_close(t, i);
	if (t)
		p3_loop_at(t->loop, &t->timer, P3_NEVER);
	free(t);
}

int p3_taps_add(struct p3_taps *t, uint32_t i, int fd)
{
	struct tap *s = &t->tap[i];
	s->from.fd = fd;
	s->room = P3_STREAM_ROOM;
	t->open_n++;
	return tap_watch(t, s);
}

bool p3_taps_room(struct p3_taps *t, uint32_t i, uint64_t n)
{
	if (i >= t->conf.n || n > P3_STREAM_ROOM - t->tap[i].room)
		return false;
	t->tap[i].room += (uint32_t)n;
	if (t->tap[i].from.fd >= 0)
		(void)tap_watch(t, &t->tap[i]);
	return true;
}

void p3_taps_ended(struct p3_taps *t, uint32_t rank)
{
	for (uint32_t i = 2 * rank; i < 2 * rank + 2 && i < t->conf.n; i++) {
		struct tap *s = &t->tap[i];
		if (s->from.fd < 0)
			continue;
		s->owed = tap_unread(s);
		s->end_at = p3_now_ms() + AFTER_END_MS;
		p3_loop_before(t->loop, &t->timer, s->end_at);
	}
}

bool p3_taps_are_done(const struct p3_taps *t)
{
	return !t->open_n;
}

/* ---- drains ---- */

void p3_drain_close(struct p3_drain *d)
{
	if (d->to.fd < 0)
		return;
	(void)p3_loop_watch(d->loop, &d->to, 0);
	close(d->to.fd);
	d->to.fd = -1;
	p3_backlog_free(&d->bytes);
}

static void drain_pump(void *arg)
{
	struct p3_drain *d = arg;
	while (d->to.fd >= 0 && p3_backlog_len(&d->bytes)) {
		ssize_t n = p3_backlog_write(&d->bytes, d->to.fd);
		size_t lost = p3_backlog_len(&d->bytes);
		if (n == -EAGAIN)
			break;
		if (n >= 0) {
			d->moved(d, (size_t)n, 0);
			continue;
		}
		p3_backlog_take(&d->bytes, lost);
		d->moved(d, lost, (int)-n);
	}
	if (d->to.fd < 0)
		return;
	bool more = p3_backlog_len(&d->bytes);
	(void)p3_loop_watch(d->loop, &d->to, more ? EPOLLOUT : 0);
	if (d->ended && !more)
		p3_drain_close(d);
}

int p3_drain_open(struct p3_drain *d, struct p3_loop *loop, int fd)
{
	d->loop = loop;
	d->to = (struct p3_loop_fd){.fd = fd, .on = drain_pump, .arg = d};
	int rc = p3_set_nonblocking(fd);
	return rc || p3_backlog_room(&d->bytes, P3_STREAM_ROOM) ? rc : -ENOMEM;
}

bool p3_drain_take(struct p3_drain *d, const void *bytes, size_t len)
{
	if (d->to.fd < 0)
		return true;
	if (d->ended || len > P3_STREAM_ROOM - p3_backlog_len(&d->bytes))
		return false;
	d->ended = !len;
	(void)p3_backlog_add(&d->bytes, bytes, len); /* p3_drain_open() has made room */
	drain_pump(d);
	return true;
}
