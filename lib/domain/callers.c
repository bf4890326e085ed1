/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The callers: connections of other hosts that are not authenticated yet.  They change
 * nothing until their calls are open; then remote.c adopts them.
 */
#include "lib/domain/meeting.h"
#include "shm/fault.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CALLS      64                   /* connections accepted in a row */
#define CROWDED_NS UINT64_C(1000000000) /* time while further calls wait */

static struct p3_wireup *wireup_of(const struct p3_meeting *m)
{
	return m->node->wireup;
}

/* ---- printing lines, each once ---- */

/* Return true if a line is to be printed for the first time, and the caller's address. */
static bool is_first(bool *said, const struct p3_card *at, char from[P3_BEACON_TEXT])
{
	bool first = !*said;
	*said = true;
	p3_beacon_print(at, from);
	return first;
}

/* Return true while ranks of the job may be among slow callers: not all have made their
 * first connection. */
static bool is_starting(const struct p3_wireup *w)
{
	for (uint32_t i = 0; i < w->size; i++)
		if (p3_wireup_is_far(w, i) && !w->remote[i].ended && !w->remote[i].begun)
			return true;
	return false;
}

static void say_not_of_job(struct p3_wireup *w, const struct p3_card *at)
{
	char from[P3_BEACON_TEXT];
	if (is_first(&w->said_not_of_job, at, from))
		p3_warn("a program at %s connects to this job and does not know its "
			"secret; it and all that follow are turned away (see which "
			"program that is, and whether PTL3_FABRIC_NET names a private "
			"network)",
			from);
}

/* The caller may be a rank that was stopped while it called. */
static void say_mute(struct p3_wireup *w, const struct p3_card *at)
{
	char from[P3_BEACON_TEXT];
	if (!is_starting(w) && is_first(&w->said_mute, at, from))
		p3_warn("a program at %s has connected to rank %u and has not said for "
			"%u s that it is of this job; it and all that follow are turned "
			"away (see which program that is, or whether that rank is "
			"stopped)",
			from, w->rank, (uint32_t)(P3_AUTH_NS / 1000000000));
}

static void say_crowd(struct p3_wireup *w, const struct p3_card *at)
{
	char from[P3_BEACON_TEXT];
	if (!is_starting(w) && is_first(&w->said_crowd, at, from))
		p3_warn("more than %u programs at a time, one of them at %s, are "
			"connected to rank %u and have not proven that they are of this "
			"job; the oldest are turned away (see which programs these are, "
			"and whether PTL3_FABRIC_NET names a private network)",
			P3_UNAUTH_MOST, from, w->rank);
}

static void say_no_fds(struct p3_wireup *w, int why)
{
	if (!w->said_no_fds)
		p3_warn("rank %u cannot accept the calls of other hosts now: %s; "
			"their ranks wait; raise ulimit -n (one descriptor "
			"for each rank on another host, and some for calls)",
			w->rank, strerror(-why));
	w->said_no_fds = true;
}

/* ---- calls ---- */

static void receive_unauth(struct p3_meeting *m, struct p3_unauth *s)
{
	int rc = p3_call_go_on(&s->call);
	if (rc == 0)
		p3_meet_adopt(m, s);
	else if (rc == -EACCES)
		say_not_of_job(wireup_of(m), &s->from);
	if (rc && rc != -EAGAIN)
		p3_meet_close_call(m, &s->call);
}

/* Return a free entry for a new connection, or NULL. */
static struct p3_unauth *free_unauth(struct p3_wireup *w)
{
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		if (w->unauth[i].call.state == P3_CALL_NONE)
			return &w->unauth[i];
	return NULL;
}

/* Close the connections that have been unauthenticated for longer than ns, after a last
 * look at their bytes.  If such a caller is of the job, it calls again. */
static void close_slow(struct p3_meeting *m, uint64_t ns)
{
	struct p3_wireup *w = wireup_of(m);
	uint64_t now = p3_now_ns();
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++) {
		struct p3_unauth *s = &w->unauth[i];
		if (now - s->call.since_ns <= ns)
			continue;
		receive_unauth(m, s);
		if (s->call.state != P3_CALL_NONE && ns == P3_AUTH_NS)
			say_mute(w, &s->from);
		else if (s->call.state != P3_CALL_NONE)
			say_crowd(w, &s->from);
		p3_meet_close_call(m, &s->call);
	}
}

