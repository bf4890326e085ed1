/* SPDX-License-Identifier: BSD-3-Clause */
/* The descriptor that takes a message, how often it does, and when it goes. */
#include "nic/cases.h"

#define PT 7

/* A target that is its own initiator: puts of one byte, distinguished by their queue. */
struct self {
	ptl_handle_ni_t ni;
	ptl_process_id_t id;
	ptl_handle_eq_t eq;
	ptl_handle_md_t src;
	unsigned char *buf;
};

static struct self self_new(ptl_handle_ni_t ni)
{
	struct self s = {.ni = ni, .eq = eq_new(ni, 64), .buf = node_alloc(4096)};
	CHECK_OK(PtlGetId(ni, &s.id));
	s.src = bind_md(ni, md_of(node_alloc(4096), 4096, 0, PTL_EQ_NONE));
	return s;
}

static ptl_handle_me_t entry(struct self *s, ptl_process_id_t id, ptl_match_bits_t bits,
	ptl_match_bits_t ignore, ptl_ins_pos_t where)
{
	ptl_handle_me_t me;
	CHECK_OK(PtlMEAttach(s->ni, PT, id, bits, ignore, PTL_RETAIN, where, &me));
	return me;
}

/* Make an entry whose events have user_ptr n. */
static ptl_handle_me_t numbered(struct self *s, ptl_process_id_t id,
	ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_ins_pos_t where,
	uintptr_t number)
{
	ptl_handle_me_t me = entry(s, id, bits, ignore, where);
	ptl_md_t md = md_of(s->buf, 4096, MD_ANY | PTL_MD_EVENT_START_DISABLE, s->eq);
	md.user_ptr = (void *)number;
	CHECK_OK(PtlMDAttach(me, md, PTL_RETAIN, NULL));
	return me;
}

static void send_len(struct self *s, ptl_match_bits_t bits, size_t len)
{
	CHECK_OK(PtlPutRegion(
		s->src, 0, len, PTL_NO_ACK_REQ, s->id, PT, 0, bits, 0, bits));
}

/* Return the entry that takes these bits, 0: none. */
static uintptr_t taker(struct self *s, ptl_match_bits_t bits)
{
	uint64_t drops = drops_of(s->ni);
	send_len(s, bits, 1);
	for (;;) {
		ptl_event_t ev;
		int rc = PtlEQGet(s->eq, &ev);
		if (rc == PTL_OK) {
			CHECK_EQ(ev.type, PTL_EVENT_PUT_END);
			CHECK_EQ(ev.match_bits, bits);
			return (uintptr_t)ev.md.user_ptr;
		}
		CHECK_EQ(rc, PTL_EQ_EMPTY);
		if (drops_of(s->ni) > drops)
			return 0;
	}
}

/* P3.3 3.9: ((bits ^ match) & ~ignore) == 0 */
NODES_CASE(match_bits_and_ignore_bits_select, 1)
{
	UNUSED_ARGS;
	struct self s = self_new(ni);
	const ptl_match_bits_t high = (ptl_match_bits_t)1 << 63;
	numbered(&s, anybody(), 5, 0, PTL_INS_AFTER, 1);
	numbered(&s, anybody(), 0x100, 0xff, PTL_INS_AFTER, 2);
	numbered(&s, anybody(), high | 1, 0, PTL_INS_AFTER, 3);
	numbered(&s, anybody(), 0x7000, high, PTL_INS_AFTER, 4);
	CHECK_EQ(taker(&s, 5), 1);
	CHECK_EQ(taker(&s, 0x1aa), 2);
	CHECK_EQ(taker(&s, 0x2aa), 0);
	CHECK_EQ(taker(&s, high | 1), 3);
	CHECK_EQ(taker(&s, 1), 0);
	CHECK_EQ(taker(&s, 0x7000 | high), 4);
	CHECK_EQ(taker(&s, 0x7000), 4);
	numbered(&s, anybody(), 99, UINT64_MAX, PTL_INS_AFTER, 5);
	CHECK_EQ(taker(&s, 0x2aa), 5);
	CHECK_EQ(taker(&s, 5), 1);
}

