/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liar - a node that claims to read, and does not; by yod -sz 3, PTL3_MOVER=window
 *
 * Rank 1 sets the flag that says that it reads rank 0's memory, counts the passes of its
 * firmware, and makes none.  Rank 0 sends it a long put, so its claim is plausible.  The
 * exchanges of rank 2 with the same bytes must end while rank 1 does so.
 */
#include "lib/node/node.h"
#include "mp/mp.h"
#include "support/hold.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 16 << 20, PUT = 1, SWAP = 2, EXCHANGES = 8, LIMIT_S = 600 };

static unsigned char bytes[LONG];
static p3_a32 over;

/* ---- rank 1 ---- */

static void *count_passes(void *nic)
{
	struct p3_nic *n = nic;
	while (!p3_get(&over)) {
		p3_count(&n->count[P3_C_PASSES], 1);
		sched_yield();
	}
	return NULL;
}

static void lie(void)
{
	struct p3_nic *n = p3_nic(p3_node());
	pthread_t thread;
	mp_attach(PUT, bytes, LONG, PTL_MD_OP_PUT, PTL_EQ_NONE);
	mp_barrier();
	nic_hold(n);
	p3_set(&n->peer[0].mine->reading, 1);
	mp_check(pthread_create(&thread, NULL, count_passes, n) == 0, "no thread");
	mp_barrier(); /* the others begin */
	mp_barrier(); /* and have done their exchanges */
	p3_set(&over, 1);
	pthread_join(thread, NULL);
	p3_release(&n->peer[0].mine->reading, 0);
	p3_lease_leave(n);
}

/* ---- ranks 0 and 2 ---- */

static void send_to_liar(void)
{
	ptl_handle_eq_t eq = mp_queue(8);
	ptl_handle_md_t md = mp_bind(bytes, LONG, eq, 0);
	mp_fill(bytes, LONG, 1);
	mp_attach(SWAP, bytes, LONG, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
		PTL_EQ_NONE);
	mp_barrier();
	mp_barrier();
	mp_put(md, 0, LONG, PTL_NOACK_REQ, 1, PUT, 0, 0);
	mp_ok(PtlPut(mp_bind(bytes, 0, PTL_EQ_NONE, 0), PTL_NOACK_REQ, mp.id[2],
		MP_PORTAL, 0, SWAP, 0, 0)); /* tells that the put is under way */
	mp_barrier();
	(void)mp_expect(eq, PTL_EVENT_SEND_END);
}

static void swap_beside_liar(void)
{
	static unsigned char got[8], put[8], want[8 * EXCHANGES];
	ptl_handle_eq_t eq = mp_queue(8), told = mp_queue(8);
	ptl_handle_md_t in = mp_bind(got, sizeof got, eq, 0);
	ptl_handle_md_t out = mp_bind(put, sizeof put, PTL_EQ_NONE, 0);
	mp_fill(want, sizeof want, 1);
	mp_attach(SWAP, NULL, 0, PTL_MD_OP_PUT, told);
	mp_barrier();
	mp_barrier();
	(void)mp_expect(told, PTL_EVENT_PUT_END);
	uint64_t start = now_ns();
	for (unsigned i = 0; i < EXCHANGES; i++) {
		mp_ok(PtlGetPut(in, out, mp.id[0], MP_PORTAL, 0, SWAP, 8 * i, 0));
		(void)mp_expect(eq, PTL_EVENT_REPLY_END);
		mp_check(memcmp(got, want + 8 * i, 8) == 0, "exchange %u", i);
	}
	printf("# tried: %d exchanges, in %.1f ms\n", EXCHANGES,
		(double)(now_ns() - start) / 1e6);
	mp_barrier();
}

int main(void)
{
	alarm(LIMIT_S);
	mp_start();
	mp_check(mp.size == 3, "three ranks, please");
	if (mp.rank == 0)
		send_to_liar();
	else if (mp.rank == 1)
		lie();
	else
		swap_beside_liar();
	mp_end();
	return 0;
}
