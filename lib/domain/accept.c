/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that begin: those of other processes of this host, which this node calls or
 * which call it, until they introduce themselves; and those of other hosts, until they
 * are authenticated.  The latter change nothing until their calls are open; then remote.c
 * adopts them.
 */
#include "lib/domain/internal.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CALLS      2048 /* calls of this host in a row: more than can be pending */
#define FAR_CALLS  64   /* calls of other hosts in a row */
#define SILENT_NS  (2 * (uint64_t)P3_SETTLE_NS)
#define CROWDED_NS UINT64_C(1000000000) /* time while further calls wait */

/* ---- room ---- */

/* Stop watching a socket for calls until the next check tries again, since epoll would
 * report those without room all the time.  They wait in the kernel. */
static void accept_pause(
	struct p3_mesh *m, bool *paused, const p3_a32 *fd, enum p3_mesh_watch what)
{
	*paused = true;
	(void)p3_mesh_watch(m, EPOLL_CTL_DEL, p3_mesh_fd(fd), what, 0);
}

static void accept_resume(
	struct p3_mesh *m, bool *paused, const p3_a32 *fd, enum p3_mesh_watch what)
{
	if (*paused)
		*paused = p3_mesh_watch(m, EPOLL_CTL_ADD, p3_mesh_fd(fd), what, 0) != 0;
}

/* ---- this host ---- */

/* Return true for an accepted connection that has not introduced itself.  A called
 * member is a member even while it is stopped. */
static bool conn_is_silent(const struct p3_mesh_conn *c)
{
	return p3_mesh_fd(&c->fd) >= 0 && c->called == P3_MESH_NONE &&
	       c->slot == P3_MESH_NONE;
}

/* Hang up a connection whose process has not introduced itself.  This node has told that
 * process nothing, so a live process sees the end of file and calls again. */
static void conn_close_silent(struct p3_mesh *m, struct p3_mesh_conn *c, const char *why)
{
	p3_mesh_receive(m, c);
	if (!conn_is_silent(c))
		return;
	p3_mesh_say_breach(m, c, why);
	p3_mesh_hang_up(m, c);
}

/* Return the process that has more than half of the silent connections, if one has: the
 * candidate of the majority vote of Boyer and Moore. */
static uint32_t conn_silent_candidate(const struct p3_mesh *m)
{
	uint32_t pid = 0, lead = 0;
	for (uint32_t i = 0; i < m->nconn; i++) {
		if (!conn_is_silent(&m->conn[i]))
			continue;
		if (!lead)
			pid = m->conn[i].os_pid;
		lead += m->conn[i].os_pid == pid ? 1 : (uint32_t)-1;
	}
	return pid;
}

static struct p3_mesh_conn *conn_older(struct p3_mesh_conn *a, struct p3_mesh_conn *b)
{
	return !a || b->since_ns < a->since_ns ? b : a;
}

/* Return the silent connection to close for want of room, or NULL: the oldest one of a
 * process that has more than half of them, and so not that of a newcomer that is about to
 * introduce itself; else the oldest of all. */
static struct p3_mesh_conn *conn_oldest_silent(struct p3_mesh *m)
{
	struct p3_mesh_conn *oldest = NULL, *of_crowd = NULL;
	uint32_t pid = conn_silent_candidate(m), crowd = 0, all = 0;
	for (uint32_t i = 0; i < m->nconn; i++) {
		struct p3_mesh_conn *c = &m->conn[i];
		if (!conn_is_silent(c))
			continue;
		all++;
		oldest = conn_older(oldest, c);
		if (c->os_pid != pid)
			continue;
		crowd++;
		of_crowd = conn_older(of_crowd, c);
	}
	return 2 * crowd > all ? of_crowd : oldest;
}

static struct p3_mesh_conn *conn_find_free(struct p3_mesh *m)
{
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_mesh_fd(&m->conn[i].fd) < 0)
			return &m->conn[i];
	return NULL;
}

