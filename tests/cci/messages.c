/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance of CCI: messages. */
#include "frame.h"

#include <portals3.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const uint32_t lengths[] = {0, 1, 7, 8, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33,
	63, 64, 65, 127, 128, 129, 511, 512, 513, 1023, 1024, 2048};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* Return the nth length to try. */
static uint32_t length_of(cci_connection_t *conn, unsigned n)
{
	return n < LENGTHS ? lengths[n] : conn->max_send_size - (n - LENGTHS);
}

static void check_message(struct side s, uint32_t length, uint64_t seed)
{
	cci_event_t *event = EXPECT(s.ep, CCI_EVENT_RECV);
	CHECK(event->recv.connection == s.conn);
	CHECK_EQ(event->recv.len, length);
	if (length)
		CHECK_BYTES(event->recv.ptr, length, seed);
	RETURN(event);
}

STATEMENT(71, lengths, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		for (unsigned i = 0; i < LENGTHS + 2; i++) {
			uint32_t length = length_of(s.conn, i);
			if (me.is_client) {
				OK(cci_send(s.conn, length ? pattern(i) : NULL, length,
					CONTEXT(i), 0));
				SENT(s.ep, CONTEXT(i));
			} else {
				check_message(s, length, i);
			}
		}
		barrier();
		SILENCE(s.ep, 2);
	}
}

STATEMENT(72, too_long, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		uint32_t length = s.conn->max_send_size + 1;
		if (me.is_client) {
			CHECK_RC(cci_send(s.conn, pattern(1), length, NULL, 0),
				CCI_EMSGSIZE);
			CHECK_RC(cci_send(s.conn, pattern(1), UINT32_MAX, NULL, 0),
				CCI_EMSGSIZE);
			CHECK_RC(cci_send(s.conn, NULL, 5, NULL, 0), CCI_EINVAL);
			SILENCE(s.ep, 5);
			OK(cci_send(s.conn, "end", 3, NULL, 0));
			TAKE(s.ep, CCI_EVENT_SEND);
		} else {
			cci_event_t *event = EXPECT(s.ep, CCI_EVENT_RECV);
			CHECK_EQ(event->recv.len, 3);
			RETURN(event);
		}
		barrier();
	}
}

STATEMENT(73, buffer_may_be_overwritten, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		for (unsigned i = 0; i < 500; i++) {
			uint32_t length = length_of(s.conn, i % (LENGTHS + 2));
			if (me.is_server) {
				check_message(s, length, i);
				continue;
			}
			unsigned char *bytes = malloc(length + 1u);
			CHECK(bytes);
			fill(bytes, length, i);
			send_patiently(s, bytes, length, CONTEXT(i), 0);
			memset(bytes, 0xa5, length);
			free(bytes);
			take_sends(s, 100);
		}
		take_sends(s, 0);
		barrier();
	}
}

STATEMENT(74, contexts, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		static const uintptr_t contexts[] = {0, 1, 0xdeadbeef, UINTPTR_MAX, 1};
		for (unsigned i = 0; i < 5; i++) {
			if (me.is_server) {
				check_message(s, i, i);
				continue;
			}
			OK(cci_send(s.conn, pattern(i), i, CONTEXT(contexts[i]), 0));
			cci_event_t *event = EXPECT(s.ep, CCI_EVENT_SEND);
			CHECK(event->send.context == CONTEXT(contexts[i]));
			CHECK(event->send.connection == s.conn);
			CHECK(event->send.connection->context == CONTEXT(0xc11e47));
			RETURN(event);
		}
		barrier();
	}
}

STATEMENT(75, ordered_stream, 2, 0)
{
	stream(CCI_CONN_ATTR_RO, many(1000000), 0);
}

STATEMENT(76, unordered_stream, 2, 0)
{
	stream(CCI_CONN_ATTR_RU, many(1000000), 0);
}

STATEMENT(77, unreliable_stream, 2, 0)
{
	stream(CCI_CONN_ATTR_UU, many(1000000), 1000);
}

/* ---- the receiver holds all buffers ---- */

