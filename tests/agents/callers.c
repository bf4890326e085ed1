/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * callers - many ranks that call one
 *
 *	yod --hosts a:1,b:N -sz N+1 callers
 *
 * Each rank but 0 puts a message to rank 0 and takes its ACK; rank 0 takes all messages.
 */
#include "../mp/mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BITS = 7 };

static char bytes[64];

static void begin(void)
{
	int most;
	mp_ok(PtlInit(&most));
	int rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &mp.ni);
	const char *rank = getenv("PTL_MY_RID");
	while (rc != PTL_OK && rank && strcmp(rank, "0") != 0)
		pause(); /* rank 0 hears of it meanwhile, and ends the job */
	mp_check(rc == PTL_OK, "PtlNIInit: %s", PtlErrorStr((unsigned)rc));
	mp_ok(PtlGetRank(mp.ni, &mp.rank, &mp.size));
	mp_ok(PtlGetRankId(mp.ni, 0, &mp.id[0]));
}

int main(void)
{
	begin();
	ptl_handle_eq_t eq = mp_queue(4096);
	(void)mp_attach(
		BITS, bytes, sizeof bytes, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	mp_barrier();
	if (mp.rank) {
		mp_put(mp_bind(bytes, sizeof bytes, eq, 0), 0, sizeof bytes, PTL_ACK_REQ,
			0, BITS, 0, 0);
		(void)mp_expect(eq, PTL_EVENT_SEND_END);
		(void)mp_expect(eq, PTL_EVENT_ACK);
	}
	for (unsigned i = 1; !mp.rank && i < mp.size; i++)
		(void)mp_expect(eq, PTL_EVENT_PUT_END);
	mp_barrier();
	if (!mp.rank)
		printf("all %u messages have come\n", mp.size - 1);
	PtlFini();
	return 0;
}
