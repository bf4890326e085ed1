/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's connection to yod. */
#include "launcher/yod/agent.h"
#include "launcher/clock.h"
#include "launcher/yod/beat.h"
#include "launcher/yod/feed.h"
#include "launcher/yod/relay.h"
#include "launcher/yod/run.h"
#include "launcher/yod/say.h"
#include "shm/domain.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define LAST_MS 10000 /* time for yod to take some of the last frames */
#define EVENTS  5

enum key { KEY_IN, KEY_OUT, KEY_RELAY, KEY_FEED, KEY_BEAT };

struct p3_agent {
	struct p3_order order;
	char *bytes; /* of the order */
	struct p3_frames conn;
	char domain[P3_DOMAIN_NAMES + 1];
	char address[INET6_ADDRSTRLEN];
	bool cut; /* the connection is broken */
	int ep;
	bool out_watched, feed_watched;
	struct p3_relay *relay;
	struct p3_feed feed;
	struct p3_backlog trace; /* that yod has no room for yet */
	uint64_t trace_room;
	struct p3_beat beat;
	int timer; /* for the beat */
	/* takes the frames for run.c */
	void (*take)(void *arg, const struct p3_frame *f, const char *bytes);
	void *arg;
};

const struct p3_order *p3_agent_order(const struct p3_agent *a)
{
	return &a->order;
}

const struct p3_host *p3_agent_host(const struct p3_agent *a)
{
	return &a->order.opt.hosts.host[a->order.host];
}

const char *p3_agent_domain(const struct p3_agent *a)
{
	return a->order.opt.hosts.n > 1 ? a->domain : NULL;
}

const char *p3_agent_address(const struct p3_agent *a)
{
	return a->address;
}

static int watch(struct p3_agent *a, int op, int fd, enum key key, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u32 = key};
	return fd < 0 || epoll_ctl(a->ep, op, fd, &ev) ? -errno : 0;
}

/* Watch for room where bytes wait for it. */
static void set_watches(struct p3_agent *a)
{
	bool owes = !a->cut && p3_frames_owes(&a->conn);
	bool feeds = p3_feed_wants(&a->feed) >= 0;
	if (owes != a->out_watched && !a->cut)
		watch(a, EPOLL_CTL_MOD, STDOUT_FILENO, KEY_OUT, owes ? EPOLLOUT : 0);
	if (feeds && !a->feed_watched)
		watch(a, EPOLL_CTL_ADD, a->feed.to, KEY_FEED, EPOLLOUT);
	if (!feeds && a->feed_watched && a->feed.to >= 0)
		watch(a, EPOLL_CTL_DEL, a->feed.to, KEY_FEED, 0);
	a->out_watched = owes;
	a->feed_watched = feeds;
}

void p3_agent_tell(struct p3_agent *a, struct p3_frame f, const void *bytes)
{
	if (!a->cut)
		p3_frames_send(&a->conn, f, bytes);
	if (a->ep >= 0)
		set_watches(a);
}

/* ---- traces ---- */

static void send_trace(struct p3_agent *a)
{
	size_t n;
	while ((n = p3_backlog_len(&a->trace)) && a->trace_room) {
		n = n < a->trace_room ? n : a->trace_room;
		p3_agent_tell(a, (struct p3_frame){.op = P3_FRAME_TRACE, .len = n},
			p3_backlog_bytes(&a->trace));
		p3_backlog_take(&a->trace, n);
		a->trace_room -= n;
	}
}

static void add_trace_room(struct p3_agent *a, uint64_t n)
{
	if (n <= P3_FRAMES_ROOM - a->trace_room)
		a->trace_room += n;
	send_trace(a);
}

bool p3_agent_trace(struct p3_agent *a, const void *bytes, size_t len)
{
	bool added = p3_backlog_add(&a->trace, bytes, len);
	send_trace(a);
	return added;
}

/* Send a line of this process to yod, which prints it. */
static void send_line(void *arg, const char *line, size_t len)
{
	struct p3_agent *a = arg;
	p3_agent_tell(a, (struct p3_frame){.op = P3_FRAME_SAY, .len = len}, line);
}

/* Name bytes on standard input that are not yod's. */
static void say_garbage(const struct p3_agent *a)
{
	char text[60];
	p3_frames_text(&a->conn, text, sizeof text);
	p3_say("'%s' is no frame of a yod of this version; expected nothing else on the "
	       "agent's standard input: see that the remote shell and the shell's start "
	       "files write nothing to it",
		text);
}

