/* SPDX-License-Identifier: BSD-3-Clause */
/* Output and input of nodes between yod and its agents. */
#include "launcher/yod/remote.h"
#include "launcher/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

int p3_input_rx_open(struct p3_input_rx *f, struct p3_frames *from, int *read_end_out)
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

void p3_input_rx_close(struct p3_input_rx *f)
{
	p3_close(f->to);
	f->to = -1;
	p3_backlog_free(&f->bytes);
}

bool p3_input_rx_take(struct p3_input_rx *f, const void *bytes, size_t len)
{
	if (f->to < 0)
		return true;
	if (len > P3_FRAMES_ROOM - p3_backlog_len(&f->bytes))
		return false;
	f->ended |= !len;
	(void)p3_backlog_add(
		&f->bytes, bytes, len); /* p3_input_rx_open() has made room */
	p3_input_rx_step(f);
	return true;
}

int p3_input_rx_wants(const struct p3_input_rx *f)
{
	return p3_backlog_len(&f->bytes) ? f->to : -1;
}

static void input_rx_hand_on(struct p3_input_rx *f)
{
	ssize_t n = write(f->to, p3_backlog_bytes(&f->bytes), p3_backlog_len(&f->bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		p3_frames_send(f->from, (struct p3_frame){.op = P3_FRAME_NO_INPUT}, NULL);
		p3_input_rx_close(f);
		return;
	}
	p3_backlog_take(&f->bytes, (size_t)n);
	p3_frames_send(f->from,
		(struct p3_frame){.op = P3_FRAME_ROOM, .number = (uint64_t)n}, NULL);
}

void p3_input_rx_step(struct p3_input_rx *f)
{
	if (p3_input_rx_wants(f) >= 0)
		input_rx_hand_on(f);
	if (f->to >= 0 && f->ended && !p3_backlog_len(&f->bytes))
		p3_input_rx_close(f);
}

/* ---- output, in an agent ---- */

#define TX_EVENTS    64
#define TX_AT_ONCE   16384u
#define AFTER_END_MS 2000
#define KEY_TIMER    UINT32_MAX

struct output_tx_stream {
	int fd; /* -1: it is at its end */
	bool watched;
	bool last;       /* it closes when the owed bytes are read */
	uint32_t owed;   /* bytes that the node itself left in the pipe */
	uint32_t room;   /* bytes that yod has room for */
	int64_t end_at;  /* time to set last, because the node has ended */
	int64_t idle_at; /* time to tell that it has written no more of a line */
};

struct p3_output_tx {
	uint32_t ranks, open_n;
	struct p3_frames *to;
	int ep, timer;
	int64_t timer_at;
	struct output_tx_stream stream[]; /* indexed by 2 * rank + which */
};

struct p3_output_tx *p3_output_tx_create(uint32_t ranks, struct p3_frames *to)
{
	struct p3_output_tx *r =
		calloc(1, sizeof *r + 2 * (size_t)ranks * sizeof r->stream[0]);
	if (!r)
		return NULL;
	r->ranks = ranks;
	r->to = to;
	r->timer_at = P3_NEVER;
	for (uint32_t i = 0; i < 2 * ranks; i++)
		r->stream[i] = (struct output_tx_stream){
			.fd = -1, .end_at = P3_NEVER, .idle_at = P3_NEVER};
	r->ep = epoll_create1(EPOLL_CLOEXEC);
	r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->ep >= 0 && r->timer >= 0 && !p3_watch_input(r->ep, r->timer, KEY_TIMER))
		return r;
	p3_output_tx_destroy(r);
	return NULL;
}

void p3_output_tx_destroy(struct p3_output_tx *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < 2 * r->ranks; i++)
		p3_close(r->stream[i].fd);
	p3_close(r->timer);
	p3_close(r->ep);
	free(r);
}

/* ---- streams ---- */

static void output_tx_set_watched(struct p3_output_tx *r, uint32_t i, bool on)
{
	struct output_tx_stream *s = &r->stream[i];
	if (s->watched == on || s->fd < 0)
		return;
	s->watched = on;
	p3_watch(r->ep, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->fd, i, EPOLLIN);
}

static void output_tx_close(struct p3_output_tx *r, uint32_t i)
{
	struct output_tx_stream *s = &r->stream[i];
	output_tx_set_watched(r, i, false);
	close(s->fd);
	s->fd = -1;
	s->end_at = s->idle_at = P3_NEVER;
	r->open_n--;
}

static void output_tx_tell(struct p3_output_tx *r, uint32_t i, enum p3_frame_op op)
{
	struct p3_frame f = {.op = op, .node = i / 2, .value = (int32_t)(i % 2)};
	p3_frames_send(r->to, f, NULL);
}

