/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets between node and launcher: sending, receiving, checking. */
#include "shm/job.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Room for one descriptor too many, so that too many are noticed. */
#define FDS_LEN  (P3_JOB_FDS * sizeof(int))
#define FDS_ROOM (FDS_LEN + sizeof(int))

union send_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FDS_LEN)];
};

union recv_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FDS_ROOM) + CMSG_SPACE(sizeof(struct ucred))];
};

int p3_packet_send(
	int sock, int flags, const void *bytes, size_t len, const int *fds, unsigned nfds)
{
	if (nfds > P3_JOB_FDS)
		return -EINVAL;

	union send_control control;
	struct iovec iov = {(void *)(uintptr_t)bytes, len};
	struct msghdr hdr = {.msg_iov = &iov, .msg_iovlen = 1};
	if (nfds) {
		memset(&control, 0, sizeof control);
		hdr.msg_control = control.bytes;
		hdr.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&hdr);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}

	ssize_t n;
	do
		n = sendmsg(sock, &hdr, MSG_NOSIGNAL | flags);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	/* a reset is the end of file of a peer that left packets unread */
	return errno == ECONNRESET || errno == ECONNREFUSED || errno == ENOTCONN ? -EPIPE
										 : -errno;
}

int p3_job_send(int sock, const struct p3_job_msg *msg, const int *fds, unsigned nfds)
{
	return p3_packet_send(sock, 0, msg, sizeof *msg, fds, nfds);
}

/* Take descriptors and sender.  Return false if there are too many descriptors. */
static bool job_take_control(struct msghdr *hdr, struct p3_job_packet *p)
{
	bool fit = true;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(hdr); c; c = CMSG_NXTHDR(hdr, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (p->nfds == P3_JOB_FDS) {
				fit = false;
				close(fd);
			} else {
				p->fds[p->nfds++] = fd;
			}
		}
		if (c->cmsg_type == SCM_CREDENTIALS &&
			c->cmsg_len >= CMSG_LEN(sizeof(struct ucred))) {
			struct ucred cred;
			memcpy(&cred, CMSG_DATA(c), sizeof cred);
			p->from.os_pid = (uint32_t)cred.pid;
			p->from.uid = cred.uid;
		}
	}
	return fit;
}

ssize_t p3_packet_recv(
	int sock, int flags, void *bytes, size_t len, struct p3_job_packet *p)
{
	union recv_control control;
	struct iovec iov = {bytes, len};
	struct msghdr hdr = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes};
	*p = (struct p3_job_packet){.fds = {-1, -1, -1, -1}, .from = {0, UINT32_MAX}};

	/* The kernel reports a reset once and then hands out the packets that were sent
	 * before it, perhaps the peer's LEAVE; so a reset is no cause to stop reading. */
	ssize_t n;
	do
		n = recvmsg(sock, &hdr, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	if (!job_take_control(&hdr, p) || (hdr.msg_flags & MSG_TRUNC))
		p->lacks = -EPROTO;
	else if (hdr.msg_flags & MSG_CTRUNC)
		p->lacks = p->nfds < P3_JOB_FDS ? -EMFILE : -EPROTO;
	return n;
}

/* Judge a received packet of n bytes.  Return 0 or -errno (shm/job.h). */
static int job_judge(ssize_t n, const struct p3_job_packet *p)
{
	uint32_t magic = p->msg.magic;
	if (n < 0)
		return (int)n;
	if (n == 0)
		return -EPIPE;
	if ((size_t)n >= sizeof magic && magic != P3_JOB_MAGIC &&
		magic - p3_job_version(magic) ==
			P3_JOB_MAGIC - p3_job_version(P3_JOB_MAGIC))
		return -EPROTONOSUPPORT;
	return n != sizeof p->msg || magic != P3_JOB_MAGIC ? -EPROTO : p->lacks;
}

int p3_job_recv(int sock, int flags, struct p3_job_packet *p)
{
	int rc = job_judge(p3_packet_recv(sock, flags, &p->msg, sizeof p->msg, p), p);
	if (rc)
		p3_job_close(p);
	return rc;
}

void p3_job_close(struct p3_job_packet *p)
{
	while (p->nfds) {
		close(p->fds[--p->nfds]);
		p->fds[p->nfds] = -1;
	}
}

bool p3_job_passes(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOSPC ||
	       rc == -EAGAIN || rc == -ENOBUFS || rc == -ETOOMANYREFS;
}
