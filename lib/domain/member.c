/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other processes of this host: their connections, packets, births and ends; the
 * descriptors of a mesh, and the epoll set of its thread.
 */
#include "lib/domain/internal.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS      2048 /* calls in a row: more than can be pending */
#define SILENT_NS  (2 * (uint64_t)P3_SETTLE_NS)
#define PACKETS    16 /* packets taken from one connection in a row */
#define TURNS      64 /* rows taken at a member's end: more packets than a socket holds */

#define REPORTS    8 /* most lines about wrong behavior in REPORTS_NS */
#define REPORTS_NS 1000000000

/* ---- descriptors ---- */

void p3_mesh_close(p3_a32 *fd)
{
	int was = p3_mesh_fd(fd);
	p3_set(fd, P3_MESH_NONE);
	if (was >= 0)
		close(was);
}

int p3_mesh_watch(
	struct p3_mesh *m, int op, int fd, enum p3_mesh_watch what, uint32_t which)
{
	struct epoll_event ev = {
		.events = EPOLLIN, .data.u64 = (uint64_t)what << 32 | which};
	return epoll_ctl(p3_mesh_fd(&m->ep), op, fd, &ev) ? -errno : 0;
}

bool p3_mesh_watches(
	struct p3_mesh *m, const p3_a32 *fd, enum p3_mesh_watch what, uint32_t which)
{
	return p3_mesh_watch(m, EPOLL_CTL_MOD, p3_mesh_fd(fd), what, which) == 0;
}

void p3_mesh_unwatch(struct p3_mesh *m, p3_a32 *fd)
{
	int was = p3_mesh_fd(fd);
	if (was >= 0 && p3_mesh_watch(m, EPOLL_CTL_DEL, was, P3_MESH_CONN, 0) == 0)
		p3_mesh_close(fd);
	p3_set(fd, P3_MESH_NONE);
}

void p3_mesh_hang_up(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	p3_mesh_unwatch(m, &c->fd);
	c->called = c->slot = P3_MESH_NONE;
	c->incarnation = 0;
	c->born_sent = c->awaited = c->owes = false;
}

void p3_mesh_pause(
	struct p3_mesh *m, bool *paused, const p3_a32 *fd, enum p3_mesh_watch what)
{
	*paused = true;
	(void)p3_mesh_watch(m, EPOLL_CTL_DEL, p3_mesh_fd(fd), what, 0);
}

void p3_mesh_resume(
	struct p3_mesh *m, bool *paused, const p3_a32 *fd, enum p3_mesh_watch what)
{
	if (*paused)
		*paused = p3_mesh_watch(m, EPOLL_CTL_ADD, p3_mesh_fd(fd), what, 0) != 0;
}

/* ---- connections ---- */

int p3_mesh_send_born(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	int all[P3_JOB_FDS], fds[3];
	struct p3_job_msg msg = p3_member_message(m->node, P3_JOB_BORN);
	unsigned n = p3_nic_fds(m->nic, all);
	msg.heap_len = p3_nic_heap_len(m->nic);
	fds[0] = all[0];
	fds[1] = all[1];
	fds[2] = all[P3_JOB_FDS - 1];
	int rc = p3_job_send(p3_mesh_fd(&c->fd), &msg, fds, n == P3_JOB_FDS ? 3 : 2);
	c->born_sent |= !rc;
	FAULT_POINT("meet.told");
	return rc;
}

/* Print a line about a process that breaks the rules, whose connection is closed.  The
 * number of these lines is limited: one for each process in a row. */
static void conn_say_breach(
	struct p3_mesh *m, const struct p3_mesh_conn *c, const char *what)
{
	uint64_t now = p3_now_ns();
	if (now - m->reported_ns > REPORTS_NS) {
		m->reported_ns = now;
		m->nreported = 0;
	}
	if (m->reported_pid == c->os_pid || m->nreported == REPORTS)
		return;
	m->reported_pid = c->os_pid;
	m->nreported++;
	p3_warn("process %u %s; it is hung up (run all programs of the domain %s with "
		"one build of libportals, and let no other program connect to its "
		"sockets)",
		c->os_pid, what, m->place.path);
}

