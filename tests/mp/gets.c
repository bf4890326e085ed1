/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gets dropped COUNT - COUNT gets that the target drops, then all still works
 * gets both COUNT - every rank has many long gets outstanding at its neighbour
 *
 * A dropped get gives its initiator no event, and takes nothing away for good.
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 1, NOBODYS = 2, LONGEST = 200000, FLIGHT = 64 };

static ptl_handle_eq_t eq;

static void put_and_ack(unsigned to)
{
	ptl_handle_md_t md = mp_bind(mp_pattern, MP_PATTERN, eq, 0);
	mp_put(md, 0, 300, PTL_ACK_REQ, to, BITS, 0, 0);
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
	ptl_event_t ev = mp_expect(eq, PTL_EVENT_ACK);
	mp_check(ev.mlength == 300, "ACK of %llu bytes", (unsigned long long)ev.mlength);
	mp_ok(PtlMDUnlink(md));
}

static void get_and_look(unsigned from, ptl_size_t length)
{
	static char got[LONGEST];
	ptl_handle_md_t md = mp_bind(got, length, eq, 0);
	memset(got, 0, length);
	mp_get(md, 0, length, from, BITS, 1000);
	(void)mp_expect(eq, PTL_EVENT_REPLY_END);
	mp_check(memcmp(got, mp_pattern + 1000, length) == 0,
		"wrong bytes in a get of %llu", (unsigned long long)length);
	mp_ok(PtlMDUnlink(md));
}

static void after(unsigned peer)
{
	static const ptl_size_t lengths[] = {0, 8, 40, 41, 1000, 5000, LONGEST};
	put_and_ack(peer);
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
		get_and_look(peer, lengths[i]);
}

/* ---- dropped ---- */

/* Send many gets that the target drops: small ones, ones whose reply would fit the
 * response ring, and long ones.  mp_get() waits while there is no room for one more. */
static void drop_many(uint64_t count)
{
	static char got[LONGEST];
	static const ptl_size_t lengths[] = {8, 64, 3000, LONGEST};
	ptl_handle_md_t md = mp_bind(got, LONGEST, eq, 0);
	uint64_t start = now_ns();
	for (uint64_t i = 0; i < count; i++)
		mp_get(md, 0, lengths[i % 4], (mp.rank + 1) % mp.size, NOBODYS, 0);
	printf("%llu dropped gets: %.2f M/s\n", (unsigned long long)count,
		(double)count * 1e3 / (double)(now_ns() - start));
	mp_ok(PtlMDUnlink(md));
}

/* Sleeps between the looks give the CPU to the other rank. */
static void wait_for_drops(uint64_t count)
{
	ptlx_stats_t st = {.struct_size = sizeof st};
	struct patience p = patience_begin();
	ptl_event_t ev;
	do {
		st.struct_size = sizeof st;
		mp_check(!mp_poll(eq, &ev), "an event of a dropped get: %s",
			PtlEventKindStr(ev.type));
		mp_ok(PtlXStats(mp.ni, &st));
		mp_check(!patience_is_over(&p), "%llu of %llu drops are counted",
			(unsigned long long)st.drops, (unsigned long long)count);
		sleep_ms(1);
	} while (st.drops < count);
	mp_check(st.drops == count, "too many drops");
}

static void dropped(uint64_t count)
{
	if (mp.rank == 0)
		drop_many(count);
	if (mp.rank == 1 % mp.size)
		wait_for_drops(count);
	mp_barrier();
	after((mp.rank + 1) % mp.size);
	mp_barrier();
}

/* ---- both ways ---- */

struct flight {
	char *got;
	ptl_handle_md_t md;
	ptl_size_t length;
	uint64_t seq;
};

static void launch(struct flight *f, unsigned peer, uint64_t seq)
{
	f->seq = seq;
	f->length = mp_mix(seq * 31 + mp.rank) % LONGEST;
	if (seq % 4 == 0)
		f->length %= 100;
	memset(f->got, 0, f->length);
	ptl_md_t md = {.start = f->got,
		.length = f->length,
		.threshold = 1,
		.options = PTL_MD_EVENT_START_DISABLE,
		.user_ptr = f,
		.eq_handle = eq};
	mp_ok(PtlMDBind(mp.ni, md, PTL_UNLINK, &f->md));
	mp_get(f->md, 0, f->length, peer, BITS, mp_cut(mp.rank, peer, seq));
}

static void land(struct flight *f, unsigned peer, const ptl_event_t *ev)
{
	mp_check(ev->ni_fail_type == PTL_NI_OK && ev->mlength == f->length,
		"get %llu: fail %u, %llu of %llu bytes", (unsigned long long)f->seq,
		ev->ni_fail_type, (unsigned long long)ev->mlength,
		(unsigned long long)f->length);
	mp_check(mp_same(f->got, mp.rank, peer, f->seq, f->length),
		"get %llu: wrong bytes", (unsigned long long)f->seq);
}

static void both(uint64_t count)
{
	static struct flight flight[FLIGHT];
	unsigned peer = (mp.rank + 1) % mp.size;
	uint64_t next = 0, done = 0, unlinks = 0, start = now_ns();
	for (int i = 0; i < FLIGHT; i++) {
		flight[i].got = malloc(LONGEST);
		mp_check(flight[i].got, "no memory");
		launch(&flight[i], peer, next++);
	}
	while (done < next || unlinks < next) {
		ptl_event_t ev = mp_next(eq);
		struct flight *f = ev.md.user_ptr;
		if (ev.type == PTL_EVENT_REPLY_END && ++done)
			land(f, peer, &ev);
		else if (ev.type == PTL_EVENT_UNLINK && ++unlinks && next < count)
			launch(f, peer, next++);
	}
	if (mp.rank == 0)
		printf("%d long gets at a time both ways: %.0f gets/s\n", FLIGHT,
			(double)count * 1e9 / (double)(now_ns() - start));
	mp_barrier();
	after(peer);
	mp_barrier();
}

int main(int argc, char **argv)
{
	mp_start();
	mp_check(argc == 3, "usage: gets dropped|both COUNT");
	uint64_t count = strtoull(argv[2], NULL, 0);
	static char sink[4096];
	eq = mp_queue(1024);
	mp_attach(BITS, mp_pattern, MP_PATTERN, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	mp_attach(BITS, sink, sizeof sink, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	mp_barrier();
	if (strcmp(argv[1], "dropped") == 0)
		dropped(count);
	else
		both(count);
	mp_end();
	return 0;
}