/* Send n empty messages and take their events, the server's buffers to fill. */
static void fill_receiver(struct side s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		send_patiently(s, NULL, 0, CONTEXT(i), 0);
		take_sends(s, 200);
	}
	take_sends(s, 0);
}

/* Connect with few buffers at the server; tell both sides their number. */
static struct side meet_few(cci_conn_attribute_t a, uint32_t *n)
{
	struct side s;
	unsigned nth = uris_told();
	uint32_t few = 64;
	up();
	s.ep = endpoint();
	if (me.is_server)
		(void)cci_set_opt(
			(cci_opt_handle_t *)s.ep, CCI_OPT_ENDPT_RECV_BUF_COUNT, &few);
	if (me.is_server)
		set_word(20, option(s.ep, CCI_OPT_ENDPT_RECV_BUF_COUNT));
	s.conn = meet_again(s.ep, nth, a);
	barrier();
	*n = (uint32_t)word(20);
	return s;
}

STATEMENT(78, unreliable_drops, 2, 0)
{
	uint32_t n;
	struct side s = meet_few(CCI_CONN_ATTR_UU, &n);
	if (me.is_client) {
		for (uint32_t i = 0; i < n; i++) {
			OK(cci_send(s.conn, NULL, 0, NULL, 0));
			TAKE(s.ep, CCI_EVENT_SEND);
			await_word(0, i + 1);
		}
		for (unsigned i = 0; i < 1000; i++) { /* dropped */
			send_patiently(s, "drop", 4, CONTEXT(i), 0);
			take_sends(s, 0);
		}
		barrier(); /* the server still holds all */
		cci_connection_t *fence = meet_again(s.ep, 0, CCI_CONN_ATTR_RO);
		barrier();
		OK(cci_send(fence, "new", 3, NULL, CCI_FLAG_BLOCKING));
		OK(cci_send(s.conn, "new", 3, NULL, CCI_FLAG_SILENT));
		return;
	}
	cci_event_t **held = calloc(n, sizeof *held), *event;
	CHECK(held);
	for (uint32_t i = 0; i < n; i++) {
		held[i] = EXPECT(s.ep, CCI_EVENT_RECV);
		add_word(0, 1);
	}
	barrier();
	/* The lane keeps order: with this request the dropped messages have come. */
	cci_connection_t *fence = meet_again(s.ep, 0, CCI_CONN_ATTR_RO);
	CHECK_RC(cci_get_event(s.ep, &event), CCI_ENOBUFS);
	return_all(held, n);
	barrier();
	unsigned unreliable = 0;
	for (int i = 0; i < 2; i++) {
		event = EXPECT(s.ep, CCI_EVENT_RECV);
		CHECK_EQ(event->recv.len, 3);
		CHECK(memcmp(event->recv.ptr, "new", 3) == 0);
		unreliable += event->recv.connection == s.conn;
		RETURN(event);
	}
	CHECK(fence);
	CHECK_EQ(unreliable, 1);
}

STATEMENT(79, unreliable_to_a_stopped_peer, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_UU);
	if (me.is_server) {
		may_die(1);
		barrier();
		for (;;)
			pause();
	}
	barrier();
	signal_rank(1, SIGSTOP);
	enum { FIRST = 10 };
	unsigned sent = 0;
	int rc;
	struct patience p = patience_begin();
	for (; sent < FIRST; sent++)
		OK(cci_send(s.conn, pattern(sent), 100, CONTEXT(sent), 0));
	for (unsigned i = 0; i < FIRST; i++) /* complete without the peer */
		TAKE(s.ep, CCI_EVENT_SEND);
	while ((rc = cci_send(s.conn, pattern(sent), 100, CONTEXT(sent), 0)) ==
		CCI_SUCCESS) {
		sent++;
		look_at(__FILE__, __LINE__, &p, "the end of all buffers");
	}
	CHECK_RC(rc, CCI_ENOBUFS);
	signal_rank(1, SIGCONT);
	for (unsigned i = FIRST; i < sent; i++)
		TAKE(s.ep, CCI_EVENT_SEND);
	signal_rank(1, SIGKILL);
}