/* P3.3 3.9: the first in the list; BEFORE is its head, AFTER its tail */
NODES_CASE(match_takes_first_in_list, 1)
{
	UNUSED_ARGS;
	struct self s = self_new(ni);
	ptl_handle_me_t second = numbered(&s, anybody(), 1, 0, PTL_INS_AFTER, 2);
	numbered(&s, anybody(), 1, 0, PTL_INS_AFTER, 3);
	ptl_handle_me_t first = numbered(&s, anybody(), 1, 0, PTL_INS_BEFORE, 1);
	CHECK_EQ(taker(&s, 1), 1);
	CHECK_OK(PtlMEUnlink(first));
	CHECK_EQ(taker(&s, 1), 2);
	CHECK_OK(PtlMEUnlink(second));
	CHECK_EQ(taker(&s, 1), 3);
	/* an entry without descriptor matches nothing */
	entry(&s, anybody(), 1, 0, PTL_INS_BEFORE);
	CHECK_EQ(taker(&s, 1), 3);
}

/* P3.3 3.9: nid and pid, each a wildcard or not */
NODES_CASE(match_id_selects_by_nid_and_pid, 3)
{
	(void)size;
	(void)arg;
	struct self s = self_new(ni);
	ptl_process_id_t one = id_of(ni, 1), two = id_of(ni, 2);
	if (rank == 0) {
		numbered(&s, (ptl_process_id_t){one.nid, PTL_PID_ANY}, 1, 0,
			PTL_INS_AFTER, 1);
		numbered(&s, (ptl_process_id_t){PTL_NID_ANY, two.pid}, 1, 0,
			PTL_INS_AFTER, 2);
		numbered(
			&s, (ptl_process_id_t){one.nid, two.pid}, 2, 0, PTL_INS_AFTER, 3);
		numbered(&s, two, 2, 0, PTL_INS_AFTER, 4);
	}
	sync_nodes();
	if (rank == 0)
		CHECK_EQ(taker(&s, 1), 0);
	sync_nodes();
	if (rank) {
		for (unsigned bits = 1; bits <= 2; bits++)
			CHECK_OK(PtlPutRegion(s.src, 0, 1, PTL_NO_ACK_REQ, id_of(ni, 0),
				PT, 0, bits, 0, 0));
	} else {
		for (unsigned i = 0; i < 3; i++) {
			ptl_event_t ev = expect(s.eq, PTL_EVENT_PUT_END);
			bool is_one = ev.initiator.nid == one.nid;
			CHECK_EQ(ev.initiator.pid, is_one ? one.pid : two.pid);
			CHECK_EQ((uintptr_t)ev.md.user_ptr, is_one               ? 1u
							    : ev.match_bits == 1 ? 2u
										 : 4u);
		}
		run_for_drops(ni, 2); /* own, and bits 2 of node 1 */
	}
	sync_nodes();
}

/* P3.3 chapter 4: a descriptor that refuses is skipped, which is no error */
NODES_CASE(match_falls_through_when_refused, 1)
{
	UNUSED_ARGS;
	struct self s = self_new(ni);
	static const unsigned options[] = {PTL_MD_OP_GET, PTL_MD_OP_PUT, PTL_MD_OP_PUT,
		PTL_MD_OP_PUT | PTL_MD_TRUNCATE};
	static const size_t len[] = {100, 10, 20, 5};
	static const int threshold[] = {-1, -1, 1, -1};
	for (unsigned i = 0; i < 4; i++) {
		ptl_handle_me_t me = entry(&s, anybody(), 1, 0, PTL_INS_AFTER);
		ptl_md_t md = md_of(
			s.buf, len[i], options[i] | PTL_MD_EVENT_START_DISABLE, s.eq);
		md.user_ptr = (void *)(uintptr_t)(i + 1);
		md.threshold = threshold[i];
		CHECK_OK(PtlMDAttach(me, md, PTL_RETAIN, NULL));
	}
	static const size_t sent[] = {11, 8, 11, 2, 3, 1};
	static const uintptr_t by[] = {3, 2, 4, 2, 4, 4};
	static const size_t moved[] = {11, 8, 5, 2, 0, 0};
	for (unsigned i = 0; i < 6; i++) {
		send_len(&s, 1, sent[i]);
		ptl_event_t ev = expect(s.eq, PTL_EVENT_PUT_END);
		CHECK_EQ((uintptr_t)ev.md.user_ptr, by[i]);
		CHECK_EQ(ev.rlength, sent[i]);
		CHECK_EQ(ev.mlength, moved[i]);
	}
	CHECK_EQ(drops_of(ni), 0);
}

