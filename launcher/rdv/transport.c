/* SPDX-License-Identifier: BSD-3-Clause */
/* The table's bits and view, and the sending and queueing of packets to nodes. */
#include "launcher/rdv/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void p3_rdv_close_fds(int *fds, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		p3_close(fds[k]);
		fds[k] = -1;
	}
}

bool p3_rdv_has_met(const struct p3_rdv_node *n, uint32_t about)
{
	return n->met[about / 64] >> about % 64 & 1;
}

void p3_rdv_set_met(struct p3_rdv_node *n, uint32_t about, bool met)
{
	uint64_t bit = UINT64_C(1) << about % 64;
	n->met[about / 64] = met ? n->met[about / 64] | bit : n->met[about / 64] & ~bit;
}

void p3_rdv_owe(struct p3_rdv_node *dead, uint32_t by)
{
	dead->owed[by / 64] |= UINT64_C(1) << by % 64;
	dead->owed_n++;
}

void p3_rdv_owe_no_more(struct p3_rdv_node *dead, uint32_t by)
{
	uint64_t bit = UINT64_C(1) << by % 64;
	if (!(dead->owed[by / 64] & bit))
		return;
	dead->owed[by / 64] &= ~bit;
	dead->owed_n--;
}

void p3_rdv_owe_nothing(struct p3_rdv *r, struct p3_rdv_node *dead)
{
	memset(dead->owed, 0, (r->conf.size + 63) / 64 * sizeof *dead->owed);
	dead->owed_n = 0;
	dead->reap_at = P3_NEVER;
}

void p3_rdv_node_owes_nobody(struct p3_rdv *r, uint32_t i)
{
	for (uint32_t d = 0; d < r->conf.size; d++)
		p3_rdv_owe_no_more(&r->node[d], i);
}

bool p3_rdv_is_part(const struct p3_rdv *r)
{
	return r->conf.here > 0;
}

bool p3_rdv_on_hosts(const struct p3_rdv *r)
{
	return p3_rdv_is_part(r) && r->conf.hosts >= 0;
}

bool p3_rdv_listens(const struct p3_rdv_node *n)
{
	return n->state == NODE_JOINED && n->sock >= 0;
}

bool p3_rdv_may_reap(const struct p3_rdv *r, uint32_t i)
{
	return i >= r->conf.size || !r->node[i].owed_n;
}

uint32_t p3_rdv_barrier(const struct p3_rdv *r, int64_t *since_out)
{
	*since_out = r->barrier_since;
	return r->waits_n;
}

void p3_rdv_show(const struct p3_rdv *r, uint32_t i, struct p3_rdv_view *out)
{
	const struct p3_rdv_node *n = &r->node[i];
	bool elsewhere = r->conf.here && i - r->conf.first >= r->conf.here;
	*out = (struct p3_rdv_view){.state = elsewhere ? P3_RDV_ELSEWHERE : n->was,
		.inited = n->state == NODE_KNOWN || n->state == NODE_JOINED,
		.ended = n->ended,
		.status = n->status,
		.barrier_n = n->waits ? r->waits_n : 0,
		.barrier_since = n->waits_since,
		.os_pid = n->owner,
		.nid = r->conf.nid_base + i,
		.pid = {n->pid[0], n->pid[1]},
		.incarnation = n->incarnation,
		.layout = r->conf.layout,
		.seg_len = n->seg_len,
		.published = n->fds[FD_PUBLISHED],
		.host = n->fds[FD_HOST]};
}

/* ---- queues ---- */

void p3_outq_init(struct p3_outq *q)
{
	q->first = NULL;
	q->end = &q->first;
	q->n = 0;
}

int p3_outq_keep_fds(struct p3_out *o, const int fds[3])
{
	for (unsigned k = 0; k < 3; k++) {
		if (fds[k] < 0)
			continue;
		o->fds[k] = fcntl(fds[k], F_DUPFD_CLOEXEC, 0);
		if (o->fds[k] < 0) {
			int rc = -errno;
			p3_rdv_close_fds(o->fds, 3);
			return rc;
		}
	}
	return 0;
}

static void outq_unlink_at(struct p3_outq *q, struct p3_out **at)
{
	struct p3_out *o = *at;
	*at = o->next;
	if (q->end == &o->next)
		q->end = at;
	q->n--;
	p3_rdv_close_fds(o->fds, 3);
	free(o);
}

/* Add a copy of a packet.  Return 0 or -ENOMEM. */
static int outq_add(struct p3_outq *q, const struct p3_job_msg *m)
{
	struct p3_out *o = malloc(sizeof *o);
	if (!o)
		return -ENOMEM;
	*o = (struct p3_out){.msg = *m, .fds = {-1, -1, -1}};
	*q->end = o;
	q->end = &o->next;
	q->n++;
	return 0;
}

static struct p3_out **outq_place_of(
	struct p3_outq *q, enum p3_job_op op, const struct p3_job_msg *m)
{
	for (struct p3_out **at = &q->first; *at; at = &(*at)->next) {
		const struct p3_job_msg *have = &(*at)->msg;
		if (have->op == op && have->node == m->node &&
			have->incarnation == m->incarnation)
			return at;
	}
	return NULL;
}

struct p3_out *p3_outq_find(
	struct p3_outq *q, enum p3_job_op op, const struct p3_job_msg *m)
{
	struct p3_out **at = outq_place_of(q, op, m);
	return at ? *at : NULL;
}

