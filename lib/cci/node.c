/* SPDX-License-Identifier: BSD-3-Clause */
/* The node that CCI shares with Portals. */
#include "lib/cci/cci.h"
#include "lib/job/job.h"
#include "lib/init.h"
#include "lib/node/conf.h"
#include "shm/log.h"
#include "shm/park.h"

#include <errno.h>
#include <string.h>

static int status(int rc)
{
	return p3_job_passes(rc) || rc == -ENOSPC ? CCI_ENOMEM : CCI_ENODEV;
}

/* Start the NIC without an interface of Portals.  The caller holds node->life. */
static int start_nic(struct p3_node *node)
{
	struct p3_conf conf;
	struct p3_nic *nic;
	int rc = p3_conf_read(&conf);
	if (!rc)
		rc = p3_job_enter(node);
	if (rc)
		return rc;
	rc = p3_job_start_nic(node, &nic);
	if (rc) {
		p3_job_exit(node);
		return rc;
	}
	p3_node_set_nic(node, nic);
	rc = p3_job_join(node, nic);
	if (rc)
		p3_users_stop_nic(node);
	return rc;
}

/* Become a user of the job and of the NIC.  The caller holds node->call. */
static int enter(struct p3_node *node)
{
	int rc = p3_users_enter(node);
	if (rc) {
		if (rc != -EINVAL) /* which had a line of its own */
			p3_error("cci_create_endpoint: %s", strerror(-rc));
		return rc;
	}
	pthread_mutex_lock(&node->life);
	if (!p3_nic(node))
		rc = start_nic(node);
	node->cci_uses = !rc;
	pthread_mutex_unlock(&node->life);
	if (rc)
		p3_users_leave(node);
	return rc;
}

int p3_cci_node_use(struct p3_node *node, struct p3_nic **nic_out)
{
	int rc = 0;
	pthread_mutex_lock(&node->call);
	if (!node->cci_uses)
		rc = enter(node);
	*nic_out = p3_nic(node);
	pthread_mutex_unlock(&node->call);
	return rc ? status(rc) : CCI_SUCCESS;
}

void p3_cci_node_release(struct p3_node *node)
{
	if (!node->cci_uses)
		return;
	p3_ni_await_sends(p3_nic(node), p3_now_ns());
	pthread_mutex_lock(&node->life);
	node->cci_uses = false;
	if (!p3_users_need_nic(node))
		p3_users_stop_nic(node);
	pthread_mutex_unlock(&node->life);
	p3_users_leave(node);
}