/* ---- end of a member ---- */

void p3_mesh_end(struct p3_mesh *m, uint32_t slot, enum p3_peer_end how)
{
	p3_member_end(&m->node->member[slot], how);
	FAULT_POINT("meet.end_heard");
	p3_mesh_remove(m, slot, false);
}

/* Note that a member, if it is a rank of the own job, has left or has died.  Go on
 * watching the life of one that has left in order, under its rank: another process may
 * take its slot. */
static void member_remove_rank(struct p3_mesh *m, struct p3_member *b, uint32_t slot)
{
	if (b->rank == P3_MESH_NONE)
		return;
	struct p3_mesh_rank *r = &m->rank[b->rank];
	int fd = p3_mesh_fd(&b->life);
	bool left = b->how == P3_PEER_LEFT, current = r->slot == slot;
	if (!left) {
		r->ended = true;
	} else if (current && p3_mesh_is_far(m, b->rank)) {
		/* its connection shows its life */
		r->ended |= m->node->modex->remote[b->rank].ended;
	} else if (current && (fd < 0 || p3_mesh_watch(m, EPOLL_CTL_MOD, fd, P3_MESH_RANK,
						 b->rank) != 0)) {
		r->ended = true;
	} else if (current) {
		p3_set(&r->life, (uint32_t)fd);
		p3_set(&b->life, P3_MESH_NONE);
	}
	if (current)
		r->slot = P3_MESH_NONE;
	b->rank = P3_MESH_NONE;
}

void p3_mesh_remove(struct p3_mesh *m, uint32_t slot, bool now)
{
	struct p3_member *b = &m->node->member[slot];
	uint64_t incarnation = b->incarnation;
	if (!p3_member_remove(m->node, m->nic, slot, now))
		return;
	FAULT_POINT("meet.end_taken");
	member_remove_rank(m, b, slot);
	p3_mesh_unwatch(m, &b->life);
	for (uint32_t i = 0; i < m->nconn; i++)
		if (m->conn[i].slot == slot && m->conn[i].incarnation == incarnation)
			p3_mesh_hang_up(m, &m->conn[i]);
}

void p3_mesh_on_process_end(struct p3_mesh *m, uint32_t slot)
{
	uint64_t incarnation = m->node->member[slot].incarnation;
	for (uint32_t i = 0; i < TURNS * m->nconn; i++) {
		struct p3_mesh_conn *c = &m->conn[i / TURNS];
		if (c->slot == slot && m->node->member[slot].incarnation == incarnation)
			p3_mesh_receive(m, c);
	}
	if (incarnation && m->node->member[slot].incarnation == incarnation)
		p3_mesh_end(m, slot, P3_PEER_DIED);
}

/* ---- birth of a member ---- */

/* Give up joining if an earlier member refuses this process. */
static void member_refuse_joining(struct p3_mesh *m, const struct p3_mesh_conn *c)
{
	pthread_mutex_lock(&m->lock);
	m->refused |= c->awaited;
	pthread_mutex_unlock(&m->lock);
}

static bool member_is_compatible(
	struct p3_mesh *m, const struct p3_mesh_conn *c, const struct p3_job_msg *msg)
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
	if (!ok)
		member_refuse_joining(m, c);
	return ok;
}

/* Remove the rank from the packet if another process of the job has it. */
static void member_keep_own_rank(
	struct p3_mesh *m, const struct p3_mesh_conn *c, struct p3_job_msg *msg)
{
	uint32_t holder;
	if (!m->node->launched || msg->jid != m->node->jid || msg->rank >= m->nrank ||
		msg->rank == m->node->rank ||
		(p3_domain_has_rank(&m->place, m->node->job, msg->rank, &holder) &&
			holder != c->os_pid))
		msg->rank = P3_JOB_NO_RANK;
}

