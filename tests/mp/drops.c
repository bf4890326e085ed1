/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drops - requests that come to nothing, each for another reason, for drops.py to read
 *
 * Rank 0 sends each request twice, rank 1 drops it, and rank 2 kills itself.  Start it
 * with yod --keep-going.
 */
#include "mp.h"

#include <signal.h>
#include <stdio.h>

enum { BITS = 7, EVENTS = 2, LOST = 6, END = 30 };

static char bytes[64];
static ptl_handle_md_t source;
static ptl_handle_eq_t queue;

/* ---- rank 1 ---- */

static ptl_handle_me_t entry(
	ptl_pt_index_t portal, ptl_match_bits_t bits, ptl_process_id_t from)
{
	ptl_handle_me_t me;
	mp_ok(PtlMEAttach(mp.ni, portal, from, bits, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
	return me;
}

static void descriptor(ptl_pt_index_t portal, ptl_process_id_t from, ptl_md_t md)
{
	ptl_handle_md_t handle;
	ptl_handle_me_t me = entry(portal, BITS, from);
	md.start = bytes;
	md.options |= PTL_MD_EVENT_START_DISABLE;
	mp_ok(PtlMDAttach(me, md, PTL_RETAIN, &handle));
}

static ptl_md_t accepting(unsigned options, ptl_size_t length)
{
	return (ptl_md_t){.length = length,
		.threshold = PTL_MD_THRESH_INF,
		.options = options,
		.eq_handle = PTL_EQ_NONE};
}

static void be_target(void)
{
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY}, other = {77, PTL_PID_ANY};
	ptl_md_t once = accepting(PTL_MD_OP_PUT, 64), most = once;
	ptl_md_t few = accepting(PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, 64);
	ptl_handle_eq_t small = mp_queue(EVENTS);
	once.threshold = 1;
	most.max_size = 16;
	most.options |= PTL_MD_MAX_SIZE;
	few.eq_handle = small;
	mp_ok(PtlACEntry(mp.ni, 5, other, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY));
	mp_ok(PtlACEntry(mp.ni, 6, any, PTL_UID_ANY, PTL_JID_ANY, 9));
	(void)entry(11, 0xff00, any);
	(void)entry(11, 0x17, any);
	descriptor(12, other, accepting(PTL_MD_OP_PUT, 64));
	(void)entry(13, BITS, any);
	descriptor(14, any, once);
	descriptor(15, any, accepting(PTL_MD_OP_GET, 64));
	descriptor(16, any, accepting(PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, 64));
	descriptor(17, any, accepting(PTL_MD_OP_PUT, 4));
	descriptor(18, any, most);
	descriptor(19, any,
		accepting(PTL_MD_OP_PUT | PTL_MD_ACK_DISABLE | PTL_MD_MANAGE_REMOTE, 64));
	descriptor(20, any, few);
	descriptor(21, any,
		accepting(PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE, 4));
	ptl_md_t last = accepting(PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, 64);
	last.eq_handle = queue;
	descriptor(END, any, last);
}

/* ---- rank 0 ---- */

static void put_to(ptl_process_id_t id, ptl_pt_index_t portal, ptl_ac_index_t access,
	ptl_size_t length, ptl_size_t offset)
{
	for (int i = 0; i < 2; i++)
		mp_ok(PtlPutRegion(source, 0, length, PTL_NOACK_REQ, id, portal, access,
			BITS, offset, 0));
}

static void put(ptl_pt_index_t portal, ptl_size_t length, ptl_size_t offset)
{
	put_to(mp.id[1], portal, 0, length, offset);
}

/* The put itself uses up the threshold of 1; the ACK finds no descriptor. */
static void ack_too_late(void)
{
	ptl_handle_md_t md;
	ptl_md_t once = {.start = bytes,
		.length = 8,
		.threshold = 1,
		.options = PTL_MD_EVENT_START_DISABLE,
		.eq_handle = queue};
	mp_ok(PtlMDBind(mp.ni, once, PTL_UNLINK, &md));
	mp_ok(PtlPut(md, PTL_ACK_REQ, mp.id[1], END, 0, BITS, 0, 0));
	(void)mp_expect(queue, PTL_EVENT_SEND_END);
	(void)mp_expect(queue, PTL_EVENT_UNLINK);
	for (ptl_sr_value_t drops = 0; !drops; sleep_ms(1))
		mp_ok(PtlNIStatus(mp.ni, PTL_SR_DROP_COUNT, &drops));
}

static void ack_disabled(void)
{
	ptl_handle_md_t md = mp_bind(bytes, 8, queue, 0);
	for (int i = 0; i < 2; i++) {
		mp_ok(PtlPut(md, PTL_ACK_REQ, mp.id[1], 19, 0, BITS, 0, 0));
		(void)mp_expect(queue, PTL_EVENT_SEND_END);
	}
}

/* Put to a process that does not exist, and wait until the NIC knows that: else rank 1
 * may end first, which is another reason. */
static void put_to_none(ptl_process_id_t id)
{
	ptl_handle_md_t md = mp_bind(bytes, 8, queue, 0);
	for (int i = 0; i < 2; i++) {
		mp_ok(PtlPut(md, PTL_NOACK_REQ, id, 14, 0, BITS, 0, 0));
		mp_check(mp_next(queue).type == PTL_EVENT_SEND_END, "no SEND_END");
	}
}

/* Put until rank 2 is known to be dead. */
static void put_to_the_dead(void)
{
	ptl_handle_md_t md = mp_bind(bytes, 8, queue, 0);
	for (;;) {
		mp_ok(PtlPut(md, PTL_NOACK_REQ, mp.id[2], END, 0, BITS, 0, 0));
		ptl_event_t ev = mp_next(queue);
		mp_check(ev.type == PTL_EVENT_SEND_END, "event %d", ev.type);
		if (ev.ni_fail_type != PTL_NI_OK)
			return;
		/* pause: between two looks at the end of rank 2 */
		sleep_ms(10);
	}
}

static void be_source(void)
{
	ptl_process_id_t nobody = {54321, 1}, wrong = mp.id[1];
	wrong.pid += 1000;
	source = mp_bind(bytes, sizeof bytes, PTL_EQ_NONE, 0);
	put(5000, 8, 0);
	put_to(mp.id[1], 14, 3, 8, 0);
	put_to(mp.id[1], 14, 900, 8, 0);
	put_to(mp.id[1], 14, 5, 8, 0);
	put_to(mp.id[1], 14, 6, 8, 0);
	put(10, 8, 0);
	put(11, 8, 0);
	put(12, 8, 0);
	put(13, 8, 0);
	put(14, 8, 0);
	put(14, 8, 0);
	put(15, 8, 0);
	put(16, 8, 100);
	put(17, 8, 0);
	put(18, 50, 0);
	put(21, 8, 0);
	put_to_none(wrong);
	put_to(nobody, 14, 0, 8, 0);
	for (int i = 0; i < (EVENTS + LOST) / 2; i++)
		put(20, 8, 0);
	ack_disabled();
	put_to_the_dead();
	ack_too_late();
}

int main(void)
{
	mp_start();
	queue = mp_queue(64);
	if (mp.rank == 1)
		be_target();
	mp_barrier();
	if (mp.rank == 2)
		(void)raise(SIGKILL);
	if (mp.rank == 0)
		be_source();
	if (mp.rank == 1)
		(void)mp_expect(queue, PTL_EVENT_PUT_END);
	ptlx_stats_t st = {.struct_size = sizeof st};
	mp_ok(PtlXStats(mp.ni, &st));
	mp_check(st.truncated == (mp.rank == 1 ? 2 : 0), "truncated: %llu",
		(unsigned long long)st.truncated);
	PtlFini();
	return 0;
}
