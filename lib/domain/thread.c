/* SPDX-License-Identifier: BSD-3-Clause */
/* The domain's thread: calls, connections, the periodic check. */
#include "lib/domain/meeting.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS     16
#define CALLS      2048 /* calls answered in a row: more than can be pending */
#define SILENT_NS  (2 * (uint64_t)P3_SETTLE_NS)
#define CHECK_MS   1000
#define LOOK_MS    1000 /* the longest time until foreign descriptors are noticed */
#define CONFIRM_NS UINT64_C(2000000000) /* wait for the confirmations of a leave */
#define AGAIN_MS   50 /* time until an action that found no room is repeated */

/* ---- connections ---- */

/* Return true for an accepted connection that has not introduced itself.  A called
 * member is a member even while it is stopped. */
static bool is_silent(const struct p3_meet_conn *c)
{
	return p3_meet_fd(&c->fd) >= 0 && c->called == P3_MEET_NONE &&
	       c->slot == P3_MEET_NONE;
}

/* Hang up a connection whose process has not introduced itself.  This node has told that
 * process nothing, so a live process sees the end of file and calls again. */
static void close_silent(struct p3_meeting *m, struct p3_meet_conn *c, const char *why)
{
	p3_meet_receive(m, c);
	if (!is_silent(c))
		return;
	p3_meet_say_breach(m, c, why);
	p3_meet_hang_up(m, c);
}

/* Return the process that has more than half of the silent connections, if one has: the
 * candidate of the majority vote of Boyer and Moore. */
static uint32_t silent_candidate(const struct p3_meeting *m)
{
	uint32_t pid = 0, lead = 0;
	for (uint32_t i = 0; i < m->nconn; i++) {
		if (!is_silent(&m->conn[i]))
			continue;
		if (!lead)
			pid = m->conn[i].os_pid;
		lead += m->conn[i].os_pid == pid ? 1 : (uint32_t)-1;
	}
	return pid;
}

static struct p3_meet_conn *older(struct p3_meet_conn *a, struct p3_meet_conn *b)
{
	return !a || b->since_ns < a->since_ns ? b : a;
}

/* Return the silent connection to close for want of room, or NULL: the oldest one of a
 * process that has more than half of them, and so not that of a newcomer that is about to
 * introduce itself; else the oldest of all. */
static struct p3_meet_conn *oldest_silent(struct p3_meeting *m)
{
	struct p3_meet_conn *oldest = NULL, *of_crowd = NULL;
	uint32_t pid = silent_candidate(m), crowd = 0, all = 0;
	for (uint32_t i = 0; i < m->nconn; i++) {
		struct p3_meet_conn *c = &m->conn[i];
		if (!is_silent(c))
			continue;
		all++;
		oldest = older(oldest, c);
		if (c->os_pid != pid)
			continue;
		crowd++;
		of_crowd = older(of_crowd, c);
	}
	return 2 * crowd > all ? of_crowd : oldest;
}

static struct p3_meet_conn *free_conn(struct p3_meeting *m)
{
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_meet_fd(&m->conn[i].fd) < 0)
			return &m->conn[i];
	return NULL;
}

/* Return a free connection; close a silent one if there is none. */
static struct p3_meet_conn *find_room(struct p3_meeting *m)
{
	struct p3_meet_conn *c = free_conn(m), *silent;
	while (!c && (silent = oldest_silent(m))) {
		close_silent(m, silent,
			"takes the last connection, and does not say who it is");
		c = free_conn(m);
	}
	return c;
}

/* Set up a connection on fd.  If this node has called a member, introduce this node; a
 * caller (called is P3_MEET_NONE) has to introduce itself first. */
