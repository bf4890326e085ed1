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
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EOF_MS      1000 /* from the end of a remote shell's output to its own end */
#define LOOK_MS     1000 /* between looks at ending agents */
#define SWEEP_MS    5000
#define FDS_OF_RANK 2
#define FDS_OF_HOST 4
#define FDS         64
#define TAG_LEN     12

/* ---- remote shells ---- */

/* Split the program's words.  Return 0, or -errno after a line. */
static int rsh_parse(const char *text, struct p3_rsh *rsh_out)
{
	char *copy = strdup(text);
	struct p3_words words = {copy, 1};
	uint32_t line = 1;
	char **argv = NULL;
	int n = 0, rc = copy ? p3_words_next(&words, 0, &argv, &n, &line) : -ENOMEM;
	char **more = rc ? NULL : realloc(argv, ((size_t)n + 3) * sizeof *argv);
	if (more) {
		more[n] = more[n + 1] = more[n + 2] = NULL;
		*rsh_out = (struct p3_rsh){copy, more, n};
		return 0;
	}
	free(argv);
	free(copy);
	p3_say("--rsh: '%s' is no program; expected one that is called with a host and a "
	       "command line, and its arguments, as in --rsh 'ssh -q'",
		text);
	return rc ? rc : -ENOMEM;
}

static void rsh_free(struct p3_rsh *rsh)
{
	free(rsh->argv);
	free(rsh->text);
}

/* Write the command line, with the path quoted for any shell: a quote becomes '\''. */
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

/* Start the program of argv with pipes.  Return 0 or -errno. */
static int rsh_start(char *const *argv, struct p3_rsh_started *s)
{
	/* Reset the signals that yod blocks and ignores, but keep those blocked by which
	 * the terminal would stop the program: it then fails instead. */
	sigset_t blocked, standard;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTTIN);
	sigaddset(&blocked, SIGTTOU);
	sigemptyset(&standard);
	sigaddset(&standard, SIGPIPE);
	sigaddset(&standard, SIGCHLD);
	int to[2], from[2];
	if (pipe2(to, O_CLOEXEC))
		return -errno;
	int rc = pipe2(from, O_CLOEXEC) ? -errno : 0;
	if (!rc) {
		rc = p3_spawn_tool(argv, (const int[]){to[0], from[1], -1, -1}, &blocked,
			&standard, true, &s->pid);
		close(from[1]);
	}
	close(to[0]);
	s->to = to[1];
	s->from = rc ? -1 : from[0];
	return rc;
}

/* ---- uplinks ---- */

static const char *uplink_name_of(const struct p3_agents *a, uint32_t host)
{
	return a->hosts->host[host].name;
}

/* ---- the end of the job ---- */

static void uplink_cut(struct p3_agents *a, uint32_t host);

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
	int64_t slow_ms = P3_AGENTS_SLOW_MS + (now ? 0 : a->opt->kill_after_ms);
	if (a->c.stage == P3_GOING || now)
		agents_enter(a, now ? P3_KILLED : P3_TERMED,
			a->go_sent ? slow_ms : P3_AGENTS_SHELL_MS);
	if (a->go_sent)
		p3_agents_tell_all(a, (struct p3_frame){.op = op}, NULL);
	for (uint32_t h = 0; h < a->hosts->n && !a->go_sent; h++)
		uplink_cut(a, h);
}

static void uplink_fail(struct p3_agents *a, int status)
{
	p3_control_decide(&a->c, status);
	agents_end(a, false);
}

/* ---- starting ---- */

static void uplink_on_frames(void *arg, int rc);

