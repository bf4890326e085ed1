/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's connection to yod. */
#include "launcher/yod/remote.h"
#include "launcher/loop.h"
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

enum key { KEY_IN, KEY_OUT, KEY_OUTPUT_TX, KEY_INPUT_RX, KEY_BEAT };

struct p3_agent {
	struct p3_spec spec;
	char *bytes; /* of the order */
	struct p3_frames conn;
	char domain[P3_DOMAIN_NAMES + 1];
	char address[INET6_ADDRSTRLEN];
	bool cut; /* the connection is broken */
	int ep;
	bool out_watched, input_watched;
	struct p3_output_tx *output_tx;
	struct p3_input_rx input_rx;
	struct p3_backlog trace; /* that yod has no room for yet */
	uint64_t trace_room;
	struct p3_beat beat;
	int timer; /* for the beat */
	/* takes the frames for run.c */
	void (*take)(void *arg, const struct p3_frame *f, const char *bytes);
	void *arg;
};

const struct p3_spec *p3_agent_spec(const struct p3_agent *a)
{
	return &a->spec;
}

const struct p3_host *p3_agent_host(const struct p3_agent *a)
{
	return &a->spec.opt.hosts.host[a->spec.host];
}

const char *p3_agent_domain(const struct p3_agent *a)
{
	return a->spec.opt.hosts.n > 1 ? a->domain : NULL;
}

const char *p3_agent_address(const struct p3_agent *a)
{
	return a->address;
}

/* Watch for room where bytes wait for it. */
static void agent_set_watches(struct p3_agent *a)
{
	bool owes = !a->cut && p3_frames_owes(&a->conn);
	bool feeds = p3_input_rx_wants(&a->input_rx) >= 0;
	if (owes != a->out_watched && !a->cut)
		p3_watch(a->ep, EPOLL_CTL_MOD, STDOUT_FILENO, KEY_OUT,
			owes ? EPOLLOUT : 0);
	if (feeds && !a->input_watched)
		p3_watch(a->ep, EPOLL_CTL_ADD, a->input_rx.to, KEY_INPUT_RX, EPOLLOUT);
	if (!feeds && a->input_watched && a->input_rx.to >= 0)
		p3_watch(a->ep, EPOLL_CTL_DEL, a->input_rx.to, KEY_INPUT_RX, 0);
	a->out_watched = owes;
	a->input_watched = feeds;
}

void p3_agent_tell(struct p3_agent *a, struct p3_frame f, const void *bytes)
{
	if (!a->cut)
		p3_frames_send(&a->conn, f, bytes);
	if (a->ep >= 0)
		agent_set_watches(a);
}

/* ---- traces ---- */

static void agent_send_trace(struct p3_agent *a)
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

static void agent_add_trace_room(struct p3_agent *a, uint64_t n)
{
	if (n <= P3_FRAMES_ROOM - a->trace_room)
		a->trace_room += n;
	agent_send_trace(a);
}

bool p3_agent_trace(struct p3_agent *a, const void *bytes, size_t len)
{
	bool added = p3_backlog_add(&a->trace, bytes, len);
	agent_send_trace(a);
	return added;
}

/* Send a line of this process to yod, which prints it. */
static void agent_send_line(void *arg, const char *line, size_t len)
{
	struct p3_agent *a = arg;
	p3_agent_tell(a, (struct p3_frame){.op = P3_FRAME_SAY, .len = len}, line);
}

/* Name bytes on standard input that are not yod's. */
static void agent_say_garbage(const struct p3_agent *a)
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
static int agent_await_bytes(struct p3_agent *a)
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

/* Wait for the next frame.  Return 0 or -errno, as agent_await_bytes() and
 * p3_frames_next(). */
static int agent_await(struct p3_agent *a, struct p3_frame *f, const char **bytes)
{
	int rc;
	while ((rc = p3_frames_next(&a->conn, f, bytes)) == -EAGAIN)
		if ((rc = agent_await_bytes(a)))
			return rc;
	return rc;
}

static size_t agent_left(const struct p3_agent *a)
{
	return p3_frames_owes(&a->conn) + p3_backlog_len(&a->trace);
}

/* Take what comes while the last frames are sent: only room for traces matters then. */
static int agent_take_room(struct p3_agent *a)
{
	struct p3_frame f;
	const char *bytes;
	int rc = p3_frames_fill(&a->conn);
	while (!p3_frames_next(&a->conn, &f, &bytes))
		if (f.op == P3_FRAME_ROOM && f.value == P3_FRAMES_TRACE)
			agent_add_trace_room(a, f.number);
	return rc == -EAGAIN ? 0 : rc;
}

