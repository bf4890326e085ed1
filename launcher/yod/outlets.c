/* SPDX-License-Identifier: BSD-3-Clause */
/* Output of agents on its way to yod's own output, or to files. */
#include "launcher/yod/outlets.h"
#include "launcher/yod/frames.h"
#include "launcher/yod/say.h"

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
	size_t at, len; /* bytes buf[at .. at + len) */
	char *buf;      /* P3_FRAMES_ROOM bytes */
};

struct p3_outlets {
	struct p3_outlets_conf conf;
	int ep;
	bool lost;
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
	free(s->buf);
	*s = (struct stream){.fd = -1};
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
	s->buf = malloc(P3_FRAMES_ROOM);
	if (!s->buf)
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

static void on_error(struct p3_outlets *o, uint32_t i, int err)
{
	if (err != EPIPE && !o->lost)
		p3_say("cannot write the output of rank %u: %s; the rest of it is "
		       "lost; see df",
			i / 2, strerror(err));
	o->lost |= err != EPIPE;
	finish(o, &o->stream[i]);
	o->conf.handed_on(o->conf.arg, i / 2, (int)(i % 2), 0);
}

/* Hand on what the reader takes. */
static void pump(struct p3_outlets *o, uint32_t i)
{
	struct stream *s = &o->stream[i];
	while (s->fd >= 0 && s->len) {
		ssize_t n = write(s->fd, s->buf + s->at, s->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			on_error(o, i, errno);
			return;
		}
		s->at += (size_t)n;
		s->len -= (size_t)n;
		o->conf.handed_on(o->conf.arg, i / 2, (int)(i % 2), (size_t)n);
	}
	if (s->fd < 0)
		return;
	watch(o, i, s->len > 0);
	if (s->ended && !s->len)
		finish(o, s);
}

bool p3_outlets_take(
	struct p3_outlets *o, uint32_t rank, int which, const void *bytes, size_t len)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	struct stream *s = &o->stream[i];
	if (s->fd < 0)
		return true;
	if (s->ended || len > P3_FRAMES_ROOM - s->len)
		return false;
	memmove(s->buf, s->buf + s->at, s->len);
	memcpy(s->buf + s->len, bytes, len);
	s->at = 0;
	s->len += len;
	pump(o, i);
	return true;
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

bool p3_outlets_is_lost(const struct p3_outlets *o)
{
	return o->lost;
}
