/* SPDX-License-Identifier: BSD-3-Clause */
/* Writing the trace file of a job. */
#include "launcher/yod/tracefile.h"
#include "launcher/yod/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct p3_tracefile {
	const char *path;
	int fd; /* -1: the bytes are sent */
	ssize_t (*send)(void *arg, const void *bytes, size_t len);
	void *arg;
	bool failed;
	uint32_t blocks;
};

static void put(struct p3_tracefile *f, const void *bytes, size_t len)
{
	const char *at = bytes;
	while (len && !f->failed) {
		ssize_t n = f->send ? f->send(f->arg, at, len) : write(f->fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			p3_say("--trace: %s: cannot be written: %s; the traces of the "
			       "nodes that ended last are missing",
				f->path, strerror(errno));
			f->failed = true;
			return;
		}
		at += n;
		len -= (size_t)n;
	}
}

static struct p3_tracefile *new_file(const char *path)
{
	struct p3_tracefile *f = calloc(1, sizeof *f);
	if (f)
		*f = (struct p3_tracefile){.path = path, .fd = -1};
	return f;
}

static void begin(struct p3_tracefile *f, uint32_t size, uint32_t jid)
{
	uint32_t clock = p3_trace_clock();
	struct p3_tracefile_header h = {.magic = P3_TRACEFILE_MAGIC,
		.version = P3_TRACE_VERSION,
		.size = size,
		.jid = jid,
		.clock = clock,
		.began = p3_trace_look_now(clock)};
	put(f, &h, sizeof h);
}

int p3_tracefile_create(
	const char *path, uint32_t size, uint32_t jid, struct p3_tracefile **file_out)
{
	struct p3_tracefile *f = new_file(path);
	if (!f)
		return -ENOMEM;
	f->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
	if (f->fd < 0) {
		int rc = -errno;
		free(f);
		return rc;
	}
	begin(f, size, jid);
	*file_out = f;
	return 0;
}

int p3_tracefile_create_there(const char *path, uint32_t size, uint32_t jid,
	ssize_t (*send)(void *arg, const void *bytes, size_t len), void *arg,
	struct p3_tracefile **file_out)
{
	struct p3_tracefile *f = new_file(path);
	if (!f)
		return -ENOMEM;
	f->send = send;
	f->arg = arg;
	begin(f, size, jid);
	*file_out = f;
	return 0;
}

void p3_tracefile_add(
	struct p3_tracefile *f, uint32_t node, int published, enum p3_trace_fate fate)
{
	struct p3_trace_taken *t = p3_trace_read_fd(published);
	if (!t && errno != ENODATA)
		p3_say("--trace: rank %u: its trace cannot be read: %s", node,
			errno == EPROTO ? "it holds something else" : strerror(errno));
	if (!t)
		return;
	struct p3_traceblock_header b = {.magic = P3_TRACEBLOCK_MAGIC,
		.node = node,
		.fate = fate,
		.now = p3_trace_look_now(p3_trace_clock()), /* not the clock that the
							     * node names */
		.taken = *t};
	put(f, &b, sizeof b);
	put(f, t->entry, t->n * sizeof t->entry[0]);
	f->blocks++;
	free(t);
}

bool p3_tracefile_close(struct p3_tracefile *f)
{
	if (!f)
		return true;
	if (!f->failed && !f->blocks)
		p3_say("--trace: %s is empty: no node had a trace; expected programs "
		       "that call PtlNIInit, with PTL3_TRACE not off",
			f->path);
	bool good = (f->fd < 0 || close(f->fd) == 0) && !f->failed;
	free(f);
	return good;
}
