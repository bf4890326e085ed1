/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks at jobs, through the socket of each yod, and at domains.  The members of a
 * domain are not asked: they may be stopped, or hang.  The locks of the domain say
 * which process has which slot and which ids; the kernel says which files that process
 * has open, and opens them once more if the user may debug it.
 *
 * A process may end, or its pid may be reused, between any two steps.  So this file takes
 * only sealed segments, and only if the process still has its slot, if any, after they
 * have been opened.
 */
#include "launcher/look/look.h"
#include "launcher/loop.h"
#include "shm/domain.h"
#include "shm/job.h"
#include "shm/layout.h"
#include "shm/process.h"
#include "shm/seg.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define USERS     "ptl3-"
#define PUBLISHED "/memfd:p3-published"
#define HOST      "/memfd:p3-host"

struct p3_look {
	int sock; /* connection to yod; -1: none */
	struct p3_attach_msg job;
	struct p3_look_node *node;
	struct p3_job_host *host;
	uint32_t hosts; /* hosts of the job; 0: one, or not known */
	uint32_t room;  /* nodes that the array has memory for */
	bool of_domain; /* the look is at a domain, or at a process that is in none */
	uint32_t alone; /* this process; 0: a domain, or a job of yod */
	char name[P3_DOMAIN_NAMES + 1];
	struct p3_domain domain; /* open while of_domain is true and alone is 0 */
};

/* ---- segments ---- */

static int look_map_one(int fd, struct p3_look_map *map_out)
{
	const int want = F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	if (fstat(fd, &st) || !st.st_size || seals < 0 || (seals & want) != want)
		return -EPROTO;
	uint64_t len = (uint64_t)st.st_size;
	void *base = mmap(NULL, len, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	*map_out = (struct p3_look_map){.base = base, .len = len};
	return 0;
}

static void look_unmap(struct p3_look_node *n)
{
	for (unsigned k = 0; k < P3_ATTACH_FDS; k++) {
		if (n->seg[k].base)
			munmap((void *)(uintptr_t)n->seg[k].base, n->seg[k].len);
		n->seg[k] = (struct p3_look_map){.base = NULL};
	}
	n->mapped = 0;
	n->remains = false;
}

/* Map the published segment and the host segment (-1: none) of an incarnation.  Return
 * 0 or -errno; the descriptors stay the caller's. */
static int look_map(struct p3_look_node *n, const int fds[P3_ATTACH_FDS],
	const struct p3_attach_msg *msg)
{
	int rc = 0;
	for (unsigned k = 0; k < P3_ATTACH_FDS && !rc && fds[k] >= 0; k++)
		rc = look_map_one(fds[k], &n->seg[k]);
	if (rc)
		look_unmap(n);
	else if (fds[0] >= 0) /* else the node is gone */
		n->mapped = msg->incarnation;
	n->remains = n->mapped && msg->remains;
	return rc;
}

/* Unmap a node's segments if they are those of an earlier incarnation: the mapping
 * would keep the kernel from freeing them. */
static void look_unmap_stale(struct p3_look_node *n)
{
	if (n->mapped &&
		(n->mapped != n->msg.incarnation || n->remains != n->msg.remains))
		look_unmap(n);
}

/* Return bytes of a mapping, after a look that there is memory behind them, or NULL. */
static const void *look_bytes(void *arg, uint64_t off, uint64_t len)
{
	struct p3_look_map *m = arg;
	if (!m->base || off > m->len || len > m->len - off)
		return NULL;
	if (off + len <= m->reached)
		return m->base + off;
	if (p3_seg_reach(m->base + off, len))
		return NULL;
	if (off / P3_PAGE * P3_PAGE <= m->reached)
		m->reached = p3_round_up(off + len, P3_PAGE);
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
		look_unmap(&look->node[i]);
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

static bool look_is_ours(const struct name *name)
{
	return name->uid == getuid() || getuid() == 0;
}

struct names {
	struct name *v;
	size_t n, room;
};

static int look_by_number(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	if (x->jid != y->jid)
		return x->jid < y->jid ? -1 : 1;
	return strcmp(x->text, y->text);
}

/* Return the names of the listening yods in /proc/net/unix. */
static struct names look_names_read(const char *service)
{
	struct names names = {NULL, 0, 0};
	char line[400];
	size_t len = strlen(service);
	FILE *f = fopen("/proc/net/unix", "re");
	while (f && fgets(line, sizeof line, f)) {
		struct name name;
		unsigned flags;
		int at = 0;
		if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s @%n", &flags, &at) != 1 ||
			!at || !(flags & LISTENS) ||
			sscanf(line + at, "%59s", name.text) != 1 ||
			strncmp(name.text, service, len) != 0 ||
			sscanf(name.text + len, "%u/%u", &name.uid, &name.jid) != 2)
			continue;
		if (names.n == names.room) {
			size_t room = names.room ? 2 * names.room : 16;
			struct name *v = realloc(names.v, room * sizeof *v);
			if (!v)
				break;
			names.v = v;
			names.room = room;
		}
		names.v[names.n++] = name;
	}
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

/* Connect without blocking: a stopped yod may have a full backlog.  The kernel must say
 * that the socket belongs to the user in its name, and not to another user who took the
 * name. */
static int look_connect_name(const struct name *name, int type)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	size_t n = strlen(name->text);
	struct ucred cred;
	socklen_t size = sizeof cred, len = (socklen_t)(sizeof at.sun_family + 1 + n);
	int rc = 0, sock = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return -errno;
	memcpy(at.sun_path + 1, name->text, n);
	if (connect(sock, (struct sockaddr *)&at, len))
		rc = errno == ECONNREFUSED ? -ESRCH
		     : errno == EAGAIN     ? -ETIMEDOUT
					   : -errno;
	else if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &size) ||
		 cred.uid != name->uid)
		rc = -ESRCH;
	if (!rc)
		return sock;
	close(sock);
	return rc;
}