/* Note the slot of a rank of the own job.  If the rank has left another slot, process its
 * packets from there first. */
static void member_place_rank(struct p3_mesh *m, uint32_t rank, uint32_t slot)
{
	m->node->member[slot].rank = rank;
	if (rank == P3_MESH_NONE || m->rank[rank].slot == slot)
		return;
	uint32_t former = m->rank[rank].slot;
	if (former != P3_MESH_NONE && m->node->member[former].rank == rank) {
		p3_mesh_on_process_end(m, former);
		p3_mesh_remove(m, former, true);
	}
	m->rank[rank].slot = slot;
	m->rank[rank].come = 0;
	p3_mesh_unwatch(m, &m->rank[rank].life); /* the rank is a member again */
}

/* Enter a member in the table of ranks, if it is of the same job. */
static void member_set_ids(struct p3_mesh *m, const struct p3_job_msg *msg)
{
	struct p3_node *node = m->node;
	uint32_t rank = node->launched ? msg->rank : msg->nid - (node->nid - node->rank);
	bool job = node->launched || node->sock >= 0;
	if (job && msg->jid == node->jid && rank < node->size)
		p3_directory_set(&node->directory, rank, msg->nid, msg->pid);
}

/* Remove ids from the packet that belong to another process.  The locks of a process
 * that has ended are free: its ids are believed unless another process has them now. */
static void member_keep_own_ids(
	struct p3_mesh *m, const struct p3_mesh_conn *c, struct p3_job_msg *msg)
{
	bool over = p3_domain_is_over(&m->place, msg->node, c->os_pid);
	for (int i = 0; i < P3_JOB_NIS; i++) {
		bool own = over ? !p3_domain_is_anothers_id(
					  &m->place, msg->nid, msg->pid[i], c->os_pid)
				: p3_domain_has_id(
					  &m->place, msg->nid, msg->pid[i], c->os_pid);
		if (!own)
			msg->pid[i] = P3_JOB_NO_PID;
	}
}

static void member_send_born(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	if (!c->born_sent)
		(void)p3_mesh_send_born(m, c);
}

/* Hang up a member that this process refuses.  Send this process's BORN first, so that
 * the member finds the same difference and reports it too. */
static void member_refuse(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	member_send_born(m, c);
	p3_mesh_hang_up(m, c);
}

/* Enter the sender of a BORN as the member of its slot, with the ids that it has locked.
 * known: it is the member already. */
static void member_enter(
	struct p3_mesh *m, struct p3_mesh_conn *c, struct p3_job_msg *msg, bool known)
{
	struct p3_member *b = &m->node->member[msg->node];
	c->slot = msg->node;
	c->incarnation = msg->incarnation;
	msg->os_pid = b->os_pid = c->os_pid;
	msg->uid = m->node->uid; /* conn_greet() has asked the kernel */
	member_keep_own_ids(m, c, msg);
	if (known) /* another process may have the rank by now */
		msg->rank = b->rank;
	else
		member_keep_own_rank(m, c, msg);
	b->incarnation = msg->incarnation;
	member_place_rank(m, msg->rank, msg->node);
	member_set_ids(m, msg);
}

