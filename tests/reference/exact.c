/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exact.c - event queues with just as many slots as there are messages
 *
 *	exact both	START and END events: two slots for each message, and one more
 *			for its ACK at the sender.
 *	exact ends	END events and ACKs only.
 *
 * A rank reads its queues after it has sent all its messages and slept for a while.  No
 * event may be lost, and none may be left.
 */
#include "ref.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { INDEX = 17, BITS = 0x45, EACH = 20, BYTES = 1500 };

static unsigned int peers, options, per_message;
static ptl_handle_eq_t in_eq, out_eq;
static uint8_t *in, out[BYTES];

static void attach(unsigned int peer)
{
	ptl_md_t md = mp_region(in + peer * BYTES, BYTES,
		PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | options, in_eq);

	ref_attach(INDEX, mp.id[peer], BITS, md, PTL_RETAIN);
}

static void send_all(ptl_handle_md_t handle)
{
	for (unsigned int i = 0; i < EACH; i++)
		for (unsigned int s = 1; s <= peers; s++)
			mp_ok(PtlPut(handle, PTL_ACK_REQ, mp.id[(mp.rank + s) % mp.size],
				INDEX, 0, BITS, 0, i));
}

/* Read the queue until it has given as many events as were counted; count by kind. */
static void drain(ptl_handle_eq_t eq, unsigned int events, unsigned int *kinds)
{
	ptl_event_t event;
	int rc;

	for (unsigned int i = 0; i < events; i++)
		kinds[ref_wait(eq).type]++;
	rc = PtlEQGet(eq, &event);
	if (rc != PTL_EQ_EMPTY)
		FAIL("one event too many: %s, %s", PtlErrorStr((unsigned int)rc),
			PtlEventKindStr(event.type));
}

int main(int argc, char **argv)
{
	unsigned int kinds[PTL_EVENT_UNLINK + 1] = {0}, messages, starts;
	ptl_handle_md_t handle;

	ref_start();
	starts = strcmp(ref_form(argc, argv, "both"), "both") == 0;
	options = starts ? 0 : PTL_MD_EVENT_START_DISABLE;
	per_message = 1 + starts;
	peers = mp.size - 1;
	messages = EACH * peers;
	in = ref_memory((size_t)mp.size * BYTES);
	mp_fill(out, BYTES, mp.rank);
	in_eq = mp_queue(messages * per_message);
	out_eq = mp_queue(messages * (per_message + 1));
	for (unsigned int peer = 0; peer < mp.size; peer++)
		if (peer != mp.rank)
			attach(peer);
	mp_ok(PtlMDBind(
		mp.ni, mp_region(out, BYTES, options, out_eq), PTL_RETAIN, &handle));
	send_all(handle);
	/* pause: all messages come before the first look, as in the model */
	sleep_ms(200);
	drain(in_eq, messages * per_message, kinds);
	drain(out_eq, messages * (per_message + 1), kinds);
	CHECK(kinds[PTL_EVENT_PUT_END] == messages);
	CHECK(kinds[PTL_EVENT_SEND_END] == messages);
	CHECK(kinds[PTL_EVENT_ACK] == messages);
	CHECK(kinds[PTL_EVENT_PUT_START] == messages * starts);
	CHECK(kinds[PTL_EVENT_SEND_START] == messages * starts);
	for (unsigned int peer = 0; peer < mp.size; peer++)
		if (peer != mp.rank)
			mp_compare(in + peer * BYTES, BYTES, peer, "data");
	ref_end();
}