/* Return the parent of a process, 0 if unknown. */
static uint32_t look_parent(uint32_t pid)
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
	for (int i = 0; i < PARENTS && pid && rc == -ESRCH; i++) {
		for (size_t k = 0; k < names.n && rc < 0; k++) {
			const struct name *name = &names.v[k];
			int got = name->jid != pid     ? -ESRCH
				  : look_is_ours(name) ? look_connect_name(name, type)
						       : -EPERM;
			rc = got == -ESRCH ? rc : got;
		}
		pid = look_parent(pid);
	}
	free(names.v);
	return rc;
}

int p3_look_connect_hosts(uint32_t pid)
{
	return look_connect_to(pid, OF_HOSTS, SOCK_STREAM);
}

/* ---- questions to yod ---- */

struct parcel {
	struct p3_attach_msg msg;
	struct p3_job_packet with; /* its descriptors */
};

/* Receive a packet of yod.  The caller closes its descriptors. */
static int look_receive(struct p3_look *look, enum p3_attach_op op, struct parcel *p)
{
	struct pollfd ready = {.fd = look->sock, .events = POLLIN};
	int64_t until = p3_now_ms() + P3_LOOK_MS, ms;
	int got = 0;
	while (got <= 0 && (ms = until - p3_now_ms()) >= 0)
		if ((got = poll(&ready, 1, (int)ms)) < 0 && errno != EINTR)
			return -errno;
	if (got <= 0)
		return -ETIMEDOUT;
	ssize_t n = p3_packet_recv(look->sock, 0, &p->msg, sizeof p->msg, &p->with);
	int rc = n < 0                                                   ? (int)n
		 : n == 0                                                ? -EPIPE
		 : n != sizeof p->msg || p->msg.magic != P3_ATTACH_MAGIC ? -EPROTO
		 : p->msg.op == P3_ATTACH_REFUSED                        ? -EPERM
		 : p->msg.op != op                                       ? -EPROTO
									 : p->with.lacks;
	if (rc)
		p3_job_close(&p->with);
	return rc;
}

