/* SPDX-License-Identifier: BSD-3-Clause */
/* A job whose ranks run on this host: start, steps of the end, fates of nodes. */
#include "launcher/yod/remote.h"
#include "launcher/rdv/rdv.h"
#include "shm/conf.h"
#include "shm/domain.h"
#include "shm/fault.h"
#include "shm/job.h"
#include "shm/layout.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ASK_MS   1000 /* time between the user's signal and SIGTERM */
#define SLOW_MS  1000 /* time after SIGTERM until yod names the running nodes */
#define KILL_MS  5000 /* time after which yod gives up killed nodes that need no CPU */
#define EOF_MS   200  /* from the end of a node's socket to a look at its process */
#define LOOK_FDS 64   /* descriptors for processes that look at the job, and the like */

enum life { UNBORN, RUNS, ENDED, REAPED /* or left behind */ };

struct rank {
	pid_t pid;
	enum life life;
	bool stop_said; /* a line has told of its stop at the terminal */
};

struct run {
	struct p3_control c;
	const struct p3_opt *opt;
	struct p3_domain domain; /* the domain of opt, for its nids */
	uint32_t nid_base;
	const struct p3_place *place;
	struct p3_agent *agent; /* NULL: this is yod itself */
	uint32_t first, here_n; /* the ranks on this host */
	struct p3_rdv *rdv;
	struct p3_taps *taps;       /* the nodes' pipes */
	struct p3_tracefile *trace; /* NULL: not requested */
	struct p3_attach *attach;   /* NULL: no process can look at the job */
	struct p3_answers *answers; /* NULL: no questions can be answered */
	int end_fd;
	int stdin_fd; /* standard input of rank 0 */
	int hosts_fd; /* agent: file of the job's hosts; or -1 */
	uint32_t runs_n;
	uint32_t ended_n; /* nodes that have ended and are not reaped yet */
	bool reporting;   /* a report of yod itself is under way */
	bool crash_said;
	struct rank rank[];
};

/* ---- signalling ---- */

/* Signal the process groups of all nodes that are not reaped.  The kernel does not reuse
 * a group's number before its leader is reaped, so no other process is hit. */
static void run_signal_nodes(void *arg, int sig)
{
	const struct run *r = arg;
	for (uint32_t i = 0; i < r->opt->size; i++)
		if (r->rank[i].life == RUNS || r->rank[i].life == ENDED)
			kill(-r->rank[i].pid, sig);
}

static void run_ask_nodes(struct run *r, int sig)
{
	run_signal_nodes(r, sig);
	run_signal_nodes(r, SIGCONT); /* a stopped process acts on no other signal */
	r->c.stopped_at = 0;
}

/* End the job: as after a failure, or now. */
static void run_end(void *arg, bool now)
{
	struct run *r = arg;
	int64_t slow_ms = p3_earlier(r->opt->kill_after_ms / 2, SLOW_MS);
	if (!now && r->c.stage >= P3_TERMED)
		return;
	if (now && r->reporting)
		p3_answers_end(r->answers);
	run_ask_nodes(r, now ? SIGKILL : SIGTERM);
	p3_control_enter(&r->c, now ? P3_KILLED : P3_TERMED,
		now ? KILL_MS : r->opt->kill_after_ms);
	/* Without time to end, nodes have none that could be too long. */
	r->c.turn_at = now || !slow_ms ? P3_NEVER : p3_now_ms() + slow_ms;
}

/* Name the nodes that yod waits for, before it kills them. */
static void run_say_slow(struct run *r)
{
	char text[100];
	struct p3_ranks slow = {{{0}}};
	r->c.turn_at = P3_NEVER;
	for (uint32_t i = 0; i < r->opt->size; i++)
		if (r->rank[i].life == RUNS)
			p3_ranks_add(&slow, i);
	p3_ranks_print(&slow, text, sizeof text);
	if (r->runs_n)
		p3_say("SIGTERM has not ended rank%s %s yet; SIGKILL follows %.3g s "
		       "after it (--kill-after)",
			r->runs_n > 1 ? "s" : "", text,
			(double)r->opt->kill_after_ms / 1000);
}