/* Return a free connection; close a silent one if there is none. */
static struct p3_mesh_conn *conn_make_room(struct p3_mesh *m)
{
	struct p3_mesh_conn *c = conn_find_free(m), *silent;
	while (!c && (silent = conn_oldest_silent(m))) {
		conn_close_silent(m, silent,
			"takes the last connection, and does not say who it is");
		c = conn_find_free(m);
	}
	return c;
}

/* Set up a connection on fd.  If this node has called a member, introduce this node; a
 * caller (called is P3_MESH_NONE) has to introduce itself first. */
static void conn_greet(struct p3_mesh *m, struct p3_mesh_conn *c, int fd, uint32_t called)
{
	struct ucred who;
	socklen_t len = sizeof who;
	p3_set(&c->fd, (uint32_t)fd);
	c->called = called;
	c->slot = P3_MESH_NONE;
	c->since_ns = p3_now_ns();
	bool ok = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
		  who.uid == geteuid();
	c->awaited = called != P3_MESH_NONE && !m->met;
	c->os_pid = ok ? (uint32_t)who.pid : 0;
	int rc = ok ? p3_mesh_watch(
			      m, EPOLL_CTL_ADD, fd, P3_MESH_CONN, (uint32_t)(c - m->conn))
		    : 0;
	if (!ok || rc)
		p3_mesh_close(&c->fd);
	FAULT_POINT("meet.connected");
	if (ok && !rc && called != P3_MESH_NONE)
		rc = p3_mesh_send_born(m, c);
	m->rescan |= rc != 0;
	if (!ok || rc)
		p3_mesh_hang_up(m, c);
}

/* Accept one call.  Return 0, -EAGAIN if there is none, or another -errno if there is no
 * room. */