STATEMENT(80, bypass, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RO);
	barrier();
	if (me.is_server) {
		while (!word(0)) /* no call of the library until all have come */
			compute_ms(1);
		for (unsigned i = 0; i < 50; i++)
			check_message(s, 40, i);
		return;
	}
	for (unsigned i = 0; i < 50; i++) {
		OK(cci_send(s.conn, pattern(i), 40, CONTEXT(i), 0));
		SENT(s.ep, CONTEXT(i));
	}
	set_word(0, 1);
}

STATEMENT(81, blocking, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		for (unsigned i = 0; i < 50; i++) {
			if (me.is_server) {
				send_patiently(s, "back", 4, NULL, CCI_FLAG_SILENT);
				check_message(s, 33, i);
				continue;
			}
			int extra = i % 3 == 1   ? CCI_FLAG_SILENT
				    : i % 3 == 2 ? CCI_FLAG_NO_COPY
						 : 0;
			OK(cci_send(
				s.conn, pattern(i), 33, NULL, CCI_FLAG_BLOCKING | extra));
		}
		for (unsigned i = 0; i < 50 && me.is_client; i++)
			TAKE(s.ep, CCI_EVENT_RECV);
		barrier();
		SILENCE(s.ep, 5);
	}
}

STATEMENT(82, blocking_to_a_closed_one, 2, 0)
{
	for (cci_conn_attribute_t a = CCI_CONN_ATTR_RO; a <= CCI_CONN_ATTR_RU; a++) {
		struct side s = meet(a);
		if (me.is_server)
			OK(cci_disconnect(s.conn));
		barrier();
		if (me.is_client)
			for (int i = 0; i < 3; i++)
				CHECK_RC(
					cci_send(s.conn, "x", 1, NULL, CCI_FLAG_BLOCKING),
					CCI_ERR_DISCONNECTED);
		barrier();
		SILENCE(s.ep, 2);
	}
}

STATEMENT(83, silent, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		unsigned n = (unsigned)many(10000);
		if (me.is_server) {
			for (unsigned i = 0; i < n; i++) {
				check_message(s, 17, i);
				set_word(31, i + 1);
			}
			set_word(31, 0);
		} else {
			for (unsigned i = 0; i < n; i++) {
				send_patiently(
					s, pattern(i), 17, CONTEXT(i), CCI_FLAG_SILENT);
				if (a == CCI_CONN_ATTR_UU)
					slow_down(i);
			}
		}
		if (me.is_server && a == CCI_CONN_ATTR_RO)
			check_message(s, 1, 1);
		if (me.is_client && a == CCI_CONN_ATTR_RO) {
			send_patiently(s, pattern(1), 1, CONTEXT(1), 0);
			take_sends(s, 0);
		}
		barrier();
		SILENCE(s.ep, 5);
	}
}

STATEMENT(84, no_copy, 2, 0)
{
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		static unsigned char bytes[4096];
		for (unsigned i = 0; i < LENGTHS + 2; i++) {
			uint32_t length = length_of(s.conn, i);
			length = length > sizeof bytes ? sizeof bytes : length;
			if (me.is_server) {
				check_message(s, length, i);
				continue;
			}
			fill(bytes, length, i);
			OK(cci_send(s.conn, bytes, length, CONTEXT(i), CCI_FLAG_NO_COPY));
			CHECK_BYTES(bytes, length, i);
			SENT(s.ep, CONTEXT(i));
			CHECK_BYTES(bytes, length, i);
		}
		int both_flags = CCI_FLAG_NO_COPY | CCI_FLAG_SILENT;
		if (me.is_client && a != CCI_CONN_ATTR_RO)
			CHECK_RC(
				cci_send(s.conn, bytes, 5, NULL, both_flags), CCI_EINVAL);
		if (me.is_client && a == CCI_CONN_ATTR_RO)
			OK(cci_send(s.conn, bytes, 0, NULL, both_flags));
		if (me.is_server && a == CCI_CONN_ATTR_RO)
			check_message(s, 0, 0);
		barrier();
	}
}

