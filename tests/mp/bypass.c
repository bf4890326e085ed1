/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bypass - transfers of 1 MiB go on while one side, or both, compute.
 *
 *	put, get	the target computes until the initiator has the ACK or REPLY_END
 *	put_and_go	the initiator computes until the target has the PUT_END
 *	get_and_go	likewise, the GET_END, and the bytes are there
 *	both		both compute until the bytes are in the target's memory
 *
 * Two ranks.  A computing rank does not enter the library; it hears of the other one by
 * memory that both map.  A transfer that waits for a call of it does not end.  Every byte
 * is checked.
 */
#include "mp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	MIB = 1 << 20,
	SHOTS = 24, /* pauses of 1 to 20 ms before each of them let the NICs sleep in
		     * some cases and not in others */
	PUT_BITS = 1,
	GET_BITS = 2,
	ROOM_BITS = 3
};

static char *buffer; /* target: memory for puts and gets */
static ptl_handle_eq_t eq;
static ptl_handle_md_t md;
static uint64_t shot;
static volatile uint64_t *over; /* shared: the shots that are over */

/* Let both ranks map one page: rank 1 makes it, and tells rank 0 where. */
static void share(void)
{
	static int at[2];
	char path[64];
	int fd = memfd_create("bypass", MFD_CLOEXEC);
	mp_check(fd >= 0 && ftruncate(fd, 4096) == 0, "no memory");
	at[0] = getpid();
	at[1] = fd;
	mp_attach(ROOM_BITS, at, sizeof at, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	mp_barrier();
	if (mp.rank == 0) {
		ptl_handle_md_t room = mp_bind(at, sizeof at, eq, 0);
		mp_get(room, 0, sizeof at, 1, ROOM_BITS, 0);
		(void)mp_expect(eq, PTL_EVENT_REPLY_END);
		mp_ok(PtlMDUnlink(room));
		snprintf(path, sizeof path, "/proc/%d/fd/%d", at[0], at[1]);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	over = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	mp_check(over != MAP_FAILED, "rank 1's memory cannot be mapped");
}

/* Compute until this shot is over, or a byte has the expected value. */
static void compute(const volatile char *byte, unsigned char want)
{
	struct patience p = patience_begin();
	while (byte ? *byte != (char)want : *over <= shot)
		mp_check(!patience_is_over(&p),
			"it does not come while this rank computes");
}

static void pause_before(uint64_t seq)
{
	/* pause: messages at random distances find the target asleep or awake */
	sleep_ms(1 + (unsigned)(mp_mix(seq) % 20));
}

/* ---- the target computes ---- */

static void one_put(void)
{
	mp_put(md, mp_cut(0, 1, shot), MIB, PTL_ACK_REQ, 1, PUT_BITS, 0, 0);
	bool ended = false;
	ptl_event_t ev;
	while ((ev = mp_next(eq)).type != PTL_EVENT_ACK)
		ended |= ev.type == PTL_EVENT_SEND_END && ev.ni_fail_type == PTL_NI_OK;
	mp_check(ended && ev.mlength == MIB, "ACK of %llu bytes",
		(unsigned long long)ev.mlength);
}

static void one_get(void)
{
	static char got[MIB];
	ptl_handle_md_t here = mp_bind(got, MIB, eq, 0);
	memset(got, 0, MIB);
	mp_get(here, 0, MIB, 1, GET_BITS, 0);
	ptl_event_t ev = mp_expect(eq, PTL_EVENT_REPLY_END);
	mp_check(ev.mlength == MIB && mp_same(got, 1, 0, 0, MIB), "wrong bytes in a get");
	mp_ok(PtlMDUnlink(here));
}

static void against_computing(void (*one)(void), bool is_put)
{
	for (int i = 0; i < SHOTS; i++, shot++) {
		mp_barrier();
		if (mp.rank == 1) {
			compute(NULL, 0);
			mp_check(!is_put ||
					 mp_expect(eq, PTL_EVENT_PUT_END).mlength == MIB,
				"short put");
			continue;
		}
		pause_before(shot);
		one();
		*over = shot + 1;
	}
	mp_barrier();
	if (mp.rank == 1 && is_put)
		mp_check(mp_same(buffer, 0, 1, shot - 1, MIB), "wrong bytes in a put");
}

/* ---- the initiator computes ---- */

static void put_and_go(void)
{
	for (int i = 0; i < SHOTS; i++, shot++) {
		mp_barrier();
		if (mp.rank == 1) {
			(void)mp_expect(eq, PTL_EVENT_PUT_END);
			*over = shot + 1;
			mp_check(
				mp_same(buffer, 0, 1, shot, MIB), "wrong bytes in a put");
			continue;
		}
		mp_put(md, mp_cut(0, 1, shot), MIB, PTL_NO_ACK_REQ, 1, PUT_BITS, 0, 0);
		compute(NULL, 0);
		(void)mp_expect(eq, PTL_EVENT_SEND_END);
	}
}

static void get_and_go(ptl_handle_eq_t served)
{
	static char got[MIB];
	unsigned char last = mp_pattern[mp_cut(1, 0, 0) + MIB - 1];
	ptl_handle_md_t here = mp_bind(got, MIB, eq, 0);
	for (int i = 0; i < SHOTS; i++, shot++) {
		memset(got, 0, MIB);
		got[MIB - 1] = (char)~last;
		mp_barrier();
		if (mp.rank == 1) {
			(void)mp_expect(served, PTL_EVENT_GET_END);
			*over = shot + 1;
			continue;
		}
		mp_get(here, 0, MIB, 1, GET_BITS, 0);
		compute(&got[MIB - 1], last);
		compute(NULL, 0);
		(void)mp_expect(eq, PTL_EVENT_REPLY_END);
		mp_check(mp_same(got, 1, 0, 0, MIB), "wrong bytes in a get");
	}
}

/* ---- both compute ---- */

static void both(void)
{
	for (int i = 0; i < SHOTS; i++, shot++) {
		unsigned char last = mp_pattern[mp_cut(0, 1, shot) + MIB - 1];
		buffer[MIB - 1] = (char)~last;
		mp_barrier();
		if (mp.rank == 1) {
			compute(&buffer[MIB - 1], last);
			*over = shot + 1;
			(void)mp_expect(eq, PTL_EVENT_PUT_END);
			mp_check(
				mp_same(buffer, 0, 1, shot, MIB), "wrong bytes in a put");
			continue;
		}
		mp_put(md, mp_cut(0, 1, shot), MIB, PTL_NO_ACK_REQ, 1, PUT_BITS, 0, 0);
		compute(NULL, 0);
		(void)mp_expect(eq, PTL_EVENT_SEND_END);
	}
}

int main(void)
{
	mp_start();
	mp_check(mp.size == 2, "two ranks, please");
	eq = mp_queue(256);
	ptl_handle_eq_t served = mp_queue(256);
	md = mp_bind(mp_pattern, MP_PATTERN, eq, 0);
	buffer = calloc(1, MIB);
	mp_check(buffer, "no memory");
	mp_attach(PUT_BITS, buffer, MIB, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_attach(GET_BITS, mp_pattern + mp_cut(1, 0, 0), MIB,
		PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, served);
	share();
	against_computing(one_put, true);
	against_computing(one_get, false);
	ptl_event_t ev;
	while (mp_poll(served, &ev))
		;
	put_and_go();
	get_and_go(served);
	both();
	mp_end();
	return 0;
}
