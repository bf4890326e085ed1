/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions about the job: yod's to all agents, an agent's answers, and ptlstat. */
#include "launcher/yod/remote.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REPORT_WORDS 16

/* Let ptlstat answer a question of yod about the job that is served at the other end
 * of the socket.  Return 0, or -errno after an error line. */
static int report_answer(
	const struct p3_frame *ask, int look, struct p3_spawned_tool *tool_out)
{
	char *path = p3_own_path("ptlstat"), seconds[20];
	const char *argv[REPORT_WORDS] = {
		path, "--look-at", "3", "-c", "1", "-i", seconds};
	int n = 7, bits = ask->value;
	_Static_assert(P3_SPAWN_LOOK == 3, "as argv says");
	snprintf(seconds, 20, "%.3f", (ask->node ? ask->node : 1000) / 1e3);
	if (bits & P3_ASK_JSON)
		argv[n++] = "--json";
	if (bits & P3_ASK_BRIEF)
		argv[n++] = "--brief";
	if (bits & (P3_ASK_WHY | P3_ASK_CONF))
		argv[n++] = bits & P3_ASK_WHY ? "why" : "conf";
	int rc = path ? p3_spawn_tool(argv, look, tool_out) : -errno;
	if (rc)
		p3_say("'%s' cannot say what the job waits for: %s; expected ptlstat in "
		       "yod's directory",
			path ? path : "ptlstat", strerror(-rc));
	free(path);
	return rc;
}

/* ---- answers about the ranks here ---- */

#define ANSWERS_AT_ONCE 65536u

struct answer {
	struct p3_answers *answers;
	struct p3_loop_fd from; /* the read end of the program's output; -1: free */
	struct p3_loop_timer late;
	uint64_t number;
	struct p3_backlog bytes;
};

struct p3_answers {
	struct p3_loop *loop;
	struct p3_attach *attach;
	p3_answered *done;
	void *arg;
	struct answer ask[P3_ANSWERS_MOST];
};

static void answer_on_ready(void *arg);
static void answer_on_late(void *arg);

struct p3_answers *p3_answers_create(
	struct p3_loop *loop, struct p3_attach *attach, p3_answered *done, void *arg)
{
	struct p3_answers *a = calloc(1, sizeof *a);
	if (!a)
		return NULL;
	*a = (struct p3_answers){loop, attach, done, arg, {{.answers = a}}};
	for (uint32_t i = 0; i < P3_ANSWERS_MOST; i++)
		a->ask[i] = (struct answer){.answers = a,
			.from = {.fd = -1, .on = answer_on_ready, .arg = &a->ask[i]},
			.late = {.on = answer_on_late, .arg = &a->ask[i]}};
	return a;
}

static void answer_clear(struct answer *q)
{
	if (q->from.fd >= 0)
		(void)p3_loop_watch(q->answers->loop, &q->from, 0);
	p3_loop_at(q->answers->loop, &q->late, P3_NEVER);
	p3_close(q->from.fd);
	q->from.fd = -1;
	p3_backlog_free(&q->bytes);
}

void p3_answers_destroy(struct p3_answers *a)
{
	for (uint32_t i = 0; a && i < P3_ANSWERS_MOST; i++)
		answer_clear(&a->ask[i]);
	free(a);
}

/* ---- answers ---- */

/* Hand on what there is; status is 0 or an errno. */
static void answer_finish(struct answer *q, int status)
{
	struct p3_answers *a = q->answers;
	size_t len = p3_backlog_len(&q->bytes);
	a->done(a->arg, q->number, status, len ? p3_backlog_bytes(&q->bytes) : NULL, len);
	answer_clear(q); /* the program gets SIGPIPE if it writes more */
}

void p3_answers_end(struct p3_answers *a)
{
	for (uint32_t i = 0; i < P3_ANSWERS_MOST; i++)
		if (a->ask[i].from.fd >= 0)
			answer_finish(&a->ask[i], ECANCELED);
}

static void answer_on_ready(void *arg)
{
	struct answer *q = arg;
	ssize_t n = -ENOMEM;
	if (p3_backlog_len(&q->bytes) <= P3_ANSWERS_LONG)
		n = p3_backlog_read(&q->bytes, q->from.fd, ANSWERS_AT_ONCE);
	if (n < 0 && n != -EAGAIN)
		answer_finish(q, n == -ENOMEM ? ENOMEM : 0);
}

