/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions to all agents, and their answers. */
#include "launcher/yod/inquiry.h"
#include "launcher/clock.h"
#include "launcher/yod/agentsin.h"
#include "launcher/yod/report.h"
#include "launcher/yod/say.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define EVENTS     8
#define BACKLOG    8
#define OWN        0 /* the place of yod's own question */
#define KEY_LISTEN P3_INQUIRY_MOST
#define KEY_TIMER  (P3_INQUIRY_MOST + 1)
#define MORE_MS    1000 /* for the way there and back */
#define TEXT_LEN   400

/* A question, or a client that may ask one. */
struct asker {
	int sock; /* -1: none */
	bool writes;
	struct p3_frames conn;
	uint64_t number; /* of its question; 0: none */
	int32_t bits;
	int64_t end_at;
	bool *waits; /* of each host: its answer is yet to come */
	uint32_t left;
};

struct p3_inquiry {
	struct p3_agents *agents;
	int ep, listener, timer;
	uint64_t last; /* number of the last question */
	struct asker asker[P3_INQUIRY_MOST];
};

static uint32_t hosts_of(const struct p3_inquiry *q)
{
	return q->agents->hosts->n;
}

static int watch(struct p3_inquiry *q, int op, int fd, uint32_t key, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u32 = key};
	return fd < 0 || epoll_ctl(q->ep, op, fd, &ev) ? -errno : 0;
}

static void hang_up(struct p3_inquiry *q, struct asker *k)
{
	if (k->sock >= 0) {
		epoll_ctl(q->ep, EPOLL_CTL_DEL, k->sock, NULL);
		close(k->sock);
		p3_frames_close(&k->conn);
	}
	k->sock = -1;
	k->number = 0;
	k->writes = false;
}

static void flush(struct p3_inquiry *q, struct asker *k)
{
	if (k->sock < 0)
		return;
	if (p3_frames_flush(&k->conn)) {
		hang_up(q, k);
		return;
	}
	bool owes = p3_frames_owes(&k->conn);
	if (owes != k->writes)
		watch(q, EPOLL_CTL_MOD, k->sock, (uint32_t)(k - q->asker),
			EPOLLIN | (owes ? EPOLLOUT : 0));
	k->writes = owes;
}

/* ---- answers ---- */

/* Name the hosts whose ranks have not all come to the barrier in which others wait. */
static size_t barrier_text(const struct p3_inquiry *q, char *text, size_t size)
{
	const struct p3_agents *a = q->agents;
	char late[TEXT_LEN / 2] = "";
	size_t n = 0;
	bool any = false;
	for (uint32_t h = 0; h < hosts_of(q); h++) {
		any |= a->link[h].in_barrier;
		if (!a->link[h].in_barrier && n + 1 < sizeof late)
			n += (size_t)snprintf(late + n, sizeof late - n, "%s%s",
				n ? ", " : "", a->hosts->host[h].name);
	}
	if (!any || !n)
		return 0;
	return (size_t)snprintf(text, size,
		"ranks wait in PtlXBarrier for those of these hosts, which have not all "
		"come: %s\n",
		late);
}

static void print_own(const struct p3_inquiry *q, uint32_t host, int32_t status,
	const char *text, size_t len)
{
	const char *name = host < hosts_of(q) ? q->agents->hosts->host[host].name : NULL;
	if (status)
		p3_say("host %s: no report: %s", name, strerror(status));
	else if (len && name)
		p3_say("host %s:", name);
	p3_say_lines(text, len);
}

/* Send a report to ptlstat. */
static void send_on(struct p3_inquiry *q, struct asker *k, uint32_t host, int32_t status,
	const char *text, size_t len)
{
	const char *name = host < hosts_of(q) ? q->agents->hosts->host[host].name : "";
	size_t n = strlen(name) + 1;
	char *bytes = malloc(n + len);
	if (!bytes) {
		hang_up(q, k);
		return;
	}
	memcpy(bytes, name, n);
	if (len)
		memcpy(bytes + n, text, len);
	struct p3_frame f = {.op = P3_FRAME_REPORT,
		.node = host,
		.value = status,
		.number = hosts_of(q) + 1,
		.len = n + len};
	p3_frames_send(&k->conn, f, bytes);
	free(bytes);
	flush(q, k);
}

