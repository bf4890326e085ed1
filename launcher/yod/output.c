/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged output: streams from the nodes, composed into lines for two sinks. */
#include "launcher/yod/output.h"
#include "launcher/clock.h"
#include "launcher/yod/say.h"
#include "launcher/yod/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define STREAM_ROOM  (64 * 1024)
#define IDLE_MS      200
#define AFTER_END_MS 2000
#define EVENTS       64
#define TAG_LEN      16
#define NO_STREAM    UINT32_MAX

/* epoll keys; a smaller key is the index of a stream */
#define KEY_SINK  (UINT64_C(1) << 32)
#define KEY_TIMER (UINT64_C(1) << 33)

_Static_assert(P3_SINK_ROOM >= STREAM_ROOM + TAG_LEN + 1, "a whole line fits");

struct stream {
	int fd; /* -1: it is at its end */
	uint32_t sink;
	uint32_t len;
	bool watched;
	bool last;       /* true if it closes when the owed bytes are read */
	bool push;       /* true if a partial line is sent, too */
	int64_t idle_at; /* time to set push */
	int64_t end_at;  /* time to close it, because the node has ended */
	uint32_t owed;   /* bytes that the node itself left in the pipe */
	char *buf;
};

struct port {
	struct p3_sink sink;
	uint32_t open;   /* stream whose line has no newline yet, or NO_STREAM */
	uint32_t holder; /* stream whose long line is incomplete: the others wait */
	uint32_t next;   /* stream that has the first turn next time */
};

struct p3_output {
	int ep;
	int timer;
	int64_t timer_at;
	uint32_t ranks;
	uint32_t ports;
	bool plain;      /* no tags */
	uint32_t open_n; /* streams that are not at their end */
	struct port port[2];
	struct stream stream[]; /* indexed by 2 * rank + which */
};

/* ---- deadlines ---- */

static void timer_arm(struct p3_output *o, int64_t at)
{
	if (at >= o->timer_at)
		return;
	o->timer_at = at;
	p3_timer_set(o->timer, at);
}