static void greet(struct p3_meeting *m, struct p3_meet_conn *c, int fd, uint32_t called)
{
	struct ucred who;
	socklen_t len = sizeof who;
	p3_set(&c->fd, (uint32_t)fd);
	c->called = called;
	c->slot = P3_MEET_NONE;
	c->since_ns = p3_now_ns();
	bool ok = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
		  who.uid == geteuid();
	c->awaited = called != P3_MEET_NONE && !m->met;
	c->os_pid = ok ? (uint32_t)who.pid : 0;
	int rc = ok ? p3_meet_watch(
			      m, EPOLL_CTL_ADD, fd, P3_MEET_CONN, (uint32_t)(c - m->conn))
		    : 0;
	if (!ok || rc)
		p3_meet_close(&c->fd);
	FAULT_POINT("meet.connected");
	if (ok && !rc && called != P3_MEET_NONE)
		rc = p3_meet_send_born(m, c);
	m->rescan |= rc != 0;
	if (!ok || rc)
		p3_meet_hang_up(m, c);
}

/* Accept one call.  Return 0, -EAGAIN if there is none, or another -errno if there is no
 * room. */
static int answer_call(struct p3_meeting *m)
{
	struct pollfd caller = {.fd = p3_meet_fd(&m->listen), .events = POLLIN};
	if (poll(&caller, 1, 0) <= 0)
		return -EAGAIN;
	struct p3_meet_conn *c = find_room(m);
	if (!c)
		return -EMFILE;
	int fd = p3_fd_high(accept4(caller.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
	if (fd < 0)
		return errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
	greet(m, c, fd, P3_MEET_NONE);
	return 0;
}

/* Accept all calls.  Without room, hang up silent connections; if there are none, stop
 * watching the socket until the next check tries again. */
static void answer_calls(struct p3_meeting *m)
{
	struct p3_meet_conn *silent;
	int rc = 0;
	for (int i = 0; i < CALLS && !rc; i++) {
		rc = answer_call(m);
		if (!rc || rc == -EAGAIN || !(silent = oldest_silent(m)))
			continue;
		close_silent(m, silent, "takes a descriptor, and does not say who it is");
		rc = 0;
	}
	if (!rc || rc == -EAGAIN)
		return;
	m->accept_paused = true;
	(void)p3_meet_watch(m, EPOLL_CTL_DEL, p3_meet_fd(&m->listen), P3_MEET_LISTEN, 0);
}

/* ---- other members ---- */

static bool is_met(const struct p3_meeting *m, uint32_t slot)
{
	if (m->member[slot].incarnation)
		return true;
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_meet_fd(&m->conn[i].fd) >= 0 &&
			(m->conn[i].called == slot || m->conn[i].slot == slot))
			return true;
	return false;
}

/* Call the member of a slot, unless it is met, dead or this node.  A member that does not
 * listen yet looks for this node when it does. */
static void call(struct p3_meeting *m, uint32_t slot)
{
	if (slot == m->place.slot || is_met(m, slot) || p3_domain_reap(&m->place, slot))
		return;
	struct p3_meet_conn *c = free_conn(m);
	int fd = c ? p3_domain_call(&m->place, slot) : -EMFILE;
	if (fd >= 0)
		greet(m, c, fd, slot);
	else
		m->rescan |= fd != -ECONNREFUSED && fd != -ENOENT;
}

static void scan(struct p3_meeting *m)
{
	uint64_t slots[P3_MAX_NODES / 64];
	m->rescan = p3_domain_list(&m->place, slots) != 0;
	for (uint32_t i = 0; i < m->nmember; i++)
		if (slots[i / 64] >> i % 64 & 1) {
			call(m, i);
			FAULT_POINT("meet.calls_half");
		}
}

/* ---- the periodic check ---- */

/* Return true for a member that has introduced itself and has not heard of this node. */
static bool owes_answer(const struct p3_meet_conn *c)
{
	return p3_meet_fd(&c->fd) >= 0 && c->slot != P3_MEET_NONE && !c->born_sent;
}

/*
 * Hang up a connection whose process has not introduced itself, if that process is dead
 * or has been silent for too long: a dead process may have children that hold the other
 * end, so no end of file comes.  Ask a member that could not be attached to introduce
 * itself again, and repeat the packets to a member that found no room.
 */
static void check_conn(struct p3_meeting *m, struct p3_meet_conn *c)
{
	if (c->slot == P3_MEET_NONE)
		p3_meet_receive(m, c); /* the process may have sent a packet and ended */
	if (p3_meet_fd(&c->fd) < 0)
		return;
	if (c->slot == P3_MEET_NONE && kill((pid_t)c->os_pid, 0) != 0 && errno == ESRCH) {
		p3_meet_hang_up(m, c);
		return;
	}
	if (is_silent(c) && p3_now_ns() - c->since_ns > SILENT_NS) {
		close_silent(m, c, "connects, and does not say who it is");
		return;
	}
	struct p3_job_msg msg = p3_meet_message(m, P3_JOB_AGAIN);
	if (c->slot != P3_MEET_NONE && m->member[c->slot].missing)
		(void)p3_job_send(p3_meet_fd(&c->fd), &msg, NULL, 0);
	if (owes_answer(c))
		(void)p3_meet_send_born(m, c);
	if (c->owes)
		p3_meet_send_pids(m, c);
}

/* Do the work that no descriptor reports, and repeat actions that found no room. */
static void check_all(struct p3_meeting *m)
{
	for (uint32_t i = 0; i < m->nmember; i++)
		if (m->member[i].incarnation && !p3_meet_is_far(m, i) &&
			p3_domain_is_over(&m->place, i, m->member[i].os_pid))
			p3_meet_on_process_end(m, i);
	for (uint32_t i = 0; i < m->nmember; i++)
		p3_meet_remove(m, i, false);
	if (m->accept_paused)
		m->accept_paused = p3_meet_watch(m, EPOLL_CTL_ADD, p3_meet_fd(&m->listen),
					   P3_MEET_LISTEN, 0) != 0;
	if (m->rescan)
		scan(m);
	p3_meet_check_callers(m);
	p3_meet_check_remotes(m);
	if (!p3_meet_is_disconnected(m, 0))
		m->barrier_sent = 0; /* send it to rank 0 once more */
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_meet_fd(&m->conn[i].fd) >= 0)
			check_conn(m, &m->conn[i]);
}

