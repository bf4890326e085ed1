/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks at jobs and at domains.  The members of a domain are not asked: they may be
 * stopped, or hang.  The locks of the domain say which process has which slot and which
 * ids; the kernel says which files that process has open, and opens them once more if the
 * user may debug it.
 *
 * A process may end, or its pid may be reused, between any two steps.  So this file takes
 * only sealed segments, and only if the process still has its slot, if any, after they
 * have been opened.
 */
#include "launcher/look/lookin.h"
#include "launcher/loop.h"
#include "shm/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USERS     "ptl3-"
#define PUBLISHED "/memfd:p3-published"
#define HOST      "/memfd:p3-host"

/* ---- domains ---- */

static bool look_is_users(const char *name, uint32_t *uid_out)
{
	char *end;
	size_t n = strlen(USERS);
	if (strncmp(name, USERS, n) || name[n] < '0' || name[n] > '9')
		return false;
	*uid_out = (uint32_t)strtoul(name + n, &end, 10);
	return !*end && (*uid_out == geteuid() || geteuid() == 0);
}

typedef bool found_name(void *arg, uint32_t uid, const char *name);

/* Call found for each domain of one user, until it returns true. */
static bool look_each_of_user(uint32_t uid, found_name *found, void *arg)
{
	char path[40];
	bool over = false;
	snprintf(path, sizeof path, P3_DOMAIN_BASE "/" USERS "%u", uid);
	DIR *d = opendir(path);
	for (struct dirent *e; d && !over && (e = readdir(d));)
		over = p3_domain_is_name(e->d_name) && found(arg, uid, e->d_name);
	if (d)
		closedir(d);
	return over;
}

static bool look_each_domain(found_name *found, void *arg)
{
	uint32_t uid;
	bool over = false;
	DIR *d = opendir(P3_DOMAIN_BASE);
	for (struct dirent *e; d && !over && (e = readdir(d));)
		over = look_is_users(e->d_name, &uid) &&
		       look_each_of_user(uid, found, arg);
	if (d)
		closedir(d);
	return over;
}

struct listing {
	void (*found)(void *arg, uint32_t uid, const char *name, uint32_t members);
	void *arg;
};

static bool look_list_one(void *arg, uint32_t uid, const char *name)
{
	struct listing *l = arg;
	struct p3_domain d;
	uint32_t n = 0, slot = 0, holder;
	if (p3_domain_peek(&d, P3_DOMAIN_BASE, uid, name))
		return false;
	for (; p3_domain_next_slot(&d, &slot, &holder); slot++)
		n++;
	p3_domain_forget(&d);
	if (n)
		l->found(l->arg, uid, name, n);
	return false;
}

void p3_look_domains(
	void (*found)(void *arg, uint32_t uid, const char *name, uint32_t members),
	void *arg)
{
	struct listing l = {found, arg};
	(void)look_each_domain(look_list_one, &l);
}

/* ---- segments of a process ---- */

static bool look_is_target(int dir, const char *fd, const char *name)
{
	char target[64];
	ssize_t n = readlinkat(dir, fd, target, sizeof target - 1);
	size_t len = strlen(name);
	return n > (ssize_t)len && !strncmp(target, name, len) && target[len] == ' ';
}

/* Keep the first of a process's two host segments: it has the larger pages.  A process
 * makes the second, with ordinary pages, only if the first has hugepages. */
static void look_take_host(int fd, int *host)
{
	struct stat was, is;
	bool better = *host < 0 || (fstat(*host, &was) == 0 && fstat(fd, &is) == 0 &&
					   is.st_blksize > was.st_blksize);
	int other = better ? *host : fd;
	if (better)
		*host = fd;
	p3_close(other);
}

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
		if (fd >= 0 && published && fds[0] < 0)
			fds[0] = fd;
		else if (fd >= 0 && !published)
			look_take_host(fd, &fds[1]);
		else if (fd >= 0)
			close(fd);
	}
	if (d)
		closedir(d);
}

/* Read the header of a segment by pread(), which returns less behind the end of the file:
 * an access through a mapping would raise SIGBUS there. */
