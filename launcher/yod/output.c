/* SPDX-License-Identifier: BSD-3-Clause */
/* Output: streams from the nodes, and yod's own lines, composed for two sinks; files. */
#include "launcher/yod/yod.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define OUTDIR_NAME_LEN 24
#define SINK_ROOM       (128 * 1024)
#define OWN_ROOM        (1024 * 1024)
#define LAST_MS         10000 /* for a reader to take some of the last lines of yod */
#define HURRY_MS        500
#define TAKEN_MS        3000 /* in a hurry, at a reader that takes bytes */
#define LOOK_MS         50
#define TAG_LEN         16
#define NO_STREAM       UINT32_MAX

static const char *outdir_name_of(char name[OUTDIR_NAME_LEN], uint32_t rank, int which)
{
	snprintf(name, OUTDIR_NAME_LEN, "rank%u.%s", rank, which ? "err" : "out");
	return name;
}

int p3_outdir_file(int dir_fd, uint32_t rank, int which, int more)
{
	char name[OUTDIR_NAME_LEN];
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | more;
	int fd = openat(dir_fd, outdir_name_of(name, rank, which), flags, 0666);
	return fd < 0 ? -errno : fd;
}

void p3_outdir_say_lost(const char *dir, uint32_t rank, int which, int err)
{
	char name[OUTDIR_NAME_LEN];
	p3_say("--output-dir: cannot write %s/%s: %s; bytes that do not fit are lost, "
	       "and the rank goes on; see df",
		dir, outdir_name_of(name, rank, which), strerror(err));
}

int p3_outdir_open(const char *dir, uint32_t size)
{
	char name[OUTDIR_NAME_LEN];
	int made = mkdir(dir, 0777) && errno != EEXIST ? -errno : 0;
	int fd = made ? made : open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		p3_say("--output-dir: '%s' cannot be %s: %s; expected a folder, or the "
		       "name of a new one in a folder that is there",
			dir, made ? "made" : "opened", strerror(made ? -made : errno));
		return -1;
	}
	/* Empty the files now, so that errors appear before anything runs. */
	for (uint32_t i = 0; i < 2 * size; i++) {
		int which = (int)(i % 2);
		int file = p3_outdir_file(fd, i / 2, which, O_TRUNC | O_NONBLOCK);
		if (file < 0) {
			p3_say("--output-dir: cannot write %s/%s: %s; expected a file "
			       "that you may write, or none; remove it, or name another "
			       "folder",
				dir, outdir_name_of(name, i / 2, which), strerror(-file));
			close(fd);
			return -1;
		}
		close(file);
	}
	return fd;
}

/*
 * sink - a thread that writes one buffer at a time to a descriptor that may block
 *
 *	owner: fill buf[0..len) --go--> thread: write, set result --done--> owner
 *
 * While a sink is busy the buffer is the thread's, else the owner's.  The owner is yod's
 * main thread: it calls all functions.
 */
struct sink {
	int fd;
	struct p3_loop_fd done; /* an eventfd; readable: call sink_collect() */
	bool busy, runs;
	int err;      /* the errno that ended it; later output is dropped */
	uint32_t len; /* 0 at go: the thread ends */
	char *buf;
	int result; /* an errno */
	pthread_t thread;
	sem_t go;
};

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

static void *sink_run(void *arg)
{
	struct sink *sink = arg;
	for (;;) {
		while (sem_wait(&sink->go))
			;
		if (!sink->len)
			return NULL;
		sink->result = sink_write_all(sink);
		(void)eventfd_write(sink->done.fd, 1);
	}
}

static int sink_start(struct sink *sink)
{
	int rc = pthread_create(&sink->thread, NULL, sink_run, sink);
	sink->runs = rc == 0;
	return -rc;
}

/* Take the buffer back, empty, after done was readable. */
static void sink_collect(struct sink *sink)
{
	eventfd_t n;
	if (eventfd_read(sink->done.fd, &n))
		return;
	sink->err = sink->result;
	sink->len = 0;
	sink->busy = false;
}

/* ---- streams ---- */

