/* SPDX-License-Identifier: BSD-3-Clause */
/* A job on several hosts: starting agents, the loop, signals, the end. */
#include "launcher/yod/remote.h"
#include "shm/conf.h"
#include "shm/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define AGAIN_MS    1000
#define SWEEP_MS    5000
#define FDS_OF_RANK 2
#define FDS_OF_HOST 4
#define FDS         64
#define TAG_LEN     12

/* ---- the ends of a job (control) ---- */

/* Return true if reports are under way. */
static bool agents_report(void *arg)
{
	struct p3_agents *a = arg;
	if (!a->query || !a->go_sent)
		return false;
	p3_query_begin_own(a->query);
	return p3_query_has_own(a->query);
}

static void agents_ask(void *arg, int sig)
{
	struct p3_agents *a = arg;
	if (!a->go_sent) {
		p3_agents_end(a, true);
		return;
	}
	p3_control_enter(&a->c, P3_ASKED, P3_AGENTS_SLOW_MS + a->opt->kill_after_ms);
	p3_agents_signal(a, sig);
}

static void agents_end(void *arg, bool now)
{
	p3_agents_end(arg, now);
}

static void agents_pass_signal(void *arg, int sig)
{
	p3_agents_signal(arg, sig);
}

static void agents_reap_shells(void *arg)
{
	struct p3_agents *a = arg;
	int status;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (!a->link[h].exited && p3_reap_fate(a->link[h].rsh.pid, &status)) {
			p3_reap_take(a->link[h].rsh.pid);
			p3_uplink_exited(a, h, status);
		}
}

static const struct p3_control_ops agents_ops = {.signal = agents_pass_signal,
	.child = agents_reap_shells,
	.ask = agents_ask,
	.end = agents_end,
	.report = agents_report};

/* ---- the loop ---- */

static void agents_fail_start(struct p3_agents *a)
{
	p3_control_decide(&a->c, P3_STATUS_YOD);
	p3_agents_end(a, true);
}

/* Give up agents that do not end although they were told to.  Look twice: if yod itself
 * was stopped, they have not had the time that the clock shows. */
static void agents_on_slow(struct p3_agents *a)
{
	a->c.stage_at = a->slow ? P3_NEVER : p3_now_ms() + AGAIN_MS;
	a->slow = !a->slow;
	if (a->slow)
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
		p3_uplink_cut(a, h);
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
			p3_query_begin_own(a->query);
	}
	for (uint32_t h = 0; h < a->hosts->n; h++)
		p3_uplink_see_wait(a, h);
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
			left |= !p3_uplink_is_over(a, h);
		bool output = p3_forward_owes(a) ||
			      (a->c.output && !p3_output_is_done(a->c.output));
		if (!left && !p3_control_waits_for_output(&a->c, output))
			return;
		p3_loop_run(&a->c.loop, agents_next_deadline(a, left));
		agents_on_deadlines(a);
		if (p3_uplink_start_more(a))
			agents_fail_start(a);
	}
}

/* ---- starting ---- */

static int agents_open_parts(struct p3_agents *a, const struct p3_guard *guard)
{
	a->stdin_fd = guard->stdin_fd;
	int rc = p3_control_open(&a->c, guard);
	if (rc)
		return rc;
	a->self = p3_own_path(NULL);
	if (!a->self)
		return -ENOMEM;
	rc = p3_forward_open(a);
	return rc ? rc : p3_output_start(a->c.output);
}

/* Open the service for ptlstat --hosts; the job runs without it, too. */
static void agents_open_query(struct p3_agents *a)
{
	int rc = p3_query_create(a, &a->query);
	if (rc)
		p3_say("ptlstat --hosts will not find this job: %s", strerror(-rc));
}

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
	int rc = agents_open_parts(a, guard);
	if (rc)
		p3_say("cannot start the job: %s; see ulimit -n and ulimit -u",
			strerror(-rc));
	const char *rsh = a->opt->rsh ? a->opt->rsh : p3_conf_text(P3_CONF_RSH);
	rsh = rsh ? rsh : p3_conf_row(P3_CONF_RSH)->usual;
	rc = rc ? rc : p3_rsh_parse(rsh, &a->rsh);
	rc = rc ? rc : p3_agents_open_traces(a);
	rc = rc ? rc : agents_make_spec(a);
	rc = rc ? rc : p3_uplink_start_more(a);
	if (!rc)
		agents_open_query(a);
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
		a->link[h].trace = -1;
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
	p3_rsh_free(&a->rsh);
	free(a->self);
	free(a->cards);
	free(a->rank);
	free(a);
	return status;
}