static void run_ask_job(void *arg, int sig)
{
	struct run *r = arg;
	if (sig == SIGTERM) {
		run_end(r, false);
		return;
	}
	run_ask_nodes(r, sig);
	p3_control_enter(&r->c, P3_ASKED, ASK_MS);
}

/* Return true if a killed node has not ended yet because other programs have the CPUs. */
static bool run_waits_for_cpu(const struct run *r)
{
	bool wait = false;
	for (uint32_t i = 0; i < r->opt->size && !wait; i++)
		wait = r->rank[i].life == RUNS && p3_reap_waits_for_cpu(r->rank[i].pid);
	return wait;
}

static void run_next_stage(struct run *r)
{
	if (r->c.stage == P3_ASKED)
		run_end(r, false);
	else if (r->c.stage == P3_TERMED)
		run_end(r, true);
	else if (run_waits_for_cpu(r))
		p3_control_enter(&r->c, P3_KILLED, KILL_MS);
	else if (r->runs_n) {
		/* stop waiting for processes that SIGKILL does not end: they are in the
		 * kernel */
		p3_say("%u killed nodes do not end (see ps: state D?); left behind",
			r->runs_n);
		for (uint32_t i = 0; i < r->opt->size; i++)
			if (r->rank[i].life == RUNS) {
				p3_taps_ended(r->taps, i);
				r->rank[i].life = REAPED;
			}
		r->runs_n = 0;
		p3_control_enter(&r->c, P3_KILLED, -1);
	} else
		p3_control_enter(&r->c, r->c.stage, -1);
}

/* ---- the report ---- */

static bool run_has_portals(const struct run *r)
{
	struct p3_attach_msg v;
	for (uint32_t i = 0; i < r->opt->size; i++) {
		p3_rdv_show(r->rdv, i, &v, NULL);
		if (v.inited || v.incarnation)
			return true;
	}
	return false;
}

/* Take an answer: in an agent to yod's question, and in yod to its own. */
static void run_answered(
	void *arg, uint64_t number, int status, const char *bytes, size_t len)
{
	struct run *r = arg;
	struct p3_frame f = {
		.op = P3_FRAME_REPORT, .number = number, .value = status, .len = len};
	if (r->agent) {
		p3_frames_send(&r->agent->conn, f, bytes);
		return;
	}
	p3_say_lines(bytes, len);
	r->reporting = false;
	p3_control_reported(&r->c);
}

/* Start a report, unless one is under way.  Return true if a report is under way. */
static bool run_report(void *arg)
{
	struct run *r = arg;
	int32_t brief = r->opt->size > P3_REPORT_NODES ? P3_ASK_BRIEF : 0;
	if (r->reporting || !r->answers || !run_has_portals(r))
		return r->reporting;
	r->reporting = true;
	p3_answers_take(r->answers, &(struct p3_frame){.value = P3_ASK_WHY | brief});
	return r->reporting;
}

static int64_t run_barrier(void *arg)
{
	const struct run *r = arg;
	int64_t since;
	return p3_rdv_barrier(r->rdv, &since) && !r->reporting ? since : P3_NEVER;
}

static void run_say_barrier(void *arg, double seconds)
{
	const struct run *r = arg;
	int64_t since;
	p3_say("%u of %u ranks wait in PtlXBarrier, the first for %.3g s (--why-after)",
		p3_rdv_barrier(r->rdv, &since), r->opt->size, seconds);
}

/* ---- fates ---- */

static const struct p3_prog *run_prog_of(const struct run *r, uint32_t i)
{
	return p3_prog_of(r->opt->prog, r->opt->prog_n, i);
}

/* An agent tells yod of the end before the rendezvous tells others, and both on one
 * connection: yod hears of the failures that it causes later. */
