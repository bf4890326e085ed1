/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: record locks, the directory, sockets, slots and ids. */
#include "shm/domain.h"
#include "shm/fault.h"
#include "shm/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LOCKS   "locks"
#define ROOM    "room"
#define PRESENT ((off_t)1 << 20)
#define RANKS   ((off_t)1 << 27)
#define NIDS    ((off_t)1 << 32)
#define IDS     ((off_t)1 << 50)
#define ALL     ((off_t)0) /* length of a lock: all bytes from its offset on */
/* tries, a millisecond apart, while the directory is being removed */
#define PATIENT        1000
#define DOMAIN_BACKLOG 1024
#define BRIEFLY        50 /* tries, a millisecond apart, while another process reaps */

/* ---- locks ---- */

static int domain_lock(const struct p3_domain *d, short type, off_t at, off_t n)
{
	struct flock l = {
		.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = n};
	int rc;
	if (!p3_domain_holds(d))
		return -EBADF;
	do
		rc = fcntl((int)p3_get(&d->locks), F_SETLK, &l);
	while (rc < 0 && errno == EINTR);
	return rc == 0 ? 0 : errno == EACCES ? -EAGAIN : -errno;
}

/* Find a lock of another process that conflicts with a lock of this type on these bytes;
 * l_type is F_UNLCK if there is none.  Return false if the kernel does not tell. */
static bool domain_ask(
	const struct p3_domain *d, short type, off_t at, off_t n, struct flock *l_out)
{
	*l_out = (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = n};
	return p3_domain_holds(d) && fcntl((int)p3_get(&d->locks), F_GETLK, l_out) == 0;
}

static uint32_t domain_os_pid(const struct flock *l)
{
	return l->l_pid > 0 ? (uint32_t)l->l_pid : 0;
}

/* Return true if another process certainly has such a lock. */
static bool domain_in_the_way(
	const struct p3_domain *d, short type, off_t at, off_t n, struct flock *l_out)
{
	return domain_ask(d, type, at, n, l_out) && l_out->l_type != F_UNLCK;
}

static off_t domain_id_at(uint32_t nid, uint32_t pid)
{
	return IDS + ((off_t)nid << 16) + (off_t)pid;
}

/* Lock one byte.  If another process has the lock, return -EADDRINUSE, and that process
 * in *os_pid_out (0: not known). */
static int domain_take(struct p3_domain *d, short type, off_t at, uint32_t *os_pid_out)
{
	struct flock l;
	int rc = domain_lock(d, type, at, 1);
	bool known = rc == -EAGAIN && domain_in_the_way(d, type, at, 1, &l);
	*os_pid_out = known ? domain_os_pid(&l) : 0;
	return rc == -EAGAIN ? -EADDRINUSE : rc;
}

/* ---- the directory ---- */

bool p3_domain_is_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t n = strspn(name, letters);
	return n && n <= P3_DOMAIN_NAMES && !name[n] && name[0] != '.';
}

static void domain_close_fd(p3_a32 *fd, p3_fd_id file)
{
	int was = (int)p3_get(fd);
	/* A child forked between set and close only leaks the descriptor.  In the other
	 * order it could later close a file of its program that has the same number. */
	p3_set(fd, (uint32_t)-1);
	if (p3_fd_is(was, file))
		close(was);
}

static void domain_set_dir(struct p3_domain *d, int fd)
{
	d->dir_file = p3_fd_file(fd);
	p3_set(&d->dir, (uint32_t)fd);
}

static void domain_set_locks(struct p3_domain *d, int fd)
{
	d->locks_file = p3_fd_file(fd);
	p3_set(&d->locks, (uint32_t)fd);
}

bool p3_domain_holds(const struct p3_domain *d)
{
	return p3_fd_is((int)p3_get(&d->dir), d->dir_file) &&
	       p3_fd_is((int)p3_get(&d->locks), d->locks_file);
}

static int domain_refuse(
	const char *path, const char *what, uid_t owner, struct p3_domain_why *why)
{
	char by[40] = "";
	if (owner != geteuid() && geteuid() != 0)
		snprintf(by, sizeof by, owner ? "have uid %u or root " : "have root ",
			(unsigned)owner);
	snprintf(why->text, sizeof why->text,
		"%s %s; expected a directory of uid %u with mode 0700: %sremove it, or "
		"set PTL3_DOMAIN=" P3_DOMAIN_NONE " to stay alone",
		path, what, (unsigned)geteuid(), by);
	return -EPERM;
}

