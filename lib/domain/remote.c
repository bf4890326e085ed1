/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks on other hosts: their connections, births and ends; and calls from other
 * hosts, which change nothing until they are authenticated.
 *
 * A connection speaks for a process.  Over it the process sends BORN when it opens an
 * interface, and again when its process ids change, and LEAVE when it closes the last
 * one.
 *
 * This thread makes the connections (call.c), and gives each to the streams
 * (nic/streams.h), which tell what comes, and when a connection has broken.  A connection
 * that breaks is no end (docs/design/wire-between-hosts.md).  The caller calls again, and
 * packets go on where they were.  Meanwhile the called looks for the caller by a probe: a
 * call in the other direction.  The caller closes a probe when both ends are
 * authenticated, or answers it by DROPPED if it treats the called as ended.  If its own
 * calls are in vain, since a firewall lets through connections of one direction only, it
 * gives the probe to its streams, whose first packet tells the called so.
 *
 *	no connection --call or probe refused--> ended
 *		      --call answered----------> connected
 *		      --silence too long-------> ended
 *
 * One clock.  The kernel tells when the other host last acknowledged bytes or a keepalive
 * on the connection.  It tells less while the other process is stopped and has no room
 * for bytes, and it cannot tell whether a firewall has forgotten the connection.  So
 * after QUIET_MS of silence a process calls or probes beside its connection.  If the
 * other host confirms the first bytes of that call, it lives, and if the process answers,
 * the new connection replaces the old one.  A call that is only taken shows nothing: all
 * that follows may be lost.
 */
#include "lib/domain/internal.h"
#include "shm/fault.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define AWAIT_CALL_NS UINT64_C(2000000000) /* wait for a call, then probe */
#define PAUSE_NS      UINT64_C(20000000)   /* pause before the second call; doubles */
#define PAUSE_MOST_NS UINT64_C(640000000)  /* longest pause */
#define DIAL_NS       UINT64_C(1000000000) /* time to connect again */
#define CHECK_NS      UINT64_C(1000000000) /* between two checks, unless it was stopped */
#define STALE_NS      UINT64_C(1000000000) /* a probe means that an older one is broken */
#define KEEPALIVE_MS  UINT64_C(1000)     /* silence of a connection that works, at most */
#define QUIET_MS      UINT64_C(2000)     /* silence that another call shall explain */
#define FAR_CALLS     64                 /* calls that are accepted in a row */
#define CROWDED_NS    UINT64_C(20000000) /* time from HELLO to proof while others wait */
#define CONFIRM_NS    UINT64_C(2000000000) /* wait for the confirmations of a leave */

/* Return the rank's remote process, or NULL if it is on this host. */
static struct p3_remote *remote_of(const struct p3_mesh *m, uint32_t rank)
{
	struct p3_modex *w = m->node->modex;
	return p3_mesh_is_far(m, rank) ? &w->remote[rank] : NULL;
}

/* Return the next remote process of all, the first one after NULL, or NULL. */
static struct p3_remote *remote_next(const struct p3_mesh *m, const struct p3_remote *r)
{
	const struct p3_modex *w = m->node->modex;
	for (uint32_t i = r ? r->rank + 1 : 0; w && i < w->size; i++)
		if (p3_mesh_is_far(m, i))
			return &w->remote[i];
	return NULL;
}

static uint64_t remote_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Change what epoll waits for on a call; op is EPOLL_CTL_... */
static int remote_epoll(struct p3_mesh *m, int op, const struct p3_call *c,
	enum p3_mesh_watch what, uint32_t which)
{
	uint32_t out = c->state == P3_CALL_DIALING ? EPOLLOUT : 0;
	struct epoll_event ev = {
		.events = EPOLLIN | out, .data.u64 = (uint64_t)what << 32 | which};
	return epoll_ctl(p3_mesh_fd(&m->ep), op, p3_mesh_fd(&c->fd), &ev);
}

/* Say once why calls between this rank and other hosts must wait. */
static void remote_say_no_room(const struct p3_modex *w, bool *said, const char *what,
	int rc, const char *remedy)
{
	if (!*said)
		p3_warn("rank %u cannot %s other hosts now: %s; their ranks wait; "
			"raise %s",
			w->rank, what, strerror(-rc), remedy);
	*said = true;
}

static void remote_add_call(
	struct p3_mesh *m, struct p3_call *c, enum p3_mesh_watch what, uint32_t which)
{
	if (!remote_epoll(m, EPOLL_CTL_ADD, c, what, which))
		return;
	struct p3_modex *w = m->node->modex;
	if (errno == ENOSPC) /* else the program has closed a descriptor: see mesh.c */
		remote_say_no_room(w, &w->said_no_watches, "watch its calls with", -errno,
			"/proc/sys/fs/epoll/max_user_watches");
	p3_call_close(c); /* as if there were no descriptor for it */
}

