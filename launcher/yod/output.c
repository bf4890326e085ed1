/* SPDX-License-Identifier: BSD-3-Clause */
/* Output: streams from the nodes, and yod's own lines, composed for two sinks; files. */
#include "launcher/yod/yod.h"
#include "launcher/yod/frames.h"
#include "launcher/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define OUTDIR_NAME_LEN 24
#define SINK_ROOM       (128 * 1024)
#define STREAM_ROOM     (64 * 1024)
#define OWN_ROOM        (1024 * 1024)
#define AFTER_END_MS    2000
#define LAST_MS         10000 /* for a reader to take some of the last lines of yod */
#define HURRY_MS        500
#define EVENTS          64
#define TAG_LEN         16
#define NO_STREAM       UINT32_MAX

/* epoll keys; a smaller key is the index of a stream */
#define KEY_SINK  (UINT64_C(1) << 32)
#define KEY_TIMER (UINT64_C(1) << 33)

static const char *outdir_name_of(char name[OUTDIR_NAME_LEN], uint32_t rank, int which)
{
	snprintf(name, OUTDIR_NAME_LEN, "rank%u.%s", rank, which ? "err" : "out");
	return name;
}

static int outdir_open_file(int dir_fd, uint32_t rank, int which, int more)
{
	char name[OUTDIR_NAME_LEN];
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | more;
	int fd = openat(dir_fd, outdir_name_of(name, rank, which), flags, 0666);
	return fd < 0 ? -errno : fd;
}

int p3_outdir_file(int dir_fd, uint32_t rank, int which)
{
	return outdir_open_file(dir_fd, rank, which, 0);
}

void p3_outdir_say_lost(const char *dir, uint32_t rank, int which, int err)
{
	char name[OUTDIR_NAME_LEN];
	p3_say("--output-dir: cannot write %s/%s: %s; bytes that do not fit are lost, "
	       "and the rank goes on; see df",
		dir, outdir_name_of(name, rank, which), strerror(err));
}

/* Empty the files now, so that errors appear before anything runs. */
static int outdir_empty_files(int dir_fd, const char *dir, uint32_t rank)
{
	char name[OUTDIR_NAME_LEN];
	for (int which = 0; which < 2; which++) {
		int fd = outdir_open_file(dir_fd, rank, which, O_TRUNC | O_NONBLOCK);
		if (fd < 0) {
			p3_say("--output-dir: cannot write %s/%s: %s; expected a file "
			       "that you may write, or none; remove it, or name another "
			       "folder",
				dir, outdir_name_of(name, rank, which), strerror(-fd));
			return fd;
		}
		close(fd);
	}
	return 0;
}

int p3_outdir_open(const char *dir, uint32_t size)
{
	int made = mkdir(dir, 0777) && errno != EEXIST ? -errno : 0;
	int fd = made ? made : open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		p3_say("--output-dir: '%s' cannot be %s: %s; expected a folder, or the "
		       "name of a new one in a folder that is there",
			dir, made ? "made" : "opened", strerror(made ? -made : errno));
		return -1;
	}
	for (uint32_t i = 0; i < size; i++)
		if (outdir_empty_files(fd, dir, i)) {
			close(fd);
			return -1;
		}
	return fd;
}

/*
 * sink - a thread that writes one buffer at a time to a descriptor that may block
 *
 *	owner: fill buf[0..len) --sink_send--> thread: write --done_fd--> owner
 *
 * While a sink is busy the buffer is the thread's, else the owner's.  The owner is yod's
 * main thread (output.c): it calls all functions, and sink_send() only while the sink
 * is not busy.
 */
struct sink {
	int fd;
	int done_fd; /* readable: call sink_collect() */
	bool busy;   /* (owner) */
	bool runs;   /* (owner) */
	int err;     /* (owner) the errno that ended it; later output is dropped */
	uint32_t len;
	char *buf;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool full;      /* (lock) */
	bool quit;      /* (lock) */
	int thread_err; /* (lock) */
};

