/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/meet.h"
#include "lib/lib.h"
#include "shm/domain.h"
#include "shm/log.h"
#include "shm/park.h"
#include "shm/seg.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NONE     0xffffffffu
#define SPARE    16 /* connections of whom is not known yet */
#define EVENTS   16
#define PACKETS  16 /* of one connection in a row */
#define TURNS    64 /* of such rows, at its end: more than a socket keeps */
#define BELT_MS  1000
#define AGAIN_MS 50 /* something found no room */
#define LATE_S   10 /* a rank that has not come is worth a line */

enum watch { LISTEN, WAKE, CONN, LIFE };

/* A connection, from its first day on. */
struct conn {
	p3_a32 fd;       /* -1: a free place */
	uint32_t called; /* the slot that was called, or NONE */
	uint32_t slot;   /* whose it is, or NONE: it has not said */
	uint32_t os_pid;
	uint64_t incarnation;
	bool awaited; /* by who joins */
	bool owes;    /* PIDS found no room */
};

struct member {
	uint64_t incarnation; /* 0: nobody */
	uint32_t os_pid;
	p3_a32 life;   /* pidfd, -1: the belt must do */
	bool missing;  /* it could not be mapped yet */
	bool ended;    /* launched: it was a process that is over */
	uint32_t come; /* at rank 0: the last barrier that it has entered */
};

struct p3_meeting {
	struct p3_domain place;
	struct p3_node *node;
	struct p3_nic *nic; /* while the thread lives */
	pthread_t thread;
	p3_a32 listen, ep, wake; /* descriptors */
	bool deaf;               /* no descriptors left for who calls */
	bool unmet;              /* somebody could not be called */
	uint64_t belt_ns;
	bool broken;                /* at rank 0: no barrier will do any more */
	struct p3_job_msg released; /* by rank 0; round 0: not heard of */
	uint32_t told;              /* rank 0, of this barrier, */
	int32_t told_how;           /* and how it looked */
	pthread_mutex_t lock;       /* guards those below, and the node's barriers */
	pthread_cond_t changed;
	uint32_t awaited;
	bool stop, scanned, new_pids;
	bool refused;             /* somebody who was there before is of another kind */
	uint32_t entered, inside; /* the last barrier, and how many threads wait */
	uint32_t nconn;
	struct conn *conn;
	struct member member[];
};

static int fd_of(const p3_a32 *fd)
{
	return (int)p3_get(fd);
}

/* A child that is forked between the two steps loses a descriptor, and closes none that
 * is not ours. */
static void close_fd(p3_a32 *fd)
{
	int was = fd_of(fd);
	p3_set(fd, NONE);
	if (was >= 0)
		close(was);
}

static int watch(struct p3_meeting *m, int op, int fd, enum watch what, uint32_t which)
{
	struct epoll_event ev = {
		.events = EPOLLIN, .data.u64 = (uint64_t)what << 32 | which};
	return epoll_ctl(fd_of(&m->ep), op, fd, &ev) ? -errno : 0;
}

/* A forked child may keep what is behind it open, and it would be reported for ever. */
static void unwatch(struct p3_meeting *m, p3_a32 *fd)
{
	if (fd_of(fd) >= 0)
		(void)watch(m, EPOLL_CTL_DEL, fd_of(fd), CONN, 0);
	close_fd(fd);
}

/* ---- what is said ---- */

static struct p3_job_msg message(const struct p3_meeting *m, enum p3_job_op op)
{
	struct p3_node *node = m->node;
	struct p3_job_msg msg = {.magic = P3_JOB_MAGIC,
		.op = op,
		.node = node->index,
		.size = node->capacity,
		.nid = node->nid,
		.uid = node->uid,
		.jid = node->jid,
		.os_pid = (uint32_t)getpid(),
		.incarnation = node->incarnation,
		.layout = P3_LAYOUT_WORD,
		.seg_len = p3_nic_seg_len(m->nic)};
	for (int i = 0; i < P3_JOB_NIS; i++)
		msg.pid[i] = p3_acquire(&node->ni[i].open) /* INIT.1 */
				     ? p3_get(&node->ni[i].pid)
				     : P3_JOB_NO_PID;
	return msg;
}

static int tell(struct p3_meeting *m, struct conn *c)
{
	int all[P3_JOB_FDS], fds[3];
	struct p3_job_msg msg = message(m, P3_JOB_BORN);
	unsigned n = p3_nic_fds(m->nic, all);
	msg.heap_len = p3_nic_heap_len(m->nic);
	fds[0] = all[0];
	fds[1] = all[1];
	fds[2] = all[P3_JOB_FDS - 1];
	return p3_job_send(fd_of(&c->fd), &msg, fds, n == P3_JOB_FDS ? 3 : 2);
}