/* ---- before the job ---- */

/* Wait until bytes have come, or the beat has work.  While the order is under way, tell
 * yod nothing: yod, too, is to notice that it does not arrive.  Return 0 or -errno;
 * -ECONNRESET: yod does not listen any more; -ETIMEDOUT: it is silent. */
static int await_bytes(struct p3_agent *a)
{
	if (p3_beat_is_lost(&a->beat))
		return -ETIMEDOUT;
	if (p3_beat_is_due(&a->beat) && a->bytes)
		p3_frames_send(&a->conn, (struct p3_frame){.op = P3_FRAME_BEAT}, NULL);
	int64_t at = p3_beat_at(&a->beat), ms = at - p3_now_ms();
	if (p3_frames_flush(&a->conn) || !p3_frames_wait(&a->conn, at == P3_NEVER ? -1
								   : ms < 0       ? 0
									    : (int)ms))
		return -ECONNRESET;
	int rc = p3_frames_fill(&a->conn);
	if (!rc)
		p3_beat_heard(&a->beat);
	return rc == -EAGAIN ? 0 : rc;
}

/* Wait for the next frame.  Return 0 or -errno, as await_bytes() and p3_frames_next(). */
static int await(struct p3_agent *a, struct p3_frame *f, const char **bytes)
{
	int rc;
	while ((rc = p3_frames_next(&a->conn, f, bytes)) == -EAGAIN)
		if ((rc = await_bytes(a)))
			return rc;
	return rc;
}

static size_t left(const struct p3_agent *a)
{
	return p3_frames_owes(&a->conn) + p3_backlog_len(&a->trace);
}

/* Take what comes while the last frames are sent: only room for traces matters then. */
static int take_room(struct p3_agent *a)
{
	struct p3_frame f;
	const char *bytes;
	int rc = p3_frames_fill(&a->conn);
	while (!p3_frames_next(&a->conn, &f, &bytes))
		if (f.op == P3_FRAME_ROOM && f.value == P3_FRAMES_TRACE)
			add_trace_room(a, f.number);
	return rc == -EAGAIN ? 0 : rc;
}

/* Send all frames, as long as yod takes any. */
static void send_last(struct p3_agent *a)
{
	int64_t end = p3_now_ms() + LAST_MS;
	size_t before = left(a), owes;
	while (!p3_frames_flush(&a->conn) && (owes = left(a)) && p3_now_ms() < end) {
		if (owes < before)
			end = p3_now_ms() + LAST_MS;
		before = owes;
		if (!p3_frames_wait(&a->conn, 100) || take_room(a))
			return;
	}
}

void p3_agent_refuse(struct p3_agent *a, int status)
{
	p3_agent_tell(
		a, (struct p3_frame){.op = P3_FRAME_REFUSED, .value = status}, NULL);
	send_last(a);
}

static int say_no_yod(const struct p3_agent *a, int rc)
{
	/* With another version, yod says it, when it has read HELLO. */
	if (rc == -EPROTONOSUPPORT || rc == -ECONNRESET)
		return P3_STATUS_YOD;
	if (rc == -ETIMEDOUT)
		p3_say("--agent: standard input has %s for %g s (PTL3_FAR_TIMEOUT); "
		       "expected a yod's order: see that yod and the remote shell "
		       "have not been stopped, and that the network works",
			p3_frames_has_part(&a->conn) ? "part of a frame, and then nothing"
						     : "nothing",
			(double)a->beat.timeout_ms / 1000);
	else
		p3_say("--agent: standard input has no order of a yod; expected that "
		       "yod --hosts starts the agent");
	return P3_STATUS_YOD;
}

/* Read the order, which stays in memory for ever.  Return 0, or the exit status. */
static int read_order(struct p3_agent *a)
{
	struct p3_frame f;
	const char *bytes;
	p3_beat_begin(&a->beat);
	int rc = await(a, &f, &bytes);
	if (rc || f.op != P3_FRAME_ORDER)
		return say_no_yod(a, rc);
	a->bytes = malloc(f.len + 1);
	if (a->bytes)
		memcpy(a->bytes, bytes, f.len);
	return a->bytes && p3_order_unpack(a->bytes, f.len, &a->order) ? 0
								       : say_no_yod(a, 0);
}

