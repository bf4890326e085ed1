/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program for valgrind: two ranks, each with two threads, that communicate as
 * programs do, and without an error unless one is requested.
 *
 *	mp_checked clean | race | leak | undefined
 *
 * race: two threads of rank 0 count in one plain variable; leak: rank 0 loses 1234
 * bytes; undefined: rank 0 branches on a byte that was never written.
 */
#include "mp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 7, SLOTS = 2, LONGEST = 300000, ROOM = 400000 };

static const ptl_size_t lengths[] = {1, 64, 1500, 40000, LONGEST};
#define LENGTHS (sizeof lengths / sizeof lengths[0])

static unsigned plain_count; /* of two threads, with no order between them */

static bool asked(int argc, char **argv, const char *what)
{
	return argc > 1 && !strcmp(argv[1], what);
}

/* Put this thread's messages to the other rank, into a slot of its own, one after the
 * other. */
static void *put_all(void *arg)
{
	unsigned slot = *(unsigned *)arg, to = (mp.rank + 1) % mp.size;
	unsigned char *bytes = malloc(LONGEST);
	mp_fill(bytes, LONGEST, mp.rank);
	ptl_handle_eq_t eq = mp_queue(16);
	ptl_handle_md_t md = mp_bind(bytes, LONGEST, eq, 0);
	for (size_t i = 0, at = 0; i < LENGTHS; at += lengths[i++]) {
		mp_put(md, 0, lengths[i], PTL_ACK_REQ, to, BITS + slot, at, i);
		mp_expect(eq, PTL_EVENT_SEND_END);
		mp_expect(eq, PTL_EVENT_ACK);
	}
	mp_ok(PtlMDUnlink(md));
	mp_ok(PtlEQFree(eq));
	free(bytes);
	return NULL;
}

/* Check every byte of a message from the other rank when its event is there. */
static void take_all(ptl_handle_eq_t eq, unsigned char *slot)
{
	for (size_t i = 0; i < LENGTHS; i++) {
		ptl_event_t ev = mp_expect(eq, PTL_EVENT_PUT_END);
		mp_compare(
			slot + ev.offset, ev.mlength, (mp.rank + 1) % mp.size, "a put");
	}
}

static void get_some(void)
{
	unsigned char *bytes = malloc(LONGEST);
	ptl_handle_eq_t eq = mp_queue(16);
	ptl_handle_md_t md = mp_bind(bytes, LONGEST, eq, 0);
	for (size_t i = 0; i < LENGTHS; i++) {
		mp_get(md, 0, lengths[i], (mp.rank + 1) % mp.size, BITS + SLOTS, 0);
		mp_expect(eq, PTL_EVENT_REPLY_END);
		mp_compare(bytes, lengths[i], mp.rank, "a get");
	}
	mp_ok(PtlMDUnlink(md));
	mp_ok(PtlEQFree(eq));
	free(bytes);
}

static void talk(void)
{
	unsigned char *slot[SLOTS + 1];
	unsigned number[SLOTS] = {0, 1};
	ptl_handle_eq_t eq[SLOTS];
	pthread_t thread;
	for (unsigned i = 0; i <= SLOTS; i++)
		slot[i] = calloc(1, ROOM);
	for (unsigned i = 0; i < SLOTS; i++) {
		eq[i] = mp_queue(64);
		mp_attach(BITS + i, slot[i], ROOM, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
			eq[i]);
	}
	mp_fill(slot[SLOTS], LONGEST, (mp.rank + 1) % mp.size);
	mp_attach(BITS + SLOTS, slot[SLOTS], LONGEST,
		PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
	mp_barrier();
	pthread_create(&thread, NULL, put_all, &number[1]);
	put_all(&number[0]);
	for (unsigned i = 0; i < SLOTS; i++)
		take_all(eq[i], slot[i]);
	pthread_join(thread, NULL);
	get_some();
	mp_end();
	for (unsigned i = 0; i <= SLOTS; i++)
		free(slot[i]);
}

static void *count(void *arg)
{
	for (unsigned i = 0; i < 1000; i++)
		plain_count++;
	return arg;
}

static void count_twice(bool at_once)
{
	pthread_t a, b;
	pthread_create(&a, NULL, count, NULL);
	if (!at_once)
		pthread_join(a, NULL);
	pthread_create(&b, NULL, count, NULL);
	if (at_once)
		pthread_join(a, NULL);
	pthread_join(b, NULL);
}

static __attribute__((noinline)) void lose_memory(void)
{
	char *volatile lost = malloc(1234);
	lost[0] = 1;
	lost = NULL;
}

static __attribute__((noinline)) void decide_by_nothing(void)
{
	char *volatile byte = malloc(1);
	if (*byte == 42)
		puts("forty-two");
	free(byte);
}

int main(int argc, char **argv)
{
	mp_start();
	unsigned rank = mp.rank;
	talk();
	count_twice(rank == 0 && asked(argc, argv, "race"));
	if (rank == 0 && asked(argc, argv, "leak"))
		lose_memory();
	if (rank == 0 && asked(argc, argv, "undefined"))
		decide_by_nothing();
	puts("fine");
	return 0;
}