static bool needs_retry(const struct p3_meeting *m)
{
	bool any = m->accept_paused || m->rescan || p3_meet_callers_wait(m) ||
		   p3_meet_remotes_need_retry(m);
	for (uint32_t i = 0; i < m->nmember && !any; i++)
		any = m->member[i].missing || m->member[i].ending;
	for (uint32_t i = 0; i < m->nconn && !any; i++)
		any = owes_answer(&m->conn[i]);
	return any;
}

/* Return true if a descriptor of a member is open, which the program may close. */
static bool has_member_fds(const struct p3_meeting *m)
{
	if (m->node->wireup)
		return true;
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_meet_fd(&m->conn[i].fd) >= 0)
			return true;
	for (uint32_t i = 0; i < m->node->capacity; i++)
		if (p3_meet_fd(&m->member[i].life) >= 0)
			return true;
	return false;
}

/* Return the milliseconds until check_all() must run again: it runs every AGAIN_MS while
 * an action has to be repeated, else every CHECK_MS while a descriptor of a member is
 * open.  Return -1 if no action has to be repeated and no such descriptor is open. */
static int ms_until_check(const struct p3_meeting *m)
{
	bool retry = needs_retry(m);
	if (!retry && !has_member_fds(m))
		return -1;
	uint64_t now = p3_now_ns(), ms = retry ? AGAIN_MS : CHECK_MS;
	uint64_t at = m->checked_ns + ms * 1000000;
	if (m->pids_sent_ns && at > now + AGAIN_MS * 1000000)
		at = now + AGAIN_MS * 1000000;
	return at > now ? (int)((at - now) / 1000000 + 1) : 0;
}

/* ---- the thread ---- */

/* Return true if this thread serves held requests (p3_held_see_to); under yod the life
 * thread does. */
static bool serves_held(const struct p3_meeting *m)
{
	return m->node->sock < 0;
}

/* Send PIDS to all members, and let p3_meet_pids() return. */
static void send_all_pids(struct p3_meeting *m)
{
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_meet_talks(&m->conn[i])) {
			p3_meet_send_pids(m, &m->conn[i]);
			FAULT_POINT("meet.pids_half");
		}
	p3_meet_send_pids_to_remotes(m);
	m->pids_sent_ns = p3_now_ns();
}

