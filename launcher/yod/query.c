/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions about the job: yod's to all agents, an agent's answers, and ptlstat. */
#include "launcher/yod/remote.h"
#include "launcher/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#define REPORT_WORDS 16

/* Find the program of this name in yod's own directory. */
static int report_find_beside(const char *name, char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size);
	if (n < 0)
		return -errno;
	if ((size_t)n >= size)
		return -ENAMETOOLONG;
	path[n] = '\0';
	char *at = strrchr(path, '/') + 1;
	size_t room = size - (size_t)(at - path);
	return (size_t)snprintf(at, room, "%s", name) < room ? 0 : -ENAMETOOLONG;
}

/* Run ptlstat with reset signals, since yod blocks some and ignores others.  It has an
 * output for both streams, and as 3 a socket to look through (--look-at), or -1. */
static int report_run(char *const *argv, int out, int look, pid_t *pid_out)
{
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	return p3_spawn_tool(
		argv, (const int[]){-1, out, out, look}, &none, &all, false, pid_out);
}

static int report_say_cannot(const char *path, int rc)
{
	p3_say("'%s' cannot say what the job waits for: %s; expected ptlstat in yod's "
	       "directory",
		path, strerror(-rc));
	return rc;
}

int p3_report_start(uint32_t jid, uint32_t nodes, int out, pid_t *pid_out)
{
	char path[4096] = "ptlstat", job[12];
	char brief[] = "--brief", why[] = "why", *argv[] = {path, why, job, NULL, NULL};
	snprintf(job, sizeof job, "%u", jid);
	if (nodes > P3_REPORT_NODES)
		argv[3] = brief;
	int rc = report_find_beside("ptlstat", path, sizeof path);
	rc = rc ? rc : report_run(argv, out, -1, pid_out);
	return rc ? report_say_cannot(path, rc) : 0;
}

/* Let ptlstat answer a question of yod about the job that is served at the other end of
 * the socket, and write it to out.  Return 0, or -errno after an error line. */
static int report_answer(const struct p3_frame *ask, int out, int look)
{
	char path[4096] = "ptlstat", seconds[20], *argv[REPORT_WORDS] = {path};
	pid_t pid; /* the main loop reaps all children */
	/* the words of ptlstat that the question means */
	static char why[] = "why", conf[] = "conf", json[] = "--json",
		    brief[] = "--brief", interval[] = "-i", count[] = "-c", one[] = "1",
		    at[] = "--look-at", fd[] = "3";
	int n = 1, bits = ask->value;
	snprintf(seconds, 20, "%.3f", (ask->node ? ask->node : 1000) / 1e3);
	argv[n++] = at, argv[n++] = fd;
	argv[n++] = count, argv[n++] = one;
	argv[n++] = interval, argv[n++] = seconds;
	if (bits & P3_ASK_JSON)
		argv[n++] = json;
	if (bits & P3_ASK_BRIEF)
		argv[n++] = brief;
	if (bits & (P3_ASK_WHY | P3_ASK_CONF))
		argv[n++] = bits & P3_ASK_WHY ? why : conf;
	argv[n] = NULL;
	int rc = report_find_beside("ptlstat", path, sizeof path);
	rc = rc ? rc : report_run(argv, out, look, &pid);
	return rc ? report_say_cannot(path, rc) : 0;
}

/* ---- an agent's answers ---- */

#define ANSWERS_AT_ONCE   65536u
#define ANSWERS_EVENTS    8
#define ANSWERS_KEY_TIMER P3_ANSWERS_MOST

struct answer {
	int from; /* the read end of the program's output; -1: free */
	uint64_t number;
	int64_t end_at;
	size_t len, room;
	char *bytes;
};

struct p3_answers {
	struct p3_agent *agent;
	struct p3_attach *attach;
	int ep, timer;
	struct answer ask[P3_ANSWERS_MOST];
};

