/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics of nodes for --stats, and their traces in one file. */
#include "launcher/yod/remote.h"
#include "launcher/look/look.h"
#include "launcher/loop.h"
#include "shm/layout.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FATE_LEN 24

struct stats_node {
	int published; /* segment of the last life that joined; -1: none, or already
		        * read */
	bool joined;   /* it has joined at least once */
	bool lost;     /* the counters of a life could not be read */
	bool ended;
	int status;
	int64_t began_ms;
	int64_t ran_ms;
	int64_t cpu_ms;
	uint64_t count[P3_COUNTERS];
};

struct p3_stats {
	uint32_t size;
	struct stats_node node[];
};

struct p3_stats *p3_stats_create(uint32_t size)
{
	struct p3_stats *s = calloc(1, sizeof *s + size * sizeof s->node[0]);
	if (!s)
		return NULL;
	s->size = size;
	for (uint32_t i = 0; i < size; i++)
		s->node[i].published = -1;
	return s;
}

void p3_stats_destroy(struct p3_stats *s)
{
	for (uint32_t i = 0; s && i < s->size; i++)
		p3_close(s->node[i].published);
	free(s);
}

void p3_stats_started(struct p3_stats *s, uint32_t rank)
{
	s->node[rank].began_ms = p3_now_ms();
}

/* ---- counters ---- */

/* Add the counters of a life that has ended, or is about to end. */
static void stats_take_counters(struct stats_node *n)
{
	uint64_t now[P3_COUNTERS];
	uint32_t nnodes = p3_trace_nodes(n->published);
	if (n->published < 0)
		return;
	bool ok =
		nnodes && pread(n->published, now, sizeof now,
				  (off_t)p3_layout_of(nnodes).counters_off) == sizeof now;
	close(n->published);
	n->published = -1;
	n->lost |= !ok;
	for (unsigned c = 0; ok && c < P3_COUNTERS; c++)
		n->count[c] += now[c];
}

void p3_stats_joined(struct p3_stats *s, uint32_t rank, int published)
{
	struct stats_node *n = &s->node[rank];
	stats_take_counters(n);
	n->joined = true;
	n->published = fcntl(published, F_DUPFD_CLOEXEC, 0);
	n->lost |= n->published < 0;
}

void p3_stats_ended(struct p3_stats *s, uint32_t rank, pid_t pid, int wait_status)
{
	struct stats_node *n = &s->node[rank];
	siginfo_t info;
	struct rusage ru = {.ru_utime = {0, 0}};
	stats_take_counters(n);
	n->ended = true;
	n->status = wait_status;
	n->ran_ms = p3_now_ms() - n->began_ms;
	/* libc's waitid() does not return the CPU time */
	if (!syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT, &ru)) {
		n->cpu_ms =
			(int64_t)ru.ru_utime.tv_sec * 1000 + ru.ru_utime.tv_usec / 1000;
		n->cpu_ms +=
			(int64_t)ru.ru_stime.tv_sec * 1000 + ru.ru_stime.tv_usec / 1000;
	}
}

/* ---- agents ---- */

const void *p3_stats_record(const struct p3_stats *s, uint32_t rank, size_t *len_out)
{
	*len_out = sizeof s->node[rank];
	return &s->node[rank];
}

void p3_stats_take(struct p3_stats *s, uint32_t rank, const void *record, size_t len)
{
	struct stats_node *n = &s->node[rank];
	if (len != sizeof *n)
		return;
	memcpy(n, record, len);
	n->published = -1;
}

/* ---- output ---- */

static void stats_print_node(
	const char *name, const struct stats_node *n, const char *end)
{
	const uint64_t *c = n->count, takes = c[P3_C_LEASE_HOST] + c[P3_C_LEASE_NIC];
	/* the percentage of all takes of the lease that were by the program's threads */
	double share = takes ? 100.0 * (double)c[P3_C_LEASE_HOST] / (double)takes : 0;
	p3_say("%5s %11" PRIu64 " %14" PRIu64 " %11" PRIu64 " %14" PRIu64 " %9" PRIu64
	       " %9" PRIu64 " %10" PRIu64 " %10" PRIu64 " %13" PRIu64 " %13" PRIu64
	       " %13" PRIu64 " %6.1f %9" PRIu64 " %6" PRIu64 " %9.3f %9.3f  %s",
		name, c[P3_C_SENT], c[P3_C_SENT_BYTES], c[P3_C_RECEIVED],
		c[P3_C_RECEIVED_BYTES], c[P3_C_DROPS], c[P3_C_TRUNCATED],
		c[P3_C_PUT_INLINE], c[P3_C_PUT_EAGER], c[P3_C_BULK_BYTES],
		c[P3_C_CMA_BYTES], c[P3_C_DIRECT_BYTES], share, c[P3_C_WAKES],
		c[P3_C_PARK_LATE], (double)n->ran_ms / 1000, (double)n->cpu_ms / 1000,
		end);
}

