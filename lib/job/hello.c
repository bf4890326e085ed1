/* SPDX-License-Identifier: BSD-3-Clause */
/* The first packets between a node and yod: HELLO and WELCOME. */
#include "lib/job/cards.h"
#include "lib/job/launched.h"
#include "lib/job/yod.h"
#include "shm/fault.h"
#include "shm/fd.h"
#include "shm/log.h"
#include "shm/seg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define P3_WELCOME_MS 30000 /* longest wait for WELCOME */

/* Return the inherited socket, or -1: the number may be a left-over that names another
 * file. */
static int inherited_socket(void)
{
	const char *text = getenv(P3_JOB_ENV);
	int type;
	socklen_t len = sizeof type;
	if (!text)
		return -1;
	int fd = atoi(text);
	if (fd <= 2 || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 ||
		type != SOCK_SEQPACKET)
		return -1;
	return fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? fd : -1;
}

int p3_job_find_yod(struct p3_node *node)
{
	if (node->harness || node->welcomed)
		return 0;
	int rc = p3_launched_is_asked();
	int sock = rc > 0 ? inherited_socket() : -1;
	rc = rc < 0 ? rc : 0;
	if (sock >= 0)
		rc = p3_launched_claim(sock);
	node->sock = rc ? -1 : sock;
	node->sock_file = p3_fd_file(node->sock);
	return rc;
}

/* Receive a packet within P3_WELCOME_MS.  Its first descriptor, or -1, is in *fd_out and
 * becomes the caller's. */
static int receive_next(int sock, struct p3_job_msg *m, int *fd_out)
{
	int fds[P3_JOB_FDS] = {-1};
	unsigned nfds;
	struct pollfd on = {.fd = sock, .events = POLLIN};
	int rc;
	do
		rc = poll(&on, 1, P3_WELCOME_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return rc < 0 ? -errno : -ETIMEDOUT;
	rc = p3_job_recv(sock, m, fds, &nfds);
	for (unsigned i = 1; !rc && i < nfds; i++)
		close(fds[i]);
	*fd_out = !rc && nfds ? fds[0] : -1;
	return rc;
}

/* Receive the WELCOME, skipping news that an earlier program left unread. */
static int receive_welcome(int sock, struct p3_job_msg *m, int *fd_out)
{
	int rc = receive_next(sock, m, fd_out);
	while (!rc && m->op != P3_JOB_WELCOME && m->op != P3_JOB_REFUSED) {
		if (*fd_out >= 0)
			close(*fd_out);
		rc = receive_next(sock, m, fd_out);
	}
	return rc;
}

/* Map the job's sleepers for as long as the node is there.  fd stays the caller's. */
static int map_sleepers(struct p3_node *node, uint32_t size, int fd)
{
	uint64_t len = p3_sleepers_len(size);
	void *base;
	int rc = p3_seg_map(fd, len, true, &base);
	if (rc)
		return rc;
	rc = p3_seg_reach(base, len);
	if (rc)
		p3_seg_unmap(base, len);
	else
		node->sleepers = base;
	return rc;
}

/*
 * Let yod's descendants, which the other nodes are, read this process' memory: Yama's
 * scope 1 allows that only to ancestors.
 */
static void let_nodes_read(int sock)
{
	char scope = 0;
	struct ucred yod;
	socklen_t len = sizeof yod;
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t n = read(fd, &scope, 1);
	close(fd);
	if (n == 1 && scope == '1' &&
		!getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &yod, &len))
		(void)prctl(PR_SET_PTRACER, (unsigned long)yod.pid, 0, 0, 0);
}

int p3_job_introduce(struct p3_node *node, bool *in_domain_out)
{
	struct p3_job_msg m = p3_job_message(node, P3_JOB_HELLO);
	int fd = -1, rc = p3_job_send_to_yod(node, &m, NULL, 0);
	FAULT_POINT("init.said_hello");
	if (!rc)
		rc = receive_welcome(node->sock, &m, &fd);
	if (!rc && m.op == P3_JOB_REFUSED) {
		p3_error("this library has layout %#llx, the launcher's %#llx; link and "
			 "launch with the same libportals",
			(unsigned long long)P3_LAYOUT_WORD, (unsigned long long)m.layout);
		rc = -EPROTO;
	}
	if (!rc && (m.op != P3_JOB_WELCOME || !m.size || m.size > P3_MAX_NODES ||
			   m.node >= m.size))
		rc = -EPROTO;
	bool on_hosts = m.status & P3_JOB_ON_HOSTS;
	node->size = m.size;
	if (!rc && on_hosts)
		rc = p3_cards_begin(node, fd);
	else if (!rc && fd >= 0)
		rc = map_sleepers(node, m.size, fd);
	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	node->rank = m.node;
	node->exchange = on_hosts ? p3_yod : NULL;
	node->nid = m.nid;
	node->jid = m.jid;
	node->uid = m.uid;
	node->cpus = m.cpus;
	*in_domain_out = m.status & P3_JOB_IN_DOMAIN;
	node->welcomed = true;
	let_nodes_read(node->sock);
	FAULT_POINT("init.welcomed");
	return 0;
}