static void run_node_ended(struct run *r, uint32_t i, int status)
{
	FAULT_POINT("yod.end_seen");
	r->rank[i].life = ENDED;
	r->runs_n--;
	r->ended_n++;
	p3_taps_ended(r->taps, i);
	if (r->agent)
		p3_frames_tell(&r->agent->conn, P3_FRAME_ENDED, i, status);
	p3_rdv_ended(r->rdv, i, status);
	FAULT_POINT("yod.end_told");
	if (r->c.stats)
		p3_stats_ended(r->c.stats, i, r->rank[i].pid, status);
	if (!status || r->c.stage != P3_GOING)
		return;
	/* An agent leaves all to yod but the line about a core, which is on this host. */
	if (!r->agent)
		p3_control_rank_failed(&r->c, i, r->rank[i].pid, NULL, status);
	if (!r->crash_said)
		r->crash_said = p3_crash_say(
			run_prog_of(r, i), i, r->rank[i].pid, status, r->agent);
	if (!r->agent && !r->opt->keep_going)
		run_end(r, false);
}

/* Report a node that SIGTTIN or SIGTTOU has stopped: no node gets the terminal, so
 * the node would stay stopped for ever. */
static void run_see_stop(struct run *r, uint32_t i)
{
	int sig = p3_reap_stopped(r->rank[i].pid);
	if (r->rank[i].stop_said || (sig != SIGTTIN && sig != SIGTTOU))
		return;
	r->rank[i].stop_said = true;
	p3_say("rank %u (pid %d) is stopped: it wants to %s the terminal, which is "
	       "yod's; expected %s; ^C ends the job",
		i, (int)r->rank[i].pid, sig == SIGTTIN ? "read" : "set",
		sig == SIGTTIN
			? "standard input, of rank 0"
			: "a terminal of its own, as in yod -sz 4 xterm -e ./prog");
}

static void run_see_fates(void *arg)
{
	struct run *r = arg;
	int status;
	for (uint32_t i = 0; i < r->opt->size; i++) {
		if (r->rank[i].life != RUNS)
			continue;
		if (p3_reap_fate(r->rank[i].pid, &status))
			run_node_ended(r, i, status);
		else
			run_see_stop(r, i);
	}
}

static void run_reap_nodes(struct run *r)
{
	for (uint32_t i = 0; i < r->opt->size && r->ended_n; i++) {
		if (r->rank[i].life != ENDED || !p3_rdv_may_reap(r->rdv, i))
			continue;
		FAULT_POINT("yod.unreaped");
		p3_reap_take(r->rank[i].pid);
		FAULT_POINT("yod.reaped");
		r->rank[i].life = REAPED;
		r->ended_n--;
	}
}

/* Reap orphans, unless an ended node is not reaped yet: p3_reap_any() might return that
 * node each time. */
static void run_reap_orphans(struct run *r)
{
	pid_t pid;
	while (!r->ended_n && (pid = p3_reap_any()) > 0) {
		for (uint32_t i = 0; i < r->opt->size; i++)
			if (r->rank[i].life != REAPED && r->rank[i].pid == pid)
				return;
		p3_reap_take(pid);
	}
}

/* ---- events ---- */

static bool run_is_left(void *arg)
{
	const struct run *r = arg;
	return r->runs_n || r->ended_n || r->reporting;
}

static bool run_owes_output(void *arg)
{
	const struct run *r = arg;
	return r->agent && p3_agent_has_output(r->agent);
}

static void run_turn(void *arg)
{
	struct run *r = arg;
	int64_t now = p3_now_ms();
	if (r->c.turn_at <= now) /* before it kills them, however late it is */
		run_say_slow(r);
	if (r->c.stage_at <= now)
		run_next_stage(r);
	run_reap_nodes(r);
	run_reap_orphans(r);
}

static const struct p3_control_ops run_ops = {.signal = run_signal_nodes,
	.child = run_see_fates,
	.ask = run_ask_job,
	.end = run_end,
	.report = run_report,
	.barrier = run_barrier,
	.say_barrier = run_say_barrier,
	.is_left = run_is_left,
	.owes = run_owes_output,
	.turn = run_turn};

/* ---- the output of the nodes, in yod itself ---- */

