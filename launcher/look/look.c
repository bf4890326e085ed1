/* SPDX-License-Identifier: BSD-3-Clause */
/* The looker's side of attach.h: finding yod, asking it, mapping segments. */
#include "launcher/clock.h"
#include "launcher/look/lookin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define PAGE          ((uint64_t)4096)
#define LISTENS       0x10000 /* flags of /proc/net/unix: __SO_ACCEPTCON */
#define PARENTS       64      /* ancestors of a pid that are tried */
#define WHOLE_PAGE(n) (((n) + PAGE - 1) / PAGE * PAGE)

/* ---- jobs ---- */

struct name {
	uint32_t uid, jid;
	char text[60]; /* the abstract address without its zero byte in front */
};

/* Parse a line of /proc/net/unix.  Return true if it is the socket of a listening yod. */
static bool parse_line(const char *line, struct name *name_out)
{
	unsigned flags;
	int at = 0;
	if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s @%n", &flags, &at) != 1 || !at)
		return false;
	if (!(flags & LISTENS) || sscanf(line + at, "%59s", name_out->text) != 1)
		return false;
	return sscanf(name_out->text, "portals3/%u/%u", &name_out->uid, &name_out->jid) ==
	       2;
}

static bool is_ours(const struct name *name)
{
	return name->uid == getuid() || getuid() == 0;
}

struct names {
	struct name *v;
	size_t n, room;
};

static void names_add(struct names *names, const struct name *name)
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

static int by_number(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	if (x->jid != y->jid)
		return x->jid < y->jid ? -1 : 1;
	return strcmp(x->text, y->text);
}

static struct names names_read(void)
{
	struct names names = {NULL, 0, 0};
	struct name name;
	char line[400];
	FILE *f = fopen("/proc/net/unix", "re");
	while (f && fgets(line, sizeof line, f))
		if (parse_line(line, &name))
			names_add(&names, &name);
	if (f)
		fclose(f);
	if (names.n)
		qsort(names.v, names.n, sizeof names.v[0], by_number);
	return names;
}

void p3_look_jobs(void (*found)(void *arg, uint32_t uid, uint32_t jid), void *arg)
{
	struct names names = names_read();
	for (size_t k = 0; k < names.n; k++)
		if (is_ours(&names.v[k]))
			found(arg, names.v[k].uid, names.v[k].jid);
	free(names.v);
}

/* ---- connecting ---- */

static socklen_t address(const struct name *name, struct sockaddr_un *at)
{
	size_t len = strlen(name->text);
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(at->sun_path + 1, name->text, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

/* Return true if the socket belongs to the user in its name, by the kernel's word, and
 * not to another user who took the name. */
static bool is_genuine(int sock, const struct name *name)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       cred.uid == name->uid;
}

/* Connect without blocking: a stopped yod may have a full backlog. */
static int connect_name(const struct name *name)
{
	struct sockaddr_un at;
	socklen_t len = address(name, &at);
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	int rc = 0;
	if (connect(sock, (struct sockaddr *)&at, len))
		rc = errno == ECONNREFUSED ? -ESRCH
		     : errno == EAGAIN     ? -ETIMEDOUT
					   : -errno;
	else if (!is_genuine(sock, name))
		rc = -ESRCH;
	if (!rc)
		return sock;
	close(sock);
	return rc;
}

static int connect_any(const struct names *names, uint32_t jid)
{
	int rc = -ESRCH;
	for (size_t k = 0; k < names->n && rc < 0; k++)
		if (names->v[k].jid == jid) {
			int got = is_ours(&names->v[k]) ? connect_name(&names->v[k])
							: -EPERM;
			if (got >= 0 || got != -ESRCH)
				rc = got;
		}
	return rc;
}

uint32_t p3_look_parent(uint32_t pid)
{
	char path[40], line[400];
	unsigned parent = 0;
	snprintf(path, sizeof path, "/proc/%u/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof line, f)) {
		const char *end =
			/* the end of the name, which may contain any character */
			strrchr(line, ')');
		if (!end || sscanf(end + 1, " %*c %u", &parent) != 1)
			parent = 0;
	}
	fclose(f);
	return parent;
}

/* Connect to the job of a process: its number is the pid of its topmost process. */
static int connect_pid(uint32_t pid)
{
	struct names names = names_read();
	int rc = -ESRCH;
	for (int k = 0; k < PARENTS && pid && rc == -ESRCH; k++) {
		rc = connect_any(&names, pid);
		pid = p3_look_parent(pid);
	}
	free(names.v);
	return rc;
}

/* ---- packets ---- */

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
	/* yod may have sent its reason before it hung up: that is read next. */
	return errno == EPIPE || errno == ECONNRESET ? 0
	       : errno == EAGAIN                     ? -ETIMEDOUT
						     : -errno;
}

/* ---- segments ---- */

static bool is_sealed(int fd)
{
	int want = F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	return seals >= 0 && (seals & want) == want;
}

static int map_one(int fd, struct p3_look_map *map_out)
{
	struct stat st;
	if (fstat(fd, &st) || !st.st_size || !is_sealed(fd))
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
		rc = map_one(fds[k], &n->seg[k]);
	if (rc)
		p3_look_unmap(n);
	else if (nfds) /* 0: the node is gone, or yod could not send any now: try later */
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

static bool reach(struct p3_look_map *m, uint64_t off, uint64_t len)
{
	uint64_t from = off / PAGE * PAGE, to = WHOLE_PAGE(off + len);
	if (off + len <= m->reached)
		return true;
	if (madvise((void *)(uintptr_t)(m->base + from), to - from, MADV_POPULATE_READ) &&
		errno != EINVAL) /* the kernel is older than Linux 5.14 */
		return false;
	if (from <= m->reached)
		m->reached = to;
	return true;
}

const void *p3_look_bytes(const struct p3_look *look, uint32_t i, enum p3_look_seg which,
	uint64_t off, uint64_t len)
{
	struct p3_look_map *m = &look->node[i].seg[which];
	if (!m->base || off > m->len || len > m->len - off || !reach(m, off, len))
		return NULL;
	return m->base + off;
}

/* ---- looking ---- */

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

int p3_look_again(struct p3_look *look)
{
	if (look->of_domain)
		return p3_look_ask_domain(look);
	int rc = take_job(look);
	for (uint32_t i = 0; !rc && i < look->job.size; i++)
		rc = take_node(look, i);
	for (uint32_t i = 0; !rc && i < look->job.size; i++)
		rc = map_node(look, i);
	return rc;
}

int p3_look_open(uint32_t pid, struct p3_look **look_out)
{
	struct p3_look *look = calloc(1, sizeof *look);
	if (!look)
		return -ENOMEM;
	p3_domain_none(&look->domain);
	look->sock = connect_pid(pid);
	int rc = look->sock == -ESRCH ? p3_look_find_member(look, pid)
		 : look->sock < 0     ? look->sock
				      : p3_look_again(look);
	if (rc)
		p3_look_close(look);
	else
		*look_out = look;
	return rc;
}

void p3_look_close(struct p3_look *look)
{
	for (uint32_t i = 0; i < look->room; i++)
		p3_look_unmap(&look->node[i]);
	free(look->node);
	if (look->sock >= 0)
		close(look->sock);
	p3_domain_forget(&look->domain);
	free(look);
}

const struct p3_attach_msg *p3_look_job(const struct p3_look *look)
{
	return &look->job;
}

const struct p3_look_node *p3_look_node(const struct p3_look *look, uint32_t i)
{
	return &look->node[i];
}

const char *p3_look_domain(const struct p3_look *look)
{
	return look->of_domain ? look->name : NULL;
}
