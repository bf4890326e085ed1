/* SPDX-License-Identifier: BSD-3-Clause */
/* The rendezvous: its loop, its start and its end, and the processes that yod adds. */
#include "launcher/rdv/table.h"
#include "launcher/clock.h"
#include "launcher/rdv/sleepers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVENTS  64 /* epoll events taken at a time */
#define PACKETS 64 /* packets taken from a node before the next node's turn */

/* Read the packets that a process sent before it ended, since a LEAVE among them counts;
 * then note its end. */
static void owner_ended(struct p3_rdv *r, uint32_t i)
{
	p3_rdv_read_sock(r, i, PACKETS_LAST);
	if (r->node[i].owner_fd < 0 || p3_rdv_owner_lives(&r->node[i]))
		return;
	epoll_ctl(r->ep, EPOLL_CTL_DEL, r->node[i].owner_fd, NULL);
	p3_rdv_node_lost(r, i);
}

static void node_late(struct p3_rdv *r, uint32_t i, int64_t now)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->fate_at <= now)
		p3_rdv_node_late(r, i);
	if (n->reap_at <= now)
		p3_rdv_owe_nothing(r, n);
	if (n->retry)
		p3_rdv_flush(r, i);
}

static void timer_expired(struct p3_rdv *r)
{
	uint64_t ticks;
	if (read(r->timer, &ticks, sizeof ticks) < 0)
		return;
	r->timer_at = P3_NEVER;
	int64_t now = p3_now_ms();
	if (r->tell_at <= now)
		p3_rdv_tell_births(r);
	p3_rdv_timer_arm(r, r->tell_at);
	for (uint32_t i = 0; i < r->conf.size; i++)
		node_late(r, i, now);
	for (uint32_t i = 0; i < r->conf.size; i++)
		p3_rdv_timer_arm(r, p3_earlier(r->node[i].fate_at, r->node[i].reap_at));
}

static void take_event(struct p3_rdv *r, const struct epoll_event *ev)
{
	uint32_t i = (uint32_t)ev->data.u64;
	switch ((enum watch)(ev->data.u64 >> 32)) {
	case WATCH_SOCK:
		if (ev->events & EPOLLOUT)
			p3_rdv_flush(r, i);
		if (ev->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			p3_rdv_read_sock(r, i, PACKETS);
		return;
	case WATCH_OWNER:
		if (r->node[i].owner_fd >= 0)
			owner_ended(r, i);
		return;
	case WATCH_TIMER:
		timer_expired(r);
		return;
	}
}

int p3_rdv_step(struct p3_rdv *r, int timeout_ms)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(r->ep, ev, EVENTS, timeout_ms);
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int k = 0; k < n; k++)
		take_event(r, &ev[k]);
	return 0;
}

static void node_init(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	size_t words = (r->conf.size + 63) / 64;
	*n = (struct p3_rdv_node){.sock = -1,
		.owner_fd = -1,
		.fds = {-1, -1, -1, -1},
		.fate_at = P3_NEVER,
		.reap_at = P3_NEVER,
		.owed = r->bits + 3 * i * words,
		.over = r->bits + (3 * i + 1) * words,
		.met = r->bits + (3 * i + 2) * words};
	p3_outq_init(&n->out);
}

/* Make the file of sleepers (shm/layout.h).  Without it each node sleeps on a word of its
 * own doorbell, and a sender's look at these words takes longer. */
static void make_sleepers(struct p3_rdv *r)
{
	r->sleepers = r->cards = -1;
	if (r->conf.in_domain)
		return;
	int fd = p3_sleepers_make(r->conf.size);
	if (fd < 0)
		p3_rdv_tell(r,
			"no memory for the words that nodes sleep on (%s): each has its "
			"own, "
			"which costs some speed; check the limits of open files (ulimit "
			"-n)",
			strerror(-fd));
	else
		r->sleepers = fd;
}

static int rdv_open(struct p3_rdv *r)
{
	r->timer_at = r->tell_at = P3_NEVER;
	make_sleepers(r);
	r->ep = epoll_create1(EPOLL_CLOEXEC);
	r->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (r->ep < 0 || r->timer < 0)
		return -errno;
	return p3_rdv_watch(r, EPOLL_CTL_ADD, r->timer, WATCH_TIMER, 0, EPOLLIN);
}

struct p3_rdv *p3_rdv_create(const struct p3_rdv_conf *conf)
{
	size_t size = conf->size;
	struct p3_rdv *r = calloc(1, sizeof *r + size * sizeof r->node[0]);
	uint64_t *bits = calloc(3 * size * ((size + 63) / 64), sizeof *bits);
	uint32_t *untold = calloc(size, sizeof *untold);
	if (!r || !bits || !untold || !size) {
		free(r);
		free(bits);
		free(untold);
		errno = size ? ENOMEM : EINVAL;
		return NULL;
	}
	r->conf = *conf;
	r->bits = bits;
	r->untold = untold;
	for (uint32_t i = 0; i < conf->size; i++)
		node_init(r, i);

	int rc = rdv_open(r);
	if (!rc)
		return r;
	p3_rdv_destroy(r);
	errno = -rc;
	return NULL;
}

void p3_rdv_destroy(struct p3_rdv *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < r->conf.size; i++) {
		p3_rdv_owner_forget(r, &r->node[i]);
		p3_rdv_sock_close(r, i);
		p3_rdv_close_fds(r->node[i].fds, P3_JOB_FDS);
	}
	if (r->sleepers >= 0)
		close(r->sleepers);
	p3_rdv_close_fds(&r->cards, 1);
	if (r->timer >= 0)
		close(r->timer);
	if (r->ep >= 0)
		close(r->ep);
	free(r->bits);
	free(r->untold);
	free(r);
}

static int check_user(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	return cred.uid == geteuid() ? 0 : -EPERM;
}

static int prepare_sock(int sock)
{
	int on = 1;
	int flags = fcntl(sock, F_GETFL);
	if (flags < 0 || fcntl(sock, F_SETFL, flags | O_NONBLOCK))
		return -errno;
	if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof on))
		return -errno;
	return check_user(sock);
}

int p3_rdv_add(struct p3_rdv *r, uint32_t i, int sock)
{
	if (i >= r->conf.size)
		return -EINVAL;
	struct p3_rdv_node *n = &r->node[i];
	if (n->sock >= 0 || n->state == NODE_JOINED)
		return -EBUSY;
	int rc = prepare_sock(sock);
	if (!rc)
		rc = p3_rdv_watch(r, EPOLL_CTL_ADD, sock, WATCH_SOCK, i, EPOLLIN);
	if (rc)
		return rc;
	p3_rdv_set_back(r, i);
	n->state = NODE_NEW;
	n->ended = false;
	n->sock = sock;
	return 0;
}

int p3_rdv_fd(const struct p3_rdv *r)
{
	return r->ep;
}

void p3_rdv_ended(struct p3_rdv *r, uint32_t i, int wait_status)
{
	if (i >= r->conf.size || r->node[i].ended)
		return;
	struct p3_rdv_node *n = &r->node[i];
	p3_rdv_read_sock(r, i, PACKETS_LAST);
	n->ended = true;
	n->status = wait_status;
	bool orderly = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
	if (n->state == NODE_JOINED)
		p3_rdv_unjoin(
			r, i, orderly ? P3_JOB_LEFT : P3_JOB_DIED, wait_status, true);
	p3_rdv_sock_close(r, i);
	p3_rdv_node_over(r, i);
}