/* Start the agent of a host, and send it its order.  Return 0 or -errno. */
static int uplink_start(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	const struct p3_rsh *rsh = &a->rsh;
	char *line = rsh_command_line(a->self);
	rsh->argv[rsh->n] = (char *)(uintptr_t)uplink_name_of(a, host);
	rsh->argv[rsh->n + 1] = line;
	int rc = line ? rsh_start(rsh->argv, &l->rsh) : -ENOMEM;
	free(line);
	if (rc)
		return rc;
	l->closed = l->exited = false;
	l->state = P3_UPLINK_STARTING;
	l->greet_at = p3_now_ms() + P3_AGENTS_GREET_MS;
	rc = p3_frames_open(&l->conn, l->rsh.from, l->rsh.to);
	rc = rc ? rc : p3_frames_attach(&l->conn, &a->c.loop, uplink_on_frames, l);
	a->spec.host = host;
	size_t len;
	char *order = rc ? NULL : p3_spec_pack(&a->spec, &len);
	if (!rc && !order)
		return -ENOMEM;
	if (order)
		p3_frames_send(&l->conn,
			(struct p3_frame){.op = P3_FRAME_ORDER, .len = len}, order);
	free(order);
	return rc;
}

/* Start the agents of further hosts, P3_AGENTS_STARTS at a time, and send them their
 * orders.  Return 0 or -errno after a line. */
static int uplink_start_more(struct p3_agents *a)
{
	uint32_t n = 0;
	int rc = 0;
	/* Count those that start.  One that has been named waits for a user or a network,
	 * and holds up no other. */
	for (uint32_t h = 0; h < a->begun_n; h++)
		n += a->link[h].state == P3_UPLINK_STARTING && !a->link[h].closed &&
		     a->link[h].greet_at != P3_NEVER;
	while (!rc && a->c.stage == P3_GOING && a->begun_n < a->hosts->n &&
		n < P3_AGENTS_STARTS) {
		uint32_t host = a->begun_n++;
		rc = uplink_start(a, host);
		if (rc)
			p3_say("host %s: '%s' cannot be run: %s; expected a program that "
			       "runs a command line on a host (--rsh, PTL3_RSH)",
				uplink_name_of(a, host), a->rsh.argv[0], strerror(-rc));
		n++;
	}
	return rc;
}

/* ---- ranks ---- */

/* ---- frames ---- */

/* Start the nodes when all agents are ready. */
static void uplink_on_ready(struct p3_agents *a, uint32_t host)
{
	a->link[host].state = P3_UPLINK_READY;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (a->link[h].state != P3_UPLINK_READY)
			return;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		a->link[h].state = P3_UPLINK_RUNS;
	a->go_sent = true;
	p3_agents_tell_all(a, (struct p3_frame){.op = P3_FRAME_GO}, NULL);
	(void)p3_forward_begin_input(a);
	p3_agents_pass_signals(a);
}

/* Take a frame about a rank.  Return false if it breaks the rules. */
static bool uplink_take_of_rank(
	struct p3_agents *a, uint32_t host, const struct p3_frame *f, const char *bytes)
{
	const struct p3_host *here = &a->hosts->host[host];
	struct p3_agents_rank *rank = &a->rank[f->node];
	bool stream = f->value == 0 || f->value == 1;
	uint32_t i = 2 * f->node + (f->value == 1);
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
		return stream && (!f->len || p3_forward_take(a, i, bytes, f->len));
	case P3_FRAME_IDLE:
		if (stream && !a->files)
			p3_output_idle(a->c.output, i);
		return stream;
	case P3_FRAME_OUTPUT_END:
		return stream && p3_forward_take(a, i, NULL, 0);
	case P3_FRAME_ENDED:
		if (!rank->started || rank->ended)
			return false;
		rank->ended = true;
		if (!f->value || a->c.stage != P3_GOING)
			return true;
		p3_control_rank_failed(
			&a->c, f->node, rank->pid, uplink_name_of(a, host), f->value);
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
	struct p3_agents *a, uint32_t host, const struct p3_frame *f, const char *bytes)
{
	switch (f->op) {
	case P3_FRAME_SAY:
		p3_say_lines(bytes, f->len);
		return true;
	case P3_FRAME_REFUSED:
		a->link[host].state = P3_UPLINK_DONE;
		uplink_fail(a, f->value);
		return true;
	case P3_FRAME_READY:
		if (a->link[host].state != P3_UPLINK_GREETED)
			return false;
		uplink_on_ready(a, host);
		return true;
	case P3_FRAME_BARRIER:
		p3_agents_on_barrier(a, host, f->number);
		return true;
	case P3_FRAME_TRACE:
		return p3_agents_on_trace(a, host, bytes, f->len);
	case P3_FRAME_REPORT:
		p3_query_take(a->query, host, f, bytes);
		return true;
	case P3_FRAME_ROOM:
		return p3_taps_room(a->input, 0, f->number);
	case P3_FRAME_NO_INPUT:
		p3_taps_close(a->input, 0);
		return true;
	case P3_FRAME_DONE:
		if (a->link[host].state != P3_UPLINK_RUNS &&
			a->link[host].state != P3_UPLINK_DONE) /* behind REFUSED */
			return false;
		a->link[host].state = P3_UPLINK_DONE;
		a->link[host].end_at = p3_now_ms() + P3_AGENTS_SHELL_MS;
		return true;
	}
	return uplink_take_of_rank(a, host, f, bytes);
}

