/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of a mesh, the epoll set of its thread, and packets to members. */
#include "lib/domain/internal.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define REPORTS    8 /* most lines about wrong behavior in REPORTS_NS */
#define REPORTS_NS 1000000000

void p3_mesh_close(p3_a32 *fd)
{
	int was = p3_mesh_fd(fd);
	p3_set(fd, P3_MESH_NONE);
	if (was >= 0)
		close(was);
}

/* op is EPOLL_CTL_...; return 0 or -errno. */
static int conn_epoll(struct p3_mesh *m, int op, int fd, uint32_t events,
	enum p3_mesh_watch what, uint32_t which)
{
	struct epoll_event ev = {
		.events = events, .data.u64 = (uint64_t)what << 32 | which};
	return epoll_ctl(p3_mesh_fd(&m->ep), op, fd, &ev) ? -errno : 0;
}

int p3_mesh_watch(
	struct p3_mesh *m, int op, int fd, enum p3_mesh_watch what, uint32_t which)
{
	return conn_epoll(m, op, fd, EPOLLIN, what, which);
}

bool p3_mesh_watches(
	struct p3_mesh *m, const p3_a32 *fd, enum p3_mesh_watch what, uint32_t which)
{
	return p3_mesh_watch(m, EPOLL_CTL_MOD, p3_mesh_fd(fd), what, which) == 0;
}

bool p3_mesh_has_lost(
	struct p3_mesh *m, const p3_a32 *fd, enum p3_mesh_watch what, uint32_t which)
{
	return p3_mesh_fd(fd) >= 0 && !p3_mesh_watches(m, fd, what, which);
}

void p3_mesh_drop(struct p3_mesh *m, p3_a32 *fd, enum p3_mesh_watch what, uint32_t which)
{
	if (p3_mesh_watches(m, fd, what, which))
		p3_mesh_close(fd);
	p3_set(fd, P3_MESH_NONE);
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

/* ---- calls ---- */

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

static int conn_watch_call(struct p3_mesh *m, int op, const struct p3_call *c,
	enum p3_mesh_watch what, uint32_t which)
{
	uint32_t out = c->state == P3_CALL_DIALING ? EPOLLOUT : 0;
	return conn_epoll(m, op, p3_mesh_fd(&c->fd), EPOLLIN | out, what, which);
}

void p3_mesh_add_call(
	struct p3_mesh *m, struct p3_call *c, enum p3_mesh_watch what, uint32_t which)
{
	if (conn_watch_call(m, EPOLL_CTL_ADD, c, what, which))
		p3_call_close(c); /* as if there were no descriptor for it */
}

void p3_mesh_watch_call(
	struct p3_mesh *m, struct p3_call *c, enum p3_mesh_watch what, uint32_t which)
{
	if (c->state != P3_CALL_NONE)
		(void)conn_watch_call(m, EPOLL_CTL_MOD, c, what, which);
}

struct p3_connection p3_mesh_take_call(struct p3_mesh *m, struct p3_call *c)
{
	(void)conn_watch_call(m, EPOLL_CTL_DEL, c, P3_MESH_REMOTE, 0);
	return p3_call_take(c);
}

void p3_mesh_close_call(struct p3_mesh *m, struct p3_call *c)
{
	if (c->state != P3_CALL_NONE && !p3_call_is_lost(c))
		(void)conn_watch_call(m, EPOLL_CTL_DEL, c, P3_MESH_REMOTE, 0);
	p3_call_close(c);
}

/* ---- the thread ---- */

void p3_mesh_wake(struct p3_mesh *m)
{
	/* If the program has closed the eventfd, the thread notices that by itself. */
	if (p3_mesh_watches(m, &m->wake, P3_MESH_WAKE, 0))
		p3_fd_signal(p3_mesh_fd(&m->wake));
}

/* ---- packets ---- */

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

void p3_mesh_send_pids(struct p3_mesh *m, struct p3_mesh_conn *c)
{
	struct p3_job_msg msg = p3_member_message(m->node, P3_JOB_PIDS);
	c->owes = p3_job_send(p3_mesh_fd(&c->fd), &msg, NULL, 0) == -EAGAIN;
	m->rescan |= c->owes;
}

bool p3_mesh_send_to_remote(
	struct p3_mesh *m, uint32_t rank, const struct p3_job_msg *msg)
{
	return p3_stream_post(m->node->modex->streams, rank, msg, NULL, 0) == 0;
}

bool p3_mesh_send(struct p3_mesh *m, uint32_t slot, const struct p3_job_msg *msg)
{
	bool ok = true;
	if (p3_mesh_is_far(m, slot))
		return p3_mesh_send_to_remote(m, slot, msg);
	for (uint32_t i = 0; i < m->nconn; i++) {
		const struct p3_mesh_conn *c = &m->conn[i];
		uint32_t with = c->slot == P3_MESH_NONE ? c->called : c->slot;
		if (p3_mesh_talks(c) && with == slot)
			ok &= !p3_job_send(p3_mesh_fd(&c->fd), msg, NULL, 0);
	}
	return ok;
}

void p3_mesh_say_breach(struct p3_mesh *m, const struct p3_mesh_conn *c, const char *what)
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