static int domain_cannot(const char *path, int err, struct p3_domain_why *why)
{
	snprintf(why->text, sizeof why->text,
		"%s: %s; see that it can be made and has room, or set "
		"PTL3_DOMAIN=" P3_DOMAIN_NONE " to stay alone",
		path, strerror(err));
	return -err;
}

static int domain_check(
	const struct stat *st, const char *path, struct p3_domain_why *why)
{
	char what[60];
	snprintf(what, sizeof what, "is uid %u's with mode %04o", (unsigned)st->st_uid,
		(unsigned)st->st_mode & 07777u);
	if (!S_ISDIR(st->st_mode))
		return domain_refuse(path, "is no directory", st->st_uid, why);
	if (st->st_uid != geteuid() || (st->st_mode & 0777) != 0700)
		return domain_refuse(path, what, st->st_uid, why);
	return 0;
}

/* Return the directory's descriptor, or -ENOENT while another process removes it. */
static int domain_open_dir(const char *path, struct p3_domain_why *why)
{
	struct stat st;
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return domain_cannot(path, errno, why);
	FAULT_POINT("domain.made");
	int fd = p3_fd_high(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	if (fd < 0) { /* explain it by the path's owner and mode, or by errno */
		int err = errno;
		bool known = err != ENOENT && lstat(path, &st) == 0 &&
			     domain_check(&st, path, why) != 0;
		return known ? -EPERM : domain_cannot(path, err, why);
	}
	int rc = fstat(fd, &st) ? domain_cannot(path, errno, why)
				: domain_check(&st, path, why);
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

static bool domain_is_named(const struct p3_domain *d)
{
	struct stat here, there;
	return fstat((int)p3_get(&d->locks), &here) == 0 &&
	       fstatat((int)p3_get(&d->dir), LOCKS, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

void p3_domain_none(struct p3_domain *d)
{
	domain_set_dir(d, -1);
	domain_set_locks(d, -1);
	d->slot = P3_DOMAIN_NO_SLOT;
}

/* Try once to enter the domain.  Return -ENOENT or -EAGAIN while another process removes
 * the directory. */
static int domain_open_once(struct p3_domain *d, const char *base, const char *name,
	struct p3_domain_why *why)
{
	int rc = 0;
	p3_domain_none(d);
	snprintf(d->path, sizeof d->path, "%s/ptl3-%u", base, (unsigned)geteuid());
	int fd = domain_open_dir(d->path, why);
	if (fd >= 0) {
		size_t n = strlen(d->path);
		close(fd);
		snprintf(d->path + n, sizeof d->path - n, "/%s", name);
		fd = domain_open_dir(d->path, why);
	}
	if (fd < 0) {
		rc = fd;
	} else {
		domain_set_dir(d, fd);
		fd = p3_fd_high(openat(
			fd, LOCKS, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
		domain_set_locks(d, fd);
		rc = fd < 0 ? domain_cannot(d->path, errno, why) : 0;
	}
	FAULT_POINT("domain.opened");
	rc = rc ? rc : domain_lock(d, F_RDLCK, PRESENT, 1);
	FAULT_POINT("domain.present");
	rc = rc ? rc : domain_is_named(d) ? 0 : -ENOENT;
	if (rc)
		p3_domain_forget(d);
	return rc;
}

/* ---- removal ---- */

static void domain_socket_name(uint32_t slot, char name[16])
{
	snprintf(name, 16, "%u.sock", slot);
}

static void domain_unlink_socket(const struct p3_domain *d, uint32_t slot)
{
	char name[16];
	domain_socket_name(slot, name);
	(void)unlinkat((int)p3_get(&d->dir), name, 0);
}

/* Open a directory to read its names.  Return NULL and errno without one. */
static DIR *domain_read_dir(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

int p3_domain_list(const struct p3_domain *d, uint64_t slots_out[P3_MAX_NODES / 64])
{
	char *end;
	memset(slots_out, 0, P3_MAX_NODES / 8);
	if (!p3_domain_holds(d))
		return -EBADF;
	DIR *dir = domain_read_dir((int)p3_get(&d->dir), ".");
	int rc = dir ? 0 : -errno;
	for (struct dirent *e; dir && (e = readdir(dir));)
		if (*e->d_name >= '0' && *e->d_name <= '9') {
			unsigned long slot = strtoul(e->d_name, &end, 10);
			if (slot < P3_MAX_NODES && strcmp(end, ".sock") == 0)
				slots_out[slot / 64] |= (uint64_t)1 << slot % 64;
		}
	if (dir)
		closedir(dir);
	return rc;
}

/* Remove the domain's files.  The caller has locked PRESENT exclusively, so no other
 * process is in the domain or can enter it. */
static void domain_remove_all(const struct p3_domain *d)
{
	uint64_t slots[P3_MAX_NODES / 64];
	if (p3_domain_list(d, slots) != 0)
		/* "locks" stays, so a later last member, or a sweep, tries again */
		return;
	for (uint32_t i = 0; i < P3_MAX_NODES; i++)
		if (slots[i / 64] >> i % 64 & 1)
			domain_unlink_socket(d, i);
	(void)unlinkat((int)p3_get(&d->dir), ROOM, 0);
	FAULT_POINT("domain.sockets_gone");
	(void)unlinkat((int)p3_get(&d->dir), LOCKS, 0);
	FAULT_POINT("domain.locks_gone");
}

/* Remove another domain if none of its members is alive. */
static void domain_sweep_one(int user, const char *path, const char *name)
{
	struct p3_domain d;
	p3_domain_none(&d);
	snprintf(d.path, sizeof d.path, "%s/%.*s", path, P3_DOMAIN_NAMES, name);
	domain_set_dir(
		&d, openat(user, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	domain_set_locks(
		&d, openat((int)p3_get(&d.dir), LOCKS, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
	bool bare = (int)p3_get(&d.locks) < 0;
	bool over =
		!bare && domain_lock(&d, F_WRLCK, PRESENT, 1) == 0 && domain_is_named(&d);
	FAULT_POINT("domain.sweeping");
	if (over)
		domain_remove_all(&d);
	p3_domain_forget(&d);
	if (over || bare)
		(void)rmdir(d.path); /* succeeds if it is empty */
}

static void domain_sweep_others(const char *base, const char *own)
{
	char path[60];
	snprintf(path, sizeof path, "%s/ptl3-%u", base, (unsigned)geteuid());
	DIR *dir = domain_read_dir(AT_FDCWD, path);
	for (struct dirent *e; dir && (e = readdir(dir));)
		if (p3_domain_is_name(e->d_name) && strcmp(e->d_name, own) != 0)
			domain_sweep_one(dirfd(dir), path, e->d_name);
	if (dir)
		closedir(dir);
}

/* ---- the way in ---- */

int p3_domain_open(struct p3_domain *d, const char *base, const char *name,
	struct p3_domain_why *why)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	int rc = -EINVAL;
	snprintf(why->text, sizeof why->text,
		"the name of a domain is '%.64s'; expected letters, digits, '-', '_' and "
		"'.', %d at most",
		name, P3_DOMAIN_NAMES);
	if (!p3_domain_is_name(name))
		return rc;
	for (int i = 0; i < PATIENT; i++) {
		rc = domain_open_once(d, base, name, why);
		if ((rc != -ENOENT && rc != -EAGAIN) || access(base, F_OK) != 0)
			break;
		if (i > 10)
			nanosleep(&pause, NULL);
	}
	if (!rc)
		domain_sweep_others(base, name);
	if (rc == -EAGAIN)
		snprintf(why->text, sizeof why->text,
			"%s is being made or removed by a process that has stopped; "
			"continue or "
			"end it",
			d->path);
	return rc == -EAGAIN ? -EBUSY : rc;
}

void p3_domain_forget(struct p3_domain *d)
{
	domain_close_fd(&d->locks, d->locks_file);
	domain_close_fd(&d->dir, d->dir_file);
	d->slot = P3_DOMAIN_NO_SLOT;
}

/* ---- for tools ---- */

/* Open a directory that only the user uid may access.  Return a descriptor or -errno. */
static int domain_open_checked(int at, const char *name, uint32_t uid)
{
	struct stat st;
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = fstat(fd, &st) ? -errno : 0;
	if (!rc && (st.st_uid != uid || (st.st_mode & 0777) != 0700))
		rc = -EPERM;
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

int p3_domain_peek(struct p3_domain *d, const char *base, uint32_t uid, const char *name)
{
	p3_domain_none(d);
	snprintf(d->path, sizeof d->path, "%s/ptl3-%u", base, uid);
	int user = domain_open_checked(AT_FDCWD, d->path, uid);
	if (user < 0)
		return user;
	int fd = domain_open_checked(user, name, uid);
	close(user);
	if (fd < 0)
		return fd;
	domain_set_dir(d, fd);
	fd = openat(fd, LOCKS, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int rc = fd < 0 ? -errno : 0;
	domain_set_locks(d, fd);
	if (rc)
		p3_domain_forget(d);
	return rc;
}

bool p3_domain_next_slot(const struct p3_domain *d, uint32_t *slot, uint32_t *os_pid_out)
{
	struct flock l;
	for (; *slot < P3_MAX_NODES; ++*slot)
		if (domain_in_the_way(d, F_WRLCK, *slot, 1, &l)) {
			*os_pid_out = domain_os_pid(&l);
			return true;
		}
	return false;
}

struct domain_id_search {
	const struct p3_domain *d;
	void (*found)(void *arg, uint32_t nid, uint32_t pid, uint32_t os_pid);
	void *arg;
	uint32_t left; /* ids still to report: locks that come and go cannot prolong it */
};

/* Report the ids between from and to.  F_GETLK returns any lock of that range, not the
 * first one, so search the bytes in front of the lock, too. */
static void domain_find_ids(struct domain_id_search *s, off_t from, off_t to)
{
	struct flock l;
	while (from < to && s->left &&
		domain_in_the_way(s->d, F_WRLCK, from, to - from, &l)) {
		off_t end = l.l_len ? l.l_start + l.l_len : to;
		for (off_t at = l.l_start; at < end && s->left; at++, s->left--)
			s->found(s->arg, (uint32_t)((at - IDS) >> 16),
				(uint32_t)(at - IDS) & 0xffff, domain_os_pid(&l));
		domain_find_ids(s, from, l.l_start);
		from = end;
	}
}

void p3_domain_ids(const struct p3_domain *d,
	void (*found)(void *arg, uint32_t nid, uint32_t pid, uint32_t os_pid), void *arg)
{
	struct domain_id_search s = {d, found, arg, 4 * P3_MAX_NODES};
	domain_find_ids(&s, IDS, domain_id_at(UINT32_MAX, P3_DOMAIN_PIDS));
}

/* ---- sockets ---- */

static bool domain_socket_path(
	const struct p3_domain *d, uint32_t slot, struct sockaddr_un *at_out)
{
	char name[16];
	domain_socket_name(slot, name);
	*at_out = (struct sockaddr_un){.sun_family = AF_UNIX};
	int n = snprintf(
		at_out->sun_path, sizeof at_out->sun_path, "%s/%s", d->path, name);
	return n > 0 && (size_t)n < sizeof at_out->sun_path;
}

static int domain_make_socket(void)
{
	int fd = p3_fd_high(
		socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	return fd < 0 ? -errno : fd;
}

static int domain_open_socket(const struct p3_domain *d, uint32_t slot)
{
	struct sockaddr_un at;
	if (!domain_socket_path(d, slot, &at))
		return -ENAMETOOLONG;
	int fd = domain_make_socket();
	if (fd < 0)
		return fd;
	domain_unlink_socket(d, slot); /* which a dead owner has left */
	FAULT_POINT("domain.unbound");
	int rc = bind(fd, (struct sockaddr *)&at, sizeof at) ? -errno : 0;
	FAULT_POINT("domain.bound");
	if (!rc && chmod(at.sun_path, 0600) == 0 && listen(fd, DOMAIN_BACKLOG) == 0)
		return fd;
	rc = rc ? rc : -errno;
	close(fd);
	return rc;
}

int p3_domain_call(const struct p3_domain *d, uint32_t slot)
{
	struct sockaddr_un at;
	if (!domain_socket_path(d, slot, &at))
		return -ENAMETOOLONG;
	int fd = domain_make_socket();
	FAULT_POINT("domain.calling");
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
		return fd;
	int rc = -errno;
	close(fd);
	return rc;
}

/* ---- slots and ids ---- */

int p3_domain_take_this_slot(
	struct p3_domain *d, uint32_t slot, int *listen_out, uint32_t *os_pid_out)
{
	int rc = domain_take(d, F_WRLCK, slot, os_pid_out);
	if (rc)
		return rc;
	FAULT_POINT("domain.slot_taken");
	int fd = domain_open_socket(d, slot);
	if (fd < 0) {
		(void)domain_lock(d, F_UNLCK, slot, 1);
		return fd;
	}
	FAULT_POINT("domain.listens");
	d->slot = slot;
	*listen_out = fd;
	return 0;
}

static int domain_take_slot_once(struct p3_domain *d, uint32_t n, int *listen_out)
{
	uint32_t holder;
	for (uint32_t i = 0; i < n; i++) {
		int rc = p3_domain_take_this_slot(d, i, listen_out, &holder);
		if (rc != -EADDRINUSE)
			return rc;
	}
	return -EUSERS;
}

/* Take a slot, and try again for a while: another process may hold the only free slot
 * while it unlinks a dead owner's socket. */
int p3_domain_take_slot(struct p3_domain *d, uint32_t n, int *listen_out)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	int rc = domain_take_slot_once(d, n, listen_out);
	for (int i = 1; i < BRIEFLY && rc == -EUSERS; i++) {
		nanosleep(&pause, NULL);
		rc = domain_take_slot_once(d, n, listen_out);
	}
	return rc;
}

int p3_domain_take_id(
	struct p3_domain *d, uint32_t nid, uint32_t pid, uint32_t *os_pid_out)
{
	return domain_take(d, F_WRLCK, domain_id_at(nid, pid), os_pid_out);
}

int p3_domain_take_nid(struct p3_domain *d, uint32_t nid, uint32_t *os_pid_out)
{
	return domain_take(d, F_RDLCK, NIDS + (off_t)nid, os_pid_out);
}

/* ---- families of jobs ---- */

static off_t domain_rank_at(uint32_t job, uint32_t rank)
{
	return RANKS + (off_t)job * P3_MAX_NODES + (off_t)rank;
}

int p3_domain_take_rank(
	struct p3_domain *d, uint32_t job, uint32_t rank, uint32_t *os_pid_out)
{
	return domain_take(d, F_WRLCK, domain_rank_at(job, rank), os_pid_out);
}

bool p3_domain_has_rank(
	const struct p3_domain *d, uint32_t job, uint32_t rank, uint32_t *os_pid_out)
{
	struct flock l;
	bool has = domain_in_the_way(d, F_WRLCK, domain_rank_at(job, rank), 1, &l);
	*os_pid_out = has ? domain_os_pid(&l) : 0;
	return has;
}

uint32_t p3_domain_count(const struct p3_domain *d, uint32_t n)
{
	uint32_t count = 0, holder;
	for (uint32_t i = 0; p3_domain_next_slot(d, &i, &holder) && i < n; i++)
		count++;
	return count;
}

/* Read the capacity that a member has written, and write this one if there is none. */
static int domain_read_room(
	const struct p3_domain *d, uint32_t wish, uint32_t *capacity_out)
{
	char text[16], *end = text;
	int dir = (int)p3_get(&d->dir);
	snprintf(text, sizeof text, "%u", wish);
	if (symlinkat(text, dir, ROOM) != 0 && errno != EEXIST)
		return -errno;
	FAULT_POINT("domain.room_made");
	ssize_t n = readlinkat(dir, ROOM, text, sizeof text - 1);
	text[n > 0 ? n : 0] = '\0';
	unsigned long capacity = strtoul(text, &end, 10);
	*capacity_out = (uint32_t)capacity;
	return *end || !capacity || capacity > P3_MAX_NODES ? -EPROTO : 0;
}

/* A process that can lock PRESENT exclusively is alone, so dead members have left any
 * link that it finds.  No process can enter until this one has written its own
 * capacity. */
int p3_domain_take_room(struct p3_domain *d, uint32_t wish, uint32_t *capacity_out)
{
	bool alone = domain_lock(d, F_WRLCK, PRESENT, 1) == 0;
	if (!p3_domain_holds(d))
		return -EBADF;
	FAULT_POINT("domain.room_asked");
	if (alone)
		(void)unlinkat((int)p3_get(&d->dir), ROOM, 0);
	FAULT_POINT("domain.room_gone");
	int rc = domain_read_room(d, wish, capacity_out);
	if (alone)
		(void)domain_lock(d, F_RDLCK, PRESENT, 1);
	FAULT_POINT("domain.room_taken");
	return rc;
}

/* ---- node ids of a launcher ---- */

int p3_domain_take_nids(
	struct p3_domain *d, uint32_t least, uint32_t n, uint32_t *first_out)
{
	struct flock l;
	for (off_t at = least; at + n < UINT32_MAX;) {
		int rc = domain_lock(d, F_WRLCK, NIDS + at, n);
		*first_out = (uint32_t)at;
		if (rc != -EAGAIN)
			return rc;
		if (!domain_in_the_way(d, F_WRLCK, NIDS + at, n, &l))
			continue;
		if (!l.l_len) /* all bytes that follow are locked; no member does so */
			break;
		at = l.l_start + l.l_len - NIDS;
	}
	return -EUSERS;
}

bool p3_domain_reap(struct p3_domain *d, uint32_t slot)
{
	if (slot == d->slot || domain_lock(d, F_WRLCK, slot, 1) != 0)
		return false;
	FAULT_POINT("domain.reaping");
	domain_unlink_socket(d, slot);
	FAULT_POINT("domain.reaped");
	(void)domain_lock(d, F_UNLCK, slot, 1);
	return true;
}

static bool domain_is_lost(const struct p3_domain *d, off_t at, uint32_t os_pid)
{
	struct flock l;
	return domain_ask(d, F_WRLCK, at, 1, &l) &&
	       (l.l_type == F_UNLCK || l.l_pid != (pid_t)os_pid);
}

bool p3_domain_is_anothers(const struct p3_domain *d, uint32_t slot, uint32_t os_pid)
{
	struct flock l;
	return domain_in_the_way(d, F_WRLCK, slot, 1, &l) && l.l_pid != (pid_t)os_pid;
}

bool p3_domain_is_anothers_id(
	const struct p3_domain *d, uint32_t nid, uint32_t pid, uint32_t os_pid)
{
	struct flock l;
	return pid >= P3_DOMAIN_PIDS ||
	       (domain_in_the_way(d, F_WRLCK, domain_id_at(nid, pid), 1, &l) &&
		       l.l_pid != (pid_t)os_pid);
}

bool p3_domain_is_over(const struct p3_domain *d, uint32_t slot, uint32_t os_pid)
{
	return domain_is_lost(d, slot, os_pid);
}

bool p3_domain_has_id(
	const struct p3_domain *d, uint32_t nid, uint32_t pid, uint32_t os_pid)
{
	return pid < P3_DOMAIN_PIDS && !domain_is_lost(d, domain_id_at(nid, pid), os_pid);
}

/* ---- the end ---- */

void p3_domain_leave(struct p3_domain *d)
{
	char user[sizeof d->path];
	if (!p3_domain_holds(d)) {
		p3_domain_forget(d);
		return;
	}
	if (d->slot != P3_DOMAIN_NO_SLOT)
		domain_unlink_socket(d, d->slot);
	FAULT_POINT("domain.leaving");
	(void)domain_lock(d, F_UNLCK, 0, ALL);
	FAULT_POINT("domain.unlocked");
	bool last = domain_lock(d, F_WRLCK, PRESENT, 1) == 0 && domain_is_named(d);
	FAULT_POINT("domain.asked");
	if (last)
		domain_remove_all(d);
	p3_domain_forget(d);
	if (!last)
		return;
	(void)rmdir(d->path);
	FAULT_POINT("domain.dir_gone");
	snprintf(user, sizeof user, "%s", d->path);
	*strrchr(user, '/') = '\0';
	(void)rmdir(user);
}