/* ---- agents that break the protocol ---- */

/* Close the connection of an agent and end the job; a line has said why. */
static void uplink_cut_off(struct p3_agents *a, uint32_t host)
{
	a->link[host].state = P3_UPLINK_LOST;
	uplink_cut(a, host);
	uplink_fail(a, P3_STATUS_YOD);
}

static void uplink_on_garbage(struct p3_agents *a, uint32_t host)
{
	char text[60];
	p3_frames_text(&a->link[host].conn, text, sizeof text);
	p3_say("host %s: '%s' is no frame of an agent of this version; expected nothing "
	       "else on its standard output: see that the remote shell and the shell's "
	       "start files print nothing, as in %s %s true",
		uplink_name_of(a, host), text, a->rsh.argv[0], uplink_name_of(a, host));
	uplink_cut_off(a, host);
}

static void uplink_on_hello(struct p3_agents *a, uint32_t host, const struct p3_frame *f)
{
	a->link[host].state = P3_UPLINK_GREETED;
	a->link[host].greet_at = P3_NEVER;
	if (f->op == P3_FRAME_HELLO && f->number == P3_LAYOUT_WORD)
		return;
	p3_say("host %s: layout %016" PRIx64 " of its yod is not %016" PRIx64
	       ", that of this one; install the same libportals there as %s",
		uplink_name_of(a, host), f->number, (uint64_t)P3_LAYOUT_WORD, a->self);
	uplink_cut_off(a, host);
}

/* Name a host whose agent has not answered, if it is time, and let another one start. */
static void uplink_see_wait(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	if (l->greet_at > p3_now_ms())
		return;
	l->greet_at = P3_NEVER;
	if (l->state == P3_UPLINK_STARTING && !l->over && !l->begun)
		p3_say("host %s: %s has not started an agent for %d s; yod waits, ^C "
		       "ends it",
			uplink_name_of(a, host), a->rsh.argv[0],
			P3_AGENTS_GREET_MS / 1000);
}

/* ---- connections ---- */

/* Close the connection: the agent ends its nodes. */
static void uplink_cut(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	if (l->closed)
		return;
	l->closed = true;
	l->over_at = p3_now_ms() + EOF_MS;
	p3_query_lose(a->query, host);
	p3_frames_close(&l->conn);
	close(l->rsh.from);
	close(l->rsh.to);
	if (!host)
		p3_taps_close(a->input, 0);
}

/* Cut off an agent that has been silent for too long. */
static void uplink_on_silence(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	if (a->c.stage != P3_GOING)
		return; /* an ending agent has its own time: agents_on_slow() */
	l->silent_ms = l->conn.beat.timeout_ms;
	l->in_frame = p3_frames_has_part(&l->conn);
	if (!l->exited)
		kill(-l->rsh.pid, SIGKILL); /* it would wait for the network */
	uplink_cut(a, host);
}

