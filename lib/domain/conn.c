/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of a meeting, and the set of them that its thread waits for. */
#include "lib/domain/meet.h"
#include "lib/domain/meeting.h"
#include "shm/fd.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

void p3_meet_close(p3_a32 *fd)
{
	int was = p3_meet_fd(fd);
	p3_set(fd, P3_MEET_NONE);
	if (was >= 0)
		close(was);
}

int p3_meet_watch(
	struct p3_meeting *m, int op, int fd, enum p3_meet_watch what, uint32_t which)
{
	struct epoll_event ev = {
		.events = EPOLLIN, .data.u64 = (uint64_t)what << 32 | which};
	return epoll_ctl(p3_meet_fd(&m->ep), op, fd, &ev) ? -errno : 0;
}

bool p3_meet_watches(
	struct p3_meeting *m, const p3_a32 *fd, enum p3_meet_watch what, uint32_t which)
{
	return p3_meet_watch(m, EPOLL_CTL_MOD, p3_meet_fd(fd), what, which) == 0;
}

bool p3_meet_has_lost(
	struct p3_meeting *m, const p3_a32 *fd, enum p3_meet_watch what, uint32_t which)
{
	return p3_meet_fd(fd) >= 0 && !p3_meet_watches(m, fd, what, which);
}

void p3_meet_drop(
	struct p3_meeting *m, p3_a32 *fd, enum p3_meet_watch what, uint32_t which)
{
	if (p3_meet_watches(m, fd, what, which))
		p3_meet_close(fd);
	p3_set(fd, P3_MEET_NONE);
}

void p3_meet_unwatch(struct p3_meeting *m, p3_a32 *fd)
{
	int was = p3_meet_fd(fd);
	if (was >= 0 && p3_meet_watch(m, EPOLL_CTL_DEL, was, P3_MEET_CONN, 0) == 0)
		p3_meet_close(fd);
	p3_set(fd, P3_MEET_NONE);
}

void p3_meet_hang_up(struct p3_meeting *m, struct p3_meet_conn *c)
{
	p3_meet_unwatch(m, &c->fd);
	c->called = c->slot = P3_MEET_NONE;
	c->incarnation = 0;
	c->born_sent = c->awaited = c->owes = false;
}

/* ---- calls ---- */

static int watch_call(struct p3_meeting *m, int op, const struct p3_call *c,
	enum p3_meet_watch what, uint32_t which)
{
	bool out = c->state == P3_CALL_DIALING;
	struct epoll_event ev = {.events = EPOLLIN | (out ? EPOLLOUT : 0u),
		.data.u64 = (uint64_t)what << 32 | which};
	return epoll_ctl(p3_meet_fd(&m->ep), op, p3_meet_fd(&c->fd), &ev) ? -errno : 0;
}

void p3_meet_add_call(
	struct p3_meeting *m, struct p3_call *c, enum p3_meet_watch what, uint32_t which)
{
	if (watch_call(m, EPOLL_CTL_ADD, c, what, which))
		p3_call_close(c); /* as if there were no descriptor for it */
}

void p3_meet_watch_call(
	struct p3_meeting *m, struct p3_call *c, enum p3_meet_watch what, uint32_t which)
{
	if (c->state != P3_CALL_NONE)
		(void)watch_call(m, EPOLL_CTL_MOD, c, what, which);
}

struct p3_connection p3_meet_take_call(struct p3_meeting *m, struct p3_call *c)
{
	(void)watch_call(m, EPOLL_CTL_DEL, c, P3_MEET_REMOTE, 0);
	return p3_call_take(c);
}

void p3_meet_close_call(struct p3_meeting *m, struct p3_call *c)
{
	if (c->state != P3_CALL_NONE && !p3_call_is_lost(c))
		(void)watch_call(m, EPOLL_CTL_DEL, c, P3_MEET_REMOTE, 0);
	p3_call_close(c);
}

/* ---- the thread ---- */

void p3_meet_wake(struct p3_meeting *m)
{
	/* If the program has closed the eventfd, the thread notices that by itself. */
	if (p3_meet_watches(m, &m->wake, P3_MEET_WAKE, 0))
		p3_fd_signal(p3_meet_fd(&m->wake));
}
