/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job on several hosts: remote shells, the connections of agents and their frames,
 * agents that are lost; the loop, signals, the end.
 */
#include "launcher/yod/remote.h"
#include "shm/conf.h"
#include "shm/job.h"
#include "shm/layout.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define EOF_MS   1000  /* from the end of a remote shell's output to its own end */
#define LOOK_MS  1000  /* between looks at ending agents */
#define SLOW_MS  12000 /* more than an agent needs to end, besides --kill-after */
#define SHELL_MS 2000  /* for the remote shell of an agent that has no nodes */
#define GREET_MS 10000 /* for an agent to answer, until a line names its host */
/* Remote shells that start at a time: more would find a server that refuses them
 * (MaxStartups of sshd on a gateway), and no CPU. */
#define STARTS      32u
#define FDS_OF_RANK 2
#define FDS_OF_HOST 4
#define FDS         64
#define TAG_LEN     12

/*
 * rsh - the remote shell that starts an agent: --rsh, PTL3_RSH
 *
 *	ssh HOST "exec '/usr/bin/yod' --agent"
 *
 * The program may have arguments of its own, as in --rsh 'ssh -q'.  The command line is
 * one argument, as ssh takes it.  The program inherits yod's standard error, has a
 * process group of its own, and cannot ask at the terminal: keys or tickets must do.
 */

/* Return the command line, with the path quoted for any shell: a quote becomes '\''. */
static char *rsh_command_line(const char *yod)
{
	size_t room = 4 * strlen(yod) + sizeof "exec '' " P3_AGENT_OPTION;
	char *line = malloc(room), *at = line;
	if (!line)
		return NULL;
	at = stpcpy(at, "exec '");
	for (; *yod; yod++)
		if (*yod == '\'')
			at = stpcpy(at, "'\\''");
		else
			*at++ = *yod;
	stpcpy(at, "' " P3_AGENT_OPTION);
	return line;
}

/* Split the program's words.  Return 0, or -errno after a line. */
static int rsh_parse(struct p3_agents *a, const char *text)
{
	uint32_t line = 1;
	int rc = -ENOMEM;
	a->rsh_text = strdup(text);
	a->rsh_command = rsh_command_line(a->self);
	struct p3_words words = {a->rsh_text, 1};
	if (a->rsh_text && a->rsh_command)
		rc = p3_words_next(&words, 0, &a->rsh, &a->rsh_n, &line);
	size_t room = (size_t)a->rsh_n + 3;
	char **more = rc ? NULL : realloc(a->rsh, room * sizeof *more);
	if (more) {
		more[a->rsh_n + 1] = a->rsh_command;
		more[a->rsh_n + 2] = NULL;
		a->rsh = more;
		return 0;
	}
	p3_say("--rsh: '%s' is no program; expected one that is called with a host and a "
	       "command line, and its arguments, as in --rsh 'ssh -q'",
		text);
	return rc ? rc : -ENOMEM;
}

/* ---- the end of the job ---- */

static void uplink_cut(struct p3_uplink *l);

/* Enter a stage in which agents have so much time to end. */
static void agents_enter(struct p3_agents *a, enum p3_stage stage, int64_t ms)
{
	a->slow_ms = ms;
	p3_control_enter(&a->c, stage, LOOK_MS);
}

/* End the job: as after a failure, or now. */
static void agents_end(void *arg, bool now)
{
	struct p3_agents *a = arg;
	enum p3_frame_op op = now ? P3_FRAME_KILL : P3_FRAME_END;
	int64_t slow_ms = SLOW_MS + (now ? 0 : a->opt->kill_after_ms);
	if (a->c.stage == P3_GOING || now)
		agents_enter(
			a, now ? P3_KILLED : P3_TERMED, a->go_sent ? slow_ms : SHELL_MS);
	if (a->go_sent)
		p3_agents_tell_all(a, (struct p3_frame){.op = op}, NULL);
	for (uint32_t h = 0; h < a->hosts->n && !a->go_sent; h++)
		uplink_cut(&a->link[h]);
}

static void agents_fail(struct p3_agents *a, int status, bool now)
{
	p3_control_decide(&a->c, status);
	agents_end(a, now);
}