static void uplink_on_frames(void *arg, int rc)
{
	struct p3_uplink *l = arg;
	struct p3_agents *a = l->agents;
	uint32_t host = (uint32_t)(l - a->link);
	struct p3_frame f;
	const char *bytes;
	int rc2 = 0;
	if (rc == -ECONNRESET)
		return; /* this also shows as an end of file */
	if (rc == -ETIMEDOUT) {
		uplink_on_silence(a, host);
		return;
	}
	/* The first bytes begin the time in which an agent must not be silent.  Before
	 * them, a user may be asked for a password. */
	if (!rc && !l->begun)
		p3_frames_begin_beat(&l->conn);
	l->begun |= !rc;
	while (!l->closed && !(rc2 = p3_frames_next(&l->conn, &f, &bytes))) {
		if (l->state == P3_UPLINK_STARTING)
			uplink_on_hello(a, host, &f);
		else if (!uplink_take_of_host(a, host, &f, bytes)) {
			p3_say("host %s: its agent sends frame %u out of turn; cut off "
			       "(install the same libportals there)",
				uplink_name_of(a, host), f.op);
			uplink_cut_off(a, host);
		}
	}
	if (l->closed)
		return;
	if (rc2 == -EPROTONOSUPPORT) {
		p3_say("host %s: the agent speaks version %u, this yod version %u; "
		       "expected the same libportals on all hosts: install it there as "
		       "%s",
			uplink_name_of(a, host), f.magic & 0xff, P3_FRAMES_MAGIC & 0xff,
			a->self);
		uplink_cut_off(a, host);
	} else if (rc2 == -EPROTO)
		uplink_on_garbage(a, host);
	else if (rc)
		uplink_cut(a, host);
}

/* Note the end of a remote shell. */
static void uplink_exited(struct p3_agents *a, uint32_t host, int status)
{
	struct p3_uplink *l = &a->link[host];
	l->exited = true;
	l->status = status;
	if (!l->closed)
		l->over_at = p3_now_ms() + EOF_MS;
}

/* ---- lost agents ---- */

static void uplink_on_lost(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	bool early = l->state <= P3_UPLINK_STARTING;
	bool went = l->state == P3_UPLINK_RUNS;
	char how[100];
	const struct p3_host *h = &a->hosts->host[host];
	l->state = P3_UPLINK_LOST;
	l->end_at = p3_now_ms() + P3_AGENTS_SHELL_MS;
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
			uplink_name_of(a, host), a->rsh.argv[0], how, a->rsh.argv[0],
			uplink_name_of(a, host), a->self);
	else if (a->c.stage == P3_GOING)
		p3_say("host %s is lost, with ranks %u-%u: %s %s; %s", h->name, h->first,
			h->first + h->size - 1, a->rsh.argv[0], how,
			a->opt->keep_going ? "the others go on" : "ending the job");
	if (a->c.stage == P3_GOING && (!went || !a->opt->keep_going))
		uplink_fail(a, went ? 128 + SIGKILL : P3_STATUS_YOD);
	p3_control_decide(&a->c, 128 + SIGKILL);
}

/* Return true if the remote shell and its connection have ended.  If that is too
 * early, print a line, once.  The remote shell and its output end at almost the same
 * time, in any order.  After the first of the two, wait a little for the second. */
static bool uplink_is_over(struct p3_agents *a, uint32_t host)
{
	struct p3_uplink *l = &a->link[host];
	bool late = l->over_at <= p3_now_ms();
	if (l->state == P3_UPLINK_UNBORN && a->c.stage == P3_GOING)
		return false;
	if (!l->exited && l->end_at <= p3_now_ms()) {
		/* End a remote shell that goes on without its agent, as ssh does that
		 * serves other connections. */
		l->end_at = P3_NEVER;
		kill(-l->rsh.pid, SIGKILL);
		uplink_cut(a, host);
	}
	if (l->exited && late)
		uplink_cut(a, host);
	if (!l->closed || (!l->exited && !late))
		return false;
	if (!l->over) {
		const struct p3_host *h = &a->hosts->host[host];
		for (uint32_t i = 2 * h->first;
			a->c.output && i < 2 * (h->first + h->size); i++)
			(void)p3_forward_take(a, i, NULL, 0);
	}
	l->over = true;
	if (l->state != P3_UPLINK_DONE && l->state != P3_UPLINK_LOST)
		uplink_on_lost(a, host);
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
	agents_enter(a, P3_ASKED, P3_AGENTS_SLOW_MS + a->opt->kill_after_ms);
	p3_agents_signal(a, sig);
}

