/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's connection to yod. */
#include "launcher/yod/remote.h"
#include "shm/domain.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAST_MS 10000 /* time for yod to take some of the last frames */

/* ---- traces ---- */

static void agent_send_trace(struct p3_agent *a)
{
	size_t n;
	while ((n = p3_backlog_len(&a->trace)) && a->trace_room) {
		n = n < a->trace_room ? n : a->trace_room;
		p3_frames_send(&a->conn,
			(struct p3_frame){.op = P3_FRAME_TRACE, .len = n},
			p3_backlog_bytes(&a->trace));
		p3_backlog_take(&a->trace, n);
		a->trace_room -= n;
	}
}

static void agent_add_trace_room(struct p3_agent *a, uint64_t n)
{
	if (n <= P3_STREAM_ROOM - a->trace_room)
		a->trace_room += n;
	agent_send_trace(a);
}

ssize_t p3_agent_trace(struct p3_agent *a, const void *bytes, size_t len)
{
	bool added = p3_backlog_add(&a->trace, bytes, len);
	agent_send_trace(a);
	return added ? (ssize_t)len : -1;
}

/* Send a line of this process to yod, which prints it. */
static void agent_send_line(void *arg, const char *line, size_t len)
{
	struct p3_agent *a = arg;
	p3_frames_send(&a->conn, (struct p3_frame){.op = P3_FRAME_SAY, .len = len}, line);
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

/* Send all frames, as long as yod takes any.  Of the frames that come meanwhile, only
 * those that give room for traces matter. */
static void agent_send_last(struct p3_agent *a)
{
	struct p3_frames *c = &a->conn;
	int64_t now = p3_now_ms(), end = now + LAST_MS;
	size_t before = SIZE_MAX, owes;
	int rc = p3_frames_are_open(c) ? p3_frames_flush(c) : -EPIPE;
	for (; !rc && now < end; now = p3_now_ms()) {
		owes = p3_backlog_len(&c->owed) + p3_backlog_len(&a->trace);
		if (!owes)
			return;
		struct pollfd p[2] = {{.fd = c->in, .events = POLLIN},
			{.fd = c->out, .events = p3_backlog_len(&c->owed) ? POLLOUT : 0}};
		struct p3_frame f;
		const char *bytes;
		end = owes < before ? now + LAST_MS : end;
		before = owes;
		if (poll(p, 2, (int)(end - now)) > 0 && (p[1].revents & POLLERR))
			return;
		rc = p3_frames_fill(c);
		while (!p3_frames_next(c, &f, &bytes))
			if (f.op == P3_FRAME_ROOM && f.value == P3_FRAMES_TRACE)
				agent_add_trace_room(a, f.number);
		rc = rc == -EAGAIN ? p3_frames_flush(c) : rc;
	}
}

void p3_agent_refuse(struct p3_agent *a, int status)
{
	p3_frames_tell(&a->conn, P3_FRAME_REFUSED, 0, status);
	agent_send_last(a);
}

static void agent_say_no_yod(const struct p3_agent *a, int rc)
{
	/* With another version, yod says it, when it has read HELLO. */
	if (rc == -EPROTONOSUPPORT || rc == -ECONNRESET)
		return;
	if (rc == -ETIMEDOUT)
		p3_say("--agent: standard input has %s for %g s (PTL3_FAR_TIMEOUT); "
		       "expected a yod's order: see that yod and the remote shell have "
		       "not been stopped, and that the network works",
			p3_backlog_len(&a->conn.got) ? "part of a frame, and then nothing"
						     : "nothing",
			(double)a->conn.beat.timeout_ms / 1000);
	else
		p3_say("--agent: standard input has no order of a yod; expected that yod "
		       "--hosts starts the agent");
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
	a->host = &o->opt.hosts.host[o->host];
	a->domain = o->opt.hosts.n > 1 ? a->name : NULL;
	p3_say_on(a->host->name);
	snprintf(a->name, sizeof a->name, "yod-%u-%.12s-%u", o->jid, o->tag, o->host);
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
	struct p3_frame f = {.op = P3_FRAME_HELLO, .number = P3_LAYOUT_WORD};
	const char *bytes;
	*status_out = P3_STATUS_YOD;
	if (p3_frames_open(&a->conn, STDIN_FILENO, STDOUT_FILENO))
		return NULL;
	a->input.to.fd = -1;
	a->trace_room = P3_STREAM_ROOM;
	p3_frames_send(&a->conn, f, NULL);
	p3_frames_begin_beat(&a->conn);
	/* While the order is under way, tell yod nothing: yod, too, is to notice that it
	 * does not arrive. */
	int rc = p3_frames_await(&a->conn, P3_NEVER, false, &f, &bytes);
	if (!rc && f.op == P3_FRAME_ORDER && (a->bytes = malloc(f.len + 1)))
		memcpy(a->bytes, bytes, f.len); /* it stays in memory for ever */
	if (!a->bytes || !p3_spec_unpack(a->bytes, f.len, &a->spec)) {
		agent_say_no_yod(a, rc);
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
	p3_frames_tell(&a->conn, P3_FRAME_READY, 0, 0);
	p3_frames_begin_beat(&a->conn);
	int rc = p3_frames_await(&a->conn, P3_NEVER, true, &f, &bytes);
	if (rc == -EPROTO)
		agent_say_garbage(a);
	return !rc && f.op == P3_FRAME_GO;
}

void p3_agent_clean(const struct p3_agent *a)
{
	struct p3_domain d;
	struct p3_domain_why why;
	if (a->domain && !p3_domain_open(&d, P3_DOMAIN_BASE, a->domain, &why))
		p3_domain_leave(&d);
}

/* ---- the loop ---- */

static void agent_on_frames(void *arg, int why)
{
	struct p3_agent *a = arg;
	struct p3_frame f;
	const char *bytes;
	int rc;
	while (!(rc = p3_frames_next(&a->conn, &f, &bytes))) {
		uint32_t i = 2 * f.node + (f.value == 1);
		bool stream = f.value == 0 || f.value == 1;
		if (f.op == P3_FRAME_ROOM && f.value == P3_FRAMES_TRACE)
			agent_add_trace_room(a, f.number);
		else if (f.op == P3_FRAME_ROOM && stream)
			(void)p3_taps_room(a->taps, i, f.number);
		else if (f.op == P3_FRAME_NO_OUTPUT && stream)
			p3_taps_close(a->taps, i);
		else if (f.op == P3_FRAME_INPUT)
			(void)p3_drain_take(&a->input, bytes, f.len);
		else
			a->take(a->arg, &f, bytes);
	}
	if (rc == -EPROTO)
		agent_say_garbage(a);
	if (!why && rc == -EAGAIN)
		return;
	p3_frames_close(&a->conn); /* yod has ended */
	a->take(a->arg, NULL, NULL);
}

/* ---- output and input ---- */

static bool agent_take_output(void *arg, uint32_t i, const char *bytes, size_t len)
{
	struct p3_agent *a = arg;
	struct p3_frame f = {.op = len ? P3_FRAME_OUTPUT : P3_FRAME_OUTPUT_END,
		.node = i / 2,
		.value = (int32_t)(i % 2),
		.len = len};
	p3_frames_send(&a->conn, f, bytes);
	return true;
}

static void agent_idle_output(void *arg, uint32_t i)
{
	struct p3_agent *a = arg;
	p3_frames_tell(&a->conn, P3_FRAME_IDLE, i / 2, (int32_t)(i % 2));
}

static void agent_moved_input(struct p3_drain *d, size_t n, int err)
{
	struct p3_agent *a = d->arg;
	struct p3_frame f = {.op = err ? P3_FRAME_NO_INPUT : P3_FRAME_ROOM, .number = n};
	p3_frames_send(&a->conn, f, NULL);
	if (err)
		p3_drain_close(d);
}

int p3_agent_open(struct p3_agent *a, struct p3_loop *loop, struct p3_taps **taps_out,
	int *stdin_out,
	void (*order)(void *arg, const struct p3_frame *f, const char *bytes), void *arg)
{
	struct p3_taps_conf conf = {.n = 2 * a->spec.opt.size,
		.take = agent_take_output,
		.idle = agent_idle_output,
		.arg = a};
	int rc = 0, ends[2];
	a->take = order;
	a->arg = arg;
	*taps_out = a->taps = p3_taps_create(loop, &conf);
	if (!a->taps)
		return -ENOMEM;
	a->input.moved = agent_moved_input;
	a->input.arg = a;
	if (a->host->first)
		*stdin_out = open("/dev/null", O_RDONLY | O_CLOEXEC);
	else
		*stdin_out = pipe2(ends, O_CLOEXEC) ? -1 : ends[0];
	if (*stdin_out < 0)
		rc = -errno;
	else if (!a->host->first)
		rc = p3_drain_open(&a->input, loop, ends[1]);
	p3_frames_begin_beat(&a->conn);
	return rc ? rc : p3_frames_attach(&a->conn, loop, agent_on_frames, a);
}

bool p3_agent_has_output(const struct p3_agent *a)
{
	bool output = a->taps && !p3_taps_are_done(a->taps);
	return p3_frames_are_open(&a->conn) && (output || p3_backlog_len(&a->trace));
}

void p3_agent_close(struct p3_agent *a)
{
	agent_send_last(a);
	p3_frames_tell(&a->conn, P3_FRAME_DONE, 0, 0);
	agent_send_last(a);
	p3_say_by(NULL, NULL);
	p3_backlog_free(&a->trace);
	p3_drain_close(&a->input);
	p3_frames_close(&a->conn);
}
