/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of members, and the births and ends of members. */
#include "lib/domain/internal.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PACKETS 16 /* packets taken from one connection in a row */
#define TURNS   64 /* rows taken at a member's end: more packets than a socket holds */

/* ---- end of a member ---- */

void p3_mesh_end(struct p3_mesh *m, uint32_t slot, enum p3_peer_end how)
{
	struct p3_mesh_member *b = &m->member[slot];
	b->how = b->ending ? b->how : how;
	b->ending = true;
	FAULT_POINT("meet.end_heard");
	p3_mesh_remove(m, slot, false);
}

/* Go on watching the life of a rank that has left in order, under its rank: another
 * process may take its slot.  Return false if that is impossible. */
static bool member_watch_rank(struct p3_mesh *m, struct p3_mesh_member *b)
{
	p3_a32 *life = &m->rank[b->rank].life;
	if (p3_mesh_is_far(m, b->rank)) /* its connection shows its life */
		return !m->node->modex->remote[b->rank].ended;
	int fd = p3_mesh_fd(&b->life);
	if (fd < 0 || p3_mesh_watch(m, EPOLL_CTL_MOD, fd, P3_MESH_RANK, b->rank) != 0)
		return false;
	p3_set(life, (uint32_t)fd);
	p3_set(&b->life, P3_MESH_NONE);
	return true;
}

/* Note that a member, if it is a rank of the own job, has left or has died. */
static void member_remove_rank(struct p3_mesh *m, struct p3_mesh_member *b, uint32_t slot)
{
	if (b->rank == P3_MESH_NONE)
		return;
	struct p3_mesh_rank *r = &m->rank[b->rank];
	bool left = b->how == P3_PEER_LEFT, current = r->slot == slot;
	if (!left || (current && !member_watch_rank(m, b)))
		r->ended = true;
	if (current)
		r->slot = P3_MESH_NONE;
	b->rank = P3_MESH_NONE;
}

void p3_mesh_remove(struct p3_mesh *m, uint32_t slot, bool now)
{
	struct p3_mesh_member *b = &m->member[slot];
	uint64_t incarnation = b->incarnation;
	struct p3_peer_info info = {
		.node = slot, .incarnation = incarnation, .end = b->how, .now = now};
	if (!b->ending || !p3_nic_peer_down(m->nic, &info))
		return;
	b->incarnation = 0;
	b->missing = b->ending = false;
	FAULT_POINT("meet.end_taken");
	member_remove_rank(m, b, slot);
	p3_mesh_unwatch(m, &b->life);
	for (uint32_t i = 0; i < m->nconn; i++)
		if (m->conn[i].slot == slot && m->conn[i].incarnation == incarnation)
			p3_mesh_hang_up(m, &m->conn[i]);
}

void p3_mesh_on_process_end(struct p3_mesh *m, uint32_t slot)
{
	uint64_t incarnation = m->member[slot].incarnation;
	for (uint32_t i = 0; i < TURNS * m->nconn; i++) {
		struct p3_mesh_conn *c = &m->conn[i / TURNS];
		if (c->slot == slot && m->member[slot].incarnation == incarnation)
			p3_mesh_receive(m, c);
	}
	if (incarnation && m->member[slot].incarnation == incarnation)
		p3_mesh_end(m, slot, P3_PEER_DIED);
}