static void hand_on(struct p3_inquiry *q, struct asker *k, uint32_t host, int32_t status,
	const char *text, size_t len)
{
	if (k == &q->asker[OWN])
		print_own(q, host, status, text, len);
	else
		send_on(q, k, host, status, text, len);
}

/* Hand on a host's report, and after the last one what yod itself knows. */
static void on_report(struct p3_inquiry *q, struct asker *k, uint32_t host,
	int32_t status, const char *bytes, size_t len)
{
	char text[TEXT_LEN] = "";
	if (!k->number || !k->waits[host])
		return;
	k->waits[host] = false;
	hand_on(q, k, host, status, bytes, len);
	if (--k->left || !k->number)
		return;
	size_t n = k->bits & P3_ASK_WHY && !(k->bits & P3_ASK_JSON)
			   ? barrier_text(q, text, sizeof text)
			   : 0;
	hand_on(q, k, hosts_of(q), 0, text, n);
	k->number = 0;
}

void p3_inquiry_take(
	struct p3_inquiry *q, uint32_t host, const struct p3_frame *f, const char *bytes)
{
	for (uint32_t i = 0; q && i < P3_INQUIRY_MOST; i++)
		if (q->asker[i].number && q->asker[i].number == f->number)
			on_report(q, &q->asker[i], host, f->value, bytes, f->len);
}

void p3_inquiry_lose(struct p3_inquiry *q, uint32_t host)
{
	for (uint32_t i = 0; q && i < P3_INQUIRY_MOST; i++)
		if (q->asker[i].number)
			on_report(q, &q->asker[i], host, EPIPE, NULL, 0);
}

/* ---- questions ---- */

static void arm(struct p3_inquiry *q)
{
	int64_t at = P3_NEVER;
	for (uint32_t i = 0; i < P3_INQUIRY_MOST; i++)
		if (q->asker[i].number)
			at = p3_earlier(at, q->asker[i].end_at);
	p3_timer_set(q->timer, at);
}

static void end_late(struct p3_inquiry *q)
{
	(void)p3_timer_passed(q->timer);
	for (uint32_t i = 0; i < P3_INQUIRY_MOST; i++)
		for (uint32_t h = 0; h < hosts_of(q); h++)
			if (q->asker[i].number && q->asker[i].end_at <= p3_now_ms())
				on_report(q, &q->asker[i], h, ETIMEDOUT, NULL, 0);
}

/* Ask all agents. */
static void ask(struct p3_inquiry *q, struct asker *k, int32_t bits, uint32_t ms)
{
	struct p3_agents *a = q->agents;
	struct p3_frame f = {
		.op = P3_FRAME_ASK, .number = ++q->last, .value = bits, .node = ms};
	k->number = f.number;
	k->bits = bits;
	k->end_at = p3_now_ms() + ms + P3_REPORT_MS + MORE_MS;
	k->left = hosts_of(q);
	for (uint32_t h = 0; h < hosts_of(q); h++)
		k->waits[h] = true;
	if (a->go_sent) /* before that, an agent expects nothing else than GO */
		p3_agents_tell_all(a, f, NULL);
	for (uint32_t h = 0; h < hosts_of(q); h++)
		if (a->link[h].closed || a->link[h].state != P3_UPLINK_RUNS)
			on_report(q, k, h, EPIPE, NULL, 0);
	arm(q);
}

void p3_inquiry_begin_own(struct p3_inquiry *q)
{
	bool brief = q->agents->opt->size > P3_REPORT_NODES;
	if (!q->asker[OWN].number)
		ask(q, &q->asker[OWN], P3_ASK_WHY | (brief ? P3_ASK_BRIEF : 0), 0);
}

bool p3_inquiry_has_own(const struct p3_inquiry *q)
{
	return q->asker[OWN].number != 0;
}

/* ---- clients ---- */

static bool may_ask(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return false;
	return cred.uid == getuid() || cred.uid == 0;
}

