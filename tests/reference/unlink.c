/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unlink.c - put, and unlink the descriptor at once
 *
 *	unlink boot	The bootstrap of a runtime: each rank puts its word into all
 *			others' tables and unlinks the descriptor right after PtlPut.
 *			A rank ends when its table is full.
 *	unlink gather	All ranks put to rank 0, which puts the whole table to all and
 *			ends; if it ends by _exit, which waits for nothing, each rank
 *			tells it first that the table has come.  Each descriptor has a
 *			queue, which is read afterwards.
 *
 * The bytes are overwritten as soon as the descriptor is gone.
 */
#include "ref.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX = 13, GATHER = 0x4741, TABLE = 0x5441, BYTES = 700 };

static bool has_queue;
static ptl_handle_eq_t in_eq, out_eq;
static uint8_t *table;

static void put_and_forget(unsigned int peer, const void *start, size_t bytes,
	ptl_match_bits_t bits, ptl_size_t offset)
{
	uint8_t *copy = ref_memory(bytes);
	ptl_handle_md_t handle;

	memcpy(copy, start, bytes);
	mp_ok(PtlMDBind(mp.ni,
		mp_region(copy, bytes, 0, has_queue ? out_eq : PTL_EQ_NONE), PTL_RETAIN,
		&handle));
	mp_ok(PtlPut(handle, PTL_NO_ACK_REQ, mp.id[peer], INDEX, 0, bits, offset, 0));
	mp_ok(PtlMDUnlink(handle));
	memset(copy, 0xee, bytes);
}

/* A descriptor's SEND_START and SEND_END are in the queue when it can be unlinked. */
static void expect_sends(unsigned int want)
{
	ptl_event_t event;

	for (unsigned int i = 0; has_queue && i < 2 * want; i++) {
		mp_ok(PtlEQGet(out_eq, &event));
		ref_good(&event);
		CHECK(event.type == (i % 2 ? PTL_EVENT_SEND_END : PTL_EVENT_SEND_START));
	}
}

static void await(unsigned int want)
{
	while (want)
		want -= ref_wait(in_eq).type == PTL_EVENT_PUT_END;
}

static void boot(void)
{
	const uint8_t *mine = table + (size_t)mp.rank * BYTES;

	for (unsigned int s = 1; s < mp.size; s++)
		put_and_forget((mp.rank + s) % mp.size, mine, BYTES, GATHER,
			(ptl_size_t)mp.rank * BYTES);
	expect_sends(mp.size - 1);
	await(mp.size - 1);
}

static void gather(void)
{
	const uint8_t *mine = table + (size_t)mp.rank * BYTES;

	const char *end = getenv("REF_END");
	bool told = end && strcmp(end, "_exit") == 0;

	if (mp.rank) {
		put_and_forget(0, mine, BYTES, GATHER, (ptl_size_t)mp.rank * BYTES);
		expect_sends(1);
		await(1);
		if (told)
			put_and_forget(0, mine, 0, GATHER, 0);
		return;
	}
	await(mp.size - 1);
	for (unsigned int peer = 1; peer < mp.size; peer++)
		put_and_forget(peer, table, (size_t)mp.size * BYTES, TABLE, 0);
	expect_sends(mp.size - 1);
	if (told)
		await(mp.size - 1);
}

int main(int argc, char **argv)
{
	const ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	size_t bytes;

	ref_start();
	has_queue = strcmp(ref_form(argc, argv, "boot"), "gather") == 0;
	bytes = (size_t)mp.size * BYTES;
	table = ref_memory(bytes);
	mp_fill(table + (size_t)mp.rank * BYTES, BYTES, mp.rank);
	in_eq = mp_queue(256);
	out_eq = mp_queue(256);
	for (int i = 0; i < 2; i++)
		ref_attach(INDEX, any, i ? TABLE : GATHER,
			mp_region(table, bytes, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
				in_eq),
			PTL_RETAIN);
	if (has_queue)
		gather();
	else
		boot();
	for (unsigned int peer = 0; peer < mp.size; peer++)
		mp_compare(table + (size_t)peer * BYTES, BYTES, peer, "data");
	ref_end();
}