/* Send all frames, as long as yod takes any. */
static void agent_send_last(struct p3_agent *a)
{
	int64_t end = p3_now_ms() + LAST_MS;
	size_t before = agent_left(a), owes;
	while (!p3_frames_flush(&a->conn) && (owes = agent_left(a)) &&
		p3_now_ms() < end) {
		if (owes < before)
			end = p3_now_ms() + LAST_MS;
		before = owes;
		if (!p3_frames_wait(&a->conn, 100) || agent_take_room(a))
			return;
	}
}

void p3_agent_refuse(struct p3_agent *a, int status)
{
	p3_agent_tell(
		a, (struct p3_frame){.op = P3_FRAME_REFUSED, .value = status}, NULL);
	agent_send_last(a);
}

static int agent_say_no_yod(const struct p3_agent *a, int rc)
{
	/* With another version, yod says it, when it has read HELLO. */
	if (rc == -EPROTONOSUPPORT || rc == -ECONNRESET)
		return P3_STATUS_YOD;
	if (rc == -ETIMEDOUT)
		p3_say("--agent: standard input has %s for %g s (PTL3_FAR_TIMEOUT); "
		       "expected a yod's order: see that yod and the remote shell have "
		       "not been stopped, and that the network works",
			p3_frames_has_part(&a->conn) ? "part of a frame, and then nothing"
						     : "nothing",
			(double)a->beat.timeout_ms / 1000);
	else
		p3_say("--agent: standard input has no order of a yod; expected that yod "
		       "--hosts starts the agent");
	return P3_STATUS_YOD;
}

/* Read the order, which stays in memory for ever.  Return 0, or the exit status. */
static int agent_read_order(struct p3_agent *a)
{
	struct p3_frame f;
	const char *bytes;
	p3_beat_begin(&a->beat);
	int rc = agent_await(a, &f, &bytes);
	if (rc || f.op != P3_FRAME_ORDER)
		return agent_say_no_yod(a, rc);
	a->bytes = malloc(f.len + 1);
	if (a->bytes)
		memcpy(a->bytes, bytes, f.len);
	return a->bytes && p3_spec_unpack(a->bytes, f.len, &a->spec)
		       ? 0
		       : agent_say_no_yod(a, 0);
}