/* P3.3 chapter 4: portal and access control index are checked at the target */
NODES_CASE(message_is_dropped_for_bad_indexes, 1)
{
	UNUSED_ARGS;
	struct self s = self_new(ni);
	numbered(&s, anybody(), 1, 0, PTL_INS_AFTER, 1);
	static const uint32_t pt[] = {
		64, 65, 0xffff, 0x10000 + PT, PT, PT, PT, PT, PT + 1};
	static const uint32_t ac[] = {0, 0, 0, 0, 1, 64, 0xffff, 0x10000, 0};
	for (unsigned i = 0; i < 9; i++) {
		CHECK_OK(PtlPut(s.src, PTL_NO_ACK_REQ, s.id, pt[i], ac[i], 1, 0, 0));
		run_for_drops(ni, i + 1);
	}
	expect_empty(s.eq);
	CHECK_EQ(taker(&s, 1), 1);
}

/* ---- thresholds ---- */

/* P3.3 3.10.1: counts START/END pairs and ACKs; the event has the remainder */
NODES_CASE(threshold_counts_operations_down, 2)
{
	UNUSED_ARGS;
	static const size_t len[] = {8, 300, 100000};
	ptl_handle_eq_t eq = eq_new(ni, 64);
	unsigned char *buf = node_alloc(100000);
	ptl_md_t md = md_of(buf, 100000, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, eq);
	if (rank == 1) {
		md.threshold = 3;
		post_md(ni, PT, 1, md);
	}
	sync_nodes();
	if (rank == 0) {
		md.threshold = 7;
		ptl_handle_md_t h = bind_md(ni, md);
		for (int i = 0; i < 3; i++) {
			CHECK_OK(PtlPutRegion(
				h, 0, len[i], PTL_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, 0));
			CHECK_EQ(
				expect(eq, PTL_EVENT_SEND_START).md.threshold, 6 - 2 * i);
			CHECK_EQ(expect(eq, PTL_EVENT_SEND_END).md.threshold, 6 - 2 * i);
			CHECK_EQ(expect(eq, PTL_EVENT_ACK).md.threshold, 5 - 2 * i);
		}
		/* used up there: dropped; used up here: refused */
		CHECK_OK(
			PtlPutRegion(h, 0, 1, PTL_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, 0));
		CHECK_EQ(expect(eq, PTL_EVENT_SEND_START).md.threshold, 0);
		expect(eq, PTL_EVENT_SEND_END);
		CHECK_RC(PtlPutRegion(h, 0, 1, PTL_ACK_REQ, id_of(ni, 1), PT, 0, 1, 0, 0),
			PTL_MD_INVALID);
		CHECK_RC(get_from(ni, h, 1, PT, 1), PTL_MD_INVALID);
		sync_nodes();
		expect_empty(eq);
		CHECK_OK(PtlMDUnlink(h));
	} else {
		for (int i = 0; i < 3; i++) {
			CHECK_EQ(expect(eq, PTL_EVENT_PUT_START).md.threshold, 2 - i);
			CHECK_EQ(expect(eq, PTL_EVENT_PUT_END).md.threshold, 2 - i);
		}
		run_for_drops(ni, 1);
		expect_empty(eq);
		sync_nodes();
	}
}

