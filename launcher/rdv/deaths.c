/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of nodes: survivors must drop a dead node before it may be reaped. */
#include "launcher/rdv/table.h"
#include "launcher/clock.h"
#include "launcher/rdv/remains.h"
#include "shm/fault.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ENDING_MS 5000 /* longest time that a process may take to end in the kernel */

/*
 * Keep copies of the ended peer's descriptors with the introduction o in a node's queue:
 * the node needs them to read the peer's last messages.  Return false if o is no
 * introduction, on an error, or if the end of an earlier life of the peer is queued:
 * introductions of a peer that lives and ends many times would fill the queue.
 */
static bool keep_introduction(
	struct p3_rdv *r, uint32_t to, struct p3_out *o, uint32_t peer)
{
	int fds[3];
	if (!o->again || p3_outq_has_end(&r->node[to].out, peer))
		return false;
	p3_rdv_copy_fds_of(&r->node[peer], fds);
	int rc = p3_outq_keep_fds(o, fds);
	if (rc == -EMFILE || rc == -ENFILE)
		p3_rdv_tell(r,
			"rank %u: yod has no descriptors left for the memory of rank %u, "
			"which has ended; its last messages are lost; raise ulimit -Hn, "
			"or use fewer nodes",
			to, peer);
	return rc == 0;
}

/* Tell one node of an end.  If the birth is still queued for it, remove the birth, send
 * no end and return false, except for a birth that introduces the ended node. */
static bool post_end(struct p3_rdv *r, uint32_t to, const struct p3_job_msg *m)
{
	struct p3_rdv_node *n = &r->node[to];
	struct p3_out *birth = p3_outq_find(&n->out, P3_JOB_BORN, m);
	bool kept = birth && keep_introduction(r, to, birth, m->node);
	bool heard = !birth || kept || (birth->again && !birth->news);
	if (birth && !kept)
		p3_outq_drop(&n->out, P3_JOB_BORN, m);
	p3_outq_drop(&n->out, P3_JOB_PIDS, m);
	if (heard)
		p3_rdv_post(r, to, m);
	return heard;
}

static void broadcast_end(
	struct p3_rdv *r, uint32_t i, enum p3_job_op op, int status, bool owed)
{
	struct p3_job_msg m = p3_rdv_message(r, op, i);
	m.status = status;
	p3_rdv_owe_nothing(r, &r->node[i]);
	for (uint32_t to = 0; to < r->conf.size; to++) {
		if (to == i || !p3_rdv_listens(&r->node[to]))
			continue;
		if (post_end(r, to, &m) && owed && p3_rdv_has_met(&r->node[to], i))
			p3_rdv_owe(&r->node[i], to);
		FAULT_POINT("yod.end_half_told");
	}
	if (!r->node[i].owed_n)
		return;
	r->node[i].reap_at = p3_now_ms() + P3_JOB_REAP_MS;
	p3_rdv_timer_arm(r, r->node[i].reap_at);
}

void p3_rdv_post_over(struct p3_rdv *r, uint32_t to, uint32_t about)
{
	struct p3_rdv_node *n = &r->node[to];
	uint64_t bit = UINT64_C(1) << about % 64;
	if (!n->watches || !p3_rdv_listens(n) || (n->over[about / 64] & bit))
		return;
	n->over[about / 64] |= bit;
	struct p3_job_msg m = p3_rdv_message(r, P3_JOB_OVER, about);
	p3_rdv_post(r, to, &m);
}

static void watch_no_more(struct p3_rdv *r, struct p3_rdv_node *n)
{
	n->watches = false;
	memset(n->over, 0, (r->conf.size + 63) / 64 * sizeof *n->over);
}

static void count_gone(struct p3_rdv *r, uint32_t i)
{
	if (!r->gone_n++)
		r->first_gone = i;
}

static void set_gone(struct p3_rdv *r, uint32_t i)
{
	r->node[i].state = NODE_GONE;
	for (uint32_t to = 0; to < r->conf.size; to++)
		p3_rdv_post_over(r, to, i);
}

/* On several hosts, barriers fail only when p3_rdv_gone() says so: all hosts then hear of
 * releases and ends in one order. */
void p3_rdv_set_gone(struct p3_rdv *r, uint32_t i)
{
	set_gone(r, i);
	if (p3_rdv_is_part(r))
		p3_rdv_tell_news(r, P3_RDV_GONE, i);
	else
		count_gone(r, i);
}

void p3_rdv_gone(struct p3_rdv *r, uint32_t i)
{
	if (i >= r->conf.size)
		return;
	if (i - r->conf.first >= r->conf.here)
		set_gone(r, i);
	count_gone(r, i);
	p3_rdv_barrier_look(r);
}

