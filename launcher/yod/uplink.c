/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections to agents: their frames, and agents that are lost. */
#include "launcher/clock.h"
#include "launcher/yod/agentsin.h"
#include "launcher/yod/outlets.h"
#include "launcher/yod/reap.h"
#include "launcher/yod/run.h"
#include "launcher/yod/say.h"
#include "launcher/yod/stats.h"
#include "shm/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#define EOF_MS 1000 /* from the end of a remote shell's output to that of the shell */

static const char *name_of(const struct p3_agents *a, uint32_t host)
{
	return a->hosts->host[host].name;
}

void p3_agents_decide(struct p3_agents *a, int status)
{
	if (a->decided)
		return;
	a->decided = true;
	a->status = status;
}

/* ---- the end of the job ---- */

void p3_agents_end(struct p3_agents *a, bool now)
{
	enum p3_frame_op op = now ? P3_FRAME_KILL : P3_FRAME_END;
	int64_t slow_ms = P3_AGENTS_SLOW_MS + (now ? 0 : a->opt->kill_after_ms);
	if (a->stage == P3_AGENTS_GOING || now)
		a->stage_at = p3_now_ms() + (a->go_sent ? slow_ms : P3_AGENTS_SHELL_MS);
	a->stage = P3_AGENTS_ENDING;
	if (a->go_sent)
		p3_agents_tell_all(a, (struct p3_frame){.op = op}, NULL);
	for (uint32_t h = 0; h < a->hosts->n && !a->go_sent; h++)
		p3_uplink_cut(a, h);
}

static void fail(struct p3_agents *a, int status)
{
	p3_agents_decide(a, status);
	p3_agents_end(a, false);
}

/* ---- starting ---- */

static int watch(struct p3_agents *a, int op, int fd, uint32_t host, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u64 = P3_AGENTS_KEY + host};
	return epoll_ctl(a->ep, op, fd, &ev) ? -errno : 0;
}

static int send_order(struct p3_uplink *l, const struct p3_order *order)
{
	size_t len;
	char *bytes = p3_order_pack(order, &len);
	if (!bytes)
		return -ENOMEM;
	p3_frames_send(
		&l->conn, (struct p3_frame){.op = P3_FRAME_ORDER, .len = len}, bytes);
	free(bytes);
	return 0;
}

static int start(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	int rc = p3_rsh_start(&a->rsh, name_of(a, host), a->self, &l->rsh);
	if (rc)
		return rc;
	l->closed = l->exited = false;
	l->state = P3_UPLINK_STARTING;
	l->greet_at = p3_now_ms() + P3_AGENTS_GREET_MS;
	rc = p3_frames_open(&l->conn, l->rsh.from, l->rsh.to);
	rc = rc ? rc : watch(a, EPOLL_CTL_ADD, l->rsh.from, host, EPOLLIN);
	a->order.host = host;
	rc = rc ? rc : send_order(l, &a->order);
	if (!rc)
		p3_uplink_flush(a, host);
	return rc;
}

/* Return true while the host is one of those that start.  One that has been named waits
 * for a user or a network, and holds up no other. */
static bool is_starting(const struct p3_uplink *l)
{
	return l->state == P3_UPLINK_STARTING && !l->closed && l->greet_at != P3_NEVER;
}

int p3_uplink_start_more(struct p3_agents *a)
{
	uint32_t n = 0;
	int rc = 0;
	for (uint32_t h = 0; h < a->begun_n; h++)
		n += is_starting(&a->link[h]);
	while (!rc && a->stage == P3_AGENTS_GOING && a->begun_n < a->hosts->n &&
		n < P3_AGENTS_STARTS) {
		uint32_t host = a->begun_n++;
		rc = start(a, host);
		if (rc)
			p3_say("host %s: '%s' cannot be run: %s; expected a program that "
			       "runs a command line on a host (--rsh, PTL3_RSH)",
				name_of(a, host), a->rsh.argv[0], strerror(-rc));
		n++;
	}
	return rc;
}

/* ---- ranks ---- */

