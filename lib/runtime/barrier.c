/* SPDX-License-Identifier: BSD-3-Clause */
/* PtlXBarrier: the barrier of yod, and that of a job that another launcher started. */
#include "lib/domain/mesh.h"
#include "lib/job/job.h"
#include "lib/node/call.h"
#include "portals3x.h"
#include "shm/fault.h"
#include "shm/log.h"

#include <errno.h>

/* Name once the rank for which a barrier has failed. */
static void say_ended(struct p3_node *node, uint32_t rank)
{
	static p3_a32 said;
	if (rank < node->size && !p3_exchange32(&said, 1))
		p3_warn("PtlXBarrier: rank %u has ended, so this barrier and all that "
			"follow fail; see that all ranks call PtlXBarrier equally often "
			"before they end",
			rank);
}

static int barrier_of_domain(struct p3_node *node)
{
	struct p3_caller caller = p3_caller_save();
	struct p3_nic *nic = p3_nic(node);
	if (nic)
		(void)p3_nic_settle(nic, P3_SETTLE_NS, NULL);
	uint32_t ended = P3_JOB_NO_RANK;
	int rc = node->size > 1 ? p3_mesh_barrier(node, &ended) : 0;
	say_ended(node, ended);
	p3_caller_restore(caller);
	return rc ? PTL_FAIL : PTL_OK;
}

/*
 * Wait until yod releases the barrier.  The caller holds the lock node->life.  If another
 * thread calls PtlFini, fail.  Yod then still counts this process as one that has come to
 * the barrier, so the process's next PtlXBarrier waits for the same release.
 */
static int await_release(struct p3_node *node)
{
	uint32_t life = node->fini_calls, before = node->barriers_taken;
	while (node->barriers_done == before && node->fini_calls == life)
		pthread_cond_wait(&node->changed, &node->life);
	if (node->barriers_done == before)
		return -EPIPE;
	if (node->barriers_taken == before) { /* this caller is the first */
		node->barriers_taken = node->barriers_done;
		node->in_barrier = false;
	}
	return node->barrier_status;
}

/* Send BARRIER to yod, unless an earlier one has no release yet.  The caller holds the
 * lock node->life. */
static int come_to_barrier(struct p3_node *node)
{
	struct p3_job_msg m = {
		.magic = P3_JOB_MAGIC, .op = P3_JOB_BARRIER, .node = node->rank};
	if (node->in_barrier)
		return 0;
	node->barriers_taken = node->barriers_done;
	int rc = p3_job_send_to_yod(node, &m, NULL, 0);
	FAULT_POINT("barrier.entered");
	node->in_barrier = !rc;
	return rc;
}

static int barrier_of_yod(struct p3_node *node)
{
	uint32_t ended = P3_JOB_NO_RANK;
	int rc = PTL_NO_INIT; /* another thread may have called PtlFini */
	struct p3_caller caller = p3_caller_save();
	struct p3_nic *nic = p3_nic(node);
	if (nic)
		(void)p3_nic_settle(nic, P3_SETTLE_NS, NULL);
	pthread_mutex_lock(&node->life);
	if (p3_is_up(node))
		rc = come_to_barrier(node) || await_release(node) ? PTL_FAIL : PTL_OK;
	if (rc == PTL_FAIL && node->barrier_status)
		ended = node->barrier_ended;
	pthread_mutex_unlock(&node->life);
	say_ended(node, ended);
	p3_caller_restore(caller);
	return rc;
}

int PtlXBarrier(void)
{
	struct p3_node *node = p3_node();
	if (!p3_is_up(node))
		return PTL_NO_INIT;
	if (p3_is_busy())
		return PTL_FAIL;
	struct p3_nic *nic = p3_nic(node);
	if (nic)
		p3_nic_attend(nic);
	if (node->sock >= 0)
		return barrier_of_yod(node);
	return node->launched ? barrier_of_domain(node) : PTL_OK;
}