static int accept_one(struct p3_mesh *m)
{
	struct pollfd caller = {.fd = p3_mesh_fd(&m->listen), .events = POLLIN};
	if (poll(&caller, 1, 0) <= 0)
		return -EAGAIN;
	struct p3_mesh_conn *c = conn_make_room(m);
	if (!c)
		return -EMFILE;
	int fd = p3_fd_high(accept4(caller.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
	conn_greet(m, c, fd, P3_MESH_NONE);
	return 0;
}

/* Without room, hang up silent connections; if there are none, pause. */
void p3_mesh_accept(struct p3_mesh *m)
{
	struct p3_mesh_conn *silent;
	int rc = 0;
	for (int i = 0; i < CALLS && !rc; i++) {
		rc = accept_one(m);
		if (!rc || rc == -EAGAIN || !(silent = conn_oldest_silent(m)))
			continue;
		conn_close_silent(
			m, silent, "takes a descriptor, and does not say who it is");
		rc = 0;
	}
	if (rc && rc != -EAGAIN)
		accept_pause(m, &m->accept_paused, &m->listen, P3_MESH_LISTEN);
}

void p3_mesh_resume_accept(struct p3_mesh *m)
{
	accept_resume(m, &m->accept_paused, &m->listen, P3_MESH_LISTEN);
}

bool p3_mesh_close_mute(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	if (!conn_is_silent(c) || p3_now_ns() - c->since_ns <= SILENT_NS)
		return false;
	conn_close_silent(m, c, "connects, and does not say who it is");
	return true;
}

static bool member_is_met(const struct p3_mesh *m, uint32_t slot)
{
	if (m->member[slot].incarnation)
		return true;
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_mesh_fd(&m->conn[i].fd) >= 0 &&
			(m->conn[i].called == slot || m->conn[i].slot == slot))
			return true;
	return false;
}

/* Call all members that are not met, dead or this node.  A member that does not listen
 * yet looks for this node when it does. */
void p3_mesh_scan(struct p3_mesh *m)
{
	uint64_t slots[P3_MAX_NODES / 64];
	m->rescan = p3_domain_list(&m->place, slots) != 0;
	for (uint32_t i = 0; i < m->nmember; i++) {
		if (!(slots[i / 64] >> i % 64 & 1))
			continue;
		if (i != m->place.slot && !member_is_met(m, i) &&
			!p3_domain_reap(&m->place, i)) {
			struct p3_mesh_conn *c = conn_find_free(m);
			int fd = c ? p3_domain_call(&m->place, i) : -EMFILE;
			if (fd >= 0)
				conn_greet(m, c, fd, i);
			else
				m->rescan |= fd != -ECONNREFUSED && fd != -ENOENT;
		}
		FAULT_POINT("meet.calls_half");
	}
}

/* ---- other hosts: lines, each once ---- */

/* Return true if a line is to be printed for the first time, and the caller's address. */
static bool caller_is_first(bool *said, const struct p3_card *at, char from[P3_TCP_TEXT])
{
	bool first = !*said;
	*said = true;
	p3_tcp_print_address(at, from);
	return first;
}

/* Return true while ranks of the job may be among slow callers: not all have made their
 * first connection. */
static bool caller_may_be_rank(const struct p3_modex *w)
{
	for (uint32_t i = 0; i < w->size; i++)
		if (p3_modex_is_far(w, i) && !w->remote[i].ended && !w->remote[i].begun)
			return true;
	return false;
}

static void caller_say_not_of_job(struct p3_modex *w, const struct p3_card *at)
{
	char from[P3_TCP_TEXT];
	if (caller_is_first(&w->said_not_of_job, at, from))
		p3_warn("a program at %s connects to this job and does not know its "
			"secret; it and all that follow are turned away (see which "
			"program that is, and whether PTL3_FABRIC_NET names a private "
			"network)",
			from);
}

/* The caller may be a rank that was stopped while it called. */
static void caller_say_mute(struct p3_modex *w, const struct p3_card *at)
{
	char from[P3_TCP_TEXT];
	if (!caller_may_be_rank(w) && caller_is_first(&w->said_mute, at, from))
		p3_warn("a program at %s has connected to rank %u and has not said for "
			"%u s that it is of this job; it and all that follow are turned "
			"away (see which program that is, or whether that rank is "
			"stopped)",
			from, w->rank, (uint32_t)(P3_AUTH_NS / 1000000000));
}

static void caller_say_crowd(struct p3_modex *w, const struct p3_card *at)
{
	char from[P3_TCP_TEXT];
	if (!caller_may_be_rank(w) && caller_is_first(&w->said_crowd, at, from))
		p3_warn("more than %u programs at a time, one of them at %s, are "
			"connected to rank %u and have not proven that they are of this "
			"job; the oldest are turned away (see which programs these are, "
			"and whether PTL3_FABRIC_NET names a private network)",
			P3_UNAUTH_MOST, from, w->rank);
}

/* ---- other hosts: calls ---- */

static void caller_receive(struct p3_mesh *m, struct p3_unauth *s)
{
	int rc = p3_call_go_on(&s->call);
	if (rc == 0)
		p3_mesh_adopt(m, s);
	else if (rc == -EACCES)
		caller_say_not_of_job(m->node->modex, &s->from);
	if (rc && rc != -EAGAIN)
		p3_mesh_close_call(m, &s->call);
}

/* Return a free entry for a new connection, or NULL. */
static struct p3_unauth *caller_find_free(struct p3_modex *w)
{
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		if (w->unauth[i].call.state == P3_CALL_NONE)
			return &w->unauth[i];
	return NULL;
}

/* Close the connections that have been unauthenticated for longer than ns, after a last
 * look at their bytes.  If such a caller is of the job, it calls again. */
static void caller_close_slow(struct p3_mesh *m, uint64_t ns)
{
	struct p3_modex *w = m->node->modex;
	uint64_t now = p3_now_ns();
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++) {
		struct p3_unauth *s = &w->unauth[i];
		if (now - s->call.since_ns <= ns)
			continue;
		caller_receive(m, s);
		if (s->call.state != P3_CALL_NONE && ns == P3_AUTH_NS)
			caller_say_mute(w, &s->from);
		else if (s->call.state != P3_CALL_NONE)
			caller_say_crowd(w, &s->from);
		p3_mesh_close_call(m, &s->call);
	}
}

