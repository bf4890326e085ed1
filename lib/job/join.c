/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining and leaving the job: PtlNIInit, PtlNIFini, and the node's process ids. */
#include "lib/domain/meet.h"
#include "lib/domain/wireup.h"
#include "lib/job/yod.h"
#include "lib/node/conf.h"
#include "shm/fault.h"
#include "shm/log.h"

#include <string.h>
#include <unistd.h>

#define FAMILY_ROOM 64 /* least capacity of the domain of a family of jobs */

/* Enter this node's ids in the directory before yod reports them, so that its entry is
 * right when PtlNIInit returns. */
static void know_self(struct p3_node *node, struct p3_job_msg m)
{
	m.nid = node->nid;
	p3_job_set_ids(node, &m);
}

/* Join a job of one: the node is its own only peer. */
static int join_alone(struct p3_node *node, struct p3_nic *nic)
{
	struct p3_job_msg m = p3_job_message(node, P3_JOB_BORN);
	int fds[P3_JOB_FDS];
	(void)p3_nic_fds(nic, fds);
	m.nid = node->nid;
	m.uid = node->uid;
	m.jid = node->jid;
	m.os_pid = (uint32_t)getpid();
	m.seg_len = p3_nic_seg_len(nic);
	p3_job_set_ids(node, &m);
	struct p3_peer_info info = p3_job_peer_info(&m, fds);
	int rc = p3_nic_peer_up(nic, &info);
	if (rc)
		p3_error("the network interface cannot map its own memory: %s",
			strerror(-rc));
	return rc;
}

/* Return the capacity of the domain that a launched job needs: room for itself, and if it
 * may spawn jobs, for these, too. */
static uint32_t wished_capacity(const struct p3_node *node, const struct p3_conf *conf)
{
	uint32_t most =
		3 * node->size / 2 > FAMILY_ROOM ? 3 * node->size / 2 : FAMILY_ROOM;
	if (p3_conf_text(P3_CONF_DOMAIN_NODES))
		most = conf->domain_nodes;
	if (most < node->size || !node->job)
		most = node->size;
	return most < P3_MAX_NODES ? most : P3_MAX_NODES;
}

int p3_job_enter(struct p3_node *node)
{
	node->index = node->rank;
	node->capacity = node->size;
	if (!node->domain[0])
		return 0;
	struct p3_conf conf;
	int rc = p3_conf_read(&conf);
	if (rc)
		return rc;
	node->capacity =
		node->launched ? wished_capacity(node, &conf) : conf.domain_nodes;
	if (node->wireup && !node->launched)
		node->capacity = node->size; /* the domain is this job's alone */
	rc = p3_meet_enter(node);
	if (!rc && node->wireup)
		rc = p3_wireup_enter(node);
	if (rc && node->meeting)
		p3_meet_exit(node);
	return rc;
}

void p3_job_exit(struct p3_node *node)
{
	p3_meet_exit(node);
}

int p3_job_join(struct p3_node *node, struct p3_nic *nic)
{
	int met = node->meeting ? p3_meet_join(node, nic) : 0;
	if (met || (node->meeting && node->sock < 0))
		return met;
	if (node->sock < 0)
		return join_alone(node, nic);
	struct p3_job_msg m = p3_job_message(node, P3_JOB_JOIN);
	int fds[P3_JOB_FDS];
	unsigned nfds = p3_nic_fds(nic, fds);
	m.seg_len = p3_nic_seg_len(nic);
	m.heap_len = p3_nic_heap_len(nic);
	node->joined = false;
	know_self(node, m);
	FAULT_POINT("init.unjoined");
	int rc = p3_job_send_to_yod(node, &m, fds, nfds);
	FAULT_POINT("init.handed_over");
	if (rc)
		p3_error("the network interface cannot join the job: %s", strerror(-rc));
	while (!rc && !node->joined)
		pthread_cond_wait(&node->changed, &node->life);
	return rc;
}

static bool yod_has_told(const struct p3_node *node, const struct p3_job_msg *m)
{
	for (int i = 0; i < P3_JOB_NIS; i++)
		if (m->pid[i] != P3_JOB_NO_PID && m->pid[i] != node->told_pid[i])
			return false;
	return true;
}

/* Tell yod the new pids.  Wait until a packet of yod to this node has them: packets to
 * other nodes then have them, too.  In a domain do not wait: members tell each other. */
static void tell_pids(struct p3_node *node, const struct p3_job_msg *m)
{
	memset(node->told_pid, 0xff, sizeof node->told_pid);
	FAULT_POINT("pids.unsaid");
	int rc = p3_job_send_to_yod(node, m, NULL, 0);
	FAULT_POINT("pids.said");
	while (!rc && !node->domain[0] && !node->yod_gone && !yod_has_told(node, m))
		pthread_cond_wait(&node->changed, &node->life);
}

void p3_job_pids(struct p3_node *node)
{
	struct p3_job_msg m = p3_job_message(node, P3_JOB_PIDS);
	know_self(node, m);
	if (node->meeting)
		p3_meet_pids(node);
	if (node->sock >= 0)
		tell_pids(node, &m);
	if (node->sock >= 0 || node->meeting)
		return;
	m.nid = node->nid;
	int none[3] = {-1, -1, -1};
	struct p3_peer_info info = p3_job_peer_info(&m, none);
	p3_nic_peer_pids(p3_nic(node), &info);
}

void p3_job_leave(struct p3_node *node)
{
	struct p3_job_msg m = p3_job_message(node, P3_JOB_LEAVE);
	if (node->meeting)
		p3_meet_part(node);
	if (node->sock >= 0 && node->joined && p3_job_send_to_yod(node, &m, NULL, 0) == 0)
		node->leaving = true;
	FAULT_POINT("fini.left");
	node->joined = false;
	if (node->sock >= 0)
		p3_job_forget_peers(node);
}