/* Take yod's environment, umask and directory.  Return 0 or the exit status. */
static int agent_take_environment(struct p3_agent *a)
{
	const struct p3_spec *o = &a->spec;
	/* sshd sets it to "client port address port" */
	const char *text = getenv("SSH_CONNECTION");
	_Static_assert(INET6_ADDRSTRLEN == 46, "the same number");
	if (text && sscanf(text, "%*s %*s %45s", a->address) != 1)
		a->address[0] = '\0';
	environ = o->env;
	umask(o->mask);
	p3_say_on(p3_agent_host(a)->name);
	snprintf(a->domain, sizeof a->domain, "yod-%u-%.12s-%u", o->jid, o->tag, o->host);
	if (!chdir(o->dir))
		return 0;
	p3_say("directory '%s': %s; expected the directory in which yod was started, on "
	       "each host",
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
	a->input_rx.to = a->ep = -1;
	a->trace_room = P3_FRAMES_ROOM;
	p3_agent_tell(a,
		(struct p3_frame){.op = P3_FRAME_HELLO, .number = P3_LAYOUT_WORD}, NULL);
	*status_out = agent_read_order(a);
	if (*status_out) {
		agent_send_last(a);
		return NULL;
	}
	p3_say_by(agent_send_line, a);
	*status_out = agent_take_environment(a);
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
		rc = agent_await(a, &f, &bytes);
	while (!rc && f.op == P3_FRAME_BEAT);
	if (rc == -EPROTO)
		agent_say_garbage(a);
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

int p3_agent_open(struct p3_agent *a, int *stdin_out,
	void (*order)(void *arg, const struct p3_frame *f, const char *bytes), void *arg)
{
	a->take = order;
	a->arg = arg;
	a->ep = epoll_create1(EPOLL_CLOEXEC);
	a->output_tx = p3_output_tx_create(a->spec.opt.size, &a->conn);
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->ep < 0 || !a->output_tx || a->timer < 0)
		return -errno;
	p3_beat_begin(&a->beat);
	p3_timer_set(a->timer, 1); /* go off now: look for frames that came with GO */
	int rc = 0;
	if (p3_agent_host(a)->first == 0)
		rc = p3_input_rx_open(&a->input_rx, &a->conn, stdin_out);
	else if ((*stdin_out = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
		rc = -errno;
	rc = rc ? rc : p3_watch_input(a->ep, a->timer, KEY_BEAT);
	rc = rc ? rc : p3_watch_input(a->ep, STDIN_FILENO, KEY_IN);
	/* Without events: epoll reports that the other end is closed. */
	rc = rc ? rc : p3_watch(a->ep, EPOLL_CTL_ADD, STDOUT_FILENO, KEY_OUT, 0);
	return rc ? rc
		  : p3_watch_input(a->ep, p3_output_tx_fd(a->output_tx), KEY_OUTPUT_TX);
}

/* Give up the connection to yod, which has ended. */
static void agent_cut(struct p3_agent *a)
{
	if (a->cut)
		return;
	a->cut = true;
	p3_beat_end(&a->beat);
	epoll_ctl(a->ep, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
	epoll_ctl(a->ep, EPOLL_CTL_DEL, STDOUT_FILENO, NULL);
	a->take(a->arg, NULL, NULL);
}

static void agent_take_frame(
	struct p3_agent *a, const struct p3_frame *f, const char *bytes)
{
	if (f->op == P3_FRAME_BEAT)
		return;
	if (f->op == P3_FRAME_ROOM && f->value == P3_FRAMES_TRACE)
		agent_add_trace_room(a, f->number);
	else if (f->op == P3_FRAME_ROOM)
		p3_output_tx_room(a->output_tx, f->node, f->value, f->number);
	else if (f->op == P3_FRAME_NO_OUTPUT)
		p3_output_tx_drop(a->output_tx, f->node, f->value);
	else if (f->op == P3_FRAME_INPUT)
		(void)p3_input_rx_take(&a->input_rx, bytes, f->len);
	else
		a->take(a->arg, f, bytes);
}

static void agent_take_frames(struct p3_agent *a)
{
	struct p3_frame f;
	const char *bytes;
	int rc = 0;
	while (!a->cut && !(rc = p3_frames_next(&a->conn, &f, &bytes)))
		agent_take_frame(a, &f, bytes);
	if (rc == -EPROTO)
		agent_say_garbage(a);
	if (rc && rc != -EAGAIN)
		agent_cut(a);
}

static void agent_receive(struct p3_agent *a)
{
	int rc = p3_frames_fill(&a->conn);
	if (!rc)
		p3_beat_heard(&a->beat);
	agent_take_frames(a);
	if (rc && rc != -EAGAIN)
		agent_cut(a);
}

static void agent_on_event(struct p3_agent *a, enum key key, uint32_t events)
{
	switch (key) {
	case KEY_IN:
		if (!a->cut)
			agent_receive(a);
		return;
	case KEY_OUT:
		if (events & EPOLLERR)
			agent_cut(a);
		return; /* p3_agent_step() sends */
	case KEY_OUTPUT_TX:
		p3_output_tx_step(a->output_tx);
		return;
	case KEY_INPUT_RX:
		p3_input_rx_step(&a->input_rx);
		return;
	case KEY_BEAT:
		(void)p3_timer_passed(a->timer);
		agent_take_frames(a);
		if (p3_beat_is_lost(&a->beat))
			agent_cut(a);
		else if (p3_beat_is_due(&a->beat))
			p3_frames_send(
				&a->conn, (struct p3_frame){.op = P3_FRAME_BEAT}, NULL);
		p3_timer_set(a->timer, p3_beat_at(&a->beat));
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
		agent_on_event(a, (enum key)ev[k].data.u32, ev[k].events);
	if (!a->cut && p3_frames_flush(&a->conn))
		agent_cut(a);
	agent_set_watches(a);
}

int p3_agent_add(struct p3_agent *a, uint32_t rank, int which, int fd)
{
	return p3_output_tx_add(a->output_tx, rank, which, fd);
}

void p3_agent_ended(struct p3_agent *a, uint32_t rank, int status)
{
	struct p3_frame f = {.op = P3_FRAME_ENDED, .node = rank, .value = status};
	p3_output_tx_ended(a->output_tx, rank);
	p3_agent_tell(a, f, NULL);
}

bool p3_agent_has_output(const struct p3_agent *a)
{
	bool output = a->output_tx && !p3_output_tx_is_done(a->output_tx);
	return !a->cut && (output || p3_backlog_len(&a->trace));
}

void p3_agent_close(struct p3_agent *a)
{
	if (!a->cut)
		agent_send_last(a);
	p3_agent_tell(a, (struct p3_frame){.op = P3_FRAME_DONE}, NULL);
	if (!a->cut)
		agent_send_last(a);
	p3_say_by(NULL, NULL);
	p3_backlog_free(&a->trace);
	p3_output_tx_destroy(a->output_tx);
	p3_input_rx_close(&a->input_rx);
	p3_frames_close(&a->conn);
	close(a->timer);
	close(a->ep);
}
