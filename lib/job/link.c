/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket to yod, and the eventfd that wakes the life thread. */
#include "lib/job/yod.h"
#include "shm/fd.h"

#include <errno.h>

bool p3_job_has_lifeline(const struct p3_node *node)
{
	return p3_fd_is(node->sock, node->sock_file);
}

bool p3_job_has_wake(const struct p3_node *node)
{
	return p3_fd_is(node->wake_fd, node->wake_file);
}

int p3_job_send_to_yod(
	struct p3_node *node, const struct p3_job_msg *m, const int *fds, unsigned nfds)
{
	return p3_job_has_lifeline(node) ? p3_job_send(node->sock, m, fds, nfds) : -EPIPE;
}

void p3_job_wake(struct p3_node *node)
{
	if (p3_job_has_lifeline(node) && p3_job_has_wake(node))
		p3_fd_signal(node->wake_fd);
}

struct p3_job_msg p3_job_message(struct p3_node *node, enum p3_job_op op)
{
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = op,
		.node = node->rank,
		.incarnation = node->incarnation,
		.layout = P3_LAYOUT_WORD};
	/* A closed interface keeps its pid: messages that it has sent, and held ones, may
	 * still come to nodes that join later. */
	for (int i = 0; i < P3_JOB_NIS; i++)
		m.pid[i] = p3_nic(node) ? p3_get(&node->ni[i].pid) : P3_JOB_NO_PID;
	return m;
}
