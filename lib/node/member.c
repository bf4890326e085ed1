/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the other nodes: births, ends, and what the NIC is told of them. */
#include "lib/node/node.h"
#include "shm/layout.h"
#include "shm/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the table ---- */

int p3_members_make(struct p3_node *node)
{
	p3_members_free(node);
	node->member = calloc(node->capacity, sizeof *node->member);
	if (!node->member) {
		p3_error("the network interface cannot start: no memory for a table of "
			 "%u nodes; check free memory, ulimit -v",
			node->capacity);
		return -ENOMEM;
	}
	p3_members_clear(node);
	return 0;
}

void p3_members_clear(struct p3_node *node)
{
	for (uint32_t i = 0; i < node->capacity; i++)
		node->member[i] =
			(struct p3_member){.life = (uint32_t)-1, .rank = P3_JOB_NO_RANK};
}

void p3_members_free(struct p3_node *node)
{
	free(node->member);
	node->member = NULL;
}

bool p3_members_wait(const struct p3_node *node)
{
	for (uint32_t i = 0; node->member && i < node->capacity; i++)
		if (node->member[i].missing || node->member[i].ending)
			return true;
	return false;
}

/* ---- packets ---- */

struct p3_job_msg p3_member_message(struct p3_node *node, enum p3_job_op op)
{
	struct p3_nic *nic = p3_nic(node);
	struct p3_job_msg m = {.magic = P3_JOB_MAGIC,
		.op = op,
		.node = node->index,
		.size = node->capacity,
		.nid = node->nid,
		.uid = node->uid,
		.jid = node->jid,
		.os_pid = (uint32_t)getpid(),
		.incarnation = node->incarnation,
		.layout = P3_LAYOUT_WORD,
		.seg_len = nic ? p3_nic_seg_len(nic) : 0};
	/* A closed interface keeps its pid: messages that it has sent, and held ones, may
	 * still come to nodes that join later. */
	for (int i = 0; i < P3_JOB_NIS; i++)
		m.pid[i] = nic ? p3_get(&node->ni[i].pid) : P3_JOB_NO_PID;
	m.rank = node->launched ? node->rank : P3_JOB_NO_RANK;
	return m;
}

struct p3_peer_info p3_member_info(
	const struct p3_node *node, const struct p3_job_msg *m, const int *fds)
{
	struct p3_peer_info info = {.node = m->node,
		.nid = m->nid,
		.uid = m->uid,
		.jid = m->jid,
		.os_pid = m->os_pid,
		.rank = m->jid == node->jid ? m->rank : P3_JOB_NO_RANK,
		.end = m->op == P3_JOB_DIED ? P3_PEER_DIED : P3_PEER_LEFT,
		.incarnation = m->incarnation,
		.seg_len = m->seg_len,
		.heap_len = fds && fds[2] >= 0 ? m->heap_len : 0,
		.published = fds ? fds[0] : -1,
		.doorbell = fds ? fds[1] : -1,
		.heap = fds ? fds[2] : -1};
	memcpy(info.pid, m->pid, sizeof info.pid);
	return info;
}

/* ---- births ---- */

int p3_member_attach_self(struct p3_node *node, struct p3_nic *nic)
{
	int fds[P3_JOB_FDS];
	struct p3_job_msg m = p3_member_message(node, P3_JOB_BORN);
	struct p3_peer_info info = p3_member_info(node, &m, NULL);
	(void)p3_nic_fds(nic, fds);
	info.published = fds[0];
	info.doorbell = fds[1];
	p3_directory_set(&node->directory, node->rank, m.nid, m.pid);
	return p3_nic_peer_up(nic, &info);
}

void p3_member_attach(
	struct p3_node *node, struct p3_nic *nic, struct p3_peer_info *info, bool lost)
{
	bool first = true;
	for (uint32_t i = 0; i < node->capacity; i++)
		first &= !node->member[i].missing;
	int rc = lost ? -EMFILE : p3_nic_peer_up(nic, info);
	if (rc == -ESTALE) /* the member is leaving */
		return;
	if (rc == -EEXIST) /* the member is attached: its ids may be new */
		p3_nic_peer_pids(nic, info);
	bool fails = rc && rc != -EEXIST, missing = fails && p3_job_passes(rc);
	node->member[info->node].missing = missing;
	if (fails)
		p3_nic_peer_expect(nic, info);
	if (fails && !missing) {
		p3_error("node %u (nid %u, process %u) cannot be attached: %s; "
			 "operations with it fail",
			info->node, info->nid, info->os_pid, strerror(-rc));
		info->end = P3_PEER_DIED;
		(void)p3_nic_peer_down(nic, info);
	}
	if (missing && first)
		p3_warn("node %u (process %u) cannot be attached: %s; messages to and "
			"from it wait until it can (open files: ulimit -n; memory, after "
			"mlockall: ulimit -l; mappings: vm.max_map_count)",
			info->node, info->os_pid, strerror(-rc));
}

/* ---- ends ---- */

void p3_member_end(struct p3_member *b, enum p3_peer_end how)
{
	b->how = b->ending ? b->how : how;
	b->ending = true;
	b->missing = b->apart = false; /* request no descriptors of it any more */
}

bool p3_member_remove(struct p3_node *node, struct p3_nic *nic, uint32_t slot, bool now)
{
	struct p3_member *b = &node->member[slot];
	struct p3_peer_info info = {
		.node = slot, .incarnation = b->incarnation, .end = b->how, .now = now};
	if (!b->ending || !p3_nic_peer_down(nic, &info))
		return false;
	b->incarnation = 0;
	b->ending = false;
	return true;
}