static struct p3_connection remote_take_call(struct p3_mesh *m, struct p3_call *c)
{
	(void)remote_epoll(m, EPOLL_CTL_DEL, c, P3_MESH_REMOTE, 0);
	return p3_call_take(c);
}

static void remote_close_call(struct p3_mesh *m, struct p3_call *c)
{
	if (c->state != P3_CALL_NONE && !p3_call_is_lost(c))
		(void)remote_epoll(m, EPOLL_CTL_DEL, c, P3_MESH_REMOTE, 0);
	p3_call_close(c);
}

/* Return true if it is this process's part to call that one. */
static bool remote_is_called(const struct p3_mesh *m, const struct p3_remote *r)
{
	return m->node->rank > r->rank;
}

/* ---- births ---- */

static struct p3_peer_info remote_info(const struct p3_mesh *m, const struct p3_remote *r)
{
	struct p3_job_msg msg = r->born.msg;
	msg.node = r->rank;
	msg.nid = m->node->modex->card[r->rank].nid;
	msg.uid = m->node->uid;
	msg.jid = m->node->jid;
	msg.rank = m->node->launched ? r->rank : P3_JOB_NO_RANK;
	struct p3_peer_info info = p3_member_info(m->node, &msg, NULL);
	info.far_len = r->born.name_len;
	memcpy(info.far_name, r->born.name, sizeof info.far_name);
	return info;
}

static void remote_attach(struct p3_mesh *m, const struct p3_remote *r)
{
	struct p3_peer_info info = remote_info(m, r);
	p3_member_attach(m->node, m->nic, &info, false);
}

/* Enter a process that has an interface as a member. */
static void remote_enter(struct p3_mesh *m, const struct p3_remote *r)
{
	struct p3_member *b = &m->node->member[r->rank];
	struct p3_peer_info info = remote_info(m, r);
	b->incarnation = r->born.msg.incarnation;
	b->os_pid = r->born.msg.os_pid;
	if (m->nrank && b->rank == P3_MESH_NONE) {
		b->rank = r->rank;
		m->rank[r->rank].slot = r->rank;
		m->rank[r->rank].come = 0;
	}
	p3_directory_set(&m->node->directory, r->rank, info.nid, info.pid);
	remote_attach(m, r);
}

/* Fail the requests of the NIC to a process that has ended without an interface. */
static void remote_fail_requests(struct p3_mesh *m, const struct p3_remote *r)
{
	struct p3_peer_info info = remote_info(m, r);
	info.incarnation = 1;
	info.end = P3_PEER_DIED;
	info.now = info.any = true;
	const struct p3_directory *d = p3_directory_read(&m->node->directory);
	for (int i = 0; d && i < P3_JOB_NIS; i++)
		info.pid[i] = p3_get(&d->member[r->rank].pid[i]);
	p3_directory_done();
	p3_nic_peer_expect(m->nic, &info);
	(void)p3_nic_peer_down(m->nic, &info);
	if (m->nrank)
		m->rank[r->rank].ended = true;
}

/* Let the streams leave the connection with a process; they will tell when they have. */
static void remote_leave(struct p3_remote *r)
{
	if (r->up.fd >= 0 && p3_fd_is(r->up.fd, r->up.file))
		(void)shutdown(r->up.fd, SHUT_RDWR);
	r->leaves = true;
}

static bool remote_is_up(const struct p3_remote *r)
{
	return r->up.fd >= 0 && !r->leaves;
}

/* Treat a process as ended for good.  why is -EPIPE or -ECONNREFUSED if it has ended,
 * else the error because of which operations with it fail. */
static void remote_end(struct p3_mesh *m, struct p3_remote *r, int why)
{
	remote_close_call(m, &r->call);
	remote_leave(r);
	r->is_probe = false;
	p3_remote_say_why_ended(m->node->modex, r, why);
	bool had_left = r->state_known && !r->is_born;
	r->ended = true;
	r->is_born = false;
	if (m->node->member[r->rank].incarnation)
		p3_mesh_end(m, r->rank, P3_PEER_DIED);
	else if (!had_left)
		remote_fail_requests(m, r);
	else if (m->nrank)
		m->rank[r->rank].ended = true;
}

/* ---- packets ---- */

static void remote_post(
	struct p3_mesh *m, const struct p3_remote *r, const struct p3_job_msg *msg)
{
	(void)p3_stream_post(m->node->modex->streams, r->rank, msg, NULL, 0);
}