static int sink_open(struct sink *sink, int fd)
{
	*sink = (struct sink){.fd = fd, .done_fd = -1};
	pthread_mutex_init(&sink->lock, NULL);
	pthread_cond_init(&sink->wake, NULL);
	sink->buf = malloc(SINK_ROOM);
	if (!sink->buf)
		return -ENOMEM;
	sink->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return sink->done_fd < 0 ? -errno : 0;
}

static int sink_write_all(const struct sink *sink)
{
	const char *at = sink->buf;
	uint32_t len = sink->len;
	while (len) {
		ssize_t n = write(sink->fd, at, len);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return errno;
		/* another process that shares the descriptor may have made it
		 * non-blocking */
		struct pollfd p = {.fd = sink->fd, .events = POLLOUT};
		if (n < 0 && errno == EAGAIN && poll(&p, 1, -1) < 0 && errno != EINTR)
			return errno;
		at += n > 0 ? n : 0;
		len -= n > 0 ? (uint32_t)n : 0;
	}
	return 0;
}

static bool sink_await_work(struct sink *sink)
{
	pthread_mutex_lock(&sink->lock);
	while (!sink->full && !sink->quit)
		pthread_cond_wait(&sink->wake, &sink->lock);
	bool work = sink->full;
	pthread_mutex_unlock(&sink->lock);
	return work;
}

static void sink_report(struct sink *sink, int err)
{
	uint64_t one = 1;
	pthread_mutex_lock(&sink->lock);
	sink->full = false;
	sink->thread_err = err;
	pthread_mutex_unlock(&sink->lock);
	ssize_t n = write(sink->done_fd, &one, sizeof one);
	(void)n;
}

static void *sink_run(void *arg)
{
	struct sink *sink = arg;
	while (sink_await_work(sink))
		sink_report(sink, sink_write_all(sink));
	return NULL;
}

static int sink_start(struct sink *sink)
{
	int rc = pthread_create(&sink->thread, NULL, sink_run, sink);
	sink->runs = rc == 0;
	return -rc;
}

static void sink_send(struct sink *sink)
{
	sink->busy = true;
	pthread_mutex_lock(&sink->lock);
	sink->full = true;
	pthread_cond_signal(&sink->wake);
	pthread_mutex_unlock(&sink->lock);
}

/* Take the buffer back, empty, after done_fd was readable. */
static void sink_collect(struct sink *sink)
{
	uint64_t n;
	if (read(sink->done_fd, &n, sizeof n) < 0)
		return;
	pthread_mutex_lock(&sink->lock);
	sink->err = sink->thread_err;
	pthread_mutex_unlock(&sink->lock);
	sink->len = 0;
	sink->busy = false;
}

/* Close a sink that is not busy. */
static void sink_close(struct sink *sink)
{
	if (sink->runs) {
		pthread_mutex_lock(&sink->lock);
		sink->quit = true;
		pthread_cond_signal(&sink->wake);
		pthread_mutex_unlock(&sink->lock);
		pthread_join(sink->thread, NULL);
	}
	p3_close(sink->done_fd);
	free(sink->buf);
}

/* ---- streams ---- */

_Static_assert(SINK_ROOM >= STREAM_ROOM + TAG_LEN + 1, "a whole line fits");

struct stream {
	int fd; /* -1: it is at its end */
	uint32_t sink;
	uint32_t len;
	bool watched;
	bool last;       /* true if it closes when the owed bytes are read */
	bool idle;       /* p3_output_idle() has said so */
	bool push;       /* true if a partial line is sent, too */
	int64_t idle_at; /* time to set push */
	int64_t end_at;  /* time to close it, because the node has ended */
	uint32_t owed;   /* bytes that the node itself left in the pipe */
	char *buf;
};

struct port {
	struct sink sink;
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
	bool remote;     /* the nodes are on other hosts: p3_output_idle() is called */
	uint32_t open_n; /* streams that are not at their end */
	struct p3_backlog own; /* yod's lines, OWN_ROOM at most */
	uint32_t left_out;     /* lines that found no room there */
	struct port port[2];
	struct stream stream[]; /* indexed by 2 * rank + which */
};

/* ---- streams ---- */

/* Watch a stream, or stop: epoll reports an end of file for ever, so a stream that is
 * not read must not be watched. */
