/* SPDX-License-Identifier: BSD-3-Clause */
/* Thresholds of descriptors, which messages and answers of each length lower. */
#include "nic/cases.h"

#define PT 7

/* P3.3 3.10.1: counts START/END pairs and ACKs; the event has the remainder */
NODES_CASE(threshold_counts_operations_down, 2)
{
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

/* P3.3 3.13: the reply decrements the threshold, the call does not */
NODES_CASE(get_takes_one_of_the_threshold_at_its_reply, 2)
{
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