static void remote_send_born(struct p3_mesh *m, struct p3_remote *r)
{
	unsigned char name[P3_FAR_NAME];
	struct p3_job_msg msg = p3_member_message(m->node, P3_JOB_BORN);
	msg.status = (int32_t)m->node->modex->pids_sent;
	uint32_t len = p3_nic_far_name(m->nic, name);
	FAULT_POINT("remote.unsaid");
	int rc = p3_stream_post(m->node->modex->streams, r->rank, &msg, name, len);
	FAULT_POINT("remote.said");
	r->owes_born = rc == -EAGAIN;
}

static void remote_on_born(
	struct p3_mesh *m, struct p3_remote *r, const struct p3_packet *p)
{
	struct p3_member *b = &m->node->member[r->rank];
	if (p->msg.layout != P3_LAYOUT_WORD || !p->msg.incarnation) {
		remote_end(m, r, -EPROTO);
		return;
	}
	if (b->incarnation && b->incarnation != p->msg.incarnation) {
		p3_mesh_end(m, r->rank, P3_PEER_LEFT);
		p3_mesh_remove(m, r->rank, true);
	}
	r->born = *p;
	r->is_born = r->state_known = true;
	FAULT_POINT("remote.heard");
	remote_enter(m, r);
	FAULT_POINT("remote.attached");
	/* Tell it that this node knows its process ids. */
	struct p3_job_msg told = p3_member_message(m->node, P3_JOB_TOLD);
	told.round = (uint32_t)p->msg.status;
	remote_post(m, r, &told);
	FAULT_POINT("remote.told");
}

static void remote_on_packet(
	struct p3_mesh *m, struct p3_remote *r, const struct p3_packet *p)
{
	const struct p3_job_msg *msg = &p->msg;
	bool known = r->is_born && r->born.msg.incarnation == msg->incarnation;
	if (r->ended)
		return;
	r->pause_ns = 0;
	if (msg->node != r->rank)
		remote_end(m, r, -EPROTO);
	else if (msg->op == P3_JOB_DROPPED)
		remote_end(m, r, -EPIPE);
	else if (msg->op == P3_JOB_BORN)
		remote_on_born(m, r, p);
	else if (msg->op == P3_JOB_TOLD)
		r->pids_acked = msg->round;
	else if (msg->op == P3_JOB_LEAVE) {
		r->is_born = false;
		r->state_known = true;
		FAULT_POINT("remote.leave_heard");
		if (known)
			p3_mesh_end(m, r->rank, P3_PEER_LEFT);
	} else if (known)
		p3_mesh_on_barrier_packet(m, m->node->member[r->rank].rank, msg);
}

/* ---- connections ---- */

/* Return true if the error rc, in the state before, may have broken the connection of two
 * live processes; false if the process has ended or must be treated so. */
static bool remote_may_reconnect(
	const struct p3_remote *r, enum p3_call_state before, int rc)
{
	if (rc == -EPIPE || rc == -ECONNRESET || rc == -ECONNABORTED)
		return true;
	return r->begun && rc != -EACCES && rc != -ECONNREFUSED &&
	       !(rc == -ETIMEDOUT && before != P3_CALL_DIALING);
}

/* After a connection or call that broke, set the time from which p3_mesh_check_remotes()
 * calls or probes again. */
static void remote_disconnect(struct p3_mesh *m, struct p3_remote *r)
{
	uint64_t now = p3_now_ns();
	remote_close_call(m, &r->call);
	r->is_probe = false;
	r->await_call_ns = now;
	r->retry_ns = now + r->pause_ns;
	r->pause_ns =
		r->pause_ns ? remote_least(2 * r->pause_ns, PAUSE_MOST_NS) : PAUSE_NS;
}

static void remote_dial(struct p3_mesh *m, struct p3_remote *r)
{
	struct p3_modex *w = m->node->modex;
	int fd = p3_tcp_dial(&w->card[w->rank], &w->card[r->rank], w->timeout_s);
	if (fd < 0 && remote_may_reconnect(r, P3_CALL_DIALING, fd))
		remote_disconnect(m, r);
	else if (fd < 0 && !p3_job_passes(fd))
		remote_end(m, r, fd);
	if (fd < 0)
		return;
	FAULT_POINT("remote.dialed");
	p3_call_dial(&r->call, fd, &w->secret, w->rank, r->rank);
	remote_add_call(m, &r->call, P3_MESH_REMOTE, r->rank);
}

/* After a connection or call that broke, call again, the first time at once. */
static void remote_reconnect(struct p3_mesh *m, struct p3_remote *r)
{
	bool first = !r->pause_ns && !r->is_probe;
	remote_disconnect(m, r);
	if (first && remote_is_called(m, r))
		remote_dial(m, r);
}

