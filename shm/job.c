/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets between node and launcher: sending, receiving, checking. */
#include "shm/job.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS_LEN (P3_JOB_FDS * sizeof(int))

/* Room for one descriptor too many, so that too many are noticed. */
#define FDS_ROOM (FDS_LEN + sizeof(int))

union send_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FDS_LEN)];
};

union recv_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FDS_ROOM) + CMSG_SPACE(sizeof(struct ucred))];
};

static void job_put_fds(
	struct msghdr *hdr, union send_control *control, const int *fds, unsigned nfds)
{
	memset(control, 0, sizeof *control);
	hdr->msg_control = control->bytes;
	hdr->msg_controllen = CMSG_SPACE(nfds * sizeof(int));

	struct cmsghdr *c = CMSG_FIRSTHDR(hdr);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
	memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
}

int p3_job_send(int sock, const struct p3_job_msg *msg, const int *fds, unsigned nfds)
{
	if (nfds > P3_JOB_FDS)
		return -EINVAL;

	union send_control control;
	struct iovec iov = {(void *)(uintptr_t)msg, sizeof *msg};
	struct msghdr hdr = {.msg_iov = &iov, .msg_iovlen = 1};
	if (nfds)
		job_put_fds(&hdr, &control, fds, nfds);

	ssize_t n;
	do
		n = sendmsg(sock, &hdr, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	/* a reset is the end of file of a peer that left packets unread */
	return errno == ECONNRESET || errno == ECONNREFUSED || errno == ENOTCONN ? -EPIPE
										 : -errno;
}

struct job_arrival {
	int fds[P3_JOB_FDS];
	unsigned nfds;
	bool too_many;
};

static void job_take_control(
	struct msghdr *hdr, struct job_arrival *a, struct p3_job_from *from)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(hdr); c; c = CMSG_NXTHDR(hdr, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
			if (a->nfds == P3_JOB_FDS) {
				a->too_many = true;
				close(fd);
			} else {
				a->fds[a->nfds++] = fd;
			}
		}
		if (c->cmsg_type == SCM_CREDENTIALS &&
			c->cmsg_len >= CMSG_LEN(sizeof(struct ucred))) {
			struct ucred cred;
			memcpy(&cred, CMSG_DATA(c), sizeof cred);
			from->os_pid = (uint32_t)cred.pid;
			from->uid = cred.uid;
		}
	}
}

/* Judge a received packet of n bytes.  Return 0 or -errno (shm/job.h). */
static int job_judge(
	ssize_t n, const struct p3_job_msg *msg, const struct job_arrival *a, int flags)
{
	if (n == 0)
		return -EPIPE;
	if ((size_t)n >= sizeof msg->magic && msg->magic != P3_JOB_MAGIC &&
		msg->magic - p3_job_version(msg->magic) ==
			P3_JOB_MAGIC - p3_job_version(P3_JOB_MAGIC))
		return -EPROTONOSUPPORT;
	if (n != sizeof *msg || msg->magic != P3_JOB_MAGIC || a->too_many ||
		(flags & MSG_TRUNC))
		return -EPROTO;
	if (flags & MSG_CTRUNC)
		return a->nfds < P3_JOB_FDS ? -EMFILE : -EPROTO;
	return 0;
}

static int job_receive(int sock, int flags, struct p3_job_msg *msg_out, int *fds_out,
	unsigned *nfds_out, struct p3_job_from *from_out)
{
	struct p3_job_msg msg = {.magic = 0};
	union recv_control control;
	struct iovec iov = {&msg, sizeof msg};
	struct msghdr hdr = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes};
	struct job_arrival a = {.nfds = 0};
	struct p3_job_from from = {0, UINT32_MAX};

	/* The kernel reports a reset once and then hands out the packets that were sent
	 * before it, perhaps the peer's LEAVE; so a reset is no cause to stop reading. */
	ssize_t n;
	do
		n = recvmsg(sock, &hdr, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	job_take_control(&hdr, &a, &from);

	int rc = job_judge(n, &msg, &a, hdr.msg_flags);
	while (rc && a.nfds)
		close(a.fds[--a.nfds]);
	if (rc && rc != -EMFILE && rc != -EPROTONOSUPPORT)
		return rc;
	*msg_out = msg;
	memcpy(fds_out, a.fds, a.nfds * sizeof(int));
	*nfds_out = a.nfds;
	*from_out = from;
	return rc;
}

bool p3_job_passes(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOSPC ||
	       rc == -EAGAIN || rc == -ENOBUFS || rc == -ETOOMANYREFS;
}

int p3_job_recv_from(int sock, struct p3_job_msg *msg_out, int *fds_out,
	unsigned *nfds_out, struct p3_job_from *from_out)
{
	return job_receive(sock, 0, msg_out, fds_out, nfds_out, from_out);
}

int p3_job_recv(int sock, struct p3_job_msg *msg_out, int *fds_out, unsigned *nfds_out)
{
	struct p3_job_from from;
	return job_receive(sock, 0, msg_out, fds_out, nfds_out, &from);
}

int p3_job_recv_now(
	int sock, struct p3_job_msg *msg_out, int *fds_out, unsigned *nfds_out)
{
	struct p3_job_from from;
	return job_receive(sock, MSG_DONTWAIT, msg_out, fds_out, nfds_out, &from);
}