static void output_tx_end(struct p3_output_tx *r, uint32_t i)
{
	output_tx_close(r, i);
	output_tx_tell(r, i, P3_FRAME_OUTPUT_END);
}

static void output_tx_read(struct p3_output_tx *r, uint32_t i)
{
	char bytes[TX_AT_ONCE];
	struct output_tx_stream *s = &r->stream[i];
	if (s->fd < 0)
		return;
	ssize_t n = read(s->fd, bytes, s->room < TX_AT_ONCE ? s->room : TX_AT_ONCE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		output_tx_end(r, i);
		return;
	}
	struct p3_frame f = {.op = P3_FRAME_OUTPUT,
		.node = i / 2,
		.value = (int32_t)(i % 2),
		.len = (uint64_t)n};
	p3_frames_send(r->to, f, bytes);
	s->idle_at = bytes[n - 1] == '\n' ? P3_NEVER : p3_now_ms() + P3_OUTPUT_IDLE_MS;
	p3_timer_arm(r->timer, &r->timer_at, s->idle_at);
	s->room -= (uint32_t)n;
	s->owed -= (uint32_t)n < s->owed ? (uint32_t)n : s->owed;
	if (s->last && !s->owed)
		output_tx_end(r, i);
	else
		output_tx_set_watched(r, i, s->room > 0);
}

int p3_output_tx_add(struct p3_output_tx *r, uint32_t rank, int which, int fd)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	struct output_tx_stream *s = &r->stream[i];
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		return -errno;
	s->fd = fd;
	s->room = P3_FRAMES_ROOM;
	r->open_n++;
	output_tx_set_watched(r, i, true);
	return 0;
}

void p3_output_tx_room(struct p3_output_tx *r, uint32_t rank, int which, uint64_t n)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	struct output_tx_stream *s = &r->stream[i];
	if (rank >= r->ranks || which < 0 || which > 1 || n > P3_FRAMES_ROOM - s->room)
		return;
	s->room += (uint32_t)n;
	output_tx_set_watched(r, i, s->room > 0);
}

void p3_output_tx_drop(struct p3_output_tx *r, uint32_t rank, int which)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	if (rank < r->ranks && which >= 0 && which <= 1 && r->stream[i].fd >= 0)
		output_tx_close(r, i);
}

/* ---- ends ---- */

static uint32_t output_tx_unread(const struct output_tx_stream *s)
{
	int n;
	return ioctl(s->fd, FIONREAD, &n) ? 0 : (uint32_t)n;
}

static void output_tx_on_timer(struct p3_output_tx *r)
{
	int64_t now = p3_now_ms();
	if (!p3_timer_passed(r->timer))
		return;
	r->timer_at = P3_NEVER;
	for (uint32_t i = 0; i < 2 * r->ranks; i++) {
		struct output_tx_stream *s = &r->stream[i];
		if (s->fd >= 0 && s->end_at <= now) {
			s->end_at = P3_NEVER;
			s->last = true;
			if (!s->owed)
				output_tx_end(r, i);
		}
		if (s->fd >= 0 && s->idle_at <= now) {
			s->idle_at = P3_NEVER;
			/* else output_tx_read() sees to the rest when yod has room */
			if (!output_tx_unread(s))
				output_tx_tell(r, i, P3_FRAME_IDLE);
		}
		p3_timer_arm(r->timer, &r->timer_at, p3_earlier(s->idle_at, s->end_at));
	}
}

void p3_output_tx_ended(struct p3_output_tx *r, uint32_t rank)
{
	for (uint32_t i = 2 * rank; i < 2 * rank + 2; i++) {
		struct output_tx_stream *s = &r->stream[i];
		if (s->fd < 0)
			continue;
		s->owed = output_tx_unread(s);
		s->end_at = p3_now_ms() + AFTER_END_MS;
		p3_timer_arm(r->timer, &r->timer_at, s->end_at);
	}
}

int p3_output_tx_fd(const struct p3_output_tx *r)
{
	return r->ep;
}

void p3_output_tx_step(struct p3_output_tx *r)
{
	struct epoll_event ev[TX_EVENTS];
	int n = epoll_wait(r->ep, ev, TX_EVENTS, 0);
	for (int k = 0; k < n; k++)
		if (ev[k].data.u32 == KEY_TIMER)
			output_tx_on_timer(r);
		else
			output_tx_read(r, ev[k].data.u32);
}

bool p3_output_tx_is_done(const struct p3_output_tx *r)
{
	return !r->open_n;
}

/* ---- output, in yod ---- */

#define RX_EVENTS 64