/* Ask, and receive the first packet of the answer.  Ask again, at most for P3_LOOK_MS,
 * while the kernel lets yod send no more descriptors. */
static int look_ask(struct p3_look *look, enum p3_attach_op ask, uint32_t node,
	enum p3_attach_op answer, struct parcel *p)
{
	struct p3_attach_msg m = {.magic = P3_ATTACH_MAGIC, .op = ask, .node = node};
	const struct timespec pause = {.tv_nsec = 10000000};
	int64_t until = p3_now_ms() + P3_LOOK_MS;
	for (;;) {
		/* yod may have sent its reason before it hung up: read that. */
		if (send(look->sock, &m, sizeof m, MSG_NOSIGNAL) < 0 && errno != EPIPE &&
			errno != ECONNRESET)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		int rc = look_receive(look, answer, p);
		if (rc || p->msg.status != ETOOMANYREFS)
			return rc;
		if (p3_now_ms() > until)
			return -ETOOMANYREFS;
		(void)nanosleep(&pause, NULL);
	}
}

/* Ask for the job and all its nodes again, and map the new ones.  Return 0 or -errno. */
static int look_ask_yod(struct p3_look *look)
{
	struct parcel p;
	int rc = look_ask(look, P3_ATTACH_LOOK, 0, P3_ATTACH_JOB, &p);
	if (rc)
		return rc;
	p3_job_close(&p.with);
	if (!p.msg.size || (look->node && look->job.size != p.msg.size))
		return -EPROTO;
	look->job = p.msg;
	if (!look->node)
		look->node = calloc(p.msg.size, sizeof look->node[0]);
	look->room = look->node ? p.msg.size : 0;
	rc = look->node ? 0 : -ENOMEM;
	for (uint32_t i = 0; !rc && i < look->job.size; i++) {
		rc = look_receive(look, P3_ATTACH_NODE, &p);
		if (rc)
			break;
		p3_job_close(&p.with);
		rc = p.msg.node != i ? -EPROTO : 0;
		if (!rc)
			look->node[i].msg = p.msg;
	}
	for (uint32_t i = 0; !rc && i < look->job.size; i++) {
		struct p3_look_node *n = &look->node[i];
		look_unmap_stale(n);
		if (n->mapped || !n->msg.incarnation)
			continue;
		rc = look_ask(look, P3_ATTACH_SEGMENTS, i, P3_ATTACH_SEGMENTS, &p);
		if (rc)
			break;
		rc = look_map(n, p.with.fds, &p.msg);
		p3_job_close(&p.with);
	}
	return rc;
}

/* Ask for the hosts of the job.  Return 0, also if it has one, or -errno. */
static int look_ask_hosts(struct p3_look *look)
{
	struct parcel p;
	struct stat st = {.st_size = 0};
	int rc = look_ask(look, P3_ATTACH_HOSTS, 0, P3_ATTACH_HOSTS, &p);
	if (rc)
		return rc;
	if (p.with.fds[0] >= 0 &&
		(fstat(p.with.fds[0], &st) || st.st_size < 0 ||
			(uint64_t)st.st_size > P3_MAX_NODES * sizeof *look->host))
		rc = -EPROTO;
	size_t n = (size_t)st.st_size / sizeof *look->host, len = n * sizeof *look->host;
	if (!rc && !(look->host = malloc(len + 1)))
		rc = -ENOMEM;
	if (!rc && p.with.fds[0] >= 0 &&
		pread(p.with.fds[0], look->host, len, 0) != (ssize_t)len)
		rc = -EPROTO;
	for (size_t i = 0; i < n && !rc; i++)
		look->host[i].name[sizeof look->host[i].name - 1] = '\0';
	look->hosts = rc ? 0 : (uint32_t)n;
	p3_job_close(&p.with);
	return rc;
}

/* ---- domains ---- */