/* Give an authenticated connection to the streams. */
static void remote_give(
	struct p3_mesh *m, struct p3_remote *r, const struct p3_connection *c)
{
	bool first = !r->begun;
	p3_tcp_keep(c->fd);
	r->up = *c;
	r->up_ns = r->alive_ns = p3_now_ns();
	r->leaves = r->in_vain = r->took_call = r->has_called = false;
	r->begun = true;
	p3_stream_give(m->node->modex->streams, r->rank, c);
	FAULT_POINT("remote.given");
	if (first)
		remote_send_born(m, r);
}

/* Use an authenticated connection.  The streams leave an earlier one first. */
static void remote_use(
	struct p3_mesh *m, struct p3_remote *r, const struct p3_connection *c)
{
	if (r->up.fd < 0) {
		remote_give(m, r, c);
		return;
	}
	r->alive_ns = p3_now_ns();
	remote_leave(r);
	p3_remote_close_connection(&r->next);
	r->next = *c;
}

/* The streams have left a connection. */
static void remote_on_left(struct p3_mesh *m, struct p3_remote *r, int why)
{
	struct p3_connection next = r->next;
	uint64_t now = p3_now_ns();
	p3_remote_close_connection(&r->up);
	r->next.fd = -1;
	FAULT_POINT("remote.left");
	if (why == -EPROTO)
		p3_remote_say_forged(m->node->modex, r);
	if (why == -ECONNRESET || (why == -EPIPE && !r->leaves))
		r->alive_ns = now; /* its host has said so */
	if (now - r->up_ns > STALE_NS)
		r->pause_ns = 0; /* the connection has worked */
	if (r->ended)
		p3_remote_close_connection(&next);
	else if (next.fd >= 0)
		remote_give(m, r, &next);
	else if (r->call.state == P3_CALL_NONE)
		remote_reconnect(m, r);
}

static void remote_take_news(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	struct p3_stream_news news;
	while (p3_streams_next(w->streams, &news))
		if (news.broken)
			remote_on_left(m, &w->remote[news.rank], news.broken);
		else
			remote_on_packet(m, &w->remote[news.rank], &news.packet);
}

/* Go on with a call. */
static void remote_go_on(struct p3_mesh *m, struct p3_remote *r)
{
	enum p3_call_state before = r->call.state;
	struct p3_connection c;
	struct p3_job_msg msg;
	int rc = -EAGAIN;
	if (before == P3_CALL_OPEN) {
		/* A probe whose ends are authenticated: the other end closes it now, or
		 * says DROPPED, or uses it. */
		c = p3_call_connection(&r->call);
		rc = p3_stream_hear(&c, &msg);
		if (!rc && msg.op == P3_JOB_DROPPED) {
			remote_end(m, r, -EPIPE);
			return;
		}
		r->is_probe = rc || msg.op != P3_JOB_TAKEN;
		rc = rc || !r->is_probe ? rc : -EPIPE;
	} else if (before != P3_CALL_NONE) {
		rc = p3_call_go_on(&r->call);
	}
	r->took_call |= before == P3_CALL_DIALING && r->call.state > before;
	if (rc == 0 && !r->is_probe) {
		c = remote_take_call(m, &r->call);
		remote_use(m, r, &c);
	} else if (rc && rc != -EAGAIN && !remote_may_reconnect(r, before, rc)) {
		remote_end(m, r, rc);
	} else if (rc && rc != -EAGAIN) {
		if (before > P3_CALL_DIALING && rc != -ETIMEDOUT)
			r->alive_ns = p3_now_ns(); /* its host has said so */
		remote_reconnect(m, r);
	}
	if (r->call.state != P3_CALL_NONE)
		(void)remote_epoll(m, EPOLL_CTL_MOD, &r->call, P3_MESH_REMOTE, r->rank);
}

/* ---- callers: lines, each once ---- */

/* Return true if a line is to be printed for the first time, and the caller's address. */
static bool caller_is_first(bool *said, const struct p3_card *at, char from[P3_TCP_TEXT])
{
	bool first = !*said;
	*said = true;
	p3_tcp_print_address(at, from);
	return first;
}

/* Return true while ranks of the job may be among slow callers: not all have a connection
 * that works. */
