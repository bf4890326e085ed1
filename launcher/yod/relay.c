/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the nodes' output, and sending it to yod. */
#include "launcher/yod/relay.h"
#include "launcher/clock.h"
#include "launcher/yod/frames.h"
#include "launcher/yod/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define EVENTS       64
#define AT_ONCE      16384u
#define AFTER_END_MS 2000
#define KEY_TIMER    UINT32_MAX

struct stream {
	int fd; /* -1: it is at its end */
	bool watched;
	bool last;       /* it closes when the owed bytes are read */
	uint32_t owed;   /* bytes that the node itself left in the pipe */
	uint32_t room;   /* bytes that yod has room for */
	int64_t end_at;  /* time to set last, because the node has ended */
	int64_t idle_at; /* time to tell that it has written no more of a line */
};

struct p3_relay {
	uint32_t ranks, open_n;
	struct p3_frames *to;
	int ep, timer;
	int64_t timer_at;
	struct stream stream[]; /* indexed by 2 * rank + which */
};

static int watch(struct p3_relay *r, int op, int fd, uint32_t key)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = key};
	return epoll_ctl(r->ep, op, fd, &ev) ? -errno : 0;
}

struct p3_relay *p3_relay_create(uint32_t ranks, struct p3_frames *to)
{
	struct p3_relay *r =
		calloc(1, sizeof *r + 2 * (size_t)ranks * sizeof r->stream[0]);
	if (!r)
		return NULL;
	r->ranks = ranks;
	r->to = to;
	r->timer_at = P3_NEVER;
	for (uint32_t i = 0; i < 2 * ranks; i++)
		r->stream[i] = (struct stream){
			.fd = -1, .end_at = P3_NEVER, .idle_at = P3_NEVER};
	r->ep = epoll_create1(EPOLL_CLOEXEC);
	r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->ep >= 0 && r->timer >= 0 && !watch(r, EPOLL_CTL_ADD, r->timer, KEY_TIMER))
		return r;
	p3_relay_destroy(r);
	return NULL;
}

void p3_relay_destroy(struct p3_relay *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < 2 * r->ranks; i++)
		if (r->stream[i].fd >= 0)
			close(r->stream[i].fd);
	if (r->timer >= 0)
		close(r->timer);
	if (r->ep >= 0)
		close(r->ep);
	free(r);
}

/* ---- streams ---- */

static void timer_arm(struct p3_relay *r, int64_t at)
{
	if (at >= r->timer_at)
		return;
	r->timer_at = at;
	p3_timer_set(r->timer, at);
}

static void set_watched(struct p3_relay *r, uint32_t i, bool on)
{
	struct stream *s = &r->stream[i];
	if (s->watched == on || s->fd < 0)
		return;
	s->watched = on;
	watch(r, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->fd, i);
}

static void close_stream(struct p3_relay *r, uint32_t i)
{
	struct stream *s = &r->stream[i];
	set_watched(r, i, false);
	close(s->fd);
	s->fd = -1;
	s->end_at = s->idle_at = P3_NEVER;
	r->open_n--;
}

static void tell(struct p3_relay *r, uint32_t i, enum p3_frame_op op)
{
	struct p3_frame f = {.op = op, .node = i / 2, .value = (int32_t)(i % 2)};
	p3_frames_send(r->to, f, NULL);
}

static void end_stream(struct p3_relay *r, uint32_t i)
{
	close_stream(r, i);
	tell(r, i, P3_FRAME_OUTPUT_END);
}

static void read_stream(struct p3_relay *r, uint32_t i)
{
	char bytes[AT_ONCE];
	struct stream *s = &r->stream[i];
	if (s->fd < 0)
		return;
	ssize_t n = read(s->fd, bytes, s->room < AT_ONCE ? s->room : AT_ONCE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end_stream(r, i);
		return;
	}
	struct p3_frame f = {.op = P3_FRAME_OUTPUT,
		.node = i / 2,
		.value = (int32_t)(i % 2),
		.len = (uint64_t)n};
	p3_frames_send(r->to, f, bytes);
	s->idle_at = bytes[n - 1] == '\n' ? P3_NEVER : p3_now_ms() + P3_OUTPUT_IDLE_MS;
	timer_arm(r, s->idle_at);
	s->room -= (uint32_t)n;
	s->owed -= (uint32_t)n < s->owed ? (uint32_t)n : s->owed;
	if (s->last && !s->owed)
		end_stream(r, i);
	else
		set_watched(r, i, s->room > 0);
}

int p3_relay_add(struct p3_relay *r, uint32_t rank, int which, int fd)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	struct stream *s = &r->stream[i];
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	s->fd = fd;
	s->room = P3_FRAMES_ROOM;
	r->open_n++;
	set_watched(r, i, true);
	return 0;
}

void p3_relay_room(struct p3_relay *r, uint32_t rank, int which, uint64_t n)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	struct stream *s = &r->stream[i];
	if (rank >= r->ranks || which < 0 || which > 1 || n > P3_FRAMES_ROOM - s->room)
		return;
	s->room += (uint32_t)n;
	set_watched(r, i, s->room > 0);
}

void p3_relay_drop(struct p3_relay *r, uint32_t rank, int which)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	if (rank < r->ranks && which >= 0 && which <= 1 && r->stream[i].fd >= 0)
		close_stream(r, i);
}

/* ---- ends ---- */

static uint32_t unread(const struct stream *s)
{
	int n;
	return ioctl(s->fd, FIONREAD, &n) ? 0 : (uint32_t)n;
}

static void see_idle(struct p3_relay *r, uint32_t i, int64_t now)
{
	struct stream *s = &r->stream[i];
	if (s->fd < 0 || s->idle_at > now)
		return;
	s->idle_at = P3_NEVER;
	if (!unread(s)) /* else read_stream() sees to the rest when yod has room */
		tell(r, i, P3_FRAME_IDLE);
}

static void on_timer(struct p3_relay *r)
{
	int64_t now = p3_now_ms();
	if (!p3_timer_passed(r->timer))
		return;
	r->timer_at = P3_NEVER;
	for (uint32_t i = 0; i < 2 * r->ranks; i++) {
		struct stream *s = &r->stream[i];
		if (s->fd >= 0 && s->end_at <= now) {
			s->end_at = P3_NEVER;
			s->last = true;
			if (!s->owed)
				end_stream(r, i);
		}
		see_idle(r, i, now);
		timer_arm(r, p3_earlier(s->idle_at, s->end_at));
	}
}

void p3_relay_ended(struct p3_relay *r, uint32_t rank)
{
	for (uint32_t i = 2 * rank; i < 2 * rank + 2; i++) {
		struct stream *s = &r->stream[i];
		if (s->fd < 0)
			continue;
		s->owed = unread(s);
		s->end_at = p3_now_ms() + AFTER_END_MS;
		timer_arm(r, s->end_at);
	}
}

int p3_relay_fd(const struct p3_relay *r)
{
	return r->ep;
}

void p3_relay_step(struct p3_relay *r)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(r->ep, ev, EVENTS, 0);
	for (int k = 0; k < n; k++)
		if (ev[k].data.u32 == KEY_TIMER)
			on_timer(r);
		else
			read_stream(r, ev[k].data.u32);
}

bool p3_relay_is_done(const struct p3_relay *r)
{
	return !r->open_n;
}
