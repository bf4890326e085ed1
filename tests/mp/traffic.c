/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * traffic - verified puts and gets of all sizes between all ranks, until one of them
 * dies.
 *
 * With every peer one operation at a time is under way: a put that the peer checks and
 * answers, or a get.  A rank that sees a peer's death (an END that failed) ends with
 * status 0; no other end is in order.  A silent peer is probed with an empty put, which
 * fails if it is dead; silence for 10 s is an error.
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA = 1, OKAY = 2, NOBODYS = 3, MOST = 400000, PROBE_MS = 100 };

static struct peer {
	unsigned rank;
	uint64_t seq;   /* of the own operation */
	uint64_t heard; /* time of the last message, ns */
	struct patience patience;
	uint64_t probed;
	char *in; /* destination of its puts */
	char *got;
	ptl_handle_md_t out, here;
} peer[MP_MOST];
static ptl_handle_eq_t eq;
static uint64_t done;

static void hear_from(struct peer *p)
{
	p->heard = now_ns();
	p->patience = patience_begin();
}

static ptl_size_t length_of(unsigned from, unsigned to, uint64_t seq)
{
	static const ptl_size_t most[] = {16, 100, 4000, 20000, MOST};
	uint64_t dice = mp_mix(seq * 65537 + from * 257 + to);
	return (dice >> 8) % most[dice % 5];
}

static void next_operation(struct peer *p)
{
	uint64_t seq = ++p->seq;
	ptl_size_t length = length_of(mp.rank, p->rank, seq);
	ptl_size_t cut = mp_cut(mp.rank, p->rank, seq);
	if (seq % 3)
		mp_put(p->out, cut, length, PTL_ACK_REQ, p->rank, DATA,
			(ptl_size_t)mp.rank * MOST, seq);
	else
		mp_get(p->here, 0, length, p->rank, DATA, cut);
}

static void finished(struct peer *p)
{
	done++;
	next_operation(p);
}

static struct peer *sender(const ptl_event_t *ev)
{
	for (unsigned r = 0; r < mp.size; r++)
		if (mp.id[r].nid == ev->initiator.nid)
			return &peer[r];
	mp_fail(__FILE__, __LINE__, "an event of nid %u", ev->initiator.nid);
}

static void on_put(const ptl_event_t *ev)
{
	struct peer *p = sender(ev);
	uint64_t seq = ev->hdr_data;
	hear_from(p);
	if (ev->match_bits == OKAY) {
		mp_check(seq == p->seq, "rank %u answers %llu, not %llu", p->rank,
			(unsigned long long)seq, (unsigned long long)p->seq);
		finished(p);
		return;
	}
	mp_check(ev->mlength == length_of(p->rank, mp.rank, seq) &&
			 mp_same(p->in, p->rank, mp.rank, seq, ev->mlength),
		"rank %u's put %llu of %llu bytes is wrong", p->rank,
		(unsigned long long)seq, (unsigned long long)ev->mlength);
	mp_put(p->out, 0, 0, PTL_NO_ACK_REQ, p->rank, OKAY, 0, seq);
}

static void on_reply(const ptl_event_t *ev)
{
	struct peer *p = ev->md.user_ptr;
	hear_from(p);
	mp_check(ev->mlength == length_of(mp.rank, p->rank, p->seq) &&
			 mp_same(p->got, mp.rank, p->rank, p->seq, ev->mlength),
		"get %llu of %llu bytes from rank %u is wrong",
		(unsigned long long)p->seq, (unsigned long long)ev->mlength, p->rank);
	finished(p);
}

/* Return false if a peer is dead. */
static bool on_event(const ptl_event_t *ev)
{
	if (ev->ni_fail_type != PTL_NI_OK)
		return false;
	if (ev->type == PTL_EVENT_PUT_END)
		on_put(ev);
	else if (ev->type == PTL_EVENT_REPLY_END)
		on_reply(ev);
	return true;
}

static void probe_silent(void)
{
	uint64_t now = now_ns();
	for (unsigned r = 0; r < mp.size; r++) {
		struct peer *p = &peer[r];
		if (r == mp.rank || now - p->heard < PROBE_MS * 1000000ull)
			continue;
		mp_check(!patience_is_over(&p->patience),
			"rank %u is silent in operation %llu", r,
			(unsigned long long)p->seq);
		if (now - p->probed < PROBE_MS * 1000000ull)
			continue;
		p->probed = now;
		mp_put(p->out, 0, 0, PTL_NO_ACK_REQ, r, NOBODYS, 0, 0);
	}
}

static ptl_handle_md_t bind_for(struct peer *p, void *start, ptl_size_t length)
{
	ptl_md_t md = {.start = start,
		.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_EVENT_START_DISABLE,
		.user_ptr = p,
		.eq_handle = eq};
	ptl_handle_md_t handle;
	mp_ok(PtlMDBind(mp.ni, md, PTL_RETAIN, &handle));
	return handle;
}

static void open_all(void)
{
	char *in = malloc((size_t)mp.size * MOST), *got = malloc((size_t)mp.size * MOST);
	mp_check(in && got, "no memory");
	eq = mp_queue(4096);
	mp_attach(DATA, in, (ptl_size_t)mp.size * MOST,
		PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_attach(OKAY, NULL, 0, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_attach(DATA, mp_pattern, MP_PATTERN, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	for (unsigned r = 0; r < mp.size; r++) {
		struct peer *p = &peer[r];
		p->rank = r;
		p->in = in + (size_t)r * MOST;
		p->got = got + (size_t)r * MOST;
		p->out = bind_for(p, mp_pattern, MP_PATTERN);
		p->here = bind_for(p, p->got, MOST);
		hear_from(p);
	}
}

static void work(void)
{
	for (unsigned r = 0; r < mp.size; r++) {
		hear_from(&peer[r]);
		if (r != mp.rank)
			next_operation(&peer[r]);
	}
	for (;;) {
		ptl_event_t ev;
		if (mp_next_within(eq, PROBE_MS, &ev) && !on_event(&ev))
			return;
		probe_silent();
	}
}

int main(void)
{
	mp_start();
	open_all();
	int rc = PtlXBarrier();
	if (rc == PTL_FAIL)
		return 0; /* it died before all had come */
	mp_ok(rc);
	work();
	printf("rank %u: %llu operations\n", mp.rank, (unsigned long long)done);
	return 0;
}
