/* SPDX-License-Identifier: BSD-3-Clause */
/* A look at a job of yod: the sockets of jobs, the segments of nodes, questions to
 * yod. */
#include "launcher/look/lookin.h"
#include "launcher/loop.h"
#include "shm/process.h"
#include "shm/seg.h"
#include "shm/layout.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PAGE          ((uint64_t)4096)
#define WHOLE_PAGE(n) (((n) + PAGE - 1) / PAGE * PAGE)

static bool look_is_sealed(int fd)
{
	int want = F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & want) == want;
}

static int look_map_one(int fd, struct p3_look_map *map_out)
{
	struct stat st;
	if (fstat(fd, &st) || !st.st_size || !look_is_sealed(fd))
		return -EPROTO;
	uint64_t len = (uint64_t)st.st_size;
	void *base = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	*map_out = (struct p3_look_map){.base = base, .len = len};
	return 0;
}

void p3_look_unmap(struct p3_look_node *n)
{
	for (unsigned k = 0; k < P3_ATTACH_FDS; k++) {
		if (n->seg[k].base)
			munmap((void *)(uintptr_t)n->seg[k].base, n->seg[k].len);
		n->seg[k] = (struct p3_look_map){.base = NULL};
	}
	n->mapped = 0;
	n->remains = false;
}

int p3_look_map(struct p3_look_node *n, const int fds[P3_ATTACH_FDS], unsigned nfds,
	const struct p3_attach_msg *msg)
{
	int rc = 0;
	for (unsigned k = 0; k < nfds && !rc; k++)
		rc = look_map_one(fds[k], &n->seg[k]);
	if (rc)
		p3_look_unmap(n);
	else if (nfds) /* else the node is gone, or yod could send none now */
		n->mapped = msg->incarnation;
	n->remains = n->mapped && msg->remains;
	return rc;
}

/* Unmap a node's segments if they are those of an earlier incarnation: the mapping
 * would keep the kernel from freeing them. */
void p3_look_unmap_stale(struct p3_look_node *n)
{
	if (n->mapped &&
		(n->mapped != n->msg.incarnation || n->remains != n->msg.remains))
		p3_look_unmap(n);
}

/* Return bytes of a mapping, after a look that there is memory behind them, or NULL. */
static const void *look_bytes(void *arg, uint64_t off, uint64_t len)
{
	struct p3_look_map *m = arg;
	uint64_t from = off / PAGE * PAGE, to = WHOLE_PAGE(off + len);
	if (!m->base || off > m->len || len > m->len - off)
		return NULL;
	if (off + len <= m->reached)
		return m->base + off;
	while (madvise((void *)(uintptr_t)(m->base + from), to - from,
		       MADV_POPULATE_READ) != 0)
		if (errno == EINVAL) /* the kernel is older than Linux 5.14 */
			break;
		else if (errno != EINTR)
			return NULL;
	if (from <= m->reached)
		m->reached = to;
	return m->base + off;
}

const void *p3_look_bytes(const struct p3_look *look, uint32_t i, enum p3_look_seg which,
	uint64_t off, uint64_t len)
{
	return look_bytes(&look->node[i].seg[which], off, len);
}

struct p3_trace_taken *p3_look_trace(int published)
{
	struct p3_look_map m = {.base = NULL};
	int rc = p3_trace_nodes(published) ? look_map_one(published, &m) : -EPROTO;
	struct p3_trace_taken *t = rc ? NULL : p3_trace_find(look_bytes, &m);
	rc = rc ? rc : -errno;
	if (m.base)
		munmap((void *)(uintptr_t)m.base, m.len);
	errno = -rc;
	return t;
}

struct p3_trace_taken *p3_look_node_trace(const struct p3_look *look, uint32_t i)
{
	return p3_trace_find(look_bytes, &look->node[i].seg[P3_LOOK_PUBLISHED]);
}

void p3_look_close(struct p3_look *look)
{
	for (uint32_t i = 0; i < look->room; i++)
		p3_look_unmap(&look->node[i]);
	free(look->node);
	free(look->host);
	p3_close(look->sock);
	p3_domain_forget(&look->domain);
	free(look);
}

/* ---- the jobs of this machine ---- */

#define LISTENS 0x10000 /* flags of /proc/net/unix: __SO_ACCEPTCON */
#define PARENTS 64      /* ancestors of a pid that are tried */