/* Read the address of this host in what sshd sets: "client port address port". */
static void read_address(struct p3_agent *a)
{
	const char *text = getenv("SSH_CONNECTION");
	_Static_assert(INET6_ADDRSTRLEN == 46, "the same number");
	if (text && sscanf(text, "%*s %*s %45s", a->address) != 1)
		a->address[0] = '\0';
}

/* Take yod's environment, umask and directory.  Return 0 or the exit status. */
static int take_environment(struct p3_agent *a)
{
	const struct p3_order *o = &a->order;
	read_address(a);
	environ = o->env;
	umask(o->mask);
	p3_say_on(p3_agent_host(a)->name);
	snprintf(a->domain, sizeof a->domain, "yod-%u-%.12s-%u", o->jid, o->tag, o->host);
	if (!chdir(o->dir))
		return 0;
	p3_say("directory '%s': %s; expected the directory in which yod was "
	       "started, on each host",
		o->dir, strerror(errno));
	p3_agent_refuse(a, P3_STATUS_NO_FILE);
	return P3_STATUS_NO_FILE;
}

struct p3_agent *p3_agent_connect(int *status_out)
{
	static struct p3_agent agent;
	struct p3_agent *a = &agent;
	*status_out = P3_STATUS_YOD;
	if (p3_frames_open(&a->conn, STDIN_FILENO, STDOUT_FILENO))
		return NULL;
	a->feed.to = a->ep = -1;
	a->trace_room = P3_FRAMES_ROOM;
	p3_agent_tell(a,
		(struct p3_frame){.op = P3_FRAME_HELLO, .number = P3_LAYOUT_WORD}, NULL);
	*status_out = read_order(a);
	if (*status_out) {
		send_last(a);
		return NULL;
	}
	p3_say_by(send_line, a);
	*status_out = take_environment(a);
	return *status_out ? NULL : a;
}

bool p3_agent_await_go(struct p3_agent *a)
{
	struct p3_frame f;
	const char *bytes;
	int rc;
	p3_agent_tell(a, (struct p3_frame){.op = P3_FRAME_READY}, NULL);
	p3_beat_begin(&a->beat);
	do
		rc = await(a, &f, &bytes);
	while (!rc && f.op == P3_FRAME_BEAT);
	if (rc == -EPROTO)
		say_garbage(a);
	return !rc && f.op == P3_FRAME_GO;
}

void p3_agent_clean(void *agent)
{
	struct p3_agent *a = agent;
	struct p3_domain d;
	struct p3_domain_why why;
	if (p3_agent_domain(a) && !p3_domain_open(&d, P3_DOMAIN_BASE, a->domain, &why))
		p3_domain_leave(&d);
}

/* ---- the loop ---- */

static int open_stdin(struct p3_agent *a, int *stdin_out)
{
	if (p3_agent_host(a)->first == 0)
		return p3_feed_open(&a->feed, &a->conn, stdin_out);
	*stdin_out = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return *stdin_out < 0 ? -errno : 0;
}

int p3_agent_open(struct p3_agent *a, int *stdin_out,
	void (*order)(void *arg, const struct p3_frame *f, const char *bytes), void *arg)
{
	a->take = order;
	a->arg = arg;
	a->ep = epoll_create1(EPOLL_CLOEXEC);
	a->relay = p3_relay_create(a->order.opt.size, &a->conn);
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->ep < 0 || !a->relay || a->timer < 0)
		return -errno;
	p3_beat_begin(&a->beat);
	p3_timer_set(a->timer, 1); /* go off now: look for frames that came with GO */
	int rc = open_stdin(a, stdin_out);
	rc = rc ? rc : watch(a, EPOLL_CTL_ADD, a->timer, KEY_BEAT, EPOLLIN);
	rc = rc ? rc : watch(a, EPOLL_CTL_ADD, STDIN_FILENO, KEY_IN, EPOLLIN);
	/* Without events: epoll reports that the other end is closed. */
	rc = rc ? rc : watch(a, EPOLL_CTL_ADD, STDOUT_FILENO, KEY_OUT, 0);
	return rc ? rc
		  : watch(a, EPOLL_CTL_ADD, p3_relay_fd(a->relay), KEY_RELAY, EPOLLIN);
}