struct p3_answers *p3_answers_create(struct p3_agent *agent, struct p3_attach *attach)
{
	struct p3_answers *a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	a->agent = agent;
	a->attach = attach;
	for (uint32_t i = 0; i < P3_ANSWERS_MOST; i++)
		a->ask[i].from = -1;
	a->ep = epoll_create1(EPOLL_CLOEXEC);
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (a->ep >= 0 && !p3_watch_input(a->ep, a->timer, ANSWERS_KEY_TIMER))
		return a;
	p3_answers_destroy(a);
	return NULL;
}

static void answers_clear(struct answer *q)
{
	p3_close(q->from);
	free(q->bytes);
	*q = (struct answer){.from = -1};
}

void p3_answers_destroy(struct p3_answers *a)
{
	if (!a)
		return;
	for (uint32_t i = 0; i < P3_ANSWERS_MOST; i++)
		answers_clear(&a->ask[i]);
	p3_close(a->timer);
	p3_close(a->ep);
	free(a);
}

int p3_answers_fd(const struct p3_answers *a)
{
	return a->ep;
}

/* ---- answers ---- */

static void answers_send(
	struct p3_answers *a, uint64_t number, const char *bytes, size_t len, int status)
{
	struct p3_frame f = {
		.op = P3_FRAME_REPORT, .number = number, .value = status, .len = len};
	p3_agent_tell(a->agent, f, bytes);
}

/* Send what there is; status is 0 or an errno. */
static void answers_finish(struct p3_answers *a, struct answer *q, int status)
{
	answers_send(a, q->number, q->bytes, q->len, status);
	answers_clear(q); /* the program gets SIGPIPE if it writes more */
}

static bool answers_make_room(struct answer *q)
{
	if (q->room - q->len >= ANSWERS_AT_ONCE)
		return true;
	size_t room = 2 * q->room + ANSWERS_AT_ONCE;
	char *bytes = room <= 2 * P3_ANSWERS_LONG ? realloc(q->bytes, room) : NULL;
	if (!bytes)
		return false;
	q->bytes = bytes;
	q->room = room;
	return true;
}

static void answers_read_answer(struct p3_answers *a, struct answer *q)
{
	if (q->from < 0)
		return;
	if (!answers_make_room(q)) {
		answers_finish(a, q, ENOMEM);
		return;
	}
	ssize_t n = read(q->from, q->bytes + q->len, ANSWERS_AT_ONCE);
	if (n > 0)
		q->len += (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		answers_finish(a, q, 0);
}

/* Set the timer to the first deadline. */
static void answers_arm(struct p3_answers *a)
{
	int64_t at = P3_NEVER;
	for (uint32_t i = 0; i < P3_ANSWERS_MOST; i++)
		if (a->ask[i].from >= 0)
			at = p3_earlier(at, a->ask[i].end_at);
	p3_timer_set(a->timer, at);
}

void p3_answers_step(struct p3_answers *a)
{
	struct epoll_event ev[ANSWERS_EVENTS];
	int n = epoll_wait(a->ep, ev, ANSWERS_EVENTS, 0);
	for (int k = 0; k < n; k++)
		if (ev[k].data.u32 == ANSWERS_KEY_TIMER) {
			(void)p3_timer_passed(a->timer);
			for (uint32_t i = 0; i < P3_ANSWERS_MOST; i++)
				if (a->ask[i].from >= 0 &&
					a->ask[i].end_at <= p3_now_ms())
					answers_finish(a, &a->ask[i], ETIMEDOUT);
		} else
			answers_read_answer(a, &a->ask[ev[k].data.u32]);
	answers_arm(a);
}

/* ---- questions ---- */

/* Start the program.  Return 0 or -errno. */
static int answers_start(struct p3_answers *a, const struct p3_frame *f, int *from_out)
{
	int look[2], out[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, look))
		return -errno;
	int rc = pipe2(out, O_CLOEXEC) ? -errno : 0;
	if (!rc) {
		fcntl(out[0], F_SETFL, O_NONBLOCK);
		rc = report_answer(f, out[1], look[1]);
		close(out[1]);
		*from_out = out[0];
	}
	close(look[1]);
	if (rc)
		close(look[0]);
	else
		p3_attach_admit(a->attach, look[0]);
	return rc;
}