static void answer_on_late(void *arg)
{
	answer_finish(arg, ETIMEDOUT);
}

/* ---- questions ---- */

/* Start the program.  Return 0 or -errno. */
static int answers_start(struct p3_answers *a, const struct p3_frame *f, int *from_out)
{
	int look[2];
	struct p3_spawned_tool tool;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, look))
		return -errno;
	int rc = report_answer(f, look[1], &tool);
	close(look[1]);
	if (rc) {
		close(look[0]);
		return rc;
	}
	p3_attach_admit(a->attach, look[0]);
	*from_out = tool.from;
	return p3_set_nonblocking(tool.from);
}

void p3_answers_take(struct p3_answers *a, const struct p3_frame *f)
{
	struct answer *q = a->ask, *end = a->ask + P3_ANSWERS_MOST;
	while (q < end && q->from.fd >= 0)
		q++;
	int rc = q < end ? answers_start(a, f, &q->from.fd) : -EBUSY;
	if (!rc)
		rc = p3_loop_watch(a->loop, &q->from, EPOLLIN);
	if (rc) {
		if (q < end)
			answer_clear(q);
		a->done(a->arg, f->number, -rc, NULL, 0);
		return;
	}
	q->number = f->number;
	p3_loop_at(a->loop, &q->late, p3_now_ms() + P3_REPORT_MS + f->node);
}

/* ---- questions to all agents ---- */

#define QUERY_OWN      0    /* the place of yod's own question */
#define QUERY_MORE_MS  1000 /* for the way there and back */
#define QUERY_TEXT_LEN 400

/* A question, or a client that may ask one. */
struct asker {
	struct p3_query *query;
	struct p3_frames conn; /* open while there is a client */
	uint64_t number;       /* of its question; 0: none */
	int32_t bits;
	struct p3_loop_timer late;
	bool *waits; /* of each host: its answer is yet to come */
	uint32_t left;
};

struct p3_query {
	struct p3_agents *agents;
	struct p3_service service;
	uint64_t last; /* number of the last question */
	struct asker asker[P3_QUERY_MOST];
};

static void query_hang_up(struct asker *k)
{
	int sock = k->conn.in;
	p3_frames_close(&k->conn);
	p3_close(sock);
	k->number = 0;
	p3_loop_at(&k->query->agents->c.loop, &k->late, P3_NEVER);
}

/* ---- answers ---- */

/* Print the report of a host, or of yod itself, or send it to ptlstat. */
static void query_hand_on(struct p3_query *q, struct asker *k, uint32_t host,
	int32_t status, const char *text, size_t len)
{
	uint32_t hosts = q->agents->hosts->n;
	const char *name = host < hosts ? q->agents->hosts->host[host].name : "";
	if (k == &q->asker[QUERY_OWN]) {
		if (status)
			p3_say("host %s: no report: %s", name, p3_query_why(status));
		else if (len && *name)
			p3_say("host %s:", name);
		p3_say_lines(text, len);
		return;
	}
	struct p3_frame f = {.op = P3_FRAME_REPORT,
		.node = host,
		.value = status,
		.number = hosts + 1,
		.len = strlen(name) + 1 + len};
	char *bytes = malloc(f.len);
	if (!bytes) {
		query_hang_up(k);
		return;
	}
	char *at = stpcpy(bytes, name) + 1;
	if (len)
		memcpy(at, text, len);
	p3_frames_send(&k->conn, f, bytes);
	free(bytes);
}

/* Hand on a host's report, and after the last one what yod itself knows. */
static void query_on_report(struct p3_query *q, struct asker *k, uint32_t host,
	int32_t status, const char *bytes, size_t len)
{
	char text[QUERY_TEXT_LEN] = "", late[QUERY_TEXT_LEN / 2];
	size_t n = 0;
	if (!k->number || !k->waits[host])
		return;
	k->waits[host] = false;
	query_hand_on(q, k, host, status, bytes, len);
	if (--k->left || !k->number)
		return;
	/* Tell which hosts' ranks have not all come to the barrier in which others
	 * wait. */
	p3_agents_name_late(q->agents, late, sizeof late);
	if (k->bits & P3_ASK_WHY && !(k->bits & P3_ASK_JSON) &&
		q->agents->barrier_since != P3_NEVER)
		n = (size_t)snprintf(text, sizeof text,
			"ranks wait in PtlXBarrier for those of these hosts, which have "
			"not all come: %s\n",
			late);
	query_hand_on(q, k, q->agents->hosts->n, 0, text, n);
	k->number = 0;
	p3_loop_at(&q->agents->c.loop, &k->late, P3_NEVER);
	if (k == &q->asker[QUERY_OWN])
		p3_control_reported(&q->agents->c);
}