/* Cut a message into pieces of which some are empty. */
static uint32_t cut(
	struct iovec *piece, uint32_t pieces, const unsigned char *bytes, uint32_t length)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t n = i % 3 == 1        ? 0
			     : i + 1 == pieces ? length - at
					       : (length - at) / 3;
		piece[i] = (struct iovec){n ? (void *)(uintptr_t)(bytes + at) : NULL, n};
		at += n;
	}
	return at;
}

STATEMENT(85, pieces, 2, 0)
{
	static const uint32_t counts[] = {0, 1, 2, 3, 64};
	struct iovec piece[64];
	EACH_ATTRIBUTE(a)
	{
		struct side s = meet(a);
		uint32_t max = s.conn->max_send_size;
		for (unsigned k = 0; k < 5; k++)
			for (unsigned i = 0; i < LENGTHS + 2; i++) {
				uint32_t length = cut(piece, counts[k], pattern(i),
					length_of(s.conn, i));
				if (me.is_server) {
					check_message(s, length, i);
					continue;
				}
				OK(cci_sendv(s.conn, counts[k] ? piece : NULL, counts[k],
					CONTEXT(i), i % 2 ? CCI_FLAG_NO_COPY : 0));
				memset(piece, 0xff, sizeof piece);
				SENT(s.ep, CONTEXT(i));
			}
		if (me.is_client) {
			uint32_t length = cut(piece, 64, pattern(1), max + 1);
			CHECK_EQ(length, max + 1);
			CHECK_RC(cci_sendv(s.conn, piece, 64, NULL, 0), CCI_EMSGSIZE);
			piece[0] = (struct iovec){NULL, 5};
			CHECK_RC(cci_sendv(s.conn, piece, 1, NULL, 0), CCI_EINVAL);
			CHECK_RC(cci_sendv(s.conn, NULL, 1, NULL, 0), CCI_EINVAL);
			CHECK_RC(cci_sendv(NULL, piece, 0, NULL, 0), CCI_EINVAL);
		}
		barrier();
		SILENCE(s.ep, 2);
	}
}

STATEMENT(86, send_nowhere, 1, 0)
{
	up();
	CHECK_RC(cci_send(NULL, "x", 1, NULL, 0), CCI_EINVAL);
	CHECK_RC(cci_sendv(NULL, NULL, 0, NULL, 0), CCI_EINVAL);
}

/* Send until there is no buffer; return the number. */
static unsigned send_all_buffers(struct side s, int flags)
{
	unsigned n = 0;
	while (n < 1000000 &&
		cci_send(s.conn, pattern(n), n % 100, CONTEXT(n), flags) == CCI_SUCCESS)
		n++;
	return n;
}

STATEMENT(87, no_buffers, 2, 0)
{
	for (cci_conn_attribute_t a = CCI_CONN_ATTR_RO; a <= CCI_CONN_ATTR_RU; a++) {
		struct side s = meet(a);
		uint32_t most = option(s.ep, CCI_OPT_ENDPT_SEND_BUF_COUNT);
		unsigned n = 0;
		if (me.is_client) {
			n = send_all_buffers(s, 0);
			CHECK(n > 0 && n <= most);
			for (unsigned i = 0; i < n; i++)
				TAKE(s.ep, CCI_EVENT_SEND);
			/* All buffers are free again. */
			send_patiently(s, pattern(n), n % 100, CONTEXT(n), 0);
			take_sends(s, 0);
			n++;
			/* Silent ones get free without a poll. */
			for (unsigned i = 0; i < 2 * most; i++, n++) {
				struct patience p = patience_begin();
				while (cci_send(s.conn, pattern(n), n % 100, NULL,
					       CCI_FLAG_SILENT) != CCI_SUCCESS)
					look_at(__FILE__, __LINE__, &p, "a buffer");
			}
			set_word(3 + (unsigned)a, n);
		} else {
			struct patience p = patience_times(2);
			while (!word(3 + (unsigned)a) || n < word(3 + (unsigned)a)) {
				cci_event_t *event;
				look_at(__FILE__, __LINE__, &p, "all messages");
				if (cci_get_event(s.ep, &event) != CCI_SUCCESS)
					continue;
				CHECK(a != CCI_CONN_ATTR_RO ||
					event->recv.len == n % 100);
				if (n % 100 && a == CCI_CONN_ATTR_RO)
					CHECK_BYTES(event->recv.ptr, n % 100, n);
				RETURN(event);
				n++;
			}
		}
		barrier();
		SILENCE(s.ep, 2);
	}
}