static struct answer *answers_free_place(struct p3_answers *a)
{
	for (uint32_t i = 0; i < P3_ANSWERS_MOST; i++)
		if (a->ask[i].from < 0)
			return &a->ask[i];
	return NULL;
}

void p3_answers_take(struct p3_answers *a, const struct p3_frame *f)
{
	struct answer *q = answers_free_place(a);
	int rc = q ? answers_start(a, f, &q->from) : -EBUSY;
	if (!rc)
		rc = p3_watch_input(a->ep, q->from, (uint32_t)(q - a->ask));
	if (rc) {
		if (q)
			answers_clear(q);
		answers_send(a, f->number, NULL, 0, -rc);
		return;
	}
	q->number = f->number;
	q->end_at = p3_now_ms() + P3_REPORT_MS + f->node;
	answers_arm(a);
}

/* ---- questions to all agents ---- */

#define QUERY_EVENTS     8
#define QUERY_BACKLOG    8
#define QUERY_OWN        0 /* the place of yod's own question */
#define QUERY_KEY_LISTEN P3_QUERY_MOST
#define QUERY_KEY_TIMER  (P3_QUERY_MOST + 1)
#define QUERY_MORE_MS    1000 /* for the way there and back */
#define QUERY_TEXT_LEN   400

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

struct p3_query {
	struct p3_agents *agents;
	int ep, listener, timer;
	uint64_t last; /* number of the last question */
	struct asker asker[P3_QUERY_MOST];
};

static uint32_t query_hosts_of(const struct p3_query *q)
{
	return q->agents->hosts->n;
}

static void query_hang_up(struct p3_query *q, struct asker *k)
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

static void query_flush(struct p3_query *q, struct asker *k)
{
	if (k->sock < 0)
		return;
	if (p3_frames_flush(&k->conn)) {
		query_hang_up(q, k);
		return;
	}
	bool owes = p3_frames_owes(&k->conn);
	if (owes != k->writes)
		p3_watch(q->ep, EPOLL_CTL_MOD, k->sock, (uint32_t)(k - q->asker),
			EPOLLIN | (owes ? EPOLLOUT : 0));
	k->writes = owes;
}

/* ---- answers ---- */