/* Let p3_meet_pids() return when the remote nodes know the ids.  One that is stopped
 * delays it by P3_SETTLE_NS at most. */
static void check_pids_known(struct p3_meeting *m)
{
	if (!m->pids_sent_ns || (!p3_meet_remotes_know_pids(m) &&
					p3_now_ns() - m->pids_sent_ns < P3_SETTLE_NS))
		return;
	m->pids_sent_ns = 0;
	pthread_mutex_lock(&m->lock);
	m->new_pids = false;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

static void on_wake(struct p3_meeting *m)
{
	uint64_t n;
	(void)!read(p3_meet_fd(&m->wake), &n, sizeof n);
	pthread_mutex_lock(&m->lock);
	bool pids = m->new_pids;
	m->over = m->stop;
	pthread_mutex_unlock(&m->lock);
	if (serves_held(m))
		p3_held_see_to(m->node, m->nic);
	if (pids && !m->pids_sent_ns)
		send_all_pids(m);
}

/* Return true if the process of a pidfd has ended.  An event alone does not show that: it
 * may be about an earlier process in the same slot. */
static bool has_ended(const p3_a32 *fd)
{
	struct pollfd life = {.fd = p3_meet_fd(fd), .events = POLLIN};
	return life.fd >= 0 && poll(&life, 1, 0) > 0;
}

/* Return true if the program has closed the descriptor that an event is about, or given
 * its number to another file.  A forked child that holds a copy causes such events. */
static bool is_lost(struct p3_meeting *m, enum p3_meet_watch kind, uint32_t which)
{
	if (kind == P3_MEET_CONN)
		return p3_meet_has_lost(m, &m->conn[which].fd, kind, which);
	if (kind == P3_MEET_LIFE)
		return p3_meet_has_lost(m, &m->member[which].life, kind, which);
	if (kind == P3_MEET_RANK)
		return p3_meet_has_lost(m, &m->rank[which].life, kind, which);
	if (kind == P3_MEET_REMOTE)
		return p3_call_is_lost(&m->node->wireup->remote[which].call);
	return false; /* has_own_fds() checks the others */
}

static void on_event(struct p3_meeting *m, enum p3_meet_watch kind, uint32_t which)
{
	switch (kind) {
	case P3_MEET_WAKE:
		on_wake(m);
		break;
	case P3_MEET_LISTEN:
		answer_calls(m);
		break;
	case P3_MEET_CONN:
		p3_meet_receive(m, &m->conn[which]);
		break;
	case P3_MEET_LIFE:
		if (!has_ended(&m->member[which].life))
			break;
		p3_meet_on_process_end(m, which);
		if (m->member[which].ending) /* else epoll would report it for ever */
			p3_meet_unwatch(m, &m->member[which].life);
		break;
	case P3_MEET_RANK:
		if (has_ended(&m->rank[which].life))
			p3_meet_on_rank_end(m, which);
		break;
	case P3_MEET_BEACON:
	case P3_MEET_UNAUTH:
		p3_meet_on_caller(m, kind, which);
		break;
	case P3_MEET_REMOTE:
	case P3_MEET_STREAMS:
		p3_meet_on_remote(m, kind, which);
		break;
	}
}

/* Return true if the descriptors of the meeting still name its files. */
static bool has_own_fds(struct p3_meeting *m)
{
	return p3_domain_holds(&m->place) &&
	       p3_meet_watches(m, &m->wake, P3_MEET_WAKE, 0) &&
	       (m->accept_paused || p3_meet_watches(m, &m->listen, P3_MEET_LISTEN, 0));
}

/* Wait at most ms for events, and process them.  Return false if the program has closed
 * descriptors of the meeting. */
static bool take_ready(struct p3_meeting *m, int ms)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(p3_meet_fd(&m->ep), ev, EVENTS, ms);
	if (!has_own_fds(m))
		return false;
	for (int i = 0; i < n; i++) {
		enum p3_meet_watch kind = (enum p3_meet_watch)(ev[i].data.u64 >> 32);
		if (is_lost(m, kind, (uint32_t)ev[i].data.u64))
			return false;
		on_event(m, kind, (uint32_t)ev[i].data.u64);
	}
	return true;
}

