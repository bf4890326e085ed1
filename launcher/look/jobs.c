/* SPDX-License-Identifier: BSD-3-Clause */
/* The jobs of this machine: each yod listens on a socket whose name tells its user and
 * its job. */
#include "launcher/look/lookin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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
static bool parse_line(const char *line, const char *service, struct name *name_out)
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

static struct names names_read(const char *service)
{
	struct names names = {NULL, 0, 0};
	struct name name;
	char line[400];
	FILE *f = fopen("/proc/net/unix", "re");
	while (f && fgets(line, sizeof line, f))
		if (parse_line(line, service, &name))
			names_add(&names, &name);
	if (f)
		fclose(f);
	if (names.n)
		qsort(names.v, names.n, sizeof names.v[0], by_number);
	return names;
}

void p3_look_jobs(void (*found)(void *arg, uint32_t uid, uint32_t jid), void *arg)
{
	struct names names = names_read(OF_JOBS);
	for (size_t k = 0; k < names.n; k++)
		if (is_ours(&names.v[k]))
			found(arg, names.v[k].uid, names.v[k].jid);
	free(names.v);
}

static socklen_t address(const struct name *name, struct sockaddr_un *at)
{
	size_t len = strlen(name->text);
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(at->sun_path + 1, name->text, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

/* Return true if the kernel says that the socket belongs to the user in its name, and not
 * to another user who took the name. */
static bool is_genuine(int sock, const struct name *name)
{
	struct ucred cred;
	socklen_t len = sizeof cred;
	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
	       cred.uid == name->uid;
}

/* Connect without blocking: a stopped yod may have a full backlog. */
static int connect_name(const struct name *name, int type)
{
	struct sockaddr_un at;
	socklen_t len = address(name, &at);
	int sock = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
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

static int connect_any(const struct names *names, uint32_t jid, int type)
{
	int rc = -ESRCH;
	for (size_t k = 0; k < names->n && rc < 0; k++)
		if (names->v[k].jid == jid) {
			int got = is_ours(&names->v[k]) ? connect_name(&names->v[k], type)
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

/* Connect to the yod of a process's job.  The number of a job is the pid of its topmost
 * process, so try the process and its ancestors. */
static int connect_to(uint32_t pid, const char *service, int type)
{
	struct names names = names_read(service);
	int rc = -ESRCH;
	for (int k = 0; k < PARENTS && pid && rc == -ESRCH; k++) {
		rc = connect_any(&names, pid, type);
		pid = p3_look_parent(pid);
	}
	free(names.v);
	return rc;
}

int p3_look_connect(uint32_t pid)
{
	return connect_to(pid, OF_JOBS, SOCK_SEQPACKET);
}

int p3_look_connect_hosts(uint32_t pid)
{
	return connect_to(pid, OF_HOSTS, SOCK_STREAM);
}