static bool caller_may_be_rank(const struct p3_modex *w)
{
	for (uint32_t i = 0; i < w->size; i++)
		if (p3_modex_is_far(w, i) && !w->remote[i].ended &&
			(!remote_is_up(&w->remote[i]) || w->remote[i].is_quiet))
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

/* Name a caller that has not proven in time that it is of the job, or has to make room
 * before, unless it may be a rank that was stopped while it called. */
static void caller_say_slow(struct p3_modex *w, const struct p3_card *at, bool crowd)
{
	char from[P3_TCP_TEXT];
	bool *said = crowd ? &w->said_crowd : &w->said_mute;
	if (caller_may_be_rank(w) || !caller_is_first(said, at, from))
		return;
	if (crowd)
		p3_warn("more than %u programs at a time, one of them at %s, are "
			"connected to rank %u and have not proven that they are of this "
			"job; the oldest are turned away (see which programs these are, "
			"and whether PTL3_FABRIC_NET names a private network)",
			P3_UNAUTH_MOST, from, w->rank);
	else
		p3_warn("a program at %s has connected to rank %u and has not said for "
			"%u s that it is of this job; it and all that follow are turned "
			"away (see which program that is, or whether that rank is "
			"stopped)",
			from, w->rank, (uint32_t)(P3_AUTH_NS / 1000000000));
}

/* ---- callers ---- */

/* Return the rank that a caller claims to be, if it is one of the caller's host. */
static struct p3_remote *caller_claims(const struct p3_mesh *m, const struct p3_unauth *s)
{
	struct p3_remote *r = remote_of(m, p3_call_other(&s->call));
	bool right = r && p3_tcp_is_same_host(&s->from, &m->node->modex->card[r->rank]);
	return right ? r : NULL;
}

/* Return true if a later call has been authenticated for the rank of this one. */
static bool caller_is_replaced(const struct p3_mesh *m, const struct p3_unauth *s)
{
	const struct p3_remote *r = caller_claims(m, s);
	return r && s->call.since_ns < r->up_ns;
}

/* Use an authenticated connection for the rank of its caller, in place of an earlier one:
 * a rank calls anew when that has broken, which this node may not have noticed. */
static void caller_adopt(struct p3_mesh *m, struct p3_unauth *s)
{
	struct p3_remote *r = caller_claims(m, s);
	struct p3_connection c = remote_take_call(m, &s->call);
	if (r && r->ended) { /* tell it that this node treats it as ended */
		struct p3_job_msg msg = p3_member_message(m->node, P3_JOB_DROPPED);
		(void)p3_stream_say(&c, &msg);
	}
	if (!r || r->ended || (remote_is_called(m, r) && !r->in_vain)) {
		p3_remote_close_connection(&c);
		/* A probe: the called rank has lost its connection, so leave it here,
		 * too. */
		if (r && !r->ended && remote_is_up(r) &&
			p3_now_ns() - r->up_ns >= STALE_NS)
			remote_leave(r);
		return;
	}
	remote_close_call(m, &r->call); /* a probe, or a call in vain */
	r->is_probe = false;
	FAULT_POINT("remote.welcomed");
	remote_use(m, r, &c);
}

static void caller_receive(struct p3_mesh *m, struct p3_unauth *s)
{
	int rc = p3_call_go_on(&s->call);
	struct p3_remote *r = caller_claims(m, s);
	if (r)
		r->has_called = true;
	if (rc == 0)
		caller_adopt(m, s);
	else if (rc == -EACCES)
		caller_say_not_of_job(m->node->modex, &s->from);
	if (rc && rc != -EAGAIN)
		remote_close_call(m, &s->call);
}

/* Return a free entry for a new connection, or NULL. */
static struct p3_unauth *caller_find_free(struct p3_modex *w)
{
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		if (w->unauth[i].call.state == P3_CALL_NONE)
			return &w->unauth[i];
	return NULL;
}

/* Close the connections that have been unauthenticated for too long, after a last look at
 * their bytes.  If such a caller is of the job, it calls again. */
static void caller_close_slow(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	uint64_t now = p3_now_ns();
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++) {
		struct p3_unauth *s = &w->unauth[i];
		if (now - s->call.since_ns <= P3_AUTH_NS)
			continue;
		caller_receive(m, s);
		if (s->call.state != P3_CALL_NONE && !caller_is_replaced(m, s))
			caller_say_slow(w, &s->from, false);
		remote_close_call(m, &s->call);
	}
}

/* Return the connection to close for want of room, or NULL: the oldest one without HELLO,
 * which a rank says at once.  If more than half have said it, the oldest of these, once
 * it has had time for its proof: else a rank that is about to say it finds no room. */
static struct p3_unauth *caller_find_slowest(struct p3_modex *w)
{
	struct p3_unauth *mute = NULL, *slow = NULL;
	uint32_t answered = 0;
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++) {
		struct p3_unauth *s = &w->unauth[i];
		bool is_mute = s->call.state == P3_CALL_CALLED;
		struct p3_unauth **oldest = is_mute ? &mute : &slow;
		answered += !is_mute;
		if (!*oldest || s->call.since_ns < (*oldest)->call.since_ns)
			*oldest = s;
	}
	if (slow && p3_now_ns() - slow->call.since_ns <= CROWDED_NS)
		slow = NULL;
	return slow && (!mute || answered > P3_UNAUTH_MOST / 2) ? slow : mute;
}