static int watch(struct p3_output *o, int fd, uint64_t key)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = key};
	return epoll_ctl(o->ep, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* ---- streams ---- */

/* Watch a stream, or stop: epoll reports an end of file for ever, so a stream that is
 * not read must not be watched. */
static void stream_watch(struct p3_output *o, uint32_t i, bool on)
{
	struct stream *s = &o->stream[i];
	if (s->watched == on || s->fd < 0)
		return;
	s->watched = on;
	if (on)
		watch(o, s->fd, i);
	else
		epoll_ctl(o->ep, EPOLL_CTL_DEL, s->fd, NULL);
}

static void stream_end(struct p3_output *o, uint32_t i)
{
	struct stream *s = &o->stream[i];
	if (s->fd < 0)
		return;
	stream_watch(o, i, false);
	close(s->fd);
	s->fd = -1;
	s->push = true;
	s->idle_at = s->end_at = P3_NEVER;
	o->open_n--;
}

static void stream_read(struct p3_output *o, uint32_t i)
{
	struct stream *s = &o->stream[i];
	if (s->fd < 0)
		return;
	if (s->len == STREAM_ROOM) {
		stream_watch(o, i, false);
		return;
	}
	ssize_t n = read(s->fd, s->buf + s->len, STREAM_ROOM - s->len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		stream_end(o, i);
		return;
	}
	s->len += (uint32_t)n;
	s->owed -= (uint32_t)n < s->owed ? (uint32_t)n : s->owed;
	if (s->last && !s->owed) {
		stream_end(o, i);
		return;
	}
	s->idle_at = p3_now_ms() + IDLE_MS;
	timer_arm(o, s->idle_at);
}

static void stream_take(struct p3_output *o, uint32_t i, uint32_t len)
{
	struct stream *s = &o->stream[i];
	s->len -= len;
	memmove(s->buf, s->buf + len, s->len);
	if (len)
		stream_watch(o, i, true);
}

/* ---- composing ---- */

static void append(struct p3_sink *k, const char *data, uint32_t len)
{
	memcpy(k->buf + k->len, data, len);
	k->len += len;
}

static void append_tag(struct port *p, uint32_t i)
{
	char tag[TAG_LEN + 1];
	int n = snprintf(
		tag, sizeof tag, "%s[%u] ", p->open == NO_STREAM ? "" : "\n", i / 2);
	append(&p->sink, tag, (uint32_t)n);
}

static void emit(struct port *p, uint32_t i, const char *data, uint32_t len, bool plain)
{
	if (p->open != i && !plain)
		append_tag(p, i);
	append(&p->sink, data, len);
	p->open = data[len - 1] == '\n' ? NO_STREAM : i;
}

/* Return the number of bytes from `at` that may be sent now: a line or a piece of one. */
static uint32_t piece(
	const struct port *p, const struct stream *s, uint32_t i, uint32_t at)
{
	uint32_t len = s->len - at;
	const char *newline = len ? memchr(s->buf + at, '\n', len) : NULL;
	if (newline)
		return (uint32_t)(newline - (s->buf + at)) + 1;
	if (s->push || p->holder == i || len == STREAM_ROOM)
		return len;
	return 0;
}

/* Add a stream's lines.  Return false if the sink is full. */
static bool compose_stream(struct p3_output *o, struct port *p, uint32_t i)
{
	struct stream *s = &o->stream[i];
	uint32_t at = 0, len;
	bool room = true;
	while ((len = piece(p, s, i, at))) {
		room = p->sink.len + TAG_LEN + 1 + len <= P3_SINK_ROOM;
		if (!room)
			break;
		bool whole = s->buf[at + len - 1] == '\n';
		emit(p, i, s->buf + at, len, o->plain);
		p->holder = whole || s->push ? NO_STREAM : i;
		at += len;
	}
	if (room && s->push) {
		s->push = s->fd < 0;
		if (p->holder == i)
			p->holder = NO_STREAM;
	}
	stream_take(o, i, at);
	return room;
}

static void compose(struct p3_output *o, struct port *p)
{
	uint32_t n = 2 * o->ranks;
	bool room = true;
	if (p->holder != NO_STREAM)
		room = compose_stream(o, p, p->holder);
	for (uint32_t k = 0; k < n && room && p->holder == NO_STREAM; k++) {
		uint32_t i = (p->next + k) % n;
		if (&o->port[o->stream[i].sink] != p || !o->stream[i].len)
			continue;
		room = compose_stream(o, p, i);
		if (!room)
			p->next = i;
	}
	if (room)
		p->next = (p->next + 1) % n;
}

static void port_pump(struct p3_output *o, struct port *p)
{
	if (p->sink.busy || p->sink.err || !p->sink.runs)
		return;
	compose(o, p);
	if (p->sink.len)
		p3_sink_send(&p->sink);
}

/* ---- a reader that has gone ---- */

static void port_break(struct p3_output *o, struct port *p)
{
	if (p->sink.err != EPIPE)
		p3_say("cannot write output: %s; the rest of it is lost",
			strerror(p->sink.err));
	for (uint32_t i = 0; i < 2 * o->ranks; i++) {
		if (&o->port[o->stream[i].sink] != p)
			continue;
		stream_end(o, i);
		o->stream[i].len = 0;
	}
}

/* ---- the loop ---- */

/* Close the stream of an ended node, once the bytes that the node itself wrote are read.
 * The time for other holders of the pipe is over. */
static void stream_close_soon(struct p3_output *o, uint32_t i)
{
	struct stream *s = &o->stream[i];
	s->end_at = P3_NEVER;
	s->last = true;
	if (s->len < STREAM_ROOM)
		stream_read(o, i);
	if (!s->owed)
		stream_end(o, i);
}

static void stream_late(struct p3_output *o, uint32_t i, int64_t now)
{
	struct stream *s = &o->stream[i];
	if (s->end_at <= now)
		stream_close_soon(o, i);
	if (s->idle_at > now)
		return;
	s->idle_at = P3_NEVER;
	s->push = s->len || o->port[s->sink].holder == i;
}

static void timer_expired(struct p3_output *o)
{
	if (!p3_timer_passed(o->timer))
		return;
	int64_t now = p3_now_ms();
	o->timer_at = P3_NEVER;
	for (uint32_t i = 0; i < 2 * o->ranks; i++) {
		stream_late(o, i, now);
		timer_arm(o, p3_earlier(o->stream[i].idle_at, o->stream[i].end_at));
	}
}

static void sink_done(struct p3_output *o, struct port *p)
{
	p3_sink_collect(&p->sink);
	if (p->sink.err)
		port_break(o, p);
}

static void take_event(struct p3_output *o, uint64_t key)
{
	if (key == KEY_TIMER)
		timer_expired(o);
	else if (key >= KEY_SINK)
		sink_done(o, &o->port[key - KEY_SINK]);
	else
		stream_read(o, (uint32_t)key);
}

void p3_output_step(struct p3_output *o)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(o->ep, ev, EVENTS, 0);
	for (int k = 0; k < n; k++)
		take_event(o, ev[k].data.u64);
	for (uint32_t k = 0; k < o->ports; k++)
		port_pump(o, &o->port[k]);
}

