/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers, ends and cards, which concern the ranks of all hosts. */
#include "launcher/clock.h"
#include "launcher/yod/agentsin.h"
#include "launcher/yod/say.h"
#include "shm/job.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

void p3_agents_tell_all(struct p3_agents *a, struct p3_frame f, const void *bytes)
{
	for (uint32_t h = 0; h < a->hosts->n; h++)
		if (!a->link[h].closed)
			p3_frames_send(&a->link[h].conn, f, bytes);
}

/* ---- signals ---- */

static uint64_t bit(int sig)
{
	return 1ull << sig;
}

/* Keep a signal for nodes that are yet to start.  A stop and its end undo each other. */
static void keep(struct p3_agents *a, int sig)
{
	if (sig == SIGTSTP)
		a->early_signals &= ~bit(SIGCONT);
	if (sig == SIGCONT)
		a->early_signals &= ~bit(SIGTSTP);
	a->early_signals |= bit(sig);
}

void p3_agents_signal(struct p3_agents *a, int sig)
{
	if (a->go_sent)
		p3_agents_tell_all(
			a, (struct p3_frame){.op = P3_FRAME_SIGNAL, .value = sig}, NULL);
	else
		keep(a, sig);
}

void p3_agents_pass_signals(struct p3_agents *a)
{
	for (int sig = 1; sig < 64; sig++)
		if (a->early_signals & bit(sig))
			p3_agents_signal(a, sig);
	a->early_signals = 0;
}

/* ---- barriers ---- */

/*
 * Every agent gets releases and ends in the order in which yod sends them, and does
 * nothing about a barrier by itself.  So the ranks of all hosts see the same result.
 * A frame with the number of an earlier barrier is ignored.
 */
static void release(struct p3_agents *a, int status, uint32_t ended)
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
	release(a, 0, P3_JOB_NO_RANK);
}

/* The time doubles with each report, as on one host. */
void p3_agents_say_barrier(struct p3_agents *a)
{
	char late[200] = "";
	size_t n = 0;
	for (uint32_t h = 0; h < a->hosts->n && n + 1 < sizeof late; h++)
		if (!a->link[h].in_barrier)
			n += (size_t)snprintf(late + n, sizeof late - n, "%s%s",
				n ? ", " : "", a->hosts->host[h].name);
	p3_say("ranks wait in PtlXBarrier for %.3g s (--why-after), not all of "
	       "these hosts: %s; ptlstat --hosts why %d tells more",
		(double)a->why_ms / 1000, late, (int)a->jid);
	a->why_ms *= 2;
	a->why_at = P3_NEVER;
}

void p3_agents_on_broken(struct p3_agents *a, uint32_t rank)
{
	release(a, EPIPE, rank);
}

/* ---- cards ---- */

static void send_cards(struct p3_agents *a)
{
	struct p3_frame f = {.op = P3_FRAME_CARDS,
		.number = a->card_len,
		.len = a->card_len * a->opt->size};
	p3_agents_tell_all(a, f, a->cards);
	a->cards_n = 0;
	for (uint32_t i = 0; i < a->opt->size; i++)
		a->rank[i].carded = false;
}

/* Answer if all cards have come, or if one can never come. */
static void see_to_cards(struct p3_agents *a)
{
	if (!a->cards_n)
		return;
	if (a->cards_n == a->opt->size) {
		send_cards(a);
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
	see_to_cards(a);
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
	see_to_cards(a);
}
