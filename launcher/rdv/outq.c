/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue of packets for one node. */
#include "launcher/rdv/outq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void p3_outq_init(struct p3_outq *q)
{
	q->first = NULL;
	q->end = &q->first;
	q->n = 0;
}

static void close_copies(struct p3_out *o)
{
	for (unsigned k = 0; k < 3; k++) {
		if (o->fds[k] >= 0)
			close(o->fds[k]);
		o->fds[k] = -1;
	}
}

int p3_outq_keep_fds(struct p3_out *o, const int fds[3])
{
	for (unsigned k = 0; k < 3; k++) {
		if (fds[k] < 0)
			continue;
		o->fds[k] = fcntl(fds[k], F_DUPFD_CLOEXEC, 0);
		if (o->fds[k] < 0) {
			int rc = -errno;
			close_copies(o);
			return rc;
		}
	}
	return 0;
}

static void unlink_at(struct p3_outq *q, struct p3_out **at)
{
	struct p3_out *o = *at;
	*at = o->next;
	if (q->end == &o->next)
		q->end = at;
	q->n--;
	close_copies(o);
	free(o);
}

int p3_outq_add(struct p3_outq *q, const struct p3_job_msg *m)
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

static struct p3_out **place(
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
	struct p3_out **at = place(q, op, m);
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
	struct p3_out **at = place(q, op, m);
	if (at)
		unlink_at(q, at);
}

void p3_outq_drop_first(struct p3_outq *q)
{
	unlink_at(q, &q->first);
}

static bool is_news(uint32_t op)
{
	return op == P3_JOB_BORN || op == P3_JOB_JOINED || op == P3_JOB_PIDS ||
	       op == P3_JOB_DIED || op == P3_JOB_LEFT || op == P3_JOB_TOLD ||
	       op == P3_JOB_OVER;
}

void p3_outq_drop_news(struct p3_outq *q)
{
	struct p3_out **at = &q->first;
	while (*at)
		if (is_news((*at)->msg.op))
			unlink_at(q, at);
		else
			at = &(*at)->next;
}

void p3_outq_clear(struct p3_outq *q)
{
	while (q->first)
		p3_outq_drop_first(q);
}
