/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handshake.c - link up with every other rank; say hello again after a second
 *
 *	handshake hello		A rank says hello to each peer again and again until the
 *				peer's own hello has come.  It does not ask for an ACK.
 *	handshake ack		The same until the ACK has come, too.
 *
 * Each rank takes one hello of each peer.  Afterwards it sends each peer one message, and
 * ends when those of all peers have come.
 */
#include "ref.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { INDEX = 4, HELLO = 0x48, DATA = 0x44, BYTES = 600 };

static ptl_handle_eq_t hello_eq, data_eq;
static bool with_ack, *heard, *acked;
static uint64_t word;
static uint8_t *in, out[BYTES];

static void attach(unsigned int peer)
{
	ptl_md_t hello = mp_region(&word, sizeof word, PTL_MD_OP_PUT, hello_eq);
	ptl_md_t data = mp_region(in + peer * BYTES, BYTES, PTL_MD_OP_PUT, data_eq);

	hello.threshold = data.threshold = 1;
	ref_attach(INDEX, mp.id[peer], HELLO, hello, PTL_UNLINK);
	ref_attach(INDEX, mp.id[peer], DATA, data, PTL_UNLINK);
}

/* A descriptor for one hello, which goes when that is sent and acknowledged. */
static void say_hello(unsigned int peer)
{
	static uint64_t mine;
	ptl_md_t md = mp_region(&mine, sizeof mine, 0, hello_eq);
	ptl_handle_md_t handle;

	md.threshold = with_ack ? 2 : 1;
	mp_ok(PtlMDBind(mp.ni, md, PTL_UNLINK, &handle));
	mp_ok(PtlPut(handle, with_ack ? PTL_ACK_REQ : PTL_NO_ACK_REQ, mp.id[peer], INDEX,
		0, HELLO, 0, 0));
}

static bool is_linked(unsigned int peer)
{
	return peer == mp.rank || (heard[peer] && (acked[peer] || !with_ack));
}

static bool are_linked(void)
{
	for (unsigned int peer = 0; peer < mp.size; peer++)
		if (!is_linked(peer))
			return false;
	return true;
}

static void say_hello_to_missing(void)
{
	for (unsigned int peer = 0; peer < mp.size; peer++)
		if (!is_linked(peer))
			say_hello(peer);
}

static void note(const ptl_event_t *event)
{
	ref_good(event);
	if (event->type == PTL_EVENT_PUT_END)
		heard[ref_rank(event->initiator)] = true;
	else if (event->type == PTL_EVENT_ACK)
		acked[ref_rank(event->initiator)] = true;
}

static void link_up(void)
{
	ptl_event_t event;
	int rc, which;

	say_hello_to_missing();
	while (!are_linked()) {
		rc = PtlEQPoll(&hello_eq, 1, 1000, &event, &which);
		if (rc == PTL_EQ_EMPTY)
			say_hello_to_missing();
		else if (rc == PTL_OK)
			note(&event);
		else
			FAIL("PtlEQPoll: %s", PtlErrorStr((unsigned int)rc));
	}
}

static void exchange(void)
{
	ptl_handle_md_t handle;
	unsigned int want = 2 * (mp.size - 1); /* own SEND_END, peers' PUT_END */

	mp_fill(out, BYTES, mp.rank);
	mp_ok(PtlMDBind(mp.ni, mp_region(out, BYTES, 0, data_eq), PTL_RETAIN, &handle));
	for (unsigned int peer = 0; peer < mp.size; peer++)
		if (peer != mp.rank)
			mp_ok(PtlPut(handle, PTL_NO_ACK_REQ, mp.id[peer], INDEX, 0, DATA,
				0, 0));
	while (want) {
		ptl_event_t event = ref_wait(data_eq);

		want -= event.type == PTL_EVENT_PUT_END ||
			event.type == PTL_EVENT_SEND_END;
	}
	for (unsigned int peer = 0; peer < mp.size; peer++)
		if (peer != mp.rank)
			mp_compare(in + peer * BYTES, BYTES, peer, "data");
	mp_ok(PtlMDUnlink(handle));
}

int main(int argc, char **argv)
{
	ref_start();
	with_ack = strcmp(ref_form(argc, argv, "ack"), "ack") == 0;
	heard = ref_memory(mp.size * sizeof *heard);
	acked = ref_memory(mp.size * sizeof *acked);
	in = ref_memory((size_t)mp.size * BYTES);
	hello_eq = mp_queue(1024);
	data_eq = mp_queue(1024);
	for (unsigned int peer = 0; peer < mp.size; peer++)
		if (peer != mp.rank)
			attach(peer);
	link_up();
	exchange();
	ref_end();
}