/* Return a free entry for a new connection, or NULL.  If all are in use, first read from
 * all of them, since a proof may lie unread, and then close the slowest one: strangers
 * that say nothing hold up no rank that calls behind them. */
static struct p3_unauth *caller_make_room(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	struct p3_unauth *s = caller_find_free(w);
	for (uint32_t i = 0; !s && i < P3_UNAUTH_MOST; i++)
		caller_receive(m, &w->unauth[i]);
	s = s ? s : caller_find_free(w);
	if (s || !(s = caller_find_slowest(w)))
		return s;
	if (!caller_is_replaced(m, s))
		caller_say_slow(w, &s->from, true);
	remote_close_call(m, &s->call);
	return s;
}

/* Accept one call.  Return 0 or -errno. */
static int caller_accept_one(struct p3_mesh *m, struct p3_unauth *s)
{
	struct p3_modex *w = m->node->modex;
	int fd = p3_tcp_accept((int)p3_get(&w->listener), w->timeout_s, &s->from);
	if (fd < 0)
		return fd;
	FAULT_POINT("remote.called");
	uint32_t i = 0; /* a rank at the caller's address */
	while (i < w->size && !p3_tcp_is_same_host(&w->card[i], &s->from))
		i++;
	if (i == w->size) {
		caller_say_not_of_job(w, &s->from);
		close(fd);
		return 0;
	}
	p3_call_accept(&s->call, fd, &w->secret, w->rank);
	remote_add_call(m, &s->call, P3_MESH_UNAUTH, (uint32_t)(s - w->unauth));
	return 0;
}

/* Accept calls while there is room for them. */
static void caller_accept(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	int rc = 0;
	for (int i = 0; i < FAR_CALLS && !rc; i++) {
		struct pollfd on = {.fd = (int)p3_get(&w->listener), .events = POLLIN};
		/* Close no stranger for a call that is not there. */
		if (!caller_find_free(w) && poll(&on, 1, 0) != 1)
			break;
		struct p3_unauth *s = caller_make_room(m);
		rc = s ? caller_accept_one(m, s) : -EBUSY;
	}
	bool out_of_fds = rc != -EAGAIN && p3_job_passes(rc);
	if (out_of_fds)
		remote_say_no_room(w, &w->said_no_fds, "accept the calls of", rc,
			"ulimit -n (one descriptor for each rank on another host, and "
			"some for calls)");
	if (out_of_fds || rc == -EBUSY)
		p3_mesh_pause(m, &w->accept_paused, &w->listener, P3_MESH_TCP_LISTEN);
}

/* ---- for the domain's thread ---- */

void p3_mesh_on_remote(struct p3_mesh *m, enum p3_mesh_watch what, uint32_t which)
{
	struct p3_modex *w = m->node->modex;
	if (what == P3_MESH_TCP_LISTEN)
		caller_accept(m);
	else if (what == P3_MESH_UNAUTH)
		caller_receive(m, &w->unauth[which]);
	else if (what == P3_MESH_REMOTE)
		remote_go_on(m, &w->remote[which]);
	else
		p3_fd_drain(p3_streams_fd(w->streams));
	remote_take_news(m);
}

static void remote_begin(struct p3_mesh *m, struct p3_remote *r)
{
	r->await_call_ns = r->alive_ns = p3_now_ns();
	if (r->ended) {
		remote_fail_requests(m, r);
		return;
	}
	if (r->call.state != P3_CALL_NONE)
		remote_add_call(m, &r->call, P3_MESH_REMOTE, r->rank);
	else if (remote_is_called(m, r) && r->up.fd < 0)
		remote_dial(m, r);
	if (r->is_born)
		remote_enter(m, r);
	if (r->begun)
		remote_send_born(m, r);
}

void p3_mesh_begin_remotes(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	if (!w)
		return;
	w->accept_paused = false;
	int calls = p3_mesh_watch(
		m, EPOLL_CTL_ADD, (int)p3_get(&w->listener), P3_MESH_TCP_LISTEN, 0);
	int news = p3_mesh_watch(
		m, EPOLL_CTL_ADD, p3_streams_fd(w->streams), P3_MESH_STREAMS, 0);
	if (calls || news)
		p3_warn("other hosts cannot be waited for");
	for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
		if (w->unauth[i].call.state != P3_CALL_NONE)
			remote_add_call(m, &w->unauth[i].call, P3_MESH_UNAUTH, i);
	w->looked_ns = w->begun_ns = p3_now_ns();
	for (struct p3_remote *r = NULL; (r = remote_next(m, r));)
		remote_begin(m, r);
	remote_take_news(m); /* of the time without an interface */
}