/* ---- 16 threads ---- */

enum { SENDERS = 16 };

static struct side sixteen;
static unsigned each;

static void send_as(void *argument)
{
	uint32_t text[2] = {(uint32_t)(uintptr_t)argument, 0};
	for (; text[1] < each; text[1]++)
		while (cci_send(sixteen.conn, text, sizeof text, NULL, CCI_FLAG_SILENT) ==
			CCI_ENOBUFS)
			sleep_us(10);
}

STATEMENT(88, sixteen_threads, 2, 0)
{
	for (cci_conn_attribute_t a = CCI_CONN_ATTR_RO; a <= CCI_CONN_ATTR_RU; a++) {
		struct thread *t[SENDERS];
		sixteen = meet(a);
		each = (unsigned)many(20000);
		if (me.is_client) {
			for (unsigned i = 0; i < SENDERS; i++)
				t[i] = thread_start(send_as, (void *)(uintptr_t)i);
			for (unsigned i = 0; i < SENDERS; i++)
				thread_join(t[i]);
		} else {
			uint32_t next[SENDERS] = {0}, text[2];
			bool *seen = calloc(SENDERS * each, sizeof *seen);
			CHECK(seen);
			for (unsigned i = 0; i < SENDERS * each; i++) {
				cci_event_t *event = EXPECT(sixteen.ep, CCI_EVENT_RECV);
				memcpy(text, event->recv.ptr, sizeof text);
				CHECK(text[0] < SENDERS && text[1] < each);
				CHECK(!seen[text[0] * each + text[1]]);
				seen[text[0] * each + text[1]] = true;
				CHECK(a == CCI_CONN_ATTR_RU ||
					text[1] == next[text[0]]++);
				RETURN(event);
			}
			free(seen);
		}
		barrier();
		SILENCE(sixteen.ep, 2);
	}
}

/* ---- receiver not ready ---- */

/* A receiver that is slower than its sender frees buffers while messages behind a refused
 * one arrive: they must not overtake it. */
static void run_short(struct side s)
{
	enum { MESSAGES = 10000 };
	barrier();
	for (unsigned i = 0, number; i < MESSAGES; i++) {
		if (me.is_client) {
			send_patiently(s, &i, sizeof i, CONTEXT(i), 0);
			take_sends(s, 400);
			continue;
		}
		cci_event_t *event = EXPECT(s.ep, CCI_EVENT_RECV);
		memcpy(&number, event->recv.ptr, sizeof number);
		CHECK_EQ(number, i);
		RETURN(event);
		if (i % 10 == 0)
			sleep_us(100); /* pause: the sender runs into RNR */
	}
	take_sends(s, 0);
	barrier();
}

/* The receiver holds all buffers for a while; then all messages arrive. */
static void hold_and_go_on(cci_conn_attribute_t a)
{
	uint32_t n;
	enum { MORE = 300 };
	struct side s = meet_few(a, &n);
	if (me.is_client) {
		fill_receiver(s, n);
		for (unsigned i = 0; i < MORE; i++)
			send_patiently(s, &i, sizeof i, CONTEXT(i), 0);
		forget_sends();
		barrier();
		bool seen[MORE] = {false};
		for (unsigned i = 0; i < MORE; i++) {
			cci_event_t *event = EXPECT(s.ep, CCI_EVENT_SEND);
			uintptr_t at = (uintptr_t)event->send.context;
			CHECK(at < MORE && !seen[at]);
			CHECK(a == CCI_CONN_ATTR_RU || at == i);
			seen[at] = true;
			RETURN(event);
		}
		barrier();
		if (a == CCI_CONN_ATTR_RO)
			run_short(s);
		return;
	}
	cci_event_t **held = hold_all(s.ep, n), *event;
	barrier();
	/* pause: the time for which the receiver is not ready */
	sleep_us(many(1000) < 1000 ? 200000 : 1000000);
	CHECK_RC(cci_get_event(s.ep, &event), CCI_ENOBUFS);
	return_all(held, n);
	bool seen[MORE] = {false};
	for (unsigned i = 0; i < MORE; i++) {
		unsigned number;
		event = EXPECT(s.ep, CCI_EVENT_RECV);
		memcpy(&number, event->recv.ptr, sizeof number);
		CHECK(number < MORE && !seen[number]);
		CHECK(a == CCI_CONN_ATTR_RU || number == i);
		seen[number] = true;
		RETURN(event);
	}
	barrier();
	SILENCE(s.ep, 5);
	if (a == CCI_CONN_ATTR_RO)
		run_short(s);
}

