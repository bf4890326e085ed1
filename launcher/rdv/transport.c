/* SPDX-License-Identifier: BSD-3-Clause */
/* The sending of packets to nodes, and their queueing; epoll and the timer. */
#include "launcher/rdv/table.h"
#include "launcher/clock.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

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

static uint64_t watch_key(enum watch what, uint32_t i)
{
	return (uint64_t)what << 32 | i;
}

int p3_rdv_watch(
	struct p3_rdv *r, int op, int fd, enum watch what, uint32_t i, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u64 = watch_key(what, i)};
	return epoll_ctl(r->ep, op, fd, &ev) ? -errno : 0;
}

static void timer_set(struct p3_rdv *r, int64_t at)
{
	r->timer_at = at;
	p3_timer_set(r->timer, at);
}

void p3_rdv_timer_arm(struct p3_rdv *r, int64_t at)
{
	if (at < r->timer_at)
		timer_set(r, at);
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
static int transmit_born(const struct p3_rdv *r, struct p3_rdv_node *to,
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

static int transmit(struct p3_rdv *r, struct p3_rdv_node *to, const struct p3_job_msg *m,
	const int *kept)
{
	if (m->op == P3_JOB_BORN)
		return transmit_born(r, to, m, kept);
	if (m->op == P3_JOB_CARDS)
		return p3_job_send(
			to->sock, m, &r->cards, m->status || r->cards < 0 ? 0 : 1);
	int file = p3_rdv_on_hosts(r) ? r->conf.hosts : r->sleepers;
	bool hands_on = m->op == P3_JOB_WELCOME && file >= 0;
	return p3_job_send(to->sock, m, &file, hands_on ? 1 : 0);
}

/* Return true if the packet must be sent later, or false if it was sent or can never be
 * sent. */
static bool must_wait(struct p3_rdv *r, struct p3_rdv_node *to, int rc)
{
	if (rc == -ETOOMANYREFS || rc == -ENOMEM || rc == -ENOBUFS) {
		to->retry = true;
		p3_rdv_timer_arm(r, p3_now_ms() + RETRY_MS);
		return true;
	}
	return rc == -EAGAIN;
}

static void want_writes(struct p3_rdv *r, uint32_t i, bool on)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->writes == on)
		return;
	n->writes = on;
	p3_rdv_watch(r, EPOLL_CTL_MOD, n->sock, WATCH_SOCK, i,
		on ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

void p3_rdv_flush(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->sock < 0)
		return;
	n->retry = false;
	while (n->out.first) {
		if (must_wait(
			    r, n, transmit(r, n, &n->out.first->msg, n->out.first->fds)))
			break;
		p3_outq_drop_first(&n->out);
	}
	want_writes(r, i, n->out.first && !n->retry);
}

/* Cut off a node whose queue is too long.  Only shut its socket down: closing it here,
 * inside a broadcast, would begin another one.  The next step sees the end of file. */
static void overrun(struct p3_rdv *r, uint32_t i)
{
	p3_rdv_tell(r,
		"rank %u: does not read what it asks for (%u packets queued); cut off", i,
		r->node[i].out.n);
	p3_outq_clear(&r->node[i].out);
	shutdown(r->node[i].sock, SHUT_RDWR);
}

void p3_rdv_post(struct p3_rdv *r, uint32_t i, const struct p3_job_msg *m)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->sock < 0)
		return;
	if (!n->out.first && !must_wait(r, n, transmit(r, n, m, NULL)))
		return;
	if (n->out.n >= QUEUE_MAX(r->conf.size) || p3_outq_add(&n->out, m)) {
		overrun(r, i);
		return;
	}
	want_writes(r, i, !n->retry);
}