static void run_moved_output(void *arg, uint32_t i, size_t n)
{
	struct run *r = arg;
	if (n)
		(void)p3_taps_room(r->taps, i, n);
	else
		p3_taps_close(r->taps, i);
}

static int run_open_output(struct run *r)
{
	static const int to[2] = {STDOUT_FILENO, STDERR_FILENO};
	struct p3_output_conf conf = {.loop = &r->c.loop,
		.ranks = r->opt->tag ? r->opt->size : 0,
		.moved = run_moved_output,
		.arg = r};
	struct p3_taps_conf taps = {
		.n = 2 * conf.ranks, .take = p3_output_take, .idle = p3_output_idle};
	r->c.output = taps.arg = p3_output_create(&conf, to);
	r->taps = taps.arg ? p3_taps_create(&r->c.loop, &taps) : NULL;
	return r->taps ? 0 : -errno;
}

/* ---- starting ---- */

/* End a job that cannot start, and tell the yod of an agent. */
static void run_fail_start(struct run *r, int status)
{
	p3_control_decide(&r->c, status);
	if (r->agent)
		p3_frames_tell(&r->agent->conn, P3_FRAME_REFUSED, 0, r->c.status);
	run_end(r, true);
}

static int run_adopt(struct run *r, uint32_t i, const struct p3_spawned *s)
{
	r->rank[i] = (struct rank){.pid = s->pid, .life = RUNS};
	r->runs_n++;
	FAULT_POINT("yod.adopted");
	if (r->c.stats)
		p3_stats_started(r->c.stats, i);
	int rc = p3_rdv_add(r->rdv, i, s->sock, (uint32_t)s->pid);
	if (rc)
		close(s->sock);
	for (uint32_t k = 0; k < 2 && !rc && s->out[k] >= 0; k++) {
		rc = p3_set_nonblocking(s->out[k]);
		if (!rc && r->c.output)
			rc = p3_output_add(r->c.output, 2 * i + k);
		rc = rc ? rc : p3_taps_add(r->taps, 2 * i + k, s->out[k]);
	}
	if (r->agent)
		p3_frames_tell(&r->agent->conn, P3_FRAME_STARTED, i, (int32_t)s->pid);
	return rc;
}

static int run_start_one(struct run *r, const struct p3_spawn_conf *conf, uint32_t i)
{
	struct p3_spawned s;
	bool at_exec = false;
	int rc = p3_spawn_node(conf, run_prog_of(r, i), i, &s, &at_exec);
	int rc2 = !rc || rc == -EINTR ? run_adopt(r, i, &s) : 0;
	rc = rc ? rc : rc2;
	if (!rc || rc == -EINTR)
		return rc;
	int status = P3_STATUS_YOD;
	if (at_exec)
		status = p3_prog_say_cannot(run_prog_of(r, i), -rc);
	else
		p3_say("rank %u: cannot be started: %s; see ulimit -u and ulimit -n, or "
		       "use fewer nodes",
			i, strerror(-rc));
	run_fail_start(r, status);
	return rc;
}

/* Take node ids from the least one on; with --domain, ids that no other job and no
 * process of the domain has.  Return 0 or -errno. */
static int run_enter_domain(struct run *r)
{
	struct p3_domain_why why;
	r->nid_base = r->opt->nid_base;
	if (!r->opt->domain)
		return 0;
	int rc = p3_domain_open(&r->domain, P3_DOMAIN_BASE, r->opt->domain, &why);
	if (rc)
		p3_say("%s", why.text);
	else
		rc = p3_domain_take_nids(
			&r->domain, r->nid_base, r->opt->size, &r->nid_base);
	return rc;
}

static void run_see_life(void *arg, uint32_t i, int published, enum p3_rdv_state state)
{
	struct run *r = arg;
	bool died = state == P3_RDV_DIED;
	if (state == P3_RDV_JOINED && r->c.stats)
		p3_stats_joined(r->c.stats, i, published);
	if (state != P3_RDV_JOINED && r->trace)
		p3_tracefile_add(
			r->trace, i, published, died ? P3_TRACE_DIED : P3_TRACE_LEFT);
}

