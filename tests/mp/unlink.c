/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unlink ROUNDS - a program's first messages, as old runtimes send them
 *
 * Each rank puts to all ranks as soon as it is there, unlinks each descriptor at once,
 * and uses its buffer for the next put.  Lengths are those that a base lane holds,
 * those that only a full lane holds, and the longest put that is over when the call
 * returns.
 */
#include "mp.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 8192, BITS = 3 };
static const ptl_size_t lengths[] = {8, 128, 256, 1000, 3000, 5000, MOST};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* Return the place of a message: each rank has its own place for each length. */
static ptl_size_t place(unsigned from, unsigned which)
{
	return ((ptl_size_t)from * LENGTHS + which) * MOST;
}

static unsigned seed_of(unsigned from, unsigned round)
{
	return from * 31 + round;
}

static void send_to(ptl_handle_eq_t eq, unsigned to, unsigned round)
{
	static unsigned char bytes[MOST];
	for (unsigned i = 0; i < LENGTHS; i++) {
		mp_fill(bytes, lengths[i], seed_of(mp.rank, round));
		ptl_handle_md_t md = mp_bind(bytes, lengths[i], eq, 0);
		mp_put(md, 0, lengths[i], PTL_NO_ACK_REQ, to, BITS, place(mp.rank, i), i);
		mp_ok(PtlMDUnlink(md));
		ptl_event_t ev;
		mp_check(mp_poll(eq, &ev) && ev.type == PTL_EVENT_SEND_END,
			"no SEND_END of %llu bytes when the call has returned",
			(unsigned long long)lengths[i]);
		memset(bytes, 0xee, sizeof bytes);
	}
}

static void receive(ptl_handle_eq_t eq, const unsigned char *room, unsigned round)
{
	for (unsigned i = 0; i < LENGTHS * mp.size; i++)
		(void)mp_expect(eq, PTL_EVENT_PUT_END);
	for (unsigned from = 0; from < mp.size; from++)
		for (unsigned i = 0; i < LENGTHS; i++)
			mp_compare(room + place(from, i), lengths[i],
				seed_of(from, round), "a put");
}

int main(int argc, char **argv)
{
	mp_start();
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
	ptl_size_t all = place(mp.size, 0);
	unsigned char *room = calloc(1, all);
	mp_check(room != NULL, "no memory");
	ptl_handle_eq_t in = mp_queue(2 * LENGTHS * mp.size), out = mp_queue(8);
	(void)mp_attach(BITS, room, all, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, in);
	mp_barrier();
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < mp.size; i++)
			send_to(out, (mp.rank + i) % mp.size, round);
		receive(in, room, round);
		mp_barrier();
	}
	mp_end();
	free(room);
	return 0;
}
