/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote memory access of UCX, and a worker that has nothing to do. */
#include "peer_ucx.h"

#include <string.h>

enum { STEP = 64, STEPS = UCX_MEMORY / STEP };

static const ucp_request_param_t plain;
static char word[STEP];

static void want_short(const char *test, uint64_t bytes)
{
	if (bytes < PEER_WORD || bytes > STEP)
		peer_die("%s=%llu: expected %d to %d bytes", test,
			(unsigned long long)bytes, PEER_WORD, STEP);
}

static void fetch(struct side *s, uint64_t bytes, uint64_t round)
{
	(void)round;
	ucx_wait(s, ucp_get_nbx(s->ep, word, bytes, s->address, s->rkey, &plain),
		"ucp_get_nbx");
}

static void put(struct side *s, uint64_t bytes, uint64_t round)
{
	peer_stamp(word, bytes, round);
	ucx_wait(s, ucp_put_nbx(s->ep, word, bytes, s->address, s->rkey, &plain),
		"ucp_put_nbx");
	ucx_wait(s, ucp_ep_flush_nbx(s->ep, &plain), "ucp_ep_flush_nbx");
}

/* A put has been flushed, so a get behind it brings the last one. */
double put_run(struct side *s, uint64_t bytes)
{
	struct peer_plan p = peer_plan_of(s->quick, false, bytes);
	want_short("ack", bytes);
	double ns = ucx_timed(s, put, bytes);
	memset(word, 0, sizeof word);
	fetch(s, bytes, 0);
	peer_check(word, bytes, p.warm + p.batches * p.each - 1);
	return ns;
}

/* Each get begins a step further on, and brings the number of its step. */
static void fetch_step(struct side *s, uint64_t bytes, uint64_t round)
{
	uint64_t step = round % STEPS;
	ucx_wait(s,
		ucp_get_nbx(
			s->ep, word, bytes, s->address + step * STEP, s->rkey, &plain),
		"ucp_get_nbx");
	peer_check(word, bytes, step);
}

double get_run(struct side *s, uint64_t bytes)
{
	want_short("get", bytes);
	for (uint64_t i = 0; i < STEPS; i++) {
		peer_stamp(word, bytes, i);
		ucx_wait(s,
			ucp_put_nbx(s->ep, word, bytes, s->address + i * STEP, s->rkey,
				&plain),
			"ucp_put_nbx");
	}
	ucx_wait(s, ucp_ep_flush_nbx(s->ep, &plain), "ucp_ep_flush_nbx");
	return ucx_timed(s, fetch_step, bytes);
}

static void look(struct side *s, uint64_t bytes, uint64_t round)
{
	(void)bytes, (void)round;
	ucp_worker_progress(s->worker);
}

double idle_run(struct side *s, uint64_t x)
{
	if (x != 1)
		peer_die("eqget=%llu: expected 1: a worker", (unsigned long long)x);
	return ucx_timed(s, look, 0);
}
