/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of yod. */
#include "lib/job/cards.h"
#include "lib/job/yod.h"

#include <errno.h>
#include <unistd.h>

#define RECEIVE_MOST 64 /* packets of yod taken in a row, before other work */

/*
 * Return true for a packet between this node's LEAVE and yod's LEFT for it: the packet is
 * for the incarnation that is over, and yod tells the next one everything anew.
 */
static bool is_stale(struct p3_node *node, const struct p3_job_msg *m)
{
	if (!node->leaving || m->op == P3_JOB_RELEASED)
		return false;
	if (m->op == P3_JOB_LEFT && m->node == node->rank)
		node->leaving = false;
	return true;
}

/* Return true if this node is in a domain, whose members send it such news themselves, so
 * that yod's packet must be ignored. */
static bool comes_from_domain(const struct p3_node *node, const struct p3_job_msg *m)
{
	return node->domain[0] && m->op != P3_JOB_JOINED && m->op != P3_JOB_RELEASED &&
	       m->op != P3_JOB_OVER && m->op != P3_JOB_CARDS;
}

static void on_released(struct p3_node *node, const struct p3_job_msg *m)
{
	node->barriers_done++;
	node->barrier_status = m->status;
	node->barrier_ended = m->ended;
}

/* Process a packet for the present incarnation of the node. */
static void on_news(struct p3_node *node, struct p3_nic *nic, const struct p3_job_msg *m,
	struct p3_peer_info *info, int rc)
{
	switch (m->op) {
	case P3_JOB_BORN:
		p3_job_on_birth(node, nic, m, info, rc);
		break;
	case P3_JOB_JOINED:
		node->joined = true;
		break;
	case P3_JOB_PIDS:
		p3_job_take_ids(node, m);
		if (nic)
			p3_nic_peer_pids(nic, info);
		break;
	case P3_JOB_TOLD:
		if (nic && m->incarnation == node->incarnation)
			p3_nic_peer_told(nic, m->round, NULL);
		break;
	case P3_JOB_OVER:
		info->nid = node->nid - node->rank + m->node;
		if (nic)
			p3_nic_peer_over(nic, info);
		break;
	case P3_JOB_LEFT:
	case P3_JOB_DIED:
		p3_job_forget_birth(node, m);
		p3_job_on_end(node, nic, m, info);
		break;
	case P3_JOB_RELEASED:
		on_released(node, m);
		break;
	case P3_JOB_CARDS:
		p3_cards_take(node, m, info->published);
		break;
	default:
		break;
	}
}

/* Process a packet.  The caller holds the lock node->life. */
static void on_message(
	struct p3_node *node, const struct p3_job_msg *m, const int *fds, int rc)
{
	struct p3_nic *nic = p3_nic(node);
	struct p3_peer_info info = p3_job_peer_info(m, fds);
	if (m->node >= node->size && m->op != P3_JOB_RELEASED && m->op != P3_JOB_JOINED)
		return;
	if (is_stale(node, m) || comes_from_domain(node, m)) {
		if (m->op == P3_JOB_DIED)
			p3_job_on_end(node, NULL, m, &info);
		return;
	}
	on_news(node, nic, m, &info, rc);
	/* Threads wait for these two, and for packets about this node. */
	if (m->op == P3_JOB_JOINED || m->op == P3_JOB_RELEASED || m->node == node->rank)
		pthread_cond_broadcast(&node->changed);
}

/* Take one message, if there is one.  Return 0, -EAGAIN if there is none, or -EPIPE if
 * yod is gone. */
static int receive_one(struct p3_node *node)
{
	struct p3_job_msg m;
	int fds[P3_JOB_FDS] = {-1, -1, -1, -1};
	unsigned nfds = 0;
	int rc = p3_job_recv_now(node->sock, &m, fds, &nfds);
	if (rc == -EPIPE || rc == -ECONNRESET)
		return -EPIPE;
	if (rc && rc != -EMFILE)
		return rc == -EAGAIN ? rc : 0;
	pthread_mutex_lock(&node->life);
	on_message(node, &m, fds, rc);
	pthread_mutex_unlock(&node->life);
	for (unsigned i = 0; i < nfds; i++)
		close(fds[i]);
	return 0;
}

bool p3_job_receive(struct p3_node *node)
{
	int rc = 0;
	for (int i = 0; i < RECEIVE_MOST && !rc && p3_job_has_lifeline(node); i++)
		rc = receive_one(node);
	return rc != -EPIPE;
}
