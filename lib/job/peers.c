/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets to yod; births and ends of other nodes as yod reports them; nodes that cannot
 * be mapped.
 */
#include "lib/job/launcher.h"
#include "shm/fault.h"
#include "shm/fd.h"
#include "shm/log.h"

#include <errno.h>
#include <string.h>

/* ---- the socket to yod, and the eventfd that wakes the life thread ---- */

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

int p3_job_send_op(
	struct p3_node *node, enum p3_job_op op, uint32_t who, uint64_t incarnation)
{
	struct p3_job_msg m = {
		.magic = P3_JOB_MAGIC, .op = op, .node = who, .incarnation = incarnation};
	return p3_job_send_to_yod(node, &m, NULL, 0);
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

/* ---- ids ---- */

void p3_job_set_ids(struct p3_node *node, const struct p3_job_msg *m)
{
	p3_directory_set(&node->directory, m->node, m->nid, m->pid);
}

void p3_job_take_ids(struct p3_node *node, const struct p3_job_msg *m)
{
	p3_job_set_ids(node, m);
	if (m->node == node->rank)
		memcpy(node->told_pid, m->pid, sizeof node->told_pid);
}

/* ---- ends, and nodes that cannot be mapped now ---- */

/* Note the incarnation of a node that could not be mapped; 0 if it is mapped or gone. */
static void peer_set_missing(struct p3_node *node, uint32_t who, uint64_t incarnation)
{
	struct p3_job_peer *p = &node->peer[who];
	node->nmissing += incarnation && !p->missing;
	node->nmissing -= !incarnation && p->missing;
	p->missing = incarnation;
}

static void peer_set_late(
	struct p3_node *node, uint32_t who, uint32_t op, uint64_t incarnation)
{
	struct p3_job_peer *p = &node->peer[who];
	node->nlate += op && !p->late_op;
	node->nlate -= !op && p->late_op;
	p->late_op = op;
	p->late = incarnation;
}

void p3_job_on_end(struct p3_node *node, struct p3_nic *nic, const struct p3_job_msg *m,
	struct p3_peer_info *info)
{
	struct p3_job_peer *p = &node->peer[m->node];
	/* Request no descriptors any more of the incarnation that has ended. */
	if (p->missing == m->incarnation)
		peer_set_missing(node, m->node, 0);
	if (p->apart == m->incarnation)
		p->apart = 0;
	if (nic && !p3_nic_peer_down(nic, info)) {
		peer_set_late(node, m->node, m->op, m->incarnation);
		return;
	}
	FAULT_POINT("peer.undropped");
	if (m->op == P3_JOB_DIED)
		(void)p3_job_send_op(node, P3_JOB_DROPPED, m->node, m->incarnation);
}

/* Drop a node that has ended if all its messages are taken; if now is true, drop it and
 * the messages that are left. */
static void peer_end_late(
	struct p3_node *node, struct p3_nic *nic, uint32_t who, bool now)
{
	uint32_t op = node->peer[who].late_op;
	struct p3_peer_info info = {.node = who,
		.incarnation = node->peer[who].late,
		.end = op == P3_JOB_DIED ? P3_PEER_DIED : P3_PEER_LEFT,
		.now = now};
	if (!op || (nic && !p3_nic_peer_down(nic, &info)))
		return;
	peer_set_late(node, who, 0, 0);
	if (op == P3_JOB_DIED)
		(void)p3_job_send_op(node, P3_JOB_DROPPED, who, info.incarnation);
}

void p3_job_end_late(struct p3_node *node)
{
	for (uint32_t i = 0; node->nlate && i < node->size; i++)
		peer_end_late(node, p3_nic(node), i, false);
}

void p3_job_forget_peers(struct p3_node *node)
{
	memset(node->peer, 0, node->size * sizeof *node->peer);
	node->nmissing = node->nlate = 0;
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		p3_set(&node->wanted[i], 0);
}

void p3_job_ask_again(struct p3_node *node)
{
	for (uint32_t i = 0; i < node->size; i++)
		if (node->peer[i].missing)
			(void)p3_job_send_op(
				node, P3_JOB_AGAIN, i, node->peer[i].missing);
}

/* ---- nodes that this one has exchanged no messages with ---- */

bool p3_job_wants_any(struct p3_node *node)
{
	uint64_t any = 0;
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++)
		any |= p3_get(&node->wanted[i]);
	return any;
}

void p3_job_meet_wanted(struct p3_node *node)
{
	for (uint32_t i = 0; i < P3_MAX_NODES / 64; i++) {
		if (!p3_get(&node->wanted[i]))
			continue;
		uint64_t bits = p3_exchange64(&node->wanted[i], 0); /* ASK.1 */
		for (; bits; bits &= bits - 1) {
			uint32_t who = i * 64 + (uint32_t)__builtin_ctzll(bits);
			if (who >= node->size || !node->peer[who].apart)
				continue; /* it has left meanwhile */
			FAULT_POINT("apart.unsaid");
			if (p3_job_passes(p3_job_send_op(
				    node, P3_JOB_AGAIN, who, node->peer[who].apart)))
				p3_or64(&node->wanted[i], bits & -bits);
		}
	}
}

/* ---- births ---- */

void p3_job_on_birth(struct p3_node *node, struct p3_nic *nic, const struct p3_job_msg *m,
	struct p3_peer_info *info, int rc)
{
	struct p3_job_peer *p = &node->peer[m->node];
	p3_job_take_ids(node, m);
	if (!nic)
		return;
	if (p->late != m->incarnation)
		peer_end_late(node, nic, m->node, true);
	if (!rc && info->published < 0) {
		/* Yod keeps its descriptors until one of the two asks for the other. */
		p->apart = info->incarnation;
		info->apart = true;
		p3_nic_peer_expect(nic, info);
		return;
	}
	p->apart = 0;
	rc = info->published < 0 ? -EMFILE : p3_nic_peer_up(nic, info);
	if (rc == -EEXIST) /* the node is mapped: its ids may be new */
		p3_nic_peer_pids(nic, info);
	if (!rc || rc == -EEXIST) {
		peer_set_missing(node, m->node, 0);
	} else if (p3_mesh_peer_may_come(nic, info, rc)) {
		if (!node->nmissing)
			p3_warn("node %u cannot be attached: %s; messages to and from it "
				"wait until it can (open files: ulimit -n; memory, after "
				"mlockall: ulimit -l; mappings: vm.max_map_count)",
				info->node, strerror(-rc));
		peer_set_missing(node, m->node, info->incarnation);
	}
}

void p3_job_lose_peers(struct p3_node *node, struct p3_nic *nic)
{
	for (uint32_t i = 0; i < node->capacity; i++) {
		struct p3_peer_info info = {
			.node = i, .end = P3_PEER_DIED, .now = true, .any = true};
		if (i != node->index)
			(void)p3_nic_peer_down(nic, &info);
	}
	p3_nic_peer_told(nic, p3_get(&node->question), NULL);
	p3_job_forget_peers(node);
}
