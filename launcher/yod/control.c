/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals, time-out and end of a job, wherever its ranks run. */
#include "launcher/yod/yod.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define DRAIN_MS 2000 /* time for the output of an aborted job */

void p3_control_decide(struct p3_control *c, int status)
{
	if (c->decided)
		return;
	c->decided = true;
	c->status = status;
}

void p3_control_enter(struct p3_control *c, enum p3_stage stage, int64_t ms)
{
	c->stage = stage;
	c->stage_at = ms < 0 ? P3_NEVER : p3_now_ms() + ms;
}

void p3_control_kill(struct p3_control *c)
{
	c->hurry = true;
	c->drain_at = p3_now_ms();
	c->ops->end(c->arg, true);
}

/* ---- reports ---- */

void p3_control_reported(struct p3_control *c)
{
	int sig = c->end_signal;
	c->end_signal = 0;
	if (!sig || c->stage != P3_GOING)
		return;
	if (sig == SIGTERM)
		c->ops->end(c->arg, false);
	else
		c->ops->ask(c->arg, sig);
}

/* Report, then end the job: the signal would wake the waiting nodes, and the report would
 * not show their waits. */
static void control_report_and_end(struct p3_control *c, int sig)
{
	c->end_signal = sig;
	if (!c->opt->why_after_ms || !c->ops->report(c->arg))
		p3_control_reported(c);
}

/* ---- signals ---- */

static void control_end_by_signal(struct p3_control *c, int sig)
{
	/* `pkill -QUIT yod` hits yod and the guard, and the guard passes its signal on.
	 * The second signal must cut short neither the report nor the time that the ranks
	 * have to end. */
	if (sig == SIGQUIT && c->hurry && c->status == 128 + sig && c->stage <= P3_ASKED)
		return;
	p3_control_decide(c, 128 + sig);
	if (c->hurry || c->stage != P3_GOING) {
		p3_control_kill(c);
		return;
	}
	if (!c->agent)
		p3_say("signal %d (%s); ending the job", sig, strsignal(sig));
	c->hurry = true;
	if (sig == SIGQUIT)
		control_report_and_end(c, sig);
	else
		c->ops->ask(c->arg, sig);
}

void p3_control_on_signal(struct p3_control *c, int sig)
{
	if (sig == SIGCHLD)
		c->ops->child(c->arg);
	else if (p3_signals_ends(sig))
		control_end_by_signal(c, sig);
	else {
		/* The time-out does not count the time between a stop and its end, and
		 * the age of a barrier begins anew at the end. */
		int64_t now = p3_now_ms();
		if (sig == SIGCONT && c->stopped_at && c->timeout_at != P3_NEVER)
			c->timeout_at += now - c->stopped_at;
		if (sig == SIGCONT && c->stopped_at)
			c->went_on_at = now;
		if (sig == SIGCONT || (sig == SIGTSTP && !c->stopped_at))
			c->stopped_at = sig == SIGTSTP ? now : 0;
		c->ops->signal(c->arg, sig);
	}
}

static void control_on_signals(void *arg)
{
	struct p3_control *c = arg;
	int sig;
	while ((sig = p3_signals_next(c->signals.fd)))
		p3_control_on_signal(c, sig);
}

static void control_on_guard_gone(void *arg)
{
	struct p3_control *c = arg;
	/* The guard's death signal SIGCONT may be yet to come, and this process does not
	 * need it any more.  LeakSanitizer stops a process that ends, and would wait for
	 * ever for a stop that SIGCONT has undone. */
	prctl(PR_SET_PDEATHSIG, 0);
	(void)p3_loop_watch(&c->loop, &c->alive, 0);
	p3_say(c->agent ? "the agent was killed; ending its nodes"
			: "yod was killed; ending the job");
	p3_control_decide(c, 128 + SIGKILL);
	p3_control_kill(c);
}

/* ---- fates ---- */