static void member_on_born(
	struct p3_mesh *m, struct p3_mesh_conn *c, struct p3_job_msg *msg, const int *fds)
{
	struct p3_member *b = &m->node->member[msg->node];
	if (!member_is_compatible(m, c, msg) || !msg->incarnation ||
		msg->node == m->place.slot ||
		p3_domain_is_anothers(&m->place, msg->node, c->os_pid)) {
		member_refuse(m, c);
		return;
	}
	FAULT_POINT("meet.born_heard");
	bool known = b->incarnation == msg->incarnation;
	if (b->incarnation && !known) {
		p3_mesh_on_process_end(m, msg->node);
		p3_mesh_remove(m, msg->node, true);
	}
	member_enter(m, c, msg, known);
	if (!known || b->missing) {
		/*
		 * Expect the new member, and send it this process's BORN, before mapping
		 * its segment.  As soon as the segment is mapped, the NIC sends the
		 * messages that wait for the member, and this process may end right then.
		 * The member finds these messages only if it has received the BORN.
		 */
		struct p3_peer_info info = p3_member_info(m->node, msg, NULL);
		if (!c->born_sent) {
			p3_nic_peer_expect(m->nic, &info);
			FAULT_POINT("meet.expected");
			member_send_born(m, c);
		}
		info = p3_member_info(m->node, msg, fds);
		p3_member_attach(m->node, m->nic, &info, fds[0] < 0);
	}
	FAULT_POINT("meet.attached");
	if (!known) {
		p3_mesh_unwatch(m, &b->life); /* the member has left, and joins again */
		int fd = p3_fd_high((int)syscall(SYS_pidfd_open, b->os_pid, 0));
		p3_set(&b->life, (uint32_t)fd);
		if (fd >= 0 &&
			p3_mesh_watch(m, EPOLL_CTL_ADD, fd, P3_MESH_LIFE, msg->node) != 0)
			p3_mesh_close(&b->life);
	}
	c->awaited = false;
	/* This pidfd may name a later process. */
	if (p3_domain_is_over(&m->place, msg->node, c->os_pid))
		p3_mesh_on_process_end(m, msg->node);
}

/* ---- receiving ---- */

/* Process an end of file.  If this node had called the member and got no BORN, let the
 * periodic check call it again: the member may have hung up for want of room. */
static void member_on_end_of_file(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	uint32_t slot = c->slot;
	bool ours = slot != P3_MESH_NONE &&
		    m->node->member[slot].incarnation == c->incarnation;
	m->rescan |= slot == P3_MESH_NONE && c->called != P3_MESH_NONE;
	p3_mesh_hang_up(m, c);
	if (ours)
		p3_mesh_end(m, slot, P3_PEER_DIED);
}

static void member_breach(struct p3_mesh *m, struct p3_mesh_conn *c, const char *what)
{
	conn_say_breach(m, c, what);
	c->called = P3_MESH_NONE;
	member_on_end_of_file(m, c);
}

/* lost: there was no room for its descriptors. */
static void member_on_packet(
	struct p3_mesh *m, struct p3_mesh_conn *c, struct p3_job_packet *p, bool lost)
{
	struct p3_job_msg *msg = &p->msg;
	bool known = c->slot == msg->node && c->incarnation == msg->incarnation;
	bool fds = msg->op == P3_JOB_BORN && !lost;
	if (fds ? p->nfds != 2 && p->nfds != 3 : p->nfds != 0)
		member_breach(m, c, "sends a wrong number of descriptors");
	else if (c->slot == P3_MESH_NONE) {
		if (msg->op != P3_JOB_BORN) {
			member_breach(m, c, "does not say first who it is");
		} else if (msg->node < m->node->capacity) {
			member_on_born(m, c, msg, p->fds);
		} else {
			(void)member_is_compatible(m, c, msg); /* prints the difference */
			member_refuse(m, c);
		}
		if (p3_mesh_fd(&c->fd) >= 0) /* without room, the check repeats it */
			member_send_born(m, c);
	} else if (msg->op == P3_JOB_BORN && !known) /* it needs another connection */
		member_on_end_of_file(m, c);
	else if (msg->op == P3_JOB_BORN)
		member_on_born(m, c, msg, p->fds);
	else if (msg->op == P3_JOB_AGAIN)
		m->rescan |= p3_mesh_send_born(m, c) == -EAGAIN;
	else if (msg->op == P3_JOB_PIDS && known) {
		member_keep_own_ids(m, c, msg);
		member_keep_own_rank(m, c, msg);
		struct p3_peer_info info = p3_member_info(m->node, msg, NULL);
		member_set_ids(m, msg);
		p3_nic_peer_pids(m->nic, &info);
		FAULT_POINT("meet.pids_taken");
	} else if (msg->op == P3_JOB_LEAVE && known)
		p3_mesh_end(m, c->slot, P3_PEER_LEFT);
	else if (known)
		p3_mesh_on_barrier_packet(m, m->node->member[c->slot].rank, msg);
}