_Static_assert(SINK_ROOM >= P3_STREAM_ROOM + TAG_LEN + 1, "a whole line fits");

struct stream {
	bool open;  /* false: it is at its end */
	bool taken; /* its bytes have a reader */
	bool push;  /* true if a partial line is sent, too */
	uint32_t port;
	struct p3_backlog bytes; /* P3_STREAM_ROOM at most */
};

struct port {
	struct sink sink;
	struct p3_output *output;
	uint32_t open;   /* stream whose line has no newline yet, or NO_STREAM */
	uint32_t holder; /* stream whose long line is incomplete: the others wait */
	uint32_t next;   /* stream that has the first turn next time */
};

struct p3_output {
	struct p3_output_conf conf;
	uint32_t ports;
	uint32_t open_n;       /* streams that are not at their end */
	struct p3_backlog own; /* yod's lines, OWN_ROOM at most */
	uint32_t left_out;     /* lines that found no room there */
	struct port port[2];
	struct stream stream[]; /* indexed by 2 * rank + which */
};

static void stream_end(struct p3_output *o, struct stream *s)
{
	if (!s->open)
		return;
	s->open = false;
	s->push = true;
	o->open_n--;
}

/* ---- composing ---- */

static void port_append(struct sink *k, const char *data, uint32_t len)
{
	memcpy(k->buf + k->len, data, len);
	k->len += len;
}

/* Add a stream's lines.  Return false if the sink is full. */
static bool port_compose_stream(struct p3_output *o, struct port *p, uint32_t i)
{
	struct stream *s = &o->stream[i];
	uint32_t len, n = 0;
	bool room = true;
	while ((len = (uint32_t)p3_backlog_len(&s->bytes))) {
		/* a line or a piece of one */
		const char *at = p3_backlog_bytes(&s->bytes);
		const char *newline = memchr(at, '\n', len);
		if (newline)
			len = (uint32_t)(newline - at) + 1;
		else if (!s->push && p->holder != i && len < P3_STREAM_ROOM)
			break;
		room = p->sink.len + TAG_LEN + 1 + len <= SINK_ROOM;
		if (!room)
			break;
		if (p->open != i && !o->conf.plain) {
			char tag[TAG_LEN + 1];
			int k = snprintf(tag, sizeof tag, "%s[%u] ",
				p->open == NO_STREAM ? "" : "\n", i / 2);
			port_append(&p->sink, tag, (uint32_t)k);
		}
		port_append(&p->sink, at, len);
		p->open = newline ? NO_STREAM : i;
		p->holder = newline || s->push ? NO_STREAM : i;
		p3_backlog_take(&s->bytes, len);
		n += len;
	}
	if (room && s->push) {
		s->push = !s->open;
		if (p->holder == i)
			p->holder = NO_STREAM;
	}
	if (n)
		o->conf.moved(o->conf.arg, i, n);
	return room;
}

static struct port *output_own_port(struct p3_output *o)
{
	return &o->port[o->ports - 1];
}

/* Add yod's own lines, as if they were those of one more rank: each whole and at the
 * beginning of a line.  Nodes without pipes write to the same file, so one write has
 * PIPE_BUF bytes at most, which the kernel does not mix with those of others.  Return
 * false if the sink is full. */
static bool port_compose_own(struct p3_output *o, struct port *p)
{
	size_t most = o->conf.ranks ? SINK_ROOM : PIPE_BUF, len;
	uint32_t own = 2 * o->conf.ranks;
	char left_out[120];
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
		/* Once half of the room is free again, add the number of lines that were
		 * left out. */
		if (!o->left_out || p3_backlog_len(&o->own) > OWN_ROOM / 2)
			continue;
		int n = snprintf(left_out, sizeof left_out,
			"yod: %u lines of yod are missing here: the reader of standard "
			"error paused\n",
			o->left_out);
		if (p3_backlog_add(&o->own, left_out, (size_t)n))
			o->left_out = 0;
	}
	return true;
}