static bool look_read_header(int fd, struct p3_seg_header *h)
{
	return fd >= 0 && fcntl(fd, F_GET_SEALS) >= 0 &&
	       pread(fd, h, sizeof *h, 0) == sizeof *h && h->magic == P3_SEG_MAGIC;
}

static void look_map_segments(struct p3_look_node *n, const int *fds)
{
	struct p3_seg_header h;
	struct p3_attach_msg *m = &n->msg;
	if (look_read_header(fds[0], &h)) {
		m->incarnation = h.incarnation;
		m->seg_len = h.seg_len;
		m->layout = h.layout;
	}
	p3_look_unmap_stale(n);
	if (m->incarnation && !n->mapped)
		(void)p3_look_map(n, fds, fds[1] < 0 ? 1 : P3_ATTACH_FDS, m);
	m->state = n->mapped ? P3_RDV_JOINED : P3_RDV_NEVER_JOINED;
}

/* ---- members ---- */

static struct p3_attach_msg look_message(const struct p3_look *look, enum p3_attach_op op)
{
	return (struct p3_attach_msg){.magic = P3_ATTACH_MAGIC,
		.op = op,
		.uid = look->job.uid,
		.pid = {P3_JOB_NO_PID, P3_JOB_NO_PID}};
}

static int look_grow(struct p3_look *look, uint32_t size)
{
	if (size <= look->room)
		return 0;
	struct p3_look_node *node = realloc(look->node, size * sizeof *node);
	if (!node)
		return -ENOMEM;
	memset(node + look->room, 0, (size - look->room) * sizeof *node);
	look->node = node;
	look->room = size;
	return 0;
}

/* Make the process node i of the look.  slot is its slot in the domain, or
 * P3_DOMAIN_NO_SLOT.  Return 0 (even if its memory cannot be seen) or -errno. */
static int look_take_member(struct p3_look *look, uint32_t i, uint32_t slot, uint32_t pid)
{
	int fds[P3_ATTACH_FDS], rc = look_grow(look, i + 1);
	if (rc)
		return rc;
	struct p3_look_node *n = &look->node[i];
	n->msg = look_message(look, P3_ATTACH_NODE);
	n->msg.node = i;
	n->msg.os_pid = pid;
	n->msg.inited = pid != 0;
	look_open_segments(pid, fds);
	if (slot != P3_DOMAIN_NO_SLOT && p3_domain_is_over(&look->domain, slot, pid) &&
		fds[0] >= 0) {
		close(fds[0]);
		fds[0] = -1;
	}
	look_map_segments(n, fds);
	for (unsigned k = 0; k < P3_ATTACH_FDS; k++)
		p3_close(fds[k]);
	return 0;
}

/* Return true if the domain's name is that of a job of mpirun or the like.  In such a
 * domain a rank takes the slot of its own number, unless another job of the family has
 * taken that slot.  So node i of the look is slot i there, and a slot without a process
 * is shown as an absent node. */
static bool look_is_launched(const char *name)
{
	static const char *const launchers[] = {"ompi-", "pmi-", "pmix-", "slurm-"};
	for (size_t k = 0; k < sizeof launchers / sizeof launchers[0]; k++)
		if (!strncmp(name, launchers[k], strlen(launchers[k])))
			return true;
	return false;
}

static int look_take_absent(struct p3_look *look, uint32_t from, uint32_t to)
{
	int rc = 0;
	for (uint32_t i = from; i < to && !rc; i++) {
		rc = look_take_member(look, i, P3_DOMAIN_NO_SLOT, 0);
		if (!rc)
			p3_look_unmap(&look->node[i]);
	}
	return rc;
}

/* Return the number of ranks of the largest job in the domain, or n if that is more:
 * spawned jobs have the slots behind those of their parents. */
static uint32_t look_ranks_of(const struct p3_look *look, uint32_t n)
{
	uint32_t most = n;
	for (uint32_t i = 0; i < n; i++) {
		const struct p3_seg_header *h =
			p3_look_bytes(look, i, P3_LOOK_PUBLISHED, 0, sizeof *h);
		if (h && h->ranks > most && h->ranks <= P3_MAX_NODES)
			most = h->ranks;
	}
	return most;
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
	bool launched = look_is_launched(look->name);
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
	uint32_t size = launched && !rc ? look_ranks_of(look, n) : n;
	rc = rc ? rc : look_take_absent(look, n, size);
	for (uint32_t i = size; i < look->room; i++)
		p3_look_unmap(&look->node[i]);
	look->job.size = size;
	p3_domain_ids(&look->domain, look_add_id, look);
	return rc;
}