/* Return true if this thread has processed what other hosts had sent when it began: an
 * interface that they know to have closed may be among the members until then. */
static bool is_current(struct p3_meeting *m)
{
	if (!m->current && p3_meet_has_news_of(m, &m->met_look)) {
		p3_meet_receive_remotes(m);
		m->current = true;
	}
	return m->current;
}

/* If all earlier members have introduced themselves, let joining end. */
static void check_met(struct p3_meeting *m)
{
	if (m->met || m->rescan || !is_current(m) || !p3_meet_has_met_remotes(m))
		return;
	for (uint32_t i = 0; i < m->nconn; i++)
		if (m->conn[i].awaited)
			return;
	pthread_mutex_lock(&m->lock);
	m->met = true;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

/* ---- questions ---- */

/* Process the packets that members have sent. */
static void receive_all(struct p3_meeting *m)
{
	for (uint32_t i = 0; i < m->nconn; i++)
		p3_meet_receive(m, &m->conn[i]);
	p3_meet_receive_remotes(m);
}

/* Find the slots of living processes that have not introduced themselves. */
static void list_coming(struct p3_meeting *m, uint64_t slots[P3_MAX_NODES / 64])
{
	(void)p3_domain_list(&m->place, slots);
	for (uint32_t i = 0; i < m->nmember; i++)
		if ((slots[i / 64] >> i % 64 & 1) &&
			(m->member[i].incarnation || p3_domain_reap(&m->place, i)))
			slots[i / 64] &= ~(UINT64_C(1) << i % 64);
}

/*
 * Answer the NIC's question.  A process id whose PtlNIInit has returned before the
 * question is in a packet that lies in a socket of this process by now (p3_meet_pids), or
 * in a BORN that came earlier; so what is unknown after receive_all() does not exist.
 * Those of other hosts are read by the lease holder first.
 */
static void answer(struct p3_meeting *m)
{
	uint64_t coming[P3_MAX_NODES / 64];
	uint32_t question = p3_get(&m->question); /* ASK.1 */
	if (question == m->answered)
		return;
	if (question != m->asked)
		m->ask_look = 0; /* the last look was for another one */
	m->asked = question;
	if (!p3_meet_has_news_of(m, &m->ask_look))
		return;
	m->answered = question;
	receive_all(m);
	list_coming(m, coming);
	p3_nic_peer_told(m->nic, question, coming);
}

/* ---- a program that closes descriptors of the meeting ---- */

/* Return true if the program has closed no descriptor of a connection or of a member's
 * process. */
static bool has_other_fds(struct p3_meeting *m)
{
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_meet_has_lost(m, &m->conn[i].fd, P3_MEET_CONN, i))
			return false;
	for (uint32_t i = 0; i < m->node->capacity; i++)
		if (p3_meet_has_lost(m, &m->member[i].life, P3_MEET_LIFE, i))
			return false;
	for (uint32_t i = 0; i < m->nrank; i++)
		if (p3_meet_has_lost(m, &m->rank[i].life, P3_MEET_RANK, i))
			return false;
	return !p3_meet_has_lost_remotes(m);
}