/* ---- creation and end ---- */

static int access_of(int fd)
{
	return fcntl(fd, F_GETFL) & O_ACCMODE;
}

/* Return true if both descriptors are of one file, as in `yod ... 2>&1`.  They then get
 * one sink, so that no line is torn.  A stdout that was closed is /dev/null without the
 * right to write (main.c); stderr may be /dev/null, too. */
static bool same_file(int a, int b)
{
	struct stat sa, sb;
	if (fstat(a, &sa) || fstat(b, &sb) || access_of(a) != access_of(b))
		return false;
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static int port_open(struct p3_output *o, uint32_t k, int fd)
{
	struct port *p = &o->port[k];
	p->open = p->holder = NO_STREAM;
	o->ports = k + 1;
	int rc = p3_sink_open(&p->sink, fd);
	return rc ? rc : watch(o, p->sink.done_fd, KEY_SINK + k);
}

static int output_open(struct p3_output *o, const int to[2])
{
	o->timer_at = P3_NEVER;
	o->ep = epoll_create1(EPOLL_CLOEXEC);
	o->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (o->ep < 0 || o->timer < 0)
		return -errno;
	int rc = watch(o, o->timer, KEY_TIMER);
	if (!rc)
		rc = port_open(o, 0, to[0]);
	if (!rc && !same_file(to[0], to[1]))
		rc = port_open(o, 1, to[1]);
	return rc;
}

struct p3_output *p3_output_create(uint32_t ranks, const int to[2])
{
	struct p3_output *o =
		calloc(1, sizeof *o + 2 * (size_t)ranks * sizeof o->stream[0]);
	if (!o)
		return NULL;
	o->ranks = ranks;
	for (uint32_t i = 0; i < 2 * ranks; i++)
		o->stream[i] = (struct stream){
			.fd = -1, .idle_at = P3_NEVER, .end_at = P3_NEVER};
	int rc = output_open(o, to);
	if (!rc)
		return o;
	p3_output_destroy(o);
	errno = -rc;
	return NULL;
}

int p3_output_add(struct p3_output *o, uint32_t rank, int which, int fd)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	struct stream *s = &o->stream[i];
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	s->buf = malloc(STREAM_ROOM);
	if (!s->buf)
		return -ENOMEM;
	s->fd = fd;
	s->sink = o->ports == 2 ? (uint32_t)which : 0;
	o->open_n++;
	stream_watch(o, i, true);
	return 0;
}

void p3_output_set_plain(struct p3_output *o)
{
	o->plain = true;
}

int p3_output_start(struct p3_output *o)
{
	int rc = 0;
	for (uint32_t k = 0; k < o->ports && !rc; k++)
		rc = p3_sink_start(&o->port[k].sink);
	return rc;
}

int p3_output_fd(const struct p3_output *o)
{
	return o->ep;
}

void p3_output_ended(struct p3_output *o, uint32_t rank)
{
	for (uint32_t i = 2 * rank; i < 2 * rank + 2; i++) {
		struct stream *s = &o->stream[i];
		int n;
		if (s->fd < 0)
			continue;
		s->owed = ioctl(s->fd, FIONREAD, &n) ? 0 : (uint32_t)n;
		s->end_at = p3_now_ms() + AFTER_END_MS;
		timer_arm(o, s->end_at);
	}
}

bool p3_output_is_done(const struct p3_output *o)
{
	if (o->open_n)
		return false;
	for (uint32_t k = 0; k < o->ports; k++)
		if (o->port[k].sink.busy)
			return false;
	for (uint32_t i = 0; i < 2 * o->ranks; i++)
		if (o->stream[i].len)
			return false;
	return true;
}

bool p3_output_is_lost(const struct p3_output *o)
{
	for (uint32_t k = 0; k < o->ports; k++)
		if (o->port[k].sink.err && o->port[k].sink.err != EPIPE)
			return true;
	return false;
}

void p3_output_destroy(struct p3_output *o)
{
	if (!o)
		return;
	for (uint32_t k = 0; k < o->ports; k++)
		p3_sink_close(&o->port[k].sink);
	for (uint32_t i = 0; i < 2 * o->ranks; i++) {
		stream_end(o, i);
		free(o->stream[i].buf);
	}
	if (o->timer >= 0)
		close(o->timer);
	if (o->ep >= 0)
		close(o->ep);
	free(o);
}