void p3_stats_print(const struct p3_stats *s)
{
	struct stats_node all = {.published = -1};
	char fate[FATE_LEN], end[FATE_LEN * 2], rank[12];
	p3_say("%5s %11s %14s %11s %14s %9s %9s %10s %10s %13s %13s %13s %6s %9s %6s %9s "
	       "%9s  %s",
		"rank", "sent", "bytes", "received", "bytes", "dropped", "truncated",
		"inline", "eager", "window-bytes", "cma-bytes", "heap-bytes", "host%",
		"wakes", "late", "wall-s", "cpu-s", "end");
	for (uint32_t i = 0; i < s->size; i++) {
		const struct stats_node *n = &s->node[i];
		bool killed = WIFSIGNALED(n->status);
		if (n->ended)
			snprintf(fate, sizeof fate, killed ? "signal %d" : "status %d",
				killed ? WTERMSIG(n->status) : WEXITSTATUS(n->status));
		snprintf(end, sizeof end, "%s%s",
			n->ended      ? fate
			: n->began_ms ? "left behind"
				      : "unborn",
			!n->joined ? ", never joined"
			: n->lost  ? ", not all counted"
				   : "");
		snprintf(rank, sizeof rank, "%u", i);
		stats_print_node(rank, n, end);
		for (unsigned c = 0; c < P3_COUNTERS; c++)
			all.count[c] += n->count[c];
		all.cpu_ms += n->cpu_ms;
		if (n->ran_ms > all.ran_ms)
			all.ran_ms = n->ran_ms;
	}
	stats_print_node("all", &all, "");
}

/* ---- the trace file ---- */

struct p3_tracefile {
	int fd;                 /* -1: the bytes are sent */
	struct p3_agent *agent; /* NULL: this is yod itself */
	bool failed;
	bool began; /* this process adds the blocks */
	uint32_t blocks;
	char path[];
};

void p3_tracefile_put(struct p3_tracefile *f, const void *bytes, size_t len)
{
	const char *at = bytes;
	while (len && !f->failed) {
		ssize_t n = f->agent ? p3_agent_trace(f->agent, at, len)
				     : write(f->fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			p3_say("--trace: %s: cannot be written: %s; the traces of the "
			       "nodes that ended last are missing (see df)",
				f->path, strerror(errno));
			f->failed = true;
			return;
		}
		at += n;
		len -= (size_t)n;
	}
}

int p3_tracefile_open(
	const char *path, struct p3_agent *agent, struct p3_tracefile **file_out)
{
	const int how = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK;
	struct p3_tracefile *f = calloc(1, sizeof *f + strlen(path) + 1);
	int fd = agent || !f ? -1 : open(path, how, 0666);
	if (f && (agent || fd >= 0)) {
		*f = (struct p3_tracefile){.fd = fd, .agent = agent};
		strcpy(f->path, path);
		*file_out = f;
		return 0;
	}
	int rc = f ? -errno : -ENOMEM;
	p3_say("--trace: '%s' cannot be written: %s; expected a file in a directory that "
	       "you can write to",
		path, strerror(-rc));
	free(f);
	return rc;
}

void p3_tracefile_begin(struct p3_tracefile *f, uint32_t size, uint32_t jid)
{
	uint32_t clock = p3_trace_clock();
	struct p3_tracefile_header h = {.magic = P3_TRACEFILE_MAGIC,
		.version = P3_TRACE_VERSION,
		.size = size,
		.jid = jid,
		.clock = clock,
		.began = p3_trace_look_now(clock)};
	p3_tracefile_put(f, &h, sizeof h);
	f->began = true;
}

void p3_tracefile_add(
	struct p3_tracefile *f, uint32_t node, int published, enum p3_trace_fate fate)
{
	struct p3_trace_taken *t = p3_look_trace(published);
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
	p3_tracefile_put(f, &b, sizeof b);
	p3_tracefile_put(f, t->entry, t->n * sizeof t->entry[0]);
	f->blocks++;
	free(t);
}

bool p3_tracefile_close(struct p3_tracefile *f)
{
	if (!f)
		return true;
	if (!f->failed && f->began && !f->blocks)
		p3_say("--trace: %s is empty: no node had a trace; expected programs "
		       "that call PtlNIInit, with PTL3_TRACE not off",
			f->path);
	bool good = (f->fd < 0 || close(f->fd) == 0) && !f->failed;
	free(f);
	return good;
}