static void tell_pids(struct p3_meeting *m, struct conn *c)
{
	struct p3_job_msg msg = message(m, P3_JOB_PIDS);
	c->owes = p3_job_send(fd_of(&c->fd), &msg, NULL, 0) == -EAGAIN;
	m->unmet |= c->owes;
}

static struct p3_peer_info info_of(const struct p3_job_msg *msg)
{
	struct p3_peer_info info = {.node = msg->node,
		.nid = msg->nid,
		.uid = msg->uid,
		.jid = msg->jid,
		.os_pid = msg->os_pid,
		.incarnation = msg->incarnation,
		.seg_len = msg->seg_len,
		.heap_len = msg->heap_len,
		.published = -1,
		.doorbell = -1,
		.heap = -1};
	memcpy(info.pid, msg->pid, sizeof info.pid);
	return info;
}

/* ---- connections ---- */

static void not_awaited(struct p3_meeting *m, struct conn *c)
{
	if (!c->awaited)
		return;
	c->awaited = false;
	pthread_mutex_lock(&m->lock);
	m->awaited--;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
}

static void hang_up(struct p3_meeting *m, struct conn *c)
{
	unwatch(m, &c->fd);
	not_awaited(m, c);
	c->called = c->slot = NONE;
	c->incarnation = 0;
	c->owes = false;
}

static struct conn *free_conn(struct p3_meeting *m)
{
	for (uint32_t i = 0; i < m->nconn; i++)
		if (fd_of(&m->conn[i].fd) < 0)
			return &m->conn[i];
	return NULL;
}

static void await(struct p3_meeting *m, struct conn *c)
{
	pthread_mutex_lock(&m->lock);
	c->awaited = !m->scanned;
	m->awaited += c->awaited;
	pthread_mutex_unlock(&m->lock);
}

/* Takes fd, and says who we are. */
static void greet(struct p3_meeting *m, struct conn *c, int fd, uint32_t called)
{
	struct ucred who;
	socklen_t len = sizeof who;
	p3_set(&c->fd, (uint32_t)fd);
	c->called = called;
	c->slot = NONE;
	bool ok = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
		  who.uid == geteuid();
	if (ok && called != NONE)
		await(m, c);
	c->os_pid = ok ? (uint32_t)who.pid : 0;
	int rc = ok ? watch(m, EPOLL_CTL_ADD, fd, CONN, (uint32_t)(c - m->conn)) : 0;
	if (ok && !rc)
		rc = tell(m, c);
	m->unmet |= rc && rc != -EPIPE;
	if (!ok || rc)
		hang_up(m, c);
}