static void say_fds_lost(struct p3_meeting *m)
{
	p3_error("the program has closed descriptors of the domain %s, so this process "
		 "leaves it, and its operations with others fail; close only "
		 "descriptors that the program has opened, and no range of all numbers",
		m->place.path);
	pthread_mutex_lock(&m->lock);
	m->fds_lost = m->met = true;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

/* Treat all other members as dead.  They notice that this one is gone by the ends of
 * its connections, or by its locks: release these here in case the program has not. */
static void end_all(struct p3_meeting *m)
{
	p3_meet_end_remotes(m);
	for (uint32_t i = 0; i < m->nconn; i++)
		p3_meet_drop(m, &m->conn[i].fd, P3_MEET_CONN, i);
	for (uint32_t i = 0; i < m->nmember; i++) {
		p3_meet_drop(m, &m->member[i].life, P3_MEET_LIFE, i);
		if (!m->member[i].incarnation)
			continue;
		m->member[i].how = P3_PEER_DIED;
		m->member[i].ending = true;
		p3_meet_remove(m, i, true);
	}
	for (uint32_t i = 0; i < m->nrank; i++)
		p3_meet_drop(m, &m->rank[i].life, P3_MEET_RANK, i);
	if (!m->accept_paused)
		p3_meet_drop(m, &m->listen, P3_MEET_LISTEN, 0);
	p3_domain_leave(&m->place);
}

/* Leave the domain, then wait until the interface closes.  The program may have closed
 * the eventfd too, so poll the flag instead. */
static void wait_for_stop(struct p3_meeting *m)
{
	bool stop = false;
	say_fds_lost(m);
	end_all(m);
	while (!stop) {
		answer(m);
		if (serves_held(m))
			p3_held_see_to(m->node, m->nic);
		(void)poll(NULL, 0, LOOK_MS / 10);
		pthread_mutex_lock(&m->lock);
		stop = m->stop;
		pthread_mutex_unlock(&m->lock);
	}
}

/* ---- turns ---- */

/* Leave the barrier that rank 0 has released.  First process the packets that the others
 * sent before they entered it, such as new process ids. */
static void leave_barrier(struct p3_meeting *m)
{
	struct p3_job_msg released = m->released;
	if (!p3_meet_follows(m) || !released.round ||
		!p3_meet_has_news_of(m, &m->release_look))
		return;
	receive_all(m);
	p3_meet_leave_barrier(m, &released);
}

/* Return false if the program has closed descriptors of the meeting. */
static bool turn(struct p3_meeting *m)
{
	int ms = ms_until_check(m);
	if (ms < 0 || ms > LOOK_MS)
		ms = LOOK_MS;
	if (!take_ready(m, serves_held(m) ? p3_held_patience(m->node, ms) : ms))
		return false;
	if (serves_held(m) && p3_held_is_due(m->node))
		p3_held_see_to(m->node, m->nic);
	if (ms_until_check(m) == 0) {
		if (!has_other_fds(m))
			return false;
		check_all(m);
		m->checked_ns = p3_now_ns();
	}
	answer(m);
	check_pids_known(m);
	leave_barrier(m);
	p3_meet_advance_barrier(m);
	check_met(m);
	return true;
}

/* Wait until all remote nodes have confirmed all packets, CONFIRM_NS at most.  A
 * connection that breaks now takes the last packets with it, such as the release of a
 * barrier, and then the other end takes the end of this process for a death in the
 * barrier. */
static void await_confirmations(struct p3_meeting *m)
{
	uint64_t end = p3_now_ns() + CONFIRM_NS;
	while (p3_meet_remotes_owe_confirmations(m) && p3_now_ns() < end &&
		!p3_meet_has_lost_remotes(m)) {
		p3_meet_check_callers(m);
		p3_meet_check_remotes(m);
		p3_meet_receive_remotes(m);
		p3_meet_answer_callers(m);
		(void)poll(NULL, 0, 1); /* pause: between two looks */
	}
}

static void send_leave(struct p3_meeting *m)
{
	struct p3_job_msg msg = p3_meet_message(m, P3_JOB_LEAVE);
	for (uint32_t i = 0; i < m->nconn; i++)
		if (p3_meet_talks(&m->conn[i])) {
			(void)p3_job_send(p3_meet_fd(&m->conn[i].fd), &msg, NULL, 0);
			FAULT_POINT("meet.leave_half");
		}
	p3_meet_send_leave_to_remotes(m);
	await_confirmations(m);
}

void *p3_meet_thread(void *arg)
{
	struct p3_meeting *m = arg;
	scan(m);
	p3_meet_begin_callers(m);
	p3_meet_begin_remotes(m);
	m->checked_ns = p3_now_ns();
	check_met(m);
	while (!m->over && turn(m))
		;
	if (!m->over) {
		wait_for_stop(m);
		return NULL;
	}
	FAULT_POINT("meet.leaving");
	send_leave(m);
	return NULL;
}