struct output_rx_stream {
	int fd; /* -1: closed */
	bool watched;
	bool ended;
	bool lost;               /* bytes could not be written */
	bool idle;               /* its node is, behind these bytes */
	struct p3_backlog bytes; /* P3_FRAMES_ROOM at most */
};

struct p3_output_rx {
	struct p3_output_rx_conf conf;
	int ep;
	struct output_rx_stream stream[]; /* indexed by 2 * rank + which */
};

struct p3_output_rx *p3_output_rx_create(const struct p3_output_rx_conf *conf)
{
	struct p3_output_rx *o =
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

static void output_rx_finish(struct p3_output_rx *o, struct output_rx_stream *s)
{
	if (s->watched)
		epoll_ctl(o->ep, EPOLL_CTL_DEL, s->fd, NULL);
	p3_close(s->fd);
	p3_backlog_free(&s->bytes);
	*s = (struct output_rx_stream){.fd = -1, .lost = s->lost};
}

void p3_output_rx_destroy(struct p3_output_rx *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < 2 * o->conf.ranks; i++)
		output_rx_finish(o, &o->stream[i]);
	close(o->ep);
	free(o);
}

int p3_output_rx_add(struct p3_output_rx *o, uint32_t rank, int which, int fd)
{
	struct output_rx_stream *s = &o->stream[2 * rank + (uint32_t)which];
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	if (!p3_backlog_room(&s->bytes, P3_FRAMES_ROOM))
		return -ENOMEM;
	s->fd = fd;
	return 0;
}

/* Hand on what the reader takes. */
static void output_rx_pump(struct p3_output_rx *o, uint32_t i)
{
	struct output_rx_stream *s = &o->stream[i];
	while (s->fd >= 0 && p3_backlog_len(&s->bytes)) {
		ssize_t n = write(
			s->fd, p3_backlog_bytes(&s->bytes), p3_backlog_len(&s->bytes));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0 && errno == EPIPE) {
			output_rx_finish(o, s);
			o->conf.handed_on(o->conf.arg, i / 2, (int)(i % 2), 0);
			return;
		}
		if (n < 0) {
			size_t len = p3_backlog_len(&s->bytes);
			p3_backlog_take(&s->bytes, len);
			/* drop them, as a write by the rank itself would have failed */
			if (!s->lost)
				o->conf.lost(o->conf.arg, i / 2, (int)(i % 2), errno);
			s->lost = true;
			o->conf.handed_on(o->conf.arg, i / 2, (int)(i % 2), len);
			continue;
		}
		p3_backlog_take(&s->bytes, (size_t)n);
		o->conf.handed_on(o->conf.arg, i / 2, (int)(i % 2), (size_t)n);
	}
	if (s->fd < 0)
		return;
	bool more = p3_backlog_len(&s->bytes) > 0;
	if (s->watched != more)
		p3_watch(o->ep, more ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->fd, i, EPOLLOUT);
	s->watched = more;
	if (s->idle && !more)
		o->conf.idle(o->conf.arg, i / 2, (int)(i % 2), true);
	s->idle &= more;
	if (s->ended && !more)
		output_rx_finish(o, s);
}

bool p3_output_rx_take(
	struct p3_output_rx *o, uint32_t rank, int which, const void *bytes, size_t len)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	struct output_rx_stream *s = &o->stream[i];
	if (s->fd < 0)
		return true;
	if (s->ended || len > P3_FRAMES_ROOM - p3_backlog_len(&s->bytes))
		return false;
	s->idle = false;
	o->conf.idle(o->conf.arg, rank, which, false);
	(void)p3_backlog_add(
		&s->bytes, bytes, len); /* p3_output_rx_add() has made room */
	output_rx_pump(o, i);
	return true;
}

void p3_output_rx_idle(struct p3_output_rx *o, uint32_t rank, int which)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	o->stream[i].idle = true;
	output_rx_pump(o, i);
}

void p3_output_rx_end(struct p3_output_rx *o, uint32_t rank, int which)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	o->stream[i].ended = true;
	output_rx_pump(o, i);
}

int p3_output_rx_fd(const struct p3_output_rx *o)
{
	return o->ep;
}

void p3_output_rx_step(struct p3_output_rx *o)
{
	struct epoll_event ev[RX_EVENTS];
	int n = epoll_wait(o->ep, ev, RX_EVENTS, 0);
	for (int k = 0; k < n; k++)
		output_rx_pump(o, ev[k].data.u32);
}

uint32_t p3_output_rx_lost(const struct p3_output_rx *o, struct p3_ranks *ranks)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < o->conf.ranks; i++)
		if (o->stream[2 * i].lost || o->stream[2 * i + 1].lost) {
			p3_ranks_add(ranks, i);
			n++;
		}
	return n;
}
