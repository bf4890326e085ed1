/* SPDX-License-Identifier: BSD-3-Clause */
/* The looker's side of the service of yod (launcher/rdv/rdv.h): ask for the job, its
 * nodes and their segments. */
#include "launcher/clock.h"
#include "launcher/look/lookin.h"
#include "shm/layout.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int wait_for(int sock, int64_t until)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	for (;;) {
		int64_t ms = until - p3_now_ms();
		if (ms < 0)
			return -ETIMEDOUT;
		int n = poll(&p, 1, (int)ms);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

struct parcel {
	struct p3_attach_msg msg;
	int fds[P3_ATTACH_FDS];
	unsigned nfds;
};

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(P3_ATTACH_FDS * sizeof(int))];
};

static void take_fds(struct msghdr *hdr, struct parcel *p)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(hdr);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	p->nfds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(p->fds, CMSG_DATA(c), p->nfds * sizeof(int));
}

static void drop_fds(struct parcel *p)
{
	while (p->nfds)
		close(p->fds[--p->nfds]);
}

static int check(const struct parcel *p, ssize_t n)
{
	if (n == 0)
		return -EPIPE;
	if (n != sizeof p->msg || p->msg.magic != P3_ATTACH_MAGIC)
		return -EPROTO;
	return p->msg.op == P3_ATTACH_REFUSED ? -EPERM : 0;
}

static int receive(struct p3_look *look, int64_t until, struct parcel *p)
{
	union control control;
	struct iovec iov = {&p->msg, sizeof p->msg};
	struct msghdr hdr = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes};
	p->nfds = 0;
	int rc = wait_for(look->sock, until);
	if (rc)
		return rc;
	ssize_t n = recvmsg(look->sock, &hdr, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	take_fds(&hdr, p);
	rc = check(p, n);
	if (rc)
		drop_fds(p);
	return rc;
}

static int ask(const struct p3_look *look, enum p3_attach_op op, uint32_t node)
{
	struct p3_attach_msg m = {.magic = P3_ATTACH_MAGIC, .op = op, .node = node};
	if (send(look->sock, &m, sizeof m, MSG_NOSIGNAL) >= 0)
		return 0;
	/* yod may have sent its reason before it hung up: the caller reads that next. */
	return errno == EPIPE || errno == ECONNRESET ? 0
	       : errno == EAGAIN                     ? -ETIMEDOUT
						     : -errno;
}

static int map_node(struct p3_look *look, uint32_t i)
{
	struct p3_look_node *n = &look->node[i];
	struct parcel p;
	p3_look_unmap_stale(n);
	if (n->mapped || !n->msg.incarnation)
		return 0;
	int rc = ask(look, P3_ATTACH_SEGMENTS, i);
	if (!rc)
		rc = receive(look, p3_now_ms() + P3_LOOK_MS, &p);
	if (rc)
		return rc;
	rc = p3_look_map(n, p.fds, p.nfds, &p.msg);
	drop_fds(&p);
	return rc;
}

static int take_job(struct p3_look *look)
{
	struct parcel p;
	int rc = ask(look, P3_ATTACH_LOOK, 0);
	if (!rc)
		rc = receive(look, p3_now_ms() + P3_LOOK_MS, &p);
	if (rc)
		return rc;
	drop_fds(&p);
	if (p.msg.op != P3_ATTACH_JOB || !p.msg.size)
		return -EPROTO;
	if (look->node && look->job.size != p.msg.size)
		return -EPROTO;
	look->job = p.msg;
	if (!look->node)
		look->node = calloc(p.msg.size, sizeof look->node[0]);
	look->room = look->node ? p.msg.size : 0;
	return look->node ? 0 : -ENOMEM;
}

static int take_node(struct p3_look *look, uint32_t i)
{
	struct parcel p;
	int rc = receive(look, p3_now_ms() + P3_LOOK_MS, &p);
	if (rc)
		return rc;
	drop_fds(&p);
	if (p.msg.op != P3_ATTACH_NODE || p.msg.node != i)
		return -EPROTO;
	look->node[i].msg = p.msg;
	return 0;
}

int p3_look_ask_yod(struct p3_look *look)
{
	int rc = take_job(look);
	for (uint32_t i = 0; !rc && i < look->job.size; i++)
		rc = take_node(look, i);
	for (uint32_t i = 0; !rc && i < look->job.size; i++)
		rc = map_node(look, i);
	return rc;
}

/* Read the file of the hosts. */
static int read_hosts(struct p3_look *look, int fd)
{
	struct stat st;
	if (fstat(fd, &st) || st.st_size < 0 ||
		(uint64_t)st.st_size > P3_MAX_NODES * sizeof *look->host)
		return -EPROTO;
	size_t n = (size_t)st.st_size / sizeof *look->host, len = n * sizeof *look->host;
	look->host = malloc(len + 1);
	if (!look->host)
		return -ENOMEM;
	if (pread(fd, look->host, len, 0) != (ssize_t)len)
		return -EPROTO;
	for (size_t i = 0; i < n; i++)
		look->host[i].name[sizeof look->host[i].name - 1] = '\0';
	look->hosts = (uint32_t)n;
	return 0;
}

int p3_look_ask_hosts(struct p3_look *look)
{
	struct parcel p;
	int rc = ask(look, P3_ATTACH_HOSTS, 0);
	if (!rc)
		rc = receive(look, p3_now_ms() + P3_LOOK_MS, &p);
	if (rc)
		return rc;
	rc = p.msg.op != P3_ATTACH_HOSTS ? -EPROTO
	     : p.nfds                    ? read_hosts(look, p.fds[0])
					 : 0;
	drop_fds(&p);
	return rc;
}