/* ---- starting ---- */

static void uplink_on_frames(void *arg, int rc);

/* Start the agent of a host, and send it its order.  Return 0 or -errno. */
static int uplink_start(struct p3_agents *a, struct p3_uplink *l)
{
	a->rsh[a->rsh_n] = (char *)(uintptr_t)l->host->name;
	int rc = p3_spawn_tool((const char *const *)a->rsh, -1, &l->rsh);
	if (rc)
		return rc;
	l->exited = false;
	l->state = P3_UPLINK_STARTING;
	l->greet_at = p3_now_ms() + GREET_MS;
	rc = p3_frames_open(&l->conn, l->rsh.from, l->rsh.to);
	rc = rc ? rc : p3_frames_attach(&l->conn, &a->c.loop, uplink_on_frames, l);
	a->spec.host = (uint32_t)(l - a->link);
	struct p3_frame f = {.op = P3_FRAME_ORDER};
	char *order = rc ? NULL : p3_spec_pack(&a->spec, &f.len);
	if (!rc && !order)
		return -ENOMEM;
	if (order)
		p3_frames_send(&l->conn, f, order);
	free(order);
	return rc;
}

/* Start the agents of further hosts, STARTS at a time, and send them their
 * orders.  Return 0 or -errno after a line. */
static int uplink_start_more(struct p3_agents *a)
{
	uint32_t n = 0;
	int rc = 0;
	/* Count those that start.  One that has been named waits for a user or a network,
	 * and holds up no other. */
	for (uint32_t h = 0; h < a->begun_n; h++)
		n += a->link[h].state == P3_UPLINK_STARTING &&
		     p3_frames_are_open(&a->link[h].conn) &&
		     a->link[h].greet_at != P3_NEVER;
	while (!rc && a->c.stage == P3_GOING && a->begun_n < a->hosts->n && n < STARTS) {
		struct p3_uplink *l = &a->link[a->begun_n++];
		rc = uplink_start(a, l);
		if (rc)
			p3_say("host %s: '%s' cannot be run: %s; expected a program that "
			       "runs a command line on a host (--rsh, PTL3_RSH)",
				l->host->name, a->rsh[0], strerror(-rc));
		n++;
	}
	return rc;
}

/* ---- signals ---- */

static void agents_signal(void *arg, int sig)
{
	struct p3_agents *a = arg;
	if (a->go_sent) {
		p3_agents_tell_all(
			a, (struct p3_frame){.op = P3_FRAME_SIGNAL, .value = sig}, NULL);
		return;
	}
	/* Keep it for nodes that are yet to start.  A stop and its end undo each
	 * other. */
	if (sig == SIGTSTP)
		a->early_signals &= ~(1ull << SIGCONT);
	if (sig == SIGCONT)
		a->early_signals &= ~(1ull << SIGTSTP);
	a->early_signals |= 1ull << sig;
}

/* ---- frames ---- */

/* Append what has come of a trace, and give room for as much.  Return false if it is
 * more than there was room for. */
static bool uplink_take_trace(struct p3_uplink *l, const char *bytes, size_t len)
{
	struct p3_frame f = {
		.op = P3_FRAME_ROOM, .value = P3_FRAMES_TRACE, .number = len};
	if (len > P3_STREAM_ROOM)
		return false;
	if (l->trace)
		p3_tracefile_put(l->trace, bytes, len);
	p3_frames_send(&l->conn, f, NULL);
	return true;
}

/* Start the nodes when all agents are ready. */
static void uplink_on_ready(struct p3_uplink *l)
{
	struct p3_agents *a = l->agents;
	l->state = P3_UPLINK_READY;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (a->link[h].state != P3_UPLINK_READY)
			return;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		a->link[h].state = P3_UPLINK_RUNS;
	a->go_sent = true;
	p3_agents_tell_all(a, (struct p3_frame){.op = P3_FRAME_GO}, NULL);
	p3_forward_begin_input(a);
	for (int sig = 1; sig < 64; sig++)
		if (a->early_signals >> sig & 1)
			agents_signal(a, sig);
}

