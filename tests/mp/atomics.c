/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomics COUNT - COUNT additions of each rank to a word of rank 0, which no call waits
 * for, and a hundredth of them by compare-and-swap to another word; both sums are exact
 */
#include "mp.h"

#include <stdio.h>
#include <stdlib.h>

enum { BITS = 1 };

static uint64_t words[2], got, sent[2] = {1};
static ptl_handle_eq_t eq;
static ptl_handle_md_t get, put;

/* Do an operation on a word of rank 0, and wait for the former word if it is fetched. */
static uint64_t operate(bool fetch, ptlx_op_t op, unsigned word)
{
	int rc;
	do
		rc = PtlXAtomic(fetch ? get : PTL_INVALID_HANDLE, 0, put, 0,
			sizeof *words, op, PTLX_UINT64, PTL_NO_ACK_REQ, mp.id[0],
			MP_PORTAL, 0, BITS, word * sizeof *words, 0);
	while (rc == PTL_NO_SPACE && PtlProgress(mp.ni, 0) == PTL_OK);
	mp_ok(rc);
	if (fetch)
		(void)mp_expect(eq, PTL_EVENT_REPLY_END);
	return got;
}

/* The last one, a fetch, is behind all others. */
static void add(unsigned count)
{
	uint64_t start = now_ns();
	for (unsigned i = 1; i < count; i++)
		(void)operate(false, PTLX_SUM, 0);
	uint64_t before = operate(true, PTLX_SUM, 0);
	mp_check(before + 1 >= count, "%llu additions before the last of %u",
		(unsigned long long)before, count);
	printf("rank %u: %.2f additions a us\n", mp.rank,
		(double)count * 1e3 / (double)(now_ns() - start));
}

static void add_by_swaps(unsigned count)
{
	uint64_t seen = 0;
	for (unsigned done = 0; done < count;) {
		sent[0] = seen + 1;
		sent[1] = seen;
		uint64_t old = operate(true, PTLX_CSWAP, 1);
		done += old == seen;
		seen = old == seen ? seen + 1 : old;
	}
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 20000;
	mp_start();
	eq = mp_queue(16);
	get = mp_bind(&got, sizeof got, eq, 0);
	put = mp_bind(sent, sizeof sent, PTL_EQ_NONE, 0);
	(void)mp_attach(BITS, words, sizeof words,
		PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_EQ_NONE);
	mp_barrier();
	add(count);
	add_by_swaps(count / 100);
	mp_barrier();
	if (mp.rank == 0)
		mp_check(words[0] == (uint64_t)count * mp.size &&
				 words[1] == (uint64_t)(count / 100) * mp.size,
			"%llu and %llu", (unsigned long long)words[0],
			(unsigned long long)words[1]);
	mp_end();
	return 0;
}