STATEMENT(89, ordered_waits_for_buffers, 2, 0)
{
	hold_and_go_on(CCI_CONN_ATTR_RO);
}

STATEMENT(90, unordered_waits_for_buffers, 2, 0)
{
	hold_and_go_on(CCI_CONN_ATTR_RU);
}

/* The receiver holds all buffers for longer than the time-out. */
static void not_ready_for_too_long(cci_conn_attribute_t a)
{
	uint32_t n;
	enum { SOME = 20 };
	struct side s = meet_few(a, &n);
	unsigned nth = uris_told();
	cci_endpoint_t *other = endpoint();
	cci_connection_t *conn = meet_again(other, nth, a);
	if (me.is_client) {
		fill_receiver(s, n);
		for (unsigned i = 0; i < SOME; i++)
			OK(cci_send(s.conn, "x", 1, CONTEXT(i), 0));
		/* Another endpoint of the receiver has buffers.  The lane keeps order, so
		 * the first messages have been refused now: their time begins anew. */
		OK(cci_send(conn, "y", 1, NULL, CCI_FLAG_BLOCKING));
		set_option(s.conn, CCI_OPT_CONN_SEND_TIMEOUT, 100000);
		for (unsigned i = 0; i < SOME; i++) {
			cci_event_t *event =
				EXPECT_STATUS(s.ep, CCI_EVENT_SEND, CCI_ERR_RNR);
			CHECK(a == CCI_CONN_ATTR_RU || event->send.context == CONTEXT(i));
			RETURN(event);
		}
		if (a == CCI_CONN_ATTR_RO) {
			OK(cci_send(s.conn, "z", 1, CONTEXT(7), 0));
			RETURN(EXPECT_STATUS(s.ep, CCI_EVENT_SEND, CCI_ERR_RNR));
		}
		OK(cci_send(conn, "y", 1, NULL, CCI_FLAG_BLOCKING));
		barrier();
		return;
	}
	cci_event_t **held = hold_all(s.ep, n);
	TAKE(other, CCI_EVENT_RECV);
	TAKE(other, CCI_EVENT_RECV);
	barrier();
	return_all(held, n);
	SILENCE(s.ep, 20);
}

STATEMENT(91, not_ready_until_time_out, 2, 0)
{
	not_ready_for_too_long(CCI_CONN_ATTR_RO);
	barrier();
	not_ready_for_too_long(CCI_CONN_ATTR_RU);
}

STATEMENT(92, stopped_until_time_out, 2, 0)
{
	struct side s = meet(CCI_CONN_ATTR_RO);
	cci_connection_t *second = meet_again(s.ep, 0, CCI_CONN_ATTR_RU);
	if (me.is_server) {
		may_die(1);
		barrier();
		for (;;)
			pause();
	}
	set_option(s.conn, CCI_OPT_CONN_SEND_TIMEOUT, 100000);
	set_option(second, CCI_OPT_CONN_SEND_TIMEOUT, 100000);
	barrier();
	signal_rank(1, SIGSTOP);
	for (unsigned i = 0; i < 10; i++) {
		OK(cci_send(s.conn, "x", 1, CONTEXT(i), 0));
		OK(cci_send(second, "x", 1, CONTEXT(i), 0));
	}
	unsigned ordered = 0;
	for (unsigned i = 0; i < 20; i++) {
		cci_event_t *event = EXPECT_STATUS(s.ep, CCI_EVENT_SEND, CCI_ETIMEDOUT);
		if (event->send.connection == s.conn)
			CHECK(event->send.context == CONTEXT(ordered++));
		RETURN(event);
	}
	CHECK_EQ(ordered, 10);
	CHECK_RC(cci_send(second, "x", 1, NULL, CCI_FLAG_BLOCKING), CCI_ETIMEDOUT);
	signal_rank(1, SIGKILL);
}