/* Take a frame about a rank.  Return false if it breaks the rules. */
static bool uplink_take_of_rank(
	struct p3_uplink *l, const struct p3_frame *f, const char *bytes)
{
	struct p3_agents *a = l->agents;
	bool stream = f->value == 0 || f->value == 1;
	uint32_t i = 2 * f->node + (f->value == 1);
	if (f->node - l->host->first >= l->host->size || !a->go_sent)
		return false;
	struct p3_agents_rank *rank = &a->rank[f->node];
	switch (f->op) {
	case P3_FRAME_STARTED:
		if (rank->pid)
			return false;
		rank->pid = f->value;
		return true;
	case P3_FRAME_OUTPUT:
		return stream && (!f->len || p3_forward_take(a, i, bytes, f->len));
	case P3_FRAME_IDLE:
		if (stream && !a->files)
			p3_output_idle(a->c.output, i);
		return stream;
	case P3_FRAME_OUTPUT_END:
		return stream && p3_forward_take(a, i, NULL, 0);
	case P3_FRAME_ENDED:
		if (!rank->pid || rank->ended)
			return false;
		rank->ended = true;
		if (!f->value || a->c.stage != P3_GOING)
			return true;
		p3_control_rank_failed(
			&a->c, f->node, rank->pid, l->host->name, f->value);
		if (!a->opt->keep_going)
			agents_end(a, false);
		return true;
	case P3_FRAME_BROKEN:
		p3_agents_release(a, EPIPE, f->node);
		return true;
	case P3_FRAME_GONE:
		p3_agents_on_gone(a, f->node);
		return true;
	case P3_FRAME_CARD:
		return p3_agents_on_card(a, f->node, bytes, f->len);
	case P3_FRAME_STATS:
		if (a->c.stats)
			p3_stats_take(a->c.stats, f->node, bytes, f->len);
		return true;
	}
	return false;
}

static bool uplink_take_of_host(
	struct p3_uplink *l, const struct p3_frame *f, const char *bytes)
{
	struct p3_agents *a = l->agents;
	switch (f->op) {
	case P3_FRAME_SAY:
		p3_say_lines(bytes, f->len);
		return true;
	case P3_FRAME_REFUSED:
		l->state = P3_UPLINK_DONE;
		agents_fail(a, f->value, false);
		return true;
	case P3_FRAME_READY:
		if (l->state != P3_UPLINK_GREETED)
			return false;
		uplink_on_ready(l);
		return true;
	case P3_FRAME_BARRIER:
		p3_agents_on_barrier(l, f->number, f->node == P3_JOB_NO_RANK);
		return true;
	case P3_FRAME_TRACE:
		return uplink_take_trace(l, bytes, f->len);
	case P3_FRAME_REPORT:
		p3_query_take(a->query, (uint32_t)(l - a->link), f, bytes);
		return true;
	case P3_FRAME_ROOM:
		return p3_taps_room(a->input, 0, f->number);
	case P3_FRAME_NO_INPUT:
		p3_taps_close(a->input, 0);
		return true;
	case P3_FRAME_DONE:
		if (l->state != P3_UPLINK_RUNS &&
			l->state != P3_UPLINK_DONE) /* behind REFUSED */
			return false;
		l->state = P3_UPLINK_DONE;
		l->end_at = p3_now_ms() + SHELL_MS;
		return true;
	}
	return uplink_take_of_rank(l, f, bytes);
}

/* ---- agents that break the protocol ---- */

/* Close the connection of an agent and end the job; a line has said why. */
static void uplink_cut_off(struct p3_uplink *l)
{
	l->state = P3_UPLINK_LOST;
	uplink_cut(l);
	l->end_at = p3_now_ms() + SHELL_MS; /* it may go on without its connection */
	agents_fail(l->agents, P3_STATUS_YOD, false);
}

static void uplink_on_garbage(struct p3_uplink *l)
{
	char text[60];
	p3_frames_text(&l->conn, text, sizeof text);
	p3_say("host %s: '%s' is no frame of an agent of this version; expected nothing "
	       "else on its standard output: see that the remote shell and the shell's "
	       "start files print nothing, as in %s %s true",
		l->host->name, text, l->agents->rsh[0], l->host->name);
	uplink_cut_off(l);
}