/* ---- the part of an agent ---- */

static void run_on_order(void *arg, const struct p3_frame *f, const char *bytes)
{
	struct run *r = arg;
	if (!f) {
		/* The connection is broken, since yod or the remote shell has ended. */
		p3_control_decide(&r->c, 128 + SIGKILL);
		p3_control_kill(&r->c);
		return;
	}
	switch (f->op) {
	case P3_FRAME_SIGNAL:
		p3_control_on_signal(&r->c, f->value);
		return;
	case P3_FRAME_END:
		run_end(r, false);
		return;
	case P3_FRAME_KILL:
		p3_control_kill(&r->c);
		return;
	case P3_FRAME_ASK:
		if (r->answers && (f->value & P3_ASK_ANY || run_has_portals(r)))
			p3_answers_take(r->answers, f);
		else
			run_answered(r, f->number, r->answers ? 0 : ENOTSUP, NULL, 0);
		return;
	default:
		p3_rdv_order(r->rdv, f, bytes);
	}
}

/* Make the file of the job's hosts, for its nodes.  Return its descriptor or -errno. */
static int run_make_hosts_file(const struct p3_hosts *hosts, const struct p3_agent *agent)
{
	int fd = memfd_create("p3-hosts", MFD_CLOEXEC);
	bool ok = fd >= 0;
	for (uint32_t i = 0; i < hosts->n && ok; i++) {
		const struct p3_host *host = &hosts->host[i];
		struct p3_job_host h = {host->first, host->size, "", ""};
		snprintf(h.name, sizeof h.name, "%s", host->name);
		if (host->first == agent->host->first)
			snprintf(h.address, sizeof h.address, "%s", agent->address);
		ok = write(fd, &h, sizeof h) == sizeof h;
	}
	if (!ok && fd >= 0)
		close(fd);
	return ok ? fd : -ENOSPC;
}

/* ---- starting ---- */

static int run_open_parts(struct run *r, uint32_t jid)
{
	struct p3_rdv_conf conf = {.loop = &r->c.loop,
		.size = r->opt->size,
		.layout = P3_LAYOUT_WORD,
		.nid_base = r->nid_base,
		.jid = jid,
		.cpus = r->place->cpus,
		.ends_job = !r->opt->keep_going,
		.in_domain = r->opt->domain != NULL,
		.apart = p3_conf_attach_late(p3_conf_text(P3_CONF_ATTACH), r->opt->size),
		.eof_ms = EOF_MS,
		.ends = p3_reap_is_ending,
		.arg = r,
		.say = p3_say,
		.life = run_see_life};
	int rc = 0;
	if (r->agent) { /* the rendezvous serves this host's part of the job */
		if (r->opt->hosts.n > 1)
			r->hosts_fd = run_make_hosts_file(&r->opt->hosts, r->agent);
		if (r->hosts_fd == -ENOSPC)
			return r->hosts_fd;
		conf.hosts = r->hosts_fd;
		conf.first = r->first;
		conf.here = r->here_n;
		conf.parent = &r->agent->conn;
	}
	r->rdv = p3_rdv_create(&conf);
	if (!r->rdv)
		return -errno;
	if (!r->agent)
		rc = run_open_output(r);
	r->end_fd = p3_signals_fd(true);
	if (r->end_fd < 0)
		return r->end_fd;
	if (!rc && r->agent)
		rc = p3_agent_open(
			r->agent, &r->c.loop, &r->taps, &r->stdin_fd, run_on_order, r);
	return rc;
}