/* Return true if the other host has confirmed the bytes of the call. */
static bool remote_is_call_heard(const struct p3_remote *r)
{
	return r->call.state > P3_CALL_DIALING &&
	       p3_tcp_is_confirmed((int)p3_get(&r->call.fd));
}

/* Return the milliseconds since a process's host was last heard of. */
static uint64_t remote_silence_ms(const struct p3_remote *r)
{
	uint64_t ms = (p3_now_ns() - r->alive_ns) / 1000000;
	if (r->up.fd >= 0)
		ms = remote_least(ms, p3_tcp_silence_ms(r->up.fd));
	if (remote_is_call_heard(r))
		ms = remote_least(ms, p3_tcp_silence_ms((int)p3_get(&r->call.fd)));
	return ms;
}

static bool remote_is_silent(const struct p3_modex *w, const struct p3_remote *r)
{
	return w->timeout_s && r->begun &&
	       remote_silence_ms(r) >= w->timeout_s * UINT64_C(1000) + KEEPALIVE_MS;
}

/* End a call that is not needed any more, or that its host does not answer. */
static void remote_end_call(struct p3_mesh *m, struct p3_remote *r, uint64_t now)
{
	uint64_t age = now - r->call.since_ns;
	uint64_t late = m->node->modex->timeout_s * UINT64_C(1000000000);
	bool unanswered =
		r->call.state == P3_CALL_DIALING || r->call.state == P3_CALL_CALLING;
	r->in_vain |= unanswered && age > DIAL_NS;
	if (r->call.state == P3_CALL_CALLING && r->begun && late && age > late &&
		remote_is_call_heard(r))
		p3_remote_say_unanswered(m->node->modex, r);
	if (r->call.state == P3_CALL_DIALING && r->begun && age > DIAL_NS)
		remote_disconnect(m, r);
	else if (r->call.state != P3_CALL_NONE && remote_is_up(r) && !r->is_quiet &&
		 age > P3_AUTH_NS)
		remote_close_call(m, &r->call);
}

/* Call or probe a process whose connection has broken or is quiet, or that has not called
 * yet. */
static void remote_call_again(struct p3_mesh *m, struct p3_remote *r, uint64_t now)
{
	const struct p3_modex *w = m->node->modex;
	uint64_t limit = w->timeout_s * UINT64_C(500) + KEEPALIVE_MS / 2;
	r->is_quiet = w->timeout_s && remote_is_up(r) &&
		      p3_tcp_silence_ms(r->up.fd) >= remote_least(limit, QUIET_MS);
	remote_end_call(m, r, now);
	bool has_none = r->up.fd < 0 || r->is_quiet;
	r->in_vain &= has_none;
	if (!has_none || r->call.state != P3_CALL_NONE || now < r->retry_ns)
		return;
	if (remote_is_called(m, r)) {
		remote_dial(m, r);
	} else if (r->begun || now - r->await_call_ns > AWAIT_CALL_NS) {
		/* It is that process's part to call: learn whether it is alive. */
		remote_dial(m, r);
		r->is_probe = r->call.state == P3_CALL_DIALING;
	}
}

static void remote_check(struct p3_mesh *m, struct p3_remote *r, uint64_t now)
{
	const struct p3_modex *w = m->node->modex;
	if (!r->ended && remote_is_silent(w, r))
		remote_take_news(m); /* a broken connection is silent, too */
	if (!r->ended && remote_is_silent(w, r))
		remote_end(m, r, -ETIMEDOUT);
	if (!r->ended)
		remote_call_again(m, r, now);
	/* Show tools the silence of the host.  It is unknown if PTL3_FAR_TIMEOUT is
	 * never, because then the kernel sends no keepalives. */
	if (!r->ended && !w->timeout_s)
		p3_nic_peer_heard(m->nic, r->rank, P3_HEARD_UNKNOWN);
	else if (!r->ended && r->begun)
		p3_nic_peer_heard(
			m->nic, r->rank, now - remote_silence_ms(r) * UINT64_C(1000000));
	if (r->owes_born)
		remote_send_born(m, r);
	if (m->node->member[r->rank].missing)
		remote_attach(m, r);
}

void p3_mesh_check_remotes(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	uint64_t now = p3_now_ns();
	if (!w)
		return;
	caller_close_slow(m);
	p3_mesh_resume(m, &w->accept_paused, &w->listener, P3_MESH_TCP_LISTEN);
	/* Do not count time in which this process was stopped as silence of others, as it
	 * could not call again then.  A process that runs checks every CHECK_NS at least,
	 * so any longer time between two checks was time without a CPU. */
	uint64_t since = now - w->looked_ns;
	uint64_t slept = since > CHECK_NS ? since - CHECK_NS : 0;
	w->looked_ns = now;
	w->begun_ns += slept;
	for (uint32_t i = 0; i < w->size; i++) {
		uint64_t *sign = &w->remote[i].alive_ns;
		*sign = now - *sign > slept ? *sign + slept : now;
	}
	for (struct p3_remote *r = NULL; (r = remote_next(m, r));)
		remote_check(m, r, now);
	if (!m->over)
		p3_modex_say_unmet(w, now);
}