bool p3_outq_has_end(const struct p3_outq *q, uint32_t peer)
{
	for (const struct p3_out *o = q->first; o; o = o->next)
		if (o->msg.node == peer &&
			(o->msg.op == P3_JOB_LEFT || o->msg.op == P3_JOB_DIED))
			return true;
	return false;
}

void p3_outq_drop(struct p3_outq *q, enum p3_job_op op, const struct p3_job_msg *m)
{
	struct p3_out **at = outq_place_of(q, op, m);
	if (at)
		outq_unlink_at(q, at);
}

static void outq_drop_first(struct p3_outq *q)
{
	outq_unlink_at(q, &q->first);
}

static bool outq_is_news(uint32_t op)
{
	return op == P3_JOB_BORN || op == P3_JOB_JOINED || op == P3_JOB_PIDS ||
	       op == P3_JOB_DIED || op == P3_JOB_LEFT || op == P3_JOB_TOLD ||
	       op == P3_JOB_OVER;
}

void p3_outq_drop_news(struct p3_outq *q)
{
	struct p3_out **at = &q->first;
	while (*at)
		if (outq_is_news((*at)->msg.op))
			outq_unlink_at(q, at);
		else
			at = &(*at)->next;
}

void p3_outq_clear(struct p3_outq *q)
{
	while (q->first)
		outq_drop_first(q);
}

/* ---- sending ---- */

/* time until a send that lacked memory, or room for descriptors in flight, is tried
 * again: no event tells when there is room */
#define RETRY_MS     10
#define QUEUE_MAX(n) (4 * (size_t)(n) + 64)

__attribute__((format(printf, 2, 3))) void p3_rdv_tell(
	struct p3_rdv *r, const char *fmt, ...)
{
	char line[700];
	va_list args;

	if (!r->conf.say)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof line, fmt, args);
	va_end(args);
	r->conf.say(r->conf.say_arg, line);
}

struct p3_job_msg p3_rdv_message(const struct p3_rdv *r, enum p3_job_op op, uint32_t i)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = op,
		.node = i,
		.incarnation = r->node[i].incarnation};
	return m;
}

void p3_rdv_copy_fds_of(const struct p3_rdv_node *born, int fds_out[3])
{
	fds_out[0] = born->fds[FD_PUBLISHED];
	fds_out[1] = born->fds[FD_DOORBELL];
	fds_out[2] = born->heap_len ? born->fds[FD_HEAP] : -1;
}

/* Send BORN of a node to another.  kept holds the copies of the descriptors that a
 * queued packet has; if it is NULL or has none, send the node's own descriptors. */
static int rdv_transmit_born(const struct p3_rdv *r, struct p3_rdv_node *to,
	const struct p3_job_msg *m, const int *kept)
{
	int fds[3];
	bool copies = kept && kept[0] >= 0;
	p3_rdv_copy_fds_of(&r->node[m->node], fds);
	if (!copies)
		kept = fds;
	unsigned nfds = copies || p3_rdv_has_met(to, m->node) ? (m->heap_len ? 3 : 2) : 0;
	return p3_job_send(to->sock, m, kept, nfds);
}

static int rdv_transmit(struct p3_rdv *r, struct p3_rdv_node *to,
	const struct p3_job_msg *m, const int *kept)
{
	if (m->op == P3_JOB_BORN)
		return rdv_transmit_born(r, to, m, kept);
	if (m->op == P3_JOB_CARDS)
		return p3_job_send(
			to->sock, m, &r->cards, m->status || r->cards < 0 ? 0 : 1);
	int file = p3_rdv_on_hosts(r) ? r->conf.hosts : r->sleepers;
	bool hands_on = m->op == P3_JOB_WELCOME && file >= 0;
	return p3_job_send(to->sock, m, &file, hands_on ? 1 : 0);
}

/* Return true if the packet must be sent later, or false if it was sent or can never be
 * sent. */
static bool rdv_must_wait(struct p3_rdv *r, struct p3_rdv_node *to, int rc)
{
	if (rc == -ETOOMANYREFS || rc == -ENOMEM || rc == -ENOBUFS) {
		to->retry = true;
		p3_loop_before(r->conf.loop, &r->timer, p3_now_ms() + RETRY_MS);
		return true;
	}
	return rc == -EAGAIN;
}

static void rdv_want_writes(struct p3_rdv *r, uint32_t i, bool on)
{
	(void)p3_loop_watch(
		r->conf.loop, &r->node[i].on_sock, on ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void p3_rdv_flush(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->sock < 0)
		return;
	n->retry = false;
	while (n->out.first) {
		if (rdv_must_wait(r, n,
			    rdv_transmit(r, n, &n->out.first->msg, n->out.first->fds)))
			break;
		outq_drop_first(&n->out);
	}
	rdv_want_writes(r, i, n->out.first && !n->retry);
}

void p3_rdv_post(struct p3_rdv *r, uint32_t i, const struct p3_job_msg *m)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->sock < 0)
		return;
	if (!n->out.first && !rdv_must_wait(r, n, rdv_transmit(r, n, m, NULL)))
		return;
	if (n->out.n >= QUEUE_MAX(r->conf.size) || outq_add(&n->out, m)) {
		/* Its queue is too long.  Only shut its socket down: closing it here,
		 * inside a broadcast, would begin another one.  The next step sees the
		 * end of file. */
		p3_rdv_tell(r,
			"rank %u: does not read what it asks for (%u packets queued); "
			"cut off",
			i, r->node[i].out.n);
		p3_outq_clear(&r->node[i].out);
		shutdown(r->node[i].sock, SHUT_RDWR);
		return;
	}
	rdv_want_writes(r, i, !n->retry);
}
