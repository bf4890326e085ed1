/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of checked messages. */
#include "frame.h"

#include <stdlib.h>
#include <string.h>

enum { GOT = 31 }; /* word: messages that the receiver has */

static unsigned owed; /* SEND events that are to come */

static bool take_one(struct side s)
{
	cci_event_t *event;
	int rc = cci_get_event(s.ep, &event);
	if (rc != CCI_SUCCESS) {
		CHECK(rc == CCI_EAGAIN || rc == CCI_ENOBUFS);
		return false;
	}
	CHECK(event->type == CCI_EVENT_SEND);
	CHECK_EQ(event->send.status, CCI_SUCCESS);
	RETURN(event);
	CHECK(owed > 0);
	owed--;
	return true;
}

void send_patiently(
	struct side s, const void *bytes, uint32_t length, const void *context, int flags)
{
	struct patience p = patience_begin();
	int rc;
	while ((rc = cci_send(s.conn, bytes, length, context, flags)) == CCI_ENOBUFS) {
		look_at(__FILE__, __LINE__, &p, "a send buffer");
		if (owed)
			(void)take_one(s);
	}
	CHECK_EQ(rc, CCI_SUCCESS);
	owed += !(flags & (CCI_FLAG_SILENT | CCI_FLAG_BLOCKING));
}

void take_sends(struct side s, unsigned most)
{
	struct patience p = patience_begin();
	while (owed > most)
		if (!take_one(s))
			look_at(__FILE__, __LINE__, &p, "SEND events");
}

void forget_sends(void)
{
	owed = 0;
}

void slow_down(unsigned sent)
{
	if (sent % 500 == 499)
		await_word(GOT, sent > 1000 ? sent - 1000 : 0);
}

static uint32_t length_of(unsigned long i, uint32_t max)
{
	uint64_t dice = mix(i);
	if (dice % 64 == 0)
		return 8 + (uint32_t)(mix(dice) % (max - 7));
	return 8 + (uint32_t)(mix(dice) % 90);
}

static void send_stream(struct side s, unsigned long n, unsigned window)
{
	static unsigned char bytes[1 << 16];
	bool ordered = s.conn->attribute == CCI_CONN_ATTR_RO;
	unsigned long sent = 0, done = 0;
	struct patience p = patience_times(3);
	while (done < n) {
		cci_event_t *event;
		while (sent < n && (!window || sent - word(GOT) < window)) {
			uint32_t length = length_of(sent, s.conn->max_send_size);
			memcpy(bytes, &sent, 8);
			memcpy(bytes + 8, pattern(sent), length - 8);
			int rc = cci_send(s.conn, bytes, length, CONTEXT(sent), 0);
			CHECK(rc == CCI_SUCCESS || rc == CCI_ENOBUFS);
			if (rc != CCI_SUCCESS)
				break;
			sent++;
		}
		look_at(__FILE__, __LINE__, &p, "the end of a stream");
		while (done < sent && cci_get_event(s.ep, &event) == CCI_SUCCESS) {
			CHECK(event->type == CCI_EVENT_SEND);
			CHECK_EQ(event->send.status, CCI_SUCCESS);
			CHECK(!ordered || event->send.context == CONTEXT(done));
			RETURN(event);
			done++;
		}
	}
}

static void receive_stream(struct side s, unsigned long n)
{
	bool ordered = s.conn->attribute == CCI_CONN_ATTR_RO;
	unsigned char *seen = calloc(n, 1);
	CHECK(seen);
	for (unsigned long i = 0; i < n; i++) {
		unsigned long number;
		cci_event_t *event = EXPECT(s.ep, CCI_EVENT_RECV);
		CHECK(event->recv.len >= 8);
		memcpy(&number, event->recv.ptr, 8);
		CHECK(number < n && !seen[number]);
		CHECK(!ordered || number == i);
		CHECK_EQ(event->recv.len, length_of(number, s.conn->max_send_size));
		CHECK_BYTES(
			(const char *)event->recv.ptr + 8, event->recv.len - 8, number);
		seen[number] = 1;
		RETURN(event);
		set_word(GOT, i + 1);
	}
	free(seen);
}

void stream(cci_conn_attribute_t attribute, unsigned long n, unsigned window)
{
	struct side s = meet(attribute);
	barrier();
	set_word(GOT, 0);
	barrier();
	if (me.is_client)
		send_stream(s, n, window);
	if (me.is_server)
		receive_stream(s, n);
	barrier();
	SILENCE(s.ep, 2);
}