static void port_compose(struct p3_output *o, struct port *p)
{
	uint32_t n = 2 * o->conf.ranks;
	bool room = true;
	if (p->holder != NO_STREAM)
		room = port_compose_stream(o, p, p->holder);
	if (p == output_own_port(o) && room && p->holder == NO_STREAM)
		room = port_compose_own(o, p);
	for (uint32_t k = 0; k < n && room && p->holder == NO_STREAM; k++) {
		uint32_t i = (p->next + k) % n;
		if (&o->port[o->stream[i].port] != p ||
			!p3_backlog_len(&o->stream[i].bytes))
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
	p->sink.busy = p->sink.len;
	if (p->sink.busy)
		sem_post(&p->sink.go);
}

/* Take a written buffer back, and fill it again; or give up a reader that has gone. */
static void port_on_done(void *arg)
{
	struct port *p = arg;
	struct p3_output *o = p->output;
	sink_collect(&p->sink);
	if (p->sink.err && p->sink.err != EPIPE)
		p3_say("cannot write output: %s; the rest of it is lost",
			strerror(p->sink.err));
	for (uint32_t i = 0; p->sink.err && i < 2 * o->conf.ranks; i++) {
		struct stream *s = &o->stream[i];
		if (&o->port[s->port] != p || !s->taken)
			continue;
		stream_end(o, s);
		bool tell = !o->conf.remote || p3_backlog_len(&s->bytes);
		s->taken = false;
		p3_backlog_free(&s->bytes);
		if (tell)
			o->conf.moved(o->conf.arg, i, 0);
	}
	if (p->sink.err && p == output_own_port(o))
		p3_backlog_free(&o->own);
	port_pump(o, p);
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

static int port_open(struct p3_output *o, int fd)
{
	struct port *p = &o->port[o->ports++];
	struct sink *k = &p->sink;
	p->open = p->holder = NO_STREAM;
	p->output = o;
	*k = (struct sink){.fd = fd, .done = {.fd = -1, .on = port_on_done, .arg = p}};
	sem_init(&k->go, 0, 0);
	k->buf = malloc(SINK_ROOM);
	if (!k->buf)
		return -ENOMEM;
	k->done.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (k->done.fd < 0)
		return -errno;
	return o->conf.loop ? p3_loop_watch(o->conf.loop, &k->done, EPOLLIN) : 0;
}

/* Free an output whose sinks are not busy. */
static void output_destroy(struct p3_output *o)
{
	for (uint32_t i = 0; i < o->ports; i++) {
		struct sink *k = &o->port[i].sink;
		if (o->conf.loop)
			(void)p3_loop_watch(o->conf.loop, &k->done, 0);
		if (k->runs) {
			sem_post(&k->go);
			pthread_join(k->thread, NULL);
		}
		sem_destroy(&k->go);
		p3_close(k->done.fd);
		free(k->buf);
	}
	for (uint32_t i = 0; i < 2 * o->conf.ranks; i++)
		p3_backlog_free(&o->stream[i].bytes);
	p3_backlog_free(&o->own);
	free(o);
}

struct p3_output *p3_output_create(const struct p3_output_conf *conf, const int to[2])
{
	struct p3_output *o =
		calloc(1, sizeof *o + 2 * (size_t)conf->ranks * sizeof o->stream[0]);
	struct stat a, b;
	if (!o)
		return NULL;
	o->conf = *conf;
	/* Two descriptors of one file, as in `yod ... 2>&1`, get one sink, so that no
	 * line is torn.  A stdout that was closed is /dev/null without the right to
	 * write (main.c); stderr may be /dev/null, too. */
	bool same = !fstat(to[0], &a) && !fstat(to[1], &b) && a.st_dev == b.st_dev &&
		    a.st_ino == b.st_ino &&
		    !((fcntl(to[0], F_GETFL) ^ fcntl(to[1], F_GETFL)) & O_ACCMODE);
	int rc = conf->ranks ? port_open(o, to[0]) : 0;
	if (!rc && (!conf->ranks || !same))
		rc = port_open(o, to[1]);
	if (!rc) {
		p3_say_by(output_say, o);
		return o;
	}
	output_destroy(o);
	errno = -rc;
	return NULL;
}

/* ---- streams ---- */

int p3_output_add(struct p3_output *o, uint32_t i)
{
	struct stream *s = &o->stream[i];
	if (!p3_backlog_room(&s->bytes, P3_STREAM_ROOM))
		return -ENOMEM;
	s->open = s->taken = true;
	s->port = o->ports == 2 ? i % 2 : 0;
	o->open_n++;
	return 0;
}

bool p3_output_take(void *output, uint32_t i, const char *bytes, size_t len)
{
	struct p3_output *o = output;
	struct stream *s = &o->stream[i];
	if (i >= 2 * o->conf.ranks)
		return true;
	if (!s->taken && len)
		o->conf.moved(o->conf.arg, i, 0);
	if (!s->taken)
		return true;
	if ((len && !s->open) || len > P3_STREAM_ROOM - p3_backlog_len(&s->bytes))
		return false;
	if (len)
		s->push = false;
	else
		stream_end(o, s);
	(void)p3_backlog_add(&s->bytes, bytes, len); /* p3_output_add() has made room */
	port_pump(o, &o->port[s->port]);
	return true;
}

void p3_output_idle(void *output, uint32_t i)
{
	struct p3_output *o = output;
	struct stream *s = &o->stream[i];
	if (i >= 2 * o->conf.ranks || !s->open)
		return;
	s->push = true;
	port_pump(o, &o->port[s->port]);
}

int p3_output_start(struct p3_output *o)
{
	int rc = 0;
	for (uint32_t k = 0; k < o->ports && !rc; k++)
		rc = sink_start(&o->port[k].sink);
	port_pump(o, output_own_port(o)); /* lines of before */
	return rc;
}

bool p3_output_is_done(const struct p3_output *o)
{
	if (o->open_n || p3_backlog_len(&o->own))
		return false;
	for (uint32_t k = 0; k < o->ports; k++)
		if (o->port[k].sink.busy)
			return false;
	for (uint32_t i = 0; i < 2 * o->conf.ranks; i++)
		if (p3_backlog_len(&o->stream[i].bytes))
			return false;
	return true;
}

bool p3_output_is_lost(const struct p3_output *o)
{
	for (uint32_t k = 0; k < o->ports; k++)
		if (o->conf.ranks && o->port[k].sink.err && o->port[k].sink.err != EPIPE)
			return true;
	return false;
}

/* Wait until yod's own lines are written, as long as the reader takes some of them within
 * ms.  The looks count, not the clock, which runs on while this process is stopped, and
 * those at a reader that takes no bytes count most: else the thread that writes has no
 * CPU.  Return false if a write is still under way. */
static bool output_write_rest(struct p3_output *o, int ms)
{
	struct port *p = output_own_port(o);
	const int most = ms < LAST_MS ? TAKEN_MS : LAST_MS;
	int left = most;
	if (p3_backlog_len(&o->own) && !p->sink.runs && sink_start(&p->sink)) {
		/* Write by this thread, which may block: there is no other one. */
		ssize_t n = write(
			p->sink.fd, p3_backlog_bytes(&o->own), p3_backlog_len(&o->own));
		(void)n;
		p3_backlog_free(&o->own);
	}
	port_pump(o, p);
	while ((p3_backlog_len(&o->own) || p->sink.busy) && left > 0) {
		struct pollfd done = {.fd = p->sink.done.fd, .events = POLLIN};
		struct pollfd to = {.fd = p->sink.fd, .events = POLLOUT};
		size_t before = p3_backlog_len(&o->own);
		if (poll(&done, 1, LOOK_MS) > 0)
			port_on_done(p);
		bool takes = poll(&to, 1, 0) == 1 && (to.revents & POLLOUT);
		left -= takes ? LOOK_MS : LOOK_MS * most / ms;
		if (p3_backlog_len(&o->own) < before)
			left = most;
	}
	for (uint32_t k = 0; k < o->ports; k++) {
		sink_collect(&o->port[k].sink);
		if (o->port[k].sink.busy)
			return false;
	}
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