/* Give up the connection to yod, which has ended. */
static void cut(struct p3_agent *a)
{
	if (a->cut)
		return;
	a->cut = true;
	p3_beat_end(&a->beat);
	epoll_ctl(a->ep, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
	epoll_ctl(a->ep, EPOLL_CTL_DEL, STDOUT_FILENO, NULL);
	a->take(a->arg, NULL, NULL);
}

static void take_frame(struct p3_agent *a, const struct p3_frame *f, const char *bytes)
{
	if (f->op == P3_FRAME_BEAT)
		return;
	if (f->op == P3_FRAME_ROOM && f->value == P3_FRAMES_TRACE)
		add_trace_room(a, f->number);
	else if (f->op == P3_FRAME_ROOM)
		p3_relay_room(a->relay, f->node, f->value, f->number);
	else if (f->op == P3_FRAME_NO_OUTPUT)
		p3_relay_drop(a->relay, f->node, f->value);
	else if (f->op == P3_FRAME_INPUT)
		(void)p3_feed_take(&a->feed, bytes, f->len);
	else
		a->take(a->arg, f, bytes);
}

static void take_frames(struct p3_agent *a)
{
	struct p3_frame f;
	const char *bytes;
	int rc = 0;
	while (!a->cut && !(rc = p3_frames_next(&a->conn, &f, &bytes)))
		take_frame(a, &f, bytes);
	if (rc == -EPROTO)
		say_garbage(a);
	if (rc && rc != -EAGAIN)
		cut(a);
}

static void receive(struct p3_agent *a)
{
	int rc = p3_frames_fill(&a->conn);
	if (!rc)
		p3_beat_heard(&a->beat);
	take_frames(a);
	if (rc && rc != -EAGAIN)
		cut(a);
}

static void on_timer(struct p3_agent *a)
{
	(void)p3_timer_passed(a->timer);
	take_frames(a);
	if (p3_beat_is_lost(&a->beat))
		cut(a);
	else if (p3_beat_is_due(&a->beat))
		p3_frames_send(&a->conn, (struct p3_frame){.op = P3_FRAME_BEAT}, NULL);
	p3_timer_set(a->timer, p3_beat_at(&a->beat));
}

static void on_event(struct p3_agent *a, enum key key, uint32_t events)
{
	switch (key) {
	case KEY_IN:
		if (!a->cut)
			receive(a);
		return;
	case KEY_OUT:
		if (events & EPOLLERR)
			cut(a);
		return; /* p3_agent_step() sends */
	case KEY_RELAY:
		p3_relay_step(a->relay);
		return;
	case KEY_FEED:
		p3_feed_step(&a->feed);
		return;
	case KEY_BEAT:
		on_timer(a);
		return;
	}
}

int p3_agent_fd(const struct p3_agent *a)
{
	return a->ep;
}

void p3_agent_step(struct p3_agent *a)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(a->ep, ev, EVENTS, 0);
	for (int k = 0; k < n; k++)
		on_event(a, (enum key)ev[k].data.u32, ev[k].events);
	if (!a->cut && p3_frames_flush(&a->conn))
		cut(a);
	set_watches(a);
}

int p3_agent_add(struct p3_agent *a, uint32_t rank, int which, int fd)
{
	return p3_relay_add(a->relay, rank, which, fd);
}

void p3_agent_ended(struct p3_agent *a, uint32_t rank, int status)
{
	struct p3_frame f = {.op = P3_FRAME_ENDED, .node = rank, .value = status};
	p3_relay_ended(a->relay, rank);
	p3_agent_tell(a, f, NULL);
}

bool p3_agent_has_output(const struct p3_agent *a)
{
	bool output = a->relay && !p3_relay_is_done(a->relay);
	return !a->cut && (output || p3_backlog_len(&a->trace));
}

void p3_agent_close(struct p3_agent *a)
{
	if (!a->cut)
		send_last(a);
	p3_agent_tell(a, (struct p3_frame){.op = P3_FRAME_DONE}, NULL);
	if (!a->cut)
		send_last(a);
	p3_say_by(NULL, NULL);
	p3_backlog_free(&a->trace);
	p3_relay_destroy(a->relay);
	p3_feed_close(&a->feed);
	p3_frames_close(&a->conn);
	close(a->timer);
	close(a->ep);
}