static void stream_watch(struct p3_output *o, uint32_t i, bool on)
{
	struct stream *s = &o->stream[i];
	if (s->watched == on || s->fd < 0)
		return;
	s->watched = on;
	p3_watch(o->ep, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, s->fd, i, EPOLLIN);
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

/* Note that a node has written nothing for a while.  Bytes that are not read yet, since
 * the sink is busy, show that it has: stream_read() then sees to the rest. */
static void stream_idle(struct p3_output *o, uint32_t i)
{
	struct stream *s = &o->stream[i];
	int unread = 0;
	s->idle_at = P3_NEVER;
	if (s->fd < 0 || ioctl(s->fd, FIONREAD, &unread) || unread)
		return;
	s->push = s->len || o->port[s->sink].holder == i;
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
	s->push = false;
	s->owed -= (uint32_t)n < s->owed ? (uint32_t)n : s->owed;
	if (s->last && !s->owed) {
		stream_end(o, i);
		return;
	}
	if (s->idle)
		stream_idle(o, i);
	if (o->remote)
		return;
	s->idle_at = p3_now_ms() + P3_OUTPUT_IDLE_MS;
	p3_timer_arm(o->timer, &o->timer_at, s->idle_at);
}

static void stream_take(struct p3_output *o, uint32_t i, uint32_t len)
{
	struct stream *s = &o->stream[i];
	if (!len)
		return;
	s->len -= len;
	memmove(s->buf, s->buf + len, s->len);
	stream_watch(o, i, true);
}

/* ---- composing ---- */

static void port_append(struct sink *k, const char *data, uint32_t len)
{
	memcpy(k->buf + k->len, data, len);
	k->len += len;
}

static void port_emit(
	struct port *p, uint32_t i, const char *data, uint32_t len, bool plain)
{
	if (p->open != i && !plain) {
		char tag[TAG_LEN + 1];
		int n = snprintf(tag, sizeof tag, "%s[%u] ",
			p->open == NO_STREAM ? "" : "\n", i / 2);
		port_append(&p->sink, tag, (uint32_t)n);
	}
	port_append(&p->sink, data, len);
	p->open = data[len - 1] == '\n' ? NO_STREAM : i;
}

/* Return the number of bytes from `at` that may be sent now: a line or a piece of one. */
static uint32_t stream_piece(
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
static bool port_compose_stream(struct p3_output *o, struct port *p, uint32_t i)
{
	struct stream *s = &o->stream[i];
	uint32_t at = 0, len;
	bool room = true;
	while ((len = stream_piece(p, s, i, at))) {
		room = p->sink.len + TAG_LEN + 1 + len <= SINK_ROOM;
		if (!room)
			break;
		bool whole = s->buf[at + len - 1] == '\n';
		port_emit(p, i, s->buf + at, len, o->plain);
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

static struct port *output_own_port(struct p3_output *o)
{
	return &o->port[o->ports - 1];
}

/* Add the number of lines that were left out, once half of the room is free again. */
static void output_tell_left_out(struct p3_output *o)
{
	char line[120];
	if (!o->left_out || p3_backlog_len(&o->own) > OWN_ROOM / 2)
		return;
	int n = snprintf(line, sizeof line,
		"yod: %u lines of yod are missing here: the reader of standard error "
		"paused\n",
		o->left_out);
	if (p3_backlog_add(&o->own, line, (size_t)n))
		o->left_out = 0;
}

/* Add yod's own lines, as if they were those of one more rank: each whole and at the
 * beginning of a line.  Nodes without pipes write to the same file, so one write has
 * PIPE_BUF bytes at most, which the kernel does not mix with those of others.  Return
 * false if the sink is full. */
static bool port_compose_own(struct p3_output *o, struct port *p)
{
	size_t most = o->ranks ? SINK_ROOM : PIPE_BUF, len;
	uint32_t own = 2 * o->ranks;
	while ((len = p3_backlog_len(&o->own))) {
		const char *line = p3_backlog_bytes(&o->own);
		const char *newline = memchr(line, '\n', len);
		len = newline ? (size_t)(newline - line) + 1 : len;
		len = len < PIPE_BUF ? len : PIPE_BUF - 1;
		if (p->sink.len + 1 + len > most)
			return false;
		if (p->open != NO_STREAM && p->open != own)
			port_append(&p->sink, "\n", 1);
		port_append(&p->sink, line, (uint32_t)len);
		p->open = line[len - 1] == '\n' ? NO_STREAM : own;
		p3_backlog_take(&o->own, len);
		output_tell_left_out(o);
	}
	return true;
}

static void port_compose(struct p3_output *o, struct port *p)
{
	uint32_t n = 2 * o->ranks;
	bool room = true;
	if (p->holder != NO_STREAM)
		room = port_compose_stream(o, p, p->holder);
	if (p == output_own_port(o) && room && p->holder == NO_STREAM)
		room = port_compose_own(o, p);
	for (uint32_t k = 0; k < n && room && p->holder == NO_STREAM; k++) {
		uint32_t i = (p->next + k) % n;
		if (&o->port[o->stream[i].sink] != p || !o->stream[i].len)
			continue;
		room = port_compose_stream(o, p, i);
		if (!room)
			p->next = i;
	}
	if (room && n)
		p->next = (p->next + 1) % n;
}

static void port_pump(struct p3_output *o, struct port *p)
{
	if (p->sink.busy || p->sink.err || !p->sink.runs)
		return;
	port_compose(o, p);
	if (p->sink.len)
		sink_send(&p->sink);
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
	if (p == output_own_port(o))
		p3_backlog_free(&o->own);
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

static void output_timer_expired(struct p3_output *o)
{
	if (!p3_timer_passed(o->timer))
		return;
	int64_t now = p3_now_ms();
	o->timer_at = P3_NEVER;
	for (uint32_t i = 0; i < 2 * o->ranks; i++) {
		struct stream *s = &o->stream[i];
		if (s->end_at <= now)
			stream_close_soon(o, i);
		if (s->idle_at <= now)
			stream_idle(o, i);
		p3_timer_arm(o->timer, &o->timer_at, p3_earlier(s->idle_at, s->end_at));
	}
}

void p3_output_step(struct p3_output *o)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(o->ep, ev, EVENTS, 0);
	for (int k = 0; k < n; k++) {
		uint64_t key = ev[k].data.u64;
		if (key == KEY_TIMER)
			output_timer_expired(o);
		else if (key < KEY_SINK)
			stream_read(o, (uint32_t)key);
		else {
			struct port *p = &o->port[key - KEY_SINK];
			sink_collect(&p->sink);
			if (p->sink.err)
				port_break(o, p);
		}
	}
	for (uint32_t k = 0; k < o->ports; k++)
		port_pump(o, &o->port[k]);
}

/* ---- yod's own lines ---- */

static void output_say(void *output, const char *lines, size_t len)
{
	struct p3_output *o = output;
	while (len && !output_own_port(o)->sink.err) {
		const char *newline = memchr(lines, '\n', len);
		size_t n = newline ? (size_t)(newline - lines) + 1 : len;
		if (o->left_out || p3_backlog_len(&o->own) + n > OWN_ROOM ||
			!p3_backlog_add(&o->own, lines, n))
			o->left_out++;
		lines += n;
		len -= n;
	}
	port_pump(o, output_own_port(o));
}

/* ---- creation and end ---- */

static int output_access_of(int fd)
{
	return fcntl(fd, F_GETFL) & O_ACCMODE;
}

/* Return true if both descriptors are of one file, as in `yod ... 2>&1`.  They then get
 * one sink, so that no line is torn.  A stdout that was closed is /dev/null without the
 * right to write (main.c); stderr may be /dev/null, too. */
static bool output_same_file(int a, int b)
{
	struct stat sa, sb;
	if (fstat(a, &sa) || fstat(b, &sb) || output_access_of(a) != output_access_of(b))
		return false;
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static int port_open(struct p3_output *o, uint32_t k, int fd)
{
	struct port *p = &o->port[k];
	p->open = p->holder = NO_STREAM;
	o->ports = k + 1;
	int rc = sink_open(&p->sink, fd);
	return rc ? rc : p3_watch_input(o->ep, p->sink.done_fd, KEY_SINK + k);
}

static int output_open(struct p3_output *o, const int to[2])
{
	o->timer_at = P3_NEVER;
	o->ep = epoll_create1(EPOLL_CLOEXEC);
	o->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (o->ep < 0 || o->timer < 0)
		return -errno;
	int rc = p3_watch_input(o->ep, o->timer, KEY_TIMER);
	if (!rc && o->ranks)
		rc = port_open(o, 0, to[0]);
	if (!rc && (!o->ranks || !output_same_file(to[0], to[1])))
		rc = port_open(o, o->ports, to[1]);
	return rc;
}

static void output_destroy(struct p3_output *o)
{
	for (uint32_t k = 0; k < o->ports; k++)
		sink_close(&o->port[k].sink);
	for (uint32_t i = 0; i < 2 * o->ranks; i++) {
		stream_end(o, i);
		free(o->stream[i].buf);
	}
	p3_backlog_free(&o->own);
	p3_close(o->timer);
	p3_close(o->ep);
	free(o);
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
	if (!rc) {
		p3_say_by(output_say, o);
		return o;
	}
	output_destroy(o);
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

void p3_output_set_remote(struct p3_output *o)
{
	o->remote = true;
}

void p3_output_idle(struct p3_output *o, uint32_t rank, int which, bool idle)
{
	uint32_t i = 2 * rank + (uint32_t)which;
	struct stream *s = &o->stream[i];
	if (rank >= o->ranks || s->fd < 0)
		return;
	s->idle = idle;
	s->push = false;
	if (!idle)
		return;
	stream_idle(o, i);
	port_pump(o, &o->port[s->sink]);
}

int p3_output_start(struct p3_output *o)
{
	int rc = 0;
	for (uint32_t k = 0; k < o->ports && !rc; k++)
		rc = sink_start(&o->port[k].sink);
	port_pump(o, output_own_port(o)); /* lines of before */
	return rc;
}

int p3_output_fd(const struct p3_output *o)
{
	return o->ep;
}

void p3_output_ended(struct p3_output *o, uint32_t rank)
{
	for (uint32_t i = 2 * rank; i < 2 * rank + 2 && rank < o->ranks; i++) {
		struct stream *s = &o->stream[i];
		int n;
		if (s->fd < 0)
			continue;
		s->owed = ioctl(s->fd, FIONREAD, &n) ? 0 : (uint32_t)n;
		s->end_at = p3_now_ms() + AFTER_END_MS;
		p3_timer_arm(o->timer, &o->timer_at, s->end_at);
	}
}

bool p3_output_is_done(const struct p3_output *o)
{
	if (o->open_n || p3_backlog_len(&o->own))
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
		if (o->ranks && o->port[k].sink.err && o->port[k].sink.err != EPIPE)
			return true;
	return false;
}

/* Wait until yod's own lines are written, as long as the reader takes some of them within
 * ms.  Return false if a write is still under way. */
static bool output_write_rest(struct p3_output *o, int ms)
{
	struct port *p = output_own_port(o);
	int64_t now = p3_now_ms(), end = now + ms;
	if (p3_backlog_len(&o->own) && !p->sink.runs && sink_start(&p->sink)) {
		/* Write by this thread, which may block: there is no other one. */
		ssize_t n = write(
			p->sink.fd, p3_backlog_bytes(&o->own), p3_backlog_len(&o->own));
		(void)n;
		p3_backlog_free(&o->own);
	}
	port_pump(o, p);
	for (; (p3_backlog_len(&o->own) || p->sink.busy) && now < end;
		now = p3_now_ms()) {
		struct pollfd ready = {.fd = o->ep, .events = POLLIN};
		size_t before = p3_backlog_len(&o->own);
		if (poll(&ready, 1, (int)(end - now)) > 0)
			p3_output_step(o);
		if (p3_backlog_len(&o->own) < before)
			end = p3_now_ms() + ms;
	}
	for (uint32_t k = 0; k < o->ports; k++)
		if (o->port[k].sink.busy)
			return false;
	return true;
}

void p3_output_close(struct p3_output *o, bool hurry)
{
	if (!o)
		return;
	bool written = output_write_rest(o, hurry ? HURRY_MS : LAST_MS);
	p3_say_by(NULL, NULL);
	if (written)
		output_destroy(o);
}