static struct asker *free_place(struct p3_inquiry *q)
{
	for (uint32_t i = OWN + 1; i < P3_INQUIRY_MOST; i++)
		if (q->asker[i].sock < 0)
			return &q->asker[i];
	return NULL;
}

static void admit(struct p3_inquiry *q)
{
	int sock = accept4(q->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct asker *k = sock >= 0 && may_ask(sock) ? free_place(q) : NULL;
	bool ok = k && !p3_frames_open(&k->conn, sock, sock) &&
		  !watch(q, EPOLL_CTL_ADD, sock, (uint32_t)(k - q->asker), EPOLLIN);
	if (ok)
		k->sock = sock;
	else if (sock >= 0)
		close(sock);
}

static void serve(struct p3_inquiry *q, struct asker *k)
{
	struct p3_frame f;
	const char *bytes;
	if (k->sock < 0)
		return;
	int rc = p3_frames_fill(&k->conn);
	if (!rc || rc == -EAGAIN)
		rc = p3_frames_next(&k->conn, &f, &bytes);
	if (!rc && (f.op != P3_FRAME_ASK || f.node > P3_INQUIRY_RATE_MS || k->number))
		rc = -EPROTO;
	if (!rc)
		ask(q, k, f.value | P3_ASK_ANY, f.node);
	else if (rc != -EAGAIN)
		hang_up(q, k);
	flush(q, k);
}

void p3_inquiry_step(struct p3_inquiry *q)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(q->ep, ev, EVENTS, 0);
	for (int i = 0; i < n; i++)
		if (ev[i].data.u32 == KEY_LISTEN)
			admit(q);
		else if (ev[i].data.u32 == KEY_TIMER)
			end_late(q);
		else
			serve(q, &q->asker[ev[i].data.u32]);
	arm(q);
}

/* ---- the service ---- */

static int bind_name(int sock, uint32_t jid)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "portals3-hosts/%u/%u",
		getuid(), jid);
	size_t len = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n;
	return bind(sock, (struct sockaddr *)&at, (socklen_t)len) ? -errno : 0;
}

static int open_service(struct p3_inquiry *q)
{
	q->ep = epoll_create1(EPOLL_CLOEXEC);
	q->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	q->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (q->ep < 0 || q->timer < 0 || q->listener < 0)
		return -errno;
	int rc = bind_name(q->listener, q->agents->jid);
	if (!rc && listen(q->listener, BACKLOG))
		rc = -errno;
	rc = rc ? rc : watch(q, EPOLL_CTL_ADD, q->listener, KEY_LISTEN, EPOLLIN);
	return rc ? rc : watch(q, EPOLL_CTL_ADD, q->timer, KEY_TIMER, EPOLLIN);
}

int p3_inquiry_create(struct p3_agents *agents, struct p3_inquiry **inquiry_out)
{
	struct p3_inquiry *q = calloc(1, sizeof *q);
	bool *waits = calloc(P3_INQUIRY_MOST, agents->hosts->n);
	if (!q || !waits) {
		free(q);
		free(waits);
		return -ENOMEM;
	}
	*q = (struct p3_inquiry){.agents = agents, .ep = -1, .listener = -1, .timer = -1};
	for (uint32_t i = 0; i < P3_INQUIRY_MOST; i++) {
		q->asker[i].sock = -1;
		q->asker[i].waits = waits + i * agents->hosts->n;
	}
	int rc = open_service(q);
	if (rc)
		p3_inquiry_destroy(q);
	else
		*inquiry_out = q;
	return rc;
}

void p3_inquiry_destroy(struct p3_inquiry *q)
{
	if (!q)
		return;
	for (uint32_t i = 0; i < P3_INQUIRY_MOST; i++)
		hang_up(q, &q->asker[i]);
	for (int i = 0; i < 3; i++) {
		int fd = (const int[]){q->listener, q->timer, q->ep}[i];
		if (fd >= 0)
			close(fd);
	}
	free(q->asker[0].waits);
	free(q);
}

int p3_inquiry_fd(const struct p3_inquiry *q)
{
	return q->ep;
}
