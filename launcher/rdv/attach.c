/* SPDX-License-Identifier: BSD-3-Clause */
/* The service for lookers: accepting them, reading questions, sending answers. */
#include "launcher/rdv/table.h"
#include "shm/job.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG  16
#define AGAIN_MS 1000 /* until a client is accepted for which there was no descriptor */
#define SNDBUF                                                                           \
	4608 /* the kernel's least, so that few descriptors are under way to a stopped
	      * looker */
#define NAMES 10

struct client {
	struct p3_attach *attach;
	struct p3_loop_fd sock; /* fd -1: free */
	bool asked;
	uint32_t op;   /* the question that is being answered */
	uint32_t next; /* LOOK: 0 the job, 1 ... its nodes; SEGMENTS: the node */
	int64_t heard;
};

struct p3_attach {
	const struct p3_rdv *rdv;
	struct p3_service service;
	struct client client[P3_ATTACH_CLIENTS];
};

/* ---- services ---- */

static void service_on_client(void *arg)
{
	struct p3_service *s = arg;
	struct ucred cred;
	socklen_t len = sizeof cred;
	int sock = accept4(s->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock >= 0)
		s->admit(s->arg, sock,
			!getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
				(cred.uid == getuid() || cred.uid == 0));
	else if (errno != EAGAIN && errno != ECONNABORTED) {
		(void)p3_loop_watch(s->loop, &s->listener, 0);
		p3_loop_at(s->loop, &s->again, p3_now_ms() + AGAIN_MS);
	}
}

static void service_on_again(void *arg)
{
	struct p3_service *s = arg;
	(void)p3_loop_watch(s->loop, &s->listener, EPOLLIN);
}

int p3_service_open(
	struct p3_service *s, int type, const char *service, uint32_t jid, int names)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const size_t room = sizeof at.sun_path - 1;
	int rc = -EADDRINUSE;
	struct p3_loop_fd *f = &s->listener;
	*f = (struct p3_loop_fd){
		.fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
		.on = service_on_client,
		.arg = s};
	s->again = (struct p3_loop_timer){.on = service_on_again, .arg = s};
	if (f->fd < 0)
		return -errno;
	for (int k = 0; k < names && rc == -EADDRINUSE; k++) {
		int n = snprintf(at.sun_path + 1, room, k ? "%s/%u/%u.%d" : "%s/%u/%u",
			service, getuid(), jid, k);
		size_t len = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n;
		rc = bind(f->fd, (struct sockaddr *)&at, (socklen_t)len) ? -errno : 0;
	}
	if (!rc && listen(f->fd, BACKLOG))
		rc = -errno;
	return rc ? rc : p3_loop_watch(s->loop, f, EPOLLIN);
}

void p3_service_close(struct p3_service *s)
{
	(void)p3_loop_watch(s->loop, &s->listener, 0);
	p3_loop_at(s->loop, &s->again, P3_NEVER);
	p3_close(s->listener.fd);
}

/* ---- clients ---- */

static void attach_serve(void *arg);

static void attach_hang_up(struct client *c)
{
	(void)p3_loop_watch(c->attach->rdv->conf.loop, &c->sock, 0);
	close(c->sock.fd);
	*c = (struct client){.attach = c->attach, .sock.fd = -1};
}

void p3_attach_admit(struct p3_attach *a, int sock)
{
	int size = SNDBUF;
	/* Take a free place, or that of the client that has been silent for the longest
	 * time. */
	struct client *c = &a->client[0];
	for (uint32_t k = 1; k < P3_ATTACH_CLIENTS && c->sock.fd >= 0; k++)
		if (a->client[k].sock.fd < 0 || a->client[k].heard < c->heard)
			c = &a->client[k];
	if (c->sock.fd >= 0)
		attach_hang_up(c);
	setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	*c = (struct client){.attach = a,
		.sock = {.fd = sock, .on = attach_serve, .arg = c},
		.heard = p3_now_ms()};
	if (p3_loop_watch(a->rdv->conf.loop, &c->sock, EPOLLIN))
		attach_hang_up(c);
}

static void attach_on_client(void *arg, int sock, bool ours)
{
	struct p3_attach_msg m = {
		.magic = P3_ATTACH_MAGIC, .op = P3_ATTACH_REFUSED, .status = EPERM};
	if (ours) {
		p3_attach_admit(arg, sock);
		return;
	}
	(void)p3_packet_send(sock, MSG_DONTWAIT, &m, sizeof m, NULL, 0);
	close(sock);
}

/* ---- answers ---- */

static int attach_transmit(const struct client *c, const struct p3_attach_msg *m,
	const int *fds, unsigned nfds)
{
	return p3_packet_send(c->sock.fd, MSG_DONTWAIT, m, sizeof *m, fds, nfds);
}