static void on_ended(struct p3_agents *a, uint32_t host, uint32_t rank, int status)
{
	char how[100];
	a->rank[rank].ended = true;
	if (!status || a->stage != P3_AGENTS_GOING)
		return;
	p3_agents_decide(
		a, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	p3_reap_describe(how, sizeof how, status);
	p3_say("rank %u (pid %d on %s) %s; %s", rank, (int)a->rank[rank].pid,
		name_of(a, host), how,
		a->opt->keep_going ? "the others go on" : "ending the job");
	if (!a->opt->keep_going)
		p3_agents_end(a, false);
}

/* ---- frames ---- */

/* Start the nodes when all agents are ready. */
static void on_ready(struct p3_agents *a, uint32_t host)
{
	a->link[host].state = P3_UPLINK_READY;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (a->link[h].state != P3_UPLINK_READY)
			return;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		a->link[h].state = P3_UPLINK_RUNS;
	a->go_sent = true;
	p3_agents_tell_all(a, (struct p3_frame){.op = P3_FRAME_GO}, NULL);
	p3_agents_pass_signals(a);
}

/* Take a frame about a rank.  Return false if it breaks the rules. */
static bool take_of_rank(
	struct p3_agents *a, uint32_t host, const struct p3_frame *f, const char *bytes)
{
	const struct p3_host *here = &a->hosts->host[host];
	struct p3_agents_rank *rank = &a->rank[f->node];
	if (f->node - here->first >= here->size || !a->go_sent)
		return false;
	switch (f->op) {
	case P3_FRAME_STARTED:
		if (rank->started)
			return false;
		rank->pid = f->value;
		rank->started = true;
		return true;
	case P3_FRAME_OUTPUT:
		return (f->value == 0 || f->value == 1) &&
		       p3_outlets_take(a->outlets, f->node, f->value, bytes, f->len);
	case P3_FRAME_IDLE:
		if (f->value == 0 || f->value == 1)
			p3_outlets_idle(a->outlets, f->node, f->value);
		return f->value == 0 || f->value == 1;
	case P3_FRAME_OUTPUT_END:
		if (f->value == 0 || f->value == 1)
			p3_outlets_end(a->outlets, f->node, f->value);
		return f->value == 0 || f->value == 1;
	case P3_FRAME_ENDED:
		if (!rank->started || rank->ended)
			return false;
		on_ended(a, host, f->node, f->value);
		return true;
	case P3_FRAME_BROKEN:
		p3_agents_on_broken(a, f->node);
		return true;
	case P3_FRAME_GONE:
		p3_agents_on_gone(a, f->node);
		return true;
	case P3_FRAME_CARD:
		return p3_agents_on_card(a, f->node, bytes, f->len);
	case P3_FRAME_STATS:
		if (a->stats)
			p3_stats_take(a->stats, f->node, bytes, f->len);
		return true;
	}
	return false;
}

static bool take_of_host(
	struct p3_agents *a, uint32_t host, const struct p3_frame *f, const char *bytes)
{
	switch (f->op) {
	case P3_FRAME_SAY:
		p3_say_lines(bytes, f->len);
		return true;
	case P3_FRAME_REFUSED:
		a->link[host].state = P3_UPLINK_DONE;
		fail(a, f->value);
		return true;
	case P3_FRAME_READY:
		if (a->link[host].state != P3_UPLINK_GREETED)
			return false;
		on_ready(a, host);
		return true;
	case P3_FRAME_BARRIER:
		p3_agents_on_barrier(a, host, f->number);
		return true;
	case P3_FRAME_BEAT:
		return true;
	case P3_FRAME_TRACE:
		return p3_agents_on_trace(a, host, bytes, f->len);
	case P3_FRAME_REPORT:
		p3_inquiry_take(a->inquiry, host, f, bytes);
		return true;
	case P3_FRAME_ROOM:
		a->in_room += f->number;
		return a->in_room <= P3_FRAMES_ROOM;
	case P3_FRAME_NO_INPUT:
		a->in_room = 0;
		a->in_over = true;
		return true;
	case P3_FRAME_DONE:
		if (a->link[host].state != P3_UPLINK_RUNS &&
			a->link[host].state != P3_UPLINK_DONE) /* behind REFUSED */
			return false;
		a->link[host].state = P3_UPLINK_DONE;
		a->link[host].end_at = p3_now_ms() + P3_AGENTS_SHELL_MS;
		return true;
	}
	return take_of_rank(a, host, f, bytes);
}

/* ---- agents that break the protocol ---- */

/* Close the connection of an agent and end the job; a line has said why. */
static void cut_off(struct p3_agents *a, uint32_t host)
{
	a->link[host].state = P3_UPLINK_LOST;
	p3_uplink_cut(a, host);
	fail(a, P3_STATUS_YOD);
}

static void on_other_version(struct p3_agents *a, uint32_t host, uint32_t magic)
{
	p3_say("host %s: the agent speaks version %u, this yod version %u; expected "
	       "the same libportals on all hosts: install it there as %s",
		name_of(a, host), magic & 0xff, P3_FRAMES_MAGIC & 0xff, a->self);
	cut_off(a, host);
}

static void on_garbage(struct p3_agents *a, uint32_t host)
{
	char text[60];
	p3_frames_text(&a->link[host].conn, text, sizeof text);
	p3_say("host %s: '%s' is no frame of an agent of this version; expected nothing "
	       "else on its standard output: see that the remote shell and the shell's "
	       "start files print nothing, as in %s %s true",
		name_of(a, host), text, a->rsh.argv[0], name_of(a, host));
	cut_off(a, host);
}

static void on_hello(struct p3_agents *a, uint32_t host, const struct p3_frame *f)
{
	a->link[host].state = P3_UPLINK_GREETED;
	a->link[host].greet_at = P3_NEVER;
	if (f->op == P3_FRAME_HELLO && f->number == P3_LAYOUT_WORD)
		return;
	p3_say("host %s: layout %016" PRIx64 " of its yod is not %016" PRIx64
	       ", that of this one; install the same libportals there as %s",
		name_of(a, host), f->number, (uint64_t)P3_LAYOUT_WORD, a->self);
	cut_off(a, host);
}

static void on_breach(struct p3_agents *a, uint32_t host, uint32_t op)
{
	p3_say("host %s: its agent sends frame %u out of turn; cut off (install "
	       "the same libportals there)",
		name_of(a, host), op);
	cut_off(a, host);
}

static void take_frame(
	struct p3_agents *a, uint32_t host, const struct p3_frame *f, const char *bytes)
{
	if (a->link[host].state == P3_UPLINK_STARTING)
		on_hello(a, host, f);
	else if (!take_of_host(a, host, f, bytes))
		on_breach(a, host, f->op);
}

void p3_uplink_see_wait(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	if (l->greet_at > p3_now_ms())
		return;
	l->greet_at = P3_NEVER;
	if (l->state == P3_UPLINK_STARTING && !l->over && !l->begun)
		p3_say("host %s: %s has not started an agent for %d s; yod waits, ^C "
		       "ends it",
			name_of(a, host), a->rsh.argv[0], P3_AGENTS_GREET_MS / 1000);
}

/* ---- connections ---- */

/* Note that bytes have come.  The first ones begin the time in which an agent must not be
 * silent.  Before them, a user may be asked for a password. */
static void on_bytes(struct p3_uplink *l)
{
	if (l->begun)
		p3_beat_heard(&l->beat);
	else
		p3_beat_begin(&l->beat);
	l->begun = true;
}

void p3_uplink_cut(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	if (l->closed)
		return;
	l->closed = true;
	l->over_at = p3_now_ms() + EOF_MS;
	p3_beat_end(&l->beat);
	p3_inquiry_lose(a->inquiry, host);
	epoll_ctl(a->ep, EPOLL_CTL_DEL, l->rsh.from, NULL);
	close(l->rsh.from);
	close(l->rsh.to);
	p3_frames_close(&l->conn);
}

void p3_uplink_beat(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	/* an ending agent has its own time: on_slow() in agents.c */
	if (p3_beat_is_lost(&l->beat) && a->stage == P3_AGENTS_GOING) {
		l->silent_ms = l->beat.timeout_ms;
		l->in_frame = p3_frames_has_part(&l->conn);
		kill(-l->rsh.pid, SIGKILL); /* it would wait for the network */
		p3_uplink_cut(a, host);
	} else if (p3_beat_is_due(&l->beat)) {
		p3_frames_send(&l->conn, (struct p3_frame){.op = P3_FRAME_BEAT}, NULL);
	}
}

void p3_uplink_flush(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	if (l->closed)
		return;
	if (p3_frames_flush(&l->conn) == -ENOMEM) {
		p3_uplink_cut(a, host);
		return;
	} /* any other error also shows as an end of file */
	bool owes = p3_frames_owes(&l->conn);
	if (owes != l->writes)
		watch(a, owes ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, l->rsh.to, host, EPOLLOUT);
	l->writes = owes;
}

void p3_uplink_receive(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	struct p3_frame f;
	const char *bytes;
	int rc = l->closed ? 0 : p3_frames_fill(&l->conn), rc2 = 0;
	if (!rc && !l->closed)
		on_bytes(l);
	while (!l->closed && !(rc2 = p3_frames_next(&l->conn, &f, &bytes)))
		take_frame(a, host, &f, bytes);
	if (l->closed)
		return;
	if (rc2 == -EPROTONOSUPPORT)
		on_other_version(a, host, f.magic);
	else if (rc2 == -EPROTO)
		on_garbage(a, host);
	else if (rc && rc != -EAGAIN)
		p3_uplink_cut(a, host);
}

void p3_uplink_exited(struct p3_agents *a, uint32_t host, int status)
{
	struct p3_uplink *l = &a->link[host];
	l->exited = true;
	l->status = status;
	if (!l->closed)
		l->over_at = p3_now_ms() + EOF_MS;
}

/* ---- lost agents ---- */

static void describe_shell_end(const struct p3_uplink *l, char *text, size_t len)
{
	if (l->silent_ms)
		snprintf(text, len, "brings %s for %lld s (PTL3_FAR_TIMEOUT)",
			l->in_frame ? "part of a frame, and then nothing" : "no frame",
			(long long)l->silent_ms / 1000);
	else if (l->exited)
		p3_reap_describe(text, len, l->status);
	else
		snprintf(text, len, "has closed the connection");
}

static void say_no_agent(struct p3_agents *a, uint32_t host, const char *how)
{
	p3_say("host %s: %s %s before an agent of yod has answered; expected that "
	       "this works: %s %s %s --version",
		name_of(a, host), a->rsh.argv[0], how, a->rsh.argv[0], name_of(a, host),
		a->self);
}

static void say_lost(struct p3_agents *a, uint32_t host, const char *how)
{
	const struct p3_host *h = &a->hosts->host[host];
	p3_say("host %s is lost, with ranks %u-%u: %s %s; %s", h->name, h->first,
		h->first + h->size - 1, a->rsh.argv[0], how,
		a->opt->keep_going ? "the others go on" : "ending the job");
}

/* Count the ranks of a lost host as killed. */
static void count_as_killed(struct p3_agents *a, uint32_t host)
{
	const struct p3_host *h = &a->hosts->host[host];
	for (uint32_t i = h->first; i < h->first + h->size; i++)
		p3_agents_on_gone(a, i);
}

/* No more output comes from the host. */
static void end_streams(struct p3_agents *a, uint32_t host)
{
	const struct p3_host *h = &a->hosts->host[host];
	for (uint32_t i = 2 * h->first; a->outlets && i < 2 * (h->first + h->size); i++)
		p3_outlets_end(a->outlets, i / 2, (int)(i % 2));
}

static void on_lost(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	bool early = l->state <= P3_UPLINK_STARTING;
	bool went = l->state == P3_UPLINK_RUNS;
	char how[100];
	l->state = P3_UPLINK_LOST;
	l->end_at = p3_now_ms() + P3_AGENTS_SHELL_MS;
	count_as_killed(a, host);
	describe_shell_end(l, how, sizeof how);
	if (a->stage == P3_AGENTS_GOING && early)
		say_no_agent(a, host, how);
	else if (a->stage == P3_AGENTS_GOING)
		say_lost(a, host, how);
	if (a->stage == P3_AGENTS_GOING && (!went || !a->opt->keep_going))
		fail(a, went ? 128 + SIGKILL : P3_STATUS_YOD);
	p3_agents_decide(a, 128 + SIGKILL);
}

/* End a remote shell that goes on without its agent, as ssh does that serves other
 * connections. */
static void end_shell(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	l->end_at = P3_NEVER;
	kill(-l->rsh.pid, SIGKILL);
	p3_uplink_cut(a, host);
}

/* The remote shell and its output end at almost the same time, in any order.  After the
 * first of the two, wait a little for the second. */
bool p3_uplink_is_over(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	bool late = l->over_at <= p3_now_ms();
	if (l->state == P3_UPLINK_UNBORN && a->stage == P3_AGENTS_GOING)
		return false;
	if (!l->exited && l->end_at <= p3_now_ms())
		end_shell(a, host);
	if (l->exited && late)
		p3_uplink_cut(a, host);
	if (!l->closed || (!l->exited && !late))
		return false;
	if (!l->over)
		end_streams(a, host);
	l->over = true;
	if (l->state != P3_UPLINK_DONE && l->state != P3_UPLINK_LOST)
		on_lost(a, host);
	return l->exited;
}