/* Return the number of members of a domain, 0 if it cannot be looked at. */
static uint32_t look_count_members(uint32_t uid, const char *name)
{
	struct p3_domain d;
	uint32_t n = 0, slot = 0, holder;
	if (p3_domain_peek(&d, P3_DOMAIN_BASE, uid, name))
		return 0;
	for (; p3_domain_next_slot(&d, &slot, &holder); slot++)
		n++;
	p3_domain_forget(&d);
	return n;
}

bool p3_look_domains(
	bool (*found)(void *arg, uint32_t uid, const char *name, uint32_t members),
	void *arg)
{
	bool over = false;
	DIR *d = opendir(P3_DOMAIN_BASE);
	for (struct dirent *e; d && !over && (e = readdir(d));) {
		char path[sizeof P3_DOMAIN_BASE + sizeof e->d_name + 1], *end;
		const char *number = e->d_name + strlen(USERS);
		if (strncmp(e->d_name, USERS, strlen(USERS)) != 0 || *number < '0' ||
			*number > '9')
			continue;
		uint32_t members, uid = (uint32_t)strtoul(number, &end, 10);
		if (*end || (uid != geteuid() && geteuid() != 0))
			continue;
		snprintf(path, sizeof path, P3_DOMAIN_BASE "/%s", e->d_name);
		DIR *names = opendir(path);
		for (struct dirent *n; names && !over && (n = readdir(names));)
			over = p3_domain_is_name(n->d_name) &&
			       (members = look_count_members(uid, n->d_name)) &&
			       found(arg, uid, n->d_name, members);
		if (names)
			closedir(names);
	}
	if (d)
		closedir(d);
	return over;
}

/* ---- members ---- */

static bool look_is_target(int dir, const char *fd, const char *name)
{
	char target[64];
	ssize_t n = readlinkat(dir, fd, target, sizeof target - 1);
	size_t len = strlen(name);
	return n > (ssize_t)len && !strncmp(target, name, len) && target[len] == ' ';
}

static struct p3_attach_msg look_message(const struct p3_look *look, enum p3_attach_op op)
{
	return (struct p3_attach_msg){.magic = P3_ATTACH_MAGIC,
		.op = op,
		.uid = look->job.uid,
		.pid = {P3_JOB_NO_PID, P3_JOB_NO_PID}};
}

/* Open the segments of a process.  Of its two host segments keep that with the larger
 * pages: a process makes the second, with ordinary pages, only if the first has
 * hugepages. */
