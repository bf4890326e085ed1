/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals and CCI enter and leave the job. */
#include "lib/users.h"
#include "lib/job/job.h"
#include "lib/node/conf.h"
#include "shm/fault.h"

#include <stdlib.h>

void (*p3_users_at_quick_exit)(void);

static void watch_quick_exit(const struct p3_node *node)
{
	static bool watched;
	if (node->modex && p3_users_at_quick_exit && !watched)
		watched = !at_quick_exit(p3_users_at_quick_exit);
}

int p3_users_enter(struct p3_node *node)
{
	if (node->users) {
		node->users++;
		return 0;
	}
	p3_conf_log();
	if (!node->harness)
		p3_conf_set_stdout();
	p3_conf_join_fences(); /* before p3_job_begin starts another thread */
	int rc = p3_job_begin(node);
	if (rc)
		return rc;
	watch_quick_exit(node);
	if (node->sock < 0 && !node->rank) /* yod warns for its nodes */
		p3_conf_warn_unknown();
	node->users = 1;
	return 0;
}

void p3_users_leave(struct p3_node *node)
{
	if (!--node->users)
		p3_job_end(node);
}

bool p3_users_need_nic(struct p3_node *node)
{
	return p3_get(&node->ni[0].open) || p3_get(&node->ni[1].open) || node->cci_uses;
}

void p3_users_stop_nic(struct p3_node *node)
{
	struct p3_nic *nic = p3_nic(node);
	FAULT_POINT("fini.begun");
	p3_job_leave(node);
	p3_node_show_nic(node, NULL);
	p3_node_set_nic(node, NULL);
	p3_nic_stop(nic);
	p3_job_exit(node);
}
