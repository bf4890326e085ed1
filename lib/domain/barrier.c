/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of a job that another launcher started. */
#include "lib/domain/internal.h"

#include <errno.h>

/* ---- packets ---- */

/* Send a packet to a rank, through all connections with it, since it may close any of
 * them before it reads.  Return false if one did not take it. */
static bool barrier_send(struct p3_mesh *m, enum p3_job_op op, uint32_t rank,
	uint32_t round, struct p3_mesh_verdict v)
{
	struct p3_job_msg msg = p3_member_message(m->node, op);
	uint32_t slot = m->rank[rank].slot;
	bool ok = true;
	msg.round = round;
	msg.status = v.status;
	msg.ended = v.ended;
	if (slot == P3_MESH_NONE)
		return false;
	if (p3_mesh_is_far(m, slot))
		return !p3_stream_post(m->node->modex->streams, slot, &msg, NULL, 0);
	for (uint32_t i = 0; i < m->nconn; i++) {
		const struct p3_mesh_conn *c = &m->conn[i];
		uint32_t with = c->slot == P3_MESH_NONE ? c->called : c->slot;
		if (p3_mesh_talks(c) && with == slot)
			ok &= !p3_job_send(p3_mesh_fd(&c->fd), &msg, NULL, 0);
	}
	return ok;
}

static void barrier_release(struct p3_mesh *m, uint32_t round, struct p3_mesh_verdict v)
{
	for (uint32_t i = 0; i < m->node->size; i++)
		if (m->rank[i].slot != P3_MESH_NONE) {
			(void)barrier_send(m, P3_JOB_RELEASED, i, round, v);
			FAULT_POINT("meet.release_half");
		}
}

/* Return status 0 if this node has met all ranks, EPIPE and the rank if a rank has ended,
 * else EAGAIN. */
static struct p3_mesh_verdict barrier_readiness(const struct p3_mesh *m)
{
	struct p3_mesh_verdict v = P3_MESH_GOOD;
	for (uint32_t i = 0; i < m->node->size; i++) {
		if (i == m->node->rank)
			continue;
		if (m->rank[i].ended)
			return (struct p3_mesh_verdict){EPIPE, i};
		if (m->rank[i].slot == P3_MESH_NONE)
			v.status = EAGAIN;
	}
	return v;
}

/* ---- rank 0, and the others ---- */

/* Return the number of the barrier that this node is in, or 0. */
static uint32_t barrier_current_round(struct p3_mesh *m, uint32_t *done_out)
{
	pthread_mutex_lock(&m->lock);
	*done_out = m->node->barriers_done;
	uint32_t round = m->entered != *done_out ? m->entered : 0;
	pthread_mutex_unlock(&m->lock);
	return round;
}

static void barrier_finish(struct p3_mesh *m, uint32_t round, struct p3_mesh_verdict v)
{
	pthread_mutex_lock(&m->lock);
	if (m->entered == round && m->node->barriers_done + 1 == round) {
		m->node->barriers_done = round;
		m->node->barrier_status = v.status;
		m->node->barrier_ended = v.ended;
		pthread_cond_broadcast(&m->changed);
	}
	pthread_mutex_unlock(&m->lock);
}

static void barrier_break(struct p3_mesh *m, uint32_t done, struct p3_mesh_verdict how)
{
	m->broken = how;
	barrier_release(m, done + 1, how);
}

static void barrier_lead(struct p3_mesh *m)
{
	uint32_t done, round = barrier_current_round(m, &done);
	struct p3_mesh_verdict now = barrier_readiness(m);
	if (!m->broken.status && now.status == EPIPE)
		barrier_break(m, done, now);
	bool all = true;
	for (uint32_t i = 0; i < m->node->size; i++)
		all &= i == m->node->rank || m->rank[i].come == round;
	if (!round || (!m->broken.status && !all))
		return;
	if (!m->broken.status)
		barrier_release(m, round, P3_MESH_GOOD);
	barrier_finish(m, round, m->broken);
}

void p3_mesh_leave_barrier(struct p3_mesh *m, const struct p3_job_msg *released)
{
	m->released.round = 0;
	FAULT_POINT("meet.released");
	barrier_finish(m, released->round,
		(struct p3_mesh_verdict){released->status, released->ended});
}

static void barrier_follow(struct p3_mesh *m)
{
	uint32_t done, round = barrier_current_round(m, &done);
	struct p3_mesh_verdict how = barrier_readiness(m);
	if (!round || m->released.round) /* rank 0 may have ended since its release */
		return;
	if (m->rank[0].ended)
		barrier_finish(m, round,
			m->broken.status ? m->broken
					 : (struct p3_mesh_verdict){EPIPE, 0});
	else if (m->rank[0].slot != P3_MESH_NONE &&
		 (m->barrier_sent != round || m->barrier_sent_how != how.status) &&
		 barrier_send(m, P3_JOB_BARRIER, 0, round, how)) {
		m->barrier_sent = round;
		m->barrier_sent_how = how.status;
		FAULT_POINT("meet.barrier_told");
	}
}

void p3_mesh_advance_barrier(struct p3_mesh *m)
{
	if (p3_mesh_follows(m))
		barrier_follow(m);
	else if (m->node->launched)
		barrier_lead(m);
}

/* Note that a rank has entered the next barrier.  If its packet has the number of another
 * barrier, answer the rank at once: it has missed the last release, or has begun to count
 * anew and is out of step.  Answer also if barriers have failed for good. */
static void barrier_on_entered(struct p3_mesh *m, const struct p3_job_msg *msg)
{
	uint32_t done, rank = m->node->member[msg->node].rank;
	(void)barrier_current_round(m, &done);
	bool next = msg->round == done + 1;
	if (next && msg->status == EPIPE && !m->broken.status) {
		barrier_break(m, done, (struct p3_mesh_verdict){EPIPE, msg->ended});
	} else if (next && !m->broken.status) {
		m->rank[rank].come = msg->status ? 0 : msg->round;
		FAULT_POINT("meet.barrier_heard");
	} else {
		struct p3_mesh_verdict v = {EPIPE, P3_JOB_NO_RANK};
		if (msg->round == done)
			v = (struct p3_mesh_verdict){
				m->node->barrier_status, m->node->barrier_ended};
		else if (m->broken.status)
			v = m->broken;
		(void)barrier_send(m, P3_JOB_RELEASED, rank, msg->round, v);
	}
}

void p3_mesh_on_barrier_packet(
	struct p3_mesh *m, uint32_t rank, const struct p3_job_msg *msg)
{
	uint32_t done;
	if (msg->op == P3_JOB_BARRIER && rank != P3_MESH_NONE && !p3_mesh_follows(m))
		barrier_on_entered(m, msg);
	if (msg->op != P3_JOB_RELEASED || rank != 0)
		return;
	if (msg->status == EPIPE && !m->broken.status)
		m->broken = (struct p3_mesh_verdict){EPIPE, msg->ended};
	/* Keep the release of the barrier that this node is in, not that of another one,
	 * nor a later one: rank 0 answers a packet that it gets after the release, and
	 * barriers may have failed since then. */
	if (!m->released.round && msg->round == barrier_current_round(m, &done))
		m->released = *msg;
}
