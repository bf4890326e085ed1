/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to the agents of all hosts: signals, barriers, cards, ends, trace files. */
#include "launcher/yod/remote.h"
#include "launcher/loop.h"
#include "shm/job.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void p3_agents_tell_all(struct p3_agents *a, struct p3_frame f, const void *bytes)
{
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (!a->link[h].closed)
			p3_frames_send(&a->link[h].conn, f, bytes);
}

/* ---- signals ---- */

static uint64_t agents_signal_bit(int sig)
{
	return 1ull << sig;
}

void p3_agents_signal(struct p3_agents *a, int sig)
{
	if (a->go_sent) {
		p3_agents_tell_all(
			a, (struct p3_frame){.op = P3_FRAME_SIGNAL, .value = sig}, NULL);
		return;
	}
	/* Keep it for nodes that are yet to start.  A stop and its end undo each
	 * other. */
	if (sig == SIGTSTP)
		a->early_signals &= ~agents_signal_bit(SIGCONT);
	if (sig == SIGCONT)
		a->early_signals &= ~agents_signal_bit(SIGTSTP);
	a->early_signals |= agents_signal_bit(sig);
}

void p3_agents_pass_signals(struct p3_agents *a)
{
	for (int sig = 1; sig < 64; sig++)
		if (a->early_signals & agents_signal_bit(sig))
			p3_agents_signal(a, sig);
	a->early_signals = 0;
}

/* ---- barriers ---- */

/* Every agent gets releases and ends in the order in which yod sends them, and does
 * nothing about a barrier by itself.  So the ranks of all hosts see the same result.
 * A frame with the number of an earlier barrier is ignored. */
void p3_agents_release(struct p3_agents *a, int status, uint32_t ended)
{
	a->why_at = P3_NEVER;
	struct p3_frame f = {.op = P3_FRAME_RELEASED,
		.number = a->round++,
		.value = status,
		.node = ended};
	for (uint32_t h = 0; h < a->hosts->n; h++)
		a->link[h].in_barrier = false;
	p3_agents_tell_all(a, f, NULL);
}

void p3_agents_on_barrier(struct p3_agents *a, uint32_t host, uint64_t round)
{
	if (round != a->round || a->gone_n)
		return;
	a->link[host].in_barrier = true;
	if (a->why_ms && a->why_at == P3_NEVER)
		a->why_at = p3_now_ms() + a->why_ms;
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (!a->link[h].in_barrier)
			return;
	p3_agents_release(a, 0, P3_JOB_NO_RANK);
}

uint32_t p3_agents_name_late(const struct p3_agents *a, char *text, size_t size)
{
	uint32_t late = 0;
	size_t n = 0;
	text[0] = '\0';
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (!a->link[h].in_barrier && ++late && n + 1 < size)
			n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "",
				a->hosts->host[h].name);
	return late;
}

/* The time doubles with each report, as on one host. */
void p3_agents_say_barrier(struct p3_agents *a)
{
	char late[200];
	(void)p3_agents_name_late(a, late, sizeof late);
	p3_say("ranks wait in PtlXBarrier for %.3g s (--why-after), not all of these "
	       "hosts: %s; ptlstat --hosts why %d tells more",
		(double)a->why_ms / 1000, late, (int)a->jid);
	a->why_ms *= 2;
	a->why_at = P3_NEVER;
}

/* ---- cards ---- */

/* Answer if all cards have come, or if one can never come. */
static void agents_see_to_cards(struct p3_agents *a)
{
	if (!a->cards_n)
		return;
	if (a->cards_n == a->opt->size) {
		struct p3_frame f = {.op = P3_FRAME_CARDS,
			.number = a->card_len,
			.len = a->card_len * a->opt->size};
		p3_agents_tell_all(a, f, a->cards);
		a->cards_n = 0;
		for (uint32_t i = 0; i < a->opt->size; i++)
			a->rank[i].carded = false;
		return;
	}
	for (uint32_t i = 0; i < a->opt->size; i++)
		if (a->rank[i].gone && !a->rank[i].carded) {
			struct p3_frame f = {
				.op = P3_FRAME_CARDS, .value = EPIPE, .node = i};
			p3_agents_tell_all(a, f, NULL);
			return;
		}
}

bool p3_agents_on_card(struct p3_agents *a, uint32_t rank, const char *card, size_t len)
{
	if (!len || len > P3_JOB_CARD_LEN || (a->card_len && len != a->card_len))
		return false;
	a->card_len = len;
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
	p3_agents_tell_all(a, (struct p3_frame){.op = P3_FRAME_GONE, .node = rank}, NULL);
	agents_see_to_cards(a);
}

/* ---- trace files ---- */

/* Open "job.c1.trace" for job.trace and the host c1. */
static int agents_trace_open(struct p3_agents *a, uint32_t host)
{
	char *name;
	const char *path = a->opt->trace, *slash = strrchr(path, '/');
	const char *dot = strrchr(slash ? slash + 1 : path, '.');
	int stem = dot ? (int)(dot - path) : (int)strlen(path);
	if (asprintf(&name, "%.*s.%s%s", stem, path, a->hosts->host[host].name,
		    path + stem) < 0)
		return -ENOMEM;
	int fd = p3_tracefile_open(name);
	free(name);
	a->link[host].trace = fd;
	return fd < 0 ? fd : 0;
}

int p3_agents_open_traces(struct p3_agents *a)
{
	int rc = 0;
	for (uint32_t h = 0; a->opt->trace && h < a->hosts->n && !rc; h++)
		rc = agents_trace_open(a, h);
	return rc;
}

static void agents_trace_close(struct p3_agents *a, uint32_t host)
{
	if (a->link[host].trace >= 0 && close(a->link[host].trace))
		a->trace_lost = true;
	a->link[host].trace = -1;
}

static void agents_trace_append(
	struct p3_agents *a, uint32_t host, const char *bytes, size_t len)
{
	int fd = a->link[host].trace;
	while (len && fd >= 0) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			p3_say("--trace: the file of host %s cannot be written: %s; the "
			       "rest of its traces is missing; see df",
				a->hosts->host[host].name, strerror(errno));
			a->trace_lost = true;
			agents_trace_close(a, host);
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
	if (len > P3_STREAM_ROOM)
		return false;
	agents_trace_append(a, host, bytes, len);
	p3_frames_send(&a->link[host].conn, f, NULL);
	return true;
}

bool p3_agents_close_traces(struct p3_agents *a)
{
	for (uint32_t h = 0; h < a->hosts->n; h++)
		agents_trace_close(a, h);
	return !a->trace_lost;
}
