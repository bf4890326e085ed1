/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heaps N - rank 0 sees N lives of rank 1, each of which has a shared heap of another
 * length; its address space must not grow with them
 *
 *	yod -sz 1 heaps N : -sz 1 sh -c "a loop of: PTL3_HEAP=... heaps LIFE"
 *
 * Rank 1 puts the number of its life from a block of its heap until that is answered.
 */
#include "../support/memory.h"
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BITS = 1, LENGTH = 1 << 20 };

static const uint64_t SPARE = (uint64_t)1 << 30; /* one heap fits, but not two of them */

static uint64_t address_space(void)
{
	return (uint64_t)memory_kib("VmSize") << 10;
}

static void watch(uint64_t lives)
{
	uint64_t first = 0;
	char *sink = malloc(LENGTH);
	ptl_handle_eq_t eq = mp_queue(1024);
	mp_check(sink, "no memory");
	mp_attach(BITS, sink, LENGTH, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	for (uint64_t life = 0; life < lives;) {
		ptl_event_t ev = mp_next(eq);
		mp_check(ev.type == PTL_EVENT_PUT_END, "%s", PtlEventKindStr(ev.type));
		/* A message that was repeated may come once more, or be cut off by the
		 * end of its life, which had its answer. */
		if (ev.hdr_data != life || ev.ni_fail_type != PTL_NI_OK)
			continue;
		uint64_t now = address_space();
		if (life++ == 0)
			first = now;
		mp_check(now < first + 3 * SPARE, "after %llu lives %llu MiB, not %llu",
			(unsigned long long)life, (unsigned long long)now >> 20,
			(unsigned long long)first >> 20);
	}
	free(sink);
}

/* Wait for an acknowledgement.  Return false if no event comes for a while: rank 0 may
 * have dropped the message. */
static bool is_answered(ptl_handle_eq_t eq)
{
	ptl_event_t ev;
	while (mp_next_within(eq, 200, &ev))
		if (ev.type == PTL_EVENT_ACK)
			return true;
	return false;
}

static void live(uint64_t life)
{
	void *block;
	ptl_handle_eq_t eq = mp_queue(64);
	mp_ok(PtlXAlloc(LENGTH, &block));
	memset(block, (int)life, LENGTH);
	ptl_handle_md_t md = mp_bind(block, LENGTH, eq, 0);
	do
		mp_put(md, 0, LENGTH, PTL_ACK_REQ, 0, BITS, 0, life);
	while (!is_answered(eq));
}

int main(int argc, char **argv)
{
	mp_check(argc == 2, "usage: heaps N");
	mp_start();
	if (mp.rank == 0)
		watch(strtoull(argv[1], NULL, 10));
	else
		live(strtoull(argv[1], NULL, 10));
	PtlFini();
	return 0;
}
