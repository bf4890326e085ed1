/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard streams of a job on several hosts: rank 0's input, and the output of all. */
#include "launcher/yod/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- input; rank 0 is on the first host ---- */

static void forward_take_input(void *arg, uint32_t i, const char *bytes, size_t len)
{
	struct p3_agents *a = arg;
	struct p3_frame f = {.op = P3_FRAME_INPUT, .node = i, .len = len};
	if (!a->link[0].closed)
		p3_frames_send(&a->link[0].conn, f, bytes);
}

int p3_forward_begin_input(struct p3_agents *a)
{
	int fd = fcntl(a->stdin_fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : p3_taps_add(a->input, 0, fd);
}

/* ---- output ---- */

/* Tell an agent that n bytes of a stream were handed on, or that it has no reader. */
static void forward_moved_output(void *arg, uint32_t i, size_t n)
{
	struct p3_agents *a = arg;
	uint32_t h = (uint32_t)(p3_hosts_of(a->hosts, i / 2) - a->hosts->host);
	struct p3_frame f = {.op = n ? P3_FRAME_ROOM : P3_FRAME_NO_OUTPUT,
		.node = i / 2,
		.value = (int32_t)(i % 2),
		.number = n};
	if (!a->link[h].closed)
		p3_frames_send(&a->link[h].conn, f, NULL);
}

/* Return the number of ranks of which output is lost, and add them. */
static uint32_t forward_count_lost(const struct p3_agents *a, struct p3_ranks *ranks)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->opt->size; i++)
		if (a->rank[i].lost) {
			p3_ranks_add(ranks, i);
			n++;
		}
	return n;
}

/* Bytes that a file does not take are lost, and their rank goes on: as on one host, a
 * full disk is no reason to end it, and later bytes may find room.  Name the first such
 * file; p3_forward_say_lost() names the ranks of all. */
static void forward_moved_to_file(struct p3_drain *d, size_t n, int err)
{
	struct p3_agents *a = d->arg;
	struct p3_ranks ranks = {{0}};
	uint32_t i = (uint32_t)(d - a->files);
	if (err == EPIPE) {
		p3_drain_close(d);
		n = 0;
	} else if (err) {
		if (!forward_count_lost(a, &ranks))
			p3_outdir_say_lost(a->opt->output_dir, i / 2, (int)(i % 2), err);
		a->rank[i / 2].lost = true;
	}
	forward_moved_output(a, i, n);
}

bool p3_forward_take(struct p3_agents *a, uint32_t i, const char *bytes, size_t len)
{
	return a->files ? p3_drain_take(&a->files[i], bytes, len)
			: p3_output_take(a->c.output, i, bytes, len);
}

bool p3_forward_owes(const struct p3_agents *a)
{
	for (uint32_t i = 0; a->files && i < 2 * a->opt->size; i++)
		if (a->files[i].to.fd >= 0 && p3_backlog_len(&a->files[i].bytes))
			return true;
	return false;
}

/* Return false if output of ranks is lost, after a line. */
bool p3_forward_say_lost(const struct p3_agents *a)
{
	char text[200];
	struct p3_ranks ranks = {{0}};
	uint32_t n = forward_count_lost(a, &ranks);
	p3_ranks_print(&ranks, text, sizeof text);
	if (n > 1)
		p3_say("--output-dir: the files of ranks %s in %s lack output", text,
			a->opt->output_dir);
	return !n;
}

static int forward_open_stream(struct p3_agents *a, uint32_t i)
{
	if (!a->files)
		return p3_output_add(a->c.output, i);
	int fd = p3_outdir_file(a->opt->output_dir_fd, i / 2, (int)(i % 2));
	return fd < 0 ? fd : p3_drain_open(&a->files[i], &a->c.loop, fd);
}

int p3_forward_open(struct p3_agents *a)
{
	static const int to[2] = {STDOUT_FILENO, STDERR_FILENO};
	bool files = a->opt->output_dir_fd >= 0;
	struct p3_output_conf conf = {.loop = &a->c.loop,
		.ranks = files ? 0 : a->opt->size,
		.plain = !a->opt->tag,
		.remote = true,
		.moved = forward_moved_output,
		.arg = a};
	struct p3_taps_conf input = {.n = 1, .take = forward_take_input, .arg = a};
	a->c.output = p3_output_create(&conf, to);
	a->input = p3_taps_create(&a->c.loop, &input);
	if (!a->c.output || !a->input)
		return -errno;
	if (files && !(a->files = calloc(2 * a->opt->size, sizeof *a->files)))
		return -ENOMEM;
	for (uint32_t i = 0; files && i < 2 * a->opt->size; i++)
		a->files[i] = (struct p3_drain){
			.to.fd = -1, .moved = forward_moved_to_file, .arg = a};
	int rc = 0;
	for (uint32_t i = 0; i < 2 * a->opt->size && !rc; i++)
		if (!a->opt->only || p3_ranks_has(&a->opt->only_ranks, i / 2))
			rc = forward_open_stream(a, i);
	return rc;
}

void p3_forward_close(struct p3_agents *a)
{
	p3_taps_destroy(a->input);
	for (uint32_t i = 0; a->files && i < 2 * a->opt->size; i++)
		p3_drain_close(&a->files[i]);
	free(a->files);
}