void p3_rdv_set_back(struct p3_rdv *r, uint32_t i)
{
	if (r->node[i].state != NODE_GONE || p3_rdv_is_part(r))
		return;
	r->gone_n--;
	for (uint32_t k = 0; r->first_gone == i && k < r->conf.size; k++)
		if (k != i && r->node[k].state == NODE_GONE)
			r->first_gone = k;
	for (uint32_t to = 0; to < r->conf.size; to++)
		r->node[to].over[i / 64] &= ~(UINT64_C(1) << i % 64);
}

/* Close a dead node's doorbell and heap, whose memory no process needs now.  Keep
 * the published and the host segment for lookers. */
static void close_but_for_lookers(struct p3_rdv_node *n)
{
	p3_rdv_close_fds(&n->fds[FD_DOORBELL], 1);
	p3_rdv_close_fds(&n->fds[FD_HEAP], 1);
}

void p3_rdv_keep_remains(struct p3_rdv_node *n)
{
	int kept = p3_remains_make(n->fds[FD_PUBLISHED]);
	p3_rdv_close_fds(n->fds, P3_JOB_FDS);
	n->fds[FD_PUBLISHED] = kept < 0 ? -1 : kept;
}

void p3_rdv_owner_forget(struct p3_rdv *r, struct p3_rdv_node *n)
{
	if (n->owner_fd >= 0) {
		epoll_ctl(r->ep, EPOLL_CTL_DEL, n->owner_fd, NULL);
		close(n->owner_fd);
	}
	n->owner_fd = -1;
}

void p3_rdv_sock_close(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->sock < 0)
		return;
	epoll_ctl(r->ep, EPOLL_CTL_DEL, n->sock, NULL);
	close(n->sock);
	n->sock = -1;
	n->writes = false;
	n->retry = false;
	p3_outq_clear(&n->out);
	p3_rdv_node_owes_nobody(r, i);
}

void p3_rdv_unjoin(struct p3_rdv *r, uint32_t i, enum p3_job_op op, int status, bool owed)
{
	struct p3_rdv_node *n = &r->node[i];
	p3_rdv_tell_births(r);
	n->state = NODE_KNOWN;
	n->fate_at = P3_NEVER;
	r->joined_n--;
	p3_outq_drop_news(&n->out);
	watch_no_more(r, n);
	p3_rdv_node_owes_nobody(r, i);
	broadcast_end(r, i, owed ? P3_JOB_DIED : P3_JOB_LEFT, status, owed);
	n->was = op == P3_JOB_DIED ? P3_RDV_DIED : P3_RDV_LEFT;
	if (r->conf.over)
		r->conf.over(
			r->conf.over_arg, i, n->fds[FD_PUBLISHED], op == P3_JOB_DIED);
	if (op == P3_JOB_DIED)
		close_but_for_lookers(n);
	else
		p3_rdv_keep_remains(n);
}

void p3_rdv_node_over(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->state == NODE_GONE)
		return;
	p3_rdv_owner_forget(r, n);
	if (n->waits) {
		n->waits = false;
		r->waits_n--;
	}
	if (n->sock < 0)
		p3_rdv_set_gone(r, i);
	else
		n->state = NODE_NEW;
	p3_rdv_barrier_look(r);
}

void p3_rdv_node_died(struct p3_rdv *r, uint32_t i, int status)
{
	if (r->node[i].state == NODE_JOINED) {
		p3_rdv_unjoin(r, i, P3_JOB_DIED, status, true);
		if (p3_rdv_is_part(r))
			p3_rdv_tell_news(r, P3_RDV_BROKEN, i);
		else
			p3_rdv_barrier_release(r, EPIPE, i);
	}
	p3_rdv_node_over(r, i);
}

void p3_rdv_node_lost(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	if (n->state != NODE_JOINED) {
		p3_rdv_node_over(r, i);
		return;
	}
	if (!r->conf.eof_ms) {
		p3_rdv_node_died(r, i, 0);
		return;
	}
	if (n->fate_at != P3_NEVER)
		return;
	n->fate_at = p3_now_ms() + r->conf.eof_ms;
	n->fate_by = n->fate_at + ENDING_MS;
	p3_rdv_timer_arm(r, n->fate_at);
}

void p3_rdv_node_late(struct p3_rdv *r, uint32_t i)
{
	struct p3_rdv_node *n = &r->node[i];
	int64_t now = p3_now_ms();
	if (n->fate_by > now && r->conf.ends &&
		r->conf.ends(r->conf.ends_arg, i, n->owner))
		n->fate_at = now + r->conf.eof_ms;
	else
		p3_rdv_node_died(r, i, 0);
}

void p3_rdv_cut_off(struct p3_rdv *r, uint32_t i)
{
	p3_rdv_sock_close(r, i);
	p3_rdv_node_died(r, i, 0);
}

void p3_rdv_breach(struct p3_rdv *r, uint32_t i, const char *what)
{
	p3_rdv_tell(r,
		"rank %u: %s; cut off (run it with the libportals of this yod, and leave "
		"descriptor %s alone)",
		i, what, P3_JOB_ENV);
	p3_rdv_cut_off(r, i);
}