/* ---- a receiver that never returns events ---- */

static ptl_handle_eq_t eq;
static ptl_handle_md_t md;

static void portals_up(ptl_process_id_t *id)
{
	int most;
	ptl_handle_ni_t ni;
	ptl_handle_me_t entry;
	static char bytes[64];
	ptl_process_id_t any = {PTL_NID_ANY, PTL_PID_ANY};
	CHECK(PtlInit(&most) == PTL_OK);
	CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
	CHECK(PtlGetId(ni, id) == PTL_OK);
	CHECK(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK);
	ptl_md_t mine = {.start = bytes,
		.length = sizeof bytes,
		.threshold = PTL_MD_THRESH_INF,
		.options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
			   PTL_MD_EVENT_START_DISABLE,
		.eq_handle = eq};
	CHECK(PtlMEAttach(ni, 4, any, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &entry) == PTL_OK);
	CHECK(PtlMDAttach(entry, mine, PTL_RETAIN, NULL) == PTL_OK);
	mine.options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;
	CHECK(PtlMDBind(ni, mine, PTL_RETAIN, &md) == PTL_OK);
}

static void await_ack(ptl_process_id_t to)
{
	ptl_event_t event;
	CHECK(PtlPut(md, PTL_ACK_REQ, to, 4, 0, 0, 0, 0) == PTL_OK);
	POLL(PtlEQGet(eq, &event) == PTL_OK);
	CHECK(event.type == PTL_EVENT_ACK && event.ni_fail_type == PTL_NI_OK);
}

/*
 * Messages that wait for a full endpoint must not hold up the lane: round trips of
 * another endpoint and of Portals get through beside them, 1,000 of each, while none of
 * the waiting ones is lost.
 */
STATEMENT(93, only_its_own_senders_wait, 2, 0)
{
	uint32_t n;
	ptl_process_id_t id;
	struct side full = meet_few(CCI_CONN_ATTR_RO, &n), other;
	other.ep = endpoint();
	other.conn = meet_again(other.ep, 1, CCI_CONN_ATTR_RO);
	portals_up(&id);
	if (me.is_server)
		memcpy(shared(), &id, sizeof id);
	barrier();
	unsigned rounds = (unsigned)many(20000);
	if (me.is_client) {
		memcpy(&id, shared(), sizeof id);
		fill_receiver(full, n);
		for (unsigned i = 0; i < 500; i++)
			OK(cci_send(full.conn, &i, sizeof i, CONTEXT(i), 0));
		for (unsigned i = 0; i < rounds; i++) {
			OK(cci_send(other.conn, &i, sizeof i, NULL, CCI_FLAG_BLOCKING));
			await_ack(id);
		}
		SILENCE(full.ep, 0);
		barrier();
		for (unsigned i = 0; i < 500; i++)
			SENT(full.ep, CONTEXT(i));
		return;
	}
	cci_event_t **held = hold_all(full.ep, n);
	for (unsigned i = 0; i < rounds; i++) {
		cci_event_t *event = EXPECT(other.ep, CCI_EVENT_RECV);
		CHECK(memcmp(event->recv.ptr, &i, sizeof i) == 0);
		RETURN(event);
	}
	barrier();
	return_all(held, n);
	for (unsigned i = 0; i < 500; i++) {
		cci_event_t *event = EXPECT(full.ep, CCI_EVENT_RECV);
		CHECK(memcmp(event->recv.ptr, &i, sizeof i) == 0);
		RETURN(event);
	}
}

/* ---- death ---- */