/* Name the hosts whose ranks have not all come to the barrier in which others wait. */
static size_t query_barrier_text(const struct p3_query *q, char *text, size_t size)
{
	const struct p3_agents *a = q->agents;
	char late[QUERY_TEXT_LEN / 2] = "";
	size_t n = 0;
	bool any = false;
	for (uint32_t h = 0; h < query_hosts_of(q); h++) {
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

static void query_print_own(const struct p3_query *q, uint32_t host, int32_t status,
	const char *text, size_t len)
{
	const char *name =
		host < query_hosts_of(q) ? q->agents->hosts->host[host].name : NULL;
	if (status)
		p3_say("host %s: no report: %s", name, strerror(status));
	else if (len && name)
		p3_say("host %s:", name);
	p3_say_lines(text, len);
}

/* Send a report to ptlstat. */
static void query_send_on(struct p3_query *q, struct asker *k, uint32_t host,
	int32_t status, const char *text, size_t len)
{
	const char *name =
		host < query_hosts_of(q) ? q->agents->hosts->host[host].name : "";
	size_t n = strlen(name) + 1;
	char *bytes = malloc(n + len);
	if (!bytes) {
		query_hang_up(q, k);
		return;
	}
	memcpy(bytes, name, n);
	if (len)
		memcpy(bytes + n, text, len);
	struct p3_frame f = {.op = P3_FRAME_REPORT,
		.node = host,
		.value = status,
		.number = query_hosts_of(q) + 1,
		.len = n + len};
	p3_frames_send(&k->conn, f, bytes);
	free(bytes);
	query_flush(q, k);
}

static void query_hand_on(struct p3_query *q, struct asker *k, uint32_t host,
	int32_t status, const char *text, size_t len)
{
	if (k == &q->asker[QUERY_OWN])
		query_print_own(q, host, status, text, len);
	else
		query_send_on(q, k, host, status, text, len);
}

/* Hand on a host's report, and after the last one what yod itself knows. */
static void query_on_report(struct p3_query *q, struct asker *k, uint32_t host,
	int32_t status, const char *bytes, size_t len)
{
	char text[QUERY_TEXT_LEN] = "";
	if (!k->number || !k->waits[host])
		return;
	k->waits[host] = false;
	query_hand_on(q, k, host, status, bytes, len);
	if (--k->left || !k->number)
		return;
	size_t n = k->bits & P3_ASK_WHY && !(k->bits & P3_ASK_JSON)
			   ? query_barrier_text(q, text, sizeof text)
			   : 0;
	query_hand_on(q, k, query_hosts_of(q), 0, text, n);
	k->number = 0;
}

void p3_query_take(
	struct p3_query *q, uint32_t host, const struct p3_frame *f, const char *bytes)
{
	for (uint32_t i = 0; q && i < P3_QUERY_MOST; i++)
		if (q->asker[i].number && q->asker[i].number == f->number)
			query_on_report(q, &q->asker[i], host, f->value, bytes, f->len);
}

void p3_query_lose(struct p3_query *q, uint32_t host)
{
	for (uint32_t i = 0; q && i < P3_QUERY_MOST; i++)
		if (q->asker[i].number)
			query_on_report(q, &q->asker[i], host, EPIPE, NULL, 0);
}

/* ---- questions ---- */

static void query_arm(struct p3_query *q)
{
	int64_t at = P3_NEVER;
	for (uint32_t i = 0; i < P3_QUERY_MOST; i++)
		if (q->asker[i].number)
			at = p3_earlier(at, q->asker[i].end_at);
	p3_timer_set(q->timer, at);
}

static void query_end_late(struct p3_query *q)
{
	(void)p3_timer_passed(q->timer);
	for (uint32_t i = 0; i < P3_QUERY_MOST; i++)
		for (uint32_t h = 0; h < query_hosts_of(q); h++)
			if (q->asker[i].number && q->asker[i].end_at <= p3_now_ms())
				query_on_report(q, &q->asker[i], h, ETIMEDOUT, NULL, 0);
}

/* Ask all agents. */
static void query_ask(struct p3_query *q, struct asker *k, int32_t bits, uint32_t ms)
{
	struct p3_agents *a = q->agents;
	struct p3_frame f = {
		.op = P3_FRAME_ASK, .number = ++q->last, .value = bits, .node = ms};
	k->number = f.number;
	k->bits = bits;
	k->end_at = p3_now_ms() + ms + P3_REPORT_MS + QUERY_MORE_MS;
	k->left = query_hosts_of(q);
	for (uint32_t h = 0; h < query_hosts_of(q); h++)
		k->waits[h] = true;
	if (a->go_sent) /* before that, an agent expects nothing else than GO */
		p3_agents_tell_all(a, f, NULL);
	for (uint32_t h = 0; h < query_hosts_of(q); h++)
		if (a->link[h].closed || a->link[h].state != P3_UPLINK_RUNS)
			query_on_report(q, k, h, EPIPE, NULL, 0);
	query_arm(q);
}

void p3_query_begin_own(struct p3_query *q)
{
	bool brief = q->agents->opt->size > P3_REPORT_NODES;
	if (!q->asker[QUERY_OWN].number)
		query_ask(q, &q->asker[QUERY_OWN],
			P3_ASK_WHY | (brief ? P3_ASK_BRIEF : 0), 0);
}

bool p3_query_has_own(const struct p3_query *q)
{
	return q->asker[QUERY_OWN].number != 0;
}

/* ---- clients ---- */

static bool query_may_ask(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return false;
	return cred.uid == getuid() || cred.uid == 0;
}

static struct asker *query_free_place(struct p3_query *q)
{
	for (uint32_t i = QUERY_OWN + 1; i < P3_QUERY_MOST; i++)
		if (q->asker[i].sock < 0)
			return &q->asker[i];
	return NULL;
}

static void query_admit(struct p3_query *q)
{
	int sock = accept4(q->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct asker *k = sock >= 0 && query_may_ask(sock) ? query_free_place(q) : NULL;
	bool ok = k && !p3_frames_open(&k->conn, sock, sock) &&
		  !p3_watch_input(q->ep, sock, (uint32_t)(k - q->asker));
	if (ok)
		k->sock = sock;
	else if (sock >= 0)
		close(sock);
}

static void query_serve(struct p3_query *q, struct asker *k)
{
	struct p3_frame f;
	const char *bytes;
	if (k->sock < 0)
		return;
	int rc = p3_frames_fill(&k->conn);
	if (!rc || rc == -EAGAIN)
		rc = p3_frames_next(&k->conn, &f, &bytes);
	if (!rc && (f.op != P3_FRAME_ASK || f.node > P3_QUERY_RATE_MS || k->number))
		rc = -EPROTO;
	if (!rc)
		query_ask(q, k, f.value | P3_ASK_ANY, f.node);
	else if (rc != -EAGAIN)
		query_hang_up(q, k);
	query_flush(q, k);
}

void p3_query_step(struct p3_query *q)
{
	struct epoll_event ev[QUERY_EVENTS];
	int n = epoll_wait(q->ep, ev, QUERY_EVENTS, 0);
	for (int i = 0; i < n; i++)
		if (ev[i].data.u32 == QUERY_KEY_LISTEN)
			query_admit(q);
		else if (ev[i].data.u32 == QUERY_KEY_TIMER)
			query_end_late(q);
		else
			query_serve(q, &q->asker[ev[i].data.u32]);
	query_arm(q);
}

/* ---- the service ---- */

static int query_open_service(struct p3_query *q)
{
	q->ep = epoll_create1(EPOLL_CLOEXEC);
	q->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	q->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (q->ep < 0 || q->timer < 0 || q->listener < 0)
		return -errno;
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "portals3-hosts/%u/%u",
		getuid(), q->agents->jid);
	size_t len = offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n;
	int rc = bind(q->listener, (struct sockaddr *)&at, (socklen_t)len) ? -errno : 0;
	if (!rc && listen(q->listener, QUERY_BACKLOG))
		rc = -errno;
	rc = rc ? rc : p3_watch_input(q->ep, q->listener, QUERY_KEY_LISTEN);
	return rc ? rc : p3_watch_input(q->ep, q->timer, QUERY_KEY_TIMER);
}

int p3_query_create(struct p3_agents *agents, struct p3_query **query_out)
{
	struct p3_query *q = calloc(1, sizeof *q);
	bool *waits = calloc(P3_QUERY_MOST, agents->hosts->n);
	if (!q || !waits) {
		free(q);
		free(waits);
		return -ENOMEM;
	}
	*q = (struct p3_query){.agents = agents, .ep = -1, .listener = -1, .timer = -1};
	for (uint32_t i = 0; i < P3_QUERY_MOST; i++) {
		q->asker[i].sock = -1;
		q->asker[i].waits = waits + i * agents->hosts->n;
	}
	int rc = query_open_service(q);
	if (rc)
		p3_query_destroy(q);
	else
		*query_out = q;
	return rc;
}

void p3_query_destroy(struct p3_query *q)
{
	if (!q)
		return;
	for (uint32_t i = 0; i < P3_QUERY_MOST; i++)
		query_hang_up(q, &q->asker[i]);
	for (int i = 0; i < 3; i++) {
		int fd = (const int[]){q->listener, q->timer, q->ep}[i];
		p3_close(fd);
	}
	free(q->asker[0].waits);
	free(q);
}

int p3_query_fd(const struct p3_query *q)
{
	return q->ep;
}
