/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to the peer: puts, notes, and the number of messages of some rounds. */
#include "perf.h"

static int put(
	struct perf_node *n, ptl_ack_req_t ack, uint64_t remote, ptl_hdr_data_t hdr)
{
	return PtlPut(n->out, ack, n->peer, PERF_PORTAL_PUT, 0, BENCH_BITS, remote, hdr);
}

static void put_again(struct perf_node *n, int rc, ptl_ack_req_t ack, uint64_t remote,
	ptl_hdr_data_t hdr)
{
	while (rc == PTL_NO_SPACE) { /* bench_try() advances the operations that wait */
		bench_try(&n->w);
		rc = put(n, ack, remote, hdr);
	}
	bench_check(rc, "PtlPut");
}

void perf_put(struct perf_node *n, uint64_t remote, ptl_hdr_data_t hdr)
{
	int rc = put(n, PTL_NO_ACK_REQ, remote, hdr);
	if (__builtin_expect(rc != PTL_OK, 0))
		put_again(n, rc, PTL_NO_ACK_REQ, remote, hdr);
}

void perf_put_for_ack(struct perf_node *n, ptl_hdr_data_t hdr)
{
	int rc = put(n, PTL_ACK_REQ, 0, hdr);
	if (__builtin_expect(rc != PTL_OK, 0))
		put_again(n, rc, PTL_ACK_REQ, 0, hdr);
}

void perf_tell(struct perf_node *n, ptl_process_id_t whom, ptl_hdr_data_t what)
{
	int rc = PtlPut(
		n->note, PTL_NO_ACK_REQ, whom, PERF_PORTAL_PUT, 0, BENCH_BITS, 0, what);
	bench_check(rc, "PtlPut");
}

/* Send the value from the first rank to the other one, and return it.  Do not count the
 * event of the note, so that messages still start at 0. */
uint64_t perf_agree(struct perf_node *n, uint64_t value)
{
	if (n->first) {
		perf_tell(n, n->peer, value);
		return value;
	}
	bench_await(&n->w, PTL_EVENT_PUT_END, n->w.seen[PTL_EVENT_PUT_END] + 1);
	n->w.seen[PTL_EVENT_PUT_END]--;
	return n->w.last.hdr_data;
}

uint64_t perf_messages(const struct perf_node *n, uint64_t count)
{
	uint64_t senders = n->test == PERF_NTO1 ? n->b->size - 1 : 1;
	return perf_is_stream(n->test) ? count * n->window * senders : count;
}