static void kill_with_sends(cci_conn_attribute_t a)
{
	struct side s = meet(a);
	if (me.is_server) {
		may_die(1);
		barrier();
		for (;;)
			(void)NEXT(s.ep);
	}
	barrier();
	enum { N = 100 };
	bool seen[N] = {false}, failed = false;
	unsigned begun = 0;
	int rc = CCI_SUCCESS;
	while (begun < N && rc == CCI_SUCCESS) {
		rc = cci_send(s.conn, pattern(begun), begun * 20, CONTEXT(begun), 0);
		begun += rc == CCI_SUCCESS;
		if (begun == N / 2)
			signal_rank(1, SIGKILL);
	}
	/* The death may be known before the last message is sent. */
	CHECK(rc == CCI_SUCCESS || (begun >= N / 2 && rc == CCI_ERR_DISCONNECTED));
	struct patience p = patience_begin();
	for (unsigned i = 0; i < begun; i++) {
		cci_event_t *event;
		while (cci_get_event(s.ep, &event) != CCI_SUCCESS)
			CHECK(!patience_is_over(&p));
		CHECK(event->type == CCI_EVENT_SEND);
		CHECK(event->send.status == CCI_SUCCESS ||
			event->send.status == CCI_ERR_DISCONNECTED);
		uintptr_t at = (uintptr_t)event->send.context;
		CHECK(at < N && !seen[at]);
		seen[at] = true;
		CHECK(a == CCI_CONN_ATTR_RU || at == i);
		/* On RO no message follows one that has failed. */
		CHECK(a == CCI_CONN_ATTR_RU || !failed ||
			event->send.status == CCI_ERR_DISCONNECTED);
		failed |= event->send.status != CCI_SUCCESS;
		RETURN(event);
	}
	SILENCE(s.ep, 2);
	CHECK_RC(cci_send(s.conn, "x", 1, NULL, CCI_FLAG_BLOCKING), CCI_ERR_DISCONNECTED);
}

STATEMENT(94, killed_with_sends, 2, 0)
{
	kill_with_sends(CCI_CONN_ATTR_RO);
}

HELPER(leaves_on_bye)
{
	cci_endpoint_t *ep = first_endpoint();
	cci_connection_t *conn = accept_one(ep, NULL);
	cci_event_t *event = EXPECT(ep, CCI_EVENT_RECV);
	CHECK(conn && event->recv.len == 3);
	if (argument[0] == 'd')
		OK(cci_destroy_endpoint(ep));
	exit(0); /* without finalize, with the event lent */
}

STATEMENT(95, bye, 1, DOMAIN)
{
	cci_endpoint_t *ep = first_endpoint();
	unsigned nth = 1;
	for (unsigned long i = 0; i < many(400); i++) {
		int pid = spawn("leaves_on_bye", i % 2 ? "d" : "", NULL);
		cci_connection_t *conn =
			connect_to(ep, told_uri(0, nth++), CCI_CONN_ATTR_RO, NULL);
		OK(cci_send(conn, "bye", 3, CONTEXT(i), 0));
		SENT(ep, CONTEXT(i));
		OK(cci_disconnect(conn));
		join(pid);
	}
	/* Within a process more rounds are possible. */
	for (unsigned long i = 0; i < many(10000); i++) {
		struct both two = both(CCI_CONN_ATTR_RO);
		OK(cci_send(two.a.conn, "bye", 3, CONTEXT(i), 0));
		(void)EXPECT(two.b.ep, CCI_EVENT_RECV);
		OK(cci_destroy_endpoint(two.b.ep));
		SENT(two.a.ep, CONTEXT(i));
		OK(cci_destroy_endpoint(two.a.ep));
		down();
	}
}

STATEMENT(96, sent_before_an_end, 2, 0)
{
	enum { N = 200 };
	struct side s = meet(CCI_CONN_ATTR_RO);
	if (me.is_client) {
		for (unsigned i = 0; i < N; i++)
			OK(cci_send(s.conn, pattern(i), i, CONTEXT(i), 0));
		for (unsigned i = 0; i < N; i++)
			SENT(s.ep, CONTEXT(i));
		down();
		leave();
	}
	may_die(0);
	await_end(0);
	for (unsigned i = 0; i < N; i++)
		check_message(s, i, i);
}