struct name {
	uint32_t uid, jid;
	char text[60]; /* the abstract address without its zero byte in front */
};

/* The beginnings of names. */
#define OF_JOBS  "portals3/"
#define OF_HOSTS "portals3-hosts/" /* of a yod whose job has several hosts */

/* Parse a line of /proc/net/unix.  Return true if it is the socket of a listening yod. */
static bool look_parse_line(const char *line, const char *service, struct name *name_out)
{
	unsigned flags;
	int at = 0;
	if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s @%n", &flags, &at) != 1 || !at)
		return false;
	if (!(flags & LISTENS) || sscanf(line + at, "%59s", name_out->text) != 1)
		return false;
	size_t len = strlen(service);
	return strncmp(name_out->text, service, len) == 0 &&
	       sscanf(name_out->text + len, "%u/%u", &name_out->uid, &name_out->jid) == 2;
}

static bool look_is_ours(const struct name *name)
{
	return name->uid == getuid() || getuid() == 0;
}

struct names {
	struct name *v;
	size_t n, room;
};

static void look_names_add(struct names *names, const struct name *name)
{
	if (names->n == names->room) {
		size_t room = names->room ? 2 * names->room : 16;
		struct name *v = realloc(names->v, room * sizeof *v);
		if (!v)
			return;
		names->v = v;
		names->room = room;
	}
	names->v[names->n++] = *name;
}

static int look_by_number(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	if (x->jid != y->jid)
		return x->jid < y->jid ? -1 : 1;
	return strcmp(x->text, y->text);
}

static struct names look_names_read(const char *service)
{
	struct names names = {NULL, 0, 0};
	struct name name;
	char line[400];
	FILE *f = fopen("/proc/net/unix", "re");
	while (f && fgets(line, sizeof line, f))
		if (look_parse_line(line, service, &name))
			look_names_add(&names, &name);
	if (f)
		fclose(f);
	if (names.n)
		qsort(names.v, names.n, sizeof names.v[0], look_by_number);
	return names;
}

void p3_look_jobs(void (*found)(void *arg, uint32_t uid, uint32_t jid), void *arg)
{
	struct names names = look_names_read(OF_JOBS);
	for (size_t k = 0; k < names.n; k++)
		if (look_is_ours(&names.v[k]))
			found(arg, names.v[k].uid, names.v[k].jid);
	free(names.v);
}

static socklen_t look_address(const struct name *name, struct sockaddr_un *at)
{
	size_t len = strlen(name->text);
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(at->sun_path + 1, name->text, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

/* Return true if the kernel says that the socket belongs to the user in its name, and not
 * to another user who took the name. */
static bool look_is_genuine(int sock, const struct name *name)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       cred.uid == name->uid;
}

/* Connect without blocking: a stopped yod may have a full backlog. */
static int look_connect_name(const struct name *name, int type)
{
	struct sockaddr_un at;
	socklen_t len = look_address(name, &at);
	int sock = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	int rc = 0;
	if (connect(sock, (struct sockaddr *)&at, len))
		rc = errno == ECONNREFUSED ? -ESRCH
		     : errno == EAGAIN     ? -ETIMEDOUT
					   : -errno;
	else if (!look_is_genuine(sock, name))
		rc = -ESRCH;
	if (!rc)
		return sock;
	close(sock);
	return rc;
}

static int look_connect_any(const struct names *names, uint32_t jid, int type)
{
	int rc = -ESRCH;
	for (size_t k = 0; k < names->n && rc < 0; k++)
		if (names->v[k].jid == jid) {
			int got = look_is_ours(&names->v[k])
					  ? look_connect_name(&names->v[k], type)
					  : -EPERM;
			if (got >= 0 || got != -ESRCH)
				rc = got;
		}
	return rc;
}

uint32_t p3_look_parent(uint32_t pid)
{
	struct p3_stat stat;
	return p3_stat_read(pid, 0, &stat) ? stat.parent : 0;
}

/* Connect to the yod of a process's job.  The number of a job is the pid of its topmost
 * process, so try the process and its ancestors. */
static int look_connect_to(uint32_t pid, const char *service, int type)
{
	struct names names = look_names_read(service);
	int rc = -ESRCH;
	for (int k = 0; k < PARENTS && pid && rc == -ESRCH; k++) {
		rc = look_connect_any(&names, pid, type);
		pid = p3_look_parent(pid);
	}
	free(names.v);
	return rc;
}

int p3_look_connect(uint32_t pid)
{
	return look_connect_to(pid, OF_JOBS, SOCK_SEQPACKET);
}

int p3_look_connect_hosts(uint32_t pid)
{
	return look_connect_to(pid, OF_HOSTS, SOCK_STREAM);
}

/* ---- questions to yod ---- */

static int look_wait_for(int sock, int64_t until)
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

static void look_take_fds(struct msghdr *hdr, struct parcel *p)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(hdr);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return;
	p->nfds = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(p->fds, CMSG_DATA(c), p->nfds * sizeof(int));
}