/* Return a free entry for a new connection, or NULL.  If all are in use, first read from
 * all of them, since a proof may lie unread, and then close the slow ones. */
static struct p3_unauth *caller_make_room(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	struct p3_unauth *s = caller_find_free(w);
	for (uint32_t i = 0; !s && i < P3_UNAUTH_MOST; i++)
		caller_receive(m, &w->unauth[i]);
	s = s ? s : caller_find_free(w);
	if (!s)
		caller_close_slow(m, CROWDED_NS);
	return s ? s : caller_find_free(w);
}

/* Accept one call.  Return 0 or -errno. */
static int caller_accept_one(struct p3_mesh *m, struct p3_unauth *s)
{
	struct p3_modex *w = m->node->modex;
	int fd = p3_tcp_accept((int)p3_get(&w->listener), w->timeout_s, &s->from);
	if (fd < 0)
		return fd;
	FAULT_POINT("remote.called");
	if (!p3_modex_is_of_job(w, &s->from)) {
		caller_say_not_of_job(w, &s->from);
		close(fd);
		return 0;
	}
	p3_call_accept(&s->call, fd, &w->secret, w->rank);
	p3_mesh_add_call(m, &s->call, P3_MESH_UNAUTH, (uint32_t)(s - w->unauth));
	return 0;
}

/* Accept calls while there is room for them. */
static void caller_accept(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	int rc = 0;
	for (int i = 0; i < FAR_CALLS && !rc; i++) {
		struct p3_unauth *s = caller_make_room(m);
		rc = s ? caller_accept_one(m, s) : -EBUSY;
	}
	bool out_of_fds = rc != -EAGAIN && p3_job_passes(rc);
	if (out_of_fds && !w->said_no_fds)
		p3_warn("rank %u cannot accept the calls of other hosts now: %s; "
			"their ranks wait; raise ulimit -n (one descriptor "
			"for each rank on another host, and some for calls)",
			w->rank, strerror(-rc));
	w->said_no_fds |= out_of_fds;
	if (out_of_fds || rc == -EBUSY)
		accept_pause(m, &w->accept_paused, &w->listener, P3_MESH_TCP_LISTEN);
}

void p3_mesh_on_caller(struct p3_mesh *m, enum p3_mesh_watch what, uint32_t which)
{
	if (what == P3_MESH_TCP_LISTEN)
		caller_accept(m);
	else
		caller_receive(m, &m->node->modex->unauth[which]);
}

void p3_mesh_begin_callers(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	if (!w)
		return;
	w->accept_paused = false;
	if (p3_mesh_watch(
		    m, EPOLL_CTL_ADD, (int)p3_get(&w->listener), P3_MESH_TCP_LISTEN, 0))
		p3_warn("the calls of other hosts cannot be waited for");
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		if (w->unauth[i].call.state != P3_CALL_NONE)
			p3_mesh_add_call(m, &w->unauth[i].call, P3_MESH_UNAUTH, i);
}

void p3_mesh_check_callers(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	if (!w)
		return;
	caller_close_slow(m, P3_AUTH_NS);
	accept_resume(m, &w->accept_paused, &w->listener, P3_MESH_TCP_LISTEN);
}

bool p3_mesh_callers_wait(const struct p3_mesh *m)
{
	return m->node->modex && m->node->modex->accept_paused;
}

void p3_mesh_answer_callers(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	caller_accept(m);
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		if (w->unauth[i].call.state != P3_CALL_NONE)
			caller_receive(m, &w->unauth[i]);
}