/* P3.3 3.10.1: a retained descriptor at 0 still takes the ACK that is under way */
NODES_CASE(ack_reaches_a_used_up_descriptor, 2)
{
	UNUSED_ARGS;
	ptl_handle_eq_t eq = eq_new(ni, 64);
	unsigned char *buf = node_alloc(100000);
	ptl_md_t md = md_of(buf, 100000, MD_ANY, eq);
	if (rank == 1)
		post_md(ni, PT, 1, md);
	sync_nodes();
	if (rank == 0) {
		static const size_t len[] = {8, 100000};
		for (unsigned i = 0; i < 2; i++) {
			md.threshold = 1;
			md.length = len[i];
			ptl_handle_md_t h = bind_md(ni, md);
			CHECK_OK(put_to(ni, h, 1, PT, 1, PTL_ACK_REQ));
			expect(eq, PTL_EVENT_SEND_START);
			expect(eq, PTL_EVENT_SEND_END);
			CHECK_EQ(expect(eq, PTL_EVENT_ACK).md.threshold, 0);
			/* with PTL_UNLINK it is gone by then: the ACK is dropped */
			CHECK_OK(PtlMDBind(ni, md, PTL_UNLINK, &h));
			CHECK_OK(put_to(ni, h, 1, PT, 1, PTL_ACK_REQ));
			expect(eq, PTL_EVENT_SEND_START);
			expect(eq, PTL_EVENT_SEND_END);
			expect(eq, PTL_EVENT_UNLINK);
			CHECK_RC(PtlMDUnlink(h), PTL_MD_INVALID);
			run_for_drops(ni, i + 1);
		}
		expect_empty(eq);
	}
	sync_nodes();
}

/* ---- unlinking ---- */

struct goes {
	ptl_unlink_t me, md;
	bool me_stays;
};

/* P3.3 3.10: PTL_UNLINK in MD, in ME; UNLINK comes last, and both are gone by then */
static void check_auto_unlink(
	ptl_handle_ni_t ni, unsigned rank, const struct goes *g, size_t len)
{
	ptl_handle_eq_t eq = eq_new(ni, 64);
	unsigned char *buf = node_alloc(len);
	ptl_handle_me_t me = me_last(ni, PT, 1, 0, g->me);
	ptl_handle_md_t h;
	ptl_md_t md = md_of(buf, len, MD_ANY, eq);
	md.threshold = 2;
	CHECK_OK(PtlMDAttach(me, md, g->md, &h));
	sync_nodes();
	if (rank == 0) {
		md.threshold = 4;
		ptl_handle_md_t src;
		CHECK_OK(PtlMDBind(ni, md, PTL_UNLINK, &src));
		CHECK_OK(put_to(ni, src, 1, PT, 1, PTL_ACK_REQ));
		CHECK_OK(put_to(ni, src, 1, PT, 1, PTL_ACK_REQ));
		for (unsigned i = 0; i < 6; i++)
			(void)next_event(eq);
		ptl_event_t last = expect(eq, PTL_EVENT_UNLINK);
		CHECK_RC(PtlMDUnlink(src), PTL_MD_INVALID);
		CHECK_EQ(last.md_handle, src);
		CHECK(last.unlinked);
	} else {
		ptl_seq_t link = 0;
		for (unsigned i = 0, ends = 0; i < 4; i++) {
			ptl_event_t ev = next_event(eq);
			CHECK(ev.type == PTL_EVENT_PUT_START ||
				ev.type == PTL_EVENT_PUT_END);
			ends += ev.type == PTL_EVENT_PUT_END;
			link = ev.link;
			CHECK_EQ(ends == 2, i == 3);
		}
		if (g->md == PTL_UNLINK) {
			ptl_event_t ev = expect(eq, PTL_EVENT_UNLINK);
			CHECK_EQ(ev.md_handle, h);
			CHECK_EQ(ev.md.threshold, 0);
			CHECK_EQ(ev.link, link);
			CHECK_EQ(ev.match_bits, 1);
			CHECK(ev.unlinked);
			CHECK_RC(PtlMDUnlink(h), PTL_MD_INVALID);
		} else {
			CHECK_OK(PtlMDUnlink(h));
		}
		if (g->me_stays) { /* it can be used again at once */
			CHECK_OK(PtlMDAttach(me, md, PTL_RETAIN, &h));
			CHECK_OK(PtlMEUnlink(me));
			CHECK_RC(PtlMDUnlink(h), PTL_MD_INVALID);
		} else {
			CHECK_RC(PtlMEUnlink(me), PTL_ME_INVALID);
			CHECK_RC(PtlMDAttach(me, md, PTL_RETAIN, &h), PTL_ME_INVALID);
		}
		expect_empty(eq);
	}
	sync_nodes();
}