static int run_start(struct run *r, uint32_t jid, const struct p3_guard *guard)
{
	struct p3_spawn_conf conf = {.opt = r->opt,
		.here = r->here_n,
		.place = r->place,
		.pipes = r->opt->tag || r->agent};
	getrlimit(RLIMIT_NOFILE, &conf.nofile);
	p3_plan_raise_fds(LOOK_FDS + p3_plan_yod_fds(r->opt, r->here_n, r->agent));
	int rc = p3_control_open(&r->c, guard);
	rc = rc ? rc : run_enter_domain(r);
	if (rc)
		return rc;
	conf.nid_base = r->nid_base;
	rc = run_open_parts(r, jid);
	rc = rc ? rc : p3_spawn_environment(&conf);
	if (rc)
		return rc;
	rc = p3_attach_create(r->rdv, &r->attach);
	if (rc) /* the job runs without it, too */
		p3_say("ptlstat will not find this job: %s", strerror(-rc));
	else
		r->answers = p3_answers_create(&r->c.loop, r->attach, run_answered, r);
	conf.give_up_fd[0] = r->end_fd;
	conf.give_up_fd[1] = r->c.alive.fd;
	conf.stdin_fd = r->stdin_fd;
	/* Start all nodes, or stop at a signal that ends the job or at a failed start. */
	for (uint32_t i = 0; i < r->here_n; i++)
		if (run_start_one(r, &conf, r->first + i))
			break;
	FAULT_POINT("yod.started");
	if (r->stdin_fd != STDIN_FILENO)
		close(r->stdin_fd);
	return r->c.output ? p3_output_start(r->c.output) : 0;
}

/* Send yod the statistics, and close the connection. */
static void run_end_agent(struct run *r)
{
	for (uint32_t i = r->first; r->c.stats && i < r->first + r->here_n; i++) {
		size_t len;
		const void *bytes = p3_stats_record(r->c.stats, i, &len);
		struct p3_frame f = {.op = P3_FRAME_STATS, .node = i, .len = len};
		p3_frames_send(&r->agent->conn, f, bytes);
	}
	p3_domain_leave(&r->domain);
	p3_agent_close(r->agent);
}

int p3_run_job(const struct p3_opt *opt, const struct p3_place *place, uint32_t jid,
	const struct p3_guard *guard, struct p3_agent *agent)
{
	struct run *r = calloc(1, sizeof *r + opt->size * sizeof r->rank[0]);
	if (!r) {
		p3_say("out of memory for %u nodes; use fewer, or raise ulimit -v",
			opt->size);
		return P3_STATUS_YOD;
	}
	r->opt = opt;
	r->c = (struct p3_control){
		.opt = opt, .ops = &run_ops, .arg = r, .agent = agent != NULL};
	r->agent = agent;
	r->first = agent ? agent->host->first : 0;
	r->here_n = agent ? agent->host->size : opt->size;
	r->stdin_fd = guard->stdin_fd;
	r->hosts_fd = r->end_fd = -1;
	p3_domain_none(&r->domain);
	r->place = place;
	if (opt->trace && p3_tracefile_open(opt->trace, agent, &r->trace)) {
		free(r);
		return P3_STATUS_YOD;
	}
	if (r->trace)
		p3_tracefile_begin(r->trace, opt->size, jid);
	int rc = run_start(r, jid, guard);
	if (rc) {
		p3_say("cannot start the job: %s; see ulimit -n and ulimit -u",
			strerror(-rc));
		run_fail_start(r, P3_STATUS_YOD);
		r->c.drain_at = 0;
	}
	p3_control_run(&r->c);
	FAULT_POINT("yod.unswept");
	if (!p3_reap_sweep())
		p3_say("some processes of the job do not end (see ps: state D?); left "
		       "behind");
	bool whole = p3_tracefile_close(r->trace);
	whole &= !r->c.output || !p3_output_is_lost(r->c.output);
	if (agent) {
		run_end_agent(r);
	} else {
		if (r->c.stats)
			p3_stats_print(r->c.stats);
		p3_control_run(
			&r->c); /* until the lines are written, or a signal comes */
	}
	p3_answers_destroy(r->answers);
	p3_attach_destroy(r->attach);
	p3_rdv_destroy(r->rdv);
	p3_close(r->hosts_fd);
	p3_taps_destroy(r->taps);
	p3_close(r->end_fd);
	p3_domain_leave(&r->domain);
	int status = p3_control_close(&r->c, whole);
	free(r);
	return status;
}
