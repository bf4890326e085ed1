/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long match lists: requests that are looked at ahead.  unit/test_match_list compares
 * lists and their index with an array.
 */
#include "cases.h"

#include "lib/node/node.h"
#include "nic/match/match.h"
#include "nic/run/lease.h"

enum { PT = 5 };

enum { LONG = P3_LONG + 100, BURST = 24 /* fits a full lane */, BYTES = 200 };

/* Both sides compute the same entries, and lengths of one to four cells. */
static unsigned entry_of(unsigned i)
{
	return i * 2654435761u % LONG;
}

static size_t bytes_of(unsigned i)
{
	return i % 3 ? i % 17 : i % BYTES;
}

static void post_long_list(
	ptl_handle_ni_t ni, ptl_handle_eq_t eq, unsigned char *to, ptl_handle_me_t *me)
{
	for (unsigned i = 0; i < LONG; i++) {
		ptl_md_t md = sink_md(to, BYTES, eq);
		md.user_ptr = (void *)(uintptr_t)i;
		CHECK_OK(PtlMEMDAttach(ni, PT, anybody(), (ptl_match_bits_t)i << 8, 255,
			PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &me[i], NULL));
		if (i % 7)
			continue;
		ptl_handle_me_t bare; /* in front of it, without a descriptor */
		CHECK_OK(PtlMEInsert(me[i], anybody(), (ptl_match_bits_t)i << 8, 255,
			PTL_RETAIN, PTL_INS_BEFORE, &bare));
	}
}

static struct gate *burst; /* for two moments: the burst is requested, and was sent */

static void send_bursts(ptl_handle_ni_t ni, unsigned n)
{
	ptl_handle_md_t md =
		bind_md(ni, md_of(node_pattern(BYTES, 1), BYTES, 0, PTL_EQ_NONE));
	for (unsigned i = 0; i < n; i++) {
		if (i % BURST == 0)
			gate_wait(burst);
		CHECK_OK(PtlPutRegion(md, 0, bytes_of(i), PTL_NO_ACK_REQ, id_of(ni, 1),
			PT, 0, (ptl_match_bits_t)entry_of(i) << 8 | (i & 255), 0, i));
		if (i % BURST == BURST - 1)
			gate_wait(burst);
	}
}

/* Return the number of buckets that the firmware has looked up ahead (nic->prefetch). */
static unsigned buckets_looked_at(const struct p3_nic *nic)
{
	unsigned buckets = 0;
	for (unsigned i = 0; i < P3_STAGES; i++)
		buckets += nic->prefetch[i].n;
	return buckets;
}

static bool has_full_lane(const struct p3_nic *nic)
{
	return nic->peer[0].req_in.n > P3_BASE_CELLS;
}

/*
 * Return true if part of the burst was looked at ahead, or if it came through a base
 * lane, which it does not fit.
 *
 * The lease is held, so that the whole burst is there when the firmware looks: else it
 * could take each request before the next one is there, and see nothing ahead.
 */
static bool burst_is_looked_at(struct p3_nic *nic)
{
	while (!p3_lease_enter(nic, P3_LEASE_HOST))
		sched_yield(); /* the NIC thread is about to give the lease back */
	bool full = has_full_lane(nic);
	gate_wait(burst);
	gate_wait(burst);
	while (p3_pass_run(nic))
		;
	bool looked = buckets_looked_at(nic) > 0;
	p3_lease_leave(nic);
	return looked || !full;
}

static void take_bursts(struct p3_nic *nic, ptl_handle_eq_t eq, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (i % BURST == 0)
			CHECK(burst_is_looked_at(nic));
		ptl_event_t ev = expect(eq, PTL_EVENT_PUT_END);
		CHECK_EQ(ev.hdr_data, i);
		CHECK_EQ((uintptr_t)ev.md.user_ptr, entry_of(i));
		CHECK_EQ(ev.mlength, bytes_of(i));
	}
}

NODES_CASE(long_lists_are_looked_at_ahead, 2)
{
	static ptl_handle_me_t me[LONG];
	const unsigned n = BURST * (4 + rounds(80));
	sync_nodes(); /* each knows the other: the library is stopped from here on */
	if (rank == 0) {
		send_bursts(ni, n);
		sync_nodes();
		return;
	}
	struct p3_nic *nic = p3_nic(p3_node());
	ptl_handle_eq_t eq = eq_new(ni, 4 * BURST);
	post_long_list(ni, eq, node_alloc(BYTES), me);
	CHECK_EQ(nic->nlong, 1);
	take_bursts(nic, eq, n);
	CHECK(has_full_lane(nic));
	for (unsigned i = 0; i < 400; i++)
		CHECK_OK(PtlMEUnlink(me[i]));
	CHECK_EQ(nic->nlong, 0);
	CHECK_OK(PtlNIFini(ni));
	CHECK_EQ(buckets_looked_at(nic), 0); /* their list is gone */
	sync_nodes();
}

int main(void)
{
	/* the thread that waits for a burst must hold the lease */
	setenv("PTL3_MODE", "lease", 1);
	burst = gate_new(2);
	return cases_run();
}