static void uplink_on_hello(struct p3_uplink *l, const struct p3_frame *f)
{
	l->state = P3_UPLINK_GREETED;
	l->greet_at = P3_NEVER;
	if (f->op == P3_FRAME_HELLO && f->number == P3_LAYOUT_WORD)
		return;
	p3_say("host %s: layout %016" PRIx64 " of its yod is not %016" PRIx64
	       ", that of this one; install the same libportals there as %s",
		l->host->name, f->number, (uint64_t)P3_LAYOUT_WORD, l->agents->self);
	uplink_cut_off(l);
}

/* Name a host whose agent has not answered, if it is time, and let another one start. */
static void uplink_see_wait(struct p3_uplink *l)
{
	if (l->greet_at > p3_now_ms())
		return;
	l->greet_at = P3_NEVER;
	if (p3_frames_are_open(&l->conn) && !l->begun)
		p3_say("host %s: %s has not started an agent for %d s; yod waits, ^C "
		       "ends it",
			l->host->name, l->agents->rsh[0], GREET_MS / 1000);
}

/* ---- connections ---- */

/* Close the connection: the agent ends its nodes. */
static void uplink_cut(struct p3_uplink *l)
{
	if (!p3_frames_are_open(&l->conn))
		return;
	p3_frames_close(&l->conn);
	close(l->rsh.from);
	close(l->rsh.to);
	l->over_at = p3_now_ms() + EOF_MS;
	p3_query_take(l->agents->query, (uint32_t)(l - l->agents->link), NULL, NULL);
	if (!l->host->first)
		p3_taps_close(l->agents->input, 0);
}

/* Cut off an agent that has been silent for too long. */
static void uplink_on_silence(struct p3_uplink *l)
{
	if (l->agents->c.stage != P3_GOING)
		return; /* an ending agent has its own time: agents_on_slow() */
	l->silent_ms = l->conn.beat.timeout_ms;
	l->in_frame = p3_backlog_len(&l->conn.got);
	if (!l->exited)
		kill(-l->rsh.pid, SIGKILL); /* it would wait for the network */
	uplink_cut(l);
}

static void uplink_on_frames(void *arg, int rc)
{
	struct p3_uplink *l = arg;
	struct p3_frame f;
	const char *bytes;
	int rc2;
	if (rc == -ECONNRESET)
		return; /* this also shows as an end of file */
	if (rc == -ETIMEDOUT) {
		uplink_on_silence(l);
		return;
	}
	/* The first bytes begin the time in which an agent must not be silent.  Before
	 * them, a user may be asked for a password. */
	if (!rc && !l->begun)
		p3_frames_begin_beat(&l->conn);
	l->begun |= !rc;
	while (!(rc2 = p3_frames_next(&l->conn, &f, &bytes))) {
		if (l->state == P3_UPLINK_STARTING)
			uplink_on_hello(l, &f);
		else if (!uplink_take_of_host(l, &f, bytes)) {
			p3_say("host %s: its agent sends frame %u out of turn; cut off "
			       "(install the same libportals there)",
				l->host->name, f.op);
			uplink_cut_off(l);
		}
	}
	if (rc2 == -EPROTONOSUPPORT) {
		p3_say("host %s: the agent speaks version %u, this yod version %u; "
		       "expected the same libportals on all hosts: install it there as "
		       "%s",
			l->host->name, f.magic & 0xff, P3_FRAMES_MAGIC & 0xff,
			l->agents->self);
		uplink_cut_off(l);
	} else if (rc2 == -EPROTO)
		uplink_on_garbage(l);
	else if (rc)
		uplink_cut(l);
}

/* ---- lost agents ---- */