bool p3_mesh_is_disconnected(const struct p3_mesh *m, uint32_t rank)
{
	const struct p3_remote *r = remote_of(m, rank);
	return r && !remote_is_up(r);
}

struct p3_remotes p3_mesh_sum_remotes(const struct p3_mesh *m)
{
	const struct p3_modex *w = m->node->modex;
	struct p3_remotes sum = {
		.need_retry = w && w->accept_paused, .met = true, .know_pids = true};
	for (const struct p3_remote *r = NULL; (r = remote_next(m, r));) {
		if (r->ended)
			continue;
		bool calls = remote_is_called(m, r) || r->begun;
		bool apart = r->up.fd < 0 || r->is_quiet;
		if (r->owes_born || (calls && apart && r->call.state < P3_CALL_CALLING))
			sum.need_retry = true;
		if (!remote_is_up(r) || !r->state_known)
			sum.met = false;
		if (r->is_born && (int32_t)(r->pids_acked - w->pids_sent) < 0)
			sum.know_pids = false;
	}
	return sum;
}

void p3_mesh_send_pids_to_remotes(struct p3_mesh *m)
{
	if (m->node->modex)
		m->node->modex->pids_sent++;
	for (struct p3_remote *r = NULL; (r = remote_next(m, r));)
		if (r->begun) {
			remote_send_born(m, r);
			FAULT_POINT("remote.pids_half");
		}
}

bool p3_mesh_has_news_of(struct p3_mesh *m, uint32_t *look)
{
	if (!m->node->modex)
		return true;
	if (!*look)
		*look = p3_streams_look(m->node->modex->streams);
	if (!p3_streams_have_looked(m->node->modex->streams, *look))
		return false;
	*look = 0;
	return true;
}

void p3_mesh_receive_remotes(struct p3_mesh *m)
{
	if (m->node->modex)
		remote_take_news(m);
	for (struct p3_remote *r = NULL; (r = remote_next(m, r));)
		remote_go_on(m, r);
}

bool p3_mesh_has_lost_remotes(const struct p3_mesh *m)
{
	const struct p3_modex *w = m->node->modex;
	for (const struct p3_remote *r = NULL; (r = remote_next(m, r));)
		if (p3_call_is_lost(&r->call) ||
			(r->up.fd >= 0 && !p3_fd_is(r->up.fd, r->up.file)))
			return true;
	return w && (!p3_streams_own(w->streams) ||
			    !p3_fd_is((int)p3_get(&w->listener), w->listener_file));
}

/* Return true if a process with an interface has not confirmed all packets. */
static bool remote_owe_confirmations(const struct p3_mesh *m)
{
	for (const struct p3_remote *r = NULL; (r = remote_next(m, r));)
		if (!r->ended && r->is_born &&
			p3_stream_owes(m->node->modex->streams, r->rank))
			return true;
	return false;
}

void p3_mesh_leave_remotes(struct p3_mesh *m)
{
	struct p3_job_msg msg = p3_member_message(m->node, P3_JOB_LEAVE);
	for (struct p3_remote *r = NULL; (r = remote_next(m, r));)
		if (!r->ended && r->begun) {
			remote_post(m, r, &msg);
			FAULT_POINT("remote.leave_half");
			r->owes_born = false;
		}
	/* Wait until all remote nodes have confirmed all packets.  A connection that
	 * breaks now takes the last ones with it, such as the release of a barrier, and
	 * then the other end takes the end of this process for a death in the barrier. */
	uint64_t end = p3_now_ns() + CONFIRM_NS;
	while (remote_owe_confirmations(m) && p3_now_ns() < end &&
		!p3_mesh_has_lost_remotes(m)) {
		p3_mesh_check_remotes(m);
		p3_mesh_receive_remotes(m);
		caller_accept(m);
		for (uint32_t i = 0; i < P3_UNAUTH_MOST; i++)
			caller_receive(m, &m->node->modex->unauth[i]);
		(void)poll(NULL, 0, 1); /* pause: between two looks */
	}
}

void p3_mesh_end_remotes(struct p3_mesh *m)
{
	struct p3_modex *w = m->node->modex;
	for (struct p3_remote *r = NULL; (r = remote_next(m, r));) {
		p3_call_close(&r->call);
		remote_leave(r);
		r->ended = true;
	}
	if (w)
		p3_fd_close_own((int)p3_get(&w->listener), w->listener_file);
}