void p3_mesh_on_rank_end(struct p3_mesh *m, uint32_t rank)
{
	m->rank[rank].ended = true;
	p3_mesh_unwatch(m, &m->rank[rank].life);
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
	m->member[slot].rank = rank;
	if (rank == P3_MESH_NONE || m->rank[rank].slot == slot)
		return;
	uint32_t former = m->rank[rank].slot;
	if (former != P3_MESH_NONE && m->member[former].rank == rank) {
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

static void member_watch_life(struct p3_mesh *m, uint32_t slot)
{
	struct p3_mesh_member *b = &m->member[slot];
	p3_mesh_unwatch(m, &b->life); /* the member has left, and joins again */
	int fd = p3_fd_high((int)syscall(SYS_pidfd_open, b->os_pid, 0));
	p3_set(&b->life, (uint32_t)fd);
	if (fd >= 0 && p3_mesh_watch(m, EPOLL_CTL_ADD, fd, P3_MESH_LIFE, slot) != 0)
		p3_mesh_close(&b->life);
}

void p3_mesh_on_attach(struct p3_mesh *m, struct p3_peer_info *info, int rc)
{
	struct p3_mesh_member *b = &m->member[info->node];
	bool first = !b->missing;
	if (!rc || rc == -EEXIST)
		b->missing = false;
	if (!rc || rc == -EEXIST || rc == -ESTALE) /* ESTALE: the member is leaving */
		return;
	b->missing = p3_mesh_peer_may_come(m->nic, info, rc);
	if (b->missing && first)
		p3_warn("node %u (process %u) cannot be attached: %s; messages to and "
			"from it wait until it can (open files: ulimit -n; memory, after "
			"mlockall: ulimit -l; mappings: vm.max_map_count)",
			info->node, info->os_pid, strerror(-rc));
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
	struct p3_mesh_member *b = &m->member[msg->node];
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
	struct p3_mesh_member *b = &m->member[msg->node];
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
		struct p3_peer_info info = p3_mesh_info(m, msg, NULL);
		if (!c->born_sent) {
			p3_nic_peer_expect(m->nic, &info);
			FAULT_POINT("meet.expected");
			member_send_born(m, c);
		}
		info = p3_mesh_info(m, msg, fds);
		p3_mesh_on_attach(
			m, &info, fds[0] < 0 ? -EMFILE : p3_nic_peer_up(m->nic, &info));
	}
	FAULT_POINT("meet.attached");
	if (!known)
		member_watch_life(m, msg->node);
	c->awaited = false;
	/* The pidfd of member_watch_life() may name a later process. */
	if (p3_domain_is_over(&m->place, msg->node, c->os_pid))
		p3_mesh_on_process_end(m, msg->node);
}

static void member_on_pids(
	struct p3_mesh *m, const struct p3_mesh_conn *c, struct p3_job_msg *msg)
{
	member_keep_own_ids(m, c, msg);
	member_keep_own_rank(m, c, msg);
	struct p3_peer_info info = p3_mesh_info(m, msg, NULL);
	member_set_ids(m, msg);
	p3_nic_peer_pids(m->nic, &info);
	FAULT_POINT("meet.pids_taken");
}

/* ---- receiving ---- */

struct packet {
	struct p3_job_msg msg;
	int fds[P3_JOB_FDS];
	unsigned nfds;
	bool lost; /* there was no room for its descriptors */
};

/* Process an end of file.  If this node had called the member and got no BORN, let the
 * periodic check call it again: the member may have hung up for want of room. */
static void member_on_end_of_file(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	uint32_t slot = c->slot;
	bool ours = slot != P3_MESH_NONE && m->member[slot].incarnation == c->incarnation;
	m->rescan |= slot == P3_MESH_NONE && c->called != P3_MESH_NONE;
	p3_mesh_hang_up(m, c);
	if (ours)
		p3_mesh_end(m, slot, P3_PEER_DIED);
}

static void member_breach(struct p3_mesh *m, struct p3_mesh_conn *c, const char *what)
{
	p3_mesh_say_breach(m, c, what);
	c->called = P3_MESH_NONE;
	member_on_end_of_file(m, c);
}

static bool member_has_its_fds(const struct packet *p)
{
	if (p->msg.op != P3_JOB_BORN || p->lost)
		return p->nfds == 0;
	return p->nfds == 2 || p->nfds == 3;
}

static void member_on_first_packet(
	struct p3_mesh *m, struct p3_mesh_conn *c, struct packet *p)
{
	if (p->msg.op != P3_JOB_BORN) {
		member_breach(m, c, "does not say first who it is");
	} else if (p->msg.node < m->node->capacity) {
		member_on_born(m, c, &p->msg, p->fds);
	} else {
		(void)member_is_compatible(m, c, &p->msg); /* prints the difference */
		member_refuse(m, c);
	}
	if (p3_mesh_fd(&c->fd) >= 0)
		member_send_born(
			m, c); /* if there is no room, mesh_check() repeats this */
}

static void member_on_packet(struct p3_mesh *m, struct p3_mesh_conn *c, struct packet *p)
{
	struct p3_job_msg *msg = &p->msg;
	bool known = c->slot == msg->node && c->incarnation == msg->incarnation;
	if (!member_has_its_fds(p))
		member_breach(m, c, "sends a wrong number of descriptors");
	else if (c->slot == P3_MESH_NONE)
		member_on_first_packet(m, c, p);
	else if (msg->op == P3_JOB_BORN && !known) /* it needs another connection */
		member_on_end_of_file(m, c);
	else if (msg->op == P3_JOB_BORN)
		member_on_born(m, c, msg, p->fds);
	else if (msg->op == P3_JOB_AGAIN)
		m->rescan |= p3_mesh_send_born(m, c) == -EAGAIN;
	else if (msg->op == P3_JOB_PIDS && known)
		member_on_pids(m, c, msg);
	else if (msg->op == P3_JOB_LEAVE && known)
		p3_mesh_end(m, c->slot, P3_PEER_LEFT);
	else if (known)
		p3_mesh_on_barrier_packet(m, m->member[c->slot].rank, msg);
}

static void member_on_other_version(
	struct p3_mesh *m, struct p3_mesh_conn *c, uint32_t magic)
{
	char text[120];
	snprintf(text, sizeof text,
		"speaks version %u of the protocol of domains, this one version %u",
		p3_job_version(magic), p3_job_version(P3_JOB_MAGIC));
	member_refuse_joining(m, c);
	member_send_born(m, c);
	member_breach(m, c, text);
}

void p3_mesh_receive(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	for (int i = 0; i < PACKETS && p3_mesh_fd(&c->fd) >= 0; i++) {
		struct packet p = {.fds = {-1, -1, -1, -1}};
		int rc = p3_job_recv(p3_mesh_fd(&c->fd), &p.msg, p.fds, &p.nfds);
		if (rc == -EAGAIN)
			return;
		p.lost = rc == -EMFILE;
		if (!rc || p.lost)
			member_on_packet(m, c, &p);
		else if (rc == -EPROTONOSUPPORT)
			member_on_other_version(m, c, p.msg.magic);
		else if (rc == -EPROTO)
			member_breach(m, c, "sends what is no packet of a domain");
		else
			member_on_end_of_file(m, c);
		for (unsigned k = 0; k < p.nfds; k++)
			close(p.fds[k]);
	}
}