void p3_control_rank_failed(
	struct p3_control *c, uint32_t rank, pid_t pid, const char *host, int status)
{
	char how[100];
	p3_control_decide(
		c, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
	p3_reap_describe(how, sizeof how, status);
	p3_say("rank %u (pid %d%s%s) %s; %s", rank, (int)pid, host ? " on " : "",
		host ? host : "", how,
		c->opt->keep_going ? "the others go on" : "ending the job");
}

/* ---- the loop ---- */

static void control_see_timeout(struct p3_control *c)
{
	if (c->stopped_at || c->timeout_at > p3_now_ms())
		return;
	c->timeout_at = P3_NEVER;
	if (c->stage != P3_GOING)
		return;
	p3_say("timeout: the job has run for %.3g s (--timeout); ending the job",
		(double)c->opt->timeout_ms / 1000);
	p3_control_decide(c, P3_STATUS_TIMEOUT);
	control_report_and_end(c, SIGTERM);
}

/* Return the time to report the present barrier, or P3_NEVER.  Each barrier is reported
 * once, and the time doubles with each report: most jobs that compute for long do come to
 * their barriers. */
static int64_t control_barrier_at(const struct p3_control *c)
{
	int64_t since = c->ops->barrier(c->arg);
	bool wanted = c->opt->why_after_ms && c->stage == P3_GOING && !c->stopped_at;
	return wanted && since != P3_NEVER && since != c->reported_since
		       ? (since > c->went_on_at ? since : c->went_on_at) + c->why_ms
		       : P3_NEVER;
}

static void control_see_barrier(struct p3_control *c)
{
	if (control_barrier_at(c) > p3_now_ms())
		return;
	c->reported_since = c->ops->barrier(c->arg);
	c->ops->say_barrier(c->arg, (double)c->why_ms / 1000);
	c->why_ms *= 2;
	(void)c->ops->report(c->arg);
}

/* Return true if this output of a job that is over is worth waiting for. */
static bool control_waits_for_output(struct p3_control *c)
{
	bool left = c->ops->owes(c->arg) || (c->output && !p3_output_is_done(c->output));
	if (left && c->hurry && c->drain_at == P3_NEVER)
		c->drain_at = p3_now_ms() + DRAIN_MS;
	return left && c->drain_at > p3_now_ms();
}

void p3_control_run(struct p3_control *c)
{
	bool left;
	while ((left = c->ops->is_left(c->arg)) || control_waits_for_output(c)) {
		int64_t at = p3_earlier(left ? c->turn_at : c->drain_at, c->stage_at);
		if (!c->stopped_at)
			at = p3_earlier(
				at, p3_earlier(c->timeout_at, control_barrier_at(c)));
		p3_loop_run(&c->loop, at);
		c->ops->turn(c->arg);
		control_see_barrier(c);
		control_see_timeout(c);
	}
}

/* ---- begin and end ---- */

int p3_control_open(struct p3_control *c, const struct p3_guard *guard)
{
	c->stage_at = c->turn_at = c->timeout_at = c->drain_at = P3_NEVER;
	c->reported_since = P3_NEVER;
	c->why_ms = c->opt->why_after_ms;
	if (c->opt->timeout_ms)
		c->timeout_at = p3_now_ms() + c->opt->timeout_ms;
	c->alive = (struct p3_loop_fd){
		.fd = guard->alive_fd, .on = control_on_guard_gone, .arg = c};
	c->signals = (struct p3_loop_fd){
		.fd = p3_signals_fd(false), .on = control_on_signals, .arg = c};
	int rc = p3_loop_open(&c->loop);
	rc = rc ? rc : p3_loop_watch(&c->loop, &c->signals, EPOLLIN);
	rc = rc ? rc : p3_loop_watch(&c->loop, &c->alive, EPOLLIN);
	if (c->opt->stats && !(c->stats = p3_stats_create(c->opt->size)))
		rc = rc ? rc : -ENOMEM;
	return rc ? rc : prctl(PR_SET_CHILD_SUBREAPER, 1) ? -errno : 0;
}

int p3_control_close(struct p3_control *c, bool whole)
{
	p3_stats_destroy(c->stats);
	p3_output_close(c->output, c->hurry);
	p3_close(c->signals.fd);
	p3_loop_close(&c->loop);
	return c->status || whole ? c->status : P3_STATUS_YOD;
}