static void uplink_on_lost(struct p3_uplink *l)
{
	bool early = l->state <= P3_UPLINK_STARTING;
	struct p3_agents *a = l->agents;
	bool went = l->state == P3_UPLINK_RUNS, ends = !went || !a->opt->keep_going;
	char how[100];
	const struct p3_host *h = l->host;
	l->state = P3_UPLINK_LOST;
	l->end_at = p3_now_ms() + SHELL_MS;
	for (uint32_t i = h->first; i < h->first + h->size; i++)
		p3_agents_on_gone(a, i); /* they count as killed */
	if (l->silent_ms)
		snprintf(how, sizeof how, "brings %s for %lld s (PTL3_FAR_TIMEOUT)",
			l->in_frame ? "part of a frame, and then nothing" : "no frame",
			(long long)l->silent_ms / 1000);
	else if (l->exited)
		p3_reap_describe(how, sizeof how, l->status);
	else
		snprintf(how, sizeof how, "has closed the connection");
	if (a->c.stage == P3_GOING && early)
		p3_say("host %s: %s %s before an agent of yod has answered; expected "
		       "that this works: %s %s %s --version",
			h->name, a->rsh[0], how, a->rsh[0], h->name, a->self);
	else if (a->c.stage == P3_GOING)
		p3_say("host %s is lost, with ranks %u-%u: %s %s; %s", h->name, h->first,
			h->first + h->size - 1, a->rsh[0], how,
			ends ? "ending the job" : "the others go on");
	if (a->c.stage == P3_GOING && ends)
		agents_fail(a, went ? 128 + SIGKILL : P3_STATUS_YOD, false);
	p3_control_decide(&a->c, 128 + SIGKILL);
}

/* Return true if the remote shell and its connection have ended.  If that is too
 * early, print a line, once.  The remote shell and its output end at almost the same
 * time, in any order.  After the first of the two, wait a little for the second. */
static bool uplink_is_over(struct p3_uplink *l)
{
	struct p3_agents *a = l->agents;
	bool late = l->over_at <= p3_now_ms();
	if (l->state == P3_UPLINK_UNBORN && a->c.stage == P3_GOING)
		return false;
	if (!l->exited && l->end_at <= p3_now_ms()) {
		/* End a remote shell that goes on without its agent, as ssh does that
		 * serves other connections. */
		l->end_at = P3_NEVER;
		kill(-l->rsh.pid, SIGKILL);
		uplink_cut(l);
	}
	if (l->exited && late)
		uplink_cut(l);
	if (!l->exited && late && p3_reap_waits_for_cpu(l->rsh.pid)) {
		l->over_at = p3_now_ms() + EOF_MS;
		return false;
	}
	if (p3_frames_are_open(&l->conn) || (!l->exited && !late))
		return false;
	uint32_t end = l->over || !a->c.output ? 0 : l->host->first + l->host->size;
	for (uint32_t i = 2 * l->host->first; i < 2 * end; i++)
		(void)p3_forward_take(a, i, NULL, 0);
	l->over = true;
	if (l->state != P3_UPLINK_DONE && l->state != P3_UPLINK_LOST)
		uplink_on_lost(l);
	return l->exited;
}

/* ---- the ends of a job (control) ---- */

/* Return true if reports are under way. */
static bool agents_report(void *arg)
{
	struct p3_agents *a = arg;
	return a->query && a->go_sent && p3_query_begin_own(a->query);
}

static void agents_ask(void *arg, int sig)
{
	struct p3_agents *a = arg;
	if (!a->go_sent) {
		agents_end(a, true);
		return;
	}
	agents_enter(a, P3_ASKED, SLOW_MS + a->opt->kill_after_ms);
	agents_signal(a, sig);
}

static void agents_reap_shells(void *arg)
{
	struct p3_agents *a = arg;
	for (uint32_t h = 0; h < a->hosts->n; h++) {
		struct p3_uplink *l = &a->link[h];
		if (l->exited || !p3_reap_fate(l->rsh.pid, &l->status))
			continue;
		p3_reap_take(l->rsh.pid);
		l->exited = true;
		if (p3_frames_are_open(&l->conn))
			l->over_at = p3_now_ms() + EOF_MS;
	}
}

/* ---- the loop ---- */

/* Give up agents that do not end although they were told to.  Count looks, since a yod
 * that was stopped, with its agents, has not given them the time that the clock shows. */
