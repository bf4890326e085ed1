/* SPDX-License-Identifier: BSD-3-Clause */
/* The generator of faults on the wire for tests. */
#include "nic/wire/faults.h"

#include <stddef.h>
#include <string.h>

#define P3_MILLION 1000000u

/* Return a random number, by splitmix64: any seed is good. */
static uint64_t draw(struct p3_injector *x)
{
	uint64_t z = x->state += 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

void p3_faults_init(struct p3_injector *x, const struct p3_faults *conf, uint64_t stream)
{
	memset(x, 0, sizeof *x);
	x->conf = *conf;
	x->state = conf->seed * 0xd1342543de82ef95 + stream;
}

static bool strikes(struct p3_injector *x, enum p3_wire_fault fault)
{
	bool hit = draw(x) % P3_MILLION < x->conf.ppm[fault];
	x->injected[fault] += hit;
	return hit;
}

static void copy(struct p3_frame *to, const struct p3_frame *f)
{
	memcpy(to, f, p3_frame_len(f));
}

/* Flip any bit except those of the medium's words. */
static void flip(struct p3_injector *x, struct p3_frame *f, uint32_t len)
{
	const uint64_t from = 8 * offsetof(struct p3_frame, sum);
	uint64_t bit = from + draw(x) % (8 * (uint64_t)len - from);
	((unsigned char *)f)[bit / 8] ^= (unsigned char)(1u << bit % 8);
}

static struct p3_held *free_place(struct p3_injector *x)
{
	for (uint32_t i = 0; i < P3_HELD; i++)
		if (!x->held[i].used)
			return &x->held[i];
	return NULL;
}

static bool hold(
	struct p3_injector *x, const struct p3_frame *f, uint64_t until, bool behind_next)
{
	struct p3_held *h = free_place(x);
	if (!h)
		return false;
	h->used = true;
	h->behind_next = behind_next;
	h->until = until;
	copy(&h->f, f);
	return true;
}

static void release(
	struct p3_injector *x, uint64_t now, bool passed, p3_frame_put *put, void *arg)
{
	for (uint32_t i = 0; i < P3_HELD; i++) {
		struct p3_held *h = &x->held[i];
		if (h->used && (now >= h->until || (passed && h->behind_next)))
			h->used = !put(arg, &h->f, p3_frame_len(&h->f));
	}
}

void p3_faults_release(struct p3_injector *x, uint64_t now, p3_frame_put *put, void *arg)
{
	release(x, now, false, put, arg);
}

static bool is_held(struct p3_injector *x, const struct p3_frame *f, uint64_t now)
{
	uint64_t later = P3_DELAY_LEAST + draw(x) % (P3_DELAY_MOST - P3_DELAY_LEAST);
	if (strikes(x, P3_FAULT_DELAY))
		return hold(x, f, now + later, false);
	return strikes(x, P3_FAULT_REORDER) && hold(x, f, now + P3_REORDER_NS, true);
}

static bool put_damaged(struct p3_injector *x, const struct p3_frame *f, uint32_t len,
	p3_frame_put *put, void *arg)
{
	struct p3_frame bad;
	copy(&bad, f);
	flip(x, &bad, len);
	return put(arg, &bad, len);
}

bool p3_faults_put(struct p3_injector *x, const struct p3_frame *f, uint32_t len,
	uint64_t now, p3_frame_put *put, void *arg)
{
	if (strikes(x, P3_FAULT_DROP) || is_held(x, f, now))
		return true;
	bool done = strikes(x, P3_FAULT_CORRUPT) ? put_damaged(x, f, len, put, arg)
						 : put(arg, f, len);
	if (done && strikes(x, P3_FAULT_DUP))
		(void)put(arg, f, len);
	if (done)
		release(x, now, true, put, arg);
	return done;
}

uint64_t p3_faults_due(const struct p3_injector *x)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < P3_HELD; i++)
		if (x->held[i].used && x->held[i].until < first)
			first = x->held[i].until;
	return first;
}

uint64_t p3_faults_injected(const struct p3_injector *x)
{
	uint64_t sum = 0;
	for (int i = 0; i < P3_FAULT_KINDS; i++)
		sum += x->injected[i];
	return sum;
}
