/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of agents on its way to yod's own output, or to files. */
#include "launcher/yod/outlets.h"
#include "launcher/yod/frames.h"
#include "launcher/yod/ranks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS 64

struct stream {
	int fd; /* -1: closed */
	bool watched;
	bool ended;
	bool lost;               /* bytes could not be written */
	bool idle;               /* its node is, behind these bytes */
	struct p3_backlog bytes; /* P3_FRAMES_ROOM at most */
};

struct p3_outlets {
	struct p3_outlets_conf conf;
	int ep;
	struct stream stream[]; /* indexed by 2 * rank + which */
};

struct p3_outlets *p3_outlets_create(const struct p3_outlets_conf *conf)
{
	struct p3_outlets *o =
		calloc(1, sizeof *o + 2 * (size_t)conf->ranks * sizeof o->stream[0]);
	if (!o)
		return NULL;
	o->conf = *conf;
	for (uint32_t i = 0; i < 2 * conf->ranks; i++)
		o->stream[i].fd = -1;
	o->ep = epoll_create1(EPOLL_CLOEXEC);
	if (o->ep >= 0)
		return o;
	free(o);
	return NULL;
}

static void finish(struct p3_outlets *o, struct stream *s)
{
	if (s->watched)
		epoll_ctl(o->ep, EPOLL_CTL_DEL, s->fd, NULL);
	if (s->fd >= 0)
		close(s->fd);
	p3_backlog_free(&s->bytes);
	*s = (struct stream){.fd = -1, .lost = s->lost};
}

void p3_outlets_destroy(struct p3_outlets *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < 2 * o->conf.ranks; i++)
		finish(o, &o->stream[i]);
	close(o->ep);
	free(o);
}

int p3_outlets_add(struct p3_outlets *o, uint32_t rank, int which, int fd)
{
	struct stream *s = &o->stream[2 * rank + (uint32_t)which];
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	if (!p3_backlog_room(&s->bytes, P3_FRAMES_ROOM))
		return -ENOMEM;
	s->fd = fd;
	return 0;
}

static void watch(struct p3_outlets *o, uint32_t i, bool on)
{
	struct stream *s = &o->stream[i];
	struct epoll_event ev = {.events = EPOLLOUT, .data.u32 = i};
	if (s->watched == on)
		return;
	s->watched = on;
	epoll_ctl(o->ep, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->fd, &ev);
}

/* Drop n bytes, as a write of them by the rank itself would have failed. */
static void lose(struct p3_outlets *o, uint32_t i, size_t n, int err)
{
	if (!o->stream[i].lost)
		o->conf.lost(o->conf.arg, i / 2, (int)(i % 2), err);
	o->stream[i].lost = true;
	o->conf.handed_on(o->conf.arg, i / 2, (int)(i % 2), n);
}

/* Hand on what the reader takes. */
static void pump(struct p3_outlets *o, uint32_t i)
{
	struct stream *s = &o->stream[i];
	while (s->fd >= 0 && p3_backlog_len(&s->bytes)) {
		ssize_t n = write(
			s->fd, p3_backlog_bytes(&s->bytes), p3_backlog_len(&s->bytes));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0 && errno == EPIPE) {
			finish(o, s);
			o->conf.handed_on(o->conf.arg, i / 2, (int)(i % 2), 0);
			return;
		}
		if (n < 0) {
			size_t len = p3_backlog_len(&s->bytes);
			p3_backlog_take(&s->bytes, len);
			lose(o, i, len, errno);
			continue;
		}
		p3_backlog_take(&s->bytes, (size_t)n);
		o->conf.handed_on(o->conf.arg, i / 2, (int)(i % 2), (size_t)n);
	}
	if (s->fd < 0)
		return;
	bool more = p3_backlog_len(&s->bytes) > 0;
	watch(o, i, more);
	if (s->idle && !more)
		o->conf.idle(o->conf.arg, i / 2, (int)(i % 2), true);
	s->idle &= more;
	if (s->ended && !more)
		finish(o, s);
}

bool p3_outlets_take(
	struct p3_outlets *o, uint32_t rank, int which, const void *bytes, size_t len)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	struct stream *s = &o->stream[i];
	if (s->fd < 0)
		return true;
	if (s->ended || len > P3_FRAMES_ROOM - p3_backlog_len(&s->bytes))
		return false;
	s->idle = false;
	o->conf.idle(o->conf.arg, rank, which, false);
	(void)p3_backlog_add(&s->bytes, bytes, len); /* p3_outlets_add() has made room */
	pump(o, i);
	return true;
}

void p3_outlets_idle(struct p3_outlets *o, uint32_t rank, int which)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	o->stream[i].idle = true;
	pump(o, i);
}

void p3_outlets_end(struct p3_outlets *o, uint32_t rank, int which)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	o->stream[i].ended = true;
	pump(o, i);
}

int p3_outlets_fd(const struct p3_outlets *o)
{
	return o->ep;
}

void p3_outlets_step(struct p3_outlets *o)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(o->ep, ev, EVENTS, 0);
	for (int k = 0; k < n; k++)
		pump(o, ev[k].data.u32);
}

uint32_t p3_outlets_lost(const struct p3_outlets *o, struct p3_ranks *ranks)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < o->conf.ranks; i++)
		if (o->stream[2 * i].lost || o->stream[2 * i + 1].lost) {
			p3_ranks_add(ranks, i);
			n++;
		}
	return n;
}
