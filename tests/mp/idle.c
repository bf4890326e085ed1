/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * idle wait|sleep SECONDS - after some traffic, ranks wait for a message that rank 0
 * sends after that time, or sleep outside the library.  Prints "idle" when it begins.
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 1 };

static void greet(ptl_handle_md_t md, ptl_handle_eq_t eq)
{
	for (unsigned r = 0; r < mp.size; r++)
		mp_put(md, 0, 100, PTL_NO_ACK_REQ, r, BITS, 0, 0);
	for (unsigned r = 0; r < mp.size; r++)
		(void)mp_expect(eq, PTL_EVENT_PUT_END);
}

static void wait_idly(ptl_handle_md_t md, ptl_handle_eq_t eq, unsigned ms)
{
	if (mp.rank == 0)
		/* pause: the time over which an idle node must not compute */
		mp_sleep_ms(ms);
	for (unsigned r = 0; mp.rank == 0 && r < mp.size; r++)
		mp_put(md, 0, 8, PTL_NO_ACK_REQ, r, BITS, 0, 0);
	(void)mp_expect(eq, PTL_EVENT_PUT_END);
}

int main(int argc, char **argv)
{
	static char sink[100];
	mp_start();
	mp_check(argc == 3, "usage: idle wait|sleep SECONDS");
	unsigned ms = (unsigned)(atof(argv[2]) * 1000);
	ptl_handle_eq_t eq = mp_queue(64);
	ptl_handle_md_t md = mp_bind(mp_pattern, MP_PATTERN, PTL_EQ_NONE, 0);
	mp_attach(BITS, sink, sizeof sink, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_barrier();
	greet(md, eq);
	mp_barrier();
	if (mp.rank == 0) {
		puts("idle");
		fflush(stdout);
	}
	if (strcmp(argv[1], "wait") == 0)
		wait_idly(md, eq, ms);
	else
		/* pause: the time over which an idle node must not compute */
		mp_sleep_ms(ms);
	mp_end();
	return 0;
}
