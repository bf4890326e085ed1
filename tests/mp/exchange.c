/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exchange MIB TIMES - exchanges (PtlGetPut) of bytes that long gets read all the time
 *
 * Rank 0 has MIB MiB.  All ranks except the last get the whole of them again and again,
 * one beginning before the others end; the last one exchanges 64 bytes at changing
 * places.  They go on until TIMES exchanges are done and each rank has had three gets.
 * So no operation waits until the others stop.
 *
 * Each exchange writes one word eight times, which a get has whole or not at all, and
 * returns the bytes that the last exchange at this place wrote.
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 1, ENOUGH = 2, LEAST = 3, PLACES = 16, LEN = 64 };

static ptl_handle_eq_t eq;
static unsigned char *bytes;
static ptl_size_t length;
static unsigned times;

/* Rank 0 counts reports: a getting rank reports after its first get and after two more,
 * the exchanging rank once. */
static uint64_t enough;
static ptl_handle_md_t nothing, look;
static uint64_t seen;

static void say_enough(void)
{
	mp_put(nothing, 0, 0, PTL_NO_ACK_REQ, 0, ENOUGH, 0, 0);
}

static unsigned all_of_it(void)
{
	return 2 * (mp.size - 2) + 1;
}

static bool is_counted(unsigned least)
{
	mp_get(look, 0, sizeof seen, 0, ENOUGH + 1, 0);
	(void)mp_expect(eq, PTL_EVENT_REPLY_END);
	return seen >= least;
}

/* Return a place; some cross the borders of slices and chunks. */
static ptl_size_t place(unsigned i)
{
	return length / PLACES * (i % PLACES) + (i % PLACES ? 65536 - LEN / 2 : 0);
}

/* ---- ranks that get ---- */

static void check_words(void)
{
	for (unsigned i = 0; i < PLACES; i++)
		for (unsigned k = 8; k < LEN; k += 8)
			mp_check(!memcmp(bytes + place(i), bytes + place(i) + k, 8),
				"a get has half of an exchange at %llu",
				(unsigned long long)place(i));
}

static void get_on(void)
{
	ptl_handle_md_t md = mp_bind(bytes, length, eq, 0);
	unsigned gets = 0;
	/* pause: a stagger between ranks */
	sleep_ms(mp.rank * 5);
	do {
		mp_get(md, 0, length, 0, BITS, 0);
		ptl_event_t ev = mp_expect(eq, PTL_EVENT_REPLY_END);
		mp_check(ev.mlength == length, "a short get");
		check_words();
		if (++gets == 1 || gets == LEAST)
			say_enough();
	} while (gets < LEAST || !is_counted(all_of_it()));
	printf("rank %u: %u gets\n", mp.rank, gets);
}

/* ---- the exchanger ---- */

static void exchange_on(void)
{
	uint64_t put[LEN / 8], got[LEN / 8], last[PLACES] = {0};
	uint64_t *took = calloc(times, sizeof *took);
	ptl_handle_md_t in = mp_bind(got, LEN, eq, 0);
	ptl_handle_md_t out = mp_bind(put, LEN, PTL_EQ_NONE, 0);
	mp_check(took, "no memory");
	while (!is_counted(mp.size - 2))
		sleep_ms(1);
	for (unsigned i = 0; i < times || !is_counted(all_of_it()); i++) {
		uint64_t start = now_ns();
		for (unsigned k = 0; k < LEN / 8; k++)
			put[k] = i + 1;
		mp_ok(PtlGetPut(in, out, mp.id[0], MP_PORTAL, 0, BITS, place(i), 0));
		(void)mp_expect(eq, PTL_EVENT_REPLY_END);
		for (unsigned k = 0; k < LEN / 8; k++)
			mp_check(got[k] == last[i % PLACES], "exchange %u gave %llu", i,
				(unsigned long long)got[k]);
		last[i % PLACES] = i + 1;
		if (i < times)
			took[i] = now_ns() - start;
		if (i + 1 == times)
			say_enough();
	}
	double median = (double)mp_median(took, times) / 1e6;
	printf("%u exchanges: median %.1f ms, most %.1f ms\n", times, median,
		(double)took[times - 1] / 1e6);
	free(took);
}

/* ---- the target of all ---- */

static void serve(void)
{
	ptl_handle_eq_t done = mp_queue(64);
	mp_attach(ENOUGH, NULL, 0, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, done);
	mp_attach(ENOUGH + 1, &enough, sizeof enough,
		PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
	mp_attach(BITS, bytes, length,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
	mp_barrier();
	while (enough < all_of_it()) {
		(void)mp_expect(done, PTL_EVENT_PUT_END);
		enough++;
	}
}

int main(int argc, char **argv)
{
	mp_check(argc == 3, "usage: yod -sz N exchange MIB TIMES");
	length = (ptl_size_t)atoi(argv[1]) << 20;
	times = (unsigned)atoi(argv[2]);
	mp_start();
	mp_check(mp.size >= 3, "three ranks at least, please");
	bytes = calloc(1, length);
	mp_check(bytes, "no memory");
	eq = mp_queue(64);
	nothing = mp_bind(NULL, 0, PTL_EQ_NONE, 0);
	look = mp_bind(&seen, sizeof seen, eq, 0);
	if (mp.rank == 0) {
		serve();
	} else {
		mp_barrier();
		if (mp.rank < mp.size - 1)
			get_on();
		else
			exchange_on();
	}
	mp_end();
	return 0;
}