void p3_mesh_receive(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	for (int i = 0; i < PACKETS && p3_mesh_fd(&c->fd) >= 0; i++) {
		struct p3_job_packet p;
		char text[120];
		int rc = p3_job_recv(p3_mesh_fd(&c->fd), 0, &p);
		if (rc == -EAGAIN)
			return;
		if (!rc || rc == -EMFILE)
			member_on_packet(m, c, &p, rc != 0);
		else if (rc == -EPROTONOSUPPORT) {
			snprintf(text, sizeof text,
				"speaks version %u of the protocol of domains, this one "
				"version %u",
				p3_job_version(p.msg.magic),
				p3_job_version(P3_JOB_MAGIC));
			member_refuse_joining(m, c);
			member_send_born(m, c);
			member_breach(m, c, text);
		} else if (rc == -EPROTO)
			member_breach(m, c, "sends what is no packet of a domain");
		else
			member_on_end_of_file(m, c);
		p3_job_close(&p);
	}
}

/* ---- calls: processes that have not introduced themselves ---- */

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
	conn_say_breach(m, c, why);
	p3_mesh_hang_up(m, c);
}

/* Return the silent connection to close for want of room, or NULL: the oldest one of a
 * process that has more than half of them (whose candidate the majority vote of Boyer and
 * Moore finds), and so not that of a newcomer that is about to introduce itself; else the
 * oldest of all. */
static struct p3_mesh_conn *conn_oldest_silent(struct p3_mesh *m)
{
	struct p3_mesh_conn *oldest = NULL, *of_crowd = NULL;
	uint32_t pid = 0, lead = 0, crowd = 0, all = 0;
	for (uint32_t i = 0; i < m->nconn; i++) {
		if (!conn_is_silent(&m->conn[i]))
			continue;
		pid = lead ? pid : m->conn[i].os_pid;
		lead += m->conn[i].os_pid == pid ? 1 : (uint32_t)-1;
	}
	for (uint32_t i = 0; i < m->nconn; i++) {
		struct p3_mesh_conn *c = &m->conn[i];
		if (!conn_is_silent(c))
			continue;
		all++;
		crowd += c->os_pid == pid;
		if (!oldest || c->since_ns < oldest->since_ns)
			oldest = c;
		if (c->os_pid == pid && (!of_crowd || c->since_ns < of_crowd->since_ns))
			of_crowd = c;
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
	struct p3_mesh_conn *c = conn_find_free(m), *silent;
	while (!c && (silent = conn_oldest_silent(m))) {
		conn_close_silent(m, silent,
			"takes the last connection, and does not say who it is");
		c = conn_find_free(m);
	}
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
		p3_mesh_pause(m, &m->accept_paused, &m->listen, P3_MESH_LISTEN);
}

bool p3_mesh_close_mute(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	if (!conn_is_silent(c) || p3_now_ns() - c->since_ns <= SILENT_NS)
		return false;
	conn_close_silent(m, c, "connects, and does not say who it is");
	return true;
}

/* Call all members that are not met, dead or this node.  A member that does not listen
 * yet looks for this node when it does. */
void p3_mesh_scan(struct p3_mesh *m)
{
	uint64_t slots[P3_MAX_NODES / 64];
	m->rescan = p3_domain_list(&m->place, slots) != 0;
	for (uint32_t i = 0; i < m->node->capacity; i++) {
		if (!(slots[i / 64] >> i % 64 & 1))
			continue;
		bool met = i == m->place.slot || m->node->member[i].incarnation;
		for (uint32_t k = 0; !met && k < m->nconn; k++)
			met = p3_mesh_fd(&m->conn[k].fd) >= 0 &&
			      (m->conn[k].called == i || m->conn[k].slot == i);
		if (!met && !p3_domain_reap(&m->place, i)) {
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
