/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * first.c - begin with a put, without a handshake, and wait for the answer
 *
 *	first down	Rank 0 asks all others.
 *	first up	All others ask rank 0.
 *	first ring	Each rank asks the next one.
 *
 * The lengths are different for each pair of ranks: some are copied, others are read by
 * the receiver.  A rank that has answered ends at the SEND_END of the last answer.
 */
#include "ref.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { INDEX = 9, QUESTION = 0x51, ANSWER = 0x41, MOST = 200000 };

static const size_t lengths[] = {8, 0, 300, 4000, 20000, MOST};
static const char *form;
static ptl_handle_eq_t eq;
static uint8_t **asked, **answered, **sent; /* by peer */
static unsigned int questions, answers, sends;

static bool asks(unsigned int from, unsigned int to)
{
	if (from == to)
		return false;
	if (strcmp(form, "down") == 0)
		return from == 0;
	if (strcmp(form, "up") == 0)
		return to == 0;
	return to == (from + 1) % mp.size;
}

static size_t length_of(unsigned int from, unsigned int to)
{
	return lengths[(from * 5 + to) % (sizeof lengths / sizeof *lengths)];
}

static void attach(uint8_t **where, unsigned int peer, ptl_match_bits_t bits)
{
	ptl_md_t md;

	where[peer] = ref_memory(MOST);
	md = mp_region(where[peer], MOST, PTL_MD_OP_PUT, eq);
	md.threshold = 1;
	ref_attach(INDEX, mp.id[peer], bits, md, PTL_UNLINK);
}

static void put(unsigned int peer, size_t bytes, ptl_match_bits_t bits)
{
	ptl_handle_md_t handle;
	ptl_md_t md;

	sent[peer] = ref_memory(bytes);
	mp_fill(sent[peer], bytes, mp.rank);
	md = mp_region(sent[peer], bytes, 0, eq);
	md.threshold = 1;
	mp_ok(PtlMDBind(mp.ni, md, PTL_UNLINK, &handle));
	mp_ok(PtlPut(handle, PTL_NO_ACK_REQ, mp.id[peer], INDEX, 0, bits, 0, 0));
	sends++;
}

static void arrived(const ptl_event_t *event)
{
	unsigned int peer = ref_rank(event->initiator);

	CHECK(event->mlength == event->rlength);
	if (event->match_bits == ANSWER) {
		CHECK(event->mlength == length_of(peer, mp.rank));
		mp_compare(answered[peer], event->mlength, peer, "data");
		answers--;
		return;
	}
	CHECK(event->mlength == length_of(peer, mp.rank));
	mp_compare(asked[peer], event->mlength, peer, "data");
	questions--;
	put(peer, length_of(mp.rank, peer), ANSWER);
}

int main(int argc, char **argv)
{
	ref_start();
	form = ref_form(argc, argv, "ring");
	eq = mp_queue(256);
	asked = ref_memory(mp.size * sizeof *asked);
	answered = ref_memory(mp.size * sizeof *answered);
	sent = ref_memory(mp.size * sizeof *sent);
	for (unsigned int peer = 0; peer < mp.size; peer++) {
		if (asks(peer, mp.rank)) {
			attach(asked, peer, QUESTION);
			questions++;
		}
		if (asks(mp.rank, peer)) {
			attach(answered, peer, ANSWER);
			answers++;
		}
	}
	for (unsigned int peer = 0; peer < mp.size; peer++)
		if (asks(mp.rank, peer))
			put(peer, length_of(mp.rank, peer), QUESTION);
	while (questions || answers || sends) {
		ptl_event_t event = ref_wait(eq);

		if (event.type == PTL_EVENT_PUT_END)
			arrived(&event);
		else if (event.type == PTL_EVENT_SEND_END)
			sends--;
	}
	ref_end();
}
