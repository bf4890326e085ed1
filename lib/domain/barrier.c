/* SPDX-License-Identifier: BSD-3-Clause */
/* The barrier of a job that another launcher started. */
#include "lib/domain/internal.h"
#include "shm/log.h"

#include <errno.h>
#include <time.h>

#define LATE_S 10 /* wait in seconds after which missing ranks are named */

/* ---- packets ---- */

/* Send a packet to a rank.  Return false if it was not sent. */
static bool barrier_send(struct p3_mesh *m, enum p3_job_op op, uint32_t rank,
	uint32_t round, struct p3_mesh_verdict v)
{
	struct p3_job_msg msg = p3_member_message(m->node, op);
	msg.round = round;
	msg.status = v.status;
	msg.ended = v.ended;
	return m->rank[rank].slot != P3_MESH_NONE &&
	       p3_mesh_send(m, m->rank[rank].slot, &msg);
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

/* ---- threads in the barrier ---- */

/* Name the missing ranks.  The caller holds m->lock. */
static void barrier_say_late(struct p3_mesh *m)
{
	uint32_t late = 0, first = 0, holder;
	for (uint32_t i = m->node->size; i-- > 0;)
		if (i != m->node->rank && !p3_mesh_is_far(m, i) &&
			!p3_domain_has_rank(&m->place, m->node->job, i, &holder)) {
			first = i;
			late++;
		}
	if (late)
		p3_warn("a barrier waits for %u of %u ranks that have no interface in "
			"the domain %s for %d s, rank %u first; see that all ranks call "
			"PtlNIInit, and have one job's name in the environment",
			late, m->node->size, m->place.path, LATE_S, first);
}

static int barrier_wait(struct p3_mesh *m, uint32_t round, uint32_t *ended_out)
{
	struct timespec late;
	bool said = false;
	clock_gettime(CLOCK_MONOTONIC, &late);
	late.tv_sec += LATE_S;
	while (m->node->barriers_done != round && !m->stop && !m->fds_lost) {
		int rc = said ? pthread_cond_wait(&m->changed, &m->lock)
			      : pthread_cond_timedwait(&m->changed, &m->lock, &late);
		if (rc != ETIMEDOUT)
			continue;
		said = true;
		barrier_say_late(m);
	}
	bool over = m->node->barriers_done == round;
	if (over && m->node->barrier_status)
		*ended_out = m->node->barrier_ended;
	return over && !m->node->barrier_status ? 0 : -EPIPE;
}

int p3_mesh_barrier(struct p3_node *node, uint32_t *ended_out)
{
	pthread_mutex_lock(&node->life);
	struct p3_mesh *m = node->mesh;
	if (!m || !m->nic) {
		pthread_mutex_unlock(&node->life);
		p3_error("PtlXBarrier: this process has no interface; in a job that "
			 "mpirun or the like has started call it between PtlNIInit and "
			 "PtlNIFini, or start the job by yod");
		return -EPIPE;
	}
	pthread_mutex_lock(&m->lock);
	pthread_mutex_unlock(&node->life);
	uint32_t round = ++m->entered;
	m->inside++;
	p3_mesh_wake(m);
	struct p3_wait_line *line = p3_nic_show_barrier(m->nic);
	int rc = barrier_wait(m, round, ended_out);
	p3_nic_left_barrier(line);
	m->inside--;
	pthread_cond_broadcast(&m->changed);
	pthread_mutex_unlock(&m->lock);
	return rc;
}