static void agents_reap_shells(void *arg)
{
	struct p3_agents *a = arg;
	int status;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (!a->link[h].exited && p3_reap_fate(a->link[h].rsh.pid, &status)) {
			p3_reap_take(a->link[h].rsh.pid);
			uplink_exited(a, h, status);
		}
}

static const struct p3_control_ops agents_ops = {.signal = p3_agents_signal,
	.child = agents_reap_shells,
	.ask = agents_ask,
	.end = agents_end,
	.report = agents_report};

/* ---- the loop ---- */

static void agents_fail_start(struct p3_agents *a)
{
	p3_control_decide(&a->c, P3_STATUS_YOD);
	agents_end(a, true);
}

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
				a->hosts->host[h].name);
		kill(-l->rsh.pid, SIGKILL);
		uplink_cut(a, h);
	}
}

static void agents_on_deadlines(struct p3_agents *a)
{
	int64_t now = p3_now_ms();
	p3_control_see_timeout(&a->c);
	if (a->c.stage_at <= now)
		agents_on_slow(a);
	if (!a->c.stopped_at && a->why_at <= now) {
		p3_agents_say_barrier(a);
		if (a->query)
			(void)p3_query_begin_own(a->query);
	}
	for (uint32_t h = 0; h < a->hosts->n; h++)
		uplink_see_wait(a, h);
}

static int64_t agents_next_deadline(const struct p3_agents *a, bool left)
{
	int64_t at = p3_earlier(a->c.stage_at, left ? P3_NEVER : a->c.drain_at);
	if (!a->c.stopped_at)
		at = p3_earlier(at, p3_earlier(a->c.timeout_at, a->why_at));
	for (uint32_t h = 0; h < a->hosts->n; h++) {
		at = p3_earlier(at, a->link[h].greet_at);
		if (a->link[h].exited != a->link[h].closed)
			at = p3_earlier(at, a->link[h].over_at);
		if (!a->link[h].exited)
			at = p3_earlier(at, a->link[h].end_at);
	}
	return at;
}

static void agents_loop(struct p3_agents *a)
{
	for (;;) {
		bool left = false;
		for (uint32_t h = 0; h < a->hosts->n; h++)
			left |= !uplink_is_over(a, h);
		bool output = p3_forward_owes(a) ||
			      (a->c.output && !p3_output_is_done(a->c.output));
		if (!left && !p3_control_waits_for_output(&a->c, output))
			return;
		p3_loop_run(&a->c.loop, agents_next_deadline(a, left));
		agents_on_deadlines(a);
		if (uplink_start_more(a))
			agents_fail_start(a);
	}
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
	rc = rc ? rc : rsh_parse(rsh, &a->rsh);
	rc = rc ? rc : p3_agents_open_traces(a);
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
	a->why_at = P3_NEVER;
	a->why_ms = opt->why_after_ms;
	for (uint32_t h = 0; h < opt->hosts.n; h++) {
		a->link[h].closed = a->link[h].exited = true;
		a->link[h].over_at = a->link[h].end_at = P3_NEVER;
		a->link[h].greet_at = P3_NEVER;
		a->link[h].agents = a;
	}
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
		agents_fail_start(a);
		a->c.drain_at = 0;
	}
	agents_loop(a);
	(void)p3_reap_sweep(SWEEP_MS); /* the guard says so if any are left */
	bool whole = p3_agents_close_traces(a);
	whole &= p3_forward_say_lost(a) &&
		 !(a->c.output && p3_output_is_lost(a->c.output));
	if (a->c.stats)
		p3_stats_print(a->c.stats);
	agents_loop(a); /* until the lines are written, or a signal comes */
	p3_query_destroy(a->query);
	p3_forward_close(a);
	int status = p3_control_close(&a->c, whole);
	rsh_free(&a->rsh);
	free(a->self);
	free(a->cards);
	free(a->rank);
	free(a);
	return status;
}
