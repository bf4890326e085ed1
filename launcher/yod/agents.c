/* SPDX-License-Identifier: BSD-3-Clause */
/* A job on several hosts: starting agents, the loop, signals, the end. */
#include "launcher/yod/remote.h"
#include "launcher/loop.h"
#include "shm/conf.h"
#include "shm/job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define DRAIN_MS      2000 /* time for the output of an aborted job */
#define AGAIN_MS      1000
#define SWEEP_MS      5000
#define FDS_OF_RANK   6
#define FDS_OF_HOST   4
#define FDS           64
#define INPUT_AT_ONCE 16384u
#define EVENTS        64
#define TAG_LEN       12

enum key { KEY_SIGNALS, KEY_GUARD, KEY_OUTPUT, KEY_OUTPUT_RX, KEY_INPUT, KEY_QUERY };

/* ---- reports ---- */

/* Return true if reports are under way, after which the signal ends the job. */
static bool agents_reports_first(struct p3_agents *a, int sig)
{
	if (!a->query || !a->go_sent || !a->opt->why_after_ms)
		return false;
	p3_query_begin_own(a->query);
	a->end_signal = p3_query_has_own(a->query) ? sig : 0;
	return a->end_signal != 0;
}

static void agents_signal_all(struct p3_agents *a, int sig)
{
	a->stage = P3_AGENTS_ENDING;
	a->stage_at = p3_now_ms() + P3_AGENTS_SLOW_MS + a->opt->kill_after_ms;
	p3_agents_signal(a, sig);
}

/* End the job when the reports have come. */
static void agents_see_reports(struct p3_agents *a)
{
	int sig = a->end_signal;
	if (!sig || p3_query_has_own(a->query))
		return;
	a->end_signal = 0;
	if (a->stage != P3_AGENTS_GOING)
		return;
	if (sig == SIGTERM)
		p3_agents_end(a, false);
	else
		agents_signal_all(a, sig);
}

/* ---- signals ---- */

static void agents_end_by_signal(struct p3_agents *a, int sig)
{
	bool twice = sig == SIGQUIT && a->hurry && a->status == 128 + sig;
	p3_agents_decide(a, 128 + sig);
	if (twice)
		return;
	bool again = a->hurry || a->stage != P3_AGENTS_GOING;
	if (!again)
		p3_say("signal %d (%s); ending the job", sig, strsignal(sig));
	a->hurry = true;
	if (again)
		a->drain_at = p3_now_ms();
	if (again || !a->go_sent) {
		p3_agents_end(a, true);
		return;
	}
	if (sig != SIGQUIT || !agents_reports_first(a, sig))
		agents_signal_all(a, sig);
}

/* Note a stop or its end.  The time-out does not count the time between them. */
static void agents_note_stop(struct p3_agents *a, bool stops)
{
	if (!stops && a->stopped_at && a->timeout_at != P3_NEVER)
		a->timeout_at += p3_now_ms() - a->stopped_at;
	a->stopped_at = stops ? p3_now_ms() : 0;
}

static void agents_on_signal(struct p3_agents *a, int sig)
{
	if (sig == SIGCHLD) {
		int status;
		for (uint32_t h = 0; h < a->hosts->n; h++)
			if (!a->link[h].exited &&
				p3_reap_fate(a->link[h].rsh.pid, &status)) {
				p3_reap_take(a->link[h].rsh.pid);
				p3_uplink_exited(a, h, status);
			}
		return;
	}
	if (p3_signals_ends(sig)) {
		agents_end_by_signal(a, sig);
		return;
	}
	if (sig == SIGTSTP || sig == SIGCONT)
		agents_note_stop(a, sig == SIGTSTP);
	p3_agents_signal(a, sig);
}

static void agents_on_guard_gone(struct p3_agents *a)
{
	prctl(PR_SET_PDEATHSIG, 0); /* as in run.c */
	epoll_ctl(a->ep, EPOLL_CTL_DEL, a->alive_fd, NULL);
	p3_say("yod was killed; ending the job");
	p3_agents_decide(a, 128 + SIGKILL);
	a->hurry = true;
	a->drain_at = p3_now_ms();
	p3_agents_end(a, true);
}