NODES_CASE(unlink_is_the_last_event_and_true, 2)
{
	UNUSED_ARGS;
	static const size_t len[] = {8, 500, 100000};
	static const struct goes goes[] = {{PTL_RETAIN, PTL_RETAIN, true},
		{PTL_RETAIN, PTL_UNLINK, true}, {PTL_UNLINK, PTL_UNLINK, false},
		{PTL_UNLINK, PTL_RETAIN, false}};
	for (unsigned i = 0; i < 4; i++)
		for (unsigned k = 0; k < 3; k++)
			check_auto_unlink(ni, rank, &goes[i], len[k]);
}

/* P3.3 3.10.1 PTL_MD_MAX_SIZE: inactive with less room than this */
NODES_CASE(max_size_ends_an_append_descriptor, 2)
{
	UNUSED_ARGS;
	ptl_handle_eq_t eq = eq_new(ni, 64);
	unsigned char *buf = rank ? node_alloc(1000) : node_pattern(1000, 1);
	ptl_md_t md = md_of(buf, 1000,
		PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_END_DISABLE, eq);
	md.max_size = 300;
	ptl_handle_md_t h = PTL_INVALID_HANDLE, next = PTL_INVALID_HANDLE;
	if (rank == 1) {
		CHECK_OK(PtlMDAttach(
			me_last(ni, PT, 1, 0, PTL_RETAIN), md, PTL_UNLINK, &h));
		CHECK_OK(PtlMDAttach(
			me_last(ni, PT, 1, 0, PTL_RETAIN), md, PTL_RETAIN, &next));
	}
	sync_nodes();
	if (rank == 0) {
		ptl_handle_md_t src = bind_md(ni, md_of(buf, 1000, 0, PTL_EQ_NONE));
		static const size_t len[] = {350, 350, 1, 10, 700};
		for (unsigned i = 0; i < 5; i++) /* 300 left: still active; 299: not */
			CHECK_OK(PtlPutRegion(src, 0, len[i], PTL_NO_ACK_REQ,
				id_of(ni, 1), PT, 0, 1, 0, 0));
	} else {
		static const size_t offset[] = {0, 350, 700};
		for (unsigned i = 0; i < 3; i++) {
			ptl_event_t ev = expect(eq, PTL_EVENT_PUT_START);
			CHECK_EQ(ev.md_handle, h);
			CHECK_EQ(ev.offset, offset[i]);
			CHECK_EQ(ev.md.max_size, 300);
		}
		for (unsigned i = 0, starts = 0; i < 3; i++) {
			/* the two others may start before the last of the first ends */
			ptl_event_t ev = next_event(eq);
			if (ev.type == PTL_EVENT_UNLINK) {
				CHECK_EQ(ev.md_handle, h);
				continue;
			}
			CHECK_EQ(ev.type, PTL_EVENT_PUT_START);
			CHECK_EQ(ev.md_handle, next);
			CHECK(starts++ < 2);
		}
		while (PtlMDUnlink(next) == PTL_MD_IN_USE)
			sleep_ms(1);
		CHECK_RC(PtlMDUnlink(h), PTL_MD_INVALID);
	}
	sync_nodes();
}