static void look_drop_fds(struct parcel *p)
{
	while (p->nfds)
		close(p->fds[--p->nfds]);
}

static int look_check(const struct parcel *p, ssize_t n)
{
	if (n == 0)
		return -EPIPE;
	if (n != sizeof p->msg || p->msg.magic != P3_ATTACH_MAGIC)
		return -EPROTO;
	return p->msg.op == P3_ATTACH_REFUSED ? -EPERM : 0;
}

static int look_receive(struct p3_look *look, int64_t until, struct parcel *p)
{
	union control control;
	struct iovec iov = {&p->msg, sizeof p->msg};
	struct msghdr hdr = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes};
	p->nfds = 0;
	int rc = look_wait_for(look->sock, until);
	if (rc)
		return rc;
	ssize_t n = recvmsg(look->sock, &hdr, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	look_take_fds(&hdr, p);
	rc = look_check(p, n);
	if (rc)
		look_drop_fds(p);
	return rc;
}

static int look_ask(const struct p3_look *look, enum p3_attach_op op, uint32_t node)
{
	struct p3_attach_msg m = {.magic = P3_ATTACH_MAGIC, .op = op, .node = node};
	if (send(look->sock, &m, sizeof m, MSG_NOSIGNAL) >= 0)
		return 0;
	/* yod may have sent its reason before it hung up: the caller reads that next. */
	return errno == EPIPE || errno == ECONNRESET ? 0
	       : errno == EAGAIN                     ? -ETIMEDOUT
						     : -errno;
}

static int look_map_node(struct p3_look *look, uint32_t i)
{
	struct p3_look_node *n = &look->node[i];
	struct parcel p;
	p3_look_unmap_stale(n);
	if (n->mapped || !n->msg.incarnation)
		return 0;
	int rc = look_ask(look, P3_ATTACH_SEGMENTS, i);
	if (!rc)
		rc = look_receive(look, p3_now_ms() + P3_LOOK_MS, &p);
	if (rc)
		return rc;
	rc = p3_look_map(n, p.fds, p.nfds, &p.msg);
	look_drop_fds(&p);
	return rc;
}

static int look_take_job(struct p3_look *look)
{
	struct parcel p;
	int rc = look_ask(look, P3_ATTACH_LOOK, 0);
	if (!rc)
		rc = look_receive(look, p3_now_ms() + P3_LOOK_MS, &p);
	if (rc)
		return rc;
	look_drop_fds(&p);
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

static int look_take_node(struct p3_look *look, uint32_t i)
{
	struct parcel p;
	int rc = look_receive(look, p3_now_ms() + P3_LOOK_MS, &p);
	if (rc)
		return rc;
	look_drop_fds(&p);
	if (p.msg.op != P3_ATTACH_NODE || p.msg.node != i)
		return -EPROTO;
	look->node[i].msg = p.msg;
	return 0;
}

int p3_look_ask_yod(struct p3_look *look)
{
	int rc = look_take_job(look);
	for (uint32_t i = 0; !rc && i < look->job.size; i++)
		rc = look_take_node(look, i);
	for (uint32_t i = 0; !rc && i < look->job.size; i++)
		rc = look_map_node(look, i);
	return rc;
}

/* Read the file of the hosts. */
static int look_read_hosts(struct p3_look *look, int fd)
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
	int rc = look_ask(look, P3_ATTACH_HOSTS, 0);
	if (!rc)
		rc = look_receive(look, p3_now_ms() + P3_LOOK_MS, &p);
	if (rc)
		return rc;
	rc = p.msg.op != P3_ATTACH_HOSTS ? -EPROTO
	     : p.nfds                    ? look_read_hosts(look, p.fds[0])
					 : 0;
	look_drop_fds(&p);
	return rc;
}