static int look_take_alone(struct p3_look *look)
{
	bool first = !look->job.size;
	look->job.size = 1;
	int rc = look_take_member(look, 0, P3_DOMAIN_NO_SLOT, look->alone);
	if (!rc && !look->node[0].mapped)
		rc = first ? -ESRCH : -EPIPE;
	return rc;
}

static int look_ask_domain(struct p3_look *look)
{
	return look->alone ? look_take_alone(look) : look_take_all(look);
}

/* ---- opening ---- */

static int look_enter(struct p3_look *look, uint32_t uid, const char *name)
{
	int rc = p3_domain_peek(&look->domain, P3_DOMAIN_BASE, uid, name);
	if (rc)
		return rc == -ENOENT || rc == -ENOTDIR ? -ESRCH : rc;
	snprintf(look->name, sizeof look->name, "%s", name);
	look->of_domain = true;
	look->job = (struct p3_attach_msg){.uid = uid};
	look->job = look_message(look, P3_ATTACH_JOB);
	return 0;
}

struct search {
	struct p3_look *look;
	uint32_t pid;
};

static bool look_is_below(uint32_t process, uint32_t pid)
{
	for (int k = 0; k < 64 && process > 1; k++) {
		if (process == pid)
			return true;
		process = p3_look_parent(process);
	}
	return false;
}

static bool look_has_member(void *arg, uint32_t uid, const char *name)
{
	struct search *s = arg;
	uint32_t slot = 0, holder;
	if (look_enter(s->look, uid, name))
		return false;
	for (; p3_domain_next_slot(&s->look->domain, &slot, &holder); slot++)
		if (holder && look_is_below(holder, s->pid))
			return true;
	p3_domain_forget(&s->look->domain);
	s->look->of_domain = false;
	return false;
}

/* Find the domain of a process, or of a process below it; if there is none, look at the
 * process alone.  Return 0 or -ESRCH. */
static int look_find_member(struct p3_look *look, uint32_t pid)
{
	struct search s = {look, pid};
	struct stat st;
	char path[40];
	if (look_each_domain(look_has_member, &s))
		return look_ask_domain(look);
	snprintf(path, sizeof path, "/proc/%u", pid);
	if (stat(path, &st))
		return -ESRCH;
	look->of_domain = true;
	look->alone = pid;
	look->job = (struct p3_attach_msg){.uid = st.st_uid};
	look->job = look_message(look, P3_ATTACH_JOB);
	return look_ask_domain(look);
}

/* ---- a look at either ---- */

int p3_look_again(struct p3_look *look)
{
	return look->of_domain ? look_ask_domain(look) : p3_look_ask_yod(look);
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

static int look_ask_first(struct p3_look *look)
{
	int rc = p3_look_ask_yod(look);
	return rc ? rc : p3_look_ask_hosts(look);
}

static int look_keep(struct p3_look *look, int rc, struct p3_look **look_out)
{
	if (rc)
		p3_look_close(look);
	else
		*look_out = look;
	return rc;
}

int p3_look_open_domain(const char *name, struct p3_look **look_out)
{
	struct p3_look *look = look_create(-1);
	if (!look)
		return -ENOMEM;
	int rc = p3_domain_is_name(name) ? look_enter(look, geteuid(), name) : -ESRCH;
	return look_keep(look, rc ? rc : look_ask_domain(look), look_out);
}

int p3_look_open(uint32_t pid, struct p3_look **look_out)
{
	struct p3_look *look = look_create(p3_look_connect(pid));
	if (!look)
		return -ENOMEM;
	int rc = look->sock == -ESRCH ? look_find_member(look, pid)
		 : look->sock < 0     ? look->sock
				      : look_ask_first(look);
	return look_keep(look, rc, look_out);
}

int p3_look_open_socket(int sock, struct p3_look **look_out)
{
	struct p3_look *look = look_create(sock);
	return look ? look_keep(look, look_ask_first(look), look_out) : -ENOMEM;
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
