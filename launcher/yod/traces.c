/* SPDX-License-Identifier: BSD-3-Clause */
/* The trace files of the hosts of a job, which yod writes. */
#include "launcher/yod/agentsin.h"
#include "launcher/yod/say.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Name a host's file: "job.c1.trace" for job.trace.  Return false if it is too long. */
static bool name_of(const struct p3_agents *a, uint32_t host, char name[PATH_MAX])
{
	const char *path = a->opt->trace, *slash = strrchr(path, '/');
	const char *dot = strrchr(slash ? slash + 1 : path, '.');
	size_t stem = dot ? (size_t)(dot - path) : strlen(path);
	return snprintf(name, PATH_MAX, "%.*s.%s%s", (int)stem, path,
		       a->hosts->host[host].name, path + stem) < PATH_MAX;
}

static void say_cannot(const char *path, int err)
{
	p3_say("--trace: '%s' cannot be written: %s; expected a file in a directory "
	       "that you can write to",
		path, strerror(err));
}

static int open_one(struct p3_agents *a, uint32_t host)
{
	char name[PATH_MAX];
	if (!name_of(a, host, name)) {
		say_cannot(a->opt->trace, ENAMETOOLONG);
		return -ENAMETOOLONG;
	}
	a->link[host].trace =
		open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
	int rc = a->link[host].trace < 0 ? -errno : 0;
	if (rc)
		say_cannot(name, -rc);
	return rc;
}

int p3_agents_open_traces(struct p3_agents *a)
{
	int rc = 0;
	for (uint32_t h = 0; a->opt->trace && h < a->hosts->n && !rc; h++)
		rc = open_one(a, h);
	return rc;
}

static void close_one(struct p3_agents *a, uint32_t host)
{
	if (a->link[host].trace >= 0 && close(a->link[host].trace))
		a->trace_lost = true;
	a->link[host].trace = -1;
}

static void append(struct p3_agents *a, uint32_t host, const char *bytes, size_t len)
{
	int fd = a->link[host].trace;
	while (len && fd >= 0) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			p3_say("--trace: the file of host %s cannot be written: %s; "
			       "the rest of its traces is missing; see df",
				a->hosts->host[host].name, strerror(errno));
			a->trace_lost = true;
			close_one(a, host);
			return;
		}
		bytes += n;
		len -= (size_t)n;
	}
}

bool p3_agents_on_trace(struct p3_agents *a, uint32_t host, const char *bytes, size_t len)
{
	struct p3_frame f = {
		.op = P3_FRAME_ROOM, .value = P3_FRAMES_TRACE, .number = len};
	if (len > P3_FRAMES_ROOM)
		return false;
	append(a, host, bytes, len);
	p3_frames_send(&a->link[host].conn, f, NULL);
	return true;
}

bool p3_agents_close_traces(struct p3_agents *a)
{
	for (uint32_t h = 0; h < a->hosts->n; h++)
		close_one(a, h);
	return !a->trace_lost;
}