/* P3.3 3.10.1: max_size has no effect on a remotely managed descriptor */
NODES_CASE(max_size_is_void_with_manage_remote, 1)
{
	UNUSED_ARGS;
	struct self s = self_new(ni);
	ptl_md_t md = md_of(s.buf, 100,
		PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_MANAGE_REMOTE |
			PTL_MD_EVENT_START_DISABLE,
		s.eq);
	md.max_size = 90;
	CHECK_OK(PtlMDAttach(
		entry(&s, anybody(), 1, 0, PTL_INS_AFTER), md, PTL_UNLINK, NULL));
	for (unsigned i = 0; i < 3; i++) {
		send_len(&s, 1, 50);
		CHECK_EQ(expect(s.eq, PTL_EVENT_PUT_END).offset, 0);
	}
	expect_empty(s.eq);
}

/* P3.3 3.10.1: threshold 0 from the start matches nothing and is not unlinked */
NODES_CASE(threshold_zero_is_inactive_and_stays, 1)
{
	UNUSED_ARGS;
	struct self s = self_new(ni);
	ptl_md_t md = md_of(s.buf, 100, MD_ANY, s.eq);
	ptl_handle_md_t h, src;
	md.threshold = 0;
	CHECK_OK(PtlMDAttach(
		entry(&s, anybody(), 1, 0, PTL_INS_AFTER), md, PTL_UNLINK, &h));
	send_len(&s, 1, 1);
	run_for_drops(ni, 1);
	expect_empty(s.eq);
	CHECK_OK(PtlMDUnlink(h));
	CHECK_OK(PtlMDBind(ni, md, PTL_UNLINK, &src));
	CHECK_RC(PtlPut(src, PTL_NO_ACK_REQ, s.id, PT, 0, 1, 0, 0), PTL_MD_INVALID);
	CHECK_RC(PtlGet(src, s.id, PT, 0, 1, 0), PTL_MD_INVALID);
	CHECK_OK(PtlMDUnlink(src));
}

/* P3.3 3.13: the reply decrements the threshold, the call does not */
NODES_CASE(get_takes_one_of_the_threshold_at_its_reply, 2)
{
	UNUSED_ARGS;
	static const size_t len[] = {8, 1000, 100000};
	ptl_handle_eq_t eq = eq_new(ni, 64);
	unsigned char *buf = node_alloc(100000);
	if (rank == 1)
		post_md(ni, PT, 1, md_of(buf, 100000, MD_ANY, PTL_EQ_NONE));
	sync_nodes();
	for (unsigned i = 0; rank == 0 && i < 3; i++) {
		ptl_md_t md = md_of(buf, len[i], 0, eq);
		ptl_handle_md_t h;
		md.threshold = 2;
		CHECK_OK(PtlMDBind(ni, md, PTL_UNLINK, &h));
		CHECK_OK(get_from(ni, h, 1, PT, 1));
		CHECK_OK(get_from(ni, h, 1, PT, 1));
		unsigned ends = 0;
		for (unsigned k = 0; k < 4; k++)
			ends += next_event(eq).type == PTL_EVENT_REPLY_END;
		CHECK_EQ(ends, 2);
		CHECK_EQ(expect(eq, PTL_EVENT_UNLINK).md.threshold, 0);
		CHECK_RC(PtlMDUnlink(h), PTL_MD_INVALID);
	}
	sync_nodes();
}

int main(void)
{
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(match_bits_and_ignore_bits_select),
		cmocka_unit_test(match_takes_first_in_list),
		cmocka_unit_test(match_id_selects_by_nid_and_pid),
		cmocka_unit_test(match_falls_through_when_refused),
		cmocka_unit_test(message_is_dropped_for_bad_indexes),
		cmocka_unit_test(threshold_counts_operations_down),
		cmocka_unit_test(ack_reaches_a_used_up_descriptor),
		cmocka_unit_test(unlink_is_the_last_event_and_true),
		cmocka_unit_test(max_size_ends_an_append_descriptor),
		cmocka_unit_test(max_size_is_void_with_manage_remote),
		cmocka_unit_test(threshold_zero_is_inactive_and_stays),
		cmocka_unit_test(get_takes_one_of_the_threshold_at_its_reply),
	};
	return RUN_CASES(cases);
}