/* Send one or two descriptors, or none if there is none. */
static int attach_send_fds(
	const struct client *c, struct p3_attach_msg *m, const int *fds)
{
	m->status = fds[0] < 0 ? ENOENT : 0;
	int rc = attach_transmit(c, m, fds,
		m->status    ? 0
		: fds[1] < 0 ? 1
			     : P3_ATTACH_FDS);
	if (rc != -ETOOMANYREFS)
		return rc;
	/* the user has too many descriptors in flight: try later */
	m->status = ETOOMANYREFS;
	return attach_transmit(c, m, NULL, 0);
}

static int attach_send_next(const struct p3_attach *a, const struct client *c)
{
	const struct p3_rdv_conf *conf = &a->rdv->conf;
	struct p3_attach_msg m = {.magic = P3_ATTACH_MAGIC,
		.op = c->op == P3_ATTACH_HOSTS ? P3_ATTACH_HOSTS : P3_ATTACH_JOB,
		.size = conf->size,
		.jid = conf->jid,
		.uid = getuid()};
	uint32_t i = c->op == P3_ATTACH_LOOK ? c->next - 1 : c->next;
	int fds[P3_ATTACH_FDS] = {conf->hosts, -1};
	if (c->op == P3_ATTACH_HOSTS)
		return attach_send_fds(c, &m, fds);
	m.os_pid = (uint32_t)getpid();
	if (c->op == P3_ATTACH_LOOK && !c->next)
		return attach_transmit(c, &m, NULL, 0);
	p3_rdv_show(a->rdv, i, &m, fds);
	if (c->op == P3_ATTACH_LOOK)
		return attach_transmit(c, &m, NULL, 0);
	m.op = P3_ATTACH_SEGMENTS;
	return attach_send_fds(c, &m, fds);
}

/* Read a question.  The kernel closes descriptors in it, since the buffer has no room
 * for them. */
static int attach_take_question(struct p3_attach *a, struct client *c)
{
	struct p3_attach_msg m;
	ssize_t n = recv(c->sock.fd, &m, sizeof m, MSG_DONTWAIT | MSG_TRUNC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	bool asks = m.op == P3_ATTACH_LOOK || m.op == P3_ATTACH_HOSTS ||
		    (m.op == P3_ATTACH_SEGMENTS && m.node < a->rdv->conf.size);
	if (n != sizeof m || m.magic != P3_ATTACH_MAGIC || !asks)
		return -EPROTO;
	c->asked = true;
	c->op = m.op;
	c->next = m.op == P3_ATTACH_SEGMENTS ? m.node : 0;
	c->heard = p3_now_ms();
	return 0;
}

static void attach_serve(void *arg)
{
	struct client *c = arg;
	struct p3_attach *a = c->attach;
	int rc = 0;
	if (!c->asked && (c->sock.came & EPOLLIN))
		rc = attach_take_question(a, c);
	else if (c->sock.came & (EPOLLHUP | EPOLLERR))
		rc = -EPIPE;
	while (c->asked && !rc) {
		rc = attach_send_next(a, c);
		c->next += !rc;
		if (!rc && (c->op != P3_ATTACH_LOOK || c->next > a->rdv->conf.size))
			c->asked = false;
	}
	if (!rc || rc == -EAGAIN || rc == -ENOBUFS)
		rc = p3_loop_watch(
			a->rdv->conf.loop, &c->sock, c->asked ? EPOLLOUT : EPOLLIN);
	if (rc)
		attach_hang_up(c);
}

/* ---- yod's side ---- */

int p3_attach_create(const struct p3_rdv *rdv, struct p3_attach **attach_out)
{
	struct p3_attach *a = calloc(1, sizeof *a);
	if (!a)
		return -ENOMEM;
	a->rdv = rdv;
	for (uint32_t k = 0; k < P3_ATTACH_CLIENTS; k++)
		a->client[k].sock.fd = -1;
	a->service = (struct p3_service){
		.loop = rdv->conf.loop, .admit = attach_on_client, .arg = a};
	int rc = p3_service_open(
		&a->service, SOCK_SEQPACKET, "portals3", rdv->conf.jid, NAMES);
	if (rc)
		p3_attach_destroy(a);
	else
		*attach_out = a;
	return rc;
}

void p3_attach_destroy(struct p3_attach *a)
{
	if (!a)
		return;
	for (uint32_t k = 0; k < P3_ATTACH_CLIENTS; k++)
		if (a->client[k].sock.fd >= 0)
			attach_hang_up(&a->client[k]);
	p3_service_close(&a->service);
	free(a);
}
