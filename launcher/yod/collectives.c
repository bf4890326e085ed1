/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services of yod for the ranks of all hosts: barriers, cards, news of ends, the input of
 * rank 0, and the output of all ranks
 */
#include "launcher/yod/remote.h"
#include "launcher/loop.h"
#include "shm/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void p3_agents_tell_all(struct p3_agents *a, struct p3_frame f, const void *bytes)
{
	for (uint32_t h = 0; h < a->hosts->n; h++)
		p3_frames_send(&a->link[h].conn, f, bytes);
}

/* ---- barriers ---- */

/* Every agent gets releases and ends in the order in which yod sends them, and does
 * nothing about a barrier by itself.  So the ranks of all hosts see the same result.
 * A frame with the number of an earlier barrier is ignored. */
void p3_agents_release(struct p3_agents *a, int status, uint32_t ended)
{
	a->barrier_since = P3_NEVER;
	struct p3_frame f = {.op = P3_FRAME_RELEASED,
		.number = a->round++,
		.value = status,
		.node = ended};
	for (uint32_t h = 0; h < a->hosts->n; h++)
		a->link[h].in_barrier = false;
	p3_agents_tell_all(a, f, NULL);
}

void p3_agents_on_barrier(struct p3_uplink *l, uint64_t round, bool came)
{
	struct p3_agents *a = l->agents;
	if (round != a->round || a->gone_n)
		return;
	uint32_t n = 0;
	l->in_barrier = came;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		n += a->link[h].in_barrier;
	a->barrier_since = n ? p3_earlier(a->barrier_since, p3_now_ms()) : P3_NEVER;
	if (n == a->hosts->n)
		p3_agents_release(a, 0, P3_JOB_NO_RANK);
}

void p3_agents_name_late(const struct p3_agents *a, char *text, size_t size)
{
	size_t n = 0;
	text[0] = '\0';
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (!a->link[h].in_barrier && n + 1 < size)
			n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "",
				a->hosts->host[h].name);
}

/* ---- cards ---- */

/* Answer if all cards have come, or if one can never come. */
static void agents_see_to_cards(struct p3_agents *a)
{
	struct p3_frame f = {.op = P3_FRAME_CARDS};
	if (!a->cards_n)
		return;
	if (a->cards_n == a->opt->size) {
		f.len = (uint64_t)P3_JOB_CARD_LEN * a->opt->size;
		p3_agents_tell_all(a, f, a->cards);
		a->cards_n = 0;
		for (uint32_t i = 0; i < a->opt->size; i++)
			a->rank[i].carded = false;
		return;
	}
	while (f.node < a->opt->size && (!a->rank[f.node].gone || a->rank[f.node].carded))
		f.node++;
	f.value = EPIPE;
	if (f.node < a->opt->size)
		p3_agents_tell_all(a, f, NULL);
}

bool p3_agents_on_card(struct p3_agents *a, uint32_t rank, const char *card, size_t len)
{
	if (len != P3_JOB_CARD_LEN)
		return false;
	memcpy(a->cards + rank * len, card, len);
	a->cards_n += !a->rank[rank].carded;
	a->rank[rank].carded = true;
	agents_see_to_cards(a);
	return true;
}

/* ---- ends ---- */

void p3_agents_on_gone(struct p3_agents *a, uint32_t rank)
{
	if (a->rank[rank].gone)
		return;
	a->rank[rank].gone = true;
	a->gone_n++;
	a->barrier_since = P3_NEVER; /* the agents fail it */
	p3_agents_tell_all(a, (struct p3_frame){.op = P3_FRAME_GONE, .node = rank}, NULL);
	agents_see_to_cards(a);
}

/* ---- input; rank 0 is on the first host ---- */

static bool forward_take_input(void *arg, uint32_t i, const char *bytes, size_t len)
{
	struct p3_agents *a = arg;
	struct p3_frame f = {.op = P3_FRAME_INPUT, .node = i, .len = len};
	p3_frames_send(&a->link[0].conn, f, bytes);
	return true;
}

void p3_forward_begin_input(struct p3_agents *a)
{
	int fd = p3_taps_open(a->stdin_fd);
	if (fd >= 0 && !p3_taps_add(a->input, 0, fd))
		return;
	p3_taps_close(a->input, 0);
	(void)forward_take_input(a, 0, NULL, 0);
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
	p3_frames_send(&a->link[h].conn, f, NULL);
}

/* Bytes that a file does not take are lost, and their rank goes on: as on one host, a
 * full disk is no reason to end it, and later bytes may find room.  Name the first such
 * file; p3_forward_say_lost() names the ranks of all. */
static void forward_moved_to_file(struct p3_drain *d, size_t n, int err)
{
	struct p3_agents *a = d->arg;
	uint32_t i = (uint32_t)(d - a->files);
	if (err == EPIPE) {
		p3_drain_close(d);
		n = 0;
	} else if (err) {
		if (!a->output_lost)
			p3_outdir_say_lost(a->opt->output_dir, i / 2, (int)(i % 2), err);
		a->output_lost = a->rank[i / 2].lost = true;
	}
	forward_moved_output(a, i, n);
}

bool p3_forward_take(struct p3_agents *a, uint32_t i, const char *bytes, size_t len)
{
	return a->files ? p3_drain_take(&a->files[i], bytes, len)
			: p3_output_take(a->c.output, i, bytes, len);
}

bool p3_forward_owes(void *agents)
{
	const struct p3_agents *a = agents;
	for (uint32_t i = 0; a->files && i < 2 * a->opt->size; i++)
		if (a->files[i].to.fd >= 0 && p3_backlog_len(&a->files[i].bytes))
			return true;
	return false;
}

bool p3_forward_say_lost(const struct p3_agents *a)
{
	char text[200];
	struct p3_ranks ranks = {{{0}}};
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->opt->size; i++)
		if (a->rank[i].lost) {
			p3_ranks_add(&ranks, i);
			n++;
		}
	p3_ranks_print(&ranks, text, sizeof text);
	if (n > 1)
		p3_say("--output-dir: the files of ranks %s in %s lack output", text,
			a->opt->output_dir);
	return !n;
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
	for (uint32_t i = 0; i < 2 * a->opt->size && !rc; i++) {
		if (a->opt->only && !p3_ranks_has(&a->opt->only_ranks, i / 2))
			continue;
		int fd = files ? p3_outdir_file(a->opt->output_dir_fd, i / 2,
					 (int)(i % 2), O_NONBLOCK)
			       : -1;
		rc = !files   ? p3_output_add(a->c.output, i)
		     : fd < 0 ? fd
			      : p3_drain_open(&a->files[i], &a->c.loop, fd);
	}
	return rc;
}

void p3_forward_close(struct p3_agents *a)
{
	p3_taps_destroy(a->input);
	for (uint32_t i = 0; a->files && i < 2 * a->opt->size; i++)
		p3_drain_close(&a->files[i]);
	free(a->files);
}