/* ---- input; rank 0 is on the first host ---- */

static bool agents_may_read(struct p3_agents *a)
{
	return a->in_fd >= 0 && a->go_sent && a->in_room && !a->link[0].closed;
}

static void agents_end_input(struct p3_agents *a)
{
	if (a->in_watched)
		epoll_ctl(a->ep, EPOLL_CTL_DEL, a->in_fd, NULL);
	a->in_watched = false;
	a->in_fd = -1;
}

static void agents_read_input(struct p3_agents *a)
{
	char bytes[INPUT_AT_ONCE];
	size_t room = a->in_room < sizeof bytes ? a->in_room : sizeof bytes;
	if (!agents_may_read(a))
		return;
	ssize_t n = read(a->in_fd, bytes, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	struct p3_frame f = {.op = P3_FRAME_INPUT, .len = n > 0 ? (uint64_t)n : 0};
	p3_frames_send(&a->link[0].conn, f, bytes);
	a->in_room -= f.len;
	if (n <= 0)
		agents_end_input(a);
}

/* Watch the input while there is room for it.  epoll cannot watch a file: read it piece
 * by piece, as there is room. */
static void agents_set_input_watch(struct p3_agents *a)
{
	bool wanted = agents_may_read(a);
	if (a->in_over && a->in_fd >= 0)
		agents_end_input(a);
	else if (a->in_plain && wanted)
		agents_read_input(a);
	else if (!a->in_plain && wanted != a->in_watched) {
		a->in_watched = wanted;
		int op = wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;
		if (p3_watch(a->ep, op, a->in_fd, KEY_INPUT, EPOLLIN) == -EPERM) {
			a->in_plain = true;
			a->in_watched = false;
		}
	}
}

/* ---- output ---- */

static void agents_handed_on(void *arg, uint32_t rank, int which, size_t n)
{
	struct p3_agents *a = arg;
	uint32_t h = (uint32_t)(p3_hosts_of(a->hosts, rank) - a->hosts->host);
	struct p3_frame f = {.op = n ? P3_FRAME_ROOM : P3_FRAME_NO_OUTPUT,
		.node = rank,
		.value = which,
		.number = n};
	if (!a->link[h].closed)
		p3_frames_send(&a->link[h].conn, f, NULL);
}

static void agents_idle_node(void *arg, uint32_t rank, int which, bool idle)
{
	struct p3_agents *a = arg;
	p3_output_idle(a->output, rank, which, idle);
}

/* Name the first file that lacks output; agents_say_lost() names the ranks of all. */
static void agents_lose_output(void *arg, uint32_t rank, int which, int err)
{
	struct p3_agents *a = arg;
	struct p3_ranks ranks = {{0}};
	if (!p3_output_rx_lost(a->output_rx, &ranks))
		p3_outdir_say_lost(a->opt->output_dir, rank, which, err);
}

/* Return false if output of ranks is lost, after a line. */
static bool agents_say_lost(const struct p3_agents *a)
{
	char text[200];
	struct p3_ranks ranks = {{0}};
	uint32_t n = a->output_rx ? p3_output_rx_lost(a->output_rx, &ranks) : 0;
	p3_ranks_print(&ranks, text, sizeof text);
	if (n > 1)
		p3_say("--output-dir: the files of ranks %s in %s lack output", text,
			a->opt->output_dir);
	return !n;
}

/* Give a stream its way: a file, or a pipe to the output. */
static int agents_open_stream(struct p3_agents *a, uint32_t rank, int which)
{
	int ends[2];
	if (a->opt->output_dir_fd >= 0) {
		int fd = p3_outdir_file(a->opt->output_dir_fd, rank, which);
		return fd < 0 ? fd : p3_output_rx_add(a->output_rx, rank, which, fd);
	}
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	int rc = p3_output_add(a->output, rank, which, ends[0]);
	return rc ? rc : p3_output_rx_add(a->output_rx, rank, which, ends[1]);
}

static int agents_open_output(struct p3_agents *a)
{
	static const int to[2] = {STDOUT_FILENO, STDERR_FILENO};
	struct p3_output_rx_conf conf = {.ranks = a->opt->size,
		.handed_on = agents_handed_on,
		.idle = agents_idle_node,
		.lost = agents_lose_output,
		.arg = a};
	bool files = a->opt->output_dir_fd >= 0;
	a->output_rx = p3_output_rx_create(&conf);
	a->output = p3_output_create(files ? 0 : a->opt->size, to);
	if (!a->output_rx || !a->output)
		return -errno;
	if (!a->opt->tag)
		p3_output_set_plain(a->output);
	p3_output_set_remote(a->output);
	int rc = 0;
	for (uint32_t i = 0; i < 2 * a->opt->size && !rc; i++)
		if (!a->opt->only || p3_ranks_has(&a->opt->only_ranks, i / 2))
			rc = agents_open_stream(a, i / 2, (int)(i % 2));
	return rc;
}

static bool agents_output_left(struct p3_agents *a)
{
	if (!a->output || p3_output_is_done(a->output))
		return false; /* or it could not be made */
	if (a->hurry && a->drain_at == P3_NEVER)
		a->drain_at = p3_now_ms() + DRAIN_MS;
	return a->drain_at > p3_now_ms();
}

/* ---- the loop ---- */

static void agents_fail_start(struct p3_agents *a)
{
	p3_agents_decide(a, P3_STATUS_YOD);
	p3_agents_end(a, true);
}

static void agents_on_event(struct p3_agents *a, uint64_t key)
{
	int sig;
	if (key >= P3_AGENTS_KEY) {
		p3_uplink_receive(a, (uint32_t)(key - P3_AGENTS_KEY));
		return;
	}
	switch ((enum key)key) {
	case KEY_SIGNALS:
		while ((sig = p3_signals_next(a->signals)))
			agents_on_signal(a, sig);
		return;
	case KEY_GUARD:
		agents_on_guard_gone(a);
		return;
	case KEY_OUTPUT:
		p3_output_step(a->output);
		return;
	case KEY_OUTPUT_RX:
		p3_output_rx_step(a->output_rx);
		return;
	case KEY_INPUT:
		agents_read_input(a);
		return;
	case KEY_QUERY:
		p3_query_step(a->query);
		return;
	}
}

static void agents_on_timeout(struct p3_agents *a)
{
	a->timeout_at = P3_NEVER;
	if (a->stage != P3_AGENTS_GOING)
		return;
	p3_say("timeout: the job has run for %.3g s (--timeout); ending the job",
		(double)a->opt->timeout_ms / 1000);
	p3_agents_decide(a, P3_STATUS_TIMEOUT);
	if (!agents_reports_first(a, SIGTERM))
		p3_agents_end(a, false);
}

/* Give up agents that do not end although they were told to.  Look twice: if yod itself
 * was stopped, they have not had the time that the clock shows. */
static void agents_on_slow(struct p3_agents *a)
{
	a->stage_at = a->slow ? P3_NEVER : p3_now_ms() + AGAIN_MS;
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
	if (!a->stopped_at && a->timeout_at <= now)
		agents_on_timeout(a);
	if (a->stage_at <= now)
		agents_on_slow(a);
	if (!a->stopped_at && a->why_at <= now) {
		p3_agents_say_barrier(a);
		if (a->query)
			p3_query_begin_own(a->query);
	}
	agents_see_reports(a);
	for (uint32_t h = 0; h < a->hosts->n; h++) {
		p3_uplink_see_wait(a, h);
		p3_uplink_beat(a, h);
	}
}

static int agents_wait_ms(const struct p3_agents *a, bool left)
{
	int64_t at = p3_earlier(a->stage_at, left ? P3_NEVER : a->drain_at);
	if (!a->stopped_at)
		at = p3_earlier(at, p3_earlier(a->timeout_at, a->why_at));
	for (uint32_t h = 0; h < a->hosts->n; h++) {
		at = p3_earlier(at, p3_beat_at(&a->link[h].beat));
		at = p3_earlier(at, a->link[h].greet_at);
		if (a->link[h].exited != a->link[h].closed)
			at = p3_earlier(at, a->link[h].over_at);
		if (!a->link[h].exited)
			at = p3_earlier(at, a->link[h].end_at);
	}
	if (a->in_plain && a->in_fd >= 0 && a->in_room && a->go_sent &&
		!a->link[0].closed)
		return 0;
	int64_t ms = at == P3_NEVER ? 100000 : at - p3_now_ms();
	return ms < 0 ? 0 : ms > 100000 ? 100000 : (int)ms + 1;
}

static void agents_loop(struct p3_agents *a)
{
	for (;;) {
		bool left = false;
		for (uint32_t h = 0; h < a->hosts->n; h++)
			left |= !p3_uplink_is_over(a, h);
		if (!left && !agents_output_left(a))
			return;
		struct epoll_event ev[EVENTS];
		int n = epoll_wait(a->ep, ev, EVENTS, agents_wait_ms(a, left));
		for (int k = 0; k < n; k++)
			agents_on_event(a, ev[k].data.u64);
		agents_on_deadlines(a);
		if (p3_uplink_start_more(a))
			agents_fail_start(a);
		agents_set_input_watch(a);
		for (uint32_t h = 0; h < a->hosts->n; h++)
			p3_uplink_flush(a, h);
	}
}

/* ---- starting ---- */

static int agents_open_parts(struct p3_agents *a, const struct p3_guard *guard)
{
	a->alive_fd = guard->alive_fd;
	a->in_fd = guard->stdin_fd;
	a->ep = epoll_create1(EPOLL_CLOEXEC);
	if (a->ep < 0)
		return -errno;
	a->signals = p3_signals_fd();
	if (a->signals < 0)
		return a->signals;
	a->self = p3_rsh_own_path();
	if (a->opt->stats)
		a->stats = p3_stats_create(a->opt->size);
	if (!a->self || (a->opt->stats && !a->stats))
		return -ENOMEM;
	int rc = agents_open_output(a);
	rc = rc ? rc : p3_watch_input(a->ep, a->signals, KEY_SIGNALS);
	rc = rc ? rc : p3_watch_input(a->ep, a->alive_fd, KEY_GUARD);
	rc = rc ? rc
		: p3_watch_input(a->ep, p3_output_rx_fd(a->output_rx), KEY_OUTPUT_RX);
	rc = rc ? rc : p3_watch_input(a->ep, p3_output_fd(a->output), KEY_OUTPUT);
	if (!rc && prctl(PR_SET_CHILD_SUBREAPER, 1))
		rc = -errno;
	return rc ? rc : p3_output_start(a->output);
}

/* Open the service for ptlstat --hosts; the job runs without it, too. */
static void agents_open_query(struct p3_agents *a)
{
	int rc = p3_query_create(a, &a->query);
	if (!rc)
		rc = p3_watch_input(a->ep, p3_query_fd(a->query), KEY_QUERY);
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
	a->in_room = P3_FRAMES_ROOM;
	a->ep = a->signals = -1;
	a->stage_at = a->timeout_at = a->drain_at = a->why_at = P3_NEVER;
	if (opt->timeout_ms)
		a->timeout_at = p3_now_ms() + opt->timeout_ms;
	a->why_ms = opt->why_after_ms;
	for (uint32_t h = 0; h < opt->hosts.n; h++) {
		a->link[h].closed = a->link[h].exited = true;
		a->link[h].over_at = a->link[h].end_at = P3_NEVER;
		a->link[h].greet_at = P3_NEVER;
		a->link[h].trace = -1;
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
		a->drain_at = 0;
	}
	agents_loop(a);
	(void)p3_reap_sweep(SWEEP_MS); /* the guard says so if any are left */
	int status = a->status;
	bool whole = p3_agents_close_traces(a);
	whole &= agents_say_lost(a) && !(a->output && p3_output_is_lost(a->output));
	if (a->stats)
		p3_stats_print(a->stats);
	agents_loop(a); /* until the lines are written, or a signal comes */
	p3_query_destroy(a->query);
	p3_output_rx_destroy(a->output_rx);
	p3_stats_destroy(a->stats);
	p3_output_close(a->output, a->hurry);
	close(a->ep);
	close(a->signals);
	p3_rsh_free(&a->rsh);
	free(a->self);
	free(a->cards);
	free(a->rank);
	free(a);
	return status || whole ? status : P3_STATUS_YOD;
}