static void agents_on_slow(struct p3_agents *a)
{
	a->slow_ms -= LOOK_MS;
	a->c.stage_at = a->slow_ms > 0 ? p3_now_ms() + LOOK_MS : P3_NEVER;
	if (a->slow_ms > 0)
		return;
	for (uint32_t h = 0; h < a->hosts->n; h++) {
		struct p3_uplink *l = &a->link[h];
		if (l->exited)
			continue;
		if (a->go_sent && l->state != P3_UPLINK_DONE)
			p3_say("host %s: its agent does not end; left behind (see that "
			       "the host can be reached)",
				l->host->name);
		kill(-l->rsh.pid, SIGKILL);
		uplink_cut(l);
	}
}

static void agents_turn(void *arg)
{
	struct p3_agents *a = arg;
	if (a->c.stage_at <= p3_now_ms())
		agents_on_slow(a);
	for (uint32_t h = 0; h < a->hosts->n; h++)
		uplink_see_wait(&a->link[h]);
	if (uplink_start_more(a))
		agents_fail(a, P3_STATUS_YOD, true);
}

static bool agents_are_left(void *arg)
{
	struct p3_agents *a = arg;
	bool left = false;
	a->c.turn_at = P3_NEVER;
	for (uint32_t h = 0; h < a->hosts->n; h++) {
		const struct p3_uplink *l = &a->link[h];
		left |= !uplink_is_over(&a->link[h]);
		int64_t at = p3_earlier(l->greet_at, l->exited ? P3_NEVER : l->end_at);
		if (!l->over && l->exited == p3_frames_are_open(&l->conn))
			at = p3_earlier(at, l->over_at);
		a->c.turn_at = p3_earlier(a->c.turn_at, at);
	}
	return left;
}

static void agents_say_barrier(void *arg, double seconds)
{
	const struct p3_agents *a = arg;
	char late[200];
	p3_agents_name_late(a, late, sizeof late);
	p3_say("ranks wait in PtlXBarrier for %.3g s (--why-after), not all of these "
	       "hosts: %s; ptlstat --hosts why %d tells more",
		seconds, late, (int)a->jid);
}

static int64_t agents_barrier(void *arg)
{
	const struct p3_agents *a = arg;
	return a->barrier_since;
}

static const struct p3_control_ops agents_ops = {.signal = agents_signal,
	.child = agents_reap_shells,
	.ask = agents_ask,
	.end = agents_end,
	.report = agents_report,
	.barrier = agents_barrier,
	.say_barrier = agents_say_barrier,
	.is_left = agents_are_left,
	.owes = p3_forward_owes,
	.turn = agents_turn};

/* ---- trace files ---- */

/* Make the files: "job.c1.trace" for job.trace and the host c1.  Return 0, or -errno
 * after an error line. */