static void answer_calls(struct p3_meeting *m)
{
	for (;;) {
		struct conn *c = free_conn(m);
		int fd = c ? accept4(fd_of(&m->listen), NULL, NULL,
				     SOCK_CLOEXEC | SOCK_NONBLOCK)
			   : -1;
		fd = p3_fd_above_std(fd);
		if (fd >= 0) {
			greet(m, c, fd, NONE);
			continue;
		}
		if (c && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (c && errno == EAGAIN)
			return;
		m->deaf = true;
		(void)watch(m, EPOLL_CTL_DEL, fd_of(&m->listen), LISTEN, 0);
		return;
	}
}

/* ---- others ---- */

static bool is_met(const struct p3_meeting *m, uint32_t slot)
{
	if (m->member[slot].incarnation)
		return true;
	for (uint32_t i = 0; i < m->nconn; i++)
		if (fd_of(&m->conn[i].fd) >= 0 &&
			(m->conn[i].called == slot || m->conn[i].slot == slot))
			return true;
	return false;
}

/* Who does not listen yet will look for us when it does. */
static void call(struct p3_meeting *m, uint32_t slot)
{
	if (slot == m->place.slot || is_met(m, slot) || p3_domain_reap(&m->place, slot))
		return;
	struct conn *c = free_conn(m);
	int fd = c ? p3_domain_call(&m->place, slot) : -EMFILE;
	if (fd >= 0)
		greet(m, c, fd, slot);
	else
		m->unmet |= fd != -ECONNREFUSED && fd != -ENOENT;
}

static void scan(struct p3_meeting *m)
{
	uint64_t slots[P3_MAX_NODES / 64];
	m->unmet = p3_domain_list(&m->place, slots) != 0;
	for (uint32_t i = 0; i < m->node->capacity; i++)
		if (slots[i / 64] >> i % 64 & 1)
			call(m, i);
}

/* ---- the end of one ---- */

static void end_member(struct p3_meeting *m, uint32_t slot, enum p3_peer_end how)
{
	struct member *b = &m->member[slot];
	struct p3_peer_info info = {
		.node = slot, .incarnation = b->incarnation, .end = how};
	uint64_t incarnation = b->incarnation;
	b->incarnation = 0;
	b->missing = false;
	p3_nic_peer_down(m->nic, &info);
	if (!m->node->launched || how == P3_PEER_DIED || fd_of(&b->life) < 0) {
		unwatch(m, &b->life);
		b->ended = true;
	}
	for (uint32_t i = 0; i < m->nconn; i++)
		if (m->conn[i].slot == slot && m->conn[i].incarnation == incarnation)
			hang_up(m, &m->conn[i]);
}

static void hear(struct p3_meeting *m, struct conn *c);

/* It is gone: what it had said counts, its LEAVE above all. */
static void lose(struct p3_meeting *m, uint32_t slot)
{
	uint64_t incarnation = m->member[slot].incarnation;
	for (uint32_t i = 0; i < TURNS * m->nconn; i++) {
		struct conn *c = &m->conn[i / TURNS];
		if (c->slot == slot && m->member[slot].incarnation == incarnation)
			hear(m, c);
	}
	if (incarnation && m->member[slot].incarnation == incarnation)
		end_member(m, slot, P3_PEER_DIED);
}

/* ---- the birth of one ---- */

static bool is_of_this_kind(
	struct p3_meeting *m, const struct conn *c, const struct p3_job_msg *msg)
{
	bool ok = msg->layout == P3_LAYOUT_WORD && msg->size == m->node->capacity;
	if (msg->layout != P3_LAYOUT_WORD)
		p3_error("process %u of the domain %s has layout %#llx of libportals, "
			 "this one %#llx; run all programs of a domain with one build",
			c->os_pid, m->place.path, (unsigned long long)msg->layout,
			(unsigned long long)P3_LAYOUT_WORD);
	else if (!ok)
		p3_error("process %u has room for %u nodes in the domain %s, this one "
			 "for %u; set PTL3_DOMAIN_NODES alike for all in it",
			c->os_pid, msg->size, m->place.path, m->node->capacity);
	pthread_mutex_lock(&m->lock);
	m->refused |= !ok && c->awaited;
	pthread_mutex_unlock(&m->lock);
	return ok;
}

/* In the table of ranks, if it is of our job. */
static void set_rank(struct p3_meeting *m, const struct p3_job_msg *msg)
{
	struct p3_node *node = m->node;
	uint32_t rank = node->launched ? msg->node : msg->nid - (node->nid - node->rank);
	bool job = node->launched || node->sock >= 0;
	if (job && msg->jid == node->jid && rank < node->size)
		p3_job_set_ids(node, rank, msg->nid, msg->pid);
}

static void watch_life(struct p3_meeting *m, uint32_t slot)
{
	struct member *b = &m->member[slot];
	unwatch(m, &b->life); /* it has left, and comes again */
	int fd = p3_fd_above_std((int)syscall(SYS_pidfd_open, b->os_pid, 0));
	p3_set(&b->life, (uint32_t)fd);
	if (fd >= 0 && watch(m, EPOLL_CTL_ADD, fd, LIFE, slot) != 0)
		close_fd(&b->life);
}

static void miss(struct p3_meeting *m, struct p3_peer_info *info, int why)
{
	struct member *b = &m->member[info->node];
	bool first = !b->missing;
	p3_nic_peer_expect(m->nic, info);
	b->missing = p3_job_passes(why);
	if (!b->missing) {
		p3_error("node %u (nid %u, process %u) cannot be attached: %s; "
			 "operations with it fail",
			info->node, info->nid, info->os_pid, strerror(-why));
		info->end = P3_PEER_DIED;
		p3_nic_peer_down(m->nic, info);
	} else if (first) {
		p3_warn("node %u (process %u) cannot be attached: %s; messages to and "
			"from it wait until it can (open files: ulimit -n; memory; "
			"mappings: vm.max_map_count)",
			info->node, info->os_pid, strerror(-why));
	}
}

static void attach(struct p3_meeting *m, const struct p3_job_msg *msg, const int *fds)
{
	struct p3_peer_info info = info_of(msg);
	info.published = fds[0];
	info.doorbell = fds[1];
	info.heap = fds[2];
	info.heap_len = fds[2] < 0 ? 0 : msg->heap_len;
	int rc = fds[0] < 0 ? -EMFILE : p3_nic_peer_up(m->nic, &info);
	if (!rc || rc == -EEXIST)
		m->member[msg->node].missing = false;
	else if (rc != -ESTALE) /* it is leaving */
		miss(m, &info, rc);
}

/* Who says that it has another's ids has none. */
static void keep_own_ids(
	struct p3_meeting *m, const struct conn *c, struct p3_job_msg *msg)
{
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (!p3_domain_has_id(&m->place, msg->nid, msg->pid[i], c->os_pid))
			msg->pid[i] = P3_JOB_NO_PID;
}

static void on_born(
	struct p3_meeting *m, struct conn *c, struct p3_job_msg *msg, const int *fds)
{
	struct member *b = &m->member[msg->node];
	if (!is_of_this_kind(m, c, msg) || !msg->incarnation ||
		msg->node == m->place.slot ||
		p3_domain_is_over(&m->place, msg->node, c->os_pid)) {
		hang_up(m, c);
		return;
	}
	bool known = b->incarnation == msg->incarnation;
	if (b->incarnation && !known)
		lose(m, msg->node);
	c->slot = msg->node;
	c->incarnation = msg->incarnation;
	msg->os_pid = b->os_pid = c->os_pid;
	msg->uid = m->node->uid; /* the kernel has said so */
	keep_own_ids(m, c, msg);
	b->incarnation = msg->incarnation;
	set_rank(m, msg);
	b->come = known ? b->come : 0;
	if (!known || b->missing)
		attach(m, msg, fds);
	if (!known)
		watch_life(m, msg->node);
	not_awaited(m, c);
	if (p3_domain_is_over(&m->place, msg->node, c->os_pid))
		lose(m, msg->node); /* the pidfd may be another's */
}

static void on_pids(struct p3_meeting *m, const struct conn *c, struct p3_job_msg *msg)
{
	keep_own_ids(m, c, msg);
	struct p3_peer_info info = info_of(msg);
	set_rank(m, msg);
	p3_nic_peer_pids(m->nic, &info);
}

/* ---- the barrier ---- */

/* Through all connections with it: the other end may close any of them first. */
static bool say_barrier(struct p3_meeting *m, enum p3_job_op op, uint32_t to,
	uint32_t round, int32_t status)
{
	struct p3_job_msg msg = message(m, op);
	bool ok = true;
	msg.round = round;
	msg.status = status;
	for (uint32_t i = 0; i < m->nconn; i++)
		if (fd_of(&m->conn[i].fd) >= 0 &&
			m->conn[i].os_pid == m->member[to].os_pid)
			ok = !p3_job_send(fd_of(&m->conn[i].fd), &msg, NULL, 0) && ok;
	return ok;
}

static void release_all(struct p3_meeting *m, uint32_t round, int32_t status)
{
	for (uint32_t i = 0; i < m->node->size; i++)
		if (m->member[i].incarnation)
			(void)say_barrier(m, P3_JOB_RELEASED, i, round, status);
}

/* 0: all ranks are met; EPIPE: one of them is over; EAGAIN. */
static int32_t company(const struct p3_meeting *m)
{
	int32_t status = 0;
	for (uint32_t i = 0; i < m->node->size; i++) {
		if (i == m->place.slot)
			continue;
		if (m->member[i].ended)
			return EPIPE;
		if (!m->member[i].incarnation)
			status = EAGAIN;
	}
	return status;
}

static bool have_all_come(const struct p3_meeting *m, uint32_t round)
{
	for (uint32_t i = 0; i < m->node->size; i++)
		if (i != m->place.slot && m->member[i].come != round)
			return false;
	return true;
}

/* The barrier that this node is in, 0: none. */
static uint32_t current(struct p3_meeting *m, uint32_t *done_out)
{
	pthread_mutex_lock(&m->lock);
	*done_out = m->node->barriers_done;
	uint32_t round = m->entered != *done_out ? m->entered : 0;
	pthread_mutex_unlock(&m->lock);
	return round;
}

static void finish(struct p3_meeting *m, uint32_t round, int32_t status)
{
	pthread_mutex_lock(&m->lock);
	if (m->entered == round && m->node->barriers_done + 1 == round) {
		m->node->barriers_done = round;
		m->node->barrier_status = status;
		pthread_cond_broadcast(&m->changed);
	}
	pthread_mutex_unlock(&m->lock);
}

static void lead_barrier(struct p3_meeting *m)
{
	uint32_t done, round = current(m, &done);
	if (!m->broken && company(m) == EPIPE) {
		m->broken = true;
		release_all(m, done + 1, EPIPE);
	}
	if (!round || (!m->broken && !have_all_come(m, round)))
		return;
	if (!m->broken)
		release_all(m, round, 0);
	finish(m, round, m->broken ? EPIPE : 0);
}

/* What the others said before they came, such as new process ids, is heard first. */
static void leave_barrier(struct p3_meeting *m)
{
	struct p3_job_msg msg = m->released;
	if (!msg.round)
		return;
	for (uint32_t i = 0; i < m->nconn; i++)
		hear(m, &m->conn[i]);
	m->released.round = 0;
	finish(m, msg.round, msg.status);
}

static void follow_barrier(struct p3_meeting *m)
{
	leave_barrier(m);
	uint32_t done, round = current(m, &done);
	int32_t how = company(m);
	if (!round)
		return;
	if (m->member[0].ended)
		finish(m, round, EPIPE);
	else if (m->member[0].incarnation && (m->told != round || m->told_how != how) &&
		 say_barrier(m, P3_JOB_BARRIER, 0, round, how)) {
		m->told = round;
		m->told_how = how;
	}
}

static void see_to_barrier(struct p3_meeting *m)
{
	if (m->node->launched && m->place.slot == 0)
		lead_barrier(m);
	else if (m->node->launched)
		follow_barrier(m);
}

/* Out of step is who has begun anew meanwhile. */
static void on_barrier(struct p3_meeting *m, const struct p3_job_msg *msg)
{
	uint32_t done;
	(void)current(m, &done);
	bool next = msg->round == done + 1;
	if (next && msg->status == EPIPE && !m->broken) {
		m->broken = true;
		release_all(m, done + 1, EPIPE);
	} else if (next && !m->broken) {
		m->member[msg->node].come = msg->status ? 0 : msg->round;
	} else {
		bool over = msg->round == done;
		(void)say_barrier(m, P3_JOB_RELEASED, msg->node, msg->round,
			over ? m->node->barrier_status : EPIPE);
	}
}

/* What is said of the next one, which this node is not in, would hide this one. */
static void on_released(struct p3_meeting *m, const struct p3_job_msg *msg)
{
	uint32_t done;
	if (msg->round == current(m, &done))
		m->released = *msg;
}

/* A process of the job that had left in order. */
static void bury(struct p3_meeting *m, uint32_t slot)
{
	if (!m->node->launched || m->member[slot].incarnation)
		return;
	m->member[slot].ended = true;
	unwatch(m, &m->member[slot].life);
}

static void on_end_of_file(struct p3_meeting *m, struct conn *c)
{
	uint32_t slot = c->slot;
	bool ours = slot != NONE && m->member[slot].incarnation == c->incarnation;
	hang_up(m, c);
	if (ours)
		end_member(m, slot, P3_PEER_DIED);
}

/* Each incarnation has connections of its own. */
static bool is_other_birth(const struct conn *c, const struct p3_job_msg *msg)
{
	return msg->op == P3_JOB_BORN && c->slot != NONE &&
	       (c->slot != msg->node || c->incarnation != msg->incarnation);
}

static void on_message(
	struct p3_meeting *m, struct conn *c, struct p3_job_msg *msg, const int *fds)
{
	bool known = c->slot == msg->node && c->incarnation == msg->incarnation;
	if (is_other_birth(c, msg))
		on_end_of_file(m, c);
	else if (msg->op == P3_JOB_BORN && msg->node < m->node->capacity)
		on_born(m, c, msg, fds);
	else if (msg->op == P3_JOB_BORN)
		(void)is_of_this_kind(m, c, msg), hang_up(m, c);
	else if (msg->op == P3_JOB_AGAIN)
		m->unmet |= tell(m, c) == -EAGAIN;
	else if (msg->op == P3_JOB_PIDS && known)
		on_pids(m, c, msg);
	else if (msg->op == P3_JOB_LEAVE && known)
		end_member(m, c->slot, P3_PEER_LEFT);
	else if (msg->op == P3_JOB_BARRIER && known && m->place.slot == 0)
		on_barrier(m, msg);
	else if (msg->op == P3_JOB_RELEASED && known && c->slot == 0)
		on_released(m, msg);
}

static void hear(struct p3_meeting *m, struct conn *c)
{
	for (int i = 0; i < PACKETS && fd_of(&c->fd) >= 0; i++) {
		struct p3_job_msg msg;
		int fds[P3_JOB_FDS] = {-1, -1, -1, -1};
		unsigned nfds = 0;
		int rc = p3_job_recv(fd_of(&c->fd), &msg, fds, &nfds);
		if (rc == -EAGAIN)
			return;
		if (rc && rc != -EMFILE)
			on_end_of_file(m, c);
		else
			on_message(m, c, &msg, fds);
		for (unsigned k = 0; k < nfds; k++)
			close(fds[k]);
	}
}

/* ---- the belt ---- */

static void ask_again(struct p3_meeting *m, struct conn *c)
{
	if (c->slot == NONE && kill((pid_t)c->os_pid, 0) != 0 && errno == ESRCH) {
		hang_up(m, c); /* it never spoke, and its children hold the other end */
		return;
	}
	struct p3_job_msg msg = message(m, P3_JOB_AGAIN);
	if (c->slot != NONE && m->member[c->slot].missing)
		(void)p3_job_send(fd_of(&c->fd), &msg, NULL, 0);
	if (c->owes)
		tell_pids(m, c);
}

/* What no descriptor tells, and what found no room. */
static void belt(struct p3_meeting *m)
{
	for (uint32_t i = 0; i < m->node->capacity; i++)
		if (m->member[i].incarnation &&
			p3_domain_is_over(&m->place, i, m->member[i].os_pid))
			lose(m, i);
	if (m->deaf)
		m->deaf = watch(m, EPOLL_CTL_ADD, fd_of(&m->listen), LISTEN, 0) != 0;
	if (m->unmet)
		scan(m);
	m->told = 0;
	for (uint32_t i = 0; i < m->nconn; i++)
		if (fd_of(&m->conn[i].fd) >= 0)
			ask_again(m, &m->conn[i]);
}

static bool is_short(const struct p3_meeting *m)
{
	bool any = m->deaf || m->unmet;
	for (uint32_t i = 0; i < m->node->capacity && !any; i++)
		any = m->member[i].missing;
	return any;
}

static bool is_company(const struct p3_meeting *m)
{
	for (uint32_t i = 0; i < m->nconn; i++)
		if (fd_of(&m->conn[i].fd) >= 0)
			return true;
	return false;
}

/* Until the belt's next turn; for ever if there is nobody. */
static int patience(const struct p3_meeting *m)
{
	bool needy = is_short(m);
	if (!needy && !is_company(m))
		return -1;
	uint64_t now = p3_now_ns(), ms = needy ? AGAIN_MS : BELT_MS;
	uint64_t at = m->belt_ns + ms * 1000000;
	return at > now ? (int)((at - now) / 1000000 + 1) : 0;
}

/* ---- the thread ---- */

static bool on_wake(struct p3_meeting *m)
{
	uint64_t n;
	(void)!read(fd_of(&m->wake), &n, sizeof n);
	pthread_mutex_lock(&m->lock);
	bool stop = m->stop, pids = m->new_pids;
	m->new_pids = false;
	pthread_mutex_unlock(&m->lock);
	for (uint32_t i = 0; pids && i < m->nconn; i++)
		if (fd_of(&m->conn[i].fd) >= 0)
			tell_pids(m, &m->conn[i]);
	return !stop;
}

/* Not the one before it in this slot. */
static bool has_ended(const struct p3_meeting *m, uint32_t slot)
{
	struct pollfd life = {.fd = fd_of(&m->member[slot].life), .events = POLLIN};
	return life.fd >= 0 && poll(&life, 1, 0) > 0;
}

static bool on_event(struct p3_meeting *m, uint64_t what)
{
	uint32_t which = (uint32_t)what;
	switch ((enum watch)(what >> 32)) {
	case WAKE:
		return on_wake(m);
	case LISTEN:
		answer_calls(m);
		break;
	case CONN:
		hear(m, &m->conn[which]);
		break;
	case LIFE:
		if (has_ended(m, which)) {
			lose(m, which);
			bury(m, which);
		}
		break;
	}
	return true;
}

static bool turn(struct p3_meeting *m)
{
	struct epoll_event ev[EVENTS];
	bool on = true;
	int n = epoll_wait(fd_of(&m->ep), ev, EVENTS, patience(m));
	for (int i = 0; i < n; i++)
		on = on_event(m, ev[i].data.u64) && on;
	if (patience(m) == 0) {
		belt(m);
		m->belt_ns = p3_now_ns();
	}
	see_to_barrier(m);
	return on;
}

static void farewell(struct p3_meeting *m)
{
	struct p3_job_msg msg = message(m, P3_JOB_LEAVE);
	for (uint32_t i = 0; i < m->nconn; i++)
		if (fd_of(&m->conn[i].fd) >= 0)
			(void)p3_job_send(fd_of(&m->conn[i].fd), &msg, NULL, 0);
}

static void *meet(void *arg)
{
	struct p3_meeting *m = arg;
	scan(m);
	m->belt_ns = p3_now_ns();
	pthread_mutex_lock(&m->lock);
	m->scanned = true;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	while (turn(m))
		;
	farewell(m);
	return NULL;
}

static void wake(struct p3_meeting *m)
{
	uint64_t one = 1;
	while (write(fd_of(&m->wake), &one, sizeof one) < 0 && errno == EINTR)
		;
}

/* ---- entering ---- */

static struct p3_meeting *meeting_new(struct p3_node *node)
{
	uint32_t nconn = 2 * node->capacity + SPARE;
	struct p3_meeting *m =
		calloc(1, sizeof *m + node->capacity * sizeof m->member[0]);
	if (!m)
		return NULL;
	m->conn = calloc(nconn, sizeof *m->conn);
	if (!m->conn) {
		free(m);
		return NULL;
	}
	m->node = node;
	m->nconn = nconn;
	m->entered = node->barriers_done;
	p3_set(&m->listen, NONE);
	p3_set(&m->ep, NONE);
	p3_set(&m->wake, NONE);
	for (uint32_t i = 0; i < nconn; i++)
		p3_set(&m->conn[i].fd, NONE);
	for (uint32_t i = 0; i < node->capacity; i++)
		p3_set(&m->member[i].life, NONE);
	pthread_mutex_init(&m->lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&m->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return m;
}

static void meeting_free(struct p3_meeting *m)
{
	pthread_cond_destroy(&m->changed);
	pthread_mutex_destroy(&m->lock);
	free(m->conn);
	free(m);
}

static int say_full(const struct p3_meeting *m)
{
	p3_error("the domain %s is full: it has room for %u processes; end some, or set "
		 "PTL3_DOMAIN_NODES to more for all in it",
		m->place.path, m->node->capacity);
	return -ENOSPC;
}

/* In the domain of a job they are the ranks. */
static int take_slot(struct p3_meeting *m, int *fd_out)
{
	uint32_t holder, rank = m->node->rank;
	if (!m->node->launched)
		return p3_domain_take_slot(&m->place, m->node->capacity, fd_out);
	int rc = p3_domain_take_this_slot(&m->place, rank, fd_out, &holder);
	if (rc == -EADDRINUSE)
		p3_error("rank %u of the job in the domain %s is process %u already; "
			 "start one process of a rank at a time, or set "
			 "PTL3_LAUNCHED=off for those that are none of the ranks",
			rank, m->place.path, holder);
	return rc;
}

/* Those that yod started have its nids. */
static int take_nid(struct p3_meeting *m)
{
	uint32_t holder, nid = m->node->nid;
	if (m->node->sock >= 0)
		return 0;
	int rc = p3_domain_take_nid(&m->place, nid, &holder);
	if (rc == -EADDRINUSE)
		p3_error("node id %u belongs to a job that yod (process %u) runs in the "
			 "domain %s; set PTL3_NID to another",
			nid, holder, m->place.path);
	return rc;
}

static int go_in(struct p3_meeting *m)
{
	struct p3_domain_why why;
	int fd, rc = p3_domain_open(&m->place, P3_DOMAIN_BASE, m->node->domain, &why);
	if (rc) {
		p3_error("%s", why.text);
		return rc;
	}
	rc = take_nid(m);
	if (!rc)
		rc = take_slot(m, &fd);
	if (rc == -EUSERS)
		return say_full(m);
	if (rc && rc != -EADDRINUSE)
		p3_error("the domain %s: %s", m->place.path, strerror(-rc));
	if (!rc)
		p3_set(&m->listen, (uint32_t)fd);
	return rc;
}

int p3_meet_enter(struct p3_node *node)
{
	struct p3_meeting *m = meeting_new(node);
	if (!m)
		return -ENOMEM;
	int rc = go_in(m);
	node->meeting = m;
	node->index = m->place.slot;
	if (rc)
		p3_meet_exit(node);
	return rc;
}

void p3_meet_exit(struct p3_node *node)
{
	struct p3_meeting *m = node->meeting;
	if (!m)
		return;
	close_fd(&m->listen);
	p3_domain_leave(&m->place);
	node->meeting = NULL;
	meeting_free(m);
}

uint32_t p3_meet_crew(const struct p3_node *node)
{
	uint64_t slots[P3_MAX_NODES / 64];
	uint32_t n = 0;
	(void)p3_domain_list(&node->meeting->place, slots);
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		n += (uint32_t)__builtin_popcountll(slots[i]);
	return n < 2 ? 2 : n < node->size ? node->size : n;
}

static int say_clash(const struct p3_node *node, uint32_t pid, uint32_t holder)
{
	p3_error("process id %u on node %u is process %u's in the domain %s; ask for "
		 "another, or for PTL_PID_ANY, or set PTL3_NID or PTL3_DOMAIN",
		pid, node->nid, holder, node->meeting->place.path);
	return PTL_PID_INVALID;
}

/* The lock of another interface of ours would be had once more. */
static bool is_own(const struct p3_node *node, uint32_t pid)
{
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (p3_get(&node->ni[i].open) && p3_get(&node->ni[i].pid) == pid)
			return true;
	return false;
}

int p3_meet_claim(struct p3_node *node, ptl_pid_t base, ptl_pid_t *pid)
{
	struct p3_domain *place = &node->meeting->place;
	bool any = *pid == PTL_PID_ANY;
	uint32_t holder = (uint32_t)getpid(), want = any ? base : *pid;
	while (is_own(node, want) ||
		p3_domain_take_id(place, node->nid, want, &holder) != 0) {
		if (!any || ++want >= P3_DOMAIN_PIDS)
			return say_clash(node, want, holder);
	}
	*pid = want;
	return PTL_OK;
}

/* ---- joining and leaving ---- */

static int open_ends(struct p3_meeting *m)
{
	int fd = p3_fd_above_std(epoll_create1(EPOLL_CLOEXEC));
	p3_set(&m->ep, (uint32_t)fd);
	if (fd < 0)
		return -errno;
	fd = p3_fd_above_std(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	p3_set(&m->wake, (uint32_t)fd);
	if (fd < 0)
		return -errno;
	int rc = watch(m, EPOLL_CTL_ADD, fd, WAKE, 0);
	return rc ? rc : watch(m, EPOLL_CTL_ADD, fd_of(&m->listen), LISTEN, 0);
}

/* The node is a peer of its own. */
static int attach_self(struct p3_meeting *m)
{
	int fds[P3_JOB_FDS];
	struct p3_job_msg msg = message(m, P3_JOB_BORN);
	struct p3_peer_info info = info_of(&msg);
	(void)p3_nic_fds(m->nic, fds);
	info.published = fds[0];
	info.doorbell = fds[1];
	p3_job_set_ids(m->node, m->node->rank, msg.nid, msg.pid);
	return p3_nic_peer_up(m->nic, &info);
}

static int start_thread(struct p3_meeting *m)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&m->thread, NULL, meet, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -rc;
}

static bool wait_for_others(struct p3_meeting *m)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += P3_SETTLE_NS / 1000000000;
	pthread_mutex_lock(&m->lock);
	int rc = 0;
	while ((!m->scanned || m->awaited) && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&m->changed, &m->lock, &until);
	bool refused = m->refused;
	pthread_mutex_unlock(&m->lock);
	return !refused;
}

static void close_ends(struct p3_meeting *m)
{
	close_fd(&m->listen);
	for (uint32_t i = 0; i < m->nconn; i++)
		close_fd(&m->conn[i].fd);
	for (uint32_t i = 0; i < m->node->capacity; i++)
		close_fd(&m->member[i].life);
	close_fd(&m->wake);
	close_fd(&m->ep);
}

int p3_meet_join(struct p3_node *node, struct p3_nic *nic)
{
	struct p3_meeting *m = node->meeting;
	m->nic = nic;
	int rc = attach_self(m);
	rc = rc ? rc : open_ends(m);
	rc = rc ? rc : start_thread(m);
	if (rc) {
		p3_error("the network interface cannot join the domain %s: %s",
			m->place.path, strerror(-rc));
		m->nic = NULL;
		close_ends(m);
		return rc;
	}
	return wait_for_others(m) ? 0 : -EPROTO;
}

void p3_meet_pids(struct p3_node *node)
{
	struct p3_meeting *m = node->meeting;
	struct p3_job_msg msg = message(m, P3_JOB_PIDS);
	struct p3_peer_info info = info_of(&msg);
	p3_job_set_ids(node, node->rank, msg.nid, msg.pid);
	p3_nic_peer_pids(m->nic, &info);
	pthread_mutex_lock(&m->lock);
	m->new_pids = true;
	pthread_mutex_unlock(&m->lock);
	wake(m);
}

/* With the lock held. */
static void say_late(struct p3_meeting *m)
{
	uint64_t slots[P3_MAX_NODES / 64];
	uint32_t late = 0, first = 0;
	p3_domain_list(&m->place, slots);
	for (uint32_t i = m->node->size; i-- > 0;)
		if (!(slots[i / 64] >> i % 64 & 1)) {
			first = i;
			late++;
		}
	if (late)
		p3_warn("a barrier waits for %u of %u ranks that have no interface in "
			"the domain %s for %d s, rank %u first; see that all ranks call "
			"PtlNIInit, and have one job's name in the environment",
			late, m->node->size, m->place.path, LATE_S, first);
}

static int wait_for_release(struct p3_meeting *m, uint32_t round)
{
	struct timespec late;
	bool said = false;
	clock_gettime(CLOCK_MONOTONIC, &late);
	late.tv_sec += LATE_S;
	while (m->node->barriers_done != round && !m->stop) {
		int rc = said ? pthread_cond_wait(&m->changed, &m->lock)
			      : pthread_cond_timedwait(&m->changed, &m->lock, &late);
		if (rc != ETIMEDOUT)
			continue;
		said = true;
		say_late(m);
	}
	return m->node->barriers_done == round && !m->node->barrier_status ? 0 : -EPIPE;
}

static int say_early(void)
{
	p3_error("PtlXBarrier: this process has no interface; in a job that mpirun or "
		 "the like has started call it between PtlNIInit and PtlNIFini, or start "
		 "the job by yod");
	return -EPIPE;
}

int p3_meet_barrier(struct p3_node *node)
{
	pthread_mutex_lock(&node->life);
	struct p3_meeting *m = node->meeting;
	if (!m || !m->nic) {
		pthread_mutex_unlock(&node->life);
		return say_early();
	}
	pthread_mutex_lock(&m->lock);
	pthread_mutex_unlock(&node->life);
	uint32_t round = ++m->entered;
	m->inside++;
	wake(m);
	int rc = wait_for_release(m, round);
	m->inside--;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	return rc;
}

void p3_meet_part(struct p3_node *node)
{
	struct p3_meeting *m = node->meeting;
	if (!m || !m->nic)
		return;
	pthread_mutex_lock(&m->lock);
	m->stop = true;
	pthread_cond_broadcast(&m->changed);
	while (m->inside)
		pthread_cond_wait(&m->changed, &m->lock);
	pthread_mutex_unlock(&m->lock);
	wake(m);
	pthread_join(m->thread, NULL);
	close_ends(m);
	m->nic = NULL;
}

void p3_meet_disown(struct p3_node *node)
{
	struct p3_meeting *m = node->meeting;
	if (!m)
		return;
	close_ends(m);
	p3_domain_forget(&m->place);
}
