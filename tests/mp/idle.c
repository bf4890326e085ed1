/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle wait|sleep - after some traffic, ranks do nothing until the standard input of rank
 * 0 ends: they wait in PtlEQWait, or sleep outside of the library.  Prints "idle" when
 * that begins.
 */
#include "mp.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BITS = 1, LOOK_MS = 1000 };

static volatile char sink[100];

static void greet(ptl_handle_md_t md, ptl_handle_eq_t eq)
{
	for (unsigned r = 0; r < mp.size; r++)
		mp_put(md, 0, sizeof sink, PTL_NO_ACK_REQ, r, BITS, 0, 0);
	for (unsigned r = 0; r < mp.size; r++)
		(void)mp_expect(eq, PTL_EVENT_PUT_END);
}

/* Rank 0: wait outside of the library for the end of the input, then tell all ranks. */
static void wait_for_input(ptl_handle_md_t md)
{
	char c;
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	for (unsigned r = 0; r < mp.size; r++)
		mp_put(md, 0, 8, PTL_NO_ACK_REQ, r, BITS, 0, 0);
}

static void sleep_until_told(void)
{
	while (sink[0] == 0)
		sleep_ms(LOOK_MS);
}

int main(int argc, char **argv)
{
	mp_start();
	mp_check(argc == 2, "usage: idle wait|sleep");
	ptl_handle_eq_t eq = mp_queue(64);
	ptl_handle_md_t md = mp_bind(mp_pattern, MP_PATTERN, PTL_EQ_NONE, 0);
	mp_attach(BITS, (void *)sink, sizeof sink, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
		eq);
	mp_barrier();
	greet(md, eq);
	sink[0] = 0;
	mp_check(mp_pattern[0] != 0, "the first byte of the pattern tells the end");
	mp_barrier();
	if (mp.rank == 0) {
		puts("idle");
		fflush(stdout);
		wait_for_input(md);
	} else if (strcmp(argv[1], "sleep") == 0) {
		sleep_until_told();
	}
	(void)mp_expect(eq, PTL_EVENT_PUT_END);
	mp_end();
	return 0;
}