static void look_open_segments(uint32_t pid, int fds[P3_ATTACH_FDS])
{
	char path[40];
	fds[0] = fds[1] = -1;
	snprintf(path, sizeof path, "/proc/%u/fd", pid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		bool published = look_is_target(dirfd(d), e->d_name, PUBLISHED);
		if (!published && !look_is_target(dirfd(d), e->d_name, HOST))
			continue;
		/* Open it once more.  Its number may name a pipe by now: O_NONBLOCK keeps
		 * the open from waiting for a writer. */
		int fd = openat(dirfd(d), e->d_name,
			O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
		int *kept = &fds[!published];
		struct stat was, is;
		bool better =
			fd >= 0 && (*kept < 0 || (!published && !fstat(*kept, &was) &&
							 !fstat(fd, &is) &&
							 is.st_blksize > was.st_blksize));
		p3_close(better ? *kept : fd);
		*kept = better ? fd : *kept;
	}
	if (d)
		closedir(d);
}

/* Make the process node i of the look.  slot is its slot in the domain, or
 * P3_DOMAIN_NO_SLOT.  Return 0 (even if its memory cannot be seen) or -errno. */
static int look_take_member(struct p3_look *look, uint32_t i, uint32_t slot, uint32_t pid)
{
	int fds[P3_ATTACH_FDS];
	struct p3_seg_header h;
	if (i >= look->room) {
		struct p3_look_node *node = realloc(look->node, (i + 1) * sizeof *node);
		if (!node)
			return -ENOMEM;
		memset(node + look->room, 0, (i + 1 - look->room) * sizeof *node);
		look->node = node;
		look->room = i + 1;
	}
	struct p3_look_node *n = &look->node[i];
	n->msg = look_message(look, P3_ATTACH_NODE);
	n->msg.node = i;
	n->msg.os_pid = pid;
	n->msg.inited = pid != 0;
	look_open_segments(pid, fds);
	if (slot != P3_DOMAIN_NO_SLOT && p3_domain_is_over(&look->domain, slot, pid))
		p3_close_fds(fds, P3_ATTACH_FDS);
	/* Read the header by pread(), which returns less behind the end of the file: an
	 * access through a mapping would raise SIGBUS there. */
	if (fds[0] >= 0 && fcntl(fds[0], F_GET_SEALS) >= 0 &&
		pread(fds[0], &h, sizeof h, 0) == sizeof h && h.magic == P3_SEG_MAGIC) {
		n->msg.incarnation = h.incarnation;
		n->msg.seg_len = h.seg_len;
		n->msg.layout = h.layout;
	}
	look_unmap_stale(n);
	if (n->msg.incarnation && !n->mapped)
		(void)look_map(n, fds, &n->msg);
	n->msg.state = n->mapped ? P3_RDV_JOINED : P3_RDV_NEVER_JOINED;
	p3_close_fds(fds, P3_ATTACH_FDS);
	return 0;
}

static int look_take_absent(struct p3_look *look, uint32_t from, uint32_t to)
{
	int rc = 0;
	for (uint32_t i = from; i < to && !rc; i++) {
		rc = look_take_member(look, i, P3_DOMAIN_NO_SLOT, 0);
		if (!rc)
			look_unmap(&look->node[i]);
	}
	return rc;
}

static void look_add_id(void *arg, uint32_t nid, uint32_t pid, uint32_t holder)
{
	struct p3_look *look = arg;
	for (uint32_t i = 0; i < look->job.size; i++) {
		struct p3_attach_msg *m = &look->node[i].msg;
		if (!holder || m->os_pid != holder)
			continue;
		m->nid = nid;
		m->pid[m->pid[0] != P3_JOB_NO_PID] = pid;
	}
}

/* Read all members.  Return -EPIPE when the last one has left, -ESRCH if there never was
 * one. */
static int look_take_all(struct p3_look *look)
{
	/* In the domain of a job of mpirun or the like, a rank takes the slot of its
	 * own number, unless another job of the family has taken that slot.  So node i
	 * of the look is slot i there, and a slot without a process is shown as an
	 * absent node. */
	static const char *const launchers[] = {"ompi-", "pmi-", "pmix-", "slurm-"};
	bool launched = false;
	for (size_t k = 0; k < sizeof launchers / sizeof launchers[0]; k++)
		launched |= !strncmp(look->name, launchers[k], strlen(launchers[k]));
	uint32_t n = 0, slot = 0, holder;
	int rc = 0;
	for (; !rc && p3_domain_next_slot(&look->domain, &slot, &holder); slot++) {
		if (launched)
			rc = look_take_absent(look, n, slot);
		n = launched ? slot : n;
		rc = rc ? rc : look_take_member(look, n++, slot, holder);
	}
	if (!rc && !n)
		return look->job.size ? -EPIPE : -ESRCH;
	/* The largest job in the domain may have more ranks, which are yet to come:
	 * spawned jobs have the slots behind those of their parents. */
	uint32_t size = n;
	for (uint32_t i = 0; i < n && launched && !rc; i++) {
		const struct p3_seg_header *h =
			p3_look_bytes(look, i, P3_LOOK_PUBLISHED, 0, sizeof *h);
		if (h && h->ranks > size && h->ranks <= P3_MAX_NODES)
			size = h->ranks;
	}
	rc = rc ? rc : look_take_absent(look, n, size);
	for (uint32_t i = size; i < look->room; i++)
		look_unmap(&look->node[i]);
	look->job.size = size;
	p3_domain_ids(&look->domain, look_add_id, look);
	return rc;
}

/* ---- opening ---- */

/* Begin a look at processes of this user. */
static void look_begin_domain(struct p3_look *look, uint32_t uid)
{
	look->of_domain = true;
	look->job = (struct p3_attach_msg){.uid = uid};
	look->job = look_message(look, P3_ATTACH_JOB);
}

static int look_enter(struct p3_look *look, uint32_t uid, const char *name)
{
	int rc = p3_domain_peek(&look->domain, P3_DOMAIN_BASE, uid, name);
	if (rc)
		return rc == -ENOENT || rc == -ENOTDIR ? -ESRCH : rc;
	snprintf(look->name, sizeof look->name, "%.*s", P3_DOMAIN_NAMES, name);
	look_begin_domain(look, uid);
	return 0;
}

struct search {
	struct p3_look *look;
	uint32_t pid;
};

static bool look_has_member(void *arg, uint32_t uid, const char *name, uint32_t members)
{
	(void)members;
	struct search *s = arg;
	uint32_t slot = 0, holder;
	if (look_enter(s->look, uid, name))
		return false;
	for (; p3_domain_next_slot(&s->look->domain, &slot, &holder); slot++) {
		uint32_t process = holder; /* or one above it */
		for (int k = 0; k < PARENTS && process > 1; k++) {
			if (process == s->pid)
				return true;
			process = look_parent(process);
		}
	}
	p3_domain_forget(&s->look->domain);
	s->look->of_domain = false;
	return false;
}

/* ---- a look at either ---- */

int p3_look_again(struct p3_look *look)
{
	bool first = !look->job.size;
	if (!look->of_domain)
		return look_ask_yod(look);
	if (!look->alone)
		return look_take_all(look);
	look->job.size = 1;
	int rc = look_take_member(look, 0, P3_DOMAIN_NO_SLOT, look->alone);
	if (!rc && !look->node[0].mapped)
		rc = first ? -ESRCH : -EPIPE;
	return rc;
}

static struct p3_look *look_create(int sock)
{
	struct p3_look *look = calloc(1, sizeof *look);
	if (!look)
		return NULL;
	p3_domain_none(&look->domain);
	look->sock = sock;
	return look;
}

/* Return 0 or -errno after a first answer, without which the look is closed. */
static int look_begin(struct p3_look *look, int rc, struct p3_look **look_out)
{
	if (!rc)
		rc = p3_look_again(look);
	if (!rc && !look->of_domain)
		rc = look_ask_hosts(look);
	if (rc)
		p3_look_close(look);
	else
		*look_out = look;
	return rc;
}

int p3_look_open(uint32_t pid, struct p3_look **look_out)
{
	int sock = look_connect_to(pid, OF_JOBS, SOCK_SEQPACKET);
	struct p3_look *look = look_create(sock);
	struct search s = {look, pid};
	struct stat st;
	char path[40];
	if (!look)
		return -ENOMEM;
	if (sock != -ESRCH || p3_look_domains(look_has_member, &s))
		return look_begin(look, sock == -ESRCH || sock >= 0 ? 0 : sock, look_out);
	/* Neither the process nor one below it is in a domain: look at it alone. */
	snprintf(path, sizeof path, "/proc/%u", pid);
	if (stat(path, &st))
		return look_begin(look, -ESRCH, look_out);
	look_begin_domain(look, st.st_uid);
	look->alone = pid;
	return look_begin(look, 0, look_out);
}

int p3_look_open_domain(const char *name, struct p3_look **look_out)
{
	struct p3_look *look = look_create(-1);
	if (!look)
		return -ENOMEM;
	int rc = p3_domain_is_name(name) ? look_enter(look, geteuid(), name) : -ESRCH;
	return look_begin(look, rc, look_out);
}

int p3_look_open_socket(int sock, struct p3_look **look_out)
{
	struct p3_look *look = look_create(sock);
	return look ? look_begin(look, 0, look_out) : -ENOMEM;
}

const char *p3_look_host(const struct p3_look *look, uint32_t rank)
{
	for (uint32_t i = 0; i < look->hosts; i++)
		if (rank - look->host[i].first < look->host[i].size)
			return look->host[i].name;
	return NULL;
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