void p3_query_take(
	struct p3_query *q, uint32_t host, const struct p3_frame *f, const char *bytes)
{
	for (uint32_t i = 0; q && i < P3_QUERY_MOST; i++) {
		struct asker *k = &q->asker[i];
		if (k->number && (!f || k->number == f->number))
			query_on_report(
				q, k, host, f ? f->value : EPIPE, bytes, f ? f->len : 0);
	}
}

/* ---- questions ---- */

static void asker_on_late(void *arg)
{
	struct asker *k = arg;
	for (uint32_t h = 0; h < k->query->agents->hosts->n; h++)
		query_on_report(k->query, k, h, ETIMEDOUT, NULL, 0);
}

/* Ask all agents. */
static void query_ask(struct p3_query *q, struct asker *k, int32_t bits, uint32_t ms)
{
	struct p3_agents *a = q->agents;
	struct p3_frame f = {
		.op = P3_FRAME_ASK, .number = ++q->last, .value = bits, .node = ms};
	k->number = f.number;
	k->bits = bits;
	p3_loop_at(&a->c.loop, &k->late, p3_now_ms() + ms + P3_REPORT_MS + QUERY_MORE_MS);
	k->left = a->hosts->n;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		k->waits[h] = true;
	if (a->go_sent) /* before that, an agent expects nothing else than GO */
		p3_agents_tell_all(a, f, NULL);
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (!p3_frames_are_open(&a->link[h].conn) ||
			a->link[h].state != P3_UPLINK_RUNS)
			query_on_report(q, k, h, a->go_sent ? EPIPE : ENOTCONN, NULL, 0);
}

bool p3_query_begin_own(struct p3_query *q)
{
	struct asker *k = &q->asker[QUERY_OWN];
	bool brief = q->agents->opt->size > P3_REPORT_NODES;
	if (!k->number)
		query_ask(q, k, P3_ASK_WHY | (brief ? P3_ASK_BRIEF : 0), 0);
	return k->number != 0;
}

/* ---- clients ---- */

static void asker_on_frames(void *arg, int rc)
{
	struct asker *k = arg;
	struct p3_frame f;
	const char *bytes;
	if (!rc)
		rc = p3_frames_next(&k->conn, &f, &bytes);
	if (!rc && (f.op != P3_FRAME_ASK || f.node > P3_QUERY_RATE_MS || k->number))
		rc = -EPROTO;
	if (!rc)
		query_ask(k->query, k, f.value | P3_ASK_ANY, f.node);
	else if (rc != -EAGAIN)
		query_hang_up(k);
}

static void query_on_client(void *arg, int sock, bool ours)
{
	struct p3_query *q = arg;
	struct asker *k = &q->asker[QUERY_OWN + 1], *end = q->asker + P3_QUERY_MOST;
	while (k < end && p3_frames_are_open(&k->conn))
		k++;
	if (!ours || k == end)
		close(sock);
	else if (p3_frames_open(&k->conn, sock, sock) ||
		 p3_frames_attach(&k->conn, &q->agents->c.loop, asker_on_frames, k))
		query_hang_up(k);
}

/* ---- the service ---- */

int p3_query_create(struct p3_agents *agents, struct p3_query **query_out)
{
	struct p3_query *q = calloc(1, sizeof *q);
	bool *waits = calloc(P3_QUERY_MOST, agents->hosts->n);
	if (!q || !waits) {
		free(q);
		free(waits);
		return -ENOMEM;
	}
	q->agents = agents;
	for (uint32_t i = 0; i < P3_QUERY_MOST; i++)
		q->asker[i] = (struct asker){.query = q,
			.conn = {.in = -1, .out = -1},
			.late = {.on = asker_on_late, .arg = &q->asker[i]},
			.waits = waits + i * agents->hosts->n};
	q->service = (struct p3_service){
		.loop = &agents->c.loop, .admit = query_on_client, .arg = q};
	int rc = p3_service_open(
		&q->service, SOCK_STREAM, "portals3-hosts", agents->jid, 1);
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
		query_hang_up(&q->asker[i]);
	p3_service_close(&q->service);
	free(q->asker[0].waits);
	free(q);
}