/* Return a free entry for a new connection, or NULL.  If all are in use, first read from
 * all of them, since a proof may lie unread, and then close the slow ones. */
static struct p3_unauth *make_room(struct p3_meeting *m)
{
	struct p3_wireup *w = wireup_of(m);
	struct p3_unauth *s = free_unauth(w);
	for (uint32_t i = 0; !s && i < P3_UNAUTH_MOST; i++)
		receive_unauth(m, &w->unauth[i]);
	s = s ? s : free_unauth(w);
	if (!s)
		close_slow(m, CROWDED_NS);
	return s ? s : free_unauth(w);
}

static void pause_accept(struct p3_meeting *m)
{
	struct p3_wireup *w = wireup_of(m);
	w->accept_paused = true;
	(void)p3_meet_watch(m, EPOLL_CTL_DEL, (int)p3_get(&w->beacon), P3_MEET_BEACON, 0);
}

static void resume_accept(struct p3_meeting *m)
{
	struct p3_wireup *w = wireup_of(m);
	if (w->accept_paused)
		w->accept_paused =
			p3_meet_watch(m, EPOLL_CTL_ADD, (int)p3_get(&w->beacon),
				P3_MEET_BEACON, 0) != 0;
}

/* Accept one call.  Return 0 or -errno. */
static int answer_call(struct p3_meeting *m, struct p3_unauth *s)
{
	struct p3_wireup *w = wireup_of(m);
	int fd = p3_beacon_accept((int)p3_get(&w->beacon), w->timeout_s, &s->from);
	if (fd < 0)
		return fd;
	FAULT_POINT("remote.called");
	if (!p3_wireup_is_of_job(w, &s->from)) {
		say_not_of_job(w, &s->from);
		close(fd);
		return 0;
	}
	p3_call_accept(&s->call, fd, &w->secret, w->rank);
	p3_meet_add_call(m, &s->call, P3_MEET_UNAUTH, (uint32_t)(s - w->unauth));
	return 0;
}

/* Accept calls while there is room for them.  The others wait in the kernel.  Do not
 * watch the beacon until the next check, since epoll would report them all the time. */
static void answer_calls(struct p3_meeting *m)
{
	int rc = 0;
	for (int i = 0; i < CALLS && !rc; i++) {
		struct p3_unauth *s = make_room(m);
		rc = s ? answer_call(m, s) : -EBUSY;
	}
	bool out_of_fds = rc != -EAGAIN && p3_job_passes(rc);
	if (out_of_fds)
		say_no_fds(wireup_of(m), rc);
	if (out_of_fds || rc == -EBUSY)
		pause_accept(m);
}

/* ---- for the domain's thread ---- */

void p3_meet_on_caller(struct p3_meeting *m, enum p3_meet_watch what, uint32_t which)
{
	if (what == P3_MEET_BEACON)
		answer_calls(m);
	else
		receive_unauth(m, &wireup_of(m)->unauth[which]);
}

void p3_meet_begin_callers(struct p3_meeting *m)
{
	struct p3_wireup *w = wireup_of(m);
	if (!w)
		return;
	w->accept_paused = false;
	if (p3_meet_watch(m, EPOLL_CTL_ADD, (int)p3_get(&w->beacon), P3_MEET_BEACON, 0))
		p3_warn("the calls of other hosts cannot be waited for");
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		if (w->unauth[i].call.state != P3_CALL_NONE)
			p3_meet_add_call(m, &w->unauth[i].call, P3_MEET_UNAUTH, i);
}

void p3_meet_check_callers(struct p3_meeting *m)
{
	if (!wireup_of(m))
		return;
	close_slow(m, P3_AUTH_NS);
	resume_accept(m);
}

bool p3_meet_callers_wait(const struct p3_meeting *m)
{
	return wireup_of(m) && wireup_of(m)->accept_paused;
}

void p3_meet_answer_callers(struct p3_meeting *m)
{
	struct p3_wireup *w = wireup_of(m);
	answer_calls(m);
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		if (w->unauth[i].call.state != P3_CALL_NONE)
			receive_unauth(m, &w->unauth[i]);
}
