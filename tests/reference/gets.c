/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gets.c - fetch from every other rank, and count START and END events in pairs
 *
 * Each rank has one entry and one queue for each peer, which gets from it GETS times, one
 * after the other, without a word before the first.  In such a queue GET_START and
 * GET_END come by turns, in the getter's queue REPLY_START and REPLY_END do; the last
 * GET_END is followed by the UNLINK event.  The rank that answers learns only from these
 * counts that it may end.
 */
#include "ref.h"

#include <stdint.h>

enum { INDEX = 11, BITS = 0x47, GETS = 14, MOST = 1 << 18 };

static const size_t lengths[GETS] = {
	8, 128, 4096, 0, MOST, 1024, 65536, 1, 8192, 16384, 100, 2048, 131072, 8};

static uint8_t *shown, *fetched;
static ptl_handle_eq_t *served_eq, reply_eq;

struct pairs {
	unsigned int starts, ends;
	ptl_seq_t link;
};

/* Count an event; a START must follow an END, and an END the START of its operation. */
static void count(struct pairs *p, const ptl_event_t *event, ptl_event_kind_t start,
	ptl_event_kind_t end)
{
	if (event->type == start) {
		CHECK(p->starts == p->ends);
		p->starts++;
		p->link = event->link;
	} else if (event->type == end) {
		CHECK(p->starts == p->ends + 1);
		CHECK(p->link == event->link);
		p->ends++;
	} else {
		FAIL("unexpected %s after %u pairs", PtlEventKindStr(event->type),
			p->ends);
	}
}

static void attach(unsigned int peer)
{
	ptl_md_t md;

	served_eq[peer] = mp_queue(2 * GETS + 1);
	md = mp_region(
		shown, MOST, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, served_eq[peer]);
	md.threshold = GETS;
	ref_attach(INDEX, mp.id[peer], BITS, md, PTL_UNLINK);
}

static void fetch(unsigned int peer, size_t bytes, struct pairs *p)
{
	ptl_handle_md_t handle;
	unsigned int before = p->ends;
	ptl_event_t event;

	mp_ok(PtlMDBind(
		mp.ni, mp_region(fetched, bytes, 0, reply_eq), PTL_RETAIN, &handle));
	mp_ok(PtlGet(handle, mp.id[peer], INDEX, 0, BITS, 0));
	while (p->ends == before) {
		event = ref_wait(reply_eq);
		CHECK(ref_rank(event.initiator) == peer);
		count(p, &event, PTL_EVENT_REPLY_START, PTL_EVENT_REPLY_END);
	}
	CHECK(event.mlength == bytes && event.rlength == bytes);
	mp_ok(PtlMDUnlink(event.md_handle));
	mp_compare(fetched, bytes, peer, "data");
}

/* Read the events of all gets of a peer, which may still come. */
static void serve(unsigned int peer)
{
	struct pairs p = {0};

	while (p.ends < GETS) {
		ptl_event_t event = ref_wait(served_eq[peer]);

		CHECK(ref_rank(event.initiator) == peer);
		count(&p, &event, PTL_EVENT_GET_START, PTL_EVENT_GET_END);
		CHECK(event.rlength == lengths[p.starts - 1]);
	}
	CHECK(ref_wait(served_eq[peer]).type == PTL_EVENT_UNLINK);
}

int main(void)
{
	struct pairs *replies;

	ref_start();
	shown = ref_memory(MOST);
	fetched = ref_memory(MOST);
	mp_fill(shown, MOST, mp.rank);
	served_eq = ref_memory(mp.size * sizeof *served_eq);
	replies = ref_memory(mp.size * sizeof *replies);
	reply_eq = mp_queue(16);
	for (unsigned int peer = 0; peer < mp.size; peer++)
		if (peer != mp.rank)
			attach(peer);
	for (unsigned int i = 0; i < GETS; i++)
		for (unsigned int s = 1; s < mp.size; s++)
			fetch((mp.rank + s) % mp.size, lengths[i],
				&replies[(mp.rank + s) % mp.size]);
	for (unsigned int s = 1; s < mp.size; s++)
		serve((mp.rank + s) % mp.size);
	ref_end();
}