static int agents_open_traces(struct p3_agents *a)
{
	const char *path = a->opt->trace, *slash = path ? strrchr(path, '/') : NULL;
	const char *dot = path ? strrchr(slash ? slash + 1 : path, '.') : NULL;
	for (uint32_t h = 0; path && h < a->hosts->n; h++) {
		int stem = dot ? (int)(dot - path) : (int)strlen(path);
		char *name;
		if (asprintf(&name, "%.*s.%s%s", stem, path, a->hosts->host[h].name,
			    path + stem) < 0)
			return -ENOMEM;
		int rc = p3_tracefile_open(name, NULL, &a->link[h].trace);
		free(name);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- starting ---- */

/* Make the order.  Return 0, or -errno after a line. */
static int agents_make_spec(struct p3_agents *a)
{
	static char dir[PATH_MAX], tag[TAG_LEN + 1];
	uint64_t random = 0;
	bool named = getcwd(dir, sizeof dir) != NULL;
	if (!named || getrandom(&random, sizeof random, 0) < 0) {
		int rc = -errno;
		p3_say("%s: %s; expected %s",
			named ? "random numbers" : "the working directory", strerror(-rc),
			named ? "a kernel that has getrandom()"
			      : "one that has a name, the same on each host: change to "
				"another directory");
		return rc;
	}
	snprintf(tag, sizeof tag, "%012llx", (unsigned long long)random >> 16);
	a->spec = (struct p3_spec){
		.jid = a->jid, .dir = dir, .env = environ, .opt = *a->opt, .tag = tag};
	a->spec.mask = umask(0);
	umask(a->spec.mask);
	return 0;
}

static int agents_start(struct p3_agents *a, const struct p3_guard *guard)
{
	p3_plan_raise_fds((rlim_t)a->opt->size * FDS_OF_RANK +
			  (rlim_t)a->hosts->n * FDS_OF_HOST + FDS);
	a->stdin_fd = guard->stdin_fd;
	int rc = p3_control_open(&a->c, guard);
	if (!rc && !(a->self = p3_own_path(NULL)))
		rc = -ENOMEM;
	rc = rc ? rc : p3_forward_open(a);
	rc = rc ? rc : p3_output_start(a->c.output);
	if (rc)
		p3_say("cannot start the job: %s; see ulimit -n and ulimit -u",
			strerror(-rc));
	const char *rsh = a->opt->rsh ? a->opt->rsh : p3_conf_text(P3_CONF_RSH);
	rsh = rsh ? rsh : p3_conf_row(P3_CONF_RSH)->usual;
	rc = rc ? rc : rsh_parse(a, rsh);
	rc = rc ? rc : agents_open_traces(a);
	rc = rc ? rc : agents_make_spec(a);
	rc = rc ? rc : uplink_start_more(a);
	int no_query = rc ? 0 : p3_query_create(a, &a->query); /* the job runs without */
	if (no_query)
		p3_say("ptlstat --hosts will not find this job: %s", strerror(-no_query));
	return rc;
}

static struct p3_agents *agents_create(const struct p3_opt *opt)
{
	struct p3_agents *a = calloc(1, sizeof *a + opt->hosts.n * sizeof a->link[0]);
	struct p3_agents_rank *rank = calloc(opt->size, sizeof *rank);
	char *cards = calloc(opt->size, P3_JOB_CARD_LEN);
	if (!a || !rank || !cards) {
		free(a);
		free(rank);
		free(cards);
		return NULL;
	}
	a->rank = rank;
	a->cards = cards;
	a->opt = opt;
	a->hosts = &opt->hosts;
	a->c = (struct p3_control){.opt = opt, .ops = &agents_ops, .arg = a};
	a->c.signals.fd = -1;
	a->barrier_since = P3_NEVER;
	for (uint32_t h = 0; h < opt->hosts.n; h++)
		a->link[h] = (struct p3_uplink){.agents = a,
			.host = &opt->hosts.host[h],
			.conn = {.in = -1, .out = -1},
			.exited = true,
			.over_at = P3_NEVER,
			.end_at = P3_NEVER,
			.greet_at = P3_NEVER};
	return a;
}

int p3_agents_run(const struct p3_opt *opt, uint32_t jid, const struct p3_guard *guard)
{
	struct p3_agents *a = agents_create(opt);
	if (!a) {
		p3_say("out of memory for %u nodes; use fewer, or raise ulimit -v",
			opt->size);
		return P3_STATUS_YOD;
	}
	a->jid = jid;
	if (agents_start(a, guard)) {
		agents_fail(a, P3_STATUS_YOD, true);
		a->c.drain_at = 0;
	}
	p3_control_run(&a->c);
	(void)p3_reap_sweep(); /* the guard says so if any are left */
	bool whole = p3_forward_say_lost(a) &&
		     !(a->c.output && p3_output_is_lost(a->c.output));
	for (uint32_t h = 0; h < a->hosts->n; h++)
		whole &= p3_tracefile_close(a->link[h].trace);
	if (a->c.stats)
		p3_stats_print(a->c.stats);
	p3_control_run(&a->c); /* until the lines are written, or a signal comes */
	p3_query_destroy(a->query);
	p3_forward_close(a);
	int status = p3_control_close(&a->c, whole);
	free(a->rsh);
	free(a->rsh_command);
	free(a->rsh_text);
	free(a->self);
	free(a->cards);
	free(a->rank);
	free(a);
	return status;
}
